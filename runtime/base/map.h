/* runtime/base/map.h - from text to pointers, in an arena. */
#ifndef RUNTIME_BASE_MAP_H
#define RUNTIME_BASE_MAP_H

#include <stdint.h>

#include "runtime/base/arena.h"

typedef struct ts_map {
    ts_str *keys; /* in order of insertion: iterate 0..count */
    void **values;
    size_t count, capacity;
    uint32_t *index; /* open addressing: 0 empty, else position + 1 */
    size_t index_capacity;
} ts_map;

void *ts_map_get(const ts_map *map, ts_str key); /* NULL where absent */
void ts_map_set(ts_arena *arena, ts_map *map, ts_str key, void *value); /* key is not copied */

#endif

/* runtime/base/map.c - see map.h. */
#include "runtime/base/map.h"

#include "runtime/base/hash.h"

static size_t map_slot(const ts_map *map, ts_str key) {
    size_t mask = map->index_capacity - 1;
    size_t i = (size_t)ts_hash64(key.data, key.length, 0) & mask;
    while (map->index[i] && !ts_str_equal(map->keys[map->index[i] - 1], key))
        i = (i + 1) & mask;
    return i;
}

void *ts_map_get(const ts_map *map, ts_str key) {
    if (!map->index_capacity)
        return NULL;
    uint32_t at = map->index[map_slot(map, key)];
    return at ? map->values[at - 1] : NULL;
}

void ts_map_set(ts_arena *arena, ts_map *map, ts_str key, void *value) {
    if ((map->count + 1) * 2 > map->index_capacity) {
        map->index_capacity = map->index_capacity ? map->index_capacity * 2 : 16;
        map->index = TS_NEW_ARRAY(arena, uint32_t, map->index_capacity);
        for (size_t i = 0; i < map->count; i++)
            map->index[map_slot(map, map->keys[i])] = (uint32_t)(i + 1);
    }
    size_t slot = map_slot(map, key);
    if (map->index[slot]) {
        map->values[map->index[slot] - 1] = value;
        return;
    }
    if (map->count == map->capacity) {
        size_t capacity = map->capacity;
        map->values = ts_arena_grow(arena, map->values, map->count, &capacity, sizeof(void *));
        map->keys = ts_arena_grow(arena, map->keys, map->count, &map->capacity, sizeof(ts_str));
    }
    map->keys[map->count] = key;
    map->values[map->count++] = value;
    map->index[slot] = (uint32_t)map->count;
}

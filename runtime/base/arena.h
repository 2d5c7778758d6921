/* runtime/base/arena.h - memory that is freed all at once.
 *
 * The compiler owns one arena per compilation and one scratch arena per pass. Allocation never
 * returns NULL: when memory runs out (or the arena's limit is met) it jumps to the handler set by
 * ts_arena_set_handler, which frees the arena and returns ts_no_memory(). Never allocate from an
 * arena inside a callback of a foreign library that holds state. Not thread-safe. */
#ifndef RUNTIME_BASE_ARENA_H
#define RUNTIME_BASE_ARENA_H

#include <setjmp.h>
#include <stddef.h>

#include "runtime/base/compiler.h"
#include "runtime/base/str.h"

typedef struct ts_arena ts_arena;
typedef struct ts_arena_mark {
    void *block;
    size_t used;
} ts_arena_mark;

/* limit_bytes 0 means no limit. NULL when memory ran out. */
ts_arena *ts_arena_create(size_t limit_bytes);
void ts_arena_release(ts_arena *arena);
/* The jump target for a failed allocation; without one a failure aborts the process, so every
 * entry point sets one before it allocates. */
void ts_arena_set_handler(ts_arena *arena, jmp_buf *handler);
jmp_buf *ts_arena_handler(const ts_arena *arena);

void *ts_arena_alloc(ts_arena *arena, size_t size);  /* zeroed, 16-byte aligned */
void *ts_arena_array(ts_arena *arena, size_t count, size_t size); /* checked product, zeroed */
/* Grows an array of the arena: returns room for at least count + 1 elements, copying the old. */
void *ts_arena_grow(ts_arena *arena, void *array, size_t count, size_t *capacity, size_t size);
char *ts_arena_copy(ts_arena *arena, const char *data, size_t length); /* adds a 0 byte */
ts_str ts_arena_str(ts_arena *arena, ts_str s);
ts_str ts_arena_format(ts_arena *arena, const char *format, ...) TS_PRINTF(2, 3);
size_t ts_arena_bytes(const ts_arena *arena);

ts_arena_mark ts_arena_save(const ts_arena *arena);
void ts_arena_restore(ts_arena *arena, ts_arena_mark mark); /* frees what came after the mark */

#define TS_NEW(arena, type) ((type *)ts_arena_alloc((arena), sizeof(type)))
#define TS_NEW_ARRAY(arena, type, count) ((type *)ts_arena_array((arena), (count), sizeof(type)))
/* Appends to {items, count, capacity} members held in an arena. */
#define TS_APPEND(arena, items, count, capacity, value)                                            \
    do {                                                                                           \
        if ((count) == (capacity))                                                                 \
            (items) = ts_arena_grow((arena), (items), (count), &(capacity), sizeof *(items));      \
        (items)[(count)++] = (value);                                                              \
    } while (0)

#endif

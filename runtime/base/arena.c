/* runtime/base/arena.c - a chain of blocks, allocated by bumping a pointer. */
#include "runtime/base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/checked.h"

enum { BLOCK_BYTES = 64 * 1024, ALIGN = 16 };

typedef struct block {
    struct block *previous;
    size_t capacity, used;
} block;

/* The header is padded so that what follows it is aligned. */
enum { HEADER_BYTES = (sizeof(block) + ALIGN - 1) / ALIGN * ALIGN };

struct ts_arena {
    block *top;
    size_t total, limit;
    jmp_buf *handler;
};

ts_arena *ts_arena_create(size_t limit_bytes) {
    ts_arena *arena = calloc(1, sizeof *arena);
    if (arena)
        arena->limit = limit_bytes;
    return arena;
}

void ts_arena_release(ts_arena *arena) {
    if (!arena)
        return;
    for (block *b = arena->top; b;) {
        block *previous = b->previous;
        free(b);
        b = previous;
    }
    free(arena);
}

void ts_arena_set_handler(ts_arena *arena, jmp_buf *handler) { arena->handler = handler; }
jmp_buf *ts_arena_handler(const ts_arena *arena) { return arena->handler; }
size_t ts_arena_bytes(const ts_arena *arena) { return arena->total; }

static TS_NORETURN void fail(ts_arena *arena) {
    if (!arena->handler)
        abort();
    longjmp(*arena->handler, 1);
}

static block *push_block(ts_arena *arena, size_t size) {
    /* Blocks double with the arena, so a large compilation makes few of them. */
    size_t capacity = arena->total / 4 > BLOCK_BYTES ? arena->total / 4 : BLOCK_BYTES;
    if (capacity < size)
        capacity = size;
    size_t bytes;
    if (!ts_add_size(capacity, HEADER_BYTES, &bytes))
        fail(arena);
    if (arena->limit && (size > arena->limit || arena->total > arena->limit - size))
        fail(arena);
    block *b = malloc(bytes);
    if (!b)
        fail(arena);
    b->previous = arena->top;
    b->capacity = capacity;
    b->used = 0;
    arena->top = b;
    arena->total += capacity;
    return b;
}

void *ts_arena_alloc(ts_arena *arena, size_t size) {
    size_t rounded;
    if (!ts_align_up(size ? size : 1, ALIGN, &rounded))
        fail(arena);
    block *b = arena->top;
    if (!b || b->capacity - b->used < rounded)
        b = push_block(arena, rounded);
    void *p = (char *)b + HEADER_BYTES + b->used;
    b->used += rounded;
    memset(p, 0, rounded);
    return p;
}

void *ts_arena_array(ts_arena *arena, size_t count, size_t size) {
    size_t bytes;
    if (!ts_mul_size(count, size, &bytes))
        fail(arena);
    return ts_arena_alloc(arena, bytes);
}

void *ts_arena_grow(ts_arena *arena, void *array, size_t count, size_t *capacity, size_t size) {
    size_t wanted = *capacity ? *capacity : 4;
    while (wanted < count + 1)
        wanted *= 2;
    if (*capacity)
        wanted = *capacity * 2;
    void *grown = ts_arena_array(arena, wanted, size);
    if (count)
        memcpy(grown, array, count * size);
    *capacity = wanted;
    return grown;
}

char *ts_arena_copy(ts_arena *arena, const char *data, size_t length) {
    size_t bytes;
    if (!ts_add_size(length, 1, &bytes))
        fail(arena);
    char *p = ts_arena_alloc(arena, bytes);
    if (length)
        memcpy(p, data, length);
    return p;
}

ts_str ts_arena_str(ts_arena *arena, ts_str s) {
    return (ts_str){ts_arena_copy(arena, s.data, s.length), s.length};
}

ts_str ts_arena_format(ts_arena *arena, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0) {
        va_end(again);
        fail(arena);
    }
    char *p = ts_arena_alloc(arena, (size_t)n + 1);
    vsnprintf(p, (size_t)n + 1, format, again);
    va_end(again);
    return (ts_str){p, (size_t)n};
}

ts_arena_mark ts_arena_save(const ts_arena *arena) {
    return (ts_arena_mark){arena->top, arena->top ? arena->top->used : 0};
}

void ts_arena_restore(ts_arena *arena, ts_arena_mark mark) {
    while (arena->top && (void *)arena->top != mark.block) {
        block *previous = arena->top->previous;
        arena->total -= arena->top->capacity;
        free(arena->top);
        arena->top = previous;
    }
    if (arena->top)
        arena->top->used = mark.used;
}

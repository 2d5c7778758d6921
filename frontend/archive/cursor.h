/* frontend/archive/cursor.h - reading little-endian numbers that may not pass the end. */
#ifndef FRONTEND_ARCHIVE_CURSOR_H
#define FRONTEND_ARCHIVE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fe_cursor {
    const unsigned char *base;
    size_t length, at;
    bool failed; /* something lay beyond the end: every read since gave 0 */
} fe_cursor;

static inline fe_cursor fe_cursor_at(const unsigned char *base, size_t length, size_t at) {
    return (fe_cursor){base, length, at, at > length};
}

/* The next n bytes, or NULL. */
static inline const unsigned char *fe_cursor_bytes(fe_cursor *c, size_t n) {
    if (c->failed || n > c->length - c->at) {
        c->failed = true;
        return NULL;
    }
    const unsigned char *p = c->base + c->at;
    c->at += n;
    return p;
}

static inline uint64_t fe_cursor_number(fe_cursor *c, size_t bytes) {
    const unsigned char *p = fe_cursor_bytes(c, bytes);
    uint64_t n = 0;
    for (size_t i = bytes; p && i--;)
        n = n << 8 | p[i];
    return n;
}

static inline unsigned fe_cursor_u8(fe_cursor *c) { return (unsigned)fe_cursor_number(c, 1); }
static inline unsigned fe_cursor_u16(fe_cursor *c) { return (unsigned)fe_cursor_number(c, 2); }
static inline uint32_t fe_cursor_u32(fe_cursor *c) { return (uint32_t)fe_cursor_number(c, 4); }
static inline uint64_t fe_cursor_u64(fe_cursor *c) { return fe_cursor_number(c, 8); }

#endif

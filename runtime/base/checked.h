/* runtime/base/checked.h - arithmetic on sizes that came from a file or a shape.
 *
 * Each function returns false on overflow and leaves *out unchanged. No size from input may be
 * added or multiplied by other means (see docs/design.md, bad input). */
#ifndef RUNTIME_BASE_CHECKED_H
#define RUNTIME_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool ts_add_size(size_t a, size_t b, size_t *out) {
    size_t r;
    if (__builtin_add_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

static inline bool ts_mul_size(size_t a, size_t b, size_t *out) {
    size_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

static inline bool ts_add_i64(int64_t a, int64_t b, int64_t *out) {
    int64_t r;
    if (__builtin_add_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

static inline bool ts_sub_i64(int64_t a, int64_t b, int64_t *out) {
    int64_t r;
    if (__builtin_sub_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

static inline bool ts_mul_i64(int64_t a, int64_t b, int64_t *out) {
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

/* Rounds n up to a multiple of align (a power of two). */
static inline bool ts_align_up(size_t n, size_t align, size_t *out) {
    size_t r;
    if (!ts_add_size(n, align - 1, &r))
        return false;
    *out = r & ~(align - 1);
    return true;
}

#endif

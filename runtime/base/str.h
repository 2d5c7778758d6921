/* runtime/base/str.h - strings as pointer and length, not owned, not terminated. */
#ifndef RUNTIME_BASE_STR_H
#define RUNTIME_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct ts_str {
    const char *data;
    size_t length;
} ts_str;

#define TS_STR(literal) ((ts_str){(literal), sizeof(literal) - 1})
/* For printf: "%.*s", TS_STR_ARG(s). At most 80 characters of user text are ever printed. */
#define TS_STR_ARG(s) (int)((s).length > 80 ? 80 : (s).length), (s).data ? (s).data : ""

static inline ts_str ts_str_of(const char *text) {
    return (ts_str){text, text ? strlen(text) : 0};
}

static inline bool ts_str_equal(ts_str a, ts_str b) {
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

static inline bool ts_str_is(ts_str a, const char *text) { return ts_str_equal(a, ts_str_of(text)); }

static inline bool ts_str_starts_with(ts_str s, const char *prefix) {
    size_t n = strlen(prefix);
    return s.length >= n && memcmp(s.data, prefix, n) == 0;
}

static inline bool ts_str_ends_with(ts_str s, const char *suffix) {
    size_t n = strlen(suffix);
    return s.length >= n && memcmp(s.data + s.length - n, suffix, n) == 0;
}

static inline bool ts_str_contains(ts_str s, const char *part) {
    size_t length = strlen(part);
    for (size_t i = 0; i + length <= s.length; i++)
        if (memcmp(s.data + i, part, length) == 0)
            return true;
    return false;
}

/* Order by bytes, shorter first on a common prefix: <0, 0, >0. */
static inline int ts_str_compare(ts_str a, ts_str b) {
    size_t n = a.length < b.length ? a.length : b.length;
    int c = n ? memcmp(a.data, b.data, n) : 0;
    if (c)
        return c;
    return a.length < b.length ? -1 : a.length > b.length;
}

#endif

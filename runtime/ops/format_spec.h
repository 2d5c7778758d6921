/* runtime/ops/format_spec.h - specifications of formats, and values as text by them: str.format, f-strings and the
 * % operator. */
#ifndef RUNTIME_OPS_FORMAT_SPEC_H
#define RUNTIME_OPS_FORMAT_SPEC_H

#include "runtime/base/buffer.h"
#include "runtime/values/value.h"

enum { RT_MAX_FIELD = 1000000 }; /* of a width or precision */

typedef struct rt_format_spec {
    uint32_t fill;
    char align; /* < > ^ = or 0 */
    char sign;  /* + - blank or 0 */
    bool alternate, no_negative_zero;
    char grouping; /* , _ or 0 */
    int64_t width, precision; /* -1: none */
    char type;                /* 0: none */
} rt_format_spec;

static inline bool rt_format_shows_plus(const rt_format_spec *f) { return f->sign == '+' || f->sign == ' '; }
void rt_format_fill(ts_buffer *out, uint32_t c, int64_t n);
/* prefix (a sign, 0x) and body to the width; default_align where there is none. */
void rt_format_padded(ts_buffer *out, const rt_format_spec *f, ts_str prefix, ts_str body, char default_align);
size_t rt_format_digits(uint64_t u, unsigned base, bool upper, char out[72]); /* how many */
/* v: what messages name. */
ts_status rt_format_str(ts_str s, const rt_format_spec *f, rt_value v, ts_buffer *out) TS_WARN_UNUSED;
ts_status rt_format_int(int64_t i, const rt_format_spec *f, rt_value v, ts_buffer *out) TS_WARN_UNUSED;
ts_status rt_format_float(double x, const rt_format_spec *f, rt_value v, ts_buffer *out) TS_WARN_UNUSED;
/* The items of a tuple or list; else the value itself. */
void rt_format_items(const rt_value *v, const rt_value **items, size_t *count);

#endif

/* runtime/ops/ref_kernel.h - what kernels over numbers, strings and containers share: numbers unboxed. */
#ifndef RUNTIME_OPS_REF_KERNEL_H
#define RUNTIME_OPS_REF_KERNEL_H

#include "runtime/base/buffer.h"
#include "runtime/ops/kernel_head.h"

typedef enum rt_number_kind { NUMBER_INT, NUMBER_FLOAT, NUMBER_COMPLEX } rt_number_kind;

/* A Python number; an int has its float value in f too, a real number im = 0. */
typedef struct rt_number {
    rt_number_kind kind;
    int64_t i;
    double f, im;
} rt_number;

static inline bool rt_is_number(rt_value v) {
    return v.tag == RT_TAG_BOOL || v.tag == RT_TAG_INT || v.tag == RT_TAG_FLOAT ||
           v.tag == RT_TAG_COMPLEX;
}
/* TypeError for what is no number; a tensor of one element counts as its item. */
ts_status rt_number_of(rt_value v, rt_number *out) TS_WARN_UNUSED;
/* Python's truncation, with its errors. */
ts_status rt_float_to_int(double f, int64_t *out) TS_WARN_UNUSED;
/* Exact comparison of an int with a float; -1, 0, 1, or 2 for a NaN. */
int rt_number_compare(const rt_number *a, const rt_number *b);
/* Python's == where a list holds tensors: identity first, then the truth of (a == b). */
ts_status rt_equal_or_tensor(rt_value a, rt_value b, bool *out) TS_WARN_UNUSED;
/* Python's a < b for numbers, strings, sequences and tensors of one element. */
ts_status rt_less(rt_value a, rt_value b, bool *out) TS_WARN_UNUSED;
/* The bounds of a slice as Python's slice.indices: start, step and the number of elements. */
ts_status rt_slice_bounds(rt_value start, rt_value end, rt_value step, int64_t length,
                          int64_t *out_start, int64_t *out_step, int64_t *out_count) TS_WARN_UNUSED;
/* str.format's specification applied to one value, appended. */
ts_status rt_format_value(rt_value v, ts_str spec, ts_buffer *out) TS_WARN_UNUSED;

#endif

/* runtime/ops/index_ops.h - what the indexing kernels share. */
#ifndef RUNTIME_OPS_INDEX_OPS_H
#define RUNTIME_OPS_INDEX_OPS_H

#include "runtime/ops/shape_ops.h"

/* How a new element meets the one that is there. */
typedef enum rt_combine {
    RT_COMBINE_SET,
    RT_COMBINE_ADD,
    RT_COMBINE_MUL,
    RT_COMBINE_MAX,
    RT_COMBINE_MIN
} rt_combine;

/* *dst = combine(*dst, *src), both elements of dtype. */
void rt_combine_element(rt_combine how, rt_dtype dtype, char *dst, const char *src);
/* The same for whole tensors: src broadcasts to dst; they do not overlap. */
void rt_combine_tensor(rt_combine how, rt_tensor *dst, const rt_tensor *src);
/* src's elements go to self where index says along dim; src: as large as index, or one element. */
ts_status rt_scatter_into(rt_tensor *self, int64_t dim, const rt_tensor *index, const rt_tensor *src,
                          rt_combine how) TS_WARN_UNUSED;
/* An index wrapped and checked: IndexError with PyTorch's text. */
ts_status rt_check_index(int64_t index, int64_t size, int dim, int64_t *out) TS_WARN_UNUSED;
/* Elements of a 0-d or 1-d integer tensor as checked indices into size; freed by the caller. */
ts_status rt_index_list(const rt_tensor *index, int64_t size, int dim,
                        int64_t **out) TS_WARN_UNUSED;
/* The coordinates of the elements that are not zero: count * rank numbers, row by row. */
ts_status rt_nonzero(const rt_tensor *t, int64_t **out, int64_t *out_count) TS_WARN_UNUSED;
/* A copy of self that a kernel then changes in place. */
ts_status rt_fresh_copy(rt_value self, rt_tensor **out) TS_WARN_UNUSED;
/* Whether a 0-d tensor among the indices (a mask; with selects an integer, too) wants rt_index_view first. */
bool rt_has_zero_dim_index(rt_value list, bool selects);
/* self as such indices leave it, and the indices that are left; both the caller's. */
ts_status rt_index_view(const rt_tensor *self, rt_value list, bool selects, rt_tensor **out_view,
                        rt_value *out_list) TS_WARN_UNUSED;
/* Ends a kernel that made *result: gives it out, or releases it on an error. */
static inline ts_status rt_give(ts_status status, rt_tensor *result, rt_value *out) {
    if (status)
        rt_tensor_release(result);
    else
        *out = rt_from_tensor(result);
    return status;
}

#endif

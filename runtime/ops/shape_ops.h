/* runtime/ops/shape_ops.h - views and gathers that several kernels build on. */
#ifndef RUNTIME_OPS_SHAPE_OPS_H
#define RUNTIME_OPS_SHAPE_OPS_H

#include <string.h>

#include "runtime/base/buffer.h"
#include "runtime/ops/tensor_ops.h"

/* Replaces the one -1 of a shape; RuntimeError where it does not hold count elements. */
ts_status rt_resolve_shape(int64_t *sizes, int rank, int64_t count) TS_WARN_UNUSED;
/* A view as an operator's result. */
ts_status rt_alias_out(const rt_tensor *t, int64_t offset, const int64_t *sizes, const int64_t *strides, int rank,
                       rt_value *out) TS_WARN_UNUSED;
/* Views; arguments as the operators take them. */
ts_status rt_permuted(const rt_tensor *t, const int *order, rt_tensor **out) TS_WARN_UNUSED;
ts_status rt_narrowed(const rt_tensor *t, int dim, int64_t start, int64_t length, int64_t step,
                      rt_tensor **out) TS_WARN_UNUSED;
ts_status rt_selected(const rt_tensor *t, int64_t dim, int64_t index,
                      rt_tensor **out) TS_WARN_UNUSED;
ts_status rt_sliced(const rt_tensor *t, rt_value dim, rt_value start, rt_value end, rt_value step,
                    rt_tensor **out) TS_WARN_UNUSED;
ts_status rt_diagonal_of(const rt_tensor *t, int64_t offset, int64_t dim1, int64_t dim2,
                         rt_tensor **out) TS_WARN_UNUSED;
ts_status rt_strided(const rt_tensor *t, rt_value size, rt_value stride, rt_value offset,
                     rt_tensor **out) TS_WARN_UNUSED;
ts_status rt_list_push_view(rt_list *list, const rt_tensor *t, int64_t *sizes,
                            int rank) TS_WARN_UNUSED;
/* A bound of a slice, as Python clamps it. */
static inline int64_t rt_clamp_index(int64_t i, int64_t size) {
    if (i < 0)
        i += size;
    return i < 0 ? 0 : i > size ? size : i;
}
/* out[i, j, ...] = in[maps[0][i], maps[1][j], ...]; a NULL map is the identity. Indices are
 * trusted. out is new and contiguous. */
ts_status rt_gather_maps(const rt_tensor *in, const int64_t *out_sizes, const int64_t *const maps[],
                         rt_tensor **out) TS_WARN_UNUSED;
/* The kernels of repeat, which tile calls, and of as_strided, which as_strided_ calls. */
ts_status rt_ref_repeat(rt_context *context, const rt_value *args, rt_value *outs);
ts_status rt_ref_as_strided(rt_context *context, const rt_value *args, rt_value *outs);
/* Fills with a number in the tensor's dtype. */
ts_status rt_fill_number(rt_tensor *t, rt_value number) TS_WARN_UNUSED;

/* One element of `size` bytes; constant sizes become single moves. */
static inline void rt_copy_element(char *dst, const char *src, int64_t size) {
    switch (size) {
    case 1:
        memcpy(dst, src, 1);
        return;
    case 2:
        memcpy(dst, src, 2);
        return;
    case 4:
        memcpy(dst, src, 4);
        return;
    case 8:
        memcpy(dst, src, 8);
        return;
    default:
        memcpy(dst, src, (size_t)size);
    }
}

#endif

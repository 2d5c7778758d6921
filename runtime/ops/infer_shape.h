/* runtime/ops/infer_shape.h - what the shape rules share. */
#ifndef RUNTIME_OPS_INFER_SHAPE_H
#define RUNTIME_OPS_INFER_SHAPE_H

#include "runtime/ops/tensor_ops.h"

/* The result's dtype is self's; its shape unknown until a rule says more. */
static inline void start(const rt_fact *self, rt_fact *out) {
    *out = rt_fact_tensor(rt_fact_tensor_dtype(self), -1, NULL);
}

static inline void set_shape(rt_fact *out, int rank, const rt_dim *dims) {
    out->rank = rank;
    out->dims = dims;
}

static inline rt_dim *copy_dims(const rt_infer_context *ic, const rt_fact *f, int extra) {
    rt_dim *dims = rt_new_dims(ic, f->rank + extra);
    for (int d = 0; d < f->rank; d++)
        dims[d] = f->dims[d];
    return dims;
}

static inline void unknown_shape(const rt_infer_context *ic, int rank, rt_fact *out) {
    rt_dim *dims = rt_new_dims(ic, rank);
    for (int d = 0; d < rank; d++)
        dims[d] = RT_DIM_UNKNOWN;
    set_shape(out, rank, dims);
}

/* A known dim argument, wrapped; false where it is not known. */
static inline ts_status dim_of(const rt_fact *f, int rank, int *out, bool *out_known) {
    int64_t dim;
    *out_known = rt_fact_int(f, &dim);
    return *out_known ? rt_wrap_dim(dim, rank, out) : NULL;
}

#endif

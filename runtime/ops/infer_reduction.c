/* runtime/ops/infer_reduction.c - dtype, rank and sizes of reductions, scans and softmax. */
#include "runtime/ops/tensor_ops.h"

static void unknown_tensor(rt_dtype dtype, rt_fact *out) { *out = rt_fact_tensor(dtype, -1, NULL); }

/* Shape of self without the dims; list and keep may be NULL (all dims; false). */
static ts_status reduced(const rt_infer_context *ic, const rt_fact *self, const rt_fact *list,
                         const rt_fact *keep_fact, bool empty_means_all, rt_fact *out) {
    int64_t dims[RT_MAX_RANK], keep = 0;
    int count = -1;
    bool mask[RT_MAX_RANK] = {false};
    if (keep_fact && !rt_fact_int(keep_fact, &keep))
        return NULL;
    if (list && list->kind != RT_FACT_NONE && !rt_fact_ints(list, dims, &count)) {
        if (keep && self->rank >= 0) {
            rt_dim *unknown = rt_new_dims(ic, self->rank);
            for (int d = 0; d < self->rank; d++)
                unknown[d] = RT_DIM_UNKNOWN;
            out->rank = self->rank;
            out->dims = unknown;
        }
        return NULL;
    }
    bool is_all = count < 0 || (count == 0 && empty_means_all);
    if (self->kind != RT_FACT_TENSOR || self->rank < 0) {
        if (is_all && !keep) { /* a full reduction has rank 0 whatever the input */
            out->rank = 0;
            out->dims = rt_new_dims(ic, 0);
        }
        return NULL;
    }
    for (int d = 0; d < self->rank; d++)
        mask[d] = is_all;
    for (int i = 0; i < count; i++) {
        int dim;
        TS_TRY(rt_wrap_dim(dims[i], self->rank, &dim));
        if (mask[dim] && !is_all)
            return ts_raise("RuntimeError", "dim %d appears multiple times in the list of dims",
                            dim);
        mask[dim] = true;
    }
    rt_dim *sizes = rt_new_dims(ic, self->rank);
    int rank = 0;
    for (int d = 0; d < self->rank; d++)
        if (!mask[d] || keep)
            sizes[rank++] = mask[d] ? 1 : self->dims[d];
    out->rank = rank;
    out->dims = sizes;
    return NULL;
}

/* What sum, prod and cumsum give; asked may be NULL. */
static rt_dtype sum_dtype(const rt_fact *self, const rt_fact *asked) {
    rt_dtype dtype;
    if (asked && asked->kind != RT_FACT_NONE)
        return rt_fact_dtype(asked, &dtype) ? dtype : RT_DTYPE_UNKNOWN;
    dtype = rt_fact_tensor_dtype(self);
    char category = rt_dtype_category(dtype);
    return category == 'i' || category == 'b' ? RT_int64 : dtype;
}

static rt_dtype asked_dtype(const rt_fact *self, const rt_fact *asked) {
    rt_dtype dtype;
    if (asked->kind == RT_FACT_NONE)
        return rt_fact_tensor_dtype(self);
    return rt_fact_dtype(asked, &dtype) ? dtype : RT_DTYPE_UNKNOWN;
}

static rt_dtype truth_dtype(const rt_fact *self) {
    rt_dtype dtype = rt_fact_tensor_dtype(self);
    return dtype == RT_DTYPE_UNKNOWN || dtype == RT_uint8 ? dtype : RT_bool;
}

RULE(sum) {
    unknown_tensor(sum_dtype(&args[0], &args[1]), outs);
    return reduced(ic, &args[0], NULL, NULL, true, outs);
}
RULE(sum_dim) {
    unknown_tensor(sum_dtype(&args[0], &args[3]), outs);
    return reduced(ic, &args[0], &args[1], &args[2], true, outs);
}
RULE(mean) {
    unknown_tensor(asked_dtype(&args[0], &args[1]), outs);
    return reduced(ic, &args[0], NULL, NULL, true, outs);
}
RULE(mean_dim) {
    unknown_tensor(asked_dtype(&args[0], &args[3]), outs);
    return reduced(ic, &args[0], &args[1], &args[2], true, outs);
}
RULE(reduce_all) { /* self's dtype, no dims */
    unknown_tensor(rt_fact_tensor_dtype(&args[0]), outs);
    return reduced(ic, &args[0], NULL, NULL, true, outs);
}
RULE(reduce_dims) { /* (self, dims, keepdim) */
    unknown_tensor(rt_fact_tensor_dtype(&args[0]), outs);
    return reduced(ic, &args[0], &args[1], &args[2], true, outs);
}
RULE(reduce_with_index) { /* (self, dim, keepdim) -> values, indices */
    unknown_tensor(rt_fact_tensor_dtype(&args[0]), outs);
    TS_TRY(reduced(ic, &args[0], &args[1], &args[2], true, outs));
    outs[1] = outs[0];
    outs[1].dtype = RT_int64;
    return NULL;
}
RULE(kthvalue) {
    unknown_tensor(rt_fact_tensor_dtype(&args[0]), outs);
    TS_TRY(reduced(ic, &args[0], &args[2], &args[3], true, outs));
    outs[1] = outs[0];
    outs[1].dtype = RT_int64;
    return NULL;
}
RULE(arg_reduce) {
    unknown_tensor(RT_int64, outs);
    return reduced(ic, &args[0], &args[1], &args[2], true, outs);
}
RULE(aminmax) {
    unknown_tensor(rt_fact_tensor_dtype(&args[0]), outs);
    TS_TRY(reduced(ic, &args[0], &args[1], &args[2], true, outs));
    outs[1] = outs[0];
    return NULL;
}
RULE(truth_all) {
    unknown_tensor(truth_dtype(&args[0]), outs);
    return reduced(ic, &args[0], NULL, NULL, true, outs);
}
RULE(truth_dims) {
    unknown_tensor(truth_dtype(&args[0]), outs);
    return reduced(ic, &args[0], &args[1], &args[2], false, outs);
}
RULE(count_nonzero) {
    unknown_tensor(RT_int64, outs);
    return reduced(ic, &args[0], &args[1], NULL, true, outs);
}
RULE(logsumexp) {
    rt_dtype dtype = rt_fact_tensor_dtype(&args[0]);
    char category = rt_dtype_category(dtype);
    unknown_tensor(category == 'i' || category == 'b' ? RT_float32 : dtype, outs);
    return reduced(ic, &args[0], &args[1], &args[2], true, outs);
}
RULE(norm_all) {
    unknown_tensor(rt_dtype_real(rt_fact_tensor_dtype(&args[0])), outs);
    return reduced(ic, &args[0], NULL, NULL, true, outs);
}
RULE(norm_dtype) {
    unknown_tensor(rt_dtype_real(asked_dtype(&args[0], &args[2])), outs);
    return reduced(ic, &args[0], NULL, NULL, true, outs);
}
RULE(norm_dim) {
    unknown_tensor(rt_dtype_real(rt_fact_tensor_dtype(&args[0])), outs);
    return reduced(ic, &args[0], &args[2], &args[3], true, outs);
}
RULE(norm_dim_dtype) {
    unknown_tensor(rt_dtype_real(asked_dtype(&args[0], &args[4])), outs);
    return reduced(ic, &args[0], &args[2], &args[3], true, outs);
}
static ts_status moments(const rt_infer_context *ic, const rt_fact *args, const rt_fact *dims,
                         const rt_fact *keep, rt_fact *outs, size_t out_count) {
    unknown_tensor(rt_dtype_real(rt_fact_tensor_dtype(&args[0])), outs);
    TS_TRY(reduced(ic, &args[0], dims, keep, true, outs));
    if (out_count > 1) {
        outs[1] = outs[0];
        outs[1].dtype = rt_fact_tensor_dtype(&args[0]);
    }
    return NULL;
}
RULE(var) { return moments(ic, args, NULL, NULL, outs, out_count); }
RULE(var_dim) { return moments(ic, args, &args[1], &args[3], outs, out_count); }

static ts_status like(const rt_fact *self, rt_dtype dtype, rt_fact *out) {
    unknown_tensor(dtype, out);
    if (rt_fact_has_shape(self)) {
        out->rank = self->rank;
        out->dims = self->dims;
    }
    return NULL;
}

RULE(scan) { return like(&args[0], sum_dtype(&args[0], &args[2]), outs); }
RULE(scan_with_index) {
    TS_TRY(like(&args[0], rt_fact_tensor_dtype(&args[0]), outs));
    return like(&args[0], RT_int64, outs + 1);
}
RULE(softmax) { return like(&args[0], asked_dtype(&args[0], &args[2]), outs); }
RULE(_softmax) {
    int64_t to_float;
    rt_dtype dtype = rt_fact_tensor_dtype(&args[0]);
    if (!rt_fact_int(&args[2], &to_float))
        dtype = RT_DTYPE_UNKNOWN;
    else if (to_float)
        dtype = RT_float32;
    return like(&args[0], dtype, outs);
}

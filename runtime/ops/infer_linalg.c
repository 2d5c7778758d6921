/* runtime/ops/infer_linalg.c - shapes of matrix factorisations. */
#include "runtime/ops/tensor_ops.h"

static rt_dtype real_of(rt_dtype d) { return d == RT_DTYPE_UNKNOWN ? d : rt_dtype_real(d); }

/* [batch.., extra...] of x */
static void batch_and(const rt_infer_context *ic, const rt_fact *x, rt_dtype dtype, int extra,
                      rt_dim a, rt_dim b, rt_fact *out) {
    *out = rt_fact_tensor(dtype, -1, NULL);
    if (!rt_fact_has_shape(x) || x->rank < 2)
        return;
    rt_dim *dims = rt_new_dims(ic, x->rank);
    for (int i = 0; i < x->rank - 2; i++)
        dims[i] = x->dims[i];
    dims[x->rank - 2] = a;
    if (extra == 2)
        dims[x->rank - 1] = b;
    *out = rt_fact_tensor(dtype, x->rank - 2 + extra, dims);
}

static rt_dim size_of(const rt_fact *x, int from_end) {
    return rt_fact_has_shape(x) && x->rank >= 2 ? x->dims[x->rank - from_end] : RT_DIM_UNKNOWN;
}

/* The first result like the first argument; info and pivots are int32 of unknown size. */
RULE(factor_and_ints) {
    outs[0] = rt_fact_has_shape(&args[0])
                  ? rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), args[0].rank, args[0].dims)
                  : rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), -1, NULL);
    for (size_t i = 1; i < out_count; i++)
        outs[i] = rt_fact_tensor(RT_int32, -1, NULL);
    return NULL;
}

RULE(determinant) {
    batch_and(ic, &args[0], rt_fact_tensor_dtype(&args[0]), 0, 0, 0, &outs[0]);
    if (out_count > 1)
        batch_and(ic, &args[0], real_of(rt_fact_tensor_dtype(&args[0])), 0, 0, 0, &outs[1]);
    return NULL;
}

RULE(eigh) {
    batch_and(ic, &args[0], real_of(rt_fact_tensor_dtype(&args[0])), 1, size_of(&args[0], 1), 0, &outs[0]);
    if (out_count > 1)
        batch_and(ic, &args[0], rt_fact_tensor_dtype(&args[0]), 2, size_of(&args[0], 2), size_of(&args[0], 1),
                  &outs[1]);
    return NULL;
}

RULE(eig) {
    rt_dtype dtype = real_of(rt_fact_tensor_dtype(&args[0]));
    if (dtype != RT_DTYPE_UNKNOWN)
        dtype = rt_dtype_complex(dtype);
    batch_and(ic, &args[0], dtype, 1, size_of(&args[0], 1), 0, &outs[0]);
    if (out_count > 1)
        batch_and(ic, &args[0], dtype, 2, size_of(&args[0], 2), size_of(&args[0], 1), &outs[1]);
    return NULL;
}

RULE(svd) { /* U, S, V */
    outs[0] = outs[2] = rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), -1, NULL);
    outs[1] = rt_fact_tensor(real_of(rt_fact_tensor_dtype(&args[0])), -1, NULL);
    return NULL;
}

RULE(real_of_self) {
    outs[0] = rt_fact_tensor(real_of(rt_fact_tensor_dtype(&args[0])), -1, NULL);
    return NULL;
}

/* A limit of several numbers may have a larger batch than the matrices. */
static bool limit_is_larger(const rt_fact *args, size_t arg_count) {
    for (size_t i = 1; i < arg_count; i++)
        if (args[i].kind == RT_FACT_TENSOR && args[i].rank != 0)
            return true;
    return false;
}

RULE(pinv) {
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), -1, NULL);
    if (!limit_is_larger(args, arg_count))
        batch_and(ic, &args[0], rt_fact_tensor_dtype(&args[0]), 2, size_of(&args[0], 1), size_of(&args[0], 2), outs);
    return NULL;
}

RULE(matrix_rank) {
    outs[0] = rt_fact_tensor(RT_int64, -1, NULL);
    if (!limit_is_larger(args, arg_count))
        batch_and(ic, &args[0], RT_int64, 0, 0, 0, outs);
    return NULL;
}

RULE(lstsq) {
    rt_dtype dtype = rt_fact_tensor_dtype(&args[0]);
    outs[0] = rt_fact_tensor(dtype, -1, NULL);
    outs[1] = outs[3] = rt_fact_tensor(real_of(dtype), -1, NULL);
    outs[2] = rt_fact_tensor(RT_int64, -1, NULL);
    return NULL;
}

RULE(solve_ex) {
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), -1, NULL);
    outs[1] = rt_fact_tensor(RT_int32, -1, NULL);
    return NULL;
}

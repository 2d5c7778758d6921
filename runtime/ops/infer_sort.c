/* runtime/ops/infer_sort.c - shapes of sort, topk, unique. */
#include "runtime/ops/tensor_ops.h"

static void like(const rt_fact *x, rt_dtype dtype, rt_fact *out) {
    *out = rt_fact_has_shape(x) ? rt_fact_tensor(dtype, x->rank, x->dims)
                                : rt_fact_tensor(dtype, -1, NULL);
}

RULE(sort) {
    like(&args[0], rt_fact_tensor_dtype(&args[0]), &outs[0]);
    like(&args[0], RT_int64, &outs[1]);
    return NULL;
}

RULE(argsort) {
    like(&args[0], RT_int64, outs);
    return NULL;
}

RULE(topk) {
    int64_t dim;
    const rt_fact *x = &args[0];
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(x), -1, NULL);
    outs[1] = rt_fact_tensor(RT_int64, -1, NULL);
    if (!rt_fact_has_shape(x) || !rt_fact_int(&args[2], &dim))
        return NULL;
    dim = dim < 0 ? dim + x->rank : dim;
    rt_dim *dims = rt_new_dims(ic, x->rank);
    for (int i = 0; i < x->rank; i++)
        dims[i] = i != dim                                             ? x->dims[i]
                  : args[1].kind == RT_FACT_INT && args[1].is_known ? args[1].dim
                                                                       : RT_DIM_UNKNOWN;
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(x), x->rank, dims);
    outs[1] = rt_fact_tensor(RT_int64, x->rank, dims);
    return NULL;
}

RULE(unique) {
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), -1, NULL);
    for (size_t i = 1; i < out_count; i++)
        outs[i] = rt_fact_tensor(RT_int64, -1, NULL);
    return NULL;
}

RULE(histogramdd) {
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), -1, NULL);
    outs[1] = (rt_fact){.kind = RT_FACT_LIST, .dim = RT_DIM_UNKNOWN, .rank = -1};
    return NULL;
}

/* runtime/ops/infer_cast.c - facts of conversions and copies. */
#include "runtime/ops/tensor_ops.h"

static void with_dtype(const rt_fact *self, rt_dtype dtype, rt_fact *out) {
    *out = *self;
    if (self->kind != RT_FACT_TENSOR)
        *out = rt_fact_tensor(RT_DTYPE_UNKNOWN, -1, NULL);
    if (dtype != out->dtype && dtype != RT_int64)
        out->dim = RT_DIM_UNKNOWN; /* the element's value was known as an int64 */
    out->dtype = dtype;
}

static void cast(const rt_fact *self, const rt_fact *dtype_fact, rt_fact *out) {
    rt_dtype dtype;
    if (dtype_fact->kind == RT_FACT_NONE)
        with_dtype(self, self->kind == RT_FACT_TENSOR ? self->dtype : RT_DTYPE_UNKNOWN, out);
    else
        with_dtype(self, rt_fact_dtype(dtype_fact, &dtype) ? dtype : RT_DTYPE_UNKNOWN, out);
}

RULE(to_device) { return cast(&args[0], &args[2], outs), (ts_status)NULL; }
RULE(to_dtype) { return cast(&args[0], &args[1], outs), (ts_status)NULL; }
RULE(to_other) {
    with_dtype(&args[0], args[1].kind == RT_FACT_TENSOR ? args[1].dtype : RT_DTYPE_UNKNOWN, outs);
    return NULL;
}
RULE(like_self) {
    with_dtype(&args[0], args[0].kind == RT_FACT_TENSOR ? args[0].dtype : RT_DTYPE_UNKNOWN, outs);
    return NULL;
}
RULE(fill) {
    with_dtype(&args[0], args[0].kind == RT_FACT_TENSOR ? args[0].dtype : RT_DTYPE_UNKNOWN, outs);
    outs[0].dim = RT_DIM_UNKNOWN;
    return NULL;
}
RULE(tensor_bool) {
    outs[0] = (rt_fact){.kind = RT_FACT_BOOL};
    return NULL;
}

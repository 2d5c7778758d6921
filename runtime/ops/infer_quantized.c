/* runtime/ops/infer_quantized.c - dtypes and shapes around quantized tensors: what comes out of them
 * as floats is compiled further on. */
#include "runtime/ops/infer_shape.h"

static void like(const rt_fact *x, rt_dtype dtype, rt_fact *out) {
    *out = rt_fact_tensor(dtype, x->kind == RT_FACT_TENSOR ? x->rank : -1,
                          x->kind == RT_FACT_TENSOR ? x->dims : NULL);
}

/* self's shape with the last dimensions unknown. */
static void like_but(const rt_infer_context *ic, const rt_fact *x, int known, rt_dtype dtype,
                     rt_fact *out) {
    *out = rt_fact_tensor(dtype, -1, NULL);
    if (!rt_fact_has_shape(x))
        return;
    rt_dim *dims = copy_dims(ic, x, 0);
    for (int d = known < 0 ? x->rank + known : known; d < x->rank; d++)
        if (d >= 0)
            dims[d] = RT_DIM_UNKNOWN;
    set_shape(out, x->rank, dims);
}

static rt_dtype dtype_of(const rt_fact *x) {
    return x->kind == RT_FACT_TENSOR ? x->dtype : RT_DTYPE_UNKNOWN;
}

static ts_status quantized(const rt_fact *x, const rt_fact *dtype, rt_fact *out) {
    rt_dtype to = RT_DTYPE_UNKNOWN;
    if (!rt_fact_dtype(dtype, &to))
        to = RT_DTYPE_UNKNOWN;
    like(x, to, out);
    return NULL;
}

RULE(dequantize) { return like(&args[0], RT_float32, outs), (ts_status)NULL; }
RULE(quantize) { return quantized(&args[0], &args[3], outs); }
RULE(quantize_channel) { return quantized(&args[0], &args[4], outs); }
RULE(quantize_dynamic) { return quantized(&args[0], &args[1], outs); }
RULE(quantized_linear) {
    return like_but(ic, &args[0], -1, dtype_of(&args[0]), outs), (ts_status)NULL;
}
RULE(quantized_linear_dynamic) {
    return like_but(ic, &args[0], -1, RT_float32, outs), (ts_status)NULL;
}
RULE(quantized_conv) { return like_but(ic, &args[0], 1, dtype_of(&args[0]), outs), (ts_status)NULL; }
RULE(quantized_conv_dynamic) { return like_but(ic, &args[0], 1, RT_float32, outs), (ts_status)NULL; }
RULE(is_quantized) {
    rt_dtype dtype = dtype_of(&args[0]);
    *outs = (rt_fact){.kind = RT_FACT_BOOL, .is_known = dtype != RT_DTYPE_UNKNOWN,
                      .dim = rt_dtype_category(dtype) == 'q'};
    return NULL;
}

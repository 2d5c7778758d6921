/* runtime/ops/infer_quantized.c - dtypes and shapes around quantized tensors: what comes out of them
 * as floats is compiled further on. */
#include "runtime/ops/infer_shape.h"

static void like(const rt_fact *x, rt_dtype dtype, rt_fact *out) {
    *out = rt_fact_tensor(dtype, x->kind == RT_FACT_TENSOR ? x->rank : -1,
                          x->kind == RT_FACT_TENSOR ? x->dims : NULL);
}

static ts_status quantized(const rt_fact *x, const rt_fact *dtype, rt_fact *out) {
    rt_dtype to = RT_DTYPE_UNKNOWN;
    if (!rt_fact_dtype(dtype, &to))
        to = RT_DTYPE_UNKNOWN;
    like(x, to, out);
    return NULL;
}

/* Integers of a dtype and the quantized dtype over them. */
static rt_dtype quantized_over(rt_dtype plain) {
    return plain == RT_int8    ? RT_qint8
           : plain == RT_uint8 ? RT_quint8
           : plain == RT_int32 ? RT_qint32
                               : RT_DTYPE_UNKNOWN;
}

static rt_dtype plain_under(rt_dtype quantized) {
    return quantized == RT_qint8    ? RT_int8
           : quantized == RT_quint8 ? RT_uint8
           : quantized == RT_qint32 ? RT_int32
                                    : RT_DTYPE_UNKNOWN;
}

RULE(make_quantized) { return like(&args[0], quantized_over(rt_fact_tensor_dtype(&args[0])), outs), (ts_status)NULL; }
RULE(int_repr) { return like(&args[0], plain_under(rt_fact_tensor_dtype(&args[0])), outs), (ts_status)NULL; }
RULE(dequantize) { return like(&args[0], RT_float32, outs), (ts_status)NULL; }
RULE(quantize) { return quantized(&args[0], &args[3], outs); }
RULE(requantize) { return quantized(&args[0], &args[5], outs); }
RULE(quantize_channel) { return quantized(&args[0], &args[4], outs); }
RULE(quantize_dynamic) { return quantized(&args[0], &args[1], outs); }
/* Item `which` of packed parameters of so many items; NULL where they are not known. */
static const rt_fact *packed_item(const rt_fact *packed, size_t count, size_t which) {
    bool is_known = packed->kind == RT_FACT_OTHER && packed->count_known && packed->items &&
                    packed->count == count;
    return is_known ? &packed->items[which] : NULL;
}

/* self's shape with the last dimension that of the packed layer. */
static void layer_over(const rt_infer_context *ic, const rt_fact *x, const rt_fact *packed,
                       rt_dtype dtype, rt_fact *out) {
    *out = rt_fact_tensor(dtype, -1, NULL);
    if (!rt_fact_has_shape(x))
        return;
    const rt_fact *weight = packed_item(packed, 3, 1);
    bool is_known = weight && rt_fact_has_shape(weight) && weight->rank == 2;
    rt_dim *dims = copy_dims(ic, x, 0);
    if (x->rank > 0)
        dims[x->rank - 1] = is_known ? weight->dims[0] : RT_DIM_UNKNOWN;
    set_shape(out, x->rank, dims);
}

RULE(quantized_linear) {
    return layer_over(ic, &args[0], &args[1], rt_fact_tensor_dtype(&args[0]), outs), (ts_status)NULL;
}
RULE(quantized_linear_dynamic) {
    return layer_over(ic, &args[0], &args[1], RT_float32, outs), (ts_status)NULL;
}
RULE(quantized_cell) {
    int64_t hidden;
    const rt_fact unknown = {.kind = RT_FACT_UNKNOWN};
    const rt_fact *side = rt_fact_int(&args[2], &hidden) ? packed_item(&args[1], 5, hidden ? 3 : 2) : NULL;
    return layer_over(ic, &args[0], side ? side : &unknown, RT_float32, outs), (ts_status)NULL;
}
RULE(choose_scale) {
    outs[0] = (rt_fact){.kind = RT_FACT_FLOAT};
    outs[1] = (rt_fact){.kind = RT_FACT_INT, .dim = RT_DIM_UNKNOWN};
    return NULL;
}
RULE(is_quantized) {
    rt_dtype dtype = rt_fact_tensor_dtype(&args[0]);
    *outs = (rt_fact){.kind = RT_FACT_BOOL, .is_known = dtype != RT_DTYPE_UNKNOWN,
                      .dim = rt_dtype_category(dtype) == 'q'};
    return NULL;
}

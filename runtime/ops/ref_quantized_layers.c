/* runtime/ops/ref_quantized_layers.c - linear layers and convolutions over quantized tensors.
 *
 * Integers are exact in float32, so the float kernels add up the products of centered integers; then
 * come scale, bias, rounding, as fbgemm's ReQuantizeOutput has them. Sums beyond 24 bits are rounded
 * on the way, as they would be by the conversion to float that follows. */
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/quantized.h"

/* ---- packed parameters ---- */

ts_status rt_need_packed(rt_value v, const char *what, size_t count, const rt_tuple **out) {
    *out = rt_packed_tuple(v);
    if (!*out || (*out)->count != count || (*out)->items[0].tag != RT_TAG_STR ||
        !ts_str_is(rt_str_text((*out)->items[0].as.str), what))
        return ts_raise("RuntimeError", "expected packed parameters of a %s", what);
    return NULL;
}

KERNEL(quantized_linear_prepack) { return rt_packed_of("linear", args, 2, outs); }
KERNEL(quantized_embedding_prepack) { return rt_packed_of("embedding", args, 1, outs); }

KERNEL(quantized_conv_prepack) {
    rt_value items[8];
    for (int i = 0; i < 6; i++)
        items[i] = args[i];
    items[6] = rt_int(0);
    items[7] = rt_none();
    return rt_packed_of("conv", items, 8, outs);
}

KERNEL(quantized_conv_transpose_prepack) { /* weight bias stride padding output_padding dilation groups */
    rt_value items[8] = {args[0], args[1], args[2], args[3],
                         args[5], args[6], rt_int(1), args[4]};
    return rt_packed_of("conv", items, 8, outs);
}

KERNEL(quantized_linear_prepack_fp16) {
    rt_tensor *w, *half, *wide;
    TS_TRY(rt_need_tensor(args[0], &w));
    TS_TRY(rt_tensor_cast(w, RT_float16, true, &half));
    ts_status status = rt_tensor_cast(half, RT_float32, true, &wide);
    rt_tensor_release(half);
    TS_TRY(status);
    rt_value items[2] = {rt_from_tensor(wide), args[1]};
    status = rt_packed_of("linear", items, 2, outs);
    rt_tensor_release(wide);
    return status;
}

KERNEL(quantized_unpack) {
    const rt_tuple *t = rt_packed_tuple(args[0]);
    if (!t || t->count < 3)
        return ts_raise("RuntimeError", "expected packed parameters");
    outs[0] = rt_retain(t->items[1]);
    outs[1] = rt_retain(t->items[2]);
    return NULL;
}

KERNEL(quantized_embedding_unpack) {
    const rt_tuple *t;
    TS_TRY(rt_need_packed(args[0], "embedding", 2, &t));
    outs[0] = rt_retain(t->items[1]);
    return NULL;
}

/* ---- layers ---- */

ts_status rt_run_op(rt_context *context, rt_op op, const rt_value *args, rt_value *out) {
    return rt_op_get(op)->ref(context, args, out);
}

/* What follows the sums of a layer. */
typedef struct epilogue {
    double scale;            /* of the input */
    const rt_tensor *weight; /* quantized */
    const rt_tensor *bias;   /* float32 values, or NULL */
    bool relu;
    bool is_quantized; /* else floats are the result */
    double out_scale;
    int64_t out_zero;
    rt_dtype out_dtype;
} epilogue;

/* The scale of output channel i: per channel weights have theirs along the outputs. */
static float weight_scale(const rt_tensor *w, int64_t i) {
    return (float)(w->scales ? ((const double *)w->scales->data)[i % w->scales->element_count]
                             : w->scale);
}

enum { BLOCK = 16 }; /* of a known length: what -O2 makes vectors of */

TS_TARGET_CLONES
static void round_one(const float *restrict sums, float add, int64_t n, float multiplier, float zero,
                      float low, float high, uint8_t *restrict to) {
    for (int64_t i = 0; i < n; i += BLOCK) {
        int count = n - i < BLOCK ? (int)(n - i) : BLOCK;
        int32_t steps[BLOCK];
        float x[BLOCK] = {0};
        memcpy(x, sums + i, (size_t)count * sizeof *x);
        for (int k = 0; k < BLOCK; k++) {
            float v = rintf((x[k] + add) * multiplier) + zero;
            v = v < high ? v : high;
            v = v > low ? v : low;
            steps[k] = (int32_t)v;
        }
        for (int k = 0; k < count; k++)
            to[i + k] = (uint8_t)steps[k];
    }
}

/* bias: one for each sum, divided by the scale of the sums as fbgemm has it; or NULL. */
TS_TARGET_CLONES
static void round_row(const float *sums, const float *bias, float both, int64_t n, float multiplier,
                      float zero, float low, float high, uint8_t *to) {
    for (int64_t i = 0; i < n; i++) {
        float v = rintf((sums[i] + (bias ? bias[i] / both : 0)) * multiplier) + zero;
        v = v < high ? v : high;
        v = v > low ? v : low;
        to[i] = (uint8_t)(int32_t)v;
    }
}

TS_TARGET_CLONES
static void scale_one(float *sums, float add, int64_t n, float scale, bool relu) {
    for (int64_t i = 0; i < n; i++) {
        float y = sums[i] * scale + add;
        sums[i] = relu && y < 0 ? 0 : y;
    }
}

TS_TARGET_CLONES
static void scale_row(float *sums, const float *bias, int64_t n, float scale, bool relu) {
    for (int64_t i = 0; i < n; i++) {
        float y = sums[i] * scale + (bias ? bias[i] : 0);
        sums[i] = relu && y < 0 ? 0 : y;
    }
}

/* sums: dense [outer, channels, inner]; the result takes its place. */
static ts_status finish(rt_tensor *sums, int64_t channels, int64_t inner, const epilogue *e,
                        rt_tensor **out) {
    rt_tensor *bias = NULL, *q = NULL;
    *out = NULL;
    if (e->bias) {
        TS_TRY(rt_tensor_cast((rt_tensor *)(uintptr_t)e->bias, RT_float32, false, &bias));
        if (bias->element_count != channels || !rt_tensor_is_contiguous(bias)) {
            rt_tensor_release(bias);
            return ts_raise("RuntimeError", "bias should be a vector of %lld elements",
                            (long long)channels);
        }
    }
    if (e->is_quantized) {
        ts_status status = rt_tensor_make(e->out_dtype, sums->sizes, sums->rank, &q);
        if (status) {
            rt_tensor_release(bias);
            return status;
        }
        q->scale = e->out_scale;
        q->zero_point = e->out_zero;
    }
    float low = e->out_dtype == RT_qint8 ? -128 : 0, zero = (float)e->out_zero;
    float bottom = e->relu && zero > low ? zero : low;
    float *p = sums->data;
    uint8_t *to = q ? q->data : NULL;
    int64_t outer = channels && inner ? sums->element_count / (channels * inner) : 0;
    if (inner == 1 && !e->weight->scales && outer) { /* a row of channels under one scale */
        float both = (float)e->scale * weight_scale(e->weight, 0);
        const float *b = bias ? bias->data : NULL;
        for (int64_t o = 0; o < outer; o++, p += channels)
            if (q)
                round_row(p, b, both, channels, both / (float)e->out_scale, zero, bottom, low + 255,
                          to + o * channels);
            else
                scale_row(p, b, channels, both, e->relu);
        outer = 0;
    }
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < channels; i++, p += inner) {
            float both = (float)e->scale * weight_scale(e->weight, i);
            float add = bias ? ((const float *)bias->data)[i] : 0;
            if (q)
                round_one(p, bias ? add / both : 0, inner, both / (float)e->out_scale, zero, bottom,
                          low + 255, to + (o * channels + i) * inner);
            else
                scale_one(p, add, inner, both, e->relu);
        }
    rt_tensor_release(bias);
    if (q) {
        rt_tensor_release(sums);
        *out = q;
    } else {
        *out = sums;
    }
    return NULL;
}

/* The plain operator over centered integers, without bias; dense. */
static ts_status sum_products(rt_context *context, rt_op op, rt_tensor *x, rt_value weight,
                              const rt_value *rest, size_t rest_count, rt_tensor **out) {
    rt_tensor *w, *centered = NULL;
    TS_TRY(rt_need_quantized(weight, &w));
    TS_TRY(rt_centered(w, &centered));
    rt_value list[9] = {rt_from_tensor(x), rt_from_tensor(centered), rt_none()};
    for (size_t i = 0; i < rest_count; i++)
        list[i + 3] = rest[i];
    rt_value y = rt_none();
    ts_status status = rt_run_op(context, op, list, &y);
    rt_tensor_release(centered);
    TS_TRY(status);
    status = rt_tensor_contiguous(y.as.tensor, out);
    rt_release(y);
    return status;
}

static ts_status run_linear(rt_context *context, const rt_tensor *qx, const rt_tuple *p,
                            epilogue *e, rt_tensor **out) {
    rt_tensor *x, *sums;
    TS_TRY(rt_centered(qx, &x));
    ts_status status = sum_products(context, OP_linear, x, p->items[1], NULL, 0, &sums);
    rt_tensor_release(x);
    TS_TRY(status);
    e->scale = qx->scale;
    e->weight = p->items[1].as.tensor;
    e->bias = p->items[2].tag == RT_TAG_TENSOR ? p->items[2].as.tensor : NULL;
    status = finish(sums, sums->rank ? sums->sizes[sums->rank - 1] : 1, 1, e, out);
    if (status)
        rt_tensor_release(sums);
    return status;
}

static ts_status read_target(rt_value scale, rt_value zero_point, rt_dtype dtype, bool relu,
                             epilogue *e) {
    *e = (epilogue){.relu = relu, .is_quantized = true, .out_scale = rt_as_double(scale),
                    .out_zero = rt_as_int(zero_point), .out_dtype = dtype};
    return dtype == RT_qint32 ? ts_raise("RuntimeError", "expected quint8 or qint8, found qint32")
                              : NULL;
}

static ts_status linear(rt_context *context, const rt_value *args, bool relu, rt_value *out) {
    rt_tensor *x, *y;
    const rt_tuple *p;
    epilogue e;
    TS_TRY(rt_need_quantized(args[0], &x));
    TS_TRY(rt_need_packed(args[1], "linear", 3, &p));
    TS_TRY(read_target(args[2], args[3], rt_dtype_of(x), relu, &e));
    TS_TRY(run_linear(context, x, p, &e, &y));
    *out = rt_from_tensor(y);
    return NULL;
}

KERNEL(quantized_linear) { return linear(context, args, false, outs); }
KERNEL(quantized_linear_relu) { return linear(context, args, true, outs); }

/* An image without its batch is one of one. */
static ts_status run_conv(rt_context *context, const rt_tensor *qx, const rt_tuple *p, epilogue *e,
                          rt_tensor **out) {
    static const rt_op ops[2][3] = {{OP_conv1d, OP_conv2d, OP_conv3d},
                                    {OP_conv_transpose1d, OP_conv_transpose2d_input,
                                     OP_conv_transpose3d_input}};
    rt_tensor *x, *sums, *w;
    TS_TRY(rt_need_quantized(p->items[1], &w));
    bool transposed = p->items[7].as.i != 0;
    int dims = w->rank - 2;
    if (dims < 1 || dims > 3)
        return ts_raise("RuntimeError", "weight should have three to five dimensions");
    /* A 1d layer is packed as a 2d one of height 1. */
    bool flat = dims == 2 && qx->rank == 3 && w->sizes[2] == 1;
    TS_TRY(rt_centered(qx, &x));
    if (flat) {
        int64_t sizes[4] = {x->sizes[0], x->sizes[1], 1, x->sizes[2]}, strides[4];
        rt_tensor *view;
        rt_contiguous_strides(sizes, 4, strides);
        ts_status status = rt_tensor_alias(x, 0, sizes, strides, 4, &view);
        rt_tensor_release(x);
        TS_TRY(status);
        x = view;
    }
    /* conv: stride, padding, dilation, groups; its transpose: stride, padding, output_padding,
     * groups, dilation. */
    rt_value rest[5] = {p->items[3], p->items[4], p->items[5], p->items[6]};
    if (transposed) {
        rest[2] = p->items[8];
        rest[3] = p->items[6];
        rest[4] = p->items[5];
    }
    ts_status status = sum_products(context, ops[transposed][dims - 1], x, p->items[1], rest,
                                    transposed ? 5 : 4, &sums);
    rt_tensor_release(x);
    TS_TRY(status);
    if (flat) {
        int64_t sizes[3] = {sums->sizes[0], sums->sizes[1], sums->sizes[3]}, strides[3];
        rt_tensor *view;
        rt_contiguous_strides(sizes, 3, strides);
        status = rt_tensor_alias(sums, 0, sizes, strides, 3, &view);
        rt_tensor_release(sums);
        TS_TRY(status);
        sums = view;
        dims = 1;
    }
    e->scale = qx->scale;
    e->weight = w;
    e->bias = p->items[2].tag == RT_TAG_TENSOR ? p->items[2].as.tensor : NULL;
    int64_t inner = 1;
    for (int d = 0; d < dims; d++)
        inner *= sums->sizes[sums->rank - 1 - d];
    status = finish(sums, sums->sizes[sums->rank - 1 - dims], inner, e, out);
    if (status)
        rt_tensor_release(sums);
    return status;
}

static ts_status conv(rt_context *context, const rt_value *args, rt_value scale,
                      rt_value zero_point, bool relu, rt_value *out) {
    rt_tensor *x, *y;
    const rt_tuple *p;
    epilogue e;
    TS_TRY(rt_need_quantized(args[0], &x));
    TS_TRY(rt_need_packed(args[1], "conv", 9, &p));
    TS_TRY(read_target(scale, zero_point, rt_dtype_of(x), relu, &e));
    TS_TRY(run_conv(context, x, p, &e, &y));
    *out = rt_from_tensor(y);
    return NULL;
}

KERNEL(quantized_conv) { return conv(context, args, args[2], args[3], false, outs); }
KERNEL(quantized_conv_relu) { return conv(context, args, args[2], args[3], true, outs); }
KERNEL(quantized_conv_old) { return conv(context, args, args[6], args[7], false, outs); }
KERNEL(quantized_conv_relu_old) { return conv(context, args, args[6], args[7], true, outs); }

/* ---- activations quantized on the way (ATen's ChooseQuantizationParams) ---- */

static void choose(float low, float high, bool reduce_range, double *out_scale, int64_t *out_zero) {
    double qmin = 0, qmax = reduce_range ? 127 : 255;
    double min = low < 0 ? low : 0, max = high > 0 ? high : 0;
    double scale = (max - min) / (qmax - qmin);
    if ((float)scale == 0.0f || isinf(1.0f / (float)scale))
        scale = 0.1;
    const double small = 6.1e-5; /* keeps the inverse within half precision's range */
    if (scale < small) {
        double old = scale;
        scale = small;
        if (min == 0) {
            max = small * (qmax - qmin);
        } else if (max == 0) {
            min = -small * (qmax - qmin);
        } else {
            min *= small / old;
            max *= small / old;
        }
    }
    double from_min = qmin - min / scale, from_max = qmax - max / scale;
    double error_min = fabs(qmin) + fabs(min / scale), error_max = fabs(qmax) + fabs(max / scale);
    double zero = error_min < error_max ? from_min : from_max;
    *out_zero = zero < qmin ? (int64_t)qmin
                : zero > qmax ? (int64_t)qmax
                              : (int64_t)nearbyint(zero);
    *out_scale = scale;
}

KERNEL(choose_scale) {
    double scale;
    int64_t zero;
    choose((float)rt_as_double(args[0]), (float)rt_as_double(args[1]), args[2].as.i != 0, &scale, &zero);
    outs[0] = rt_float(scale);
    outs[1] = rt_int(zero);
    return NULL;
}

TS_TARGET_CLONES
static void span(const float *x, int64_t n, float *out_low, float *out_high) {
    float low = *out_low, high = *out_high;
    for (int64_t i = 0; i < n; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    *out_low = low;
    *out_high = high;
}

/* The scale for the whole of x as quint8. */
static ts_status quantize_whole(const rt_tensor *x, bool reduce_range, rt_tensor **out) {
    float low = 0, high = 0;
    rt_cursor c;
    if (x->dtype == RT_float32 && rt_tensor_is_contiguous(x))
        span(x->data, x->element_count, &low, &high);
    else
        for (rt_cursor_start(&c, x); c.left; rt_cursor_next(&c)) {
            float v = (float)rt_load_double(rt_dtype_of(x), c.data);
            low = v < low ? v : low;
            high = v > high ? v : high;
        }
    double scale;
    int64_t zero;
    choose(low, high, reduce_range, &scale, &zero);
    return rt_quantize(x, scale, zero, RT_quint8, out);
}

KERNEL(quantize_per_tensor_dynamic) {
    rt_tensor *x, *y;
    TS_TRY(rt_need_tensor(args[0], &x));
    TS_TRY(quantize_whole(x, args[2].as.i != 0, &y));
    if ((rt_dtype)args[1].as.i == RT_qint8) { /* the same steps, counted from -128 */
        uint8_t *p = y->data;
        for (int64_t i = 0; i < y->element_count; i++)
            p[i] = (uint8_t)(p[i] - 128);
        y->dtype = RT_qint8;
        y->zero_point -= 128;
    }
    outs[0] = rt_from_tensor(y);
    return NULL;
}

static int32_t to_16_bits(int32_t v) { return v < -32768 ? -32768 : v > 32767 ? 32767 : v; }

/* Products of unsigned inputs and weights, summed by pairs in 16 bits; dense floats [rows, n]. */
static ts_status saturating_sums(const rt_tensor *qx, const rt_tensor *w, rt_tensor **out) {
    int64_t k = w->sizes[1], n = w->sizes[0], rows = k ? qx->element_count / k : 0;
    int64_t sizes[RT_MAX_RANK];
    for (int d = 0; d < qx->rank; d++)
        sizes[d] = qx->sizes[d];
    if (qx->rank < 1 || qx->sizes[qx->rank - 1] != k || w->rank != 2 || w->dtype != RT_qint8 ||
        !rt_tensor_is_contiguous(w))
        return ts_raise("RuntimeError", "linear: input and weight do not fit");
    sizes[qx->rank - 1] = n;
    TS_TRY(rt_tensor_make(RT_float32, sizes, qx->rank, out));
    float *to = (*out)->data;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < n; i++) {
            const uint8_t *a = (const uint8_t *)qx->data + r * k;
            const int8_t *b = (const int8_t *)w->data + i * k;
            int64_t sum = 0, weights = 0;
            for (int64_t j = 0; j < k; j += 2) {
                int32_t pair = a[j] * b[j] + (j + 1 < k ? a[j + 1] * b[j + 1] : 0);
                sum += to_16_bits(pair);
                weights += b[j] + (j + 1 < k ? b[j + 1] : 0);
            }
            *to++ = (float)(sum - qx->zero_point * weights);
        }
    return NULL;
}

ts_status rt_linear_dynamic(rt_context *context, rt_value input, rt_value packed, bool reduce_range,
                            bool relu, bool saturates, rt_tensor **out) {
    rt_tensor *x, *q, *sums;
    const rt_tuple *p;
    epilogue e = {.relu = relu, .out_scale = 1};
    TS_TRY(rt_need_tensor(input, &x));
    TS_TRY(rt_need_packed(packed, "linear", 3, &p));
    if (p->items[1].tag == RT_TAG_TENSOR && !rt_is_quantized(p->items[1].as.tensor)) {
        rt_value y, list[3] = {input, p->items[1], p->items[2]}; /* halves: nothing is quantized */
        TS_TRY(rt_run_op(context, OP_linear, list, &y));
        ts_status status = rt_tensor_contiguous(y.as.tensor, out);
        rt_release(y);
        return status;
    }
    TS_TRY(quantize_whole(x, reduce_range, &q));
    if (!saturates || p->items[1].tag != RT_TAG_TENSOR) {
        ts_status status = run_linear(context, q, p, &e, out);
        rt_tensor_release(q);
        return status;
    }
    e.scale = q->scale;
    e.weight = p->items[1].as.tensor;
    e.bias = p->items[2].tag == RT_TAG_TENSOR ? p->items[2].as.tensor : NULL;
    ts_status status = saturating_sums(q, e.weight, &sums);
    rt_tensor_release(q);
    TS_TRY(status);
    status = finish(sums, e.weight->sizes[0], 1, &e, out);
    if (status)
        rt_tensor_release(sums);
    return status;
}

static ts_status dynamic(rt_context *context, const rt_value *args, bool relu, rt_value *out) {
    rt_tensor *y;
    TS_TRY(rt_linear_dynamic(context, args[0], args[1], args[2].as.i != 0, relu, false, &y));
    *out = rt_from_tensor(y);
    return NULL;
}

KERNEL(quantized_linear_dynamic) { return dynamic(context, args, false, outs); }
KERNEL(quantized_linear_relu_dynamic) { return dynamic(context, args, true, outs); }

KERNEL(quantized_linear_fp16) {
    const rt_tuple *p;
    TS_TRY(rt_need_packed(args[1], "linear", 3, &p));
    rt_value list[3] = {args[0], p->items[1], p->items[2]};
    return rt_run_op(context, OP_linear, list, outs);
}

KERNEL(quantized_conv_dynamic) {
    rt_tensor *x, *q, *y;
    const rt_tuple *p;
    epilogue e = {.out_scale = 1};
    TS_TRY(rt_need_tensor(args[0], &x));
    TS_TRY(rt_need_packed(args[1], "conv", 9, &p));
    TS_TRY(quantize_whole(x, args[2].as.i != 0, &q));
    ts_status status = run_conv(context, q, p, &e, &y);
    rt_tensor_release(q);
    TS_TRY(status);
    outs[0] = rt_from_tensor(y);
    return NULL;
}

/* One side of a recurrent cell, the input's or (hidden) the state's: the linear layer of its gates. */
KERNEL(quantized_cell) {
    rt_tensor *y;
    const rt_tuple *p;
    TS_TRY(rt_need_packed(args[1], "cell", 5, &p));
    TS_TRY(rt_linear_dynamic(context, args[0], p->items[args[2].as.i ? 3 : 2],
                             p->items[1].as.i != 0, false, p->items[4].as.i != 0, &y));
    outs[0] = rt_from_tensor(y);
    return NULL;
}

KERNEL(quantized_make_cell) {
    rt_value items[4] = {args[4], args[0], args[1], rt_bool(false)};
    return rt_packed_of("cell", items, 4, outs);
}

KERNEL(quantized_make_cell_fp16) {
    rt_value items[4] = {rt_bool(false), args[0], args[1], rt_bool(false)};
    return rt_packed_of("cell", items, 4, outs);
}

/* An item of packed parameters of a kind: what lies where is said in runtime/values/packed.h. */
KERNEL(packed_part) {
    const rt_tuple *t = rt_packed_tuple(args[0]);
    int64_t which = rt_as_int(args[2]);
    if (!t || args[1].tag != RT_TAG_STR || t->items[0].tag != RT_TAG_STR ||
        !ts_str_equal(rt_str_text(t->items[0].as.str), rt_str_text(args[1].as.str)) || which < 1 ||
        (size_t)which >= t->count)
        return ts_raise("RuntimeError", "expected packed parameters of another kind");
    outs[0] = rt_retain(t->items[which]);
    return NULL;
}

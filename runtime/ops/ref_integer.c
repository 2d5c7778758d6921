/* runtime/ops/ref_integer.c - quantized layers taken apart: products of bytes as exact sums in int32
 * (which wrap), and the roundings from floats to bytes and back. passes/open_quantized.c makes them
 * of the operators over quantized tensors; kernels hold them. Bytes are uint8 or int8 tensors whose
 * scale and zero point are arguments. */
#include <math.h>

#include "runtime/ops/quantized.h"

enum { SPATIAL = 3 };

static ts_status need_bytes(rt_value v, rt_tensor **out) {
    TS_TRY(rt_need_tensor(v, out));
    if ((*out)->dtype != RT_uint8 && (*out)->dtype != RT_int8)
        return ts_raise("RuntimeError", "expected uint8 or int8, found %s",
                        rt_dtype_name(rt_dtype_of(*out)));
    return NULL;
}

static ts_status need_weight(rt_value v, rt_tensor **out) {
    TS_TRY(rt_need_tensor(v, out));
    if ((*out)->dtype != RT_int8 || !rt_tensor_is_contiguous(*out))
        return ts_raise("RuntimeError", "expected a dense int8 weight, found %s",
                        rt_dtype_name(rt_dtype_of(*out)));
    return NULL;
}

static int32_t byte_at(const rt_tensor *t, int64_t offset) {
    return t->dtype == RT_int8 ? ((const int8_t *)t->data)[offset]
                               : ((const uint8_t *)t->data)[offset];
}

KERNEL(integer_linear) {
    rt_tensor *any, *x, *w, *y;
    TS_TRY(need_bytes(args[0], &any));
    TS_TRY(need_weight(args[1], &w));
    if (w->rank != 2 || any->rank < 1 || any->sizes[any->rank - 1] != w->sizes[1])
        return ts_raise("RuntimeError", "linear: input and weight do not fit");
    int64_t k = w->sizes[1], n = w->sizes[0], sizes[RT_MAX_RANK];
    uint32_t zero = (uint32_t)rt_as_int(args[2]);
    for (int d = 0; d < any->rank; d++)
        sizes[d] = any->sizes[d];
    sizes[any->rank - 1] = n;
    TS_TRY(rt_tensor_contiguous(any, &x));
    ts_status status = rt_tensor_make(RT_int32, sizes, any->rank, &y);
    if (!status) {
        uint32_t *to = y->data;
        for (int64_t i = 0; i < y->element_count; i++) {
            uint32_t sum = 0;
            for (int64_t j = 0; j < k; j++)
                sum += ((uint32_t)byte_at(x, i / n * k + j) - zero) * (uint32_t)byte_at(w, i % n * k + j);
            to[i] = sum;
        }
        outs[0] = rt_from_tensor(y);
    }
    rt_tensor_release(x);
    return status;
}

/* A convolution over `dims` spatial dims, all three kept: the first ones have one step. */
typedef struct layer {
    const rt_tensor *x, *w;
    uint32_t zero;
    int64_t groups, kernel[SPATIAL], in[SPATIAL], out[SPATIAL], x_strides[SPATIAL];
    int64_t stride[SPATIAL], padding[SPATIAL], dilation[SPATIAL];
} layer;

static ts_status read_list(rt_value v, int dims, int64_t other, int64_t out[SPATIAL]) {
    int64_t list[RT_MAX_RANK];
    int count;
    TS_TRY(rt_as_ints(v, list, &count));
    if (count != 1 && count != dims)
        return ts_raise("RuntimeError", "expected a list of %d ints, found %d", dims, count);
    for (int i = 0; i < SPATIAL; i++)
        out[i] = i < SPATIAL - dims ? other : list[count == 1 ? 0 : i - (SPATIAL - dims)];
    return NULL;
}

static ts_status read_layer(const rt_value *args, rt_tensor *x, rt_tensor *w, layer *l,
                            int64_t sizes[RT_MAX_RANK]) {
    int dims = w->rank - 2;
    if (dims < 1 || dims > SPATIAL || x->rank != w->rank)
        return ts_raise("RuntimeError", "input and weight should have the same three to five dimensions");
    *l = (layer){.x = x, .w = w, .zero = (uint32_t)rt_as_int(args[2]), .groups = rt_as_int(args[6])};
    TS_TRY(read_list(args[3], dims, 1, l->stride));
    TS_TRY(read_list(args[4], dims, 0, l->padding));
    TS_TRY(read_list(args[5], dims, 1, l->dilation));
    if (l->groups < 1 || w->sizes[0] % l->groups || x->sizes[1] != w->sizes[1] * l->groups)
        return ts_raise("RuntimeError", "channels of input and weight do not fit");
    sizes[0] = x->sizes[0];
    sizes[1] = w->sizes[0];
    for (int i = 0; i < SPATIAL; i++) {
        int d = i - (SPATIAL - dims) + 2;
        bool is_own = d >= 2;
        l->kernel[i] = is_own ? w->sizes[d] : 1;
        l->in[i] = is_own ? x->sizes[d] : 1;
        l->x_strides[i] = is_own ? x->strides[d] : 0;
        int64_t reach = l->in[i] + 2 * l->padding[i] - l->dilation[i] * (l->kernel[i] - 1) - 1;
        if (l->stride[i] < 1 || l->dilation[i] < 1 || l->padding[i] < 0 || reach < 0)
            return ts_raise("RuntimeError", "kernel size can't be greater than actual input size");
        l->out[i] = reach / l->stride[i] + 1;
        if (is_own)
            sizes[d] = l->out[i];
    }
    return NULL;
}

static uint32_t sum_at(const layer *l, int64_t image, int64_t channel, const int64_t at[SPATIAL]) {
    const int64_t *kernel = l->kernel;
    int64_t in = l->w->sizes[1], taps = kernel[0] * kernel[1] * kernel[2];
    int64_t first = channel / (l->w->sizes[0] / l->groups) * in;
    uint32_t sum = 0;
    for (int64_t t = 0; t < taps; t++) {
        int64_t tap[SPATIAL] = {t / (kernel[1] * kernel[2]), t / kernel[2] % kernel[1], t % kernel[2]};
        int64_t offset = image * l->x->strides[0];
        bool is_inside = true;
        for (int i = 0; i < SPATIAL; i++) {
            int64_t p = at[i] * l->stride[i] + tap[i] * l->dilation[i] - l->padding[i];
            is_inside = is_inside && p >= 0 && p < l->in[i];
            offset += p * l->x_strides[i];
        }
        for (int64_t c = 0; is_inside && c < in; c++)
            sum += ((uint32_t)byte_at(l->x, offset + (first + c) * l->x->strides[1]) - l->zero) *
                   (uint32_t)byte_at(l->w, (channel * in + c) * taps + t);
    }
    return sum;
}

KERNEL(integer_convolution) {
    rt_tensor *x, *w, *y;
    layer l;
    int64_t sizes[RT_MAX_RANK];
    TS_TRY(need_bytes(args[0], &x));
    TS_TRY(need_weight(args[1], &w));
    TS_TRY(read_layer(args, x, w, &l, sizes));
    TS_TRY(rt_tensor_make(RT_int32, sizes, x->rank, &y));
    uint32_t *to = y->data;
    int64_t pixels = l.out[0] * l.out[1] * l.out[2];
    for (int64_t i = 0; i < y->element_count; i++) {
        int64_t p = i % pixels, plane = i / pixels;
        int64_t at[SPATIAL] = {p / (l.out[1] * l.out[2]), p / l.out[2] % l.out[1], p % l.out[2]};
        to[i] = sum_at(&l, plane / sizes[1], plane % sizes[1], at);
    }
    outs[0] = rt_from_tensor(y);
    return NULL;
}

/* ---- roundings ---- */

/* x / scale to the nearest integer, then the zero point: what PyTorch's arithmetic on quantized tensors
 * does, where quantize_per_tensor rounds once after both. */
static ts_status round_first(rt_tensor *x, double scale, int64_t zero_point, rt_dtype dtype, rt_tensor **out) {
    rt_tensor *floats;
    TS_TRY(rt_dequantize(x, &floats)); /* float32, dense */
    ts_status status = rt_tensor_make(dtype, floats->sizes, floats->rank, out);
    float inverse = 1.0f / (float)scale, zero = (float)zero_point;
    float low = dtype == RT_int8 ? -128 : 0, high = dtype == RT_int8 ? 127 : 255;
    for (int64_t i = 0; !status && i < floats->element_count; i++) {
        float v = rintf(((const float *)floats->data)[i] * inverse) + zero;
        v = v < high ? v : high;
        v = v > low ? v : low;
        ((uint8_t *)(*out)->data)[i] = (uint8_t)(int32_t)v;
    }
    rt_tensor_release(floats);
    return status;
}

KERNEL(quantize_bytes) {
    rt_tensor *x, *y;
    rt_dtype dtype = (rt_dtype)args[3].as.i;
    TS_TRY(rt_need_tensor(args[0], &x));
    if (dtype != RT_uint8 && dtype != RT_int8)
        return ts_raise("RuntimeError", "expected uint8 or int8, found %s", rt_dtype_name(dtype));
    if (args[4].as.i) {
        TS_TRY(round_first(x, rt_as_double(args[1]), rt_as_int(args[2]), dtype, &y));
    } else {
        TS_TRY(rt_quantize(x, rt_as_double(args[1]), rt_as_int(args[2]),
                           dtype == RT_int8 ? RT_qint8 : RT_quint8, &y));
        y->dtype = (int8_t)dtype;
    }
    outs[0] = rt_from_tensor(y);
    return NULL;
}

/* (q - zero_point) * scale; fused: q * scale - zero_point * scale, with one rounding of product and sum, as
 * PyTorch's arithmetic on quantized tensors has it. */
KERNEL(dequantize_bytes) {
    rt_tensor *x, *y;
    TS_TRY(need_bytes(args[0], &x));
    TS_TRY(rt_tensor_make(RT_float32, x->sizes, x->rank, &y));
    float scale = (float)rt_as_double(args[1]), zero = (float)rt_as_int(args[2]), *to = y->data;
    rt_cursor c;
    for (rt_cursor_start(&c, x); c.left; rt_cursor_next(&c)) {
        float q = (float)(x->dtype == RT_int8 ? *(const int8_t *)c.data : *(const uint8_t *)c.data);
        *to++ = args[3].as.i ? fmaf(q, scale, -zero * scale) : (q - zero) * scale;
    }
    outs[0] = rt_from_tensor(y);
    return NULL;
}

/* (sums + addend) * multiplier, to the nearest integer (ties to even), plus the zero point, between
 * `lowest` and the highest byte: fbgemm's ReQuantizeOutput. */
KERNEL(requantize) {
    rt_tensor *sums, *addend, *multiplier, *y;
    rt_dtype dtype = (rt_dtype)args[5].as.i;
    TS_TRY(rt_need_tensor(args[0], &sums));
    TS_TRY(rt_need_tensor(args[1], &addend));
    TS_TRY(rt_need_tensor(args[2], &multiplier));
    if (sums->dtype != RT_int32 || addend->dtype != RT_float32 || multiplier->dtype != RT_float32 ||
        (dtype != RT_uint8 && dtype != RT_int8))
        return ts_raise("RuntimeError", "requantize: expected int32 sums, float32 factors and bytes");
    rt_tensor *wide[2] = {NULL, NULL};
    ts_status status = rt_tensor_expand(addend, sums->sizes, sums->rank, &wide[0]);
    if (!status)
        status = rt_tensor_expand(multiplier, sums->sizes, sums->rank, &wide[1]);
    if (!status)
        status = rt_tensor_make(dtype, sums->sizes, sums->rank, &y);
    if (!status) {
        float zero = (float)rt_as_int(args[3]), low = (float)rt_as_int(args[4]);
        float high = dtype == RT_int8 ? 127 : 255;
        uint8_t *to = y->data;
        rt_cursor c, a, m;
        rt_cursor_start(&a, wide[0]);
        rt_cursor_start(&m, wide[1]);
        for (rt_cursor_start(&c, sums); c.left;
             rt_cursor_next(&c), rt_cursor_next(&a), rt_cursor_next(&m)) {
            float x = (float)*(const int32_t *)(const void *)c.data + *(const float *)(const void *)a.data;
            float v = rintf(x * *(const float *)(const void *)m.data) + zero;
            v = v < high ? v : high;
            v = v > low ? v : low;
            *to++ = (uint8_t)(int32_t)v;
        }
        outs[0] = rt_from_tensor(y);
    }
    rt_tensor_release(wide[0]);
    rt_tensor_release(wide[1]);
    return status;
}

/* Sums as floats: times the scales of both operands, plus a bias. */
KERNEL(scale_sums) {
    rt_tensor *sums, *scales, *bias = NULL, *y = NULL, *wide[2] = {NULL, NULL};
    TS_TRY(rt_need_tensor(args[0], &sums));
    TS_TRY(rt_need_tensor(args[2], &scales));
    if (!rt_is_none(args[3]))
        TS_TRY(rt_need_tensor(args[3], &bias));
    if (sums->dtype != RT_int32 || scales->dtype != RT_float32 || (bias && bias->dtype != RT_float32))
        return ts_raise("RuntimeError", "scale_sums: expected int32 sums and float32 factors");
    ts_status status = rt_tensor_expand(scales, sums->sizes, sums->rank, &wide[0]);
    if (!status && bias)
        status = rt_tensor_expand(bias, sums->sizes, sums->rank, &wide[1]);
    if (!status)
        status = rt_tensor_make(RT_float32, sums->sizes, sums->rank, &y);
    if (!status) {
        float scale = (float)rt_as_double(args[1]), *to = y->data;
        rt_cursor c, s, b = {.left = 0};
        rt_cursor_start(&s, wide[0]);
        if (bias)
            rt_cursor_start(&b, wide[1]);
        for (rt_cursor_start(&c, sums); c.left; rt_cursor_next(&c), rt_cursor_next(&s)) {
            float v = (float)*(const int32_t *)(const void *)c.data *
                      (scale * *(const float *)(const void *)s.data);
            if (bias) {
                v += *(const float *)(const void *)b.data;
                rt_cursor_next(&b);
            }
            *to++ = v;
        }
        outs[0] = rt_from_tensor(y);
    }
    rt_tensor_release(wide[0]);
    rt_tensor_release(wide[1]);
    return status;
}

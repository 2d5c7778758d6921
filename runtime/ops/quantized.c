/* runtime/ops/quantized.c - quantized tensors: integers with a scale and a zero point, for the whole
 * tensor or for each index of one dimension.
 *
 * Plain operators take them by way of floats: the values go in as floats, and what comes out as
 * floats is rounded to the scale of the first argument, as PyTorch's quantized kernels of these
 * operators do. That is in this file so that whoever links a quantized kernel has it. */
#include "runtime/ops/quantized.h"

#include <math.h>

#include "runtime/ops/quantized_lift.h"

ts_status rt_need_quantized(rt_value v, rt_tensor **out) {
    TS_TRY(rt_need_tensor(v, out));
    if (!rt_is_quantized(*out))
        return ts_raise("RuntimeError", "expected a quantized tensor, found one of %s",
                        rt_dtype_name(rt_dtype_of(*out)));
    return NULL;
}

static int64_t load_integer(rt_dtype dtype, const char *p) {
    int32_t wide;
    switch (dtype) {
    case RT_qint8: return *(const int8_t *)p;
    case RT_quint8: return *(const uint8_t *)p;
    default: memcpy(&wide, p, 4); return wide;
    }
}

static void store_integer(rt_dtype dtype, char *p, int64_t i) {
    int32_t wide = (int32_t)i;
    switch (dtype) {
    case RT_qint8: *(int8_t *)p = (int8_t)i; break;
    case RT_quint8: *(uint8_t *)p = (uint8_t)i; break;
    default: memcpy(p, &wide, 4); break;
    }
}

typedef struct quantizer {
    float scale, inverse, zero_point; /* float zero points occur per channel only */
    double low, high;
    rt_dtype dtype;
    bool is_channel;
} quantizer;

static void set_scale(quantizer *q, double scale, double zero_point) {
    q->scale = (float)scale;
    q->inverse = 1.0f / q->scale;
    q->zero_point = (float)zero_point;
}

static quantizer quantizer_of(const rt_tensor *t) {
    rt_dtype dtype = rt_dtype_of(t);
    quantizer q = {.dtype = dtype, .is_channel = t->scales != NULL};
    q.low = dtype == RT_qint8 ? -128 : dtype == RT_quint8 ? 0 : -2147483648.0;
    q.high = dtype == RT_qint8 ? 127 : dtype == RT_quint8 ? 255 : 2147483647.0;
    set_scale(&q, t->scale, (double)t->zero_point);
    return q;
}

/* The scale of the element that the cursor is at. */
static void at_channel(quantizer *q, const rt_tensor *t, const rt_cursor *c) {
    int64_t i = c->index[t->axis];
    set_scale(q, ((const double *)t->scales->data)[i],
              t->zero_points->dtype == RT_float32
                  ? (double)((const float *)t->zero_points->data)[i]
                  : (double)((const int64_t *)t->zero_points->data)[i]);
}

enum { BLOCK = 16 }; /* rows go in blocks of a known length: what -O2 makes vectors of */

/* 256 values, by byte. */
static void fill_table(const quantizer *q, float scale, float *table) {
    for (int i = 0; i < 256; i++) {
        int integer = q->dtype == RT_qint8 && i > 127 ? i - 256 : i;
        table[i] = ((float)integer - q->zero_point) * scale;
    }
}

/* One rounding of product and sum, as fbgemm's; a NaN becomes the highest. */
TS_TARGET_CLONES
static void pack_8(const float *restrict from, int64_t n, float inverse, float zero_point, float low,
                   float high, uint8_t *restrict to) {
    for (int64_t i = 0; i < n; i += BLOCK) {
        int count = n - i < BLOCK ? (int)(n - i) : BLOCK;
        int32_t steps[BLOCK];
        float x[BLOCK] = {0};
        memcpy(x, from + i, (size_t)count * sizeof *x);
        for (int k = 0; k < BLOCK; k++) {
            float v = rintf(fmaf(x[k], inverse, zero_point));
            v = v < high ? v : high;
            v = v > low ? v : low;
            steps[k] = (int32_t)v;
        }
        for (int k = 0; k < count; k++)
            to[i + k] = (uint8_t)steps[k];
    }
}

/* A dense row under one scale; long rows of bytes by a table. */
static void unpack_row(const quantizer *q, const char *from, int64_t n, bool scaled, float *to) {
    float scale = scaled ? q->scale : 1.0f, table[256];
    size_t width = rt_dtype_size(q->dtype);
    if (width > 1 || n < 256) {
        for (int64_t i = 0; i < n; i++, from += width)
            to[i] = ((float)load_integer(q->dtype, from) - q->zero_point) * scale;
        return;
    }
    fill_table(q, scale, table);
    for (int64_t i = 0; i < n; i++)
        to[i] = table[(uint8_t)from[i]];
}

static bool all_zero(const rt_tensor *zero_points) {
    if (zero_points->dtype != RT_int64)
        return false;
    for (int64_t i = 0; i < zero_points->element_count; i++)
        if (((const int64_t *)zero_points->data)[i] != 0)
            return false;
    return true;
}

/* A dense tensor by channels: for each index of the axis a row of the dimensions behind it. */
static void unpack_channels(const rt_tensor *t, bool scaled, float *to) {
    quantizer q = quantizer_of(t);
    if (!scaled && all_zero(t->zero_points)) { /* weights: centered as they are */
        q.zero_point = 0;
        unpack_row(&q, t->data, t->element_count, false, to);
        return;
    }
    int64_t inner = 1, channels = t->sizes[t->axis];
    for (int d = t->axis + 1; d < t->rank; d++)
        inner *= t->sizes[d];
    rt_cursor c = {.index = {0}};
    for (int64_t at = 0; at < t->element_count; at += inner, to += inner) {
        c.index[t->axis] = at / inner % channels;
        at_channel(&q, t, &c);
        unpack_row(&q, (const char *)t->data + (size_t)at * rt_dtype_size(q.dtype), inner, scaled, to);
    }
}

static ts_status unpack(const rt_tensor *t, bool scaled, rt_tensor **out) {
    TS_TRY(rt_tensor_make(RT_float32, t->sizes, t->rank, out));
    float *to = (*out)->data;
    quantizer q = quantizer_of(t);
    if (rt_tensor_is_contiguous(t) && t->element_count) {
        if (q.is_channel)
            unpack_channels(t, scaled, to);
        else
            unpack_row(&q, t->data, t->element_count, scaled, to);
        return NULL;
    }
    rt_cursor c;
    for (rt_cursor_start(&c, t); c.left; rt_cursor_next(&c)) {
        if (q.is_channel)
            at_channel(&q, t, &c);
        float centered = (float)load_integer(q.dtype, c.data) - q.zero_point;
        *to++ = scaled ? centered * q.scale : centered;
    }
    return NULL;
}

ts_status rt_dequantize(rt_tensor *t, rt_tensor **out) {
    return rt_is_quantized(t) ? unpack(t, true, out) : rt_tensor_cast(t, RT_float32, false, out);
}

ts_status rt_centered(const rt_tensor *t, rt_tensor **out) { return unpack(t, false, out); }

static int64_t rounded(const quantizer *q, float x) {
    /* One rounding of the product and the sum for whole tensors, two by channels: as fbgemm's. */
    float product = x * q->inverse;
    float sum = q->is_channel ? product + q->zero_point : fmaf(x, q->inverse, q->zero_point);
    double v = (double)nearbyintf(sum);
    if (v != v)
        v = q->dtype == RT_qint32 ? q->low : q->high;
    return (int64_t)(v < q->low ? q->low : v > q->high ? q->high : v);
}

ts_status rt_quantize_into(rt_tensor *to, const rt_tensor *x) {
    quantizer q = quantizer_of(to);
    if (!q.is_channel && q.dtype != RT_qint32 && x->dtype == RT_float32 && x->element_count &&
        rt_tensor_is_contiguous(x) && rt_tensor_is_contiguous(to)) {
        pack_8(x->data, x->element_count, q.inverse, q.zero_point, (float)q.low, (float)q.high, to->data);
        return NULL;
    }
    rt_cursor c, from;
    rt_cursor_start(&from, x);
    for (rt_cursor_start(&c, to); c.left; rt_cursor_next(&c), rt_cursor_next(&from)) {
        if (q.is_channel)
            at_channel(&q, to, &c);
        float v = (float)rt_load_double(rt_dtype_of(x), from.data);
        store_integer(q.dtype, c.data, rounded(&q, v));
    }
    return NULL;
}

ts_status rt_make_quantized(const rt_tensor *like, rt_dtype dtype, rt_tensor **out) {
    *out = NULL;
    if (rt_dtype_category(dtype) != 'q')
        return ts_raise("RuntimeError", "quantize: expected a quantized dtype, found %s",
                        rt_dtype_name(dtype));
    return rt_tensor_make(dtype, like->sizes, like->rank, out);
}

ts_status rt_quantize(const rt_tensor *x, double scale, int64_t zero_point, rt_dtype dtype,
                      rt_tensor **out) {
    TS_TRY(rt_make_quantized(x, dtype, out));
    (*out)->scale = scale;
    (*out)->zero_point = zero_point;
    return rt_quantize_into(*out, x);
}

/* ---- plain operators ---- */

static const struct {
    const char *name; /* of all overloads, and with _ of the one in place */
    rt_lift lift;
} lifted[] = {
    {"relu", RT_LIFT_SAME},
    {"relu6", RT_LIFT_SAME},
    {"leaky_relu", RT_LIFT_SAME},
    {"hardtanh", RT_LIFT_SAME},
    {"clamp", RT_LIFT_SAME},
    {"clamp_min", RT_LIFT_SAME},
    {"clamp_max", RT_LIFT_SAME},
    {"elu", RT_LIFT_SAME},
    {"celu", RT_LIFT_SAME},
    {"threshold", RT_LIFT_SAME},
    {"sigmoid", RT_LIFT_UNSIGNED_UNIT},
    {"hardsigmoid", RT_LIFT_UNSIGNED_UNIT},
    {"tanh", RT_LIFT_SIGNED_UNIT},
    {"max_pool1d", RT_LIFT_SAME},
    {"max_pool2d", RT_LIFT_SAME},
    {"max_pool3d", RT_LIFT_SAME},
    {"avg_pool1d", RT_LIFT_MEAN},
    {"avg_pool2d", RT_LIFT_MEAN},
    {"avg_pool3d", RT_LIFT_MEAN},
    {"adaptive_avg_pool1d", RT_LIFT_MEAN},
    {"adaptive_avg_pool2d", RT_LIFT_MEAN},
    {"adaptive_avg_pool3d", RT_LIFT_MEAN},
    {"mean", RT_LIFT_MEAN},
    {"upsample_nearest1d", RT_LIFT_SAME},
    {"upsample_nearest2d", RT_LIFT_SAME},
    {"upsample_nearest3d", RT_LIFT_SAME},
    {"upsample_bilinear2d", RT_LIFT_SAME},
    {"_upsample_nearest_exact1d", RT_LIFT_SAME},
    {"_upsample_nearest_exact2d", RT_LIFT_SAME},
    {"_upsample_nearest_exact3d", RT_LIFT_SAME},
    {"pad", RT_LIFT_SAME},
    {"constant_pad_nd", RT_LIFT_SAME},
    {"reflection_pad1d", RT_LIFT_SAME},
    {"reflection_pad2d", RT_LIFT_SAME},
    {"pixel_shuffle", RT_LIFT_SAME},
    {"channel_shuffle", RT_LIFT_SAME},
    {"flip", RT_LIFT_SAME},
    {"max", RT_LIFT_SAME},
    {"min", RT_LIFT_SAME},
    {"topk", RT_LIFT_SAME},
    {"sort", RT_LIFT_SAME},
    {"cat", RT_LIFT_SAME},
    {"stack", RT_LIFT_SAME},
    {"index", RT_LIFT_SAME},
    {"index_select", RT_LIFT_SAME},
    {"copy", RT_LIFT_SAME},
    {"fill", RT_LIFT_SAME},
    {"equal", RT_LIFT_SAME},
    {"eq", RT_LIFT_SAME},
    {"ne", RT_LIFT_SAME},
    {"lt", RT_LIFT_SAME},
    {"le", RT_LIFT_SAME},
    {"gt", RT_LIFT_SAME},
    {"ge", RT_LIFT_SAME},
};

rt_lift rt_lift_of(ts_str operator_name, bool *out_in_place) {
    size_t n = 0;
    while (n < operator_name.length && operator_name.data[n] != '.')
        n++;
    *out_in_place = n > 1 && operator_name.data[n - 1] == '_';
    ts_str bare = {operator_name.data, n - (*out_in_place ? 1 : 0)};
    for (size_t i = 0; i < sizeof lifted / sizeof *lifted; i++)
        if (ts_str_is(bare, lifted[i].name))
            return lifted[i].lift;
    return RT_LIFT_NONE;
}

static bool is_quantized_value(rt_value v) {
    return v.tag == RT_TAG_TENSOR && rt_is_quantized(v.as.tensor);
}

static const rt_tensor *first_quantized(const rt_value *args, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (is_quantized_value(args[i]))
            return args[i].as.tensor;
        if (args[i].tag == RT_TAG_LIST && args[i].as.list->count &&
            is_quantized_value(args[i].as.list->items[0]))
            return args[i].as.list->items[0].as.tensor;
    }
    return NULL;
}

static ts_status as_floats(rt_value v, bool scaled, rt_value *out) {
    *out = rt_retain(v);
    if (is_quantized_value(v)) {
        rt_tensor *t;
        rt_release(*out);
        *out = rt_none();
        TS_TRY(unpack(v.as.tensor, scaled, &t));
        *out = rt_from_tensor(t);
    } else if (v.tag == RT_TAG_LIST && v.as.list->count &&
               is_quantized_value(v.as.list->items[0])) {
        rt_release(*out);
        TS_TRY(rt_list_make(v.as.list->count, out));
        for (size_t i = 0; i < v.as.list->count; i++) {
            rt_value item = rt_none();
            ts_status status = as_floats(v.as.list->items[i], scaled, &item);
            if (!status)
                status = rt_list_append(out->as.list, item);
            rt_release(item);
            TS_TRY(status);
        }
    }
    return NULL;
}

static ts_status requantize(const rt_tensor *like, rt_lift lift, rt_value *out) {
    if (out->tag != RT_TAG_TENSOR || rt_dtype_category(rt_dtype_of(out->as.tensor)) != 'f')
        return NULL;
    double scale = like->scale;
    int64_t zero_point = like->zero_point;
    bool is_signed = like->dtype != RT_quint8;
    if (lift == RT_LIFT_UNSIGNED_UNIT) { /* 0 to 1 */
        scale = 1.0 / 256;
        zero_point = is_signed ? -128 : 0;
    } else if (lift == RT_LIFT_SIGNED_UNIT) { /* -1 to 1 */
        scale = 2.0 / 256;
        zero_point = is_signed ? 0 : 128;
    }
    rt_tensor *q;
    ts_status status = rt_quantize(out->as.tensor, lift == RT_LIFT_MEAN ? 1 : scale, zero_point,
                                   rt_dtype_of(like), &q);
    rt_release(*out);
    *out = rt_none();
    TS_TRY(status);
    q->scale = scale;
    *out = rt_from_tensor(q);
    return NULL;
}

ts_status rt_lift_call(rt_lift lift, bool in_place, rt_kernel kernel, rt_context *context,
                       const rt_value *args, size_t count, rt_value *outs) {
    rt_value floats[RT_LIFT_ARGS] = {0};
    const rt_tensor *like = count <= RT_LIFT_ARGS ? first_quantized(args, count) : NULL;
    if (!like)
        return kernel(context, args, outs);
    if (like->scales)
        return ts_raise("RuntimeError", "the operator takes no tensor that is quantized per channel");
    ts_status status = NULL;
    for (size_t i = 0; i < count && !status; i++)
        status = as_floats(args[i], lift != RT_LIFT_MEAN, &floats[i]);
    if (!status)
        status = kernel(context, floats, outs);
    if (!status && in_place && is_quantized_value(args[0])) {
        rt_release(outs[0]);
        outs[0] = rt_none();
        status = rt_quantize_into(args[0].as.tensor, floats[0].as.tensor);
        if (!status)
            outs[0] = rt_retain(args[0]);
    } else if (!status) {
        status = requantize(like, lift, &outs[0]); /* of several results only the first holds values */
    }
    for (size_t i = 0; i < count; i++)
        rt_release(floats[i]);
    return status;
}

/* runtime/ops/ref_quantized.c - quantized tensors and layers: integers become floats, the float
 * kernels compute, results are rounded back. Integer arithmetic would give the same up to one step
 * where a result lies between two steps. */
#include <math.h>

#include "runtime/ops/tensor_ops.h"
#include "runtime/values/packed.h"

static bool is_quantized(const rt_tensor *t) { return rt_dtype_category(rt_dtype_of(t)) == 'q'; }

static ts_status need_quantized(rt_value v, rt_tensor **out) {
    TS_TRY(rt_need_tensor(v, out));
    if (!is_quantized(*out))
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

static void limits(rt_dtype dtype, double *low, double *high) {
    *low = dtype == RT_qint8 ? -128 : dtype == RT_quint8 ? 0 : -2147483648.0;
    *high = dtype == RT_qint8 ? 127 : dtype == RT_quint8 ? 255 : 2147483647.0;
}

/* A float32 tensor of the values; a float tensor is itself. */
static ts_status to_floats(rt_tensor *t, rt_tensor **out) {
    if (!is_quantized(t))
        return rt_tensor_cast(t, RT_float32, false, out);
    TS_TRY(rt_tensor_make(RT_float32, t->sizes, t->rank, out));
    float *to = (*out)->data;
    rt_cursor c;
    for (rt_cursor_start(&c, t); c.left; rt_cursor_next(&c))
        *to++ = (float)(load_integer(rt_dtype_of(t), c.data) - t->zero_point) * (float)t->scale;
    return NULL;
}

static ts_status to_integers(const rt_tensor *x, double scale, int64_t zero_point, rt_dtype dtype,
                             rt_tensor **out) {
    if (rt_dtype_category(dtype) != 'q')
        return ts_raise("RuntimeError", "quantize: expected a quantized dtype, found %s",
                        rt_dtype_name(dtype));
    TS_TRY(rt_tensor_make(dtype, x->sizes, x->rank, out));
    (*out)->scale = scale;
    (*out)->zero_point = zero_point;
    double low, high;
    limits(dtype, &low, &high);
    float inverse = 1.0f / (float)scale;
    char *to = (*out)->data;
    size_t step = rt_dtype_size(dtype);
    rt_cursor c;
    for (rt_cursor_start(&c, x); c.left; rt_cursor_next(&c), to += step) {
        /* One rounding of the product and the sum, as fbgemm's vector code. */
        double v = nearbyintf(fmaf((float)rt_load_double(rt_dtype_of(x), c.data), inverse,
                                   (float)zero_point));
        v = v != v ? low : v < low ? low : v > high ? high : v;
        store_integer(dtype, to, (int64_t)v);
    }
    return NULL;
}

KERNEL(quantize_per_tensor) {
    rt_tensor *x, *y;
    TS_TRY(rt_need_tensor(args[0], &x));
    TS_TRY(to_integers(x, rt_as_double(args[1]), rt_as_int(args[2]), (rt_dtype)args[3].as.i, &y));
    outs[0] = rt_from_tensor(y);
    return NULL;
}

KERNEL(dequantize) {
    rt_tensor *x, *y;
    TS_TRY(rt_need_tensor(args[0], &x));
    TS_TRY(to_floats(x, &y));
    outs[0] = rt_from_tensor(y);
    return NULL;
}

KERNEL(int_repr) {
    rt_tensor *x, *y;
    TS_TRY(need_quantized(args[0], &x));
    rt_dtype plain = x->dtype == RT_qint8 ? RT_int8 : x->dtype == RT_quint8 ? RT_uint8 : RT_int32;
    TS_TRY(rt_tensor_make(plain, x->sizes, x->rank, &y));
    char *to = y->data;
    size_t step = rt_dtype_size(plain);
    rt_cursor c;
    for (rt_cursor_start(&c, x); c.left; rt_cursor_next(&c), to += step)
        memcpy(to, c.data, step);
    outs[0] = rt_from_tensor(y);
    return NULL;
}

KERNEL(q_scale) {
    rt_tensor *x;
    TS_TRY(need_quantized(args[0], &x));
    outs[0] = rt_float(x->scale);
    return NULL;
}

KERNEL(q_zero_point) {
    rt_tensor *x;
    TS_TRY(need_quantized(args[0], &x));
    outs[0] = rt_int(x->zero_point);
    return NULL;
}

/* ---- packed parameters ---- */

static ts_status pack(const char *what, const rt_value *items, size_t count, rt_value *out) {
    rt_value tuple;
    TS_TRY(rt_tuple_make(count + 1, &tuple));
    ts_status status = rt_str_make(ts_str_of(what), &tuple.as.tuple->items[0]);
    if (status) {
        rt_release(tuple);
        return status;
    }
    for (size_t i = 0; i < count; i++)
        tuple.as.tuple->items[i + 1] = rt_retain(items[i]);
    return rt_packed_make(tuple, out);
}

KERNEL(quantized_linear_prepack) { return pack("linear", args, 2, outs); }
KERNEL(quantized_conv_prepack) { return pack("conv", args, 6, outs); }

KERNEL(quantized_linear_prepack_fp16) {
    rt_tensor *w, *half, *wide;
    TS_TRY(rt_need_tensor(args[0], &w));
    TS_TRY(rt_tensor_cast(w, RT_float16, true, &half));
    ts_status status = rt_tensor_cast(half, RT_float32, true, &wide);
    rt_tensor_release(half);
    TS_TRY(status);
    rt_value items[2] = {rt_from_tensor(wide), args[1]};
    status = pack("linear", items, 2, outs);
    rt_tensor_release(wide);
    return status;
}

static ts_status need_packed(rt_value v, const char *what, size_t count, const rt_tuple **out) {
    *out = rt_packed_tuple(v);
    if (!*out || (*out)->count != count || (*out)->items[0].tag != RT_TAG_STR ||
        !ts_str_is(rt_str_text((*out)->items[0].as.str), what))
        return ts_raise("RuntimeError", "expected packed parameters of a %s", what);
    return NULL;
}

KERNEL(quantized_unpack) {
    const rt_tuple *t = rt_packed_tuple(args[0]);
    if (!t || t->count < 3)
        return ts_raise("RuntimeError", "expected packed parameters");
    outs[0] = rt_retain(t->items[1]);
    outs[1] = rt_retain(t->items[2]);
    return NULL;
}

/* ---- layers ---- */

/* y = clamp(x at 0): in place, for the fused relu. */
static void relu_in_place(rt_tensor *t) {
    float *p = t->data;
    for (int64_t i = 0; i < t->element_count; i++)
        p[i] = p[i] > 0 || p[i] != p[i] ? p[i] : 0;
}

/* A float layer on floats; y is dense float32. */
static ts_status run_float(rt_context *context, rt_op op, rt_tensor *x, rt_value weight,
                           const rt_value *rest, size_t rest_count, rt_tensor **out) {
    rt_tensor *w, *wide = NULL;
    TS_TRY(rt_need_tensor(weight, &w));
    TS_TRY(to_floats(w, &wide));
    rt_value list[8] = {rt_from_tensor(x), rt_from_tensor(wide)};
    for (size_t i = 0; i < rest_count; i++)
        list[i + 2] = rest[i];
    rt_value y = rt_none();
    ts_status status = rt_op_get(op)->ref(context, list, &y);
    rt_tensor_release(wide);
    TS_TRY(status);
    status = rt_tensor_contiguous(y.as.tensor, out);
    rt_release(y);
    return status;
}

static ts_status requantize(rt_tensor *y, bool relu, rt_value scale, rt_value zero_point,
                            rt_dtype dtype, rt_value *out) {
    if (relu)
        relu_in_place(y);
    rt_tensor *q;
    ts_status status = to_integers(y, rt_as_double(scale), rt_as_int(zero_point), dtype, &q);
    rt_tensor_release(y);
    if (!status)
        *out = rt_from_tensor(q);
    return status;
}

static ts_status linear(rt_context *context, const rt_value *args, bool relu, rt_value *out) {
    rt_tensor *x, *floats, *y;
    const rt_tuple *p;
    TS_TRY(need_quantized(args[0], &x));
    TS_TRY(need_packed(args[1], "linear", 3, &p));
    TS_TRY(to_floats(x, &floats));
    ts_status status = run_float(context, OP_linear, floats, p->items[1], &p->items[2], 1, &y);
    rt_tensor_release(floats);
    TS_TRY(status);
    return requantize(y, relu, args[2], args[3], rt_dtype_of(x), out);
}

KERNEL(quantized_linear) { return linear(context, args, false, outs); }
KERNEL(quantized_linear_relu) { return linear(context, args, true, outs); }

static ts_status conv(rt_context *context, const rt_value *args, rt_value scale,
                      rt_value zero_point, bool relu, rt_value *out) {
    rt_tensor *x, *floats, *y;
    const rt_tuple *p;
    TS_TRY(need_quantized(args[0], &x));
    TS_TRY(need_packed(args[1], "conv", 7, &p));
    TS_TRY(to_floats(x, &floats));
    rt_op op = x->rank == 5 ? OP_conv3d : OP_conv2d;
    ts_status status = run_float(context, op, floats, p->items[1], &p->items[2], 5, &y);
    rt_tensor_release(floats);
    TS_TRY(status);
    return requantize(y, relu, scale, zero_point, rt_dtype_of(x), out);
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

static ts_status quantized_copy(rt_tensor *x, bool reduce_range, rt_tensor **out) {
    float low = 0, high = 0;
    rt_cursor c;
    for (rt_cursor_start(&c, x); c.left; rt_cursor_next(&c)) {
        float v = (float)rt_load_double(rt_dtype_of(x), c.data);
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    double scale;
    int64_t zero;
    choose(low, high, reduce_range, &scale, &zero);
    rt_tensor *q;
    TS_TRY(to_integers(x, scale, zero, RT_quint8, &q));
    ts_status status = to_floats(q, out);
    rt_tensor_release(q);
    return status;
}

static ts_status linear_dynamic(rt_context *context, rt_value input, rt_value packed,
                                bool reduce_range, bool relu, rt_tensor **out) {
    rt_tensor *x, *floats;
    const rt_tuple *p;
    TS_TRY(rt_need_tensor(input, &x));
    TS_TRY(need_packed(packed, "linear", 3, &p));
    TS_TRY(quantized_copy(x, reduce_range, &floats));
    ts_status status = run_float(context, OP_linear, floats, p->items[1], &p->items[2], 1, out);
    rt_tensor_release(floats);
    if (!status && relu)
        relu_in_place(*out);
    return status;
}

KERNEL(quantized_linear_dynamic) {
    rt_tensor *y;
    TS_TRY(linear_dynamic(context, args[0], args[1], args[2].as.i != 0, false, &y));
    outs[0] = rt_from_tensor(y);
    return NULL;
}

KERNEL(quantized_linear_relu_dynamic) {
    rt_tensor *y;
    TS_TRY(linear_dynamic(context, args[0], args[1], args[2].as.i != 0, true, &y));
    outs[0] = rt_from_tensor(y);
    return NULL;
}

KERNEL(quantized_linear_fp16) {
    rt_tensor *x, *y;
    const rt_tuple *p;
    TS_TRY(rt_need_tensor(args[0], &x));
    TS_TRY(need_packed(args[1], "linear", 3, &p));
    TS_TRY(run_float(context, OP_linear, x, p->items[1], &p->items[2], 1, &y));
    outs[0] = rt_from_tensor(y);
    return NULL;
}

/* ---- LSTM with dynamically quantized weights ---- */

typedef struct cell {
    rt_value ih, hh;
    bool reduce_range;
} cell;

static ts_status open_cell(rt_value v, cell *out) {
    const rt_tuple *p;
    TS_TRY(need_packed(v, "cell", 4, &p));
    *out = (cell){p->items[2], p->items[3], p->items[1].as.i != 0};
    return NULL;
}

static float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

/* One direction over time: x [T, B, I] dense; h, c [B, H] floats that are updated; y is written at
 * [t, b, offset ...] of rows of width `width`. */
static ts_status run_direction(rt_context *context, const cell *k, rt_tensor *x, float *h, float *c,
                               int64_t hidden, bool reverse, float *y, int64_t width,
                               int64_t offset) {
    int64_t steps = x->sizes[0], batch = x->sizes[1];
    rt_tensor *all, *state = NULL;
    TS_TRY(linear_dynamic(context, rt_from_tensor(x), k->ih, k->reduce_range, false, &all));
    int64_t state_sizes[2] = {batch, hidden};
    ts_status status = NULL;
    if (all->sizes[2] != 4 * hidden)
        status = ts_raise("RuntimeError", "quantized_lstm: gates do not fit the state");
    if (!status)
        status = rt_tensor_make(RT_float32, state_sizes, 2, &state);
    for (int64_t n = 0; n < steps && !status; n++) {
        int64_t t = reverse ? steps - 1 - n : n;
        memcpy(state->data, h, (size_t)(batch * hidden) * sizeof *h);
        rt_tensor *gates;
        status = linear_dynamic(context, rt_from_tensor(state), k->hh, k->reduce_range, false,
                                &gates);
        if (status)
            break;
        for (int64_t b = 0; b < batch; b++) {
            const float *g = (const float *)gates->data + b * 4 * hidden;
            const float *a = (const float *)all->data + (t * batch + b) * 4 * hidden;
            for (int64_t j = 0; j < hidden; j++) {
                float in = sigmoid(g[j] + a[j]), forget = sigmoid(g[hidden + j] + a[hidden + j]);
                float new = tanhf(g[2 * hidden + j] + a[2 * hidden + j]);
                float out = sigmoid(g[3 * hidden + j] + a[3 * hidden + j]);
                float *cell_state = &c[b * hidden + j];
                *cell_state = forget * *cell_state + in * new;
                h[b * hidden + j] = out * tanhf(*cell_state);
                y[(t * batch + b) * width + offset + j] = h[b * hidden + j];
            }
        }
        rt_tensor_release(gates);
    }
    rt_tensor_release(all);
    rt_tensor_release(state);
    return status;
}

static ts_status swap_batch(rt_tensor *x, rt_tensor **out) {
    int64_t sizes[3] = {x->sizes[1], x->sizes[0], x->sizes[2]};
    int64_t strides[3] = {x->strides[1], x->strides[0], x->strides[2]};
    rt_tensor *view;
    TS_TRY(rt_tensor_alias(x, 0, sizes, strides, 3, &view));
    ts_status status = rt_tensor_clone(view, out);
    rt_tensor_release(view);
    return status;
}

KERNEL(quantized_lstm) {
    rt_tensor *input, *h0, *c0, *x = NULL, *h = NULL, *c = NULL, *y = NULL;
    const rt_value *states, *cells;
    size_t state_count, cell_count;
    TS_TRY(rt_need_tensor(args[0], &input));
    rt_as_items(args[1], &states, &state_count);
    rt_as_items(args[2], &cells, &cell_count);
    int64_t layers = rt_as_int(args[4]), directions = args[7].as.i ? 2 : 1;
    bool batch_first = args[8].as.i != 0;
    if (state_count != 2 || input->rank != 3 || layers < 1 ||
        cell_count != (size_t)(layers * directions))
        return ts_raise("RuntimeError", "quantized_lstm: expected two states, an input of rank 3 "
                        "and a cell for each layer");
    TS_TRY(rt_need_tensor(states[0], &h0));
    TS_TRY(rt_need_tensor(states[1], &c0));
    ts_status status = batch_first ? swap_batch(input, &x) : rt_tensor_clone(input, &x);
    if (!status)
        status = rt_tensor_clone(h0, &h);
    if (!status)
        status = rt_tensor_clone(c0, &c);
    if (!status && (h->rank != 3 || c->rank != 3 || h->dtype != RT_float32 ||
                    c->dtype != RT_float32 || x->dtype != RT_float32 ||
                    h->sizes[0] != layers * directions || h->sizes[1] != x->sizes[1] ||
                    c->element_count != h->element_count))
        status = ts_raise("RuntimeError", "quantized_lstm: states do not fit the input");
    int64_t hidden = status ? 0 : h->sizes[2];
    for (int64_t layer = 0; layer < layers && !status; layer++) {
        int64_t width = directions * hidden, sizes[3] = {x->sizes[0], x->sizes[1], width};
        status = rt_tensor_make(RT_float32, sizes, 3, &y);
        for (int64_t d = 0; d < directions && !status; d++) {
            int64_t at = layer * directions + d, part = x->sizes[1] * hidden;
            cell k;
            status = open_cell(cells[at], &k);
            if (!status)
                status = run_direction(context, &k, x, (float *)h->data + at * part,
                                       (float *)c->data + at * part, hidden, d == 1, y->data,
                                       width, d * hidden);
        }
        rt_tensor_release(x);
        x = y;
        y = NULL;
    }
    if (!status && batch_first) {
        rt_tensor *back;
        status = swap_batch(x, &back);
        if (!status) {
            rt_tensor_release(x);
            x = back;
        }
    }
    if (status) {
        rt_tensor_release(x);
        rt_tensor_release(h);
        rt_tensor_release(c);
        return status;
    }
    outs[0] = rt_from_tensor(x);
    outs[1] = rt_from_tensor(h);
    outs[2] = rt_from_tensor(c);
    return NULL;
}

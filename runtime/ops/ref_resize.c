/* runtime/ops/ref_resize.c - the upsample family: nearest, linear, cubic, with and without
 * antialiasing.
 *
 * Each output position of a dimension is a weighted sum of input positions, so every mode is a
 * table of taps (resize_taps.c), and the dimensions are resized one after the other. */
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/contraction.h"
#include "runtime/ops/resize.h"

/* [outer][in][inner] -> [outer][out][inner] */
static void apply(const rt_resize_taps *t, const double *x, double *y, int64_t outer, int64_t in, int64_t out,
                  int64_t inner) {
    for (int64_t a = 0; a < outer && inner == 1; a++) /* the last dimension: no inner loop */
        for (int64_t o = 0; o < out; o++) {
            const double *weight = t->weight + o * t->width;
            const int64_t *index = t->index + o * t->width;
            double sum = 0;
            for (int64_t j = 0; j < t->width; j++)
                if (weight[j] != 0 || j == 0)
                    sum += weight[j] * x[a * in + index[j]];
            y[a * out + o] = sum;
        }
    for (int64_t a = 0; a < outer && inner != 1; a++)
        for (int64_t o = 0; o < out; o++) {
            double *to = y + (a * out + o) * inner;
            for (int64_t j = 0; j < t->width; j++) {
                double w = t->weight[o * t->width + j];
                if (w == 0 && j > 0) /* a tap beyond the table's end */
                    continue;
                const double *from = x + (a * in + t->index[o * t->width + j]) * inner;
                for (int64_t i = 0; i < inner; i++)
                    to[i] += w * from[i];
            }
        }
}

/* Images of bytes are resized as PyTorch does on a processor with vectors of 256 bits, which is
 * Pillow's way: weights are whole 16-bit multiples of 2^-bits, and each dimension rounds to bytes.
 * Taps on one element are one weight. */
static int weights_to_integers(rt_resize_taps *t, int64_t out) {
    double most = 0;
    for (int64_t o = 0; o < out; o++)
        for (int64_t j = 0; j < t->width; j++) {
            double *w = &t->weight[o * t->width + j];
            for (int64_t k = 0; k < j && *w != 0; k++)
                if (t->index[o * t->width + k] == t->index[o * t->width + j]) {
                    t->weight[o * t->width + k] += *w;
                    *w = 0;
                }
        }
    for (int64_t i = 0; i < out * t->width; i++)
        most = fmax(most, t->weight[i]);
    int bits = 0;
    while (bits < 22 && (int64_t)(0.5 + most * (double)(INT64_C(1) << (bits + 1))) < 1 << 15)
        bits++;
    for (int64_t i = 0; i < out * t->width; i++)
        t->weight[i] = round(t->weight[i] * (double)(1 << bits));
    return bits;
}

static void round_to_bytes(double *x, int64_t count, int bits) {
    for (int64_t i = 0; i < count; i++) {
        double v = floor((x[i] + (double)(1 << bits) / 2) / (double)(1 << bits));
        x[i] = v < 0 ? 0 : v > 255 ? 255 : v;
    }
}

/* PyTorch's kernels keep the weights of 16-bit images in their dtype, but for bilinear ones. */
static void round_weights(rt_resize_taps *t, rt_dtype dtype, bool is_linear, int64_t out) {
    for (int64_t i = 0; i < out * t->width; i++)
        t->weight[i] = (double)rt_round_short(dtype, (float)t->weight[i]);
    for (int64_t o = 0; o < out && is_linear; o++)
        t->weight[2 * o] = (double)rt_round_short(dtype, 1 - (float)t->weight[2 * o + 1]);
}

typedef struct request {
    rt_resize_filter filter;
    int dims;
    bool align;
    int64_t out[3];
    double scale[3]; /* 0: by the sizes */
} request;

static ts_status resize(const rt_tensor *x, const request *r, rt_value *result) {
    int64_t sizes[RT_MAX_RANK];
    if (x->rank != r->dims + 2)
        return ts_raise("RuntimeError", "It is expected input_size equals to %d, but got size %d",
                        r->dims + 2, x->rank);
    for (int i = 0; i < x->rank; i++)
        sizes[i] = x->sizes[i];
    if (rt_dtype_is_complex((rt_dtype)x->dtype))
        return rt_not_implemented("upsample", (rt_dtype)x->dtype);
    for (int i = 0; i < r->dims; i++)
        if (x->sizes[i + 2] <= 0 || r->out[i] <= 0)
            return ts_raise("RuntimeError",
                            "Input and output sizes should be greater than 0, but got input "
                            "(size: %lld) and output (size: %lld)",
                            (long long)x->sizes[i + 2], (long long)r->out[i]);
    rt_resize_taps tables[3] = {0};
    int bits[3] = {0};
    bool is_bytes = x->dtype == RT_uint8 && r->dims == 2 && r->filter >= RT_RESIZE_LINEAR;
    ts_status status = NULL;
    int64_t most = 1, volume_in = 1, volume_out = 1, planes = x->sizes[0] * x->sizes[1];
    for (int d = 0; d < r->dims && !status; d++) {
        int64_t in = sizes[d + 2], out = r->out[d];
        volume_in *= in;
        volume_out *= out;
        most *= in > out ? in : out;
        sizes[d + 2] = out;
        if (in == out && r->filter < RT_RESIZE_LINEAR_AA && (r->scale[d] <= 0 || r->scale[d] == 1))
            continue; /* every position is itself */
        rt_resize_taps *t = &tables[d];
        t->width = rt_resize_width(r->filter, in, out, r->align, r->scale[d]);
        t->index = calloc((size_t)(t->width * out), sizeof *t->index);
        t->weight = calloc((size_t)(t->width * out), sizeof *t->weight);
        if (t->index && t->weight)
            rt_resize_fill(t, r->filter, x->dtype == RT_float64, in, out, r->align, r->scale[d]);
        else
            status = ts_no_memory();
        bool is_linear = r->filter == RT_RESIZE_LINEAR;
        if (!status && rt_dtype_is_short((rt_dtype)x->dtype) && !(is_linear && r->dims == 2))
            round_weights(t, (rt_dtype)x->dtype, is_linear, out);
        if (is_bytes && !status)
            bits[d] = weights_to_integers(t, out);
    }
    rt_tensor *dense = NULL, *y = NULL;
    double *room = rt_new_doubles(2 * most);
    if (!status && !room)
        status = ts_no_memory();
    if (!status)
        status = rt_tensor_contiguous((rt_tensor *)(uintptr_t)x, &dense);
    if (!status)
        status = rt_tensor_make((rt_dtype)x->dtype, sizes, x->rank, &y);
    /* Plane by plane, so that what is between stays in the cache. */
    int64_t bytes = (int64_t)rt_dtype_size((rt_dtype)x->dtype);
    for (int64_t p = 0; p < planes && !status; p++) {
        double *from = room, *to = room + most;
        rt_load_block(RT_WORK_DOUBLE, (rt_dtype)x->dtype,
                      (const char *)dense->data + p * volume_in * bytes, bytes, volume_in, from);
        for (int i = 0; i < r->dims; i++) {
            int d = is_bytes ? 1 - i : i; /* bytes: rows first */
            int64_t outer = 1, inner = 1, in = x->sizes[d + 2];
            if (!tables[d].index)
                continue;
            for (int e = 0; e < d; e++)
                outer *= is_bytes ? x->sizes[e + 2] : r->out[e];
            for (int e = d + 1; e < r->dims; e++)
                inner *= is_bytes ? r->out[e] : x->sizes[e + 2];
            memset(to, 0, (size_t)(outer * r->out[d] * inner) * sizeof *to);
            apply(&tables[d], from, to, outer, in, r->out[d], inner);
            if (is_bytes)
                round_to_bytes(to, outer * r->out[d] * inner, bits[d]);
            double *swap = from;
            from = to;
            to = swap;
        }
        rt_store_block(RT_WORK_DOUBLE, (rt_dtype)x->dtype, (char *)y->data + p * volume_out * bytes,
                       bytes, volume_out, from);
    }
    for (int d = 0; d < 3; d++) {
        free(tables[d].index);
        free(tables[d].weight);
    }
    free(room);
    rt_tensor_release(dense);
    if (status)
        rt_tensor_release(y);
    else
        *result = rt_from_tensor(y);
    return status;
}

/* args: size, [align_corners], scales... */
static ts_status by_size(const rt_value *args, rt_resize_filter f, int dims, rt_value *out) {
    request r = {.filter = f, .dims = dims};
    int64_t list[RT_MAX_RANK];
    int count, at = 2;
    TS_TRY(rt_as_ints(args[1], list, &count));
    if (count != 1 && count != dims)
        return ts_raise("RuntimeError", "It is expected output_size equals to %d, but got size %d",
                        dims, count);
    if (f >= RT_RESIZE_LINEAR)
        r.align = args[at++].as.i != 0;
    for (int i = 0; i < dims; i++) {
        r.out[i] = list[count == 1 ? 0 : i];
        r.scale[i] = rt_is_none(args[at + i]) ? 0 : rt_as_double(args[at + i]);
    }
    return resize(args[0].as.tensor, &r, out);
}

/* args: size or None, [align_corners], scale factors or None */
static ts_status by_size_or_scale(const rt_value *args, rt_resize_filter f, int dims, rt_value *out) {
    request r = {.filter = f, .dims = dims};
    const rt_tensor *x = args[0].as.tensor;
    const rt_value *items;
    size_t count;
    rt_value scales = args[f >= RT_RESIZE_LINEAR ? 3 : 2];
    if (f >= RT_RESIZE_LINEAR)
        r.align = args[2].as.i != 0;
    if (rt_is_none(args[1]) == rt_is_none(scales))
        return ts_raise("RuntimeError", "Must specify exactly one of output_size and scale_factors");
    if (x->rank != dims + 2)
        return ts_raise("RuntimeError", "It is expected input_size equals to %d, but got size %d",
                        dims + 2, x->rank);
    rt_as_items(rt_is_none(scales) ? args[1] : scales, &items, &count);
    if ((int)count != dims && count != 1)
        return ts_raise("RuntimeError", "expected %d sizes or scale factors, found %zu", dims,
                        count);
    for (int i = 0; i < dims; i++) {
        rt_value item = items[count == 1 ? 0 : i];
        if (rt_is_none(scales)) {
            r.out[i] = rt_as_int(item);
        } else {
            r.scale[i] = rt_as_double(item);
            r.out[i] = (int64_t)floor((double)x->sizes[i + 2] * r.scale[i]);
        }
    }
    return resize(x, &r, out);
}

#define RESIZE(name, filter, dims)                                                                 \
    KERNEL(name) { return by_size(args, filter, dims, outs); }                                     \
    KERNEL(name##_vec) { return by_size_or_scale(args, filter, dims, outs); }
RESIZE(upsample_nearest1d, RT_RESIZE_NEAREST, 1)
RESIZE(upsample_nearest2d, RT_RESIZE_NEAREST, 2)
RESIZE(upsample_nearest3d, RT_RESIZE_NEAREST, 3)
RESIZE(upsample_exact1d, RT_RESIZE_NEAREST_EXACT, 1)
RESIZE(upsample_exact2d, RT_RESIZE_NEAREST_EXACT, 2)
RESIZE(upsample_exact3d, RT_RESIZE_NEAREST_EXACT, 3)
RESIZE(upsample_linear1d, RT_RESIZE_LINEAR, 1)
RESIZE(upsample_bilinear2d, RT_RESIZE_LINEAR, 2)
RESIZE(upsample_trilinear3d, RT_RESIZE_LINEAR, 3)
RESIZE(upsample_bicubic2d, RT_RESIZE_CUBIC, 2)
RESIZE(upsample_bilinear2d_aa, RT_RESIZE_LINEAR_AA, 2)
RESIZE(upsample_bicubic2d_aa, RT_RESIZE_CUBIC_AA, 2)
RESIZE(upsample_lanczos2d_aa, RT_RESIZE_LANCZOS_AA, 2)

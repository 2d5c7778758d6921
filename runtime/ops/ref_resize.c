/* runtime/ops/ref_resize.c - the upsample family: nearest, linear, cubic, with and without
 * antialiasing.
 *
 * Each output position of a dimension is a weighted sum of input positions, so every mode is a
 * table of taps, and the dimensions are resized one after the other. Source positions are computed
 * in float32 unless the tensor is float64, as PyTorch does, because rounding decides which element
 * is nearest. */
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/contraction.h"

typedef enum filter {
    FILTER_NEAREST,
    FILTER_NEAREST_EXACT,
    FILTER_LINEAR,
    FILTER_CUBIC,
    FILTER_LINEAR_AA,
    FILTER_CUBIC_AA,
    FILTER_LANCZOS_AA
} filter;

typedef struct taps {
    int64_t width; /* taps for each output position */
    int64_t *index;
    double *weight;
} taps;

static double cubic_near(double x, double a) { return ((a + 2) * x - (a + 3)) * x * x + 1; }
static double cubic_far(double x, double a) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; }

static double sinc(double x) {
    const double pi = 3.14159265358979323846;
    return x == 0 ? 1 : sin(pi * x) / (pi * x);
}

static double filter_weight(filter f, double x) {
    x = fabs(x);
    if (f == FILTER_LINEAR_AA)
        return x < 1 ? 1 - x : 0;
    if (f == FILTER_LANCZOS_AA)
        return x < 3 ? sinc(x) * sinc(x / 3) : 0;
    return x < 1 ? cubic_near(x, -0.5) : x < 2 ? cubic_far(x, -0.5) : 0;
}

/* Rounds where PyTorch's arithmetic would. */
static double in_type(bool is_double, double x) { return is_double ? x : (double)(float)x; }

/* scale: input positions per output position. */
static double scale_of(bool is_double, filter f, int64_t in, int64_t out, bool align, double given) {
    if (align && f != FILTER_NEAREST && f != FILTER_NEAREST_EXACT)
        return out > 1 ? in_type(is_double, (double)(in - 1) / (double)(out - 1)) : 0;
    if (given > 0)
        return in_type(is_double, 1 / given);
    return in_type(is_double, in_type(is_double, (double)in) / (double)out);
}

static int64_t clamp(int64_t x, int64_t low, int64_t high) {
    return x < low ? low : x > high ? high : x;
}

static void fill_taps(taps *t, filter f, bool is_double, int64_t in, int64_t out, bool align,
                      double given) {
    double scale = scale_of(is_double, f, in, out, align, given);
    for (int64_t o = 0; o < out; o++) {
        int64_t *index = t->index + o * t->width;
        double *weight = t->weight + o * t->width;
        if (f == FILTER_NEAREST || f == FILTER_NEAREST_EXACT) {
            double at = (double)o + (f == FILTER_NEAREST_EXACT ? 0.5 : 0);
            double s = in == out ? (double)o
                                 : (double)floorf((float)at * (float)scale);
            index[0] = clamp((int64_t)s, 0, in - 1);
            weight[0] = 1;
            continue;
        }
        if (f >= FILTER_LINEAR_AA) {
            double size = f == FILTER_LINEAR_AA ? 2 : f == FILTER_CUBIC_AA ? 4 : 6;
            double support = scale >= 1 ? size / 2 * scale : size / 2;
            double inverse = scale >= 1 ? 1 / scale : 1, center = scale * ((double)o + 0.5), sum = 0;
            int64_t low = clamp((int64_t)(center - support + 0.5), 0, in);
            int64_t count = clamp((int64_t)(center + support + 0.5), 0, in) - low;
            if (center - support + 0.5 < 0)
                low = 0, count = clamp((int64_t)(center + support + 0.5), 0, in);
            count = clamp(count, 0, t->width);
            for (int64_t j = 0; j < count; j++) {
                index[j] = low + j;
                weight[j] = filter_weight(f, ((double)(j + low) - center + 0.5) * inverse);
                sum += weight[j];
            }
            for (int64_t j = 0; j < count && sum != 0; j++)
                weight[j] /= sum;
            continue;
        }
        double s = align ? scale * (double)o
                         : in_type(is_double, scale * ((double)o + 0.5) - 0.5);
        s = in_type(is_double, s);
        if (f == FILTER_LINEAR && !align && s < 0)
            s = 0;
        double base = floor(s), x = s - base;
        int64_t first = (int64_t)base;
        if (f == FILTER_LINEAR) {
            first = clamp(first, 0, in - 1);
            index[0] = first;
            index[1] = clamp(first + 1, 0, in - 1);
            x = s - (double)first;
            x = x < 0 ? 0 : x > 1 ? 1 : x;
            weight[0] = 1 - x;
            weight[1] = x;
            continue;
        }
        for (int64_t j = 0; j < 4; j++)
            index[j] = clamp(first - 1 + j, 0, in - 1);
        weight[0] = cubic_far(x + 1, -0.75);
        weight[1] = cubic_near(x, -0.75);
        weight[2] = cubic_near(1 - x, -0.75);
        weight[3] = cubic_far(2 - x, -0.75);
    }
}

static int64_t tap_width(filter f, int64_t in, int64_t out, bool align, double given) {
    switch (f) {
    case FILTER_NEAREST:
    case FILTER_NEAREST_EXACT: return 1;
    case FILTER_LINEAR: return 2;
    case FILTER_CUBIC: return 4;
    case FILTER_LINEAR_AA:
    case FILTER_CUBIC_AA:
    case FILTER_LANCZOS_AA: break;
    }
    double size = f == FILTER_LINEAR_AA ? 2 : f == FILTER_CUBIC_AA ? 4 : 6;
    double scale = scale_of(true, f, in, out, align, given);
    double support = scale >= 1 ? size / 2 * scale : size / 2;
    return (int64_t)(ceil(support) * 2 + 3);
}

/* [outer][in][inner] -> [outer][out][inner] */
static void apply(const taps *t, const double *x, double *y, int64_t outer, int64_t in, int64_t out,
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

typedef struct request {
    filter filter;
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
    taps tables[3] = {0};
    ts_status status = NULL;
    int64_t most = 1, volume_in = 1, volume_out = 1, planes = x->sizes[0] * x->sizes[1];
    for (int d = 0; d < r->dims && !status; d++) {
        int64_t in = sizes[d + 2], out = r->out[d];
        volume_in *= in;
        volume_out *= out;
        most *= in > out ? in : out;
        sizes[d + 2] = out;
        if (in == out && r->filter < FILTER_LINEAR_AA && (r->scale[d] <= 0 || r->scale[d] == 1))
            continue; /* every position is itself */
        taps *t = &tables[d];
        t->width = tap_width(r->filter, in, out, r->align, r->scale[d]);
        t->index = calloc((size_t)(t->width * out), sizeof *t->index);
        t->weight = calloc((size_t)(t->width * out), sizeof *t->weight);
        if (t->index && t->weight)
            fill_taps(t, r->filter, x->dtype == RT_float64, in, out, r->align, r->scale[d]);
        else
            status = ts_no_memory();
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
        for (int d = 0; d < r->dims; d++) {
            int64_t outer = 1, inner = 1, in = x->sizes[d + 2];
            if (!tables[d].index)
                continue;
            for (int e = 0; e < d; e++)
                outer *= r->out[e];
            for (int e = d + 1; e < r->dims; e++)
                inner *= x->sizes[e + 2];
            memset(to, 0, (size_t)(outer * r->out[d] * inner) * sizeof *to);
            apply(&tables[d], from, to, outer, in, r->out[d], inner);
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
static ts_status by_size(const rt_value *args, filter f, int dims, rt_value *out) {
    request r = {.filter = f, .dims = dims};
    int64_t list[RT_MAX_RANK];
    int count, at = 2;
    TS_TRY(rt_as_ints(args[1], list, &count));
    if (count != 1 && count != dims)
        return ts_raise("RuntimeError", "It is expected output_size equals to %d, but got size %d",
                        dims, count);
    if (f >= FILTER_LINEAR)
        r.align = args[at++].as.i != 0;
    for (int i = 0; i < dims; i++) {
        r.out[i] = list[count == 1 ? 0 : i];
        r.scale[i] = rt_is_none(args[at + i]) ? 0 : rt_as_double(args[at + i]);
    }
    return resize(args[0].as.tensor, &r, out);
}

/* args: size or None, [align_corners], scale factors or None */
static ts_status by_size_or_scale(const rt_value *args, filter f, int dims, rt_value *out) {
    request r = {.filter = f, .dims = dims};
    const rt_tensor *x = args[0].as.tensor;
    const rt_value *items;
    size_t count;
    rt_value scales = args[f >= FILTER_LINEAR ? 3 : 2];
    if (f >= FILTER_LINEAR)
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
RESIZE(upsample_nearest1d, FILTER_NEAREST, 1)
RESIZE(upsample_nearest2d, FILTER_NEAREST, 2)
RESIZE(upsample_nearest3d, FILTER_NEAREST, 3)
RESIZE(upsample_exact1d, FILTER_NEAREST_EXACT, 1)
RESIZE(upsample_exact2d, FILTER_NEAREST_EXACT, 2)
RESIZE(upsample_exact3d, FILTER_NEAREST_EXACT, 3)
RESIZE(upsample_linear1d, FILTER_LINEAR, 1)
RESIZE(upsample_bilinear2d, FILTER_LINEAR, 2)
RESIZE(upsample_trilinear3d, FILTER_LINEAR, 3)
RESIZE(upsample_bicubic2d, FILTER_CUBIC, 2)
RESIZE(upsample_bilinear2d_aa, FILTER_LINEAR_AA, 2)
RESIZE(upsample_bicubic2d_aa, FILTER_CUBIC_AA, 2)
RESIZE(upsample_lanczos2d_aa, FILTER_LANCZOS_AA, 2)

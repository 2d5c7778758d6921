/* runtime/ops/ref_grid.c - sampling at the points of a grid, affine grids, pixel shuffles. */
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/contraction.h"

typedef enum sample_mode { SAMPLE_LINEAR, SAMPLE_NEAREST, SAMPLE_CUBIC } sample_mode;
typedef enum sample_padding { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION } sample_padding;

typedef struct sampler {
    sample_mode mode;
    sample_padding padding;
    bool align;
} sampler;

static double unnormalise(double x, int64_t n, bool align) {
    return align ? (x + 1) / 2 * (double)(n - 1) : ((x + 1) * (double)n - 1) / 2;
}

static double reflect(double x, int64_t twice_low, int64_t twice_high) {
    if (twice_low == twice_high)
        return 0;
    double low = (double)twice_low / 2, span = (double)(twice_high - twice_low) / 2;
    x = fabs(x - low);
    double extra = fmod(x, span);
    return (int64_t)floor(x / span) % 2 == 0 ? extra + low : span - extra + low;
}

static double clip(double x, int64_t n) {
    return x > 0 ? (x < (double)(n - 1) ? x : (double)(n - 1)) : 0; /* a NaN becomes 0 */
}

static double padded(double x, int64_t n, const sampler *s) {
    if (s->padding == PAD_BORDER)
        return clip(x, n);
    if (s->padding == PAD_REFLECTION) {
        x = s->align ? reflect(x, 0, 2 * (n - 1)) : reflect(x, -1, 2 * n - 1);
        return clip(x, n);
    }
    return x;
}

static double source(double x, int64_t n, const sampler *s) {
    return padded(unnormalise(x, n, s->align), n, s);
}

/* The element at whole positions; 0 outside. Positions may be far beyond int64. */
static double element(const double *plane, const int64_t *in, const double *at) {
    int64_t i[3];
    for (int d = 0; d < 3; d++) {
        if (!(at[d] >= 0 && at[d] < (double)in[d]))
            return 0;
        i[d] = (int64_t)at[d];
    }
    return plane[(i[0] * in[1] + i[1]) * in[2] + i[2]];
}

static double cubic_weight(double x) {
    const double a = -0.75;
    x = fabs(x);
    return x <= 1  ? ((a + 2) * x - (a + 3)) * x * x + 1
           : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
                   : 0;
}

/* point: x, y, z of the grid; in: depth, height, width. */
static double sample(const double *plane, const int64_t *in, int dims, const double *point,
                     const sampler *s) {
    double at[3] = {0, 0, 0}, sum = 0;
    for (int d = 0; d < dims; d++) {
        int64_t n = in[2 - d];
        at[2 - d] = s->mode == SAMPLE_CUBIC ? unnormalise(point[d], n, s->align)
                                            : source(point[d], n, s);
    }
    if (s->mode == SAMPLE_NEAREST) {
        for (int d = 0; d < 3; d++)
            at[d] = nearbyint(at[d]);
        return element(plane, in, at);
    }
    double base[3] = {floor(at[0]), floor(at[1]), floor(at[2])};
    if (s->mode == SAMPLE_CUBIC) {
        for (int i = -1; i <= 2; i++)
            for (int j = -1; j <= 2; j++) {
                double tap[3] = {0, padded(base[1] + i, in[1], s), padded(base[2] + j, in[2], s)};
                sum += element(plane, in, tap) * cubic_weight(at[1] - base[1] - i) *
                       cubic_weight(at[2] - base[2] - j);
            }
        return sum;
    }
    for (int corner = 0; corner < 8; corner++) {
        double tap[3], w = 1;
        for (int d = 0; d < 3; d++) {
            int up = corner >> d & 1;
            tap[d] = base[d] + up;
            w *= up ? at[d] - base[d] : 1 - (at[d] - base[d]);
        }
        if (dims == 2 && (corner & 1))
            continue;
        sum += element(plane, in, tap) * w;
    }
    return sum;
}

static ts_status grid_sample(const rt_value *args, int dims, rt_value *out) {
    const rt_tensor *x = args[0].as.tensor, *grid = args[1].as.tensor;
    sampler s = {(sample_mode)args[2].as.i, (sample_padding)args[3].as.i, args[4].as.i != 0};
    if (x->rank != dims + 2 || grid->rank != dims + 2 || x->sizes[0] != grid->sizes[0] ||
        grid->sizes[dims + 1] != dims)
        return ts_raise("RuntimeError",
                        "grid_sampler(): expected grid and input of %d dimensions, the same batch "
                        "size and a grid whose last dimension is %d",
                        dims + 2, dims);
    if (dims == 3 && s.mode == SAMPLE_CUBIC)
        return ts_raise("RuntimeError",
                        "grid_sampler(): bicubic interpolation only supports 4D input");
    int64_t in[3] = {1, 1, 1}, n = x->sizes[0], c = x->sizes[1], points = 1, sizes[RT_MAX_RANK];
    sizes[0] = n;
    sizes[1] = c;
    for (int d = 0; d < dims; d++) {
        in[3 - dims + d] = x->sizes[2 + d];
        points *= sizes[2 + d] = grid->sizes[1 + d];
        if (x->sizes[2 + d] <= 0)
            return ts_raise("RuntimeError", "grid_sampler(): expected input to have non-empty "
                                            "spatial dimensions");
    }
    double *data = NULL, *g = NULL, *y = rt_new_doubles(n * c * points);
    ts_status status = y ? rt_doubles(x, &data) : ts_no_memory();
    if (!status)
        status = rt_doubles(grid, &g);
    int64_t plane = in[0] * in[1] * in[2];
    for (int64_t b = 0; b < n && !status; b++)
        for (int64_t ch = 0; ch < c; ch++)
            for (int64_t p = 0; p < points; p++)
                y[(b * c + ch) * points + p] = sample(data + (b * c + ch) * plane, in, dims,
                                                      g + (b * points + p) * dims, &s);
    if (!status)
        status = rt_from_doubles(y, (rt_dtype)x->dtype, sizes, dims + 2, out);
    free(data);
    free(g);
    free(y);
    return status;
}

KERNEL(grid_sampler_2d) { return grid_sample(args, 2, outs); }
KERNEL(grid_sampler_3d) { return grid_sample(args, 3, outs); }
KERNEL(grid_sampler) { return grid_sample(args, args[0].as.tensor->rank == 5 ? 3 : 2, outs); }

static double base_point(int64_t i, int64_t n, bool align) {
    if (n <= 1)
        return 0;
    double x = -1 + 2 * (double)i / (double)(n - 1);
    return align ? x : x * (double)(n - 1) / (double)n;
}

KERNEL(affine_grid_generator) {
    const rt_tensor *theta = args[0].as.tensor;
    int64_t size[RT_MAX_RANK], out_sizes[5];
    int rank;
    bool align = args[2].as.i != 0;
    double *t;
    TS_TRY(rt_as_ints(args[1], size, &rank));
    int dims = rank - 2;
    if ((dims != 2 && dims != 3) || theta->rank != 3 || theta->sizes[0] != size[0] ||
        theta->sizes[1] != dims || theta->sizes[2] != dims + 1)
        return ts_raise("RuntimeError", "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) "
                                        "inputs and theta of [N, 2, 3] or [N, 3, 4]");
    int64_t n = size[0], points = 1, in[3] = {1, 1, 1};
    out_sizes[0] = n;
    for (int d = 0; d < dims; d++)
        points *= out_sizes[1 + d] = in[3 - dims + d] = size[2 + d];
    out_sizes[1 + dims] = dims;
    TS_TRY(rt_doubles(theta, &t));
    double *y = rt_new_doubles(n * points * dims);
    ts_status status = y ? NULL : ts_no_memory();
    for (int64_t i = 0; i < n * points && !status; i++) {
        int64_t p = i % points;
        double at[3] = {base_point(p % in[2], in[2], align),
                        base_point(p / in[2] % in[1], in[1], align),
                        base_point(p / (in[2] * in[1]), in[0], align)};
        for (int r = 0; r < dims; r++) {
            const double *row = t + (i / points * dims + r) * (dims + 1);
            double sum = row[dims];
            for (int d = 0; d < dims; d++)
                sum += row[d] * at[d];
            y[i * dims + r] = sum;
        }
    }
    if (!status)
        status = rt_from_doubles(y, (rt_dtype)theta->dtype, out_sizes, dims + 2, outs);
    free(t);
    free(y);
    return status;
}

/* Copies the view (sizes, strides) of x and calls it by other sizes of the same number. */
static ts_status rearranged(const rt_tensor *x, const int64_t *sizes, const int64_t *strides,
                            int rank, const int64_t *new_sizes, int new_rank, rt_value *out) {
    rt_tensor *view, *copy, *named;
    int64_t new_strides[RT_MAX_RANK];
    TS_TRY(rt_tensor_alias(x, 0, sizes, strides, rank, &view));
    ts_status status = rt_tensor_clone(view, &copy);
    rt_tensor_release(view);
    TS_TRY(status);
    if (!rt_tensor_is_contiguous(copy)) {
        rt_tensor *dense;
        status = rt_tensor_contiguous(copy, &dense);
        rt_tensor_release(copy);
        TS_TRY(status);
        copy = dense;
    }
    rt_contiguous_strides(new_sizes, new_rank, new_strides);
    status = rt_tensor_alias(copy, 0, new_sizes, new_strides, new_rank, &named);
    rt_tensor_release(copy);
    if (!status)
        *out = rt_from_tensor(named);
    return status;
}

static ts_status pixels(const rt_value *args, bool is_shuffle, rt_value *out) {
    const rt_tensor *x = args[0].as.tensor;
    int64_t r = args[1].as.i, sizes[RT_MAX_RANK], strides[RT_MAX_RANK], named[RT_MAX_RANK];
    int lead = x->rank - 3, at = 0;
    if (lead < 0)
        return ts_raise("RuntimeError", "pixel_%sshuffle expects input to have at least 3 "
                                        "dimensions, but got input with %d dimension(s)",
                        is_shuffle ? "" : "un", x->rank);
    if (r <= 0 || r > INT32_MAX) /* its square must fit */
        return ts_raise("RuntimeError", "pixel_%sshuffle expects a positive factor, but got %lld",
                        is_shuffle ? "" : "un", (long long)r);
    const int64_t *n = x->sizes + lead, *s = x->strides + lead;
    if (is_shuffle ? n[0] % (r * r) != 0 : n[1] % r != 0 || n[2] % r != 0)
        return ts_raise("RuntimeError",
                        "pixel_%sshuffle expects its input's sizes to be divisible by the factor, "
                        "but they are not by %lld",
                        is_shuffle ? "" : "un", (long long)r);
    for (; at < lead; at++) {
        named[at] = sizes[at] = x->sizes[at];
        strides[at] = x->strides[at];
    }
    if (is_shuffle) {
        int64_t c = n[0] / (r * r);
        int64_t z[5] = {c, n[1], r, n[2], r};
        int64_t t[5] = {s[0] * r * r, s[1], s[0] * r, s[2], s[0]};
        memcpy(sizes + at, z, sizeof z);
        memcpy(strides + at, t, sizeof t);
        named[at] = c;
        named[at + 1] = n[1] * r;
        named[at + 2] = n[2] * r;
    } else {
        int64_t z[5] = {n[0], r, r, n[1] / r, n[2] / r};
        int64_t t[5] = {s[0], s[1], s[2], s[1] * r, s[2] * r};
        memcpy(sizes + at, z, sizeof z);
        memcpy(strides + at, t, sizeof t);
        named[at] = n[0] * r * r;
        named[at + 1] = n[1] / r;
        named[at + 2] = n[2] / r;
    }
    return rearranged(x, sizes, strides, lead + 5, named, x->rank, out);
}

KERNEL(pixel_shuffle) { return pixels(args, true, outs); }
KERNEL(pixel_unshuffle) { return pixels(args, false, outs); }

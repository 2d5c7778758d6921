/* runtime/ops/ref_conv.c - convolutions and their transposes over one to three dimensions.
 *
 * Everything becomes three spatial dimensions. A tile of output positions is unfolded into columns
 * (im2col) and multiplied; the transpose multiplies first and adds the columns into the output. */
#include <stdlib.h>

#include "runtime/ops/contraction.h"

enum { SPATIAL = 3, TILE = 512 };

typedef struct conv {
    int dims; /* spatial, 1 to 3 */
    bool is_batched, transposed;
    int64_t batch, c_in, c_out, groups;
    int64_t in[SPATIAL], kernel[SPATIAL], out[SPATIAL];
    int64_t stride[SPATIAL], before[SPATIAL], after[SPATIAL], dilation[SPATIAL], extra[SPATIAL];
} conv;

/* A list of one or `dims` ints, right-aligned into three. */
static ts_status spatial(rt_value v, int dims, int64_t fill, const char *what, int64_t *out) {
    int64_t list[RT_MAX_RANK];
    int count;
    TS_TRY(rt_as_ints(v, list, &count));
    if (count != 1 && count != dims)
        return ts_raise("RuntimeError",
                        "expected %s to be a single integer value or a list of %d values to match "
                        "the convolution dimensions",
                        what, dims);
    for (int i = 0; i < SPATIAL; i++)
        out[i] = i < SPATIAL - dims ? fill : list[count == 1 ? 0 : i - (SPATIAL - dims)];
    return NULL;
}

/* padding: a list, or "same" / "valid". */
static ts_status set_padding(conv *c, rt_value padding) {
    if (padding.tag != RT_TAG_STR) {
        TS_TRY(spatial(padding, c->dims, 0, "padding", c->before));
        for (int i = 0; i < SPATIAL; i++) {
            if (c->before[i] < 0)
                return ts_raise("RuntimeError", "negative padding is not supported");
            c->after[i] = c->before[i];
        }
        return NULL;
    }
    if (rt_str_value_is(padding, "valid"))
        return NULL;
    if (!rt_str_value_is(padding, "same"))
        return ts_raise("RuntimeError", "Invalid padding string: '%.*s'",
                        TS_STR_ARG(rt_str_text(padding.as.str)));
    for (int i = 0; i < SPATIAL; i++) {
        if (c->stride[i] != 1)
            return ts_raise("RuntimeError", "padding='same' is not supported for strided convolutions");
        int64_t total = c->dilation[i] * (c->kernel[i] - 1);
        c->before[i] = total / 2;
        c->after[i] = total - total / 2;
    }
    return NULL;
}

static ts_status conv_init(conv *c, const rt_tensor *x, const rt_tensor *w, rt_value stride,
                           rt_value padding, rt_value dilation, rt_value output_padding,
                           bool transposed, int64_t groups) {
    *c = (conv){.dims = w->rank - 2, .groups = groups, .transposed = transposed};
    if (c->dims < 1 || c->dims > SPATIAL)
        return ts_raise("RuntimeError", "weight should have at least three dimensions");
    c->is_batched = x->rank == w->rank;
    if (!c->is_batched && x->rank != w->rank - 1)
        return ts_raise("RuntimeError",
                        "Expected %dD (unbatched) or %dD (batched) input to conv%s%dd, but got "
                        "input of rank %d",
                        w->rank - 1, w->rank, transposed ? "_transpose" : "", c->dims, x->rank);
    if (x->dtype != w->dtype)
        return ts_raise("RuntimeError", "Input type (%s) and bias type (%s) should be the same",
                        rt_dtype_name((rt_dtype)x->dtype), rt_dtype_name((rt_dtype)w->dtype));
    if (groups <= 0)
        return ts_raise("RuntimeError", "non-positive groups is not supported");
    int channel = c->is_batched;
    c->batch = c->is_batched ? x->sizes[0] : 1;
    c->c_in = x->sizes[channel];
    c->c_out = transposed ? w->sizes[1] * groups : w->sizes[0];
    int64_t expected = transposed ? w->sizes[0] : w->sizes[1] * groups;
    if (c->c_in != expected || (transposed ? c->c_in : c->c_out) % groups != 0)
        return ts_raise("RuntimeError",
                        "Given groups=%lld, weight of size with %lld channels, expected input to "
                        "have %lld channels, but got %lld channels instead",
                        (long long)groups, (long long)expected, (long long)expected,
                        (long long)c->c_in);
    if (c->c_out <= 0 && (transposed || c->c_in > 0))
        return ts_raise("RuntimeError",
                        "Given groups=%lld, expected weight to be at least 1 at dimension %d, but got "
                        "weight of size %lld instead",
                        (long long)groups, transposed, (long long)w->sizes[transposed]);
    TS_TRY(spatial(stride, c->dims, 1, "stride", c->stride));
    TS_TRY(spatial(dilation, c->dims, 1, "dilation", c->dilation));
    for (int i = 0; i < SPATIAL; i++) {
        int own = i - (SPATIAL - c->dims);
        c->in[i] = own < 0 ? 1 : x->sizes[channel + 1 + own];
        c->kernel[i] = own < 0 ? 1 : w->sizes[2 + own];
        if (c->kernel[i] <= 0)
            return ts_raise("RuntimeError", "kernel size should be greater than zero, but got %lld",
                            (long long)c->kernel[i]);
        if (transposed && c->in[i] <= 0)
            return ts_raise("RuntimeError", "Only zero batch or zero channel inputs are supported, but "
                                            "the input has a spatial size of 0");
        if (c->stride[i] <= 0)
            return ts_raise("RuntimeError", "non-positive stride is not supported");
        if (c->dilation[i] <= 0)
            return ts_raise("RuntimeError", "dilation should be greater than zero");
    }
    TS_TRY(set_padding(c, padding));
    if (transposed)
        TS_TRY(spatial(output_padding, c->dims, 0, "output_padding", c->extra));
    for (int i = 0; i < SPATIAL; i++) {
        int64_t reach = c->dilation[i] * (c->kernel[i] - 1) + 1;
        int64_t padded = c->in[i] + c->before[i] + c->after[i];
        if (transposed) {
            c->out[i] = (c->in[i] - 1) * c->stride[i] - 2 * c->before[i] + reach + c->extra[i];
            if (c->extra[i] && c->extra[i] >= c->stride[i] && c->extra[i] >= c->dilation[i])
                return ts_raise("RuntimeError",
                                "output padding must be smaller than either stride or dilation");
            if (c->out[i] < 0)
                return ts_raise("RuntimeError", "output size is negative");
            continue;
        }
        if (padded < reach)
            return ts_raise("RuntimeError",
                            "Calculated padded input size per channel: (%lld). Kernel size: (%lld). "
                            "Kernel size can't be greater than actual input size",
                            (long long)padded, (long long)c->kernel[i]);
        c->out[i] = (padded - reach) / c->stride[i] + 1;
    }
    return NULL;
}

static int64_t volume(const int64_t *s) { return s[0] * s[1] * s[2]; }

/* n elements, from_step apart at from, side by side at to. */
static void copy_run(int64_t size, char *to, const char *from, int64_t from_step, int64_t n) {
    if (from_step == 1) {
        memcpy(to, from, (size_t)(n * size));
    } else if (size == 4) {
        uint32_t *t = (uint32_t *)(void *)to;
        const uint32_t *f = (const uint32_t *)(const void *)from;
        for (int64_t i = 0; i < n; i++)
            t[i] = f[i * from_step];
    } else {
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * size, from + i * from_step * size, (size_t)size);
    }
}

static void add_run(rt_work work, char *to, int64_t to_step, const char *from, int64_t n) {
    switch (work) {
    case RT_WORK_FLOAT:
        for (int64_t i = 0; i < n; i++)
            ((float *)(void *)to)[i * to_step] += ((const float *)(const void *)from)[i];
        break;
    case RT_WORK_DOUBLE:
        for (int64_t i = 0; i < n; i++)
            ((double *)(void *)to)[i * to_step] += ((const double *)(const void *)from)[i];
        break;
    case RT_WORK_INT:
        for (int64_t i = 0; i < n; i++)
            ((uint64_t *)(void *)to)[i * to_step] += ((const uint64_t *)(const void *)from)[i];
        break;
    case RT_WORK_COMPLEX:
        for (int64_t i = 0; i < n; i++) {
            rt_complex128 *c = (rt_complex128 *)(void *)to + i * to_step;
            c->re += ((const rt_complex128 *)(const void *)from)[i].re;
            c->im += ((const rt_complex128 *)(const void *)from)[i].im;
        }
        break;
    }
}

/* Walks positions [first, first + count) of the grid `outer` (row-major) along one kernel tap, in
 * runs of one row each. Grid index o meets image index o * stride - before + tap * dilation.
 * `image` is the padded-away side; runs outside it are zero (unfold) or dropped (fold). */
static void tap_runs(const conv *c, const int64_t *outer, const int64_t *image, const int64_t *tap,
                     int64_t first, int64_t count, rt_work work, int64_t size, char *columns,
                     char *plane, bool fold) {
    int64_t w = first % outer[2], h = first / outer[2] % outer[1], d = first / (outer[2] * outer[1]);
    while (count > 0) {
        int64_t run = outer[2] - w < count ? outer[2] - w : count;
        int64_t y = h * c->stride[1] - c->before[1] + tap[1] * c->dilation[1];
        int64_t z = d * c->stride[0] - c->before[0] + tap[0] * c->dilation[0];
        int64_t x = w * c->stride[2] - c->before[2] + tap[2] * c->dilation[2], s = c->stride[2];
        /* lead: positions left of the image; then inside until the right edge. */
        int64_t lead = x < 0 ? (-x + s - 1) / s : 0;
        lead = lead > run ? run : lead;
        int64_t x0 = x + lead * s;
        int64_t inside = x0 < image[2] ? (image[2] - 1 - x0) / s + 1 : 0;
        inside = inside > run - lead ? run - lead : inside;
        if (y < 0 || y >= image[1] || z < 0 || z >= image[0])
            lead = run, inside = 0;
        char *at = plane + ((z * image[1] + y) * image[2] + x0) * size;
        if (fold) {
            if (inside > 0)
                add_run(work, at, s, columns + lead * size, inside);
        } else {
            memset(columns, 0, (size_t)(lead * size));
            if (inside > 0)
                copy_run(size, columns + lead * size, at, s, inside);
            memset(columns + (lead + inside) * size, 0, (size_t)((run - lead - inside) * size));
        }
        columns += run * size;
        count -= run;
        w = 0;
        if (++h == outer[1]) {
            h = 0;
            d++;
        }
    }
}

/* All taps of `channels` planes: rows of columns are [channel][tap]. */
static void all_taps(const conv *c, const int64_t *outer, const int64_t *image, int64_t channels,
                     int64_t first, int64_t count, rt_work work, int64_t size, char *columns,
                     char *planes, bool fold) {
    for (int64_t ch = 0; ch < channels; ch++)
        for (int64_t a = 0; a < c->kernel[0]; a++)
            for (int64_t b = 0; b < c->kernel[1]; b++)
                for (int64_t e = 0; e < c->kernel[2]; e++) {
                    tap_runs(c, outer, image, (int64_t[]){a, b, e}, first, count, work, size, columns,
                             planes + ch * volume(image) * size, fold);
                    columns += count * size;
                }
}

static bool is_pointwise(const conv *c) {
    for (int i = 0; i < SPATIAL; i++)
        if (c->kernel[i] != 1 || c->stride[i] != 1 || c->before[i] || c->after[i])
            return false;
    return true;
}

static ts_status forward(const conv *c, rt_operand *x, rt_operand *w, rt_sink *y) {
    int64_t l_in = volume(c->in), l_out = volume(c->out), taps = volume(c->kernel);
    int64_t ci = c->c_in / c->groups, co = c->c_out / c->groups, k = ci * taps, size = x->size;
    bool direct = is_pointwise(c);
    char *columns = direct ? NULL : malloc((size_t)(k * TILE * size) + 1);
    ts_status status = direct || columns ? NULL : ts_no_memory();
    for (int64_t n = 0; n < c->batch && !status; n++)
        for (int64_t g = 0; g < c->groups && !status; g++) {
            char *planes = x->data + (n * c->c_in + g * ci) * l_in * size;
            char *to = y->data + (n * c->c_out + g * co) * l_out * size;
            rt_matrix left = {w->data + g * co * k * size, k, 1};
            if (direct) {
                status = rt_gemm(y->work, co, l_out, k, left, (rt_matrix){planes, l_in, 1}, to,
                                 l_out, true);
                continue;
            }
            for (int64_t p = 0; p < l_out && !status; p += TILE) {
                int64_t count = l_out - p < TILE ? l_out - p : TILE;
                all_taps(c, c->out, c->in, ci, p, count, y->work, size, columns, planes, false);
                status = rt_gemm(y->work, co, count, k, left, (rt_matrix){columns, count, 1},
                                 to + p * size, l_out, true);
            }
        }
    free(columns);
    return status;
}

static ts_status backward(const conv *c, rt_operand *x, rt_operand *w, rt_sink *y) {
    int64_t l_in = volume(c->in), l_out = volume(c->out), taps = volume(c->kernel);
    int64_t ci = c->c_in / c->groups, co = c->c_out / c->groups, rows = co * taps, size = x->size;
    char *columns = malloc((size_t)(rows * TILE * size) + 1);
    ts_status status = columns ? NULL : ts_no_memory();
    for (int64_t n = 0; n < c->batch && !status; n++)
        for (int64_t g = 0; g < c->groups && !status; g++)
            for (int64_t p = 0; p < l_in && !status; p += TILE) {
                int64_t count = l_in - p < TILE ? l_in - p : TILE;
                rt_matrix left = {w->data + g * ci * rows * size, 1, rows};
                rt_matrix right = {x->data + ((n * c->c_in + g * ci) * l_in + p) * size, l_in, 1};
                status = rt_gemm(y->work, rows, count, ci, left, right, columns, count, false);
                if (!status)
                    all_taps(c, c->in, c->out, co, p, count, y->work, size, columns,
                             y->data + (n * c->c_out + g * co) * l_out * size, true);
            }
    free(columns);
    return status;
}

static ts_status add_bias(const conv *c, const rt_tensor *bias, rt_sink *y) {
    rt_operand b;
    int64_t l = volume(c->out);
    if (bias->rank != 1 || bias->sizes[0] != c->c_out || bias->dtype != y->tensor->dtype)
        return ts_raise("RuntimeError", "expected bias to be 1-dimensional with %lld elements",
                        (long long)c->c_out);
    TS_TRY(rt_operand_init(&b, bias, true));
    for (int64_t i = 0; i < c->batch * c->c_out; i++)
        for (int64_t p = 0; p < l; p++)
            memcpy(y->data + (i * l + p) * b.size, b.data + i % c->c_out * b.size, (size_t)b.size);
    rt_operand_deinit(&b);
    return NULL;
}

static ts_status convolve(const rt_value *args, rt_value stride, rt_value padding,
                          rt_value dilation, rt_value output_padding, bool transposed,
                          int64_t groups, rt_value *out) {
    const rt_tensor *x = args[0].as.tensor, *w = args[1].as.tensor;
    const rt_tensor *bias = rt_optional_tensor(args[2]);
    conv c;
    int64_t sizes[SPATIAL + 2];
    int rank = 0;
    rt_operand xo = {0}, wo = {0};
    rt_sink sink;
    TS_TRY(conv_init(&c, x, w, stride, padding, dilation, output_padding, transposed, groups));
    if (c.is_batched)
        sizes[rank++] = c.batch;
    sizes[rank++] = c.c_out;
    for (int i = SPATIAL - c.dims; i < SPATIAL; i++)
        sizes[rank++] = c.out[i];
    TS_TRY(rt_sink_init(&sink, (rt_dtype)x->dtype, sizes, rank));
    ts_status status = bias ? add_bias(&c, bias, &sink) : NULL;
    if (!status)
        status = rt_operand_init(&xo, x, true);
    if (!status)
        status = rt_operand_init(&wo, w, true);
    if (!status)
        status = transposed ? backward(&c, &xo, &wo, &sink) : forward(&c, &xo, &wo, &sink);
    rt_operand_deinit(&xo);
    rt_operand_deinit(&wo);
    if (status)
        rt_sink_deinit(&sink);
    else
        rt_sink_finish(&sink, out);
    return status;
}

static ts_status of_rank(const rt_value *args, int dims) {
    if (args[1].as.tensor->rank != dims + 2)
        return ts_raise("RuntimeError", "expected a weight of %d dimensions, found %d", dims + 2,
                        args[1].as.tensor->rank);
    return NULL;
}

/* conv*d, also its overload with a padding string. */
#define CONV(dims)                                                                                 \
    KERNEL(conv##dims##d) {                                                                        \
        TS_TRY(of_rank(args, dims));                                                               \
        return convolve(args, args[3], args[4], args[5], rt_int(0), false, args[6].as.i, outs);    \
    }                                                                                              \
    KERNEL(conv_transpose##dims##d) {                                                              \
        TS_TRY(of_rank(args, dims));                                                               \
        return convolve(args, args[3], args[4], args[7], args[5], true, args[6].as.i, outs);       \
    }
CONV(1)
CONV(2)
CONV(3)

KERNEL(convolution) { /* also _convolution, whose further flags choose a library */
    return convolve(args, args[3], args[4], args[5], args[7], args[6].as.i != 0, args[8].as.i,
                    outs);
}

KERNEL(convolution_mode) {
    return convolve(args, args[3], args[4], args[5], rt_int(0), false, args[6].as.i, outs);
}

/* ---- im2col, col2im ---- */

static ts_status window(const rt_value *args, conv *c) { /* kernel, dilation, padding, stride */
    *c = (conv){.dims = 2};
    TS_TRY(spatial(args[0], 2, 1, "kernel_size", c->kernel));
    TS_TRY(spatial(args[1], 2, 1, "dilation", c->dilation));
    TS_TRY(spatial(args[2], 2, 0, "padding", c->before));
    TS_TRY(spatial(args[3], 2, 1, "stride", c->stride));
    for (int i = 0; i < SPATIAL; i++)
        if (c->kernel[i] <= 0 || c->dilation[i] <= 0 || c->before[i] < 0 || c->stride[i] <= 0 ||
            c->kernel[i] > INT32_MAX || c->dilation[i] > INT32_MAX || c->before[i] > INT32_MAX)
            return ts_raise("RuntimeError", "kernel size, dilation and stride should be greater "
                                            "than zero, padding non-negative");
    return NULL;
}

static ts_status window_count(conv *c) {
    for (int i = 0; i < SPATIAL; i++) {
        int64_t span = c->in[i] + 2 * c->before[i] - c->dilation[i] * (c->kernel[i] - 1) - 1;
        c->out[i] = span < 0 ? 0 : span / c->stride[i] + 1;
        if (c->out[i] <= 0)
            return ts_raise("RuntimeError", "the calculated shape of the array of sliding blocks is "
                                            "empty, but its components must be at least one");
    }
    return NULL;
}

KERNEL(im2col) {
    const rt_tensor *x = args[0].as.tensor;
    conv c;
    rt_operand o;
    rt_sink y;
    TS_TRY(window(args + 1, &c));
    if (x->rank != 3 && x->rank != 4)
        return ts_raise("RuntimeError", "Expected 3D or 4D (batch mode) tensor for input");
    c.is_batched = x->rank == 4;
    c.batch = c.is_batched ? x->sizes[0] : 1;
    c.c_in = x->sizes[c.is_batched];
    c.in[0] = 1;
    c.in[1] = x->sizes[x->rank - 2];
    c.in[2] = x->sizes[x->rank - 1];
    TS_TRY(window_count(&c));
    int64_t rows = c.c_in * volume(c.kernel), l = volume(c.out), sizes[3] = {c.batch, rows, l};
    TS_TRY(rt_sink_init(&y, (rt_dtype)x->dtype, sizes + !c.is_batched, 2 + c.is_batched));
    ts_status status = rt_operand_init(&o, x, true);
    for (int64_t n = 0; n < c.batch && !status; n++)
        all_taps(&c, c.out, c.in, c.c_in, 0, l, y.work, o.size, y.data + n * rows * l * o.size,
                 o.data + n * c.c_in * volume(c.in) * o.size, false);
    if (status) {
        rt_sink_deinit(&y);
        return status;
    }
    rt_operand_deinit(&o);
    rt_sink_finish(&y, outs);
    return NULL;
}

KERNEL(col2im) {
    const rt_tensor *x = args[0].as.tensor;
    conv c;
    rt_operand o;
    rt_sink y;
    TS_TRY(window(args + 2, &c));
    TS_TRY(spatial(args[1], 2, 1, "output_size", c.in));
    if (x->rank != 2 && x->rank != 3)
        return ts_raise("RuntimeError", "Expected 2D or 3D (batch mode) tensor for input");
    TS_TRY(window_count(&c));
    c.is_batched = x->rank == 3;
    c.batch = c.is_batched ? x->sizes[0] : 1;
    int64_t rows = x->sizes[x->rank - 2], l = volume(c.out);
    if (rows % volume(c.kernel) != 0 || x->sizes[x->rank - 1] != l)
        return ts_raise("RuntimeError",
                        "expected size of input's dimension %d to match the calculated number of "
                        "sliding blocks %lld, but got %lld",
                        x->rank - 1, (long long)l, (long long)x->sizes[x->rank - 1]);
    c.c_in = rows / volume(c.kernel);
    int64_t sizes[4] = {c.batch, c.c_in, c.in[1], c.in[2]};
    TS_TRY(rt_sink_init(&y, (rt_dtype)x->dtype, sizes + !c.is_batched, 3 + c.is_batched));
    ts_status status = rt_operand_init(&o, x, true);
    for (int64_t n = 0; n < c.batch && !status; n++)
        all_taps(&c, c.out, c.in, c.c_in, 0, l, y.work, o.size, o.data + n * rows * l * o.size,
                 y.data + n * c.c_in * volume(c.in) * o.size, true);
    if (status) {
        rt_sink_deinit(&y);
        return status;
    }
    rt_operand_deinit(&o);
    rt_sink_finish(&y, outs);
    return NULL;
}

/* runtime/ops/ref_pool.c - pooling over one to three dimensions, on doubles.
 *
 * A tensor is seen as planes of three spatial dimensions; leading ones that are missing have size
 * 1. Indices count inside a plane, as PyTorch's do. */
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/contraction.h"

enum { SPATIAL = 3 };

typedef struct pool {
    int dims;
    int64_t planes;
    int64_t in[SPATIAL], out[SPATIAL], kernel[SPATIAL], stride[SPATIAL], padding[SPATIAL],
        dilation[SPATIAL];
    int64_t sizes[RT_MAX_RANK]; /* of the result */
    int rank;
} pool;

static int64_t volume(const int64_t *s) { return s[0] * s[1] * s[2]; }

static ts_status spatial(rt_value v, int dims, int64_t fill, int64_t *out) {
    int64_t list[RT_MAX_RANK];
    int count;
    TS_TRY(rt_as_ints(v, list, &count));
    if (count != 1 && count != dims)
        return ts_raise("RuntimeError",
                        "expected a single int, or a tuple of %d ints for a pooling argument", dims);
    for (int i = 0; i < SPATIAL; i++)
        out[i] = i < SPATIAL - dims ? fill : list[count == 1 ? 0 : i - (SPATIAL - dims)];
    return NULL;
}

static ts_status plane_init(pool *p, const rt_tensor *x, int dims) {
    *p = (pool){.dims = dims, .planes = 1, .rank = x->rank};
    if (x->rank != dims + 1 && x->rank != dims + 2)
        return ts_raise("RuntimeError", "Expected %dD or %dD (batch mode) tensor for input, got %dD",
                        dims + 1, dims + 2, x->rank);
    for (int i = 0; i < x->rank - dims; i++) {
        p->sizes[i] = x->sizes[i];
        p->planes *= x->sizes[i];
    }
    for (int i = 0; i < SPATIAL; i++)
        p->in[i] = i < SPATIAL - dims ? 1 : x->sizes[x->rank - SPATIAL + i];
    return NULL;
}

/* A batch may be empty, nothing else. */
static ts_status check_not_empty(const rt_tensor *x, int dims) {
    for (int i = x->rank == dims + 2; i < x->rank; i++)
        if (!x->sizes[i])
            return ts_raise(
                "RuntimeError",
                "Expected %dD or %dD (batch mode) tensor with optional 0 dim batch size for "
                "input, but got size 0 in dimension %d",
                dims + 1, dims + 2, i);
    return NULL;
}

static void set_result_sizes(pool *p) {
    for (int i = 0; i < p->dims; i++)
        p->sizes[p->rank - p->dims + i] = p->out[SPATIAL - p->dims + i];
}

static ts_status pool_init(pool *p, const rt_tensor *x, int dims, rt_value kernel, rt_value stride,
                           rt_value padding, rt_value dilation, bool ceil_mode) {
    const rt_value *items;
    size_t count;
    TS_TRY(plane_init(p, x, dims));
    TS_TRY(check_not_empty(x, dims));
    TS_TRY(spatial(kernel, dims, 1, p->kernel));
    rt_as_items(stride, &items, &count);
    bool has_stride = !rt_is_none(stride) && !(stride.tag == RT_TAG_LIST && count == 0);
    TS_TRY(spatial(has_stride ? stride : kernel, dims, 1, p->stride));
    TS_TRY(spatial(padding, dims, 0, p->padding));
    TS_TRY(spatial(dilation, dims, 1, p->dilation));
    for (int i = 0; i < SPATIAL; i++) {
        if (p->kernel[i] <= 0)
            return ts_raise("RuntimeError", "kernel size should be greater than zero, but got %lld",
                            (long long)p->kernel[i]);
        if (p->stride[i] <= 0)
            return ts_raise("RuntimeError", "stride should not be zero");
        if (p->dilation[i] <= 0)
            return ts_raise("RuntimeError", "dilation should be greater than zero");
        int64_t reach = (p->kernel[i] - 1) * p->dilation[i] + 1;
        if (p->padding[i] < 0 || p->padding[i] > reach / 2)
            return ts_raise("RuntimeError",
                            "pad should be at most half of effective kernel size, but got pad=%lld, "
                            "kernel_size=%lld and dilation=%lld",
                            (long long)p->padding[i], (long long)p->kernel[i],
                            (long long)p->dilation[i]);
        int64_t span = p->in[i] + 2 * p->padding[i] - reach;
        if (ceil_mode)
            span += p->stride[i] - 1;
        int64_t n = span < 0 ? (span + 1) / p->stride[i] : span / p->stride[i] + 1;
        if (ceil_mode && (n - 1) * p->stride[i] >= p->in[i] + p->padding[i])
            n--;
        if (n < 1)
            return ts_raise("RuntimeError",
                            "Given input size: (%lldx%lldx%lld). Calculated output size is too small",
                            (long long)p->in[0], (long long)p->in[1], (long long)p->in[2]);
        p->out[i] = n;
    }
    set_result_sizes(p);
    return NULL;
}

/* Position of output o: the window's first index and what lies past its last, inside the image. */
static void window_max(const double *plane, const pool *p, int64_t z0, int64_t y0, int64_t x0,
                       double *out, int64_t *out_index) {
    double best = -INFINITY;
    int64_t at = -1;
    for (int64_t a = 0; a < p->kernel[0]; a++) {
        int64_t z = z0 + a * p->dilation[0];
        if (z < 0 || z >= p->in[0])
            continue;
        for (int64_t b = 0; b < p->kernel[1]; b++) {
            int64_t y = y0 + b * p->dilation[1];
            if (y < 0 || y >= p->in[1])
                continue;
            int64_t row = (z * p->in[1] + y) * p->in[2];
            for (int64_t c = 0; c < p->kernel[2]; c++) {
                int64_t x = x0 + c * p->dilation[2];
                if (x < 0 || x >= p->in[2])
                    continue;
                double v = plane[row + x];
                if (at < 0 || v > best || isnan(v)) {
                    best = v;
                    at = row + x;
                }
            }
        }
    }
    *out = best;
    *out_index = at < 0 ? 0 : at;
}

static ts_status give(const pool *p, rt_dtype dtype, double *values, int64_t *indices,
                      rt_value *outs) {
    TS_TRY(rt_from_doubles(values, dtype, p->sizes, p->rank, &outs[0]));
    if (!indices)
        return NULL;
    ts_status status = rt_from_ints(indices, p->sizes, p->rank, &outs[1]);
    if (status)
        rt_release(outs[0]);
    return status;
}

static ts_status max_pool(const rt_value *args, int dims, bool with_indices, rt_value *outs) {
    const rt_tensor *x = args[0].as.tensor;
    pool p;
    double *in;
    TS_TRY(pool_init(&p, x, dims, args[1], args[2], args[3], args[4], args[5].as.i != 0));
    TS_TRY(rt_doubles(x, &in));
    int64_t l_in = volume(p.in), l_out = volume(p.out), at = 0;
    double *out = rt_new_doubles(p.planes * l_out);
    int64_t *indices = calloc((size_t)(p.planes * l_out) + 1, sizeof *indices);
    ts_status status = out && indices ? NULL : ts_no_memory();
    for (int64_t n = 0; n < p.planes && !status; n++)
        for (int64_t z = 0; z < p.out[0]; z++)
            for (int64_t y = 0; y < p.out[1]; y++)
                for (int64_t w = 0; w < p.out[2]; w++, at++)
                    window_max(in + n * l_in, &p, z * p.stride[0] - p.padding[0],
                               y * p.stride[1] - p.padding[1], w * p.stride[2] - p.padding[2],
                               &out[at], &indices[at]);
    if (!status)
        status = give(&p, (rt_dtype)x->dtype, out, with_indices ? indices : NULL, outs);
    free(in);
    free(out);
    free(indices);
    return status;
}

KERNEL(max_pool1d) { return max_pool(args, 1, false, outs); }
KERNEL(max_pool2d) { return max_pool(args, 2, false, outs); }
KERNEL(max_pool3d) { return max_pool(args, 3, false, outs); }
KERNEL(max_pool1d_with_indices) { return max_pool(args, 1, true, outs); }
KERNEL(max_pool2d_with_indices) { return max_pool(args, 2, true, outs); }
KERNEL(max_pool3d_with_indices) { return max_pool(args, 3, true, outs); }

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static ts_status avg_pool(const rt_value *args, int dims, rt_value *outs) {
    const rt_tensor *x = args[0].as.tensor;
    pool p;
    double *in;
    bool count_padding = args[5].as.i != 0;
    int64_t divisor = dims > 1 && !rt_is_none(args[6]) ? args[6].as.i : 0;
    if (dims > 1 && !rt_is_none(args[6]) && divisor == 0)
        return ts_raise("RuntimeError", "divisor must be not zero");
    TS_TRY(pool_init(&p, x, dims, args[1], args[2], args[3], rt_int(1), args[4].as.i != 0));
    TS_TRY(rt_doubles(x, &in));
    int64_t l_in = volume(p.in), l_out = volume(p.out), at = 0;
    double *out = rt_new_doubles(p.planes * l_out);
    ts_status status = out ? NULL : ts_no_memory();
    for (int64_t n = 0; n < p.planes * l_out && !status; n++, at++) {
        int64_t o[SPATIAL] = {at % l_out / (p.out[1] * p.out[2]), at / p.out[2] % p.out[1],
                              at % p.out[2]};
        int64_t low[SPATIAL], high[SPATIAL], padded = 1, real = 1;
        for (int i = 0; i < SPATIAL; i++) {
            low[i] = o[i] * p.stride[i] - p.padding[i];
            high[i] = least(low[i] + p.kernel[i], p.in[i] + p.padding[i]);
            padded *= high[i] - low[i];
            low[i] = most(low[i], 0);
            high[i] = least(high[i], p.in[i]);
            real *= most(high[i] - low[i], 0);
        }
        double sum = 0;
        const double *plane = in + at / l_out * l_in;
        for (int64_t z = low[0]; z < high[0]; z++)
            for (int64_t y = low[1]; y < high[1]; y++)
                for (int64_t w = low[2]; w < high[2]; w++)
                    sum += plane[(z * p.in[1] + y) * p.in[2] + w];
        out[at] = real ? sum / (double)(divisor ? divisor : count_padding ? padded : real) : 0;
    }
    if (!status)
        status = give(&p, (rt_dtype)x->dtype, out, NULL, outs);
    free(in);
    free(out);
    return status;
}

KERNEL(avg_pool1d) { return avg_pool(args, 1, outs); }
KERNEL(avg_pool2d) { return avg_pool(args, 2, outs); }
KERNEL(avg_pool3d) { return avg_pool(args, 3, outs); }

static ts_status adaptive(const rt_value *args, int dims, bool is_max, rt_value *outs) {
    const rt_tensor *x = args[0].as.tensor;
    pool p;
    double *in;
    int64_t list[RT_MAX_RANK];
    int count;
    TS_TRY(plane_init(&p, x, dims));
    TS_TRY(rt_as_ints(args[1], list, &count));
    if (count != 1 && count != dims)
        return ts_raise("RuntimeError", "adaptive pooling: output_size must be %d", dims);
    for (int i = 0; i < SPATIAL; i++) {
        p.out[i] = i < SPATIAL - dims ? 1 : list[count == 1 ? 0 : i - (SPATIAL - dims)];
        if (p.out[i] < 0)
            return ts_raise("RuntimeError",
                            "adaptive pooling: elements of output_size must be greater than or "
                            "equal to 0");
    }
    set_result_sizes(&p);
    TS_TRY(rt_doubles(x, &in));
    int64_t l_in = volume(p.in), l_out = volume(p.out);
    double *out = rt_new_doubles(p.planes * l_out);
    int64_t *indices = calloc((size_t)(p.planes * l_out) + 1, sizeof *indices);
    ts_status status = out && indices ? NULL : ts_no_memory();
    for (int64_t at = 0; at < p.planes * l_out && !status; at++) {
        int64_t o[SPATIAL] = {at % l_out / (p.out[1] * p.out[2]), at / p.out[2] % p.out[1],
                              at % p.out[2]};
        int64_t low[SPATIAL];
        for (int i = 0; i < SPATIAL; i++) {
            low[i] = o[i] * p.in[i] / p.out[i];
            p.kernel[i] = ((o[i] + 1) * p.in[i] + p.out[i] - 1) / p.out[i] - low[i];
            p.dilation[i] = 1;
        }
        const double *plane = in + at / l_out * l_in;
        if (is_max) {
            window_max(plane, &p, low[0], low[1], low[2], &out[at], &indices[at]);
            continue;
        }
        double sum = 0;
        /* PyTorch's sum of 16-bit floats is one of them here; one window is its mean operator. */
        bool is_rounded = dims == 3 && l_out > 1 && rt_dtype_is_short((rt_dtype)x->dtype);
        for (int64_t z = low[0]; z < low[0] + p.kernel[0]; z++)
            for (int64_t y = low[1]; y < low[1] + p.kernel[1]; y++)
                for (int64_t w = low[2]; w < low[2] + p.kernel[2]; w++) {
                    sum += plane[(z * p.in[1] + y) * p.in[2] + w];
                    if (is_rounded)
                        sum = (double)rt_round_short((rt_dtype)x->dtype, (float)sum);
                }
        out[at] = sum / (double)volume(p.kernel);
    }
    if (!status)
        status = give(&p, (rt_dtype)x->dtype, out, is_max ? indices : NULL, outs);
    free(in);
    free(out);
    free(indices);
    return status;
}

KERNEL(adaptive_avg_pool1d) { return adaptive(args, 1, false, outs); }
KERNEL(adaptive_avg_pool2d) { return adaptive(args, 2, false, outs); }
KERNEL(adaptive_avg_pool3d) { return adaptive(args, 3, false, outs); }
KERNEL(adaptive_max_pool1d) { return adaptive(args, 1, true, outs); }
KERNEL(adaptive_max_pool2d) { return adaptive(args, 2, true, outs); }
KERNEL(adaptive_max_pool3d) { return adaptive(args, 3, true, outs); }

static ts_status max_unpool(const rt_value *args, int dims, rt_value *outs) {
    const rt_tensor *x = args[0].as.tensor, *index = args[1].as.tensor;
    pool p;
    double *in;
    rt_tensor *ids = NULL;
    TS_TRY(plane_init(&p, x, dims));
    TS_TRY(spatial(args[2], dims, 1, p.out));
    set_result_sizes(&p);
    if (index->dtype != RT_int64)
        return ts_raise("RuntimeError", "elements in indices should be type int64 but got: %s",
                        rt_dtype_message_name((rt_dtype)index->dtype));
    if (index->element_count != x->element_count)
        return ts_raise("RuntimeError",
                        "Expected shape of indices to be same as that of the input tensor");
    TS_TRY(rt_doubles(x, &in));
    int64_t l_in = volume(p.in), l_out = volume(p.out);
    double *out = rt_new_doubles(p.planes * l_out);
    ts_status status = out ? rt_tensor_contiguous(args[1].as.tensor, &ids) : ts_no_memory();
    for (int64_t at = 0; at < p.planes * l_in && !status; at++) {
        int64_t i = ((const int64_t *)ids->data)[at];
        if (i < 0 || i >= l_out)
            status = ts_raise("RuntimeError",
                              "Found an invalid max index: %lld (output volumes are of size %lld)",
                              (long long)i, (long long)l_out);
        else
            out[at / l_in * l_out + i] = in[at];
    }
    if (!status)
        status = give(&p, (rt_dtype)x->dtype, out, NULL, outs);
    rt_tensor_release(ids);
    free(in);
    free(out);
    return status;
}

KERNEL(max_unpool2d) { return max_unpool(args, 2, outs); }
KERNEL(max_unpool3d) { return max_unpool(args, 3, outs); }

/* Each output's gradient goes to the element it came from. */
static ts_status max_pool_backward(const rt_value *args, int dims, rt_value *outs) {
    const rt_tensor *x = args[1].as.tensor, *index = args[7].as.tensor;
    double *grad = NULL;
    rt_tensor *ids = NULL;
    pool p;
    TS_TRY(plane_init(&p, x, dims));
    int64_t l_in = volume(p.in), count = args[0].as.tensor->element_count;
    int64_t l_out = p.planes ? count / p.planes : 0;
    if (index->element_count != count || index->dtype != RT_int64 || l_out * p.planes != count)
        return ts_raise("RuntimeError", "expected indices of grad_output's shape");
    double *out = rt_new_doubles(p.planes * l_in);
    ts_status status = out ? rt_doubles(args[0].as.tensor, &grad) : ts_no_memory();
    if (!status)
        status = rt_tensor_contiguous(args[7].as.tensor, &ids);
    for (int64_t at = 0; at < count && !status; at++) {
        int64_t i = ((const int64_t *)ids->data)[at];
        if (i < 0 || i >= l_in)
            status = ts_raise("RuntimeError", "found an invalid max index %lld", (long long)i);
        else
            out[at / l_out * l_in + i] += grad[at];
    }
    if (!status)
        status = rt_from_doubles(out, (rt_dtype)x->dtype, x->sizes, x->rank, outs);
    rt_tensor_release(ids);
    free(grad);
    free(out);
    return status;
}

KERNEL(max_pool2d_backward) { return max_pool_backward(args, 2, outs); }
KERNEL(max_pool3d_backward) { return max_pool_backward(args, 3, outs); }

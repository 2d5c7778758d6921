/* runtime/ops/ref_lane.c - kernels along one dimension: softmax, scans, order statistics. */
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/pointwise.h"
#include "runtime/ops/reduce.h"

#define INF ((double)INFINITY)

static rt_work lane_work(rt_dtype dtype) {
    rt_work work = rt_work_of(dtype);
    return work == RT_WORK_FLOAT ? RT_WORK_DOUBLE : work;
}

static ts_status along(rt_value self, rt_value dim_value, rt_dtype dtype, rt_lane_function function,
                       rt_value *outs) {
    rt_tensor *in;
    int dim;
    TS_TRY(rt_need_tensor(self, &in));
    TS_TRY(rt_wrap_dim(dim_value.as.i, in->rank, &dim));
    rt_lane_call call = {
        .in = in, .dim = dim, .work = lane_work(dtype), .function = function, .dtype = dtype};
    return rt_lanes(&call, outs, NULL);
}

/* ---- softmax ---- */

static double lane_max(const rt_lane *lane) {
    const double *x = lane->in;
    double top = -INF;
    for (int64_t i = 0; i < lane->n; i++)
        top = x[i] > top || x[i] != x[i] ? x[i] : top;
    return top;
}

static void softmax_lane(rt_lane *lane) {
    const double *x = lane->in;
    double *out = lane->out, top = lane_max(lane), sum = 0;
    for (int64_t i = 0; i < lane->n; i++) {
        out[i] = exp(x[i] - top);
        sum += out[i];
    }
    for (int64_t i = 0; i < lane->n; i++)
        out[i] /= sum;
}

static void log_softmax_lane(rt_lane *lane) {
    const double *x = lane->in;
    double *out = lane->out, top = lane_max(lane), sum = 0;
    for (int64_t i = 0; i < lane->n; i++)
        sum += exp(x[i] - top);
    double shift = top + log(sum);
    for (int64_t i = 0; i < lane->n; i++)
        out[i] = x[i] - shift;
}

/* The two kernels that PyTorch has in steps of 16-bit floats: sums are float32, what it stores
 * between the steps is rounded. param: the dtype. */
static void short_softmax_lane(rt_lane *lane) {
    const double *x = lane->in;
    double *out = lane->out, top = lane_max(lane), sum = 0;
    for (int64_t i = 0; i < lane->n; i++) {
        double e = exp(x[i] - top);
        out[i] = (double)rt_round_short((rt_dtype)lane->param, (float)e);
        sum += e;
    }
    for (int64_t i = 0; i < lane->n; i++)
        out[i] /= sum;
}

static void short_log_softmax_lane(rt_lane *lane) {
    const double *x = lane->in;
    rt_dtype dtype = (rt_dtype)lane->param;
    double *out = lane->out, top = lane_max(lane), sum = 0;
    for (int64_t i = 0; i < lane->n; i++)
        sum += exp(x[i] - top);
    float log_sum = rt_round_short(dtype, logf(rt_round_short(dtype, (float)sum)));
    for (int64_t i = 0; i < lane->n; i++)
        out[i] = x[i] - top - (double)log_sum;
}

/* A lane of -inf alone gives zeros where softmax gives NaN. */
static void safe_softmax_lane(rt_lane *lane) {
    if (lane_max(lane) == -INF) {
        double *out = lane->out;
        for (int64_t i = 0; i < lane->n; i++)
            out[i] = 0;
        return;
    }
    softmax_lane(lane);
}

static ts_status softmax_of(const rt_value *args, rt_dtype dtype, const char *name,
                            rt_lane_function function, rt_value *outs) {
    rt_tensor *in;
    int dim;
    if (!rt_dtype_is_float(dtype))
        return rt_not_implemented(name, dtype);
    TS_TRY(rt_need_tensor(args[0], &in));
    TS_TRY(rt_wrap_dim(args[1].as.i, in->rank, &dim));
    bool is_last = dim >= in->rank - 1;
    if (rt_dtype_is_short(dtype) && function == softmax_lane && !is_last)
        function = short_softmax_lane;
    if (rt_dtype_is_short(dtype) && function == log_softmax_lane && is_last)
        function = short_log_softmax_lane;
    rt_lane_call call = {.in = in, .dim = dim, .work = lane_work(dtype), .function = function,
                         .dtype = dtype, .param = (double)dtype};
    return rt_lanes(&call, outs, NULL);
}

static rt_dtype asked_dtype(const rt_value *args, int at) {
    return rt_as_dtype(args[at],
                       args[0].tag == RT_TAG_TENSOR ? rt_dtype_of(args[0].as.tensor) : RT_float32);
}

KERNEL(softmax) { return softmax_of(args, asked_dtype(args, 2), "softmax", softmax_lane, outs); }
KERNEL(log_softmax) {
    return softmax_of(args, asked_dtype(args, 2), "log_softmax", log_softmax_lane, outs);
}
KERNEL(safe_softmax) {
    return softmax_of(args, asked_dtype(args, 2), "softmax", safe_softmax_lane, outs);
}

static rt_dtype maybe_float(const rt_value *args) {
    return args[2].as.i ? RT_float32 : asked_dtype((rt_value[]){args[0], rt_none()}, 1);
}
KERNEL(_softmax) { return softmax_of(args, maybe_float(args), "softmax", softmax_lane, outs); }
KERNEL(_log_softmax) {
    return softmax_of(args, maybe_float(args), "log_softmax", log_softmax_lane, outs);
}

/* ---- scans ---- */

#define SCAN(name, type, start, step)                                                              \
    static void name(rt_lane *lane) {                                                              \
        const type *x = lane->in;                                                                  \
        type *out = lane->out;                                                                     \
        type acc = start;                                                                          \
        for (int64_t i = 0; i < lane->n; i++) {                                                    \
            acc = step;                                                                            \
            out[i] = acc;                                                                          \
        }                                                                                          \
    }
SCAN(cumsum_double, double, 0, acc + x[i])
SCAN(cumprod_double, double, 1, acc *x[i])
SCAN(cumsum_int, int64_t, 0, (int64_t)((uint64_t)acc + (uint64_t)x[i]))
SCAN(cumprod_int, int64_t, 1, (int64_t)((uint64_t)acc *(uint64_t)x[i]))
#define PAIR(re, im) ((rt_complex128){re, im})
SCAN(cumsum_complex, rt_complex128, PAIR(0, 0), PAIR(acc.re + x[i].re, acc.im + x[i].im))
SCAN(cumprod_complex, rt_complex128, PAIR(1, 0),
     PAIR(acc.re *x[i].re - acc.im * x[i].im, acc.re *x[i].im + acc.im * x[i].re))

static void logcumsumexp_lane(rt_lane *lane) {
    const double *x = lane->in;
    double *out = lane->out, acc = -INF;
    for (int64_t i = 0; i < lane->n; i++) {
        double high = acc > x[i] ? acc : x[i], low = acc > x[i] ? x[i] : acc;
        if (acc != acc || x[i] != x[i])
            acc = (double)NAN;
        else if (high != low || fabs(high) != INF)
            acc = high + log1p(exp(low - high));
        else
            acc = high;
        out[i] = acc;
    }
}

static void logcumsumexp_complex(rt_lane *lane) {
    const rt_complex128 *x = lane->in;
    rt_complex128 *out = lane->out;
    for (int64_t i = 0; i < lane->n; i++)
        out[i] = i ? rt_complex_logaddexp(out[i - 1], x[i]) : x[i];
}

static rt_dtype scan_dtype(rt_value self, rt_value asked) {
    if (!rt_is_none(asked) || self.tag != RT_TAG_TENSOR)
        return rt_as_dtype(asked, RT_int64);
    rt_dtype own = rt_dtype_of(self.as.tensor);
    char category = rt_dtype_category(own);
    return category == 'i' || category == 'b' ? RT_int64 : own;
}

KERNEL(cumsum) {
    static const rt_lane_function functions[] = {cumsum_double, cumsum_double, cumsum_int,
                                                 cumsum_complex};
    rt_dtype dtype = scan_dtype(args[0], args[2]);
    return along(args[0], args[1], dtype, functions[rt_work_of(dtype)], outs);
}
KERNEL(cumprod) {
    static const rt_lane_function functions[] = {cumprod_double, cumprod_double, cumprod_int,
                                                 cumprod_complex};
    rt_dtype dtype = scan_dtype(args[0], args[2]);
    return along(args[0], args[1], dtype, functions[rt_work_of(dtype)], outs);
}
KERNEL(logcumsumexp) {
    rt_tensor *in;
    TS_TRY(rt_need_tensor(args[0], &in));
    if (rt_dtype_is_complex(rt_dtype_of(in)))
        return along(args[0], args[1], rt_dtype_of(in), logcumsumexp_complex, outs);
    if (!rt_dtype_is_float(rt_dtype_of(in)))
        return rt_not_implemented("logcumsumexp", rt_dtype_of(in));
    return along(args[0], args[1], rt_dtype_of(in), logcumsumexp_lane, outs);
}

#define EXTREME_SCAN(name, type, takes)                                                            \
    static void name(rt_lane *lane) {                                                              \
        const type *x = lane->in;                                                                  \
        type *out = lane->out;                                                                     \
        int64_t at = 0;                                                                            \
        for (int64_t i = 0; i < lane->n; i++) {                                                    \
            if (i == 0 || (takes))                                                                 \
                at = i;                                                                            \
            out[i] = x[at];                                                                        \
            lane->index[i] = at;                                                                   \
        }                                                                                          \
    }
EXTREME_SCAN(cummax_double, double, x[i] != x[i] || x[i] >= x[at])
EXTREME_SCAN(cummin_double, double, x[i] != x[i] || x[i] <= x[at])
EXTREME_SCAN(cummax_int, int64_t, x[i] >= x[at])
EXTREME_SCAN(cummin_int, int64_t, x[i] <= x[at])

static ts_status with_index(rt_value self, int64_t dim_arg, rt_lane_function real,
                            rt_lane_function integer, const char *name, bool is_reduction,
                            bool keep, double param, rt_value *outs) {
    rt_tensor *in;
    int dim;
    TS_TRY(rt_need_tensor(self, &in));
    TS_TRY(rt_wrap_dim(dim_arg, in->rank, &dim));
    rt_dtype dtype = rt_dtype_of(in);
    rt_work work = lane_work(dtype);
    if (work == RT_WORK_COMPLEX)
        return rt_not_implemented(name, dtype);
    if (is_reduction && in->rank && in->sizes[dim] == 0)
        return ts_raise("IndexError", "%s(): Expected reduction dim %d to have non-zero size.",
                        name, dim);
    rt_lane_call call = {.in = in,
                         .dim = dim,
                         .work = work,
                         .function = work == RT_WORK_INT ? integer : real,
                         .dtype = dtype,
                         .has_index = true,
                         .is_reduction = is_reduction,
                         .keep = keep,
                         .param = param};
    return rt_lanes(&call, &outs[0], &outs[1]);
}

KERNEL(cummax) {
    return with_index(args[0], args[1].as.i, cummax_double, cummax_int, "cummax", false, false, 0,
                      outs);
}
KERNEL(cummin) {
    return with_index(args[0], args[1].as.i, cummin_double, cummin_int, "cummin", false, false, 0,
                      outs);
}

/* ---- order statistics ---- */

typedef struct ranked {
    union {
        double d;
        int64_t i;
    } value;
    int64_t at;
} ranked;
_Static_assert(sizeof(ranked) == sizeof(rt_complex128), "lanes have scratch of that size");

/* NaN last; equal values in order of position. */
static int compare_double(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    bool nan_x = x->value.d != x->value.d, nan_y = y->value.d != y->value.d;
    if (nan_x != nan_y)
        return nan_x ? 1 : -1;
    if (!nan_x && x->value.d != y->value.d)
        return x->value.d < y->value.d ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static int compare_int(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->value.i != y->value.i)
        return x->value.i < y->value.i ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static ranked *sorted_lane(const rt_lane *lane, bool is_int) {
    ranked *items = lane->scratch;
    for (int64_t i = 0; i < lane->n; i++) {
        items[i].at = i;
        if (is_int)
            items[i].value.i = ((const int64_t *)lane->in)[i];
        else
            items[i].value.d = ((const double *)lane->in)[i];
    }
    qsort(items, (size_t)lane->n, sizeof *items, is_int ? compare_int : compare_double);
    return items;
}

static void put_double(rt_lane *lane, double value, int64_t at) {
    *(double *)lane->out = value;
    lane->index[0] = at;
}

static void put_int(rt_lane *lane, int64_t value, int64_t at) {
    *(int64_t *)lane->out = value;
    lane->index[0] = at;
}

static void median_double(rt_lane *lane) {
    ranked *items = sorted_lane(lane, false);
    int64_t at = (lane->n - 1) / 2;
    double last = items[lane->n - 1].value.d;
    if (last != last) /* NaN wins: the first of them */
        for (at = lane->n - 1; at > 0 && items[at - 1].value.d != items[at - 1].value.d;)
            at--;
    put_double(lane, items[at].value.d, items[at].at);
}

static void nanmedian_double(rt_lane *lane) {
    ranked *items = sorted_lane(lane, false);
    int64_t n = lane->n;
    while (n > 0 && items[n - 1].value.d != items[n - 1].value.d)
        n--;
    if (n == 0) /* NaN alone */
        n = lane->n;
    put_double(lane, items[(n - 1) / 2].value.d, items[(n - 1) / 2].at);
}

static void median_int(rt_lane *lane) {
    ranked *items = sorted_lane(lane, true);
    put_int(lane, items[(lane->n - 1) / 2].value.i, items[(lane->n - 1) / 2].at);
}

static void kth_double(rt_lane *lane) {
    ranked *item = sorted_lane(lane, false) + (int64_t)lane->param - 1;
    put_double(lane, item->value.d, item->at);
}

static void kth_int(rt_lane *lane) {
    ranked *item = sorted_lane(lane, true) + (int64_t)lane->param - 1;
    put_int(lane, item->value.i, item->at);
}

/* The smallest of the most frequent values, at its last position. */
static void mode_double(rt_lane *lane) {
    ranked *items = sorted_lane(lane, false);
    int64_t best = 0, best_count = 0, count = 0;
    for (int64_t i = 0; i < lane->n; i++) {
        count = i && items[i].value.d == items[i - 1].value.d ? count + 1 : 1;
        if (count > best_count) {
            best_count = count;
            best = i;
        }
    }
    put_double(lane, items[best].value.d, items[best].at);
}

static void mode_int(rt_lane *lane) {
    ranked *items = sorted_lane(lane, true);
    int64_t best = 0, best_count = 0, count = 0;
    for (int64_t i = 0; i < lane->n; i++) {
        count = i && items[i].value.i == items[i - 1].value.i ? count + 1 : 1;
        if (count > best_count) {
            best_count = count;
            best = i;
        }
    }
    put_int(lane, items[best].value.i, items[best].at);
}

KERNEL(median_dim) {
    return with_index(args[0], args[1].as.i, median_double, median_int, "median", true,
                      args[2].as.i != 0, 0, outs);
}
KERNEL(nanmedian_dim) {
    return with_index(args[0], args[1].as.i, nanmedian_double, median_int, "nanmedian", true,
                      args[2].as.i != 0, 0, outs);
}
KERNEL(mode) {
    return with_index(args[0], args[1].as.i, mode_double, mode_int, "mode", true, args[2].as.i != 0,
                      0, outs);
}
KERNEL(kthvalue) {
    rt_tensor *in;
    int dim;
    TS_TRY(rt_need_tensor(args[0], &in));
    TS_TRY(rt_wrap_dim(args[2].as.i, in->rank, &dim));
    int64_t k = args[1].as.i, n = in->rank ? in->sizes[dim] : 1;
    if (k < 1 || k > n)
        return ts_raise("RuntimeError",
                        "kthvalue(): selected number k out of range for dimension "
                        "%d",
                        dim);
    return with_index(args[0], args[2].as.i, kth_double, kth_int, "kthvalue", true,
                      args[3].as.i != 0, (double)k, outs);
}

/* The median of all elements: of the flattened tensor. */
static ts_status median_of_all(rt_value self, rt_lane_function real, rt_value *outs) {
    rt_tensor *in, *dense, *flat;
    TS_TRY(rt_need_tensor(self, &in));
    if (in->element_count == 0) { /* NaN for floats, as PyTorch */
        TS_TRY(rt_tensor_from_number(rt_float((double)NAN), rt_dtype_of(in), &flat));
        outs[0] = rt_from_tensor(flat);
        return NULL;
    }
    TS_TRY(rt_tensor_contiguous(in, &dense));
    ts_status status =
        rt_tensor_alias(dense, 0, (int64_t[]){in->element_count}, (int64_t[]){1}, 1, &flat);
    rt_tensor_release(dense);
    TS_TRY(status);
    rt_value results[2];
    status =
        with_index(rt_from_tensor(flat), 0, real, median_int, "median", true, false, 0, results);
    rt_tensor_release(flat);
    TS_TRY(status);
    rt_release(results[1]);
    outs[0] = results[0];
    return NULL;
}
KERNEL(median) { return median_of_all(args[0], median_double, outs); }
KERNEL(nanmedian) { return median_of_all(args[0], nanmedian_double, outs); }

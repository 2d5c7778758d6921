/* runtime/ops/ref_reduction.c - sums, products, extrema, norms and moments. */
#include <math.h>

#include "runtime/ops/pointwise.h"
#include "runtime/ops/reduce.h"

#define INF ((double)INFINITY)

/* ---- what is done with the elements ---- */

#define FOLD(name)                                                                                 \
    static void name(rt_acc *acc, const void *values, int64_t n, TS_UNUSED double param)
#define EACH(type)                                                                                 \
    const type *x = values;                                                                        \
    for (int64_t i = 0; i < n; i++)

FOLD(sum_double) {
    double sum = 0;
    EACH(double) sum += x[i];
    acc->d[0] += sum;
}
FOLD(sum_int) { EACH(int64_t) acc->i[0] = (int64_t)((uint64_t)acc->i[0] + (uint64_t)x[i]); }
FOLD(sum_complex) {
    EACH(rt_complex128) {
        acc->c.re += x[i].re;
        acc->c.im += x[i].im;
    }
}
FOLD(nansum_double) { EACH(double) acc->d[0] += x[i] != x[i] ? 0 : x[i]; }
FOLD(nansum_complex) {
    EACH(rt_complex128) {
        if (x[i].re != x[i].re || x[i].im != x[i].im)
            continue;
        acc->c.re += x[i].re;
        acc->c.im += x[i].im;
    }
}
FOLD(nanmean_double) {
    EACH(double) {
        acc->d[0] += x[i] != x[i] ? 0 : x[i];
        acc->i[0] += x[i] == x[i];
    }
}
FOLD(prod_double) { EACH(double) acc->d[0] *= x[i]; }
FOLD(prod_int) { EACH(int64_t) acc->i[0] = (int64_t)((uint64_t)acc->i[0] * (uint64_t)x[i]); }
FOLD(prod_complex) {
    EACH(rt_complex128)
    acc->c = (rt_complex128){acc->c.re * x[i].re - acc->c.im * x[i].im,
                             acc->c.re * x[i].im + acc->c.im * x[i].re};
}
/* d[0] or i[0]: the value; i[1]: where it was first met. NaN wins and stays. */
FOLD(max_double) {
    EACH(double) {
        if (acc->count + i == 0 || (!(x[i] <= acc->d[0]) && acc->d[0] == acc->d[0])) {
            acc->d[0] = x[i];
            acc->i[1] = acc->count + i;
        }
    }
}
FOLD(min_double) {
    EACH(double) {
        if (acc->count + i == 0 || (!(x[i] >= acc->d[0]) && acc->d[0] == acc->d[0])) {
            acc->d[0] = x[i];
            acc->i[1] = acc->count + i;
        }
    }
}
FOLD(max_int) {
    EACH(int64_t) {
        if (acc->count + i == 0 || x[i] > acc->i[0]) {
            acc->i[0] = x[i];
            acc->i[1] = acc->count + i;
        }
    }
}
FOLD(min_int) {
    EACH(int64_t) {
        if (acc->count + i == 0 || x[i] < acc->i[0]) {
            acc->i[0] = x[i];
            acc->i[1] = acc->count + i;
        }
    }
}
/* i[0]: how many are not zero */
FOLD(count_double) { EACH(double) acc->i[0] += x[i] != 0; }
FOLD(count_int) { EACH(int64_t) acc->i[0] += x[i] != 0; }
FOLD(count_complex) { EACH(rt_complex128) acc->i[0] += x[i].re != 0 || x[i].im != 0; }

/* d[0] mean, d[1] sum of squared deviations: chunks are joined as Chan, Golub and LeVeque do. */
static void join_moments(rt_acc *acc, double n, double mean, double m2) {
    double old = (double)acc->count, total = old + n, delta = mean - acc->d[0];
    acc->d[1] += m2 + delta * delta * old * n / total;
    acc->d[0] += delta * n / total;
}
FOLD(moments_double) {
    const double *x = values;
    double sum = 0, m2 = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    double mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++)
        m2 += (x[i] - mean) * (x[i] - mean);
    join_moments(acc, (double)n, mean, m2);
}
FOLD(moments_complex) {
    const rt_complex128 *x = values;
    double re = 0, im = 0, m2 = 0;
    for (int64_t i = 0; i < n; i++) {
        re += x[i].re;
        im += x[i].im;
    }
    re /= (double)n;
    im /= (double)n;
    for (int64_t i = 0; i < n; i++)
        m2 += (x[i].re - re) * (x[i].re - re) + (x[i].im - im) * (x[i].im - im);
    double old = (double)acc->count, total = old + (double)n;
    double delta_re = re - acc->c.re, delta_im = im - acc->c.im;
    acc->d[1] += m2 + (delta_re * delta_re + delta_im * delta_im) * old * (double)n / total;
    acc->c.re += delta_re * (double)n / total;
    acc->c.im += delta_im * (double)n / total;
}

/* d[0] the maximum, d[1] the sum of exp(x - maximum) */
FOLD(logsumexp_double) {
    const double *x = values;
    double top = acc->d[0];
    for (int64_t i = 0; i < n; i++)
        top = x[i] != x[i] || x[i] > top ? x[i] : top;
    double shift = fabs(top) == INF ? 0 : top, old = fabs(acc->d[0]) == INF ? 0 : acc->d[0];
    double sum = acc->count ? acc->d[1] * exp(old - shift) : 0;
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - shift);
    acc->d[0] = top;
    acc->d[1] = sum;
}

/* d[0] the maximum of the real parts, c the sum of exp(x - maximum) */
FOLD(logsumexp_complex) {
    const rt_complex128 *x = values;
    double top = acc->d[0];
    for (int64_t i = 0; i < n; i++)
        top = x[i].re != x[i].re || x[i].re > top ? x[i].re : top;
    double shift = fabs(top) == INF ? 0 : top, old = fabs(acc->d[0]) == INF ? 0 : acc->d[0];
    double scale = acc->count ? exp(old - shift) : 0;
    acc->c = (rt_complex128){acc->c.re * scale, acc->c.im * scale};
    for (int64_t i = 0; i < n; i++) {
        double size = exp(x[i].re - shift);
        acc->c.re += size * cos(x[i].im);
        acc->c.im += size * sin(x[i].im);
    }
    acc->d[0] = top;
}

/* Vector norms: param is the order. */
static void norm_one(rt_acc *acc, double magnitude, double order) {
    if (order == 2)
        acc->d[0] += magnitude * magnitude;
    else if (order == 1)
        acc->d[0] += magnitude;
    else if (order == 0)
        acc->d[0] += magnitude != 0;
    else if (order == INF)
        acc->d[0] = magnitude != magnitude || magnitude > acc->d[0] ? magnitude : acc->d[0];
    else if (order == -INF)
        acc->d[0] = magnitude != magnitude || magnitude < acc->d[0] ? magnitude : acc->d[0];
    else
        acc->d[0] += pow(magnitude, order);
}
static void norm_double(rt_acc *acc, const void *values, int64_t n, double order) {
    EACH(double) norm_one(acc, fabs(x[i]), order);
}
static void norm_complex(rt_acc *acc, const void *values, int64_t n, double order) {
    EACH(rt_complex128) norm_one(acc, hypot(x[i].re, x[i].im), order);
}

/* ---- how the results are stored ---- */

typedef struct sink {
    rt_tensor *out, *second;
    double param, divisor;
    int64_t reduced_count;
} sink;

static char *place(rt_tensor *t, int64_t at) { return (char *)t->data + at * rt_element_bytes(t); }

static void put_double(void *user, int64_t at, const rt_acc *acc) {
    sink *s = user;
    rt_store_double(rt_dtype_of(s->out), place(s->out, at), acc->d[0] / s->divisor);
}
static void put_int(void *user, int64_t at, const rt_acc *acc) {
    sink *s = user;
    rt_store_int(rt_dtype_of(s->out), place(s->out, at), acc->i[0]);
}
static void put_complex(void *user, int64_t at, const rt_acc *acc) {
    sink *s = user;
    rt_store_complex(rt_dtype_of(s->out), place(s->out, at),
                     (rt_complex128){acc->c.re / s->divisor, acc->c.im / s->divisor});
}
/* PyTorch divides by the count as a complex number: an infinite part makes the other NaN. */
static void put_complex_mean(void *user, int64_t at, const rt_acc *acc) {
    sink *s = user;
    double re = acc->c.re, im = acc->c.im;
    rt_store_complex(rt_dtype_of(s->out), place(s->out, at),
                     (rt_complex128){(re + im * 0) / s->divisor, (im - re * 0) / s->divisor});
}
static void put_nanmean(void *user, int64_t at, const rt_acc *acc) {
    sink *s = user;
    rt_store_double(rt_dtype_of(s->out), place(s->out, at), acc->d[0] / (double)acc->i[0]);
}
static void put_any(void *user, int64_t at, const rt_acc *acc) {
    sink *s = user;
    rt_store_int(rt_dtype_of(s->out), place(s->out, at), acc->i[0] != 0);
}
static void put_all(void *user, int64_t at, const rt_acc *acc) {
    sink *s = user;
    rt_store_int(rt_dtype_of(s->out), place(s->out, at), acc->i[0] == acc->count);
}
static void put_index(void *user, int64_t at, const rt_acc *acc) {
    sink *s = user;
    rt_store_int(RT_int64, place(s->out, at), acc->i[1]);
}
/* The value and its position: an extremum with its index. */
static void put_found_double(void *user, int64_t at, const rt_acc *acc) {
    sink *s = user;
    rt_store_double(rt_dtype_of(s->out), place(s->out, at), acc->d[0]);
    rt_store_int(RT_int64, place(s->second, at), acc->i[1]);
}
static void put_found_int(void *user, int64_t at, const rt_acc *acc) {
    sink *s = user;
    rt_store_int(rt_dtype_of(s->out), place(s->out, at), acc->i[0]);
    rt_store_int(RT_int64, place(s->second, at), acc->i[1]);
}
static void put_logsumexp(void *user, int64_t at, const rt_acc *acc) {
    sink *s = user;
    double top = acc->d[0];
    double value = acc->count == 0    ? -INF
                   : fabs(top) == INF ? log(acc->d[1])
                                      : log(acc->d[1]) + top;
    rt_store_double(rt_dtype_of(s->out), place(s->out, at), value);
}
static void put_logsumexp_complex(void *user, int64_t at, const rt_acc *acc) {
    sink *s = user;
    double top = fabs(acc->d[0]) == INF ? 0 : acc->d[0];
    rt_complex128 value = {log(hypot(acc->c.re, acc->c.im)) + top, atan2(acc->c.im, acc->c.re)};
    rt_store_complex(rt_dtype_of(s->out), place(s->out, at), value);
}
static void put_norm(void *user, int64_t at, const rt_acc *acc) {
    sink *s = user;
    double order = s->param, value = acc->d[0];
    if (order == 2)
        value = sqrt(value);
    else if (order != 1 && order != 0 && fabs(order) != INF)
        value = pow(value, 1 / order);
    rt_store_double(rt_dtype_of(s->out), place(s->out, at), value);
}
/* param: the correction; i of divisor: 1 for std */
static void put_var(void *user, int64_t at, const rt_acc *acc) {
    sink *s = user;
    double n = (double)acc->count - s->param, value = acc->d[1] / (n > 0 ? n : 0);
    if (acc->count == 0)
        value = (double)NAN;
    if (s->divisor != 1)
        value = sqrt(value);
    rt_store_double(rt_dtype_of(s->out), place(s->out, at), value);
    if (!s->second)
        return;
    rt_dtype dtype = rt_dtype_of(s->second);
    if (rt_dtype_is_complex(dtype))
        rt_store_complex(dtype, place(s->second, at),
                         acc->count ? acc->c : (rt_complex128){(double)NAN, (double)NAN});
    else
        rt_store_double(dtype, place(s->second, at), acc->count ? acc->d[0] : (double)NAN);
}

/* ---- the frame ---- */

/* Floats are gathered as double. */
static rt_work gather_work(rt_dtype dtype) {
    rt_work work = rt_work_of(dtype);
    return work == RT_WORK_FLOAT ? RT_WORK_DOUBLE : work;
}

typedef struct reduction {
    rt_fold folds[3]; /* double, int, complex; NULL: not implemented */
    rt_finish finishes[3];
    rt_acc start;
    double param, divisor;
    bool divides_by_count; /* mean */
    const char *name;
    bool refuses_empty;
    rt_dtype second; /* UNKNOWN: no second result */
} reduction;

static int kind_of(rt_work work) {
    return work == RT_WORK_INT ? 1 : work == RT_WORK_COMPLEX ? 2 : 0;
}

static ts_status reduce_masked(const rt_tensor *in, const bool *mask, bool keep, rt_dtype compute,
                               rt_dtype result, const reduction *r, rt_value *outs) {
    rt_work work = gather_work(compute);
    int kind = kind_of(work), rank;
    if (!r->folds[kind])
        return rt_not_implemented(r->name, compute);
    int64_t sizes[RT_MAX_RANK], count = 1;
    for (int d = 0; d < in->rank; d++)
        count *= mask[d] ? in->sizes[d] : 1;
    rank = rt_reduced_sizes(in, mask, keep, sizes);
    sink s = {
        .param = r->param, .divisor = r->divisor != 0 ? r->divisor : 1, .reduced_count = count};
    if (r->divides_by_count)
        s.divisor = (double)count;
    TS_TRY(rt_tensor_make(result, sizes, rank, &s.out));
    if (r->second != RT_DTYPE_UNKNOWN) {
        ts_status status = rt_tensor_make(r->second, sizes, rank, &s.second);
        if (status) {
            rt_tensor_release(s.out);
            return status;
        }
    }
    if (count == 0 && r->refuses_empty && s.out->element_count > 0) {
        rt_tensor_release(s.out);
        rt_tensor_release(s.second);
        return ts_raise("IndexError", "%s(): Expected reduction dim to have non-zero size.",
                        r->name);
    }
    rt_reduce(in, mask, work, r->folds[kind], &r->start, r->param, r->finishes[kind], &s);
    outs[0] = rt_from_tensor(s.out);
    if (s.second)
        outs[1] = rt_from_tensor(s.second);
    return NULL;
}

static ts_status reduce(rt_value self, rt_value dims, rt_value keep, rt_dtype compute,
                        rt_dtype result, const reduction *r, rt_value *outs) {
    rt_tensor *in;
    bool mask[RT_MAX_RANK];
    TS_TRY(rt_need_tensor(self, &in));
    TS_TRY(rt_dim_mask(dims, in->rank, mask));
    bool keeps = keep.tag == RT_TAG_BOOL && keep.as.i;
    if (compute == RT_DTYPE_UNKNOWN)
        compute = rt_dtype_of(in);
    return reduce_masked(in, mask, keeps, compute, result == RT_DTYPE_UNKNOWN ? compute : result, r,
                         outs);
}

#define NO_SECOND .second = RT_DTYPE_UNKNOWN

static const reduction sum_reduction = {.folds = {sum_double, sum_int, sum_complex},
                                        .finishes = {put_double, put_int, put_complex},
                                        .name = "sum",
                                        NO_SECOND};
static const reduction nansum_reduction = {.folds = {nansum_double, sum_int, nansum_complex},
                                           .finishes = {put_double, put_int, put_complex},
                                           .name = "nansum",
                                           NO_SECOND};
static const reduction mean_reduction = {.folds = {sum_double, NULL, sum_complex},
                                         .finishes = {put_double, NULL, put_complex_mean},
                                         .divides_by_count = true,
                                         .name = "mean",
                                         NO_SECOND};
static const reduction nanmean_reduction = {.folds = {nanmean_double, NULL, NULL},
                                            .finishes = {put_nanmean, NULL, NULL},
                                            .name = "nanmean",
                                            NO_SECOND};
static const reduction prod_reduction = {.folds = {prod_double, prod_int, prod_complex},
                                         .finishes = {put_double, put_int, put_complex},
                                         .start = {.d = {1}, .i = {1}, .c = {1, 0}},
                                         .name = "prod",
                                         NO_SECOND};
static const reduction amax_reduction = {.folds = {max_double, max_int, NULL},
                                         .finishes = {put_double, put_int, NULL},
                                         .name = "amax",
                                         .refuses_empty = true,
                                         NO_SECOND};
static const reduction amin_reduction = {.folds = {min_double, min_int, NULL},
                                         .finishes = {put_double, put_int, NULL},
                                         .name = "amin",
                                         .refuses_empty = true,
                                         NO_SECOND};
static const reduction max_reduction = {.folds = {max_double, max_int, NULL},
                                        .finishes = {put_found_double, put_found_int, NULL},
                                        .name = "max",
                                        .refuses_empty = true,
                                        .second = RT_int64};
static const reduction min_reduction = {.folds = {min_double, min_int, NULL},
                                        .finishes = {put_found_double, put_found_int, NULL},
                                        .name = "min",
                                        .refuses_empty = true,
                                        .second = RT_int64};
static const reduction argmax_reduction = {.folds = {max_double, max_int, NULL},
                                           .finishes = {put_index, put_index, NULL},
                                           .name = "argmax",
                                           .refuses_empty = true,
                                           NO_SECOND};
static const reduction argmin_reduction = {.folds = {min_double, min_int, NULL},
                                           .finishes = {put_index, put_index, NULL},
                                           .name = "argmin",
                                           .refuses_empty = true,
                                           NO_SECOND};
static const reduction any_reduction = {.folds = {count_double, count_int, count_complex},
                                        .finishes = {put_any, put_any, put_any},
                                        .name = "any",
                                        NO_SECOND};
static const reduction all_reduction = {.folds = {count_double, count_int, count_complex},
                                        .finishes = {put_all, put_all, put_all},
                                        .name = "all",
                                        NO_SECOND};
static const reduction count_reduction = {.folds = {count_double, count_int, count_complex},
                                          .finishes = {put_int, put_int, put_int},
                                          .name = "count_nonzero",
                                          NO_SECOND};
static const reduction logsumexp_reduction = {
    .folds = {logsumexp_double, NULL, logsumexp_complex},
    .finishes = {put_logsumexp, NULL, put_logsumexp_complex},
    .start = {.d = {-INF}},
    .name = "logsumexp",
    NO_SECOND};

/* sum and prod of integers are int64. */
static rt_dtype sum_dtype(rt_value self, rt_value asked) {
    if (!rt_is_none(asked))
        return (rt_dtype)asked.as.i;
    if (self.tag != RT_TAG_TENSOR)
        return RT_DTYPE_UNKNOWN;
    rt_dtype own = rt_dtype_of(self.as.tensor);
    char category = rt_dtype_category(own);
    return category == 'i' || category == 'b' ? RT_int64 : own;
}

KERNEL(sum) {
    rt_dtype dtype = sum_dtype(args[0], args[1]);
    return reduce(args[0], rt_none(), rt_none(), dtype, dtype, &sum_reduction, outs);
}
KERNEL(sum_dim) {
    rt_dtype dtype = sum_dtype(args[0], args[3]);
    return reduce(args[0], args[1], args[2], dtype, dtype, &sum_reduction, outs);
}
KERNEL(nansum) {
    rt_dtype dtype = sum_dtype(args[0], args[3]);
    return reduce(args[0], args[1], args[2], dtype, dtype, &nansum_reduction, outs);
}
KERNEL(prod) {
    rt_dtype dtype = sum_dtype(args[0], args[1]);
    return reduce(args[0], rt_none(), rt_none(), dtype, dtype, &prod_reduction, outs);
}
KERNEL(prod_dim) {
    rt_dtype dtype = sum_dtype(args[0], args[3]);
    return reduce(args[0], args[1], args[2], dtype, dtype, &prod_reduction, outs);
}

static ts_status mean_of(rt_value self, rt_value dims, rt_value keep, rt_value asked,
                         const reduction *r, rt_value *outs) {
    rt_tensor *in;
    TS_TRY(rt_need_tensor(self, &in));
    rt_dtype dtype = rt_as_dtype(asked, rt_dtype_of(in));
    if (!rt_dtype_is_float(dtype) && !rt_dtype_is_complex(dtype))
        return ts_raise("RuntimeError",
                        "%s(): could not infer output dtype. Input dtype must be either a floating "
                        "point or complex dtype. Got: %s",
                        r->name, rt_dtype_message_name(dtype));
    return reduce(self, dims, keep, dtype, dtype, r, outs);
}
KERNEL(mean) { return mean_of(args[0], rt_none(), rt_none(), args[1], &mean_reduction, outs); }
KERNEL(mean_dim) { return mean_of(args[0], args[1], args[2], args[3], &mean_reduction, outs); }
KERNEL(nanmean) { return mean_of(args[0], args[1], args[2], args[3], &nanmean_reduction, outs); }

KERNEL(amax) {
    return reduce(args[0], args[1], args[2], RT_DTYPE_UNKNOWN, RT_DTYPE_UNKNOWN, &amax_reduction,
                  outs);
}
KERNEL(amin) {
    return reduce(args[0], args[1], args[2], RT_DTYPE_UNKNOWN, RT_DTYPE_UNKNOWN, &amin_reduction,
                  outs);
}

static ts_status extremum_of_all(const rt_value *args, const reduction *r, const char *name,
                                 rt_value *outs) {
    if (args[0].tag == RT_TAG_TENSOR && args[0].as.tensor->element_count == 0)
        return ts_raise("RuntimeError",
                        "%s(): Expected reduction dim to be specified for input.numel() == 0. "
                        "Specify the reduction dim with the 'dim' argument.",
                        name);
    return reduce(args[0], rt_none(), rt_none(), RT_DTYPE_UNKNOWN, RT_DTYPE_UNKNOWN, r, outs);
}
KERNEL(max_all) { return extremum_of_all(args, &amax_reduction, "max", outs); }
KERNEL(min_all) { return extremum_of_all(args, &amin_reduction, "min", outs); }
KERNEL(max_dim) {
    return reduce(args[0], args[1], args[2], RT_DTYPE_UNKNOWN, RT_DTYPE_UNKNOWN, &max_reduction,
                  outs);
}
KERNEL(min_dim) {
    return reduce(args[0], args[1], args[2], RT_DTYPE_UNKNOWN, RT_DTYPE_UNKNOWN, &min_reduction,
                  outs);
}

static ts_status position_of(const rt_value *args, const reduction *r, rt_value *outs) {
    rt_tensor *in;
    TS_TRY(rt_need_tensor(args[0], &in));
    if (rt_is_none(args[1]) && in->element_count == 0)
        return ts_raise("IndexError",
                        "%s(): Expected reduction dim to be specified for input.numel() == 0. "
                        "Specify the reduction dim with the 'dim' argument.",
                        r->name);
    return reduce(args[0], args[1], args[2], RT_DTYPE_UNKNOWN, RT_int64, r, outs);
}
KERNEL(argmax) { return position_of(args, &argmax_reduction, outs); }
KERNEL(argmin) { return position_of(args, &argmin_reduction, outs); }

KERNEL(aminmax) {
    TS_TRY(reduce(args[0], args[1], args[2], RT_DTYPE_UNKNOWN, RT_DTYPE_UNKNOWN, &amin_reduction,
                  outs));
    ts_status status = reduce(args[0], args[1], args[2], RT_DTYPE_UNKNOWN, RT_DTYPE_UNKNOWN,
                              &amax_reduction, outs + 1);
    if (status) {
        rt_release(outs[0]);
        outs[0] = rt_none();
    }
    return status;
}

/* bool, but uint8 keeps its dtype. */
static rt_dtype truth_dtype(rt_value self) {
    return self.tag == RT_TAG_TENSOR && self.as.tensor->dtype == RT_uint8 ? RT_uint8 : RT_bool;
}
/* dims = [] reduces nothing for any.dims and all.dims: each element alone. */
static ts_status truth_of(const rt_value *args, bool has_dims, const reduction *r, rt_value *outs) {
    rt_value dims = has_dims ? args[1] : rt_none(), keep = has_dims ? args[2] : rt_none();
    rt_tensor *in;
    bool mask[RT_MAX_RANK] = {false};
    TS_TRY(rt_need_tensor(args[0], &in));
    if (dims.tag == RT_TAG_LIST && dims.as.list->count == 0)
        return reduce_masked(in, mask, false, rt_dtype_of(in), truth_dtype(args[0]), r, outs);
    return reduce(args[0], dims, keep, RT_DTYPE_UNKNOWN, truth_dtype(args[0]), r, outs);
}
KERNEL(any) { return truth_of(args, false, &any_reduction, outs); }
KERNEL(all) { return truth_of(args, false, &all_reduction, outs); }
KERNEL(any_dim) { return truth_of(args, true, &any_reduction, outs); }
KERNEL(all_dim) { return truth_of(args, true, &all_reduction, outs); }
KERNEL(count_nonzero) {
    return reduce(args[0], args[1], rt_none(), RT_DTYPE_UNKNOWN, RT_int64, &count_reduction, outs);
}

KERNEL(logsumexp) {
    rt_tensor *in;
    TS_TRY(rt_need_tensor(args[0], &in));
    rt_dtype own = rt_dtype_of(in);
    char category = rt_dtype_category(own);
    rt_dtype dtype = category == 'i' || category == 'b' ? RT_float32 : own;
    return reduce(args[0], args[1], args[2], dtype, dtype, &logsumexp_reduction, outs);
}

/* ---- norms ---- */

static ts_status norm_of(rt_value self, rt_value order_value, rt_value dims, rt_value keep,
                         rt_value asked, rt_value *outs) {
    rt_tensor *in;
    TS_TRY(rt_need_tensor(self, &in));
    rt_dtype dtype = rt_as_dtype(asked, rt_dtype_of(in));
    if (!rt_dtype_is_float(dtype) && !rt_dtype_is_complex(dtype))
        return ts_raise("RuntimeError",
                        "linalg.vector_norm: Expected a floating point or complex "
                        "tensor as input. Got %s",
                        rt_dtype_message_name(dtype));
    double order = rt_is_none(order_value) ? 2 : rt_as_double(order_value);
    reduction r = {.folds = {norm_double, NULL, norm_complex},
                   .finishes = {put_norm, NULL, put_norm},
                   .param = order,
                   .start = {.d = {order == -INF ? INF : 0}},
                   .name = "linalg.vector_norm",
                   .refuses_empty = order < 0 || order == INF,
                   NO_SECOND};
    /* A complex input stays complex whatever real dtype is asked. */
    rt_dtype compute = rt_dtype_is_complex(rt_dtype_of(in)) ? rt_dtype_complex(dtype) : dtype;
    return reduce(self, dims, keep, compute, rt_dtype_real(dtype), &r, outs);
}

KERNEL(vector_norm) { return norm_of(args[0], args[1], args[2], args[3], args[4], outs); }
KERNEL(norm) { return norm_of(args[0], args[1], rt_none(), rt_none(), rt_none(), outs); }
KERNEL(norm_dtype) { return norm_of(args[0], args[1], rt_none(), rt_none(), args[2], outs); }
KERNEL(norm_dim) { return norm_of(args[0], args[1], args[2], args[3], rt_none(), outs); }
KERNEL(norm_dim_dtype) { return norm_of(args[0], args[1], args[2], args[3], args[4], outs); }

/* ---- moments ---- */

static ts_status moments(rt_value self, rt_value dims, double correction, rt_value keep,
                         bool is_std, bool with_mean, rt_value *outs) {
    rt_tensor *in;
    TS_TRY(rt_need_tensor(self, &in));
    rt_dtype dtype = rt_dtype_of(in);
    if (!rt_dtype_is_float(dtype) && !rt_dtype_is_complex(dtype))
        return ts_raise("RuntimeError",
                        "std and var only support floating point and complex dtypes");
    reduction r = {.folds = {moments_double, NULL, moments_complex},
                   .finishes = {put_var, NULL, put_var},
                   .param = correction,
                   .divisor = is_std ? 2 : 1,
                   .name = "var",
                   .second = with_mean ? dtype : RT_DTYPE_UNKNOWN};
    return reduce(self, dims, keep, dtype, rt_dtype_real(dtype), &r, outs);
}

static double correction_of(rt_value v) { return rt_is_none(v) ? 1 : rt_as_double(v); }
static double unbiased(rt_value v) { return v.as.i ? 1 : 0; }

KERNEL(var) { return moments(args[0], rt_none(), unbiased(args[1]), rt_none(), 0, 0, outs); }
KERNEL(std) { return moments(args[0], rt_none(), unbiased(args[1]), rt_none(), 1, 0, outs); }
KERNEL(var_mean) { return moments(args[0], rt_none(), unbiased(args[1]), rt_none(), 0, 1, outs); }
KERNEL(std_mean) { return moments(args[0], rt_none(), unbiased(args[1]), rt_none(), 1, 1, outs); }
KERNEL(var_dim) { return moments(args[0], args[1], unbiased(args[2]), args[3], 0, 0, outs); }
KERNEL(std_dim) { return moments(args[0], args[1], unbiased(args[2]), args[3], 1, 0, outs); }
KERNEL(var_mean_dim) { return moments(args[0], args[1], unbiased(args[2]), args[3], 0, 1, outs); }
KERNEL(std_mean_dim) { return moments(args[0], args[1], unbiased(args[2]), args[3], 1, 1, outs); }
KERNEL(var_correction) {
    return moments(args[0], args[1], correction_of(args[2]), args[3], 0, 0, outs);
}
KERNEL(std_correction) {
    return moments(args[0], args[1], correction_of(args[2]), args[3], 1, 0, outs);
}
KERNEL(var_mean_correction) {
    return moments(args[0], args[1], correction_of(args[2]), args[3], 0, 1, outs);
}
KERNEL(std_mean_correction) {
    return moments(args[0], args[1], correction_of(args[2]), args[3], 1, 1, outs);
}

/* runtime/ops/ref_norm.c - batch, instance, group, layer and rms normalisation, on doubles.
 *
 * All are one walk over groups of elements: a group has one mean and one variance, and each element
 * finds its weight by its channel or by its place in the normalised dims. */
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/contraction.h"

/* Mean and biased variance of `outer` runs of `inner` elements, `step` apart. */
static void moments(const double *x, int64_t outer, int64_t step, int64_t inner, double *out_mean,
                    double *out_var) {
    double n = (double)(outer * inner), sum = 0, squares = 0;
    for (int64_t i = 0; i < outer; i++)
        for (int64_t j = 0; j < inner; j++)
            sum += x[i * step + j];
    double mean = sum / n;
    for (int64_t i = 0; i < outer; i++)
        for (int64_t j = 0; j < inner; j++) {
            double d = x[i * step + j] - mean;
            squares += d * d;
        }
    *out_mean = mean;
    *out_var = squares / n;
}

static ts_status check_vector(const rt_tensor *t, int64_t n, const char *what) {
    if (t && t->element_count != n)
        return ts_raise("RuntimeError", "%s should contain %lld elements not %lld", what,
                        (long long)n, (long long)t->element_count);
    return NULL;
}

/* running = (1 - momentum) * running + momentum * batch */
static void update_running(const rt_tensor *running, int64_t c, double value, double momentum) {
    rt_dtype dtype = (rt_dtype)running->dtype;
    char *at = (char *)running->data + c * running->strides[0] * (int64_t)rt_dtype_size(dtype);
    rt_store_double(dtype, at, (1 - momentum) * rt_load_double(dtype, at) + momentum * value);
}

/* The value as an element of x holds it, if that has 16 bits. */
static double element_of(const rt_tensor *x, double value) {
    return rt_dtype_is_short((rt_dtype)x->dtype) ? (double)rt_round_short((rt_dtype)x->dtype, (float)value) : value;
}

typedef struct batch_norm {
    const rt_tensor *x, *weight, *bias, *mean, *var;
    bool training;
    double momentum, eps;
    bool per_instance; /* statistics of each sample */
} batch_norm;

/* save_mean and save_invstd ([channels], or empty) may be NULL. */
static ts_status run_batch_norm(const batch_norm *b, rt_value *out, rt_value *save) {
    const rt_tensor *x = b->x;
    if (x->element_count == 0 && !save) {
        rt_tensor *empty;
        TS_TRY(rt_tensor_clone(x, &empty));
        *out = rt_from_tensor(empty);
        return NULL;
    }
    if (x->rank < 2)
        return ts_raise("RuntimeError", "expected at least 2 dimensions, found %d", x->rank);
    int64_t n = x->sizes[0], c = x->sizes[1], l = c && n ? x->element_count / (n * c) : 0;
    TS_TRY(check_vector(b->weight, c, "weight"));
    TS_TRY(check_vector(b->bias, c, "bias"));
    TS_TRY(check_vector(b->mean, c, "running_mean"));
    TS_TRY(check_vector(b->var, c, "running_var"));
    if (!b->training && (!b->mean || !b->var))
        return ts_raise("RuntimeError", "expected running_mean and running_var in evaluation mode");
    if (b->training && n * l == 1 && !b->per_instance && save == NULL)
        return ts_raise("ValueError", "Expected more than 1 value per channel when training");
    double *data = NULL, *w = NULL, *v = NULL, *mean = NULL, *var = NULL;
    double *saved = rt_new_doubles(2 * c);
    ts_status status = saved ? rt_doubles(x, &data) : ts_no_memory();
    if (!status)
        status = rt_doubles(b->weight, &w);
    if (!status)
        status = rt_doubles(b->bias, &v);
    if (!status)
        status = rt_doubles(b->mean, &mean);
    if (!status)
        status = rt_doubles(b->var, &var);
    int64_t groups = b->per_instance ? n : 1, samples = b->per_instance ? 1 : n;
    for (int64_t ch = 0; ch < c && !status; ch++) {
        double mean_sum = 0, var_sum = 0;
        for (int64_t g = 0; g < groups; g++) {
            double *group = data + (g * c + ch) * l;
            double mu = 0, sigma2 = 0;
            if (b->training) {
                moments(group, samples, c * l, l, &mu, &sigma2);
                double count = (double)(samples * l);
                mean_sum += mu;
                var_sum += count > 1 ? sigma2 * count / (count - 1) : NAN;
                if (x->dtype == RT_bfloat16) /* PyTorch keeps the sum of squares in it too */
                    sigma2 = element_of(x, element_of(x, sigma2 * count) / count);
            } else {
                mu = mean[ch];
                sigma2 = var[ch];
            }
            double inv = 1 / sqrt(sigma2 + b->eps);
            if (b->training) { /* the batch's are tensors of x's dtype */
                mu = element_of(x, mu);
                inv = element_of(x, inv);
            }
            double scale = inv * (w ? w[ch] : 1), shift = v ? v[ch] : 0;
            for (int64_t s = 0; s < samples; s++)
                for (int64_t i = 0; i < l; i++) {
                    double *at = &group[s * c * l + i];
                    *at = (*at - mu) * scale + shift;
                }
            saved[ch] = mu;
            saved[c + ch] = inv;
        }
        if (b->training && b->mean && n)
            update_running(b->mean, ch, mean_sum / (double)groups, b->momentum);
        if (b->training && b->var && n)
            update_running(b->var, ch, var_sum / (double)groups, b->momentum);
    }
    rt_dtype dtype = (rt_dtype)x->dtype;
    if (!status)
        status = rt_from_doubles(data, dtype, x->sizes, x->rank, out);
    if (!status && save) {
        int64_t count = b->training ? c : 0;
        rt_dtype stats = b->weight ? (rt_dtype)b->weight->dtype : dtype;
        status = rt_from_doubles(saved, stats, &count, 1, &save[0]);
        if (!status)
            status = rt_from_doubles(saved + c, stats, &count, 1, &save[1]);
    }
    free(data);
    free(w);
    free(v);
    free(mean);
    free(var);
    free(saved);
    return status;
}

static batch_norm batch_norm_of(const rt_value *args) {
    return (batch_norm){.x = args[0].as.tensor,
                        .weight = rt_optional_tensor(args[1]),
                        .bias = rt_optional_tensor(args[2]),
                        .mean = rt_optional_tensor(args[3]),
                        .var = rt_optional_tensor(args[4]),
                        .training = args[5].as.i != 0,
                        .momentum = args[6].tag == RT_TAG_FLOAT ? args[6].as.f : 0,
                        .eps = args[7].as.f};
}

KERNEL(batch_norm) {
    batch_norm b = batch_norm_of(args);
    return run_batch_norm(&b, outs, NULL);
}

KERNEL(native_batch_norm) {
    batch_norm b = batch_norm_of(args);
    return run_batch_norm(&b, outs, outs + 1);
}

KERNEL(native_batch_norm_no_stats) {
    batch_norm b = {.x = args[0].as.tensor,
                    .weight = rt_optional_tensor(args[1]),
                    .bias = rt_optional_tensor(args[2]),
                    .training = args[3].as.i != 0,
                    .momentum = args[4].as.f,
                    .eps = args[5].as.f};
    return run_batch_norm(&b, outs, outs + 1);
}

KERNEL(batch_norm_with_update) { /* in training mode; the fourth result is a library's scratch */
    batch_norm b = {.x = args[0].as.tensor,
                    .weight = rt_optional_tensor(args[1]),
                    .bias = rt_optional_tensor(args[2]),
                    .mean = rt_optional_tensor(args[3]),
                    .var = rt_optional_tensor(args[4]),
                    .training = true,
                    .momentum = args[5].as.f,
                    .eps = args[6].as.f};
    int64_t none = 0;
    TS_TRY(run_batch_norm(&b, outs, outs + 1));
    return rt_from_doubles(NULL, RT_uint8, &none, 1, &outs[3]);
}

KERNEL(instance_norm) {
    batch_norm b = batch_norm_of(args);
    b.per_instance = b.training;
    return run_batch_norm(&b, outs, NULL);
}

/* Rows of `inner` elements, each normalised; weights by position or by channel. */
typedef struct row_norm {
    const rt_tensor *x, *weight, *bias;
    int64_t rows, inner;
    int64_t channels_per_row, channel_size; /* group norm; 0: weights go by position */
    int64_t groups;
    double eps;
    bool is_rms;
} row_norm;

static ts_status run_row_norm(const row_norm *r, const int64_t *stat_sizes, int stat_rank,
                              rt_value *out, rt_value *save) {
    double *data = NULL, *w = NULL, *b = NULL;
    double *stats = rt_new_doubles(2 * r->rows);
    ts_status status = stats ? rt_doubles(r->x, &data) : ts_no_memory();
    if (!status)
        status = rt_doubles(r->weight, &w);
    if (!status)
        status = rt_doubles(r->bias, &b);
    for (int64_t i = 0; i < r->rows && !status; i++) {
        double *row = data + i * r->inner, mean = 0, var = 0;
        if (r->is_rms) {
            for (int64_t j = 0; j < r->inner; j++)
                var += row[j] * row[j];
            var /= (double)r->inner;
        } else if (r->inner) {
            moments(row, 1, 0, r->inner, &mean, &var);
        }
        double inv = 1 / sqrt(var + r->eps);
        stats[i] = mean;
        stats[r->rows + i] = inv;
        for (int64_t j = 0; j < r->inner; j++) {
            int64_t at = r->channel_size ? i % r->groups * r->channels_per_row + j / r->channel_size
                                         : j;
            row[j] = (row[j] - mean) * inv * (w ? w[at] : 1) + (b ? b[at] : 0);
        }
    }
    rt_dtype dtype = (rt_dtype)r->x->dtype;
    rt_dtype stat_dtype = r->weight ? (rt_dtype)r->weight->dtype : dtype;
    if (!status)
        status = rt_from_doubles(data, dtype, r->x->sizes, r->x->rank, out);
    if (!status && save) {
        status = rt_from_doubles(stats, stat_dtype, stat_sizes, stat_rank, &save[0]);
        if (!status)
            status = rt_from_doubles(stats + r->rows, stat_dtype, stat_sizes, stat_rank, &save[1]);
    }
    free(data);
    free(w);
    free(b);
    free(stats);
    return status;
}

/* layer_norm, rms_norm: the last dims are one row. */
static ts_status last_dims(row_norm *r, rt_value shape, int64_t *stat_sizes) {
    int64_t sizes[RT_MAX_RANK];
    int rank;
    const rt_tensor *x = r->x;
    TS_TRY(rt_as_ints(shape, sizes, &rank));
    bool fits = rank >= 1 && rank <= x->rank;
    for (int i = 0; i < rank && fits; i++)
        fits = sizes[i] == x->sizes[x->rank - rank + i];
    if (!fits)
        return ts_raise("RuntimeError",
                        "Given normalized_shape of rank %d, expected input with the same last "
                        "dimensions, but got input of rank %d",
                        rank, x->rank);
    r->inner = r->rows = 1;
    for (int i = 0; i < x->rank; i++) {
        bool outside = i < x->rank - rank;
        *(outside ? &r->rows : &r->inner) *= x->sizes[i];
        stat_sizes[i] = outside ? x->sizes[i] : 1;
    }
    TS_TRY(check_vector(r->weight, r->inner, "weight"));
    return check_vector(r->bias, r->inner, "bias");
}

KERNEL(layer_norm) {
    int64_t stat_sizes[RT_MAX_RANK];
    row_norm r = {.x = args[0].as.tensor,
                  .weight = rt_optional_tensor(args[2]),
                  .bias = rt_optional_tensor(args[3]),
                  .eps = args[4].as.f};
    TS_TRY(last_dims(&r, args[1], stat_sizes));
    return run_row_norm(&r, NULL, 0, outs, NULL);
}

KERNEL(native_layer_norm) {
    int64_t stat_sizes[RT_MAX_RANK];
    row_norm r = {.x = args[0].as.tensor,
                  .weight = rt_optional_tensor(args[2]),
                  .bias = rt_optional_tensor(args[3]),
                  .eps = args[4].as.f};
    TS_TRY(last_dims(&r, args[1], stat_sizes));
    return run_row_norm(&r, stat_sizes, r.x->rank, outs, outs + 1);
}

static double machine_epsilon(rt_dtype dtype) {
    switch (dtype) {
    case RT_float64:
    case RT_complex128: return 0x1p-52;
    case RT_float16: return 0x1p-10;
    case RT_bfloat16: return 0x1p-7;
    default: return 0x1p-23;
    }
}

ts_status rt_ref_square(rt_context *context, const rt_value *args, rt_value *outs);
ts_status rt_ref_mean_dim(rt_context *context, const rt_value *args, rt_value *outs);
ts_status rt_ref_add(rt_context *context, const rt_value *args, rt_value *outs);
ts_status rt_ref_rsqrt(rt_context *context, const rt_value *args, rt_value *outs);
ts_status rt_ref_mul(rt_context *context, const rt_value *args, rt_value *outs);

/* x / sqrt(mean(x * x) + eps) * weight: the squares are complex too, as in PyTorch. */
static ts_status complex_rms_norm(rt_context *context, const rt_value *args, double eps, rt_value *out) {
    int64_t dims[RT_MAX_RANK];
    size_t count = args[1].as.list->count;
    for (size_t i = 0; i < count; i++)
        dims[i] = -1 - (int64_t)i;
    rt_value v[5] = {{0}}; /* dims, squares, their means, with eps, the factors */
    ts_status status = rt_int_list_make(dims, count, &v[0]);
    if (!status)
        status = rt_ref_square(context, args, &v[1]);
    if (!status)
        status = rt_ref_mean_dim(context, (rt_value[]){v[1], v[0], rt_bool(true), rt_none()}, &v[2]);
    if (!status)
        status = rt_ref_add(context, (rt_value[]){v[2], rt_float(eps), rt_int(1)}, &v[3]);
    if (!status)
        status = rt_ref_rsqrt(context, &v[3], &v[4]);
    if (!status)
        status = rt_ref_mul(context, (rt_value[]){args[0], v[4]}, out);
    if (!status && !rt_is_none(args[2])) {
        rt_value plain = *out;
        *out = rt_none();
        status = rt_ref_mul(context, (rt_value[]){plain, args[2]}, out);
        rt_release(plain);
    }
    for (size_t i = 0; i < 5; i++)
        rt_release(v[i]);
    return status;
}

KERNEL(rms_norm) {
    int64_t stat_sizes[RT_MAX_RANK];
    rt_dtype dtype = (rt_dtype)args[0].as.tensor->dtype;
    if (dtype == RT_float16 || dtype == RT_bfloat16) /* computed in float32: its epsilon */
        dtype = RT_float32;
    row_norm r = {.x = args[0].as.tensor,
                  .weight = rt_optional_tensor(args[2]),
                  .eps = rt_is_none(args[3]) ? machine_epsilon(dtype) : args[3].as.f,
                  .is_rms = true};
    TS_TRY(last_dims(&r, args[1], stat_sizes));
    if (rt_dtype_is_complex(dtype))
        return complex_rms_norm(context, args, r.eps, outs);
    return run_row_norm(&r, NULL, 0, outs, NULL);
}

static ts_status group_norm(const rt_tensor *x, rt_value weight, rt_value bias, int64_t groups,
                            double eps, rt_value *out, rt_value *save) {
    if (x->rank < 2)
        return ts_raise("RuntimeError", "Expected at least 2 dimensions for input tensor but "
                                        "received %d",
                        x->rank);
    int64_t n = x->sizes[0], c = x->sizes[1];
    if (groups <= 0 || c % groups != 0)
        return ts_raise("RuntimeError",
                        "Expected number of channels in input to be divisible by num_groups, but "
                        "got input of %lld channels and num_groups=%lld",
                        (long long)c, (long long)groups);
    row_norm r = {.x = x,
                  .weight = rt_optional_tensor(weight),
                  .bias = rt_optional_tensor(bias),
                  .rows = n * groups,
                  .groups = groups,
                  .channels_per_row = c / groups,
                  .eps = eps};
    r.channel_size = n && c ? x->element_count / (n * c) : 0;
    r.inner = r.channels_per_row * r.channel_size;
    TS_TRY(check_vector(r.weight, c, "weight"));
    TS_TRY(check_vector(r.bias, c, "bias"));
    int64_t sizes[2] = {n, groups};
    return run_row_norm(&r, sizes, 2, out, save);
}

KERNEL(group_norm) {
    return group_norm(args[0].as.tensor, args[2], args[3], args[1].as.i, args[4].as.f, outs, NULL);
}

KERNEL(native_group_norm) {
    return group_norm(args[0].as.tensor, args[1], args[2], args[6].as.i, args[7].as.f, outs,
                      outs + 1);
}

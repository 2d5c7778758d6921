/* runtime/ops/ref_random.c - random tensors as PyTorch's CPU kernels draw them.
 *
 * The order of draws is ATen's (DistributionTemplates.h), and so are the fused multiply-adds. A
 * tensor is filled in the order in which its elements lie, as ATen's iterators go; a new one that
 * is like another is drawn in the other's order, whose strides it has there. */
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/generator.h"
#include "runtime/ops/tensor_ops.h"

typedef double (*draw_function)(rt_generator *g, rt_dtype dtype, const double *p);

static double uniform01(rt_generator *g, rt_dtype dtype) {
    return dtype == RT_float64 ? rt_uniform_double(g) : rt_uniform_float(g);
}

/* t with its dims in the order of the strides of a tensor of the same sizes; itself, not to be
 * released, where that is its own. */
static ts_status in_order(rt_tensor *t, const rt_tensor *order, rt_tensor **out) {
    int64_t sizes[RT_MAX_RANK], strides[RT_MAX_RANK];
    int dims[RT_MAX_RANK], count = 0;
    *out = t;
    if (rt_tensor_is_contiguous(order) || order->rank != t->rank)
        return NULL;
    for (int d = 0; d < t->rank; d++) { /* the largest first; those that are equal stay */
        int at = count++;
        for (; at > 0 && order->strides[dims[at - 1]] < order->strides[d]; at--)
            dims[at] = dims[at - 1];
        dims[at] = d;
    }
    for (int d = 0; d < count; d++) {
        sizes[d] = t->sizes[dims[d]];
        strides[d] = t->strides[dims[d]];
    }
    return rt_tensor_alias(t, 0, sizes, strides, t->rank, out);
}

static void release_order(const rt_tensor *t, rt_tensor *laid) {
    if (laid != t)
        rt_tensor_release(laid);
}

/* Real tensors a number each, complex ones two. */
static ts_status each(rt_tensor *t, const rt_tensor *order, rt_generator *g, draw_function draw,
                      const double *p) {
    rt_cursor c;
    rt_tensor *laid;
    rt_dtype dtype = (rt_dtype)t->dtype, part = rt_dtype_real(dtype);
    TS_TRY(in_order(t, order, &laid));
    for (rt_cursor_start(&c, laid); c.left; rt_cursor_next(&c)) {
        if (rt_dtype_is_complex(dtype)) {
            rt_complex128 v;
            v.re = draw(g, part, p);
            v.im = draw(g, part, p);
            rt_store_complex(dtype, c.data, v);
        } else {
            rt_store_double(dtype, c.data, draw(g, dtype, p));
        }
    }
    release_order(t, laid);
    return NULL;
}

static double draw_uniform(rt_generator *g, rt_dtype dtype, const double *p) {
    double u = uniform01(g, dtype);
    if (dtype == RT_float64)
        return fma(u, p[1] - p[0], p[0]);
    float from = (float)p[0], to = (float)p[1], v = fmaf((float)u, to - from, from);
    if (dtype == RT_float32)
        return v;
    char rounded[2], bound[2]; /* in 16 bits: what rounds to the upper bound is the lower one */
    rt_store_double(dtype, rounded, v);
    rt_store_double(dtype, bound, to);
    return memcmp(rounded, bound, 2) == 0 ? from : v;
}

static double draw_normal(rt_generator *g, TS_UNUSED rt_dtype dtype, const double *p) {
    return fma(rt_normal(g), p[1], p[0]);
}

static double draw_log_normal(rt_generator *g, TS_UNUSED rt_dtype dtype, const double *p) {
    return exp(fma(rt_normal(g), p[1], p[0]));
}

static double draw_cauchy(rt_generator *g, TS_UNUSED rt_dtype dtype, const double *p) {
    return p[0] + p[1] * tan(3.14159265358979323846 * (rt_uniform_double(g) - 0.5));
}

static double draw_geometric(rt_generator *g, TS_UNUSED rt_dtype dtype, const double *p) {
    return ceil(log(rt_uniform_double(g)) / log1p(-p[0]));
}

/* Blocks of 16: eight radii, eight angles; a tail is drawn anew as the last 16. In 16 bits it was
 * not drawn before. */
static ts_status normal_fill(rt_tensor *t, rt_generator *g, const double *p) {
    rt_dtype dtype = (rt_dtype)t->dtype;
    int64_t n = t->element_count;
    size_t bytes = rt_dtype_size(dtype);
    double *u = malloc((size_t)n * sizeof *u);
    if (!u)
        return ts_no_memory();
    for (int64_t i = 0; i < (bytes == 2 ? n / 16 * 16 : n); i++)
        u[i] = uniform01(g, dtype);
    for (int64_t at = 0; at < n; at += 16) {
        if (at + 16 > n) {
            at = n - 16;
            for (int64_t i = at; i < n; i++)
                u[i] = uniform01(g, dtype);
        }
        for (int64_t i = at; i < at + 8; i++) {
            double radius = sqrt(-2 * log(1 - u[i]));
            double theta = 2 * 3.14159265358979323846 * u[i + 8];
            u[i] = radius * cos(theta) * p[1] + p[0];
            u[i + 8] = radius * sin(theta) * p[1] + p[0];
        }
    }
    for (int64_t i = 0; i < n; i++)
        rt_store_double(dtype, (char *)t->data + (size_t)i * bytes, u[i]);
    free(u);
    return NULL;
}

static ts_status normal_into(rt_tensor *t, const rt_tensor *order, rt_generator *g, double mean,
                             double std) {
    double p[2] = {mean, std};
    bool is_complex = rt_dtype_is_complex((rt_dtype)t->dtype);
    if (!(std >= 0))
        return ts_raise("RuntimeError", "normal expects std >= 0.0, but found std %g", std);
    if (is_complex)
        p[1] = std * sqrt(0.5);
    if (!rt_tensor_is_contiguous(order))
        return each(t, order, g, draw_normal, p);
    if (is_complex) {
        rt_cursor c; /* a pair of reals of half the variance; drawn as one real tensor */
        int64_t n = 2 * t->element_count;
        rt_dtype part = rt_dtype_real((rt_dtype)t->dtype);
        rt_tensor *real;
        TS_TRY(rt_tensor_make(part, &n, 1, &real));
        ts_status status = normal_into(real, real, g, mean, p[1]);
        const char *data = real->data;
        size_t bytes = rt_dtype_size(part);
        for (rt_cursor_start(&c, t); c.left && !status; rt_cursor_next(&c), data += 2 * bytes)
            memcpy(c.data, data, 2 * bytes);
        rt_tensor_release(real);
        return status;
    }
    return t->element_count >= 16 ? normal_fill(t, g, p) : each(t, t, g, draw_normal, p);
}

static ts_status uniform_into(rt_tensor *t, const rt_tensor *order, rt_generator *g, double from,
                              double to) {
    return each(t, order, g, draw_uniform, (double[]){from, to});
}

/* A range of 0 stands for 2^64: the draws as they are. */
static ts_status int_into(rt_tensor *t, const rt_tensor *order, rt_generator *g, int64_t low,
                          uint64_t range, bool is_wide) {
    rt_cursor c;
    rt_tensor *laid;
    rt_dtype dtype = (rt_dtype)t->dtype;
    TS_TRY(in_order(t, order, &laid));
    for (rt_cursor_start(&c, laid); c.left; rt_cursor_next(&c)) {
        uint64_t r = is_wide ? rt_random64(g) : rt_random32(g);
        rt_store_int(dtype, c.data, (int64_t)(range ? r % range + (uint64_t)low : r));
    }
    release_order(t, laid);
    return NULL;
}

static ts_status randint_into(rt_tensor *t, const rt_tensor *order, rt_generator *g, int64_t low,
                              int64_t high) {
    if (low >= high)
        return ts_raise("RuntimeError",
                        "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld",
                        (long long)low, (long long)high);
    uint64_t range = (uint64_t)high - (uint64_t)low;
    return int_into(t, order, g, low, range, range >= UINT64_C(1) << 28);
}

/* ---- new tensors ---- */

typedef ts_status (*fill_function)(rt_tensor *t, const rt_tensor *order, rt_generator *g, double a,
                                   double b);

/* order: the tensor that it is like, or NULL. */
static ts_status make(rt_context *context, rt_value generator, const int64_t *sizes, int rank,
                      rt_dtype dtype, const rt_tensor *order, fill_function fill, double a,
                      double b, rt_value *out) {
    rt_generator *g;
    rt_tensor *t;
    TS_TRY(rt_generator_of(context, generator, &g));
    if (rt_dtype_category(dtype) != 'f' && rt_dtype_category(dtype) != 'c')
        return rt_not_implemented(fill == normal_into ? "normal_kernel_cpu" : "check_uniform_bounds",
                                  dtype);
    TS_TRY(rt_tensor_make(dtype, sizes, rank, &t));
    ts_status status = fill(t, order ? order : t, g, a, b);
    if (status)
        rt_tensor_release(t);
    else
        *out = rt_from_tensor(t);
    return status;
}

static ts_status sized(rt_context *context, rt_value size, rt_value generator, rt_value dtype,
                       fill_function fill, rt_value *out) {
    int64_t sizes[RT_MAX_RANK];
    int rank;
    TS_TRY(rt_as_ints(size, sizes, &rank));
    return make(context, generator, sizes, rank, rt_as_dtype(dtype, RT_float32), NULL, fill, 0, 1,
                out);
}

static ts_status like(rt_context *context, rt_value self, rt_value generator, rt_value dtype,
                      fill_function fill, rt_value *out) {
    const rt_tensor *t = self.as.tensor;
    return make(context, generator, t->sizes, t->rank, rt_as_dtype(dtype, (rt_dtype)t->dtype), t,
                fill, 0, 1, out);
}

KERNEL(rand) { return sized(context, args[0], rt_none(), args[1], uniform_into, outs); }
KERNEL(rand_generator) { return sized(context, args[0], args[1], args[2], uniform_into, outs); }
KERNEL(randn) { return sized(context, args[0], rt_none(), args[1], normal_into, outs); }
KERNEL(randn_generator) { return sized(context, args[0], args[1], args[2], normal_into, outs); }
KERNEL(rand_like) { return like(context, args[0], rt_none(), args[1], uniform_into, outs); }
KERNEL(rand_like_generator) { return like(context, args[0], args[1], args[2], uniform_into, outs); }
KERNEL(randn_like) { return like(context, args[0], rt_none(), args[1], normal_into, outs); }
KERNEL(randn_like_generator) { return like(context, args[0], args[1], args[2], normal_into, outs); }

KERNEL(normal_float_float) {
    int64_t sizes[RT_MAX_RANK];
    int rank;
    TS_TRY(rt_as_ints(args[2], sizes, &rank));
    return make(context, args[3], sizes, rank, rt_as_dtype(args[4], RT_float32), NULL, normal_into,
                args[0].as.f, args[1].as.f, outs);
}

static ts_status randint(rt_context *context, rt_value low, rt_value high, const int64_t *sizes,
                         int rank, const rt_tensor *order, rt_value generator, rt_dtype dtype,
                         rt_value *out) {
    rt_generator *g;
    rt_tensor *t;
    TS_TRY(rt_generator_of(context, generator, &g));
    TS_TRY(rt_tensor_make(dtype, sizes, rank, &t));
    ts_status status = randint_into(t, order ? order : t, g, rt_as_int(low), rt_as_int(high));
    if (status)
        rt_tensor_release(t);
    else
        *out = rt_from_tensor(t);
    return status;
}

#define RANDINT(name, low, high, size, generator, dtype)                                           \
    KERNEL(name) {                                                                                 \
        int64_t sizes[RT_MAX_RANK];                                                                \
        int rank;                                                                                  \
        TS_TRY(rt_as_ints(size, sizes, &rank));                                                    \
        return randint(context, low, high, sizes, rank, NULL, generator,                           \
                       rt_as_dtype(dtype, RT_int64), outs);                                        \
    }
RANDINT(randint, rt_int(0), args[0], args[1], rt_none(), args[2])
RANDINT(randint_generator, rt_int(0), args[0], args[1], args[2], args[3])
RANDINT(randint_low, args[0], args[1], args[2], rt_none(), args[3])
RANDINT(randint_low_generator, args[0], args[1], args[2], args[3], args[4])

#define RANDINT_LIKE(name, low, high, generator, dtype_value)                                      \
    KERNEL(name) {                                                                                 \
        const rt_tensor *t = args[0].as.tensor;                                                    \
        return randint(context, low, high, t->sizes, t->rank, t, generator,                        \
                       rt_as_dtype(dtype_value, (rt_dtype)t->dtype), outs);                        \
    }
RANDINT_LIKE(randint_like, rt_int(0), args[1], rt_none(), args[2])
RANDINT_LIKE(randint_like_generator, rt_int(0), args[1], args[2], args[3])
RANDINT_LIKE(randint_like_low, args[1], args[2], rt_none(), args[3])
RANDINT_LIKE(randint_like_low_generator, args[1], args[2], args[3], args[4])

static ts_status randperm(rt_context *context, int64_t n, rt_value generator, rt_value dtype_value,
                          rt_value *out) {
    rt_generator *g;
    rt_tensor *t;
    rt_dtype dtype = rt_as_dtype(dtype_value, RT_int64);
    size_t bytes = rt_dtype_size(dtype);
    if (n < 0)
        return ts_raise("RuntimeError", "n must be non-negative, got %lld", (long long)n);
    TS_TRY(rt_generator_of(context, generator, &g));
    TS_TRY(rt_tensor_make(dtype, &n, 1, &t));
    char *data = t->data;
    for (int64_t i = 0; i < n; i++)
        rt_store_int(dtype, data + (size_t)i * bytes, i);
    for (int64_t i = 0; i + 1 < n; i++) {
        char keep[16];
        uint64_t r = n < UINT32_MAX / 20 ? rt_random32(g) : rt_random64(g);
        char *a = data + (size_t)i * bytes;
        char *b = data + (size_t)(i + (int64_t)(r % (uint64_t)(n - i))) * bytes;
        memcpy(keep, a, bytes);
        memmove(a, b, bytes);
        memcpy(b, keep, bytes);
    }
    *out = rt_from_tensor(t);
    return NULL;
}

KERNEL(randperm) { return randperm(context, args[0].as.i, rt_none(), args[1], outs); }
KERNEL(randperm_generator) { return randperm(context, args[0].as.i, args[1], args[2], outs); }

/* ---- in place ---- */

#define IN_PLACE(name, generator_at, statement)                                                    \
    KERNEL(name) {                                                                                 \
        rt_generator *g;                                                                           \
        rt_tensor *t = args[0].as.tensor;                                                          \
        TS_TRY(rt_generator_of(context, args[generator_at], &g));                                  \
        TS_TRY(rt_check_writable(t));                                                              \
        TS_TRY(statement);                                                                         \
        outs[0] = rt_retain(args[0]);                                                              \
        return NULL;                                                                               \
    }

static ts_status check_bounds(rt_tensor *t, rt_generator *g, double from, double to) {
    if (!(from <= to))
        return ts_raise("RuntimeError",
                        "uniform_ expects to return a [from, to) range, but found from=%g > to=%g",
                        from, to);
    return uniform_into(t, t, g, from, to);
}

/* One more than the largest whole number of the dtype, up to which it has all of them. */
static uint64_t whole_numbers(rt_dtype dtype) {
    switch (dtype) {
    case RT_bool: return 2;
    case RT_uint8: return 256;
    case RT_int8: return 128;
    case RT_int16: return 32768;
    case RT_int32: return (uint64_t)INT32_MAX + 1;
    case RT_float16: return 2049;
    case RT_bfloat16: return 257;
    case RT_float32: return (1 << 24) + 1;
    case RT_float64: return (UINT64_C(1) << 53) + 1;
    default: return (uint64_t)INT64_MAX + 1;
    }
}

/* All whole numbers of the dtype: a word each, two where they have more bits. */
static ts_status random_whole(rt_tensor *t, rt_generator *g) {
    rt_dtype dtype = (rt_dtype)t->dtype;
    return int_into(t, t, g, 0, whole_numbers(dtype), dtype == RT_int64 || dtype == RT_float64);
}

static ts_status random_into(rt_tensor *t, rt_generator *g, int64_t from) {
    uint64_t end = whole_numbers((rt_dtype)t->dtype);
    if (from >= 0 && (uint64_t)from >= end)
        return randint_into(t, t, g, from, from);
    uint64_t range = end - (uint64_t)from;
    return int_into(t, t, g, from, range, !range || range >= UINT64_C(1) << 28);
}

IN_PLACE(uniform_, 3, check_bounds(t, g, args[1].as.f, args[2].as.f))
IN_PLACE(normal_, 3, normal_into(t, t, g, args[1].as.f, args[2].as.f))
IN_PLACE(log_normal_, 3, each(t, t, g, draw_log_normal, (double[]){args[1].as.f, args[2].as.f}))
IN_PLACE(cauchy_, 3, each(t, t, g, draw_cauchy, (double[]){args[1].as.f, args[2].as.f}))
IN_PLACE(geometric_, 2, each(t, t, g, draw_geometric, (double[]){args[1].as.f}))
IN_PLACE(random_, 1, random_whole(t, g))
IN_PLACE(random__to, 2, randint_into(t, t, g, 0, args[1].as.i))
IN_PLACE(random__from, 3,
         rt_is_none(args[2]) ? random_into(t, g, args[1].as.i)
                             : randint_into(t, t, g, args[1].as.i, args[2].as.i))

static ts_status bernoulli_into(rt_tensor *t, const rt_tensor *order, rt_generator *g, double p) {
    rt_cursor c;
    rt_tensor *laid;
    if (!(p >= 0 && p <= 1))
        return ts_raise("RuntimeError", "bernoulli_ expects p to be in [0, 1], but got p=%g", p);
    TS_TRY(in_order(t, order, &laid));
    for (rt_cursor_start(&c, laid); c.left; rt_cursor_next(&c))
        rt_store_int((rt_dtype)t->dtype, c.data, rt_uniform_double(g) < p);
    release_order(t, laid);
    return NULL;
}

static double exponential(rt_generator *g) { return -log1p(-rt_uniform_double(g)); }

static double draw_exponential(rt_generator *g, TS_UNUSED rt_dtype dtype, const double *p) {
    return exponential(g) / p[0];
}

static ts_status exponential_into(rt_tensor *t, rt_generator *g, double lambda) {
    if (!(lambda > 0))
        return ts_raise("RuntimeError", "exponential_ expects lambda > 0.0, but found lambda=%g",
                        lambda);
    return each(t, t, g, draw_exponential, &lambda);
}

IN_PLACE(bernoulli__float, 2, bernoulli_into(t, t, g, args[1].as.f))
IN_PLACE(exponential_, 2, exponential_into(t, g, args[1].as.f))

/* Each element its own probability: the generator's own draws. */
static ts_status bernoulli_each(rt_tensor *t, const rt_tensor *p, rt_generator *g) {
    rt_cursor a, b;
    rt_tensor *wide, *laid = t, *given = NULL;
    rt_dtype dtype = (rt_dtype)p->dtype;
    TS_TRY(rt_tensor_expand(p, t->sizes, t->rank, &wide));
    ts_status status = in_order(wide, t, &given);
    if (!status)
        status = in_order(t, t, &laid);
    if (!status)
        rt_cursor_start(&b, given);
    for (rt_cursor_start(&a, laid); a.left && !status; rt_cursor_next(&a), rt_cursor_next(&b)) {
        double x = rt_load_double(dtype, b.data);
        if (!(x >= 0 && x <= 1))
            status = ts_raise("RuntimeError", "Expected p_in >= 0 && p_in <= 1 to be true, but got "
                                              "false");
        else
            rt_store_int((rt_dtype)t->dtype, a.data,
                         (dtype == RT_float64 ? rt_uniform_double(g) : rt_uniform_float(g)) < x);
    }
    if (given)
        release_order(wide, given);
    release_order(t, laid);
    rt_tensor_release(wide);
    return status;
}

IN_PLACE(bernoulli__Tensor, 2, bernoulli_each(t, args[1].as.tensor, g))

static ts_status made_like(const rt_tensor *self, rt_tensor **out) {
    return rt_tensor_make((rt_dtype)self->dtype, self->sizes, self->rank, out);
}

#define MADE_LIKE(name, generator_at, statement)                                                   \
    KERNEL(name) {                                                                                 \
        rt_generator *g;                                                                           \
        rt_tensor *t;                                                                              \
        TS_TRY(rt_generator_of(context, args[generator_at], &g));                                  \
        TS_TRY(made_like(args[0].as.tensor, &t));                                                  \
        ts_status status = (statement);                                                            \
        if (status)                                                                                \
            rt_tensor_release(t);                                                                  \
        else                                                                                       \
            outs[0] = rt_from_tensor(t);                                                           \
        return status;                                                                             \
    }
MADE_LIKE(bernoulli, 1, bernoulli_each(t, args[0].as.tensor, g))
MADE_LIKE(bernoulli_p, 2, bernoulli_into(t, args[0].as.tensor, g, args[1].as.f))
MADE_LIKE(bernoulli_Tensor, 2, bernoulli_each(t, args[1].as.tensor, g))

/* mean and std broadcast: standard normals, then scaled. */
static ts_status normal_of(rt_context *context, rt_value mean, rt_value std, rt_value generator,
                           rt_value *out) {
    rt_generator *g;
    rt_tensor *t, *a = NULL, *b = NULL;
    int64_t sizes[RT_MAX_RANK];
    int rank = 0;
    const rt_tensor *m = mean.tag == RT_TAG_TENSOR ? mean.as.tensor : NULL;
    const rt_tensor *s = std.tag == RT_TAG_TENSOR ? std.as.tensor : NULL;
    TS_TRY(rt_generator_of(context, generator, &g));
    TS_TRY(rt_broadcast(m ? m->sizes : NULL, m ? m->rank : 0, s ? s->sizes : NULL, s ? s->rank : 0,
                        sizes, &rank));
    rt_dtype dtype = (rt_dtype)(m ? m : s)->dtype;
    TS_TRY(rt_tensor_make(dtype, sizes, rank, &t));
    ts_status status = normal_into(t, t, g, 0, 1);
    if (!status && m)
        status = rt_tensor_expand(m, sizes, rank, &a);
    if (!status && s)
        status = rt_tensor_expand(s, sizes, rank, &b);
    if (!status) {
        rt_cursor c, x, y;
        if (a)
            rt_cursor_start(&x, a);
        if (b)
            rt_cursor_start(&y, b);
        for (rt_cursor_start(&c, t); c.left; rt_cursor_next(&c)) {
            double mu = a ? rt_load_double((rt_dtype)a->dtype, x.data) : mean.as.f;
            double sigma = b ? rt_load_double((rt_dtype)b->dtype, y.data) : std.as.f;
            rt_store_double(dtype, c.data, rt_load_double(dtype, c.data) * sigma + mu);
            if (a)
                rt_cursor_next(&x);
            if (b)
                rt_cursor_next(&y);
        }
        *out = rt_from_tensor(t);
    } else {
        rt_tensor_release(t);
    }
    rt_tensor_release(a);
    rt_tensor_release(b);
    return status;
}

KERNEL(normal_of) { return normal_of(context, args[0], args[1], args[2], outs); }

/* ---- multinomial ---- */

static ts_status check_weights(const double *w, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!(w[i] >= 0) || isinf(w[i]))
            return ts_raise("RuntimeError",
                            "probability tensor contains either `inf`, `nan` or element < 0");
        sum += w[i];
    }
    return sum > 0 ? NULL
                   : ts_raise("RuntimeError",
                              "invalid multinomial distribution (sum of probabilities <= 0)");
}

static ts_status multinomial_rows(const rt_tensor *p, rt_generator *g, int64_t samples,
                                  bool replacement, double *w, int64_t *out) {
    int64_t n = p->sizes[p->rank - 1], rows = p->rank == 2 ? p->sizes[0] : 1;
    rt_dtype dtype = (rt_dtype)p->dtype;
    size_t bytes = rt_dtype_size(dtype);
    double *q = w + n;
    bool by_race = !replacement || samples == 1;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < n; i++)
            w[i] = rt_load_double(dtype, (char *)p->data + (size_t)(r * n + i) * bytes);
        TS_TRY(check_weights(w, n));
        if (by_race) { /* exponential race: the largest w / q wins */
            for (int64_t i = 0; i < n; i++)
                q[i] = w[i] / (float)exponential(g);
            for (int64_t k = 0; k < samples; k++) {
                int64_t best = 0;
                for (int64_t i = 1; i < n; i++)
                    if (q[i] > q[best])
                        best = i;
                q[best] = -1;
                out[r * samples + k] = best;
            }
            continue;
        }
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            q[i] = sum += w[i];
        for (int64_t k = 0; k < samples; k++) {
            double u = rt_uniform_double(g);
            int64_t low = 0, high = n;
            while (high > low) {
                int64_t middle = low + (high - low) / 2;
                if (q[middle] / sum < u)
                    low = middle + 1;
                else
                    high = middle;
            }
            out[r * samples + k] = low < n ? low : n - 1;
        }
    }
    return NULL;
}

KERNEL(multinomial) {
    rt_tensor *p = args[0].as.tensor, *row, *t;
    int64_t samples = args[1].as.i;
    rt_generator *g;
    TS_TRY(rt_generator_of(context, args[3], &g));
    if (p->rank < 1 || p->rank > 2)
        return ts_raise("RuntimeError", "prob_dist must be 1 or 2 dim");
    if (!rt_dtype_is_float((rt_dtype)p->dtype))
        return ts_raise("RuntimeError",
                        "multinomial only supports floating-point dtypes for input, got: %s",
                        rt_dtype_message_name((rt_dtype)p->dtype));
    if (samples <= 0)
        return ts_raise("RuntimeError", "cannot sample n_sample <= 0 samples");
    int64_t n = p->sizes[p->rank - 1];
    if (!args[2].as.i && samples > n)
        return ts_raise("RuntimeError",
                        "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
    int64_t sizes[2] = {p->sizes[0], samples};
    TS_TRY(rt_tensor_make(RT_int64, p->rank == 2 ? sizes : &samples, p->rank, &t));
    ts_status status = rt_tensor_contiguous(p, &row);
    double *w = calloc((size_t)(n > 0 ? 2 * n : 1), sizeof *w);
    if (!status) {
        status = w ? multinomial_rows(row, g, samples, args[2].as.i != 0, w, t->data)
                   : ts_no_memory();
        rt_tensor_release(row);
    }
    free(w);
    if (status)
        rt_tensor_release(t);
    else
        outs[0] = rt_from_tensor(t);
    return status;
}

/* ---- dropout ---- */

typedef enum dropout_kind { DROP, DROP_FEATURE = 1, DROP_ALPHA = 2 } dropout_kind;

/* out = input * noise [+ offset]; features share the draw of their channel. */
static ts_status dropout(rt_context *context, const rt_value *args, int kind, rt_value *out) {
    rt_tensor *x = args[0].as.tensor, *noise, *t;
    double p = args[1].as.f;
    rt_generator *g;
    if (!(p >= 0 && p <= 1))
        return ts_raise("RuntimeError",
                        "dropout probability has to be between 0 and 1, but got %g", p);
    if (p == 0 || !args[2].as.i || x->element_count == 0) {
        *out = rt_retain(args[0]);
        return NULL;
    }
    TS_TRY(rt_generator_of(context, rt_none(), &g));
    int64_t sizes[RT_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        sizes[i] = (kind & DROP_FEATURE) && i >= 2 ? 1 : x->sizes[i];
    rt_dtype dtype = (rt_dtype)x->dtype;
    TS_TRY(rt_tensor_make(dtype, sizes, x->rank, &noise));
    const rt_tensor *order = kind & DROP_FEATURE ? noise : x;
    ts_status status = p < 1 ? bernoulli_into(noise, order, g, 1 - p) : NULL;
    rt_tensor *wide = NULL;
    t = NULL;
    if (!status)
        status = rt_tensor_expand(noise, x->sizes, x->rank, &wide);
    if (!status)
        status = made_like(x, &t);
    if (!status) {
        const double alpha = 1.7580993408473766;
        double a = 1 / sqrt((alpha * alpha * p + 1) * (1 - p));
        rt_cursor c, n, r;
        rt_cursor_start(&n, wide);
        rt_cursor_start(&r, t);
        for (rt_cursor_start(&c, x); c.left;
             rt_cursor_next(&c), rt_cursor_next(&n), rt_cursor_next(&r)) {
            double keep = p < 1 ? rt_load_double(dtype, n.data) : 0, v;
            if (rt_dtype_is_complex(dtype)) {
                rt_complex128 z = rt_load_complex(dtype, c.data);
                z.re *= keep / (1 - p);
                z.im *= keep / (1 - p);
                rt_store_complex(dtype, r.data, p == 1 ? (rt_complex128){0, 0} : z);
                continue;
            }
            v = rt_load_double(dtype, c.data);
            if (kind & DROP_ALPHA)
                v = p == 1 ? 0 : v * (a * keep) + ((keep - 1) * (alpha * a) + alpha * a * p);
            else if (dtype == RT_float32)
                v = p == 1 ? v * 0 : v * (float)((float)keep / (float)(1 - p));
            else
                v = p == 1 ? v * 0 : v * (keep / (1 - p));
            rt_store_double(dtype, r.data, v);
        }
        *out = rt_from_tensor(t);
    }
    rt_tensor_release(wide);
    rt_tensor_release(noise);
    return status;
}

KERNEL(dropout) { return dropout(context, args, DROP, outs); }
KERNEL(feature_dropout) { return dropout(context, args, DROP_FEATURE, outs); }
KERNEL(alpha_dropout) { return dropout(context, args, DROP_ALPHA, outs); }
KERNEL(feature_alpha_dropout) { return dropout(context, args, DROP_FEATURE | DROP_ALPHA, outs); }

KERNEL(native_dropout) {
    rt_tensor *x = args[0].as.tensor, *mask, *t;
    double p = args[1].as.f;
    bool train = rt_is_none(args[2]) || args[2].as.i;
    rt_generator *g;
    TS_TRY(rt_generator_of(context, rt_none(), &g));
    TS_TRY(rt_tensor_make(RT_bool, x->sizes, x->rank, &mask));
    ts_status status = NULL;
    if (!train || p == 0)
        memset(mask->data, 1, (size_t)mask->element_count);
    else if (p < 1)
        status = bernoulli_into(mask, x, g, 1 - p);
    else
        memset(mask->data, 0, (size_t)mask->element_count);
    if (!status)
        status = made_like(x, &t);
    if (status) {
        rt_tensor_release(mask);
        return status;
    }
    rt_cursor c;
    const uint8_t *keep = mask->data;
    char *to = t->data;
    double scale = !train || p == 0 ? 1 : p < 1 ? 1 / (1 - p) : 0;
    for (rt_cursor_start(&c, x); c.left; rt_cursor_next(&c)) {
        rt_store_double((rt_dtype)t->dtype, to,
                        rt_load_double((rt_dtype)x->dtype, c.data) * *keep++ * scale);
        to += rt_dtype_size((rt_dtype)t->dtype);
    }
    outs[0] = rt_from_tensor(t);
    outs[1] = rt_from_tensor(mask);
    return NULL;
}

/* rrelu in training: a slope of its own for each element that is not positive. */
static ts_status rrelu(rt_context *context, const rt_tensor *x, rt_tensor *noise, rt_value lower,
                       rt_value upper, bool training, rt_value generator, rt_value *out) {
    rt_tensor *t;
    rt_generator *g = NULL;
    double low = rt_as_double(lower), high = rt_as_double(upper);
    rt_dtype dtype = (rt_dtype)x->dtype;
    if (training) { /* the bounds are numbers of the dtype */
        char bound[16];
        TS_TRY(rt_generator_of(context, generator, &g));
        rt_store_double(dtype, bound, low);
        low = rt_load_double(dtype, bound);
        rt_store_double(dtype, bound, high);
        high = rt_load_double(dtype, bound);
    }
    TS_TRY(made_like(x, &t));
    rt_cursor c, n;
    char *to = t->data;
    if (noise)
        rt_cursor_start(&n, noise);
    for (rt_cursor_start(&c, x); c.left; rt_cursor_next(&c)) {
        double v = rt_load_double(dtype, c.data), slope = 1;
        if (!training && v < 0)
            slope = (low + high) / 2;
        else if (training && v <= 0)
            slope = rt_uniform_double(g) * (high - low) + low;
        if (noise) {
            if (training)
                rt_store_double(dtype, n.data, slope);
            rt_cursor_next(&n);
        }
        rt_store_double(dtype, to, v * slope);
        to += rt_dtype_size(dtype);
    }
    *out = rt_from_tensor(t);
    return NULL;
}

KERNEL(rrelu) {
    if (rt_as_double(args[1]) > rt_as_double(args[2]))
        return ts_raise("RuntimeError", "Lower bound should be less than or equal to the upper bound");
    return rrelu(context, args[0].as.tensor, NULL, args[1], args[2], args[3].as.i != 0, args[4],
                 outs);
}

KERNEL(rrelu_with_noise) {
    return rrelu(context, args[0].as.tensor, args[1].as.tensor, args[2], args[3],
                 args[4].as.i != 0, args[5], outs);
}

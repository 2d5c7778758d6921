/* runtime/ops/ref_factory.c - tensors made from sizes, numbers and lists. */
#include <math.h>

#include "runtime/base/checked.h"
#include "runtime/ops/tensor_ops.h"

static ts_status fill(rt_tensor *t, rt_value number) {
    char *data = t->data;
    size_t bytes = rt_dtype_size((rt_dtype)t->dtype);
    if (t->element_count == 0)
        return NULL;
    if (rt_dtype_is_complex((rt_dtype)t->dtype))
        rt_store_complex((rt_dtype)t->dtype, data, rt_as_complex(number));
    else if (number.tag == RT_TAG_FLOAT || number.tag == RT_TAG_TENSOR)
        rt_store_double((rt_dtype)t->dtype, data, rt_as_double(number));
    else
        rt_store_int((rt_dtype)t->dtype, data, rt_as_int(number));
    for (int64_t i = 1; i < t->element_count; i++)
        memcpy(data + (size_t)i * bytes, data, bytes);
    return NULL;
}

static ts_status done(rt_tensor *t, rt_value *out) {
    *out = rt_from_tensor(t);
    return NULL;
}

static ts_status constant(const int64_t *sizes, int rank, rt_dtype dtype, rt_value number,
                          rt_value *out) {
    rt_tensor *t;
    TS_TRY(rt_tensor_make(dtype, sizes, rank, &t));
    TS_TRY(fill(t, number));
    return done(t, out);
}

static ts_status sized(rt_value size, rt_value dtype, rt_dtype other, rt_value number,
                       rt_value *out) {
    int64_t sizes[RT_MAX_RANK];
    int rank;
    TS_TRY(rt_as_ints(size, sizes, &rank));
    return constant(sizes, rank, rt_as_dtype(dtype, other), number, out);
}

static ts_status like(rt_value self, rt_value dtype, rt_value number, rt_value *out) {
    const rt_tensor *t = self.as.tensor;
    return constant(t->sizes, t->rank, rt_as_dtype(dtype, (rt_dtype)t->dtype), number, out);
}

static rt_dtype number_dtype(rt_value v) {
    switch (v.tag) {
    case RT_TAG_BOOL: return RT_bool;
    case RT_TAG_INT: return RT_int64;
    case RT_TAG_COMPLEX: return RT_complex64;
    case RT_TAG_TENSOR: return (rt_dtype)v.as.tensor->dtype;
    default: return RT_float32;
    }
}

KERNEL(zeros) { return sized(args[0], args[1], RT_float32, rt_int(0), outs); }
KERNEL(ones) { return sized(args[0], args[1], RT_float32, rt_int(1), outs); }
KERNEL(full) { return sized(args[0], args[2], number_dtype(args[1]), args[1], outs); }
KERNEL(empty_strided) { return sized(args[0], args[2], RT_float32, rt_int(0), outs); }

KERNEL(empty_permuted) {
    int64_t sizes[RT_MAX_RANK], order[RT_MAX_RANK];
    bool seen[RT_MAX_RANK] = {false};
    int rank, count;
    TS_TRY(rt_as_ints(args[0], sizes, &rank));
    TS_TRY(rt_as_ints(args[1], order, &count));
    if (count != rank)
        return ts_raise(
            "RuntimeError",
            "Number of dimensions in size does not match the length of the physical_layout; "
            "i.e. len(size) = %d is not equal to len(physical_layout) = %d",
            rank, count);
    for (int i = 0; i < count; i++) {
        if (order[i] < 0 || order[i] >= rank)
            return ts_raise(
                "RuntimeError",
                "Dimension out of range (expected to be between 0 and %d, but got %lld at "
                "index %d).  NB: negative dims not currently supported",
                rank - 1, (long long)order[i], i);
        if (seen[order[i]])
            return ts_raise("RuntimeError", "Duplicate dim not allowed");
        seen[order[i]] = true;
    }
    return sized(args[0], args[2], RT_float32, rt_int(0), outs);
}

KERNEL(zeros_like) { return like(args[0], args[1], rt_int(0), outs); }
KERNEL(ones_like) { return like(args[0], args[1], rt_int(1), outs); }
KERNEL(full_like) { return like(args[0], args[2], args[1], outs); }

#define NEW(name, dtype_at, number)                                                                \
    KERNEL(name) {                                                                                 \
        return sized(args[1], args[dtype_at], (rt_dtype)args[0].as.tensor->dtype, number, outs);   \
    }
NEW(new_zeros, 2, rt_int(0))
NEW(new_ones, 2, rt_int(1))
NEW(new_full, 3, args[2])
NEW(new_empty_strided, 3, rt_int(0))

KERNEL(scalar_tensor) { return constant(NULL, 0, rt_as_dtype(args[1], RT_float32), args[0], outs); }

/* Zeros like a tensor; one zero for what no path has set, which nothing reads. */
KERNEL(prim_zero_of) {
    if (args[0].tag == RT_TAG_TENSOR)
        return like(args[0], (rt_value){.tag = RT_TAG_NONE}, rt_int(0), outs);
    return constant(NULL, 0, RT_float32, rt_int(0), outs);
}

/* ---- ranges ---- */

static bool is_float(rt_value v) {
    return v.tag == RT_TAG_FLOAT ||
           (v.tag == RT_TAG_TENSOR && rt_dtype_is_float((rt_dtype)v.as.tensor->dtype));
}

static ts_status arange(rt_value start, rt_value end, rt_value step, rt_value dtype_value,
                        bool is_closed, rt_value *out) {
    bool any_float = is_float(start) || is_float(end) || is_float(step);
    rt_dtype dtype = rt_as_dtype(dtype_value, any_float || is_closed ? RT_float32 : RT_int64);
    double a = rt_as_double(start), b = rt_as_double(end), by = rt_as_double(step);
    if (by == 0)
        return ts_raise("ValueError", "step must be nonzero");
    if (!isfinite(a) || !isfinite(b))
        return ts_raise("RuntimeError", "unsupported range: %g -> %g", a, b);
    if ((by > 0 && a > b) || (by < 0 && a < b))
        return ts_raise("RuntimeError",
                        "upper bound and lower bound inconsistent with step sign");
    double count = is_closed ? floor((b - a) / by) + 1 : ceil((b - a) / by);
    if (dtype == RT_int64 && !is_closed) { /* counted in whole numbers, floats cut first */
        int64_t s = rt_as_int(step), span = rt_as_int(end) - rt_as_int(start);
        if (s == 0)
            return ts_raise("ValueError", "step must be nonzero");
        count = (double)(s > 0 ? (span + s - 1) / s : (span + s + 1) / s);
    }
    if (count < 0 || count > 1e15)
        return ts_raise("RuntimeError", "invalid size, possible overflow?");
    int64_t n = (int64_t)count;
    rt_tensor *t;
    TS_TRY(rt_tensor_make(dtype, &n, 1, &t));
    size_t bytes = rt_dtype_size(dtype);
    char *data = t->data;
    int64_t first = rt_as_int(start), step_int = rt_as_int(step);
    bool in_ints = rt_dtype_category(dtype) == 'i';
    for (int64_t i = 0; i < n; i++) {
        if (in_ints)
            rt_store_int(dtype, data + (size_t)i * bytes, first + i * step_int);
        else
            rt_store_double(dtype, data + (size_t)i * bytes, a + by * (double)i);
    }
    return done(t, out);
}

KERNEL(arange) { return arange(rt_int(0), args[0], rt_int(1), args[1], false, outs); }
KERNEL(arange_start) { return arange(args[0], args[1], rt_int(1), args[2], false, outs); }
KERNEL(arange_step) { return arange(args[0], args[1], args[2], args[3], false, outs); }
KERNEL(range) { return arange(args[0], args[1], rt_int(1), args[2], true, outs); }
KERNEL(range_step) { return arange(args[0], args[1], args[2], args[3], true, outs); }

/* The number of the dtype next to x. */
static double rounded(rt_dtype dtype, double x) {
    uint64_t cell;
    rt_store_double(dtype, &cell, x);
    return rt_load_double(dtype, &cell);
}

/* The number as an integer of the dtype: -5 is 251 of uint8. */
static double whole(rt_dtype dtype, rt_value number) {
    uint64_t cell;
    rt_store_int(dtype, &cell, rt_as_int(number));
    return (double)rt_load_int(dtype, &cell);
}

/* Both halves are counted from their own end, as PyTorch does, so that the ends are exact. */
static ts_status spaced(const rt_value *args, rt_value dtype_value, bool is_log, double base,
                        rt_value *out) {
    bool is_complex = number_dtype(args[0]) == RT_complex64 || number_dtype(args[1]) == RT_complex64;
    rt_dtype dtype = rt_as_dtype(dtype_value, is_complex ? RT_complex64 : RT_float32);
    int64_t n = args[2].as.i;
    for (int i = 0; i < 2; i++)
        if (args[i].tag == RT_TAG_TENSOR && args[i].as.tensor->rank != 0)
            return ts_raise("RuntimeError", "%s only supports 0-dimensional start and end tensors",
                            is_log ? "logspace" : "linspace");
    if (n < 0)
        return ts_raise("RuntimeError", "number of steps must be non-negative");
    for (int i = 0; i < 2 && i < n; i++) /* of one step the end is not looked at */
        if (args[i].tag != RT_TAG_TENSOR)
            TS_TRY(rt_check_fits(args[i], dtype));
    rt_tensor *t;
    TS_TRY(rt_tensor_make(dtype, &n, 1, &t));
    size_t bytes = rt_dtype_size(dtype);
    char *data = t->data;
    bool ints = rt_dtype_category(dtype) == 'i';
    rt_complex128 a = rt_as_complex(args[0]), b = rt_as_complex(args[1]);
    if (ints) {
        a.re = whole(dtype, args[0]);
        b.re = whole(dtype, args[1]);
    }
    double count = n > 1 ? (double)(n - 1) : 1;
    bool floats = rt_dtype_category(dtype) == 'f';
    if (floats) { /* the ends are numbers of the dtype, and so is the step */
        a.re = rounded(dtype, a.re);
        b.re = rounded(dtype, b.re);
        count = rounded(dtype, count);
    }
    rt_complex128 step = {(b.re - a.re) / count, (b.im - a.im) / count};
    if (floats)
        step.re = rounded(dtype, rounded(dtype, b.re - a.re) / count);
    for (int64_t i = 0; i < n; i++) {
        bool from_start = i < n / 2 || n == 1;
        double k = from_start ? (double)i : -(double)(n - 1 - i);
        rt_complex128 base_point = from_start ? a : b;
        rt_complex128 v = {base_point.re + step.re * k, base_point.im + step.im * k};
        if (rt_dtype_is_short(dtype)) /* 16-bit floats are rounded at every step */
            v.re = base_point.re + rounded(dtype, step.re * rounded(dtype, k));
        else if (!is_complex && !is_log) /* PyTorch's own loop is: 6.999.. would be cut to 6 */
            v.re = fma(step.re, k, base_point.re);
        if (is_log && v.im == 0)
            v.re = pow(base, v.re);
        if (ints)
            rt_store_int(dtype, data + (size_t)i * bytes, rt_double_to_int(v.re));
        else if (rt_dtype_is_complex(dtype))
            rt_store_complex(dtype, data + (size_t)i * bytes, v);
        else
            rt_store_double(dtype, data + (size_t)i * bytes, v.re);
    }
    return done(t, out);
}

KERNEL(linspace) { return spaced(args, args[3], false, 0, outs); }
KERNEL(logspace) { return spaced(args, args[4], true, args[3].as.f, outs); }

static ts_status eye(int64_t n, int64_t m, rt_value dtype_value, rt_value *out) {
    rt_tensor *t;
    rt_dtype dtype = rt_as_dtype(dtype_value, RT_float32);
    if (n < 0 || m < 0)
        return ts_raise("RuntimeError", "n must be greater or equal to 0, got %lld",
                        (long long)(n < 0 ? n : m));
    TS_TRY(rt_tensor_make_zeroed(dtype, (int64_t[]){n, m}, 2, &t));
    for (int64_t i = 0; i < n && i < m; i++)
        rt_store_int(dtype, (char *)t->data + (size_t)(i * m + i) * rt_dtype_size(dtype), 1);
    return done(t, out);
}

KERNEL(eye) { return eye(args[0].as.i, args[0].as.i, args[1], outs); }
KERNEL(eye_m) { return eye(args[0].as.i, args[1].as.i, args[2], outs); }

static ts_status tri_indices(const rt_value *args, bool lower, rt_value *out) {
    int64_t rows = args[0].as.i, columns = args[1].as.i, offset = args[2].as.i, n = 0;
    rt_dtype dtype = rt_as_dtype(args[3], RT_int64);
    size_t bytes = rt_dtype_size(dtype);
    if (rows < 0 || columns < 0)
        return ts_raise("RuntimeError", "row and col must be non-negative");
    for (int64_t r = 0; r < rows; r++) {
        int64_t edge = r + offset + lower;
        edge = edge < 0 ? 0 : edge > columns ? columns : edge;
        n += lower ? edge : columns - edge;
    }
    rt_tensor *t;
    TS_TRY(rt_tensor_make(dtype, (int64_t[]){2, n}, 2, &t));
    int64_t k = 0;
    char *data = t->data;
    for (int64_t r = 0; r < rows; r++) {
        int64_t edge = r + offset + lower;
        edge = edge < 0 ? 0 : edge > columns ? columns : edge;
        for (int64_t c = lower ? 0 : edge; c < (lower ? edge : columns); c++, k++) {
            rt_store_int(dtype, data + (size_t)k * bytes, r);
            rt_store_int(dtype, data + (size_t)(n + k) * bytes, c);
        }
    }
    return done(t, out);
}

KERNEL(tril_indices) { return tri_indices(args, true, outs); }
KERNEL(triu_indices) { return tri_indices(args, false, outs); }

/* ---- tensor(data) ---- */

static ts_status list_shape(rt_value v, int64_t *sizes, int *rank) {
    const rt_value *items;
    size_t count;
    *rank = 0;
    while (v.tag == RT_TAG_LIST || v.tag == RT_TAG_TUPLE) {
        if (*rank == RT_MAX_RANK)
            return ts_raise("ValueError", "too many dimensions");
        rt_as_items(v, &items, &count);
        sizes[(*rank)++] = (int64_t)count;
        if (count == 0)
            return NULL;
        v = items[0];
    }
    if (v.tag == RT_TAG_TENSOR)
        for (int i = 0; i < v.as.tensor->rank && *rank < RT_MAX_RANK; i++)
            sizes[(*rank)++] = v.as.tensor->sizes[i];
    return NULL;
}

static rt_dtype leaf_dtype(rt_value v, int depth) {
    const rt_value *items;
    size_t count;
    if (v.tag != RT_TAG_LIST && v.tag != RT_TAG_TUPLE)
        return number_dtype(v);
    if (depth == 0)
        return RT_float32;
    rt_as_items(v, &items, &count);
    rt_dtype result = RT_DTYPE_UNKNOWN;
    for (size_t i = 0; i < count; i++) {
        rt_dtype d = leaf_dtype(items[i], depth - 1);
        if (d != RT_DTYPE_UNKNOWN)
            result = result == RT_DTYPE_UNKNOWN ? d : rt_dtype_promote(result, d);
    }
    return result;
}

static ts_status store_leaves(rt_value v, const rt_tensor *t, int dim, char **at) {
    const rt_value *items;
    size_t count;
    rt_dtype dtype = (rt_dtype)t->dtype;
    if (v.tag == RT_TAG_LIST || v.tag == RT_TAG_TUPLE) {
        rt_as_items(v, &items, &count);
        if (dim >= t->rank)
            return ts_raise("TypeError", "not a sequence");
        if ((int64_t)count != t->sizes[dim])
            return ts_raise("ValueError", "expected sequence of length %lld at dim %d (got %zu)",
                            (long long)t->sizes[dim], dim, count);
        for (size_t i = 0; i < count; i++)
            TS_TRY(store_leaves(items[i], t, dim + 1, at));
        return NULL;
    }
    if (v.tag == RT_TAG_TENSOR) {
        rt_cursor c;
        if (v.as.tensor->rank != t->rank - dim)
            return ts_raise("ValueError", "expected tensors of one shape");
        for (int i = 0; i < v.as.tensor->rank; i++)
            if (v.as.tensor->sizes[i] != t->sizes[dim + i])
                return ts_raise("ValueError", "expected tensors of one shape");
        for (rt_cursor_start(&c, v.as.tensor); c.left; rt_cursor_next(&c)) {
            if (rt_dtype_is_complex(dtype))
                rt_store_complex(dtype, *at,
                                 rt_load_complex((rt_dtype)v.as.tensor->dtype, c.data));
            else if (rt_dtype_is_float((rt_dtype)v.as.tensor->dtype))
                rt_store_double(dtype, *at, rt_load_double((rt_dtype)v.as.tensor->dtype, c.data));
            else
                rt_store_int(dtype, *at, rt_load_int((rt_dtype)v.as.tensor->dtype, c.data));
            *at += rt_dtype_size(dtype);
        }
        return NULL;
    }
    if (dim != t->rank)
        return ts_raise("ValueError", "expected sequence of length %lld at dim %d (got a number)",
                        (long long)t->sizes[dim], dim);
    if (rt_dtype_is_integral(dtype) && !rt_number_fits(v, dtype))
        return ts_raise("RuntimeError", "value cannot be converted to type %s without overflow",
                        rt_dtype_name(dtype));
    if (rt_dtype_is_complex(dtype))
        rt_store_complex(dtype, *at, rt_as_complex(v));
    else if (v.tag == RT_TAG_FLOAT)
        rt_store_double(dtype, *at, v.as.f);
    else if (v.tag == RT_TAG_BOOL || v.tag == RT_TAG_INT)
        rt_store_int(dtype, *at, v.as.i);
    else
        return ts_raise("TypeError", "must be real number, not %s", rt_tag_name(v));
    *at += rt_dtype_size(dtype);
    return NULL;
}

static ts_status from_data(rt_value data, rt_value dtype_value, bool requires_grad, rt_value *out) {
    rt_tensor *t;
    if (data.tag == RT_TAG_TENSOR) {
        TS_TRY(rt_tensor_cast(data.as.tensor,
                              rt_as_dtype(dtype_value, (rt_dtype)data.as.tensor->dtype), true, &t));
    } else {
        int64_t sizes[RT_MAX_RANK];
        int rank;
        TS_TRY(list_shape(data, sizes, &rank));
        rt_dtype dtype = leaf_dtype(data, RT_MAX_RANK);
        if (dtype == RT_DTYPE_UNKNOWN)
            dtype = RT_float32;
        TS_TRY(rt_tensor_make(rt_as_dtype(dtype_value, dtype), sizes, rank, &t));
        char *at = t->data;
        ts_status status = store_leaves(data, t, 0, &at);
        if (status) {
            rt_tensor_release(t);
            return status;
        }
    }
    t->requires_grad = requires_grad;
    return done(t, out);
}

KERNEL(tensor) { return from_data(args[0], args[1], args[3].as.i != 0, outs); }

KERNEL(as_tensor) {
    if (args[0].tag != RT_TAG_TENSOR)
        return from_data(args[0], args[1], false, outs);
    rt_tensor *t;
    TS_TRY(rt_tensor_cast(args[0].as.tensor,
                          rt_as_dtype(args[1], (rt_dtype)args[0].as.tensor->dtype), false, &t));
    return done(t, outs);
}

/* ---- windows ---- */

typedef enum window { WINDOW_COSINE, WINDOW_BARTLETT, WINDOW_KAISER } window;

/* Modified Bessel function of the first kind, order 0, by its power series. */
static double bessel_i0(double x) {
    double term = 1, sum = 1, q = x * x / 4;
    for (int k = 1; k < 500 && term > sum * 1e-17; k++) {
        term *= q / ((double)k * k);
        sum += term;
    }
    return sum;
}

/* a[0] - a[1] cos(2 pi i / N) + a[2] cos(4 pi i / N), or the other shapes. */
static ts_status make_window(int64_t length, bool periodic, window kind, const double *a,
                             rt_value dtype_value, rt_value *out) {
    rt_dtype dtype = rt_as_dtype(dtype_value, RT_float32);
    rt_tensor *t;
    if (length < 0)
        return ts_raise("RuntimeError", "requires non-negative window_length, got window_length=%lld",
                        (long long)length);
    TS_TRY(rt_tensor_make(dtype, &length, 1, &t));
    double n = (double)(periodic ? length : length - 1);
    for (int64_t i = 0; i < length; i++) {
        double v = 1, x = (double)i, turn = 2 * 3.14159265358979323846 * x / n;
        if (length > 1) {
            switch (kind) {
            case WINDOW_COSINE: v = a[0] - a[1] * cos(turn) + a[2] * cos(2 * turn); break;
            case WINDOW_BARTLETT: v = 2 * x <= n ? 2 * x / n : 2 - 2 * x / n; break;
            case WINDOW_KAISER: {
                double r = 2 * x / n - 1;
                v = bessel_i0(a[0] * sqrt(fmax(0, 1 - r * r))) / bessel_i0(a[0]);
                break;
            }
            }
        }
        rt_store_double(dtype, (char *)t->data + (size_t)i * rt_dtype_size(dtype), v);
    }
    return done(t, out);
}

static const double hann[3] = {.5, .5, 0}, hamming[3] = {.54, .46, 0}, blackman[3] = {.42, .5, .08};
static const double kaiser[1] = {12};

#define WINDOW(name, kind, numbers)                                                                \
    KERNEL(name##_window) {                                                                        \
        return make_window(args[0].as.i, true, kind, numbers, args[1], outs);                      \
    }                                                                                              \
    KERNEL(name##_window_periodic) {                                                               \
        return make_window(args[0].as.i, args[1].as.i != 0, kind, numbers, args[2], outs);         \
    }
WINDOW(hann, WINDOW_COSINE, hann)
WINDOW(hamming, WINDOW_COSINE, hamming)
WINDOW(blackman, WINDOW_COSINE, blackman)
WINDOW(bartlett, WINDOW_BARTLETT, NULL)
WINDOW(kaiser, WINDOW_KAISER, kaiser)

KERNEL(hamming_window_alpha) {
    double a[3] = {args[2].as.f, .46, 0};
    return make_window(args[0].as.i, args[1].as.i != 0, WINDOW_COSINE, a, args[3], outs);
}

KERNEL(hamming_window_alpha_beta) {
    double a[3] = {args[2].as.f, args[3].as.f, 0};
    return make_window(args[0].as.i, args[1].as.i != 0, WINDOW_COSINE, a, args[4], outs);
}

KERNEL(kaiser_window_beta) {
    double a[1] = {args[2].as.f};
    return make_window(args[0].as.i, args[1].as.i != 0, WINDOW_KAISER, a, args[3], outs);
}

/* runtime/ops/ref_fft.c - torch.fft, stft and istft. */
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/contraction.h"
#include "runtime/ops/fft.h"

/* A dense complex array of any rank, on its way through a transform. */
typedef struct field {
    rt_complex128 *data;
    int64_t sizes[RT_MAX_RANK];
    int rank;
    rt_dtype real; /* float32 or float64 */
} field;

static int64_t count_of(const field *f) {
    int64_t n = 1;
    for (int i = 0; i < f->rank; i++)
        n *= f->sizes[i];
    return n;
}

static void around(const field *f, int dim, int64_t *outer, int64_t *inner) {
    *outer = *inner = 1;
    for (int i = 0; i < dim; i++)
        *outer *= f->sizes[i];
    for (int i = dim + 1; i < f->rank; i++)
        *inner *= f->sizes[i];
}

static ts_status field_init(field *f, const rt_tensor *t) {
    rt_tensor *dense;
    rt_dtype dtype = (rt_dtype)t->dtype;
    *f = (field){.rank = t->rank,
                 .real = dtype == RT_float64 || dtype == RT_complex128 ? RT_float64 : RT_float32};
    if (dtype == RT_float16 || dtype == RT_bfloat16 || dtype == RT_complex32)
        return ts_raise("RuntimeError", "Unsupported dtype %s",
                        rt_dtype_message_name(dtype));
    for (int i = 0; i < t->rank; i++)
        f->sizes[i] = t->sizes[i];
    TS_TRY(rt_tensor_contiguous((rt_tensor *)(uintptr_t)t, &dense));
    f->data = malloc((size_t)(t->element_count + 1) * sizeof *f->data);
    if (f->data && t->element_count)
        rt_load_block(RT_WORK_COMPLEX, dtype, dense->data, (int64_t)rt_dtype_size(dtype),
                      t->element_count, f->data);
    rt_tensor_release(dense);
    return f->data ? NULL : ts_no_memory();
}

/* Cuts or pads dim with zeros to n elements. */
static ts_status resize(field *f, int dim, int64_t n) {
    int64_t outer, inner, old = f->sizes[dim];
    if (n < 1)
        return ts_raise("RuntimeError", "Invalid number of data points (%lld) specified",
                        (long long)n);
    if (n == old)
        return NULL;
    around(f, dim, &outer, &inner);
    rt_complex128 *to = calloc((size_t)(outer * n * inner) + 1, sizeof *to);
    if (!to)
        return ts_no_memory();
    int64_t keep = n < old ? n : old;
    for (int64_t a = 0; a < outer; a++)
        memcpy(to + a * n * inner, f->data + a * old * inner, (size_t)(keep * inner) * sizeof *to);
    free(f->data);
    f->data = to;
    f->sizes[dim] = n;
    return NULL;
}

static ts_status transform(field *f, int dim, bool forward) {
    int64_t outer, inner, n = f->sizes[dim];
    rt_fft *plan;
    if (n < 1)
        return ts_raise("RuntimeError", "Invalid number of data points (%lld) specified",
                        (long long)n);
    around(f, dim, &outer, &inner);
    rt_complex128 *line = malloc((size_t)n * sizeof *line);
    ts_status status = line ? rt_fft_make(n, &plan) : ts_no_memory();
    if (status) {
        free(line);
        return status;
    }
    for (int64_t a = 0; a < outer; a++)
        for (int64_t b = 0; b < inner; b++) {
            rt_complex128 *at = f->data + a * n * inner + b;
            for (int64_t k = 0; k < n; k++)
                line[k] = at[k * inner];
            rt_fft_run(plan, forward, line);
            for (int64_t k = 0; k < n; k++)
                at[k * inner] = line[k];
        }
    rt_fft_release(plan);
    free(line);
    return NULL;
}

/* From the half spectrum along dim (n / 2 + 1 elements) to all n. */
static ts_status mirror(field *f, int dim, int64_t n) {
    int64_t outer, inner, half = n / 2 + 1;
    TS_TRY(resize(f, dim, half));
    around(f, dim, &outer, &inner);
    rt_complex128 *to = calloc((size_t)(outer * n * inner) + 1, sizeof *to);
    if (!to)
        return ts_no_memory();
    for (int64_t a = 0; a < outer; a++)
        for (int64_t k = 0; k < n; k++)
            for (int64_t b = 0; b < inner; b++) {
                rt_complex128 v = f->data[(a * half + (k < half ? k : n - k)) * inner + b];
                if (k >= half)
                    v.im = -v.im;
                to[(a * n + k) * inner + b] = v;
            }
    free(f->data);
    f->data = to;
    f->sizes[dim] = n;
    return NULL;
}

static ts_status norm_factor(rt_value norm, bool forward, double n, double *out) {
    bool is_default = rt_is_none(norm) || rt_str_value_is(norm, "backward");
    *out = 1;
    if (!is_default && !rt_str_value_is(norm, "forward") && !rt_str_value_is(norm, "ortho"))
        return ts_raise("RuntimeError", "Invalid normalization mode: \"%.*s\"",
                        TS_STR_ARG(rt_str_text(norm.as.str)));
    if (!rt_is_none(norm) && rt_str_value_is(norm, "ortho"))
        *out = 1 / sqrt(n);
    else if (is_default != forward)
        *out = 1 / n;
    return NULL;
}

static ts_status give(field *f, bool is_real, double factor, rt_value *out) {
    rt_tensor *t;
    rt_dtype dtype = is_real ? f->real : rt_dtype_complex(f->real);
    int64_t n = count_of(f);
    TS_TRY(rt_tensor_make(dtype, f->sizes, f->rank, &t));
    for (int64_t i = 0; i < n; i++) {
        rt_complex128 v = {f->data[i].re * factor, f->data[i].im * factor};
        char *at = (char *)t->data + (size_t)i * rt_dtype_size(dtype);
        if (is_real)
            rt_store_double(dtype, at, v.re);
        else
            rt_store_complex(dtype, at, v);
    }
    *out = rt_from_tensor(t);
    return NULL;
}

typedef enum fft_kind { C2C, R2C, C2R } fft_kind;

typedef struct request {
    fft_kind kind;
    bool forward;
    int dims[RT_MAX_RANK], dim_count;
    int64_t n[RT_MAX_RANK]; /* lengths of the signal along dims; -1: as it is */
} request;

static ts_status run(const rt_tensor *t, request *r, rt_value norm, rt_value *out) {
    field f;
    double total = 1, factor;
    int last = r->dim_count - 1;
    if (r->kind == R2C && rt_dtype_is_complex((rt_dtype)t->dtype))
        return ts_raise("RuntimeError", "expected a real input tensor, but got %s",
                        rt_dtype_message_name((rt_dtype)t->dtype));
    ts_status status = field_init(&f, t);
    for (int i = 0; i < r->dim_count && !status; i++) {
        int64_t own = f.sizes[r->dims[i]];
        if (r->n[i] < 0)
            r->n[i] = r->kind == C2R && i == last ? 2 * (own - 1) : own;
        if (r->n[i] < 1)
            status = ts_raise("RuntimeError", "Invalid number of data points (%lld) specified",
                              (long long)r->n[i]);
        total *= (double)r->n[i];
        if (!status && !(r->kind == C2R && i == last))
            status = resize(&f, r->dims[i], r->n[i]);
    }
    if (!status && r->dim_count == 0 && r->kind != C2C)
        status = ts_raise("RuntimeError", "must transform at least one axis");
    if (!status && r->kind == C2R) {
        for (int i = 0; i < last && !status; i++)
            status = transform(&f, r->dims[i], r->forward);
        if (!status) {
            status = mirror(&f, r->dims[last], r->n[last]);
            /* A c2r inverse is the inverse transform; hfft the forward one. */
            if (!status)
                status = transform(&f, r->dims[last], r->forward);
        }
    } else if (!status) {
        for (int i = last; i >= 0 && !status; i--)
            status = transform(&f, r->dims[i], r->forward);
        if (!status && r->kind == R2C)
            status = resize(&f, r->dims[last], r->n[last] / 2 + 1);
    }
    if (!status)
        status = norm_factor(norm, r->forward, total, &factor);
    if (!status)
        status = give(&f, r->kind == C2R, factor, out);
    free(f.data);
    return status;
}

/* (self, n, dim, norm) */
static ts_status one_dim(const rt_value *args, fft_kind kind, bool forward, rt_value *out) {
    request r = {.kind = kind, .forward = forward, .dim_count = 1};
    if (args[0].as.tensor->rank == 0)
        return ts_raise("IndexError", "Dimension specified as %lld but tensor has no dimensions",
                        (long long)args[2].as.i);
    TS_TRY(rt_wrap_dim(args[2].as.i, args[0].as.tensor->rank, &r.dims[0]));
    r.n[0] = rt_is_none(args[1]) ? -1 : args[1].as.i;
    if (!rt_is_none(args[1]) && r.n[0] < 1)
        return ts_raise("RuntimeError", "Invalid number of data points (%lld) specified",
                        (long long)r.n[0]);
    return run(args[0].as.tensor, &r, args[3], out);
}

/* (self, s, dim, norm): dims default to all, or to the last ones that s names */
static ts_status many_dims(const rt_value *args, fft_kind kind, bool forward, rt_value *out) {
    request r = {.kind = kind, .forward = forward};
    int64_t s[RT_MAX_RANK], dims[RT_MAX_RANK];
    int s_count = 0, rank = args[0].as.tensor->rank;
    if (!rt_is_none(args[1]))
        TS_TRY(rt_as_ints(args[1], s, &s_count));
    if (!rt_is_none(args[2])) {
        TS_TRY(rt_as_ints(args[2], dims, &r.dim_count));
        if (!rt_is_none(args[1]) && s_count != r.dim_count)
            return ts_raise("RuntimeError",
                            "When given, dim and shape arguments must have the same length");
    } else {
        r.dim_count = rt_is_none(args[1]) ? rank : s_count;
        if (r.dim_count > rank)
            return ts_raise("RuntimeError", "Got shape with %d values but input tensor only has %d "
                                            "dimensions.",
                            s_count, rank);
        for (int i = 0; i < r.dim_count; i++)
            dims[i] = rank - r.dim_count + i;
    }
    for (int i = 0; i < r.dim_count; i++) {
        TS_TRY(rt_wrap_dim(dims[i], rank, &r.dims[i]));
        for (int j = 0; j < i; j++)
            if (r.dims[j] == r.dims[i])
                return ts_raise("RuntimeError", "FFT dims must be unique");
        r.n[i] = rt_is_none(args[1]) ? -1 : s[i];
        if (!rt_is_none(args[1]) && s[i] != -1 && s[i] < 1)
            return ts_raise("RuntimeError", "Invalid number of data points (%lld) specified",
                            (long long)s[i]);
    }
    return run(args[0].as.tensor, &r, args[3], out);
}

#define TRANSFORM(name, kind, forward)                                                             \
    KERNEL(fft_##name) { return one_dim(args, kind, forward, outs); }                              \
    KERNEL(fft_##name##n) { return many_dims(args, kind, forward, outs); }
TRANSFORM(fft, C2C, true)
TRANSFORM(ifft, C2C, false)
TRANSFORM(rfft, R2C, true)
TRANSFORM(irfft, C2R, false)
TRANSFORM(hfft, C2R, true)
TRANSFORM(ihfft, R2C, false)

KERNEL(fft_c2c) { /* the internal entry: dims, normalisation 0 none 1 by root 2 by n, forward */
    request r = {.kind = C2C, .forward = args[3].as.i != 0};
    int64_t dims[RT_MAX_RANK];
    rt_value norm = rt_none();
    TS_TRY(rt_as_ints(args[1], dims, &r.dim_count));
    for (int i = 0; i < r.dim_count; i++) {
        TS_TRY(rt_wrap_dim(dims[i], args[0].as.tensor->rank, &r.dims[i]));
        r.n[i] = -1;
    }
    const char *mode = args[2].as.i == 1                         ? "ortho"
                       : (args[2].as.i == 2) == (r.forward) ? "forward"
                                                                 : "backward";
    TS_TRY(rt_str_make(ts_str_of(mode), &norm));
    ts_status status = run(args[0].as.tensor, &r, norm, outs);
    rt_release(norm);
    return status;
}

/* ---- shifts and frequencies ---- */

static ts_status shift(const rt_value *args, bool inverse, rt_value *out) {
    const rt_tensor *t = args[0].as.tensor;
    int64_t dims[RT_MAX_RANK], by[RT_MAX_RANK] = {0}, index[RT_MAX_RANK] = {0};
    int count = t->rank;
    rt_tensor *r;
    for (int i = 0; i < t->rank; i++)
        dims[i] = i;
    if (!rt_is_none(args[1]))
        TS_TRY(rt_as_ints(args[1], dims, &count));
    for (int i = 0; i < count; i++) {
        int d;
        TS_TRY(rt_wrap_dim(dims[i], t->rank, &d));
        if (t->rank)
            by[d] = inverse ? t->sizes[d] / 2 : (t->sizes[d] + 1) / 2;
    }
    rt_dtype dtype = (rt_dtype)t->dtype;
    size_t bytes = rt_dtype_size(dtype);
    TS_TRY(rt_tensor_make(dtype, t->sizes, t->rank, &r));
    for (int64_t i = 0; i < t->element_count; i++) {
        int64_t from = 0;
        for (int d = 0; d < t->rank; d++)
            from += (index[d] + by[d]) % t->sizes[d] * t->strides[d];
        memcpy((char *)r->data + (size_t)i * bytes, (char *)t->data + from * (int64_t)bytes, bytes);
        for (int d = t->rank - 1; d >= 0 && ++index[d] == t->sizes[d]; d--)
            index[d] = 0;
    }
    *out = rt_from_tensor(r);
    return NULL;
}

KERNEL(fft_fftshift) { return shift(args, false, outs); }
KERNEL(fft_ifftshift) { return shift(args, true, outs); }

static ts_status frequencies(const rt_value *args, bool half, rt_value *out) {
    int64_t n = args[0].as.i, count = half ? n / 2 + 1 : n;
    double spacing = rt_as_double(args[1]);
    if (n < 1)
        return ts_raise("RuntimeError", "n must be positive");
    double *f = rt_new_doubles(count);
    if (!f)
        return ts_no_memory();
    for (int64_t i = 0; i < count; i++)
        f[i] = (double)(!half && i >= (n + 1) / 2 ? i - n : i) / ((double)n * spacing);
    ts_status status = rt_from_doubles(f, rt_as_dtype(args[2], RT_float32), &count, 1, out);
    free(f);
    return status;
}

KERNEL(fft_fftfreq) { return frequencies(args, false, outs); }
KERNEL(fft_rfftfreq) { return frequencies(args, true, outs); }

/* ---- short-time transforms ---- */

typedef struct frames {
    int64_t n_fft, hop, win_length;
    rt_complex128 *window; /* [n_fft], centred */
    bool onesided, normalized;
} frames;

static ts_status frames_init(frames *s, int64_t n_fft, rt_value hop, rt_value win_length,
                             rt_value window, bool normalized) {
    const rt_tensor *w = rt_optional_tensor(window);
    *s = (frames){.n_fft = n_fft, .normalized = normalized};
    s->hop = rt_is_none(hop) ? n_fft / 4 : hop.as.i;
    s->win_length = rt_is_none(win_length) ? n_fft : win_length.as.i;
    if (n_fft <= 0)
        return ts_raise("RuntimeError", "stft: expected 0 < n_fft, but got n_fft=%lld",
                        (long long)n_fft);
    if (s->hop <= 0)
        return ts_raise("RuntimeError", "stft: expected hop_length > 0, but got hop_length=%lld",
                        (long long)s->hop);
    if (s->win_length <= 0 || s->win_length > n_fft)
        return ts_raise("RuntimeError",
                        "stft: expected 0 < win_length <= n_fft, but got win_length=%lld",
                        (long long)s->win_length);
    if (w && (w->rank != 1 || w->sizes[0] != s->win_length))
        return ts_raise("RuntimeError",
                        "stft: expected a 1D window tensor of size equal to win_length=%lld",
                        (long long)s->win_length);
    s->window = calloc((size_t)n_fft, sizeof *s->window);
    if (!s->window)
        return ts_no_memory();
    int64_t left = (n_fft - s->win_length) / 2;
    for (int64_t i = 0; i < s->win_length; i++) {
        rt_complex128 v = {1, 0};
        if (w)
            v = rt_load_complex((rt_dtype)w->dtype,
                                (const char *)w->data +
                                    i * w->strides[0] * (int64_t)rt_dtype_size((rt_dtype)w->dtype));
        s->window[left + i] = v;
    }
    return NULL;
}

/* The source of padded position i of a signal of length n; -1: zero. */
static int64_t padded_source(int64_t i, int64_t n, rt_value mode) {
    if (i >= 0 && i < n)
        return i;
    if (rt_str_value_is(mode, "reflect"))
        return i < 0 ? -i : 2 * (n - 1) - i;
    if (rt_str_value_is(mode, "replicate"))
        return i < 0 ? 0 : n - 1;
    if (rt_str_value_is(mode, "circular"))
        return (i % n + n) % n;
    return -1;
}

static rt_complex128 product(rt_complex128 a, rt_complex128 b) {
    return (rt_complex128){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static ts_status stft(const rt_value *args, bool center, rt_value pad_mode, rt_value normalized,
                      rt_value onesided_value, rt_value return_complex, rt_value *out) {
    const rt_tensor *t = args[0].as.tensor, *w = rt_optional_tensor(args[4]);
    frames s = {0};
    field f = {0}, r = {0};
    rt_fft *plan = NULL;
    if (t->rank != 1 && t->rank != 2)
        return ts_raise("RuntimeError", "stft: expected a tensor of 1 or 2 dimensions");
    bool is_complex = rt_dtype_is_complex((rt_dtype)t->dtype) ||
                      (w && rt_dtype_is_complex((rt_dtype)w->dtype));
    if (!rt_dtype_is_float((rt_dtype)t->dtype) && !rt_dtype_is_complex((rt_dtype)t->dtype))
        return ts_raise("RuntimeError", "stft: expected a tensor of floating point or complex values");
    /* PyTorch of today asks for it; archives of 2019 to 2021 leave it out and read a real view. */
    bool as_complex = rt_is_none(return_complex) ? is_complex : return_complex.as.i != 0;
    bool onesided = rt_is_none(onesided_value) ? !is_complex : onesided_value.as.i != 0;
    ts_status status = field_init(&f, t);
    if (!status)
        status = frames_init(&s, args[1].as.i, args[2], args[3], args[4], normalized.as.i != 0);
    int64_t n = t->sizes[t->rank - 1], batch = t->rank == 2 ? t->sizes[0] : 1;
    int64_t edge = center && !status ? s.n_fft / 2 : 0, length = n + 2 * edge;
    if (!status && edge && rt_str_value_is(pad_mode, "reflect") && edge >= n)
        status = ts_raise("RuntimeError",
                          "Argument #4: Padding size should be less than the corresponding input "
                          "dimension, but got: padding (%lld, %lld) at dimension %d of input",
                          (long long)edge, (long long)edge, t->rank);
    if (!status && s.n_fft > length)
        status = ts_raise("RuntimeError", "stft: expected 0 < n_fft < %lld, but got n_fft=%lld",
                          (long long)length, (long long)s.n_fft);
    int64_t count = status ? 0 : 1 + (length - s.n_fft) / s.hop;
    int64_t bins = status ? 0 : onesided ? s.n_fft / 2 + 1 : s.n_fft;
    r = (field){.real = f.real, .rank = t->rank + 1, .sizes = {batch, bins, count}};
    if (t->rank == 1) {
        r.sizes[0] = bins;
        r.sizes[1] = count;
    }
    rt_complex128 *line = NULL;
    if (!status) {
        r.data = calloc((size_t)(batch * bins * count) + 1, sizeof *r.data);
        line = calloc((size_t)s.n_fft, sizeof *line);
        status = r.data && line ? rt_fft_make(s.n_fft, &plan) : ts_no_memory();
    }
    for (int64_t b = 0; b < batch && !status; b++)
        for (int64_t j = 0; j < count; j++) {
            for (int64_t i = 0; i < s.n_fft; i++) {
                int64_t at = padded_source(j * s.hop + i - edge, n, pad_mode);
                line[i] = at < 0 ? (rt_complex128){0, 0} : product(f.data[b * n + at], s.window[i]);
            }
            rt_fft_run(plan, true, line);
            for (int64_t k = 0; k < bins; k++)
                r.data[(b * bins + k) * count + j] = line[k];
        }
    if (!status)
        status = give(&r, false, s.normalized ? 1 / sqrt((double)s.n_fft) : 1, out);
    if (!status && !as_complex) { /* pairs of reals */
        rt_tensor *c = out->as.tensor, *view;
        int64_t strides[RT_MAX_RANK];
        r.sizes[r.rank] = 2;
        rt_contiguous_strides(r.sizes, r.rank + 1, strides);
        status = rt_tensor_view(c->storage, f.real, 0, r.sizes, strides, r.rank + 1, &view);
        if (!status)
            rt_assign(out, rt_from_tensor(view));
    }
    rt_fft_release(plan);
    free(line);
    free(s.window);
    free(f.data);
    free(r.data);
    return status;
}

KERNEL(stft) { return stft(args, false, rt_none(), args[5], args[6], args[7], outs); }
KERNEL(stft_center) {
    return stft(args, args[5].as.i != 0, args[6], args[7], args[8], args[9], outs);
}

KERNEL(istft) {
    const rt_tensor *t = args[0].as.tensor;
    frames s = {0};
    field f = {0}, r = {0};
    rt_fft *plan = NULL;
    bool center = args[5].as.i != 0, as_complex = args[9].as.i != 0;
    if ((t->rank != 2 && t->rank != 3) || !rt_dtype_is_complex((rt_dtype)t->dtype))
        return ts_raise("RuntimeError", "istft requires a complex-valued input tensor of 2 or 3 "
                                        "dimensions");
    ts_status status = field_init(&f, t);
    if (!status)
        status = frames_init(&s, args[1].as.i, args[2], args[3], args[4], args[6].as.i != 0);
    int64_t bins = t->sizes[t->rank - 2], count = t->sizes[t->rank - 1];
    int64_t batch = t->rank == 3 ? t->sizes[0] : 1;
    bool onesided = !status && (rt_is_none(args[7]) ? bins != s.n_fft : args[7].as.i != 0);
    if (!status && bins != (onesided ? s.n_fft / 2 + 1 : s.n_fft))
        status = ts_raise("RuntimeError",
                          "istft: expected the frequency dimension to match n_fft, but got %lld",
                          (long long)bins);
    /* A real signal is read from the first half, whatever the second holds. */
    bool half = onesided || !as_complex;
    int64_t used = status ? 0 : half ? s.n_fft / 2 + 1 : s.n_fft;
    int64_t full = status ? 0 : s.n_fft + s.hop * (count - 1), start = center ? s.n_fft / 2 : 0;
    int64_t end = !rt_is_none(args[8]) ? start + args[8].as.i : center ? full - s.n_fft / 2 : full;
    if (!status && (end <= start || full <= 0))
        status = ts_raise("RuntimeError", "istft: the signal would be empty");
    int64_t kept = status ? 0 : end - start;
    rt_complex128 *line = NULL, *sum = NULL, *envelope = NULL;
    r = (field){.real = f.real, .rank = t->rank - 1, .sizes = {batch, kept}};
    if (t->rank == 2)
        r.sizes[0] = kept;
    if (!status) {
        r.data = calloc((size_t)(batch * kept) + 1, sizeof *r.data);
        line = calloc((size_t)s.n_fft, sizeof *line);
        sum = calloc((size_t)full + 1, sizeof *sum);
        envelope = calloc((size_t)full + 1, sizeof *envelope);
        status = r.data && line && sum && envelope ? rt_fft_make(s.n_fft, &plan) : ts_no_memory();
    }
    double scale = s.n_fft ? (s.normalized ? 1 / sqrt((double)s.n_fft) : 1 / (double)s.n_fft) : 1;
    for (int64_t j = 0; j < count && !status; j++)
        for (int64_t i = 0; i < s.n_fft; i++) {
            rt_complex128 square = product(s.window[i], s.window[i]);
            envelope[j * s.hop + i].re += square.re;
            envelope[j * s.hop + i].im += square.im;
        }
    double least = INFINITY;
    for (int64_t i = start; i < end && i < full && !status; i++)
        least = fmin(least, hypot(envelope[i].re, envelope[i].im));
    if (!status && !(least > 1e-11))
        status = ts_raise("RuntimeError", "window overlap add min: 1");
    for (int64_t b = 0; b < batch && !status; b++) {
        memset(sum, 0, (size_t)full * sizeof *sum);
        for (int64_t j = 0; j < count; j++) {
            for (int64_t k = 0; k < s.n_fft; k++) {
                int64_t from = half && k >= used ? s.n_fft - k : k;
                rt_complex128 v = f.data[(b * bins + from) * count + j];
                if (half && k >= used)
                    v.im = -v.im;
                if (half && (k == 0 || 2 * k == s.n_fft))
                    v.im = 0;
                line[k] = v;
            }
            rt_fft_run(plan, false, line);
            for (int64_t i = 0; i < s.n_fft; i++) {
                rt_complex128 v = product(line[i], s.window[i]);
                sum[j * s.hop + i].re += v.re * scale;
                sum[j * s.hop + i].im += v.im * scale;
            }
        }
        for (int64_t i = 0; i < kept && start + i < full; i++) {
            rt_complex128 e = envelope[start + i];
            double size = e.re * e.re + e.im * e.im;
            e = (rt_complex128){e.re / size, -e.im / size};
            r.data[b * kept + i] = product(sum[start + i], e);
        }
    }
    if (!status)
        status = give(&r, !as_complex, 1, outs);
    rt_fft_release(plan);
    free(line);
    free(sum);
    free(envelope);
    free(s.window);
    free(f.data);
    free(r.data);
    return status;
}

/* runtime/ops/linalg.c - LU, Cholesky, QR and triangular solves in plain loops; batches. */
#include "runtime/ops/linalg.h"

#include <math.h>
#include <stdlib.h>

rt_complex128 rt_c_div(rt_complex128 a, rt_complex128 b) {
    if (b.im == 0)
        return (rt_complex128){a.re / b.re, a.im / b.re};
    double size = b.re * b.re + b.im * b.im;
    return (rt_complex128){(a.re * b.re + a.im * b.im) / size, (a.im * b.re - a.re * b.im) / size};
}

double rt_c_abs(rt_complex128 a) { return a.im == 0 ? fabs(a.re) : hypot(a.re, a.im); }

double rt_epsilon(rt_dtype dtype) {
    return dtype == RT_float64 || dtype == RT_complex128 ? 0x1p-52 : 0x1p-23;
}

/* ---- batches ---- */

ts_status rt_matrices_load(const rt_tensor *t, const char *name, rt_matrices *out) {
    rt_dtype dtype = (rt_dtype)t->dtype;
    rt_tensor *dense;
    *out = (rt_matrices){.dtype = dtype, .batch = 1};
    if (dtype != RT_float32 && dtype != RT_float64 && dtype != RT_complex64 &&
        dtype != RT_complex128)
        return ts_raise("RuntimeError",
                        "%s: Expected a floating point or complex tensor as input. Got %s", name,
                        rt_dtype_message_name(dtype));
    if (t->rank < 2)
        return ts_raise("RuntimeError",
                        "%s: The input tensor A must have at least 2 dimensions.", name);
    out->m = t->sizes[t->rank - 2];
    out->n = t->sizes[t->rank - 1];
    out->batch_rank = t->rank - 2;
    for (int i = 0; i < out->batch_rank; i++)
        out->batch *= out->batch_sizes[i] = t->sizes[i];
    TS_TRY(rt_tensor_contiguous((rt_tensor *)(uintptr_t)t, &dense));
    out->data = malloc((size_t)(t->element_count + 1) * sizeof *out->data);
    if (out->data && t->element_count)
        rt_load_block(RT_WORK_COMPLEX, dtype, dense->data, (int64_t)rt_dtype_size(dtype),
                      t->element_count, out->data);
    rt_tensor_release(dense);
    return out->data ? NULL : ts_no_memory();
}

ts_status rt_as_columns(const rt_tensor *t, rt_tensor **out) {
    int64_t sizes[RT_MAX_RANK + 1], strides[RT_MAX_RANK + 1];
    for (int i = 0; i < t->rank; i++) {
        sizes[i] = t->sizes[i];
        strides[i] = t->strides[i];
    }
    sizes[t->rank] = strides[t->rank] = 1;
    return rt_tensor_alias(t, 0, sizes, strides, t->rank + 1, out);
}

ts_status rt_matrices_load_square(const rt_tensor *t, const char *name, rt_matrices *out) {
    TS_TRY(rt_matrices_load(t, name, out));
    if (out->m == out->n)
        return NULL;
    ts_status status = ts_raise("RuntimeError",
                                "%s: A must be batches of square matrices, but they are %lld by "
                                "%lld matrices",
                                name, (long long)out->m, (long long)out->n);
    rt_matrices_deinit(out);
    return status;
}

ts_status rt_matrices_make(const rt_matrices *like, int64_t m, int64_t n, rt_matrices *out) {
    *out = *like;
    out->m = m;
    out->n = n;
    out->data = calloc((size_t)(like->batch * m * n) + 1, sizeof *out->data);
    return out->data ? NULL : ts_no_memory();
}

ts_status rt_matrices_copy(const rt_matrices *a, rt_matrices *out) {
    TS_TRY(rt_matrices_make(a, a->m, a->n, out));
    memcpy(out->data, a->data, (size_t)(a->batch * a->m * a->n) * sizeof *a->data);
    return NULL;
}

void rt_matrices_deinit(rt_matrices *a) {
    free(a->data);
    a->data = NULL;
}

ts_status rt_matrices_expand(rt_matrices *a, const int64_t *sizes, int rank) {
    int64_t batch = 1, index[RT_MAX_RANK] = {0};
    bool same = rank == a->batch_rank;
    for (int i = 0; i < rank; i++) {
        batch *= sizes[i];
        same = same && sizes[i] == a->batch_sizes[i];
    }
    if (same)
        return NULL;
    rt_complex128 *to = malloc((size_t)(batch * a->m * a->n + 1) * sizeof *to);
    if (!to)
        return ts_no_memory();
    for (int64_t b = 0; b < batch; b++) {
        int64_t from = 0;
        for (int i = 0; i < a->batch_rank; i++) {
            int64_t at = index[rank - a->batch_rank + i];
            from = from * a->batch_sizes[i] + (a->batch_sizes[i] == 1 ? 0 : at);
        }
        memcpy(to + b * a->m * a->n, rt_matrix_at(a, from), (size_t)(a->m * a->n) * sizeof *to);
        for (int i = rank - 1; i >= 0 && ++index[i] == sizes[i]; i--)
            index[i] = 0;
    }
    free(a->data);
    a->data = to;
    a->batch = batch;
    a->batch_rank = rank;
    memcpy(a->batch_sizes, sizes, (size_t)rank * sizeof *sizes);
    return NULL;
}

/* Sizes [batch.., extra...]; a negative extra is none. */
static int sizes_of(const rt_matrices *a, int64_t m, int64_t n, int64_t *out) {
    int rank = a->batch_rank;
    memcpy(out, a->batch_sizes, (size_t)rank * sizeof *out);
    if (m >= 0)
        out[rank++] = m;
    if (n >= 0)
        out[rank++] = n;
    return rank;
}

ts_status rt_complex_vectors_give(const rt_matrices *like, const rt_complex128 *v, int64_t n,
                                  rt_dtype dtype, rt_value *out) {
    int64_t sizes[RT_MAX_RANK];
    rt_tensor *t;
    TS_TRY(rt_tensor_make(dtype, sizes, sizes_of(like, -1, n, sizes), &t));
    if (t->element_count)
        rt_store_block(RT_WORK_COMPLEX, dtype, t->data, (int64_t)rt_dtype_size(dtype),
                       t->element_count, v);
    *out = rt_from_tensor(t);
    return NULL;
}

ts_status rt_matrices_give(const rt_matrices *a, rt_value *out) {
    int64_t sizes[RT_MAX_RANK];
    rt_tensor *t;
    TS_TRY(rt_tensor_make(a->dtype, sizes, sizes_of(a, a->m, a->n, sizes), &t));
    char *at = t->data;
    for (int64_t i = 0; i < t->element_count; i++, at += rt_dtype_size(a->dtype)) {
        if (rt_dtype_is_complex(a->dtype))
            rt_store_complex(a->dtype, at, a->data[i]);
        else
            rt_store_double(a->dtype, at, a->data[i].re);
    }
    *out = rt_from_tensor(t);
    return NULL;
}

ts_status rt_vectors_give(const rt_matrices *like, const double *v, int64_t n, rt_value *out) {
    int64_t sizes[RT_MAX_RANK];
    int rank = sizes_of(like, -1, n, sizes);
    return rt_from_doubles(v, rt_dtype_real(like->dtype), sizes, rank, out);
}

ts_status rt_int_vectors_give(const rt_matrices *like, const int64_t *v, int64_t n, rt_dtype dtype,
                              rt_value *out) {
    int64_t sizes[RT_MAX_RANK];
    rt_tensor *t;
    TS_TRY(rt_tensor_make(dtype, sizes, sizes_of(like, -1, n, sizes), &t));
    for (int64_t i = 0; i < t->element_count; i++)
        rt_store_int(dtype, (char *)t->data + (size_t)i * rt_dtype_size(dtype), v[i]);
    *out = rt_from_tensor(t);
    return NULL;
}

/* ---- factorisations ---- */

int64_t rt_lu(rt_complex128 *a, int64_t m, int64_t n, bool pivot, int64_t *pivots) {
    int64_t info = 0, k = m < n ? m : n;
    for (int64_t j = 0; j < k; j++) {
        int64_t best = j;
        for (int64_t i = j + 1; pivot && i < m; i++) /* |re| + |im|, as izamax */
            if (fabs(a[i * n + j].re) + fabs(a[i * n + j].im) >
                fabs(a[best * n + j].re) + fabs(a[best * n + j].im))
                best = i;
        pivots[j] = best + 1;
        if (a[best * n + j].re == 0 && a[best * n + j].im == 0) {
            info = info ? info : j + 1;
            continue;
        }
        for (int64_t c = 0; best != j && c < n; c++) {
            rt_complex128 t = a[j * n + c];
            a[j * n + c] = a[best * n + c];
            a[best * n + c] = t;
        }
        for (int64_t i = j + 1; i < m; i++) {
            rt_complex128 f = a[i * n + j] = rt_c_div(a[i * n + j], a[j * n + j]);
            if (f.re == 0 && f.im == 0)
                continue;
            for (int64_t c = j + 1; c < n; c++)
                a[i * n + c] = rt_c_sub(a[i * n + c], rt_c_mul(f, a[j * n + c]));
        }
    }
    return info;
}

void rt_lu_solve(const rt_complex128 *lu, int64_t n, const int64_t *pivots, rt_complex128 *b,
                 int64_t k) {
    for (int64_t i = 0; i < n; i++) {
        int64_t p = pivots[i] - 1;
        for (int64_t c = 0; p != i && p >= 0 && p < n && c < k; c++) {
            rt_complex128 t = b[i * k + c];
            b[i * k + c] = b[p * k + c];
            b[p * k + c] = t;
        }
    }
    rt_triangular_solve(lu, n, false, false, false, true, b, k);
    rt_triangular_solve(lu, n, true, false, false, false, b, k);
}

int64_t rt_cholesky(rt_complex128 *a, int64_t n) {
    for (int64_t j = 0; j < n; j++) {
        double d = a[j * n + j].re;
        for (int64_t c = 0; c < j; c++)
            d -= a[j * n + c].re * a[j * n + c].re + a[j * n + c].im * a[j * n + c].im;
        if (!(d > 0))
            return j + 1;
        d = sqrt(d);
        a[j * n + j] = (rt_complex128){d, 0};
        for (int64_t i = j + 1; i < n; i++) {
            rt_complex128 s = a[i * n + j];
            for (int64_t c = 0; c < j; c++)
                s = rt_c_sub(s, rt_c_mul(a[i * n + c], rt_c_conj(a[j * n + c])));
            a[i * n + j] = (rt_complex128){s.re / d, s.im / d};
        }
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++)
            a[i * n + j] = (rt_complex128){0, 0};
    return 0;
}

void rt_triangular_solve(const rt_complex128 *a, int64_t n, bool upper, bool transpose,
                         bool conjugate, bool unit, rt_complex128 *b, int64_t k) {
    bool from_end = upper != transpose;
    for (int64_t s = 0; s < n; s++) {
        int64_t i = from_end ? n - 1 - s : s;
        int64_t low = from_end ? i + 1 : 0, high = from_end ? n : i;
        for (int64_t j = low; j < high; j++) {
            rt_complex128 f = transpose ? a[j * n + i] : a[i * n + j];
            if (conjugate)
                f.im = -f.im;
            for (int64_t c = 0; c < k; c++)
                b[i * k + c] = rt_c_sub(b[i * k + c], rt_c_mul(f, b[j * k + c]));
        }
        rt_complex128 d = a[i * n + i];
        if (conjugate)
            d.im = -d.im;
        for (int64_t c = 0; !unit && c < k; c++)
            b[i * k + c] = rt_c_div(b[i * k + c], d);
    }
}

/* One reflector I - tau v v^H that maps x to (beta, 0, ...), v[0] = 1, as zlarfg. */
static void reflector(rt_complex128 *x, int64_t n, int64_t step, rt_complex128 *tau) {
    double norm = 0;
    for (int64_t i = 1; i < n; i++) {
        rt_complex128 v = x[i * step];
        norm += v.re * v.re + v.im * v.im;
    }
    *tau = (rt_complex128){0, 0};
    if (n < 1 || (norm == 0 && x[0].im == 0))
        return;
    rt_complex128 alpha = x[0];
    double beta = -copysign(sqrt(alpha.re * alpha.re + alpha.im * alpha.im + norm), alpha.re);
    *tau = (rt_complex128){(beta - alpha.re) / beta, -alpha.im / beta};
    rt_complex128 scale = rt_c_div((rt_complex128){1, 0},
                                   (rt_complex128){alpha.re - beta, alpha.im});
    for (int64_t i = 1; i < n; i++)
        x[i * step] = rt_c_mul(x[i * step], scale);
    x[0] = (rt_complex128){beta, 0};
}

/* c[rows][k] -= tau v (v^H c), v = (1, a[step], a[2 step], ...) */
static void reflect(const rt_complex128 *a, int64_t step, int64_t rows, rt_complex128 tau,
                    rt_complex128 *c, int64_t ldc, int64_t k) {
    for (int64_t j = 0; j < k; j++) {
        rt_complex128 sum = c[j];
        for (int64_t i = 1; i < rows; i++) {
            rt_complex128 p = rt_c_mul(rt_c_conj(a[i * step]), c[i * ldc + j]);
            sum.re += p.re;
            sum.im += p.im;
        }
        sum = rt_c_mul(tau, sum);
        c[j] = rt_c_sub(c[j], sum);
        for (int64_t i = 1; i < rows; i++)
            c[i * ldc + j] = rt_c_sub(c[i * ldc + j], rt_c_mul(a[i * step], sum));
    }
}

void rt_qr(rt_complex128 *a, int64_t m, int64_t n, rt_complex128 *tau) {
    int64_t k = m < n ? m : n;
    for (int64_t j = 0; j < k; j++) {
        rt_complex128 *x = a + j * n + j;
        reflector(x, m - j, n, &tau[j]);
        reflect(x, n, m - j, rt_c_conj(tau[j]), x + 1, n, n - j - 1);
    }
}

void rt_apply_q(const rt_complex128 *a, int64_t lda, int64_t m, int64_t count,
                const rt_complex128 *tau, bool adjoint, rt_complex128 *c, int64_t k) {
    for (int64_t s = 0; s < count; s++) {
        int64_t j = adjoint ? s : count - 1 - s;
        reflect(a + j * lda + j, lda, m - j, adjoint ? rt_c_conj(tau[j]) : tau[j], c + j * k, k, k);
    }
}

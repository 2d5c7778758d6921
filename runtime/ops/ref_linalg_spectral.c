/* runtime/ops/ref_linalg_spectral.c - QR, eigenvalues, singular values and what follows from them. */
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/linalg.h"

#define TENSOR(i) args[i].as.tensor

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- QR ---- */

static ts_status qr(rt_tensor *t, bool reduced, bool want_q, rt_value *outs) {
    rt_matrices a = {0}, q = {0}, r = {0};
    ts_status status = rt_matrices_load(t, "linalg.qr", &a);
    int64_t m = a.m, n = a.n, k = least(m, n), columns = reduced ? k : m;
    if (!status)
        status = want_q ? rt_matrices_make(&a, m, columns, &q) : NULL;
    if (!status)
        status = rt_matrices_make(&a, columns, n, &r);
    rt_complex128 *tau = calloc((size_t)k + 1, sizeof *tau);
    if (!tau && !status)
        status = ts_no_memory();
    for (int64_t b = 0; b < a.batch && !status; b++) {
        rt_complex128 *x = rt_matrix_at(&a, b);
        rt_qr(x, m, n, tau);
        for (int64_t i = 0; i < columns && i < k; i++)
            for (int64_t j = i; j < n; j++)
                rt_matrix_at(&r, b)[i * n + j] = x[i * n + j];
        if (!want_q)
            continue;
        for (int64_t i = 0; i < columns; i++)
            rt_matrix_at(&q, b)[i * columns + i] = (rt_complex128){1, 0};
        rt_apply_q(x, n, m, k, tau, false, rt_matrix_at(&q, b), columns);
    }
    if (!status && want_q) {
        status = rt_matrices_give(&q, &outs[0]);
    } else if (!status) {
        int64_t none = 0;
        status = rt_from_doubles(NULL, a.dtype, &none, 1, &outs[0]);
    }
    if (!status)
        status = rt_matrices_give(&r, &outs[1]);
    free(tau);
    rt_matrices_deinit(&a);
    rt_matrices_deinit(&q);
    rt_matrices_deinit(&r);
    return status;
}

KERNEL(linalg_qr) {
    bool reduced = rt_str_value_is(args[1], "reduced"), only_r = rt_str_value_is(args[1], "r");
    if (!reduced && !only_r && !rt_str_value_is(args[1], "complete"))
        return ts_raise("RuntimeError", "qr received unrecognized mode '%.*s' but expected one of "
                                        "'reduced' (default), 'r', or 'complete'",
                        TS_STR_ARG(rt_str_text(args[1].as.str)));
    return qr(TENSOR(0), reduced || only_r, !only_r, outs);
}
KERNEL(qr) { return qr(TENSOR(0), args[1].as.i != 0, true, outs); }

KERNEL(geqrf) {
    rt_matrices a = {0};
    TS_TRY(rt_matrices_load(TENSOR(0), "torch.geqrf", &a));
    int64_t k = least(a.m, a.n);
    rt_complex128 *tau = calloc((size_t)(a.batch * k) + 1, sizeof *tau);
    ts_status status = tau ? NULL : ts_no_memory();
    for (int64_t b = 0; b < a.batch && !status; b++)
        rt_qr(rt_matrix_at(&a, b), a.m, a.n, tau + b * k);
    if (!status)
        status = rt_matrices_give(&a, &outs[0]);
    if (!status)
        status = rt_complex_vectors_give(&a, tau, k, a.dtype, &outs[1]);
    free(tau);
    rt_matrices_deinit(&a);
    return status;
}

static ts_status load_tau(const rt_tensor *t, int64_t batch, int64_t *count, rt_complex128 **out) {
    rt_tensor *dense;
    *count = t->rank ? t->sizes[t->rank - 1] : 0;
    if (t->element_count != batch * *count)
        return ts_raise("RuntimeError", "expected tau of one vector for each matrix");
    TS_TRY(rt_tensor_contiguous((rt_tensor *)(uintptr_t)t, &dense));
    *out = malloc((size_t)(t->element_count + 1) * sizeof **out);
    if (*out && t->element_count)
        rt_load_block(RT_WORK_COMPLEX, (rt_dtype)t->dtype, dense->data,
                      (int64_t)rt_dtype_size((rt_dtype)t->dtype), t->element_count, *out);
    rt_tensor_release(dense);
    return *out ? NULL : ts_no_memory();
}

KERNEL(linalg_householder_product) {
    rt_matrices a = {0}, q = {0};
    rt_complex128 *tau = NULL;
    int64_t k = 0;
    ts_status status = rt_matrices_load(TENSOR(0), "torch.linalg.householder_product", &a);
    if (!status)
        status = load_tau(TENSOR(1), a.batch, &k, &tau);
    if (!status && (a.m < a.n || k > a.n))
        status = ts_raise("RuntimeError", "torch.linalg.householder_product: input.shape[-2] must "
                                          "be greater than or equal to input.shape[-1]");
    if (!status)
        status = rt_matrices_make(&a, a.m, a.n, &q);
    for (int64_t b = 0; b < a.batch && !status; b++) {
        for (int64_t i = 0; i < a.n; i++)
            rt_matrix_at(&q, b)[i * a.n + i] = (rt_complex128){1, 0};
        rt_apply_q(rt_matrix_at(&a, b), a.n, a.m, k, tau + b * k, false, rt_matrix_at(&q, b), a.n);
    }
    if (!status)
        status = rt_matrices_give(&q, outs);
    free(tau);
    rt_matrices_deinit(&a);
    rt_matrices_deinit(&q);
    return status;
}

static void turn(const rt_complex128 *a, int64_t m, int64_t n, rt_complex128 *to) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            to[j * m + i] = a[i * n + j];
}

/* Q C, Q^H C, C Q or C Q^H; from the right through (C Q)^T = Q^T C^T = conj(Q^H) C^T. */
KERNEL(ormqr) {
    rt_matrices a = {0}, c = {0};
    rt_complex128 *tau = NULL;
    int64_t k = 0;
    bool left = args[3].as.i != 0, adjoint = args[4].as.i != 0;
    ts_status status = rt_matrices_load(TENSOR(0), "torch.ormqr", &a);
    if (!status)
        status = load_tau(TENSOR(1), a.batch, &k, &tau);
    if (!status)
        status = rt_matrices_load(TENSOR(2), "torch.ormqr", &c);
    if (!status && (c.batch != a.batch || k > a.n || k > a.m || (left ? c.m : c.n) != a.m))
        status = ts_raise("RuntimeError", "torch.ormqr: other.shape must be compatible with "
                                          "input.shape and tau.shape");
    rt_complex128 *t = status ? NULL : malloc((size_t)(c.m * c.n + 1) * sizeof *t);
    if (!status && !t)
        status = ts_no_memory();
    for (int64_t b = 0; b < a.batch && !status; b++) {
        rt_complex128 *x = rt_matrix_at(&c, b);
        if (left) {
            rt_apply_q(rt_matrix_at(&a, b), a.n, a.m, k, tau + b * k, adjoint, x, c.n);
            continue;
        }
        turn(x, c.m, c.n, t);
        for (int64_t i = 0; i < c.m * c.n; i++)
            t[i].im = -t[i].im;
        rt_apply_q(rt_matrix_at(&a, b), a.n, a.m, k, tau + b * k, !adjoint, t, c.m);
        for (int64_t i = 0; i < c.m * c.n; i++)
            t[i].im = -t[i].im;
        turn(t, c.n, c.m, x);
    }
    if (!status)
        status = rt_matrices_give(&c, outs);
    free(t);
    free(tau);
    rt_matrices_deinit(&a);
    rt_matrices_deinit(&c);
    return status;
}

/* ---- eigenvalues ---- */

static ts_status eigh(const rt_value *args, bool vectors, rt_value *outs) {
    rt_matrices a = {0};
    bool lower = rt_str_value_is(args[1], "L") || rt_str_value_is(args[1], "l");
    TS_TRY(rt_matrices_load_square(TENSOR(0), "linalg.eigh", &a));
    double *w = rt_new_doubles(a.batch * a.n);
    ts_status status = w ? NULL : ts_no_memory();
    for (int64_t b = 0; b < a.batch && !status; b++)
        status = rt_eigh(rt_matrix_at(&a, b), a.n, lower, vectors, w + b * a.n);
    if (!status)
        status = rt_vectors_give(&a, w, a.n, &outs[0]);
    if (!status && vectors)
        status = rt_matrices_give(&a, &outs[1]);
    free(w);
    rt_matrices_deinit(&a);
    return status;
}

KERNEL(linalg_eigh) { return eigh(args, true, outs); }
KERNEL(linalg_eigvalsh) { return eigh(args, false, outs); }

static ts_status eig(const rt_value *args, bool vectors, rt_value *outs) {
    rt_matrices a = {0}, v = {0};
    ts_status status = rt_matrices_load_square(TENSOR(0), "linalg.eig", &a);
    if (!status && vectors)
        status = rt_matrices_make(&a, a.n, a.n, &v);
    rt_complex128 *w = calloc((size_t)(a.batch * a.n) + 1, sizeof *w);
    if (!w && !status)
        status = ts_no_memory();
    for (int64_t b = 0; b < a.batch && !status; b++)
        status = rt_eig(rt_matrix_at(&a, b), a.n, w + b * a.n, vectors ? rt_matrix_at(&v, b) : NULL);
    rt_dtype dtype = rt_dtype_complex(rt_dtype_real(a.dtype));
    v.dtype = dtype;
    if (!status)
        status = rt_complex_vectors_give(&a, w, a.n, dtype, &outs[0]);
    if (!status && vectors)
        status = rt_matrices_give(&v, &outs[1]);
    free(w);
    rt_matrices_deinit(&a);
    rt_matrices_deinit(&v);
    return status;
}

KERNEL(linalg_eig) { return eig(args, true, outs); }
KERNEL(linalg_eigvals) { return eig(args, false, outs); }

/* ---- singular values ---- */

typedef struct decomposition {
    rt_matrices a, u, vh;
    double *s;
    int64_t k;
} decomposition;

static void decomposition_deinit(decomposition *d) {
    rt_matrices_deinit(&d->a);
    rt_matrices_deinit(&d->u);
    rt_matrices_deinit(&d->vh);
    free(d->s);
}

static ts_status decompose(rt_tensor *t, const char *name, bool vectors, bool full,
                           decomposition *d) {
    *d = (decomposition){0};
    TS_TRY(rt_matrices_load(t, name, &d->a));
    int64_t m = d->a.m, n = d->a.n;
    d->k = least(m, n);
    d->s = rt_new_doubles(d->a.batch * d->k);
    ts_status status = d->s ? NULL : ts_no_memory();
    if (!status && vectors)
        status = rt_matrices_make(&d->a, m, full ? m : d->k, &d->u);
    if (!status && vectors)
        status = rt_matrices_make(&d->a, full ? n : d->k, n, &d->vh);
    for (int64_t b = 0; b < d->a.batch && !status; b++)
        status = rt_svd(rt_matrix_at(&d->a, b), m, n, full,
                        vectors ? rt_matrix_at(&d->u, b) : NULL, d->s + b * d->k,
                        vectors ? rt_matrix_at(&d->vh, b) : NULL);
    return status;
}

KERNEL(linalg_svd) {
    decomposition d;
    ts_status status = decompose(TENSOR(0), "linalg.svd", true, args[1].as.i != 0, &d);
    if (!status)
        status = rt_matrices_give(&d.u, &outs[0]);
    if (!status)
        status = rt_vectors_give(&d.a, d.s, d.k, &outs[1]);
    if (!status)
        status = rt_matrices_give(&d.vh, &outs[2]);
    decomposition_deinit(&d);
    return status;
}

KERNEL(linalg_svdvals) {
    decomposition d;
    ts_status status = decompose(TENSOR(0), "linalg.svdvals", false, false, &d);
    if (!status)
        status = rt_vectors_give(&d.a, d.s, d.k, &outs[0]);
    decomposition_deinit(&d);
    return status;
}

KERNEL(svd) { /* U, S, V; without compute_uv zeros of the full sizes */
    decomposition d;
    bool some = args[1].as.i != 0, vectors = args[2].as.i != 0;
    rt_matrices u = {0}, v = {0};
    ts_status status = decompose(TENSOR(0), "svd", vectors, !some, &d);
    int64_t m = d.a.m, n = d.a.n;
    int64_t u_columns = vectors && some ? d.k : m, v_columns = vectors && some ? d.k : n;
    if (!status)
        status = rt_matrices_make(&d.a, m, u_columns, &u);
    if (!status)
        status = rt_matrices_make(&d.a, n, v_columns, &v);
    for (int64_t b = 0; b < d.a.batch && !status && vectors; b++) {
        memcpy(rt_matrix_at(&u, b), rt_matrix_at(&d.u, b), (size_t)(m * u_columns) * sizeof *u.data);
        for (int64_t i = 0; i < v_columns; i++)
            for (int64_t j = 0; j < n; j++)
                rt_matrix_at(&v, b)[j * v_columns + i] =
                    rt_c_conj(rt_matrix_at(&d.vh, b)[i * n + j]);
    }
    if (!status)
        status = rt_matrices_give(&u, &outs[0]);
    if (!status)
        status = rt_vectors_give(&d.a, d.s, d.k, &outs[1]);
    if (!status)
        status = rt_matrices_give(&v, &outs[2]);
    rt_matrices_deinit(&u);
    rt_matrices_deinit(&v);
    decomposition_deinit(&d);
    return status;
}

KERNEL(nuclear_norm) {
    decomposition d;
    ts_status status = decompose(TENSOR(0), "linalg.matrix_norm", false, false, &d);
    double *sums = status ? NULL : rt_new_doubles(d.a.batch);
    if (!status && !sums)
        status = ts_no_memory();
    for (int64_t i = 0; !status && i < d.a.batch * d.k; i++)
        sums[i / d.k] += d.s[i];
    rt_matrices shape = d.a;
    if (!status && args[1].as.i) { /* keepdim */
        shape.batch_sizes[shape.batch_rank++] = 1;
        shape.batch_sizes[shape.batch_rank++] = 1;
    }
    if (!status)
        status = rt_vectors_give(&shape, sums, -1, outs);
    free(sums);
    decomposition_deinit(&d);
    return status;
}

/* Absolute and relative limits below which a singular value counts as zero: numbers, or tensors of
 * one for each matrix once spread_limits has run. */
typedef struct limits {
    bool has_atol, has_rtol;
    double atol, rtol; /* where they are numbers */
    rt_tensor *atol_tensor, *rtol_tensor;
} limits;

static double tensor_entry(const rt_tensor *t, int64_t b) {
    rt_dtype dtype = (rt_dtype)t->dtype;
    return rt_load_double(dtype, (const char *)t->data + b * (int64_t)rt_dtype_size(dtype));
}

static void set_limit(rt_value v, bool *has, double *number, rt_tensor **tensor) {
    *has = !rt_is_none(v);
    if (v.tag == RT_TAG_TENSOR)
        *tensor = v.as.tensor;
    else if (*has)
        *number = rt_as_double(v);
}

static limits limits_of(rt_value atol, rt_value rtol) {
    limits l = {0};
    set_limit(atol, &l.has_atol, &l.atol, &l.atol_tensor);
    set_limit(rtol, &l.has_rtol, &l.rtol, &l.rtol_tensor);
    return l;
}

static ts_status broadcast_limit(const rt_tensor *limit, int64_t *sizes, int *rank) {
    int64_t batch[RT_MAX_RANK];
    if (!limit)
        return NULL;
    memcpy(batch, sizes, (size_t)*rank * sizeof *batch);
    return rt_broadcast(batch, *rank, limit->sizes, limit->rank, sizes, rank);
}

static ts_status spread_limit(rt_tensor **limit, const int64_t *sizes, int rank) {
    rt_tensor *spread = NULL, *given = *limit;
    *limit = NULL;
    if (!given)
        return NULL;
    TS_TRY(rt_tensor_expand(given, sizes, rank, &spread));
    ts_status status = rt_tensor_contiguous(spread, limit);
    rt_tensor_release(spread);
    return status;
}

/* Limits that are tensors broadcast with the batch of matrices, which they may enlarge: *out is t over
 * the batch of both. The limits become the caller's (limits_deinit). */
static ts_status spread_limits(rt_tensor *t, limits *l, rt_tensor **out) {
    int64_t sizes[RT_MAX_RANK];
    int rank = t->rank - 2;
    limits given = *l;
    bool plain = rank < 0 || t->element_count == 0; /* no values: PyTorch does not look at limits */
    *out = rt_retain(rt_from_tensor(t)).as.tensor;
    l->atol_tensor = l->rtol_tensor = NULL;
    if (plain || (!given.atol_tensor && !given.rtol_tensor))
        return NULL;
    memcpy(sizes, t->sizes, (size_t)rank * sizeof *sizes);
    TS_TRY(broadcast_limit(given.atol_tensor, sizes, &rank));
    TS_TRY(broadcast_limit(given.rtol_tensor, sizes, &rank));
    *l = given;
    ts_status status = spread_limit(&l->atol_tensor, sizes, rank);
    if (status)
        l->rtol_tensor = NULL;
    else
        status = spread_limit(&l->rtol_tensor, sizes, rank);
    if (!status && rank + 2 > RT_MAX_RANK)
        status = ts_error_make(TS_ERR_UNSUPPORTED, "more than %d dimensions", RT_MAX_RANK);
    if (status)
        return status;
    sizes[rank] = t->sizes[t->rank - 2];
    sizes[rank + 1] = t->sizes[t->rank - 1];
    rt_tensor_release(*out);
    return rt_tensor_expand(t, sizes, rank + 2, out);
}

static void limits_deinit(limits *l) {
    rt_tensor_release(l->atol_tensor);
    rt_tensor_release(l->rtol_tensor);
}

static double limit_at(const limits *l, const rt_matrices *a, int64_t b, double largest) {
    double atol = l->atol_tensor ? tensor_entry(l->atol_tensor, b) : l->atol;
    double rtol = l->rtol_tensor ? tensor_entry(l->rtol_tensor, b) : l->rtol;
    if (!l->has_rtol)
        rtol = atol > 0 ? 0 : rt_epsilon(a->dtype) * (double)most(a->m, a->n);
    return fmax(atol, rtol * largest);
}

/* Sizes of the values: singular, or |eigenvalues| of a Hermitian matrix with its vectors. */
static ts_status decompose_for(rt_tensor *t, const char *name, bool hermitian, bool vectors,
                               decomposition *d) {
    if (!hermitian)
        return decompose(t, name, vectors, false, d);
    *d = (decomposition){0};
    TS_TRY(rt_matrices_load_square(t, name, &d->a));
    int64_t n = d->k = d->a.n;
    d->s = rt_new_doubles(d->a.batch * n);
    ts_status status = d->s ? rt_matrices_copy(&d->a, &d->u) : ts_no_memory();
    if (!status)
        status = rt_matrices_make(&d->a, n, n, &d->vh);
    for (int64_t b = 0; b < d->a.batch && !status; b++) {
        double *w = d->s + b * n;
        rt_complex128 *u = rt_matrix_at(&d->u, b);
        status = rt_eigh(u, n, true, true, w);
        for (int64_t j = 0; j < n && !status; j++) {
            double sign = w[j] < 0 ? -1 : 1;
            for (int64_t i = 0; i < n; i++) {
                rt_complex128 v = rt_c_conj(u[i * n + j]);
                rt_matrix_at(&d->vh, b)[j * n + i] = (rt_complex128){sign * v.re, sign * v.im};
            }
            w[j] = fabs(w[j]);
        }
    }
    return status;
}

static double largest_of(const double *s, int64_t n) {
    double r = 0;
    for (int64_t i = 0; i < n; i++)
        r = fmax(r, s[i]);
    return r;
}

static ts_status matrix_rank(rt_tensor *t, limits l, bool hermitian, rt_value *out) {
    decomposition d = {0};
    rt_tensor *spread = NULL;
    ts_status status = spread_limits(t, &l, &spread);
    if (!status)
        status = decompose_for(spread, "linalg.matrix_rank", hermitian, false, &d);
    int64_t *rank = status ? NULL : calloc((size_t)d.a.batch + 1, sizeof *rank);
    if (!status && !rank)
        status = ts_no_memory();
    for (int64_t b = 0; b < d.a.batch && !status; b++) {
        const double *s = d.s + b * d.k;
        double limit = limit_at(&l, &d.a, b, largest_of(s, d.k));
        for (int64_t i = 0; i < d.k; i++)
            rank[b] += s[i] > limit;
    }
    if (!status)
        status = rt_int_vectors_give(&d.a, rank, -1, RT_int64, out);
    free(rank);
    decomposition_deinit(&d);
    rt_tensor_release(spread);
    limits_deinit(&l);
    return status;
}

KERNEL(linalg_matrix_rank) {
    limits l = limits_of(args[1], rt_none());
    l.has_rtol = true;
    return matrix_rank(TENSOR(0), l, args[2].as.i != 0, outs);
}
KERNEL(linalg_matrix_rank_limits) {
    return matrix_rank(TENSOR(0), limits_of(args[1], args[2]), args[3].as.i != 0, outs);
}

/* V diag(1 / s) U^H */
static ts_status pseudo_inverse(rt_tensor *t, limits l, bool hermitian, rt_value *out) {
    decomposition d = {0};
    rt_matrices x = {0};
    rt_tensor *spread = NULL;
    ts_status status = spread_limits(t, &l, &spread);
    if (!status)
        status = decompose_for(spread, "linalg.pinv", hermitian, true, &d);
    int64_t m = d.a.m, n = d.a.n, k = d.k;
    if (!status)
        status = rt_matrices_make(&d.a, n, m, &x);
    for (int64_t b = 0; b < d.a.batch && !status; b++) {
        const double *s = d.s + b * k;
        double limit = limit_at(&l, &d.a, b, largest_of(s, k));
        for (int64_t r = 0; r < k; r++) {
            if (!(s[r] > limit))
                continue;
            for (int64_t i = 0; i < n; i++) {
                rt_complex128 v = rt_c_conj(rt_matrix_at(&d.vh, b)[r * n + i]);
                v = (rt_complex128){v.re / s[r], v.im / s[r]};
                for (int64_t j = 0; j < m; j++) {
                    rt_complex128 p =
                        rt_c_mul(v, rt_c_conj(rt_matrix_at(&d.u, b)[j * d.u.n + r]));
                    rt_matrix_at(&x, b)[i * m + j].re += p.re;
                    rt_matrix_at(&x, b)[i * m + j].im += p.im;
                }
            }
        }
    }
    if (!status)
        status = rt_matrices_give(&x, out);
    rt_matrices_deinit(&x);
    decomposition_deinit(&d);
    rt_tensor_release(spread);
    limits_deinit(&l);
    return status;
}

KERNEL(linalg_pinv) { /* the second argument is relative */
    limits l = limits_of(rt_none(), args[1]);
    return pseudo_inverse(TENSOR(0), l, args[2].as.i != 0, outs);
}
KERNEL(linalg_pinv_limits) {
    return pseudo_inverse(TENSOR(0), limits_of(args[1], args[2]), args[3].as.i != 0, outs);
}
KERNEL(pinverse) { return pseudo_inverse(TENSOR(0), limits_of(rt_none(), args[1]), false, outs); }

/* ---- least squares, by the pseudo-inverse ---- */

KERNEL(linalg_lstsq) {
    rt_tensor *a = TENSOR(0), *b = TENSOR(1), *column = NULL;
    decomposition d = {0};
    rt_matrices rhs = {0}, x = {0}, original = {0};
    bool vector = b->rank == a->rank - 1 || b->rank == 1;
    bool is_gelsy = rt_is_none(args[3]) || rt_str_value_is(args[3], "gelsy");
    bool is_gels = !rt_is_none(args[3]) && rt_str_value_is(args[3], "gels");
    int64_t *rank = NULL, none = 0;
    double *residuals = NULL;
    if (vector) {
        TS_TRY(rt_as_columns(b, &column));
        b = column;
    }
    ts_status status = rt_matrices_load(b, "torch.linalg.lstsq", &rhs);
    if (!status)
        status = rt_matrices_load(a, "torch.linalg.lstsq", &original);
    if (!status)
        status = decompose(a, "torch.linalg.lstsq", true, false, &d);
    int64_t m = d.a.m, n = d.a.n, k = d.k, columns = rhs.n;
    int64_t sizes[RT_MAX_RANK];
    int batch_rank = 0;
    if (!status && rhs.m != m)
        status = ts_raise("RuntimeError", "torch.linalg.lstsq: input.size(-2) should match "
                                          "other.size(-2)");
    if (!status)
        status = rt_broadcast(d.a.batch_sizes, d.a.batch_rank, rhs.batch_sizes, rhs.batch_rank,
                              sizes, &batch_rank);
    if (!status && batch_rank != d.a.batch_rank)
        status = ts_error_make(TS_ERR_UNSUPPORTED, "linalg.lstsq of batches of different rank");
    for (int i = 0; i < batch_rank && !status; i++)
        if (sizes[i] != d.a.batch_sizes[i])
            status = ts_error_make(TS_ERR_UNSUPPORTED, "linalg.lstsq that broadcasts its matrices");
    if (!status)
        status = rt_matrices_expand(&rhs, sizes, batch_rank);
    if (!status)
        status = rt_matrices_make(&d.a, n, columns, &x);
    if (!status) {
        rank = calloc((size_t)d.a.batch + 1, sizeof *rank);
        residuals = rt_new_doubles(d.a.batch * columns);
        if (!rank || !residuals)
            status = ts_no_memory();
    }
    bool full_rank = true;
    for (int64_t i = 0; i < d.a.batch && !status; i++) {
        const double *s = d.s + i * k;
        double limit = rt_is_none(args[2]) ? rt_epsilon(d.a.dtype) * (double)most(m, n)
                                           : rt_as_double(args[2]);
        const rt_complex128 *y = rt_matrix_at(&rhs, i);
        rt_complex128 *to = rt_matrix_at(&x, i);
        for (int64_t r = 0; r < k; r++) {
            if (!(s[r] > limit * s[0]))
                continue;
            rank[i]++;
            for (int64_t c = 0; c < columns; c++) {
                rt_complex128 sum = {0, 0};
                for (int64_t j = 0; j < m; j++) {
                    rt_complex128 p =
                        rt_c_mul(rt_c_conj(rt_matrix_at(&d.u, i)[j * k + r]), y[j * columns + c]);
                    sum.re += p.re;
                    sum.im += p.im;
                }
                for (int64_t j = 0; j < n; j++) {
                    rt_complex128 p = rt_c_mul(rt_c_conj(rt_matrix_at(&d.vh, i)[r * n + j]),
                                               (rt_complex128){sum.re / s[r], sum.im / s[r]});
                    to[j * columns + c].re += p.re;
                    to[j * columns + c].im += p.im;
                }
            }
        }
        full_rank = full_rank && rank[i] == n;
        for (int64_t j = 0; j < m; j++)
            for (int64_t c = 0; c < columns; c++) {
                rt_complex128 v = y[j * columns + c];
                for (int64_t e = 0; e < n; e++)
                    v = rt_c_sub(v, rt_c_mul(rt_matrix_at(&original, i)[j * n + e],
                                             to[e * columns + c]));
                residuals[i * columns + c] += v.re * v.re + v.im * v.im;
            }
    }
    if (!status && vector) {
        int64_t count = n * columns;
        status = rt_complex_vectors_give(&x, x.data, count, x.dtype, &outs[0]);
    } else if (!status) {
        status = rt_matrices_give(&x, &outs[0]);
    }
    if (!status)
        status = m > n && full_rank && !is_gelsy
                     ? rt_vectors_give(&d.a, residuals, vector ? -1 : columns, &outs[1])
                     : rt_from_doubles(NULL, rt_dtype_real(d.a.dtype), &none, 1, &outs[1]);
    if (!status)
        status = is_gels ? rt_from_ints(NULL, &none, 1, &outs[2])
                         : rt_int_vectors_give(&d.a, rank, -1, RT_int64, &outs[2]);
    if (!status)
        status = is_gels || is_gelsy
                     ? rt_from_doubles(NULL, rt_dtype_real(d.a.dtype), &none, 1, &outs[3])
                     : rt_vectors_give(&d.a, d.s, k, &outs[3]);
    rt_tensor_release(column);
    free(rank);
    free(residuals);
    rt_matrices_deinit(&rhs);
    rt_matrices_deinit(&x);
    rt_matrices_deinit(&original);
    decomposition_deinit(&d);
    return status;
}

/* ---- matrix exponential: scaling, a Taylor polynomial, squaring ---- */

static void multiply(const rt_complex128 *a, const rt_complex128 *b, int64_t n, rt_complex128 *to) {
    memset(to, 0, (size_t)(n * n) * sizeof *to);
    for (int64_t i = 0; i < n; i++)
        for (int64_t p = 0; p < n; p++)
            for (int64_t j = 0; j < n; j++) {
                rt_complex128 v = rt_c_mul(a[i * n + p], b[p * n + j]);
                to[i * n + j].re += v.re;
                to[i * n + j].im += v.im;
            }
}

KERNEL(linalg_matrix_exp);

/* Alone of its family it takes 16-bit floats. */
static ts_status exp_of_16_bits(rt_context *context, rt_tensor *t, rt_value *outs) {
    rt_tensor *wide, *narrow = NULL;
    TS_TRY(rt_tensor_cast(t, RT_float32, false, &wide));
    rt_value arg = rt_from_tensor(wide), result = rt_none();
    ts_status status = rt_ref_linalg_matrix_exp(context, &arg, &result);
    if (!status)
        status = rt_tensor_cast(result.as.tensor, (rt_dtype)t->dtype, false, &narrow);
    if (!status)
        outs[0] = rt_from_tensor(narrow);
    rt_release(result);
    rt_release(arg);
    return status;
}

KERNEL(linalg_matrix_exp) {
    rt_matrices a = {0};
    if (TENSOR(0)->dtype == RT_float16 || TENSOR(0)->dtype == RT_bfloat16)
        return exp_of_16_bits(context, TENSOR(0), outs);
    TS_TRY(rt_matrices_load_square(TENSOR(0), "linalg.matrix_exp", &a));
    int64_t n = a.n, count = n * n;
    rt_complex128 *term = malloc((size_t)(3 * count + 1) * sizeof *term);
    ts_status status = term ? NULL : ts_no_memory();
    for (int64_t b = 0; b < a.batch && !status; b++) {
        rt_complex128 *x = rt_matrix_at(&a, b), *next = term + count, *sum = next + count;
        double norm = 0;
        for (int64_t i = 0; i < n; i++) {
            double row = 0;
            for (int64_t j = 0; j < n; j++)
                row += rt_c_abs(x[i * n + j]);
            norm = fmax(norm, row);
        }
        int squarings = 0;
        if (isfinite(norm))
            while (norm > 0.5) {
                norm /= 2;
                squarings++;
            }
        double scale = ldexp(1, -squarings);
        for (int64_t i = 0; i < count; i++) {
            x[i] = (rt_complex128){x[i].re * scale, x[i].im * scale};
            term[i] = sum[i] = (rt_complex128){n && i % (n + 1) == 0, 0};
        }
        for (int k = 1; k <= 18; k++) { /* 0.5^19 / 19! is below 1e-22 */
            multiply(term, x, n, next);
            for (int64_t i = 0; i < count; i++) {
                term[i] = (rt_complex128){next[i].re / k, next[i].im / k};
                sum[i].re += term[i].re;
                sum[i].im += term[i].im;
            }
        }
        for (int k = 0; k < squarings; k++) {
            multiply(sum, sum, n, next);
            memcpy(sum, next, (size_t)count * sizeof *sum);
        }
        memcpy(x, sum, (size_t)count * sizeof *sum);
    }
    if (!status)
        status = rt_matrices_give(&a, outs);
    free(term);
    rt_matrices_deinit(&a);
    return status;
}

/* ---- tensors as matrices ---- */

ts_status rt_ref_linalg_inv(rt_context *context, const rt_value *args, rt_value *outs);
ts_status rt_ref_linalg_solve(rt_context *context, const rt_value *args, rt_value *outs);

/* The dense copy of t under other sizes of the same number. */
static ts_status reshaped(rt_tensor *t, const int64_t *sizes, int rank, rt_value *out) {
    int64_t strides[RT_MAX_RANK], count;
    rt_tensor *dense, *view;
    if (!rt_element_count(sizes, rank, &count) || count != t->element_count)
        return ts_raise("RuntimeError", "shape is invalid for input of size %lld",
                        (long long)t->element_count);
    TS_TRY(rt_tensor_contiguous(t, &dense));
    rt_contiguous_strides(sizes, rank, strides);
    ts_status status = rt_tensor_alias(dense, 0, sizes, strides, rank, &view);
    rt_tensor_release(dense);
    if (!status)
        *out = rt_from_tensor(view);
    return status;
}

KERNEL(linalg_tensorinv) {
    rt_tensor *t = TENSOR(0);
    int64_t split = args[1].as.i, sizes[RT_MAX_RANK], rows = 1, columns = 1;
    if (split <= 0 || split >= t->rank)
        return ts_raise("RuntimeError", "Expected a strictly positive integer for 'ind'");
    for (int i = 0; i < t->rank; i++) {
        *(i < split ? &rows : &columns) *= t->sizes[i];
        sizes[(i + t->rank - (int)split) % t->rank] = t->sizes[i];
    }
    if (rows != columns)
        return ts_raise("RuntimeError",
                        "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
                        "prod(self.shape[:ind]), but got %lld != %lld",
                        (long long)columns, (long long)rows);
    rt_value matrix, inverse;
    TS_TRY(reshaped(t, (int64_t[]){rows, rows}, 2, &matrix));
    ts_status status = rt_ref_linalg_inv(context, &matrix, &inverse);
    rt_release(matrix);
    TS_TRY(status);
    status = reshaped(inverse.as.tensor, sizes, t->rank, outs);
    rt_release(inverse);
    return status;
}

KERNEL(linalg_tensorsolve) {
    rt_tensor *a = TENSOR(0), *b = TENSOR(1), *view = NULL;
    int64_t dims[RT_MAX_RANK], sizes[RT_MAX_RANK], strides[RT_MAX_RANK];
    int count = 0, at = 0;
    bool moved[RT_MAX_RANK] = {false};
    if (!rt_is_none(args[2]))
        TS_TRY(rt_as_ints(args[2], dims, &count));
    for (int i = 0; i < count; i++) {
        int d;
        TS_TRY(rt_wrap_dim(dims[i], a->rank, &d));
        dims[i] = d;
        moved[d] = true;
    }
    for (int i = 0; i < a->rank; i++)
        if (!moved[i]) {
            sizes[at] = a->sizes[i];
            strides[at++] = a->strides[i];
        }
    for (int i = 0; i < count; i++) {
        sizes[at] = a->sizes[dims[i]];
        strides[at++] = a->strides[dims[i]];
    }
    if (b->rank > a->rank || at != a->rank)
        return ts_raise("RuntimeError", "linalg.tensorsolve: shapes do not fit");
    TS_TRY(rt_tensor_alias(a, 0, sizes, strides, a->rank, &view));
    int64_t rows = b->element_count, columns = 1;
    for (int i = b->rank; i < a->rank; i++)
        columns *= sizes[i];
    rt_value solve_args[3] = {rt_none(), rt_none(), rt_bool(true)}, x = rt_none();
    ts_status status = rows == columns
                           ? reshaped(view, (int64_t[]){rows, columns}, 2, &solve_args[0])
                           : ts_raise("RuntimeError", "Expected self to satisfy the requirement "
                                                      "prod(self.shape[other.ndim:]) == "
                                                      "prod(self.shape[:other.ndim])");
    if (!status)
        status = reshaped(b, &rows, 1, &solve_args[1]);
    if (!status)
        status = rt_ref_linalg_solve(context, solve_args, &x);
    if (!status)
        status = reshaped(x.as.tensor, sizes + b->rank, a->rank - b->rank, outs);
    rt_tensor_release(view);
    rt_release(solve_args[0]);
    rt_release(solve_args[1]);
    rt_release(x);
    return status;
}

/* runtime/ops/ref_linalg_solve.c - LU, Cholesky, triangular systems, inverses, determinants. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/ops/linalg.h"

#define TENSOR(i) args[i].as.tensor

static ts_status batch_text(const rt_matrices *a, int64_t b, char out[48]) {
    out[0] = 0;
    if (a->batch_rank)
        snprintf(out, 48, "(Batch element %lld): ", (long long)b);
    return NULL;
}

static ts_status singular(const char *name, const rt_matrices *a, int64_t b, int64_t info,
                          const char *what) {
    char where[48];
    TS_TRY(batch_text(a, b, where));
    return ts_raise("_LinAlgError",
                    "%s: %sThe diagonal element %lld is zero, the %s could not be completed "
                    "because the input matrix is singular.",
                    name, where, (long long)info, what);
}

/* ---- LU ---- */

typedef struct factors {
    rt_matrices lu;
    int64_t *pivots, *info; /* [batch][k], [batch] */
    int64_t k;
} factors;

static void factors_deinit(factors *f) {
    rt_matrices_deinit(&f->lu);
    free(f->pivots);
    free(f->info);
}

/* Takes the matrices of f->lu apart. */
static ts_status factor(factors *f, bool pivot) {
    rt_matrices *a = &f->lu;
    f->k = a->m < a->n ? a->m : a->n;
    f->pivots = calloc((size_t)(a->batch * f->k) + 1, sizeof *f->pivots);
    f->info = calloc((size_t)a->batch + 1, sizeof *f->info);
    if (!f->pivots || !f->info)
        return ts_no_memory();
    for (int64_t b = 0; b < a->batch; b++)
        f->info[b] = rt_lu(rt_matrix_at(a, b), a->m, a->n, pivot, f->pivots + b * f->k);
    return NULL;
}

static ts_status check_factors(const factors *f, const char *name, const char *what) {
    for (int64_t b = 0; b < f->lu.batch; b++)
        if (f->info[b])
            return singular(name, &f->lu, b, f->info[b], what);
    return NULL;
}

static ts_status lu_factor(const rt_value *args, bool pivot, bool check, bool with_info,
                           rt_value *outs) {
    factors f = {0};
    ts_status status = rt_matrices_load(TENSOR(0), "torch.linalg.lu_factor", &f.lu);
    if (!status)
        status = factor(&f, pivot);
    if (!status && check)
        status = check_factors(&f, "torch.linalg.lu_factor_ex", "factorization");
    if (!status)
        status = rt_matrices_give(&f.lu, &outs[0]);
    if (!status)
        status = rt_int_vectors_give(&f.lu, f.pivots, f.k, RT_int32, &outs[1]);
    if (!status && with_info)
        status = rt_int_vectors_give(&f.lu, f.info, -1, RT_int32, &outs[2]);
    factors_deinit(&f);
    return status;
}

KERNEL(linalg_lu_factor) { return lu_factor(args, args[1].as.i != 0, true, false, outs); }
KERNEL(linalg_lu_factor_ex) {
    return lu_factor(args, args[1].as.i != 0, args[2].as.i != 0, true, outs);
}
KERNEL(lu_with_info) { return lu_factor(args, args[1].as.i != 0, args[2].as.i != 0, true, outs); }

/* P, L, U of packed factors. */
static ts_status unpack(const factors *f, bool data, bool with_pivots, rt_value *outs) {
    const rt_matrices *a = &f->lu;
    rt_matrices p = {0}, l = {0}, u = {0};
    int64_t m = a->m, n = a->n, k = f->k;
    rt_matrices none = *a;
    none.batch_rank = 0;
    none.batch = 1;
    ts_status status = with_pivots ? rt_matrices_make(a, m, m, &p) : rt_matrices_make(&none, 0, 0, &p);
    if (!status)
        status = data ? rt_matrices_make(a, m, k, &l) : rt_matrices_make(&none, 0, 0, &l);
    if (!status)
        status = data ? rt_matrices_make(a, k, n, &u) : rt_matrices_make(&none, 0, 0, &u);
    int64_t *order = malloc((size_t)(m + 1) * sizeof *order);
    if (!order && !status)
        status = ts_no_memory();
    for (int64_t b = 0; b < a->batch && !status; b++) {
        const rt_complex128 *lu = rt_matrix_at(a, b);
        for (int64_t i = 0; data && i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                if (j < i && j < k)
                    rt_matrix_at(&l, b)[i * k + j] = lu[i * n + j];
                if (j >= i && i < k)
                    rt_matrix_at(&u, b)[i * n + j] = lu[i * n + j];
            }
        for (int64_t i = 0; data && i < k; i++)
            rt_matrix_at(&l, b)[i * k + i] = (rt_complex128){1, 0};
        for (int64_t i = 0; i < m; i++)
            order[i] = i;
        for (int64_t i = 0; with_pivots && i < k; i++) {
            int64_t other = f->pivots[b * k + i] - 1, t = order[i];
            if (other < 0 || other >= m) {
                status = ts_raise("RuntimeError", "pivots passed to lu_unpack must be between 1 and "
                                                  "LU.size(-2) inclusive.");
                break;
            }
            order[i] = order[other];
            order[other] = t;
        }
        for (int64_t i = 0; with_pivots && i < m && !status; i++)
            rt_matrix_at(&p, b)[order[i] * m + i] = (rt_complex128){1, 0};
    }
    if (!status) { /* what was not asked for has the one size 0 */
        int64_t empty = 0;
        status = with_pivots ? rt_matrices_give(&p, &outs[0])
                             : rt_from_doubles(NULL, a->dtype, &empty, 1, &outs[0]);
        if (!status)
            status = data ? rt_matrices_give(&l, &outs[1])
                          : rt_from_doubles(NULL, a->dtype, &empty, 1, &outs[1]);
        if (!status)
            status = data ? rt_matrices_give(&u, &outs[2])
                          : rt_from_doubles(NULL, a->dtype, &empty, 1, &outs[2]);
    }
    free(order);
    rt_matrices_deinit(&p);
    rt_matrices_deinit(&l);
    rt_matrices_deinit(&u);
    return status;
}

KERNEL(linalg_lu) {
    factors f = {0};
    bool pivot = args[1].as.i != 0;
    ts_status status = rt_matrices_load(TENSOR(0), "linalg.lu", &f.lu);
    if (!status)
        status = factor(&f, pivot);
    if (!status)
        status = unpack(&f, true, pivot, outs);
    factors_deinit(&f);
    return status;
}

/* LU data and int32 pivots as they came. */
static ts_status factors_of(rt_tensor *data, rt_tensor *pivots, factors *f) {
    rt_tensor *dense;
    TS_TRY(rt_matrices_load(data, "lu", &f->lu));
    f->k = f->lu.m < f->lu.n ? f->lu.m : f->lu.n;
    if (pivots->element_count != f->lu.batch * f->k)
        return ts_raise("RuntimeError", "expected pivots of one entry for each row");
    TS_TRY(rt_tensor_contiguous(pivots, &dense));
    f->pivots = calloc((size_t)(f->lu.batch * f->k) + 1, sizeof *f->pivots);
    if (f->pivots && dense->element_count)
        rt_load_block(RT_WORK_INT, (rt_dtype)dense->dtype, dense->data,
                      (int64_t)rt_dtype_size((rt_dtype)dense->dtype), dense->element_count,
                      f->pivots);
    rt_tensor_release(dense);
    return f->pivots ? NULL : ts_no_memory();
}

KERNEL(lu_unpack) {
    factors f = {0};
    ts_status status = factors_of(TENSOR(0), TENSOR(1), &f);
    if (!status)
        status = unpack(&f, args[2].as.i != 0, args[3].as.i != 0, outs);
    factors_deinit(&f);
    return status;
}

/* b[n][k] turned to [k][n] or back. */
static ts_status transposed(const rt_matrices *a, bool conjugate, rt_matrices *out) {
    TS_TRY(rt_matrices_make(a, a->n, a->m, out));
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t i = 0; i < a->m; i++)
            for (int64_t j = 0; j < a->n; j++) {
                rt_complex128 v = rt_matrix_at(a, b)[i * a->n + j];
                if (conjugate)
                    v.im = -v.im;
                rt_matrix_at(out, b)[j * a->m + i] = v;
            }
    return NULL;
}

static ts_status replace_transposed(rt_matrices *a) {
    rt_matrices t = {0};
    TS_TRY(transposed(a, false, &t));
    rt_matrices_deinit(a);
    *a = t;
    return NULL;
}

/* Batches of a and b made equal by broadcasting. */
static ts_status same_batch(rt_matrices *a, rt_matrices *b) {
    int64_t sizes[RT_MAX_RANK];
    int rank;
    TS_TRY(rt_broadcast(a->batch_sizes, a->batch_rank, b->batch_sizes, b->batch_rank, sizes, &rank));
    TS_TRY(rt_matrices_expand(a, sizes, rank));
    return rt_matrices_expand(b, sizes, rank);
}

/* Solves op(LU) x = b (or x op(LU) = b) into b. */
static ts_status solve_with(factors *f, rt_matrices *b, bool left, bool adjoint) {
    if (!left) {
        TS_TRY(replace_transposed(b));
    }
    int64_t n = f->lu.n;
    if (b->m != n)
        return ts_raise("RuntimeError",
                        "linalg.lu_solve: Incompatible shapes of A and B for the equation %s "
                        "(%lldx%lld and %lldx%lld)",
                        left ? "AX = B" : "XA = B", (long long)f->lu.m, (long long)n,
                        (long long)b->m, (long long)b->n);
    for (int64_t i = 0; i < b->batch; i++) {
        const rt_complex128 *lu = rt_matrix_at(&f->lu, i);
        const int64_t *pivots = f->pivots + i * n;
        rt_complex128 *x = rt_matrix_at(b, i);
        bool turn = !left, conjugate = adjoint; /* the system of A^T, A^H or conj(A) */
        if (adjoint)
            turn = !turn;
        if (!turn && !conjugate) {
            rt_lu_solve(lu, n, pivots, x, b->n);
            continue;
        }
        if (!turn) { /* conj(A) x = b */
            for (int64_t e = 0; e < n * b->n; e++)
                x[e].im = -x[e].im;
            rt_lu_solve(lu, n, pivots, x, b->n);
            for (int64_t e = 0; e < n * b->n; e++)
                x[e].im = -x[e].im;
            continue;
        }
        rt_triangular_solve(lu, n, true, true, conjugate, false, x, b->n);
        rt_triangular_solve(lu, n, false, true, conjugate, true, x, b->n);
        for (int64_t r = n - 1; r >= 0; r--) {
            int64_t p = pivots[r] - 1;
            for (int64_t c = 0; p != r && p >= 0 && p < n && c < b->n; c++) {
                rt_complex128 t = x[r * b->n + c];
                x[r * b->n + c] = x[p * b->n + c];
                x[p * b->n + c] = t;
            }
        }
    }
    return left ? NULL : replace_transposed(b);
}

static ts_status expand_pivots(factors *f, const int64_t *sizes, int rank) {
    /* pivots ride through the matrices' own broadcast as a one-column batch */
    rt_matrices p = f->lu;
    p.m = f->k;
    p.n = 1;
    p.data = malloc((size_t)(f->lu.batch * f->k + 1) * sizeof *p.data);
    if (!p.data)
        return ts_no_memory();
    for (int64_t i = 0; i < f->lu.batch * f->k; i++)
        p.data[i] = (rt_complex128){(double)f->pivots[i], 0};
    ts_status status = rt_matrices_expand(&p, sizes, rank);
    int64_t *to = status ? NULL : malloc((size_t)(p.batch * f->k + 1) * sizeof *to);
    if (!status && !to)
        status = ts_no_memory();
    for (int64_t i = 0; !status && i < p.batch * f->k; i++)
        to[i] = (int64_t)p.data[i].re;
    if (!status) {
        free(f->pivots);
        f->pivots = to;
    }
    rt_matrices_deinit(&p);
    return status;
}

/* Both get the batch that they broadcast to. */
static ts_status broadcast_factors(factors *f, rt_matrices *b) {
    int64_t sizes[RT_MAX_RANK];
    int rank;
    TS_TRY(rt_broadcast(f->lu.batch_sizes, f->lu.batch_rank, b->batch_sizes, b->batch_rank, sizes, &rank));
    TS_TRY(expand_pivots(f, sizes, rank));
    return same_batch(&f->lu, b);
}

static ts_status lu_solve(rt_tensor *b_tensor, rt_tensor *data, rt_tensor *pivots, bool left,
                          bool adjoint, rt_value *out) {
    factors f = {0};
    rt_matrices b = {0};
    ts_status status = factors_of(data, pivots, &f);
    if (!status)
        status = rt_matrices_load(b_tensor, "linalg.lu_solve", &b);
    if (!status && f.lu.m != f.lu.n)
        status = ts_raise("RuntimeError", "linalg.lu_solve: LU must be square");
    if (!status)
        status = broadcast_factors(&f, &b);
    if (!status)
        status = solve_with(&f, &b, left, adjoint);
    if (!status)
        status = rt_matrices_give(&b, out);
    factors_deinit(&f);
    rt_matrices_deinit(&b);
    return status;
}

KERNEL(lu_solve) { return lu_solve(TENSOR(0), TENSOR(1), TENSOR(2), true, false, outs); }
KERNEL(linalg_lu_solve) {
    return lu_solve(TENSOR(2), TENSOR(0), TENSOR(1), args[3].as.i != 0, args[4].as.i != 0, outs);
}

/* B is a batch of vectors where it has one dim, or A's shape without the last. */
static bool is_vector(const rt_tensor *a, const rt_tensor *b) {
    if (b->rank == 1)
        return true;
    if (b->rank != a->rank - 1)
        return false;
    for (int i = 0; i < b->rank; i++)
        if (a->sizes[i] != b->sizes[i])
            return false;
    return true;
}

static ts_status solve(const rt_value *args, bool left, bool check, bool with_info, rt_value *outs) {
    rt_tensor *a = TENSOR(0), *b = TENSOR(1), *column = NULL;
    factors f = {0};
    rt_matrices x = {0};
    bool vector = is_vector(a, b);
    if (vector) {
        TS_TRY(rt_as_columns(b, &column));
        b = column;
    }
    ts_status status = rt_matrices_load_square(a, "linalg.solve", &f.lu);
    if (!status)
        status = rt_matrices_load(b, "linalg.solve", &x);
    if (!status && vector && !left)
        status = ts_raise("RuntimeError", "linalg.solve: Vector broadcasting of the left hand side "
                                          "is not supported for left=False");
    if (!status && x.dtype != f.lu.dtype)
        status = ts_raise("RuntimeError", "linalg.solve: Expected A and B to have the same dtype");
    if (!status && (left ? x.m : x.n) != f.lu.n)
        status = ts_raise("RuntimeError",
                          "linalg.solve: Incompatible shapes of A and B for the equation %s "
                          "(%lldx%lld and %lldx%lld)",
                          left ? "AX = B" : "XA = B", (long long)f.lu.m, (long long)f.lu.n,
                          (long long)x.m, (long long)x.n);
    rt_matrices original = f.lu;
    if (!status)
        status = same_batch(&f.lu, &x);
    if (!status)
        status = factor(&f, true);
    if (!status && check)
        for (int64_t i = 0; i < f.lu.batch && !status; i++)
            if (f.info[i])
                status = ts_raise("_LinAlgError", "linalg.solve: The solver failed because the input "
                                                  "matrix is singular.");
    if (!status)
        status = solve_with(&f, &x, left, false);
    if (!status && vector) {
        x.m = x.n * x.m;
        status = rt_complex_vectors_give(&x, x.data, x.m, x.dtype, &outs[0]);
    } else if (!status) {
        status = rt_matrices_give(&x, &outs[0]);
    }
    if (!status && with_info) {
        original.batch = 1;
        for (int i = 0; i < original.batch_rank; i++)
            original.batch *= original.batch_sizes[i];
        status = rt_int_vectors_give(original.batch == f.lu.batch ? &f.lu : &original, f.info, -1,
                                     RT_int32, &outs[1]);
    }
    rt_tensor_release(column);
    factors_deinit(&f);
    rt_matrices_deinit(&x);
    return status;
}

KERNEL(linalg_solve) { return solve(args, args[2].as.i != 0, true, false, outs); }
KERNEL(linalg_solve_ex) { return solve(args, args[2].as.i != 0, args[3].as.i != 0, true, outs); }

static ts_status invert(const rt_value *args, bool check, bool with_info, rt_value *outs) {
    factors f = {0};
    rt_matrices x = {0};
    ts_status status = rt_matrices_load_square(TENSOR(0), "linalg.inv", &f.lu);
    if (!status)
        status = factor(&f, true);
    if (!status && check)
        status = check_factors(&f, "linalg.inv", "inversion");
    if (!status)
        status = rt_matrices_make(&f.lu, f.lu.n, f.lu.n, &x);
    for (int64_t b = 0; b < f.lu.batch && !status; b++) {
        for (int64_t i = 0; i < f.lu.n; i++)
            rt_matrix_at(&x, b)[i * (f.lu.n + 1)] = (rt_complex128){1, 0};
        rt_lu_solve(rt_matrix_at(&f.lu, b), f.lu.n, f.pivots + b * f.k, rt_matrix_at(&x, b), f.lu.n);
    }
    if (!status)
        status = rt_matrices_give(&x, &outs[0]);
    if (!status && with_info)
        status = rt_int_vectors_give(&f.lu, f.info, -1, RT_int32, &outs[1]);
    factors_deinit(&f);
    rt_matrices_deinit(&x);
    return status;
}

KERNEL(linalg_inv) { return invert(args, true, false, outs); }
KERNEL(linalg_inv_ex) { return invert(args, args[1].as.i != 0, true, outs); }

typedef enum determinant_kind { DET, SLOGDET, LOGDET } determinant_kind;

static ts_status determinant(const rt_value *args, determinant_kind kind, rt_value *outs) {
    factors f = {0};
    ts_status status = rt_matrices_load_square(TENSOR(0), "linalg.det", &f.lu);
    if (!status)
        status = factor(&f, true);
    int64_t n = f.lu.n;
    rt_complex128 *sign = calloc((size_t)f.lu.batch + 1, sizeof *sign);
    double *size = rt_new_doubles(f.lu.batch);
    if (!status && (!sign || !size))
        status = ts_no_memory();
    for (int64_t b = 0; b < f.lu.batch && !status; b++) {
        rt_complex128 s = {1, 0};
        double log_size = 0;
        for (int64_t i = 0; i < n; i++) {
            rt_complex128 d = rt_matrix_at(&f.lu, b)[i * (n + 1)];
            double r = rt_c_abs(d);
            if (f.pivots[b * n + i] != i + 1)
                s = (rt_complex128){-s.re, -s.im};
            if (kind == DET) {
                s = rt_c_mul(s, d);
                continue;
            }
            s = r == 0 ? (rt_complex128){0, 0} : rt_c_mul(s, (rt_complex128){d.re / r, d.im / r});
            log_size += log(r);
        }
        sign[b] = s;
        size[b] = log_size;
        if (kind == LOGDET)
            sign[b] = rt_dtype_is_complex(f.lu.dtype)
                          ? (rt_complex128){log_size, atan2(s.im, s.re)}
                          : (rt_complex128){s.re < 0 ? NAN : log_size, 0};
    }
    if (!status)
        status = rt_complex_vectors_give(&f.lu, sign, -1, f.lu.dtype, &outs[0]);
    if (!status && kind == SLOGDET)
        status = rt_vectors_give(&f.lu, size, -1, &outs[1]);
    free(sign);
    free(size);
    factors_deinit(&f);
    return status;
}

KERNEL(linalg_det) { return determinant(args, DET, outs); }
KERNEL(linalg_slogdet) { return determinant(args, SLOGDET, outs); }
KERNEL(logdet) { return determinant(args, LOGDET, outs); }

/* ---- Cholesky ---- */

static ts_status cholesky(const rt_value *args, const char *name, bool upper, bool check,
                          bool with_info, rt_value *outs) {
    rt_matrices a = {0}, t = {0};
    TS_TRY(rt_matrices_load_square(TENSOR(0), name, &a));
    int64_t *info = calloc((size_t)a.batch + 1, sizeof *info);
    ts_status status = info ? NULL : ts_no_memory();
    if (!status && upper) { /* the upper triangle is the one that counts */
        status = transposed(&a, true, &t);
        if (!status) {
            rt_matrices_deinit(&a);
            a = t;
        }
    }
    for (int64_t b = 0; b < a.batch && !status; b++) {
        info[b] = rt_cholesky(rt_matrix_at(&a, b), a.n);
        char where[48];
        (void)batch_text(&a, b, where);
        if (info[b] && check)
            status = ts_raise("_LinAlgError",
                              "%s: %sThe factorization could not be completed because the input is "
                              "not positive-definite (the leading minor of order %lld is not "
                              "positive-definite).",
                              name, where, (long long)info[b]);
        for (int64_t i = 0; info[b] && i < a.n; i++) /* what is left above is no result */
            for (int64_t j = i + 1; j < a.n; j++)
                rt_matrix_at(&a, b)[i * a.n + j] = (rt_complex128){0, 0};
    }
    if (!status && upper) {
        rt_matrices u;
        status = transposed(&a, true, &u);
        if (!status) {
            rt_matrices_deinit(&a);
            a = u;
        }
    }
    if (!status)
        status = rt_matrices_give(&a, &outs[0]);
    if (!status && with_info)
        status = rt_int_vectors_give(&a, info, -1, RT_int32, &outs[1]);
    free(info);
    rt_matrices_deinit(&a);
    return status;
}

KERNEL(linalg_cholesky) {
    return cholesky(args, "linalg.cholesky", args[1].as.i != 0, true, false, outs);
}
KERNEL(cholesky) { return cholesky(args, "cholesky", args[1].as.i != 0, true, false, outs); }
KERNEL(linalg_cholesky_ex) {
    return cholesky(args, "torch.linalg.cholesky_ex", args[1].as.i != 0, args[2].as.i != 0, true,
                    outs);
}

static void cholesky_solve_one(const rt_complex128 *l, int64_t n, bool upper, rt_complex128 *b,
                               int64_t k) {
    if (upper) { /* U^H U x = b */
        rt_triangular_solve(l, n, true, true, true, false, b, k);
        rt_triangular_solve(l, n, true, false, false, false, b, k);
    } else {
        rt_triangular_solve(l, n, false, false, false, false, b, k);
        rt_triangular_solve(l, n, false, true, true, false, b, k);
    }
}

KERNEL(cholesky_solve) {
    rt_matrices l = {0}, b = {0};
    ts_status status = rt_matrices_load(TENSOR(0), "cholesky_solve", &b);
    if (!status)
        status = rt_matrices_load_square(TENSOR(1), "cholesky_solve", &l);
    if (!status && l.n != b.m)
        status = ts_raise("RuntimeError",
                          "Incompatible matrix sizes for cholesky_solve: each A matrix is %lld by "
                          "%lld but each b matrix is %lld by %lld",
                          (long long)l.n, (long long)l.n, (long long)b.m, (long long)b.n);
    if (!status)
        status = same_batch(&l, &b);
    for (int64_t i = 0; i < b.batch && !status; i++)
        cholesky_solve_one(rt_matrix_at(&l, i), l.n, args[2].as.i != 0, rt_matrix_at(&b, i), b.n);
    if (!status)
        status = rt_matrices_give(&b, outs);
    rt_matrices_deinit(&l);
    rt_matrices_deinit(&b);
    return status;
}

KERNEL(cholesky_inverse) {
    rt_matrices l = {0}, x = {0};
    ts_status status = rt_matrices_load_square(TENSOR(0), "cholesky_inverse", &l);
    if (!status)
        status = rt_matrices_make(&l, l.n, l.n, &x);
    for (int64_t b = 0; b < l.batch && !status; b++) {
        for (int64_t i = 0; i < l.n; i++)
            rt_matrix_at(&x, b)[i * (l.n + 1)] = (rt_complex128){1, 0};
        cholesky_solve_one(rt_matrix_at(&l, b), l.n, args[1].as.i != 0, rt_matrix_at(&x, b), l.n);
    }
    if (!status)
        status = rt_matrices_give(&x, outs);
    rt_matrices_deinit(&l);
    rt_matrices_deinit(&x);
    return status;
}

/* ---- triangular ---- */

static ts_status solve_triangular(rt_tensor *a_tensor, rt_tensor *b_tensor, bool upper, bool left,
                                  bool unit, bool transpose, rt_value *out) {
    rt_matrices a = {0}, b = {0};
    ts_status status = rt_matrices_load_square(a_tensor, "linalg.solve_triangular", &a);
    if (!status)
        status = rt_matrices_load(b_tensor, "linalg.solve_triangular", &b);
    if (!status && (left ? b.m : b.n) != a.n)
        status = ts_raise("RuntimeError",
                          "linalg.solve_triangular: Incompatible shapes of A and B for the equation "
                          "%s (%lldx%lld and %lldx%lld)",
                          left ? "AX = B" : "XA = B", (long long)a.m, (long long)a.n, (long long)b.m,
                          (long long)b.n);
    if (!status)
        status = same_batch(&a, &b);
    if (!status && !left)
        status = replace_transposed(&b);
    for (int64_t i = 0; i < b.batch && !status; i++)
        rt_triangular_solve(rt_matrix_at(&a, i), a.n, upper, transpose != !left, false, unit,
                            rt_matrix_at(&b, i), b.n);
    if (!status && !left)
        status = replace_transposed(&b);
    if (!status)
        status = rt_matrices_give(&b, out);
    rt_matrices_deinit(&a);
    rt_matrices_deinit(&b);
    return status;
}

KERNEL(linalg_solve_triangular) {
    return solve_triangular(TENSOR(0), TENSOR(1), args[2].as.i != 0, args[3].as.i != 0,
                            args[4].as.i != 0, false, outs);
}

KERNEL(triangular_solve) {
    rt_tensor *copy;
    TS_TRY(solve_triangular(TENSOR(1), TENSOR(0), args[2].as.i != 0, true, args[4].as.i != 0,
                            args[3].as.i != 0, &outs[0]));
    ts_status status = rt_tensor_clone(TENSOR(1), &copy);
    if (status)
        rt_release(outs[0]);
    else
        outs[1] = rt_from_tensor(copy);
    return status;
}

/* ---- LDL ---- */

static ts_status ldl_factor(const rt_value *args, bool check, bool with_info, rt_value *outs) {
    rt_matrices a = {0};
    bool hermitian = args[1].as.i != 0 && rt_dtype_is_complex((rt_dtype)TENSOR(0)->dtype);
    TS_TRY(rt_matrices_load_square(TENSOR(0), "torch.linalg.ldl_factor_ex", &a));
    int64_t *pivots = calloc((size_t)(a.batch * a.n) + 1, sizeof *pivots);
    int64_t *info = calloc((size_t)a.batch + 1, sizeof *info);
    ts_status status = pivots && info ? NULL : ts_no_memory();
    for (int64_t b = 0; b < a.batch && !status; b++) {
        status = rt_ldl(rt_matrix_at(&a, b), a.n, hermitian, pivots + b * a.n, &info[b]);
        if (!status && check && info[b])
            status = singular("torch.linalg.ldl_factor_ex", &a, b, info[b], "factorization");
        for (int64_t i = 0; i < a.n && !status; i++) /* only the lower triangle is the result */
            for (int64_t j = i + 1; j < a.n; j++)
                rt_matrix_at(&a, b)[i * a.n + j] = (rt_complex128){0, 0};
    }
    if (!status)
        status = rt_matrices_give(&a, &outs[0]);
    if (!status)
        status = rt_int_vectors_give(&a, pivots, a.n, RT_int32, &outs[1]);
    if (!status && with_info)
        status = rt_int_vectors_give(&a, info, -1, RT_int32, &outs[2]);
    free(pivots);
    free(info);
    rt_matrices_deinit(&a);
    return status;
}

KERNEL(linalg_ldl_factor) { return ldl_factor(args, true, false, outs); }
KERNEL(linalg_ldl_factor_ex) { return ldl_factor(args, args[2].as.i != 0, true, outs); }

static void swap_rows(rt_complex128 *b, int64_t k, int64_t i, int64_t j) {
    for (int64_t c = 0; i != j && c < k; c++) {
        rt_complex128 t = b[i * k + c];
        b[i * k + c] = b[j * k + c];
        b[j * k + c] = t;
    }
}

/* As zsytrs for the lower triangle: negative pivots mark blocks of two. */
static void ldl_solve_one(const rt_complex128 *a, int64_t n, const int64_t *pivots, bool hermitian,
                          rt_complex128 *b, int64_t k) {
    for (int64_t i = 0; i < n;) { /* L and D */
        if (pivots[i] > 0) {
            swap_rows(b, k, i, pivots[i] - 1);
            for (int64_t r = i + 1; r < n; r++)
                for (int64_t c = 0; c < k; c++)
                    b[r * k + c] = rt_c_sub(b[r * k + c], rt_c_mul(a[r * n + i], b[i * k + c]));
            for (int64_t c = 0; c < k; c++)
                b[i * k + c] = rt_c_div(b[i * k + c], a[i * n + i]);
            i++;
            continue;
        }
        swap_rows(b, k, i + 1, -pivots[i] - 1);
        for (int64_t r = i + 2; r < n; r++)
            for (int64_t c = 0; c < k; c++) {
                rt_complex128 v = rt_c_sub(b[r * k + c], rt_c_mul(a[r * n + i], b[i * k + c]));
                b[r * k + c] = rt_c_sub(v, rt_c_mul(a[r * n + i + 1], b[(i + 1) * k + c]));
            }
        rt_complex128 p = a[i * n + i], q = a[(i + 1) * n + i], s = a[(i + 1) * n + i + 1];
        rt_complex128 q_up = hermitian ? rt_c_conj(q) : q;
        rt_complex128 det = rt_c_sub(rt_c_mul(p, s), rt_c_mul(q, q_up));
        for (int64_t c = 0; c < k; c++) {
            rt_complex128 x = b[i * k + c], y = b[(i + 1) * k + c];
            b[i * k + c] = rt_c_div(rt_c_sub(rt_c_mul(s, x), rt_c_mul(q_up, y)), det);
            b[(i + 1) * k + c] = rt_c_div(rt_c_sub(rt_c_mul(p, y), rt_c_mul(q, x)), det);
        }
        i += 2;
    }
    for (int64_t i = n - 1; i >= 0;) { /* L^T or L^H */
        int64_t width = pivots[i] > 0 ? 1 : 2;
        for (int64_t w = 0; w < width; w++)
            for (int64_t r = i + 1; r < n; r++) {
                rt_complex128 f = a[r * n + i - w];
                if (hermitian)
                    f.im = -f.im;
                for (int64_t c = 0; c < k; c++)
                    b[(i - w) * k + c] = rt_c_sub(b[(i - w) * k + c], rt_c_mul(f, b[r * k + c]));
            }
        swap_rows(b, k, i, (pivots[i] > 0 ? pivots[i] : -pivots[i]) - 1);
        i -= width;
    }
}

/* In range, and negative ones in pairs. */
static bool are_ldl_pivots(const int64_t *pivots, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (pivots[i] == 0 || pivots[i] > n || pivots[i] < -n)
            return false;
        if (pivots[i] < 0 && (++i == n || pivots[i] >= 0 || pivots[i] < -n))
            return false;
    }
    return true;
}

KERNEL(linalg_ldl_solve) {
    factors f = {0};
    rt_matrices b = {0};
    bool hermitian = args[3].as.i != 0 && rt_dtype_is_complex((rt_dtype)TENSOR(0)->dtype);
    ts_status status = factors_of(TENSOR(0), TENSOR(1), &f);
    if (!status)
        status = rt_matrices_load(TENSOR(2), "torch.linalg.ldl_solve", &b);
    if (!status && (f.lu.m != f.lu.n || b.m != f.lu.n))
        status = ts_raise("RuntimeError", "torch.linalg.ldl_solve: shapes do not fit");
    for (int64_t i = 0; !status && i < f.lu.batch; i++)
        if (!are_ldl_pivots(f.pivots + i * f.k, f.k))
            status = ts_raise("RuntimeError", "torch.linalg.ldl_solve: pivots are out of range");
    if (!status)
        status = broadcast_factors(&f, &b);
    for (int64_t i = 0; i < b.batch && !status; i++)
        ldl_solve_one(rt_matrix_at(&f.lu, i), f.k, f.pivots + i * f.k, hermitian,
                      rt_matrix_at(&b, i), b.n);
    if (!status)
        status = rt_matrices_give(&b, outs);
    factors_deinit(&f);
    rt_matrices_deinit(&b);
    return status;
}

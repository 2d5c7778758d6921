/* runtime/ops/linalg.h - batches of matrices as dense complex numbers, and their factorisations.
 *
 * Real matrices take the same way with imaginary parts of zero: the factorisations keep them real,
 * and there is one piece of code for four dtypes. */
#ifndef RUNTIME_OPS_LINALG_H
#define RUNTIME_OPS_LINALG_H

#include "runtime/ops/contraction.h"

/* [batch][m][n], row-major; batch dims keep their sizes. */
typedef struct rt_matrices {
    rt_complex128 *data; /* owned */
    int64_t batch, m, n;
    int64_t batch_sizes[RT_MAX_RANK];
    int batch_rank;
    rt_dtype dtype; /* float32, float64, complex64 or complex128 */
} rt_matrices;

ts_status rt_matrices_load(const rt_tensor *t, const char *name, rt_matrices *out) TS_WARN_UNUSED;
ts_status rt_matrices_load_square(const rt_tensor *t, const char *name, rt_matrices *out)
    TS_WARN_UNUSED;
/* Vectors as matrices of one column: a view with a last dim of 1. */
ts_status rt_as_columns(const rt_tensor *t, rt_tensor **out) TS_WARN_UNUSED;
/* New matrices of the batch of `like`, zeroed. */
ts_status rt_matrices_make(const rt_matrices *like, int64_t m, int64_t n, rt_matrices *out)
    TS_WARN_UNUSED;
ts_status rt_matrices_copy(const rt_matrices *a, rt_matrices *out) TS_WARN_UNUSED;
void rt_matrices_deinit(rt_matrices *a);
/* Repeats a over the batch dims (which a's broadcast to). */
ts_status rt_matrices_expand(rt_matrices *a, const int64_t *sizes, int rank) TS_WARN_UNUSED;
static inline rt_complex128 *rt_matrix_at(const rt_matrices *a, int64_t b) {
    return a->data + b * a->m * a->n;
}
/* The tensor [batch.., m, n] of dtype a->dtype. */
ts_status rt_matrices_give(const rt_matrices *a, rt_value *out) TS_WARN_UNUSED;
/* [batch.., n] of doubles (dtype: the real one), complex numbers (complex dtype), int32 or int64. */
ts_status rt_vectors_give(const rt_matrices *like, const double *v, int64_t n, rt_value *out)
    TS_WARN_UNUSED;
ts_status rt_complex_vectors_give(const rt_matrices *like, const rt_complex128 *v, int64_t n,
                                  rt_dtype dtype, rt_value *out) TS_WARN_UNUSED;
/* n < 0: no last dim. */
ts_status rt_int_vectors_give(const rt_matrices *like, const int64_t *v, int64_t n, rt_dtype dtype,
                              rt_value *out) TS_WARN_UNUSED;

static inline rt_complex128 rt_c_mul(rt_complex128 a, rt_complex128 b) {
    return (rt_complex128){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
static inline rt_complex128 rt_c_conj(rt_complex128 a) { return (rt_complex128){a.re, -a.im}; }
static inline rt_complex128 rt_c_sub(rt_complex128 a, rt_complex128 b) {
    return (rt_complex128){a.re - b.re, a.im - b.im};
}
rt_complex128 rt_c_div(rt_complex128 a, rt_complex128 b);
double rt_c_abs(rt_complex128 a);
double rt_epsilon(rt_dtype dtype); /* of its real part */

/* LU with partial pivoting in place; pivots from 1. Returns info: the first zero pivot from 1. */
int64_t rt_lu(rt_complex128 *a, int64_t m, int64_t n, bool pivot, int64_t *pivots);
/* b[n][k] = A^-1 b from the factors. */
void rt_lu_solve(const rt_complex128 *lu, int64_t n, const int64_t *pivots, rt_complex128 *b,
                 int64_t k);
/* Lower factor in place (upper part zeroed); info: order of the bad minor. */
int64_t rt_cholesky(rt_complex128 *a, int64_t n);
/* op(A) x = b in place. */
void rt_triangular_solve(const rt_complex128 *a, int64_t n, bool upper, bool transpose,
                         bool conjugate, bool unit, rt_complex128 *b, int64_t k);
/* Householder: R above the diagonal, vectors below; tau[min(m, n)]. */
void rt_qr(rt_complex128 *a, int64_t m, int64_t n, rt_complex128 *tau);
/* c[m][k] = Q c or Q^H c, from the first `count` reflectors of a (row stride lda). */
void rt_apply_q(const rt_complex128 *a, int64_t lda, int64_t m, int64_t count,
                const rt_complex128 *tau, bool adjoint, rt_complex128 *c, int64_t k);

/* ---- LAPACK, from libopenblas or liblapack opened at run time ---- */

/* Eigenvalues rising, vectors as columns of a (row-major). */
ts_status rt_eigh(rt_complex128 *a, int64_t n, bool lower, bool vectors, double *w) TS_WARN_UNUSED;
/* u [m][m or k], s [k], vh [n or k][n]; u and vh may be NULL (values only). a is overwritten. */
ts_status rt_svd(rt_complex128 *a, int64_t m, int64_t n, bool full, rt_complex128 *u, double *s,
                 rt_complex128 *vh) TS_WARN_UNUSED;
/* Columns of v are eigenvectors; v may be NULL. a is overwritten. */
ts_status rt_eig(rt_complex128 *a, int64_t n, rt_complex128 *w, rt_complex128 *v) TS_WARN_UNUSED;
/* Bunch and Kaufman's factorisation of the lower triangle, as sytrf and hetrf give it. */
ts_status rt_ldl(rt_complex128 *a, int64_t n, bool hermitian, int64_t *pivots, int64_t *info)
    TS_WARN_UNUSED;

#endif

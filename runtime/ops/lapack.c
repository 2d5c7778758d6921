/* runtime/ops/lapack.c - eigenvalues and singular values by a LAPACK that is opened at run time.
 *
 * Programs that never ask for them need no such library. The handle is never closed: opening again
 * only counts, so nothing has to be remembered between calls. LAPACK wants columns in memory, ours
 * are rows: matrices are turned on the way in and out. */
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/linalg.h"

typedef void (*routine)(void);

static ts_status find_routine(const char *name, routine *out) {
    static const char *const libraries[] = {"libopenblas.so.0", "liblapack.so.3", "libopenblas.so"};
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        void *library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
        void *symbol = library ? dlsym(library, name) : NULL;
        if (symbol) {
            memcpy(out, &symbol, sizeof *out); /* POSIX: a symbol's address is a function's */
            return NULL;
        }
    }
    return ts_error_make(TS_ERR_UNSUPPORTED,
                         "eigenvalue and singular value routines need libopenblas.so.0 or "
                         "liblapack.so.3, which could not be opened");
}

static void turn(rt_complex128 *a, int64_t m, int64_t n, rt_complex128 *to) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            to[j * m + i] = a[i * n + j];
}

static ts_status did_not_converge(const char *name, int info) {
    return ts_raise("_LinAlgError",
                    "%s: The algorithm failed to converge because the input matrix is "
                    "ill-conditioned or has too many repeated values (error code: %d).",
                    name, info);
}

static bool all_finite(const rt_complex128 *a, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(a[i].re) || !isfinite(a[i].im))
            return false;
    return true;
}

typedef void (*heevd)(const char *jobz, const char *uplo, const int *n, rt_complex128 *a,
                      const int *lda, double *w, rt_complex128 *work, const int *lwork,
                      double *rwork, const int *lrwork, int *iwork, const int *liwork, int *info,
                      size_t l1, size_t l2);

ts_status rt_eigh(rt_complex128 *a, int64_t size, bool lower, bool vectors, double *w) {
    routine f;
    if (size == 0)
        return NULL;
    if (!all_finite(a, size * size))
        return did_not_converge("linalg.eigh", (int)size);
    TS_TRY(find_routine("zheevd_", &f));
    int n = (int)size, info = 0, lwork = 2 * n + n * n + 64, lrwork = 1 + 5 * n + 2 * n * n;
    int liwork = 3 + 5 * n;
    rt_complex128 *work = malloc((size_t)(lwork + n * n) * sizeof *work);
    double *rwork = malloc((size_t)lrwork * sizeof *rwork);
    int *iwork = malloc((size_t)liwork * sizeof *iwork);
    ts_status status = NULL;
    if (work && rwork && iwork) {
        rt_complex128 *columns = work + lwork;
        turn(a, size, size, columns);
        ((heevd)f)(vectors ? "V" : "N", lower ? "L" : "U", &n, columns, &n, w, work, &lwork, rwork,
                   &lrwork, iwork, &liwork, &info, 1, 1);
        if (info)
            status = did_not_converge("linalg.eigh", info);
        else if (vectors)
            turn(columns, size, size, a);
    } else {
        status = ts_no_memory();
    }
    free(work);
    free(rwork);
    free(iwork);
    return status;
}

typedef void (*gesdd)(const char *jobz, const int *m, const int *n, rt_complex128 *a,
                      const int *lda, double *s, rt_complex128 *u, const int *ldu,
                      rt_complex128 *vt, const int *ldvt, rt_complex128 *work, const int *lwork,
                      double *rwork, int *iwork, int *info, size_t l1);

ts_status rt_svd(rt_complex128 *a, int64_t rows, int64_t columns, bool full, rt_complex128 *u,
                 double *s, rt_complex128 *vh) {
    routine f;
    if (!all_finite(a, rows * columns))
        return did_not_converge("linalg.svd", (int)columns + 1);
    int64_t least = rows < columns ? rows : columns, most = rows < columns ? columns : rows;
    int64_t u_columns = full ? rows : least, v_rows = full ? columns : least;
    if (least == 0) { /* the empty product: identities */
        for (int64_t i = 0; u && i < rows * u_columns; i++)
            u[i] = (rt_complex128){i % (u_columns + 1) == 0, 0};
        for (int64_t i = 0; vh && i < v_rows * columns; i++)
            vh[i] = (rt_complex128){i % (columns + 1) == 0, 0};
        return NULL;
    }
    TS_TRY(find_routine("zgesdd_", &f));
    int m = (int)rows, n = (int)columns, info = 0, ldu = m, ldvt = (int)v_rows;
    int lwork = (int)(least * least + 5 * least + 2 * most + least * most + 64);
    size_t rwork_count = (size_t)(least * (5 * least + 7) + 2 * most * least + 2 * least * least +
                                  least + 64);
    rt_complex128 *work = malloc((size_t)(lwork + m * n + m * u_columns + v_rows * n) * sizeof *work);
    double *rwork = malloc(rwork_count * sizeof *rwork);
    int *iwork = malloc((size_t)(8 * least) * sizeof *iwork);
    ts_status status = NULL;
    if (work && rwork && iwork) {
        rt_complex128 *in = work + lwork, *u_out = in + m * n, *v_out = u_out + m * u_columns;
        turn(a, rows, columns, in);
        ((gesdd)f)(!u ? "N" : full ? "A" : "S", &m, &n, in, &m, s, u_out, &ldu, v_out, &ldvt, work,
                   &lwork, rwork, iwork, &info, 1);
        if (info) {
            status = did_not_converge("linalg.svd", info);
        } else if (u) {
            turn(u_out, u_columns, rows, u);
            turn(v_out, columns, v_rows, vh);
        }
    } else {
        status = ts_no_memory();
    }
    free(work);
    free(rwork);
    free(iwork);
    return status;
}

typedef void (*geev)(const char *jobvl, const char *jobvr, const int *n, rt_complex128 *a,
                     const int *lda, rt_complex128 *w, rt_complex128 *vl, const int *ldvl,
                     rt_complex128 *vr, const int *ldvr, rt_complex128 *work, const int *lwork,
                     double *rwork, int *info, size_t l1, size_t l2);

ts_status rt_eig(rt_complex128 *a, int64_t size, rt_complex128 *w, rt_complex128 *v) {
    routine f;
    if (size == 0)
        return NULL;
    if (!all_finite(a, size * size))
        return ts_raise("RuntimeError",
                        "torch.linalg.eig: input tensor should not contain infs or NaNs.");
    TS_TRY(find_routine("zgeev_", &f));
    int n = (int)size, info = 0, lwork = 8 * n + 64;
    rt_complex128 *work = malloc((size_t)(lwork + 2 * n * n) * sizeof *work);
    double *rwork = malloc((size_t)(2 * n) * sizeof *rwork);
    ts_status status = NULL;
    if (work && rwork) {
        rt_complex128 *in = work + lwork, *right = in + n * n;
        turn(a, size, size, in);
        ((geev)f)("N", v ? "V" : "N", &n, in, &n, w, right, &n, right, &n, work, &lwork, rwork,
                  &info, 1, 1);
        if (info)
            status = did_not_converge("linalg.eig", info);
        else if (v)
            turn(right, size, size, v);
    } else {
        status = ts_no_memory();
    }
    free(work);
    free(rwork);
    return status;
}

typedef void (*sytrf)(const char *uplo, const int *n, rt_complex128 *a, const int *lda, int *ipiv,
                      rt_complex128 *work, const int *lwork, int *info, size_t l1);

ts_status rt_ldl(rt_complex128 *a, int64_t size, bool hermitian, int64_t *pivots, int64_t *info) {
    routine f;
    *info = 0;
    if (size == 0)
        return NULL;
    TS_TRY(find_routine(hermitian ? "zhetrf_" : "zsytrf_", &f));
    int n = (int)size, code = 0, lwork = 64 * n;
    rt_complex128 *work = malloc((size_t)(lwork + n * n) * sizeof *work);
    int *ipiv = malloc((size_t)n * sizeof *ipiv);
    ts_status status = NULL;
    if (work && ipiv) {
        rt_complex128 *in = work + lwork;
        turn(a, size, size, in);
        ((sytrf)f)("L", &n, in, &n, ipiv, work, &lwork, &code, 1);
        turn(in, size, size, a);
        for (int64_t i = 0; i < size; i++)
            pivots[i] = ipiv[i];
        *info = code;
    } else {
        status = ts_no_memory();
    }
    free(work);
    free(ipiv);
    return status;
}

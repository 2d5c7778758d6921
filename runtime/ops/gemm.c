/* runtime/ops/gemm.c - the matrix product of the reference kernels, and buffers in work types.
 *
 * It is what runs where codegen has no kernel of its own, so it is blocked and vectorised (6 x 16
 * floats in registers), though not tuned for a machine. */
#include <stdlib.h>

#include "runtime/ops/contraction.h"

typedef float float_vector TS_VECTOR(64);
typedef double double_vector TS_VECTOR(64);
enum { GEMM_MR = 6 };

#define GEMM_T float
#define GEMM_V float_vector
#define GEMM_NR 16
#define GEMM_NAME(x) float_##x
#include "runtime/ops/gemm_body.h"
#undef GEMM_T
#undef GEMM_V
#undef GEMM_NR
#undef GEMM_NAME

#define GEMM_T double
#define GEMM_V double_vector
#define GEMM_NR 8
#define GEMM_NAME(x) double_##x
#include "runtime/ops/gemm_body.h"

static void int_gemm(int64_t m, int64_t n, int64_t k, rt_matrix a, rt_matrix b, uint64_t *c,
                     int64_t ldc) {
    const uint64_t *x = a.data, *y = b.data;
    for (int64_t i = 0; i < m; i++)
        for (int64_t p = 0; p < k; p++) {
            uint64_t v = x[i * a.row_stride + p * a.column_stride];
            for (int64_t j = 0; j < n; j++)
                c[i * ldc + j] += v * y[p * b.row_stride + j * b.column_stride];
        }
}

static void complex_gemm(int64_t m, int64_t n, int64_t k, rt_matrix a, rt_matrix b,
                         rt_complex128 *c, int64_t ldc) {
    const rt_complex128 *x = a.data, *y = b.data;
    for (int64_t i = 0; i < m; i++)
        for (int64_t p = 0; p < k; p++) {
            rt_complex128 v = x[i * a.row_stride + p * a.column_stride];
            for (int64_t j = 0; j < n; j++) {
                rt_complex128 w = y[p * b.row_stride + j * b.column_stride];
                c[i * ldc + j].re += v.re * w.re - v.im * w.im;
                c[i * ldc + j].im += v.re * w.im + v.im * w.re;
            }
        }
}

ts_status rt_gemm(rt_work work, int64_t m, int64_t n, int64_t k, rt_matrix a, rt_matrix b, void *c,
                  int64_t ldc, bool accumulate) {
    if (!accumulate)
        for (int64_t i = 0; i < m; i++)
            memset((char *)c + (size_t)(i * ldc) * rt_work_size(work), 0,
                   (size_t)n * rt_work_size(work));
    if (m == 0 || n == 0 || k == 0)
        return NULL;
    switch (work) {
    case RT_WORK_FLOAT: return float_run(m, n, k, a, b, c, ldc);
    case RT_WORK_DOUBLE: return double_run(m, n, k, a, b, c, ldc);
    case RT_WORK_INT: int_gemm(m, n, k, a, b, c, ldc); return NULL;
    case RT_WORK_COMPLEX: complex_gemm(m, n, k, a, b, c, ldc); return NULL;
    }
    return NULL;
}

/* ---- buffers ---- */

static bool is_native(rt_dtype dtype) {
    return dtype == RT_float32 || dtype == RT_float64 || dtype == RT_int64 ||
           dtype == RT_complex128;
}

ts_status rt_work_copy(const rt_tensor *t, rt_work work, void **out) {
    size_t size = rt_work_size(work);
    char *to = malloc((size_t)t->element_count * size + 1);
    *out = to;
    if (!to)
        return ts_no_memory();
    if (rt_tensor_is_contiguous(t)) {
        if (t->element_count)
            rt_load_block(work, (rt_dtype)t->dtype, t->data, (int64_t)rt_dtype_size((rt_dtype)t->dtype),
                          t->element_count, to);
        return NULL;
    }
    /* Rows of the last dimension at a time. */
    int64_t row = t->sizes[t->rank - 1];
    int64_t step = t->strides[t->rank - 1] * (int64_t)rt_dtype_size((rt_dtype)t->dtype);
    rt_tensor *rows;
    TS_TRY(rt_tensor_alias(t, 0, t->sizes, t->strides, t->rank - 1, &rows));
    rt_cursor c;
    for (rt_cursor_start(&c, rows); c.left && row; rt_cursor_next(&c)) {
        rt_load_block(work, (rt_dtype)t->dtype, c.data, step, row, to);
        to += (size_t)row * size;
    }
    rt_tensor_release(rows);
    return NULL;
}

ts_status rt_operand_init(rt_operand *o, const rt_tensor *t, bool contiguous) {
    rt_dtype dtype = (rt_dtype)t->dtype;
    *o = (rt_operand){.work = rt_work_of(dtype)};
    o->size = (int64_t)rt_work_size(o->work);
    if (is_native(dtype) && (!contiguous || rt_tensor_is_contiguous(t))) {
        o->data = t->data;
        /* A contiguous tensor's stride of a dim of size 1 may be anything; who asked for a contiguous
         * operand reads several dims as one. */
        if (contiguous)
            rt_contiguous_strides(t->sizes, t->rank, o->strides);
        for (int i = 0; i < t->rank && !contiguous; i++)
            o->strides[i] = t->strides[i];
        return NULL;
    }
    ts_status status = rt_work_copy(t, o->work, &o->owned);
    if (status) {
        free(o->owned);
        *o = (rt_operand){0};
        return status;
    }
    o->data = o->owned;
    rt_contiguous_strides(t->sizes, t->rank, o->strides);
    return NULL;
}

void rt_operand_deinit(rt_operand *o) { free(o->owned); }

ts_status rt_sink_init(rt_sink *s, rt_dtype dtype, const int64_t *sizes, int rank) {
    *s = (rt_sink){.work = rt_work_of(dtype)};
    s->size = (int64_t)rt_work_size(s->work);
    TS_TRY(rt_tensor_make_zeroed(dtype, sizes, rank, &s->tensor));
    s->data = s->tensor->data;
    if (is_native(dtype))
        return NULL;
    s->owned = calloc((size_t)s->tensor->element_count + 1, (size_t)s->size);
    s->data = s->owned;
    if (s->owned)
        return NULL;
    rt_sink_deinit(s);
    return ts_no_memory();
}

void rt_sink_deinit(rt_sink *s) {
    rt_tensor_release(s->tensor);
    free(s->owned);
    *s = (rt_sink){0};
}

void rt_sink_finish(rt_sink *s, rt_value *out) {
    rt_dtype dtype = (rt_dtype)s->tensor->dtype;
    if (s->owned && s->tensor->element_count)
        rt_store_block(s->work, dtype, s->tensor->data, (int64_t)rt_dtype_size(dtype),
                       s->tensor->element_count, s->owned);
    *out = rt_from_tensor(s->tensor);
    free(s->owned);
    *s = (rt_sink){0};
}

double *rt_new_doubles(int64_t count) { return calloc((size_t)count + 1, sizeof(double)); }

ts_status rt_doubles(const rt_tensor *t, double **out) {
    void *data = NULL;
    *out = NULL;
    if (!t)
        return NULL;
    if (rt_dtype_is_complex((rt_dtype)t->dtype))
        return rt_not_implemented("this operator", (rt_dtype)t->dtype);
    ts_status status = rt_work_copy(t, RT_WORK_DOUBLE, &data);
    if (status)
        free(data);
    else
        *out = data;
    return status;
}

ts_status rt_from_doubles(const double *data, rt_dtype dtype, const int64_t *sizes, int rank,
                          rt_value *out) {
    rt_tensor *t;
    TS_TRY(rt_tensor_make(dtype, sizes, rank, &t));
    if (t->element_count)
        rt_store_block(RT_WORK_DOUBLE, dtype, t->data, (int64_t)rt_dtype_size(dtype),
                       t->element_count, data);
    *out = rt_from_tensor(t);
    return NULL;
}

ts_status rt_from_ints(const int64_t *data, const int64_t *sizes, int rank, rt_value *out) {
    rt_tensor *t;
    TS_TRY(rt_tensor_make(RT_int64, sizes, rank, &t));
    if (t->element_count)
        memcpy(t->data, data, (size_t)t->element_count * sizeof *data);
    *out = rt_from_tensor(t);
    return NULL;
}

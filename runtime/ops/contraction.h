/* runtime/ops/contraction.h - matrix products and what is built on them.
 *
 * Products run in a work type (element.h): float for float32 and the 16-bit floats, double, int64,
 * complex128. Everything else of the nn family runs on contiguous doubles: one piece of code for
 * all dtypes, rounded once at the end. */
#ifndef RUNTIME_OPS_CONTRACTION_H
#define RUNTIME_OPS_CONTRACTION_H

#include "runtime/ops/tensor_ops.h"

/* A matrix inside a buffer of a work type; strides count elements. */
typedef struct rt_matrix {
    const void *data;
    int64_t row_stride, column_stride;
} rt_matrix;

/* c[m][n] (+)= a[m][k] b[k][n]; c has rows of ldc elements. */
ts_status rt_gemm(rt_work work, int64_t m, int64_t n, int64_t k, rt_matrix a, rt_matrix b, void *c,
                  int64_t ldc, bool accumulate) TS_WARN_UNUSED;

/* A tensor in its work type: borrowed where it is that already, else a converted copy. */
typedef struct rt_operand {
    rt_work work;
    char *data;
    int64_t size; /* bytes of an element */
    int64_t strides[RT_MAX_RANK];
    void *owned;
} rt_operand;
ts_status rt_operand_init(rt_operand *o, const rt_tensor *t, bool contiguous) TS_WARN_UNUSED;
void rt_operand_deinit(rt_operand *o);

/* A new tensor that is filled in its work type, then rounded to its dtype. */
typedef struct rt_sink {
    rt_tensor *tensor;
    rt_work work;
    char *data; /* contiguous, zeroed */
    int64_t size;
    void *owned;
} rt_sink;
ts_status rt_sink_init(rt_sink *s, rt_dtype dtype, const int64_t *sizes, int rank) TS_WARN_UNUSED;
void rt_sink_deinit(rt_sink *s);
void rt_sink_finish(rt_sink *s, rt_value *out); /* gives the tensor out, deinits */

/* A dense copy in a work type, to be freed (also where an error is returned). */
ts_status rt_work_copy(const rt_tensor *t, rt_work work, void **out) TS_WARN_UNUSED;
/* Contiguous doubles of a tensor (to be freed), and a tensor of doubles. NULL tensor: NULL. */
ts_status rt_doubles(const rt_tensor *t, double **out) TS_WARN_UNUSED;
ts_status rt_from_doubles(const double *data, rt_dtype dtype, const int64_t *sizes, int rank,
                          rt_value *out) TS_WARN_UNUSED;
ts_status rt_from_ints(const int64_t *data, const int64_t *sizes, int rank, rt_value *out)
    TS_WARN_UNUSED;
double *rt_new_doubles(int64_t count); /* zeroed; NULL when memory ran out */
/* The tensor of an optional argument, or NULL. */
static inline const rt_tensor *rt_optional_tensor(rt_value v) {
    return v.tag == RT_TAG_TENSOR ? v.as.tensor : NULL;
}

/* torch.matmul with all its broadcasting. */
ts_status rt_matmul(const rt_tensor *a, const rt_tensor *b, rt_value *out) TS_WARN_UNUSED;
/* x @ w.T + b over the last dimension. */
ts_status rt_linear(const rt_tensor *x, const rt_tensor *w, const rt_tensor *b, rt_value *out)
    TS_WARN_UNUSED;

#endif

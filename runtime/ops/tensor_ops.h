/* runtime/ops/tensor_ops.h - what the kernels and rules over tensors share. */
#ifndef RUNTIME_OPS_TENSOR_OPS_H
#define RUNTIME_OPS_TENSOR_OPS_H

#include "runtime/base/checked.h"
#include "runtime/ops/kernel_head.h"
#include "runtime/values/element.h"
#include "runtime/values/loop.h"

/* ---- arguments ---- */
static inline rt_dtype rt_dtype_of(const rt_tensor *t) { return (rt_dtype)t->dtype; }
static inline int64_t rt_element_bytes(const rt_tensor *t) {
    return (int64_t)rt_dtype_size(rt_dtype_of(t));
}
/* Numbers unboxed; a one-element tensor counts as its element. */
double rt_as_double(rt_value v);
int64_t rt_as_int(rt_value v);
rt_complex128 rt_as_complex(rt_value v);
/* A dtype argument: its value, or other where it is None. */
static inline rt_dtype rt_as_dtype(rt_value v, rt_dtype other) {
    return v.tag == RT_TAG_NONE ? other : (rt_dtype)v.as.i;
}
/* A list or tuple of ints (a single int is a list of one; None is empty), at most RT_MAX_RANK. */
ts_status rt_as_ints(rt_value v, int64_t out[RT_MAX_RANK], int *out_count) TS_WARN_UNUSED;
/* The items of a list or tuple, borrowed. */
void rt_as_items(rt_value v, const rt_value **out_items, size_t *out_count);
/* dim counted from the front; IndexError with PyTorch's text. Rank 0 counts as 1. */
ts_status rt_wrap_dim(int64_t dim, int rank, int *out) TS_WARN_UNUSED;
/* Marks the dims of a reduction; None and [] mean all. */
ts_status rt_dim_mask(rt_value dims, int rank, bool out_mask[RT_MAX_RANK]) TS_WARN_UNUSED;
/* The tensor behind v (borrowed); TypeError for what is none. */
ts_status rt_need_tensor(rt_value v, rt_tensor **out) TS_WARN_UNUSED;
ts_status rt_not_implemented(const char *op, rt_dtype dtype) TS_WARN_UNUSED;
/* RuntimeError where the dtype cannot hold the number. */
ts_status rt_check_fits(rt_value number, rt_dtype dtype) TS_WARN_UNUSED;
/* The same of the only element of a tensor. */
ts_status rt_check_element_fits(const rt_tensor *t, rt_dtype dtype) TS_WARN_UNUSED;
/* ScalarType's spelling in PyTorch's messages: Float, Long, Half. */
const char *rt_dtype_message_name(rt_dtype dtype);
/* Same layout test of "writes through several elements at once": RuntimeError where t has a
 * dimension of stride 0 and more than one element (an expanded tensor). */
ts_status rt_check_writable(const rt_tensor *t) TS_WARN_UNUSED;
bool rt_str_value_is(rt_value v, const char *text);

/* count elements of size bytes and one more, zeroed; NULL when memory ran out or the product
 * overflows (an expanded tensor may claim any count). */
void *rt_alloc_array(int64_t count, size_t size);
/* Lists of parts longer than this are refused: they would only eat memory. */
enum { RT_MOST_PARTS = 1 << 20 };

/* ---- promotion (PyTorch's result_type) ---- */
typedef struct rt_promotion {
    rt_dtype dims, zeros, numbers; /* of dimensioned tensors, 0-d tensors, Python numbers */
} rt_promotion;
#define RT_PROMOTION_START                                                                         \
    { RT_DTYPE_UNKNOWN, RT_DTYPE_UNKNOWN, RT_DTYPE_UNKNOWN }
void rt_promotion_add(rt_promotion *p, rt_value v);
void rt_promotion_add_tensor(rt_promotion *p, rt_dtype dtype, int rank);
void rt_promotion_add_number(rt_promotion *p, rt_dtype dtype);
rt_dtype rt_promotion_result(const rt_promotion *p);

/* ---- facts ---- */
static inline rt_fact rt_fact_tensor(rt_dtype dtype, int rank, const rt_dim *dims) {
    return (rt_fact){
        .kind = RT_FACT_TENSOR, .dtype = dtype, .rank = rank, .dims = dims, .dim = RT_DIM_UNKNOWN};
}
static inline rt_dtype rt_fact_tensor_dtype(const rt_fact *f) {
    return f->kind == RT_FACT_TENSOR ? f->dtype : RT_DTYPE_UNKNOWN;
}
static inline bool rt_fact_has_shape(const rt_fact *f) {
    return f->kind == RT_FACT_TENSOR && f->rank >= 0;
}
static inline rt_dim *rt_new_dims(const rt_infer_context *ic, int rank) {
    return TS_NEW_ARRAY(ic->arena, rt_dim, (size_t)(rank > 0 ? rank : 1));
}
/* A known constant int (bool). */
bool rt_fact_int(const rt_fact *f, int64_t *out);
/* A list of known constant ints; None gives none with *out_count = -1. */
bool rt_fact_ints(const rt_fact *f, int64_t out[RT_MAX_RANK], int *out_count);
/* A list whose ints are dims, known or not; false where even the count is unknown. */
bool rt_fact_dims(const rt_fact *f, rt_dim out[RT_MAX_RANK], int *out_count);
/* Entry i of a list that may have one entry for all dims. */
static inline rt_dim rt_fact_entry(const rt_fact *f, int i, int dims) {
    rt_dim list[RT_MAX_RANK];
    int count;
    if (!rt_fact_dims(f, list, &count))
        return RT_DIM_UNKNOWN;
    return count == 1 ? list[0] : count == dims ? list[i] : RT_DIM_UNKNOWN;
}
static inline bool rt_known(rt_dim d) { return d != RT_DIM_UNKNOWN; }
bool rt_fact_dtype(const rt_fact *f, rt_dtype *out); /* known dtype argument; None gives false */
/* The broadcast of two shapes of known rank; an error where they can never fit. */
ts_status rt_fact_broadcast(const rt_infer_context *ic, const rt_dim *a, int a_rank,
                            const rt_dim *b, int b_rank, rt_dim **out_dims,
                            int *out_rank) TS_WARN_UNUSED;
rt_dim rt_dim_add(const rt_infer_context *ic, rt_dim a, rt_dim b);
rt_dim rt_dim_sub(const rt_infer_context *ic, rt_dim a, rt_dim b);
rt_dim rt_dim_mul(const rt_infer_context *ic, rt_dim a, rt_dim b);
rt_dim rt_dim_floordiv(const rt_infer_context *ic, rt_dim a, rt_dim b);
rt_dim rt_dim_product(const rt_infer_context *ic, const rt_dim *dims, int count);
bool rt_dim_equal(const rt_infer_context *ic, rt_dim a, rt_dim b); /* known to be */
/* The operator raises unless a is b: an error where they are known to differ, else whoever listens
 * is told. */
ts_status rt_dim_match(const rt_infer_context *ic, rt_dim a, rt_dim b) TS_WARN_UNUSED;
void rt_dim_tell(const rt_infer_context *ic, rt_dim a, rt_dim b, rt_match how);
/* Factors of a product: an error where their dtypes are known and differ. */
ts_status rt_fact_match_dtype(const rt_fact *a, const rt_fact *b) TS_WARN_UNUSED;

#endif

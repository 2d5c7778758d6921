/* runtime/ops/infer_support.c - facts of arguments and the arithmetic of symbolic sizes. */
#include "runtime/ops/tensor_ops.h"

bool rt_fact_int(const rt_fact *f, int64_t *out) {
    if ((f->kind != RT_FACT_INT && f->kind != RT_FACT_BOOL) || !f->is_known ||
        !rt_dim_is_constant(f->dim))
        return false;
    *out = f->dim;
    return true;
}

bool rt_fact_dims(const rt_fact *f, rt_dim out[RT_MAX_RANK], int *out_count) {
    *out_count = 0;
    if (f->kind == RT_FACT_INT) {
        out[0] = f->is_known ? f->dim : RT_DIM_UNKNOWN;
        *out_count = 1;
        return true;
    }
    if (f->kind != RT_FACT_LIST || !f->count_known || f->count > RT_MAX_RANK)
        return false;
    for (size_t i = 0; i < f->count; i++) {
        const rt_fact *item = f->items ? &f->items[i] : NULL;
        out[i] = item && item->kind == RT_FACT_INT && item->is_known ? item->dim : RT_DIM_UNKNOWN;
    }
    *out_count = (int)f->count;
    return true;
}

bool rt_fact_ints(const rt_fact *f, int64_t out[RT_MAX_RANK], int *out_count) {
    if (f->kind == RT_FACT_NONE) {
        *out_count = -1;
        return true;
    }
    if (!rt_fact_dims(f, out, out_count))
        return false;
    for (int i = 0; i < *out_count; i++)
        if (!rt_dim_is_constant(out[i]))
            return false;
    return true;
}

bool rt_fact_dtype(const rt_fact *f, rt_dtype *out) {
    int64_t number;
    if (!rt_fact_int(f, &number) || number < 0 || number >= RT_DTYPE_COUNT)
        return false;
    *out = (rt_dtype)number;
    return true;
}

static bool both_constant(rt_dim a, rt_dim b) {
    return rt_dim_is_constant(a) && rt_dim_is_constant(b);
}

rt_dim rt_dim_add(const rt_infer_context *ic, rt_dim a, rt_dim b) {
    if (a == 0 || b == 0)
        return a == 0 ? b : a;
    return ic->algebra           ? ic->algebra->add(ic->algebra->user, a, b)
           : both_constant(a, b) ? a + b
                                 : RT_DIM_UNKNOWN;
}

rt_dim rt_dim_sub(const rt_infer_context *ic, rt_dim a, rt_dim b) {
    if (b == 0)
        return a;
    return ic->algebra           ? ic->algebra->sub(ic->algebra->user, a, b)
           : both_constant(a, b) ? a - b
                                 : RT_DIM_UNKNOWN;
}

rt_dim rt_dim_mul(const rt_infer_context *ic, rt_dim a, rt_dim b) {
    if (a == 1 || b == 1)
        return a == 1 ? b : a;
    if (a == 0 || b == 0)
        return 0;
    return ic->algebra ? ic->algebra->mul(ic->algebra->user, a, b) : RT_DIM_UNKNOWN;
}

rt_dim rt_dim_floordiv(const rt_infer_context *ic, rt_dim a, rt_dim b) {
    if (b == 1)
        return a;
    if (b == 0)
        return RT_DIM_UNKNOWN;
    return ic->algebra ? ic->algebra->floordiv(ic->algebra->user, a, b) : RT_DIM_UNKNOWN;
}

rt_dim rt_dim_product(const rt_infer_context *ic, const rt_dim *dims, int count) {
    rt_dim product = 1;
    for (int i = 0; i < count; i++)
        product = rt_dim_mul(ic, product, dims[i]);
    return product;
}

bool rt_dim_equal(const rt_infer_context *ic, rt_dim a, rt_dim b) {
    if (a == RT_DIM_UNKNOWN || b == RT_DIM_UNKNOWN)
        return false;
    if (a == b)
        return true;
    return ic->algebra && !both_constant(a, b) && ic->algebra->equal(ic->algebra->user, a, b);
}

void rt_dim_tell(const rt_infer_context *ic, rt_dim a, rt_dim b, rt_match how) {
    bool is_known = a != RT_DIM_UNKNOWN && b != RT_DIM_UNKNOWN;
    if (ic->match && is_known && !both_constant(a, b) && !rt_dim_equal(ic, a, b))
        ic->match(ic->match_user, a, b, how);
}

ts_status rt_dim_match(const rt_infer_context *ic, rt_dim a, rt_dim b) {
    if (both_constant(a, b) && a != b)
        return ts_raise("RuntimeError", "sizes that must be the same: %lld and %lld", (long long)a,
                        (long long)b);
    rt_dim_tell(ic, a, b, RT_MATCH_MUST);
    return NULL;
}

ts_status rt_fact_match_dtype(const rt_fact *a, const rt_fact *b) {
    if (a->kind != RT_FACT_TENSOR || b->kind != RT_FACT_TENSOR || a->dtype == b->dtype ||
        a->dtype == RT_DTYPE_UNKNOWN || b->dtype == RT_DTYPE_UNKNOWN ||
        rt_dtype_category(a->dtype) == 'q' || rt_dtype_category(b->dtype) == 'q')
        return NULL;
    return ts_raise("RuntimeError", "dtypes that must be the same: %s and %s",
                    rt_dtype_name(a->dtype), rt_dtype_name(b->dtype));
}

/* Whether a is at most b, and 0 only where b is: a table's first N rows beside N rows. They are the
 * same or a is 1, or else operators raise; the result is b. */
static bool is_part(const rt_infer_context *ic, rt_dim a, rt_dim b) {
    const rt_dim_algebra *g = ic->algebra;
    return g && rt_dim_equal(ic, g->min(g->user, a, b), a) &&
           rt_dim_equal(ic, g->min(g->user, a, 1), g->min(g->user, b, 1));
}

static ts_status broadcast_dim(const rt_infer_context *ic, rt_dim a, rt_dim b, int at,
                               rt_dim *out) {
    *out = RT_DIM_UNKNOWN;
    if (a != 1 && b != 1)
        rt_dim_tell(ic, a, b, RT_MATCH_OR_ONE);
    if (a == 1 || b == 1) {
        *out = a == 1 ? b : a;
    } else if (rt_dim_equal(ic, a, b)) {
        *out = a;
    } else if (both_constant(a, b)) {
        return ts_raise("RuntimeError",
                        "The size of tensor a (%lld) must match the size of tensor b (%lld) at "
                        "non-singleton dimension %d",
                        (long long)a, (long long)b, at);
    } else if (rt_dim_is_constant(a) || rt_dim_is_constant(b)) {
        /* The other one is this size or 1, whatever it is. */
        *out = rt_dim_is_constant(a) ? a : b;
    } else if (is_part(ic, b, a)) {
        *out = a;
    } else if (is_part(ic, a, b)) {
        *out = b;
    }
    return NULL;
}

ts_status rt_fact_broadcast(const rt_infer_context *ic, const rt_dim *a, int a_rank,
                            const rt_dim *b, int b_rank, rt_dim **out_dims, int *out_rank) {
    int rank = a_rank > b_rank ? a_rank : b_rank;
    rt_dim *dims = rt_new_dims(ic, rank);
    for (int d = 0; d < rank; d++) {
        int in_a = d - (rank - a_rank), in_b = d - (rank - b_rank);
        TS_TRY(broadcast_dim(ic, in_a < 0 ? 1 : a[in_a], in_b < 0 ? 1 : b[in_b], d, &dims[d]));
    }
    *out_dims = dims;
    *out_rank = rank;
    return NULL;
}

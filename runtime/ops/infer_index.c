/* runtime/ops/infer_index.c - dtype, rank and sizes of indexing. */
#include "runtime/ops/tensor_ops.h"

static void shaped_like(const rt_fact *shape, rt_dtype dtype, rt_fact *out) {
    *out = rt_fact_tensor(dtype, -1, NULL);
    if (rt_fact_has_shape(shape)) {
        out->rank = shape->rank;
        out->dims = shape->dims;
    }
}

static rt_dim *unknown_dims(const rt_infer_context *ic, int rank) {
    rt_dim *dims = rt_new_dims(ic, rank);
    for (int d = 0; d < rank; d++)
        dims[d] = RT_DIM_UNKNOWN;
    return dims;
}

/* What indices leave of self: a 0-d mask adds a dimension, a 0-d integer, where it selects, takes one. */
typedef struct indexed {
    rt_dim dims[RT_MAX_RANK];
    bool is_indexed[RT_MAX_RANK];
    int rank, dim;
} indexed;

static bool take_zero_dim(indexed *x, bool is_mask) {
    if (is_mask ? x->rank >= RT_MAX_RANK || x->dim > x->rank : x->dim >= x->rank)
        return false;
    int moved = x->rank - x->dim;
    rt_dim *at = x->dims + x->dim;
    if (is_mask) {
        memmove(at + 1, at, (size_t)moved * sizeof *at);
        *at = 1;
    } else {
        memmove(at, at + 1, (size_t)(moved - 1) * sizeof *at);
    }
    x->rank += is_mask ? 1 : -1;
    return true;
}

static ts_status index_rule(const rt_infer_context *ic, const rt_fact *self, const rt_fact *list, bool selects,
                            rt_fact *outs) {
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(self), -1, NULL);
    if (!rt_fact_has_shape(self) || list->kind != RT_FACT_LIST || !list->count_known ||
        (list->count && !list->items))
        return NULL;
    rt_dim *shape = rt_new_dims(ic, 0);
    int shape_rank = 0, first = -1, last = -1, count = 0;
    indexed x = {.rank = self->rank};
    for (int d = 0; d < self->rank; d++)
        x.dims[d] = self->dims[d];
    for (size_t i = 0; i < list->count; i++) {
        const rt_fact *index = &list->items[i];
        if (index->kind == RT_FACT_NONE) {
            x.dim++;
            continue;
        }
        if (!rt_fact_has_shape(index) || index->dtype == RT_DTYPE_UNKNOWN)
            return NULL;
        bool is_mask = index->dtype == RT_bool || index->dtype == RT_uint8;
        bool is_zero_dim = index->rank == 0 && (is_mask || selects);
        int taken = is_mask && index->rank ? index->rank : 1;
        if ((is_zero_dim && !take_zero_dim(&x, is_mask)) || (is_zero_dim && !is_mask ? 0 : x.dim + taken) > x.rank)
            return ts_raise("IndexError", "too many indices for tensor of dimension %d", self->rank);
        if (is_zero_dim && !is_mask)
            continue;
        /* a mask counts as vectors of unknown length */
        TS_TRY(rt_fact_broadcast(ic, shape, shape_rank, is_mask ? unknown_dims(ic, 1) : index->dims,
                                 is_mask ? 1 : index->rank, &shape, &shape_rank));
        for (int d = 0; d < taken; d++) {
            if (first < 0)
                first = x.dim;
            last = x.dim;
            count++;
            x.is_indexed[x.dim++] = true;
        }
    }
    bool is_adjacent = last - first + 1 == count;
    int rank = x.rank - count + shape_rank, at = 0;
    if (rank > RT_MAX_RANK)
        return NULL;
    rt_dim *dims = rt_new_dims(ic, rank);
    int before = count && is_adjacent ? first : 0, seen = 0;
    for (int d = 0; d <= x.rank; d++) {
        if (seen == before && at == before)
            for (int s = 0; s < shape_rank; s++)
                dims[at++] = shape[s];
        if (d == x.rank || x.is_indexed[d])
            continue;
        dims[at++] = x.dims[d];
        seen++;
    }
    outs[0].rank = rank;
    outs[0].dims = dims;
    return NULL;
}

RULE(index) { return index_rule(ic, &args[0], &args[1], false, outs); }
RULE(getitem) { return index_rule(ic, &args[0], &args[1], true, outs); }

RULE(nonzero) {
    rt_dim *dims = unknown_dims(ic, 2);
    if (rt_fact_has_shape(&args[0]))
        dims[1] = args[0].rank;
    outs[0] = rt_fact_tensor(RT_int64, 2, dims);
    return NULL;
}

RULE(nonzero_numpy) {
    rt_fact *item = TS_NEW(ic->arena, rt_fact);
    *item = rt_fact_tensor(RT_int64, 1, unknown_dims(ic, 1));
    outs[0] = (rt_fact){.kind = RT_FACT_LIST, .items = item};
    if (!rt_fact_has_shape(&args[0]))
        return NULL;
    size_t count = args[0].rank ? (size_t)args[0].rank : 1;
    rt_fact *items = TS_NEW_ARRAY(ic->arena, rt_fact, count);
    for (size_t i = 0; i < count; i++)
        items[i] = *item;
    outs[0].count_known = true;
    outs[0].count = count;
    outs[0].items = items;
    return NULL;
}

RULE(masked_select) {
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), 1, unknown_dims(ic, 1));
    return NULL;
}

RULE(masked_scatter) {
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), -1, NULL);
    if (rt_fact_has_shape(&args[0]) && rt_fact_has_shape(&args[1])) {
        rt_dim *dims;
        TS_TRY(rt_fact_broadcast(ic, args[0].dims, args[0].rank, args[1].dims, args[1].rank, &dims,
                                 &outs[0].rank));
        outs[0].dims = dims;
    }
    return NULL;
}

RULE(gather) {
    shaped_like(&args[2], rt_fact_tensor_dtype(&args[0]), outs);
    return NULL;
}

RULE(take) {
    shaped_like(&args[1], rt_fact_tensor_dtype(&args[0]), outs);
    return NULL;
}

RULE(take_along_dim) {
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), -1, NULL);
    if (args[2].kind == RT_FACT_NONE) {
        outs[0].rank = 1;
        outs[0].dims = unknown_dims(ic, 1);
        if (rt_fact_has_shape(&args[1])) {
            rt_dim *dims = rt_new_dims(ic, 1);
            dims[0] = rt_dim_product(ic, args[1].dims, args[1].rank);
            outs[0].dims = dims;
        }
    } else if (rt_fact_has_shape(&args[1])) {
        int64_t arg;
        int dim;
        rt_dim *dims = unknown_dims(ic, args[1].rank);
        outs[0].rank = args[1].rank;
        outs[0].dims = dims;
        if (!rt_fact_has_shape(&args[0]) || args[0].rank != args[1].rank ||
            !rt_fact_int(&args[2], &arg))
            return NULL;
        TS_TRY(rt_wrap_dim(arg, args[1].rank, &dim));
        rt_dim *wide;
        int rank;
        for (int d = 0; d < args[1].rank; d++) {
            if (d != dim)
                TS_TRY(
                    rt_fact_broadcast(ic, &args[0].dims[d], 1, &args[1].dims[d], 1, &wide, &rank));
            dims[d] = d == dim ? args[1].dims[d] : wide[0];
        }
    }
    return NULL;
}

RULE(index_select) {
    int64_t arg;
    int dim;
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), -1, NULL);
    if (!rt_fact_has_shape(&args[0]))
        return NULL;
    rt_dim *dims = unknown_dims(ic, args[0].rank);
    outs[0].rank = args[0].rank;
    outs[0].dims = dims;
    if (!rt_fact_int(&args[1], &arg) || args[0].rank == 0)
        return NULL;
    TS_TRY(rt_wrap_dim(arg, args[0].rank, &dim));
    for (int d = 0; d < args[0].rank; d++)
        if (d != dim)
            dims[d] = args[0].dims[d];
    if (rt_fact_has_shape(&args[2]))
        dims[dim] = args[2].rank ? args[2].dims[0] : 1;
    return NULL;
}

RULE(embedding) {
    rt_dtype index = rt_fact_tensor_dtype(&args[1]);
    if (index != RT_DTYPE_UNKNOWN && index != RT_int64 && index != RT_int32)
        return ts_raise("RuntimeError", "expected rows as int64 or int32, found %s",
                        rt_dtype_name(index));
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), -1, NULL);
    if (!rt_fact_has_shape(&args[1]) || args[1].rank >= RT_MAX_RANK)
        return NULL;
    rt_dim *dims = rt_new_dims(ic, args[1].rank + 1);
    for (int d = 0; d < args[1].rank; d++)
        dims[d] = args[1].dims[d];
    dims[args[1].rank] =
        args[0].kind == RT_FACT_TENSOR && args[0].rank == 2 ? args[0].dims[1] : RT_DIM_UNKNOWN;
    outs[0].rank = args[1].rank + 1;
    outs[0].dims = dims;
    return NULL;
}

RULE(embedding_bag) {
    rt_dim *dims = unknown_dims(ic, 2);
    if (args[0].kind == RT_FACT_TENSOR && args[0].rank == 2)
        dims[1] = args[0].dims[1];
    int64_t with_last;
    if (args[2].kind == RT_FACT_TENSOR && args[2].rank == 1 && rt_fact_int(&args[7], &with_last))
        dims[0] = rt_dim_sub(ic, args[2].dims[0], with_last ? 1 : 0);
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), 2, dims);
    for (int i = 1; i < 4; i++)
        outs[i] = rt_fact_tensor(RT_int64, -1, NULL);
    return NULL;
}

RULE(one_hot) {
    int64_t classes;
    outs[0] = rt_fact_tensor(RT_int64, -1, NULL);
    if (!rt_fact_has_shape(&args[0]) || args[0].rank >= RT_MAX_RANK)
        return NULL;
    rt_dim *dims = rt_new_dims(ic, args[0].rank + 1);
    for (int d = 0; d < args[0].rank; d++)
        dims[d] = args[0].dims[d];
    dims[args[0].rank] = rt_fact_int(&args[1], &classes) && classes >= 0 ? classes : RT_DIM_UNKNOWN;
    outs[0].rank = args[0].rank + 1;
    outs[0].dims = dims;
    return NULL;
}

static void search_fact(const rt_fact *values, const rt_fact *as_int32, rt_fact *out) {
    int64_t narrow;
    rt_dtype dtype = !rt_fact_int(as_int32, &narrow) ? RT_DTYPE_UNKNOWN
                     : narrow                        ? RT_int32
                                                     : RT_int64;
    shaped_like(values, dtype, out);
    if (values->kind != RT_FACT_TENSOR && values->kind != RT_FACT_UNKNOWN)
        *out = rt_fact_tensor(dtype, 0, NULL);
}

RULE(bucketize) {
    search_fact(&args[0], &args[2], outs);
    if (outs[0].rank == 0)
        outs[0].dims = rt_new_dims(ic, 0);
    return NULL;
}

RULE(searchsorted) {
    search_fact(&args[1], &args[2], outs);
    if (outs[0].rank == 0)
        outs[0].dims = rt_new_dims(ic, 0);
    return NULL;
}

RULE(isin) {
    shaped_like(&args[0], RT_bool, outs);
    if (args[0].kind != RT_FACT_TENSOR && args[0].kind != RT_FACT_UNKNOWN)
        outs[0] = rt_fact_tensor(RT_bool, 0, rt_new_dims(ic, 0));
    return NULL;
}

RULE(bincount) {
    rt_dtype dtype = args[1].kind == RT_FACT_NONE                       ? RT_int64
                     : args[1].kind != RT_FACT_TENSOR                   ? RT_DTYPE_UNKNOWN
                     : args[1].dtype == RT_float32 || args[1].dtype < 0 ? args[1].dtype
                                                                        : RT_float64;
    outs[0] = rt_fact_tensor(dtype, 1, unknown_dims(ic, 1));
    return NULL;
}

RULE(histc) {
    rt_dim *dims = unknown_dims(ic, 1);
    if (args[1].kind == RT_FACT_INT && args[1].is_known)
        dims[0] = args[1].dim;
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), 1, dims);
    return NULL;
}

RULE(diag_embed) {
    int64_t offset, dim1, dim2;
    int a, b, at = 0;
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), -1, NULL);
    if (!rt_fact_has_shape(&args[0]) || args[0].rank == 0 || args[0].rank >= RT_MAX_RANK)
        return NULL;
    int rank = args[0].rank + 1;
    rt_dim *dims = unknown_dims(ic, rank);
    outs[0].rank = rank;
    outs[0].dims = dims;
    if (!rt_fact_int(&args[1], &offset) || !rt_fact_int(&args[2], &dim1) ||
        !rt_fact_int(&args[3], &dim2))
        return NULL;
    TS_TRY(rt_wrap_dim(dim1, rank, &a));
    TS_TRY(rt_wrap_dim(dim2, rank, &b));
    rt_dim wide = rt_dim_add(ic, args[0].dims[args[0].rank - 1], offset < 0 ? -offset : offset);
    for (int d = 0; d < rank; d++)
        dims[d] = d == a || d == b ? wide : args[0].dims[at++];
    return NULL;
}

RULE(diag) {
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), -1, NULL);
    if (rt_fact_has_shape(&args[0]) && (args[0].rank == 1 || args[0].rank == 2)) {
        outs[0].rank = 3 - args[0].rank;
        outs[0].dims = unknown_dims(ic, outs[0].rank);
    }
    return NULL;
}

RULE(unsafe_masked_index) {
    rt_fact both[2] = {args[0], args[2]};
    return rt_infer_index(ic, both, 2, outs, out_count);
}

RULE(segment_reduce) {
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), -1, NULL);
    if (rt_fact_has_shape(&args[0])) {
        outs[0].rank = args[0].rank;
        outs[0].dims = unknown_dims(ic, args[0].rank);
    }
    return NULL;
}

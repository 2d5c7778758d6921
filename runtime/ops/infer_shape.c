/* runtime/ops/infer_shape.c - rank and sizes of parts, joins and rearranged tensors; what a
 * program asks of a tensor. */
#include "runtime/ops/infer_shape.h"

/* ---- lists of parts ---- */

static rt_fact part_fact(const rt_infer_context *ic, const rt_fact *self, int dim, rt_dim length) {
    rt_fact part;
    start(self, &part);
    if (rt_fact_has_shape(self)) {
        rt_dim *dims = copy_dims(ic, self, 0);
        dims[dim] = length;
        set_shape(&part, self->rank, dims);
    }
    return part;
}

static void list_of_parts(const rt_infer_context *ic, const rt_fact *self, int dim,
                          const rt_dim *lengths, size_t count, rt_fact *out) {
    rt_fact *items = TS_NEW_ARRAY(ic->arena, rt_fact, count + 1);
    for (size_t i = 0; i < count; i++)
        items[i] = part_fact(ic, self, dim, lengths[i]);
    *out = (rt_fact){.kind = RT_FACT_LIST, .count_known = true, .count = count, .items = items};
}

/* A list of any length whose items have self's dtype and rank (one less for unbind). */
static void list_of_any(const rt_infer_context *ic, const rt_fact *self, int rank, rt_fact *out) {
    rt_fact *items = TS_NEW(ic->arena, rt_fact);
    start(self, items);
    if (rank >= 0)
        unknown_shape(ic, rank, items);
    *out = (rt_fact){.kind = RT_FACT_LIST, .items = items};
}

enum { MOST_PARTS = 4096 };

static ts_status parts_of(const rt_infer_context *ic, const rt_fact *args, int64_t length,
                          int64_t chunks, rt_fact *out) {
    int dim;
    bool dim_known;
    list_of_any(ic, &args[0], args[0].kind == RT_FACT_TENSOR ? args[0].rank : -1, out);
    if (!rt_fact_has_shape(&args[0]) || args[0].rank == 0)
        return NULL;
    TS_TRY(dim_of(&args[2], args[0].rank, &dim, &dim_known));
    if (!dim_known || !rt_dim_is_constant(args[0].dims[dim]))
        return NULL;
    int64_t size = args[0].dims[dim];
    if (chunks > 0)
        length = size > 0 ? (size - 1) / chunks + 1 : 0;
    if (length <= 0 || size == 0)
        return NULL;
    int64_t count = (size - 1) / length + 1;
    if (count > MOST_PARTS)
        return NULL;
    rt_dim *lengths = rt_new_dims(ic, (int)count);
    for (int64_t i = 0; i < count; i++)
        lengths[i] = size - i * length < length ? size - i * length : length;
    list_of_parts(ic, &args[0], dim, lengths, (size_t)count, out);
    return NULL;
}

RULE(split) {
    int64_t length;
    return parts_of(ic, args, rt_fact_int(&args[1], &length) ? length : 0, 0, outs);
}

RULE(chunk) {
    int64_t chunks;
    return parts_of(ic, args, 0, rt_fact_int(&args[1], &chunks) ? chunks : 0, outs);
}

RULE(split_with_sizes) {
    int dim = 0;
    bool dim_known = false;
    list_of_any(ic, &args[0], args[0].kind == RT_FACT_TENSOR ? args[0].rank : -1, outs);
    if (args[1].kind != RT_FACT_LIST || !args[1].count_known || args[1].count > MOST_PARTS)
        return NULL;
    if (rt_fact_has_shape(&args[0]) && args[0].rank > 0)
        TS_TRY(dim_of(&args[2], args[0].rank, &dim, &dim_known));
    if (!dim_known)
        return NULL;
    rt_dim *lengths = rt_new_dims(ic, (int)args[1].count);
    for (size_t i = 0; i < args[1].count; i++) {
        const rt_fact *item = args[1].items ? &args[1].items[i] : NULL;
        lengths[i] =
            item && item->kind == RT_FACT_INT && item->is_known ? item->dim : RT_DIM_UNKNOWN;
    }
    list_of_parts(ic, &args[0], dim, lengths, args[1].count, outs);
    return NULL;
}

RULE(tensor_split) {
    int64_t sections;
    int dim;
    bool dim_known;
    list_of_any(ic, &args[0], args[0].kind == RT_FACT_TENSOR ? args[0].rank : -1, outs);
    if (!rt_fact_has_shape(&args[0]) || args[0].rank == 0 || !rt_fact_int(&args[1], &sections) ||
        sections <= 0 || sections > MOST_PARTS)
        return NULL;
    TS_TRY(dim_of(&args[2], args[0].rank, &dim, &dim_known));
    if (!dim_known || !rt_dim_is_constant(args[0].dims[dim]))
        return NULL;
    int64_t size = args[0].dims[dim];
    rt_dim *lengths = rt_new_dims(ic, (int)sections);
    for (int64_t i = 0; i < sections; i++)
        lengths[i] = size / sections + (i < size % sections);
    list_of_parts(ic, &args[0], dim, lengths, (size_t)sections, outs);
    return NULL;
}

RULE(unbind) {
    int dim;
    bool dim_known;
    list_of_any(ic, &args[0], rt_fact_has_shape(&args[0]) ? args[0].rank - 1 : -1, outs);
    if (!rt_fact_has_shape(&args[0]) || args[0].rank == 0)
        return NULL;
    TS_TRY(dim_of(&args[1], args[0].rank, &dim, &dim_known));
    if (!dim_known)
        return NULL;
    rt_dim *dims = rt_new_dims(ic, args[0].rank);
    for (int d = 0; d < args[0].rank; d++)
        if (d != dim)
            dims[d - (d > dim)] = args[0].dims[d];
    rt_dim size = args[0].dims[dim];
    bool is_short = rt_dim_is_constant(size) && size >= 0 && size <= MOST_PARTS;
    size_t count = is_short ? (size_t)size : 1;
    rt_fact *items = TS_NEW_ARRAY(ic->arena, rt_fact, count + 1);
    for (size_t i = 0; i < count; i++) {
        start(&args[0], &items[i]);
        set_shape(&items[i], args[0].rank - 1, dims);
    }
    outs[0] = (rt_fact){.kind = RT_FACT_LIST,
                        .count_known = is_short,
                        .count = is_short ? count : 0,
                        .items = items};
    return NULL;
}

/* ---- joining and rearranging ---- */

static ts_status promote_list(const rt_fact *list, rt_dtype *out) {
    rt_promotion p = RT_PROMOTION_START;
    bool is_same = true;
    *out = RT_DTYPE_UNKNOWN;
    for (size_t i = 0; i < list->count; i++) {
        const rt_fact *item = &list->items[i];
        if (item->kind != RT_FACT_TENSOR || item->dtype == RT_DTYPE_UNKNOWN)
            return NULL;
        is_same = is_same && item->dtype == list->items[0].dtype;
        rt_promotion_add_tensor(&p, item->dtype, item->rank);
        if (item->rank < 0 && !is_same)
            return NULL;
    }
    *out = is_same ? list->items[0].dtype : rt_promotion_result(&p);
    return NULL;
}

/* A vector of size 0 is left out whatever the others' rank; one of unknown size beside tensors of
 * another rank can only be such a vector. */
static bool is_skipped(const rt_fact *f, int rank) {
    return f->rank == 1 && (f->dims[0] == 0 || (rank != 1 && !rt_dim_is_constant(f->dims[0])));
}

RULE(cat) {
    const rt_fact *list = &args[0];
    int dim;
    bool dim_known;
    outs[0] = rt_fact_tensor(RT_DTYPE_UNKNOWN, -1, NULL);
    if (list->kind != RT_FACT_LIST || !list->items)
        return NULL;
    if (!list->count_known) {
        outs[0].dtype = list->items[0].dtype;
        if (rt_fact_has_shape(&list->items[0]) && list->items[0].rank > 1)
            unknown_shape(ic, list->items[0].rank, outs);
        return NULL;
    }
    if (list->count == 0)
        return ts_raise("RuntimeError", "torch.cat(): expected a non-empty list of Tensors");
    TS_TRY(promote_list(list, &outs[0].dtype));
    const rt_fact *shape = NULL;
    for (size_t i = 0; i < list->count; i++) {
        if (!rt_fact_has_shape(&list->items[i]))
            return NULL;
        if (is_skipped(&list->items[i], 1))
            continue;
        if (!shape || (shape->rank == 1 && list->items[i].rank != 1))
            shape = &list->items[i];
    }
    if (!shape || shape->rank == 0)
        return NULL;
    TS_TRY(dim_of(&args[1], shape->rank, &dim, &dim_known));
    if (!dim_known) {
        unknown_shape(ic, shape->rank, outs);
        return NULL;
    }
    rt_dim *dims = copy_dims(ic, shape, 0);
    dims[dim] = 0;
    for (size_t i = 0; i < list->count; i++) {
        const rt_fact *item = &list->items[i];
        if (is_skipped(item, shape->rank))
            continue;
        if (item->rank != shape->rank)
            return ts_raise("RuntimeError",
                            "Tensors must have same number of dimensions: got %d and %d",
                            shape->rank, item->rank);
        dims[dim] = rt_dim_add(ic, dims[dim], item->dims[dim]);
        for (int d = 0; d < shape->rank; d++) {
            if (d == dim)
                continue;
            if (rt_dim_is_constant(dims[d]) && rt_dim_is_constant(item->dims[d]) &&
                dims[d] != item->dims[d])
                return ts_raise("RuntimeError",
                                "Sizes of tensors must match except in dimension %d. Expected size "
                                "%lld but got size %lld for tensor number %zu in the list.",
                                dim, (long long)dims[d], (long long)item->dims[d], i);
            if (shape->rank > 1) /* a vector may be empty, and is left out then */
                rt_dim_tell(ic, shape->dims[d], item->dims[d], RT_MATCH_MUST);
            if (!rt_dim_is_constant(dims[d]) && item->dims[d] != RT_DIM_UNKNOWN &&
                (dims[d] == RT_DIM_UNKNOWN || rt_dim_is_constant(item->dims[d])))
                dims[d] = item->dims[d];
        }
    }
    set_shape(outs, shape->rank, dims);
    return NULL;
}

RULE(stack) {
    const rt_fact *list = &args[0];
    int dim;
    bool dim_known;
    outs[0] = rt_fact_tensor(RT_DTYPE_UNKNOWN, -1, NULL);
    if (list->kind != RT_FACT_LIST || !list->items || (list->count_known && list->count == 0))
        return NULL;
    if (list->count_known)
        TS_TRY(promote_list(list, &outs[0].dtype));
    else
        outs[0].dtype = list->items[0].dtype;
    const rt_fact *first = &list->items[0];
    if (!rt_fact_has_shape(first) || first->rank >= RT_MAX_RANK)
        return NULL;
    TS_TRY(dim_of(&args[1], first->rank + 1, &dim, &dim_known));
    if (!dim_known) {
        unknown_shape(ic, first->rank + 1, outs);
        return NULL;
    }
    rt_dim *dims = rt_new_dims(ic, first->rank + 1);
    for (size_t i = 1; list->count_known && i < list->count; i++) {
        if (!rt_fact_has_shape(&list->items[i]))
            continue;
        if (list->items[i].rank != first->rank)
            return ts_raise("RuntimeError", "stack expects each tensor to be equal size");
        for (int d = 0; d < first->rank; d++)
            TS_TRY(rt_dim_match(ic, first->dims[d], list->items[i].dims[d]));
    }
    for (int d = 0; d < first->rank; d++)
        dims[d + (d >= dim)] = first->dims[d];
    dims[dim] = list->count_known ? (rt_dim)list->count : RT_DIM_UNKNOWN;
    set_shape(outs, first->rank + 1, dims);
    return NULL;
}

RULE(repeat) {
    rt_dim repeats[RT_MAX_RANK];
    int count;
    start(&args[0], outs);
    if (!rt_fact_dims(&args[1], repeats, &count))
        return NULL;
    if (!rt_fact_has_shape(&args[0]) || count < args[0].rank) {
        unknown_shape(ic, count, outs);
        return NULL;
    }
    rt_dim *dims = rt_new_dims(ic, count);
    for (int d = 0; d < count; d++) {
        int own = d - (count - args[0].rank);
        dims[d] = rt_dim_mul(ic, repeats[d], own < 0 ? 1 : args[0].dims[own]);
    }
    set_shape(outs, count, dims);
    return NULL;
}

RULE(tile) {
    rt_dim repeats[RT_MAX_RANK];
    int count;
    start(&args[0], outs);
    if (!rt_fact_dims(&args[1], repeats, &count) || !rt_fact_has_shape(&args[0]))
        return NULL;
    int rank = count > args[0].rank ? count : args[0].rank;
    rt_dim *dims = rt_new_dims(ic, rank);
    for (int d = 0; d < rank; d++) {
        int own = d - (rank - args[0].rank), at = d - (rank - count);
        dims[d] = rt_dim_mul(ic, at < 0 ? 1 : repeats[at], own < 0 ? 1 : args[0].dims[own]);
    }
    set_shape(outs, rank, dims);
    return NULL;
}

RULE(repeat_interleave) {
    int dim;
    bool dim_known;
    start(&args[0], outs);
    if (args[2].kind == RT_FACT_NONE) { /* flattened */
        rt_dim *length = rt_new_dims(ic, 1);
        length[0] = RT_DIM_UNKNOWN;
        if (rt_fact_has_shape(&args[0]) && args[1].kind == RT_FACT_INT && args[1].is_known)
            length[0] = rt_dim_mul(ic, rt_dim_product(ic, args[0].dims, args[0].rank), args[1].dim);
        set_shape(outs, 1, length);
        return NULL;
    }
    if (!rt_fact_has_shape(&args[0]) || args[0].rank == 0)
        return NULL;
    TS_TRY(dim_of(&args[2], args[0].rank, &dim, &dim_known));
    if (!dim_known) {
        unknown_shape(ic, args[0].rank, outs);
        return NULL;
    }
    rt_dim *dims = copy_dims(ic, &args[0], 0);
    dims[dim] = args[1].kind == RT_FACT_INT && args[1].is_known
                    ? rt_dim_mul(ic, dims[dim], args[1].dim)
                    : RT_DIM_UNKNOWN;
    set_shape(outs, args[0].rank, dims);
    return NULL;
}

RULE(vector) { /* a 1-d tensor of self's dtype and any length */
    start(&args[0], outs);
    unknown_shape(ic, 1, outs);
    return NULL;
}

RULE(pad) {
    rt_dim pads[RT_MAX_RANK];
    int count;
    start(&args[0], outs);
    if (!rt_fact_has_shape(&args[0]) || !rt_fact_dims(&args[1], pads, &count))
        return NULL;
    rt_dim *dims = copy_dims(ic, &args[0], 0);
    for (int d = 0; d < args[0].rank; d++) {
        int at = 2 * (args[0].rank - 1 - d);
        if (at + 1 < count)
            dims[d] = rt_dim_add(ic, rt_dim_add(ic, dims[d], pads[at]), pads[at + 1]);
        if (rt_dim_is_constant(dims[d]) && dims[d] < 0)
            return ts_raise("RuntimeError", "the padding gives dimension %d a negative size", d);
    }
    set_shape(outs, args[0].rank, dims);
    return NULL;
}

/* ---- questions ---- */

RULE(size) {
    outs[0] = (rt_fact){.kind = RT_FACT_LIST};
    if (!rt_fact_has_shape(&args[0]))
        return NULL;
    rt_fact *items = TS_NEW_ARRAY(ic->arena, rt_fact, (size_t)args[0].rank + 1);
    for (int d = 0; d < args[0].rank; d++)
        items[d] = (rt_fact){.kind = RT_FACT_INT,
                             .is_known = args[0].dims[d] != RT_DIM_UNKNOWN,
                             .dim = args[0].dims[d]};
    outs[0].count_known = true;
    outs[0].count = (size_t)args[0].rank;
    outs[0].items = items;
    return NULL;
}

RULE(size_int) {
    int dim;
    bool dim_known;
    outs[0] = (rt_fact){.kind = RT_FACT_INT, .dim = RT_DIM_UNKNOWN};
    if (!rt_fact_has_shape(&args[0]))
        return NULL;
    TS_TRY(dim_of(&args[1], args[0].rank, &dim, &dim_known));
    if (dim_known && args[0].rank > 0) {
        outs[0].dim = args[0].dims[dim];
        outs[0].is_known = outs[0].dim != RT_DIM_UNKNOWN;
    }
    return NULL;
}

RULE(stride) {
    rt_fact *item = TS_NEW(ic->arena, rt_fact);
    *item = (rt_fact){.kind = RT_FACT_INT, .dim = RT_DIM_UNKNOWN};
    outs[0] = (rt_fact){.kind = RT_FACT_LIST, .items = item};
    return NULL;
}

RULE(tensor_int) {
    outs[0] = (rt_fact){.kind = RT_FACT_INT, .dim = RT_DIM_UNKNOWN};
    return NULL;
}

static void known_int(rt_fact *out, rt_dim value) {
    *out = (rt_fact){.kind = RT_FACT_INT, .dim = value, .is_known = value != RT_DIM_UNKNOWN};
}

RULE(numel) {
    known_int(outs, rt_fact_has_shape(&args[0]) ? rt_dim_product(ic, args[0].dims, args[0].rank)
                                                : RT_DIM_UNKNOWN);
    return NULL;
}

RULE(rank) {
    known_int(outs, rt_fact_has_shape(&args[0]) ? args[0].rank : RT_DIM_UNKNOWN);
    return NULL;
}

static void known_bool(const rt_fact *self, bool value, rt_fact *out) {
    bool is_known = self->kind == RT_FACT_TENSOR && self->dtype != RT_DTYPE_UNKNOWN;
    *out = (rt_fact){.kind = RT_FACT_BOOL, .is_known = is_known, .dim = value};
}

RULE(is_floating_point) {
    known_bool(&args[0], rt_dtype_is_float(args[0].dtype), outs);
    return NULL;
}

RULE(is_complex) {
    known_bool(&args[0], rt_dtype_is_complex(args[0].dtype), outs);
    return NULL;
}

RULE(shape_as_tensor) {
    rt_dim *dims = rt_new_dims(ic, 1);
    dims[0] = rt_fact_has_shape(&args[0]) ? args[0].rank : RT_DIM_UNKNOWN;
    outs[0] = rt_fact_tensor(RT_int64, 1, dims);
    return NULL;
}

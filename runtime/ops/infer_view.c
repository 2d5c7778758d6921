/* runtime/ops/infer_view.c - rank and sizes of views. */
#include "runtime/ops/infer_shape.h"

/* ---- view and reshape ---- */

static rt_dim product_without(const rt_infer_context *ic, const rt_dim *dims, int count,
                              int without) {
    rt_dim product = 1;
    for (int d = 0; d < count; d++)
        if (d != without)
            product = rt_dim_mul(ic, product, dims[d]);
    return product;
}

/* What -1 stands for: equal dims on both sides cancel before the division. */
static rt_dim inferred_dim(const rt_infer_context *ic, const rt_fact *self, const rt_dim *sizes,
                           int rank, int at) {
    rt_dim old[RT_MAX_RANK], new[RT_MAX_RANK];
    int old_count = self->rank, new_count = 0;
    for (int d = 0; d < self->rank; d++)
        old[d] = self->dims[d];
    for (int d = 0; d < rank; d++) {
        if (d == at)
            continue;
        int found = -1;
        for (int e = 0; e < old_count && found < 0; e++)
            if (sizes[d] != 0 && rt_dim_equal(ic, old[e], sizes[d]))
                found = e;
        if (found >= 0)
            old[found] = old[--old_count];
        else
            new[new_count++] = sizes[d];
    }
    return rt_dim_floordiv(ic, product_without(ic, old, old_count, -1),
                           product_without(ic, new, new_count, -1));
}

static ts_status reshape_to(const rt_infer_context *ic, const rt_fact *self, const rt_dim *asked,
                            int rank, rt_fact *out) {
    rt_dim *sizes = rt_new_dims(ic, rank);
    int at = -1;
    bool all_constant = rt_fact_has_shape(self);
    int64_t count = 1, product = 1;
    for (int d = 0; d < rank; d++) {
        sizes[d] = asked[d];
        if (asked[d] == -1)
            at = d;
        else if (!rt_dim_is_constant(asked[d]) || !ts_mul_i64(product, asked[d], &product))
            all_constant = false;
    }
    for (int d = 0; all_constant && d < self->rank; d++)
        all_constant =
            rt_dim_is_constant(self->dims[d]) && ts_mul_i64(count, self->dims[d], &count);
    if (all_constant && (at < 0 ? count != product : product == 0 || count % product))
        return ts_raise("RuntimeError", "shape is invalid for input of size %lld",
                        (long long)count);
    rt_dim old = rt_fact_has_shape(self) ? rt_dim_product(ic, self->dims, self->rank)
                                         : RT_DIM_UNKNOWN;
    rt_dim_tell(ic, old, product_without(ic, sizes, rank, at),
                at < 0 ? RT_MATCH_MUST : RT_MATCH_MULTIPLE);
    if (at >= 0)
        sizes[at] =
            rt_fact_has_shape(self) ? inferred_dim(ic, self, sizes, rank, at) : RT_DIM_UNKNOWN;
    set_shape(out, rank, sizes);
    return NULL;
}

RULE(view) {
    rt_dim sizes[RT_MAX_RANK];
    int rank;
    start(&args[0], outs);
    if (!rt_fact_dims(&args[1], sizes, &rank))
        return NULL;
    return reshape_to(ic, &args[0], sizes, rank, outs);
}

RULE(view_as) {
    start(&args[0], outs);
    if (rt_fact_has_shape(&args[1]))
        set_shape(outs, args[1].rank, args[1].dims);
    return NULL;
}

RULE(view_dtype) {
    rt_dtype dtype;
    outs[0] = rt_fact_tensor(RT_DTYPE_UNKNOWN, -1, NULL);
    if (!rt_fact_dtype(&args[1], &dtype))
        return NULL;
    outs[0].dtype = dtype;
    if (args[0].kind == RT_FACT_TENSOR && rt_fact_has_shape(&args[0]) &&
        rt_dtype_size(args[0].dtype) == rt_dtype_size(dtype))
        set_shape(outs, args[0].rank, args[0].dims);
    return NULL;
}

/* ---- order of dims ---- */

RULE(permute) {
    int64_t order[RT_MAX_RANK];
    int count;
    start(&args[0], outs);
    if (!rt_fact_has_shape(&args[0]))
        return NULL;
    if (!rt_fact_ints(&args[1], order, &count) || count != args[0].rank) {
        unknown_shape(ic, args[0].rank, outs);
        return NULL;
    }
    rt_dim *dims = rt_new_dims(ic, count);
    for (int d = 0; d < count; d++) {
        int from;
        TS_TRY(rt_wrap_dim(order[d], count, &from));
        dims[d] = args[0].dims[from];
    }
    set_shape(outs, count, dims);
    return NULL;
}

static void swapped(const rt_infer_context *ic, const rt_fact *self, int a, int b, rt_fact *out) {
    rt_dim *dims = copy_dims(ic, self, 0);
    dims[a] = self->dims[b];
    dims[b] = self->dims[a];
    set_shape(out, self->rank, dims);
}

RULE(transpose) {
    int a, b;
    bool a_known, b_known;
    start(&args[0], outs);
    if (!rt_fact_has_shape(&args[0]))
        return NULL;
    TS_TRY(dim_of(&args[1], args[0].rank, &a, &a_known));
    TS_TRY(dim_of(&args[2], args[0].rank, &b, &b_known));
    if (args[0].rank == 0)
        set_shape(outs, 0, rt_new_dims(ic, 0));
    else if (a_known && b_known)
        swapped(ic, &args[0], a, b, outs);
    else
        unknown_shape(ic, args[0].rank, outs);
    return NULL;
}

RULE(matrix_transpose) { /* t, mT, mH: the last two dims, where there are two */
    start(&args[0], outs);
    if (!rt_fact_has_shape(&args[0]))
        return NULL;
    if (args[0].rank < 2)
        set_shape(outs, args[0].rank, args[0].dims);
    else
        swapped(ic, &args[0], args[0].rank - 2, args[0].rank - 1, outs);
    return NULL;
}

RULE(numpy_T) {
    start(&args[0], outs);
    if (!rt_fact_has_shape(&args[0]))
        return NULL;
    rt_dim *dims = rt_new_dims(ic, args[0].rank);
    for (int d = 0; d < args[0].rank; d++)
        dims[d] = args[0].dims[args[0].rank - 1 - d];
    set_shape(outs, args[0].rank, dims);
    return NULL;
}

RULE(movedim) {
    int64_t from[RT_MAX_RANK], to[RT_MAX_RANK];
    int count, to_count, rank = args[0].rank, next = 0;
    start(&args[0], outs);
    if (!rt_fact_has_shape(&args[0]))
        return NULL;
    if (!rt_fact_ints(&args[1], from, &count) || !rt_fact_ints(&args[2], to, &to_count) ||
        count != to_count || rank == 0) {
        unknown_shape(ic, rank, outs);
        return NULL;
    }
    bool used[RT_MAX_RANK] = {false}, filled[RT_MAX_RANK] = {false};
    rt_dim *dims = rt_new_dims(ic, rank);
    for (int i = 0; i < count; i++) {
        int a, b;
        TS_TRY(rt_wrap_dim(from[i], rank, &a));
        TS_TRY(rt_wrap_dim(to[i], rank, &b));
        if (used[a] || filled[b])
            return ts_raise("RuntimeError", "movedim: repeated dim in `source` or `destination`");
        used[a] = filled[b] = true;
        dims[b] = args[0].dims[a];
    }
    for (int d = 0; d < rank; d++) {
        if (filled[d])
            continue;
        while (used[next])
            next++;
        dims[d] = args[0].dims[next++];
    }
    set_shape(outs, rank, dims);
    return NULL;
}

/* ---- expansion ---- */

RULE(expand) {
    rt_dim asked[RT_MAX_RANK];
    int rank;
    start(&args[0], outs);
    if (!rt_fact_dims(&args[1], asked, &rank))
        return NULL;
    if (!rt_fact_has_shape(&args[0])) {
        unknown_shape(ic, rank, outs);
        return NULL;
    }
    rt_dim *dims = rt_new_dims(ic, rank);
    for (int d = 0; d < rank; d++) {
        int own = d - (rank - args[0].rank);
        if (asked[d] == -1 && own < 0)
            return ts_raise("RuntimeError",
                            "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension %d",
                            d);
        dims[d] = asked[d] == -1 ? args[0].dims[own] : asked[d];
    }
    set_shape(outs, rank, dims);
    return NULL;
}

RULE(broadcast_tensors) {
    outs[0] = (rt_fact){.kind = RT_FACT_LIST};
    const rt_fact *list = &args[0];
    if (list->kind != RT_FACT_LIST || !list->count_known || !list->items)
        return NULL;
    rt_fact *items = TS_NEW_ARRAY(ic->arena, rt_fact, list->count + 1);
    rt_dim *dims = rt_new_dims(ic, 0);
    int rank = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (rank >= 0 && rt_fact_has_shape(&list->items[i]))
            TS_TRY(rt_fact_broadcast(ic, dims, rank, list->items[i].dims, list->items[i].rank,
                                     &dims, &rank));
        else
            rank = -1;
    }
    for (size_t i = 0; i < list->count; i++) {
        start(&list->items[i], &items[i]);
        set_shape(&items[i], rank, dims);
    }
    outs[0].count_known = true;
    outs[0].count = list->count;
    outs[0].items = items;
    return NULL;
}

/* ---- parts ---- */

/* start or end of a slice of a dim, as Python clamps it; UNKNOWN where that cannot be said. */
static rt_dim clamped(const rt_infer_context *ic, const rt_fact *f, rt_dim size, rt_dim missing) {
    int64_t i;
    if (f->kind == RT_FACT_NONE)
        return missing;
    const rt_dim_algebra *g = ic->algebra;
    if (!rt_fact_int(f, &i)) {
        if (f->kind != RT_FACT_INT || !f->is_known)
            return RT_DIM_UNKNOWN;
        if (rt_dim_equal(ic, f->dim, size))
            return size;
        bool is_positive = g && rt_dim_equal(ic, g->max(g->user, f->dim, 0), f->dim);
        return is_positive && size != RT_DIM_UNKNOWN ? g->min(g->user, f->dim, size) : RT_DIM_UNKNOWN;
    }
    if (i == 0)
        return 0;
    if (i >= INT64_MAX - 1)
        return size;
    if (size == RT_DIM_UNKNOWN)
        return size;
    if (!rt_dim_is_constant(size)) {
        if (!g)
            return RT_DIM_UNKNOWN;
        return i > 0 ? g->min(g->user, i, size) : g->max(g->user, g->add(g->user, size, i), 0);
    }
    if (i < 0)
        i += size;
    return i < 0 ? 0 : i > size ? size : i;
}

RULE(slice) {
    int dim;
    bool dim_known;
    int64_t step;
    start(&args[0], outs);
    if (!rt_fact_has_shape(&args[0]))
        return NULL;
    if (args[0].rank == 0)
        return ts_raise("RuntimeError", "slice() cannot be applied to a 0-dim tensor.");
    TS_TRY(dim_of(&args[1], args[0].rank, &dim, &dim_known));
    if (!dim_known) {
        unknown_shape(ic, args[0].rank, outs);
        return NULL;
    }
    rt_dim *dims = copy_dims(ic, &args[0], 0), size = dims[dim];
    rt_dim low = clamped(ic, &args[2], size, 0), high = clamped(ic, &args[3], size, size);
    dims[dim] = RT_DIM_UNKNOWN;
    if (rt_fact_int(&args[4], &step) && step > 0 && low != RT_DIM_UNKNOWN &&
        high != RT_DIM_UNKNOWN) {
        if (rt_dim_is_constant(low) && rt_dim_is_constant(high))
            dims[dim] = high > low ? (high - low - 1) / step + 1 : 0;
        else if (low == 0)
            dims[dim] = rt_dim_floordiv(ic, rt_dim_add(ic, high, step - 1), step);
        else if (ic->algebra) {
            const rt_dim_algebra *g = ic->algebra;
            rt_dim count = g->max(g->user, rt_dim_sub(ic, high, low), 0);
            dims[dim] = rt_dim_floordiv(ic, rt_dim_add(ic, count, step - 1), step);
        }
    }
    set_shape(outs, args[0].rank, dims);
    return NULL;
}

RULE(select) {
    int dim;
    bool dim_known;
    start(&args[0], outs);
    if (!rt_fact_has_shape(&args[0]))
        return NULL;
    int rank = args[0].rank;
    if (rank == 0)
        return ts_raise("IndexError", "select() cannot be applied to a 0-dim tensor.");
    TS_TRY(dim_of(&args[1], rank, &dim, &dim_known));
    if (!dim_known) {
        unknown_shape(ic, rank - 1, outs);
        return NULL;
    }
    rt_dim *dims = rt_new_dims(ic, rank - 1);
    for (int d = 0; d < rank; d++)
        if (d != dim)
            dims[d - (d > dim)] = args[0].dims[d];
    set_shape(outs, rank - 1, dims);
    return NULL;
}

RULE(narrow) {
    int dim;
    bool dim_known;
    start(&args[0], outs);
    if (!rt_fact_has_shape(&args[0]))
        return NULL;
    if (args[0].rank == 0)
        return ts_raise("RuntimeError", "narrow() cannot be applied to a 0-dim tensor.");
    TS_TRY(dim_of(&args[1], args[0].rank, &dim, &dim_known));
    if (!dim_known) {
        unknown_shape(ic, args[0].rank, outs);
        return NULL;
    }
    rt_dim *dims = copy_dims(ic, &args[0], 0);
    dims[dim] = args[3].kind == RT_FACT_INT && args[3].is_known ? args[3].dim : RT_DIM_UNKNOWN;
    set_shape(outs, args[0].rank, dims);
    return NULL;
}

RULE(unfold) {
    int dim;
    bool dim_known;
    int64_t window, step;
    start(&args[0], outs);
    if (!rt_fact_has_shape(&args[0]) || args[0].rank >= RT_MAX_RANK)
        return NULL;
    TS_TRY(dim_of(&args[1], args[0].rank, &dim, &dim_known));
    if (!dim_known || !rt_fact_int(&args[2], &window) || !rt_fact_int(&args[3], &step) ||
        step <= 0) {
        unknown_shape(ic, args[0].rank + 1, outs);
        return NULL;
    }
    rt_dim *dims = copy_dims(ic, &args[0], 1);
    dims[args[0].rank] = window;
    if (args[0].rank > 0)
        dims[dim] = rt_dim_add(ic, rt_dim_floordiv(ic, rt_dim_sub(ic, dims[dim], window), step), 1);
    set_shape(outs, args[0].rank + 1, dims);
    return NULL;
}

RULE(diagonal) {
    int64_t offset;
    int a, b;
    bool a_known, b_known;
    start(&args[0], outs);
    if (!rt_fact_has_shape(&args[0]) || args[0].rank < 2)
        return NULL;
    int rank = args[0].rank, at = 0;
    TS_TRY(dim_of(&args[2], rank, &a, &a_known));
    TS_TRY(dim_of(&args[3], rank, &b, &b_known));
    if (!a_known || !b_known || a == b) {
        unknown_shape(ic, rank - 1, outs);
        return NULL;
    }
    rt_dim *dims = rt_new_dims(ic, rank - 1);
    for (int d = 0; d < rank; d++)
        if (d != a && d != b)
            dims[at++] = args[0].dims[d];
    rt_dim rows = args[0].dims[a], columns = args[0].dims[b];
    dims[at] = RT_DIM_UNKNOWN;
    if (rt_fact_int(&args[1], &offset)) {
        if (rt_dim_is_constant(rows) && rt_dim_is_constant(columns)) {
            int64_t r = offset < 0 ? rows + offset : rows;
            int64_t c = offset > 0 ? columns - offset : columns;
            int64_t least = r < c ? r : c;
            dims[at] = least > 0 ? least : 0;
        } else if (offset == 0 && rt_dim_equal(ic, rows, columns)) {
            dims[at] = rows;
        }
    }
    set_shape(outs, rank - 1, dims);
    return NULL;
}

/* The sizes are the second argument. */
RULE(given_sizes) {
    rt_dim sizes[RT_MAX_RANK];
    int rank;
    start(&args[0], outs);
    if (!rt_fact_dims(&args[1], sizes, &rank))
        return NULL;
    rt_dim *dims = rt_new_dims(ic, rank);
    for (int d = 0; d < rank; d++)
        dims[d] = sizes[d];
    set_shape(outs, rank, dims);
    return NULL;
}

/* ---- dimensions of size 1 ---- */

/* Dims that are marked go where they are 1; unknown where a marked one is not known. */
static void squeezed(const rt_infer_context *ic, const rt_fact *self, const bool *mask,
                     rt_fact *out) {
    rt_dim *dims = rt_new_dims(ic, self->rank);
    int rank = 0;
    for (int d = 0; d < self->rank; d++) {
        if (mask[d] && !rt_dim_is_constant(self->dims[d]))
            return;
        if (!mask[d] || self->dims[d] != 1)
            dims[rank++] = self->dims[d];
    }
    set_shape(out, rank, dims);
}

RULE(squeeze) {
    bool mask[RT_MAX_RANK];
    start(&args[0], outs);
    for (int d = 0; d < RT_MAX_RANK; d++)
        mask[d] = true;
    if (rt_fact_has_shape(&args[0]))
        squeezed(ic, &args[0], mask, outs);
    return NULL;
}

RULE(squeeze_dims) {
    bool mask[RT_MAX_RANK] = {false};
    int64_t dims[RT_MAX_RANK];
    int count;
    start(&args[0], outs);
    if (!rt_fact_has_shape(&args[0]) || !rt_fact_ints(&args[1], dims, &count))
        return NULL;
    for (int i = 0; i < count; i++) {
        int dim;
        TS_TRY(rt_wrap_dim(dims[i], args[0].rank, &dim));
        mask[dim] = true;
    }
    squeezed(ic, &args[0], mask, outs);
    return NULL;
}

RULE(unsqueeze) {
    int dim;
    bool dim_known;
    start(&args[0], outs);
    if (!rt_fact_has_shape(&args[0]) || args[0].rank >= RT_MAX_RANK)
        return NULL;
    int rank = args[0].rank + 1;
    TS_TRY(dim_of(&args[1], rank, &dim, &dim_known));
    if (!dim_known) {
        unknown_shape(ic, rank, outs);
        return NULL;
    }
    rt_dim *dims = rt_new_dims(ic, rank);
    for (int d = 0; d < args[0].rank; d++)
        dims[d + (d >= dim)] = args[0].dims[d];
    dims[dim] = 1;
    set_shape(outs, rank, dims);
    return NULL;
}

RULE(flatten) {
    int first, last, rank = 0;
    bool first_known, last_known;
    start(&args[0], outs);
    if (!rt_fact_has_shape(&args[0]))
        return NULL;
    TS_TRY(dim_of(&args[1], args[0].rank, &first, &first_known));
    TS_TRY(dim_of(&args[2], args[0].rank, &last, &last_known));
    if (!first_known || !last_known)
        return NULL;
    if (first > last)
        return ts_raise("RuntimeError", "flatten() has invalid args: start_dim cannot come after "
                                        "end_dim");
    rt_dim *dims = rt_new_dims(ic, args[0].rank + 1);
    rt_dim joined = 1;
    for (int d = 0; d < args[0].rank; d++) {
        if (d >= first && d <= last) {
            joined = rt_dim_mul(ic, joined, args[0].dims[d]);
            if (d < last)
                continue;
        }
        dims[rank++] = d == last ? joined : args[0].dims[d];
    }
    if (args[0].rank == 0)
        dims[rank++] = 1;
    set_shape(outs, rank, dims);
    return NULL;
}

RULE(ravel) {
    start(&args[0], outs);
    rt_dim *dims = rt_new_dims(ic, 1);
    dims[0] = rt_fact_has_shape(&args[0]) ? rt_dim_product(ic, args[0].dims, args[0].rank)
                                          : RT_DIM_UNKNOWN;
    set_shape(outs, 1, dims);
    return NULL;
}

RULE(unflatten) {
    int dim, count;
    bool dim_known;
    rt_dim parts[RT_MAX_RANK];
    start(&args[0], outs);
    if (!rt_fact_has_shape(&args[0]) || args[0].rank == 0)
        return NULL;
    TS_TRY(dim_of(&args[1], args[0].rank, &dim, &dim_known));
    if (!dim_known || !rt_fact_dims(&args[2], parts, &count) || count == 0 ||
        count + args[0].rank > RT_MAX_RANK)
        return NULL;
    rt_fact one = rt_fact_tensor(RT_DTYPE_UNKNOWN, 1, &args[0].dims[dim]), split;
    start(&one, &split);
    TS_TRY(reshape_to(ic, &one, parts, count, &split));
    rt_dim *dims = rt_new_dims(ic, args[0].rank + count);
    int rank = 0;
    for (int d = 0; d < args[0].rank; d++) {
        if (d != dim)
            dims[rank++] = args[0].dims[d];
        else
            for (int i = 0; i < count; i++)
                dims[rank++] = split.dims[i];
    }
    set_shape(outs, rank, dims);
    return NULL;
}

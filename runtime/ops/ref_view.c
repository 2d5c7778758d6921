/* runtime/ops/ref_view.c - views: other sizes and strides over the same storage. */
#include "runtime/ops/shape_ops.h"

static ts_status shape_text(const int64_t *sizes, int rank, ts_buffer *out) {
    ts_buffer_char(out, '[');
    for (int d = 0; d < rank; d++)
        ts_buffer_format(out, "%s%lld", d ? ", " : "", (long long)sizes[d]);
    ts_buffer_char(out, ']');
    ts_buffer_char(out, 0);
    return ts_buffer_status(out);
}

static ts_status invalid_shape(const int64_t *sizes, int rank, int64_t count) {
    ts_buffer text = {0};
    ts_status status = shape_text(sizes, rank, &text);
    if (!status)
        status = ts_raise("RuntimeError", "shape '%s' is invalid for input of size %lld", text.data,
                          (long long)count);
    ts_buffer_deinit(&text);
    return status;
}

ts_status rt_resolve_shape(int64_t *sizes, int rank, int64_t count) {
    int unknown = -1;
    int64_t product = 1, asked[RT_MAX_RANK];
    for (int d = 0; d < rank; d++) {
        asked[d] = sizes[d];
        if (sizes[d] == -1) {
            if (unknown >= 0)
                return ts_raise("RuntimeError", "only one dimension can be inferred");
            unknown = d;
        } else if (sizes[d] < 0) {
            return ts_raise("RuntimeError", "invalid shape dimension %lld", (long long)sizes[d]);
        } else if (!ts_mul_i64(product, sizes[d], &product)) {
            return invalid_shape(asked, rank, count);
        }
    }
    if (unknown >= 0) {
        if (product == 0)
            return count == 0 ? ts_raise("RuntimeError",
                                         "cannot reshape tensor of 0 elements into shape with an "
                                         "unspecified dimension because it can be any value and is "
                                         "ambiguous")
                              : invalid_shape(asked, rank, count);
        sizes[unknown] = count / product;
        if (count % product)
            return invalid_shape(asked, rank, count);
    } else if (product != count) {
        return invalid_shape(asked, rank, count);
    }
    return NULL;
}

/* computeStride of aten/src/ATen/TensorUtils.cpp */
static bool view_strides(const rt_tensor *t, const int64_t *sizes, int rank, int64_t *strides) {
    if (t->element_count == 0) {
        rt_contiguous_strides(sizes, rank, strides);
        return true;
    }
    if (t->rank == 0) {
        for (int d = 0; d < rank; d++)
            strides[d] = 1;
        return true;
    }
    int at = rank - 1;
    int64_t base = t->strides[t->rank - 1], old_count = 1, new_count = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        old_count *= t->sizes[d];
        if (d > 0 && (t->sizes[d - 1] == 1 || t->strides[d - 1] == old_count * base))
            continue;
        while (at >= 0 && (new_count < old_count || sizes[at] == 1)) {
            strides[at] = new_count * base;
            new_count *= sizes[at--];
        }
        if (new_count != old_count)
            return false;
        if (d > 0) {
            base = t->strides[d - 1];
            old_count = new_count = 1;
        }
    }
    return at == -1;
}

ts_status rt_alias_out(const rt_tensor *t, int64_t offset, const int64_t *sizes,
                       const int64_t *strides, int rank, rt_value *out) {
    rt_tensor *view;
    TS_TRY(rt_tensor_alias(t, offset, sizes, strides, rank, &view));
    *out = rt_from_tensor(view);
    return NULL;
}

static ts_status view_as_sizes(rt_tensor *t, int64_t *sizes, int rank, bool may_copy,
                               rt_value *out) {
    int64_t strides[RT_MAX_RANK];
    TS_TRY(rt_resolve_shape(sizes, rank, t->element_count));
    if (view_strides(t, sizes, rank, strides))
        return rt_alias_out(t, 0, sizes, strides, rank, out);
    if (!may_copy)
        return ts_raise("RuntimeError",
                        "view size is not compatible with input tensor's size and stride (at least "
                        "one dimension spans across two contiguous subspaces). Use .reshape(...) "
                        "instead.");
    rt_tensor *copy;
    TS_TRY(rt_tensor_clone(t, &copy));
    rt_contiguous_strides(sizes, rank, strides);
    ts_status status = rt_alias_out(copy, 0, sizes, strides, rank, out);
    rt_tensor_release(copy);
    return status;
}

static ts_status view_with(const rt_value *args, bool may_copy, rt_value *out) {
    rt_tensor *t;
    int64_t sizes[RT_MAX_RANK];
    int rank;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_as_ints(args[1], sizes, &rank));
    return view_as_sizes(t, sizes, rank, may_copy, out);
}

KERNEL(view) { return view_with(args, false, outs); }
KERNEL(reshape) { return view_with(args, true, outs); }

static ts_status view_like(const rt_value *args, bool may_copy, rt_value *out) {
    rt_tensor *t, *other;
    int64_t sizes[RT_MAX_RANK];
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_need_tensor(args[1], &other));
    for (int d = 0; d < other->rank; d++)
        sizes[d] = other->sizes[d];
    return view_as_sizes(t, sizes, other->rank, may_copy, out);
}

KERNEL(view_as) { return view_like(args, false, outs); }
KERNEL(reshape_as) { return view_like(args, true, outs); }

KERNEL(view_dtype) {
    rt_tensor *t, *view;
    TS_TRY(rt_need_tensor(args[0], &t));
    rt_dtype dtype = (rt_dtype)args[1].as.i;
    int64_t from = rt_element_bytes(t), to = (int64_t)rt_dtype_size(dtype);
    int64_t sizes[RT_MAX_RANK], strides[RT_MAX_RANK];
    if (to == 0)
        return ts_raise("RuntimeError", "view: unknown dtype");
    for (int d = 0; d < t->rank; d++) {
        sizes[d] = t->sizes[d];
        strides[d] = t->strides[d];
    }
    int last = t->rank - 1;
    if (from != to) {
        if (t->rank == 0)
            return ts_raise("RuntimeError",
                            "self.dim() cannot be 0 to view %s as %s (different element sizes)",
                            rt_dtype_message_name(rt_dtype_of(t)), rt_dtype_message_name(dtype));
        if (strides[last] != 1 && sizes[last] != 1)
            return ts_raise("RuntimeError",
                            "self.stride(-1) must be 1 to view %s as %s (different "
                            "element sizes), but got %lld",
                            rt_dtype_message_name(rt_dtype_of(t)), rt_dtype_message_name(dtype),
                            (long long)strides[last]);
        if (sizes[last] * from % to)
            return ts_raise("RuntimeError",
                            "self.size(-1) must be divisible by %lld to view %s as "
                            "%s (different element sizes), but got %lld",
                            (long long)(to / from), rt_dtype_message_name(rt_dtype_of(t)),
                            rt_dtype_message_name(dtype), (long long)sizes[last]);
        sizes[last] = sizes[last] * from / to;
        strides[last] = 1;
        for (int d = 0; d < last; d++) {
            if (strides[d] * from % to)
                return ts_raise("RuntimeError", "self.stride(%d) must be divisible by %lld", d,
                                (long long)(to / from));
            strides[d] = strides[d] * from / to;
        }
    }
    int64_t offset_bytes = rt_tensor_offset(t) * from;
    if (offset_bytes % to)
        return ts_raise("RuntimeError", "self.storage_offset() must be divisible by %lld",
                        (long long)(to / from));
    TS_TRY(rt_tensor_view(t->storage, dtype, offset_bytes / to, sizes, strides, t->rank, &view));
    outs[0] = rt_from_tensor(view);
    return NULL;
}

ts_status rt_permuted(const rt_tensor *t, const int *order, rt_tensor **out) {
    int64_t sizes[RT_MAX_RANK], strides[RT_MAX_RANK];
    for (int d = 0; d < t->rank; d++) {
        sizes[d] = t->sizes[order[d]];
        strides[d] = t->strides[order[d]];
    }
    return rt_tensor_alias(t, 0, sizes, strides, t->rank, out);
}

static ts_status permute_to(const rt_tensor *t, const int *order, rt_value *out) {
    rt_tensor *view;
    TS_TRY(rt_permuted(t, order, &view));
    *out = rt_from_tensor(view);
    return NULL;
}

KERNEL(permute) {
    rt_tensor *t;
    int64_t dims[RT_MAX_RANK];
    int count, order[RT_MAX_RANK];
    bool seen[RT_MAX_RANK] = {false};
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_as_ints(args[1], dims, &count));
    if (count != t->rank)
        return ts_raise("RuntimeError",
                        "permute(sparse_coo): number of dimensions in the tensor input does not "
                        "match the length of the desired ordering of dimensions i.e. "
                        "input.dim() = %d is not equal to len(dims) = %d",
                        t->rank, count);
    for (int d = 0; d < count; d++) {
        TS_TRY(rt_wrap_dim(dims[d], t->rank, &order[d]));
        if (seen[order[d]])
            return ts_raise("RuntimeError", "permute(): duplicate dims are not allowed.");
        seen[order[d]] = true;
    }
    return permute_to(t, order, outs);
}

static ts_status swap(const rt_tensor *t, int a, int b, rt_value *out) {
    int order[RT_MAX_RANK];
    for (int d = 0; d < t->rank; d++)
        order[d] = d;
    if (t->rank > 0) {
        order[a] = b;
        order[b] = a;
    }
    return permute_to(t, order, out);
}

KERNEL(transpose) {
    rt_tensor *t;
    int a, b;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_wrap_dim(args[1].as.i, t->rank, &a));
    TS_TRY(rt_wrap_dim(args[2].as.i, t->rank, &b));
    return swap(t, a, b, outs);
}

KERNEL(t) {
    rt_tensor *t;
    TS_TRY(rt_need_tensor(args[0], &t));
    if (t->rank > 2)
        return ts_raise("RuntimeError",
                        "t() expects a tensor with <= 2 dimensions, but self is %dD", t->rank);
    return t->rank < 2 ? swap(t, 0, 0, outs) : swap(t, 0, 1, outs);
}

KERNEL(numpy_T) {
    rt_tensor *t;
    int order[RT_MAX_RANK];
    TS_TRY(rt_need_tensor(args[0], &t));
    for (int d = 0; d < t->rank; d++)
        order[d] = t->rank - 1 - d;
    return permute_to(t, order, outs);
}

KERNEL(mT) {
    rt_tensor *t;
    TS_TRY(rt_need_tensor(args[0], &t));
    if (t->rank < 2)
        return ts_raise("RuntimeError",
                        "tensor.mT is only supported on matrices or batches of matrices. Got %d-D "
                        "tensor.",
                        t->rank);
    return swap(t, t->rank - 2, t->rank - 1, outs);
}

ts_status rt_ref_conj(rt_context *context, const rt_value *args, rt_value *outs);

KERNEL(mH) {
    rt_tensor *t;
    rt_value conjugate;
    TS_TRY(rt_need_tensor(args[0], &t));
    if (t->rank < 2)
        return ts_raise("RuntimeError",
                        "tensor.mH is only supported on matrices or batches of "
                        "matrices. Got %d-D tensor.",
                        t->rank);
    TS_TRY(rt_ref_conj(context, args, &conjugate));
    ts_status status = swap(conjugate.as.tensor, t->rank - 2, t->rank - 1, outs);
    rt_release(conjugate);
    return status;
}

KERNEL(movedim) {
    rt_tensor *t;
    int64_t from[RT_MAX_RANK], to[RT_MAX_RANK];
    int count, to_count, order[RT_MAX_RANK];
    bool used[RT_MAX_RANK] = {false};
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_as_ints(args[1], from, &count));
    TS_TRY(rt_as_ints(args[2], to, &to_count));
    if (count != to_count)
        return ts_raise("RuntimeError",
                        "movedim: Invalid source or destination dims: source (%d dims) should "
                        "contain the same number of dims as destination (%d dims)",
                        count, to_count);
    for (int d = 0; d < t->rank; d++)
        order[d] = -1;
    for (int i = 0; i < count; i++) {
        int a, b;
        TS_TRY(rt_wrap_dim(from[i], t->rank, &a));
        TS_TRY(rt_wrap_dim(to[i], t->rank, &b));
        if (t->rank == 0)
            continue;
        if (used[a] || order[b] >= 0)
            return ts_raise("RuntimeError", "movedim: repeated dim in `source` or `destination`");
        used[a] = true;
        order[b] = a;
    }
    int next = 0;
    for (int d = 0; d < t->rank; d++) {
        if (order[d] >= 0)
            continue;
        while (used[next])
            next++;
        order[d] = next++;
    }
    return permute_to(t, order, outs);
}

/* ---- expansion ---- */

static ts_status expand_to(const rt_tensor *t, int64_t *sizes, int rank, rt_value *out) {
    rt_tensor *view;
    if (rank < t->rank)
        return ts_raise("RuntimeError",
                        "expand(): the number of sizes provided (%d) must be greater or equal to "
                        "the number of dimensions in the tensor (%d)",
                        rank, t->rank);
    for (int d = 0; d < rank; d++) {
        if (sizes[d] != -1)
            continue;
        if (d < rank - t->rank)
            return ts_raise("RuntimeError",
                            "The expanded size of the tensor (-1) isn't allowed in "
                            "a leading, non-existing dimension %d",
                            d);
        sizes[d] = t->sizes[d - (rank - t->rank)];
    }
    TS_TRY(rt_tensor_expand(t, sizes, rank, &view));
    *out = rt_from_tensor(view);
    return NULL;
}

KERNEL(expand) {
    rt_tensor *t;
    int64_t sizes[RT_MAX_RANK];
    int rank;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_as_ints(args[1], sizes, &rank));
    return expand_to(t, sizes, rank, outs);
}

KERNEL(expand_as) {
    rt_tensor *t, *other;
    int64_t sizes[RT_MAX_RANK];
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_need_tensor(args[1], &other));
    for (int d = 0; d < other->rank; d++)
        sizes[d] = other->sizes[d];
    return expand_to(t, sizes, other->rank, outs);
}

KERNEL(broadcast_tensors) {
    const rt_value *items;
    size_t count;
    int64_t sizes[RT_MAX_RANK];
    int rank = 0;
    rt_value list;
    rt_as_items(args[0], &items, &count);
    for (size_t i = 0; i < count; i++) {
        rt_tensor *t;
        TS_TRY(rt_need_tensor(items[i], &t));
        TS_TRY(rt_broadcast(sizes, rank, t->sizes, t->rank, sizes, &rank));
    }
    TS_TRY(rt_list_make(count, &list));
    for (size_t i = 0; i < count; i++) {
        ts_status status = rt_list_push_view(list.as.list, items[i].as.tensor, sizes, rank);
        if (status) {
            rt_release(list);
            return status;
        }
    }
    outs[0] = list;
    return NULL;
}

ts_status rt_list_push_view(rt_list *list, const rt_tensor *t, int64_t *sizes, int rank) {
    rt_value view;
    TS_TRY(expand_to(t, sizes, rank, &view));
    ts_status status = rt_list_append(list, view);
    rt_release(view);
    return status;
}

/* ---- dimensions of size 1 ---- */

static ts_status squeeze_dims(const rt_tensor *t, const bool *is_dropped, rt_value *out) {
    int64_t sizes[RT_MAX_RANK], strides[RT_MAX_RANK];
    int rank = 0;
    for (int d = 0; d < t->rank; d++) {
        if (is_dropped[d] && t->sizes[d] == 1)
            continue;
        sizes[rank] = t->sizes[d];
        strides[rank++] = t->strides[d];
    }
    return rt_alias_out(t, 0, sizes, strides, rank, out);
}

KERNEL(squeeze) {
    rt_tensor *t;
    bool mask[RT_MAX_RANK];
    TS_TRY(rt_need_tensor(args[0], &t));
    for (int d = 0; d < RT_MAX_RANK; d++)
        mask[d] = true;
    return squeeze_dims(t, mask, outs);
}

KERNEL(squeeze_dims) {
    rt_tensor *t;
    bool mask[RT_MAX_RANK];
    int64_t dims[RT_MAX_RANK];
    int count;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_as_ints(args[1], dims, &count));
    for (int d = 0; d < RT_MAX_RANK; d++)
        mask[d] = false;
    if (count > 0)
        TS_TRY(rt_dim_mask(args[1], t->rank, mask));
    return squeeze_dims(t, mask, outs);
}

KERNEL(unsqueeze) {
    rt_tensor *t;
    int dim;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_wrap_dim(args[1].as.i, t->rank + 1, &dim));
    int64_t sizes[RT_MAX_RANK + 1], strides[RT_MAX_RANK + 1];
    for (int d = 0; d < t->rank; d++) {
        sizes[d + (d >= dim)] = t->sizes[d];
        strides[d + (d >= dim)] = t->strides[d];
    }
    sizes[dim] = 1;
    strides[dim] = dim < t->rank ? t->sizes[dim] * t->strides[dim] : 1;
    return rt_alias_out(t, 0, sizes, strides, t->rank + 1, outs);
}

KERNEL(flatten) {
    rt_tensor *t;
    int start, end, rank = 0;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_wrap_dim(args[1].as.i, t->rank, &start));
    TS_TRY(rt_wrap_dim(args[2].as.i, t->rank, &end));
    if (start > end)
        return ts_raise("RuntimeError", "flatten() has invalid args: start_dim cannot come after "
                                        "end_dim");
    if (t->rank > 0 && start == end) {
        outs[0] = rt_retain(args[0]);
        return NULL;
    }
    int64_t sizes[RT_MAX_RANK], joined = 1;
    for (int d = 0; d < t->rank; d++) {
        if (d >= start && d <= end) {
            joined *= t->sizes[d];
            if (d < end)
                continue;
        }
        sizes[rank++] = d == end ? joined : t->sizes[d];
    }
    if (t->rank == 0)
        sizes[rank++] = 1;
    return view_as_sizes(t, sizes, rank, true, outs);
}

KERNEL(ravel) {
    rt_tensor *t;
    TS_TRY(rt_need_tensor(args[0], &t));
    return view_as_sizes(t, (int64_t[]){t->element_count}, 1, true, outs);
}

KERNEL(unflatten) {
    rt_tensor *t;
    int dim, count;
    int64_t parts[RT_MAX_RANK], sizes[RT_MAX_RANK];
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_wrap_dim(args[1].as.i, t->rank, &dim));
    TS_TRY(rt_as_ints(args[2], parts, &count));
    if (count == 0)
        return ts_raise("RuntimeError", "unflatten: sizes must be non-empty");
    if (t->rank == 0)
        return ts_raise("IndexError", "unflatten: tensor has no dimension to split");
    if (count + t->rank - 1 > RT_MAX_RANK)
        return ts_raise("RuntimeError", "unflatten: too many dimensions");
    int64_t asked[RT_MAX_RANK];
    memcpy(asked, parts, sizeof asked);
    ts_status status = rt_resolve_shape(parts, count, t->sizes[dim]);
    if (status) {
        ts_status_release(status);
        return ts_raise("RuntimeError",
                        "unflatten: Provided sizes don't multiply up to the size of dim %d (%lld) "
                        "in the input tensor",
                        dim, (long long)t->sizes[dim]);
    }
    int rank = 0;
    for (int d = 0; d < t->rank; d++) {
        if (d != dim)
            sizes[rank++] = t->sizes[d];
        else
            for (int i = 0; i < count; i++)
                sizes[rank++] = parts[i];
    }
    return view_as_sizes(t, sizes, rank, true, outs);
}

/* ---- flags ---- */

KERNEL(detach) {
    rt_tensor *t;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_alias_out(t, 0, t->sizes, t->strides, t->rank, outs));
    outs[0].as.tensor->requires_grad = false;
    return NULL;
}

KERNEL(requires_grad_) {
    rt_tensor *t;
    TS_TRY(rt_need_tensor(args[0], &t));
    t->requires_grad = args[1].as.i != 0;
    outs[0] = rt_retain(args[0]);
    return NULL;
}

/* ---- in place: the object itself takes other sizes ---- */

static void take_layout(rt_tensor *t, const rt_tensor *from) {
    for (int d = 0; d < from->rank; d++) {
        t->sizes[d] = from->sizes[d];
        t->strides[d] = from->strides[d];
    }
    t->rank = from->rank;
    t->data = from->data;
    t->element_count = from->element_count;
}

/* How many sizes fit: the object has spare room between its sizes and strides (tensor.c). */
static int64_t rank_capacity(const rt_tensor *t) {
    return t->sizes == t->shape ? (int64_t)(t->strides - t->shape) : t->rank;
}

/* Runs a view kernel and moves its layout into the object. */
static ts_status in_place(rt_kernel view, rt_context *context, const rt_value *args,
                          rt_value *outs) {
    rt_value result;
    TS_TRY(view(context, args, &result));
    if (result.as.tensor->rank > rank_capacity(args[0].as.tensor)) {
        rt_release(result);
        return ts_error_make(TS_ERR_UNSUPPORTED,
                             "an in-place view that adds dimensions to a tensor");
    }
    take_layout(args[0].as.tensor, result.as.tensor);
    rt_release(result);
    outs[0] = rt_retain(args[0]);
    return NULL;
}

KERNEL(transpose_) { return in_place(rt_ref_transpose, context, args, outs); }
KERNEL(t_) { return in_place(rt_ref_t, context, args, outs); }
KERNEL(squeeze_) { return in_place(rt_ref_squeeze, context, args, outs); }
KERNEL(squeeze_dims_) { return in_place(rt_ref_squeeze_dims, context, args, outs); }
KERNEL(unsqueeze_) { return in_place(rt_ref_unsqueeze, context, args, outs); }
KERNEL(as_strided_) { return in_place(rt_ref_as_strided, context, args, outs); }

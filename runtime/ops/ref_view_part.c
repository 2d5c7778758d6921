/* runtime/ops/ref_view_part.c - parts of a tensor: views of them, and what is written into them. */
#include "runtime/ops/index_ops.h"

ts_status rt_narrowed(const rt_tensor *t, int dim, int64_t start, int64_t length, int64_t step,
                      rt_tensor **out) {
    int64_t sizes[RT_MAX_RANK], strides[RT_MAX_RANK];
    for (int d = 0; d < t->rank; d++) {
        sizes[d] = t->sizes[d];
        strides[d] = t->strides[d];
    }
    int64_t offset = length > 0 ? start * strides[dim] : 0;
    sizes[dim] = length;
    if (step != 1 && !ts_mul_i64(strides[dim], step, &strides[dim]))
        strides[dim] = length > 1 ? INT64_MAX : 1; /* beyond the storage: refused below */
    return rt_tensor_alias(t, offset, sizes, strides, t->rank, out);
}

static ts_status narrow_to(const rt_tensor *t, int dim, int64_t start, int64_t length, int64_t step,
                           rt_value *out) {
    rt_tensor *view;
    TS_TRY(rt_narrowed(t, dim, start, length, step, &view));
    *out = rt_from_tensor(view);
    return NULL;
}

ts_status rt_sliced(const rt_tensor *t, rt_value dim_value, rt_value start_value,
                    rt_value end_value, rt_value step_value, rt_tensor **out) {
    int dim;
    *out = NULL;
    if (t->rank == 0)
        return ts_raise("RuntimeError", "slice() cannot be applied to a 0-dim tensor.");
    TS_TRY(rt_wrap_dim(dim_value.as.i, t->rank, &dim));
    int64_t step = rt_is_none(step_value) ? 1 : step_value.as.i, size = t->sizes[dim];
    if (step <= 0)
        return ts_raise("RuntimeError", "slice step must be positive");
    int64_t start = rt_is_none(start_value) ? 0 : rt_clamp_index(start_value.as.i, size);
    int64_t end = rt_is_none(end_value) ? size : rt_clamp_index(end_value.as.i, size);
    int64_t length = end > start ? (end - start - 1) / step + 1 : 0;
    return rt_narrowed(t, dim, start, length, step, out);
}

KERNEL(slice) {
    rt_tensor *t, *view;
    TS_TRY(rt_need_tensor(args[0], &t));
    if (t->rank && !rt_is_none(args[4]) && args[4].as.i <= 0) /* as x[::step] says, the one way to it in a script */
        return ts_raise("ValueError", args[4].as.i ? "step must be greater than zero" : "slice step cannot be zero");
    TS_TRY(rt_sliced(t, args[1], args[2], args[3], args[4], &view));
    outs[0] = rt_from_tensor(view);
    return NULL;
}

ts_status rt_selected(const rt_tensor *t, int64_t dim_arg, int64_t index, rt_tensor **out) {
    int dim;
    *out = NULL;
    if (t->rank == 0)
        return ts_raise("IndexError", "select() cannot be applied to a 0-dim tensor.");
    TS_TRY(rt_wrap_dim(dim_arg, t->rank, &dim));
    int64_t size = t->sizes[dim];
    if (index < -size || index >= size)
        return ts_raise("IndexError",
                        "select(): index %lld out of range for tensor of size %lld at dimension %d",
                        (long long)index, (long long)size, dim);
    if (index < 0)
        index += size;
    int64_t sizes[RT_MAX_RANK], strides[RT_MAX_RANK];
    int rank = 0;
    for (int d = 0; d < t->rank; d++) {
        if (d == dim)
            continue;
        sizes[rank] = t->sizes[d];
        strides[rank++] = t->strides[d];
    }
    return rt_tensor_alias(t, index * t->strides[dim], sizes, strides, rank, out);
}

KERNEL(select) {
    rt_tensor *t, *view;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_selected(t, args[1].as.i, rt_as_int(args[2]), &view));
    outs[0] = rt_from_tensor(view);
    return NULL;
}

KERNEL(narrow) {
    rt_tensor *t;
    int dim;
    TS_TRY(rt_need_tensor(args[0], &t));
    if (t->rank == 0)
        return ts_raise("RuntimeError", "narrow() cannot be applied to a 0-dim tensor.");
    TS_TRY(rt_wrap_dim(args[1].as.i, t->rank, &dim));
    if (args[2].tag == RT_TAG_TENSOR && (args[2].as.tensor->rank != 0 ||
                                         !rt_dtype_is_integral(rt_dtype_of(args[2].as.tensor))))
        return ts_raise("RuntimeError", "start must be an 0-dim integral Tensor.");
    int64_t start = rt_as_int(args[2]), length = args[3].as.i, size = t->sizes[dim];
    if (length < 0)
        return ts_raise("RuntimeError", "narrow(): length must be non-negative.");
    if (start < -size || start > size)
        return ts_raise(
            "IndexError",
            "start out of range (expected to be in range of [%lld, %lld], but got %lld)",
            (long long)-size, (long long)size, (long long)start);
    if (start < 0)
        start += size;
    if (start > size - length)
        return ts_raise("RuntimeError",
                        "start (%lld) + length (%lld) exceeds dimension size (%lld).",
                        (long long)start, (long long)length, (long long)size);
    return narrow_to(t, dim, start, length, 1, outs);
}

KERNEL(unfold) {
    rt_tensor *t;
    int dim;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_wrap_dim(args[1].as.i, t->rank, &dim));
    int64_t window = args[2].as.i, step = args[3].as.i;
    int64_t size = t->rank ? t->sizes[dim] : 1;
    if (window < 0 || window > size)
        return ts_raise("RuntimeError",
                        "maximum size for tensor at dimension %d is %lld but size "
                        "is %lld",
                        dim, (long long)size, (long long)window);
    if (step <= 0)
        return ts_raise("RuntimeError", "step is %lld but must be > 0", (long long)step);
    int64_t sizes[RT_MAX_RANK + 1], strides[RT_MAX_RANK + 1];
    for (int d = 0; d < t->rank; d++) {
        sizes[d] = t->sizes[d];
        strides[d] = t->strides[d];
    }
    sizes[t->rank] = window;
    strides[t->rank] = t->rank ? t->strides[dim] : 1;
    if (t->rank) {
        sizes[dim] = (size - window) / step + 1;
        strides[dim] = sizes[dim] > 1 ? t->strides[dim] * step : t->strides[dim];
    }
    return rt_alias_out(t, 0, sizes, strides, t->rank + 1, outs);
}

ts_status rt_diagonal_of(const rt_tensor *t, int64_t offset, int64_t dim1_arg, int64_t dim2_arg,
                         rt_tensor **out) {
    int dim1, dim2, rank = 0;
    *out = NULL;
    TS_TRY(rt_wrap_dim(dim1_arg, t->rank, &dim1));
    TS_TRY(rt_wrap_dim(dim2_arg, t->rank, &dim2));
    if (dim1 == dim2)
        return ts_raise("RuntimeError", "diagonal dimensions cannot be identical %d, %d", dim1,
                        dim2);
    int64_t rows = t->sizes[dim1], columns = t->sizes[dim2], length, start = 0;
    if (offset >= 0)
        length = offset < columns ? columns - offset : 0;
    else
        length = offset > -rows ? rows + offset : 0;
    int64_t other = offset >= 0 ? rows : columns;
    if (length > other)
        length = other;
    if (length > 0)
        start = offset >= 0 ? offset * t->strides[dim2] : -offset * t->strides[dim1];
    int64_t sizes[RT_MAX_RANK], strides[RT_MAX_RANK];
    for (int d = 0; d < t->rank; d++) {
        if (d == dim1 || d == dim2)
            continue;
        sizes[rank] = t->sizes[d];
        strides[rank++] = t->strides[d];
    }
    sizes[rank] = length;
    strides[rank++] = t->strides[dim1] + t->strides[dim2];
    return rt_tensor_alias(t, start, sizes, strides, rank, out);
}

KERNEL(diagonal) {
    rt_tensor *t, *view;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_diagonal_of(t, args[1].as.i, args[2].as.i, args[3].as.i, &view));
    outs[0] = rt_from_tensor(view);
    return NULL;
}

ts_status rt_strided(const rt_tensor *t, rt_value size_value, rt_value stride_value,
                     rt_value offset_value, rt_tensor **out) {
    int64_t sizes[RT_MAX_RANK], strides[RT_MAX_RANK];
    int rank, stride_count;
    *out = NULL;
    TS_TRY(rt_as_ints(size_value, sizes, &rank));
    TS_TRY(rt_as_ints(stride_value, strides, &stride_count));
    if (rank != stride_count)
        return ts_raise("RuntimeError", "mismatch in length of strides and shape");
    int64_t own = rt_tensor_offset(t);
    int64_t offset = rt_is_none(offset_value) ? own : offset_value.as.i;
    for (int d = 0; d < rank; d++)
        if (strides[d] < 0)
            return ts_raise("RuntimeError",
                            "as_strided: Negative strides are not supported at the moment");
    return rt_tensor_alias(t, offset - own, sizes, strides, rank, out);
}

KERNEL(as_strided) {
    rt_tensor *t, *view;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_strided(t, args[1], args[2], args[3], &view));
    outs[0] = rt_from_tensor(view);
    return NULL;
}

KERNEL(reshape_alias) {
    return rt_ref_as_strided(context, (rt_value[]){args[0], args[1], args[2], rt_none()}, outs);
}

/* ---- written into a copy ---- */

static ts_status write_view(rt_tensor *result, ts_status made, rt_tensor *view, rt_value src,
                            rt_value *outs) {
    ts_status status = made;
    if (!status) {
        rt_tensor *source;
        status = rt_need_tensor(src, &source);
        bool is_same = !status && view->rank == source->rank;
        for (int d = 0; is_same && d < view->rank; d++)
            is_same = view->sizes[d] == source->sizes[d];
        if (!status && !is_same)
            status = ts_raise("RuntimeError", "expected src to have a size equal to the slice of "
                                              "self");
        if (!status)
            status = rt_tensor_copy_into(view, source);
        rt_tensor_release(view);
    }
    return rt_give(status, result, outs);
}

KERNEL(select_scatter) {
    rt_tensor *result, *view = NULL;
    TS_TRY(rt_fresh_copy(args[0], &result));
    ts_status status = rt_selected(result, args[2].as.i, args[3].as.i, &view);
    return write_view(result, status, view, args[1], outs);
}
KERNEL(slice_scatter) {
    rt_tensor *result, *view = NULL;
    TS_TRY(rt_fresh_copy(args[0], &result));
    ts_status status = rt_sliced(result, args[2], args[3], args[4], args[5], &view);
    return write_view(result, status, view, args[1], outs);
}
KERNEL(diagonal_scatter) {
    rt_tensor *result, *view = NULL;
    TS_TRY(rt_fresh_copy(args[0], &result));
    ts_status status = rt_diagonal_of(result, args[2].as.i, args[3].as.i, args[4].as.i, &view);
    return write_view(result, status, view, args[1], outs);
}
/* A copy of the whole memory behind a tensor, seen through the same strides: what as_strided then
 * finds there is what it would find behind the tensor. Contiguous where elements share memory. */
static ts_status copy_with_strides(rt_value v, rt_tensor **out) {
    rt_tensor *t;
    rt_storage *memory;
    TS_TRY(rt_need_tensor(v, &t));
    bool shares = t->storage == NULL;
    for (int d = 0; d < t->rank; d++)
        shares |= t->strides[d] == 0 && t->sizes[d] > 1;
    if (shares || t->is_conjugated)
        return rt_fresh_copy(v, out);
    TS_TRY(rt_storage_make(t->storage->bytes, &memory));
    memcpy(memory->data, t->storage->data, t->storage->bytes);
    ts_status status = rt_tensor_view(memory, (rt_dtype)t->dtype, rt_tensor_offset(t), t->sizes,
                                      t->strides, t->rank, out);
    rt_storage_release(memory);
    return status;
}

KERNEL(as_strided_scatter) {
    rt_tensor *result, *view = NULL;
    TS_TRY(copy_with_strides(args[0], &result));
    ts_status status = rt_strided(result, args[2], args[3], args[4], &view);
    return write_view(result, status, view, args[1], outs);
}

/* runtime/ops/ref_split.c - a tensor as a list of parts of it, all views. */
#include <stdlib.h>

#include "runtime/ops/shape_ops.h"

static ts_status push_narrowed(rt_list *list, const rt_tensor *t, int dim, int64_t start,
                               int64_t length) {
    rt_tensor *view;
    TS_TRY(rt_narrowed(t, dim, start, length, 1, &view));
    ts_status status = rt_list_append(list, rt_from_tensor(view));
    rt_tensor_release(view);
    return status;
}

/* Parts that end at ends[0], ends[1], ... */
static ts_status split_at(const rt_tensor *t, int dim, const int64_t *starts, const int64_t *ends,
                          size_t count, rt_value *out) {
    TS_TRY(rt_list_make(count, out));
    for (size_t i = 0; i < count; i++) {
        int64_t length = ends[i] > starts[i] ? ends[i] - starts[i] : 0;
        ts_status status = push_narrowed(out->as.list, t, dim, starts[i], length);
        if (status) {
            rt_release(*out);
            *out = rt_none();
            return status;
        }
    }
    return NULL;
}

static ts_status split_dim(rt_value self, rt_value dim_value, rt_tensor **out, int *out_dim) {
    TS_TRY(rt_need_tensor(self, out));
    if ((*out)->rank == 0)
        return ts_raise("RuntimeError", "split expects at least a 1-dimensional tensor");
    return rt_wrap_dim(dim_value.as.i, (*out)->rank, out_dim);
}

static ts_status split_every(const rt_tensor *t, int dim, int64_t length, rt_value *out) {
    int64_t size = t->sizes[dim];
    if (length < 0)
        return ts_raise("RuntimeError",
                        "split expects split_size be non-negative, but got "
                        "split_size=%lld",
                        (long long)length);
    if (length == 0 && size > 0)
        return ts_raise("RuntimeError",
                        "split_size can only be 0 if dimension size is 0, but got "
                        "dimension size of %lld",
                        (long long)size);
    int64_t count = length == 0 || size == 0 ? 1 : (size - 1) / length + 1;
    if (count > RT_MOST_PARTS)
        return ts_no_memory();
    TS_TRY(rt_list_make((size_t)count, out));
    for (int64_t i = 0; i < count; i++) {
        int64_t start = i * length, left = size - start;
        ts_status status =
            push_narrowed(out->as.list, t, dim, start, left < length ? left : length);
        if (status) {
            rt_release(*out);
            *out = rt_none();
            return status;
        }
    }
    return NULL;
}

KERNEL(split) {
    rt_tensor *t;
    int dim;
    TS_TRY(split_dim(args[0], args[2], &t, &dim));
    return split_every(t, dim, args[1].as.i, outs);
}

KERNEL(split_with_sizes) {
    rt_tensor *t;
    int dim;
    const rt_value *items;
    size_t count;
    TS_TRY(split_dim(args[0], args[2], &t, &dim));
    rt_as_items(args[1], &items, &count);
    int64_t *bounds = rt_alloc_array((int64_t)count, 2 * sizeof *bounds), at = 0;
    if (!bounds)
        return ts_no_memory();
    ts_status status = NULL;
    for (size_t i = 0; i < count && !status; i++) {
        int64_t length = rt_as_int(items[i]);
        bounds[i] = at;
        if (length < 0 || !ts_add_i64(at, length, &at))
            status = ts_raise("RuntimeError", "split_with_sizes expects split_sizes have only "
                                              "non-negative entries");
        bounds[count + i] = at;
    }
    if (!status && at != t->sizes[dim])
        status = ts_raise("RuntimeError",
                          "split_with_sizes expects split_sizes to sum exactly to %lld (input "
                          "tensor's size at dimension %d)",
                          (long long)t->sizes[dim], dim);
    if (!status)
        status = split_at(t, dim, bounds, bounds + count, count, outs);
    free(bounds);
    return status;
}

KERNEL(chunk) {
    rt_tensor *t;
    int dim;
    TS_TRY(split_dim(args[0], args[2], &t, &dim));
    int64_t chunks = args[1].as.i, size = t->sizes[dim];
    if (chunks <= 0)
        return ts_raise("RuntimeError", "chunk expects `chunks` to be greater than 0, got: %lld",
                        (long long)chunks);
    if (chunks > RT_MOST_PARTS && size == 0)
        return ts_no_memory();
    if (size == 0) { /* as many empty parts as asked */
        TS_TRY(rt_list_make(0, outs));
        for (int64_t i = 0; i < chunks; i++) {
            ts_status status = push_narrowed(outs[0].as.list, t, dim, 0, 0);
            if (status) {
                rt_release(outs[0]);
                outs[0] = rt_none();
                return status;
            }
        }
        return NULL;
    }
    return split_every(t, dim, (size - 1) / chunks + 1, outs);
}

KERNEL(unbind) {
    rt_tensor *t;
    int dim;
    TS_TRY(rt_need_tensor(args[0], &t));
    if (t->rank == 0)
        return ts_raise("RuntimeError", "Dimension specified as 0 but tensor has no dimensions");
    TS_TRY(rt_wrap_dim(args[1].as.i, t->rank, &dim));
    if (t->sizes[dim] > RT_MOST_PARTS)
        return ts_no_memory();
    TS_TRY(rt_list_make((size_t)t->sizes[dim], outs));
    for (int64_t i = 0; i < t->sizes[dim]; i++) {
        rt_tensor *view;
        ts_status status = rt_selected(t, dim, i, &view);
        if (!status) {
            status = rt_list_append(outs[0].as.list, rt_from_tensor(view));
            rt_tensor_release(view);
        }
        if (status) {
            rt_release(outs[0]);
            outs[0] = rt_none();
            return status;
        }
    }
    return NULL;
}

static ts_status split_sections(const rt_tensor *t, int dim, int64_t sections, rt_value *out) {
    if (sections <= 0)
        return ts_raise("RuntimeError", "number of sections must be larger than 0, got %lld",
                        (long long)sections);
    if (sections > RT_MOST_PARTS)
        return ts_no_memory();
    int64_t size = t->sizes[dim], at = 0;
    TS_TRY(rt_list_make(0, out));
    for (int64_t i = 0; i < sections; i++) {
        int64_t length = size / sections + (i < size % sections);
        ts_status status = push_narrowed(out->as.list, t, dim, at, length);
        if (status) {
            rt_release(*out);
            *out = rt_none();
            return status;
        }
        at += length;
    }
    return NULL;
}

/* The index-th split point: from a list of ints or a 1-d tensor. */
static ts_status split_indices(const rt_tensor *t, int dim, const int64_t *indices, size_t count,
                               rt_value *out) {
    int64_t *bounds = rt_alloc_array((int64_t)count, 2 * sizeof *bounds), size = t->sizes[dim];
    if (!bounds)
        return ts_no_memory();
    int64_t start = 0;
    for (size_t i = 0; i <= count; i++) {
        int64_t end = i < count ? rt_clamp_index(indices[i], size) : size;
        bounds[i] = start;
        bounds[count + 1 + i] = end;
        start = end;
    }
    ts_status status = split_at(t, dim, bounds, bounds + count + 1, count + 1, out);
    free(bounds);
    return status;
}

KERNEL(tensor_split) {
    rt_tensor *t;
    int dim;
    TS_TRY(split_dim(args[0], args[2], &t, &dim));
    if (args[1].tag == RT_TAG_TENSOR && args[1].as.tensor->dtype != RT_int64)
        return ts_raise("RuntimeError", "tensor_split expected tensor_indices_or_sections to have dtype of long, but got %s",
                        rt_dtype_message_name(rt_dtype_of(args[1].as.tensor)));
    if (args[1].tag == RT_TAG_INT)
        return split_sections(t, dim, args[1].as.i, outs);
    if (args[1].tag == RT_TAG_TENSOR && args[1].as.tensor->rank == 0)
        return split_sections(t, dim, rt_as_int(args[1]), outs);
    size_t count;
    const rt_value *items = NULL;
    rt_tensor *points = args[1].tag == RT_TAG_TENSOR ? args[1].as.tensor : NULL;
    if (points)
        count = (size_t)points->element_count;
    else
        rt_as_items(args[1], &items, &count);
    int64_t *indices = rt_alloc_array((int64_t)count, sizeof *indices);
    if (!indices)
        return ts_no_memory();
    if (points) {
        rt_cursor cursor;
        size_t at = 0;
        for (rt_cursor_start(&cursor, points); cursor.left; rt_cursor_next(&cursor))
            indices[at++] = rt_load_int(rt_dtype_of(points), cursor.data);
    } else {
        for (size_t i = 0; i < count; i++)
            indices[i] = rt_as_int(items[i]);
    }
    ts_status status = split_indices(t, dim, indices, count, outs);
    free(indices);
    return status;
}

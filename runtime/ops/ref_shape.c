/* runtime/ops/ref_shape.c - operators that rearrange elements into new memory. */
#include <stdlib.h>

#include "runtime/ops/shape_ops.h"

ts_status rt_fill_number(rt_tensor *t, rt_value number) {
    rt_tensor *element;
    TS_TRY(rt_tensor_from_number(number, rt_dtype_of(t), &element));
    ts_status status = rt_tensor_copy_into(t, element);
    rt_tensor_release(element);
    return status;
}

ts_status rt_gather_maps(const rt_tensor *in, const int64_t *out_sizes, const int64_t *const maps[],
                         rt_tensor **out) {
    int rank = in->rank, outer = rank;
    TS_TRY(rt_tensor_make(rt_dtype_of(in), out_sizes, rank, out));
    if ((*out)->element_count == 0)
        return NULL;
    int64_t size = rt_element_bytes(in), chunk = 1;
    /* Trailing dimensions taken whole and in order are moved at once. */
    while (outer > 0 && !maps[outer - 1] &&
           (in->strides[outer - 1] == chunk || in->sizes[outer - 1] == 1))
        chunk *= in->sizes[--outer];
    int64_t index[RT_MAX_RANK] = {0}, bytes = chunk * size;
    char *dst = (*out)->data;
    const char *base = in->data;
    if (outer == 0) {
        memcpy(dst, base, (size_t)bytes);
        return NULL;
    }
    int last = outer - 1;
    int64_t step = in->strides[last] * size;
    for (;;) {
        const char *row = base;
        for (int d = 0; d < last; d++)
            row += (maps[d] ? maps[d][index[d]] : index[d]) * in->strides[d] * size;
        for (int64_t i = 0; i < out_sizes[last]; i++, dst += bytes)
            rt_copy_element(dst, row + (maps[last] ? maps[last][i] : i) * step, bytes);
        int d = last - 1;
        while (d >= 0 && ++index[d] == out_sizes[d])
            index[d--] = 0;
        if (d < 0)
            return NULL;
    }
}

/* One map along dim, of length entries. */
static ts_status gather_along(const rt_tensor *t, int dim, const int64_t *map, int64_t length,
                              rt_value *out) {
    const int64_t *maps[RT_MAX_RANK] = {NULL};
    int64_t sizes[RT_MAX_RANK];
    rt_tensor *result;
    for (int d = 0; d < t->rank; d++)
        sizes[d] = t->sizes[d];
    sizes[dim] = length;
    maps[dim] = map;
    TS_TRY(rt_gather_maps(t, sizes, maps, &result));
    *out = rt_from_tensor(result);
    return NULL;
}

/* ---- joining ---- */

static bool is_skipped(const rt_tensor *t) { return t->rank == 1 && t->sizes[0] == 0; }

KERNEL(cat) {
    const rt_value *items;
    size_t count;
    rt_as_items(args[0], &items, &count);
    if (count == 0)
        return ts_raise("RuntimeError", "torch.cat(): expected a non-empty list of Tensors");
    rt_promotion promotion = RT_PROMOTION_START;
    const rt_tensor *shape = NULL;
    for (size_t i = 0; i < count; i++) {
        rt_tensor *t;
        TS_TRY(rt_need_tensor(items[i], &t));
        if (t->rank == 0)
            return ts_raise("RuntimeError",
                            "zero-dimensional tensor (at position %zu) cannot be "
                            "concatenated",
                            i);
        rt_promotion_add(&promotion, items[i]);
        if (!shape && !is_skipped(t))
            shape = t;
    }
    if (!shape)
        shape = items[0].as.tensor;
    int dim;
    TS_TRY(rt_wrap_dim(args[1].as.i, shape->rank, &dim));
    int64_t sizes[RT_MAX_RANK], total = 0;
    for (size_t i = 0; i < count; i++) {
        const rt_tensor *t = items[i].as.tensor;
        if (is_skipped(t))
            continue;
        if (t->rank != shape->rank)
            return ts_raise("RuntimeError",
                            "Tensors must have same number of dimensions: got %d and %d",
                            shape->rank, t->rank);
        for (int d = 0; d < t->rank; d++)
            if (d != dim && t->sizes[d] != shape->sizes[d])
                return ts_raise("RuntimeError",
                                "Sizes of tensors must match except in dimension %d. Expected size "
                                "%lld but got size %lld for tensor number %zu in the list.",
                                dim, (long long)shape->sizes[d], (long long)t->sizes[d], i);
        if (!ts_add_i64(total, t->sizes[dim], &total))
            return ts_no_memory();
    }
    for (int d = 0; d < shape->rank; d++)
        sizes[d] = d == dim ? total : shape->sizes[d];
    rt_tensor *result;
    TS_TRY(rt_tensor_make(rt_promotion_result(&promotion), sizes, shape->rank, &result));
    int64_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const rt_tensor *t = items[i].as.tensor;
        if (is_skipped(t))
            continue;
        rt_tensor *part;
        ts_status status = rt_narrowed(result, dim, at, t->sizes[dim], 1, &part);
        if (!status) {
            status = rt_tensor_copy_into(part, t);
            rt_tensor_release(part);
        }
        if (status) {
            rt_tensor_release(result);
            return status;
        }
        at += t->sizes[dim];
    }
    outs[0] = rt_from_tensor(result);
    return NULL;
}

KERNEL(stack) {
    const rt_value *items;
    size_t count;
    rt_as_items(args[0], &items, &count);
    if (count == 0)
        return ts_raise("RuntimeError", "stack expects a non-empty TensorList");
    rt_promotion promotion = RT_PROMOTION_START;
    rt_tensor *first, *t, *result;
    int dim;
    TS_TRY(rt_need_tensor(items[0], &first));
    for (size_t i = 0; i < count; i++) {
        TS_TRY(rt_need_tensor(items[i], &t));
        rt_promotion_add(&promotion, items[i]);
        bool is_same = t->rank == first->rank;
        for (int d = 0; is_same && d < t->rank; d++)
            is_same = t->sizes[d] == first->sizes[d];
        if (!is_same)
            return ts_raise("RuntimeError",
                            "stack expects each tensor to be equal size, but the "
                            "size of entry %zu differs from that of entry 0",
                            i);
    }
    TS_TRY(rt_wrap_dim(args[1].as.i, first->rank + 1, &dim));
    int64_t sizes[RT_MAX_RANK + 1];
    for (int d = 0; d < first->rank; d++)
        sizes[d + (d >= dim)] = first->sizes[d];
    sizes[dim] = (int64_t)count;
    TS_TRY(rt_tensor_make(rt_promotion_result(&promotion), sizes, first->rank + 1, &result));
    for (size_t i = 0; i < count; i++) {
        rt_tensor *part;
        ts_status status = rt_selected(result, dim, (int64_t)i, &part);
        if (!status) {
            status = rt_tensor_copy_into(part, items[i].as.tensor);
            rt_tensor_release(part);
        }
        if (status) {
            rt_tensor_release(result);
            return status;
        }
    }
    outs[0] = rt_from_tensor(result);
    return NULL;
}

/* ---- turning ---- */

KERNEL(flip) {
    rt_tensor *t, *result;
    bool mask[RT_MAX_RANK] = {false};
    int64_t dims[RT_MAX_RANK], strides[RT_MAX_RANK];
    int count;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_as_ints(args[1], dims, &count));
    if (count > 0)
        TS_TRY(rt_dim_mask(args[1], t->rank, mask));
    TS_TRY(rt_tensor_make(rt_dtype_of(t), t->sizes, t->rank, &result));
    int64_t size = rt_element_bytes(t);
    char *start = t->data;
    for (int d = 0; d < t->rank; d++) {
        strides[d] = (mask[d] ? -t->strides[d] : t->strides[d]) * size;
        if (mask[d] && t->sizes[d] > 0)
            start += (t->sizes[d] - 1) * t->strides[d] * size;
    }
    rt_loop loop;
    rt_loop_init(&loop, t->sizes, t->rank);
    rt_loop_add(&loop, result);
    rt_loop_add_raw(&loop, start, strides);
    for (rt_loop_start(&loop); loop.is_running; rt_loop_next(&loop))
        for (int64_t i = 0; i < loop.inner_count; i++)
            rt_copy_element(loop.data[0] + i * loop.inner_strides[0],
                       loop.data[1] + i * loop.inner_strides[1], size);
    outs[0] = rt_from_tensor(result);
    return NULL;
}

static ts_status roll_along(const rt_tensor *t, int dim, int64_t shift, rt_value *out) {
    int64_t size = t->sizes[dim];
    int64_t *map = rt_alloc_array(size, sizeof *map);
    if (!map)
        return ts_no_memory();
    int64_t start = size ? (size - shift % size) % size : 0;
    for (int64_t i = 0; i < size; i++)
        map[i] = (start + i) % size;
    ts_status status = gather_along(t, dim, map, size, out);
    free(map);
    return status;
}

KERNEL(roll) {
    rt_tensor *t;
    int64_t shifts[RT_MAX_RANK], dims[RT_MAX_RANK];
    int count, dim_count;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_as_ints(args[1], shifts, &count));
    TS_TRY(rt_as_ints(args[2], dims, &dim_count));
    if (count == 0)
        return ts_raise("RuntimeError", "`shifts` required");
    if (dim_count == 0 && count == 1) { /* the flattened tensor rolls */
        rt_tensor *flat, *dense;
        TS_TRY(rt_tensor_contiguous(t, &dense));
        ts_status status =
            rt_tensor_alias(dense, 0, (int64_t[]){t->element_count}, (int64_t[]){1}, 1, &flat);
        rt_tensor_release(dense);
        TS_TRY(status);
        rt_value rolled;
        status = roll_along(flat, 0, shifts[0], &rolled);
        rt_tensor_release(flat);
        TS_TRY(status);
        int64_t strides[RT_MAX_RANK];
        rt_contiguous_strides(t->sizes, t->rank, strides);
        rt_tensor *view;
        status = rt_tensor_alias(rolled.as.tensor, 0, t->sizes, strides, t->rank, &view);
        rt_release(rolled);
        TS_TRY(status);
        outs[0] = rt_from_tensor(view);
        return NULL;
    }
    if (count != dim_count)
        return ts_raise("RuntimeError", "shifts and dimensions must align. shifts: %d, dims:%d",
                        count, dim_count);
    rt_value current = rt_retain(args[0]);
    for (int i = 0; i < count; i++) {
        int dim;
        rt_value next = rt_none();
        ts_status status = rt_wrap_dim(dims[i], t->rank, &dim);
        if (!status && t->rank == 0)
            status =
                ts_raise("IndexError", "Dimension specified as 0 but tensor has no dimensions");
        if (!status)
            status = roll_along(current.as.tensor, dim, shifts[i], &next);
        rt_release(current);
        TS_TRY(status);
        current = next;
    }
    outs[0] = current;
    return NULL;
}

/* ---- repeating ---- */

KERNEL(repeat) {
    rt_tensor *t, *result, *grid = NULL, *source = NULL;
    int64_t repeats[RT_MAX_RANK], sizes[RT_MAX_RANK];
    int count;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_as_ints(args[1], repeats, &count));
    if (count < t->rank)
        return ts_raise("RuntimeError", "Number of dimensions of repeat dims can not be smaller "
                                        "than number of dimensions of tensor");
    int lead = count - t->rank;
    for (int d = 0; d < count; d++) {
        if (repeats[d] < 0)
            return ts_raise("RuntimeError", "Trying to create tensor with negative dimension %lld",
                            (long long)repeats[d]);
        if (!ts_mul_i64(repeats[d], d < lead ? 1 : t->sizes[d - lead], &sizes[d]))
            return ts_no_memory();
    }
    TS_TRY(rt_tensor_make(rt_dtype_of(t), sizes, count, &result));
    ts_status status = NULL;
    if (result->element_count > 0 && count <= RT_MAX_RANK / 2) {
        /* out seen as [r0, s0, r1, s1, ...] takes the source with r broadcast */
        int64_t grid_sizes[RT_MAX_RANK], grid_strides[RT_MAX_RANK], own_sizes[RT_MAX_RANK],
            own_strides[RT_MAX_RANK];
        for (int d = 0; d < count; d++) {
            int64_t size = d < lead ? 1 : t->sizes[d - lead];
            grid_sizes[2 * d] = repeats[d];
            grid_strides[2 * d] = size * result->strides[d];
            grid_sizes[2 * d + 1] = own_sizes[2 * d + 1] = size;
            grid_strides[2 * d + 1] = result->strides[d];
            own_sizes[2 * d] = 1;
            own_strides[2 * d] = 0;
            own_strides[2 * d + 1] = d < lead ? 0 : t->strides[d - lead];
        }
        status = rt_tensor_alias(result, 0, grid_sizes, grid_strides, 2 * count, &grid);
        if (!status)
            status = rt_tensor_alias(t, 0, own_sizes, own_strides, 2 * count, &source);
        if (!status)
            status = rt_tensor_copy_into(grid, source);
        rt_tensor_release(grid);
        rt_tensor_release(source);
    } else if (result->element_count > 0) {
        status =
            ts_error_make(TS_ERR_UNSUPPORTED, "repeat of more than %d dimensions", RT_MAX_RANK / 2);
    }
    if (status) {
        rt_tensor_release(result);
        return status;
    }
    outs[0] = rt_from_tensor(result);
    return NULL;
}

KERNEL(tile) {
    rt_tensor *t;
    int64_t repeats[RT_MAX_RANK], padded[RT_MAX_RANK];
    int count;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_as_ints(args[1], repeats, &count));
    int lead = count < t->rank ? t->rank - count : 0;
    for (int d = 0; d < lead; d++)
        padded[d] = 1;
    for (int d = 0; d < count; d++)
        padded[lead + d] = repeats[d];
    rt_value list;
    TS_TRY(rt_int_list_make(padded, (size_t)(lead + count), &list));
    ts_status status = rt_ref_repeat(context, (rt_value[]){args[0], list}, outs);
    rt_release(list);
    return status;
}

/* i repeated repeats[i] times; repeats holds one number or size numbers. */
static ts_status interleave_map(const rt_tensor *repeats, int64_t size, int64_t **out_map,
                                int64_t *out_length) {
    rt_dtype dtype = rt_dtype_of(repeats);
    *out_map = NULL;
    if (repeats->rank > 1)
        return ts_raise("RuntimeError", "repeats must be 0-dim or 1-dim tensor");
    if (dtype != RT_int64 && dtype != RT_int32)
        return ts_raise("RuntimeError", "repeats has to be Long or Int tensor");
    if (repeats->element_count != 1 && repeats->element_count != size)
        return ts_raise("RuntimeError",
                        "repeats must have the same size as input along dim, but "
                        "got repeats.size(0) = %lld and input.size(0) = %lld",
                        (long long)repeats->element_count, (long long)size);
    int64_t step = repeats->rank && repeats->element_count > 1
                       ? repeats->strides[0] * rt_element_bytes(repeats)
                       : 0;
    int64_t total = 0;
    for (int64_t i = 0; i < size; i++) {
        int64_t n = rt_load_int(dtype, (char *)repeats->data + i * step);
        if (n < 0)
            return ts_raise("RuntimeError", "repeats can not be negative");
        if (!ts_add_i64(total, n, &total) || total > ((int64_t)1 << 40))
            return ts_no_memory();
    }
    int64_t *map = rt_alloc_array(total, sizeof *map), at = 0;
    if (!map)
        return ts_no_memory();
    for (int64_t i = 0; i < size; i++)
        for (int64_t n = rt_load_int(dtype, (char *)repeats->data + i * step); n > 0; n--)
            map[at++] = i;
    *out_map = map;
    *out_length = total;
    return NULL;
}

KERNEL(repeat_interleave_counts) {
    rt_tensor *repeats, *result;
    int64_t *map, length;
    TS_TRY(rt_need_tensor(args[0], &repeats));
    if (repeats->rank != 1)
        return ts_raise("RuntimeError", "repeat_interleave only accept 1D vector as repeat");
    TS_TRY(interleave_map(repeats, repeats->element_count, &map, &length));
    ts_status status = rt_tensor_make(rt_dtype_of(repeats), &length, 1, &result);
    if (!status) {
        for (int64_t i = 0; i < length; i++)
            rt_store_int(rt_dtype_of(repeats), (char *)result->data + i * rt_element_bytes(result),
                         map[i]);
        outs[0] = rt_from_tensor(result);
    }
    free(map);
    return status;
}

KERNEL(repeat_interleave) {
    rt_tensor *t, *repeats, *source;
    int dim = 0;
    TS_TRY(rt_need_tensor(args[0], &t));
    if (args[1].tag == RT_TAG_TENSOR)
        repeats = rt_retain(args[1]).as.tensor;
    else
        TS_TRY(rt_tensor_from_number(args[1], RT_int64, &repeats));
    ts_status status = NULL;
    if (rt_is_none(args[2]) || t->rank == 0) { /* flattened */
        rt_tensor *dense;
        status = rt_tensor_contiguous(t, &dense);
        if (!status) {
            status = rt_tensor_alias(dense, 0, (int64_t[]){t->element_count}, (int64_t[]){1}, 1,
                                     &source);
            rt_tensor_release(dense);
        }
    } else {
        status = rt_wrap_dim(args[2].as.i, t->rank, &dim);
        source = t;
        if (!status)
            rt_retain(args[0]);
    }
    if (!status) {
        int64_t *map, length;
        status = interleave_map(repeats, source->sizes[dim], &map, &length);
        if (!status) {
            status = gather_along(source, dim, map, length, outs);
            free(map);
        }
        rt_tensor_release(source);
    }
    rt_tensor_release(repeats);
    return status;
}

/* ---- padding ---- */

typedef enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_REPLICATE, PAD_CIRCULAR } pad_mode;

/* pads come innermost first, two for each dimension. */
static ts_status pad_sizes(const rt_tensor *t, const int64_t *pads, int count, int64_t *out_sizes) {
    if (count % 2 || count / 2 > t->rank)
        return ts_raise("RuntimeError",
                        "Length of pad should be even and no more than twice the number of "
                        "dimensions of the input, but got %d pads for %d dimensions",
                        count, t->rank);
    for (int d = 0; d < t->rank; d++) {
        int at = 2 * (t->rank - 1 - d);
        out_sizes[d] = t->sizes[d];
        if (at < count &&
            (!ts_add_i64(out_sizes[d], pads[at], &out_sizes[d]) ||
             !ts_add_i64(out_sizes[d], pads[at + 1], &out_sizes[d]) || out_sizes[d] < 0))
            return ts_raise("RuntimeError",
                            "The input size %lld, plus negative padding %lld and %lld, resulted in "
                            "a negative output size, which is invalid. Check dimension %d of your "
                            "input.",
                            (long long)t->sizes[d], (long long)pads[at], (long long)pads[at + 1],
                            d);
    }
    return NULL;
}

static ts_status pad_constant(const rt_tensor *t, const int64_t *pads, int count, rt_value value,
                              rt_value *out) {
    int64_t sizes[RT_MAX_RANK], shape[RT_MAX_RANK];
    rt_tensor *result, *target = NULL, *source = NULL;
    TS_TRY(pad_sizes(t, pads, count, sizes));
    TS_TRY(rt_tensor_make(rt_dtype_of(t), sizes, t->rank, &result));
    ts_status status = rt_fill_number(result, rt_is_none(value) ? rt_int(0) : value);
    int64_t to = 0, from = 0;
    bool is_empty = false;
    for (int d = 0; d < t->rank; d++) {
        int at = 2 * (t->rank - 1 - d);
        int64_t low = at < count ? pads[at] : 0, high = at < count ? pads[at + 1] : 0;
        if (low > 0)
            to += low * result->strides[d];
        else
            from += -low * t->strides[d];
        shape[d] = t->sizes[d] + (low < 0 ? low : 0) + (high < 0 ? high : 0);
        is_empty = is_empty || shape[d] <= 0;
    }
    if (!status && !is_empty) {
        status = rt_tensor_alias(result, to, shape, result->strides, t->rank, &target);
        if (!status)
            status = rt_tensor_alias(t, from, shape, t->strides, t->rank, &source);
        if (!status)
            status = rt_tensor_copy_into(target, source);
        rt_tensor_release(target);
        rt_tensor_release(source);
    }
    if (status) {
        rt_tensor_release(result);
        return status;
    }
    *out = rt_from_tensor(result);
    return NULL;
}

static int64_t mirror(int64_t i, int64_t size, pad_mode mode) {
    switch (mode) {
    case PAD_REFLECT:
        if (i < 0)
            i = -i;
        return i >= size ? 2 * (size - 1) - i : i;
    case PAD_REPLICATE:
        return i < 0 ? 0 : i >= size ? size - 1 : i;
    case PAD_CIRCULAR:
    case PAD_CONSTANT:
        break;
    }
    return i;
}

/* What a negative pad cuts off does not come back around. */
static int64_t wrapped(int64_t i, int64_t low, int64_t high, int64_t size) {
    int64_t cut = low < 0 ? -low : 0, left = size - cut + (high < 0 ? high : 0);
    if (left <= 0)
        return 0;
    i = (i - (low > 0 ? low : 0)) % left;
    return cut + (i < 0 ? i + left : i);
}

static ts_status check_pad(int64_t low, int64_t high, int64_t size, int dim, pad_mode mode) {
    if (mode == PAD_REFLECT && (low >= size || high >= size))
        return ts_raise("RuntimeError",
                        "Argument #4: Padding size should be less than the corresponding input "
                        "dimension, but got: padding (%lld, %lld) at dimension %d of input of size "
                        "%lld",
                        (long long)low, (long long)high, dim, (long long)size);
    if (mode == PAD_CIRCULAR && (low > size || high > size))
        return ts_raise("RuntimeError", "Padding value causes wrapping around more than once.");
    if (size == 0 && (low > 0 || high > 0))
        return ts_raise("RuntimeError", "expected a non-empty dimension %d to pad", dim);
    return NULL;
}

static ts_status pad_mirrored(const rt_tensor *t, const int64_t *pads, int count, pad_mode mode,
                              rt_value *out) {
    int64_t sizes[RT_MAX_RANK];
    int64_t *maps[RT_MAX_RANK] = {NULL};
    TS_TRY(pad_sizes(t, pads, count, sizes));
    ts_status status = NULL;
    rt_tensor *result = NULL;
    for (int d = 0; d < t->rank && !status; d++) {
        int at = 2 * (t->rank - 1 - d);
        if (at >= count)
            continue;
        status = check_pad(pads[at], pads[at + 1], t->sizes[d], d, mode);
        if (status)
            break;
        maps[d] = rt_alloc_array(sizes[d], sizeof *maps[d]);
        if (!maps[d])
            status = ts_no_memory();
        for (int64_t i = 0; !status && i < sizes[d]; i++)
            maps[d][i] = mode == PAD_CIRCULAR ? wrapped(i, pads[at], pads[at + 1], t->sizes[d])
                                              : mirror(i - pads[at], t->sizes[d], mode);
    }
    if (!status)
        status = rt_gather_maps(t, sizes, (const int64_t *const *)maps, &result);
    for (int d = 0; d < t->rank; d++)
        free(maps[d]);
    TS_TRY(status);
    *out = rt_from_tensor(result);
    return NULL;
}

KERNEL(constant_pad_nd) {
    rt_tensor *t;
    int64_t pads[RT_MAX_RANK];
    int count;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_as_ints(args[1], pads, &count));
    return pad_constant(t, pads, count, args[2], outs);
}

KERNEL(pad) {
    static const char *const names[] = {"constant", "reflect", "replicate", "circular"};
    rt_tensor *t;
    int64_t pads[RT_MAX_RANK];
    int count, mode = 0;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_as_ints(args[1], pads, &count));
    while (mode < 4 && !rt_str_value_is(args[2], names[mode]))
        mode++;
    if (mode == 4)
        return ts_raise("NotImplementedError", "Unrecognised padding mode");
    if (mode == PAD_CONSTANT)
        return pad_constant(t, pads, count, args[3], outs);
    if (count < 2 || count > 6 || count % 2 || t->rank < count / 2 + 1 || t->rank > count / 2 + 2)
        return ts_raise("NotImplementedError",
                        "Padding size %d is not supported for %dD input tensor.\nSupported combinations for non-constant padding:\n"
                        "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
                        "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
                        "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)",
                        count, t->rank);
    return pad_mirrored(t, pads, count, (pad_mode)mode, outs);
}

static ts_status pad_by(const rt_value *args, pad_mode mode, rt_value *out) {
    rt_tensor *t;
    int64_t pads[RT_MAX_RANK];
    int count;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_as_ints(args[1], pads, &count));
    return pad_mirrored(t, pads, count, mode, out);
}
KERNEL(reflection_pad) { return pad_by(args, PAD_REFLECT, outs); }
KERNEL(replication_pad) { return pad_by(args, PAD_REPLICATE, outs); }

/* runtime/ops/ref_index.c - advanced indexing: index, index_put, masks, nonzero. */
#include <stdlib.h>

#include "runtime/ops/index_ops.h"

ts_status rt_check_index(int64_t index, int64_t size, int dim, int64_t *out) {
    if (index < -size || index >= size)
        return ts_raise("IndexError", "index %lld is out of bounds for dimension %d with size %lld",
                        (long long)index, dim, (long long)size);
    *out = index < 0 ? index + size : index;
    return NULL;
}

ts_status rt_index_list(const rt_tensor *index, int64_t size, int dim, int64_t **out) {
    *out = NULL;
    if (index->rank > 1)
        return ts_raise("IndexError", "index is supposed to be a vector, but got %dD tensor",
                        index->rank);
    rt_dtype dtype = rt_dtype_of(index);
    if (!rt_dtype_is_integral(dtype))
        return ts_raise("RuntimeError", "expected an index of dtype int64 or int32, found %s",
                        rt_dtype_name(dtype));
    int64_t n = index->element_count;
    int64_t *list = rt_alloc_array(n, sizeof *list);
    if (!list)
        return ts_no_memory();
    rt_load_block(RT_WORK_INT, dtype, index->data,
                  index->rank ? index->strides[0] * rt_element_bytes(index) : 0, n, list);
    for (int64_t i = 0; i < n; i++) {
        ts_status status = rt_check_index(list[i], size, dim, &list[i]);
        if (status) {
            free(list);
            return status;
        }
    }
    *out = list;
    return NULL;
}

void rt_combine_element(rt_combine how, rt_dtype dtype, char *dst, const char *src) {
    if (how == RT_COMBINE_SET) {
        rt_copy_element(dst, src, (int64_t)rt_dtype_size(dtype));
        return;
    }
    switch (rt_work_of(dtype)) {
    case RT_WORK_FLOAT:
    case RT_WORK_DOUBLE: {
        double a = rt_load_double(dtype, dst), b = rt_load_double(dtype, src);
        double r = how == RT_COMBINE_ADD   ? a + b
                   : how == RT_COMBINE_MUL ? a * b
                   : how == RT_COMBINE_MAX ? (a != a || a > b ? a : b)
                                           : (a != a || a < b ? a : b);
        rt_store_double(dtype, dst, r);
        return;
    }
    case RT_WORK_INT: {
        int64_t a = rt_load_int(dtype, dst), b = rt_load_int(dtype, src);
        int64_t r = how == RT_COMBINE_ADD   ? (int64_t)((uint64_t)a + (uint64_t)b)
                    : how == RT_COMBINE_MUL ? (int64_t)((uint64_t)a * (uint64_t)b)
                    : how == RT_COMBINE_MAX ? (a > b ? a : b)
                                            : (a < b ? a : b);
        rt_store_int(dtype, dst, r);
        return;
    }
    case RT_WORK_COMPLEX: {
        rt_complex128 a = rt_load_complex(dtype, dst), b = rt_load_complex(dtype, src);
        rt_complex128 r = {a.re + b.re, a.im + b.im};
        if (how == RT_COMBINE_MUL)
            r = (rt_complex128){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
        rt_store_complex(dtype, dst, r);
        return;
    }
    }
}

void rt_combine_tensor(rt_combine how, rt_tensor *dst, const rt_tensor *src) {
    rt_dtype dtype = rt_dtype_of(dst);
    rt_loop loop;
    rt_loop_init(&loop, dst->sizes, dst->rank);
    rt_loop_add(&loop, dst);
    rt_loop_add(&loop, src);
    for (rt_loop_start(&loop); loop.is_running; rt_loop_next(&loop)) {
        int64_t to = loop.inner_strides[0], from = loop.inner_strides[1];
        if (how == RT_COMBINE_ADD && dtype == RT_float32) {
            for (int64_t i = 0; i < loop.inner_count; i++) {
                float a, b;
                memcpy(&a, loop.data[0] + i * to, sizeof a);
                memcpy(&b, loop.data[1] + i * from, sizeof b);
                a += b;
                memcpy(loop.data[0] + i * to, &a, sizeof a);
            }
            continue;
        }
        for (int64_t i = 0; i < loop.inner_count; i++)
            rt_combine_element(how, dtype, loop.data[0] + i * to, loop.data[1] + i * from);
    }
}

ts_status rt_fresh_copy(rt_value self, rt_tensor **out) {
    rt_tensor *t;
    *out = NULL;
    TS_TRY(rt_need_tensor(self, &t));
    return rt_tensor_clone(t, out);
}

static bool is_nonzero(rt_dtype dtype, const char *data) {
    switch (rt_work_of(dtype)) {
    case RT_WORK_INT:
        return rt_load_int(dtype, data) != 0;
    case RT_WORK_COMPLEX: {
        rt_complex128 c = rt_load_complex(dtype, data);
        return c.re != 0 || c.im != 0;
    }
    case RT_WORK_FLOAT:
    case RT_WORK_DOUBLE:
        break;
    }
    return rt_load_double(dtype, data) != 0;
}

ts_status rt_nonzero(const rt_tensor *t, int64_t **out, int64_t *out_count) {
    rt_dtype dtype = rt_dtype_of(t);
    rt_cursor c;
    int64_t count = 0, at = 0;
    *out = NULL;
    for (rt_cursor_start(&c, t); c.left > 0; rt_cursor_next(&c))
        count += is_nonzero(dtype, c.data);
    int64_t *list = rt_alloc_array(count, (size_t)(t->rank + 1) * sizeof *list);
    if (!list)
        return ts_no_memory();
    for (rt_cursor_start(&c, t); c.left > 0; rt_cursor_next(&c)) {
        if (!is_nonzero(dtype, c.data))
            continue;
        for (int d = 0; d < t->rank; d++)
            list[at++] = c.index[d];
    }
    *out = list;
    *out_count = count;
    return NULL;
}

KERNEL(nonzero) {
    rt_tensor *t, *result;
    int64_t *list, count;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_nonzero(t, &list, &count));
    ts_status status = rt_tensor_make(RT_int64, (int64_t[]){count, t->rank}, 2, &result);
    if (!status) {
        if (result->element_count)
            memcpy(result->data, list, (size_t)result->element_count * sizeof *list);
        outs[0] = rt_from_tensor(result);
    }
    free(list);
    return status;
}

/* One vector of coordinates for each dim (a 0-d tensor counts as 1-d). */
static ts_status coordinate_columns(const rt_tensor *t, rt_value *out) {
    int64_t *list, count;
    TS_TRY(rt_nonzero(t, &list, &count));
    int rank = t->rank ? t->rank : 1;
    ts_status status = rt_list_make((size_t)rank, out);
    for (int d = 0; d < rank && !status; d++) {
        rt_tensor *column;
        status = rt_tensor_make(RT_int64, &count, 1, &column);
        if (status)
            break;
        for (int64_t i = 0; i < count; i++)
            ((int64_t *)column->data)[i] = t->rank ? list[i * t->rank + d] : 0;
        status = rt_list_append(out->as.list, rt_from_tensor(column));
        rt_tensor_release(column);
    }
    free(list);
    if (status) {
        rt_release(*out);
        *out = rt_none();
    }
    return status;
}

KERNEL(nonzero_numpy) {
    rt_tensor *t;
    TS_TRY(rt_need_tensor(args[0], &t));
    return coordinate_columns(t, outs);
}

/* ---- plans: which elements an index list names ---- */

typedef struct index_plan {
    rt_tensor *indices[RT_MAX_RANK]; /* by dim of self, NULL: whole; owned */
    int64_t *offsets;                /* elements, one for each of the broadcast indices */
    int64_t count;
    int before;                 /* whole dims that come before the indexed ones */
    int64_t sizes[RT_MAX_RANK]; /* of the result */
    int rank;
    /* whole dims: sizes and strides in self, before and after */
    int64_t whole_sizes[RT_MAX_RANK], whole_strides[RT_MAX_RANK];
    int whole_rank;
} index_plan;

static void plan_deinit(index_plan *plan) {
    for (int d = 0; d < RT_MAX_RANK; d++)
        rt_tensor_release(plan->indices[d]);
    free(plan->offsets);
}

static ts_status plan_mask(index_plan *plan, const rt_tensor *self, const rt_tensor *mask,
                           int *dim) {
    if (*dim + mask->rank > self->rank)
        return ts_raise("IndexError", "too many indices for tensor of dimension %d", self->rank);
    for (int d = 0; d < mask->rank; d++)
        if (mask->sizes[d] != self->sizes[*dim + d])
            return ts_raise("IndexError",
                            "The shape of the mask at index %d does not match the shape of the "
                            "indexed tensor at index %d: %lld and %lld",
                            d, *dim + d, (long long)mask->sizes[d],
                            (long long)self->sizes[*dim + d]);
    rt_value columns;
    TS_TRY(coordinate_columns(mask, &columns));
    for (int d = 0; d < mask->rank; d++)
        plan->indices[(*dim)++] = rt_retain(columns.as.list->items[d]).as.tensor;
    rt_release(columns);
    return NULL;
}

static ts_status plan_lists(index_plan *plan, const rt_tensor *self, rt_value list) {
    const rt_value *items;
    size_t count;
    int dim = 0;
    rt_as_items(list, &items, &count);
    for (size_t i = 0; i < count; i++) {
        if (items[i].tag != RT_TAG_TENSOR) {
            if (dim++ >= self->rank)
                return ts_raise("IndexError", "too many indices for tensor of dimension %d",
                                self->rank);
            continue;
        }
        rt_tensor *index = items[i].as.tensor;
        rt_dtype dtype = rt_dtype_of(index);
        if (dtype == RT_bool || dtype == RT_uint8) {
            TS_TRY(plan_mask(plan, self, index, &dim));
        } else if (!rt_dtype_is_integral(dtype)) {
            return ts_raise("IndexError",
                            "tensors used as indices must be long, int, byte or bool tensors");
        } else if (dim >= self->rank) {
            return ts_raise("IndexError", "too many indices for tensor of dimension %d",
                            self->rank);
        } else {
            plan->indices[dim++] = rt_retain(items[i]).as.tensor;
        }
    }
    return NULL;
}

/* offsets += index * stride, the index broadcast over the plan's shape. */
static ts_status add_offsets(index_plan *plan, const rt_tensor *index, const int64_t *shape,
                             int rank, int64_t size, int64_t stride, int dim) {
    rt_tensor *expanded;
    TS_TRY(rt_tensor_expand(index, shape, rank, &expanded));
    rt_cursor c;
    int64_t at = 0;
    ts_status status = NULL;
    for (rt_cursor_start(&c, expanded); c.left > 0 && !status; rt_cursor_next(&c)) {
        int64_t i = 0;
        status = rt_check_index(rt_load_int(rt_dtype_of(index), c.data), size, dim, &i);
        plan->offsets[at++] += i * stride;
    }
    rt_tensor_release(expanded);
    return status;
}

static ts_status plan_make(index_plan *plan, const rt_tensor *self, rt_value list) {
    *plan = (index_plan){0};
    TS_TRY(plan_lists(plan, self, list));
    int64_t shape[RT_MAX_RANK];
    int shape_rank = 0, first = -1, last = -1, indexed = 0;
    for (int d = 0; d < self->rank; d++) {
        const rt_tensor *index = plan->indices[d];
        if (!index)
            continue;
        if (first < 0)
            first = d;
        last = d;
        indexed++;
        ts_status status =
            rt_broadcast(shape, shape_rank, index->sizes, index->rank, shape, &shape_rank);
        if (status) {
            ts_status_release(status);
            return ts_raise("IndexError", "shape mismatch: indexing tensors could not be broadcast "
                                          "together");
        }
    }
    if (indexed == 0)
        return ts_raise("IndexError", "at least one index must be given");
    if (!rt_element_count(shape, shape_rank, &plan->count))
        return ts_no_memory();
    plan->offsets = rt_alloc_array(plan->count, sizeof *plan->offsets);
    if (!plan->offsets)
        return ts_no_memory();
    for (int d = 0; d < self->rank; d++)
        if (plan->indices[d])
            TS_TRY(add_offsets(plan, plan->indices[d], shape, shape_rank, self->sizes[d],
                               self->strides[d], d));
    /* Indexed dims that stand together are replaced in place; else their result comes first. */
    bool is_adjacent = last - first + 1 == indexed;
    plan->before = is_adjacent ? first : 0;
    for (int d = 0; d < self->rank; d++) {
        if (plan->indices[d])
            continue;
        plan->whole_sizes[plan->whole_rank] = self->sizes[d];
        plan->whole_strides[plan->whole_rank++] = self->strides[d];
    }
    if (plan->whole_rank + shape_rank > RT_MAX_RANK)
        return ts_raise("RuntimeError", "indexing gives too many dimensions");
    for (int d = 0; d < plan->before; d++)
        plan->sizes[plan->rank++] = plan->whole_sizes[d];
    for (int d = 0; d < shape_rank; d++)
        plan->sizes[plan->rank++] = shape[d];
    for (int d = plan->before; d < plan->whole_rank; d++)
        plan->sizes[plan->rank++] = plan->whole_sizes[d];
    return NULL;
}

/* Visits each element of self that the plan names beside the elements of a dense tensor of the
 * result's shape (stride 0 for a single value). */
static void plan_walk(const index_plan *plan, const rt_tensor *self, char *dense,
                      int64_t dense_step, bool is_read, rt_combine how) {
    rt_dtype dtype = rt_dtype_of(self);
    int64_t size = rt_element_bytes(self), after_count = 1, before_count = 1, chunk = 1;
    int after = plan->whole_rank - plan->before;
    const int64_t *sizes = plan->whole_sizes + plan->before;
    const int64_t *strides = plan->whole_strides + plan->before;
    int outer = after;
    while (outer > 0 && (strides[outer - 1] == chunk || sizes[outer - 1] == 1))
        chunk *= sizes[--outer];
    for (int d = 0; d < after; d++)
        after_count *= sizes[d];
    for (int d = 0; d < plan->before; d++)
        before_count *= plan->whole_sizes[d];
    if (after_count == 0 || before_count == 0)
        return;
    bool is_block = outer == 0 && (is_read || (how == RT_COMBINE_SET && dense_step == size));
    int64_t index[RT_MAX_RANK] = {0};
    char *base = self->data;
    for (int64_t b = 0; b < before_count; b++) {
        for (int64_t i = 0; i < plan->count; i++) {
            char *at = base + plan->offsets[i] * size;
            if (is_block) {
                int64_t bytes = chunk * size;
                if (is_read)
                    rt_copy_element(dense, at, bytes);
                else
                    rt_copy_element(at, dense, bytes);
                dense += bytes;
                continue;
            }
            int64_t inner[RT_MAX_RANK] = {0};
            for (int64_t n = 0; n < after_count; n++) {
                if (is_read)
                    rt_copy_element(dense, at, size);
                else
                    rt_combine_element(how, dtype, at, dense);
                dense += dense_step;
                for (int d = after - 1; d >= 0; d--) {
                    at += strides[d] * size;
                    if (++inner[d] < sizes[d])
                        break;
                    at -= strides[d] * sizes[d] * size;
                    inner[d] = 0;
                }
            }
        }
        for (int d = plan->before - 1; d >= 0; d--) {
            base += plan->whole_strides[d] * size;
            if (++index[d] < plan->whole_sizes[d])
                break;
            base -= plan->whole_strides[d] * plan->whole_sizes[d] * size;
            index[d] = 0;
        }
    }
}

static bool has_no_index(rt_value list) {
    const rt_value *items;
    size_t count;
    rt_as_items(list, &items, &count);
    for (size_t i = 0; i < count; i++)
        if (items[i].tag == RT_TAG_TENSOR)
            return false;
    return true;
}

static ts_status take_by(const rt_tensor *self, rt_value indices, rt_value *outs) {
    rt_tensor *result;
    index_plan plan;
    if (has_no_index(indices)) {
        TS_TRY(rt_tensor_alias(self, 0, self->sizes, self->strides, self->rank, &result));
        outs[0] = rt_from_tensor(result);
        return NULL;
    }
    ts_status status = plan_make(&plan, self, indices);
    if (!status)
        status = rt_tensor_make(rt_dtype_of(self), plan.sizes, plan.rank, &result);
    if (!status) {
        if (result->element_count)
            plan_walk(&plan, self, result->data, rt_element_bytes(self), true, RT_COMBINE_SET);
        outs[0] = rt_from_tensor(result);
    }
    plan_deinit(&plan);
    return status;
}

KERNEL(index) {
    rt_tensor *self, *view;
    rt_value list;
    TS_TRY(rt_need_tensor(args[0], &self));
    if (!rt_has_zero_dim_index(args[1], false))
        return take_by(self, args[1], outs);
    TS_TRY(rt_index_view(self, args[1], false, &view, &list));
    ts_status status = take_by(view, list, outs);
    rt_tensor_release(view);
    rt_release(list);
    return status;
}

static ts_status put_at(rt_tensor *self, rt_value indices, rt_value values_arg, bool accumulate) {
    rt_tensor *values, *cast = NULL, *expanded = NULL, *dense = NULL;
    index_plan plan = {0};
    TS_TRY(rt_need_tensor(values_arg, &values));
    TS_TRY(rt_check_writable(self));
    if (rt_has_zero_dim_index(indices, false)) {
        rt_tensor *view;
        rt_value list;
        TS_TRY(rt_index_view(self, indices, false, &view, &list));
        ts_status status = put_at(view, list, values_arg, accumulate);
        rt_tensor_release(view);
        rt_release(list);
        return status;
    }
    if (rt_dtype_of(values) != rt_dtype_of(self) && values->rank > 0)
        return ts_raise("RuntimeError",
                        "Index put requires the source and destination dtypes "
                        "match, got %s for the destination and %s for the source.",
                        rt_dtype_message_name(rt_dtype_of(self)),
                        rt_dtype_message_name(rt_dtype_of(values)));
    ts_status status = NULL;
    TS_TRY_OR(rt_tensor_cast(values, rt_dtype_of(self), false, &cast), done);
    if (has_no_index(indices)) {
        if (accumulate) {
            TS_TRY_OR(rt_tensor_expand(cast, self->sizes, self->rank, &expanded), done);
            rt_combine_tensor(RT_COMBINE_ADD, self, expanded);
        } else {
            status = rt_tensor_copy_into(self, cast);
        }
        goto done;
    }
    TS_TRY_OR(plan_make(&plan, self, indices), done);
    if (cast->element_count == 1) {
        plan_walk(&plan, self, cast->data, 0, false, accumulate ? RT_COMBINE_ADD : RT_COMBINE_SET);
        goto done;
    }
    /* leading dims of size 1 of the values go */
    while (cast->rank > plan.rank && cast->sizes[0] == 1) {
        rt_tensor *less;
        TS_TRY_OR(
            rt_tensor_alias(cast, 0, cast->sizes + 1, cast->strides + 1, cast->rank - 1, &less),
            done);
        rt_tensor_release(cast);
        cast = less;
    }
    status = rt_tensor_expand(cast, plan.sizes, plan.rank, &expanded);
    if (status) {
        ts_status_release(status);
        status = ts_raise("RuntimeError", "shape mismatch: value tensor cannot be broadcast to "
                                          "indexing result");
        goto done;
    }
    TS_TRY_OR(rt_tensor_contiguous(expanded, &dense), done);
    if (dense->element_count)
        plan_walk(&plan, self, dense->data, rt_element_bytes(self), false,
                  accumulate ? RT_COMBINE_ADD : RT_COMBINE_SET);
done:
    plan_deinit(&plan);
    rt_tensor_release(cast);
    rt_tensor_release(expanded);
    rt_tensor_release(dense);
    return status;
}

KERNEL(index_put) {
    rt_tensor *result;
    TS_TRY(rt_fresh_copy(args[0], &result));
    return rt_give(put_at(result, args[1], args[2], args[3].as.i != 0), result, outs);
}

KERNEL(index_put_) {
    rt_tensor *self;
    TS_TRY(rt_need_tensor(args[0], &self));
    TS_TRY(put_at(self, args[1], args[2], args[3].as.i != 0));
    outs[0] = rt_retain(args[0]);
    return NULL;
}

/* ---- masks ---- */

static ts_status broadcast_pair(const rt_tensor *a, const rt_tensor *b, rt_tensor **out_a,
                                rt_tensor **out_b) {
    int64_t sizes[RT_MAX_RANK];
    int rank;
    *out_a = *out_b = NULL;
    TS_TRY(rt_broadcast(a->sizes, a->rank, b->sizes, b->rank, sizes, &rank));
    TS_TRY(rt_tensor_expand(a, sizes, rank, out_a));
    ts_status status = rt_tensor_expand(b, sizes, rank, out_b);
    if (status) {
        rt_tensor_release(*out_a);
        *out_a = NULL;
    }
    return status;
}

KERNEL(masked_select) {
    rt_tensor *self, *mask, *a, *b, *result;
    TS_TRY(rt_need_tensor(args[0], &self));
    TS_TRY(rt_need_tensor(args[1], &mask));
    if (mask->dtype != RT_bool)
        return ts_raise("RuntimeError", "masked_select: expected BoolTensor for mask");
    TS_TRY(broadcast_pair(self, mask, &a, &b));
    int64_t count = 0, size = rt_element_bytes(self);
    rt_cursor at_value, at_mask;
    for (rt_cursor_start(&at_mask, b); at_mask.left > 0; rt_cursor_next(&at_mask))
        count += *at_mask.data != 0;
    ts_status status = rt_tensor_make(rt_dtype_of(self), &count, 1, &result);
    if (!status) {
        char *out = result->data;
        rt_cursor_start(&at_value, a);
        for (rt_cursor_start(&at_mask, b); at_mask.left > 0; rt_cursor_next(&at_mask)) {
            if (*at_mask.data) {
                rt_copy_element(out, at_value.data, size);
                out += size;
            }
            rt_cursor_next(&at_value);
        }
        outs[0] = rt_from_tensor(result);
    }
    rt_tensor_release(a);
    rt_tensor_release(b);
    return status;
}

static ts_status fill_masked(rt_tensor *self, rt_value mask_arg, rt_value value) {
    rt_tensor *mask, *expanded, *element;
    TS_TRY(rt_need_tensor(mask_arg, &mask));
    TS_TRY(rt_check_writable(self));
    if (mask->dtype != RT_bool)
        return ts_raise("RuntimeError",
                        "masked_fill_ only supports boolean masks, but got mask with dtype %s",
                        rt_dtype_message_name(rt_dtype_of(mask)));
    if (value.tag == RT_TAG_TENSOR) {
        if (value.as.tensor->rank > 0)
            return ts_raise("RuntimeError",
                            "masked_fill_ only supports a 0-dimensional value tensor, but got "
                            "tensor with %d dimension(s).",
                            value.as.tensor->rank);
        TS_TRY(rt_check_element_fits(value.as.tensor, rt_dtype_of(self)));
        TS_TRY(rt_tensor_cast(value.as.tensor, rt_dtype_of(self), false, &element));
    } else {
        TS_TRY(rt_tensor_from_number(value, rt_dtype_of(self), &element));
    }
    ts_status status = rt_tensor_expand(mask, self->sizes, self->rank, &expanded);
    if (!status) {
        rt_loop loop;
        int64_t size = rt_element_bytes(self);
        rt_loop_init(&loop, self->sizes, self->rank);
        rt_loop_add(&loop, self);
        rt_loop_add(&loop, expanded);
        for (rt_loop_start(&loop); loop.is_running; rt_loop_next(&loop))
            for (int64_t i = 0; i < loop.inner_count; i++)
                if (loop.data[1][i * loop.inner_strides[1]])
                    rt_copy_element(loop.data[0] + i * loop.inner_strides[0], element->data, size);
        rt_tensor_release(expanded);
    }
    rt_tensor_release(element);
    return status;
}

KERNEL(masked_fill_) {
    rt_tensor *self;
    TS_TRY(rt_need_tensor(args[0], &self));
    TS_TRY(fill_masked(self, args[1], args[2]));
    outs[0] = rt_retain(args[0]);
    return NULL;
}

static ts_status scatter_masked(rt_tensor *self, const rt_tensor *mask, const rt_tensor *source) {
    rt_tensor *expanded;
    if (mask->dtype != RT_bool)
        return ts_raise("RuntimeError",
                        "masked_scatter_ only supports boolean masks, but got mask "
                        "with dtype %s",
                        rt_dtype_message_name(rt_dtype_of(mask)));
    if (source->dtype != self->dtype)
        return ts_raise("RuntimeError",
                        "masked_scatter: expected self and source to have same "
                        "dtypes but got %s and %s",
                        rt_dtype_message_name(rt_dtype_of(self)),
                        rt_dtype_message_name(rt_dtype_of(source)));
    TS_TRY(rt_tensor_expand(mask, self->sizes, self->rank, &expanded));
    rt_cursor to, at, from;
    ts_status status = NULL;
    rt_cursor_start(&to, self);
    rt_cursor_start(&from, source);
    for (rt_cursor_start(&at, expanded); at.left > 0; rt_cursor_next(&at)) {
        if (*at.data) {
            if (from.left <= 0) {
                status = ts_raise("RuntimeError", "Number of elements of source < number of ones "
                                                  "in mask");
                break;
            }
            rt_copy_element(to.data, from.data, rt_element_bytes(self));
            rt_cursor_next(&from);
        }
        rt_cursor_next(&to);
    }
    rt_tensor_release(expanded);
    return status;
}

KERNEL(masked_scatter) {
    rt_tensor *self, *mask, *source, *a, *b, *result = NULL;
    TS_TRY(rt_need_tensor(args[0], &self));
    TS_TRY(rt_need_tensor(args[1], &mask));
    TS_TRY(rt_need_tensor(args[2], &source));
    TS_TRY(broadcast_pair(self, mask, &a, &b));
    ts_status status = rt_tensor_clone(a, &result);
    if (!status)
        status = scatter_masked(result, b, source);
    rt_tensor_release(a);
    rt_tensor_release(b);
    return rt_give(status, result, outs);
}

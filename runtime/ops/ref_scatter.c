/* runtime/ops/ref_scatter.c - gather, scatter, take and put: an index for each element. */
#include "runtime/ops/index_ops.h"

/* ---- gather and scatter ---- */

typedef struct lanes {
    rt_loop loop;
    int64_t step, size; /* of self along dim: bytes, elements */
    int dim;
    bool wraps; /* negative indices count from the end */
} lanes;

/* Loops over index beside self (its dim held still) and a tensor of the index's extent. */
static ts_status lanes_start(lanes *l, const rt_tensor *self, int64_t dim_arg,
                             const rt_tensor *index, const rt_tensor *other, bool is_gather) {
    TS_TRY(rt_wrap_dim(dim_arg, self->rank, &l->dim));
    if (index->element_count && index->dtype != RT_int64 && index->dtype != RT_int32)
        return ts_raise("RuntimeError", "%s(): Expected dtype int32/int64 for index",
                        is_gather ? "gather" : "scatter");
    int rank = index->rank;
    /* 0-d tensors count as vectors of one element */
    if ((self->rank ? self->rank : 1) != (rank ? rank : 1) && index->element_count)
        return ts_raise("RuntimeError",
                        "Index tensor must have the same number of dimensions as "
                        "%s tensor",
                        is_gather ? "input" : "self");
    l->size = self->rank ? self->sizes[l->dim] : 1;
    l->step = (self->rank ? self->strides[l->dim] : 1) * rt_element_bytes(self);
    int64_t self_strides[RT_MAX_RANK], other_strides[RT_MAX_RANK];
    for (int d = 0; d < rank && index->element_count; d++) {
        if (self->rank && d != l->dim && index->sizes[d] > self->sizes[d])
            return ts_raise("RuntimeError",
                            "Size does not match at dimension %d expected index to be no larger "
                            "than self apart from dimension %d",
                            d, l->dim);
        if (!is_gather && other->rank && index->sizes[d] > other->sizes[d])
            return ts_raise("RuntimeError",
                            "Expected index to be no larger than src in dimension %d", d);
        self_strides[d] = self->rank && d != l->dim ? self->strides[d] * rt_element_bytes(self) : 0;
        other_strides[d] = other->rank ? other->strides[d] * rt_element_bytes(other) : 0;
    }
    rt_loop_init(&l->loop, index->sizes, rank);
    l->loop.keep_order = true; /* repeated indices: the last one wins */
    if (index->element_count == 0) {
        l->loop.sizes[0] = 0;
        l->loop.rank = 1;
        self_strides[0] = other_strides[0] = 0;
    }
    rt_loop_add_raw(&l->loop, self->data, self_strides);
    rt_loop_add_raw(&l->loop, other->data, other_strides);
    int64_t index_strides[RT_MAX_RANK] = {0};
    for (int d = 0; d < rank; d++)
        index_strides[d] = index->strides[d] * rt_element_bytes(index);
    rt_loop_add_raw(&l->loop, index->data, index_strides);
    rt_loop_start(&l->loop);
    return NULL;
}

static ts_status lane_index(const lanes *l, rt_dtype dtype, int64_t i, int64_t *out) {
    int64_t index = rt_load_int(dtype, l->loop.data[2] + i * l->loop.inner_strides[2]);
    if (index < 0 && l->wraps)
        index += l->size;
    if (index < 0 || index >= l->size)
        return ts_raise("RuntimeError",
                        "index %lld is out of bounds for dimension %d with size %lld",
                        (long long)index, l->dim, (long long)l->size);
    *out = index;
    return NULL;
}

static ts_status gather_into(rt_tensor *result, const rt_tensor *self, int64_t dim,
                             const rt_tensor *index, bool wraps) {
    lanes l = {.wraps = wraps};
    int64_t size = rt_element_bytes(self), at = 0;
    TS_TRY(lanes_start(&l, self, dim, index, result, true));
    for (; l.loop.is_running; rt_loop_next(&l.loop))
        for (int64_t i = 0; i < l.loop.inner_count; i++) {
            TS_TRY(lane_index(&l, rt_dtype_of(index), i, &at));
            rt_copy_element(l.loop.data[1] + i * l.loop.inner_strides[1],
                            l.loop.data[0] + i * l.loop.inner_strides[0] + at * l.step, size);
        }
    return NULL;
}

KERNEL(gather) {
    rt_tensor *self, *index, *result;
    TS_TRY(rt_need_tensor(args[0], &self));
    TS_TRY(rt_need_tensor(args[2], &index));
    TS_TRY(rt_tensor_make(rt_dtype_of(self), index->sizes, index->rank, &result));
    return rt_give(gather_into(result, self, args[1].as.i, index, false), result, outs);
}

KERNEL(take_along_dim) {
    rt_tensor *self, *index, *flat_self = NULL, *flat_index = NULL, *result = NULL;
    TS_TRY(rt_need_tensor(args[0], &self));
    TS_TRY(rt_need_tensor(args[1], &index));
    ts_status status = NULL;
    if (rt_is_none(args[2])) { /* both flattened */
        rt_tensor *a = NULL, *b = NULL;
        status = rt_tensor_contiguous(self, &a);
        if (!status)
            status = rt_tensor_contiguous(index, &b);
        if (!status)
            status = rt_tensor_alias(a, 0, &a->element_count, (int64_t[]){1}, 1, &flat_self);
        if (!status)
            status = rt_tensor_alias(b, 0, &b->element_count, (int64_t[]){1}, 1, &flat_index);
        rt_tensor_release(a);
        rt_tensor_release(b);
        if (!status)
            status = rt_tensor_make(rt_dtype_of(self), flat_index->sizes, 1, &result);
        if (!status)
            status = gather_into(result, flat_self, 0, flat_index, false);
    } else {
        /* the other dims broadcast */
        int dim;
        int64_t a[RT_MAX_RANK], b[RT_MAX_RANK];
        if (self->rank != index->rank)
            return ts_raise("RuntimeError",
                            "torch.take_along_dim(): input and indices should have "
                            "the same number of dimensions, but got %d dimensions "
                            "for input, and %d dimensions for indices",
                            self->rank, index->rank);
        TS_TRY(rt_wrap_dim(args[2].as.i, self->rank, &dim));
        for (int d = 0; d < self->rank; d++) {
            a[d] = self->sizes[d];
            b[d] = index->sizes[d];
            if (d == dim)
                continue;
            if (a[d] != b[d] && a[d] != 1 && b[d] != 1)
                return ts_raise("RuntimeError",
                                "The size of tensor a (%lld) must match the size "
                                "of tensor b (%lld) at non-singleton dimension %d",
                                (long long)a[d], (long long)b[d], d);
            a[d] = b[d] = a[d] == 1 ? b[d] : a[d];
        }
        status = rt_tensor_expand(self, a, self->rank, &flat_self);
        if (!status)
            status = rt_tensor_expand(index, b, self->rank, &flat_index);
        if (!status)
            status = rt_tensor_make(rt_dtype_of(self), b, self->rank, &result);
        if (!status)
            status = gather_into(result, flat_self, args[2].as.i, flat_index, true);
    }
    rt_tensor_release(flat_self);
    rt_tensor_release(flat_index);
    return rt_give(status, result, outs);
}

ts_status rt_scatter_into(rt_tensor *self, int64_t dim, const rt_tensor *index,
                              const rt_tensor *src, rt_combine how) {
    lanes l = {.wraps = false};
    int64_t at = 0;
    rt_dtype dtype = rt_dtype_of(self);
    TS_TRY(rt_check_writable(self));
    if (src->dtype != self->dtype)
        return ts_raise("RuntimeError", "scatter(): Expected self.dtype to be equal to src.dtype");
    TS_TRY(lanes_start(&l, self, dim, index, src, false));
    for (; l.loop.is_running; rt_loop_next(&l.loop))
        for (int64_t i = 0; i < l.loop.inner_count; i++) {
            TS_TRY(lane_index(&l, rt_dtype_of(index), i, &at));
            rt_combine_element(how, dtype,
                               l.loop.data[0] + i * l.loop.inner_strides[0] + at * l.step,
                               l.loop.data[1] + i * l.loop.inner_strides[1]);
        }
    return NULL;
}

/* src is a tensor or a number. */
static ts_status scatter_value(rt_tensor *self, int64_t dim, rt_value index_arg, rt_value src,
                               rt_combine how) {
    rt_tensor *index, *element;
    TS_TRY(rt_need_tensor(index_arg, &index));
    if (src.tag == RT_TAG_TENSOR)
        return rt_scatter_into(self, dim, index, src.as.tensor, how);
    TS_TRY(rt_tensor_from_number(src, rt_dtype_of(self), &element));
    ts_status status = rt_scatter_into(self, dim, index, element, how);
    rt_tensor_release(element);
    return status;
}

static ts_status combine_of(rt_value reduce, rt_combine *out) {
    if (rt_str_value_is(reduce, "add"))
        *out = RT_COMBINE_ADD;
    else if (rt_str_value_is(reduce, "multiply"))
        *out = RT_COMBINE_MUL;
    else
        return ts_raise("RuntimeError", "reduce argument must be either add or multiply.");
    return NULL;
}

static ts_status scatter_kernel(const rt_value *args, rt_combine how, bool in_place,
                                rt_value *outs) {
    rt_tensor *self;
    if (in_place) {
        TS_TRY(rt_need_tensor(args[0], &self));
        TS_TRY(scatter_value(self, args[1].as.i, args[2], args[3], how));
        outs[0] = rt_retain(args[0]);
        return NULL;
    }
    TS_TRY(rt_fresh_copy(args[0], &self));
    return rt_give(scatter_value(self, args[1].as.i, args[2], args[3], how), self, outs);
}

KERNEL(scatter) { return scatter_kernel(args, RT_COMBINE_SET, false, outs); }
KERNEL(scatter_) { return scatter_kernel(args, RT_COMBINE_SET, true, outs); }
KERNEL(scatter_add) { return scatter_kernel(args, RT_COMBINE_ADD, false, outs); }
KERNEL(scatter_add_) { return scatter_kernel(args, RT_COMBINE_ADD, true, outs); }
KERNEL(scatter_by) {
    rt_combine how = RT_COMBINE_SET;
    TS_TRY(combine_of(args[4], &how));
    return scatter_kernel(args, how, false, outs);
}
KERNEL(scatter_by_) {
    rt_combine how = RT_COMBINE_SET;
    TS_TRY(combine_of(args[4], &how));
    return scatter_kernel(args, how, true, outs);
}

/* ---- take and put: indices into the flattened tensor ---- */

static char *flat_element(const rt_tensor *t, int64_t at) {
    int64_t offset = 0;
    for (int d = t->rank - 1; d >= 0; d--) {
        offset += at % t->sizes[d] * t->strides[d];
        at /= t->sizes[d];
    }
    return (char *)t->data + offset * rt_element_bytes(t);
}

static ts_status flat_index(int64_t index, const rt_tensor *t, int64_t *out) {
    int64_t count = t->element_count;
    if (index < -count || index >= count)
        return ts_raise("IndexError",
                        "out of range: tried to access index %lld on a tensor of "
                        "%lld elements.",
                        (long long)index, (long long)count);
    *out = index < 0 ? index + count : index;
    return NULL;
}

KERNEL(take) {
    rt_tensor *self, *index, *result;
    TS_TRY(rt_need_tensor(args[0], &self));
    TS_TRY(rt_need_tensor(args[1], &index));
    if (index->dtype != RT_int64)
        return ts_raise("RuntimeError", "take(): Expected a long tensor for index, but got %s",
                        rt_dtype_message_name(rt_dtype_of(index)));
    TS_TRY(rt_tensor_make(rt_dtype_of(self), index->sizes, index->rank, &result));
    rt_cursor c;
    char *out = result->data;
    ts_status status = NULL;
    for (rt_cursor_start(&c, index); c.left > 0; rt_cursor_next(&c)) {
        int64_t at = 0;
        status = flat_index(rt_load_int(RT_int64, c.data), self, &at);
        if (status)
            break;
        rt_copy_element(out, flat_element(self, at), rt_element_bytes(self));
        out += rt_element_bytes(self);
    }
    return rt_give(status, result, outs);
}

static ts_status put_into(rt_tensor *self, const rt_value *args) {
    rt_tensor *index, *source;
    TS_TRY(rt_need_tensor(args[1], &index));
    TS_TRY(rt_need_tensor(args[2], &source));
    TS_TRY(rt_check_writable(self));
    if (index->element_count != source->element_count || source->dtype != self->dtype)
        return ts_raise("RuntimeError", "put_(): Expected source and index to have the same number "
                                        "of elements, and source and self the same dtype");
    rt_cursor at_index, at_source;
    rt_cursor_start(&at_source, source);
    for (rt_cursor_start(&at_index, index); at_index.left > 0; rt_cursor_next(&at_index)) {
        int64_t at = 0;
        TS_TRY(flat_index(rt_load_int(rt_dtype_of(index), at_index.data), self, &at));
        rt_combine_element(args[3].as.i ? RT_COMBINE_ADD : RT_COMBINE_SET, rt_dtype_of(self),
                           flat_element(self, at), at_source.data);
        rt_cursor_next(&at_source);
    }
    return NULL;
}

KERNEL(put) {
    rt_tensor *result;
    TS_TRY(rt_fresh_copy(args[0], &result));
    return rt_give(put_into(result, args), result, outs);
}
KERNEL(put_) {
    rt_tensor *self;
    TS_TRY(rt_need_tensor(args[0], &self));
    TS_TRY(put_into(self, args));
    outs[0] = rt_retain(args[0]);
    return NULL;
}

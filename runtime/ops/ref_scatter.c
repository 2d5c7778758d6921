/* runtime/ops/ref_scatter.c - gather, scatter and the index_* family: one dim is indexed. */
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/index_ops.h"

/* ---- gather and scatter: an index for each element ---- */

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

static ts_status scatter_into(rt_tensor *self, int64_t dim, const rt_tensor *index,
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
        return scatter_into(self, dim, index, src.as.tensor, how);
    TS_TRY(rt_tensor_from_number(src, rt_dtype_of(self), &element));
    ts_status status = scatter_into(self, dim, index, element, how);
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

/* ---- reductions into a tensor ---- */

typedef enum into_kind { INTO_SUM, INTO_PROD, INTO_MEAN, INTO_AMAX, INTO_AMIN } into_kind;

static ts_status into_of(rt_value reduce, into_kind *out) {
    static const char *const names[] = {"sum", "prod", "mean", "amax", "amin"};
    for (int i = 0; i < 5; i++)
        if (rt_str_value_is(reduce, names[i])) {
            *out = (into_kind)i;
            return NULL;
        }
    return ts_raise("RuntimeError", "reduce argument must be either sum, prod, mean, amax or amin");
}

static rt_combine combine_for(into_kind kind) {
    switch (kind) {
    case INTO_SUM:
    case INTO_MEAN:
        return RT_COMBINE_ADD;
    case INTO_PROD:
        return RT_COMBINE_MUL;
    case INTO_AMAX:
        return RT_COMBINE_MAX;
    case INTO_AMIN:
        return RT_COMBINE_MIN;
    }
    return RT_COMBINE_SET;
}

/* What a reduction starts from where self is not included. */
static rt_value neutral(into_kind kind, rt_dtype dtype) {
    bool is_int = rt_dtype_is_integral(dtype) || dtype == RT_bool;
    int bits = is_int ? (int)rt_dtype_size(dtype) * 8 : 64;
    int64_t high = dtype == RT_bool    ? 1
                   : dtype == RT_uint8 ? 255
                   : bits == 64        ? INT64_MAX
                                       : ((int64_t)1 << (bits - 1)) - 1;
    int64_t low = dtype == RT_bool || dtype == RT_uint8 ? 0 : -high - 1;
    switch (kind) {
    case INTO_SUM:
    case INTO_MEAN:
        return rt_int(0);
    case INTO_PROD:
        return rt_int(1);
    case INTO_AMAX:
        return is_int ? rt_int(low) : rt_float(-(double)INFINITY);
    case INTO_AMIN:
        return is_int ? rt_int(high) : rt_float((double)INFINITY);
    }
    return rt_int(0);
}

static void divide_by_counts(rt_tensor *self, const rt_tensor *counts) {
    rt_dtype dtype = rt_dtype_of(self);
    rt_loop loop;
    rt_loop_init(&loop, self->sizes, self->rank);
    rt_loop_add(&loop, self);
    rt_loop_add(&loop, counts);
    for (rt_loop_start(&loop); loop.is_running; rt_loop_next(&loop))
        for (int64_t i = 0; i < loop.inner_count; i++) {
            char *at = loop.data[0] + i * loop.inner_strides[0];
            int64_t n = rt_load_int(RT_int64, loop.data[1] + i * loop.inner_strides[1]);
            if (n <= 1)
                continue;
            if (rt_dtype_is_complex(dtype)) {
                rt_complex128 c = rt_load_complex(dtype, at);
                rt_store_complex(dtype, at, (rt_complex128){c.re / (double)n, c.im / (double)n});
            } else if (rt_dtype_is_float(dtype)) {
                rt_store_double(dtype, at, rt_load_double(dtype, at) / (double)n);
            } else {
                int64_t x = rt_load_int(dtype, at), q = x / n;
                rt_store_int(dtype, at, q - (x % n != 0 && x < 0));
            }
        }
}

static ts_status scatter_reduce_into(rt_tensor *self, int64_t dim, const rt_tensor *index,
                                     const rt_tensor *src, into_kind kind, bool include_self) {
    rt_tensor *element = NULL, *counts = NULL, *one = NULL;
    ts_status status = NULL;
    if (!include_self) {
        TS_TRY_OR(
            rt_tensor_from_number(neutral(kind, rt_dtype_of(self)), rt_dtype_of(self), &element),
            done);
        TS_TRY_OR(scatter_into(self, dim, index, element, RT_COMBINE_SET), done);
    }
    TS_TRY_OR(scatter_into(self, dim, index, src, combine_for(kind)), done);
    if (kind == INTO_MEAN) {
        TS_TRY_OR(rt_tensor_make(RT_int64, self->sizes, self->rank, &counts), done);
        TS_TRY_OR(rt_fill_number(counts, rt_int(include_self)), done);
        TS_TRY_OR(rt_tensor_from_number(rt_int(1), RT_int64, &one), done);
        TS_TRY_OR(scatter_into(counts, dim, index, one, RT_COMBINE_ADD), done);
        divide_by_counts(self, counts);
    }
done:
    rt_tensor_release(element);
    rt_tensor_release(counts);
    rt_tensor_release(one);
    return status;
}

static ts_status scatter_reduce(rt_tensor *self, const rt_value *args) {
    rt_tensor *index, *src;
    into_kind kind = INTO_SUM;
    TS_TRY(rt_need_tensor(args[2], &index));
    TS_TRY(rt_need_tensor(args[3], &src));
    TS_TRY(into_of(args[4], &kind));
    return scatter_reduce_into(self, args[1].as.i, index, src, kind, args[5].as.i != 0);
}

KERNEL(scatter_reduce) {
    rt_tensor *result;
    TS_TRY(rt_fresh_copy(args[0], &result));
    return rt_give(scatter_reduce(result, args), result, outs);
}

KERNEL(scatter_reduce_) {
    rt_tensor *self;
    TS_TRY(rt_need_tensor(args[0], &self));
    TS_TRY(scatter_reduce(self, args));
    outs[0] = rt_retain(args[0]);
    return NULL;
}

/* ---- index_*: one index for each slice ---- */

/* The slices of self along dim; a 0-d tensor is its own single slice. */
static ts_status slice_of(const rt_tensor *t, int dim, int64_t at, rt_tensor **out) {
    if (t->rank == 0)
        return rt_tensor_alias(t, 0, NULL, NULL, 0, out);
    return rt_selected(t, dim, at, out);
}

KERNEL(index_select) {
    rt_tensor *self, *index, *result;
    int dim;
    int64_t *list;
    TS_TRY(rt_need_tensor(args[0], &self));
    TS_TRY(rt_need_tensor(args[2], &index));
    TS_TRY(rt_wrap_dim(args[1].as.i, self->rank, &dim));
    TS_TRY(rt_index_list(index, self->rank ? self->sizes[dim] : 1, dim, &list));
    ts_status status = NULL;
    if (self->rank == 0) {
        status = rt_tensor_clone(self, &result);
    } else {
        const int64_t *maps[RT_MAX_RANK] = {NULL};
        int64_t sizes[RT_MAX_RANK];
        for (int d = 0; d < self->rank; d++)
            sizes[d] = self->sizes[d];
        sizes[dim] = index->element_count;
        maps[dim] = list;
        status = rt_gather_maps(self, sizes, maps, &result);
    }
    free(list);
    TS_TRY(status);
    outs[0] = rt_from_tensor(result);
    return NULL;
}

typedef enum slice_action { SLICE_COPY, SLICE_COMBINE } slice_action;

/* source's slices go to the indexed slices of self. */
static ts_status write_slices(rt_tensor *self, rt_value dim_arg, rt_value index_arg,
                              rt_value source_arg, slice_action action, rt_combine how) {
    rt_tensor *index, *source;
    int dim;
    int64_t *list;
    TS_TRY(rt_need_tensor(index_arg, &index));
    TS_TRY(rt_need_tensor(source_arg, &source));
    TS_TRY(rt_check_writable(self));
    TS_TRY(rt_wrap_dim(dim_arg.as.i, self->rank, &dim));
    if (source->dtype != self->dtype)
        return ts_raise("RuntimeError",
                        "index: self and source expected to have the same dtype, "
                        "but got (self) %s and (source) %s",
                        rt_dtype_message_name(rt_dtype_of(self)),
                        rt_dtype_message_name(rt_dtype_of(source)));
    if (source->rank && dim < source->rank && source->sizes[dim] != index->element_count)
        return ts_raise("IndexError",
                        "Number of indices (%lld) should be equal to source.size(dim)"
                        ": (%lld), for dim: %d",
                        (long long)index->element_count, (long long)source->sizes[dim], dim);
    TS_TRY(rt_index_list(index, self->rank ? self->sizes[dim] : 1, dim, &list));
    ts_status status = NULL;
    for (int64_t i = 0; i < index->element_count && !status; i++) {
        rt_tensor *to = NULL, *from = NULL;
        status = slice_of(self, dim, list[i], &to);
        if (!status)
            status = slice_of(source, dim, i, &from);
        if (!status) {
            bool is_same = to->rank == from->rank;
            for (int d = 0; is_same && d < to->rank; d++)
                is_same = to->sizes[d] == from->sizes[d];
            if (!is_same)
                status = ts_raise("RuntimeError", "the shape of source does not fit the indexed "
                                                  "slices of self");
            else if (action == SLICE_COPY)
                status = rt_tensor_copy_into(to, from);
            else
                rt_combine_tensor(how, to, from);
        }
        rt_tensor_release(to);
        rt_tensor_release(from);
    }
    free(list);
    return status;
}

static ts_status index_copy(rt_tensor *self, const rt_value *args) {
    return write_slices(self, args[1], args[2], args[3], SLICE_COPY, RT_COMBINE_SET);
}

KERNEL(index_copy) {
    rt_tensor *result;
    TS_TRY(rt_fresh_copy(args[0], &result));
    return rt_give(index_copy(result, args), result, outs);
}
KERNEL(index_copy_) {
    rt_tensor *self;
    TS_TRY(rt_need_tensor(args[0], &self));
    TS_TRY(index_copy(self, args));
    outs[0] = rt_retain(args[0]);
    return NULL;
}

ts_status rt_ref_mul(rt_context *context, const rt_value *args, rt_value *outs);

static ts_status index_add(rt_context *context, rt_tensor *self, const rt_value *args) {
    bool is_one = args[4].tag != RT_TAG_COMPLEX && rt_as_double(args[4]) == 1;
    if (is_one)
        return write_slices(self, args[1], args[2], args[3], SLICE_COMBINE, RT_COMBINE_ADD);
    rt_value scaled, cast;
    TS_TRY(rt_ref_mul(context, (rt_value[]){args[3], args[4]}, &scaled));
    rt_tensor *same;
    ts_status status =
        rt_tensor_cast(scaled.as.tensor, rt_dtype_of(args[3].as.tensor), false, &same);
    rt_release(scaled);
    TS_TRY(status);
    cast = rt_from_tensor(same);
    status = write_slices(self, args[1], args[2], cast, SLICE_COMBINE, RT_COMBINE_ADD);
    rt_release(cast);
    return status;
}

KERNEL(index_add) {
    rt_tensor *result;
    TS_TRY(rt_fresh_copy(args[0], &result));
    return rt_give(index_add(context, result, args), result, outs);
}
KERNEL(index_add_) {
    rt_tensor *self;
    TS_TRY(rt_need_tensor(args[0], &self));
    TS_TRY(index_add(context, self, args));
    outs[0] = rt_retain(args[0]);
    return NULL;
}

static ts_status index_fill(rt_tensor *self, const rt_value *args) {
    rt_tensor *index, *element;
    int dim;
    int64_t *list;
    TS_TRY(rt_need_tensor(args[2], &index));
    TS_TRY(rt_check_writable(self));
    TS_TRY(rt_wrap_dim(args[1].as.i, self->rank, &dim));
    if (args[3].tag == RT_TAG_TENSOR) {
        if (args[3].as.tensor->rank > 0)
            return ts_raise("RuntimeError",
                            "index_fill_ only supports a 0-dimensional value tensor, but got "
                            "tensor with %d dimension(s).",
                            args[3].as.tensor->rank);
        TS_TRY(rt_tensor_cast(args[3].as.tensor, rt_dtype_of(self), false, &element));
    } else {
        TS_TRY(rt_tensor_from_number(args[3], rt_dtype_of(self), &element));
    }
    ts_status status = rt_index_list(index, self->rank ? self->sizes[dim] : 1, dim, &list);
    if (!status) {
        for (int64_t i = 0; i < index->element_count && !status; i++) {
            rt_tensor *to;
            status = slice_of(self, dim, list[i], &to);
            if (!status) {
                status = rt_tensor_copy_into(to, element);
                rt_tensor_release(to);
            }
        }
        free(list);
    }
    rt_tensor_release(element);
    return status;
}

KERNEL(index_fill) {
    rt_tensor *result;
    TS_TRY(rt_fresh_copy(args[0], &result));
    return rt_give(index_fill(result, args), result, outs);
}
KERNEL(index_fill_) {
    rt_tensor *self;
    TS_TRY(rt_need_tensor(args[0], &self));
    TS_TRY(index_fill(self, args));
    outs[0] = rt_retain(args[0]);
    return NULL;
}

/* index_reduce: scatter_reduce with the index spread over the slices. */
static ts_status index_reduce(rt_tensor *self, const rt_value *args) {
    rt_tensor *index, *source, *spread;
    int dim;
    TS_TRY(rt_need_tensor(args[2], &index));
    TS_TRY(rt_need_tensor(args[3], &source));
    TS_TRY(rt_wrap_dim(args[1].as.i, self->rank, &dim));
    if (index->rank > 1 || (source->rank && source->sizes[dim] != index->element_count))
        return ts_raise("IndexError", "index_reduce_(): Index is supposed to be a vector of "
                                      "source.size(dim) numbers");
    int64_t strides[RT_MAX_RANK];
    for (int d = 0; d < source->rank; d++)
        strides[d] = d == dim && index->rank ? index->strides[0] : 0;
    TS_TRY(rt_tensor_alias(index, 0, source->sizes, strides, source->rank, &spread));
    into_kind kind = INTO_PROD;
    ts_status status = into_of(args[4], &kind);
    if (!status)
        status = scatter_reduce_into(self, args[1].as.i, spread, source, kind, args[5].as.i != 0);
    rt_tensor_release(spread);
    return status;
}

KERNEL(index_reduce) {
    rt_tensor *result;
    TS_TRY(rt_fresh_copy(args[0], &result));
    return rt_give(index_reduce(result, args), result, outs);
}
KERNEL(index_reduce_) {
    rt_tensor *self;
    TS_TRY(rt_need_tensor(args[0], &self));
    TS_TRY(index_reduce(self, args));
    outs[0] = rt_retain(args[0]);
    return NULL;
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

/* ---- views written into a copy ---- */

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
KERNEL(as_strided_scatter) {
    rt_tensor *result, *view = NULL;
    TS_TRY(rt_fresh_copy(args[0], &result));
    ts_status status = rt_strided(result, args[2], args[3], args[4], &view);
    return write_view(result, status, view, args[1], outs);
}

/* ---- diagonals and triangles ---- */

KERNEL(diag_embed) {
    rt_tensor *self, *result, *view;
    int a, b;
    TS_TRY(rt_need_tensor(args[0], &self));
    if (self->rank == 0)
        return ts_raise("RuntimeError", "diag_embed expects at least a vector");
    int rank = self->rank + 1;
    int64_t offset = args[1].as.i, length = self->sizes[self->rank - 1];
    TS_TRY(rt_wrap_dim(args[2].as.i, rank, &a));
    TS_TRY(rt_wrap_dim(args[3].as.i, rank, &b));
    if (a == b)
        return ts_raise("RuntimeError", "diagonal dimensions cannot be identical %d, %d", a, b);
    int64_t sizes[RT_MAX_RANK + 1], wide;
    int at = 0;
    if (offset == INT64_MIN || !ts_add_i64(length, offset < 0 ? -offset : offset, &wide))
        return ts_no_memory();
    for (int d = 0; d < rank; d++)
        sizes[d] = d == a || d == b ? wide : self->sizes[at++];
    TS_TRY(rt_tensor_make_zeroed(rt_dtype_of(self), sizes, rank, &result));
    ts_status status = rt_diagonal_of(result, offset, a, b, &view);
    if (!status) {
        status = rt_tensor_copy_into(view, self);
        rt_tensor_release(view);
    }
    return rt_give(status, result, outs);
}

KERNEL(diag) {
    rt_tensor *self, *view, *copy;
    TS_TRY(rt_need_tensor(args[0], &self));
    if (self->rank == 1)
        return rt_ref_diag_embed(context, (rt_value[]){args[0], args[1], rt_int(0), rt_int(1)},
                                 outs);
    if (self->rank != 2)
        return ts_raise("RuntimeError", "diag(): Supports 1D or 2D tensors. Got %dD", self->rank);
    TS_TRY(rt_diagonal_of(self, args[1].as.i, 0, 1, &view));
    ts_status status = rt_tensor_clone(view, &copy);
    rt_tensor_release(view);
    TS_TRY(status);
    outs[0] = rt_from_tensor(copy);
    return NULL;
}

/* Zeroes what lies above (lower) or below the diagonal of each matrix. */
static void clear_triangle(rt_tensor *t, int64_t diagonal, bool keep_lower) {
    int64_t rows = t->sizes[t->rank - 2], columns = t->sizes[t->rank - 1];
    int64_t size = rt_element_bytes(t);
    if (t->element_count == 0)
        return;
    if (diagonal > columns)
        diagonal = columns;
    if (diagonal < -rows)
        diagonal = -rows;
    char *row = t->data;
    for (int64_t i = 0; i < t->element_count / columns; i++, row += columns * size) {
        int64_t split = i % rows + diagonal + (keep_lower ? 1 : 0);
        split = split < 0 ? 0 : split > columns ? columns : split;
        if (keep_lower)
            memset(row + split * size, 0, (size_t)((columns - split) * size));
        else
            memset(row, 0, (size_t)(split * size));
    }
}

static ts_status triangle(const rt_value *args, bool keep_lower, rt_value *outs) {
    rt_tensor *self, *result;
    TS_TRY(rt_need_tensor(args[0], &self));
    if (self->rank < 2)
        return ts_raise("RuntimeError", "%s: input tensor must have at least 2 dimensions",
                        keep_lower ? "tril" : "triu");
    TS_TRY(rt_tensor_clone(self, &result));
    clear_triangle(result, args[1].as.i, keep_lower);
    outs[0] = rt_from_tensor(result);
    return NULL;
}
KERNEL(tril) { return triangle(args, true, outs); }
KERNEL(triu) { return triangle(args, false, outs); }

/* runtime/ops/ref_index_slice.c - the index_* family: one index for each slice along a dim. */
#include <stdlib.h>

#include "runtime/ops/index_ops.h"

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

/* Several 16-bit numbers into one: summed in float32 and rounded once, as PyTorch does for rows. */
static ts_status add_wide(rt_tensor *self, const rt_value *args) {
    rt_tensor *source, *wide, *from = NULL;
    TS_TRY(rt_need_tensor(args[3], &source));
    TS_TRY(rt_check_writable(self));
    if (source->dtype != self->dtype)
        return write_slices(self, args[1], args[2], args[3], SLICE_COMBINE, RT_COMBINE_ADD);
    TS_TRY(rt_tensor_cast(self, RT_float32, true, &wide));
    ts_status status = rt_tensor_cast(source, RT_float32, true, &from);
    if (!status)
        status = write_slices(wide, args[1], args[2], rt_from_tensor(from), SLICE_COMBINE,
                              RT_COMBINE_ADD);
    if (!status)
        status = rt_tensor_copy_into(self, wide);
    rt_tensor_release(from);
    rt_tensor_release(wide);
    return status;
}

static ts_status index_add(rt_context *context, rt_tensor *self, const rt_value *args) {
    bool is_one = args[4].tag != RT_TAG_COMPLEX && rt_as_double(args[4]) == 1;
    rt_dtype dtype = rt_dtype_of(self);
    if (is_one && self->rank > 1 && (dtype == RT_float16 || dtype == RT_bfloat16))
        return add_wide(self, args);
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

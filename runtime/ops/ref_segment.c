/* runtime/ops/ref_segment.c - segment_reduce, and indexing that a mask guards. */
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/index_ops.h"

typedef enum segment_kind {
    SEGMENT_SUM,
    SEGMENT_MEAN,
    SEGMENT_MAX,
    SEGMENT_MIN,
    SEGMENT_PROD
} segment_kind;

static ts_status kind_of(rt_value reduce, segment_kind *out) {
    static const char *const names[] = {"sum", "mean", "max", "min", "prod"};
    *out = SEGMENT_SUM;
    for (int i = 0; i < 5; i++)
        if (rt_str_value_is(reduce, names[i])) {
            *out = (segment_kind)i;
            return NULL;
        }
    return ts_raise("RuntimeError", "unsupported reduction given");
}

static double segment_start(segment_kind kind, rt_value initial) {
    if (!rt_is_none(initial))
        return rt_as_double(initial);
    switch (kind) {
    case SEGMENT_MAX:
        return -(double)INFINITY;
    case SEGMENT_MIN:
        return (double)INFINITY;
    case SEGMENT_PROD:
        return 1;
    case SEGMENT_SUM:
    case SEGMENT_MEAN:
        break;
    }
    return 0;
}

static double segment_step(segment_kind kind, double acc, double x) {
    switch (kind) {
    case SEGMENT_MAX:
        return x != x || x > acc ? x : acc;
    case SEGMENT_MIN:
        return x != x || x < acc ? x : acc;
    case SEGMENT_PROD:
        return acc * x;
    case SEGMENT_SUM:
    case SEGMENT_MEAN:
        break;
    }
    return acc + x;
}

/* One row of segments [first, first + length) of a dense [outer, size, inner] block. */
static double segment_value(const rt_tensor *dense, segment_kind kind, const char *at,
                            int64_t length, int64_t step, rt_value initial) {
    double acc = segment_start(kind, initial);
    for (int64_t i = 0; i < length; i++)
        acc = segment_step(kind, acc, rt_load_double(rt_dtype_of(dense), at + i * step));
    if (kind == SEGMENT_MEAN)
        acc = length > 0 ? acc / (double)length : rt_is_none(initial) ? (double)NAN : acc;
    return acc;
}

KERNEL(segment_reduce) {
    rt_tensor *data, *dense = NULL, *bounds = NULL, *result = NULL;
    segment_kind kind;
    int axis;
    TS_TRY(rt_need_tensor(args[0], &data));
    TS_TRY(kind_of(args[1], &kind));
    TS_TRY(rt_wrap_dim(args[5].as.i, data->rank, &axis));
    bool has_offsets = args[4].tag == RT_TAG_TENSOR;
    rt_value given = has_offsets ? args[4] : args[2];
    if (given.tag != RT_TAG_TENSOR)
        return ts_raise("RuntimeError",
                        "segment_reduce(): Either lengths or offsets must be defined");
    if (!rt_dtype_is_float(rt_dtype_of(data)))
        return rt_not_implemented("segment_reduce", rt_dtype_of(data));
    bool fits = given.as.tensor->rank == axis + 1 && data->rank > axis &&
                rt_dtype_is_integral(rt_dtype_of(given.as.tensor));
    for (int d = 0; fits && d < axis; d++)
        fits = given.as.tensor->sizes[d] == data->sizes[d];
    if (!fits)
        return ts_raise("RuntimeError", "segment_reduce(): lengths or offsets do not fit the "
                                        "leading dimensions of data");
    ts_status status = NULL;
    TS_TRY_OR(rt_tensor_contiguous(data, &dense), done);
    rt_tensor *plain;
    TS_TRY_OR(rt_tensor_contiguous(given.as.tensor, &plain), done);
    status = rt_tensor_cast(plain, RT_int64, false, &bounds);
    rt_tensor_release(plain);
    if (status)
        goto done;
    int64_t sizes[RT_MAX_RANK], outer = 1, inner = 1, size = data->sizes[axis];
    int64_t entries = bounds->sizes[axis], segments = entries - has_offsets;
    if (segments < 0) {
        status = ts_raise("RuntimeError", "segment_reduce(): offsets must not be empty");
        goto done;
    }
    for (int d = 0; d < data->rank; d++) {
        sizes[d] = d == axis ? segments : data->sizes[d];
        outer *= d < axis ? data->sizes[d] : 1;
        inner *= d > axis ? data->sizes[d] : 1;
    }
    TS_TRY_OR(rt_tensor_make(rt_dtype_of(data), sizes, data->rank, &result), done);
    int64_t bytes = rt_element_bytes(data);
    const int64_t *numbers = bounds->data;
    char *out = result->data;
    for (int64_t o = 0; o < outer; o++) {
        int64_t at = 0;
        for (int64_t s = 0; s < segments; s++) {
            int64_t first = has_offsets ? numbers[o * entries + s] : at;
            int64_t length =
                has_offsets ? numbers[o * entries + s + 1] - first : numbers[o * entries + s];
            if (length < 0 || first < 0 || first > size || length > size - first) {
                status = ts_raise("RuntimeError", "segment_reduce(): a segment lies outside of "
                                                  "data");
                goto done;
            }
            at = first + length;
            for (int64_t j = 0; j < inner; j++, out += bytes)
                rt_store_double(rt_dtype_of(data), out,
                                segment_value(dense, kind,
                                              (const char *)dense->data +
                                                  ((o * size + first) * inner + j) * bytes,
                                              length, inner * bytes, args[7]));
        }
    }
    outs[0] = rt_from_tensor(result);
    result = NULL;
done:
    rt_tensor_release(dense);
    rt_tensor_release(bounds);
    rt_tensor_release(result);
    return status;
}

/* ---- indices that may lie outside, where a mask says so ---- */

ts_status rt_ref_clamp(rt_context *context, const rt_value *args, rt_value *outs);
ts_status rt_ref_index(rt_context *context, const rt_value *args, rt_value *outs);
ts_status rt_ref_index_put(rt_context *context, const rt_value *args, rt_value *outs);
ts_status rt_ref_masked_fill(rt_context *context, const rt_value *args, rt_value *outs);
ts_status rt_ref_logical_not(rt_context *context, const rt_value *args, rt_value *outs);

/* The indices clamped into self's sizes. */
static ts_status clamped_indices(rt_context *context, const rt_tensor *self, rt_value list,
                                 rt_value *out) {
    const rt_value *items;
    size_t count;
    rt_as_items(list, &items, &count);
    TS_TRY(rt_list_make(count, out));
    for (size_t i = 0; i < count; i++) {
        rt_value item = rt_none();
        ts_status status = NULL;
        if (items[i].tag == RT_TAG_TENSOR && i < (size_t)self->rank) {
            int64_t size = self->sizes[i];
            status = rt_ref_clamp(context, (rt_value[]){items[i], rt_int(-size), rt_int(size - 1)},
                                  &item);
        }
        if (!status)
            status = rt_list_append(out->as.list, item);
        rt_release(item);
        if (status) {
            rt_release(*out);
            *out = rt_none();
            return status;
        }
    }
    return NULL;
}

KERNEL(unsafe_masked_index) {
    rt_tensor *self;
    rt_value indices, outside, picked = rt_none();
    TS_TRY(rt_need_tensor(args[0], &self));
    TS_TRY(rt_ref_logical_not(context, args + 1, &outside));
    ts_status status = clamped_indices(context, self, args[2], &indices);
    if (!status) {
        status = rt_ref_index(context, (rt_value[]){args[0], indices}, &picked);
        rt_release(indices);
    }
    if (!status)
        status = rt_ref_masked_fill(context, (rt_value[]){picked, outside, args[3]}, outs);
    rt_release(picked);
    rt_release(outside);
    return status;
}

KERNEL(unsafe_masked_index_put_accumulate) {
    rt_tensor *self;
    rt_value indices, outside, values = rt_none();
    TS_TRY(rt_need_tensor(args[0], &self));
    if (self->element_count == 0) {
        rt_tensor *copy;
        TS_TRY(rt_tensor_clone(self, &copy));
        outs[0] = rt_from_tensor(copy);
        return NULL;
    }
    TS_TRY(rt_ref_logical_not(context, args + 1, &outside));
    ts_status status =
        rt_ref_masked_fill(context, (rt_value[]){args[3], outside, rt_int(0)}, &values);
    if (!status)
        status = clamped_indices(context, self, args[2], &indices);
    if (!status) {
        status =
            rt_ref_index_put(context, (rt_value[]){args[0], indices, values, rt_bool(true)}, outs);
        rt_release(indices);
    }
    rt_release(values);
    rt_release(outside);
    return status;
}

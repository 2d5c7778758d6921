/* runtime/ops/ref_scatter_reduce.c - reductions into a tensor: scatter_reduce and index_reduce. */
#include <math.h>

#include "runtime/ops/index_ops.h"

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
        TS_TRY_OR(rt_scatter_into(self, dim, index, element, RT_COMBINE_SET), done);
    }
    TS_TRY_OR(rt_scatter_into(self, dim, index, src, combine_for(kind)), done);
    if (kind == INTO_MEAN) {
        TS_TRY_OR(rt_tensor_make(RT_int64, self->sizes, self->rank, &counts), done);
        TS_TRY_OR(rt_fill_number(counts, rt_int(include_self)), done);
        TS_TRY_OR(rt_tensor_from_number(rt_int(1), RT_int64, &one), done);
        TS_TRY_OR(rt_scatter_into(counts, dim, index, one, RT_COMBINE_ADD), done);
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

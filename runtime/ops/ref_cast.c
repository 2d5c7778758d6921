/* runtime/ops/ref_cast.c - conversions of dtype and of memory layout, copies. */
#include "runtime/ops/tensor_ops.h"

/* PyTorch's MemoryFormat */
enum {
    FORMAT_CONTIGUOUS = 0,
    FORMAT_PRESERVE = 1,
    FORMAT_CHANNELS_LAST = 2,
    FORMAT_CHANNELS_LAST_3D = 3
};

/* Strides of a dense tensor of that format; false where rank and format do not fit. */
static bool format_strides(const int64_t *sizes, int rank, int64_t format, int64_t *out_strides) {
    if (format != FORMAT_CHANNELS_LAST && format != FORMAT_CHANNELS_LAST_3D) {
        rt_contiguous_strides(sizes, rank, out_strides);
        return true;
    }
    if (rank != (format == FORMAT_CHANNELS_LAST ? 4 : 5))
        return false;
    rt_channels_last_strides(sizes, rank, out_strides);
    return true;
}

static bool has_strides(const rt_tensor *t, const int64_t *strides) {
    for (int d = 0; d < t->rank; d++)
        if (t->sizes[d] != 1 && t->strides[d] != strides[d])
            return false;
    return true;
}

/* No gaps and no overlap: the strides may be kept. */
static bool is_dense(const rt_tensor *t) {
    bool done[RT_MAX_RANK] = {false};
    int64_t expected = 1;
    for (int step = 0; step < t->rank; step++) {
        int found = -1;
        for (int d = 0; d < t->rank && found < 0; d++)
            if (!done[d] && (t->sizes[d] == 1 || t->strides[d] == expected))
                found = d;
        if (found < 0)
            return false;
        done[found] = true;
        expected *= t->sizes[found];
    }
    return true;
}

/* New memory in the wanted layout, contents of t. */
static ts_status copy_as(const rt_tensor *t, rt_dtype dtype, int64_t format, rt_value *out) {
    int64_t strides[RT_MAX_RANK];
    if (format == FORMAT_PRESERVE && is_dense(t) && t->element_count > 0) {
        for (int d = 0; d < t->rank; d++)
            strides[d] = t->strides[d];
    } else if (!format_strides(t->sizes, t->rank, format, strides)) {
        return ts_raise("RuntimeError", "required rank %d tensor to use channels_last format",
                        format == FORMAT_CHANNELS_LAST ? 4 : 5);
    }
    rt_tensor *dense, *result;
    TS_TRY(rt_tensor_make(dtype, t->sizes, t->rank, &dense));
    ts_status status = rt_tensor_alias(dense, 0, t->sizes, strides, t->rank, &result);
    rt_tensor_release(dense);
    TS_TRY(status);
    status = rt_tensor_copy_into(result, t);
    if (status) {
        rt_tensor_release(result);
        return status;
    }
    if (dtype == rt_dtype_of(t))
        rt_tensor_set_quantizer(result, t);
    *out = rt_from_tensor(result);
    return NULL;
}

static int64_t format_of(rt_value v, int64_t other) { return rt_is_none(v) ? other : v.as.i; }

static ts_status convert(rt_value self, rt_dtype dtype, bool copy, rt_value memory_format,
                         rt_value *out) {
    rt_tensor *t;
    TS_TRY(rt_need_tensor(self, &t));
    int64_t format = format_of(memory_format, FORMAT_PRESERVE), strides[RT_MAX_RANK];
    bool fits = format == FORMAT_PRESERVE ||
                (format_strides(t->sizes, t->rank, format, strides) && has_strides(t, strides));
    if (rt_dtype_of(t) == dtype && !copy && fits) {
        *out = rt_retain(self);
        return NULL;
    }
    return copy_as(t, dtype, format, out);
}

KERNEL(to_device) {
    return convert(args[0], rt_as_dtype(args[2], RT_float32), args[4].as.i != 0, args[5], outs);
}
KERNEL(to_dtype) {
    return convert(args[0], rt_as_dtype(args[1], RT_float32), args[3].as.i != 0, args[4], outs);
}
KERNEL(to_other) {
    rt_tensor *other;
    TS_TRY(rt_need_tensor(args[1], &other));
    return convert(args[0], rt_dtype_of(other), args[3].as.i != 0, args[4], outs);
}
KERNEL(to_prim_device) {
    rt_tensor *t;
    TS_TRY(rt_need_tensor(args[0], &t));
    return convert(args[0], rt_as_dtype(args[2], rt_dtype_of(t)), args[4].as.i != 0, rt_none(),
                   outs);
}
KERNEL(to_prim_dtype) {
    rt_tensor *t;
    TS_TRY(rt_need_tensor(args[0], &t));
    return convert(args[0], rt_as_dtype(args[1], rt_dtype_of(t)), args[3].as.i != 0, rt_none(),
                   outs);
}
KERNEL(to_prim_other) {
    rt_tensor *t;
    TS_TRY(rt_need_tensor(args[0], &t));
    return convert(args[0], rt_dtype_of(t), args[2].as.i != 0, rt_none(), outs);
}
KERNEL(to_copy) {
    rt_tensor *t;
    TS_TRY(rt_need_tensor(args[0], &t));
    return convert(args[0], rt_as_dtype(args[1], rt_dtype_of(t)), true, args[6], outs);
}
KERNEL(type_as) {
    rt_tensor *other;
    TS_TRY(rt_need_tensor(args[1], &other));
    return convert(args[0], rt_dtype_of(other), false, rt_none(), outs);
}

KERNEL(contiguous) {
    rt_tensor *t;
    TS_TRY(rt_need_tensor(args[0], &t));
    int64_t format = format_of(args[1], FORMAT_CONTIGUOUS);
    if (format == FORMAT_PRESERVE)
        return ts_raise("RuntimeError", "preserve memory format is unsupported by the contiguous "
                                        "operator");
    return convert(args[0], rt_dtype_of(t), false, rt_int(format), outs);
}

KERNEL(clone) {
    rt_tensor *t;
    TS_TRY(rt_need_tensor(args[0], &t));
    return copy_as(t, rt_dtype_of(t), format_of(args[1], FORMAT_PRESERVE), outs);
}

KERNEL(is_contiguous) {
    rt_tensor *t;
    TS_TRY(rt_need_tensor(args[0], &t));
    outs[0] = rt_bool(rt_tensor_is_contiguous(t));
    return NULL;
}

KERNEL(is_contiguous_format) {
    rt_tensor *t;
    int64_t strides[RT_MAX_RANK];
    TS_TRY(rt_need_tensor(args[0], &t));
    outs[0] = rt_bool(format_strides(t->sizes, t->rank, args[1].as.i, strides) &&
                      has_strides(t, strides));
    return NULL;
}

/* ---- writes ---- */

static ts_status assign_number(rt_tensor *self, rt_value number) {
    rt_tensor *element;
    TS_TRY(rt_check_writable(self));
    TS_TRY(rt_tensor_from_number(number, rt_dtype_of(self), &element));
    ts_status status = rt_tensor_copy_into(self, element);
    rt_tensor_release(element);
    return status;
}

KERNEL(copy_) {
    rt_tensor *self;
    TS_TRY(rt_need_tensor(args[0], &self));
    if (args[1].tag == RT_TAG_TENSOR) {
        TS_TRY(rt_check_writable(self));
        TS_TRY(rt_tensor_copy_into(self, args[1].as.tensor));
    } else {
        TS_TRY(assign_number(self, args[1]));
    }
    outs[0] = rt_retain(args[0]);
    return NULL;
}

KERNEL(fill_) {
    rt_tensor *self;
    TS_TRY(rt_need_tensor(args[0], &self));
    if (args[1].tag == RT_TAG_TENSOR) {
        if (args[1].as.tensor->rank > 0)
            return ts_raise("RuntimeError",
                            "fill_ only supports 0-dimension value tensor but got "
                            "tensor with %d dimensions.",
                            args[1].as.tensor->rank);
        TS_TRY(rt_check_writable(self));
        TS_TRY(rt_tensor_copy_into(self, args[1].as.tensor));
    } else {
        TS_TRY(assign_number(self, args[1]));
    }
    outs[0] = rt_retain(args[0]);
    return NULL;
}

KERNEL(fill) {
    rt_tensor *self, *result;
    TS_TRY(rt_need_tensor(args[0], &self));
    TS_TRY(rt_tensor_make(rt_dtype_of(self), self->sizes, self->rank, &result));
    ts_status status = args[1].tag == RT_TAG_TENSOR ? rt_tensor_copy_into(result, args[1].as.tensor)
                                                    : assign_number(result, args[1]);
    if (status) {
        rt_tensor_release(result);
        return status;
    }
    outs[0] = rt_from_tensor(result);
    return NULL;
}

KERNEL(zero_) {
    rt_tensor *self;
    TS_TRY(rt_need_tensor(args[0], &self));
    TS_TRY(assign_number(self, rt_int(0)));
    outs[0] = rt_retain(args[0]);
    return NULL;
}

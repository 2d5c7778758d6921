/* runtime/ops/ref_quantized.c - making quantized tensors and asking them. */
#include "runtime/ops/quantized.h"

KERNEL(quantize_per_tensor) {
    rt_tensor *x, *y;
    TS_TRY(rt_need_tensor(args[0], &x));
    TS_TRY(rt_quantize(x, rt_as_double(args[1]), rt_as_int(args[2]), (rt_dtype)args[3].as.i, &y));
    outs[0] = rt_from_tensor(y);
    return NULL;
}

static rt_dtype plain_dtype(rt_dtype quantized) {
    return quantized == RT_qint8 ? RT_int8 : quantized == RT_quint8 ? RT_uint8 : RT_int32;
}

/* Gives y the channels of the arguments scales, zero_points and axis. */
static ts_status set_channels(rt_tensor *y, const rt_value *args) {
    rt_tensor *scales, *zeros, *kept, *own, *kept_zeros;
    int axis;
    TS_TRY(rt_need_tensor(args[0], &scales));
    TS_TRY(rt_need_tensor(args[1], &zeros));
    TS_TRY(rt_wrap_dim(rt_as_int(args[2]), y->rank, &axis));
    if (y->rank == 0 || scales->rank != 1 || zeros->rank != 1 ||
        scales->sizes[0] != y->sizes[axis] || zeros->sizes[0] != y->sizes[axis])
        return ts_raise("RuntimeError", "number of elements in scales and zero points must be equal "
                                        "to the size of the tensor's axis");
    TS_TRY(rt_tensor_cast(scales, RT_float64, true, &own));
    ts_status status = rt_tensor_contiguous(own, &kept);
    rt_tensor_release(own);
    TS_TRY(status);
    bool is_float = rt_dtype_category(rt_dtype_of(zeros)) == 'f';
    status = rt_tensor_cast(zeros, is_float ? RT_float32 : RT_int64, true, &own);
    if (!status) {
        status = rt_tensor_contiguous(own, &kept_zeros);
        rt_tensor_release(own);
    }
    if (status) {
        rt_tensor_release(kept);
        return status;
    }
    rt_tensor_set_channels(y, kept, kept_zeros, axis);
    return NULL;
}

KERNEL(quantize_per_channel) {
    rt_tensor *x, *y;
    TS_TRY(rt_need_tensor(args[0], &x));
    TS_TRY(rt_make_quantized(x, (rt_dtype)args[4].as.i, &y));
    ts_status status = set_channels(y, args + 1);
    if (!status)
        status = rt_quantize_into(y, x);
    if (status) {
        rt_tensor_release(y);
        return status;
    }
    outs[0] = rt_from_tensor(y);
    return NULL;
}

/* A quantized tensor over copies of plain integers. */
static ts_status from_integers(rt_value v, rt_tensor **out) {
    rt_tensor *x;
    *out = NULL;
    TS_TRY(rt_need_tensor(v, &x));
    rt_dtype dtype = x->dtype == RT_int8 ? RT_qint8 : x->dtype == RT_uint8 ? RT_quint8 : RT_qint32;
    if (plain_dtype(dtype) != rt_dtype_of(x))
        return ts_raise("RuntimeError", "expected int8, uint8 or int32, found %s",
                        rt_dtype_name(rt_dtype_of(x)));
    TS_TRY(rt_tensor_make(dtype, x->sizes, x->rank, out));
    char *to = (*out)->data;
    size_t step = rt_dtype_size(dtype);
    rt_cursor c;
    for (rt_cursor_start(&c, x); c.left; rt_cursor_next(&c), to += step)
        memcpy(to, c.data, step);
    return NULL;
}

KERNEL(make_per_tensor_quantized) {
    rt_tensor *y;
    TS_TRY(from_integers(args[0], &y));
    y->scale = rt_as_double(args[1]);
    y->zero_point = rt_as_int(args[2]);
    outs[0] = rt_from_tensor(y);
    return NULL;
}

KERNEL(make_per_channel_quantized) {
    rt_tensor *y;
    TS_TRY(from_integers(args[0], &y));
    ts_status status = set_channels(y, args + 1);
    if (status) {
        rt_tensor_release(y);
        return status;
    }
    outs[0] = rt_from_tensor(y);
    return NULL;
}

KERNEL(dequantize) {
    rt_tensor *x, *y;
    TS_TRY(rt_need_tensor(args[0], &x));
    TS_TRY(rt_dequantize(x, &y));
    outs[0] = rt_from_tensor(y);
    return NULL;
}

KERNEL(int_repr) {
    rt_tensor *x, *y;
    TS_TRY(rt_need_quantized(args[0], &x));
    rt_dtype plain = plain_dtype(rt_dtype_of(x));
    TS_TRY(rt_tensor_make(plain, x->sizes, x->rank, &y));
    char *to = y->data;
    size_t step = rt_dtype_size(plain);
    rt_cursor c;
    for (rt_cursor_start(&c, x); c.left; rt_cursor_next(&c), to += step)
        memcpy(to, c.data, step);
    outs[0] = rt_from_tensor(y);
    return NULL;
}

static ts_status need_whole(rt_value v, bool is_whole, rt_tensor **out) {
    TS_TRY(rt_need_quantized(v, out));
    if (((*out)->scales == NULL) != is_whole)
        return ts_raise("RuntimeError", is_whole ? "the tensor is quantized per channel"
                                                 : "the tensor is not quantized per channel");
    return NULL;
}

KERNEL(q_scale) {
    rt_tensor *x;
    TS_TRY(need_whole(args[0], true, &x));
    outs[0] = rt_float(x->scale);
    return NULL;
}

KERNEL(q_zero_point) {
    rt_tensor *x;
    TS_TRY(need_whole(args[0], true, &x));
    outs[0] = rt_int(x->zero_point);
    return NULL;
}

KERNEL(q_per_channel_axis) {
    rt_tensor *x;
    TS_TRY(need_whole(args[0], false, &x));
    outs[0] = rt_int(x->axis);
    return NULL;
}

KERNEL(q_per_channel_scales) {
    rt_tensor *x;
    TS_TRY(need_whole(args[0], false, &x));
    outs[0] = rt_retain(rt_from_tensor(x->scales));
    return NULL;
}

KERNEL(q_per_channel_zero_points) {
    rt_tensor *x;
    TS_TRY(need_whole(args[0], false, &x));
    outs[0] = rt_retain(rt_from_tensor(x->zero_points));
    return NULL;
}

/* c10's QScheme: per_tensor_affine 0, per_channel_affine 1, per_channel_affine_float_qparams 4. */
KERNEL(qscheme) {
    rt_tensor *x;
    TS_TRY(rt_need_quantized(args[0], &x));
    outs[0] = rt_int(!x->scales ? 0 : x->zero_points->dtype == RT_float32 ? 4 : 1);
    return NULL;
}

KERNEL(is_quantized) {
    outs[0] = rt_bool(args[0].tag == RT_TAG_TENSOR && rt_is_quantized(args[0].as.tensor));
    return NULL;
}

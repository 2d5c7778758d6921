/* runtime/ops/ref_check.c - what PyTorch refuses before it writes: a result of a kind that the tensor cannot
 * hold, a number beyond its dtype. */
#include "runtime/ops/tensor_ops.h"

KERNEL(check_result) {
    rt_tensor *self, *result;
    TS_TRY(rt_need_tensor(args[0], &self));
    TS_TRY(rt_need_tensor(args[1], &result));
    outs[0] = rt_none();
    if (rt_dtype_can_hold(rt_dtype_of(self), rt_dtype_of(result)))
        return NULL;
    return ts_raise("RuntimeError", "result type %s can't be cast to the desired output type %s",
                    rt_dtype_message_name(rt_dtype_of(result)), rt_dtype_message_name(rt_dtype_of(self)));
}

/* As C++ spells it, in which PyTorch's message is. */
static const char *c_name(rt_dtype dtype) {
    static const char *const names[] = {"uint8_t", "int8_t", "int16_t", "int", "int64_t", "c10::Half", "float",
                                        "double", "c10::complex<c10::Half>", "c10::complex<float>",
                                        "c10::complex<double>", "bool", "c10::qint8", "c10::quint8", "c10::qint32",
                                        "c10::BFloat16"};
    return dtype >= 0 && dtype < RT_DTYPE_COUNT ? names[dtype] : "?";
}

ts_status rt_check_fits(rt_value number, rt_dtype dtype) {
    if (rt_number_fits(number, dtype))
        return NULL;
    return ts_raise("RuntimeError", "value cannot be converted to type %s without overflow", c_name(dtype));
}

ts_status rt_check_element_fits(const rt_tensor *t, rt_dtype dtype) {
    rt_value number;
    if (t->element_count != 1)
        return NULL;
    TS_TRY(rt_tensor_item(t, &number));
    ts_status status = rt_check_fits(number, dtype);
    rt_release(number);
    return status;
}

static ts_status check_fits(rt_dtype dtype, rt_value number, bool with_halves, rt_value *out) {
    *out = rt_none();
    if (!with_halves && (dtype == RT_float16 || dtype == RT_bfloat16))
        return NULL;
    return rt_check_fits(number, dtype);
}

KERNEL(check_fits_like) {
    rt_tensor *self;
    TS_TRY(rt_need_tensor(args[0], &self));
    return check_fits(rt_dtype_of(self), args[1], args[2].as.i != 0, outs);
}
KERNEL(check_fits_dtype) { return check_fits((rt_dtype)args[0].as.i, args[1], args[2].as.i != 0, outs); }

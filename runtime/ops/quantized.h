/* runtime/ops/quantized.h - what the kernels over quantized tensors share: integers to floats and
 * back, packed parameters, the linear layer that recurrent ones are made of. */
#ifndef RUNTIME_OPS_QUANTIZED_H
#define RUNTIME_OPS_QUANTIZED_H

#include "runtime/ops/tensor_ops.h"
#include "runtime/values/packed.h"

static inline bool rt_is_quantized(const rt_tensor *t) {
    return rt_dtype_category(rt_dtype_of(t)) == 'q';
}
ts_status rt_need_quantized(rt_value v, rt_tensor **out) TS_WARN_UNUSED;

/* A float32 tensor of the values (float32 of any other tensor's); dense. */
ts_status rt_dequantize(rt_tensor *t, rt_tensor **out) TS_WARN_UNUSED;
/* A float32 tensor of the integers less their zero points; dense. */
ts_status rt_centered(const rt_tensor *t, rt_tensor **out) TS_WARN_UNUSED;
ts_status rt_make_quantized(const rt_tensor *like, rt_dtype dtype, rt_tensor **out) TS_WARN_UNUSED;
ts_status rt_quantize(const rt_tensor *x, double scale, int64_t zero_point, rt_dtype dtype,
                      rt_tensor **out) TS_WARN_UNUSED;
/* Writes x's values into the quantized tensor `to` with its own scale; sizes are equal. */
ts_status rt_quantize_into(rt_tensor *to, const rt_tensor *x) TS_WARN_UNUSED;

/* The tuple of packed parameters of a kind and count of items (packed.h); RuntimeError else. */
ts_status rt_need_packed(rt_value v, const char *what, size_t count, const rt_tuple **out)
    TS_WARN_UNUSED;

/* A linear layer whose input is quantized on the way. saturates: sums of two products are cut to 16
 * bits, as the instructions of processors before VNNI do. y is dense float32. */
ts_status rt_linear_dynamic(rt_context *context, rt_value input, rt_value packed, bool reduce_range,
                            bool relu, bool saturates, rt_tensor **out) TS_WARN_UNUSED;
/* Runs an operator by its reference kernel; one result. */
ts_status rt_run_op(rt_context *context, rt_op op, const rt_value *args, rt_value *out)
    TS_WARN_UNUSED;

#endif

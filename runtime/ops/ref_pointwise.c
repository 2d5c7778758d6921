/* runtime/ops/ref_pointwise.c - reference kernels of the elementwise operators: which block
 * functions run over which arguments. */
#include <math.h>

#include "runtime/ops/pointwise.h"

static bool has_dtype(rt_value v, rt_dtype dtype) {
    return v.tag == RT_TAG_TENSOR ? rt_dtype_of(v.as.tensor) == dtype
                                  : v.tag == RT_TAG_BOOL && dtype == RT_bool;
}

static bool is_integral_value(rt_value v) {
    if (v.tag != RT_TAG_TENSOR)
        return v.tag == RT_TAG_BOOL || v.tag == RT_TAG_INT;
    char category = rt_dtype_category(rt_dtype_of(v.as.tensor));
    return category == 'i' || category == 'b';
}

static bool is_one(rt_value v) {
    return (v.tag == RT_TAG_INT && v.as.i == 1) || (v.tag == RT_TAG_FLOAT && v.as.f == 1) ||
           (v.tag == RT_TAG_BOOL && v.as.i == 1);
}

#define UNARY(name)                                                                                \
    KERNEL(name) { return rt_pw_simple(&rt_pw_##name, args, 1, outs); }
UNARY(sign)
UNARY(sgn)
UNARY(reciprocal)
UNARY(sqrt)
UNARY(rsqrt)
UNARY(exp)
UNARY(exp2)
UNARY(expm1)
UNARY(log)
UNARY(log2)
UNARY(log10)
UNARY(log1p)
UNARY(sin)
UNARY(cos)
UNARY(tan)
UNARY(asin)
UNARY(acos)
UNARY(atan)
UNARY(sinh)
UNARY(cosh)
UNARY(tanh)
UNARY(asinh)
UNARY(acosh)
UNARY(atanh)
UNARY(erf)
UNARY(erfc)
UNARY(erfinv)
UNARY(lgamma)
UNARY(digamma)
UNARY(sigmoid)
UNARY(relu)
UNARY(relu6)
UNARY(silu)
UNARY(mish)
UNARY(hardswish)
UNARY(hardsigmoid)
UNARY(log_sigmoid)
UNARY(sinc)
UNARY(trunc)
UNARY(frac)
UNARY(floor)
UNARY(ceil)
UNARY(round)
UNARY(isnan)
UNARY(isinf)
UNARY(isfinite)
UNARY(isposinf)
UNARY(isneginf)
UNARY(signbit)
UNARY(logical_not)
UNARY(bitwise_not)
UNARY(deg2rad)
UNARY(rad2deg)
UNARY(angle)
UNARY(abs)
UNARY(i0)
UNARY(i0e)
UNARY(i1)
UNARY(i1e)
UNARY(bessel_j0)
UNARY(bessel_j1)
UNARY(bessel_y0)
UNARY(bessel_y1)
UNARY(bessel_k0)
UNARY(bessel_k1)
UNARY(scaled_bessel_k0)
UNARY(scaled_bessel_k1)
UNARY(spherical_bessel_j0)
UNARY(airy_ai)
UNARY(erfcx)
UNARY(ndtri)

#define BINARY(name)                                                                               \
    KERNEL(name) { return rt_pw_simple(&rt_pw_##name, args, 2, outs); }
BINARY(mul)
BINARY(div)
BINARY(remainder)
BINARY(fmod)
BINARY(eq)
BINARY(ne)
BINARY(lt)
BINARY(le)
BINARY(gt)
BINARY(ge)
BINARY(logical_and)
BINARY(logical_or)
BINARY(logical_xor)
BINARY(bitwise_and)
BINARY(bitwise_or)
BINARY(bitwise_xor)
BINARY(shift_left)
BINARY(shift_right)
BINARY(maximum)
BINARY(minimum)
BINARY(fmax)
BINARY(fmin)
BINARY(atan2)
BINARY(hypot)
BINARY(copysign)
BINARY(nextafter)
BINARY(heaviside)
BINARY(gcd)
BINARY(lcm)
BINARY(ldexp)
BINARY(xlogy)
BINARY(xlog1py)
BINARY(logaddexp)
BINARY(logaddexp2)
BINARY(igamma)
BINARY(igammac)
BINARY(zeta)

KERNEL(floor_divide) { return rt_pw_simple(&rt_pw_div_floor, args, 2, outs); }

KERNEL(neg) {
    if (has_dtype(args[0], RT_bool))
        return ts_raise("RuntimeError", "Negation, the `-` operator, on a bool tensor is not "
                                        "supported. If you are trying to invert a mask, use the "
                                        "`~` or `logical_not()` operator instead.");
    return rt_pw_simple(&rt_pw_neg, args, 1, outs);
}

KERNEL(square) {
    if (has_dtype(args[0], RT_bool)) { /* pow(self, 2): the int makes bool an int64 */
        rt_value operands[2] = {args[0], rt_int(2)};
        return rt_pw_simple(&rt_pw_pow, operands, 2, outs);
    }
    return rt_pw_simple(&rt_pw_square, args, 1, outs);
}

static ts_status scaled(const rt_pw_kernel *plain, const rt_pw_kernel *scaled_kernel, rt_value self,
                        rt_value other, rt_value alpha, rt_value *out) {
    if (alpha.tag == RT_TAG_FLOAT && is_integral_value(self) && is_integral_value(other))
        return ts_raise("RuntimeError", "For integral input tensors, argument alpha must not be a "
                                        "floating point number.");
    rt_pw_call call = {.kernel = is_one(alpha) ? plain : scaled_kernel,
                       .operands = {self, other},
                       .count = 2,
                       .compute = RT_DTYPE_UNKNOWN,
                       .result = RT_DTYPE_UNKNOWN};
    rt_pw_set_param(&call.params, 0, alpha);
    return rt_pw_run(&call, out);
}

KERNEL(add) { return scaled(&rt_pw_add, &rt_pw_add_scaled, args[0], args[1], args[2], outs); }

static ts_status subtract(rt_value self, rt_value other, rt_value alpha, rt_value *out) {
    if (has_dtype(self, RT_bool) && has_dtype(other, RT_bool))
        return ts_raise("RuntimeError",
                        "Subtraction, the `-` operator, with two bool tensors is not supported. "
                        "Use the `^` or `logical_xor()` operator instead.");
    return scaled(&rt_pw_sub, &rt_pw_sub_scaled, self, other, alpha, out);
}

KERNEL(sub) { return subtract(args[0], args[1], args[2], outs); }
KERNEL(rsub) { return subtract(args[1], args[0], args[2], outs); }

KERNEL(div_mode) {
    if (rt_is_none(args[2]))
        return rt_pw_simple(&rt_pw_div, args, 2, outs);
    if (rt_str_value_is(args[2], "floor"))
        return rt_pw_simple(&rt_pw_div_floor, args, 2, outs);
    if (rt_str_value_is(args[2], "trunc")) {
        rt_promotion promotion = RT_PROMOTION_START;
        rt_promotion_add(&promotion, args[0]);
        rt_promotion_add(&promotion, args[1]);
        rt_dtype common = rt_promotion_result(&promotion);
        if (!rt_dtype_is_short(common))
            return rt_pw_simple(&rt_pw_div_trunc, args, 2, outs);
        rt_value quotient; /* the quotient is rounded before it is truncated */
        TS_TRY(rt_pw_simple(&rt_pw_div, args, 2, &quotient));
        ts_status status = rt_pw_simple(&rt_pw_trunc, &quotient, 1, outs);
        rt_release(quotient);
        return status;
    }
    return ts_raise("RuntimeError", "div expected rounding_mode to be one of None, 'trunc', or "
                                    "'floor'");
}

/* x^3 and x^-2 of bfloat16, whose square PyTorch rounds. */
static ts_status power_of_square(rt_value base, double exponent, rt_value *out) {
    rt_value operands[2] = {rt_none(), base};
    TS_TRY(rt_pw_simple(&rt_pw_square, &base, 1, &operands[0]));
    ts_status status = exponent == 3 ? rt_pw_simple(&rt_pw_mul, operands, 2, out)
                                     : rt_pw_simple(&rt_pw_reciprocal, operands, 1, out);
    rt_release(operands[0]);
    return status;
}

KERNEL(pow) {
    rt_value base = args[0], exponent = args[1];
    if (exponent.tag != RT_TAG_TENSOR && base.tag == RT_TAG_TENSOR) {
        double e = rt_as_double(exponent);
        bool is_real = exponent.tag != RT_TAG_COMPLEX;
        bool is_float = rt_dtype_is_float(rt_dtype_of(base.as.tensor));
        if (is_integral_value(base) && is_integral_value(exponent) && e < 0)
            return ts_raise("RuntimeError", "Integers to negative integer powers are not allowed.");
        if (is_real && is_float && e == 2)
            return rt_pw_simple(&rt_pw_square, args, 1, outs);
        if (is_real && is_float && e == 0.5)
            return rt_pw_simple(&rt_pw_sqrt, args, 1, outs);
        if (is_real && (e == 3 || e == -2) && has_dtype(base, RT_bfloat16))
            return power_of_square(base, e, outs);
        return rt_pw_simple(&rt_pw_pow, args, 2, outs);
    }
    return rt_pw_simple(&rt_pw_pow_each, args, 2, outs);
}

KERNEL(float_power) {
    rt_promotion promotion = RT_PROMOTION_START;
    rt_promotion_add(&promotion, args[0]);
    rt_promotion_add(&promotion, args[1]);
    rt_dtype common = rt_promotion_result(&promotion);
    rt_pw_call call = {.kernel = &rt_pw_pow,
                       .operands = {args[0], args[1]},
                       .count = 2,
                       .compute = rt_dtype_is_complex(common) ? RT_complex128 : RT_float64,
                       .result = RT_DTYPE_UNKNOWN};
    return rt_pw_run(&call, outs);
}

/* Operand 0 with numbers as parameters. */
static ts_status with_params(const rt_pw_kernel *kernel, rt_value self, const rt_value *numbers,
                             int count, rt_value *out) {
    rt_pw_call call = {.kernel = kernel,
                       .operands = {self},
                       .count = 1,
                       .compute = RT_DTYPE_UNKNOWN,
                       .result = RT_DTYPE_UNKNOWN};
    for (int i = 0; i < count; i++)
        rt_pw_set_param(&call.params, i, numbers[i]);
    return rt_pw_run(&call, out);
}

KERNEL(polygamma) {
    if (rt_as_int(args[0]) < 0)
        return ts_raise("RuntimeError", "polygamma(n, x) does not support negative n.");
    return with_params(&rt_pw_polygamma, args[1], args, 1, outs);
}
/* polygamma_(self, n): the arguments stand the other way round. */
KERNEL(polygamma_) {
    rt_value result;
    TS_TRY(rt_ref_polygamma(context, (rt_value[]){args[1], args[0]}, &result));
    ts_status status = rt_tensor_copy_into(args[0].as.tensor, result.as.tensor);
    rt_release(result);
    if (!status)
        outs[0] = rt_retain(args[0]);
    return status;
}
KERNEL(logit) {
    rt_value numbers[2] = {args[1], rt_int(!rt_is_none(args[1]))};
    rt_pw_call call = {.kernel = &rt_pw_logit,
                       .operands = {args[0]},
                       .count = 1,
                       .compute = RT_DTYPE_UNKNOWN,
                       .result = RT_DTYPE_UNKNOWN};
    call.params.d[0] = rt_as_double(numbers[0]);
    call.params.i[0] = !rt_is_none(args[1]);
    return rt_pw_run(&call, outs);
}
KERNEL(gelu) {
    if (rt_str_value_is(args[1], "tanh"))
        return rt_pw_simple(&rt_pw_gelu_tanh, args, 1, outs);
    if (!rt_str_value_is(args[1], "none"))
        return ts_raise("RuntimeError", "approximate argument must be either none or tanh.");
    return rt_pw_simple(&rt_pw_gelu, args, 1, outs);
}
KERNEL(hardtanh) { return with_params(&rt_pw_hardtanh, args[0], args + 1, 2, outs); }
KERNEL(elu) { return with_params(&rt_pw_elu, args[0], args + 1, 3, outs); }
KERNEL(celu) {
    double alpha = rt_as_double(args[1]);
    if (alpha == 0)
        return ts_raise("RuntimeError", "ZeroDivisionError: alpha cannot be 0 for CELU");
    rt_value numbers[3] = {rt_float(alpha), rt_float(1), rt_float(1 / alpha)};
    return with_params(&rt_pw_elu, args[0], numbers, 3, outs);
}
KERNEL(selu) {
    rt_value numbers[3] = {rt_float(1.6732632423543772848170429916717),
                           rt_float(1.0507009873554804934193349852946), rt_float(1)};
    return with_params(&rt_pw_elu, args[0], numbers, 3, outs);
}
KERNEL(leaky_relu) { return with_params(&rt_pw_leaky_relu, args[0], args + 1, 1, outs); }
KERNEL(softplus) { return with_params(&rt_pw_softplus, args[0], args + 1, 2, outs); }
KERNEL(softshrink) {
    if (rt_as_double(args[1]) < 0)
        return ts_raise("RuntimeError", "lambda must be greater or equal to 0, but found to be %g.",
                        rt_as_double(args[1]));
    return with_params(&rt_pw_softshrink, args[0], args + 1, 1, outs);
}
KERNEL(hardshrink) { return with_params(&rt_pw_hardshrink, args[0], args + 1, 1, outs); }
KERNEL(threshold) { return with_params(&rt_pw_threshold, args[0], args + 1, 2, outs); }

KERNEL(round_decimals) {
    int64_t decimals = rt_as_int(args[1]);
    if (decimals == 0)
        return rt_pw_simple(&rt_pw_round, args, 1, outs);
    rt_value numbers[2] = {rt_float(pow(10, fabs((double)decimals))), rt_int(decimals < 0)};
    return with_params(&rt_pw_round_decimals, args[0], numbers, 2, outs);
}

/* The largest finite value of a floating dtype. */
static double largest(rt_dtype dtype) {
    switch ((int)rt_dtype_real(dtype)) {
    case RT_float16:
        return 65504.0;
    case RT_bfloat16:
        return 3.38953138925153547590470800371487866880e+38;
    case RT_float64:
        return 0x1.fffffffffffffp1023;
    default:
        return 0x1.fffffep127;
    }
}

KERNEL(nan_to_num) {
    rt_tensor *t;
    TS_TRY(rt_need_tensor(args[0], &t));
    double top = largest(rt_dtype_of(t));
    rt_value numbers[3] = {rt_is_none(args[1]) ? rt_float(0) : args[1],
                           rt_is_none(args[2]) ? rt_float(top) : args[2],
                           rt_is_none(args[3]) ? rt_float(-top) : args[3]};
    return with_params(&rt_pw_nan_to_num, args[0], numbers, 3, outs);
}

KERNEL(where) {
    rt_tensor *condition;
    TS_TRY(rt_need_tensor(args[0], &condition));
    if (condition->dtype != RT_bool && condition->dtype != RT_uint8)
        return ts_raise("RuntimeError",
                        "where expected condition to be a boolean tensor, but got "
                        "a tensor with dtype %s",
                        rt_dtype_message_name(rt_dtype_of(condition)));
    rt_pw_call call = {.kernel = &rt_pw_where,
                       .operands = {args[0], args[1], args[2]},
                       .count = 3,
                       .has_condition = true,
                       .compute = RT_DTYPE_UNKNOWN,
                       .result = RT_DTYPE_UNKNOWN};
    return rt_pw_run(&call, outs);
}

KERNEL(masked_fill) {
    rt_tensor *self, *mask;
    TS_TRY(rt_need_tensor(args[0], &self));
    TS_TRY(rt_need_tensor(args[1], &mask));
    if (mask->dtype != RT_bool)
        return ts_raise("RuntimeError",
                        "masked_fill_ only supports boolean masks, but got mask "
                        "with dtype %s",
                        rt_dtype_message_name(rt_dtype_of(mask)));
    if (args[2].tag == RT_TAG_TENSOR && args[2].as.tensor->rank > 0)
        return ts_raise("RuntimeError",
                        "masked_fill_ only supports a 0-dimensional value tensor, "
                        "but got tensor with %d dimension(s).",
                        args[2].as.tensor->rank);
    if (args[2].tag == RT_TAG_TENSOR)
        TS_TRY(rt_check_element_fits(args[2].as.tensor, rt_dtype_of(self)));
    rt_pw_call call = {.kernel = &rt_pw_where,
                       .operands = {args[1], args[2], args[0]},
                       .count = 3,
                       .compute = rt_dtype_of(self),
                       .result = RT_DTYPE_UNKNOWN};
    return rt_pw_run(&call, outs);
}

KERNEL(clamp) {
    bool has_low = !rt_is_none(args[1]), has_high = !rt_is_none(args[2]);
    rt_value operands[3] = {args[0], args[1], args[2]};
    if (has_low && has_high)
        return rt_pw_simple(&rt_pw_clamp, operands, 3, outs);
    if (has_low)
        return rt_pw_simple(&rt_pw_maximum, operands, 2, outs);
    if (has_high) {
        operands[1] = args[2];
        return rt_pw_simple(&rt_pw_minimum, operands, 2, outs);
    }
    return ts_raise("RuntimeError", "torch.clamp: At least one of 'min' or 'max' must not be None");
}

KERNEL(lerp) {
    rt_tensor *self, *end;
    TS_TRY(rt_need_tensor(args[0], &self));
    TS_TRY(rt_need_tensor(args[1], &end));
    if (self->dtype != end->dtype)
        return ts_raise("RuntimeError", "expected dtype %s for `end` but got dtype %s",
                        rt_dtype_name(rt_dtype_of(self)), rt_dtype_name(rt_dtype_of(end)));
    rt_pw_call call = {.kernel = &rt_pw_lerp,
                       .operands = {args[0], args[1], args[2]},
                       .count = 3,
                       .compute = rt_dtype_of(self),
                       .result = RT_DTYPE_UNKNOWN};
    return rt_pw_run(&call, outs);
}

static ts_status add_product(const rt_pw_kernel *kernel, const rt_value *args, rt_value *out) {
    rt_pw_call call = {.kernel = kernel,
                       .operands = {args[0], args[1], args[2]},
                       .count = 3,
                       .compute = RT_DTYPE_UNKNOWN,
                       .result = RT_DTYPE_UNKNOWN};
    rt_pw_set_param(&call.params, 0, args[3]);
    return rt_pw_run(&call, out);
}

KERNEL(addcmul) { return add_product(&rt_pw_addcmul, args, outs); }
KERNEL(addcdiv) {
    if (is_integral_value(args[1]) && is_integral_value(args[2]))
        return ts_raise("RuntimeError",
                        "Integer division with addcdiv is no longer supported, and in a future "
                        "release addcdiv will perform a true division of tensor1 and tensor2.");
    return add_product(&rt_pw_addcdiv, args, outs);
}

KERNEL(prelu) {
    rt_tensor *self, *weight, *shaped;
    TS_TRY(rt_need_tensor(args[0], &self));
    TS_TRY(rt_need_tensor(args[1], &weight));
    if (weight->element_count == 1 || self->rank < 2) {
        if (weight->element_count != 1)
            return ts_raise("RuntimeError",
                            "Mismatch of parameter numbers and input channel size. Found parameter "
                            "numbers = %lld and channel size = 1.",
                            (long long)weight->element_count);
        TS_TRY(rt_tensor_alias(weight, 0, NULL, NULL, 0, &shaped));
    } else {
        int64_t sizes[RT_MAX_RANK], strides[RT_MAX_RANK];
        for (int d = 0; d < self->rank - 1; d++) {
            sizes[d] = d ? 1 : weight->element_count;
            strides[d] = d ? 1 : weight->strides[0];
        }
        if (weight->rank != 1 || weight->sizes[0] != self->sizes[1])
            return ts_raise("RuntimeError",
                            "Mismatch of parameter numbers and input channel size. Found parameter "
                            "numbers = %lld and channel size = %lld.",
                            (long long)weight->element_count, (long long)self->sizes[1]);
        TS_TRY(rt_tensor_alias(weight, 0, sizes, strides, self->rank - 1, &shaped));
    }
    rt_value operands[2] = {args[0], rt_from_tensor(shaped)};
    ts_status status = rt_pw_simple(&rt_pw_prelu, operands, 2, outs);
    rt_tensor_release(shaped);
    return status;
}

/* ---- complex ---- */

/* Real and imaginary parts: a view into the pairs. */
static ts_status part_of(const rt_tensor *t, int part, rt_value *out) {
    rt_dtype real = rt_dtype_real(rt_dtype_of(t));
    int64_t strides[RT_MAX_RANK];
    for (int d = 0; d < t->rank; d++)
        strides[d] = t->strides[d] * 2;
    rt_tensor *view;
    TS_TRY(rt_tensor_view(t->storage, real, rt_tensor_offset(t) * 2 + part, t->sizes, strides,
                          t->rank, &view));
    *out = rt_from_tensor(view);
    return NULL;
}

KERNEL(real) {
    rt_tensor *t;
    TS_TRY(rt_need_tensor(args[0], &t));
    if (rt_dtype_is_complex(rt_dtype_of(t)))
        return part_of(t, 0, outs);
    outs[0] = rt_retain(args[0]);
    return NULL;
}

KERNEL(imag) {
    rt_tensor *t;
    TS_TRY(rt_need_tensor(args[0], &t));
    if (!rt_dtype_is_complex(rt_dtype_of(t)))
        return ts_raise("RuntimeError", "imag is not implemented for tensors with non-complex "
                                        "dtypes.");
    return part_of(t, 1, outs);
}

KERNEL(view_as_real) {
    rt_tensor *t, *view;
    TS_TRY(rt_need_tensor(args[0], &t));
    if (!rt_dtype_is_complex(rt_dtype_of(t)))
        return ts_raise("RuntimeError", "view_as_real is only supported for complex tensors");
    int64_t sizes[RT_MAX_RANK + 1], strides[RT_MAX_RANK + 1];
    for (int d = 0; d < t->rank; d++) {
        sizes[d] = t->sizes[d];
        strides[d] = t->strides[d] * 2;
    }
    sizes[t->rank] = 2;
    strides[t->rank] = 1;
    TS_TRY(rt_tensor_view(t->storage, rt_dtype_real(rt_dtype_of(t)), rt_tensor_offset(t) * 2, sizes,
                          strides, t->rank + 1, &view));
    outs[0] = rt_from_tensor(view);
    return NULL;
}

KERNEL(view_as_complex) {
    rt_tensor *t, *view;
    TS_TRY(rt_need_tensor(args[0], &t));
    if (!rt_dtype_is_float(rt_dtype_of(t)) || t->dtype == RT_bfloat16)
        return ts_raise("RuntimeError",
                        "view_as_complex is only supported for half, float and "
                        "double tensors, but got a tensor of scalar type: %s",
                        rt_dtype_message_name(rt_dtype_of(t)));
    if (t->rank == 0 || t->sizes[t->rank - 1] != 2)
        return ts_raise("RuntimeError", "Tensor must have a last dimension of size 2");
    if (t->strides[t->rank - 1] != 1)
        return ts_raise("RuntimeError", "Tensor must have a last dimension with stride 1");
    int64_t strides[RT_MAX_RANK];
    for (int d = 0; d < t->rank - 1; d++) {
        if (t->strides[d] % 2 && t->sizes[d] > 1)
            return ts_raise("RuntimeError",
                            "Tensor must have a stride divisible by 2 for all but last dimension");
        strides[d] = t->strides[d] / 2;
    }
    if (rt_tensor_offset(t) % 2)
        return ts_raise("RuntimeError", "Tensor must have a storage_offset divisible by 2");
    TS_TRY(rt_tensor_view(t->storage, rt_dtype_complex(rt_dtype_of(t)), rt_tensor_offset(t) / 2,
                          t->sizes, strides, t->rank - 1, &view));
    outs[0] = rt_from_tensor(view);
    return NULL;
}

/* Conjugation is done at once: no tensor is lazily conjugated. */
KERNEL(conj) {
    rt_tensor *t;
    TS_TRY(rt_need_tensor(args[0], &t));
    if (rt_dtype_is_complex(rt_dtype_of(t)))
        return rt_pw_simple(&rt_pw_conj, args, 1, outs);
    outs[0] = rt_retain(args[0]);
    return NULL;
}

KERNEL(conj_physical) { return rt_pw_simple(&rt_pw_conj, args, 1, outs); }

KERNEL(same) {
    outs[0] = rt_retain(args[0]);
    return NULL;
}

static ts_status pairs(const rt_value *args, bool is_polar, rt_value *out) {
    rt_tensor *a, *b, *result;
    TS_TRY(rt_need_tensor(args[0], &a));
    TS_TRY(rt_need_tensor(args[1], &b));
    rt_dtype dtype = rt_dtype_of(a);
    if (dtype != rt_dtype_of(b))
        return ts_raise("RuntimeError",
                        "Expected object of scalar type %s but got scalar type %s "
                        "for second argument",
                        rt_dtype_message_name(dtype), rt_dtype_message_name(rt_dtype_of(b)));
    if (!rt_dtype_is_float(dtype) || dtype == RT_bfloat16)
        return ts_raise("RuntimeError",
                        "Expected both inputs to be Half, Float or Double tensors but got %s and "
                        "%s",
                        rt_dtype_message_name(dtype), rt_dtype_message_name(dtype));
    int64_t sizes[RT_MAX_RANK];
    int rank;
    TS_TRY(rt_broadcast(a->sizes, a->rank, b->sizes, b->rank, sizes, &rank));
    TS_TRY(rt_tensor_make(rt_dtype_complex(dtype), sizes, rank, &result));
    rt_loop loop;
    rt_loop_init(&loop, sizes, rank);
    rt_loop_add(&loop, result);
    rt_loop_add(&loop, a);
    rt_loop_add(&loop, b);
    for (rt_loop_start(&loop); loop.is_running; rt_loop_next(&loop))
        for (int64_t i = 0; i < loop.inner_count; i++) {
            double x = rt_load_double(dtype, loop.data[1] + i * loop.inner_strides[1]);
            double y = rt_load_double(dtype, loop.data[2] + i * loop.inner_strides[2]);
            rt_complex128 c = {is_polar ? x * cos(y) : x, is_polar ? x * sin(y) : y};
            rt_store_complex(rt_dtype_of(result), loop.data[0] + i * loop.inner_strides[0], c);
        }
    *out = rt_from_tensor(result);
    return NULL;
}

KERNEL(complex) { return pairs(args, false, outs); }
KERNEL(polar) { return pairs(args, true, outs); }

KERNEL(frexp) {
    rt_tensor *t, *mantissa, *exponent;
    TS_TRY(rt_need_tensor(args[0], &t));
    if (!rt_dtype_is_float(rt_dtype_of(t)))
        return ts_raise("RuntimeError", "torch.frexp() only supports floating-point dtypes");
    TS_TRY(rt_tensor_make(rt_dtype_of(t), t->sizes, t->rank, &mantissa));
    ts_status status = rt_tensor_make(RT_int32, t->sizes, t->rank, &exponent);
    if (status) {
        rt_tensor_release(mantissa);
        return status;
    }
    rt_loop loop;
    rt_loop_init(&loop, t->sizes, t->rank);
    rt_loop_add(&loop, mantissa);
    rt_loop_add(&loop, exponent);
    rt_loop_add(&loop, t);
    for (rt_loop_start(&loop); loop.is_running; rt_loop_next(&loop))
        for (int64_t i = 0; i < loop.inner_count; i++) {
            int e = 0;
            double m =
                frexp(rt_load_double(rt_dtype_of(t), loop.data[2] + i * loop.inner_strides[2]), &e);
            rt_store_double(rt_dtype_of(t), loop.data[0] + i * loop.inner_strides[0], m);
            rt_store_int(RT_int32, loop.data[1] + i * loop.inner_strides[1], e);
        }
    outs[0] = rt_from_tensor(mantissa);
    outs[1] = rt_from_tensor(exponent);
    return NULL;
}

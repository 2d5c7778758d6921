/* runtime/ops/pointwise.h - the reference runner of elementwise operators.
 *
 * An operator is at most four functions over blocks of a work type (element.h); the runner
 * promotes, broadcasts, converts and walks the memory. Contiguous float32, float64 and int64
 * operands reach the block functions without a copy. */
#ifndef RUNTIME_OPS_POINTWISE_H
#define RUNTIME_OPS_POINTWISE_H

#include "runtime/ops/tensor_ops.h"

/* Arguments that are no operands, in every work type, and what a block wants to say. */
typedef struct rt_pw_params {
    double d[4];
    int64_t i[4];
    rt_complex128 c[2];
    rt_dtype dtype;    /* the common dtype */
    const char *raise; /* a block sets it: RuntimeError of that text */
} rt_pw_params;

typedef void (*rt_pw_block)(void *out, const void *const *in, int64_t n, rt_pw_params *params);

typedef enum rt_pw_result {
    RT_PW_SAME,  /* the common dtype */
    RT_PW_FLOAT, /* the same, integers compute in float32 */
    RT_PW_BOOL,
    RT_PW_REAL, /* the real dtype of a complex one */
    RT_PW_FLOAT_REAL
} rt_pw_result;

typedef struct rt_pw_kernel {
    const char *name;
    rt_pw_result result;
    rt_pw_block blocks[4]; /* by rt_work; NULL: not implemented for that category */
} rt_pw_kernel;

enum { RT_PW_OPERANDS = 4 };

typedef struct rt_pw_call {
    const rt_pw_kernel *kernel;
    rt_value operands[RT_PW_OPERANDS]; /* tensors or numbers, borrowed */
    int count;
    bool has_condition; /* operand 0 has no part in the promotion */
    rt_dtype compute;   /* UNKNOWN: by promotion */
    rt_dtype result;    /* UNKNOWN: by the kernel's rule */
    rt_tensor *into;    /* NULL: a new tensor; else written (right shape and dtype) */
    rt_pw_params params;
} rt_pw_call;

ts_status rt_pw_run(rt_pw_call *call, rt_value *out) TS_WARN_UNUSED;
/* The common cases: the first 1, 2, 3 arguments are the operands. */
ts_status rt_pw_simple(const rt_pw_kernel *kernel, const rt_value *operands, int count,
                       rt_value *out) TS_WARN_UNUSED;
void rt_pw_set_param(rt_pw_params *params, int at, rt_value number);

#define RT_PW_KERNELS(X)                                                                           \
    X(abs)                                                                                         \
    X(neg) X(sign) X(sgn) X(reciprocal) X(square) X(sqrt) X(rsqrt) X(exp) X(exp2) X(expm1) X(log)  \
        X(log2) X(log10) X(log1p) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(  \
            tanh) X(asinh) X(acosh) X(atanh) X(erf) X(erfc) X(erfinv) X(lgamma) X(digamma)         \
            X(polygamma) X(sigmoid) X(logit) X(relu) X(relu6) X(gelu) X(gelu_tanh) X(silu) X(      \
                mish) X(hardswish) X(hardsigmoid) X(hardtanh) X(elu) X(leaky_relu) X(softplus)     \
                X(softshrink) X(hardshrink) X(threshold) X(log_sigmoid) X(nan_to_num) X(sinc) X(   \
                    trunc) X(frac) X(floor) X(ceil) X(round) X(round_decimals) X(isnan) X(isinf)   \
                    X(isfinite) X(isposinf) X(isneginf) X(signbit) X(logical_not) X(               \
                        bitwise_not) X(deg2rad) X(rad2deg) X(angle) X(conj) X(copy) X(add)         \
                        X(add_scaled) X(sub) X(sub_scaled) X(mul) X(div) X(div_floor) X(           \
                            div_trunc) X(remainder) X(fmod) X(pow) X(pow_each) X(eq) X(ne) X(lt) X(le) X(gt)   \
                            X(ge) X(logical_and) X(logical_or) X(logical_xor) X(bitwise_and)       \
                                X(bitwise_or) X(bitwise_xor) X(shift_left) X(shift_right)          \
                                    X(maximum) X(minimum) X(fmax) X(fmin) X(atan2) X(              \
                                        hypot) X(copysign) X(nextafter) X(heaviside) X(gcd) X(lcm) \
                                        X(ldexp) X(xlogy) X(xlog1py) X(logaddexp) X(logaddexp2) X( \
                                            igamma) X(igammac) X(zeta) X(i0) X(i0e) X(i1) X(i1e)   \
                                            X(bessel_j0) X(bessel_j1) X(bessel_y0) X(bessel_y1)    \
                                                X(bessel_k0) X(bessel_k1) X(scaled_bessel_k0)      \
                                                    X(scaled_bessel_k1)                            \
                                                        X(spherical_bessel_j0) X(airy_ai) X(erfcx) \
                                                            X(ndtri) X(where) X(clamp) X(lerp)     \
                                                                X(addcmul) X(addcdiv) X(prelu)

#define X(name) extern const rt_pw_kernel rt_pw_##name;
RT_PW_KERNELS(X)
#undef X

/* log(exp(a) + exp(b)), in pointwise_kernels.c */
rt_complex128 rt_complex_logaddexp(rt_complex128 a, rt_complex128 b);

/* special_math.c */
double rt_digamma(double x);
double rt_zeta(double x, double q); /* Hurwitz */
double rt_polygamma(int64_t n, double x, bool is_double);
double rt_erfinv(double x);
double rt_bessel_i0(double x);
double rt_bessel_i0e(double x); /* times exp(-|x|) */
double rt_bessel_i1(double x);
double rt_bessel_i1e(double x);
double rt_bessel_j(int64_t order, double x); /* order 0 or 1 */
double rt_bessel_y(int64_t order, double x);
double rt_bessel_k(int64_t order, double x);
double rt_bessel_ke(int64_t order, double x); /* times exp(x) */
double rt_spherical_j0(double x);
double rt_airy_ai(double x);
double rt_erfcx(double x);
double rt_ndtri(double p);
double rt_igamma(double a, double x, bool is_upper);

#endif

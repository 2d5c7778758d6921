/* runtime/ops/pointwise_kernels.c - block functions of the elementwise operators, and their table. */
#include "runtime/ops/pointwise.h"

#include <math.h>
/* last: its macro `complex` is a member's name in value.h */
#include <complex.h>

#define PI 3.14159265358979323846

/* ---- reals, twice ---- */

/* x as an element of the common dtype holds it: between two steps of some kernels PyTorch keeps
 * 16-bit floats in their own dtype. */
static float storedf(float x, const rt_pw_params *p) { return rt_round_short(p->dtype, x); }
static double stored(double x, const rt_pw_params *p) {
    (void)p;
    return x;
}

/* The next element of the common dtype, from x towards y. */
static float next_elementf(float x, float y, const rt_pw_params *p) {
    bool is_half = p->dtype == RT_float16;
    if (!rt_dtype_is_short(p->dtype) || x != x || y != y || x == y)
        return nextafterf(x, y);
    uint16_t bits = is_half ? rt_half_from_float(x) : rt_bfloat16_from_float(x);
    if (x == 0)
        bits = y > 0 ? 1 : 0x8001;
    else
        bits = (uint16_t)((x < y) == (x > 0) ? bits + 1 : bits - 1);
    return is_half ? rt_half_to_float(bits) : rt_bfloat16_to_float(bits);
}
static double next_element(double x, double y, const rt_pw_params *p) {
    (void)p;
    return nextafter(x, y);
}

#define REAL_HELPERS(T, name_logit, name_clip, name_floor_div, name_mod, name_max, f_log, f_fmod,  \
                     f_floor, f_copysign, f_stored)                                                \
    static T name_logit(T x, const rt_pw_params *p) {                                              \
        return f_log(f_stored(x / f_stored((T)1 - x, p), p));                                      \
    }                                                                                              \
    static T name_clip(T x, T low, T high) {                                                       \
        if (x != x)                                                                                \
            return x;                                                                              \
        if (low != low || high != high)                                                            \
            return low != low ? low : high;                                                        \
        T raised = x < low ? low : x;                                                              \
        return raised > high ? high : raised;                                                      \
    }                                                                                              \
    static T name_mod(T a, T b) {                                                                  \
        T mod = f_fmod(a, b);                                                                      \
        return mod != 0 && (b < 0) != (mod < 0) ? mod + b : mod;                                   \
    }                                                                                              \
    /* div_floor_floating of c10/util/generic_math.h */                                            \
    static T name_floor_div(T a, T b) {                                                            \
        if (b == 0)                                                                                \
            return a / b;                                                                          \
        T mod = f_fmod(a, b), div = (a - mod) / b;                                                 \
        if (mod != 0 && (b < 0) != (mod < 0))                                                      \
            div -= (T)1;                                                                           \
        if (div == 0)                                                                              \
            return f_copysign((T)0, a / b);                                                        \
        T floored = f_floor(div);                                                                  \
        return div - floored > (T)0.5 ? floored + (T)1 : floored;                                  \
    }                                                                                              \
    static T name_max(T a, T b) { return a != a || a > b ? a : b; }

REAL_HELPERS(float, logitf, clipf, floor_divf, py_modf, maxnanf, logf, fmodf, floorf, copysignf,
             storedf)
REAL_HELPERS(double, logit, clip, floor_div, py_mod, maxnan, log, fmod, floor, copysign, stored)

#define BLOCK_HEAD(T)                                                                              \
    T *restrict out = v_out;                                                                       \
    T d0 = (T)p->d[0], d1 = (T)p->d[1], d2 = (T)p->d[2];                                           \
    (void)d0, (void)d1, (void)d2;

#define REAL1(name, expr)                                                                          \
    static void BLOCK_NAME(name)(void *v_out, const void *const *in, int64_t n, rt_pw_params *p) { \
        BLOCK_HEAD(T)                                                                              \
        const T *a = in[0];                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T x = a[i];                                                                            \
            out[i] = (T)(expr);                                                                    \
        }                                                                                          \
    }
#define REAL2(name, expr)                                                                          \
    static void BLOCK_NAME(name)(void *v_out, const void *const *in, int64_t n, rt_pw_params *p) { \
        BLOCK_HEAD(T)                                                                              \
        const T *a = in[0], *b = in[1];                                                            \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T x = a[i], y = b[i];                                                                  \
            out[i] = (T)(expr);                                                                    \
        }                                                                                          \
    }
#define REAL3(name, expr)                                                                          \
    static void BLOCK_NAME(name)(void *v_out, const void *const *in, int64_t n, rt_pw_params *p) { \
        BLOCK_HEAD(T)                                                                              \
        const T *a = in[0], *b = in[1], *c = in[2];                                                \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T x = a[i], y = b[i], z = c[i];                                                        \
            out[i] = (T)(expr);                                                                    \
        }                                                                                          \
    }

#define T float
#define R(function) function##f
#define BLOCK_NAME(name) f_##name
#include "runtime/ops/pointwise_real.def"
#undef T
#undef R
#undef BLOCK_NAME
#define T double
#define R(function) function
#define BLOCK_NAME(name) d_##name
#include "runtime/ops/pointwise_real.def"
#undef T
#undef R
#undef BLOCK_NAME

/* ---- integers and bool: 64-bit arithmetic that wraps, the store narrows ---- */

static int64_t wrap_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static int64_t wrap_sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static int64_t wrap_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

static bool zero_divisor(int64_t y, rt_pw_params *p) {
    if (y == 0)
        p->raise = "ZeroDivisionError";
    return y == 0;
}

static int64_t int_div_trunc(int64_t x, int64_t y, rt_pw_params *p) {
    if (zero_divisor(y, p))
        return 0;
    return y == -1 ? wrap_sub(0, x) : x / y;
}

static int64_t int_div_floor(int64_t x, int64_t y, rt_pw_params *p) {
    int64_t q = int_div_trunc(x, y, p);
    return y != 0 && y != -1 && x % y != 0 && (x < 0) != (y < 0) ? q - 1 : q;
}

static int64_t int_fmod(int64_t x, int64_t y, rt_pw_params *p) {
    return zero_divisor(y, p) || y == -1 ? 0 : x % y;
}

static int64_t int_mod(int64_t x, int64_t y, rt_pw_params *p) {
    int64_t r = int_fmod(x, y, p);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static int64_t int_pow(int64_t x, int64_t y) {
    if (y < 0)
        return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
    int64_t result = 1;
    for (; y; y >>= 1, x = wrap_mul(x, x))
        if (y & 1)
            result = wrap_mul(result, x);
    return result;
}

static int64_t int_gcd(int64_t x, int64_t y) {
    uint64_t a = x < 0 ? 0 - (uint64_t)x : (uint64_t)x, b = y < 0 ? 0 - (uint64_t)y : (uint64_t)y;
    while (b) {
        uint64_t r = a % b;
        a = b;
        b = r;
    }
    return (int64_t)a;
}

static int64_t int_lcm(int64_t x, int64_t y) {
    int64_t g = int_gcd(x, y);
    int64_t m = g == 0 ? 0 : wrap_mul(x / g, y);
    return m < 0 ? wrap_sub(0, m) : m;
}

static int64_t width_of(const rt_pw_params *p) { return (int64_t)rt_dtype_size(p->dtype) * 8; }

static int64_t int_shift_left(int64_t x, int64_t y, const rt_pw_params *p) {
    return y < 0 || y >= width_of(p) ? 0 : (int64_t)((uint64_t)x << y);
}

static int64_t int_shift_right(int64_t x, int64_t y, const rt_pw_params *p) {
    int64_t last = width_of(p) - (p->dtype == RT_uint8 ? 0 : 1);
    if (y < 0 || y > last)
        y = last;
    if (y > 63)
        y = 63;
    return x < 0 ? ~(~x >> y) : x >> y;
}

static int64_t int_round(int64_t x, const rt_pw_params *p) {
    /* decimals < 0 rounds to a power of ten, half to even, as PyTorch does through double */
    return p->i[1] ? rt_double_to_int(rint((double)x / p->d[0]) * p->d[0]) : x;
}

#define INT1(name, expr)                                                                           \
    static void i_##name(void *v_out, const void *const *in, int64_t n, rt_pw_params *p) {         \
        int64_t *restrict out = v_out;                                                             \
        const int64_t *a = in[0];                                                                  \
        (void)p;                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                          \
            int64_t x = a[i];                                                                      \
            out[i] = (expr);                                                                       \
        }                                                                                          \
    }
#define INT2(name, expr)                                                                           \
    static void i_##name(void *v_out, const void *const *in, int64_t n, rt_pw_params *p) {         \
        int64_t *restrict out = v_out;                                                             \
        const int64_t *a = in[0], *b = in[1];                                                      \
        (void)p;                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                          \
            int64_t x = a[i], y = b[i];                                                            \
            out[i] = (expr);                                                                       \
        }                                                                                          \
    }
#define INT3(name, expr)                                                                           \
    static void i_##name(void *v_out, const void *const *in, int64_t n, rt_pw_params *p) {         \
        int64_t *restrict out = v_out;                                                             \
        const int64_t *a = in[0], *b = in[1], *c = in[2];                                          \
        (void)p;                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                          \
            int64_t x = a[i], y = b[i], z = c[i];                                                  \
            out[i] = (expr);                                                                       \
        }                                                                                          \
    }

INT1(abs, x < 0 ? wrap_sub(0, x) : x)
INT1(neg, wrap_sub(0, x))
INT1(sign, (x > 0) - (x < 0))
INT1(square, wrap_mul(x, x))
INT1(relu, x > 0 ? x : 0)
INT1(relu6, x < 0 ? 0 : x > 6 ? 6 : x)
INT1(hardtanh, x < p->i[0] ? p->i[0] : x > p->i[1] ? p->i[1] : x)
INT1(threshold, x <= p->i[0] ? p->i[1] : x)
INT1(copy, x)
INT1(round_decimals, int_round(x, p))
INT1(zero, ((void)x, 0))
INT1(one, ((void)x, 1))
INT1(signbit, x < 0)
INT1(logical_not, x == 0)
INT1(bitwise_not, p->dtype == RT_bool ? x == 0 : ~x)
INT2(add, wrap_add(x, y))
INT2(add_scaled, wrap_add(x, wrap_mul(p->i[0], y)))
INT2(sub, wrap_sub(x, y))
INT2(sub_scaled, wrap_sub(x, wrap_mul(p->i[0], y)))
INT2(mul, wrap_mul(x, y))
INT2(div_floor, int_div_floor(x, y, p))
INT2(div_trunc, int_div_trunc(x, y, p))
INT2(remainder, int_mod(x, y, p))
INT2(fmod, int_fmod(x, y, p))
INT2(pow, int_pow(x, y))
INT2(eq, x == y)
INT2(ne, x != y)
INT2(lt, x < y)
INT2(le, x <= y)
INT2(gt, x > y)
INT2(ge, x >= y)
INT2(logical_and, x != 0 && y != 0)
INT2(logical_or, x != 0 || y != 0)
INT2(logical_xor, (x != 0) != (y != 0))
INT2(bitwise_and, x & y)
INT2(bitwise_or, x | y)
INT2(bitwise_xor, x ^ y)
INT2(shift_left, int_shift_left(x, y, p))
INT2(shift_right, int_shift_right(x, y, p))
INT2(maximum, x > y ? x : y)
INT2(minimum, x < y ? x : y)
INT2(heaviside, x == 0 ? y : x > 0)
INT2(gcd, int_gcd(x, y))
INT2(lcm, int_lcm(x, y))
INT3(where, x != 0 ? y : z)
INT3(clamp, (x < y ? y : x) > z ? z : (x < y ? y : x))
INT3(addcmul, wrap_add(x, wrap_mul(wrap_mul(p->i[0], y), z)))
INT3(lerp, wrap_add(x, wrap_mul(z, wrap_sub(y, x))))

/* ---- complex ---- */

typedef double complex cplx;

static cplx make(double re, double im) {
    union {
        rt_complex128 pair;
        cplx c;
    } u = {.pair = {re, im}};
    return u.c;
}

static cplx param(const rt_pw_params *p) { return make(p->c[0].re, p->c[0].im); }

/* Products and quotients as PyTorch has them (c10/util/complex.h): C's own recover infinities where
 * these give NaN. */
static cplx times(cplx x, cplx y) {
    double a = creal(x), b = cimag(x), c = creal(y), d = cimag(y);
    return make(a * c - b * d, a * d + b * c);
}

static cplx over(cplx x, cplx y) {
    double a = creal(x), b = cimag(x), c = creal(y), d = cimag(y);
    if (c == 0 && d == 0)
        return make(a / fabs(c), b / fabs(d));
    if (fabs(c) >= fabs(d)) {
        double ratio = d / c, scale = 1 / (c + d * ratio);
        return make((a + b * ratio) * scale, (b - a * ratio) * scale);
    }
    double ratio = c / d, scale = 1 / (c * ratio + d);
    return make((a * ratio + b) * scale, (b * ratio - a) * scale);
}

static cplx complex_sgn(cplx x) {
    double magnitude = cabs(x);
    return magnitude == 0 ? 0 : x / magnitude;
}

static cplx complex_log1p(cplx x) {
    double re = creal(x), im = cimag(x);
    /* |1 + x|^2 = 1 + re * (2 + re) + im^2 keeps what 1 + re would lose */
    return make(0.5 * log1p(re * (2 + re) + im * im), atan2(im, 1 + re));
}

static cplx complex_expm1(cplx x) {
    double re = creal(x), im = cimag(x), half = sin(im / 2);
    double e = expm1(re);
    return make(e * cos(im) - 2 * half * half, (e + 1) * sin(im));
}

rt_complex128 rt_complex_logaddexp(rt_complex128 a, rt_complex128 b) {
    bool swaps = a.re < b.re;
    rt_complex128 high = swaps ? b : a, low = swaps ? a : b;
    if (high.re != high.re || low.re != low.re)
        return (rt_complex128){(double)NAN, (double)NAN};
    if (fabs(high.re) == (double)INFINITY && high.re == low.re && high.im == low.im)
        return high;
    if (low.re == -(double)INFINITY)
        return high;
    cplx top = make(high.re, high.im);
    cplx sum = top + complex_log1p(cexp(make(low.re, low.im) - top));
    return (rt_complex128){creal(sum), cimag(sum)};
}

static cplx complex_logaddexp(cplx x, cplx y) {
    rt_complex128 sum = rt_complex_logaddexp((rt_complex128){creal(x), cimag(x)},
                                             (rt_complex128){creal(y), cimag(y)});
    return make(sum.re, sum.im);
}

static cplx complex_sinc(cplx x) {
    return x == 0 ? 1 : csin(PI * x) / (PI * x);
}

/* Exponents that PyTorch takes apart where they are one number for all. */
static cplx complex_pow(cplx x, cplx y) {
    double n = cimag(y) == 0 ? creal(y) : (double)NAN;
    if (n == 0)
        return 1;
    if (n == 1)
        return x;
    if (n == 2)
        return times(x, x);
    if (n == 3)
        return times(times(x, x), x);
    if (n == 0.5)
        return csqrt(x);
    if (n == -0.5)
        return over(1, csqrt(x));
    if (n == -1)
        return over(1, x);
    if (n == -2)
        return over(1, times(x, x));
    return cpow(x, y);
}

static cplx complex_nan_to_num(cplx x, const rt_pw_params *p) {
    double parts[2] = {creal(x), cimag(x)};
    for (int i = 0; i < 2; i++)
        parts[i] = parts[i] != parts[i]            ? p->d[0]
                   : parts[i] == (double)INFINITY  ? p->d[1]
                   : parts[i] == -(double)INFINITY ? p->d[2]
                                                   : parts[i];
    return make(parts[0], parts[1]);
}

static bool has_nan(cplx x) { return creal(x) != creal(x) || cimag(x) != cimag(x); }
static bool has_inf(cplx x) {
    return fabs(creal(x)) == (double)INFINITY || fabs(cimag(x)) == (double)INFINITY;
}

#define CPLX1(name, expr)                                                                          \
    static void c_##name(void *v_out, const void *const *in, int64_t n, rt_pw_params *p) {         \
        cplx *restrict out = v_out;                                                                \
        const cplx *a = in[0];                                                                     \
        (void)p;                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                          \
            cplx x = a[i];                                                                         \
            out[i] = (expr);                                                                       \
        }                                                                                          \
    }
#define CPLX2(name, expr)                                                                          \
    static void c_##name(void *v_out, const void *const *in, int64_t n, rt_pw_params *p) {         \
        cplx *restrict out = v_out;                                                                \
        const cplx *a = in[0], *b = in[1];                                                         \
        (void)p;                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                          \
            cplx x = a[i], y = b[i];                                                               \
            out[i] = (expr);                                                                       \
        }                                                                                          \
    }
#define CPLX3(name, expr)                                                                          \
    static void c_##name(void *v_out, const void *const *in, int64_t n, rt_pw_params *p) {         \
        cplx *restrict out = v_out;                                                                \
        const cplx *a = in[0], *b = in[1], *c = in[2];                                             \
        (void)p;                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                          \
            cplx x = a[i], y = b[i], z = c[i];                                                     \
            out[i] = (expr);                                                                       \
        }                                                                                          \
    }

CPLX1(abs, cabs(x))
CPLX1(neg, -x)
CPLX1(sgn, complex_sgn(x))
CPLX1(reciprocal, over(1, x))
CPLX1(square, times(x, x))
CPLX1(sqrt, csqrt(x))
CPLX1(rsqrt, over(1, csqrt(x)))
CPLX1(exp, cexp(x))
CPLX1(exp2, cexp(x * 0.69314718055994530942))
CPLX1(expm1, complex_expm1(x))
CPLX1(log, clog(x))
CPLX1(log2, clog(x) * 1.44269504088896340736)
CPLX1(log10, clog(x) * 0.43429448190325182765)
CPLX1(log1p, complex_log1p(x))
CPLX1(sin, csin(x))
CPLX1(cos, ccos(x))
CPLX1(tan, ctan(x))
CPLX1(asin, casin(x))
CPLX1(acos, cacos(x))
CPLX1(atan, catan(x))
CPLX1(sinh, csinh(x))
CPLX1(cosh, ccosh(x))
CPLX1(tanh, ctanh(x))
CPLX1(asinh, casinh(x))
CPLX1(acosh, cacosh(x))
CPLX1(atanh, catanh(x))
CPLX1(sigmoid, over(1, 1 + cexp(-x)))
CPLX1(silu, over(x, 1 + cexp(-x)))
CPLX1(sinc, complex_sinc(x))
CPLX1(nan_to_num, complex_nan_to_num(x, p))
CPLX1(isnan, has_nan(x))
CPLX1(isinf, has_inf(x))
CPLX1(isfinite, !has_nan(x) && !has_inf(x))
CPLX1(logical_not, x == 0)
CPLX1(angle, has_nan(x) ? (double)NAN : carg(x))
CPLX1(conj, conj(x))
CPLX1(copy, x)
CPLX2(add, x + times(1, y)) /* PyTorch multiplies by alpha, also by 1 */
CPLX2(add_scaled, x + times(param(p), y))
CPLX2(sub, x + times(-1, y))
CPLX2(sub_scaled, x + times(-param(p), y))
CPLX2(mul, times(x, y))
CPLX2(div, over(x, y))
CPLX2(pow, complex_pow(x, y))
CPLX2(pow_each, cpow(x, y))
CPLX2(eq, x == y)
CPLX2(ne, x != y)
CPLX2(logical_and, x != 0 && y != 0)
CPLX2(logical_or, x != 0 || y != 0)
CPLX2(logical_xor, (x != 0) != (y != 0))
CPLX2(ldexp, x * cpow(2, y))
CPLX2(logaddexp, complex_logaddexp(x, y))
CPLX2(xlogy, has_nan(y) ? make((double)NAN, (double)NAN) : x == 0 ? 0 : x * clog(y))
CPLX3(where, x != 0 ? y : z)
CPLX3(lerp, cabs(z) < 0.5 ? x + times(z, y - x) : y - times(y - x, 1 - z))
CPLX3(addcmul, x + times(times(param(p), y), z))
CPLX3(addcdiv, x + over(times(param(p), y), z))

/* ---- the table ---- */

/* Which work types an operator has: R reals, I integers, C complex. */
#define ROW_R(name, result)                                                                        \
    const rt_pw_kernel rt_pw_##name = {#name, result, {f_##name, d_##name, NULL, NULL}};
#define ROW_RC(name, result)                                                                       \
    const rt_pw_kernel rt_pw_##name = {#name, result, {f_##name, d_##name, NULL, c_##name}};
#define ROW_RI(name, result, integer)                                                              \
    const rt_pw_kernel rt_pw_##name = {#name, result, {f_##name, d_##name, integer, NULL}};
#define ROW_RIC(name, result, integer)                                                             \
    const rt_pw_kernel rt_pw_##name = {#name, result, {f_##name, d_##name, integer, c_##name}};
#define ROW_I(name, result)                                                                        \
    const rt_pw_kernel rt_pw_##name = {#name, result, {NULL, NULL, i_##name, NULL}};

ROW_RIC(abs, RT_PW_REAL, i_abs)
ROW_RIC(neg, RT_PW_SAME, i_neg)
ROW_RI(sign, RT_PW_SAME, i_sign)
const rt_pw_kernel rt_pw_sgn = {"sgn", RT_PW_SAME, {f_sign, d_sign, i_sign, c_sgn}};
ROW_RC(reciprocal, RT_PW_FLOAT)
ROW_RIC(square, RT_PW_SAME, i_square)
ROW_RC(sqrt, RT_PW_FLOAT)
ROW_RC(rsqrt, RT_PW_FLOAT)
ROW_RC(exp, RT_PW_FLOAT)
ROW_RC(exp2, RT_PW_FLOAT)
ROW_RC(expm1, RT_PW_FLOAT)
ROW_RC(log, RT_PW_FLOAT)
ROW_RC(log2, RT_PW_FLOAT)
ROW_RC(log10, RT_PW_FLOAT)
ROW_RC(log1p, RT_PW_FLOAT)
ROW_RC(sin, RT_PW_FLOAT)
ROW_RC(cos, RT_PW_FLOAT)
ROW_RC(tan, RT_PW_FLOAT)
ROW_RC(asin, RT_PW_FLOAT)
ROW_RC(acos, RT_PW_FLOAT)
ROW_RC(atan, RT_PW_FLOAT)
ROW_RC(sinh, RT_PW_FLOAT)
ROW_RC(cosh, RT_PW_FLOAT)
ROW_RC(tanh, RT_PW_FLOAT)
ROW_RC(asinh, RT_PW_FLOAT)
ROW_RC(acosh, RT_PW_FLOAT)
ROW_RC(atanh, RT_PW_FLOAT)
ROW_R(erf, RT_PW_FLOAT)
ROW_R(erfc, RT_PW_FLOAT)
ROW_R(erfinv, RT_PW_FLOAT)
ROW_R(lgamma, RT_PW_FLOAT)
ROW_R(digamma, RT_PW_FLOAT)
ROW_R(polygamma, RT_PW_FLOAT)
ROW_RC(sigmoid, RT_PW_FLOAT)
ROW_R(logit, RT_PW_FLOAT)
ROW_RI(relu, RT_PW_SAME, i_relu)
ROW_RI(relu6, RT_PW_SAME, i_relu6)
ROW_R(gelu, RT_PW_SAME)
ROW_R(gelu_tanh, RT_PW_SAME)
ROW_RC(silu, RT_PW_SAME)
ROW_R(mish, RT_PW_SAME)
ROW_R(hardswish, RT_PW_SAME)
ROW_R(hardsigmoid, RT_PW_SAME)
ROW_RI(hardtanh, RT_PW_SAME, i_hardtanh)
ROW_R(elu, RT_PW_SAME)
ROW_R(leaky_relu, RT_PW_SAME)
ROW_R(softplus, RT_PW_SAME)
ROW_R(softshrink, RT_PW_SAME)
ROW_R(hardshrink, RT_PW_SAME)
ROW_RI(threshold, RT_PW_SAME, i_threshold)
ROW_R(log_sigmoid, RT_PW_SAME)
ROW_RIC(nan_to_num, RT_PW_SAME, i_copy)
ROW_RC(sinc, RT_PW_FLOAT)
ROW_RI(trunc, RT_PW_SAME, i_copy)
ROW_RI(frac, RT_PW_SAME, i_zero)
ROW_RI(floor, RT_PW_SAME, i_copy)
ROW_RI(ceil, RT_PW_SAME, i_copy)
ROW_RI(round, RT_PW_SAME, i_copy)
ROW_RI(round_decimals, RT_PW_SAME, i_round_decimals)
ROW_RIC(isnan, RT_PW_BOOL, i_zero)
ROW_RIC(isinf, RT_PW_BOOL, i_zero)
ROW_RIC(isfinite, RT_PW_BOOL, i_one)
ROW_RI(isposinf, RT_PW_BOOL, i_zero)
ROW_RI(isneginf, RT_PW_BOOL, i_zero)
ROW_RI(signbit, RT_PW_BOOL, i_signbit)
ROW_RIC(logical_not, RT_PW_BOOL, i_logical_not)
ROW_I(bitwise_not, RT_PW_SAME)
ROW_R(deg2rad, RT_PW_FLOAT)
ROW_R(rad2deg, RT_PW_FLOAT)
ROW_RC(angle, RT_PW_FLOAT_REAL)
const rt_pw_kernel rt_pw_conj = {"conj", RT_PW_SAME, {f_copy, d_copy, i_copy, c_conj}};
ROW_RIC(copy, RT_PW_SAME, i_copy)
ROW_RIC(add, RT_PW_SAME, i_add)
ROW_RIC(add_scaled, RT_PW_SAME, i_add_scaled)
ROW_RIC(sub, RT_PW_SAME, i_sub)
ROW_RIC(sub_scaled, RT_PW_SAME, i_sub_scaled)
ROW_RIC(mul, RT_PW_SAME, i_mul)
ROW_RC(div, RT_PW_FLOAT)
ROW_RI(div_floor, RT_PW_SAME, i_div_floor)
ROW_RI(div_trunc, RT_PW_SAME, i_div_trunc)
ROW_RI(remainder, RT_PW_SAME, i_remainder)
ROW_RI(fmod, RT_PW_SAME, i_fmod)
ROW_RIC(pow, RT_PW_SAME, i_pow)
const rt_pw_kernel rt_pw_pow_each = {"pow", RT_PW_SAME, {f_pow, d_pow, i_pow, c_pow_each}};
ROW_RIC(eq, RT_PW_BOOL, i_eq)
ROW_RIC(ne, RT_PW_BOOL, i_ne)
ROW_RI(lt, RT_PW_BOOL, i_lt)
ROW_RI(le, RT_PW_BOOL, i_le)
ROW_RI(gt, RT_PW_BOOL, i_gt)
ROW_RI(ge, RT_PW_BOOL, i_ge)
ROW_RIC(logical_and, RT_PW_BOOL, i_logical_and)
ROW_RIC(logical_or, RT_PW_BOOL, i_logical_or)
ROW_RIC(logical_xor, RT_PW_BOOL, i_logical_xor)
ROW_I(bitwise_and, RT_PW_SAME)
ROW_I(bitwise_or, RT_PW_SAME)
ROW_I(bitwise_xor, RT_PW_SAME)
ROW_I(shift_left, RT_PW_SAME)
ROW_I(shift_right, RT_PW_SAME)
ROW_RI(maximum, RT_PW_SAME, i_maximum)
ROW_RI(minimum, RT_PW_SAME, i_minimum)
ROW_RI(fmax, RT_PW_SAME, i_maximum)
ROW_RI(fmin, RT_PW_SAME, i_minimum)
ROW_R(atan2, RT_PW_FLOAT)
ROW_R(hypot, RT_PW_SAME)
ROW_R(copysign, RT_PW_FLOAT)
ROW_R(nextafter, RT_PW_SAME)
ROW_RI(heaviside, RT_PW_SAME, i_heaviside)
ROW_I(gcd, RT_PW_SAME)
ROW_I(lcm, RT_PW_SAME)
ROW_RC(ldexp, RT_PW_FLOAT)
ROW_RC(xlogy, RT_PW_FLOAT)
ROW_R(xlog1py, RT_PW_FLOAT)
ROW_RC(logaddexp, RT_PW_FLOAT)
ROW_R(logaddexp2, RT_PW_FLOAT)
ROW_RIC(where, RT_PW_SAME, i_where)
ROW_RI(clamp, RT_PW_SAME, i_clamp)
ROW_RIC(lerp, RT_PW_SAME, i_lerp)
ROW_RIC(addcmul, RT_PW_SAME, i_addcmul)
ROW_RC(addcdiv, RT_PW_SAME)
ROW_R(prelu, RT_PW_SAME)
ROW_R(i0, RT_PW_FLOAT)
ROW_R(i0e, RT_PW_FLOAT)
ROW_R(i1, RT_PW_FLOAT)
ROW_R(i1e, RT_PW_FLOAT)
ROW_R(bessel_j0, RT_PW_FLOAT)
ROW_R(bessel_j1, RT_PW_FLOAT)
ROW_R(bessel_y0, RT_PW_FLOAT)
ROW_R(bessel_y1, RT_PW_FLOAT)
ROW_R(bessel_k0, RT_PW_FLOAT)
ROW_R(bessel_k1, RT_PW_FLOAT)
ROW_R(scaled_bessel_k0, RT_PW_FLOAT)
ROW_R(scaled_bessel_k1, RT_PW_FLOAT)
ROW_R(spherical_bessel_j0, RT_PW_FLOAT)
ROW_R(airy_ai, RT_PW_FLOAT)
ROW_R(erfcx, RT_PW_FLOAT)
ROW_R(ndtri, RT_PW_FLOAT)
ROW_R(zeta, RT_PW_FLOAT)
ROW_R(igamma, RT_PW_SAME)
ROW_R(igammac, RT_PW_SAME)

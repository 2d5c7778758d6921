/* runtime/ops/ref_math.c - the functions of Python's math and cmath on scalars.
 *
 * A NaN or infinity out of an ordinary argument is an error as in math.*: ValueError "math domain
 * error" or OverflowError "math range error". */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/checked.h"
#include "runtime/ops/ref_kernel.h"

#include <complex.h>
#undef complex

static ts_status domain_error(void) { return ts_raise("ValueError", "math domain error"); }
static ts_status range_error(void) { return ts_raise("OverflowError", "math range error"); }

typedef enum overflow_rule { CANNOT_OVERFLOW, CAN_OVERFLOW } overflow_rule;

static ts_status real_function(double x, double r, overflow_rule rule, rt_value *out) {
    if (isnan(r) && !isnan(x))
        return domain_error();
    if (isinf(r) && isfinite(x))
        return rule == CAN_OVERFLOW ? range_error() : domain_error();
    *out = rt_float(r);
    return NULL;
}

static ts_status complex_function(double _Complex x, double _Complex r, rt_value *out) {
    bool was_finite = isfinite(creal(x)) && isfinite(cimag(x));
    if (was_finite && (isinf(creal(r)) || isinf(cimag(r))))
        return creal(x) == 0 && cimag(x) == 0 ? domain_error() : range_error();
    return rt_complex_make(creal(r), cimag(r), out);
}

/* CMPLX of C11, which glibc does not give to clang; x + y * I would turn infinities into nan. */
static double _Complex complex_of(rt_number n) {
    union {
        double parts[2];
        double _Complex whole;
    } z = {{n.f, n.im}};
    return z.whole;
}

#define FUNCTION(name, real, cplx, rule)                                                           \
    KERNEL(math_##name) {                                                                          \
        rt_number x;                                                                               \
        TS_TRY(rt_number_of(args[0], &x));                                                         \
        if (x.kind == NUMBER_COMPLEX)                                                              \
            return complex_function(complex_of(x), cplx(complex_of(x)), outs);                     \
        return real_function(x.f, real(x.f), rule, outs);                                          \
    }

static double _Complex complex_log10(double _Complex z) { return clog(z) / log(10.0); }
static double _Complex no_complex(double _Complex z) { return z; }

FUNCTION(sqrt, sqrt, csqrt, CANNOT_OVERFLOW)
FUNCTION(exp, exp, cexp, CAN_OVERFLOW)
FUNCTION(log, log, clog, CANNOT_OVERFLOW)
FUNCTION(log10, log10, complex_log10, CANNOT_OVERFLOW)
FUNCTION(log2, log2, no_complex, CANNOT_OVERFLOW)
FUNCTION(log1p, log1p, no_complex, CANNOT_OVERFLOW)
FUNCTION(expm1, expm1, no_complex, CAN_OVERFLOW)
FUNCTION(sin, sin, csin, CANNOT_OVERFLOW)
FUNCTION(cos, cos, ccos, CANNOT_OVERFLOW)
FUNCTION(tan, tan, ctan, CANNOT_OVERFLOW)
FUNCTION(asin, asin, casin, CANNOT_OVERFLOW)
FUNCTION(acos, acos, cacos, CANNOT_OVERFLOW)
FUNCTION(atan, atan, catan, CANNOT_OVERFLOW)
FUNCTION(sinh, sinh, csinh, CAN_OVERFLOW)
FUNCTION(cosh, cosh, ccosh, CAN_OVERFLOW)
FUNCTION(tanh, tanh, ctanh, CANNOT_OVERFLOW)
FUNCTION(asinh, asinh, casinh, CANNOT_OVERFLOW)
FUNCTION(acosh, acosh, cacosh, CANNOT_OVERFLOW)
FUNCTION(atanh, atanh, catanh, CANNOT_OVERFLOW)
FUNCTION(erf, erf, no_complex, CANNOT_OVERFLOW)
FUNCTION(erfc, erfc, no_complex, CANNOT_OVERFLOW)
FUNCTION(fabs, fabs, no_complex, CANNOT_OVERFLOW)
FUNCTION(cbrt, cbrt, no_complex, CANNOT_OVERFLOW)

static double to_degrees(double x) { return x * (180.0 / 3.141592653589793238462643383279502884); }
static double to_radians(double x) { return x * (3.141592653589793238462643383279502884 / 180.0); }
FUNCTION(degrees, to_degrees, no_complex, CAN_OVERFLOW)
FUNCTION(radians, to_radians, no_complex, CAN_OVERFLOW)

KERNEL(math_gamma) {
    rt_number x;
    TS_TRY(rt_number_of(args[0], &x));
    if (x.f == -INFINITY || (x.f <= 0 && x.f == floor(x.f)))
        return domain_error();
    return real_function(x.f, tgamma(x.f), CAN_OVERFLOW, outs);
}

KERNEL(math_lgamma) {
    rt_number x;
    TS_TRY(rt_number_of(args[0], &x));
    if (isfinite(x.f) && x.f <= 0 && x.f == floor(x.f))
        return domain_error();
    return real_function(x.f, isinf(x.f) ? INFINITY : lgamma(x.f), CAN_OVERFLOW, outs);
}

KERNEL(math_log_base) {
    rt_number x, base;
    TS_TRY(rt_number_of(args[0], &x));
    TS_TRY(rt_number_of(args[1], &base));
    if (x.kind == NUMBER_COMPLEX || base.kind == NUMBER_COMPLEX)
        return complex_function(complex_of(x), clog(complex_of(x)) / clog(complex_of(base)), outs);
    rt_value numerator, denominator;
    TS_TRY(real_function(x.f, log(x.f), CANNOT_OVERFLOW, &numerator));
    TS_TRY(real_function(base.f, log(base.f), CANNOT_OVERFLOW, &denominator));
    if (denominator.as.f == 0)
        return ts_raise("ZeroDivisionError", "float division by zero");
    outs[0] = rt_float(numerator.as.f / denominator.as.f);
    return NULL;
}

#define FUNCTION2(name, expression)                                                                \
    KERNEL(math_##name) {                                                                          \
        rt_number a, b;                                                                            \
        TS_TRY(rt_number_of(args[0], &a));                                                         \
        TS_TRY(rt_number_of(args[1], &b));                                                         \
        double r = (expression);                                                                   \
        if (isnan(r) && !isnan(a.f) && !isnan(b.f))                                                \
            return domain_error();                                                                 \
        if (isinf(r) && isfinite(a.f) && isfinite(b.f))                                            \
            return range_error();                                                                  \
        outs[0] = rt_float(r);                                                                     \
        return NULL;                                                                               \
    }
/* math.pow knows floats only, and 0 to a negative power is outside its domain. */
KERNEL(math_mathpow) {
    rt_number a, b;
    TS_TRY(rt_number_of(args[0], &a));
    TS_TRY(rt_number_of(args[1], &b));
    double r = pow(a.f, b.f);
    if (isfinite(a.f) && isfinite(b.f) && !isfinite(r))
        return isnan(r) || a.f == 0 ? domain_error() : range_error();
    outs[0] = rt_float(r);
    return NULL;
}

FUNCTION2(fmod, fmod(a.f, b.f))
FUNCTION2(mathremainder, remainder(a.f, b.f))
FUNCTION2(atan2, atan2(a.f, b.f))
FUNCTION2(copysign, copysign(a.f, b.f))
FUNCTION2(hypot, hypot(a.f, b.f))

KERNEL(math_ldexp) {
    int64_t e = args[1].as.i;
    double x = args[0].as.f, r = ldexp(x, e > 100000 ? 100000 : e < -100000 ? -100000 : (int)e);
    return real_function(x, r, CAN_OVERFLOW, outs);
}

KERNEL(math_frexp) {
    int e = 0;
    double m = args[0].as.f;
    if (isfinite(m) && m != 0)
        m = frexp(m, &e);
    outs[0] = rt_float(m);
    outs[1] = rt_int(e);
    return NULL;
}

KERNEL(math_modf) {
    double whole, fraction = modf(args[0].as.f, &whole);
    outs[0] = rt_float(fraction);
    outs[1] = rt_float(whole);
    return NULL;
}

KERNEL(math_polar) {
    rt_number r, angle;
    TS_TRY(rt_number_of(args[0], &r));
    TS_TRY(rt_number_of(args[1], &angle));
    return rt_complex_make(r.f * cos(angle.f), r.f * sin(angle.f), outs);
}

KERNEL(math_angle) {
    rt_number x;
    TS_TRY(rt_number_of(args[0], &x));
    outs[0] = rt_float(isnan(x.f) ? x.f : atan2(x.im, x.f));
    return NULL;
}

KERNEL(math_isnan) {
    rt_number x;
    TS_TRY(rt_number_of(args[0], &x));
    outs[0] = rt_bool(isnan(x.f) || isnan(x.im));
    return NULL;
}

KERNEL(math_isinf) {
    rt_number x;
    TS_TRY(rt_number_of(args[0], &x));
    outs[0] = rt_bool(isinf(x.f) || isinf(x.im));
    return NULL;
}

KERNEL(math_isfinite) {
    rt_number x;
    TS_TRY(rt_number_of(args[0], &x));
    outs[0] = rt_bool(isfinite(x.f) && isfinite(x.im));
    return NULL;
}

/* ---- to whole numbers ---- */

ts_status rt_float_to_int(double f, int64_t *out) {
    if (isnan(f))
        return ts_raise("ValueError", "cannot convert float NaN to integer");
    if (isinf(f))
        return ts_raise("OverflowError", "cannot convert float infinity to integer");
    if (f >= 9223372036854775808.0 || f < -9223372036854775808.0)
        return ts_raise("OverflowError", "Python int too large to convert to C long");
    *out = (int64_t)f;
    return NULL;
}

static ts_status whole(rt_value v, double (*round_it)(double), rt_value *out) {
    rt_number x;
    int64_t i;
    TS_TRY(rt_number_of(v, &x));
    if (x.kind == NUMBER_COMPLEX)
        return ts_raise("TypeError", "must be real number, not complex");
    if (x.kind == NUMBER_INT) {
        *out = rt_int(x.i);
        return NULL;
    }
    TS_TRY(rt_float_to_int(round_it(x.f), &i));
    *out = rt_int(i);
    return NULL;
}

KERNEL(math_ceil) { return whole(args[0], ceil, outs); }
KERNEL(math_floor) { return whole(args[0], floor, outs); }
KERNEL(round_to_int) { return whole(args[0], rint, outs); }

KERNEL(math_round) { /* the registry's row says float */
    rt_number x;
    TS_TRY(rt_number_of(args[0], &x));
    outs[0] = rt_float(rint(x.f));
    return NULL;
}

/* round(x, n): the exact decimal expansion rounded half to even, as CPython's dtoa does. */
KERNEL(round_digits) {
    rt_number x;
    TS_TRY(rt_number_of(args[0], &x));
    int64_t digits = args[1].as.i;
    if (x.kind == NUMBER_INT && digits >= 0) {
        outs[0] = rt_int(x.i);
        return NULL;
    }
    if (x.kind == NUMBER_INT) {
        int64_t unit = 1;
        for (int64_t n = digits; n < 0; n++)
            if (!ts_mul_i64(unit, 10, &unit)) {
                outs[0] = rt_int(0);
                return NULL;
            }
        int64_t r = x.i % unit;
        r = r < 0 ? r + unit : r;
        int64_t base = x.i - r;
        bool up = r > unit - r || (r == unit - r && (base / unit) % 2 != 0);
        outs[0] = rt_int(up ? base + unit : base);
        return NULL;
    }
    if (!isfinite(x.f) || digits > 323) {
        outs[0] = rt_float(x.f);
        return NULL;
    }
    if (digits < -308) {
        outs[0] = rt_float(copysign(0, x.f));
        return NULL;
    }
    if (digits < 0) {
        double unit = pow(10, (double)-digits);
        outs[0] = rt_float(rint(x.f / unit) * unit);
        return NULL;
    }
    char text[1024];
    snprintf(text, sizeof text, "%.*f", (int)digits, x.f);
    outs[0] = rt_float(strtod(text, NULL));
    return NULL;
}

KERNEL(math_gcd) {
    uint64_t a = args[0].as.i < 0 ? 0 - (uint64_t)args[0].as.i : (uint64_t)args[0].as.i;
    uint64_t b = args[1].as.i < 0 ? 0 - (uint64_t)args[1].as.i : (uint64_t)args[1].as.i;
    while (b) {
        uint64_t r = a % b;
        a = b;
        b = r;
    }
    if (a > INT64_MAX)
        return ts_raise("OverflowError", "Python int too large to convert to C long");
    outs[0] = rt_int((int64_t)a);
    return NULL;
}

KERNEL(math_factorial) {
    int64_t n = args[0].as.i, r = 1;
    if (n < 0)
        return ts_raise("ValueError", "factorial() not defined for negative values");
    if (n > 20)
        return ts_raise("OverflowError", "Python int too large to convert to C long");
    for (int64_t i = 2; i <= n; i++)
        r *= i;
    outs[0] = rt_int(r);
    return NULL;
}

KERNEL(math_isqrt) {
    int64_t n = args[0].as.i;
    if (n < 0)
        return ts_raise("ValueError", "isqrt() argument must be nonnegative");
    int64_t r = (int64_t)sqrtl((long double)n);
    while (r > 0 && r > n / r)
        r--;
    while (r + 1 <= n / (r + 1))
        r++;
    outs[0] = rt_int(r);
    return NULL;
}

KERNEL(math_comb) {
    int64_t n = args[0].as.i, k = args[1].as.i, r = 1;
    if (n < 0)
        return ts_raise("ValueError", "n must be a non-negative integer");
    if (k < 0)
        return ts_raise("ValueError", "k must be a non-negative integer");
    if (k > n - k)
        k = n - k;
    if (k < 0)
        r = 0;
    for (int64_t i = 1; i <= k; i++) { /* 62 steps at most before it overflows */
        if (!ts_mul_i64(r, n - k + i, &r))
            return ts_raise("OverflowError", "Python int too large to convert to C long");
        r /= i;
    }
    outs[0] = rt_int(r);
    return NULL;
}

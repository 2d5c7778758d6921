/* runtime/ops/ref_number.c - arithmetic and comparison of Python's numbers.
 *
 * One kernel serves all overloads (int, float, complex, Scalar): the values say what they are.
 * Ints beyond 64 bits raise OverflowError; error texts are CPython 3.11's. */
#include <math.h>

#include "runtime/base/checked.h"
#include "runtime/ops/ref_kernel.h"

ts_status rt_number_of(rt_value v, rt_number *out) {
    *out = (rt_number){.kind = NUMBER_INT};
    if (v.tag == RT_TAG_TENSOR) {
        rt_value item;
        if (v.as.tensor->element_count != 1)
            return ts_raise("ValueError",
                            "only one element tensors can be converted to Python scalars");
        TS_TRY(rt_tensor_item(v.as.tensor, &item));
        ts_status status = rt_number_of(item, out);
        rt_release(item);
        return status;
    }
    switch (v.tag) {
    case RT_TAG_BOOL:
    case RT_TAG_INT:
        out->i = v.as.i;
        out->f = (double)v.as.i;
        return NULL;
    case RT_TAG_FLOAT:
        out->kind = NUMBER_FLOAT;
        out->f = v.as.f;
        return NULL;
    case RT_TAG_COMPLEX:
        out->kind = NUMBER_COMPLEX;
        out->f = v.as.complex->re;
        out->im = v.as.complex->im;
        return NULL;
    default:
        return ts_raise("TypeError", "must be real number, not %s", rt_tag_name(v));
    }
}

static ts_status two_numbers(const rt_value *args, rt_number *a, rt_number *b, rt_number_kind *kind) {
    TS_TRY(rt_number_of(args[0], a));
    TS_TRY(rt_number_of(args[1], b));
    *kind = a->kind > b->kind ? a->kind : b->kind;
    return NULL;
}

static ts_status int_overflow(void) {
    return ts_raise("OverflowError", "Python int too large to convert to C long");
}

KERNEL(number_add) {
    rt_number a, b;
    rt_number_kind kind;
    int64_t i = 0;
    TS_TRY(two_numbers(args, &a, &b, &kind));
    if (kind == NUMBER_COMPLEX)
        return rt_complex_make(a.f + b.f, a.im + b.im, outs);
    if (kind == NUMBER_INT && !ts_add_i64(a.i, b.i, &i))
        return int_overflow();
    outs[0] = kind == NUMBER_INT ? rt_int(i) : rt_float(a.f + b.f);
    return NULL;
}

KERNEL(number_sub) {
    rt_number a, b;
    rt_number_kind kind;
    int64_t i = 0;
    TS_TRY(two_numbers(args, &a, &b, &kind));
    if (kind == NUMBER_COMPLEX)
        return rt_complex_make(a.f - b.f, a.im - b.im, outs);
    if (kind == NUMBER_INT && !ts_sub_i64(a.i, b.i, &i))
        return int_overflow();
    outs[0] = kind == NUMBER_INT ? rt_int(i) : rt_float(a.f - b.f);
    return NULL;
}

KERNEL(number_mul) {
    rt_number a, b;
    rt_number_kind kind;
    int64_t i = 0;
    TS_TRY(two_numbers(args, &a, &b, &kind));
    if (kind == NUMBER_COMPLEX)
        return rt_complex_make(a.f * b.f - a.im * b.im, a.f * b.im + a.im * b.f, outs);
    if (kind == NUMBER_INT && !ts_mul_i64(a.i, b.i, &i))
        return int_overflow();
    outs[0] = kind == NUMBER_INT ? rt_int(i) : rt_float(a.f * b.f);
    return NULL;
}

/* Smith's method, as CPython's _Py_c_quot. */
static ts_status complex_quotient(rt_number a, rt_number b, rt_value *out) {
    double re, im;
    if (b.f == 0 && b.im == 0)
        return ts_raise("ZeroDivisionError", "complex division by zero");
    if (fabs(b.f) >= fabs(b.im)) {
        double ratio = b.im / b.f, denominator = b.f + b.im * ratio;
        re = (a.f + a.im * ratio) / denominator;
        im = (a.im - a.f * ratio) / denominator;
    } else if (fabs(b.im) >= fabs(b.f)) {
        double ratio = b.f / b.im, denominator = b.f * ratio + b.im;
        re = (a.f * ratio + a.im) / denominator;
        im = (a.im * ratio - a.f) / denominator;
    } else {
        re = im = NAN;
    }
    return rt_complex_make(re, im, out);
}

KERNEL(number_div) {
    rt_number a, b;
    rt_number_kind kind;
    TS_TRY(two_numbers(args, &a, &b, &kind));
    if (kind == NUMBER_COMPLEX)
        return complex_quotient(a, b, outs);
    if (b.f == 0)
        return ts_raise("ZeroDivisionError",
                        kind == NUMBER_INT ? "division by zero" : "float division by zero");
    /* long double: the quotient of two 64-bit ints is rounded once, not three times. */
    outs[0] = rt_float(kind == NUMBER_INT ? (double)((long double)a.i / (long double)b.i)
                                          : a.f / b.f);
    return NULL;
}

static int64_t floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return q - (a % b != 0 && (a % b < 0) != (b < 0));
}

static int64_t floor_mod(int64_t a, int64_t b) {
    if (b == -1)
        return 0;
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* CPython's float_divmod. */
static void float_divmod(double a, double b, double *out_div, double *out_mod) {
    double mod = fmod(a, b);
    double div = (a - mod) / b;
    if (mod != 0) {
        if ((b < 0) != (mod < 0)) {
            mod += b;
            div -= 1;
        }
    } else {
        mod = copysign(0, b);
    }
    if (div != 0) {
        double whole = floor(div);
        *out_div = div - whole > 0.5 ? whole + 1 : whole;
    } else {
        *out_div = copysign(0, a / b);
    }
    *out_mod = mod;
}

static ts_status unsupported(const rt_value *args, const char *sign) {
    return ts_raise("TypeError", "unsupported operand type(s) for %s: '%s' and '%s'", sign,
                    rt_tag_name(args[0]), rt_tag_name(args[1]));
}

KERNEL(number_floordiv) {
    rt_number a, b;
    rt_number_kind kind;
    TS_TRY(two_numbers(args, &a, &b, &kind));
    if (kind == NUMBER_COMPLEX)
        return unsupported(args, "//");
    if (kind == NUMBER_INT) {
        if (b.i == 0)
            return ts_raise("ZeroDivisionError", "integer division or modulo by zero");
        if (b.i == -1 && a.i == INT64_MIN)
            return int_overflow();
        outs[0] = rt_int(floor_div(a.i, b.i));
        return NULL;
    }
    if (b.f == 0)
        return ts_raise("ZeroDivisionError", "float floor division by zero");
    double div, mod;
    float_divmod(a.f, b.f, &div, &mod);
    outs[0] = rt_float(div);
    return NULL;
}

KERNEL(number_remainder) {
    rt_number a, b;
    rt_number_kind kind;
    TS_TRY(two_numbers(args, &a, &b, &kind));
    if (kind == NUMBER_COMPLEX)
        return unsupported(args, "%");
    if (kind == NUMBER_INT) {
        if (b.i == 0)
            return ts_raise("ZeroDivisionError", "integer modulo by zero");
        outs[0] = rt_int(floor_mod(a.i, b.i));
        return NULL;
    }
    if (b.f == 0)
        return ts_raise("ZeroDivisionError", "float modulo");
    double div, mod;
    float_divmod(a.f, b.f, &div, &mod);
    outs[0] = rt_float(mod);
    return NULL;
}

KERNEL(number_divmod) {
    rt_number a, b;
    rt_number_kind kind;
    TS_TRY(two_numbers(args, &a, &b, &kind));
    if (kind == NUMBER_COMPLEX)
        return unsupported(args, "divmod()");
    if (kind == NUMBER_INT) {
        if (b.i == 0)
            return ts_raise("ZeroDivisionError", "integer division or modulo by zero");
        if (b.i == -1 && a.i == INT64_MIN)
            return int_overflow();
        outs[0] = rt_int(floor_div(a.i, b.i));
        outs[1] = rt_int(floor_mod(a.i, b.i));
        return NULL;
    }
    if (b.f == 0)
        return ts_raise("ZeroDivisionError", "float divmod()");
    double div, mod;
    float_divmod(a.f, b.f, &div, &mod);
    outs[0] = rt_float(div);
    outs[1] = rt_float(mod);
    return NULL;
}

KERNEL(number_truncdiv) {
    int64_t a = args[0].as.i, b = args[1].as.i;
    if (b == 0)
        return ts_raise("ZeroDivisionError", "integer division or modulo by zero");
    if (b == -1 && a == INT64_MIN)
        return int_overflow();
    outs[0] = rt_int(a / b);
    return NULL;
}

static bool int_power(int64_t base, int64_t exponent, int64_t *out) {
    int64_t result = 1;
    while (exponent > 0) {
        if ((exponent & 1) && !ts_mul_i64(result, base, &result))
            return false;
        exponent >>= 1;
        if (exponent && !ts_mul_i64(base, base, &base))
            return false;
    }
    *out = result;
    return true;
}

static void complex_multiply(rt_number *a, const rt_number *b) {
    double re = a->f * b->f - a->im * b->im;
    a->im = a->f * b->im + a->im * b->f;
    a->f = re;
}

static ts_status complex_power(rt_number a, rt_number b, rt_value *out) {
    if (b.f == 0 && b.im == 0)
        return rt_complex_make(1, 0, out);
    if (a.f == 0 && a.im == 0) {
        if (b.im != 0 || b.f < 0)
            return ts_raise("ZeroDivisionError", "0.0 to a negative or complex power");
        return rt_complex_make(0, 0, out);
    }
    if (b.im == 0 && b.f == floor(b.f) && fabs(b.f) <= 100) {
        rt_number result = {.kind = NUMBER_COMPLEX, .f = 1};
        for (int64_t n = (int64_t)fabs(b.f); n > 0; n >>= 1) {
            if (n & 1)
                complex_multiply(&result, &a);
            complex_multiply(&a, &a);
        }
        if (b.f < 0)
            return complex_quotient((rt_number){.kind = NUMBER_COMPLEX, .f = 1}, result, out);
        return rt_complex_make(result.f, result.im, out);
    }
    double size = hypot(a.f, a.im), length = pow(size, b.f), at = atan2(a.im, a.f);
    double phase = at * b.f;
    if (b.im != 0) {
        length *= exp(-at * b.im);
        phase += b.im * log(size);
    }
    return rt_complex_make(length * cos(phase), length * sin(phase), out);
}

static ts_status zero_to_a_negative(void) {
    return ts_raise("ZeroDivisionError", "0.0 cannot be raised to a negative power");
}

/* The registry's rows give float; a negative base with a fraction gives NaN as there (eager
 * Python's complex result has no place in the static type). */
KERNEL(number_pow) {
    rt_number a, b;
    rt_number_kind kind;
    TS_TRY(two_numbers(args, &a, &b, &kind));
    if (kind == NUMBER_COMPLEX)
        return complex_power(a, b, outs);
    if (a.f == 0 && b.f < 0)
        return zero_to_a_negative();
    int64_t whole;
    if (kind == NUMBER_INT && b.i >= 0 && int_power(a.i, b.i, &whole)) {
        outs[0] = rt_float((double)whole);
        return NULL;
    }
    double r = pow(a.f, b.f);
    if (isinf(r) && isfinite(a.f) && isfinite(b.f))
        return ts_raise("OverflowError", "(34, 'Numerical result out of range')");
    outs[0] = rt_float(r);
    return NULL;
}

KERNEL(number_pow_int) {
    int64_t r;
    if (args[1].as.i < 0 && args[0].as.i == 0)
        return zero_to_a_negative();
    if (args[1].as.i < 0)
        return ts_raise("ValueError", "negative exponent of an int power");
    if (!int_power(args[0].as.i, args[1].as.i, &r))
        return int_overflow();
    outs[0] = rt_int(r);
    return NULL;
}

/* ints give an int where the exponent lets them. */
KERNEL(number_pow_any) {
    rt_number a, b;
    rt_number_kind kind;
    TS_TRY(two_numbers(args, &a, &b, &kind));
    if (kind != NUMBER_INT || b.i < 0)
        return rt_ref_number_pow(context, args, outs);
    int64_t r;
    if (!int_power(a.i, b.i, &r))
        return int_overflow();
    outs[0] = rt_int(r);
    return NULL;
}

KERNEL(number_neg) {
    rt_number a;
    TS_TRY(rt_number_of(args[0], &a));
    if (a.kind == NUMBER_COMPLEX)
        return rt_complex_make(-a.f, -a.im, outs);
    if (a.kind == NUMBER_INT && a.i == INT64_MIN)
        return int_overflow();
    outs[0] = a.kind == NUMBER_INT ? rt_int(-a.i) : rt_float(-a.f);
    return NULL;
}

KERNEL(number_abs) {
    rt_number a;
    TS_TRY(rt_number_of(args[0], &a));
    if (a.kind == NUMBER_INT && a.i == INT64_MIN)
        return int_overflow();
    if (a.kind == NUMBER_INT)
        outs[0] = rt_int(a.i < 0 ? -a.i : a.i);
    else
        outs[0] = rt_float(a.kind == NUMBER_COMPLEX ? hypot(a.f, a.im) : fabs(a.f));
    return NULL;
}

/* ---- comparison ---- */

int rt_number_compare(const rt_number *a, const rt_number *b) {
    if (a->kind == NUMBER_INT && b->kind == NUMBER_INT)
        return (a->i > b->i) - (a->i < b->i);
    if (isnan(a->f) || isnan(b->f))
        return 2;
    if (a->kind != b->kind && a->f == b->f && fabs(a->f) >= 9007199254740992.0) {
        /* The int lost bits on its way to double: compare as ints. */
        double f = a->kind == NUMBER_INT ? b->f : a->f;
        int64_t i = a->kind == NUMBER_INT ? a->i : b->i;
        int c = f >= 9223372036854775808.0 ? -1 : (i > (int64_t)f) - (i < (int64_t)f);
        return a->kind == NUMBER_INT ? c : -c;
    }
    return (a->f > b->f) - (a->f < b->f);
}

static ts_status equal_at(rt_value a, rt_value b, int depth, bool *out) {
    bool is_tensor = a.tag == RT_TAG_TENSOR || b.tag == RT_TAG_TENSOR;
    if (!is_tensor) {
        if (a.tag == RT_TAG_LIST && b.tag == RT_TAG_LIST) {
            *out = false;
            if (depth == 0)
                return ts_raise("RecursionError", "maximum recursion depth exceeded in comparison");
            if (a.as.list->count != b.as.list->count)
                return NULL;
            for (size_t i = 0; i < a.as.list->count; i++) {
                TS_TRY(equal_at(a.as.list->items[i], b.as.list->items[i], depth - 1, out));
                if (!*out)
                    return NULL;
            }
            *out = true;
            return NULL;
        }
        return rt_equal(a, b, out);
    }
    if (a.tag == b.tag && a.as.tensor == b.as.tensor) {
        *out = true;
        return NULL;
    }
    bool fits = (a.tag == RT_TAG_TENSOR || rt_is_number(a)) &&
                (b.tag == RT_TAG_TENSOR || rt_is_number(b));
    if (!fits) {
        *out = false;
        return NULL;
    }
    if ((a.tag == RT_TAG_TENSOR && a.as.tensor->element_count != 1) ||
        (b.tag == RT_TAG_TENSOR && b.as.tensor->element_count != 1))
        return ts_raise("RuntimeError",
                        "Boolean value of Tensor with more than one value is ambiguous");
    rt_number x, y;
    TS_TRY(rt_number_of(a, &x));
    TS_TRY(rt_number_of(b, &y));
    *out = rt_number_compare(&x, &y) == 0 && x.im == y.im;
    return NULL;
}

ts_status rt_equal_or_tensor(rt_value a, rt_value b, bool *out) {
    return equal_at(a, b, 1000, out);
}

typedef enum relation { REL_EQ, REL_NE, REL_LT, REL_LE, REL_GT, REL_GE } relation;

static ts_status relate(const rt_value *args, relation rel, rt_value *out) {
    static const char *const signs[] = {"==", "!=", "<", "<=", ">", ">="};
    int c;
    rt_value a = args[0], b = args[1];
    if (rt_is_number(a) && rt_is_number(b)) {
        rt_number x, y;
        TS_TRY(rt_number_of(a, &x));
        TS_TRY(rt_number_of(b, &y));
        if (rel >= REL_LT && (x.kind == NUMBER_COMPLEX || y.kind == NUMBER_COMPLEX))
            return ts_raise("TypeError", "'%s' not supported between instances of '%s' and '%s'",
                            signs[rel], rt_tag_name(a), rt_tag_name(b));
        c = rt_number_compare(&x, &y);
        if (c == 0 && x.im != y.im)
            c = 2;
    } else if (rel <= REL_NE) {
        bool equal;
        TS_TRY(rt_equal_or_tensor(a, b, &equal));
        c = equal ? 0 : 1;
    } else if (a.tag == RT_TAG_TENSOR || b.tag == RT_TAG_TENSOR) {
        rt_number x, y;
        TS_TRY(rt_number_of(a, &x));
        TS_TRY(rt_number_of(b, &y));
        c = rt_number_compare(&x, &y);
    } else {
        TS_TRY(rt_compare(a, b, &c));
        c = c < 0 ? -1 : c > 0;
    }
    bool r = false;
    switch (rel) {
    case REL_EQ: r = c == 0; break;
    case REL_NE: r = c != 0; break;
    case REL_LT: r = c == -1; break;
    case REL_LE: r = c == -1 || c == 0; break;
    case REL_GT: r = c == 1; break;
    case REL_GE: r = c == 1 || c == 0; break;
    }
    *out = rt_bool(r);
    return NULL;
}

KERNEL(value_eq) { return relate(args, REL_EQ, outs); }
KERNEL(value_ne) { return relate(args, REL_NE, outs); }
KERNEL(value_lt) { return relate(args, REL_LT, outs); }
KERNEL(value_le) { return relate(args, REL_LE, outs); }
KERNEL(value_gt) { return relate(args, REL_GT, outs); }
KERNEL(value_ge) { return relate(args, REL_GE, outs); }

ts_status rt_less(rt_value a, rt_value b, bool *out) {
    rt_value pair[2] = {a, b}, r = rt_bool(false);
    TS_TRY(relate(pair, REL_LT, &r));
    *out = r.as.i != 0;
    return NULL;
}

KERNEL(value_min) { /* the second where it is smaller: NaN rules fall out as in Python */
    bool less;
    TS_TRY(rt_less(args[1], args[0], &less));
    outs[0] = rt_retain(args[less ? 1 : 0]);
    return NULL;
}

KERNEL(value_max) {
    bool less;
    TS_TRY(rt_less(args[0], args[1], &less));
    outs[0] = rt_retain(args[less ? 1 : 0]);
    return NULL;
}

/* Rows of an int and a float say float. */
static ts_status number_extreme(const rt_value *args, bool want_max, rt_value *out) {
    rt_number a, b;
    rt_number_kind kind;
    TS_TRY(two_numbers(args, &a, &b, &kind));
    int c = rt_number_compare(&a, &b);
    bool second = want_max ? c == -1 : c == 1;
    *out = kind == NUMBER_INT ? args[second ? 1 : 0] : rt_float(second ? b.f : a.f);
    return NULL;
}

KERNEL(number_min) { return number_extreme(args, false, outs); }
KERNEL(number_max) { return number_extreme(args, true, outs); }

KERNEL(value_is) {
    outs[0] = rt_bool(rt_is(args[0], args[1]));
    return NULL;
}

KERNEL(value_isnot) {
    outs[0] = rt_bool(!rt_is(args[0], args[1]));
    return NULL;
}

/* ---- bits; two bools stay a bool ---- */

static rt_value bits(const rt_value *args, int64_t r) {
    return args[0].tag == RT_TAG_BOOL && args[1].tag == RT_TAG_BOOL ? rt_bool(r != 0) : rt_int(r);
}

KERNEL(int_and) {
    outs[0] = bits(args, args[0].as.i & args[1].as.i);
    return NULL;
}

KERNEL(int_or) {
    outs[0] = bits(args, args[0].as.i | args[1].as.i);
    return NULL;
}

KERNEL(int_xor) {
    outs[0] = bits(args, args[0].as.i ^ args[1].as.i);
    return NULL;
}

KERNEL(int_invert) {
    outs[0] = rt_int(~args[0].as.i);
    return NULL;
}

KERNEL(int_lshift) {
    int64_t a = args[0].as.i, n = args[1].as.i;
    if (n < 0)
        return ts_raise("ValueError", "negative shift count");
    if (a != 0 && (n > 62 || !ts_mul_i64(a, (int64_t)1 << n, &a)))
        return int_overflow();
    outs[0] = rt_int(a);
    return NULL;
}

KERNEL(int_rshift) {
    int64_t a = args[0].as.i, n = args[1].as.i;
    if (n < 0)
        return ts_raise("ValueError", "negative shift count");
    n = n > 63 ? 63 : n;
    outs[0] = rt_int(a < 0 ? ~(~a >> n) : a >> n);
    return NULL;
}

KERNEL(bool_not) {
    bool truth;
    TS_TRY(rt_truth(args[0], &truth));
    outs[0] = rt_bool(!truth);
    return NULL;
}

KERNEL(complex_real) {
    rt_number a;
    TS_TRY(rt_number_of(args[0], &a));
    outs[0] = rt_float(a.f);
    return NULL;
}

KERNEL(complex_imag) {
    rt_number a;
    TS_TRY(rt_number_of(args[0], &a));
    outs[0] = rt_float(a.im);
    return NULL;
}

KERNEL(complex_conjugate) {
    rt_number a;
    TS_TRY(rt_number_of(args[0], &a));
    return rt_complex_make(a.f, -a.im, outs);
}

/* frontend/init_eval_builtin_number.c - the evaluator of scripts: built-in functions that make numbers, digits and
 * characters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "frontend/init_eval_builtin.h"
#include "runtime/base/checked.h"
#include "runtime/values/tensor.h"

ts_status ev_do_abs(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(ev_wants(args, "abs", 1, 1));
    rt_value v = ARG(0);
    if (v.tag == RT_TAG_FLOAT) {
        *out = rt_float(fabs(v.as.f));
        return NULL;
    }
    if (ev_is_int(v))
        return v.as.i < 0 ? ev_unary(ev, AST_NEG, v, out) : (*out = rt_int(v.as.i), (ts_status)NULL);
    if (v.tag == RT_TAG_COMPLEX) {
        *out = rt_float(hypot(v.as.complex->re, v.as.complex->im));
        return NULL;
    }
    if (v.tag == RT_TAG_TENSOR)
        return ev_op(ev, "abs", &v, 1, out);
    return ts_raise("TypeError", "bad operand type for abs(): '%.*s'", TS_STR_ARG(ev_type_name(v)));
}

ts_status ev_do_bool(evaluator *ev, ev_arguments *args, rt_value *out) {
    bool b = false;
    if (args->count)
        TS_TRY(ev_truth(ev, ARG(0), &b));
    *out = rt_bool(b);
    return NULL;
}

static bool is_digit_of(char c, int base) {
    return (c >= '0' && c <= '9') || (base != 10 && ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'));
}

/* Without blanks around it and the underscores between digits; others stay, and are no digits. */
static ts_status number_text(rt_value v, int base, char *out, size_t size) {
    ts_str s = ev_text(v);
    size_t n = 0;
    while (s.length && strchr(" \t\n\r\f\v", s.data[0]))
        s.data++, s.length--;
    while (s.length && strchr(" \t\n\r\f\v", s.data[s.length - 1]))
        s.length--;
    for (size_t i = 0; i < s.length && n + 1 < size; i++)
        if (s.data[i] != '_' || !i || i + 1 == s.length || !is_digit_of(s.data[i - 1], base) ||
            !is_digit_of(s.data[i + 1], base))
            out[n++] = s.data[i];
    out[n] = 0;
    return NULL;
}

ts_status ev_float_to_int(double f, rt_value *out) {
    if (isnan(f))
        return ts_raise("ValueError", "cannot convert float NaN to integer");
    if (isinf(f))
        return ts_raise("OverflowError", "cannot convert float infinity to integer");
    if (!(f >= -9223372036854775808.0 && f < 9223372036854775808.0))
        return ts_raise("OverflowError", "integer result does not fit 64 bits");
    *out = rt_int((int64_t)f);
    return NULL;
}

static ts_status invalid_literal(rt_value v, int base) {
    rt_value text;
    TS_TRY(rt_to_repr(v, &text));
    ts_status status = ts_raise("ValueError", "invalid literal for int() with base %d: %.*s", base,
                                TS_STR_ARG(ev_text(text)));
    rt_release(text);
    return status;
}

ts_status ev_do_int(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(ev_wants(args, "int", 0, 2));
    *out = rt_int(0);
    if (!args->count)
        return NULL;
    rt_value v = ARG(0);
    if (ev_is_int(v)) {
        *out = rt_int(v.as.i);
        return NULL;
    }
    if (v.tag == RT_TAG_FLOAT)
        return ev_float_to_int(v.as.f, out);
    if (v.tag == RT_TAG_TENSOR) {
        rt_value item;
        TS_TRY(rt_tensor_item(v.as.tensor, &item));
        ts_status status = item.tag == RT_TAG_FLOAT ? ev_float_to_int(item.as.f, out) : NULL;
        if (ev_is_int(item))
            *out = rt_int(item.as.i);
        rt_release(item);
        return status;
    }
    if (v.tag == RT_TAG_ENUM && ev_is_int(v.as.enumeration->value)) {
        *out = v.as.enumeration->value;
        return NULL;
    }
    if (!ev_is_str(v))
        return ts_raise("TypeError",
                        "int() argument must be a string, a bytes-like object or a real number, not '%.*s'",
                        TS_STR_ARG(ev_type_name(v)));
    int base = args->count > 1 && ev_is_int(ARG(1)) ? (int)ARG(1).as.i : 10;
    char text[128];
    TS_TRY(number_text(v, base, text, sizeof text));
    const char *at = text + (text[0] == '-' || text[0] == '+');
    if (at[0] == '0' && (at[1] | 0x20) == 'x' && base == 16)
        at += 2;
    else if (at[0] == '0' && (at[1] | 0x20) == 'b' && base == 2)
        at += 2;
    else if (at[0] == '0' && (at[1] | 0x20) == 'o' && base == 8)
        at += 2;
    if (!*at || base < 2 || base > 36)
        return invalid_literal(v, base);
    int64_t value = 0;
    bool fits = true;
    for (; *at; at++) {
        int d = *at >= '0' && *at <= '9'   ? *at - '0'
                : (*at | 0x20) >= 'a' && (*at | 0x20) <= 'z' ? (*at | 0x20) - 'a' + 10
                                                             : 99;
        if (d >= base)
            return invalid_literal(v, base);
        fits = fits && ts_mul_i64(value, base, &value) &&
               (text[0] == '-' ? ts_sub_i64(value, d, &value) : ts_add_i64(value, d, &value));
    }
    if (!fits)
        return ts_raise("OverflowError", "integer result does not fit 64 bits");
    *out = rt_int(value);
    return NULL;
}

ts_status ev_do_float(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(ev_wants(args, "float", 0, 1));
    *out = rt_float(0);
    if (!args->count)
        return NULL;
    rt_value v = ARG(0);
    if (ev_is_number(v)) {
        *out = rt_float(ev_double(v));
        return NULL;
    }
    if (v.tag == RT_TAG_TENSOR) {
        rt_value item;
        TS_TRY(rt_tensor_item(v.as.tensor, &item));
        *out = rt_float(ev_is_number(item) ? ev_double(item) : 0);
        rt_release(item);
        return NULL;
    }
    if (!ev_is_str(v))
        return ts_raise("TypeError", "float() argument must be a string or a real number, not '%.*s'",
                        TS_STR_ARG(ev_type_name(v)));
    char text[128], *end;
    TS_TRY(number_text(v, 10, text, sizeof text));
    double f = strtod(text, &end);
    bool is_hex = text[0] == '0' && (text[1] | 0x20) == 'x';
    if (*end || end == text || is_hex) {
        rt_value shown;
        TS_TRY(rt_to_repr(v, &shown));
        ts_status status = ts_raise("ValueError", "could not convert string to float: %.*s",
                                    TS_STR_ARG(ev_text(shown)));
        rt_release(shown);
        return status;
    }
    *out = rt_float(f);
    return NULL;
}

ts_status ev_do_complex(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(ev_wants(args, "complex", 0, 2));
    double re = args->count && ev_is_number(ARG(0)) ? ev_double(ARG(0)) : 0;
    double im = args->count > 1 && ev_is_number(ARG(1)) ? ev_double(ARG(1)) : 0;
    return rt_complex_make(re, im, out);
}

ts_status ev_do_round(evaluator *ev, ev_arguments *args, rt_value *out) {
    rt_value slots[2];
    TS_TRY(ev_take(args, "round", "number,ndigits", slots));
    if (!ev_is_given(slots[0]))
        return ts_raise("TypeError", "round() missing required argument 'number'");
    bool has_digits = ev_is_given(slots[1]) && ev_is_int(slots[1]);
    int64_t digits = has_digits ? slots[1].as.i : 0;
    rt_value v = slots[0];
    if (v.tag == RT_TAG_TENSOR)
        return ev_op(ev, "round", &v, 1, out);
    if (ev_is_int(v)) {
        int64_t unit = 1, half;
        *out = rt_int(v.as.i);
        if (digits >= 0)
            return NULL;
        for (int64_t i = 0; i > digits; i--)
            if (!ts_mul_i64(unit, 10, &unit)) {
                *out = rt_int(0);
                return NULL;
            }
        int64_t rest = v.as.i % unit;
        rest += rest < 0 ? unit : 0;
        int64_t low = v.as.i - rest;
        half = unit / 2;
        bool up = rest > half || (rest == half && (low / unit) % 2 != 0);
        *out = rt_int(low + (up ? unit : 0));
        return NULL;
    }
    if (v.tag != RT_TAG_FLOAT)
        return ts_raise("TypeError", "type %.*s doesn't define __round__ method",
                        TS_STR_ARG(ev_type_name(v)));
    if (!has_digits)
        return ev_float_to_int(nearbyint(v.as.f), out);
    if (!isfinite(v.as.f) || digits > 22) {
        *out = rt_float(v.as.f);
        return NULL;
    }
    /* As CPython does: through the correctly rounded decimal text. */
    char text[64 + 400];
    if (digits >= 0)
        snprintf(text, sizeof text, "%.*f", (int)digits, v.as.f);
    else {
        double unit = pow(10, (double)-digits);
        snprintf(text, sizeof text, "%.17g", nearbyint(v.as.f / unit) * unit);
    }
    *out = rt_float(strtod(text, NULL));
    return NULL;
}

ts_status ev_do_divmod(evaluator *ev, ev_arguments *args, rt_value *out) {
    rt_value pair[2] = {rt_none(), rt_none()};
    TS_TRY(ev_wants(args, "divmod", 2, 2));
    TS_TRY(ev_binary(ev, AST_FLOORDIV, ARG(0), ARG(1), &pair[0]));
    TS_TRY(ev_binary(ev, AST_MOD, ARG(0), ARG(1), &pair[1]));
    return ev_tuple(pair, 2, out);
}

ts_status ev_do_pow(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(ev_wants(args, "pow", 2, 3));
    if (args->count == 2)
        return ev_binary(ev, AST_POW, ARG(0), ARG(1), out);
    if (!ev_is_int(ARG(0)) || !ev_is_int(ARG(1)) || !ev_is_int(ARG(2)) || ARG(1).as.i < 0 ||
        ARG(2).as.i <= 0 || ARG(2).as.i > INT32_MAX)
        return ts_raise("ValueError", "pow() with these three arguments is not supported");
    int64_t m = ARG(2).as.i, base = ((ARG(0).as.i % m) + m) % m, result = 1 % m;
    for (int64_t e = ARG(1).as.i; e; e >>= 1) {
        if (e & 1)
            result = result * base % m;
        base = base * base % m;
    }
    *out = rt_int(result);
    return NULL;
}

static ts_status digits(ev_arguments *args, const char *name, int bits, const char *prefix,
                        rt_value *out) {
    TS_TRY(ev_wants(args, name, 1, 1));
    if (!ev_is_int(ARG(0)))
        return ts_raise("TypeError", "'%.*s' object cannot be interpreted as an integer",
                        TS_STR_ARG(ev_type_name(ARG(0))));
    char text[72];
    size_t at = sizeof text;
    uint64_t u = ARG(0).as.i < 0 ? 0 - (uint64_t)ARG(0).as.i : (uint64_t)ARG(0).as.i;
    do {
        text[--at] = "0123456789abcdef"[u & ((1u << bits) - 1)];
        u >>= bits;
    } while (u);
    return rt_str_format(out, "%s%s%.*s", ARG(0).as.i < 0 ? "-" : "", prefix,
                         (int)(sizeof text - at), text + at);
}
ts_status ev_do_hex(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    return digits(args, "hex", 4, "0x", out);
}
ts_status ev_do_oct(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    return digits(args, "oct", 3, "0o", out);
}
ts_status ev_do_bin(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    return digits(args, "bin", 1, "0b", out);
}

ts_status ev_do_ord(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(ev_wants(args, "ord", 1, 1));
    if (!ev_is_str(ARG(0)) || ARG(0).as.str->code_points != 1)
        return ts_raise("TypeError", "ord() expected a character");
    const unsigned char *p = (const unsigned char *)ARG(0).as.str->data;
    uint32_t c = p[0];
    if (c >= 0xF0)
        c = (c & 7u) << 18 | (p[1] & 63u) << 12 | (p[2] & 63u) << 6 | (p[3] & 63u);
    else if (c >= 0xE0)
        c = (c & 15u) << 12 | (p[1] & 63u) << 6 | (p[2] & 63u);
    else if (c >= 0xC0)
        c = (c & 31u) << 6 | (p[1] & 63u);
    *out = rt_int(c);
    return NULL;
}

ts_status ev_do_chr(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(ev_wants(args, "chr", 1, 1));
    if (!ev_is_int(ARG(0)) || ARG(0).as.i < 0 || ARG(0).as.i > 0x10FFFF ||
        (ARG(0).as.i >= 0xD800 && ARG(0).as.i < 0xE000))
        return ts_raise("ValueError", "chr() arg not in range(0x110000)");
    uint32_t c = (uint32_t)ARG(0).as.i;
    char t[4];
    size_t n = 1;
    if (c < 0x80) {
        t[0] = (char)c;
    } else if (c < 0x800) {
        t[0] = (char)(0xC0 | c >> 6);
        t[1] = (char)(0x80 | (c & 63));
        n = 2;
    } else if (c < 0x10000) {
        t[0] = (char)(0xE0 | c >> 12);
        t[1] = (char)(0x80 | (c >> 6 & 63));
        t[2] = (char)(0x80 | (c & 63));
        n = 3;
    } else {
        t[0] = (char)(0xF0 | c >> 18);
        t[1] = (char)(0x80 | (c >> 12 & 63));
        t[2] = (char)(0x80 | (c >> 6 & 63));
        t[3] = (char)(0x80 | (c & 63));
        n = 4;
    }
    return rt_str_make((ts_str){t, n}, out);
}

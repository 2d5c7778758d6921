/* runtime/ops/ref_format.c - str.format and f-string specifications.
 *
 * The language of specifications is Python's: [[fill]align][sign][z][#][0][width][,][.precision]
 * [type]. Doubles are printed by snprintf, which is exact in glibc as CPython's dtoa is. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/ops/format_spec.h"
#include "runtime/ops/ref_kernel.h"
#include "runtime/ops/text.h"

static bool is_align(uint32_t c) { return c == '<' || c == '>' || c == '^' || c == '='; }

/* default_align: '>' of numbers, '<' of strings, whose '0' is a fill and no more. */
static ts_status parse_spec(ts_str s, char default_type, char default_align, rt_format_spec *out) {
    rt_format_spec f = {.fill = ' ', .width = -1, .precision = -1, .type = default_type};
    size_t at = 0, second = 0;
    bool has_fill = false;
    if (s.length) {
        uint32_t c = rt_text_next(s, &second);
        if (second < s.length && is_align((unsigned char)s.data[second])) {
            f.fill = c;
            has_fill = true;
            f.align = s.data[second];
            at = second + 1;
        } else if (is_align(c)) {
            f.align = (char)c;
            at = 1;
        }
    }
    if (at < s.length && (s.data[at] == '+' || s.data[at] == '-' || s.data[at] == ' '))
        f.sign = s.data[at++];
    if (at < s.length && s.data[at] == 'z') {
        f.no_negative_zero = true;
        at++;
    }
    if (at < s.length && s.data[at] == '#') {
        f.alternate = true;
        at++;
    }
    if (!has_fill && at < s.length && s.data[at] == '0') {
        f.fill = '0';
        at++;
        if (!f.align && default_align == '>')
            f.align = '=';
    }
    for (; at < s.length && s.data[at] >= '0' && s.data[at] <= '9'; at++) {
        f.width = (f.width < 0 ? 0 : f.width * 10) + (s.data[at] - '0');
        if (f.width > RT_MAX_FIELD)
            return ts_raise("ValueError", "Too many decimal digits in format string");
    }
    if (at < s.length && (s.data[at] == ',' || s.data[at] == '_'))
        f.grouping = s.data[at++];
    if (f.grouping && at < s.length && (s.data[at] == ',' || s.data[at] == '_'))
        return s.data[at] == f.grouping
                   ? ts_raise("ValueError", "Cannot specify '%c' with '%c'.", f.grouping, f.grouping)
                   : ts_raise("ValueError", "Cannot specify both ',' and '_'.");
    if (at < s.length && s.data[at] == '.') {
        at++;
        if (at >= s.length || s.data[at] < '0' || s.data[at] > '9')
            return ts_raise("ValueError", "Format specifier missing precision");
        for (; at < s.length && s.data[at] >= '0' && s.data[at] <= '9'; at++) {
            f.precision = (f.precision < 0 ? 0 : f.precision * 10) + (s.data[at] - '0');
            if (f.precision > RT_MAX_FIELD)
                return ts_raise("ValueError", "precision too big");
        }
    }
    if (at + 1 < s.length)
        return ts_raise("ValueError", "Invalid format specifier");
    if (at < s.length)
        f.type = s.data[at];
    const char *grouped = f.grouping == '_' ? "defgEG%FboxX" : "defgEG%F";
    if (f.grouping && f.type && !strchr(grouped, f.type))
        return ts_raise("ValueError", "Cannot specify '%c' with '%c'.", f.grouping, f.type);
    *out = f;
    return NULL;
}

static int64_t count_points(ts_str s) {
    int64_t n = 0;
    for (size_t i = 0; i < s.length; i++)
        n += ((unsigned char)s.data[i] & 0xc0) != 0x80;
    return n;
}

void rt_format_fill(ts_buffer *out, uint32_t c, int64_t n) {
    for (; n > 0 && !out->failed; n--)
        rt_text_append(out, c);
}

/* prefix (sign, 0x) stays in front of padding by '='. */
void rt_format_padded(ts_buffer *out, const rt_format_spec *f, ts_str prefix, ts_str body,
                       char default_align) {
    char align = f->align ? f->align : default_align;
    int64_t missing = f->width - (int64_t)prefix.length - count_points(body);
    missing = missing < 0 ? 0 : missing;
    int64_t left = align == '>' ? missing : align == '^' ? missing / 2 : 0;
    rt_format_fill(out, f->fill, left);
    ts_buffer_str(out, prefix);
    if (align == '=')
        rt_format_fill(out, f->fill, missing);
    ts_buffer_str(out, body);
    if (align == '<' || align == '^')
        rt_format_fill(out, f->fill, missing - left);
}

/* Inserts separators into the leading digits of body; zero padding counts them too. */
static void group_digits(ts_buffer *out, ts_str body, const rt_format_spec *f, size_t group,
                         size_t prefix_length) {
    size_t digits = 0;
    while (digits < body.length && ((body.data[digits] >= '0' && body.data[digits] <= '9') ||
                                    (group == 4 && (body.data[digits] | 32) >= 'a' &&
                                     (body.data[digits] | 32) <= 'f')))
        digits++;
    size_t rest = body.length - digits, zeros = 0;
    if (f->fill == '0' && f->align == '=')
        while ((int64_t)(prefix_length + zeros + digits + (zeros + digits - 1) / group + rest) <
               f->width)
            zeros++;
    size_t total = zeros + digits;
    for (size_t i = 0; i < total; i++) {
        if (i && (total - i) % group == 0)
            ts_buffer_char(out, f->grouping);
        ts_buffer_char(out, i < zeros ? '0' : body.data[i - zeros]);
    }
    ts_buffer_append(out, body.data + digits, rest);
}

static void put_number(ts_buffer *out, const rt_format_spec *f, ts_str prefix, ts_str body,
                       size_t group) {
    ts_buffer grouped = {0};
    if (f->grouping) {
        group_digits(&grouped, body, f, group, prefix.length);
        body = (ts_str){grouped.data, grouped.length};
        out->failed |= grouped.failed;
    }
    rt_format_padded(out, f, prefix, body, '>');
    ts_buffer_deinit(&grouped);
}

static ts_status unknown_code(char code, rt_value v) {
    return ts_raise("ValueError", "Unknown format code '%c' for object of type '%s'", code,
                    rt_tag_name(v));
}

ts_status rt_format_str(ts_str s, const rt_format_spec *f, rt_value v, ts_buffer *out) {
    if (f->type && f->type != 's')
        return unknown_code(f->type, v);
    if (f->sign)
        return ts_raise("ValueError", "%s not allowed in string format specifier", f->sign == ' ' ? "Space" : "Sign");
    if (f->no_negative_zero)
        return ts_raise("ValueError", "Negative zero coercion (z) not allowed in string format specifier");
    if (f->alternate)
        return ts_raise("ValueError", "Alternate form (#) not allowed in string format specifier");
    if (f->align == '=')
        return ts_raise("ValueError", "'=' alignment not allowed in string format specifier");
    if (f->precision >= 0) {
        size_t at = 0;
        for (int64_t i = 0; i < f->precision && at < s.length; i++)
            (void)rt_text_next(s, &at);
        s.length = at;
    }
    rt_format_padded(out, f, TS_STR(""), s, '<');
    return NULL;
}

size_t rt_format_digits(uint64_t u, unsigned base, bool upper, char out[72]) {
    char reversed[72];
    size_t n = 0;
    do {
        reversed[n++] = (upper ? "0123456789ABCDEF" : "0123456789abcdef")[u % base];
        u /= base;
    } while (u);
    for (size_t i = 0; i < n; i++)
        out[i] = reversed[n - 1 - i];
    return n;
}

ts_status rt_format_int(int64_t i, const rt_format_spec *f, rt_value v, ts_buffer *out) {
    char type = f->type;
    unsigned base = 10;
    switch (type) {
    case 'd':
    case 'n': break;
    case 'b': base = 2; break;
    case 'o': base = 8; break;
    case 'x':
    case 'X': base = 16; break;
    case 'c': {
        if (f->precision >= 0)
            return ts_raise("ValueError", "Precision not allowed in integer format specifier");
        if (f->no_negative_zero)
            return ts_raise("ValueError", "Negative zero coercion (z) not allowed in integer format specifier");
        if (f->sign)
            return ts_raise("ValueError", "Sign not allowed with integer format specifier 'c'");
        if (f->alternate)
            return ts_raise("ValueError", "Alternate form (#) not allowed with integer format specifier 'c'");
        if (i < 0 || i > 0x10ffff)
            return ts_raise("OverflowError", "%%c arg not in range(0x110000)");
        ts_buffer one = {0};
        rt_text_append(&one, (uint32_t)i);
        rt_format_padded(out, f, TS_STR(""), (ts_str){one.data, one.length}, '>');
        ts_buffer_deinit(&one);
        return NULL;
    }
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case '%': return rt_format_float((double)i, f, v, out);
    default: return unknown_code(type, v);
    }
    if (f->precision >= 0)
        return ts_raise("ValueError", "Precision not allowed in integer format specifier");
    if (f->no_negative_zero)
        return ts_raise("ValueError", "Negative zero coercion (z) not allowed in integer format specifier");
    char digits[72], prefix[4];
    size_t n = rt_format_digits(i < 0 ? 0 - (uint64_t)i : (uint64_t)i, base, type == 'X', digits), p = 0;
    if (i < 0)
        prefix[p++] = '-';
    else if (rt_format_shows_plus(f))
        prefix[p++] = f->sign;
    if (f->alternate && base != 10) {
        prefix[p++] = '0';
        prefix[p++] = type;
    }
    put_number(out, f, (ts_str){prefix, p}, (ts_str){digits, n}, base == 10 ? 3 : 4);
    return NULL;
}

/* Puts the text of |x| into out. */
static ts_status double_text(double x, char type, int64_t precision, bool alternate,
                             ts_buffer *out) {
    if (isnan(x) || isinf(x)) {
        bool upper = type == 'E' || type == 'F' || type == 'G';
        ts_buffer_text(out, isnan(x) ? (upper ? "NAN" : "nan") : upper ? "INF" : "inf");
        if (type == '%')
            ts_buffer_char(out, '%');
        return NULL;
    }
    if (!type && precision < 0) {
        char text[32];
        size_t n = rt_format_double(x, text), digits = strspn(text, "0123456789");
        bool gets_point = alternate && digits < n && text[digits] == 'e'; /* 1.e+20 */
        ts_buffer_append(out, text, gets_point ? digits : n);
        if (gets_point)
            ts_buffer_char(out, '.');
        ts_buffer_append(out, text + digits, gets_point ? n - digits : 0);
        return NULL;
    }
    char pattern[8] = "%.*f";
    bool keep_point = false; /* no type with a precision: 'g', but with ".0" */
    if (precision < 0)
        precision = 6;
    if (!type) {
        type = 'g';
        keep_point = true;
        precision = precision == 0 ? 1 : precision;
    } else if (type == 'n') {
        type = 'g';
    }
    size_t k = 1;
    if (alternate)
        pattern[k++] = '#';
    pattern[k++] = '.';
    pattern[k++] = '*';
    pattern[k++] = type == '%' ? 'f' : type;
    pattern[k] = 0;
    if (type == '%')
        x *= 100;
    int length = snprintf(NULL, 0, pattern, (int)precision, x);
    if (length < 0)
        return ts_no_memory();
    char small[128], *text = small;
    if ((size_t)length >= sizeof small && !(text = malloc((size_t)length + 1)))
        return ts_no_memory();
    snprintf(text, (size_t)length + 1, pattern, (int)precision, x);
    /* As repr, a whole number keeps ".0", and the exponent form starts one decade earlier. */
    const char *point = strchr(text, '.');
    bool is_whole = !strchr(text, 'e') && (!point || (alternate && !point[1]));
    if (keep_point && is_whole && length >= (int)precision && precision < 100 &&
        strspn(text, "0123456789") >= (size_t)precision) {
        char *e = text;
        length = snprintf(text, sizeof small, alternate ? "%#.*e" : "%.*e", (int)precision - 1, x);
        e = strchr(text, 'e');
        if (e && !alternate && strchr(text, '.')) { /* trim zeros of the mantissa */
            char *end = e;
            while (end[-1] == '0')
                end--;
            if (end[-1] == '.')
                end--;
            memmove(end, e, strlen(e) + 1);
        }
        ts_buffer_text(out, text);
    } else {
        ts_buffer_text(out, text);
        if (keep_point && !strpbrk(text, ".en"))
            ts_buffer_text(out, ".0");
    }
    if (text != small)
        free(text);
    if (type == '%')
        ts_buffer_char(out, '%');
    return NULL;
}

static bool is_zero_text(const ts_buffer *text) {
    for (size_t i = 0; i < text->length && text->data[i] != 'e' && text->data[i] != 'E'; i++)
        if ((text->data[i] >= '1' && text->data[i] <= '9') || text->data[i] == 'i')
            return false;
    return true;
}

ts_status rt_format_float(double x, const rt_format_spec *f, rt_value v, ts_buffer *out) {
    switch (f->type) {
    case 0:
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'n':
    case '%': break;
    default: return unknown_code(f->type, v);
    }
    ts_buffer body = {0};
    bool negative = signbit(x) && !isnan(x);
    ts_status status = double_text(negative ? -x : x, f->type, f->precision, f->alternate, &body);
    negative = negative && !(f->no_negative_zero && is_zero_text(&body));
    char sign = negative ? '-' : f->sign;
    ts_str prefix = {&sign, negative || rt_format_shows_plus(f)};
    if (!status)
        put_number(out, f, prefix, (ts_str){body.data, body.length}, 3);
    out->failed |= body.failed;
    ts_buffer_deinit(&body);
    return status;
}

/* One part of a complex number, with its sign, which the imaginary part always has. */
static ts_status complex_part(double x, const rt_format_spec *f, char plus, ts_buffer *out) {
    ts_buffer body = {0};
    bool negative = signbit(x) && !isnan(x);
    char type = f->type; /* without a type as repr does, which has no ".0" */
    ts_status status = double_text(negative ? -x : x, type ? type : f->precision < 0 ? 0 : 'g', f->precision, f->alternate, &body);
    if (!type && f->precision < 0 && body.length > 2 && memcmp(body.data + body.length - 2, ".0", 2) == 0)
        body.length -= f->alternate ? 1 : 2;
    negative = negative && !(f->no_negative_zero && is_zero_text(&body));
    if (negative)
        ts_buffer_char(out, '-');
    else if (plus)
        ts_buffer_char(out, plus);
    rt_format_spec bare = {.fill = ' ', .width = -1, .precision = -1, .grouping = f->grouping};
    if (!status)
        put_number(out, &bare, TS_STR(""), (ts_str){body.data, body.length}, 3);
    out->failed |= body.failed;
    ts_buffer_deinit(&body);
    return status;
}

static ts_status format_complex(rt_value v, const rt_format_spec *f, ts_buffer *out) {
    if (f->type && !strchr("eEfFgGn", f->type))
        return unknown_code(f->type, v);
    if (f->fill == '0')
        return ts_raise("ValueError", "Zero padding is not allowed in complex format specifier");
    if (f->align == '=')
        return ts_raise("ValueError",
                        "'=' alignment flag is not allowed in complex format specifier");
    double re = v.as.complex->re, im = v.as.complex->im;
    bool imaginary_only = !f->type && re == 0 && !signbit(re), has_parens = !f->type && !imaginary_only;
    ts_buffer body = {0};
    ts_buffer_text(&body, has_parens ? "(" : "");
    ts_status status =
        imaginary_only ? NULL : complex_part(re, f, rt_format_shows_plus(f) ? f->sign : 0, &body);
    if (!status)
        status = complex_part(im, f, imaginary_only ? (rt_format_shows_plus(f) ? f->sign : 0) : '+', &body);
    ts_buffer_text(&body, has_parens ? "j)" : "j");
    if (!status)
        rt_format_padded(out, f, TS_STR(""), (ts_str){body.data, body.length}, '>');
    out->failed |= body.failed;
    ts_buffer_deinit(&body);
    return status;
}

ts_status rt_format_value(rt_value v, ts_str spec, ts_buffer *out) {
    if (spec.length == 0 && !(v.tag == RT_TAG_TENSOR && v.as.tensor->rank == 0)) {
        rt_value text;
        TS_TRY(rt_to_str(v, &text));
        ts_buffer_str(out, rt_str_text(text.as.str));
        rt_release(text);
        return NULL;
    }
    rt_format_spec f;
    bool is_int = v.tag == RT_TAG_BOOL || v.tag == RT_TAG_INT, is_str = v.tag == RT_TAG_STR;
    TS_TRY(parse_spec(spec, is_str ? 's' : is_int ? 'd' : 0, is_str ? '<' : '>', &f));
    switch (v.tag) {
    case RT_TAG_BOOL:
        return rt_format_int(v.as.i, &f, v, out);
    case RT_TAG_INT: return rt_format_int(v.as.i, &f, v, out);
    case RT_TAG_FLOAT: return rt_format_float(v.as.f, &f, v, out);
    case RT_TAG_STR: return rt_format_str(rt_str_text(v.as.str), &f, v, out);
    case RT_TAG_COMPLEX: return format_complex(v, &f, out);
    case RT_TAG_TENSOR: /* Tensor.__format__: a 0-d tensor formats its item */
        if (v.as.tensor->rank == 0) {
            rt_value item;
            TS_TRY(rt_tensor_item(v.as.tensor, &item));
            ts_status status = rt_format_value(item, spec, out);
            rt_release(item);
            return status;
        }
        /* fall through */
    default:
        return ts_raise("TypeError", "unsupported format string passed to %s.__format__",
                        rt_tag_name(v));
    }
}

KERNEL(format_spec) {
    ts_buffer b = {0};
    ts_status status = rt_format_value(args[0], rt_str_text(args[1].as.str), &b);
    if (status) {
        ts_buffer_deinit(&b);
        return status;
    }
    return rt_str_take_buffer(&b, outs);
}

/* ---- str.format ---- */

typedef struct formatter {
    const rt_value *items;
    size_t count;
    int64_t next; /* automatic numbering; -1 once a number was given */
    bool is_automatic;
    ts_buffer out;
} formatter;

static ts_status pick_item(formatter *f, ts_str name, rt_value *out) {
    size_t at = 0;
    int64_t index = 0;
    while (at < name.length && name.data[at] >= '0' && name.data[at] <= '9' && index < RT_MAX_FIELD)
        index = index * 10 + (name.data[at++] - '0');
    bool is_path = at < name.length && (name.data[at] == '[' || name.data[at] == '.');
    if (at == 0 && (name.length == 0 || is_path)) {
        if (f->next < 0)
            return ts_raise("ValueError", "cannot switch from manual field specification to "
                                          "automatic field numbering");
        index = f->next++;
        f->is_automatic = true;
    } else if (at == 0 || (at < name.length && !is_path)) {
        return ts_raise("KeyError", "'%.*s'", TS_STR_ARG(name));
    } else {
        if (f->is_automatic)
            return ts_raise("ValueError", "cannot switch from automatic field numbering to manual "
                                          "field specification");
        f->next = -1;
    }
    if ((size_t)index >= f->count)
        return ts_raise("IndexError",
                        "Replacement index %lld out of range for positional args tuple",
                        (long long)index);
    rt_value v = f->items[index];
    while (at < name.length && name.data[at] == '[') {
        size_t start = ++at;
        int64_t i = 0;
        bool is_number = true;
        for (; at < name.length && name.data[at] != ']'; at++) {
            is_number = is_number && name.data[at] >= '0' && name.data[at] <= '9' && i < RT_MAX_FIELD;
            i = i * 10 + (is_number ? name.data[at] - '0' : 0);
        }
        ts_str key = {name.data + start, at - start};
        at++;
        const rt_value *items = NULL;
        size_t count = 0;
        if (v.tag == RT_TAG_DICT) {
            rt_value boxed = rt_int(i);
            if (!is_number)
                TS_TRY(rt_str_make(key, &boxed));
            rt_dict_entry *e = NULL;
            ts_status status = rt_dict_find(v.as.dict, boxed, &e);
            rt_release(boxed);
            TS_TRY(status);
            if (!e)
                return ts_raise("KeyError", is_number ? "%.*s" : "'%.*s'", TS_STR_ARG(key));
            v = e->value;
            continue;
        }
        if (v.tag == RT_TAG_LIST) {
            items = v.as.list->items;
            count = v.as.list->count;
        } else if (v.tag == RT_TAG_TUPLE) {
            items = v.as.tuple->items;
            count = v.as.tuple->count;
        } else {
            return ts_raise("TypeError", "'%s' object is not subscriptable", rt_tag_name(v));
        }
        if (!is_number || (size_t)i >= count)
            return ts_raise("IndexError", v.tag == RT_TAG_LIST ? "list index out of range"
                                                               : "tuple index out of range");
        v = items[i];
    }
    if (at < name.length)
        return ts_raise("AttributeError", "'%s' object has no attribute of a format field",
                        rt_tag_name(v));
    *out = v;
    return NULL;
}

static ts_status format_text(formatter *f, ts_str s, int depth, ts_buffer *out);

static ts_status format_field(formatter *f, ts_str field, int depth, ts_buffer *out) {
    size_t end = 0;
    while (end < field.length && field.data[end] != ':' && field.data[end] != '!') {
        if (field.data[end] == '[')
            while (end + 1 < field.length && field.data[end] != ']')
                end++;
        end++;
    }
    ts_str name = {field.data, end}, spec = TS_STR("");
    char conversion = 0;
    if (end < field.length && field.data[end] == '!') {
        if (end + 1 >= field.length)
            return ts_raise("ValueError", "end of string while looking for conversion specifier");
        conversion = field.data[end + 1];
        end += 2;
        if (end < field.length && field.data[end] != ':')
            return ts_raise("ValueError", "expected ':' after conversion specifier");
    }
    if (end < field.length)
        spec = (ts_str){field.data + end + 1, field.length - end - 1};
    rt_value v, text = rt_none();
    TS_TRY(pick_item(f, name, &v));
    if (conversion == 'r' || conversion == 'a') {
        TS_TRY(rt_to_repr(v, &text));
    } else if (conversion == 's') {
        TS_TRY(rt_to_str(v, &text));
    } else if (conversion) {
        return ts_raise("ValueError", "Unknown conversion specifier '%c'", conversion);
    }
    ts_buffer inner = {0};
    ts_status status = NULL;
    if (memchr(spec.data, '{', spec.length)) {
        status = depth > 0 ? format_text(f, spec, depth - 1, &inner)
                           : ts_raise("ValueError", "Max string recursion exceeded");
        spec = (ts_str){inner.data, inner.length};
    }
    if (!status)
        status = rt_format_value(conversion ? text : v, spec, out);
    rt_release(text);
    ts_buffer_deinit(&inner);
    return status;
}

static ts_status format_text(formatter *f, ts_str s, int depth, ts_buffer *out) {
    for (size_t at = 0; at < s.length;) {
        char c = s.data[at];
        if (c != '{' && c != '}') {
            ts_buffer_char(out, c);
            at++;
            continue;
        }
        if (at + 1 < s.length && s.data[at + 1] == c) {
            ts_buffer_char(out, c);
            at += 2;
            continue;
        }
        if (c == '}' || at + 1 >= s.length)
            return ts_raise("ValueError", "Single '%c' encountered in format string", c);
        size_t start = at + 1, nested = 1;
        for (at = start; at < s.length; at++) {
            nested += s.data[at] == '{';
            nested -= s.data[at] == '}';
            if (!nested)
                break;
        }
        if (nested)
            return ts_raise("ValueError", "expected '}' before end of string");
        TS_TRY(format_field(f, (ts_str){s.data + start, at - start}, depth, out));
        at++;
    }
    return NULL;
}

void rt_format_items(const rt_value *v, const rt_value **items, size_t *count) {
    *items = v;
    *count = 1;
    if (v->tag == RT_TAG_TUPLE) {
        *items = v->as.tuple->items;
        *count = v->as.tuple->count;
    } else if (v->tag == RT_TAG_LIST) {
        *items = v->as.list->items;
        *count = v->as.list->count;
    }
}

KERNEL(str_format) {
    formatter f = {0};
    ts_buffer out = {0};
    rt_format_items(&args[1], &f.items, &f.count);
    ts_status status = format_text(&f, rt_str_text(args[0].as.str), 1, &out);
    if (status) {
        ts_buffer_deinit(&out);
        return status;
    }
    return rt_str_take_buffer(&out, outs);
}

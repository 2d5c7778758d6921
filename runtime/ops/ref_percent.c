/* runtime/ops/ref_percent.c - the % operator of strings. */
#include <string.h>

#include "runtime/ops/format_spec.h"
#include "runtime/ops/ref_kernel.h"
#include "runtime/ops/text.h"

static ts_status percent_number(rt_value v, char type, rt_format_spec *f, ts_buffer *out) {
    rt_number n;
    bool is_float = strchr("eEfFgG", type) != NULL;
    if (!rt_is_number(v) || v.tag == RT_TAG_COMPLEX) {
        if (is_float)
            return ts_raise("TypeError", "must be real number, not %s", rt_tag_name(v));
        return ts_raise("TypeError",
                        strchr("xXo", type) ? "%%%c format: an integer is required, not %s"
                                            : "%%%c format: a real number is required, not %s",
                        type, rt_tag_name(v));
    }
    TS_TRY(rt_number_of(v, &n));
    f->type = type == 'i' || type == 'u' ? 'd' : type;
    if (is_float) {
        if (f->precision < 0)
            f->precision = 6;
        return rt_format_float(n.f, f, v, out);
    }
    if (n.kind == NUMBER_FLOAT) {
        if (f->type != 'd')
            return ts_raise("TypeError", "%%%c format: an integer is required, not float", type);
        TS_TRY(rt_float_to_int(n.f, &n.i));
    }
    if (f->precision > 0) { /* a precision of an int is its least number of digits */
        char digits[72];
        bool negative = n.i < 0;
        size_t k = rt_format_digits(negative ? 0 - (uint64_t)n.i : (uint64_t)n.i,
                             f->type == 'd'   ? 10
                             : f->type == 'o' ? 8
                                              : 16,
                             f->type == 'X', digits);
        ts_buffer b = {0};
        rt_format_fill(&b, '0', f->precision - (int64_t)k);
        ts_buffer_append(&b, digits, k);
        char sign = negative ? '-' : f->sign;
        rt_format_padded(out, f, (ts_str){&sign, negative || rt_format_shows_plus(f)},
                   (ts_str){b.data, b.length}, '>');
        ts_buffer_deinit(&b);
        return NULL;
    }
    f->precision = -1;
    return rt_format_int(n.i, f, v, out);
}

static ts_status take_item(const rt_value *items, size_t count, size_t *used, rt_value *out) {
    if (*used >= count)
        return ts_raise("TypeError", "not enough arguments for format string");
    *out = items[(*used)++];
    return NULL;
}

static ts_status percent_star(const rt_value *items, size_t count, size_t *used, ts_str s,
                              size_t *at, int64_t *out) {
    if (*at < s.length && s.data[*at] == '*') {
        rt_value v = rt_none();
        (*at)++;
        TS_TRY(take_item(items, count, used, &v));
        if (v.tag != RT_TAG_INT || v.as.i > RT_MAX_FIELD || v.as.i < -RT_MAX_FIELD)
            return ts_raise("TypeError", "* wants int");
        *out = v.as.i;
        return NULL;
    }
    for (; *at < s.length && s.data[*at] >= '0' && s.data[*at] <= '9'; (*at)++) {
        *out = (*out < 0 ? 0 : *out * 10) + (s.data[*at] - '0');
        if (*out > RT_MAX_FIELD)
            return ts_raise("ValueError", "width too big");
    }
    return NULL;
}

/* %(name)d: the value of the one operand, a dict; *at stands on the bracket and is moved behind its partner. */
static ts_status take_keyed(const rt_value *items, size_t count, ts_str s, size_t *at, const rt_value **out) {
    size_t start = ++*at, depth = 1;
    for (; *at < s.length && depth; ++*at)
        depth += s.data[*at] == '(' ? 1u : s.data[*at] == ')' ? (size_t)-1 : 0;
    if (depth)
        return ts_raise("ValueError", "incomplete format key");
    if (count != 1 || items[0].tag != RT_TAG_DICT)
        return ts_raise("TypeError", "format requires a mapping");
    rt_value key;
    rt_dict_entry *entry = NULL;
    TS_TRY(rt_str_make((ts_str){s.data + start, *at - 1 - start}, &key));
    ts_status status = rt_dict_find(items[0].as.dict, key, &entry);
    if (!status && !entry)
        status = ts_raise("KeyError", "'%.*s'", TS_STR_ARG(rt_str_text(key.as.str)));
    rt_release(key);
    *out = entry ? &entry->value : NULL;
    return status;
}

static ts_status percent_format(ts_str s, const rt_value *items, size_t count, ts_buffer *out) {
    size_t used = 0;
    for (size_t at = 0; at < s.length;) {
        char c = s.data[at++];
        if (c != '%') {
            ts_buffer_char(out, c);
            continue;
        }
        rt_format_spec f = {.fill = ' ', .width = -1, .precision = -1};
        bool zero = false;
        const rt_value *keyed = NULL;
        if (at < s.length && s.data[at] == '(')
            TS_TRY(take_keyed(items, count, s, &at, &keyed));
        for (; at < s.length && strchr("-+ #0", s.data[at]); at++) {
            char flag = s.data[at];
            if (flag == '-')
                f.align = '<';
            else if (flag == '+' || (flag == ' ' && !f.sign))
                f.sign = flag;
            else if (flag == '#')
                f.alternate = true;
            else if (flag == '0')
                zero = true;
        }
        TS_TRY(percent_star(items, count, &used, s, &at, &f.width));
        if (f.width < -1) {
            f.align = '<';
            f.width = -f.width;
        }
        if (at < s.length && s.data[at] == '.') {
            at++;
            f.precision = 0;
            TS_TRY(percent_star(items, count, &used, s, &at, &f.precision));
        }
        while (at < s.length && strchr("hlL", s.data[at]))
            at++;
        if (at >= s.length)
            return ts_raise("ValueError", "incomplete format");
        char type = s.data[at++];
        if (type == '%') {
            ts_buffer_char(out, '%');
            continue;
        }
        if (!strchr("diouxXeEfFgGcrsa", type))
            return ts_raise("ValueError", "unsupported format character '%c' (0x%x) at index %zu",
                            type, (unsigned)(unsigned char)type, at - 1);
        rt_value v, text;
        if (keyed)
            v = *keyed, used = count;
        else
            TS_TRY(take_item(items, count, &used, &v));
        /* of %s and %c width, side and precision count, and no more */
        rt_format_spec plain = {.fill = ' ', .align = f.align ? f.align : '>', .width = f.width, .precision = f.precision, .type = 's'};
        if (type == 's' || type == 'r' || type == 'a') {
            TS_TRY(type == 's' ? rt_to_str(v, &text) : rt_to_repr(v, &text));
            ts_status status = rt_format_str(rt_str_text(text.as.str), &plain, v, out);
            rt_release(text);
            TS_TRY(status);
        } else if (type == 'c') {
            if (v.tag == RT_TAG_STR && v.as.str->code_points == 1) {
                TS_TRY(rt_format_str(rt_str_text(v.as.str), &plain, v, out));
            } else if (v.tag == RT_TAG_INT || v.tag == RT_TAG_BOOL) {
                plain.type = 'c';
                plain.precision = -1;
                TS_TRY(rt_format_int(v.as.i, &plain, v, out));
            } else {
                return ts_raise("TypeError", "%%c requires int or char");
            }
        } else {
            if (zero && !f.align) {
                f.fill = '0';
                f.align = '=';
            }
            TS_TRY(percent_number(v, type, &f, out));
        }
    }
    if (used < count && !(count == 1 && items[0].tag == RT_TAG_DICT))
        return ts_raise("TypeError", "not all arguments converted during string formatting");
    return NULL;
}

KERNEL(str_percent_format) {
    const rt_value *items;
    size_t count;
    ts_buffer out = {0};
    rt_format_items(&args[1], &items, &count);
    ts_status status = percent_format(rt_str_text(args[0].as.str), items, count, &out);
    if (status) {
        ts_buffer_deinit(&out);
        return status;
    }
    return rt_str_take_buffer(&out, outs);
}

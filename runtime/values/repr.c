/* runtime/values/repr.c - str and repr of values, as eager Python prints them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/values/values_internal.h"

/* The decimal digits and exponent of the shortest text that reads back as f (finite, positive):
 * digits d1..dn stand for 0.d1..dn * 10^point. */
static int shortest_digits(double f, char digits[20], int *point) {
    char text[40];
    /* 15 digits hold every shorter decimal of a normal double, so only those that need 16 or 17
     * try again; subnormals carry fewer digits and start at one. */
    int precision = f < 0x1p-1022 ? 0 : 14;
    for (;; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, f);
        if (precision >= 16 || strtod(text, NULL) == f)
            break;
    }
    int count = 0;
    const char *p = text;
    for (; *p && *p != 'e'; p++) /* skips the decimal point of whatever locale */
        if (*p >= '0' && *p <= '9')
            digits[count++] = *p;
    *point = (int)strtol(p + 1, NULL, 10) + 1;
    while (count > 1 && digits[count - 1] == '0')
        count--;
    return count;
}

/* Python's repr of a float; add_dot appends ".0" to whole numbers. */
static size_t format_double(double f, bool add_dot, char out[32]) {
    size_t at = 0;
    if (f != f) {
        memcpy(out, "nan", 4);
        return 3;
    }
    if (signbit(f)) {
        out[at++] = '-';
        f = -f;
    }
    if (isinf(f)) {
        memcpy(out + at, "inf", 4);
        return at + 3;
    }
    char digits[20] = "0";
    int point = 1, count = 1;
    if (f != 0)
        count = shortest_digits(f, digits, &point);
    if (point > 16 || point < -3) {
        out[at++] = digits[0];
        if (count > 1) {
            out[at++] = '.';
            memcpy(out + at, digits + 1, (size_t)count - 1);
            at += (size_t)count - 1;
        }
        int exponent = point - 1;
        return at + (size_t)snprintf(out + at, 32 - at, "e%c%02d", exponent < 0 ? '-' : '+',
                                     abs(exponent));
    }
    if (point <= 0) {
        out[at++] = '0';
        out[at++] = '.';
        for (int i = point; i < 0; i++)
            out[at++] = '0';
    }
    for (int i = 0; i < count || i < point; i++) {
        if (i == point && point > 0)
            out[at++] = '.';
        out[at++] = i < count ? digits[i] : '0';
    }
    if (point >= count && add_dot) {
        out[at++] = '.';
        out[at++] = '0';
    }
    out[at] = 0;
    return at;
}

size_t rt_format_double(double f, char out[32]) { return format_double(f, true, out); }

static void print_double(ts_buffer *out, double f, bool add_dot) {
    char text[32];
    ts_buffer_append(out, text, format_double(f, add_dot, text));
}

static void print_complex(ts_buffer *out, const rt_complex *c) {
    bool has_real = c->re != 0 || signbit(c->re);
    if (has_real) {
        ts_buffer_char(out, '(');
        print_double(out, c->re, false);
        if (!signbit(c->im) || c->im != c->im)
            ts_buffer_char(out, '+');
    }
    print_double(out, c->im, false);
    ts_buffer_text(out, has_real ? "j)" : "j");
}

static void print_device(ts_buffer *out, rt_value v, bool is_repr) {
    static const char *const names[] = {"cpu", "cuda", "opencl", "meta"};
    const char *name = v.aux < 4 ? names[v.aux] : "?";
    if (is_repr) {
        ts_buffer_format(out, "device(type='%s'", name);
        if (v.as.i >= 0)
            ts_buffer_format(out, ", index=%lld", (long long)v.as.i);
        ts_buffer_char(out, ')');
    } else if (v.as.i >= 0) {
        ts_buffer_format(out, "%s:%lld", name, (long long)v.as.i);
    } else {
        ts_buffer_text(out, name);
    }
}

/* Length of the UTF-8 sequence at p and its code point; 0 where it is none. */
static size_t decode_utf8(const unsigned char *p, size_t left, uint32_t *out) {
    size_t length = p[0] < 0x80   ? 1
                    : p[0] < 0xc2 ? 0
                    : p[0] < 0xe0 ? 2
                    : p[0] < 0xf0 ? 3
                    : p[0] < 0xf5 ? 4
                                  : 0;
    if (length == 0 || length > left)
        return 0;
    uint32_t c = length == 1 ? p[0] : p[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xc0u) != 0x80u)
            return 0;
        c = c << 6 | (p[i] & 0x3fu);
    }
    *out = c;
    return length;
}

/* Python escapes what its Unicode tables call unprintable; of those beyond Latin-1 the common
 * ones are listed. */
static bool is_printable(uint32_t c) {
    return c >= 0x20 && c != 0x7f && !(c >= 0x80 && c <= 0xa0) && c != 0xad &&
           !(c >= 0x2000 && c <= 0x200f) && !(c >= 0x2028 && c <= 0x202f) &&
           !(c >= 0x205f && c <= 0x206f) && c != 0x3000 && c != 0xfeff &&
           !(c >= 0xd800 && c <= 0xf8ff) && !(c >= 0xfff0 && c <= 0xfffb) && !(c >= 0xe0000);
}

static void print_quoted(ts_buffer *out, ts_str s) {
    bool has_single = memchr(s.data, '\'', s.length), has_double = memchr(s.data, '"', s.length);
    char quote = has_single && !has_double ? '"' : '\'';
    ts_buffer_char(out, quote);
    for (size_t i = 0; i < s.length;) {
        uint32_t c;
        size_t length = decode_utf8((const unsigned char *)s.data + i, s.length - i, &c);
        if (length == 0)
            ts_buffer_format(out, "\\x%02x", (unsigned char)s.data[i]);
        else if (c == '\\' || c == (unsigned char)quote)
            ts_buffer_format(out, "\\%c", (char)c);
        else if (c == '\n' || c == '\r' || c == '\t')
            ts_buffer_text(out, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
        else if (is_printable(c))
            ts_buffer_append(out, s.data + i, length);
        else
            ts_buffer_format(out, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
        i += length ? length : 1;
    }
    ts_buffer_char(out, quote);
}

static ts_status print_value(ts_buffer *out, rt_value v, bool is_repr, int depth);

static ts_status print_items(ts_buffer *out, const rt_value *items, size_t count, int depth) {
    for (size_t i = 0; i < count; i++) {
        if (i)
            ts_buffer_text(out, ", ");
        TS_TRY(print_value(out, items[i], true, depth));
    }
    return NULL;
}

static ts_status print_tuple(ts_buffer *out, const rt_tuple *tuple, int depth) {
    const rt_class *class_ = tuple->class_;
    if (class_) {
        ts_buffer_str(out, class_->bare_name);
        ts_buffer_char(out, '(');
        for (size_t i = 0; i < tuple->count; i++) {
            if (i)
                ts_buffer_text(out, ", ");
            if (i < class_->field_count) {
                ts_buffer_str(out, class_->fields[i]);
                ts_buffer_char(out, '=');
            }
            TS_TRY(print_value(out, tuple->items[i], true, depth));
        }
        ts_buffer_char(out, ')');
        return NULL;
    }
    ts_buffer_char(out, '(');
    TS_TRY(print_items(out, tuple->items, tuple->count, depth));
    ts_buffer_text(out, tuple->count == 1 ? ",)" : ")");
    return NULL;
}

static ts_status print_list(ts_buffer *out, const rt_list *list, int depth) {
    uint32_t marks = rt_marks(&list->base);
    bool is_tuple = marks & RT_MARK_TUPLE;
    ts_buffer_text(out, marks & RT_MARK_SIZE ? "torch.Size([" : is_tuple ? "(" : "[");
    TS_TRY(print_items(out, list->items, list->count, depth));
    ts_buffer_text(out, marks & RT_MARK_SIZE ? "])" : !is_tuple ? "]" : list->count == 1 ? ",)" : ")");
    return NULL;
}

/* As a dict, or as an OrderedDict, whose pairs are tuples. */
static ts_status print_dict(ts_buffer *out, const rt_dict *dict, int depth) {
    bool is_ordered = rt_marks(&dict->base) & RT_MARK_ORDERED, is_first = true;
    rt_dict_entry *entry;
    ts_buffer_text(out, !is_ordered ? "{" : dict->live_count ? "OrderedDict([" : "OrderedDict(");
    for (size_t at = 0; (entry = rt_dict_next(dict, &at));) {
        if (!is_first)
            ts_buffer_text(out, ", ");
        is_first = false;
        ts_buffer_text(out, is_ordered ? "(" : "");
        TS_TRY(print_value(out, entry->key, true, depth));
        ts_buffer_text(out, is_ordered ? ", " : ": ");
        TS_TRY(print_value(out, entry->value, true, depth));
        ts_buffer_text(out, is_ordered ? ")" : "");
    }
    ts_buffer_text(out, !is_ordered ? "}" : dict->live_count ? "])" : ")");
    return NULL;
}

static ts_status print_enum(ts_buffer *out, const rt_enum *e, bool is_repr, int depth) {
    if (is_repr)
        ts_buffer_char(out, '<');
    ts_buffer_str(out, e->class_->bare_name);
    ts_buffer_char(out, '.');
    ts_buffer_str(out, e->name);
    if (is_repr) {
        ts_buffer_text(out, ": ");
        TS_TRY(print_value(out, e->value, true, depth));
        ts_buffer_char(out, '>');
    }
    return NULL;
}

const char *rt_meaning_text(rt_meaning meaning, int64_t i) {
    enum { MOST = RT_DTYPE_COUNT };
    static const char *const texts[RT_MEANING_COUNT][MOST] = {
        [RT_MEANING_DTYPE] = {
#define DTYPE(number, name, ctype, bytes, category) [number] = "torch." #name,
            RT_DTYPES(DTYPE)
#undef DTYPE
        },
        [RT_MEANING_LAYOUT] = {"torch.strided", "torch.sparse_coo", "torch.sparse_csr", NULL, "torch._mkldnn"},
        [RT_MEANING_MEMORY_FORMAT] = {"torch.contiguous_format", "torch.preserve_format", "torch.channels_last",
                                      "torch.channels_last_3d"},
        [RT_MEANING_QSCHEME] = {"torch.per_tensor_affine", "torch.per_channel_affine", "torch.per_tensor_symmetric"}};
    return meaning < RT_MEANING_COUNT && i >= 0 && i < MOST ? texts[meaning][i] : NULL;
}

static ts_status print_value(ts_buffer *out, rt_value v, bool is_repr, int depth) {
    if (depth <= 0)
        return rt_depth_error();
    switch ((rt_tag)v.tag) {
    case RT_TAG_NONE:
        ts_buffer_text(out, "None");
        return NULL;
    case RT_TAG_BOOL:
        ts_buffer_text(out, v.as.i ? "True" : "False");
        return NULL;
    case RT_TAG_INT:
        if (rt_meaning_text((rt_meaning)v.aux, v.as.i))
            ts_buffer_text(out, rt_meaning_text((rt_meaning)v.aux, v.as.i));
        else
            ts_buffer_format(out, "%lld", (long long)v.as.i);
        return NULL;
    case RT_TAG_FLOAT:
        print_double(out, v.as.f, true);
        return NULL;
    case RT_TAG_DEVICE:
        print_device(out, v, is_repr);
        return NULL;
    case RT_TAG_UNINITIALIZED:
        ts_buffer_text(out, "<uninitialized>");
        return NULL;
    case RT_TAG_COMPLEX:
        print_complex(out, v.as.complex);
        return NULL;
    case RT_TAG_STR:
        if (is_repr)
            print_quoted(out, rt_str_text(v.as.str));
        else
            ts_buffer_str(out, rt_str_text(v.as.str));
        return NULL;
    case RT_TAG_TENSOR:
        rt_tensor_print(v.as.tensor, out);
        return NULL;
    case RT_TAG_LIST:
        return print_list(out, v.as.list, depth - 1);
    case RT_TAG_TUPLE:
        return print_tuple(out, v.as.tuple, depth - 1);
    case RT_TAG_DICT:
        return print_dict(out, v.as.dict, depth - 1);
    case RT_TAG_OBJECT:
        ts_buffer_char(out, '<');
        ts_buffer_str(out, v.as.object->class_->name);
        ts_buffer_format(out, " object at %p>", v.as.pointer);
        return NULL;
    case RT_TAG_ENUM:
        return print_enum(out, v.as.enumeration, is_repr, depth - 1);
    case RT_TAG_GENERATOR:
    case RT_TAG_FUNCTION:
    case RT_TAG_CAPSULE:
        ts_buffer_format(out, "<%s object at %p>", rt_tag_name(v), v.as.pointer);
        return NULL;
    }
    return NULL;
}

static ts_status to_text(rt_value v, bool is_repr, rt_value *out) {
    *out = rt_none();
    ts_buffer text = {0};
    ts_status status = print_value(&text, v, is_repr, RT_VALUE_DEPTH);
    if (!status)
        status = ts_buffer_status(&text);
    if (!status)
        status = rt_str_make((ts_str){text.data, text.length}, out);
    ts_buffer_deinit(&text);
    return status;
}

ts_status rt_to_str(rt_value v, rt_value *out) {
    if (v.tag == RT_TAG_STR) {
        *out = rt_retain(v);
        return NULL;
    }
    return to_text(v, false, out);
}

ts_status rt_to_repr(rt_value v, rt_value *out) { return to_text(v, true, out); }

/* tests/ops/case_text.c - values as .case files write them: reading and comparing. */
#include "tests/ops/case_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void skip_blanks(parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == ','))
        p->at++;
}

bool take(parser *p, const char *text) {
    size_t n = strlen(text);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, text, n) != 0)
        return false;
    p->at += n;
    return true;
}

void must(ts_status status) {
    if (status) {
        fprintf(stderr, "%s\n", ts_status_message(status));
        exit(2);
    }
}

/* inf, nan, 1, 1.5, 1e3 and 1+2j; is_float where it is written as one. */
static rt_complex128 parse_number(parser *p, bool *is_float, bool *is_complex) {
    char *end;
    rt_complex128 c = {strtod(p->at, &end), 0};
    p->failed = p->failed || end == p->at;
    *is_float = false;
    for (const char *s = p->at; s < end; s++)
        *is_float = *is_float || strchr(".einf", *s) != NULL;
    p->at = end;
    *is_complex = false;
    if (p->at < p->end && *p->at == 'j') {
        c = (rt_complex128){0, c.re};
        *is_complex = true;
        p->at++;
    } else if (p->at < p->end && (*p->at == '+' || *p->at == '-')) {
        c.im = strtod(p->at, &end);
        p->at = end + 1;
        *is_complex = true;
    }
    return c;
}

static rt_value parse_tensor(parser *p, rt_dtype dtype) {
    int64_t sizes[RT_MAX_RANK];
    int rank = 0;
    bool is_float, is_complex;
    for (take(p, "["); !take(p, "]") && !p->failed; skip_blanks(p))
        sizes[rank++] = (int64_t)parse_number(p, &is_float, &is_complex).re;
    rt_tensor *t;
    must(rt_tensor_make(dtype, sizes, rank, &t));
    p->failed = p->failed || !take(p, "{");
    size_t size = rt_dtype_size(dtype);
    for (int64_t i = 0; i < t->element_count && !p->failed; i++, skip_blanks(p)) {
        char *at = (char *)t->data + (size_t)i * size;
        const char *start = p->at;
        rt_complex128 c = parse_number(p, &is_float, &is_complex);
        if (rt_dtype_is_float(dtype) || rt_dtype_is_complex(dtype))
            rt_store_complex(dtype, at, c);
        else
            rt_store_int(dtype, at, strtoll(start, NULL, 10));
    }
    p->failed = p->failed || !take(p, "}");
    return rt_from_tensor(t);
}

static void parse_items(parser *p, rt_list *list, const char *end) {
    for (skip_blanks(p); !take(p, end) && !p->failed; skip_blanks(p)) {
        rt_value item = parse_value(p);
        must(rt_list_append(list, item));
        rt_release(item);
    }
}

rt_value parse_value(parser *p) {
    rt_value v = rt_none();
    skip_blanks(p);
    if (p->at >= p->end)
        p->failed = true;
    if (p->failed || take(p, "None"))
        return v;
    if (take(p, "cpu"))
        return (rt_value){.tag = RT_TAG_DEVICE, .as.i = -1};
    if (take(p, "True"))
        return rt_bool(true);
    if (take(p, "False"))
        return rt_bool(false);
    if (take(p, "'")) {
        const char *start = p->at;
        while (p->at < p->end && *p->at != '\'')
            p->at++;
        must(rt_str_make((ts_str){start, (size_t)(p->at - start)}, &v));
        p->at++;
        return v;
    }
    if (take(p, "[")) {
        must(rt_list_make(0, &v));
        parse_items(p, v.as.list, "]");
        return v;
    }
    if (take(p, "(")) {
        rt_value list;
        must(rt_list_make(0, &list));
        parse_items(p, list.as.list, ")");
        must(rt_tuple_make(list.as.list->count, &v));
        for (size_t i = 0; i < list.as.list->count; i++)
            v.as.tuple->items[i] = rt_retain(list.as.list->items[i]);
        rt_release(list);
        return v;
    }
    if (take(p, "{")) {
        must(rt_dict_make(&v));
        for (skip_blanks(p); !take(p, "}") && !p->failed; skip_blanks(p)) {
            rt_value key = parse_value(p);
            p->failed = p->failed || !take(p, ":");
            rt_value value = parse_value(p);
            must(rt_dict_set(v.as.dict, key, value));
            rt_release(key);
            rt_release(value);
        }
        return v;
    }
    const char *word = p->at;
    while (p->at < p->end && ((*p->at >= 'a' && *p->at <= 'z') || (*p->at >= '0' && *p->at <= '9')))
        p->at++;
    rt_dtype dtype = rt_dtype_parse((ts_str){word, (size_t)(p->at - word)});
    if (dtype != RT_DTYPE_UNKNOWN && p->at < p->end && *p->at == '[')
        return parse_tensor(p, dtype);
    p->at = word;
    bool is_float, is_complex;
    rt_complex128 c = parse_number(p, &is_float, &is_complex);
    if (is_complex)
        must(rt_complex_make(c.re, c.im, &v));
    else
        v = is_float ? rt_float(c.re) : rt_int(strtoll(word, NULL, 10));
    return v;
}

static bool close(double a, double b, double tolerance) {
    if (a != a || b != b)
        return a != a && b != b;
    return a == b || fabs(a - b) <= tolerance * fmax(fabs(b), 1e-3);
}

static bool same_tensors(const rt_tensor *a, const rt_tensor *b) {
    rt_dtype dtype = (rt_dtype)a->dtype;
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int d = 0; d < a->rank; d++)
        if (a->sizes[d] != b->sizes[d])
            return false;
    bool is_exact = rt_dtype_category(dtype) == 'i' || rt_dtype_category(dtype) == 'b';
    double tolerance = 2e-6;
    rt_cursor x, y;
    rt_cursor_start(&y, b);
    for (rt_cursor_start(&x, a); x.left > 0; rt_cursor_next(&x), rt_cursor_next(&y)) {
        rt_complex128 c = rt_load_complex(dtype, x.data), d = rt_load_complex(dtype, y.data);
        if (is_exact ? rt_load_int(dtype, x.data) != rt_load_int(dtype, y.data)
                     : !close(c.re, d.re, tolerance) || !close(c.im, d.im, tolerance))
            return false;
    }
    return true;
}

bool same_values(rt_value a, rt_value b) {
    if (a.tag != b.tag)
        return false;
    if (a.tag == RT_TAG_TENSOR)
        return same_tensors(a.as.tensor, b.as.tensor);
    if (a.tag == RT_TAG_FLOAT)
        return close(a.as.f, b.as.f, 2e-6);
    if (a.tag == RT_TAG_LIST) {
        bool is_same = a.as.list->count == b.as.list->count;
        for (size_t i = 0; is_same && i < a.as.list->count; i++)
            is_same = same_values(a.as.list->items[i], b.as.list->items[i]);
        return is_same;
    }
    if (a.tag == RT_TAG_TUPLE) {
        bool is_same = a.as.tuple->count == b.as.tuple->count;
        for (size_t i = 0; is_same && i < a.as.tuple->count; i++)
            is_same = same_values(a.as.tuple->items[i], b.as.tuple->items[i]);
        return is_same;
    }
    if (a.tag == RT_TAG_COMPLEX) /* both are */
        return close(a.as.complex->re, b.as.complex->re, 2e-6) &&
               close(a.as.complex->im, b.as.complex->im, 2e-6);
    if (a.tag == RT_TAG_NONE || a.tag == RT_TAG_DEVICE)
        return a.as.i == b.as.i;
    bool is_equal;
    must(rt_equal(a, b, &is_equal));
    return is_equal;
}


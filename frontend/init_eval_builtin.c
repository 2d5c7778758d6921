/* frontend/init_eval_builtin.c - the evaluator of scripts: Python's built-in functions and math.
 *
 * Long: one short function for each builtin and the table that names them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "frontend/init_eval_internal.h"
#include "runtime/base/checked.h"
#include "runtime/values/tensor.h"

typedef ts_status (*builtin)(evaluator *ev, ev_arguments *args, rt_value *out);

static ts_status wants(const ev_arguments *args, const char *name, size_t low, size_t high) {
    if (args->count < low || args->count > high)
        return ts_raise("TypeError", "%s() takes %s%zu argument%s (%zu given)", name,
                        low == high ? "" : args->count < low ? "at least " : "at most ",
                        args->count < low ? low : high,
                        (args->count < low ? low : high) == 1 ? "" : "s", args->count);
    return NULL;
}

#define ARG(i) (args->items[i].value)

static ts_status do_abs(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(wants(args, "abs", 1, 1));
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

static ts_status any_all(evaluator *ev, ev_arguments *args, bool is_any, rt_value *out) {
    rt_value list;
    TS_TRY(wants(args, is_any ? "any" : "all", 1, 1));
    TS_TRY(ev_to_list(ev, ARG(0), &list));
    bool result = !is_any;
    ts_status status = NULL;
    for (size_t i = 0; i < list.as.list->count && result != is_any && !status; i++)
        status = ev_truth(ev, list.as.list->items[i], &result);
    rt_release(list);
    *out = rt_bool(result);
    return status;
}
static ts_status do_any(evaluator *ev, ev_arguments *args, rt_value *out) {
    return any_all(ev, args, true, out);
}
static ts_status do_all(evaluator *ev, ev_arguments *args, rt_value *out) {
    return any_all(ev, args, false, out);
}

static ts_status do_bool(evaluator *ev, ev_arguments *args, rt_value *out) {
    bool b = false;
    if (args->count)
        TS_TRY(ev_truth(ev, ARG(0), &b));
    *out = rt_bool(b);
    return NULL;
}

static ts_status number_text(rt_value v, char *out, size_t size) {
    ts_str s = ev_text(v);
    size_t n = 0;
    while (s.length && strchr(" \t\n\r\f\v", s.data[0]))
        s.data++, s.length--;
    while (s.length && strchr(" \t\n\r\f\v", s.data[s.length - 1]))
        s.length--;
    for (size_t i = 0; i < s.length && n + 1 < size; i++)
        if (s.data[i] != '_')
            out[n++] = s.data[i];
    out[n] = 0;
    return NULL;
}

static ts_status float_to_int(double f, rt_value *out) {
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

static ts_status do_int(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(wants(args, "int", 0, 2));
    *out = rt_int(0);
    if (!args->count)
        return NULL;
    rt_value v = ARG(0);
    if (ev_is_int(v)) {
        *out = rt_int(v.as.i);
        return NULL;
    }
    if (v.tag == RT_TAG_FLOAT)
        return float_to_int(v.as.f, out);
    if (v.tag == RT_TAG_TENSOR) {
        rt_value item;
        TS_TRY(rt_tensor_item(v.as.tensor, &item));
        ts_status status = item.tag == RT_TAG_FLOAT ? float_to_int(item.as.f, out) : NULL;
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
    TS_TRY(number_text(v, text, sizeof text));
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

static ts_status do_float(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(wants(args, "float", 0, 1));
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
    TS_TRY(number_text(v, text, sizeof text));
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

static ts_status do_complex(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(wants(args, "complex", 0, 2));
    double re = args->count && ev_is_number(ARG(0)) ? ev_double(ARG(0)) : 0;
    double im = args->count > 1 && ev_is_number(ARG(1)) ? ev_double(ARG(1)) : 0;
    return rt_complex_make(re, im, out);
}

static ts_status to_text(evaluator *ev, rt_value v, bool is_repr, rt_value *out) {
    ts_buffer text = {0};
    ts_status status = ev_to_text(ev, v, is_repr, &text);
    if (!status)
        status = ts_buffer_status(&text);
    if (!status)
        status = rt_str_make((ts_str){text.data ? text.data : "", text.length}, out);
    ts_buffer_deinit(&text);
    return status;
}

static ts_status do_str(evaluator *ev, ev_arguments *args, rt_value *out) {
    if (!args->count)
        return rt_str_make(TS_STR(""), out);
    return to_text(ev, ARG(0), false, out);
}
static ts_status do_repr(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(wants(args, "repr", 1, 1));
    return to_text(ev, ARG(0), true, out);
}

static ts_status do_format(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(wants(args, "format", 1, 2));
    ts_buffer text = {0};
    ts_str spec = args->count > 1 && ev_is_str(ARG(1)) ? ev_text(ARG(1)) : (ts_str){0};
    ts_status status = ev_format_value(ev, ARG(0), spec, &text);
    if (!status)
        status = rt_str_make((ts_str){text.data ? text.data : "", text.length}, out);
    ts_buffer_deinit(&text);
    return status;
}

static ts_status do_print(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)out;
    ts_buffer text = {0};
    ts_str separator = TS_STR(" "), end = TS_STR("\n");
    ts_status status = NULL;
    bool is_first = true;
    for (size_t i = 0; i < args->count; i++) {
        if (ts_str_is(args->items[i].name, "sep") && ev_is_str(ARG(i)))
            separator = ev_text(ARG(i));
        if (ts_str_is(args->items[i].name, "end") && ev_is_str(ARG(i)))
            end = ev_text(ARG(i));
    }
    for (size_t i = 0; i < args->count && !status; i++) {
        if (args->items[i].name.length)
            continue;
        if (!is_first)
            ts_buffer_str(&text, separator);
        is_first = false;
        status = ev_to_text(ev, ARG(i), false, &text);
    }
    ts_buffer_str(&text, end);
    rt_context *context = &ev->fe->runtime;
    if (!status && context->print)
        context->print(context->print_user, (ts_str){text.data, text.length});
    ts_buffer_deinit(&text);
    return status;
}

static ts_status do_len(evaluator *ev, ev_arguments *args, rt_value *out) {
    int64_t n;
    TS_TRY(wants(args, "len", 1, 1));
    TS_TRY(ev_length(ev, ARG(0), &n));
    *out = rt_int(n);
    return NULL;
}

static ts_status do_range(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(wants(args, "range", 1, 3));
    int64_t parts[3] = {0, 0, 1};
    for (size_t i = 0; i < args->count; i++) {
        rt_value v = ARG(i), item = rt_none();
        if (v.tag == RT_TAG_TENSOR && v.as.tensor->element_count == 1) {
            TS_TRY(rt_tensor_item(v.as.tensor, &item));
            v = item;
        }
        if (!ev_is_int(v))
            return ts_raise("TypeError", "'%.*s' object cannot be interpreted as an integer",
                            TS_STR_ARG(ev_type_name(v)));
        parts[i] = v.as.i;
    }
    if (args->count == 1)
        return ev_range_make(0, parts[0], 1, out);
    return ev_range_make(parts[0], parts[1], parts[2], out);
}

static ts_status copy_list(evaluator *ev, rt_value v, rt_value *out) {
    rt_value list;
    TS_TRY(ev_to_list(ev, v, &list));
    ts_status status = rt_list_make(list.as.list->count, out);
    for (size_t i = 0; i < list.as.list->count && !status; i++)
        status = rt_list_append(out->as.list, list.as.list->items[i]);
    rt_release(list);
    return status;
}

static ts_status do_list(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(wants(args, "list", 0, 1));
    return args->count ? copy_list(ev, ARG(0), out) : rt_list_make(0, out);
}

static ts_status do_tuple(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(wants(args, "tuple", 0, 1));
    if (!args->count)
        return rt_tuple_make(0, out);
    rt_value list;
    TS_TRY(ev_to_list(ev, ARG(0), &list));
    ts_status status = ev_tuple(list.as.list->items, list.as.list->count, out);
    rt_release(list);
    return status;
}

static ts_status do_set(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(wants(args, "set", 0, 1));
    TS_TRY(rt_dict_make(out));
    out->as.counted->flags |= EV_FLAG_SET;
    if (!args->count)
        return NULL;
    rt_value list;
    TS_TRY(ev_to_list(ev, ARG(0), &list));
    ts_status status = NULL;
    for (size_t i = 0; i < list.as.list->count && !status; i++)
        status = rt_dict_set(out->as.dict, list.as.list->items[i], rt_none());
    rt_release(list);
    return status;
}

static ts_status do_dict(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(rt_dict_make(out));
    for (size_t i = 0; i < args->count; i++) {
        rt_value v = ARG(i);
        if (args->items[i].name.length) {
            rt_value key;
            TS_TRY(rt_str_make(args->items[i].name, &key));
            ts_status status = rt_dict_set(out->as.dict, key, v);
            rt_release(key);
            TS_TRY(status);
            continue;
        }
        if (v.tag == RT_TAG_DICT) {
            rt_dict_entry *e;
            for (size_t at = 0; (e = rt_dict_next(v.as.dict, &at));)
                TS_TRY(rt_dict_set(out->as.dict, e->key, e->value));
            continue;
        }
        rt_value list;
        TS_TRY(ev_to_list(ev, v, &list));
        ts_status status = NULL;
        for (size_t k = 0; k < list.as.list->count && !status; k++) {
            rt_value pair;
            status = ev_to_list(ev, list.as.list->items[k], &pair);
            if (!status && pair.as.list->count != 2)
                status = ts_raise("ValueError",
                                  "dictionary update sequence element #%zu has length %zu; 2 is required",
                                  k, pair.as.list->count);
            if (!status)
                status = rt_dict_set(out->as.dict, pair.as.list->items[0], pair.as.list->items[1]);
            rt_release(pair);
        }
        rt_release(list);
        TS_TRY(status);
    }
    return NULL;
}

/* ---- order ---- */

typedef struct sort_item {
    rt_value key, value;
} sort_item;

/* Stable merge sort: the comparison may fail. */
static ts_status merge_sort(evaluator *ev, sort_item *items, sort_item *scratch, size_t count,
                            bool reverse) {
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t low = 0; low < count; low += 2 * width) {
            size_t middle = low + width < count ? low + width : count;
            size_t high = low + 2 * width < count ? low + 2 * width : count;
            size_t a = low, b = middle, at = low;
            while (a < middle && b < high) {
                bool takes_b;
                TS_TRY(reverse ? ev_less(ev, items[a].key, items[b].key, &takes_b)
                               : ev_less(ev, items[b].key, items[a].key, &takes_b));
                scratch[at++] = takes_b ? items[b++] : items[a++];
            }
            while (a < middle)
                scratch[at++] = items[a++];
            while (b < high)
                scratch[at++] = items[b++];
        }
        memcpy(items, scratch, count * sizeof *items);
    }
    return NULL;
}

static ts_status sort_list(evaluator *ev, rt_value list, rt_value key, bool reverse) {
    size_t n = list.as.list->count;
    sort_item *items = calloc(2 * n + 1, sizeof *items);
    if (!items)
        return ts_no_memory();
    ts_status status = NULL;
    bool has_key = ev_is_given(key) && !rt_is_none(key);
    size_t made = 0;
    for (; made < n && !status; made++) {
        items[made].value = list.as.list->items[made];
        if (has_key)
            status = ev_call_with(ev, key, &items[made].value, 1, &items[made].key);
        else
            items[made].key = rt_retain(items[made].value);
    }
    if (!status)
        status = merge_sort(ev, items, items + n, n, reverse);
    for (size_t i = 0; i < made; i++)
        rt_release(items[i].key);
    if (!status && list.as.list->count == n)
        for (size_t i = 0; i < n; i++)
            list.as.list->items[i] = items[i].value;
    free(items);
    return status;
}

ts_status ev_sort(evaluator *ev, rt_value list, ev_arguments *args, size_t first);
ts_status ev_sort(evaluator *ev, rt_value list, ev_arguments *args, size_t first) {
    rt_value key = rt_none();
    bool reverse = false;
    for (size_t i = first; i < args->count; i++) {
        if (ts_str_is(args->items[i].name, "key"))
            key = ARG(i);
        else if (ts_str_is(args->items[i].name, "reverse"))
            TS_TRY(ev_truth(ev, ARG(i), &reverse));
        else
            return ts_raise("TypeError", "sort() takes no other arguments than key and reverse");
    }
    return sort_list(ev, list, key, reverse);
}

static ts_status do_sorted(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(wants(args, "sorted", 1, 3));
    TS_TRY(copy_list(ev, ARG(0), out));
    return ev_sort(ev, *out, args, 1);
}

static ts_status do_reversed(evaluator *ev, ev_arguments *args, rt_value *out) {
    rt_value list;
    TS_TRY(wants(args, "reversed", 1, 1));
    TS_TRY(copy_list(ev, ARG(0), &list));
    rt_list *l = list.as.list;
    for (size_t i = 0; i < l->count / 2; i++) {
        rt_value v = l->items[i];
        l->items[i] = l->items[l->count - 1 - i];
        l->items[l->count - 1 - i] = v;
    }
    ts_status status = ev_iterator_make(list, out);
    rt_release(list);
    return status;
}

static ts_status extreme(evaluator *ev, ev_arguments *args, bool is_max, rt_value *out) {
    const char *name = is_max ? "max" : "min";
    rt_value key = rt_none(), initial = {.tag = RT_TAG_UNINITIALIZED}, list = rt_none();
    size_t positional = 0;
    for (size_t i = 0; i < args->count; i++) {
        if (ts_str_is(args->items[i].name, "key"))
            key = ARG(i);
        else if (ts_str_is(args->items[i].name, "default"))
            initial = ARG(i);
        else
            positional++;
    }
    if (!positional)
        return ts_raise("TypeError", "%s expected at least 1 argument, got 0", name);
    if (positional == 1) {
        TS_TRY(ev_to_list(ev, ARG(0), &list));
    } else {
        TS_TRY(rt_list_make(positional, &list));
        for (size_t i = 0; i < args->count; i++)
            if (!args->items[i].name.length)
                TS_TRY(rt_list_append(list.as.list, ARG(i)));
    }
    ts_status status = NULL;
    rt_value best_key = rt_none();
    size_t best = 0;
    if (!list.as.list->count) {
        if (ev_is_given(initial))
            *out = rt_retain(initial);
        else
            status = ts_raise("ValueError", "%s() iterable argument is empty", name);
        rt_release(list);
        return status;
    }
    for (size_t i = 0; i < list.as.list->count && !status; i++) {
        rt_value k = rt_none();
        bool better = i == 0;
        if (rt_is_none(key))
            k = rt_retain(list.as.list->items[i]);
        else
            status = ev_call_with(ev, key, &list.as.list->items[i], 1, &k);
        if (!status && i)
            status = is_max ? ev_less(ev, best_key, k, &better) : ev_less(ev, k, best_key, &better);
        if (!status && better) {
            best = i;
            rt_assign(&best_key, k);
        } else {
            rt_release(k);
        }
    }
    rt_release(best_key);
    if (!status)
        *out = rt_retain(list.as.list->items[best]);
    rt_release(list);
    return status;
}
static ts_status do_max(evaluator *ev, ev_arguments *args, rt_value *out) {
    return extreme(ev, args, true, out);
}
static ts_status do_min(evaluator *ev, ev_arguments *args, rt_value *out) {
    return extreme(ev, args, false, out);
}

static ts_status do_sum(evaluator *ev, ev_arguments *args, rt_value *out) {
    rt_value list, total = rt_int(0);
    TS_TRY(wants(args, "sum", 1, 2));
    if (args->count > 1)
        total = rt_retain(ARG(1));
    TS_TRY(ev_to_list(ev, ARG(0), &list));
    ts_status status = NULL;
    for (size_t i = 0; i < list.as.list->count && !status; i++) {
        rt_value next;
        status = ev_binary(ev, AST_ADD, total, list.as.list->items[i], &next);
        rt_assign(&total, next);
    }
    rt_release(list);
    *out = total;
    return status;
}

/* ---- pairs ---- */

static ts_status iterator_of(rt_value list, ts_status status, rt_value *out) {
    if (!status)
        status = ev_iterator_make(list, out);
    rt_release(list);
    return status;
}

static ts_status do_enumerate(evaluator *ev, ev_arguments *args, rt_value *out) {
    rt_value slots[2], list, pairs;
    TS_TRY(ev_take(args, "enumerate", "iterable,start", slots));
    if (!ev_is_given(slots[0]))
        return ts_raise("TypeError", "enumerate() missing required argument 'iterable'");
    TS_TRY(ev_to_list(ev, slots[0], &list));
    int64_t start = ev_is_given(slots[1]) && ev_is_int(slots[1]) ? slots[1].as.i : 0;
    ts_status status = rt_list_make(list.as.list->count, &pairs);
    for (size_t i = 0; i < list.as.list->count && !status; i++) {
        rt_value pair, items[2] = {rt_int(start + (int64_t)i), list.as.list->items[i]};
        status = ev_tuple(items, 2, &pair);
        if (!status)
            status = rt_list_append(pairs.as.list, pair);
        rt_release(pair);
    }
    rt_release(list);
    return iterator_of(pairs, status, out);
}

static ts_status do_zip(evaluator *ev, ev_arguments *args, rt_value *out) {
    rt_value pairs, lists[16];
    size_t count = 0, n = SIZE_MAX;
    bool is_strict = false;
    ts_status status = NULL;
    for (size_t i = 0; i < args->count && !status; i++) {
        if (args->items[i].name.length)
            status = ev_truth(ev, ARG(i), &is_strict);
        else if (count == 16)
            status = ts_raise("TypeError", "zip() of more than 16 iterables is not supported");
        else {
            status = ev_to_list(ev, ARG(i), &lists[count]);
            if (!status)
                count++;
        }
    }
    for (size_t i = 0; i < count; i++)
        n = lists[i].as.list->count < n ? lists[i].as.list->count : n;
    for (size_t i = 0; i < count && is_strict && !status; i++)
        if (lists[i].as.list->count != n)
            status = ts_raise("ValueError", "zip() argument %zu is longer than argument 1", i + 1);
    if (!count)
        n = 0;
    ts_status made = rt_list_make(n, &pairs);
    if (!status)
        status = made;
    for (size_t k = 0; k < n && !status; k++) {
        rt_value items[16], pair;
        for (size_t i = 0; i < count; i++)
            items[i] = lists[i].as.list->items[k];
        status = ev_tuple(items, count, &pair);
        if (!status)
            status = rt_list_append(pairs.as.list, pair);
        rt_release(pair);
    }
    for (size_t i = 0; i < count; i++)
        rt_release(lists[i]);
    return iterator_of(pairs, status, out);
}

static ts_status map_filter(evaluator *ev, ev_arguments *args, bool is_map, rt_value *out) {
    rt_value result, lists[8];
    TS_TRY(wants(args, is_map ? "map" : "filter", 2, is_map ? 8 : 2));
    size_t count = args->count - 1, n = SIZE_MAX;
    ts_status status = NULL;
    for (size_t i = 0; i < count; i++)
        lists[i] = rt_none();
    for (size_t i = 0; i < count && !status; i++) {
        status = ev_to_list(ev, ARG(i + 1), &lists[i]);
        if (!status && lists[i].as.list->count < n)
            n = lists[i].as.list->count;
    }
    ts_status made = rt_list_make(0, &result);
    status = status ? status : made;
    for (size_t k = 0; k < n && !status; k++) {
        rt_value items[8], v = rt_none();
        for (size_t i = 0; i < count; i++)
            items[i] = lists[i].as.list->items[k];
        if (!is_map && rt_is_none(ARG(0)))
            v = rt_retain(items[0]);
        else
            status = ev_call_with(ev, ARG(0), items, count, &v);
        bool keeps = true;
        if (!status && !is_map)
            status = ev_truth(ev, v, &keeps);
        if (!status && keeps)
            status = rt_list_append(result.as.list, is_map ? v : items[0]);
        rt_release(v);
    }
    for (size_t i = 0; i < count; i++)
        rt_release(lists[i]);
    return iterator_of(result, status, out);
}
static ts_status do_map(evaluator *ev, ev_arguments *args, rt_value *out) {
    return map_filter(ev, args, true, out);
}
static ts_status do_filter(evaluator *ev, ev_arguments *args, rt_value *out) {
    return map_filter(ev, args, false, out);
}

static ts_status do_iter(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(wants(args, "iter", 1, 1));
    if (ev_as_iterator(ARG(0))) {
        *out = rt_retain(ARG(0));
        return NULL;
    }
    rt_value list;
    TS_TRY(ev_to_list(ev, ARG(0), &list));
    return iterator_of(list, NULL, out);
}

static ts_status do_next(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(wants(args, "next", 1, 2));
    ev_iterator *i = ev_as_iterator(ARG(0));
    if (!i)
        return ts_raise("TypeError", "'%.*s' object is not an iterator",
                        TS_STR_ARG(ev_type_name(ARG(0))));
    if (i->position < i->list.as.list->count) {
        *out = rt_retain(i->list.as.list->items[i->position++]);
        return NULL;
    }
    if (args->count < 2)
        return ts_raise("StopIteration", "%s", "");
    *out = rt_retain(ARG(1));
    return NULL;
}

/* ---- objects ---- */

static ts_status do_isinstance(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(wants(args, "isinstance", 2, 2));
    bool is = false;
    if (ARG(1).tag == RT_TAG_TUPLE)
        for (size_t i = 0; i < ARG(1).as.tuple->count && !is; i++)
            is = ev_isinstance(ev, ARG(0), fe_binding_of_value(ARG(1).as.tuple->items[i]));
    else
        is = ev_isinstance(ev, ARG(0), fe_binding_of_value(ARG(1)));
    *out = rt_bool(is);
    return NULL;
}

static ts_status do_issubclass(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(wants(args, "issubclass", 2, 2));
    fe_binding a = fe_binding_of_value(ARG(0)), b = fe_binding_of_value(ARG(1));
    if (a.kind != FE_CLASS)
        return ts_raise("TypeError", "issubclass() arg 1 must be a class");
    *out = rt_bool(b.kind == FE_CLASS && fe_class_is_a(a.class_, b.class_));
    return NULL;
}

static ts_status name_argument(evaluator *ev, rt_value v, const char *function, ts_str *out) {
    *out = (ts_str){0};
    if (!ev_is_str(v))
        return ts_raise("TypeError", "%s(): attribute name must be string", function);
    *out = ts_arena_str(ev->arena, ev_text(v));
    return NULL;
}

static ts_status do_getattr(evaluator *ev, ev_arguments *args, rt_value *out) {
    ts_str name;
    bool found;
    TS_TRY(wants(args, "getattr", 2, 3));
    TS_TRY(name_argument(ev, ARG(1), "getattr", &name));
    if (args->count == 2)
        return ev_get_attribute(ev, ARG(0), name, out);
    TS_TRY(ev_find_attribute(ev, ARG(0), name, &found, out));
    if (!found)
        *out = rt_retain(ARG(2));
    return NULL;
}

static ts_status do_hasattr(evaluator *ev, ev_arguments *args, rt_value *out) {
    ts_str name;
    bool found;
    rt_value v;
    TS_TRY(wants(args, "hasattr", 2, 2));
    TS_TRY(name_argument(ev, ARG(1), "hasattr", &name));
    TS_TRY(ev_find_attribute(ev, ARG(0), name, &found, &v));
    rt_release(v);
    *out = rt_bool(found);
    return NULL;
}

static ts_status do_setattr(evaluator *ev, ev_arguments *args, rt_value *out) {
    ts_str name;
    (void)out;
    TS_TRY(wants(args, "setattr", 3, 3));
    TS_TRY(name_argument(ev, ARG(1), "setattr", &name));
    return ev_set_attribute(ev, ARG(0), name, ARG(2));
}

static ts_status do_delattr(evaluator *ev, ev_arguments *args, rt_value *out) {
    ts_str name;
    (void)out;
    TS_TRY(wants(args, "delattr", 2, 2));
    TS_TRY(name_argument(ev, ARG(1), "delattr", &name));
    return ev_delete_attribute(ev, ARG(0), name);
}

static ts_status do_type(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(wants(args, "type", 1, 1));
    return ev_get_attribute(ev, ARG(0), TS_STR("__class__"), out);
}

static ts_status do_callable(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(wants(args, "callable", 1, 1));
    rt_value v = ARG(0);
    fe_class *c = ev_class_of(v);
    *out = rt_bool(v.tag == RT_TAG_FUNCTION || ev_is_module(v) ||
                   (c && fe_class_method(c, TS_STR("__call__"))) ||
                   (v.tag == RT_TAG_CAPSULE && !ev_as_range(v) && !ev_as_iterator(v)));
    (void)ev;
    return NULL;
}

static ts_status do_id(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(wants(args, "id", 1, 1));
    *out = rt_int(rt_is_counted(ARG(0)) ? (int64_t)(intptr_t)ARG(0).as.pointer : ARG(0).as.i);
    return NULL;
}

static ts_status do_hash(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    uint64_t h;
    TS_TRY(wants(args, "hash", 1, 1));
    TS_TRY(rt_hash(ARG(0), &h));
    *out = rt_int((int64_t)h);
    return NULL;
}

static ts_status do_object(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)args;
    return fe_binding_to_value(
        ev->fe, (fe_binding){.kind = FE_NAME, .path = TS_STR("builtins.object()")}, out);
}

static ts_status do_vars(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(wants(args, "vars", 1, 1));
    return ev_get_attribute(ev, ARG(0), TS_STR("__dict__"), out);
}

static ts_status do_slice(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(wants(args, "slice", 1, 3));
    if (args->count == 1)
        return ev_slice_make(rt_none(), ARG(0), rt_none(), out);
    return ev_slice_make(ARG(0), ARG(1), args->count > 2 ? ARG(2) : rt_none(), out);
}

/* ---- numbers ---- */

static ts_status do_round(evaluator *ev, ev_arguments *args, rt_value *out) {
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
        return float_to_int(nearbyint(v.as.f), out);
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

static ts_status do_divmod(evaluator *ev, ev_arguments *args, rt_value *out) {
    rt_value pair[2] = {rt_none(), rt_none()};
    TS_TRY(wants(args, "divmod", 2, 2));
    TS_TRY(ev_binary(ev, AST_FLOORDIV, ARG(0), ARG(1), &pair[0]));
    TS_TRY(ev_binary(ev, AST_MOD, ARG(0), ARG(1), &pair[1]));
    return ev_tuple(pair, 2, out);
}

static ts_status do_pow(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(wants(args, "pow", 2, 3));
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
    TS_TRY(wants(args, name, 1, 1));
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
static ts_status do_hex(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    return digits(args, "hex", 4, "0x", out);
}
static ts_status do_oct(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    return digits(args, "oct", 3, "0o", out);
}
static ts_status do_bin(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    return digits(args, "bin", 1, "0b", out);
}

static ts_status do_ord(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(wants(args, "ord", 1, 1));
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

static ts_status do_chr(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(wants(args, "chr", 1, 1));
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

static const struct {
    const char *name;
    builtin run;
} builtins[] = {
    {"abs", do_abs}, {"all", do_all}, {"any", do_any}, {"bin", do_bin}, {"bool", do_bool},
    {"callable", do_callable}, {"chr", do_chr}, {"complex", do_complex}, {"delattr", do_delattr},
    {"dict", do_dict}, {"divmod", do_divmod}, {"enumerate", do_enumerate}, {"filter", do_filter},
    {"float", do_float}, {"format", do_format}, {"frozenset", do_set}, {"getattr", do_getattr},
    {"hasattr", do_hasattr}, {"hash", do_hash}, {"hex", do_hex}, {"id", do_id}, {"int", do_int},
    {"isinstance", do_isinstance}, {"issubclass", do_issubclass}, {"iter", do_iter},
    {"len", do_len}, {"list", do_list}, {"map", do_map}, {"max", do_max}, {"min", do_min},
    {"next", do_next}, {"object", do_object}, {"oct", do_oct}, {"ord", do_ord}, {"pow", do_pow},
    {"print", do_print}, {"range", do_range}, {"repr", do_repr}, {"reversed", do_reversed},
    {"round", do_round}, {"set", do_set}, {"setattr", do_setattr}, {"slice", do_slice},
    {"sorted", do_sorted}, {"str", do_str}, {"sum", do_sum}, {"tuple", do_tuple},
    {"type", do_type}, {"vars", do_vars}, {"zip", do_zip}};

ts_status ev_builtin(evaluator *ev, ts_str path, ev_arguments *args, rt_value *out) {
    ts_str name = {path.data + 9, path.length - 9};
    *out = rt_none();
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
        if (ts_str_is(name, builtins[i].name)) {
            ts_status status = builtins[i].run(ev, args, out);
            if (status)
                rt_assign(out, rt_none());
            return status;
        }
    if (ts_str_is(name, "str.join") || ts_str_is(name, "str.lower") || ts_str_is(name, "str.upper") ||
        ts_str_is(name, "str.strip") || ts_str_is(name, "dict.fromkeys")) {
        const char *dot = memchr(name.data, '.', name.length);
        ts_str method = {dot + 1, name.length - (size_t)(dot + 1 - name.data)};
        if (ts_str_is(method, "fromkeys")) {
            rt_value list, v = args->count > 1 ? ARG(1) : rt_none();
            TS_TRY(wants(args, "fromkeys", 1, 2));
            TS_TRY(rt_dict_make(out));
            TS_TRY(ev_to_list(ev, ARG(0), &list));
            ts_status status = NULL;
            for (size_t i = 0; i < list.as.list->count && !status; i++)
                status = rt_dict_set(out->as.dict, list.as.list->items[i], v);
            rt_release(list);
            return status;
        }
        TS_TRY(wants(args, "method", 1, 4));
        ev_arguments rest = {0};
        for (size_t i = 1; i < args->count; i++)
            ev_arguments_add(ev, &rest, args->items[i].name, rt_retain(ARG(i)));
        ts_status status = ev_call_method(ev, ARG(0), method, &rest, out);
        ev_arguments_release(&rest);
        return status;
    }
    return ts_error_make(TS_ERR_UNSUPPORTED, "%.*s() is not available when a script is compiled",
                         TS_STR_ARG(name));
}

/* ---- math ---- */

static ts_status domain(void) { return ts_raise("ValueError", "math domain error"); }

static ts_status math1(ts_str name, double x, bool *out_found, double *out) {
    static const struct {
        const char *name;
        double (*run)(double);
    } functions[] = {{"sin", sin}, {"cos", cos}, {"tan", tan}, {"asin", asin}, {"acos", acos},
                     {"atan", atan}, {"sinh", sinh}, {"cosh", cosh}, {"tanh", tanh},
                     {"asinh", asinh}, {"acosh", acosh}, {"atanh", atanh}, {"exp", exp},
                     {"expm1", expm1}, {"exp2", exp2}, {"log2", log2}, {"log10", log10}, {"log1p", log1p},
                     {"sqrt", sqrt}, {"cbrt", cbrt}, {"fabs", fabs}, {"erf", erf}, {"erfc", erfc},
                     {"gamma", tgamma}, {"lgamma", lgamma}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (ts_str_is(name, functions[i].name)) {
            *out_found = true;
            if ((ts_str_is(name, "log2") || ts_str_is(name, "log10")) && x <= 0)
                return domain();
            *out = functions[i].run(x);
            if (isnan(*out) && !isnan(x))
                return domain();
            if (isinf(*out) && isfinite(x))
                return ts_str_starts_with(name, "log") || ts_str_is(name, "atanh") ||
                               ts_str_is(name, "lgamma") || ts_str_is(name, "gamma")
                           ? domain()
                           : ts_raise("OverflowError", "math range error");
            return NULL;
        }
    *out_found = false;
    return NULL;
}

static ts_status math_numbers(evaluator *ev, ev_arguments *args, double *x, size_t max) {
    for (size_t i = 0; i < args->count && i < max; i++) {
        rt_value v = ARG(i), f;
        if (args->items[i].name.length)
            continue;
        if (v.tag == RT_TAG_TENSOR) {
            ev_arguments one = {&args->items[i], 1, 1};
            TS_TRY(do_float(ev, &one, &f));
            v = f;
        }
        if (!ev_is_number(v))
            return ts_raise("TypeError", "must be real number, not %.*s", TS_STR_ARG(ev_type_name(v)));
        x[i] = ev_double(v);
    }
    return NULL;
}

static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

static ts_status math_integers(ts_str name, ev_arguments *args, bool *out_found, rt_value *out) {
    *out_found = true;
    bool is_gcd = ts_str_is(name, "gcd"), is_lcm = ts_str_is(name, "lcm");
    bool is_known = is_gcd || is_lcm || ts_str_is(name, "factorial") || ts_str_is(name, "comb") ||
                    ts_str_is(name, "perm") || ts_str_is(name, "isqrt");
    if (!is_known) {
        *out_found = false;
        return NULL;
    }
    for (size_t i = 0; i < args->count; i++)
        if (!ev_is_int(ARG(i)))
            return ts_raise("TypeError", "'%.*s' object cannot be interpreted as an integer",
                            TS_STR_ARG(ev_type_name(ARG(i))));
    int64_t r = is_lcm ? 1 : 0;
    if (is_gcd || is_lcm) {
        for (size_t i = 0; i < args->count; i++) {
            int64_t n = ARG(i).as.i, g = gcd(r, n);
            if (is_gcd)
                r = g;
            else if (g == 0 || !ts_mul_i64(r, n / g, &r))
                r = 0;
        }
        *out = rt_int(r < 0 ? -r : r);
        return NULL;
    }
    if (!args->count || ARG(0).as.i < 0)
        return ts_raise("ValueError", "%.*s() not defined for negative values", TS_STR_ARG(name));
    int64_t n = ARG(0).as.i, k = args->count > 1 ? ARG(1).as.i : n;
    if (ts_str_is(name, "isqrt")) {
        int64_t root = (int64_t)sqrt((double)n);
        while (root > 0 && root > n / root)
            root--;
        while ((root + 1) <= n / (root + 1))
            root++;
        *out = rt_int(root);
        return NULL;
    }
    bool is_comb = ts_str_is(name, "comb");
    if (ts_str_is(name, "factorial"))
        k = n;
    if (k < 0)
        return ts_raise("ValueError", "k must be a non-negative integer");
    if (k > n) {
        *out = rt_int(0);
        return NULL;
    }
    if (is_comb && k > n - k)
        k = n - k;
    r = 1;
    for (int64_t i = 0; i < k; i++) {
        if (!ts_mul_i64(r, n - i, &r))
            return ts_raise("OverflowError", "integer result does not fit 64 bits");
        if (is_comb)
            r /= i + 1;
    }
    *out = rt_int(r);
    return NULL;
}

static ts_status math_list(evaluator *ev, ts_str name, ev_arguments *args, bool *out_found,
                           rt_value *out) {
    *out_found = true;
    rt_value list, other;
    if (ts_str_is(name, "prod") && args->count) {
        TS_TRY(ev_to_list(ev, ARG(0), &list));
        rt_value total = args->count > 1 ? rt_retain(ARG(1)) : rt_int(1);
        ts_status status = NULL;
        for (size_t i = 0; i < list.as.list->count && !status; i++) {
            rt_value next;
            status = ev_binary(ev, AST_MUL, total, list.as.list->items[i], &next);
            rt_assign(&total, next);
        }
        rt_release(list);
        *out = total;
        return status;
    }
    if (ts_str_is(name, "fsum") && args->count == 1) {
        /* Neumaier's compensated sum: exact where the terms' spread allows */
        double sum = 0, c = 0;
        TS_TRY(ev_to_list(ev, ARG(0), &list));
        for (size_t i = 0; i < list.as.list->count; i++) {
            double x = ev_double(list.as.list->items[i]), t = sum + x;
            c += fabs(sum) >= fabs(x) ? (sum - t) + x : (x - t) + sum;
            sum = t;
        }
        rt_release(list);
        *out = rt_float(sum + c);
        return NULL;
    }
    if (ts_str_is(name, "dist") && args->count == 2) {
        double sum = 0;
        TS_TRY(ev_to_list(ev, ARG(0), &list));
        TS_TRY(ev_to_list(ev, ARG(1), &other));
        for (size_t i = 0; i < list.as.list->count && i < other.as.list->count; i++)
            sum = hypot(sum, ev_double(list.as.list->items[i]) - ev_double(other.as.list->items[i]));
        rt_release(list);
        rt_release(other);
        *out = rt_float(sum);
        return NULL;
    }
    *out_found = false;
    return NULL;
}

ts_status ev_math(evaluator *ev, ts_str name, ev_arguments *args, rt_value *out) {
    bool found;
    *out = rt_none();
    TS_TRY(math_integers(name, args, &found, out));
    if (!found)
        TS_TRY(math_list(ev, name, args, &found, out));
    if (found)
        return NULL;
    double x[4] = {0}, r = 0;
    TS_TRY(math_numbers(ev, args, x, 4));
    size_t n = args->count;
    if (n == 0)
        return ts_raise("TypeError", "math.%.*s() takes at least one argument (0 given)",
                        TS_STR_ARG(name));
    if (ts_str_is(name, "floor") || ts_str_is(name, "ceil") || ts_str_is(name, "trunc")) {
        if (ev_is_int(ARG(0))) {
            *out = rt_int(ARG(0).as.i);
            return NULL;
        }
        return float_to_int(name.data[0] == 'f' ? floor(x[0]) : name.data[0] == 'c' ? ceil(x[0]) : trunc(x[0]),
                            out);
    }
    if (ts_str_is(name, "log")) {
        if (x[0] <= 0 || (n > 1 && x[1] <= 0))
            return domain();
        *out = rt_float(n > 1 ? log(x[0]) / log(x[1]) : log(x[0]));
        return NULL;
    }
    if (ts_str_is(name, "isnan") || ts_str_is(name, "isinf") || ts_str_is(name, "isfinite")) {
        *out = rt_bool(ts_str_is(name, "isnan") ? isnan(x[0])
                       : ts_str_is(name, "isinf") ? isinf(x[0]) != 0
                                                  : isfinite(x[0]) != 0);
        return NULL;
    }
    if (ts_str_is(name, "isclose")) {
        double relative = 1e-9, absolute = 0;
        for (size_t i = 2; i < n; i++) {
            if (ts_str_is(args->items[i].name, "rel_tol"))
                relative = ev_double(ARG(i));
            if (ts_str_is(args->items[i].name, "abs_tol"))
                absolute = ev_double(ARG(i));
        }
        double d = fabs(x[0] - x[1]);
        *out = rt_bool(x[0] == x[1] ||
                       (isfinite(d) && (d <= relative * fabs(x[0]) || d <= relative * fabs(x[1]) ||
                                        d <= absolute)));
        return NULL;
    }
    if (ts_str_is(name, "degrees") || ts_str_is(name, "radians")) {
        const double pi = 3.14159265358979323846;
        *out = rt_float(name.data[0] == 'd' ? x[0] * (180 / pi) : x[0] * (pi / 180));
        return NULL;
    }
    if (n >= 2) {
        found = true;
        if (ts_str_is(name, "pow")) {
            r = pow(x[0], x[1]);
            if (isnan(r) && !isnan(x[0]) && !isnan(x[1]))
                return domain();
        } else if (ts_str_is(name, "atan2")) {
            r = atan2(x[0], x[1]);
        } else if (ts_str_is(name, "fmod")) {
            r = fmod(x[0], x[1]);
            if (isnan(r) && !isnan(x[0]) && !isnan(x[1]))
                return domain();
        } else if (ts_str_is(name, "remainder")) {
            r = remainder(x[0], x[1]);
        } else if (ts_str_is(name, "copysign")) {
            r = copysign(x[0], x[1]);
        } else if (ts_str_is(name, "hypot")) {
            r = hypot(hypot(x[0], x[1]), hypot(x[2], x[3]));
        } else if (ts_str_is(name, "ldexp")) {
            r = ldexp(x[0], (int)x[1]);
        } else {
            found = false;
        }
        if (found) {
            *out = rt_float(r);
            return NULL;
        }
    }
    TS_TRY(math1(name, x[0], &found, &r));
    if (found) {
        *out = rt_float(r);
        return NULL;
    }
    return ts_error_make(TS_ERR_UNSUPPORTED, "math.%.*s is not available when a script is compiled",
                         TS_STR_ARG(name));
}

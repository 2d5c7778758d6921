/* frontend/init_eval_builtin_sequence.c - the evaluator of scripts: built-in functions over what is iterable. */
#include <stdlib.h>

#include "frontend/init_eval_builtin.h"
#include "runtime/base/checked.h"
#include "runtime/values/tensor.h"

static ts_status any_all(evaluator *ev, ev_arguments *args, bool is_any, rt_value *out) {
    rt_value list;
    TS_TRY(ev_wants(args, is_any ? "any" : "all", 1, 1));
    TS_TRY(ev_to_list(ev, ARG(0), &list));
    bool result = !is_any;
    ts_status status = NULL;
    for (size_t i = 0; i < list.as.list->count && result != is_any && !status; i++)
        status = ev_truth(ev, list.as.list->items[i], &result);
    rt_release(list);
    *out = rt_bool(result);
    return status;
}
ts_status ev_do_any(evaluator *ev, ev_arguments *args, rt_value *out) {
    return any_all(ev, args, true, out);
}
ts_status ev_do_all(evaluator *ev, ev_arguments *args, rt_value *out) {
    return any_all(ev, args, false, out);
}

ts_status ev_do_len(evaluator *ev, ev_arguments *args, rt_value *out) {
    int64_t n;
    TS_TRY(ev_wants(args, "len", 1, 1));
    TS_TRY(ev_length(ev, ARG(0), &n));
    *out = rt_int(n);
    return NULL;
}

ts_status ev_do_range(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(ev_wants(args, "range", 1, 3));
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

ts_status ev_do_list(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(ev_wants(args, "list", 0, 1));
    return args->count ? copy_list(ev, ARG(0), out) : rt_list_make(0, out);
}

ts_status ev_do_tuple(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(ev_wants(args, "tuple", 0, 1));
    if (!args->count)
        return rt_tuple_make(0, out);
    rt_value list;
    TS_TRY(ev_to_list(ev, ARG(0), &list));
    ts_status status = ev_tuple(list.as.list->items, list.as.list->count, out);
    rt_release(list);
    return status;
}

ts_status ev_do_set(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(ev_wants(args, "set", 0, 1));
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

ts_status ev_do_dict(evaluator *ev, ev_arguments *args, rt_value *out) {
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

ts_status ev_do_sorted(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(ev_wants(args, "sorted", 1, 3));
    TS_TRY(copy_list(ev, ARG(0), out));
    return ev_sort(ev, *out, args, 1);
}

ts_status ev_do_reversed(evaluator *ev, ev_arguments *args, rt_value *out) {
    rt_value list;
    TS_TRY(ev_wants(args, "reversed", 1, 1));
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
ts_status ev_do_max(evaluator *ev, ev_arguments *args, rt_value *out) {
    return extreme(ev, args, true, out);
}
ts_status ev_do_min(evaluator *ev, ev_arguments *args, rt_value *out) {
    return extreme(ev, args, false, out);
}

ts_status ev_do_sum(evaluator *ev, ev_arguments *args, rt_value *out) {
    rt_value list, total = rt_int(0);
    TS_TRY(ev_wants(args, "sum", 1, 2));
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

ts_status ev_iterator_of(rt_value list, ts_status status, rt_value *out) {
    if (!status)
        status = ev_iterator_make(list, out);
    rt_release(list);
    return status;
}

ts_status ev_do_enumerate(evaluator *ev, ev_arguments *args, rt_value *out) {
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
    return ev_iterator_of(pairs, status, out);
}

ts_status ev_do_zip(evaluator *ev, ev_arguments *args, rt_value *out) {
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
    return ev_iterator_of(pairs, status, out);
}

static ts_status map_filter(evaluator *ev, ev_arguments *args, bool is_map, rt_value *out) {
    rt_value result, lists[8];
    TS_TRY(ev_wants(args, is_map ? "map" : "filter", 2, is_map ? 8 : 2));
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
    return ev_iterator_of(result, status, out);
}
ts_status ev_do_map(evaluator *ev, ev_arguments *args, rt_value *out) {
    return map_filter(ev, args, true, out);
}
ts_status ev_do_filter(evaluator *ev, ev_arguments *args, rt_value *out) {
    return map_filter(ev, args, false, out);
}

ts_status ev_do_iter(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(ev_wants(args, "iter", 1, 1));
    if (ev_as_iterator(ARG(0))) {
        *out = rt_retain(ARG(0));
        return NULL;
    }
    rt_value list;
    TS_TRY(ev_to_list(ev, ARG(0), &list));
    return ev_iterator_of(list, NULL, out);
}

ts_status ev_do_next(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(ev_wants(args, "next", 1, 2));
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

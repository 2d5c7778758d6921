/* runtime/ops/ref_list.c - lists and tuples, as Python's. */
#include <stdlib.h>

#include "runtime/base/checked.h"
#include "runtime/ops/ref_kernel.h"

/* Items of a list or tuple, borrowed. */
static bool items_of(rt_value v, const rt_value **items, int64_t *count) {
    if (v.tag == RT_TAG_LIST) {
        *items = v.as.list->items;
        *count = (int64_t)v.as.list->count;
        return true;
    }
    if (v.tag == RT_TAG_TUPLE) {
        *items = v.as.tuple->items;
        *count = (int64_t)v.as.tuple->count;
        return true;
    }
    *items = NULL;
    *count = 0;
    return false;
}

static ts_status append_all(rt_list *list, const rt_value *items, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        TS_TRY(rt_list_append(list, items[i]));
    return NULL;
}

static ts_status copy_list(const rt_value *items, int64_t count, rt_value *out) {
    TS_TRY(rt_list_make((size_t)count, out));
    ts_status status = append_all(out->as.list, items, count);
    if (status)
        rt_release(*out);
    return status;
}

static bool position(int64_t *index, int64_t count) {
    *index = *index < 0 ? *index + count : *index;
    return *index >= 0 && *index < count;
}

/* ---- reading ---- */

KERNEL(list_getitem) {
    const rt_value *items;
    int64_t count, index = args[1].as.i;
    if (!items_of(args[0], &items, &count))
        return ts_raise("TypeError", "'%s' object is not subscriptable", rt_tag_name(args[0]));
    if (!position(&index, count))
        return ts_raise("IndexError", "%s index out of range", rt_tag_name(args[0]));
    outs[0] = rt_retain(items[index]);
    return NULL;
}

KERNEL(value_len) {
    rt_value v = args[0];
    switch (v.tag) {
    case RT_TAG_LIST: outs[0] = rt_int((int64_t)v.as.list->count); return NULL;
    case RT_TAG_TUPLE: outs[0] = rt_int((int64_t)v.as.tuple->count); return NULL;
    case RT_TAG_DICT: outs[0] = rt_int((int64_t)v.as.dict->live_count); return NULL;
    case RT_TAG_STR: outs[0] = rt_int((int64_t)v.as.str->code_points); return NULL;
    case RT_TAG_TENSOR:
        if (v.as.tensor->rank == 0)
            return ts_raise("TypeError", "len() of a 0-d tensor");
        outs[0] = rt_int(v.as.tensor->sizes[0]);
        return NULL;
    default: return ts_raise("TypeError", "object of type '%s' has no len()", rt_tag_name(v));
    }
}

KERNEL(list_copy) {
    const rt_value *items;
    int64_t count;
    (void)items_of(args[0], &items, &count);
    return copy_list(items, count, outs);
}

static ts_status slice(const rt_value *args, rt_value *out) {
    const rt_value *items;
    int64_t count, start, step, n;
    if (!items_of(args[0], &items, &count))
        return ts_raise("TypeError", "'%s' object is not subscriptable", rt_tag_name(args[0]));
    TS_TRY(rt_slice_bounds(args[1], args[2], args[3], count, &start, &step, &n));
    if (args[0].tag == RT_TAG_TUPLE) {
        TS_TRY(rt_tuple_make((size_t)n, out));
        for (int64_t i = 0; i < n; i++)
            out->as.tuple->items[i] = rt_retain(items[start + i * step]);
        return NULL;
    }
    TS_TRY(rt_list_make((size_t)n, out));
    out->as.list->base.flags |= rt_marks(&args[0].as.list->base);
    for (int64_t i = 0; i < n; i++) {
        ts_status status = rt_list_append(out->as.list, items[start + i * step]);
        if (status) {
            rt_release(*out);
            return status;
        }
    }
    return NULL;
}

KERNEL(list_slice) { return slice(args, outs); }

static ts_status find_item(rt_value list, rt_value item, int64_t from, int64_t to, int64_t *out) {
    const rt_value *items;
    int64_t count;
    *out = -1;
    if (!items_of(list, &items, &count))
        return ts_raise("TypeError", "argument of type '%s' is not iterable", rt_tag_name(list));
    for (int64_t i = from; i < to && i < count; i++) {
        bool equal;
        TS_TRY(rt_equal_or_tensor(items[i], item, &equal));
        if (equal) {
            *out = i;
            return NULL;
        }
        (void)items_of(list, &items, &count);
    }
    return NULL;
}

KERNEL(list_contains) {
    int64_t at;
    TS_TRY(find_item(args[0], args[1], 0, INT64_MAX, &at));
    outs[0] = rt_bool(at >= 0);
    return NULL;
}

static ts_status list_index(rt_value list, rt_value item, int64_t from, int64_t to,
                            rt_value *out) {
    int64_t at;
    TS_TRY(find_item(list, item, from, to, &at));
    if (at < 0) {
        rt_value repr;
        TS_TRY(rt_to_repr(item, &repr));
        ts_status status = ts_raise("ValueError", "%s is not in list", repr.as.str->data);
        rt_release(repr);
        return status;
    }
    *out = rt_int(at);
    return NULL;
}

KERNEL(list_index) { return list_index(args[0], args[1], 0, INT64_MAX, outs); }

KERNEL(list_index_range) {
    int64_t count = (int64_t)args[0].as.list->count, from = args[2].as.i, to = args[3].as.i;
    from = from < 0 ? (from + count < 0 ? 0 : from + count) : from;
    to = to < 0 ? to + count : to;
    return list_index(args[0], args[1], from, to, outs);
}

KERNEL(list_count) {
    int64_t n = 0;
    const rt_value *items;
    int64_t count;
    (void)items_of(args[0], &items, &count);
    for (int64_t i = 0; i < count; i++) {
        bool equal;
        TS_TRY(rt_equal_or_tensor(items[i], args[1], &equal));
        n += equal;
    }
    outs[0] = rt_int(n);
    return NULL;
}

static ts_status truth(rt_value v, bool want, bool *out) {
    const rt_value *items;
    int64_t count;
    (void)items_of(v, &items, &count);
    *out = false;
    for (int64_t i = 0; i < count; i++) {
        bool t;
        TS_TRY(rt_truth(items[i], &t));
        if (t == want) {
            *out = true;
            return NULL;
        }
    }
    return NULL;
}

KERNEL(list_any) {
    bool found;
    TS_TRY(truth(args[0], true, &found));
    outs[0] = rt_bool(found);
    return NULL;
}

KERNEL(list_all) {
    bool found;
    TS_TRY(truth(args[0], false, &found));
    outs[0] = rt_bool(!found);
    return NULL;
}

static ts_status extreme(rt_value v, bool want_max, rt_value *out) {
    const rt_value *items;
    int64_t count;
    (void)items_of(v, &items, &count);
    if (count == 0)
        return ts_raise("ValueError", "%s() arg is an empty sequence", want_max ? "max" : "min");
    rt_value best = items[0];
    for (int64_t i = 1; i < count; i++) {
        bool better;
        TS_TRY(want_max ? rt_less(best, items[i], &better) : rt_less(items[i], best, &better));
        if (better)
            best = items[i];
    }
    *out = rt_retain(best);
    return NULL;
}

KERNEL(list_min) { return extreme(args[0], false, outs); }
KERNEL(list_max) { return extreme(args[0], true, outs); }

static ts_status sum(rt_value v, bool as_float, rt_value *out) {
    const rt_value *items;
    int64_t count, total = 0;
    double re = 0, im = 0;
    rt_number_kind kind = as_float ? NUMBER_FLOAT : NUMBER_INT;
    (void)items_of(v, &items, &count);
    for (int64_t i = 0; i < count; i++) {
        rt_number n;
        TS_TRY(rt_number_of(items[i], &n));
        kind = n.kind > kind ? n.kind : kind;
        if (kind == NUMBER_INT && !ts_add_i64(total, n.i, &total))
            return ts_raise("OverflowError", "Python int too large to convert to C long");
        re += n.f;
        im += n.im;
    }
    if (kind == NUMBER_COMPLEX)
        return rt_complex_make(re, im, out);
    *out = kind == NUMBER_INT ? rt_int(total) : rt_float(re);
    return NULL;
}

KERNEL(list_sum) { return sum(args[0], false, outs); }
KERNEL(list_sum_float) { return sum(args[0], true, outs); }

/* ---- writing ---- */

KERNEL(list_append) {
    TS_TRY(rt_list_append(args[0].as.list, args[1]));
    outs[0] = rt_retain(args[0]);
    return NULL;
}

static ts_status extend(rt_list *list, rt_value other) {
    const rt_value *items;
    int64_t count;
    (void)items_of(other, &items, &count);
    for (int64_t i = 0; i < count; i++) { /* a list may extend itself: its items move */
        (void)items_of(other, &items, &(int64_t){0});
        TS_TRY(rt_list_append(list, items[i]));
    }
    return NULL;
}

KERNEL(list_extend) { return extend(args[0].as.list, args[1]); }

KERNEL(list_iadd) {
    TS_TRY(extend(args[0].as.list, args[1]));
    outs[0] = rt_retain(args[0]);
    return NULL;
}

KERNEL(list_insert) {
    int64_t count = (int64_t)args[0].as.list->count, at = args[1].as.i;
    at = at < 0 ? (at + count < 0 ? 0 : at + count) : at > count ? count : at;
    return rt_list_insert(args[0].as.list, (size_t)at, args[2]);
}

KERNEL(list_pop) {
    int64_t count = (int64_t)args[0].as.list->count, at = args[1].as.i;
    if (count == 0)
        return ts_raise("IndexError", "pop from empty list");
    if (!position(&at, count))
        return ts_raise("IndexError", "pop index out of range");
    outs[0] = rt_list_take_at(args[0].as.list, (size_t)at);
    return NULL;
}

KERNEL(list_remove) {
    int64_t at;
    TS_TRY(find_item(args[0], args[1], 0, INT64_MAX, &at));
    if (at < 0)
        return ts_raise("ValueError", "list.remove(x): x not in list");
    rt_release(rt_list_take_at(args[0].as.list, (size_t)at));
    return NULL;
}

KERNEL(list_delete) {
    int64_t at = args[1].as.i;
    if (!position(&at, (int64_t)args[0].as.list->count))
        return ts_raise("IndexError", "list assignment index out of range");
    rt_release(rt_list_take_at(args[0].as.list, (size_t)at));
    return NULL;
}

KERNEL(list_setitem) {
    int64_t at = args[1].as.i;
    if (!position(&at, (int64_t)args[0].as.list->count))
        return ts_raise("IndexError", "list assignment index out of range");
    rt_assign(&args[0].as.list->items[at], rt_retain(args[2]));
    outs[0] = rt_retain(args[0]);
    return NULL;
}

KERNEL(list_clear) {
    rt_list_clear(args[0].as.list);
    return NULL;
}

static void reverse(rt_value *items, size_t count) {
    for (size_t i = 0; i < count / 2; i++) {
        rt_value t = items[i];
        items[i] = items[count - 1 - i];
        items[count - 1 - i] = t;
    }
}

KERNEL(list_reverse) {
    reverse(args[0].as.list->items, args[0].as.list->count);
    return NULL;
}

KERNEL(list_reversed) {
    TS_TRY(rt_ref_list_copy(context, args, outs));
    reverse(outs[0].as.list->items, outs[0].as.list->count);
    return NULL;
}

KERNEL(list_delete_slice) {
    rt_list *list = args[0].as.list;
    int64_t start, step, n;
    TS_TRY(rt_slice_bounds(args[1], args[2], args[3], (int64_t)list->count, &start, &step, &n));
    if (step < 0) {
        start += (n - 1) * step;
        step = -step;
    }
    for (int64_t i = n - 1; i >= 0; i--)
        rt_release(rt_list_take_at(list, (size_t)(start + i * step)));
    return NULL;
}

KERNEL(list_set_slice) {
    rt_list *list = args[0].as.list;
    int64_t start, step, n, count;
    const rt_value *items;
    rt_value copy;
    (void)items_of(args[4], &items, &count);
    TS_TRY(rt_slice_bounds(args[1], args[2], args[3], (int64_t)list->count, &start, &step, &n));
    if (step != 1 && count != n)
        return ts_raise("ValueError",
                        "attempt to assign sequence of size %lld to extended slice of size %lld",
                        (long long)count, (long long)n);
    TS_TRY(copy_list(items, count, &copy)); /* the values may be the list itself */
    ts_status status = NULL;
    if (step != 1) {
        for (int64_t i = 0; i < n; i++)
            rt_assign(&list->items[start + i * step], rt_retain(copy.as.list->items[i]));
    } else {
        for (int64_t i = 0; i < n; i++)
            rt_release(rt_list_take_at(list, (size_t)start));
        for (int64_t i = 0; i < count && !status; i++)
            status = rt_list_insert(list, (size_t)(start + i), copy.as.list->items[i]);
    }
    rt_release(copy);
    return status;
}

/* ---- new lists ---- */

KERNEL(list_add) {
    const rt_value *items;
    int64_t count;
    TS_TRY(rt_ref_list_copy(context, args, outs));
    (void)items_of(args[1], &items, &count);
    ts_status status = append_all(outs[0].as.list, items, count);
    if (status)
        rt_release(outs[0]);
    return status;
}

KERNEL(tuple_add) {
    const rt_value *a, *b;
    int64_t n, m;
    (void)items_of(args[0], &a, &n);
    (void)items_of(args[1], &b, &m);
    TS_TRY(rt_tuple_make((size_t)(n + m), outs));
    for (int64_t i = 0; i < n + m; i++)
        outs[0].as.tuple->items[i] = rt_retain(i < n ? a[i] : b[i - n]);
    return NULL;
}

KERNEL(copy_deep) { return rt_deep_copy(args[0], true, &outs[0]); }

KERNEL(copy_shallow) {
    switch (args[0].tag) {
    case RT_TAG_LIST:
        TS_TRY(rt_list_make(args[0].as.list->count, outs));
        for (size_t i = 0; i < args[0].as.list->count; i++)
            TS_TRY(rt_list_append(outs[0].as.list, args[0].as.list->items[i]));
        outs[0].as.list->base.flags |= rt_marks(&args[0].as.list->base);
        return NULL;
    case RT_TAG_DICT: {
        const rt_dict_entry *entry;
        TS_TRY(rt_dict_make(outs));
        outs[0].as.dict->base.flags |= rt_marks(&args[0].as.dict->base);
        for (size_t at = 0; (entry = rt_dict_next(args[0].as.dict, &at));)
            TS_TRY(rt_dict_set(outs[0].as.dict, entry->key, entry->value));
        return NULL;
    }
    case RT_TAG_OBJECT:
        TS_TRY(rt_object_make(args[0].as.object->class_, outs));
        for (size_t i = 0; i < args[0].as.object->field_count && i < outs[0].as.object->field_count; i++)
            rt_assign(&outs[0].as.object->fields[i], rt_retain(args[0].as.object->fields[i]));
        return NULL;
    default:
        outs[0] = rt_retain(args[0]);
        return NULL;
    }
}

KERNEL(mark) {
    args[0].as.counted->flags |= (uint32_t)args[1].as.i & RT_MARKS;
    return NULL;
}

KERNEL(list_to_tuple) {
    const rt_value *items;
    int64_t n;
    (void)items_of(args[0], &items, &n);
    TS_TRY(rt_tuple_make((size_t)n, outs));
    for (int64_t i = 0; i < n; i++)
        outs[0].as.tuple->items[i] = rt_retain(items[i]);
    return NULL;
}

static ts_status repeat(rt_value list, int64_t n, rt_value *out) {
    const rt_value *items;
    int64_t count, total;
    (void)items_of(list, &items, &count);
    n = n < 0 ? 0 : n;
    if (!ts_mul_i64(count, n, &total) || total > (int64_t)1 << 36)
        return ts_no_memory();
    TS_TRY(rt_list_make((size_t)total, out));
    for (int64_t i = 0; i < n && count; i++) {
        ts_status status = append_all(out->as.list, items, count);
        if (status) {
            rt_release(*out);
            return status;
        }
    }
    return NULL;
}

KERNEL(list_mul) { return repeat(args[0], args[1].as.i, outs); }
KERNEL(list_rmul) { return repeat(args[1], args[0].as.i, outs); }

KERNEL(list_imul) {
    rt_value r;
    TS_TRY(repeat(args[0], args[1].as.i, &r));
    rt_list *list = args[0].as.list, old = *list, *made = r.as.list;
    list->items = made->items;
    list->count = made->count;
    list->capacity = made->capacity;
    made->items = old.items;
    made->count = old.count;
    made->capacity = old.capacity;
    rt_release(r);
    outs[0] = rt_retain(args[0]);
    return NULL;
}

/* ---- sorting: a stable merge; an exception of a comparison leaves the list as it was ---- */

static ts_status merge(rt_value *from, rt_value *to, size_t count, bool descending) {
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t low = 0; low < count; low += 2 * width) {
            size_t middle = low + width < count ? low + width : count;
            size_t high = low + 2 * width < count ? low + 2 * width : count;
            size_t a = low, b = middle;
            for (size_t k = low; k < high; k++) {
                bool take_right = a >= middle;
                if (!take_right && b < high)
                    TS_TRY(descending ? rt_less(from[a], from[b], &take_right)
                                      : rt_less(from[b], from[a], &take_right));
                to[k] = from[take_right ? b++ : a++];
            }
        }
        memcpy(from, to, count * sizeof *from);
    }
    return NULL;
}

static ts_status sort(rt_list *list, bool descending) {
    size_t count = list->count;
    if (count < 2)
        return NULL;
    rt_value *scratch = calloc(2 * count, sizeof *scratch);
    if (!scratch)
        return ts_no_memory();
    memcpy(scratch, list->items, count * sizeof *scratch);
    ts_status status = merge(scratch, scratch + count, count, descending);
    if (!status)
        memcpy(list->items, scratch, count * sizeof *scratch);
    free(scratch);
    return status;
}

KERNEL(list_sort) { return sort(args[0].as.list, args[1].as.i != 0); }

static ts_status sorted(const rt_value *args, bool descending, rt_value *outs) {
    TS_TRY(rt_ref_list_copy(NULL, args, outs));
    ts_status status = sort(outs[0].as.list, descending);
    if (status)
        rt_release(outs[0]);
    return status;
}

KERNEL(list_sorted) { return sorted(args, false, outs); }
KERNEL(list_sorted_reverse) { return sorted(args, args[1].as.i != 0, outs); }

/* frontend/init_eval_item.c - the evaluator of scripts: indexing, slicing, iteration, membership. */
#include <stdlib.h>

#include "frontend/init_eval_internal.h"
#include "runtime/values/tensor.h"

static const char range_kind[] = "range";
static const char slice_kind[] = "slice";
static const char iterator_kind[] = "iterator";

ts_status ev_range_make(int64_t start, int64_t stop, int64_t step, rt_value *out) {
    if (step == 0)
        return ts_raise("ValueError", "range() arg 3 must not be zero");
    ev_range r = {start, stop, step, 0};
    uint64_t span = step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
    uint64_t width = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    if (step > 0 ? start < stop : start > stop)
        r.count = (int64_t)((span - 1) / width + 1);
    return rt_capsule_copy(range_kind, &r, sizeof r, free, out);
}

const ev_range *ev_as_range(rt_value v) { return rt_capsule_of(v, range_kind); }

typedef struct slice {
    rt_value parts[3];
} slice;

static void slice_release(void *pointer) {
    slice *s = pointer;
    for (int i = 0; i < 3; i++)
        rt_release(s->parts[i]);
    free(s);
}

ts_status ev_slice_make(rt_value start, rt_value stop, rt_value step, rt_value *out) {
    slice s = {{rt_retain(start), rt_retain(stop), rt_retain(step)}};
    return rt_capsule_copy(slice_kind, &s, sizeof s, slice_release, out);
}

bool ev_slice_parts(rt_value v, rt_value out[3]) {
    const slice *s = rt_capsule_of(v, slice_kind);
    for (int i = 0; s && i < 3; i++)
        out[i] = s->parts[i];
    return s != NULL;
}

static void iterator_release(void *pointer) {
    rt_release(((ev_iterator *)pointer)->list);
    free(pointer);
}

ts_status ev_iterator_make(rt_value list, rt_value *out) {
    ev_iterator i = {rt_retain(list), 0};
    ts_status status = rt_capsule_copy(iterator_kind, &i, sizeof i, iterator_release, out);
    if (status)
        rt_release(list);
    return status;
}

ev_iterator *ev_as_iterator(rt_value v) { return rt_capsule_of(v, iterator_kind); }

/* ---- length ---- */
ts_status ev_length(evaluator *ev, rt_value v, int64_t *out) {
    *out = 0;
    switch (v.tag) {
    case RT_TAG_STR: *out = (int64_t)v.as.str->code_points; return NULL;
    case RT_TAG_LIST: *out = (int64_t)v.as.list->count; return NULL;
    case RT_TAG_TUPLE: *out = (int64_t)v.as.tuple->count; return NULL;
    case RT_TAG_DICT: *out = (int64_t)v.as.dict->live_count; return NULL;
    case RT_TAG_TENSOR:
        if (v.as.tensor->rank == 0)
            return ts_raise("TypeError", "len() of a 0-d tensor");
        *out = v.as.tensor->sizes[0];
        return NULL;
    case RT_TAG_OBJECT: {
        fe_class *c = ev_class_of(v);
        fe_function *method = c ? fe_class_method(c, TS_STR("__len__")) : NULL;
        rt_value r;
        if (method) {
            ev_arguments none = {0};
            TS_TRY(ev_call_function(ev, method, &v, &none, &r));
            *out = ev_is_int(r) ? r.as.i : 0;
            rt_release(r);
            return NULL;
        }
        if (ev_container_kind(ev, v) != EV_NO_CONTAINER) {
            TS_TRY(ev_container_items(ev, v, &r));
            *out = (int64_t)r.as.list->count;
            rt_release(r);
            return NULL;
        }
        break;
    }
    case RT_TAG_FUNCTION: {
        fe_binding b = fe_binding_of_value(v);
        if (b.kind == FE_CLASS && b.class_->kind == RT_CLASS_ENUM) {
            ir_class *c = fe_class_ir(ev->fe, b.class_);
            *out = c ? (int64_t)c->enum_member_count : 0;
            return NULL;
        }
        break;
    }
    default: break;
    }
    const ev_range *range = ev_as_range(v);
    if (range) {
        *out = range->count;
        return NULL;
    }
    return ts_raise("TypeError", "object of type '%.*s' has no len()", TS_STR_ARG(ev_type_name(v)));
}

/* ---- iteration ---- */

static size_t character_length(const char *p) {
    unsigned char c = (unsigned char)*p;
    return c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

static ts_status append_take(rt_value list, rt_value v) {
    ts_status status = rt_list_append(list.as.list, v);
    rt_release(v);
    return status;
}

static ts_status fill(evaluator *ev, rt_value v, rt_value list) {
    const ev_range *range = ev_as_range(v);
    ev_iterator *iterator = ev_as_iterator(v);
    rt_value item;
    if (range) {
        if (range->count > EV_MAX_ITEMS)
            return ts_raise("MemoryError", "a list of %lld items is too large",
                            (long long)range->count);
        for (int64_t i = 0; i < range->count; i++)
            TS_TRY(rt_list_append(list.as.list, rt_int(range->start + i * range->step)));
        return NULL;
    }
    if (iterator) {
        while (iterator->position < iterator->list.as.list->count)
            TS_TRY(rt_list_append(list.as.list, iterator->list.as.list->items[iterator->position++]));
        return NULL;
    }
    switch (v.tag) {
    case RT_TAG_TUPLE:
        for (size_t i = 0; i < v.as.tuple->count; i++)
            TS_TRY(rt_list_append(list.as.list, v.as.tuple->items[i]));
        return NULL;
    case RT_TAG_STR:
        for (size_t i = 0; i < v.as.str->length;) {
            size_t n = character_length(v.as.str->data + i);
            TS_TRY(rt_str_make((ts_str){v.as.str->data + i, n}, &item));
            TS_TRY(append_take(list, item));
            i += n;
        }
        return NULL;
    case RT_TAG_DICT: {
        rt_dict_entry *e;
        for (size_t at = 0; (e = rt_dict_next(v.as.dict, &at));)
            TS_TRY(rt_list_append(list.as.list, e->key));
        return NULL;
    }
    case RT_TAG_TENSOR:
        if (v.as.tensor->rank == 0)
            return ts_raise("TypeError", "iteration over a 0-d tensor");
        for (int64_t i = 0; i < v.as.tensor->sizes[0]; i++) {
            TS_TRY(ev_tensor_get_item(ev, v, rt_int(i), &item));
            TS_TRY(append_take(list, item));
        }
        return NULL;
    case RT_TAG_FUNCTION: {
        fe_binding b = fe_binding_of_value(v);
        ir_class *c = b.kind == FE_CLASS && b.class_->kind == RT_CLASS_ENUM
                          ? fe_class_ir(ev->fe, b.class_)
                          : NULL;
        if (!c)
            break;
        for (size_t i = 0; i < c->enum_member_count; i++)
            TS_TRY(rt_list_append(list.as.list, c->enum_members[i]));
        return NULL;
    }
    case RT_TAG_OBJECT: {
        ev_container kind = ev_container_kind(ev, v);
        fe_class *c = ev_class_of(v);
        fe_function *method = c ? fe_class_method(c, TS_STR("__iter__")) : NULL;
        if (method) {
            ev_arguments none = {0};
            TS_TRY(ev_call_function(ev, method, &v, &none, &item));
            ts_status status = rt_is(item, v) ? ts_raise("TypeError", "iterators written as classes "
                                                                      "are not supported")
                                              : fill(ev, item, list);
            rt_release(item);
            return status;
        }
        if (kind == EV_NO_CONTAINER)
            break;
        bool is_dict = kind == EV_MODULE_DICT || kind == EV_PARAMETER_DICT;
        TS_TRY(is_dict ? ev_container_keys(ev, v, &item) : ev_container_items(ev, v, &item));
        ts_status status = NULL;
        for (size_t i = 0; i < item.as.list->count && !status; i++)
            status = rt_list_append(list.as.list, item.as.list->items[i]);
        rt_release(item);
        return status;
    }
    case RT_TAG_LIST:
        for (size_t i = 0; i < v.as.list->count; i++)
            TS_TRY(rt_list_append(list.as.list, v.as.list->items[i]));
        return NULL;
    default: break;
    }
    return ts_raise("TypeError", "'%.*s' object is not iterable", TS_STR_ARG(ev_type_name(v)));
}

ts_status ev_to_list(evaluator *ev, rt_value v, rt_value *out) {
    if (v.tag == RT_TAG_LIST) {
        *out = rt_retain(v);
        return NULL;
    }
    *out = rt_none();
    rt_value list;
    TS_TRY(rt_list_make(0, &list));
    ts_status status = fill(ev, v, list);
    if (status)
        rt_release(list);
    else
        *out = list;
    return status;
}

/* ---- items ---- */

static ts_status as_index(rt_value index, const char *what, int64_t *out) {
    *out = 0;
    if (ev_is_int(index)) {
        *out = index.as.i;
        return NULL;
    }
    if (index.tag == RT_TAG_TENSOR && index.as.tensor->element_count == 1) {
        rt_value item;
        TS_TRY(rt_tensor_item(index.as.tensor, &item));
        bool fits = ev_is_int(item);
        *out = fits ? item.as.i : 0;
        rt_release(item);
        if (fits)
            return NULL;
    }
    return ts_raise("TypeError", "%s indices must be integers or slices, not %.*s", what,
                    TS_STR_ARG(ev_type_name(index)));
}

static ts_status slice_bounds(const slice *s, int64_t length, int64_t *start, int64_t *step,
                              int64_t *count) {
    int64_t parts[3] = {0, 0, 1};
    for (int i = 0; i < 3; i++)
        if (!rt_is_none(s->parts[i])) {
            if (!ev_is_int(s->parts[i]))
                return ts_raise("TypeError", "slice indices must be integers or None");
            parts[i] = s->parts[i].as.i;
        }
    *step = parts[2];
    if (*step == 0)
        return ts_raise("ValueError", "slice step cannot be zero");
    if (*step < -INT64_MAX)
        *step = -INT64_MAX;
    int64_t low = *step > 0 ? 0 : -1, high = *step > 0 ? length : length - 1;
    int64_t first = *step > 0 ? low : high, last = *step > 0 ? high : low;
    for (int i = 0; i < 2; i++) {
        if (rt_is_none(s->parts[i]))
            continue;
        int64_t p = parts[i] < 0 ? (parts[i] < -length ? low : parts[i] + length) : parts[i];
        p = p < low ? low : p > high ? high : p;
        if (i == 0)
            first = p;
        else
            last = p;
    }
    *start = first;
    *count = 0;
    if (*step > 0 && first < last)
        *count = (last - first - 1) / *step + 1;
    else if (*step < 0 && first > last)
        *count = (first - last - 1) / -*step + 1;
    return NULL;
}

static ts_status slice_sequence(rt_value v, const slice *s, rt_value *out) {
    size_t n;
    rt_value *items = ev_items(v, &n);
    int64_t start, step, count;
    TS_TRY(slice_bounds(s, (int64_t)n, &start, &step, &count));
    if (v.tag == RT_TAG_TUPLE) {
        TS_TRY(rt_tuple_make((size_t)count, out));
        for (int64_t i = 0; i < count; i++)
            out->as.tuple->items[i] = rt_retain(items[start + i * step]);
        return NULL;
    }
    TS_TRY(rt_list_make((size_t)count, out));
    for (int64_t i = 0; i < count; i++)
        TS_TRY(rt_list_append(out->as.list, items[start + i * step]));
    return NULL;
}

static ts_status string_item(rt_value v, rt_value index, const slice *s, rt_value *out) {
    const rt_str *str = v.as.str;
    int64_t length = (int64_t)str->code_points, start, step = 1, count = 1;
    if (s) {
        TS_TRY(slice_bounds(s, length, &start, &step, &count));
    } else {
        TS_TRY(as_index(index, "string", &start));
        if (start < 0)
            start += length;
        if (start < 0 || start >= length)
            return ts_raise("IndexError", "string index out of range");
    }
    ts_buffer text = {0};
    size_t *offsets = malloc((str->code_points + 1) * sizeof *offsets);
    if (!offsets)
        return ts_no_memory();
    size_t n = 0;
    for (size_t i = 0; i < str->length; i += character_length(str->data + i))
        offsets[n++] = i;
    offsets[n] = str->length;
    for (int64_t i = 0; i < count; i++) {
        size_t at = (size_t)(start + i * step);
        ts_buffer_append(&text, str->data + offsets[at], offsets[at + 1] - offsets[at]);
    }
    free(offsets);
    ts_status status = ts_buffer_status(&text);
    if (!status)
        status = rt_str_make((ts_str){text.data, text.length}, out);
    ts_buffer_deinit(&text);
    return status;
}

static ts_status key_error(rt_value key) {
    rt_value text;
    TS_TRY(rt_to_repr(key, &text));
    ts_status status = ts_raise_str(TS_STR("KeyError"), ev_text(text));
    rt_release(text);
    return status;
}

static ts_status object_item(evaluator *ev, rt_value v, const char *name, const rt_value *args,
                             size_t count, bool *out_found, rt_value *out) {
    fe_class *c = ev_class_of(v);
    fe_function *method = c ? fe_class_method(c, ts_str_of(name)) : NULL;
    *out_found = method != NULL;
    if (!method)
        return NULL;
    ev_arguments a = {0};
    for (size_t i = 0; i < count; i++)
        ev_arguments_add(ev, &a, (ts_str){0}, rt_retain(args[i]));
    ts_status status = ev_call_function(ev, method, &v, &a, out);
    ev_arguments_release(&a);
    return status;
}

ts_status ev_get_item(evaluator *ev, rt_value v, rt_value index, rt_value *out) {
    *out = rt_none();
    const slice *s = rt_capsule_of(index, slice_kind);
    const ev_range *range = ev_as_range(v);
    int64_t i;
    if (range) {
        if (s) {
            int64_t start, step, count;
            TS_TRY(slice_bounds(s, range->count, &start, &step, &count));
            return ev_range_make(range->start + start * range->step,
                                 range->start + (start + count * step) * range->step,
                                 step * range->step, out);
        }
        TS_TRY(as_index(index, "range", &i));
        i += i < 0 ? range->count : 0;
        if (i < 0 || i >= range->count)
            return ts_raise("IndexError", "range object index out of range");
        *out = rt_int(range->start + i * range->step);
        return NULL;
    }
    switch (v.tag) {
    case RT_TAG_LIST:
    case RT_TAG_TUPLE: {
        if (s)
            return slice_sequence(v, s, out);
        const char *what = v.tag == RT_TAG_LIST ? "list" : "tuple";
        size_t n;
        rt_value *items = ev_items(v, &n);
        TS_TRY(as_index(index, what, &i));
        i += i < 0 ? (int64_t)n : 0;
        if (i < 0 || i >= (int64_t)n)
            return ts_raise("IndexError", "%s index out of range", what);
        *out = rt_retain(items[i]);
        return NULL;
    }
    case RT_TAG_STR: return string_item(v, index, s, out);
    case RT_TAG_DICT: {
        rt_dict_entry *e;
        TS_TRY(rt_dict_find(v.as.dict, index, &e));
        if (!e)
            return key_error(index);
        *out = rt_retain(e->value);
        return NULL;
    }
    case RT_TAG_TENSOR: return ev_tensor_get_item(ev, v, index, out);
    case RT_TAG_OBJECT: {
        bool found;
        TS_TRY(object_item(ev, v, "__getitem__", &index, 1, &found, out));
        if (found)
            return NULL;
        ev_container kind = ev_container_kind(ev, v);
        if (kind != EV_NO_CONTAINER)
            return ev_container_get(ev, v, kind, index, out);
        break;
    }
    case RT_TAG_FUNCTION: {
        fe_binding b = fe_binding_of_value(v);
        if (b.kind == FE_CLASS && b.class_->kind == RT_CLASS_ENUM && ev_is_str(index)) {
            bool found;
            TS_TRY(ev_find_attribute(ev, v, ev_text(index), &found, out));
            return found ? NULL : key_error(index);
        }
        break;
    }
    default: break;
    }
    return ts_raise("TypeError", "'%.*s' object is not subscriptable", TS_STR_ARG(ev_type_name(v)));
}

static ts_status set_list_slice(evaluator *ev, rt_value v, const slice *s, rt_value value) {
    rt_value fresh, copy;
    TS_TRY(ev_to_list(ev, value, &fresh));
    int64_t start, step, count;
    rt_list *list = v.as.list;
    ts_status status = slice_bounds(s, (int64_t)list->count, &start, &step, &count);
    if (!status && step != 1) {
        if ((int64_t)fresh.as.list->count != count)
            status = ts_raise("ValueError",
                              "attempt to assign sequence of size %zu to extended slice of size %lld",
                              fresh.as.list->count, (long long)count);
        for (int64_t i = 0; i < count && !status; i++)
            rt_assign(&list->items[start + i * step], rt_retain(fresh.as.list->items[i]));
        rt_release(fresh);
        return status;
    }
    if (!status)
        status = rt_list_make(list->count, &copy);
    if (!status) {
        for (size_t i = 0; i < list->count && !status; i++) {
            if ((int64_t)i == start)
                for (size_t k = 0; k < fresh.as.list->count && !status; k++)
                    status = rt_list_append(copy.as.list, fresh.as.list->items[k]);
            if (!status && ((int64_t)i < start || (int64_t)i >= start + count))
                status = rt_list_append(copy.as.list, list->items[i]);
        }
        if (start >= (int64_t)list->count)
            for (size_t k = 0; k < fresh.as.list->count && !status; k++)
                status = rt_list_append(copy.as.list, fresh.as.list->items[k]);
        rt_list swapped = *list; /* contents move, the object stays */
        list->items = copy.as.list->items;
        list->count = copy.as.list->count;
        list->capacity = copy.as.list->capacity;
        copy.as.list->items = swapped.items;
        copy.as.list->count = swapped.count;
        copy.as.list->capacity = swapped.capacity;
        rt_release(copy);
    }
    rt_release(fresh);
    return status;
}

ts_status ev_set_item(evaluator *ev, rt_value v, rt_value index, rt_value value) {
    const slice *s = rt_capsule_of(index, slice_kind);
    switch (v.tag) {
    case RT_TAG_LIST: {
        if (s)
            return set_list_slice(ev, v, s, value);
        int64_t i;
        TS_TRY(as_index(index, "list", &i));
        i += i < 0 ? (int64_t)v.as.list->count : 0;
        if (i < 0 || i >= (int64_t)v.as.list->count)
            return ts_raise("IndexError", "list assignment index out of range");
        rt_assign(&v.as.list->items[i], rt_retain(value));
        return NULL;
    }
    case RT_TAG_DICT: return rt_dict_set(v.as.dict, index, value);
    case RT_TAG_TENSOR: return ev_tensor_set_item(ev, v, index, value);
    case RT_TAG_OBJECT: {
        bool found;
        rt_value args[2] = {index, value}, result = rt_none();
        ts_status status = object_item(ev, v, "__setitem__", args, 2, &found, &result);
        rt_release(result);
        if (status || found)
            return status;
        ev_container kind = ev_container_kind(ev, v);
        if (kind != EV_NO_CONTAINER)
            return ev_container_set(ev, v, kind, index, value);
        break;
    }
    default: break;
    }
    return ts_raise("TypeError", "'%.*s' object does not support item assignment",
                    TS_STR_ARG(ev_type_name(v)));
}

ts_status ev_delete_item(evaluator *ev, rt_value v, rt_value index) {
    const slice *s = rt_capsule_of(index, slice_kind);
    if (v.tag == RT_TAG_LIST && s) {
        rt_value none;
        TS_TRY(rt_list_make(0, &none));
        ts_status status = set_list_slice(ev, v, s, none);
        rt_release(none);
        return status;
    }
    if (v.tag == RT_TAG_LIST) {
        int64_t i;
        TS_TRY(as_index(index, "list", &i));
        i += i < 0 ? (int64_t)v.as.list->count : 0;
        if (i < 0 || i >= (int64_t)v.as.list->count)
            return ts_raise("IndexError", "list assignment index out of range");
        rt_release(rt_list_take_at(v.as.list, (size_t)i));
        return NULL;
    }
    if (v.tag == RT_TAG_DICT) {
        bool removed;
        TS_TRY(rt_dict_remove(v.as.dict, index, &removed));
        return removed ? NULL : key_error(index);
    }
    if (v.tag == RT_TAG_OBJECT && ev_is_str(index) && ev_container_kind(ev, v) != EV_NO_CONTAINER)
        return ev_delete_attribute(ev, v, ev_text(index));
    return ts_raise("TypeError", "'%.*s' object doesn't support item deletion",
                    TS_STR_ARG(ev_type_name(v)));
}

ts_status ev_contains(evaluator *ev, rt_value v, rt_value item, bool *out) {
    *out = false;
    if (v.tag == RT_TAG_STR) {
        if (!ev_is_str(item))
            return ts_raise("TypeError", "'in <string>' requires string as left operand, not %.*s",
                            TS_STR_ARG(ev_type_name(item)));
        *out = !ev_text(item).length || strstr(v.as.str->data, item.as.str->data) != NULL;
        return NULL;
    }
    if (v.tag == RT_TAG_DICT) {
        rt_dict_entry *e;
        TS_TRY(rt_dict_find(v.as.dict, item, &e));
        *out = e != NULL;
        return NULL;
    }
    const ev_range *range = ev_as_range(v);
    if (range) {
        if (ev_is_int(item)) {
            int64_t d = item.as.i - range->start;
            *out = range->count && d % range->step == 0 && d / range->step >= 0 &&
                   d / range->step < range->count;
        }
        return NULL;
    }
    if (v.tag == RT_TAG_OBJECT) {
        bool found;
        rt_value r = rt_none();
        TS_TRY(object_item(ev, v, "__contains__", &item, 1, &found, &r));
        if (found) {
            ts_status status = ev_truth(ev, r, out);
            rt_release(r);
            return status;
        }
    }
    rt_value list;
    TS_TRY(ev_to_list(ev, v, &list));
    ts_status status = NULL;
    for (size_t i = 0; i < list.as.list->count && !*out && !status; i++) {
        *out = rt_is(list.as.list->items[i], item);
        if (!*out)
            status = ev_equal(ev, list.as.list->items[i], item, out);
    }
    rt_release(list);
    return status;
}

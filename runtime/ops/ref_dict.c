/* runtime/ops/ref_dict.c - dicts, as Python's: order of insertion, KeyError with the key's repr. */
#include "runtime/ops/ref_kernel.h"

static ts_status key_error(rt_value key) {
    rt_value repr;
    TS_TRY(rt_to_repr(key, &repr));
    ts_status status = ts_raise_str(TS_STR("KeyError"), rt_str_text(repr.as.str));
    rt_release(repr);
    return status;
}

static ts_status find(const rt_value *args, rt_dict_entry **out) {
    return rt_dict_find(args[0].as.dict, args[1], out);
}

KERNEL(dict_empty) { return rt_dict_make(outs); }

KERNEL(dict_getitem) {
    rt_dict_entry *e;
    TS_TRY(find(args, &e));
    if (!e)
        return key_error(args[1]);
    outs[0] = rt_retain(e->value);
    return NULL;
}

KERNEL(dict_get) {
    rt_dict_entry *e;
    TS_TRY(find(args, &e));
    outs[0] = e ? rt_retain(e->value) : rt_none();
    return NULL;
}

KERNEL(dict_get_default) {
    rt_dict_entry *e;
    TS_TRY(find(args, &e));
    outs[0] = rt_retain(e ? e->value : args[2]);
    return NULL;
}

KERNEL(dict_setdefault) {
    rt_dict_entry *e;
    TS_TRY(find(args, &e));
    if (!e)
        TS_TRY(rt_dict_set(args[0].as.dict, args[1], args[2]));
    outs[0] = rt_retain(e ? e->value : args[2]);
    return NULL;
}

KERNEL(dict_contains) {
    rt_dict_entry *e;
    TS_TRY(find(args, &e));
    outs[0] = rt_bool(e != NULL);
    return NULL;
}

KERNEL(dict_setitem) { return rt_dict_set(args[0].as.dict, args[1], args[2]); }

KERNEL(dict_delete) {
    bool removed;
    TS_TRY(rt_dict_remove(args[0].as.dict, args[1], &removed));
    return removed ? NULL : key_error(args[1]);
}

static ts_status pop(const rt_value *args, rt_value *out) {
    rt_dict_entry *e;
    bool removed;
    TS_TRY(find(args, &e));
    if (!e)
        return key_error(args[1]);
    rt_value value = rt_retain(e->value);
    ts_status status = rt_dict_remove(args[0].as.dict, args[1], &removed);
    if (status)
        rt_release(value);
    else
        *out = value;
    return status;
}

KERNEL(dict_pop) { return pop(args, outs); }

KERNEL(dict_pop_default) {
    rt_dict_entry *e;
    TS_TRY(find(args, &e));
    if (e)
        return pop(args, outs);
    outs[0] = rt_retain(args[2]);
    return NULL;
}

static ts_status pair_of(const rt_dict_entry *e, rt_value *out) {
    TS_TRY(rt_tuple_make(2, out));
    out->as.tuple->items[0] = rt_retain(e->key);
    out->as.tuple->items[1] = rt_retain(e->value);
    return NULL;
}

KERNEL(dict_popitem) {
    rt_dict *dict = args[0].as.dict;
    rt_dict_entry *e, *last = NULL;
    bool removed;
    if (dict->live_count == 0)
        return ts_raise("KeyError", "'popitem(): dictionary is empty'");
    for (size_t at = 0; (e = rt_dict_next(dict, &at));)
        last = e;
    TS_TRY(pair_of(last, outs));
    rt_value key = rt_retain(last->key);
    ts_status status = rt_dict_remove(dict, key, &removed);
    rt_release(key);
    if (status)
        rt_release(outs[0]);
    return status;
}

KERNEL(dict_clear) {
    rt_dict_clear(args[0].as.dict);
    return NULL;
}

static ts_status set_all(rt_dict *to, const rt_dict *from) {
    rt_dict_entry *e;
    if (to == from)
        return NULL;
    for (size_t at = 0; (e = rt_dict_next(from, &at));)
        TS_TRY(rt_dict_set(to, e->key, e->value));
    return NULL;
}

KERNEL(dict_update) { return set_all(args[0].as.dict, args[1].as.dict); }

KERNEL(dict_copy) {
    TS_TRY(rt_dict_make(outs));
    ts_status status = set_all(outs[0].as.dict, args[0].as.dict);
    if (status)
        rt_release(outs[0]);
    return status;
}

KERNEL(dict_make) { /* from a list of pairs */
    const rt_list *list = args[0].as.list;
    TS_TRY(rt_dict_make(outs));
    for (size_t i = 0; i < list->count; i++) {
        const rt_value *pair = list->items[i].as.tuple->items;
        ts_status status = rt_dict_set(outs[0].as.dict, pair[0], pair[1]);
        if (status) {
            rt_release(outs[0]);
            return status;
        }
    }
    return NULL;
}

KERNEL(dict_fromkeys) {
    const rt_list *list = args[0].as.list;
    TS_TRY(rt_dict_make(outs));
    for (size_t i = 0; i < list->count; i++) {
        ts_status status = rt_dict_set(outs[0].as.dict, list->items[i], args[1]);
        if (status) {
            rt_release(outs[0]);
            return status;
        }
    }
    return NULL;
}

typedef enum part { PART_KEY, PART_VALUE, PART_PAIR } part;

static ts_status list_parts(const rt_dict *dict, part which, rt_value *out) {
    rt_dict_entry *e;
    TS_TRY(rt_list_make(dict->live_count, out));
    for (size_t at = 0; (e = rt_dict_next(dict, &at));) {
        ts_status status = NULL;
        if (which == PART_PAIR) {
            rt_value pair;
            status = pair_of(e, &pair);
            if (!status) {
                status = rt_list_append(out->as.list, pair);
                rt_release(pair);
            }
        } else {
            status = rt_list_append(out->as.list, which == PART_KEY ? e->key : e->value);
        }
        if (status) {
            rt_release(*out);
            return status;
        }
    }
    return NULL;
}

KERNEL(dict_keys) { return list_parts(args[0].as.dict, PART_KEY, outs); }
KERNEL(dict_values) { return list_parts(args[0].as.dict, PART_VALUE, outs); }
KERNEL(dict_items) { return list_parts(args[0].as.dict, PART_PAIR, outs); }

KERNEL(dict_iter_check) {
    if ((int64_t)args[0].as.dict->live_count != args[1].as.i)
        return ts_raise("RuntimeError", "dictionary changed size during iteration");
    return NULL;
}

/* `in` for any container. */
ts_status rt_ref_list_contains(rt_context *context, const rt_value *args, rt_value *outs);
ts_status rt_ref_str_contains(rt_context *context, const rt_value *args, rt_value *outs);

KERNEL(value_contains) {
    if (args[0].tag == RT_TAG_DICT)
        return rt_ref_dict_contains(context, args, outs);
    if (args[0].tag == RT_TAG_STR && args[1].tag == RT_TAG_STR)
        return rt_ref_str_contains(context, args, outs);
    return rt_ref_list_contains(context, args, outs);
}

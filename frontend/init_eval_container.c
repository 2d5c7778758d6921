/* frontend/init_eval_container.c - the evaluator of scripts: Sequential, ModuleList, ModuleDict,
 * ParameterList, ParameterDict. Their items are fields named "0", "1", ... or by the user's keys. */
#include <stdlib.h>

#include "frontend/init_eval_internal.h"

#define ARG(i) (args->items[i].value)

ev_container ev_container_kind(evaluator *ev, rt_value v) {
    (void)ev;
    fe_class *c = v.tag == RT_TAG_OBJECT ? ev_class_of(v) : NULL;
    if (!c || c->kind != RT_CLASS_MODULE)
        return EV_NO_CONTAINER;
    static const char *const names[] = {"Sequential", "ModuleList", "ModuleDict", "ParameterList",
                                        "ParameterDict"};
    for (size_t i = 0; i <= c->ancestor_count; i++) {
        const fe_class *k = i ? c->ancestors[i - 1] : c;
        for (size_t n = 0; k->is_library && n < 5; n++)
            if (ts_str_is(k->bare_name, names[n]))
                return (ev_container)(n + 1);
    }
    return EV_NO_CONTAINER;
}

static bool holds_parameters(ev_container kind) {
    return kind == EV_PARAMETER_LIST || kind == EV_PARAMETER_DICT;
}

static bool is_item(const ev_instance *i, size_t field, ev_container kind) {
    if (holds_parameters(kind))
        return i->fields[field].kind == EV_PARAMETER ||
               (i->fields[field].kind == EV_PLAIN && !ts_str_is(i->names[field], "training"));
    return i->fields[field].kind == EV_MODULE;
}

static ts_status collect(evaluator *ev, rt_value self, bool are_keys, rt_value *out) {
    ev_instance *i = ev_instance_of(self);
    ev_container kind = ev_container_kind(ev, self);
    TS_TRY(rt_list_make(0, out));
    if (!i) { /* after the script ran: fields by class */
        const rt_object *o = self.as.object;
        for (size_t k = 0; k < o->class_->field_count; k++) {
            rt_value v = o->fields[k], key = rt_none();
            if (v.tag != RT_TAG_OBJECT && v.tag != RT_TAG_TENSOR)
                continue;
            TS_TRY(rt_str_make(o->class_->fields[k], &key));
            ts_status status = rt_list_append(out->as.list, are_keys ? key : v);
            rt_release(key);
            TS_TRY(status);
        }
        return NULL;
    }
    for (size_t k = 0; k < i->count; k++) {
        if (!is_item(i, k, kind))
            continue;
        rt_value v = self.as.object->fields[k], key = rt_none();
        if (are_keys)
            TS_TRY(rt_str_make(i->names[k], &key));
        ts_status status = rt_list_append(out->as.list, are_keys ? key : v);
        rt_release(key);
        TS_TRY(status);
    }
    return NULL;
}

ts_status ev_container_items(evaluator *ev, rt_value self, rt_value *out) {
    return collect(ev, self, false, out);
}
ts_status ev_container_keys(evaluator *ev, rt_value self, rt_value *out) {
    return collect(ev, self, true, out);
}

static ts_status put(evaluator *ev, rt_value self, ev_container kind, ts_str name, rt_value v) {
    if (holds_parameters(kind)) {
        if (v.tag == RT_TAG_TENSOR && !(v.as.counted->flags & EV_FLAG_PARAMETER)) {
            rt_value p;
            TS_TRY(ev_parameter_make(ev, v, true, EV_FLAG_PARAMETER, &p));
            ts_status status = ev_field_set(ev, self, name, p, EV_PARAMETER);
            rt_release(p);
            return status;
        }
        return ev_field_set(ev, self, name, v, v.tag == RT_TAG_TENSOR ? EV_PARAMETER : EV_PLAIN);
    }
    if (!rt_is_none(v) && !ev_is_module(v))
        return ts_raise("TypeError", "%.*s is not a Module subclass", TS_STR_ARG(ev_type_name(v)));
    return ev_field_set(ev, self, name, v, EV_MODULE);
}

static ts_str number_name(evaluator *ev, size_t n) { return ts_arena_format(ev->arena, "%zu", n); }

static ts_status extend(evaluator *ev, rt_value self, ev_container kind, rt_value source) {
    rt_value list, now;
    TS_TRY(ev_container_items(ev, self, &now));
    size_t at = now.as.list->count;
    rt_release(now);
    TS_TRY(ev_to_list(ev, source, &list));
    ts_status status = NULL;
    for (size_t i = 0; i < list.as.list->count && !status; i++)
        status = put(ev, self, kind, number_name(ev, at + i), list.as.list->items[i]);
    rt_release(list);
    return status;
}

static ts_status update(evaluator *ev, rt_value self, ev_container kind, rt_value source) {
    rt_value pairs, copy = rt_retain(source);
    if (source.tag == RT_TAG_OBJECT && ev_container_kind(ev, source) != EV_NO_CONTAINER) {
        bool found;
        ev_arguments none = {0};
        rt_value items;
        TS_TRY(ev_container_method(ev, source, ev_container_kind(ev, source), TS_STR("items"), &none,
                                   &found, &items));
        rt_assign(&copy, items);
    }
    ev_arguments one = {0};
    ev_arguments_add(ev, &one, (ts_str){0}, copy);
    ts_status status = ev_builtin(ev, TS_STR("builtins.dict"), &one, &pairs);
    ev_arguments_release(&one);
    TS_TRY(status);
    rt_dict_entry *e;
    for (size_t at = 0; !status && (e = rt_dict_next(pairs.as.dict, &at));) {
        if (!ev_is_str(e->key))
            status = ts_raise("TypeError", "module name should be a string. Got %.*s",
                              TS_STR_ARG(ev_type_name(e->key)));
        else
            status = put(ev, self, kind, ts_arena_str(ev->arena, ev_text(e->key)), e->value);
    }
    rt_release(pairs);
    return status;
}

ts_status ev_container_init(evaluator *ev, rt_value self, ev_container kind, ev_arguments *args) {
    TS_TRY(ev_module_init(ev, self));
    if (kind == EV_SEQUENTIAL) {
        if (args->count == 1 && ARG(0).tag == RT_TAG_DICT)
            return update(ev, self, kind, ARG(0));
        for (size_t i = 0; i < args->count; i++)
            TS_TRY(put(ev, self, kind, number_name(ev, i), ARG(i)));
        return NULL;
    }
    if (args->count > 1)
        return ts_raise("TypeError", "%.*s takes one argument at most (%zu given)",
                        TS_STR_ARG(ev_type_name(self)), args->count);
    if (!args->count || rt_is_none(ARG(0)))
        return NULL;
    return kind == EV_MODULE_LIST || kind == EV_PARAMETER_LIST ? extend(ev, self, kind, ARG(0))
                                                               : update(ev, self, kind, ARG(0));
}

/* The name of the item at an index. */
static ts_status name_at(evaluator *ev, rt_value self, rt_value index, ts_str *out) {
    rt_value keys, key;
    *out = (ts_str){0};
    TS_TRY(ev_container_keys(ev, self, &keys));
    ts_status status = ev_get_item(ev, keys, index, &key);
    if (status && ts_str_is(ts_str_of(ts_status_exception(status)), "IndexError")) {
        ts_status_release(status);
        status = ts_raise("IndexError", "index %lld is out of range",
                          (long long)(ev_is_int(index) ? index.as.i : 0));
    }
    if (!status && ev_is_str(key))
        *out = ts_arena_str(ev->arena, ev_text(key));
    rt_release(key);
    rt_release(keys);
    return status;
}

ts_status ev_container_get(evaluator *ev, rt_value self, ev_container kind, rt_value index,
                           rt_value *out) {
    rt_value parts[3];
    if (ev_is_str(index)) {
        bool found;
        TS_TRY(ev_find_attribute(ev, self, ev_text(index), &found, out));
        return found ? NULL : ts_raise("KeyError", "'%.*s'", TS_STR_ARG(ev_text(index)));
    }
    if (!ev_slice_parts(index, parts)) {
        ts_str name;
        TS_TRY(name_at(ev, self, index, &name));
        return ev_get_attribute(ev, self, name, out);
    }
    rt_value keys, some;
    TS_TRY(ev_container_keys(ev, self, &keys));
    ts_status status = ev_get_item(ev, keys, index, &some);
    rt_release(keys);
    TS_TRY(status);
    status = ev_instance_make(ev, ev_class_of(self), out);
    if (!status)
        status = ev_module_init(ev, *out);
    for (size_t i = 0; i < some.as.list->count && !status; i++) {
        rt_value v;
        ts_str key = ts_arena_str(ev->arena, ev_text(some.as.list->items[i]));
        status = ev_get_attribute(ev, self, key, &v);
        if (!status)
            status = put(ev, *out, kind, kind == EV_SEQUENTIAL ? key : number_name(ev, i), v);
        rt_release(v);
    }
    rt_release(some);
    return status;
}

ts_status ev_container_set(evaluator *ev, rt_value self, ev_container kind, rt_value index,
                           rt_value value) {
    ts_str name;
    if (ev_is_str(index))
        name = ts_arena_str(ev->arena, ev_text(index));
    else
        TS_TRY(name_at(ev, self, index, &name));
    return put(ev, self, kind, name, value);
}

/* Names "0", "1", ... anew after an insertion or a removal; values in the wanted order. */
static ts_status rebuild(evaluator *ev, rt_value self, ev_container kind, rt_value list) {
    ev_instance *i = ev_instance_of(self);
    for (size_t k = i->count; k-- > 0;)
        if (is_item(i, k, kind))
            ev_field_remove(self, (int64_t)k);
    ts_status status = NULL;
    for (size_t k = 0; k < list.as.list->count && !status; k++)
        status = put(ev, self, kind, number_name(ev, k), list.as.list->items[k]);
    return status;
}

ts_status ev_container_method(evaluator *ev, rt_value self, ev_container kind, ts_str name,
                              ev_arguments *args, bool *out_found, rt_value *out) {
    bool is_dict = kind == EV_MODULE_DICT || kind == EV_PARAMETER_DICT;
    *out_found = true;
    if (is_dict || kind == EV_SEQUENTIAL) {
        bool wants_values = ts_str_is(name, "values");
        if (ts_str_is(name, "keys") && is_dict)
            return ev_container_keys(ev, self, out);
        if (wants_values && is_dict)
            return ev_container_items(ev, self, out);
        if (ts_str_is(name, "items") && is_dict) {
            rt_value keys, values;
            TS_TRY(ev_container_keys(ev, self, &keys));
            TS_TRY(ev_container_items(ev, self, &values));
            ev_arguments pair = {0};
            ev_arguments_add(ev, &pair, (ts_str){0}, keys);
            ev_arguments_add(ev, &pair, (ts_str){0}, values);
            rt_value zipped;
            ts_status status = ev_builtin(ev, TS_STR("builtins.zip"), &pair, &zipped);
            ev_arguments_release(&pair);
            TS_TRY(status);
            status = ev_to_list(ev, zipped, out);
            rt_release(zipped);
            return status;
        }
        if (ts_str_is(name, "update") && is_dict && args->count == 1)
            return update(ev, self, kind, ARG(0));
        if (ts_str_is(name, "pop") && is_dict && args->count == 1 && ev_is_str(ARG(0))) {
            TS_TRY(ev_container_get(ev, self, kind, ARG(0), out));
            return ev_delete_attribute(ev, self, ev_text(ARG(0)));
        }
        if (ts_str_is(name, "get") && is_dict && args->count && ev_is_str(ARG(0))) {
            bool found;
            TS_TRY(ev_find_attribute(ev, self, ev_text(ARG(0)), &found, out));
            if (!found && args->count > 1)
                *out = rt_retain(ARG(1));
            return NULL;
        }
    }
    if (!is_dict) {
        if (ts_str_is(name, "append") && args->count == 1) {
            rt_value one;
            TS_TRY(rt_list_make(1, &one));
            ts_status status = rt_list_append(one.as.list, ARG(0));
            if (!status)
                status = extend(ev, self, kind, one);
            rt_release(one);
            *out = status ? rt_none() : rt_retain(self);
            return status;
        }
        if (ts_str_is(name, "extend") && args->count == 1) {
            *out = rt_retain(self);
            return extend(ev, self, kind, ARG(0));
        }
        if ((ts_str_is(name, "insert") && args->count == 2) || (ts_str_is(name, "pop") && args->count <= 1)) {
            rt_value list;
            bool found;
            TS_TRY(ev_container_items(ev, self, &list));
            ts_status status = ev_value_method(ev, list, name, args, &found, out);
            if (!status)
                status = rebuild(ev, self, kind, list);
            rt_release(list);
            return status;
        }
    }
    *out_found = false;
    return NULL;
}

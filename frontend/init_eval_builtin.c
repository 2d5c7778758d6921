/* frontend/init_eval_builtin.c - the evaluator of scripts: built-in functions by name, and those about
 * text, objects and classes. */
#include <stdio.h>
#include <stdlib.h>

#include "frontend/init_eval_builtin.h"
#include "runtime/base/checked.h"
#include "runtime/values/tensor.h"

ts_status ev_wants(const ev_arguments *args, const char *name, size_t low, size_t high) {
    if (args->count < low || args->count > high)
        return ts_raise("TypeError", "%s() takes %s%zu argument%s (%zu given)", name,
                        low == high ? "" : args->count < low ? "at least " : "at most ",
                        args->count < low ? low : high,
                        (args->count < low ? low : high) == 1 ? "" : "s", args->count);
    return NULL;
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

ts_status ev_do_str(evaluator *ev, ev_arguments *args, rt_value *out) {
    if (!args->count)
        return rt_str_make(TS_STR(""), out);
    return to_text(ev, ARG(0), false, out);
}
ts_status ev_do_repr(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(ev_wants(args, "repr", 1, 1));
    return to_text(ev, ARG(0), true, out);
}

ts_status ev_do_format(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(ev_wants(args, "format", 1, 2));
    ts_buffer text = {0};
    ts_str spec = args->count > 1 && ev_is_str(ARG(1)) ? ev_text(ARG(1)) : (ts_str){0};
    ts_status status = ev_format_value(ev, ARG(0), spec, &text);
    if (!status)
        status = rt_str_make((ts_str){text.data ? text.data : "", text.length}, out);
    ts_buffer_deinit(&text);
    return status;
}

ts_status ev_do_print(evaluator *ev, ev_arguments *args, rt_value *out) {
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

ts_status ev_do_isinstance(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(ev_wants(args, "isinstance", 2, 2));
    bool is = false;
    if (ARG(1).tag == RT_TAG_TUPLE)
        for (size_t i = 0; i < ARG(1).as.tuple->count && !is; i++)
            is = ev_isinstance(ev, ARG(0), fe_binding_of_value(ARG(1).as.tuple->items[i]));
    else
        is = ev_isinstance(ev, ARG(0), fe_binding_of_value(ARG(1)));
    *out = rt_bool(is);
    return NULL;
}

ts_status ev_do_issubclass(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(ev_wants(args, "issubclass", 2, 2));
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

ts_status ev_do_getattr(evaluator *ev, ev_arguments *args, rt_value *out) {
    ts_str name;
    bool found;
    TS_TRY(ev_wants(args, "getattr", 2, 3));
    TS_TRY(name_argument(ev, ARG(1), "getattr", &name));
    if (args->count == 2)
        return ev_get_attribute(ev, ARG(0), name, out);
    TS_TRY(ev_find_attribute(ev, ARG(0), name, &found, out));
    if (!found)
        *out = rt_retain(ARG(2));
    return NULL;
}

ts_status ev_do_hasattr(evaluator *ev, ev_arguments *args, rt_value *out) {
    ts_str name;
    bool found;
    rt_value v;
    TS_TRY(ev_wants(args, "hasattr", 2, 2));
    TS_TRY(name_argument(ev, ARG(1), "hasattr", &name));
    TS_TRY(ev_find_attribute(ev, ARG(0), name, &found, &v));
    rt_release(v);
    *out = rt_bool(found);
    return NULL;
}

ts_status ev_do_setattr(evaluator *ev, ev_arguments *args, rt_value *out) {
    ts_str name;
    (void)out;
    TS_TRY(ev_wants(args, "setattr", 3, 3));
    TS_TRY(name_argument(ev, ARG(1), "setattr", &name));
    return ev_set_attribute(ev, ARG(0), name, ARG(2));
}

ts_status ev_do_delattr(evaluator *ev, ev_arguments *args, rt_value *out) {
    ts_str name;
    (void)out;
    TS_TRY(ev_wants(args, "delattr", 2, 2));
    TS_TRY(name_argument(ev, ARG(1), "delattr", &name));
    return ev_delete_attribute(ev, ARG(0), name);
}

ts_status ev_do_type(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(ev_wants(args, "type", 1, 1));
    return ev_get_attribute(ev, ARG(0), TS_STR("__class__"), out);
}

ts_status ev_do_callable(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(ev_wants(args, "callable", 1, 1));
    rt_value v = ARG(0);
    fe_class *c = ev_class_of(v);
    *out = rt_bool(v.tag == RT_TAG_FUNCTION || ev_is_module(v) ||
                   (c && fe_class_method(c, TS_STR("__call__"))) ||
                   (v.tag == RT_TAG_CAPSULE && !ev_as_range(v) && !ev_as_iterator(v)));
    (void)ev;
    return NULL;
}

ts_status ev_do_id(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(ev_wants(args, "id", 1, 1));
    *out = rt_int(rt_is_counted(ARG(0)) ? (int64_t)(intptr_t)ARG(0).as.pointer : ARG(0).as.i);
    return NULL;
}

ts_status ev_do_hash(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    uint64_t h;
    TS_TRY(ev_wants(args, "hash", 1, 1));
    TS_TRY(rt_hash(ARG(0), &h));
    *out = rt_int((int64_t)h);
    return NULL;
}

ts_status ev_do_object(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)args;
    return fe_binding_to_value(
        ev->fe, (fe_binding){.kind = FE_NAME, .path = TS_STR("builtins.object()")}, out);
}

ts_status ev_do_vars(evaluator *ev, ev_arguments *args, rt_value *out) {
    TS_TRY(ev_wants(args, "vars", 1, 1));
    return ev_get_attribute(ev, ARG(0), TS_STR("__dict__"), out);
}

ts_status ev_do_slice(evaluator *ev, ev_arguments *args, rt_value *out) {
    (void)ev;
    TS_TRY(ev_wants(args, "slice", 1, 3));
    if (args->count == 1)
        return ev_slice_make(rt_none(), ARG(0), rt_none(), out);
    return ev_slice_make(ARG(0), ARG(1), args->count > 2 ? ARG(2) : rt_none(), out);
}

/* ---- numbers ---- */

static const struct {
    const char *name;
    ev_builtin_function run;
} builtins[] = {
#define EV_BUILTIN(name, function) {#name, function},
#include "frontend/init_eval_builtin.def"
};

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
            TS_TRY(ev_wants(args, "fromkeys", 1, 2));
            TS_TRY(rt_dict_make(out));
            TS_TRY(ev_to_list(ev, ARG(0), &list));
            ts_status status = NULL;
            for (size_t i = 0; i < list.as.list->count && !status; i++)
                status = rt_dict_set(out->as.dict, list.as.list->items[i], v);
            rt_release(list);
            return status;
        }
        TS_TRY(ev_wants(args, "method", 1, 4));
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

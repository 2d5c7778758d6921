/* frontend/init_eval_format.c - the evaluator of scripts: str(), repr(), format(), f-strings and %.
 *
 * The operator table's kernels write everything but the user's own objects, which are turned into
 * text here first. */
#include <stdlib.h>

#include "frontend/init_eval_internal.h"
#include "runtime/ops/ops.h"

static ts_status object_text(evaluator *ev, rt_value v, bool is_repr, bool *out_found,
                             ts_buffer *out) {
    fe_class *c = ev_class_of(v);
    *out_found = false;
    if (!c || (v.tag != RT_TAG_OBJECT && v.tag != RT_TAG_ENUM && v.tag != RT_TAG_TUPLE))
        return NULL;
    fe_function *f = is_repr ? NULL : fe_class_method(c, TS_STR("__str__"));
    if (!f)
        f = fe_class_method(c, TS_STR("__repr__"));
    if (f) {
        ev_arguments none = {0};
        rt_value text;
        *out_found = true;
        TS_TRY(ev_call_function(ev, f, &v, &none, &text));
        if (ev_is_str(text))
            ts_buffer_str(out, ev_text(text));
        rt_release(text);
        return NULL;
    }
    if (v.tag != RT_TAG_OBJECT)
        return NULL;
    *out_found = true;
    const rt_object *o = v.as.object;
    if (c->kind == RT_CLASS_EXCEPTION) {
        int64_t field = rt_class_field(o->class_, TS_STR("args"));
        rt_value args = field < 0 ? rt_none() : o->fields[field];
        if (is_repr)
            ts_buffer_format(out, "%.*s(", TS_STR_ARG(c->bare_name));
        if (args.tag == RT_TAG_TUPLE && args.as.tuple->count == 1)
            TS_TRY(ev_to_text(ev, args.as.tuple->items[0],
                              is_repr || ts_str_is(c->bare_name, "KeyError"), out));
        else if (args.tag == RT_TAG_TUPLE && args.as.tuple->count > 1)
            TS_TRY(ev_to_text(ev, args, true, out));
        if (is_repr)
            ts_buffer_char(out, ')');
        return NULL;
    }
    if (c->is_dataclass) {
        ts_buffer_format(out, "%.*s(", TS_STR_ARG(c->bare_name));
        bool is_first = true;
        for (size_t i = 0; i < o->class_->field_count; i++) {
            if (!ev_is_data_field(c, o->class_->fields[i]))
                continue;
            ts_buffer_format(out, "%s%.*s=", is_first ? "" : ", ", TS_STR_ARG(o->class_->fields[i]));
            is_first = false;
            TS_TRY(ev_to_text(ev, o->fields[i], true, out));
        }
        ts_buffer_char(out, ')');
        return NULL;
    }
    if (ev_is_module(v))
        ts_buffer_format(out, "%.*s()", TS_STR_ARG(c->bare_name));
    else
        ts_buffer_format(out, "<__main__.%.*s object at %p>", TS_STR_ARG(c->bare_name), v.as.pointer);
    return NULL;
}

/* A step for each value that the text will hold: a list twice in a list, and so on, is a short script
 * and a long text. */
static ts_status charge(evaluator *ev, rt_value v, int depth) {
    if (!ev_is_sequence(v) || depth > EV_MAX_DEPTH)
        return NULL;
    size_t n;
    rt_value *items = ev_items(v, &n);
    TS_TRY(ev_step(ev, NULL));
    for (size_t i = 0; i < n; i++)
        TS_TRY(charge(ev, items[i], depth + 1));
    return NULL;
}

static bool holds_objects(rt_value v, int depth) {
    if (v.tag == RT_TAG_OBJECT || v.tag == RT_TAG_FUNCTION || v.tag == RT_TAG_CAPSULE || ev_is_set(v) ||
        (v.tag == RT_TAG_TUPLE && (v.as.counted->flags & EV_FLAG_SIZE)))
        return true;
    if (depth > 50)
        return false;
    if (ev_is_sequence(v)) {
        size_t n;
        rt_value *items = ev_items(v, &n);
        for (size_t i = 0; i < n; i++)
            if (holds_objects(items[i], depth + 1))
                return true;
    }
    if (v.tag == RT_TAG_DICT) {
        rt_dict_entry *e;
        for (size_t at = 0; (e = rt_dict_next(v.as.dict, &at));)
            if (holds_objects(e->value, depth + 1))
                return true;
    }
    return false;
}

static ts_status items_text(evaluator *ev, rt_value v, ts_buffer *out) {
    if (++ev->depth > EV_MAX_DEPTH)
        return ts_raise("RecursionError", "maximum recursion depth exceeded while getting the repr");
    if (v.tag == RT_TAG_DICT) {
        bool is_set = ev_is_set(v), is_first = true;
        rt_dict_entry *e;
        if (is_set && !v.as.dict->live_count)
            ts_buffer_text(out, "set()");
        else
            ts_buffer_char(out, '{');
        for (size_t at = 0; (e = rt_dict_next(v.as.dict, &at)); is_first = false) {
            ts_buffer_text(out, is_first ? "" : ", ");
            TS_TRY(ev_to_text(ev, e->key, true, out));
            if (is_set)
                continue;
            ts_buffer_text(out, ": ");
            TS_TRY(ev_to_text(ev, e->value, true, out));
        }
        if (!is_set || v.as.dict->live_count)
            ts_buffer_char(out, '}');
    } else {
        size_t n;
        rt_value *items = ev_items(v, &n);
        bool is_size = v.as.counted->flags & EV_FLAG_SIZE;
        ts_buffer_text(out, is_size ? "torch.Size([" : v.tag == RT_TAG_LIST ? "[" : "(");
        for (size_t i = 0; i < n; i++) {
            ts_buffer_text(out, i ? ", " : "");
            TS_TRY(ev_to_text(ev, items[i], true, out));
        }
        ts_buffer_text(out, is_size ? "])" : v.tag == RT_TAG_LIST ? "]" : n == 1 ? ",)" : ")");
    }
    ev->depth--;
    return NULL;
}

ts_status ev_to_text(evaluator *ev, rt_value v, bool is_repr, ts_buffer *out) {
    bool found;
    TS_TRY(object_text(ev, v, is_repr, &found, out));
    if (found)
        return NULL;
    if (v.tag == RT_TAG_FUNCTION) {
        fe_binding b = fe_binding_of_value(v);
        switch (b.kind) {
        case FE_CLASS: ts_buffer_format(out, "<class '__main__.%.*s'>", TS_STR_ARG(b.class_->bare_name)); break;
        case FE_FUNCTION:
        case FE_METHOD: ts_buffer_format(out, "<function %.*s>", TS_STR_ARG(b.function->bare_name)); break;
        case FE_NAMESPACE: ts_buffer_format(out, "<module '%.*s'>", TS_STR_ARG(b.path)); break;
        default: ts_buffer_format(out, "<%.*s>", TS_STR_ARG(b.path));
        }
        return NULL;
    }
    const ev_range *range = ev_as_range(v);
    if (range) {
        ts_buffer_format(out, "range(%lld, %lld", (long long)range->start, (long long)range->stop);
        if (range->step != 1)
            ts_buffer_format(out, ", %lld", (long long)range->step);
        ts_buffer_char(out, ')');
        return NULL;
    }
    TS_TRY(charge(ev, v, 0));
    if ((ev_is_sequence(v) || v.tag == RT_TAG_DICT) && holds_objects(v, 0) &&
        !(v.tag == RT_TAG_TUPLE && v.as.tuple->class_))
        return items_text(ev, v, out);
    rt_value text;
    TS_TRY(is_repr ? rt_to_repr(v, &text) : rt_to_str(v, &text));
    ts_buffer_str(out, ev_text(text));
    rt_release(text);
    return NULL;
}

static ts_status row(evaluator *ev, const char *name, const rt_value *args, rt_value *out) {
    rt_op op = rt_op_find(ts_str_of(name));
    if (op == OP_COUNT)
        return ts_error_make(TS_ERR_INTERNAL, "operator %s is missing", name);
    return rt_op_get(op)->ref(&ev->fe->runtime, args, out);
}

/* v, or its text where the kernels do not know how to write it. */
static ts_status plain(evaluator *ev, rt_value v, rt_value *out) {
    if (!holds_objects(v, 0)) {
        *out = rt_retain(v);
        return NULL;
    }
    ts_buffer text = {0};
    ts_status status = ev_to_text(ev, v, false, &text);
    if (!status)
        status = rt_str_make((ts_str){text.data ? text.data : "", text.length}, out);
    ts_buffer_deinit(&text);
    return status;
}

ts_status ev_format_value(evaluator *ev, rt_value v, ts_str spec, ts_buffer *out) {
    if (!spec.length)
        return ev_to_text(ev, v, false, out);
    rt_value args[2] = {rt_none(), rt_none()}, text;
    fe_class *c = ev_class_of(v);
    fe_function *f = c ? fe_class_method(c, TS_STR("__format__")) : NULL;
    TS_TRY(rt_str_make(spec, &args[1]));
    ts_status status;
    if (f) {
        ev_arguments one = {0};
        ev_arguments_add(ev, &one, (ts_str){0}, rt_retain(args[1]));
        status = ev_call_function(ev, f, &v, &one, &text);
        ev_arguments_release(&one);
    } else {
        status = plain(ev, v, &args[0]);
        if (!status)
            status = row(ev, "prim_format_spec", args, &text);
    }
    rt_release(args[0]);
    rt_release(args[1]);
    TS_TRY(status);
    if (ev_is_str(text))
        ts_buffer_str(out, ev_text(text));
    rt_release(text);
    return NULL;
}

static ts_status with_tuple(evaluator *ev, const char *name, ts_str format, const rt_value *items,
                            size_t count, rt_value *out) {
    rt_value args[2] = {rt_none(), rt_none()};
    TS_TRY(rt_str_make(format, &args[0]));
    ts_status status = rt_tuple_make(count, &args[1]);
    for (size_t i = 0; i < count && !status; i++)
        status = plain(ev, items[i], &args[1].as.tuple->items[i]);
    if (!status)
        status = row(ev, name, args, out);
    rt_release(args[0]);
    rt_release(args[1]);
    return status;
}

/* "%(name)s" % {...}: as "%s" % (...). */
static ts_status by_name(evaluator *ev, ts_str format, rt_value dict, rt_value *out) {
    ts_buffer plain_format = {0};
    rt_value items;
    TS_TRY(rt_list_make(0, &items));
    ts_status status = NULL;
    for (size_t i = 0; i < format.length && !status; i++) {
        ts_buffer_char(&plain_format, format.data[i]);
        if (format.data[i] != '%' || i + 1 == format.length)
            continue;
        if (format.data[i + 1] == '%') {
            ts_buffer_char(&plain_format, format.data[++i]);
            continue;
        }
        const char *end = format.data[i + 1] == '('
                              ? memchr(format.data + i, ')', format.length - i)
                              : NULL;
        if (!end) {
            status = ts_raise("TypeError", "not enough arguments for format string");
            break;
        }
        rt_value key, v;
        ts_str name = {format.data + i + 2, (size_t)(end - format.data) - i - 2};
        status = rt_str_make(name, &key);
        if (!status)
            status = ev_get_item(ev, dict, key, &v);
        rt_release(key);
        if (!status) {
            status = rt_list_append(items.as.list, v);
            rt_release(v);
        }
        i = (size_t)(end - format.data);
    }
    if (!status)
        status = ts_buffer_status(&plain_format);
    if (!status)
        status = with_tuple(ev, "percentFormat", (ts_str){plain_format.data, plain_format.length},
                            items.as.list->items, items.as.list->count, out);
    rt_release(items);
    ts_buffer_deinit(&plain_format);
    return status;
}

ts_status ev_percent_format(evaluator *ev, ts_str format, rt_value args, rt_value *out) {
    bool has_names = false;
    for (size_t i = 0; i + 1 < format.length; i++)
        has_names |= format.data[i] == '%' && format.data[i + 1] == '(';
    if (has_names && args.tag == RT_TAG_DICT)
        return by_name(ev, format, args, out);
    if (args.tag == RT_TAG_TUPLE)
        return with_tuple(ev, "percentFormat", format, args.as.tuple->items, args.as.tuple->count, out);
    return with_tuple(ev, "percentFormat", format, &args, 1, out);
}

/* "{name!r:spec} {0.attribute[key]}": fields by name and position. */
ts_status ev_str_format(evaluator *ev, ts_str format, const ev_arguments *args, rt_value *out) {
    ts_buffer text = {0};
    ts_status status = NULL;
    size_t next = 0;
    for (size_t i = 0; i < format.length && !status; i++) {
        char c = format.data[i];
        if ((c == '{' || c == '}') && i + 1 < format.length && format.data[i + 1] == c) {
            ts_buffer_char(&text, c);
            i++;
            continue;
        }
        if (c == '}') {
            status = ts_raise("ValueError", "Single '}' encountered in format string");
            break;
        }
        if (c != '{') {
            ts_buffer_char(&text, c);
            continue;
        }
        size_t begin = ++i, depth = 1;
        while (i < format.length && depth) {
            depth += format.data[i] == '{';
            depth -= format.data[i] == '}';
            i++;
        }
        if (depth) {
            status = ts_raise("ValueError", "expected '}' before end of string");
            break;
        }
        ts_str field = {format.data + begin, --i - begin};
        size_t name_end = 0;
        while (name_end < field.length && !strchr("!:.[", field.data[name_end]))
            name_end++;
        ts_str name = {field.data, name_end};
        rt_value v = {.tag = RT_TAG_UNINITIALIZED};
        bool is_number = true;
        size_t index = 0;
        for (size_t k = 0; k < name.length; k++) {
            is_number &= name.data[k] >= '0' && name.data[k] <= '9';
            index = index * 10 + (size_t)(name.data[k] - '0');
        }
        if (!name.length)
            index = next++;
        size_t position = 0;
        for (size_t k = 0; k < args->count; k++) {
            if (args->items[k].name.length ? ts_str_equal(args->items[k].name, name) && !is_number
                                           : is_number && position++ == index)
                v = args->items[k].value;
        }
        if (!ev_is_given(v)) {
            status = is_number
                         ? ts_raise("IndexError", "Replacement index %zu out of range for positional args tuple", index)
                         : ts_raise("KeyError", "'%.*s'", TS_STR_ARG(name));
            break;
        }
        rt_retain(v);
        size_t at = name_end;
        while (at < field.length && (field.data[at] == '.' || field.data[at] == '[') && !status) {
            bool is_item = field.data[at++] == '[';
            size_t end = at;
            while (end < field.length && !strchr(is_item ? "]" : "!:.[", field.data[end]))
                end++;
            ts_str part = ts_arena_str(ev->arena, (ts_str){field.data + at, end - at});
            rt_value part_value, key;
            if (is_item) {
                char *stop;
                long long number = strtoll(part.data, &stop, 10);
                status = *stop || !part.length ? rt_str_make(part, &key) : NULL;
                if (!status && !*stop && part.length)
                    key = rt_int(number);
                if (!status)
                    status = ev_get_item(ev, v, key, &part_value);
                rt_release(key);
            } else {
                status = ev_get_attribute(ev, v, part, &part_value);
            }
            if (!status)
                rt_assign(&v, part_value);
            at = end + is_item;
        }
        if (!status && at + 1 < field.length && field.data[at] == '!') {
            ts_buffer shown = {0};
            rt_value shown_value;
            status = ev_to_text(ev, v, field.data[at + 1] != 's', &shown);
            if (!status)
                status = rt_str_make((ts_str){shown.data, shown.length}, &shown_value);
            if (!status)
                rt_assign(&v, shown_value);
            ts_buffer_deinit(&shown);
            at += 2;
        }
        ts_str spec = {0};
        rt_value nested = rt_none();
        if (!status && at < field.length && field.data[at] == ':')
            spec = (ts_str){field.data + at + 1, field.length - at - 1};
        if (spec.length && memchr(spec.data, '{', spec.length)) {
            ev_arguments rest = {args->items + (next < args->count ? next : args->count), 0, 0};
            rest.count = args->count - (size_t)(rest.items - args->items);
            status = ev_str_format(ev, spec, &rest, &nested);
            next++;
            spec = ev_is_str(nested) ? ev_text(nested) : (ts_str){0};
        }
        if (!status)
            status = ev_format_value(ev, v, spec, &text);
        rt_release(nested);
        rt_release(v);
    }
    if (!status)
        status = ts_buffer_status(&text);
    if (!status)
        status = rt_str_make((ts_str){text.data ? text.data : "", text.length}, out);
    ts_buffer_deinit(&text);
    return status;
}

/* frontend/init_eval_method.c - the evaluator of scripts: methods of str, list, dict, set, tuple and
 * numbers. Those of str are the operator table's own kernels. */
#include <math.h>
#include <stdlib.h>

#include "frontend/init_eval_internal.h"
#include "runtime/ops/ops.h"

ts_status ev_sort(evaluator *ev, rt_value list, ev_arguments *args, size_t first);

#define ARG(i) (args->items[i].value)

static ts_status count_is(const ev_arguments *args, ts_str name, size_t low, size_t high) {
    if (args->count < low || args->count > high)
        return ts_raise("TypeError", "%.*s() takes %zu to %zu arguments (%zu given)",
                        TS_STR_ARG(name), low, high, args->count);
    return NULL;
}

static ts_status copy_items(rt_value from, rt_value *out) {
    size_t n;
    rt_value *items = ev_items(from, &n);
    TS_TRY(rt_list_make(n, out));
    for (size_t i = 0; i < n; i++)
        TS_TRY(rt_list_append(out->as.list, items[i]));
    return NULL;
}

/* ---- str ---- */

static const struct {
    const char *name, *row, *parameters;
} str_methods[] = {
    {"find", "find", "substr,start,end"}, {"rfind", "rfind", "substr,start,end"},
    {"index", "index.str", "substr,start,end"}, {"rindex", "rindex", "substr,start,end"},
    {"count", "count", "substr,start,end"}, {"startswith", "startswith", "substr,start,end"},
    {"endswith", "endswith", "substr,start,end"}, {"isspace", "isspace", ""},
    {"isalpha", "isalpha", ""}, {"isnumeric", "isnumeric", ""}, {"isprintable", "isprintable", ""},
    {"lower", "lower", ""}, {"islower", "islower", ""}, {"expandtabs", "expandtabs", "tabsize"},
    {"center", "center", "width,fillchar"}, {"istitle", "istitle", ""},
    {"ljust", "ljust", "width,fillchar"}, {"swapcase", "swapcase", ""},
    {"capitalize", "capitalize", ""}, {"strip", "strip", "chars"}, {"isupper", "isupper", ""},
    {"title", "title", ""}, {"upper", "upper", ""}, {"splitlines", "splitlines", "keepends"},
    {"rpartition", "rpartition", "separator"}, {"partition", "partition", "separator"},
    {"replace", "replace", "old,new,max"}, {"rjust", "rjust", "width,fillchar"},
    {"zfill", "zfill", "width"}, {"rsplit", "rsplit", "sep,maxsplit"}, {"lstrip", "lstrip", "chars"},
    {"rstrip", "rstrip", "chars"}, {"split", "split.str", "sep,maxsplit"}, {"isalnum", "isalnum", ""},
    {"isdigit", "isdigit", ""}, {"isdecimal", "isdecimal", ""},
    {"isidentifier", "isidentifier", ""}, {"removeprefix", "removeprefix", "prefix"},
    {"removesuffix", "removesuffix", "suffix"}, {"casefold", "casefold", ""},
    {"isascii", "isascii", ""}};

static ts_status call_row(evaluator *ev, const char *row, const rt_value *args, rt_value *outs) {
    rt_op op = rt_op_find(ts_str_of(row));
    if (op == OP_COUNT)
        return ts_error_make(TS_ERR_UNSUPPORTED, "%s is not available when a script is compiled", row);
    return rt_op_get(op)->ref(&ev->fe->runtime, args, outs);
}

static ts_status str_method(evaluator *ev, rt_value self, ts_str name, ev_arguments *args,
                            bool *out_found, rt_value *out) {
    *out_found = true;
    if (ts_str_is(name, "format"))
        return ev_str_format(ev, ev_text(self), args, out);
    if (ts_str_is(name, "join")) {
        rt_value pair[2] = {self, rt_none()};
        TS_TRY(count_is(args, name, 1, 1));
        TS_TRY(ev_to_list(ev, ARG(0), &pair[1]));
        ts_status status = NULL;
        for (size_t i = 0; i < pair[1].as.list->count && !status; i++)
            if (!ev_is_str(pair[1].as.list->items[i]))
                status = ts_raise("TypeError", "sequence item %zu: expected str instance, %.*s found",
                                  i, TS_STR_ARG(ev_type_name(pair[1].as.list->items[i])));
        if (!status)
            status = call_row(ev, "join", pair, out);
        rt_release(pair[1]);
        return status;
    }
    if ((ts_str_is(name, "startswith") || ts_str_is(name, "endswith")) && args->count == 1 &&
        ARG(0).tag == RT_TAG_TUPLE) {
        rt_value result = rt_bool(false);
        rt_tuple *options = ARG(0).as.tuple;
        for (size_t i = 0; i < options->count && !result.as.i; i++) {
            rt_value four[4] = {self, options->items[i], rt_int(0), rt_int(INT64_MAX)};
            if (!ev_is_str(options->items[i]))
                return ts_raise("TypeError", "expected str in the tuple");
            TS_TRY(call_row(ev, name.data[0] == 's' ? "startswith" : "endswith", four, &result));
        }
        *out = result;
        return NULL;
    }
    for (size_t i = 0; i < sizeof str_methods / sizeof *str_methods; i++) {
        if (!ts_str_is(name, str_methods[i].name))
            continue;
        rt_value slots[8], outs[3] = {rt_none(), rt_none(), rt_none()}, blank = rt_none();
        const char *parameters = str_methods[i].parameters;
        TS_TRY(ev_take(args, str_methods[i].name, parameters, slots + 1));
        slots[0] = self;
        size_t at = 1;
        for (const char *p = parameters; *p; at++) {
            const char *comma = strchr(p, ',');
            size_t n = comma ? (size_t)(comma - p) : strlen(p);
            ts_str parameter = {p, n};
            p += n + (comma != NULL);
            bool is_text = ts_str_is(parameter, "substr") || ts_str_is(parameter, "old") ||
                           ts_str_is(parameter, "new") || ts_str_is(parameter, "separator") ||
                           ts_str_is(parameter, "prefix") || ts_str_is(parameter, "suffix");
            if (ev_is_given(slots[at])) {
                bool may_be_none = ts_str_is(parameter, "chars") || ts_str_is(parameter, "sep") ||
                                   ts_str_is(parameter, "start") || ts_str_is(parameter, "end");
                bool fits = is_text || ts_str_is(parameter, "fillchar") || ts_str_is(parameter, "chars") ||
                                    ts_str_is(parameter, "sep")
                                ? ev_is_str(slots[at])
                                : ev_is_int(slots[at]);
                if (may_be_none && rt_is_none(slots[at]))
                    fits = true;
                if (!fits)
                    return ts_raise("TypeError", "%.*s() argument %zu has type %.*s", TS_STR_ARG(name),
                                    at, TS_STR_ARG(ev_type_name(slots[at])));
                if (rt_is_none(slots[at]) && ts_str_is(parameter, "start"))
                    slots[at] = rt_int(0);
                if (rt_is_none(slots[at]) && ts_str_is(parameter, "end"))
                    slots[at] = rt_int(INT64_MAX);
                continue;
            }
            if (is_text || ts_str_is(parameter, "width"))
                return ts_raise("TypeError", "%.*s() takes at least %zu argument (%zu given)",
                                TS_STR_ARG(name), at, args->count);
            if (ts_str_is(parameter, "start"))
                slots[at] = rt_int(0);
            else if (ts_str_is(parameter, "end"))
                slots[at] = rt_int(INT64_MAX);
            else if (ts_str_is(parameter, "tabsize"))
                slots[at] = rt_int(8);
            else if (ts_str_is(parameter, "keepends"))
                slots[at] = rt_bool(false);
            else if (ts_str_is(parameter, "fillchar")) {
                TS_TRY(rt_str_make(TS_STR(" "), &blank));
                slots[at] = blank;
            } else
                slots[at] = ts_str_is(parameter, "chars") || ts_str_is(parameter, "sep") ? rt_none()
                                                                                        : rt_int(-1);
        }
        ts_status called = call_row(ev, str_methods[i].row, slots, outs);
        rt_release(blank);
        TS_TRY(called);
        if (ts_str_ends_with(name, "partition") && outs[1].tag != RT_TAG_NONE) {
            ts_status status = ev_tuple(outs, 3, out);
            for (int k = 0; k < 3; k++)
                rt_release(outs[k]);
            return status;
        }
        *out = outs[0];
        return NULL;
    }
    *out_found = false;
    return NULL;
}

/* ---- list ---- */

static ts_status find_item(evaluator *ev, rt_value self, ev_arguments *args, int64_t *out) {
    size_t n;
    rt_value *items = ev_items(self, &n);
    int64_t start = args->count > 1 && ev_is_int(ARG(1)) ? ARG(1).as.i : 0;
    int64_t end = args->count > 2 && ev_is_int(ARG(2)) ? ARG(2).as.i : (int64_t)n;
    start += start < 0 ? (int64_t)n : 0;
    end += end < 0 ? (int64_t)n : 0;
    for (int64_t i = start < 0 ? 0 : start; i < end && i < (int64_t)n; i++) {
        bool same = rt_is(items[i], ARG(0));
        if (!same)
            TS_TRY(ev_equal(ev, items[i], ARG(0), &same));
        if (same) {
            *out = i;
            return NULL;
        }
    }
    *out = -1;
    return NULL;
}

static ts_status sequence_method(evaluator *ev, rt_value self, ts_str name, ev_arguments *args,
                                 bool *out_found, rt_value *out) {
    *out_found = true;
    if (ts_str_is(name, "index")) {
        int64_t at;
        TS_TRY(count_is(args, name, 1, 3));
        TS_TRY(find_item(ev, self, args, &at));
        if (at < 0) {
            rt_value text;
            TS_TRY(rt_to_repr(ARG(0), &text));
            ts_status status = self.tag == RT_TAG_LIST
                                   ? ts_raise("ValueError", "%.*s is not in list",
                                              TS_STR_ARG(ev_text(text)))
                                   : ts_raise("ValueError", "tuple.index(x): x not in tuple");
            rt_release(text);
            return status;
        }
        *out = rt_int(at);
        return NULL;
    }
    if (ts_str_is(name, "count")) {
        size_t n;
        rt_value *items = ev_items(self, &n);
        int64_t count = 0;
        TS_TRY(count_is(args, name, 1, 1));
        for (size_t i = 0; i < n; i++) {
            bool same;
            TS_TRY(ev_equal(ev, items[i], ARG(0), &same));
            count += same;
        }
        *out = rt_int(count);
        return NULL;
    }
    *out_found = false;
    return NULL;
}

static ts_status list_method(evaluator *ev, rt_value self, ts_str name, ev_arguments *args,
                             bool *out_found, rt_value *out) {
    rt_list *list = self.as.list;
    *out_found = true;
    if (ts_str_is(name, "append")) {
        TS_TRY(count_is(args, name, 1, 1));
        if (list->count >= EV_MAX_ITEMS)
            return ts_raise("MemoryError", "a list of %zu items is too large", list->count);
        return rt_list_append(list, ARG(0));
    }
    if (ts_str_is(name, "extend")) {
        TS_TRY(count_is(args, name, 1, 1));
        rt_value result;
        TS_TRY(ev_augmented(ev, AST_ADD, self, ARG(0), &result));
        rt_release(result);
        return NULL;
    }
    if (ts_str_is(name, "insert")) {
        TS_TRY(count_is(args, name, 2, 2));
        if (!ev_is_int(ARG(0)))
            return ts_raise("TypeError", "insert() index must be an integer");
        int64_t at = ARG(0).as.i;
        at += at < 0 ? (int64_t)list->count : 0;
        at = at < 0 ? 0 : at > (int64_t)list->count ? (int64_t)list->count : at;
        return rt_list_insert(list, (size_t)at, ARG(1));
    }
    if (ts_str_is(name, "pop")) {
        TS_TRY(count_is(args, name, 0, 1));
        int64_t at = args->count && ev_is_int(ARG(0)) ? ARG(0).as.i : -1;
        if (!list->count)
            return ts_raise("IndexError", "pop from empty list");
        at += at < 0 ? (int64_t)list->count : 0;
        if (at < 0 || at >= (int64_t)list->count)
            return ts_raise("IndexError", "pop index out of range");
        *out = rt_list_take_at(list, (size_t)at);
        return NULL;
    }
    if (ts_str_is(name, "remove")) {
        int64_t at;
        TS_TRY(count_is(args, name, 1, 1));
        TS_TRY(find_item(ev, self, args, &at));
        if (at < 0)
            return ts_raise("ValueError", "list.remove(x): x not in list");
        rt_release(rt_list_take_at(list, (size_t)at));
        return NULL;
    }
    if (ts_str_is(name, "reverse")) {
        for (size_t i = 0; i < list->count / 2; i++) {
            rt_value v = list->items[i];
            list->items[i] = list->items[list->count - 1 - i];
            list->items[list->count - 1 - i] = v;
        }
        return NULL;
    }
    if (ts_str_is(name, "sort"))
        return ev_sort(ev, self, args, 0);
    if (ts_str_is(name, "copy"))
        return copy_items(self, out);
    if (ts_str_is(name, "clear")) {
        rt_list_clear(list);
        return NULL;
    }
    return sequence_method(ev, self, name, args, out_found, out);
}

/* ---- dict ---- */

static ts_status dict_list(rt_value self, int what, rt_value *out) {
    TS_TRY(rt_list_make(self.as.dict->live_count, out));
    rt_dict_entry *e;
    for (size_t at = 0; (e = rt_dict_next(self.as.dict, &at));) {
        if (what < 2) {
            TS_TRY(rt_list_append(out->as.list, what ? e->value : e->key));
            continue;
        }
        rt_value pair, items[2] = {e->key, e->value};
        TS_TRY(ev_tuple(items, 2, &pair));
        ts_status status = rt_list_append(out->as.list, pair);
        rt_release(pair);
        TS_TRY(status);
    }
    return NULL;
}

static ts_status dict_update(evaluator *ev, rt_value self, ev_arguments *args) {
    rt_value more;
    ev_arguments copy = *args;
    TS_TRY(ev_builtin(ev, TS_STR("builtins.dict"), &copy, &more));
    rt_dict_entry *e;
    ts_status status = NULL;
    for (size_t at = 0; !status && (e = rt_dict_next(more.as.dict, &at));)
        status = rt_dict_set(self.as.dict, e->key, e->value);
    rt_release(more);
    return status;
}

static ts_status dict_method(evaluator *ev, rt_value self, ts_str name, ev_arguments *args,
                             bool *out_found, rt_value *out) {
    rt_dict *dict = self.as.dict;
    rt_dict_entry *e;
    bool removed;
    *out_found = true;
    if (ts_str_is(name, "keys"))
        return dict_list(self, 0, out);
    if (ts_str_is(name, "values"))
        return dict_list(self, 1, out);
    if (ts_str_is(name, "items"))
        return dict_list(self, 2, out);
    if (ts_str_is(name, "update"))
        return dict_update(ev, self, args);
    if (ts_str_is(name, "copy")) {
        TS_TRY(rt_dict_make(out));
        for (size_t at = 0; (e = rt_dict_next(dict, &at));)
            TS_TRY(rt_dict_set(out->as.dict, e->key, e->value));
        return NULL;
    }
    if (ts_str_is(name, "clear")) {
        rt_dict_clear(dict);
        return NULL;
    }
    if (ts_str_is(name, "popitem")) {
        rt_dict_entry *last = NULL;
        for (size_t at = 0; (e = rt_dict_next(dict, &at));)
            last = e;
        if (!last)
            return ts_raise("KeyError", "'popitem(): dictionary is empty'");
        rt_value pair[2] = {rt_retain(last->key), rt_retain(last->value)};
        ts_status status = ev_tuple(pair, 2, out);
        if (!status)
            status = rt_dict_remove(dict, pair[0], &removed);
        rt_release(pair[0]);
        rt_release(pair[1]);
        return status;
    }
    bool is_get = ts_str_is(name, "get"), is_pop = ts_str_is(name, "pop"),
         is_setdefault = ts_str_is(name, "setdefault");
    if (is_get || is_pop || is_setdefault) {
        TS_TRY(count_is(args, name, 1, 2));
        TS_TRY(rt_dict_find(dict, ARG(0), &e));
        if (e) {
            *out = rt_retain(e->value);
            return is_pop ? rt_dict_remove(dict, ARG(0), &removed) : NULL;
        }
        if (is_pop && args->count == 1)
            return ev_get_item(ev, self, ARG(0), out); /* KeyError */
        *out = args->count > 1 ? rt_retain(ARG(1)) : rt_none();
        return is_setdefault ? rt_dict_set(dict, ARG(0), *out) : NULL;
    }
    if (ts_str_is(name, "move_to_end")) {
        TS_TRY(count_is(args, name, 1, 2));
        rt_value v;
        TS_TRY(ev_get_item(ev, self, ARG(0), &v));
        ts_status status = rt_dict_remove(dict, ARG(0), &removed);
        if (!status)
            status = rt_dict_set(dict, ARG(0), v);
        rt_release(v);
        return status;
    }
    *out_found = false;
    return NULL;
}

/* ---- set ---- */

static ts_status set_method(evaluator *ev, rt_value self, ts_str name, ev_arguments *args,
                            bool *out_found, rt_value *out) {
    rt_dict *set = self.as.dict;
    bool removed;
    *out_found = true;
    if (ts_str_is(name, "add")) {
        TS_TRY(count_is(args, name, 1, 1));
        return rt_dict_set(set, ARG(0), rt_none());
    }
    if (ts_str_is(name, "discard") || ts_str_is(name, "remove")) {
        TS_TRY(count_is(args, name, 1, 1));
        TS_TRY(rt_dict_remove(set, ARG(0), &removed));
        return removed || name.data[0] == 'd' ? NULL : ev_delete_item(ev, self, ARG(0));
    }
    if (ts_str_is(name, "clear")) {
        rt_dict_clear(set);
        return NULL;
    }
    if (ts_str_is(name, "pop")) {
        size_t at = 0;
        rt_dict_entry *e = rt_dict_next(set, &at);
        if (!e)
            return ts_raise("KeyError", "'pop from an empty set'");
        *out = rt_retain(e->key);
        return rt_dict_remove(set, *out, &removed);
    }
    if (ts_str_is(name, "update")) {
        for (size_t i = 0; i < args->count; i++) {
            rt_value list;
            TS_TRY(ev_to_list(ev, ARG(i), &list));
            ts_status status = NULL;
            for (size_t k = 0; k < list.as.list->count && !status; k++)
                status = rt_dict_set(set, list.as.list->items[k], rt_none());
            rt_release(list);
            TS_TRY(status);
        }
        return NULL;
    }
    if (ts_str_is(name, "copy")) {
        ev_arguments one = {0};
        ev_arguments_add(ev, &one, (ts_str){0}, rt_retain(self));
        ts_status status = ev_builtin(ev, TS_STR("builtins.set"), &one, out);
        ev_arguments_release(&one);
        return status;
    }
    static const struct {
        const char *name;
        ast_operator op;
        bool is_order;
    } pairs[] = {{"union", AST_BITOR, false}, {"intersection", AST_BITAND, false},
                 {"difference", AST_SUB, false}, {"symmetric_difference", AST_BITXOR, false},
                 {"issubset", AST_LE, true}, {"issuperset", AST_GE, true}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (!ts_str_is(name, pairs[i].name))
            continue;
        rt_value other;
        TS_TRY(count_is(args, name, 1, 1));
        TS_TRY(ev_builtin(ev, TS_STR("builtins.set"), args, &other));
        ts_status status = pairs[i].is_order ? ev_compare(ev, pairs[i].op, self, other, out)
                                             : ev_binary(ev, pairs[i].op, self, other, out);
        rt_release(other);
        return status;
    }
    *out_found = false;
    return NULL;
}

/* ---- tuple, numbers ---- */

static ts_status tuple_method(evaluator *ev, rt_value self, ts_str name, ev_arguments *args,
                              bool *out_found, rt_value *out) {
    const rt_class *c = self.as.tuple->class_;
    *out_found = true;
    if (c && ts_str_is(name, "_replace")) {
        TS_TRY(ev_tuple(self.as.tuple->items, self.as.tuple->count, out));
        out->as.tuple->class_ = c;
        for (size_t i = 0; i < args->count; i++) {
            int64_t field = rt_class_field(c, args->items[i].name);
            if (field < 0)
                return ts_raise("ValueError", "Got unexpected field names: ['%.*s']",
                                TS_STR_ARG(args->items[i].name));
            rt_assign(&out->as.tuple->items[field], rt_retain(ARG(i)));
        }
        return NULL;
    }
    if (c && ts_str_is(name, "_asdict")) {
        TS_TRY(rt_dict_make(out));
        for (size_t i = 0; i < c->field_count; i++) {
            rt_value key;
            TS_TRY(rt_str_make(c->fields[i], &key));
            ts_status status = rt_dict_set(out->as.dict, key, self.as.tuple->items[i]);
            rt_release(key);
            TS_TRY(status);
        }
        return NULL;
    }
    if (!c && ts_str_is(name, "numel")) { /* torch.Size */
        int64_t n = 1;
        for (size_t i = 0; i < self.as.tuple->count; i++)
            n *= ev_is_int(self.as.tuple->items[i]) ? self.as.tuple->items[i].as.i : 1;
        *out = rt_int(n);
        return NULL;
    }
    return sequence_method(ev, self, name, args, out_found, out);
}

static ts_status number_method(rt_value self, ts_str name, bool *out_found, rt_value *out) {
    *out_found = true;
    if (ev_is_int(self) && ts_str_is(name, "bit_length")) {
        int64_t n = 0;
        for (uint64_t u = self.as.i < 0 ? 0 - (uint64_t)self.as.i : (uint64_t)self.as.i; u; u >>= 1)
            n++;
        *out = rt_int(n);
        return NULL;
    }
    if (ev_is_number(self) && ts_str_is(name, "is_integer")) {
        *out = rt_bool(ev_is_int(self) || (isfinite(self.as.f) && self.as.f == floor(self.as.f)));
        return NULL;
    }
    if (self.tag == RT_TAG_COMPLEX && ts_str_is(name, "conjugate"))
        return rt_complex_make(self.as.complex->re, -self.as.complex->im, out);
    if (ev_is_number(self) && (ts_str_is(name, "__abs__") || ts_str_is(name, "__int__") ||
                               ts_str_is(name, "__float__"))) {
        if (ts_str_is(name, "__float__"))
            *out = rt_float(ev_double(self));
        else if (ts_str_is(name, "__abs__"))
            *out = ev_is_int(self) ? rt_int(self.as.i < 0 ? -self.as.i : self.as.i)
                                   : rt_float(fabs(self.as.f));
        else
            *out = ev_is_int(self) ? rt_int(self.as.i) : rt_int((int64_t)self.as.f);
        return NULL;
    }
    *out_found = false;
    return NULL;
}

ts_status ev_value_method(evaluator *ev, rt_value self, ts_str name, ev_arguments *args,
                          bool *out_found, rt_value *out) {
    ts_status status = NULL;
    *out_found = false;
    *out = rt_none();
    switch (self.tag) {
    case RT_TAG_STR: status = str_method(ev, self, name, args, out_found, out); break;
    case RT_TAG_LIST: status = list_method(ev, self, name, args, out_found, out); break;
    case RT_TAG_TUPLE: status = tuple_method(ev, self, name, args, out_found, out); break;
    case RT_TAG_DICT:
        status = ev_is_set(self) ? set_method(ev, self, name, args, out_found, out)
                                 : dict_method(ev, self, name, args, out_found, out);
        break;
    case RT_TAG_GENERATOR:
    case RT_TAG_TENSOR: {
        ev_arguments all = {0};
        ev_arguments_add(ev, &all, (ts_str){0}, rt_retain(self));
        for (size_t i = 0; i < args->count; i++)
            ev_arguments_add(ev, &all, args->items[i].name, rt_retain(ARG(i)));
        *out_found = true;
        status = ev_torch(ev, ts_arena_format(ev->arena, "Tensor.%.*s", (int)name.length, name.data),
                          &all, out);
        ev_arguments_release(&all);
        break;
    }
    default: status = number_method(self, name, out_found, out); break;
    }
    if (status)
        rt_assign(out, rt_none());
    return status;
}

bool ev_value_has_method(evaluator *ev, rt_value self, ts_str name) {
    static const char *const lists[] = {"append", "extend", "insert", "pop", "remove", "reverse",
                                        "sort", "copy", "clear", "index", "count"};
    static const char *const dicts[] = {"keys", "values", "items", "update", "copy", "clear",
                                        "popitem", "get", "pop", "setdefault", "move_to_end"};
    static const char *const sets[] = {"add", "discard", "remove", "clear", "pop", "update", "copy",
                                       "union", "intersection", "difference", "issubset",
                                       "issuperset", "symmetric_difference"};
    const char *const *names = NULL;
    size_t count = 0;
    switch (self.tag) {
    case RT_TAG_STR:
        for (size_t i = 0; i < sizeof str_methods / sizeof *str_methods; i++)
            if (ts_str_is(name, str_methods[i].name))
                return true;
        return ts_str_is(name, "format") || ts_str_is(name, "join");
    case RT_TAG_LIST: names = lists; count = sizeof lists / sizeof *lists; break;
    case RT_TAG_TUPLE:
        return ts_str_is(name, "index") || ts_str_is(name, "count") || ts_str_is(name, "_asdict") ||
               ts_str_is(name, "_replace");
    case RT_TAG_DICT:
        names = ev_is_set(self) ? sets : dicts;
        count = ev_is_set(self) ? sizeof sets / sizeof *sets : sizeof dicts / sizeof *dicts;
        break;
    case RT_TAG_TENSOR: return fe_operator_exists(ev->fe, name);
    case RT_TAG_INT: return ts_str_is(name, "bit_length");
    case RT_TAG_FLOAT: return ts_str_is(name, "is_integer");
    default: return false;
    }
    for (size_t i = 0; i < count; i++)
        if (ts_str_is(name, names[i]))
            return true;
    return false;
}

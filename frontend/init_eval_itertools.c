/* frontend/init_eval_itertools.c - the evaluator of scripts: Python's modules itertools and operator. */
#include <stdlib.h>

#include "frontend/init_eval_builtin.h"

rt_value ev_take_keyword(ev_arguments *args, const char *name) {
    for (size_t i = 0; i < args->count; i++) {
        if (!ts_str_is(args->items[i].name, name))
            continue;
        rt_value v = ARG(i);
        args->count--;
        memmove(args->items + i, args->items + i + 1, (args->count - i) * sizeof *args->items);
        return v;
    }
    return (rt_value){.tag = RT_TAG_UNINITIALIZED};
}

static ts_status chain_lists(evaluator *ev, const rt_value *lists, size_t count, rt_value *out) {
    rt_value all;
    TS_TRY(rt_list_make(0, &all));
    ts_status status = NULL;
    for (size_t i = 0; i < count && !status; i++) {
        rt_value more;
        status = ev_to_list(ev, lists[i], &more);
        for (size_t k = 0; !status && k < more.as.list->count; k++)
            status = rt_list_append(all.as.list, more.as.list->items[k]);
        rt_release(more);
    }
    return ev_iterator_of(all, status, out);
}

ts_status ev_chain(evaluator *ev, ev_arguments *args, rt_value *out) {
    rt_value lists[32];
    TS_TRY(ev_wants(args, "chain", 0, 32));
    for (size_t i = 0; i < args->count; i++)
        lists[i] = ARG(i);
    return chain_lists(ev, lists, args->count, out);
}

ts_status ev_chain_from(evaluator *ev, ev_arguments *args, rt_value *out) {
    rt_value list;
    TS_TRY(ev_wants(args, "from_iterable", 1, 1));
    TS_TRY(ev_to_list(ev, ARG(0), &list));
    ts_status status = chain_lists(ev, list.as.list->items, list.as.list->count, out);
    rt_release(list);
    return status;
}

ts_status ev_product(evaluator *ev, ev_arguments *args, rt_value *out) {
    rt_value lists[8], all, repeat = ev_take_keyword(args, "repeat");
    size_t count = args->count, total = 1;
    if (ev_is_given(repeat) && args->count == 1 && ev_is_int(repeat) && repeat.as.i >= 0)
        count = (size_t)repeat.as.i;
    if (count > 8)
        return ts_raise("TypeError", "product() of more than 8 iterables is not supported");
    ts_status status = NULL;
    for (size_t i = 0; i < count; i++)
        lists[i] = rt_none();
    for (size_t i = 0; i < count && !status; i++) {
        status = ev_to_list(ev, ARG(i < args->count ? i : 0), &lists[i]);
        if (!status)
            total *= lists[i].as.list->count;
        if (total > 1000000)
            status = ts_raise("MemoryError", "product() of more than a million items");
    }
    ts_status made = rt_list_make(0, &all);
    status = status ? status : made;
    for (size_t n = 0; n < total && !status; n++) {
        rt_value items[8], pair;
        size_t rest = n;
        for (size_t i = count; i-- > 0;) {
            items[i] = lists[i].as.list->items[rest % lists[i].as.list->count];
            rest /= lists[i].as.list->count;
        }
        status = ev_tuple(items, count, &pair);
        if (!status)
            status = rt_list_append(all.as.list, pair);
        rt_release(pair);
    }
    for (size_t i = 0; i < count; i++)
        rt_release(lists[i]);
    return ev_iterator_of(all, status, out);
}

ts_status ev_repeat(evaluator *ev, ev_arguments *args, rt_value *out) {
    rt_value all;
    (void)ev;
    TS_TRY(ev_wants(args, "repeat", 2, 2));
    if (!ev_is_int(ARG(1)) || ARG(1).as.i > EV_MAX_ITEMS)
        return ts_raise("TypeError", "repeat() needs a number of times");
    TS_TRY(rt_list_make(0, &all));
    ts_status status = NULL;
    for (int64_t i = 0; i < ARG(1).as.i && !status; i++)
        status = rt_list_append(all.as.list, ARG(0));
    return ev_iterator_of(all, status, out);
}

ts_status ev_accumulate(evaluator *ev, ev_arguments *args, rt_value *out) {
    rt_value list, all, total = rt_none();
    TS_TRY(ev_wants(args, "accumulate", 1, 1));
    TS_TRY(ev_to_list(ev, ARG(0), &list));
    ts_status status = rt_list_make(0, &all);
    for (size_t i = 0; i < list.as.list->count && !status; i++) {
        rt_value next = rt_none();
        if (i)
            status = ev_binary(ev, AST_ADD, total, list.as.list->items[i], &next);
        else
            next = rt_retain(list.as.list->items[0]);
        rt_assign(&total, next);
        if (!status)
            status = rt_list_append(all.as.list, total);
    }
    rt_release(total);
    rt_release(list);
    return ev_iterator_of(all, status, out);
}

/* ---- the operators of module operator ---- */
ts_status ev_operator_function(evaluator *ev, ts_str name, ev_arguments *args, bool *out_found,
                             rt_value *out) {
    static const struct {
        const char *name;
        ast_operator op;
        bool is_compare;
    } list[] = {{"add", AST_ADD, false}, {"sub", AST_SUB, false}, {"mul", AST_MUL, false},
                {"truediv", AST_DIV, false}, {"floordiv", AST_FLOORDIV, false}, {"mod", AST_MOD, false},
                {"pow", AST_POW, false}, {"matmul", AST_MATMUL, false}, {"eq", AST_EQ, true},
                {"ne", AST_NE, true}, {"lt", AST_LT, true}, {"le", AST_LE, true},
                {"gt", AST_GT, true}, {"ge", AST_GE, true}};
    *out_found = false;
    for (size_t i = 0; i < sizeof list / sizeof *list && args->count == 2; i++)
        if (ts_str_is(name, list[i].name)) {
            *out_found = true;
            return list[i].is_compare ? ev_compare(ev, list[i].op, ARG(0), ARG(1), out)
                                      : ev_binary(ev, list[i].op, ARG(0), ARG(1), out);
        }
    if (ts_str_is(name, "getitem") && args->count == 2) {
        *out_found = true;
        return ev_get_item(ev, ARG(0), ARG(1), out);
    }
    if (ts_str_is(name, "neg") && args->count == 1) {
        *out_found = true;
        return ev_unary(ev, AST_NEG, ARG(0), out);
    }
    return NULL;
}

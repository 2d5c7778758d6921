/* frontend/init_eval_try.c - the evaluator of scripts: raise, try and with. */
#include "frontend/init_eval_internal.h"

/* ---- exceptions ---- */

ts_status ev_raise_statement(evaluator *ev, ev_frame *frame, const ast_node *node) {
    rt_value v = rt_none();
    if (!node->left) {
        if (rt_is_none(ev->handling))
            return ts_raise("RuntimeError", "No active exception to reraise");
        v = rt_retain(ev->handling);
    } else {
        TS_TRY(ev_expression(ev, frame, node->left, &v));
    }
    fe_binding b = fe_binding_of_value(v);
    ts_status status = NULL;
    if (b.kind == FE_CLASS) {
        ev_arguments none = {0};
        rt_value made;
        status = ev_call(ev, b, &none, &made);
        rt_release(v);
        v = made;
    }
    if (!status)
        status = ev_raise_object(ev, v);
    rt_release(v);
    return status;
}

/* The exception object of a status. */
static ts_status exception_of(evaluator *ev, ts_status status, rt_value *out) {
    const char *type = ts_status_exception(status);
    if (!rt_is_none(ev->raised)) {
        fe_class *c = ev_class_of(ev->raised);
        if (c && ts_str_is(c->bare_name, type)) {
            *out = ev->raised;
            ev->raised = rt_none();
            return NULL;
        }
        rt_assign(&ev->raised, rt_none());
    }
    fe_class *c = ev_builtin_class(
        ev, ts_arena_format(ev->arena, "builtins.%s", type).data);
    if (!c)
        c = ev_builtin_class(ev, "builtins.Exception");
    rt_value text, args;
    ts_str message = ts_str_of(ts_status_message(status));
    bool is_key = ts_str_is(c->bare_name, "KeyError") && message.length > 1 &&
                  message.data[0] == '\'' && message.data[message.length - 1] == '\'';
    if (is_key) /* its text is the key's repr already */
        message = (ts_str){message.data + 1, message.length - 2};
    TS_TRY(ev_str(ev, message, &text));
    ts_status made = ev_tuple(&text, 1, &args);
    rt_release(text);
    TS_TRY(made);
    made = ev_exception_make(ev, c, args, out);
    rt_release(args);
    return made;
}

static ts_status matches(evaluator *ev, ev_frame *frame, const ast_node *type, rt_value exception,
                         bool *out) {
    *out = true;
    if (!type)
        return NULL;
    rt_value v;
    TS_TRY(ev_expression(ev, frame, type, &v));
    *out = false;
    if (v.tag == RT_TAG_TUPLE) {
        for (size_t i = 0; i < v.as.tuple->count && !*out; i++)
            *out = ev_isinstance(ev, exception, fe_binding_of_value(v.as.tuple->items[i]));
    } else {
        *out = ev_isinstance(ev, exception, fe_binding_of_value(v));
    }
    rt_release(v);
    return NULL;
}

static ts_status handle(evaluator *ev, ev_frame *frame, const ast_node *node, ts_status error,
                        ev_flow *out) {
    rt_value exception;
    int depth = ev->depth;
    ts_status status = exception_of(ev, error, &exception);
    if (status) {
        ts_status_release(error);
        return status;
    }
    for (size_t i = 0; i < node->list.count; i++) {
        const ast_node *clause = node->list.items[i];
        bool is_match = false;
        status = matches(ev, frame, clause->left, exception, &is_match);
        if (!status && !is_match)
            continue;
        ts_status_release(error);
        error = NULL;
        if (!status && clause->text.length)
            status = ev_store_name(ev, frame, clause->text, exception);
        rt_value before = ev->handling;
        ev->handling = exception;
        if (!status)
            status = ev_block(ev, frame, &clause->body, out);
        ev->handling = before;
        rt_release(exception);
        ev->depth = depth;
        return status;
    }
    rt_assign(&ev->raised, exception);
    return error;
}

ts_status ev_try_statement(evaluator *ev, ev_frame *frame, const ast_node *node,
                               ev_flow *out) {
    int depth = ev->depth;
    ts_status status = ev_block(ev, frame, &node->body, out);
    if (!status && *out == EV_NEXT)
        status = ev_block(ev, frame, &node->orelse, out);
    else if (ts_status_code(status) == TS_ERR_RAISED) {
        ev->depth = depth;
        *out = EV_NEXT;
        status = handle(ev, frame, node, status, out);
    }
    if (!node->finally_body.count || (status && ts_status_code(status) != TS_ERR_RAISED))
        return status;
    rt_value raised = ev->raised;
    ev->raised = rt_none();
    ev->depth = depth;
    ev_flow flow = EV_NEXT;
    ts_status last = ev_block(ev, frame, &node->finally_body, &flow);
    if (last || flow != EV_NEXT) { /* it replaces what was under way */
        ts_status_release(status);
        rt_release(raised);
        if (flow != EV_NEXT)
            *out = flow;
        return last;
    }
    rt_assign(&ev->raised, raised);
    return status;
}

ts_status ev_with_statement(evaluator *ev, ev_frame *frame, const ast_node *node, size_t item,
                                ev_flow *out) {
    if (item == node->list.count)
        return ev_block(ev, frame, &node->body, out);
    const ast_node *w = node->list.items[item];
    rt_value manager, entered = rt_none();
    TS_TRY(ev_expression(ev, frame, w->left, &manager));
    bool grad = ev->fe->runtime.grad_enabled;
    fe_binding b = fe_binding_of_value(manager);
    bool is_user = manager.tag == RT_TAG_OBJECT;
    ts_status status = NULL;
    if (is_user)
        status = ev_call_method0(ev, manager, TS_STR("__enter__"), &entered);
    else if (b.kind != FE_NAME)
        status = ev_unsupported(w, "expected a context manager, found %.*s",
                                TS_STR_ARG(ev_type_name(manager)));
    else if (ts_str_ends_with(b.path, "no_grad") || ts_str_ends_with(b.path, "inference_mode"))
        ev->fe->runtime.grad_enabled = false;
    else if (ts_str_ends_with(b.path, "enable_grad"))
        ev->fe->runtime.grad_enabled = true;
    if (!status && w->right)
        status = ev_assign(ev, frame, w->right, entered);
    if (!status)
        status = ev_with_statement(ev, frame, node, item + 1, out);
    ev->fe->runtime.grad_enabled = grad;
    if (is_user && (!status || ts_status_code(status) == TS_ERR_RAISED)) {
        ev_arguments none = {0};
        for (int i = 0; i < 3; i++)
            ev_arguments_add(ev, &none, (ts_str){0}, rt_none());
        rt_value result = rt_none();
        ts_status last = ev_call_method(ev, manager, TS_STR("__exit__"), &none, &result);
        bool is_handled = false;
        if (!last && status)
            last = ev_truth(ev, result, &is_handled);
        rt_release(result);
        ev_arguments_release(&none);
        if (last || is_handled) {
            ts_status_release(status);
            status = last;
        }
    }
    rt_release(entered);
    rt_release(manager);
    return status;
}

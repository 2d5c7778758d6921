/* frontend/init_eval_expression.c - the evaluator of scripts: expressions. */
#include <stdio.h>
#include <stdlib.h>

#include "frontend/init_eval_internal.h"

ts_status ev_str(evaluator *ev, ts_str text, rt_value *out) {
    (void)ev;
    return rt_str_make(text, out);
}

ts_status ev_tuple(const rt_value *items, size_t count, rt_value *out) {
    TS_TRY(rt_tuple_make(count, out));
    for (size_t i = 0; i < count; i++)
        out->as.tuple->items[i] = rt_retain(items[i]);
    return NULL;
}

/* Items of a display, *a unpacked, appended to a list. */
static ts_status display_items(evaluator *ev, ev_frame *frame, const ast_list *list,
                               rt_value into) {
    for (size_t i = 0; i < list->count; i++) {
        rt_value v;
        const ast_node *item = list->items[i];
        if (item->kind != AST_STARRED) {
            TS_TRY(ev_expression(ev, frame, item, &v));
            ts_status status = rt_list_append(into.as.list, v);
            rt_release(v);
            TS_TRY(status);
            continue;
        }
        rt_value all;
        TS_TRY(ev_expression(ev, frame, item->left, &v));
        ts_status status = ev_to_list(ev, v, &all);
        rt_release(v);
        TS_TRY(status);
        for (size_t k = 0; k < all.as.list->count && !status; k++)
            status = rt_list_append(into.as.list, all.as.list->items[k]);
        rt_release(all);
        TS_TRY(status);
    }
    return NULL;
}

static ts_status sequence(evaluator *ev, ev_frame *frame, const ast_node *node, rt_value *out) {
    rt_value list;
    TS_TRY(rt_list_make(node->list.count, &list));
    ts_status status = display_items(ev, frame, &node->list, list);
    if (!status && node->kind == AST_TUPLE) {
        status = ev_tuple(list.as.list->items, list.as.list->count, out);
        rt_release(list);
        return status;
    }
    if (!status && node->kind == AST_SET) {
        status = rt_dict_make(out);
        if (!status)
            out->as.counted->flags |= EV_FLAG_SET;
        for (size_t i = 0; !status && i < list.as.list->count; i++)
            status = rt_dict_set(out->as.dict, list.as.list->items[i], rt_none());
        rt_release(list);
        if (status)
            rt_assign(out, rt_none());
        return status;
    }
    if (status)
        rt_release(list);
    else
        *out = list;
    return status;
}

static ts_status dict_merge(rt_value into, rt_value from) {
    if (from.tag != RT_TAG_DICT)
        return ts_raise("TypeError", "'%.*s' object is not a mapping",
                        TS_STR_ARG(ev_type_name(from)));
    rt_dict_entry *e;
    for (size_t at = 0; (e = rt_dict_next(from.as.dict, &at));)
        TS_TRY(rt_dict_set(into.as.dict, e->key, e->value));
    return NULL;
}

static ts_status dict_display(evaluator *ev, ev_frame *frame, const ast_node *node, rt_value into) {
    for (size_t i = 0; i + 1 < node->list.count; i += 2) {
        rt_value key = rt_none(), value;
        if (!node->list.items[i]) {
            TS_TRY(ev_expression(ev, frame, node->list.items[i + 1], &value));
            ts_status status = dict_merge(into, value);
            rt_release(value);
            TS_TRY(status);
            continue;
        }
        TS_TRY(ev_expression(ev, frame, node->list.items[i], &key));
        ts_status status = ev_expression(ev, frame, node->list.items[i + 1], &value);
        if (!status)
            status = rt_dict_set(into.as.dict, key, value);
        rt_release(key);
        rt_release(value);
        TS_TRY(status);
    }
    return NULL;
}

/* ---- comprehensions: clauses from `clause` on, then the element ---- */
static ts_status clauses(evaluator *ev, ev_frame *frame, const ast_node *node, size_t clause,
                         rt_value into) {
    TS_TRY(ev_step(ev, node));
    if (clause == node->list.count) {
        rt_value a, b = rt_none();
        TS_TRY(ev_expression(ev, frame, node->left, &a));
        ts_status status = node->right ? ev_expression(ev, frame, node->right, &b) : NULL;
        if (status)
            ;
        else if (node->kind == AST_DICT_COMP || node->kind == AST_SET_COMP)
            status = rt_dict_set(into.as.dict, a, b);
        else
            status = rt_list_append(into.as.list, a);
        rt_release(a);
        rt_release(b);
        return status;
    }
    const ast_node *c = node->list.items[clause];
    rt_value source, list;
    TS_TRY(ev_expression(ev, clause ? frame : frame->outer, c->right, &source));
    ts_status status = ev_to_list(ev, source, &list);
    rt_release(source);
    TS_TRY(ts_status_set_place(status, ev_place(c->right)));
    for (size_t i = 0; i < list.as.list->count && !status; i++) {
        rt_value item = rt_retain(list.as.list->items[i]);
        status = ev_assign(ev, frame, c->left, item);
        rt_release(item);
        bool passes = true;
        for (size_t k = 0; k < c->list.count && passes && !status; k++)
            status = ev_condition(ev, frame, c->list.items[k], &passes);
        if (!status && passes)
            status = clauses(ev, frame, node, clause + 1, into);
    }
    rt_release(list);
    return status;
}

static ts_status comprehension(evaluator *ev, ev_frame *frame, const ast_node *node,
                               rt_value *out) {
    rt_value into;
    bool is_dict = node->kind == AST_DICT_COMP || node->kind == AST_SET_COMP;
    TS_TRY(is_dict ? rt_dict_make(&into) : rt_list_make(0, &into));
    if (node->kind == AST_SET_COMP)
        into.as.counted->flags |= EV_FLAG_SET;
    ev_frame inner = {.outer = frame,
                      .globals = frame->scope ? frame->scope : frame->globals,
                      .module = frame->module,
                      .function = frame->function,
                      .self = frame->self};
    /* A lambda in it sees its variables: they need a scope that lives on. */
    if (ev_info(ev, node)->is_captured)
        inner.scope = ev_scope_make(ev, inner.globals, node->source);
    ts_status status = clauses(ev, &inner, node, 0, into);
    ev_frame_deinit(&inner);
    if (!status && node->kind == AST_GENERATOR)
        status = ev_iterator_make(into, out);
    else if (!status)
        *out = rt_retain(into);
    rt_release(into);
    return status;
}

/* ---- f-strings ---- */
static ts_status fstring_text(evaluator *ev, ev_frame *frame, const ast_node *node, ts_buffer *out);

static ts_status formatted(evaluator *ev, ev_frame *frame, const ast_node *node, ts_buffer *out) {
    rt_value v;
    TS_TRY(ev_expression(ev, frame, node->left, &v));
    ts_buffer spec = {0}, text = {0};
    ts_status status = node->right ? fstring_text(ev, frame, node->right, &spec) : NULL;
    if (!status && node->text.length) {
        rt_value converted;
        status = ev_to_text(ev, v, node->text.data[0] != 's', &text);
        if (!status)
            status = rt_str_make((ts_str){text.data, text.length}, &converted);
        if (!status)
            rt_assign(&v, converted);
    }
    if (!status)
        status = ev_format_value(ev, v, (ts_str){spec.data, spec.length}, out);
    ts_buffer_deinit(&spec);
    ts_buffer_deinit(&text);
    rt_release(v);
    return ts_status_set_place(status, ev_place(node));
}

static ts_status fstring_text(evaluator *ev, ev_frame *frame, const ast_node *node,
                              ts_buffer *out) {
    for (size_t i = 0; i < node->list.count; i++) {
        const ast_node *part = node->list.items[i];
        if (part->kind == AST_STRING)
            ts_buffer_str(out, part->text);
        else
            TS_TRY(formatted(ev, frame, part, out));
    }
    return ts_buffer_status(out);
}

/* ---- calls ---- */
static ts_status arguments(evaluator *ev, ev_frame *frame, const ast_list *list,
                           ev_arguments *out) {
    for (size_t i = 0; i < list->count; i++) {
        const ast_node *a = list->items[i];
        rt_value v;
        if (a->kind == AST_STARRED) {
            rt_value all;
            TS_TRY(ev_expression(ev, frame, a->left, &v));
            ts_status status = ev_to_list(ev, v, &all);
            rt_release(v);
            TS_TRY(ts_status_set_place(status, ev_place(a)));
            for (size_t k = 0; k < all.as.list->count; k++)
                ev_arguments_add(ev, out, (ts_str){0}, rt_retain(all.as.list->items[k]));
            rt_release(all);
        } else if (a->kind == AST_KEYWORD && !a->text.length) {
            TS_TRY(ev_expression(ev, frame, a->left, &v));
            if (v.tag != RT_TAG_DICT) {
                ts_status status = ts_raise("TypeError", "argument after ** must be a mapping, not %.*s",
                                            TS_STR_ARG(ev_type_name(v)));
                rt_release(v);
                return ts_status_set_place(status, ev_place(a));
            }
            rt_dict_entry *e;
            for (size_t at = 0; (e = rt_dict_next(v.as.dict, &at));)
                if (ev_is_str(e->key))
                    ev_arguments_add(ev, out, ts_arena_str(ev->arena, ev_text(e->key)),
                                     rt_retain(e->value));
            rt_release(v);
        } else if (a->kind == AST_KEYWORD) {
            TS_TRY(ev_expression(ev, frame, a->left, &v));
            ev_arguments_add(ev, out, a->text, v);
        } else {
            TS_TRY(ev_expression(ev, frame, a, &v));
            ev_arguments_add(ev, out, (ts_str){0}, v);
        }
    }
    return NULL;
}

static ts_status call_super(evaluator *ev, ev_frame *frame, const ast_node *node, rt_value *out) {
    ev_frame *f = frame;
    while (f->outer)
        f = f->outer;
    fe_class *owner = f->function ? f->function->owner : NULL;
    rt_value self = f->self;
    if (node->list.count == 2) {
        fe_binding b;
        rt_value hold;
        TS_TRY(ev_binding(ev, frame, node->list.items[0], &b, &hold));
        rt_release(hold);
        owner = b.kind == FE_CLASS ? b.class_ : NULL;
    }
    if (!owner || (rt_is_none(self) && !f->function->is_class_method))
        return ts_raise("RuntimeError", "super(): no arguments");
    return ev_super_make(self, owner, out);
}

static bool is_builtin(fe_binding b, const char *path) {
    return b.kind == FE_NAME && ts_str_is(b.path, path);
}

static ts_status call(evaluator *ev, ev_frame *frame, const ast_node *node, rt_value *out) {
    fe_binding callee;
    rt_value hold = rt_none(), self = rt_none();
    ev_arguments args = {0};
    ts_status status = NULL;
    const ast_node *target = node->left;
    if (target->kind == AST_ATTRIBUTE) {
        /* A method call needs no bound method. */
        fe_binding b;
        rt_value left_hold;
        TS_TRY(ev_binding(ev, frame, target->left, &b, &left_hold));
        if (b.kind == FE_VALUE) {
            self = left_hold;
            TS_TRY_OR(arguments(ev, frame, &node->list, &args), done);
            status = ev_call_method(ev, self, target->text, &args, out);
            goto done;
        }
        bool found = false;
        status = ev_binding_attribute(ev, b, target->text, &found, &callee, &hold);
        rt_release(left_hold);
        if (!status && !found && b.kind != FE_CLASS && ts_str_is(b.path, "torch.nn") &&
            ts_str_starts_with(target->text, "Lazy"))
            status = ts_raise("NotImplementedError",
                              "torch.nn.%.*s is not supported: its sizes are known only after a first call, "
                              "expected torch.nn.%.*s with its sizes",
                              TS_STR_ARG(target->text), (int)(target->text.length - 4), target->text.data + 4);
        else if (!status && !found)
            status = ts_raise("AttributeError", "'%.*s' has no attribute '%.*s'",
                              TS_STR_ARG(b.kind == FE_CLASS ? b.class_->bare_name : b.path),
                              TS_STR_ARG(target->text));
        TS_TRY_OR(status, done);
    } else {
        TS_TRY(ev_binding(ev, frame, target, &callee, &hold));
    }
    if (is_builtin(callee, "builtins.super")) {
        status = call_super(ev, frame, node, out);
        goto done;
    }
    if (is_builtin(callee, "builtins.locals") || is_builtin(callee, "builtins.globals")) {
        status = ev_unsupported(node, "%.*s() is not supported", TS_STR_ARG(callee.path));
        goto done;
    }
    TS_TRY_OR(arguments(ev, frame, &node->list, &args), done);
    status = ev_call(ev, callee, &args, out);
done:
    ev_arguments_release(&args);
    rt_release(self);
    rt_release(hold);
    if (status && ts_status_code(status) != TS_ERR_NO_MEMORY) {
        status = ts_status_set_place(status, ev_place(node));
        ts_place at = ts_status_place(status), here = ev_place(node);
        if (here.line && (!ts_str_equal(at.file, here.file) || at.line != here.line))
            status = ts_status_context(status, "running line %d of %.*s", here.line,
                                       TS_STR_ARG(here.file));
    }
    return status;
}

ts_status ev_binding(evaluator *ev, ev_frame *frame, const ast_node *node, fe_binding *out,
                     rt_value *hold) {
    *hold = rt_none();
    *out = (fe_binding){.kind = FE_VALUE};
    if (node->kind == AST_NAME) {
        TS_TRY(ev_step(ev, node));
        return ev_load_name(ev, frame, node, out, hold);
    }
    if (node->kind == AST_ATTRIBUTE) {
        TS_TRY(ev_step(ev, node));
        fe_binding left;
        rt_value left_hold;
        ev->depth++;
        TS_TRY(ev_binding(ev, frame, node->left, &left, &left_hold));
        ev->depth--;
        if (left.kind == FE_VALUE) {
            ts_status status = ev_get_attribute(ev, left_hold, node->text, hold);
            rt_release(left_hold);
            TS_TRY(ts_status_set_place(status, ev_place(node)));
            *out = fe_binding_of_value(*hold);
            return NULL;
        }
        bool found = false;
        ts_status status = ev_binding_attribute(ev, left, node->text, &found, out, hold);
        rt_release(left_hold);
        if (!status && !found)
            status = ts_raise(
                "AttributeError",
                left.kind == FE_CLASS ? "type object '%.*s' has no attribute '%.*s'"
                                      : "module '%.*s' has no attribute '%.*s'",
                TS_STR_ARG(left.kind == FE_CLASS ? left.class_->bare_name : left.path),
                TS_STR_ARG(node->text));
        return ts_status_set_place(status, ev_place(node));
    }
    TS_TRY(ev_expression(ev, frame, node, hold));
    *out = fe_binding_of_value(*hold);
    return NULL;
}

ts_status ev_condition(evaluator *ev, ev_frame *frame, const ast_node *node, bool *out) {
    rt_value v;
    *out = false;
    TS_TRY(ev_expression(ev, frame, node, &v));
    ts_status status = ev_truth(ev, v, out);
    rt_release(v);
    return ts_status_set_place(status, ev_place(node));
}

/* ---- operators ---- */
static ts_status chain(evaluator *ev, ev_frame *frame, const ast_node *node, rt_value *out) {
    rt_value a;
    TS_TRY(ev_expression(ev, frame, node->list.items[0], &a));
    for (size_t i = 1; i < node->list.count; i++) {
        rt_value b, c = rt_none();
        ts_status status = ev_expression(ev, frame, node->list.items[i], &b);
        if (!status)
            status = ev_binary(ev, node->ops[i - 1], a, b, &c);
        rt_release(a);
        rt_release(b);
        TS_TRY(ts_status_set_place(status, ev_place(node)));
        a = c;
    }
    *out = a;
    return NULL;
}

static ts_status comparison(evaluator *ev, ev_frame *frame, const ast_node *node, rt_value *out) {
    rt_value a, b = rt_none();
    TS_TRY(ev_expression(ev, frame, node->list.items[0], &a));
    ts_status status = NULL;
    for (size_t i = 1; i < node->list.count; i++) {
        bool go = true;
        status = ev_expression(ev, frame, node->list.items[i], &b);
        if (!status)
            status = ev_compare(ev, node->ops[i - 1], a, b, out);
        if (!status && i + 1 < node->list.count) {
            status = ev_truth(ev, *out, &go);
            if (go)
                rt_assign(out, rt_none());
        }
        rt_release(a);
        a = b;
        b = rt_none();
        if (status || !go)
            break;
    }
    rt_release(a);
    if (status)
        rt_assign(out, rt_none());
    return ts_status_set_place(status, ev_place(node));
}

static ts_status boolean(evaluator *ev, ev_frame *frame, const ast_node *node, rt_value *out) {
    for (size_t i = 0; i < node->list.count; i++) {
        bool truth = false;
        rt_assign(out, rt_none());
        TS_TRY(ev_expression(ev, frame, node->list.items[i], out));
        if (i + 1 == node->list.count)
            return NULL;
        ts_status status = ev_truth(ev, *out, &truth);
        if (status) {
            rt_assign(out, rt_none());
            return ts_status_set_place(status, ev_place(node->list.items[i]));
        }
        if (truth == (node->op == AST_OR))
            return NULL;
    }
    return NULL;
}

static ts_status binary(evaluator *ev, ev_frame *frame, const ast_node *node, rt_value *out) {
    rt_value a, b;
    TS_TRY(ev_expression(ev, frame, node->left, &a));
    ts_status status = ev_expression(ev, frame, node->right, &b);
    if (!status) {
        status = ev_binary(ev, node->op, a, b, out);
        rt_release(b);
    }
    rt_release(a);
    return ts_status_set_place(status, ev_place(node));
}

static ts_status slice(evaluator *ev, ev_frame *frame, const ast_node *node, rt_value *out) {
    rt_value parts[3] = {rt_none(), rt_none(), rt_none()};
    const ast_node *nodes[3] = {node->left, node->right, node->third};
    ts_status status = NULL;
    for (int i = 0; i < 3 && !status; i++)
        if (nodes[i])
            status = ev_expression(ev, frame, nodes[i], &parts[i]);
    if (!status)
        status = ev_slice_make(parts[0], parts[1], parts[2], out);
    for (int i = 0; i < 3; i++)
        rt_release(parts[i]);
    return status;
}

static ts_status subscript(evaluator *ev, ev_frame *frame, const ast_node *node, rt_value *out) {
    fe_binding left;
    rt_value hold, index;
    TS_TRY(ev_binding(ev, frame, node->left, &left, &hold));
    if (left.kind == FE_NAME || (left.kind == FE_CLASS && left.class_->kind != RT_CLASS_ENUM)) {
        /* List[int] as a value: a type, whatever is in the brackets */
        rt_release(hold);
        return fe_binding_to_value(ev->fe, left, out);
    }
    ts_status status = ev_expression(ev, frame, node->right, &index);
    if (!status) {
        if (left.kind == FE_CLASS) {
            rt_value v;
            status = fe_binding_to_value(ev->fe, left, &v);
            rt_assign(&hold, status ? rt_none() : v);
        }
        if (!status)
            status = ev_get_item(ev, hold, index, out);
        rt_release(index);
    }
    rt_release(hold);
    return ts_status_set_place(status, ev_place(node));
}

static ts_status evaluate(evaluator *ev, ev_frame *frame, const ast_node *node, rt_value *out) {
    switch (node->kind) {
    case AST_NAME:
    case AST_ATTRIBUTE: {
        fe_binding b;
        rt_value hold;
        TS_TRY(ev_binding(ev, frame, node, &b, &hold));
        if (b.kind == FE_VALUE || !rt_is_none(hold)) {
            *out = hold;
            return NULL;
        }
        return fe_binding_to_value(ev->fe, b, out);
    }
    case AST_INT:
        if (node->is_big)
            return ts_status_set_place(
                ts_raise("OverflowError", "integer %.*s does not fit 64 bits",
                         TS_STR_ARG(node->text)),
                ev_place(node));
        *out = rt_int(node->integer);
        return NULL;
    case AST_FLOAT: *out = rt_float(node->number); return NULL;
    case AST_IMAGINARY: return rt_complex_make(0, node->number, out);
    case AST_STRING: return rt_str_make(node->text, out);
    case AST_FSTRING: {
        ts_buffer text = {0};
        ts_status status = fstring_text(ev, frame, node, &text);
        if (!status)
            status = rt_str_make((ts_str){text.data, text.length}, out);
        ts_buffer_deinit(&text);
        return status;
    }
    case AST_TRUE: *out = rt_bool(true); return NULL;
    case AST_FALSE: *out = rt_bool(false); return NULL;
    case AST_NONE: *out = rt_none(); return NULL;
    case AST_ELLIPSIS:
        return fe_binding_to_value(
            ev->fe, (fe_binding){.kind = FE_NAME, .path = TS_STR("builtins.Ellipsis")}, out);
    case AST_TUPLE:
    case AST_LIST:
    case AST_SET: return sequence(ev, frame, node, out);
    case AST_DICT: {
        rt_value d;
        TS_TRY(rt_dict_make(&d));
        ts_status status = dict_display(ev, frame, node, d);
        if (status)
            rt_release(d);
        else
            *out = d;
        return status;
    }
    case AST_UNARY: {
        rt_value a;
        TS_TRY(ev_expression(ev, frame, node->left, &a));
        ts_status status = ev_unary(ev, node->op, a, out);
        rt_release(a);
        return ts_status_set_place(status, ev_place(node));
    }
    case AST_BINARY: return binary(ev, frame, node, out);
    case AST_CHAIN: return chain(ev, frame, node, out);
    case AST_BOOLOP: return boolean(ev, frame, node, out);
    case AST_COMPARE: return comparison(ev, frame, node, out);
    case AST_CONDITIONAL: {
        bool test;
        TS_TRY(ev_condition(ev, frame, node->test, &test));
        return ev_expression(ev, frame, test ? node->left : node->right, out);
    }
    case AST_CALL: return call(ev, frame, node, out);
    case AST_SUBSCRIPT: return subscript(ev, frame, node, out);
    case AST_SLICE: return slice(ev, frame, node, out);
    case AST_LAMBDA: return ev_function_value(ev, frame, node, out);
    case AST_WALRUS: {
        TS_TRY(ev_expression(ev, frame, node->left, out));
        ev_frame *f = frame; /* in a comprehension it binds outside */
        while (f->outer)
            f = f->outer;
        return ev_store_name(ev, f, node->text, *out);
    }
    case AST_LIST_COMP:
    case AST_SET_COMP:
    case AST_DICT_COMP:
    case AST_GENERATOR: return comprehension(ev, frame, node, out);
    case AST_YIELD_EXPR: {
        ev_frame *f = frame;
        while (f->outer)
            f = f->outer;
        if (rt_is_none(f->yields))
            return ev_unsupported(node, "yield outside a function");
        rt_value v = rt_none(), all = rt_none();
        if (node->left)
            TS_TRY(ev_expression(ev, frame, node->left, &v));
        ts_status status = NULL;
        if (node->text.length) { /* yield from */
            status = ev_to_list(ev, v, &all);
            for (size_t i = 0; !status && i < all.as.list->count; i++)
                status = rt_list_append(f->yields.as.list, all.as.list->items[i]);
            rt_release(all);
        } else {
            status = rt_list_append(f->yields.as.list, v);
        }
        rt_release(v);
        return status;
    }
    case AST_AWAIT: return ev_unsupported(node, "await is not supported");
    case AST_STARRED: return ev_unsupported(node, "a starred expression is not allowed here");
    default: return ev_unsupported(node, "this expression is not supported at compile time");
    }
}

ts_status ev_expression(evaluator *ev, ev_frame *frame, const ast_node *node, rt_value *out) {
    *out = rt_none();
    TS_TRY(ev_step(ev, node));
    ev->depth++;
    TS_TRY(evaluate(ev, frame, node, out));
    ev->depth--;
    return NULL;
}

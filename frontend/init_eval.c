/* frontend/init_eval.c - the evaluator of scripts: names and statements.
 *
 * Module level and __init__ run here, dynamically typed, with a budget of steps and of depth, so
 * that no script hangs the compiler or runs it out of stack.
 * Long: the evaluator proper is one recursion over the kinds of statement. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "frontend/init_eval_internal.h"

#include "runtime/base/stack.h"

static void cleanup(struct fe_context *fe) {
    evaluator *ev = fe->script;
    for (size_t i = 0; i < ev->scope_count; i++) {
        fe_map *names = &ev->scopes[i]->names;
        for (size_t k = 0; k < names->count; k++) {
            fe_binding *b = names->values[k];
            rt_value old = b->kind == FE_VALUE ? b->value : rt_none();
            *b = (fe_binding){.kind = FE_UNBOUND};
            rt_release(old);
        }
    }
    ev->scope_count = 0;
    rt_assign(&ev->raised, rt_none());
}

/* What the evaluator puts into a scope is released with the context. */
void ev_scope_track(evaluator *ev, fe_scope *scope) {
    TS_APPEND(ev->arena, ev->scopes, ev->scope_count, ev->scope_capacity, scope);
}

fe_scope *ev_scope_make(evaluator *ev, fe_scope *parent, const fe_source *source) {
    fe_scope *scope = fe_scope_make(ev->arena, parent, source, (ts_str){0});
    ev_scope_track(ev, scope);
    return scope;
}

evaluator *ev_of(struct fe_context *fe) {
    if (!fe->script) {
        evaluator *ev = TS_NEW(fe->arena, evaluator);
        ev->fe = fe;
        ev->arena = fe->arena;
        ev->steps_left = EV_MAX_STEPS;
        ev->items_left = EV_MAX_ITEMS;
        fe->script = ev;
        if (fe->cleanup_count < sizeof fe->cleanup / sizeof *fe->cleanup)
            fe->cleanup[fe->cleanup_count++] = cleanup;
    }
    return fe->script;
}

ts_place ev_place(const ast_node *node) {
    return node && node->source && !node->source->is_library ? ast_place(node) : (ts_place){0};
}

ts_status ev_unsupported(const ast_node *node, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return ts_error_at(TS_ERR_UNSUPPORTED, ev_place(node), "%s", text);
}

ts_status ev_step(evaluator *ev, const ast_node *node) {
    if (ev->steps_left-- <= 0) {
        ev->steps_left = 0;
        return ev_unsupported(node,
                              "the script does not end within %lld steps at compile time: "
                              "module level and __init__ run when the model is compiled",
                              (long long)EV_MAX_STEPS);
    }
    if (ev->depth > EV_MAX_DEPTH || TS_STACK_IS_LOW(ev->fe->stack_limit))
        return ts_status_set_place(
            ts_raise("RecursionError", "maximum recursion depth exceeded"), ev_place(node));
    return NULL;
}

ts_str ev_pointer_key(evaluator *ev, const void *pointer, char buffer[sizeof(void *)]) {
    (void)ev;
    memcpy(buffer, &pointer, sizeof pointer);
    return (ts_str){buffer, sizeof pointer};
}

/* ---- what a function holds ---- */

static void scan_list(evaluator *ev, ev_function_info *info, const ast_list *list);

/* Depth is the tree's. Does not enter nested functions. */
static void scan(evaluator *ev, ev_function_info *info, const ast_node *node) {
    if (!node)
        return;
    switch (node->kind) {
    case AST_FUNCTION:
    case AST_LAMBDA:
    case AST_CLASS:
        info->is_captured = true;
        return;
    case AST_YIELD_EXPR:
        info->is_generator = true;
        break;
    case AST_GLOBAL:
        for (size_t i = 0; i < node->list.count; i++)
            TS_APPEND(ev->arena, info->globals, info->global_count, info->global_capacity,
                      node->list.items[i]->text);
        return;
    case AST_NONLOCAL:
        for (size_t i = 0; i < node->list.count; i++)
            TS_APPEND(ev->arena, info->nonlocals, info->nonlocal_count, info->nonlocal_capacity,
                      node->list.items[i]->text);
        return;
    default:
        break;
    }
    scan(ev, info, node->left);
    scan(ev, info, node->right);
    scan(ev, info, node->third);
    scan(ev, info, node->test);
    scan_list(ev, info, &node->list);
    scan_list(ev, info, &node->body);
    scan_list(ev, info, &node->orelse);
    scan_list(ev, info, &node->finally_body);
}

static void scan_list(evaluator *ev, ev_function_info *info, const ast_list *list) {
    for (size_t i = 0; i < list->count; i++)
        scan(ev, info, list->items[i]);
}

const ev_function_info *ev_info(evaluator *ev, const ast_node *node) {
    char key[sizeof(void *)];
    ts_str k = ev_pointer_key(ev, node, key);
    ev_function_info *info = fe_map_get(&ev->infos, k);
    if (info)
        return info;
    info = TS_NEW(ev->arena, ev_function_info);
    if (node->kind == AST_FUNCTION) {
        scan_list(ev, info, &node->body);
    } else { /* LAMBDA, comprehensions */
        scan(ev, info, node->left);
        scan(ev, info, node->right);
        if (node->kind != AST_LAMBDA)
            scan_list(ev, info, &node->list);
    }
    fe_map_set(ev->arena, &ev->infos, ts_arena_str(ev->arena, k), info);
    return info;
}

/* ---- names ---- */

void ev_frame_deinit(ev_frame *frame) {
    for (size_t i = 0; i < frame->count; i++)
        rt_release(frame->values[i]);
    free(frame->names);
    free(frame->values);
    rt_release(frame->result);
    rt_release(frame->yields);
    *frame = (ev_frame){0};
}

static rt_value *frame_slot(ev_frame *frame, ts_str name) {
    for (size_t i = 0; i < frame->count; i++)
        if (ts_str_equal(frame->names[i], name))
            return &frame->values[i];
    return NULL;
}

ts_status ev_load_name(evaluator *ev, ev_frame *frame, const ast_node *node, fe_binding *out,
                       rt_value *hold) {
    *hold = rt_none();
    *out = (fe_binding){.kind = FE_VALUE};
    ts_str name = node->text;
    ev_frame *f = frame;
    for (;; f = f->outer) {
        rt_value *slot = f->scope ? NULL : frame_slot(f, name);
        if (slot) {
            *hold = rt_retain(*slot);
            *out = fe_binding_of_value(*slot);
            return NULL;
        }
        if (f->scope) {
            fe_binding *b = fe_map_get(&f->scope->names, name);
            if (b && b->kind != FE_UNBOUND) {
                *out = *b;
                if (b->kind == FE_VALUE)
                    *hold = rt_retain(b->value);
                return NULL;
            }
        }
        if (!f->outer)
            break;
    }
    fe_binding b = fe_scope_lookup(ev->fe, f->scope ? f->scope : f->globals, name);
    if (b.kind == FE_UNBOUND)
        return ts_status_set_place(
            ts_raise("NameError", "name '%.*s' is not defined", TS_STR_ARG(name)),
            ev_place(node));
    if (b.kind == FE_VALUE)
        *hold = rt_retain(b.value);
    *out = b;
    return NULL;
}

/* The binding owns a reference where it is a value; functions and classes live in the arena. */
void ev_scope_assign(evaluator *ev, fe_scope *scope, ts_str name, rt_value value) {
    fe_binding b = fe_binding_of_value(value);
    fe_binding *old = fe_map_get(&scope->names, name);
    rt_value before = old && old->kind == FE_VALUE ? old->value : rt_none();
    if (b.kind == FE_VALUE)
        rt_retain(b.value);
    if (old)
        *old = b;
    else
        fe_scope_set(ev->arena, scope, name, b);
    rt_release(before);
}

static bool is_listed(const ts_str *names, size_t count, ts_str name) {
    for (size_t i = 0; i < count; i++)
        if (ts_str_equal(names[i], name))
            return true;
    return false;
}

static ts_status frame_assign(ev_frame *frame, ts_str name, rt_value value) {
    rt_value *slot = frame_slot(frame, name);
    if (slot) {
        rt_assign(slot, rt_retain(value));
        return NULL;
    }
    if (frame->count == frame->capacity) {
        size_t capacity = frame->capacity ? frame->capacity * 2 : 8;
        ts_str *names = realloc(frame->names, capacity * sizeof *names);
        if (!names)
            return ts_no_memory();
        frame->names = names;
        rt_value *values = realloc(frame->values, capacity * sizeof *values);
        if (!values)
            return ts_no_memory();
        frame->values = values;
        frame->capacity = capacity;
    }
    frame->names[frame->count] = name;
    frame->values[frame->count++] = rt_retain(value);
    return NULL;
}

ts_status ev_store_name(evaluator *ev, ev_frame *frame, ts_str name, rt_value value) {
    if (frame->info && is_listed(frame->info->globals, frame->info->global_count, name)) {
        ev_scope_assign(ev, frame->module, name, value);
        return NULL;
    }
    if (frame->info && is_listed(frame->info->nonlocals, frame->info->nonlocal_count, name)) {
        for (fe_scope *s = frame->scope ? frame->scope->parent : frame->globals; s; s = s->parent)
            if (fe_map_get(&s->names, name)) {
                ev_scope_assign(ev, s, name, value);
                return NULL;
            }
        return ts_raise("NameError", "name '%.*s' is not defined", TS_STR_ARG(name));
    }
    if (frame->scope) {
        ev_scope_assign(ev, frame->scope, name, value);
        return NULL;
    }
    return frame_assign(frame, name, value);
}

static ts_status delete_name(ev_frame *frame, const ast_node *node) {
    if (frame->scope) {
        fe_binding *b = fe_map_get(&frame->scope->names, node->text);
        if (b && b->kind != FE_UNBOUND) {
            rt_value old = b->kind == FE_VALUE ? b->value : rt_none();
            *b = (fe_binding){.kind = FE_UNBOUND};
            rt_release(old);
            return NULL;
        }
    } else {
        for (size_t i = 0; i < frame->count; i++)
            if (ts_str_equal(frame->names[i], node->text)) {
                rt_release(frame->values[i]);
                frame->count--;
                frame->names[i] = frame->names[frame->count];
                frame->values[i] = frame->values[frame->count];
                return NULL;
            }
    }
    return ts_status_set_place(
        ts_raise("NameError", "name '%.*s' is not defined", TS_STR_ARG(node->text)),
        ev_place(node));
}

/* ---- assignment ---- */

static ts_status unpack(evaluator *ev, ev_frame *frame, const ast_node *target, rt_value value) {
    rt_value list;
    ts_status status = ev_to_list(ev, value, &list);
    if (status) {
        if (ts_str_is(ts_str_of(ts_status_exception(status)), "TypeError")) {
            ts_status_release(status);
            status = ts_raise("TypeError", "cannot unpack non-iterable %.*s object",
                              TS_STR_ARG(ev_type_name(value)));
        }
        return ts_status_set_place(status, ev_place(target));
    }
    size_t count, wanted = target->list.count, star = wanted;
    rt_value *items = ev_items(list, &count);
    for (size_t i = 0; i < wanted; i++)
        if (target->list.items[i]->kind == AST_STARRED)
            star = i;
    if (star < wanted ? count + 1 < wanted : count != wanted) {
        if (count > wanted)
            status = ts_raise("ValueError", "too many values to unpack (expected %zu)", wanted);
        else
            status = ts_raise("ValueError",
                              "not enough values to unpack (expected %s%zu, got %zu)",
                              star < wanted ? "at least " : "", star < wanted ? wanted - 1 : wanted,
                              count);
        status = ts_status_set_place(status, ev_place(target));
    }
    for (size_t i = 0, at = 0; i < wanted && !status; i++) {
        if (i != star) {
            status = ev_assign(ev, frame, target->list.items[i], items[at++]);
            continue;
        }
        size_t rest = count + 1 - wanted;
        rt_value middle;
        status = rt_list_make(rest, &middle);
        for (size_t k = 0; k < rest && !status; k++)
            status = rt_list_append(middle.as.list, items[at++]);
        if (!status)
            status = ev_assign(ev, frame, target->list.items[i]->left, middle);
        rt_release(middle);
    }
    rt_release(list);
    return status;
}

ts_status ev_assign(evaluator *ev, ev_frame *frame, const ast_node *target, rt_value value) {
    switch (target->kind) {
    case AST_NAME:
        return ts_status_set_place(ev_store_name(ev, frame, target->text, value),
                                   ev_place(target));
    case AST_TUPLE:
    case AST_LIST:
        return unpack(ev, frame, target, value);
    case AST_ATTRIBUTE: {
        rt_value object;
        TS_TRY(ev_expression(ev, frame, target->left, &object));
        ts_status status = ev_set_attribute(ev, object, target->text, value);
        rt_release(object);
        return ts_status_set_place(status, ev_place(target));
    }
    case AST_SUBSCRIPT: {
        rt_value container, index = rt_none();
        ts_status status = ev_expression(ev, frame, target->left, &container);
        if (!status)
            status = ev_expression(ev, frame, target->right, &index);
        if (!status)
            status = ev_set_item(ev, container, index, value);
        rt_release(container);
        rt_release(index);
        return ts_status_set_place(status, ev_place(target));
    }
    default:
        return ev_unsupported(target, "cannot assign to this");
    }
}

static ts_status augmented(evaluator *ev, ev_frame *frame, const ast_node *node) {
    const ast_node *target = node->left;
    rt_value holder = rt_none(), index = rt_none(), old = rt_none(), right = rt_none(),
             result = rt_none();
    ts_status status = NULL;
    if (target->kind == AST_NAME) {
        TS_TRY_OR(ev_expression(ev, frame, target, &old), done);
    } else {
        TS_TRY_OR(ev_expression(ev, frame, target->left, &holder), done);
        if (target->kind == AST_ATTRIBUTE) {
            TS_TRY_OR(ev_get_attribute(ev, holder, target->text, &old), done);
        } else {
            TS_TRY_OR(ev_expression(ev, frame, target->right, &index), done);
            TS_TRY_OR(ev_get_item(ev, holder, index, &old), done);
        }
    }
    TS_TRY_OR(ev_expression(ev, frame, node->right, &right), done);
    TS_TRY_OR(ev_augmented(ev, node->op, old, right, &result), done);
    if (target->kind == AST_NAME)
        status = ev_store_name(ev, frame, target->text, result);
    else if (target->kind == AST_ATTRIBUTE)
        status = ev_set_attribute(ev, holder, target->text, result);
    else
        status = ev_set_item(ev, holder, index, result);
done:
    rt_release(holder);
    rt_release(index);
    rt_release(old);
    rt_release(right);
    rt_release(result);
    return ts_status_set_place(status, ev_place(node));
}

static ts_status annotated(evaluator *ev, ev_frame *frame, const ast_node *node) {
    const ast_node *target = node->left;
    rt_value value = rt_none();
    if (node->right) {
        TS_TRY(ev_expression(ev, frame, node->right, &value));
        ts_status status = ev_assign(ev, frame, target, value);
        rt_release(value);
        TS_TRY(status);
    }
    if (target->kind != AST_ATTRIBUTE)
        return NULL;
    rt_value object;
    TS_TRY(ev_expression(ev, frame, target->left, &object));
    ev_instance *instance = ev_instance_of(object);
    int64_t field = instance ? ev_field_find(instance, target->text) : -1;
    if (field >= 0) {
        instance->fields[field].annotation = node->third;
        instance->fields[field].scope = frame->scope ? frame->scope : frame->globals;
    }
    rt_release(object);
    return NULL;
}

/* ---- imports ---- */

/* ---- loops ---- */

static ts_status loop_body(evaluator *ev, ev_frame *frame, const ast_node *node, bool *out_stop,
                           ev_flow *out) {
    ev_flow flow = EV_NEXT;
    TS_TRY(ev_block(ev, frame, &node->body, &flow));
    *out_stop = flow == EV_BREAK || flow == EV_RETURN;
    if (flow == EV_RETURN)
        *out = EV_RETURN;
    return NULL;
}

static ts_status for_statement(evaluator *ev, ev_frame *frame, const ast_node *node,
                               ev_flow *out) {
    rt_value source, list = rt_none();
    TS_TRY(ev_expression(ev, frame, node->right, &source));
    ts_status status = NULL;
    bool stop = false;
    const ev_range *range = ev_as_range(source);
    ev_iterator *iterator = ev_as_iterator(source);
    if (range) {
        for (int64_t i = 0; i < range->count && !stop; i++) {
            TS_TRY_OR(ev_step(ev, node), done);
            TS_TRY_OR(ev_assign(ev, frame, node->left, rt_int(range->start + i * range->step)), done);
            TS_TRY_OR(loop_body(ev, frame, node, &stop, out), done);
        }
    } else if (iterator) {
        while (iterator->position < iterator->list.as.list->count && !stop) {
            TS_TRY_OR(ev_step(ev, node), done);
            rt_value item = rt_retain(iterator->list.as.list->items[iterator->position++]);
            status = ev_assign(ev, frame, node->left, item);
            rt_release(item);
            TS_TRY_OR(status, done);
            TS_TRY_OR(loop_body(ev, frame, node, &stop, out), done);
        }
    } else {
        status = ts_status_set_place(ev_to_list(ev, source, &list), ev_place(node->right));
        if (status)
            goto done;
        /* A list that grows meanwhile is walked to its new end, as in Python. */
        for (size_t i = 0; i < list.as.list->count && !stop; i++) {
            TS_TRY_OR(ev_step(ev, node), done);
            rt_value item = rt_retain(list.as.list->items[i]);
            status = ev_assign(ev, frame, node->left, item);
            rt_release(item);
            TS_TRY_OR(status, done);
            TS_TRY_OR(loop_body(ev, frame, node, &stop, out), done);
        }
    }
    if (!stop)
        status = ev_block(ev, frame, &node->orelse, out);
done:
    rt_release(list);
    rt_release(source);
    return status;
}

static ts_status while_statement(evaluator *ev, ev_frame *frame, const ast_node *node,
                                 ev_flow *out) {
    bool stop = false, go = true;
    while (!stop) {
        TS_TRY(ev_step(ev, node));
        TS_TRY(ev_condition(ev, frame, node->test, &go));
        if (!go)
            return ev_block(ev, frame, &node->orelse, out);
        TS_TRY(loop_body(ev, frame, node, &stop, out));
    }
    return NULL;
}

/* ---- statements ---- */

static ts_status definition(evaluator *ev, ev_frame *frame, const ast_node *node) {
    rt_value v;
    if (node->kind == AST_FUNCTION)
        TS_TRY(ev_function_value(ev, frame, node, &v));
    else
        TS_TRY(ev_class_statement(ev, frame, node, &v));
    ts_status status = ev_decorate(ev, frame, &node->decorators, &v);
    if (!status)
        status = ev_store_name(ev, frame, node->text, v);
    rt_release(v);
    return ts_status_set_place(status, ev_place(node));
}

static ts_status statement(evaluator *ev, ev_frame *frame, const ast_node *node, ev_flow *out) {
    rt_value v = rt_none();
    ts_status status = NULL;
    bool test = false;
    TS_TRY(ev_step(ev, node));
    switch (node->kind) {
    case AST_EXPR_STMT:
        if (node->left->kind == AST_STRING)
            return NULL; /* a docstring */
        status = ev_expression(ev, frame, node->left, &v);
        rt_release(v);
        return status;
    case AST_ASSIGN:
        TS_TRY(ev_expression(ev, frame, node->right, &v));
        for (size_t i = 0; i < node->list.count && !status; i++)
            status = ev_assign(ev, frame, node->list.items[i], v);
        rt_release(v);
        return status;
    case AST_ANN_ASSIGN: return annotated(ev, frame, node);
    case AST_AUG_ASSIGN: return augmented(ev, frame, node);
    case AST_RETURN:
        if (!frame->function)
            return ev_unsupported(node, "return outside a function");
        if (node->left)
            TS_TRY(ev_expression(ev, frame, node->left, &v));
        rt_assign(&frame->result, v);
        *out = EV_RETURN;
        return NULL;
    case AST_IF:
        TS_TRY(ev_condition(ev, frame, node->test, &test));
        return ev_block(ev, frame, test ? &node->body : &node->orelse, out);
    case AST_WHILE: return while_statement(ev, frame, node, out);
    case AST_FOR: return for_statement(ev, frame, node, out);
    case AST_BREAK: *out = EV_BREAK; return NULL;
    case AST_CONTINUE: *out = EV_CONTINUE; return NULL;
    case AST_PASS: return NULL;
    case AST_ASSERT:
        TS_TRY(ev_condition(ev, frame, node->test, &test));
        if (test)
            return NULL;
        if (node->right) {
            rt_value text;
            TS_TRY(ev_expression(ev, frame, node->right, &v));
            status = rt_to_str(v, &text);
            rt_release(v);
            TS_TRY(status);
            status = ts_raise_str(TS_STR("AssertionError"), ev_text(text));
            rt_release(text);
        } else {
            status = ts_raise("AssertionError", "%s", "");
        }
        return ts_status_set_place(status, ev_place(node));
    case AST_RAISE: return ts_status_set_place(ev_raise_statement(ev, frame, node), ev_place(node));
    case AST_WITH: return ev_with_statement(ev, frame, node, 0, out);
    case AST_DELETE:
        for (size_t i = 0; i < node->list.count && !status; i++) {
            const ast_node *target = node->list.items[i];
            if (target->kind == AST_NAME) {
                status = delete_name(frame, target);
            } else if (target->kind == AST_ATTRIBUTE) {
                TS_TRY(ev_expression(ev, frame, target->left, &v));
                status = ev_delete_attribute(ev, v, target->text);
            } else if (target->kind == AST_SUBSCRIPT) {
                rt_value index = rt_none();
                TS_TRY(ev_expression(ev, frame, target->left, &v));
                status = ev_expression(ev, frame, target->right, &index);
                if (!status)
                    status = ev_delete_item(ev, v, index);
                rt_release(index);
            } else {
                status = ev_unsupported(target, "cannot delete this");
            }
            rt_assign(&v, rt_none());
        }
        return ts_status_set_place(status, ev_place(node));
    case AST_GLOBAL:
    case AST_NONLOCAL: return NULL;
    case AST_TRY: return ev_try_statement(ev, frame, node, out);
    case AST_FUNCTION:
    case AST_CLASS: return definition(ev, frame, node);
    case AST_IMPORT: return ev_import(ev, frame, node);
    case AST_IMPORT_FROM: return ev_import_from(ev, frame, node);
    default: return ev_unsupported(node, "this statement is not supported");
    }
}

ts_status ev_block(evaluator *ev, ev_frame *frame, const ast_list *body, ev_flow *out) {
    *out = EV_NEXT;
    ev->depth++;
    for (size_t i = 0; i < body->count && *out == EV_NEXT; i++)
        TS_TRY(ts_status_set_place(statement(ev, frame, body->items[i], out),
                                   ev_place(body->items[i])));
    ev->depth--;
    return NULL;
}

/* ---- a single expression for the rest of the front end ---- */

bool fe_evaluate_expression(struct fe_context *fe, fe_scope *scope, const ast_node *node,
                            rt_value *out) {
    evaluator *ev = ev_of(fe);
    ev_frame frame = {.scope = ev_scope_make(ev, scope, node->source),
                      .globals = scope,
                      .module = scope};
    int depth = ev->depth;
    int64_t steps = ev->steps_left;
    ev->steps_left = EV_MAX_STEPS;
    *out = rt_none();
    ts_status status = ev_expression(ev, &frame, node, out);
    ev->depth = depth;
    ev->steps_left = steps;
    ev_frame_deinit(&frame);
    if (!status)
        return true;
    const char *type = ts_status_exception(status);
    fe_report(fe->diagnostics, FE_ERROR, ts_status_code(status), node, "%s%s%s", type,
              *type ? ": " : "", ts_status_message(status));
    ts_status_release(status);
    return false;
}

/* frontend/emit_stmt.c - statements but for loops and assignments. */
#include "frontend/emit_internal.h"

#include "runtime/base/stack.h"
#include "frontend/rewrite.h"

enum { MAX_DEPTH = 1500 };

void em_set_flag(emitter *E, size_t flag, bool value) {
    E->env.slots[flag] = (em_slot){.is_set = true, .v = em_value(ir_build_bool(&E->b, value))};
}

void em_reset_flags(emitter *E) {
    for (size_t i = 0; i < EM_SLOT_FIRST; i++)
        E->env.slots[i] = (em_slot){0};
}

bool em_flag_is_dynamic(emitter *E, size_t flag) {
    bool known;
    em_slot *s = &E->env.slots[flag];
    return s->is_set && !ir_const_bool(s->v.value, &known);
}

void em_give_result(emitter *E, ir_value *v) {
    E->env.slots[EM_SLOT_RESULT] = (em_slot){.is_set = true, .v = em_value(v)};
    em_set_flag(E, EM_SLOT_EXITED, true);
    if (E->loop_depth) {
        em_set_flag(E, EM_SLOT_BREAK, true);
        em_set_flag(E, EM_SLOT_RETURNED, true);
    }
    E->env.state = EM_EXITED;
}

/* Whether what the function returns leaves the program: there a tuple of unknown length must be one. */
static bool makes_entry(const emitter *E) {
    if (!E->function || (E->function->node->source && E->function->node->source->is_archive))
        return false;
    const fe_options *options = E->fe->options;
    bool is_named = !options->entry_count && ts_str_is(E->function->bare_name, "forward");
    for (size_t i = 0; i < options->entry_count && !is_named; i++)
        is_named = ts_str_equal(options->entries[i], E->function->bare_name);
    if (!is_named || !E->function->owner)
        return is_named;
    rt_value root = E->m->root;
    return E->f->body->parameter_count && root.tag == RT_TAG_OBJECT &&
           E->f->body->parameters[0]->type->class_ == root.as.object->class_->info;
}

/* A list that stands for a tuple is one for the caller, too. */
static ir_value *returned(emitter *E, const ast_node *value) {
    em v = em_expression(E, value, E->declared_return);
    if (E->function && v.kind == EM_VALUE) {
        E->function->gives_tuple |= v.is_tuple;
        E->function->gives_size |= v.is_size;
        E->function->gives_list |= !v.is_tuple && !v.is_size;
    }
    return !E->declared_return && makes_entry(E) ? em_as_python(E, v, value) : em_ir(E, v, value, E->declared_return);
}

/* A tensor where a number is declared, and the other way: Python hands on what there is, so neither is converted. */
static bool is_other_kind(const ir_type *from, const ir_type *want) {
    from = from->kind == IR_OPTIONAL ? from->args[0] : from;
    want = want->kind == IR_OPTIONAL ? want->args[0] : want;
    if (from->kind == IR_TUPLE && want->kind == IR_TUPLE && from->arg_count == want->arg_count)
        for (size_t i = 0; i < from->arg_count; i++)
            if (is_other_kind(from->args[i], want->args[i]))
                return true;
    return (from->kind == IR_TENSOR && em_is_number(want)) || (em_is_number(from) && want->kind == IR_TENSOR);
}

void em_return_value(emitter *E, const ast_node *value, const ast_node *node) {
    ir_value *v = value ? returned(E, value) : ir_build_none(&E->b);
    if (v && E->declared_return && em_is_script(node) && is_other_kind(v->type, E->declared_return)) {
        EM_ERR(E, value ? value : node, "expected %s for the returned value, found %s", em_type_text(E, E->declared_return),
               em_type_text(E, v->type));
        v = NULL;
    } else if (v && E->declared_return)
        v = em_coerce(E, v, E->declared_return, 0, value ? value : node, "the returned value");
    if (!v && em_is_guessing(E) && !E->declared_return) {
        E->env.state = EM_UNREACHABLE;
        return;
    }
    if (!v)
        v = em_uninitialized(E, E->declared_return ? E->declared_return : em_simple(E, IR_NONE));
    em_give_result(E, v);
}

/* ---- leaving ---- */

static bool has_break(const ast_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        const ast_node *s = list->items[i];
        if (s->kind == AST_BREAK)
            return true;
        if (s->kind == AST_WHILE || s->kind == AST_FOR) {
            if (has_break(&s->orelse))
                return true;
            continue;
        }
        if (s->kind == AST_FUNCTION || s->kind == AST_CLASS)
            continue;
        if (has_break(&s->body) || has_break(&s->orelse) || has_break(&s->finally_body))
            return true;
        for (size_t k = 0; s->kind == AST_TRY && k < s->list.count; k++)
            if (has_break(&s->list.items[k]->body))
                return true;
    }
    return false;
}

bool em_is_endless(const ast_node *loop) {
    return loop->kind == AST_WHILE && !has_break(&loop->body) &&
           (loop->test->kind == AST_TRUE || (loop->test->kind == AST_INT && loop->test->integer));
}

bool em_always_leaves(const ast_list *list, bool *out_exits) {
    for (size_t i = 0; i < list->count; i++) {
        const ast_node *s = list->items[i];
        bool a = false, b = false;
        switch (s->kind) {
        case AST_RETURN:
        case AST_BREAK:
        case AST_CONTINUE:
            *out_exits = true;
            return true;
        case AST_RAISE:
            return true;
        case AST_IF:
            if (em_always_leaves(&s->body, &a) && em_always_leaves(&s->orelse, &b)) {
                *out_exits = *out_exits || a || b;
                return true;
            }
            break;
        case AST_WITH:
            if (em_always_leaves(&s->body, &a)) {
                *out_exits = *out_exits || a;
                return true;
            }
            break;
        case AST_WHILE:
            if (em_is_endless(s)) {
                *out_exits = true;
                return true;
            }
            break;
        default:
            break;
        }
    }
    return false;
}

/* ---- if ---- */

static uint32_t end_of(const ast_node *node) { return node->offset + node->length; }

/* An arm and what follows the if, as one list: an elif that always leaves takes what follows into its own
 * other arm, with all that is known there. */
static void arm_statements(emitter *E, const ast_list *arm, const ast_list *rest, size_t next) {
    if (!rest) {
        em_statements(E, arm, 0);
        return;
    }
    ast_list all = {.count = arm->count + rest->count - next};
    all.items = TS_NEW_ARRAY(E->arena, ast_node *, all.count + 1);
    if (arm->count)
        memcpy(all.items, arm->items, arm->count * sizeof *all.items);
    memcpy(all.items + arm->count, rest->items + next, (rest->count - next) * sizeof *all.items);
    em_statements(E, &all, 0);
}

/* Emits the if; where one arm always leaves, the statements after it go into the other, so that
 * they need no flag. True: they are done. */
static bool emit_if(emitter *E, const ast_node *node, const ast_list *list, size_t next) {
    em_condition c = em_condition_of(E, node->test);
    if (c.known >= 0) {
        em_apply_facts(E, c.known ? &c.if_true : &c.if_false);
        em_statements(E, c.known ? &node->body : &node->orelse, 0);
        return false;
    }
    if (!c.value)
        return false;
    bool exits_a = false, exits_b = false;
    bool leaves_a = em_always_leaves(&node->body, &exits_a);
    bool leaves_b = em_always_leaves(&node->orelse, &exits_b);
    bool rest_in_b = leaves_a && exits_a && !leaves_b && next < list->count;
    bool rest_in_a = leaves_b && exits_b && !leaves_a && next < list->count;
    em_place(E, node);
    em_env before = em_env_copy(E);
    ir_op *op = ir_build_if(&E->b, c.value);
    ir_block *here = em_enter(E, op->regions[0]);
    em_apply_facts(E, &c.if_true);
    arm_statements(E, &node->body, rest_in_a ? list : NULL, next);
    em_branch a = {.block = E->b.block, .env = E->env};
    em_enter(E, op->regions[1]);
    E->env = before;
    E->env = em_env_copy(E);
    em_apply_facts(E, &c.if_false);
    arm_statements(E, &node->orelse, rest_in_b ? list : NULL, next);
    em_branch b = {.block = E->b.block, .env = E->env};
    em_leave(E, here);
    bool rest = rest_in_a || rest_in_b;
    em_merge(E, op, &before, &a, &b, end_of(rest ? list->items[list->count - 1] : node));
    em_branches_release(E, &before, &a, &b);
    return rest;
}

/* What follows a statement that may have left: under the flag's negation. */
static void rest_if_live(emitter *E, const ast_list *list, size_t from) {
    em_env before = em_env_copy(E);
    ir_op *op = ir_build_if(&E->b, E->env.slots[EM_SLOT_EXITED].v.value);
    em_branch a = {.block = op->regions[0], .env = em_env_copy(E)};
    ir_block *here = em_enter(E, op->regions[0]);
    a.env.slots[EM_SLOT_EXITED].v = em_value(ir_build_bool(&E->b, true));
    a.env.state = EM_EXITED;
    em_enter(E, op->regions[1]);
    em_reset_flags(E);
    em_statements(E, list, from);
    em_branch b = {.block = E->b.block, .env = E->env};
    em_leave(E, here);
    em_merge(E, op, &before, &a, &b, end_of(list->items[list->count - 1]));
    em_branches_release(E, &before, &a, &b);
}

/* ---- raise, assert ---- */

void em_raise_named(emitter *E, ts_str exception, ir_value *message) {
    ir_op *op = ir_build_op(&E->b, IR_OP_RAISE, &message, 1, NULL, 0);
    op->name = exception;
    E->env.state = EM_UNREACHABLE;
}

void em_raise(emitter *E, const ast_node *node) {
    if (!node->left) {
        if (E->handling.exception)
            em_raise_again(E, E->handling);
        else
            em_raise_named(E, TS_STR("RuntimeError"),
                           ir_build_str(&E->b, TS_STR("No active exception to reraise")));
        return;
    }
    em v = em_expression(E, node->left, NULL);
    if (v.kind == EM_BINDING && v.binding->kind == FE_CLASS &&
        v.binding->class_->kind == RT_CLASS_EXCEPTION)
        v = em_construct(E, v.binding->class_, &(em_arguments){0}, node->left);
    if (v.kind == EM_ERROR)
        return;
    ir_value *cause = node->right && em_is_any_exception(v) ? em_cause(E, node->right) : NULL;
    if (cause) {
        ir_value *text = em_exception_text(E, v, node);
        if (text)
            em_note_cause(E, em_exception_name(E, v), text, cause);
    }
    if (v.kind == EM_VALUE && em_is_exception(v.value->type)) {
        em_place(E, node);
        em_raise_object(E, v.value, node);
        return;
    }
    if (v.kind != EM_EXCEPTION) {
        ir_value *found = v.kind == EM_VALUE ? v.value : NULL;
        EM_ERR(E, node->left, "expected an exception to raise%s%s", found ? ", found " : "",
               found ? em_type_text(E, found->type) : "");
        return;
    }
    em_place(E, node);
    if (v.keys) {
        em_raise_again(E, (em_handling){v.keys[0], v.value, E->handling.object});
        return;
    }
    ir_value *message = v.value ? v.value : ir_build_str(&E->b, (ts_str){"", 0});
    em_note_arguments(E, message, v.items, v.count, node);
    em_raise_named(E, v.binding->class_->bare_name, message);
}

static void emit_assert(emitter *E, const ast_node *node) {
    em_condition c = em_condition_of(E, node->test);
    if (c.known == 1 || (c.known < 0 && !c.value)) {
        em_apply_facts(E, &c.if_true);
        return;
    }
    em_place(E, node);
    em_env before = em_env_copy(E);
    ir_op *op = NULL;
    ir_block *here = E->b.block;
    if (c.known < 0) {
        op = ir_build_if(&E->b, c.value);
        em_enter(E, op->regions[1]);
    }
    em_apply_facts(E, &c.if_false);
    em given = node->right ? em_expression(E, node->right, NULL) : em_error();
    ir_value *message = node->right ? em_to_str(E, given, node->right) : NULL;
    if (message)
        em_note_arguments(E, message, &given, 1, node);
    else
        message = ir_build_str(&E->b, (ts_str){"", 0});
    em_place(E, node);
    em_raise_named(E, TS_STR("AssertionError"), message);
    if (!op)
        return;
    em_branch b = {.block = E->b.block, .env = E->env};
    em_enter(E, op->regions[0]);
    E->env = before;
    E->env = em_env_copy(E);
    em_apply_facts(E, &c.if_true);
    em_branch a = {.block = E->b.block, .env = E->env};
    em_leave(E, here);
    em_merge(E, op, &before, &a, &b, end_of(node));
    em_branches_release(E, &before, &a, &b);
}

/* ---- with ---- */

static bool is_named(em v, const char *path) {
    return v.kind == EM_BINDING && v.binding->kind == FE_NAME && ts_str_is(v.binding->path, path);
}

/* The mode to go back to; NULL: another context. */
static ir_value *open_grad_mode(emitter *E, const ast_node *context) {
    if (context->kind != AST_CALL)
        return NULL;
    fe_binding b = fe_resolve_dotted(E->fe, E->scope, context->left);
    em callee = {.kind = EM_BINDING, .binding = &b};
    ir_value *mode = NULL;
    if (is_named(callee, "torch.no_grad") || is_named(callee, "torch.inference_mode") ||
        is_named(callee, "torch.autograd.no_grad"))
        mode = ir_build_bool(&E->b, false);
    else if (is_named(callee, "torch.enable_grad") || is_named(callee, "torch.autograd.enable_grad"))
        mode = ir_build_bool(&E->b, true);
    else if (is_named(callee, "torch.set_grad_enabled") && context->list.count == 1)
        mode = em_expression_ir(E, context->list.items[0], NULL);
    if (!mode)
        return NULL;
    ir_value *before = em_op(E, "is_grad_enabled", context, 0);
    em_op(E, "set_grad_enabled", context, 1, mode);
    return before;
}

static void with_item(emitter *E, const ast_node *node, size_t i);

/* torch.no_grad() and its kind, in an archive a class: it sets the mode back and looks at no exception,
 * and statements of an attempt would lose the types of what they read. */
static bool is_grad_mode(const ir_value *object) {
    return object->type->kind == IR_CLASS &&
           ts_str_starts_with(object->type->class_->base.name, "__torch__.torch.autograd.grad_mode.");
}

/* An exception in the statements goes through __exit__, which may end it. */
static void with_object(emitter *E, const ast_node *node, size_t i, ir_value *object) {
    em_attempt *t;
    em none = em_value(ir_build_none(&E->b));
    em args[3] = {none, none, none};
    if (is_grad_mode(object)) {
        with_item(E, node, i + 1);
        if (E->env.state != EM_UNREACHABLE)
            em_call_method0(E, object, "__exit__", args, 3, node);
        return;
    }
    em_attempt_begin(E, &t, &node->body, end_of(node));
    with_item(E, node, i + 1);
    ir_op *op = em_attempt_end(E, t, node);
    if (E->env.state != EM_UNREACHABLE)
        em_call_method0(E, object, "__exit__", args, 3, node);
    em_branch a = {.block = E->b.block, .env = E->env};
    em_attempt_failed(E, t, op);
    args[0] = em_value(t->raised.exception);
    args[1] = em_value(em_exception_object(E, em_caught(E, t->raised)));
    em r = em_call_method0(E, object, "__exit__", args, 3, node);
    em_condition ended = {.known = 0};
    if (r.kind == EM_VALUE && r.value->type->kind != IR_NONE) {
        ended.known = -1;
        ended.value = em_truth(E, r, node);
    }
    if (ended.known < 0 && ended.value) {
        em_env before = em_env_copy(E);
        ir_op *choice = ir_build_if(&E->b, ended.value);
        em_branch c = {.block = choice->regions[0], .env = em_env_copy(E)};
        ir_block *here = em_enter(E, choice->regions[1]);
        em_raise_again(E, t->raised);
        em_branch d = {.block = E->b.block, .env = E->env};
        em_leave(E, here);
        em_merge(E, choice, &before, &c, &d, end_of(node));
    } else {
        em_raise_again(E, t->raised);
    }
    em_branch b = {.block = E->b.block, .env = E->env};
    em_leave(E, t->block);
    em_merge(E, op, &t->before, &a, &b, end_of(node));
}

/* with suppress(A, B): BODY  is  try: BODY except (A, B): pass */
static bool with_suppress(emitter *E, const ast_node *node, size_t i) {
    const ast_node *call = node->list.items[i]->left;
    fe_binding b = call->kind == AST_CALL ? fe_resolve_dotted(E->fe, E->scope, call->left) : (fe_binding){0};
    if (b.kind != FE_NAME || !ts_str_is(b.path, "contextlib.suppress"))
        return false;
    ast_node *attempt = rw_node(E->arena, AST_TRY, node), *clause = rw_node(E->arena, AST_EXCEPT, call);
    clause->left = rw_node(E->arena, AST_TUPLE, call);
    clause->left->list = call->list;
    rw_append(E->arena, &clause->body, rw_node(E->arena, AST_PASS, call));
    attempt->body = node->body;
    if (i + 1 < node->list.count) {
        ast_node *rest = rw_node(E->arena, AST_WITH, node);
        rest->list = (ast_list){.items = node->list.items + i + 1, .count = node->list.count - i - 1};
        rest->body = node->body;
        attempt->body = (ast_list){0};
        rw_append(E->arena, &attempt->body, rest);
    }
    rw_append(E->arena, &attempt->list, clause);
    em_try(E, attempt);
    return true;
}

static void with_item(emitter *E, const ast_node *node, size_t i) {
    if (i == node->list.count) {
        em_statements(E, &node->body, 0);
        return;
    }
    const ast_node *item = node->list.items[i];
    if (with_suppress(E, node, i))
        return;
    ir_value *mode = open_grad_mode(E, item->left);
    if (mode) {
        with_item(E, node, i + 1);
        if (E->env.state != EM_UNREACHABLE)
            em_op(E, "set_grad_enabled", node, 1, mode);
        return;
    }
    ir_value *object = em_expression_ir(E, item->left, NULL);
    if (!object)
        return;
    if (!em_class_has_method(object->type, "__enter__")) {
        EM_ERR(E, item->left, "expected a context manager (__enter__ and __exit__), found %s",
               em_type_text(E, object->type));
        return;
    }
    em entered = em_call_method0(E, object, "__enter__", NULL, 0, item);
    if (item->right && entered.kind == EM_VALUE)
        em_assign(E, item->right, entered, item);
    with_object(E, node, i, object);
}

void em_with(emitter *E, const ast_node *node) { with_item(E, node, 0); }

/* ---- imports inside functions ---- */

static void emit_import(emitter *E, const ast_node *node) {
    for (size_t i = 0; i < node->list.count; i++) {
        const ast_node *alias = node->list.items[i];
        ts_str as = alias->other.length ? alias->other : alias->text;
        fe_binding b = {.kind = FE_NAMESPACE, .path = alias->text};
        if (node->kind == AST_IMPORT_FROM) {
            b = fe_namespace_get(E->fe, node->text, alias->text);
        } else {
            if (!fe_namespace_exists(E->fe, alias->text))
                b.kind = FE_UNBOUND;
            if (!alias->other.length) {
                size_t n = 0;
                while (n < as.length && as.data[n] != '.')
                    n++;
                as.length = b.path.length = n;
            }
        }
        if (b.kind == FE_UNBOUND) {
            EM_UNSUPPORTED(E, node, "import of %.*s is not supported yet",
                           TS_STR_ARG(node->kind == AST_IMPORT_FROM ? node->text : alias->text));
            continue;
        }
        size_t slot = (size_t)fe_map_get(&E->variables, as);
        if (slot)
            E->env.slots[slot - 1] = (em_slot){.is_set = true, .v = em_binding(E, b)};
    }
}

/* ---- one statement ---- */

/* Remembers the names of a target whose value could not be typed. */
void em_note_failed(emitter *E, const ast_node *target) {
    if (target->kind == AST_NAME)
        fe_map_set(E->arena, &E->failed_names, target->text, E);
    for (size_t i = 0; target->kind == AST_TUPLE && i < target->list.count; i++)
        if (target->list.items[i]->kind == AST_NAME)
            fe_map_set(E->arena, &E->failed_names, target->list.items[i]->text, E);
}

/* A class statement in a function: one class for all calls, so it captures nothing. */
static void local_class(emitter *E, const ast_node *s) {
    size_t slot = (size_t)fe_map_get(&E->variables, s->text);
    ts_str key = ts_arena_format(E->arena, "local %p:%u", (const void *)s->source, s->offset);
    fe_class *c = fe_map_get(&E->fe->made_classes, key);
    if (!c) {
        c = fe_class_declare(E->fe, E->scope, s, ts_arena_format(E->arena, "__main__.%.*s", TS_STR_ARG(s->text)));
        fe_map_set(E->arena, &E->fe->made_classes, key, c);
    }
    if (slot)
        E->env.slots[slot - 1] = (em_slot){.is_set = true, .v = em_binding(E, (fe_binding){.kind = FE_CLASS, .class_ = c})};
}

/* A tensor that nobody reads is computed all the same: sizes that do not fit raise. */
void em_keep(emitter *E, em v, const ast_node *node) {
    const ir_op *op = v.kind == EM_VALUE && E->env.state == EM_LIVE ? v.value->def : NULL;
    bool may_vanish = op && (op->opcode == IR_OP_CALL || (op->opcode == IR_OP_CORE && ir_is_removable(op)));
    if (em_is_script(node) && may_vanish && v.value->type->kind == IR_TENSOR)
        em_row(E, "prim_keep", node, 1, v.value);
}

static void statement(emitter *E, const ast_node *s) {
    em_place(E, s);
    switch (s->kind) {
    case AST_EXPR_STMT:
        if (s->left->kind != AST_STRING && s->left->kind != AST_ELLIPSIS)
            em_keep(E, em_expression(E, s->left, NULL), s);
        break;
    case AST_ASSIGN: {
        const ast_node *first = s->list.items[0];
        bool as_tuple = s->list.count == 1 && s->right->kind == AST_LIST &&
                        (first->kind == AST_TUPLE || first->kind == AST_LIST);
        const ir_type *hint = em_hint_of_target(E, first);
        em v = as_tuple ? em_tuple_literal(E, s->right, NULL)
                        : em_expression(E, s->right, hint ? hint : em_hint_of_tolist(E, first, s->right));
        if (v.kind == EM_ERROR) {
            for (size_t i = 0; i < s->list.count; i++)
                em_note_failed(E, s->list.items[i]);
            break;
        }
        if (s->list.count > 1 && v.kind == EM_TUPLE) {
            ir_value *one = em_ir(E, v, s->right, NULL);
            v = em_value(one);
        }
        for (size_t i = 0; i < s->list.count && v.kind != EM_ERROR; i++)
            em_assign(E, s->list.items[i], v, s);
        break;
    }
    case AST_ANN_ASSIGN:
        em_annotated(E, s);
        break;
    case AST_AUG_ASSIGN:
        em_augmented(E, s);
        break;
    case AST_RETURN:
        em_return_value(E, s->left, s);
        break;
    case AST_WHILE:
        em_while(E, s);
        break;
    case AST_FOR:
        em_for(E, s);
        break;
    case AST_BREAK:
    case AST_CONTINUE:
        if (!E->loop_depth) {
            EM_ERR(E, s, "%s outside a loop", s->kind == AST_BREAK ? "break" : "continue");
            break;
        }
        em_set_flag(E, EM_SLOT_EXITED, true);
        if (s->kind == AST_BREAK)
            em_set_flag(E, EM_SLOT_BREAK, true);
        E->env.state = EM_EXITED;
        break;
    case AST_GLOBAL:
        for (size_t i = 0; i < s->list.count; i++) {
            size_t slot = (size_t)fe_map_get(&E->variables, s->list.items[i]->text);
            if (slot && E->env.slots[slot - 1].is_set)
                EM_ERR(E, s, "'%.*s' is assigned before it is declared global", TS_STR_ARG(s->list.items[i]->text));
            else
                em_make_global(E, s->list.items[i]->text, s);
        }
        break;
    case AST_NONLOCAL: /* of a nested function, which is one or is made a class, a name of the one around it */
        for (size_t i = 0; E->function && i < E->function->node->body.count; i++)
            if (E->function->node->body.items[i] == s && !(E->function->owner && E->function->owner->is_made))
                EM_ERR(E, s, "no function around this one has the variable that is declared nonlocal");
        break;
    case AST_PASS:
        break;
    case AST_ASSERT:
        emit_assert(E, s);
        break;
    case AST_RAISE:
        em_raise(E, s);
        break;
    case AST_WITH:
        em_with(E, s);
        break;
    case AST_DELETE:
        em_delete(E, s);
        break;
    case AST_FUNCTION: {
        size_t slot = (size_t)fe_map_get(&E->variables, s->text);
        em v = {.kind = EM_CLOSURE, .node = s};
        if (slot && em_is_object_closure(E, s) && !em_is_generator(s)) {
            ir_value *object = em_function_object(E, v, s);
            if (!object)
                break;
            v = em_value(object);
        }
        if (slot)
            E->env.slots[slot - 1] = (em_slot){.is_set = true, .v = v};
        break;
    }
    case AST_IMPORT:
    case AST_IMPORT_FROM:
        emit_import(E, s);
        break;
    case AST_TRY:
        em_try(E, s);
        break;
    case AST_CLASS:
        local_class(E, s);
        break;
    default:
        EM_UNSUPPORTED(E, s, "this statement (%s) is not supported yet", ast_kind_name(s->kind));
        break;
    }
}

void em_statements(emitter *E, const ast_list *list, size_t from) {
    if (++E->depth > MAX_DEPTH || TS_STACK_IS_LOW(E->fe->stack_limit)) {
        EM_ERR(E, from < list->count ? list->items[from] : NULL, "the code is nested too deeply");
        E->env.state = EM_UNREACHABLE;
        E->depth--;
        return;
    }
    if (E->fe->relearn)
        E->env.state = EM_UNREACHABLE;
    for (size_t i = from; i < list->count && E->env.state == EM_LIVE; i++) {
        if (em_flag_is_dynamic(E, EM_SLOT_EXITED)) {
            rest_if_live(E, list, i);
            break;
        }
        if (list->items[i]->kind == AST_IF) {
            if (emit_if(E, list->items[i], list, i + 1))
                break;
        } else {
            statement(E, list->items[i]);
        }
    }
    E->depth--;
}

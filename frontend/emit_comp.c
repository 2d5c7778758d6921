/* frontend/emit_comp.c - comprehensions and f-strings. */
#include "frontend/emit_builtin.h"

typedef struct comprehension {
    const ast_node *node;
    size_t level;
    ir_value *result;
    bool has_type; /* the result's type is settled */
    const ir_type *hint;
    em cell; /* holds variables that lambdas share, or an error */
    enum { ALL_ITEMS, UNTIL_TRUE, UNTIL_FALSE } how; /* the latter: the result holds the item that decided */
} comprehension;

static void push_local(emitter *E, ts_str name, em v) {
    em_local local = {.name = name, .v = v};
    TS_APPEND(E->arena, E->locals, E->local_count, E->local_capacity, local);
}

static bool bind_target(emitter *E, const ast_node *target, em v) {
    if (target->kind == AST_NAME) {
        push_local(E, target->text, v);
        return v.kind != EM_ERROR;
    }
    if (target->kind != AST_TUPLE && target->kind != AST_LIST) {
        EM_UNSUPPORTED(E, target, "this target of a comprehension is not supported yet");
        return false;
    }
    size_t count = target->list.count;
    if (v.kind != EM_TUPLE) {
        ir_value *x = em_ir(E, v, target, NULL);
        if (!x)
            return false;
        em *items = TS_NEW_ARRAY(E->arena, em, count + 1);
        const ir_type **types = TS_NEW_ARRAY(E->arena, const ir_type *, count + 1);
        ir_op *op;
        if (x->type->kind == IR_TUPLE && x->type->arg_count == count) {
            op = ir_build_op(&E->b, IR_OP_TUPLE_UNPACK, &x, 1, x->type->args, count);
        } else if (x->type->kind == IR_LIST) {
            for (size_t i = 0; i < count; i++)
                types[i] = x->type->args[0];
            op = ir_build_op(&E->b, IR_OP_LIST_UNPACK, &x, 1, types, count);
        } else {
            EM_ERR(E, target, "expected %zu values to unpack, found %s", count, em_type_text(E, x->type));
            return false;
        }
        for (size_t i = 0; i < count; i++)
            items[i] = em_value(op->results[i]);
        v = (em){.kind = EM_TUPLE, .items = items, .count = count};
    }
    if (v.count != count) {
        EM_ERR(E, target, "expected %zu values to unpack, found %zu", count, v.count);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        if (!bind_target(E, target->list.items[i], v.items[i]))
            return false;
    return true;
}

/* Items of another type: those that were appended before are of the joined type, too. */
static void widen(emitter *E, ir_value *list, const ir_type *element) {
    list->type = ir_type_list(E->m, element);
    for (size_t i = 0; i < list->use_count; i++) {
        ir_op *op = list->uses[i].op;
        if (op->opcode != IR_OP_CORE || op->operand_count != 2 || list->uses[i].operand)
            continue;
        ir_builder b = {.module = E->m, .block = op->block, .before = op, .place = op->place};
        ir_op *cast = ir_build_op(&b, IR_OP_CAST, &op->operands[1], 1, &element, 1);
        ir_op_set_operand(E->m, op, 1, cast->results[0]);
        for (size_t k = 0; k < op->result_count; k++)
            op->results[k]->type = list->type;
    }
}

static void add_element(emitter *E, comprehension *c) {
    const ast_node *node = c->node;
    if (node->kind == AST_DICT_COMP || node->kind == AST_SET_COMP) {
        const ir_type *h = c->hint;
        ir_value *k = em_ir(E, em_key(E, em_expression(E, node->left, h ? h->args[0] : NULL), node), node, h ? h->args[0] : NULL);
        ir_value *v = node->kind == AST_SET_COMP
                          ? ir_build_none(&E->b)
                          : em_ir(E, em_kept(E, em_expression(E, node->right, h ? h->args[1] : NULL), node->right, h ? h->args[1] : NULL), node->right, h ? h->args[1] : NULL);
        if (!k || !v)
            return;
        const ir_type *key_type = ir_type_forget(E->m, k->type);
        if (!c->has_type && node->kind == AST_DICT_COMP && v->type->kind == IR_NONE)
            c->result->type = em_open_dict(E, c->result, key_type, node);
        else if (!c->has_type)
            c->result->type = ir_type_dict(E->m, key_type, em_value_type(E, ir_type_forget(E->m, v->type)));
        c->has_type = true;
        v = em_coerce(E, v, c->result->type->args[1], 0, node, "the value");
        k = em_same_key(E, c->result, k, node);
        em_op(E, "_set_item", node, 3, c->result, k, em_cast(E, v, c->result->type->args[1]));
        return;
    }
    const ir_type *wanted = c->hint ? c->hint->args[0] : NULL;
    ir_value *v = c->how == ALL_ITEMS ? em_ir(E, em_kept(E, em_expression(E, node->left, wanted), node->left, wanted), node->left, wanted)
                                      : em_truth(E, em_expression(E, node->left, NULL), node->left);
    if (!v)
        return;
    if (c->how != ALL_ITEMS) {
        ir_op *op = ir_build_if(&E->b, v);
        ir_block *here = em_enter(E, op->regions[c->how == UNTIL_TRUE ? 0 : 1]);
        em_row(E, "append.t", node, 2, c->result, v);
        ir_build_yield(&E->b, NULL, 0);
        em_enter(E, op->regions[c->how == UNTIL_TRUE ? 1 : 0]);
        ir_build_yield(&E->b, NULL, 0);
        em_leave(E, here);
        return;
    }
    const ir_type *t = ir_type_forget(E->m, v->type);
    if (!c->has_type)
        c->result->type = ir_type_list(E->m, t);
    else if (!c->hint && !ir_type_is_subtype(t, c->result->type->args[0]))
        widen(E, c->result, ir_type_join(E->m, c->result->type->args[0], t));
    c->has_type = true;
    const ir_type *element = c->result->type->args[0];
    v = em_coerce(E, v, element, 0, node->left, "the item");
    em_row(E, "append.t", node, 2, c->result, em_cast(E, v, element));
}

static void run_level(emitter *E, comprehension *c);

static void conditions(emitter *E, comprehension *c, const ast_node *part, size_t at) {
    if (at == part->list.count) {
        c->level++;
        run_level(E, c);
        c->level--;
        return;
    }
    const ast_node *test = part->list.items[at];
    em_condition cond = em_condition_of(E, test);
    if (cond.known == 0)
        return;
    if (cond.known == 1) {
        conditions(E, c, part, at + 1);
        return;
    }
    if (!cond.value)
        return;
    em_env saved = em_env_copy(E);
    ir_op *op = ir_build_if(&E->b, cond.value);
    ir_block *here = em_enter(E, op->regions[0]);
    em_apply_facts(E, &cond.if_true);
    size_t locals = E->local_count;
    /* `if x is not None` says so of a target, too. */
    if (test->kind == AST_COMPARE && test->list.count == 2 && test->ops[0] == AST_IS_NOT &&
        test->list.items[0]->kind == AST_NAME && test->list.items[1]->kind == AST_NONE)
        for (size_t i = E->local_count; i-- > 0;)
            if (ts_str_equal(E->locals[i].name, test->list.items[0]->text) &&
                E->locals[i].v.kind == EM_VALUE) {
                ir_value *v = E->locals[i].v.value;
                push_local(E, test->list.items[0]->text,
                           em_value(em_cast(E, v, ir_type_without_none(E->m, v->type))));
                break;
            }
    conditions(E, c, part, at + 1);
    E->local_count = locals;
    ir_build_yield(&E->b, NULL, 0);
    em_enter(E, op->regions[1]);
    ir_build_yield(&E->b, NULL, 0);
    em_leave(E, here);
    em_env_release(E, &E->env);
    E->env = saved;
}

static void each(emitter *E, em item, void *user) {
    comprehension *c = user;
    const ast_node *part = c->node->list.items[c->level];
    size_t saved = E->local_count;
    if (c->how != ALL_ITEMS) {
        ir_value *size = em_op(E, "len", part, 1, c->result);
        ir_op *op = ir_build_if(&E->b, em_row(E, "eq.int", part, 2, size, ir_build_int(&E->b, 0)));
        em_env before = em_env_copy(E);
        ir_block *here = em_enter(E, op->regions[0]);
        if (bind_target(E, part->left, item))
            conditions(E, c, part, 0);
        ir_build_yield(&E->b, NULL, 0);
        em_enter(E, op->regions[1]);
        ir_build_yield(&E->b, NULL, 0);
        em_leave(E, here);
        em_env_release(E, &E->env);
        E->env = before;
        E->local_count = saved;
        return;
    }
    if (bind_target(E, part->left, item)) {
        if (c->cell.kind == EM_VALUE)
            em_comp_share(E, c->cell, c->node, saved);
        conditions(E, c, part, 0);
    }
    E->local_count = saved;
}

static void run_level(emitter *E, comprehension *c) {
    if (c->level == c->node->list.count) {
        add_element(E, c);
        return;
    }
    const ast_node *part = c->node->list.items[c->level];
    em source = em_expression(E, part->right, em_hint_of_walk(E, part->right, part->left, c->node));
    size_t level = c->level;
    em_for_each(E, source, part->right, each, c);
    c->level = level;
}

/* Variables that := binds in it and that are read behind it live in a cell. */
static bool share_bound(emitter *E, const ast_node *n, uint32_t end) {
    if (!n)
        return false;
    bool shared = false;
    if (n->kind == AST_WALRUS && !n->third && E->function) {
        size_t slot = (size_t)fe_map_get(&E->variables, n->text);
        shared = slot && em_needed_after(E, slot - 1, end) && em_share_variable(E, n->text);
    }
    shared = share_bound(E, n->left, end) || shared;
    shared = share_bound(E, n->right, end) || shared;
    for (size_t i = 0; i < n->list.count; i++)
        shared = share_bound(E, n->list.items[i], end) || shared;
    return shared;
}

bool em_asks_in_turn(const ast_node *n) {
    static const char *const harmless[] = {"isinstance", "hasattr", "len", "getattr", "abs", "int", "float", "str"};
    if (!n)
        return false;
    bool divides = n->kind == AST_BINARY && (n->op == AST_DIV || n->op == AST_FLOORDIV || n->op == AST_MOD);
    if (divides && n->right->kind == AST_INT)
        divides = false;
    if (divides || n->kind == AST_SUBSCRIPT || n->kind == AST_WALRUS)
        return true;
    if (n->kind == AST_CALL) {
        bool known = false;
        for (size_t i = 0; n->left->kind == AST_NAME && i < sizeof harmless / sizeof *harmless; i++)
            known = known || ts_str_is(n->left->text, harmless[i]);
        if (!known)
            return true;
    }
    bool any = em_asks_in_turn(n->left) || (n->kind != AST_COMP_FOR && em_asks_in_turn(n->right));
    for (size_t i = 0; i < n->list.count && !any; i++)
        any = em_asks_in_turn(n->list.items[i]);
    return any;
}

em em_any_of(emitter *E, const ast_node *generator, bool is_any) {
    comprehension c = {.node = generator, .how = is_any ? UNTIL_TRUE : UNTIL_FALSE, .has_type = true};
    if (share_bound(E, generator, generator->offset + generator->length))
        return em_error();
    c.result = em_list_of(E, NULL, 0, em_simple(E, IR_BOOL));
    run_level(E, &c);
    ir_value *size = em_op(E, "len", generator, 1, c.result);
    return em_value(size ? em_row(E, is_any ? "gt.int" : "eq.int", generator, 2, size, ir_build_int(&E->b, 0)) : NULL);
}

em em_comprehension(emitter *E, const ast_node *node, const ir_type *hint) {
    if (share_bound(E, node, node->offset + node->length))
        return em_error();
    comprehension c = {0};
    size_t locals = E->local_count;
    c.node = node->kind == AST_GENERATOR ? node : em_comp_with_cell(E, node, &c.cell);
    ir_kind kind = node->kind == AST_DICT_COMP || node->kind == AST_SET_COMP ? IR_DICT : IR_LIST;
    if (hint && hint->kind == IR_OPTIONAL)
        hint = hint->args[0];
    if (hint && hint->kind == kind) {
        c.hint = hint;
        c.has_type = true;
    }
    const ir_type *t = kind == IR_DICT
                           ? ir_type_dict(E->m, em_simple(E, IR_STR), ir_type_any_tensor(E->m))
                           : ir_type_list(E->m, ir_type_any_tensor(E->m));
    if (c.hint)
        t = c.hint;
    c.result = kind == IR_DICT ? em_dict_of(E, NULL, 0, t) : em_list_of(E, NULL, 0, t->args[0]);
    bool failed_before = E->failed;
    E->failed = false;
    run_level(E, &c);
    bool failed = E->failed;
    E->failed = failed || failed_before;
    E->local_count = locals;
    return failed ? em_error() : em_value(c.result);
}

/* ---- strings ---- */

ir_value *em_to_str(emitter *E, em v, const ast_node *node) {
    if (v.kind == EM_BINDING && v.binding->kind == FE_CLASS)
        return ir_build_str(&E->b, v.binding->class_->bare_name);
    if (v.kind == EM_EXCEPTION || (v.kind == EM_VALUE && em_is_exception(v.value->type) &&
                                   !em_class_has_method(v.value->type, "__str__")))
        return em_exception_text(E, v, node);
    ir_value *view = em_view_text(E, v, node);
    if (view)
        return view;
    if (!em_is_mixed_enum(v))
        v = em_enum_value(E, v, node);
    ir_value *x = em_as_python(E, v, node);
    if (!x)
        return NULL;
    if (x->type->kind == IR_STR)
        return x;
    const char *method = em_class_has_method(x->type, "__str__") ? "__str__"
                         : x->type->kind != IR_ENUM && em_class_has_method(x->type, "__repr__") ? "__repr__" : NULL;
    if (method) {
        em r = em_call_method0(E, x, method, NULL, 0, node);
        return r.kind == EM_VALUE ? r.value : NULL;
    }
    if (x->type->kind == IR_OPTIONAL &&
        (em_class_has_method(x->type->args[0], "__str__") || em_is_exception(x->type->args[0]))) {
        em_choice choice;
        em_choose(E, &choice, em_row(E, "__is__", node, 2, x, ir_build_none(&E->b)));
        em_choose_other(E, &choice, ir_build_str(&E->b, TS_STR("None")));
        return em_choose_end(E, &choice, em_to_str(E, em_value(em_cast(E, x, x->type->args[0])), node), node);
    }
    if (x->type->kind != IR_ENUM && em_has_own_text(x->type))
        return em_repr(E, x, node);
    return em_op(E, "str", node, 1, x);
}

/* format(v, spec): __format__ of an object; else what the runtime writes. */
ir_value *em_format_value(emitter *E, em v, ir_value *spec, const ast_node *node) {
    ir_value *x = v.kind == EM_TUPLE || v.is_tuple ? em_as_python(E, v, node) : em_ir(E, v, node, NULL);
    if (x && em_class_has_method(x->type, "__format__")) {
        em argument = em_value(spec);
        return em_ir(E, em_call_method0(E, x, "__format__", &argument, 1, node), node, NULL);
    }
    return x && spec ? em_row(E, "prim_format_spec", node, 2, x, spec) : NULL;
}

/* format(v): __format__ with no specification, where there is one. */
ir_value *em_format_default(emitter *E, em v, const ast_node *node) {
    if (v.kind == EM_VALUE && v.value && em_class_has_method(v.value->type, "__format__"))
        return em_format_value(E, v, ir_build_str(&E->b, (ts_str){"", 0}), node);
    if (em_is_number_or_tensor(v)) /* a 0-d tensor as its number */
        return em_row(E, "prim_format_spec", node, 2, v.value, ir_build_str(&E->b, (ts_str){"", 0}));
    return em_to_str(E, v, node);
}

ir_value *em_fstring(emitter *E, const ast_node *node) {
    ir_value *total = NULL;
    for (size_t i = 0; i < node->list.count; i++) {
        const ast_node *part = node->list.items[i];
        ir_value *text;
        if (part->kind == AST_STRING) {
            text = ir_build_str(&E->b, part->text);
        } else {
            em v = em_expression(E, part->left, NULL);
            if (ts_str_is(part->text, "r") || ts_str_is(part->text, "a")) {
                ir_value *x = em_ir(E, v, part, NULL);
                ir_value *view = em_view_text(E, v, part);
                v = em_value(view ? view : x ? em_repr(E, x, part) : NULL);
                if (ts_str_is(part->text, "a"))
                    v = em_call_python(E, "builtins.ascii_text", &v, 1, part);
            } else if (ts_str_is(part->text, "s")) {
                v = em_value(em_to_str(E, v, part));
            }
            bool is_tensor = v.kind == EM_VALUE && v.value && v.value->type->kind == IR_TENSOR;
            if (is_tensor && !(part->right && part->right->list.count)) { /* of rank 0: its item */
                text = em_row(E, "prim_format_spec", part, 2, v.value, ir_build_str(&E->b, (ts_str){"", 0}));
            } else if (part->right && part->right->list.count) {
                ir_value *spec = em_fstring(E, part->right);
                text = em_format_value(E, v, spec, part);
            } else {
                text = em_format_default(E, v, part);
            }
        }
        if (!text)
            return NULL;
        total = total ? em_row(E, "add.str", node, 2, total, text) : text;
    }
    return total ? total : ir_build_str(&E->b, (ts_str){"", 0});
}

/* frontend/typecheck.c - conditions and what they say of types, implicit conversions. */
#include "frontend/emit_internal.h"

/* ---- conversions ---- */

static ir_value *refuse(emitter *E, ir_value *v, const ir_type *want, const ast_node *node,
                        const char *what) {
    if (em_retype_empty(E, v, want))
        return em_uninitialized(E, want);
    EM_ERR(E, node, "expected %s for %s, found %s", em_type_text(E, want), what,
           em_type_text(E, v->type));
    return NULL;
}

static ir_value *to_list(emitter *E, ir_value *v, const ir_type *want, int64_t fixed_length,
                         const ast_node *node, const char *what) {
    const ir_type *element = want->args[0];
    ir_value **items;
    size_t count;
    if (em_is_list_literal(v, &items, &count) || v->type->kind == IR_TUPLE) {
        ir_value **made;
        ir_op *literal = NULL;
        if (v->type->kind == IR_TUPLE) {
            count = v->type->arg_count;
            if (v->def && v->def->opcode == IR_OP_TUPLE)
                items = v->def->operands;
            else
                items = ir_build_op(&E->b, IR_OP_TUPLE_UNPACK, &v, 1, v->type->args, count)->results;
        } else {
            literal = v->def;
        }
        made = TS_NEW_ARRAY(E->arena, ir_value *, count + 1);
        for (size_t i = 0; i < count; i++) {
            made[i] = em_coerce(E, items[i], element, 0, node, what);
            if (!made[i])
                return NULL;
        }
        ir_value *list = em_list_of(E, made, count, element);
        (void)literal;
        return list;
    }
    rt_value c;
    if (v->type->kind == IR_LIST && ir_const_value(v, &c) && c.tag == RT_TAG_LIST) {
        count = c.as.list->count;
        ir_value **made = TS_NEW_ARRAY(E->arena, ir_value *, count + 1);
        for (size_t i = 0; i < count; i++) {
            made[i] = em_coerce(E, ir_build_const(&E->b, c.as.list->items[i]), element, 0, node, what);
            if (!made[i])
                return NULL;
        }
        return em_list_of(E, made, count, element);
    }
    if (v->type->kind == IR_LIST && ir_type_is_subtype(v->type->args[0], element))
        return em_cast(E, v, want);
    if (fixed_length && v->type->kind != IR_LIST) {
        size_t n = fixed_length > 0 ? (size_t)fixed_length : 1;
        ir_value *one = em_coerce(E, v, element, 0, node, what);
        if (!one)
            return NULL;
        ir_value **made = TS_NEW_ARRAY(E->arena, ir_value *, n);
        for (size_t i = 0; i < n; i++)
            made[i] = one;
        return em_list_of(E, made, n, element);
    }
    return refuse(E, v, want, node, what);
}

/* operator.index(v): an object's __index__, other values as they are. */
ir_value *em_index_of(emitter *E, ir_value *v, const ast_node *node) {
    if (!v || !em_class_has_method(v->type, "__index__"))
        return v;
    return em_ir(E, em_call_method0(E, v, "__index__", NULL, 0, node), node, NULL);
}

ir_value *em_coerce(emitter *E, ir_value *v, const ir_type *want, int64_t fixed_length,
                    const ast_node *node, const char *what) {
    if (!v)
        return NULL;
    const ir_type *from = v->type;
    if (ir_type_is_subtype(from, want))
        return from->kind == want->kind ? v : em_cast(E, v, want);
    if (want->kind == IR_ANY)
        return em_cast(E, v, want);
    if (from->kind == IR_ANY)
        return em_check_cast(E, v, want);
    if (want->kind == IR_OPTIONAL) {
        if (from->kind == IR_OPTIONAL)
            return em_check_cast(E, v, want);
        ir_value *inner = em_coerce(E, v, want->args[0], fixed_length, node, what);
        return inner ? em_cast(E, inner, want) : NULL;
    }
    if (from->kind == IR_OPTIONAL && want->kind != IR_UNION) {
        ir_value *inner = em_check_cast(E, v, from->args[0]);
        return em_coerce(E, inner, want, fixed_length, node, what);
    }
    if (from->kind == IR_UNION)
        return em_check_cast(E, v, want);
    if (want->kind == IR_UNION) {
        for (size_t i = 0; i < want->arg_count; i++)
            if (em_conversion_cost(E, v, want->args[i], 0) >= 0) {
                ir_value *inner = em_coerce(E, v, want->args[i], 0, node, what);
                return inner ? em_cast(E, inner, want) : NULL;
            }
        return refuse(E, v, want, node, what);
    }
    bool is_tensor = from->kind == IR_TENSOR, is_number = from->kind == IR_NUMBER;
    if (want->kind == IR_INT && em_class_has_method(from, "__index__"))
        return em_index_of(E, v, node);
    switch (want->kind) {
    case IR_FLOAT:
        if (from->kind == IR_INT || from->kind == IR_BOOL || is_number || is_tensor)
            return em_op(E, "Float", node, 1, v);
        break;
    case IR_INT:
        if (is_number && node && node->source && !node->source->is_archive && !node->source->is_library)
            return em_check_cast(E, v, want); /* 2 ** -1 is no int */
        if (from->kind == IR_BOOL || is_number || is_tensor)
            return em_op(E, "Int", node, 1, v);
        break;
    case IR_BOOL:
        if (is_tensor)
            return em_op(E, "Bool", node, 1, v);
        if (is_number)
            return em_truth(E, em_value(v), node);
        break;
    case IR_COMPLEX:
        if (from->kind == IR_INT || from->kind == IR_FLOAT || from->kind == IR_BOOL) {
            ir_value *f = from->kind == IR_FLOAT ? v : em_op(E, "Float", node, 1, v);
            return em_op(E, "Complex", node, 2, f, ir_build_float(&E->b, 0.0));
        }
        if (is_number)
            return em_check_cast(E, v, want);
        break;
    case IR_NUMBER:
        if (is_tensor)
            return em_op(E, "ScalarImplicit", node, 1, v);
        break;
    case IR_TENSOR:
        if (from->kind == IR_INT || from->kind == IR_FLOAT || from->kind == IR_BOOL ||
            from->kind == IR_COMPLEX || is_number)
            return em_op(E, "prim_NumToTensor", node, 1, v);
        break;
    case IR_DEVICE:
        if (from->kind == IR_STR)
            return em_op(E, "device", node, 1, v);
        break;
    case IR_LIST:
        return to_list(E, v, want, fixed_length, node, what);
    case IR_DICT: {
        rt_value c; /* an empty constant takes any type */
        if (from->kind == IR_DICT &&
            ((ir_const_value(v, &c) && c.tag == RT_TAG_DICT && !c.as.dict->live_count) ||
             (v->def && v->def->opcode == IR_OP_DICT && !v->def->operand_count)))
            return em_dict_of(E, NULL, 0, want);
        if (from->kind == IR_DICT && ir_type_is_subtype(from->args[0], want->args[0]) &&
            ir_type_is_subtype(from->args[1], want->args[1]) && v->def &&
            (v->def->opcode == IR_OP_DICT || v->def->opcode == IR_OP_CONST))
            return em_cast(E, v, want);
        break;
    }
    case IR_TUPLE:
        if (from->kind == IR_TUPLE && from->arg_count == want->arg_count && !want->class_) {
            ir_op *op = ir_build_op(&E->b, IR_OP_TUPLE_UNPACK, &v, 1, from->args, from->arg_count);
            ir_value **items = TS_NEW_ARRAY(E->arena, ir_value *, from->arg_count + 1);
            bool is_literal = v->def && v->def->opcode == IR_OP_TUPLE;
            for (size_t i = 0; i < from->arg_count; i++) {
                items[i] = em_coerce(E, is_literal ? v->def->operands[i] : op->results[i], want->args[i], 0,
                                     node, what);
                if (!items[i])
                    return NULL;
                items[i] = em_cast(E, items[i], want->args[i]);
            }
            return ir_build_op(&E->b, IR_OP_TUPLE, items, from->arg_count, &want, 1)->results[0];
        }
        break;
    case IR_CLASS:
        /* An interface is kept by the object's methods, which may not be made yet. */
        if (from->kind == IR_CLASS && (want->class_->base.kind == RT_CLASS_INTERFACE ||
                                       fe_class_of(from->class_) == fe_class_of(want->class_)))
            return em_cast(E, v, want);
        if (from->kind == IR_CLASS && ir_type_is_subtype(want, from))
            return em_check_cast(E, v, want);
        break;
    default:
        break;
    }
    return refuse(E, v, want, node, what);
}

/* ---- conditions ---- */

static em_condition known(int value) { return (em_condition){.known = value}; }

static em_condition dynamic(ir_value *v) {
    bool b;
    if (v && ir_const_bool(v, &b))
        return known(b);
    return (em_condition){.value = v, .known = -1};
}

void em_negate(emitter *E, em_condition *c) {
    if (c->known >= 0)
        c->known = !c->known;
    else if (c->value)
        c->value = em_row(E, "__not__", NULL, 1, c->value);
    em_facts t = c->if_true;
    c->if_true = c->if_false;
    c->if_false = t;
}

ir_value *em_condition_ir(emitter *E, const em_condition *c) {
    return c->known >= 0 ? ir_build_bool(&E->b, c->known == 1) : c->value;
}

static void add_fact(emitter *E, em_facts *facts, const ast_node *variable, const ir_type *type) {
    if (!variable || facts->count == sizeof facts->items / sizeof *facts->items)
        return;
    ts_str name = variable->kind == AST_NAME || variable->kind == AST_WALRUS ? variable->text
                                                                           : (ts_str){0};
    for (size_t i = E->local_count; i-- > 0;)
        if (ts_str_equal(E->locals[i].name, name))
            return;
    size_t slot = name.length ? (size_t)fe_map_get(&E->variables, name) : 0;
    if (slot)
        facts->items[facts->count++] = (em_fact){.slot = slot - 1, .type = type};
}

static void add_facts(em_facts *to, const em_facts *more) {
    for (size_t i = 0; i < more->count && to->count < sizeof to->items / sizeof *to->items; i++)
        to->items[to->count++] = more->items[i];
}

em_condition em_none_test(emitter *E, em v, const ast_node *variable, bool negated,
                          const ast_node *node) {
    em_condition c;
    if (v.kind == EM_ERROR)
        return dynamic(NULL);
    if (v.kind == EM_BINDING && v.binding->kind == FE_VALUE) {
        c = known(rt_is_none(v.binding->value));
    } else if (v.kind != EM_VALUE) {
        c = known(0);
    } else if (v.value->type->kind == IR_NONE) {
        c = known(1);
    } else if (!ir_type_admits_none(v.value->type)) {
        c = known(0);
    } else {
        c = dynamic(em_row(E, "__is__", node, 2, v.value, ir_build_none(&E->b)));
        add_fact(E, &c.if_true, variable, em_simple(E, IR_NONE));
        add_fact(E, &c.if_false, variable, ir_type_without_none(E->m, v.value->type));
    }
    if (negated)
        em_negate(E, &c);
    return c;
}

ir_value *em_truth(emitter *E, em v, const ast_node *node) {
    if (v.kind == EM_ERROR)
        return NULL;
    if (v.kind == EM_TUPLE)
        return ir_build_bool(&E->b, v.count > 0);
    if (v.kind != EM_VALUE && !(v.kind == EM_BINDING && v.binding->kind == FE_VALUE) &&
        v.kind != EM_RANGE && v.kind != EM_ITEMS && v.kind != EM_GENERATOR)
        return ir_build_bool(&E->b, true); /* a function, a class */
    ir_value *x = em_ir(E, v, node, NULL);
    if (!x)
        return NULL;
    const ir_type *t = x->type;
    switch (t->kind) {
    case IR_BOOL:
        return x;
    case IR_NONE:
        return ir_build_bool(&E->b, false);
    case IR_TENSOR:
    case IR_INT:
    case IR_FLOAT:
        return ir_type_meaning(t) ? ir_build_bool(&E->b, true) : em_op(E, "Bool", node, 1, x);
    case IR_TUPLE:
        return ir_build_bool(&E->b, t->arg_count > 0);
    case IR_ENUM:
        return ir_build_bool(&E->b, true);
    case IR_OPTIONAL:
        return ir_type_meaning(t->args[0]) ? em_row(E, "__isnot__", node, 2, x, ir_build_none(&E->b)) /* torch.uint8 is 0 */
                                           : em_row(E, "prim_truth", node, 1, x);
    case IR_CLASS:
        if (em_class_has_method(t, "__bool__") || em_class_has_method(t, "__len__")) {
            em r = em_call_method0(E, x, em_class_has_method(t, "__bool__") ? "__bool__" : "__len__",
                                   NULL, 0, node);
            return em_truth(E, r, node);
        }
        return ir_build_bool(&E->b, true);
    default:
        return em_row(E, "prim_truth", node, 1, x);
    }
}

/* Whether the value of an operand of and/or is a bool whatever happens. */
static bool is_test(const ast_node *node) {
    if (node->kind == AST_COMPARE || (node->kind == AST_UNARY && node->op == AST_NOT))
        return true;
    if (node->kind == AST_BOOLOP) {
        for (size_t i = 0; i < node->list.count; i++)
            if (!is_test(node->list.items[i]))
                return false;
        return true;
    }
    if (node->kind == AST_CALL) {
        const ast_node *f = node->left;
        return (f->kind == AST_NAME && (ts_str_is(f->text, "isinstance") || ts_str_is(f->text, "hasattr") ||
                                        ts_str_is(f->text, "bool"))) ||
               (f->kind == AST_ATTRIBUTE && ts_str_is(f->text, "isinstance"));
    }
    return false;
}

typedef struct operand {
    em v;
    em_condition c;
} operand;
static operand take(emitter *E, const ast_node *node, const ir_type *hint, bool as_condition);

/* Any expression, by its value. */
static operand take_value(emitter *E, const ast_node *node, const ir_type *hint) {
    operand o = {0};
    o.v = em_expression(E, node, hint);
    if (o.v.kind == EM_BINDING && o.v.binding->kind == FE_VALUE)
        o.v = em_value(em_ir(E, o.v, node, hint));
    if (o.v.kind == EM_TUPLE)
        o.v = em_value(em_ir(E, o.v, node, hint));
    o.c = dynamic(em_truth(E, o.v, node));
    if (o.v.kind == EM_VALUE && ir_type_admits_none(o.v.value->type) && o.v.value->type->kind != IR_NONE)
        add_fact(E, &o.c.if_true, node, ir_type_without_none(E->m, o.v.value->type));
    return o;
}

static ir_value *value_of(emitter *E, const operand *o) {
    return o->v.kind == EM_VALUE ? o->v.value : em_condition_ir(E, &o->c);
}

/* Operands from `at` on, as a value or as a condition. */
static operand bool_chain(emitter *E, const ast_node *node, size_t at, const ir_type *hint,
                          bool as_condition) {
    operand first = take(E, node->list.items[at], hint, as_condition);
    if (at + 1 == node->list.count || (first.c.known < 0 && !first.c.value))
        return first;
    bool is_and = node->op == AST_AND;
    if (first.c.known >= 0) {
        bool goes_on = (first.c.known == 1) == is_and;
        if (!goes_on)
            return first;
        em_apply_facts(E, is_and ? &first.c.if_true : &first.c.if_false);
        return bool_chain(E, node, at + 1, hint, as_condition);
    }
    em_choice choice;
    em_choose(E, &choice, first.c.value);
    operand rest = {0};
    ir_value *a, *b;
    em_apply_facts(E, &first.c.if_true);
    if (is_and) {
        rest = bool_chain(E, node, at + 1, hint, as_condition);
        a = value_of(E, &rest);
    } else {
        a = value_of(E, &first);
        if (first.v.kind == EM_VALUE && ir_type_admits_none(a->type) && a->type->kind != IR_NONE)
            a = em_cast(E, a, ir_type_without_none(E->m, a->type));
    }
    if (as_condition && a && a->type->kind != IR_BOOL)
        a = is_and ? em_condition_ir(E, &rest.c) : ir_build_bool(&E->b, true);
    em_choose_other(E, &choice, a);
    em_apply_facts(E, &first.c.if_false);
    if (is_and) {
        b = value_of(E, &first);
    } else {
        rest = bool_chain(E, node, at + 1, hint, as_condition);
        b = value_of(E, &rest);
    }
    if (as_condition) { /* truths instead of values */
        if (b && b->type->kind != IR_BOOL)
            b = is_and ? ir_build_bool(&E->b, false) : em_truth(E, em_value(b), node);
    }
    ir_value *v = em_choose_end(E, &choice, b, node);
    operand out = {0};
    if (!a || !b || !v) {
        out.c = dynamic(NULL);
        out.v = em_error();
        return out;
    }
    out.v = em_value(v);
    out.c = dynamic(v->type->kind == IR_BOOL ? v : as_condition ? NULL : em_truth(E, out.v, node));
    /* Both said it: a and b for an and that holds, for an or that does not. */
    em_facts *strong = is_and ? &out.c.if_true : &out.c.if_false;
    add_facts(strong, is_and ? &first.c.if_true : &first.c.if_false);
    add_facts(strong, is_and ? &rest.c.if_true : &rest.c.if_false);
    return out;
}

em em_boolop(emitter *E, const ast_node *node, const ir_type *hint) {
    operand o = bool_chain(E, node, 0, hint, false);
    if (o.v.kind == EM_VALUE)
        return o.v;
    return em_value(em_condition_ir(E, &o.c));
}

static const ast_node *none_side(const ast_node *node, const ast_node **out_other) {
    const ast_node *a = node->list.items[0], *b = node->list.items[1];
    *out_other = b->kind == AST_NONE ? a : b;
    return b->kind == AST_NONE ? b : a->kind == AST_NONE ? a : NULL;
}

static bool is_path(emitter *E, const ast_node *f, const char *path) {
    if (f->kind != AST_NAME && f->kind != AST_ATTRIBUTE)
        return false;
    if (f->kind == AST_NAME && fe_map_get(&E->variables, f->text))
        return false;
    fe_binding b = fe_resolve_dotted(E->fe, E->scope, f);
    return b.kind == FE_NAME && ts_str_is(b.path, path);
}

bool em_condition_call(emitter *E, const ast_node *node, em_condition *out) {
    const ast_node *f = node->left;
    if (f->kind != AST_NAME && f->kind != AST_ATTRIBUTE)
        return false;
    ts_str last = f->text;
    if (ts_str_is(last, "isinstance") && node->list.count == 2 &&
        (is_path(E, f, "builtins.isinstance") || is_path(E, f, "torch.jit.isinstance"))) {
        *out = em_is_instance(E, node, node->list.items[0], node->list.items[1]);
        return true;
    }
    bool is = ts_str_is(last, "__is__"), is_not = ts_str_is(last, "__isnot__");
    if ((is || is_not) && node->list.count == 2 && node->list.items[1]->kind == AST_NONE &&
        f->kind == AST_ATTRIBUTE && f->left->kind == AST_NAME && ts_str_is(f->left->text, "torch")) {
        *out = em_none_test(E, em_expression(E, node->list.items[0], NULL), node->list.items[0], is_not,
                            node);
        return true;
    }
    if (ts_str_is(last, "__not__") && node->list.count == 1 && f->kind == AST_ATTRIBUTE &&
        f->left->kind == AST_NAME && ts_str_is(f->left->text, "torch")) {
        *out = em_condition_of(E, node->list.items[0]);
        em_negate(E, out);
        return true;
    }
    return false;
}

static operand take(emitter *E, const ast_node *node, const ir_type *hint, bool as_condition) {
    if (!is_test(node) && !(as_condition && node->kind == AST_BOOLOP))
        return take_value(E, node, hint);
    return (operand){.v = em_error(), .c = em_condition_of(E, node)};
}

em_condition em_condition_of(emitter *E, const ast_node *node) {
    em_place(E, node);
    if (node->kind == AST_TRUE || node->kind == AST_FALSE)
        return known(node->kind == AST_TRUE);
    if (node->kind == AST_UNARY && node->op == AST_NOT) {
        em_condition c = em_condition_of(E, node->left);
        em_negate(E, &c);
        return c;
    }
    if (node->kind == AST_BOOLOP)
        return bool_chain(E, node, 0, NULL, true).c;
    if (node->kind == AST_COMPARE && node->list.count == 2 &&
        (node->ops[0] == AST_IS || node->ops[0] == AST_IS_NOT)) {
        const ast_node *other;
        if (none_side(node, &other))
            return em_none_test(E, em_expression(E, other, NULL), other, node->ops[0] == AST_IS_NOT,
                                node);
    }
    em_condition c;
    if (node->kind == AST_CALL && em_condition_call(E, node, &c))
        return c;
    if (node->kind == AST_COMPARE) {
        em v = em_compare(E, node);
        return dynamic(v.kind == EM_VALUE ? em_truth(E, v, node) : NULL);
    }
    return take_value(E, node, NULL).c;
}

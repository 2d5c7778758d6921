/* frontend/emit_union.c - calls and attributes of a value of several possible types: one way for each type, chosen
 * by the object's own at run time. */
#include "frontend/emit_internal.h"

static ir_value *is_of(emitter *E, ir_value *v, const ir_type *type) {
    const ir_type *boolean = em_simple(E, IR_BOOL);
    const ir_type **types = TS_NEW_ARRAY(E->arena, const ir_type *, 1);
    types[0] = type;
    ir_op *test = ir_build_op(&E->b, IR_OP_IS_INSTANCE, &v, 1, &boolean, 1);
    test->types = types;
    test->type_count = 1;
    return test->results[0];
}

/* if v is of the first type: action(v as that) else: the others */
static em each_part(emitter *E, ir_value *v, em_part_action action, const void *context, const ast_node *node) {
    const ir_type *t = v->type;
    if (t->kind != IR_UNION)
        return action(E, v, context, node);
    if (t->arg_count < 2)
        return t->arg_count ? action(E, em_cast(E, v, t->args[0]), context, node) : em_error();
    em_choice choice;
    em_choose(E, &choice, is_of(E, v, t->args[0]));
    em first = action(E, em_cast(E, v, t->args[0]), context, node);
    bool raises = E->env.state == EM_UNREACHABLE;
    ir_value *a = raises ? NULL : em_ir(E, first, node, NULL);
    em_choose_other(E, &choice, a);
    em second = each_part(E, em_cast(E, v, ir_type_union(E->m, t->args + 1, t->arg_count - 1)), action, context, node);
    bool raises_too = E->env.state == EM_UNREACHABLE;
    ir_value *b = raises_too ? NULL : em_ir(E, second, node, NULL);
    ir_value *r = em_choose_end(E, &choice, b, node);
    return (a || raises) && (b || raises_too) && r ? em_value(r) : em_error();
}

/* total = 0, then total = total + tensor in a loop: a number or a tensor. */
bool em_is_number_or_tensor(em v) {
    const ir_type *t = v.kind == EM_VALUE && v.value ? v.value->type : NULL;
    bool has_tensor = false, has_number = false;
    for (size_t i = 0; t && t->kind == IR_UNION && i < t->arg_count; i++) {
        has_tensor = has_tensor || t->args[i]->kind == IR_TENSOR;
        has_number = has_number || em_is_number(t->args[i]);
        if (t->args[i]->kind != IR_TENSOR && !em_is_number(t->args[i]))
            return false;
    }
    return has_tensor && has_number;
}

typedef struct operation {
    ast_operator op;
    em other;
    bool is_right, in_place, compares; /* is_right: the value is the operand on the right */
} operation;

static em operate_on_part(emitter *E, ir_value *part, const void *context, const ast_node *node) {
    const operation *o = context;
    em a = o->is_right ? o->other : em_value(part), b = o->is_right ? em_value(part) : o->other;
    return o->compares ? em_value(em_compare_two(E, o->op, a, b, node)) : em_binary(E, o->op, a, b, o->in_place, node);
}

em em_binary_by_part(emitter *E, ast_operator op, em a, em b, bool in_place, const ast_node *node) {
    a = op == AST_MATMUL ? em_tensor_part(E, a) : a;
    b = op == AST_MATMUL ? em_tensor_part(E, b) : b;
    bool is_right = !em_is_number_or_tensor(a);
    if (is_right && !em_is_number_or_tensor(b))
        return em_binary(E, op, a, b, in_place, node);
    operation o = {.op = op, .other = is_right ? a : b, .is_right = is_right, .in_place = in_place};
    return each_part(E, is_right ? b.value : a.value, operate_on_part, &o, node);
}

ir_value *em_compare_by_part(emitter *E, ast_operator op, em a, em b, const ast_node *node) {
    bool is_right = !em_is_number_or_tensor(a);
    operation o = {.op = op, .other = is_right ? a : b, .is_right = is_right, .compares = true};
    return em_ir(E, each_part(E, is_right ? b.value : a.value, operate_on_part, &o, node), node, NULL);
}

static em unary_of_part(emitter *E, ir_value *part, const void *context, const ast_node *node) {
    if (!context)
        return em_unary_of(E, part, node);
    return em_value(em_op(E, part->type->kind == IR_TENSOR ? "abs" : "prim_abs", node, 1, part));
}

em em_unary_by_part(emitter *E, ir_value *v, bool is_abs, const ast_node *node) {
    return each_part(E, v, unary_of_part, is_abs ? "abs" : NULL, node);
}

em em_tensor_part(emitter *E, em v) {
    return em_is_number_or_tensor(v) ? em_value(em_check_cast(E, v.value, ir_type_any_tensor(E->m))) : v;
}

/* What the parts share is made once, before the choice. */
static void evaluate_once(emitter *E, em_arguments *args, const ast_node *node) {
    for (size_t i = 0; i < args->count; i++)
        if (args->items[i].v.kind == EM_TUPLE)
            args->items[i].v = em_value(em_ir(E, args->items[i].v, node, NULL));
}

typedef struct call_context {
    ts_str name; /* of the method; empty: the value itself is called */
    const em_arguments *args;
    const ir_type *hint;
} call_context;

static em call_part(emitter *E, ir_value *part, const void *context, const ast_node *node) {
    const call_context *c = context;
    em_arguments copy = {0};
    for (size_t i = 0; i < c->args->count; i++)
        TS_APPEND(E->arena, copy.items, copy.count, copy.capacity, c->args->items[i]);
    em callee = em_value(part);
    if (c->name.length) {
        if (!em_has_attribute(E, callee, c->name) && part->type->kind == IR_CLASS) {
            em_raise_named(E, TS_STR("AttributeError"),
                           ir_build_str(&E->b, ts_arena_format(E->arena, "'%.*s' object has no attribute '%.*s'",
                                                               TS_STR_ARG(fe_class_of(part->type->class_)->bare_name),
                                                               TS_STR_ARG(c->name))));
            return em_error();
        }
        callee = em_attribute_of(E, callee, c->name, node, false);
    }
    return em_call_value(E, callee, &copy, node, c->hint);
}

em em_call_union(emitter *E, ir_value *v, ts_str name, em_arguments *args, const ast_node *node, const ir_type *hint) {
    evaluate_once(E, args, node);
    call_context c = {.name = name, .args = args, .hint = hint};
    return each_part(E, v, call_part, &c, node);
}

static em attribute_part(emitter *E, ir_value *part, const void *context, const ast_node *node) {
    return em_attribute_of(E, em_value(part), *(const ts_str *)context, node, false);
}

bool em_union_attribute(emitter *E, ir_value *v, ts_str name, const ast_node *node, em *out) {
    const ir_type *t = v->type;
    bool all_methods = true;
    size_t found = 0;
    for (size_t i = 0; i < t->arg_count; i++) {
        if (t->args[i]->kind != IR_CLASS && t->args[i]->kind != IR_TUPLE && t->args[i]->kind != IR_ENUM)
            return false;
        const fe_class *c = t->args[i]->class_ ? fe_class_of(t->args[i]->class_) : NULL;
        const fe_function *f = c ? fe_class_method(c, name) : NULL;
        all_methods = all_methods && (!f || !f->is_property);
        found += f != NULL;
    }
    if (found && all_methods) {
        *out = (em){.kind = EM_METHOD, .value = v, .name = name};
        return true;
    }
    *out = each_part(E, v, attribute_part, &name, node);
    return true;
}

/* ---- classes that derive from an object's class ---- */

static bool derives(const fe_binding *b, const fe_class *base) {
    return b->kind == FE_CLASS && b->class_ != base && fe_class_is_a(b->class_, base);
}

/* Whether a known class that derives from c has an attribute of its own under the name. */
bool em_is_overridden(emitter *E, const fe_class *c, ts_str name) {
    const fe_map *names = &E->fe->scope->names;
    for (size_t i = 0; c->has_subclasses && i < names->count; i++) {
        const fe_binding *b = names->values[i];
        ir_class *ir = derives(b, c) ? fe_class_ir(E->fe, b->class_) : NULL;
        if (ir && (em_find_field(ir, name) || fe_class_find_variable(b->class_, name) != fe_class_find_variable(c, name)))
            return true;
    }
    return false;
}

em em_by_class(emitter *E, ir_value *object, em_part_action action, const void *context, const ast_node *node) {
    fe_class *base = fe_class_of(object->type->class_);
    const fe_map *names = &E->fe->scope->names;
    em out = action(E, object, context, node);
    size_t most = 0;
    for (size_t i = 0; i < names->count; i++) {
        const fe_binding *b = names->values[i];
        if (derives(b, base) && b->class_->ancestor_count > most)
            most = b->class_->ancestor_count;
    }
    for (size_t depth = 0; depth <= most; depth++) /* deeper classes are asked first */
        for (size_t i = 0; i < names->count && out.kind != EM_ERROR; i++) {
            const fe_binding *b = names->values[i];
            ir_class *c = derives(b, base) && b->class_->ancestor_count == depth ? fe_class_ir(E->fe, b->class_) : NULL;
            ir_value *otherwise = c ? em_ir(E, out, node, NULL) : NULL;
            if (!otherwise)
                continue;
            em_choice choice;
            em_choose(E, &choice, is_of(E, object, c->type));
            em_choose_other(E, &choice, em_ir(E, action(E, em_cast(E, object, c->type), context, node), node, NULL));
            ir_value *v = em_choose_end(E, &choice, otherwise, node);
            out = v ? em_value(v) : em_error();
        }
    return out;
}

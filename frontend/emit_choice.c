/* frontend/emit_choice.c - a callee or an object that is one of several, told apart at run time:
 * modules[i](x), {"a": f, "b": g}[key](x), getattr(self, name)(x). */
#include "frontend/emit_builtin.h"

typedef em (*of_item)(emitter *E, em item, const void *context, const ast_node *node);

/* if choice == 0: of(items[0]) else: if choice == 1 ... */
static em by_choice(emitter *E, em callee, size_t at, of_item of, const void *context, const ast_node *node) {
    ir_value *test = callee.keys
                         ? em_compare_two(E, AST_EQ, em_value(callee.value), em_value(callee.keys[at]), node)
                         : em_row(E, "eq.int", node, 2, callee.value, ir_build_int(&E->b, (int64_t)at));
    if (!test)
        return em_error();
    em_choice choice;
    em_choose(E, &choice, test);
    ir_value *first = em_ir(E, of(E, callee.items[at], context, node), node, NULL);
    em_choose_other(E, &choice, first);
    ir_value *second = NULL;
    if (at + 1 < callee.count) {
        second = em_ir(E, by_choice(E, callee, at + 1, of, context, node), node, NULL);
    } else if (callee.name.length) { /* of getattr */
        em_raise_no_attribute(E, callee.name, callee.value, node);
    } else if (callee.keys) {
        em_raise_named(E, TS_STR("KeyError"), em_row(E, "prim_repr", node, 1, callee.value));
    } else {
        em_raise_named(E, TS_STR("IndexError"), ir_build_str(&E->b, TS_STR("index out of range")));
    }
    ir_value *v = em_choose_end(E, &choice, second, node);
    return first ? em_value(v) : em_error();
}

typedef struct choice_call {
    const em_arguments *args;
    const ir_type *hint;
} choice_call;

static em call_item(emitter *E, em item, const void *context, const ast_node *node) {
    const choice_call *c = context;
    em_arguments copy = {0};
    for (size_t i = 0; i < c->args->count; i++)
        TS_APPEND(E->arena, copy.items, copy.count, copy.capacity, c->args->items[i]);
    return em_call_value(E, item, &copy, node, c->hint);
}

em em_call_choice(emitter *E, em callee, em_arguments *args, const ast_node *node, const ir_type *hint) {
    for (size_t i = 0; i < args->count; i++) /* evaluated once, before the choice */
        if (args->items[i].v.kind == EM_TUPLE)
            args->items[i].v = em_value(em_ir(E, args->items[i].v, node, NULL));
    choice_call c = {args, hint};
    return by_choice(E, callee, 0, call_item, &c, node);
}

static em attribute_of_item(emitter *E, em item, const void *context, const ast_node *node) {
    return em_attribute_of(E, item, *(const ts_str *)context, node, false);
}

em em_attribute_of_choice(emitter *E, em choice, ts_str name, const ast_node *node) {
    em first = em_attribute_of(E, choice.items[0], name, node, false);
    bool is_value = first.kind == EM_VALUE && !(first.value->type->kind == IR_CLASS &&
                                                first.value->type->class_->base.kind == RT_CLASS_MODULE);
    if (first.kind == EM_ERROR || is_value)
        return first.kind == EM_ERROR ? first : by_choice(E, choice, 0, attribute_of_item, &name, node);
    em out = choice;
    out.items = TS_NEW_ARRAY(E->arena, em, choice.count);
    for (size_t i = 0; i < choice.count; i++) {
        out.items[i] = attribute_of_item(E, choice.items[i], &name, node);
        if (out.items[i].kind == EM_ERROR)
            return em_error();
    }
    return out;
}

/* frontend/emit_set.c - sets: dicts from items to None; frozensets: dicts from items to (). What is no dict's job is here: displays,
 * methods, operators, text. Order is that of a dict but for ints, whose order in CPython's table a
 * function of the library finds (set_order). */
#include "frontend/emit_builtin.h"

bool em_is_frozen_type(const ir_type *t) {
    return t->kind == IR_DICT && t->args[1]->kind == IR_TUPLE && !t->args[1]->arg_count;
}

bool em_is_set_type(const ir_type *t) {
    return t->kind == IR_DICT && (t->args[1]->kind == IR_NONE || em_is_frozen_type(t));
}

bool em_is_set(em v) { return v.kind == EM_VALUE && v.value && em_is_set_type(v.value->type); }

static const ir_type *set_of(emitter *E, const ir_type *item) {
    return ir_type_dict(E->m, item, em_simple(E, IR_NONE));
}

/* A dict's type of values; one whose values are () says Any, since it would be a frozenset's. */
const ir_type *em_value_type(emitter *E, const ir_type *value) {
    return value && value->kind == IR_TUPLE && !value->arg_count ? em_simple(E, IR_ANY) : value;
}

/* What stands beside each item. */
static ir_value *mark_of(emitter *E, const ir_value *set) {
    return em_is_frozen_type(set->type) ? em_tuple_of(E, NULL, 0) : ir_build_none(&E->b);
}

static void add(emitter *E, ir_value *set, ir_value *item, const ast_node *node) {
    em_op(E, "_set_item", node, 3, set, em_same_key(E, set, item, node), mark_of(E, set));
}

typedef struct adder {
    ir_value *set;
    bool has_type, is_frozen;
    const ir_type *hint;
    const ast_node *node;
} adder;

static const ir_type *set_type(emitter *E, const ir_type *item, bool is_frozen) {
    return is_frozen ? ir_type_dict(E->m, item, ir_type_tuple(E->m, NULL, 0, NULL)) : set_of(E, item);
}

static void add_item(emitter *E, em item, void *user) {
    adder *a = user;
    ir_value *v = em_ir(E, em_key(E, item, a->node), a->node, a->hint ? a->hint->args[0] : NULL);
    if (!v)
        return;
    if (!a->has_type)
        a->set->type = set_type(E, ir_type_forget(E->m, v->type), a->is_frozen);
    a->has_type = true;
    v = em_coerce(E, v, a->set->type->args[0], 0, a->node, "the item");
    if (v)
        add(E, a->set, v, a->node);
}

static adder start(emitter *E, const ast_node *node, const ir_type *hint, bool is_frozen) {
    adder a = {.node = node, .is_frozen = is_frozen};
    if (hint && em_is_set_type(hint) && em_is_frozen_type(hint) == is_frozen) {
        a.hint = hint;
        a.has_type = true;
    }
    a.set = em_dict_of(E, NULL, 0, a.hint ? a.hint : set_type(E, em_simple(E, IR_INT), is_frozen));
    return a;
}

static ir_value *set_from(emitter *E, em v, const ast_node *node, const ir_type *hint, bool is_frozen) {
    if (v.kind == EM_ERROR)
        return NULL;
    if (em_is_set(v) && em_is_frozen_type(v.value->type) == is_frozen)
        return em_op(E, "copy", node, 1, v.value);
    adder a = start(E, node, hint, is_frozen);
    if (v.kind == EM_VALUE && (v.value->type->kind == IR_LIST || em_is_set(v)) && !a.has_type) {
        a.set->type = set_type(E, ir_type_forget(E->m, v.value->type->args[0]), is_frozen);
        a.has_type = true;
    }
    return em_for_each(E, v, node, add_item, &a) ? a.set : NULL;
}

/* A fresh set of what v holds. */
ir_value *em_set_from(emitter *E, em v, const ast_node *node, const ir_type *hint) {
    return set_from(E, v, node, hint, false);
}

em em_frozen_set(emitter *E, em_arguments *args, const ast_node *node, const ir_type *hint) {
    if (args->count)
        return em_value(set_from(E, args->items[0].v, node, hint, true));
    return em_value(start(E, node, hint, true).set);
}

em em_set_display(emitter *E, const ast_node *node, const ir_type *hint) {
    adder a = start(E, node, hint, false);
    for (size_t i = 0; i < node->list.count; i++) {
        const ast_node *item = node->list.items[i];
        if (item->kind == AST_STARRED)
            em_for_each(E, em_expression(E, item->left, NULL), node, add_item, &a);
        else
            add_item(E, em_expression(E, item, a.has_type ? a.set->type->args[0] : NULL), &a);
    }
    return em_value(a.set);
}

/* The items as a list, in Python's order where that is certain. */
ir_value *em_set_items(emitter *E, ir_value *set, const ast_node *node) {
    ir_value *keys = em_op(E, "keys", node, 1, set);
    if (!keys || set->type->args[0]->kind != IR_INT)
        return keys;
    return em_op(E, "__set_order", node, 1, keys);
}

/* ---- what loops over one set and asks another ---- */

typedef enum asked { KEEP_COMMON, DROP_COMMON, ADD_MISSING, TOGGLE } asked;

typedef struct filter {
    ir_value *other, *result;
    asked how;
    const ast_node *node;
} filter;

static void filter_item(emitter *E, em item, void *user) {
    filter *f = user;
    ir_value *v = em_ir(E, item, f->node, NULL);
    v = v ? em_coerce(E, v, f->result->type->args[0], 0, f->node, "the item") : NULL;
    if (!v)
        return;
    if (f->how == ADD_MISSING) {
        add(E, f->result, v, f->node);
        return;
    }
    v = em_same_key(E, f->how == TOGGLE ? f->result : f->other, v, f->node);
    ir_value *test = em_row(E, "prim_contains", f->node, 2, f->other, v);
    ir_op *op = ir_build_if(&E->b, test);
    ir_block *here = em_enter(E, op->regions[0]);
    if (f->how == KEEP_COMMON)
        add(E, f->result, v, f->node);
    if (f->how == TOGGLE)
        em_op(E, "Delete", f->node, 2, f->result, v);
    ir_build_yield(&E->b, NULL, 0);
    em_enter(E, op->regions[1]);
    if (f->how == DROP_COMMON || f->how == TOGGLE)
        add(E, f->result, v, f->node);
    ir_build_yield(&E->b, NULL, 0);
    em_leave(E, here);
}

/* a & b, a - b, a | b, a ^ b as a fresh set; b may be any iterable. */
static ir_value *combine(emitter *E, ast_operator op, ir_value *a, em b, const ast_node *node) {
    filter f = {.node = node};
    em walked = b;
    if (op == AST_BITOR || op == AST_BITXOR) {
        f.how = op == AST_BITOR ? ADD_MISSING : TOGGLE;
        f.other = f.result = em_op(E, "copy", node, 1, a);
        if (op == AST_BITXOR && !em_is_set(b))
            walked = em_value(em_set_from(E, b, node, a->type));
    } else {
        f.how = op == AST_BITAND ? KEEP_COMMON : DROP_COMMON;
        f.other = em_is_set(b) ? b.value : em_set_from(E, b, node, a->type);
        f.result = em_dict_of(E, NULL, 0, a->type);
        walked = em_value(a);
    }
    return f.other && f.result && em_for_each(E, walked, node, filter_item, &f) ? f.result : NULL;
}

static ir_value *size(emitter *E, ir_value *set, const ast_node *node) {
    return em_op(E, "len", node, 1, set);
}

/* All of a's items are in b: as many as both have. */
static ir_value *is_subset(emitter *E, ir_value *a, em b, const ast_node *node) {
    ir_value *common = combine(E, AST_BITAND, a, b, node);
    return common ? em_row(E, "eq.int", node, 2, size(E, common, node), size(E, a, node)) : NULL;
}

ir_value *em_set_compare(emitter *E, ast_operator op, ir_value *a, ir_value *b, const ast_node *node) {
    if (op == AST_GT || op == AST_GE)
        return em_set_compare(E, op == AST_GT ? AST_LT : AST_LE, b, a, node);
    ir_value *inside = is_subset(E, a, em_value(b), node);
    if (!inside)
        return NULL;
    ir_value *other = op == AST_LT ? em_row(E, "lt.int", node, 2, size(E, a, node), size(E, b, node))
                      : op == AST_LE ? ir_build_bool(&E->b, true)
                                     : em_row(E, "eq.int", node, 2, size(E, a, node), size(E, b, node));
    ir_value *r = em_op(E, "__and__", node, 2, inside, other);
    return op == AST_NE ? em_row(E, "__not__", node, 1, r) : r;
}

/* The items of `from` take the place of those of `set`, which others may hold, too. */
static void replace(emitter *E, ir_value *set, ir_value *from, const ast_node *node) {
    em_op(E, "clear", node, 1, set);
    em_op(E, "update", node, 2, set, from);
}

em em_set_binary(emitter *E, ast_operator op, ir_value *a, ir_value *b, bool in_place,
                 const ast_node *node) {
    ir_value *r = combine(E, op, a, em_value(b), node);
    if (!r || !in_place)
        return em_value(r);
    replace(E, a, r, node);
    return em_value(a);
}

/* ---- methods ---- */

em em_set_method(emitter *E, ir_value *set, ts_str name, em_arguments *args, const ast_node *node) {
    static const struct { const char *name; ast_operator op; bool in_place; } table[] = {
        {"union", AST_BITOR, false}, {"intersection", AST_BITAND, false}, {"difference", AST_SUB, false},
        {"symmetric_difference", AST_BITXOR, false}, {"update", AST_BITOR, true},
        {"intersection_update", AST_BITAND, true}, {"difference_update", AST_SUB, true},
        {"symmetric_difference_update", AST_BITXOR, true}};
    em none = em_value(ir_build_none(&E->b));
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (!ts_str_is(name, table[i].name))
            continue;
        ir_value *r = args->count ? set : em_op(E, "copy", node, 1, set);
        for (size_t k = 0; k < args->count && r; k++)
            r = combine(E, table[i].op, r, args->items[k].v, node);
        if (r && table[i].in_place)
            replace(E, set, r, node);
        return !r ? em_error() : table[i].in_place ? none : em_value(r);
    }
    bool takes_item = ts_str_is(name, "add") || ts_str_is(name, "discard") || ts_str_is(name, "remove");
    if (takes_item && args->count == 1) {
        ir_value *v = em_ir(E, em_key(E, args->items[0].v, node), node, set->type->args[0]);
        /* set() alone does not say of what: its first item does. */
        if (v && em_retype_dict(E, set, v, ir_build_none(&E->b)))
            return none;
        v = v ? em_coerce(E, v, set->type->args[0], 0, node, "the item") : NULL;
        if (!v)
            return em_error();
        if (ts_str_is(name, "add"))
            add(E, set, v, node);
        else if (ts_str_is(name, "remove"))
            em_op(E, "Delete", node, 2, set, em_same_key(E, set, v, node));
        else
            em_op(E, "pop", node, 3, set, em_same_key(E, set, v, node), ir_build_none(&E->b));
        return none;
    }
    if (ts_str_is(name, "clear") && !args->count) {
        em_op(E, "clear", node, 1, set);
        return none;
    }
    if (ts_str_is(name, "copy") && !args->count)
        return em_value(em_op(E, "copy", node, 1, set));
    if (ts_str_is(name, "pop") && !args->count) {
        em_choice choice;
        em_choose(E, &choice, em_op(E, "Bool", node, 1, size(E, set, node)));
        ir_value *first = em_op(E, "__getitem__", node, 2, em_set_items(E, set, node), ir_build_int(&E->b, 0));
        em_op(E, "Delete", node, 2, set, first);
        em_choose_other(E, &choice, first);
        ir_value *text = ir_build_str(&E->b, TS_STR("'pop from an empty set'"));
        em_raise_named(E, TS_STR("KeyError"), text);
        ir_value *no = em_uninitialized(E, first->type);
        E->env.state = EM_LIVE;
        return em_value(em_choose_end(E, &choice, no, node));
    }
    if (args->count == 1 && ts_str_is(name, "issubset"))
        return em_value(is_subset(E, set, args->items[0].v, node));
    if (args->count == 1 && ts_str_is(name, "issuperset")) {
        ir_value *other = em_set_from(E, args->items[0].v, node, set->type);
        return em_value(other ? is_subset(E, other, em_value(set), node) : NULL);
    }
    if (args->count == 1 && ts_str_is(name, "isdisjoint")) {
        ir_value *common = combine(E, AST_BITAND, set, args->items[0].v, node);
        return em_value(common ? em_row(E, "eq.int", node, 2, size(E, common, node), ir_build_int(&E->b, 0))
                               : NULL);
    }
    EM_UNSUPPORTED(E, node, "the method %.*s of a set is not supported yet", TS_STR_ARG(name));
    return em_error();
}

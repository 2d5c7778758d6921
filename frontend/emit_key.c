/* frontend/emit_key.c - keys of dicts and items of sets that the runtime alone would tell apart otherwise than Python:
 * tuples of a length known only at run time, and objects with an equality of their own. */
#include "frontend/emit_builtin.h"

/* A list that stands for a tuple becomes the tuple: as a list it could not be a key. */
em em_key(emitter *E, em v, const ast_node *node) {
    if (v.kind != EM_VALUE || !(v.is_tuple || v.is_size) || !v.value || v.value->type->kind != IR_LIST)
        return v;
    return em_value(em_row(E, "prim_list_to_tuple", node, 1, v.value));
}

/* Python takes the hash away where a class has an __eq__ and no __hash__ beside it. */
static const fe_class *unhashable_in(emitter *E, const ir_type *t, int depth) {
    const fe_class *c = t->kind == IR_CLASS ? fe_class_of(t->class_) : NULL;
    for (size_t i = 0; c && i <= c->ancestor_count; i++) {
        const fe_class *at = i ? c->ancestors[i - 1] : c;
        if (fe_map_get(&at->methods, TS_STR("__hash__")) || em_dataclass_option(E, at, "frozen", false) ||
            em_dataclass_option(E, at, "unsafe_hash", false))
            return NULL;
        if (fe_map_get(&at->methods, TS_STR("__eq__")) || (at->is_dataclass && em_dataclass_option(E, at, "eq", true)))
            return at->is_library ? NULL : c;
    }
    for (size_t i = 0; (t->kind == IR_TUPLE || t->kind == IR_OPTIONAL) && depth && i < t->arg_count; i++) {
        const fe_class *inner = unhashable_in(E, t->args[i], depth - 1);
        if (inner)
            return inner;
    }
    return NULL;
}

/* The key that the dict holds already where one is equal: the runtime then finds it by identity. One that the
 * objects' classes make unhashable raises. `dict` may be NULL: no key is there yet. */
ir_value *em_same_key(emitter *E, ir_value *dict, ir_value *key, const ast_node *node) {
    bool is_dict = key && key->type->kind == IR_DICT && !em_is_frozen_type(key->type);
    if (!key || !(is_dict || em_has_own_equality(key->type, 8)))
        return key;
    const fe_class *bad = is_dict ? NULL : unhashable_in(E, key->type, 8);
    if (bad || is_dict) {
        em name = em_value(ir_build_str(&E->b, bad ? bad->bare_name : em_is_set_type(key->type) ? TS_STR("set") : TS_STR("dict")));
        em_call_python(E, "builtins.raise_unhashable", &name, 1, node);
        return key;
    }
    if (!dict || !em_has_own_equality(dict->type->args[0], 8))
        return key;
    em args[2] = {em_value(dict), em_value(key)};
    return em_ir(E, em_call_python(E, "builtins.same_key", args, 2, node), node, NULL);
}

/* dict[key] = value for such keys; false: the runtime's own way is right. */
bool em_update_by_keys(emitter *E, ir_value *dict, ir_value *other, const ast_node *node) {
    if (dict->type->kind != IR_DICT || other->type->kind != IR_DICT || !em_has_own_equality(dict->type->args[0], 8))
        return false;
    em args[2] = {em_value(dict), em_value(other)};
    em_call_python(E, "builtins.update_by_keys", args, 2, node);
    return true;
}

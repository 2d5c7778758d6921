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

static void raise_unhashable(emitter *E, ts_str name, const ast_node *node) {
    em text = em_value(ir_build_str(&E->b, name));
    em_call_python(E, "builtins.raise_unhashable", &text, 1, node);
}

/* hash(v): a frozen dataclass has that of the tuple of its fields. */
ir_value *em_hash(emitter *E, ir_value *v, const ast_node *node) {
    const ir_type *t = v->type;
    const fe_class *bad = unhashable_in(E, t, 8);
    if (bad) {
        raise_unhashable(E, bad->bare_name, node);
        return ir_build_int(&E->b, 0);
    }
    if (em_class_has_method(t, "__hash__"))
        return em_ir(E, em_call_method0(E, v, "__hash__", NULL, 0, node), node, NULL);
    bool is_object = t->kind == IR_CLASS;
    if ((!is_object && t->kind != IR_TUPLE) || !em_has_own_equality(t, 8))
        return em_op(E, "hash", node, 1, v);
    size_t count = is_object ? t->class_->field_count : t->arg_count, kept = 0;
    ir_value **parts = TS_NEW_ARRAY(E->arena, ir_value *, count + 1);
    for (size_t i = 0; i < count; i++) {
        const ir_field *f = is_object ? &t->class_->fields[i] : NULL;
        if (f && (f->is_constant || !em_field_option(E, fe_class_of(t->class_), f->name, "compare", true)))
            continue;
        ir_op *get = ir_build_op(&E->b, f ? IR_OP_GET_ATTR : IR_OP_TUPLE_GET, &v, 1, f ? &f->type : &t->args[i], 1);
        get->integer = (int64_t)i;
        if (f)
            get->name = f->name;
        parts[kept] = get->results[0];
        if (em_has_own_equality(parts[kept]->type, 8))
            parts[kept] = em_hash(E, parts[kept], node);
        if (!parts[kept++])
            return NULL;
    }
    return em_op(E, "hash", node, 1, em_tuple_of(E, parts, kept));
}

/* The key that the dict holds already where one is equal: the runtime then finds it by identity. One that the
 * objects' classes make unhashable raises. `dict` may be NULL: no key is there yet. */
ir_value *em_same_key(emitter *E, ir_value *dict, ir_value *key, const ast_node *node) {
    bool is_dict = key && key->type->kind == IR_DICT && !em_is_frozen_type(key->type);
    if (!key || !(is_dict || em_has_own_equality(key->type, 8)))
        return key;
    const fe_class *bad = is_dict ? NULL : unhashable_in(E, key->type, 8);
    if (bad || is_dict) {
        raise_unhashable(E, bad ? bad->bare_name : em_is_set_type(key->type) ? TS_STR("set") : TS_STR("dict"), node);
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

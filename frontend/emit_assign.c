/* frontend/emit_assign.c - assignment to names, attributes, items and tuples of them. */
#include "frontend/emit_builtin.h"

static em_slot *slot_of(emitter *E, ts_str name) {
    size_t slot = (size_t)fe_map_get(&E->variables, name);
    return slot ? &E->env.slots[slot - 1] : NULL;
}

const ir_type *em_hint_of_target(emitter *E, const ast_node *target) {
    if (target->kind == AST_NAME) {
        em_slot *slot = slot_of(E, target->text);
        return slot ? slot->declared : NULL;
    }
    if (target->kind == AST_ATTRIBUTE && target->left->kind == AST_NAME) {
        em_slot *slot = slot_of(E, target->left->text);
        if (slot && slot->is_set && slot->v.kind == EM_VALUE && slot->v.value->type->kind == IR_CLASS) {
            const ir_field *f = em_find_field(slot->v.value->type->class_, target->text);
            return f ? f->type : NULL;
        }
    }
    if (target->kind == AST_SUBSCRIPT) {
        const ir_type *t = em_hint_of_target(E, target->left);
        if (!t && target->left->kind == AST_NAME) {
            em_slot *slot = slot_of(E, target->left->text);
            if (slot && slot->is_set && slot->v.kind == EM_VALUE)
                t = slot->v.value->type;
        }
        if (t && t->kind == IR_LIST && target->right->kind != AST_SLICE)
            return t->args[0];
        if (t && t->kind == IR_LIST)
            return t;
        if (t && t->kind == IR_DICT)
            return t->args[1];
    }
    return NULL;
}

void em_set_variable(emitter *E, size_t index, em v, const ast_node *node) {
    em_slot *slot = &E->env.slots[index];
    const ir_type *declared = slot->declared;
    if (v.kind == EM_TUPLE) {
        bool plain = true;
        for (size_t i = 0; i < v.count; i++)
            plain = plain && (v.items[i].kind == EM_VALUE || v.items[i].kind == EM_TUPLE ||
                              (v.items[i].kind == EM_BINDING && v.items[i].binding->kind == FE_VALUE));
        if (plain) {
            ir_value *t = em_ir(E, v, node, declared);
            v = em_value(t);
        }
    }
    if (v.kind == EM_BINDING && v.binding->kind == FE_VALUE && v.binding->value.tag != RT_TAG_FUNCTION)
        v = em_value(em_ir(E, v, node, declared));
    if (v.kind == EM_ERROR)
        return;
    bool is_archive = !node || !node->source || node->source->is_archive;
    bool stays = (v.kind == EM_ZIP || v.kind == EM_ENUMERATE) && !is_archive && node->kind != AST_ASSIGN;
    if (!is_archive && !stays && em_is_walked_once(v))
        v = em_value(em_iterator(E, v, node));
    bool is_view = v.kind == EM_ITEMS && !is_archive && !E->attempt; /* it follows its dict */
    if (v.kind == EM_RANGE || (v.kind == EM_ITEMS && !is_view) || v.kind == EM_REVERSED || v.kind == EM_GENERATOR)
        v = em_value(em_ir(E, v, node, declared));
    if (v.kind == EM_ERROR)
        return;
    ir_value *value = v.kind == EM_VALUE ? v.value : NULL;
    if (value && declared && !ir_type_is_subtype(value->type, declared)) {
        const ir_type *plain = ir_type_without_none(E->m, declared);
        if (em_conversion_cost(E, value, declared, 0) >= 0 && plain->kind != IR_TENSOR &&
            plain->kind != IR_INT && plain->kind != IR_BOOL) {
            value = em_coerce(E, value, declared, 0, node, "the assigned value");
            v = em_value(value);
        } else {
            declared = NULL; /* the name is bound anew, as Python lets it be */
        }
    }
    slot = &E->env.slots[index]; /* the conversions may have made another environment */
    *slot = (em_slot){.is_set = true, .v = v, .declared = declared};
    if (value && !value->name.length)
        value->name = E->slot_names[index];
    if (E->attempt)
        em_note_assigned(E, index);
}

static void store_field(emitter *E, ir_value *object, ir_class *c, ts_str name, em v,
                        const ir_type *declared, const ast_node *node) {
    fe_class *class_ = fe_class_of(c);
    const ir_field *field = em_find_field(c, name);
    if (!field && class_) {
        ts_str key = ts_arena_format(E->arena, "%.*s.setter", (int)name.length, name.data);
        ts_str archived = ts_arena_format(E->arena, "__%.*s_setter", (int)name.length, name.data);
        fe_function *setter = fe_map_get(&class_->methods, key);
        for (size_t i = 0; !setter && i < class_->ancestor_count; i++)
            setter = fe_map_get(&class_->ancestors[i]->methods, key);
        if (setter || fe_class_method(class_, archived)) {
            em_argument arg = {.v = v, .node = node};
            em_arguments args = {.items = &arg, .count = 1};
            em_call_method(E, object, setter ? key : archived, &args, node);
            return;
        }
    }
    const fe_function *getter = class_ && !field && em_is_script(node) ? fe_class_method(class_, name) : NULL;
    const ast_node *marked = getter && getter->node->decorators.count ? getter->node->decorators.items[0] : NULL;
    if (getter && getter->is_property && marked && !ts_str_is(marked->text, "cached_property")) {
        em_raise_named(E, TS_STR("AttributeError"),
                       ir_build_str(&E->b, ts_arena_format(E->arena, "property '%.*s' of '%.*s' object has no setter",
                                                           TS_STR_ARG(name), TS_STR_ARG(class_->bare_name))));
        return;
    }
    bool is_frozen = class_ && class_->is_dataclass && field && em_dataclass_option(E, class_, "frozen", false);
    if (is_frozen && !(E->function && E->function->owner == class_ && ts_str_is(E->function->bare_name, "__post_init__"))) {
        ts_str text = ts_arena_format(E->arena, "cannot assign to field '%.*s'", TS_STR_ARG(name));
        em_raise_named(E, TS_STR("FrozenInstanceError"), ir_build_str(&E->b, text));
        return;
    }
    if (field && field->is_constant) {
        EM_ERR(E, node, "the constant '%.*s' of %.*s cannot be assigned", TS_STR_ARG(name),
               TS_STR_ARG(c->base.bare_name));
        return;
    }
    ir_value *value = em_ir(E, v, node, field ? field->type : declared);
    if (!value)
        return;
    if (!field) {
        bool may_add = class_ && (c->base.kind == RT_CLASS_PLAIN || c->base.kind == RT_CLASS_EXCEPTION) && !class_->is_archive;
        if (!may_add) {
            bool is_constant = class_ && fe_class_find_variable(class_, name);
            EM_ERR(E, node, is_constant ? "%.*s.%.*s is a constant of the class: assign it in __init__ first"
                                        : "%.*s has no attribute '%.*s' to assign: make it in __init__",
                   TS_STR_ARG(c->base.bare_name), TS_STR_ARG(name));
            return;
        }
        const ir_type *type = declared;
        fe_class_variable *variable = fe_class_find_variable(class_, name);
        if (!type && variable && variable->annotation)
            type = fe_annotation_type(E->fe, class_->scope, variable->annotation);
        if (!type)
            type = ir_type_forget(E->m, value->type);
        em_add_field(E->fe, c, name, type);
        ((ir_field *)(uintptr_t)em_find_field(c, name))->is_inferred = !declared && !(variable && variable->annotation);
        field = em_find_field(c, name);
        if (variable && variable->initial)
            fe_relearn(E->fe); /* objects begin with the class's value */
    }
    ir_value **items;
    size_t item_count;
    const ir_type *wanted = ir_type_without_none(E->m, field->type);
    if (!ir_type_is_subtype(value->type, field->type) && wanted->kind == IR_LIST &&
        em_is_list_literal(value, &items, &item_count) && !item_count)
        value = em_list_of(E, NULL, 0, wanted->args[0]);
    if (!ir_type_is_subtype(value->type, field->type) && em_retype_empty(E, value, ir_type_without_none(E->m, field->type)))
        return;
    if (!ir_type_is_subtype(value->type, field->type) && em_learn_field(E, c, name, value->type))
        return;
    value = em_coerce(E, value, field->type, 0, node, "the assigned value");
    if (!value)
        return;
    em_place(E, node);
    ir_value *operands[2] = {object, em_cast(E, value, field->type)};
    ir_op *op = ir_build_op(&E->b, IR_OP_SET_ATTR, operands, 2, NULL, 0);
    op->name = field->name;
}

/* Class.name = value: the attribute is state of the session. */
static bool assign_class_attribute(emitter *E, fe_class *c, ts_str name, em v, const ast_node *node) {
    fe_class_variable *variable = NULL;
    for (size_t i = 0; i < c->variable_count; i++)
        if (ts_str_equal(c->variables[i].name, name))
            variable = &c->variables[i];
    if (!variable)
        return false;
    ir_value *state = em_class_state(E, c, name);
    if (!state) {
        em old = em_attribute_of(E, em_binding(E, (fe_binding){.kind = FE_CLASS, .class_ = c}), name, node, false);
        return old.kind != EM_ERROR && variable->is_evaluated && em_make_class_state(E, c, name, variable->value);
    }
    em_store_attribute(E, em_value(state), TS_STR("value"), v, NULL, node);
    return true;
}

void em_store_attribute(emitter *E, em object, ts_str name, em v, const ir_type *declared,
                        const ast_node *node) {
    if (object.kind == EM_ERROR || v.kind == EM_ERROR)
        return;
    fe_class *class_ = object.kind == EM_BINDING && object.binding->kind == FE_CLASS ? object.binding->class_ : NULL;
    if (class_ && class_->kind == RT_CLASS_PLAIN && assign_class_attribute(E, class_, name, v, node))
        return;
    if (object.kind != EM_VALUE) {
        EM_UNSUPPORTED(E, node, "assignment to the attribute '%.*s' of this is not supported yet",
                       TS_STR_ARG(name));
        return;
    }
    const ir_type *t = object.value->type;
    if (t->kind == IR_OPTIONAL) {
        object.value = em_check_cast(E, object.value, t->args[0]);
        t = t->args[0];
    }
    if (t->kind == IR_CLASS) {
        store_field(E, object.value, (ir_class *)t->class_, name, v, declared, node);
        return;
    }
    if (t->kind == IR_TENSOR && ts_str_is(name, "requires_grad")) {
        em_op(E, "requires_grad_", node, 2, object.value, em_ir(E, v, node, NULL));
        return;
    }
    if (t->kind == IR_TENSOR && ts_str_is(name, "grad")) { /* passes/differentiate_backward.c */
        em_op(E, "prim_set_grad", node, 2, object.value, em_ir(E, v, node, NULL));
        return;
    }
    if (t->kind == IR_TENSOR && ts_str_is(name, "data")) {
        em_op(E, "set_data", node, 2, object.value, em_ir(E, v, node, NULL));
        return;
    }
    EM_ERR(E, node, "%s has no attribute '%.*s' that can be assigned", em_type_text(E, t),
           TS_STR_ARG(name));
}

/* ---- unpacking ---- */

static void unpack_values(emitter *E, const ast_list *targets, em *items, size_t count,
                          const ast_node *node) {
    size_t star = targets->count;
    for (size_t i = 0; i < targets->count; i++)
        if (targets->items[i]->kind == AST_STARRED)
            star = i;
    bool has_star = star < targets->count;
    if (has_star ? count + 1 < targets->count : count != targets->count) {
        EM_ERR(E, node, "expected %zu values to unpack, found %zu", targets->count, count);
        for (size_t i = 0; i < targets->count; i++)
            em_note_failed(E, targets->items[i]);
        return;
    }
    for (size_t i = 0; i < star; i++)
        em_assign(E, targets->items[i], items[i], node);
    if (!has_star)
        return;
    size_t rest = count + 1 - targets->count;
    /* A list, of one type or of plain values; what else is unlike keeps its types as a tuple. */
    bool same = true, plain = true;
    ir_value **values = TS_NEW_ARRAY(E->arena, ir_value *, rest + 1);
    const ir_type *type = em_simple(E, IR_INT);
    for (size_t i = 0; i < rest; i++) {
        values[i] = em_ir(E, items[star + i], node, NULL);
        if (!values[i])
            return;
        same = same && ir_type_same_shape_of(values[0]->type, values[i]->type);
        plain = plain && (em_is_number(values[i]->type) || values[i]->type->kind == IR_STR || values[i]->type->kind == IR_NONE);
        type = i ? ir_type_join(E->m, type, ir_type_forget(E->m, values[i]->type)) : values[0]->type;
    }
    for (size_t i = 0; i < rest && !same && plain; i++)
        values[i] = em_cast(E, values[i], type);
    em_assign(E, targets->items[star]->left,
              em_value(same || plain ? em_list_of(E, values, rest, type) : em_tuple_of(E, values, rest)), node);
    for (size_t i = star + 1; i < targets->count; i++)
        em_assign(E, targets->items[i], items[i + rest - 1], node);
}

static void unpack_list(emitter *E, const ast_list *targets, ir_value *list, const ast_node *node) {
    const ir_type *element = list->type->args[0];
    size_t star = targets->count;
    for (size_t i = 0; i < targets->count; i++)
        if (targets->items[i]->kind == AST_STARRED)
            star = i;
    if (star == targets->count) {
        const ir_type **types = TS_NEW_ARRAY(E->arena, const ir_type *, targets->count + 1);
        for (size_t i = 0; i < targets->count; i++)
            types[i] = element;
        ir_op *op = ir_build_op(&E->b, IR_OP_LIST_UNPACK, &list, 1, types, targets->count);
        for (size_t i = 0; i < targets->count; i++)
            em_assign(E, targets->items[i], em_value(op->results[i]), node);
        return;
    }
    size_t after = targets->count - star - 1;
    if (star + after) {
        ir_value *length = em_op(E, "len", node, 1, list);
        ir_op *op = ir_build_if(&E->b, em_row(E, "ge.int", node, 2, length,
                                              ir_build_int(&E->b, (int64_t)(star + after))));
        ir_block *here = em_enter(E, op->regions[0]);
        ir_build_yield(&E->b, NULL, 0);
        em_enter(E, op->regions[1]);
        ts_str text = ts_arena_format(E->arena, "not enough values to unpack (expected at least %zu, got ",
                                      star + after);
        ir_value *message = em_row(E, "add.str", node, 2, ir_build_str(&E->b, text),
                                   em_op(E, "str", node, 1, length));
        message = em_row(E, "add.str", node, 2, message, ir_build_str(&E->b, TS_STR(")")));
        em_state state = E->env.state;
        em_raise_named(E, TS_STR("ValueError"), message);
        E->env.state = state;
        ir_build_yield(&E->b, NULL, 0);
        em_leave(E, here);
    }
    ir_value *head_count = ir_build_int(&E->b, (int64_t)star);
    ir_value *one = ir_build_int(&E->b, 1);
    for (size_t i = 0; i < star; i++)
        em_assign(E, targets->items[i],
                  em_value(em_op(E, "__getitem__", node, 2, list, ir_build_int(&E->b, (int64_t)i))), node);
    ir_value *end = after ? ir_build_int(&E->b, -(int64_t)after) : ir_build_none(&E->b);
    em_assign(E, targets->items[star]->left,
              em_value(em_op(E, "slice", node, 4, list, head_count, end, one)), node);
    for (size_t i = 0; i < after; i++)
        em_assign(E, targets->items[star + 1 + i],
                  em_value(em_op(E, "__getitem__", node, 2, list,
                                 ir_build_int(&E->b, (int64_t)i - (int64_t)after))), node);
}

/* The one tuple of as many items; NULL: none, or several. */
static const ir_type *part_to_unpack(const ir_type *t, size_t count) {
    const ir_type *found = NULL;
    for (size_t i = 0; i < t->arg_count; i++) {
        if (t->args[i]->kind != IR_TUPLE || t->args[i]->arg_count != count)
            continue;
        if (found)
            return NULL;
        found = t->args[i];
    }
    return found;
}

void em_unpack(emitter *E, const ast_list *targets, em v, const ast_node *node) {
    if (v.kind == EM_TUPLE) {
        unpack_values(E, targets, v.items, v.count, node);
        return;
    }
    ir_value *value = em_ir(E, v, node, NULL);
    if (!value)
        return;
    const ir_type *t = value->type;
    if (t->kind == IR_OPTIONAL || t->kind == IR_UNION) {
        const ir_type *part = t->kind == IR_UNION ? part_to_unpack(t, targets->count) : t->args[0];
        value = part ? em_check_cast(E, value, part) : value;
        t = value ? value->type : t;
    }
    if (!value)
        return;
    if (t->kind == IR_TUPLE) {
        ir_op *op = ir_build_op(&E->b, IR_OP_TUPLE_UNPACK, &value, 1, t->args, t->arg_count);
        em *items = TS_NEW_ARRAY(E->arena, em, t->arg_count + 1);
        for (size_t i = 0; i < t->arg_count; i++)
            items[i] = em_value(op->results[i]);
        unpack_values(E, targets, items, t->arg_count, node);
    } else if (t->kind == IR_LIST) {
        unpack_list(E, targets, value, node);
    } else if (t->kind == IR_TENSOR) {
        value = em_op(E, "unbind", node, 2, value, ir_build_int(&E->b, 0));
        if (value)
            unpack_list(E, targets, value, node);
    } else if (t->kind == IR_STR || t->kind == IR_DICT || (t->kind == IR_CLASS && t->class_->base.kind == RT_CLASS_PLAIN)) {
        value = t->kind == IR_STR ? em_op(E, "list", node, 1, value) : em_as_list(E, em_value(value), node);
        if (value)
            unpack_list(E, targets, value, node);
    } else {
        EM_ERR(E, node, "expected a tuple or list to unpack, found %s", em_type_text(E, t));
        for (size_t i = 0; i < targets->count; i++)
            em_note_failed(E, targets->items[i]);
    }
}

void em_assign(emitter *E, const ast_node *target, em v, const ast_node *node) {
    if (v.kind == EM_ERROR)
        return;
    switch (target->kind) {
    case AST_NAME: {
        size_t slot = (size_t)fe_map_get(&E->variables, target->text);
        ir_value *global = slot ? NULL : em_global_object(E, target->text);
        if (slot)
            em_set_variable(E, slot - 1, v, node);
        else if (global)
            em_store_attribute(E, em_value(global), TS_STR("value"), v, NULL, node);
        break;
    }
    case AST_TUPLE:
    case AST_LIST:
        em_unpack(E, &target->list, v, node);
        break;
    case AST_ATTRIBUTE:
        em_store_attribute(E, em_expression(E, target->left, NULL), target->text, v, NULL, target);
        break;
    case AST_SUBSCRIPT: {
        ir_value *object = em_expression_ir(E, target->left, NULL);
        if (object)
            em_store_subscript(E, target, object, v, node);
        break;
    }
    case AST_STARRED:
        EM_ERR(E, target, "starred assignment target must be in a list or tuple");
        break;
    default:
        EM_ERR(E, target, "this cannot be assigned to");
        break;
    }
}

void em_annotated(emitter *E, const ast_node *node) {
    const ast_node *inner = node->third;
    if (fe_annotation_is_final(E->fe, E->scope, node->third, &inner) && !inner)
        inner = NULL;
    const ir_type *type = inner ? em_annotation(E, inner) : NULL;
    if (inner && !type)
        return;
    if (node->left->kind == AST_NAME) {
        size_t slot = (size_t)fe_map_get(&E->variables, node->left->text);
        if (!slot)
            return;
        E->env.slots[slot - 1].declared = type;
        if (!node->right)
            return;
        em v = em_expression(E, node->right, type);
        if (v.kind == EM_ERROR)
            return;
        if (type && type->kind == IR_DICT && v.kind == EM_VALUE && em_class_has_method(v.value->type, "as_python")) {
            E->env.slots[slot - 1].declared = NULL; /* a defaultdict or Counter, which is such a dict */
            em_set_variable(E, slot - 1, v, node);
            return;
        }
        ir_value *value = em_ir(E, v, node->right, type);
        /* tolist() and Any take the annotated type. */
        if (value && type && (value->type->kind == IR_ANY || !ir_type_is_subtype(value->type, type)))
            value = em_coerce(E, value, type, 0, node->right, "the value");
        if (!value)
            em_note_failed(E, node->left);
        em kept = em_open_tuple(E->fe, E->scope, inner);
        kept.kind = value ? EM_VALUE : EM_ERROR;
        kept.value = value;
        em_set_variable(E, slot - 1, kept, node);
        return;
    }
    if (!node->right)
        return;
    em v = em_expression(E, node->right, type);
    if (v.kind == EM_ERROR)
        return;
    if (node->left->kind == AST_ATTRIBUTE)
        em_store_attribute(E, em_expression(E, node->left->left, NULL), node->left->text, v, type,
                           node->left);
    else
        em_assign(E, node->left, v, node);
}

void em_augmented(emitter *E, const ast_node *node) {
    const ast_node *target = node->left;
    if (target->kind == AST_SUBSCRIPT) {
        em_augmented_subscript(E, node);
        return;
    }
    em object = em_error(), old;
    if (target->kind == AST_ATTRIBUTE) {
        object = em_expression(E, target->left, NULL);
        if (object.kind == EM_ERROR)
            return;
        old = em_attribute_of(E, object, target->text, target, false);
    } else {
        old = em_expression(E, target, NULL);
    }
    if (old.kind == EM_ERROR)
        return;
    const ir_type *hint = old.kind == EM_VALUE && old.value->type->kind == IR_LIST ? old.value->type : NULL;
    em right = em_expression(E, node->right, hint);
    if (right.kind == EM_ERROR)
        return;
    em_place(E, node);
    em v = em_binary(E, node->op, old, right, true, node);
    if (v.kind == EM_ERROR)
        return;
    if (v.kind == EM_VALUE && old.kind == EM_VALUE && v.value == old.value &&
        target->kind == AST_NAME)
        return; /* changed in place */
    if (target->kind == AST_ATTRIBUTE) {
        /* In place: the attribute holds the same object still. */
        if (v.kind == EM_VALUE && old.kind == EM_VALUE && v.value == old.value)
            return;
        em_store_attribute(E, object, target->text, v, NULL, node);
    } else {
        em_assign(E, target, v, node);
    }
}

void em_delete(emitter *E, const ast_node *node) {
    for (size_t i = 0; i < node->list.count; i++) {
        const ast_node *target = node->list.items[i];
        if (target->kind == AST_NAME) {
            em_slot *slot = slot_of(E, target->text);
            if (!slot || !slot->is_set || slot->defined)
                (void)em_expression(E, target, NULL); /* what is not there cannot be deleted */
            if (slot)
                *slot = (em_slot){.declared = slot->declared};
        } else if (target->kind == AST_SUBSCRIPT) {
            em_delete_subscript(E, target);
        } else {
            EM_UNSUPPORTED(E, target, "del of this is not supported yet");
        }
    }
}

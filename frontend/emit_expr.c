/* frontend/emit_expr.c - expressions: names, literals, choices. */
#include "frontend/emit_builtin.h"

#include "runtime/base/stack.h"

enum { MAX_EXPRESSION_DEPTH = 1500 };

em em_binding(emitter *E, fe_binding b) {
    if (b.kind == FE_VALUE)
        return em_of_value(E, b.value);
    fe_binding *copy = TS_NEW(E->arena, fe_binding);
    *copy = b;
    return (em){.kind = EM_BINDING, .binding = copy};
}

static bool holds_functions(rt_value v) {
    if (v.tag == RT_TAG_FUNCTION)
        return true;
    if (v.tag == RT_TAG_LIST)
        for (size_t i = 0; i < v.as.list->count; i++)
            if (holds_functions(v.as.list->items[i]))
                return true;
    if (v.tag == RT_TAG_TUPLE)
        for (size_t i = 0; i < v.as.tuple->count; i++)
            if (holds_functions(v.as.tuple->items[i]))
                return true;
    rt_dict_entry *e;
    if (v.tag == RT_TAG_DICT)
        for (size_t at = 0; (e = rt_dict_next(v.as.dict, &at));)
            if (holds_functions(e->value))
                return true;
    return false;
}

em em_of_value(emitter *E, rt_value v) {
    if (v.tag == RT_TAG_FUNCTION) {
        fe_binding b = fe_binding_of_value(v);
        if (b.kind == FE_METHOD) {
            ir_value *self = ir_build_const(&E->b, b.value);
            return (em){.kind = EM_METHOD, .value = self, .name = b.function->bare_name,
                        .function = b.function, .class_ = (ir_class *)self->type->class_};
        }
        if (b.kind != FE_VALUE)
            return em_binding(E, b);
    }
    if ((v.tag == RT_TAG_LIST || v.tag == RT_TAG_TUPLE) && holds_functions(v)) {
        size_t count = v.tag == RT_TAG_LIST ? v.as.list->count : v.as.tuple->count;
        const rt_value *values = v.tag == RT_TAG_LIST ? v.as.list->items : v.as.tuple->items;
        em *items = TS_NEW_ARRAY(E->arena, em, count + 1);
        for (size_t i = 0; i < count; i++)
            items[i] = em_of_value(E, values[i]);
        return (em){.kind = EM_TUPLE, .items = items, .count = count};
    }
    ir_value *state = em_changed_constant(E, v);
    if (state)
        return em_attribute_of(E, em_value(state), TS_STR("value"), NULL, false);
    fe_binding *copy = TS_NEW(E->arena, fe_binding);
    *copy = (fe_binding){.kind = FE_VALUE, .value = v};
    return (em){.kind = EM_BINDING, .binding = copy};
}

/* ---- containers ---- */

ir_value *em_list_of(emitter *E, ir_value **items, size_t count, const ir_type *element) {
    const ir_type *type = ir_type_list(E->m, element);
    return ir_build_op(&E->b, IR_OP_LIST, items, count, &type, 1)->results[0];
}

ir_value *em_tuple_of(emitter *E, ir_value **items, size_t count) {
    const ir_type **types = TS_NEW_ARRAY(E->arena, const ir_type *, count + 1);
    for (size_t i = 0; i < count; i++)
        types[i] = items[i]->type;
    const ir_type *type = ir_type_tuple(E->m, types, count, NULL);
    return ir_build_op(&E->b, IR_OP_TUPLE, items, count, &type, 1)->results[0];
}

ir_value *em_dict_of(emitter *E, ir_value **items, size_t count, const ir_type *type) {
    if (count && em_has_own_equality(type->args[0], 8)) { /* the runtime would go by identity */
        ir_value *dict = em_dict_of(E, NULL, 0, type);
        for (size_t i = 0; i < count; i += 2)
            em_op(E, "_set_item", NULL, 3, dict, em_same_key(E, dict, items[i], NULL), items[i + 1]);
        return dict;
    }
    return ir_build_op(&E->b, IR_OP_DICT, items, count, &type, 1)->results[0];
}

/* A list that nobody else holds yet: it may be made anew with another element type. */
bool em_is_list_literal(const ir_value *v, ir_value ***out_items, size_t *out_count) {
    if (!v->def || v->def->opcode != IR_OP_LIST || v->use_count)
        return false;
    *out_items = v->def->operands;
    *out_count = v->def->operand_count;
    return true;
}

static const ir_type *plain_hint(emitter *E, const ir_type *hint, ir_kind kind) {
    if (!hint)
        return NULL;
    if (hint->kind == IR_OPTIONAL)
        hint = hint->args[0];
    if (hint->kind == IR_UNION)
        for (size_t i = 0; i < hint->arg_count; i++)
            if (hint->args[i]->kind == kind)
                return hint->args[i];
    (void)E;
    return hint->kind == kind ? hint : NULL;
}

static bool is_empty_display(const ir_value *v) {
    return v->def && (v->def->opcode == IR_OP_LIST || v->def->opcode == IR_OP_DICT) && !v->def->operand_count &&
           !v->use_count && !em_is_set_type(v->type);
}

/* The element type of a literal's items, which may be converted for it. */
static const ir_type *common_type(emitter *E, ir_value **items, size_t count, const ir_type *wanted,
                                  const ir_type *if_empty, const ast_node *node) {
    if (!count)
        return wanted ? wanted : if_empty;
    bool fits = wanted != NULL;
    for (size_t i = 0; i < count && fits; i++)
        fits = em_conversion_cost(E, items[i], wanted, 0) >= 0;
    if (fits) {
        for (size_t i = 0; i < count; i++) {
            items[i] = em_coerce(E, items[i], wanted, 0, node, "the item");
            if (!items[i])
                return NULL;
        }
        return wanted;
    }
    const ir_type *type = NULL;
    for (size_t i = 0; i < count && !type; i++) /* [] takes the type of the others */
        if (!is_empty_display(items[i]))
            type = ir_type_forget(E->m, items[i]->type);
    for (size_t i = 0; type && i < count; i++)
        if (is_empty_display(items[i]) && items[i]->type->kind == type->kind && items[i]->type != type)
            items[i] = type->kind == IR_LIST ? em_list_of(E, NULL, 0, type->args[0]) : em_dict_of(E, NULL, 0, type);
    type = ir_type_forget(E->m, items[0]->type);
    bool all_numbers = true, has_float = false;
    for (size_t i = 0; i < count; i++) {
        ir_kind k = items[i]->type->kind;
        all_numbers = all_numbers && (k == IR_INT || k == IR_FLOAT);
        has_float = has_float || k == IR_FLOAT;
        type = ir_type_join(E->m, type, ir_type_forget(E->m, items[i]->type));
    }
    if (all_numbers && has_float && em_is_script(node) && type->kind != IR_FLOAT)
        return em_simple(E, IR_NUMBER); /* each stays what it is */
    if (all_numbers && has_float) {
        type = em_simple(E, IR_FLOAT);
        for (size_t i = 0; i < count; i++)
            items[i] = em_coerce(E, items[i], type, 0, node, "the item");
    }
    return type;
}

static em list_literal(emitter *E, const ast_node *node, const ir_type *hint) {
    const ir_type *list_hint = plain_hint(E, hint, IR_LIST);
    const ir_type *element = list_hint ? list_hint->args[0] : NULL;
    bool has_star = false;
    for (size_t i = 0; i < node->list.count; i++)
        has_star = has_star || node->list.items[i]->kind == AST_STARRED;
    ir_value **items = TS_NEW_ARRAY(E->arena, ir_value *, node->list.count + 1);
    em *ems = TS_NEW_ARRAY(E->arena, em, node->list.count + 1);
    size_t count = 0;
    bool functions = false;
    ir_value *total = NULL; /* with stars: lists added up */
    for (size_t i = 0; i < node->list.count; i++) {
        const ast_node *item = node->list.items[i];
        if (item->kind == AST_STARRED) {
            ir_value *part = em_list_of(E, items, count, count ? items[0]->type : em_simple(E, IR_INT));
            em inner = em_expression(E, item->left, NULL);
            em_iteration it;
            bool is_tuple = inner.kind == EM_TUPLE || (inner.kind == EM_VALUE && inner.value->type->kind == IR_TUPLE);
            if (is_tuple && em_iterate(E, inner, item, &it) && !it.count)
                continue;
            ir_value *more = is_tuple ? em_tuple_to_list(E, inner, item) : em_ir(E, inner, item, NULL);
            if (!more)
                return em_error();
            if (more->type->kind != IR_LIST)
                more = em_as_list(E, em_value(more), item);
            if (!more)
                return em_error();
            if (count)
                total = total ? em_op(E, "add", node, 2, total, part) : part;
            total = total ? em_op(E, "add", node, 2, total, more) : em_op(E, "list", item, 1, more);
            count = 0;
            continue;
        }
        em v = em_kept(E, em_expression(E, item, element), item, element);
        if (v.kind == EM_ERROR)
            return v;
        if ((v.kind == EM_BINDING && v.binding->kind != FE_VALUE) || v.kind == EM_CLOSURE ||
            v.kind == EM_METHOD) {
            functions = true;
        } else {
            items[count] = em_ir(E, v, item, element);
            if (!items[count])
                return em_error();
            v = em_value(items[count]);
            const ir_type *t = items[count]->type;
            functions = functions || (!element && t->kind == IR_CLASS && t->class_->base.kind == RT_CLASS_MODULE);
        }
        ems[count++] = v;
    }
    if (functions)
        return (em){.kind = EM_TUPLE, .items = ems, .count = count};
    if (has_star) {
        if (count) {
            ir_value *part = em_list_of(E, items, count, items[0]->type);
            total = total ? em_op(E, "add", node, 2, total, part) : part;
        }
        if (total)
            return em_value(total);
    }
    if (!node->list.count && !element) {
        const ir_type *t = em_empty_type(E, node, ir_type_list(E->m, ir_type_any_tensor(E->m)));
        ir_value *empty = em_list_of(E, NULL, 0, t->args[0]);
        em_note_empty(E, empty, node);
        return em_value(empty);
    }
    const ir_type *type = common_type(E, items, count, element, ir_type_any_tensor(E->m), node);
    if (!type)
        return em_error();
    for (size_t i = 0; i < count; i++)
        items[i] = em_cast(E, items[i], type);
    return em_value(em_list_of(E, items, count, type));
}

static em dict_literal(emitter *E, const ast_node *node, const ir_type *hint) {
    const ir_type *dict_hint = plain_hint(E, hint, IR_DICT);
    if (!node->list.count && !dict_hint) {
        const ir_type *t = ir_type_dict(E->m, em_simple(E, IR_STR), ir_type_any_tensor(E->m));
        ir_value *empty = em_dict_of(E, NULL, 0, em_empty_type(E, node, t));
        em_note_empty(E, empty, node);
        return em_value(empty);
    }
    size_t pairs = node->list.count / 2, count = 0;
    ir_value **keys = TS_NEW_ARRAY(E->arena, ir_value *, pairs + 1);
    ir_value **values = TS_NEW_ARRAY(E->arena, ir_value *, pairs + 1);
    bool has_spread = false;
    for (size_t i = 0; i < pairs; i++)
        has_spread = has_spread || !node->list.items[2 * i];
    ir_value *spread = NULL;
    for (size_t i = 0; i < pairs; i++) {
        const ast_node *key = node->list.items[2 * i], *value = node->list.items[2 * i + 1];
        if (!key) {
            em given = em_expression(E, value, dict_hint);
            if (given.kind == EM_VALUE && em_class_has_method(given.value->type, "keys"))
                given = em_call_python(E, "builtins.dict_of_mapping", &given, 1, value);
            ir_value *other = em_ir(E, given, value, dict_hint);
            if (!other)
                return em_error();
            if (other->type->kind != IR_DICT) {
                EM_ERR(E, value, "expected a dict after **");
                return em_error();
            }
            if (!spread) {
                spread = em_dict_of(E, NULL, 0, other->type);
                for (size_t k = 0; k < count; k++)
                    em_op(E, "_set_item", node, 3, spread, em_same_key(E, spread, keys[k], node), values[k]);
            }
            if (!em_update_by_keys(E, spread, other, node))
                em_op(E, "update", node, 2, spread, other);
            continue;
        }
        const ir_type *key_hint = dict_hint ? dict_hint->args[0] : NULL;
        ir_value *k = em_ir(E, em_key(E, em_expression(E, key, key_hint), key), key, key_hint);
        const ir_type *value_hint = dict_hint ? dict_hint->args[1] : NULL;
        ir_value *v = em_ir(E, em_kept(E, em_expression(E, value, value_hint), value, value_hint), value, value_hint);
        if (!k || !v)
            return em_error();
        if (spread)
            em_op(E, "_set_item", node, 3, spread, em_same_key(E, spread, k, node), v);
        keys[count] = k;
        values[count++] = v;
    }
    if (spread)
        return em_value(spread);
    (void)has_spread;
    const ir_type *key_type = common_type(E, keys, count, dict_hint ? dict_hint->args[0] : NULL,
                                          em_simple(E, IR_STR), node);
    const ir_type *value_type = em_value_type(E, common_type(E, values, count, dict_hint ? dict_hint->args[1] : NULL,
                                                             ir_type_any_tensor(E->m), node));
    if (!key_type || !value_type)
        return em_error();
    if (value_type->kind == IR_NONE) {
        ir_value *dict = em_dict_of(E, NULL, 0, ir_type_dict(E->m, key_type, value_type));
        dict->type = em_open_dict(E, dict, key_type, node);
        for (size_t i = 0; i < count; i++)
            em_op(E, "_set_item", node, 3, dict, em_same_key(E, dict, em_cast(E, keys[i], dict->type->args[0]), node),
                  em_cast(E, values[i], dict->type->args[1]));
        return em_value(dict);
    }
    ir_value **items = TS_NEW_ARRAY(E->arena, ir_value *, 2 * count + 1);
    for (size_t i = 0; i < count; i++) {
        items[2 * i] = em_cast(E, keys[i], key_type);
        items[2 * i + 1] = em_cast(E, values[i], value_type);
    }
    return em_value(em_dict_of(E, items, 2 * count, ir_type_dict(E->m, key_type, value_type)));
}

em em_tuple_literal(emitter *E, const ast_node *node, const ir_type *hint) {
    const ir_type *tuple_hint = plain_hint(E, hint, IR_TUPLE);
    em *items = NULL;
    size_t count = 0, capacity = 0;
    bool failed = false;
    for (size_t i = 0; i < node->list.count; i++) {
        const ast_node *item = node->list.items[i];
        const ir_type *h = tuple_hint && tuple_hint->arg_count == node->list.count
                               ? tuple_hint->args[i] : NULL;
        em v = em_expression(E, item->kind == AST_STARRED ? item->left : item, h);
        failed = failed || v.kind == EM_ERROR;
        if (v.kind == EM_ERROR)
            continue; /* the items after it are told of, too */
        if (item->kind == AST_STARRED) {
            em_iteration it;
            if (!em_iterate(E, v, item, &it))
                return em_error();
            if (!it.is_unrolled) { /* of a length known only at run time, as the whole is then */
                em list = list_literal(E, node, NULL);
                list.is_tuple = list.kind == EM_VALUE;
                return list;
            }
            for (size_t k = 0; k < it.count; k++)
                TS_APPEND(E->arena, items, count, capacity, it.items[k]);
            continue;
        }
        if (h && v.kind == EM_BINDING && v.binding->kind == FE_VALUE)
            v = em_value(em_ir(E, v, item, h));
        TS_APPEND(E->arena, items, count, capacity, v);
    }
    return failed ? em_error() : (em){.kind = EM_TUPLE, .items = items, .count = count};
}

/* ---- to IR values ---- */

/* {"name": function}: a dict of objects that can be called. */
static ir_value *dict_of_functions(emitter *E, const rt_dict *dict, const ast_node *node) {
    ir_value **items = TS_NEW_ARRAY(E->arena, ir_value *, 2 * dict->live_count + 1);
    const ir_type *key = NULL, *value = NULL;
    size_t n = 0;
    rt_dict_entry *e;
    for (size_t at = 0; (e = rt_dict_next(dict, &at)); n += 2) {
        items[n] = em_ir(E, em_of_value(E, e->key), node, NULL);
        items[n + 1] = em_ir(E, em_of_value(E, e->value), node, NULL);
        if (!items[n] || !items[n + 1])
            return NULL;
        const ir_type *k = ir_type_forget(E->m, items[n]->type), *t = ir_type_forget(E->m, items[n + 1]->type);
        key = key ? ir_type_join(E->m, key, k) : k;
        value = value ? ir_type_join(E->m, value, t) : t;
    }
    for (size_t i = 0; i < n; i++)
        items[i] = em_cast(E, items[i], i % 2 ? value : key);
    return em_dict_of(E, items, n, ir_type_dict(E->m, key, value));
}

static void append_item(emitter *E, em item, void *user) {
    ir_value **list = user;
    ir_value *v = em_ir(E, item, NULL, NULL);
    if (!v)
        return;
    const ir_type *type = ir_type_list(E->m, ir_type_forget(E->m, v->type));
    if ((*list)->type->args[0]->kind == IR_NONE)
        (*list)->type = type;
    em_row(E, "append.t", NULL, 2, *list, em_cast(E, v, (*list)->type->args[0]));
}

ir_value *em_list_by_loop(emitter *E, em v, const ast_node *node) {
    ir_value *list = em_list_of(E, NULL, 0, em_simple(E, IR_NONE));
    if (!em_for_each(E, v, node, append_item, &list))
        return NULL;
    if (list->type->args[0]->kind == IR_NONE)
        list->type = ir_type_list(E->m, ir_type_any_tensor(E->m));
    return list;
}

ir_value *em_ir(emitter *E, em v, const ast_node *node, const ir_type *hint) {
    switch (v.kind) {
    case EM_ERROR:
        return NULL;
    case EM_VALUE:
        return v.value;
    case EM_BINDING:
        if (v.binding->kind == FE_VALUE) {
            rt_value x = v.binding->value;
            if (x.tag == RT_TAG_DICT && holds_functions(x) && node && node->source && !node->source->is_archive)
                return dict_of_functions(E, x.as.dict, node);
            const ir_type *type = em_type_of_constant(E, x);
            const ir_type *h = x.tag == RT_TAG_LIST ? plain_hint(E, hint, IR_LIST)
                               : x.tag == RT_TAG_DICT ? plain_hint(E, hint, IR_DICT) : NULL;
            bool empty = (x.tag == RT_TAG_LIST && !x.as.list->count) ||
                         (x.tag == RT_TAG_DICT && !x.as.dict->live_count);
            if (h && empty)
                type = h;
            return ir_build_const_typed(&E->b, x, type);
        }
        break;
    case EM_TUPLE: {
        ir_value **items = TS_NEW_ARRAY(E->arena, ir_value *, v.count + 1);
        const ir_type *t = plain_hint(E, hint, IR_TUPLE);
        for (size_t i = 0; i < v.count; i++) {
            const ir_type *one = t && t->arg_count == v.count ? t->args[i] : NULL;
            items[i] = em_ir(E, em_kept(E, v.items[i], node, one), node, one);
            if (!items[i])
                return NULL;
        }
        return em_tuple_of(E, items, v.count);
    }
    case EM_RANGE:
        return em_row(E, "prim_range", node, 3, v.items[0].value, v.items[1].value, v.items[2].value);
    case EM_ITEMS:
        return em_op(E, ts_arena_copy(E->arena, v.name.data, v.name.length), node, 1, v.value);
    case EM_REVERSED:
    case EM_ENUMERATE:
    case EM_ZIP:
    case EM_CHILDREN:
        return em_list_by_loop(E, v, node);
    case EM_GENERATOR: {
        em list = em_comprehension(E, v.node, hint);
        return list.kind == EM_VALUE ? list.value : NULL;
    }
    case EM_METHOD:
    case EM_CLOSURE:
    case EM_CHOICE:
    case EM_DTYPE_INFO:
    case EM_SUPER:
        break;
    case EM_EXCEPTION:
        return em_exception_object(E, v);
    }
    bool is_unknown = v.kind == EM_METHOD && v.value && !v.function && !fe_operator_exists(E->fe, v.name);
    if (em_is_function(v) && !is_unknown) {
        size_t errors = E->fe->diagnostics->error_count;
        ir_value *object = em_function_object(E, v, node);
        if (object || E->fe->relearn || E->fe->diagnostics->error_count > errors)
            return object;
    }
    if (is_unknown)
        EM_ERR(E, node, "%s has no attribute '%.*s'", em_type_text(E, v.value->type), TS_STR_ARG(v.name));
    else
        EM_UNSUPPORTED(E, node, "a function, class or module as a value at run time is not supported yet");
    return NULL;
}

ir_value *em_expression_ir(emitter *E, const ast_node *node, const ir_type *hint) {
    return em_ir(E, em_expression(E, node, hint), node, hint);
}

/* ---- names ---- */

static ir_value *check_defined(emitter *E, em_slot *slot, const ast_node *node) {
    em_state state = E->env.state;
    ir_value *v = slot->v.value;
    ir_op *op = ir_build_if(&E->b, slot->defined);
    ir_block *here = em_enter(E, op->regions[1]);
    ir_value *message = ir_build_str(
        &E->b, ts_arena_format(E->arena, "cannot access local variable '%.*s' where it is not "
                                         "associated with a value", TS_STR_ARG(node->text)));
    em_raise_named(E, TS_STR("UnboundLocalError"), message);
    ir_build_yield(&E->b, NULL, 0);
    em_enter(E, op->regions[0]);
    ir_build_yield(&E->b, NULL, 0);
    em_leave(E, here);
    E->env.state = state;
    slot->defined = NULL;
    return v;
}

static em name(emitter *E, const ast_node *node) {
    for (size_t i = E->local_count; i-- > 0;)
        if (ts_str_equal(E->locals[i].name, node->text))
            return E->locals[i].v;
    size_t index = (size_t)fe_map_get(&E->variables, node->text);
    if (index) {
        em_slot *slot = &E->env.slots[index - 1];
        if (slot->is_set) {
            if (slot->defined && slot->v.kind == EM_VALUE)
                return em_value(check_defined(E, slot, node));
            return slot->v;
        }
        TS_APPEND(E->arena, E->read_undefined, E->read_undefined_count, E->read_undefined_capacity,
                  index - 1);
        bool is_ours = node->text.length && node->text.data[0] == '$'; /* no name of the script: told of where it failed */
        if (!E->failed || !(is_ours || fe_map_get(&E->failed_names, node->text)))
            EM_ERR(E, node, "the variable '%.*s' is used before it is assigned",
                   TS_STR_ARG(node->text));
        return em_error();
    }
    if (E->function && E->function->is_class_method && E->function->node->parameters.count &&
        ts_str_equal(E->function->node->parameters.items[0].name, node->text))
        return em_binding(E, (fe_binding){.kind = FE_CLASS, .class_ = E->function->owner});
    ir_value *global = em_global_object(E, node->text);
    if (global)
        return em_attribute_of(E, em_value(global), TS_STR("value"), node, false);
    fe_binding b = fe_scope_lookup(E->fe, E->scope, node->text);
    if (b.kind == FE_UNBOUND) {
        EM_ERR(E, node, "the name '%.*s' is not defined", TS_STR_ARG(node->text));
        return em_error();
    }
    return em_binding(E, b);
}

/* ---- choices ---- */

void em_choose(emitter *E, em_choice *c, ir_value *condition) {
    if (!condition) { /* reported already */
        E->failed = true;
        condition = ir_build_bool(&E->b, false);
    }
    c->saved = E->env.slots[EM_SLOT_VALUE];
    E->env.slots[EM_SLOT_VALUE] = (em_slot){0};
    c->before = em_env_copy(E);
    c->op = ir_build_if(&E->b, condition);
    c->here = em_enter(E, c->op->regions[0]);
}

void em_choose_other(emitter *E, em_choice *c, ir_value *first) {
    if (first)
        E->env.slots[EM_SLOT_VALUE] = (em_slot){.is_set = true, .v = em_value(first)};
    c->a = (em_branch){.block = E->b.block, .env = E->env};
    em_enter(E, c->op->regions[1]);
    E->env = c->before;
    E->env = em_env_copy(E);
}

ir_value *em_choose_end(emitter *E, em_choice *c, ir_value *second, const ast_node *node) {
    if (second)
        E->env.slots[EM_SLOT_VALUE] = (em_slot){.is_set = true, .v = em_value(second)};
    em_branch b = {.block = E->b.block, .env = E->env};
    em_leave(E, c->here);
    em_merge(E, c->op, &c->before, &c->a, &b, node ? node->offset + node->length : 0);
    em_branches_release(E, &c->before, &c->a, &b);
    em_slot v = E->env.slots[EM_SLOT_VALUE];
    E->env.slots[EM_SLOT_VALUE] = c->saved;
    return v.is_set ? v.v.value : NULL;
}

static em conditional(emitter *E, const ast_node *node, const ir_type *hint) {
    em_condition c = em_condition_of(E, node->test);
    if (c.known >= 0) {
        em_env saved = em_env_copy(E);
        em_apply_facts(E, c.known ? &c.if_true : &c.if_false);
        em v = em_expression(E, c.known ? node->left : node->right, hint);
        (void)saved;
        return v;
    }
    if (!c.value)
        return em_error();
    em_choice choice;
    em_choose(E, &choice, c.value);
    em_apply_facts(E, &c.if_true);
    ir_value *a = em_expression_ir(E, node->left, hint);
    em_choose_other(E, &choice, a);
    em_apply_facts(E, &c.if_false);
    ir_value *b = em_expression_ir(E, node->right, hint ? hint : a ? a->type : NULL);
    if (a && b && hint && !ir_type_same_shape_of(a->type, b->type) &&
        em_conversion_cost(E, b, hint, 0) >= 0)
        b = em_coerce(E, b, hint, 0, node, "the value");
    ir_value *v = em_choose_end(E, &choice, b, node);
    if (em_is_guessing(E) && !(a && b)) /* a function that calls itself: what the other way gives */
        return em_value(a || b ? em_uninitialized(E, a ? a->type : b->type) : NULL);
    return a && b ? em_value(v) : em_error();
}

static em chain(emitter *E, const ast_node *node) {
    em v = em_expression(E, node->list.items[0], NULL);
    for (size_t i = 1; i < node->list.count && v.kind != EM_ERROR; i++)
        v = em_binary(E, node->ops[i - 1], v, em_expression(E, node->list.items[i], NULL), false, node);
    return v;
}

static em walrus(emitter *E, const ast_node *node, const ir_type *hint) {
    em v = em_expression(E, node->left, hint);
    if (node->third) {
        if (v.kind != EM_ERROR)
            em_assign(E, node->third, v, node);
        return v;
    }
    size_t slot = (size_t)fe_map_get(&E->variables, node->text);
    if (slot && v.kind != EM_ERROR) {
        em_set_variable(E, slot - 1, v, node);
        v = E->env.slots[slot - 1].v;
    }
    return v;
}

static em expression(emitter *E, const ast_node *node, const ir_type *hint) {
    switch (node->kind) {
    case AST_ELLIPSIS:
        return em_binding(E, (fe_binding){.kind = FE_NAME, .path = TS_STR("builtins.Ellipsis")});
    case AST_NAME:
        return name(E, node);
    case AST_INT:
        if (node->is_big) {
            EM_UNSUPPORTED(E, node, "an integer beyond 64 bits is not supported yet");
            return em_error();
        }
        return em_value(ir_build_int(&E->b, node->integer));
    case AST_FLOAT:
        return em_value(ir_build_float(&E->b, node->number));
    case AST_IMAGINARY: {
        rt_value c;
        ts_status status = rt_complex_make(0.0, node->number, &c);
        if (status) {
            ts_status_release(status);
            return em_error();
        }
        ir_value *v = ir_build_const(&E->b, c);
        rt_release(c);
        return em_value(v);
    }
    case AST_STRING:
        return em_value(ir_build_str(&E->b, node->text));
    case AST_FSTRING:
        return em_value(em_fstring(E, node));
    case AST_TRUE:
    case AST_FALSE:
        return em_value(ir_build_bool(&E->b, node->kind == AST_TRUE));
    case AST_NONE:
        return em_value(ir_build_none(&E->b));
    case AST_TUPLE:
        return em_tuple_literal(E, node, hint);
    case AST_LIST:
        return em_sure_list(list_literal(E, node, hint));
    case AST_DICT:
        return dict_literal(E, node, hint);
    case AST_UNARY:
        return em_unary(E, node);
    case AST_BINARY: {
        em a = em_expression(E, node->left, NULL);
        em b = em_expression(E, node->right, NULL);
        em_place(E, node);
        return em_binary(E, node->op, a, b, false, node);
    }
    case AST_CHAIN:
        return chain(E, node);
    case AST_COMPARE:
        return em_compare(E, node);
    case AST_CONDITIONAL:
        return conditional(E, node, hint);
    case AST_CALL:
        return em_call(E, node, hint);
    case AST_ATTRIBUTE:
        return em_attribute(E, node);
    case AST_SUBSCRIPT:
        return em_subscript(E, node);
    case AST_LAMBDA:
        return (em){.kind = EM_CLOSURE, .node = node};
    case AST_WALRUS:
        return walrus(E, node, hint);
    case AST_LIST_COMP:
        return em_sure_list(em_comprehension(E, node, hint));
    case AST_DICT_COMP:
    case AST_SET_COMP:
        return em_comprehension(E, node, hint);
    case AST_GENERATOR:
        return (em){.kind = EM_GENERATOR, .node = node};
    case AST_SET:
        return em_set_display(E, node, hint);
    case AST_YIELD_EXPR:
        EM_UNSUPPORTED(E, node, "yield is not supported yet");
        return em_error();
    case AST_AWAIT:
        EM_UNSUPPORTED(E, node, "await is not supported yet");
        return em_error();
    default:
        EM_UNSUPPORTED(E, node, "this expression (%s) is not supported yet", ast_kind_name(node->kind));
        return em_error();
    }
}


em em_expression(emitter *E, const ast_node *node, const ir_type *hint) {
    if (++E->depth > MAX_EXPRESSION_DEPTH || TS_STACK_IS_LOW(E->fe->stack_limit)) {
        EM_ERR(E, node, "the code is nested too deeply");
        E->depth--;
        return em_error();
    }
    /* Leaves keep the place of what holds them: a place costs a walk along its line. */
    bool is_leaf = node->kind == AST_NAME || node->kind == AST_INT || node->kind == AST_FLOAT ||
                   node->kind == AST_STRING || node->kind == AST_NONE || node->kind == AST_TRUE ||
                   node->kind == AST_FALSE;
    if (!is_leaf)
        em_place(E, node);
    em v = node->kind == AST_BOOLOP ? em_boolop(E, node, hint) : expression(E, node, hint);
    E->depth--;
    return v;
}

/* frontend/emit_construct.c - calls of classes: exceptions, named tuples, dataclasses, enums, objects. */
#include "frontend/emit_builtin.h"

/* ---- construction ---- */

static em exception_of(emitter *E, fe_class *c, em_arguments *args, const ast_node *node) {
    em out = {.kind = EM_EXCEPTION};
    fe_binding *b = TS_NEW(E->arena, fe_binding);
    *b = (fe_binding){.kind = FE_CLASS, .class_ = c};
    out.binding = b;
    if (args->count)
        out.value = em_exception_message(E, c, args, node);
    out.count = args->count;
    out.items = TS_NEW_ARRAY(E->arena, em, args->count + 1);
    for (size_t i = 0; i < args->count; i++)
        out.items[i] = args->items[i].v;
    return out.value || !args->count ? out : em_error();
}

/* default of a NamedTuple's or dataclass's field */
static em field_default(emitter *E, fe_class *c, ts_str name, const ir_type *type, const ast_node *node) {
    fe_class_variable *v = fe_class_find_variable(c, name);
    if (!v || !v->initial) {
        EM_ERR(E, node, "%.*s: argument '%.*s' is missing", TS_STR_ARG(c->bare_name), TS_STR_ARG(name));
        return em_error();
    }
    if (v->initial->kind == AST_CALL) {
        fe_binding b = fe_resolve_dotted(E->fe, c->scope, v->initial->left);
        if (b.kind == FE_NAME && ts_str_is(b.path, "dataclasses.field")) {
            for (size_t i = 0; i < v->initial->list.count; i++) {
                const ast_node *k = v->initial->list.items[i];
                if (k->kind != AST_KEYWORD)
                    continue;
                rt_value value;
                if (ts_str_is(k->text, "default") &&
                    fe_evaluate_expression(E->fe, c->scope, k->left, &value)) {
                    em out = em_value(ir_build_const(&E->b, value));
                    rt_release(value);
                    return out;
                }
                if (ts_str_is(k->text, "default_factory")) {
                    if (type->kind == IR_LIST)
                        return em_value(em_list_of(E, NULL, 0, type->args[0]));
                    if (type->kind == IR_DICT)
                        return em_value(em_dict_of(E, NULL, 0, type));
                    fe_scope *saved = E->scope;
                    E->scope = c->scope;
                    em callee = k->left->kind == AST_LAMBDA ? (em){.kind = EM_CLOSURE, .node = k->left}
                                                            : em_expression(E, k->left, NULL);
                    em_arguments none = {0};
                    em out = em_call_value(E, callee, &none, node, type);
                    E->scope = saved;
                    return out;
                }
            }
            EM_ERR(E, node, "%.*s: argument '%.*s' is missing", TS_STR_ARG(c->bare_name), TS_STR_ARG(name));
            return em_error();
        }
    }
    rt_value value;
    if (!fe_evaluate_expression(E->fe, c->scope, v->initial, &value)) {
        E->failed = true;
        return em_error();
    }
    ir_value *out = ir_build_const(&E->b, value);
    rt_release(value);
    return em_value(out);
}

static bool has_field_default(const fe_class_variable *v) {
    for (size_t i = 0; v && v->initial && i < v->initial->list.count; i++)
        if (ts_str_is(v->initial->list.items[i]->text, "default") ||
            ts_str_is(v->initial->list.items[i]->text, "default_factory"))
            return true;
    return false;
}

static bool bind_fields(emitter *E, fe_class *c, const ir_class *ir, em_arguments *args,
                        const ast_node *node, ir_value **out) {
    size_t positional = 0;
    for (size_t i = 0; i < args->count; i++)
        positional += !args->items[i].name.length;
    if (positional > ir->field_count) {
        EM_ERR(E, node, "%.*s takes %zu argument%s, %zu were given", TS_STR_ARG(c->bare_name),
               ir->field_count, ir->field_count == 1 ? "" : "s", positional);
        return false;
    }
    for (size_t k = 0; k < args->count; k++)
        if (args->items[k].name.length && !em_find_field(ir, args->items[k].name)) {
            EM_ERR(E, node, "%.*s has no field '%.*s'", TS_STR_ARG(c->bare_name),
                   TS_STR_ARG(args->items[k].name));
            return false;
        }
    for (size_t i = 0; i < ir->field_count; i++) {
        const ir_field *f = &ir->fields[i];
        em v = {.kind = EM_ERROR};
        bool given = false;
        for (size_t k = 0; k < args->count && !given; k++)
            if (args->items[k].name.length ? ts_str_equal(args->items[k].name, f->name) : k == i) {
                v = args->items[k].v;
                given = true;
            }
        if (!given && c->is_dataclass && !em_field_option(E, c, f->name, "init", true) &&
            !has_field_default(fe_class_find_variable(c, f->name))) {
            out[i] = NULL; /* __post_init__ sets it */
            continue;
        }
        if (!given)
            v = field_default(E, c, f->name, f->type, node);
        if (c->is_open_tuple) {
            out[i] = em_ir(E, v, node, NULL);
            if (!out[i])
                return false;
            continue;
        }
        out[i] = em_ir(E, v, node, f->type);
        out[i] = em_coerce(E, out[i], f->type, 0, node, "the field");
        if (!out[i])
            return false;
        out[i] = em_cast(E, out[i], f->type);
    }
    return true;
}

ir_value *em_new_object(emitter *E, ir_class *c) {
    ir_op *op = ir_build_op(&E->b, IR_OP_NEW_OBJECT, NULL, 0, &c->type, 1);
    op->type = c->type;
    return op->results[0];
}

/* Fields found with the types of before are found anew. */
static void forget_fields(emitter *E, const fe_class *c) {
    if (!c->ir || c->has_objects)
        return;
    ir_field *kept = TS_NEW_ARRAY(E->arena, ir_field, c->ir->field_count + 1);
    size_t count = 0;
    for (size_t i = 0; i < c->ir->field_count; i++)
        if (!c->ir->fields[i].is_inferred)
            kept[count++] = c->ir->fields[i];
    fe_ir_class_set_fields(E->fe, c->ir, kept, count);
}

/* Parameters of __init__ without an annotation take the types of what all calls give. True: all is emitted anew. */
static bool learn_init(emitter *E, fe_function *init, em_arguments *args, const ast_node *node) {
    const ast_parameters *p = &init->node->parameters;
    const ir_type **types = TS_NEW_ARRAY(E->arena, const ir_type *, p->count + 1);
    bool found = false;
    for (size_t i = 0; i < p->count; i++)
        types[i] = init->given_types ? init->given_types[i] : NULL;
    for (size_t i = 0, next = 1; i < args->count; i++) {
        size_t at = args->items[i].name.length ? 1 : next++;
        bool is_list = ts_str_is(args->items[i].name, "*");
        size_t star = 0;
        while (star < p->count && !p->items[star].is_star)
            star++;
        if (star < p->count && (is_list || (!args->items[i].name.length && at >= star)))
            at = star;
        while (!is_list && args->items[i].name.length && at < p->count && !ts_str_equal(p->items[at].name, args->items[i].name))
            at++;
        if (at >= p->count || p->items[at].annotation || p->items[at].is_double_star)
            continue;
        ir_value *v = em_ir(E, args->items[i].v, args->items[i].node ? args->items[i].node : node, NULL);
        if (!v)
            continue;
        args->items[i].v.kind = EM_VALUE;
        args->items[i].v.value = v;
        const ir_type *t = ir_type_forget(E->m, is_list && v->type->kind == IR_LIST ? v->type->args[0] : v->type);
        if (p->items[at].default_value && p->items[at].default_value->kind == AST_NONE)
            t = ir_type_join(E->m, t, em_simple(E, IR_NONE));
        ir_value **items;
        size_t count;
        bool is_empty = em_is_list_literal(v, &items, &count) && !count;
        bool is_plain = !types[at] && ir_type_is_subtype(t, ir_type_any_tensor(E->m));
        const ir_type *tensor = ir_type_any_tensor(E->m); /* [] and {} of nobody knows what yet */
        bool is_open = types[at] && (types[at] == ir_type_list(E->m, tensor) ||
                                     types[at] == ir_type_dict(E->m, em_simple(E, IR_STR), tensor));
        if (is_open && t != types[at] && t->kind == types[at]->kind)
            types[at] = NULL;
        if (is_plain || (types[at] && (ir_type_is_subtype(t, types[at]) || is_empty)))
            continue;
        if (!types[at] && p->items[at].default_value && p->items[at].default_value->kind != AST_NONE)
            continue; /* the default says which */
        types[at] = types[at] ? ir_type_join(E->m, types[at], t) : t;
        found = true;
    }
    if (found) {
        init->given_types = types;
        forget_fields(E, init->owner);
        fe_relearn(E->fe);
    }
    return found;
}

em em_enum_member_named(emitter *E, const fe_class *c, ir_value *name, size_t at, const ast_node *node) {
    while (at < c->variable_count && c->variables[at].value.tag != RT_TAG_ENUM)
        at++;
    if (at == c->variable_count) {
        em_raise_named(E, TS_STR("KeyError"), em_row(E, "prim_repr", node, 1, name));
        return em_error();
    }
    em_choice choice;
    em_choose(E, &choice, em_row(E, "eq.str", node, 2, name, ir_build_str(&E->b, c->variables[at].name)));
    em_choose_other(E, &choice, em_ir(E, em_of_value(E, c->variables[at].value), node, NULL));
    ir_value *other = em_ir(E, em_enum_member_named(E, c, name, at + 1, node), node, NULL);
    return em_value(em_choose_end(E, &choice, other, node));
}

/* The member with the value: one test after the other. */
static em member_of(emitter *E, const ir_class *ir, ir_value *v, size_t at, const ast_node *node) {
    if (at == ir->enum_member_count) {
        ts_str text = ts_arena_format(E->arena, " is not a valid %.*s", TS_STR_ARG(ir->base.bare_name));
        em_raise_named(E, TS_STR("ValueError"), em_row(E, "add.str", node, 2, em_row(E, "prim_repr", node, 1, v),
                                                       ir_build_str(&E->b, text)));
        return em_error();
    }
    em member = em_of_value(E, ir->enum_members[at]);
    ir_value *value = ir_build_const(&E->b, ir->enum_members[at].as.enumeration->value);
    em_choice choice;
    em_choose(E, &choice, em_compare_two(E, AST_EQ, em_value(v), em_value(value), node));
    em_choose_other(E, &choice, em_ir(E, member, node, NULL));
    ir_value *other = em_ir(E, member_of(E, ir, v, at + 1, node), node, NULL);
    return em_value(em_choose_end(E, &choice, other, node));
}

/* Fields that are attributes of the class, too, begin with its value. */
static void class_values(emitter *E, fe_class *c, const ir_class *ir, ir_value *object, const ast_node *node) {
    for (size_t i = 0; i < ir->field_count && !c->is_dataclass; i++) {
        const ir_field *f = &ir->fields[i];
        fe_class_variable *variable = fe_class_find_variable(c, f->name);
        if (!variable || !variable->initial || f->is_constant)
            continue;
        em value = em_attribute_of(E, em_binding(E, (fe_binding){.kind = FE_CLASS, .class_ = c}), f->name, node, true);
        em_store_attribute(E, em_value(object), f->name, value, NULL, node);
    }
}

/* The first abstract method that no class defines, where abc.ABC is among the bases; NULL. */
static const fe_function *abstract_method(emitter *E, const fe_class *c) {
    const fe_function *found = NULL;
    bool is_abc = false;
    for (size_t i = 0; i <= c->ancestor_count; i++) {
        const fe_class *at = i ? c->ancestors[i - 1] : c;
        for (size_t k = 0; at->node && k < at->node->list.count; k++) {
            fe_binding b = fe_resolve_dotted(E->fe, at->scope, at->node->list.items[k]);
            is_abc = is_abc || (b.kind == FE_NAME && ts_str_is(b.path, "abc.ABC"));
        }
        for (size_t k = 0; k < at->methods.count && !found; k++) {
            const fe_function *f = at->methods.values[k];
            if (f->is_abstract && fe_class_method(c, at->methods.keys[k]) == f)
                found = f;
        }
    }
    return is_abc ? found : NULL;
}

em em_construct(emitter *E, fe_class *c, em_arguments *args, const ast_node *node) {
    if (c->kind == RT_CLASS_EXCEPTION && !em_is_object_exception(c))
        return exception_of(E, c, args, node);
    if (c->kind == RT_CLASS_EXCEPTION && c->is_dataclass) {
        EM_UNSUPPORTED(E, node, "%.*s, a dataclass that is an exception, is not supported yet", TS_STR_ARG(c->bare_name));
        return em_error();
    }
    if (em_is_open_class(c))
        return em_construct_open(E, c, args, node);
    ir_class *ir = fe_class_ir(E->fe, c);
    if (!ir || c->kind == RT_CLASS_MODULE) {
        EM_UNSUPPORTED(E, node, "making the module %.*s outside __init__ is not supported yet",
                       TS_STR_ARG(c->bare_name));
        return em_error();
    }
    ir_value **fields = TS_NEW_ARRAY(E->arena, ir_value *, ir->field_count + 1);
    if (c->kind == RT_CLASS_NAMED_TUPLE) {
        if (!bind_fields(E, c, ir, args, node, fields))
            return em_error();
        const ir_type *type = ir->type, **types = TS_NEW_ARRAY(E->arena, const ir_type *, ir->field_count + 1);
        for (size_t i = 0; i < ir->field_count; i++)
            types[i] = fields[i]->type;
        if (c->is_open_tuple)
            type = ir_type_tuple(E->m, types, ir->field_count, ir);
        return em_value(ir_build_op(&E->b, IR_OP_TUPLE, fields, ir->field_count, &type, 1)->results[0]);
    }
    if (c->kind == RT_CLASS_ENUM) {
        if (args->count != 1) {
            EM_ERR(E, node, "expected one value for a member of %.*s, found %zu", TS_STR_ARG(c->bare_name), args->count);
            return em_error();
        }
        ir_value *v = em_ir(E, args->items[0].v, node, NULL);
        rt_value wanted;
        if (v && v->type->kind == IR_ENUM)
            return em_value(v);
        if (v && ir_const_value(v, &wanted))
            for (size_t i = 0; i < ir->enum_member_count; i++) {
                bool same = false;
                ts_status status = rt_equal(ir->enum_members[i].as.enumeration->value, wanted, &same);
                ts_status_release(status);
                if (same)
                    return em_of_value(E, ir->enum_members[i]);
            }
        return v ? member_of(E, ir, v, 0, node) : em_error();
    }
    const fe_function *missing = abstract_method(E, c);
    if (missing) {
        EM_ERR(E, node, "%.*s has the abstract method '%.*s': it has no instances", TS_STR_ARG(c->bare_name),
               TS_STR_ARG(missing->bare_name));
        return em_error();
    }
    if (c->kind == RT_CLASS_INTERFACE) {
        EM_ERR(E, node, "the interface %.*s has no instances", TS_STR_ARG(c->bare_name));
        return em_error();
    }
    fe_function *init = fe_class_method(c, TS_STR("__init__"));
    if (c->is_dataclass && !init) {
        if (!bind_fields(E, c, ir, args, node, fields))
            return em_error();
        ir_value *object = em_new_object(E, ir);
        for (size_t i = 0; i < ir->field_count; i++) {
            ir_value *operands[2] = {object, fields[i]};
            if (!fields[i])
                continue;
            ir_op *op = ir_build_op(&E->b, IR_OP_SET_ATTR, operands, 2, NULL, 0);
            op->name = ir->fields[i].name;
        }
        if (fe_class_method(c, TS_STR("__post_init__")))
            em_call_method0(E, object, "__post_init__", NULL, 0, node);
        return em_value(object);
    }
    ir_value *object = em_new_object(E, ir);
    class_values(E, c, ir, object, node);
    if (c->kind == RT_CLASS_EXCEPTION)
        em_exception_begin(E, object, c, args);
    if (!init) {
        if (args->count && c->kind != RT_CLASS_EXCEPTION) {
            EM_ERR(E, node, "%.*s() takes no arguments", TS_STR_ARG(c->bare_name));
            return em_error();
        }
        return em_value(object);
    }
    if (!em_spread_list(E, init, 1, args, node))
        return em_error();
    if (!c->is_library && !c->is_archive && !c->is_made && learn_init(E, init, args, node))
        return em_error();
    size_t errors = E->fe->diagnostics->error_count;
    ir_function *f = fe_method_ir(E->fe, ir, TS_STR("__init__"));
    if (!f)
        return em_failed_callee(E, init->name, node, errors);
    em r = em_call_ir(E, f, em_signature_of(E->fe, init, ir), object, args, node);
    return r.kind == EM_VALUE ? em_value(object) : r;
}

/* frontend/emit_dataclass.c - dataclasses: options, comparison of fields, replace(), asdict(), astuple(); equality of
 * what holds objects with an equality of their own. */
#include "frontend/emit_builtin.h"

static bool is_path(fe_binding b, const char *path) { return b.kind == FE_NAME && ts_str_is(b.path, path); }

/* The option of @dataclass(NAME=True) or of field(NAME=...); NULL: not given. */
static const ast_node *keyword(const ast_node *call, const char *name) {
    for (size_t i = 0; call && call->kind == AST_CALL && i < call->list.count; i++)
        if (call->list.items[i]->kind == AST_KEYWORD && ts_str_is(call->list.items[i]->text, name))
            return call->list.items[i]->left;
    return NULL;
}

static const ast_node *decorator_of(emitter *E, const fe_class *c) {
    for (size_t i = 0; c->node && i < c->node->decorators.count; i++) {
        const ast_node *d = c->node->decorators.items[i];
        if (d->kind == AST_CALL && is_path(fe_resolve_dotted(E->fe, c->scope, d->left), "dataclasses.dataclass"))
            return d;
    }
    return NULL;
}

bool em_dataclass_option(emitter *E, const fe_class *c, const char *name, bool otherwise) {
    const ast_node *given = keyword(decorator_of(E, c), name);
    return !given ? otherwise : given->kind == AST_TRUE;
}

bool em_is_ordered_dataclass(emitter *E, const fe_class *c) {
    bool is_ordered = c->is_dataclass && em_dataclass_option(E, c, "order", false);
    for (size_t i = 0; i < c->ancestor_count && !is_ordered; i++)
        is_ordered = c->ancestors[i]->is_dataclass && em_dataclass_option(E, c->ancestors[i], "order", false);
    return is_ordered;
}

/* An option of a field that is written field(...). */
bool em_field_option(emitter *E, const fe_class *c, ts_str field, const char *name, bool otherwise) {
    const fe_class_variable *v = fe_class_find_variable(c, field);
    if (c->is_dataclass && !v) /* an attribute that __post_init__ or a method adds */
        return false;
    const ast_node *call = v ? v->initial : NULL;
    if (!call || call->kind != AST_CALL || !is_path(fe_resolve_dotted(E->fe, c->scope, call->left), "dataclasses.field"))
        return otherwise;
    const ast_node *given = keyword(call, name);
    return !given ? otherwise : given->kind == AST_TRUE;
}

static ir_value *field_of(emitter *E, ir_value *object, const ir_field *f) {
    if (object->type->kind == IR_TUPLE) {
        size_t index = (size_t)(f - object->type->class_->fields);
        ir_op *get = ir_build_op(&E->b, IR_OP_TUPLE_GET, &object, 1, &object->type->args[index], 1);
        get->integer = (int64_t)index;
        return get->results[0];
    }
    ir_op *op = ir_build_op(&E->b, IR_OP_GET_ATTR, &object, 1, &f->type, 1);
    op->name = f->name;
    return op->results[0];
}

static ir_value *both(emitter *E, ir_value *a, ir_value *b, const ast_node *node) {
    return !a ? b : !b ? NULL : em_row(E, "__and__.bool", node, 2, a, b);
}

ir_value *em_equal_dataclass(emitter *E, ir_value *a, ir_value *b, const ast_node *node) {
    const ir_class *c = a->type->class_;
    ir_value *all = ir_build_bool(&E->b, true);
    for (size_t i = 0; i < c->field_count && all; i++) {
        if (c->fields[i].is_constant || !em_field_option(E, fe_class_of(c), c->fields[i].name, "compare", true))
            continue;
        ir_value *same = em_compare_two(E, AST_EQ, em_value(field_of(E, a, &c->fields[i])),
                                        em_value(field_of(E, b, &c->fields[i])), node);
        all = same ? both(E, all, em_truth(E, em_value(same), node), node) : NULL;
    }
    return all;
}

/* ---- equality of what holds objects ---- */

bool em_has_own_equality(const ir_type *t, int depth) {
    if (t->kind == IR_CLASS)
        return em_class_has_method(t, "__eq__") || (fe_class_of(t->class_) && fe_class_of(t->class_)->is_dataclass);
    if (!depth || (t->kind != IR_LIST && t->kind != IR_DICT && t->kind != IR_TUPLE && t->kind != IR_OPTIONAL))
        return false;
    for (size_t i = 0; i < t->arg_count; i++)
        if (em_has_own_equality(t->args[i], depth - 1))
            return true;
    return false;
}

/* NULL with *out_known false: the runtime's own equality is right. */
ir_value *em_equal_deep(emitter *E, ir_value *a, ir_value *b, const ast_node *node, bool *out_known) {
    const ir_type *s = a->type, *t = b->type;
    *out_known = false;
    if (!em_has_own_equality(s, 8) || !em_has_own_equality(t, 8) || (s->kind == IR_CLASS && t->kind == IR_CLASS))
        return NULL;
    const char *name = s->kind == IR_OPTIONAL || t->kind == IR_OPTIONAL ? "builtins.equal_optional"
                       : s->kind == IR_LIST && t->kind == IR_LIST        ? "builtins.equal_lists"
                       : s->kind == IR_DICT && t->kind == IR_DICT        ? "builtins.equal_dicts" : NULL;
    if (name) {
        em args[2] = {em_value(a), em_value(b)};
        *out_known = true;
        return em_ir(E, em_call_python(E, name, args, 2, node), node, NULL);
    }
    if (s->kind != IR_TUPLE || t->kind != IR_TUPLE || s->arg_count != t->arg_count)
        return NULL;
    *out_known = true;
    ir_op *x = ir_build_op(&E->b, IR_OP_TUPLE_UNPACK, &a, 1, s->args, s->arg_count);
    ir_op *y = ir_build_op(&E->b, IR_OP_TUPLE_UNPACK, &b, 1, t->args, t->arg_count);
    ir_value *all = ir_build_bool(&E->b, true);
    for (size_t i = 0; i < s->arg_count && all; i++) {
        ir_value *same = em_compare_two(E, AST_EQ, em_value(x->results[i]), em_value(y->results[i]), node);
        all = same ? both(E, all, em_truth(E, em_value(same), node), node) : NULL;
    }
    return all;
}

/* ---- functions of the module dataclasses ---- */

static bool is_dataclass_value(em v) {
    fe_class *c = v.kind == EM_VALUE && v.value->type->kind == IR_CLASS ? fe_class_of(v.value->type->class_) : NULL;
    return c && c->is_dataclass;
}

typedef enum fields_as { AS_DICT, AS_TUPLE, AS_VARS } fields_as;

static em as_dict(emitter *E, ir_value *object, const ast_node *node, fields_as how) {
    const ir_class *c = object->type->class_;
    em *items = TS_NEW_ARRAY(E->arena, em, c->field_count + 1);
    ir_value **pairs = TS_NEW_ARRAY(E->arena, ir_value *, 2 * c->field_count + 1);
    const ir_type *type = NULL;
    size_t count = 0;
    for (size_t i = 0; i < c->field_count; i++) {
        if (how != AS_VARS && object->type->kind == IR_CLASS && !fe_class_find_variable(fe_class_of(c), c->fields[i].name))
            continue;
        em v = em_value(field_of(E, object, &c->fields[i]));
        if (how != AS_VARS && object->type->kind == IR_CLASS && is_dataclass_value(v))
            v = as_dict(E, v.value, node, how);
        items[count] = v;
        pairs[2 * count] = ir_build_str(&E->b, c->fields[i].name);
        ir_value *x = pairs[2 * count + 1] = em_ir(E, v, node, NULL);
        count++;
        const ir_type *t = ir_type_forget(E->m, x->type);
        type = type ? ir_type_join(E->m, type, t) : t;
    }
    if (how == AS_TUPLE)
        return (em){.kind = EM_TUPLE, .items = items, .count = count};
    for (size_t i = 0; i < count; i++)
        pairs[2 * i + 1] = em_cast(E, pairs[2 * i + 1], type);
    return em_value(em_dict_of(E, pairs, 2 * count,
                               ir_type_dict(E->m, em_simple(E, IR_STR), type ? type : em_simple(E, IR_INT))));
}

/* vars(object), object.__dict__: what the attributes are now. */
em em_vars(emitter *E, ir_value *object, const ast_node *node) {
    if (object->type->kind == IR_CLASS && object->type->class_->base.kind == RT_CLASS_PLAIN)
        return as_dict(E, object, node, AS_VARS);
    EM_UNSUPPORTED(E, node, "vars() of %s is not supported yet", em_type_text(E, object->type));
    return em_error();
}

/* _replace(), _asdict() of a named tuple. */
em em_named_tuple_method(emitter *E, ir_value *tuple, ts_str name, const em_arguments *args, const ast_node *node) {
    const ir_class *c = tuple->type->class_;
    if (ts_str_is(name, "_asdict"))
        return as_dict(E, tuple, node, AS_DICT);
    em_arguments all = {0};
    for (size_t i = 0; i < c->field_count; i++) {
        em_argument a = {.name = c->fields[i].name, .node = node, .v = em_value(field_of(E, tuple, &c->fields[i]))};
        for (size_t k = 0; k < args->count; k++)
            if (ts_str_equal(args->items[k].name, a.name))
                a.v = args->items[k].v;
        TS_APPEND(E->arena, all.items, all.count, all.capacity, a);
    }
    for (size_t k = 0; k < args->count; k++)
        if (!em_find_field(c, args->items[k].name)) {
            EM_ERR(E, node, "%s has no field '%.*s'", em_type_text(E, tuple->type), TS_STR_ARG(args->items[k].name));
            return em_error();
        }
    return em_construct(E, fe_class_of(c), &all, node);
}

/* P._make(iterable) */
em em_named_tuple_make(emitter *E, fe_class *class_, em_arguments *args, const ast_node *node) {
    const ir_class *c = fe_class_ir(E->fe, class_);
    em_arguments all = {0};
    em v = args->count ? args->items[0].v : em_error();
    if (v.kind != EM_TUPLE && !(v.kind == EM_VALUE && v.value->type->kind == IR_TUPLE)) {
        ir_value *list = em_ir(E, v, node, NULL);
        if (!list || list->type->kind != IR_LIST) {
            EM_UNSUPPORTED(E, node, "_make() of %s is not supported yet", list ? em_type_text(E, list->type) : "this");
            return em_error();
        }
        const ir_type **types = TS_NEW_ARRAY(E->arena, const ir_type *, c->field_count + 1);
        for (size_t i = 0; i < c->field_count; i++)
            types[i] = list->type->args[0];
        ir_op *op = ir_build_op(&E->b, IR_OP_LIST_UNPACK, &list, 1, types, c->field_count);
        v = em_value(em_tuple_of(E, op->results, c->field_count));
    }
    ir_value *tuple = em_ir(E, v, node, NULL);
    for (size_t i = 0; tuple && i < tuple->type->arg_count; i++) {
        ir_op *get = ir_build_op(&E->b, IR_OP_TUPLE_GET, &tuple, 1, &tuple->type->args[i], 1);
        get->integer = (int64_t)i;
        em_argument a = {.v = em_value(get->results[0]), .node = node};
        TS_APPEND(E->arena, all.items, all.count, all.capacity, a);
    }
    return tuple ? em_construct(E, class_, &all, node) : em_error();
}

em em_field_names(emitter *E, fe_class *class_) {
    const ir_class *c = fe_class_ir(E->fe, class_);
    em *items = TS_NEW_ARRAY(E->arena, em, c->field_count + 1);
    for (size_t i = 0; i < c->field_count; i++)
        items[i] = em_value(ir_build_str(&E->b, c->fields[i].name));
    return (em){.kind = EM_TUPLE, .items = items, .count = c->field_count};
}

bool em_call_dataclasses(emitter *E, ts_str path, em_arguments *args, const ast_node *node, em *out) {
    bool replace = ts_str_is(path, "dataclasses.replace") || ts_str_is(path, "copy.replace");
    bool dict = ts_str_is(path, "dataclasses.asdict"), tuple = ts_str_is(path, "dataclasses.astuple");
    if ((!replace && !dict && !tuple) || !args->count || !is_dataclass_value(args->items[0].v))
        return false;
    ir_value *object = args->items[0].v.value;
    if (!replace) {
        *out = as_dict(E, object, node, tuple ? AS_TUPLE : AS_DICT);
        return true;
    }
    const ir_class *c = object->type->class_;
    em_arguments all = {0};
    for (size_t i = 0; i < c->field_count; i++) {
        em_argument a = {.name = c->fields[i].name, .node = node};
        for (size_t k = 1; k < args->count && a.v.kind == EM_ERROR; k++)
            if (ts_str_equal(args->items[k].name, a.name))
                a.v = args->items[k].v;
        if (a.v.kind == EM_ERROR)
            a.v = em_value(field_of(E, object, &c->fields[i]));
        if (em_field_option(E, fe_class_of(c), a.name, "init", true))
            TS_APPEND(E->arena, all.items, all.count, all.capacity, a);
    }
    *out = em_construct(E, fe_class_of(c), &all, node);
    return true;
}

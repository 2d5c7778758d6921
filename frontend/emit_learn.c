/* frontend/emit_learn.c - what one function's code tells of types that others are made with.
 *
 * A field that __init__ leaves empty or None, a list of the module level, a name that `global` writes, the
 * result of a function that calls itself: their types are found where they are used. What was found is
 * kept, all functions are dropped, and the program is emitted anew (fe_load). */
#include "frontend/emit_internal.h"

static ts_str pointer_key(fe_context *fe, const void *p) {
    return (ts_str){ts_arena_copy(fe->arena, (const char *)&p, sizeof p), sizeof p};
}

static bool holds_tensor(const ir_type *t) {
    if (t->kind == IR_TENSOR)
        return true;
    for (size_t i = 0; i < t->arg_count; i++)
        if (holds_tensor(t->args[i]))
            return true;
    return false;
}

/* Lists in lists, made empty as well: one list of both. */
static const ir_type *joined_item(emitter *E, const ir_type *old, const ir_type *now) {
    bool nested = old->kind == now->kind && (old->kind == IR_LIST || old->kind == IR_DICT);
    return nested && !holds_tensor(now) ? em_joined_empty(E, old, now) : ir_type_join(E->m, old, now);
}

const ir_type *em_joined_empty(emitter *E, const ir_type *old, const ir_type *now) {
    if (!old || old->kind != now->kind || holds_tensor(old))
        return now; /* what was found before was not final itself */
    if (old->kind == IR_LIST)
        return ir_type_list(E->m, joined_item(E, old->args[0], now->args[0]));
    return ir_type_dict(E->m, ir_type_join(E->m, old->args[0], now->args[0]),
                        joined_item(E, old->args[1], now->args[1]));
}

void fe_relearn(fe_context *fe) { fe->relearn = true; }

/* ---- fields ---- */

static bool set_field_type(emitter *E, ir_class *c, ts_str name, const ir_type *type) {
    ir_field *fields = TS_NEW_ARRAY(E->arena, ir_field, c->field_count + 1);
    bool found = false;
    for (size_t i = 0; i < c->field_count; i++) {
        fields[i] = c->fields[i];
        if (!ts_str_equal(fields[i].name, name) || !fields[i].is_inferred || fields[i].is_constant ||
            fields[i].type == type)
            continue;
        fields[i].type = type;
        found = true;
    }
    if (found) {
        fe_ir_class_set_fields(E->fe, c, fields, c->field_count);
        fe_relearn(E->fe);
    }
    return found;
}

static bool is_number(const ir_type *t) {
    return t->kind == IR_INT || t->kind == IR_FLOAT || t->kind == IR_NUMBER;
}

bool em_learn_field(emitter *E, ir_class *c, ts_str name, const ir_type *found) {
    const ir_field *f = em_find_field(c, name);
    if (!f)
        return false;
    const ir_type *now = ir_type_forget(E->m, found);
    const ir_type *type = is_number(f->type) && is_number(now) ? em_simple(E, IR_NUMBER)
                                                               : ir_type_forget(E->m, ir_type_join(E->m, f->type, now));
    return set_field_type(E, c, name, type);
}

bool em_learn_empty_field(emitter *E, ir_class *c, ts_str name, const ir_type *want) {
    const ir_field *f = em_find_field(c, name);
    if (!f)
        return false;
    const ir_type *old = ir_type_without_none(E->m, f->type);
    if (old->kind != want->kind)
        return false;
    const ir_type *type = em_joined_empty(E, old, ir_type_forget(E->m, want));
    if (old != f->type)
        type = ir_type_optional(E->m, type);
    return set_field_type(E, c, name, type);
}

/* ---- parameters that are given an empty list or dict ---- */

static ts_str parameter_key(emitter *E, const fe_function *f, size_t index) {
    return ts_arena_format(E->arena, "%p:%u:%zu", (const void *)f->node->source, f->node->offset, index);
}

bool em_learn_parameter(emitter *E, size_t index, const ir_type *want) {
    const fe_function *f = E->function;
    if (!f || index >= f->node->parameters.count || f->node->parameters.items[index].annotation)
        return false;
    ts_str key = parameter_key(E, f, index);
    const ir_type *old = fe_map_get(&E->fe->wanted_parameters, key), *now = ir_type_forget(E->m, want);
    const ir_type *type = em_joined_empty(E, old, now);
    if (old == type)
        return false;
    fe_map_set(E->arena, &E->fe->wanted_parameters, key, (void *)(uintptr_t)type);
    fe_relearn(E->fe);
    return true;
}

const ir_type *em_wanted_parameter(emitter *E, const fe_function *f, size_t index) {
    return E->fe->wanted_parameters.count && f ? fe_map_get(&E->fe->wanted_parameters, parameter_key(E, f, index)) : NULL;
}

/* ---- values of the module level ---- */

static const void *identity(rt_value v) {
    return v.tag == RT_TAG_LIST || v.tag == RT_TAG_DICT ? v.as.pointer : NULL;
}

const ir_type *em_type_of_constant(emitter *E, rt_value v) {
    const void *id = identity(v);
    const ir_type *known = id ? fe_map_get(&E->fe->value_types, pointer_key(E->fe, id)) : NULL;
    return known ? known : ir_type_of_value(E->m, v);
}

bool em_learn_constant(emitter *E, rt_value v, const ir_type *want) {
    const void *id = identity(v);
    if (!id)
        return false;
    const ir_type *old = em_type_of_constant(E, v);
    const ir_type *type = em_joined_empty(E, old, ir_type_forget(E->m, want));
    if (old->kind != want->kind || type == old)
        return false;
    fe_map_set(E->arena, &E->fe->value_types, pointer_key(E->fe, id), (void *)(uintptr_t)type);
    fe_relearn(E->fe);
    return true;
}

/* ---- state of the module level: objects with one field each, so that they are state of a session ----
 *
 * Names that `global` writes, class attributes that are assigned, and lists and dicts of the module level
 * (or of a class) that some function changes. */

static ts_str global_key(emitter *E, ts_str name) {
    const fe_scope *scope = E->scope;
    while (scope->parent)
        scope = scope->parent;
    return ts_arena_format(E->arena, "%p.%.*s", (const void *)scope, (int)name.length, name.data);
}

ir_value *em_state_of(emitter *E, ts_str key) {
    const rt_value *object = E->fe->globals.count ? fe_map_get(&E->fe->globals, key) : NULL;
    return object ? ir_build_const(&E->b, *object) : NULL;
}

ir_value *em_global_object(emitter *E, ts_str name) {
    return E->fe->globals.count ? em_state_of(E, global_key(E, name)) : NULL;
}

ir_value *em_class_state(emitter *E, const fe_class *c, ts_str name) {
    if (!E->fe->globals.count)
        return NULL;
    return em_state_of(E, ts_arena_format(E->arena, "%p:%.*s", (const void *)c, (int)name.length, name.data));
}

ir_value *em_changed_constant(emitter *E, rt_value v) {
    return E->fe->globals.count && identity(v) ? em_state_of(E, pointer_key(E->fe, identity(v))) : NULL;
}

/* type: NULL where the value says nothing. */
static bool make_state(emitter *E, ts_str key, ts_str name, const rt_value *value, const ir_type *type) {
    if (fe_map_get(&E->fe->globals, key))
        return true;
    ts_str class_name = ts_arena_format(E->arena, "global.%.*s", (int)name.length, name.data);
    for (int i = 1; ir_class_find(E->m, class_name); i++)
        class_name = ts_arena_format(E->arena, "global_%d.%.*s", i, (int)name.length, name.data);
    ir_class *c = ir_class_make(E->m, class_name, RT_CLASS_PLAIN);
    ir_field field = {.name = TS_STR("value"), .is_inferred = true, .type = type ? type : em_simple(E, IR_NONE)};
    fe_ir_class_set_fields(E->fe, c, &field, 1);
    rt_value *object = TS_NEW(E->arena, rt_value);
    ts_status status = rt_object_make(&c->base, object);
    if (status) {
        ts_status_release(status);
        return false;
    }
    rt_assign(&object->as.object->fields[0], value ? rt_retain(*value) : (rt_value){.tag = RT_TAG_UNINITIALIZED});
    ir_module_retain(E->m, *object);
    rt_release(*object);
    fe_map_set(E->arena, &E->fe->globals, key, object);
    fe_relearn(E->fe); /* what reads it was emitted with its first value */
    return true;
}

bool em_make_state(emitter *E, ts_str key, ts_str name, const ir_type *type) {
    rt_value none = rt_none();
    return make_state(E, key, name, &none, type);
}

bool em_make_global(emitter *E, ts_str name, const ast_node *node) {
    const fe_scope *scope = E->scope;
    while (scope->parent)
        scope = scope->parent;
    const fe_binding *b = fe_map_get(&scope->names, name);
    if (b && b->kind != FE_VALUE) {
        EM_UNSUPPORTED(E, node, "global %.*s of a function or class is not supported yet", TS_STR_ARG(name));
        return false;
    }
    return make_state(E, global_key(E, name), name, b ? &b->value : NULL,
                      b ? ir_type_forget(E->m, em_type_of_constant(E, b->value)) : NULL);
}

bool em_make_class_state(emitter *E, const fe_class *c, ts_str name, rt_value v) {
    ts_str key = ts_arena_format(E->arena, "%p:%.*s", (const void *)c, (int)name.length, name.data);
    return make_state(E, key, name, &v, ir_type_forget(E->m, em_type_of_constant(E, v)));
}

static void note_changed(emitter *E, const ir_op *op) {
    if (op->opcode != IR_OP_CORE || !(ir_effects(op) & IR_EFFECT_WRITES))
        return;
    const ir_schema *s = ir_schema_of(E->m, op->core);
    for (size_t i = 0; i < op->operand_count && i < s->arg_count; i++) {
        const ir_value *v = op->operands[i];
        rt_value constant;
        if (s->args[i].is_written && ir_const_value(v, &constant) && identity(constant))
            make_state(E, pointer_key(E->fe, identity(constant)), TS_STR("container"), &constant, v->type);
    }
}

/* At the end of a function of a script. */
void em_note_changed_constants(emitter *E, const ir_block *b) {
    for (const ir_op *op = b->first; op && !E->fe->relearn; op = op->next) {
        note_changed(E, op);
        for (size_t i = 0; i < op->region_count; i++)
            em_note_changed_constants(E, op->regions[i]);
    }
}

/* ---- results of functions that call themselves ---- */

bool em_learn_result(emitter *E, fe_function *f, const ir_type *found) {
    const ir_type *type = ir_type_forget(E->m, f->learned_return ? ir_type_join(E->m, f->learned_return, found)
                                                                 : found);
    if (type == f->learned_return)
        return false;
    f->learned_return = type;
    fe_relearn(E->fe);
    return true;
}

/* ---- fields of generators and closures that are read before the code that sets them was emitted ---- */

bool em_note_missing(emitter *E, em object, ts_str name, const ast_node *node) {
    const ir_type *t = object.kind == EM_VALUE && object.value ? object.value->type : NULL;
    fe_class *c = t && t->kind == IR_CLASS ? fe_class_of(t->class_) : NULL;
    if (!c || !c->is_made)
        return false;
    E->fe->guessing = true;
    if (!E->fe->missing_class) {
        E->fe->missing_class = t->class_;
        E->fe->missing_name = name;
        E->fe->missing_node = node;
    }
    return true;
}

/* After a function: the field may be there now. */
void em_find_missing(emitter *E) {
    fe_context *fe = E->fe;
    if (!fe->missing_class || !em_find_field(fe->missing_class, fe->missing_name))
        return;
    fe->missing_class = NULL;
    fe_relearn(fe);
}

/* ---- anew ---- */

static void forget_function(fe_function *f) {
    f->ir = NULL;
    f->is_emitting = f->gives_list = f->gives_tuple = f->gives_size = false;
    for (size_t i = 0; i < f->variants.count; i++)
        forget_function(f->variants.values[i]);
}

void fe_note_emitted(fe_context *fe, fe_function *f) {
    fe_map_set(fe->arena, &fe->emitted, pointer_key(fe, f), f);
}

void fe_forget_functions(fe_context *fe) {
    ir_module *m = fe->module;
    while (m->functions)
        ir_function_remove(m, m->functions);
    for (size_t i = 0; i < fe->emitted.count; i++)
        forget_function(fe->emitted.values[i]);
    size_t kept = 0;
    for (size_t i = 0; i < m->class_count; i++) {
        ir_class *c = m->classes[i];
        c->method_count = 0;
        if (c->frontend || !ts_str_starts_with(c->base.name, "try_state"))
            m->classes[kept++] = c;
    }
    ir_class_forget(m, kept);
    fe->relearn = fe->guessing = false;
    fe->missing_class = NULL;
    fe->asked = NULL;
}

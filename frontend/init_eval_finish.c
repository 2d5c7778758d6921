/* frontend/init_eval_finish.c - from the evaluator's growing objects to typed ones.
 *
 * When the script has run, each module object gets an ir_class with its fields in order (shared by
 * objects of one class with equal fields), each object of a plain class the class's own. What has no
 * type in the IR is taken out of the object and kept by name: fe_static_attribute. */
#include <stdio.h>
#include <stdlib.h>

#include "frontend/init_eval_internal.h"
#include "runtime/values/tensor.h"

enum { MAX_DEPTH = 500 };

static ts_status finish(evaluator *ev, rt_value *slot, int depth);

/* ---- what can be a field ---- */

static bool is_data(rt_value v, int depth) {
    if (depth > MAX_DEPTH)
        return false;
    switch (v.tag) {
    case RT_TAG_FUNCTION:
    case RT_TAG_CAPSULE: return false;
    case RT_TAG_LIST:
    case RT_TAG_TUPLE: {
        size_t n;
        rt_value *items = ev_items(v, &n);
        for (size_t i = 0; i < n; i++)
            if (!is_data(items[i], depth + 1))
                return false;
        return true;
    }
    case RT_TAG_DICT: {
        rt_dict_entry *e;
        if (ev_is_set(v))
            return false;
        for (size_t at = 0; (e = rt_dict_next(v.as.dict, &at));)
            if (!is_data(e->key, depth + 1) || !is_data(e->value, depth + 1))
                return false;
        return true;
    }
    default: return true;
    }
}

static bool holds_tensors_or_objects(rt_value v, int depth) {
    if (v.tag == RT_TAG_TENSOR || v.tag == RT_TAG_OBJECT || v.tag == RT_TAG_GENERATOR || depth > MAX_DEPTH)
        return true;
    if (ev_is_sequence(v)) {
        size_t n;
        rt_value *items = ev_items(v, &n);
        for (size_t i = 0; i < n; i++)
            if (holds_tensors_or_objects(items[i], depth + 1))
                return true;
    }
    if (v.tag == RT_TAG_DICT) {
        rt_dict_entry *e;
        for (size_t at = 0; (e = rt_dict_next(v.as.dict, &at));)
            if (holds_tensors_or_objects(e->value, depth + 1))
                return true;
    }
    return false;
}

/* Ints where the declared type says float. */
static void coerce(const ir_type *type, rt_value *slot, int depth) {
    if (!type || depth > MAX_DEPTH)
        return;
    if (type->kind == IR_OPTIONAL)
        type = type->args[0];
    if (type->kind == IR_FLOAT && slot->tag == RT_TAG_INT) {
        *slot = rt_float((double)slot->as.i);
    } else if (type->kind == IR_LIST && slot->tag == RT_TAG_LIST) {
        for (size_t i = 0; i < slot->as.list->count; i++)
            coerce(type->args[0], &slot->as.list->items[i], depth + 1);
    } else if (type->kind == IR_DICT && slot->tag == RT_TAG_DICT) {
        rt_dict_entry *e;
        for (size_t at = 0; (e = rt_dict_next(slot->as.dict, &at));)
            coerce(type->args[1], &e->value, depth + 1);
    } else if (type->kind == IR_TUPLE && slot->tag == RT_TAG_TUPLE) {
        for (size_t i = 0; i < slot->as.tuple->count && i < type->arg_count; i++)
            coerce(type->args[i], &slot->as.tuple->items[i], depth + 1);
    }
}

/* ---- declarations ---- */

typedef struct declaration {
    const ast_node *annotation;
    fe_scope *scope;
} declaration;

static declaration declared(const fe_class *class_, const ev_instance *i, size_t field) {
    if (i->fields[field].annotation)
        return (declaration){i->fields[field].annotation, i->fields[field].scope};
    for (size_t k = 0; k <= class_->ancestor_count; k++) {
        const fe_class *c = k ? class_->ancestors[k - 1] : class_;
        for (size_t n = 0; n < c->variable_count; n++)
            if (c->variables[n].annotation && ts_str_equal(c->variables[n].name, i->names[field]))
                return (declaration){c->variables[n].annotation, c->scope};
    }
    return (declaration){0};
}

static bool is_listed_constant(const fe_class *class_, ts_str name) {
    fe_class_variable *v = fe_class_find_variable(class_, TS_STR("__constants__"));
    if (!v || !v->is_evaluated || !ev_is_sequence(v->value))
        return false;
    size_t n;
    rt_value *items = ev_items(v->value, &n);
    for (size_t i = 0; i < n; i++)
        if (ev_is_str(items[i]) && ts_str_equal(ev_text(items[i]), name))
            return true;
    return false;
}

static const ir_type *field_type(evaluator *ev, const fe_class *class_, const ev_instance *i,
                                 size_t field, rt_value v, bool *out_final) {
    declaration d = declared(class_, i, field);
    const ast_node *inner = d.annotation;
    *out_final = false;
    if (d.annotation) {
        *out_final = fe_annotation_is_final(ev->fe, d.scope, d.annotation, &inner);
        if (!*out_final)
            inner = d.annotation;
        const ir_type *t = inner ? fe_annotation_type(ev->fe, d.scope, inner) : NULL;
        if (t && v.tag == RT_TAG_OBJECT && t->kind == IR_CLASS && t->class_ &&
            t->class_->base.kind == RT_CLASS_INTERFACE)
            return t; /* dispatched on the object's own class */
        /* Optional[nn.Module] says nothing of the module: None stays None. */
        bool is_no_module = rt_is_none(v) && t && t->kind == IR_ANY && inner->kind == AST_SUBSCRIPT;
        if (t && !is_no_module && !(v.tag == RT_TAG_OBJECT && ev_is_module(v)))
            return t;
    }
    ir_module *m = ev->fe->module;
    return ir_type_forget(m, ir_type_of_value(m, v));
}

/* ---- attributes that no method assigns ---- */

static void note_list(const ast_list *list, fe_map *names, ts_arena *arena, bool in_method);

/* Attributes assigned in functions other than __init__, by name; "*" where setattr is called. Depth
 * is the tree's. */
static void note_assigned(const ast_node *n, fe_map *names, ts_arena *arena, bool in_method) {
    if (!n)
        return;
    if (n->kind == AST_FUNCTION)
        in_method = !ts_str_is(n->text, "__init__");
    bool is_store = n->kind == AST_ASSIGN || n->kind == AST_AUG_ASSIGN || n->kind == AST_ANN_ASSIGN ||
                    n->kind == AST_FOR || n->kind == AST_WITH_ITEM || n->kind == AST_DELETE;
    if (in_method && is_store) {
        const ast_node *targets[1] = {n->kind == AST_WITH_ITEM ? n->right : n->left};
        const ast_node *const *list = targets;
        size_t count = 1;
        if (n->kind == AST_ASSIGN || n->kind == AST_DELETE) {
            list = (const ast_node *const *)n->list.items;
            count = n->list.count;
        }
        for (size_t i = 0; i < count; i++) {
            const ast_node *t = list[i];
            if (t && t->kind == AST_ATTRIBUTE)
                fe_map_set(arena, names, t->text, names);
            for (size_t k = 0; t && (t->kind == AST_TUPLE || t->kind == AST_LIST) && k < t->list.count; k++)
                if (t->list.items[k]->kind == AST_ATTRIBUTE)
                    fe_map_set(arena, names, t->list.items[k]->text, names);
        }
    }
    if (n->kind == AST_CALL && n->left->kind == AST_NAME &&
        (ts_str_is(n->left->text, "setattr") || ts_str_is(n->left->text, "delattr")) && in_method)
        fe_map_set(arena, names, TS_STR("*"), names);
    note_assigned(n->left, names, arena, in_method);
    note_assigned(n->right, names, arena, in_method);
    note_assigned(n->test, names, arena, in_method);
    note_list(&n->list, names, arena, in_method);
    note_list(&n->body, names, arena, in_method);
    note_list(&n->orelse, names, arena, in_method);
    note_list(&n->finally_body, names, arena, in_method);
}

static void note_list(const ast_list *list, fe_map *names, ts_arena *arena, bool in_method) {
    for (size_t i = 0; i < list->count; i++)
        note_assigned(list->items[i], names, arena, in_method);
}

/* Numbers, strings and None that stay as __init__ left them are constants of the class: branches on
 * them are taken at compile time, as if the other arm were not there. */
static bool is_never_assigned(evaluator *ev, const fe_class *class_, ts_str name) {
    if (!ev->tree || ts_str_is(name, "training"))
        return false;
    if (!ev->assigned.capacity) {
        fe_map_set(ev->arena, &ev->assigned, TS_STR(""), &ev->assigned);
        note_assigned(ev->tree, &ev->assigned, ev->arena, false);
    }
    for (size_t k = 0; k <= class_->ancestor_count; k++) {
        const fe_class *c = k ? class_->ancestors[k - 1] : class_;
        char key[sizeof(void *)];
        ts_str id = ev_pointer_key(ev, c, key);
        if (!c->is_library || !c->node || fe_map_get(&ev->assigned, id))
            continue;
        fe_map_set(ev->arena, &ev->assigned, ts_arena_str(ev->arena, id), &ev->assigned);
        note_assigned(c->node, &ev->assigned, ev->arena, false);
    }
    return !fe_map_get(&ev->assigned, name) && !fe_map_get(&ev->assigned, TS_STR("*"));
}

static bool is_scalar(rt_value v) {
    return v.tag == RT_TAG_NONE || v.tag == RT_TAG_BOOL || v.tag == RT_TAG_INT ||
           v.tag == RT_TAG_FLOAT || v.tag == RT_TAG_STR;
}

/* ---- static attributes ---- */

static void keep_static(evaluator *ev, const ir_class *c, ts_str name, rt_value v) {
    char key[sizeof(void *)];
    ts_str k = ev_pointer_key(ev, c, key);
    fe_map *map = fe_map_get(&ev->static_fields, k);
    if (!map) {
        map = TS_NEW(ev->arena, fe_map);
        fe_map_set(ev->arena, &ev->static_fields, ts_arena_str(ev->arena, k), map);
    }
    rt_value *copy = TS_NEW(ev->arena, rt_value);
    *copy = v;
    ir_module_retain(ev->fe->module, v);
    fe_map_set(ev->arena, map, name, copy);
}

bool fe_static_attribute(struct fe_context *fe, const ir_class *c, ts_str name, rt_value *out) {
    char key[sizeof(void *)];
    *out = rt_none();
    if (!fe->script)
        return false;
    const fe_map *map = fe_map_get(&fe->script->static_fields, ev_pointer_key(fe->script, c, key));
    const rt_value *v = map ? fe_map_get(map, name) : NULL;
    if (v)
        *out = *v;
    return v != NULL;
}

size_t fe_module_hooks(struct fe_context *fe, const ir_class *c, bool is_pre, fe_function **out,
                       size_t max) {
    char key[sizeof(void *)];
    if (!fe->script)
        return 0;
    const ev_instance *i = fe_map_get(&fe->script->hooks, ev_pointer_key(fe->script, c, key));
    size_t count = 0;
    for (size_t k = 0; i && k < i->hook_count; k++) {
        fe_binding b = fe_binding_of_value(i->hooks[k].function);
        if (i->hooks[k].is_pre != is_pre || (b.kind != FE_FUNCTION && b.kind != FE_METHOD))
            continue;
        if (out && count < max)
            out[count] = b.function;
        count++;
    }
    return count;
}

/* ---- modules ---- */

static void key_of_value(evaluator *ev, rt_value v, ts_buffer *key) {
    fe_binding b = fe_binding_of_value(v);
    if (v.tag == RT_TAG_FUNCTION && b.kind == FE_FUNCTION)
        ts_buffer_format(key, "f%p", (void *)b.function);
    else if (v.tag == RT_TAG_FUNCTION && b.kind == FE_CLASS)
        ts_buffer_format(key, "c%p", (void *)b.class_);
    else if (v.tag == RT_TAG_FUNCTION && b.path.length)
        ts_buffer_str(key, b.path);
    else
        ts_buffer_format(key, "v%p", v.as.pointer);
    (void)ev;
}

static ts_status constant_key(rt_value v, ts_buffer *key) {
    rt_value text;
    TS_TRY(rt_to_repr(v, &text));
    ts_buffer_format(key, "%s:", rt_tag_name(v));
    ts_buffer_str(key, ev_text(text));
    rt_release(text);
    return NULL;
}

static ts_status finish_module(evaluator *ev, rt_object *o, ev_instance *i, int depth) {
    fe_class *class_ = i->class_;
    ir_field *fields = TS_NEW_ARRAY(ev->arena, ir_field, i->count + 1);
    bool *are_static = TS_NEW_ARRAY(ev->arena, bool, i->count + 1);
    ts_buffer key = {0};
    size_t count = 0;
    ts_status status = NULL;
    ts_buffer_format(&key, "%p", (void *)class_);
    for (size_t k = 0; k < i->count && !status; k++) {
        status = finish(ev, &o->fields[k], depth + 1);
        rt_value v = o->fields[k];
        ir_field *f = &fields[count];
        if (status)
            break;
        bool is_final = false;
        *f = (ir_field){.name = i->names[k],
                        .is_parameter = i->fields[k].kind == EV_PARAMETER,
                        .is_buffer = i->fields[k].kind == EV_BUFFER,
                        .is_inferred = !declared(class_, i, k).annotation};
        if (is_data(v, 0))
            f->type = field_type(ev, class_, i, k, v, &is_final);
        if (f->type && f->type->kind == IR_LIST && f->type->args[0]->kind == IR_ANY &&
            holds_tensors_or_objects(v, 0))
            f->type = NULL; /* modules of several classes: unrolled where they are used */
        are_static[k] = f->type == NULL;
        ts_buffer_format(&key, "|%.*s", (int)i->names[k].length, i->names[k].data);
        if (are_static[k]) {
            key_of_value(ev, v, &key);
            continue;
        }
        coerce(f->type, &o->fields[k], 0);
        v = o->fields[k];
        bool is_constant = is_final || is_listed_constant(class_, f->name) ||
                           (is_scalar(v) && i->fields[k].kind == EV_PLAIN &&
                            is_never_assigned(ev, class_, f->name));
        if (is_constant && !holds_tensors_or_objects(v, 0)) {
            f->is_constant = true;
            f->constant = v;
            ir_module_retain(ev->fe->module, v);
            status = constant_key(v, &key);
        }
        ts_buffer_format(&key, ":%p%d%d", (const void *)f->type, f->is_parameter, f->is_buffer);
        count++;
    }
    if (!status)
        status = ts_buffer_status(&key);
    if (i->hook_count)
        ts_buffer_format(&key, "!%p", (void *)o);
    ir_class *ir = NULL;
    if (!status) {
        ts_str k = {key.data, key.length};
        ir = fe_map_get(&ev->shared_classes, k);
        if (!ir) {
            ir = fe_module_ir_class(ev->fe, class_);
            fe_ir_class_set_fields(ev->fe, ir, fields, count);
            fe_map_set(ev->arena, &ev->shared_classes, ts_arena_str(ev->arena, k), ir);
            for (size_t n = 0; n < i->count; n++)
                if (are_static[n])
                    keep_static(ev, ir, i->names[n], o->fields[n]);
            char pointer[sizeof(void *)];
            if (i->hook_count)
                fe_map_set(ev->arena, &ev->hooks,
                           ts_arena_str(ev->arena, ev_pointer_key(ev, ir, pointer)), i);
        }
    }
    ts_buffer_deinit(&key);
    TS_TRY(status);
    /* The object's own fields, in the class's order: constants and static ones go. */
    rt_value *values = calloc(ir->base.field_count + 1, sizeof *values);
    if (!values)
        return ts_no_memory();
    for (size_t n = 0; n < ir->base.field_count; n++) {
        int64_t at = ev_field_find(i, ir->base.fields[n]);
        values[n] = at < 0 ? (rt_value){.tag = RT_TAG_UNINITIALIZED} : rt_retain(o->fields[at]);
    }
    for (size_t n = 0; n < i->count; n++)
        rt_release(o->fields[n]);
    free(o->fields);
    o->fields = values;
    o->field_count = ir->base.field_count;
    o->class_ = &ir->base;
    return NULL;
}

/* ---- plain objects ---- */

static ts_status finish_plain(evaluator *ev, rt_object *o, ev_instance *i, int depth) {
    size_t errors = ev->fe->diagnostics->error_count;
    ir_class *ir = fe_class_ir(ev->fe, i->class_);
    if (!ir || ev->fe->diagnostics->error_count > errors) {
        ts_status status = fe_diagnostics_status(ev->fe->diagnostics);
        return status ? status
                      : ts_error_make(TS_ERR_TYPE, "the attributes of class %.*s have no types",
                                      TS_STR_ARG(i->class_->bare_name));
    }
    i->class_->has_objects = true;
    /* The class is known before the values are walked: they may lead back here. */
    rt_value *values = calloc(ir->base.field_count + 1, sizeof *values);
    if (!values)
        return ts_no_memory();
    for (size_t n = 0; n < ir->base.field_count; n++) {
        int64_t at = ev_field_find(i, ir->base.fields[n]);
        values[n] = at < 0 ? (rt_value){.tag = RT_TAG_UNINITIALIZED} : rt_retain(o->fields[at]);
    }
    for (size_t n = 0; n < i->count; n++) {
        bool is_field = rt_class_field(&ir->base, i->names[n]) >= 0;
        if (!is_field && !is_data(o->fields[n], 0))
            keep_static(ev, ir, i->names[n], o->fields[n]);
        rt_release(o->fields[n]);
    }
    free(o->fields);
    o->fields = values;
    o->field_count = ir->base.field_count;
    o->class_ = &ir->base;
    for (size_t n = 0; n < o->field_count; n++) {
        TS_TRY(finish(ev, &o->fields[n], depth + 1));
        for (size_t k = 0; k < ir->field_count; k++)
            if (ts_str_equal(ir->fields[k].name, ir->base.fields[n]))
                coerce(ir->fields[k].type, &o->fields[n], 0);
    }
    return NULL;
}

static ts_status finish_object(evaluator *ev, rt_value v, int depth) {
    ev_instance *i = ev_instance_of(v);
    char key[sizeof(void *)];
    if (!i || i->class_->kind == RT_CLASS_EXCEPTION || !i->class_->node)
        return NULL;
    if (i->class_->kind != RT_CLASS_MODULE)
        return finish_plain(ev, v.as.object, i, depth);
    ts_str k = ev_pointer_key(ev, v.as.object, key);
    if (fe_map_get(&ev->walking, k))
        return ts_error_make(TS_ERR_UNSUPPORTED, "a module of class %.*s holds itself",
                             TS_STR_ARG(i->class_->bare_name));
    fe_map_set(ev->arena, &ev->walking, ts_arena_str(ev->arena, k), v.as.object);
    return finish_module(ev, v.as.object, i, depth);
}

static ts_status finish(evaluator *ev, rt_value *slot, int depth) {
    if (depth > MAX_DEPTH)
        return ts_error_make(TS_ERR_UNSUPPORTED, "values are nested deeper than %d", MAX_DEPTH);
    /* A list twice in a list, and so on: little memory, but whoever walks it walks all. */
    if (ev->items_left-- <= 0)
        return ts_error_make(TS_ERR_UNSUPPORTED, "attributes hold more than %lld values, shared "
                             "ones counted each time", (long long)EV_MAX_ITEMS);
    rt_value v = *slot;
    switch (v.tag) {
    case RT_TAG_OBJECT: return finish_object(ev, v, depth);
    case RT_TAG_LIST:
    case RT_TAG_TUPLE: {
        size_t n;
        rt_value *items = ev_items(v, &n);
        for (size_t i = 0; i < n; i++)
            TS_TRY(finish(ev, &items[i], depth + 1));
        return NULL;
    }
    case RT_TAG_DICT: {
        rt_dict_entry *e;
        for (size_t at = 0; (e = rt_dict_next(v.as.dict, &at));)
            TS_TRY(finish(ev, &e->value, depth + 1));
        return NULL;
    }
    case RT_TAG_CAPSULE: {
        const ev_range *range = ev_as_range(v);
        if (range && range->count <= 65536) {
            rt_value list;
            TS_TRY(ev_to_list(ev, v, &list));
            rt_assign(slot, list);
        }
        return NULL;
    }
    default: return NULL;
    }
}

ts_status ev_finish(evaluator *ev, rt_value *value) { return finish(ev, value, 0); }

ts_status fe_finish_value(struct fe_context *fe, rt_value v) {
    return fe->script ? finish(fe->script, &v, 0) : NULL;
}

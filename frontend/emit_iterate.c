/* frontend/emit_iterate.c - what may stand behind `in` of a for: unrolled items, or a count and an
 * item by index. */
#include "frontend/emit_builtin.h"

enum { HOW_LIST, HOW_RANGE, HOW_STR, HOW_TENSOR, HOW_ENUMERATE, HOW_ZIP, HOW_ITERATOR };

static bool unrolled(em_iteration *out, em *items, size_t count) {
    *out = (em_iteration){.is_unrolled = true, .items = items, .count = count};
    return true;
}

static bool iterate_list(emitter *E, ir_value *list, const ast_node *node, em_iteration *out) {
    *out = (em_iteration){.how = HOW_LIST, .source = em_value(list)};
    out->trip = list ? em_op(E, "len", node, 1, list) : NULL;
    return out->trip != NULL;
}

static bool iterate_range(emitter *E, em *items, const ast_node *node, em_iteration *out) {
    *out = (em_iteration){.how = HOW_RANGE, .start = items[0].value, .step = items[2].value};
    int64_t start, step;
    if (ir_const_int(items[0].value, &start) && start == 0 && ir_const_int(items[2].value, &step) &&
        step == 1)
        out->trip = items[1].value;
    else
        out->trip = em_row(E, "__range_length", node, 3, items[0].value, items[1].value,
                           items[2].value);
    return out->trip != NULL;
}

static em pair(emitter *E, em a, em b) {
    em *items = TS_NEW_ARRAY(E->arena, em, 2);
    items[0] = a;
    items[1] = b;
    return (em){.kind = EM_TUPLE, .items = items, .count = 2};
}

static bool iterate_enumerate(emitter *E, em source, const ast_node *node, em_iteration *out) {
    em_iteration *inner = TS_NEW(E->arena, em_iteration);
    if (!em_iterate(E, source.items[0], node, inner))
        return false;
    if (inner->is_unrolled) {
        em *items = TS_NEW_ARRAY(E->arena, em, inner->count + 1);
        for (size_t i = 0; i < inner->count; i++) {
            ir_value *index = ir_build_int(&E->b, (int64_t)i);
            if (source.value)
                index = em_op(E, "add", node, 2, source.value, index);
            items[i] = pair(E, em_value(index), inner->items[i]);
        }
        return unrolled(out, items, inner->count);
    }
    *out = (em_iteration){.how = HOW_ENUMERATE, .parts = inner, .part_count = 1,
                          .trip = inner->trip, .start = source.value,
                          .dict_check = inner->dict_check, .dict_size = inner->dict_size};
    return true;
}

static bool iterate_zip(emitter *E, em source, const ast_node *node, em_iteration *out) {
    em_iteration *parts = TS_NEW_ARRAY(E->arena, em_iteration, source.count + 1);
    bool any_unrolled = source.count == 0;
    size_t shortest = source.count ? SIZE_MAX : 0;
    for (size_t i = 0; i < source.count; i++) {
        if (!em_iterate(E, source.items[i], node, &parts[i]))
            return false;
        any_unrolled = any_unrolled || parts[i].is_unrolled;
        if (parts[i].is_unrolled && parts[i].count < shortest)
            shortest = parts[i].count;
    }
    if (any_unrolled) {
        em *items = TS_NEW_ARRAY(E->arena, em, shortest + 1);
        for (size_t k = 0; k < shortest; k++) {
            em *row = TS_NEW_ARRAY(E->arena, em, source.count);
            for (size_t i = 0; i < source.count; i++)
                row[i] = parts[i].is_unrolled
                             ? parts[i].items[k]
                             : em_iteration_item(E, &parts[i], ir_build_int(&E->b, (int64_t)k), node);
            items[k] = (em){.kind = EM_TUPLE, .items = row, .count = source.count};
        }
        return unrolled(out, items, shortest);
    }
    *out = (em_iteration){.how = HOW_ZIP, .parts = parts, .part_count = source.count};
    out->trip = parts[0].trip;
    for (size_t i = 1; i < source.count; i++)
        out->trip = em_row(E, "prim_min.int", node, 2, out->trip, parts[i].trip);
    return out->trip != NULL;
}

static bool iterate_dict(emitter *E, ir_value *dict, const char *how, const ast_node *node,
                         em_iteration *out) {
    ir_value *size = em_op(E, "len", node, 1, dict);
    ir_value *list = !size                        ? NULL
                     : em_is_set_type(dict->type) ? em_set_items(E, dict, node)
                                                  : em_op(E, how, node, 1, dict);
    if (!list || !iterate_list(E, list, node, out))
        return false;
    out->dict_check = dict;
    out->dict_size = size;
    return true;
}

static bool is_module_type(const ir_type *t) {
    return t->kind == IR_CLASS && t->class_->base.kind == RT_CLASS_MODULE &&
           !fe_class_is_optimizer(fe_class_of(t->class_));
}

static em get_field(emitter *E, ir_value *object, const ir_field *f) {
    if (f->is_constant)
        return em_of_value(E, f->constant);
    ir_op *op = ir_build_op(&E->b, IR_OP_GET_ATTR, &object, 1, &f->type, 1);
    op->name = f->name;
    return em_value(op->results[0]);
}

static em text(emitter *E, ts_str s) { return em_value(ir_build_str(&E->b, s)); }

/* What children(), modules(), parameters() and their kind give: a walk over the fields, each module and each
 * tensor once, as in PyTorch, however many names it has. */
typedef struct module_walk {
    bool tensors, buffers, recurse, names;
    bool repeats; /* a walk over a container's own items, where a module may stand twice */
    em *items;
    size_t count, capacity;
    const void **seen;
    size_t seen_count, seen_capacity;
} module_walk;

typedef struct object_search {
    ts_arena *arena;
    const ir_class *class_;
    const rt_object *found;
    size_t count;
    fe_map seen; /* addresses of objects: a module may have many names, and hold itself */
} object_search;

enum { MOST_NESTED = 2000 }; /* modules in modules; beyond it none is known */

/* The module objects of a class below v; more than one where modules are alike. */
static void find_objects(rt_value v, int depth, object_search *s) {
    if (v.tag != RT_TAG_OBJECT || v.as.object->class_->kind != RT_CLASS_MODULE)
        return;
    const rt_object *object = v.as.object;
    ts_str address = {(const char *)&object, sizeof object};
    if (fe_map_get(&s->seen, address))
        return;
    fe_map_set(s->arena, &s->seen, ts_arena_str(s->arena, address), s);
    if (depth == MOST_NESTED)
        s->count = 2;
    if (object->class_->info == s->class_) {
        s->found = object;
        s->count++;
    }
    for (size_t i = 0; i < object->field_count && depth < MOST_NESTED; i++)
        find_objects(object->fields[i], depth + 1, s);
}

/* NULL: which object it is, is not known. */
static const rt_object *object_of(emitter *E, const ir_value *module) {
    object_search s = {.arena = E->arena, .class_ = module->type->class_};
    find_objects(E->m->root, 0, &s);
    return s.count == 1 ? s.found : NULL;
}

/* True for a thing that was met before; one that is not known (NULL) is always new. */
static bool was_seen(emitter *E, module_walk *w, const void *thing) {
    for (size_t i = 0; thing && i < w->seen_count; i++)
        if (w->seen[i] == thing)
            return true;
    if (thing)
        TS_APPEND(E->arena, w->seen, w->seen_count, w->seen_capacity, thing);
    return false;
}

static const void *identity_of(const rt_object *object, size_t field) {
    rt_value v = object && field < object->field_count ? object->fields[field] : rt_none();
    return v.tag == RT_TAG_TENSOR ? (const void *)v.as.tensor : v.tag == RT_TAG_OBJECT ? (const void *)v.as.object : NULL;
}

static void add_item(emitter *E, module_walk *w, ts_str name, em v) {
    if (w->names)
        v = pair(E, text(E, name), v);
    TS_APPEND(E->arena, w->items, w->count, w->capacity, v);
}

static void walk_module(emitter *E, module_walk *w, ir_value *module, const rt_object *object, ts_str prefix) {
    const ir_class *c = module->type->class_;
    for (int modules = 0; modules < 2; modules++)
        for (size_t i = 0; i < c->field_count; i++) {
            const ir_field *f = &c->fields[i];
            bool is_module = is_module_type(f->type);
            bool wanted = modules ? is_module && (w->recurse || !w->tensors)
                                  : w->tensors && (w->buffers ? f->is_buffer : f->is_parameter) && f->type->kind != IR_NONE;
            if (!wanted || (!w->repeats && was_seen(E, w, identity_of(object, i))))
                continue;
            ts_str name = prefix.length ? ts_arena_format(E->arena, "%.*s.%.*s", (int)prefix.length, prefix.data, (int)f->name.length,
                                                       f->name.data)
                                        : f->name;
            bool is_object = object && i < object->field_count && object->fields[i].tag == RT_TAG_OBJECT;
            const rt_object *part = is_object ? object->fields[i].as.object : NULL;
            em v = get_field(E, module, f);
            if (!modules || !w->tensors)
                add_item(E, w, name, v);
            if (modules && w->recurse && v.kind == EM_VALUE)
                walk_module(E, w, v.value, part, name);
        }
}

static bool iterate_children(emitter *E, em source, em_iteration *out) {
    em *items = NULL;
    size_t count = 0, capacity = 0;
    ts_str n = source.name;
    bool names = ts_str_starts_with(n, "named_") || ts_str_is(n, "items");
    bool parameters = ts_str_ends_with(n, "parameters"), buffers = ts_str_ends_with(n, "buffers");
    bool all = ts_str_ends_with(n, "modules");
    const ir_class *c = source.value->type->class_;
    bool of_parameters = ts_str_is(c->base.bare_name, "ParameterDict");
    if (ts_str_is(n, "keys")) {
        for (size_t i = 0; i < c->field_count; i++)
            if (of_parameters ? c->fields[i].is_parameter : is_module_type(c->fields[i].type)) {
                em v = text(E, c->fields[i].name);
                TS_APPEND(E->arena, items, count, capacity, v);
            }
        return unrolled(out, items, count);
    }
    parameters = parameters || of_parameters; /* items() and values() */
    module_walk w = {.tensors = parameters || buffers, .buffers = buffers, .recurse = parameters || buffers || all,
                     .names = names, .repeats = source.has_repeats || ts_str_is(n, "items") || ts_str_is(n, "values")};
    const rt_object *object = object_of(E, source.value);
    if (all) {
        was_seen(E, &w, object);
        add_item(E, &w, (ts_str){0}, em_value(source.value));
    }
    walk_module(E, &w, source.value, object, (ts_str){0});
    return unrolled(out, w.items, w.count);
}

static bool iterate_value(emitter *E, ir_value *v, const ast_node *node, em_iteration *out) {
    const ir_type *t = v->type;
    switch (t->kind) {
    case IR_LIST:
        return iterate_list(E, v, node, out);
    case IR_DICT:
        return iterate_dict(E, v, "keys", node, out);
    case IR_TUPLE: {
        em *items = TS_NEW_ARRAY(E->arena, em, t->arg_count + 1);
        ir_op *op = ir_build_op(&E->b, IR_OP_TUPLE_UNPACK, &v, 1, t->args, t->arg_count);
        for (size_t i = 0; i < t->arg_count; i++)
            items[i] = em_value(op->results[i]);
        return unrolled(out, items, t->arg_count);
    }
    case IR_STR:
        *out = (em_iteration){.how = HOW_STR, .source = em_value(v)};
        out->trip = em_op(E, "len", node, 1, v);
        return out->trip != NULL;
    case IR_TENSOR:
        *out = (em_iteration){.how = HOW_TENSOR, .source = em_value(v)};
        out->trip = em_op(E, "len", node, 1, v);
        return out->trip != NULL;
    case IR_OPTIONAL:
        return iterate_value(E, em_check_cast(E, v, t->args[0]), node, out);
    case IR_ANY: { /* tolist(): numbers */
        ir_value *list = em_as_list(E, em_value(v), node);
        return list && iterate_value(E, list, node, out);
    }
    case IR_CLASS:
        if (is_module_type(t)) {
            fe_class *c = fe_class_of(t->class_);
            bool is_dict = c && (ts_str_is(c->bare_name, "ModuleDict") || ts_str_is(c->bare_name, "ParameterDict"));
            bool is_parameters = c && ts_str_is(c->bare_name, "ParameterList");
            return iterate_children(E, (em){.kind = EM_CHILDREN, .value = v, .has_repeats = true,
                                            .name = is_dict ? TS_STR("keys")
                                                    : is_parameters ? TS_STR("parameters")
                                                                    : TS_STR("children")}, out);
        }
        break;
    default:
        break;
    }
    if (t->kind == IR_INT || t->kind == IR_FLOAT || t->kind == IR_BOOL || t->kind == IR_NONE)
        EM_ERR(E, node, "expected something to loop over, found %s", em_type_text(E, t));
    else
        EM_UNSUPPORTED(E, node, "a loop over %s is not supported yet", em_type_text(E, t));
    return false;
}

static bool iterate_object(emitter *E, em source, const ast_node *node, em_iteration *out) {
    ir_value *it = em_iterator(E, source, node);
    *out = (em_iteration){.how = HOW_ITERATOR, .source = em_value(it), .iterator = it};
    return it != NULL;
}

bool em_iterate(emitter *E, em source, const ast_node *node, em_iteration *out) {
    source = em_dict_behind(E, source, node);
    if (em_is_lazy(E, source))
        return iterate_object(E, source, node, out);
    switch (source.kind) {
    case EM_ERROR:
        return false;
    case EM_TUPLE:
        return unrolled(out, source.items, source.count);
    case EM_RANGE:
        return iterate_range(E, source.items, node, out);
    case EM_ENUMERATE:
        return iterate_enumerate(E, source, node, out);
    case EM_ZIP:
        return iterate_zip(E, source, node, out);
    case EM_REVERSED: {
        em inner = source.items[0];
        em_iteration it;
        if (inner.kind == EM_VALUE && inner.value->type->kind == IR_DICT)
            inner = (em){.kind = EM_ITEMS, .value = inner.value, .name = TS_STR("keys")};
        if (inner.kind == EM_VALUE && inner.value->type->kind == IR_TENSOR)
            inner = em_value(em_op(E, "unbind", node, 2, inner.value, ir_build_int(&E->b, 0)));
        bool lazy = inner.kind == EM_VALUE && inner.value->type->kind == IR_LIST;
        if (!lazy && inner.kind != EM_RANGE && inner.kind != EM_ITEMS) {
            if (!em_iterate(E, inner, node, &it))
                return false;
            if (it.is_unrolled) {
                em *items = TS_NEW_ARRAY(E->arena, em, it.count + 1);
                for (size_t i = 0; i < it.count; i++)
                    items[i] = it.items[it.count - 1 - i];
                return unrolled(out, items, it.count);
            }
        }
        ir_value *list = em_ir(E, inner, node, NULL);
        if (list && list->type->kind != IR_LIST)
            list = em_op(E, "list", node, 1, list);
        return list && iterate_list(E, em_op(E, "prim_reversed", node, 1, list), node, out);
    }
    case EM_ITEMS:
        return iterate_dict(E, source.value, ts_arena_copy(E->arena, source.name.data, source.name.length),
                            node, out);
    case EM_CHILDREN:
        return iterate_children(E, source, out);
    case EM_GENERATOR: {
        em list = em_comprehension(E, source.node, NULL);
        return list.kind == EM_VALUE && iterate_list(E, list.value, node, out);
    }
    case EM_VALUE:
        return iterate_value(E, source.value, node, out);
    case EM_BINDING:
        if (source.binding->kind == FE_CLASS && source.binding->class_->kind == RT_CLASS_ENUM) {
            ir_class *c = fe_class_ir(E->fe, source.binding->class_);
            em *items = TS_NEW_ARRAY(E->arena, em, c->enum_member_count + 1);
            for (size_t i = 0; i < c->enum_member_count; i++)
                items[i] = em_of_value(E, c->enum_members[i]);
            return unrolled(out, items, c->enum_member_count);
        }
        if (source.binding->kind == FE_VALUE) {
            em v = em_of_value(E, source.binding->value);
            if (v.kind != EM_BINDING)
                return em_iterate(E, v, node, out);
            ir_value *value = em_ir(E, v, node, NULL);
            return value && iterate_value(E, value, node, out);
        }
        break;
    default:
        break;
    }
    EM_ERR(E, node, "expected something to loop over");
    return false;
}

em em_iteration_item(emitter *E, const em_iteration *it, ir_value *index, const ast_node *node) {
    switch (it->how) {
    case HOW_LIST:
    case HOW_STR:
        return em_value(em_op(E, "__getitem__", node, 2, it->source.value, index));
    case HOW_RANGE: {
        int64_t start, step;
        if (ir_const_int(it->start, &start) && start == 0 && ir_const_int(it->step, &step) && step == 1)
            return em_value(index);
        return em_value(em_row(E, "__derive_index", node, 3, index, it->start, it->step));
    }
    case HOW_TENSOR:
        return em_value(em_op(E, "select", node, 3, it->source.value, ir_build_int(&E->b, 0), index));
    case HOW_ENUMERATE: {
        ir_value *number = it->start ? em_op(E, "add", node, 2, it->start, index) : index;
        return pair(E, em_value(number), em_iteration_item(E, it->parts, index, node));
    }
    case HOW_ZIP: {
        em *items = TS_NEW_ARRAY(E->arena, em, it->part_count + 1);
        for (size_t i = 0; i < it->part_count; i++)
            items[i] = em_iteration_item(E, &it->parts[i], index, node);
        return (em){.kind = EM_TUPLE, .items = items, .count = it->part_count};
    }
    case HOW_ITERATOR:
        return em_attribute_of(E, it->source, TS_STR("value"), node, false);
    default:
        return em_error();
    }
}

ir_value *em_iteration_advance(emitter *E, const em_iteration *it, const ast_node *node) {
    return em_ir(E, em_call_method0(E, it->iterator, "advance", NULL, 0, node), node, NULL);
}

bool em_for_each(emitter *E, em source, const ast_node *node,
                 void (*each)(emitter *E, em item, void *user), void *user) {
    em_iteration it;
    if (!em_iterate(E, source, node, &it))
        return false;
    if (it.is_unrolled) {
        for (size_t i = 0; i < it.count; i++)
            each(E, it.items[i], user);
        return true;
    }
    em_env saved = em_env_copy(E);
    em_place(E, node);
    ir_value *first = it.iterator ? em_iteration_advance(E, &it, node) : ir_build_bool(&E->b, true);
    if (!first)
        return false;
    ir_op *op = ir_build_loop(&E->b, it.iterator ? ir_build_int(&E->b, INT64_MAX) : it.trip, first, NULL, 0);
    ir_block *here = em_enter(E, op->regions[0]);
    each(E, em_iteration_item(E, &it, op->regions[0]->parameters[0], node), user);
    ir_value *go = it.iterator ? em_iteration_advance(E, &it, node) : ir_build_bool(&E->b, true);
    ir_build_yield(&E->b, &go, 1);
    em_leave(E, here);
    em_env_release(E, &E->env);
    E->env = saved;
    return true;
}

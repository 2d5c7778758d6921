/* ir/module.c - modules, functions, classes and the values that constants hold. */
#include "ir/ir_internal.h"

ir_module *ir_module_make(ts_arena *arena) {
    ir_module *m = TS_NEW(arena, ir_module);
    m->arena = arena;
    ir_type_table_init(m);
    ir_size_table_init(m);
    ir_schema_table_init(m);
    return m;
}

void ir_module_deinit(ir_module *m) {
    for (size_t i = 0; i < m->made_count; i++) {
        rt_value v = m->made[i];
        if (v.tag == RT_TAG_LIST)
            rt_list_clear(v.as.list);
        else if (v.tag == RT_TAG_DICT)
            rt_dict_clear(v.as.dict);
        for (size_t j = 0; v.tag == RT_TAG_OBJECT && j < v.as.object->field_count; j++)
            rt_assign(&v.as.object->fields[j], rt_none());
    }
    m->made_count = 0;
    for (size_t i = 0; i < m->retained_count; i++)
        rt_release(m->retained[i]);
    m->retained_count = 0;
}

void ir_module_retain(ir_module *m, rt_value v) {
    if (!rt_is_counted(v))
        return;
    TS_APPEND(m->arena, m->retained, m->retained_count, m->retained_capacity, v);
    rt_retain(v);
}

/* The first function of a name is the one that is found. */
static void note_function(ir_function *f) {
    ir_module *m = f->module;
    if (!ts_map_get(&m->function_names, f->name))
        ts_map_set(m->arena, &m->function_names, f->name, f);
}

static ts_str free_name(ts_arena *arena, const ts_map *taken, ts_map *numbers, ts_str name) {
    if (!ts_map_get(taken, name))
        return name;
    uintptr_t number = (uintptr_t)ts_map_get(numbers, name);
    ts_str made;
    do
        made = ts_arena_format(arena, "%.*s_%d", TS_STR_ARG(name), (int)++number);
    while (ts_map_get(taken, made));
    ts_map_set(arena, numbers, ts_arena_str(arena, name), (void *)number);
    return made;
}

ts_str ir_function_free_name(ir_module *m, ts_str name) {
    return free_name(m->arena, &m->function_names, &m->function_numbers, name);
}

ts_str ir_class_free_name(ir_module *m, ts_str name) {
    return free_name(m->arena, &m->class_names, &m->class_numbers, name);
}

ir_function *ir_function_make(ir_module *m, ts_str name) {
    ir_function *f = TS_NEW(m->arena, ir_function);
    f->name = ts_arena_str(m->arena, name);
    f->module = m;
    f->return_type = ir_type_simple(m, IR_NONE);
    f->body = ir_block_make(m, NULL, f);
    if (m->last_function)
        m->last_function->next = f;
    else
        m->functions = f;
    m->last_function = f;
    note_function(f);
    return f;
}

ir_function *ir_function_find(const ir_module *m, ts_str name) { return ts_map_get(&m->function_names, name); }

void ir_function_rename(ir_function *f, ts_str name) {
    if (ir_function_find(f->module, f->name) == f)
        ts_map_set(f->module->arena, &f->module->function_names, f->name, NULL);
    f->name = ts_arena_str(f->module->arena, name);
    note_function(f);
}

void ir_function_remove(ir_module *m, ir_function *f) {
    ir_function *previous = NULL;
    for (ir_function *at = m->functions; at && at != f; at = at->next)
        previous = at;
    if (previous)
        previous->next = f->next;
    else
        m->functions = f->next;
    if (m->last_function == f)
        m->last_function = previous;
    f->next = NULL;
    if (ir_function_find(m, f->name) == f)
        ts_map_set(m->arena, &m->function_names, f->name, NULL);
    m->function_numbers = (ts_map){0}; /* names are free again */
}

static void restore_callees(ir_module *m, const ir_block *b) {
    for (const ir_op *op = b->first; op; op = op->next) {
        if (op->function)
            ir_function_restore(m, op->function);
        for (size_t i = 0; i < op->region_count; i++)
            restore_callees(m, op->regions[i]);
    }
}

void ir_function_restore(ir_module *m, ir_function *f) {
    for (const ir_function *at = m->functions; at; at = at->next)
        if (at == f)
            return;
    f->next = NULL;
    if (m->last_function)
        m->last_function->next = f;
    else
        m->functions = f;
    m->last_function = f;
    note_function(f);
    restore_callees(m, f->body);
}

ir_value *ir_function_add_parameter(ir_function *f, ts_str name, const ir_type *type,
                                    rt_value default_or_uninitialized) {
    ir_module *m = f->module;
    size_t count = f->body->parameter_count;
    ts_str *names = TS_NEW_ARRAY(m->arena, ts_str, count + 1);
    rt_value *defaults = TS_NEW_ARRAY(m->arena, rt_value, count + 1);
    if (count) {
        memcpy(names, f->parameter_names, count * sizeof *names);
        memcpy(defaults, f->defaults, count * sizeof *defaults);
    }
    names[count] = ts_arena_str(m->arena, name);
    defaults[count] = default_or_uninitialized;
    ir_module_retain(m, default_or_uninitialized);
    f->parameter_names = names;
    f->defaults = defaults;
    return ir_block_add_parameter(m, f->body, type, name);
}

static void note_class(ir_module *m, ir_class *c) {
    if (!ts_map_get(&m->class_names, c->base.name))
        ts_map_set(m->arena, &m->class_names, c->base.name, c);
}

ir_class *ir_class_make(ir_module *m, ts_str qualified_name, rt_class_kind kind) {
    ir_class *c = TS_NEW(m->arena, ir_class);
    c->base.name = ts_arena_str(m->arena, qualified_name);
    size_t from = c->base.name.length;
    while (from > 0 && c->base.name.data[from - 1] != '.')
        from--;
    c->base.bare_name = (ts_str){c->base.name.data + from, c->base.name.length - from};
    c->base.kind = kind;
    c->base.info = c;
    /* A NamedTuple's type depends on its fields: whoever fills them asks for it afterwards. */
    if (kind != RT_CLASS_NAMED_TUPLE)
        c->type = ir_type_of_class(m, c);
    TS_APPEND(m->arena, m->classes, m->class_count, m->class_capacity, c);
    note_class(m, c);
    return c;
}

ir_class *ir_class_find(const ir_module *m, ts_str qualified_name) { return ts_map_get(&m->class_names, qualified_name); }

void ir_class_forget(ir_module *m, size_t count) {
    m->class_names = m->class_numbers = (ts_map){0};
    m->class_count = count;
    for (size_t i = 0; i < count; i++)
        note_class(m, m->classes[i]);
}

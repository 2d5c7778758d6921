/* ir/parse_class.c - the class declarations of .tsir. */
#include "ir/parse_internal.h"

bool ir_class_kind_find(ts_str name, rt_class_kind *out) {
    static const char *const names[] = {
        [RT_CLASS_PLAIN] = "plain",           [RT_CLASS_MODULE] = "module",
        [RT_CLASS_NAMED_TUPLE] = "namedtuple", [RT_CLASS_ENUM] = "enum",
        [RT_CLASS_INTERFACE] = "interface",   [RT_CLASS_EXCEPTION] = "exception"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (ts_str_is(name, names[i])) {
            *out = (rt_class_kind)i;
            return true;
        }
    return false;
}

typedef struct class_parts {
    const rt_class **bases;
    size_t base_count, base_capacity;
    ir_field *fields;
    size_t field_count, field_capacity;
    ts_str *names; /* of the fields that instances have */
    size_t name_count, name_capacity;
    rt_value *members;
    size_t member_count, member_capacity;
} class_parts;

static ts_status read_field(ir_parser *p, class_parts *parts) {
    ir_field f = {0};
    TS_TRY(ir_text_quotable(&p->t, &f.name));
    for (size_t i = 0; i < parts->field_count; i++)
        if (ts_str_equal(parts->fields[i].name, f.name))
            return ir_text_error(&p->t, "a field of another name before this");
    f.name = ts_arena_str(p->m->arena, f.name);
    TS_TRY(ir_text_expect(&p->t, ":"));
    TS_TRY(ir_type_read(&p->t, &f.type));
    for (;;) {
        if (ir_text_take(&p->t, "parameter"))
            f.is_parameter = true;
        else if (ir_text_take(&p->t, "buffer"))
            f.is_buffer = true;
        else
            break;
    }
    if (ir_text_take(&p->t, "=")) {
        f.is_constant = true;
        TS_TRY(ir_read_value(p, &f.constant));
    }
    TS_APPEND(p->m->arena, parts->fields, parts->field_count, parts->field_capacity, f);
    if (!f.is_constant)
        TS_APPEND(p->m->arena, parts->names, parts->name_count, parts->name_capacity, f.name);
    return NULL;
}

static ts_status read_member(ir_parser *p, ir_class *c, class_parts *parts) {
    ts_str name;
    rt_value value, v;
    TS_TRY(ir_text_quotable(&p->t, &name));
    for (size_t i = 0; i < parts->member_count; i++)
        if (ts_str_equal(parts->members[i].as.enumeration->name, name))
            return ir_text_error(&p->t, "a member of another name before this");
    TS_TRY(ir_text_expect(&p->t, "="));
    TS_TRY(ir_read_value(p, &value));
    TS_TRY(rt_enum_make(&c->base, ts_arena_str(p->m->arena, name), value, &v));
    ir_module_retain(p->m, v);
    rt_release(v);
    TS_APPEND(p->m->arena, parts->members, parts->member_count, parts->member_capacity, v);
    return NULL;
}

static ts_status read_method(ir_parser *p, ir_class *c) {
    ir_method method = {0};
    ts_str name;
    TS_TRY(ir_text_quotable(&p->t, &method.name));
    for (size_t i = 0; i < c->method_count; i++)
        if (ts_str_equal(c->methods[i].name, method.name))
            return ir_text_error(&p->t, "a method of another name before this");
    method.name = ts_arena_str(p->m->arena, method.name);
    if (ir_text_take(&p->t, "=")) {
        TS_TRY(ir_read_at_name(p, &name));
        method.function = ir_function_find(p->m, name);
        if (!method.function)
            return ir_text_error(&p->t, "a function of this text before this");
    }
    TS_APPEND(p->m->arena, c->methods, c->method_count, c->method_capacity, method);
    return NULL;
}

ts_status ir_read_class(ir_parser *p) {
    ts_str name;
    TS_TRY(ir_read_at_name(p, &name));
    ir_class *c = ir_class_find(p->m, name);
    (void)ir_text_name(&p->t); /* the kind: read when names were collected */
    TS_TRY(ir_text_expect(&p->t, "{"));
    class_parts parts = {0};
    for (;;) {
        ir_text_space(&p->t);
        if (ir_text_take(&p->t, "}"))
            break;
        if (ir_text_take(&p->t, "base")) {
            TS_TRY(ir_read_at_name(p, &name));
            const ir_class *base = ir_class_find(p->m, name);
            if (!base)
                return ir_text_error(&p->t, "a class of this text before this");
            TS_APPEND(p->m->arena, parts.bases, parts.base_count, parts.base_capacity,
                      &base->base);
        } else if (ir_text_take(&p->t, "field")) {
            TS_TRY(read_field(p, &parts));
        } else if (ir_text_take(&p->t, "member")) {
            TS_TRY(read_member(p, c, &parts));
        } else if (ir_text_take(&p->t, "method")) {
            TS_TRY(read_method(p, c));
        } else {
            return ir_text_error(&p->t, "base, field, member, method or '}'");
        }
    }
    c->base.bases = parts.bases;
    c->base.base_count = parts.base_count;
    c->base.fields = parts.names;
    c->base.field_count = parts.name_count;
    c->fields = parts.fields;
    c->field_count = parts.field_count;
    c->enum_members = parts.members;
    c->enum_member_count = parts.member_count;
    c->type = ir_type_of_class(p->m, c);
    return NULL;
}

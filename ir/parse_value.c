/* ir/parse_value.c - constants of .tsir: numbers, strings, containers, tensors, objects. */
#include <stdlib.h>

#include "ir/parse_internal.h"

/* The module keeps what was made; the reader's own reference goes. */
static ts_status keep(ir_parser *p, rt_value v, rt_value *out) {
    ir_module_retain(p->m, v);
    rt_release(v);
    *out = v;
    return NULL;
}

ts_status ir_read_at_name(ir_parser *p, ts_str *out) {
    TS_TRY(ir_text_expect(&p->t, "@"));
    return ir_text_quotable(&p->t, out);
}

void ir_name_tensor(ir_parser *p, ts_str name, rt_value tensor) {
    ir_named_tensor named = {name, tensor};
    TS_APPEND(p->m->arena, p->tensors, p->tensor_count, p->tensor_capacity, named);
}

ts_status ir_read_weight(ir_parser *p, ts_str name, rt_value *out) {
    for (size_t i = 0; i < p->tensor_count; i++)
        if (ts_str_equal(p->tensors[i].name, name)) {
            *out = p->tensors[i].tensor;
            return NULL;
        }
    if (!p->find_weight)
        return ts_error_at(TS_ERR_SYNTAX, ir_text_place(&p->t),
                           "expected a file of weights that holds '%.*s'", TS_STR_ARG(name));
    rt_value v;
    TS_TRY(p->find_weight(p->user, name, &v));
    TS_TRY(keep(p, v, out));
    ir_name_tensor(p, name, v);
    return NULL;
}

static bool is_digit_of_number(char c) {
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e';
}

static bool read_special(ir_text *t, rt_value *out) {
    static const struct {
        const char *word;
        int kind;
    } words[] = {{"inf", 0}, {"-inf", 1}, {"nan", 2}};
    const double infinity = strtod("inf", NULL), nan = strtod("nan", NULL);
    for (size_t i = 0; i < 3; i++)
        if (ir_text_take(t, words[i].word)) {
            *out = rt_float(words[i].kind == 0 ? infinity : words[i].kind == 1 ? -infinity : nan);
            return true;
        }
    return false;
}

static ts_status read_number(ir_text *t, rt_value *out) {
    if (read_special(t, out))
        return NULL;
    char digits[64];
    size_t length = 0;
    bool is_float = false;
    while (t->at + length < t->end && length < sizeof digits - 1 &&
           is_digit_of_number(t->at[length])) {
        digits[length] = t->at[length];
        is_float |= digits[length] == '.' || digits[length] == 'e';
        length++;
    }
    digits[length] = 0;
    int64_t i;
    if (length && is_float) {
        char *end;
        double f = strtod(digits, &end);
        if (*end)
            return ir_text_error(t, "a number");
        *out = rt_float(f);
        t->at += length;
        return NULL;
    }
    if (!ir_text_int(t, &i))
        return ir_text_error(t, "a value");
    *out = rt_int(i);
    return NULL;
}

static ts_status read_double(ir_text *t, double *out) {
    rt_value v;
    TS_TRY(read_number(t, &v));
    *out = v.tag == RT_TAG_INT ? (double)v.as.i : v.as.f;
    return NULL;
}

static ts_status read_complex(ir_parser *p, rt_value *out) {
    double re, im;
    rt_value v;
    TS_TRY(read_double(&p->t, &re));
    TS_TRY(ir_text_expect(&p->t, ","));
    TS_TRY(read_double(&p->t, &im));
    TS_TRY(ir_text_expect(&p->t, ")"));
    TS_TRY(rt_complex_make(re, im, &v));
    return keep(p, v, out);
}

static ts_status read_device(ir_parser *p, rt_value *out) {
    static const char *const names[] = {"cpu", "cuda", "opencl", "meta"};
    ts_str s;
    TS_TRY(ir_text_string(&p->t, &s));
    ir_text inner = ir_text_make(p->m, (ts_str){0}, s);
    ts_str name = ir_text_name(&inner);
    *out = (rt_value){.tag = RT_TAG_DEVICE, .as.i = -1};
    bool found = false;
    for (uint32_t i = 0; i < 4; i++)
        if (ts_str_is(name, names[i])) {
            out->aux = i;
            found = true;
        }
    if (found && ir_text_take(&inner, ":"))
        found = ir_text_int(&inner, &out->as.i);
    if (!found || inner.at != inner.end)
        return ir_text_error(&p->t, "the name of a device before this");
    return ir_text_expect(&p->t, ")");
}

static ts_status fill_tensor(ir_parser *p, rt_tensor *x) {
    size_t size = rt_dtype_size((rt_dtype)x->dtype);
    TS_TRY(ir_text_expect(&p->t, "["));
    for (int64_t i = 0; i < x->element_count; i++) {
        rt_value v;
        if (i)
            TS_TRY(ir_text_expect(&p->t, ","));
        TS_TRY(read_number(&p->t, &v));
        char *at = (char *)x->data + (size_t)i * size;
        if (v.tag == RT_TAG_FLOAT)
            rt_store_double((rt_dtype)x->dtype, at, v.as.f);
        else
            rt_store_int((rt_dtype)x->dtype, at, v.as.i);
    }
    TS_TRY(ir_text_expect(&p->t, "]"));
    if (ir_text_take(&p->t, ",")) {
        TS_TRY(ir_text_expect(&p->t, "requires_grad"));
        x->requires_grad = true;
    }
    return ir_text_expect(&p->t, ")");
}

static ts_status read_tensor(ir_parser *p, rt_value *out) {
    const ir_type *type;
    TS_TRY(ir_type_read(&p->t, &type));
    bool known = type->kind == IR_TENSOR && type->dtype != RT_DTYPE_UNKNOWN && type->rank >= 0;
    for (int i = 0; known && i < type->rank; i++)
        known = rt_dim_is_constant(type->dims[i]);
    if (!known || rt_dtype_is_complex(type->dtype) || rt_dtype_category(type->dtype) == 'q')
        return ir_text_error(&p->t, "a tensor of known dtype and sizes before this");
    /* What is printed in place is short; a hostile size must not ask for memory. */
    int64_t count;
    if (!rt_element_count(type->dims, type->rank, &count) || count > p->t.end - p->t.at)
        return ir_text_error(&p->t, "fewer elements");
    TS_TRY(ir_text_expect(&p->t, ","));
    rt_tensor *x;
    TS_TRY(rt_tensor_make_zeroed(type->dtype, type->dims, type->rank, &x));
    ts_status status = fill_tensor(p, x);
    if (status) {
        rt_tensor_release(x);
        return status;
    }
    return keep(p, rt_from_tensor(x), out);
}

static ts_status read_enum(ir_parser *p, rt_value *out) {
    ts_str class_name, name;
    TS_TRY(ir_read_at_name(p, &class_name));
    TS_TRY(ir_text_expect(&p->t, ","));
    TS_TRY(ir_text_quotable(&p->t, &name));
    const ir_class *c = ir_class_find(p->m, class_name);
    for (size_t i = 0; c && i < c->enum_member_count; i++)
        if (ts_str_equal(c->enum_members[i].as.enumeration->name, name)) {
            *out = c->enum_members[i];
            return ir_text_expect(&p->t, ")");
        }
    return ir_text_error(&p->t, "a member of an enum class before this");
}

typedef struct value_list {
    rt_value *items;
    size_t count, capacity;
} value_list;

static ts_status read_items(ir_parser *p, const char *close, value_list *out) {
    while (!ir_text_take(&p->t, close)) {
        rt_value v;
        if (out->count) {
            TS_TRY(ir_text_expect(&p->t, ","));
            if (ir_text_take(&p->t, close)) /* (1,) */
                return NULL;
        }
        TS_TRY(ir_read_value(p, &v));
        TS_APPEND(p->m->arena, out->items, out->count, out->capacity, v);
    }
    return NULL;
}

static ts_status read_list_into(ir_parser *p, rt_list *list) {
    value_list items = {0};
    TS_TRY(read_items(p, "]", &items));
    for (size_t i = 0; i < items.count; i++)
        TS_TRY(rt_list_append(list, items.items[i]));
    return NULL;
}

static ts_status read_dict_into(ir_parser *p, rt_dict *dict) {
    bool first = true;
    while (!ir_text_take(&p->t, "}")) {
        rt_value key, value;
        if (!first)
            TS_TRY(ir_text_expect(&p->t, ","));
        first = false;
        TS_TRY(ir_read_value(p, &key));
        TS_TRY(ir_text_expect(&p->t, ":"));
        TS_TRY(ir_read_value(p, &value));
        TS_TRY(rt_dict_set(dict, key, value));
    }
    return NULL;
}

static ts_status read_tuple(ir_parser *p, const rt_class *class_, rt_value *out) {
    value_list items = {0};
    TS_TRY(read_items(p, ")", &items));
    rt_value v;
    TS_TRY(rt_tuple_make(items.count, &v));
    v.as.tuple->class_ = class_;
    for (size_t i = 0; i < items.count; i++)
        v.as.tuple->items[i] = rt_retain(items.items[i]);
    return keep(p, v, out);
}

static ts_status read_named(ir_parser *p, rt_value *out) {
    ts_str name;
    TS_TRY(ir_read_at_name(p, &name));
    if (ir_text_take(&p->t, "=")) {
        TS_TRY(ir_read_value(p, out));
        if (out->tag == RT_TAG_TENSOR)
            ir_name_tensor(p, name, *out);
        return NULL;
    }
    if (!ir_text_take(&p->t, "("))
        return ir_read_weight(p, name, out);
    const ir_class *c = ir_class_find(p->m, name);
    if (!c)
        return ir_text_error(&p->t, "a NamedTuple class before this");
    return read_tuple(p, &c->base, out);
}

static ts_status read_container(ir_parser *p, rt_value *out, bool *out_found) {
    *out_found = true;
    bool is_list = ir_text_take(&p->t, "[");
    if (is_list || ir_text_take(&p->t, "{")) {
        rt_value v;
        TS_TRY(is_list ? rt_list_make(0, &v) : rt_dict_make(&v));
        ts_status status = is_list ? read_list_into(p, v.as.list) : read_dict_into(p, v.as.dict);
        if (status) {
            rt_release(v);
            return status;
        }
        return keep(p, v, out);
    }
    if (ir_text_take(&p->t, "("))
        return read_tuple(p, NULL, out);
    *out_found = false;
    return NULL;
}

static ts_status read_value(ir_parser *p, rt_value *out) {
    ir_text *t = &p->t;
    bool found;
    int64_t number;
    ts_str s;
    rt_value v;
    ir_text_blank(t);
    if (ir_text_take(t, "none"))
        return NULL;
    if (ir_text_take(t, "true") || ir_text_take(t, "false")) {
        *out = rt_bool(t->at[-2] == 'u');
        return NULL;
    }
    if (ir_text_take(t, "unset")) {
        *out = (rt_value){.tag = RT_TAG_UNINITIALIZED};
        return NULL;
    }
    if (ir_text_take(t, "complex("))
        return read_complex(p, out);
    if (ir_text_take(t, "device("))
        return read_device(p, out);
    if (ir_text_take(t, "tensor("))
        return read_tensor(p, out);
    if (ir_text_take(t, "enum("))
        return read_enum(p, out);
    if (ir_text_take(t, "#")) {
        if (!ir_text_int(t, &number) || number < 0 || (size_t)number >= p->object_count ||
            p->objects[number].tag == RT_TAG_NONE)
            return ir_text_error(t, "the number of an object");
        *out = p->objects[number];
        return NULL;
    }
    if (ir_text_peek(t, "\"")) {
        TS_TRY(ir_text_string(t, &s));
        TS_TRY(rt_str_make(s, &v));
        return keep(p, v, out);
    }
    if (ir_text_peek(t, "@"))
        return read_named(p, out);
    TS_TRY(read_container(p, out, &found));
    return found ? NULL : read_number(t, out);
}

ts_status ir_read_value(ir_parser *p, rt_value *out) {
    *out = rt_none();
    if (++p->t.depth > IR_TEXT_DEPTH)
        return ir_text_error(&p->t, "less nesting");
    ts_status status = read_value(p, out);
    p->t.depth--;
    return status;
}

/* ---- objects ---- */

/* "object #3 = @Class { ... }", "object #4 = [ ... ]" or "{ ... }": made empty first, since they
 * may refer to one another. */
ts_status ir_scan_objects(ir_parser *p) {
    const char *start = p->t.at;
    for (; p->t.at < p->t.end; p->t.at++) {
        if (p->t.at != p->t.start && p->t.at[-1] != '\n')
            continue;
        if (!ir_text_take(&p->t, "object #"))
            continue;
        int64_t number;
        if (!ir_text_int(&p->t, &number) || number != (int64_t)p->object_count)
            return ir_text_error(&p->t, "objects numbered in order from 0");
        TS_TRY(ir_text_expect(&p->t, "="));
        rt_value v, kept;
        if (ir_text_take(&p->t, "[")) {
            TS_TRY(rt_list_make(0, &v));
        } else if (ir_text_take(&p->t, "{")) {
            TS_TRY(rt_dict_make(&v));
        } else {
            ts_str name;
            TS_TRY(ir_read_at_name(p, &name));
            const ir_class *c = ir_class_find(p->m, name);
            if (!c)
                return ir_text_error(&p->t, "a class of this module before this");
            TS_TRY(rt_object_make(&c->base, &v));
        }
        TS_TRY(keep(p, v, &kept));
        TS_APPEND(p->m->arena, p->objects, p->object_count, p->object_capacity, kept);
        TS_APPEND(p->m->arena, p->m->made, p->m->made_count, p->m->made_capacity, kept);
        p->t.at--;
    }
    p->t.at = start;
    return NULL;
}

ts_status ir_read_object(ir_parser *p) {
    int64_t number;
    TS_TRY(ir_text_expect(&p->t, "#"));
    if (!ir_text_int(&p->t, &number) || number < 0 || (size_t)number >= p->object_count)
        return ir_text_error(&p->t, "the number of an object");
    TS_TRY(ir_text_expect(&p->t, "="));
    rt_value v = p->objects[number];
    if (v.tag == RT_TAG_LIST) {
        TS_TRY(ir_text_expect(&p->t, "["));
        return read_list_into(p, v.as.list);
    }
    if (v.tag == RT_TAG_DICT) {
        TS_TRY(ir_text_expect(&p->t, "{"));
        return read_dict_into(p, v.as.dict);
    }
    ts_str name;
    TS_TRY(ir_read_at_name(p, &name));
    TS_TRY(ir_text_expect(&p->t, "{"));
    bool first = true;
    while (!ir_text_take(&p->t, "}")) {
        rt_value field;
        if (!first)
            TS_TRY(ir_text_expect(&p->t, ","));
        first = false;
        TS_TRY(ir_text_quotable(&p->t, &name));
        int64_t at = rt_class_field(v.as.object->class_, name);
        if (at < 0)
            return ir_text_error(&p->t, "a field that the class declares before this");
        TS_TRY(ir_text_expect(&p->t, "="));
        TS_TRY(ir_read_value(p, &field));
        rt_assign(&v.as.object->fields[at], rt_retain(field));
    }
    return NULL;
}

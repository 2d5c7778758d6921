/* ir/schema.c - PyTorch's schema text ("add.Tensor(Tensor self, ...) -> Tensor") as data.
 *
 * Rows of the operator table are parsed when first asked for and kept with the module. A unit test
 * parses all rows, so a row that does not parse is a bug of ours, not of the user. */
#include "ir/ir_internal.h"

#include <assert.h>
#include <stdlib.h>

struct ir_schema_table {
    const ir_schema *schemas[OP_COUNT + 1];
};

void ir_schema_table_init(ir_module *m) { m->schemas = TS_NEW(m->arena, ir_schema_table); }

typedef struct read_type {
    const ir_type *type;
    char alias;
    bool is_written;
    int64_t fixed_length;
} read_type;

static const struct {
    const char *name;
    ir_kind kind;
} base_types[] = {
    {"Tensor", IR_TENSOR},     {"Scalar", IR_NUMBER},     {"number", IR_NUMBER},
    {"int", IR_INT},           {"SymInt", IR_INT},        {"ScalarType", IR_INT},
    {"Layout", IR_INT},        {"MemoryFormat", IR_INT},  {"QScheme", IR_INT},
    {"float", IR_FLOAT},       {"bool", IR_BOOL},         {"SymBool", IR_BOOL},
    {"complex", IR_COMPLEX},   {"str", IR_STR},           {"Dimname", IR_STR},
    {"Device", IR_DEVICE},     {"Generator", IR_GENERATOR}, {"Any", IR_ANY},
    {"AnyClassType", IR_ANY},  {"AnyEnumType", IR_ANY},   {"AnyListType", IR_ANY},
    {"AnyTupleType", IR_ANY},  {"NoneType", IR_NONE},     {"Stream", IR_CAPSULE},
    {"Storage", IR_CAPSULE},   {"Capsule", IR_CAPSULE},
};

/* "(a!)", "(a -> *)", "(a|b)", "(*)" behind a type. */
static void read_alias(ir_text *t, read_type *out) {
    ir_text_blank(t);
    const char *p = t->at;
    if (p >= t->end || *p != '(')
        return;
    char letter = 0;
    bool written = false;
    for (p++; p < t->end && *p != ')'; p++) {
        bool is_letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
        if (!is_letter && !strchr("!*->| ", *p))
            return;
        if (!letter && (is_letter || *p == '*'))
            letter = *p;
        written |= *p == '!';
    }
    if (p >= t->end || !letter)
        return;
    t->at = p + 1;
    out->alias = letter;
    out->is_written |= written;
}

static ts_status read_schema_type(ir_text *t, read_type *out);

static ts_status read_base(ir_text *t, read_type *out) {
    ir_module *m = t->m;
    if (ir_text_take(t, "(")) {
        const ir_type **items = NULL;
        size_t count = 0, capacity = 0;
        while (!ir_text_take(t, ")")) {
            read_type item;
            if (count)
                TS_TRY(ir_text_expect(t, ","));
            TS_TRY(read_schema_type(t, &item));
            TS_APPEND(m->arena, items, count, capacity, item.type);
        }
        out->type = ir_type_tuple(m, items, count, NULL);
        return NULL;
    }
    ts_str name = ir_text_word(t);
    if (!name.length)
        return ir_text_error(t, "a type");
    bool is_dict = ts_str_is(name, "Dict");
    if (is_dict || ts_str_is(name, "Future") || ts_str_is(name, "Await") ||
        ts_str_is(name, "RRef")) {
        read_type a, b;
        TS_TRY(ir_text_expect(t, "("));
        TS_TRY(read_schema_type(t, &a));
        if (is_dict) {
            TS_TRY(ir_text_expect(t, ","));
            TS_TRY(read_schema_type(t, &b));
            out->type = ir_type_dict(m, a.type, b.type);
        } else {
            out->type = ir_type_future(m, a.type);
        }
        return ir_text_expect(t, ")");
    }
    for (size_t i = 0; i < sizeof base_types / sizeof base_types[0]; i++)
        if (ts_str_is(name, base_types[i].name)) {
            out->type = ir_type_simple(m, base_types[i].kind);
            return NULL;
        }
    bool is_variable = name.data[0] >= 'a' && name.data[0] <= 'z';
    out->type = is_variable ? ir_type_var(m, name) : ir_type_simple(m, IR_CAPSULE);
    return NULL;
}

static ts_status read_schema_type(ir_text *t, read_type *out) {
    *out = (read_type){0};
    if (++t->depth > IR_TEXT_DEPTH)
        return ir_text_error(t, "less nesting");
    TS_TRY(read_base(t, out));
    read_alias(t, out);
    for (;;) {
        if (ir_text_take(t, "?")) {
            out->type = ir_type_optional(t->m, out->type);
        } else if (ir_text_take(t, "[")) {
            int64_t length = -1;
            (void)ir_text_int(t, &length);
            TS_TRY(ir_text_expect(t, "]"));
            out->type = ir_type_list(t->m, out->type);
            out->fixed_length = length;
        } else {
            break;
        }
        read_alias(t, out);
    }
    t->depth--;
    return NULL;
}

/* ---- defaults ---- */

static bool take_name_of_enum(ir_text *t, int64_t *out) {
    static const struct {
        const char *name;
        int64_t value;
    } names[] = {{"Mean", 1},           {"Sum", 2},          {"long", 4},
                 {"contiguous_format", 0}, {"preserve_format", 1}, {"channels_last", 2},
                 {"strided", 0}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (ir_text_take(t, names[i].name)) {
            *out = names[i].value;
            return true;
        }
    return false;
}

static ts_status read_number(ir_text *t, rt_value *out) {
    ir_text_blank(t);
    char digits[64];
    size_t length = 0;
    bool is_float = false;
    while (t->at + length < t->end && length < sizeof digits - 1 &&
           strchr("+-.0123456789einfa", t->at[length])) {
        digits[length] = t->at[length];
        is_float |= strchr(".einfa", digits[length]) != NULL;
        length++;
    }
    digits[length] = 0;
    char *end;
    double f = strtod(digits, &end);
    if (!length || *end)
        return ir_text_error(t, "a default value");
    int64_t i;
    if (is_float) {
        *out = rt_float(f);
        t->at += length;
    } else if (ir_text_int(t, &i)) {
        *out = rt_int(i);
    } else {
        return ir_text_error(t, "a default value");
    }
    return NULL;
}

static ts_status read_default(ir_text *t, rt_value *out);

static ts_status read_default_list(ir_text *t, rt_value *out) {
    TS_TRY(rt_list_make(0, out));
    ts_status status = NULL;
    while (!status && !ir_text_take(t, "]")) {
        rt_value item;
        if (out->as.list->count)
            TS_TRY_OR(ir_text_expect(t, ","), done);
        TS_TRY_OR(read_default(t, &item), done);
        status = rt_list_append(out->as.list, item);
        rt_release(item);
    }
done:
    if (status) {
        rt_release(*out);
        *out = rt_none();
    }
    return status;
}

static ts_status read_default(ir_text *t, rt_value *out) {
    int64_t i;
    *out = rt_none();
    if (ir_text_take(t, "None"))
        return NULL;
    if (ir_text_peek(t, "True") || ir_text_peek(t, "False")) {
        *out = rt_bool(ir_text_take(t, "True"));
        if (!out->as.i)
            (void)ir_text_take(t, "False");
        return NULL;
    }
    if (ir_text_take(t, "["))
        return read_default_list(t, out);
    if (ir_text_peek(t, "\"") || ir_text_peek(t, "'")) {
        ts_str s;
        TS_TRY(ir_text_string(t, &s));
        return rt_str_make(s, out);
    }
    if (take_name_of_enum(t, &i)) {
        *out = rt_int(i);
        return NULL;
    }
    return read_number(t, out);
}

/* A default in the type of its argument: 1 for a float is 1.0, 1 for int[2] is [1, 1]. */
static ts_status fit_default(const ir_schema_arg *arg, rt_value *v) {
    const ir_type *type = arg->type->kind == IR_OPTIONAL ? arg->type->args[0] : arg->type;
    if (type->kind == IR_FLOAT && v->tag == RT_TAG_INT)
        *v = rt_float((double)v->as.i);
    if (type->kind == IR_LIST && v->tag == RT_TAG_LIST && type->args[0]->kind == IR_FLOAT)
        for (size_t i = 0; i < v->as.list->count; i++)
            if (v->as.list->items[i].tag == RT_TAG_INT)
                v->as.list->items[i] = rt_float((double)v->as.list->items[i].as.i);
    if (type->kind != IR_LIST || v->tag == RT_TAG_LIST || v->tag == RT_TAG_NONE ||
        arg->fixed_length < 1)
        return NULL;
    rt_value list;
    TS_TRY(rt_list_make((size_t)arg->fixed_length, &list));
    for (int64_t i = 0; i < arg->fixed_length; i++) {
        ts_status status = rt_list_append(list.as.list, *v);
        if (status) {
            rt_release(list);
            return status;
        }
    }
    rt_release(*v);
    *v = list;
    return NULL;
}

static ts_status read_arg(ir_text *t, ir_schema_arg *out) {
    read_type type;
    TS_TRY(read_schema_type(t, &type));
    *out = (ir_schema_arg){.type = type.type,
                           .alias = type.alias,
                           .is_written = type.is_written,
                           .fixed_length = type.fixed_length};
    out->name = ts_arena_str(t->m->arena, ir_text_name(t));
    if (!ir_text_take(t, "="))
        return NULL;
    TS_TRY(read_default(t, &out->default_value));
    ts_status status = fit_default(out, &out->default_value);
    if (!status) {
        out->has_default = true;
        ir_module_retain(t->m, out->default_value);
    }
    rt_release(out->default_value);
    return status;
}

static ts_status read_results(ir_text *t, ir_schema *out) {
    ir_module *m = t->m;
    size_t count = 0, alias_count = 0, type_capacity = 0, alias_capacity = 0;
    if (ir_text_take(t, "..."))
        return NULL;
    bool is_list = ir_text_take(t, "(");
    while (!is_list || !ir_text_take(t, ")")) {
        read_type type;
        if (count)
            TS_TRY(ir_text_expect(t, ","));
        TS_TRY(read_schema_type(t, &type));
        (void)ir_text_name(t);
        TS_APPEND(m->arena, out->results, count, type_capacity, type.type);
        TS_APPEND(m->arena, out->result_aliases, alias_count, alias_capacity, type.alias);
        if (!is_list)
            break;
    }
    out->result_count = count;
    return NULL;
}

ts_status ir_schema_parse(ir_module *m, ts_str text, ir_schema *out) {
    *out = (ir_schema){0};
    text = ts_arena_str(m->arena, text);
    ir_text t = ir_text_make(m, (ts_str){0}, text);
    size_t length = 0, dot = text.length;
    while (length < text.length && text.data[length] != '(') {
        if (text.data[length] == '.' && length > 0 && dot == text.length)
            dot = length;
        length++;
    }
    if (length == 0 || length == text.length)
        return ir_text_error(&t, "an operator's name and its arguments");
    size_t name_length = dot < length ? dot : length;
    out->name = (ts_str){text.data, name_length};
    if (dot < length)
        out->overload = (ts_str){text.data + dot + 1, length - dot - 1};
    t.at = text.data + length + 1;
    size_t capacity = 0;
    bool keyword_only = false, first = true;
    while (!ir_text_take(&t, ")")) {
        if (!first)
            TS_TRY(ir_text_expect(&t, ","));
        first = false;
        if (ir_text_take(&t, "...")) {
            out->is_variadic = true;
        } else if (ir_text_take(&t, "*")) {
            keyword_only = true;
        } else {
            ir_schema_arg arg;
            TS_TRY(read_arg(&t, &arg));
            arg.is_keyword_only = keyword_only;
            TS_APPEND(m->arena, out->args, out->arg_count, capacity, arg);
        }
    }
    TS_TRY(ir_text_expect(&t, "->"));
    TS_TRY(read_results(&t, out));
    ir_text_blank(&t);
    return t.at == t.end ? NULL : ir_text_error(&t, "the end of the schema");
}

const ir_schema *ir_schema_of(ir_module *m, rt_op op) {
    ir_schema_table *table = m->schemas;
    if (!table->schemas[op]) {
        ir_schema *schema = TS_NEW(m->arena, ir_schema);
        ts_status status = ir_schema_parse(m, ts_str_of(rt_op_get(op)->schema), schema);
        if (status) {
            assert(false && "a row of core_ops.def does not parse");
            ts_status_release(status);
        }
        table->schemas[op] = schema;
    }
    return table->schemas[op];
}

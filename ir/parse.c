/* ir/parse.c - .tsir text to a module; docs/ir.md has the grammar.
 *
 * Names of classes, functions and objects are collected first, since they may be used before they
 * are declared. Errors carry the place in the text. */
#include "ir/parse_internal.h"

typedef struct named_value {
    ts_str name;
    ir_value *value;
    size_t chain; /* the entry that had this bucket before, + 1 */
} named_value;

enum { BUCKETS = 1024 };

typedef struct function_reader {
    ir_parser *p;
    ir_function *f;
    named_value *values; /* a stack; what a region defined is popped at its end */
    size_t count, capacity;
    size_t buckets[BUCKETS]; /* entry + 1 */
} function_reader;

/* ---- names ---- */

static size_t bucket_of(ts_str name) {
    size_t h = 5381;
    for (size_t i = 0; i < name.length; i++)
        h = h * 33 + (unsigned char)name.data[i];
    return h % BUCKETS;
}

static ir_value *find_value(const function_reader *r, ts_str name) {
    for (size_t at = r->buckets[bucket_of(name)]; at; at = r->values[at - 1].chain)
        if (ts_str_equal(r->values[at - 1].name, name))
            return r->values[at - 1].value;
    return NULL;
}

static bool is_number_name(ts_str name) { return name.data[0] >= '0' && name.data[0] <= '9'; }

static ts_status define(function_reader *r, ts_str name, ir_value *v) {
    if (find_value(r, name))
        return ir_text_error(&r->p->t, "a name that is not defined twice before this");
    size_t bucket = bucket_of(name);
    named_value n = {name, v, r->buckets[bucket]};
    TS_APPEND(r->p->m->arena, r->values, r->count, r->capacity, n);
    r->buckets[bucket] = r->count;
    v->name = is_number_name(name) ? (ts_str){0} : name;
    return NULL;
}

static void pop_values(function_reader *r, size_t count) {
    while (r->count > count) {
        named_value n = r->values[--r->count];
        r->buckets[bucket_of(n.name)] = n.chain;
    }
}

static ts_status read_value_name(ir_parser *p, ts_str *out) {
    TS_TRY(ir_text_expect(&p->t, "%"));
    const char *from = p->t.at;
    while (p->t.at < p->t.end && *p->t.at >= '0' && *p->t.at <= '9')
        p->t.at++;
    *out = (ts_str){from, (size_t)(p->t.at - from)};
    if (!out->length)
        *out = ir_text_word(&p->t);
    if (!out->length)
        return ir_text_error(&p->t, "the name of a value");
    *out = ts_arena_str(p->m->arena, *out);
    return NULL;
}

/* ---- operands ---- */

static ts_status read_operand(function_reader *r, ir_builder *b, const ir_type *wanted,
                              ir_value **out) {
    ir_parser *p = r->p;
    if (ir_text_peek(&p->t, "%")) {
        ts_str name;
        TS_TRY(read_value_name(p, &name));
        *out = find_value(r, name);
        return *out ? NULL : ir_text_error(&p->t, "a value that is defined before this");
    }
    rt_value v;
    TS_TRY(ir_read_value(p, &v));
    *out = ir_build_const_typed(b, v, ir_inline_type(p->m, v, wanted));
    return NULL;
}

typedef struct operand_list {
    ir_value **items;
    size_t count, capacity;
} operand_list;

static ts_status read_operands(function_reader *r, ir_builder *b, const char *close,
                               operand_list *out) {
    while (!ir_text_take(&r->p->t, close)) {
        ir_value *v;
        if (out->count)
            TS_TRY(ir_text_expect(&r->p->t, ","));
        TS_TRY(read_operand(r, b, NULL, &v));
        TS_APPEND(r->p->m->arena, out->items, out->count, out->capacity, v);
    }
    return NULL;
}

static bool at_line_end(ir_parser *p) {
    ir_text_blank(&p->t);
    return p->t.at >= p->t.end || *p->t.at == '\n' || *p->t.at == '#';
}

static bool take_back_number(const char *from, const char **end, int *out) {
    const char *p = *end;
    int64_t n = 0, scale = 1;
    while (p > from && p[-1] >= '0' && p[-1] <= '9' && scale < 1000000000) {
        p--;
        n += (*p - '0') * scale;
        scale *= 10;
    }
    if (p == *end || p == from || p[-1] != ':')
        return false;
    *out = (int)n;
    *end = p - 1;
    return true;
}

/* The line that the cursor stands on; counting goes on where it stopped. */
static int line_of(ir_parser *p) {
    if (!p->line_at) {
        p->line_at = p->t.start;
        p->line = 1;
    }
    for (; p->line_at < p->t.at; p->line_at++)
        p->line += *p->line_at == '\n';
    return p->line;
}

/* "# file:line:column" at the end of a line is the operator's place; other comments are skipped.
 * Without one the place is in this text, marked by a length of -1, so that it is not printed. */
static ts_status read_line_end(ir_parser *p, ts_place *out) {
    *out = (ts_place){p->t.file, line_of(p), 1, -1};
    if (!at_line_end(p))
        return ir_text_error(&p->t, "the end of the line");
    if (p->t.at >= p->t.end || *p->t.at != '#')
        return NULL;
    const char *from = p->t.at + 1, *end = from;
    while (end < p->t.end && *end != '\n')
        end++;
    p->t.at = end;
    while (from < end && *from == ' ')
        from++;
    while (end > from && (end[-1] == ' ' || end[-1] == '\r'))
        end--;
    int line, column;
    if (!take_back_number(from, &end, &column) || !take_back_number(from, &end, &line))
        return NULL;
    ts_str file = {from, (size_t)(end - from)};
    if (file.length && file.data[0] == '"') {
        ir_text t = ir_text_make(p->m, (ts_str){0}, file);
        ts_status status = ir_text_string(&t, &file);
        if (status) {
            ts_status_release(status);
            return NULL;
        }
    }
    *out = (ts_place){ts_arena_str(p->m->arena, file), line, column, 0};
    return NULL;
}

/* ---- result types ---- */

typedef struct result_list {
    ts_str *names;
    size_t name_count, name_capacity;
    const ir_type **types;
    int64_t *offsets;
    size_t type_count, type_capacity, offset_count, offset_capacity;
    bool given;
} result_list;

static ts_status read_result_type(ir_parser *p, result_list *out) {
    const ir_type *type;
    int64_t offset = -1;
    TS_TRY(ir_type_read(&p->t, &type));
    if (ir_text_take(&p->t, "at") && (!ir_text_int(&p->t, &offset) || offset < 0))
        return ir_text_error(&p->t, "an offset in bytes");
    TS_APPEND(p->m->arena, out->types, out->type_count, out->type_capacity, type);
    TS_APPEND(p->m->arena, out->offsets, out->offset_count, out->offset_capacity, offset);
    return NULL;
}

static ts_status read_result_types(ir_parser *p, const char *before, result_list *out) {
    if (!ir_text_take(&p->t, before))
        return NULL;
    out->given = true;
    if (!ir_text_take(&p->t, "("))
        return read_result_type(p, out);
    while (!ir_text_take(&p->t, ")")) {
        if (out->type_count)
            TS_TRY(ir_text_expect(&p->t, ","));
        TS_TRY(read_result_type(p, out));
    }
    return NULL;
}

static ts_status add_results(function_reader *r, ir_op *op, const result_list *results) {
    ir_parser *p = r->p;
    if (results->type_count != results->name_count)
        return ir_text_error(&p->t, "as many types as results before this");
    for (size_t i = 0; i < results->type_count; i++) {
        ir_value *v = i < op->result_count
                          ? op->results[i]
                          : ir_op_add_result(p->m, op, results->types[i], (ts_str){0});
        v->type = results->types[i];
        v->buffer_offset = results->offsets ? results->offsets[i] : -1;
    }
    return NULL;
}

static ts_status define_results(function_reader *r, ir_op *op, const result_list *results) {
    if (op->result_count != results->name_count)
        return ir_text_error(&r->p->t, "as many names as the operator has results before this");
    for (size_t i = 0; i < op->result_count; i++)
        TS_TRY(define(r, results->names[i], op->results[i]));
    return NULL;
}

/* ---- operators with regions ---- */

static ts_status read_block(function_reader *r, ir_block *block);

static ts_status read_region(function_reader *r, ir_block *block) {
    ir_parser *p = r->p;
    if (++p->t.depth > IR_TEXT_DEPTH)
        return ir_text_error(&p->t, "less nesting");
    size_t count = r->count;
    TS_TRY(read_block(r, block));
    pop_values(r, count);
    p->t.depth--;
    return NULL;
}

static ts_status read_if(function_reader *r, ir_builder *b, result_list *results, ir_op **out) {
    ir_parser *p = r->p;
    ir_value *condition;
    ts_place place;
    TS_TRY(read_operand(r, b, NULL, &condition));
    TS_TRY(read_result_types(p, "->", results));
    TS_TRY(ir_text_expect(&p->t, "{"));
    TS_TRY(read_line_end(p, &place));
    *out = ir_build_if(b, condition);
    (*out)->place = place;
    TS_TRY(add_results(r, *out, results));
    TS_TRY(read_region(r, (*out)->regions[0]));
    TS_TRY(ir_text_expect(&p->t, "else"));
    TS_TRY(ir_text_expect(&p->t, "{"));
    TS_TRY(read_line_end(p, &place));
    return read_region(r, (*out)->regions[1]);
}

typedef struct carried_list {
    ts_str *names;
    const ir_type **types;
    int64_t *offsets;
    ir_value **values;
    size_t name_count, name_capacity, type_count, type_capacity, value_count, value_capacity;
    size_t offset_count, offset_capacity;
} carried_list;

/* "(%h: T = %h0, ...)" */
static ts_status read_carried(function_reader *r, ir_builder *b, carried_list *out) {
    ir_parser *p = r->p;
    TS_TRY(ir_text_expect(&p->t, "("));
    while (!ir_text_take(&p->t, ")")) {
        ts_str name;
        ir_value *v;
        result_list type = {0};
        if (out->name_count)
            TS_TRY(ir_text_expect(&p->t, ","));
        TS_TRY(read_value_name(p, &name));
        TS_TRY(ir_text_expect(&p->t, ":"));
        TS_TRY(read_result_type(p, &type));
        TS_TRY(ir_text_expect(&p->t, "="));
        TS_TRY(read_operand(r, b, type.types[0], &v));
        TS_APPEND(p->m->arena, out->names, out->name_count, out->name_capacity, name);
        TS_APPEND(p->m->arena, out->types, out->type_count, out->type_capacity, type.types[0]);
        TS_APPEND(p->m->arena, out->values, out->value_count, out->value_capacity, v);
        TS_APPEND(p->m->arena, out->offsets, out->offset_count, out->offset_capacity,
                  type.offsets[0]);
    }
    return NULL;
}

static ts_status define_carried(function_reader *r, const carried_list *c, ir_block *block,
                                size_t from) {
    for (size_t i = 0; i < c->name_count; i++) {
        ir_value *v = block->parameters[from + i];
        v->type = c->types[i];
        v->buffer_offset = c->offsets[i];
        TS_TRY(define(r, c->names[i], v));
    }
    return NULL;
}

static ts_status read_loop(function_reader *r, ir_builder *b, result_list *results, ir_op **out) {
    ir_parser *p = r->p;
    ts_str counter;
    ir_value *max, *condition;
    carried_list carried = {0};
    ts_place place;
    TS_TRY(read_value_name(p, &counter));
    TS_TRY(ir_text_expect(&p->t, "to"));
    TS_TRY(read_operand(r, b, NULL, &max));
    TS_TRY(ir_text_expect(&p->t, "while"));
    TS_TRY(read_operand(r, b, NULL, &condition));
    if (ir_text_take(&p->t, "carry"))
        TS_TRY(read_carried(r, b, &carried));
    TS_TRY(read_result_types(p, "->", results));
    TS_TRY(ir_text_expect(&p->t, "{"));
    TS_TRY(read_line_end(p, &place));
    *out = ir_build_loop(b, max, condition, carried.values, carried.value_count);
    (*out)->place = place;
    TS_TRY(add_results(r, *out, results));
    ir_block *body = (*out)->regions[0];
    size_t count = r->count;
    TS_TRY(define(r, counter, body->parameters[0]));
    for (size_t i = 0; i < carried.name_count; i++)
        ir_block_add_parameter(p->m, body, carried.types[i], (ts_str){0});
    TS_TRY(define_carried(r, &carried, body, 1));
    TS_TRY(read_region(r, body));
    pop_values(r, count);
    return NULL;
}

static ts_status read_kernel(function_reader *r, ir_builder *b, result_list *results,
                             ir_op **out) {
    static const char *const kinds[] = {"pointwise", "contraction", "stream"};
    ir_parser *p = r->p;
    carried_list inputs = {0};
    ts_place place;
    int kind = 0;
    while (kind < 3 && !ir_text_take(&p->t, kinds[kind]))
        kind++;
    if (kind == 3)
        return ir_text_error(&p->t, "pointwise, contraction or stream");
    TS_TRY(read_carried(r, b, &inputs));
    TS_TRY(read_result_types(p, "->", results));
    TS_TRY(ir_text_expect(&p->t, "{"));
    TS_TRY(read_line_end(p, &place));
    *out = ir_build_kernel(b, (ir_kernel_kind)kind, inputs.values, inputs.value_count);
    (*out)->place = place;
    TS_TRY(add_results(r, *out, results));
    size_t count = r->count;
    TS_TRY(define_carried(r, &inputs, (*out)->regions[0], 0));
    TS_TRY(read_region(r, (*out)->regions[0]));
    pop_values(r, count);
    return NULL;
}

/* ---- operators of one line ---- */

static ts_status read_const(function_reader *r, ir_builder *b, const result_list *results,
                            ir_op **out) {
    ir_parser *p = r->p;
    ts_str weight_name = {0};
    rt_value v;
    (void)results;
    const char *from = p->t.at;
    if (ir_text_peek(&p->t, "@")) {
        TS_TRY(ir_read_at_name(p, &weight_name));
        weight_name = ts_arena_str(p->m->arena, weight_name);
        if (ir_text_peek(&p->t, "(")) { /* a NamedTuple */
            weight_name = (ts_str){0};
            p->t.at = from;
            TS_TRY(ir_read_value(p, &v));
        } else if (ir_text_take(&p->t, "=")) {
            TS_TRY(ir_read_value(p, &v));
            if (v.tag == RT_TAG_TENSOR)
                ir_name_tensor(p, weight_name, v);
        } else {
            TS_TRY(ir_read_weight(p, weight_name, &v));
        }
    } else {
        TS_TRY(ir_read_value(p, &v));
    }
    ir_value *made = ir_build_const(b, v);
    *out = made->def;
    (*out)->weight_name = weight_name;
    return NULL;
}

static ts_status read_core(function_reader *r, ir_builder *b, ts_str name, ir_op **out) {
    ir_parser *p = r->p;
    rt_op core = rt_op_find(name);
    if (core == OP_COUNT) {
        p->t.at = name.data;
        return ir_text_error(&p->t, "the name of an operator");
    }
    const ir_schema *s = ir_schema_of(p->m, core);
    ir_value **operands = TS_NEW_ARRAY(p->m->arena, ir_value *, s->arg_count);
    size_t position = 0;
    bool first = true;
    TS_TRY(ir_text_expect(&p->t, "("));
    while (!ir_text_take(&p->t, ")")) {
        if (!first)
            TS_TRY(ir_text_expect(&p->t, ","));
        first = false;
        const char *from = p->t.at;
        ts_str keyword = ir_text_name(&p->t);
        size_t at = position;
        if (keyword.length && ir_text_take(&p->t, "=")) {
            at = 0;
            while (at < s->arg_count && !ts_str_equal(s->args[at].name, keyword))
                at++;
        } else {
            p->t.at = from;
        }
        if (at >= s->arg_count || operands[at])
            return ir_text_error(&p->t, "an argument that the operator has");
        TS_TRY(read_operand(r, b, s->args[at].type, &operands[at]));
        position = at + 1;
    }
    for (size_t i = 0; i < s->arg_count; i++) {
        if (operands[i])
            continue;
        if (!s->args[i].has_default)
            return ts_error_at(TS_ERR_SYNTAX, ir_text_place(&p->t),
                               "expected the argument '%.*s' of %.*s", TS_STR_ARG(s->args[i].name),
                               TS_STR_ARG(name));
        rt_value v = s->args[i].default_value;
        operands[i] = ir_build_const_typed(b, v, ir_inline_type(p->m, v, s->args[i].type));
    }
    *out = ir_build_core(b, core, operands, s->arg_count);
    return NULL;
}

/* Types that need not be written. */
static const ir_type *implied_type(ir_module *m, const ir_op *op) {
    const ir_type **items;
    switch (op->opcode) {
    case IR_OP_CALL:
        return op->function->return_type;
    case IR_OP_IS_INSTANCE:
    case IR_OP_REFINE:
        return ir_type_simple(m, IR_BOOL);
    case IR_OP_DIM:
        return ir_type_simple(m, IR_INT);
    case IR_OP_TUPLE:
        items = TS_NEW_ARRAY(m->arena, const ir_type *, op->operand_count);
        for (size_t i = 0; i < op->operand_count; i++)
            items[i] = op->operands[i]->type;
        return ir_type_tuple(m, items, op->operand_count, NULL);
    case IR_OP_NEW_OBJECT:
    case IR_OP_UNINITIALIZED:
        return op->type;
    default:
        return NULL;
    }
}

static ts_status read_attributes(ir_parser *p, ir_opcode opcode, ir_op *into) {
    ir_text *t = &p->t;
    ts_str name;
    if (opcode == IR_OP_CALL || opcode == IR_OP_TRY_CALL) {
        TS_TRY(ir_read_at_name(p, &name));
        into->function = ir_function_find(p->m, name);
        if (!into->function)
            return ir_text_error(t, "a function of this text before this");
    }
    if (t->at < t->end && *t->at == '.') {
        t->at++;
        if (opcode == IR_OP_TUPLE_GET) {
            if (!ir_text_int(t, &into->integer))
                return ir_text_error(t, "the number of an item");
        } else {
            TS_TRY(ir_text_quotable(t, &into->name));
            into->name = ts_arena_str(p->m->arena, into->name);
        }
    }
    if (!ir_text_take(t, "<"))
        return NULL;
    if (opcode == IR_OP_DIM) {
        TS_TRY(ir_dim_read(t, &into->integer));
        return ir_text_expect(t, ">");
    }
    const ir_type **types = NULL;
    size_t count = 0, capacity = 0;
    while (!ir_text_take(t, ">")) {
        const ir_type *type;
        if (count)
            TS_TRY(ir_text_expect(t, ","));
        TS_TRY(ir_type_read(t, &type));
        TS_APPEND(p->m->arena, types, count, capacity, type);
    }
    if (opcode == IR_OP_IS_INSTANCE) {
        into->types = types;
        into->type_count = count;
    } else if (count == 1) {
        into->type = types[0];
    } else {
        return ir_text_error(t, "one type before this");
    }
    return NULL;
}

static ts_status read_plain(function_reader *r, ir_builder *b, ir_opcode opcode, ir_op **out) {
    ir_parser *p = r->p;
    operand_list operands = {0};
    ir_op attributes = {0};
    TS_TRY(read_attributes(p, opcode, &attributes));
    TS_TRY(ir_text_expect(&p->t, "("));
    TS_TRY(read_operands(r, b, ")", &operands));
    ir_op *op = ir_build_op(b, opcode, operands.items, operands.count, NULL, 0);
    op->name = attributes.name;
    op->function = attributes.function;
    op->type = attributes.type;
    op->types = attributes.types;
    op->type_count = attributes.type_count;
    op->integer = attributes.integer;
    *out = op;
    return NULL;
}

static ts_status read_end(function_reader *r, ir_builder *b, ir_opcode opcode, ir_op **out) {
    operand_list operands = {0};
    ir_parser *p = r->p;
    const ir_block *block = b->block;
    const ir_op *parent = block->parent;
    while (!at_line_end(p)) {
        ir_value *v;
        if (operands.count)
            TS_TRY(ir_text_expect(&p->t, ","));
        size_t skip = parent && parent->opcode == IR_OP_LOOP ? 1 : 0;
        const ir_type *wanted = NULL;
        if (!parent && operands.count == 0)
            wanted = r->f->return_type;
        else if (parent && operands.count >= skip && operands.count - skip < parent->result_count)
            wanted = parent->results[operands.count - skip]->type;
        TS_TRY(read_operand(r, b, wanted, &v));
        TS_APPEND(p->m->arena, operands.items, operands.count, operands.capacity, v);
    }
    *out = ir_build_op(b, opcode, operands.items, operands.count, NULL, 0);
    return NULL;
}

static ts_status read_line_op(function_reader *r, ir_builder *b, ts_str word, ir_opcode opcode,
                              result_list *results, ir_op **out) {
    ir_parser *p = r->p;
    if (opcode == IR_OP_YIELD || opcode == IR_OP_RETURN)
        TS_TRY(read_end(r, b, opcode, out));
    else if (opcode == IR_OP_CONST)
        TS_TRY(read_const(r, b, results, out));
    else if (opcode == IR_OPCODE_COUNT)
        TS_TRY(read_core(r, b, word, out));
    else
        TS_TRY(read_plain(r, b, opcode, out));
    TS_TRY(read_result_types(p, ":", results));
    if (results->given) {
        if ((*out)->result_count > results->type_count)
            return ir_text_error(&p->t, "as many types as results before this");
        TS_TRY(add_results(r, *out, results));
    } else if ((*out)->result_count == 0 && results->name_count) {
        const ir_type *type = results->name_count == 1 ? implied_type(p->m, *out) : NULL;
        if (!type)
            return ir_text_error(&p->t, "': ' and the types of the results");
        ir_op_add_result(p->m, *out, type, (ts_str){0});
    }
    return read_line_end(p, &(*out)->place);
}

static ts_status read_statement(function_reader *r, ir_builder *b) {
    ir_parser *p = r->p;
    result_list results = {0};
    ir_op *op = NULL;
    if (ir_text_peek(&p->t, "%")) {
        do {
            ts_str name;
            TS_TRY(read_value_name(p, &name));
            TS_APPEND(p->m->arena, results.names, results.name_count, results.name_capacity, name);
        } while (ir_text_take(&p->t, ","));
        TS_TRY(ir_text_expect(&p->t, "="));
    }
    ir_text_blank(&p->t);
    const char *from = p->t.at;
    ts_str head = ir_text_name(&p->t);
    if (!head.length)
        return ir_text_error(&p->t, "an operator");
    ir_opcode opcode = ir_opcode_find(head);
    ts_str word = head;
    if (opcode == IR_OPCODE_COUNT) {
        p->t.at = from;
        if (ts_str_is(head, "core") && from + 4 < p->t.end && from[4] == '.')
            p->t.at += 5;
        word = ir_text_word(&p->t);
    }
    if (opcode == IR_OP_IF)
        TS_TRY(read_if(r, b, &results, &op));
    else if (opcode == IR_OP_LOOP)
        TS_TRY(read_loop(r, b, &results, &op));
    else if (opcode == IR_OP_KERNEL)
        TS_TRY(read_kernel(r, b, &results, &op));
    else
        TS_TRY(read_line_op(r, b, word, opcode, &results, &op));
    return define_results(r, op, &results);
}

static ts_status read_block(function_reader *r, ir_block *block) {
    ir_parser *p = r->p;
    ir_builder b = {.module = p->m, .block = block};
    for (;;) {
        ir_text_space(&p->t);
        if (ir_text_take(&p->t, "}"))
            return NULL;
        if (p->t.at >= p->t.end)
            return ir_text_error(&p->t, "'}'");
        if (block->last && (block->last->opcode == IR_OP_YIELD ||
                            block->last->opcode == IR_OP_RETURN))
            return ir_text_error(&p->t, "'}' after the end of the block");
        TS_TRY(read_statement(r, &b));
    }
}

/* ---- functions and the module ---- */

static ts_status read_parameter(function_reader *r) {
    ir_parser *p = r->p;
    ts_str name;
    rt_value value = {.tag = RT_TAG_UNINITIALIZED};
    result_list type = {0};
    TS_TRY(read_value_name(p, &name));
    ts_str shown = is_number_name(name) ? (ts_str){0} : name;
    if (ir_text_take(&p->t, "as"))
        TS_TRY(ir_text_string(&p->t, &shown));
    TS_TRY(ir_text_expect(&p->t, ":"));
    TS_TRY(read_result_type(p, &type));
    if (ir_text_take(&p->t, "="))
        TS_TRY(ir_read_value(p, &value));
    ir_value *v = ir_function_add_parameter(r->f, shown, type.types[0], value);
    v->buffer_offset = type.offsets[0];
    return define(r, name, v);
}

static ts_status read_function(ir_parser *p) {
    ts_str name;
    TS_TRY(ir_read_at_name(p, &name));
    function_reader *r = TS_NEW(p->m->arena, function_reader);
    r->p = p;
    r->f = ir_function_find(p->m, name);
    if (!r->f || r->f->body->first || r->f->body->parameter_count)
        return ir_text_error(&p->t, "a function of another name before this");
    TS_TRY(ir_text_expect(&p->t, "("));
    for (bool first = true; !ir_text_take(&p->t, ")"); first = false) {
        if (!first)
            TS_TRY(ir_text_expect(&p->t, ","));
        ir_text_space(&p->t);
        TS_TRY(read_parameter(r));
    }
    TS_TRY(ir_text_expect(&p->t, "->"));
    TS_TRY(ir_type_read(&p->t, &r->f->return_type));
    r->f->is_entry = ir_text_take(&p->t, "entry");
    r->f->is_library = ir_text_take(&p->t, "library");
    r->f->is_kept = ir_text_take(&p->t, "kept");
    if (ir_text_take(&p->t, "needs"))
        TS_TRY(ir_read_needs(&p->t, r->f));
    TS_TRY(ir_text_expect(&p->t, "{"));
    TS_TRY(read_line_end(p, &r->f->place));
    return read_block(r, r->f->body);
}

/* Makes classes and functions of all names first. */
static ts_status scan_names(ir_parser *p) {
    const char *start = p->t.at;
    for (; p->t.at < p->t.end; p->t.at++) {
        if (p->t.at != p->t.start && p->t.at[-1] != '\n')
            continue;
        const char *line = p->t.at;
        bool is_class = *line == 'c' && ir_text_take(&p->t, "class");
        if (!is_class && !(*line == 'f' && ir_text_take(&p->t, "func")))
            continue;
        ts_str name;
        TS_TRY(ir_read_at_name(p, &name));
        if (is_class) {
            rt_class_kind kind;
            if (ir_class_find(p->m, name) || !ir_class_kind_find(ir_text_name(&p->t), &kind))
                return ir_text_error(&p->t, "one class of this name and its kind before this");
            ir_class_make(p->m, name, kind);
        } else {
            if (ir_function_find(p->m, name))
                return ir_text_error(&p->t, "a function of another name before this");
            ir_function_make(p->m, name);
        }
        p->t.at = line;
    }
    p->t.at = start;
    return NULL;
}

static ts_status read_module(ir_parser *p) {
    TS_TRY(scan_names(p));
    bool scanned_objects = false;
    for (;;) {
        ir_text_space(&p->t);
        if (p->t.at >= p->t.end)
            return NULL;
        if (ir_text_peek(&p->t, "class") && scanned_objects)
            return ir_text_error(&p->t, "classes before objects and functions");
        if (ir_text_take(&p->t, "class")) {
            TS_TRY(ir_read_class(p));
            continue;
        }
        if (!scanned_objects) { /* classes come first: their fields are known now */
            TS_TRY(ir_scan_objects(p));
            scanned_objects = true;
        }
        if (ir_text_take(&p->t, "object")) {
            TS_TRY(ir_read_object(p));
        } else if (ir_text_take(&p->t, "root")) {
            TS_TRY(ir_text_expect(&p->t, "="));
            TS_TRY(ir_read_value(p, &p->m->root));
        } else if (ir_text_take(&p->t, "func")) {
            TS_TRY(read_function(p));
        } else {
            return ir_text_error(&p->t, "class, object, root or func");
        }
    }
}

ts_status ir_parse_module(ir_module *m, ts_str file, ts_str text, ir_find_weight find_weight,
                          void *user) {
    /* Names point into the text: it has to live as long as the module. */
    ir_parser p = {.t = ir_text_make(m, ts_arena_str(m->arena, file), ts_arena_str(m->arena, text)),
                   .m = m,
                   .find_weight = find_weight,
                   .user = user};
    return read_module(&p);
}

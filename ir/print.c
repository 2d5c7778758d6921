/* ir/print.c - a module as .tsir text; docs/ir.md has the grammar. */
#include "ir/print_internal.h"

static const char *const opcode_names[IR_OPCODE_COUNT] = {
#define X(name, text) [IR_OP_##name] = text,
    IR_OPCODES(X)
#undef X
};

static const char *const class_kinds[] = {
    [RT_CLASS_PLAIN] = "plain",           [RT_CLASS_MODULE] = "module",
    [RT_CLASS_NAMED_TUPLE] = "namedtuple", [RT_CLASS_ENUM] = "enum",
    [RT_CLASS_INTERFACE] = "interface",   [RT_CLASS_EXCEPTION] = "exception"};

const char *ir_opcode_name(ir_opcode opcode) { return opcode_names[opcode]; }

ir_opcode ir_opcode_find(ts_str name) {
    for (int i = IR_OP_CONST; i < IR_OPCODE_COUNT; i++)
        if (ts_str_is(name, opcode_names[i]))
            return (ir_opcode)i;
    return IR_OPCODE_COUNT;
}

/* ---- names of values: unique in the function ---- */

typedef struct name_table {
    ts_str *slots;
    size_t capacity, count;
} name_table;

static size_t name_slot(const name_table *t, ts_str name) {
    size_t h = 5381;
    for (size_t i = 0; i < name.length; i++)
        h = h * 33 + (unsigned char)name.data[i];
    h &= t->capacity - 1;
    while (t->slots[h].data && !ts_str_equal(t->slots[h], name))
        h = (h + 1) & (t->capacity - 1);
    return h;
}

static bool claim_name(ir_printer *p, name_table *t, ts_str name) {
    if (2 * (t->count + 1) > t->capacity) {
        name_table old = *t;
        t->capacity = old.capacity ? 2 * old.capacity : 64;
        t->slots = TS_NEW_ARRAY(p->arena, ts_str, t->capacity);
        for (size_t i = 0; i < old.capacity; i++)
            if (old.slots[i].data)
                t->slots[name_slot(t, old.slots[i])] = old.slots[i];
    }
    size_t at = name_slot(t, name);
    if (t->slots[at].data)
        return false;
    t->slots[at] = name;
    t->count++;
    return true;
}

static ts_str clean_name(ir_printer *p, ts_str name) {
    char *data = ts_arena_copy(p->arena, name.data, name.length);
    for (size_t i = 0; i < name.length; i++) {
        char c = data[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
                    (i && c >= '0' && c <= '9') || (i && c == '.' && i + 1 < name.length);
        if (!good || (c == '.' && data[i - 1] == '.'))
            data[i] = '_';
    }
    return (ts_str){data, name.length};
}

typedef struct namer {
    ir_printer *p;
    name_table table;
    ir_value **values;
    size_t count, capacity;
    size_t unnamed;
} namer;

static const ir_type *wanted_type(ir_module *m, const ir_use *use) {
    if (use->op->opcode != IR_OP_CORE)
        return NULL;
    const ir_schema *schema = ir_schema_of(m, use->op->core);
    return use->operand < schema->arg_count ? schema->args[use->operand].type : NULL;
}

/* A constant that stands as an operand wherever it is used and has no line of its own. */
static bool is_inline_const(const ir_printer *p, const ir_value *v) {
    if (!ir_is_const(v) || !ir_is_inline_value(v->def->value) || v->buffer_offset >= 0)
        return false;
    if (v->def->value.tag == RT_TAG_NONE)
        return true;
    if (v->type == ir_type_of_value(p->m, v->def->value) && v->def->value.tag != RT_TAG_LIST)
        return true;
    for (size_t i = 0; i < v->use_count; i++)
        if (ir_inline_type(p->m, v->def->value, wanted_type(p->m, &v->uses[i])) != v->type)
            return false;
    return true;
}

static void name_value(namer *n, ir_value *v) {
    v->number = (uint32_t)n->count;
    TS_APPEND(n->p->arena, n->values, n->count, n->capacity, v);
}

static void name_block(namer *n, const ir_block *b) {
    for (size_t i = 0; i < b->parameter_count; i++)
        name_value(n, b->parameters[i]);
    for (const ir_op *op = b->first; op; op = op->next) {
        if (op->opcode == IR_OP_CONST && is_inline_const(n->p, op->results[0]))
            continue;
        /* In the order of the text: results stand before the regions. */
        for (size_t i = 0; i < op->result_count; i++)
            name_value(n, op->results[i]);
        for (size_t i = 0; i < op->region_count; i++)
            name_block(n, op->regions[i]);
    }
}

static void name_function(ir_printer *p, const ir_function *f) {
    namer n = {.p = p};
    name_block(&n, f->body);
    p->names = TS_NEW_ARRAY(p->arena, ts_str, n.count);
    p->values = n.values;
    p->name_count = n.count;
    for (size_t i = 0; i < n.count; i++) {
        ts_str name = n.values[i]->name;
        if (!name.length) {
            p->names[i] = ts_arena_format(p->arena, "%zu", n.unnamed++);
            continue;
        }
        ts_str base = clean_name(p, name), unique = base;
        for (int suffix = 1; !claim_name(p, &n.table, unique); suffix++)
            unique = ts_arena_format(p->arena, "%.*s.%d", (int)base.length, base.data, suffix);
        p->names[i] = unique;
    }
}

/* ---- operators ---- */

static void print_name(ir_printer *p, const ir_value *v) {
    /* Dumps of broken IR are what one needs most: a value from elsewhere must not crash them. */
    bool known = v->number < p->name_count && p->values[v->number] == v;
    ts_buffer_char(p->out, '%');
    ts_buffer_str(p->out, known ? p->names[v->number] : TS_STR("?"));
}

static void print_use(ir_printer *p, const ir_value *v) {
    if (is_inline_const(p, v))
        ir_print_value(p, v->def->value, 0);
    else
        print_name(p, v);
}

static void print_uses(ir_printer *p, ir_value *const *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (i)
            ts_buffer_text(p->out, ", ");
        print_use(p, values[i]);
    }
}

static void indent(ir_printer *p, int depth) {
    for (int i = 0; i < depth; i++)
        ts_buffer_text(p->out, "  ");
}

static void print_place(ir_printer *p, ts_place place) {
    if (place.line <= 0 || place.length < 0) /* -1: a line of the .tsir that was read */
        return;
    bool plain = place.file.length > 0;
    for (size_t i = 0; i < place.file.length; i++)
        plain &= place.file.data[i] > ' ' && place.file.data[i] != '"';
    ts_buffer_text(p->out, "  # ");
    if (plain)
        ts_buffer_str(p->out, place.file);
    else
        ir_print_string(place.file, p->out);
    ts_buffer_format(p->out, ":%d:%d", place.line, place.column);
}

static void print_result_type(ir_printer *p, const ir_value *v) {
    ir_type_print(p->m, v->type, p->out);
    if (v->buffer_offset >= 0)
        ts_buffer_format(p->out, " at %lld", (long long)v->buffer_offset);
}

static void print_result_types(ir_printer *p, const ir_op *op, const char *before) {
    if (!op->result_count)
        return;
    ts_buffer_text(p->out, before);
    bool list = op->result_count > 1 || op->region_count > 0;
    if (list)
        ts_buffer_char(p->out, '(');
    for (size_t i = 0; i < op->result_count; i++) {
        if (i)
            ts_buffer_text(p->out, ", ");
        print_result_type(p, op->results[i]);
    }
    if (list)
        ts_buffer_char(p->out, ')');
}

/* Arguments that equal their default are left out; after the first gap, and for keyword-only ones
 * and constant lists with a default, the name is written. */
static void print_core(ir_printer *p, const ir_op *op) {
    const ir_schema *schema = ir_schema_of(p->m, op->core);
    ts_str name = rt_op_name(op->core);
    ts_str head = {name.data, 0};
    while (head.length < name.length && name.data[head.length] != '.')
        head.length++;
    if (ir_opcode_find(head) != IR_OPCODE_COUNT)
        ts_buffer_text(p->out, "core.");
    ts_buffer_str(p->out, name);
    ts_buffer_char(p->out, '(');
    bool first = true, gap = false;
    for (size_t i = 0; i < op->operand_count; i++) {
        const ir_value *v = op->operands[i];
        const ir_schema_arg *arg = i < schema->arg_count ? &schema->args[i] : NULL;
        bool inlined = is_inline_const(p, v);
        if (arg && arg->has_default && inlined && !schema->is_variadic &&
            ir_same_constant(v->def->value, arg->default_value)) {
            gap = true;
            continue;
        }
        if (!first)
            ts_buffer_text(p->out, ", ");
        first = false;
        bool named = arg && (gap || arg->is_keyword_only ||
                             (arg->has_default && inlined && v->def->value.tag == RT_TAG_LIST));
        if (named) {
            gap = true; /* what follows a keyword is one too */
            ts_buffer_str(p->out, arg->name);
            ts_buffer_char(p->out, '=');
        }
        print_use(p, v);
    }
    ts_buffer_char(p->out, ')');
}

static void print_call(ir_printer *p, const ir_op *op) {
    ts_buffer *out = p->out;
    ts_buffer_text(out, opcode_names[op->opcode]);
    if (op->name.length) {
        ts_buffer_char(out, '.');
        ir_print_quotable(op->name, out);
    }
    if (op->opcode == IR_OP_CALL || op->opcode == IR_OP_TRY_CALL) {
        ts_buffer_text(out, " @");
        ir_print_quotable(op->function ? op->function->name : TS_STR("?"), out);
    }
    if (op->opcode == IR_OP_TUPLE_GET)
        ts_buffer_format(out, ".%lld", (long long)op->integer);
    if (op->opcode == IR_OP_DIM) {
        ts_buffer_char(out, '<');
        ir_dim_print(p->m, op->integer, out);
        ts_buffer_char(out, '>');
    }
    if (op->type || op->type_count) {
        ts_buffer_char(out, '<');
        if (op->type)
            ir_type_print(p->m, op->type, out);
        for (size_t i = 0; i < op->type_count; i++) {
            if (i)
                ts_buffer_text(out, ", ");
            ir_type_print(p->m, op->types[i], out);
        }
        ts_buffer_char(out, '>');
    }
    ts_buffer_char(out, '(');
    print_uses(p, op->operands, op->operand_count);
    ts_buffer_char(out, ')');
}

static void print_const(ir_printer *p, const ir_op *op) {
    ts_buffer_text(p->out, "const ");
    ts_buffer rest = {0};
    ts_buffer *out = p->out;
    p->out = &rest;
    ir_print_value(p, op->value, 0);
    p->out = out;
    if (op->weight_name.length && op->value.tag == RT_TAG_TENSOR && !p->slot_capacity) {
        rest.length = 0; /* a function alone: no list of weights goes with it */
        ts_buffer_char(out, '@');
        ir_print_quotable(op->weight_name, out);
    }
    /* A small tensor stands in the text; its name goes before it. */
    if (rest.length && op->weight_name.length && rest.data[0] != '@') {
        ts_buffer_char(out, '@');
        ir_print_quotable(op->weight_name, out);
        ts_buffer_text(out, " = ");
    }
    ts_buffer_append(out, rest.data, rest.length);
    ts_buffer_deinit(&rest);
}

static void print_block(ir_printer *p, const ir_block *b, int depth);

static void print_carried(ir_printer *p, const ir_block *b, size_t from, ir_value *const *values) {
    ts_buffer_char(p->out, '(');
    for (size_t i = from; i < b->parameter_count; i++) {
        if (i > from)
            ts_buffer_text(p->out, ", ");
        print_use(p, b->parameters[i]);
        ts_buffer_text(p->out, ": ");
        print_result_type(p, b->parameters[i]);
        ts_buffer_text(p->out, " = ");
        print_use(p, values[i - from]);
    }
    ts_buffer_char(p->out, ')');
}

static void print_region_op(ir_printer *p, const ir_op *op, int depth) {
    static const char *const kinds[] = {"pointwise", "contraction", "stream"};
    ts_buffer *out = p->out;
    ts_buffer_text(out, opcode_names[op->opcode]);
    if (op->opcode == IR_OP_IF) {
        ts_buffer_char(out, ' ');
        print_use(p, op->operands[0]);
    } else if (op->opcode == IR_OP_LOOP) {
        const ir_block *b = op->regions[0];
        ts_buffer_char(out, ' ');
        print_use(p, b->parameters[0]);
        ts_buffer_text(out, " to ");
        print_use(p, op->operands[0]);
        ts_buffer_text(out, " while ");
        print_use(p, op->operands[1]);
        if (b->parameter_count > 1) {
            ts_buffer_text(out, " carry");
            print_carried(p, b, 1, op->operands + 2);
        }
    } else {
        ts_buffer_format(out, " %s", kinds[op->kernel_kind]);
        print_carried(p, op->regions[0], 0, op->operands);
    }
    print_result_types(p, op, " -> ");
    ts_buffer_text(out, " {");
    print_place(p, op->place);
    ts_buffer_char(out, '\n');
    for (size_t i = 0; i < op->region_count; i++) {
        if (i) {
            indent(p, depth);
            ts_buffer_text(out, "} else {\n");
        }
        print_block(p, op->regions[i], depth + 1);
    }
    indent(p, depth);
    ts_buffer_text(out, "}\n");
}

static void print_op(ir_printer *p, const ir_op *op, int depth) {
    if (op->opcode == IR_OP_CONST && is_inline_const(p, op->results[0]))
        return;
    indent(p, depth);
    for (size_t i = 0; i < op->result_count; i++) {
        if (i)
            ts_buffer_text(p->out, ", ");
        print_name(p, op->results[i]);
    }
    if (op->result_count)
        ts_buffer_text(p->out, " = ");
    if (op->region_count) {
        print_region_op(p, op, depth);
        return;
    }
    if (op->opcode == IR_OP_CORE) {
        print_core(p, op);
    } else if (op->opcode == IR_OP_CONST) {
        print_const(p, op);
    } else if (op->opcode == IR_OP_YIELD || op->opcode == IR_OP_RETURN) {
        ts_buffer_text(p->out, opcode_names[op->opcode]);
        if (op->operand_count)
            ts_buffer_char(p->out, ' ');
        print_uses(p, op->operands, op->operand_count);
    } else {
        print_call(p, op);
    }
    print_result_types(p, op, " : ");
    print_place(p, op->place);
    ts_buffer_char(p->out, '\n');
}

static void print_block(ir_printer *p, const ir_block *b, int depth) {
    for (const ir_op *op = b->first; op; op = op->next)
        print_op(p, op, depth);
}

static void print_function(ir_printer *p, const ir_function *f) {
    name_function(p, f);
    ts_buffer *out = p->out;
    ts_buffer_text(out, "func @");
    ir_print_quotable(f->name, out);
    ts_buffer_char(out, '(');
    for (size_t i = 0; i < f->body->parameter_count; i++) {
        if (i)
            ts_buffer_text(out, ", ");
        const ir_value *v = f->body->parameters[i];
        print_use(p, v);
        if (f->parameter_names[i].length &&
            !ts_str_equal(f->parameter_names[i], p->names[v->number])) {
            ts_buffer_text(out, " as ");
            ir_print_string(f->parameter_names[i], out);
        }
        ts_buffer_text(out, ": ");
        print_result_type(p, v);
        if (f->defaults[i].tag != RT_TAG_UNINITIALIZED) {
            ts_buffer_text(out, " = ");
            ir_print_value(p, f->defaults[i], 0);
        }
    }
    ts_buffer_text(out, ") -> ");
    ir_type_print(p->m, f->return_type, out);
    if (f->is_entry)
        ts_buffer_text(out, " entry");
    if (f->is_library)
        ts_buffer_text(out, " library");
    if (f->is_kept)
        ts_buffer_text(out, " kept");
    ir_print_needs(f, out);
    ts_buffer_text(out, " {");
    print_place(p, f->place);
    ts_buffer_char(out, '\n');
    print_block(p, f->body, 1);
    ts_buffer_text(out, "}\n");
}

/* ---- classes and the module ---- */

static void print_class(ir_printer *p, const ir_class *c) {
    ts_buffer *out = p->out;
    ts_buffer_text(out, "class @");
    ir_print_quotable(c->base.name, out);
    ts_buffer_format(out, " %s {\n", class_kinds[c->base.kind]);
    for (size_t i = 0; i < c->base.base_count; i++) {
        ts_buffer_text(out, "  base @");
        ir_print_quotable(c->base.bases[i]->name, out);
        ts_buffer_char(out, '\n');
    }
    for (size_t i = 0; i < c->field_count; i++) {
        const ir_field *f = &c->fields[i];
        ts_buffer_text(out, "  field ");
        ir_print_quotable(f->name, out);
        ts_buffer_text(out, " : ");
        ir_type_print(p->m, f->type, out);
        if (f->is_parameter)
            ts_buffer_text(out, " parameter");
        if (f->is_buffer)
            ts_buffer_text(out, " buffer");
        if (f->is_constant) {
            ts_buffer_text(out, " = ");
            ir_print_value(p, f->constant, 0);
        }
        ts_buffer_char(out, '\n');
    }
    for (size_t i = 0; i < c->enum_member_count; i++) {
        const rt_enum *e = c->enum_members[i].as.enumeration;
        ts_buffer_text(out, "  member ");
        ir_print_quotable(e->name, out);
        ts_buffer_text(out, " = ");
        ir_print_value(p, e->value, 0);
        ts_buffer_char(out, '\n');
    }
    for (size_t i = 0; i < c->method_count; i++) {
        ts_buffer_text(out, "  method ");
        ir_print_quotable(c->methods[i].name, out);
        if (c->methods[i].function) {
            ts_buffer_text(out, " = @");
            ir_print_quotable(c->methods[i].function->name, out);
        }
        ts_buffer_char(out, '\n');
    }
    ts_buffer_text(out, "}\n");
}

/* A scratch arena of its own: text is asked for in the middle of passes, whose scratch is not ours.
 * Out of memory goes where the module's arena sends it. */
static bool start_printer(ir_printer *p, ir_module *m, ts_buffer *out) {
    *p = (ir_printer){.m = m, .out = out, .arena = ts_arena_create(0)};
    if (!p->arena) {
        out->failed = true;
        return false;
    }
    ts_arena_set_handler(p->arena, ts_arena_handler(m->arena));
    return true;
}

void ir_print_module(ir_module *m, ts_buffer *out, ir_weight_list *out_weights) {
    ir_printer p;
    if (!start_printer(&p, m, out))
        return;
    p.weights = out_weights;
    ir_printer_collect(&p);
    for (size_t i = 0; i < m->class_count; i++)
        print_class(&p, m->classes[i]);
    if (m->class_count)
        ts_buffer_char(out, '\n');
    ir_print_objects(&p);
    for (const ir_function *f = m->functions; f; f = f->next) {
        if (f != m->functions)
            ts_buffer_char(out, '\n');
        print_function(&p, f);
    }
    ts_arena_release(p.arena);
}

void ir_print_function(ir_module *m, const ir_function *f, ts_buffer *out) {
    ir_printer p;
    if (!start_printer(&p, m, out))
        return;
    print_function(&p, f);
    ts_arena_release(p.arena);
}

void ir_print_op(ir_module *m, const ir_op *op, ts_buffer *out) {
    ir_printer p;
    if (!start_printer(&p, m, out))
        return;
    name_function(&p, op->block->function);
    if (op->opcode == IR_OP_CONST && is_inline_const(&p, op->results[0])) {
        ts_buffer_text(out, "const ");
        ir_print_value(&p, op->value, 0);
    } else {
        print_op(&p, op, 0);
        /* One line, without its end. */
        for (size_t i = 0; i < out->length; i++)
            if (out->data[i] == '\n') {
                out->length = i;
                break;
            }
    }
    ts_arena_release(p.arena);
}

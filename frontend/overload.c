/* frontend/overload.c - picks the overload of an operator: rows of the core table and functions of
 * the library, told apart by what their parameters take; implicit conversions cost, the cheapest
 * candidate wins, the first of equals. */
#include <stdarg.h>

#include "frontend/emit_internal.h"

enum { MAX_CANDIDATES = 64, MAX_PARAMETERS = 64, COST_IMPOSSIBLE = -1, COST_NUMBER_AS_TENSOR = 20 };

struct fe_overload_table {
    fe_map rows; /* "add" -> row_list*: core rows of that name */
};

typedef struct row_list {
    rt_op *items;
    size_t count, capacity;
} row_list;

static struct fe_overload_table *table_of(fe_context *fe) {
    if (fe->overloads)
        return fe->overloads;
    struct fe_overload_table *table = TS_NEW(fe->arena, struct fe_overload_table);
    fe->overloads = table;
    for (int op = 0; op < OP_COUNT; op++) {
        ts_str name = rt_op_name((rt_op)op);
        for (size_t i = 1; i < name.length; i++)
            if (name.data[i] == '.') {
                name.length = i;
                break;
            }
        row_list *list = fe_map_get(&table->rows, name);
        if (!list) {
            list = TS_NEW(fe->arena, row_list);
            fe_map_set(fe->arena, &table->rows, name, list);
        }
        TS_APPEND(fe->arena, list->items, list->count, list->capacity, (rt_op)op);
    }
    return table;
}

static bool name_exists(fe_context *fe, ts_str name) {
    return fe_map_get(&table_of(fe)->rows, name) || fe_library_overloads(fe, name, NULL, 0);
}

static bool is_in_place(ts_str name, ts_str *out_pure) {
    if (name.length < 2 || name.data[name.length - 1] != '_' || name.data[name.length - 2] == '_')
        return false;
    *out_pure = (ts_str){name.data, name.length - 1};
    return true;
}

bool fe_operator_exists(fe_context *fe, ts_str name) {
    ts_str pure;
    name = fe_canonical_operator(fe->arena, name);
    return name_exists(fe, name) || ts_str_is(name, "item") ||
           (is_in_place(name, &pure) && name_exists(fe, pure));
}

/* ---- conversions ---- */

static int element_cost(emitter *E, ir_value *item, const ir_type *want, int cost) {
    int c = em_conversion_cost(E, item, want, 0);
    return c < 0 ? c : (c > cost ? c : cost);
}

static int type_cost(emitter *E, const ir_type *from, const ir_type *want) {
    if (ir_type_is_subtype(from, want) && want->kind != IR_ANY)
        return want->kind == IR_NUMBER && from->kind != IR_NUMBER ? 1 : 0;
    bool is_number = from->kind == IR_NUMBER;
    bool is_tensor = from->kind == IR_TENSOR;
    switch (want->kind) {
    case IR_ANY:
        return 8;
    case IR_OPTIONAL:
        if (from->kind == IR_OPTIONAL)
            return type_cost(E, from->args[0], want->args[0]);
        return type_cost(E, from, want->args[0]);
    case IR_FLOAT:
        return from->kind == IR_INT ? 3 : from->kind == IR_BOOL ? 4 : is_number ? 6
               : is_tensor ? 30 : COST_IMPOSSIBLE;
    case IR_INT:
        return from->kind == IR_BOOL ? 2 : is_number ? 12 : is_tensor ? 30 : COST_IMPOSSIBLE;
    case IR_BOOL:
        return is_tensor ? 30 : is_number ? 31 : COST_IMPOSSIBLE;
    case IR_COMPLEX:
        return from->kind == IR_INT || from->kind == IR_FLOAT || from->kind == IR_BOOL
                   ? 5 : is_number ? 7 : COST_IMPOSSIBLE;
    case IR_NUMBER:
        return is_tensor ? 29 : COST_IMPOSSIBLE;
    case IR_TENSOR:
        return from->kind == IR_INT || from->kind == IR_FLOAT || from->kind == IR_BOOL ||
                       from->kind == IR_COMPLEX || is_number
                   ? COST_NUMBER_AS_TENSOR : COST_IMPOSSIBLE;
    case IR_DEVICE:
        return from->kind == IR_STR ? 2 : COST_IMPOSSIBLE;
    default:
        return COST_IMPOSSIBLE;
    }
}

int em_conversion_cost(emitter *E, ir_value *v, const ir_type *want, int64_t fixed_length) {
    const ir_type *from = v->type;
    if (want->kind == IR_OPTIONAL && want->args[0]->kind == IR_LIST) {
        if (from->kind == IR_NONE)
            return 0;
        if (from->kind != IR_OPTIONAL)
            return em_conversion_cost(E, v, want->args[0], fixed_length);
    }
    if (want->kind == IR_LIST) {
        const ir_type *element = want->args[0];
        ir_value **items;
        size_t count;
        if (ir_type_is_subtype(from, want))
            return 0;
        if (em_is_list_literal(v, &items, &count)) {
            int cost = 2;
            for (size_t i = 0; i < count && cost >= 0; i++)
                cost = element_cost(E, items[i], element, cost);
            return cost;
        }
        if (from->kind == IR_TUPLE) {
            int cost = 1;
            for (size_t i = 0; i < from->arg_count && cost >= 0; i++) {
                int c = type_cost(E, from->args[i], element);
                cost = c < 0 ? c : (c > cost ? c : cost);
            }
            return cost;
        }
        if (from->kind == IR_LIST) {
            const ir_type *have = from->args[0];
            if ((element->kind == IR_OPTIONAL || element->kind == IR_NUMBER || element->kind == IR_ANY) &&
                ir_type_is_subtype(have, element))
                return 1;
            rt_value c; /* a constant list of ints for floats */
            if (ir_const_value(v, &c) && c.tag == RT_TAG_LIST && type_cost(E, have, element) >= 0)
                return 3;
            return COST_IMPOSSIBLE;
        }
        if (fixed_length && (from->kind == IR_INT || from->kind == IR_FLOAT ||
                             from->kind == IR_BOOL || from->kind == IR_NUMBER)) {
            int c = type_cost(E, from, element);
            return c < 0 || element->kind == IR_TENSOR ? COST_IMPOSSIBLE : 5 + c;
        }
        if (fixed_length && from->kind == IR_TENSOR && element->kind == IR_INT)
            return 35;
    }
    int cost = type_cost(E, from, want);
    if (cost >= 0)
        return cost;
    if (from->kind == IR_OPTIONAL || from->kind == IR_UNION) {
        const ir_type *inner = ir_type_without_none(E->m, from);
        if (inner != from && inner->kind != IR_NONE) {
            int c = type_cost(E, inner, want);
            if (c >= 0)
                return 50 + c;
            if (inner->kind == IR_LIST && want->kind == IR_LIST && ir_type_is_subtype(inner, want))
                return 50;
        }
        if (from->kind == IR_UNION)
            for (size_t i = 0; i < from->arg_count; i++)
                if (ir_type_is_subtype(from->args[i], want))
                    return 60;
    }
    if (from->kind == IR_ANY)
        return 70;
    return COST_IMPOSSIBLE;
}

/* ---- candidates ---- */

typedef struct candidate {
    rt_op op;              /* or */
    fe_function *function; /* of the library */
    const ir_schema *schema;
    em_signature *signature;
    size_t count; /* of parameters */
    int cost;
    int source[MAX_PARAMETERS]; /* argument for each parameter; -1 default; -2 packed */
    size_t pack_from, pack_count;
    ts_str why;
} candidate;

static em_parameter parameter_of(const candidate *c, size_t i) {
    if (c->signature)
        return c->signature->parameters[i];
    const ir_schema_arg *a = &c->schema->args[i];
    return (em_parameter){.name = a->name, .type = a->type, .has_default = a->has_default,
                          .is_keyword_only = a->is_keyword_only,
                          .default_value = a->default_value, .fixed_length = a->fixed_length};
}

static ts_str candidate_name(const candidate *c) {
    return c->function ? c->function->bare_name : rt_op_name(c->op);
}

static bool same_parameter(ts_str parameter, ts_str given) {
    static const char *const aliases[][2] = {{"dim", "axis"}, {"keepdim", "keepdims"},
                                             {"self", "input"}, {"input", "self"}, {"dims", "axis"},
                                             {"dim", "dims"}, {"dims", "dim"}, {"other", "x2"},
                                             {"size", "shape"}, {"self", "x"}, {"tensors", "arrays"},
                                             {"condition", "cond"}};
    if (ts_str_equal(parameter, given))
        return true;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (ts_str_is(parameter, aliases[i][0]) && ts_str_is(given, aliases[i][1]))
            return true;
    return false;
}

static bool takes_sizes(em_parameter p) {
    const ir_type *t = p.type->kind == IR_OPTIONAL ? p.type->args[0] : p.type;
    return t->kind == IR_LIST && t->args[0]->kind == IR_INT;
}

static const char *text_of(emitter *E, const ir_type *t) { return em_type_text(E, t); }

/* Which argument goes to which parameter, and what it costs. */
static bool is_size(const ir_type *t) { return t->kind == IR_INT || t->kind == IR_NUMBER; }

static void match(emitter *E, candidate *c, const em_arguments *args, ir_value *const *values) {
    ts_arena *arena = E->arena;
    c->cost = COST_IMPOSSIBLE;
    if (c->signature && c->signature->failed) {
        c->why = TS_STR("its signature has errors");
        return;
    }
    if (c->count > MAX_PARAMETERS) {
        c->why = TS_STR("it has too many parameters");
        return;
    }
    for (size_t i = 0; i < c->count; i++)
        c->source[i] = -1;
    size_t positional = 0, room = 0;
    while (positional < args->count && !args->items[positional].name.length)
        positional++;
    while (room < c->count && !parameter_of(c, room).is_keyword_only)
        room++;
    size_t at = 0;
    for (size_t i = 0; i < positional; i++) {
        if (at < room && takes_sizes(parameter_of(c, at)) && positional - i > 1 &&
            (positional > room) &&
            (is_size(values[i]->type) || values[i]->type->kind == IR_TENSOR) && at + 1 == room) {
            c->source[at] = -2; /* x.view(2, 3) */
            c->pack_from = i;
            c->pack_count = positional - i;
            at++;
            i = positional;
            break;
        }
        /* torch.zeros(2, 3), x.permute(0, 1): further positional parameters after the sizes */
        if (at < room && takes_sizes(parameter_of(c, at)) && positional - i > 1 &&
            is_size(values[i]->type) && positional - i > room - at) {
            c->source[at] = -2;
            c->pack_from = i;
            c->pack_count = positional - i;
            at++;
            break;
        }
        if (at == room) {
            c->why = ts_arena_format(arena, "takes %zu positional argument%s, %zu were given", room,
                                     room == 1 ? "" : "s", positional);
            return;
        }
        c->source[at++] = (int)i;
    }
    for (size_t i = positional; i < args->count; i++) {
        ts_str name = args->items[i].name;
        size_t k = 0;
        while (k < c->count && !ts_str_equal(parameter_of(c, k).name, name))
            k++;
        if (k == c->count)
            for (k = 0; k < c->count && !same_parameter(parameter_of(c, k).name, name);)
                k++;
        if (k == c->count) {
            c->why = ts_arena_format(arena, "has no parameter '%.*s'", TS_STR_ARG(name));
            return;
        }
        if (c->source[k] != -1) {
            c->why = ts_arena_format(arena, "argument '%.*s' is given twice", TS_STR_ARG(name));
            return;
        }
        c->source[k] = (int)i;
    }
    int cost = 0;
    ir_type_bindings bindings = {0};
    for (size_t i = 0; i < c->count; i++) {
        em_parameter p = parameter_of(c, i);
        if (c->source[i] == -1) {
            if (!p.has_default) {
                c->why = ts_arena_format(arena, "argument '%.*s' is missing", TS_STR_ARG(p.name));
                return;
            }
            continue;
        }
        if (c->source[i] == -2) {
            for (size_t k = 0; k < c->pack_count; k++) {
                const ir_value *v = values[c->pack_from + k];
                int one = v->type->kind == IR_BOOL /* torch.var(x, 1, True) has no second dim */
                              ? COST_IMPOSSIBLE
                              : em_conversion_cost(E, values[c->pack_from + k], em_simple(E, IR_INT), 0);
                if (one < 0) {
                    c->why = ts_arena_format(arena, "argument '%.*s' expects ints, found %s",
                                             TS_STR_ARG(p.name),
                                             text_of(E, values[c->pack_from + k]->type));
                    return;
                }
                cost += one;
            }
            cost += 1;
            continue;
        }
        ir_value *v = values[c->source[i]];
        ir_type_bindings saved = bindings;
        bool has_variable = ir_type_substitute(E->m, p.type, &(ir_type_bindings){0}) != p.type;
        int one;
        if (has_variable) {
            const ir_type *actual = v->type;
            one = ir_type_match(E->m, p.type, actual, &bindings) ? 0 : COST_IMPOSSIBLE;
            if (one < 0) {
                /* The variable is bound: what remains is a conversion. */
                bindings = saved;
                const ir_type *wanted = ir_type_substitute(E->m, p.type, &bindings);
                one = ir_type_is_subtype(wanted, em_simple(E, IR_ANY)) && wanted->kind == IR_ANY
                          ? COST_IMPOSSIBLE : em_conversion_cost(E, v, wanted, p.fixed_length);
                if (one >= 0 && wanted->kind == IR_DICT && actual->kind != IR_DICT)
                    one = COST_IMPOSSIBLE;
                if (one >= 60)
                    one = COST_IMPOSSIBLE;
            } else if (p.type->kind == IR_VAR && saved.count &&
                       !ir_type_same_shape_of(ir_type_substitute(E->m, p.type, &saved),
                                              ir_type_substitute(E->m, p.type, &bindings)) &&
                       ir_type_substitute(E->m, p.type, &saved)->kind != IR_ANY) {
                bindings = saved; /* a wider element does not widen the list it goes into */
                one = em_conversion_cost(E, v, ir_type_substitute(E->m, p.type, &saved), 0);
            }
        } else {
            one = em_conversion_cost(E, v, p.type, p.fixed_length);
        }
        if (one < 0) {
            c->why = ts_arena_format(arena, "argument '%.*s' expects %s, found %s",
                                     TS_STR_ARG(p.name), text_of(E, p.type), text_of(E, v->type));
            return;
        }
        cost += one;
    }
    /* An int is a dtype only where it is written as one: x.view(6) is a size. */
    if (!c->function && args->count == 2 && ts_str_is(rt_op_name(c->op), "view.dtype") && args->items[1].node &&
        !args->items[1].node->source->is_archive && args->items[1].node->kind != AST_ATTRIBUTE)
        cost += 10;
    c->cost = cost;
}

/* "add.Tensor" as add, and the overload that is meant; without a dot none is. */
static ts_str split_overload(ts_str name, ts_str *out_overload) {
    *out_overload = (ts_str){0};
    for (size_t i = 1; i + 1 < name.length; i++)
        if (name.data[i] == '.') {
            *out_overload = name;
            return (ts_str){name.data, i};
        }
    return name;
}

/* A row is "add.Tensor", a function of the library add__Tensor. */
static bool is_overload(const candidate *c, ts_str full) {
    ts_str name = candidate_name(c);
    if (!full.length || !c->function)
        return full.length && ts_str_equal(name, full);
    size_t dot = 0;
    while (full.data[dot] != '.')
        dot++;
    return name.length == full.length + 1 && memcmp(name.data, full.data, dot) == 0 &&
           memcmp(name.data + dot, "__", 2) == 0 &&
           memcmp(name.data + dot + 2, full.data + dot + 1, full.length - dot - 1) == 0;
}

static size_t find_candidates(emitter *E, ts_str name, candidate *out) {
    size_t count = 0;
    row_list *rows = fe_map_get(&table_of(E->fe)->rows, name);
    for (size_t i = 0; rows && i < rows->count && count < MAX_CANDIDATES; i++) {
        const ir_schema *schema = ir_schema_of(E->m, rows->items[i]);
        out[count++] = (candidate){.op = rows->items[i], .schema = schema, .count = schema->arg_count};
    }
    fe_function *functions[MAX_CANDIDATES];
    size_t function_count = fe_library_overloads(E->fe, name, functions, MAX_CANDIDATES);
    for (size_t i = 0; i < function_count && count < MAX_CANDIDATES; i++) {
        em_signature *s = em_signature_of(E->fe, functions[i], NULL);
        out[count++] = (candidate){.op = OP_COUNT, .function = functions[i], .signature = s,
                                   .count = s->count};
    }
    return count;
}

fe_function *em_choose_function(emitter *E, fe_function *f, const em_arguments *args, const ast_node *node) {
    fe_function *functions[MAX_CANDIDATES];
    size_t count = fe_library_overloads(E->fe, f->name, functions, MAX_CANDIDATES);
    if (count < 2)
        return f;
    ir_value **values = TS_NEW_ARRAY(E->arena, ir_value *, args->count + 1);
    for (size_t i = 0; i < args->count; i++) {
        values[i] = em_ir(E, args->items[i].v, args->items[i].node ? args->items[i].node : node, NULL);
        if (!values[i])
            return f;
    }
    int least = COST_IMPOSSIBLE;
    for (size_t i = 0; i < count; i++) {
        candidate c = {.op = OP_COUNT, .function = functions[i],
                       .signature = em_signature_of(E->fe, functions[i], NULL)};
        c.count = c.signature->count;
        match(E, &c, args, values);
        if (c.cost >= 0 && (least < 0 || c.cost < least)) {
            least = c.cost;
            f = functions[i];
        }
    }
    return f;
}

/* ---- building the chosen call ---- */

static em results_of(emitter *E, ir_op *op) {
    if (op->result_count == 0)
        return em_value(ir_build_none(&E->b));
    if (op->result_count == 1)
        return em_value(op->results[0]);
    return em_value(em_tuple_of(E, op->results, op->result_count));
}

static em build(emitter *E, candidate *c, const em_arguments *args, ir_value *const *values,
                const ast_node *node) {
    ir_value *operands[MAX_PARAMETERS];
    ir_type_bindings bindings = {0};
    for (size_t i = 0; i < c->count; i++) {
        em_parameter p = parameter_of(c, i);
        if (c->source[i] == -1) {
            rt_value v = p.default_value;
            const ir_type *t = ir_type_of_value(E->m, v);
            if (v.tag == RT_TAG_LIST && v.as.list->count == 0)
                t = ir_type_without_none(E->m, p.type);
            operands[i] = ir_build_const_typed(&E->b, v, t);
            continue;
        }
        if (c->source[i] == -2) {
            ir_value **items = TS_NEW_ARRAY(E->arena, ir_value *, c->pack_count);
            for (size_t k = 0; k < c->pack_count; k++)
                items[k] = em_coerce(E, values[c->pack_from + k], em_simple(E, IR_INT), 0, node, "size");
            operands[i] = em_list_of(E, items, c->pack_count, em_simple(E, IR_INT));
            continue;
        }
        ir_value *v = values[c->source[i]];
        ir_type_bindings saved = bindings;
        bool has_variable = ir_type_substitute(E->m, p.type, &(ir_type_bindings){0}) != p.type;
        const ir_type *want = p.type;
        if (has_variable) {
            bool fits = ir_type_match(E->m, p.type, v->type, &bindings);
            const ir_type *first = ir_type_substitute(E->m, p.type, &saved);
            if (!fits || (p.type->kind == IR_VAR && first->kind != IR_ANY)) {
                bindings = saved;
                want = first;
            } else {
                want = NULL;
            }
        }
        if (want && want->kind != IR_ANY)
            v = em_coerce(E, v, want, p.fixed_length, args->items[c->source[i]].node, "argument");
        if (!v)
            return em_error();
        operands[i] = v;
    }
    em_place(E, node);
    if (c->function) {
        ir_function *f = fe_function_ir(E->fe, c->function);
        if (!f) {
            E->failed = true;
            EM_ERR(E, node, "the library function %.*s has errors", TS_STR_ARG(c->function->bare_name));
            return em_error();
        }
        for (size_t i = 0; i < c->count; i++)
            operands[i] = em_cast(E, operands[i], f->body->parameters[i]->type);
        const ir_type *returns = f->return_type ? f->return_type
                                                : em_simple(E, IR_ANY);
        ir_op *op = ir_build_op(&E->b, IR_OP_CALL, operands, c->count, &returns, 1);
        op->function = f;
        return em_value(op->results[0]);
    }
    return results_of(E, ir_build_core(&E->b, c->op, operands, c->count));
}

/* Within an arm of an if, however deep: code that may never run. The body of a loop does run. */
static bool is_in_arm(const ir_block *block) {
    for (; block && block->parent; block = block->parent->block)
        if (block->parent->opcode == IR_OP_IF)
            return true;
    return false;
}

/* False: an operator unknown to us in one arm of an archive: an error only where it runs. */
static bool refuse(emitter *E, ts_str name, candidate *list, size_t count, ir_value *const *values,
                   const em_arguments *args, const ast_node *node) {
    if (!count && node && node->source && node->source->is_archive && is_in_arm(E->b.block))
        return false;
    ts_buffer text = {0};
    for (size_t i = 0; i < args->count; i++) {
        if (i)
            ts_buffer_text(&text, ", ");
        if (args->items[i].name.length) {
            ts_buffer_str(&text, args->items[i].name);
            ts_buffer_text(&text, "=");
        }
        ts_buffer_text(&text, text_of(E, values[i]->type));
    }
    if (!text.data)
        ts_buffer_text(&text, "");
    const char *reason = count ? NULL : fe_archive_reason(name);
    bool is_optional = false;
    for (size_t i = 0; i < args->count; i++)
        is_optional = is_optional || values[i]->type->kind == IR_OPTIONAL;
    if (reason)
        EM_UNSUPPORTED(E, node, "%s", reason);
    else if (!count)
        EM_UNSUPPORTED(E, node, "the operator %.*s is not supported yet", TS_STR_ARG(name));
    else
        EM_ERR(E, node, is_optional ? "no overload of %.*s takes (%.*s): check first that it is not None"
                                    : "no overload of %.*s takes (%.*s)", TS_STR_ARG(name), (int)text.length,
               text.data ? text.data : "");
    ts_buffer_deinit(&text);
    for (size_t i = 0; i < count && i < 8; i++)
        fe_report(E->fe->diagnostics, FE_NOTE, TS_ERR_TYPE, list[i].function ? list[i].function->node : NULL,
                  "candidate %.*s: %.*s", TS_STR_ARG(candidate_name(&list[i])),
                  (int)list[i].why.length, list[i].why.data);
    return true;
}

em em_missing_operator(emitter *E, ts_str name, const ast_node *node) {
    fe_report(E->fe->diagnostics, FE_WARNING, TS_ERR_UNSUPPORTED, node,
              "the operator %.*s is not supported yet: reaching it raises", TS_STR_ARG(name));
    em_place(E, node);
    em_raise_named(E, TS_STR("NotImplementedError"),
                   ir_build_str(&E->b, ts_arena_format(E->arena, "the operator %.*s is not supported yet",
                                                       TS_STR_ARG(name))));
    return em_value(em_uninitialized(E, em_simple(E, IR_ANY)));
}

static bool store_out(emitter *E, ir_value *out, ir_value *value, const ast_node *node) {
    ir_value *size = em_op(E, "size", node, 1, value);
    return size && em_op(E, "resize_", node, 2, out, size) && em_op(E, "copy_", node, 2, out, value);
}

/* out=(a, b), or in an archive values=a, indices=b: outs[] for the results in their order. */
static em derive_outs(emitter *E, ts_str name, em_arguments *rest, ir_value **outs, size_t count,
                      const ast_node *node) {
    em r = em_operator(E, name, rest, node);
    if (r.kind != EM_VALUE || r.value->type->kind != IR_TUPLE || r.value->type->arg_count != count) {
        if (r.kind == EM_VALUE)
            EM_ERR(E, node, "out= of %.*s is not %zu tensors", TS_STR_ARG(name), count);
        return em_error();
    }
    ir_op *unpack = ir_build_op(&E->b, IR_OP_TUPLE_UNPACK, &r.value, 1, r.value->type->args, count);
    for (size_t i = 0; i < count; i++)
        if (!store_out(E, outs[i], unpack->results[i], node))
            return em_error();
    return em_value(em_tuple_of(E, outs, count));
}

/* Tensors under names that no overload has. */
static size_t find_named_outs(const candidate *list, size_t count, const em_arguments *args,
                              ir_value *const *values, size_t *out_at, size_t max) {
    size_t found = 0;
    for (size_t i = 0; i < args->count && count; i++) {
        bool is_known = !args->items[i].name.length || values[i]->type->kind != IR_TENSOR;
        for (size_t c = 0; c < count && !is_known; c++)
            for (size_t k = 0; k < list[c].count && !is_known; k++)
                is_known = same_parameter(parameter_of(&list[c], k).name, args->items[i].name);
        if (!is_known && found < max)
            out_at[found++] = i;
    }
    return found;
}

/* out= where no overload has it: compute, size out alike, copy. */
static em derive_out(emitter *E, ts_str name, em_arguments *args, size_t out_at,
                     const ast_node *node) {
    ir_value *out = em_ir(E, args->items[out_at].v, node, NULL);
    em_arguments rest = {0};
    for (size_t i = 0; i < args->count; i++)
        if (i != out_at)
            TS_APPEND(E->arena, rest.items, rest.count, rest.capacity, args->items[i]);
    if (out && out->type->kind == IR_TUPLE && out->type->arg_count > 0) {
        size_t count = out->type->arg_count;
        ir_op *unpack = ir_build_op(&E->b, IR_OP_TUPLE_UNPACK, &out, 1, out->type->args, count);
        return derive_outs(E, name, &rest, unpack->results, count, node);
    }
    em r = em_operator(E, name, &rest, node);
    if (r.kind != EM_VALUE || !out)
        return em_error();
    if (r.value->type->kind != IR_TENSOR) {
        EM_ERR(E, node, "out= of %.*s is not one tensor", TS_STR_ARG(name));
        return em_error();
    }
    return store_out(E, out, r.value, node) ? em_value(out) : em_error();
}

/* A number that a trace met in arithmetic (x * 0.5) is stored as a 0-d tensor of 64 bits; it takes
 * part in type promotion as the number that it was, as in PyTorch's own interpreter. */
static void unwrap_traced_numbers(emitter *E, ts_str name, const em_arguments *args,
                                  ir_value **values) {
    static const char *const names[] = {"add",  "sub",  "mul",  "div",  "floor_divide",
                                        "add_", "sub_", "mul_", "div_", "floor_divide_"};
    bool is_arithmetic = false, has_tensor = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        is_arithmetic = is_arithmetic || ts_str_is(name, names[i]);
    if (!is_arithmetic || args->count < 2)
        return;
    for (size_t i = 0; i < 2; i++) {
        const ast_node *node = args->items[i].node;
        bool is_constant = node && node->kind == AST_ATTRIBUTE && node->left &&
                           node->left->kind == AST_NAME &&
                           ts_str_is(node->left->text, "CONSTANTS");
        rt_value v, number;
        has_tensor = has_tensor || (!is_constant && values[i]->type->kind == IR_TENSOR);
        if (i == 0 || !is_constant || !has_tensor || !ir_const_value(values[i], &v) ||
            v.tag != RT_TAG_TENSOR || v.as.tensor->rank > 0 ||
            (v.as.tensor->dtype != RT_float64 && v.as.tensor->dtype != RT_int64))
            continue;
        ts_status status = rt_tensor_item(v.as.tensor, &number);
        if (status)
            ts_status_release(status);
        else
            values[i] = ir_build_const(&E->b, number);
    }
}

static bool holds_tensors(const ir_type *item) {
    return item->kind == IR_TENSOR || (item->kind == IR_OPTIONAL && item->args[0]->kind == IR_TENSOR);
}

/* In Python the result is a tuple; in TorchScript, whose schemas these are, a list. */
static bool gives_tuple(ts_str name, const ir_type *t, const ast_node *node) {
    static const char *const names[] = {"split", "chunk", "unbind", "tensor_split", "hsplit", "vsplit", "dsplit", "meshgrid",
                                        "broadcast_tensors", "nonzero_numpy", "where", "unsafe_split", "unsafe_chunk",
                                        "split_with_sizes", "unsafe_split_with_sizes", "autograd_grad"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++)
        found = ts_str_is(name, names[i]);
    return found && t->kind == IR_LIST && holds_tensors(t->args[0]) && node && node->source && !node->source->is_archive && !node->source->is_library;
}

/* x.view(*x.shape[:-1], 2, 3): where the length of a starred list is known only at run time, the sizes behind
 * the tensor become one list. False after an error. */
static bool pack_starred(emitter *E, em_arguments *args, const ast_node *node) {
    size_t stars = 0, count = 0;
    for (; count < args->count && (!args->items[count].name.length || ts_str_is(args->items[count].name, "*")); count++)
        stars += args->items[count].name.length > 0;
    if (!stars)
        return true;
    em first = args->items[0].v;
    bool has_self = !args->items[0].name.length && first.kind == EM_VALUE && first.value->type->kind == IR_TENSOR;
    const ir_type *item = em_simple(E, IR_INT);
    ir_value *all = NULL;
    for (size_t i = has_self; i < count; i++) {
        ir_value *v = em_ir(E, args->items[i].v, args->items[i].node, NULL);
        if (!v)
            return false;
        if (args->items[i].name.length && !all && v->type->kind == IR_LIST)
            item = v->type->args[0];
        if (!args->items[i].name.length) {
            v = em_coerce(E, v, item, 0, args->items[i].node, "the size");
            if (!v)
                return false;
            v = em_list_of(E, &v, 1, item);
        }
        all = all ? em_row(E, "add.t", node, 2, all, v) : v;
    }
    args->items[has_self] = (em_argument){.v = em_value(all), .node = node};
    for (size_t i = count; i < args->count; i++)
        args->items[has_self + 1 + i - count] = args->items[i];
    args->count -= count - has_self - 1;
    return true;
}

em em_operator(emitter *E, ts_str name, em_arguments *args, const ast_node *node) {
    ts_str overload;
    name = split_overload(name, &overload);
    name = fe_canonical_operator(E->arena, name);
    if (ts_str_is(name, "item") && !name_exists(E->fe, name))
        name = TS_STR("ScalarImplicit");
    if (!pack_starred(E, args, node))
        return em_error();
    ir_value **values = TS_NEW_ARRAY(E->arena, ir_value *, args->count + 1);
    for (size_t i = 0; i < args->count; i++) {
        values[i] = em_ir(E, args->items[i].v, args->items[i].node ? args->items[i].node : node, NULL);
        if (!values[i])
            return em_error();
    }
    unwrap_traced_numbers(E, name, args, values);
    candidate *list = TS_NEW_ARRAY(E->arena, candidate, MAX_CANDIDATES);
    size_t count = find_candidates(E, name, list);
    candidate *best = NULL;
    for (size_t i = 0; i < count; i++) {
        match(E, &list[i], args, values);
        /* Asked for by its full name, as exported programs do; but a number among the arguments of
         * add.Tensor stays a number, as it does in PyTorch. */
        if (list[i].cost >= 0 && list[i].cost < COST_NUMBER_AS_TENSOR && is_overload(&list[i], overload))
            list[i].cost = 0;
        if (list[i].cost >= 0 && (!best || list[i].cost < best->cost))
            best = &list[i];
    }
    if (best) {
        em made = build(E, best, args, values, node);
        made.is_tuple = made.is_tuple || (made.kind == EM_VALUE && gives_tuple(name, made.value->type, node));
        return made;
    }
    for (size_t i = 0; i < args->count; i++) { /* where no overload has requires_grad=False */
        bool wanted;
        if (!ts_str_is(args->items[i].name, "requires_grad") || !ir_const_bool(values[i], &wanted) || wanted)
            continue;
        em_arguments rest = {0};
        for (size_t k = 0; k < args->count; k++)
            if (k != i)
                TS_APPEND(E->arena, rest.items, rest.count, rest.capacity, args->items[k]);
        return em_operator(E, name, &rest, node);
    }
    size_t out_at[MAX_PARAMETERS];
    size_t out_count = find_named_outs(list, count, args, values, out_at, MAX_PARAMETERS);
    if (out_count > 1) {
        ir_value **outs = TS_NEW_ARRAY(E->arena, ir_value *, out_count);
        em_arguments rest = {0};
        for (size_t i = 0, k = 0; i < args->count; i++) {
            if (k < out_count && out_at[k] == i)
                outs[k++] = values[i];
            else
                TS_APPEND(E->arena, rest.items, rest.count, rest.capacity, args->items[i]);
        }
        return derive_outs(E, name, &rest, outs, out_count, node);
    }
    for (size_t i = 0; i < args->count; i++)
        if (ts_str_is(args->items[i].name, "out")) {
            if (values[i]->type->kind == IR_NONE) { /* out=None */
                em_arguments rest = {0};
                for (size_t k = 0; k < args->count; k++)
                    if (k != i)
                        TS_APPEND(E->arena, rest.items, rest.count, rest.capacity, args->items[k]);
                return em_operator(E, name, &rest, node);
            }
            return derive_out(E, name, args, i, node);
        }
    ts_str pure;
    if (is_in_place(name, &pure) && name_exists(E->fe, pure) && args->count &&
        values[0]->type->kind == IR_TENSOR) {
        em r = em_operator(E, pure, args, node);
        if (r.kind != EM_VALUE)
            return r;
        return em_value(em_op(E, "copy_", node, 2, values[0], r.value));
    }
    if (refuse(E, name, list, count, values, args, node))
        return em_error();
    return em_missing_operator(E, name, node);
}

ir_value *em_op(emitter *E, const char *name, const ast_node *node, size_t count, ...) {
    em_arguments args = {0};
    va_list list;
    va_start(list, count);
    bool failed = false;
    for (size_t i = 0; i < count; i++) {
        ir_value *v = va_arg(list, ir_value *);
        failed = failed || !v;
        em_argument a = {.v = em_value(v), .node = node};
        TS_APPEND(E->arena, args.items, args.count, args.capacity, a);
    }
    va_end(list);
    if (failed)
        return NULL;
    em r = em_operator(E, ts_str_of(name), &args, node);
    return r.kind == EM_VALUE ? r.value : NULL;
}

ir_value *em_row(emitter *E, const char *full_name, const ast_node *node, size_t count, ...) {
    ir_value *operands[8];
    va_list list;
    va_start(list, count);
    bool failed = count > 8;
    for (size_t i = 0; i < count && !failed; i++) {
        operands[i] = va_arg(list, ir_value *);
        failed = !operands[i];
    }
    va_end(list);
    if (failed)
        return NULL;
    rt_op op = rt_op_find(ts_str_of(full_name));
    if (op == OP_COUNT) {
        EM_UNSUPPORTED(E, node, "the operator %s is not supported yet", full_name);
        return NULL;
    }
    em_place(E, node);
    em r = results_of(E, ir_build_core(&E->b, op, operands, count));
    return r.value;
}

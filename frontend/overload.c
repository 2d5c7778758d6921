/* frontend/overload.c - picks the overload of an operator: rows of the core table and functions of
 * the library, told apart by what their parameters take; implicit conversions cost, the cheapest
 * candidate wins, the first of equals. */
#include "frontend/overload.h"

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

bool em_operator_is_there(fe_context *fe, ts_str name) {
    return fe_map_get(&table_of(fe)->rows, name) || fe_library_overloads(fe, name, NULL, 0);
}

bool em_is_in_place(ts_str name, ts_str *out_pure) {
    if (name.length < 2 || name.data[name.length - 1] != '_' || name.data[name.length - 2] == '_')
        return false;
    *out_pure = (ts_str){name.data, name.length - 1};
    return true;
}

bool fe_operator_exists(fe_context *fe, ts_str name) {
    ts_str pure;
    name = fe_canonical_operator(fe->arena, name);
    return em_operator_is_there(fe, name) || ts_str_is(name, "item") ||
           (em_is_in_place(name, &pure) && em_operator_is_there(fe, pure));
}

em_parameter em_parameter_of(const em_candidate *c, size_t i) {
    if (c->signature)
        return c->signature->parameters[i];
    const ir_schema_arg *a = &c->schema->args[i];
    return (em_parameter){.name = a->name, .type = a->type, .has_default = a->has_default,
                          .is_keyword_only = a->is_keyword_only,
                          .default_value = a->default_value, .fixed_length = a->fixed_length};
}

ts_str em_candidate_name(const em_candidate *c) {
    return c->function ? c->function->bare_name : rt_op_name(c->op);
}

bool em_same_parameter(ts_str parameter, ts_str given) {
    static const char *const aliases[][2] = {{"dim", "axis"}, {"keepdim", "keepdims"},
                                             {"self", "input"}, {"input", "self"}, {"dims", "axis"},
                                             {"other", "x2"},
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

static bool is_size(const ir_type *t) { return t->kind == IR_INT || t->kind == IR_NUMBER; }

void em_match(emitter *E, em_candidate *c, const em_arguments *args, ir_value *const *values) {
    ts_arena *arena = E->arena;
    c->cost = COST_IMPOSSIBLE;
    if (c->signature && c->signature->failed) {
        c->why = TS_STR("its signature has errors");
        return;
    }
    if (c->count > EM_MAX_PARAMETERS) {
        c->why = TS_STR("it has too many parameters");
        return;
    }
    for (size_t i = 0; i < c->count; i++)
        c->source[i] = -1;
    size_t positional = 0, room = 0;
    while (positional < args->count && !args->items[positional].name.length)
        positional++;
    while (room < c->count && !em_parameter_of(c, room).is_keyword_only)
        room++;
    size_t at = 0;
    for (size_t i = 0; i < positional; i++) {
        if (at < room && takes_sizes(em_parameter_of(c, at)) && positional - i > 1 &&
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
        if (at < room && takes_sizes(em_parameter_of(c, at)) && positional - i > 1 &&
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
        while (k < c->count && !ts_str_equal(em_parameter_of(c, k).name, name))
            k++;
        if (k == c->count)
            for (k = 0; k < c->count && !em_same_parameter(em_parameter_of(c, k).name, name);)
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
        em_parameter p = em_parameter_of(c, i);
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
                                             em_type_text(E, values[c->pack_from + k]->type));
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
                                     TS_STR_ARG(p.name), em_type_text(E, p.type), em_type_text(E, v->type));
            return;
        }
        cost += one;
    }
    /* An int is a dtype only where it is written as one: x.view(6) is a size. */
    const ast_node *first = args->count ? args->items[0].node : NULL;
    bool is_source = !c->function && first && first->source && !first->source->is_archive;
    if (is_source && args->count == 2 && ts_str_is(rt_op_name(c->op), "view.dtype") && args->items[1].node &&
        args->items[1].node->kind != AST_ATTRIBUTE)
        cost += 10;
    /* Python's stft pads the signal before this overload: stft.center does both. */
    if (is_source && ts_str_is(rt_op_name(c->op), "stft"))
        cost += 10;
    c->cost = cost;
}

size_t em_find_candidates(emitter *E, ts_str name, em_candidate *out) {
    size_t count = 0;
    row_list *rows = fe_map_get(&table_of(E->fe)->rows, name);
    for (size_t i = 0; rows && i < rows->count && count < EM_MAX_CANDIDATES; i++) {
        const ir_schema *schema = ir_schema_of(E->m, rows->items[i]);
        out[count++] = (em_candidate){.op = rows->items[i], .schema = schema, .count = schema->arg_count};
    }
    fe_function *functions[EM_MAX_CANDIDATES];
    size_t function_count = fe_library_overloads(E->fe, name, functions, EM_MAX_CANDIDATES);
    for (size_t i = 0; i < function_count && count < EM_MAX_CANDIDATES; i++) {
        em_signature *s = em_signature_of(E->fe, functions[i], NULL);
        out[count++] = (em_candidate){.op = OP_COUNT, .function = functions[i], .signature = s,
                                   .count = s->count};
    }
    return count;
}

fe_function *em_choose_function(emitter *E, fe_function *f, const em_arguments *args, const ast_node *node) {
    fe_function *functions[EM_MAX_CANDIDATES];
    size_t count = fe_library_overloads(E->fe, f->name, functions, EM_MAX_CANDIDATES);
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
        em_candidate c = {.op = OP_COUNT, .function = functions[i],
                       .signature = em_signature_of(E->fe, functions[i], NULL)};
        c.count = c.signature->count;
        em_match(E, &c, args, values);
        if (c.cost >= 0 && (least < 0 || c.cost < least)) {
            least = c.cost;
            f = functions[i];
        }
    }
    return f;
}

/* frontend/archive/exported_region.c - graphs within an exported graph: branches, loops, maps. */
#include "frontend/archive/exported.h"

static void append(ts_buffer *to, const ts_buffer *from) {
    if (from->length)
        ts_buffer_append(to, from->data, from->length);
}

/* Writes a graph as a function of the module's text; *out is how it is called. */
static ts_status write_function(fe_archive *a, const json_t *argument, int depth, ts_str *out) {
    fe_exported *e = a->exported;
    const json_t *value = NULL, *list = NULL;
    const char *which = fe_exported_choice(argument, &value);
    const json_t *graph = json_object_get(value, "graph");
    size_t count = 0;
    if (!which || strcmp(which, "as_graph") != 0 || !json_is_object(graph))
        return fe_exported_bad("expected a graph");
    if (depth > 30 || e->graph_count++ >= FE_EXPORTED_MAX_GRAPHS)
        return fe_exported_bad("too many graphs, or too deep ones");
    ts_str name = ts_arena_format(a->arena, "graph_%zu", e->graph_count);
    *out = ts_arena_format(a->arena, "__torch__.%.*s", (int)name.length, name.data);
    ts_buffer outer = e->text;
    fe_map *outer_names = e->names;
    e->text = (ts_buffer){0};
    e->names = TS_NEW(a->arena, fe_map);
    ts_buffer_format(&e->text, "def %.*s(", (int)name.length, name.data);
    ts_status status = fe_exported_list(graph, "inputs", &list, &count);
    for (size_t i = 0; i < count && !status; i++) {
        ts_str type = {0};
        ts_buffer_text(&e->text, i ? ", " : "");
        status = fe_exported_write_argument(a, json_array_get(list, i), &e->text, &type);
        ts_buffer_format(&e->text, ": %.*s", (int)type.length, type.data);
    }
    ts_buffer body = {0}, types = {0};
    ts_buffer head = e->text;
    e->text = (ts_buffer){0};
    if (!status)
        status = fe_exported_write_nodes(a, graph, 1, depth + 1);
    if (!status)
        status = fe_exported_list(graph, "outputs", &list, &count);
    for (size_t i = 0; i < count && !status; i++) {
        ts_str type = {0};
        ts_buffer_text(&types, i ? ", " : "");
        status = fe_exported_write_argument(a, json_array_get(list, i), &body, &type);
        ts_buffer_text(&body, ", ");
        ts_buffer_str(&types, type);
    }
    append(&e->functions, &head);
    ts_buffer_text(&e->functions, ") -> Tuple[");
    ts_buffer_text(&types, types.length ? "" : "()");
    append(&e->functions, &types);
    ts_buffer_text(&e->functions, "]:\n");
    append(&e->functions, &e->text);
    ts_buffer_text(&e->functions, "  return (");
    append(&e->functions, &body);
    ts_buffer_text(&e->functions, ")\n");
    ts_buffer_deinit(&head);
    ts_buffer_deinit(&body);
    ts_buffer_deinit(&types);
    ts_buffer_deinit(&e->text);
    e->text = outer;
    e->names = outer_names;
    return status;
}

/* The tensors and symbols that a list argument, or several arguments, pass on. */
static ts_status write_operands(fe_archive *a, const json_t *inputs, size_t from, ts_buffer *out) {
    for (size_t i = from; i < json_array_size(inputs); i++) {
        const json_t *value = NULL;
        const char *which = fe_exported_choice(fe_exported_argument(inputs, i), &value);
        if (which && json_is_array(value) && strncmp(which, "as_", 3) == 0) {
            bool is_tensor = strcmp(which, "as_tensors") == 0;
            fe_exported_kind kind = is_tensor                              ? FE_EXPORTED_TENSOR
                           : strcmp(which, "as_sym_ints") == 0    ? FE_EXPORTED_SYMBOL
                           : strcmp(which, "as_ints") == 0        ? FE_EXPORTED_INT
                           : strcmp(which, "as_floats") == 0      ? FE_EXPORTED_FLOAT
                           : strcmp(which, "as_bools") == 0       ? FE_EXPORTED_BOOL
                                                                  : FE_EXPORTED_OPTIONAL_TENSOR;
            for (size_t k = 0; k < json_array_size(value); k++) {
                TS_TRY(fe_exported_write_element(a, kind, json_array_get(value, k), out));
                ts_buffer_text(out, ", ");
            }
        } else {
            TS_TRY(fe_exported_write_argument(a, fe_exported_argument(inputs, i), out, NULL));
            ts_buffer_text(out, ", ");
        }
    }
    return NULL;
}

/* The outputs of a node, each by name, from the tuple in `from`. */
static ts_status unpack_tuple(fe_archive *a, const json_t *outputs, ts_str from, int indent) {
    ts_buffer *out = fe_exported_line(a, indent);
    size_t written = 0;
    for (size_t i = 0; i < json_array_size(outputs); i++) {
        const json_t *value = NULL;
        const char *which = fe_exported_choice(json_array_get(outputs, i), &value);
        bool is_list = which && strcmp(which, "as_tensors") == 0;
        for (size_t k = 0; k < (is_list ? json_array_size(value) : 1); k++, written++) {
            if (is_list) {
                TS_TRY(fe_exported_write_element(a, FE_EXPORTED_TENSOR, json_array_get(value, k), out));
            } else {
                bool unused = false;
                TS_TRY(fe_exported_write_target(a, json_array_get(outputs, i), &unused, out));
            }
            ts_buffer_text(out, ", ");
        }
    }
    if (!written)
        ts_buffer_str(out, fe_exported_fresh(a, "n"));
    ts_buffer_text(out, " = ");
    ts_buffer_str(out, from);
    ts_buffer_char(out, '\n');
    return NULL;
}

static ts_status write_call(fe_archive *a, ts_str target, ts_str function, const json_t *inputs,
                            size_t from, int indent) {
    ts_buffer *out = fe_exported_line(a, indent);
    ts_buffer_format(out, "%.*s = %.*s(", (int)target.length, target.data, (int)function.length,
                     function.data);
    TS_TRY(write_operands(a, inputs, from, out));
    ts_buffer_text(out, ")\n");
    return NULL;
}

static ts_status write_cond(fe_archive *a, const json_t *node, int indent, int depth) {
    const json_t *inputs = json_object_get(node, "inputs");
    ts_str yes, no, result = fe_exported_fresh(a, "c");
    TS_TRY(write_function(a, fe_exported_argument(inputs, 1), depth, &yes));
    TS_TRY(write_function(a, fe_exported_argument(inputs, 2), depth, &no));
    ts_buffer *out = fe_exported_line(a, indent);
    ts_buffer_text(out, "if bool(");
    TS_TRY(fe_exported_write_argument(a, fe_exported_argument(inputs, 0), out, NULL));
    ts_buffer_text(out, "):\n");
    TS_TRY(write_call(a, result, yes, inputs, 3, indent + 1));
    ts_buffer_text(fe_exported_line(a, indent), "else:\n");
    TS_TRY(write_call(a, result, no, inputs, 3, indent + 1));
    return unpack_tuple(a, json_object_get(node, "outputs"), result, indent);
}

/* while_loop(condition, body, carried, more): the first two graphs take carried and more. */
static ts_status write_while(fe_archive *a, const json_t *node, int indent, int depth) {
    const json_t *inputs = json_object_get(node, "inputs"), *carried = NULL;
    ts_str condition, body;
    TS_TRY(write_function(a, fe_exported_argument(inputs, 0), depth, &condition));
    TS_TRY(write_function(a, fe_exported_argument(inputs, 1), depth, &body));
    ts_buffer first = {0}, more = {0}, names = {0};
    ts_status status = NULL;
    const char *which = fe_exported_choice(fe_exported_argument(inputs, 2), &carried);
    size_t count = json_array_size(carried);
    bool is_symbol = which && strcmp(which, "as_sym_ints") == 0;
    bool is_int = which && strcmp(which, "as_ints") == 0;
    for (size_t i = 0; i < count && !status; i++) {
        ts_str name = fe_exported_fresh(a, "w");
        ts_buffer_format(&names, "%.*s, ", (int)name.length, name.data);
        status = fe_exported_write_element(a, is_symbol ? FE_EXPORTED_SYMBOL : is_int ? FE_EXPORTED_INT : FE_EXPORTED_TENSOR, json_array_get(carried, i),
                               &first);
        ts_buffer_text(&first, ", ");
    }
    if (!status)
        status = write_operands(a, inputs, 3, &more);
    if (!status) {
        ts_str all = ts_arena_format(a->arena, "%.*s%.*s", (int)names.length, names.data ? names.data : "",
                                     (int)more.length, more.data ? more.data : "");
        ts_str test = fe_exported_fresh(a, "t"), result = fe_exported_fresh(a, "r");
        ts_str ask = ts_arena_format(a->arena, "%.*s, = %.*s(%.*s)", (int)test.length, test.data,
                                     (int)condition.length, condition.data, (int)all.length, all.data);
        ts_str go = fe_exported_fresh(a, "g");
        ts_buffer_format(fe_exported_line(a, indent), "%.*s = (%.*s)\n", (int)names.length, names.data ? names.data : "",
                         (int)first.length, first.data ? first.data : "");
        ts_buffer_format(fe_exported_line(a, indent), "%.*s\n", (int)ask.length, ask.data);
        ts_buffer_format(fe_exported_line(a, indent), "%.*s = bool(%.*s)\n", (int)go.length, go.data,
                         (int)test.length, test.data);
        ts_buffer_format(fe_exported_line(a, indent), "while %.*s:\n", (int)go.length, go.data);
        ts_buffer_format(fe_exported_line(a, indent + 1), "%.*s = %.*s(%.*s)\n", (int)result.length, result.data,
                         (int)body.length, body.data, (int)all.length, all.data);
        ts_buffer_format(fe_exported_line(a, indent + 1), "%.*s = %.*s\n", (int)names.length,
                         names.data ? names.data : "", (int)result.length, result.data);
        ts_buffer_format(fe_exported_line(a, indent + 1), "%.*s\n", (int)ask.length, ask.data);
        ts_buffer_format(fe_exported_line(a, indent + 1), "%.*s = bool(%.*s)\n", (int)go.length, go.data,
                         (int)test.length, test.data);
        status = unpack_tuple(a, json_object_get(node, "outputs"),
                              ts_arena_format(a->arena, "(%.*s)", (int)names.length,
                                              names.data ? names.data : ""), indent);
    }
    ts_buffer_deinit(&first);
    ts_buffer_deinit(&more);
    ts_buffer_deinit(&names);
    return status;
}

/* The arguments of one step: carried values, slices, and what all steps are given. */
static ts_status write_step(fe_archive *a, const json_t *inputs, size_t xs_at, const ts_str *carried,
                            size_t carried_count, ts_str index, ts_buffer *out) {
    const json_t *xs = NULL;
    fe_exported_choice(fe_exported_argument(inputs, xs_at), &xs);
    for (size_t i = 0; i < carried_count; i++)
        ts_buffer_format(out, "%.*s, ", (int)carried[i].length, carried[i].data);
    for (size_t i = 0; i < json_array_size(xs); i++) {
        ts_buffer_text(out, "torch.select(");
        TS_TRY(fe_exported_write_element(a, FE_EXPORTED_TENSOR, json_array_get(xs, i), out));
        ts_buffer_format(out, ", 0, %.*s), ", (int)index.length, index.data);
    }
    TS_TRY(write_operands(a, inputs, xs_at + 1, out));
    ts_buffer_text(out, ")\n");
    return NULL;
}

/* map(graph, xs, more): over the first dimension of each of xs; results are stacked.
 * scan(graph, carried, xs, more): the first results go to the next step, and out. */
static ts_status write_map(fe_archive *a, const json_t *node, bool is_scan, int indent, int depth) {
    const json_t *inputs = json_object_get(node, "inputs"), *xs = NULL, *initial = NULL, *value = NULL;
    const json_t *graph = NULL;
    size_t xs_at = is_scan ? 2 : 1;
    ts_str body;
    TS_TRY(write_function(a, fe_exported_argument(inputs, 0), depth, &body));
    const char *which = fe_exported_choice(fe_exported_argument(inputs, xs_at), &xs);
    fe_exported_choice(fe_exported_argument(inputs, 0), &graph);
    if (!which || strcmp(which, "as_tensors") != 0 || !json_array_size(xs))
        return ts_error_make(TS_ERR_UNSUPPORTED, "exported program: a map or scan over other than "
                             "tensors is not supported yet");
    which = is_scan ? fe_exported_choice(fe_exported_argument(inputs, 1), &initial) : NULL;
    size_t result_count = 0, carried_count = json_array_size(initial);
    if (carried_count && strcmp(which, "as_tensors") != 0)
        return ts_error_make(TS_ERR_UNSUPPORTED, "exported program: a scan that carries other than "
                             "tensors is not supported yet");
    TS_TRY(fe_exported_list(json_object_get(graph, "graph"), "outputs", &value, &result_count));
    if (carried_count > result_count)
        return fe_exported_bad("a scan that carries more than its graph gives");
    ts_str index = fe_exported_fresh(a, "i"), result = fe_exported_fresh(a, "r");
    ts_str *names = TS_NEW_ARRAY(a->arena, ts_str, result_count + 1);
    for (size_t i = 0; i < result_count; i++) {
        names[i] = fe_exported_fresh(a, i < carried_count ? "c" : "l");
        ts_buffer *out = fe_exported_line(a, indent);
        ts_buffer_format(out, "%.*s = ", (int)names[i].length, names[i].data);
        if (i < carried_count)
            TS_TRY(fe_exported_write_element(a, FE_EXPORTED_TENSOR, json_array_get(initial, i), out));
        else
            ts_buffer_text(out, "annotate(List[Tensor], [])");
        ts_buffer_char(out, '\n');
    }
    ts_buffer *out = fe_exported_line(a, indent);
    ts_buffer_format(out, "for %.*s in range(torch.size(", (int)index.length, index.data);
    TS_TRY(fe_exported_write_element(a, FE_EXPORTED_TENSOR, json_array_get(xs, 0), out));
    ts_buffer_text(out, ", 0)):\n");
    out = fe_exported_line(a, indent + 1);
    ts_buffer_format(out, "%.*s = %.*s(", (int)result.length, result.data, (int)body.length, body.data);
    TS_TRY(write_step(a, inputs, xs_at, names, carried_count, index, out));
    ts_buffer all = {0};
    ts_buffer_char(&all, '(');
    for (size_t i = 0; i < result_count; i++) {
        bool is_carried = i < carried_count;
        ts_buffer_format(fe_exported_line(a, indent + 1), is_carried ? "%.*s = %.*s[%zu]\n"
                                                                     : "_n = torch.append(%.*s, %.*s[%zu])\n",
                         (int)names[i].length, names[i].data, (int)result.length, result.data, i);
        ts_buffer_format(&all, is_carried ? "%.*s, " : "torch.stack(%.*s), ", (int)names[i].length,
                         names[i].data);
    }
    ts_buffer_char(&all, ')');
    ts_str tuple = ts_arena_str(a->arena, (ts_str){all.data ? all.data : "", all.length});
    ts_buffer_deinit(&all);
    return unpack_tuple(a, json_object_get(node, "outputs"), tuple, indent);
}

/* A graph that stands as a region for a mode: called where the mode does not matter here. */
static ts_status write_region(fe_archive *a, const json_t *node, size_t graph_at, size_t operands_at, int indent,
                              int depth) {
    const json_t *inputs = json_object_get(node, "inputs");
    ts_str body, result = fe_exported_fresh(a, "r");
    TS_TRY(write_function(a, fe_exported_argument(inputs, graph_at), depth, &body));
    TS_TRY(write_call(a, result, body, inputs, operands_at, indent));
    return unpack_tuple(a, json_object_get(node, "outputs"), result, indent);
}

ts_status fe_exported_write_higher_order(fe_archive *a, const json_t *node, const char *name, int indent,
                                    int depth) {
    if (strcmp(name, "cond") == 0)
        return write_cond(a, node, indent, depth);
    if (strcmp(name, "while_loop") == 0)
        return write_while(a, node, indent, depth);
    if (strcmp(name, "map_impl") == 0 || strcmp(name, "map") == 0)
        return write_map(a, node, false, indent, depth);
    if (strcmp(name, "scan") == 0)
        return write_map(a, node, true, indent, depth);
    if (strcmp(name, "wrap_with_set_grad_enabled") == 0)
        return write_region(a, node, 1, 2, indent, depth);
    if (strcmp(name, "invoke_subgraph") == 0) /* (graph, its name, ...) */
        return write_region(a, node, 0, 2, indent, depth);
    if (strcmp(name, "wrap_with_autocast") == 0) { /* (device, dtype, enabled, cache, graph, ...) */
        const json_t *value = NULL;
        const char *which = fe_exported_choice(fe_exported_argument(json_object_get(node, "inputs"), 2), &value);
        if (which && json_is_false(value))
            return write_region(a, node, 4, 5, indent, depth);
        return ts_error_make(TS_ERR_UNSUPPORTED, "exported program: a region of autocast is not "
                             "supported: export the program with its casts "
                             "(run_decompositions())");
    }
    return ts_error_make(TS_ERR_UNSUPPORTED, "exported program: the operator %.60s over graphs is not "
                         "supported yet", name);
}

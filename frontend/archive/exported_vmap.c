/* frontend/archive/exported_vmap.c - torch.vmap in an exported graph, as a loop over the slices.
 *
 * Programs that were not decomposed have it as marks between the nodes:
 *   _vmap_increment_nesting(size, randomness) ... _vmap_decrement_nesting()    the region
 *   _add_batch_dim(x, dim, level) -> a slice of x,  _remove_batch_dim(y, level, size, dim) -> all y, stacked
 * What stands between them works on slices, so the region is the body of a loop; what no slice goes into
 * is written before it. Regions nest as their marks do. */
#include "frontend/archive/exported.h"

#define PREFIX "torch._functorch.predispatch."

static const char *target_of(const json_t *nodes, size_t i) {
    const char *target = json_string_value(json_object_get(json_array_get(nodes, i), "target"));
    return target ? target : "";
}

static bool is_mark(const json_t *nodes, size_t i, const char *name) {
    const char *target = target_of(nodes, i);
    return strncmp(target, PREFIX, sizeof PREFIX - 1) == 0 && strcmp(target + sizeof PREFIX - 1, name) == 0;
}

bool fe_exported_is_vmap(const json_t *nodes, size_t i) { return is_mark(nodes, i, "_vmap_increment_nesting"); }
bool fe_exported_is_vmap_hint(const json_t *nodes, size_t i) { return is_mark(nodes, i, "lazy_load_decompositions"); }

/* The end of the region that begins at `from`: its last mark; or `to`. */
static size_t end_of_region(const json_t *nodes, size_t from, size_t to) {
    size_t depth = 0;
    for (size_t i = from; i < to; i++) {
        depth += fe_exported_is_vmap(nodes, i);
        if (is_mark(nodes, i, "_vmap_decrement_nesting") && --depth == 0)
            return i;
    }
    return to;
}

/* A node, or a region within the region. */
typedef struct unit {
    size_t from, to; /* to: behind it */
    bool is_sliced;  /* a slice goes into it */
} unit;

/* Calls visit for each name of a value in the arguments or outputs of a node. */
static bool any_name(const json_t *json, bool (*visit)(const char *name, void *context), void *context) {
    const char *key;
    json_t *part;
    size_t i;
    bool found = false;
    json_object_foreach((json_t *)(uintptr_t)json, key, part) {
        bool is_name = strcmp(key, "name") == 0 || strcmp(key, "as_name") == 0;
        if (is_name && json_is_string(part))
            found = visit(json_string_value(part), context) || found;
        else
            found = any_name(part, visit, context) || found;
    }
    json_array_foreach(json, i, part) found = any_name(part, visit, context) || found;
    return found;
}

typedef struct sliced_names {
    ts_arena *arena;
    fe_map set;
} sliced_names;

static bool is_sliced_name(const char *name, void *context) {
    return fe_map_get(&((sliced_names *)context)->set, ts_str_of(name)) != NULL;
}

static bool add_sliced_name(const char *name, void *context) {
    sliced_names *names = context;
    fe_map_set(names->arena, &names->set, ts_str_of(name), names);
    return false;
}

/* Finds out which units slices go into; nodes are in the order of their values. */
static void mark_sliced(const json_t *nodes, unit *units, size_t count, sliced_names *names) {
    for (size_t u = 0; u < count; u++) {
        unit *at = &units[u];
        bool is_one = at->to == at->from + 1;
        at->is_sliced = is_one && (is_mark(nodes, at->from, "_add_batch_dim") || is_mark(nodes, at->from, "_remove_batch_dim"));
        for (size_t i = at->from; i < at->to && !at->is_sliced; i++) {
            /* the names of arguments beside their values are the schema's: what is under "arg" counts */
            const json_t *inputs = json_object_get(json_array_get(nodes, i), "inputs");
            for (size_t k = 0; k < json_array_size(inputs); k++)
                at->is_sliced = any_name(fe_exported_argument(inputs, k), is_sliced_name, names) || at->is_sliced;
        }
        for (size_t i = at->from; i < at->to && at->is_sliced; i++)
            any_name(json_object_get(json_array_get(nodes, i), "outputs"), add_sliced_name, names);
    }
}

static ts_status write_slice(fe_archive *a, const json_t *node, ts_str index, int indent) {
    const json_t *inputs = json_object_get(node, "inputs");
    bool is_list = false;
    ts_buffer *out = fe_exported_line(a, indent);
    TS_TRY(fe_exported_write_target(a, json_array_get(json_object_get(node, "outputs"), 0), &is_list, out));
    ts_buffer_text(out, " = torch.select(");
    TS_TRY(fe_exported_write_argument(a, fe_exported_argument(inputs, 0), out, NULL));
    ts_buffer_text(out, ", ");
    TS_TRY(fe_exported_write_argument(a, fe_exported_argument(inputs, 1), out, NULL));
    ts_buffer_format(out, ", %.*s)\n", (int)index.length, index.data);
    return is_list ? fe_exported_bad("_add_batch_dim gives a list") : NULL;
}

static ts_status write_kept(fe_archive *a, const json_t *node, ts_str list, int indent) {
    ts_buffer *out = fe_exported_line(a, indent);
    ts_buffer_format(out, "_n = torch.append(%.*s, ", (int)list.length, list.data);
    TS_TRY(fe_exported_write_argument(a, fe_exported_argument(json_object_get(node, "inputs"), 0), out, NULL));
    ts_buffer_text(out, ")\n");
    return NULL;
}

/* What all slices gave; of no slices, zeros of the sizes that the exporter saw. */
static ts_status write_stacked(fe_archive *a, const json_t *graph, const json_t *node, ts_str list, bool is_empty, int indent) {
    const json_t *output = json_array_get(json_object_get(node, "outputs"), 0), *value = NULL;
    bool is_list = false;
    ts_buffer *out = fe_exported_line(a, indent);
    TS_TRY(fe_exported_write_target(a, output, &is_list, out));
    if (!is_empty) {
        ts_buffer_format(out, " = torch.stack(%.*s, ", (int)list.length, list.data);
        TS_TRY(fe_exported_write_argument(a, fe_exported_argument(json_object_get(node, "inputs"), 3), out, NULL));
        ts_buffer_text(out, ")\n");
        return is_list ? fe_exported_bad("_remove_batch_dim gives a list") : NULL;
    }
    fe_exported_choice(output, &value);
    const char *name = json_string_value(json_object_get(value, "name"));
    const json_t *meta = json_object_get(json_object_get(graph, "tensor_values"), name ? name : "");
    const json_t *sizes = json_object_get(meta, "sizes");
    rt_dtype dtype = fe_exported_dtype(json_object_get(meta, "dtype"));
    ts_buffer_text(out, " = torch.zeros([");
    for (size_t d = 0; d < json_array_size(sizes); d++) {
        const json_t *size = json_object_get(json_array_get(sizes, d), "as_int");
        if (!json_is_integer(size))
            return ts_error_make(TS_ERR_UNSUPPORTED, "exported program: vmap over no slices, whose result has sizes that "
                                 "are not known, is not supported");
        ts_buffer_format(out, "%s%lld", d ? ", " : "", (long long)json_integer_value(size));
    }
    ts_buffer_format(out, "], dtype=%d)\n", (int)dtype);
    return NULL;
}

static ts_status write_loop(fe_archive *a, const json_t *graph, const json_t *nodes, const unit *units, size_t count,
                            const json_t *size, int indent, int depth) {
    ts_str index = fe_exported_fresh(a, "i");
    ts_str *lists = TS_NEW_ARRAY(a->arena, ts_str, count + 1);
    const json_t *value = NULL;
    const char *which = fe_exported_choice(size, &value);
    bool is_empty = which && strcmp(which, "as_int") == 0 && json_integer_value(value) == 0;
    for (size_t u = 0; u < count; u++)
        if (is_mark(nodes, units[u].from, "_remove_batch_dim")) {
            lists[u] = fe_exported_fresh(a, "l");
            ts_buffer_format(fe_exported_line(a, indent), "%.*s = annotate(List[Tensor], [])\n", (int)lists[u].length,
                             lists[u].data);
        }
    if (!is_empty) {
        ts_buffer *out = fe_exported_line(a, indent);
        ts_buffer_format(out, "for %.*s in range(", (int)index.length, index.data);
        TS_TRY(fe_exported_write_argument(a, size, out, NULL));
        ts_buffer_text(out, "):\n");
    }
    for (size_t u = 0; u < count && !is_empty; u++) {
        const json_t *node = json_array_get(nodes, units[u].from);
        if (is_mark(nodes, units[u].from, "_add_batch_dim"))
            TS_TRY(write_slice(a, node, index, indent + 1));
        else if (lists[u].length)
            TS_TRY(write_kept(a, node, lists[u], indent + 1));
        else if (units[u].is_sliced)
            TS_TRY(fe_exported_write_range(a, graph, units[u].from, units[u].to, indent + 1, depth + 1));
    }
    for (size_t u = 0; u < count; u++)
        if (lists[u].length)
            TS_TRY(write_stacked(a, graph, json_array_get(nodes, units[u].from), lists[u], is_empty, indent));
    return NULL;
}

ts_status fe_exported_write_vmap(fe_archive *a, const json_t *graph, size_t from, size_t to, int indent, int depth,
                                 size_t *out_behind) {
    const json_t *nodes = json_object_get(graph, "nodes");
    size_t end = end_of_region(nodes, from, to), count = 0;
    *out_behind = end + 1;
    if (end == to)
        return fe_exported_bad("a region of vmap without an end");
    if (depth > 30)
        return fe_exported_bad("too deep regions of vmap");
    unit *units = TS_NEW_ARRAY(a->arena, unit, end - from);
    for (size_t i = from + 1; i < end; i = units[count++].to) {
        size_t behind = fe_exported_is_vmap(nodes, i) ? end_of_region(nodes, i, end) + 1 : i + 1;
        units[count] = (unit){.from = i, .to = behind < end ? behind : end};
    }
    sliced_names names = {.arena = a->arena};
    mark_sliced(nodes, units, count, &names);
    for (size_t u = 0; u < count; u++)
        if (!units[u].is_sliced)
            TS_TRY(fe_exported_write_range(a, graph, units[u].from, units[u].to, indent, depth + 1));
    const json_t *inputs = json_object_get(json_array_get(nodes, from), "inputs");
    return write_loop(a, graph, nodes, units, count, fe_exported_argument(inputs, 0), indent, depth);
}

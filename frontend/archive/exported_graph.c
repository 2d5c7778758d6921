/* frontend/archive/exported_graph.c - the nodes of an exported graph as statements. */
#include "frontend/archive/exported.h"

/* Begins a statement. */
ts_buffer *fe_exported_line(fe_archive *a, int indent) {
    for (int i = 0; i < indent; i++)
        ts_buffer_text(&a->exported->text, "  ");
    return &a->exported->text;
}

/* The name that an output gets, as the target of an assignment. */
ts_status fe_exported_write_target(fe_archive *a, const json_t *output, bool *out_is_list, ts_buffer *out) {
    const json_t *value = NULL;
    const char *which = fe_exported_choice(output, &value);
    *out_is_list = false;
    if (!which || strcmp(which, "as_none") == 0) {
        ts_buffer_str(out, fe_exported_fresh(a, "n"));
        return NULL;
    }
    if (strcmp(which, "as_optional_tensor") == 0) {
        which = fe_exported_choice(value, &value);
        if (!which || strcmp(which, "as_none") == 0) {
            ts_buffer_str(out, fe_exported_fresh(a, "n"));
            return NULL;
        }
    }
    if (strcmp(which, "as_tensor") == 0) {
        const char *name = json_string_value(json_object_get(value, "name"));
        if (!name)
            return fe_exported_bad("an output without a name");
        ts_buffer_str(out, *name ? fe_exported_name(a, name) : fe_exported_fresh(a, "n"));
        return NULL;
    }
    if (strcmp(which, "as_sym_int") == 0 || strcmp(which, "as_sym_bool") == 0 ||
        strcmp(which, "as_sym_float") == 0) {
        const char *name = json_string_value(json_object_get(value, "as_name"));
        ts_buffer_str(out, name ? fe_exported_name(a, name) : fe_exported_fresh(a, "n"));
        return NULL;
    }
    *out_is_list = strcmp(which, "as_tensors") == 0 && json_is_array(value);
    if (!*out_is_list)
        return ts_error_make(TS_ERR_UNSUPPORTED, "exported program: an output %.40s is not supported",
                             which);
    return NULL;
}

/* names = expression, whose value lies in `from`; a list is taken apart. */
static ts_status unpack_list(fe_archive *a, const json_t *tensors, ts_str from, int indent) {
    size_t count = json_array_size(tensors);
    if (!count)
        return NULL;
    ts_buffer *out = fe_exported_line(a, indent);
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_object_get(json_array_get(tensors, i), "name"));
        ts_buffer_str(out, name && *name ? fe_exported_name(a, name) : fe_exported_fresh(a, "n"));
        ts_buffer_text(out, ", ");
    }
    ts_buffer_text(out, "= ");
    ts_buffer_str(out, from);
    ts_buffer_char(out, '\n');
    return NULL;
}

/* Outputs of a node from the expression in `call`. */
static ts_status write_results(fe_archive *a, const json_t *outputs, const ts_buffer *call,
                               int indent) {
    size_t count = json_array_size(outputs);
    ts_str *names = TS_NEW_ARRAY(a->arena, ts_str, count + 1);
    bool *is_list = TS_NEW_ARRAY(a->arena, bool, count + 1);
    for (size_t i = 0; i < count; i++) {
        ts_buffer name = {0};
        ts_status status = fe_exported_write_target(a, json_array_get(outputs, i), &is_list[i], &name);
        names[i] = is_list[i] ? fe_exported_fresh(a, "l")
                              : ts_arena_str(a->arena, (ts_str){name.data ? name.data : "", name.length});
        ts_buffer_deinit(&name);
        TS_TRY(status);
    }
    ts_buffer *out = fe_exported_line(a, indent);
    for (size_t i = 0; i < count; i++) {
        ts_buffer_text(out, i ? ", " : "");
        ts_buffer_str(out, names[i]);
    }
    if (!count)
        ts_buffer_str(out, fe_exported_fresh(a, "n"));
    ts_buffer_text(out, " = ");
    ts_buffer_append(out, call->data, call->length);
    ts_buffer_char(out, '\n');
    for (size_t i = 0; i < count; i++)
        if (is_list[i]) {
            const json_t *value = NULL;
            fe_exported_choice(json_array_get(outputs, i), &value);
            TS_TRY(unpack_list(a, value, names[i], indent));
        }
    return NULL;
}

/* ---- functions on symbols ---- */

static const struct {
    const char *target, *text; /* text( or, with a blank before, written as it is */
} symbolic[] = {{"_operator.add", "torch.add"},     {"_operator.sub", "torch.sub"},
                {"_operator.mul", "torch.mul"},     {"_operator.truediv", "torch.div"},
                {"_operator.floordiv", "torch.floordiv"}, {"_operator.mod", "torch.remainder"},
                {"_operator.pow", "torch.pow"},     {"_operator.neg", "torch.neg"},
                {"_operator.eq", "torch.eq"},       {"_operator.ne", "torch.ne"},
                {"_operator.lt", "torch.lt"},       {"_operator.le", "torch.le"},
                {"_operator.gt", "torch.gt"},       {"_operator.ge", "torch.ge"},
                {"_operator.and_", "torch.__and__"}, {"_operator.or_", "torch.__or__"},
                {"_operator.not_", "torch.__not__"}, {"_operator.abs", "ops.prim.abs"},
                {"torch.sym_not", "torch.__not__"}, {"torch.sym_int", "int"},
                {"torch.sym_float", "float"},       {"torch.sym_max", "ops.prim.max"},
                {"torch.sym_min", "ops.prim.min"},  {"torch.sym_sqrt", "torch.sqrt"},
                {"torch._sym_sqrt", "torch.sqrt"},  {"math.ceil", "torch.ceil"},
                {"math.floor", "torch.floor"},      {"math.trunc", "int"},
                {"torch.sym_sum", "sum"},           {"torch.ops.aten.sym_size.int", "torch.size"},
                {"torch.ops.aten.sym_numel.default", "torch.numel"},
                {"torch.ops.aten.sym_stride.int", "torch.stride"},
                {"torch.ops.aten.sym_storage_offset.default", "torch.storage_offset"},
                {"torch.ops.aten._local_scalar_dense.default", "torch.item"},
                {"torch.ops.aten.fill_.Tensor", "torch.copy_"}, /* of one element: as a copy it is a value */
                {"torch.ops.prims.convert_element_type.default", "torch.to"}};

/* What only tells the compiler something. */
static bool is_hint(const char *target) {
    static const char *const hints[] = {
        "torch.ops.aten._assert_tensor_metadata", "torch.ops.aten.sym_constrain_range",
        "torch.ops.aten.sym_constrain_range_for_size"};
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        size_t n = strlen(hints[i]);
        if (strncmp(target, hints[i], n) == 0 && (target[n] == '.' || target[n] == 0))
            return true;
    }
    return false;
}

static ts_status write_arguments(fe_archive *a, const json_t *inputs, ts_buffer *out) {
    for (size_t i = 0; i < json_array_size(inputs); i++) {
        const json_t *input = json_array_get(inputs, i);
        const char *name = json_string_value(json_object_get(input, "name"));
        const json_t *kind = json_object_get(input, "kind");
        if (i)
            ts_buffer_text(out, ", ");
        /* Files without kinds name every argument. */
        bool is_named = name && fe_exported_is_identifier(name) && i && json_integer_value(kind) != 1;
        if (is_named)
            ts_buffer_format(out, "%s=", name);
        TS_TRY(fe_exported_write_argument(a, json_object_get(input, "arg"), out, NULL));
    }
    ts_buffer_char(out, ')');
    return NULL;
}

/* torch.ops.NAMESPACE.NAME.OVERLOAD as the text's ops.NAMESPACE.NAME.OVERLOAD. */
static ts_status operator_name(fe_archive *a, const char *target, ts_str *out) {
    static const char start[] = "torch.ops.";
    if (strncmp(target, start, sizeof start - 1) != 0 || strlen(target) > 200)
        return ts_error_make(TS_ERR_UNSUPPORTED, "exported program: the function %.80s is not "
                             "supported yet", target);
    const char *rest = target + sizeof start - 1;
    for (const char *p = rest; *p; p++)
        if (!(*p == '.' || *p == '_' || (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') ||
              (*p >= 'A' && *p <= 'Z')))
            return fe_exported_bad("an operator's name holds other than letters");
    ts_str name = ts_str_of(rest);
    if (ts_str_ends_with(name, ".default"))
        name.length -= 8;
    *out = ts_arena_format(a->arena, "ops.%.*s", (int)name.length, name.data);
    return NULL;
}

/* A call that is no graph's. */
static ts_status write_call(fe_archive *a, const char *target, const json_t *inputs, const json_t *outputs, int indent) {
    if (is_hint(target))
        return NULL;
    ts_buffer call = {0};
    ts_status status = NULL;
    if (strcmp(target, "torch.ops.aten._assert_scalar.default") == 0) {
        ts_buffer_text(&call, "if torch.__not__(bool(");
        status = fe_exported_write_argument(a, fe_exported_argument(inputs, 0), &call, NULL);
        ts_buffer_text(&call, ")):\n");
        ts_buffer_append(fe_exported_line(a, indent), call.data, call.length);
        call.length = 0;
        ts_buffer_text(&call, "ops.prim.RaiseException(");
        if (!status)
            status = fe_exported_write_argument(a, fe_exported_argument(inputs, 1), &call, NULL);
        ts_buffer_text(&call, ", \"builtins.RuntimeError\")\n");
        ts_buffer_append(fe_exported_line(a, indent + 1), call.data, call.length);
        ts_buffer_deinit(&call);
        return status;
    }
    if (strcmp(target, "_operator.getitem") == 0 && json_array_size(inputs) == 2) {
        status = fe_exported_write_argument(a, fe_exported_argument(inputs, 0), &call, NULL);
        ts_buffer_char(&call, '[');
        if (!status)
            status = fe_exported_write_argument(a, fe_exported_argument(inputs, 1), &call, NULL);
        ts_buffer_char(&call, ']');
    } else {
        ts_str name = {0};
        for (size_t i = 0; i < sizeof symbolic / sizeof *symbolic && !name.data; i++)
            if (strcmp(target, symbolic[i].target) == 0)
                name = ts_str_of(symbolic[i].text);
        const json_t *ignored = NULL;
        const char *gives = fe_exported_choice(json_array_get(outputs, 0), &ignored);
        if (strcmp(target, "_operator.pow") == 0 && gives && strcmp(gives, "as_sym_int") == 0)
            name = TS_STR("ops.aten.pow.int_to_int"); /* torch.pow of ints is a float */
        if (!name.data)
            status = operator_name(a, target, &name);
        ts_buffer_str(&call, name);
        ts_buffer_char(&call, '(');
        if (!status)
            status = write_arguments(a, inputs, &call);
    }
    if (!status)
        status = write_results(a, outputs, &call, indent);
    ts_buffer_deinit(&call);
    return status;
}

static json_t *without_first(const json_t *list, size_t n) {
    json_t *rest = json_array();
    for (size_t i = n; i < json_array_size(list); i++)
        json_array_append(rest, json_array_get(list, i));
    return rest;
}

/* with_effects(token, operator, arguments...) -> token, results...: the order of statements is the order of
 * effects, so tokens are nothing. */
static ts_status write_with_effects(fe_archive *a, const json_t *inputs, const json_t *outputs, int indent) {
    const json_t *value = NULL, *token = NULL;
    const char *which = fe_exported_choice(fe_exported_argument(inputs, 1), &value);
    const char *target = which && strcmp(which, "as_operator") == 0 ? json_string_value(value) : NULL;
    if (!target)
        return fe_exported_bad("with_effects: expected an operator");
    fe_exported_choice(json_array_get(outputs, 0), &token);
    const char *name = json_string_value(json_object_get(token, "name"));
    if (name)
        fe_exported_bind_token(a, name);
    json_t *arguments = without_first(inputs, 2), *results = without_first(outputs, 1);
    ts_status status = write_call(a, target, arguments, results, indent);
    json_decref(arguments);
    json_decref(results);
    return status;
}

static ts_status write_node(fe_archive *a, const json_t *node, int indent, int depth) {
    static const char higher[] = "torch.ops.higher_order.";
    const char *target = json_string_value(json_object_get(node, "target"));
    const json_t *inputs = NULL, *outputs = NULL;
    size_t count = 0;
    if (!target)
        return fe_exported_bad("a node without a target");
    TS_TRY(fe_exported_list(node, "inputs", &inputs, &count));
    TS_TRY(fe_exported_list(node, "outputs", &outputs, &count));
    if (strcmp(target, "torch.ops.higher_order.with_effects") == 0)
        return write_with_effects(a, inputs, outputs, indent);
    if (strncmp(target, higher, sizeof higher - 1) == 0)
        return fe_exported_write_higher_order(a, node, target + sizeof higher - 1, indent, depth);
    return write_call(a, target, inputs, outputs, indent);
}

ts_status fe_exported_write_range(fe_archive *a, const json_t *graph, size_t from, size_t to, int indent, int depth) {
    const json_t *nodes = json_object_get(graph, "nodes");
    for (size_t i = from, behind = from; i < to; i = behind) {
        behind = i + 1;
        if (fe_exported_is_vmap(nodes, i))
            TS_TRY(fe_exported_write_vmap(a, graph, i, to, indent, depth, &behind));
        else if (!fe_exported_is_vmap_hint(nodes, i))
            TS_TRY(write_node(a, json_array_get(nodes, i), indent, depth));
        if (a->exported->text.length > FE_ARCHIVE_MAX_CODE)
            return fe_exported_bad("more than %d bytes of text", FE_ARCHIVE_MAX_CODE);
    }
    return NULL;
}

ts_status fe_exported_write_nodes(fe_archive *a, const json_t *graph, int indent, int depth) {
    const json_t *nodes = NULL;
    size_t count = 0;
    TS_TRY(fe_exported_list(graph, "nodes", &nodes, &count));
    return fe_exported_write_range(a, graph, 0, count, indent, depth);
}

/* frontend/archive/exported_text.c - an exported program as a class with a forward: inputs and results
 * in the structures that the caller gave and gets, guards, weights as attributes. */
#include "frontend/archive/exported.h"

#include <inttypes.h>

/* The leaves of the inputs or of the results, in order. */
typedef struct leaf {
    const json_t *argument; /* or NULL */
    const json_t *constant; /* an input that the program was made for: {"as_int": 2} */
    ts_str name;            /* of an input */
} leaf;

typedef struct leaves {
    leaf *items;
    size_t count, capacity, at;
} leaves;

static bool is_leaf(const json_t *spec) { return json_is_null(json_object_get(spec, "type")); }

static const char *spec_type(const json_t *spec) {
    const char *type = json_string_value(json_object_get(spec, "type"));
    return type ? type : "";
}

static const json_t *children_of(const json_t *spec) {
    return json_object_get(spec, "children_spec");
}

typedef enum form { LEAF, TUPLE, LIST, DICT } form;

/* Named tuples are tuples; what has its keys for a context is a dict, as ordered dicts and the
 * outputs of transformers are; all else is a tuple of its parts. */
static ts_status shape_of(fe_archive *a, const json_t *spec, form *out, json_t **out_keys) {
    *out_keys = NULL;
    *out = LEAF;
    if (!json_is_object(spec))
        return fe_exported_bad("a structure that is no object");
    if (is_leaf(spec))
        return NULL;
    const char *context = json_string_value(json_object_get(spec, "context"));
    size_t count = json_array_size(children_of(spec));
    *out = strcmp(spec_type(spec), "builtins.list") == 0 ? LIST : TUPLE;
    if (*out == LIST || strcmp(spec_type(spec), "builtins.tuple") == 0 || !context ||
        (*context != '[' && *context != '{'))
        return NULL;
    json_t *keys = NULL;
    TS_TRY(fe_exported_parse(a->arena, ts_str_of(context), &keys));
    json_t *list = json_is_object(keys) ? json_object_get(keys, "dict_context") : keys;
    if (json_array_size(list) == 2 && json_is_array(json_array_get(list, 0)) &&
        json_is_array(json_array_get(list, 1)))
        list = json_array_get(list, 0); /* a dataclass: its fields, and those that hold None */
    bool fits = json_is_array(list) && json_array_size(list) == count;
    for (size_t i = 0; fits && i < count; i++)
        fits = json_is_string(json_array_get(list, i)) || json_is_integer(json_array_get(list, i));
    if (fits) {
        *out = DICT;
        *out_keys = json_incref(list);
    }
    json_decref(keys);
    return NULL;
}

static const char *constant_type(const json_t *constant) {
    const json_t *value = NULL;
    const char *which = fe_exported_choice(constant, &value);
    return !which || strcmp(which, "as_none") == 0 ? "NoneType"
           : strcmp(which, "as_int") == 0          ? "int"
           : strcmp(which, "as_float") == 0        ? "float"
           : strcmp(which, "as_bool") == 0         ? "bool"
                                                   : "str";
}

static ts_status leaf_type(const leaf *l, ts_str *out) {
    const json_t *value = NULL;
    const char *which = l->argument ? fe_exported_choice(l->argument, &value) : NULL;
    *out = ts_str_of(l->argument ? "NoneType" : constant_type(l->constant));
    if (which && (strcmp(which, "as_tensor") == 0 || strcmp(which, "as_optional_tensor") == 0))
        *out = TS_STR("Tensor");
    else if (which && (strcmp(which, "as_sym_int") == 0 || strcmp(which, "as_int") == 0))
        *out = TS_STR("int");
    else if (which && (strcmp(which, "as_sym_float") == 0 || strcmp(which, "as_float") == 0))
        *out = TS_STR("float");
    else if (which && (strcmp(which, "as_sym_bool") == 0 || strcmp(which, "as_bool") == 0))
        *out = TS_STR("bool");
    else if (which && strcmp(which, "as_string") == 0)
        *out = TS_STR("str");
    else if (which && strcmp(which, "as_none") != 0)
        return ts_error_make(TS_ERR_UNSUPPORTED, "exported program: an input or result %.40s is not "
                             "supported", which);
    return NULL;
}

/* The annotation of a structure; moves over its leaves. Equal parts make a list or dict of their type,
 * others one of Any. Depth is bounded by the JSON's. */
static ts_status type_of(fe_archive *a, const json_t *spec, leaves *l, ts_str *out) {
    form shape;
    json_t *keys = NULL;
    TS_TRY(shape_of(a, spec, &shape, &keys));
    bool int_keys = keys && json_array_size(keys) && json_is_integer(json_array_get(keys, 0));
    json_decref(keys);
    if (shape == LEAF) {
        if (l->at >= l->count)
            return fe_exported_bad("a structure with more parts than there are values");
        return leaf_type(&l->items[l->at++], out);
    }
    const json_t *children = children_of(spec);
    size_t count = json_array_size(children);
    ts_buffer all = {0};
    ts_str first = TS_STR("Tensor");
    bool is_equal = true;
    ts_status status = NULL;
    for (size_t i = 0; i < count && !status; i++) {
        ts_str type = {0};
        status = type_of(a, json_array_get(children, i), l, &type);
        first = i ? first : type;
        is_equal = is_equal && ts_str_equal(first, type);
        ts_buffer_text(&all, i ? ", " : "");
        ts_buffer_str(&all, type);
    }
    ts_str element = is_equal ? first : TS_STR("Any");
    if (shape == TUPLE)
        *out = count ? ts_arena_format(a->arena, "Tuple[%.*s]", (int)all.length, all.data)
                     : TS_STR("Tuple[()]");
    else
        *out = ts_arena_format(a->arena, shape == LIST ? "List[%.*s]" : int_keys ? "Dict[int, %.*s]"
                                                                                 : "Dict[str, %.*s]",
                               (int)element.length, element.data);
    ts_buffer_deinit(&all);
    return status;
}

static void write_key(const json_t *key, ts_buffer *out) {
    const char *text = json_string_value(key);
    if (!text) {
        ts_buffer_format(out, "%" JSON_INTEGER_FORMAT, json_integer_value(key));
        return;
    }
    ts_buffer_char(out, '"');
    for (const char *p = text; *p; p++)
        if (*p == '"' || *p == '\\')
            ts_buffer_format(out, "\\%c", *p);
        else if ((unsigned char)*p < 32)
            ts_buffer_format(out, "\\x%02x", (unsigned)(unsigned char)*p);
        else
            ts_buffer_char(out, *p);
    ts_buffer_char(out, '"');
}

/* ---- inputs ---- */

/* A constant that the caller gives again must be the same. */
static void write_constant_guard(fe_archive *a, const leaf *l, ts_str expression) {
    ts_buffer *out = &a->exported->text, value = {0};
    ts_str type = ts_str_of(constant_type(l->constant));
    ts_status status = fe_exported_write_argument(a, l->constant, &value, NULL);
    if (status || ts_str_is(type, "NoneType")) {
        ts_status_release(status);
    } else {
        ts_buffer_format(out, "    if torch.ne(%.*s, %.*s):\n      ops.prim.RaiseException(\"the program "
                         "was exported for another value of %.*s\", \"builtins.RuntimeError\")\n",
                         (int)expression.length, expression.data, (int)value.length, value.data,
                         (int)l->name.length, l->name.data);
    }
    ts_buffer_deinit(&value);
}

/* Names for the leaves below an expression. is_any: a part whose type the container forgot. */
static ts_status bind(fe_archive *a, const json_t *spec, leaves *l, ts_str expression, ts_str path,
                      bool is_any) {
    form shape;
    json_t *keys = NULL;
    ts_status status = shape_of(a, spec, &shape, &keys);
    if (!status && is_any) {
        leaves ahead = *l;
        ts_str type = {0};
        status = type_of(a, spec, &ahead, &type);
        expression = ts_arena_format(a->arena, "unchecked_cast(%.*s, %.*s)", (int)type.length, type.data,
                                     (int)expression.length, expression.data);
    }
    if (!status && shape == LEAF) {
        leaf *one = &l->items[l->at++];
        ts_str name = expression;
        if (memchr(name.data, '[', name.length) || memchr(name.data, '(', name.length)) {
            name = fe_exported_fresh(a, "in");
            ts_buffer_format(&a->exported->text, "    %.*s = %.*s\n", (int)name.length, name.data,
                             (int)expression.length, expression.data);
        }
        fe_exported_path(a, path, name);
        if (one->argument)
            fe_exported_bind(a, one->name, name);
        else
            write_constant_guard(a, one, name);
    }
    leaves ahead = *l;
    ts_str type = {0};
    if (!status && shape != LEAF)
        status = type_of(a, spec, &ahead, &type);
    bool forgets = shape != TUPLE && shape != LEAF && ts_str_ends_with(type, "Any]");
    for (size_t i = 0; !status && shape != LEAF && i < json_array_size(children_of(spec)); i++) {
        ts_buffer part = {0};
        ts_buffer_format(&part, "(%.*s)[", (int)expression.length, expression.data);
        if (keys)
            write_key(json_array_get(keys, i), &part);
        else
            ts_buffer_format(&part, "%zu", i);
        ts_buffer_char(&part, ']');
        ts_str at = ts_arena_str(a->arena, (ts_str){part.data ? part.data : "", part.length});
        ts_buffer_deinit(&part);
        const char *key = keys ? json_string_value(json_array_get(keys, i)) : NULL;
        ts_str below = key ? ts_arena_format(a->arena, "%.*s['%s']", (int)path.length, path.data, key)
                           : ts_arena_format(a->arena, "%.*s[%zu]", (int)path.length, path.data, i);
        status = bind(a, json_array_get(children_of(spec), i), l, at, below, forgets);
    }
    json_decref(keys);
    return status;
}

/* float32[s77,4], as far as the graph says. */
static bool write_tensor_type(const fe_archive *a, const char *name, ts_buffer *out) {
    const json_t *graph = json_object_get(json_object_get(a->exported->root, "graph_module"), "graph");
    const json_t *meta = json_object_get(json_object_get(graph, "tensor_values"), name);
    const json_t *sizes = json_object_get(meta, "sizes");
    rt_dtype dtype = fe_exported_dtype(json_object_get(meta, "dtype"));
    if (dtype == RT_DTYPE_UNKNOWN || !json_is_array(sizes))
        return false;
    ts_buffer_format(out, "%s[", rt_dtype_name(dtype));
    for (size_t i = 0; i < json_array_size(sizes); i++) {
        const json_t *value = NULL;
        const char *which = fe_exported_choice(json_array_get(sizes, i), &value);
        const char *text = json_string_value(json_object_get(value, "expr_str"));
        ts_str symbol = text ? fe_exported_symbol(text) : (ts_str){0};
        ts_buffer_text(out, i ? "," : "");
        if (which && strcmp(which, "as_int") == 0 && json_integer_value(value) >= 0)
            ts_buffer_format(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        else if (symbol.length)
            ts_buffer_str(out, symbol);
        else
            ts_buffer_char(out, '?');
    }
    ts_buffer_char(out, ']');
    return true;
}

static void declare_input(fe_archive *a, ts_str name, const leaf *l) {
    fe_exported *e = a->exported;
    const json_t *value = NULL;
    const char *which = l->argument ? fe_exported_choice(l->argument, &value) : NULL;
    const char *tensor = json_string_value(json_object_get(value, "name"));
    ts_buffer type = {0};
    if (which && strcmp(which, "as_tensor") == 0 && tensor && write_tensor_type(a, tensor, &type)) {
        fe_input_type in = {.entry = TS_STR("forward"),
                            .name = name,
                            .type_text = ts_arena_str(a->arena, (ts_str){type.data, type.length})};
        TS_APPEND(a->arena, e->inputs, e->input_count, e->input_capacity, in);
    }
    ts_buffer_deinit(&type);
}

static ts_str parameter_name(fe_archive *a, const json_t *names, const json_t *key, size_t i) {
    const char *name = json_string_value(key);
    if (!name)
        name = json_string_value(json_array_get(names, i));
    ts_str made = name ? fe_exported_name(a, name) : (ts_str){0};
    if (name && ts_str_is(made, name))
        return made;
    return ts_arena_format(a->arena, "arg%zu", i);
}

typedef struct parameter {
    const json_t *spec;
    ts_str name;
} parameter;

/* One argument of forward for each part of (args, kwargs). */
static ts_status write_parameters(fe_archive *a, const json_t *spec, const json_t *names, leaves *l) {
    fe_exported *e = a->exported;
    const json_t *sides = children_of(spec);
    leaves declared = *l;
    ts_buffer_text(&e->text, "  def forward(self");
    if (json_array_size(sides) != 2)
        return fe_exported_bad("in_spec: expected arguments and keyword arguments");
    parameter *parts = TS_NEW_ARRAY(a->arena, parameter, l->count + 1000);
    size_t count = 0;
    for (size_t side = 0; side < 2; side++) {
        form shape;
        json_t *keys = NULL;
        const json_t *spec_ = json_array_get(sides, side);
        TS_TRY(shape_of(a, spec_, &shape, &keys));
        ts_status status = NULL;
        for (size_t i = 0; i < json_array_size(children_of(spec_)) && !status; i++) {
            ts_str type = {0};
            const json_t *part = json_array_get(children_of(spec_), i);
            if (count >= l->count + 999) {
                status = fe_exported_bad("too many arguments");
                break;
            }
            parts[count].spec = part;
            parts[count].name = parameter_name(a, names, side ? json_array_get(keys, i) : NULL, count);
            const leaf *first = declared.at < declared.count ? &declared.items[declared.at] : NULL;
            status = type_of(a, part, &declared, &type);
            if (!status && is_leaf(part) && first)
                declare_input(a, parts[count].name, first);
            ts_buffer_format(&e->text, ", %.*s: %.*s", (int)parts[count].name.length, parts[count].name.data,
                             (int)type.length, type.data);
            count++;
        }
        json_decref(keys);
        TS_TRY(status);
    }
    if (declared.at != l->count)
        return fe_exported_bad("in_spec: %zu values, but %zu inputs", declared.at, l->count);
    ts_buffer_text(&e->text, ") -> ");
    e->body_at = e->text.length;
    for (size_t i = 0; i < count; i++)
        TS_TRY(bind(a, parts[i].spec, l, parts[i].name,
                    ts_arena_format(a->arena, "['%.*s']", (int)parts[i].name.length, parts[i].name.data), false));
    return NULL;
}

/* ---- results ---- */

static ts_status write_result(fe_archive *a, const json_t *spec, leaves *l, ts_buffer *out) {
    form shape;
    json_t *keys = NULL;
    ts_status status = shape_of(a, spec, &shape, &keys);
    if (!status && shape == LEAF) {
        if (l->at >= l->count)
            status = fe_exported_bad("out_spec: more parts than there are results");
        else
            status = fe_exported_write_argument(a, l->items[l->at].argument, out, NULL);
        l->at++;
        return status;
    }
    ts_str type = {0};
    leaves ahead = *l;
    if (!status)
        status = type_of(a, spec, &ahead, &type);
    const json_t *children = children_of(spec);
    bool annotated = shape != TUPLE;
    if (annotated)
        ts_buffer_format(out, "annotate(%.*s, ", (int)type.length, type.data ? type.data : "");
    ts_buffer_char(out, shape == TUPLE ? '(' : shape == LIST ? '[' : '{');
    for (size_t i = 0; !status && i < json_array_size(children); i++) {
        if (i && shape != TUPLE)
            ts_buffer_text(out, ", ");
        if (keys) {
            write_key(json_array_get(keys, i), out);
            ts_buffer_text(out, ": ");
        }
        status = write_result(a, json_array_get(children, i), l, out);
        if (shape == TUPLE)
            ts_buffer_text(out, ", ");
    }
    ts_buffer_text(out, shape == TUPLE ? ")" : shape == LIST ? "]" : "}");
    if (annotated)
        ts_buffer_char(out, ')');
    json_decref(keys);
    return status;
}

/* ---- the signature ---- */

static ts_status add_field(fe_archive *a, const json_t *spec, const char *weight_key, bool is_constant) {
    fe_exported *e = a->exported;
    const json_t *argument = json_object_get(spec, "arg");
    const char *name = json_string_value(json_object_get(argument, "name"));
    const char *weight = json_string_value(json_object_get(spec, weight_key));
    if (!name || !weight)
        return fe_exported_bad("an input without a name");
    fe_exported_field f = {.weight = ts_str_of(weight), .is_constant = is_constant};
    f.name = fe_exported_name(a, name);
    for (size_t i = 0; i < f.name.length; i++)
        if (f.name.data[i] == '.')
            return fe_exported_bad("an input whose name holds a dot");
    fe_exported_bind(a, ts_str_of(name), ts_arena_format(a->arena, "self.%.*s", (int)f.name.length, f.name.data));
    TS_APPEND(a->arena, e->fields, e->field_count, e->field_capacity, f);
    ts_str *kept = TS_NEW(a->arena, ts_str);
    *kept = f.name;
    fe_map_set(a->arena, &e->weights, f.weight, kept);
    return NULL;
}

static ts_status read_inputs(fe_archive *a, const json_t *signature, leaves *out) {
    const json_t *list = NULL;
    size_t count = 0;
    TS_TRY(fe_exported_list(signature, "input_specs", &list, &count));
    for (size_t i = 0; i < count; i++) {
        const json_t *spec = NULL;
        const char *which = fe_exported_choice(json_array_get(list, i), &spec);
        if (!which)
            return fe_exported_bad("an input of no kind");
        if (strcmp(which, "parameter") == 0) {
            TS_TRY(add_field(a, spec, "parameter_name", false));
        } else if (strcmp(which, "buffer") == 0) {
            const json_t *persistent = json_object_get(spec, "persistent");
            TS_TRY(add_field(a, spec, "buffer_name", json_is_false(persistent)));
        } else if (strcmp(which, "tensor_constant") == 0) {
            TS_TRY(add_field(a, spec, "tensor_constant_name", true));
        } else if (strcmp(which, "user_input") == 0) {
            leaf l = {.argument = json_object_get(spec, "arg")};
            const json_t *value = NULL;
            const char *kind = fe_exported_choice(l.argument, &value);
            const char *name = json_string_value(json_object_get(value, "name"));
            name = name ? name : json_string_value(json_object_get(value, "as_name"));
            if (kind && !name) /* a plain number or string stands for itself */
                l = (leaf){.constant = l.argument};
            l.name = ts_str_of(name ? name : "an argument");
            TS_APPEND(a->arena, out->items, out->count, out->capacity, l);
        } else if (strcmp(which, "token") == 0) {
            const char *name = json_string_value(json_object_get(json_object_get(spec, "arg"), "name"));
            fe_exported_bind_token(a, name ? name : "");
        } else if (strcmp(which, "constant_input") == 0) {
            const char *name = json_string_value(json_object_get(spec, "name"));
            leaf l = {.constant = json_object_get(spec, "value"), .name = ts_str_of(name ? name : "an argument")};
            TS_APPEND(a->arena, out->items, out->count, out->capacity, l);
        } else {
            return ts_error_make(TS_ERR_UNSUPPORTED, "exported program: an input of kind %.40s is not "
                                 "supported", which);
        }
    }
    return NULL;
}

/* What forward writes back at its end, and the results that the caller gets. */
static ts_status read_outputs(fe_archive *a, const json_t *signature, leaves *out) {
    const json_t *list = NULL;
    size_t count = 0;
    TS_TRY(fe_exported_list(signature, "output_specs", &list, &count));
    for (size_t i = 0; i < count; i++) {
        const json_t *spec = NULL;
        const char *which = fe_exported_choice(json_array_get(list, i), &spec);
        if (which && strcmp(which, "token") == 0)
            continue;
        bool is_buffer = which && strcmp(which, "buffer_mutation") == 0;
        bool is_parameter = which && strcmp(which, "parameter_mutation") == 0;
        bool is_input = which && strcmp(which, "user_input_mutation") == 0;
        if (which && (strcmp(which, "user_output") == 0 || strcmp(which, "loss_output") == 0)) {
            leaf l = {.argument = json_object_get(spec, "arg")};
            TS_APPEND(a->arena, out->items, out->count, out->capacity, l);
            continue;
        }
        if (!is_buffer && !is_parameter && !is_input)
            return ts_error_make(TS_ERR_UNSUPPORTED, "exported program: an output of kind %.40s is not "
                                 "supported", which ? which : "none");
        const char *value = json_string_value(json_object_get(json_object_get(spec, "arg"), "name"));
        const char *name = json_string_value(json_object_get(
            spec, is_buffer ? "buffer_name" : is_parameter ? "parameter_name" : "user_input_name"));
        ts_str target = {0};
        const ts_str *field = name && !is_input ? fe_map_get(&a->exported->weights, ts_str_of(name)) : NULL;
        if (field)
            target = ts_arena_format(a->arena, "self.%.*s", (int)field->length, field->data);
        if (is_input && name)
            target = fe_exported_name(a, name);
        if (!value || !target.length)
            return fe_exported_bad("a written tensor that is none of the program's");
        ts_str from = fe_exported_name(a, value), kept = fe_exported_fresh(a, "m");
        ts_buffer_format(&a->exported->text, "    %.*s = torch.copy_(%.*s, %.*s)\n", (int)kept.length,
                         kept.data, (int)target.length, target.data, (int)from.length, from.data);
    }
    return NULL;
}

/* "[1, {...}]": a version and the structure. */
static ts_status read_spec(fe_archive *a, const json_t *signature, const char *key, json_t **out_owner,
                           const json_t **out) {
    const char *text = json_string_value(json_object_get(signature, key));
    *out_owner = NULL;
    if (!text)
        return fe_exported_bad("%s is missing", key);
    TS_TRY(fe_exported_parse(a->arena, ts_str_of(text), out_owner));
    *out = json_is_array(*out_owner) ? json_array_get(*out_owner, 1) : *out_owner;
    return json_is_object(*out) ? NULL : fe_exported_bad("%s: expected a structure", key);
}

static ts_status write_class(fe_archive *a, const json_t *module, json_t *const specs[2],
                             const json_t *in_spec, const json_t *out_spec, const json_t *call) {
    (void)specs;
    fe_exported *e = a->exported;
    const json_t *signature = json_object_get(module, "signature");
    const json_t *graph = json_object_get(module, "graph");
    leaves inputs = {0}, outputs = {0};
    TS_TRY(read_inputs(a, signature, &inputs));
    ts_buffer_text(&e->text, "class Program(Module):\n");
    for (size_t i = 0; i < e->field_count; i++)
        ts_buffer_format(&e->text, "  %.*s : Tensor\n", (int)e->fields[i].name.length, e->fields[i].name.data);
    TS_TRY(write_parameters(a, in_spec, json_object_get(call, "forward_arg_names"), &inputs));
    for (size_t i = 0; i < inputs.count; i++)
        if (inputs.items[i].argument)
            fe_exported_bind_sizes(a, inputs.items[i].argument);
    for (size_t i = 0; i < inputs.count; i++)
        if (inputs.items[i].argument)
            fe_exported_write_guards(a, inputs.items[i].argument);
    TS_TRY(fe_exported_write_conditions(a));
    TS_TRY(fe_exported_write_nodes(a, graph, 2, 0));
    TS_TRY(read_outputs(a, signature, &outputs));
    ts_buffer result = {0};
    ts_str type = {0};
    leaves ahead = outputs;
    ts_status status = type_of(a, out_spec, &ahead, &type);
    if (!status)
        status = write_result(a, out_spec, &outputs, &result);
    if (!status && outputs.at != outputs.count)
        status = fe_exported_bad("out_spec: %zu values, but %zu results", outputs.at, outputs.count);
    if (!status) { /* the result's type goes before the body */
        ts_buffer whole = {0};
        ts_buffer_append(&whole, e->functions.data ? e->functions.data : "", e->functions.length);
        ts_buffer_append(&whole, e->text.data, e->body_at);
        ts_buffer_str(&whole, type);
        ts_buffer_text(&whole, ":\n");
        ts_buffer_append(&whole, e->text.data + e->body_at, e->text.length - e->body_at);
        ts_buffer_text(&whole, "    return ");
        ts_buffer_append(&whole, result.data ? result.data : "None", result.data ? result.length : 4);
        ts_buffer_char(&whole, '\n');
        ts_buffer_deinit(&e->text);
        e->text = whole;
    }
    ts_buffer_deinit(&result);
    return status;
}

ts_status fe_exported_write(fe_archive *a) {
    fe_exported *e = a->exported;
    const json_t *module = json_object_get(e->root, "graph_module"), *calls = NULL;
    e->names = TS_NEW(a->arena, fe_map);
    size_t count = 0;
    TS_TRY(fe_exported_list(module, "module_call_graph", &calls, &count));
    const json_t *call = json_object_get(json_array_get(calls, 0), "signature");
    json_t *owners[2] = {NULL, NULL};
    const json_t *in_spec = NULL, *out_spec = NULL;
    ts_status status = read_spec(a, call, "in_spec", &owners[0], &in_spec);
    if (!status)
        status = read_spec(a, call, "out_spec", &owners[1], &out_spec);
    if (!status)
        status = write_class(a, module, owners, in_spec, out_spec, call);
    json_decref(owners[0]);
    json_decref(owners[1]);
    return status;
}

/* frontend/archive/exported_graph.c - the nodes of an exported graph as statements. */
#include "frontend/archive/exported.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* ---- names ---- */

static bool is_identifier(const char *s) {
    for (size_t i = 0; s[i]; i++) {
        char c = s[i];
        bool is_letter = c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(i && c >= '0' && c <= '9'))
            return false;
    }
    return s[0] != 0;
}

/* Names with a meaning in the text. */
static bool is_reserved(const char *s) {
    static const char *const words[] = {
        "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class",
        "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if",
        "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try",
        "while", "with", "yield", "match", "case", "torch", "ops", "self", "CONSTANTS", "annotate",
        "uninitialized", "unchecked_cast", "int", "float", "bool", "str", "range", "len", "inf",
        "nan", "infj", "nanj", "getattr", "isinstance", "print", "fork", "sorted", "hash", "min",
        "max", "sum", "abs", "list", "dict", "tuple", "type", "Tensor", "List", "Dict", "Optional",
        "Tuple", "Any", "number"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(s, words[i]) == 0)
            return true;
    return false;
}

void fe_exported_bind(fe_archive *a, ts_str name, ts_str expression) {
    ts_str *kept = TS_NEW(a->arena, ts_str);
    *kept = expression;
    fe_map_set(a->arena, a->exported->names, ts_arena_str(a->arena, name), kept);
}

ts_str fe_exported_fresh(fe_archive *a, const char *stem) {
    return ts_arena_format(a->arena, "_%s%zu", stem, a->exported->temporary_count++);
}

ts_str fe_exported_name(fe_archive *a, const char *name) {
    ts_str key = ts_str_of(name);
    const ts_str *bound = fe_map_get(a->exported->names, key);
    if (bound)
        return *bound;
    bool fits = is_identifier(name) && !is_reserved(name) && strncmp(name, "__", 2) != 0;
    ts_str made = fits ? ts_arena_str(a->arena, key) : fe_exported_fresh(a, "v");
    fe_exported_bind(a, key, made);
    return made;
}

/* ---- arguments ---- */

static void write_float(double f, ts_buffer *out) {
    char text[40];
    if (isnan(f)) {
        ts_buffer_text(out, "nan");
    } else if (isinf(f)) {
        ts_buffer_text(out, f < 0 ? "-inf" : "inf");
    } else {
        snprintf(text, sizeof text, "%.17g", f);
        ts_buffer_text(out, text);
        if (!strpbrk(text, ".e"))
            ts_buffer_char(out, '.');
    }
}

static void write_string(ts_str s, ts_buffer *out) {
    ts_buffer_char(out, '"');
    for (size_t i = 0; i < s.length; i++) {
        unsigned char c = (unsigned char)s.data[i];
        if (c == '"' || c == '\\')
            ts_buffer_format(out, "\\%c", c);
        else if (c < 32 || c == 127)
            ts_buffer_format(out, "\\x%02x", c);
        else
            ts_buffer_char(out, (char)c);
    }
    ts_buffer_char(out, '"');
}

static bool read_float(const json_t *json, double *out) {
    const char *word = json_string_value(json);
    if (word)
        *out = strcmp(word, "Infinity") == 0 ? INFINITY : strcmp(word, "-Infinity") == 0 ? -INFINITY : NAN;
    else
        *out = json_number_value(json);
    return word || json_is_number(json);
}

/* {"name": ...} */
static ts_status write_named(fe_archive *a, const json_t *json, ts_buffer *out) {
    const char *name = json_string_value(json_object_get(json, "name"));
    if (!name)
        return fe_exported_bad("a tensor without a name");
    ts_buffer_str(out, fe_exported_name(a, name));
    return NULL;
}

typedef enum element { INT, FLOAT, BOOL, STRING, TENSOR, OPTIONAL_TENSOR, SYMBOL } element;

/* One plain value, or a symbolic one: {"as_name": ...} or {"as_int": ...}. */
static ts_status write_element(fe_archive *a, element kind, const json_t *json, ts_buffer *out) {
    const json_t *value = NULL;
    const char *which;
    double f;
    switch (kind) {
    case INT:
        if (!json_is_integer(json))
            return fe_exported_bad("expected an int");
        ts_buffer_format(out, "%" JSON_INTEGER_FORMAT, json_integer_value(json));
        return NULL;
    case FLOAT:
        if (!read_float(json, &f))
            return fe_exported_bad("expected a float");
        write_float(f, out);
        return NULL;
    case BOOL:
        if (!json_is_boolean(json))
            return fe_exported_bad("expected a bool");
        ts_buffer_text(out, json_is_true(json) ? "True" : "False");
        return NULL;
    case STRING:
        if (!json_is_string(json))
            return fe_exported_bad("expected a string");
        write_string((ts_str){json_string_value(json), json_string_length(json)}, out);
        return NULL;
    case TENSOR:
        return write_named(a, json, out);
    case OPTIONAL_TENSOR:
        which = fe_exported_choice(json, &value);
        if (which && strcmp(which, "as_tensor") == 0)
            return write_named(a, value, out);
        ts_buffer_text(out, "None");
        return NULL;
    case SYMBOL:
        which = fe_exported_choice(json, &value);
        if (which && strcmp(which, "as_name") == 0 && json_is_string(value)) {
            ts_buffer_str(out, fe_exported_name(a, json_string_value(value)));
            return NULL;
        }
        return write_element(a, json_is_integer(value) ? INT : json_is_boolean(value) ? BOOL : FLOAT,
                             value, out);
    }
    return NULL;
}

static ts_status write_list(fe_archive *a, element kind, const char *type, const json_t *json,
                            ts_buffer *out) {
    if (!json_is_array(json))
        return fe_exported_bad("expected a list");
    size_t count = json_array_size(json);
    bool annotated = count == 0 || kind == OPTIONAL_TENSOR;
    if (annotated)
        ts_buffer_format(out, "annotate(List[%s], ", type);
    ts_buffer_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i)
            ts_buffer_text(out, ", ");
        TS_TRY(write_element(a, kind, json_array_get(json, i), out));
    }
    ts_buffer_text(out, annotated ? "])" : "]");
    return NULL;
}

static ts_status write_lists(fe_archive *a, element kind, const char *type, const json_t *json,
                             ts_buffer *out) {
    ts_buffer_char(out, '[');
    for (size_t i = 0; i < json_array_size(json); i++) {
        if (i)
            ts_buffer_text(out, ", ");
        TS_TRY(write_list(a, kind, type, json_array_get(json, i), out));
    }
    ts_buffer_char(out, ']');
    return NULL;
}

ts_status fe_exported_write_argument(fe_archive *a, const json_t *argument, ts_buffer *out,
                                     ts_str *out_type) {
    static const struct {
        const char *name;
        element kind;
        bool is_list;
        const char *type; /* of an element */
    } simple[] = {{"as_int", INT, false, "int"},
                  {"as_float", FLOAT, false, "float"},
                  {"as_bool", BOOL, false, "bool"},
                  {"as_string", STRING, false, "str"},
                  {"as_tensor", TENSOR, false, "Tensor"},
                  {"as_sym_int", SYMBOL, false, "int"},
                  {"as_sym_float", SYMBOL, false, "float"},
                  {"as_sym_bool", SYMBOL, false, "bool"},
                  {"as_optional_tensor", OPTIONAL_TENSOR, false, "Optional[Tensor]"},
                  {"as_ints", INT, true, "int"},
                  {"as_floats", FLOAT, true, "float"},
                  {"as_bools", BOOL, true, "bool"},
                  {"as_strings", STRING, true, "str"},
                  {"as_tensors", TENSOR, true, "Tensor"},
                  {"as_optional_tensors", OPTIONAL_TENSOR, true, "Optional[Tensor]"},
                  {"as_sym_ints", SYMBOL, true, "int"},
                  {"as_sym_floats", SYMBOL, true, "float"},
                  {"as_sym_bools", SYMBOL, true, "bool"}};
    const json_t *value = NULL;
    const char *which = fe_exported_choice(argument, &value);
    ts_str ignored;
    out_type = out_type ? out_type : &ignored;
    if (!which || strcmp(which, "as_none") == 0) {
        *out_type = TS_STR("NoneType");
        ts_buffer_text(out, "None");
        return NULL;
    }
    for (size_t i = 0; i < sizeof simple / sizeof *simple; i++) {
        if (strcmp(which, simple[i].name) != 0)
            continue;
        *out_type = simple[i].is_list ? ts_arena_format(a->arena, "List[%s]", simple[i].type)
                                      : ts_str_of(simple[i].type);
        return simple[i].is_list ? write_list(a, simple[i].kind, simple[i].type, value, out)
                                 : write_element(a, simple[i].kind, value, out);
    }
    *out_type = TS_STR("int");
    if (strcmp(which, "as_scalar_type") == 0) {
        rt_dtype dtype = fe_exported_dtype(value);
        if (dtype == RT_DTYPE_UNKNOWN)
            return ts_error_make(TS_ERR_UNSUPPORTED, "exported program: dtype %d is not supported",
                                 (int)json_integer_value(value));
        ts_buffer_format(out, "%d", (int)dtype);
        return NULL;
    }
    if (strcmp(which, "as_memory_format") == 0) { /* unknown, contiguous, channels last (2d, 3d), preserve */
        static const char formats[] = {'0', '0', '2', '3', '1'};
        static const char *const names[] = {"Unknown", "ContiguousFormat", "ChannelsLast",
                                            "ChannelsLast3d", "PreserveFormat"};
        json_int_t i = json_integer_value(value);
        for (size_t n = 0; json_is_string(value) && n < 5; n++)
            i = strcmp(json_string_value(value), names[n]) == 0 ? (json_int_t)n : i;
        ts_buffer_char(out, i >= 0 && i < 5 ? formats[i] : '0');
        return NULL;
    }
    if (strcmp(which, "as_layout") == 0) {
        bool is_strided = json_is_string(value) ? strcmp(json_string_value(value), "Strided") == 0
                                                : json_integer_value(value) == 7;
        if (!is_strided && !(json_is_integer(value) && json_integer_value(value) == 0))
            return ts_error_make(TS_ERR_UNSUPPORTED, "exported program: sparse layouts are not supported");
        ts_buffer_char(out, '0');
        return NULL;
    }
    if (strcmp(which, "as_device") == 0) { /* whatever it was made on */
        ts_buffer_text(out, "torch.device(\"cpu\")");
        return NULL;
    }
    if (strcmp(which, "as_complex") == 0) {
        double re = 0, im = 0;
        read_float(json_object_get(value, "real"), &re);
        read_float(json_object_get(value, "imag"), &im);
        ts_buffer_text(out, "torch.Complex(");
        write_float(re, out);
        ts_buffer_text(out, ", ");
        write_float(im, out);
        ts_buffer_char(out, ')');
        return NULL;
    }
    if (strcmp(which, "as_nested_tensors") == 0)
        return write_lists(a, TENSOR, "Tensor", value, out);
    if (strcmp(which, "as_int_lists") == 0)
        return write_lists(a, INT, "int", value, out);
    if (strcmp(which, "as_float_lists") == 0)
        return write_lists(a, FLOAT, "float", value, out);
    return ts_error_make(TS_ERR_UNSUPPORTED, "exported program: an argument %.40s is not supported", which);
}

/* ---- statements ---- */

static void indent_to(fe_archive *a, int indent) {
    for (int i = 0; i < indent; i++)
        ts_buffer_text(&a->exported->text, "  ");
}

/* Begins a statement. */
static ts_buffer *line(fe_archive *a, int indent) {
    indent_to(a, indent);
    return &a->exported->text;
}

/* The name that an output gets, as the target of an assignment. */
static ts_status write_target(fe_archive *a, const json_t *output, bool *out_is_list, ts_buffer *out) {
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
    ts_buffer *out = line(a, indent);
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
        ts_status status = write_target(a, json_array_get(outputs, i), &is_list[i], &name);
        names[i] = is_list[i] ? fe_exported_fresh(a, "l")
                              : ts_arena_str(a->arena, (ts_str){name.data ? name.data : "", name.length});
        ts_buffer_deinit(&name);
        TS_TRY(status);
    }
    ts_buffer *out = line(a, indent);
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
        "torch.ops.aten.sym_constrain_range_for_size", "torch.ops.aten._assert_async"};
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        size_t n = strlen(hints[i]);
        if (strncmp(target, hints[i], n) == 0 && (target[n] == '.' || target[n] == 0))
            return true;
    }
    return false;
}

static const json_t *argument_of(const json_t *inputs, size_t i) {
    return json_object_get(json_array_get(inputs, i), "arg");
}

static ts_status write_arguments(fe_archive *a, const json_t *inputs, ts_buffer *out) {
    for (size_t i = 0; i < json_array_size(inputs); i++) {
        const json_t *input = json_array_get(inputs, i);
        const char *name = json_string_value(json_object_get(input, "name"));
        const json_t *kind = json_object_get(input, "kind");
        if (i)
            ts_buffer_text(out, ", ");
        /* Files without kinds name every argument. */
        bool is_named = name && is_identifier(name) && i && json_integer_value(kind) != 1;
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

/* ---- graphs within graphs ---- */

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
        const char *which = fe_exported_choice(argument_of(inputs, i), &value);
        if (which && json_is_array(value) && strncmp(which, "as_", 3) == 0) {
            bool is_tensor = strcmp(which, "as_tensors") == 0;
            element kind = is_tensor                              ? TENSOR
                           : strcmp(which, "as_sym_ints") == 0    ? SYMBOL
                           : strcmp(which, "as_ints") == 0        ? INT
                           : strcmp(which, "as_floats") == 0      ? FLOAT
                           : strcmp(which, "as_bools") == 0       ? BOOL
                                                                  : OPTIONAL_TENSOR;
            for (size_t k = 0; k < json_array_size(value); k++) {
                TS_TRY(write_element(a, kind, json_array_get(value, k), out));
                ts_buffer_text(out, ", ");
            }
        } else {
            TS_TRY(fe_exported_write_argument(a, argument_of(inputs, i), out, NULL));
            ts_buffer_text(out, ", ");
        }
    }
    return NULL;
}

/* The outputs of a node, each by name, from the tuple in `from`. */
static ts_status unpack_tuple(fe_archive *a, const json_t *outputs, ts_str from, int indent) {
    ts_buffer *out = line(a, indent);
    size_t written = 0;
    for (size_t i = 0; i < json_array_size(outputs); i++) {
        const json_t *value = NULL;
        const char *which = fe_exported_choice(json_array_get(outputs, i), &value);
        bool is_list = which && strcmp(which, "as_tensors") == 0;
        for (size_t k = 0; k < (is_list ? json_array_size(value) : 1); k++, written++) {
            if (is_list) {
                TS_TRY(write_element(a, TENSOR, json_array_get(value, k), out));
            } else {
                bool unused = false;
                TS_TRY(write_target(a, json_array_get(outputs, i), &unused, out));
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
    ts_buffer *out = line(a, indent);
    ts_buffer_format(out, "%.*s = %.*s(", (int)target.length, target.data, (int)function.length,
                     function.data);
    TS_TRY(write_operands(a, inputs, from, out));
    ts_buffer_text(out, ")\n");
    return NULL;
}

static ts_status write_cond(fe_archive *a, const json_t *node, int indent, int depth) {
    const json_t *inputs = json_object_get(node, "inputs");
    ts_str yes, no, result = fe_exported_fresh(a, "c");
    TS_TRY(write_function(a, argument_of(inputs, 1), depth, &yes));
    TS_TRY(write_function(a, argument_of(inputs, 2), depth, &no));
    ts_buffer *out = line(a, indent);
    ts_buffer_text(out, "if bool(");
    TS_TRY(fe_exported_write_argument(a, argument_of(inputs, 0), out, NULL));
    ts_buffer_text(out, "):\n");
    TS_TRY(write_call(a, result, yes, inputs, 3, indent + 1));
    ts_buffer_text(line(a, indent), "else:\n");
    TS_TRY(write_call(a, result, no, inputs, 3, indent + 1));
    return unpack_tuple(a, json_object_get(node, "outputs"), result, indent);
}

/* while_loop(condition, body, carried, more): the first two graphs take carried and more. */
static ts_status write_while(fe_archive *a, const json_t *node, int indent, int depth) {
    const json_t *inputs = json_object_get(node, "inputs"), *carried = NULL;
    ts_str condition, body;
    TS_TRY(write_function(a, argument_of(inputs, 0), depth, &condition));
    TS_TRY(write_function(a, argument_of(inputs, 1), depth, &body));
    ts_buffer first = {0}, more = {0}, names = {0};
    ts_status status = NULL;
    const char *which = fe_exported_choice(argument_of(inputs, 2), &carried);
    size_t count = json_array_size(carried);
    bool is_symbol = which && strcmp(which, "as_sym_ints") == 0;
    bool is_int = which && strcmp(which, "as_ints") == 0;
    for (size_t i = 0; i < count && !status; i++) {
        ts_str name = fe_exported_fresh(a, "w");
        ts_buffer_format(&names, "%.*s, ", (int)name.length, name.data);
        status = write_element(a, is_symbol ? SYMBOL : is_int ? INT : TENSOR, json_array_get(carried, i),
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
        ts_buffer_format(line(a, indent), "%.*s = (%.*s)\n", (int)names.length, names.data ? names.data : "",
                         (int)first.length, first.data ? first.data : "");
        ts_buffer_format(line(a, indent), "%.*s\n", (int)ask.length, ask.data);
        ts_buffer_format(line(a, indent), "%.*s = bool(%.*s)\n", (int)go.length, go.data,
                         (int)test.length, test.data);
        ts_buffer_format(line(a, indent), "while %.*s:\n", (int)go.length, go.data);
        ts_buffer_format(line(a, indent + 1), "%.*s = %.*s(%.*s)\n", (int)result.length, result.data,
                         (int)body.length, body.data, (int)all.length, all.data);
        ts_buffer_format(line(a, indent + 1), "%.*s = %.*s\n", (int)names.length,
                         names.data ? names.data : "", (int)result.length, result.data);
        ts_buffer_format(line(a, indent + 1), "%.*s\n", (int)ask.length, ask.data);
        ts_buffer_format(line(a, indent + 1), "%.*s = bool(%.*s)\n", (int)go.length, go.data,
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

/* map(graph, xs, more): over the first dimension of each of xs; results are stacked. */
static ts_status write_map(fe_archive *a, const json_t *node, int indent, int depth) {
    const json_t *inputs = json_object_get(node, "inputs"), *xs = NULL, *value = NULL;
    const json_t *graph = NULL, *outputs = NULL;
    ts_str body;
    TS_TRY(write_function(a, argument_of(inputs, 0), depth, &body));
    const char *which = fe_exported_choice(argument_of(inputs, 1), &xs);
    fe_exported_choice(argument_of(inputs, 0), &graph);
    size_t count = json_array_size(xs);
    if (!which || strcmp(which, "as_tensors") != 0 || !count)
        return ts_error_make(TS_ERR_UNSUPPORTED, "exported program: a map over other than tensors is "
                             "not supported yet");
    size_t result_count = 0;
    TS_TRY(fe_exported_list(json_object_get(graph, "graph"), "outputs", &value, &result_count));
    ts_str index = fe_exported_fresh(a, "i"), result = fe_exported_fresh(a, "r");
    ts_str *lists = TS_NEW_ARRAY(a->arena, ts_str, result_count + 1);
    for (size_t i = 0; i < result_count; i++) {
        lists[i] = fe_exported_fresh(a, "l");
        ts_buffer_format(line(a, indent), "%.*s = annotate(List[Tensor], [])\n", (int)lists[i].length,
                         lists[i].data);
    }
    ts_buffer *out = line(a, indent);
    ts_buffer_format(out, "for %.*s in range(torch.size(", (int)index.length, index.data);
    TS_TRY(write_element(a, TENSOR, json_array_get(xs, 0), out));
    ts_buffer_text(out, ", 0)):\n");
    out = line(a, indent + 1);
    ts_buffer_format(out, "%.*s = %.*s(", (int)result.length, result.data, (int)body.length, body.data);
    for (size_t i = 0; i < count; i++) {
        ts_buffer_text(out, "torch.select(");
        TS_TRY(write_element(a, TENSOR, json_array_get(xs, i), out));
        ts_buffer_format(out, ", 0, %.*s), ", (int)index.length, index.data);
    }
    TS_TRY(write_operands(a, inputs, 2, out));
    ts_buffer_text(out, ")\n");
    for (size_t i = 0; i < result_count; i++)
        ts_buffer_format(line(a, indent + 1), "_n = torch.append(%.*s, %.*s[%zu])\n",
                         (int)lists[i].length, lists[i].data, (int)result.length, result.data, i);
    outputs = json_object_get(node, "outputs");
    ts_buffer stacked = {0};
    ts_buffer_char(&stacked, '(');
    for (size_t i = 0; i < result_count; i++)
        ts_buffer_format(&stacked, "torch.stack(%.*s), ", (int)lists[i].length, lists[i].data);
    ts_buffer_char(&stacked, ')');
    ts_str all = ts_arena_str(a->arena, (ts_str){stacked.data ? stacked.data : "", stacked.length});
    ts_buffer_deinit(&stacked);
    return unpack_tuple(a, outputs, all, indent);
}

/* A graph that stands as a region for a mode: called where the mode does not matter here. */
static ts_status write_region(fe_archive *a, const json_t *node, size_t graph_at, int indent, int depth) {
    const json_t *inputs = json_object_get(node, "inputs");
    ts_str body, result = fe_exported_fresh(a, "r");
    TS_TRY(write_function(a, argument_of(inputs, graph_at), depth, &body));
    TS_TRY(write_call(a, result, body, inputs, graph_at + 1, indent));
    return unpack_tuple(a, json_object_get(node, "outputs"), result, indent);
}

static ts_status write_higher_order(fe_archive *a, const json_t *node, const char *name, int indent,
                                    int depth) {
    if (strcmp(name, "cond") == 0)
        return write_cond(a, node, indent, depth);
    if (strcmp(name, "while_loop") == 0)
        return write_while(a, node, indent, depth);
    if (strcmp(name, "map_impl") == 0 || strcmp(name, "map") == 0)
        return write_map(a, node, indent, depth);
    if (strcmp(name, "wrap_with_set_grad_enabled") == 0)
        return write_region(a, node, 1, indent, depth);
    if (strcmp(name, "wrap_with_autocast") == 0) { /* (device, dtype, enabled, cache, graph, ...) */
        const json_t *value = NULL;
        const char *which = fe_exported_choice(argument_of(json_object_get(node, "inputs"), 2), &value);
        if (which && json_is_false(value))
            return write_region(a, node, 4, indent, depth);
        return ts_error_make(TS_ERR_UNSUPPORTED, "exported program: a region of autocast is not "
                             "supported: export the program with its casts "
                             "(run_decompositions())");
    }
    return ts_error_make(TS_ERR_UNSUPPORTED, "exported program: the operator %.60s over graphs is not "
                         "supported yet", name);
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
    if (strncmp(target, higher, sizeof higher - 1) == 0)
        return write_higher_order(a, node, target + sizeof higher - 1, indent, depth);
    if (is_hint(target))
        return NULL;
    ts_buffer call = {0};
    ts_status status = NULL;
    if (strcmp(target, "torch.ops.aten._assert_scalar.default") == 0) {
        ts_buffer_text(&call, "if torch.__not__(bool(");
        status = fe_exported_write_argument(a, argument_of(inputs, 0), &call, NULL);
        ts_buffer_text(&call, ")):\n");
        ts_buffer_append(line(a, indent), call.data, call.length);
        call.length = 0;
        ts_buffer_text(&call, "ops.prim.RaiseException(");
        if (!status)
            status = fe_exported_write_argument(a, argument_of(inputs, 1), &call, NULL);
        ts_buffer_text(&call, ", \"builtins.RuntimeError\")\n");
        ts_buffer_append(line(a, indent + 1), call.data, call.length);
        ts_buffer_deinit(&call);
        return status;
    }
    if (strcmp(target, "_operator.getitem") == 0 && json_array_size(inputs) == 2) {
        status = fe_exported_write_argument(a, argument_of(inputs, 0), &call, NULL);
        ts_buffer_char(&call, '[');
        if (!status)
            status = fe_exported_write_argument(a, argument_of(inputs, 1), &call, NULL);
        ts_buffer_char(&call, ']');
    } else {
        ts_str name = {0};
        for (size_t i = 0; i < sizeof symbolic / sizeof *symbolic && !name.data; i++)
            if (strcmp(target, symbolic[i].target) == 0)
                name = ts_str_of(symbolic[i].text);
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

ts_status fe_exported_write_nodes(fe_archive *a, const json_t *graph, int indent, int depth) {
    const json_t *nodes = NULL;
    size_t count = 0;
    TS_TRY(fe_exported_list(graph, "nodes", &nodes, &count));
    for (size_t i = 0; i < count; i++) {
        TS_TRY(write_node(a, json_array_get(nodes, i), indent, depth));
        if (a->exported->text.length > FE_ARCHIVE_MAX_CODE)
            return fe_exported_bad("more than %d bytes of text", FE_ARCHIVE_MAX_CODE);
    }
    return NULL;
}

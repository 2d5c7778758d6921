/* frontend/archive/exported_argument.c - names and arguments of an exported graph as text. */
#include "frontend/archive/exported.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* ---- names ---- */

bool fe_exported_is_identifier(const char *s) {
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

void fe_exported_bind_token(fe_archive *a, const char *name) {
    fe_exported_bind(a, ts_str_of(name), TS_STR("None"));
}

ts_str fe_exported_fresh(fe_archive *a, const char *stem) {
    return ts_arena_format(a->arena, "_%s%zu", stem, a->exported->temporary_count++);
}

/* Spelled as the names of fe_exported_fresh are. */
static bool is_fresh(const char *name) {
    return name[0] == '_' && name[1] >= 'a' && name[1] <= 'z' && name[2] >= '0' && name[2] <= '9';
}

ts_str fe_exported_name(fe_archive *a, const char *name) {
    ts_str key = ts_str_of(name);
    const ts_str *bound = fe_map_get(a->exported->names, key);
    if (bound)
        return *bound;
    bool fits = fe_exported_is_identifier(name) && !is_reserved(name) && strncmp(name, "__", 2) != 0 && !is_fresh(name);
    ts_str made = fits ? ts_arena_str(a->arena, key) : fe_exported_fresh(a, "v");
    fe_exported_bind(a, key, made);
    return made;
}

/* ---- arguments ---- */

const json_t *fe_exported_argument(const json_t *inputs, size_t i) {
    return json_object_get(json_array_get(inputs, i), "arg");
}

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

/* One plain value, or a symbolic one: {"as_name": ...} or {"as_int": ...}. */
ts_status fe_exported_write_element(fe_archive *a, fe_exported_kind kind, const json_t *json, ts_buffer *out) {
    const json_t *value = NULL;
    const char *which;
    double f;
    switch (kind) {
    case FE_EXPORTED_INT:
        if (!json_is_integer(json))
            return fe_exported_bad("expected an int");
        ts_buffer_format(out, "%" JSON_INTEGER_FORMAT, json_integer_value(json));
        return NULL;
    case FE_EXPORTED_FLOAT:
        if (!read_float(json, &f))
            return fe_exported_bad("expected a float");
        write_float(f, out);
        return NULL;
    case FE_EXPORTED_BOOL:
        if (!json_is_boolean(json))
            return fe_exported_bad("expected a bool");
        ts_buffer_text(out, json_is_true(json) ? "True" : "False");
        return NULL;
    case FE_EXPORTED_STRING:
        if (!json_is_string(json))
            return fe_exported_bad("expected a string");
        write_string((ts_str){json_string_value(json), json_string_length(json)}, out);
        return NULL;
    case FE_EXPORTED_TENSOR:
        return write_named(a, json, out);
    case FE_EXPORTED_OPTIONAL_TENSOR:
        which = fe_exported_choice(json, &value);
        if (which && strcmp(which, "as_tensor") == 0)
            return write_named(a, value, out);
        ts_buffer_text(out, "None");
        return NULL;
    case FE_EXPORTED_SYMBOL:
        which = fe_exported_choice(json, &value);
        if (which && strcmp(which, "as_name") == 0 && json_is_string(value)) {
            ts_buffer_str(out, fe_exported_name(a, json_string_value(value)));
            return NULL;
        }
        return fe_exported_write_element(a, json_is_integer(value) ? FE_EXPORTED_INT : json_is_boolean(value) ? FE_EXPORTED_BOOL : FE_EXPORTED_FLOAT,
                             value, out);
    }
    return NULL;
}

static ts_status write_list(fe_archive *a, fe_exported_kind kind, const char *type, const json_t *json,
                            ts_buffer *out) {
    if (!json_is_array(json))
        return fe_exported_bad("expected a list");
    size_t count = json_array_size(json);
    bool annotated = count == 0 || kind == FE_EXPORTED_OPTIONAL_TENSOR;
    if (annotated)
        ts_buffer_format(out, "annotate(List[%s], ", type);
    ts_buffer_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i)
            ts_buffer_text(out, ", ");
        TS_TRY(fe_exported_write_element(a, kind, json_array_get(json, i), out));
    }
    ts_buffer_text(out, annotated ? "])" : "]");
    return NULL;
}

static ts_status write_lists(fe_archive *a, fe_exported_kind kind, const char *type, const json_t *json,
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
        fe_exported_kind kind;
        bool is_list;
        const char *type; /* of an element */
    } simple[] = {{"as_int", FE_EXPORTED_INT, false, "int"},
                  {"as_float", FE_EXPORTED_FLOAT, false, "float"},
                  {"as_bool", FE_EXPORTED_BOOL, false, "bool"},
                  {"as_string", FE_EXPORTED_STRING, false, "str"},
                  {"as_tensor", FE_EXPORTED_TENSOR, false, "Tensor"},
                  {"as_sym_int", FE_EXPORTED_SYMBOL, false, "int"},
                  {"as_sym_float", FE_EXPORTED_SYMBOL, false, "float"},
                  {"as_sym_bool", FE_EXPORTED_SYMBOL, false, "bool"},
                  {"as_optional_tensor", FE_EXPORTED_OPTIONAL_TENSOR, false, "Optional[Tensor]"},
                  {"as_ints", FE_EXPORTED_INT, true, "int"},
                  {"as_floats", FE_EXPORTED_FLOAT, true, "float"},
                  {"as_bools", FE_EXPORTED_BOOL, true, "bool"},
                  {"as_strings", FE_EXPORTED_STRING, true, "str"},
                  {"as_tensors", FE_EXPORTED_TENSOR, true, "Tensor"},
                  {"as_optional_tensors", FE_EXPORTED_OPTIONAL_TENSOR, true, "Optional[Tensor]"},
                  {"as_sym_ints", FE_EXPORTED_SYMBOL, true, "int"},
                  {"as_sym_floats", FE_EXPORTED_SYMBOL, true, "float"},
                  {"as_sym_bools", FE_EXPORTED_SYMBOL, true, "bool"}};
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
                                 : fe_exported_write_element(a, simple[i].kind, value, out);
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
        return write_lists(a, FE_EXPORTED_TENSOR, "Tensor", value, out);
    if (strcmp(which, "as_int_lists") == 0)
        return write_lists(a, FE_EXPORTED_INT, "int", value, out);
    if (strcmp(which, "as_float_lists") == 0)
        return write_lists(a, FE_EXPORTED_FLOAT, "float", value, out);
    return ts_error_make(TS_ERR_UNSUPPORTED, "exported program: an argument %.40s is not supported", which);
}

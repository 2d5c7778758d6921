/* tools/tsrun_tree.c - arguments and results as JSON trees (docs/inputs.md lists the forms). */
#include "runtime/base/file.h"
#include "tools/tsrun.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 200 };

static ts_status bad(const char *text) {
    return ts_error_make(TS_ERR_INVALID_INPUT, "--args: %s", text);
}

static ts_status read_tree(const json_t *j, tsrun_inputs *inputs, int depth, tsrt_value **out);

static void release_all(tsrt_value **items, size_t count) {
    for (size_t i = 0; items && i < count; i++)
        tsrt_value_release(items[i]);
    free(items);
}

/* Item `part` of each member where the members are pairs (part 0, 1), else the member (-1). */
static ts_status read_items(const json_t *array, tsrun_inputs *inputs, int part, int depth,
                            tsrt_value ***out, size_t *out_count) {
    size_t count = json_array_size(array);
    *out_count = 0;
    *out = calloc(count + 1, sizeof **out);
    if (!*out)
        return ts_no_memory();
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(array, i);
        if (part >= 0 && json_array_size(item) != 2)
            return bad("a dict is a list of [key, value]");
        TS_TRY(read_tree(part < 0 ? item : json_array_get(item, (size_t)part), inputs, depth + 1,
                         &(*out)[i]));
        *out_count = i + 1;
    }
    return NULL;
}

static ts_status read_sequence(const json_t *array, tsrun_inputs *inputs, bool is_tuple, int depth,
                               tsrt_value **out) {
    if (!json_is_array(array))
        return bad("a list or tuple needs [...]");
    tsrt_value **items = NULL;
    size_t count = 0;
    ts_status status = read_items(array, inputs, -1, depth, &items, &count);
    if (!status)
        status = tsrun_status(is_tuple ? tsrt_value_make_tuple(items, count, out)
                                       : tsrt_value_make_list(items, count, out));
    release_all(items, count);
    return status;
}

static ts_status read_dict(const json_t *array, tsrun_inputs *inputs, int depth,
                           tsrt_value **out) {
    if (!json_is_array(array))
        return bad("a dict is a list of [key, value]");
    tsrt_value **keys = NULL, **values = NULL;
    size_t key_count = 0, value_count = 0;
    ts_status status = read_items(array, inputs, 0, depth, &keys, &key_count);
    if (!status)
        status = read_items(array, inputs, 1, depth, &values, &value_count);
    if (!status)
        status = tsrun_status(tsrt_value_make_dict(keys, values, key_count, out));
    release_all(keys, key_count);
    release_all(values, value_count);
    return status;
}

static ts_status read_quantized(const json_t *j, tsrun_inputs *inputs, tsrt_value **out) {
    const char *name = json_string_value(json_object_get(j, "ints"));
    const char *type = json_string_value(json_object_get(j, "dtype"));
    double scale = 0;
    TS_TRY(tsrun_float_read(json_object_get(j, "scale"), &scale));
    const safetensors_entry *e = name ? tsrun_inputs_find(inputs, ts_str_of(name)) : NULL;
    int dtype = type ? tsrt_dtype_parse(type) : -1;
    if (!e || dtype < 0 || !json_is_integer(json_object_get(j, "zero_point")))
        return bad("quantized needs ints (a tensor's name), scale, zero_point and dtype");
    if (e->bytes && tsrt_dtype_bytes((tsrt_dtype)e->dtype) != tsrt_dtype_bytes((tsrt_dtype)dtype))
        return bad("the ints of a quantized tensor have another width than its dtype");
    inputs->used[e - inputs->tensors.entries] = true;
    return tsrun_status(tsrt_value_make_quantized(
        (tsrt_dtype)dtype, e->sizes, (int)e->rank, e->data, scale,
        json_integer_value(json_object_get(j, "zero_point")), out));
}

static ts_status read_object(const json_t *j, tsrun_inputs *inputs, int depth, tsrt_value **out) {
    union {
        const json_t *in;
        json_t *out;
    } cast = {.in = j};
    void *first = json_object_iter(cast.out);
    if (!first || json_object_size(j) != 1)
        return bad("an object has one key: tensor, list, tuple, dict, float, complex, quantized");
    const char *key = json_object_iter_key(first);
    const json_t *v = json_object_iter_value(first);
    if (strcmp(key, "tensor") == 0) {
        return json_is_string(v) ? tsrun_inputs_get(inputs, ts_str_of(json_string_value(v)), out)
                                 : tsrun_inline_read(v, out);
    }
    if (strcmp(key, "list") == 0 || strcmp(key, "tuple") == 0)
        return read_sequence(v, inputs, key[0] == 't', depth, out);
    if (strcmp(key, "dict") == 0)
        return read_dict(v, inputs, depth, out);
    if (strcmp(key, "float") == 0) {
        double f = 0;
        TS_TRY(tsrun_float_read(v, &f));
        return tsrun_status(tsrt_value_make_float(f, out));
    }
    if (strcmp(key, "complex") == 0) {
        double re = 0, im = 0;
        if (json_array_size(v) != 2)
            return bad("complex needs [re, im]");
        TS_TRY(tsrun_float_read(json_array_get(v, 0), &re));
        TS_TRY(tsrun_float_read(json_array_get(v, 1), &im));
        return tsrun_status(tsrt_value_make_complex(re, im, out));
    }
    if (strcmp(key, "quantized") == 0)
        return read_quantized(v, inputs, out);
    if (strcmp(key, "device") == 0 && json_is_string(v))
        return tsrun_status(tsrt_value_make_device(json_string_value(v), out));
    return ts_error_make(TS_ERR_INVALID_INPUT, "--args: '%.40s' is no kind of value; there are "
                         "tensor, list, tuple, dict, float, complex, quantized, device", key);
}

static ts_status read_tree(const json_t *j, tsrun_inputs *inputs, int depth, tsrt_value **out) {
    if (depth > MAX_DEPTH)
        return bad("nested too deeply");
    switch (json_typeof(j)) {
    case JSON_NULL:
        return tsrun_status(tsrt_value_make_none(out));
    case JSON_TRUE:
    case JSON_FALSE:
        return tsrun_status(tsrt_value_make_bool(json_is_true(j), out));
    case JSON_INTEGER:
        return tsrun_status(tsrt_value_make_int(json_integer_value(j), out));
    case JSON_REAL:
        return tsrun_status(tsrt_value_make_float(json_real_value(j), out));
    case JSON_STRING:
        return tsrun_status(
            tsrt_value_make_str(json_string_value(j), json_string_length(j), out));
    case JSON_ARRAY:
        return read_sequence(j, inputs, false, depth, out);
    case JSON_OBJECT:
        return read_object(j, inputs, depth, out);
    }
    return bad("not a tree");
}

ts_status tsrun_arguments_read(const json_t *list, tsrun_inputs *inputs, tsrun_arguments *out) {
    *out = (tsrun_arguments){0};
    if (!json_is_array(list))
        return bad("the arguments of a call are a list");
    return read_items(list, inputs, -1, 0, &out->items, &out->count);
}

void tsrun_arguments_deinit(tsrun_arguments *arguments) {
    release_all(arguments->items, arguments->count);
    *arguments = (tsrun_arguments){0};
}

/* ---- results ---- */

typedef struct tree_writer {
    tsrun_outputs *outputs;
    const char *prefix;
    size_t *next;
} tree_writer;

static ts_status write_tree(const tree_writer *w, const tsrt_value *v, int depth, json_t **out);

static ts_status write_tensor(const tree_writer *w, const tsrt_value *v, json_t **out) {
    double scale = 0;
    int64_t zero_point = 0;
    tsrt_status *plain = tsrt_value_quantization(v, &scale, &zero_point);
    bool is_quantized = plain == NULL;
    tsrt_status_release(plain);
    if (!w->outputs)
        return tsrun_inline_write(v, out);
    char name[128];
    snprintf(name, sizeof name, "%s%zu", w->prefix, (*w->next)++);
    TS_TRY(tsrun_outputs_add(w->outputs, name, v));
    if (!is_quantized) {
        *out = json_pack("{s:s}", "tensor", name);
        return NULL;
    }
    tsrt_tensor_view view = {.size = sizeof view};
    TS_TRY(tsrun_status(tsrt_value_view_tensor(v, &view)));
    *out = json_pack("{s:{s:s,s:o,s:I,s:s}}", "quantized", "ints", name, "scale",
                     tsrun_float_tree(scale), "zero_point", (json_int_t)zero_point, "dtype",
                     tsrt_dtype_name(view.dtype));
    return NULL;
}

static ts_status write_members(const tree_writer *w, const tsrt_value *v, int depth, bool is_dict,
                               json_t *array) {
    for (size_t i = 0, count = tsrt_value_count(v); i < count; i++) {
        json_t *tree = NULL, *key_tree = NULL;
        tsrt_value *item = NULL, *key = NULL;
        ts_status status = tsrun_status(tsrt_value_item(v, i, &item));
        if (!status && is_dict)
            status = tsrun_status(tsrt_value_key(v, i, &key));
        if (!status && is_dict)
            status = write_tree(w, key, depth + 1, &key_tree);
        if (!status)
            status = write_tree(w, item, depth + 1, &tree);
        tsrt_value_release(item);
        tsrt_value_release(key);
        if (status) {
            json_decref(key_tree);
            return status;
        }
        json_array_append_new(array, is_dict ? json_pack("[o,o]", key_tree, tree) : tree);
    }
    return NULL;
}

static ts_status write_as_text(const tsrt_value *v, const char *key, json_t **out) {
    tsrt_value *text = NULL;
    TS_TRY(tsrun_status(tsrt_value_to_str(v, 0, &text)));
    size_t length = 0;
    const char *s = tsrt_value_str(text, &length);
    *out = json_pack("{s:s%}", key, s, length);
    tsrt_value_release(text);
    return NULL;
}

static ts_status write_tree(const tree_writer *w, const tsrt_value *v, int depth, json_t **out) {
    *out = NULL;
    if (depth > MAX_DEPTH)
        return ts_error_make(TS_ERR_INVALID_INPUT, "the result is nested more than %d deep",
                             MAX_DEPTH);
    switch (tsrt_value_kind(v)) {
    case TSRT_NONE:
        *out = json_null();
        break;
    case TSRT_BOOL:
        *out = json_boolean(tsrt_value_bool(v));
        break;
    case TSRT_INT:
        *out = json_integer(tsrt_value_int(v));
        break;
    case TSRT_FLOAT:
        *out = tsrun_float_tree(tsrt_value_float(v));
        break;
    case TSRT_COMPLEX: {
        double re = 0, im = 0;
        tsrt_value_complex(v, &re, &im);
        *out = json_pack("{s:[o,o]}", "complex", tsrun_float_tree(re), tsrun_float_tree(im));
        break;
    }
    case TSRT_STR: {
        size_t length = 0;
        const char *s = tsrt_value_str(v, &length);
        *out = json_stringn(s, length);
        if (!*out)
            return ts_error_make(TS_ERR_INVALID_INPUT, "a string of the result is not UTF-8");
        break;
    }
    case TSRT_TENSOR:
        TS_TRY(write_tensor(w, v, out));
        break;
    case TSRT_LIST:
    case TSRT_TUPLE:
    case TSRT_DICT: {
        tsrt_kind kind = tsrt_value_kind(v);
        json_t *array = json_array();
        ts_status status = write_members(w, v, depth, kind == TSRT_DICT, array);
        if (status) {
            json_decref(array);
            return status;
        }
        *out = json_pack("{s:o}", kind == TSRT_LIST ? "list" : kind == TSRT_TUPLE ? "tuple" : "dict",
                         array);
        break;
    }
    case TSRT_DEVICE:
        TS_TRY(write_as_text(v, "device", out));
        break;
    case TSRT_ENUM:
        TS_TRY(write_as_text(v, "enum", out));
        break;
    case TSRT_OBJECT:
        TS_TRY(write_as_text(v, "object", out));
        break;
    case TSRT_OTHER:
        return ts_error_make(TS_ERR_INVALID_INPUT, "the result holds a value that no tree can hold");
    }
    return *out ? NULL : ts_no_memory();
}

ts_status tsrun_tree_write(const tsrt_value *value, tsrun_outputs *outputs, const char *prefix,
                           size_t *next, json_t **out) {
    tree_writer w = {outputs, prefix, next};
    return write_tree(&w, value, 0, out);
}

static ts_status flatten(const tsrt_value *v, tsrun_outputs *outputs, const char *prefix,
                         size_t *next, int depth) {
    char name[128];
    tsrt_kind kind = tsrt_value_kind(v);
    if (depth > MAX_DEPTH)
        return ts_error_make(TS_ERR_INVALID_INPUT, "the result is nested more than %d deep",
                             MAX_DEPTH);
    if (kind == TSRT_LIST || kind == TSRT_TUPLE || kind == TSRT_DICT) {
        for (size_t i = 0, count = tsrt_value_count(v); i < count; i++) {
            tsrt_value *item = NULL;
            TS_TRY(tsrun_status(tsrt_value_item(v, i, &item)));
            ts_status status = flatten(item, outputs, prefix, next, depth + 1);
            tsrt_value_release(item);
            TS_TRY(status);
        }
        return NULL;
    }
    if (kind == TSRT_NONE && depth == 0)
        return NULL;
    snprintf(name, sizeof name, "%s%zu", prefix, (*next)++);
    if (kind == TSRT_TENSOR)
        return tsrun_outputs_add(outputs, name, v);
    if (kind == TSRT_BOOL || kind == TSRT_INT || kind == TSRT_FLOAT || kind == TSRT_COMPLEX)
        return tsrun_outputs_add_number(outputs, name, v);
    return ts_error_make(TS_ERR_INVALID_INPUT, "the result holds more than tensors and numbers: "
                         "give --output-args FILE.json as well");
}

ts_status tsrun_flatten(const tsrt_value *value, tsrun_outputs *outputs, const char *prefix,
                        size_t *next) {
    return flatten(value, outputs, prefix, next, 0);
}

ts_status tsrun_json_load(const char *path, json_t **out) {
    ts_mapped_file file = {0};
    json_error_t error;
    *out = NULL;
    TS_TRY(ts_file_map(path, &file));
    if (!file.length)
        return ts_error_at(TS_ERR_INVALID_INPUT, (ts_place){ts_str_of(path), 0, 0, 0},
                           "expected JSON, found an empty file");
    *out = json_loadb((const char *)file.data, file.length,
                      JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    ts_file_unmap(&file);
    if (*out)
        return NULL;
    if (json_error_code(&error) == json_error_out_of_memory)
        return ts_no_memory();
    ts_place place = {ts_str_of(path), error.line, error.column, 0};
    return ts_error_at(TS_ERR_INVALID_INPUT, place, "expected JSON: %s", error.text);
}

ts_status tsrun_json_write(const char *path, const json_t *tree, unsigned digits) {
    char *text = json_dumps(tree, JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
    if (!text)
        return ts_no_memory();
    size_t length = strlen(text);
    ts_status status = NULL;
    if (strcmp(path, "-") == 0) {
        if (!ts_write_all(1, text, length) || !ts_write_all(1, "\n", 1))
            status = ts_error_make(TS_ERR_IO, "cannot write to standard output");
    } else {
        ts_file_part parts[2] = {{.data = text, .length = length}, {.data = "\n", .length = 1}};
        status = ts_file_write(path, parts, 2);
    }
    free(text);
    return status;
}

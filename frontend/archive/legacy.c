/* frontend/archive/legacy.c - model.json: a tree of modules, each with a file of methods, names of
 * parameters (tensors by number) and of attributes (values of attributes.pkl by number).
 *
 * The classes are written out as text in today's form, so that everything behind the reader sees one
 * kind of archive. (caffe2/proto/torch.proto of PyTorch 1.2 describes the messages.) */
#include "frontend/archive/legacy.h"

#include <jansson.h>
#include <stdlib.h>

#include "frontend/archive/text.h"
#include "frontend/safetensors/safetensors.h"
#include "runtime/base/checked.h"

enum { MAX_MODULES = 65535, MAX_MODULE_DEPTH = 200, MAX_JSON = 64 << 20 };

typedef struct legacy_module {
    const json_t *json;
    ts_str class_name; /* "__torch__.net_3" */
    struct legacy_module **children; /* in the order of submodules */
    size_t child_count;
} legacy_module;

typedef struct fe_legacy {
    json_t *root;
    legacy_module *main;
    size_t module_count;
} fe_legacy;

static ts_status bad(const char *text) {
    return ts_error_make(TS_ERR_INVALID_FILE, "model.json: %s", text);
}

static ts_status get_name(const json_t *json, const char *key, ts_str *out) {
    const char *text = json_string_value(json_object_get(json, key));
    *out = ts_str_of(text);
    if (!out->length || fe_text_has_control(*out) || memchr(text, '"', out->length) ||
        memchr(text, '\\', out->length))
        return ts_error_make(TS_ERR_INVALID_FILE, "model.json: %s: expected a name", key);
    return NULL;
}

/* Numbers are written as strings (protobuf's JSON form of int64); absent means 0. */
static ts_status get_number(const json_t *value, int64_t *out) {
    const char *text = json_string_value(value);
    *out = json_is_integer(value) ? json_integer_value(value) : 0;
    if (!text)
        return value && !json_is_integer(value) ? bad("expected a number") : NULL;
    if (!*text || strlen(text) > 18)
        return bad("expected a number of up to 18 digits");
    for (const char *p = text; *p; p++) {
        if (*p < '0' || *p > '9')
            return bad("expected a number of 0 or more");
        *out = 10 * *out + (*p - '0');
    }
    return NULL;
}

static bool is_identifier(ts_str s) {
    for (size_t i = 0; i < s.length; i++) {
        char c = s.data[i];
        bool is_letter = c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(i && c >= '0' && c <= '9'))
            return false;
    }
    return s.length > 0;
}

static void declare(ts_buffer *out, ts_str name, ts_str type) {
    ts_buffer_text(out, is_identifier(name) ? "  " : "  __annotations__[\"");
    ts_buffer_str(out, name);
    ts_buffer_text(out, is_identifier(name) ? " : " : "\"] = ");
    ts_buffer_str(out, type);
    ts_buffer_char(out, '\n');
}

/* The methods of a file, indented into the class; the line of the operator set's version goes. */
static ts_status write_methods(fe_archive *a, const json_t *json, ts_buffer *out) {
    const json_t *arena = json_object_get(json, "torchscriptArena");
    ts_str key = {0}, text = {0};
    if (!arena)
        return NULL;
    TS_TRY(get_name(arena, "key", &key));
    fe_zip_member *m = fe_zip_find(a->zip, ts_arena_format(a->arena, "%.*s%.*s", (int)a->top.length,
                                                           a->top.data, (int)key.length, key.data));
    if (!m)
        return ts_error_make(TS_ERR_INVALID_FILE, "%.*s is missing", TS_STR_ARG(key));
    if (m->bytes > FE_ARCHIVE_MAX_CODE || out->length > FE_ARCHIVE_MAX_CODE)
        return bad("more code than is read");
    TS_TRY(fe_zip_read(a->zip, a->arena, m, FE_ARCHIVE_MAX_CODE, &text));
    for (size_t at = 0; at < text.length;) {
        const char *newline = memchr(text.data + at, '\n', text.length - at);
        ts_str line = {text.data + at, newline ? (size_t)(newline - text.data) - at
                                               : text.length - at};
        at += line.length + 1;
        if (ts_str_starts_with(line, "op_version_set"))
            continue;
        if (line.length)
            ts_buffer_text(out, "  ");
        ts_buffer_str(out, line);
        ts_buffer_char(out, '\n');
    }
    return NULL;
}

static ts_status list_of(const json_t *json, const char *key, const json_t **out, size_t *count) {
    *out = json_object_get(json, key);
    *count = json_array_size(*out);
    return *out && !json_is_array(*out)
               ? ts_error_make(TS_ERR_INVALID_FILE, "model.json: %s: expected a list", key) : NULL;
}

static ts_status declare_all(const json_t *json, const char *key, bool is_tensor, ts_buffer *out) {
    const json_t *list = NULL;
    size_t count = 0;
    TS_TRY(list_of(json, key, &list, &count));
    for (size_t i = 0; i < count; i++) {
        ts_str name, type = TS_STR("Tensor");
        TS_TRY(get_name(json_array_get(list, i), "name", &name));
        if (!is_tensor)
            TS_TRY(get_name(json_array_get(list, i), "type", &type));
        declare(out, name, type);
    }
    return NULL;
}

/* Submodules first, so that their names are known; each class is one piece of text. */
static ts_status write_class(fe_archive *a, const json_t *json, int depth, ts_buffer *out,
                             legacy_module **out_module) {
    fe_legacy *l = a->legacy;
    if (!json_is_object(json) || depth > MAX_MODULE_DEPTH || l->module_count++ >= MAX_MODULES)
        return bad("a module that is no object, or too many or too deep ones");
    ts_str name = {0};
    TS_TRY(get_name(json, "name", &name));
    legacy_module *module = TS_NEW(a->arena, legacy_module);
    ts_str bare = ts_arena_format(a->arena, "%s_%zu", is_identifier(name) ? "module" : "m",
                                  l->module_count - 1);
    if (depth == 0 && is_identifier(name))
        bare = name;
    module->json = json;
    module->class_name = ts_arena_format(a->arena, "__torch__.%.*s", (int)bare.length, bare.data);
    const json_t *children = NULL;
    TS_TRY(list_of(json, "submodules", &children, &module->child_count));
    module->children = TS_NEW_ARRAY(a->arena, legacy_module *, module->child_count + 1);
    for (size_t i = 0; i < module->child_count; i++)
        TS_TRY(write_class(a, json_array_get(children, i), depth + 1, out, &module->children[i]));
    ts_buffer_format(out, "class %.*s(Module):\n", (int)bare.length, bare.data);
    size_t before = out->length;
    TS_TRY(declare_all(json, "parameters", true, out));
    TS_TRY(declare_all(json, "attributes", false, out));
    for (size_t i = 0; i < module->child_count; i++) {
        TS_TRY(get_name(module->children[i]->json, "name", &name));
        declare(out, name, module->children[i]->class_name);
    }
    TS_TRY(write_methods(a, json, out));
    if (out->length == before)
        ts_buffer_text(out, "  pass\n");
    *out_module = module;
    return NULL;
}

static ts_status check_libraries(fe_archive *a) {
    fe_zip_member *m = fe_zip_find(a->zip, ts_arena_format(a->arena, "%.*slibs.py",
                                                           (int)a->top.length, a->top.data));
    ts_str text = {0};
    if (!m)
        return NULL;
    TS_TRY(fe_zip_read(a->zip, a->arena, m, FE_ARCHIVE_MAX_CODE, &text));
    for (size_t i = 0; i + 6 < text.length; i++)
        if ((i == 0 || text.data[i - 1] == '\n') && (memcmp(text.data + i, "class ", 6) == 0 ||
                                                     memcmp(text.data + i, "def ", 4) == 0))
            return ts_error_make(TS_ERR_UNSUPPORTED, "libs.py: classes and functions beside the "
                                 "modules of model.json are not supported");
    return NULL;
}

static ts_status write_code(fe_archive *a, const json_t *main_module, ts_buffer *text) {
    fe_legacy *l = a->legacy;
    TS_TRY(write_class(a, main_module, 0, text, &l->main));
    TS_TRY(ts_buffer_status(text));
    fe_code_file file = {.module = TS_STR("__torch__")};
    ts_str shown = ts_arena_format(a->arena, "%.*s:code", (int)a->path.length, a->path.data);
    TS_TRY(fe_source_make(a->arena, shown,
                          ts_arena_str(a->arena, (ts_str){text->data, text->length}),
                          &file.source));
    file.source->is_archive = true;
    TS_APPEND(a->arena, a->code, a->code_count, a->code_capacity, file);
    return NULL;
}

ts_status fe_legacy_open(fe_archive *a) {
    ts_str bytes = {0};
    fe_zip_member *m = fe_zip_find(a->zip, ts_arena_format(a->arena, "%.*smodel.json",
                                                           (int)a->top.length, a->top.data));
    TS_TRY(fe_zip_read(a->zip, a->arena, m, MAX_JSON, &bytes));
    if (!safetensors_is_shallow(bytes, 4 * MAX_MODULE_DEPTH))
        return bad("nested too deeply");
    fe_legacy *l = a->legacy = TS_NEW(a->arena, fe_legacy);
    json_error_t error;
    l->root = json_loadb(bytes.data, bytes.length, JSON_REJECT_DUPLICATES, &error);
    if (!l->root)
        return ts_error_make(TS_ERR_INVALID_FILE, "model.json: %s", error.text);
    TS_TRY(check_libraries(a));
    ts_buffer text = {0};
    ts_status status = write_code(a, json_object_get(l->root, "mainModule"), &text);
    ts_buffer_deinit(&text);
    return status;
}

void fe_legacy_release(fe_archive *a) {
    fe_legacy *l = a->legacy;
    if (l)
        json_decref(l->root);
    a->legacy = NULL;
}

/* ---- values ---- */

static ts_status read_dtype(const json_t *json, rt_dtype *out) {
    static const struct {
        const char *name;
        rt_dtype dtype;
    } names[] = {{"FLOAT", RT_float32}, {"DOUBLE", RT_float64}, {"FLOAT16", RT_float16},
                 {"INT64", RT_int64},   {"INT32", RT_int32},    {"INT16", RT_int16},
                 {"INT8", RT_int8},     {"UINT8", RT_uint8},    {"BOOL", RT_bool}};
    const char *text = json_string_value(json_object_get(json, "dataType"));
    for (size_t i = 0; text && i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i].name) == 0) {
            *out = names[i].dtype;
            return NULL;
        }
    return ts_error_make(TS_ERR_INVALID_FILE, "model.json: dataType %.20s of a tensor is not known",
                         text ? text : "(none)");
}

static ts_status read_sizes(const json_t *json, const char *key, int64_t *out, size_t *count) {
    const json_t *list = NULL;
    TS_TRY(list_of(json, key, &list, count));
    if (*count > RT_MAX_RANK)
        return bad("a tensor of too high a rank");
    for (size_t i = 0; i < *count; i++)
        TS_TRY(get_number(json_array_get(list, i), &out[i]));
    return NULL;
}

static ts_status read_tensor(fe_archive *a, fe_records *records, const json_t *json,
                             rt_tensor **out) {
    rt_dtype dtype = RT_DTYPE_UNKNOWN;
    int64_t sizes[RT_MAX_RANK] = {0}, strides[RT_MAX_RANK] = {0}, offset = 0;
    size_t rank = 0, stride_count = 0;
    ts_str key = {0};
    TS_TRY(read_dtype(json, &dtype));
    TS_TRY(read_sizes(json, "dims", sizes, &rank));
    TS_TRY(read_sizes(json, "strides", strides, &stride_count));
    TS_TRY(get_number(json_object_get(json, "offset"), &offset));
    TS_TRY(get_name(json_object_get(json, "data"), "key", &key));
    if (rank != stride_count)
        return bad("a tensor whose sizes and strides differ in number");
    ts_str name = ts_arena_format(a->arena, "%.*s%.*s", (int)a->top.length, a->top.data,
                                  (int)key.length, key.data);
    bool requires_grad = json_is_true(json_object_get(json, "requiresGrad"));
    TS_TRY(fe_records_view(records, name, dtype, offset, sizes, strides, rank, out));
    (*out)->requires_grad = requires_grad;
    return NULL;
}

static void own(fe_archive *a, rt_value v) {
    TS_APPEND(a->arena, a->owned, a->owned_count, a->owned_capacity, v);
}

static ts_status read_tensors(fe_archive *a, fe_records *records, rt_value *out) {
    const json_t *list = NULL;
    size_t count = 0;
    TS_TRY(list_of(((fe_legacy *)a->legacy)->root, "tensors", &list, &count));
    TS_TRY(rt_tuple_make(count, out));
    own(a, *out);
    for (size_t i = 0; i < count; i++) {
        rt_tensor *t = NULL;
        TS_TRY(read_tensor(a, records, json_array_get(list, i), &t));
        out->as.tuple->items[i] = rt_from_tensor(t);
    }
    a->legacy_tensors = out->as.tuple;
    return NULL;
}

static ts_status pick(const rt_value tuple, const json_t *item, const char *key, rt_value *out) {
    int64_t index = 0;
    TS_TRY(get_number(json_object_get(item, key), &index));
    if (tuple.tag != RT_TAG_TUPLE || (uint64_t)index >= tuple.as.tuple->count)
        return ts_error_make(TS_ERR_INVALID_FILE, "model.json: %s %lld does not exist", key,
                             (long long)index);
    *out = tuple.as.tuple->items[index];
    return NULL;
}

static ts_status set_field(const ir_class *c, rt_object *object, const json_t *item, rt_value v) {
    ts_str name = {0};
    size_t budget = FE_ARCHIVE_MAX_VISITS;
    TS_TRY(get_name(item, "name", &name));
    int64_t at = rt_class_field(&c->base, name);
    if (at < 0 || (size_t)at >= object->field_count ||
        object->fields[at].tag != RT_TAG_UNINITIALIZED)
        return ts_error_make(TS_ERR_INVALID_FILE, "model.json: attribute %.*s is given twice",
                             TS_STR_ARG(name));
    for (size_t i = 0; i < c->field_count; i++)
        if (ts_str_equal(c->fields[i].name, name) && c->fields[i].type &&
            !fe_archive_value_fits(c->fields[i].type, v, &budget))
            return ts_error_make(TS_ERR_INVALID_FILE, "model.json: attribute %.*s holds %s, which "
                                 "is not of the declared type", TS_STR_ARG(name), rt_tag_name(v));
    rt_assign(&object->fields[at], rt_retain(v));
    return NULL;
}

typedef struct legacy_values {
    fe_archive *archive;
    const fe_torchscript_classes *classes;
    rt_value tensors, attributes;
} legacy_values;

/* Depth was bounded when the classes were written. */
static ts_status make_object(const legacy_values *v, const legacy_module *module, rt_value *out) {
    const ir_class *c = NULL;
    TS_TRY(v->classes->find(v->classes->user, module->class_name, &c));
    if (!c)
        return ts_error_make(TS_ERR_INVALID_FILE, "model.json: class %.*s cannot be read",
                             TS_STR_ARG(module->class_name));
    TS_TRY(rt_object_make(&c->base, out));
    own(v->archive, *out);
    const json_t *parameters = json_object_get(module->json, "parameters");
    const json_t *attributes = json_object_get(module->json, "attributes");
    rt_value value = rt_none();
    for (size_t i = 0; i < json_array_size(parameters); i++) {
        TS_TRY(pick(v->tensors, json_array_get(parameters, i), "tensorId", &value));
        TS_TRY(set_field(c, out->as.object, json_array_get(parameters, i), value));
    }
    for (size_t i = 0; i < json_array_size(attributes); i++) {
        TS_TRY(pick(v->attributes, json_array_get(attributes, i), "id", &value));
        TS_TRY(set_field(c, out->as.object, json_array_get(attributes, i), value));
    }
    for (size_t i = 0; i < module->child_count; i++) {
        TS_TRY(make_object(v, module->children[i], &value));
        TS_TRY(set_field(c, out->as.object, module->children[i]->json, value));
    }
    return NULL;
}

ts_status fe_legacy_load(fe_archive *a, const fe_torchscript_classes *classes, fe_records *records,
                         fe_torchscript_objects *out) {
    legacy_values v = {.archive = a, .classes = classes};
    TS_TRY(read_tensors(a, records, &v.tensors));
    fe_zip_member *m = fe_zip_find(a->zip, ts_arena_format(a->arena, "%.*sattributes.pkl",
                                                           (int)a->top.length, a->top.data));
    if (m) {
        ts_str bytes = {0};
        fe_pickle_node *root = NULL;
        TS_TRY(fe_zip_read(a->zip, a->arena, m, FE_ARCHIVE_MAX_PICKLE, &bytes));
        TS_TRY(ts_status_context(fe_pickle_read(a->arena, bytes, FE_PICKLE_SCRIPT, NULL, &root),
                                 "reading attributes.pkl"));
        TS_TRY(fe_archive_build(a, classes, records, TS_STR("attributes.pkl"), root,
                                &v.attributes));
    }
    TS_TRY(make_object(&v, ((fe_legacy *)a->legacy)->main, &out->root));
    out->constants = v.tensors;
    return NULL;
}

/* frontend/archive/exported.c - the container of a torch.export program: which members there are, the
 * JSON, the weights. (torch/_export/serde/schema.py of PyTorch describes the graph.)
 *
 *   since 2.8   TOP/models/NAME.json, TOP/data/weights/weight_N with a table of their names beside,
 *               constants alike
 *   before      serialized_exported_program.json, serialized_state_dict.pt and serialized_constants.pt,
 *               both files of torch.save inside the file */
#include "frontend/archive/exported.h"

#include <stdarg.h>

#include "frontend/archive/state_dict.h"
#include "frontend/archive/text.h"
#include "frontend/safetensors/safetensors.h"

static const char old_program[] = "serialized_exported_program.json";

ts_status fe_exported_bad(const char *format, ...) {
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return ts_error_make(TS_ERR_INVALID_FILE, "exported program: %s", text);
}

/* ---- JSON ---- */

const char *fe_exported_choice(const json_t *json, const json_t **out_value) {
    const char *key;
    json_t *value;
    *out_value = NULL;
    json_object_foreach((json_t *)(uintptr_t)json, key, value)
        if (!json_is_null(value)) {
            *out_value = value;
            return key;
        }
    return NULL;
}

ts_status fe_exported_list(const json_t *json, const char *key, const json_t **out,
                           size_t *out_count) {
    *out = json_object_get(json, key);
    *out_count = json_array_size(*out);
    return json_is_array(*out) ? NULL : fe_exported_bad("%s: expected a list", key);
}

rt_dtype fe_exported_dtype(const json_t *json) {
    /* Older files have the names. */
    static const char *const names[] = {"UNKNOWN", "BYTE",       "CHAR",         "SHORT",
                                        "INT",     "LONG",       "HALF",         "FLOAT",
                                        "DOUBLE",  "COMPLEXHALF", "COMPLEXFLOAT", "COMPLEXDOUBLE",
                                        "BOOL",    "BFLOAT16"};
    static const signed char dtypes[] = {
        RT_DTYPE_UNKNOWN, RT_uint8,   RT_int8,  RT_int16,          RT_int32,     RT_int64,
        RT_float16,       RT_float32, RT_float64, RT_DTYPE_UNKNOWN, RT_complex64, RT_complex128,
        RT_bool,          RT_bfloat16};
    json_int_t i = json_is_integer(json) ? json_integer_value(json) : 0;
    for (size_t n = 0; json_is_string(json) && n < sizeof names / sizeof *names; n++)
        if (strcmp(json_string_value(json), names[n]) == 0)
            i = (json_int_t)n;
    return i > 0 && i < (json_int_t)sizeof dtypes ? (rt_dtype)dtypes[i] : RT_DTYPE_UNKNOWN;
}

static bool is_word_at(ts_str text, size_t at, const char *word) {
    size_t n = strlen(word);
    return text.length - at >= n && memcmp(text.data + at, word, n) == 0;
}

/* The next bare word outside strings from *at on: its length, 0 at the end. Counts values on the way,
 * which are bounded because a tree needs some hundred bytes for each. */
static size_t next_word(ts_str text, size_t *at, size_t *values) {
    static const char *const words[] = {"-Infinity", "Infinity", "NaN"};
    for (; *at < text.length && *values <= FE_EXPORTED_MAX_VALUES; ++*at) {
        char c = text.data[*at];
        if (c == '"') {
            for (++*at; *at < text.length && text.data[*at] != '"'; ++*at)
                if (text.data[*at] == '\\')
                    ++*at;
            continue;
        }
        *values += c == ',' || c == '[' || c == '{' || c == ':';
        if (c != '-' && c != 'I' && c != 'N')
            continue;
        for (size_t w = 0; w < sizeof words / sizeof *words; w++)
            if (is_word_at(text, *at, words[w]))
                return strlen(words[w]);
    }
    return 0;
}

static ts_status quote_words(ts_str text, ts_buffer *out) {
    size_t values = 0, from = 0, at = 0;
    for (size_t n; (n = next_word(text, &at, &values)); from = at) {
        ts_buffer_append(out, text.data + from, at - from);
        ts_buffer_format(out, "\"%.*s\"", (int)n, text.data + at);
        at += n;
    }
    if (values > FE_EXPORTED_MAX_VALUES)
        return fe_exported_bad("JSON of more than %d values", FE_EXPORTED_MAX_VALUES);
    if (from) /* else the text is used as it is */
        ts_buffer_append(out, text.data + from, text.length - from);
    return ts_buffer_status(out);
}

ts_status fe_exported_parse(ts_arena *arena, ts_str text, json_t **out) {
    (void)arena;
    *out = NULL;
    if (!safetensors_is_shallow(text, FE_EXPORTED_MAX_DEPTH))
        return fe_exported_bad("JSON nested more than %d deep", FE_EXPORTED_MAX_DEPTH);
    ts_buffer plain = {0};
    ts_status status = quote_words(text, &plain);
    if (!status) {
        json_error_t error;
        *out = json_loadb(plain.length ? plain.data : text.data, plain.length ? plain.length : text.length,
                          JSON_REJECT_DUPLICATES, &error);
        if (!*out)
            status = fe_exported_bad("line %d: %s", error.line, error.text);
    }
    ts_buffer_deinit(&plain);
    return status;
}

/* ---- the container ---- */

/* TOP/models/NAME.json */
static bool is_model(ts_str path, ts_str *out_top, ts_str *out_name) {
    static const char folder[] = "models/", ending[] = ".json";
    if (!ts_str_ends_with(path, ending))
        return false;
    const char *slash = memchr(path.data, '/', path.length);
    size_t top = slash && !ts_str_starts_with(path, folder) ? (size_t)(slash - path.data) + 1 : 0;
    ts_str rest = {path.data + top, path.length - top};
    if (!ts_str_starts_with(rest, folder) || rest.length < sizeof folder + sizeof ending - 2)
        return false;
    *out_top = (ts_str){path.data, top};
    *out_name = (ts_str){rest.data + sizeof folder - 1, rest.length - (sizeof folder - 1) - (sizeof ending - 1)};
    return !memchr(out_name->data, '/', out_name->length);
}

bool fe_exported_is_one(fe_archive *a) {
    for (size_t i = 0; i < a->zip->count; i++) {
        ts_str path = a->zip->members[i].name, top = {0}, name;
        bool is_old = ts_str_is(path, old_program);
        if (is_old || is_model(path, &top, &name)) {
            a->top = is_old ? (ts_str){0} : top;
            return true;
        }
    }
    return false;
}

/* The program that is meant, and its name; empty in files that have none for it. */
static ts_status find_program(const fe_archive *a, fe_zip_member **out, ts_str *out_name) {
    ts_buffer names = {0};
    size_t count = 0;
    fe_zip_member *last = NULL;
    *out_name = (ts_str){0};
    *out = fe_zip_find(a->zip, ts_str_of(old_program));
    for (size_t i = 0; i < a->zip->count && !*out; i++) {
        ts_str top, name;
        if (!is_model(a->zip->members[i].name, &top, &name) || !ts_str_equal(top, a->top))
            continue;
        last = &a->zip->members[i];
        if (ts_str_equal(name, a->program))
            *out = last;
        *out_name = name;
        if (names.length < 1000)
            ts_buffer_format(&names, "%s%.*s", count ? ", " : "", TS_STR_ARG(name));
        count++;
    }
    if (!*out && count == 1 && !a->program.length)
        *out = last;
    ts_status status = NULL;
    if (!*out)
        status = a->program.length
                     ? ts_error_make(TS_ERR_INVALID_INPUT, "--model: no exported program %.*s, only %.*s",
                                     TS_STR_ARG(a->program), (int)names.length, names.data)
                     : ts_error_make(TS_ERR_INVALID_INPUT, "several exported programs: choose one of %.*s with --model",
                                     (int)names.length, names.data);
    ts_buffer_deinit(&names);
    return status;
}

static ts_status check_format(fe_archive *a) {
    ts_str text = {0};
    fe_zip_member *m = fe_zip_find(a->zip, ts_arena_format(a->arena, "%.*sarchive_format",
                                                           (int)a->top.length, a->top.data));
    if (!m)
        return NULL;
    TS_TRY(fe_zip_read(a->zip, a->arena, m, 64, &text));
    return ts_str_is(text, "pt2") ? NULL
                                  : fe_exported_bad("archive_format: expected pt2, found %.20s",
                                                    text.length ? "another" : "nothing");
}

ts_status fe_exported_open(fe_archive *a) {
    ts_str name = {0}, bytes = {0};
    fe_zip_member *m = NULL;
    TS_TRY(find_program(a, &m, &name));
    TS_TRY(check_format(a));
    TS_TRY(fe_zip_read(a->zip, a->arena, m, FE_EXPORTED_MAX_JSON, &bytes));
    fe_exported *e = a->exported = TS_NEW(a->arena, fe_exported);
    e->name = name;
    a->version = FE_ARCHIVE_MAX_VERSION;
    TS_TRY(fe_exported_parse(a->arena, bytes, &e->root));
    json_int_t major = json_integer_value(json_object_get(json_object_get(e->root, "schema_version"), "major"));
    if (major > 8)
        return ts_error_make(TS_ERR_UNSUPPORTED, "exported program: schema version %lld, versions up "
                             "to 8 are read", (long long)major);
    ts_status status = fe_exported_write(a);
    if (!status)
        status = ts_buffer_status(&e->text);
    if (!status) {
        fe_code_file file = {.module = TS_STR("__torch__")};
        ts_str shown = ts_arena_format(a->arena, "%.*s:graph", (int)a->path.length, a->path.data);
        status = fe_source_make(a->arena, shown,
                                ts_arena_str(a->arena, (ts_str){e->text.data, e->text.length}),
                                &file.source);
        if (!status) {
            file.source->is_archive = true;
            TS_APPEND(a->arena, a->code, a->code_count, a->code_capacity, file);
        }
    }
    return status;
}

void fe_exported_release(fe_archive *a) {
    fe_exported *e = a->exported;
    if (!e)
        return;
    json_decref(e->root);
    ts_buffer_deinit(&e->text);
    ts_buffer_deinit(&e->functions);
    a->exported = NULL;
}

/* ---- weights ---- */

typedef struct payload { /* a folder of records and its table, or a file of torch.save */
    json_t *table;
    ts_str folder;
    fe_weights weights;
} payload;

static ts_status read_sizes(const json_t *meta, const char *key, int64_t *out, size_t *count) {
    const json_t *list = NULL;
    TS_TRY(fe_exported_list(meta, key, &list, count));
    if (*count > RT_MAX_RANK)
        return fe_exported_bad("a weight of too high a rank");
    for (size_t i = 0; i < *count; i++) {
        const json_t *n = json_object_get(json_array_get(list, i), "as_int");
        if (!json_is_integer(n) || json_integer_value(n) < 0)
            return fe_exported_bad("%s of a weight: expected ints of 0 or more", key);
        out[i] = json_integer_value(n);
    }
    return NULL;
}

/* The names of dtypes that only the format has (ScalarType of torch/_export/serde/schema.py). */
static const char *other_dtype(const json_t *json) {
    static const struct {
        int number;
        const char *name;
    } others[] = {{9, "complex32"}, {28, "uint16"}, {29, "float8_e4m3fn"}, {30, "float8_e5m2"}, {31, "float8_e4m3fnuz"},
                  {32, "float8_e5m2fnuz"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (json_is_integer(json) && json_integer_value(json) == others[i].number)
            return others[i].name;
    return json_is_string(json) ? json_string_value(json) : "without a name here";
}

static ts_status table_tensor(fe_archive *a, fe_records *records, const payload *p,
                              const json_t *entry, rt_tensor **out) {
    const json_t *meta = json_object_get(entry, "tensor_meta");
    const char *path = json_string_value(json_object_get(entry, "path_name"));
    int64_t sizes[RT_MAX_RANK] = {0}, strides[RT_MAX_RANK] = {0};
    size_t rank = 0, stride_count = 0;
    if (!path || strchr(path, '/'))
        return fe_exported_bad("a weight without a record");
    if (json_is_true(json_object_get(entry, "use_pickle")) || !json_is_object(meta))
        return ts_error_make(TS_ERR_UNSUPPORTED, "exported program: weights stored as pickles, as tensors of classes of "
                             "their own are, are not supported: save program.run_decompositions(), which takes them apart");
    rt_dtype dtype = fe_exported_dtype(json_object_get(meta, "dtype"));
    if (dtype == RT_DTYPE_UNKNOWN)
        return ts_error_make(TS_ERR_UNSUPPORTED, "exported program: a weight of dtype %s is not supported",
                             other_dtype(json_object_get(meta, "dtype")));
    TS_TRY(read_sizes(meta, "sizes", sizes, &rank));
    TS_TRY(read_sizes(meta, "strides", strides, &stride_count));
    json_int_t offset = json_integer_value(json_object_get(json_object_get(meta, "storage_offset"), "as_int"));
    if (rank != stride_count || offset < 0)
        return fe_exported_bad("a weight whose sizes and strides differ in number");
    ts_str name = ts_arena_format(a->arena, "%.*s%s", (int)p->folder.length, p->folder.data, path);
    return fe_records_view(records, name, dtype, offset, sizes, strides, rank, out);
}

static ts_status payload_find(fe_archive *a, fe_records *records, payload *p, ts_str name,
                              rt_tensor **out) {
    *out = NULL;
    if (p->table) {
        const json_t *entry = json_object_get(json_object_get(p->table, "config"),
                                              ts_arena_copy(a->arena, name.data, name.length));
        return entry ? ts_status_context(table_tensor(a, records, p, entry, out), "reading the weight %.*s", TS_STR_ARG(name))
                     : NULL;
    }
    const fe_weight *w = fe_weights_find(&p->weights, name);
    if (w)
        *out = rt_retain(rt_from_tensor(w->tensor)).as.tensor;
    return NULL;
}

/* kind: "weights" or "constants"; old: the member of old programs. */
static ts_status payload_open(fe_archive *a, const char *kind, const char *old, payload *out) {
    ts_str bytes = {0};
    fe_zip_member *m = fe_zip_find(a->zip, ts_str_of(old));
    if (m) {
        TS_TRY(fe_zip_read(a->zip, a->arena, m, SIZE_MAX / 2, &bytes));
        return bytes.length ? ts_status_context(fe_state_dict_read_bytes(a->arena, a->mapping, bytes,
                                                                         a->zip->ignore_crc,
                                                                         &out->weights),
                                                "reading %s", old)
                            : NULL;
    }
    out->folder = ts_arena_format(a->arena, "%.*sdata/%s/", (int)a->top.length, a->top.data, kind);
    /* One table for a program, named after it; the only one of older files has other names. */
    m = fe_zip_find(a->zip, ts_arena_format(a->arena, "%.*s%.*s_%s_config.json", TS_STR_ARG(out->folder),
                                            TS_STR_ARG(a->exported->name), kind));
    for (size_t i = 0; i < a->zip->count && !m; i++) {
        ts_str name = a->zip->members[i].name;
        if (ts_str_starts_with(name, ts_arena_format(a->arena, "%.*s", (int)out->folder.length,
                                                     out->folder.data).data) &&
            ts_str_ends_with(name, "_config.json"))
            m = &a->zip->members[i];
    }
    if (!m)
        return NULL;
    TS_TRY(fe_zip_read(a->zip, a->arena, m, FE_EXPORTED_MAX_JSON, &bytes));
    return fe_exported_parse(a->arena, bytes, &out->table);
}

static void payload_close(payload *p) {
    json_decref(p->table);
    fe_weights_deinit(&p->weights);
}

static ts_status set_fields(fe_archive *a, fe_records *records, payload *weights,
                            payload *constants, const ir_class *c, rt_object *object) {
    const fe_exported *e = a->exported;
    for (size_t i = 0; i < e->field_count; i++) {
        const fe_exported_field *f = &e->fields[i];
        rt_tensor *t = NULL;
        TS_TRY(payload_find(a, records, f->is_constant ? constants : weights, f->weight, &t));
        if (!t) /* buffers that are not persistent lie among the constants */
            TS_TRY(payload_find(a, records, f->is_constant ? weights : constants, f->weight, &t));
        if (!t)
            return fe_exported_bad("weight %.*s is missing", TS_STR_ARG(f->weight));
        int64_t at = rt_class_field(&c->base, f->name);
        if (at < 0 || (size_t)at >= object->field_count ||
            object->fields[at].tag != RT_TAG_UNINITIALIZED) {
            rt_tensor_release(t);
            return fe_exported_bad("weight %.*s is given twice", TS_STR_ARG(f->weight));
        }
        rt_assign(&object->fields[at], rt_from_tensor(t));
    }
    return NULL;
}

ts_status fe_exported_load(fe_archive *a, const fe_torchscript_classes *classes,
                           fe_records *records, fe_torchscript_objects *out) {
    const ir_class *c = NULL;
    TS_TRY(classes->find(classes->user, TS_STR("__torch__.Program"), &c));
    if (!c)
        return fe_exported_bad("the graph cannot be read");
    TS_TRY(rt_object_make(&c->base, &out->root));
    TS_APPEND(a->arena, a->owned, a->owned_count, a->owned_capacity, out->root);
    payload weights = {0}, constants = {0};
    ts_status status = payload_open(a, "weights", "serialized_state_dict.pt", &weights);
    if (!status)
        status = payload_open(a, "constants", "serialized_constants.pt", &constants);
    if (!status)
        status = set_fields(a, records, &weights, &constants, c, out->root.as.object);
    payload_close(&weights);
    payload_close(&constants);
    return status;
}

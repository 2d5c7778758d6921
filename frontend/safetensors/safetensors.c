/* frontend/safetensors/safetensors.c - reads and writes safetensors. */
#include "frontend/safetensors/safetensors.h"

#include <jansson.h>
#include <stdlib.h>

#include "runtime/base/buffer.h"
#include "runtime/base/checked.h"
#include "runtime/base/file.h"

static const struct {
    const char *name;
    int dtype;
    size_t bytes;
} dtypes[] = {{"U8", 0, 1},   {"I8", 1, 1},    {"I16", 2, 2}, {"I32", 3, 4},
              {"I64", 4, 8},  {"F16", 5, 2},   {"F32", 6, 4}, {"F64", 7, 8},
              {"C64", 9, 8},  {"BOOL", 11, 1}, {"BF16", 15, 2}};
enum { DTYPE_COUNT = sizeof dtypes / sizeof *dtypes };

static ts_status bad(const char *text) {
    return ts_error_make(TS_ERR_INVALID_FILE, "not a valid safetensors file: %s", text);
}

static ts_status bad_entry(const char *name, const char *text) {
    return ts_error_make(TS_ERR_INVALID_FILE, "tensor '%.80s': %s", name, text);
}

bool safetensors_is_shallow(ts_str text, int limit) {
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.length; i++) {
        char c = text.data[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > limit)
                return false;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return true;
}

static ts_status read_shape(const char *name, const json_t *shape, safetensors_entry *e,
                            size_t *out_count) {
    if (!json_is_array(shape))
        return bad_entry(name, "shape: expected a list of ints");
    e->rank = json_array_size(shape);
    if (e->rank > 64)
        return bad_entry(name, "rank above 64");
    e->sizes = calloc(e->rank + 1, sizeof *e->sizes);
    if (!e->sizes)
        return ts_no_memory();
    size_t count = 1;
    for (size_t i = 0; i < e->rank; i++) {
        const json_t *size = json_array_get(shape, i);
        if (!json_is_integer(size) || json_integer_value(size) < 0)
            return bad_entry(name, "shape: expected ints of 0 or more");
        e->sizes[i] = json_integer_value(size);
        if (!ts_mul_size(count, (size_t)e->sizes[i], &count))
            return bad_entry(name, "the sizes multiply to more than 64 bits");
    }
    *out_count = count;
    return NULL;
}

static ts_status read_entry(const char *name, const json_t *info, ts_str data,
                            safetensors_entry *e) {
    if (!json_is_object(info))
        return bad_entry(name, "expected an object");
    size_t length = strlen(name);
    char *copy = malloc(length + 1);
    if (!copy)
        return ts_no_memory();
    memcpy(copy, name, length + 1);
    e->name = (ts_str){copy, length};
    const char *dtype = json_string_value(json_object_get(info, "dtype"));
    size_t at = 0, count = 0, bytes = 0;
    while (dtype && at < DTYPE_COUNT && strcmp(dtypes[at].name, dtype) != 0)
        at++;
    if (!dtype || at == DTYPE_COUNT)
        return ts_error_make(TS_ERR_INVALID_FILE, "tensor '%.80s': dtype %.20s is not known", name,
                             dtype ? dtype : "(none)");
    e->dtype = dtypes[at].dtype;
    TS_TRY(read_shape(name, json_object_get(info, "shape"), e, &count));
    const json_t *offsets = json_object_get(info, "data_offsets");
    const json_t *first = json_array_get(offsets, 0), *last = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(last))
        return bad_entry(name, "data_offsets: expected two ints");
    json_int_t begin = json_integer_value(first), end = json_integer_value(last);
    if (begin < 0 || end < begin || (uint64_t)end > data.length)
        return bad_entry(name, "data_offsets: expected 0 <= begin <= end <= bytes of data");
    if (!ts_mul_size(count, dtypes[at].bytes, &bytes) || bytes != (uint64_t)(end - begin))
        return bad_entry(name, "data_offsets and shape disagree");
    e->data = data.data + begin;
    e->bytes = bytes;
    return NULL;
}

static ts_status check_metadata(const json_t *metadata) {
    const char *key;
    const json_t *value;
    if (!json_is_object(metadata))
        return bad("__metadata__: expected an object");
    union {
        const json_t *in;
        json_t *out;
    } cast = {.in = metadata};
    for (void *i = json_object_iter(cast.out); i; i = json_object_iter_next(cast.out, i)) {
        key = json_object_iter_key(i);
        value = json_object_iter_value(i);
        if (!json_is_string(value))
            return ts_error_make(TS_ERR_INVALID_FILE, "not a valid safetensors file: __metadata__ "
                                 "'%.80s': expected a string", key);
    }
    return NULL;
}

static int by_place(const void *a, const void *b) {
    const safetensors_entry *x = a, *y = b;
    const char *p = x->data, *q = y->data;
    if (p != q)
        return p < q ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1; /* empty ones before what starts there */
    return ts_str_compare(x->name, y->name);
}

static ts_status read_all(json_t *root, ts_str data, safetensors_file *out) {
    out->entries = calloc(json_object_size(root) + 1, sizeof *out->entries);
    if (!out->entries)
        return ts_no_memory();
    for (void *i = json_object_iter(root); i; i = json_object_iter_next(root, i)) {
        const char *name = json_object_iter_key(i);
        const json_t *info = json_object_iter_value(i);
        if (strcmp(name, "__metadata__") == 0) {
            TS_TRY(check_metadata(info));
            continue;
        }
        TS_TRY(read_entry(name, info, data, &out->entries[out->count++]));
    }
    qsort(out->entries, out->count, sizeof *out->entries, by_place);
    const char *expected = data.data;
    for (size_t i = 0; i < out->count; i++) {
        if (out->entries[i].data != expected)
            return bad_entry(out->entries[i].name.data, "a hole or an overlap before its data");
        expected = (const char *)out->entries[i].data + out->entries[i].bytes;
    }
    if (expected != data.data + data.length)
        return bad("bytes after the last tensor");
    return NULL;
}

ts_status safetensors_parse(ts_str bytes, safetensors_file *out) {
    *out = (safetensors_file){0};
    if (bytes.length < 8)
        return bad("shorter than 8 bytes");
    uint64_t length = 0;
    for (int i = 8; i--;)
        length = length << 8 | (unsigned char)bytes.data[i];
    if (length > SAFETENSORS_MAX_HEADER)
        return bad("header of more than 100 MB");
    if (length > bytes.length - 8)
        return bad("the header is longer than the file");
    ts_str header = {bytes.data + 8, (size_t)length};
    if (header.length == 0 || header.data[0] != '{')
        return bad("the header does not start with '{'");
    if (!safetensors_is_shallow(header, SAFETENSORS_MAX_DEPTH))
        return bad("the header is nested too deeply");
    json_error_t error;
    json_t *root = json_loadb(header.data, header.length, JSON_REJECT_DUPLICATES, &error);
    if (!root && json_error_code(&error) == json_error_out_of_memory)
        return ts_no_memory();
    if (!root)
        return ts_error_make(TS_ERR_INVALID_FILE, "not a valid safetensors file: header: %s",
                             error.text);
    ts_str data = {header.data + header.length, bytes.length - 8 - header.length};
    ts_status status = json_is_object(root) ? read_all(root, data, out)
                                            : bad("the header is no object");
    json_decref(root);
    if (status)
        safetensors_deinit(out);
    return status;
}

void safetensors_deinit(safetensors_file *file) {
    for (size_t i = 0; i < file->count; i++) {
        union {
            const char *in;
            char *out;
        } cast = {.in = file->entries[i].name.data};
        free(cast.out);
        free(file->entries[i].sizes);
    }
    free(file->entries);
    *file = (safetensors_file){0};
}

const safetensors_entry *safetensors_find(const safetensors_file *file, ts_str name) {
    for (size_t i = 0; i < file->count; i++)
        if (ts_str_equal(file->entries[i].name, name))
            return &file->entries[i];
    return NULL;
}

static int dtype_row(int dtype) {
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (dtypes[i].dtype == dtype)
            return i;
    return -1;
}

ts_status safetensors_write(const char *path, const safetensors_entry *entries, size_t count) {
    ts_file_part *parts = calloc(count + 2, sizeof *parts);
    if (!parts)
        return ts_no_memory();
    ts_buffer header = {0}, prefix = {0};
    ts_status status = NULL;
    size_t offset = 0, part = 2;
    ts_buffer_char(&header, '{');
    for (size_t width = 8; width && !status; width /= 2)
        for (size_t i = 0; i < count && !status; i++) {
            const safetensors_entry *e = &entries[i];
            int row = dtype_row(e->dtype);
            if (row < 0)
                status = ts_error_make(TS_ERR_UNSUPPORTED, "tensor '%.*s' has a dtype that "
                                       "safetensors cannot hold", TS_STR_ARG(e->name));
            if (row < 0 || dtypes[row].bytes != width)
                continue;
            ts_buffer_text(&header, part > 2 ? "," : "");
            ts_buffer_json(&header, e->name);
            ts_buffer_format(&header, ":{\"dtype\":\"%s\",\"shape\":[", dtypes[row].name);
            for (size_t k = 0; k < e->rank; k++)
                ts_buffer_format(&header, "%s%lld", k ? "," : "", (long long)e->sizes[k]);
            ts_buffer_format(&header, "],\"data_offsets\":[%zu,%zu]}", offset, offset + e->bytes);
            offset += e->bytes;
            parts[part++] = (ts_file_part){.data = e->data, .length = e->bytes};
        }
    ts_buffer_char(&header, '}');
    while (header.length % 8 && !header.failed)
        ts_buffer_char(&header, ' ');
    for (unsigned i = 0; i < 8; i++)
        ts_buffer_char(&prefix, (char)(header.length >> 8 * i & 255));
    if (!status)
        status = ts_buffer_status(&header);
    if (!status)
        status = ts_buffer_status(&prefix);
    parts[0] = (ts_file_part){.data = prefix.data, .length = prefix.length};
    parts[1] = (ts_file_part){.data = header.data, .length = header.length};
    if (!status)
        status = ts_file_write(path, parts, part);
    ts_buffer_deinit(&header);
    ts_buffer_deinit(&prefix);
    free(parts);
    return status;
}

/* tools/tsrun_tensors.c - tensors from and to safetensors files. */
#include "tools/tsrun.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ts_status tsrun_status(tsrt_status *status) {
    if (!status)
        return NULL;
    size_t length = 0;
    int line = 0, column = 0;
    const char *exception = tsrt_status_exception(status);
    const char *file = tsrt_status_place(status, &length, &line, &column);
    const char *message = tsrt_status_message(status), *trail = tsrt_status_trail(status);
    ts_code code = (ts_code)tsrt_status_code(status);
    ts_status out = code == TS_ERR_NO_MEMORY && !tsrt_status_message(status)[0]
                        ? ts_no_memory()
                    : exception[0] ? ts_raise_str(ts_str_of(exception), ts_str_of(message))
                                   : ts_error_make(code, "%s", message);
    if (line)
        out = ts_status_set_place(out, (ts_place){{file, length}, line, column, 0});
    /* Each line of the trail begins with the word that adding it puts there again. */
    for (const char *p = trail; *p;) {
        size_t n = strcspn(p, "\n"), skip = strncmp(p, "while ", 6) == 0 ? 6 : 0;
        out = ts_status_context(out, "%.*s", (int)(n - skip), p + skip);
        p += n + (p[n] == '\n');
    }
    tsrt_status_release(status);
    return out;
}

ts_status tsrun_inputs_open(const char *path, tsrun_inputs *out) {
    *out = (tsrun_inputs){0};
    TS_TRY(ts_file_map(path, &out->file));
    ts_str bytes = {(const char *)out->file.data, out->file.length};
    ts_status status = safetensors_parse(bytes, &out->tensors);
    if (!status) {
        out->used = calloc(out->tensors.count + 1, sizeof *out->used);
        if (!out->used)
            status = ts_no_memory();
    }
    if (status)
        tsrun_inputs_close(out);
    return ts_status_set_place(status, (ts_place){ts_str_of(path), 0, 0, 0});
}

void tsrun_inputs_close(tsrun_inputs *inputs) {
    safetensors_deinit(&inputs->tensors);
    ts_file_unmap(&inputs->file);
    free(inputs->used);
    inputs->used = NULL;
}

const safetensors_entry *tsrun_inputs_find(const tsrun_inputs *inputs, ts_str name) {
    return safetensors_find(&inputs->tensors, name);
}

ts_status tsrun_inputs_get(tsrun_inputs *inputs, ts_str name, tsrt_value **out) {
    *out = NULL;
    const safetensors_entry *e = tsrun_inputs_find(inputs, name);
    if (!e)
        return ts_error_make(TS_ERR_INVALID_INPUT, "tensor '%.*s' is not in the file of --inputs",
                             TS_STR_ARG(name));
    inputs->used[e - inputs->tensors.entries] = true;
    TS_TRY(tsrun_status(tsrt_value_make_tensor((tsrt_dtype)e->dtype, e->sizes, (int)e->rank, out)));
    tsrt_tensor_view view = {.size = sizeof view};
    ts_status status = tsrun_status(tsrt_value_view_tensor(*out, &view));
    if (status) {
        tsrt_value_release(*out);
        *out = NULL;
        return status;
    }
    if (e->bytes)
        memcpy(view.data, e->data, e->bytes);
    return NULL;
}

static ts_status grow(tsrun_outputs *o) {
    if (o->count < o->capacity)
        return NULL;
    size_t capacity = o->capacity ? 2 * o->capacity : 16;
    void *entries = realloc(o->entries, capacity * sizeof *o->entries);
    if (entries)
        o->entries = entries;
    void *held = realloc(o->held, capacity * sizeof *o->held);
    if (held)
        o->held = held;
    void *copies = realloc(o->copies, capacity * sizeof *o->copies);
    if (copies)
        o->copies = copies;
    if (!entries || !held || !copies)
        return ts_no_memory();
    o->capacity = capacity;
    return NULL;
}

/* Appends an entry whose memory is held's or copy's; takes both. */
static ts_status append(tsrun_outputs *o, const char *name, safetensors_entry e, tsrt_value *held,
                        void *copy) {
    size_t length = strlen(name);
    char *own = malloc(length + 1);
    int64_t *sizes = calloc(e.rank + 1, sizeof *sizes);
    ts_status status = own && sizes ? grow(o) : ts_no_memory();
    if (status) {
        free(own);
        free(sizes);
        free(copy);
        tsrt_value_release(held);
        return status;
    }
    memcpy(own, name, length + 1);
    if (e.rank)
        memcpy(sizes, e.sizes, e.rank * sizeof *sizes);
    e.name = (ts_str){own, length};
    e.sizes = sizes;
    o->entries[o->count] = e;
    o->held[o->count] = held;
    o->copies[o->count++] = copy;
    return NULL;
}

ts_status tsrun_outputs_add(tsrun_outputs *o, const char *name, const tsrt_value *tensor) {
    tsrt_value *dense = NULL;
    TS_TRY(tsrun_status(tsrt_value_contiguous(tensor, &dense)));
    tsrt_tensor_view view = {.size = sizeof view};
    ts_status status = tsrun_status(tsrt_value_view_tensor(dense, &view));
    if (status) {
        tsrt_value_release(dense);
        return status;
    }
    int dtype = (int)view.dtype;
    /* The integers of a quantized tensor; the tree says what they mean. */
    if (dtype == TSRT_QINT8)
        dtype = TSRT_INT8;
    else if (dtype == TSRT_QUINT8)
        dtype = TSRT_UINT8;
    else if (dtype == TSRT_QINT32)
        dtype = TSRT_INT32;
    union {
        const int64_t *in;
        int64_t *out;
    } sizes = {.in = view.sizes};
    safetensors_entry e = {.dtype = dtype, .sizes = sizes.out, .rank = (size_t)view.rank,
                           .bytes = (size_t)view.element_count * tsrt_dtype_bytes(view.dtype)};
    /* A copy: a later call may write the tensor, which can be the model's state. */
    void *copy = malloc(e.bytes + 1);
    if (!copy) {
        tsrt_value_release(dense);
        return ts_no_memory();
    }
    if (e.bytes)
        memcpy(copy, view.data, e.bytes);
    e.data = copy;
    return append(o, name, e, dense, copy);
}

ts_status tsrun_outputs_add_number(tsrun_outputs *o, const char *name, const tsrt_value *number) {
    char *copy = calloc(1, 16);
    if (!copy)
        return ts_no_memory();
    safetensors_entry e = {.data = copy, .bytes = 8, .dtype = TSRT_INT64};
    tsrt_kind kind = tsrt_value_kind(number);
    if (kind == TSRT_BOOL) {
        copy[0] = (char)(tsrt_value_bool(number) != 0);
        e.dtype = TSRT_BOOL8;
        e.bytes = 1;
    } else if (kind == TSRT_INT) {
        int64_t i = tsrt_value_int(number);
        memcpy(copy, &i, sizeof i);
    } else if (kind == TSRT_FLOAT) {
        double f = tsrt_value_float(number);
        memcpy(copy, &f, sizeof f);
        e.dtype = TSRT_FLOAT64;
    } else {
        double re = 0, im = 0;
        tsrt_value_complex(number, &re, &im);
        float parts[2] = {(float)re, (float)im}; /* the format has no complex128 */
        memcpy(copy, parts, sizeof parts);
        e.dtype = TSRT_COMPLEX64;
    }
    return append(o, name, e, NULL, copy);
}

void tsrun_outputs_deinit(tsrun_outputs *o) {
    for (size_t i = 0; i < o->count; i++) {
        union {
            const char *in;
            char *out;
        } cast = {.in = o->entries[i].name.data};
        free(cast.out);
        free(o->entries[i].sizes);
        free(o->copies[i]);
        tsrt_value_release(o->held[i]);
    }
    free(o->entries);
    free(o->held);
    free(o->copies);
    *o = (tsrun_outputs){0};
}

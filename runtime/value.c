/* runtime/value.c - handles of values for the public interface. */
#include "runtime/runtime_internal.h"

#include <stdlib.h>

ts_status rt_value_wrap(rt_value v, tsrt_model *model, tsrt_value **out) {
    tsrt_value *h = malloc(sizeof *h);
    *out = h;
    if (!h) {
        rt_release(v);
        return ts_no_memory();
    }
    atomic_init(&h->references, 1);
    h->value = v;
    /* Only objects, tuples with names, enums and what may hold them point into the model. */
    h->model = model && v.tag >= RT_TAG_LIST ? tsrt_model_retain(model) : NULL;
    h->whole = NULL;
    atomic_init(&h->may_cycle, false);
    return NULL;
}

tsrt_value *tsrt_value_retain(tsrt_value *value) {
    atomic_fetch_add_explicit(&value->references, 1, memory_order_relaxed);
    return value;
}

void tsrt_value_release(tsrt_value *value) {
    if (!value || atomic_fetch_sub_explicit(&value->references, 1, memory_order_acq_rel) != 1)
        return;
    if (atomic_load_explicit(&value->may_cycle, memory_order_relaxed))
        rt_cycles_release_value(value->value);
    else
        rt_release(value->value);
    tsrt_value_release(value->whole); /* one step: that is no item */
    tsrt_model_release(value->model);
    free(value);
}

static ts_status bad(const char *what) { return ts_error_make(TS_ERR_INVALID_INPUT, "%s", what); }

/* ---- making ---- */

tsrt_status *tsrt_value_make_none(tsrt_value **out_value) {
    return rt_out(rt_value_wrap(rt_none(), NULL, out_value));
}

tsrt_status *tsrt_value_make_bool(int b, tsrt_value **out_value) {
    return rt_out(rt_value_wrap(rt_bool(b != 0), NULL, out_value));
}

tsrt_status *tsrt_value_make_int(int64_t i, tsrt_value **out_value) {
    return rt_out(rt_value_wrap(rt_int(i), NULL, out_value));
}

tsrt_status *tsrt_value_make_float(double f, tsrt_value **out_value) {
    return rt_out(rt_value_wrap(rt_float(f), NULL, out_value));
}

static tsrt_status *wrap_made(ts_status status, rt_value v, tsrt_value **out_value) {
    *out_value = NULL;
    return rt_out(status ? status : rt_value_wrap(v, NULL, out_value));
}

tsrt_status *tsrt_value_make_complex(double re, double im, tsrt_value **out_value) {
    rt_value v = rt_none();
    ts_status status = rt_complex_make(re, im, &v);
    return wrap_made(status, v, out_value);
}

tsrt_status *tsrt_value_make_str(const char *text, size_t length, tsrt_value **out_value) {
    rt_value v = rt_none();
    ts_status status = rt_str_make((ts_str){text, length}, &v);
    return wrap_made(status, v, out_value);
}

/* A container keeps one model alive: the first that its items name. */
static tsrt_model *model_of(tsrt_value *const *items, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (items[i] && items[i]->model)
            return items[i]->model;
    return NULL;
}

static bool has_cycles(tsrt_value *const *items, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (items[i] && (items[i]->whole ||
                         atomic_load_explicit(&items[i]->may_cycle, memory_order_relaxed)))
            return true;
    return false;
}

static rt_value content(const tsrt_value *v) { return v ? v->value : rt_none(); }

/* A handle of a list, tuple or dict that was made of these. */
static ts_status wrap_container(rt_value v, tsrt_value *const *items, size_t count,
                                tsrt_value *const *more, size_t more_count, tsrt_value **out) {
    tsrt_model *model = model_of(items, count);
    TS_TRY(rt_value_wrap(v, model ? model : model_of(more, more_count), out));
    if (has_cycles(items, count) || has_cycles(more, more_count))
        atomic_store_explicit(&(*out)->may_cycle, true, memory_order_relaxed);
    return NULL;
}

tsrt_status *tsrt_value_make_list(tsrt_value *const *items, size_t count,
                                  tsrt_value **out_value) {
    *out_value = NULL;
    rt_value list;
    ts_status status = rt_list_make(count, &list);
    if (status)
        return rt_out(status);
    for (size_t i = 0; i < count && !status; i++)
        status = rt_list_append(list.as.list, content(items[i]));
    if (status) {
        rt_release(list);
        return rt_out(status);
    }
    return rt_out(wrap_container(list, items, count, NULL, 0, out_value));
}

tsrt_status *tsrt_value_make_tuple(tsrt_value *const *items, size_t count,
                                   tsrt_value **out_value) {
    *out_value = NULL;
    rt_value tuple;
    ts_status status = rt_tuple_make(count, &tuple);
    if (status)
        return rt_out(status);
    for (size_t i = 0; i < count; i++)
        tuple.as.tuple->items[i] = rt_retain(content(items[i]));
    return rt_out(wrap_container(tuple, items, count, NULL, 0, out_value));
}

tsrt_status *tsrt_value_make_dict(tsrt_value *const *keys, tsrt_value *const *values, size_t count,
                                  tsrt_value **out_value) {
    *out_value = NULL;
    rt_value dict;
    ts_status status = rt_dict_make(&dict);
    if (status)
        return rt_out(status);
    for (size_t i = 0; i < count && !status; i++)
        status = rt_dict_set(dict.as.dict, content(keys[i]), content(values[i]));
    if (status) {
        rt_release(dict);
        return rt_out(status);
    }
    return rt_out(wrap_container(dict, values, count, keys, count, out_value));
}

tsrt_status *tsrt_value_make_device(const char *text, tsrt_value **out_value) {
    static const char *const names[] = {"cpu", "cuda", "opencl", "meta"};
    *out_value = NULL;
    const char *colon = text ? strchr(text, ':') : NULL;
    size_t length = !text ? 0 : colon ? (size_t)(colon - text) : strlen(text);
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == length && memcmp(names[i], text, length) == 0) {
            rt_value v = {.tag = RT_TAG_DEVICE, .aux = i, .as.i = colon ? atoi(colon + 1) : -1};
            return rt_out(rt_value_wrap(v, NULL, out_value));
        }
    return rt_out(bad("expected a device such as cpu or cuda:0"));
}

/* ---- tensors ---- */

tsrt_status *tsrt_value_make_tensor(tsrt_dtype dtype, const int64_t *sizes, int rank,
                                    tsrt_value **out_value) {
    *out_value = NULL;
    rt_tensor *t;
    ts_status status = rt_tensor_make((rt_dtype)dtype, sizes, rank, &t);
    return rt_out(status ? status : rt_value_wrap(rt_from_tensor(t), NULL, out_value));
}

typedef struct borrowed {
    void (*release)(void *user);
    void *user;
} borrowed;

static void let_go(rt_storage *storage) {
    borrowed *b = storage->owner;
    if (b->release)
        b->release(b->user);
    free(b);
}

/* Bytes from the first element to behind the last one. */
static ts_status extent_of(rt_dtype dtype, const int64_t *sizes, const int64_t *strides, int rank,
                           size_t *out) {
    int64_t last = 0, bytes;
    *out = 0;
    if (rank < 0 || rank > RT_MAX_RANK || !rt_dtype_size(dtype))
        return bad("expected a known dtype and a rank from 0 to 64");
    for (int i = 0; i < rank; i++) {
        if (sizes[i] < 0 || strides[i] < 0)
            return bad("expected sizes and strides that are not negative");
        if (sizes[i] == 0)
            return NULL;
    }
    for (int i = 0; i < rank; i++) {
        int64_t step;
        if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &step) ||
            __builtin_add_overflow(last, step, &last))
            return bad("sizes and strides overflow");
    }
    if (__builtin_add_overflow(last, 1, &last) ||
        __builtin_mul_overflow(last, (int64_t)rt_dtype_size(dtype), &bytes))
        return bad("sizes and strides overflow");
    *out = (size_t)bytes;
    return NULL;
}

tsrt_status *tsrt_value_wrap_tensor(tsrt_dtype dtype, const int64_t *sizes, const int64_t *strides,
                                    int rank, void *data, void (*release)(void *user), void *user,
                                    tsrt_value **out_value) {
    *out_value = NULL;
    int64_t own[RT_MAX_RANK];
    if (rank < 0 || rank > RT_MAX_RANK)
        return rt_out(bad("expected a rank from 0 to 64"));
    if (!strides) {
        rt_contiguous_strides(sizes, rank, own);
        strides = own;
    }
    size_t bytes;
    ts_status status = extent_of((rt_dtype)dtype, sizes, strides, rank, &bytes);
    if (status)
        return rt_out(status);
    if (bytes && !data)
        return rt_out(bad("expected memory for a tensor with elements, found NULL"));
    size_t align = rt_dtype_size((rt_dtype)dtype);
    if (align > 8)
        align = 8;
    if (bytes && (uintptr_t)data % align)
        return rt_out(bad("the tensor's memory is not aligned to its element type"));
    borrowed *b = malloc(sizeof *b);
    if (!b)
        return rt_out(ts_no_memory());
    rt_storage *storage;
    /* The release function is set once nothing can fail: on an error the caller keeps it. */
    *b = (borrowed){NULL, user};
    status = rt_storage_wrap(data, bytes, let_go, b, &storage);
    if (status) {
        free(b);
        return rt_out(status);
    }
    rt_tensor *t;
    status = rt_tensor_view(storage, (rt_dtype)dtype, 0, sizes, strides, rank, &t);
    rt_storage_release(storage);
    if (!status)
        status = rt_value_wrap(rt_from_tensor(t), NULL, out_value);
    if (!status)
        b->release = release;
    return rt_out(status);
}

tsrt_status *tsrt_value_view_tensor(const tsrt_value *value, tsrt_tensor_view *out_view) {
    if (content(value).tag != RT_TAG_TENSOR)
        return rt_out(bad("expected a tensor"));
    const rt_tensor *t = value->value.as.tensor;
    tsrt_tensor_view v = {.size = out_view->size,
                          .dtype = (tsrt_dtype)t->dtype,
                          .rank = t->rank,
                          .sizes = t->sizes,
                          .strides = t->strides,
                          .data = t->data,
                          .element_count = t->element_count,
                          .is_contiguous = rt_tensor_is_contiguous(t)};
    if (v.size < sizeof v.size || v.size > 4096)
        return rt_out(bad("the struct's size member must be set to its sizeof"));
    memcpy(out_view, &v, v.size < sizeof v ? v.size : sizeof v);
    return NULL;
}

tsrt_status *tsrt_value_contiguous(const tsrt_value *value, tsrt_value **out_value) {
    *out_value = NULL;
    if (content(value).tag != RT_TAG_TENSOR)
        return rt_out(bad("expected a tensor"));
    rt_tensor *t;
    ts_status status = rt_tensor_contiguous(value->value.as.tensor, &t);
    return rt_out(status ? status : rt_value_wrap(rt_from_tensor(t), NULL, out_value));
}

const char *tsrt_dtype_name(tsrt_dtype dtype) { return rt_dtype_name((rt_dtype)dtype); }
size_t tsrt_dtype_bytes(tsrt_dtype dtype) { return rt_dtype_size((rt_dtype)dtype); }
int tsrt_dtype_parse(const char *name) { return (int)rt_dtype_parse(ts_str_of(name)); }

/* ---- reading ---- */

tsrt_kind tsrt_value_kind(const tsrt_value *value) {
    switch (content(value).tag) {
    case RT_TAG_NONE: return TSRT_NONE;
    case RT_TAG_BOOL: return TSRT_BOOL;
    case RT_TAG_INT: return TSRT_INT;
    case RT_TAG_FLOAT: return TSRT_FLOAT;
    case RT_TAG_COMPLEX: return TSRT_COMPLEX;
    case RT_TAG_STR: return TSRT_STR;
    case RT_TAG_TENSOR: return TSRT_TENSOR;
    case RT_TAG_LIST: return rt_marks(value->value.as.counted) & RT_MARK_TUPLE ? TSRT_TUPLE : TSRT_LIST;
    case RT_TAG_TUPLE: return TSRT_TUPLE;
    case RT_TAG_DICT: return TSRT_DICT;
    case RT_TAG_OBJECT: return TSRT_OBJECT;
    case RT_TAG_ENUM: return TSRT_ENUM;
    case RT_TAG_DEVICE: return TSRT_DEVICE;
    default: return TSRT_OTHER;
    }
}

int tsrt_value_bool(const tsrt_value *value) {
    return content(value).tag == RT_TAG_BOOL && value->value.as.i != 0;
}

int64_t tsrt_value_int(const tsrt_value *value) {
    uint32_t tag = content(value).tag;
    return tag == RT_TAG_INT || tag == RT_TAG_BOOL ? value->value.as.i : 0;
}

double tsrt_value_float(const tsrt_value *value) {
    return content(value).tag == RT_TAG_FLOAT ? value->value.as.f : (double)tsrt_value_int(value);
}

void tsrt_value_complex(const tsrt_value *value, double *out_re, double *out_im) {
    bool is = content(value).tag == RT_TAG_COMPLEX;
    *out_re = is ? value->value.as.complex->re : tsrt_value_float(value);
    *out_im = is ? value->value.as.complex->im : 0;
}

const char *tsrt_value_str(const tsrt_value *value, size_t *out_length) {
    bool is = content(value).tag == RT_TAG_STR;
    if (out_length)
        *out_length = is ? value->value.as.str->length : 0;
    return is ? value->value.as.str->data : "";
}

size_t tsrt_value_count(const tsrt_value *value) {
    rt_value v = content(value);
    switch (v.tag) {
    case RT_TAG_LIST: return v.as.list->count;
    case RT_TAG_TUPLE: return v.as.tuple->count;
    case RT_TAG_DICT: return v.as.dict->live_count;
    case RT_TAG_OBJECT: return v.as.object->field_count;
    case RT_TAG_ENUM: return 1;
    default: return 0;
    }
}

static rt_dict_entry *entry_at(const rt_dict *dict, size_t index) {
    size_t at = 0;
    rt_dict_entry *e = NULL;
    for (size_t i = 0; i <= index; i++)
        e = rt_dict_next(dict, &at);
    return e;
}

/* A handle of a part. Where the whole may hold itself, it is kept until all its parts are released:
 * one search then, not one for each part. */
static ts_status wrap_part(const tsrt_value *of, rt_value part, tsrt_value **out) {
    TS_TRY(rt_value_wrap(rt_retain(part), of->model, out));
    tsrt_value *self = (tsrt_value *)(uintptr_t)of; /* counting is no change */
    if (of->whole)
        (*out)->whole = tsrt_value_retain(of->whole);
    else if (atomic_load_explicit(&self->may_cycle, memory_order_relaxed))
        (*out)->whole = tsrt_value_retain(self);
    return NULL;
}

tsrt_status *tsrt_value_item(const tsrt_value *value, size_t index, tsrt_value **out_item) {
    *out_item = NULL;
    if (index >= tsrt_value_count(value))
        return rt_out(bad("there is no such item"));
    rt_value v = content(value), item = rt_none();
    switch (v.tag) {
    case RT_TAG_LIST: item = v.as.list->items[index]; break;
    case RT_TAG_TUPLE: item = v.as.tuple->items[index]; break;
    case RT_TAG_DICT: item = entry_at(v.as.dict, index)->value; break;
    case RT_TAG_OBJECT: item = v.as.object->fields[index]; break;
    default: item = v.as.enumeration->value; break;
    }
    return rt_out(wrap_part(value, item, out_item));
}

tsrt_status *tsrt_value_key(const tsrt_value *dict, size_t index, tsrt_value **out_key) {
    *out_key = NULL;
    rt_value v = content(dict);
    if (v.tag != RT_TAG_DICT || index >= v.as.dict->live_count)
        return rt_out(bad("there is no such key"));
    rt_value key = entry_at(v.as.dict, index)->key;
    return rt_out(wrap_part(dict, key, out_key));
}

static const rt_class *class_of(rt_value v) {
    switch (v.tag) {
    case RT_TAG_OBJECT: return v.as.object->class_;
    case RT_TAG_ENUM: return v.as.enumeration->class_;
    case RT_TAG_TUPLE: return v.as.tuple->class_;
    default: return NULL;
    }
}

const char *tsrt_value_field_name(const tsrt_value *value, size_t index, size_t *out_length) {
    rt_value v = content(value);
    const rt_class *class_ = class_of(v);
    ts_str name = {NULL, 0};
    if (v.tag == RT_TAG_ENUM)
        name = v.as.enumeration->name;
    else if (class_ && index < class_->field_count)
        name = class_->fields[index];
    if (out_length)
        *out_length = name.length;
    return name.data;
}

const char *tsrt_value_class_name(const tsrt_value *value, size_t *out_length) {
    const rt_class *class_ = class_of(content(value));
    if (out_length)
        *out_length = class_ ? class_->bare_name.length : 0;
    return class_ ? class_->bare_name.data : NULL;
}

tsrt_status *tsrt_value_to_str(const tsrt_value *value, int is_repr, tsrt_value **out_text) {
    rt_value text = rt_none();
    ts_status status = is_repr ? rt_to_repr(content(value), &text)
                               : rt_to_str(content(value), &text);
    return wrap_made(status, text, out_text);
}

/* runtime/types.c - types while a model runs: isinstance, and arguments made fit for parameters. */
#include "runtime/runtime_internal.h"

#include <stdio.h>

enum { DEPTH_LIMIT = 64 };

static bool list_holds(const tsrt_model *m, uint32_t type, const rt_value *items, size_t count,
                       int depth) {
    for (size_t i = 0; i < count; i++)
        if (!rt_type_holds(m, type, items[i], depth))
            return false;
    return true;
}

static bool dict_holds(const tsrt_model *m, const rt_model_type *t, const rt_dict *dict,
                       int depth) {
    size_t at = 0;
    for (rt_dict_entry *e; (e = rt_dict_next(dict, &at));)
        if (!rt_type_holds(m, t->args[0], e->key, depth) ||
            !rt_type_holds(m, t->args[1], e->value, depth))
            return false;
    return true;
}

static bool tuple_holds(const tsrt_model *m, const rt_model_type *t, const rt_tuple *tuple,
                        int depth) {
    if (t->class_ && tuple->class_ != t->class_)
        return false;
    if (tuple->count != t->arg_count)
        return false;
    for (size_t i = 0; i < tuple->count; i++)
        if (!rt_type_holds(m, t->args[i], tuple->items[i], depth))
            return false;
    return true;
}

bool rt_type_holds(const tsrt_model *m, uint32_t type, rt_value v, int depth) {
    const rt_model_type *t = &m->program.types[type];
    if (depth > DEPTH_LIMIT)
        return true;
    depth++;
    switch (t->kind) {
    case TSM_TYPE_NONE: return v.tag == RT_TAG_NONE;
    case TSM_TYPE_BOOL: return v.tag == RT_TAG_BOOL;
    case TSM_TYPE_INT: return v.tag == RT_TAG_INT || v.tag == RT_TAG_BOOL; /* Python's bool is */
    case TSM_TYPE_FLOAT: return v.tag == RT_TAG_FLOAT;
    case TSM_TYPE_COMPLEX: return v.tag == RT_TAG_COMPLEX;
    case TSM_TYPE_NUMBER:
        return v.tag == RT_TAG_BOOL || v.tag == RT_TAG_INT || v.tag == RT_TAG_FLOAT ||
               v.tag == RT_TAG_COMPLEX;
    case TSM_TYPE_STR: return v.tag == RT_TAG_STR;
    case TSM_TYPE_DEVICE: return v.tag == RT_TAG_DEVICE;
    case TSM_TYPE_GENERATOR: return v.tag == RT_TAG_GENERATOR;
    case TSM_TYPE_TENSOR: return v.tag == RT_TAG_TENSOR;
    case TSM_TYPE_LIST:
        return v.tag == RT_TAG_LIST &&
               list_holds(m, t->args[0], v.as.list->items, v.as.list->count, depth);
    case TSM_TYPE_TUPLE: return v.tag == RT_TAG_TUPLE && tuple_holds(m, t, v.as.tuple, depth);
    case TSM_TYPE_DICT: return v.tag == RT_TAG_DICT && dict_holds(m, t, v.as.dict, depth);
    case TSM_TYPE_OPTIONAL:
        return v.tag == RT_TAG_NONE || rt_type_holds(m, t->args[0], v, depth);
    case TSM_TYPE_UNION:
        for (uint32_t i = 0; i < t->arg_count; i++)
            if (rt_type_holds(m, t->args[i], v, depth))
                return true;
        return false;
    case TSM_TYPE_CLASS:
        if (v.tag != RT_TAG_OBJECT)
            return false;
        return !t->class_ || t->class_->kind == RT_CLASS_INTERFACE ||
               rt_class_is_a(v.as.object->class_, t->class_);
    case TSM_TYPE_ENUM:
        return v.tag == RT_TAG_ENUM && (!t->class_ || v.as.enumeration->class_ == t->class_);
    case TSM_TYPE_CAPSULE: return v.tag == RT_TAG_CAPSULE;
    case TSM_TYPE_FUTURE: return t->arg_count ? rt_type_holds(m, t->args[0], v, depth) : true;
    case TSM_TYPE_ANY: return true;
    case TSM_TYPE_COUNT: break;
    }
    return false;
}

/* ---- arguments ---- */

void rt_describe(rt_value v, char *out, size_t capacity) {
    if (v.tag != RT_TAG_TENSOR) {
        snprintf(out, capacity, "%s", rt_tag_name(v));
        return;
    }
    const rt_tensor *t = v.as.tensor;
    size_t n = (size_t)snprintf(out, capacity, "%s[", rt_dtype_name((rt_dtype)t->dtype));
    for (int i = 0; i < t->rank && n < capacity; i++)
        n += (size_t)snprintf(out + n, capacity - n, "%s%lld", i ? "," : "",
                              (long long)t->sizes[i]);
    if (n < capacity)
        snprintf(out + n, capacity - n, "]");
}

static ts_status mismatch(const tsrt_model *m, uint32_t type, rt_value v) {
    char found[RT_DESCRIPTION];
    rt_describe(v, found, sizeof found);
    return ts_error_make(TS_ERR_INVALID_INPUT, "expected %.*s, found %s",
                         TS_STR_ARG(m->program.types[type].text), found);
}

static ts_status check_tensor(const tsrt_model *m, uint32_t type, rt_value v, int64_t *symbols) {
    const rt_model_type *t = &m->program.types[type];
    const rt_tensor *x = v.as.tensor;
    if (t->dtype != RT_DTYPE_UNKNOWN && x->dtype != t->dtype)
        return mismatch(m, type, v);
    if (t->rank < 0)
        return NULL;
    if (x->rank != t->rank)
        return mismatch(m, type, v);
    for (int i = 0; i < t->rank; i++) {
        int64_t d = t->dims[i];
        if (d >= 0 && d != x->sizes[i])
            return mismatch(m, type, v);
        if (d > TSM_DIM_SYMBOL || d >= 0)
            continue;
        int64_t *bound = &symbols[TSM_DIM_SYMBOL - d];
        if (*bound >= 0 && *bound != x->sizes[i]) {
            ts_status status = mismatch(m, type, v);
            return ts_status_context(status, "%.*s is %lld by an earlier size",
                                     TS_STR_ARG(m->program.symbols[TSM_DIM_SYMBOL - d]),
                                     (long long)*bound);
        }
        *bound = x->sizes[i];
    }
    return NULL;
}

static ts_status convert(const tsrt_model *m, uint32_t type, rt_value v, int64_t *symbols,
                         int depth, rt_value *out);

/* A list of the same object where nothing changes, else a new one. */
static ts_status convert_list(const tsrt_model *m, uint32_t type, rt_value v, int64_t *symbols,
                              int depth, rt_value *out) {
    uint32_t element = m->program.types[type].args[0];
    const rt_value *items = v.tag == RT_TAG_TUPLE ? v.as.tuple->items : v.as.list->items;
    size_t count = v.tag == RT_TAG_TUPLE ? v.as.tuple->count : v.as.list->count;
    bool changed = v.tag == RT_TAG_TUPLE;
    rt_value list;
    TS_TRY(rt_list_make(count, &list));
    for (size_t i = 0; i < count; i++) {
        rt_value item;
        ts_status status = convert(m, element, items[i], symbols, depth, &item);
        if (!status) {
            changed |= item.tag != items[i].tag || item.as.i != items[i].as.i;
            status = rt_list_append(list.as.list, item);
            rt_release(item);
        }
        if (status) {
            rt_release(list);
            return status;
        }
    }
    if (!changed) {
        rt_release(list);
        list = rt_retain(v);
    }
    *out = list;
    return NULL;
}

static ts_status convert_tuple(const tsrt_model *m, uint32_t type, rt_value v, int64_t *symbols,
                               int depth, rt_value *out) {
    const rt_model_type *t = &m->program.types[type];
    const rt_value *items = v.tag == RT_TAG_TUPLE ? v.as.tuple->items : v.as.list->items;
    size_t count = v.tag == RT_TAG_TUPLE ? v.as.tuple->count : v.as.list->count;
    if (count != t->arg_count)
        return mismatch(m, type, v);
    rt_value tuple;
    TS_TRY(rt_tuple_make(count, &tuple));
    tuple.as.tuple->class_ = t->class_;
    for (size_t i = 0; i < count; i++) {
        ts_status status =
            convert(m, t->args[i], items[i], symbols, depth, &tuple.as.tuple->items[i]);
        if (status) {
            rt_release(tuple);
            return status;
        }
    }
    *out = tuple;
    return NULL;
}

static ts_status convert_dict(const tsrt_model *m, uint32_t type, rt_value v, int64_t *symbols,
                              int depth, rt_value *out) {
    if (dict_holds(m, &m->program.types[type], v.as.dict, depth)) {
        *out = rt_retain(v);
        return NULL;
    }
    const rt_model_type *t = &m->program.types[type];
    rt_value dict;
    TS_TRY(rt_dict_make(&dict));
    size_t at = 0;
    ts_status status = NULL;
    for (rt_dict_entry *e; !status && (e = rt_dict_next(v.as.dict, &at));) {
        rt_value key = rt_none(), value = rt_none();
        status = convert(m, t->args[0], e->key, symbols, depth, &key);
        if (!status)
            status = convert(m, t->args[1], e->value, symbols, depth, &value);
        if (!status)
            status = rt_dict_set(dict.as.dict, key, value);
        rt_release(key);
        rt_release(value);
    }
    if (status)
        rt_release(dict);
    else
        *out = dict;
    return status;
}

static ts_status convert(const tsrt_model *m, uint32_t type, rt_value v, int64_t *symbols,
                         int depth, rt_value *out) {
    const rt_model_type *t = &m->program.types[type];
    *out = rt_none();
    if (depth++ > DEPTH_LIMIT)
        return ts_error_make(TS_ERR_INVALID_INPUT, "an argument is nested too deeply");
    bool is_sequence = v.tag == RT_TAG_LIST || v.tag == RT_TAG_TUPLE;
    switch (t->kind) {
    case TSM_TYPE_FLOAT:
        if (v.tag == RT_TAG_INT || v.tag == RT_TAG_BOOL) {
            *out = rt_float((double)v.as.i);
            return NULL;
        }
        break;
    case TSM_TYPE_INT:
        if (v.tag == RT_TAG_BOOL) {
            *out = rt_int(v.as.i);
            return NULL;
        }
        break;
    case TSM_TYPE_COMPLEX:
        if (v.tag == RT_TAG_FLOAT || v.tag == RT_TAG_INT)
            return rt_complex_make(v.tag == RT_TAG_FLOAT ? v.as.f : (double)v.as.i, 0, out);
        break;
    case TSM_TYPE_TENSOR:
        if (v.tag == RT_TAG_TENSOR)
            TS_TRY(check_tensor(m, type, v, symbols));
        break;
    case TSM_TYPE_LIST:
        if (is_sequence)
            return convert_list(m, type, v, symbols, depth, out);
        break;
    case TSM_TYPE_TUPLE:
        if (is_sequence)
            return convert_tuple(m, type, v, symbols, depth, out);
        break;
    case TSM_TYPE_DICT:
        if (v.tag == RT_TAG_DICT)
            return convert_dict(m, type, v, symbols, depth, out);
        break;
    case TSM_TYPE_OPTIONAL:
        if (v.tag == RT_TAG_NONE)
            return NULL;
        return convert(m, t->args[0], v, symbols, depth, out);
    default: break;
    }
    if (!rt_type_holds(m, type, v, depth))
        return mismatch(m, type, v);
    *out = rt_retain(v);
    return NULL;
}

ts_status rt_port_convert(const tsrt_model *model, const rt_port *port, rt_value v,
                          int64_t *symbols, rt_value *out) {
    ts_status status = convert(model, port->type, v, symbols, 0, out);
    return status ? ts_status_context(status, "taking input %.*s", TS_STR_ARG(port->name))
                  : NULL;
}

/* runtime/values/python.c - truth, equality, order, hash and identity with Python's meaning. */
#include <math.h>

#include "runtime/base/hash.h"
#include "runtime/values/values_internal.h"

ts_status rt_depth_error(void) {
    return ts_raise("RecursionError", "maximum recursion depth exceeded");
}

const char *rt_tag_name(rt_value v) {
    switch ((rt_tag)v.tag) {
    case RT_TAG_NONE:
        return "NoneType";
    case RT_TAG_BOOL:
        return "bool";
    case RT_TAG_INT:
        return "int";
    case RT_TAG_FLOAT:
        return "float";
    case RT_TAG_DEVICE:
        return "torch.device";
    case RT_TAG_UNINITIALIZED:
        return "uninitialized";
    case RT_TAG_COMPLEX:
        return "complex";
    case RT_TAG_STR:
        return "str";
    case RT_TAG_TENSOR:
        return "Tensor";
    case RT_TAG_LIST:
        return "list";
    case RT_TAG_TUPLE:
        return "tuple";
    case RT_TAG_DICT:
        return "dict";
    case RT_TAG_OBJECT:
        return "object";
    case RT_TAG_ENUM:
        return "enum";
    case RT_TAG_GENERATOR:
        return "Generator";
    case RT_TAG_FUNCTION:
        return "function";
    case RT_TAG_CAPSULE:
        return "capsule";
    }
    return "?";
}

static ts_status tensor_truth(const rt_tensor *t, bool *out) {
    if (t->element_count == 0)
        return ts_raise("RuntimeError", "Boolean value of Tensor with no values is ambiguous");
    if (t->element_count > 1)
        return ts_raise("RuntimeError",
                        "Boolean value of Tensor with more than one value is ambiguous");
    rt_dtype dtype = (rt_dtype)t->dtype;
    rt_complex128 c = rt_load_complex(dtype, t->data);
    *out = rt_dtype_is_float(dtype) || rt_dtype_is_complex(dtype)
               ? c.re != 0 || c.im != 0
               : rt_load_int(dtype, t->data) != 0;
    return NULL;
}

ts_status rt_truth(rt_value v, bool *out) {
    *out = true;
    switch ((rt_tag)v.tag) {
    case RT_TAG_NONE:
        *out = false;
        break;
    case RT_TAG_BOOL:
    case RT_TAG_INT:
        *out = v.as.i != 0;
        break;
    case RT_TAG_FLOAT:
        *out = v.as.f != 0;
        break;
    case RT_TAG_COMPLEX:
        *out = v.as.complex->re != 0 || v.as.complex->im != 0;
        break;
    case RT_TAG_STR:
        *out = v.as.str->length != 0;
        break;
    case RT_TAG_LIST:
        *out = v.as.list->count != 0;
        break;
    case RT_TAG_TUPLE:
        *out = v.as.tuple->count != 0;
        break;
    case RT_TAG_DICT:
        *out = v.as.dict->live_count != 0;
        break;
    case RT_TAG_TENSOR:
        return tensor_truth(v.as.tensor, out);
    case RT_TAG_UNINITIALIZED:
        return ts_error_make(TS_ERR_INTERNAL, "an uninitialized value is read");
    case RT_TAG_DEVICE:
    case RT_TAG_OBJECT:
    case RT_TAG_ENUM:
    case RT_TAG_GENERATOR:
    case RT_TAG_FUNCTION:
    case RT_TAG_CAPSULE:
        break;
    }
    return NULL;
}

bool rt_is(rt_value a, rt_value b) {
    if (a.tag != b.tag)
        return false;
    switch ((rt_tag)a.tag) {
    case RT_TAG_NONE:
    case RT_TAG_UNINITIALIZED:
        return true;
    case RT_TAG_BOOL:
    case RT_TAG_INT:
        return a.as.i == b.as.i;
    case RT_TAG_FLOAT:
        return memcmp(&a.as.f, &b.as.f, sizeof a.as.f) == 0;
    case RT_TAG_DEVICE:
        return a.as.i == b.as.i && a.aux == b.aux;
    case RT_TAG_ENUM:
        return a.as.enumeration == b.as.enumeration ||
               (a.as.enumeration->class_ == b.as.enumeration->class_ &&
                ts_str_equal(a.as.enumeration->name, b.as.enumeration->name));
    case RT_TAG_COMPLEX:
    case RT_TAG_STR:
    case RT_TAG_TENSOR:
    case RT_TAG_LIST:
    case RT_TAG_TUPLE:
    case RT_TAG_DICT:
    case RT_TAG_OBJECT:
    case RT_TAG_GENERATOR:
    case RT_TAG_FUNCTION:
    case RT_TAG_CAPSULE:
        return a.as.counted == b.as.counted;
    }
    return false;
}

static bool is_integer(rt_value v) { return v.tag == RT_TAG_BOOL || v.tag == RT_TAG_INT; }
static bool is_real(rt_value v) { return is_integer(v) || v.tag == RT_TAG_FLOAT; }
static bool is_number(rt_value v) { return is_real(v) || v.tag == RT_TAG_COMPLEX; }

/* Exact order of an int and a float; NaN is greater than all, which callers test before. */
static int compare_int_float(int64_t i, double f) {
    if (f != f)
        return -1;
    if (f >= 0x1p63)
        return -1;
    if (f < -0x1p63)
        return 1;
    int64_t whole = (int64_t)f;
    if (i != whole)
        return i < whole ? -1 : 1;
    double rest = f - (double)whole;
    return rest > 0 ? -1 : rest < 0;
}

static int compare_real(rt_value a, rt_value b) {
    if (is_integer(a) && is_integer(b))
        return (a.as.i > b.as.i) - (a.as.i < b.as.i);
    if (is_integer(a))
        return compare_int_float(a.as.i, b.as.f);
    if (is_integer(b))
        return -compare_int_float(b.as.i, a.as.f);
    return a.as.f < b.as.f ? -1 : a.as.f > b.as.f;
}

static bool equal_numbers(rt_value a, rt_value b) {
    if (a.tag == RT_TAG_FLOAT && a.as.f != a.as.f)
        return false;
    if (b.tag == RT_TAG_FLOAT && b.as.f != b.as.f)
        return false;
    if (a.tag == RT_TAG_COMPLEX && b.tag == RT_TAG_COMPLEX)
        return a.as.complex->re == b.as.complex->re && a.as.complex->im == b.as.complex->im;
    if (a.tag == RT_TAG_COMPLEX)
        return a.as.complex->im == 0 && equal_numbers(rt_float(a.as.complex->re), b);
    if (b.tag == RT_TAG_COMPLEX)
        return equal_numbers(b, a);
    return compare_real(a, b) == 0;
}

static ts_status equal_at(rt_value a, rt_value b, int depth, bool *out);

static ts_status equal_items(const rt_value *a, size_t a_count, const rt_value *b, size_t b_count,
                             int depth, bool *out) {
    *out = a_count == b_count;
    for (size_t i = 0; *out && i < a_count; i++)
        if (!rt_is(a[i], b[i]) || a[i].tag == RT_TAG_FLOAT)
            TS_TRY(equal_at(a[i], b[i], depth, out));
    return NULL;
}

/* Two OrderedDicts are equal where their keys come in one order, too. */
static ts_status equal_orders(const rt_dict *a, const rt_dict *b, int depth, bool *out) {
    size_t at = 0, at_other = 0;
    rt_dict_entry *entry, *other;
    while (*out && (entry = rt_dict_next(a, &at)) && (other = rt_dict_next(b, &at_other)))
        if (!rt_is(entry->key, other->key))
            TS_TRY(equal_at(entry->key, other->key, depth, out));
    return NULL;
}

static ts_status equal_dicts(const rt_dict *a, const rt_dict *b, int depth, bool *out) {
    *out = a->live_count == b->live_count;
    rt_dict_entry *entry, *other;
    if (rt_marks(&a->base) & rt_marks(&b->base) & RT_MARK_ORDERED)
        TS_TRY(equal_orders(a, b, depth, out));
    for (size_t at = 0; *out && (entry = rt_dict_next(a, &at));) {
        TS_TRY(rt_dict_find(b, entry->key, &other));
        *out = other != NULL;
        if (other && !rt_is(entry->value, other->value))
            TS_TRY(equal_at(entry->value, other->value, depth, out));
    }
    return NULL;
}

static bool stands_for_tuple(rt_value v) { return v.tag == RT_TAG_LIST && rt_marks(&v.as.list->base) != 0; }

static ts_status equal_at(rt_value a, rt_value b, int depth, bool *out) {
    *out = false;
    if (depth <= 0)
        return rt_depth_error();
    if (is_number(a) && is_number(b)) {
        *out = equal_numbers(a, b);
        return NULL;
    }
    if (a.tag == RT_TAG_TUPLE && stands_for_tuple(b))
        return equal_at(b, a, depth, out);
    if (b.tag == RT_TAG_TUPLE && stands_for_tuple(a))
        return equal_items(a.as.list->items, a.as.list->count, b.as.tuple->items, b.as.tuple->count, depth - 1, out);
    if (a.tag != b.tag)
        return NULL;
    switch (a.tag) {
    case RT_TAG_STR:
        *out = ts_str_equal(rt_str_text(a.as.str), rt_str_text(b.as.str));
        return NULL;
    case RT_TAG_LIST:
        return equal_items(a.as.list->items, a.as.list->count, b.as.list->items, b.as.list->count,
                           depth - 1, out);
    case RT_TAG_TUPLE:
        return equal_items(a.as.tuple->items, a.as.tuple->count, b.as.tuple->items,
                           b.as.tuple->count, depth - 1, out);
    case RT_TAG_DICT:
        return equal_dicts(a.as.dict, b.as.dict, depth - 1, out);
    default:
        *out = rt_is(a, b);
        return NULL;
    }
}

ts_status rt_equal(rt_value a, rt_value b, bool *out) {
    return equal_at(a, b, RT_VALUE_DEPTH, out);
}

static ts_status compare_at(rt_value a, rt_value b, int depth, int *out);

static ts_status compare_items(const rt_value *a, size_t a_count, const rt_value *b, size_t b_count,
                               int depth, int *out) {
    for (size_t i = 0; i < a_count && i < b_count; i++) {
        bool is_equal;
        TS_TRY(equal_at(a[i], b[i], depth, &is_equal));
        if (!is_equal)
            return compare_at(a[i], b[i], depth, out);
    }
    *out = (a_count > b_count) - (a_count < b_count);
    return NULL;
}

static ts_status compare_at(rt_value a, rt_value b, int depth, int *out) {
    *out = 0;
    if (depth <= 0)
        return rt_depth_error();
    if (is_real(a) && is_real(b)) {
        *out = compare_real(a, b);
        return NULL;
    }
    if (a.tag == b.tag && a.tag == RT_TAG_STR) {
        *out = ts_str_compare(rt_str_text(a.as.str), rt_str_text(b.as.str));
        return NULL;
    }
    if (a.tag == b.tag && a.tag == RT_TAG_LIST)
        return compare_items(a.as.list->items, a.as.list->count, b.as.list->items, b.as.list->count,
                             depth - 1, out);
    if (a.tag == b.tag && a.tag == RT_TAG_TUPLE)
        return compare_items(a.as.tuple->items, a.as.tuple->count, b.as.tuple->items,
                             b.as.tuple->count, depth - 1, out);
    return ts_raise("TypeError", "'<' not supported between instances of '%s' and '%s'",
                    rt_tag_name(a), rt_tag_name(b));
}

ts_status rt_compare(rt_value a, rt_value b, int *out) {
    return compare_at(a, b, RT_VALUE_DEPTH, out);
}

static uint64_t hash_pointer(const void *pointer) { return ts_hash64(&pointer, sizeof pointer, 7); }

/* Numbers that are equal hash alike, whatever their type. */
static uint64_t hash_double(double f) {
    if (f >= -0x1p63 && f < 0x1p63 && f == floor(f)) {
        int64_t i = (int64_t)f;
        return ts_hash64(&i, sizeof i, 1);
    }
    return ts_hash64(&f, sizeof f, 2);
}

static ts_status hash_at(rt_value v, int depth, uint64_t *out) {
    *out = 0;
    if (depth <= 0)
        return rt_depth_error();
    switch ((rt_tag)v.tag) {
    case RT_TAG_NONE:
        *out = 3;
        return NULL;
    case RT_TAG_BOOL:
    case RT_TAG_INT:
        *out = ts_hash64(&v.as.i, sizeof v.as.i, 1);
        return NULL;
    case RT_TAG_FLOAT:
        *out = hash_double(v.as.f);
        return NULL;
    case RT_TAG_DEVICE:
        *out = ts_hash64(&v.as.i, sizeof v.as.i, 16 + v.aux);
        return NULL;
    case RT_TAG_COMPLEX:
        *out = hash_double(v.as.complex->re);
        if (v.as.complex->im != 0)
            *out = *out * 31 + hash_double(v.as.complex->im);
        return NULL;
    case RT_TAG_STR:
        *out = ts_hash64(v.as.str->data, v.as.str->length, 4);
        return NULL;
    case RT_TAG_TUPLE:
        *out = 5;
        for (size_t i = 0; i < v.as.tuple->count; i++) {
            uint64_t parts[2] = {*out, 0};
            TS_TRY(hash_at(v.as.tuple->items[i], depth - 1, &parts[1]));
            *out = ts_hash64(parts, sizeof parts, 6);
        }
        return NULL;
    case RT_TAG_ENUM:
        *out = ts_hash64(v.as.enumeration->name.data, v.as.enumeration->name.length, 8);
        return NULL;
    case RT_TAG_DICT: {
        rt_dict_entry *entry;
        bool is_frozen = true; /* a frozenset holds () beside each item; an empty one shows nothing */
        *out = 11;
        for (size_t at = 0; is_frozen && (entry = rt_dict_next(v.as.dict, &at));) {
            is_frozen = entry->value.tag == RT_TAG_TUPLE && !entry->value.as.tuple->count;
            *out += ts_hash64(&entry->hash, sizeof entry->hash, 12); /* in any order */
        }
        return is_frozen ? NULL : ts_raise("TypeError", "unhashable type: '%s'", rt_tag_name(v));
    }
    case RT_TAG_LIST:
        return ts_raise("TypeError", "unhashable type: '%s'", rt_tag_name(v));
    case RT_TAG_UNINITIALIZED:
        return ts_error_make(TS_ERR_INTERNAL, "an uninitialized value is read");
    case RT_TAG_TENSOR:
    case RT_TAG_OBJECT:
    case RT_TAG_GENERATOR:
    case RT_TAG_FUNCTION:
    case RT_TAG_CAPSULE:
        *out = hash_pointer(v.as.pointer);
        return NULL;
    }
    return NULL;
}

ts_status rt_hash(rt_value v, uint64_t *out) { return hash_at(v, RT_VALUE_DEPTH, out); }

/* runtime/ops/tensor_ops.c - arguments of kernels and PyTorch's type promotion. */
#include "runtime/ops/tensor_ops.h"

#include <stdlib.h>

double rt_as_double(rt_value v) {
    switch (v.tag) {
    case RT_TAG_FLOAT:
        return v.as.f;
    case RT_TAG_COMPLEX:
        return v.as.complex->re;
    case RT_TAG_TENSOR:
        return v.as.tensor->element_count
                   ? rt_load_double(rt_dtype_of(v.as.tensor), v.as.tensor->data)
                   : 0;
    case RT_TAG_NONE:
        return 0;
    default:
        return (double)v.as.i;
    }
}

int64_t rt_as_int(rt_value v) {
    switch (v.tag) {
    case RT_TAG_FLOAT:
        return rt_double_to_int(v.as.f);
    case RT_TAG_COMPLEX:
        return rt_double_to_int(v.as.complex->re);
    case RT_TAG_TENSOR:
        return v.as.tensor->element_count ? rt_load_int(rt_dtype_of(v.as.tensor), v.as.tensor->data)
                                          : 0;
    case RT_TAG_NONE:
        return 0;
    default:
        return v.as.i;
    }
}

rt_complex128 rt_as_complex(rt_value v) {
    if (v.tag == RT_TAG_COMPLEX)
        return (rt_complex128){v.as.complex->re, v.as.complex->im};
    if (v.tag == RT_TAG_TENSOR && v.as.tensor->element_count)
        return rt_load_complex(rt_dtype_of(v.as.tensor), v.as.tensor->data);
    return (rt_complex128){rt_as_double(v), 0};
}

void rt_as_items(rt_value v, const rt_value **out_items, size_t *out_count) {
    *out_items = NULL;
    *out_count = 0;
    if (v.tag == RT_TAG_LIST) {
        *out_items = v.as.list->items;
        *out_count = v.as.list->count;
    } else if (v.tag == RT_TAG_TUPLE) {
        *out_items = v.as.tuple->items;
        *out_count = v.as.tuple->count;
    }
}

ts_status rt_as_ints(rt_value v, int64_t out[RT_MAX_RANK], int *out_count) {
    *out_count = 0;
    if (v.tag == RT_TAG_NONE)
        return NULL;
    const rt_value *items = &v;
    size_t count = 1;
    if (v.tag == RT_TAG_LIST || v.tag == RT_TAG_TUPLE)
        rt_as_items(v, &items, &count);
    if (count > RT_MAX_RANK)
        return ts_raise("RuntimeError", "expected at most %d numbers, found %zu", RT_MAX_RANK,
                        count);
    for (size_t i = 0; i < count; i++)
        out[i] = rt_as_int(items[i]);
    *out_count = (int)count;
    return NULL;
}

ts_status rt_wrap_dim(int64_t dim, int rank, int *out) {
    int64_t range = rank > 0 ? rank : 1;
    *out = 0;
    if (dim < -range || dim >= range)
        return ts_raise("IndexError",
                        "Dimension out of range (expected to be in range of [%lld, %lld], but got "
                        "%lld)",
                        (long long)-range, (long long)(range - 1), (long long)dim);
    *out = (int)(dim < 0 ? dim + range : dim);
    return NULL;
}

ts_status rt_dim_mask(rt_value dims, int rank, bool out_mask[RT_MAX_RANK]) {
    int64_t list[RT_MAX_RANK];
    int count;
    TS_TRY(rt_as_ints(dims, list, &count));
    for (int d = 0; d < RT_MAX_RANK; d++)
        out_mask[d] = count == 0;
    for (int i = 0; i < count; i++) {
        int dim;
        TS_TRY(rt_wrap_dim(list[i], rank, &dim));
        if (out_mask[dim])
            return ts_raise("RuntimeError", "dim %d appears multiple times in the list of dims",
                            dim);
        out_mask[dim] = true;
    }
    return NULL;
}

ts_status rt_need_tensor(rt_value v, rt_tensor **out) {
    *out = NULL;
    if (v.tag != RT_TAG_TENSOR)
        return ts_raise("TypeError", "expected a Tensor, found %s", rt_tag_name(v));
    *out = v.as.tensor;
    return NULL;
}

const char *rt_dtype_message_name(rt_dtype dtype) {
    static const char *const names[] = {"Byte",        "Char",         "Short",         "Int",
                                        "Long",        "Half",         "Float",         "Double",
                                        "ComplexHalf", "ComplexFloat", "ComplexDouble", "Bool",
                                        "QInt8",       "QUInt8",       "QInt32",        "BFloat16"};
    return dtype >= 0 && dtype < RT_DTYPE_COUNT ? names[dtype] : "?";
}

ts_status rt_not_implemented(const char *op, rt_dtype dtype) {
    return ts_raise("NotImplementedError", "\"%s\" not implemented for '%s'", op,
                    rt_dtype_message_name(dtype));
}

ts_status rt_check_writable(const rt_tensor *t) {
    if (t->storage && t->storage->is_read_only)
        return ts_error_make(TS_ERR_INTERNAL, "write into read-only memory");
    for (int d = 0; d < t->rank; d++)
        if (t->strides[d] == 0 && t->sizes[d] > 1)
            return ts_raise("RuntimeError",
                            "unsupported operation: more than one element of the written-to tensor "
                            "refers to a single memory location. Please clone() the tensor before "
                            "performing the operation.");
    return NULL;
}

bool rt_str_value_is(rt_value v, const char *text) {
    return v.tag == RT_TAG_STR && ts_str_is(rt_str_text(v.as.str), text);
}

void *rt_alloc_array(int64_t count, size_t size) {
    size_t bytes;
    if (count < 0 || !ts_mul_size((size_t)count, size, &bytes) || !ts_add_size(bytes, size, &bytes))
        return NULL;
    return calloc(1, bytes);
}

/* ---- promotion ---- */

static rt_dtype promote_known(rt_dtype a, rt_dtype b) {
    if (a == RT_DTYPE_UNKNOWN)
        return b;
    return b == RT_DTYPE_UNKNOWN ? a : rt_dtype_promote(a, b);
}

void rt_promotion_add_tensor(rt_promotion *p, rt_dtype dtype, int rank) {
    rt_dtype *slot = rank > 0 ? &p->dims : &p->zeros;
    *slot = promote_known(*slot, dtype);
}

void rt_promotion_add_number(rt_promotion *p, rt_dtype dtype) {
    p->numbers = promote_known(p->numbers, dtype);
}

void rt_promotion_add(rt_promotion *p, rt_value v) {
    switch (v.tag) {
    case RT_TAG_TENSOR:
        rt_promotion_add_tensor(p, rt_dtype_of(v.as.tensor), v.as.tensor->rank);
        break;
    case RT_TAG_BOOL:
        rt_promotion_add_number(p, RT_bool);
        break;
    case RT_TAG_INT:
        rt_promotion_add_number(p, RT_int64);
        break;
    case RT_TAG_FLOAT:
        rt_promotion_add_number(p, RT_float32);
        break;
    case RT_TAG_COMPLEX:
        rt_promotion_add_number(p, RT_complex64);
        break;
    default:
        break;
    }
}

/* combine_categories of aten/src/ATen/native/TypeProperties.cpp */
static rt_dtype combine(rt_dtype higher, rt_dtype lower) {
    if (rt_dtype_is_complex(higher))
        return higher;
    if (rt_dtype_is_float(higher))
        return rt_dtype_is_complex(lower) ? rt_dtype_complex(higher) : higher;
    if (higher == RT_bool || rt_dtype_is_float(lower) || rt_dtype_is_complex(lower))
        return promote_known(higher, lower);
    return higher != RT_DTYPE_UNKNOWN ? higher : lower;
}

rt_dtype rt_promotion_result(const rt_promotion *p) {
    return combine(p->dims, combine(p->zeros, p->numbers));
}

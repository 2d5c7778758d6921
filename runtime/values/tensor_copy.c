/* runtime/values/tensor_copy.c - copies and conversions between tensors, broadcasting. */
#include <stdlib.h>

#include "runtime/base/buffer.h"
#include "runtime/values/element.h"
#include "runtime/values/loop.h"
#include "runtime/values/tensor.h"

enum { BLOCK = 256 };

static void copy_same(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t n,
                      int64_t size) {
    if (dst_stride == size && src_stride == size) {
        memcpy(dst, src, (size_t)(n * size));
        return;
    }
#define MOVE(type)                                                                                 \
    for (int64_t i = 0; i < n; i++) {                                                              \
        type x;                                                                                    \
        memcpy(&x, src + i * src_stride, sizeof x);                                                \
        memcpy(dst + i * dst_stride, &x, sizeof x);                                                \
    }
    switch (size) {
    case 1:
        MOVE(uint8_t) break;
    case 2:
        MOVE(uint16_t) break;
    case 4:
        MOVE(uint32_t) break;
    case 8:
        MOVE(uint64_t) break;
    default:
        MOVE(rt_complex128) break;
    }
#undef MOVE
}

/* The work type that carries every value of src to dst unharmed. */
static rt_work conversion_work(rt_dtype src, rt_dtype dst) {
    rt_work from = rt_work_of(src), to = rt_work_of(dst);
    if (from == RT_WORK_COMPLEX)
        return RT_WORK_COMPLEX;
    if (to == RT_WORK_COMPLEX)
        return from == RT_WORK_INT ? RT_WORK_DOUBLE : from;
    return from; /* the store converts from the source's own type, once */
}

static void conjugate_block(rt_complex128 *c, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        c[i].im = -c[i].im;
}

static void convert(char *dst, int64_t dst_stride, rt_dtype dst_dtype, const char *src,
                    int64_t src_stride, rt_dtype src_dtype, bool conjugate, int64_t n) {
    union {
        float f[BLOCK];
        double d[BLOCK];
        int64_t i[BLOCK];
        rt_complex128 c[BLOCK];
    } block;
    rt_work work = conversion_work(src_dtype, dst_dtype);
    while (n > 0) {
        int64_t m = n < BLOCK ? n : BLOCK;
        rt_load_block(work, src_dtype, src, src_stride, m, &block);
        if (conjugate && work == RT_WORK_COMPLEX)
            conjugate_block(block.c, m);
        rt_store_block(work, dst_dtype, dst, dst_stride, m, &block);
        src += src_stride * m;
        dst += dst_stride * m;
        n -= m;
    }
}

/* dst's shape is what src broadcasts to; no overlap. */
static void copy_elements(const rt_tensor *dst, const rt_tensor *src) {
    rt_dtype from = (rt_dtype)src->dtype, to = (rt_dtype)dst->dtype;
    bool conjugate = src->is_conjugated != dst->is_conjugated;
    int64_t size = (int64_t)rt_dtype_size(from);
    rt_loop loop;
    rt_loop_init(&loop, dst->sizes, dst->rank);
    rt_loop_add(&loop, dst);
    rt_loop_add(&loop, src);
    for (rt_loop_start(&loop); loop.is_running; rt_loop_next(&loop)) {
        if (from == to && !conjugate)
            copy_same(loop.data[0], loop.inner_strides[0], loop.data[1], loop.inner_strides[1],
                      loop.inner_count, size);
        else
            convert(loop.data[0], loop.inner_strides[0], to, loop.data[1], loop.inner_strides[1],
                    from, conjugate, loop.inner_count);
    }
}

static void byte_range(const rt_tensor *t, uintptr_t *low, uintptr_t *high) {
    int64_t last = 0;
    for (int d = 0; d < t->rank; d++)
        last += (t->sizes[d] - 1) * t->strides[d];
    *low = (uintptr_t)t->data;
    *high = *low + (uintptr_t)(last + 1) * rt_dtype_size((rt_dtype)t->dtype);
}

static bool may_overlap(const rt_tensor *a, const rt_tensor *b) {
    if (a->element_count == 0 || b->element_count == 0)
        return false;
    uintptr_t a_low, a_high, b_low, b_high;
    byte_range(a, &a_low, &a_high);
    byte_range(b, &b_low, &b_high);
    return a_low < b_high && b_low < a_high;
}

static bool same_layout(const rt_tensor *a, const rt_tensor *b) {
    if (a->data != b->data || a->dtype != b->dtype || a->rank != b->rank ||
        a->is_conjugated != b->is_conjugated)
        return false;
    for (int d = 0; d < a->rank; d++)
        if (a->sizes[d] != b->sizes[d] || (a->sizes[d] > 1 && a->strides[d] != b->strides[d]))
            return false;
    return true;
}

ts_status rt_tensor_clone(const rt_tensor *t, rt_tensor **out) {
    TS_TRY(rt_tensor_make((rt_dtype)t->dtype, t->sizes, t->rank, out));
    copy_elements(*out, t);
    rt_tensor_set_quantizer(*out, t);
    return NULL;
}

ts_status rt_tensor_contiguous(rt_tensor *t, rt_tensor **out) {
    if (!rt_tensor_is_contiguous(t) || t->is_conjugated)
        return rt_tensor_clone(t, out);
    *out = rt_retain(rt_from_tensor(t)).as.tensor;
    return NULL;
}

ts_status rt_tensor_cast(rt_tensor *t, rt_dtype dtype, bool copy, rt_tensor **out) {
    if ((rt_dtype)t->dtype == dtype && !copy) {
        *out = rt_retain(rt_from_tensor(t)).as.tensor;
        return NULL;
    }
    TS_TRY(rt_tensor_make(dtype, t->sizes, t->rank, out));
    copy_elements(*out, t);
    return NULL;
}

static void print_sizes(ts_buffer *text, const int64_t *sizes, int rank) {
    for (int d = 0; d < rank; d++)
        ts_buffer_format(text, "%s%lld", d ? ", " : "", (long long)sizes[d]);
    ts_buffer_char(text, 0);
}

static ts_status expand_error(const rt_tensor *src, const int64_t *sizes, int rank) {
    ts_buffer from = {0}, to = {0};
    print_sizes(&from, src->sizes, src->rank);
    print_sizes(&to, sizes, rank);
    ts_status status =
        from.failed || to.failed
            ? ts_no_memory()
            : ts_raise("RuntimeError",
                       "The expanded size of the tensor (%s) must match the existing size (%s)",
                       to.data, from.data);
    ts_buffer_deinit(&from);
    ts_buffer_deinit(&to);
    return status;
}

static bool broadcasts_to(const rt_tensor *src, const int64_t *sizes, int rank) {
    int shift = rank - src->rank;
    for (int d = 0; d < src->rank; d++) {
        /* PyTorch lets leading dimensions of size 1 of the source go. */
        if (d + shift < 0 ? src->sizes[d] != 1
                          : src->sizes[d] != 1 && src->sizes[d] != sizes[d + shift])
            return false;
    }
    return true;
}

/* Without the leading dimensions of size 1 that dst does not have. */
static ts_status trim_rank(const rt_tensor *src, int rank, rt_tensor **out) {
    int drop = src->rank - rank;
    return rt_tensor_alias(src, 0, src->sizes + drop, src->strides + drop, rank, out);
}

ts_status rt_tensor_copy_into(rt_tensor *dst, const rt_tensor *src) {
    if (!broadcasts_to(src, dst->sizes, dst->rank))
        return expand_error(src, dst->sizes, dst->rank);
    if (dst->storage && dst->storage->is_read_only)
        return ts_error_make(TS_ERR_INTERNAL, "write into read-only memory");
    if (same_layout(dst, src))
        return NULL;
    rt_tensor *trimmed = NULL, *copy = NULL;
    if (src->rank > dst->rank) {
        TS_TRY(trim_rank(src, dst->rank, &trimmed));
        src = trimmed;
    }
    ts_status status = NULL;
    if (may_overlap(dst, src)) {
        TS_TRY_OR(rt_tensor_clone(src, &copy), done);
        src = copy;
    }
    copy_elements(dst, src);
done:
    rt_tensor_release(trimmed);
    rt_tensor_release(copy);
    return status;
}

ts_status rt_broadcast(const int64_t *a, int a_rank, const int64_t *b, int b_rank,
                       int64_t *out_sizes, int *out_rank) {
    int rank = a_rank > b_rank ? a_rank : b_rank;
    int64_t sizes[RT_MAX_RANK];
    for (int d = 0; d < rank; d++) {
        int in_a = d - (rank - a_rank), in_b = d - (rank - b_rank);
        int64_t size_a = in_a < 0 ? 1 : a[in_a], size_b = in_b < 0 ? 1 : b[in_b];
        if (size_a != size_b && size_a != 1 && size_b != 1)
            return ts_raise("RuntimeError",
                            "The size of tensor a (%lld) must match the size of tensor b (%lld) at "
                            "non-singleton dimension %d",
                            (long long)size_a, (long long)size_b, d);
        sizes[d] = size_a == 1 ? size_b : size_a;
    }
    for (int d = 0; d < rank; d++)
        out_sizes[d] = sizes[d];
    *out_rank = rank;
    return NULL;
}

ts_status rt_tensor_expand(const rt_tensor *t, const int64_t *sizes, int rank, rt_tensor **out) {
    *out = NULL;
    if (t->rank > rank || !broadcasts_to(t, sizes, rank))
        return expand_error(t, sizes, rank);
    int64_t strides[RT_MAX_RANK];
    if (rank > RT_MAX_RANK)
        return ts_raise("RuntimeError", "tensors have at most %d dimensions, found %d", RT_MAX_RANK,
                        rank);
    int shift = rank - t->rank;
    for (int d = 0; d < rank; d++) {
        if (d < shift)
            strides[d] = 0;
        else
            strides[d] = t->sizes[d - shift] == 1 && sizes[d] != 1 ? 0 : t->strides[d - shift];
    }
    return rt_tensor_alias(t, 0, sizes, strides, rank, out);
}

ts_status rt_tensor_from_number(rt_value number, rt_dtype dtype, rt_tensor **out) {
    *out = NULL;
    rt_dtype own;
    switch (number.tag) {
    case RT_TAG_BOOL:
        own = RT_bool;
        break;
    case RT_TAG_INT:
        own = RT_int64;
        break;
    case RT_TAG_FLOAT:
        own = RT_float32;
        break;
    case RT_TAG_COMPLEX:
        own = RT_complex64;
        break;
    default:
        return ts_error_make(TS_ERR_INTERNAL, "expected a number, found %s", rt_tag_name(number));
    }
    TS_TRY(rt_tensor_make(dtype == RT_DTYPE_UNKNOWN ? own : dtype, NULL, 0, out));
    rt_dtype to = (rt_dtype)(*out)->dtype;
    if (number.tag == RT_TAG_COMPLEX)
        rt_store_complex(to, (*out)->data,
                         (rt_complex128){number.as.complex->re, number.as.complex->im});
    else if (number.tag == RT_TAG_FLOAT)
        rt_store_double(to, (*out)->data, number.as.f);
    else
        rt_store_int(to, (*out)->data, number.as.i);
    return NULL;
}

static bool double_fits(double f, rt_dtype dtype) {
    double most;
    switch (dtype) {
    case RT_float16: most = 65504; break;
    case RT_bfloat16: most = 0x1.fep127; break;
    case RT_float32: most = 0x1.fffffep127; break;
    case RT_float64: return true;
    default: return f >= -0x1p63 && f <= 0x1p63 && rt_number_fits(rt_int(f >= 0x1p63 ? INT64_MAX : (int64_t)f), dtype);
    }
    return f - f != 0.0 || (f >= -most && f <= most);
}

bool rt_number_fits(rt_value number, rt_dtype dtype) {
    if (dtype == RT_DTYPE_UNKNOWN || dtype == RT_bool || rt_dtype_category(dtype) == 'q')
        return true;
    if (number.tag == RT_TAG_COMPLEX) {
        double re = number.as.complex->re, im = number.as.complex->im;
        if (!rt_dtype_is_complex(dtype))
            return im == 0.0 && double_fits(re, dtype);
        return double_fits(re, rt_dtype_real(dtype)) && double_fits(im, rt_dtype_real(dtype));
    }
    if (number.tag == RT_TAG_FLOAT)
        return double_fits(number.as.f, rt_dtype_real(dtype));
    int64_t i = number.as.i;
    switch (rt_dtype_real(dtype)) {
    case RT_uint8: return i >= -UINT8_MAX && i <= UINT8_MAX;
    case RT_int8: return i >= INT8_MIN && i <= INT8_MAX;
    case RT_int16: return i >= INT16_MIN && i <= INT16_MAX;
    case RT_int32: return i >= INT32_MIN && i <= INT32_MAX;
    case RT_int64: return true;
    default: return double_fits((double)i, rt_dtype_real(dtype));
    }
}

ts_status rt_tensor_item(const rt_tensor *t, rt_value *out) {
    *out = rt_none();
    if (t->element_count != 1)
        return ts_raise("RuntimeError", "a Tensor with %lld elements cannot be converted to Scalar",
                        (long long)t->element_count);
    if (rt_dtype_is_complex((rt_dtype)t->dtype)) {
        rt_complex128 c = rt_load_complex((rt_dtype)t->dtype, t->data);
        return rt_complex_make(c.re, t->is_conjugated ? -c.im : c.im, out);
    }
    *out = rt_load_number((rt_dtype)t->dtype, t->data);
    return NULL;
}

/* runtime/values/element.c - loads, stores and conversions of elements. */
#include "runtime/values/element.h"

#include <string.h>

int64_t rt_double_to_int(double value) {
    /* 2^63 is exact as a double; NaN fails both comparisons */
    if (value >= -0x1p63 && value < 0x1p63)
        return (int64_t)value;
    return INT64_MIN;
}

rt_work rt_work_of(rt_dtype dtype) {
    switch (rt_dtype_category(dtype)) {
    case 'f':
        return dtype == RT_float64 ? RT_WORK_DOUBLE : RT_WORK_FLOAT;
    case 'c':
        return RT_WORK_COMPLEX;
    default:
        return RT_WORK_INT;
    }
}

size_t rt_work_size(rt_work work) {
    switch (work) {
    case RT_WORK_FLOAT:
        return sizeof(float);
    case RT_WORK_DOUBLE:
        return sizeof(double);
    case RT_WORK_INT:
        return sizeof(int64_t);
    case RT_WORK_COMPLEX:
        return sizeof(rt_complex128);
    }
    return 0;
}

static int64_t to_int(double value) { return rt_double_to_int(value); }

static int32_t to_int32(double value) { /* as cvttsd2si does it for 32 bits */
    return value > -2147483649.0 && value < 2147483648.0 ? (int32_t)value : INT32_MIN;
}

/* Every dtype with the C type it is stored as and expressions that read x as double (or a
 * narrower real), as int64 and as a real/imaginary pair. */
#define REAL_DTYPES(X)                                                                             \
    X(uint8, uint8_t, x, x, (uint8_t)i, (uint8_t)to_int(d))                                        \
    X(int8, int8_t, x, x, (int8_t)i, (int8_t)to_int(d))                                            \
    X(int16, int16_t, x, x, (int16_t)i, (int16_t)to_int(d))                                        \
    X(int32, int32_t, x, x, (int32_t)i, to_int32(d))                                               \
    X(int64, int64_t, x, x, i, to_int(d))                                                          \
    X(float16, uint16_t, rt_half_to_float(x), to_int((double)rt_half_to_float(x)),                 \
      rt_half_from_float((float)i), rt_half_from_float((float)d))                                  \
    X(float32, float, x, to_int((double)x), (float)i, (float)d)                                    \
    X(float64, double, x, to_int(x), (double)i, (double)d)                                         \
    X(bool, uint8_t, (x != 0), (x != 0), (uint8_t)(i != 0), (uint8_t)(d != 0))                     \
    X(qint8, int8_t, x, x, (int8_t)i, (int8_t)to_int(d))                                           \
    X(quint8, uint8_t, x, x, (uint8_t)i, (uint8_t)to_int(d))                                       \
    X(qint32, int32_t, x, x, (int32_t)i, to_int32(d))                                              \
    X(bfloat16, uint16_t, rt_bfloat16_to_float(x), to_int((double)rt_bfloat16_to_float(x)),        \
      rt_bfloat16_from_float((float)i), rt_bfloat16_from_float((float)d))

static rt_complex128 half_pair(uint32_t bits) {
    return (rt_complex128){(double)rt_half_to_float((uint16_t)bits),
                           (double)rt_half_to_float((uint16_t)(bits >> 16))};
}

static uint32_t pack_half_pair(rt_complex128 c) {
    return (uint32_t)rt_half_from_float((float)c.re) | (uint32_t)rt_half_from_float((float)c.im)
                                                           << 16;
}

static rt_complex128 load_complex_of(rt_dtype dtype, const void *data) {
    if (dtype == RT_complex64) {
        rt_complex64 c;
        memcpy(&c, data, sizeof c);
        return (rt_complex128){(double)c.re, (double)c.im};
    }
    if (dtype == RT_complex32) {
        uint32_t bits;
        memcpy(&bits, data, sizeof bits);
        return half_pair(bits);
    }
    rt_complex128 c;
    memcpy(&c, data, sizeof c);
    return c;
}

static void store_complex_of(rt_dtype dtype, void *data, rt_complex128 c) {
    if (dtype == RT_complex64) {
        rt_complex64 narrow = {(float)c.re, (float)c.im};
        memcpy(data, &narrow, sizeof narrow);
    } else if (dtype == RT_complex32) {
        uint32_t bits = pack_half_pair(c);
        memcpy(data, &bits, sizeof bits);
    } else {
        memcpy(data, &c, sizeof c);
    }
}

#define TIGHT(type, body)                                                                          \
    if (stride_bytes == (int64_t)sizeof(type)) {                                                   \
        for (int64_t at = 0; at < n; at++, src += sizeof(type))                                    \
            body                                                                                   \
    } else {                                                                                       \
        for (int64_t at = 0; at < n; at++, src += stride_bytes)                                    \
            body                                                                                   \
    }

static void load_float_block(rt_dtype dtype, const char *src, int64_t stride_bytes, int64_t n,
                             float *out) {
    switch ((int)dtype) {
#define X(name, type, real, integer, from_int, from_double)                                        \
    case RT_##name:                                                                                \
        TIGHT(type, {                                                                              \
            type x;                                                                                \
            memcpy(&x, src, sizeof x);                                                             \
            out[at] = (float)(real);                                                               \
        })                                                                                         \
        break;
        REAL_DTYPES(X)
#undef X
    default:
        for (int64_t at = 0; at < n; at++, src += stride_bytes)
            out[at] = (float)load_complex_of(dtype, src).re;
    }
}

static void load_double_block(rt_dtype dtype, const char *src, int64_t stride_bytes, int64_t n,
                              double *out) {
    switch ((int)dtype) {
#define X(name, type, real, integer, from_int, from_double)                                        \
    case RT_##name:                                                                                \
        for (int64_t at = 0; at < n; at++, src += stride_bytes) {                                  \
            type x;                                                                                \
            memcpy(&x, src, sizeof x);                                                             \
            out[at] = (double)(real);                                                              \
        }                                                                                          \
        break;
        REAL_DTYPES(X)
#undef X
    default:
        for (int64_t at = 0; at < n; at++, src += stride_bytes)
            out[at] = load_complex_of(dtype, src).re;
    }
}

static void load_int_block(rt_dtype dtype, const char *src, int64_t stride_bytes, int64_t n,
                           int64_t *out) {
    switch ((int)dtype) {
#define X(name, type, real, integer, from_int, from_double)                                        \
    case RT_##name:                                                                                \
        TIGHT(type, {                                                                              \
            type x;                                                                                \
            memcpy(&x, src, sizeof x);                                                             \
            out[at] = (int64_t)(integer);                                                          \
        })                                                                                         \
        break;
        REAL_DTYPES(X)
#undef X
    default:
        for (int64_t at = 0; at < n; at++, src += stride_bytes)
            out[at] = to_int(load_complex_of(dtype, src).re);
    }
}

void rt_load_block(rt_work work, rt_dtype dtype, const char *src, int64_t stride_bytes, int64_t n,
                   void *out) {
    switch (work) {
    case RT_WORK_FLOAT:
        load_float_block(dtype, src, stride_bytes, n, out);
        return;
    case RT_WORK_DOUBLE:
        load_double_block(dtype, src, stride_bytes, n, out);
        return;
    case RT_WORK_INT:
        load_int_block(dtype, src, stride_bytes, n, out);
        return;
    case RT_WORK_COMPLEX: {
        rt_complex128 *c = out;
        bool is_complex = rt_dtype_is_complex(dtype);
        for (int64_t at = 0; at < n; at++, src += stride_bytes)
            c[at] = is_complex ? load_complex_of(dtype, src)
                               : (rt_complex128){rt_load_double(dtype, src), 0};
        return;
    }
    }
}

static void store_float_block(rt_dtype dtype, char *dst, int64_t stride_bytes, int64_t n,
                              const float *in) {
    switch ((int)dtype) {
#define X(name, type, real, integer, from_int, from_double)                                        \
    case RT_##name:                                                                                \
        for (int64_t at = 0; at < n; at++, dst += stride_bytes) {                                  \
            float d = in[at];                                                                      \
            type x = (type)(from_double);                                                          \
            memcpy(dst, &x, sizeof x);                                                             \
        }                                                                                          \
        break;
        REAL_DTYPES(X)
#undef X
    default:
        for (int64_t at = 0; at < n; at++, dst += stride_bytes)
            store_complex_of(dtype, dst, (rt_complex128){(double)in[at], 0});
    }
}

static void store_double_block(rt_dtype dtype, char *dst, int64_t stride_bytes, int64_t n,
                               const double *in) {
    switch ((int)dtype) {
#define X(name, type, real, integer, from_int, from_double)                                        \
    case RT_##name:                                                                                \
        for (int64_t at = 0; at < n; at++, dst += stride_bytes) {                                  \
            double d = in[at];                                                                     \
            type x = (type)(from_double);                                                          \
            memcpy(dst, &x, sizeof x);                                                             \
        }                                                                                          \
        break;
        REAL_DTYPES(X)
#undef X
    default:
        for (int64_t at = 0; at < n; at++, dst += stride_bytes)
            store_complex_of(dtype, dst, (rt_complex128){in[at], 0});
    }
}

static void store_int_block(rt_dtype dtype, char *dst, int64_t stride_bytes, int64_t n,
                            const int64_t *in) {
    switch ((int)dtype) {
#define X(name, type, real, integer, from_int, from_double)                                        \
    case RT_##name:                                                                                \
        for (int64_t at = 0; at < n; at++, dst += stride_bytes) {                                  \
            int64_t i = in[at];                                                                    \
            type x = (type)(from_int);                                                             \
            memcpy(dst, &x, sizeof x);                                                             \
        }                                                                                          \
        break;
        REAL_DTYPES(X)
#undef X
    default:
        for (int64_t at = 0; at < n; at++, dst += stride_bytes)
            store_complex_of(dtype, dst, (rt_complex128){(double)in[at], 0});
    }
}

void rt_store_block(rt_work work, rt_dtype dtype, char *dst, int64_t stride_bytes, int64_t n,
                    const void *in) {
    switch (work) {
    case RT_WORK_FLOAT:
        store_float_block(dtype, dst, stride_bytes, n, in);
        return;
    case RT_WORK_DOUBLE:
        store_double_block(dtype, dst, stride_bytes, n, in);
        return;
    case RT_WORK_INT:
        store_int_block(dtype, dst, stride_bytes, n, in);
        return;
    case RT_WORK_COMPLEX: {
        const rt_complex128 *c = in;
        bool is_complex = rt_dtype_is_complex(dtype);
        for (int64_t at = 0; at < n; at++, dst += stride_bytes) {
            if (is_complex)
                store_complex_of(dtype, dst, c[at]);
            else if (dtype == RT_bool)
                rt_store_int(dtype, dst, c[at].re != 0 || c[at].im != 0);
            else
                rt_store_double(dtype, dst, c[at].re);
        }
        return;
    }
    }
}

double rt_load_double(rt_dtype dtype, const void *data) {
    double d;
    load_double_block(dtype, data, 0, 1, &d);
    return d;
}

int64_t rt_load_int(rt_dtype dtype, const void *data) {
    int64_t i;
    load_int_block(dtype, data, 0, 1, &i);
    return i;
}

rt_complex128 rt_load_complex(rt_dtype dtype, const void *data) {
    if (rt_dtype_is_complex(dtype))
        return load_complex_of(dtype, data);
    return (rt_complex128){rt_load_double(dtype, data), 0};
}

void rt_store_double(rt_dtype dtype, void *data, double value) {
    store_double_block(dtype, data, 0, 1, &value);
}

void rt_store_int(rt_dtype dtype, void *data, int64_t value) {
    store_int_block(dtype, data, 0, 1, &value);
}

void rt_store_complex(rt_dtype dtype, void *data, rt_complex128 value) {
    rt_store_block(RT_WORK_COMPLEX, dtype, data, 0, 1, &value);
}

rt_value rt_load_number(rt_dtype dtype, const void *data) {
    switch (rt_dtype_category(dtype)) {
    case 'b':
        return rt_bool(rt_load_int(dtype, data) != 0);
    case 'f':
    case 'c':
        return rt_float(rt_load_double(dtype, data));
    default:
        return rt_int(rt_load_int(dtype, data));
    }
}

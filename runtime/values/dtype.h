/* runtime/values/dtype.h - element types of tensors, numbered as PyTorch numbers its ScalarType
 * (the numbers stand in archives, so they never change). */
#ifndef RUNTIME_VALUES_DTYPE_H
#define RUNTIME_VALUES_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/str.h"

/* DTYPE(number, name, C type, bytes, category): category b = bool, i = integer, f = floating,
 * c = complex, q = quantized */
#define RT_DTYPES(DTYPE)                                                                           \
    DTYPE(0, uint8, uint8_t, 1, 'i')                                                               \
    DTYPE(1, int8, int8_t, 1, 'i')                                                                 \
    DTYPE(2, int16, int16_t, 2, 'i')                                                               \
    DTYPE(3, int32, int32_t, 4, 'i')                                                               \
    DTYPE(4, int64, int64_t, 8, 'i')                                                               \
    DTYPE(5, float16, uint16_t, 2, 'f')                                                            \
    DTYPE(6, float32, float, 4, 'f')                                                               \
    DTYPE(7, float64, double, 8, 'f')                                                              \
    DTYPE(8, complex32, uint32_t, 4, 'c')                                                          \
    DTYPE(9, complex64, rt_complex64, 8, 'c')                                                      \
    DTYPE(10, complex128, rt_complex128, 16, 'c')                                                  \
    DTYPE(11, bool, uint8_t, 1, 'b')                                                               \
    DTYPE(12, qint8, int8_t, 1, 'q')                                                               \
    DTYPE(13, quint8, uint8_t, 1, 'q')                                                             \
    DTYPE(14, qint32, int32_t, 4, 'q')                                                             \
    DTYPE(15, bfloat16, uint16_t, 2, 'f')

typedef struct rt_complex64 {
    float re, im;
} rt_complex64;
typedef struct rt_complex128 {
    double re, im;
} rt_complex128;

typedef enum rt_dtype {
    RT_DTYPE_UNKNOWN = -1,
#define DTYPE(number, name, ctype, bytes, category) RT_##name = number,
    RT_DTYPES(DTYPE)
#undef DTYPE
        RT_DTYPE_COUNT = 16
} rt_dtype;

size_t rt_dtype_size(rt_dtype dtype);      /* bytes of an element; 0 for an unknown dtype */
const char *rt_dtype_name(rt_dtype dtype); /* "float32"; "?" for an unknown dtype */
rt_dtype rt_dtype_parse(ts_str name);      /* RT_DTYPE_UNKNOWN if there is none of that name;
                                              takes PyTorch's aliases (float, half, long, ...) */
char rt_dtype_category(rt_dtype dtype);    /* 'b' 'i' 'f' 'c' 'q'; 0 for an unknown dtype */
bool rt_dtype_is_float(rt_dtype dtype);    /* category f */
bool rt_dtype_is_complex(rt_dtype dtype);
bool rt_dtype_is_integral(rt_dtype dtype); /* integer, not bool */
/* PyTorch's promote_types. */
rt_dtype rt_dtype_promote(rt_dtype a, rt_dtype b);
/* Whether a result of dtype from may be written to dtype to: PyTorch's can_cast. */
bool rt_dtype_can_hold(rt_dtype to, rt_dtype from);
/* float32 for complex64, and so on; itself for what is not complex. */
rt_dtype rt_dtype_real(rt_dtype dtype);
rt_dtype rt_dtype_complex(rt_dtype dtype); /* complex64 for float32, ... */

/* IEEE half and bfloat16, as bits. Rounding is to nearest even. */
float rt_half_to_float(uint16_t bits);
uint16_t rt_half_from_float(float value);
float rt_bfloat16_to_float(uint16_t bits);
uint16_t rt_bfloat16_from_float(float value);
bool rt_dtype_is_short(rt_dtype dtype); /* one of the two */
/* The value as an element of a 16-bit dtype holds it; itself for any other dtype. */
float rt_round_short(rt_dtype dtype, float value);

#endif

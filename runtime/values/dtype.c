/* runtime/values/dtype.c - facts about element types and the 16-bit float conversions. */
#include "runtime/values/dtype.h"

#include <string.h>

typedef struct dtype_row {
    const char *name;
    uint8_t bytes;
    char category;
} dtype_row;

static const dtype_row dtype_rows[RT_DTYPE_COUNT] = {
#define DTYPE(number, name, ctype, bytes, category) [number] = {#name, bytes, category},
    RT_DTYPES(DTYPE)
#undef DTYPE
};

static bool is_known(rt_dtype dtype) { return dtype >= 0 && dtype < RT_DTYPE_COUNT; }

size_t rt_dtype_size(rt_dtype dtype) { return is_known(dtype) ? dtype_rows[dtype].bytes : 0; }

const char *rt_dtype_name(rt_dtype dtype) { return is_known(dtype) ? dtype_rows[dtype].name : "?"; }

rt_dtype rt_dtype_parse(ts_str name) {
    static const struct {
        const char *name;
        rt_dtype dtype;
    } aliases[] = {{"float", RT_float32},    {"double", RT_float64},   {"half", RT_float16},
                   {"int", RT_int32},        {"long", RT_int64},       {"short", RT_int16},
                   {"cfloat", RT_complex64}, {"cdouble", RT_complex128}, {"chalf", RT_complex32}};
    for (int i = 0; i < RT_DTYPE_COUNT; i++)
        if (ts_str_is(name, dtype_rows[i].name))
            return (rt_dtype)i;
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        if (ts_str_is(name, aliases[i].name))
            return aliases[i].dtype;
    return RT_DTYPE_UNKNOWN;
}

char rt_dtype_category(rt_dtype dtype) { return is_known(dtype) ? dtype_rows[dtype].category : 0; }

bool rt_dtype_is_float(rt_dtype dtype) { return rt_dtype_category(dtype) == 'f'; }
bool rt_dtype_is_complex(rt_dtype dtype) { return rt_dtype_category(dtype) == 'c'; }
bool rt_dtype_is_integral(rt_dtype dtype) { return rt_dtype_category(dtype) == 'i'; }

static int category_rank(char category) {
    switch (category) {
    case 'b': return 0;
    case 'i': return 1;
    case 'f': return 2;
    case 'c': return 3;
    default: return -1;
    }
}

static rt_dtype promote_floats(rt_dtype a, rt_dtype b) {
    if (a == b)
        return a;
    /* float16 and bfloat16 meet in float32 */
    return rt_dtype_size(a) == rt_dtype_size(b) ? RT_float32
           : rt_dtype_size(a) > rt_dtype_size(b) ? a
                                                 : b;
}

rt_dtype rt_dtype_promote(rt_dtype a, rt_dtype b) {
    if (a == b)
        return a;
    int rank_a = category_rank(rt_dtype_category(a)), rank_b = category_rank(rt_dtype_category(b));
    if (rank_a < 0 || rank_b < 0)
        return RT_DTYPE_UNKNOWN;
    if (rank_a == 3 || rank_b == 3) {
        if (rank_a < 2)
            return b;
        if (rank_b < 2)
            return a;
        return rt_dtype_complex(promote_floats(rt_dtype_real(a), rt_dtype_real(b)));
    }
    if (rank_a != rank_b)
        return rank_a > rank_b ? a : b;
    if (rank_a == 2)
        return promote_floats(a, b);
    /* integers: uint8 and int8 meet in int16 */
    size_t size_a = rt_dtype_size(a), size_b = rt_dtype_size(b);
    if (size_a == size_b)
        return RT_int16;
    return size_a > size_b ? a : b;
}

bool rt_dtype_can_hold(rt_dtype to, rt_dtype from) {
    char a = rt_dtype_category(to), b = rt_dtype_category(from);
    return a == 'q' || b == 'q' || category_rank(b) <= category_rank(a);
}

rt_dtype rt_dtype_real(rt_dtype dtype) {
    switch ((int)dtype) {
    case RT_complex32: return RT_float16;
    case RT_complex64: return RT_float32;
    case RT_complex128: return RT_float64;
    default: return dtype;
    }
}

rt_dtype rt_dtype_complex(rt_dtype dtype) {
    switch ((int)dtype) {
    case RT_float16: return RT_complex32;
    case RT_float64: return RT_complex128;
    case RT_complex32:
    case RT_complex64:
    case RT_complex128: return dtype;
    default: return RT_complex64;
    }
}

static uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float float_of(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

float rt_half_to_float(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    uint32_t exponent = (bits >> 10) & 0x1fu, mantissa = bits & 0x3ffu;
    if (exponent == 0x1f)
        return float_of(sign | 0x7f800000u | (mantissa << 13));
    if (exponent == 0) { /* zero or subnormal: mantissa * 2^-24 is exact in float */
        float f = (float)mantissa * 0x1p-24f;
        return float_of(sign | bits_of(f));
    }
    return float_of(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t rt_half_from_float(float value) {
    uint32_t u = bits_of(value), sign = (u >> 16) & 0x8000u;
    u &= 0x7fffffffu;
    if (u > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (u >= 0x47800000u) /* 65536 and above */
        return (uint16_t)(sign | 0x7c00u);
    if (u < 0x38800000u) { /* below 2^-14: the float adder rounds to the subnormal grid */
        float f = float_of(u) + 0.5f;
        return (uint16_t)(sign | (bits_of(f) - bits_of(0.5f)));
    }
    uint32_t odd = (u >> 13) & 1u;
    u += 0xc8000fffu + odd; /* rebias the exponent by -112, round to nearest even */
    return (uint16_t)(sign | (u >> 13));
}

float rt_bfloat16_to_float(uint16_t bits) { return float_of((uint32_t)bits << 16); }

uint16_t rt_bfloat16_from_float(float value) {
    uint32_t u = bits_of(value);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return 0x7fc0;
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

bool rt_dtype_is_short(rt_dtype dtype) { return dtype == RT_float16 || dtype == RT_bfloat16; }

float rt_round_short(rt_dtype dtype, float value) {
    if (!rt_dtype_is_short(dtype))
        return value;
    return dtype == RT_float16 ? rt_half_to_float(rt_half_from_float(value))
                               : rt_bfloat16_to_float(rt_bfloat16_from_float(value));
}

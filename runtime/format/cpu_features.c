/* runtime/format/cpu_features.c - what this processor can do, as bits of a section. */
#define _GNU_SOURCE
#include "runtime/format/tsm.h"

#include <stdio.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* AMX: CPUID's bits, and that the kernel keeps the registers of tiles for a process (XCR0). */
static bool has_amx_bf16(void) {
    enum { TILE = 1 << 24, BF16 = 1 << 22, OSXSAVE = 1 << 27, TILE_STATE = 3 << 17 };
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE) || !__get_cpuid_count(7, 0, &a, &b, &c, &d) ||
        (d & (TILE | BF16)) != (TILE | BF16))
        return false;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & TILE_STATE) == TILE_STATE;
}

bool tsm_cpu_acquire(uint64_t features) {
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; /* of arch_prctl */
    return !(features & TSM_CPU_AMX_BF16) || syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}
#else
bool tsm_cpu_acquire(uint64_t features) {
    (void)features;
    return true;
}
#endif

uint64_t tsm_cpu_features(void) {
    uint64_t f = 0;
#if defined(__x86_64__)
    f |= __builtin_cpu_supports("sse4.2") ? TSM_CPU_SSE42 : 0;
    f |= __builtin_cpu_supports("popcnt") ? TSM_CPU_POPCNT : 0;
    f |= __builtin_cpu_supports("avx") ? TSM_CPU_AVX : 0;
    f |= __builtin_cpu_supports("avx2") ? TSM_CPU_AVX2 | TSM_CPU_F16C : 0;
    f |= __builtin_cpu_supports("fma") ? TSM_CPU_FMA : 0;
    f |= __builtin_cpu_supports("bmi2") ? TSM_CPU_BMI2 : 0;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        f |= TSM_CPU_AVX512;
    f |= has_amx_bf16() ? TSM_CPU_AMX_BF16 : 0;
#define CPU_FEATURE(bit, llvm, gcc, text)                                                          \
    f |= __builtin_cpu_supports(gcc) ? UINT64_C(1) << bit : 0;
#include "runtime/format/cpu_features.def"
#elif defined(__aarch64__)
    f |= TSM_CPU_NEON;
#endif
    return f | TSM_CPU_OTHER;
}

size_t tsm_cpu_names(uint64_t features, char *out, size_t capacity) {
    static const struct {
        uint64_t bit;
        const char *name;
    } rows[] = {{TSM_CPU_SSE42, "SSE4.2"}, {TSM_CPU_POPCNT, "POPCNT"}, {TSM_CPU_AVX, "AVX"},
                {TSM_CPU_AVX2, "AVX2"},    {TSM_CPU_FMA, "FMA"},       {TSM_CPU_BMI2, "BMI2"},
                {TSM_CPU_F16C, "F16C"},    {TSM_CPU_AVX512, "AVX-512 (F, BW, CD, DQ, VL)"},
                {TSM_CPU_NEON, "NEON"},    {TSM_CPU_AMX_BF16, "AMX-BF16"},
#define CPU_FEATURE(bit, llvm, gcc, text) {UINT64_C(1) << bit, text},
#include "runtime/format/cpu_features.def"
    };
    size_t n = 0;
    if (capacity)
        out[0] = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (features & rows[i].bit && n < capacity) {
            int k = snprintf(out + n, capacity - n, "%s%s", n ? ", " : "", rows[i].name);
            n += k > 0 ? (size_t)k : 0;
        }
    return n < capacity ? n : capacity;
}

/* runtime/cpu.c - what this processor can do, and how much of it is ours. */
#define _GNU_SOURCE
#include "runtime/runtime_internal.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>

uint64_t rt_cpu_features(void) {
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
    f |= __builtin_cpu_supports("avx512bf16") ? TSM_CPU_AVX512_BF16 : 0;
    f |= __builtin_cpu_supports("avx512vnni") ? TSM_CPU_AVX512_VNNI : 0;
#elif defined(__aarch64__)
    f |= TSM_CPU_NEON;
#endif
    /* --cpu=native is for the machine that compiled: nothing here can tell another one apart
     * beyond the levels, so the file's word is taken. */
    return f | TSM_CPU_OTHER;
}

size_t rt_cpu_names(uint64_t features, char *out, size_t capacity) {
    static const struct {
        uint64_t bit;
        const char *name;
    } rows[] = {{TSM_CPU_SSE42, "SSE4.2"}, {TSM_CPU_POPCNT, "POPCNT"}, {TSM_CPU_AVX, "AVX"},
                {TSM_CPU_AVX2, "AVX2"},    {TSM_CPU_FMA, "FMA"},       {TSM_CPU_BMI2, "BMI2"},
                {TSM_CPU_F16C, "F16C"},    {TSM_CPU_AVX512, "AVX-512 (F, BW, CD, DQ, VL)"},
                {TSM_CPU_AVX512_BF16, "AVX512-BF16"}, {TSM_CPU_NEON, "NEON"}};
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

/* The share that a cgroup (v2) grants, rounded up; 0 where none is set. */
static int cgroup_count(void) {
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
    if (!f)
        return 0;
    long long quota = 0, period = 0;
    int got = fscanf(f, "%lld %lld", &quota, &period); /* "max 100000" matches nothing */
    fclose(f);
    if (got != 2 || quota <= 0 || period <= 0)
        return 0;
    return (int)((quota + period - 1) / period);
}

int rt_cpu_count(void) {
    cpu_set_t set;
    int n = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = CPU_COUNT(&set);
    int granted = cgroup_count();
    if (granted && granted < n)
        n = granted;
    return n < 1 ? 1 : n;
}

uint64_t rt_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* codegen/targets.c - the CPU levels: one row each. */
#include "codegen/codegen_internal.h"

#define X86 "x86_64-unknown-linux-gnu"

static const cg_target_info targets[] = {
    {CG_X86_64_V2, "x86-64-v2", X86, "x86-64-v2", "", 16, 16, false, false},
    {CG_X86_64_V3, "x86-64-v3", X86, "x86-64-v3", "", 32, 16, true, false},
    /* LLVM prefers 256 bits on the generic v4; kernels choose their width themselves. */
    {CG_X86_64_V4, "x86-64-v4", X86, "x86-64-v4", "-prefer-256-bit", 64, 32, true, false},
    {CG_X86_64_V4_BF16, "x86-64-v4-bf16", X86, "x86-64-v4", "-prefer-256-bit,+avx512bf16", 64, 32,
     true, true},
    {CG_AARCH64, "aarch64", "aarch64-unknown-linux-gnu", "generic", "+neon", 16, 32, true, false},
};

/* This machine's own processor: cpu and features are asked of LLVM when the unit is made. */
static const cg_target_info natives[] = {
    {CG_NATIVE, "native", X86, NULL, NULL, 16, 16, false, false},
    {CG_NATIVE, "native", X86, NULL, NULL, 32, 16, true, false},
    {CG_NATIVE, "native", X86, NULL, NULL, 64, 32, true, false},
    {CG_NATIVE, "native", X86, NULL, NULL, 64, 32, true, true},
    {CG_NATIVE, "native", "aarch64-unknown-linux-gnu", NULL, NULL, 16, 32, true, false},
};

static const cg_target_info *native_target(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        return &natives[__builtin_cpu_supports("avx512bf16") ? 3 : 2];
    return &natives[__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 1 : 0];
#else
    return &natives[4];
#endif
}

const cg_target_info *cg_target_find(ts_str name) {
    if (ts_str_is(name, "native"))
        return native_target();
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
        if (ts_str_is(name, targets[i].name))
            return &targets[i];
    return NULL;
}

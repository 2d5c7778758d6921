/* codegen/targets.c - the CPU levels: one row each. */
#include "codegen/compile_llvm.h"

#define X86 "x86_64-unknown-linux-gnu"

static const cg_target_info targets[] = {
    {CG_X86_64_V2, "x86-64-v2", X86, "x86-64-v2", "", 16, 16, false, false, false, false},
    {CG_X86_64_V3, "x86-64-v3", X86, "x86-64-v3", "", 32, 16, true, false, false, false},
    /* LLVM prefers 256 bits on the generic v4; kernels choose their width themselves. */
    {CG_X86_64_V4, "x86-64-v4", X86, "x86-64-v4", "-prefer-256-bit", 64, 32, true, false, false, false},
    {CG_X86_64_V4_VNNI, "x86-64-v4-vnni", X86, "x86-64-v4", "-prefer-256-bit,+avx512vnni", 64, 32, true,
     false, true, false},
    {CG_X86_64_V4_BF16, "x86-64-v4-bf16", X86, "x86-64-v4", "-prefer-256-bit,+avx512bf16", 64, 32, true,
     true, false, false},
    {CG_X86_64_V4_AMX, "x86-64-v4-amx", X86, "x86-64-v4", "-prefer-256-bit,+amx-tile,+amx-bf16", 64, 32, true,
     false, false, true},
    {CG_AARCH64, "aarch64", "aarch64-unknown-linux-gnu", "generic", "+neon", 16, 32, true, false, false, false},
};

/* This machine's own processor: the highest level that it reaches and those rows of cpu_features.def
 * that it has, which the file then names; instructions are chosen by its times. */
static const cg_target_info natives[] = {
    {CG_NATIVE, "native", X86, "x86-64-v2", "", 16, 16, false, false, false, false},
    {CG_NATIVE, "native", X86, "x86-64-v3", "", 32, 16, true, false, false, false},
    {CG_NATIVE, "native", "aarch64-unknown-linux-gnu", NULL, NULL, 16, 32, true, false, false, false},
    /* with AVX-512: VNNI is 1, BF16 is 2 */
    {CG_NATIVE, "native", X86, "x86-64-v4", "-prefer-256-bit", 64, 32, true, false, false, false},
    {CG_NATIVE, "native", X86, "x86-64-v4", "-prefer-256-bit", 64, 32, true, false, true, false},
    {CG_NATIVE, "native", X86, "x86-64-v4", "-prefer-256-bit", 64, 32, true, true, false, false},
    {CG_NATIVE, "native", X86, "x86-64-v4", "-prefer-256-bit", 64, 32, true, true, true, false},
    /* with AMX, which has come with both */
    {CG_NATIVE, "native", X86, "x86-64-v4", "-prefer-256-bit,+amx-tile,+amx-bf16", 64, 32, true, true, true, true},
};

static const cg_target_info *native_target(void) {
#if defined(__x86_64__)
    uint64_t ours = tsm_cpu_features();
    uint64_t v3 = TSM_CPU_V3;
    if ((ours & v3) != v3)
        return &natives[0];
    if (!(ours & TSM_CPU_AVX512))
        return &natives[1];
    uint64_t all = TSM_CPU_AMX_BF16 | TSM_CPU_AVX512_VNNI | TSM_CPU_AVX512_BF16;
    if ((ours & all) == all)
        return &natives[7];
    return &natives[3 + (ours & TSM_CPU_AVX512_VNNI ? 1 : 0) + (ours & TSM_CPU_AVX512_BF16 ? 2 : 0)];
#else
    return &natives[2];
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

/* ---- what a level needs, for the file and for LLVM ---- */

static const struct {
    uint64_t bit;
    const char *llvm;
} rows[] = {
#define CPU_FEATURE(bit, llvm, gcc, text) {UINT64_C(1) << bit, llvm},
#include "runtime/format/cpu_features.def"
};

static uint64_t all_rows(void) {
    uint64_t all = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        all |= rows[i].bit;
    return all;
}

uint64_t cg_target_features(const cg_target_info *t) {
    switch (t->level) {
    case CG_X86_64_V2: return TSM_CPU_V2;
    case CG_X86_64_V3: return TSM_CPU_V3;
    case CG_X86_64_V4: return TSM_CPU_V3 | TSM_CPU_AVX512;
    case CG_X86_64_V4_VNNI: return TSM_CPU_V3 | TSM_CPU_AVX512 | TSM_CPU_AVX512_VNNI;
    case CG_X86_64_V4_BF16: return TSM_CPU_V3 | TSM_CPU_AVX512 | TSM_CPU_AVX512_BF16;
    case CG_X86_64_V4_AMX: return TSM_CPU_V3 | TSM_CPU_AVX512 | TSM_CPU_AMX_BF16;
    case CG_NATIVE:
        if (strncmp(t->triple, "x86_64", 6) != 0)
            return TSM_CPU_NEON | TSM_CPU_OTHER;
        return (tsm_cpu_features() & all_rows()) | (t->has_amx ? TSM_CPU_AMX_BF16 : 0) |
               (t->vector_bytes == 64   ? TSM_CPU_V3 | TSM_CPU_AVX512
                : t->vector_bytes == 32 ? TSM_CPU_V3
                                        : TSM_CPU_V2);
    case CG_AARCH64: return TSM_CPU_NEON;
    }
    return 0;
}

ts_str cg_target_feature_names(const cg_target_info *t, ts_arena *arena) {
    const char *names = t->features ? t->features : "";
    uint64_t features = t->level == CG_NATIVE ? cg_target_features(t) : 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (features & rows[i].bit)
            names = ts_arena_format(arena, "%s%s+%s", names, names[0] ? "," : "", rows[i].llvm).data;
    return ts_str_of(names);
}

bool cg_target_runs_here(const cg_target_info *t) {
#if defined(__x86_64__)
    bool is_machine = strncmp(t->triple, "x86_64", 6) == 0;
#elif defined(__aarch64__)
    bool is_machine = strncmp(t->triple, "aarch64", 7) == 0;
#else
    bool is_machine = false;
#endif
    return is_machine && (cg_target_features(t) & ~tsm_cpu_features()) == 0 && tsm_cpu_acquire(cg_target_features(t));
}

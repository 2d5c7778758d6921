/* tools/compile.h - one compilation from file to file: the only place that sees all stages.
 *
 * frontend -> passes -> codegen, in one arena, behind one setjmp. What a stage needs of another
 * (library functions, dumps) goes through callbacks that are filled here. */
#ifndef TOOLS_COMPILE_H
#define TOOLS_COMPILE_H

#include "frontend/frontend.h"

typedef enum tsc_emit {
    TSC_EMIT_TSM,
    TSC_EMIT_OBJ,
    TSC_EMIT_SO,
    TSC_EMIT_AST,
    TSC_EMIT_TSIR,
    TSC_EMIT_LLVM,
    TSC_EMIT_ASM,
    TSC_EMIT_CUDA,
    TSC_EMIT_PTX,
    TSC_EMIT_OPENCL,
    TSC_EMIT_NOTHING /* --stop-after, dumps alone */
} tsc_emit;

typedef struct tsc_options {
    fe_options frontend;   /* path is the input, whatever it is */
    const char *output;    /* NULL: text goes to `text` */
    const char *example;   /* safetensors file of example inputs, or NULL */
    tsc_emit emit;
    ts_str device;     /* "cpu", "opencl", "cuda"; empty: cpu */
    ts_str cuda_arch, nvrtc_path;
    const char *const *levels; /* CPU levels */
    size_t level_count;
    int opt_level;
    bool fast_math;
    ts_str weights_dtype; /* "bf16", "int8", "int4"; empty: float32 */
    bool computes_bf16;
    bool no_winograd; /* --no-winograd */
    const ts_str *passes; /* --passes, NULL where not given */
    size_t pass_count;
    ts_str stop_after;
    bool verify_each, check_each, dump_all, dump_changed, want_stats;
    ts_str dump_one;
    const char *report; /* file for the page of report.h, or NULL */
    bool tune;         /* measure variants of kernels on this machine */
    const char *tune_cache; /* what was measured before; NULL: nothing */
    int jobs;          /* threads for code generation; 0: one */
    const char *cache; /* folder of compiled code that may be used again, or NULL */
    size_t memory_limit; /* bytes of the compilation's arena; 0: 1.5 GiB */
} tsc_options;

/* All may be NULL. Texts are lent for the call. */
typedef struct tsc_callbacks {
    void *user;
    void (*text)(void *user, ts_str text);             /* --emit of a text without -o */
    void (*dump)(void *user, ts_str name, ts_str text); /* one pass's dump */
    void (*note)(void *user, ts_str text); /* --stats, losses of precision */
    /* Once, at the end: everything that was reported. status stays the caller's. */
    void (*report)(void *user, const fe_diagnostics *diagnostics, ts_status status);
} tsc_callbacks;

ts_status tsc_compile(const tsc_options *options, const tsc_callbacks *callbacks) TS_WARN_UNUSED;

/* ---- parts (compile_*.c) ---- */
struct safetensors_file;
typedef struct tsc_example {
    struct rt_tensor **tensors; /* in the order of names */
    ts_str *names;
    size_t count;
} tsc_example;

/* Example inputs of a file, named as the parameters are or in0, in1, ...; tensors are borrowed. */
ts_status tsc_example_load(ts_arena *arena, const char *path, tsc_example *out) TS_WARN_UNUSED;
void tsc_example_release(tsc_example *example);
/* The tensor of the argument of that name or, as in0, in1, ..., of that place; NULL: there is none. */
const rt_tensor *tsc_example_find(const tsc_example *example, const char *name, size_t index);
/* --input rows that declare what the example holds and no given row names. */
void tsc_example_declare(ts_arena *arena, const tsc_example *example, fe_options *options);

/* --check-each: runs the first entry with the example after each pass. */
typedef struct tsc_check tsc_check;
/* NULL where an argument has no example. */
tsc_check *tsc_check_make(ts_arena *arena, ir_module *m, const tsc_example *example,
                          rt_context *context);
/* The callback of pass_options; user is the tsc_check. */
ts_status tsc_check_run(void *user, ir_module *m, const char *pass);
void tsc_check_release(tsc_check *check);

#endif

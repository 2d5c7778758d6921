/* passes/passes.h - IR to IR.
 *
 * passes.def lists each pass; pipeline.c orders them. A pass is one file with one exported function
 * `ts_status pass_<name>(pass_context *ctx, ir_module *m)`, leaves verified IR or returns an error,
 * allocates IR from m->arena and everything else from ctx->scratch, prints nothing. */
#ifndef PASSES_PASSES_H
#define PASSES_PASSES_H

#include "ir/ir.h"

/* What passes may know of a target (filled by tools/ from codegen's table). */
typedef struct pass_target {
    int vector_bytes; /* 32 for AVX2, 64 for AVX-512, 16 NEON */
    bool is_gpu;
    int opt_level; /* 0..3 */
    bool fast_math;
    bool rounds_weights;  /* constant weights are rounded where they are packed */
    rt_dtype table_dtype; /* of embeddings: int8 or bfloat16; any other leaves them */
} pass_target;

typedef struct pass_context {
    ts_arena *scratch; /* emptied by the manager after each pass */
    const pass_target *target;
    bool changed;
    /* Counters of the running pass: pass_count(ctx, "folded", 1). */
    struct pass_counter *counters;
    size_t counter_count;
    /* Callbacks filled by tools/compile.c. library: a script function's IR, NULL where none. */
    ts_status (*library)(void *user, ts_str name, ir_function **out);
    void *library_user;
    void (*sink)(void *user, ts_str name, ts_str bytes); /* dumps; may be NULL */
    void *sink_user;
    void (*trim)(void *user); /* weights that were read may leave memory; may be NULL */
    void *trim_user;
    /* Memory for a weight that a pass makes, which trim lets leave as well, until the module is gone; NULL: there is
     * none. May be NULL. */
    void *(*room)(void *user, size_t bytes);
    void *room_user;
    /* A weight was rounded, with this error relative to its norm; may be NULL. */
    void (*rounded)(void *user, ts_str name, ts_place place, const char *format, double error);
    void *rounded_user;
    rt_context *evaluate_context; /* for constant folding */
    uint64_t fold_byte_budget, fold_op_budget; /* of one tensor; of one run of the pass */
    uint64_t folded_bytes; /* of all tensors so far */
} pass_context;

typedef struct pass_counter {
    const char *name;
    int64_t value;
} pass_counter;

void pass_count(pass_context *ctx, const char *name, int64_t n);

typedef ts_status (*pass_function)(pass_context *ctx, ir_module *m);

typedef struct pass_info {
    const char *name;
    const char *summary;
    int level; /* lowest -O that runs it */
    pass_function run;
} pass_info;

const pass_info *pass_find(ts_str name);
const pass_info *pass_table(size_t *out_count);

typedef struct pass_options {
    const ts_str *only; /* --passes, or NULL for the pipeline of the level */
    size_t only_count;
    ts_str stop_after; /* or empty */
    bool verify_each;
    bool dump_all, dump_changed;
    ts_str dump_one;
    bool statistics; /* passes.tsv to the sink, dumps or not */
    /* --check-each: called after each pass; compares with the first result. May be NULL. */
    ts_status (*check)(void *user, ir_module *m, const char *pass);
    void *check_user;
} pass_options;

ts_status pass_run_pipeline(pass_context *ctx, ir_module *m, const pass_options *options)
    TS_WARN_UNUSED;

#endif

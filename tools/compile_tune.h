/* tools/compile_tune.h - --tune: which variant of each kernel is fastest on this machine. */
#ifndef TOOLS_COMPILE_TUNE_H
#define TOOLS_COMPILE_TUNE_H

#include "codegen/codegen.h"
#include "tools/compile.h"

/* Measures the variants of codegen/tuning.def with the example's inputs (or made-up ones of the declared
 * sizes) and gives what is clearly faster than the schedule's choice. What the file `cache` knows is not
 * measured; it is written anew. *out_choices is in the arena. */
ts_status tsc_tune(ir_module *m, ts_arena *arena, const cg_options *options, const char *cache,
                   const tsc_example *example, const tsc_callbacks *callbacks,
                   cg_tuning *out) TS_WARN_UNUSED;

#endif

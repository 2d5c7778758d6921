/* tools/compile_precision.h - what rounding costs, told at compile time. */
#ifndef TOOLS_COMPILE_PRECISION_H
#define TOOLS_COMPILE_PRECISION_H

#include "codegen/codegen.h"
#include "tools/compile.h"

/* Notes the weights' errors by layer, the worst first. options are those of a compilation that has
 * succeeded, with its report. */
ts_status tsc_precision_report(ts_arena *arena, ir_module *m, const cg_options *options,
                               const tsc_example *example, const tsc_callbacks *callbacks)
    TS_WARN_UNUSED;

#endif

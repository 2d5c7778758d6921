/* tools/compile_precision.h - what rounding costs, told at compile time. */
#ifndef TOOLS_COMPILE_PRECISION_H
#define TOOLS_COMPILE_PRECISION_H

#include "codegen/codegen.h"
#include "tools/compile.h"

/* Notes the errors of weights, the worst layers first, and of the example's results, where there is
 * one for every argument. options are those of a compilation that has succeeded, with its report;
 * the file that it wrote is run, and a second one beside it, which goes again. */
ts_status tsc_precision_report(ir_module *m, const cg_options *options, const tsc_example *example,
                               const tsc_callbacks *callbacks) TS_WARN_UNUSED;

#endif

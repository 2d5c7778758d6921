/* tools/compile_precision.h - what rounding costs, told at compile time. */
#ifndef TOOLS_COMPILE_PRECISION_H
#define TOOLS_COMPILE_PRECISION_H

#include "codegen/codegen.h"
#include "tools/compile.h"

/* Notes the errors of weights, the worst first; sorts the rows. */
ts_status tsc_precision_weights(cg_weight_report *report, const tsc_callbacks *callbacks)
    TS_WARN_UNUSED;
/* After a compilation to a file has succeeded: runs it with the example, compiles once more in
 * float32 to a file beside, which goes again, and notes how far the results are apart. */
ts_status tsc_precision_results(const tsc_options *options, const tsc_callbacks *callbacks)
    TS_WARN_UNUSED;

#endif

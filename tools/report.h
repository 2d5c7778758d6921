/* tools/report.h - --report: what became of a program, as one page of HTML. */
#ifndef TOOLS_REPORT_H
#define TOOLS_REPORT_H

#include "ir/ir.h"

typedef struct report_kernel { /* one compiled kernel of one level */
    const ir_op *op;
    ts_str symbol;
    const char *level, *variant;
    double flops;
} report_kernel;

typedef struct report_input {
    ir_module *module;
    ts_str source;
    ts_str passes; /* passes.tsv */
    const report_kernel *kernels;
    size_t kernel_count;
} report_input;

/* The page, self-contained. Numbers the module's operators anew. */
void report_write(const report_input *in, ts_buffer *out);

#endif

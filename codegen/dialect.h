/* codegen/dialect.h - kernels as source in a C-like language: one emitter (emit_clike.c), a table
 * for each dialect.
 *
 * A device kernel takes, in order: for each buffer of the kernel (operands, results, constants) a
 * byte pointer and an offset in bytes (long), then the parameters (long each). One thread computes
 * one element of the space that is not reduced; threads beyond it do nothing. */
#ifndef CODEGEN_DIALECT_H
#define CODEGEN_DIALECT_H

#include "codegen/kernel_ir.h"

typedef struct cg_dialect {
    const char *name;
    const char *preamble;     /* types ts_long, ts_uchar, ..., ts_maximum, ts_param_float */
    const char *kernel;       /* what stands before a kernel's name */
    const char *global;       /* qualifier of pointers into device memory, with a blank after it */
    const char *thread;       /* the thread's number as ts_long */
    const char *const *scalar; /* spelling by kn_code; NULL: none */
} cg_dialect;

extern const cg_dialect cg_dialect_opencl, cg_dialect_cuda;

/* Appends the source of a scheduled kernel; *out_threads is the size of its space, registered
 * among the kernel's parameters. UNSUPPORTED where the dialect lacks something; nothing is appended
 * then. */
ts_status kn_emit_clike(const cg_dialect *dialect, kn_kernel *k, ts_str name, ts_buffer *out,
                        rt_dim *out_threads) TS_WARN_UNUSED;

#endif

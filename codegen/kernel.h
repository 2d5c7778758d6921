/* codegen/kernel.h - the contract between the host program and a kernel.
 *
 * A compiled CPU kernel is
 *
 *   void kernel(void *const *buffers, const int64_t *params, int64_t begin, int64_t end,
 *               void *scratch);
 *
 * buffers  data pointers: the tensor operands of the IR_OP_KERNEL in order (its scalar operands
 *          are left out), then its tensor results, then the kernel's own constants (packed weights)
 * params   what `params` of cg_kernel lists, 8 bytes each; a float scalar is passed as the bits of
 *          its double, a bool as 0 or 1
 * begin, end  part of the range [0, work_items): each item is computed independently of the
 *          partition, so results do not depend on the number of threads
 * scratch  scratch_bytes of its own for each thread, 64-byte aligned
 *
 * Tensor operands are dense in the layout that their type states (contiguous or channels last);
 * the host program makes them so before the call where the type says ANY. */
#ifndef CODEGEN_KERNEL_H
#define CODEGEN_KERNEL_H

#include "ir/ir.h"

typedef struct cg_param {
    enum { CG_PARAM_DIM, CG_PARAM_SCALAR } kind;
    rt_dim dim;     /* DIM: a size expression of the module (constants never become params) */
    size_t operand; /* SCALAR: which operand of the IR_OP_KERNEL */
} cg_param;

typedef struct cg_constant { /* bytes that go to the artifact's weight section, 64-byte aligned */
    const void *data;
    size_t bytes;
} cg_constant;

typedef struct cg_kernel {
    ts_str symbol;
    const cg_param *params;
    size_t param_count;
    const cg_constant *constants;
    size_t constant_count;
    rt_dim work_items;     /* constant or size expression */
    int64_t grain;         /* smallest number of items worth a thread of its own */
    bool alternates;       /* in a loop, items from the last to the first every other time keep weights in caches */
    rt_dim scratch_bytes;  /* per thread; constant or size expression */
    double flops, bytes;   /* estimates for profiles; 0 unknown */
    ts_str device_symbol;  /* name in the device's code; empty where there is none */
    rt_dim device_threads; /* threads that it needs */
} cg_kernel;

#endif

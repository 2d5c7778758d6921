/* runtime/ops/ref_autograd.c - gradients that the compiler did not turn into operators. */
#include "runtime/ops/ref_kernel.h"

/* passes/differentiate.c replaces each of these or refuses the program; one is left only where
 * passes were not run. */
KERNEL(autograd_grad) {
    return ts_error_make(TS_ERR_UNSUPPORTED,
                         "autograd.grad is computed at compile time: run the pass differentiate");
}

/* Each gradient is as its input. */
RULE(autograd_grad) {
    outs[0] = args[1];
    return NULL;
}

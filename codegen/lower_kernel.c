/* codegen/lower_kernel.c - kernels from IR_OP_KERNEL. */
#include "codegen/codegen_internal.h"

ts_status cg_lower_kernel(cg_unit *unit, const ir_op *op, cg_kernel *out) {
    (void)unit;
    (void)out;
    return ts_error_at(TS_ERR_UNSUPPORTED, op->place, "kernels are not compiled yet");
}

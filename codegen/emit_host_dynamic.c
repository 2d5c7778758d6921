/* codegen/emit_host_dynamic.c - core operators: natively where there is a lowering, else by the
 * reference kernels (the dynamic path). */
#include "codegen/emit_host.h"

void host_emit_dynamic(host_function *f, const ir_op *op) {
    if (op->operand_count > HOST_PART) {
        host_fail(f, op, "an operator of more than 64 arguments");
        return;
    }
    for (size_t i = 0; i < op->operand_count; i++)
        host_put_arg(f, op->operands[i], i);
    LLVMValueRef outs = op->result_count == 1 ? host_result_target(f, op->results[0])
                                              : host_out(f, 0);
    LLVMValueRef args[] = {f->run,
                           host_word(f, cg_program_operator(f->hm->program, op->core)),
                           f->scratch_args, outs, host_word(f, host_place(f, op))};
    host_check(f, host_call(f, SERVICE_op_call, args, 5));
    if (op->result_count == 1) {
        host_result_written(f, op->results[0]);
        return;
    }
    for (size_t i = 0; i < op->result_count; i++)
        host_result_from(f, op->results[i], host_out(f, i), true);
}

void host_emit_core(host_function *f, const ir_op *op) {
    if (host_emit_scalar(f, op)) {
        host_count(f, op, false);
        return;
    }
    /* Work on tensors by reference kernels is what `dynamic` counts; strings and lists have no
     * other form. */
    rt_lowering lower = rt_op_get(op->core)->lower;
    bool on_tensors = lower != LOWER_scalar && lower != LOWER_none;
    host_emit_dynamic(f, op);
    if (on_tensors)
        host_count(f, op, true);
}

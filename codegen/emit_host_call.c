/* codegen/emit_host_call.c - calls of functions and methods, and calls whose exception is caught. */
#include "codegen/emit_host.h"

static void check_call(host_function *f, LLVMValueRef status, uint32_t callee, const ir_op *op) {
    LLVMBasicBlockRef bad = host_block(f, "failed"), go = host_block(f, "");
    LLVMBuildCondBr(f->b, LLVMBuildIsNotNull(f->b, status, ""), bad, go);
    LLVMPositionBuilderAtEnd(f->b, bad);
    LLVMValueRef args[] = {f->run, status, host_word(f, callee), host_word(f, host_place(f, op))};
    LLVMValueRef extended = host_call(f, SERVICE_called_from, args, 4);
    LLVMBuildBr(f->b, f->error);
    LLVMAddIncoming(f->error_status, &extended, &bad, 1);
    LLVMPositionBuilderAtEnd(f->b, go);
}

static bool has_subclass(const ir_module *m, const ir_class *class_) {
    for (size_t i = 0; i < m->class_count; i++)
        for (size_t k = 0; k < m->classes[i]->base.base_count; k++)
            if (m->classes[i]->base.bases[k] == &class_->base)
                return true;
    return false;
}

/* The program's number of the method that a call must reach; UINT32_MAX: found by the object's own
 * class at run time. */
static uint32_t known_method(host_function *f, const ir_op *op) {
    const cg_program *p = f->hm->program;
    const ir_type *t = op->operands[0]->type;
    if (t->kind != IR_CLASS || !t->class_ || t->class_->base.kind == RT_CLASS_INTERFACE ||
        has_subclass(f->unit->ir, t->class_))
        return UINT32_MAX;
    for (size_t i = 0; i < t->class_->method_count; i++) {
        if (!ts_str_equal(t->class_->methods[i].name, op->name))
            continue;
        for (size_t k = 0; k < p->function_count; k++)
            if (p->functions[k] == t->class_->methods[i].function)
                return (uint32_t)k;
    }
    return UINT32_MAX;
}

void host_emit_call(host_function *f, ir_op *op) {
    if (op->operand_count > f->scratch_arg_count) {
        host_fail(f, op, "a call of more than 256 arguments");
        return;
    }
    for (size_t i = 0; i < op->operand_count; i++)
        host_put_arg(f, op->operands[i], i);
    LLVMValueRef out = op->result_count ? host_result_target(f, op->results[0]) : host_out(f, 0);
    uint32_t index = op->opcode == IR_OP_CALL
                         ? cg_program_function(f->hm->program, op->function)
                         : known_method(f, op);
    if (index != UINT32_MAX) {
        LLVMValueRef args[] = {f->run, f->scratch_args, out};
        LLVMValueRef status =
            LLVMBuildCall2(f->b, f->hm->function_type, f->hm->functions[index], args, 3, "");
        check_call(f, status, index, op);
    } else {
        LLVMValueRef args[] = {f->run,
                               f->scratch_args,
                               host_word(f, cg_program_string(f->hm->program, op->name)),
                               f->scratch_args,
                               out,
                               host_word(f, host_place(f, op))};
        host_check(f, host_call(f, SERVICE_call_method, args, 6));
    }
    if (op->result_count)
        host_result_written(f, op->results[0]);
}

/* A call whose exception becomes values. Each result has its slot on both ways: NONE where it is
 * not told. */
void host_emit_try_call(host_function *f, ir_op *op) {
    if (op->operand_count > f->scratch_arg_count) {
        host_fail(f, op, "a call of more than 256 arguments");
        return;
    }
    for (size_t i = 0; i < op->operand_count; i++)
        host_put_arg(f, op->operands[i], i);
    LLVMValueRef none = host_int(f, RT_TAG_NONE);
    LLVMValueRef exception = host_result_target(f, op->results[1]);
    LLVMValueRef message = host_result_target(f, op->results[2]);
    LLVMValueRef out = host_result_target(f, op->results[3]);
    host_store(f, none, exception, 0);
    host_store(f, none, message, 0);
    uint32_t index = cg_program_function(f->hm->program, op->function);
    LLVMValueRef args[] = {f->run, f->scratch_args, out};
    LLVMValueRef status =
        LLVMBuildCall2(f->b, f->hm->function_type, f->hm->functions[index], args, 3, "");
    LLVMValueRef ok = LLVMBuildIsNull(f->b, status, "");
    LLVMBasicBlockRef caught = host_block(f, "caught"), go = host_block(f, "");
    LLVMBuildCondBr(f->b, ok, go, caught);
    LLVMPositionBuilderAtEnd(f->b, caught);
    host_store(f, none, out, 0);
    LLVMValueRef told[] = {f->run, status, exception, message};
    host_check(f, host_call(f, SERVICE_catch, told, 4));
    LLVMBuildBr(f->b, go);
    LLVMPositionBuilderAtEnd(f->b, go);
    host_set_native(f, op->results[0], ok);
    for (size_t i = 1; i < 4; i++)
        host_result_written(f, op->results[i]);
}

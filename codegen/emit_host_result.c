/* codegen/emit_host_result.c - where values of the host program lie: releases, moves, results. */
#include "codegen/emit_host.h"

LLVMValueRef host_out(host_function *f, size_t index) {
    return host_offset(f, f->scratch_outs, (int64_t)(index * sizeof(rt_value)));
}

/* ---- releases and moves ---- */

void host_clear_slot(host_function *f, size_t slot) {
    host_store(f, host_int(f, RT_TAG_NONE), host_slot(f, slot), 0);
}

void host_free_slot(host_function *f, const ir_value *v) {
    host_value *h = host_of(f, v);
    /* A loop's slots stay taken until the loop ends: the next round writes to them. */
    bool is_carried = v->block && v->block->parent && v->block->parent->opcode == IR_OP_LOOP;
    if (!is_carried)
        f->slot_used[h->slot] = false;
    h->kind = HOST_UNSET;
}

void host_release(host_function *f, const ir_value *v) {
    host_value *h = host_of(f, v);
    if (h->kind != HOST_SLOT)
        return;
    LLVMValueRef at = host_slot(f, h->slot);
    if (!host_is_native(v->type)) /* a number that crossed into a piece owns nothing */
        host_call(f, SERVICE_release, &at, 1);
    host_free_slot(f, v);
}

void host_release_dead(host_function *f, const ir_op *op) {
    for (const host_death *d = f->deaths[op->number]; d; d = d->next)
        host_release(f, d->value);
}

void host_move_or_copy(host_function *f, const ir_value *from, const ir_op *op, size_t index,
                       LLVMValueRef to) {
    host_value *h = host_of(f, from);
    bool again = false;
    for (size_t i = index + 1; i < op->operand_count; i++)
        again |= op->operands[i] == from;
    if (h->kind == HOST_NATIVE || h->kind == HOST_NONE) {
        host_put_boxed(f, from, to);
    } else if (!again && host_dies_at(f, from, op)) {
        host_put_boxed(f, from, to);
        host_clear_slot(f, h->slot);
        host_free_slot(f, from);
    } else {
        LLVMValueRef args[] = {to, host_boxed(f, from, 0)};
        host_call(f, SERVICE_copy, args, 2);
    }
}

/* ---- results ---- */

/* Where a service writes a result: straight into the value's slot, or into scratch memory. */
LLVMValueRef host_result_target(host_function *f, const ir_value *v) {
    if (host_is_native(v->type) || v->type->kind == IR_NONE)
        return host_out(f, 0);
    return host_set_slot(f, v);
}

void host_result_written(host_function *f, const ir_value *v) {
    if (host_is_native(v->type) || v->type->kind == IR_NONE)
        host_result_from(f, v, host_out(f, 0), true);
    else
        host_bind_symbols(f, v);
}

/* codegen/emit_host_flow.c - control flow: if, loop, raise, return. */
#include "codegen/emit_host.h"

static void merge_yields(host_function *f, const ir_op *op, LLVMValueRef (*natives)[2],
                         const LLVMBasicBlockRef ends[2]) {
    for (size_t i = 0; i < op->result_count; i++) {
        const ir_value *v = op->results[i];
        if (!host_is_native(v->type))
            continue;
        LLVMValueRef phi = LLVMBuildPhi(f->b, host_native_type(f, v->type), "");
        for (int side = 0; side < 2; side++) {
            LLVMBasicBlockRef end = ends[side];
            LLVMAddIncoming(phi, &natives[i][side], &end, 1);
        }
        host_set_native(f, v, phi);
    }
}

static const ir_op *yield_of(host_function *f, const ir_op *op, const ir_block *block,
                             size_t count) {
    const ir_op *yield = block->last;
    if (yield && yield->opcode == IR_OP_YIELD && yield->operand_count == count)
        return yield;
    host_fail(f, op, "a region does not yield what its operator needs");
    return NULL;
}

void host_emit_if(host_function *f, ir_op *op) {
    LLVMValueRef condition =
        host_native(f, op->operands[0], ir_type_simple(f->unit->ir, IR_BOOL));
    /* Result slots first, so that no branch takes them for its own. */
    for (size_t i = 0; i < op->result_count; i++) {
        const ir_value *v = op->results[i];
        if (v->type->kind == IR_NONE)
            *host_of(f, v) = (host_value){.kind = HOST_NONE};
        else if (!host_is_native(v->type))
            host_set_slot(f, v);
    }
    LLVMValueRef(*natives)[2] = NULL;
    if (op->result_count)
        natives = ts_arena_array(f->unit->arena, op->result_count, sizeof *natives);
    LLVMBasicBlockRef starts[2] = {host_block(f, "then"), host_block(f, "else")};
    LLVMBasicBlockRef ends[2] = {NULL, NULL};
    LLVMBasicBlockRef join = host_block(f, "join");
    LLVMBuildCondBr(f->b, condition, starts[0], starts[1]);
    for (int side = 0; side < 2; side++) {
        LLVMPositionBuilderAtEnd(f->b, starts[side]);
        size_t symbols = f->symbol_count;
        host_emit_block(f, op->regions[side]);
        const ir_op *yield = yield_of(f, op, op->regions[side], op->result_count);
        if (!yield)
            return;
        for (size_t i = 0; i < op->result_count; i++) {
            const ir_value *v = op->results[i];
            if (host_is_native(v->type))
                natives[i][side] = host_native(f, yield->operands[i], v->type);
            else if (v->type->kind != IR_NONE)
                host_move_or_copy(f, yield->operands[i], yield, i, host_slot(f, host_of(f, v)->slot));
        }
        host_release_dead(f, yield);
        f->symbol_count = symbols;
        LLVMBuildBr(f->b, join);
        ends[side] = LLVMGetInsertBlock(f->b);
    }
    LLVMPositionBuilderAtEnd(f->b, join);
    merge_yields(f, op, natives, ends);
    for (size_t i = 0; i < op->result_count; i++)
        if (host_of(f, op->results[i])->kind == HOST_SLOT)
            host_bind_symbols(f, op->results[i]);
}

/* No use inside of op's regions, and op is where it dies: it may be moved into the loop. */
static bool moves_into(host_function *f, const ir_value *v, const ir_op *op) {
    if (!host_dies_at(f, v, op))
        return false;
    for (size_t i = 0; i < v->use_count; i++)
        if (v->uses[i].op != op)
            return false;
    return true;
}

static void poll_interrupt(host_function *f) {
    LLVMValueRef at = host_offset(f, f->run, offsetof(rt_run, interrupt));
    LLVMValueRef flag = LLVMBuildLoad2(f->b, f->unit->i32, at, "");
    LLVMSetAlignment(flag, 4);
    LLVMSetOrdering(flag, LLVMAtomicOrderingMonotonic);
    LLVMBasicBlockRef stop = host_block(f, "interrupted"), go = host_block(f, "");
    LLVMValueRef asked = LLVMBuildICmp(f->b, LLVMIntNE, flag, host_word(f, 0), "");
    host_branch(f, asked, stop, go, false);
    LLVMPositionBuilderAtEnd(f->b, stop);
    host_check(f, host_call(f, SERVICE_poll, &f->run, 1));
    LLVMBuildBr(f->b, go);
    LLVMPositionBuilderAtEnd(f->b, go);
}

static size_t times_yielded(const ir_op *yield, const ir_value *v) {
    size_t n = 0;
    for (size_t i = 0; i < yield->operand_count; i++)
        n += yield->operands[i] == v;
    return n;
}

/* The boxed values carried to the next round: all are staged before any is overwritten. */
static void carry_boxed(host_function *f, const ir_op *yield, ir_value *const *params,
                        size_t count, const size_t *slots) {
    for (size_t k = 0; k < count; k++) {
        const ir_value *p = params[k], *from = yield->operands[k + 1];
        if (host_is_native(p->type) || p->type->kind == IR_NONE || from == p)
            continue;
        host_value *h = host_of(f, from);
        LLVMValueRef to = host_out(f, k);
        if (host_dies_at(f, from, yield) && times_yielded(yield, from) == 1) {
            host_put_boxed(f, from, to);
            host_clear_slot(f, h->slot);
            host_free_slot(f, from);
        } else if (h->kind == HOST_NATIVE || h->kind == HOST_NONE) {
            host_put_boxed(f, from, to);
        } else {
            LLVMValueRef args[] = {to, host_boxed(f, from, 0)};
            host_call(f, SERVICE_copy, args, 2);
        }
    }
    for (size_t k = 0; k < count; k++) {
        const ir_value *p = params[k];
        if (host_is_native(p->type) || p->type->kind == IR_NONE || yield->operands[k + 1] == p)
            continue;
        LLVMValueRef slot = host_slot(f, slots[k]), from = host_out(f, k);
        host_call(f, SERVICE_release, &slot, 1);
        host_store(f, host_load(f, f->unit->i64, from, 0), slot, 0);
        host_store(f, host_load(f, f->unit->i64, from, 8), slot, 8);
    }
    for (size_t k = 0; k < count; k++)
        host_of(f, params[k])->kind = HOST_UNSET;
}

void host_emit_loop(host_function *f, ir_op *op) {
    cg_unit *u = f->unit;
    ir_block *body = op->regions[0];
    size_t count = op->result_count;
    const ir_op *yield = yield_of(f, op, body, count + 1);
    if (!yield || op->operand_count != count + 2 || body->parameter_count != count + 1) {
        host_fail(f, op, "a loop's counts do not fit");
        return;
    }
    const ir_type *int_type = ir_type_simple(u->ir, IR_INT);
    const ir_type *bool_type = ir_type_simple(u->ir, IR_BOOL);
    ir_value **params = body->parameters + 1;
    LLVMValueRef max = host_native(f, op->operands[0], int_type);
    LLVMValueRef go = host_native(f, op->operands[1], bool_type);
    size_t *slots = TS_NEW_ARRAY(u->arena, size_t, count + 1);
    LLVMValueRef *phis = TS_NEW_ARRAY(u->arena, LLVMValueRef, count + 1);
    LLVMValueRef *starts = TS_NEW_ARRAY(u->arena, LLVMValueRef, count + 1);
    for (size_t k = 0; k < count; k++) {
        const ir_value *p = params[k], *init = op->operands[k + 2];
        if (host_is_native(p->type)) {
            starts[k] = host_native(f, init, p->type);
            continue;
        }
        if (p->type->kind == IR_NONE) {
            *host_of(f, p) = (host_value){.kind = HOST_NONE};
            continue;
        }
        LLVMValueRef to = host_set_slot(f, p);
        slots[k] = host_of(f, p)->slot;
        if (moves_into(f, init, op) || host_of(f, init)->kind == HOST_NATIVE) {
            host_move_or_copy(f, init, op, k + 2, to);
        } else {
            LLVMValueRef args[] = {to, host_boxed(f, init, 0)};
            host_call(f, SERVICE_copy, args, 2);
        }
    }
    LLVMBasicBlockRef before = LLVMGetInsertBlock(f->b);
    LLVMBasicBlockRef head = host_block(f, "loop"), inside = host_block(f, "body"),
                      after = host_block(f, "after");
    LLVMBuildBr(f->b, head);
    LLVMPositionBuilderAtEnd(f->b, head);
    LLVMValueRef i = LLVMBuildPhi(f->b, u->i64, "i"), on = LLVMBuildPhi(f->b, u->i1, "on");
    LLVMValueRef zero = host_int(f, 0);
    LLVMAddIncoming(i, &zero, &before, 1);
    LLVMAddIncoming(on, &go, &before, 1);
    for (size_t k = 0; k < count; k++)
        if (starts[k]) {
            phis[k] = LLVMBuildPhi(f->b, host_native_type(f, params[k]->type), "");
            LLVMAddIncoming(phis[k], &starts[k], &before, 1);
        }
    LLVMValueRef more = LLVMBuildICmp(f->b, LLVMIntSLT, i, max, "");
    LLVMBuildCondBr(f->b, LLVMBuildAnd(f->b, on, more, ""), inside, after);
    LLVMPositionBuilderAtEnd(f->b, inside);
    size_t symbols = f->symbol_count;
    host_set_native(f, body->parameters[0], i);
    for (size_t k = 0; k < count; k++) {
        if (phis[k])
            host_set_native(f, params[k], phis[k]);
        else if (params[k]->type->kind != IR_NONE)
            host_bind_symbols(f, params[k]);
    }
    host_emit_block(f, body);
    LLVMValueRef next_on = host_native(f, yield->operands[0], bool_type);
    for (size_t k = 0; k < count; k++)
        if (phis[k])
            starts[k] = host_native(f, yield->operands[k + 1], params[k]->type);
    carry_boxed(f, yield, params, count, slots);
    host_release_dead(f, yield);
    f->symbol_count = symbols;
    poll_interrupt(f);
    LLVMValueRef next = LLVMBuildAdd(f->b, i, host_int(f, 1), "");
    LLVMBasicBlockRef end = LLVMGetInsertBlock(f->b);
    LLVMBuildBr(f->b, head);
    LLVMAddIncoming(i, &next, &end, 1);
    LLVMAddIncoming(on, &next_on, &end, 1);
    for (size_t k = 0; k < count; k++)
        if (phis[k])
            LLVMAddIncoming(phis[k], &starts[k], &end, 1);
    LLVMPositionBuilderAtEnd(f->b, after);
    for (size_t k = 0; k < count; k++) {
        const ir_value *r = op->results[k];
        if (phis[k] && host_is_native(r->type)) {
            host_set_native(f, r, phis[k]);
        } else if (params[k]->type->kind == IR_NONE && r->type->kind == IR_NONE) {
            *host_of(f, r) = (host_value){.kind = HOST_NONE};
        } else if (!phis[k] && params[k]->type->kind != IR_NONE) {
            *host_of(f, r) = (host_value){.kind = HOST_SLOT, .slot = slots[k]};
            host_bind_symbols(f, r);
        } else {
            host_fail(f, op, "a loop's result has another type than what it carries");
        }
    }
}

/* Goes to the error exit with a status. */
static void leave(host_function *f, LLVMValueRef status) {
    LLVMBasicBlockRef from = LLVMGetInsertBlock(f->b);
    LLVMBuildBr(f->b, f->error);
    LLVMAddIncoming(f->error_status, &status, &from, 1);
    /* What follows is not reached; it still needs a block to stand in. */
    LLVMPositionBuilderAtEnd(f->b, host_block(f, "unreached"));
}

void host_emit_raise(host_function *f, const ir_op *op) {
    if (op->operand_count == 2) {
        LLVMValueRef as[] = {f->run, host_boxed(f, op->operands[1], 0), host_boxed(f, op->operands[0], 1),
                             host_word(f, host_place(f, op))};
        leave(f, host_call(f, SERVICE_raise_as, as, 4));
        return;
    }
    LLVMValueRef message = op->operand_count ? host_boxed(f, op->operands[0], 0)
                                             : LLVMConstNull(f->unit->pointer);
    ts_str name = op->name.length ? op->name : TS_STR("Exception");
    LLVMValueRef args[] = {f->run, host_word(f, cg_program_string(f->hm->program, name)), message,
                           host_word(f, host_place(f, op))};
    leave(f, host_call(f, SERVICE_raise, args, 4));
}

void host_emit_return(host_function *f, const ir_op *op) {
    if (op->operand_count == 0) {
        host_store(f, host_int(f, RT_TAG_NONE), f->out, 0);
        host_store(f, host_int(f, 0), f->out, 8);
        return;
    }
    host_move_or_copy(f, op->operands[0], op, 0, f->out);
    host_release_dead(f, op);
}

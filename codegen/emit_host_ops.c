/* codegen/emit_host_ops.c - structural operators and the dynamic path. */
#include "codegen/emit_host.h"

#include "runtime/values/tensor.h"

enum { PART = 64 /* as SCRATCH_MAX: items given to a container at once */ };

static LLVMValueRef out_pointer(host_function *f, size_t index) {
    return host_offset(f, f->scratch_outs, (int64_t)(index * sizeof(rt_value)));
}

/* ---- releases and moves ---- */

static void clear_slot(host_function *f, size_t slot) {
    host_store(f, host_int(f, RT_TAG_NONE), host_slot(f, slot), 0);
}

static void free_slot(host_function *f, const ir_value *v) {
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
    free_slot(f, v);
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
        clear_slot(f, h->slot);
        free_slot(f, from);
    } else {
        LLVMValueRef args[] = {to, host_boxed(f, from, 0)};
        host_call(f, SERVICE_copy, args, 2);
    }
}

/* ---- results ---- */

/* Where a service writes a result: straight into the value's slot, or into scratch memory. */
static LLVMValueRef result_target(host_function *f, const ir_value *v) {
    if (host_is_native(v->type) || v->type->kind == IR_NONE)
        return out_pointer(f, 0);
    return host_set_slot(f, v);
}

static void result_written(host_function *f, const ir_value *v) {
    if (host_is_native(v->type) || v->type->kind == IR_NONE)
        host_result_from(f, v, out_pointer(f, 0), true);
    else
        host_bind_symbols(f, v);
}

/* ---- the dynamic path ---- */

void host_emit_dynamic(host_function *f, const ir_op *op) {
    if (op->operand_count > PART) {
        host_fail(f, op, "an operator of more than 64 arguments");
        return;
    }
    for (size_t i = 0; i < op->operand_count; i++)
        host_put_arg(f, op->operands[i], i);
    LLVMValueRef outs = op->result_count == 1 ? result_target(f, op->results[0])
                                              : out_pointer(f, 0);
    LLVMValueRef args[] = {f->run,
                           host_word(f, cg_program_operator(f->hm->program, op->core)),
                           f->scratch_args, outs, host_word(f, host_place(f, op))};
    host_check(f, host_call(f, SERVICE_op_call, args, 5));
    if (op->result_count == 1) {
        result_written(f, op->results[0]);
        return;
    }
    for (size_t i = 0; i < op->result_count; i++)
        host_result_from(f, op->results[i], out_pointer(f, i), true);
}

static void emit_core(host_function *f, const ir_op *op) {
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

/* ---- constants ---- */

static void emit_const(host_function *f, const ir_op *op) {
    const ir_value *v = op->results[0];
    if (v->type->kind == IR_NONE) {
        *host_of(f, v) = (host_value){.kind = HOST_NONE};
    } else if (host_is_native(v->type)) {
        LLVMValueRef native;
        if (v->type->kind == IR_FLOAT) {
            double d = op->value.tag == RT_TAG_FLOAT ? op->value.as.f : (double)op->value.as.i;
            /* Through the bits: a NaN keeps its payload. */
            uint64_t bits;
            memcpy(&bits, &d, sizeof bits);
            native = LLVMConstBitCast(LLVMConstInt(f->unit->i64, bits, false), f->unit->f64);
        } else {
            native = LLVMConstInt(host_native_type(f, v->type),
                                  (unsigned long long)op->value.as.i, true);
        }
        host_set_native(f, v, native);
    } else {
        uint32_t index = cg_program_constant(f->hm->program, op->value);
        *host_of(f, v) = (host_value){.kind = HOST_CONST, .slot = index};
        host_bind_symbols(f, v);
    }
}

static void emit_uninitialized(host_function *f, const ir_value *v) {
    if (v->type->kind == IR_NONE)
        *host_of(f, v) = (host_value){.kind = HOST_NONE};
    else if (host_is_native(v->type))
        host_set_native(f, v, LLVMConstNull(host_native_type(f, v->type)));
    else
        *host_of(f, v) = (host_value){
            .kind = HOST_CONST,
            .slot = cg_program_constant(f->hm->program, (rt_value){.tag = RT_TAG_UNINITIALIZED})};
}

/* ---- control flow ---- */

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

static void emit_if(host_function *f, ir_op *op) {
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
        LLVMValueRef to = out_pointer(f, k);
        if (host_dies_at(f, from, yield) && times_yielded(yield, from) == 1) {
            host_put_boxed(f, from, to);
            clear_slot(f, h->slot);
            free_slot(f, from);
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
        LLVMValueRef slot = host_slot(f, slots[k]), from = out_pointer(f, k);
        host_call(f, SERVICE_release, &slot, 1);
        host_store(f, host_load(f, f->unit->i64, from, 0), slot, 0);
        host_store(f, host_load(f, f->unit->i64, from, 8), slot, 8);
    }
    for (size_t k = 0; k < count; k++)
        host_of(f, params[k])->kind = HOST_UNSET;
}

static void emit_loop(host_function *f, ir_op *op) {
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

static void emit_raise(host_function *f, const ir_op *op) {
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

/* ---- calls ---- */

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

static void emit_call(host_function *f, ir_op *op) {
    if (op->operand_count > f->scratch_arg_count) {
        host_fail(f, op, "a call of more than 256 arguments");
        return;
    }
    for (size_t i = 0; i < op->operand_count; i++)
        host_put_arg(f, op->operands[i], i);
    LLVMValueRef out = op->result_count ? result_target(f, op->results[0]) : out_pointer(f, 0);
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
        result_written(f, op->results[0]);
}

/* A call whose exception becomes values. Each result has its slot on both ways: NONE where it is
 * not told. */
static void emit_try_call(host_function *f, ir_op *op) {
    if (op->operand_count > f->scratch_arg_count) {
        host_fail(f, op, "a call of more than 256 arguments");
        return;
    }
    for (size_t i = 0; i < op->operand_count; i++)
        host_put_arg(f, op->operands[i], i);
    LLVMValueRef none = host_int(f, RT_TAG_NONE);
    LLVMValueRef exception = result_target(f, op->results[1]);
    LLVMValueRef message = result_target(f, op->results[2]);
    LLVMValueRef out = result_target(f, op->results[3]);
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
        result_written(f, op->results[i]);
}

/* ---- containers ---- */

static size_t put_part(host_function *f, const ir_op *op, size_t from) {
    size_t n = op->operand_count - from < PART ? op->operand_count - from : PART;
    for (size_t i = 0; i < n; i++)
        host_put_arg(f, op->operands[from + i], i);
    return n;
}

static void emit_list_or_dict(host_function *f, const ir_op *op, int make, int extend) {
    LLVMValueRef out = result_target(f, op->results[0]);
    size_t n = put_part(f, op, 0);
    LLVMValueRef args[] = {f->run, f->scratch_args, host_int(f, (int64_t)n), out};
    host_check(f, host_call(f, make, args, 4));
    for (size_t at = n; at < op->operand_count; at += n) {
        n = put_part(f, op, at);
        LLVMValueRef more[] = {f->run, out, f->scratch_args, host_int(f, (int64_t)n)};
        host_check(f, host_call(f, extend, more, 4));
    }
}

static void emit_tuple(host_function *f, const ir_op *op) {
    const ir_type *t = op->results[0]->type;
    uint32_t class_ = t->class_ ? cg_program_class(f->hm->program, t->class_) + 1 : 0;
    LLVMValueRef out = result_target(f, op->results[0]);
    bool small = op->operand_count <= PART;
    if (small)
        put_part(f, op, 0);
    LLVMValueRef args[] = {f->run, small ? f->scratch_args : LLVMConstNull(f->unit->pointer),
                           host_int(f, (int64_t)op->operand_count), host_word(f, class_), out};
    host_check(f, host_call(f, SERVICE_tuple_make, args, 5));
    for (size_t at = 0, n; !small && at < op->operand_count; at += n) {
        n = put_part(f, op, at);
        LLVMValueRef more[] = {out, host_int(f, (int64_t)at), f->scratch_args,
                               host_int(f, (int64_t)n)};
        host_call(f, SERVICE_tuple_set, more, 4);
    }
}

static void emit_tuple_get(host_function *f, const ir_op *op) {
    LLVMValueRef at = host_boxed(f, op->operands[0], 0);
    LLVMValueRef tuple = host_load(f, f->unit->pointer, at, offsetof(rt_value, as));
    for (size_t i = 0; i < op->result_count; i++) {
        int64_t index = op->opcode == IR_OP_TUPLE_GET ? op->integer : (int64_t)i;
        if (index < 0)
            index += (int64_t)op->operands[0]->type->arg_count;
        int64_t bytes = (int64_t)offsetof(rt_tuple, items) + index * (int64_t)sizeof(rt_value);
        host_result_from(f, op->results[i], host_offset(f, tuple, bytes), false);
    }
}

static void emit_list_unpack(host_function *f, const ir_op *op) {
    LLVMValueRef args[] = {f->run, host_boxed(f, op->operands[0], 0),
                           host_int(f, (int64_t)op->result_count), out_pointer(f, 0),
                           host_word(f, host_place(f, op))};
    host_check(f, host_call(f, SERVICE_list_unpack, args, 5));
    for (size_t i = 0; i < op->result_count; i++)
        host_result_from(f, op->results[i], out_pointer(f, i), true);
}

/* ---- objects ---- */

/* Pointer to the field of an object whose class is known; NULL: ask by name at run time. */
static LLVMValueRef field_pointer(host_function *f, const ir_op *op) {
    const ir_type *t = op->operands[0]->type;
    if (t->kind != IR_CLASS || !t->class_ || t->class_->base.kind == RT_CLASS_INTERFACE)
        return NULL;
    int64_t index = rt_class_field(&t->class_->base, op->name);
    if (index < 0)
        return NULL;
    LLVMValueRef at = host_boxed(f, op->operands[0], 0);
    LLVMValueRef object = host_load(f, f->unit->pointer, at, offsetof(rt_value, as));
    LLVMValueRef fields = host_load(f, f->unit->pointer, object, offsetof(rt_object, fields));
    return host_offset(f, fields, index * (int64_t)sizeof(rt_value));
}

static LLVMValueRef get_attr_by_name(host_function *f, const ir_op *op, LLVMValueRef out) {
    LLVMValueRef args[] = {f->run, host_boxed(f, op->operands[0], 0),
                           host_word(f, cg_program_string(f->hm->program, op->name)), out,
                           host_word(f, host_place(f, op))};
    return host_call(f, SERVICE_get_attr, args, 5);
}

static void emit_get_attr(host_function *f, const ir_op *op) {
    const ir_value *v = op->results[0];
    LLVMValueRef field = field_pointer(f, op);
    if (!field) {
        LLVMValueRef out = result_target(f, v);
        host_check(f, get_attr_by_name(f, op, out));
        result_written(f, v);
        return;
    }
    LLVMValueRef tag = host_load(f, f->unit->i32, field, 0);
    LLVMValueRef unset =
        LLVMBuildICmp(f->b, LLVMIntEQ, tag, host_word(f, RT_TAG_UNINITIALIZED), "");
    LLVMBasicBlockRef missing = host_block(f, "unset"), go = host_block(f, "");
    LLVMBuildCondBr(f->b, unset, missing, go);
    LLVMPositionBuilderAtEnd(f->b, missing);
    host_check(f, get_attr_by_name(f, op, out_pointer(f, 0))); /* AttributeError */
    LLVMBuildBr(f->b, go);
    LLVMPositionBuilderAtEnd(f->b, go);
    host_result_from(f, v, field, false);
}

static void emit_set_attr(host_function *f, const ir_op *op) {
    const ir_value *v = op->operands[1];
    LLVMValueRef field = field_pointer(f, op);
    if (!field) {
        LLVMValueRef args[] = {f->run, host_boxed(f, op->operands[0], 0),
                               host_word(f, cg_program_string(f->hm->program, op->name)),
                               host_boxed(f, v, 1), host_word(f, host_place(f, op))};
        host_check(f, host_call(f, SERVICE_set_attr, args, 5));
        return;
    }
    LLVMValueRef kept = out_pointer(f, 0);
    if (host_of(f, v)->kind == HOST_NATIVE || host_of(f, v)->kind == HOST_NONE) {
        host_put_boxed(f, v, kept);
    } else {
        LLVMValueRef args[] = {kept, host_boxed(f, v, 1)};
        host_call(f, SERVICE_copy, args, 2);
    }
    host_call(f, SERVICE_release, &field, 1);
    host_store(f, host_load(f, f->unit->i64, kept, 0), field, 0);
    host_store(f, host_load(f, f->unit->i64, kept, 8), field, 8);
}

static void emit_new_object(host_function *f, const ir_op *op) {
    const ir_type *t = op->type ? op->type : op->results[0]->type;
    if (!t->class_) {
        host_fail(f, op, "new_object without a class");
        return;
    }
    LLVMValueRef out = result_target(f, op->results[0]);
    LLVMValueRef args[] = {f->run, host_word(f, cg_program_class(f->hm->program, t->class_)), out};
    host_check(f, host_call(f, SERVICE_object_make, args, 3));
}

/* ---- types ---- */

static void emit_is_instance(host_function *f, const ir_op *op) {
    LLVMValueRef any = LLVMConstNull(f->unit->i1);
    LLVMValueRef at = host_boxed(f, op->operands[0], 0);
    for (size_t i = 0; i < op->type_count; i++) {
        LLVMValueRef args[] = {f->run, at,
                               host_word(f, cg_program_type(f->hm->program, op->types[i]))};
        LLVMValueRef is = host_call(f, SERVICE_is_instance, args, 3);
        is = LLVMBuildICmp(f->b, LLVMIntNE, is, host_word(f, 0), "");
        any = LLVMBuildOr(f->b, any, is, "");
    }
    host_set_native(f, op->results[0], any);
}

static void emit_cast(host_function *f, const ir_op *op) {
    const ir_value *from = op->operands[0], *to = op->results[0];
    if (op->opcode == IR_OP_CHECK_CAST) {
        LLVMValueRef args[] = {f->run, host_boxed(f, from, 0),
                               host_word(f, cg_program_type(f->hm->program, to->type)),
                               host_word(f, host_place(f, op))};
        host_check(f, host_call(f, SERVICE_check_cast, args, 4));
    }
    host_value *h = host_of(f, from);
    if (host_is_native(to->type)) {
        host_set_native(f, to, host_native(f, from, to->type));
    } else if (to->type->kind == IR_NONE) {
        *host_of(f, to) = (host_value){.kind = HOST_NONE};
    } else if (h->kind == HOST_BORROWED || h->kind == HOST_ARGUMENT || h->kind == HOST_CONST) {
        *host_of(f, to) = *h;
        host_bind_symbols(f, to);
    } else if (host_dies_at(f, from, op) && !from->block) {
        /* The slot changes hands. */
        *host_of(f, to) = *h;
        h->kind = HOST_UNSET;
        host_bind_symbols(f, to);
    } else {
        LLVMValueRef at = host_boxed(f, from, 0);
        host_result_from(f, to, at, false);
    }
}

static void emit_refine(host_function *f, const ir_op *op) {
    const ir_type *t = op->type;
    LLVMValueRef at = host_boxed(f, op->operands[0], 0);
    int rank = t->rank < 0 ? -1 : t->rank;
    LLVMValueRef sizes = f->scratch_outs;
    for (int i = 0; i < rank; i++) {
        rt_dim d = t->dims[i];
        LLVMValueRef expected = host_int(f, -1);
        if (rt_dim_is_constant(d))
            expected = host_int(f, d);
        for (size_t k = 0; k < f->symbol_count && rt_dim_is_symbolic(d); k++)
            if (f->symbols[k].dim == d)
                expected = host_symbol_value(f, &f->symbols[k]);
        host_store(f, expected, sizes, 8 * (int64_t)i);
    }
    LLVMValueRef args[] = {at, host_word(f, (uint32_t)t->dtype), host_word(f, (uint32_t)rank),
                           sizes};
    LLVMValueRef ok = host_call(f, SERVICE_matches, args, 4);
    ok = LLVMBuildICmp(f->b, LLVMIntNE, ok, host_word(f, 0), "");
    /* A letter that first stands here means this number from now on: in a later refine, and where it
     * stands again in this one. */
    size_t before = f->symbol_count;
    for (int i = 0; i < rank; i++) {
        rt_dim d = t->dims[i];
        if (!rt_dim_is_symbolic(d))
            continue;
        bool is_letter = ir_dim_get(f->unit->ir, d).kind == IR_DIM_SYMBOL;
        size_t k = 0;
        while (k < f->symbol_count && f->symbols[k].dim != d)
            k++;
        if (k < before) /* compared by the service */
            continue;
        LLVMValueRef ask[] = {at, host_int(f, i)};
        LLVMValueRef size = host_call(f, SERVICE_tensor_size, ask, 2);
        if (k == f->symbol_count && is_letter) {
            host_add_symbol(f, d, size, true);
            continue;
        }
        LLVMValueRef expected = host_dim(f, d);
        if (expected)
            ok = LLVMBuildAnd(f->b, ok, LLVMBuildICmp(f->b, LLVMIntEQ, size, expected, ""), "");
    }
    host_set_native(f, op->results[0], ok);
}

static void emit_dim(host_function *f, const ir_op *op) {
    LLVMValueRef v = host_dim(f, op->integer);
    if (!v) {
        host_fail(f, op, "a symbolic size is asked for where it is not known");
        return;
    }
    host_set_native(f, op->results[0], v);
}

static void emit_return(host_function *f, const ir_op *op) {
    if (op->operand_count == 0) {
        host_store(f, host_int(f, RT_TAG_NONE), f->out, 0);
        host_store(f, host_int(f, 0), f->out, 8);
        return;
    }
    host_move_or_copy(f, op->operands[0], op, 0, f->out);
    host_release_dead(f, op);
}

/* What may hold itself from here on is named to the session. */
static void note_cycle(host_function *f, const ir_op *op) {
    const ir_value *container = f->status ? NULL : ir_op_closes_cycle(op);
    if (!container)
        return;
    LLVMValueRef args[] = {f->run, host_boxed(f, container, 0)};
    host_call(f, SERVICE_note_cycle, args, 2);
}

/* ---- dispatch ---- */

void host_emit_op(host_function *f, ir_op *op) {
    switch (op->opcode) {
    case IR_OP_CORE:
        emit_core(f, op);
        note_cycle(f, op);
        break;
    case IR_OP_CONST: emit_const(f, op); break;
    case IR_OP_IF: emit_if(f, op); break;
    case IR_OP_LOOP: emit_loop(f, op); break;
    case IR_OP_RAISE: emit_raise(f, op); break;
    case IR_OP_TRY_CALL: emit_try_call(f, op); break;
    case IR_OP_CALL:
    case IR_OP_CALL_METHOD: emit_call(f, op); break;
    case IR_OP_TUPLE: emit_tuple(f, op); break;
    case IR_OP_TUPLE_GET:
    case IR_OP_TUPLE_UNPACK: emit_tuple_get(f, op); break;
    case IR_OP_LIST: emit_list_or_dict(f, op, SERVICE_list_make, SERVICE_list_extend); break;
    case IR_OP_DICT: emit_list_or_dict(f, op, SERVICE_dict_make, SERVICE_dict_extend); break;
    case IR_OP_LIST_UNPACK: emit_list_unpack(f, op); break;
    case IR_OP_GET_ATTR: emit_get_attr(f, op); break;
    case IR_OP_SET_ATTR:
        emit_set_attr(f, op);
        note_cycle(f, op);
        break;
    case IR_OP_NEW_OBJECT: emit_new_object(f, op); break;
    case IR_OP_IS_INSTANCE: emit_is_instance(f, op); break;
    case IR_OP_CAST:
    case IR_OP_CHECK_CAST: emit_cast(f, op); break;
    case IR_OP_UNINITIALIZED: emit_uninitialized(f, op->results[0]); break;
    case IR_OP_REFINE: emit_refine(f, op); break;
    case IR_OP_DIM: emit_dim(f, op); break;
    case IR_OP_KERNEL: host_emit_kernel(f, op); break;
    case IR_OP_RETURN: emit_return(f, op); return;
    case IR_OP_YIELD: return; /* by the operator whose region it ends */
    case IR_OPCODE_COUNT: host_fail(f, op, "an unknown operator"); return;
    }
    host_release_dead(f, op);
}

void host_emit_block(host_function *f, ir_block *block) {
    if (host_needs_pieces(f, block)) {
        host_emit_pieces(f, block);
        return;
    }
    for (ir_op *op = block->first; op && !f->status; op = op->next)
        host_emit_op(f, op);
}

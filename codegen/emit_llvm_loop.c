/* codegen/emit_llvm_loop.c - loops with carried values, index arithmetic and parameters.
 *
 * Arithmetic on constants is folded by the builder, so the text stays short for known sizes. */
#include "codegen/emit_llvm_kernel.h"

#include <string.h>

enum { MAX_TRIPS = 1 << 20 };

LLVMValueRef kn_i64(kn_emitter *e, int64_t value) {
    return LLVMConstInt(e->unit->i64, (unsigned long long)value, 1);
}

static bool constant_of(LLVMValueRef v, int64_t *out) {
    if (!LLVMIsAConstantInt(v))
        return false;
    *out = LLVMConstIntGetSExtValue(v);
    return true;
}

LLVMValueRef kn_add(kn_emitter *e, LLVMValueRef a, LLVMValueRef b) {
    int64_t c;
    if (constant_of(a, &c) && c == 0)
        return b;
    if (constant_of(b, &c) && c == 0)
        return a;
    return LLVMBuildAdd(e->b, a, b, "");
}
LLVMValueRef kn_sub(kn_emitter *e, LLVMValueRef a, LLVMValueRef b) {
    int64_t c;
    if (constant_of(b, &c) && c == 0)
        return a;
    return LLVMBuildSub(e->b, a, b, "");
}
LLVMValueRef kn_mul(kn_emitter *e, LLVMValueRef a, LLVMValueRef b) {
    int64_t c;
    if (constant_of(a, &c) && (c == 0 || c == 1))
        return c ? b : a;
    if (constant_of(b, &c) && (c == 0 || c == 1))
        return c ? a : b;
    return LLVMBuildMul(e->b, a, b, "");
}
LLVMValueRef kn_min(kn_emitter *e, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, a, b, ""), a, b, "");
}
LLVMValueRef kn_max(kn_emitter *e, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntSGT, a, b, ""), a, b, "");
}

LLVMValueRef kn_address(kn_emitter *e, LLVMValueRef base, LLVMValueRef bytes) {
    int64_t c;
    if (constant_of(bytes, &c) && c == 0)
        return base;
    return LLVMBuildGEP2(e->b, e->unit->i8, base, &bytes, 1, "");
}
LLVMValueRef kn_element(kn_emitter *e, LLVMValueRef base, LLVMValueRef index, int64_t bytes) {
    return kn_address(e, base, kn_mul(e, index, kn_i64(e, bytes)));
}

LLVMValueRef kn_param_bits(kn_emitter *e, int param) {
    return e->params[param];
}

LLVMValueRef kn_size(kn_emitter *e, rt_dim d) {
    if (rt_dim_is_constant(d))
        return kn_i64(e, d);
    return kn_param_bits(e, kn_dim_param(e->k, d));
}

void kn_loop_begin(kn_emitter *e, kn_loop *loop, LLVMValueRef begin, LLVMValueRef end, int64_t step,
                   LLVMValueRef *carried, int count) {
    LLVMContextRef c = e->unit->context;
    loop->before = LLVMGetInsertBlock(e->b);
    loop->head = LLVMAppendBasicBlockInContext(c, e->function, "");
    loop->exit = LLVMAppendBasicBlockInContext(c, e->function, "");
    loop->end = end;
    loop->step = kn_i64(e, step);
    loop->carried = count;
    int64_t from, to;
    loop->trips = constant_of(begin, &from) && constant_of(end, &to) ? (to - from + step - 1) / step : 0;
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, begin, end, ""), loop->head, loop->exit);
    LLVMPositionBuilderAtEnd(e->b, loop->head);
    loop->index = LLVMBuildPhi(e->b, e->unit->i64, "");
    LLVMAddIncoming(loop->index, &begin, &loop->before, 1);
    for (int i = 0; i < count; i++) {
        loop->initial[i] = carried[i];
        loop->phis[i] = LLVMBuildPhi(e->b, LLVMTypeOf(carried[i]), "");
        LLVMAddIncoming(loop->phis[i], &carried[i], &loop->before, 1);
    }
    size_t bytes = (size_t)e->k->node_count * sizeof *e->memo;
    loop->saved_memo = ts_arena_alloc(e->unit->arena, bytes ? bytes : 1);
    if (bytes)
        memcpy(loop->saved_memo, e->memo, bytes);
}

void kn_loop_end(kn_emitter *e, kn_loop *loop, LLVMValueRef *next) {
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->b);
    LLVMValueRef index = LLVMBuildAdd(e->b, loop->index, loop->step, "");
    LLVMAddIncoming(loop->index, &index, &latch, 1);
    for (int i = 0; i < loop->carried; i++)
        LLVMAddIncoming(loop->phis[i], &next[i], &latch, 1);
    LLVMValueRef again = LLVMBuildICmp(e->b, LLVMIntSLT, index, loop->end, "");
    LLVMValueRef branch = LLVMBuildCondBr(e->b, again, loop->head, loop->exit);
    if (loop->trips > 0)
        cg_unit_weigh_branch(e->unit, branch, loop->trips < MAX_TRIPS ? (unsigned)loop->trips - 1 : MAX_TRIPS, 1);
    LLVMPositionBuilderAtEnd(e->b, loop->exit);
    for (int i = 0; i < loop->carried; i++) {
        LLVMValueRef phi = LLVMBuildPhi(e->b, LLVMTypeOf(next[i]), "");
        LLVMAddIncoming(phi, &loop->initial[i], &loop->before, 1);
        LLVMAddIncoming(phi, &next[i], &latch, 1);
        loop->exit_phis[i] = phi;
    }
    size_t bytes = (size_t)e->k->node_count * sizeof *e->memo;
    if (bytes)
        memcpy(e->memo, loop->saved_memo, bytes);
}

void kn_when_begin(kn_emitter *e, kn_loop *loop, LLVMValueRef condition, LLVMValueRef *carried, int count) {
    kn_loop_begin(e, loop, kn_i64(e, 0), LLVMBuildZExt(e->b, condition, e->unit->i64, ""), 1, carried, count);
}

LLVMValueRef kn_lane_mask(kn_emitter *e, LLVMValueRef left, int width) {
    if (width == 1)
        return LLVMBuildICmp(e->b, LLVMIntSGT, left, kn_i64(e, 0), "");
    /* In 32 bits: left is below the width here or clamped to it. */
    LLVMValueRef narrow =
        LLVMBuildTrunc(e->b, kn_min(e, left, kn_i64(e, width)), e->unit->i32, "");
    LLVMValueRef lanes[64];
    for (int i = 0; i < width; i++)
        lanes[i] = LLVMConstInt(e->unit->i32, (unsigned)i, 0);
    return LLVMBuildICmp(e->b, LLVMIntSGT, kn_splat(e, narrow, width),
                         LLVMConstVector(lanes, (unsigned)width), "");
}

void kn_emitter_use(kn_emitter *e, kn_kernel *part) {
    ts_arena *arena = e->unit->arena;
    size_t nodes = (size_t)part->node_count + 1;
    e->k = part;
    e->memo = TS_NEW_ARRAY(arena, LLVMValueRef, nodes);
    e->bases = TS_NEW_ARRAY(arena, LLVMValueRef, nodes);
    e->store_bases = TS_NEW_ARRAY(arena, LLVMValueRef, (size_t)part->store_count + 1);
    e->count = e->windows_inside = e->row_index = e->mask = NULL;
    e->stage = 0;
}

void kn_emitter_start(kn_emitter *e, cg_unit *unit, kn_kernel *k, LLVMValueRef function) {
    memset(e, 0, sizeof *e);
    e->unit = unit;
    e->k = k;
    e->function = function;
    e->b = LLVMCreateBuilderInContext(unit->context);
    e->lanes = unit->target->vector_bytes / 4;
    e->width = e->lanes;
    kn_emitter_use(e, k);
    e->begin = LLVMGetParam(function, 2);
    e->end = LLVMGetParam(function, 3);
    e->entry = LLVMAppendBasicBlockInContext(unit->context, function, "");
    LLVMPositionBuilderAtEnd(e->b, e->entry);
    size_t buffers = (size_t)(k->buffer_count + k->constant_count);
    e->buffers = TS_NEW_ARRAY(unit->arena, LLVMValueRef, buffers + 1);
    for (size_t i = 0; i < buffers; i++)
        e->buffers[i] =
            LLVMBuildLoad2(e->b, unit->pointer,
                           kn_element(e, LLVMGetParam(function, 0), kn_i64(e, (int64_t)i), 8), "");
    e->params = TS_NEW_ARRAY(unit->arena, LLVMValueRef, (size_t)k->param_count + 1);
    for (int i = 0; i < k->param_count; i++)
        e->params[i] = LLVMBuildLoad2(
            e->b, unit->i64, kn_element(e, LLVMGetParam(function, 1), kn_i64(e, i), 8), "");
    e->scratch = LLVMGetParam(function, 4);
}

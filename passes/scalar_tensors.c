/* passes/scalar_tensors.c - integers that a trace carried through tensors become integers again.
 *
 *   %a = size.int(%x, 1)                          %a = size.int(%x, 1)
 *   %t = prim_NumToTensor.Scalar(%a)        =>    %b = add.int(%a, 1)
 *   %u = add.Scalar(%t, 1)                        ... %b for %n
 *   %n = Int.Tensor(%u)
 *
 * Tracing makes a tensor of every size and computes with it; without this no view of a traced model
 * has a known size. Needs: nothing. Keeps: types. Why before infer_types: it knows sizes as
 * integers only. Cost: one walk. */
#include "passes/pass_internal.h"

typedef struct scalars {
    pass_context *ctx;
    ir_module *m;
    ir_value_map *ints; /* 0-d integer tensor -> its value */
} scalars;

static ir_value *int_of(scalars *s, const ir_value *v) { return ir_value_map_get(s->ints, v); }

/* alpha of add and sub, where there is one, is 1. */
static bool is_plain(const ir_op *op) {
    int64_t alpha;
    return op->operand_count < 3 || (ir_const_int(op->operands[2], &alpha) && alpha == 1);
}

static void track(scalars *s, ir_op *op) {
    if (ir_is_core(op, OP_prim_NumToTensor_Scalar)) {
        if (op->operands[0]->type->kind == IR_INT)
            ir_value_map_set(s->ints, op->results[0], op->operands[0]);
        return;
    }
    rt_op number = OP_COUNT;
    if (ir_is_core(op, OP_add_Scalar) || ir_is_core(op, OP_add_Tensor))
        number = OP_add_int;
    else if (ir_is_core(op, OP_sub_Scalar) || ir_is_core(op, OP_sub_Tensor))
        number = OP_sub_int;
    else if (ir_is_core(op, OP_mul_Scalar) || ir_is_core(op, OP_mul_Tensor))
        number = OP_mul_int;
    if (number == OP_COUNT || !is_plain(op))
        return;
    ir_value *a = int_of(s, op->operands[0]), *b = op->operands[1];
    if (b->type->kind == IR_TENSOR)
        b = int_of(s, b);
    if (!a || !b || b->type->kind != IR_INT)
        return;
    ir_builder at = pass_before(s->m, op);
    ir_value *args[2] = {a, b};
    ir_value_map_set(s->ints, op->results[0], ir_build_core1(&at, number, args, 2));
}

static void read_back(scalars *s, ir_op *op) {
    if (!ir_is_core(op, OP_Int_Tensor) && !ir_is_core(op, OP_IntImplicit) &&
        !ir_is_core(op, OP_ScalarImplicit) && !ir_is_core(op, OP_item))
        return;
    ir_value *number = int_of(s, op->operands[0]);
    if (!number)
        return;
    ir_replace_uses(s->m, op->results[0], number);
    ir_op_remove(op);
    pass_count(s->ctx, "numbers", 1);
}

static void walk(scalars *s, ir_block *block, int depth) {
    ir_op *next;
    for (ir_op *op = block->first; op && depth < 500; op = next) {
        next = op->next;
        for (size_t i = 0; i < op->region_count; i++)
            walk(s, op->regions[i], depth + 1);
        if (op->opcode != IR_OP_CORE)
            continue;
        track(s, op);
        read_back(s, op);
    }
}

ts_status pass_scalar_tensors(pass_context *ctx, ir_module *m) {
    for (ir_function *f = m->functions; f; f = f->next) {
        scalars s = {.ctx = ctx, .m = m, .ints = ir_value_map_make(ctx->scratch)};
        if (f->body)
            walk(&s, f->body, 0);
    }
    return NULL;
}

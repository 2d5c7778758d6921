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

static ir_value *int_of(scalars *s, ir_op *user, ir_value *v) {
    if (v->type->kind == IR_INT)
        return v;
    ir_value *known = ir_value_map_get(s->ints, v);
    rt_value c;
    if (known || v->type->kind != IR_TENSOR || !ir_const_value(v, &c) || c.tag != RT_TAG_TENSOR ||
        c.as.tensor->rank != 0 || (rt_dtype)c.as.tensor->dtype != RT_int64)
        return known;
    ir_builder at = pass_before(s->m, user); /* a number that the trace wrote as a tensor */
    return ir_build_int(&at, rt_load_int(RT_int64, c.as.tensor->data));
}

/* alpha of add and sub, where there is one, is 1. */
static bool is_plain(const ir_op *op) {
    int64_t alpha;
    return op->operand_count < 3 || (ir_const_int(op->operands[2], &alpha) && alpha == 1);
}

/* Quotients by what may be 0 stay: a tensor raises another exception than a number. */
static bool divides_by_constant(const ir_op *op) {
    rt_value c;
    return ir_const_value(op->operands[1], &c) &&
           ((c.tag == RT_TAG_INT && c.as.i > 0) ||
            (c.tag == RT_TAG_TENSOR && c.as.tensor->rank == 0 &&
             (rt_dtype)c.as.tensor->dtype == RT_int64 && rt_load_int(RT_int64, c.as.tensor->data) > 0));
}

static bool rounds_down(const ir_op *op) {
    rt_value c;
    return ir_const_value(op->operands[2], &c) && c.tag == RT_TAG_STR &&
           ts_str_is(rt_str_text(c.as.str), "floor");
}

static const struct {
    rt_op tensor, number;
    enum { PLAIN, SWAPPED, QUOTIENT, FLOORED } form;
} rows[] = {
    {OP_add_Scalar, OP_add_int, PLAIN},
    {OP_add_Tensor, OP_add_int, PLAIN},
    {OP_sub_Scalar, OP_sub_int, PLAIN},
    {OP_sub_Tensor, OP_sub_int, PLAIN},
    {OP_rsub_Scalar, OP_sub_int, SWAPPED},
    {OP_rsub_Tensor, OP_sub_int, SWAPPED},
    {OP_mul_Scalar, OP_mul_int, PLAIN},
    {OP_mul_Tensor, OP_mul_int, PLAIN},
    {OP_floor_divide, OP_floordiv_int, QUOTIENT},
    {OP_floor_divide_Scalar, OP_floordiv_int, QUOTIENT},
    {OP_div_Tensor_mode, OP_floordiv_int, FLOORED},
    {OP_div_Scalar_mode, OP_floordiv_int, FLOORED},
    {OP_remainder_Tensor, OP_remainder_int, QUOTIENT},
    {OP_remainder_Scalar, OP_remainder_int, QUOTIENT},
};

static void track(scalars *s, ir_op *op) {
    if (ir_is_core(op, OP_prim_NumToTensor_Scalar)) {
        if (op->operands[0]->type->kind == IR_INT)
            ir_value_map_set(s->ints, op->results[0], op->operands[0]);
        return;
    }
    if (ir_is_core(op, OP_detach) || ir_is_core(op, OP_clone)) {
        ir_value *same = ir_value_map_get(s->ints, op->operands[0]);
        if (same)
            ir_value_map_set(s->ints, op->results[0], same);
        return;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!ir_is_core(op, rows[i].tensor))
            continue;
        bool divides = rows[i].form == QUOTIENT || rows[i].form == FLOORED;
        if (divides ? !divides_by_constant(op) : !is_plain(op))
            return;
        if (rows[i].form == FLOORED && !rounds_down(op))
            return;
        /* a constant of its own is no reason to compute beside the tensors */
        if (!ir_value_map_get(s->ints, op->operands[0]) &&
            !ir_value_map_get(s->ints, op->operands[1]))
            return;
        ir_value *a = int_of(s, op, op->operands[0]), *b = int_of(s, op, op->operands[1]);
        if (!a || !b)
            return;
        ir_builder at = pass_before(s->m, op);
        ir_value *args[2] = {rows[i].form == SWAPPED ? b : a, rows[i].form == SWAPPED ? a : b};
        ir_value_map_set(s->ints, op->results[0], ir_build_core1(&at, rows[i].number, args, 2));
        return;
    }
}

static void read_back(scalars *s, ir_op *op) {
    if (!ir_is_core(op, OP_Int_Tensor) && !ir_is_core(op, OP_IntImplicit) &&
        !ir_is_core(op, OP_ScalarImplicit) && !ir_is_core(op, OP_item))
        return;
    ir_value *number = ir_value_map_get(s->ints, op->operands[0]);
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

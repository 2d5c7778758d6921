/* passes/split_reductions.c - a reduction of whole images runs line by line, then over the lines.
 *
 *   %s, %y = kernel(%x{channels_last}) {          %t, %y = kernel(%x{channels_last}) {
 *     %y = silu(%x)                                 %y = silu(%x)
 *     %s = mean(%y, [2, 3])                =>       %t = mean(%y, [3]) : [N,C,H,1]
 *     yield %s, %y                                  yield %t, %y
 *   }                                             }
 *                                                 %s = kernel(%t) { mean(%t, [2, 3]) }
 *
 * With channels innermost the lanes are channels, and a walk over all pixels for each vector of them jumps
 * through the whole image once a vector. A line of it stays in the first-level cache, and lines are work for
 * several threads where vectors of channels are one or two.
 *
 * Needs: assign_layout. Keeps: types of what is there. Why here: only now is known which images have their
 * channels innermost. Cost: one walk. */
#include "ir/kernel_form.h"
#include "passes/pass_internal.h"

enum { MIN_ELEMENTS = 1 << 15, MAX_REDUCTIONS = 4 };

static const char *name_of(ir_reduction r) {
    switch (r) {
    case IR_R_SUM: return "sum.dim_IntList";
    case IR_R_MEAN: case IR_R_GLOBAL_POOL: return "mean.dim";
    case IR_R_AMAX: return "amax";
    case IR_R_AMIN: return "amin";
    default: return NULL;
    }
}

static bool is_large(const ir_type *t) {
    double elements = 1;
    for (int d = 1; d < t->rank; d++)
        elements *= rt_dim_is_constant(t->dims[d]) ? (double)t->dims[d] : 256;
    return elements >= (double)MIN_ELEMENTS;
}

static bool reads_channels_last(const ir_op *kernel, const ir_type *image) {
    for (size_t i = 0; i < kernel->operand_count; i++) {
        const ir_type *t = kernel->operands[i]->type;
        if (t->kind != IR_TENSOR || t->layout != IR_LAYOUT_CHANNELS_LAST || t->rank != image->rank)
            continue;
        int same = 0;
        while (same < t->rank && t->dims[same] == image->dims[same])
            same++;
        if (same == t->rank)
            return true;
    }
    return false;
}

/* Whether op reduces the pixels of a large image of several lines, and nothing but the kernel's end reads it. */
static bool is_splittable(ir_module *m, const ir_op *kernel, const ir_op *op) {
    const ir_type *t = op->operands[0]->type, *r = op->results[0]->type;
    return name_of(ir_reduction_of(op)) && t->rank == 4 && t->dims[2] != 1 && t->dims[3] != 1 && ir_reduced_dims(m, op) == 0xcu &&
           t->dtype == RT_float32 && r->dtype == RT_float32 && is_large(t) && reads_channels_last(kernel, t) &&
           op->results[0]->use_count == 1 && op->results[0]->uses[0].op == op->block->last;
}

/* The reductions of the kernel; false: some cannot be split. */
static bool find_reductions(ir_module *m, const ir_op *kernel, ir_op **out, size_t *count) {
    *count = 0;
    for (ir_op *op = kernel->regions[0]->first; op; op = op->next) {
        if (op->opcode != IR_OP_CORE || ir_reduction_of(op) == IR_R_NONE)
            continue;
        if (*count == MAX_REDUCTIONS || !is_splittable(m, kernel, op))
            return false;
        out[(*count)++] = op;
    }
    return *count > 0;
}

/* Copies what v is made of, which are constants and lists of them. */
static bool copy_argument(ir_builder *b, const ir_value *v, ir_value_map *map, int depth) {
    if (ir_value_map_get(map, v))
        return true;
    if (!v->def || depth > 8)
        return false;
    for (size_t i = 0; i < v->def->operand_count; i++)
        if (!copy_argument(b, v->def->operands[i], map, depth + 1))
            return false;
    ir_clone_op(b, v->def, map);
    return true;
}

/* The reduction becomes one over the last dim, and a kernel behind this one does the rest. */
static bool split(pass_context *ctx, ir_module *m, ir_op *kernel, ir_op *op) {
    ir_block *body = op->block;
    size_t index = op->results[0]->uses[0].operand;
    const ir_type *t = op->operands[0]->type, *ints = ir_type_list(m, ir_type_simple(m, IR_INT));
    rt_dim dims[4] = {t->dims[0], t->dims[1], t->dims[2], 1};
    const ir_type *lines_type = ir_type_tensor(m, t->dtype, 4, dims, IR_LAYOUT_CHANNELS_LAST);
    ir_value *whole = kernel->results[index], *between = ir_op_add_result(m, kernel, lines_type, whole->name);

    ir_builder after = pass_before(m, kernel->next);
    after.place = op->place;
    ir_op *rest = ir_build_kernel(&after, IR_KERNEL_POINTWISE, &between, 1);
    ir_builder end = {.module = m, .block = rest->regions[0], .place = op->place};
    ir_value_map *map = ir_value_map_make(ctx->scratch);
    ir_value_map_set(map, op->operands[0], rest->regions[0]->parameters[0]);
    for (size_t i = 1; i < op->operand_count; i++)
        if (!copy_argument(&end, op->operands[i], map, 0)) {
            ir_op_remove(rest);
            ir_op_remove_result(kernel, kernel->result_count - 1);
            return false;
        }
    ir_value *result = ir_clone_op(&end, op, map)->results[0];
    ir_build_yield(&end, &result, 1);
    ir_replace_uses(m, whole, ir_op_add_result(m, rest, whole->type, whole->name));

    ir_builder inside = pass_before(m, op);
    ir_value *last = ir_build_int(&inside, 3);
    ir_value *given[3] = {op->operands[0], ir_build_op(&inside, IR_OP_LIST, &last, 1, &ints, 1)->results[0],
                          ir_build_bool(&inside, true)};
    ir_value *lines = pass_build_core(&inside, name_of(ir_reduction_of(op)), given, 3)->results[0];
    lines->type = lines_type;
    ir_op_add_operand(m, body->last, lines);
    ir_op_remove_operand(m, body->last, index);
    ir_op_remove_result(kernel, index);
    ir_op_remove(op);
    ctx->changed = true;
    pass_count(ctx, "reductions", 1);
    return true;
}

static void split_block(pass_context *ctx, ir_module *m, ir_block *block, int depth) {
    ir_op *found[MAX_REDUCTIONS];
    size_t count;
    for (ir_op *op = block->first; op && depth < 200; op = op->next) {
        for (size_t i = 0; op->opcode != IR_OP_KERNEL && i < op->region_count; i++)
            split_block(ctx, m, op->regions[i], depth + 1);
        if (op->opcode == IR_OP_KERNEL && op->kernel_kind == IR_KERNEL_POINTWISE &&
            find_reductions(m, op, found, &count))
            for (size_t i = 0; i < count && split(ctx, m, op, found[i]); i++)
                ;
    }
}

ts_status pass_split_reductions(pass_context *ctx, ir_module *m) {
    for (ir_function *f = m->functions; f; f = f->next)
        if (f->body)
            split_block(ctx, m, f->body, 0);
    return NULL;
}

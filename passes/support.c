/* passes/support.c - helpers that the passes share. */
#include "passes/pass_internal.h"

static void collect_block(pass_context *ctx, const ir_block *b, pass_op_list *out) {
    for (ir_op *op = b->first; op; op = op->next) {
        TS_APPEND(ctx->scratch, out->items, out->count, out->capacity, op);
        for (size_t i = 0; i < op->region_count; i++)
            collect_block(ctx, op->regions[i], out);
    }
}

pass_op_list pass_collect(pass_context *ctx, const ir_function *f) {
    pass_op_list list = {0};
    collect_block(ctx, f->body, &list);
    return list;
}

bool pass_is_linked(const ir_op *op) {
    for (; op; op = op->block->parent)
        if (!op->block)
            return false;
    return true;
}

ir_builder pass_before(ir_module *m, ir_op *op) {
    return (ir_builder){.module = m, .block = op->block, .before = op, .place = op->place};
}

/* The operator before which something that uses v may be inserted: right behind its definition. */
static ir_builder after_definition(ir_module *m, const ir_value *v) {
    ir_block *block = v->def ? v->def->block : v->block;
    ir_op *next = v->def ? v->def->next : block->first;
    return (ir_builder){.module = m,
                        .block = block,
                        .before = next,
                        .place = v->def ? v->def->place : (ts_place){.line = 0}};
}

void pass_replace(ir_module *m, ir_value *old, ir_value *with) {
    if (old == with)
        return;
    if (old->use_count && !ir_type_is_refinement(with->type, old->type)) {
        ir_builder b = after_definition(m, with);
        /* Not before old's own operator: with may be defined after it only if it dominates. */
        ir_op *cast = ir_build_op(&b, IR_OP_CAST, &with, 1, &old->type, 1);
        cast->results[0]->number = with->number; /* in an analysis under way they are one */
        with = cast->results[0];
    }
    ir_replace_uses(m, old, with);
}

void pass_move_body(ir_op *op, ir_block *region) {
    while (region->first != region->last)
        ir_op_move_before(region->first, op);
}

static bool block_calls(const ir_block *b, const ir_function *f) {
    for (const ir_op *op = b->first; op; op = op->next) {
        if ((op->opcode == IR_OP_CALL || op->opcode == IR_OP_TRY_CALL) && op->function == f)
            return true;
        for (size_t i = 0; i < op->region_count; i++)
            if (block_calls(op->regions[i], f))
                return true;
    }
    return false;
}

bool pass_has_calls_to(const ir_module *m, const ir_function *f) {
    for (const ir_function *g = m->functions; g; g = g->next)
        if (block_calls(g->body, f))
            return true;
    return false;
}

/* passes/eliminate_dead.c - drops operators whose results nobody reads and that nobody would
 * notice; results of `if` and carried values of `loop` that nobody reads; parameters stay.
 *
 * What writes, prints, draws random numbers or may raise stays: see ir_is_removable. */
#include "passes/pass_internal.h"

static bool results_unused(const ir_op *op) {
    for (size_t i = 0; i < op->result_count; i++)
        if (op->results[i]->use_count)
            return false;
    return true;
}

static void trim_if(pass_context *ctx, ir_module *m, ir_op *op) {
    for (size_t i = op->result_count; i-- > 0;) {
        if (op->results[i]->use_count)
            continue;
        for (int j = 0; j < 2; j++)
            ir_op_remove_operand(m, op->regions[j]->last, i);
        ir_op_remove_result(op, i);
        pass_count(ctx, "results", 1);
    }
}

/* A carried value that is read neither after the loop nor in it, but to carry itself on. */
static void trim_loop(pass_context *ctx, ir_module *m, ir_op *op) {
    ir_block *b = op->regions[0];
    for (size_t i = op->result_count; i-- > 0;) {
        ir_value *p = b->parameters[i + 1];
        bool only_itself = p->use_count == 0 || (p->use_count == 1 && p->uses[0].op == b->last &&
                                                 p->uses[0].operand == i + 1);
        if (op->results[i]->use_count || !only_itself)
            continue;
        ir_op_remove_operand(m, b->last, i + 1);
        ir_op_remove_operand(m, op, i + 2);
        ir_op_remove_result(op, i);
        ir_block_remove_parameter(b, i + 1);
        pass_count(ctx, "carried", 1);
    }
}

/* Backwards, so that what fed a dead operator is dead by the time it is met. */
static void clean_block(pass_context *ctx, ir_module *m, ir_block *b) {
    for (ir_op *op = b->last, *previous; op; op = previous) {
        if (results_unused(op) && ir_is_removable(op)) {
            previous = op->previous;
            ir_op_remove(op);
            pass_count(ctx, "operators", 1);
            continue;
        }
        if (op->opcode == IR_OP_IF)
            trim_if(ctx, m, op);
        if (op->opcode == IR_OP_LOOP)
            trim_loop(ctx, m, op);
        for (size_t i = 0; i < op->region_count; i++)
            clean_block(ctx, m, op->regions[i]);
        previous = op->previous;
    }
}

ts_status pass_eliminate_dead(pass_context *ctx, ir_module *m) {
    for (ir_function *f = m->functions; f; f = f->next) {
        /* Carried values may keep one another alive across rounds; few rounds are ever needed. */
        for (int round = 0; round < 8; round++) {
            int64_t before = 0, after = 0;
            for (size_t i = 0; i < ctx->counter_count; i++)
                before += ctx->counters[i].value;
            clean_block(ctx, m, f->body);
            for (size_t i = 0; i < ctx->counter_count; i++)
                after += ctx->counters[i].value;
            if (before == after)
                break;
        }
    }
    return NULL;
}

/* passes/unroll_loops.c - repeats the bodies of short loops of known length.
 *
 *   %r = loop %i to 3 while true carry(%h = %a) { ... yield true, %b }
 *                                  =>   body, body, body with %i = 0, 1, 2
 *
 * Only where the condition is constantly true, there are at most 64 rounds and the result stays
 * below 8,192 operators: a loop over layers, not one over time steps. */
#include "passes/pass_internal.h"

enum { MAX_ROUNDS = 64, MAX_OPERATORS = 8192, SMALL_BODY_ROUNDS = 8 };

static size_t count_block(const ir_block *b) {
    size_t count = 0;
    for (const ir_op *op = b->first; op; op = op->next) {
        if (op->opcode != IR_OP_CONST)
            count++;
        for (size_t i = 0; i < op->region_count; i++)
            count += count_block(op->regions[i]);
    }
    return count;
}

/* A loop with the counter as an index of lists and tuples, or that holds such loops, gains from
 * being unrolled; a plain one only where it is short. */
static bool uses_counter(const ir_op *op) { return op->regions[0]->parameters[0]->use_count > 0; }

static bool unroll(pass_context *ctx, ir_module *m, ir_op *op, size_t *budget) {
    int64_t max;
    bool start, go;
    ir_block *body = op->regions[0];
    if (!ir_const_int(op->operands[0], &max) || max < 1 || max > MAX_ROUNDS)
        return false;
    if (!ir_const_bool(op->operands[1], &start) || !start ||
        !ir_const_bool(body->last->operands[0], &go) || !go)
        return false;
    if (!uses_counter(op) && max > SMALL_BODY_ROUNDS)
        return false;
    size_t cost = count_block(body) * (size_t)max;
    if (cost > *budget)
        return false;
    *budget -= cost;
    size_t count = op->result_count;
    ir_builder b = pass_before(m, op);
    ir_value **carried = TS_NEW_ARRAY(ctx->scratch, ir_value *, count);
    ir_value **yields = TS_NEW_ARRAY(ctx->scratch, ir_value *, count + 1);
    for (size_t i = 0; i < count; i++)
        carried[i] = op->operands[i + 2];
    for (int64_t round = 0; round < max; round++) {
        ir_value_map *map = ir_value_map_make(ctx->scratch);
        ir_value_map_set(map, body->parameters[0], ir_build_int(&b, round));
        for (size_t i = 0; i < count; i++) {
            /* The body relies on the parameter's kind, as Optional. */
            ir_value *v = carried[i];
            const ir_type *wanted = body->parameters[i + 1]->type;
            if (v->type->kind != wanted->kind)
                v = ir_build_op(&b, IR_OP_CAST, &v, 1, &wanted, 1)->results[0];
            ir_value_map_set(map, body->parameters[i + 1], v);
        }
        ir_clone_block_body(&b, body, map, yields);
        for (size_t i = 0; i < count; i++)
            carried[i] = yields[i + 1];
    }
    for (size_t i = 0; i < count; i++)
        pass_replace(m, op->results[i], carried[i]);
    ir_op_remove(op);
    pass_count(ctx, "loops", 1);
    return true;
}

ts_status pass_unroll_loops(pass_context *ctx, ir_module *m) {
    for (ir_function *f = m->functions; f; f = f->next) {
        size_t budget = MAX_OPERATORS;
        /* Outermost first; what came out of it may hold loops again. */
        for (int depth = 0; depth < 4; depth++) {
            bool changed = false;
            pass_op_list ops = pass_collect(ctx, f);
            for (size_t i = 0; i < ops.count; i++)
                if (ops.items[i]->opcode == IR_OP_LOOP && pass_is_linked(ops.items[i]))
                    changed |= unroll(ctx, m, ops.items[i], &budget);
            if (!changed)
                break;
        }
    }
    return NULL;
}

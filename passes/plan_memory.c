/* passes/plan_memory.c - places in one arena for the results of kernels.
 *
 * A result of constant size that nothing but kernels reads lives from its kernel to its last
 * reader; results whose lives do not overlap share memory. Everything that may outlive the call, or
 * that an operator may alias (returned, in a list, carried by a loop), keeps an allocation of its
 * own. Lives are intervals of the operators' numbers in the order of the text; what is read inside
 * of a branch or loop lives to its end.
 *
 * Needs: fuse, assign_layout. Keeps: all but ir_value.buffer_offset. Cost: results times live
 * results. */
#include "ir/strided_view.h"
#include "passes/pass_internal.h"

enum { ALIGN = 64 };

typedef struct life {
    ir_value *value;
    uint32_t begin, end;
    int64_t bytes, offset;
} life;

typedef struct planner {
    pass_context *ctx;
    ir_module *m;
    life *lives;
    size_t count, capacity;
} planner;

static uint32_t number_ops(ir_block *block, uint32_t n, int depth) {
    for (ir_op *op = block->first; op; op = op->next) {
        op->number = n++;
        for (size_t i = 0; op->opcode != IR_OP_KERNEL && depth < 500 && i < op->region_count; i++)
            n = number_ops(op->regions[i], n, depth + 1);
    }
    return n;
}

static int64_t bytes_of(const ir_type *t) {
    if (!ir_type_is_known_tensor(t))
        return -1;
    int64_t n = (int64_t)rt_dtype_size(t->dtype);
    for (int d = 0; d < t->rank; d++) {
        if (!rt_dim_is_constant(t->dims[d]) || t->dims[d] < 0 ||
            (t->dims[d] > 0 && n > INT64_MAX / 4 / t->dims[d]))
            return -1;
        n *= t->dims[d];
    }
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* The operator of `block` in which `op` lies. */
static const ir_op *in_block(const ir_op *op, const ir_block *block) {
    while (op && op->block != block)
        op = op->block->parent;
    return op;
}

static bool last_reader(const ir_value *v, uint32_t *out_end) {
    const ir_block *block = v->def->block;
    *out_end = v->def->number;
    for (size_t i = 0; i < v->use_count; i++) {
        const ir_op *user = v->uses[i].op;
        if (user->opcode != IR_OP_KERNEL)
            return false;
        const ir_op *outer = in_block(user, block);
        if (!outer)
            return false;
        /* To the end of a branch or loop: the number before the next operator's. */
        uint32_t end = outer->region_count && outer != user && outer->next
                           ? outer->next->number - 1
                           : outer->number;
        if (end > *out_end)
            *out_end = end;
    }
    return true;
}

static void collect(planner *p, ir_block *block, int depth) {
    for (ir_op *op = block->first; op && depth < 500; op = op->next) {
        if (op->opcode != IR_OP_KERNEL) {
            for (size_t i = 0; i < op->region_count; i++)
                collect(p, op->regions[i], depth + 1);
            continue;
        }
        for (size_t r = 0; r < op->result_count; r++) {
            life l = {.value = op->results[r], .begin = op->number};
            l.bytes = bytes_of(l.value->type);
            l.value->buffer_offset = -1;
            if (l.bytes >= 0 && last_reader(l.value, &l.end))
                TS_APPEND(p->ctx->scratch, p->lives, p->count, p->capacity, l);
        }
    }
}

/* The lowest gap among the lives that overlap; lives are in the order of their beginning. */
static void place(planner *p, size_t index) {
    life *l = &p->lives[index];
    int64_t offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < index; i++) {
            const life *other = &p->lives[i];
            if (other->end < l->begin || offset + l->bytes <= other->offset ||
                other->offset + other->bytes <= offset)
                continue;
            offset = other->offset + other->bytes;
            moved = true;
        }
    }
    l->offset = offset;
    l->value->buffer_offset = offset;
}

ts_status pass_plan_memory(pass_context *ctx, ir_module *m) {
    for (ir_function *f = m->functions; f; f = f->next) {
        if (!f->body)
            continue;
        planner p = {.ctx = ctx, .m = m};
        number_ops(f->body, 0, 0);
        collect(&p, f->body, 0);
        if (p.count > 20000)
            continue;
        int64_t peak = 0;
        for (size_t i = 0; i < p.count; i++) {
            place(&p, i);
            if (p.lives[i].offset + p.lives[i].bytes > peak)
                peak = p.lives[i].offset + p.lives[i].bytes;
        }
        if (p.count) {
            ctx->changed = true;
            pass_count(ctx, "planned", (int64_t)p.count);
            pass_count(ctx, "bytes", peak);
        }
    }
    return NULL;
}

/* passes/eliminate_common.c - computes the same thing once.
 *
 *   %a = exp(%x)  ...  %b = exp(%x)     =>   %b is %a
 *
 * Pure operators of equal operands, where the first dominates the second and nobody in the function
 * writes what either reads or makes. Constants of equal value become one as well; those of mutable
 * type only where they are the same object. */
#include "passes/alias.h"

typedef struct entry {
    ir_op *op;
    uint64_t hash;
    struct entry *next;
} entry;

enum { BUCKETS = 4096 };

typedef struct table {
    pass_context *ctx;
    ir_module *m;
    pass_alias *alias;
    entry *buckets[BUCKETS];
    entry **log; /* in order of insertion: popped at the end of a block */
    size_t count, capacity;
} table;

static uint64_t mix(uint64_t h, uint64_t x) {
    h ^= x + 0x9E3779B97F4A7C15u + (h << 6) + (h >> 2);
    return h * 0xBF58476D1CE4E5B9u;
}

static uint64_t hash_op(const ir_op *op) {
    uint64_t h = mix((uint64_t)op->opcode, (uint64_t)op->core);
    for (size_t i = 0; i < op->operand_count; i++)
        h = mix(h, (uint64_t)(uintptr_t)op->operands[i]);
    if (op->opcode == IR_OP_CONST) {
        h = mix(h, op->value.tag);
        if (op->value.tag <= RT_TAG_FLOAT)
            h = mix(h, (uint64_t)op->value.as.i);
    }
    h = mix(h, (uint64_t)op->integer);
    return mix(h, (uint64_t)(uintptr_t)op->type);
}

static bool same_types(const ir_op *a, const ir_op *b) {
    if (a->type != b->type || a->type_count != b->type_count)
        return false;
    for (size_t i = 0; i < a->type_count; i++)
        if (a->types[i] != b->types[i])
            return false;
    for (size_t i = 0; i < a->result_count; i++)
        if (a->results[i]->type != b->results[i]->type)
            return false;
    return true;
}

static bool same_op(const ir_op *a, const ir_op *b) {
    if (a->opcode != b->opcode || a->core != b->core || a->integer != b->integer ||
        a->operand_count != b->operand_count || a->result_count != b->result_count ||
        !ts_str_equal(a->name, b->name) || !same_types(a, b))
        return false;
    for (size_t i = 0; i < a->operand_count; i++)
        if (a->operands[i] != b->operands[i])
            return false;
    return a->opcode != IR_OP_CONST || ir_same_constant(a->value, b->value);
}

/* `a is b` tells two from one. */
static bool is_told_apart(const ir_value *v) {
    for (size_t i = 0; i < v->use_count && ir_type_is_mutable(v->type); i++) {
        const ir_op *user = v->uses[i].op;
        if (user->opcode == IR_OP_CORE && (user->core == OP___is__ || user->core == OP___isnot__ || user->core == OP_prim_id))
            return true;
    }
    return false;
}

/* LIST of constants or numbers that nobody changes: two of them are one, as for their readers. */
static bool is_mergeable(table *t, const ir_op *op) {
    if (op->region_count || !op->result_count || op->opcode == IR_OP_UNINITIALIZED)
        return false;
    bool list = op->opcode == IR_OP_LIST && ir_list_is_stable(op->results[0]);
    if (op->opcode == IR_OP_CONST && op->value.tag == RT_TAG_LIST)
        list = ir_list_is_stable(op->results[0]);
    else if (!list && op->opcode != IR_OP_CONST && !ir_is_pure(op))
        return false;
    for (size_t i = 0; i < op->operand_count; i++)
        if (!pass_is_stable(t->alias, op->operands[i]))
            return false;
    for (size_t i = 0; i < op->result_count; i++)
        /* Two results that the caller gets must stay two tensors. */
        if (pass_is_written(t->alias, op->results[i]) || is_told_apart(op->results[i]) ||
            (op->opcode != IR_OP_CONST && pass_is_returned(t->alias, op->results[i])))
            return false;
    return true;
}

static void visit_block(table *t, ir_block *b) {
    size_t count = t->count;
    for (ir_op *op = b->first, *next; op; op = next) {
        next = op->next;
        for (size_t i = 0; i < op->region_count; i++)
            visit_block(t, op->regions[i]);
        if (!is_mergeable(t, op))
            continue;
        uint64_t h = hash_op(op);
        entry *e = t->buckets[h % BUCKETS];
        while (e && !(e->hash == h && same_op(e->op, op)))
            e = e->next;
        if (e) {
            for (size_t i = 0; i < op->result_count; i++)
                ir_replace_uses(t->m, op->results[i], e->op->results[i]);
            ir_op_remove(op);
            pass_count(t->ctx, "merged", 1);
            continue;
        }
        e = TS_NEW(t->ctx->scratch, entry);
        *e = (entry){op, h, t->buckets[h % BUCKETS]};
        t->buckets[h % BUCKETS] = e;
        TS_APPEND(t->ctx->scratch, t->log, t->count, t->capacity, e);
    }
    while (t->count > count) {
        entry *e = t->log[--t->count];
        t->buckets[e->hash % BUCKETS] = e->next;
    }
}

ts_status pass_eliminate_common(pass_context *ctx, ir_module *m) {
    for (ir_function *f = m->functions; f; f = f->next) {
        table *t = TS_NEW(ctx->scratch, table);
        t->ctx = ctx;
        t->m = m;
        t->alias = pass_alias_make(ctx, m, f);
        visit_block(t, f->body);
    }
    return NULL;
}

/* codegen/host_same_kernel.c - when two kernel operators are one: unrolled loops and repeated layers
 * bring the same body again and again, and each is compiled once. */
#include "codegen/emit_host.h"

#include "runtime/base/hash.h"

/* Where a value of a body comes from: parameter i, or result r of operator number n. */
static uint64_t origin(const ir_block *body, const ir_value *v) {
    if (!v->def)
        return v->block == body ? v->index : UINT64_MAX;
    uint64_t n = 1;
    for (const ir_op *op = v->def->previous; op; op = op->previous)
        n++;
    return v->def->block == body ? n << 32 | v->index : UINT64_MAX;
}

static bool same_constant(rt_value a, rt_value b) {
    if (a.tag != b.tag || a.aux != b.aux)
        return false;
    if (a.as.i == b.as.i)
        return true;
    if (a.tag == RT_TAG_LIST) {
        if (a.as.list->count != b.as.list->count)
            return false;
        for (size_t i = 0; i < a.as.list->count; i++) {
            rt_value x = a.as.list->items[i], y = b.as.list->items[i];
            if (rt_is_counted(x) || x.tag != y.tag || x.as.i != y.as.i)
                return false;
        }
        return true;
    }
    return a.tag == RT_TAG_STR && ts_str_equal(rt_str_text(a.as.str), rt_str_text(b.as.str));
}

static bool same_op(const ir_block *p, const ir_op *a, const ir_block *q, const ir_op *b) {
    if (a->opcode != b->opcode || a->core != b->core || a->operand_count != b->operand_count ||
        a->result_count != b->result_count || a->region_count || b->region_count ||
        a->integer != b->integer || a->type != b->type)
        return false;
    if (a->opcode == IR_OP_CONST && !same_constant(a->value, b->value))
        return false;
    for (size_t i = 0; i < a->result_count; i++)
        if (a->results[i]->type != b->results[i]->type)
            return false;
    for (size_t i = 0; i < a->operand_count; i++) {
        uint64_t x = origin(p, a->operands[i]);
        if (x == UINT64_MAX || x != origin(q, b->operands[i]))
            return false;
    }
    return true;
}

bool host_same_kernel(const ir_op *a, const ir_op *b) {
    if (a->kernel_kind != b->kernel_kind || a->operand_count != b->operand_count ||
        a->result_count != b->result_count)
        return false;
    for (size_t i = 0; i < a->operand_count; i++)
        if (a->operands[i]->type != b->operands[i]->type)
            return false;
    for (size_t i = 0; i < a->result_count; i++)
        if (a->results[i]->type != b->results[i]->type)
            return false;
    const ir_block *p = a->regions[0], *q = b->regions[0];
    const ir_op *x = p->first, *y = q->first;
    while (x && y) {
        if (!same_op(p, x, q, y))
            return false;
        x = x->next;
        y = y->next;
    }
    return !x && !y;
}

uint64_t host_kernel_hash(const ir_op *op) {
    uint64_t h = op->operand_count << 8 | op->result_count;
    for (const ir_op *inner = op->regions[0]->first; inner; inner = inner->next) {
        uint64_t parts[4] = {inner->opcode, inner->core, inner->operand_count,
                             inner->result_count
                                 ? (uint64_t)(uintptr_t)inner->results[0]->type
                                 : 0};
        h = ts_hash64(parts, sizeof parts, h);
    }
    return h;
}

/* ---- across compilations ---- */

static uint64_t add_text(ts_str text, uint64_t h) { return ts_hash64(text.data, text.length, h); }

static uint64_t add_constant(rt_value v, uint64_t h) {
    if (v.tag == RT_TAG_LIST) {
        for (size_t i = 0; i < v.as.list->count; i++)
            h = add_constant(v.as.list->items[i], h);
        return h;
    }
    int64_t parts[2] = {v.tag, rt_is_counted(v) ? 0 : v.as.i};
    return ts_hash64(parts, sizeof parts, h);
}

uint64_t host_kernel_key(ir_module *m, const ir_op *op, const char *level) {
    const ir_block *body = op->regions[0];
    uint64_t h = add_text(TS_STR("kernels of " TSC_VERSION), add_text(ts_str_of(level), 17));
    for (size_t i = 0; i < op->operand_count; i++)
        h = add_text(ir_type_text(m, op->operands[i]->type), h);
    for (const ir_op *inner = body->first; inner; inner = inner->next) {
        if (inner->opcode == IR_OP_CORE)
            h = add_text(rt_op_name(inner->core), h);
        if (inner->opcode == IR_OP_KERNEL) {
            uint64_t part = host_kernel_key(m, inner, level);
            h = ts_hash64(&part, sizeof part, h);
        }
        if (inner->opcode == IR_OP_CONST)
            h = add_constant(inner->value, h);
        for (size_t i = 0; i < inner->operand_count; i++) {
            uint64_t from = origin(body, inner->operands[i]);
            h = ts_hash64(&from, sizeof from, h);
        }
        for (size_t i = 0; i < inner->result_count; i++)
            h = add_text(ir_type_text(m, inner->results[i]->type), h);
    }
    return h;
}

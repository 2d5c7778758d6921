/* codegen/host_mutation.c - which constant tensors the program may write to.
 *
 * Weights are mapped read-only and shared; the few that a program changes in place (a counter, a
 * cache, running statistics) are copied for each session. The analysis walks backwards from every
 * operand that an operator writes: through views, casts, branches, loops and calls to the
 * constants. Where it meets a container or an object it gives up precision: then everything that
 * could be reached through one counts as written. */
#include "codegen/host_program.h"

typedef struct mutation {
    cg_program *p;
    const ir_value **seen; /* open addressing, by pointer */
    size_t capacity, count;
    const ir_value **work;
    size_t work_count, work_capacity;
    bool everything;
} mutation;

static bool add_seen(mutation *m, const ir_value *v) {
    if (m->count * 2 >= m->capacity) {
        const ir_value **old = m->seen;
        size_t n = m->capacity;
        m->capacity = n ? n * 2 : 64;
        m->seen = TS_NEW_ARRAY(m->p->arena, const ir_value *, m->capacity);
        m->count = 0;
        for (size_t i = 0; i < n; i++)
            if (old[i])
                add_seen(m, old[i]);
    }
    size_t at = ((uintptr_t)v >> 4) * 0x9e3779b1u & (m->capacity - 1);
    while (m->seen[at] && m->seen[at] != v)
        at = (at + 1) & (m->capacity - 1);
    if (m->seen[at])
        return false;
    m->seen[at] = v;
    m->count++;
    return true;
}

static void taint(mutation *m, const ir_value *v) {
    ir_kind k = v->type->kind;
    if (k == IR_INT || k == IR_FLOAT || k == IR_BOOL || k == IR_NONE || k == IR_STR ||
        k == IR_COMPLEX || k == IR_DEVICE || k == IR_NUMBER)
        return;
    if (add_seen(m, v))
        TS_APPEND(m->p->arena, m->work, m->work_count, m->work_capacity, v);
}

static void mark_tensor(cg_program *p, rt_value v) {
    if (v.tag != RT_TAG_TENSOR || !v.as.tensor->storage)
        return;
    for (size_t i = 0; i < p->storage_count; i++)
        if (p->storages[i].storage == v.as.tensor->storage)
            p->storages[i].is_mutable = true;
}

typedef void (*visit_op)(mutation *m, const ir_op *op);

static void walk(mutation *m, visit_op visit) {
    ts_arena *arena = m->p->arena;
    const ir_block **blocks = NULL;
    size_t count = 0, capacity = 0;
    for (size_t i = 0; i < m->p->function_count; i++)
        TS_APPEND(arena, blocks, count, capacity, m->p->functions[i]->body);
    while (count) {
        const ir_block *b = blocks[--count];
        for (const ir_op *op = b->first; op; op = op->next) {
            visit(m, op);
            for (size_t r = 0; r < op->region_count; r++)
                TS_APPEND(arena, blocks, count, capacity, op->regions[r]);
        }
    }
}

static void taint_written(mutation *m, const ir_op *op) {
    if (op->opcode != IR_OP_CORE)
        return;
    const ir_schema *schema = ir_schema_of(m->p->ir, op->core);
    for (size_t i = 0; i < schema->arg_count && i < op->operand_count; i++) {
        const ir_type *t = op->operands[i]->type;
        bool plain_list = t->kind == IR_LIST || t->kind == IR_DICT;
        /* `append` writes the list, not the tensors in it; `Tensor(a!)[]` writes those. */
        if (ir_op_writes(op, i) && !plain_list)
            taint(m, op->operands[i]);
        else if (schema->args[i].is_written && ts_str_starts_with(schema->name, "_foreach"))
            m->everything = true;
    }
}

static void taint_callers(mutation *m, const ir_value *parameter) {
    /* Parameters of functions: any call might give it. */
    const ir_function *f = parameter->block->function;
    if (f && f->is_entry && parameter->type->kind != IR_TENSOR)
        m->everything = true;
    if (f && !f->is_entry)
        m->everything = true;
}

static void taint_block_parameter(mutation *m, const ir_value *v) {
    const ir_op *op = v->block->parent;
    if (!op) {
        taint_callers(m, v);
    } else if (op->opcode == IR_OP_LOOP && v->index > 0) {
        taint(m, op->operands[v->index + 1]);
        const ir_op *yield = v->block->last;
        if (yield && v->index < yield->operand_count)
            taint(m, yield->operands[v->index]);
    } else if (op->opcode == IR_OP_KERNEL && v->index < op->operand_count) {
        taint(m, op->operands[v->index]);
    }
}

static void taint_definition(mutation *m, const ir_value *v) {
    const ir_op *op = v->def;
    if (!op) {
        taint_block_parameter(m, v);
        return;
    }
    if (v->type->kind != IR_TENSOR && op->opcode != IR_OP_TUPLE && op->opcode != IR_OP_IF &&
        v->type->kind != IR_OPTIONAL)
        m->everything = true;
    switch (op->opcode) {
    case IR_OP_CONST:
        if (op->value.tag == RT_TAG_TENSOR)
            mark_tensor(m->p, op->value);
        else
            m->everything = true;
        break;
    case IR_OP_IF:
        for (size_t r = 0; r < op->region_count; r++) {
            const ir_op *yield = op->regions[r]->last;
            if (yield && v->index < yield->operand_count)
                taint(m, yield->operands[v->index]);
        }
        break;
    case IR_OP_LOOP: {
        taint(m, op->operands[v->index + 2]);
        const ir_op *yield = op->regions[0]->last;
        if (yield && v->index + 1 < yield->operand_count)
            taint(m, yield->operands[v->index + 1]);
        break;
    }
    case IR_OP_CALL:
    case IR_OP_TRY_CALL:
    case IR_OP_CALL_METHOD:
    case IR_OP_GET_ATTR:
    case IR_OP_LIST_UNPACK:
        m->everything = true;
        break;
    case IR_OP_CORE:
        if (ir_effects(op) & IR_EFFECT_ALIASES)
            for (size_t i = 0; i < op->operand_count; i++)
                taint(m, op->operands[i]);
        break;
    case IR_OP_TUPLE:
    case IR_OP_TUPLE_GET:
    case IR_OP_TUPLE_UNPACK:
    case IR_OP_CAST:
    case IR_OP_CHECK_CAST:
        for (size_t i = 0; i < op->operand_count; i++)
            taint(m, op->operands[i]);
        break;
    default: break; /* fresh memory, or nothing that can be written */
    }
}

/* A constant tensor that only pure operators read cannot be reached through a container. */
static bool is_only_read(const ir_value *v) {
    for (size_t i = 0; i < v->use_count; i++) {
        const ir_op *op = v->uses[i].op;
        bool reads = op->opcode == IR_OP_KERNEL ||
                     (op->opcode == IR_OP_CORE && !(ir_effects(op) & IR_EFFECT_ALIASES));
        if (!reads)
            return false;
    }
    return true;
}

static void keep_read_only(mutation *m, const ir_op *op) {
    if (op->opcode != IR_OP_CONST || op->value.tag != RT_TAG_TENSOR)
        return;
    if (!is_only_read(op->results[0]))
        mark_tensor(m->p, op->value);
}

static void mark_all_in_containers(mutation *m) {
    cg_program *p = m->p;
    /* Tensors that are constants by themselves are decided use by use; all others were reached
     * through a container. */
    for (size_t n = 0; n < p->node_count; n++) {
        if (p->nodes[n].tag != RT_TAG_TENSOR)
            continue;
        bool alone = false;
        for (size_t c = 0; c < p->constant_count && !alone; c++)
            alone = p->constants[c].tag == RT_TAG_TENSOR &&
                    p->constants[c].as.tensor == p->nodes[n].as.tensor;
        if (!alone)
            mark_tensor(p, p->nodes[n]);
    }
    walk(m, keep_read_only);
}

void cg_program_mark_mutable(cg_program *p) {
    mutation m = {.p = p};
    walk(&m, taint_written);
    while (m.work_count)
        taint_definition(&m, m.work[--m.work_count]);
    if (m.everything)
        mark_all_in_containers(&m);
}

/* ir/op.c - operators, values and blocks: linking, use lists, replacement and removal. */
#include <assert.h>

#include "ir/ir_internal.h"

static void add_use(ir_module *m, ir_value *v, ir_op *op, size_t operand) {
    ir_use use = {op, operand};
    TS_APPEND(m->arena, v->uses, v->use_count, v->use_capacity, use);
}

static void drop_use(ir_value *v, const ir_op *op, size_t operand) {
    for (size_t i = v->use_count; i-- > 0;)
        if (v->uses[i].op == op && v->uses[i].operand == operand) {
            /* Order is kept: passes walk uses and their results must not depend on history. */
            memmove(&v->uses[i], &v->uses[i + 1], (v->use_count - i - 1) * sizeof *v->uses);
            v->use_count--;
            return;
        }
    assert(false && "use lists are wrong");
}

static ir_value *make_value(ir_module *m, const ir_type *type, ts_str name) {
    ir_value *v = TS_NEW(m->arena, ir_value);
    v->type = type;
    v->name = name;
    v->buffer_offset = -1;
    return v;
}

ir_block *ir_block_make(ir_module *m, ir_op *parent, ir_function *f) {
    ir_block *b = TS_NEW(m->arena, ir_block);
    b->parent = parent;
    b->function = f;
    return b;
}

ir_value *ir_block_add_parameter(ir_module *m, ir_block *b, const ir_type *t, ts_str name) {
    ir_value *v = make_value(m, t, ts_arena_str(m->arena, name));
    v->block = b;
    v->index = b->parameter_count;
    TS_APPEND(m->arena, b->parameters, b->parameter_count, b->parameter_capacity, v);
    return v;
}

void ir_block_remove_parameter(ir_block *b, size_t index) {
    assert(b->parameters[index]->use_count == 0);
    for (size_t i = index + 1; i < b->parameter_count; i++) {
        b->parameters[i - 1] = b->parameters[i];
        b->parameters[i - 1]->index = i - 1;
    }
    b->parameter_count--;
}

ir_value *ir_op_add_result(ir_module *m, ir_op *op, const ir_type *type, ts_str name) {
    ir_value *v = make_value(m, type, ts_arena_str(m->arena, name));
    v->def = op;
    v->index = op->result_count;
    ir_value **results = TS_NEW_ARRAY(m->arena, ir_value *, op->result_count + 1);
    if (op->result_count)
        memcpy(results, op->results, op->result_count * sizeof *results);
    results[op->result_count++] = v;
    op->results = results;
    return v;
}

void ir_op_add_operand(ir_module *m, ir_op *op, ir_value *v) {
    add_use(m, v, op, op->operand_count);
    TS_APPEND(m->arena, op->operands, op->operand_count, op->operand_capacity, v);
}

void ir_op_set_operand(ir_module *m, ir_op *op, size_t index, ir_value *v) {
    if (op->operands[index] == v)
        return;
    drop_use(op->operands[index], op, index);
    op->operands[index] = v;
    add_use(m, v, op, index);
}

void ir_op_remove_operand(ir_module *m, ir_op *op, size_t index) {
    (void)m;
    drop_use(op->operands[index], op, index);
    for (size_t i = index + 1; i < op->operand_count; i++) {
        ir_value *v = op->operands[i];
        for (size_t j = 0; j < v->use_count; j++)
            if (v->uses[j].op == op && v->uses[j].operand == i)
                v->uses[j].operand = i - 1;
        op->operands[i - 1] = v;
    }
    op->operand_count--;
}

void ir_op_remove_result(ir_op *op, size_t index) {
    assert(op->results[index]->use_count == 0);
    for (size_t i = index + 1; i < op->result_count; i++) {
        op->results[i - 1] = op->results[i];
        op->results[i - 1]->index = i - 1;
    }
    op->result_count--;
}

static void unlink_op(ir_op *op) {
    ir_block *b = op->block;
    if (op->previous)
        op->previous->next = op->next;
    else
        b->first = op->next;
    if (op->next)
        op->next->previous = op->previous;
    else
        b->last = op->previous;
    op->previous = op->next = NULL;
    op->block = NULL;
}

static void link_before(ir_block *b, ir_op *before, ir_op *op) {
    op->block = b;
    op->next = before;
    op->previous = before ? before->previous : b->last;
    if (op->previous)
        op->previous->next = op;
    else
        b->first = op;
    if (before)
        before->previous = op;
    else
        b->last = op;
}

/* Drops the uses that an operator and everything inside it make. Recursion is as deep as regions
 * nest, which parser and frontend bound. */
static void drop_operands(ir_op *op) {
    /* Backwards, as the newest use is looked for first: a list may hold one value thousands of times. */
    for (size_t i = op->operand_count; i-- > 0;)
        drop_use(op->operands[i], op, i);
    op->operand_count = 0;
    for (size_t i = 0; i < op->region_count; i++)
        for (ir_op *inner = op->regions[i]->last; inner; inner = inner->previous)
            drop_operands(inner);
}

void ir_op_remove(ir_op *op) {
#ifndef NDEBUG
    for (size_t i = 0; i < op->result_count; i++)
        assert(op->results[i]->use_count == 0);
#endif
    drop_operands(op);
    unlink_op(op);
}

void ir_op_move_before(ir_op *op, ir_op *before) {
    if (op == before)
        return;
    unlink_op(op);
    link_before(before->block, before, op);
}

void ir_replace_uses(ir_module *m, ir_value *old, ir_value *with) {
    if (old == with)
        return;
    for (size_t i = 0; i < old->use_count; i++) {
        ir_use use = old->uses[i];
        use.op->operands[use.operand] = with;
        add_use(m, with, use.op, use.operand);
    }
    old->use_count = 0;
    if (!with->name.length)
        with->name = old->name;
}

ir_op *ir_build_op(ir_builder *b, ir_opcode opcode, ir_value *const *operands, size_t count,
                   const ir_type *const *result_types, size_t result_count) {
    ir_module *m = b->module;
    ir_op *op = TS_NEW(m->arena, ir_op);
    op->opcode = opcode;
    op->core = OP_COUNT;
    op->place = b->place;
    if (count) {
        op->operands = TS_NEW_ARRAY(m->arena, ir_value *, count);
        op->operand_capacity = op->operand_count = count;
        for (size_t i = 0; i < count; i++) {
            op->operands[i] = operands[i];
            add_use(m, operands[i], op, i);
        }
    }
    if (result_count) {
        op->results = TS_NEW_ARRAY(m->arena, ir_value *, result_count);
        op->result_count = result_count;
        for (size_t i = 0; i < result_count; i++) {
            op->results[i] = make_value(m, result_types[i], (ts_str){0});
            op->results[i]->def = op;
            op->results[i]->index = i;
        }
    }
    link_before(b->block, b->before, op);
    return op;
}

/* ---- questions ---- */

bool ir_is_const(const ir_value *v) { return v->def && v->def->opcode == IR_OP_CONST; }

bool ir_const_value(const ir_value *v, rt_value *out) {
    if (!ir_is_const(v))
        return false;
    *out = v->def->value;
    return true;
}

bool ir_const_int(const ir_value *v, int64_t *out) {
    if (!ir_is_const(v) || v->def->value.tag != RT_TAG_INT)
        return false;
    *out = v->def->value.as.i;
    return true;
}

bool ir_const_bool(const ir_value *v, bool *out) {
    if (!ir_is_const(v) || v->def->value.tag != RT_TAG_BOOL)
        return false;
    *out = v->def->value.as.i != 0;
    return true;
}

bool ir_const_double(const ir_value *v, double *out) {
    if (!ir_is_const(v))
        return false;
    rt_value c = v->def->value;
    if (c.tag != RT_TAG_INT && c.tag != RT_TAG_FLOAT)
        return false;
    *out = c.tag == RT_TAG_INT ? (double)c.as.i : c.as.f;
    return true;
}

bool ir_const_int_list(const ir_value *v, int64_t *out, size_t max, size_t *out_count) {
    if (!ir_list_is_stable(v)) /* somebody appends to it or sets an item */
        return false;
    if (v->def && v->def->opcode == IR_OP_LIST) {
        /* What it holds when it is made is what its readers see only while nobody changes it. */
        if (v->def->operand_count > max || !ir_list_is_stable(v))
            return false;
        for (size_t i = 0; i < v->def->operand_count; i++)
            if (!ir_const_int(v->def->operands[i], &out[i]))
                return false;
        *out_count = v->def->operand_count;
        return true;
    }
    if (!ir_is_const(v) || v->def->value.tag != RT_TAG_LIST || v->def->value.as.list->count > max)
        return false;
    const rt_list *list = v->def->value.as.list;
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].tag != RT_TAG_INT)
            return false;
        out[i] = list->items[i].as.i;
    }
    *out_count = list->count;
    return true;
}

bool ir_is_core(const ir_op *op, rt_op core) {
    return op && op->opcode == IR_OP_CORE && op->core == core;
}

static size_t block_depth(const ir_block *b) {
    size_t depth = 0;
    for (; b->parent; b = b->parent->block)
        depth++;
    return depth;
}

bool ir_dominates(const ir_op *a, const ir_op *b) {
    size_t a_depth = block_depth(a->block), b_depth = block_depth(b->block);
    if (a_depth > b_depth)
        return false; /* a stands in a region that b does not */
    for (; b_depth > a_depth; b_depth--)
        b = b->block->parent;
    if (a->block != b->block)
        return false;
    for (; b; b = b->previous)
        if (b == a)
            return true;
    return false;
}

/* passes/support.c - helpers that the passes share. */
#include "passes/pass_internal.h"

#include <assert.h>

static void collect_block(pass_context *ctx, const ir_block *b, pass_op_list *out) {
    for (ir_op *op = b->first; op; op = op->next)
        pass_collect_op(ctx, op, out);
}

void pass_collect_op(pass_context *ctx, ir_op *op, pass_op_list *out) {
    TS_APPEND(ctx->scratch, out->items, out->count, out->capacity, op);
    for (size_t i = 0; i < op->region_count; i++)
        collect_block(ctx, op->regions[i], out);
}

pass_op_list pass_collect(pass_context *ctx, const ir_function *f) {
    pass_op_list list = {0};
    collect_block(ctx, f->body, &list);
    return list;
}

static void number_block(const ir_block *b, uint32_t *count) {
    for (size_t i = 0; i < b->parameter_count; i++)
        b->parameters[i]->number = (*count)++;
    for (const ir_op *op = b->first; op; op = op->next) {
        for (size_t i = 0; i < op->result_count; i++)
            op->results[i]->number = (*count)++;
        for (size_t i = 0; i < op->region_count; i++)
            number_block(op->regions[i], count);
    }
}

uint32_t pass_number_values(const ir_function *f) {
    uint32_t count = 0;
    number_block(f->body, &count);
    return count;
}

bool pass_asks_for_gradients(const ir_block *b) {
    for (const ir_op *op = b->first; op; op = op->next) {
        if (ir_is_core(op, OP_autograd_grad) || ir_is_core(op, OP_backward))
            return true;
        for (size_t i = 0; i < op->region_count; i++)
            if (pass_asks_for_gradients(op->regions[i]))
                return true;
    }
    return false;
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

ts_status pass_make_weight(pass_context *ctx, rt_dtype dtype, const int64_t *sizes, int rank, rt_tensor **out) {
    int64_t strides[RT_MAX_RANK], count = 1;
    for (int d = rank - 1; d >= 0; d--) { /* like a tensor that there is: no overflow */
        strides[d] = count;
        count *= sizes[d];
    }
    size_t bytes = (size_t)count * rt_dtype_size(dtype);
    void *room = ctx->room ? ctx->room(ctx->room_user, bytes) : NULL;
    if (!room)
        return rt_tensor_make(dtype, sizes, rank, out);
    rt_storage *storage;
    TS_TRY(rt_storage_wrap(room, bytes, NULL, NULL, &storage));
    ts_status status = rt_tensor_view(storage, dtype, 0, sizes, strides, rank, out);
    rt_storage_release(storage);
    return status;
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

/* ---- checks ---- */

ir_value *pass_build_refine(ir_builder *b, ir_value *v, const ir_type *type) {
    const ir_type *boolean = ir_type_simple(b->module, IR_BOOL);
    ir_op *op = ir_build_op(b, IR_OP_REFINE, &v, 1, &boolean, 1);
    op->type = type;
    return op->results[0];
}

ir_value *pass_build_both(ir_builder *b, ir_value *x, ir_value *y) {
    ir_module *m = b->module;
    ir_op *op = ir_build_if(b, x);
    ir_builder then = {.module = m, .block = op->regions[0], .place = b->place};
    ir_builder other = {.module = m, .block = op->regions[1], .place = b->place};
    ir_value *no = ir_build_bool(&other, false);
    ir_build_yield(&then, &y, 1);
    ir_build_yield(&other, &no, 1);
    return ir_op_add_result(m, op, ir_type_simple(m, IR_BOOL), TS_STR("usual"));
}

/* ---- core operators by name ---- */

ir_op *pass_build_core(ir_builder *b, const char *name, ir_value *const *given, size_t count) {
    ir_module *m = b->module;
    rt_op core = rt_op_find(ts_str_of(name));
    const ir_schema *s = ir_schema_of(m, core);
    ir_value *operands[16];
    for (size_t i = 0; i < s->arg_count && i < 16; i++) {
        if (i < count && given[i]) {
            operands[i] = given[i];
            continue;
        }
        rt_value v = s->args[i].default_value;
        const ir_type *t = ir_type_of_value(m, v);
        if (v.tag == RT_TAG_LIST)
            t = ir_type_without_none(m, s->args[i].type);
        operands[i] = ir_build_const_typed(b, v, t);
    }
    return ir_build_core(b, core, operands, s->arg_count);
}

void pass_build_check(ir_builder *b, ir_value *holds, ts_str message, const rt_dim *shown,
                      size_t count) {
    enum { MOST = 4 };
    ir_op *choice = ir_build_if(b, holds);
    ir_builder right = {.module = b->module, .block = choice->regions[0], .place = b->place};
    ir_builder wrong = {.module = b->module, .block = choice->regions[1], .place = b->place};
    ir_build_yield(&right, NULL, 0);
    ir_value *values[MOST];
    const ir_type *types[MOST];
    assert(count <= MOST);
    for (size_t i = 0; i < count; i++) {
        values[i] = ir_build_size(&wrong, shown[i]);
        types[i] = values[i]->type;
    }
    ir_value *text = ir_build_str(&wrong, message);
    if (count > 0) {
        const ir_type *tuple = ir_type_tuple(b->module, types, count, NULL);
        ir_value *parts[2] = {text, ir_build_op(&wrong, IR_OP_TUPLE, values, count, &tuple, 1)->results[0]};
        text = pass_build_core(&wrong, "format", parts, 2)->results[0];
    }
    ir_build_op(&wrong, IR_OP_RAISE, &text, 1, NULL, 0)->name = TS_STR("RuntimeError");
    ir_build_yield(&wrong, NULL, 0);
}

/* ---- the object tree ---- */

bool pass_walk_objects(pass_object_walk *w, rt_value v, int depth) {
    if (depth > PASS_OBJECT_DEPTH)
        return !(v.tag == RT_TAG_LIST || v.tag == RT_TAG_TUPLE || v.tag == RT_TAG_DICT ||
                 v.tag == RT_TAG_OBJECT);
    bool whole = true;
    if (v.tag == RT_TAG_LIST)
        for (size_t i = 0; i < v.as.list->count; i++)
            whole &= pass_walk_objects(w, v.as.list->items[i], depth + 1);
    if (v.tag == RT_TAG_TUPLE)
        for (size_t i = 0; i < v.as.tuple->count; i++)
            whole &= pass_walk_objects(w, v.as.tuple->items[i], depth + 1);
    if (v.tag == RT_TAG_DICT) {
        const rt_dict_entry *e;
        for (size_t at = 0; (e = rt_dict_next(v.as.dict, &at));)
            whole &= pass_walk_objects(w, e->value, depth + 1);
    }
    if (v.tag != RT_TAG_OBJECT)
        return whole;
    for (size_t i = 0; i < w->seen_count; i++)
        if (w->seen[i] == v.as.pointer)
            return whole;
    TS_APPEND(w->ctx->scratch, w->seen, w->seen_count, w->seen_capacity, v.as.pointer);
    rt_object *o = v.as.object;
    w->visit(w->user, o);
    for (size_t i = 0; i < o->field_count; i++)
        whole &= pass_walk_objects(w, o->fields[i], depth + 1);
    return whole;
}

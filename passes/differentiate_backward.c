/* passes/differentiate_backward.c - backward() and x.grad.
 *
 *   prim_set_grad(%w, none)                 %l = autograd_grad([%loss], [%w])
 *   backward(%loss)                   =>    %g = %l[0]
 *   %g = prim_grad(%w)
 *
 * x.grad is a variable of each tensor. The walk keeps its value of the moment: what was assigned, None,
 * or the sum of the gradients of the backwards since. A variable of a local tensor starts as None. Those
 * of attributes live on after the call: a function must set them to None (zero_grad) before or after it
 * uses them, so that what they start as is None as well; otherwise their gradients would add up from call
 * to call, which is refused. So is reading what a loop's rounds have left. */
#include "passes/differentiate.h"

typedef struct variable {
    ir_value *tensor;   /* the first that names it */
    ir_value *current;  /* x.grad now; NULL: as the call, or the round of a loop, found it */
    bool is_uncertain;  /* a branch or loop may have changed it */
    bool is_attribute;
} variable;

typedef struct backwards {
    pass_context *ctx;
    ir_module *m;
    differ *d;
    variable *items;
    size_t count, capacity;
    ir_op **removed;
    size_t removed_count, removed_capacity;
} backwards;

static variable *variable_of(backwards *w, ir_value *tensor) {
    for (size_t i = 0; i < w->count; i++)
        if (differ_same_variable(w->d, w->items[i].tensor, tensor))
            return &w->items[i];
    variable v = {.tensor = tensor,
                  .is_attribute = tensor->def && (tensor->def->opcode == IR_OP_GET_ATTR ||
                                                  tensor->def->opcode == IR_OP_CONST)};
    TS_APPEND(w->ctx->scratch, w->items, w->count, w->capacity, v);
    return &w->items[w->count - 1];
}

static bool is_zeroed_in(backwards *w, const ir_block *block, ir_value *tensor) {
    for (const ir_op *op = block->first; op; op = op->next)
        if (differ_is_op(op, "prim_set_grad") && op->operands[1]->type->kind == IR_NONE &&
            differ_same_variable(w->d, op->operands[0], tensor))
            return true;
    return false;
}

static bool is_read_after(backwards *w, const ir_op *backward, ir_value *tensor) {
    for (size_t i = backward->number + 1; i < w->d->ops.count; i++) {
        const ir_op *op = w->d->ops.items[i];
        if (differ_is_op(op, "prim_grad") && differ_same_variable(w->d, op->operands[0], tensor))
            return true;
    }
    return false;
}

/* A value that stands before the backward and is the variable. */
static ir_value *before(backwards *w, ir_op *backward, ir_value *tensor) {
    if (!tensor->def || !ir_dominates(backward, tensor->def))
        return tensor;
    if (tensor->def->opcode != IR_OP_GET_ATTR && tensor->def->opcode != IR_OP_CONST)
        return NULL;
    ir_builder b = pass_before(w->m, backward);
    ir_value *copy = ir_clone_op(&b, tensor->def, ir_value_map_make(w->ctx->scratch))->results[0];
    copy->def->number = backward->number;
    return copy;
}

static ts_status meet_backward(backwards *w, ir_op *op) {
    ir_module *m = w->m;
    const ir_type *tensors = ir_type_list(m, ir_type_any_tensor(m));
    const ir_type *optionals = ir_type_list(m, ir_type_optional(m, ir_type_any_tensor(m)));
    ir_builder b = pass_before(m, op);
    ir_value *inputs = ir_build_op(&b, IR_OP_LIST, NULL, 0, &tensors, 1)->results[0];
    ir_value *seeds = op->operands[1];
    if (seeds->type->kind != IR_NONE)
        seeds = ir_build_op(&b, IR_OP_LIST, &seeds, 1, &optionals, 1)->results[0];
    ir_value *operands[6] = {ir_build_op(&b, IR_OP_LIST, &op->operands[0], 1, &tensors, 1)->results[0],
                             inputs, seeds, ir_build_none(&b), ir_build_bool(&b, false),
                             ir_build_bool(&b, true)};
    ir_value *list = ir_build_core1(&b, rt_op_find(TS_STR("autograd_grad")), operands, 6);
    for (size_t i = 0; i < w->count; i++) {
        variable *v = &w->items[i];
        if (!is_read_after(w, op, v->tensor))
            continue;
        if (v->is_uncertain || (!v->current && v->is_attribute && !is_zeroed_in(w, op->block, v->tensor)))
            return ts_error_at(TS_ERR_UNSUPPORTED, op->place,
                               "gradients that add up from one backward() to the next are not supported "
                               "yet: expected x.grad = None, or zero_grad(), in the same block");
        ir_value *tensor = before(w, op, v->tensor);
        if (!tensor)
            return differ_unsupported(op);
        ir_op_add_operand(m, inputs->def, tensor);
        ir_value *pair[2] = {list, ir_build_int(&b, (int64_t)inputs->def->operand_count - 1)};
        ir_value *g = ir_build_core1(&b, rt_op_find(TS_STR("__getitem__.t")), pair, 2);
        if (v->current && v->current->type->kind != IR_NONE) {
            ir_value *both[2] = {v->current, g};
            differ_rule rule = {.d = w->d, .ctx = w->ctx, .m = m, .b = &b};
            TS_TRY(differ_call_library(&rule, "_add_gradients", both, 2, &g));
        }
        v->current = g;
    }
    TS_APPEND(w->ctx->scratch, w->removed, w->removed_count, w->removed_capacity, op);
    pass_count(w->ctx, "backwards", 1);
    return NULL;
}

static ts_status meet_read(backwards *w, ir_op *op) {
    variable *v = variable_of(w, op->operands[0]);
    ir_builder b = pass_before(w->m, op);
    if (v->is_uncertain || (!v->current && v->is_attribute && !is_zeroed_in(w, op->block, v->tensor)))
        return ts_error_at(TS_ERR_UNSUPPORTED, op->place,
                           "reading a gradient that another call or branch may have left is not supported "
                           "yet: expected backward() before it, in the same block or one around it");
    ir_value *now = v->current ? v->current : ir_build_none(&b);
    const ir_type *t = op->results[0]->type;
    ir_replace_uses(w->m, op->results[0], ir_build_op(&b, IR_OP_CAST, &now, 1, &t, 1)->results[0]);
    TS_APPEND(w->ctx->scratch, w->removed, w->removed_count, w->removed_capacity, op);
    return NULL;
}

static void forget_changed(backwards *w, const ir_block *block, bool starts) {
    for (const ir_op *op = block->first; op; op = op->next) {
        if (differ_is_op(op, "prim_set_grad"))
            variable_of(w, op->operands[0])->is_uncertain |= !starts;
        for (size_t i = 0; i < w->count && differ_is_op(op, "backward"); i++) {
            variable *v = &w->items[i];
            if (starts) /* as the round before has left it */
                v->is_uncertain |= v->current && v->current->type->kind != IR_NONE;
            else
                v->is_uncertain = true;
        }
        for (size_t i = 0; i < op->region_count; i++)
            forget_changed(w, op->regions[i], starts);
    }
}

static ts_status walk_block(backwards *w, ir_block *block);

static ir_value *known_now(backwards *w, const variable *v, ir_builder *b) {
    const ir_type *t = ir_type_optional(w->m, ir_type_any_tensor(w->m));
    ir_value *now = v->current ? v->current : ir_build_none(b);
    return now->type == t ? now : ir_build_op(b, IR_OP_CAST, &now, 1, &t, 1)->results[0];
}

/* What either branch leaves becomes a result of both. */
static ts_status walk_branches(backwards *w, ir_op *op) {
    size_t count = w->count;
    variable *before = TS_NEW_ARRAY(w->ctx->scratch, variable, 3 * count + 1);
    variable *left[2] = {before + count, before + 2 * count};
    if (count)
        memcpy(before, w->items, count * sizeof *before);
    for (size_t k = 0; k < 2; k++) {
        if (count)
            memcpy(w->items, before, count * sizeof *before);
        TS_TRY(walk_block(w, op->regions[k]));
        if (count)
            memcpy(left[k], w->items, count * sizeof *before);
    }
    for (size_t i = 0; i < count; i++) {
        variable *v = &w->items[i];
        *v = before[i];
        if (left[0][i].current == v->current && left[1][i].current == v->current &&
            left[0][i].is_uncertain == v->is_uncertain && left[1][i].is_uncertain == v->is_uncertain)
            continue;
        v->is_uncertain = left[0][i].is_uncertain || left[1][i].is_uncertain ||
                          (v->is_attribute && (!left[0][i].current || !left[1][i].current));
        if (v->is_uncertain)
            continue;
        for (size_t k = 0; k < 2; k++) {
            ir_builder b = pass_before(w->m, op->regions[k]->last);
            ir_op_add_operand(w->m, op->regions[k]->last, known_now(w, &left[k][i], &b));
        }
        v->current = ir_op_add_result(w->m, op, ir_type_optional(w->m, ir_type_any_tensor(w->m)), (ts_str){0});
    }
    return NULL;
}

/* What a round may leave is not known where the next begins, nor behind the loop. */
static ts_status walk_loop(backwards *w, ir_op *op) {
    size_t count = w->count;
    variable *saved = TS_NEW_ARRAY(w->ctx->scratch, variable, count + 1);
    for (size_t i = 0; i < op->region_count; i++) {
        forget_changed(w, op->regions[i], true);
        if (count)
            memcpy(saved, w->items, count * sizeof *saved);
        TS_TRY(walk_block(w, op->regions[i]));
        if (count)
            memcpy(w->items, saved, count * sizeof *saved);
        forget_changed(w, op->regions[i], false);
    }
    return NULL;
}

static ts_status walk_block(backwards *w, ir_block *block) {
    for (ir_op *op = block->first, *next; op; op = next) {
        next = op->next;
        if (differ_is_op(op, "backward"))
            TS_TRY(meet_backward(w, op));
        else if (differ_is_op(op, "prim_grad"))
            TS_TRY(meet_read(w, op));
        else if (differ_is_op(op, "prim_set_grad")) {
            variable *v = variable_of(w, op->operands[0]);
            v->current = op->operands[1];
            v->is_uncertain = false;
            TS_APPEND(w->ctx->scratch, w->removed, w->removed_count, w->removed_capacity, op);
        }
        if (op->opcode == IR_OP_IF)
            TS_TRY(walk_branches(w, op));
        else if (op->region_count)
            TS_TRY(walk_loop(w, op));
    }
    return NULL;
}

ts_status differ_lower_backward(pass_context *ctx, ir_module *m, ir_function *f) {
    differ d = {.ctx = ctx, .m = m, .ops = pass_collect(ctx, f)};
    backwards w = {.ctx = ctx, .m = m, .d = &d};
    bool any = false;
    for (size_t i = 0; i < d.ops.count && !any; i++)
        any = differ_is_op(d.ops.items[i], "backward") || differ_is_op(d.ops.items[i], "prim_grad") ||
              differ_is_op(d.ops.items[i], "prim_set_grad");
    if (!any)
        return NULL;
    differ_number(&d.ops);
    d.alias = pass_alias_make(ctx, m, f);
    for (size_t i = 0; i < d.ops.count; i++)
        if (differ_is_op(d.ops.items[i], "prim_grad") || differ_is_op(d.ops.items[i], "prim_set_grad"))
            (void)variable_of(&w, d.ops.items[i]->operands[0]);
    TS_TRY(walk_block(&w, f->body));
    while (w.removed_count)
        ir_op_remove(w.removed[--w.removed_count]);
    return NULL;
}

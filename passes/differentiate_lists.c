/* passes/differentiate_lists.c - gradients of lists of tensors.
 *
 *   append.t(%l, %x)        the last gradient of %l leaves its list and is that of %x
 *   __getitem__.t(%l, %i)   adds to gradient %i
 *   _set_item.t(%l, %i, %x) gradient %i is that of %x, and then zeros
 *   stack(%l), cat(%l)      by the operator's own formula, one gradient an item
 *
 * The list of gradients mirrors the list at each point of the way back: it is made, full of zeros,
 * where the way back meets the list first, when the list is as it was left. Changes of other kinds
 * (insert, clear ...) are refused. */
#include "passes/differentiate.h"

bool differ_is_list(const ir_value *v) { return v->type->kind == IR_LIST; }

/* The yield hands on the parameter itself, or what appended to it. */
static bool hands_on(ir_value *v, const ir_value *parameter, int depth) {
    while (depth-- > 0 && v != parameter) {
        if (!v->def || !v->def->operand_count)
            return false;
        if (v->def->opcode == IR_OP_CAST ||
            (v->def->opcode == IR_OP_CORE && ir_op_writes(v->def, 0) && differ_is_list(v->def->operands[0])))
            v = v->def->operands[0];
        else
            return false;
    }
    return v == parameter;
}

ir_value *differ_list_root(ir_value *v) {
    for (int depth = 0; depth < 1000; depth++) {
        ir_op *op = v->def;
        if (!op) { /* carried through a loop without being exchanged */
            ir_op *loop = v->block->parent;
            if (!loop || loop->opcode != IR_OP_LOOP || v->index == 0 ||
                !hands_on(loop->regions[0]->last->operands[v->index], v, 1000))
                return v;
            v = loop->operands[v->index + 1];
        } else if (op->opcode == IR_OP_LOOP) {
            ir_value *p = op->regions[0]->parameters[v->index + 1];
            if (!hands_on(op->regions[0]->last->operands[v->index + 1], p, 1000))
                return v;
            v = op->operands[v->index + 2];
        } else if (op->opcode == IR_OP_CAST ||
                   (op->opcode == IR_OP_CORE && op->operand_count && ir_op_writes(op, 0) &&
                    differ_is_list(op->operands[0]))) {
            v = op->operands[0];
        } else if (op->opcode == IR_OP_IF) {
            ir_value *a = differ_list_root(op->regions[0]->last->operands[v->index]);
            ir_value *b = differ_list_root(op->regions[1]->last->operands[v->index]);
            if (a != b)
                return v;
            v = a;
        } else {
            return v;
        }
    }
    return v;
}

static bool is_list_of_tensors(const ir_value *v) {
    return differ_is_list(v) && v->type->args[0]->kind == IR_TENSOR;
}

static ts_status unsupported_list(differ_rule *r, const ir_value *v) {
    const ir_op *at = v->def ? v->def : r->op ? r->op : r->d->at;
    return ts_error_at(TS_ERR_UNSUPPORTED, at->place,
                       "the derivative of a list that %s is not supported yet",
                       is_list_of_tensors(v) ? "a branch or loop exchanges" : "holds more than tensors");
}

ts_status differ_list_adjoint(differ_rule *r, ir_value *v, ir_value **out) {
    v = differ_list_root(v);
    *out = ir_value_map_get(r->d->list_adjoints, v);
    if (*out)
        return NULL;
    if (!is_list_of_tensors(v) || !v->def || v->def->opcode == IR_OP_LOOP || v->def->opcode == IR_OP_IF)
        return unsupported_list(r, v);
    TS_TRY(differ_call_library(r, "_zero_gradients", &v, 1, out));
    ir_value_map_set(r->d->list_adjoints, v, *out);
    return NULL;
}

ts_status differ_add_list(differ_rule *r, ir_value *v, ir_value *gradients) {
    ir_value *both[2], *unused;
    v = differ_list_root(v);
    if (v->def && v->def->opcode == IR_OP_LIST && ir_list_is_stable(v) &&
        !ir_value_map_get(r->d->list_adjoints, v)) { /* each item's own */
        for (size_t i = 0; i < v->def->operand_count; i++) {
            ir_value *item = v->def->operands[i];
            if (!differ_depends(r->d, item))
                continue;
            ir_value *g = differ_call(r, "__getitem__.t", gradients, ir_build_int(r->b, (int64_t)i), NULL);
            differ_add(r, item, differ_cast(r, g, ir_type_without_none(r->m, item->type)));
        }
        return NULL;
    }
    TS_TRY(differ_list_adjoint(r, v, &both[0]));
    both[1] = gradients;
    return differ_call_library(r, "_accumulate_all", both, 2, &unused);
}

static ts_status give_item(differ_rule *r, ir_value *item, ir_value *g) {
    if (differ_depends(r->d, item))
        differ_add(r, item, differ_cast(r, g, ir_type_without_none(r->m, item->type)));
    return NULL;
}

/* a, b = chunk(x, 2): the gradients of the parts are those of the list; zeros for one not used. */
static ts_status unpacked(differ_rule *r) {
    ir_op *op = r->op;
    ir_value **parts = TS_NEW_ARRAY(r->ctx->scratch, ir_value *, op->result_count + 1);
    bool any = false;
    for (size_t j = 0; j < op->result_count; j++)
        any |= (parts[j] = ir_value_map_get(r->adjoints, op->results[j])) != NULL;
    if (!any)
        return NULL;
    for (size_t j = 0; j < op->result_count; j++)
        if (!parts[j])
            TS_TRY(differ_zero(r, op->results[j], &parts[j]));
    const ir_type *t = ir_type_list(r->m, ir_type_any_tensor(r->m));
    ir_value *list = ir_build_op(r->b, IR_OP_LIST, parts, op->result_count, &t, 1)->results[0];
    list->number = UINT32_MAX;
    ir_value *root = differ_list_root(op->operands[0]);
    if (!ir_value_map_get(r->d->list_adjoints, root) && root->def && root->def->opcode == IR_OP_CORE &&
        root->def->block == op->block) {
        ir_value_map_set(r->d->list_adjoints, root, list);
        return NULL;
    }
    return differ_add_list(r, root, list);
}

bool differ_leads_to_outputs(const differ *d, ir_value *list) {
    const ir_value *root = differ_list_root(list);
    return !root->def || root->def->number >= d->ops.count || d->reached[root->def->number];
}

ts_status differ_apply_list(differ_rule *r, bool *out_done) {
    ir_op *op = r->op;
    ir_value **o = op->operands, *pair[3], *unused;
    *out_done = true;
    if (op->opcode == IR_OP_LIST_UNPACK)
        return unpacked(r);
    if (op->opcode == IR_OP_LIST) {
        ir_value *list = ir_value_map_get(r->d->list_adjoints, op->results[0]);
        for (size_t i = 0; list && i < op->operand_count; i++)
            TS_TRY(give_item(r, o[i], differ_call(r, "__getitem__.t", list, ir_build_int(r->b, (int64_t)i), NULL)));
        return NULL;
    }
    if (op->opcode == IR_OP_CAST && differ_is_list(op->results[0]) && differ_is_list(o[0]))
        return NULL; /* another name */
    *out_done = op->opcode == IR_OP_CORE && op->operand_count && differ_is_list(o[0]);
    if (!*out_done)
        return NULL;
    if (ir_op_writes(op, 0) && !differ_leads_to_outputs(r->d, o[0]))
        return NULL;
    ir_value *g = op->result_count ? ir_value_map_get(r->adjoints, op->results[0]) : NULL;
    ir_value *own = op->result_count ? ir_value_map_get(r->d->list_adjoints, op->results[0]) : NULL;
    if (differ_is_op(op, "append.t")) {
        TS_TRY(differ_list_adjoint(r, o[0], &pair[0]));
        return give_item(r, o[1], differ_call(r, "pop.t", pair[0], NULL, NULL));
    }
    if (differ_is_op(op, "_set_item.t")) {
        if (!differ_is_unchanged(r->d, op, o[1]))
            return differ_unsupported(op);
        TS_TRY(differ_list_adjoint(r, o[0], &pair[0]));
        pair[1] = o[1];
        TS_TRY(differ_call_library(r, "_take_gradient", pair, 2, &unused));
        return give_item(r, o[2], unused);
    }
    if (differ_is_op(op, "__getitem__.t")) {
        if (!g)
            return NULL;
        ir_value *root = differ_list_root(o[0]);
        int64_t at;
        if (root->def && root->def->opcode == IR_OP_LIST && ir_list_is_stable(root) &&
            ir_const_int(o[1], &at)) {
            at = at < 0 ? at + (int64_t)root->def->operand_count : at;
            if (at >= 0 && at < (int64_t)root->def->operand_count)
                return give_item(r, root->def->operands[at], g);
        }
        TS_TRY(differ_list_adjoint(r, o[0], &pair[0]));
        pair[1] = o[1];
        pair[2] = g;
        return differ_call_library(r, "_accumulate", pair, 3, &unused);
    }
    if (differ_is_op(op, "list.t") || differ_is_op(op, "copy.t"))
        return own ? differ_add_list(r, o[0], own) : NULL;
    if (differ_is_op(op, "add.t")) {
        if (!own)
            return NULL;
        for (size_t i = 0; i < 2; i++) {
            if (!r->wanted[i])
                continue;
            TS_TRY(differ_list_adjoint(r, o[i], &pair[0]));
            pair[1] = own;
            TS_TRY(differ_call_library(r, i ? "_accumulate_end" : "_accumulate_start", pair, 2, &unused));
        }
        return NULL;
    }
    if (differ_is_op(op, "slice.t")) {
        if (!own)
            return NULL;
        TS_TRY(differ_list_adjoint(r, o[0], &pair[0]));
        ir_value *five[5] = {pair[0], own, o[1], o[2], o[3]};
        return differ_call_library(r, "_accumulate_slice", five, 5, &unused);
    }
    for (size_t i = 0; i < op->operand_count; i++)
        if (differ_is_list(o[i]) && ir_op_writes(op, i))
            return differ_unsupported(op);
    *out_done = false; /* an operator of tensors that takes a list: cat, stack */
    return NULL;
}

/* passes/settle_indices.c - x[...] by tensors as views and advanced indexing, once the ranks of the indices are known.
 *
 *   %y = prim_getitem(%x, [none, %n])       %i = Int.Tensor(%n), %y = select.int(%x, 1, %i)       %n: int64[]
 *   %y = prim_getitem(%x, [%m])         =>  %y = index.Tensor(unsqueeze(%x, 0), [unsqueeze(%m, 0)])  %m: bool[]
 *   %y = prim_getitem(%x, [%i, none])       %y = index.Tensor(%x, [%i, none])                     %i: int64[N]
 *   prim_setitem_ likewise: copy_ into the view, or index_put_
 *
 * Needs: infer_types. Keeps: types. Why before functionalise: it knows select and unsqueeze as views, and index as
 * memory of its own, and the rows that stand for either as neither. Cost: one walk. */
#include "passes/pass_internal.h"

typedef struct settler {
    pass_context *ctx;
    ir_module *m;
} settler;

static bool reads(const ir_op *op) {
    return ir_is_core(op, OP_prim_getitem) || ir_is_core(op, OP_prim_getitem_list);
}

static bool is_mask(const ir_type *t) { return t->dtype == RT_bool || t->dtype == RT_uint8; }

/* The tensor behind casts to Tensor?; NULL: none. */
static ir_value *index_of(ir_value *v) {
    while (v->def && v->def->opcode == IR_OP_CAST)
        v = v->def->operands[0];
    return v->type->kind == IR_NONE ? NULL : v;
}

/* Each index a tensor of known rank and dtype, or None. */
static bool is_settled(const ir_value *list) {
    if (!list->def || list->def->opcode != IR_OP_LIST || !ir_list_is_stable(list))
        return false;
    for (size_t i = 0; i < list->def->operand_count; i++) {
        const ir_value *v = index_of(list->def->operands[i]);
        if (v && (v->type->kind != IR_TENSOR || v->type->rank < 0 || v->type->dtype == RT_DTYPE_UNKNOWN ||
                  (!rt_dtype_is_integral(v->type->dtype) && !is_mask(v->type))))
            return false;
    }
    return true;
}

static ir_value *one(ir_builder *b, const char *name, ir_value *x, ir_value *dim, ir_value *index) {
    ir_value *given[3] = {x, dim, index};
    return pass_build_core(b, name, given, index ? 3 : dim ? 2 : 1)->results[0];
}

/* What 0-d indices leave of x; out_list: the others, NULL where there are none. */
static ir_value *view_by(settler *s, ir_builder *b, ir_value *x, const ir_op *list, ir_value **out_list) {
    const ir_type *optional = ir_type_optional(s->m, ir_type_any_tensor(s->m));
    ir_value **left = TS_NEW_ARRAY(s->m->arena, ir_value *, list->operand_count + 1);
    size_t count = 0;
    bool any = false;
    int64_t dim = 0;
    for (size_t i = 0; i < list->operand_count; i++) {
        ir_value *v = index_of(list->operands[i]);
        bool mask = v && is_mask(v->type);
        if (v && v->type->rank == 0 && !mask) {
            x = one(b, "select.int", x, ir_build_int(b, dim), one(b, "Int.Tensor", v, NULL, NULL));
            continue;
        }
        if (mask && v->type->rank == 0) {
            x = one(b, "unsqueeze", x, ir_build_int(b, dim), NULL);
            v = one(b, "unsqueeze", v, ir_build_int(b, 0), NULL);
            dim++;
        } else {
            dim += mask ? v->type->rank : 1;
        }
        any = any || v;
        if (!v)
            v = ir_build_none(b);
        left[count++] = ir_build_op(b, IR_OP_CAST, &v, 1, &optional, 1)->results[0];
    }
    const ir_type *type = ir_type_list(s->m, optional);
    *out_list = any ? ir_build_op(b, IR_OP_LIST, left, count, &type, 1)->results[0] : NULL;
    return x;
}

static void settle(settler *s, ir_op *op) {
    ir_builder b = pass_before(s->m, op);
    ir_value *list, *view = view_by(s, &b, op->operands[0], op->operands[1]->def, &list), *result;
    if (reads(op)) {
        ir_value *given[2] = {view, list};
        result = list ? pass_build_core(&b, "index.Tensor", given, 2)->results[0]
                 : view != op->operands[0] ? view : pass_build_core(&b, "alias", &view, 1)->results[0];
    } else {
        ir_value *given[4] = {view, list, op->operands[2], op->operands[3]}, *plain[2] = {view, op->operands[2]};
        pass_build_core(&b, list ? "index_put_" : "copy_", list ? given : plain, list ? 4 : 2);
        result = op->operands[0];
    }
    if (result != op->operands[0] && ir_type_same_shape_of(op->results[0]->type, result->type))
        result->type = op->results[0]->type;
    pass_replace(s->m, op->results[0], result);
    ir_op_remove(op);
    pass_count(s->ctx, "indices", 1);
}

ts_status pass_settle_indices(pass_context *ctx, ir_module *m) {
    settler s = {ctx, m};
    for (ir_function *f = m->functions; f; f = f->next) {
        if (!f->body)
            continue;
        pass_op_list ops = pass_collect(ctx, f);
        for (size_t i = 0; i < ops.count; i++) {
            ir_op *op = ops.items[i];
            bool is_item = reads(op) || ir_is_core(op, OP_prim_setitem_) || ir_is_core(op, OP_prim_setitem__list);
            if (is_item && is_settled(op->operands[1]))
                settle(&s, op);
        }
    }
    return NULL;
}

/* passes/open_operators.c - operators without a kernel form, as functions of the library that have one.
 *
 *   %y = conv3d(%x, WEIGHT, ...)            =>  call @_open_conv3d(%x, WEIGHT, ...)
 *   %y = group_norm(...), instance_norm(...)  =>  means over rows, scales, shifts
 *
 * The functions stand in frontend/library/tensor_open.py. Only where dtype, rank and what decides about
 * the function's way are known: the reference kernel keeps the rest. Needs: infer_types. Keeps: types,
 * results up to rounding. Why after fold_batch_norm and simplify_algebra: they look for whole
 * convolutions and name them; why before decompose: that inlines the calls. */
#include "ir/kernel_form.h"
#include "passes/pass_internal.h"

typedef struct opener {
    pass_context *ctx;
    ir_module *m;
} opener;

static bool is_float_tensor(const ir_value *v, int rank) {
    return v && ir_type_is_known_tensor(v->type) && v->type->dtype == RT_float32 &&
           (rank < 0 || v->type->rank == rank);
}

static bool is_none_or_float(const ir_value *v) {
    return v->type->kind == IR_NONE || is_float_tensor(v, 1);
}

/* A list of count numbers, or one for all. */
static bool numbers(const ir_value *v, int count, int64_t *out) {
    size_t n = 0;
    if (!ir_const_int_list(v, out, (size_t)count, &n) || (n != (size_t)count && n != 1))
        return false;
    for (int i = (int)n; i < count; i++)
        out[i] = out[0];
    return true;
}

static bool is_constant_weight(const ir_value *w, int rank) {
    return ir_is_const(w) && is_float_tensor(w, rank);
}

static bool group_norm_opens(const ir_op *op) {
    const ir_type *t = op->operands[0]->type;
    int64_t groups;
    return is_float_tensor(op->operands[0], -1) && t->rank >= 2 && rt_dim_is_constant(t->dims[1]) &&
           ir_const_int(op->operands[1], &groups) && groups > 0 && t->dims[1] % groups == 0 &&
           is_none_or_float(op->operands[2]) && is_none_or_float(op->operands[3]);
}

static bool instance_norm_opens(const ir_op *op) {
    const ir_type *t = op->operands[0]->type;
    bool uses_input;
    return is_float_tensor(op->operands[0], -1) && t->rank >= 3 && rt_dim_is_constant(t->dims[1]) &&
           is_none_or_float(op->operands[1]) && is_none_or_float(op->operands[2]) &&
           op->operands[3]->type->kind == IR_NONE && op->operands[4]->type->kind == IR_NONE &&
           ir_const_bool(op->operands[5], &uses_input) && uses_input;
}

static bool conv3d_opens(const ir_op *op) {
    int64_t list[3], groups;
    const ir_value *x = op->operands[0], *w = op->operands[1];
    return is_float_tensor(x, 5) && is_constant_weight(w, 5) && is_none_or_float(op->operands[2]) &&
           rt_dim_is_constant(x->type->dims[1]) && numbers(op->operands[3], 3, list) &&
           numbers(op->operands[4], 3, list) && numbers(op->operands[5], 3, list) &&
           ir_const_int(op->operands[6], &groups) && groups > 0 &&
           x->type->dims[1] == w->type->dims[1] * groups && w->type->dims[2] <= 16;
}

/* The function's name, or NULL; *out_spatial: how many numbers its lists have. */
static const char *opened(const ir_op *op, int *out_spatial) {
    *out_spatial = 0;
    if (ir_is_core(op, OP_group_norm))
        return group_norm_opens(op) ? "_open_group_norm" : NULL;
    if (ir_is_core(op, OP_instance_norm))
        return instance_norm_opens(op) ? "_open_instance_norm" : NULL;
    if (ir_is_core(op, OP_conv3d)) {
        *out_spatial = 3;
        return conv3d_opens(op) ? "_open_conv3d" : NULL;
    }
    return NULL;
}

/* A list that a call takes counts as one that may change, for all who read it: the call gets a constant of
 * its own, with a number for each of the spatial dims. */
static ts_status own_list(opener *o, ir_builder *b, ir_value *v, int spatial, ir_value **out) {
    int64_t items[3];
    *out = v;
    if (v->type->kind != IR_LIST || spatial == 0 || !numbers(v, spatial, items))
        return NULL;
    rt_value list;
    TS_TRY(rt_list_make((size_t)spatial, &list));
    ts_status status = NULL;
    for (int i = 0; i < spatial && !status; i++)
        status = rt_list_append(list.as.list, rt_int(items[i]));
    if (!status)
        *out = ir_build_const_typed(b, list, ir_type_list(o->m, ir_type_simple(o->m, IR_INT)));
    rt_release(list);
    return status;
}

static ts_status open_one(opener *o, ir_op *op, const char *name, int spatial) {
    ir_function *f = NULL;
    TS_TRY(o->ctx->library(o->ctx->library_user, ts_str_of(name), &f));
    if (!f || f->body->parameter_count != op->operand_count)
        return NULL;
    ir_builder b = pass_before(o->m, op);
    ir_value *operands[16];
    if (op->operand_count > 16)
        return NULL;
    for (size_t i = 0; i < op->operand_count; i++)
        TS_TRY(own_list(o, &b, op->operands[i], spatial, &operands[i]));
    const ir_type *t = f->return_type;
    ir_op *call = ir_build_op(&b, IR_OP_CALL, operands, op->operand_count, &t, 1);
    call->function = f;
    call->results[0]->number = UINT32_MAX;
    ir_value *result = call->results[0];
    if (op->results[0]->type != t) { /* it has the type that inference found */
        ir_op *cast = ir_build_op(&b, IR_OP_CAST, &result, 1, &op->results[0]->type, 1);
        cast->type = op->results[0]->type;
        cast->results[0]->number = op->results[0]->number;
        result = cast->results[0];
    }
    ir_replace_uses(o->m, op->results[0], result);
    ir_op_remove(op);
    pass_count(o->ctx, "opened", 1);
    return NULL;
}

ts_status pass_open_operators(pass_context *ctx, ir_module *m) {
    opener o = {ctx, m};
    if (!ctx->library)
        return NULL;
    for (ir_function *f = m->functions; f; f = f->next) {
        pass_op_list ops = pass_collect(ctx, f);
        for (size_t i = 0; i < ops.count; i++) {
            ir_op *op = ops.items[i];
            int spatial;
            if (!pass_is_linked(op) || op->opcode != IR_OP_CORE)
                continue;
            const char *name = opened(op, &spatial);
            if (name)
                TS_TRY(open_one(&o, op, name, spatial));
        }
    }
    return NULL;
}

/* passes/fold_gates.c - a gate of channels multiplies the weights that follow rather than the image.
 *
 *   %y = mul(%x, %g)                              %w' = mul(%w, %g)
 *   %z = conv2d(%y, %w, %b, ...)           =>     %z = conv2d(%x, %w', %b, ...)
 *
 * with %x : [1,C,H,W] and %g : [1,C,1,1], as in blocks that squeeze and excite. Only where the weights are
 * the smaller (MIN_RATIO, of an image of the usual sizes where they are not known) and constants, and nothing else reads %y: a pass over the image is saved.
 * Needs: infer_types. Keeps: types; results up to rounding (w * g is rounded where x * g was). Why here:
 * before fuse, which would make kernels of both. Cost: one walk.
 * Source of such blocks: Hu et al. 2018, Squeeze-and-Excitation Networks, section 3. */
#include "ir/live_memory.h"
#include "passes/alias.h"

enum { MIN_RATIO = 8 };

static bool is_float_image(const ir_type *t) {
    return t->kind == IR_TENSOR && t->dtype == RT_float32 && t->rank == 4 && t->dims[0] == 1;
}

/* Which operand of the product is a gate over the channels of the other: 0, 1, or -1. */
static int find_gate(const ir_op *product) {
    for (int i = 0; i < 2; i++) {
        const ir_type *g = product->operands[i]->type, *x = product->operands[1 - i]->type;
        if (is_float_image(g) && is_float_image(x) && g->dims[1] == x->dims[1] && g->dims[2] == 1 && g->dims[3] == 1 &&
            x->dims[2] != 1 && !ir_is_const(product->operands[i]))
            return i;
    }
    return -1;
}

static bool fold(pass_context *ctx, ir_module *m, pass_alias *alias, ir_op *conv) {
    enum { INPUT, WEIGHT, GROUPS = 6 };
    ir_op *product = conv->operands[INPUT]->def;
    int64_t groups = 1;
    const ir_type *w = conv->operands[WEIGHT]->type;
    if (!ir_is_core(product, OP_mul_Tensor) || product->results[0]->use_count != 1 || product->block != conv->block ||
        !ir_is_const(conv->operands[WEIGHT]) || w->kind != IR_TENSOR || w->dtype != RT_float32 || w->rank != 4)
        return false;
    if (conv->operand_count > GROUPS && (!ir_const_int(conv->operands[GROUPS], &groups) || groups != 1))
        return false;
    int gate = find_gate(product);
    if (gate < 0 || pass_is_written(alias, product->results[0]) || pass_is_written(alias, product->operands[0]) ||
        pass_is_written(alias, product->operands[1]) || pass_is_written(alias, conv->operands[WEIGHT]))
        return false;
    ir_value *image = product->operands[1 - gate];
    if (w->dims[1] != image->type->dims[1] || ir_usual_bytes(m, w) <= 0 ||
        ir_usual_bytes(m, w) > ir_usual_bytes(m, image->type) / MIN_RATIO)
        return false;
    ir_builder b = pass_before(m, conv);
    b.place = product->place;
    ir_value *args[2] = {conv->operands[WEIGHT], product->operands[gate]};
    ir_value *weights = ir_build_core1(&b, OP_mul_Tensor, args, 2);
    weights->type = w;
    ir_op_set_operand(m, conv, WEIGHT, weights);
    ir_op_set_operand(m, conv, INPUT, image);
    ir_op_remove(product);
    ctx->changed = true;
    pass_count(ctx, "gates", 1);
    return true;
}

ts_status pass_fold_gates(pass_context *ctx, ir_module *m) {
    if (ctx->target && (ctx->target->rounds_weights || ctx->target->is_gpu)) /* these want constants */
        return NULL;
    for (ir_function *f = m->functions; f; f = f->next) {
        if (!f->body)
            continue;
        pass_alias *alias = NULL;
        pass_op_list ops = pass_collect(ctx, f);
        for (size_t i = 0; i < ops.count; i++) {
            if (!ir_is_core(ops.items[i], OP_conv2d))
                continue;
            alias = alias ? alias : pass_alias_make(ctx, m, f);
            fold(ctx, m, alias, ops.items[i]);
        }
    }
    return NULL;
}

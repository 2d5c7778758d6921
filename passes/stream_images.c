/* passes/stream_images.c - a large image between two kernels is never there as a whole.
 *
 *   %x = kernel contraction(%a) { conv2d 1x1, silu }        %y = kernel stream(%a) {
 *   %y = kernel contraction(%x) { depthwise conv2d }   =>     %x = kernel contraction(%a) {...}
 *                                                             %y = kernel contraction(%x) {...}
 *                                                             yield %y
 *                                                           }
 *
 * Codegen runs both band by band: lines of %x, as many as the second-level cache holds, are made in scratch
 * and read there by the depthwise convolution; lines that the next band reads too stay. Written and read as
 * a whole such an image goes through the third level or memory twice (a MobileNet's 64 channels of 112 x 112:
 * 410 us as two kernels, 255 as a stream). The same for a depthwise convolution before a kernel that makes another
 * image of its image and takes means of lines, as before a gate of channels. Only of one image (N = 1)
 * with its channels innermost, of MIN_BYTES or MIN_LINE_BYTES at least (if its sizes are the usual ones, where they are not
 * known), that nothing else reads.
 *
 * Needs: assign_layout, split_reductions. Keeps: types, results bit by bit. Cost: one walk. */
#include "ir/kernel_form.h"
#include "ir/live_memory.h"
#include "passes/pass_internal.h"

/* 1.6 to 1.8 MB gained nothing where the second-level cache has 2 MB. */
enum { MIN_BYTES = 2 << 20, MIN_LINE_BYTES = 1 << 19, MAX_KERNEL = 7 };

static bool is_image_of(const ir_module *m, const ir_type *t, int64_t least) {
    return t->kind == IR_TENSOR && t->dtype == RT_float32 && t->rank == 4 && t->layout == IR_LAYOUT_CHANNELS_LAST &&
           t->dims[0] == 1 && rt_dim_is_constant(t->dims[1]) && ir_usual_bytes(m, t) >= least;
}

static ir_op *convolution_of(const ir_op *kernel) {
    ir_op *found = NULL;
    for (ir_op *op = kernel->regions[0]->first; op; op = op->next) {
        if (ir_anchor_of(op) == IR_A_NONE)
            continue;
        if (found || !ir_is_core(op, OP_conv2d) || !ir_is_const(op->operands[1]))
            return NULL;
        found = op;
    }
    return found;
}

static int64_t groups_of(const ir_op *convolution) {
    int64_t groups = 1;
    if (convolution->operand_count > 6 && !ir_const_int(convolution->operands[6], &groups))
        return -1;
    return groups;
}

/* Transforms of tiles (3 x 3) are another kind of kernel, whose rows come in other shapes. */
static bool makes_rows(const ir_op *kernel) {
    const ir_op *c = convolution_of(kernel);
    const ir_type *w = c ? c->operands[1]->type : NULL;
    if (!c || groups_of(c) != 1 || w->kind != IR_TENSOR || w->rank != 4 || kernel->result_count != 1)
        return false;
    const ir_type *x = c->operands[0]->type, *y = c->results[0]->type;
    return w->dims[2] != 3 || w->dims[3] != 3 || x->dims[2] != y->dims[2];
}

/* A depthwise convolution with a small window. */
static bool is_depthwise(const ir_op *kernel) {
    const ir_op *c = convolution_of(kernel);
    const ir_type *w = c ? c->operands[1]->type : NULL;
    return c && w->kind == IR_TENSOR && w->rank == 4 && w->dims[1] == 1 && rt_dim_is_constant(w->dims[0]) &&
           w->dims[0] == groups_of(c) && w->dims[2] <= MAX_KERNEL && w->dims[3] <= MAX_KERNEL;
}

static bool reads_by_window(const ir_op *kernel, const ir_value *p) {
    return is_depthwise(kernel) && p->use_count == 1 && convolution_of(kernel)->operands[0] == p;
}

/* Whether the kernel makes values of the image that is parameter p and takes means of its lines, as
 * split_reductions left it. */
static bool reads_by_line(ir_module *m, const ir_op *kernel, const ir_value *p) {
    bool has_means = false;
    for (const ir_op *op = kernel->regions[0]->first; op != kernel->regions[0]->last; op = op->next) {
        if (op->opcode != IR_OP_CORE)
            continue;
        ir_kernel_form form = ir_kernel_form_of(m, op);
        bool is_mean = form == IR_FORM_REDUCTION && op->operands[0]->type->rank == 4 && ir_reduced_dims(m, op) == 8;
        if (!is_mean && form != IR_FORM_POINTWISE)
            return false;
        has_means = has_means || is_mean;
    }
    return has_means && p->type->rank == 4;
}

static bool has_only_tensors(const ir_op *kernel) {
    for (size_t i = 0; i < kernel->operand_count; i++)
        if (kernel->operands[i]->type->kind != IR_TENSOR)
            return false;
    return true;
}

/* An if whose paths only make numbers and raise: a check of sizes (check_window.c). */
static bool is_check(const ir_op *op) {
    if (op->opcode != IR_OP_IF || op->result_count > 0)
        return false;
    for (size_t i = 0; i < op->region_count; i++)
        for (const ir_op *inner = op->regions[i]->first; inner; inner = inner->next)
            if (inner->region_count > 0 || (ir_effects(inner) & IR_EFFECT_WRITES))
                return false;
    return true;
}

/* The first kernel may run where the second stands: nothing between writes what it reads. */
static bool may_wait(const ir_op *first, const ir_op *second) {
    for (const ir_op *op = first->next; op != second; op = op->next)
        if (!op || (op->region_count > (op->opcode == IR_OP_KERNEL) && !is_check(op)) ||
            (ir_effects(op) & IR_EFFECT_WRITES))
            return false;
    return true;
}

static ir_op *reader_of(ir_module *m, const ir_op *first) {
    const ir_value *v = first->result_count == 1 ? first->results[0] : NULL;
    if (!v || v->use_count != 1 || !has_only_tensors(first))
        return NULL;
    ir_op *second = v->uses[0].op;
    if (second->opcode != IR_OP_KERNEL || second->block != first->block || !has_only_tensors(second) ||
        !may_wait(first, second))
        return NULL;
    const ir_value *p = second->regions[0]->parameters[v->uses[0].operand];
    bool fits = second->kernel_kind == IR_KERNEL_CONTRACTION
                    ? is_image_of(m, v->type, MIN_BYTES) && makes_rows(first) && reads_by_window(second, p)
                    : second->kernel_kind == IR_KERNEL_POINTWISE && is_image_of(m, v->type, MIN_LINE_BYTES) &&
                          is_depthwise(first) && reads_by_line(m, second, p);
    return fits ? second : NULL;
}

static void make_stream(pass_context *ctx, ir_module *m, ir_op *first, ir_op *second) {
    size_t count = 0;
    ir_value **inputs = TS_NEW_ARRAY(ctx->scratch, ir_value *, first->operand_count + second->operand_count);
    for (size_t i = 0; i < first->operand_count; i++)
        inputs[count++] = first->operands[i];
    for (size_t i = 0; i < second->operand_count; i++)
        if (second->operands[i] != first->results[0])
            inputs[count++] = second->operands[i];
    ir_builder b = pass_before(m, second);
    ir_op *stream = ir_build_kernel(&b, IR_KERNEL_STREAM, inputs, count);
    ir_block *body = stream->regions[0];
    ir_value_map *map = ir_value_map_make(ctx->scratch);
    for (size_t i = 0; i < count; i++)
        ir_value_map_set(map, inputs[i], body->parameters[i]);
    ir_builder inside = {.module = m, .block = body, .place = second->place};
    ir_clone_op(&inside, first, map);
    ir_op *copy = ir_clone_op(&inside, second, map);
    ir_build_yield(&inside, copy->results, copy->result_count);
    for (size_t i = 0; i < second->result_count; i++) {
        ir_value *old = second->results[i];
        ir_replace_uses(m, old, ir_op_add_result(m, stream, old->type, old->name));
    }
    ir_op_remove(second);
    ir_op_remove(first);
    ctx->changed = true;
    pass_count(ctx, "streams", 1);
}

static void stream_block(pass_context *ctx, ir_module *m, ir_block *block, int depth) {
    ir_op *next;
    for (ir_op *op = block->first; op && depth < 200; op = next) {
        next = op->next;
        for (size_t i = 0; op->opcode != IR_OP_KERNEL && i < op->region_count; i++)
            stream_block(ctx, m, op->regions[i], depth + 1);
        ir_op *second = op->opcode == IR_OP_KERNEL && op->kernel_kind == IR_KERNEL_CONTRACTION ? reader_of(m, op) : NULL;
        if (!second)
            continue;
        next = next == second ? second->next : next;
        make_stream(ctx, m, op, second);
    }
}

ts_status pass_stream_images(pass_context *ctx, ir_module *m) {
    if (ctx->target && ctx->target->is_gpu)
        return NULL;
    for (ir_function *f = m->functions; f; f = f->next)
        if (f->body)
            stream_block(ctx, m, f->body, 0);
    return NULL;
}

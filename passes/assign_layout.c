/* passes/assign_layout.c - images between kernels lie with their channels innermost.
 *
 *   %a = kernel(%x) { conv2d ... } : float32[1,64,56,56]
 *   %b = kernel(%a) { conv2d ... }                          =>  %a : float32[...] channels last
 *
 * Convolution, pooling and per-channel work run along channels in vectors; a kernel reads and writes
 * any layout, so nothing is converted: only the memory order of a value that lives between kernels
 * changes. Values that anything but a kernel sees, or that a kernel looks at through a view, stay
 * contiguous (a user may ask for their strides); a view that makes the channels the last dim, as layer
 * norms of images have it, then reads memory in order.
 *
 * Needs: fuse. Keeps: all but the layout in types. Cost: one walk. */
#include "ir/kernel_form.h"
#include "ir/resize_form.h"
#include "ir/strided_view.h"
#include "passes/pass_internal.h"

static bool is_image(const ir_type *t) {
    if (!ir_type_is_known_tensor(t) || t->rank < 3 || t->rank > 5)
        return false;
    for (int d = 2; d < t->rank; d++)
        if (t->dims[d] != 1)
            return true; /* otherwise both orders are the same memory */
    return false;
}

static bool is_over_images(ir_anchor a) {
    return a == IR_A_CONVOLUTION || a == IR_A_INTEGER_CONVOLUTION || a == IR_A_MAX_POOL ||
           a == IR_A_AVG_POOL;
}

/* [N, C, ...] as [N, ..., C]. */
static bool moves_channels_last(ir_module *m, const ir_op *op) {
    int from[IR_STRIDED_MAX_RANK], rank = op->results[0]->type->rank;
    if (ir_view_kind_of(op) != IR_VIEW_PERMUTE || !ir_view_permutation(m, op, from) || from[0] != 0)
        return false;
    for (int d = 1; d + 1 < rank; d++)
        if (from[d] != d + 1)
            return false;
    return from[rank - 1] == 1;
}

/* Whether the kernel reads the parameter by pointwise operators, reductions and windows alone, or with
 * its channels as the last dim. */
static bool reads_plainly(ir_module *m, const ir_value *parameter) {
    for (size_t i = 0; i < parameter->use_count; i++) {
        const ir_op *user = parameter->uses[i].op;
        ir_anchor a = ir_anchor_of(user);
        bool is_window = is_over_images(a);
        bool is_first = parameter->uses[i].operand == 0;
        if (is_window && is_first)
            continue;
        if (user->opcode == IR_OP_LIST && user->results[0]->use_count == 1 &&
            ir_is_concat(user->results[0]->uses[0].op) &&
            !ir_is_stack(user->results[0]->uses[0].op))
            continue;
        ir_resize resize;
        if (is_first && (ir_resize_of(m, user, &resize) || moves_channels_last(m, user)))
            continue;
        if (user->opcode != IR_OP_CORE || a != IR_A_NONE)
            return false;
        if (ir_pointwise_of(user) == IR_P_COUNT && ir_reduction_of(user) == IR_R_NONE)
            return false;
        /* Broadcast against a value of another rank, the dims would not line up. */
        if (user->results[0]->type->rank != parameter->type->rank &&
            ir_pointwise_of(user) != IR_P_COUNT)
            return false;
    }
    return true;
}

static bool only_kernels_read(ir_module *m, const ir_value *v) {
    for (size_t i = 0; i < v->use_count; i++) {
        const ir_op *user = v->uses[i].op;
        if (user->opcode != IR_OP_KERNEL ||
            !reads_plainly(m, user->regions[0]->parameters[v->uses[i].operand]))
            return false;
    }
    return v->use_count > 0;
}

static bool wants_channels_last(const ir_op *kernel) {
    for (const ir_op *op = kernel->regions[0]->first; op; op = op->next) {
        ir_anchor a = ir_anchor_of(op);
        if (is_over_images(a))
            return true;
    }
    for (size_t i = 0; i < kernel->operand_count; i++)
        if (kernel->operands[i]->type->kind == IR_TENSOR &&
            kernel->operands[i]->type->layout == IR_LAYOUT_CHANNELS_LAST)
            return true;
    return false;
}

/* Products of bytes copy pixels: as runs where channels are innermost, else byte by byte. */
static bool feeds_bytes(const ir_value *v) {
    for (size_t i = 0; i < v->use_count; i++) {
        const ir_value *p = v->uses[i].op->regions[0]->parameters[v->uses[i].operand];
        for (size_t j = 0; j < p->use_count; j++)
            if (ir_anchor_of(p->uses[j].op) == IR_A_INTEGER_CONVOLUTION)
                return true;
    }
    return false;
}

/* A result that is stored through views is not an image of the kernel's own. */
static bool is_stored_plainly(const ir_op *kernel, size_t result) {
    const ir_value *v = kernel->regions[0]->last->operands[result];
    return v->def && ir_view_kind_of(v->def) == IR_VIEW_NONE;
}

static void assign_block(pass_context *ctx, ir_module *m, ir_block *block, int depth) {
    for (ir_op *op = block->first; op && depth < 200; op = op->next) {
        if (op->opcode != IR_OP_KERNEL) {
            for (size_t i = 0; i < op->region_count; i++)
                assign_block(ctx, m, op->regions[i], depth + 1);
            continue;
        }
        bool wants = wants_channels_last(op);
        for (size_t r = 0; r < op->result_count; r++) {
            ir_value *v = op->results[r];
            if (!is_image(v->type) || !is_stored_plainly(op, r) || !only_kernels_read(m, v) ||
                !(wants || feeds_bytes(v)))
                continue;
            const ir_type *t = ir_type_tensor(m, v->type->dtype, v->type->rank, v->type->dims,
                                              IR_LAYOUT_CHANNELS_LAST);
            v->type = t;
            op->regions[0]->last->operands[r]->type = t;
            for (size_t i = 0; i < v->use_count; i++)
                v->uses[i].op->regions[0]->parameters[v->uses[i].operand]->type = t;
            ctx->changed = true;
            pass_count(ctx, "channels last", 1);
        }
    }
}

ts_status pass_assign_layout(pass_context *ctx, ir_module *m) {
    for (ir_function *f = m->functions; f; f = f->next)
        if (f->body)
            assign_block(ctx, m, f->body, 0);
    return NULL;
}

/* passes/check_window.c - windows that only a run can tell to fit their image.
 *
 *   %y = max_pool2d(%x, [3, 3], ...)        %x : float32[N,8,H,W]
 *     =>  if ge(H, 3) {} else { raise RuntimeError("... output size is too small ...") }     and W
 *         %y = max_pool2d(%x, [3, 3], ...)
 *
 * A size of the result would come out as 0 or less, and the operator's kernel would run over
 * nothing. An image has one element at least: windows that then fit are not checked, so most layers
 * of a network (3x3 with a padding of 1) cost nothing. */
#include "ir/kernel_form.h"
#include "passes/pass_internal.h"

/* Entry i of a list of one or `count` constant ints. */
static bool entry(ir_module *m, const ir_op *op, const char *name, size_t i, int64_t absent,
                  int64_t *out) {
    int64_t list[4];
    size_t count;
    const ir_value *v = ir_core_operand(m, op, name);
    *out = absent;
    if (!v || v->type->kind == IR_NONE)
        return true;
    if (!ir_const_int_list(v, list, 4, &count) || count > 4)
        return false;
    if (count > 0)
        *out = list[count == 1 ? 0 : i < count ? i : count - 1];
    return true;
}

static bool is_true(ir_module *m, const ir_op *op, const char *name) {
    int64_t n = 0;
    const ir_value *v = ir_core_operand(m, op, name);
    return v && ir_const_int(v, &n) && n != 0;
}

/* How large the image must be in spatial dim i; 1 or less: it always is, or that is not known. */
static int64_t least_size(ir_module *m, const ir_op *op, bool is_pool, size_t i) {
    int64_t kernel, stride, padding, dilation;
    if (!entry(m, op, "padding", i, 0, &padding) || !entry(m, op, "dilation", i, 1, &dilation))
        return 0;
    if (is_pool) {
        if (!entry(m, op, "kernel_size", i, 0, &kernel) || !entry(m, op, "stride", i, kernel, &stride))
            return 0;
    } else {
        const ir_type *w = ir_core_operand(m, op, "weight")->type;
        if (w->rank < 3 || !rt_dim_is_constant(w->dims[2 + i]))
            return 0;
        kernel = w->dims[2 + i];
    }
    int64_t least = dilation * (kernel - 1) + 1 - 2 * padding;
    return is_pool && is_true(m, op, "ceil_mode") ? least - (stride - 1) : least;
}

void pass_check_window(pass_context *ctx, ir_module *m, const ir_op *op, ir_op *place) {
    ir_anchor anchor = ir_anchor_of(op);
    bool is_pool = anchor == IR_A_MAX_POOL || anchor == IR_A_AVG_POOL;
    if (!is_pool && anchor != IR_A_CONVOLUTION && anchor != IR_A_INTEGER_CONVOLUTION)
        return;
    ts_str name = rt_op_name(op->core);
    if (ts_str_starts_with(name, "conv_transpose") || is_true(m, op, "transposed"))
        return; /* their sizes are checked where the result is made */
    const ir_type *x = op->operands[0]->type;
    const ir_value *w = is_pool ? NULL : ir_core_operand(m, op, "weight");
    if (!ir_type_is_known_tensor(x) || (!is_pool && (!w || !ir_type_is_known_tensor(w->type))))
        return;
    int spatial = is_pool ? name.data[name.length - 2] - '0' : w->type->rank - 2;
    ir_builder b = pass_before(m, place);
    b.place = op->place;
    for (int i = 0; i < spatial; i++) {
        rt_dim size = x->dims[x->rank - spatial + i];
        int64_t least = least_size(m, op, is_pool, (size_t)i);
        if (least <= 1 || rt_dim_is_constant(size))
            continue;
        ir_value *pair[2] = {ir_build_size(&b, size), ir_build_int(&b, least)};
        pass_build_check(&b, pass_build_core(&b, "ge.int", pair, 2)->results[0],
                         ts_arena_format(m->arena,
                                         "%s: dimension %d of the input needs %lld elements at least",
                                         is_pool ? "Calculated output size is too small"
                                                 : "Kernel size can't be greater than actual input size",
                                         x->rank - spatial + i, (long long)least),
                         NULL, 0);
        pass_count(ctx, "checks of windows", 1);
    }
}

/* passes/functionalise_rules.c - what a write becomes, and how a view is put back into its base. */
#include "passes/functionalise.h"

static bool is_op(const ir_op *op, const char *name) {
    return op->opcode == IR_OP_CORE && ts_str_is(rt_op_name(op->core), name);
}

static bool has_row(const char *name) { return rt_op_find(ts_str_of(name)) != OP_COUNT; }

/* Every size known, as a number or an expression, and the dtype. */
static bool is_known(const ir_type *t) {
    if (t->kind != IR_TENSOR || t->dtype == RT_DTYPE_UNKNOWN || t->rank < 0)
        return false;
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] == RT_DIM_UNKNOWN)
            return false;
    return true;
}

static bool has_symbols(const ir_type *t) {
    for (int i = 0; i < t->rank; i++)
        if (rt_dim_is_symbolic(t->dims[i]))
            return true;
    return false;
}

static bool same_sizes(const ir_type *a, const ir_type *b) {
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

/* Sizes that broadcast to `to` for certain; anything else raises at run time and stays. */
static bool broadcasts_to(const ir_type *from, const ir_type *to) {
    if (from->rank > to->rank)
        return false;
    for (int i = 1; i <= from->rank; i++) {
        rt_dim d = from->dims[from->rank - i];
        if (d != 1 && d != to->dims[to->rank - i])
            return false;
    }
    return true;
}

static ir_value *build_typed(ir_builder *b, const char *name, ir_value *const *given, size_t count,
                             const ir_type *type) {
    ir_op *op = pass_build_core(b, name, given, count);
    op->results[0]->type = type;
    return op->results[0];
}

/* In-place forms that keep dtype and sizes of what they write, and have a pure row of the same
 * arguments. */
static const char *const twins[] = {
    "index_put_", "masked_fill_", "masked_scatter_", "scatter_", "scatter_add_", "scatter_reduce_",
    "prim_setitem_", "index_add_", "index_copy_",  "index_fill_",     "index_reduce_", "put_"};

static rt_op twin_of(ir_module *m, rt_op core) {
    ts_str name = rt_op_name(core);
    size_t dot = 0;
    while (dot < name.length && name.data[dot] != '.')
        dot++;
    for (size_t i = 0; i < sizeof twins / sizeof twins[0]; i++) {
        if (!ts_str_is((ts_str){name.data, dot}, twins[i]))
            continue;
        char pure[64];
        if (name.length >= sizeof pure)
            return OP_COUNT;
        memcpy(pure, name.data, dot - 1);
        memcpy(pure + dot - 1, name.data + dot, name.length - dot);
        rt_op twin = rt_op_find((ts_str){pure, name.length - 1});
        if (twin == OP_COUNT)
            return OP_COUNT;
        const ir_schema *a = ir_schema_of(m, core), *b = ir_schema_of(m, twin);
        bool same = a->arg_count == b->arg_count && b->result_count == 1 &&
                    !b->result_aliases[0];
        for (size_t j = 0; same && j < a->arg_count; j++)
            same = a->args[j].type == b->args[j].type;
        return same ? twin : OP_COUNT;
    }
    return OP_COUNT;
}

static bool is_copy_of_number(const ir_op *op) {
    return is_op(op, "copy_.int") || is_op(op, "copy_.float") || is_op(op, "fill_.Scalar");
}

bool fn_write_is_supported(ir_module *m, const ir_op *write, const ir_function *f, bool dynamic) {
    if (write->opcode != IR_OP_CORE)
        return false;
    if (is_op(write, "zero_"))
        return has_row("zeros_like");
    if (is_copy_of_number(write))
        return has_row("full_like");
    if (is_op(write, "copy_") || is_op(write, "copy_.Tensor")) {
        const ir_type *to = write->operands[0]->type, *from = write->operands[1]->type;
        if (dynamic && (!is_known(to) || !is_known(from) || !broadcasts_to(from, to)))
            return from->kind == IR_TENSOR;
        if (!is_known(to) || !is_known(from) || !broadcasts_to(from, to) || !has_row("clone"))
            return false;
        if (from->dtype != to->dtype && !has_row("to.dtype"))
            return false;
        return same_sizes(from, to) || (has_row("expand") && (f->is_entry || !has_symbols(to)));
    }
    return twin_of(m, write->core) != OP_COUNT;
}

static ir_value *copied_value(ir_builder *b, ir_value *src, const ir_type *to, bool shared) {
    ir_module *m = b->module;
    const ir_type *from = src->type;
    if (from->dtype != to->dtype) {
        ir_value *operands[4] = {src, ir_build_int(b, to->dtype), ir_build_bool(b, false),
                                 ir_build_bool(b, true)};
        from = ir_type_tensor(m, to->dtype, from->rank, from->dims, IR_LAYOUT_ANY);
        src = build_typed(b, "to.dtype", operands, 4, from);
        shared = false;
    }
    if (!same_sizes(from, to)) {
        ir_value *sizes[RT_MAX_RANK];
        for (int i = 0; i < to->rank; i++)
            sizes[i] = ir_build_size(b, to->dims[i]);
        const ir_type *list = ir_type_list(m, ir_type_simple(m, IR_INT));
        ir_value *operands[2] = {
            src, ir_build_op(b, IR_OP_LIST, sizes, (size_t)to->rank, &list, 1)->results[0]};
        src = build_typed(b, "expand", operands, 2, to);
    }
    return shared ? build_typed(b, "clone", &src, 1, to) : src;
}

ir_value *fn_written_value(pass_context *ctx, ir_builder *b, const ir_op *write, ir_value *old,
                           bool src_is_shared) {
    const ir_type *type = old->type;
    if (is_op(write, "zero_"))
        return build_typed(b, "zeros_like", &old, 1, type);
    if (is_copy_of_number(write)) {
        ir_value *operands[2] = {old, write->operands[1]};
        return build_typed(b, "full_like", operands, 2, type);
    }
    if (is_op(write, "copy_") || is_op(write, "copy_.Tensor")) {
        const ir_type *to = write->operands[0]->type, *from = write->operands[1]->type;
        if (!is_known(to) || !is_known(from) || !broadcasts_to(from, to)) {
            ir_value *typed[2] = {write->operands[1], old};
            typed[0] = build_typed(b, "type_as", typed, 2, ir_type_any_tensor(b->module));
            ir_value *wide = build_typed(b, "expand_as", typed, 2, type);
            return build_typed(b, "clone", &wide, 1, type);
        }
        return copied_value(b, write->operands[1], to, src_is_shared);
    }
    ir_value **operands = TS_NEW_ARRAY(ctx->scratch, ir_value *, write->operand_count);
    memcpy(operands, write->operands, write->operand_count * sizeof *operands);
    operands[0] = old;
    ir_op *op = ir_build_core(b, twin_of(b->module, write->core), operands, write->operand_count);
    op->results[0]->type = type;
    return op->results[0];
}

/* ---- views ---- */

/* View rows and the rows that put contents back. Same arguments behind the contents. */
static const struct {
    const char *view, *back;
} scatters[] = {{"select.int", "select_scatter"},
                {"slice.Tensor", "slice_scatter"},
                {"diagonal", "diagonal_scatter"}};

static const struct {
    const char *view, *back; /* back takes the view's own arguments */
} inverses[] = {{"transpose.int", "transpose.int"}, {"t", "t"},
                {"unsqueeze", "squeeze.dim"},       {"swapaxes", "swapaxes"},
                {"swapdims", "swapdims"}};

static const char *scatter_of(const ir_op *view) {
    for (size_t i = 0; i < sizeof scatters / sizeof scatters[0]; i++)
        if (is_op(view, scatters[i].view) && has_row(scatters[i].back))
            return scatters[i].back;
    return NULL;
}

static const char *inverse_of(const ir_op *view) {
    for (size_t i = 0; i < sizeof inverses / sizeof inverses[0]; i++)
        if (is_op(view, inverses[i].view) && has_row(inverses[i].back))
            return inverses[i].back;
    return NULL;
}

static bool is_reshape(const ir_op *view) {
    return is_op(view, "view") || is_op(view, "squeeze.dim") || is_op(view, "squeeze") ||
           is_op(view, "view_as");
}

bool fn_view_is_invertible(ir_module *m, const ir_op *view, bool dynamic) {
    (void)m;
    if (scatter_of(view) || inverse_of(view) || is_op(view, "detach") || is_op(view, "alias"))
        return true;
    const ir_type *base = view->operands[0]->type;
    return is_reshape(view) && (dynamic || is_known(base)) && has_row("reshape") &&
           (dynamic || view->block->function->is_entry || !has_symbols(base));
}

ir_value *fn_put_back(pass_context *ctx, ir_builder *b, const ir_op *view, ir_value *base,
                      ir_value *contents) {
    ir_module *m = b->module;
    const char *name = scatter_of(view);
    if (name) {
        ir_value **operands = TS_NEW_ARRAY(ctx->scratch, ir_value *, view->operand_count + 1);
        operands[0] = base;
        operands[1] = contents;
        for (size_t i = 1; i < view->operand_count; i++)
            operands[i + 1] = view->operands[i];
        return build_typed(b, name, operands, view->operand_count + 1, base->type);
    }
    name = inverse_of(view);
    if (name) {
        ir_value **operands = TS_NEW_ARRAY(ctx->scratch, ir_value *, view->operand_count);
        memcpy(operands, view->operands, view->operand_count * sizeof *operands);
        operands[0] = contents;
        return build_typed(b, name, operands, view->operand_count, base->type);
    }
    if (!is_reshape(view))
        return contents;
    if (!is_known(base->type)) {
        ir_value *pair[2] = {contents, base};
        return build_typed(b, "reshape_as", pair, 2, base->type);
    }
    ir_value *sizes[RT_MAX_RANK];
    for (int i = 0; i < base->type->rank; i++)
        sizes[i] = ir_build_size(b, base->type->dims[i]);
    const ir_type *list = ir_type_list(m, ir_type_simple(m, IR_INT));
    ir_value *operands[2] = {
        contents,
        ir_build_op(b, IR_OP_LIST, sizes, (size_t)base->type->rank, &list, 1)->results[0]};
    return build_typed(b, "reshape", operands, 2, base->type);
}

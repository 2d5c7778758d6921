/* passes/differentiate.c - autograd_grad becomes the operators that compute the gradients.
 *
 *   %y = sin(%x)                                   %y = sin(%x)
 *   %s = sum(%y)                              =>   %g = mul.Tensor(expand_as(ones_like(%s), %y), cos(%x))
 *   %l = autograd_grad([%s], [%x])                 %l = list(%g)
 *
 * Reverse mode over the operators between the inputs and the outputs; an operator's own formula adds
 * to the adjoints of its operands (differentiate_rules.c). What is made are operators again, so a
 * gradient of a gradient is the same once more. detach, integers and comparisons end the way.
 *
 * The way must not lead through branches or loops that are left at run time (short loops are
 * unrolled by now), nor through memory that is written before the gradient is asked for: those are
 * errors with the place of the operator. Needs: inline, unroll_loops, infer_types, functionalise.
 * Source: Griewank and Walther, Evaluating Derivatives, section 3.2; formulas as in PyTorch's
 * derivatives.yaml. */
#include "passes/differentiate.h"

typedef struct differ {
    pass_context *ctx;
    ir_module *m;
    pass_alias *alias;
    ir_op *at; /* the operator that is replaced */
    ir_value **inputs;
    size_t input_count;
    signed char *needs; /* by operator number: 0 unknown, 1 yes, -1 no */
    ir_op **slice;      /* needed operators, by number */
    size_t slice_count, slice_capacity, op_count;
    ir_value_map *adjoints;
} differ;

static bool is_op(const ir_op *op, const char *name) {
    return op && op->opcode == IR_OP_CORE && ts_str_is(rt_op_name(op->core), name);
}

/* Two reads of one attribute of a constant object are one variable. */
static bool same_variable(const ir_value *a, const ir_value *b) {
    rt_value x, y;
    if (a == b)
        return true;
    return a->def && b->def && a->def->opcode == IR_OP_GET_ATTR &&
           b->def->opcode == IR_OP_GET_ATTR && ts_str_equal(a->def->name, b->def->name) &&
           ir_const_value(a->def->operands[0], &x) && ir_const_value(b->def->operands[0], &y) &&
           x.as.pointer == y.as.pointer;
}

static bool is_input(const differ *d, const ir_value *v) {
    for (size_t i = 0; i < d->input_count; i++)
        if (same_variable(v, d->inputs[i]))
            return true;
    return false;
}

static bool carries_gradient(const ir_value *v) {
    if (v->type->kind == IR_OPTIONAL)
        return v->type->args[0]->kind == IR_TENSOR;
    return v->type->kind == IR_TENSOR && (v->type->dtype == RT_DTYPE_UNKNOWN ||
                                          rt_dtype_is_float(v->type->dtype) ||
                                          rt_dtype_is_complex(v->type->dtype));
}

static bool needs(differ *d, const ir_value *v, int depth);

/* Constant or piecewise constant in what they read. */
static bool has_no_slope(const ir_op *op) {
    static const char *const names[] = {"detach", "ones_like", "zeros_like", "full_like", "sign",
                                        "floor",  "ceil",      "round",      "trunc"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (is_op(op, names[i]))
            return true;
    return op->opcode == IR_OP_CONST;
}

static bool op_needs(differ *d, ir_op *op, int depth) {
    if (d->needs[op->number])
        return d->needs[op->number] > 0;
    if (depth > 4000 || has_no_slope(op))
        return false;
    bool any = false;
    for (size_t i = 0; i < op->operand_count; i++)
        any |= needs(d, op->operands[i], depth + 1);
    /* What a branch or loop yields may depend on them as well: found out by its own operators. */
    for (size_t r = 0; r < op->region_count && !any; r++)
        for (ir_op *inner = op->regions[r]->first; inner && !any; inner = inner->next)
            for (size_t i = 0; i < inner->operand_count && !any; i++)
                any = needs(d, inner->operands[i], depth + 1);
    d->needs[op->number] = any ? 1 : -1;
    if (any)
        TS_APPEND(d->ctx->scratch, d->slice, d->slice_count, d->slice_capacity, op);
    return any;
}

static bool needs(differ *d, const ir_value *v, int depth) {
    if (is_input(d, v))
        return true;
    /* Lists that are written out, and what chunk and its kind give. */
    bool list = v->type->kind == IR_LIST && v->def &&
                (v->def->opcode == IR_OP_LIST || v->type->args[0]->kind == IR_TENSOR);
    if (!v->def || (!carries_gradient(v) && !list))
        return false;
    return op_needs(d, v->def, depth);
}

/* Nothing writes v's memory between its reader and the gradient. */
static bool is_unchanged(differ *d, const ir_op *reader, const ir_value *v) {
    if (!ir_type_is_mutable(v->type) || pass_is_stable(d->alias, v) ||
        v->number == UINT32_MAX)
        return true;
    if (reader->block != d->at->block)
        return false;
    for (const ir_op *op = reader->next; op && op != d->at; op = op->next)
        if (!is_op(op, "requires_grad_") && pass_op_writes(d->alias, op, v))
            return false;
    return true;
}

void differ_add(differ_rule *r, ir_value *operand, ir_value *gradient) {
    if (!gradient)
        return;
    ir_value_map *map = r->adjoints;
    ir_value *before = ir_value_map_get(map, operand);
    if (before) {
        ir_value *operands[3] = {before, gradient, ir_build_int(r->b, 1)};
        gradient = ir_build_core1(r->b, rt_op_find(TS_STR("add.Tensor")), operands, 3);
        gradient->type = operand->type->kind == IR_TENSOR ? operand->type : gradient->type;
        gradient->number = UINT32_MAX;
    }
    ir_value_map_set(map, operand, gradient);
}

static int by_number(const ir_op *a, const ir_op *b) { return a->number < b->number ? 1 : -1; }

/* Later operators first. */
static void sort_slice(differ *d) {
    for (size_t i = 1; i < d->slice_count; i++) {
        ir_op *op = d->slice[i];
        size_t j = i;
        for (; j > 0 && by_number(d->slice[j - 1], op) > 0; j--)
            d->slice[j] = d->slice[j - 1];
        d->slice[j] = op;
    }
}

static ts_status unsupported(const ir_op *op) {
    ts_str name = op->opcode == IR_OP_CORE ? rt_op_name(op->core)
                                           : ts_str_of(ir_opcode_name(op->opcode));
    return ts_error_at(TS_ERR_UNSUPPORTED, op->place,
                       "the derivative of %.*s is not supported yet", TS_STR_ARG(name));
}

static ts_status reverse(differ *d, ir_builder *b) {
    for (size_t i = 0; i < d->slice_count; i++) {
        ir_op *op = d->slice[i];
        ir_value *g = op->result_count ? ir_value_map_get(d->adjoints, op->results[0]) : NULL;
        for (size_t j = 1; j < op->result_count; j++)
            if (ir_value_map_get(d->adjoints, op->results[j])) {
                if (op->opcode != IR_OP_LIST_UNPACK)
                    return unsupported(op);
                g = ir_value_map_get(d->adjoints, op->results[j]);
            }
        if (!g)
            continue;
        for (size_t j = 0; j < op->operand_count; j++)
            if (!is_unchanged(d, op, op->operands[j]))
                return unsupported(op);
        bool *wanted = TS_NEW_ARRAY(d->ctx->scratch, bool, op->operand_count);
        for (size_t j = 0; j < op->operand_count; j++)
            wanted[j] = needs(d, op->operands[j], 0);
        differ_rule rule = {.ctx = d->ctx, .m = d->m, .b = b, .op = op, .g = g,
                            .wanted = wanted, .adjoints = d->adjoints};
        bool done = false;
        TS_TRY(differ_apply(&rule, &done));
        if (!done)
            return unsupported(op);
    }
    return NULL;
}

static bool list_of(const ir_value *v, ir_value *const **out, size_t *count) {
    if (!v->def || v->def->opcode != IR_OP_LIST)
        return false;
    *out = v->def->operands;
    *count = v->def->operand_count;
    return true;
}

static ts_status seed(differ *d, ir_builder *b, ir_value *const *outputs, size_t count,
                      const ir_value *seeds) {
    ir_value *const *given = NULL;
    size_t given_count = 0;
    if (seeds->type->kind != IR_NONE && (!list_of(seeds, &given, &given_count) ||
                                         given_count != count))
        return ts_error_at(TS_ERR_UNSUPPORTED, d->at->place,
                           "grad_outputs other than a list of as many tensors as outputs are not "
                           "supported yet");
    for (size_t i = 0; i < count; i++) {
        differ_rule rule = {.ctx = d->ctx, .m = d->m, .b = b, .adjoints = d->adjoints};
        ir_value *g = given && given[i]->type->kind != IR_NONE
                          ? given[i]
                          : differ_call(&rule, "ones_like", outputs[i], NULL, NULL);
        if (!given || given[i]->type->kind == IR_NONE)
            g->type = outputs[i]->type;
        if (g->type->kind == IR_OPTIONAL) {
            const ir_type *t = g->type->args[0];
            g = ir_build_op(b, IR_OP_CAST, &g, 1, &t, 1)->results[0];
            g->number = UINT32_MAX;
        }
        differ_add(&rule, outputs[i], g);
    }
    return NULL;
}

/* What the outputs are made of, whether or not it carries gradients. */
static void reach(differ *d, const ir_value *v, bool *reached, int depth) {
    if (!v->def || depth > 4000 || reached[v->def->number])
        return;
    reached[v->def->number] = true;
    for (size_t i = 0; i < v->def->operand_count; i++)
        reach(d, v->def->operands[i], reached, depth + 1);
}

static bool is_read(differ *d, const pass_op_list *ops, const bool *reached, const ir_value *v) {
    for (size_t i = 0; i < ops->count; i++)
        for (size_t j = 0; reached[ops->items[i]->number] && j < ops->items[i]->operand_count; j++)
            if (pass_may_alias(d->alias, ops->items[i]->operands[j], v))
                return true;
    return false;
}

/* A gradient does not follow what is written into memory of the function's own and read from there:
 * leaving it out would be wrong. */
static ts_status check_writes(differ *d, ir_value *const *outputs, size_t output_count,
                              size_t op_count) {
    bool *reached = TS_NEW_ARRAY(d->ctx->scratch, bool, op_count + 1);
    for (size_t i = 0; i < output_count; i++)
        reach(d, outputs[i], reached, 0);
    pass_op_list ops = pass_collect(d->ctx, d->at->block->function);
    for (size_t i = 0; i < ops.count && ops.items[i] != d->at; i++) {
        const ir_op *op = ops.items[i];
        if (op->opcode != IR_OP_CORE || op->operand_count < 2 || is_op(op, "requires_grad_") ||
            !ir_op_writes(op, 0) || !ir_type_is_mutable(op->operands[0]->type) ||
            pass_is_outside(d->alias, op->operands[0]))
            continue;
        for (size_t j = 1; j < op->operand_count; j++)
            if (needs(d, op->operands[j], 0) && is_read(d, &ops, reached, op->operands[0]))
                return unsupported(op);
    }
    return NULL;
}

static ts_status differentiate(differ *d) {
    ir_module *m = d->m;
    ir_op *op = d->at;
    ir_value *const *outputs, *const *inputs;
    size_t output_count;
    if (!list_of(op->operands[0], &outputs, &output_count) ||
        !list_of(op->operands[1], &inputs, &d->input_count))
        return ts_error_at(TS_ERR_UNSUPPORTED, op->place,
                           "autograd.grad of lists that are not written out is not supported yet");
    d->inputs = TS_NEW_ARRAY(d->ctx->scratch, ir_value *, d->input_count);
    memcpy(d->inputs, inputs, d->input_count * sizeof *inputs);
    d->adjoints = ir_value_map_make(d->ctx->scratch);
    ir_builder b = pass_before(m, op);
    for (size_t i = 0; i < output_count; i++)
        (void)needs(d, outputs[i], 0);
    TS_TRY(check_writes(d, outputs, output_count, d->op_count));
    sort_slice(d);
    TS_TRY(seed(d, &b, outputs, output_count, op->operands[2]));
    TS_TRY(reverse(d, &b));
    ir_value **results = TS_NEW_ARRAY(d->ctx->scratch, ir_value *, d->input_count);
    for (size_t i = 0; i < d->input_count; i++) {
        differ_rule rule = {.ctx = d->ctx, .m = m, .b = &b, .adjoints = d->adjoints};
        /* Every read of the same attribute adds its part. */
        pass_op_list ops = pass_collect(d->ctx, op->block->function);
        ir_value *sum = ir_value_map_get(d->adjoints, d->inputs[i]);
        for (size_t j = 0; j < ops.count; j++) {
            if (ops.items[j]->opcode != IR_OP_GET_ATTR)
                continue;
            ir_value *other = ops.items[j]->results[0];
            ir_value *part = ir_value_map_get(d->adjoints, other);
            if (!part || other == d->inputs[i] || !same_variable(other, d->inputs[i]))
                continue;
            differ_add(&rule, d->inputs[i], part);
            ir_value_map_set(d->adjoints, other, NULL);
            sum = ir_value_map_get(d->adjoints, d->inputs[i]);
        }
        results[i] = sum ? sum : ir_build_none(&b);
    }
    const ir_type *t = op->results[0]->type;
    ir_value *list = ir_build_op(&b, IR_OP_LIST, results, d->input_count, &t, 1)->results[0];
    ir_replace_uses(m, op->results[0], list);
    ir_op_remove(op);
    /* A gradient of this gradient looks for operators, not for an item of a list. */
    for (size_t i = list->use_count; i-- > 0;) {
        ir_op *user = list->uses[i].op;
        int64_t at;
        if (!is_op(user, "__getitem__.t") || !ir_const_int(user->operands[1], &at))
            continue;
        at = at < 0 ? at + (int64_t)d->input_count : at;
        if (at < 0 || at >= (int64_t)d->input_count)
            continue;
        pass_replace(m, user->results[0], results[at]);
        ir_op_remove(user);
    }
    pass_count(d->ctx, "gradients", 1);
    return NULL;
}

static size_t number_ops(pass_context *ctx, const ir_function *f) {
    pass_op_list ops = pass_collect(ctx, f);
    for (size_t i = 0; i < ops.count; i++)
        ops.items[i]->number = (uint32_t)i;
    return ops.count;
}

static ir_op *first_gradient(pass_context *ctx, const ir_function *f) {
    pass_op_list ops = pass_collect(ctx, f);
    for (size_t i = 0; i < ops.count; i++)
        if (is_op(ops.items[i], "autograd_grad"))
            return ops.items[i];
    return NULL;
}

/* y.backward(), then x.grad: the latter is the gradient of y. One backward a function: gradients of
 * several would add up in memory that the IR does not have. */
static ts_status lower_backward(pass_context *ctx, ir_module *m, const ir_function *f) {
    pass_op_list ops = pass_collect(ctx, f);
    ir_op *backward = NULL;
    for (size_t i = 0; i < ops.count; i++) {
        if (!is_op(ops.items[i], "backward"))
            continue;
        if (backward)
            return unsupported(ops.items[i]);
        backward = ops.items[i];
    }
    if (!backward)
        return NULL;
    const ir_type *tensors = ir_type_list(m, ir_type_any_tensor(m));
    const ir_type *optionals = ir_type_list(m, ir_type_optional(m, ir_type_any_tensor(m)));
    bool after = false;
    for (size_t i = 0; i < ops.count; i++) {
        ir_op *op = ops.items[i];
        after |= op == backward;
        if (!is_op(op, "prim_grad"))
            continue;
        if (!after || op->block != backward->block)
            return unsupported(op);
        ir_builder b = pass_before(m, op);
        ir_value *seeds = backward->operands[1];
        if (seeds->type->kind != IR_NONE)
            seeds = ir_build_op(&b, IR_OP_LIST, &seeds, 1, &optionals, 1)->results[0];
        ir_value *operands[6] = {
            ir_build_op(&b, IR_OP_LIST, &backward->operands[0], 1, &tensors, 1)->results[0],
            ir_build_op(&b, IR_OP_LIST, &op->operands[0], 1, &tensors, 1)->results[0],
            seeds, ir_build_none(&b), ir_build_bool(&b, false), ir_build_bool(&b, true)};
        ir_value *list =
            ir_build_core1(&b, rt_op_find(TS_STR("autograd_grad")), operands, 6);
        ir_value *pair[2] = {list, ir_build_int(&b, 0)};
        ir_value *item = ir_build_core1(&b, rt_op_find(TS_STR("__getitem__.t")), pair, 2);
        const ir_type *t = op->results[0]->type;
        ir_value *made = ir_build_op(&b, IR_OP_CAST, &item, 1, &t, 1)->results[0];
        ir_replace_uses(m, op->results[0], made);
        ir_op_remove(op);
    }
    ir_op_remove(backward);
    pass_count(ctx, "backwards", 1);
    return NULL;
}

/* Nothing asks any more whether a tensor wants gradients. */
static void drop_marks(pass_context *ctx, ir_module *m, const ir_function *f) {
    pass_op_list ops = pass_collect(ctx, f);
    for (size_t i = 0; i < ops.count; i++)
        if (is_op(ops.items[i], "prim_requires_grad"))
            return;
    for (size_t i = 0; i < ops.count; i++)
        if (is_op(ops.items[i], "requires_grad_")) {
            pass_replace(m, ops.items[i]->results[0], ops.items[i]->operands[0]);
            ir_op_remove(ops.items[i]);
            pass_count(ctx, "marks", 1);
        }
}

ts_status pass_differentiate(pass_context *ctx, ir_module *m) {
    for (ir_function *f = m->functions; f; f = f->next) {
        ir_op *op;
        TS_TRY(lower_backward(ctx, m, f));
        for (bool first = true; (op = first_gradient(ctx, f)) != NULL; first = false) {
            differ d = {.ctx = ctx, .m = m, .at = op, .alias = pass_alias_make(ctx, m, f)};
            d.op_count = number_ops(ctx, f);
            d.needs = TS_NEW_ARRAY(ctx->scratch, signed char, d.op_count);
            ts_status status = differentiate(&d);
            if (status && (first || ts_status_code(status) != TS_ERR_UNSUPPORTED))
                return status;
            if (status) { /* once folding has seen that the gradients before are there, perhaps */
                ts_status_release(status);
                break;
            }
        }
        drop_marks(ctx, m, f);
    }
    return NULL;
}

/* passes/differentiate.c - autograd_grad becomes the operators that compute the gradients.
 *
 *   %y = sin(%x)                                   %y = sin(%x)
 *   %s = sum(%y)                              =>   %g = mul.Tensor(expand_as(ones_like(%s), %y), cos(%x))
 *   %l = autograd_grad([%s], [%x])                 %l = list(%g)
 *
 * Reverse mode over the operators between the inputs and the outputs, branches and loops included
 * (differentiate_regions.c); an operator's own formula adds to the adjoints of its operands
 * (differentiate_rules.c, and the library's derivatives.py by the rows of derivatives.def). What is
 * made are operators again, so a gradient of a gradient is the same once more.
 *
 * The way must not lead through calls that stay calls, nor through memory that is written before the
 * gradient is asked for: those are errors with the place of the operator. Needs: inline,
 * unroll_loops, infer_types, functionalise. Source: Griewank and Walther, Evaluating Derivatives,
 * section 3.2. */
#include "passes/differentiate.h"

static bool list_of(const ir_value *v, ir_value *const **out, size_t *count) {
    if (!v->def || v->def->opcode != IR_OP_LIST)
        return false;
    *out = v->def->operands;
    *count = v->def->operand_count;
    return true;
}

/* What an output starts from: ones, where it is one number. */
static ts_status first_gradient_of(differ_rule *r, ir_value *output, ir_value **out) {
    if (output->type->kind == IR_TENSOR && output->type->rank == 0) {
        *out = differ_call(r, "ones_like", output, NULL, NULL);
        (*out)->type = output->type;
        return NULL;
    }
    TS_TRY(differ_call_library(r, "_first_gradient", &output, 1, out));
    *out = differ_cast(r, *out, output->type);
    return NULL;
}

static ts_status seed(differ *d, ir_builder *b, ir_value_map *adjoints, ir_value *const *outputs,
                      size_t count, const ir_value *seeds) {
    ir_value *const *given = NULL;
    size_t given_count = 0;
    if (seeds->type->kind != IR_NONE && (!list_of(seeds, &given, &given_count) ||
                                         given_count != count))
        return ts_error_at(TS_ERR_UNSUPPORTED, d->at->place,
                           "grad_outputs other than a list of as many tensors as outputs are not "
                           "supported yet");
    for (size_t i = 0; i < count; i++) {
        differ_rule rule = {.d = d, .ctx = d->ctx, .m = d->m, .b = b, .adjoints = adjoints};
        ir_value *g = given ? given[i] : NULL;
        if (!g || g->type->kind == IR_NONE)
            TS_TRY(first_gradient_of(&rule, outputs[i], &g));
        if (g->type->kind == IR_OPTIONAL)
            g = differ_cast(&rule, g, g->type->args[0]);
        differ_add(&rule, outputs[i], g);
    }
    return NULL;
}

/* From the gradient's own block outwards. A round of a loop that is still running cannot be left. */
static ts_status reverse(differ *d, ir_op *start, ir_builder *b, ir_value_map *adjoints) {
    ir_block *block = d->at->block;
    for (ir_op *from = start;;) {
        if (from)
            TS_TRY(differ_reverse_block(d, block, from, b, adjoints));
        if (!block->parent)
            return NULL;
        for (size_t i = 0; i < block->parameter_count; i++)
            if (differ_depends(d, block->parameters[i]) &&
                ir_value_map_get(adjoints, block->parameters[i]))
                return ts_error_at(TS_ERR_UNSUPPORTED, d->at->place,
                                   "a gradient through the rounds of a loop that has not ended is "
                                   "not supported yet");
        from = block->parent->previous;
        block = block->parent->block;
    }
}

/* Every read of the same variable adds its part: of the attribute, or of a list that holds it. */
static void add_other_reads(differ *d, differ_rule *r, ir_value *input) {
    const void *tensor = differ_variable(d, input);
    for (size_t j = 0; j < d->ops.count; j++) {
        rt_value list;
        if (!d->ops.items[j]->result_count)
            continue;
        ir_value *other = d->ops.items[j]->results[0];
        ir_value *part = ir_value_map_get(r->adjoints, other);
        if (part && other != input && differ_same_variable(d, other, input)) {
            differ_add(r, input, part);
            ir_value_map_set(r->adjoints, other, NULL);
        }
        part = ir_value_map_get(d->list_adjoints, other);
        for (size_t i = 0; tensor && part && differ_known_list(d, other, &list) && i < list.as.list->count; i++)
            if (list.as.list->items[i].tag == RT_TAG_TENSOR && list.as.list->items[i].as.pointer == tensor) {
                ir_value *g = differ_call(r, "__getitem__.t", part, ir_build_int(r->b, (int64_t)i), NULL);
                differ_add(r, input, differ_cast(r, g, input->type));
            }
    }
}

/* A read of what nobody sets, made again where b is; NULL where it is made of something else. */
static ir_value *repeat_read(differ *d, ir_builder *b, ir_value *v) {
    ir_op *op = v->def;
    if (!op || (op->opcode != IR_OP_CONST && op->opcode != IR_OP_GET_ATTR &&
                !differ_is_op(op, "__getitem__.t")))
        return NULL;
    ir_value_map *map = ir_value_map_make(d->ctx->scratch);
    for (size_t i = 0; i < op->operand_count; i++) {
        ir_value *operand = repeat_read(d, b, op->operands[i]);
        if (!operand)
            return NULL;
        ir_value_map_set(map, op->operands[i], operand);
    }
    return ir_clone_op(b, op, map)->results[0];
}

/* A gradient that a branch or a loop gives to its own read of an input ends there: reads stand
 * before everything, so that all add to the same value. */
static bool hoist_reads(differ *d) {
    ir_value *const *inputs;
    ir_block *body = d->at->block->function->body;
    size_t count;
    bool any = false;
    if (!list_of(d->at->operands[1], &inputs, &count))
        return false;
    for (size_t i = 0; i < count; i++) {
        const void *tensor = differ_variable(d, inputs[i]);
        for (size_t k = 0; tensor && k < d->ops.count; k++) {
            ir_op *op = d->ops.items[k];
            if (op->block == body || op->result_count != 1 || !op->results[0]->use_count ||
                differ_variable(d, op->results[0]) != tensor)
                continue;
            ir_builder b = pass_before(d->m, body->first);
            ir_value *read = repeat_read(d, &b, op->results[0]);
            if (read)
                ir_replace_uses(d->m, op->results[0], read);
            any |= read != NULL;
        }
    }
    return any;
}

/* An input that the outputs are not made of: None where the program allows it. */
static ts_status unused_input(differ *d, differ_rule *r, ir_value **out) {
    bool allowed = false;
    ir_value *unused;
    if (!ir_const_bool(d->at->operands[5], &allowed) || !allowed)
        TS_TRY(differ_call_library(r, "_unused_input", &d->at->operands[5], 1, &unused));
    *out = ir_build_none(r->b);
    return NULL;
}

static ts_status differentiate(differ *d, bool *out_again) {
    ir_module *m = d->m;
    ir_op *op = d->at;
    ir_value *const *outputs, *const *inputs;
    size_t output_count;
    if (!list_of(op->operands[0], &outputs, &output_count) ||
        !list_of(op->operands[1], &inputs, &d->input_count))
        return ts_error_at(TS_ERR_UNSUPPORTED, op->place,
                           "autograd.grad of lists that are not written out is not supported yet");
    d->inputs = TS_NEW_ARRAY(d->ctx->scratch, ir_value *, d->input_count);
    for (size_t i = 0; i < d->input_count; i++) /* none: there is no array either */
        d->inputs[i] = inputs[i];
    d->list_adjoints = ir_value_map_make(d->ctx->scratch);
    ir_value_map *adjoints = ir_value_map_make(d->ctx->scratch);
    ir_builder b = pass_before(m, op);
    ir_op *start = op->previous;
    differ_find_dependents(d);
    differ_find_complex(d);
    TS_TRY(differ_check_writes(d, outputs, output_count));
    TS_TRY(differ_open(d, out_again));
    if (*out_again)
        return NULL;
    TS_TRY(seed(d, &b, adjoints, outputs, output_count, op->operands[2]));
    TS_TRY(reverse(d, start, &b, adjoints));
    ir_value **results = TS_NEW_ARRAY(d->ctx->scratch, ir_value *, d->input_count);
    for (size_t i = 0; i < d->input_count; i++) {
        differ_rule rule = {.d = d, .ctx = d->ctx, .m = m, .b = &b, .adjoints = adjoints};
        add_other_reads(d, &rule, d->inputs[i]);
        results[i] = ir_value_map_get(adjoints, d->inputs[i]);
        /* A cast of its own: what sums to the gradient may have no sizes when types are found again. */
        const ir_type *item = ir_type_without_none(m, op->results[0]->type->args[0]);
        if (results[i]) {
            ir_op *cast = ir_build_op(&b, IR_OP_CAST, &results[i], 1, &item, 1);
            cast->type = item;
            results[i] = cast->results[0];
        } else {
            TS_TRY(unused_input(d, &rule, &results[i]));
        }
    }
    const ir_type *t = op->results[0]->type;
    ir_value *list = ir_build_op(&b, IR_OP_LIST, results, d->input_count, &t, 1)->results[0];
    ir_replace_uses(m, op->results[0], list);
    ir_op_remove(op);
    /* A gradient of this gradient looks for operators, not for an item of a list. */
    for (size_t i = list->use_count; i-- > 0;) {
        ir_op *user = list->uses[i].op;
        int64_t at;
        if (!differ_is_op(user, "__getitem__.t") || !ir_const_int(user->operands[1], &at))
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

static ir_op *first_gradient(pass_context *ctx, const ir_function *f) {
    pass_op_list ops = pass_collect(ctx, f);
    for (size_t i = 0; i < ops.count; i++)
        if (differ_is_op(ops.items[i], "autograd_grad"))
            return ops.items[i];
    return NULL;
}

/* Nothing asks any more whether a tensor wants gradients. */
static void drop_marks(pass_context *ctx, ir_module *m, const ir_function *f) {
    pass_op_list ops = pass_collect(ctx, f);
    for (size_t i = 0; i < ops.count; i++)
        if (differ_is_op(ops.items[i], "prim_requires_grad"))
            return;
    for (size_t i = 0; i < ops.count; i++)
        if (differ_is_op(ops.items[i], "requires_grad_")) {
            pass_replace(m, ops.items[i]->results[0], ops.items[i]->operands[0]);
            ir_op_remove(ops.items[i]);
            pass_count(ctx, "marks", 1);
        }
}

/* What a gradient that could not be finished has built. */
static void remove_between(const ir_op *start, ir_op *end) {
    while (end->previous != start)
        ir_op_remove(end->previous);
}

ts_status pass_differentiate(pass_context *ctx, ir_module *m) {
    for (ir_function *f = m->functions; f; f = f->next) {
        ir_op *op;
        TS_TRY(differ_lower_backward(ctx, m, f));
        for (bool first = true; (op = first_gradient(ctx, f)) != NULL; first = false) {
            differ d = {.ctx = ctx, .m = m, .at = op, .alias = pass_alias_make(ctx, m, f)};
            d.ops = pass_collect(ctx, f);
            differ_number(&d.ops);
            if (hoist_reads(&d)) {
                d.alias = pass_alias_make(ctx, m, f);
                d.ops = pass_collect(ctx, f);
                differ_number(&d.ops);
            }
            ir_op *start = op->previous;
            bool again = false; /* once what was opened is inlined and has types */
            ts_status status = differentiate(&d, &again);
            if (status && (first || ts_status_code(status) != TS_ERR_UNSUPPORTED))
                return status;
            if (status) { /* once what the gradients before called is inlined, perhaps */
                ts_status_release(status);
                remove_between(start, op);
                break;
            }
            if (again)
                break;
        }
        drop_marks(ctx, m, f);
    }
    return NULL;
}

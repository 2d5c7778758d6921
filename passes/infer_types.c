/* passes/infer_types.c - finds dtypes, ranks and sizes, known or symbolic, of every value.
 *
 * One walk forward: each operator's rule (rt_infer_*) turns facts about its operands into facts
 * about its results. Branches join; a loop is walked until the types of what it carries stand
 * still, starting from the initial values (at most four times, then their facts are forgotten).
 * An int that is known is replaced by a constant, one that is a size by `dim`.
 *
 * Lists that are changed, and tensors whose sizes are changed in place, keep no facts. A rule that
 * says "this must fail" leaves the operator as it is: run time reports it. */
#include "passes/alias.h"

enum { LOOP_ROUNDS = 4 };

typedef struct inference {
    pass_context *ctx;
    ir_module *m;
    pass_alias *alias;
    rt_fact *facts; /* by value number; kind UNKNOWN with has[] false: ask the type */
    bool *has;
    size_t value_count;
} inference;

static rt_fact fact_of(inference *in, const ir_value *v) {
    if (v->number < in->value_count && in->has[v->number])
        return in->facts[v->number];
    rt_fact f = ir_fact_of_value(in->m, in->ctx->scratch, v);
    /* A list or tuple of values that have facts of their own. */
    if (v->def && (v->def->opcode == IR_OP_LIST || v->def->opcode == IR_OP_TUPLE) &&
        f.count_known && f.items && f.count == v->def->operand_count) {
        rt_fact *items = TS_NEW_ARRAY(in->ctx->scratch, rt_fact, f.count);
        for (size_t i = 0; i < f.count; i++) {
            const ir_value *item = v->def->operands[i];
            items[i] = item->number < in->value_count && in->has[item->number]
                           ? in->facts[item->number]
                           : f.items[i];
        }
        f.items = items;
    }
    return f;
}

static void set_fact(inference *in, const ir_value *v, rt_fact f) {
    if (v->number < in->value_count) {
        in->facts[v->number] = f;
        in->has[v->number] = true;
    }
}

static void forget_fact(inference *in, const ir_value *v) {
    if (v->number < in->value_count)
        in->has[v->number] = false;
}

/* Types of things that change under way must not remember what they were. */
static const ir_type *sound_type(inference *in, const ir_value *v, const ir_type *t) {
    ir_module *m = in->m;
    if (t->kind == IR_TENSOR)
        return pass_is_reshaped(in->alias, v) ? ir_type_any_tensor(m) : t;
    if (t->kind == IR_LIST)
        return pass_is_written(in->alias, v) ? ir_type_forget(m, t) : t;
    if (t->kind == IR_TUPLE || t->kind == IR_OPTIONAL)
        return pass_is_written(in->alias, v) ? ir_type_forget(m, t) : t;
    return ir_type_forget(m, t);
}

/* The new type, unless it contradicts the kind that was declared. Facts are found anew each time;
 * what an earlier run knew and this one does not (inputs, constants) stays. */
static void set_type(inference *in, ir_value *v, const ir_type *t) {
    t = sound_type(in, v, t);
    if (v->type->kind == IR_OPTIONAL && ir_type_same_shape_of(t, v->type->args[0]))
        t = ir_type_optional(in->m, t);
    /* Facts alone: kinds stay, or a loop that was walked with int could not go back to float. */
    if (t == v->type || !ir_type_same_shape_of(t, v->type))
        return;
    v->type = t;
    pass_count(in->ctx, "types", 1);
}

static void infer_block(inference *in, ir_block *b);

static void infer_core(inference *in, ir_op *op) {
    ts_arena *scratch = in->ctx->scratch;
    rt_fact *args = TS_NEW_ARRAY(scratch, rt_fact, op->operand_count);
    rt_fact *outs = TS_NEW_ARRAY(scratch, rt_fact, op->result_count);
    for (size_t i = 0; i < op->operand_count; i++)
        args[i] = fact_of(in, op->operands[i]);
    for (size_t i = 0; i < op->result_count; i++)
        outs[i] = (rt_fact){.kind = RT_FACT_UNKNOWN, .dim = RT_DIM_UNKNOWN,
                            .dtype = RT_DTYPE_UNKNOWN, .rank = -1};
    rt_infer_context ic = {.arena = scratch, .algebra = ir_dim_algebra(in->m)};
    ts_status status =
        rt_op_get(op->core)->infer(&ic, args, op->operand_count, outs, op->result_count);
    if (status) {
        ts_status_release(status);
        for (size_t i = 0; i < op->result_count; i++) {
            op->results[i]->type = ir_type_forget(in->m, op->results[i]->type);
            forget_fact(in, op->results[i]);
        }
        pass_count(in->ctx, "must_fail", 0);
        return;
    }
    for (size_t i = 0; i < op->result_count; i++) {
        ir_value *r = op->results[i];
        const ir_type *declared = ir_type_forget(in->m, r->type);
        set_type(in, r, ir_type_from_fact(in->m, &outs[i], declared));
        bool scalar = r->type->kind == IR_INT || r->type->kind == IR_BOOL ||
                      r->type->kind == IR_FLOAT || r->type->kind == IR_STR;
        bool matches = (outs[i].kind == RT_FACT_INT && r->type->kind == IR_INT) ||
                       (outs[i].kind == RT_FACT_BOOL && r->type->kind == IR_BOOL) ||
                       (outs[i].kind == RT_FACT_FLOAT && r->type->kind == IR_FLOAT);
        bool list = outs[i].kind == RT_FACT_LIST && r->type->kind == IR_LIST &&
                    ir_list_is_stable(r);
        /* The value of a 0-d tensor is a fact only while nobody writes it. */
        bool tensor = outs[i].kind == RT_FACT_TENSOR && outs[i].is_known &&
                      r->type->kind == IR_TENSOR && !pass_is_written(in->alias, r);
        if (tensor) {
            rt_fact f = ir_fact_of_type(scratch, r->type);
            f.is_known = true;
            f.dim = outs[i].dim;
            set_fact(in, r, f);
        } else if ((scalar && matches) || list) {
            set_fact(in, r, outs[i]);
        } else {
            forget_fact(in, r);
        }
    }
}

static void infer_if(inference *in, ir_op *op) {
    infer_block(in, op->regions[0]);
    infer_block(in, op->regions[1]);
    /* Where the condition is known (the rank of what a loop carries), only one path counts. */
    rt_fact condition = fact_of(in, op->operands[0]);
    bool known = condition.kind == RT_FACT_BOOL && condition.is_known &&
                 rt_dim_is_constant(condition.dim);
    for (size_t i = 0; i < op->result_count; i++) {
        const ir_value *a = op->regions[0]->last->operands[i];
        const ir_value *b = op->regions[1]->last->operands[i];
        /* A path that raises yields what is never read. */
        const ir_type *t = known && condition.dim                            ? a->type
                           : known                                           ? b->type
                           : a->def && a->def->opcode == IR_OP_UNINITIALIZED ? b->type
                           : b->def && b->def->opcode == IR_OP_UNINITIALIZED ? a->type
                                                                : ir_type_join(in->m, a->type, b->type);
        set_type(in, op->results[i], t);
    }
}

/* UNINITIALIZED values have whatever type their reader wants. */
static void fit_uninitialized(ir_block *b, size_t skip, ir_value *const *targets, size_t count) {
    for (size_t i = 0; i < count; i++) {
        ir_value *v = b->last->operands[i + skip];
        if (v->def && v->def->opcode == IR_OP_UNINITIALIZED && v->use_count == 1 &&
            v->type->kind == targets[i]->type->kind) {
            v->type = targets[i]->type;
            v->def->type = v->type;
        }
    }
}

static void infer_loop(inference *in, ir_op *op) {
    ir_block *b = op->regions[0];
    for (size_t i = 0; i < op->result_count; i++) {
        set_type(in, b->parameters[i + 1], op->operands[i + 2]->type);
        forget_fact(in, b->parameters[i + 1]);
    }
    forget_fact(in, b->parameters[0]);
    for (int round = 0;; round++) {
        infer_block(in, b);
        bool stable = true;
        for (size_t i = 0; i < op->result_count; i++) {
            ir_value *p = b->parameters[i + 1];
            const ir_type *yielded = b->last->operands[i + 1]->type;
            if (ir_type_is_refinement(yielded, p->type))
                continue;
            stable = false;
            const ir_type *t = round < LOOP_ROUNDS ? ir_type_join(in->m, p->type, yielded)
                                                   : ir_type_forget(in->m, p->type);
            p->type = ir_type_is_subtype(t, p->type) ? t : ir_type_forget(in->m, p->type);
        }
        if (stable)
            break;
        if (round > LOOP_ROUNDS + 2) {
            for (size_t i = 0; i < op->result_count; i++)
                b->parameters[i + 1]->type = ir_type_forget(in->m, b->parameters[i + 1]->type);
            infer_block(in, b);
            break;
        }
    }
    for (size_t i = 0; i < op->result_count; i++)
        set_type(in, op->results[i], b->parameters[i + 1]->type);
}

static void infer_op(inference *in, ir_op *op) {
    const ir_type *t;
    switch (op->opcode) {
    case IR_OP_CORE:
        infer_core(in, op);
        return;
    case IR_OP_IF:
        infer_if(in, op);
        fit_uninitialized(op->regions[0], 0, op->results, op->result_count);
        fit_uninitialized(op->regions[1], 0, op->results, op->result_count);
        return;
    case IR_OP_LOOP:
        infer_loop(in, op);
        return;
    case IR_OP_TUPLE: {
        const ir_type **items = TS_NEW_ARRAY(in->m->arena, const ir_type *, op->operand_count);
        t = op->results[0]->type;
        for (size_t i = 0; i < op->operand_count; i++)
            items[i] = op->operands[i]->type;
        if (t->kind == IR_TUPLE && t->arg_count == op->operand_count)
            set_type(in, op->results[0],
                     ir_type_tuple(in->m, items, op->operand_count, t->class_));
        return;
    }
    case IR_OP_TUPLE_GET:
        t = op->operands[0]->type;
        if (t->kind == IR_TUPLE && (size_t)op->integer < t->arg_count)
            set_type(in, op->results[0], t->args[op->integer]);
        return;
    case IR_OP_TUPLE_UNPACK:
        t = op->operands[0]->type;
        for (size_t i = 0; t->kind == IR_TUPLE && i < op->result_count && i < t->arg_count; i++)
            set_type(in, op->results[i], t->args[i]);
        return;
    case IR_OP_LIST_UNPACK: {
        rt_fact f = fact_of(in, op->operands[0]);
        t = op->operands[0]->type;
        for (size_t i = 0; t->kind == IR_LIST && i < op->result_count; i++) {
            bool known = f.kind == RT_FACT_LIST && f.count_known && f.items &&
                         f.count == op->result_count;
            set_type(in, op->results[i],
                     known ? ir_type_from_fact(in->m, &f.items[i], t->args[0]) : t->args[0]);
            if (known && (f.items[i].kind == RT_FACT_INT && t->args[0]->kind == IR_INT))
                set_fact(in, op->results[i], f.items[i]);
        }
        return;
    }
    case IR_OP_LIST: {
        const ir_type *element = NULL;
        for (size_t i = 0; i < op->operand_count; i++)
            element = element ? ir_type_join(in->m, element, op->operands[i]->type)
                              : op->operands[i]->type;
        t = op->results[0]->type;
        if (element && t->kind == IR_LIST && t->args[0]->kind == IR_TENSOR)
            set_type(in, op->results[0], ir_type_list(in->m, element));
        return;
    }
    case IR_OP_CAST:
        /* An Optional that is known to hold something keeps what is known of it. */
        t = ir_type_without_none(in->m, op->operands[0]->type);
        if (op->type && ir_type_is_refinement(op->type, t)) /* a guard stands before it */
            set_type(in, op->results[0], op->type);
        else if (op->results[0]->type->kind == t->kind)
            set_type(in, op->results[0], t);
        else if (op->results[0]->type->kind == IR_OPTIONAL)
            set_type(in, op->results[0], ir_type_optional(in->m, t));
        return;
    case IR_OP_GET_ATTR: {
        /* State that is written in place keeps its dtype and sizes. */
        rt_value v;
        if (pass_attribute_value(in->alias, op, &v) && v.tag == RT_TAG_TENSOR)
            set_type(in, op->results[0], ir_type_of_value(in->m, v));
        return;
    }
    case IR_OP_CONST:
        if (op->value.tag == RT_TAG_TENSOR)
            set_type(in, op->results[0], ir_type_of_value(in->m, op->value));
        return;
    default:
        return;
    }
}

static void infer_block(inference *in, ir_block *b) {
    for (ir_op *op = b->first; op; op = op->next)
        infer_op(in, op);
}

/* ---- numbers that turned out to be known ---- */

/* Symbols are bound where entries are called. */
static ir_value *place_int(ir_builder *b, const ir_function *f, rt_dim d) {
    bool is_bound = rt_dim_is_constant(d) || (f->is_entry && rt_dim_is_symbolic(d));
    return is_bound ? ir_build_size(b, d) : NULL;
}

/* x.size() of known sizes: a list of them, made where nobody changes it. */
static ir_value *place_list(ir_builder *b, const ir_function *f, const rt_fact *fact,
                            const ir_type *t) {
    ir_value *items[RT_MAX_RANK];
    if (!fact->count_known || fact->count > RT_MAX_RANK || !fact->items ||
        t->args[0]->kind != IR_INT)
        return NULL;
    for (size_t i = 0; i < fact->count; i++) {
        const rt_fact *item = &fact->items[i];
        if (item->kind != RT_FACT_INT || !item->is_known || item->dim == RT_DIM_UNKNOWN ||
            (!f->is_entry && rt_dim_is_symbolic(item->dim)))
            return NULL;
    }
    for (size_t i = 0; i < fact->count; i++)
        items[i] = place_int(b, f, fact->items[i].dim);
    return ir_build_op(b, IR_OP_LIST, items, fact->count, &t, 1)->results[0];
}

static void place_sizes(inference *in, const ir_function *f, pass_op_list ops) {
    ir_module *m = in->m;
    for (size_t i = 0; i < ops.count; i++) {
        ir_op *op = ops.items[i];
        uint32_t noticed = IR_EFFECT_WRITES | IR_EFFECT_RANDOM | IR_EFFECT_PRINTS;
        bool can = (op->opcode == IR_OP_CORE && op->result_count == 1 &&
                    !(ir_effects(op) & noticed)) ||
                   op->opcode == IR_OP_LIST_UNPACK;
        for (size_t j = 0; can && j < op->result_count; j++) {
            ir_value *r = op->results[j];
            if (!r->use_count || r->number >= in->value_count || !in->has[r->number])
                continue;
            rt_fact fact = in->facts[r->number];
            ir_builder b = {.module = m, .block = op->block, .before = op->next,
                            .place = op->place};
            ir_value *made = NULL;
            if (fact.kind == RT_FACT_LIST) {
                made = place_list(&b, f, &fact, r->type);
            } else if (!fact.is_known) {
                continue;
            } else if (fact.kind == RT_FACT_INT && r->type->kind == IR_INT) {
                made = place_int(&b, f, fact.dim);
            } else if (fact.kind == RT_FACT_BOOL && r->type->kind == IR_BOOL &&
                       rt_dim_is_constant(fact.dim)) {
                made = ir_build_bool(&b, fact.dim != 0);
            } else if (fact.kind == RT_FACT_FLOAT && r->type->kind == IR_FLOAT) {
                made = ir_build_float(&b, fact.f);
            }
            if (!made)
                continue;
            made->number = UINT32_MAX;
            ir_replace_uses(m, r, made);
            pass_count(in->ctx, "numbers", 1);
            /* What has a known result does not raise. */
            if (op->opcode == IR_OP_CORE) {
                ir_op_remove(op);
                break;
            }
        }
    }
}

/* What a path that is never taken yields, or what is never read, need not have the type of the
 * other path's: it becomes an uninitialized value of that type. */
static void mend_yields(inference *in, pass_op_list ops) {
    for (size_t i = 0; i < ops.count; i++) {
        ir_op *op = ops.items[i];
        if (op->opcode != IR_OP_IF)
            continue;
        rt_fact condition = fact_of(in, op->operands[0]);
        bool known = condition.kind == RT_FACT_BOOL && condition.is_known &&
                     rt_dim_is_constant(condition.dim);
        for (size_t j = 0; j < 2 * op->result_count; j++) {
            size_t region = j % 2, at = j / 2;
            ir_op *yield = op->regions[region]->last;
            const ir_value *v = yield->operands[at];
            const ir_type *t = op->results[at]->type;
            bool is_dead = known && region == (condition.dim ? 1 : 0);
            bool is_nothing = v->def && v->def->opcode == IR_OP_UNINITIALIZED;
            if ((!is_dead && !is_nothing) || ir_type_is_refinement(v->type, t))
                continue;
            ir_builder b = {.module = in->m, .block = yield->block, .before = yield,
                            .place = op->place};
            ir_op *nothing = ir_build_op(&b, IR_OP_UNINITIALIZED, NULL, 0, &t, 1);
            nothing->type = t;
            nothing->results[0]->number = UINT32_MAX;
            ir_op_set_operand(in->m, yield, at, nothing->results[0]);
        }
    }
}

ts_status pass_infer_types(pass_context *ctx, ir_module *m) {
    for (ir_function *f = m->functions; f; f = f->next) {
        inference in = {.ctx = ctx, .m = m};
        in.alias = pass_alias_make(ctx, m, f);
        pass_op_list ops = pass_collect(ctx, f);
        in.value_count = f->body->parameter_count;
        for (size_t i = 0; i < ops.count; i++) {
            in.value_count += ops.items[i]->result_count;
            for (size_t j = 0; j < ops.items[i]->region_count; j++)
                in.value_count += ops.items[i]->regions[j]->parameter_count;
        }
        in.facts = TS_NEW_ARRAY(ctx->scratch, rt_fact, in.value_count);
        in.has = TS_NEW_ARRAY(ctx->scratch, bool, in.value_count);
        infer_block(&in, f->body);
        mend_yields(&in, ops);
        place_sizes(&in, f, ops);
        const ir_value *returned = f->body->last->operands[0];
        if (f->is_entry && returned->type != f->return_type &&
            ir_type_is_subtype(returned->type, f->return_type) && !pass_has_calls_to(m, f))
            f->return_type = returned->type;
    }
    return NULL;
}

/* passes/specialise_entries.c - a path of its own for the calls that are to be expected.
 *
 *   func @forward(%x: Tensor, %mask: Optional[Tensor] = none) { BODY }
 *     =>  %usual = refine<float32[s0,3,s1,s2]>(%x) and %mask is None
 *         %r = if %usual { BODY of cast<...>(%x) and none } else { BODY }
 *
 * What hangs on the dtype and rank of an input, or on whether an optional one is there, is decided at
 * compile time on that path; the other one stays right for everything else.
 * Expected are: the defaults None, true and false of entries; and for tensors of which nothing was
 * declared what plan_inputs.c makes of the operators that they meet.
 * Needs: inline, freeze. Only where the body is not huge, as it is copied. */
#include "passes/plan_inputs.h"

enum {
    MAX_OPERATORS = 20000, /* of a body that is copied */
    MAX_COPIED = 2400      /* of all copies but the first */
};

static bool is_special(const ir_function *f, size_t i) {
    const ir_value *p = f->body->parameters[i];
    rt_value d = f->defaults[i];
    if (!p->use_count)
        return false;
    return (d.tag == RT_TAG_NONE && p->type->kind == IR_OPTIONAL) ||
           (d.tag == RT_TAG_BOOL && p->type->kind == IR_BOOL);
}

/* ---- the two paths ---- */

static ir_value *core(ir_builder *b, const char *name, ir_value *x, ir_value *y) {
    ir_value *operands[2] = {x, y};
    return ir_build_core1(b, rt_op_find(ts_str_of(name)), operands, y ? 2 : 1);
}

static ir_value *has_default(ir_builder *b, const ir_function *f, size_t i) {
    ir_value *p = f->body->parameters[i];
    if (f->defaults[i].tag == RT_TAG_NONE)
        return core(b, "__is__", p, ir_build_none(b));
    return f->defaults[i].as.i ? p : core(b, "__not__", p, NULL);
}

static ir_value *usual_value(ir_builder *b, const ir_function *f, size_t i, const ir_type *t) {
    ir_value *p = f->body->parameters[i];
    if (t) {
        ir_op *op = ir_build_op(b, IR_OP_CAST, &p, 1, &t, 1);
        op->type = t;
        op->results[0]->name = p->name;
        return op->results[0];
    }
    return f->defaults[i].tag == RT_TAG_NONE ? ir_build_none(b)
                                             : ir_build_bool(b, f->defaults[i].as.i != 0);
}

/* The path of one plan: an IF before the builder's place whose first region is a copy of the body. */
static ir_op *make_path(pass_context *ctx, ir_builder *b, ir_function *f, const pass_plan *p, ir_op *first,
                        ir_op *end) {
    ir_module *m = b->module;
    ir_block *body = f->body;
    ir_value *usual = NULL;
    for (size_t i = 0; i < body->parameter_count; i++) {
        if (!p->types[i] && !is_special(f, i))
            continue;
        ir_value *one = p->types[i] ? pass_build_refine(b, body->parameters[i], p->types[i]) : has_default(b, f, i);
        usual = usual ? pass_build_both(b, usual, one) : one;
    }
    if (!usual)
        return NULL;
    ir_op *choice = ir_build_if(b, usual);
    ir_value *returned = end->operands[0];
    ir_op_add_result(m, choice, f->return_type, returned->name);
    ir_builder then = {.module = m, .block = choice->regions[0], .place = f->place};
    ir_value_map *map = ir_value_map_make(ctx->scratch);
    for (size_t i = 0; i < body->parameter_count; i++)
        if (p->types[i] || is_special(f, i))
            ir_value_map_set(map, body->parameters[i], usual_value(&then, f, i, p->types[i]));
    for (const ir_op *op = first; op != end; op = op->next)
        ir_clone_op(&then, op, map);
    ir_value *copied = ir_value_map_get(map, returned);
    copied = copied ? copied : returned;
    ir_build_yield(&then, &copied, 1);
    return choice;
}

static void specialise(pass_context *ctx, ir_module *m, ir_function *f) {
    pass_plan plans[PASS_MAX_PLANS];
    size_t operators = pass_count_ops(f->body);
    if (operators > MAX_OPERATORS || rt_op_find(TS_STR("__is__")) == OP_COUNT ||
        rt_op_find(TS_STR("__not__")) == OP_COUNT)
        return;
    bool *is_default = TS_NEW_ARRAY(ctx->scratch, bool, f->body->parameter_count + 1);
    for (size_t i = 0; i < f->body->parameter_count; i++)
        is_default[i] = is_special(f, i);
    size_t copies = pass_asks_for_gradients(f->body) /* which are of straight code */ ? 1 : MAX_COPIED / (operators + 1);
    size_t count = pass_plan_inputs(ctx, m, f, copies, is_default, plans);
    ir_op *first = f->body->first, *end = f->body->last, *outer = NULL;
    ir_value *returned = end->operands[0];
    ir_builder b = {.module = m, .block = f->body, .before = first, .place = f->place};
    ir_op *choice = NULL;
    for (size_t k = 0; k < count; k++) {
        ir_op *next = make_path(ctx, &b, f, &plans[k], first, end);
        if (!next)
            return;
        if (choice)
            ir_build_yield(&b, next->results, 1); /* the other way of the plan before */
        else
            outer = next;
        choice = next;
        b = (ir_builder){.module = m, .block = choice->regions[1], .place = f->place};
    }
    /* The copies were made while the original still stood in the body. */
    ir_build_yield(&b, &returned, 1);
    while (first != end) {
        ir_op *next = first->next;
        ir_op_move_before(first, choice->regions[1]->last);
        first = next;
    }
    ir_op_set_operand(m, end, 0, outer->results[0]);
    pass_count(ctx, "entries", 1);
}

ts_status pass_specialise_entries(pass_context *ctx, ir_module *m) {
    for (ir_function *f = m->functions; f; f = f->next)
        if (f->is_entry)
            specialise(ctx, m, f);
    return NULL;
}

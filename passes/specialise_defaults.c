/* passes/specialise_defaults.c - a path of its own for calls that leave optional inputs out.
 *
 *   func @forward(%x, %mask: Optional[Tensor] = none, %causal: bool = false) { BODY }
 *     =>  %usual = %mask is None and not %causal
 *         %r = if %usual { BODY with none and false } else { BODY }
 *
 * What hangs on such an input (is there a mask? which dtype has it?) is then decided at compile time
 * on the path that nearly all calls take, and everything after it has known types. Only for
 * defaults None and bools of entries, and only where the body is not huge.
 * Why a copy and no guess: the other path must stay right. */
#include "passes/pass_internal.h"

enum { MAX_OPERATORS = 20000 };

static size_t count_block(const ir_block *b) {
    size_t count = 0;
    for (const ir_op *op = b->first; op; op = op->next) {
        count++;
        for (size_t i = 0; i < op->region_count; i++)
            count += count_block(op->regions[i]);
    }
    return count;
}

static bool is_special(const ir_function *f, size_t i) {
    const ir_value *p = f->body->parameters[i];
    rt_value d = f->defaults[i];
    if (!p->use_count)
        return false;
    return (d.tag == RT_TAG_NONE && p->type->kind == IR_OPTIONAL) ||
           (d.tag == RT_TAG_BOOL && p->type->kind == IR_BOOL);
}

static ir_value *core(ir_builder *b, const char *name, ir_value *x, ir_value *y) {
    ir_value *operands[2] = {x, y};
    return ir_build_core1(b, rt_op_find(ts_str_of(name)), operands, y ? 2 : 1);
}

static ir_value *is_default(ir_builder *b, const ir_function *f, size_t i) {
    ir_value *p = f->body->parameters[i];
    if (f->defaults[i].tag == RT_TAG_NONE)
        return core(b, "__is__", p, ir_build_none(b));
    return f->defaults[i].as.i ? p : core(b, "__not__", p, NULL);
}

/* a and b without a row for `and`: if a {yield b} else {yield false}. */
static ir_value *both(ir_builder *b, ir_value *x, ir_value *y) {
    ir_module *m = b->module;
    ir_op *op = ir_build_if(b, x);
    ir_builder then = {.module = m, .block = op->regions[0], .place = b->place};
    ir_builder other = {.module = m, .block = op->regions[1], .place = b->place};
    ir_value *no = ir_build_bool(&other, false);
    ir_build_yield(&then, &y, 1);
    ir_build_yield(&other, &no, 1);
    return ir_op_add_result(m, op, ir_type_simple(m, IR_BOOL), TS_STR("usual"));
}

static void specialise(pass_context *ctx, ir_module *m, ir_function *f) {
    size_t count = 0;
    for (size_t i = 0; i < f->body->parameter_count; i++)
        count += is_special(f, i);
    if (!count || count_block(f->body) > MAX_OPERATORS ||
        rt_op_find(TS_STR("__is__")) == OP_COUNT || rt_op_find(TS_STR("__not__")) == OP_COUNT)
        return;
    ir_block *body = f->body;
    ir_op *first = body->first, *end = body->last;
    ir_builder b = {.module = m, .block = body, .before = first, .place = f->place};
    ir_value *usual = NULL;
    for (size_t i = 0; i < body->parameter_count; i++)
        if (is_special(f, i)) {
            ir_value *one = is_default(&b, f, i);
            usual = usual ? both(&b, usual, one) : one;
        }
    ir_op *choice = ir_build_if(&b, usual);
    ir_value *returned = end->operands[0];
    ir_value *r = ir_op_add_result(m, choice, f->return_type, returned->name);
    /* The copy first, while the original still stands in the body. */
    ir_builder then = {.module = m, .block = choice->regions[0], .place = f->place};
    ir_value_map *map = ir_value_map_make(ctx->scratch);
    for (size_t i = 0; i < body->parameter_count; i++)
        if (is_special(f, i))
            ir_value_map_set(map, body->parameters[i],
                             f->defaults[i].tag == RT_TAG_NONE
                                 ? ir_build_none(&then)
                                 : ir_build_bool(&then, f->defaults[i].as.i != 0));
    for (const ir_op *op = first; op != end; op = op->next)
        ir_clone_op(&then, op, map);
    ir_value *copied = ir_value_map_get(map, returned);
    copied = copied ? copied : returned;
    ir_build_yield(&then, &copied, 1);
    ir_builder other = {.module = m, .block = choice->regions[1], .place = f->place};
    ir_build_yield(&other, &returned, 1);
    while (first != end) {
        ir_op *next = first->next;
        ir_op_move_before(first, choice->regions[1]->last);
        first = next;
    }
    ir_op_set_operand(m, end, 0, r);
    pass_count(ctx, "entries", 1);
}

ts_status pass_specialise_defaults(pass_context *ctx, ir_module *m) {
    for (ir_function *f = m->functions; f; f = f->next)
        if (f->is_entry)
            specialise(ctx, m, f);
    return NULL;
}

/* passes/specialise_entries.c - a path of its own for the calls that are to be expected.
 *
 *   func @forward(%x: Tensor, %mask: Optional[Tensor] = none) { BODY }
 *     =>  %usual = refine<float32[s0,3,s1,s2]>(%x) and %mask is None
 *         %r = if %usual { BODY of cast<...>(%x) and none } else { BODY }
 *
 * What hangs on the dtype and rank of an input, or on whether an optional one is there, is decided at
 * compile time on that path; the other one stays right for everything else.
 * Expected are: the defaults None, true and false of entries; and for a tensor of which nothing was
 * declared what the constants say that it meets first: a convolution of rank-4 weights takes rank 4
 * of their dtype and channels, a linear layer a matrix, an embedding a matrix of int64.
 * Needs: inline, freeze. Only where the body is not huge, as it is copied. */
#include "passes/pass_internal.h"
#include "runtime/base/checked.h"

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

/* ---- what weights say of a tensor ---- */

static bool is_op(const ir_op *op, const char *name) {
    return op->opcode == IR_OP_CORE && ts_str_is(rt_op_name(op->core), name);
}

static const rt_tensor *constant(const ir_op *op, size_t operand) {
    rt_value v;
    if (operand >= op->operand_count || !ir_const_value(op->operands[operand], &v) ||
        v.tag != RT_TAG_TENSOR)
        return NULL;
    return v.as.tensor;
}

/* The type that this use expects, or NULL. */
static const ir_type *expected_by(ir_module *m, const ir_use *use) {
    const ir_op *op = use->op;
    const rt_tensor *w;
    rt_dim dims[5];
    int64_t groups;
    if (op->opcode != IR_OP_CORE)
        return NULL;
    bool conv = is_op(op, "conv1d") || is_op(op, "conv2d") || is_op(op, "conv3d");
    if (use->operand == 0 && conv && (w = constant(op, 1)) && w->rank >= 3 && w->rank <= 5 &&
        ir_const_int(op->operands[6], &groups) && groups > 0) {
        dims[0] = ir_dim_fresh(m);
        if (!ts_mul_i64(w->sizes[1], groups, &dims[1]))
            return NULL;
        for (int i = 2; i < w->rank; i++)
            dims[i] = ir_dim_fresh(m);
        return ir_type_tensor(m, (rt_dtype)w->dtype, w->rank, dims, IR_LAYOUT_ANY);
    }
    if (use->operand == 0 && is_op(op, "linear") && (w = constant(op, 1)) && w->rank == 2) {
        dims[0] = ir_dim_fresh(m);
        dims[1] = w->sizes[1];
        return ir_type_tensor(m, (rt_dtype)w->dtype, 2, dims, IR_LAYOUT_ANY);
    }
    if (use->operand == 1 && is_op(op, "embedding") && constant(op, 0)) {
        dims[0] = ir_dim_fresh(m);
        dims[1] = ir_dim_fresh(m);
        return ir_type_tensor(m, RT_int64, 2, dims, IR_LAYOUT_ANY);
    }
    return NULL;
}

static const ir_type *expected_type(ir_module *m, const ir_value *p) {
    if (p->type->kind != IR_TENSOR || p->type->dtype != RT_DTYPE_UNKNOWN || p->type->rank >= 0)
        return NULL;
    for (size_t i = 0; i < p->use_count; i++) {
        const ir_type *t = expected_by(m, &p->uses[i]);
        if (t)
            return t;
    }
    return NULL;
}

/* ---- the two paths ---- */

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

static ir_value *refined(ir_builder *b, ir_value *p, const ir_type *t) {
    const ir_type *boolean = ir_type_simple(b->module, IR_BOOL);
    ir_op *op = ir_build_op(b, IR_OP_REFINE, &p, 1, &boolean, 1);
    op->type = t;
    return op->results[0];
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

static void specialise(pass_context *ctx, ir_module *m, ir_function *f) {
    ir_block *body = f->body;
    size_t count = 0;
    const ir_type **types = TS_NEW_ARRAY(ctx->scratch, const ir_type *, body->parameter_count);
    for (size_t i = 0; i < body->parameter_count; i++) {
        types[i] = expected_type(m, body->parameters[i]);
        count += types[i] || is_special(f, i);
    }
    if (!count || count_block(body) > MAX_OPERATORS ||
        rt_op_find(TS_STR("__is__")) == OP_COUNT || rt_op_find(TS_STR("__not__")) == OP_COUNT)
        return;
    ir_op *first = body->first, *end = body->last;
    ir_builder b = {.module = m, .block = body, .before = first, .place = f->place};
    ir_value *usual = NULL;
    for (size_t i = 0; i < body->parameter_count; i++) {
        if (!types[i] && !is_special(f, i))
            continue;
        ir_value *one = types[i] ? refined(&b, body->parameters[i], types[i]) : is_default(&b, f, i);
        usual = usual ? both(&b, usual, one) : one;
    }
    ir_op *choice = ir_build_if(&b, usual);
    ir_value *returned = end->operands[0];
    ir_value *r = ir_op_add_result(m, choice, f->return_type, returned->name);
    /* The copy first, while the original still stands in the body. */
    ir_builder then = {.module = m, .block = choice->regions[0], .place = f->place};
    ir_value_map *map = ir_value_map_make(ctx->scratch);
    for (size_t i = 0; i < body->parameter_count; i++)
        if (types[i] || is_special(f, i))
            ir_value_map_set(map, body->parameters[i], usual_value(&then, f, i, types[i]));
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

ts_status pass_specialise_entries(pass_context *ctx, ir_module *m) {
    for (ir_function *f = m->functions; f; f = f->next)
        if (f->is_entry)
            specialise(ctx, m, f);
    return NULL;
}

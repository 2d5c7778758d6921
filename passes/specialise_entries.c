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

static const ir_type *tensor_of(ir_module *m, rt_dtype dtype, int rank, const rt_dim *dims) {
    return ir_type_tensor(m, dtype, rank, dims, IR_LAYOUT_ANY);
}

/* float of w's dtype, rank 2, as many columns as w has. */
static const ir_type *rows_for(ir_module *m, const rt_tensor *w) {
    rt_dim dims[2] = {ir_dim_fresh(m), w->sizes[1]};
    return tensor_of(m, (rt_dtype)w->dtype, 2, dims);
}

static const ir_type *expected_type(ir_module *m, const ir_value *p, int depth);

/* Through operators that hand a tensor on: what their result is expected to be says what it was. */
static const ir_type *through(ir_module *m, const ir_op *op, int depth) {
    static const char *const same[] = {"view", "reshape", "contiguous", "slice.Tensor", "clone",
                                       "detach", "relu", "dropout"};
    rt_dim dims[RT_MAX_RANK];
    int64_t at;
    bool is_same = false;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        is_same = is_same || is_op(op, same[i]);
    bool selects = is_op(op, "select.int"), adds = is_op(op, "unsqueeze");
    if (!is_same && !selects && !adds)
        return NULL;
    const ir_type *t = expected_type(m, op->results[0], depth + 1);
    if (!t || is_same) { /* a view's own sizes are not known: its rank is the likeliest */
        if (!t)
            return NULL;
        bool keeps = !is_op(op, "view") && !is_op(op, "reshape") && !is_op(op, "slice.Tensor");
        for (int d = 0; d < t->rank; d++)
            dims[d] = keeps || d == t->rank - 1 ? t->dims[d] : ir_dim_fresh(m);
        if (!keeps && is_op(op, "slice.Tensor"))
            dims[t->rank - 1] = ir_dim_fresh(m);
        return tensor_of(m, t->dtype, t->rank, dims);
    }
    if (!ir_const_int(op->operands[1], &at))
        return NULL;
    int rank = t->rank + (selects ? 1 : -1);
    if (at < 0)
        at += selects ? rank : t->rank;
    if (rank < 1 || rank > RT_MAX_RANK || at < 0 || at >= (selects ? rank : t->rank))
        return NULL;
    for (int d = 0, from = 0; d < rank; d++) {
        if (selects && d == at) {
            dims[d] = ir_dim_fresh(m);
            continue;
        }
        if (adds && from == at)
            from++;
        dims[d] = t->dims[from++];
    }
    return tensor_of(m, t->dtype, rank, dims);
}

/* The type that this use expects, or NULL. */
static const ir_type *expected_by(ir_module *m, const ir_use *use, int depth) {
    const ir_op *op = use->op;
    const rt_tensor *w;
    rt_dim dims[5];
    int64_t groups;
    if (op->opcode == IR_OP_LIST) { /* (h, c) of a recurrent operator */
        for (size_t i = 0; i < op->results[0]->use_count; i++) {
            const ir_op *user = op->results[0]->uses[i].op;
            if (is_op(user, "lstm_cell") && (w = constant(user, 3)) && w->rank == 2)
                return rows_for(m, w);
        }
        return NULL;
    }
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
        return tensor_of(m, (rt_dtype)w->dtype, w->rank, dims);
    }
    if (use->operand == 0 && is_op(op, "linear") && (w = constant(op, 1)) && w->rank == 2)
        return rows_for(m, w);
    bool cell = is_op(op, "gru_cell") || is_op(op, "lstm_cell");
    if (cell && use->operand < 2 && (w = constant(op, use->operand + 2)) && w->rank == 2)
        return rows_for(m, w);
    if (use->operand == 0 && (is_op(op, "lstm.input") || is_op(op, "gru.input"))) {
        const ir_op *list = op->operands[2]->def;
        rt_value v;
        w = NULL;
        if (list && list->opcode == IR_OP_LIST && list->operand_count)
            w = constant(list, 0);
        else if (ir_const_value(op->operands[2], &v) && v.tag == RT_TAG_LIST && v.as.list->count &&
                 v.as.list->items[0].tag == RT_TAG_TENSOR)
            w = v.as.list->items[0].as.tensor;
        if (!w || w->rank != 2)
            return NULL;
        dims[0] = ir_dim_fresh(m);
        dims[1] = ir_dim_fresh(m);
        dims[2] = w->sizes[1];
        return tensor_of(m, (rt_dtype)w->dtype, 3, dims);
    }
    if (use->operand == 1 && is_op(op, "embedding") && constant(op, 0)) {
        dims[0] = ir_dim_fresh(m);
        dims[1] = ir_dim_fresh(m);
        return tensor_of(m, RT_int64, 2, dims);
    }
    return use->operand == 0 && op->result_count == 1 ? through(m, op, depth) : NULL;
}

static bool is_unknown(const ir_value *p) {
    return p->type->kind == IR_TENSOR && p->type->dtype == RT_DTYPE_UNKNOWN && p->type->rank < 0;
}

static const ir_type *expected_type(ir_module *m, const ir_value *p, int depth) {
    if (depth > 12 || (depth == 0 && !is_unknown(p)))
        return NULL;
    for (size_t i = 0; i < p->use_count; i++) {
        const ir_type *t = expected_by(m, &p->uses[i], depth);
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

/* What one path takes for granted: a type for each parameter, or NULL. */
typedef struct plan {
    const ir_type **types;
} plan;

enum { MAX_PLANS = 4, SMALL_BODY = 400 };

static plan empty_plan(pass_context *ctx, const ir_function *f) {
    return (plan){TS_NEW_ARRAY(ctx->scratch, const ir_type *, f->body->parameter_count + 1)};
}

/* Gradients are of straight code. */
static bool asks_for_gradients(const ir_block *b) {
    for (const ir_op *op = b->first; op; op = op->next) {
        if (is_op(op, "autograd_grad") || is_op(op, "backward"))
            return true;
        for (size_t i = 0; i < op->region_count; i++)
            if (asks_for_gradients(op->regions[i]))
                return true;
    }
    return false;
}

/* The first plan gives tensors of which no weight says anything the type of one of which it does (a
 * mask beside token numbers), the second leaves them open. Where no weight says anything at all, a
 * small body is made for float32 of rank 4, 3 and 2, all of the same sizes. */
static size_t make_plans(pass_context *ctx, ir_module *m, const ir_function *f, size_t operators,
                         plan *out) {
    size_t n = f->body->parameter_count, known = 0, open = 0;
    plan sure = empty_plan(ctx, f);
    const ir_type *last = NULL;
    for (size_t i = 0; i < n; i++) {
        const ir_value *p = f->body->parameters[i];
        sure.types[i] = expected_type(m, p, 0);
        if (sure.types[i])
            last = sure.types[i];
        known += sure.types[i] != NULL;
        open += !sure.types[i] && is_unknown(p) && p->use_count > 0;
    }
    if (known && open && last->dtype == RT_int64) {
        plan all = empty_plan(ctx, f);
        for (size_t i = 0; i < n; i++) {
            all.types[i] = sure.types[i];
            if (!all.types[i] && is_unknown(f->body->parameters[i]) && f->body->parameters[i]->use_count)
                all.types[i] = last;
        }
        out[0] = all;
        out[1] = sure;
        return 2;
    }
    if (known || !open || operators > SMALL_BODY || asks_for_gradients(f->body)) {
        out[0] = sure;
        return 1;
    }
    for (int k = 0; k < 3; k++) {
        rt_dim dims[4];
        for (int d = 0; d < 4; d++)
            dims[d] = ir_dim_fresh(m);
        out[k] = empty_plan(ctx, f);
        for (size_t i = 0; i < n; i++)
            if (is_unknown(f->body->parameters[i]) && f->body->parameters[i]->use_count)
                out[k].types[i] = tensor_of(m, RT_float32, 4 - k, dims);
    }
    return 3;
}

/* The path of one plan: an IF before the builder's place whose first region is a copy of the body. */
static ir_op *make_path(pass_context *ctx, ir_builder *b, ir_function *f, const plan *p, ir_op *first,
                        ir_op *end) {
    ir_module *m = b->module;
    ir_block *body = f->body;
    ir_value *usual = NULL;
    for (size_t i = 0; i < body->parameter_count; i++) {
        if (!p->types[i] && !is_special(f, i))
            continue;
        ir_value *one = p->types[i] ? pass_build_refine(b, body->parameters[i], p->types[i]) : is_default(b, f, i);
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
    plan plans[MAX_PLANS];
    size_t operators = count_block(f->body);
    if (operators > MAX_OPERATORS || rt_op_find(TS_STR("__is__")) == OP_COUNT ||
        rt_op_find(TS_STR("__not__")) == OP_COUNT)
        return;
    size_t count = make_plans(ctx, m, f, operators, plans);
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

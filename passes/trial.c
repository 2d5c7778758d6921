/* passes/trial.c - see trial.h. A trial follows what every run does: straight code, and the arm of
 * an `if` whose condition is known, or whose other arm raises. Loops and other `if`s are passed
 * over, and what they yield is not known; where they may leave the function or do what others
 * notice, nothing is certain any more. */
#include "passes/trial.h"
#include "runtime/ops/tensor_ops.h"

enum { TRIAL_DEPTH = 200 };

struct pass_trial {
    pass_context *ctx;
    ir_module *m, *sizes;
    const ir_function *f;
    rt_fact *facts; /* by value number */
    bool *has;
    size_t value_count, limit;
    bool is_certain;
    rt_infer_context infer;
    pass_trial_match *match;
    void *match_user;
    pass_trial_count *count; /* of a guess, else NULL */
};

static void hear(void *user, rt_dim a, rt_dim b, rt_match how) {
    pass_trial *t = user;
    if (t->match)
        t->match(t->match_user, a, b, how, t->is_certain);
}

pass_trial *pass_trial_make(pass_context *ctx, ir_module *m, const ir_function *f) {
    pass_trial *t = TS_NEW(ctx->scratch, pass_trial);
    uint32_t count = pass_number_values(f);
    *t = (pass_trial){.ctx = ctx, .m = m, .f = f, .value_count = count};
    t->facts = TS_NEW_ARRAY(ctx->scratch, rt_fact, (size_t)count + 1);
    t->has = TS_NEW_ARRAY(ctx->scratch, bool, (size_t)count + 1);
    return t;
}

void pass_trial_begin(pass_trial *t) { t->sizes = ir_module_make(t->ctx->scratch); }

ir_module *pass_trial_sizes(const pass_trial *t) { return t->sizes; }

/* Symbols of the program's module mean nothing here. */
static rt_fact without_symbols(pass_trial *t, rt_fact f) {
    if (rt_dim_is_symbolic(f.dim)) {
        f.dim = RT_DIM_UNKNOWN;
        f.is_known = false;
    }
    if (f.kind == RT_FACT_TENSOR && f.rank > 0) {
        rt_dim *dims = TS_NEW_ARRAY(t->ctx->scratch, rt_dim, (size_t)f.rank);
        for (int i = 0; i < f.rank; i++)
            dims[i] = rt_dim_is_symbolic(f.dims[i]) ? RT_DIM_UNKNOWN : f.dims[i];
        f.dims = dims;
    }
    return f;
}

static rt_fact fact_of(pass_trial *t, const ir_value *v) {
    if (v->number < t->value_count && t->has[v->number])
        return t->facts[v->number];
    if (ir_is_const(v))
        return ir_fact_of_value(t->m, t->ctx->scratch, v);
    if (v->type->kind == IR_LIST || v->type->kind == IR_TUPLE)
        return (rt_fact){
            .kind = RT_FACT_LIST, .dim = RT_DIM_UNKNOWN, .rank = -1, .dtype = RT_DTYPE_UNKNOWN};
    return without_symbols(t, ir_fact_of_type(t->ctx->scratch, v->type));
}

static void set_fact(pass_trial *t, const ir_value *v, rt_fact f) {
    t->facts[v->number] = f;
    t->has[v->number] = true;
}

static rt_fact list_of(pass_trial *t, const ir_op *op) {
    rt_fact *items = TS_NEW_ARRAY(t->ctx->scratch, rt_fact, op->operand_count + 1);
    for (size_t i = 0; i < op->operand_count; i++)
        items[i] = fact_of(t, op->operands[i]);
    return (rt_fact){.kind = RT_FACT_LIST,
                     .dim = RT_DIM_UNKNOWN,
                     .dtype = RT_DTYPE_UNKNOWN,
                     .rank = -1,
                     .count_known = true,
                     .count = op->operand_count,
                     .items = items};
}

/* Leaves the function, or does what others notice: what comes after it is not certain to come. */
static bool is_open(const ir_op *op) {
    if (op->opcode == IR_OP_RAISE || op->opcode == IR_OP_CALL || op->opcode == IR_OP_TRY_CALL ||
        op->opcode == IR_OP_CALL_METHOD || op->opcode == IR_OP_CHECK_CAST ||
        op->opcode == IR_OP_SET_ATTR)
        return true;
    for (size_t i = 0; i < op->region_count; i++)
        for (const ir_op *inner = op->regions[i]->first; inner; inner = inner->next)
            if (is_open(inner))
                return true;
    uint32_t noticed = IR_EFFECT_WRITES | IR_EFFECT_RANDOM | IR_EFFECT_PRINTS;
    return op->region_count == 0 && (ir_effects(op) & noticed);
}

static pass_trial_end failed(const pass_trial *t) {
    return t->is_certain ? PASS_TRIAL_FAILS : PASS_TRIAL_RAISES;
}

/* ---- what a guess counts ---- */

static void add_symbol(rt_dim *items, size_t *count, size_t most, rt_dim d) {
    for (size_t i = 0; i < *count; i++)
        if (items[i] == d)
            return;
    if (rt_dim_is_symbolic(d) && *count < most)
        items[(*count)++] = d;
}

static void add_rows(pass_trial_count *n, rt_dim rows) {
    add_symbol(n->rows, &n->row_count, sizeof n->rows / sizeof *n->rows, rows);
}

static void add_head(pass_trial_count *n, const rt_fact *q) {
    if (q->kind == RT_FACT_TENSOR && q->rank >= 3)
        add_symbol(n->heads, &n->head_count, sizeof n->heads / sizeof *n->heads,
                   q->dims[q->rank - 1]);
}

/* What stream_images and fold_gates do is for one image. */
static void add_images(pass_trial_count *n, const rt_fact *x) {
    if (x->kind == RT_FACT_TENSOR && x->rank == 4)
        add_symbol(n->images, &n->image_count, sizeof n->images / sizeof *n->images, x->dims[0]);
}

static bool is_gate_of(const rt_fact *g, const rt_fact *x) {
    return g->kind == RT_FACT_TENSOR && x->kind == RT_FACT_TENSOR && g->rank == 4 && x->rank == 4 && g->dims[2] == 1 &&
           g->dims[3] == 1 && x->dims[2] != 1;
}

/* The rank that an operand usually has: misfits of it weigh more than those of others. */
static void count_rank(pass_trial_count *n, const rt_fact *f, int usual, size_t weight) {
    if (f->kind == RT_FACT_TENSOR && f->rank >= 0 && f->rank != usual)
        n->misfits += weight;
}

static bool is_made_by(const ir_value *v, const char *name) {
    return v->def && v->def->opcode == IR_OP_CORE &&
           ts_str_starts_with(rt_op_name(v->def->core), name);
}

static void count_core(pass_trial *t, const ir_op *op, const rt_fact *args) {
    pass_trial_count *n = t->count;
    ts_str name = rt_op_name(op->core);
    const rt_fact *x = &args[0];
    if (ts_str_starts_with(name, "conv") && op->operand_count > 1) {
        count_rank(n, x, args[1].rank, 8);
        if (args[1].rank == 4 && args[1].dims[1] == 1)
            add_images(n, x);
    } else if (ts_str_is(name, "mul.Tensor")) {
        if (is_gate_of(x, &args[1]) || is_gate_of(&args[1], x))
            add_images(n, x);
    } else if (ts_str_is(name, "linear")) {
        count_rank(n, x, 2, 1);
        if (x->kind == RT_FACT_TENSOR && x->rank >= 1)
            add_rows(n, rt_dim_product(&t->infer, x->dims, x->rank - 1));
    } else if (ts_str_is(name, "embedding")) {
        count_rank(n, &args[1], 2, 2);
    } else if (ts_str_ends_with(name, "_cell")) {
        bool is_list = args[1].kind == RT_FACT_LIST && args[1].count_known && args[1].items;
        size_t states = is_list ? args[1].count : args[1].kind == RT_FACT_TENSOR;
        count_rank(n, x, 2, 8);
        for (size_t i = 0; i < states; i++)
            count_rank(n, is_list ? &args[1].items[i] : &args[1], 2, 8);
        if (x->kind == RT_FACT_TENSOR && x->rank == 2)
            add_rows(n, x->dims[0]);
    } else if (ts_str_is(name, "lstm.input") || ts_str_is(name, "gru.input")) {
        int64_t batch_first;
        count_rank(n, x, 3, 8);
        if (x->kind == RT_FACT_TENSOR && x->rank == 3 && rt_fact_int(&args[8], &batch_first))
            add_rows(n, x->dims[batch_first ? 0 : 1]);
    } else if (ts_str_is(name, "scaled_dot_product_attention")) {
        add_head(n, x);
        add_head(n, &args[2]);
    } else if (ts_str_is(name, "matmul") && is_made_by(op->operands[1], "transpose")) {
        add_head(n, x);
    } else if (ts_str_is(name, "matmul") && is_made_by(op->operands[0], "softmax")) {
        add_head(n, &args[1]);
    }
}

static void count_results(pass_trial *t, const ir_op *op) {
    bool is_tensor = false, is_typed = true, is_sized = true;
    for (size_t i = 0; i < op->result_count; i++) {
        if (op->results[i]->type->kind != IR_TENSOR)
            continue;
        rt_fact f = fact_of(t, op->results[i]);
        is_tensor = true;
        is_typed = is_typed && f.dtype != RT_DTYPE_UNKNOWN && f.rank >= 0;
        for (int d = 0; d < f.rank; d++)
            is_sized = is_sized && f.dims[d] != RT_DIM_UNKNOWN;
    }
    t->count->operators += is_tensor;
    t->count->untyped += is_tensor && !is_typed;
    t->count->unsized += is_tensor && is_typed && !is_sized;
}

static pass_trial_end run_core(pass_trial *t, const ir_op *op) {
    rt_fact *args = TS_NEW_ARRAY(t->ctx->scratch, rt_fact, op->operand_count + 1);
    rt_fact *outs = TS_NEW_ARRAY(t->ctx->scratch, rt_fact, op->result_count + 1);
    for (size_t i = 0; i < op->operand_count; i++)
        args[i] = fact_of(t, op->operands[i]);
    for (size_t i = 0; i < op->result_count; i++)
        outs[i] = (rt_fact){
            .kind = RT_FACT_UNKNOWN, .dim = RT_DIM_UNKNOWN, .dtype = RT_DTYPE_UNKNOWN, .rank = -1};
    ts_status status =
        rt_op_get(op->core)->infer(&t->infer, args, op->operand_count, outs, op->result_count);
    if (status) {
        ts_status_release(status);
        return failed(t);
    }
    for (size_t i = 0; i < op->result_count; i++)
        if (outs[i].kind != RT_FACT_UNKNOWN)
            set_fact(t, op->results[i], outs[i]);
    if (t->count) {
        count_core(t, op, args);
        count_results(t, op);
    }
    return PASS_TRIAL_RETURNS;
}

static pass_trial_end run_block(pass_trial *t, const ir_block *b, int depth);

static bool raises(const ir_block *b) {
    for (const ir_op *op = b->first; op; op = op->next)
        if (op->opcode == IR_OP_RAISE)
            return true;
    return false;
}

/* What is known of sizes where a test came out as `is_true`. */
static void hear_test(pass_trial *t, const ir_value *v, bool is_true) {
    const ir_op *op = v->def;
    if (!op || op->opcode != IR_OP_CORE || op->operand_count == 0)
        return;
    ts_str name = rt_op_name(op->core);
    if (ts_str_is(name, "__not__")) {
        hear_test(t, op->operands[0], !is_true);
        return;
    }
    if (!ts_str_is(name, is_true ? "eq.int" : "ne.int"))
        return;
    rt_fact a = fact_of(t, op->operands[0]), b = fact_of(t, op->operands[1]);
    const ir_op *rest = op->operands[0]->def;
    bool is_rest =
        rest && rest->opcode == IR_OP_CORE && ts_str_is(rt_op_name(rest->core), "remainder.int");
    if (is_rest && b.is_known && b.dim == 0) {
        a = fact_of(t, rest->operands[0]);
        b = fact_of(t, rest->operands[1]);
    }
    bool are_known = a.kind == RT_FACT_INT && b.kind == RT_FACT_INT && a.is_known && b.is_known;
    if (are_known && a.dim != RT_DIM_UNKNOWN && b.dim != RT_DIM_UNKNOWN)
        hear(t, a.dim, b.dim, is_rest ? RT_MATCH_MULTIPLE : RT_MATCH_MUST);
}

/* What both arms of an `if` yield, as far as it is the same. An arm that raises counts for nothing.
 */
static pass_trial_end guess_if(pass_trial *t, const ir_op *op, int depth) {
    bool runs[2];
    for (int i = 0; i < 2; i++)
        runs[i] = run_block(t, op->regions[i], depth + 1) == PASS_TRIAL_RETURNS;
    for (size_t i = 0; i < op->result_count; i++) {
        rt_fact a = fact_of(t, op->regions[0]->last->operands[i]);
        rt_fact b = fact_of(t, op->regions[1]->last->operands[i]);
        if (!runs[0] || !runs[1]) {
            set_fact(t, op->results[i], runs[0] ? a : b);
            continue;
        }
        if (a.kind != RT_FACT_TENSOR || b.kind != RT_FACT_TENSOR)
            continue;
        bool same_rank = a.rank == b.rank && a.rank >= 0;
        rt_dim *dims = rt_new_dims(&t->infer, same_rank ? a.rank : 0);
        for (int d = 0; same_rank && d < a.rank; d++)
            dims[d] = a.dims[d] == b.dims[d] ? a.dims[d] : RT_DIM_UNKNOWN;
        set_fact(t, op->results[i],
                 rt_fact_tensor(a.dtype == b.dtype ? a.dtype : RT_DTYPE_UNKNOWN,
                                same_rank ? a.rank : -1, dims));
    }
    return runs[0] || runs[1] ? PASS_TRIAL_RETURNS : PASS_TRIAL_RAISES;
}

/* One round of a loop: what it carries is taken to keep its type. */
static pass_trial_end guess_loop(pass_trial *t, const ir_op *op, int depth) {
    const ir_block *b = op->regions[0];
    for (size_t i = 0; i < op->result_count; i++) {
        rt_fact f = fact_of(t, op->operands[i + 2]);
        if (f.kind == RT_FACT_TENSOR)
            set_fact(t, b->parameters[i + 1], f);
    }
    pass_trial_end end = run_block(t, b, depth + 1);
    for (size_t i = 0; i < op->result_count && end == PASS_TRIAL_RETURNS; i++) {
        rt_fact f = fact_of(t, b->last->operands[i + 1]);
        if (f.kind == RT_FACT_TENSOR)
            set_fact(t, op->results[i], f);
    }
    return end;
}

static pass_trial_end run_if(pass_trial *t, const ir_op *op, int depth) {
    rt_fact condition = fact_of(t, op->operands[0]);
    bool is_known =
        condition.kind == RT_FACT_BOOL && condition.is_known && rt_dim_is_constant(condition.dim);
    int taken = is_known && condition.dim ? 0 : 1;
    if (!is_known) {
        bool then_raises = raises(op->regions[0]), else_raises = raises(op->regions[1]);
        if (is_open(op))
            t->is_certain = false;
        if (then_raises == else_raises)
            return t->count && !then_raises ? guess_if(t, op, depth) : PASS_TRIAL_RETURNS;
        taken = then_raises ? 1 : 0;
        hear_test(t, op->operands[0], taken == 0);
    }
    const ir_block *arm = op->regions[taken];
    pass_trial_end end = run_block(t, arm, depth + 1);
    if (end != PASS_TRIAL_RETURNS)
        return end;
    for (size_t i = 0; i < op->result_count; i++)
        set_fact(t, op->results[i], fact_of(t, arm->last->operands[i]));
    return end;
}

/* Items of what is a list or tuple of known items. */
static pass_trial_end set_items(pass_trial *t, const ir_op *op, size_t first, size_t count) {
    rt_fact f = fact_of(t, op->operands[0]);
    if (f.kind != RT_FACT_LIST || !f.count_known)
        return PASS_TRIAL_RETURNS;
    if (op->opcode == IR_OP_LIST_UNPACK && f.count != count)
        return failed(t);
    if (!f.items)
        return PASS_TRIAL_RETURNS;
    for (size_t i = 0; i < count && first + i < f.count; i++)
        set_fact(t, op->results[i], f.items[first + i]);
    return PASS_TRIAL_RETURNS;
}

static pass_trial_end run_op(pass_trial *t, const ir_op *op, int depth) {
    if (op->opcode == IR_OP_IF)
        return run_if(t, op, depth);
    if (op->opcode == IR_OP_RAISE)
        return PASS_TRIAL_RAISES;
    if (is_open(op))
        t->is_certain = false;
    switch (op->opcode) {
    case IR_OP_CORE:
        return run_core(t, op);
    case IR_OP_LOOP:
        return t->count ? guess_loop(t, op, depth) : PASS_TRIAL_RETURNS;
    case IR_OP_TUPLE:
        set_fact(t, op->results[0], list_of(t, op));
        break;
    case IR_OP_LIST:
        if (ir_list_is_stable(op->results[0]))
            set_fact(t, op->results[0], list_of(t, op));
        break;
    case IR_OP_TUPLE_GET:
        return set_items(t, op, (size_t)op->integer, 1);
    case IR_OP_TUPLE_UNPACK:
    case IR_OP_LIST_UNPACK:
        return set_items(t, op, 0, op->result_count);
    case IR_OP_CAST: {
        rt_fact f = fact_of(t, op->operands[0]);
        if (f.kind != RT_FACT_UNKNOWN)
            set_fact(t, op->results[0], f);
        break;
    }
    default:
        break; /* nothing is known of the results but their types */
    }
    return PASS_TRIAL_RETURNS;
}

static pass_trial_end run_block(pass_trial *t, const ir_block *b, int depth) {
    for (const ir_op *op = b->first; op; op = op->next) {
        if (op->opcode == IR_OP_YIELD || op->opcode == IR_OP_RETURN)
            break;
        if (depth > TRIAL_DEPTH || t->limit == 0)
            break;
        t->limit--;
        pass_trial_end end = run_op(t, op, depth);
        if (end != PASS_TRIAL_RETURNS)
            return end;
    }
    return PASS_TRIAL_RETURNS;
}

static pass_trial_end run(pass_trial *t, const rt_fact *parameters, size_t limit) {
    memset(t->has, 0, t->value_count * sizeof *t->has);
    t->limit = limit;
    t->is_certain = true;
    t->infer = (rt_infer_context){.arena = t->ctx->scratch,
                                  .algebra = ir_dim_algebra(t->sizes),
                                  .match = hear,
                                  .match_user = t};
    for (size_t i = 0; i < t->f->body->parameter_count; i++)
        if (parameters[i].kind != RT_FACT_UNKNOWN)
            set_fact(t, t->f->body->parameters[i], parameters[i]);
    return run_block(t, t->f->body, 0);
}

pass_trial_end pass_trial_run(pass_trial *t, const rt_fact *parameters, size_t limit,
                              pass_trial_match *match, void *user) {
    t->count = NULL;
    t->match = match;
    t->match_user = user;
    return run(t, parameters, limit);
}

pass_trial_end pass_trial_guess(pass_trial *t, const rt_fact *parameters, size_t limit,
                                pass_trial_match *match, void *user, pass_trial_count *count) {
    *count = (pass_trial_count){.operators = 0};
    t->count = count;
    t->match = match;
    t->match_user = user;
    return run(t, parameters, limit);
}

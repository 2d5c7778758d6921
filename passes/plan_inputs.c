/* passes/plan_inputs.c - see plan_inputs.h. For tensors of which nothing is declared, types are
 * guessed by trial: of float32 and int64, each of rank 1 to 5, an input takes what leaves the
 * fewest operators without a type and their operands with the ranks that they usually have (a
 * convolution those of its weights, a cell or a linear layer a matrix, a recurrent layer three
 * dims, an embedding two). Sizes then follow from what rules say must match: constants of weights
 * and of the program's own tests, one letter for sizes that are the same.
 *
 * A wrong guess costs the fast path, never the result. So sizes that only probably are the same
 * (they might be 1 and be repeated) are so in the first plans and not in the last; products of one
 * row and attention with heads of 64 columns, which have kernels of their own, are tried first in
 * small bodies, as copies cost code; and one image, which fold_gates and stream_images gain by. */
#include "passes/plan_inputs.h"

#include "passes/trial.h"

enum {
    STEPS = 300000, /* operators that all trials of an entry may look at */
    MAX_INPUTS = 8,
    LOW_RANK = 1,
    HIGH_RANK = 5,
    MAX_MATCHES = 512,
    FEW_COPIES = 4, /* that a body must be small enough for */
    ROUNDS = 6,
    USUAL_HEAD = 64 /* columns of a head of attention */
};

typedef struct input {
    size_t index;
    rt_dtype dtype;
    int rank;     /* -1: not guessed */
    bool is_free; /* other ranks are as good */
    bool is_like; /* the one before, and was taken for that */
} input;

typedef struct match {
    rt_dim a, b;
    rt_match how;
} match;

typedef struct planner {
    pass_context *ctx;
    ir_module *m;
    const ir_function *f;
    const bool *is_default;
    pass_trial *trial;
    input inputs[MAX_INPUTS];
    size_t input_count, limit;
    match *matches;
    size_t match_count;
    rt_dim dims[MAX_INPUTS][HIGH_RANK]; /* of the last trial */
} planner;

/* ---- one trial ---- */

static void hear(void *user, rt_dim a, rt_dim b, rt_match how, bool is_certain) {
    planner *p = user;
    (void)is_certain;
    if (how != RT_MATCH_MULTIPLE && p->match_count < MAX_MATCHES)
        p->matches[p->match_count++] = (match){a, b, how};
}

/* dims: sizes of the inputs in the trial's own module. */
static pass_trial_end try(planner *p, pass_trial *t, rt_dim dims[MAX_INPUTS][HIGH_RANK],
                          pass_trial_count *count) {
    size_t n = p->f->body->parameter_count;
    rt_fact *facts = TS_NEW_ARRAY(p->ctx->scratch, rt_fact, n + 1);
    for (size_t i = 0; i < n; i++) {
        rt_value d = p->f->defaults[i];
        if (!p->is_default[i])
            continue;
        facts[i] = (rt_fact){.kind = d.tag == RT_TAG_NONE ? RT_FACT_NONE : RT_FACT_BOOL,
                             .is_known = true,
                             .dim = d.as.i,
                             .dtype = RT_DTYPE_UNKNOWN,
                             .rank = -1};
        if (d.tag == RT_TAG_NONE)
            facts[i].dim = RT_DIM_UNKNOWN;
    }
    for (size_t i = 0; i < p->input_count; i++) {
        const input *in = &p->inputs[i];
        facts[in->index] = (rt_fact){.kind = RT_FACT_TENSOR,
                                     .dim = RT_DIM_UNKNOWN,
                                     .dtype = in->dtype,
                                     .rank = in->rank,
                                     .dims = dims[i]};
    }
    p->match_count = 0;
    return pass_trial_guess(t, facts, p->limit, hear, p, count);
}

/* A symbol for each size. */
static void name_sizes(planner *p, pass_trial *t) {
    for (size_t i = 0; i < p->input_count; i++)
        for (int d = 0; d < p->inputs[i].rank; d++)
            p->dims[i][d] = ir_dim_fresh(pass_trial_sizes(t));
}

typedef struct score {
    bool fails;
    size_t untyped, unsized, misfits, operators;
} score;

static score score_of(planner *p) {
    pass_trial_count count;
    ts_arena_mark mark = ts_arena_save(p->ctx->scratch);
    pass_trial *t = p->trial;
    pass_trial_begin(t);
    name_sizes(p, t);
    pass_trial_end end = try(p, t, p->dims, &count);
    ts_arena_restore(p->ctx->scratch, mark);
    return (score){end != PASS_TRIAL_RETURNS, count.untyped, count.unsized, count.misfits,
                   count.operators};
}

/* Below 0: a is better. */
static int compare(const score *a, const score *b) {
    if (a->fails != b->fails)
        return a->fails ? 1 : -1;
    if (a->untyped != b->untyped)
        return a->untyped < b->untyped ? -1 : 1;
    if (a->misfits != b->misfits)
        return a->misfits < b->misfits ? -1 : 1;
    return 0;
}

/* ---- dtypes and ranks ---- */

static bool needs_allow(const planner *p, size_t parameter, ir_need_kind kind, int bit) {
    for (size_t i = 0; i < p->f->need_count; i++) {
        const ir_need *n = &p->f->needs[i];
        if (n->kind == kind && n->input == parameter && !(n->value >> bit & 1))
            return false;
    }
    return true;
}

/* The best type of one input, given what the others are taken to be; like the one before where
 * others are as good, as a mask beside token numbers is. */
static void choose(planner *p, size_t at) {
    static const rt_dtype dtypes[] = {RT_float32, RT_int64};
    input *in = &p->inputs[at];
    const input *previous = at ? &p->inputs[at - 1] : NULL;
    input best = {.index = in->index, .dtype = RT_DTYPE_UNKNOWN, .rank = -1};
    *in = best;
    score open = score_of(p), best_score = open;
    size_t as_good = 0;
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
        for (int rank = LOW_RANK; rank <= HIGH_RANK; rank++) {
            if (!needs_allow(p, in->index, IR_NEED_RANK, rank) ||
                !needs_allow(p, in->index, IR_NEED_DTYPE, dtypes[k]))
                continue;
            *in = (input){.index = in->index, .dtype = dtypes[k], .rank = rank};
            score s = score_of(p);
            int order = compare(&s, &best_score);
            bool is_tie = order == 0 && best.rank >= 0;
            bool like_previous =
                is_tie && previous && previous->rank == rank && previous->dtype == dtypes[k];
            as_good += is_tie && best.dtype == dtypes[k];
            /* Fewer operators: nothing is unsqueezed first. */
            bool is_shorter =
                is_tie && best.dtype == dtypes[k] && s.operators < best_score.operators;
            if (s.fails || order > 0 || (is_tie && !like_previous && !is_shorter))
                continue;
            if (order < 0)
                as_good = 0;
            in->is_like = like_previous;
            best = *in;
            best_score = s;
        }
    best.is_free = as_good >= 2 && best.dtype == RT_float32;
    bool says_types = best_score.untyped < open.untyped || best_score.misfits != open.misfits;
    if (!says_types && best_score.unsized >= open.unsized && !open.fails)
        best.rank = -1; /* it says nothing */
    if (best.rank < 0)
        best.dtype = RT_DTYPE_UNKNOWN;
    *in = best;
}

/* Each in turn, and again, as the first ones were chosen without what comes behind. */
static void choose_in_order(planner *p, bool backwards, const input *start) {
    size_t n = p->input_count;
    for (size_t i = 0; i < n; i++) {
        size_t index = p->inputs[i].index;
        p->inputs[i] = *start;
        p->inputs[i].index = index;
    }
    for (size_t k = 0; k < 2 * n; k++)
        choose(p, backwards ? n - 1 - k % n : k % n);
}

/* What an input is may show only by the others: in one order or the other, or where all are taken
 * to be something at first (a sum of two). */
static void choose_all(planner *p) {
    static const input nothing = {.dtype = RT_DTYPE_UNKNOWN, .rank = -1};
    static const input matrix = {.dtype = RT_float32, .rank = 2};
    input best[MAX_INPUTS];
    score best_score = {.fails = true};
    for (int way = 0; way < (p->input_count > 1 ? 3 : 1); way++) {
        choose_in_order(p, way == 1, way == 2 ? &matrix : &nothing);
        score s = score_of(p);
        if (way && compare(&s, &best_score) >= 0)
            continue;
        best_score = s;
        memcpy(best, p->inputs, sizeof best);
    }
    memcpy(p->inputs, best, sizeof best);
}

/* ---- sizes ---- */

/* What the sizes of all inputs are: a constant, or the first size that is the same. */
typedef struct solution {
    rt_dim dims[MAX_INPUTS][HIGH_RANK];
    pass_trial_count count;
    bool has_likely; /* some are only likely */
} solution;

static void replace_size(const planner *p, solution *s, rt_dim old, rt_dim with) {
    for (size_t i = 0; i < p->input_count; i++)
        for (int d = 0; d < p->inputs[i].rank; d++)
            if (s->dims[i][d] == old)
                s->dims[i][d] = with;
}

/* The size that a symbol has become, or unknown where it is none of an input. */
static rt_dim current(const planner *p, const solution *s, rt_dim symbol) {
    if (rt_dim_is_constant(symbol))
        return symbol;
    for (size_t i = 0; i < p->input_count; i++)
        for (int d = 0; d < p->inputs[i].rank; d++)
            if (p->dims[i][d] == symbol)
                return s->dims[i][d];
    return RT_DIM_UNKNOWN;
}

/* Makes two sizes one; false where they are, or cannot be. */
static bool join(const planner *p, solution *s, rt_dim a, rt_dim b) {
    rt_dim left = current(p, s, a), right = current(p, s, b);
    bool is_open = left != RT_DIM_UNKNOWN && right != RT_DIM_UNKNOWN && left != right &&
                   !(rt_dim_is_constant(left) && rt_dim_is_constant(right));
    if (!is_open)
        return false;
    bool to_left = rt_dim_is_constant(left);
    replace_size(p, s, to_left ? right : left, to_left ? left : right);
    return true;
}

static bool apply(const planner *p, const ir_module *sizes, solution *s, rt_match how) {
    bool any = false;
    for (size_t k = 0; k < p->match_count; k++) {
        const match *x = &p->matches[k];
        rt_dim a, b;
        rt_match kind;
        if (x->how == how && pass_trial_simplify(sizes, x->a, x->b, how, &a, &b, &kind) &&
            kind == how)
            any |= join(p, s, a, b);
    }
    return any;
}

/* An input that was taken to be like the one before it has its sizes, too. */
static bool join_like(const planner *p, solution *s) {
    bool any = false;
    for (size_t i = 1; i < p->input_count; i++)
        for (int d = 0; p->inputs[i].is_like && d < p->inputs[i].rank; d++)
            any |= join(p, s, p->dims[i - 1][d], p->dims[i][d]);
    return any;
}

/* Until nothing more follows: what has become one lets rules see more. False: it cannot be. */
static bool solve(planner *p, pass_trial *t, bool likely, solution *s) {
    const ir_module *sizes = pass_trial_sizes(t);
    bool more = true;
    *s = (solution){.has_likely = false};
    memcpy(s->dims, p->dims, sizeof s->dims);
    for (int round = 0; more && round < ROUNDS; round++) {
        if (try(p, t, s->dims, &s->count) != PASS_TRIAL_RETURNS)
            return false;
        more = apply(p, sizes, s, RT_MATCH_MUST);
        bool guessed = likely && apply(p, sizes, s, RT_MATCH_OR_ONE);
        if (likely && join_like(p, s))
            guessed = true;
        s->has_likely |= guessed;
        more |= guessed;
    }
    return true;
}

/* ---- plans ---- */

static pass_plan plan_of(planner *p, const solution *s) {
    ir_module *m = p->m;
    pass_plan plan = {
        TS_NEW_ARRAY(p->ctx->scratch, const ir_type *, p->f->body->parameter_count + 1)};
    rt_dim known[MAX_INPUTS * HIGH_RANK], named[MAX_INPUTS * HIGH_RANK];
    size_t count = 0;
    for (size_t i = 0; i < p->input_count; i++) {
        const input *in = &p->inputs[i];
        rt_dim dims[HIGH_RANK];
        for (int d = 0; d < in->rank; d++) {
            dims[d] = s->dims[i][d];
            size_t k = 0;
            while (k < count && known[k] != dims[d])
                k++;
            if (rt_dim_is_constant(dims[d]))
                continue;
            if (k == count) {
                known[count] = dims[d];
                named[count++] = ir_dim_fresh(m);
            }
            dims[d] = named[k];
        }
        if (in->rank >= 0)
            plan.types[in->index] = ir_type_tensor(m, in->dtype, in->rank, dims, IR_LAYOUT_ANY);
    }
    return plan;
}

/* Symbols of a list that are sizes of inputs become a constant; false where there are none. */
static bool set_all(const planner *p, solution *s, const rt_dim *items, size_t count,
                    rt_dim value) {
    bool any = false;
    for (size_t k = 0; k < count; k++)
        any |= join(p, s, items[k], value);
    return any;
}

/* Rows that are a product of sizes: all of them. */
static bool set_factors(const planner *p, const ir_module *sizes, solution *s, rt_dim d,
                        int depth) {
    ir_dim_node n = ir_dim_get(sizes, d);
    if (n.kind != IR_DIM_MUL || depth > MAX_INPUTS)
        return n.kind == IR_DIM_SYMBOL && join(p, s, d, 1);
    bool left = set_factors(p, sizes, s, n.a, depth + 1);
    return set_factors(p, sizes, s, n.b, depth + 1) || left;
}

/* One row for every product with weights. Several sizes are one only where there are inputs of
 * another kind as well, such as what a decoder keeps of the tokens before: it goes on token by
 * token. */
static bool set_one_row(const planner *p, const ir_module *sizes, solution *s) {
    const pass_trial_count *n = &s->count;
    bool any = set_all(p, s, n->rows, n->row_count, 1), has_state = false;
    for (size_t i = 1; i < p->input_count; i++)
        has_state |= p->inputs[i].dtype != p->inputs[0].dtype && p->inputs[i].rank > 3;
    for (size_t k = 0; has_state && !any && k < n->row_count; k++)
        any = set_factors(p, sizes, s, n->rows[k], 0);
    return any;
}

/* Adds plans for the types that were guessed, the most general last: `special` ones where a kernel
 * of its own takes a size, and one without what is only likely. */
static size_t add_plans(planner *p, pass_plan *out, bool with_special, bool with_image, bool with_sure) {
    solution likely, sure;
    size_t made = 0;
    pass_trial *t = p->trial;
    pass_trial_begin(t);
    name_sizes(p, t);
    if (!solve(p, t, true, &likely) && !solve(p, t, false, &likely))
        return 0;
    solution one_row = likely, head = likely, image = likely;
    if (with_special && set_one_row(p, pass_trial_sizes(t), &one_row))
        out[made++] = plan_of(p, &one_row);
    else if (with_special &&
             set_all(p, &head, likely.count.heads, likely.count.head_count, USUAL_HEAD))
        out[made++] = plan_of(p, &head);
    else if (with_image && set_all(p, &image, likely.count.images, likely.count.image_count, 1))
        out[made++] = plan_of(p, &image);
    out[made++] = plan_of(p, &likely);
    if (with_sure && likely.has_likely && solve(p, t, false, &sure))
        out[made++] = plan_of(p, &sure);
    return made;
}

/* Where nothing says which rank the inputs have: the usual ones, all the same. */
static size_t add_ranks(planner *p, pass_plan *out) {
    size_t made = 0;
    for (int rank = 4; rank >= 2; rank--) {
        for (size_t i = 0; i < p->input_count; i++)
            p->inputs[i] = (input){.index = p->inputs[i].index, .dtype = RT_float32, .rank = rank};
        made += add_plans(p, out + made, true, false, false);
    }
    return made;
}

static bool is_unknown(const ir_value *v) {
    return v->type->kind == IR_TENSOR && v->type->dtype == RT_DTYPE_UNKNOWN && v->type->rank < 0 &&
           v->use_count > 0;
}

size_t pass_plan_inputs(pass_context *ctx, ir_module *m, const ir_function *f, size_t copies,
                        const bool *is_default, pass_plan out[PASS_MAX_PLANS]) {
    planner *p = TS_NEW(ctx->scratch, planner);
    *p = (planner){.ctx = ctx, .m = m, .f = f, .is_default = is_default};
    p->matches = TS_NEW_ARRAY(ctx->scratch, match, MAX_MATCHES);
    out[0].types = TS_NEW_ARRAY(ctx->scratch, const ir_type *, f->body->parameter_count + 1);
    for (size_t i = 0; i < f->body->parameter_count; i++)
        if (is_unknown(f->body->parameters[i]) && p->input_count < MAX_INPUTS)
            p->inputs[p->input_count++] =
                (input){.index = i, .dtype = RT_DTYPE_UNKNOWN, .rank = -1};
    if (!p->input_count)
        return 1;
    p->trial = pass_trial_make(ctx, m, f);
    p->limit = STEPS / (p->input_count * 6 * (1 + 2 * (HIGH_RANK - LOW_RANK + 1)));
    choose_all(p);
    size_t guessed = 0, free_count = 0;
    for (size_t i = 0; i < p->input_count; i++) {
        guessed += p->inputs[i].rank >= 0;
        free_count += p->inputs[i].rank >= 0 && p->inputs[i].is_free;
    }
    if (!guessed)
        return 1;
    size_t made;
    if (free_count < p->input_count)
        made = add_plans(p, out, copies >= 1, true, copies >= FEW_COPIES);
    else
        made = copies >= FEW_COPIES ? add_ranks(p, out) : 0;
    /* Where an input was only taken to be token numbers like the one before (it may be a mask of
     * another dtype): a path that leaves it open. */
    bool any_like = false;
    for (size_t i = 0; i < p->input_count; i++) {
        input *in = &p->inputs[i];
        any_like |= in->is_like && in->dtype == RT_int64;
        if (in->is_like && in->dtype == RT_int64)
            *in = (input){.index = in->index, .dtype = RT_DTYPE_UNKNOWN, .rank = -1};
    }
    if (any_like && made && made < PASS_MAX_PLANS)
        made += add_plans(p, out + made, false, false, false);
    return made ? made : 1;
}

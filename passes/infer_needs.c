/* passes/infer_needs.c - what the inputs of an entry must satisfy for it to return at all.
 *
 *   func @forward(%x: Tensor) -> Tensor entry { linear(%x, WEIGHT of [10, 784], ...) ... }
 *     =>  ... entry needs(x dtype float32, x rank 1|2|3|4|5|6|7|8, x[-1] = 784)
 *
 * Found by trial: an input is taken to be of one rank (dtype) after the other, and the rules of the
 * operators that every run reaches say whether that must fail, and which sizes must then match. So
 * nothing is refused that the program would have taken: what lies in a loop or in a branch that
 * hangs on anything else asks nothing. The runtime checks the needs where the entry is called. What
 * lies behind a raise of the program's own, a write, a draw or a print, and what such a raise
 * tests, is a need that is marked `own`: it is only listed, and the program itself raises, in its
 * own order. Needs: inline, freeze (weights say most of it). Keeps: everything. Cost: up to some
 * hundred trials of the first operators, bounded by STEPS. */
#include "passes/trial.h"

enum {
    STEPS = 400000,         /* operators that all trials of an entry may look at */
    MAX_COMBINATIONS = 128, /* of ranks */
    MAX_MATCHES = 256,
    MAX_NEEDS = 64,
    SIZED_RANKS = 6, /* TSM_NEED_SIZED_RANKS: the runtime asks no more */
    MAX_INPUTS = 16
};

typedef struct input {
    size_t index; /* of the parameter */
    const ir_type *type;
    uint32_t ranks;     /* a bit each: that do not fail at once */
    uint32_t own_ranks; /* with which the program does not raise either */
} input;

typedef struct match {
    rt_dim a, b;
    rt_match how;
    bool is_certain;
} match;

typedef struct search {
    pass_context *ctx;
    ir_module *m;
    ir_function *f;
    pass_trial *trial;
    input inputs[MAX_INPUTS];
    size_t input_count, limit;
    match matches[MAX_MATCHES]; /* of the last trial */
    size_t match_count;
    ir_need *needs;
    size_t need_count;
} search;

/* ---- one trial ---- */

static void hear(void *user, rt_dim a, rt_dim b, rt_match how, bool is_certain) {
    search *s = user;
    if (how != RT_MATCH_OR_ONE && s->match_count < MAX_MATCHES)
        s->matches[s->match_count++] = (match){a, b, how, is_certain};
}

/* Rank -1: as declared. */
typedef struct guess {
    int ranks[MAX_INPUTS];
    rt_dtype dtype; /* of the input `of`, or unknown */
    size_t of;
} guess;

static guess no_guess(const search *s) {
    guess g = {.dtype = RT_DTYPE_UNKNOWN};
    for (size_t i = 0; i < s->input_count; i++)
        g.ranks[i] = -1;
    return g;
}

/* dims[i][d] are the symbols that stand for the sizes of input i. */
static pass_trial_end try(search *s, const guess *g, rt_dim dims[MAX_INPUTS][IR_NEED_RANKS],
                          ir_module **out_sizes) {
    pass_trial *t = s->trial;
    pass_trial_begin(t);
    ir_module *sizes = *out_sizes = pass_trial_sizes(t);
    rt_fact *facts = TS_NEW_ARRAY(s->ctx->scratch, rt_fact, s->f->body->parameter_count + 1);
    for (size_t i = 0; i < s->input_count; i++) {
        const ir_type *type = s->inputs[i].type;
        rt_fact *fact = &facts[s->inputs[i].index];
        *fact = (rt_fact){.kind = RT_FACT_TENSOR,
                          .dim = RT_DIM_UNKNOWN,
                          .dtype = type->dtype,
                          .rank = g->ranks[i]};
        if (i == g->of && g->dtype != RT_DTYPE_UNKNOWN)
            fact->dtype = g->dtype;
        for (int d = 0; d < g->ranks[i]; d++) {
            bool is_given = type->rank >= 0 && rt_dim_is_constant(type->dims[d]);
            dims[i][d] = is_given ? type->dims[d] : ir_dim_fresh(sizes);
        }
        fact->dims = dims[i];
    }
    s->match_count = 0;
    return pass_trial_run(t, facts, s->limit, hear, s);
}

static pass_trial_end end_of(search *s, const guess *g) {
    rt_dim dims[MAX_INPUTS][IR_NEED_RANKS];
    ir_module *sizes;
    ts_arena_mark mark = ts_arena_save(s->ctx->scratch);
    pass_trial_end end = try(s, g, dims, &sizes);
    ts_arena_restore(s->ctx->scratch, mark);
    return end;
}

static void add_need(search *s, ir_need need) {
    if (s->need_count < MAX_NEEDS)
        s->needs[s->need_count++] = need;
}

/* ---- ranks and dtypes ---- */

/* Bits of what will do, of `all`: a need where not all of them will. */
static void add_choice(search *s, ir_need_kind kind, size_t index, int64_t bits, int64_t own,
                       int64_t all) {
    if (bits && bits != all)
        add_need(s, (ir_need){.kind = kind, .input = index, .value = bits});
    if (own && own != bits)
        add_need(s, (ir_need){.kind = kind, .input = index, .value = own, .is_own = true});
}

static void find_ranks(search *s, size_t i) {
    input *in = &s->inputs[i];
    if (in->type->rank >= 0) {
        in->ranks = in->own_ranks = in->type->rank < IR_NEED_RANKS ? 1u << in->type->rank : 0;
        return;
    }
    for (int rank = 0; rank < IR_NEED_RANKS; rank++) {
        guess g = no_guess(s);
        g.ranks[i] = rank;
        pass_trial_end end = end_of(s, &g);
        in->ranks |= (uint32_t)(end != PASS_TRIAL_FAILS) << rank;
        in->own_ranks |= (uint32_t)(end == PASS_TRIAL_RETURNS) << rank;
    }
    add_choice(s, IR_NEED_RANK, in->index, in->ranks, in->own_ranks, (1 << IR_NEED_RANKS) - 1);
}

/* The best that comes out with any rank. */
static pass_trial_end end_of_dtype(search *s, size_t i, rt_dtype dtype) {
    pass_trial_end best = PASS_TRIAL_FAILS;
    for (int rank = 0; rank < IR_NEED_RANKS && best != PASS_TRIAL_RETURNS; rank++) {
        guess g = no_guess(s);
        g.ranks[i] = rank;
        g.dtype = dtype;
        g.of = i;
        pass_trial_end end = s->inputs[i].ranks >> rank & 1 ? end_of(s, &g) : PASS_TRIAL_FAILS;
        best = end < best ? end : best;
    }
    return best;
}

static void find_dtypes(search *s, size_t i) {
    int64_t bits = 0, own = 0;
    if (s->inputs[i].type->dtype != RT_DTYPE_UNKNOWN || !s->inputs[i].ranks)
        return;
    for (int d = 0; d < RT_DTYPE_COUNT; d++) {
        pass_trial_end end = end_of_dtype(s, i, (rt_dtype)d);
        bits |= (int64_t)(end != PASS_TRIAL_FAILS) << d;
        own |= (int64_t)(end == PASS_TRIAL_RETURNS) << d;
    }
    add_choice(s, IR_NEED_DTYPE, s->inputs[i].index, bits, own, (1 << RT_DTYPE_COUNT) - 1);
}

/* ---- sizes ---- */

/* What a combination of ranks asks: known[i][d] is a constant, or the first symbol that is the
 * same; multiple[i][d] a divisor, or 1. */
typedef struct asked {
    int ranks[MAX_INPUTS];
    rt_dim known[MAX_INPUTS][IR_NEED_RANKS];
    int64_t multiple[MAX_INPUTS][IR_NEED_RANKS];
} asked;

typedef struct place {
    size_t input;
    int dim;
} place;

static bool find_symbol(const search *s, const guess *g, rt_dim dims[MAX_INPUTS][IR_NEED_RANKS],
                        rt_dim symbol, place *out) {
    for (size_t i = 0; i < s->input_count; i++)
        for (int d = 0; d < g->ranks[i]; d++)
            if (dims[i][d] == symbol) {
                *out = (place){i, d};
                return true;
            }
    return false;
}

static void replace_known(const search *s, asked *out, rt_dim old, rt_dim with) {
    for (size_t i = 0; i < s->input_count; i++)
        for (int d = 0; d < out->ranks[i]; d++)
            if (out->known[i][d] == old)
                out->known[i][d] = with;
}

/* False where the combination asks nothing: it must fail, or, for own needs, raises. */
static bool ask(search *s, const guess *g, bool is_own, asked *out) {
    rt_dim dims[MAX_INPUTS][IR_NEED_RANKS];
    ir_module *sizes;
    pass_trial_end end = try(s, g, dims, &sizes);
    memcpy(out->ranks, g->ranks, sizeof out->ranks);
    for (size_t i = 0; i < s->input_count; i++)
        for (int d = 0; d < g->ranks[i]; d++) {
            out->known[i][d] = dims[i][d];
            out->multiple[i][d] = 1;
        }
    for (size_t k = 0; k < s->match_count && end != PASS_TRIAL_FAILS; k++) {
        rt_dim a, b;
        rt_match how;
        place at, other;
        if ((!is_own && !s->matches[k].is_certain) ||
            !pass_trial_simplify(sizes, s->matches[k].a, s->matches[k].b, s->matches[k].how, &a, &b,
                                 &how) ||
            !find_symbol(s, g, dims, a, &at))
            continue;
        rt_dim was = out->known[at.input][at.dim];
        if (how == RT_MATCH_MULTIPLE) {
            out->multiple[at.input][at.dim] = b;
        } else if (rt_dim_is_constant(b)) {
            if (rt_dim_is_constant(was) && was != b)
                return false;
            replace_known(s, out, was, b);
        } else if (find_symbol(s, g, dims, b, &other)) {
            rt_dim is = out->known[other.input][other.dim];
            if (rt_dim_is_constant(was) && rt_dim_is_constant(is) && was != is)
                return false;
            replace_known(s, out, rt_dim_is_constant(is) ? was : is,
                          rt_dim_is_constant(is) ? is : was);
        }
    }
    return is_own ? end == PASS_TRIAL_RETURNS : end != PASS_TRIAL_FAILS;
}

/* The dim of a combination that a need names, or -1. */
static int dim_in(const asked *a, size_t i, int dim) {
    int at = dim < 0 ? dim + a->ranks[i] : dim;
    return at >= 0 && at < a->ranks[i] ? at : -1;
}

static size_t input_of(const search *s, size_t parameter) {
    size_t i = 0;
    while (s->inputs[i].index != parameter)
        i++;
    return i;
}

static bool holds(const search *s, const asked *a, const ir_need *need, bool *out_says) {
    size_t i = input_of(s, need->input), j = input_of(s, need->other);
    int d = dim_in(a, i, need->dim), e = dim_in(a, j, need->other_dim);
    *out_says = false;
    if (d < 0 || (need->kind == IR_NEED_SAME && e < 0))
        return true; /* nothing is asked then */
    *out_says = true;
    if (need->kind == IR_NEED_SIZE)
        return a->known[i][d] == need->value;
    if (need->kind == IR_NEED_MULTIPLE)
        return a->multiple[i][d] % need->value == 0;
    return a->known[i][d] == a->known[j][e];
}

/* In every combination that has these dims, and most have them. */
static bool holds_always(const search *s, const asked *all, size_t count, const ir_need *need) {
    size_t said = 0;
    for (size_t k = 0; k < count; k++) {
        bool says;
        if (!holds(s, &all[k], need, &says))
            return false;
        said += says;
    }
    return 2 * said > count;
}

static bool has_size_need(const search *s, const ir_need *need, const asked *a) {
    size_t i = input_of(s, need->input);
    for (size_t k = 0; k < s->need_count; k++) {
        const ir_need *n = &s->needs[k];
        bool same_dim = n->input == need->input && n->kind >= IR_NEED_SIZE &&
                        dim_in(a, i, n->dim) == dim_in(a, i, need->dim);
        if (same_dim && (n->kind == need->kind || n->kind == IR_NEED_SIZE) &&
            (n->kind != IR_NEED_SAME || n->other == need->other))
            return true;
    }
    return false;
}

/* The dims of one combination, counted from the front and from the end. A size of its own that
 * the type declares is checked with the type. */
static void find_sizes_from(search *s, const asked *all, size_t count, const asked *a,
                            bool is_own) {
    for (size_t i = 0; i < s->input_count; i++)
        for (int d = 0; d < a->ranks[i]; d++)
            for (int from_end = 0; from_end < 2; from_end++) {
                int at = from_end ? d - a->ranks[i] : d;
                const ir_type *t = s->inputs[i].type;
                ir_need need = {.input = s->inputs[i].index,
                                .other = s->inputs[i].index,
                                .dim = at,
                                .is_own = is_own};
                bool is_declared = t->rank >= 0 && rt_dim_is_constant(t->dims[d]);
                if (is_declared)
                    continue;
                need.kind = IR_NEED_SIZE;
                need.value = a->known[i][d];
                if (rt_dim_is_constant(need.value) && holds_always(s, all, count, &need) &&
                    !has_size_need(s, &need, a))
                    add_need(s, need);
                need.kind = IR_NEED_MULTIPLE;
                need.value = a->multiple[i][d];
                if (need.value > 1 && holds_always(s, all, count, &need) &&
                    !has_size_need(s, &need, a))
                    add_need(s, need);
                need.kind = IR_NEED_SAME;
                for (size_t j = 0; j <= i; j++)
                    for (int e = 0; e < a->ranks[j] && (j < i || e < d); e++) {
                        need.other = s->inputs[j].index;
                        need.other_dim = from_end ? e - a->ranks[j] : e;
                        need.value = 0;
                        if (a->known[j][e] == a->known[i][d] &&
                            !rt_dim_is_constant(a->known[i][d]) &&
                            holds_always(s, all, count, &need) && !has_size_need(s, &need, a))
                            add_need(s, need);
                    }
            }
}

/* The next combination of ranks; false after the last. */
static bool advance(const search *s, guess *g) {
    for (size_t i = 0; i < s->input_count; i++) {
        for (int rank = g->ranks[i] + 1; rank < SIZED_RANKS; rank++)
            if (s->inputs[i].ranks >> rank & 1) {
                g->ranks[i] = rank;
                return true;
            }
        int first = 0;
        while (!(s->inputs[i].ranks >> first & 1))
            first++;
        g->ranks[i] = first;
    }
    return false;
}

static void find_sizes(search *s, bool is_own) {
    guess g = no_guess(s);
    size_t total = 1;
    for (size_t i = 0; i < s->input_count; i++) {
        size_t own = 0;
        for (int rank = SIZED_RANKS - 1; rank >= 0; rank--)
            if (s->inputs[i].ranks >> rank & 1) {
                own++;
                g.ranks[i] = rank;
            }
        if (!own || (total *= own) > MAX_COMBINATIONS)
            return;
    }
    asked *all = TS_NEW_ARRAY(s->ctx->scratch, asked, total);
    size_t count = 0;
    do {
        ts_arena_mark mark = ts_arena_save(s->ctx->scratch);
        count += ask(s, &g, is_own, &all[count]);
        ts_arena_restore(s->ctx->scratch, mark);
    } while (advance(s, &g));
    if (count)
        find_sizes_from(s, all, count, &all[0], is_own);
    if (count > 1) /* dims that the lowest ranks do not have */
        find_sizes_from(s, all, count, &all[count - 1], is_own);
}

/* ---- the pass ---- */

static void visit(pass_context *ctx, ir_module *m, ir_function *f) {
    search *s = TS_NEW(ctx->scratch, search);
    *s = (search){.ctx = ctx, .m = m, .f = f};
    s->needs = TS_NEW_ARRAY(m->arena, ir_need, MAX_NEEDS);
    size_t open = 0;
    for (size_t i = 0; i < f->body->parameter_count; i++) {
        const ir_value *p = f->body->parameters[i];
        if (p->type->kind != IR_TENSOR || !p->use_count)
            continue;
        if (s->input_count == MAX_INPUTS)
            return;
        s->inputs[s->input_count++] = (input){.index = i, .type = p->type};
        open += p->type->rank < 0 || p->type->dtype == RT_DTYPE_UNKNOWN;
    }
    if (!s->input_count)
        return;
    s->trial = pass_trial_make(ctx, m, f);
    s->limit = STEPS / (2 * MAX_COMBINATIONS + open * (IR_NEED_RANKS + RT_DTYPE_COUNT * 2));
    for (size_t i = 0; i < s->input_count; i++)
        find_ranks(s, i);
    for (size_t i = 0; i < s->input_count; i++)
        find_dtypes(s, i);
    find_sizes(s, false);
    find_sizes(s, true);
    f->needs = s->needs;
    f->need_count = s->need_count;
    pass_count(ctx, "needs", (int64_t)s->need_count);
}

ts_status pass_infer_needs(pass_context *ctx, ir_module *m) {
    for (ir_function *f = m->functions; f; f = f->next)
        if (f->is_entry && f->body)
            visit(ctx, m, f);
    return NULL;
}

/* passes/pipeline.c - the order of the passes and the manager that runs them.
 *
 * The manager verifies, dumps, counts and writes the reproducer; passes only change IR. */
#include "passes/pass_internal.h"

#include <stdio.h>
#include <time.h>

static const pass_info table[] = {
#define PASS(name, summary, level) {#name, summary, level, pass_##name},
#include "passes/passes.def"
};

/* Each with the reason for its place. A name without a row in passes.def is passed over. What stands
 * between { and } is repeated while one of its passes, inference aside, still changes something: a
 * size that became known decides a branch, which frees a list, whose length ends a loop. What begins
 * with ? runs only where the program asks for gradients. */
static const char *const order[] = {
    "inline",              /* everything after sees one function for each entry */
    "freeze",             /* weights tell what inputs to expect */
    "infer_needs",        /* while each body is there once, with its own tests and raises */
    "specialise_entries", /* a copy of each body, while it is small */
    "{",
    "freeze",             /* weights and settings become constants; what dead branches wrote, too */
    "fold_constants",     /* decides branches on settings, so that dead calls and loops go */
    "unroll_loops",       /* loops over constant ranges; makes more constants */
    "replace_aggregates", /* tuples of calls and lists of layers */
    "forward_attributes", /* once branches on settings are decided and layers written out */
    "eliminate_dead",     /* fewer writes to analyse */
    "scalar_tensors",     /* sizes as numbers */
    "infer_types",        /* functional form needs ranks and dtypes */
    "settle_requires_grad", /* while marks and writes stand in the program */
    "settle_indices",     /* ranks decide what is a view, and so what a write reaches */
    "functionalise",      /* values only, from here on */
    "}",
    "refuse_requires_grad", /* branches and loops are what they will be */
    "{",
    "differentiate", /* while operators are whole and their types known */
    "?decompose",    /* formulas of the library, for gradients of gradients; what was opened */
    "?infer_types",
    "fold_constants", /* a gradient is not None */
    "?unroll_loops",  /* over layers and taps of formulas */
    "replace_aggregates",
    "eliminate_dead",
    "infer_types",
    "?settle_indices",
    "?functionalise", /* what was opened may write into tensors of its own */
    "}",
    "eliminate_common",
    "eliminate_dead",
    "fold_batch_norm", /* before algebra takes the batch norm apart */
    "simplify_algebra",
    "open_operators", /* after batch norms and names of convolutions */
    "decompose", /* library calls that came up on the way */
    "{",
    "infer_types", /* what was rewritten */
    "open_quantized", /* nothing before looks into quantized operators; scales are constants by now */
    "fold_constants",
    "unroll_loops",
    "replace_aggregates",
    "functionalise",
    "simplify_algebra",
    "eliminate_common",
    "eliminate_dead",
    "}",
    "guard_operators",   /* of what is still not known */
    "infer_types",       /* on the guarded paths */
    "expand_composites", /* nothing looks for whole cells or attention any more */
    "fold_embedding", /* products that cells were made of, too */
    "fold_gates",      /* while products and convolutions are operators */
    "round_embedding", /* of the tables that are left; its product joins kernels */
    "fuse", /* from here on for one target */
    "eliminate_dead",
    "prune_objects", /* folded weights leave their originals behind */
    "assign_layout", /* of what lives between kernels */
    "split_reductions", /* where channels are innermost */
    "stream_images",    /* while a kernel is one nest or product; the image has no memory then */
    "plan_memory", /* last: offsets hold for exactly these operators */
};

enum { MAX_ROUNDS = 8 };

const pass_info *pass_table(size_t *out_count) {
    *out_count = sizeof table / sizeof table[0];
    return table;
}

const pass_info *pass_find(ts_str name) {
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (ts_str_is(name, table[i].name))
            return &table[i];
    return NULL;
}

void pass_count(pass_context *ctx, const char *name, int64_t n) {
    if (n)
        ctx->changed = true;
    for (size_t i = 0; i < ctx->counter_count; i++)
        if (strcmp(ctx->counters[i].name, name) == 0) {
            ctx->counters[i].value += n;
            return;
        }
    if (ctx->counters && ctx->counter_count < PASS_COUNTERS)
        ctx->counters[ctx->counter_count++] = (pass_counter){name, n};
}

typedef struct manager {
    pass_context *ctx;
    ir_module *m;
    const pass_options *options;
    ts_buffer statistics;
    int number;
    bool dumps;
} manager;

size_t pass_count_ops(const ir_block *b) {
    size_t count = 0;
    for (const ir_op *op = b->first; op; op = op->next) {
        count++;
        for (size_t i = 0; i < op->region_count; i++)
            count += pass_count_ops(op->regions[i]);
    }
    return count;
}

static size_t count_ops(const ir_module *m) {
    size_t count = 0;
    for (const ir_function *f = m->functions; f; f = f->next)
        count += pass_count_ops(f->body);
    return count;
}

static ts_status dump(manager *mg, const char *name) {
    ts_buffer text = {0};
    char file[80];
    ir_print_module(mg->m, &text, NULL);
    ts_status status = ts_buffer_status(&text);
    if (!status) {
        int length = snprintf(file, sizeof file, "%02d-%s.tsir", mg->number, name);
        mg->ctx->sink(mg->ctx->sink_user, (ts_str){file, (size_t)length},
                      (ts_str){text.data, text.length});
    }
    ts_buffer_deinit(&text);
    return status;
}

/* repro.tsir: the module as the pass left it, with the command that runs the pass alone. */
static void write_repro(manager *mg, const char *name) {
    if (!mg->ctx->sink)
        return;
    ts_buffer text = {0};
    ts_buffer_format(&text, "# RUN: tsc %%s --passes=%s --verify-each --emit=tsir\n", name);
    ir_print_module(mg->m, &text, NULL);
    if (!text.failed)
        mg->ctx->sink(mg->ctx->sink_user, TS_STR("repro.tsir"),
                      (ts_str){text.data, text.length});
    ts_buffer_deinit(&text);
}

static bool wants_dump(const manager *mg, const char *name) {
    const pass_options *o = mg->options;
    if (!mg->ctx->sink)
        return false;
    return o->dump_all || (o->dump_changed && mg->ctx->changed) || ts_str_is(o->dump_one, name);
}

static double now_us(void) {
    struct timespec t;
    if (timespec_get(&t, TIME_UTC) == 0)
        return 0;
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static ts_status run_one(manager *mg, const pass_info *pass) {
    pass_context *ctx = mg->ctx;
    pass_counter counters[PASS_COUNTERS];
    ctx->counters = counters;
    ctx->counter_count = 0;
    ctx->changed = false;
    mg->number++;
    size_t before = mg->dumps ? count_ops(mg->m) : 0;
    size_t bytes = ts_arena_bytes(mg->m->arena);
    double start = now_us();
    ts_arena_mark mark = ts_arena_save(ctx->scratch);
    ts_status status = pass->run(ctx, mg->m);
    ts_arena_restore(ctx->scratch, mark);
    if (ctx->trim)
        ctx->trim(ctx->trim_user);
    double time = now_us() - start;
    if (!status && (mg->options->verify_each || mg->options->check))
        status = ir_verify_module(mg->m);
    if (!status && wants_dump(mg, pass->name))
        status = dump(mg, pass->name);
    if (!status && mg->options->check)
        status = mg->options->check(mg->options->check_user, mg->m, pass->name);
    if (mg->dumps) {
        ts_buffer_format(&mg->statistics, "%d\t%s\t%s\t%zu\t%zu\t%.0f\t%zu\t", mg->number,
                         pass->name, ctx->changed ? "yes" : "no", before, count_ops(mg->m), time,
                         ts_arena_bytes(mg->m->arena) - bytes);
        for (size_t i = 0; i < ctx->counter_count; i++)
            ts_buffer_format(&mg->statistics, "%s%s=%lld", i ? " " : "", counters[i].name,
                             (long long)counters[i].value);
        ts_buffer_char(&mg->statistics, '\n');
    }
    ctx->counters = NULL;
    ctx->counter_count = 0;
    if (status) {
        if (ts_status_code(status) == TS_ERR_INTERNAL) /* the user's own errors need no reproducer */
            write_repro(mg, pass->name);
        return ts_status_context(status, "running the pass %s", pass->name);
    }
    return NULL;
}

static ts_status run_only(manager *mg) {
    const pass_options *o = mg->options;
    for (size_t i = 0; i < o->only_count; i++) {
        const pass_info *pass = pass_find(o->only[i]);
        if (!pass)
            return ts_error_make(TS_ERR_INVALID_INPUT, "there is no pass '%.*s'",
                                 TS_STR_ARG(o->only[i]));
        TS_TRY(run_one(mg, pass));
        if (o->stop_after.length && ts_str_is(o->stop_after, pass->name))
            break;
    }
    return NULL;
}

/* --stop-after counts once: after the last place of that pass in the order. */
static size_t last_position(const pass_options *o) {
    size_t count = sizeof order / sizeof order[0], last = count;
    for (size_t i = 0; i < count; i++)
        if (o->stop_after.length && ts_str_is(o->stop_after, order[i] + (order[i][0] == '?')))
            last = i + 1;
    return last;
}

/* Gradients are made of straight code of known types: without optimisation, too. */
static size_t needed_for_gradients(const ir_module *m) {
    size_t count = sizeof order / sizeof order[0];
    bool any = false;
    for (const ir_function *f = m->functions; f && !any; f = f->next)
        any = pass_asks_for_gradients(f->body);
    for (size_t i = 0; any && i < count; i++)
        if (strcmp(order[i], "differentiate") == 0)
            for (; i < count; i++)
                if (order[i][0] == '}')
                    return i;
    return 0;
}

static ts_status run_order(manager *mg) {
    int level = mg->ctx->target ? mg->ctx->target->opt_level : 2;
    size_t needed = needed_for_gradients(mg->m);
    size_t last = last_position(mg->options), start = 0;
    int rounds = 0;
    bool changed = false;
    for (size_t i = 0; i < last; i++) {
        if (order[i][0] == '{') {
            start = i;
            rounds = 0;
            changed = false;
        } else if (order[i][0] == '}') {
            if (changed && ++rounds < MAX_ROUNDS) {
                changed = false;
                i = start;
            }
        } else {
            if (order[i][0] == '?' && !needed)
                continue;
            const pass_info *pass = pass_find(ts_str_of(order[i] + (order[i][0] == '?')));
            if (!pass || (pass->level > level && (i >= needed || pass->level > 1)))
                continue;
            TS_TRY(run_one(mg, pass));
            changed |= mg->ctx->changed && pass->run != pass_infer_types;
        }
    }
    return NULL;
}

ts_status pass_run_pipeline(pass_context *ctx, ir_module *m, const pass_options *options) {
    manager mg = {.ctx = ctx, .m = m, .options = options};
    mg.dumps = ctx->sink && (options->dump_all || options->dump_changed || options->statistics);
    if (options->stop_after.length && !pass_find(options->stop_after))
        return ts_error_make(TS_ERR_INVALID_INPUT, "there is no pass '%.*s'",
                             TS_STR_ARG(options->stop_after));
    if (mg.dumps)
        ts_buffer_text(&mg.statistics,
                       "number\tpass\tchanged\tops_before\tops_after\ttime_us\tarena_bytes\t"
                       "counters\n");
    ts_status status = ir_verify_module(m);
    if (!status && wants_dump(&mg, "frontend"))
        status = dump(&mg, "frontend");
    if (!status)
        status = options->only ? run_only(&mg) : run_order(&mg);
    /* A broken rule must never reach code generation, whatever the options are. */
    if (!status)
        status = ir_verify_module(m);
    if (mg.dumps && !mg.statistics.failed)
        ctx->sink(ctx->sink_user, TS_STR("passes.tsv"),
                  (ts_str){mg.statistics.data, mg.statistics.length});
    ts_buffer_deinit(&mg.statistics);
    return status;
}

/* tests/ops/case_runner.c - runs the lines of .case files through the reference kernels.
 *
 *   add.Tensor float32[2]{1, 2} float32[]{3} 1 -> float32[2]{4, 5}
 *   select.int float32[2]{1, 2} 0 5 -> !IndexError
 *   append.t [1] 2 => [1, 2]
 *
 * Left: an operator and its arguments, defaults too; or a function of the library, which is typed
 * and evaluated as IR (trailing defaults may be left out). Right: its results, or the exception;
 * after => what the first argument is then.
 * Values: dtype[sizes]{elements}, numbers (1+2j for complex), 'text', True, False, None, cpu, lists
 * [a, b], tuples (a, b), dicts {'k': v}. Floats agree to a relative 2e-6 (16-bit ones exactly). The
 * inference rule of an operator is asked too: what it claims of the results must hold.
 * Random numbers begin as after torch.manual_seed(0).
 *
 * --coverage FILES... names the operators and functions of the library that have no line. A line
 * `@name reason`, or `@start* reason`, says that a name is tested elsewhere. */
#include <stdio.h>
#include <stdlib.h>

#include "frontend/frontend_internal.h"
#include "runtime/base/file.h"
#include "runtime/ops/generator.h"
#include "tests/ops/case_library.h"
#include "tests/ops/case_text.h"

enum { MOST = 64 };

/* ---- the inference rule ---- */

static rt_fact fact_of(ts_arena *arena, rt_value v) {
    rt_fact f = {.kind = RT_FACT_OTHER, .dim = RT_DIM_UNKNOWN, .is_known = true};
    switch (v.tag) {
    case RT_TAG_NONE:
        f.kind = RT_FACT_NONE;
        break;
    case RT_TAG_BOOL:
    case RT_TAG_INT:
        f.kind = v.tag == RT_TAG_INT ? RT_FACT_INT : RT_FACT_BOOL;
        f.dim = v.as.i;
        break;
    case RT_TAG_FLOAT:
        f.kind = RT_FACT_FLOAT;
        f.f = v.as.f;
        break;
    case RT_TAG_COMPLEX:
        f.kind = RT_FACT_COMPLEX;
        break;
    case RT_TAG_STR:
        f.kind = RT_FACT_STR;
        f.s = rt_str_text(v.as.str);
        break;
    case RT_TAG_TENSOR:
        f.kind = RT_FACT_TENSOR;
        f.dtype = (rt_dtype)v.as.tensor->dtype;
        f.rank = v.as.tensor->rank;
        f.dims = v.as.tensor->sizes;
        break;
    case RT_TAG_LIST: {
        rt_fact *items = TS_NEW_ARRAY(arena, rt_fact, v.as.list->count + 1);
        for (size_t i = 0; i < v.as.list->count; i++)
            items[i] = fact_of(arena, v.as.list->items[i]);
        f.kind = RT_FACT_LIST;
        f.count_known = true;
        f.count = v.as.list->count;
        f.items = items;
        break;
    }
    default:
        break;
    }
    return f;
}

static bool fact_holds(const rt_fact *f, rt_value v) {
    switch (f->kind) {
    case RT_FACT_TENSOR: {
        const rt_tensor *t = v.as.tensor;
        if (v.tag != RT_TAG_TENSOR ||
            (f->dtype != RT_DTYPE_UNKNOWN && f->dtype != (rt_dtype)t->dtype) ||
            (f->rank >= 0 && f->rank != t->rank))
            return false;
        for (int d = 0; d < f->rank; d++)
            if (rt_dim_is_constant(f->dims[d]) && f->dims[d] != t->sizes[d])
                return false;
        return true;
    }
    case RT_FACT_BOOL:
    case RT_FACT_INT:
        return !f->is_known || f->dim == v.as.i;
    case RT_FACT_LIST:
        if (v.tag != RT_TAG_LIST || (f->count_known && f->count != v.as.list->count))
            return false;
        for (size_t i = 0; f->items && i < v.as.list->count; i++)
            if (!fact_holds(&f->items[f->count_known ? i : 0], v.as.list->items[i]))
                return false;
        return true;
    case RT_FACT_UNKNOWN:
    case RT_FACT_NONE:
    case RT_FACT_FLOAT:
    case RT_FACT_COMPLEX:
    case RT_FACT_STR:
    case RT_FACT_DEVICE:
    case RT_FACT_OTHER:
        return true;
    }
    return true;
}

/* What the rule says, before the operator may write its arguments. */
static bool ask_rule(ts_arena *arena, rt_op op, const rt_value *args, size_t count,
                     rt_fact *results, size_t out_count) {
    rt_infer_context ic = {.arena = arena, .algebra = NULL};
    rt_fact facts[MOST];
    for (size_t i = 0; i < count; i++)
        facts[i] = fact_of(arena, args[i]);
    ts_status status = rt_op_get(op)->infer(&ic, facts, count, results, out_count);
    bool is_fine = status == NULL;
    ts_status_release(status);
    return is_fine;
}

/* ---- a line ---- */

/* What an operator gave, as a list of results. */
static ts_status run_core(rt_context *context, rt_op op, const rt_value *args, size_t count,
                          rt_value *outs, size_t out_count, const char **out_error) {
    ts_arena *arena = ts_arena_create(0);
    rt_fact facts[MOST] = {{0}};
    bool holds = ask_rule(arena, op, args, count, facts, out_count);
    ts_status status = rt_op_get(op)->ref(context, args, outs);
    for (size_t i = 0; holds && !status && i < out_count; i++)
        holds = fact_holds(&facts[i], outs[i]);
    if (!status && !holds)
        *out_error = "the inference rule claims what does not hold";
    ts_arena_release(arena);
    return status;
}

static ts_status run_library(case_library *library, rt_context *context, ts_str name,
                             const rt_value *args, size_t count, rt_value *outs, size_t out_count,
                             const char **out_error) {
    rt_value result = rt_none();
    ts_status status = NULL;
    if (!library_run(library, context, name, args, count, &result, &status))
        *out_error = "unknown operator, or a function with errors";
    if (!*out_error && !status && result.tag == RT_TAG_TUPLE && result.as.tuple->count >= out_count)
        for (size_t i = 0; i < out_count; i++)
            outs[i] = rt_retain(result.as.tuple->items[i]);
    else
        outs[0] = rt_retain(result);
    rt_release(result);
    return status;
}

static const char *compare(rt_value found, rt_value expected) {
    if (same_values(found, expected))
        return NULL;
    rt_value text;
    must(rt_to_repr(found, &text));
    fprintf(stderr, "found %s\n", text.as.str->data);
    rt_release(text);
    return "a result differs";
}

/* -1 is a number, -> is not: values are read until an arrow. */
static bool at_arrow(const parser *p) {
    return p->at + 1 < p->end && (*p->at == '-' || *p->at == '=') && p->at[1] == '>';
}

static bool parse_values(parser *p, rt_value *values, size_t *count) {
    for (skip_blanks(p); p->at < p->end && !at_arrow(p); skip_blanks(p)) {
        if (p->failed || *count == MOST)
            return false;
        values[(*count)++] = parse_value(p);
    }
    return !p->failed;
}

static const char *run_line(case_library *library, const char *line, size_t length) {
    parser p = {line, line + length, false};
    rt_value args[MOST], outs[MOST], expected[MOST], after[MOST], generator;
    size_t count = 0, out_count = 0, after_count = 0;
    const char *error = NULL;
    while (p.at < p.end && *p.at != ' ')
        p.at++;
    ts_str name = {line, (size_t)(p.at - line)}, raised = {0};
    if (!parse_values(&p, args, &count) || !at_arrow(&p))
        return "the line does not parse";
    if (take(&p, "->")) {
        skip_blanks(&p);
        if (take(&p, "!"))
            raised = (ts_str){p.at, (size_t)(p.end - p.at)};
        else if (!parse_values(&p, expected, &out_count))
            return "the line does not parse";
    }
    if (!raised.length && take(&p, "=>") && !parse_values(&p, after, &after_count))
        return "the line does not parse";
    for (int i = 0; i < MOST; i++)
        outs[i] = rt_none();
    must(rt_generator_make(0, &generator));
    rt_context context = {.thread_budget = 1, .generator = generator.as.generator};
    rt_op op = rt_op_find(name);
    ts_status status = op == OP_COUNT
        ? run_library(library, &context, name, args, count, outs, out_count, &error)
        : run_core(&context, op, args, count, outs, out_count, &error);
    if (error) {
        ;
    } else if (raised.length) {
        if (!status || !ts_str_is(raised, ts_status_exception(status)))
            error = "another exception, or none, was raised";
    } else if (status) {
        fprintf(stderr, "%s\n", ts_status_message(status));
        error = "an exception was raised";
    } else {
        for (size_t i = 0; i < out_count && !error; i++)
            error = compare(outs[i], expected[i]);
        if (after_count && !error)
            error = compare(args[0], after[0]);
    }
    ts_status_release(status);
    rt_release(generator);
    for (size_t i = 0; i < count; i++)
        rt_release(args[i]);
    for (size_t i = 0; i < out_count; i++)
        rt_release(expected[i]);
    for (size_t i = 0; i < after_count; i++)
        rt_release(after[i]);
    for (int i = 0; i < MOST; i++)
        rt_release(outs[i]);
    return error;
}

/* ---- coverage ---- */

enum { MOST_FAMILIES = 16 };

typedef struct coverage {
    ts_arena *arena;
    fe_map seen;
    ts_str families[MOST_FAMILIES]; /* of `@start*` */
    size_t family_count, missing;
} coverage;

static void need(void *user, ts_str name) {
    coverage *c = user;
    if (fe_map_get(&c->seen, name))
        return;
    for (size_t i = 0; i < c->family_count; i++)
        if (name.length > c->families[i].length &&
            memcmp(name.data, c->families[i].data, c->families[i].length) == 0)
            return;
    c->missing++;
    fprintf(stderr, "%.*s has no case\n", TS_STR_ARG(name));
}

static size_t missing_cases(coverage *c) {
    for (int op = 0; op < OP_COUNT; op++)
        need(c, rt_op_name((rt_op)op));
    library_each(need, c);
    return c->missing;
}

int main(int argc, char **argv) {
    bool is_coverage = argc > 1 && strcmp(argv[1], "--coverage") == 0;
    size_t failures = 0, lines = 0;
    case_library *library = library_make();
    coverage covered = {.arena = ts_arena_create(0)};
    for (int i = is_coverage ? 2 : 1; i < argc; i++) {
        ts_mapped_file file;
        must(ts_file_map(argv[i], &file));
        const char *at = (const char *)file.data, *end = at + file.length;
        for (int number = 1; at < end; number++) {
            const char *stop = memchr(at, '\n', (size_t)(end - at));
            size_t length = (size_t)((stop ? stop : end) - at);
            if (length > 0 && *at != '#') {
                const char *line = ts_arena_copy(covered.arena, at, length); /* strtod wants an end */
                bool is_elsewhere = *line == '@';
                line += is_elsewhere;
                lines++;
                ts_str name = {line, strcspn(line, " ")};
                fe_map_set(covered.arena, &covered.seen, name, &covered);
                if (is_elsewhere && name.data[name.length - 1] == '*' &&
                    covered.family_count < MOST_FAMILIES)
                    covered.families[covered.family_count++] = (ts_str){line, name.length - 1};
                const char *error = is_coverage || is_elsewhere ? NULL
                                                                : run_line(library, line, length);
                if (error) {
                    failures++;
                    fprintf(stderr, "%s:%d: %s: %s\n", argv[i], number, error, line);
                }
            }
            at += length + 1;
        }
        ts_file_unmap(&file);
    }
    if (is_coverage)
        failures = missing_cases(&covered);
    library_release(library);
    ts_arena_release(covered.arena);
    printf("%zu lines, %zu failures\n", lines, failures);
    return failures || !lines ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* tests/ops/case_runner.c - runs the lines of a .case file through the reference kernels.
 *
 *   add.Tensor float32[2]{1, 2} float32[]{3} 1 -> float32[2]{4, 5}
 *   select.int float32[2]{1, 2} 0 5 -> !IndexError
 *
 * Left: an operator and all its arguments, defaults too. Right: its results, or the exception.
 * Values: dtype[sizes]{elements}, numbers (1+2j for complex), 'text', True, False, None, lists in
 * brackets. Floats agree to a relative 2e-6 (16-bit ones to 1e-2). The operator's inference rule is
 * asked too: what it claims of the results must hold. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/file.h"
#include "runtime/ops/ops.h"

enum { MOST = 32 };

typedef struct parser {
    const char *at, *end;
    bool failed;
} parser;

static void skip_blanks(parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == ','))
        p->at++;
}

static bool take(parser *p, const char *text) {
    size_t n = strlen(text);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, text, n) != 0)
        return false;
    p->at += n;
    return true;
}

static void must(ts_status status) {
    if (status) {
        fprintf(stderr, "%s\n", ts_status_message(status));
        exit(2);
    }
}

/* inf, nan, 1, 1.5, 1e3 and 1+2j; is_float where it is written as one. */
static rt_complex128 parse_number(parser *p, bool *is_float, bool *is_complex) {
    char *end;
    rt_complex128 c = {strtod(p->at, &end), 0};
    p->failed = p->failed || end == p->at;
    *is_float = false;
    for (const char *s = p->at; s < end; s++)
        *is_float = *is_float || strchr(".einf", *s) != NULL;
    p->at = end;
    *is_complex = false;
    if (p->at < p->end && *p->at == 'j') {
        c = (rt_complex128){0, c.re};
        *is_complex = true;
        p->at++;
    } else if (p->at < p->end && (*p->at == '+' || *p->at == '-')) {
        c.im = strtod(p->at, &end);
        p->at = end + 1;
        *is_complex = true;
    }
    return c;
}

static rt_value parse_tensor(parser *p, rt_dtype dtype) {
    int64_t sizes[RT_MAX_RANK];
    int rank = 0;
    bool is_float, is_complex;
    for (take(p, "["); !take(p, "]") && !p->failed; skip_blanks(p))
        sizes[rank++] = (int64_t)parse_number(p, &is_float, &is_complex).re;
    rt_tensor *t;
    must(rt_tensor_make(dtype, sizes, rank, &t));
    p->failed = p->failed || !take(p, "{");
    size_t size = rt_dtype_size(dtype);
    for (int64_t i = 0; i < t->element_count && !p->failed; i++, skip_blanks(p)) {
        char *at = (char *)t->data + (size_t)i * size;
        const char *start = p->at;
        rt_complex128 c = parse_number(p, &is_float, &is_complex);
        if (rt_dtype_is_float(dtype) || rt_dtype_is_complex(dtype))
            rt_store_complex(dtype, at, c);
        else
            rt_store_int(dtype, at, strtoll(start, NULL, 10));
    }
    p->failed = p->failed || !take(p, "}");
    return rt_from_tensor(t);
}

static rt_value parse_value(parser *p) {
    rt_value v = rt_none();
    skip_blanks(p);
    if (take(p, "None"))
        return v;
    if (take(p, "True"))
        return rt_bool(true);
    if (take(p, "False"))
        return rt_bool(false);
    if (take(p, "'")) {
        const char *start = p->at;
        while (p->at < p->end && *p->at != '\'')
            p->at++;
        must(rt_str_make((ts_str){start, (size_t)(p->at - start)}, &v));
        p->at++;
        return v;
    }
    if (take(p, "[")) {
        must(rt_list_make(0, &v));
        for (skip_blanks(p); !take(p, "]") && !p->failed; skip_blanks(p)) {
            rt_value item = parse_value(p);
            must(rt_list_append(v.as.list, item));
            rt_release(item);
        }
        return v;
    }
    const char *word = p->at;
    while (p->at < p->end && ((*p->at >= 'a' && *p->at <= 'z') || (*p->at >= '0' && *p->at <= '9')))
        p->at++;
    rt_dtype dtype = rt_dtype_parse((ts_str){word, (size_t)(p->at - word)});
    if (dtype != RT_DTYPE_UNKNOWN && p->at < p->end && *p->at == '[')
        return parse_tensor(p, dtype);
    p->at = word;
    bool is_float, is_complex;
    rt_complex128 c = parse_number(p, &is_float, &is_complex);
    if (is_complex)
        must(rt_complex_make(c.re, c.im, &v));
    else
        v = is_float ? rt_float(c.re) : rt_int(strtoll(word, NULL, 10));
    return v;
}

static bool close(double a, double b, double tolerance) {
    if (a != a || b != b)
        return a != a && b != b;
    return a == b || fabs(a - b) <= tolerance * fmax(fabs(b), 1e-3);
}

static bool same(rt_value a, rt_value b);

static bool same_tensors(const rt_tensor *a, const rt_tensor *b) {
    rt_dtype dtype = (rt_dtype)a->dtype;
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int d = 0; d < a->rank; d++)
        if (a->sizes[d] != b->sizes[d])
            return false;
    bool is_exact = rt_dtype_category(dtype) == 'i' || rt_dtype_category(dtype) == 'b';
    double tolerance = rt_dtype_size(dtype) == 2 ? 1e-2 : 2e-6;
    rt_cursor x, y;
    rt_cursor_start(&y, b);
    for (rt_cursor_start(&x, a); x.left > 0; rt_cursor_next(&x), rt_cursor_next(&y)) {
        rt_complex128 c = rt_load_complex(dtype, x.data), d = rt_load_complex(dtype, y.data);
        if (is_exact ? rt_load_int(dtype, x.data) != rt_load_int(dtype, y.data)
                     : !close(c.re, d.re, tolerance) || !close(c.im, d.im, tolerance))
            return false;
    }
    return true;
}

static bool same(rt_value a, rt_value b) {
    if (a.tag != b.tag)
        return false;
    if (a.tag == RT_TAG_TENSOR)
        return same_tensors(a.as.tensor, b.as.tensor);
    if (a.tag == RT_TAG_FLOAT)
        return close(a.as.f, b.as.f, 2e-6);
    if (a.tag == RT_TAG_LIST) {
        bool is_same = a.as.list->count == b.as.list->count;
        for (size_t i = 0; is_same && i < a.as.list->count; i++)
            is_same = same(a.as.list->items[i], b.as.list->items[i]);
        return is_same;
    }
    bool is_equal;
    must(rt_equal(a, b, &is_equal));
    return is_equal;
}

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

static bool rule_holds(rt_op op, const rt_value *args, size_t count, const rt_value *outs,
                       size_t out_count) {
    ts_arena *arena = ts_arena_create(0);
    rt_infer_context ic = {.arena = arena, .algebra = NULL};
    rt_fact facts[MOST], results[MOST] = {{0}};
    for (size_t i = 0; i < count; i++)
        facts[i] = fact_of(arena, args[i]);
    ts_status status = rt_op_get(op)->infer(&ic, facts, count, results, out_count);
    bool holds = status == NULL;
    for (size_t i = 0; holds && i < out_count; i++)
        holds = fact_holds(&results[i], outs[i]);
    ts_status_release(status);
    ts_arena_release(arena);
    return holds;
}

/* ---- a line ---- */

static const char *run_line(const char *line, size_t length) {
    parser p = {line, line + length, false};
    rt_value args[MOST], outs[MOST], expected[MOST];
    size_t count = 0, out_count = 0;
    const char *name = p.at, *error = NULL;
    while (p.at < p.end && *p.at != ' ')
        p.at++;
    rt_op op = rt_op_find((ts_str){name, (size_t)(p.at - name)});
    if (op == OP_COUNT)
        return "unknown operator";
    for (skip_blanks(&p); !take(&p, "->"); skip_blanks(&p)) {
        if (p.failed || p.at >= p.end || count == MOST)
            return "the line does not parse";
        args[count++] = parse_value(&p);
    }
    for (int i = 0; i < MOST; i++)
        outs[i] = rt_none();
    rt_context context = {.thread_budget = 1};
    ts_status status = rt_op_get(op)->ref(&context, args, outs);
    skip_blanks(&p);
    if (take(&p, "!")) {
        ts_str wanted = {p.at, (size_t)(p.end - p.at)};
        if (!status || !ts_str_is(wanted, ts_status_exception(status)))
            error = "another exception, or none, was raised";
    } else if (status) {
        fprintf(stderr, "%s\n", ts_status_message(status));
        error = "an exception was raised";
    } else {
        for (skip_blanks(&p); p.at < p.end && !p.failed; skip_blanks(&p))
            expected[out_count++] = parse_value(&p);
        for (size_t i = 0; i < out_count && !error; i++)
            if (!same(outs[i], expected[i])) {
                rt_value text;
                must(rt_to_repr(outs[i], &text));
                fprintf(stderr, "found %s\n", text.as.str->data);
                rt_release(text);
                error = "a result differs";
            }
        if (!error && !rule_holds(op, args, count, outs, out_count))
            error = "the inference rule claims what does not hold";
        for (size_t i = 0; i < out_count; i++)
            rt_release(expected[i]);
    }
    if (p.failed)
        error = "the line does not parse";
    ts_status_release(status);
    for (size_t i = 0; i < count; i++)
        rt_release(args[i]);
    for (int i = 0; i < MOST; i++)
        rt_release(outs[i]);
    return error;
}

int main(int argc, char **argv) {
    int failures = 0, lines = 0;
    for (int i = 1; i < argc; i++) {
        ts_mapped_file file;
        must(ts_file_map(argv[i], &file));
        const char *at = (const char *)file.data, *end = at + file.length;
        for (int number = 1; at < end; number++) {
            const char *stop = memchr(at, '\n', (size_t)(end - at));
            size_t length = (size_t)((stop ? stop : end) - at);
            if (length > 0 && *at != '#') {
                char *line = calloc(length + 1, 1); /* strtod wants an end */
                if (!line)
                    return 2;
                memcpy(line, at, length);
                const char *error = run_line(line, length);
                lines++;
                if (error) {
                    failures++;
                    fprintf(stderr, "%s:%d: %s: %s\n", argv[i], number, error, line);
                }
                free(line);
            }
            at += length + 1;
        }
        ts_file_unmap(&file);
    }
    printf("%d lines, %d failures\n", lines, failures);
    return failures || !lines ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* tools/compile_precision.c - what --weights-dtype and --dtype cost, told at compile time: the
 * relative error of the worst layers' weights, and with --example the error of the results: the
 * program is compiled once more in float32, and both are run. */
#define _POSIX_C_SOURCE 200809L
#include "tools/compile_precision.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "runtime/tsrt.h"
#include "runtime/values/tensor.h"

enum { SHOWN = 4, RUN_SECONDS = 60 };

/* ---- weights ---- */

static int by_error(const void *a, const void *b) {
    const cg_weight_row *p = a, *q = b;
    return p->error < q->error ? 1 : p->error > q->error ? -1 : 0;
}

static void put_name(const cg_weight_row *row, ts_buffer *out) {
    if (row->name.length)
        ts_buffer_format(out, "%.*s", TS_STR_ARG(row->name));
    else
        ts_buffer_format(out, "%.*s:%d", TS_STR_ARG(row->place.file), row->place.line);
}

static void put_weights(cg_weight_report *report, ts_buffer *out) {
    static const char *const formats[] = {"int4", "int8", "bf16"};
    if (report->count == 0) {
        ts_buffer_text(out, "precision: no product has constant weights, none were rounded\n");
        return;
    }
    double squares = 0;
    for (size_t i = 0; i < report->count; i++)
        squares += report->rows[i].error * report->rows[i].error;
    qsort(report->rows, report->count, sizeof *report->rows, by_error);
    ts_buffer_text(out, "precision:");
    const char *between = "";
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        size_t count = 0;
        for (size_t i = 0; i < report->count; i++)
            count += strcmp(report->rows[i].format, formats[f]) == 0;
        if (count)
            ts_buffer_format(out, "%s %zu weights in %s", between, count, formats[f]);
        between = count ? "," : between;
    }
    ts_buffer_format(out, ", relative error %.2e (root mean square); the worst:",
                     sqrt(squares / (double)report->count));
    for (size_t i = 0; i < report->count && i < SHOWN; i++) {
        ts_buffer_text(out, i ? ", " : " ");
        put_name(&report->rows[i], out);
        ts_buffer_format(out, " %.2e", report->rows[i].error);
    }
    ts_buffer_char(out, '\n');
}

static ts_status say(const tsc_callbacks *callbacks, ts_buffer *text) {
    ts_status status = ts_buffer_status(text);
    if (!status && callbacks->note)
        callbacks->note(callbacks->user, (ts_str){text->data, text->length});
    ts_buffer_deinit(text);
    return status;
}

ts_status tsc_precision_weights(cg_weight_report *report, const tsc_callbacks *callbacks) {
    ts_buffer text = {0};
    put_weights(report, &text);
    return say(callbacks, &text);
}

/* ---- results ---- */

typedef struct differences {
    double square, total, largest, magnitude; /* sums of squares; largest |difference|, |value| */
    size_t count, other; /* numbers compared; integers and the like that differ */
} differences;

static ts_status checked(tsrt_status *status) {
    if (!status)
        return NULL;
    ts_status out = ts_error_make(TS_ERR_INTERNAL, "%s%s%s", tsrt_status_exception(status),
                                  tsrt_status_exception(status)[0] ? ": " : "",
                                  tsrt_status_message(status));
    tsrt_status_release(status);
    return out;
}

static ts_status compare_tensors(const tsrt_value *a, const tsrt_value *b, differences *d) {
    tsrt_value *x = NULL, *y = NULL;
    tsrt_tensor_view u = {.size = sizeof u}, v = {.size = sizeof v};
    ts_status status = checked(tsrt_value_contiguous(a, &x));
    if (!status)
        status = checked(tsrt_value_contiguous(b, &y));
    if (!status)
        status = checked(tsrt_value_view_tensor(x, &u));
    if (!status)
        status = checked(tsrt_value_view_tensor(y, &v));
    if (!status && (u.dtype != v.dtype || u.element_count != v.element_count))
        status = ts_error_make(TS_ERR_INTERNAL, "the results have different sizes");
    size_t bytes = status ? 0 : tsrt_dtype_bytes(u.dtype);
    bool is_float = !status && rt_dtype_is_float((rt_dtype)u.dtype);
    for (int64_t i = 0; !status && i < u.element_count; i++) {
        const char *at = (const char *)u.data + (size_t)i * bytes;
        const char *to = (const char *)v.data + (size_t)i * bytes;
        if (!is_float) {
            d->other += memcmp(at, to, bytes) != 0;
            continue;
        }
        double p = rt_load_double((rt_dtype)u.dtype, at), q = rt_load_double((rt_dtype)v.dtype, to);
        d->count++;
        if (!isfinite(p) || !isfinite(q)) {
            d->other += !(p == q || (isnan(p) && isnan(q)));
            continue;
        }
        d->square += (p - q) * (p - q);
        d->total += p * p;
        d->largest = fmax(d->largest, fabs(p - q));
        d->magnitude = fmax(d->magnitude, fabs(p));
    }
    tsrt_value_release(x);
    tsrt_value_release(y);
    return status;
}

static ts_status compare(const tsrt_value *a, const tsrt_value *b, differences *d, int depth) {
    tsrt_kind kind = tsrt_value_kind(a);
    if (kind != tsrt_value_kind(b) || tsrt_value_count(a) != tsrt_value_count(b) || depth > 100)
        return ts_error_make(TS_ERR_INTERNAL, "the results have different forms");
    if (kind == TSRT_TENSOR)
        return compare_tensors(a, b, d);
    if (kind == TSRT_FLOAT) {
        double p = tsrt_value_float(a), q = tsrt_value_float(b);
        d->count++;
        d->square += (p - q) * (p - q);
        d->total += p * p;
        d->largest = fmax(d->largest, fabs(p - q));
        d->magnitude = fmax(d->magnitude, fabs(p));
        return NULL;
    }
    if (kind == TSRT_INT || kind == TSRT_BOOL)
        d->other += tsrt_value_int(a) != tsrt_value_int(b);
    if (kind == TSRT_STR)
        return NULL;
    ts_status status = NULL;
    for (size_t i = 0; i < tsrt_value_count(a) && !status; i++) {
        tsrt_value *x = NULL, *y = NULL;
        status = checked(tsrt_value_item(a, i, &x));
        if (!status)
            status = checked(tsrt_value_item(b, i, &y));
        if (!status)
            status = compare(x, y, d, depth + 1);
        tsrt_value_release(x);
        tsrt_value_release(y);
    }
    return status;
}

/* ---- runs ---- */

static ts_status copy_tensor(const rt_tensor *t, tsrt_value **out) {
    TS_TRY(checked(tsrt_value_make_tensor((tsrt_dtype)t->dtype, t->sizes, t->rank, out)));
    tsrt_tensor_view view = {.size = sizeof view};
    TS_TRY(checked(tsrt_value_view_tensor(*out, &view)));
    size_t bytes = tsrt_dtype_bytes(view.dtype);
    char *to = view.data;
    rt_cursor c;
    for (rt_cursor_start(&c, t); c.left; rt_cursor_next(&c), to += bytes)
        memcpy(to, c.data, bytes);
    return NULL;
}

static ts_status call(const tsrt_model *model, tsrt_session *session, const tsc_example *example,
                      tsrt_value **out) {
    tsrt_entry_info entry = {.size = sizeof entry};
    TS_TRY(checked(tsrt_model_get_entry(model, 0, &entry)));
    tsrt_value **args = calloc(entry.input_count + 1, sizeof *args);
    ts_status status = args ? NULL : ts_no_memory();
    for (size_t i = 0; i < entry.input_count && !status; i++) {
        tsrt_port_info port = {.size = sizeof port};
        status = checked(tsrt_model_get_input(model, 0, i, &port));
        const rt_tensor *t = status ? NULL : tsc_example_find(example, port.name, i);
        if (t)
            status = copy_tensor(t, &args[i]);
        else if (!status && !port.has_default)
            status = ts_error_make(TS_ERR_INVALID_INPUT, "--example has no %s", port.name);
    }
    tsrt_run_options options = {.size = sizeof options};
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    options.deadline_ns = ((uint64_t)now.tv_sec + RUN_SECONDS) * 1000000000u;
    if (!status)
        status = checked(tsrt_run(session, 0, args, entry.input_count, &options, out));
    for (size_t i = 0; args && i < entry.input_count; i++)
        tsrt_value_release(args[i]);
    free(args);
    return status;
}

static ts_status run_file(const char *path, const tsc_example *example, tsrt_value **out) {
    tsrt_model *model = NULL;
    tsrt_session *session = NULL;
    tsrt_session_options options = {.size = sizeof options, .has_seed = 1};
    ts_status status = checked(tsrt_model_load(path, NULL, &model));
    if (!status)
        status = checked(tsrt_session_create(model, &options, &session));
    if (!status)
        status = call(model, session, example, out);
    tsrt_session_release(session);
    tsrt_model_release(model);
    return status;
}

static ts_status run_float32(const tsc_options *given, const tsc_example *example,
                             tsrt_value **out) {
    ts_buffer path = {0};
    if (strncmp(given->output, "/dev/", 5) == 0)
        return ts_error_make(TS_ERR_INVALID_INPUT, "the output is no file that can be run");
    ts_buffer_format(&path, "%s.XXXXXX", given->output);
    ts_buffer_char(&path, 0);
    TS_TRY(ts_buffer_status(&path));
    int file = mkstemp(path.data);
    if (file < 0) {
        ts_buffer_deinit(&path);
        return ts_error_make(TS_ERR_IO, "no second file can be written beside the output");
    }
    close(file);
    tsc_options options = *given;
    options.weights_dtype = (ts_str){0};
    options.computes_bf16 = false;
    options.output = path.data;
    options.check_each = options.dump_all = options.dump_changed = options.want_stats = false;
    options.dump_one = (ts_str){0};
    tsc_callbacks quiet = {0};
    ts_status status = tsc_compile(&options, &quiet);
    if (!status)
        status = run_file(path.data, example, out);
    unlink(path.data);
    ts_buffer_deinit(&path);
    return status;
}

static ts_status compare_runs(const tsc_options *options, const tsc_example *example,
                              differences *out) {
    tsrt_value *exact = NULL, *rounded = NULL;
    ts_status status = run_file(options->output, example, &rounded);
    if (!status)
        status = run_float32(options, example, &exact);
    if (!status)
        status = compare(exact, rounded, out, 0);
    tsrt_value_release(exact);
    tsrt_value_release(rounded);
    return status;
}

/* Apart, so that no local of the caller lives across the jump. */
static ts_status load_example(ts_arena *arena, const char *path, tsc_example *out) {
    jmp_buf handler;
    if (setjmp(handler))
        return ts_no_memory();
    ts_arena_set_handler(arena, &handler);
    return tsc_example_load(arena, path, out);
}

ts_status tsc_precision_results(const tsc_options *options, const tsc_callbacks *callbacks) {
    ts_arena *arena = ts_arena_create(0);
    tsc_example example = {0};
    differences d = {0};
    ts_buffer text = {0};
    ts_status status = arena ? load_example(arena, options->example, &example) : ts_no_memory();
    if (!status)
        status = compare_runs(options, &example, &d);
    if (status) {
        ts_buffer_format(&text, "precision: the results of the example were not compared: %s\n",
                         ts_status_message(status));
        ts_status_release(status);
    } else {
        ts_buffer_format(&text, "precision: results of the example against float32: relative error "
                         "%.2e, largest difference %.2e of %.2e",
                         d.total > 0 ? sqrt(d.square / d.total) : 0.0, d.largest, d.magnitude);
        if (d.other)
            ts_buffer_format(&text, ", %zu values that are no finite numbers differ", d.other);
        ts_buffer_char(&text, '\n');
    }
    tsc_example_release(&example);
    if (arena)
        ts_arena_release(arena);
    return say(callbacks, &text);
}

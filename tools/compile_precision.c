/* tools/compile_precision.c - what --weights-dtype and --dtype cost, told at compile time: the
 * relative error of the worst layers' weights. */
#ifdef TS_HAVE_LLVM
#include "tools/compile_precision.h"

#include <math.h>
#include <stdlib.h>

enum { SHOWN = 4 };

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
    if (report->count == 0) {
        ts_buffer_text(out, "no weights were rounded: there is no product with constant ones\n");
        return;
    }
    double squares = 0;
    for (size_t i = 0; i < report->count; i++)
        squares += report->rows[i].error * report->rows[i].error;
    qsort(report->rows, report->count, sizeof *report->rows, by_error);
    ts_buffer_format(out, "%zu weights in %s: relative error %.2e (root mean square), worst",
                     report->count, report->rows[0].format,
                     sqrt(squares / (double)report->count));
    for (size_t i = 0; i < report->count && i < SHOWN; i++) {
        ts_buffer_text(out, i ? ", " : " ");
        put_name(&report->rows[i], out);
        ts_buffer_format(out, " [%lld,%lld] %.2e", (long long)report->rows[i].n,
                         (long long)report->rows[i].k, report->rows[i].error);
    }
    ts_buffer_char(out, '\n');
}

ts_status tsc_precision_report(ts_arena *arena, ir_module *m, const cg_options *options,
                               const tsc_example *example, const tsc_callbacks *callbacks) {
    (void)arena;
    (void)m;
    (void)example;
    ts_buffer text = {0};
    put_weights(options->report, &text);
    ts_status status = ts_buffer_status(&text);
    if (!status && callbacks->note)
        callbacks->note(callbacks->user, (ts_str){text.data, text.length});
    ts_buffer_deinit(&text);
    return status;
}
#else
typedef int tsc_precision_empty; /* a translation unit may not be empty */
#endif

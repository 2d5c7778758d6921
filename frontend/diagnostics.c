/* frontend/diagnostics.c - collects what is to be told to the user, in order, up to a limit. */
#include "frontend/diagnostics.h"

#include <stdarg.h>
#include <stdio.h>

#include "frontend/ast.h"

enum { DEFAULT_ERROR_LIMIT = 20 };

static void add(fe_diagnostics *d, fe_severity severity, ts_code code, ts_place place, ts_str line,
                const char *format, va_list args) {
    size_t limit = d->error_limit ? d->error_limit : DEFAULT_ERROR_LIMIT;
    if (severity == FE_ERROR)
        d->error_count++;
    /* A note goes where its error went. */
    if (d->error_count > limit && severity != FE_WARNING)
        return;
    char text[1024];
    int n = vsnprintf(text, sizeof text, format, args);
    if (n < 0)
        n = 0;
    if ((size_t)n >= sizeof text) {
        n = (int)sizeof text - 1;
        while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80)
            n--; /* no half of a character */
    }
    fe_diagnostic item = {severity, code, place, line,
                          ts_arena_str(d->arena, (ts_str){text, (size_t)n})};
    TS_APPEND(d->arena, d->items, d->count, d->capacity, item);
}

void fe_report(fe_diagnostics *d, fe_severity severity, ts_code code, const ast_node *node,
               const char *format, ...) {
    ts_place place = {0};
    ts_str line = {0};
    if (node && node->source) {
        place = ast_place(node);
        line = fe_source_place_line(node->source, node->offset);
    }
    va_list args;
    va_start(args, format);
    add(d, severity, code, place, line, format, args);
    va_end(args);
}

void fe_report_place(fe_diagnostics *d, fe_severity severity, ts_code code, ts_place place,
                     ts_str line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    add(d, severity, code, place, line, format, args);
    va_end(args);
}

ts_status fe_diagnostics_status(const fe_diagnostics *d) {
    if (!d->error_count)
        return NULL;
    for (size_t i = 0; i < d->count; i++) {
        if (d->items[i].severity != FE_ERROR)
            continue;
        ts_status status = ts_error_at(d->items[i].code, d->items[i].place, "%.*s",
                                       (int)d->items[i].message.length, d->items[i].message.data);
        if (d->error_count > 1)
            status = ts_status_context(status, "checking the rest (%zu more error%s)", d->error_count - 1,
                                       d->error_count > 2 ? "s" : "");
        return status;
    }
    return ts_error_make(TS_ERR_INTERNAL, "errors were counted but none was kept");
}

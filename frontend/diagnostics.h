/* frontend/diagnostics.h - errors, warnings and notes of a compile, in order.
 *
 * Rendering (text with caret, JSON) is done in tools/, from these records. */
#ifndef FRONTEND_DIAGNOSTICS_H
#define FRONTEND_DIAGNOSTICS_H

#include "runtime/base/arena.h"
#include "runtime/base/status.h"

typedef enum fe_severity { FE_ERROR, FE_WARNING, FE_NOTE } fe_severity;

typedef struct fe_diagnostic {
    fe_severity severity;
    ts_code code;
    ts_place place;
    ts_str line; /* the source line, empty where there is none */
    ts_str message;
} fe_diagnostic;

typedef struct fe_diagnostics {
    ts_arena *arena;
    fe_diagnostic *items;
    size_t count, capacity;
    size_t error_count;
    size_t error_limit; /* 20: further errors are counted, not kept */
} fe_diagnostics;

struct ast_node;
/* A note belongs to the error or warning before it. */
void fe_report(fe_diagnostics *d, fe_severity severity, ts_code code, const struct ast_node *node,
               const char *format, ...) TS_PRINTF(5, 6);
void fe_report_place(fe_diagnostics *d, fe_severity severity, ts_code code, ts_place place,
                     ts_str line, const char *format, ...) TS_PRINTF(6, 7);
/* One status for all: the first error's code, message and place, "and n more errors" as trail. */
ts_status fe_diagnostics_status(const fe_diagnostics *d) TS_WARN_UNUSED;

#endif

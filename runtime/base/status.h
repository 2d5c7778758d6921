/* runtime/base/status.h - the one error type of the compiler and the runtime.
 *
 * NULL is success. Everything else is an error that its receiver owns: pass it on, or release it.
 * Out of memory is a static error, so reporting it allocates nothing. */
#ifndef RUNTIME_BASE_STATUS_H
#define RUNTIME_BASE_STATUS_H

#include "runtime/base/compiler.h"
#include "runtime/base/str.h"

typedef enum ts_code {
    TS_OK = 0,
    TS_ERR_NO_MEMORY = 1,     /* an allocation failed or a limit on memory was met: free and retry */
    TS_ERR_INVALID_FILE = 2,  /* a file is damaged, truncated, foreign or hostile: do not retry */
    TS_ERR_INVALID_INPUT = 3, /* an argument of the caller is wrong (dtype, rank, size, name) */
    TS_ERR_SYNTAX = 4,        /* the source does not parse */
    TS_ERR_TYPE = 5,          /* the source parses and its types do not fit */
    TS_ERR_UNSUPPORTED = 6,   /* right, and not supported: the message names the feature */
    TS_ERR_RAISED = 7,        /* the model raised a Python exception; see ts_status_exception */
    TS_ERR_IO = 8,            /* the system refused: the message holds the errno text */
    TS_ERR_CANCELLED = 9,     /* cancelled, or the deadline passed */
    TS_ERR_INTERNAL = 10      /* a rule of ours was broken: report it */
} ts_code;

/* A place in the user's source. line and column start at 1; 0 means unknown. */
typedef struct ts_place {
    ts_str file;
    int line, column, length;
} ts_place;

typedef struct ts_error *ts_status;

/* Makes an error. The message says what was expected and what was found, lower case, no full stop. */
ts_status ts_error_make(ts_code code, const char *format, ...) TS_PRINTF(2, 3);
ts_status ts_error_at(ts_code code, ts_place place, const char *format, ...) TS_PRINTF(3, 4);
/* A Python exception: type is the bare class name ("ValueError"), message its text. */
ts_status ts_raise(const char *type, const char *format, ...) TS_PRINTF(2, 3);
ts_status ts_raise_str(ts_str type, ts_str message);
/* INVALID_INPUT that keeps the exception's name: what the program would have raised, told before it runs. */
ts_status ts_invalid_input(ts_status raised);
ts_status ts_no_memory(void);

/* Adds "while ..." to an error's trail (keeps NULL as it is); returns the same error. */
ts_status ts_status_context(ts_status status, const char *format, ...) TS_PRINTF(2, 3);
/* Sets the place where none is known yet. */
ts_status ts_status_set_place(ts_status status, ts_place place);

ts_code ts_status_code(ts_status status);
const char *ts_status_message(ts_status status);   /* "" for NULL */
const char *ts_status_exception(ts_status status); /* Python class name, or "" */
const char *ts_status_trail(ts_status status);     /* "while a\nwhile b", or "" */
ts_place ts_status_place(ts_status status);
void ts_status_release(ts_status status);

#define TS_TRY(expr)                                                                               \
    do {                                                                                           \
        ts_status ts_try_status_ = (expr);                                                         \
        if (TS_UNLIKELY(ts_try_status_ != NULL))                                                   \
            return ts_try_status_;                                                                 \
    } while (0)

/* With `ts_status status = NULL;` and a label that cleans up in scope. */
#define TS_TRY_OR(expr, label)                                                                     \
    do {                                                                                           \
        status = (expr);                                                                           \
        if (TS_UNLIKELY(status != NULL))                                                           \
            goto label;                                                                            \
    } while (0)

#endif

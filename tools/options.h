/* tools/options.h - command lines from one table: parsing, help, "did you mean".
 *
 * A tool declares its options as rows; the rows say what help prints, so the two cannot differ. */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include "runtime/base/buffer.h"
#include "runtime/base/status.h"

typedef enum option_kind {
    OPTION_FLAG,   /* --verbose */
    OPTION_VALUE,  /* --entry NAME or --entry=NAME; given again: the last one counts */
    OPTION_LIST,   /* the same, all of them count */
    OPTION_JOINED, /* -O2: the value follows at once */
    OPTION_HEADING /* no option: a line of help between groups */
} option_kind;

typedef struct option_row {
    const char *name;  /* "--entry", or the text of a heading */
    const char *brief; /* "-o", or NULL */
    option_kind kind;
    const char *value; /* "NAME", as help shows it */
    const char *help;
    const char *missing; /* not NULL: nothing is behind it yet; says what is missing */
} option_row;

typedef struct option_values {
    const char **texts; /* in the order given; a flag counts with "" */
    size_t count;
} option_values;

typedef struct options {
    const option_row *rows;
    size_t row_count;
    option_values *values; /* one for each row */
    const char **operands; /* what is no option */
    size_t operand_count;
    const char **storage;
} options;

/* INVALID_INPUT with a message for the user where the line is wrong; UNSUPPORTED for an option that
 * has nothing behind it. options_deinit in any case. */
ts_status options_parse(const option_row *rows, size_t row_count, int argc, char **argv,
                        options *out) TS_WARN_UNUSED;
void options_deinit(options *o);

/* The last value, or NULL where the option was not given. name must stand in the table. */
const char *options_get(const options *o, const char *name);
bool options_has(const options *o, const char *name);
const option_values *options_all(const options *o, const char *name);
/* A whole number within [low, high]. Leaves *out alone where the option was not given. */
ts_status options_number(const options *o, const char *name, int64_t low, int64_t high,
                         int64_t *out) TS_WARN_UNUSED;
void options_help(const option_row *rows, size_t row_count, ts_buffer *out);
/* The word of the list (NULL-terminated) that is closest to text, or NULL where none is close. */
const char *options_closest(const char *text, const char *const *words);
ts_status options_unknown_word(const char *what, const char *text, const char *const *words)
    TS_WARN_UNUSED;

/* ---- options_interrupt.c ---- */
/* From here on SIGINT and SIGTERM end the process with 130 and 143, and an abort of LLVM's with 1, once
 * temporary files of this process beside the protected output are gone. Call before any thread is made. */
void interrupts_init(void);
void interrupts_protect(const char *output); /* the text must stay */

/* INVALID_INPUT where writing output would replace one of the inputs (NULL ones are skipped). */
ts_status options_keep_inputs(const char *output, const char *const *inputs, size_t count)
    TS_WARN_UNUSED;

/* ---- the process (options_streams.c) ---- */
/* Fills closed standard streams, ignores SIGPIPE, takes the C locale for numbers. */
void streams_init(void);

#endif

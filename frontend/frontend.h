/* frontend/frontend.h - files to a module: what tools/ sees of the front end.
 *
 * A compilation is one fe_context. Loading gives the root object (for an archive: as stored; for a
 * script: after module level and __init__ ran) and makes the IR of each wanted entry; functions,
 * methods and library functions that an entry reaches are made on demand. */
#ifndef FRONTEND_FRONTEND_H
#define FRONTEND_FRONTEND_H

#include "frontend/diagnostics.h"
#include "ir/ir.h"
#include "runtime/base/file.h"

typedef struct fe_input_type { /* one --input */
    ts_str entry;              /* "" for the first entry */
    ts_str name;               /* "" for positional */
    ts_str type_text;
    bool is_example; /* a tensor's type, read off a value: one of no dimensions may stand for a number */
} fe_input_type;

typedef struct fe_options {
    ts_str path;
    ts_str model_expression; /* --model, or empty */
    const ts_str *entries;   /* --entry; none: forward */
    size_t entry_count;
    const fe_input_type *inputs;
    size_t input_count;
    ts_str weights_path; /* or empty */
    bool has_seed;
    uint64_t seed;
    int training; /* -1 as the script leaves it, 0 --eval, 1 --train */
    bool ignore_crc;
} fe_options;

typedef struct fe_context fe_context;

/* The module's arena is also the front end's. Diagnostics collects everything reported. */
fe_context *fe_context_make(ir_module *module, const fe_options *options,
                            fe_diagnostics *diagnostics);
/* Loads options->path (.py or .pt, told apart by content) and makes the IR of its entries, verified,
 * with the types of options->inputs on their parameters. */
ts_status fe_load(fe_context *fe) TS_WARN_UNUSED;
/* The IR of a library function by operator name ("layer_norm", "std.dim") or NULL: what decompose
 * and differentiate ask for. */
ts_status fe_library_function(fe_context *fe, ts_str name, ir_function **out) TS_WARN_UNUSED;
/* The names of the library's operator functions, one a line (is_markdown: a list of code). */
void fe_library_list(bool is_markdown, ts_buffer *out);
/* Releases mapped files and values; not the arena. */
void fe_context_deinit(fe_context *fe);
/* Weights that were read may leave memory until they are read again: they lie in a mapped file. */
void fe_forget_files(const fe_context *fe);

#endif

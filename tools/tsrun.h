/* tools/tsrun.h - the parts of tsrun: argument trees, tensor files, benches, what a file holds.
 *
 * tsrun uses the public interface of the runtime (tsrt.h) and nothing of the compiler. */
#ifndef TOOLS_TSRUN_H
#define TOOLS_TSRUN_H

#include <jansson.h>

#include "frontend/safetensors/safetensors.h"
#include "runtime/base/file.h"
#include "runtime/tsrt.h"
#include "tools/options.h"

/* Takes a status of the runtime over into one of ours. */
ts_status tsrun_status(tsrt_status *status) TS_WARN_UNUSED;

/* ---- input tensors (tsrun_tensors.c) ---- */
typedef struct tsrun_inputs {
    ts_mapped_file file;
    safetensors_file tensors;
    bool *used; /* [tensors.count] */
} tsrun_inputs;

ts_status tsrun_inputs_open(const char *path, tsrun_inputs *out) TS_WARN_UNUSED;
void tsrun_inputs_close(tsrun_inputs *inputs);
/* A fresh copy of a tensor: the model may write to it. */
ts_status tsrun_inputs_get(tsrun_inputs *inputs, ts_str name, tsrt_value **out) TS_WARN_UNUSED;
const safetensors_entry *tsrun_inputs_find(const tsrun_inputs *inputs, ts_str name);

/* Tensors to be written, in order. */
typedef struct tsrun_outputs {
    safetensors_entry *entries;
    tsrt_value **held; /* whose memory the entries point into */
    void **copies;     /* or memory of our own */
    size_t count, capacity;
} tsrun_outputs;

/* name is copied. */
ts_status tsrun_outputs_add(tsrun_outputs *outputs, const char *name, const tsrt_value *tensor)
    TS_WARN_UNUSED;
/* A bool, int, float or complex number as a 0-d tensor. */
ts_status tsrun_outputs_add_number(tsrun_outputs *outputs, const char *name,
                                   const tsrt_value *number) TS_WARN_UNUSED;
void tsrun_outputs_deinit(tsrun_outputs *outputs);

/* ---- trees (tsrun_tree.c) ---- */
typedef struct tsrun_arguments {
    tsrt_value **items;
    size_t count;
} tsrun_arguments;

/* A JSON list of argument trees. */
ts_status tsrun_arguments_read(const json_t *list, tsrun_inputs *inputs, tsrun_arguments *out)
    TS_WARN_UNUSED;
void tsrun_arguments_deinit(tsrun_arguments *arguments);
/* The tree of a result. Tensors go to outputs under PREFIX0, PREFIX1, ... (next counts on), or
 * stand in the tree themselves where outputs is NULL. */
ts_status tsrun_tree_write(const tsrt_value *value, tsrun_outputs *outputs, const char *prefix,
                           size_t *next, json_t **out) TS_WARN_UNUSED;
/* The leaves of a result as tensors; INVALID_INPUT where there is something else than numbers. */
ts_status tsrun_flatten(const tsrt_value *value, tsrun_outputs *outputs, const char *prefix,
                        size_t *next) TS_WARN_UNUSED;
ts_status tsrun_json_load(const char *path, json_t **out) TS_WARN_UNUSED;
/* "-" is standard output; else whole or not at all. digits: 17 keeps every double. */
ts_status tsrun_json_write(const char *path, const json_t *tree, unsigned digits)
    TS_WARN_UNUSED;

/* ---- numbers and tensors in trees (tsrun_inline.c) ---- */
json_t *tsrun_float_tree(double f);
ts_status tsrun_float_read(const json_t *j, double *out) TS_WARN_UNUSED;
ts_status tsrun_inline_read(const json_t *j, tsrt_value **out) TS_WARN_UNUSED;
ts_status tsrun_inline_write(const tsrt_value *tensor, json_t **out) TS_WARN_UNUSED;

/* ---- the model (tsrun_main.c) ---- */
typedef struct tsrun_model {
    tsrt_model *model;
    tsrt_session *session;
    uint64_t load_ns;
    ts_buffer printed; /* what the model printed and is not yet written */
    bool keep_quiet;
    bool failed_output;
} tsrun_model;

ts_status tsrun_find_entry(const tsrun_model *m, const char *name, size_t *out) TS_WARN_UNUSED;
/* Arguments of an entry by name from the input tensors, or in0, in1, ... */
ts_status tsrun_bind_inputs(const tsrun_model *m, size_t entry, tsrun_inputs *inputs,
                            tsrun_arguments *out) TS_WARN_UNUSED;

ts_status tsrun_bench(tsrun_model *m, size_t entry, const tsrun_arguments *arguments,
                      const options *line) TS_WARN_UNUSED;
ts_status tsrun_info(const char *path, const options *line, bool *out_failed_output)
    TS_WARN_UNUSED;

#endif

/* frontend/safetensors/safetensors.h - the safetensors format over plain memory.
 *
 * Needs the floor and jansson only, so that tsrun can use it without the compiler. Exactly the
 * rules of the reference implementation (huggingface/safetensors, tensor.rs), which refuses holes,
 * overlaps, doubled names and bytes that belong to nothing. */
#ifndef FRONTEND_SAFETENSORS_SAFETENSORS_H
#define FRONTEND_SAFETENSORS_SAFETENSORS_H

#include <stdint.h>

#include "runtime/base/status.h"

enum { SAFETENSORS_MAX_HEADER = 100000000, SAFETENSORS_MAX_DEPTH = 128 };

typedef struct safetensors_entry {
    ts_str name;    /* owned by the file when read; borrowed when written */
    int dtype;      /* numbered as rt_dtype and tsrt_dtype */
    int64_t *sizes; /* [rank] */
    size_t rank;
    const void *data; /* into the bytes given */
    size_t bytes;
} safetensors_entry;

typedef struct safetensors_file {
    safetensors_entry *entries; /* in the order of their data */
    size_t count;
} safetensors_file;

/* JSON text nested at most so deep? jansson recurses, so this is asked before it sees the text. */
bool safetensors_is_shallow(ts_str json, int depth);
/* bytes are borrowed: entries point into them. */
ts_status safetensors_parse(ts_str bytes, safetensors_file *out) TS_WARN_UNUSED;
void safetensors_deinit(safetensors_file *file);
/* NULL where there is none of that name. */
const safetensors_entry *safetensors_find(const safetensors_file *file, ts_str name);
/* Writes whole or not at all. Entries with larger elements come first, as the reference does, so
 * that everything is aligned; within one size the given order is kept. UNSUPPORTED for a dtype that
 * the format lacks. */
ts_status safetensors_write(const char *path, const safetensors_entry *entries, size_t count)
    TS_WARN_UNUSED;

#endif

/* runtime/base/file.h - whole files: mapped for reading, written whole or not at all. */
#ifndef RUNTIME_BASE_FILE_H
#define RUNTIME_BASE_FILE_H

#include "runtime/base/status.h"

/* A read-only mapping of a regular file. Empty files map to data == NULL, length 0. */
typedef struct ts_mapped_file {
    const unsigned char *data;
    size_t length;
} ts_mapped_file;

ts_status ts_file_map(const char *path, ts_mapped_file *out_file) TS_WARN_UNUSED;
void ts_file_unmap(ts_mapped_file *file);
/* The bytes may leave memory until somebody reads them again. */
void ts_file_forget(const ts_mapped_file *file);

typedef struct ts_file_part {
    const void *data;
    size_t length;
    bool is_mapped; /* a page of a shared mapping of a file: it may leave memory once it is written */
} ts_file_part;

/* Writes the parts one after the other to a temporary name in the same folder and renames it:
 * path holds the old bytes or all of the new ones. On an error nothing is left behind. A device or
 * a pipe is written to as it is. */
ts_status ts_file_write(const char *path, const ts_file_part *parts, size_t count) TS_WARN_UNUSED;

/* All of the bytes to a descriptor, whatever interrupts; false on an error. */
bool ts_write_all(int fd, const char *data, size_t length);

#endif

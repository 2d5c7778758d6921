/* runtime/base/buffer.h - a growing byte buffer on the heap, for text and files to be written.
 *
 * Appending to a buffer that failed does nothing, so a writer checks once, at the end, with
 * ts_buffer_status. */
#ifndef RUNTIME_BASE_BUFFER_H
#define RUNTIME_BASE_BUFFER_H

#include <stdint.h>

#include "runtime/base/status.h"

typedef struct ts_buffer {
    char *data;
    size_t length, capacity;
    bool failed;
} ts_buffer;

void ts_buffer_append(ts_buffer *buffer, const void *data, size_t length);
void ts_buffer_str(ts_buffer *buffer, ts_str s);
void ts_buffer_text(ts_buffer *buffer, const char *text);
void ts_buffer_char(ts_buffer *buffer, char c);
void ts_buffer_format(ts_buffer *buffer, const char *format, ...) TS_PRINTF(2, 3);
/* A string of JSON with its quotes; the text is UTF-8 already. */
void ts_buffer_json(ts_buffer *buffer, ts_str text);
/* Pads with zero bytes to a multiple of align. */
void ts_buffer_align(ts_buffer *buffer, size_t align);
ts_status ts_buffer_status(const ts_buffer *buffer) TS_WARN_UNUSED;
void ts_buffer_deinit(ts_buffer *buffer);

#endif

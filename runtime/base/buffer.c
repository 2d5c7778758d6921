/* runtime/base/buffer.c - a growing byte buffer. */
#include "runtime/base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/checked.h"

static bool reserve(ts_buffer *buffer, size_t more) {
    size_t wanted;
    if (buffer->failed)
        return false;
    if (!ts_add_size(buffer->length, more, &wanted) || !ts_add_size(wanted, 1, &wanted)) {
        buffer->failed = true;
        return false;
    }
    if (wanted <= buffer->capacity)
        return true;
    size_t capacity = buffer->capacity < SIZE_MAX / 2 ? buffer->capacity * 2 : wanted;
    if (capacity < wanted)
        capacity = wanted;
    if (capacity < 64)
        capacity = 64;
    char *data = realloc(buffer->data, capacity);
    if (!data) {
        buffer->failed = true;
        return false;
    }
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

void ts_buffer_append(ts_buffer *buffer, const void *data, size_t length) {
    if (!reserve(buffer, length))
        return;
    if (length)
        memcpy(buffer->data + buffer->length, data, length);
    buffer->length += length;
    buffer->data[buffer->length] = 0;
}

void ts_buffer_str(ts_buffer *buffer, ts_str s) { ts_buffer_append(buffer, s.data, s.length); }
void ts_buffer_text(ts_buffer *buffer, const char *text) {
    ts_buffer_append(buffer, text, strlen(text));
}
void ts_buffer_char(ts_buffer *buffer, char c) { ts_buffer_append(buffer, &c, 1); }

void ts_buffer_format(ts_buffer *buffer, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0)
        buffer->failed = true;
    else if (reserve(buffer, (size_t)n)) {
        vsnprintf(buffer->data + buffer->length, (size_t)n + 1, format, again);
        buffer->length += (size_t)n;
    }
    va_end(again);
}

void ts_buffer_align(ts_buffer *buffer, size_t align) {
    static const char zeros[64];
    while (!buffer->failed && buffer->length % align) {
        size_t n = align - buffer->length % align;
        ts_buffer_append(buffer, zeros, n < sizeof zeros ? n : sizeof zeros);
    }
}

ts_status ts_buffer_status(const ts_buffer *buffer) {
    return buffer->failed ? ts_no_memory() : NULL;
}

void ts_buffer_deinit(ts_buffer *buffer) {
    free(buffer->data);
    *buffer = (ts_buffer){0};
}

void ts_buffer_json(ts_buffer *buffer, ts_str text) {
    ts_buffer_char(buffer, '"');
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c == '"' || c == '\\')
            ts_buffer_format(buffer, "\\%c", c);
        else if (c < 32 || c == 127)
            ts_buffer_format(buffer, "\\u%04x", c);
        else
            ts_buffer_char(buffer, (char)c);
    }
    ts_buffer_char(buffer, '"');
}

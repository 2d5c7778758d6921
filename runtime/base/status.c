/* runtime/base/status.c - errors: made, extended, read, released. */
#include "runtime/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct ts_error {
    ts_code code;
    bool is_static;
    char *message;
    char *exception;
    char *trail;
    char *file; /* owned copy behind place.file */
    ts_place place;
};

static const struct ts_error no_memory_error = {.code = TS_ERR_NO_MEMORY, .is_static = true};

ts_status ts_no_memory(void) {
    /* The static error is never written: every setter checks is_static. */
    union {
        const struct ts_error *in;
        ts_status out;
    } cast = {.in = &no_memory_error};
    return cast.out;
}

static char *format_va(const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *text = n < 0 ? NULL : malloc((size_t)n + 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    return text;
}

static char *copy_str(ts_str s) {
    char *text = malloc(s.length + 1);
    if (!text)
        return NULL;
    if (s.length)
        memcpy(text, s.data, s.length);
    text[s.length] = 0;
    return text;
}

static ts_status make(ts_code code, char *message) {
    if (!message)
        return ts_no_memory();
    ts_status e = calloc(1, sizeof *e);
    if (!e) {
        free(message);
        return ts_no_memory();
    }
    e->code = code;
    e->message = message;
    return e;
}

ts_status ts_error_make(ts_code code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *message = format_va(format, args);
    va_end(args);
    return make(code, message);
}

ts_status ts_error_at(ts_code code, ts_place place, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *message = format_va(format, args);
    va_end(args);
    return ts_status_set_place(make(code, message), place);
}

ts_status ts_raise(const char *type, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *message = format_va(format, args);
    va_end(args);
    ts_status e = make(TS_ERR_RAISED, message);
    if (!e->is_static)
        e->exception = copy_str(ts_str_of(type));
    return e;
}

ts_status ts_raise_str(ts_str type, ts_str message) {
    ts_status e = make(TS_ERR_RAISED, copy_str(message));
    if (!e->is_static)
        e->exception = copy_str(type);
    return e;
}

ts_status ts_invalid_input(ts_status raised) {
    if (!raised->is_static)
        raised->code = TS_ERR_INVALID_INPUT;
    return raised;
}

ts_status ts_status_context(ts_status status, const char *format, ...) {
    if (!status || status->is_static)
        return status;
    va_list args;
    va_start(args, format);
    char *line = format_va(format, args);
    va_end(args);
    if (!line)
        return status;
    size_t old = status->trail ? strlen(status->trail) : 0;
    char *trail = realloc(status->trail, old + strlen(line) + 8);
    if (trail) {
        snprintf(trail + old, strlen(line) + 8, "%swhile %s", old ? "\n" : "", line);
        status->trail = trail;
    }
    free(line);
    return status;
}

ts_status ts_status_set_place(ts_status status, ts_place place) {
    bool is_known = status && (status->place.line || status->place.file.length);
    if (!status || status->is_static || is_known || (!place.line && !place.file.length))
        return status; /* a file alone is a place, too: bytes have no lines */
    char *file = copy_str(place.file);
    if (!file)
        return status;
    free(status->file);
    status->file = file;
    status->place = place;
    status->place.file = ts_str_of(file);
    return status;
}

ts_code ts_status_code(ts_status status) { return status ? status->code : TS_OK; }

const char *ts_status_message(ts_status status) {
    if (!status)
        return "";
    if (status->message)
        return status->message;
    return status->code == TS_ERR_NO_MEMORY ? "out of memory" : "";
}

const char *ts_status_exception(ts_status status) {
    return status && status->exception ? status->exception : "";
}

const char *ts_status_trail(ts_status status) {
    return status && status->trail ? status->trail : "";
}

ts_place ts_status_place(ts_status status) { return status ? status->place : (ts_place){0}; }

void ts_status_release(ts_status status) {
    if (!status || status->is_static)
        return;
    free(status->message);
    free(status->exception);
    free(status->trail);
    free(status->file);
    free(status);
}

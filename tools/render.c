/* tools/render.c - what tsc tells its user. Lines are cut to a window around the place, so that a
 * line of a megabyte stays a short message. */
#include "tools/render.h"

#include <stdio.h>
#include <string.h>

static const char *severity_name(fe_severity s) {
    switch (s) {
    case FE_ERROR: return "error";
    case FE_WARNING: return "warning";
    case FE_NOTE: return "note";
    }
    return "?";
}

static const char *code_name(ts_code code) {
    switch (code) {
    case TS_OK: return "ok";
    case TS_ERR_NO_MEMORY: return "no_memory";
    case TS_ERR_INVALID_FILE: return "invalid_file";
    case TS_ERR_INVALID_INPUT: return "invalid_input";
    case TS_ERR_SYNTAX: return "syntax";
    case TS_ERR_TYPE: return "type";
    case TS_ERR_UNSUPPORTED: return "unsupported";
    case TS_ERR_RAISED: return "raised";
    case TS_ERR_IO: return "io";
    case TS_ERR_CANCELLED: return "cancelled";
    case TS_ERR_INTERNAL: return "internal";
    }
    return "?";
}

enum { WINDOW = 110, BEFORE = 50 };

static bool starts_character(char c) { return ((unsigned char)c & 0xC0) != 0x80; }

/* Control characters would move the caret, or the reader's terminal. */
static void put_character(ts_buffer *out, const char *p, size_t n) {
    if (n == 1 && ((unsigned char)*p < 32 || *p == 127))
        ts_buffer_char(out, *p == '\t' ? ' ' : '?');
    else
        ts_buffer_append(out, p, n);
}

static void source_line(const fe_diagnostic *d, ts_buffer *out) {
    if (!d->line.length || d->place.line < 1)
        return;
    int first = d->place.column > BEFORE + 1 ? d->place.column - BEFORE : 1, column = 0;
    ts_buffer_format(out, "%6d | %s", d->place.line, first > 1 ? "..." : "");
    for (size_t i = 0; i < d->line.length;) {
        size_t n = 1;
        while (i + n < d->line.length && !starts_character(d->line.data[i + n]))
            n++;
        column++;
        if (column >= first + WINDOW) {
            ts_buffer_text(out, "...");
            break;
        }
        if (column >= first)
            put_character(out, d->line.data + i, n);
        i += n;
    }
    if (d->place.column >= 1) {
        ts_buffer_text(out, "\n       | ");
        for (int i = first; i < d->place.column + (first > 1 ? 3 : 0); i++)
            ts_buffer_char(out, ' ');
        ts_buffer_char(out, '^');
        for (int i = 1; i < d->place.length && d->place.column + i < first + WINDOW; i++)
            ts_buffer_char(out, '~');
    }
    ts_buffer_char(out, '\n');
}

/* User text inside messages may hold anything. */
static void clean(ts_buffer *out, ts_str s) {
    for (size_t i = 0; i < s.length; i++) {
        char c = s.data[i];
        ts_buffer_char(out, ((unsigned char)c < 32 && c != '\n') || c == 127 ? '?' : c);
    }
}

static void text_one(const fe_diagnostic *d, ts_str trail, ts_buffer *out) {
    if (d->place.file.length) {
        clean(out, d->place.file);
        if (d->place.line)
            ts_buffer_format(out, ":%d", d->place.line);
        if (d->place.line && d->place.column)
            ts_buffer_format(out, ":%d", d->place.column);
        ts_buffer_text(out, ": ");
    } else {
        ts_buffer_text(out, "tsc: ");
    }
    ts_buffer_format(out, "%s: ", severity_name(d->severity));
    clean(out, d->message);
    if (trail.length) {
        ts_buffer_text(out, " (");
        clean(out, trail);
        ts_buffer_char(out, ')');
    }
    ts_buffer_char(out, '\n');
    source_line(d, out);
}

static void json_one(const fe_diagnostic *d, ts_str trail, bool is_first, ts_buffer *out) {
    ts_buffer_format(out, "%s\n  {\"severity\": \"%s\", \"code\": \"%s\", \"file\": ",
                     is_first ? "" : ",", severity_name(d->severity), code_name(d->code));
    ts_buffer_json(out, d->place.file);
    ts_buffer_format(out, ", \"line\": %d, \"column\": %d, \"length\": %d, \"message\": ",
                     d->place.line, d->place.column, d->place.length);
    ts_buffer_json(out, d->message);
    if (trail.length) {
        ts_buffer_text(out, ", \"trail\": ");
        ts_buffer_json(out, trail);
    }
    if (d->line.length) {
        ts_buffer_text(out, ", \"source\": ");
        ts_buffer_json(out, (ts_str){d->line.data, d->line.length > 400 ? 0 : d->line.length});
    }
    ts_buffer_char(out, '}');
}

/* The status of a compile that reported errors repeats the first of them. */
static bool is_repeated(const fe_diagnostics *d, ts_status status) {
    for (size_t i = 0; d && i < d->count; i++)
        if (d->items[i].severity == FE_ERROR &&
            ts_str_is(d->items[i].message, ts_status_message(status)))
            return true;
    return false;
}

void render_all(render_format format, const fe_diagnostics *d, ts_status status, ts_buffer *out) {
    bool is_first = true, is_json = format == RENDER_JSON;
    if (is_json)
        ts_buffer_text(out, "{\"diagnostics\": [");
    for (size_t i = 0; d && i < d->count; i++) {
        if (is_json)
            json_one(&d->items[i], (ts_str){0}, is_first, out);
        else
            text_one(&d->items[i], (ts_str){0}, out);
        is_first = false;
    }
    if (status && !is_repeated(d, status)) {
        ts_str message = ts_str_of(ts_status_message(status));
        if (ts_status_code(status) == TS_ERR_NO_MEMORY)
            message = TS_STR("out of memory, or over the compiler's own limit of memory");
        else if (!message.length)
            message = TS_STR("failed");
        fe_diagnostic item = {.severity = FE_ERROR, .code = ts_status_code(status),
                              .place = ts_status_place(status), .message = message};
        ts_str trail = ts_str_of(ts_status_trail(status));
        const char *exception = ts_status_exception(status);
        ts_buffer full = {0};
        if (exception[0]) {
            ts_buffer_format(&full, "%s: ", exception);
            ts_buffer_str(&full, message);
            item.message = (ts_str){full.data, full.length};
        }
        if (is_json)
            json_one(&item, trail, is_first, out);
        else
            text_one(&item, trail, out);
        ts_buffer_deinit(&full);
    }
    if (d && d->error_count > 0 && !is_json) {
        size_t shown = 0;
        for (size_t i = 0; i < d->count; i++)
            shown += d->items[i].severity == FE_ERROR;
        if (d->error_count > shown)
            ts_buffer_format(out, "tsc: %zu more errors\n", d->error_count - shown);
    }
    if (is_json)
        ts_buffer_text(out, "\n]}\n");
}

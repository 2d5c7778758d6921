/* ir/text.c - the cursor that the parsers of types, schemas and modules share. */
#include "ir/ir_internal.h"

#include <errno.h>
#include <stdlib.h>

ir_text ir_text_make(ir_module *m, ts_str file, ts_str text) {
    const char *data = text.data ? text.data : "";
    return (ir_text){.m = m, .file = file, .start = data, .at = data, .end = data + text.length};
}

ts_place ir_text_place(const ir_text *t) {
    int line = 1, column = 1;
    for (const char *p = t->start; p < t->at; p++) {
        column++;
        if (*p == '\n') {
            line++;
            column = 1;
        }
    }
    return (ts_place){t->file, line, column, 1};
}

ts_status ir_text_error(const ir_text *t, const char *expected) {
    size_t left = (size_t)(t->end - t->at);
    size_t length = 0;
    while (length < left && length < 20 && t->at[length] != '\n')
        length++;
    if (!length)
        return ts_error_at(TS_ERR_SYNTAX, ir_text_place(t), "expected %s, found the end of the %s",
                           expected, left ? "line" : "text");
    return ts_error_at(TS_ERR_SYNTAX, ir_text_place(t), "expected %s, found '%.*s'", expected,
                       (int)length, t->at);
}

void ir_text_blank(ir_text *t) {
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\t' || *t->at == '\r'))
        t->at++;
}

void ir_text_space(ir_text *t) {
    for (;;) {
        ir_text_blank(t);
        if (t->at < t->end && *t->at == '\n')
            t->at++;
        else if (t->at < t->end && *t->at == '#')
            while (t->at < t->end && *t->at != '\n')
                t->at++;
        else
            return;
    }
}

static bool is_word_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_word(char c) { return is_word_start(c) || (c >= '0' && c <= '9'); }

bool ir_text_peek(ir_text *t, const char *token) {
    ir_text_blank(t);
    size_t length = strlen(token);
    if ((size_t)(t->end - t->at) < length || memcmp(t->at, token, length) != 0)
        return false;
    return !(is_word(token[length - 1]) && t->at + length < t->end && is_word(t->at[length]));
}

bool ir_text_take(ir_text *t, const char *token) {
    if (!ir_text_peek(t, token))
        return false;
    t->at += strlen(token);
    return true;
}

ts_status ir_text_expect(ir_text *t, const char *token) {
    if (ir_text_take(t, token))
        return NULL;
    char wanted[40];
    size_t length = strlen(token);
    if (length > sizeof wanted - 3)
        length = sizeof wanted - 3;
    wanted[0] = '\'';
    memcpy(wanted + 1, token, length);
    wanted[length + 1] = '\'';
    wanted[length + 2] = 0;
    return ir_text_error(t, wanted);
}

static ts_str read_word(ir_text *t, bool dots) {
    ir_text_blank(t);
    const char *from = t->at;
    if (from >= t->end || !is_word_start(*from))
        return (ts_str){from, 0};
    while (t->at < t->end &&
           (is_word(*t->at) ||
            (dots && *t->at == '.' && t->at + 1 < t->end && is_word(t->at[1]))))
        t->at++;
    return (ts_str){from, (size_t)(t->at - from)};
}

ts_str ir_text_word(ir_text *t) { return read_word(t, true); }
ts_str ir_text_name(ir_text *t) { return read_word(t, false); }

bool ir_text_int(ir_text *t, int64_t *out) {
    ir_text_blank(t);
    const char *p = t->at;
    bool negative = p < t->end && *p == '-';
    if (negative)
        p++;
    if (p >= t->end || *p < '0' || *p > '9')
        return false;
    uint64_t n = 0;
    for (; p < t->end && *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (n > (UINT64_MAX - digit) / 10)
            return false;
        n = n * 10 + digit;
    }
    if (n > (uint64_t)INT64_MAX + (negative ? 1u : 0u))
        return false;
    *out = negative ? (n == (uint64_t)INT64_MAX + 1 ? INT64_MIN : -(int64_t)n) : (int64_t)n;
    t->at = p;
    return true;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

ts_status ir_text_string(ir_text *t, ts_str *out) {
    ir_text_blank(t);
    char quote = t->at < t->end ? *t->at : 0;
    if (quote != '"' && quote != '\'')
        return ir_text_error(t, "a string");
    const char *p = t->at + 1;
    const char *stop = p;
    while (stop < t->end && *stop != quote && *stop != '\n')
        stop += *stop == '\\' && stop + 1 < t->end ? 2 : 1;
    if (stop >= t->end || *stop != quote)
        return ir_text_error(t, "a closed string");
    char *data = ts_arena_alloc(t->m->arena, (size_t)(stop - p) + 1);
    size_t length = 0;
    for (; p < stop; p++) {
        if (*p != '\\' || p + 1 >= stop) {
            data[length++] = *p;
            continue;
        }
        p++;
        int high, low;
        switch (*p) {
        case 'n':
            data[length++] = '\n';
            break;
        case 't':
            data[length++] = '\t';
            break;
        case 'r':
            data[length++] = '\r';
            break;
        case 'f':
            data[length++] = '\f';
            break;
        case 'v':
            data[length++] = '\v';
            break;
        case 'x':
            high = p + 2 < stop + 0 ? hex_digit(p[1]) : -1;
            low = high >= 0 ? hex_digit(p[2]) : -1;
            if (low < 0)
                return ir_text_error(t, "a string whose \\x has two digits");
            data[length++] = (char)(unsigned char)(high * 16 + low);
            p += 2;
            break;
        default:
            data[length++] = *p;
        }
    }
    t->at = stop + 1;
    *out = (ts_str){data, length};
    return NULL;
}

ts_status ir_text_quotable(ir_text *t, ts_str *out) {
    ir_text_blank(t);
    if (t->at < t->end && *t->at == '"')
        return ir_text_string(t, out);
    *out = ir_text_word(t);
    return out->length ? NULL : ir_text_error(t, "a name");
}

void ir_print_string(ts_str s, ts_buffer *out) {
    ts_buffer_char(out, '"');
    for (size_t i = 0; i < s.length; i++) {
        unsigned char c = (unsigned char)s.data[i];
        if (c == '"' || c == '\\') {
            ts_buffer_char(out, '\\');
            ts_buffer_char(out, (char)c);
        } else if (c == '\n') {
            ts_buffer_text(out, "\\n");
        } else if (c == '\t') {
            ts_buffer_text(out, "\\t");
        } else if (c < 32 || c == 127) {
            ts_buffer_format(out, "\\x%02x", c);
        } else {
            ts_buffer_char(out, (char)c);
        }
    }
    ts_buffer_char(out, '"');
}

void ir_print_quotable(ts_str s, ts_buffer *out) {
    bool plain = s.length > 0 && is_word_start(s.data[0]) && s.data[s.length - 1] != '.';
    for (size_t i = 0; plain && i < s.length; i++)
        plain = is_word(s.data[i]) || (s.data[i] == '.' && is_word(s.data[i + 1]));
    if (plain)
        ts_buffer_str(out, s);
    else
        ir_print_string(s, out);
}

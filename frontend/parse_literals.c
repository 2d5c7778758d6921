/* frontend/parse_literals.c - values of numbers, strings and f-strings; identifiers; comments.
 *
 * f-strings follow Python 3.12 (PEP 701): a replacement field may hold any expression, quotes of
 * the outer string included. */
#include "frontend/parse_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "frontend/parser.h"

typedef struct literal {
    fe_parser *p;
    const char *text;
    bool is_raw, is_format, is_triple;
    char quote;
} literal;

typedef struct bytes { /* a growing text in the arena */
    char *items;
    size_t count, capacity;
} bytes;

static void put(fe_parser *p, bytes *b, char c) {
    TS_APPEND(p->arena, b->items, b->count, b->capacity, c);
}

static void put_code_point(fe_parser *p, bytes *b, uint32_t c) {
    if (c < 0x80) {
        put(p, b, (char)c);
    } else if (c < 0x800) {
        put(p, b, (char)(0xC0 | c >> 6));
        put(p, b, (char)(0x80 | (c & 0x3F)));
    } else if (c < 0x10000) {
        put(p, b, (char)(0xE0 | c >> 12));
        put(p, b, (char)(0x80 | (c >> 6 & 0x3F)));
        put(p, b, (char)(0x80 | (c & 0x3F)));
    } else {
        put(p, b, (char)(0xF0 | c >> 18));
        put(p, b, (char)(0x80 | (c >> 12 & 0x3F)));
        put(p, b, (char)(0x80 | (c >> 6 & 0x3F)));
        put(p, b, (char)(0x80 | (c & 0x3F)));
    }
}

static int digit_of(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 99;
}

/* Reads the escape whose backslash is at `at`; returns the position after it. */
static uint32_t read_escape(fe_parser *p, bytes *b, uint32_t at, uint32_t end) {
    const char *t = p->source->text.data;
    fe_span span = {at, at + 2};
    char c = at + 1 < end ? t[at + 1] : 0;
    at += 2;
    switch (c) {
    case '\n': return at;
    case '\r': return at < end && t[at] == '\n' ? at + 1 : at;
    case '\\': case '\'': case '"': put(p, b, c); return at;
    case 'a': put(p, b, 7); return at;
    case 'b': put(p, b, 8); return at;
    case 'f': put(p, b, 12); return at;
    case 'n': put(p, b, 10); return at;
    case 'r': put(p, b, 13); return at;
    case 't': put(p, b, 9); return at;
    case 'v': put(p, b, 11); return at;
    case '0': case '1': case '2': case '3': case '4': case '5': case '6': case '7': {
        uint32_t value = (uint32_t)(c - '0');
        for (int i = 0; i < 2 && at < end && t[at] >= '0' && t[at] <= '7'; i++)
            value = value * 8 + (uint32_t)(t[at++] - '0');
        put_code_point(p, b, value);
        return at;
    }
    case 'x': case 'u': case 'U': {
        int count = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        uint32_t value = 0;
        for (int i = 0; i < count; i++, at++) {
            int d = at < end ? digit_of(t[at]) : 99;
            if (d > 15) {
                fe_parse_error(p, (fe_span){span.begin, at},
                               "expected %d hexadecimal digits after '\\%c'", count, c);
                return at;
            }
            value = value * 16 + (uint32_t)d;
        }
        if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
            fe_parse_error(p, (fe_span){span.begin, at},
                           "expected a character of Unicode, found code point %x", value);
        else
            put_code_point(p, b, value);
        return at;
    }
    case 'N':
        fe_parse_error(p, span, "characters by name (\\N{...}) are not supported; use \\u");
        return at;
    default: /* Python keeps the backslash of an escape that it does not know */
        put(p, b, '\\');
        return at - 1;
    }
}

/* Whether the string's closing quote stands at `at`. */
static bool is_close(const literal *l, uint32_t at) {
    if (at >= l->p->end || l->text[at] != l->quote)
        return false;
    return !l->is_triple || (at + 2 < l->p->end && l->text[at + 1] == l->quote &&
                             l->text[at + 2] == l->quote);
}

static ast_node *string_node(fe_parser *p, const bytes *b, fe_span span) {
    ast_node *node = fe_node_make(p, AST_STRING, span);
    node->text = (ts_str){b->items ? b->items : "", b->count};
    return fe_node_seal(p, node);
}

static uint32_t skip_string(literal *l, uint32_t at);

/* Length of a string prefix and opening quotes at `at`, or 0. */
static uint32_t string_start(const literal *outer, uint32_t at, literal *out) {
    const char *t = outer->text;
    uint32_t end = outer->p->end, i = at;
    *out = (literal){.p = outer->p, .text = t};
    for (; i < end && i < at + 2; i++) {
        char c = (char)(t[i] | 0x20);
        if (t[i] == '\'' || t[i] == '"')
            break;
        if (c == 'r')
            out->is_raw = true;
        else if (c == 'f')
            out->is_format = true;
        else if (c != 'b' && c != 'u')
            return 0;
    }
    if (i >= end || (t[i] != '\'' && t[i] != '"'))
        return 0;
    out->quote = t[i];
    out->is_triple = i + 2 < end && t[i + 1] == t[i] && t[i + 2] == t[i];
    return i - at + (out->is_triple ? 3 : 1);
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           ((unsigned char)c & 0x80);
}

/* End of the expression of a replacement field that begins at `at`: the '!', ':', '=' or '}' that
 * ends it; p->end where it has none. */
static uint32_t find_expression_end(literal *l, uint32_t at) {
    const char *t = l->text;
    int depth = 0;
    char previous = 0;
    while (at < l->p->end) {
        char c = t[at];
        literal inner;
        uint32_t n = is_word(previous) && c != '\'' && c != '"' ? 0 : string_start(l, at, &inner);
        if (n) {
            at = skip_string(&inner, at + n);
            previous = '"';
            continue;
        }
        if (c == '(' || c == '[' || c == '{') {
            depth++;
        } else if (c == ')' || c == ']' || (c == '}' && depth)) {
            if (depth == 0)
                return at;
            depth--;
        } else if (c == '}') {
            return at;
        } else if (c == '\n' && !l->is_triple) {
            return l->p->end;
        } else if (depth == 0) {
            char next = at + 1 < l->p->end ? t[at + 1] : 0;
            if (c == ':')
                return at;
            if (c == '!' && next != '=')
                return at;
            if (c == '!' || ((c == '<' || c == '>' || c == '=') && next == '=')) {
                at += 2;
                previous = '=';
                continue;
            }
            if (c == '=')
                return at;
        }
        previous = c;
        at++;
    }
    return at;
}

/* Position after the closing quotes of the string whose body begins at `at`; p->end if it has none. */
static uint32_t skip_string(literal *l, uint32_t at) {
    fe_parser *p = l->p;
    int fields = 0; /* replacement fields and specs open */
    if (++p->fstring_depth > PARSE_MAX_FSTRINGS)
        at = p->end;
    while (at < p->end) {
        char c = l->text[at];
        if (is_close(l, at)) {
            at += l->is_triple ? 3 : 1;
            p->fstring_depth--;
            return at;
        }
        if (c == '\\' && at + 1 < p->end)
            at += 2;
        else if (c == '\n' && !l->is_triple)
            break;
        else if (l->is_format && c == '{' && at + 1 < p->end && l->text[at + 1] == '{' && !fields)
            at += 2;
        else if (l->is_format && c == '{') {
            at = find_expression_end(l, at + 1);
            fields++;
        } else {
            fields -= l->is_format && c == '}' && fields > 0;
            at++;
        }
    }
    p->fstring_depth--;
    return p->end;
}

static ast_node *read_parts(literal *l, uint32_t *at, bool is_spec, fe_span span);

/* A replacement field; *at is after its '{'. Adds to parts; false after an error. */
static bool read_field(literal *l, uint32_t *at, ast_list *parts, bytes *pending) {
    fe_parser *p = l->p;
    uint32_t begin = *at, end = find_expression_end(l, begin);
    fe_span span = {begin - 1, begin};
    if (end >= p->end || l->text[end] == ')' || l->text[end] == ']') {
        fe_parse_error(p, span, "expected '}' for this '{' of an f-string");
        return false;
    }
    uint32_t first = begin;
    while (first < end && (l->text[first] == ' ' || l->text[first] == '\n'))
        first++;
    if (first == end) {
        fe_parse_error(p, span, "expected an expression inside '{}' of an f-string");
        return false;
    }
    ast_node *field = fe_node_make(p, AST_FORMATTED, (fe_span){begin - 1, end + 1});
    field->left = fe_parse_range(p, begin, end);
    if (!field->left)
        return false;
    uint32_t i = end;
    bool shows_text = l->text[i] == '=';
    if (shows_text) {
        i++;
        while (i < p->end && l->text[i] == ' ')
            i++;
        for (uint32_t k = begin; k < i; k++)
            put(p, pending, l->text[k]);
    }
    if (i + 1 < p->end && l->text[i] == '!') {
        char c = l->text[i + 1];
        if (c != 'r' && c != 's' && c != 'a') {
            fe_parse_error(p, (fe_span){i, i + 2}, "expected !r, !s or !a in an f-string");
            return false;
        }
        field->text = (ts_str){l->text + i + 1, 1};
        i += 2;
    }
    if (i < p->end && l->text[i] == ':') {
        i++;
        field->right = read_parts(l, &i, true, (fe_span){i, i + 1});
        if (!field->right)
            return false;
    } else if (shows_text && !field->text.length) {
        field->text = TS_STR("r");
    }
    if (i >= p->end || l->text[i] != '}') {
        fe_parse_error(p, span, "expected '}' for this '{' of an f-string");
        return false;
    }
    if (pending->count)
        fe_list_add(p, parts, string_node(p, pending, (fe_span){begin, begin}));
    *pending = (bytes){0};
    fe_list_add(p, parts, fe_node_seal(p, field));
    *at = i + 1;
    return true;
}

/* The body from *at to the closing quote, or, in a format spec, to its '}'. NULL after an error. */
static ast_node *read_parts(literal *l, uint32_t *at, bool is_spec, fe_span span) {
    fe_parser *p = l->p;
    bytes b = {0};
    ast_list parts = {0};
    uint32_t i = *at;
    bool is_right = true;
    for (;;) {
        if (i >= p->end || (!l->is_triple && (l->text[i] == '\n' || l->text[i] == '\r'))) {
            fe_parse_error(p, span, "expected a closing quote for the string that begins here");
            *at = i;
            return NULL;
        }
        char c = l->text[i];
        if (is_spec ? c == '}' || is_close(l, i) : is_close(l, i))
            break;
        if (c == '\\' && !l->is_raw) {
            size_t errors = p->error_count;
            i = read_escape(p, &b, i, p->end);
            is_right &= errors == p->error_count;
        } else if (c == '\\' && i + 1 < p->end) { /* raw: kept, and it hides a quote */
            put(p, &b, c);
            put(p, &b, l->text[i + 1]);
            i += 2;
        } else if (c == '\r') {
            if (i + 1 < p->end && l->text[i + 1] == '\n') {
                i++; /* a line end is one line feed */
                continue;
            }
            fe_parse_error(p, (fe_span){i, i + 1}, "expected a line feed after a carriage return");
            is_right = false;
            i++;
        } else if (l->is_format && (c == '{' || c == '}') && i + 1 < p->end &&
                   l->text[i + 1] == c && !is_spec) {
            put(p, &b, c);
            i += 2;
        } else if (l->is_format && c == '{') {
            i++;
            uint32_t open = i;
            if (!read_field(l, &i, &parts, &b)) {
                *at = open;
                return NULL;
            }
        } else if (l->is_format && c == '}') {
            fe_parse_error(p, (fe_span){i, i + 1}, "expected '}}' in an f-string, found '}'");
            is_right = false;
            i++;
        } else {
            put(p, &b, c);
            i++;
        }
    }
    *at = i;
    if (!is_right)
        return NULL;
    span.end = i;
    if (!l->is_format)
        return string_node(p, &b, span);
    if (b.count)
        fe_list_add(p, &parts, string_node(p, &b, span));
    ast_node *node = fe_node_make(p, AST_FSTRING, span);
    node->list = parts;
    return fe_node_seal(p, node);
}

ast_node *fe_read_string(fe_parser *p, uint32_t begin, uint32_t body, uint32_t *out_end) {
    literal l = {.p = p, .text = p->source->text.data};
    for (uint32_t i = begin; i < body; i++) {
        char c = (char)(l.text[i] | 0x20);
        if (l.text[i] == '\'' || l.text[i] == '"') {
            l.quote = l.text[i];
            l.is_triple = body - i == 3;
            break;
        }
        if (c == 'b') {
            fe_parse_error(p, (fe_span){begin, body}, "bytes literals are not supported");
            *out_end = skip_string(&l, body);
            return NULL;
        }
        l.is_raw |= c == 'r';
        l.is_format |= c == 'f';
    }
    if (l.is_format && p->fstring_depth >= PARSE_MAX_FSTRINGS) {
        fe_parse_error(p, (fe_span){begin, body}, "f-strings are nested deeper than %d",
                       PARSE_MAX_FSTRINGS);
        *out_end = p->end;
        return NULL;
    }
    p->fstring_depth += l.is_format;
    uint32_t at = body;
    size_t errors = p->error_count;
    ast_node *node = read_parts(&l, &at, false, (fe_span){begin, body});
    p->fstring_depth -= l.is_format;
    if (node) {
        at += l.is_triple ? 3 : 1;
        node->offset = begin;
        node->length = at - begin;
    } else if (!is_close(&l, at) || errors != p->error_count) {
        /* After a wrong field the rest is skipped as a string, else to the end of the line. */
        uint32_t end = is_close(&l, at) ? at + (l.is_triple ? 3 : 1) : skip_string(&l, body);
        if (end >= p->end)
            for (end = body; end < p->end && l.text[end] != '\n' && l.text[end] != '\r';)
                end++;
        at = end;
    }
    *out_end = at;
    return node;
}

/* ---- numbers ---- */

static ast_node *read_integer(fe_parser *p, fe_span span, const char *digits, size_t count) {
    unsigned base = 10;
    size_t i = 0;
    if (count > 1 && digits[0] == '0') {
        char c = (char)(digits[1] | 0x20);
        base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 10;
        i = base == 10 ? 0 : 2;
    }
    ast_node *node = fe_node_make(p, AST_INT, span);
    node->text = fe_span_text(p, span);
    uint64_t value = 0;
    bool is_zero = true;
    for (; i < count; i++) {
        unsigned d = (unsigned)digit_of(digits[i]);
        is_zero &= d == 0;
        if (value > ((uint64_t)INT64_MAX - d) / base)
            node->is_big = true;
        value = node->is_big ? 0 : value * base + d;
    }
    if (base == 10 && count > 1 && digits[0] == '0' && !is_zero) {
        fe_parse_error(p, span, "expected an integer without leading zeros (octal is 0o...)");
        return NULL;
    }
    node->integer = (int64_t)value;
    return fe_node_seal(p, node);
}

ast_node *fe_read_number(fe_parser *p, fe_span span) {
    ts_str written = fe_span_text(p, span);
    bytes b = {0};
    bool is_hex = written.length > 1 && (written.data[1] | 0x20) == 'x';
    bool is_float = false;
    for (size_t i = 0; i < written.length; i++) {
        char c = written.data[i];
        if (c == '_')
            continue;
        is_float |= !is_hex && (c == '.' || c == 'e' || c == 'E');
        put(p, &b, c);
    }
    put(p, &b, 0);
    size_t count = b.count - 1;
    bool is_imaginary = !is_hex && (b.items[count - 1] | 0x20) == 'j';
    if (!is_float && !is_imaginary) {
        if (count > PARSE_MAX_DIGITS) {
            fe_parse_error(p, span, "expected an integer of at most %d digits, found one of %zu",
                           PARSE_MAX_DIGITS, count);
            return NULL;
        }
        return read_integer(p, span, b.items, count);
    }
    ast_node *node = fe_node_make(p, is_imaginary ? AST_IMAGINARY : AST_FLOAT, span);
    node->text = written;
    char *end;
    errno = 0;
    node->number = strtod(b.items, &end); /* no locale is ever set: the decimal point is a dot */
    if (end != b.items + count - is_imaginary) {
        fe_parse_error(p, span, "expected a number, found '%.*s'", TS_STR_ARG(written));
        return NULL;
    }
    return fe_node_seal(p, node);
}

/* ---- identifiers and comments ---- */

bool fe_check_identifier(fe_parser *p, fe_span span) {
    const unsigned char *t = (const unsigned char *)p->source->text.data;
    for (uint32_t i = span.begin; i < span.end; i++) {
        uint32_t c = t[i], n = 1;
        if (c < 0x80)
            continue;
        if (c >= 0xF0)
            n = 4, c &= 7;
        else if (c >= 0xE0)
            n = 3, c &= 15;
        else
            n = 2, c &= 31;
        for (uint32_t k = 1; k < n; k++)
            c = c << 6 | (t[i + k] & 0x3Fu);
        /* Blanks, punctuation, symbols and private use; letters of all scripts pass. */
        bool is_bad = c < 0xAA || c == 0xAB || c == 0xBB || c == 0xD7 || c == 0xF7 ||
                      (c >= 0x2000 && c < 0x2070) || (c >= 0x20A0 && c < 0x2100) ||
                      (c >= 0x2190 && c < 0x2C00) || (c >= 0x2E00 && c < 0x3005) ||
                      (c >= 0x3008 && c < 0x3021) || (c >= 0xE000 && c < 0xF900) ||
                      (c >= 0xFE00 && c < 0xFE70) || c == 0xFEFF || (c >= 0xFF01 && c < 0xFF10) ||
                      (c >= 0x1F000 && c < 0x20000) || c >= 0xE0000;
        if (is_bad) {
            fe_parse_error(p, (fe_span){i, i + n},
                           "expected a letter or digit in a name, found character U+%04X", c);
            return false;
        }
        i += n - 1;
    }
    return true;
}

void fe_read_comment(fe_parser *p, fe_span span) {
    ts_str text = fe_span_text(p, span);
    while (text.length && (text.data[text.length - 1] == '\n' || text.data[text.length - 1] == '\r' ||
                           text.data[text.length - 1] == ' '))
        text.length--;
    size_t i = 0;
    while (i < text.length && text.data[i] != '#')
        i++;
    i++;
    while (i < text.length && (text.data[i] == ' ' || text.data[i] == '\t'))
        i++;
    if (i > text.length)
        return;
    ts_str rest = {text.data + i, text.length - i};
    if (p->is_expression || !ts_str_starts_with(rest, "type:"))
        return;
    i += 5;
    while (i < text.length && (text.data[i] == ' ' || text.data[i] == '\t'))
        i++;
    rest = (ts_str){text.data + i, text.length - i};
    if (!rest.length || ts_str_starts_with(rest, "ignore"))
        return;
    fe_comment comment = {rest, span.begin + (uint32_t)i};
    if (p->bracket_count)
        TS_APPEND(p->arena, p->inner_comments, p->inner_count, p->inner_capacity, comment);
    else if (p->last_token != 0 && p->last_token != NEWLINE)
        p->line_comment = comment;
    else if (p->header_token == ':' && !p->block_comment.text.length)
        p->block_comment = comment;
}

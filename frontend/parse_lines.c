/* frontend/parse_lines.c - the layout of lines: indentation, brackets, where a statement may begin. */
#include "frontend/parse_internal.h"

#include "frontend/parser.h"

static ts_place place_of(const fe_parser *p, uint32_t begin, uint32_t length) {
    return fe_source_place(p->source, begin, length);
}

static void push_indent(fe_parser *p, fe_indent indent, uint32_t begin) {
    if (p->indent_count > PARSE_MAX_BRACKETS) {
        if (!p->must_stop)
            fe_parse_error(p, (fe_span){begin, begin + 1}, "blocks are nested deeper than %d",
                           PARSE_MAX_BRACKETS);
        p->must_stop = true;
        return;
    }
    TS_APPEND(p->arena, p->indents, p->indent_count, p->indent_capacity, indent);
}

bool fe_begin_line(fe_parser *p, uint32_t begin, uint32_t end) {
    fe_indent here = {0, 0, false};
    if (end >= p->end)
        return true; /* blanks at the end of the text are no line */
    for (uint32_t i = begin; i < end; i++) {
        char c = p->source->text.data[i];
        if (c == '\t')
            here.column = (here.column / 8 + 1) * 8;
        else if (c == '\f')
            here = (fe_indent){0, 0, false};
        else
            here.column++;
        here.alternate += c != '\f';
    }
    if (p->indent_count == 0)
        push_indent(p, (fe_indent){0, 0, false}, begin);
    bool is_header = p->header_token == ':' && !p->is_expression;
    fe_span span = {end, end + 1};
    fe_indent top = p->indents[p->indent_count - 1];
    if ((here.column > top.column) != (here.alternate > top.alternate) ||
        (here.column == top.column) != (here.alternate == top.alternate)) {
        /* Reading goes on by columns, in order to find further errors. */
        bool is_told = here.column < top.column;
        for (size_t i = p->indent_count; i > 0 && is_told; i--)
            if (p->indents[i - 1].column == here.column)
                is_told = p->indents[i - 1].alternate != here.alternate;
        if (here.column >= top.column || is_told)
            fe_parse_error(p, span, "tabs and blanks are mixed so that the indentation of this line "
                                    "depends on the width of a tab");
    }
    if (here.column > top.column) {
        if (is_header)
            p->pending_indents = 1;
        else if (!p->skip_line_check)
            fe_parse_error(p, span, "expected no indentation here, found a line indented by %u",
                           here.column);
        here.is_silent = !is_header;
        push_indent(p, here, begin);
        p->skip_line_check = false;
        return true;
    }
    if (is_header && !p->skip_line_check) {
        fe_parse_error(p, span, "expected an indented block after the line that ends in ':'");
        p->pending_indents = 1;
        p->pending_dedents = 1;
    }
    p->skip_line_check = false;
    while (p->indent_count > 1 && p->indents[p->indent_count - 1].column > here.column) {
        p->indent_count--;
        p->pending_dedents += !p->indents[p->indent_count].is_silent;
    }
    top = p->indents[p->indent_count - 1];
    if (top.column != here.column) {
        fe_parse_error(p, span,
                       "expected the indentation of an outer block, found a line indented by %u",
                       here.column);
        here.is_silent = true;
        push_indent(p, here, begin);
    }
    return true;
}

bool fe_open_bracket(fe_parser *p) {
    if (p->bracket_count >= PARSE_MAX_BRACKETS) {
        if (!p->must_stop)
            fe_parse_error(p, (fe_span){p->token_begin, p->position},
                           "brackets are nested deeper than %d", PARSE_MAX_BRACKETS);
        p->must_stop = true;
        return false;
    }
    TS_APPEND(p->arena, p->brackets, p->bracket_count, p->bracket_capacity, p->token_begin);
    return true;
}

bool fe_close_bracket(fe_parser *p, char c) {
    fe_span span = {p->token_begin, p->position};
    if (p->bracket_count == 0) {
        if (!p->is_recovering)
            fe_parse_error(p, span, "'%c' closes no bracket", c);
        return false;
    }
    p->bracket_count--;
    char open = p->source->text.data[p->brackets[p->bracket_count]];
    char wanted = open == '(' ? ')' : open == '[' ? ']' : '}';
    if (c == wanted)
        return true;
    if (!p->is_recovering) {
        ts_place place = place_of(p, p->brackets[p->bracket_count], 1);
        fe_parse_error(p, span, "expected '%c' for the '%c' of line %d, found '%c'", wanted, open,
                       place.line, c);
    }
    return false;
}

bool fe_line_begins_statement(const fe_parser *p) {
    static const char *const words[] = {"def",   "class",  "return", "import", "while", "with",
                                        "try",   "raise",  "assert", "pass",   "break", "continue",
                                        "del",   "global", "from",   "elif"};
    const char *text = p->source->text.data;
    uint32_t at = p->position, begin = at;
    while (at < p->end && (text[at] == ' ' || text[at] == '\t'))
        at++;
    if (at >= p->end || text[at] == '\n' || text[at] == '\r' || text[at] == '#' ||
        text[at] == ')' || text[at] == ']' || text[at] == '}')
        return false;
    if (text[at] == '@' || (p->indent_count &&
                            at - begin <= p->indents[p->indent_count - 1].column))
        return true;
    uint32_t word_end = at;
    while (word_end < p->end && text[word_end] >= 'a' && text[word_end] <= 'z')
        word_end++;
    ts_str word = {text + at, word_end - at};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (ts_str_is(word, words[i]))
            return true;
    return false;
}

/* The text from `at` to the end of its line ends in ':' but for blanks and a comment. */
static bool ends_in_colon(const fe_parser *p, uint32_t at) {
    const char *t = p->source->text.data;
    char quote = 0, last = 0;
    for (; at < p->end && t[at] != '\n' && t[at] != '\r'; at++) {
        if (quote) {
            at += t[at] == '\\';
            quote = t[at] == quote ? 0 : quote;
        } else if (t[at] == '\'' || t[at] == '"') {
            quote = last = t[at];
        } else if (t[at] == '#') {
            break;
        } else if (t[at] != ' ' && t[at] != '\t') {
            last = t[at];
        }
    }
    return last == ':';
}

bool fe_is_match_word(const fe_parser *p, fe_span span) {
    ts_str word = fe_span_text(p, span);
    bool is_match = ts_str_is(word, "match"), is_case = ts_str_is(word, "case");
    if ((!is_match && !is_case) || p->is_expression || p->bracket_count)
        return false;
    bool is_start = p->last_token == 0 || p->last_token == NEWLINE || p->last_token == INDENT ||
                    p->last_token == DEDENT;
    const char *t = p->source->text.data;
    uint32_t at = span.end;
    if (!is_start || at >= p->end)
        return false;
    while (at < p->end && (t[at] == ' ' || t[at] == '\t'))
        at++;
    if (at >= p->end || strchr("=.,:;)]}|&^%>!@+/\n\r", t[at]) || (t[at] == '*' && is_match) || t[at] == '<')
        return false; /* a variable of that name */
    if (is_case)
        return true; /* no statement begins with a name and goes on with another word */
    if (!ends_in_colon(p, at))
        return false;
    /* The next line that is not blank begins with case. */
    while (at < p->end && t[at] != '\n')
        at++;
    while (at < p->end && (t[at] == ' ' || t[at] == '\t' || t[at] == '\n' || t[at] == '\r'))
        at++;
    ts_str rest = {t + at, p->end - at};
    return ts_str_starts_with(rest, "case") || ts_str_starts_with(rest, "#");
}

/* frontend/parse.c - runs the scanner and the (push) parser over a text and reports syntax errors. */
#include "frontend/parse_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "frontend/parser.h"

typedef void *yyscan_t;
int fe_scan(fe_parser *parser, FE_YYSTYPE *value, yyscan_t scanner);
bool fe_scanner_make(fe_parser *parser, yyscan_t *out);
int fe_yylex_destroy(yyscan_t scanner);

void fe_parse_error(fe_parser *p, fe_span span, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    p->error_count++;
    p->skip_line_check = true;
    if (p->bracket_count)
        p->is_recovering = true;
    uint32_t length = span.end > span.begin ? span.end - span.begin : 1;
    ts_place place = fe_source_place(p->source, span.begin, length);
    ts_place own = fe_source_place(&(fe_source){.name = p->source->name,
                                                .text = p->source->text,
                                                .line_offsets = p->source->line_offsets,
                                                .line_count = p->source->line_count},
                                   span.begin, length);
    fe_report_place(p->diagnostics, FE_ERROR, TS_ERR_SYNTAX, place,
                    fe_source_line(p->source, own.line), "%s", text);
}

static int end_of_text(fe_parser *p, FE_YYSTYPE *value) {
    if (p->is_expression || p->bracket_count)
        return END;
    if (!p->is_ending) {
        p->is_ending = true;
        bool is_open = p->last_token && p->last_token != NEWLINE;
        if (is_open) {
            value->comment = p->line_comment;
            return NEWLINE;
        }
    }
    if (p->header_token == ':' && p->last_token == NEWLINE) {
        fe_parse_error(p, (fe_span){p->end, p->end}, "expected an indented block, found end of file");
        p->header_token = 0;
        p->pending_dedents = 1;
        return INDENT;
    }
    while (p->indent_count > 1) {
        p->indent_count--;
        p->pending_dedents += !p->indents[p->indent_count].is_silent;
    }
    if (p->pending_dedents) {
        p->pending_dedents--;
        return DEDENT;
    }
    return END;
}

static int next_token(fe_parser *p, yyscan_t scanner, FE_YYSTYPE *value, fe_span *span) {
    int token = FE_SCAN_PENDING;
    if (!p->pending_indents && !p->pending_dedents)
        token = p->is_ending ? END : fe_scan(p, value, scanner);
    if (token == FE_SCAN_PENDING) {
        if (p->pending_indents) {
            p->pending_indents--;
            value->comment = p->block_comment;
            token = INDENT;
        } else {
            p->pending_dedents--;
            token = DEDENT;
        }
        p->block_comment = (fe_comment){0};
        *span = (fe_span){p->position, p->position};
    } else if (token == END) {
        token = end_of_text(p, value);
        *span = (fe_span){p->position, p->position};
    } else {
        *span = (fe_span){p->token_begin, p->position};
    }
    if (token == NEWLINE) {
        p->header_token = p->last_token;
        p->block_comment = (fe_comment){0};
    }
    p->last_token = token;
    return token;
}

/* Everything that outlives a jump out of the arena is here and is released after it. */
typedef struct machine {
    yyscan_t scanner;
    fe_yypstate *state;
} machine;

static void run(fe_parser *p, machine *m) {
    FE_YYSTYPE value = {0};
    fe_span span = {p->position, p->position};
    int start = p->is_expression ? START_EXPRESSION : START_FILE;
    int status = fe_yypush_parse(m->state, start, &value, &span, p);
    while (status == YYPUSH_MORE && !p->must_stop && p->error_count < PARSE_MAX_ERRORS) {
        memset(&value, 0, sizeof value);
        int token = next_token(p, m->scanner, &value, &span);
        status = fe_yypush_parse(m->state, token, &value, &span, p);
    }
}

static void release(machine *m) {
    if (m->state)
        fe_yypstate_delete(m->state);
    if (m->scanner)
        fe_yylex_destroy(m->scanner);
}

static ast_node *parse(fe_parser *p) {
    machine *m = TS_NEW(p->arena, machine);
    jmp_buf *outer = ts_arena_handler(p->arena);
    jmp_buf handler;
    if (setjmp(handler)) {
        release(m);
        ts_arena_set_handler(p->arena, outer);
        if (!outer)
            abort(); /* as the arena itself does without a handler */
        longjmp(*outer, 1);
    }
    ts_arena_set_handler(p->arena, &handler);
    m->state = fe_yypstate_new();
    if (m->state && !fe_scanner_make(p, &m->scanner))
        m->scanner = NULL;
    if (!m->state || !m->scanner)
        longjmp(handler, 1); /* out of memory, told as the arena tells it */
    run(p, m);
    release(m);
    ts_arena_set_handler(p->arena, outer);
    return p->error_count ? NULL : p->result;
}

static fe_parser *make(ts_arena *arena, const fe_source *source, fe_diagnostics *diagnostics) {
    fe_parser *p = TS_NEW(arena, fe_parser);
    p->arena = arena;
    p->source = source;
    p->diagnostics = diagnostics;
    p->end = (uint32_t)source->text.length;
    return p;
}

/* Characters that reorder text on screen can hide what a program does (CVE-2021-42574). */
static void warn_of_reordering(fe_parser *p) {
    const unsigned char *t = (const unsigned char *)p->source->text.data;
    for (uint32_t i = 0; i + 2 < p->end; i++) {
        if (t[i] != 0xE2)
            continue;
        if ((t[i + 1] == 0x80 && t[i + 2] >= 0xAA && t[i + 2] <= 0xAE) ||
            (t[i + 1] == 0x81 && t[i + 2] >= 0xA6 && t[i + 2] <= 0xA9)) {
            ts_place place = fe_source_place(p->source, i, 3);
            fe_report_place(p->diagnostics, FE_WARNING, TS_ERR_SYNTAX, place,
                            fe_source_line(p->source, place.line),
                            "a character that changes the direction of text stands here: the line "
                            "may not mean what it shows");
            return;
        }
    }
}

ast_node *fe_parse(ts_arena *arena, const fe_source *source, fe_diagnostics *diagnostics) {
    fe_parser *p = make(arena, source, diagnostics);
    warn_of_reordering(p);
    return parse(p);
}

ast_node *fe_parse_expression(ts_arena *arena, const fe_source *source,
                              fe_diagnostics *diagnostics) {
    fe_parser *p = make(arena, source, diagnostics);
    p->is_expression = true;
    return parse(p);
}

ast_node *fe_parse_range(fe_parser *outer, uint32_t begin, uint32_t end) {
    fe_parser *p = make(outer->arena, outer->source, outer->diagnostics);
    p->is_expression = true;
    p->position = p->token_begin = begin;
    p->end = end;
    p->fstring_depth = outer->fstring_depth;
    ast_node *node = parse(p);
    outer->error_count += p->error_count;
    outer->must_stop |= p->must_stop;
    return node;
}

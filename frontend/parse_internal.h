/* frontend/parse_internal.h - what scanner, grammar and tree building share. Only parse*.c, lexer.l
 * and parser.y include it. */
#ifndef FRONTEND_PARSE_INTERNAL_H
#define FRONTEND_PARSE_INTERNAL_H

#include "frontend/ast.h"
#include "frontend/diagnostics.h"

enum {
    PARSE_MAX_BRACKETS = 1000, /* also the limit of nested blocks */
    PARSE_MAX_FSTRINGS = 32,   /* f-strings inside f-strings */
    PARSE_MAX_ERRORS = 20,
    PARSE_MAX_DIGITS = 100,    /* of an integer literal */
    FE_SCAN_PENDING = -2       /* from fe_scan: INDENT or DEDENT are to be given first */
};

/* Byte range in the source's text: the grammar's locations. */
typedef struct fe_span {
    uint32_t begin, end;
} fe_span;

typedef struct fe_indent {
    uint32_t column;     /* tabs to the next multiple of 8 */
    uint32_t alternate;  /* a tab counts 1: both must agree, or tabs and blanks are mixed */
    bool is_silent;      /* after "unexpected indent": no INDENT was given, so no DEDENT follows */
} fe_indent;

typedef struct fe_comment { /* a "# type:" comment */
    ts_str text;            /* after "type:" */
    uint32_t offset;
} fe_comment;

typedef struct fe_block {
    ast_list body;
    fe_comment comment;
} fe_block;

typedef struct fe_parser {
    ts_arena *arena;
    const fe_source *source;
    fe_diagnostics *diagnostics;
    ast_node *result;
    size_t error_count;
    bool must_stop; /* a limit was met: further errors would be noise */
    int fstring_depth;
    /* scanner */
    bool is_expression; /* one expression: line ends are blanks */
    uint32_t token_begin, position;
    uint32_t end;
    uint32_t *brackets; /* offsets of the open ones */
    size_t bracket_count, bracket_capacity;
    fe_indent *indents;
    size_t indent_count, indent_capacity;
    int pending_indents, pending_dedents;
    int last_token, header_token; /* header_token: the one before the last NEWLINE */
    bool skip_line_check;    /* an error in this line was told: its block may be indented */
    bool is_recovering;      /* an error inside brackets: a line that begins a statement ends it */
    bool is_ending;
    fe_comment line_comment;  /* of the logical line under way */
    fe_comment block_comment; /* alone on its line after a header */
    fe_comment *inner_comments; /* inside brackets */
    size_t inner_count, inner_capacity;
    ast_node *with_target;   /* "x as y" met inside parentheses: only `with` may take it */
    int with_targets;
    int match_count;
} fe_parser;

/* ---- tree building (parse_build.c) ---- */
ast_node *fe_node_make(fe_parser *p, ast_kind kind, fe_span span);
/* Computes the depth once the members are set; too deep a tree stops the parse. */
ast_node *fe_node_seal(fe_parser *p, ast_node *node);
void fe_list_add(fe_parser *p, ast_list *list, ast_node *node);
void fe_list_concat(fe_parser *p, ast_list *list, ast_list more);
ast_node *fe_build_binary(fe_parser *p, ast_operator op, ast_node *left, ast_node *right,
                          fe_span span);
ast_node *fe_build_unary(fe_parser *p, ast_operator op, ast_node *operand, fe_span span);
ast_node *fe_build_boolop(fe_parser *p, ast_operator op, ast_node *left, ast_node *right,
                          fe_span span);
ast_node *fe_build_compare(fe_parser *p, ast_operator op, ast_node *left, ast_node *right,
                           bool extends, fe_span span);
ast_node *fe_build_sequence(fe_parser *p, ast_kind kind, ast_list items, fe_span span);
/* "(items)": the item itself, or a tuple. */
ast_node *fe_build_group(fe_parser *p, ast_list items, bool has_comma, fe_span span);
ast_node *fe_build_call(fe_parser *p, ast_node *callee, ast_list arguments, fe_span span);
ast_node *fe_build_assign(fe_parser *p, ast_node *first, ast_list rest, fe_span span);
ast_node *fe_build_ann_assign(fe_parser *p, ast_node *target, ast_node *annotation,
                              ast_node *value, fe_span span);
ast_node *fe_build_aug_assign(fe_parser *p, ast_operator op, ast_node *target, ast_node *value,
                              fe_span span);
ast_node *fe_build_function(fe_parser *p, ts_str name, ast_parameters parameters,
                            ast_node *returns, fe_block block, fe_span span);
ast_node *fe_build_if(fe_parser *p, ast_list arms, ast_list orelse); /* arms: IF nodes in order */
/* match: an assignment of the subject and a chain of IF (parse_match.c). cases: IF nodes with the
 * pattern in left, the name after `as` in text, the guard in test. */
ast_list fe_build_match(fe_parser *p, ast_node *subject, ast_list cases, fe_span span);
ast_node *fe_build_strings(fe_parser *p, ast_list parts, fe_span span);
/* Adds a parameter and checks the order; star or slash alone: name empty. */
void fe_parameters_add(fe_parser *p, ast_parameters *list, ast_parameter parameter);
/* Reports whatever cannot be assigned to; what: "assign to", "delete". */
void fe_check_target(fe_parser *p, const ast_node *node, const char *what, bool is_inner);
void fe_attach_comment(fe_parser *p, ast_node **statement, fe_comment comment);
/* Ends a statement: `with` targets in ordinary parentheses are an error. */
void fe_check_statement(fe_parser *p);
ts_str fe_span_text(const fe_parser *p, fe_span span);

/* ---- literals (parse_literals.c) ---- */
/* The string that begins with the prefix and quote at [begin, body): its value and its end. NULL
 * after reporting an error; *out_end is then where scanning may go on. */
ast_node *fe_read_string(fe_parser *p, uint32_t begin, uint32_t body, uint32_t *out_end);
ast_node *fe_read_number(fe_parser *p, fe_span span); /* NULL after reporting an error */
bool fe_check_identifier(fe_parser *p, fe_span span);
void fe_read_comment(fe_parser *p, fe_span span);

/* ---- errors and sub-parses (parse.c) ---- */
void fe_parse_error(fe_parser *p, fe_span span, const char *format, ...) TS_PRINTF(3, 4);
/* An expression inside an f-string or a type comment. NULL where it does not parse. */
ast_node *fe_parse_range(fe_parser *p, uint32_t begin, uint32_t end);

/* ---- the scanner's line starts (parse_lines.c) ---- */
/* The indentation of a line that holds a token: sets pending_indents or pending_dedents.
 * False after an error that the grammar must recover from. */
bool fe_begin_line(fe_parser *p, uint32_t begin, uint32_t end);
bool fe_open_bracket(fe_parser *p);
bool fe_close_bracket(fe_parser *p, char c);
/* `match` and `case` are keywords only where a statement begins and the line looks like one. */
bool fe_is_match_word(const fe_parser *p, fe_span span);
/* At a line end inside brackets, after an error: does the next line begin a statement? */
bool fe_line_begins_statement(const fe_parser *p);

#endif

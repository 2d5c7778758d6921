/* frontend/ast.h - the syntax tree of a model script, of an archive's code and of the library:
 * one grammar, shaped as Python's own `ast` module. Everything lives in the compilation's arena. */
#ifndef FRONTEND_AST_H
#define FRONTEND_AST_H

#include "frontend/source.h"
#include "runtime/base/arena.h"
#include "runtime/base/buffer.h"
#include "runtime/base/status.h"

typedef struct ast_node ast_node;

/* The attribute that the n-th positional part of a class pattern means, as __match_args__ says. */
#define FE_MATCH_ARGUMENT "$argument"

typedef struct ast_list {
    ast_node **items;
    size_t count, capacity;
} ast_list;

/* KIND(NAME, members in use) */
#define AST_KINDS(KIND)                                                                            \
    /* expressions */                                                                              \
    KIND(NAME, "text")                                                                             \
    KIND(INT, "text: digits as written, any base; value in integer when fits, else is_big")        \
    KIND(FLOAT, "number")                                                                          \
    KIND(IMAGINARY, "number: 2.5j")                                                                \
    KIND(STRING, "text: decoded value, adjacent literals joined")                                  \
    KIND(FSTRING, "list: STRING and FORMATTED parts")                                              \
    KIND(FORMATTED, "left: expression; text: conversion r s a or empty; right: FSTRING spec|NULL") \
    KIND(TRUE, "") KIND(FALSE, "") KIND(NONE, "") KIND(ELLIPSIS, "")                               \
    KIND(TUPLE, "list") KIND(LIST, "list") KIND(SET, "list")                                       \
    KIND(DICT, "list: key, value, key, value; a NULL key is **value")                              \
    KIND(UNARY, "op; left")                                                                        \
    KIND(BINARY, "op; left, right")                                                                \
    /* a op b op c ... of more than AST_CHAIN_TERMS terms, evaluated from left to right */         \
    KIND(CHAIN, "list: n+1 operands; ops: n")                                                      \
    KIND(BOOLOP, "op AND or OR; list of two or more")                                              \
    KIND(COMPARE, "list: n+1 operands; ops: n")                                                    \
    KIND(CONDITIONAL, "test; left: if true; right: if false")                                      \
    KIND(CALL, "left: callee; list: arguments, STARRED for *a, KEYWORD for n=v and **d")           \
    KIND(KEYWORD, "text: name, empty for **; left: value")                                         \
    KIND(ATTRIBUTE, "left; text: name")                                                            \
    KIND(SUBSCRIPT, "left; right: index, a TUPLE for several")                                     \
    KIND(SLICE, "left, right, third: start, stop, step, each may be NULL")                         \
    KIND(STARRED, "left")                                                                          \
    KIND(LAMBDA, "parameters; left: body")                                                         \
    KIND(WALRUS, "text: name; left: value; third: what it is a field of, of a shared variable")    \
    KIND(LIST_COMP, "left: element; list: COMP_FOR ...")                                           \
    KIND(SET_COMP, "left; list") KIND(GENERATOR, "left; list")                                     \
    KIND(DICT_COMP, "left: key; right: value; list: COMP_FOR ...")                                 \
    KIND(COMP_FOR, "left: target; right: iterable; list: conditions")                              \
    KIND(YIELD_EXPR, "left or NULL: parsed so that the refusal can name it")                       \
    KIND(AWAIT, "left")                                                                            \
    /* statements */                                                                               \
    KIND(EXPR_STMT, "left")                                                                        \
    KIND(ASSIGN, "list: targets, one per =; right: value")                                         \
    KIND(ANN_ASSIGN, "left: target; third: annotation; right: value or NULL")                      \
    KIND(AUG_ASSIGN, "op; left: target; right: value")                                             \
    KIND(RETURN, "left or NULL")                                                                   \
    KIND(IF, "test; body; orelse")                                                                 \
    KIND(WHILE, "test; body; orelse")                                                              \
    KIND(FOR, "left: target; right: iterable; body; orelse")                                       \
    KIND(BREAK, "") KIND(CONTINUE, "") KIND(PASS, "")                                              \
    KIND(ASSERT, "test; right: message or NULL")                                                   \
    KIND(RAISE, "left: exception or NULL; right: cause or NULL")                                   \
    KIND(WITH, "list: WITH_ITEM; body")                                                            \
    KIND(WITH_ITEM, "left: context; right: target or NULL")                                        \
    KIND(DELETE, "list: targets")                                                                  \
    KIND(GLOBAL, "list of NAME") KIND(NONLOCAL, "list of NAME")                                    \
    KIND(TRY, "body; list: EXCEPT ...; orelse; finally_body")                                      \
    KIND(EXCEPT, "left: type or NULL; text: name; body")                                           \
    KIND(FUNCTION, "text; parameters; third: return annotation or NULL; body; decorators")         \
    KIND(CLASS, "text; list: bases, KEYWORD for keyword ones; body; decorators")                   \
    KIND(IMPORT, "list of ALIAS")                                                                  \
    KIND(IMPORT_FROM, "text: dotted module, with leading dots; list of ALIAS, '*' as text")        \
    KIND(ALIAS, "text: dotted name; other: as-name or empty")                                      \
    KIND(MODULE, "body")

/* No tree is deeper than AST_MAX_DEPTH nodes (expressions and blocks together), so that recursive
 * walks are safe. Left-nested BINARY nodes become one CHAIN past AST_CHAIN_TERMS. */
enum { AST_MAX_DEPTH = 1000, AST_CHAIN_TERMS = 64 };

typedef enum ast_kind {
#define KIND(name, members) AST_##name,
    AST_KINDS(KIND)
#undef KIND
        AST_KIND_COUNT
} ast_kind;

typedef enum ast_operator {
    AST_ADD, AST_SUB, AST_MUL, AST_DIV, AST_FLOORDIV, AST_MOD, AST_POW, AST_MATMUL,
    AST_LSHIFT, AST_RSHIFT, AST_BITAND, AST_BITOR, AST_BITXOR,
    AST_NOT, AST_NEG, AST_POS, AST_INVERT, /* unary */
    AST_AND, AST_OR,
    AST_EQ, AST_NE, AST_LT, AST_LE, AST_GT, AST_GE, AST_IS, AST_IS_NOT, AST_IN, AST_NOT_IN
} ast_operator;

typedef struct ast_parameter {
    ts_str name;
    ast_node *annotation;    /* or NULL */
    ast_node *default_value; /* or NULL */
    ast_node *place;         /* a NAME node of the parameter: its place */
    bool is_keyword_only;    /* after * */
    bool is_positional_only; /* before / */
    bool is_star, is_double_star; /* *args, **kwargs */
} ast_parameter;

typedef struct ast_parameters {
    ast_parameter *items;
    size_t count, capacity;
} ast_parameters;

struct ast_node {
    ast_kind kind;
    ast_operator op;
    const fe_source *source;
    uint32_t offset, length; /* bytes in source: fe_source_place turns them into line and column */
    uint32_t depth;          /* 1 for a leaf; <= AST_MAX_DEPTH */
    ts_str text, other;
    ts_str type_comment;     /* "# type: ..." after a statement or def line, or empty */
    int64_t integer;
    bool is_big;             /* INT that does not fit 64 bits */
    double number;
    ast_node *left, *right, *third, *test;
    ast_list list, body, orelse, finally_body, decorators;
    ast_operator *ops;       /* COMPARE, CHAIN: list.count - 1 */
    ast_parameters parameters;
};

ts_place ast_place(const ast_node *node);
const char *ast_kind_name(ast_kind kind); /* "NAME" */
const char *ast_operator_text(ast_operator op); /* "+", "not in" */
/* Text of the tree, one node a line, for tests and `tsc --emit=ast`. */
void ast_dump(const ast_node *node, ts_buffer *out);

struct fe_diagnostics;
/* Parses a whole file. Syntax errors go to diagnostics (up to 20, recovery at statements); NULL is
 * returned where there was one. Nesting is limited to 1,000. */
ast_node *fe_parse(ts_arena *arena, const fe_source *source, struct fe_diagnostics *diagnostics);
/* Parses a single expression: --model 'Net(hidden=256)', an annotation held in a string. */
ast_node *fe_parse_expression(ts_arena *arena, const fe_source *source,
                              struct fe_diagnostics *diagnostics);

#endif

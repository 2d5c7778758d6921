/* frontend/parser.y - the grammar of model scripts, of TorchScript archives' code and of the library.
 *
 * Python's grammar (3.12 without match, type statements and type parameters), made LALR(1): what an
 * assignment's left side or a parameter list may be is checked when the node is built. */
%code requires {
#include <stdio.h>

#include "frontend/parse_internal.h"
}

%define api.prefix {fe_yy}
%define api.pure full
%define api.push-pull push
%define api.location.type {fe_span}
%define parse.error custom
%define parse.lac full
%locations
%expect 0
%parse-param {fe_parser *parser}

%union {
    ast_node *node;
    ast_list list;
    ts_str text;
    ast_operator op;
    ast_parameters parameters;
    ast_parameter parameter;
    fe_block block;
    fe_comment comment;
    bool flag;
}

%code {
#define YYLLOC_DEFAULT(Current, Rhs, N)                                                            \
    do {                                                                                           \
        if (N) {                                                                                   \
            (Current).begin = YYRHSLOC(Rhs, 1).begin;                                              \
            (Current).end = YYRHSLOC(Rhs, N).end;                                                  \
        } else {                                                                                   \
            (Current).begin = (Current).end = YYRHSLOC(Rhs, 0).end;                                \
        }                                                                                          \
    } while (0)
#define YYMAXDEPTH 20000
#define NODE(kind, span) fe_node_make(parser, AST_##kind, span)
#define SEAL(node) fe_node_seal(parser, node)

static void fe_yyerror(fe_span *span, fe_parser *parser, const char *text) {
    (void)text; /* "memory exhausted": the only message that bison makes itself */
    if (!parser->must_stop)
        fe_parse_error(parser, *span, "expressions are nested too deeply");
    parser->must_stop = true;
}

static ast_node *leaf(fe_parser *parser, ast_kind kind, fe_span span) {
    return fe_node_make(parser, kind, span);
}

static ast_node *with_child(fe_parser *parser, ast_kind kind, ast_node *left, fe_span span) {
    ast_node *node = fe_node_make(parser, kind, span);
    node->left = left;
    return fe_node_seal(parser, node);
}

static ast_node *named(fe_parser *parser, ast_kind kind, ts_str text, ast_node *left, fe_span span) {
    ast_node *node = fe_node_make(parser, kind, span);
    node->text = text;
    node->left = left;
    return fe_node_seal(parser, node);
}

static ast_list one(fe_parser *parser, ast_node *node) {
    ast_list list = {0};
    fe_list_add(parser, &list, node);
    return list;
}

static ast_node *comprehension(fe_parser *parser, ast_kind kind, ast_node *left, ast_node *right,
                               ast_list clauses, fe_span span) {
    ast_node *node = fe_node_make(parser, kind, span);
    if (left->kind == AST_STARRED)
        fe_parse_error(parser, (fe_span){left->offset, left->offset + left->length},
                       "a comprehension cannot unpack its element");
    node->left = left;
    node->right = right;
    node->list = clauses;
    return fe_node_seal(parser, node);
}

static ast_node *loop(fe_parser *parser, ast_kind kind, ast_node *left, ast_node *right,
                      ast_node *test, fe_block block, ast_list orelse, fe_span span) {
    ast_node *node = fe_node_make(parser, kind, span);
    node->left = left;
    node->right = right;
    node->test = test;
    node->body = block.body;
    node->type_comment = block.comment.text;
    node->orelse = orelse;
    if (left)
        fe_check_target(parser, left, "assign to", false);
    return fe_node_seal(parser, node);
}

static ast_parameter parameter(fe_parser *parser, ts_str name, ast_node *annotation,
                               ast_node *initial, fe_span span) {
    ast_parameter p = {.name = name, .annotation = annotation, .default_value = initial};
    p.place = fe_node_make(parser, AST_NAME, span);
    p.place->text = name;
    return p;
}

static ts_str dotted(fe_parser *parser, ts_str a, ts_str b) {
    return ts_arena_format(parser->arena, "%.*s.%.*s", (int)a.length, a.data, (int)b.length,
                           b.data);
}
}

%token START_FILE START_EXPRESSION
%token END 0 "end of file"
%token NEWLINE "end of line" INDENT "an indented block" DEDENT "end of block"
%token NAME "a name" NUMBER "a number" STRING "a string"
%token FALSE_ "False" NONE "None" TRUE_ "True" AND "and" AS "as" ASSERT "assert" ASYNC "async"
%token AWAIT "await" BREAK "break" CLASS "class" CONTINUE "continue" DEF "def" DEL "del"
%token ELIF "elif" ELSE "else" EXCEPT "except" FINALLY "finally" FOR "for" FROM "from"
%token GLOBAL "global" IF "if" IMPORT "import" IN "in" IS "is" LAMBDA "lambda"
%token NONLOCAL "nonlocal" NOT "not" OR "or" PASS "pass" RAISE "raise" RETURN "return" TRY "try"
%token WHILE "while" WITH "with" YIELD "yield"
%token MATCH "match" CASE "case"
%token ARROW "->" WALRUS ":=" ELLIPSIS "..." POW "**" FLOORDIV "//" LSHIFT "<<" RSHIFT ">>"
%token LE "<=" GE ">=" EQ "==" NE "!=" AUGMENTED "an augmented assignment"

%type <text> NAME dotted_name import_path dots
%type <node> NUMBER STRING
%type <op> AUGMENTED comparison_op
%type <comment> NEWLINE INDENT
%type <list> statements statement simple_line simple_list else_arm finally_arm
%type <list> star_list assign_tail arms excepts star_named_list for_target_list names
%type <list> match cases
%type <node> case
%type <list> comp_for comp_ifs dict_items subscript_list arguments argument_list strings
%type <list> with_items aliases from_names from_list decorators target_list class_bases
%type <node> simple compound definition expression disjunction conjunction inversion comparison
%type <node> comparisons arith primary atom star_expression star_expressions named_expression
%type <node> star_named yield_expression rhs optional_value annotation_value returns
%type <node> comp_clause for_target for_targets dict_item subscript slice_item optional_expression
%type <list> group group_list
%type <node> argument with_item alias from_alias except_arm lambda group_item as_item pattern
%type <block> block
%type <parameters> parameters parameter_list lambda_parameters lambda_list
%type <parameter> parameter lambda_parameter
%type <flag> optional_comma

%left '|'
%left '^'
%left '&'
%left LSHIFT RSHIFT
%left '+' '-'
%left '*' '/' FLOORDIV '%' '@'
%precedence UNARY
%right POW

%%

input:
  START_FILE statements END {
    parser->result = fe_node_make(parser, AST_MODULE, (fe_span){0, parser->end});
    parser->result->body = $2;
    SEAL(parser->result);
  }
| START_EXPRESSION star_expressions END { parser->result = $2; }
| START_EXPRESSION yield_expression END { parser->result = $2; }
;

statements:
  %empty               { $$ = (ast_list){0}; }
| statements statement { $$ = $1; fe_list_concat(parser, &$$, $2); fe_check_statement(parser); }
;

statement:
  simple_line
| compound                                      { $$ = one(parser, $1); }
| match
| error NEWLINE                                 { $$ = (ast_list){0}; yyerrok; }
| error NEWLINE INDENT statements DEDENT        { $$ = (ast_list){0}; yyerrok; }
;

simple_line:
  simple_list NEWLINE     { $$ = $1; fe_attach_comment(parser, &$$.items[$$.count - 1], $2); }
| simple_list ';' NEWLINE { $$ = $1; fe_attach_comment(parser, &$$.items[$$.count - 1], $3); }
;

simple_list:
  simple                 { $$ = one(parser, $1); }
| simple_list ';' simple { $$ = $1; fe_list_add(parser, &$$, $3); }
;

simple:
  star_expressions             { $$ = with_child(parser, AST_EXPR_STMT, $1, @$); }
| yield_expression             { $$ = with_child(parser, AST_EXPR_STMT, $1, @$); }
| star_expressions assign_tail { $$ = fe_build_assign(parser, $1, $2, @$); }
| star_expressions ':' expression annotation_value { $$ = fe_build_ann_assign(parser, $1, $3, $4, @$); }
| star_expressions AUGMENTED rhs { $$ = fe_build_aug_assign(parser, $2, $1, $3, @$); }
| RETURN optional_value        { $$ = with_child(parser, AST_RETURN, $2, @$); }
| BREAK                        { $$ = leaf(parser, AST_BREAK, @$); }
| CONTINUE                     { $$ = leaf(parser, AST_CONTINUE, @$); }
| PASS                         { $$ = leaf(parser, AST_PASS, @$); }
| ASSERT expression            { $$ = NODE(ASSERT, @$); $$->test = $2; SEAL($$); }
| ASSERT expression ',' expression { $$ = NODE(ASSERT, @$); $$->test = $2; $$->right = $4; SEAL($$); }
| RAISE                        { $$ = leaf(parser, AST_RAISE, @$); }
| RAISE expression             { $$ = with_child(parser, AST_RAISE, $2, @$); }
| RAISE expression FROM expression { $$ = NODE(RAISE, @$); $$->left = $2; $$->right = $4; SEAL($$); }
| DEL target_list optional_comma {
    $$ = fe_build_sequence(parser, AST_DELETE, $2, @$);
    for (size_t i = 0; i < $2.count; i++)
        fe_check_target(parser, $2.items[i], "delete", true);
  }
| GLOBAL names                 { $$ = fe_build_sequence(parser, AST_GLOBAL, $2, @$); }
| NONLOCAL names               { $$ = fe_build_sequence(parser, AST_NONLOCAL, $2, @$); }
| IMPORT aliases               { $$ = fe_build_sequence(parser, AST_IMPORT, $2, @$); }
| FROM import_path IMPORT from_names {
    $$ = NODE(IMPORT_FROM, @$); $$->text = $2; $$->list = $4; SEAL($$);
  }
;

rhs: star_expressions | yield_expression ;
assign_tail:
  '=' rhs             { $$ = one(parser, $2); }
| assign_tail '=' rhs { $$ = $1; fe_list_add(parser, &$$, $3); }
;
annotation_value: %empty { $$ = NULL; } | '=' rhs { $$ = $2; } ;
optional_value: %empty { $$ = NULL; } | star_expressions ;
optional_comma: %empty { $$ = false; } | ',' { $$ = true; } ;

target_list:
  star_expression                 { $$ = one(parser, $1); }
| target_list ',' star_expression { $$ = $1; fe_list_add(parser, &$$, $3); }
;
names:
  NAME           { $$ = one(parser, named(parser, AST_NAME, $1, NULL, @1)); }
| names ',' NAME { $$ = $1; fe_list_add(parser, &$$, named(parser, AST_NAME, $3, NULL, @3)); }
;

dotted_name: NAME | dotted_name '.' NAME { $$ = dotted(parser, $1, $3); } ;
alias:
  dotted_name         { $$ = named(parser, AST_ALIAS, $1, NULL, @$); }
| dotted_name AS NAME { $$ = named(parser, AST_ALIAS, $1, NULL, @$); $$->other = $3; }
;
aliases:
  alias             { $$ = one(parser, $1); }
| aliases ',' alias { $$ = $1; fe_list_add(parser, &$$, $3); }
;
dots:
  '.'           { $$ = TS_STR("."); }
| ELLIPSIS      { $$ = TS_STR("..."); }
| dots '.'      { $$ = ts_arena_format(parser->arena, "%.*s.", (int)$1.length, $1.data); }
| dots ELLIPSIS { $$ = ts_arena_format(parser->arena, "%.*s...", (int)$1.length, $1.data); }
;
import_path:
  dotted_name
| dots
| dots dotted_name { $$ = ts_arena_format(parser->arena, "%.*s%.*s", (int)$1.length, $1.data, (int)$2.length, $2.data); }
;
from_alias:
  NAME         { $$ = named(parser, AST_ALIAS, $1, NULL, @$); }
| NAME AS NAME { $$ = named(parser, AST_ALIAS, $1, NULL, @$); $$->other = $3; }
;
from_list:
  from_alias               { $$ = one(parser, $1); }
| from_list ',' from_alias { $$ = $1; fe_list_add(parser, &$$, $3); }
;
from_names:
  '*'                              { $$ = one(parser, named(parser, AST_ALIAS, TS_STR("*"), NULL, @$)); }
| from_list
| '(' from_list optional_comma ')' { $$ = $2; }
;

block:
  simple_line                      { $$ = (fe_block){.body = $1}; }
| NEWLINE INDENT statements DEDENT {
    $$ = (fe_block){.body = $3, .comment = $1.text.length ? $1 : $2};
  }
;

compound:
  definition
| decorators definition { $$ = $2; $$->decorators = $1; SEAL($$); }
| ASYNC compound {
    fe_parse_error(parser, @1, "async is not supported");
    $$ = $2;
  }
| arms else_arm { $$ = fe_build_if(parser, $1, $2); }
| WHILE named_expression ':' block else_arm { $$ = loop(parser, AST_WHILE, NULL, NULL, $2, $4, $5, @$); }
| FOR for_targets IN star_expressions ':' block else_arm { $$ = loop(parser, AST_FOR, $2, $4, NULL, $6, $7, @$); }
| TRY ':' block excepts else_arm finally_arm {
    $$ = NODE(TRY, @$); $$->body = $3.body; $$->list = $4; $$->orelse = $5; $$->finally_body = $6;
    SEAL($$);
  }
| TRY ':' block FINALLY ':' block {
    $$ = NODE(TRY, @$); $$->body = $3.body; $$->finally_body = $6.body; SEAL($$);
  }
| WITH with_items ':' block {
    $$ = NODE(WITH, @$); $$->list = $2; $$->body = $4.body; $$->type_comment = $4.comment.text;
    SEAL($$);
  }
;

match:
  MATCH star_expressions ':' NEWLINE INDENT cases DEDENT { $$ = fe_build_match(parser, $2, $6, @$); }
;
cases:
  case       { $$ = one(parser, $1); }
| cases case { $$ = $1; fe_list_add(parser, &$$, $2); }
;
case:
  CASE pattern ':' block { $$ = NODE(IF, @$); $$->left = $2; $$->body = $4.body; }
| CASE pattern AS NAME ':' block { $$ = NODE(IF, @$); $$->left = $2; $$->text = $4; $$->body = $6.body; }
| CASE pattern IF named_expression ':' block {
    $$ = NODE(IF, @$); $$->left = $2; $$->test = $4; $$->body = $6.body;
  }
| CASE pattern AS NAME IF named_expression ':' block {
    $$ = NODE(IF, @$); $$->left = $2; $$->text = $4; $$->test = $6; $$->body = $8.body;
  }
;

pattern: for_targets { $$ = $1; parser->with_targets = 0; } ;

decorators:
  '@' named_expression NEWLINE            { $$ = one(parser, $2); }
| decorators '@' named_expression NEWLINE { $$ = $1; fe_list_add(parser, &$$, $3); }
;
definition:
  DEF NAME '(' parameters ')' returns ':' block { $$ = fe_build_function(parser, $2, $4, $6, $8, @$); }
| CLASS NAME class_bases ':' block {
    $$ = NODE(CLASS, @$); $$->text = $2; $$->list = $3; $$->body = $5.body; SEAL($$);
  }
;
returns: %empty { $$ = NULL; } | ARROW expression { $$ = $2; } ;
class_bases: %empty { $$ = (ast_list){0}; } | '(' arguments ')' { $$ = $2; } ;

arms:
  IF named_expression ':' block {
    ast_node *n = NODE(IF, @$); n->test = $2; n->body = $4.body; SEAL(n); $$ = one(parser, n);
  }
| arms ELIF named_expression ':' block {
    fe_span span = {@2.begin, @5.end};
    ast_node *n = NODE(IF, span); n->test = $3; n->body = $5.body; SEAL(n);
    $$ = $1; fe_list_add(parser, &$$, n);
  }
;
else_arm: %empty { $$ = (ast_list){0}; } | ELSE ':' block { $$ = $3.body; } ;
finally_arm: %empty { $$ = (ast_list){0}; } | FINALLY ':' block { $$ = $3.body; } ;
excepts:
  except_arm         { $$ = one(parser, $1); }
| excepts except_arm {
    if (!$1.items[$1.count - 1]->left)
        fe_parse_error(parser, @2, "no 'except' may follow one that catches everything");
    $$ = $1; fe_list_add(parser, &$$, $2);
  }
;
except_arm:
  EXCEPT ':' block                    { $$ = NODE(EXCEPT, @$); $$->body = $3.body; SEAL($$); }
| EXCEPT expression ':' block         { $$ = NODE(EXCEPT, @$); $$->left = $2; $$->body = $4.body; SEAL($$); }
| EXCEPT expression AS NAME ':' block { $$ = NODE(EXCEPT, @$); $$->left = $2; $$->text = $4; $$->body = $6.body; SEAL($$); }
;

with_items:
  with_item                { $$ = $1->kind == AST_TUPLE && $1->other.length ? $1->list : one(parser, $1); }
| with_items ',' with_item { $$ = $1; fe_list_add(parser, &$$, $3); }
;
with_item:
  expression {
    if (($1->kind == AST_TUPLE || $1->kind == AST_WITH_ITEM) && parser->with_targets) {
        /* (a as b, c): the items stand in parentheses */
        parser->with_targets = 0;
        if ($1->kind == AST_TUPLE) {
            for (size_t i = 0; i < $1->list.count; i++)
                if ($1->list.items[i]->kind != AST_WITH_ITEM)
                    $1->list.items[i] = with_child(parser, AST_WITH_ITEM, $1->list.items[i], @1);
            $1->other = TS_STR("with");
        }
        $$ = $1;
    } else {
        $$ = with_child(parser, AST_WITH_ITEM, $1, @$);
    }
  }
| expression AS arith {
    $$ = NODE(WITH_ITEM, @$); $$->left = $1; $$->right = $3; SEAL($$);
    fe_check_target(parser, $3, "assign to", false);
  }
;

/* ---- parameters ---- */
parameters: %empty { $$ = (ast_parameters){0}; } | parameter_list optional_comma { $$ = $1; } ;
parameter_list:
  parameter                    { $$ = (ast_parameters){0}; fe_parameters_add(parser, &$$, $1); }
| parameter_list ',' parameter { $$ = $1; fe_parameters_add(parser, &$$, $3); }
;
parameter:
  NAME                               { $$ = parameter(parser, $1, NULL, NULL, @1); }
| NAME '=' expression                { $$ = parameter(parser, $1, NULL, $3, @1); }
| NAME ':' expression                { $$ = parameter(parser, $1, $3, NULL, @1); }
| NAME ':' expression '=' expression { $$ = parameter(parser, $1, $3, $5, @1); }
| '*'                                { $$ = parameter(parser, (ts_str){0}, NULL, NULL, @1); $$.is_star = true; }
| '*' NAME                           { $$ = parameter(parser, $2, NULL, NULL, @2); $$.is_star = true; }
| '*' NAME ':' star_expression       { $$ = parameter(parser, $2, $4, NULL, @2); $$.is_star = true; }
| POW NAME                           { $$ = parameter(parser, $2, NULL, NULL, @2); $$.is_double_star = true; }
| POW NAME ':' expression            { $$ = parameter(parser, $2, $4, NULL, @2); $$.is_double_star = true; }
| '/'                                { $$ = parameter(parser, (ts_str){0}, NULL, NULL, @1); $$.place->kind = AST_PASS; }
;
lambda_parameters: %empty { $$ = (ast_parameters){0}; } | lambda_list optional_comma { $$ = $1; } ;
lambda_list:
  lambda_parameter                 { $$ = (ast_parameters){0}; fe_parameters_add(parser, &$$, $1); }
| lambda_list ',' lambda_parameter { $$ = $1; fe_parameters_add(parser, &$$, $3); }
;
lambda_parameter:
  NAME                { $$ = parameter(parser, $1, NULL, NULL, @1); }
| NAME '=' expression { $$ = parameter(parser, $1, NULL, $3, @1); }
| '*'                 { $$ = parameter(parser, (ts_str){0}, NULL, NULL, @1); $$.is_star = true; }
| '*' NAME            { $$ = parameter(parser, $2, NULL, NULL, @2); $$.is_star = true; }
| POW NAME            { $$ = parameter(parser, $2, NULL, NULL, @2); $$.is_double_star = true; }
| '/'                 { $$ = parameter(parser, (ts_str){0}, NULL, NULL, @1); $$.place->kind = AST_PASS; }
;

/* ---- expressions ---- */
yield_expression:
  YIELD optional_value  { $$ = with_child(parser, AST_YIELD_EXPR, $2, @$); }
| YIELD FROM expression { $$ = with_child(parser, AST_YIELD_EXPR, $3, @$); $$->text = TS_STR("from"); }
;

star_expressions:
  star_expression {
    $$ = $1;
  }
| star_list optional_comma %prec UNARY { $$ = fe_build_sequence(parser, AST_TUPLE, $1, @$); }
| star_expression ',' { $$ = fe_build_sequence(parser, AST_TUPLE, one(parser, $1), @$); }
;
star_list:
  star_expression ',' star_expression { $$ = one(parser, $1); fe_list_add(parser, &$$, $3); }
| star_list ',' star_expression       { $$ = $1; fe_list_add(parser, &$$, $3); }
;
star_expression: expression | '*' arith { $$ = with_child(parser, AST_STARRED, $2, @$); } ;

named_expression: expression | NAME WALRUS expression { $$ = named(parser, AST_WALRUS, $1, $3, @$); } ;
star_named: named_expression | '*' arith { $$ = with_child(parser, AST_STARRED, $2, @$); } ;
star_named_list:
  group_item                     { $$ = one(parser, $1); }
| star_named_list ',' group_item { $$ = $1; fe_list_add(parser, &$$, $3); }
;

expression:
  disjunction
| disjunction IF disjunction ELSE expression {
    $$ = NODE(CONDITIONAL, @$); $$->left = $1; $$->test = $3; $$->right = $5; SEAL($$);
  }
| lambda
;
lambda: LAMBDA lambda_parameters ':' expression {
    ast_node *f = fe_build_function(parser, (ts_str){0}, $2, NULL, (fe_block){0}, @$);
    f->kind = AST_LAMBDA; f->left = $4; $$ = SEAL(f);
  } ;
disjunction: conjunction | disjunction OR conjunction { $$ = fe_build_boolop(parser, AST_OR, $1, $3, @$); } ;
conjunction: inversion | conjunction AND inversion { $$ = fe_build_boolop(parser, AST_AND, $1, $3, @$); } ;
inversion: comparison | NOT inversion { $$ = fe_build_unary(parser, AST_NOT, $2, @$); } ;
comparison: arith | comparisons ;
comparisons:
  arith comparison_op arith       { $$ = fe_build_compare(parser, $2, $1, $3, false, @$); }
| comparisons comparison_op arith { $$ = fe_build_compare(parser, $2, $1, $3, true, @$); }
;
comparison_op:
  EQ { $$ = AST_EQ; } | NE { $$ = AST_NE; } | '<' { $$ = AST_LT; } | LE { $$ = AST_LE; }
| '>' { $$ = AST_GT; } | GE { $$ = AST_GE; } | IS { $$ = AST_IS; } | IS NOT { $$ = AST_IS_NOT; }
| IN { $$ = AST_IN; } | NOT IN { $$ = AST_NOT_IN; }
;

arith:
  primary
| arith '|' arith      { $$ = fe_build_binary(parser, AST_BITOR, $1, $3, @$); }
| arith '^' arith      { $$ = fe_build_binary(parser, AST_BITXOR, $1, $3, @$); }
| arith '&' arith      { $$ = fe_build_binary(parser, AST_BITAND, $1, $3, @$); }
| arith LSHIFT arith   { $$ = fe_build_binary(parser, AST_LSHIFT, $1, $3, @$); }
| arith RSHIFT arith   { $$ = fe_build_binary(parser, AST_RSHIFT, $1, $3, @$); }
| arith '+' arith      { $$ = fe_build_binary(parser, AST_ADD, $1, $3, @$); }
| arith '-' arith      { $$ = fe_build_binary(parser, AST_SUB, $1, $3, @$); }
| arith '*' arith      { $$ = fe_build_binary(parser, AST_MUL, $1, $3, @$); }
| arith '/' arith      { $$ = fe_build_binary(parser, AST_DIV, $1, $3, @$); }
| arith FLOORDIV arith { $$ = fe_build_binary(parser, AST_FLOORDIV, $1, $3, @$); }
| arith '%' arith      { $$ = fe_build_binary(parser, AST_MOD, $1, $3, @$); }
| arith '@' arith      { $$ = fe_build_binary(parser, AST_MATMUL, $1, $3, @$); }
| arith POW arith      { $$ = fe_build_binary(parser, AST_POW, $1, $3, @$); }
| '-' arith %prec UNARY { $$ = fe_build_unary(parser, AST_NEG, $2, @$); }
| '+' arith %prec UNARY { $$ = fe_build_unary(parser, AST_POS, $2, @$); }
| '~' arith %prec UNARY { $$ = fe_build_unary(parser, AST_INVERT, $2, @$); }
| AWAIT primary        { $$ = with_child(parser, AST_AWAIT, $2, @$); }
;

primary:
  atom
| primary '.' NAME          { $$ = named(parser, AST_ATTRIBUTE, $3, $1, @$); }
| primary '(' arguments ')' { $$ = fe_build_call(parser, $1, $3, @$); }
| primary '[' subscript ']' {
    $$ = NODE(SUBSCRIPT, @$); $$->left = $1; $$->right = $3; SEAL($$);
  }
;

atom:
  NAME     { $$ = named(parser, AST_NAME, $1, NULL, @$); }
| NUMBER
| strings  { $$ = fe_build_strings(parser, $1, @$); }
| TRUE_    { $$ = leaf(parser, AST_TRUE, @$); }
| FALSE_   { $$ = leaf(parser, AST_FALSE, @$); }
| NONE     { $$ = leaf(parser, AST_NONE, @$); }
| ELLIPSIS { $$ = leaf(parser, AST_ELLIPSIS, @$); }
| '(' ')'  { $$ = leaf(parser, AST_TUPLE, @$); }
| '(' yield_expression ')'    { $$ = $2; }
| '(' group_item comp_for ')' { $$ = comprehension(parser, AST_GENERATOR, $2, NULL, $3, @$); }
| '(' group ')'               { $$ = fe_build_group(parser, $2, $2.capacity == 0, @$); }
| '[' ']'                     { $$ = leaf(parser, AST_LIST, @$); }
| '[' star_named_list optional_comma ']' { $$ = fe_build_sequence(parser, AST_LIST, $2, @$); }
| '[' star_named comp_for ']' { $$ = comprehension(parser, AST_LIST_COMP, $2, NULL, $3, @$); }
| '{' '}'                     { $$ = leaf(parser, AST_DICT, @$); }
| '{' star_named_list optional_comma '}' { $$ = fe_build_sequence(parser, AST_SET, $2, @$); }
| '{' star_named comp_for '}' { $$ = comprehension(parser, AST_SET_COMP, $2, NULL, $3, @$); }
| '{' dict_items optional_comma '}' { $$ = fe_build_sequence(parser, AST_DICT, $2, @$); }
| '{' expression ':' expression comp_for '}' { $$ = comprehension(parser, AST_DICT_COMP, $2, $4, $5, @$); }
;
strings:
  STRING         { $$ = one(parser, $1); }
| strings STRING { $$ = $1; fe_list_add(parser, &$$, $2); }
;

/* What stands in parentheses; capacity 0 marks a comma at the end. */
group:
  group_list       { $$ = $1; }
| group_list ','   { $$ = $1; $$.capacity = 0; }
;
group_list:
  group_item                { $$ = one(parser, $1); }
| group_list ',' group_item { $$ = $1; fe_list_add(parser, &$$, $3); }
;
group_item: star_named | as_item ;
/* In parentheses of a with statement, and in patterns. */
as_item:
  expression AS arith {
    $$ = NODE(WITH_ITEM, @$); $$->left = $1; $$->right = $3; SEAL($$);
    fe_check_target(parser, $3, "assign to", false);
    parser->with_target = $$;
    parser->with_targets++;
  }
;

comp_for:
  comp_clause          { $$ = one(parser, $1); }
| comp_for comp_clause { $$ = $1; fe_list_add(parser, &$$, $2); }
;
comp_clause:
  FOR for_targets IN disjunction comp_ifs {
    $$ = NODE(COMP_FOR, @$); $$->left = $2; $$->right = $4; $$->list = $5; SEAL($$);
    fe_check_target(parser, $2, "assign to", false);
  }
| ASYNC FOR for_targets IN disjunction comp_ifs {
    fe_parse_error(parser, @1, "async is not supported");
    $$ = NODE(COMP_FOR, @$); $$->left = $3; $$->right = $5; $$->list = $6; SEAL($$);
  }
;
comp_ifs: %empty { $$ = (ast_list){0}; } | comp_ifs IF disjunction { $$ = $1; fe_list_add(parser, &$$, $3); } ;

for_target: arith | '*' arith { $$ = with_child(parser, AST_STARRED, $2, @$); } ;
for_target_list:
  for_target                     { $$ = one(parser, $1); }
| for_target_list ',' for_target { $$ = $1; fe_list_add(parser, &$$, $3); }
;
for_targets:
  for_target_list     { $$ = $1.count == 1 ? $1.items[0] : fe_build_sequence(parser, AST_TUPLE, $1, @$); }
| for_target_list ',' { $$ = fe_build_sequence(parser, AST_TUPLE, $1, @$); }
;

dict_items:
  dict_item                { $$ = (ast_list){0}; fe_list_add(parser, &$$, $1->left); fe_list_add(parser, &$$, $1->right); }
| dict_items ',' dict_item { $$ = $1; fe_list_add(parser, &$$, $3->left); fe_list_add(parser, &$$, $3->right); }
;
dict_item:
  expression ':' expression { $$ = NODE(KEYWORD, @$); $$->left = $1; $$->right = $3; }
| expression ':' as_item    { $$ = NODE(KEYWORD, @$); $$->left = $1; $$->right = $3; }
| POW arith                 { $$ = NODE(KEYWORD, @$); $$->right = $2; }
;

subscript:
  slice_item                        { $$ = $1->kind == AST_STARRED ? fe_build_sequence(parser, AST_TUPLE, one(parser, $1), @$) : $1; }
| slice_item ','                    { $$ = fe_build_sequence(parser, AST_TUPLE, one(parser, $1), @$); }
| subscript_list optional_comma     { $$ = fe_build_sequence(parser, AST_TUPLE, $1, @$); }
;
subscript_list:
  slice_item ',' slice_item     { $$ = one(parser, $1); fe_list_add(parser, &$$, $3); }
| subscript_list ',' slice_item { $$ = $1; fe_list_add(parser, &$$, $3); }
;
slice_item:
  named_expression
| '*' arith { $$ = with_child(parser, AST_STARRED, $2, @$); }
| optional_expression ':' optional_expression {
    $$ = NODE(SLICE, @$); $$->left = $1; $$->right = $3; SEAL($$);
  }
| optional_expression ':' optional_expression ':' optional_expression {
    $$ = NODE(SLICE, @$); $$->left = $1; $$->right = $3; $$->third = $5; SEAL($$);
  }
;
optional_expression: %empty { $$ = NULL; } | expression ;

arguments: %empty { $$ = (ast_list){0}; } | argument_list optional_comma { $$ = $1; } ;
argument_list:
  argument                   { $$ = one(parser, $1); }
| argument_list ',' argument { $$ = $1; fe_list_add(parser, &$$, $3); }
;
argument:
  named_expression
| as_item
| named_expression comp_for {
    $$ = comprehension(parser, AST_GENERATOR, $1, NULL, $2, @$); $$->other = TS_STR("bare");
  }
| NAME '=' expression { $$ = named(parser, AST_KEYWORD, $1, $3, @$); }
| NAME '=' as_item    { $$ = named(parser, AST_KEYWORD, $1, $3, @$); }
| '*' expression      { $$ = with_child(parser, AST_STARRED, $2, @$); }
| POW expression      { $$ = with_child(parser, AST_KEYWORD, $2, @$); }
;

%%

static bool is_one_of(const char *name, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return false;
}

static void append(char *text, size_t size, const char *name, bool is_first, bool is_last) {
    size_t used = strlen(text);
    bool is_quoted = name[0] != '\'' && !strchr(name, ' ');
    snprintf(text + used, size - used, "%s%s%s%s", is_first ? "" : is_last ? " or " : ", ",
             is_quoted ? "'" : "", name, is_quoted ? "'" : "");
}

/* What to ask for, of all that could follow: something that begins an expression, or what closes
 * what is open; operators that could also go on are left out. */
static void describe_expected(const yypcontext_t *context, bool is_in_field, char *text,
                              size_t size) {
    static const char *const closers[] = {"end of line", "an indented block", "except", "finally",
                                          "import", "a name", "':'", "')'", "']'", "'}'",
                                          "end of file"};
    static const char *const brackets[] = {"')'", "']'", "'}'"};
    yysymbol_kind_t expected[YYNTOKENS];
    int n = yypcontext_expected_tokens(context, expected, YYNTOKENS);
    const char *names[YYNTOKENS];
    int count = 0;
    bool has_expression = false, has_statement = false, has_bracket = false, has_comma = false;
    for (int i = 0; i < n; i++) {
        const char *name = yysymbol_name(expected[i]);
        has_expression |= strcmp(name, "a number") == 0;
        has_statement |= strcmp(name, "pass") == 0;
        has_bracket |= is_one_of(name, brackets, 3);
        has_comma |= strcmp(name, "','") == 0;
        if (is_one_of(name, closers, sizeof closers / sizeof *closers))
            names[count++] = name;
    }
    text[0] = 0;
    if (has_statement) {
        snprintf(text, size, "a statement");
        return;
    }
    if (has_expression) {
        snprintf(text, size, "an expression");
        return;
    }
    if (has_bracket && has_comma)
        names[count++] = "','";
    if (count == 0)
        for (int i = 0; i < n && i < 4; i++)
            names[count++] = yysymbol_name(expected[i]);
    for (int i = 0; i < count; i++)
        if (is_in_field && strcmp(names[i], "end of file") == 0)
            names[i] = "the end of the expression";
    for (int i = 0; i < count && i < 4; i++)
        append(text, size, names[i], i == 0, i == count - 1 || i == 3);
}

static int yyreport_syntax_error(const yypcontext_t *context, fe_parser *parser) {
    fe_span span = *yypcontext_location(context);
    yysymbol_kind_t token = yypcontext_token(context);
    bool is_end = token == YYSYMBOL_YYEOF || token == YYSYMBOL_DEDENT || token == YYSYMBOL_INDENT;
    if (parser->error_count && is_end)
        return 0; /* it follows from an error already told */
    char expected[160], found[128];
    describe_expected(context, parser->is_expression, expected, sizeof expected);
    if (token == YYSYMBOL_YYEMPTY)
        snprintf(found, sizeof found, "nothing");
    else if (is_end || token == YYSYMBOL_NEWLINE)
        snprintf(found, sizeof found, "%s",
                 token == YYSYMBOL_YYEOF && parser->is_expression ? "the end of the expression"
                                                                  : yysymbol_name(token));
    else {
        ts_str text = fe_span_text(parser, span);
        int length = text.length > 40 ? 40 : (int)text.length;
        while (length < (int)text.length && ((unsigned char)text.data[length] & 0xC0) == 0x80)
            length--; /* no half of a character */
        snprintf(found, sizeof found, "'%.*s'%s", length, text.data,
                 text.length > 40 ? "..." : "");
    }
    static const char *const starters[] = {"def", "class", "return", "import", "while", "with",
                                           "try", "raise", "assert", "pass", "break", "continue",
                                           "del", "global"};
    bool is_starter = is_one_of(yysymbol_name(token), starters, sizeof starters / sizeof *starters);
    if (parser->bracket_count && (token == YYSYMBOL_YYEOF || is_starter)) {
        uint32_t open = parser->brackets[parser->bracket_count - 1];
        char c = parser->source->text.data[open];
        fe_parse_error(parser, (fe_span){open, open + 1}, "expected '%c' for the '%c' that begins here, "
                       "found '%s'", c == '(' ? ')' : c == '[' ? ']' : '}', c, yysymbol_name(token));
        return 0;
    }
    fe_parse_error(parser, span, "expected %s, found %s", expected[0] ? expected : "nothing", found);
    return 0;
}

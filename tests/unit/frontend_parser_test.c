/* The syntax tree of small texts, errors with their places, and the limits. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/ast.h"
#include "frontend/diagnostics.h"

static ts_arena *arena;
static fe_diagnostics diagnostics;
static ts_buffer text;

static void setup(void) {
    arena = ts_arena_create(0);
    diagnostics = (fe_diagnostics){.arena = arena};
    text = (ts_buffer){0};
}
static void teardown(void) {
    ts_buffer_deinit(&text);
    ts_arena_release(arena);
}

static ast_node *parse(const char *source_text, size_t length) {
    fe_source *source;
    ts_status status =
        fe_source_make(arena, TS_STR("t.py"), (ts_str){source_text, length}, &source);
    if (status) {
        ts_place place = ts_status_place(status);
        fe_report_place(&diagnostics, FE_ERROR, ts_status_code(status), place, (ts_str){0}, "%s",
                        ts_status_message(status));
        ts_status_release(status);
        return NULL;
    }
    return fe_parse(arena, source, &diagnostics);
}

/* The tree of the text is `expected`. */
static void tree(const char *source_text, const char *expected) {
    ast_node *node = parse(source_text, strlen(source_text));
    ck_assert_msg(node != NULL, "%s", source_text);
    ts_buffer_deinit(&text);
    ast_dump(node, &text);
    ck_assert_str_eq(text.data, expected);
}

/* The text has these errors: "line:column: message" lines. */
static void errors(const char *source_text, size_t length, const char *expected) {
    diagnostics = (fe_diagnostics){.arena = arena};
    ts_buffer_deinit(&text);
    ck_assert_ptr_null(parse(source_text, length));
    for (size_t i = 0; i < diagnostics.count; i++)
        ts_buffer_format(&text, "%d:%d: %.*s\n", diagnostics.items[i].place.line,
                         diagnostics.items[i].place.column,
                         (int)diagnostics.items[i].message.length,
                         diagnostics.items[i].message.data);
    ck_assert_str_eq(text.data, expected);
}
#define ERRORS(s, expected) errors(s, sizeof s - 1, expected)

START_TEST(trees) {
    tree("x = -2 ** -y\n", "MODULE 1:1\n  body: ASSIGN 1:1\n    right: UNARY - 1:5\n"
                           "      left: BINARY ** 1:6\n        left: INT 2 1:6\n"
                           "        right: UNARY - 1:11\n          left: NAME y 1:12\n"
                           "    NAME x 1:1\n");
    tree("a, b, = (f).g(x, )", "MODULE 1:1\n  body: ASSIGN 1:1\n    right: CALL 1:9\n"
                               "      left: ATTRIBUTE g 1:9\n        left: NAME f 1:10\n"
                               "      NAME x 1:15\n    TUPLE 1:1\n      NAME a 1:1\n"
                               "      NAME b 1:4\n");
    tree("if not a in b:\r\n  pass\r\n", "MODULE 1:1\n  body: IF 1:1\n    test: UNARY not 1:4\n"
                                         "      left: COMPARE in 1:8\n        NAME a 1:8\n"
                                         "        NAME b 1:13\n    body: PASS 2:3\n");
    tree("f'{x!r:>{w}}{{' 'a'", "MODULE 1:1\n  body: EXPR_STMT 1:1\n    left: FSTRING 1:1\n"
                                "      FORMATTED r 1:3\n        left: NAME x 1:4\n"
                                "        right: FSTRING 1:8\n          STRING '>' 1:10\n"
                                "          FORMATTED 1:9\n            left: NAME w 1:10\n"
                                "      STRING '{a' 1:1\n");
    tree("def f(a, *, b=1):\n  # type: (int, str) -> T\n  pass\n",
         "MODULE 1:1\n  body: FUNCTION f type '(int, str) -> T' 1:1\n    parameter a\n"
         "      annotation: NAME int 2:12\n    parameter b keyword-only\n"
         "      annotation: NAME str 2:17\n      default: INT 1 1:15\n    third: NAME T 2:25\n"
         "    body: PASS 3:3\n");
    tree("y = []  # type: List\n", "MODULE 1:1\n  body: ANN_ASSIGN type 'List' 1:1\n"
                                   "    left: NAME y 1:1\n    right: LIST 1:5\n"
                                   "    third: NAME List 1:17\n");
}
END_TEST

START_TEST(match_statement) {
    tree("match v:\n  case 1 | 'a': x\n  case n if n: y\n  case _: z\n",
         "MODULE 1:1\n  body: ASSIGN 1:1\n    right: NAME v 1:7\n    NAME $match1 1:7\n  body: IF 2:3\n"
         "    test: BOOLOP or 2:8\n      COMPARE == 2:8\n        NAME $match1 2:8\n        INT 1 2:8\n"
         "      COMPARE == 2:12\n        NAME $match1 2:8\n        STRING 'a' 2:12\n    body: EXPR_STMT 2:17\n"
         "      left: NAME x 2:17\n    orelse: ASSIGN 3:8\n      right: NAME $match1 3:8\n      NAME n 3:8\n"
         "    orelse: IF 3:3\n      test: NAME n 3:13\n      body: EXPR_STMT 3:16\n        left: NAME y 3:16\n"
         "      orelse: EXPR_STMT 4:11\n        left: NAME z 4:11\n");
    tree("match = 1\nmatch[0] = case(match)\n",
         "MODULE 1:1\n  body: ASSIGN 1:1\n    right: INT 1 1:9\n    NAME match 1:1\n  body: ASSIGN 2:1\n"
         "    right: CALL 2:12\n      left: NAME case 2:12\n      NAME match 2:17\n    SUBSCRIPT 2:1\n"
         "      left: NAME match 2:1\n      right: INT 0 2:7\n");
    ERRORS("match v:\n  case a + 1: x\n", "2:8: expected a pattern\n");
    ERRORS("x = [a as b]\n", "1:6: 'as' is allowed in a with statement only\n");
}
END_TEST

START_TEST(messages) {
    ERRORS("def g(x)\n    return x +\n", "1:9: expected ':', found end of line\n"
                                          "2:15: expected an expression, found end of line\n");
    ERRORS("x = [1, 2\ndef f(): pass\n", "1:5: expected ']' for the '[' that begins here, found 'def'\n");
    ERRORS("f() = 1\nx = 5 5\n", "1:1: cannot assign to a call\n"
                                  "2:7: expected end of line, found '5'\n");
    ERRORS("if a:\n\tb\n        c\n", "3:9: tabs and blanks are mixed so that the indentation of this "
                                      "line depends on the width of a tab\n");
    ERRORS("if a:\n    b\n  c\n", "3:3: expected the indentation of an outer block, found a line "
                                  "indented by 2\n");
    ERRORS("x = 1\n  y = 2\n", "2:3: expected no indentation here, found a line indented by 2\n");
    ERRORS("if a:\nb\n", "2:1: expected an indented block after the line that ends in ':'\n");
    ERRORS("x = 'abc\n", "1:5: expected a closing quote for the string that begins here\n");
    ERRORS("x = \xC3\xA9\xE9", "1:6: expected UTF-8 text, found byte 0xe9\n");
    ERRORS("x = \0 1", "1:5: expected text, found a NUL byte\n");
    ERRORS("x = 1\ry = 2\n", "1:6: expected a line feed after a carriage return\n");
    ERRORS("\xFF\xFEx", "1:1: expected UTF-8 text, found UTF-16 text\n");
    ERRORS("f'{a b}'", "1:6: expected the end of the expression, found 'b'\n");
    ERRORS("f'{}'", "1:3: expected an expression inside '{}' of an f-string\n");
}
END_TEST

/* prefix, `count` times part, middle, `count` times tail. */
static char *repeated(const char *prefix, const char *part, size_t count, const char *middle,
                      const char *tail) {
    size_t size = strlen(prefix) + strlen(middle) + count * (strlen(part) + strlen(tail)) + 2;
    char *s = malloc(size), *p = s;
    p += sprintf(p, "%s", prefix);
    for (size_t i = 0; i < count; i++)
        p += sprintf(p, "%s", part);
    p += sprintf(p, "%s", middle);
    for (size_t i = 0; i < count; i++)
        p += sprintf(p, "%s", tail);
    sprintf(p, "\n");
    return s;
}

static void limit(const char *prefix, const char *part, size_t count, const char *middle,
                  const char *tail, bool passes) {
    diagnostics = (fe_diagnostics){.arena = arena};
    char *s = repeated(prefix, part, count, middle, tail);
    ast_node *node = parse(s, strlen(s));
    free(s);
    ck_assert_msg((node != NULL) == passes, "%s %zu", part, count);
    ck_assert_uint_eq(diagnostics.error_count, passes ? 0 : 1);
}

START_TEST(limits) {
    limit("x = ", "a + ", 100000, "a", "", true);
    limit("x = ", "(", 1000, "1", ")", true);
    limit("x = ", "(", 1001, "1", ")", false);
    limit("x = ", "[", 200000, "1", "]", false);
    limit("x = ", "not ", 200000, "1", "", false);
    limit("x = ", "-", 200000, "1", "", false);
    limit("x = ", "a if b else ", 50000, "1", "", false);
    limit("x = a", ".b", 100000, "", "", false);
    limit("x = ", "a and ", 50000, "a", "", true);
    limit("x = '", "a", 1000000, "'", "", true);
    limit("", "x", 1000000, " = 1", "", true);
    limit("x = ", "1", 400, "", "", false);
    ast_node *node = parse("x = a+a*a-a", 11);
    ck_assert_ptr_nonnull(node);
}
END_TEST

START_TEST(at_most_twenty) {
    diagnostics = (fe_diagnostics){.arena = arena};
    char *s = repeated("", "x = = 1\n", 100, "", "");
    ck_assert_ptr_null(parse(s, strlen(s)));
    free(s);
    ck_assert_uint_eq(diagnostics.error_count, 20);
    ts_status status = fe_diagnostics_status(&diagnostics);
    ck_assert_int_eq(ts_status_code(status), TS_ERR_SYNTAX);
    ts_status_release(status);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("frontend_parser");
    TCase *tcase = tcase_create("all");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, trees);
    tcase_add_test(tcase, match_statement);
    tcase_add_test(tcase, messages);
    tcase_add_test(tcase, limits);
    tcase_add_test(tcase, at_most_twenty);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* .tsir text: reads, verifies, prints the same bytes again; and bad text is refused with a place. */
#include <check.h>
#include <stdlib.h>

#include "ir/ir.h"

static char *print(ir_module *m) {
    ts_buffer out = {0};
    ir_print_module(m, &out, NULL);
    ts_buffer_char(&out, 0);
    ck_assert(!out.failed);
    return out.data;
}

static void round_trip(const char *text, bool same_as_text) {
    ts_arena *arena = ts_arena_create(0);
    ir_module *m = ir_module_make(arena);
    ts_status status = ir_parse_module(m, TS_STR("t.tsir"), ts_str_of(text), NULL, NULL);
    ck_assert_msg(!status, "%d:%d: %s", ts_status_place(status).line,
                  ts_status_place(status).column, ts_status_message(status));
    status = ir_verify_module(m);
    ck_assert_msg(!status, "%s", ts_status_message(status));
    char *first = print(m);
    if (same_as_text)
        ck_assert_str_eq(first, text);
    ir_module *again = ir_module_make(arena);
    status = ir_parse_module(again, TS_STR("t.tsir"), ts_str_of(first), NULL, NULL);
    ck_assert_msg(!status, "%d:%d: %s in\n%s", ts_status_place(status).line,
                  ts_status_place(status).column, ts_status_message(status), first);
    char *second = print(again);
    ck_assert_str_eq(first, second);
    free(first);
    free(second);
    ir_module_deinit(again);
    ir_module_deinit(m);
    ts_arena_release(arena);
}

static const char whole[] =
    "class @__torch__.Color enum {\n"
    "  member RED = 1\n"
    "}\n"
    "class @__torch__.Pair namedtuple {\n"
    "  field a : int\n"
    "  field b : Tensor\n"
    "}\n"
    "class @__torch__.M module {\n"
    "  field weight : Tensor parameter\n"
    "  field \"0\" : __torch__.M\n"
    "  field sizes : List[int]\n"
    "  field K : float = 0.5\n"
    "  method forward = @forward\n"
    "}\n"
    "\n"
    "object #0 = @__torch__.M { weight = tensor(float32[2,1], [1.0, -0.5]), \"0\" = #0, sizes = "
    "[1, 2] }\n"
    "root = #0\n"
    "\n"
    "func @forward(%self: __torch__.M, %x: float32[N,3] = none, %n as \"n-1\": int = 3) -> "
    "Tuple[int, List[int]] entry {  # m.py:3:5\n"
    "  %w = get_attr.weight(%self) : Tensor  # m.py:4:9\n"
    "  %0 = get_attr.\"0\"(%self) : __torch__.M\n"
    "  %c = const tensor(bool[2], [1, 0]) : bool[2]\n"
    "  %cond = is_instance<int, Optional[str]>(%n) : bool\n"
    "  %y, %z = if %cond -> (int, str) {\n"
    "    yield 1, \"a\\\"\\n\"\n"
    "  } else {\n"
    "    %y.1 = dim<N//2+1>() : int\n"
    "    yield %y.1, \"b\"\n"
    "  }\n"
    "  %s = loop %i to %n while true carry(%h: int = %y) -> (int) {\n"
    "    %1 = call @other(%i, [1, 2], (3, none), enum(@__torch__.Color, RED)) : int\n"
    "    yield %cond, %1\n"
    "  }\n"
    "  %l = list(%s, 2) : List[int]\n"
    "  %e = const [] : List[int]\n"
    "  %t = tuple(%s, %e) : Tuple[int, List[int]]\n"
    "  set_attr.sizes(%self, %l)\n"
    "  raise.ValueError(\"bad\")\n"
    "  return %t\n"
    "}\n"
    "\n"
    "func @other(%0: int, %1: List[int], %2: Tuple[int, None], %c: __torch__.Color) -> int library "
    "{\n"
    "  %a, %b = tuple_unpack(%2) : (int, None)\n"
    "  return %a\n"
    "}\n";

START_TEST(everything_reads_back) { round_trip(whole, true); }
END_TEST

START_TEST(operators_read_back) {
    static const char *const names[] = {"add.Tensor"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (rt_op_find(ts_str_of(names[i])) == OP_COUNT)
            return; /* the table is not there yet */
    round_trip("func @f(%x: float32[N], %y: float32[N]) -> Tensor {\n"
               "  %z = add.Tensor(%x, %y, alpha=2) : float32[N]\n"
               "  %u = add.Tensor(%z, %y) : float32[N] at 64\n"
               "  return %u\n"
               "}\n",
               true);
}
END_TEST

static void refuse(const char *text, int line, const char *part) {
    ts_arena *arena = ts_arena_create(0);
    ir_module *m = ir_module_make(arena);
    ts_status status = ir_parse_module(m, TS_STR("t.tsir"), ts_str_of(text), NULL, NULL);
    if (!status)
        status = ir_verify_module(m);
    ck_assert_msg(status != NULL, "accepted: %s", text);
    ck_assert_msg(strstr(ts_status_message(status), part) != NULL, "%s",
                  ts_status_message(status));
    if (line)
        ck_assert_int_eq(ts_status_place(status).line, line);
    ts_status_release(status);
    ir_module_deinit(m);
    ts_arena_release(arena);
}

START_TEST(bad_text_is_refused) {
    refuse("func @f() -> int {\n  return %x\n}\n", 2, "defined");
    refuse("func @f() -> int {\n  return 1\n", 3, "'}'");
    refuse("func @f() -> Foo {\n  return 1\n}\n", 1, "type");
    refuse("func @f() -> int {\n  %x = nosuch(1) : int\n  return %x\n}\n", 2, "operator");
    refuse("func @f() -> int {\n  return \"a\"\n}\n", 0, "rule return");
    refuse("func @f(%c: bool) -> int {\n  %x = if %c -> (int) {\n    yield 1\n  } else {\n"
           "    yield\n  }\n  return %x\n}\n",
           0, "rule yield");
    refuse("func @f(%c: bool) -> int {\n  if %c {\n    %a = const @w = tensor(float32[], [1.0]) : "
           "float32[]\n    yield\n  } else {\n    yield\n  }\n  return %a\n}\n",
           8, "defined");
    refuse("object #0 = @X {}\n", 1, "class");
    refuse("func @f(%x: float32[99999999999]) -> int {\n  %c = const tensor(float32[9999999], []) "
           ": Tensor\n  return 1\n}\n",
           2, "elements");
}
END_TEST

START_TEST(every_prefix_is_refused_or_read) {
    for (size_t length = 0; length < sizeof whole - 1; length++) {
        ts_arena *arena = ts_arena_create(0);
        ir_module *m = ir_module_make(arena);
        ts_str text = {whole, length};
        ts_status status = ir_parse_module(m, TS_STR("t.tsir"), text, NULL, NULL);
        ts_status_release(status);
        ir_module_deinit(m);
        ts_arena_release(arena);
    }
}
END_TEST

START_TEST(programs_run) {
    static const char text[] = "func @fact(%n: int, %l: List[int]) -> int {\n"
                               "  %a, %b = list_unpack(%l) : (int, int)\n"
                               "  %r = loop %i to %n while true carry(%h: int = %a) -> (int) {\n"
                               "    yield true, %i\n"
                               "  }\n"
                               "  return %r\n"
                               "}\n"
                               "func @rec(%n: int) -> int {\n"
                               "  %r = call @rec(%n) : int\n"
                               "  return %r\n"
                               "}\n";
    ts_arena *arena = ts_arena_create(0);
    ir_module *m = ir_module_make(arena);
    ts_status status = ir_parse_module(m, TS_STR("t"), ts_str_of(text), NULL, NULL);
    ck_assert_ptr_null(status);
    rt_context context = {0};
    ir_evaluator_options options = {.context = &context};
    rt_value list, out;
    int64_t items[2] = {7, 8};
    ck_assert_ptr_null(rt_int_list_make(items, 2, &list));
    rt_value args[2] = {rt_int(5), list};
    status = ir_evaluate(m, m->functions, args, 2, &options, &out);
    ck_assert_msg(!status, "%s", ts_status_message(status));
    ck_assert_int_eq(out.as.i, 4);
    ck_assert_ptr_null(rt_list_append(list.as.list, rt_int(1)));
    status = ir_evaluate(m, m->functions, args, 2, &options, &out);
    ck_assert_str_eq(ts_status_exception(status), "ValueError");
    ts_status_release(status);
    status = ir_evaluate(m, m->functions->next, args, 1, &options, &out);
    ck_assert_str_eq(ts_status_exception(status), "RecursionError");
    ts_status_release(status);
    rt_release(list);
    ir_module_deinit(m);
    ts_arena_release(arena);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ir text");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, everything_reads_back);
    tcase_add_test(tests, operators_read_back);
    tcase_add_test(tests, bad_text_is_refused);
    tcase_add_test(tests, every_prefix_is_refused_or_read);
    tcase_add_test(tests, programs_run);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

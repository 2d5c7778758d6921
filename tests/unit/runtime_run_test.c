/* Text of IR -> artifact -> run: the host program, its services and the public interface. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "codegen/codegen.h"
#include "runtime/tsrt.h"

typedef struct fixture {
    tsrt_model *model;
    tsrt_session *session;
} fixture;

static fixture open_text(const char *text) {
    ts_arena *arena = ts_arena_create(0);
    ir_module *m = ir_module_make(arena);
    ts_status status = ir_parse_module(m, TS_STR("t.tsir"), ts_str_of(text), NULL, NULL);
    ck_assert_msg(!status, "%d:%d: %s", ts_status_place(status).line,
                  ts_status_place(status).column, ts_status_message(status));
    status = ir_verify_module(m);
    ck_assert_msg(!status, "%s", ts_status_message(status));
    char path[] = "/tmp/tsc_run_test_XXXXXX";
    int fd = mkstemp(path);
    ck_assert(fd >= 0);
    close(fd);
    const cg_target_info *level = cg_target_find(TS_STR("x86-64-v2"));
    cg_options options = {.levels = &level, .level_count = 1, .opt_level = 2,
                          .emit = CG_EMIT_TSM, .output_path = ts_str_of(path),
                          .source_name = TS_STR("t.tsir")};
    status = cg_compile(m, arena, &options);
    ck_assert_msg(!status, "%s", ts_status_message(status));
    fixture f = {0};
    tsrt_status *s = tsrt_model_load(path, NULL, &f.model);
    ck_assert_msg(!s, "%s", tsrt_status_message(s));
    ck_assert_ptr_null(tsrt_model_verify(f.model));
    unlink(path);
    ir_module_deinit(m);
    ts_arena_release(arena);
    s = tsrt_session_create(f.model, NULL, &f.session);
    ck_assert_msg(!s, "%s", tsrt_status_message(s));
    return f;
}

static void close_all(fixture *f) {
    tsrt_session_release(f->session);
    tsrt_model_release(f->model);
}

static tsrt_value *make_int(int64_t i) {
    tsrt_value *v;
    ck_assert_ptr_null(tsrt_value_make_int(i, &v));
    return v;
}

/* Runs with int arguments; the text of the result, or "Type: message". */
static char *run_ints(fixture *f, const int64_t *args, size_t count) {
    tsrt_value *values[4], *out;
    for (size_t i = 0; i < count; i++)
        values[i] = make_int(args[i]);
    tsrt_status *s = tsrt_run(f->session, 0, values, count, NULL, &out);
    for (size_t i = 0; i < count; i++)
        tsrt_value_release(values[i]);
    char *text = malloc(4096);
    if (s) {
        snprintf(text, 4096, "%s: %s", tsrt_status_exception(s), tsrt_status_message(s));
        tsrt_status_release(s);
        return text;
    }
    tsrt_value *repr;
    ck_assert_ptr_null(tsrt_value_to_str(out, 1, &repr));
    snprintf(text, 4096, "%s", tsrt_value_str(repr, NULL));
    tsrt_value_release(repr);
    tsrt_value_release(out);
    return text;
}

#define EXPECT(f, expected, ...)                                                                   \
    do {                                                                                           \
        int64_t args_[] = {__VA_ARGS__};                                                           \
        char *got_ = run_ints((f), args_, sizeof args_ / sizeof args_[0]);                         \
        ck_assert_str_eq(got_, expected);                                                          \
        free(got_);                                                                                \
    } while (0)

START_TEST(integers_run_natively) {
    fixture f = open_text("func @forward(%n: int, %d: int) -> int entry {\n"
                          "  %s = loop %i to %n while true carry(%h: int = 0) -> (int) {\n"
                          "    %a = mul.int(%i, 3) : int\n"
                          "    %b = floordiv.int(%a, %d) : int\n"
                          "    %c = add.int(%h, %b) : int\n"
                          "    yield true, %c\n"
                          "  }\n"
                          "  return %s\n"
                          "}\n");
    EXPECT(&f, "0", 0, 1);
    EXPECT(&f, "135", 10, 1);
    EXPECT(&f, "-70", 10, -2);
    EXPECT(&f, "ZeroDivisionError: integer division or modulo by zero", 10, 0);
    EXPECT(&f, "135", 10, 1);
    tsrt_statistics st = {.size = sizeof st};
    ck_assert_ptr_null(tsrt_session_get_statistics(f.session, &st));
    ck_assert_uint_eq(st.dynamic_call_count, 1);
    close_all(&f);
}
END_TEST

START_TEST(boxed_values_are_carried) {
    fixture f = open_text("func @forward(%n: int) -> Tuple[List[int], str] entry {\n"
                          "  %e = list(7) : List[int]\n"
                          "  %l, %s = loop %i to %n while true carry(%h: List[int] = %e, %t: str "
                          "= \"\") -> (List[int], str) {\n"
                          "    %d = list(%i, %n) : List[int]\n"
                          "    %c = lt.int(%i, 2) : bool\n"
                          "    %x, %y = if %c -> (List[int], str) {\n"
                          "      yield %d, \"a\"\n"
                          "    } else {\n"
                          "      yield %h, %t\n"
                          "    }\n"
                          "    yield true, %x, %y\n"
                          "  }\n"
                          "  %r = tuple(%l, %s) : Tuple[List[int], str]\n"
                          "  return %r\n"
                          "}\n");
    EXPECT(&f, "([7], '')", 0);
    EXPECT(&f, "([0, 1], 'a')", 1);
    EXPECT(&f, "([1, 5], 'a')", 5);
    close_all(&f);
}
END_TEST

START_TEST(lists_are_indexed) {
    fixture f = open_text("func @forward(%i: int) -> Tuple[int, str, int] entry {\n"
                          "  %l = list(10, 20, 30) : List[int]\n"
                          "  %t = list(\"a\", \"b\", \"c\") : List[str]\n"
                          "  %a = __getitem__.t(%l, %i) : int\n"
                          "  %b = __getitem__.t(%t, %i) : str\n"
                          "  %n = len.t(%t) : int\n"
                          "  %r = tuple(%a, %b, %n) : Tuple[int, str, int]\n"
                          "  return %r\n"
                          "}\n");
    EXPECT(&f, "(10, 'a', 3)", 0);
    EXPECT(&f, "(30, 'c', 3)", -1);
    EXPECT(&f, "IndexError: list index out of range", 3);
    close_all(&f);
}
END_TEST

START_TEST(recursion_is_limited) {
    fixture f = open_text("func @forward(%n: int) -> int entry {\n"
                          "  %r = call @fib(%n) : int\n"
                          "  return %r\n"
                          "}\n"
                          "func @fib(%n: int) -> int {\n"
                          "  %c = lt.int(%n, 2) : bool\n"
                          "  %r = if %c -> (int) {\n"
                          "    yield %n\n"
                          "  } else {\n"
                          "    %a = sub.int(%n, 1) : int\n"
                          "    %b = sub.int(%n, 2) : int\n"
                          "    %x = call @fib(%a) : int\n"
                          "    %y = call @fib(%b) : int\n"
                          "    %z = add.int(%x, %y) : int\n"
                          "    yield %z\n"
                          "  }\n"
                          "  return %r\n"
                          "}\n");
    EXPECT(&f, "6765", 20);
    EXPECT(&f, "RecursionError: maximum recursion depth exceeded", 100000);
    EXPECT(&f, "6765", 20);
    close_all(&f);
}
END_TEST

START_TEST(exceptions_carry_type_and_text) {
    fixture f = open_text("func @forward(%n: int) -> int entry {\n"
                          "  %c = gt.int(%n, 2) : bool\n"
                          "  %r = if %c -> (int) {\n"
                          "    raise.ValueError(\"too big\")\n"
                          "    %u = uninitialized<int>() : int\n"
                          "    yield %u\n"
                          "  } else {\n"
                          "    yield %n\n"
                          "  }\n"
                          "  return %r\n"
                          "}\n");
    EXPECT(&f, "2", 2);
    EXPECT(&f, "ValueError: too big", 3);
    close_all(&f);
}
END_TEST

START_TEST(objects_keep_state) {
    fixture f = open_text("class @__torch__.M module {\n"
                          "  field n : int\n"
                          "  field seen : List[int]\n"
                          "}\n"
                          "object #0 = @__torch__.M { n = 5, seen = [1] }\n"
                          "root = #0\n"
                          "func @forward(%self: __torch__.M, %x: int) -> List[int] entry {\n"
                          "  %n = get_attr.n(%self) : int\n"
                          "  %m = add.int(%n, %x) : int\n"
                          "  set_attr.n(%self, %m)\n"
                          "  %s = get_attr.seen(%self) : List[int]\n"
                          "  %t = append.t(%s, %m) : List[int]\n"
                          "  return %s\n"
                          "}\n");
    EXPECT(&f, "[1, 7]", 2);
    EXPECT(&f, "[1, 7, 17]", 10);
    close_all(&f);
}
END_TEST

static void count_release(void *user) { ++*(int *)user; }

/* The result is an object that holds itself and the argument: the last handle frees it. */
START_TEST(results_may_hold_themselves) {
    fixture f = open_text("class @Node plain {\n"
                          "  field x : Tensor\n"
                          "  field next : Optional[Node]\n"
                          "}\n"
                          "func @forward(%x: Tensor) -> Node entry {\n"
                          "  %a = new_object<Node>() : Node\n"
                          "  set_attr.x(%a, %x)\n"
                          "  set_attr.next(%a, %a)\n"
                          "  return %a\n"
                          "}\n");
    float data[4] = {0};
    int64_t size = 4;
    int released = 0, runs = 0;
    for (int order = 0; order < 3; order++) {
        tsrt_value *x, *node, *next, *list = NULL;
        ck_assert_ptr_null(tsrt_value_wrap_tensor(TSRT_FLOAT32, &size, NULL, 1, data,
                                                  count_release, &released, &x));
        ck_assert_ptr_null(tsrt_run(f.session, 0, &x, 1, NULL, &node));
        runs++;
        tsrt_value_release(x);
        ck_assert_ptr_null(tsrt_value_item(node, 1, &next));
        if (order == 2)
            ck_assert_ptr_null(tsrt_value_make_list(&next, 1, &list));
        tsrt_value_release(order ? node : next);
        ck_assert_int_eq(released, runs - 1);
        tsrt_value_release(order ? next : node);
        ck_assert_int_eq(released, order == 2 ? runs - 1 : runs);
        tsrt_value_release(list);
        ck_assert_int_eq(released, runs);
    }
    close_all(&f);
}
END_TEST

START_TEST(tensors_take_the_dynamic_path) {
    fixture f = open_text("func @forward(%x: float32[N,3], %y: Tensor) -> Tensor entry {\n"
                          "  %z = add.Tensor(%x, %y, 2) : Tensor\n"
                          "  return %z\n"
                          "}\n");
    float x[6] = {1, 2, 3, 4, 5, 6}, y[3] = {10, 20, 30};
    int64_t x_sizes[] = {2, 3}, y_sizes[] = {3};
    tsrt_value *args[2], *out;
    ck_assert_ptr_null(tsrt_value_wrap_tensor(TSRT_FLOAT32, x_sizes, NULL, 2, x, NULL, NULL,
                                              &args[0]));
    ck_assert_ptr_null(tsrt_value_wrap_tensor(TSRT_FLOAT32, y_sizes, NULL, 1, y, NULL, NULL,
                                              &args[1]));
    tsrt_status *s = tsrt_run(f.session, 0, args, 2, NULL, &out);
    ck_assert_msg(!s, "%s", tsrt_status_message(s));
    tsrt_tensor_view view = {.size = sizeof view};
    ck_assert_ptr_null(tsrt_value_view_tensor(out, &view));
    ck_assert_int_eq(view.rank, 2);
    const float *z = view.data;
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq(z[i], x[i] + 2 * y[i % 3]);
    /* A wrong rank is refused before anything runs. */
    tsrt_value *bad;
    tsrt_value *swapped[2] = {args[1], args[0]};
    s = tsrt_run(f.session, 0, swapped, 2, NULL, &bad);
    ck_assert_int_eq(tsrt_status_code(s), TSRT_ERR_INVALID_INPUT);
    ck_assert_ptr_null(bad);
    tsrt_status_release(s);
    /* The result outlives its session. */
    tsrt_value_release(args[0]);
    tsrt_value_release(args[1]);
    close_all(&f);
    ck_assert_float_eq(z[5], 66);
    tsrt_value_release(out);
}
END_TEST

START_TEST(weights_are_mapped_or_copied) {
    fixture f = open_text("func @forward(%n: int) -> Tuple[Tensor, Tensor] entry {\n"
                          "  %w = const tensor(float32[2], [1.0, 2.0]) : float32[2]\n"
                          "  %s = const tensor(float32[2], [5.0, 6.0]) : float32[2]\n"
                          "  %a = add.Scalar(%s, %n, 1) : Tensor\n"
                          "  %t = copy_(%s, %a, false) : Tensor\n"
                          "  %r = tuple(%w, %t) : Tuple[Tensor, Tensor]\n"
                          "  return %r\n"
                          "}\n");
    EXPECT(&f, "(tensor([1., 2.]), tensor([6., 7.]))", 1);
    EXPECT(&f, "(tensor([1., 2.]), tensor([7., 8.]))", 1);
    close_all(&f);
}
END_TEST

START_TEST(a_run_can_be_stopped) {
    fixture f = open_text("func @forward(%n: int) -> int entry {\n"
                          "  %s = loop %i to 9223372036854775807 while true carry(%h: int = 0) "
                          "-> (int) {\n"
                          "    yield true, %n\n"
                          "  }\n"
                          "  return %s\n"
                          "}\n");
    tsrt_value *n = make_int(1), *out;
    tsrt_run_options o = {.size = sizeof o, .deadline_ns = 1};
    tsrt_status *s = tsrt_run(f.session, 0, &n, 1, &o, &out);
    ck_assert_int_eq(tsrt_status_code(s), TSRT_ERR_CANCELLED);
    tsrt_status_release(s);
    tsrt_session_cancel(f.session);
    s = tsrt_run(f.session, 0, &n, 1, NULL, &out);
    ck_assert_int_eq(tsrt_status_code(s), TSRT_ERR_CANCELLED);
    tsrt_status_release(s);
    tsrt_value_release(n);
    close_all(&f);
}
END_TEST

START_TEST(threads_do_not_change_results) {
    fixture f = open_text("func @forward(%x: float32[N,3]) -> Tensor entry {\n"
                          "  %z = kernel pointwise(%a: float32[N,3] = %x) -> (float32[N,3]) {\n"
                          "    %e = exp(%a) : float32[N,3]\n"
                          "    %s = add.Tensor(%e, %a, 1) : float32[N,3]\n"
                          "    yield %s\n"
                          "  }\n"
                          "  return %z\n"
                          "}\n");
    int64_t sizes[] = {100003, 3};
    size_t count = (size_t)(sizes[0] * sizes[1]);
    float *x = malloc(count * sizeof *x), *first = malloc(count * sizeof *x);
    for (size_t i = 0; i < count; i++)
        x[i] = (float)(i % 1000) * 0.01f - 5;
    tsrt_value *arg, *out;
    ck_assert_ptr_null(tsrt_value_wrap_tensor(TSRT_FLOAT32, sizes, NULL, 2, x, NULL, NULL, &arg));
    for (int threads = 1; threads <= 5; threads++) {
        ck_assert_ptr_null(tsrt_session_set_threads(f.session, threads));
        tsrt_status *s = tsrt_run(f.session, 0, &arg, 1, NULL, &out);
        ck_assert_msg(!s, "%s", tsrt_status_message(s));
        tsrt_tensor_view view = {.size = sizeof view};
        ck_assert_ptr_null(tsrt_value_view_tensor(out, &view));
        if (threads == 1)
            memcpy(first, view.data, count * sizeof *x);
        ck_assert(memcmp(first, view.data, count * sizeof *x) == 0);
        tsrt_value_release(out);
    }
    ck_assert_float_eq_tol(first[500], 1.0f, 1e-6f);
    tsrt_value_release(arg);
    free(x);
    free(first);
    close_all(&f);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("run");
    TCase *cases = tcase_create("run");
    suite_add_tcase(suite, cases);
    tcase_add_test(cases, integers_run_natively);
    tcase_add_test(cases, boxed_values_are_carried);
    tcase_add_test(cases, lists_are_indexed);
    tcase_add_test(cases, recursion_is_limited);
    tcase_add_test(cases, exceptions_carry_type_and_text);
    tcase_add_test(cases, objects_keep_state);
    tcase_add_test(cases, results_may_hold_themselves);
    tcase_add_test(cases, tensors_take_the_dynamic_path);
    tcase_add_test(cases, weights_are_mapped_or_copied);
    tcase_add_test(cases, a_run_can_be_stopped);
    tcase_add_test(cases, threads_do_not_change_results);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

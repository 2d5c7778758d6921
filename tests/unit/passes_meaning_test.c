/* Passes keep what programs mean: each program here runs with the reference kernels before and
 * after every pass of the pipeline, and results and changed inputs must be equal. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "passes/passes.h"

/* x, y: float32[2,3]; c: bool; n: int. */
#define HEAD "func @f(%x: float32[N,3], %y: float32[N,3], %c: bool, %n: int) -> Tensor entry {\n"

static const struct {
    const char *name, *text;
} programs[] = {
    {"in place chain", HEAD "  %a = relu(%x) : Tensor\n"
                            "  %b = sigmoid(%a) : Tensor\n"
                            "  %d = copy_(%a, %b) : Tensor\n"
                            "  %e = add.Tensor(%a, %d) : Tensor\n"
                            "  return %e\n}\n"},
    {"an input is changed", HEAD "  %a = relu(%y) : Tensor\n"
                                 "  %d = copy_(%x, %a) : Tensor\n"
                                 "  %e = add.Tensor(%x, %y) : Tensor\n"
                                 "  return %e\n}\n"},
    {"a view of an input is changed", HEAD "  %v = select.int(%x, 1, 0) : Tensor\n"
                                           "  %z = zero_(%v) : Tensor\n"
                                           "  %e = mul.Tensor(%x, %y) : Tensor\n"
                                           "  return %e\n}\n"},
    {"a row is written", HEAD "  %a = mul.Tensor(%x, %y) : Tensor\n"
                              "  %r = select.int(%a, 0, 1) : Tensor\n"
                              "  %s = select.int(%a, 0, 0) : Tensor\n"
                              "  %d = copy_(%r, %s) : Tensor\n"
                              "  %q = add.Tensor(%a, %s) : Tensor\n"
                              "  %z = zero_(%s) : Tensor\n"
                              "  %e = add.Tensor(%q, %a) : Tensor\n"
                              "  %g = add.Tensor(%e, %r) : Tensor\n"
                              "  return %g\n}\n"},
    {"branches write", HEAD "  %a = mul.Tensor(%x, %y) : Tensor\n"
                            "  if %c {\n"
                            "    %d = copy_(%a, %y) : Tensor\n"
                            "    yield\n"
                            "  } else {\n"
                            "    %v = slice.Tensor(%a, 1, 0, 2) : Tensor\n"
                            "    %z = zero_(%v) : Tensor\n"
                            "    yield\n"
                            "  }\n"
                            "  %e = add.Tensor(%a, %x) : Tensor\n"
                            "  return %e\n}\n"},
    {"loops write", HEAD "  %a = mul.Tensor(%x, %y) : Tensor\n"
                         "  %t = transpose.int(%a, 0, 1) : Tensor\n"
                         "  %h = loop %i to %n while true carry(%k: Tensor = %a) -> (Tensor) {\n"
                         "    %b = add.Tensor(%k, %x) : Tensor\n"
                         "    %d = copy_(%a, %b) : Tensor\n"
                         "    %row = select.int(%t, 0, 0) : Tensor\n"
                         "    %z = zero_(%row) : Tensor\n"
                         "    yield %c, %d\n"
                         "  }\n"
                         "  %e = add.Tensor(%h, %a) : Tensor\n"
                         "  return %e\n}\n"},
    {"two bases in a loop", HEAD "  %a = mul.Tensor(%x, %y) : Tensor\n"
                                 "  %h = loop %i to %n while true carry(%k: Tensor = %a) -> "
                                 "(Tensor) {\n"
                                 "    %b = add.Tensor(%k, %x) : Tensor\n"
                                 "    %s = relu(%b) : Tensor\n"
                                 "    %d = copy_(%b, %s) : Tensor\n"
                                 "    %z = zero_(%a) : Tensor\n"
                                 "    yield true, %d\n"
                                 "  }\n"
                                 "  %e = add.Tensor(%h, %a) : Tensor\n"
                                 "  return %e\n}\n"},
    {"reshape may alias", HEAD "  %a = mul.Tensor(%x, %y) : Tensor\n"
                               "  %r = reshape(%a, [-1]) : Tensor\n"
                               "  %d = copy_(%a, %y) : Tensor\n"
                               "  %s = reshape(%r, [3, -1]) : Tensor\n"
                               "  %t = transpose.int(%s, 0, 1) : Tensor\n"
                               "  %e = reshape(%t, [-1]) : Tensor\n"
                               "  %z = zero_(%r) : Tensor\n"
                               "  %g = add.Tensor(%e, %r) : Tensor\n"
                               "  return %g\n}\n"},
    {"a list holds it", HEAD "  %a = mul.Tensor(%x, %y) : Tensor\n"
                             "  %l = list(%a) : List[Tensor]\n"
                             "  %m = append.t(%l, %y) : List[Tensor]\n"
                             "  %d = copy_(%a, %y) : Tensor\n"
                             "  %b = __getitem__.t(%l, 0) : Tensor\n"
                             "  %z = zero_(%b) : Tensor\n"
                             "  %k = add.Tensor(%a, %x) : Tensor\n"
                             "  return %k\n}\n"},
    {"a list is read before and after", HEAD "  %a = mul.Tensor(%x, %y) : Tensor\n"
                                             "  %l = list(%a, %y) : List[Tensor]\n"
                                             "  %p = cat(%l) : Tensor\n"
                                             "  %d = zero_(%a) : Tensor\n"
                                             "  %q = cat(%l) : Tensor\n"
                                             "  %k = add.Tensor(%p, %q) : Tensor\n"
                                             "  return %k\n}\n"},
    {"the copied is changed later", HEAD "  %a = mul.Tensor(%x, %y) : Tensor\n"
                                         "  %b = add.Tensor(%x, %y) : Tensor\n"
                                         "  %d = copy_(%a, %b) : Tensor\n"
                                         "  %z = zero_(%b) : Tensor\n"
                                         "  %e = add.Tensor(%a, %b) : Tensor\n"
                                         "  %g = copy_(%a, %x) : Tensor\n"
                                         "  %h = zero_(%x) : Tensor\n"
                                         "  %k = add.Tensor(%e, %a) : Tensor\n"
                                         "  return %k\n}\n"},
    {"broadcast and dtype", HEAD "  %a = mul.Tensor(%x, %y) : Tensor\n"
                                 "  %r = select.int(%y, 0, 0) : Tensor\n"
                                 "  %k = to.dtype(%r, 7) : Tensor\n"
                                 "  %d = copy_(%a, %k) : Tensor\n"
                                 "  %g = add.Tensor(%a, %x) : Tensor\n"
                                 "  return %g\n}\n"},
    {"numbers", HEAD "  %s = size.int(%x, 1) : int\n"
                     "  %t = size(%x) : List[int]\n"
                     "  %u, %w = list_unpack(%t) : (int, int)\n"
                     "  %q = mul.int(%s, %u) : int\n"
                     "  %l = list(%q) : List[int]\n"
                     "  %v = view(%x, %l) : Tensor\n"
                     "  %k = loop %i to 3 while true carry(%h: Tensor = %v) -> (Tensor) {\n"
                     "    %g = add.Scalar(%h, %i) : Tensor\n"
                     "    yield true, %g\n"
                     "  }\n"
                     "  return %k\n}\n"},
    {"constants stay fresh", HEAD "  %z = zeros([2, 3]) : Tensor\n"
                                  "  %o = ones([3]) : Tensor\n"
                                  "  %a = add.Tensor(%x, %z) : Tensor\n"
                                  "  %d = copy_(%z, %a) : Tensor\n"
                                  "  %e = add.Tensor(%z, %o) : Tensor\n"
                                  "  return %e\n}\n"},
    {"tuples through branches", HEAD "  %t = if %c -> (Tuple[Tensor, int]) {\n"
                                     "    %a = tuple(%x, 1) : Tuple[Tensor, int]\n"
                                     "    yield %a\n"
                                     "  } else {\n"
                                     "    %a = tuple(%y, 2) : Tuple[Tensor, int]\n"
                                     "    yield %a\n"
                                     "  }\n"
                                     "  %k, %m = tuple_unpack(%t) : (Tensor, int)\n"
                                     "  %r = add.Scalar(%k, %m) : Tensor\n"
                                     "  return %r\n}\n"},
    {"calls", "func @g(%a: Tensor, %o: Optional[Tensor], %k: int) -> Tensor {\n"
              "  %z = zero_(%a) : Tensor\n"
              "  %i = is_instance<None>(%o) : bool\n"
              "  %r = if %i -> (Tensor) {\n"
              "    yield %a\n"
              "  } else {\n"
              "    %u = cast(%o) : Tensor\n"
              "    yield %u\n"
              "  }\n"
              "  return %r\n}\n" HEAD "  %a = call @g(%x, none, 1) : Tensor\n"
              "  %b = add.Tensor(%x, %y) : Tensor\n"
              "  %d = call @g(%b, %y, 2) : Tensor\n"
              "  %e = add.Tensor(%b, %d) : Tensor\n"
              "  %l = add.Tensor(%a, %e) : Tensor\n"
              "  return %l\n}\n"},
};

static rt_value sample(int from) {
    int64_t sizes[2] = {2, 3};
    rt_tensor *t;
    ck_assert_ptr_null(rt_tensor_make(RT_float32, sizes, 2, &t));
    for (int i = 0; i < 6; i++)
        ((float *)t->data)[i] = (float)(i * from % 7) - 2.5f;
    return rt_from_tensor(t);
}

typedef struct outcome {
    bool raised;
    int rank;
    int64_t count, x_count;
    float out[64], x[64];
} outcome;

static void flatten(rt_value v, float *out, int64_t *count) {
    rt_cursor c;
    *count = 0;
    for (rt_cursor_start(&c, v.as.tensor); c.left; rt_cursor_next(&c)) {
        ck_assert(*count < 64);
        out[(*count)++] = (float)rt_load_double((rt_dtype)v.as.tensor->dtype, c.data);
    }
}

static outcome run(ir_module *m, bool flag, int n, const char *program, const char *when) {
    const ir_function *f = m->functions;
    while (!f->is_entry)
        f = f->next;
    rt_context context = {0};
    ir_evaluator_options options = {.context = &context};
    rt_value args[4] = {sample(3), sample(5), rt_bool(flag), rt_int(n)}, out;
    ts_status status = ir_evaluate(m, f, args, 4, &options, &out);
    outcome o = {.raised = status != NULL};
    ck_assert_msg(!status || ts_status_code(status) == TS_ERR_RAISED, "%s after %s: %s", program,
                  when, ts_status_message(status));
    if (!status) {
        o.rank = out.as.tensor->rank;
        flatten(out, o.out, &o.count);
    }
    flatten(args[0], o.x, &o.x_count);
    ts_status_release(status);
    rt_release(out);
    rt_release(args[0]);
    rt_release(args[1]);
    return o;
}

typedef struct expected {
    const char *program;
    outcome outcomes[4];
} expected;

static void compare(const outcome *a, const outcome *b, const char *program, const char *pass) {
    ck_assert_msg(a->raised == b->raised, "%s: raises differ after %s", program, pass);
    ck_assert_msg(a->count == b->count && a->rank == b->rank, "%s: %lld elements, %lld after %s",
                  program, (long long)a->count, (long long)b->count, pass);
    for (int64_t i = 0; i < a->count; i++)
        ck_assert_msg(a->out[i] == b->out[i], "%s: element %lld is %g, %g after %s", program,
                      (long long)i, a->out[i], b->out[i], pass);
    for (int64_t i = 0; i < a->x_count; i++)
        ck_assert_msg(a->x[i] == b->x[i], "%s: the input's element %lld is %g, %g after %s",
                      program, (long long)i, a->x[i], b->x[i], pass);
}

static ts_status check_pass(void *user, ir_module *m, const char *pass) {
    const expected *e = user;
    for (int i = 0; i < 4; i++) {
        outcome o = run(m, (i & 1) != 0, i, e->program, pass);
        compare(&e->outcomes[i], &o, e->program, pass);
    }
    return NULL;
}

START_TEST(programs_mean_the_same) {
    ts_arena *arena = ts_arena_create(0), *scratch = ts_arena_create(0);
    ir_module *m = ir_module_make(arena);
    const char *text = programs[_i].text;
    ts_status status =
        ir_parse_module(m, ts_str_of(programs[_i].name), ts_str_of(text), NULL, NULL);
    if (!status)
        status = ir_verify_module(m);
    ck_assert_msg(!status, "%s: %d:%d: %s", programs[_i].name, ts_status_place(status).line,
                  ts_status_place(status).column, ts_status_message(status));
    expected e = {.program = programs[_i].name};
    for (int i = 0; i < 4; i++)
        e.outcomes[i] = run(m, (i & 1) != 0, i, e.program, "parsing");
    rt_context context = {0};
    pass_target target = {.vector_bytes = 32, .opt_level = 2};
    pass_context ctx = {.scratch = scratch, .target = &target, .evaluate_context = &context};
    pass_options options = {.verify_each = true, .check = check_pass, .check_user = &e};
    status = pass_run_pipeline(&ctx, m, &options);
    ck_assert_msg(!status, "%s: %s %s", e.program, ts_status_message(status),
                  ts_status_trail(status));
    ir_module_deinit(m);
    ts_arena_release(scratch);
    ts_arena_release(arena);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("passes keep meaning");
    TCase *tests = tcase_create("all");
    tcase_add_loop_test(tests, programs_mean_the_same, 0,
                        (int)(sizeof programs / sizeof programs[0]));
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* Functions without annotations are typed by what they are called with. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "frontend/frontend.h"

START_TEST(by_arguments) {
    char path[64];
    snprintf(path, sizeof path, "variants_test_%d.py", (int)getpid());
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("from torch import nn\n"
          "def times(x, n, name=None):\n    return x * n if name is None else x * len(name)\n"
          "class M(nn.Module):\n"
          "    def twice(self, x):\n        return x + x\n"
          "    def forward(self, k: int, s: str):\n"
          "        return times(k, 2), times(0.5, k), times(k, 1, name='abc'), self.twice(s), self.twice(k)\n",
          file);
    fclose(file);
    ts_arena *arena = ts_arena_create(0);
    fe_diagnostics diagnostics = {.arena = arena};
    fe_options options = {.path = ts_str_of(path), .training = -1};
    ir_module *module = ir_module_make(arena);
    fe_context *fe = fe_context_make(module, &options, &diagnostics);
    ts_status status = fe_load(fe);
    remove(path);
    ck_assert_msg(status == NULL, "%s", ts_status_message(status));
    ir_function *forward = ir_function_find(module, TS_STR("forward"));
    ck_assert_ptr_nonnull(forward);
    rt_value text, out, shown;
    ck_assert_ptr_null(rt_str_make(TS_STR("q"), &text));
    rt_value args[3] = {module->root, rt_int(3), text};
    size_t skip = forward->body->parameter_count == 3 ? 0 : 1;
    rt_context context = {.grad_enabled = true, .thread_budget = 1};
    ir_evaluator_options evaluator = {.context = &context, .op_budget = 100000, .depth_limit = 100};
    ck_assert_ptr_null(ir_evaluate(module, forward, args + skip, 3 - skip, &evaluator, &out));
    ck_assert_ptr_null(rt_to_repr(out, &shown));
    ck_assert_str_eq(shown.as.str->data, "(6, 1.5, 9, 'qq', 6)");
    rt_release(shown);
    rt_release(out);
    rt_release(text);
    fe_context_deinit(fe);
    ir_module_deinit(module);
    ts_arena_release(arena);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("frontend_variants");
    TCase *tcase = tcase_create("all");
    tcase_add_test(tcase, by_arguments);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Types, size expressions and schemas. */
#include <check.h>
#include <stdlib.h>

#include "ir/ir.h"

static ts_arena *arena;
static ir_module *m;

static void setup(void) {
    arena = ts_arena_create(0);
    m = ir_module_make(arena);
}

static void teardown(void) {
    ir_module_deinit(m);
    ts_arena_release(arena);
}

static const ir_type *parse(const char *text) {
    const ir_type *t = NULL;
    ts_status status = ir_type_parse(m, ts_str_of(text), &t);
    ck_assert_msg(!status, "%s: %s", text, ts_status_message(status));
    return t;
}

static void same_text(const char *text, const char *expected) {
    ts_str printed = ir_type_text(m, parse(text));
    ck_assert_msg(ts_str_is(printed, expected), "%s printed as %.*s", text, TS_STR_ARG(printed));
    ck_assert_ptr_eq(parse(expected), parse(text));
}

START_TEST(types_print_and_read_back) {
    same_text("float32[N, 3]", "float32[N,3]");
    same_text("float32", "float32[...]");
    same_text("Tensor", "Tensor");
    same_text("Tensor[N,?]", "Tensor[N,?]");
    same_text("bool", "bool");
    same_text("bool[...]", "bool[...]");
    same_text("float32[]", "float32[]");
    same_text("Optional[Optional[List[int]]]", "Optional[List[int]]");
    same_text("Union[int, None]", "Optional[int]");
    same_text("Union[int, str, None]", "Union[int, str, None]");
    same_text("Tuple[()]", "Tuple[]");
    same_text("Dict[str, float32[2*N+1,N//2,max(N,3)]]", "Dict[str, float32[2*N+1,N//2,max(N,3)]]");
    same_text("float32[M=1..64]{channels_last}", "float32[M]{channels_last}");
    same_text("float32[(N+3)//2]", "float32[(N+1)//2+1]");
    const ir_type *t;
    ts_status status = ir_type_parse(m, TS_STR("List[int"), &t);
    ck_assert_ptr_nonnull(status);
    ts_status_release(status);
    status = ir_type_parse(m, TS_STR("Foo"), &t);
    ck_assert_ptr_nonnull(status);
    ts_status_release(status);
}
END_TEST

START_TEST(subtypes_and_joins) {
    ck_assert(ir_type_is_subtype(parse("int"), parse("Optional[int]")));
    ck_assert(ir_type_is_subtype(parse("int"), parse("number")));
    ck_assert(!ir_type_is_subtype(parse("int"), parse("float")));
    ck_assert(!ir_type_is_subtype(parse("List[int]"), parse("List[Optional[int]]")));
    ck_assert(ir_type_is_subtype(parse("List[float32[2]]"), parse("List[Tensor]")));
    ck_assert(ir_type_is_subtype(parse("Tensor"), parse("float32[2]")));
    ck_assert(!ir_type_is_refinement(parse("Tensor"), parse("float32[2]")));
    ck_assert(ir_type_is_refinement(parse("float32[2]"), parse("float32[?]")));
    ck_assert_ptr_eq(ir_type_join(m, parse("float32[N,3]"), parse("float32[N,4]")),
                     parse("float32[N,?]"));
    ck_assert_ptr_eq(ir_type_join(m, parse("int"), parse("None")), parse("Optional[int]"));
    ck_assert_ptr_eq(ir_type_join(m, parse("Tuple[int, None]"), parse("Tuple[int, int]")),
                     parse("Tuple[int, Optional[int]]"));
    ck_assert_ptr_eq(ir_type_forget(m, parse("List[float32[2]]")), parse("List[Tensor]"));
}
END_TEST

START_TEST(sizes_have_a_normal_form) {
    const rt_dim_algebra *a = ir_dim_algebra(m);
    rt_dim n = ir_dim_symbol(m, TS_STR("N")), k = ir_dim_symbol(m, TS_STR("K"));
    rt_dim sum = a->add(a->user, a->mul(a->user, 2, n), a->sub(a->user, 1, n));
    ck_assert(sum == a->add(a->user, n, 1));
    ck_assert(a->sub(a->user, n, n) == 0);
    ck_assert(a->floordiv(a->user, a->mul(a->user, n, k), k) == n);
    ck_assert(a->floordiv(a->user, a->mul(a->user, 6, n), 3) == a->mul(a->user, 2, n));
    ck_assert(a->max(a->user, n, 0) == n);
    ck_assert(a->max(a->user, a->add(a->user, n, 2), n) == a->add(a->user, n, 2));
    ck_assert(a->floordiv(a->user, a->floordiv(a->user, n, 2), 3) == a->floordiv(a->user, n, 6));
    ck_assert(a->floordiv(a->user, -7, 2) == -4);
    ck_assert(a->add(a->user, RT_DIM_UNKNOWN, 2) == RT_DIM_UNKNOWN);
    ck_assert(a->sub(a->user, 3, 5) == -2);
    ir_dim_node node = ir_dim_get(m, sum);
    ck_assert(node.kind == IR_DIM_ADD && node.a == n && node.b == 1);
    ck_assert(ts_str_is(ir_dim_symbol_name(m, n), "N"));
}
END_TEST

START_TEST(sizes_are_estimated) {
    const rt_dim_algebra *a = ir_dim_algebra(m);
    rt_dim h = ir_dim_symbol(m, TS_STR("H")), few = ir_dim_symbol(m, TS_STR("F"));
    ir_dim_set_bounds(m, few, 1, 5);
    ck_assert_int_eq(ir_dim_estimate(m, 7, 100), 7);
    ck_assert_int_eq(ir_dim_estimate(m, h, 100), 100);
    ck_assert_int_eq(ir_dim_estimate(m, few, 100), 5);
    rt_dim half = a->floordiv(a->user, a->add(a->user, h, 1), 2);
    ck_assert_int_eq(ir_dim_estimate(m, a->mul(a->user, half, half), 100), 2500);
    ck_assert_int_eq(ir_dim_estimate(m, a->max(a->user, half, a->mul(a->user, few, 9)), 100), 50);
    ck_assert_int_eq(ir_dim_estimate(m, a->min(a->user, half, a->mul(a->user, few, 9)), 100), 45);
    ck_assert_int_eq(ir_dim_estimate(m, a->sub(a->user, few, h), 100), -1);
    ck_assert_int_eq(ir_dim_estimate(m, RT_DIM_UNKNOWN, 100), -1);
}
END_TEST

START_TEST(schemas_parse) {
    ir_schema s;
    ts_status status = ir_schema_parse(
        m, TS_STR("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"), &s);
    ck_assert_ptr_null(status);
    ck_assert(ts_str_is(s.name, "add") && ts_str_is(s.overload, "Tensor") && s.arg_count == 3);
    ck_assert(s.args[2].is_keyword_only && s.args[2].default_value.as.i == 1);
    status = ir_schema_parse(m,
                             TS_STR("f(t[](a!) self, t(c -> *) el, int[2] stride=1, float? p=None, "
                                    "float eps=1, str mode=\"x\\n\", int[] d=[-2, -1], ScalarType? "
                                    "dtype=None, Dict(str, t) q, ...) -> (t(*), Tensor(a)[] out)"),
                             &s);
    ck_assert_msg(!status, "%s", ts_status_message(status));
    ck_assert(s.args[0].is_written && s.args[0].alias == 'a' && s.args[1].alias == 'c');
    ck_assert(s.args[2].default_value.as.list->count == 2 && s.args[2].fixed_length == 2);
    ck_assert(s.args[4].default_value.tag == RT_TAG_FLOAT);
    ck_assert(s.args[6].default_value.as.list->items[0].as.i == -2);
    ck_assert(s.is_variadic && s.result_count == 2);
    ck_assert(s.result_aliases[0] == '*' && s.result_aliases[1] == 'a');
    ir_type_bindings b = {0};
    ck_assert(ir_type_match(m, s.args[0].type, parse("List[int]"), &b));
    ck_assert_ptr_eq(ir_type_substitute(m, s.results[0], &b), parse("int"));
    status = ir_schema_parse(m, TS_STR("items.str(Dict(str, t) self) -> ((str, t)[])"), &s);
    ck_assert_ptr_null(status);
    ck_assert(s.result_count == 1 && s.results[0]->kind == IR_LIST);
}
END_TEST

START_TEST(names_are_free_or_taken) {
    ts_str f = TS_STR("f");
    ck_assert(ts_str_is(ir_function_free_name(m, f), "f"));
    ir_function *first = ir_function_make(m, f), *second = ir_function_make(m, ir_function_free_name(m, f));
    ck_assert(ts_str_is(second->name, "f_1"));
    ir_function_make(m, TS_STR("f_2")); /* a name that was not given out */
    ck_assert(ts_str_is(ir_function_free_name(m, f), "f_3"));
    ir_function_rename(first, TS_STR("f.body"));
    ck_assert_ptr_eq(ir_function_find(m, TS_STR("f.body")), first);
    ck_assert_ptr_null(ir_function_find(m, f));
    ir_function_remove(m, second);
    ck_assert_ptr_null(ir_function_find(m, TS_STR("f_1")));
    ir_function_make(m, f);
    ck_assert(ts_str_is(ir_function_free_name(m, f), "f_1"));
    ir_class *c = ir_class_make(m, TS_STR("C"), RT_CLASS_PLAIN);
    ir_class_make(m, ir_class_free_name(m, TS_STR("C")), RT_CLASS_PLAIN);
    ck_assert_ptr_nonnull(ir_class_find(m, TS_STR("C_1")));
    ir_class_forget(m, 1);
    ck_assert_ptr_eq(ir_class_find(m, TS_STR("C")), c);
    ck_assert_ptr_null(ir_class_find(m, TS_STR("C_1")));
    ck_assert(ts_str_is(ir_class_free_name(m, TS_STR("C")), "C_1"));
}
END_TEST

/* As many as a large model has; a search among all for each would take minutes. */
START_TEST(many_functions_of_one_name) {
    for (int i = 0; i < 200000; i++)
        ir_function_make(m, ir_function_free_name(m, TS_STR("f")));
    ck_assert_ptr_nonnull(ir_function_find(m, TS_STR("f_199999")));
}
END_TEST

START_TEST(all_rows_parse) {
    for (int op = 0; op < OP_COUNT; op++) {
        ir_schema s;
        ts_status status = ir_schema_parse(m, ts_str_of(rt_op_get((rt_op)op)->schema), &s);
        ck_assert_msg(!status, "%s: %s", rt_op_get((rt_op)op)->schema, ts_status_message(status));
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ir types");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, types_print_and_read_back);
    tcase_add_test(tests, names_are_free_or_taken);
    tcase_add_test(tests, many_functions_of_one_name);
    tcase_add_test(tests, subtypes_and_joins);
    tcase_add_test(tests, sizes_have_a_normal_form);
    tcase_add_test(tests, sizes_are_estimated);
    tcase_add_test(tests, schemas_parse);
    tcase_add_test(tests, all_rows_parse);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

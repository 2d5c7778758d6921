/* Constants that hold each other go with their session, but for what a result still holds. */
#include <check.h>
#include <stdlib.h>

#include "runtime/runtime_internal.h"

static rt_value make_list(void) {
    rt_value list;
    ck_assert_ptr_null(rt_list_make(2, &list));
    return list;
}

/* Two lists that hold each other, and a text; the nodes own a reference each. */
static rt_value *make_cycle(rt_value *out_text) {
    rt_value *nodes = calloc(3, sizeof *nodes);
    ck_assert_ptr_nonnull(nodes);
    nodes[0] = make_list();
    nodes[1] = make_list();
    ck_assert_ptr_null(rt_str_make(TS_STR("held"), out_text));
    ck_assert_ptr_null(rt_list_append(nodes[0].as.list, nodes[1]));
    ck_assert_ptr_null(rt_list_append(nodes[1].as.list, nodes[0]));
    ck_assert_ptr_null(rt_list_append(nodes[1].as.list, *out_text));
    return nodes;
}

static int64_t references(rt_value v) { return atomic_load(&v.as.counted->references); }

START_TEST(a_cycle_goes) {
    rt_value text;
    rt_value *nodes = make_cycle(&text);
    ck_assert_int_eq(references(text), 2);
    rt_release_cycles(nodes, 3);
    ck_assert_int_eq(references(text), 1);
    rt_release(text);
}
END_TEST

START_TEST(what_a_result_holds_stays) {
    rt_value text;
    rt_value *nodes = make_cycle(&text);
    rt_value result = rt_retain(nodes[0]);
    rt_release_cycles(nodes, 3);
    ck_assert_int_eq(references(text), 2);
    ck_assert_uint_eq(result.as.list->items[0].as.list->count, 2);
    rt_list_clear(result.as.list); /* the caller's own affair */
    rt_release(result);
    ck_assert_int_eq(references(text), 1);
    rt_release(text);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("runtime_cycles");
    TCase *all = tcase_create("all");
    tcase_add_test(all, a_cycle_goes);
    tcase_add_test(all, what_a_result_holds_stays);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}

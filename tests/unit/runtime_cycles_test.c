/* Values that hold each other: constants go with their session, others with the run that made them,
 * but for what somebody else still holds. */
#include <check.h>
#include <stdlib.h>

#include "runtime/runtime_internal.h"

static rt_value make_list(void) {
    rt_value list;
    if (rt_list_make(2, &list)) /* an assertion a step would be most of the time */
        ck_abort();
    return list;
}

static void append(rt_value list, rt_value item) {
    if (rt_list_append(list.as.list, item))
        ck_abort();
}

/* Two lists that hold each other, and a text; the nodes own a reference each. */
static rt_value *make_cycle(rt_value *out_text) {
    rt_value *nodes = calloc(3, sizeof *nodes);
    ck_assert_ptr_nonnull(nodes);
    nodes[0] = make_list();
    nodes[1] = make_list();
    ck_assert_ptr_null(rt_str_make(TS_STR("held"), out_text));
    append(nodes[0], nodes[1]);
    append(nodes[1], nodes[0]);
    append(nodes[1], *out_text);
    return nodes;
}

static int64_t references(rt_value v) { return atomic_load(&v.as.counted->references); }

START_TEST(a_cycle_goes) {
    rt_value text;
    rt_value *nodes = make_cycle(&text);
    rt_cycles none = {0};
    ck_assert_int_eq(references(text), 2);
    rt_cycles_close(&none, nodes, 3);
    ck_assert_int_eq(references(text), 1);
    rt_release(text);
}
END_TEST

START_TEST(what_a_result_holds_stays) {
    rt_value text;
    rt_value *nodes = make_cycle(&text);
    rt_value result = rt_retain(nodes[0]);
    rt_cycles none = {0};
    rt_cycles_close(&none, nodes, 3);
    ck_assert_int_eq(references(text), 2);
    ck_assert_uint_eq(result.as.list->items[0].as.list->count, 2);
    rt_cycles_release_value(result);
    ck_assert_int_eq(references(text), 1);
    rt_release(text);
}
END_TEST

/* A session of a model without constants, as far as cycles.c asks for one. */
static tsrt_model model;
static tsrt_session session;
static void setup(void) {
    session = (tsrt_session){.model = &model};
    ck_assert_ptr_null(rt_pool_make(&session.pool));
}
static void teardown(void) {
    rt_cycles_close(&session.cycles, NULL, 0);
    rt_pool_release(session.pool);
}

/* A list that holds itself and a text, as a run makes it: held by the reference that is returned alone. */
static rt_value make_ring(rt_value text) {
    rt_value list = make_list();
    append(list, text);
    append(list, list);
    rt_cycles_note(&session, list);
    return list;
}

static rt_value make_text(void) {
    rt_value text;
    ck_assert_ptr_null(rt_str_make(TS_STR("held"), &text));
    return text;
}

START_TEST(the_end_of_a_run_frees_rings) {
    rt_value text = make_text();
    rt_release(make_ring(text));
    ck_assert_int_eq(references(text), 2);
    ck_assert(!rt_cycles_end_run(&session, NULL, 0, rt_none()));
    ck_assert_int_eq(references(text), 1);
    ck_assert_uint_eq(session.cycles.count, 0);
    rt_release(text);
}
END_TEST

START_TEST(a_ring_that_is_held_stays) {
    rt_value text = make_text(), ring = make_ring(text);
    rt_cycles_note(&session, ring); /* once is enough */
    ck_assert_uint_eq(session.cycles.count, 1);
    ck_assert(rt_cycles_end_run(&session, NULL, 0, ring));
    ck_assert_uint_eq(session.cycles.count, 0); /* the caller's from now on */
    ck_assert_int_eq(references(text), 2);
    rt_cycles_release_value(ring);
    ck_assert_int_eq(references(text), 1);
    rt_release(text);
}
END_TEST

/* The way back leads through a tuple and a dict. */
START_TEST(rings_lead_through_all_containers) {
    rt_value text = make_text(), list = make_list(), tuple, dict;
    ck_assert_ptr_null(rt_tuple_make(2, &tuple));
    ck_assert_ptr_null(rt_dict_make(&dict));
    tuple.as.tuple->items[0] = rt_retain(dict);
    tuple.as.tuple->items[1] = rt_retain(text);
    append(list, tuple);
    ck_assert_ptr_null(rt_dict_set(dict.as.dict, rt_int(1), list));
    rt_release(tuple);
    rt_release(list);
    rt_cycles_note(&session, dict);
    rt_release(dict);
    ck_assert(!rt_cycles_end_run(&session, NULL, 0, rt_none()));
    ck_assert_int_eq(references(text), 1);
    rt_release(text);
}
END_TEST

/* 100,000 rings in one run: no more than the limit of them waits. What is no ring goes at once. */
START_TEST(a_long_run_frees_as_it_goes) {
    rt_value text = make_text();
    int64_t most = 0;
    for (int i = 0; i < 100000; i++) {
        rt_release(make_ring(text));
        most = references(text) > most ? references(text) : most;
    }
    ck_assert_int_le(most, 1100);
    ck_assert(!rt_cycles_end_run(&session, NULL, 0, rt_none()));
    ck_assert_int_eq(references(text), 1);
    for (int i = 0; i < 1000; i++) {
        rt_value list = make_list();
        append(list, text);
        rt_cycles_note(&session, list);
        rt_release(list);
        ck_assert_int_le(references(text), 4);
    }
    ck_assert(!rt_cycles_end_run(&session, NULL, 0, rt_none()));
    ck_assert_int_eq(references(text), 1);
    rt_release(text);
}
END_TEST

/* A chain of a million lists that ends in its beginning: no stack is used. */
START_TEST(a_long_ring_goes) {
    rt_value text = make_text(), first = make_ring(text), last = rt_retain(first);
    for (int i = 0; i < 1000000; i++) {
        rt_value next = make_list();
        append(next, last);
        rt_release(last);
        last = next;
    }
    append(first, last);
    rt_release(last);
    rt_release(first);
    ck_assert(!rt_cycles_end_run(&session, NULL, 0, rt_none()));
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
    TCase *runs = tcase_create("runs");
    tcase_add_checked_fixture(runs, setup, teardown);
    tcase_add_test(runs, the_end_of_a_run_frees_rings);
    tcase_add_test(runs, a_ring_that_is_held_stays);
    tcase_add_test(runs, rings_lead_through_all_containers);
    tcase_add_test(runs, a_long_run_frees_as_it_goes);
    tcase_add_test(runs, a_long_ring_goes);
    suite_add_tcase(suite, runs);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}

/* The table that devices fill: found by name, memory and copies, bounds. */
#include <check.h>

#include "backends/backend.h"

static void check_memory(const char *name) {
    const be_api *api = be_find(ts_str_of(name));
    ck_assert_ptr_nonnull(api);
    ck_assert_uint_eq(api->version, BE_VERSION);
    be_device *d;
    ck_assert_ptr_null(api->open(0, &d));
    be_buffer *a, *b;
    ck_assert_ptr_null(api->alloc(d, 16, &a));
    ck_assert_ptr_null(api->alloc(d, 16, &b));
    ck_assert_ptr_null(api->write(d, a, 4, "abcd", 4));
    ck_assert_ptr_null(api->copy(d, b, 8, a, 4, 4));
    char text[5] = {0};
    ck_assert_ptr_null(api->read(d, text, b, 8, 4));
    ck_assert_str_eq(text, "abcd");
    ts_status status = api->write(d, a, 14, "abcd", 4);
    ck_assert_int_eq(ts_status_code(status), TS_ERR_INTERNAL);
    ts_status_release(status);
    be_code *code;
    status = api->load_code(d, "x", 1, &code);
    ck_assert_int_eq(ts_status_code(status), TS_ERR_UNSUPPORTED);
    ts_status_release(status);
    ck_assert_ptr_null(api->synchronise(d));
    api->free(d, a);
    api->free(d, b);
    api->close(d);
}

START_TEST(null_and_cpu_hold_memory) {
    check_memory("null");
    check_memory("cpu");
}
END_TEST

START_TEST(names_are_known_or_not) {
    ck_assert_ptr_nonnull(be_find(TS_STR("cuda")));
    ck_assert_ptr_nonnull(be_find(TS_STR("opencl")));
    ck_assert_ptr_null(be_find(TS_STR("abacus")));
}
END_TEST

/* A missing driver is an error with its name, never a crash. */
START_TEST(cuda_is_there_or_says_what_is_missing) {
    be_device *d;
    ts_status status = be_find(TS_STR("cuda"))->open(0, &d);
    if (status) {
        ck_assert_int_eq(ts_status_code(status), TS_ERR_UNSUPPORTED);
        ts_status_release(status);
    } else {
        be_find(TS_STR("cuda"))->close(d);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("backends");
    TCase *cases = tcase_create("table");
    suite_add_tcase(suite, cases);
    tcase_add_test(cases, null_and_cpu_hold_memory);
    tcase_add_test(cases, names_are_known_or_not);
    tcase_add_test(cases, cuda_is_there_or_says_what_is_missing);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

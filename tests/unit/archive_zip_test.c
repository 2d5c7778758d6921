/* tests/unit/archive_zip_test.c - the zip reader: what it reads and what it refuses. */
#include "frontend/archive/zip.h"
#include "tests/unit/archive_support.h"

static ts_status open_bytes(ts_str s, fe_zip **out) {
    return fe_zip_open(test_arena, (const unsigned char *)s.data, s.length, false, out);
}

START_TEST(reads_stored_and_deflated) {
    zip_maker z = {0};
    char text[5000];
    memset(text, 'a', sizeof text);
    zip_add(&z, "top/data.pkl", "hello", 5);
    zip_add_lying(&z, "top/code.py", text, sizeof text,
                  (zip_lies){.deflate = true, .descriptor = true});
    zip_add(&z, "top/empty", "", 0);
    ts_str bytes = zip_end(&z), got;
    fe_zip *zip = NULL;
    succeeds(open_bytes(bytes, &zip));
    ck_assert_uint_eq(zip->count, 3);
    succeeds(fe_zip_read(zip, test_arena, fe_zip_find(zip, TS_STR("top/data.pkl")), 99, &got));
    ck_assert(ts_str_is(got, "hello"));
    ck_assert_uint_eq(((uintptr_t)got.data - (uintptr_t)bytes.data) % 64, 0);
    succeeds(fe_zip_read(zip, test_arena, fe_zip_find(zip, TS_STR("top/code.py")), 5000, &got));
    ck_assert_uint_eq(got.length, 5000);
    ck_assert_mem_eq(got.data, text, 5000);
    refused(fe_zip_read(zip, test_arena, fe_zip_find(zip, TS_STR("top/code.py")), 4999, &got),
            "at most 4999");
    ck_assert_ptr_null(fe_zip_find(zip, TS_STR("top/other")));
    zip_free(&z);
}
END_TEST

START_TEST(refuses_every_prefix) {
    zip_maker z = {0};
    zip_add(&z, "a/data.pkl", "hello", 5);
    zip_add_lying(&z, "a/x", "some text", 9, (zip_lies){.deflate = true});
    ts_str bytes = zip_end(&z);
    fe_zip *zip = NULL;
    for (size_t n = 0; n < bytes.length; n++) {
        /* A copy of the exact size, so that a sanitizer sees a read beyond it. */
        char *copy = malloc(n + 1);
        memcpy(copy, bytes.data, n);
        ts_status status = open_bytes((ts_str){copy, n}, &zip);
        ck_assert_ptr_nonnull(status);
        ts_status_release(status);
        free(copy);
    }
    zip_free(&z);
}
END_TEST

static void lie(zip_lies lies, const char *part) {
    zip_maker z = {0};
    zip_add_lying(&z, "a/data.pkl", "hello hello hello", 17, lies);
    ts_str bytes = zip_end(&z), got;
    fe_zip *zip = NULL;
    ts_status status = open_bytes(bytes, &zip);
    if (!status)
        status = fe_zip_read(zip, test_arena, &zip->members[0], 1000, &got);
    refused(status, part);
    zip_free(&z);
}

START_TEST(refuses_lies) {
    lie((zip_lies){.crc_xor = 1}, "CRC 0x");
    lie((zip_lies){.crc_xor = 1, .deflate = true}, "CRC 0x");
    lie((zip_lies){.local_name = "b/data.pkl"}, "different members");
    lie((zip_lies){.bytes_more = 1}, "two sizes");
    lie((zip_lies){.bytes_more = 1, .deflate = true}, "promised 18 bytes");
    lie((zip_lies){.bytes_more = -1, .deflate = true}, "promised 16 bytes");
    lie((zip_lies){.bytes_more = 1 << 30, .deflate = true}, "more than its data can");
}
END_TEST

static void name(const char *text, const char *part) {
    zip_maker z = {0};
    zip_add(&z, text, "hello", 5);
    fe_zip *zip = NULL;
    refused(open_bytes(zip_end(&z), &zip), part);
    zip_free(&z);
}

START_TEST(refuses_names) {
    name("/etc/passwd", "absolute");
    name("a/../b", "'..'");
    name("a//b", "empty");
    name("a\\b", "backslash");
    name("C:x", "drive");
    name("a\001b", "control");
    name("a\xff", "UTF-8");
}
END_TEST

START_TEST(refuses_doubles_and_tails) {
    zip_maker z = {0};
    fe_zip *zip = NULL;
    zip_add(&z, "a", "1", 1);
    zip_add(&z, "a", "2", 1);
    refused(open_bytes(zip_end(&z), &zip), "two members");
    zip_free(&z);
    z = (zip_maker){0};
    zip_add(&z, "a", "1", 1);
    (void)zip_end(&z);
    ts_buffer_char(&z.file, 'x');
    refused(open_bytes((ts_str){z.file.data, z.file.length}, &zip), "end record missing");
    zip_free(&z);
}
END_TEST

START_TEST(survives_flipped_bytes) {
    zip_maker z = {0};
    zip_add(&z, "a/data.pkl", "hello", 5);
    zip_add_lying(&z, "a/x", "some text", 9, (zip_lies){.deflate = true});
    ts_str bytes = zip_end(&z), got;
    for (size_t i = 0; i < bytes.length; i++)
        for (int bit = 0; bit < 8; bit++) {
            z.file.data[i] = (char)(z.file.data[i] ^ 1 << bit);
            fe_zip *zip = NULL;
            ts_status status = open_bytes(bytes, &zip);
            for (size_t k = 0; !status && k < zip->count; k++)
                status = fe_zip_read(zip, test_arena, &zip->members[k], 1 << 20, &got);
            ts_status_release(status); /* refused or not: no crash */
            z.file.data[i] = (char)(z.file.data[i] ^ 1 << bit);
        }
    zip_free(&z);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("archive_zip");
    TCase *tests = tcase_create("zip");
    tcase_add_checked_fixture(tests, open_arena, close_arena);
    tcase_add_test(tests, reads_stored_and_deflated);
    tcase_add_test(tests, refuses_every_prefix);
    tcase_add_test(tests, refuses_lies);
    tcase_add_test(tests, refuses_names);
    tcase_add_test(tests, refuses_doubles_and_tails);
    tcase_add_test(tests, survives_flipped_bytes);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}

/* tests/unit/archive_pickle_test.c - the pickle machine: values, sharing, and refusals. */
#include "frontend/archive/pickle.h"
#include "tests/unit/archive_support.h"

#define BYTES(literal) ((ts_str){literal, sizeof(literal) - 1})

static fe_pickle_node *read_ok(ts_str bytes) {
    fe_pickle_node *root = NULL;
    succeeds(fe_pickle_read(test_arena, bytes, FE_PICKLE_SCRIPT, NULL, &root));
    return root;
}

static void read_bad(ts_str bytes, const char *part) {
    fe_pickle_node *root = NULL;
    /* A copy of the exact size, so that a sanitizer sees a read beyond it. */
    char *copy = malloc(bytes.length + 1);
    memcpy(copy, bytes.data, bytes.length);
    refused(fe_pickle_read(test_arena, (ts_str){copy, bytes.length}, FE_PICKLE_SCRIPT, NULL, &root),
            part);
    free(copy);
}

START_TEST(reads_values) {
    fe_pickle_node *root = read_ok(BYTES("\x80\x02(K\x05J\xff\xff\xff\xffM\x34\x12\x88N"
                                         "\x8a\x02\x00\xff"
                                         "G?\xf8\0\0\0\0\0\0X\x02\0\0\0hit."));
    ck_assert_int_eq(root->kind, FE_PICKLE_TUPLE);
    fe_pickle_node **item = root->as.list.items;
    ck_assert_uint_eq(root->as.list.count, 8);
    ck_assert_int_eq(item[0]->as.integer, 5);
    ck_assert_int_eq(item[1]->as.integer, -1);
    ck_assert_int_eq(item[2]->as.integer, 0x1234);
    ck_assert_int_eq(item[3]->kind, FE_PICKLE_BOOL);
    ck_assert_int_eq(item[4]->kind, FE_PICKLE_NONE);
    ck_assert_int_eq(item[5]->as.integer, -256);
    ck_assert_double_eq(item[6]->as.number, 1.5);
    ck_assert(ts_str_is(item[7]->as.text, "hi"));
    ck_assert_uint_eq(root->depth, 2);
}
END_TEST

START_TEST(keeps_sharing) {
    fe_pickle_node *root = read_ok(BYTES("\x80\x02]q\x00h\x00\x86."));
    ck_assert_ptr_eq(root->as.list.items[0], root->as.list.items[1]);
    root = read_ok(BYTES("\x80\x02}q\x01(X\x01\0\0\0aK\x01X\x01\0\0\0bK\x02u."));
    ck_assert_int_eq(root->kind, FE_PICKLE_DICT);
    ck_assert_uint_eq(root->as.list.count, 4);
}
END_TEST

START_TEST(refuses_globals) {
    read_bad(BYTES("\x80\x02"
                   "cos\nsystem\nX\x02\0\0\0ls\x85R."),
             "offset 2: forbidden global os.system");
    read_bad(BYTES("\x80\x04\x8c\x02os\x8c\x06system\x93."), "forbidden global os.system");
    read_bad(BYTES("\x80\x02"
                   "c__torch__\nM\n."
                   "x"),
             "bytes after the end");
    read_bad(BYTES("\x80\x02"
                   "ctorch._utils\n_rebuild_tensor_v2"),
             "no end");
}
END_TEST

START_TEST(refuses_nonsense) {
    read_bad(BYTES(""), "without STOP");
    read_bad(BYTES("."), "not a pickle");
    read_bad(BYTES("\x80\x06N."), "protocol 6");
    read_bad(BYTES("\x80\x02" "C\x01x."), "opcode 0x43");
    read_bad(BYTES("\x80\x02NN."), "2 values are left");
    read_bad(BYTES("\x80\x02h\x07."), "never written");
    read_bad(BYTES("\x80\x02Nr\xff\xff\xff\xff."), "memo index");
    read_bad(BYTES("\x80\x02X\xff\xff\xff\x7f"
                   "a."),
             "are left");
    read_bad(BYTES("\x80\x02X\x01\0\0\0\xff."), "UTF-8");
    read_bad(BYTES("\x80\x02t."), "no mark");
    read_bad(BYTES("\x80\x02(K\x01R."), "the stack is empty");
    read_bad(BYTES("\x80\x02]q\x00h\x00"
                   "a."),
             "contains itself");
    read_bad(BYTES("\x80\x02I5\n."), "opcode 0x49");
}
END_TEST

START_TEST(limits_depth) {
    for (size_t depth = FE_PICKLE_MAX_DEPTH; depth <= FE_PICKLE_MAX_DEPTH + 1; depth++) {
        ts_buffer b = {0};
        ts_buffer_text(&b, "\x80\x02N");
        for (size_t i = 1; i < depth; i++)
            ts_buffer_char(&b, (char)0x85);
        ts_buffer_char(&b, '.');
        if (depth == FE_PICKLE_MAX_DEPTH)
            ck_assert_uint_eq(read_ok((ts_str){b.data, b.length})->depth, depth);
        else
            read_bad((ts_str){b.data, b.length}, "nested more than 1000 deep");
        ts_buffer_deinit(&b);
    }
}
END_TEST

START_TEST(shared_doubling_is_linear) {
    ts_buffer b = {0};
    ts_buffer_text(&b, "\x80\x02N");
    for (int i = 0; i < 200; i++) /* x = (x, x) */
        ts_buffer_append(&b, "q\x00h\x00\x86", 5);
    ts_buffer_char(&b, '.');
    ck_assert_uint_eq(read_ok((ts_str){b.data, b.length})->depth, 201);
    ts_buffer_deinit(&b);
}
END_TEST

START_TEST(refuses_every_prefix) {
    static const char whole[] = "\x80\x02"
                                "c__torch__\nM\nq\x00)\x81}(X\x01\0\0\0aK\x01ub.";
    for (size_t n = 0; n + 1 < sizeof whole; n++) {
        if (n + 1 == sizeof whole - 1)
            (void)read_ok((ts_str){whole, sizeof whole - 1});
        else
            read_bad((ts_str){whole, n}, "");
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("archive_pickle");
    TCase *tests = tcase_create("pickle");
    tcase_add_checked_fixture(tests, open_arena, close_arena);
    tcase_add_test(tests, reads_values);
    tcase_add_test(tests, keeps_sharing);
    tcase_add_test(tests, refuses_globals);
    tcase_add_test(tests, refuses_nonsense);
    tcase_add_test(tests, limits_depth);
    tcase_add_test(tests, shared_doubling_is_linear);
    tcase_add_test(tests, refuses_every_prefix);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}

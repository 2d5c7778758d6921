/* tests/unit/archive_weights_test.c - safetensors round trip, its rules, and state dicts. */
#include "frontend/archive/archive.h"
#include "frontend/safetensors/safetensors.h"
#include "tests/unit/archive_support.h"

#include <unistd.h>

static void check_header(const char *header, size_t data_bytes, const char *part) {
    ts_buffer b = {0};
    put(&b, strlen(header), 8);
    ts_buffer_text(&b, header);
    for (size_t i = 0; i < data_bytes; i++)
        ts_buffer_char(&b, (char)i);
    safetensors_file file;
    ts_status status = safetensors_parse((ts_str){b.data, b.length}, &file);
    if (part)
        refused(status, part);
    else
        succeeds(status);
    safetensors_deinit(&file);
    ts_buffer_deinit(&b);
}

START_TEST(follows_the_rules) {
#define A "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"
    check_header(A "}", 8, NULL);
    check_header(A ",\"__metadata__\":{\"k\":\"v\"}}   ", 8, NULL);
    check_header(A ",\"b\":{\"dtype\":\"U8\",\"shape\":[0,3],\"data_offsets\":[8,8]}}", 8, NULL);
    check_header(A "}", 9, "bytes after the last");
    check_header(A "}", 7, "expected 0 <= begin");
    check_header(A ",\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[7,8]}}", 8,
                 "hole or an overlap");
    check_header(A ",\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[9,10]}}", 10,
                 "hole or an overlap");
    check_header(A ",\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[8,9]}}", 9,
                 "duplicate");
    check_header(A ",\"__metadata__\":{\"k\":1}}", 8, "expected a string");
    check_header(" {}", 0, "does not start with");
    check_header("{\"a\":{\"dtype\":\"F33\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, "not known");
    check_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],"
                 "\"data_offsets\":[0,0]}}", 0, "64 bits");
    char deep[600];
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"a\":", 5);
    deep[sizeof deep - 1] = 0;
    check_header(deep, 0, "nested too deeply");
}
END_TEST

START_TEST(round_trip) {
    int64_t sizes[2] = {2, 3};
    fe_weight items[2] = {{TS_STR("byte \"x\""), NULL}, {TS_STR("w"), NULL}};
    succeeds(rt_tensor_make_zeroed(RT_uint8, NULL, 0, &items[0].tensor));
    succeeds(rt_tensor_make(RT_float32, sizes, 2, &items[1].tensor));
    for (int i = 0; i < 6; i++)
        ((float *)items[1].tensor->data)[i] = (float)i / 2;
    char path[256];
    write_temporary(path, sizeof path, TS_STR(""));
    succeeds(fe_safetensors_write(test_arena, ts_str_of(path), items, 2));
    fe_weights w;
    succeeds(fe_weights_load(test_arena, ts_str_of(path), false, &w));
    unlink(path);
    ck_assert_uint_eq(w.count, 2);
    const fe_weight *found = fe_weights_find(&w, TS_STR("w"));
    ck_assert_ptr_nonnull(found);
    ck_assert_mem_eq(found->tensor->data, items[1].tensor->data, 24);
    ck_assert_int_eq(found->tensor->sizes[1], 3);
    ck_assert_ptr_nonnull(fe_weights_find(&w, TS_STR("byte \"x\"")));
    ck_assert_ptr_null(fe_weights_find(&w, TS_STR("x")));
    fe_weights_deinit(&w);
    rt_tensor_release(items[0].tensor);
    rt_tensor_release(items[1].tensor);
}
END_TEST

/* OrderedDict([("w", tensor of 2 floats at offset 1 of 3)]) as torch.save writes it. */
static const char state[] = "\x80\x02"
                            "ccollections\nOrderedDict\n)RX\x01\0\0\0w"
                            "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storage"
                            "ctorch\nFloatStorage\nX\x01\0\0\0"
                            "0X\x03\0\0\0cpuK\x03tQK\x01K\x02\x85K\x01\x85\x89"
                            "ccollections\nOrderedDict\n)RtRs.";

START_TEST(state_dict_zip) {
    static const float data[3] = {1, 2, 3};
    zip_maker z = {0};
    zip_add(&z, "archive/data.pkl", state, sizeof state - 1);
    zip_add(&z, "archive/data/0", data, sizeof data);
    char path[256];
    write_temporary(path, sizeof path, zip_end(&z));
    zip_free(&z);
    fe_weights w;
    succeeds(fe_weights_load(test_arena, ts_str_of(path), false, &w));
    unlink(path);
    ck_assert_uint_eq(w.count, 1);
    ck_assert_float_eq(((float *)w.items[0].tensor->data)[1], 3);
    fe_weights_deinit(&w);
}
END_TEST

START_TEST(state_dict_legacy) {
    ts_buffer b = {0};
    ts_buffer_append(&b, "\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", 15);
    ts_buffer_append(&b, "\x80\x02M\xe9\x03.\x80\x02}.", 10);
    ts_buffer_append(&b, state, sizeof state - 1);
    ts_buffer_append(&b, "\x80\x02](X\x01\0\0\0000e.", 12);
    put(&b, 3, 8);
    static const float data[3] = {1, 2, 3};
    ts_buffer_append(&b, data, sizeof data);
    /* All of it is read; without its last byte it is refused. */
    for (size_t cut = 0; cut < 2; cut++) {
        char path[256];
        write_temporary(path, sizeof path, (ts_str){b.data, b.length - cut});
        fe_weights w;
        ts_status status = fe_weights_load(test_arena, ts_str_of(path), false, &w);
        unlink(path);
        if (cut) {
            refused(status, "cut short");
        } else {
            succeeds(status);
            ck_assert_float_eq(((float *)w.items[0].tensor->data)[0], 2);
        }
        fe_weights_deinit(&w);
    }
    ts_buffer_deinit(&b);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("archive_weights");
    TCase *tests = tcase_create("weights");
    tcase_add_checked_fixture(tests, open_arena, close_arena);
    tcase_add_test(tests, follows_the_rules);
    tcase_add_test(tests, round_trip);
    tcase_add_test(tests, state_dict_zip);
    tcase_add_test(tests, state_dict_legacy);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}

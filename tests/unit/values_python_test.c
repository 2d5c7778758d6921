/* tests/unit/values_python_test.c - Python's meaning of boxed values and tensors' text. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/values/tensor.h"

static void expect_repr(rt_value owned, const char *text) {
    rt_value out;
    ck_assert_ptr_null(rt_to_repr(owned, &out));
    ck_assert_str_eq(out.as.str->data, text);
    rt_release(out);
    rt_release(owned);
}

static rt_value str(const char *text) {
    rt_value v;
    ck_assert_ptr_null(rt_str_make(ts_str_of(text), &v));
    return v;
}

static rt_value tensor(rt_dtype dtype, int rank, const int64_t *sizes, const double *values) {
    rt_tensor *t;
    ck_assert_ptr_null(rt_tensor_make(dtype, sizes, rank, &t));
    for (int64_t i = 0; i < t->element_count; i++)
        rt_store_double(dtype, (char *)t->data + (size_t)i * rt_dtype_size(dtype), values[i]);
    return rt_from_tensor(t);
}

START_TEST(prints_numbers) {
    expect_repr(rt_float(0.1), "0.1");
    expect_repr(rt_float(1e-7), "1e-07");
    expect_repr(rt_float(1e16), "1e+16");
    expect_repr(rt_float(123456789012345.0), "123456789012345.0");
    expect_repr(rt_float(1.0 / 3), "0.3333333333333333");
    expect_repr(rt_float(5e-324), "5e-324");
    expect_repr(rt_float(-0.0), "-0.0");
    expect_repr(rt_float(0.0001), "0.0001");
    expect_repr(rt_float((double)NAN), "nan");
    expect_repr(rt_float(-(double)INFINITY), "-inf");
    rt_value c;
    ck_assert_ptr_null(rt_complex_make(1, -2.5, &c));
    expect_repr(c, "(1-2.5j)");
    ck_assert_ptr_null(rt_complex_make(0, 2, &c));
    expect_repr(c, "2j");
}
END_TEST

START_TEST(prints_containers) {
    rt_value list, tuple, dict, key = str("it's"), text = str("a\n\"'");
    ck_assert_ptr_null(rt_list_make(0, &list));
    ck_assert_ptr_null(rt_list_append(list.as.list, rt_int(1)));
    ck_assert_ptr_null(rt_list_append(list.as.list, rt_none()));
    ck_assert_ptr_null(rt_list_append(list.as.list, text));
    ck_assert_ptr_null(rt_tuple_make(1, &tuple));
    tuple.as.tuple->items[0] = list;
    ck_assert_ptr_null(rt_dict_make(&dict));
    ck_assert_ptr_null(rt_dict_set(dict.as.dict, key, tuple));
    ck_assert_ptr_null(rt_dict_set(dict.as.dict, rt_bool(true), rt_float(2)));
    rt_release(key);
    rt_release(text);
    rt_release(tuple);
    expect_repr(dict, "{\"it's\": ([1, None, 'a\\n\"\\''],), True: 2.0}");
}
END_TEST

START_TEST(prints_tensors) {
    expect_repr(tensor(RT_float32, 1, (int64_t[]){2}, (double[]){1, 2}), "tensor([1., 2.])");
    expect_repr(tensor(RT_float32, 1, (int64_t[]){3}, (double[]){1.5, -2, 0}),
                "tensor([ 1.5000, -2.0000,  0.0000])");
    expect_repr(tensor(RT_float64, 2, (int64_t[]){2, 1}, (double[]){1e-5, 1}),
                "tensor([[1.0000e-05],\n        [1.0000e+00]], dtype=torch.float64)");
    expect_repr(tensor(RT_int64, 0, NULL, (double[]){7}), "tensor(7)");
    expect_repr(tensor(RT_bool, 1, (int64_t[]){2}, (double[]){1, 0}), "tensor([ True, False])");
    expect_repr(tensor(RT_float32, 2, (int64_t[]){0, 3}, NULL), "tensor([], size=(0, 3))");
    expect_repr(tensor(RT_int32, 1, (int64_t[]){0}, NULL), "tensor([], dtype=torch.int32)");
    expect_repr(tensor(RT_float32, 1, (int64_t[]){2}, (double[]){(double)INFINITY, 3}),
                "tensor([inf, 3.])");
}
END_TEST

START_TEST(compares_and_hashes) {
    bool is_equal;
    int order;
    uint64_t a, b;
    ck_assert_ptr_null(rt_equal(rt_int(1), rt_float(1), &is_equal));
    ck_assert(is_equal);
    ck_assert_ptr_null(rt_hash(rt_int(1), &a));
    ck_assert_ptr_null(rt_hash(rt_float(1), &b));
    ck_assert(a == b);
    ck_assert_ptr_null(rt_compare(rt_int(INT64_MAX), rt_float(0x1p63), &order));
    ck_assert_int_lt(order, 0);
    rt_value list;
    ck_assert_ptr_null(rt_list_make(0, &list));
    ts_status status = rt_hash(list, &a);
    ck_assert_str_eq(ts_status_exception(status), "TypeError");
    ts_status_release(status);
    rt_release(list);
}
END_TEST

START_TEST(dict_survives_churn) {
    rt_value dict;
    ck_assert_ptr_null(rt_dict_make(&dict));
    for (int64_t i = 0; i < 1000; i++)
        ck_assert_ptr_null(rt_dict_set(dict.as.dict, rt_int(i), rt_int(i * i)));
    bool was_there;
    for (int64_t i = 0; i < 1000; i += 2)
        ck_assert_ptr_null(rt_dict_remove(dict.as.dict, rt_int(i), &was_there));
    for (int64_t i = 0; i < 1000; i++) {
        rt_dict_entry *e;
        ck_assert_ptr_null(rt_dict_find(dict.as.dict, rt_int(i), &e));
        ck_assert((e != NULL) == (i % 2 == 1));
    }
    ck_assert_uint_eq(dict.as.dict->live_count, 500);
    rt_release(dict);
}
END_TEST

START_TEST(deep_nesting_is_freed_and_refused) {
    rt_value v = rt_none();
    for (int i = 0; i < 200000; i++) {
        rt_value outer;
        ck_assert_ptr_null(rt_list_make(1, &outer));
        ck_assert_ptr_null(rt_list_append(outer.as.list, v));
        rt_release(v);
        v = outer;
    }
    rt_value out;
    ts_status status = rt_to_repr(v, &out);
    ck_assert_str_eq(ts_status_exception(status), "RecursionError");
    ts_status_release(status);
    rt_release(v);
}
END_TEST

START_TEST(copies_share_what_was_shared) {
    rt_tensor *base, *view;
    ck_assert_ptr_null(rt_tensor_make_zeroed(RT_float32, (int64_t[]){4}, 1, &base));
    ck_assert_ptr_null(rt_tensor_alias(base, 1, (int64_t[]){2}, (int64_t[]){1}, 1, &view));
    rt_value list, copy;
    ck_assert_ptr_null(rt_list_make(0, &list));
    ck_assert_ptr_null(rt_list_append(list.as.list, rt_from_tensor(base)));
    ck_assert_ptr_null(rt_list_append(list.as.list, rt_from_tensor(view)));
    ck_assert_ptr_null(rt_deep_copy(list, true, &copy));
    rt_tensor *a = copy.as.list->items[0].as.tensor, *b = copy.as.list->items[1].as.tensor;
    ck_assert_ptr_ne(a->storage, base->storage);
    ck_assert_ptr_eq(a->storage, b->storage);
    ck_assert_int_eq(rt_tensor_offset(b), 1);
    rt_tensor_release(base);
    rt_tensor_release(view);
    rt_release(list);
    rt_release(copy);
}
END_TEST

START_TEST(copies_convert_and_broadcast) {
    rt_value from = tensor(RT_int64, 1, (int64_t[]){3}, (double[]){-1, 300, 7});
    rt_tensor *to;
    ck_assert_ptr_null(rt_tensor_make(RT_uint8, (int64_t[]){2, 3}, 2, &to));
    ck_assert_ptr_null(rt_tensor_copy_into(to, from.as.tensor));
    const uint8_t *bytes = to->data;
    ck_assert_int_eq(bytes[3], 255);
    ck_assert_int_eq(bytes[4], 44);
    ck_assert_int_eq(bytes[5], 7);
    ts_status status = rt_tensor_copy_into(from.as.tensor, to);
    ck_assert_str_eq(ts_status_exception(status), "RuntimeError");
    ts_status_release(status);
    rt_tensor_release(to);
    rt_release(from);
}
END_TEST

START_TEST(halves_round_to_even) {
    ck_assert_uint_eq(rt_half_from_float(65519.0f), 0x7bff);
    ck_assert_uint_eq(rt_half_from_float(65520.0f), 0x7c00);
    ck_assert_uint_eq(rt_half_from_float(0x1p-24f), 1);
    ck_assert_uint_eq(rt_half_from_float(0x1p-25f), 0);
    for (uint32_t bits = 0; bits < 0x7c00; bits++)
        ck_assert_uint_eq(rt_half_from_float(rt_half_to_float((uint16_t)bits)), bits);
    ck_assert_uint_eq(rt_bfloat16_from_float(1.00390625f), 0x3f80);
    ck_assert_int_eq(rt_dtype_promote(RT_uint8, RT_int8), RT_int16);
    ck_assert_int_eq(rt_dtype_promote(RT_float16, RT_bfloat16), RT_float32);
    ck_assert_int_eq(rt_dtype_promote(RT_complex64, RT_float64), RT_complex128);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("values");
    TCase *tcase = tcase_create("python");
    tcase_add_test(tcase, prints_numbers);
    tcase_add_test(tcase, prints_containers);
    tcase_add_test(tcase, prints_tensors);
    tcase_add_test(tcase, compares_and_hashes);
    tcase_add_test(tcase, dict_survives_churn);
    tcase_add_test(tcase, deep_nesting_is_freed_and_refused);
    tcase_add_test(tcase, copies_share_what_was_shared);
    tcase_add_test(tcase, copies_convert_and_broadcast);
    tcase_add_test(tcase, halves_round_to_even);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

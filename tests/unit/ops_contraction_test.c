/* Products, convolutions, transforms and factorisations on small cases with known answers. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/ops.h"
#include "runtime/values/tensor.h"

/* A tensor of float64 that counts 1, 2, 3, ... */
static rt_value counting(const int64_t *sizes, int rank) {
    rt_tensor *t;
    ck_assert_ptr_null(rt_tensor_make(RT_float64, sizes, rank, &t));
    for (int64_t i = 0; i < t->element_count; i++)
        ((double *)t->data)[i] = (double)(i + 1);
    return rt_from_tensor(t);
}

static rt_value ints(const int64_t *items, size_t count) {
    rt_value v;
    ck_assert_ptr_null(rt_int_list_make(items, count, &v));
    return v;
}

/* Runs a row; the first result must hold the expected numbers. Releases the arguments. */
static void check_row(const char *name, rt_value *args, int arg_count, const double *expected,
                      int64_t count) {
    rt_value outs[4] = {rt_none(), rt_none(), rt_none(), rt_none()};
    rt_op op = rt_op_find(ts_str_of(name));
    ck_assert_msg(op != OP_COUNT, "no row %s", name);
    ts_status status = rt_op_get(op)->ref(NULL, args, outs);
    ck_assert_msg(!status, "%s: %s", name, ts_status_message(status));
    const rt_tensor *t = outs[0].as.tensor;
    ck_assert_int_eq(t->element_count, count);
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(fabs(((const double *)t->data)[i] - expected[i]) < 1e-9,
                      "%s[%d]: got %.12g, expected %.12g", name, (int)i,
                      ((const double *)t->data)[i], expected[i]);
    for (int i = 0; i < 4; i++)
        rt_release(outs[i]);
    for (int i = 0; i < arg_count; i++)
        rt_release(args[i]);
}

START_TEST(products) {
    int64_t a[] = {2, 3}, b[] = {3, 2};
    rt_value mm[] = {counting(a, 2), counting(b, 2)};
    check_row("mm", mm, 2, (double[]){22, 28, 49, 64}, 4);
    rt_value linear[] = {counting(a, 2), counting(a, 2), rt_none()};
    check_row("linear", linear, 3, (double[]){14, 32, 32, 77}, 4);
    /* a size of 1 may have any stride, here that of a transposed batch */
    rt_value whole = counting((int64_t[]){1, 2, 3}, 3);
    rt_tensor *turned;
    ck_assert_ptr_null(rt_tensor_alias(whole.as.tensor, 0, (int64_t[]){2, 1, 3}, (int64_t[]){3, 6, 1}, 3, &turned));
    rt_release(whole);
    rt_value rows[] = {rt_from_tensor(turned), counting(a, 2), rt_none()};
    check_row("linear", rows, 3, (double[]){14, 32, 32, 77}, 4);
    rt_value list, equation;
    ck_assert_ptr_null(rt_list_make(2, &list));
    for (int i = 0; i < 2; i++) {
        rt_value t = counting(a, 2);
        ck_assert_ptr_null(rt_list_append(list.as.list, t));
        rt_release(t);
    }
    ck_assert_ptr_null(rt_str_make(TS_STR("ij,kj->ki"), &equation));
    rt_value einsum[] = {equation, list, rt_none()};
    check_row("einsum", einsum, 3, (double[]){14, 32, 32, 77}, 4);
}
END_TEST

START_TEST(convolution) {
    int64_t x[] = {1, 1, 3, 3}, w[] = {1, 1, 2, 2}, one[] = {1, 1}, none[] = {0, 0};
    rt_value args[] = {counting(x, 4), counting(w, 4), rt_none(),    ints(one, 2),
                       ints(none, 2),  ints(one, 2),   rt_int(1)};
    check_row("conv2d", args, 7, (double[]){37, 47, 67, 77}, 4);
    rt_value turned[] = {counting(w, 4), counting(w, 4), rt_none(), ints(one, 2),
                         ints(none, 2),  ints(none, 2),  rt_int(1), ints(one, 2)};
    check_row("conv_transpose2d.input", turned, 8, (double[]){1, 4, 4, 6, 20, 16, 9, 24, 16}, 9);
    rt_value pool[] = {counting(x, 4), ints((int64_t[]){2, 2}, 2), ints(one, 2),
                       ints(none, 2),  ints(one, 2),               rt_bool(false)};
    check_row("max_pool2d", pool, 6, (double[]){5, 6, 8, 9}, 4);
}
END_TEST

START_TEST(factorisations) {
    rt_value spd = counting((int64_t[]){2, 2}, 2);
    double *m = spd.as.tensor->data;
    m[0] = 4, m[1] = m[2] = 2, m[3] = 3;
    rt_value det[] = {rt_retain(spd)};
    check_row("linalg_det", det, 1, (double[]){8}, 1);
    rt_value inv[] = {rt_retain(spd)};
    check_row("linalg_inv", inv, 1, (double[]){.375, -.25, -.25, .5}, 4);
    rt_value cholesky[] = {spd, rt_bool(false)};
    check_row("linalg_cholesky", cholesky, 2, (double[]){2, 0, 1, sqrt(2)}, 4);
    /* a prime length takes Bluestein's way: the mean comes back */
    rt_value x = counting((int64_t[]){37}, 1), norm;
    ck_assert_ptr_null(rt_str_make(TS_STR("backward"), &norm));
    rt_value rfft[] = {x, rt_none(), rt_int(-1), norm}, out[1];
    ck_assert_ptr_null(rt_op_get(rt_op_find(TS_STR("fft_rfft")))->ref(NULL, rfft, out));
    rt_value irfft[] = {out[0], rt_int(37), rt_int(-1), rt_none()};
    double expected[37];
    for (int i = 0; i < 37; i++)
        expected[i] = i + 1;
    check_row("fft_irfft", irfft, 1, expected, 37);
    rt_release(x);
    rt_release(norm);
}
END_TEST

START_TEST(hostile_arguments) {
    int64_t x[] = {1, 1, 3, 3};
    rt_value out;
    rt_value args[] = {counting(x, 4), counting(x, 4), rt_none(),
                       rt_int(0),      rt_int(0),      rt_int(1), rt_int(1)};
    ts_status status = rt_op_get(rt_op_find(TS_STR("conv2d")))->ref(NULL, args, &out);
    ck_assert_str_eq(ts_status_exception(status), "RuntimeError");
    ts_status_release(status);
    rt_value mm[] = {counting(x, 2), counting(x + 2, 2)};
    status = rt_op_get(rt_op_find(TS_STR("mm")))->ref(NULL, mm, &out);
    ck_assert_str_eq(ts_status_message(status),
                     "mat1 and mat2 shapes cannot be multiplied (1x1 and 3x3)");
    ts_status_release(status);
    rt_release(args[0]);
    rt_release(args[1]);
    rt_release(mm[0]);
    rt_release(mm[1]);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ops_contraction");
    TCase *c = tcase_create("rows");
    tcase_add_test(c, products);
    tcase_add_test(c, convolution);
    tcase_add_test(c, factorisations);
    tcase_add_test(c, hostile_arguments);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Random rows draw what torch draws after the same manual_seed (values recorded from torch). */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/generator.h"

static double first(const char *name, const rt_value *args, int at) {
    rt_value generator, out;
    ck_assert_ptr_null(rt_generator_make(0, &generator));
    rt_context context = {.generator = generator.as.generator};
    rt_op op = rt_op_find(ts_str_of(name));
    ck_assert(op != OP_COUNT);
    ck_assert_ptr_null(rt_op_get(op)->ref(&context, args, &out));
    rt_tensor *t = out.as.tensor;
    double v = rt_load_double((rt_dtype)t->dtype,
                              (char *)t->data + rt_dtype_size((rt_dtype)t->dtype) * (size_t)at);
    rt_release(out);
    rt_release(generator);
    return v;
}

START_TEST(draws) {
    rt_value size;
    int64_t n = 100;
    ck_assert_ptr_null(rt_int_list_make(&n, 1, &size));
    rt_value floats[5] = {size, rt_int(RT_float32)}, doubles[5] = {size, rt_int(RT_float64)};
    ck_assert(first("rand", floats, 0) == 0.49625658988952637);
    ck_assert(first("rand", floats, 1) == 0.7682217955589294);
    ck_assert(fabs(first("rand", doubles, 0) - 0.9700530018065531) < 1e-15);
    ck_assert(fabs(first("randn", floats, 0) - -1.1258398294448853) < 1e-6);
    rt_value ints[6] = {rt_int(1 << 28), size, rt_int(RT_int64)};
    ck_assert(first("randint", ints, 0) == 130329135);
    rt_release(size);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ops_random");
    TCase *c = tcase_create("draws");
    tcase_add_test(c, draws);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Vector functions of kernels in units of the last place against libm in double, at each CPU level
 * that this machine has: the bounds that emit_llvm_scalar.c states. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/codegen.h"
#include "passes/passes.h"
#include "runtime/tsrt.h"

enum { COUNT = 100003 }; /* odd: the last vector is masked */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double gelu(double x) { return 0.5 * x * erfc(-x / sqrt(2)); }
static double mish(double x) { return x * tanh(log1p(exp(x))); }

typedef struct function {
    const char *name;
    double (*reference)(double);
    double low, high; /* inputs */
    double bound;     /* ulp; negative: absolute, and relative from 1 on */
} function;

static const function functions[] = {
    {"exp", exp, -86.5, 89, 1.1},      {"log", log, 0, 1e38, 1.2},
    {"tanh", tanh, -20, 20, 2},        {"erf", erf, -6, 6, 1.2},
    {"sigmoid", sigmoid, -86, 100, 3}, {"sin", sin, -1e5, 1e5, 1.6},
    {"cos", cos, -1e5, 1e5, 1.6},      {"expm1", expm1, -80, 88, 4},
    {"log1p", log1p, -1, 1e37, 4},     {"gelu", gelu, -15, 15, -1e-7},
    {"mish", mish, -80, 80, 6},
};

static double error_of(float got, double wanted, double bound) {
    if (bound < 0 && !isnan(wanted) && !isinf(wanted))
        return fabs((double)got - wanted) / (fabs(wanted) > 1 ? fabs(wanted) : 1);
    float rounded = (float)wanted;
    if (isnan(wanted))
        return isnan(got) ? 0 : 1e9;
    if (isinf(rounded))
        return got == rounded ? 0 : 1e9;
    int exponent = wanted == 0 ? -126 : ilogb(wanted);
    return fabs((double)got - wanted) / ldexp(1, (exponent < -126 ? -126 : exponent) - 23);
}

static tsrt_model *compile(const char *name, const char *level_name) {
    char text[256], path[] = "/tmp/tsc_math_test_XXXXXX";
    snprintf(text, sizeof text,
             "func @forward(%%x: float32[%d]) -> float32[%d] entry {\n"
             "  %%y = %s(%%x) : float32[%d]\n  return %%y\n}\n", COUNT, COUNT, name, COUNT);
    ts_arena *arena = ts_arena_create(0), *scratch = ts_arena_create(0);
    ir_module *m = ir_module_make(arena);
    ck_assert_ptr_null(ir_parse_module(m, TS_STR("t.tsir"), ts_str_of(text), NULL, NULL));
    const cg_target_info *level = cg_target_find(ts_str_of(level_name));
    pass_target target = {.vector_bytes = level->vector_bytes, .opt_level = 2};
    pass_counter counters[16];
    pass_context ctx = {.scratch = scratch, .target = &target, .counters = counters};
    ck_assert_ptr_null(pass_find(TS_STR("fuse"))->run(&ctx, m));
    ck_assert_int_eq(m->functions->body->first->opcode, IR_OP_KERNEL);
    int fd = mkstemp(path);
    ck_assert(fd >= 0);
    close(fd);
    cg_options options = {.levels = &level, .level_count = 1, .opt_level = 2, .emit = CG_EMIT_TSM,
                          .output_path = ts_str_of(path), .source_name = TS_STR("t.tsir")};
    ts_status status = cg_compile(m, arena, &options);
    ck_assert_msg(!status, "%s", ts_status_message(status));
    tsrt_model *model;
    ck_assert_ptr_null(tsrt_model_load(path, NULL, &model));
    unlink(path);
    ir_module_deinit(m);
    ts_arena_release(scratch);
    ts_arena_release(arena);
    return model;
}

static void fill(const function *f, float *x, int pass) {
    uint64_t state = 88172645463325252u + (uint64_t)pass;
    for (int i = 0; i < COUNT; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        double unit = (double)(state >> 11) * 0x1p-53;
        double scale = pass == 0 ? 1 : pass == 1 ? 0.05 : 1e-4; /* all, near zero, nearer */
        x[i] = (float)((f->low + (f->high - f->low) * unit) * scale);
    }
    x[0] = NAN;
    x[1] = 0.0f;
    x[2] = -0.0f;
    bool periodic = strcmp(f->name, "sin") == 0 || strcmp(f->name, "cos") == 0;
    x[3] = periodic ? 1.0f : INFINITY;
    x[4] = periodic ? 2.0f : -INFINITY;
}

static void check_level(const char *level) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const function *f = &functions[i];
        tsrt_model *model = compile(f->name, level);
        tsrt_session *session;
        ck_assert_ptr_null(tsrt_session_create(model, NULL, &session));
        int64_t sizes[1] = {COUNT};
        tsrt_value *input, *output;
        ck_assert_ptr_null(tsrt_value_make_tensor(TSRT_FLOAT32, sizes, 1, &input));
        tsrt_tensor_view in = {.size = sizeof in}, out = {.size = sizeof out};
        ck_assert_ptr_null(tsrt_value_view_tensor(input, &in));
        for (int pass = 0; pass < 3; pass++) {
            fill(f, in.data, pass);
            ck_assert_ptr_null(tsrt_run(session, 0, &input, 1, NULL, &output));
            ck_assert_ptr_null(tsrt_value_view_tensor(output, &out));
            for (int j = 0; j < COUNT; j++) {
                float x = ((const float *)in.data)[j], y = ((const float *)out.data)[j];
                double error = error_of(y, f->reference((double)x), f->bound);
                ck_assert_msg(error <= fabs(f->bound), "%s at %s: %.9g gives %.9g, %.3g off", f->name,
                              level, (double)x, (double)y, error);
            }
            tsrt_value_release(output);
        }
        tsrt_value_release(input);
        tsrt_session_release(session);
        tsrt_model_release(model);
    }
}

START_TEST(avx2) {
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        check_level("x86-64-v3");
}
END_TEST

START_TEST(avx512) {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        check_level("x86-64-v4");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("kernel math");
    TCase *tc = tcase_create("ulp");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, avx2);
    tcase_add_test(tc, avx512);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

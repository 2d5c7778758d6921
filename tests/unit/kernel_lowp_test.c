/* Products with rounded weights, at each CPU level that this machine has, against float32 with the
 * reference kernels. Two kinds of weights:
 *   exact   integers that the format holds without loss: results must be those of float32
 *   random  the error over all results, relative to them, must keep the bound of docs/kernels.md */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/codegen.h"
#include "codegen/weight_formats.h"
#include "passes/passes.h"
#include "runtime/tsrt.h"

typedef struct precision {
    const char *name;
    cg_weights_dtype weights;
    bool computes_bf16;
    double bound; /* of random weights */
} precision;

static const precision precisions[] = {{"weights bf16", CG_WEIGHTS_BF16, false, 3e-3},
                                       {"weights int8", CG_WEIGHTS_INT8, false, 1e-2},
                                       {"weights int4", CG_WEIGHTS_INT4, false, 0.12},
                                       {"bf16", CG_WEIGHTS_FLOAT32, true, 4e-3},
                                       {"bf16, weights int8", CG_WEIGHTS_INT8, true, 1e-2}};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

static bool is_exact; /* of weights and inputs */
static bool has_infinity; /* the input's element [0, 0, 4, 10] */
static uint64_t random_state;
static double random_unit(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 11) * 0x1p-53;
}

/* "w_37_20" is float32[37,20], sums along what follows the first dim; "t_20_37" sums along the first
 * one. Exact: -8 .. 7 with a -8 in each group of 32 (so that int4 has steps of 1). */
static ts_status find_weight(void *user, ts_str name, rt_value *out) {
    const precision *p = user;
    char text[256];
    snprintf(text, sizeof text, "%.*s", (int)name.length, name.data);
    int64_t sizes[8];
    int rank = 0;
    for (char *at = strchr(text, '_'); at && rank < 8; at = strchr(at + 1, '_'))
        sizes[rank++] = strtoll(at + 1, NULL, 10);
    rt_tensor *t;
    TS_TRY(rt_tensor_make(RT_float32, sizes, rank, &t));
    int64_t rest = sizes[0] ? t->element_count / sizes[0] : 1;
    uint64_t saved = random_state;
    random_state = 88172645463325252u;
    for (int64_t i = 0; i < t->element_count; i++) {
        int64_t k = text[0] == 't' ? i / rest : i % rest;
        double x = random_unit();
        if (is_exact)
            x = p->weights == CG_WEIGHTS_INT8 && k == 0 ? 127
                : k % 32 == 0                           ? -8
                                                        : floor(x * 16) - 8;
        else
            x -= 0.5;
        ((float *)t->data)[i] = (float)x;
    }
    random_state = saved;
    *out = rt_from_tensor(t);
    return NULL;
}

static void fuse(ir_module *m, const cg_target_info *level) {
    static const char *const names[] = {"expand_composites", "fuse", "assign_layout",
                                        "plan_memory"};
    ts_arena *scratch = ts_arena_create(0);
    pass_target target = {.vector_bytes = level->vector_bytes, .opt_level = 2};
    pass_counter counters[16];
    pass_context ctx = {.scratch = scratch, .target = &target, .counters = counters};
    for (size_t i = 0; i < 4; i++) {
        ctx.counter_count = 0;
        ck_assert_ptr_null(pass_find(ts_str_of(names[i]))->run(&ctx, m));
    }
    ts_arena_release(scratch);
}

static tsrt_value *input(const ir_type *t, int64_t letter) {
    tsrt_value *v = NULL;
    int64_t sizes[8], count = 1;
    for (int d = 0; d < t->rank; d++) {
        sizes[d] = rt_dim_is_constant(t->dims[d]) ? t->dims[d] : letter;
        count *= sizes[d];
    }
    ck_assert_ptr_null(tsrt_value_make_tensor(TSRT_FLOAT32, sizes, t->rank, &v));
    tsrt_tensor_view view = {.size = sizeof view};
    ck_assert_ptr_null(tsrt_value_view_tensor(v, &view));
    for (int64_t i = 0; i < count; i++)
        ((float *)view.data)[i] = (float)(is_exact ? floor(random_unit() * 33) - 16
                                                   : random_unit() * 2 - 1);
    if (has_infinity)
        ((float *)view.data)[4 * 33 + 10] = INFINITY;
    return v;
}

/* Compiles and runs; *out_bytes is the file's size, *out_error the worst of the report. */
static tsrt_value *run_text(const char *text, const char *level_name, const precision *p,
                            bool is_fused, int64_t letter, long *out_bytes, double *out_error) {
    ts_arena *arena = ts_arena_create(0);
    ir_module *m = ir_module_make(arena);
    union {
        const precision *in;
        void *out;
    } user = {.in = p};
    ts_status status = ir_parse_module(m, TS_STR("t.tsir"), ts_str_of(text), find_weight, user.out);
    ck_assert_msg(!status, "%d: %s", ts_status_place(status).line, ts_status_message(status));
    const cg_target_info *level = cg_target_find(ts_str_of(level_name));
    ck_assert_ptr_nonnull(level);
    if (is_fused)
        fuse(m, level);
    char path[] = "/tmp/tsc_lowp_test_XXXXXX";
    int fd = mkstemp(path);
    ck_assert(fd >= 0);
    close(fd);
    cg_weight_report report = {0};
    cg_options options = {.levels = &level, .level_count = 1, .opt_level = 2, .emit = CG_EMIT_TSM,
                          .output_path = ts_str_of(path), .source_name = TS_STR("t.tsir"),
                          .weights_dtype = p->weights, .computes_bf16 = p->computes_bf16,
                          .report = &report};
    status = cg_compile(m, arena, &options);
    ck_assert_msg(!status, "%s", ts_status_message(status));
    *out_error = 0;
    for (size_t i = 0; i < report.count; i++)
        *out_error = fmax(*out_error, report.rows[i].error);
    tsrt_model *model;
    tsrt_session *session;
    tsrt_status *s = tsrt_model_load(path, NULL, &model);
    ck_assert_msg(!s, "%s", tsrt_status_message(s));
    unlink(path);
    tsrt_model_info info = {.size = sizeof info};
    ck_assert_ptr_null(tsrt_model_get_info(model, &info));
    *out_bytes = (long)info.weight_bytes;
    ck_assert_ptr_null(tsrt_session_create(model, NULL, &session));
    random_state = 42;
    tsrt_value *arg = input(m->functions->body->parameters[0]->type, letter), *out = NULL;
    s = tsrt_run(session, 0, &arg, 1, NULL, &out);
    ck_assert_msg(!s, "%s", tsrt_status_message(s));
    tsrt_value_release(arg);
    tsrt_session_release(session);
    tsrt_model_release(model);
    ir_module_deinit(m);
    ts_arena_release(arena);
    return out;
}

/* |a - b| / |a| over all elements. */
static double distance(const tsrt_value *a, const tsrt_value *b) {
    tsrt_value *x, *y;
    ck_assert_ptr_null(tsrt_value_contiguous(a, &x));
    ck_assert_ptr_null(tsrt_value_contiguous(b, &y));
    tsrt_tensor_view u = {.size = sizeof u}, v = {.size = sizeof v};
    ck_assert_ptr_null(tsrt_value_view_tensor(x, &u));
    ck_assert_ptr_null(tsrt_value_view_tensor(y, &v));
    ck_assert_int_eq(u.element_count, v.element_count);
    double square = 0, total = 0;
    for (int64_t i = 0; i < u.element_count; i++) {
        double p = ((const float *)u.data)[i], q = ((const float *)v.data)[i];
        square += (p - q) * (p - q);
        total += p * p;
    }
    tsrt_value_release(x);
    tsrt_value_release(y);
    return sqrt(square / total);
}

/* is_chain: values between products are no small integers, which bfloat16 rounds. */
static void check_text(const char *text, int64_t letter, bool is_chain) {
    static const char *const levels[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4-bf16"};
    bool has[4] = {__builtin_cpu_supports("sse4.2"), __builtin_cpu_supports("avx2"),
                   __builtin_cpu_supports("avx512vl"), __builtin_cpu_supports("avx512bf16")};
    for (int exact = 0; exact < 2; exact++)
        for (int i = 0; i < PRECISIONS; i++) {
            const precision *p = &precisions[i];
            is_exact = exact != 0;
            long bytes;
            double error, bound = p->bound;
            if (exact && !(is_chain && p->computes_bf16))
                bound = 1e-6;
            tsrt_value *expected = run_text(text, "x86-64-v2", p, false, letter, &bytes, &error);
            for (int k = 0; k < 4; k++) {
                if (!has[k] || (!exact && k < 3 && has[k + 1]))
                    continue; /* random weights: the last level alone */
                tsrt_value *got = run_text(text, levels[k], p, true, letter, &bytes, &error);
                double d = distance(expected, got);
                if (getenv("SHOW_ERRORS"))
                    fprintf(stderr, "%s %s at %s: %.3g\n", exact ? "exact" : "random", p->name,
                            levels[k], d);
                ck_assert_msg(d <= bound, "%s %s at %s: error %.3g", exact ? "exact" : "random",
                              p->name, levels[k], d);
                ck_assert_msg(!exact || error == 0, "%s: exact weights were rounded by %g", p->name,
                              error);
                tsrt_value_release(got);
            }
            tsrt_value_release(expected);
        }
}

/* Sizes that end within a vector, a panel, a step and a group of the formats. */
START_TEST(linear_layers) {
    check_text("func @forward(%x: float32[9,70]) -> float32[9,37] entry {\n"
               "  %w = const @w_37_70 : float32[37,70]\n"
               "  %b = const @b_37 : float32[37]\n"
               "  %a = linear(%x, %w, %b) : float32[9,37]\n"
               "  %c = relu(%a) : float32[9,37]\n"
               "  return %c\n"
               "}\n", 0, false);
    check_text("func @forward(%x: float32[31,64]) -> float32[31,300] entry {\n"
               "  %w = const @w_300_64 : float32[300,64]\n"
               "  %a = linear(%x, %w, none) : float32[31,300]\n"
               "  return %a\n"
               "}\n", 0, false);
    check_text("func @forward(%x: float32[1,259]) -> float32[1,530] entry {\n"
               "  %w = const @w_530_259 : float32[530,259]\n"
               "  %a = linear(%x, %w, none) : float32[1,530]\n"
               "  return %a\n"
               "}\n", 0, false);
    const char *symbolic = "func @forward(%x: float32[N,96]) -> float32[N,64] entry {\n"
               "  %w = const @w_64_96 : float32[64,96]\n"
               "  %a = linear(%x, %w, none) : float32[N,64]\n"
               "  return %a\n"
               "}\n";
    check_text(symbolic, 1, false);
    check_text(symbolic, 45, false);
}
END_TEST

START_TEST(matrices) {
    check_text("func @forward(%x: float32[3,33,5]) -> float32[3,5,21] entry {\n"
               "  %w = const @t_33_21 : float32[33,21]\n"
               "  %t = transpose.int(%x, 1, 2) : float32[3,5,33]\n"
               "  %a = matmul(%t, %w) : float32[3,5,21]\n"
               "  return %a\n"
               "}\n", 0, false);
    check_text("func @forward(%x: float32[1,1]) -> float32[1,1] entry {\n"
               "  %w = const @w_1_1 : float32[1,1]\n"
               "  %a = linear(%x, %w, none) : float32[1,1]\n"
               "  return %a\n"
               "}\n", 0, false);
}
END_TEST

START_TEST(convolutions) {
    check_text("func @forward(%x: float32[1,3,8,9]) -> float32[1,18,6,9] entry {\n"
               "  %w = const @w_18_3_3_1 : float32[18,3,3,1]\n"
               "  %a = conv2d(%x, %w, none, [1, 1], [0, 0], [1, 1], 1) : float32[1,18,6,9]\n"
               "  return %a\n"
               "}\n", 0, false);
    check_text("func @forward(%x: float32[1,1,12,12]) -> float32[1,4,4,5] entry {\n"
               "  %w = const @w_4_1_5_5 : float32[4,1,5,5]\n"
               "  %a = conv2d(%x, %w, none, [2, 2], [0, 1], [1, 1], 1) : float32[1,4,4,5]\n"
               "  return %a\n"
               "}\n", 0, false);
    /* Planes first, then channels innermost: odd channels, strides, groups, padding. */
    check_text("func @forward(%x: float32[2,3,13,11]) -> float32[2,34,7,6] entry {\n"
               "  %w = const @w_21_3_3_3 : float32[21,3,3,3]\n"
               "  %a = conv2d(%x, %w, none, [2, 2], [1, 1], [1, 1], 1) : float32[2,21,7,6]\n"
               "  %v = const @w_34_21_3_3 : float32[34,21,3,3]\n"
               "  %d = conv2d(%a, %v, none, [1, 1], [1, 1], [1, 1], 1) : float32[2,34,7,6]\n"
               "  return %d\n"
               "}\n", 0, true);
    check_text("func @forward(%x: float32[1,64,15,15]) -> float32[1,48,8,8] entry {\n"
               "  %w = const @w_64_32_3_3 : float32[64,32,3,3]\n"
               "  %a = conv2d(%x, %w, none, [1, 1], [1, 1], [1, 1], 2) : float32[1,64,15,15]\n"
               "  %v = const @w_48_64_1_1 : float32[48,64,1,1]\n"
               "  %b = conv2d(%a, %v, none, [2, 2], [0, 0], [1, 1], 1) : float32[1,48,8,8]\n"
               "  return %b\n"
               "}\n", 0, true);
    check_text("func @forward(%x: float32[2,17,30]) -> float32[2,5,14] entry {\n"
               "  %w = const @w_5_17_3 : float32[5,17,3]\n"
               "  %b = const @b_5 : float32[5]\n"
               "  %a = conv1d(%x, %w, %b, [2], [1], [2], 1) : float32[2,5,14]\n"
               "  return %a\n"
               "}\n", 0, false);
}
END_TEST

/* Steps of two terms reach past a kernel of odd width: what lies there must not matter. */
START_TEST(infinities_stay_in_their_windows) {
    const char *text = "func @forward(%x: float32[1,2,9,33]) -> float32[1,20,7,31] entry {\n"
                       "  %w = const @w_20_2_3_3 : float32[20,2,3,3]\n"
                       "  %a = conv2d(%x, %w, none, [1, 1], [0, 0], [1, 1], 1) : float32[1,20,7,31]\n"
                       "  return %a\n"
                       "}\n";
    static const char *const levels[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4-bf16"};
    bool has[4] = {__builtin_cpu_supports("sse4.2"), __builtin_cpu_supports("avx2"),
                   __builtin_cpu_supports("avx512vl"), __builtin_cpu_supports("avx512bf16")};
    precision p = {"bf16", CG_WEIGHTS_FLOAT32, true, 0};
    is_exact = false;
    has_infinity = true;
    long bytes;
    double error;
    for (int k = 0; k < 4; k++) {
        if (!has[k])
            continue;
        tsrt_value *v = run_text(text, levels[k], &p, true, 0, &bytes, &error);
        tsrt_tensor_view view = {.size = sizeof view};
        ck_assert_ptr_null(tsrt_value_view_tensor(v, &view));
        for (int64_t i = 0; i < view.element_count; i++) {
            int64_t x = i % view.sizes[3] * view.strides[3], y = i / view.sizes[3] % view.sizes[2];
            int64_t c = i / view.sizes[3] / view.sizes[2];
            float f = ((const float *)view.data)[c * view.strides[1] + y * view.strides[2] + x];
            bool reached = y >= 2 && y <= 4 && i % view.sizes[3] >= 8 && i % view.sizes[3] <= 10;
            ck_assert_msg(isfinite(f) == !reached, "%s: %g at %d, %d", levels[k], f, (int)y,
                          (int)(i % view.sizes[3]));
        }
        tsrt_value_release(v);
    }
    has_infinity = false;
}
END_TEST

static long weight_bytes(const char *text, cg_weights_dtype weights) {
    precision p = {"", weights, false, 0};
    long bytes;
    double error;
    tsrt_value_release(run_text(text, "x86-64-v2", &p, true, 0, &bytes, &error));
    return bytes;
}

START_TEST(sizes) {
    const char *text = "func @forward(%x: float32[1,256]) -> float32[1,256] entry {\n"
                       "  %w = const @w_256_256 : float32[256,256]\n"
                       "  %a = linear(%x, %w, none) : float32[1,256]\n"
                       "  return %a\n"
                       "}\n";
    is_exact = false;
    ck_assert_int_eq(weight_bytes(text, CG_WEIGHTS_FLOAT32), 256 * 256 * 4);
    ck_assert_int_eq(weight_bytes(text, CG_WEIGHTS_BF16), 256 * 256 * 2);
    ck_assert_int_eq(weight_bytes(text, CG_WEIGHTS_INT8), 256 * 256 + 256 * 4);
    ck_assert_int_eq(weight_bytes(text, CG_WEIGHTS_INT4), 256 * 256 / 2 + 256 * 256 / 32 * 2);
}
END_TEST

START_TEST(roundings) {
    ck_assert_uint_eq(kn_bfloat16_bits(1.0f), 0x3f80);
    ck_assert_uint_eq(kn_bfloat16_bits(1.00390625f), 0x3f80);  /* a tie, to even */
    ck_assert_uint_eq(kn_bfloat16_bits(1.01171875f), 0x3f82);  /* a tie, to even */
    ck_assert_uint_eq(kn_bfloat16_bits(-INFINITY), 0xff80);
    ck_assert_uint_eq(kn_bfloat16_bits(3.4e38f), 0x7f80);
    ck_assert(isnan(NAN) && (kn_bfloat16_bits(NAN) & 0x7fff) > 0x7f80);
    float column[3] = {1, INFINITY, 2};
    int64_t offset = 0;
    kn_matrices m = {.data = column, .offsets = &offset, .count = 1, .k = 3, .n = 1, .inner = 3, .middle = 1,
                     .inner_stride = 1};
    ck_assert(!kn_weights_are_finite(&m));
    column[1] = 0;
    ck_assert(kn_weights_are_finite(&m));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("kernels_lowp");
    TCase *tc = tcase_create("precision");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, linear_layers);
    tcase_add_test(tc, matrices);
    tcase_add_test(tc, convolutions);
    tcase_add_test(tc, infinities_stay_in_their_windows);
    tcase_add_test(tc, sizes);
    tcase_add_test(tc, roundings);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

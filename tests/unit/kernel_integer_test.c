/* Kernels over bytes against the reference kernels, bit for bit, at each CPU level that this machine
 * has: products and convolutions at sizes that end within a vector, a panel and a step, zero points
 * at both ends, weights and inputs at their extremes, roundings and pooling. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/codegen.h"
#include "passes/passes.h"
#include "runtime/tsrt.h"

typedef enum content { RANDOM, HIGHEST, LOWEST, CONTENTS } content;

static content filling;
static uint64_t random_state;
static uint64_t random_bits(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 40;
}

/* Bytes are random, or as far apart as sums can have them; floats random in [-4, 4). */
static void fill(void *data, rt_dtype dtype, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (dtype == RT_float32)
            ((float *)data)[i] = (float)random_bits() * 0x1p-21f - 4;
        else
            ((uint8_t *)data)[i] = (uint8_t)(filling == RANDOM    ? random_bits()
                                             : dtype == RT_uint8 ? (filling == HIGHEST ? 255 : 0)
                                             : filling == HIGHEST ? 127
                                                                  : 128);
}

/* "w_5_3" is int8[5,3], "f_5" is float32[5]. */
static ts_status find_weight(void *user, ts_str name, rt_value *out) {
    (void)user;
    char text[256];
    snprintf(text, sizeof text, "%.*s", (int)name.length, name.data);
    int64_t sizes[8];
    int rank = 0;
    for (char *at = strchr(text, '_'); at && rank < 8; at = strchr(at + 1, '_'))
        sizes[rank++] = strtoll(at + 1, NULL, 10);
    rt_dtype dtype = text[0] == 'f' ? RT_float32 : RT_int8;
    rt_tensor *t;
    TS_TRY(rt_tensor_make(dtype, sizes, rank, &t));
    uint64_t saved = random_state;
    random_state = 88172645463325252u;
    fill(t->data, dtype, t->element_count);
    random_state = saved;
    *out = rt_from_tensor(t);
    return NULL;
}

static void fuse(ir_module *m, const cg_target_info *level) {
    static const char *const names[] = {"expand_composites", "fuse", "assign_layout", "plan_memory"};
    ts_arena *scratch = ts_arena_create(0);
    pass_target target = {.vector_bytes = level->vector_bytes, .opt_level = 2};
    pass_counter counters[16];
    pass_context ctx = {.scratch = scratch, .target = &target, .counters = counters};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
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
    tsrt_dtype dtype = t->dtype == RT_float32 ? TSRT_FLOAT32 : t->dtype == RT_int8 ? TSRT_INT8 : TSRT_UINT8;
    ck_assert_ptr_null(tsrt_value_make_tensor(dtype, sizes, t->rank, &v));
    tsrt_tensor_view view = {.size = sizeof view};
    ck_assert_ptr_null(tsrt_value_view_tensor(v, &view));
    fill(view.data, t->dtype, count);
    return v;
}

/* The result; of the fused text there must be kernels alone. */
static tsrt_value *run_text(const char *text, const cg_target_info *level, bool is_fused, int64_t letter) {
    ts_arena *arena = ts_arena_create(0);
    ir_module *m = ir_module_make(arena);
    ts_status status = ir_parse_module(m, TS_STR("t.tsir"), ts_str_of(text), find_weight, NULL);
    ck_assert_msg(!status, "%d: %s", ts_status_place(status).line, ts_status_message(status));
    if (is_fused)
        fuse(m, level);
    char path[] = "/tmp/tsc_integer_test_XXXXXX";
    int fd = mkstemp(path);
    ck_assert(fd >= 0);
    close(fd);
    cg_options options = {.levels = &level, .level_count = 1, .opt_level = 2, .emit = CG_EMIT_TSM,
                          .output_path = ts_str_of(path), .source_name = TS_STR("t.tsir")};
    status = cg_compile(m, arena, &options);
    ck_assert_msg(!status, "%s", ts_status_message(status));
    tsrt_model *model;
    tsrt_session *session;
    tsrt_status *s = tsrt_model_load(path, NULL, &model);
    ck_assert_msg(!s, "%s", tsrt_status_message(s));
    unlink(path);
    ck_assert_ptr_null(tsrt_session_create(model, NULL, &session));
    random_state = 42;
    tsrt_value *args[4], *out = NULL;
    const ir_block *body = m->functions->body;
    for (size_t i = 0; i < body->parameter_count; i++)
        args[i] = input(body->parameters[i]->type, letter);
    s = tsrt_run(session, 0, args, body->parameter_count, NULL, &out);
    ck_assert_msg(!s, "%s", tsrt_status_message(s));
    for (size_t i = 0; i < body->parameter_count; i++)
        tsrt_value_release(args[i]);
    size_t kernels = 0;
    for (const ir_op *op = body->first; op; op = op->next) {
        kernels += op->opcode == IR_OP_KERNEL;
        ck_assert_msg(!is_fused || op->opcode != IR_OP_CORE, "%.*s is in no kernel",
                      (int)rt_op_name(op->core).length, rt_op_name(op->core).data);
    }
    ck_assert(!is_fused || kernels > 0);
    tsrt_session_release(session);
    tsrt_model_release(model);
    ir_module_deinit(m);
    ts_arena_release(arena);
    return out;
}

static void check_equal(const tsrt_value *a, const tsrt_value *b, const char *level) {
    tsrt_value *x, *y;
    ck_assert_ptr_null(tsrt_value_contiguous(a, &x));
    ck_assert_ptr_null(tsrt_value_contiguous(b, &y));
    tsrt_tensor_view u = {.size = sizeof u}, v = {.size = sizeof v};
    ck_assert_ptr_null(tsrt_value_view_tensor(x, &u));
    ck_assert_ptr_null(tsrt_value_view_tensor(y, &v));
    ck_assert_int_eq(u.element_count, v.element_count);
    ck_assert_int_eq(u.dtype, v.dtype);
    size_t size = u.dtype == TSRT_UINT8 || u.dtype == TSRT_INT8 ? 1 : 4;
    for (int64_t i = 0; i < u.element_count; i++)
        if (memcmp((const char *)u.data + (size_t)i * size, (const char *)v.data + (size_t)i * size, size) != 0)
            ck_abort_msg("%s, filling %d: element %d of %d differs", level, (int)filling, (int)i,
                         (int)u.element_count);
    tsrt_value_release(x);
    tsrt_value_release(y);
}

static void check_level(const char *text, const cg_target_info *level, const char *name, int64_t letter,
                        const tsrt_value *expected) {
    tsrt_value *got = run_text(text, level, true, letter);
    check_equal(expected, got, name);
    tsrt_value_release(got);
}

/* Beside the levels that are there: sums of fours, as VNNI has them, spelt out for AVX2. */
static void check_text(const char *text, int64_t letter) {
    const cg_target_info *v3 = cg_target_find(TS_STR("x86-64-v3")), *native = cg_target_find(TS_STR("native"));
    const cg_target_info *v4 = cg_target_find(TS_STR("x86-64-v4"));
    const cg_target_info *vnni = cg_target_find(TS_STR("x86-64-v4-vnni"));
    bool has_v3 = v3 && cg_target_runs_here(v3);
    for (int fill_number = 0; fill_number < CONTENTS; fill_number++) {
        filling = (content)fill_number;
        tsrt_value *expected = run_text(text, native, false, letter);
        if (!has_v3 && native->has_fma)
            check_level(text, native, "native", letter, expected);
        if (has_v3) {
            cg_target_info fours = *v3;
            fours.vector_bytes = 64;
            fours.has_vnni = true;
            check_level(text, v3, "x86-64-v3", letter, expected);
            check_level(text, &fours, "sums of fours", letter, expected);
        }
        if (has_v3 && cg_target_runs_here(v4))
            check_level(text, v4, "x86-64-v4", letter, expected);
        if (has_v3 && cg_target_runs_here(vnni))
            check_level(text, vnni, "x86-64-v4-vnni", letter, expected);
        tsrt_value_release(expected);
    }
}

/* "5,3" as a part of a name. */
static const char *named(const char *sizes, char *out, size_t room) {
    snprintf(out, room, "%s", sizes);
    for (char *c = out; *c; c++)
        *c = *c == ',' ? '_' : *c;
    return out;
}

/* A layer: its sums, and in one kernel with roundings; channel: sizes of what goes with an output channel. */
static void check_layer(const char *dtype, const char *x, const char *op, const char *weight, const char *args,
                        const char *out, const char *channel, int64_t letter) {
    char text[1536], w[64], a[64];
    int length = snprintf(text, sizeof text,
                          "func @forward(%%x: %s[%s]) -> Tensor entry {\n"
                          "  %%w = const @w_%s : int8[%s]\n"
                          "  %%s = %s(%%x, %%w, %s) : int32[%s]\n",
                          dtype, x, named(weight, w, sizeof w), weight, op, args, out);
    snprintf(text + length, sizeof text - (size_t)length, "  return %%s\n}\n");
    check_text(text, letter);
    snprintf(text + length, sizeof text - (size_t)length,
             "  %%a = const @f_%s : float32[%s]\n"
             "  %%m = const tensor(float32[1], [0.0123]) : float32[1]\n"
             "  %%r = _requantize(%%s, %%a, %%m, 131, 131, 0) : uint8[%s]\n"
             "  %%d = _dequantize_bytes(%%r, 0.37, 131) : float32[%s]\n"
             "  %%e = add.Tensor(%%d, %%d, 1) : float32[%s]\n"
             "  %%q = _quantize_bytes(%%e, 0.51, 17, 0) : uint8[%s]\n"
             "  return %%q\n}\n",
             named(channel, a, sizeof a), channel, out, out, out, out);
    check_text(text, letter);
}

START_TEST(linear_layers) {
    check_layer("uint8", "9,70", "_integer_linear", "37,70", "131", "9,37", "37", 0);
    check_layer("uint8", "1,259", "_integer_linear", "530,259", "255", "1,530", "530", 0);
    check_layer("int8", "2,31,64", "_integer_linear", "300,64", "-128", "2,31,300", "300", 0);
    check_layer("uint8", "2,3", "_integer_linear", "8,3", "0", "2,8", "8", 0);
    check_layer("uint8", "N,33", "_integer_linear", "20,33", "7", "N,20", "20", 1);
    check_layer("uint8", "N,33", "_integer_linear", "20,33", "7", "N,20", "20", 23);
    check_layer("int8", "1,1", "_integer_linear", "1,1", "127", "1,1", "1", 0);
}
END_TEST

START_TEST(convolutions) {
    check_layer("uint8", "2,3,13,11", "_integer_convolution", "21,3,3,3",
                "255, [2, 2], [1, 1], [1, 1], 1", "2,21,7,6", "21,1,1", 0);
    check_layer("int8", "1,32,9,9", "_integer_convolution", "40,32,1,1",
                "-128, [1, 1], [0, 0], [1, 1], 1", "1,40,9,9", "40,1,1", 0);
    check_layer("uint8", "1,24,9,7", "_integer_convolution", "34,12,3,2",
                "0, [1, 2], [1, 0], [2, 1], 2", "1,34,7,3", "34,1,1", 0);
    check_layer("uint8", "2,17,30", "_integer_convolution", "5,17,3", "9, [2], [1], [2], 1", "2,5,14", "5,1", 0);
    check_layer("uint8", "N,5,12,12", "_integer_convolution", "6,5,5,5",
                "100, [1, 1], [2, 2], [1, 1], 1", "N,6,12,12", "6,1,1", 3);
}
END_TEST

START_TEST(depthwise_convolutions) {
    check_layer("uint8", "1,19,12,15", "_integer_convolution", "19,1,3,3",
                "255, [1, 1], [1, 1], [1, 1], 19", "1,19,12,15", "19,1,1", 0);
    check_layer("int8", "2,64,13,9", "_integer_convolution", "64,1,5,5",
                "-128, [2, 2], [2, 2], [1, 1], 64", "2,64,7,5", "64,1,1", 0);
    check_layer("uint8", "1,6,20", "_integer_convolution", "6,1,7", "3, [1], [3], [1], 6", "1,6,20", "6,1", 0);
}
END_TEST

/* Images between kernels lie with their channels innermost. */
START_TEST(layers_in_a_row) {
    check_text("func @forward(%x: float32[1,3,21,17]) -> float32[1,10,6,5] entry {\n"
               "  %q = _quantize_bytes(%x, 0.031, 128, 0) : uint8[1,3,21,17]\n"
               "  %w = const @w_20_3_3_3 : int8[20,3,3,3]\n"
               "  %a = const @f_20_1_1 : float32[20,1,1]\n"
               "  %m = const tensor(float32[1], [0.004]) : float32[1]\n"
               "  %s = _integer_convolution(%q, %w, 128, [2, 2], [1, 1], [1, 1], 1) : int32[1,20,11,9]\n"
               "  %b = _requantize(%s, %a, %m, 100, 0, 0) : uint8[1,20,11,9]\n"
               "  %v = const @w_20_1_3_3 : int8[20,1,3,3]\n"
               "  %t = _integer_convolution(%b, %v, 100, [1, 1], [1, 1], [1, 1], 20) : int32[1,20,11,9]\n"
               "  %c = _requantize(%t, %a, %m, 3, 3, 0) : uint8[1,20,11,9]\n"
               "  %e = _dequantize_bytes(%b, 0.05, 100) : float32[1,20,11,9]\n"
               "  %f = _dequantize_bytes(%c, 0.02, 3) : float32[1,20,11,9]\n"
               "  %g = add.Tensor(%e, %f, 1) : float32[1,20,11,9]\n"
               "  %h = _quantize_bytes(%g, 0.06, 60, 0) : uint8[1,20,11,9]\n"
               "  %p = max_pool2d(%h, [3, 3], stride=[2, 2], padding=[1, 1]) : uint8[1,20,6,5]\n"
               "  %u = const @w_10_20_1_1 : int8[10,20,1,1]\n"
               "  %k = const @f_10_1_1 : float32[10,1,1]\n"
               "  %y = _integer_convolution(%p, %u, 60, [1, 1], [0, 0], [1, 1], 1) : int32[1,10,6,5]\n"
               "  %z = _scale_sums(%y, 0.002, %m, %k) : float32[1,10,6,5]\n"
               "  return %z\n"
               "}\n", 0);
}
END_TEST

START_TEST(roundings) {
    check_text("func @forward(%x: float32[5,37]) -> uint8[5,37] entry {\n"
               "  %a = _quantize_bytes(%x, 0.0078125, 13, 0) : uint8[5,37]\n"
               "  return %a\n}\n", 0);
    check_text("func @forward(%x: float32[5,37]) -> uint8[5,37] entry {\n"
               "  %a = _quantize_bytes(%x, 0.0625, 13, 0, true) : uint8[5,37]\n"
               "  return %a\n}\n", 0);
    check_text("func @forward(%x: uint8[5,37], %y: uint8[5,37]) -> uint8[5,37] entry {\n"
               "  %z = const tensor(float32[1], [0]) : float32[1]\n"
               "  %m = const tensor(float32[1], [0.0123]) : float32[1]\n"
               "  %a = to.dtype(%x, 3) : int32[5,37]\n"
               "  %b = to.dtype(%y, 3) : int32[5,37]\n"
               "  %c = sub.Scalar(%a, 7, 1) : int32[5,37]\n"
               "  %d = mul.Tensor(%c, %b) : int32[5,37]\n"
               "  %e = _requantize(%d, %z, %m, 5, 9, 0) : uint8[5,37]\n"
               "  return %e\n}\n", 0);
    check_text("func @forward(%x: float32[1,3,20,33]) -> int8[1,5,20,33] entry {\n"
               "  %a = _quantize_bytes(%x, 0.0625, 13, 1) : int8[1,3,20,33]\n"
               "  %w = const @w_5_3_1_1 : int8[5,3,1,1]\n"
               "  %s = _integer_convolution(%a, %w, 13, [1, 1], [0, 0], [1, 1], 1) : int32[1,5,20,33]\n"
               "  %k = const @f_5_1_1 : float32[5,1,1]\n"
               "  %m = const tensor(float32[1], [0.0123]) : float32[1]\n"
               "  %r = _requantize(%s, %k, %m, 5, -128, 1) : int8[1,5,20,33]\n"
               "  return %r\n}\n", 0);
    check_text("func @forward(%x: float32[3,7]) -> int8[3,7] entry {\n"
               "  %a = _quantize_bytes(%x, 0.25, -5, 1) : int8[3,7]\n"
               "  %b = clamp_min(%a, -5) : int8[3,7]\n"
               "  return %b\n}\n", 0);
    check_text("func @forward(%x: uint8[5,37]) -> float32[5,37] entry {\n"
               "  %a = _dequantize_bytes(%x, 0.0731, 77, true) : float32[5,37]\n"
               "  return %a\n}\n", 0);
    check_text("func @forward(%x: uint8[2,6,9,9]) -> uint8[2,6,1,1] entry {\n"
               "  %a = _dequantize_bytes(%x, 1.0, 77) : float32[2,6,9,9]\n"
               "  %b = adaptive_avg_pool2d(%a, [1, 1]) : float32[2,6,1,1]\n"
               "  %c = _quantize_bytes(%b, 1.0, 77, 0) : uint8[2,6,1,1]\n"
               "  return %c\n}\n", 0);
}
END_TEST

int main(void) {
    Suite *s = suite_create("integer kernels");
    TCase *c = tcase_create("bytes");
    tcase_set_timeout(c, 300);
    tcase_add_test(c, linear_layers);
    tcase_add_test(c, convolutions);
    tcase_add_test(c, depthwise_convolutions);
    tcase_add_test(c, layers_in_a_row);
    tcase_add_test(c, roundings);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}

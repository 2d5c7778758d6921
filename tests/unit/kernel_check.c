/* tests/unit/kernel_check.c - see kernel_check.h. */
#define _POSIX_C_SOURCE 200809L
#include "unit/kernel_check.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/codegen.h"
#include "passes/passes.h"
#include "runtime/tsrt.h"

typedef struct run_options {
    const char *level;
    bool fuse;
    bool no_winograd;
    int kernels; /* expected; -1 any */
} run_options;

static uint64_t random_state;
static double random_unit(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 11) * 0x1p-53;
}

/* Weights by name: "w_64_3_3_3" is float32[64,3,3,3], small numbers; with "h" the first is nearly the largest there is. */
static ts_status find_weight(void *user, ts_str name, rt_value *out) {
    (void)user;
    char text[256];
    snprintf(text, sizeof text, "%.*s", (int)name.length, name.data);
    int64_t sizes[8];
    int rank = 0;
    for (char *at = strchr(text, '_'); at && rank < 8; at = strchr(at + 1, '_'))
        sizes[rank++] = strtoll(at + 1, NULL, 10);
    rt_tensor *t;
    TS_TRY(rt_tensor_make(RT_float32, sizes, rank, &t));
    uint64_t state = 88172645463325252u;
    for (int64_t i = 0; i < t->element_count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        ((float *)t->data)[i] = (float)((double)(state >> 11) * 0x1p-53 - 0.5);
    }
    if (text[0] == 'h')
        ((float *)t->data)[0] = 0x1.ffcp127f;
    *out = rt_from_tensor(t);
    return NULL;
}

static int count_kernels(const ir_block *block) {
    int n = 0;
    for (const ir_op *op = block->first; op; op = op->next) {
        n += op->opcode == IR_OP_KERNEL;
        for (size_t i = 0; op->opcode != IR_OP_KERNEL && i < op->region_count; i++)
            n += count_kernels(op->regions[i]);
    }
    return n;
}

static void run_passes(ir_module *m, const run_options *o, const cg_target_info *level) {
    ts_arena *scratch = ts_arena_create(0);
    pass_target target = {.vector_bytes = level->vector_bytes, .opt_level = 2};
    pass_counter counters[16];
    pass_context ctx = {.scratch = scratch, .target = &target, .counters = counters};
    static const char *const names[] = {"expand_composites", "fuse", "assign_layout", "split_reductions",
                                        "stream_images", "plan_memory"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const pass_info *pass = pass_find(ts_str_of(names[i]));
        ck_assert_ptr_nonnull(pass);
        ctx.counter_count = 0;
        ts_status status = pass->run(&ctx, m);
        ck_assert_msg(!status, "%s: %s", names[i], ts_status_message(status));
        status = ir_verify_module(m);
        if (status) {
            ts_buffer text = {0};
            ir_print_module(m, &text, NULL);
            ck_abort_msg("%s: %s in\n%.*s", names[i], ts_status_message(status), (int)text.length,
                         text.data);
        }
    }
    int n = count_kernels(m->functions->body);
    if (getenv("SHOW_IR") || (o->kernels >= 0 && n != o->kernels)) {
        ts_buffer text = {0};
        ir_print_module(m, &text, NULL);
        fprintf(stderr, "%.*s", (int)text.length, text.data);
        ts_buffer_deinit(&text);
    }
    ck_assert_msg(o->kernels < 0 || n == o->kernels, "expected %d kernels, found %d", o->kernels, n);
    ts_arena_release(scratch);
}

static tsrt_value *random_input(const ir_module *m, const ir_type *t, const kernel_sizes *letters) {
    tsrt_value *v = NULL;
    if (t->kind == IR_INT) {
        ck_assert_ptr_null(tsrt_value_make_int(3, &v));
        return v;
    }
    if (t->kind == IR_FLOAT) {
        ck_assert_ptr_null(tsrt_value_make_float(0.75, &v));
        return v;
    }
    ck_assert_int_eq(t->kind, IR_TENSOR);
    int64_t sizes[8], count = 1;
    for (int d = 0; d < t->rank; d++) {
        sizes[d] = t->dims[d];
        if (!rt_dim_is_constant(sizes[d])) {
            int letter = ir_dim_symbol_name(m, sizes[d]).data[0] - 'A';
            ck_assert(letter >= 0 && letter < KERNEL_LETTERS);
            sizes[d] = letters->of[letter];
        }
        count *= sizes[d];
    }
    size_t bytes = rt_dtype_size(t->dtype);
    char *data = malloc((size_t)count * bytes + 1);
    for (int64_t i = 0; i < count; i++) {
        double x = random_unit() * 6 - 3;
        if (t->dtype == RT_bool)
            data[i] = x > 0;
        else if (rt_dtype_is_float(t->dtype))
            rt_store_double(t->dtype, data + (size_t)i * bytes, x);
        else
            rt_store_int(t->dtype, data + (size_t)i * bytes, (int64_t)floor(x * 10));
    }
    ck_assert_ptr_null(tsrt_value_make_tensor((tsrt_dtype)t->dtype, sizes, t->rank, &v));
    tsrt_tensor_view view = {.size = sizeof view};
    ck_assert_ptr_null(tsrt_value_view_tensor(v, &view));
    memcpy(view.data, data, (size_t)count * bytes);
    free(data);
    return v;
}

typedef struct program {
    run_options options;
    ts_arena *arena;
    ir_module *m;
    tsrt_model *model;
    tsrt_session *session;
} program;

static program make_program(const char *text, run_options o) {
    program p = {.options = o, .arena = ts_arena_create(0)};
    p.m = ir_module_make(p.arena);
    ts_status status = ir_parse_module(p.m, TS_STR("t.tsir"), ts_str_of(text), find_weight, NULL);
    ck_assert_msg(!status, "%d:%d: %s", ts_status_place(status).line,
                  ts_status_place(status).column, ts_status_message(status));
    const cg_target_info *level = cg_target_find(ts_str_of(o.level));
    if (o.fuse)
        run_passes(p.m, &o, level);
    char path[] = "/tmp/tsc_kernel_test_XXXXXX";
    int fd = mkstemp(path);
    ck_assert(fd >= 0);
    close(fd);
    cg_options options = {.levels = &level, .level_count = 1, .opt_level = 2, .emit = CG_EMIT_TSM,
                          .no_winograd = o.no_winograd, .output_path = ts_str_of(path),
                          .source_name = TS_STR("t.tsir")};
    status = cg_compile(p.m, p.arena, &options);
    ck_assert_msg(!status, "%s", ts_status_message(status));
    tsrt_status *s = tsrt_model_load(path, NULL, &p.model);
    ck_assert_msg(!s, "%s", tsrt_status_message(s));
    unlink(path);
    /* Three threads, whatever the machine: kernels are split at places of all kinds. */
    tsrt_session_options threads = {.size = sizeof threads, .threads = 3};
    s = tsrt_session_create(p.model, &threads, &p.session);
    ck_assert_msg(!s, "%s", tsrt_status_message(s));
    return p;
}

static void end_program(program *p) {
    tsrt_session_release(p->session);
    tsrt_model_release(p->model);
    ir_module_deinit(p->m);
    ts_arena_release(p->arena);
}

/* `raises`: the text of the exception that must come; NULL: none. */
static tsrt_value *run_program(program *p, const kernel_sizes *letters, const char *raises) {
    tsrt_value *args[16], *out = NULL;
    const ir_block *body = p->m->functions->body;
    random_state = 42;
    for (size_t i = 0; i < body->parameter_count; i++)
        args[i] = random_input(p->m, body->parameters[i]->type, letters);
    /* Twice: planned memory is used again. */
    for (int i = 0; i < 2; i++) {
        tsrt_value_release(out);
        out = NULL;
        tsrt_status *s = tsrt_run(p->session, 0, args, body->parameter_count, NULL, &out);
        if (raises) {
            ck_assert_ptr_nonnull(s);
            ck_assert_ptr_nonnull(strstr(tsrt_status_message(s), raises));
            tsrt_status_release(s);
        } else {
            ck_assert_msg(!s, "%s", tsrt_status_message(s));
        }
    }
    if (p->options.fuse && p->options.kernels > 0 && !raises) {
        tsrt_statistics st = {.size = sizeof st};
        ck_assert_ptr_null(tsrt_session_get_statistics(p->session, &st));
        ck_assert_msg(st.dynamic_call_count == 0, "%d calls of reference kernels",
                      (int)st.dynamic_call_count);
    }
    for (size_t i = 0; i < body->parameter_count; i++)
        tsrt_value_release(args[i]);
    return out;
}

static void compare(const tsrt_value *a, const tsrt_value *b, double tolerance, const char *what) {
    if (tsrt_value_kind(a) == TSRT_TUPLE) {
        ck_assert_uint_eq(tsrt_value_count(a), tsrt_value_count(b));
        for (size_t i = 0; i < tsrt_value_count(a); i++) {
            tsrt_value *x, *y;
            ck_assert_ptr_null(tsrt_value_item(a, i, &x));
            ck_assert_ptr_null(tsrt_value_item(b, i, &y));
            compare(x, y, tolerance, what);
            tsrt_value_release(x);
            tsrt_value_release(y);
        }
        return;
    }
    tsrt_value *x, *y;
    ck_assert_ptr_null(tsrt_value_contiguous(a, &x));
    ck_assert_ptr_null(tsrt_value_contiguous(b, &y));
    tsrt_tensor_view u = {.size = sizeof u}, v = {.size = sizeof v};
    ck_assert_ptr_null(tsrt_value_view_tensor(x, &u));
    ck_assert_ptr_null(tsrt_value_view_tensor(y, &v));
    ck_assert_int_eq(u.dtype, v.dtype);
    ck_assert_int_eq(u.rank, v.rank);
    int64_t count = 1;
    for (int d = 0; d < u.rank; d++) {
        ck_assert_int_eq(u.sizes[d], v.sizes[d]);
        count *= u.sizes[d];
    }
    size_t bytes = tsrt_dtype_bytes(u.dtype);
    for (int64_t i = 0; i < count; i++) {
        double p = rt_load_double((rt_dtype)u.dtype, (const char *)u.data + (size_t)i * bytes);
        double q = rt_load_double((rt_dtype)v.dtype, (const char *)v.data + (size_t)i * bytes);
        bool same = (isnan(p) && isnan(q)) || p == q ||
                    fabs(p - q) <= tolerance * (1 + fabs(p));
        ck_assert_msg(same, "%s: element %lld is %.9g, expected %.9g", what, (long long)i, q, p);
    }
    tsrt_value_release(x);
    tsrt_value_release(y);
}

static const char *const levels[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4-amx"};
enum { LEVELS = sizeof levels / sizeof *levels };

static bool has_level(int i) { return cg_target_runs_here(cg_target_find(ts_str_of(levels[i]))); }

void kernel_check(const char *text, int kernels, double tolerance, bool no_winograd,
                  const kernel_sizes *sizes, size_t count) {
    program plain = make_program(text, (run_options){.level = "x86-64-v2"});
    tsrt_value **expected = calloc(count, sizeof *expected);
    for (size_t n = 0; n < count; n++)
        expected[n] = run_program(&plain, &sizes[n], NULL);
    end_program(&plain);
    for (int i = 0; i < LEVELS; i++) {
        if (!has_level(i))
            continue;
        program fused = make_program(text, (run_options){.level = levels[i], .fuse = true,
                                                         .kernels = kernels,
                                                         .no_winograd = no_winograd});
        for (size_t n = 0; n < count; n++) {
            tsrt_value *got = run_program(&fused, &sizes[n], NULL);
            compare(expected[n], got, tolerance, levels[i]);
            tsrt_value_release(got);
        }
        end_program(&fused);
    }
    for (size_t n = 0; n < count; n++)
        tsrt_value_release(expected[n]);
    free(expected);
}

void kernel_check_raises(const char *text, int kernels, const kernel_sizes *sizes,
                         const char *message) {
    program plain = make_program(text, (run_options){.level = "x86-64-v2"});
    run_program(&plain, sizes, message);
    end_program(&plain);
    for (int i = 0; i < LEVELS; i++) {
        if (!has_level(i))
            continue;
        program fused = make_program(text, (run_options){.level = levels[i], .fuse = true,
                                                         .kernels = kernels});
        run_program(&fused, sizes, message);
        end_program(&fused);
    }
}

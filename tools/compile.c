/* tools/compile.c - the facade of the compiler.
 *
 * Memory: everything of a compilation lives in one arena. When that runs out, the allocation jumps
 * back here; values and mapped files are released by the clean-up that both ways share. */
#include "tools/compile.h"

#include <stdlib.h>

#include "frontend/archive/archive.h"
#include "frontend/ast.h"
#include "ir/live_memory.h"
#include "passes/passes.h"
#include "runtime/base/file.h"
#include "tools/report.h"
#ifdef TS_HAVE_LLVM
#include "codegen/spill.h"
#include "tools/compile_precision.h"
#include "tools/compile_tune.h"
#endif

enum { FOLD_BYTES = 64 << 20, FOLD_OPS = 10000000 };
static const size_t default_memory_limit = (size_t)3 << 29;

typedef struct compilation {
#ifdef TS_HAVE_LLVM
    cg_weight_report rounded;
#endif
    const tsc_options *options;
    const tsc_callbacks *callbacks;
    ts_arena *arena, *scratch;
    ir_module *module;
    fe_context *frontend;
    fe_diagnostics diagnostics;
    tsc_example example;
    tsc_check *check;
    fe_weights ir_weights; /* beside a .tsir input */
    rt_context context;
    struct cg_spill *spill;
    ts_str passes; /* passes.tsv, for the report */
    report_kernel *kernels;
    size_t kernel_count;
    jmp_buf handler;
} compilation;

static bool is_ir_text(const compilation *c) {
    return ts_str_ends_with(c->options->frontend.path, ".tsir");
}

/* "model.tsir" -> "model.safetensors". */
static const char *weights_beside(ts_arena *arena, ts_str path) {
    size_t stem = ts_str_ends_with(path, ".tsir") ? path.length - 5 : path.length;
    return ts_arena_format(arena, "%.*s.safetensors", (int)stem, path.data).data;
}

static ts_status find_ir_weight(void *user, ts_str name, rt_value *out) {
    compilation *c = user;
    if (!c->ir_weights.items) {
        ts_str path = ts_str_of(weights_beside(c->arena, c->options->frontend.path));
        TS_TRY(fe_weights_load(c->arena, path, false, &c->ir_weights));
    }
    const fe_weight *w = fe_weights_find(&c->ir_weights, name);
    if (!w)
        return ts_error_make(TS_ERR_INVALID_FILE, "weight @%.*s is not in the file beside",
                             TS_STR_ARG(name));
    *out = rt_retain(rt_from_tensor(w->tensor));
    return NULL;
}

/* --entry says what is called from outside, else the text does (`entry`), else it is forward, or the
 * first function. */
static ts_status mark_entries(compilation *c) {
    const fe_options *o = &c->options->frontend;
    bool is_marked = false;
    for (ir_function *f = c->module->functions; f; f = f->next) {
        f->is_entry = f->is_entry && o->entry_count == 0;
        is_marked |= f->is_entry;
    }
    ir_function *first = ir_function_find(c->module, TS_STR("forward"));
    first = first ? first : c->module->functions;
    if (!first)
        return ts_error_make(TS_ERR_INVALID_FILE, "there is no function in it");
    if (!is_marked && o->entry_count == 0)
        first->is_entry = true;
    for (size_t i = 0; i < o->entry_count; i++) {
        ir_function *f = ir_function_find(c->module, o->entries[i]);
        if (!f)
            return ts_error_make(TS_ERR_INVALID_INPUT, "--entry: there is no function %.*s",
                                 TS_STR_ARG(o->entries[i]));
        f->is_entry = true;
    }
    return NULL;
}

static ts_status load_ir_text(compilation *c) {
    ts_mapped_file file = {0};
    ts_str path = c->options->frontend.path;
    TS_TRY(ts_file_map(ts_arena_copy(c->arena, path.data, path.length), &file));
    ts_str text = ts_arena_str(c->arena, (ts_str){(const char *)file.data, file.length});
    ts_file_unmap(&file);
    TS_TRY(ir_parse_module(c->module, path, text, find_ir_weight, c));
    TS_TRY(ir_verify_module(c->module));
    return mark_entries(c);
}

static ts_status load(compilation *c) {
    const tsc_options *o = c->options;
    fe_options frontend = o->frontend;
    if (o->example) {
        TS_TRY(tsc_example_load(c->arena, o->example, &c->example));
        tsc_example_declare(c->arena, &c->example, &frontend);
    }
    fe_options *kept = TS_NEW(c->arena, fe_options);
    *kept = frontend;
    c->frontend = fe_context_make(c->module, kept, &c->diagnostics);
    if (is_ir_text(c))
        return load_ir_text(c);
    TS_TRY(fe_load(c->frontend));
    return fe_diagnostics_status(&c->diagnostics);
}

static ts_status library(void *user, ts_str name, ir_function **out) {
    compilation *c = user;
    return fe_library_function(c->frontend, name, out);
}

static void trim(void *user) {
    compilation *c = user;
    if (c->frontend)
        fe_forget_files(c->frontend);
#ifdef TS_HAVE_LLVM
    cg_spill_forget_all(c->spill);
#endif
}

static void *room(void *user, size_t bytes) {
#ifdef TS_HAVE_LLVM
    compilation *c = user;
    return cg_spill_alloc(c->spill, bytes);
#else
    (void)user, (void)bytes;
    return NULL;
#endif
}

/* Tables that a pass rounded; codegen adds the weights of products. */
static void rounded(void *user, ts_str name, ts_place place, const char *format, double error) {
#ifdef TS_HAVE_LLVM
    compilation *c = user;
    cg_weight_row row = {.name = name, .place = place, .format = format, .error = error};
    TS_APPEND(c->arena, c->rounded.rows, c->rounded.count, c->rounded.capacity, row);
#else
    (void)user, (void)name, (void)place, (void)format, (void)error;
#endif
}

static void sink(void *user, ts_str name, ts_str bytes) {
    compilation *c = user;
    const tsc_options *o = c->options;
    if (o->report && ts_str_is(name, "passes.tsv")) {
        c->passes = ts_arena_str(c->arena, bytes);
        if (!o->dump_all && !o->dump_changed)
            return;
    }
    if (c->callbacks->dump)
        c->callbacks->dump(c->callbacks->user, name, bytes);
}

static ts_status choose_target(compilation *c, pass_target *out) {
    ts_str kept = c->options->weights_dtype;
    ts_str device = c->options->device;
    *out = (pass_target){.vector_bytes = 32, .is_gpu = ts_str_is(device, "opencl") || ts_str_is(device, "cuda"), .opt_level = c->options->opt_level,
                         .fast_math = c->options->fast_math,
                         .rounds_weights = kept.length || c->options->computes_bf16,
                         .table_dtype = ts_str_is(kept, "bf16") ? RT_bfloat16
                                        : kept.length           ? RT_int8
                                                                : RT_float32};
#ifdef TS_HAVE_LLVM
    for (size_t i = 0; i < c->options->level_count; i++) {
        const cg_target_info *info = cg_target_find(ts_str_of(c->options->levels[i]));
        if (!info)
            return ts_error_make(TS_ERR_INVALID_INPUT, "--cpu: level '%.40s' is unknown; there are "
                                 "x86-64-v2, x86-64-v3, x86-64-v4, x86-64-v4-vnni, x86-64-v4-bf16, x86-64-v4-amx, "
                                 "native, aarch64",
                                 c->options->levels[i]);
        if (i == 0)
            out->vector_bytes = info->vector_bytes;
    }
#endif
    return NULL;
}

static ts_status run_passes(compilation *c) {
    const tsc_options *o = c->options;
    pass_target target;
    TS_TRY(choose_target(c, &target));
    if (ts_str_is(o->stop_after, "frontend"))
        return NULL;
    pass_context context = {.scratch = c->scratch, .target = &target, .library = library,
                            .library_user = c, .sink = sink, .sink_user = c,
                            .trim = trim, .trim_user = c, .room = room, .room_user = c,
                            .rounded = rounded, .rounded_user = c,
                            .evaluate_context = &c->context, .fold_byte_budget = FOLD_BYTES,
                            .fold_op_budget = FOLD_OPS};
    pass_options options = {.only = o->passes, .only_count = o->pass_count,
                            .stop_after = o->stop_after, .verify_each = o->verify_each,
                            .dump_all = o->dump_all, .dump_changed = o->dump_changed,
                            .dump_one = o->dump_one, .statistics = o->report != NULL};
    if (o->check_each) {
        c->check = tsc_check_make(c->arena, c->module, &c->example, &c->context);
        if (!c->check)
            return ts_error_make(TS_ERR_INVALID_INPUT, "--check-each needs an example for every "
                                 "argument: --example FILE.safetensors");
        TS_TRY(tsc_check_run(c->check, c->module, "frontend"));
        options.check = tsc_check_run;
        options.check_user = c->check;
    }
    if (o->passes && o->pass_count == 0)
        return NULL;
    TS_TRY(pass_run_pipeline(&context, c->module, &options));
    return fe_diagnostics_status(&c->diagnostics);
}

/* Text goes to the output file, or to the callback. */
static ts_status put_text(compilation *c, const ts_buffer *text) {
    TS_TRY(ts_buffer_status(text));
    if (c->options->output) {
        ts_file_part part = {.data = text->data, .length = text->length};
        return ts_file_write(c->options->output, &part, 1);
    }
    if (c->callbacks->text)
        c->callbacks->text(c->callbacks->user, (ts_str){text->data, text->length});
    return NULL;
}

static ts_status emit_ir(compilation *c) {
    ts_buffer text = {0};
    ir_weight_list weights = {0};
    /* Beside standard output and other devices there is no place for a file of weights. */
    bool is_file = c->options->output && strncmp(c->options->output, "/dev/", 5) != 0;
    ir_print_module(c->module, &text, is_file ? &weights : NULL);
    ts_status status = NULL;
    if (weights.count) {
        fe_weight *items = TS_NEW_ARRAY(c->arena, fe_weight, weights.count);
        for (size_t i = 0; i < weights.count; i++)
            items[i] = (fe_weight){weights.names[i], weights.tensors[i].as.tensor};
        const char *path = weights_beside(c->arena, ts_str_of(c->options->output));
        status = fe_safetensors_write(c->arena, ts_str_of(path), items, weights.count);
    }
    if (!status)
        status = put_text(c, &text);
    ts_buffer_deinit(&text);
    return status;
}

static ts_status emit_ast(compilation *c) {
    ts_mapped_file file = {0};
    ts_str path = c->options->frontend.path;
    TS_TRY(ts_file_map(ts_arena_copy(c->arena, path.data, path.length), &file));
    ts_str bytes = ts_arena_str(c->arena, (ts_str){(const char *)file.data, file.length});
    ts_file_unmap(&file);
    fe_source *source = NULL;
    TS_TRY(fe_source_make(c->arena, path, bytes, &source));
    ast_node *tree = fe_parse(c->arena, source, &c->diagnostics);
    TS_TRY(fe_diagnostics_status(&c->diagnostics));
    ts_buffer text = {0};
    ast_dump(tree, &text);
    ts_status status = put_text(c, &text);
    ts_buffer_deinit(&text);
    return status;
}

#ifdef TS_HAVE_LLVM
static void keep_kernels(compilation *c, const cg_kernel_list *list) {
    c->kernels = TS_NEW_ARRAY(c->arena, report_kernel, list->count + 1);
    c->kernel_count = list->count;
    for (size_t i = 0; i < list->count; i++) {
        const cg_kernel_info *k = &list->rows[i];
        c->kernels[i] = (report_kernel){k->op, k->symbol, k->level, cg_variant_get(k->variant)->name,
                                        k->flops};
    }
}
#endif

static ts_status emit_code(compilation *c) {
#ifdef TS_HAVE_LLVM
    static const cg_emit emits[] = {
        [TSC_EMIT_TSM] = CG_EMIT_TSM,   [TSC_EMIT_OBJ] = CG_EMIT_OBJ,
        [TSC_EMIT_SO] = CG_EMIT_SO,     [TSC_EMIT_LLVM] = CG_EMIT_LLVM,
        [TSC_EMIT_ASM] = CG_EMIT_ASM,   [TSC_EMIT_CUDA] = CG_EMIT_CUDA,
        [TSC_EMIT_PTX] = CG_EMIT_PTX,   [TSC_EMIT_OPENCL] = CG_EMIT_OPENCL};
    const tsc_options *o = c->options;
    const cg_target_info **levels = TS_NEW_ARRAY(c->arena, const cg_target_info *, o->level_count);
    for (size_t i = 0; i < o->level_count; i++)
        levels[i] = cg_target_find(ts_str_of(o->levels[i]));
    cg_options options = {.levels = levels, .level_count = o->level_count,
                          .opt_level = o->opt_level, .fast_math = o->fast_math,
                          .no_winograd = o->no_winograd,
                          .emit = emits[o->emit], .output_path = ts_str_of(o->output),
                          .source_name = o->frontend.path,
                          .device = ts_str_is(o->device, "opencl") ? CG_DEVICE_OPENCL
                                    : ts_str_is(o->device, "cuda") ? CG_DEVICE_CUDA
                                                                   : CG_DEVICE_CPU,
                          .cuda_arch = o->cuda_arch, .nvrtc_path = o->nvrtc_path,
                          .weights_dtype = ts_str_is(o->weights_dtype, "int8")   ? CG_WEIGHTS_INT8
                                           : ts_str_is(o->weights_dtype, "int4") ? CG_WEIGHTS_INT4
                                           : ts_str_is(o->weights_dtype, "bf16") ? CG_WEIGHTS_BF16
                                                                                 : CG_WEIGHTS_FLOAT32,
                          .computes_bf16 = o->computes_bf16, .report = &c->rounded,
                          .spill = c->spill, .trim = trim,
                          .jobs = o->jobs, .cache = ts_str_of(o->cache),
                          .trim_user = c};
    cg_tuning tuning = {0};
    if (o->tune) {
        TS_TRY(tsc_tune(c->module, c->arena, &options, o->tune_cache, &c->example, c->callbacks,
                        &tuning));
        options.tuning = &tuning;
    }
    cg_kernel_list kernels = {0};
    options.kernels = o->report ? &kernels : NULL;
    TS_TRY(cg_compile(c->module, c->arena, &options));
    keep_kernels(c, &kernels);
    if (!o->computes_bf16 && !o->weights_dtype.length)
        return NULL;
    return tsc_precision_weights(&c->rounded, c->callbacks);
#else
    (void)c;
    return ts_error_make(TS_ERR_UNSUPPORTED, "this tsc was built without code generation "
                         "(TS_LLVM=OFF): only --emit=tsir and --emit=ast work");
#endif
}

static ts_status write_report(compilation *c) {
    ts_buffer text = {0};
    report_input in = {c->module, c->options->frontend.path, c->passes, c->kernels, c->kernel_count};
    report_write(&in, &text);
    ts_status status = ts_buffer_status(&text);
    ts_file_part part = {.data = text.data, .length = text.length};
    if (!status)
        status = ts_file_write(c->options->report, &part, 1);
    ts_buffer_deinit(&text);
    return status;
}

typedef struct op_counts {
    size_t functions, ops, kernels, dynamic;
} op_counts;

static void count_block(const ir_block *block, op_counts *n, int depth) {
    for (const ir_op *op = block->first; op; op = op->next) {
        n->ops++;
        n->kernels += op->opcode == IR_OP_KERNEL;
        n->dynamic += op->opcode == IR_OP_CORE && rt_op_get(op->core)->lower != LOWER_scalar;
        for (size_t i = 0; op->opcode != IR_OP_KERNEL && depth < 1000 && i < op->region_count; i++)
            count_block(op->regions[i], n, depth + 1);
    }
}

static void stats(compilation *c) {
    if (!c->options->want_stats || !c->callbacks->note)
        return;
    ts_buffer text = {0};
    for (ir_function *f = c->module->functions; f; f = f->next) {
        op_counts n = {0};
        if (f->body)
            count_block(f->body, &n, 0);
        ts_buffer_format(&text, "%s %.*s: %zu operators, %zu compiled kernels, %zu tensor or "
                         "container operators on the dynamic path\n",
                         f->is_entry ? "entry" : "function", TS_STR_ARG(f->name), n.ops, n.kernels,
                         n.dynamic);
        if (f->is_entry && f->body) {
            ir_live_memory need = ir_live_memory_of(c->module, f);
            ts_str memory = ir_live_memory_text(c->module, &need);
            ts_buffer_format(&text, "  memory of a run: %.*s\n", TS_STR_ARG(memory));
        }
    }
    ts_buffer_format(&text, "memory of the compilation: %zu bytes\n", ts_arena_bytes(c->arena));
    if (!text.failed && text.length)
        c->callbacks->note(c->callbacks->user, (ts_str){text.data, text.length});
    ts_buffer_deinit(&text);
}

static ts_status run(compilation *c) {
    if (c->options->emit == TSC_EMIT_AST)
        return emit_ast(c);
    TS_TRY(load(c));
#ifdef TS_HAVE_LLVM
    c->spill = cg_spill_make(c->options->output);
#endif
    TS_TRY(run_passes(c));
    ts_status status = c->options->emit == TSC_EMIT_NOTHING ? NULL
                       : c->options->emit == TSC_EMIT_TSIR  ? emit_ir(c)
                                                            : emit_code(c);
    if (!status && c->options->report)
        status = write_report(c);
    if (!status)
        stats(c);
    return status;
}

/* Apart from tsc_compile, so that no local of its caller lives across the jump. */
static ts_status run_protected(compilation *c) {
    if (setjmp(c->handler))
        return ts_no_memory();
    ts_arena_set_handler(c->arena, &c->handler);
    ts_arena_set_handler(c->scratch, &c->handler);
    c->diagnostics.arena = c->arena;
    c->module = ir_module_make(c->arena);
    return run(c);
}

ts_status tsc_compile(const tsc_options *options, const tsc_callbacks *callbacks) {
    compilation *c = calloc(1, sizeof *c);
    if (!c)
        return ts_no_memory();
    c->options = options;
    c->callbacks = callbacks;
    c->context = (rt_context){.grad_enabled = true, .thread_budget = 1};
    size_t limit = options->memory_limit ? options->memory_limit : default_memory_limit;
    c->arena = ts_arena_create(limit);
    c->scratch = ts_arena_create(limit);
    ts_status status = c->arena && c->scratch ? run_protected(c) : ts_no_memory();
    if (callbacks->report)
        callbacks->report(callbacks->user, &c->diagnostics, status);
    tsc_check_release(c->check);
    tsc_example_release(&c->example);
    if (c->frontend)
        fe_context_deinit(c->frontend);
    fe_weights_deinit(&c->ir_weights);
#ifdef TS_HAVE_LLVM
    cg_spill_release(c->spill);
#endif
    if (c->module)
        ir_module_deinit(c->module);
    if (c->scratch)
        ts_arena_release(c->scratch);
    if (c->arena)
        ts_arena_release(c->arena);
    free(c);
#ifdef TS_HAVE_LLVM
    bool is_rounded = options->computes_bf16 || options->weights_dtype.length;
    if (!status && is_rounded && options->example && options->emit == TSC_EMIT_TSM)
        status = tsc_precision_results(options, callbacks);
#endif
    return status;
}

/* codegen/codegen.c - a module of IR to an artifact or to text, level by level. */
#include "codegen/compile_llvm.h"
#include "codegen/emit_host.h"
#include "runtime/base/file.h"

/* Emission and IR passes of one level; the unit is the caller's to release. */
static ts_status build_unit(cg_unit *unit, cg_program *program, const cg_options *options,
                            size_t level) {
    TS_TRY(cg_unit_init(unit, options->levels[level], options, program->ir, program->arena));
    TS_TRY(host_emit_module(unit, program, level == 0));
    return cg_unit_optimise(unit);
}

static ts_status build_image(cg_program *program, const cg_options *options, size_t level,
                             cg_image *out) {
    cg_unit unit = {0};
    LLVMMemoryBufferRef object = NULL;
    ts_status status = build_unit(&unit, program, options, level);
    if (!status)
        status = cg_unit_emit(&unit, LLVMObjectFile, &object);
    if (!status)
        status = cg_link_image(LLVMGetBufferStart(object), LLVMGetBufferSize(object),
                               program->function_count, &out->bytes);
    out->target = options->levels[level];
    if (object)
        LLVMDisposeMemoryBuffer(object);
    cg_unit_deinit(&unit);
    return status;
}

static ts_status write_text(cg_program *program, const cg_options *options) {
    cg_unit unit = {0};
    ts_status status = build_unit(&unit, program, options, 0);
    const char *path = ts_arena_str(program->arena, options->output_path).data;
    if (!status && options->emit == CG_EMIT_LLVM) {
        char *text = LLVMPrintModuleToString(unit.module);
        ts_file_part part = {text, strlen(text)};
        status = ts_file_write(path, &part, 1);
        LLVMDisposeMessage(text);
    } else if (!status) {
        LLVMMemoryBufferRef text = NULL;
        status = cg_unit_emit(&unit, LLVMAssemblyFile, &text);
        if (!status) {
            ts_file_part part = {LLVMGetBufferStart(text), LLVMGetBufferSize(text)};
            status = ts_file_write(path, &part, 1);
        }
        if (text)
            LLVMDisposeMemoryBuffer(text);
    }
    cg_unit_deinit(&unit);
    return status;
}

static ts_status write_tsm(cg_program *program, const cg_options *options) {
    cg_image *images = TS_NEW_ARRAY(program->arena, cg_image, options->level_count);
    ts_status status = NULL;
    for (size_t i = 0; i < options->level_count && !status; i++)
        status = build_image(program, options, i, &images[i]);
    if (!status) {
        cg_program_intern_entries(program);
        cg_program_mark_mutable(program);
        status = cg_write_artifact(program, options, images, options->level_count);
    }
    for (size_t i = 0; i < options->level_count; i++)
        ts_buffer_deinit(&images[i].bytes);
    return status;
}

ts_status cg_compile(ir_module *m, ts_arena *arena, const cg_options *options) {
    if (options->level_count == 0)
        return ts_error_make(TS_ERR_INVALID_INPUT, "expected a CPU level, found none");
    cg_program *program = cg_program_make(arena, m);
    TS_TRY(cg_program_collect(program));
    ts_status status = NULL;
    switch (options->emit) {
    case CG_EMIT_TSM: status = write_tsm(program, options); break;
    case CG_EMIT_LLVM:
    case CG_EMIT_ASM: status = write_text(program, options); break;
    case CG_EMIT_OBJ:
    case CG_EMIT_SO: status = cg_write_object(program, options); break;
    case CG_EMIT_OPENCL:
    case CG_EMIT_CUDA:
    case CG_EMIT_PTX:
        status = ts_error_make(TS_ERR_UNSUPPORTED, "this output form is not supported yet");
        break;
    }
    ts_status_release(program->error);
    return status;
}

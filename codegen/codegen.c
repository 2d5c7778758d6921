/* codegen/codegen.c - a module of IR to an artifact or to text, level by level. */
#include "codegen/compile_parts.h"
#include "codegen/dialect.h"
#include "codegen/emit_host.h"
#include "codegen/weight_formats.h"
#include "runtime/base/file.h"

/* Emission and IR passes of one level; the unit is the caller's to release. Kernels of a device go
 * to device_source, which may be NULL. */
static ts_status build_unit(cg_unit *unit, cg_program *program, const cg_options *options,
                            size_t level, ts_buffer *device_source) {
    TS_TRY(cg_unit_init(unit, options->levels[level], options, program->ir, program->arena));
    unit->weights = program->packed;
    if (device_source) {
        unit->dialect = options->device == CG_DEVICE_CUDA ? &cg_dialect_cuda : &cg_dialect_opencl;
        unit->device_source = device_source;
        ts_buffer_text(device_source, unit->dialect->preamble);
        ts_buffer_char(device_source, '\n');
    }
    return host_emit_module(unit, program, level == 0);
}

/* All levels are emitted before any is compiled, so that every thread has something to do. */
typedef struct level_parts {
    cg_part *parts;
    size_t first, count; /* of all parts */
} level_parts;

static ts_status emit_level(cg_program *program, const cg_options *options, size_t level,
                            ts_buffer *device_source, level_parts *out) {
    cg_unit unit = {0};
    ts_status status = build_unit(&unit, program, options, level, device_source);
    if (!status)
        status = cg_parts_take(&unit, &out->parts, &out->count);
    cg_unit_deinit(&unit);
    return status;
}

static ts_status link_level(cg_program *program, const cg_part *parts, size_t count,
                            cg_image *out) {
    cg_object *objects = TS_NEW_ARRAY(program->arena, cg_object, count);
    for (size_t i = 0; i < count; i++)
        objects[i] = (cg_object){parts[i].object, parts[i].object_bytes};
    return cg_link_image(objects, count, program->function_count, &out->bytes);
}

static ts_status build_images(cg_program *program, const cg_options *options,
                              ts_buffer *device_source, cg_image *images) {
    level_parts *levels = TS_NEW_ARRAY(program->arena, level_parts, options->level_count);
    ts_status status = NULL;
    size_t total = 0;
    for (size_t i = 0; i < options->level_count && !status; i++) {
        status = emit_level(program, options, i, device_source, &levels[i]);
        levels[i].first = total;
        total += levels[i].count;
    }
    cg_part *all = TS_NEW_ARRAY(program->arena, cg_part, total + 1);
    for (size_t i = 0; i < options->level_count; i++)
        for (size_t k = 0; k < levels[i].count; k++)
            all[levels[i].first + k] = levels[i].parts[k];
    if (!status)
        status = cg_parts_compile(all, total, options);
    for (size_t i = 0; i < options->level_count && !status; i++) {
        images[i].target = options->levels[i];
        status = link_level(program, all + levels[i].first, levels[i].count, &images[i]);
    }
    cg_parts_release(all, total);
    return status;
}

static ts_status write_text(cg_program *program, const cg_options *options) {
    cg_unit unit = {0};
    ts_status status = build_unit(&unit, program, options, 0, NULL);
    if (!status)
        status = cg_unit_optimise(&unit);
    const char *path = ts_arena_str(program->arena, options->output_path).data;
    if (!status && options->emit == CG_EMIT_LLVM) {
        char *text = LLVMPrintModuleToString(unit.module);
        ts_file_part part = {.data = text, .length = strlen(text)};
        status = ts_file_write(path, &part, 1);
        LLVMDisposeMessage(text);
    } else if (!status) {
        LLVMMemoryBufferRef text = NULL;
        status = cg_unit_emit(&unit, LLVMAssemblyFile, &text);
        if (!status) {
            ts_file_part part = {.data = LLVMGetBufferStart(text), .length = LLVMGetBufferSize(text)};
            status = ts_file_write(path, &part, 1);
        }
        if (text)
            LLVMDisposeMemoryBuffer(text);
    }
    cg_unit_deinit(&unit);
    return status;
}

/* --emit=opencl, cuda, ptx: the device's side alone. */
static ts_status write_device_text(cg_program *program, const cg_options *options) {
    cg_unit unit = {0};
    ts_buffer source = {0};
    cg_options with = *options;
    with.device = options->emit == CG_EMIT_OPENCL ? CG_DEVICE_OPENCL : CG_DEVICE_CUDA;
    cg_device_code *codes = NULL;
    size_t count = 0;
    ts_status status = build_unit(&unit, program, &with, 0, &source);
    const char *path = ts_arena_str(program->arena, options->output_path).data;
    const ts_buffer *bytes = &source;
    if (!status && options->emit == CG_EMIT_PTX) {
        with.cuda_arch = (ts_str){0};
        status = cg_compile_cuda(program->arena, &with, &source, &codes, &count);
        for (size_t i = 0; i < count; i++)
            if (strcmp(codes[i].level, "ptx") == 0)
                bytes = &codes[i].bytes;
    }
    if (!status)
        status = ts_buffer_status(bytes);
    if (!status) {
        ts_file_part part = {.data = bytes->data, .length = bytes->length};
        status = ts_file_write(path, &part, 1);
    }
    for (size_t i = 0; i < count; i++)
        ts_buffer_deinit(&codes[i].bytes);
    ts_buffer_deinit(&source);
    cg_unit_deinit(&unit);
    return status;
}

static ts_status device_codes(cg_program *program, const cg_options *options, ts_buffer *source,
                              cg_device_code **out, size_t *out_count) {
    *out_count = 0;
    TS_TRY(ts_buffer_status(source));
    if (options->device == CG_DEVICE_CUDA)
        return cg_compile_cuda(program->arena, options, source, out, out_count);
    *out = TS_NEW(program->arena, cg_device_code);
    ts_buffer_char(source, 0); /* OpenCL takes it as text */
    **out = (cg_device_code){"opencl", *source};
    *source = (ts_buffer){0};
    *out_count = 1;
    return ts_buffer_status(&(*out)->bytes);
}

static ts_status write_tsm(cg_program *program, const cg_options *given) {
    /* Which kernels a device takes is decided with the first CPU level; the host program and the
     * fallback are of that level alone. */
    cg_options one = *given;
    const cg_options *options = &one;
    bool has_device = one.device != CG_DEVICE_CPU;
    if (has_device)
        one.level_count = 1;
    cg_image *images = TS_NEW_ARRAY(program->arena, cg_image, options->level_count);
    ts_buffer source = {0};
    cg_device_code *codes = NULL;
    size_t code_count = 0;
    ts_status status = NULL;
    status = build_images(program, options, has_device ? &source : NULL, images);
    if (!status && has_device)
        status = device_codes(program, options, &source, &codes, &code_count);
    if (!status) {
        cg_program_intern_entries(program);
        cg_program_mark_mutable(program);
        status = cg_write_artifact(program, options, images, options->level_count, codes,
                                   code_count);
    }
    for (size_t i = 0; i < options->level_count; i++)
        ts_buffer_deinit(&images[i].bytes);
    for (size_t i = 0; i < code_count; i++)
        ts_buffer_deinit(&codes[i].bytes);
    ts_buffer_deinit(&source);
    return status;
}

ts_status cg_compile(ir_module *m, ts_arena *arena, const cg_options *options) {
    if (options->level_count == 0)
        return ts_error_make(TS_ERR_INVALID_INPUT, "expected a CPU level, found none");
    cg_program *program = cg_program_make(arena, m);
    program->spill = options->spill;
    program->packed = kn_weight_store_make(arena, options->spill);
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
    case CG_EMIT_PTX: status = write_device_text(program, options); break;
    }
    ts_status_release(program->error);
    if (options->report)
        kn_weight_store_report(program->packed, options->report);
    return status;
}

/* codegen/write_object.c - a model as an object file with a header, or as a shared library: the
 * parts of a .tsm as constants, and one exported descriptor (struct tsrt_linked_model). */
#include "codegen/compile_llvm.h"
#include "codegen/emit_host.h"
#include "runtime/base/file.h"

/* C names of the reference kernels: a static link takes only those that a model uses. */
static const char *const kernel_names[OP_COUNT + 1] = {
#define OP(id, schema, infer, ref, lower, grad, effects) [OP_##id] = "rt_ref_" #ref,
#include "runtime/ops/core_ops.def"
};

static LLVMValueRef private_constant(cg_unit *u, LLVMValueRef value, const char *name,
                                     unsigned align) {
    LLVMValueRef g = LLVMAddGlobal(u->module, LLVMTypeOf(value), name);
    LLVMSetInitializer(g, value);
    LLVMSetGlobalConstant(g, true);
    LLVMSetLinkage(g, LLVMPrivateLinkage);
    LLVMSetAlignment(g, align);
    return g;
}

static LLVMValueRef bytes_constant(cg_unit *u, const char *data, size_t length, const char *name,
                                   unsigned align) {
    LLVMValueRef v = LLVMConstStringInContext2(u->context, data, length, true);
    return private_constant(u, v, name, align);
}

static LLVMValueRef pointer_array(cg_unit *u, LLVMValueRef *items, size_t count,
                                  const char *name) {
    if (!count)
        return LLVMConstNull(u->pointer);
    return private_constant(u, LLVMConstArray2(u->pointer, items, count), name, 8);
}

static ts_status weights_constant(cg_unit *u, const cg_program *p, LLVMValueRef *out) {
    *out = LLVMConstNull(u->pointer);
    if (!p->weight_bytes)
        return NULL;
    ts_buffer b = {0};
    for (size_t i = 0; i < p->part_count; i++) {
        ts_buffer_append(&b, p->parts[i].data, p->parts[i].bytes);
        ts_buffer_align(&b, TSM_WEIGHT_ALIGN);
    }
    ts_status status = ts_buffer_status(&b);
    if (!status)
        *out = bytes_constant(u, b.data, b.length, "tsm_weights", TSM_WEIGHT_ALIGN);
    ts_buffer_deinit(&b);
    return status;
}

static LLVMValueRef kernel_array(cg_unit *u, const cg_program *p) {
    LLVMValueRef *items = TS_NEW_ARRAY(u->arena, LLVMValueRef, p->operator_count + 1);
    LLVMTypeRef params[] = {u->pointer, u->pointer, u->pointer};
    LLVMTypeRef type = LLVMFunctionType(u->pointer, params, 3, false);
    for (size_t i = 0; i < p->operator_count; i++) {
        const char *name = kernel_names[p->operators[i]];
        items[i] = LLVMGetNamedFunction(u->module, name);
        if (!items[i])
            items[i] = LLVMAddFunction(u->module, name, type);
    }
    return pointer_array(u, items, p->operator_count, "tsm_kernels");
}

static ts_status add_descriptor(cg_unit *u, cg_program *p, const ts_buffer *tables,
                                const char *name, bool names_kernels) {
    LLVMValueRef *functions = TS_NEW_ARRAY(u->arena, LLVMValueRef, p->function_count + 1);
    for (size_t i = 0; i < p->function_count; i++) {
        const char *f = ts_arena_format(u->arena, "tsf_%zu", i).data;
        functions[i] = LLVMGetNamedFunction(u->module, f);
        /* Several models may be linked into one program. */
        LLVMSetLinkage(functions[i], LLVMInternalLinkage);
        LLVMSetVisibility(functions[i], LLVMDefaultVisibility);
    }
    LLVMValueRef weights;
    TS_TRY(weights_constant(u, p, &weights));
    const char *level = u->target->name;
    LLVMValueRef fields[] = {
        LLVMConstInt(u->i32, TSM_ABI, false),
        LLVMConstInt(u->i32, TSM_FORMAT, false),
        LLVMConstInt(u->i64, cg_target_features(u->target), false),
        bytes_constant(u, level, strlen(level) + 1, "tsm_level", 1),
        bytes_constant(u, tables->data, tables->length, "tsm_program", 16),
        LLVMConstInt(u->i64, tables->length, false),
        weights,
        LLVMConstInt(u->i64, p->weight_bytes, false),
        pointer_array(u, functions, p->function_count, "tsm_functions"),
        LLVMConstInt(u->i64, p->function_count, false),
        names_kernels ? kernel_array(u, p) : LLVMConstNull(u->pointer),
    };
    LLVMValueRef value = LLVMConstStructInContext(u->context, fields,
                                                  sizeof fields / sizeof fields[0], false);
    LLVMValueRef g = LLVMAddGlobal(u->module, LLVMTypeOf(value), name);
    LLVMSetInitializer(g, value);
    LLVMSetGlobalConstant(g, true);
    LLVMSetAlignment(g, 8);
    return NULL;
}

/* "out/my-net.o" -> "my_net": what may stand in a C name. */
static ts_str stem_of(ts_arena *arena, ts_str path) {
    size_t begin = path.length, end = path.length;
    while (begin > 0 && path.data[begin - 1] != '/')
        begin--;
    for (size_t i = path.length; i > begin + 1; i--)
        if (path.data[i - 1] == '.') {
            end = i - 1;
            break;
        }
    char *name = ts_arena_copy(arena, path.data + begin, end - begin);
    for (size_t i = 0; i < end - begin; i++) {
        char c = name[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!is_letter && !(i && c >= '0' && c <= '9'))
            name[i] = '_';
    }
    return (ts_str){name, end - begin};
}

/* What the inputs must satisfy, line by line. */
static void put_needs(const ir_function *f, ts_buffer *b) {
    ts_buffer fast = {0};
    for (size_t i = 0; i < f->need_count; i++) {
        ts_buffer_text(b, f->needs[i].is_own ? " *       raises unless " : " *       requires ");
        ir_need_print(f, &f->needs[i], b);
        ts_buffer_char(b, '\n');
    }
    ir_print_assumptions(f, &fast);
    for (size_t at = 0; at < fast.length;) {
        size_t n = 0;
        while (fast.data[at + n] != '\n')
            n++;
        ts_buffer_format(b, " *       fast for %.*s\n", (int)n, fast.data + at);
        at += n + 1;
    }
    b->failed |= fast.failed;
    ts_buffer_deinit(&fast);
}

static ts_status write_header(cg_program *p, const cg_options *options, ts_str stem) {
    ts_arena *arena = p->arena;
    ts_str out = options->output_path;
    size_t base = out.length;
    for (size_t i = out.length; i > 0 && out.data[i - 1] != '/'; i--)
        if (out.data[i - 1] == '.') {
            base = i - 1;
            break;
        }
    ts_buffer b = {0};
    ts_buffer_format(&b, "/* Compiled from %.*s. Link the object with libtsrt.a (-lm -lpthread). */\n",
                     TS_STR_ARG(options->source_name));
    ts_buffer_format(&b, "#ifndef TSRT_MODEL_%.*s_H\n#define TSRT_MODEL_%.*s_H\n\n",
                     TS_STR_ARG(stem), TS_STR_ARG(stem));
    ts_buffer_text(&b, "#include \"tsrt.h\"\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    ts_buffer_text(&b, "/* tsrt_model_open_linked(&");
    ts_buffer_str(&b, stem);
    ts_buffer_text(&b, "_model, &model); entries in order:\n");
    for (size_t e = 0; e < p->entry_count; e++) {
        const ir_function *f = p->entries[e].function;
        ts_buffer_format(&b, " *   %zu %.*s(", e, TS_STR_ARG(f->name));
        for (size_t i = p->entries[e].self_count; i < f->body->parameter_count; i++) {
            ts_buffer_text(&b, i > p->entries[e].self_count ? ", " : "");
            ts_buffer_format(&b, "%.*s: ", TS_STR_ARG(f->parameter_names[i]));
            ir_type_print(p->ir, f->body->parameters[i]->type, &b);
        }
        ts_buffer_text(&b, ") -> ");
        if (f->return_type)
            ir_type_print(p->ir, f->return_type, &b);
        ts_buffer_char(&b, '\n');
        put_needs(f, &b);
    }
    ts_buffer_format(&b, " */\nextern const tsrt_linked_model %.*s_model;\n\n", TS_STR_ARG(stem));
    ts_buffer_text(&b, "#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    ts_status status = ts_buffer_status(&b);
    if (!status) {
        ts_file_part part = {.data = b.data, .length = b.length};
        status = ts_file_write(ts_arena_format(arena, "%.*s.h", (int)base, out.data).data, &part,
                               1);
    }
    ts_buffer_deinit(&b);
    return status;
}

static ts_status finish(cg_unit *unit, cg_program *p, const cg_options *options,
                        const ts_buffer *tables) {
    ts_str stem = stem_of(p->arena, options->output_path);
    const char *name = ts_arena_format(p->arena, "%.*s_model", (int)stem.length, stem.data).data;
    TS_TRY(add_descriptor(unit, p, tables, name, options->emit == CG_EMIT_OBJ));
    TS_TRY(cg_unit_optimise(unit));
    LLVMMemoryBufferRef object = NULL;
    TS_TRY(cg_unit_emit(unit, LLVMObjectFile, &object));
    ts_file_part part = {.data = LLVMGetBufferStart(object), .length = LLVMGetBufferSize(object)};
    const char *path = ts_arena_str(p->arena, options->output_path).data;
    ts_status status = options->emit == CG_EMIT_SO ? cg_write_shared(path, part.data, part.length)
                                                   : ts_file_write(path, &part, 1);
    LLVMDisposeMemoryBuffer(object);
    return status ? status : write_header(p, options, stem);
}

ts_status cg_write_object(cg_program *program, const cg_options *options) {
    cg_unit unit = {0};
    ts_buffer tables = {0};
    ts_status status =
        cg_unit_init(&unit, options->levels[0], options, program->ir, program->arena);
    unit.weights = program->packed;
    if (!status)
        status = host_emit_module(&unit, program, true);
    if (!status) {
        cg_program_intern_entries(program);
        cg_program_mark_mutable(program);
        status = cg_program_write(program, options, &tables);
    }
    if (!status)
        status = finish(&unit, program, options, &tables);
    ts_buffer_deinit(&tables);
    cg_unit_deinit(&unit);
    return status;
}

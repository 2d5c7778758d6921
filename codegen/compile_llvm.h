/* codegen/compile_llvm.h - units of LLVM: made, compiled, released; objects linked to images. */
#ifndef CODEGEN_COMPILE_LLVM_H
#define CODEGEN_COMPILE_LLVM_H

#include "codegen/host_program.h"

ts_status cg_unit_init(cg_unit *unit, const cg_target_info *target, const cg_options *options,
                       ir_module *ir, ts_arena *arena) TS_WARN_UNUSED;
void cg_unit_deinit(cg_unit *unit);
ts_status cg_unit_make_machine(cg_unit *unit, LLVMTargetRef target) TS_WARN_UNUSED;
/* Where the module is large, what follows goes into a new one: modules are compiled in parallel and
 * kept in the cache one by one. Only kernels are named across modules. */
void cg_unit_next_module(cg_unit *unit);
/* A kernel by its symbol, declared where it lies in another module. */
LLVMValueRef cg_unit_kernel(cg_unit *unit, ts_str symbol);
/* Takes away the last kernel made, and what was made for it alone. */
void cg_unit_drop_kernel(cg_unit *unit, ts_str symbol);
/* Verifies the module and runs the few IR passes that pay. */
ts_status cg_unit_optimise(cg_unit *unit) TS_WARN_UNUSED;
/* Assembly or object; *out is the caller's. */
ts_status cg_unit_emit(cg_unit *unit, LLVMCodeGenFileType type, LLVMMemoryBufferRef *out)
    TS_WARN_UNUSED;

typedef struct cg_object {
    const void *data;
    size_t length;
} cg_object;

/* ELF objects to a code image (runtime/format/tsm.h): sections laid out, PC-relative relocations
 * resolved, also from one object to another. Refuses undefined symbols, writable data, other relocations. */
ts_status cg_link_image(const cg_object *objects, size_t count, size_t function_count,
                        ts_buffer *out_image) TS_WARN_UNUSED;

typedef struct cg_image {
    const cg_target_info *target;
    ts_buffer bytes;
} cg_image;

typedef struct cg_device_code { /* a DEVICE section */
    const char *level; /* "opencl", "ptx", "sm_80" */
    ts_buffer bytes;
} cg_device_code;

ts_status cg_write_artifact(cg_program *program, const cg_options *options,
                            cg_image *images, size_t count,
                            const cg_device_code *device, size_t device_count) TS_WARN_UNUSED;

/* CUDA source through NVRTC to a cubin for each architecture of options->cuda_arch, and PTX.
 * *out_codes and their text are the arena's, the bytes the caller's. */
ts_status cg_compile_cuda(ts_arena *arena, const cg_options *options, const ts_buffer *source,
                          cg_device_code **out_codes, size_t *out_count) TS_WARN_UNUSED;

/* TSM_CPU_ bits that code of a level needs. */
uint64_t cg_target_features(const cg_target_info *target);
/* LLVM's names of what a level has beyond its processor: "+gfni,...". */
ts_str cg_target_feature_names(const cg_target_info *target, ts_arena *arena);
/* --emit=obj and --emit=so of the first level, with a header beside. */
ts_status cg_write_object(cg_program *program, const cg_options *options) TS_WARN_UNUSED;
ts_status cg_write_shared(const char *path, const void *object, size_t length) TS_WARN_UNUSED;

#endif

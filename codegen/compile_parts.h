/* codegen/compile_parts.h - the modules of LLVM that a program was cut into, to objects: on several
 * threads, and through a cache of what was compiled before. */
#ifndef CODEGEN_COMPILE_PARTS_H
#define CODEGEN_COMPILE_PARTS_H

#include "codegen/compile_llvm.h"

typedef struct cg_part {
    const cg_target_info *target;
    const char *cpu, *features;
    LLVMMemoryBufferRef bitcode; /* until it is compiled */
    void *object;
    size_t object_bytes;
    ts_status status;
} cg_part;

/* The modules of a unit as parts in the arena; the unit may go then. */
ts_status cg_parts_take(cg_unit *unit, cg_part **out, size_t *out_count) TS_WARN_UNUSED;
/* Compiles all: the same bytes for any number of jobs, with a cache and without. cache is a folder,
 * or empty. */
ts_status cg_parts_compile(cg_part *parts, size_t count, const cg_options *options) TS_WARN_UNUSED;
void cg_parts_release(cg_part *parts, size_t count);

#endif

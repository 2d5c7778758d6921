/* codegen/codegen.h - IR to bytes.
 *
 * The host program (emit_host.c) is native code for everything between kernels; a kernel is what an
 * IR_OP_KERNEL becomes. Both go into one LLVM module per CPU level, are compiled to a
 * position-independent image without external relocations and stored in the artifact. */
#ifndef CODEGEN_CODEGEN_H
#define CODEGEN_CODEGEN_H

#include "codegen/tuning.h"
#include "ir/ir.h"

typedef enum cg_level { CG_X86_64_V2, CG_X86_64_V3, CG_X86_64_V4, CG_X86_64_V4_VNNI,
                        CG_X86_64_V4_BF16, CG_X86_64_V4_AMX, CG_NATIVE,
                        CG_AARCH64 } cg_level;

typedef struct cg_target_info { /* one row per level: codegen/targets.c */
    cg_level level;
    const char *name;      /* "x86-64-v3" */
    const char *triple, *cpu, *features;
    int vector_bytes;      /* 16, 32, 64 */
    int vector_registers;  /* 16 or 32 */
    bool has_fma;
    bool has_bf16; /* AVX512-BF16: dot products of bfloat16 pairs */
    bool has_vnni; /* AVX512-VNNI: dot products of bytes */
    bool has_amx;  /* AMX: products of tiles of bfloat16 */
} cg_target_info;

const cg_target_info *cg_target_find(ts_str name); /* NULL: unknown */
bool cg_target_runs_here(const cg_target_info *target);

typedef enum cg_emit { CG_EMIT_TSM, CG_EMIT_OBJ, CG_EMIT_SO, CG_EMIT_LLVM, CG_EMIT_ASM,
                       CG_EMIT_OPENCL, CG_EMIT_CUDA, CG_EMIT_PTX } cg_emit;

typedef enum cg_device { CG_DEVICE_CPU, CG_DEVICE_OPENCL, CG_DEVICE_CUDA } cg_device;

/* How products keep their constant weights. */
typedef enum cg_weights_dtype { CG_WEIGHTS_FLOAT32, CG_WEIGHTS_BF16, CG_WEIGHTS_INT8,
                                CG_WEIGHTS_INT4 } cg_weights_dtype;

typedef struct cg_weight_row { /* a weight that was rounded */
    ts_str name;        /* "layer1.0.weight"; may be empty, then place says where it is used */
    ts_place place;
    const char *format; /* "int8" */
    int64_t k, n;       /* length of the sums, columns */
    double error;       /* |rounded - exact| / |exact|, Frobenius norms */
} cg_weight_row;

typedef struct cg_weight_report { /* memory of the compilation's arena */
    cg_weight_row *rows;
    size_t count, capacity;
} cg_weight_report;

typedef struct cg_options {
    const cg_target_info *const *levels;
    size_t level_count;
    int opt_level;
    bool fast_math;
    cg_weights_dtype weights_dtype; /* of linear layers and matrices; bf16: of convolutions too */
    bool computes_bf16; /* products with constant weights: operands in bfloat16, sums in float32 */
    cg_weight_report *report; /* filled where not NULL */
    const cg_tuning *tuning;    /* variants of kernels; NULL: the schedule's choices */
    cg_kernel_list *kernels;    /* filled where not NULL */
    bool no_winograd;    /* 3x3 convolutions as direct sums */
    cg_emit emit;
    cg_device device;    /* kernels are made for it and for the CPU */
    ts_str cuda_arch;    /* "sm_80,sm_90": cubins beside PTX; may be empty */
    ts_str nvrtc_path;   /* where to look first; may be empty */
    ts_str output_path;
    struct cg_spill *spill;   /* for packed weights; may be NULL */
    int jobs;                 /* threads for LLVM; 0: one */
    ts_str cache;             /* folder of objects that were compiled before, or empty */
    void (*trim)(void *user); /* weights that were read may leave memory; may be NULL */
    void *trim_user;
    ts_str source_name;  /* for metadata */
} cg_options;

ts_status cg_compile(ir_module *m, ts_arena *arena, const cg_options *options) TS_WARN_UNUSED;

#endif

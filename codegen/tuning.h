/* codegen/tuning.h - variants of kernels: which there are, and which a compilation takes. */
#ifndef CODEGEN_TUNING_H
#define CODEGEN_TUNING_H

#include "ir/ir.h"

typedef struct cg_variant { /* a row of tuning.def */
    const char *name;
    int winograd, block_percent, vectors, chunk_percent;
} cg_variant;

size_t cg_variant_count(void);
const cg_variant *cg_variant_get(size_t index); /* the default where there is no such row */
size_t cg_variant_find(ts_str name);            /* the default's index where there is none */

typedef struct cg_choice {
    uint64_t key; /* of a kernel: its operators, types and processor level */
    uint8_t variant;
} cg_choice;

typedef struct cg_tuning {
    uint8_t otherwise; /* the variant of kernels that no choice names */
    const cg_choice *choices;
    size_t count;
} cg_tuning;

size_t cg_tuning_variant(const cg_tuning *tuning, uint64_t key); /* tuning may be NULL */

typedef struct cg_kernel_info { /* a kernel as it was compiled for a level */
    const ir_op *op;
    ts_str symbol;
    const char *level;
    uint64_t key, body; /* body: a hash of its code, which tells whether a variant changed it */
    uint8_t variant;
    double flops;
} cg_kernel_info;

typedef struct cg_kernel_list { /* memory of the compilation's arena; kernels that are one stand once */
    cg_kernel_info *rows;
    size_t count, capacity;
} cg_kernel_list;

#endif

/* codegen/emit_llvm_amx.h - float32 products by tiles of bfloat16: what the files that use them share.
 *
 * A float32 x is the sum of three bfloat16: hi, the nearest to x, mid, the nearest to what is left, and lo, the
 * rest, which is exact. Six of the nine products of two such sums are computed,
 *
 *   hi*hi + hi*mid + mid*mid + mid*hi + lo*hi + hi*lo
 *
 * with sums in float32; the other three are below 2^-25 of the product, where rounding once to float32 costs up
 * to 2^-24. Measured, errors are half of those of a chain of float32 multiply-adds.
 *
 * Parts lie as tiles do, [step of 32 terms][tile of rows, or panel: two][hi, mid, lo][16 rows or pairs][64 bytes].
 * Terms k and 16 + k of a step make a pair, so that splitting needs no permutation.
 *
 * What is not finite has no such parts (inf - inf): flags, vectors of 16 floats, become NaN where something split
 * is not finite. AMX takes numbers below 2^-126 as zeros, parts too: a number below 2^-110 counts with fewer bits. */
#ifndef CODEGEN_EMIT_LLVM_AMX_H
#define CODEGEN_EMIT_LLVM_AMX_H

#include "codegen/emit_llvm_kernel.h"

enum { AMX_STEP = 32, AMX_PART_BYTES = 1024, AMX_OPERAND_BYTES = 3 * AMX_PART_BYTES,
       AMX_STEP_BYTES = 2 * AMX_OPERAND_BYTES };
enum { AMX_STEP_UNITS = 32 }; /* of two panels: pairs of lines to be split */
enum { AMX_FLAG_BYTES = 64 };

/* Tiles 0 to 3 are sums, 4 and 5 of `rows` rows, 6 and 7 of columns; before and after all products of a function. */
void kn_amx_begin(kn_emitter *e, int rows);
void kn_amx_end(kn_emitter *e);

/* Rows whose terms are adjacent. */
typedef struct kn_amx_rows {
    LLVMValueRef from;  /* row 0 at the first term; NULL: none */
    LLVMValueRef bytes; /* from a row to the next */
    LLVMValueRef to;
    LLVMValueRef flags; /* an address; what is there is added to */
    LLVMValueRef terms; /* those that exist from the first one on; NULL: all of every step */
} kn_amx_rows;

/* Two panels of 16 columns, a line for each term. Units count (step, panel, pair of lines). */
typedef struct kn_amx_columns {
    LLVMValueRef from[2], to;
    LLVMValueRef line_bytes; /* NULL: 64 */
    LLVMValueRef last_line;  /* terms past it meet zeros of the rows: this one will do; NULL: none are */
    LLVMValueRef ahead;      /* bytes to what is split next, which is asked for; NULL: a cache has it */
    LLVMValueRef flags;      /* as above; NULL: they are known to be finite */
} kn_amx_columns;

/* Some of `rows` rows of one tile, from a row and its place in a part on. */
void kn_amx_split_rows(kn_emitter *e, const kn_amx_rows *r, LLVMValueRef count, LLVMValueRef steps);
/* Units [first, end), a multiple of 4 of them. */
void kn_amx_split_columns(kn_emitter *e, const kn_amx_columns *c, LLVMValueRef first, LLVMValueRef end);

typedef struct kn_amx_product {
    int rows;                    /* of a tile: 16 or fewer */
    LLVMValueRef parts, columns; /* two tiles of rows, two panels */
    LLVMValueRef steps;
    LLVMValueRef before, to; /* [2 * rows][32] sums, that before is a null pointer for zeros */
    LLVMValueRef to_bytes;   /* from a row of sums to the next */
    /* Between the products: the rows of two other tiles, and `units` units of other columns for each step, a power of
     * two or 0. Those past the last one are the last ones again. */
    kn_amx_rows next_rows;
    kn_amx_columns next_columns;
    int units;
    LLVMValueRef first_unit, end_unit; /* of this product; of all */
} kn_amx_product;

/* Whether a vector of flags says that something was not finite: i1. */
LLVMValueRef kn_amx_is_flagged(kn_emitter *e, LLVMValueRef flags);
void kn_amx_multiply(kn_emitter *e, const kn_amx_product *p);

#endif

/* codegen/emit_llvm_attention.h - what the two forms of attention share: its pieces, and what happens to a block of
 * scores between the two products. */
#ifndef CODEGEN_EMIT_LLVM_ATTENTION_H
#define CODEGEN_EMIT_LLVM_ATTENTION_H

#include "codegen/emit_llvm_kernel.h"

/* Of emit_llvm_amx_attention.c; pairs is 0 where that does not apply. */
typedef struct kn_amx_attention_plan {
    int64_t pairs;        /* of vectors of queries, in an item at most */
    rt_dim queries, blocks;
    int64_t begin, bytes; /* of scratch */
} kn_amx_attention_plan;

typedef struct kn_attention_plan {
    int rows, vectors; /* of a tile: rows of keys (or of value columns) x vectors of queries */
    int64_t block;     /* keys of a block */
    int64_t queries;   /* of a tile */
    rt_dim item_queries, blocks;
    int64_t packed, scores, out, state, square; /* byte offsets in scratch */
    kn_amx_attention_plan amx;
} kn_attention_plan;

typedef struct kn_attention_product {
    LLVMValueRef function;
    LLVMTypeRef type;
} kn_attention_product;

typedef struct kn_attention_pieces {
    kn_attention_plan plan;
    kn_attention_product product;
    int vectors;                           /* of this block of queries */
    int64_t row;                           /* bytes of a row of packed, scores, out */
    LLVMValueRef query, key, value, result; /* addresses of this batch */
    LLVMValueRef first, left;              /* query; how many there are */
    LLVMValueRef packed, scores, out, top, sum, factors, square;
    LLVMValueRef shift[4];                 /* what is taken off the scores: the greatest so far */
} kn_attention_pieces;

/* packed[c][q] = query[q][c] * scale; queries past the end repeat the last one. */
void kn_attention_pack(kn_emitter *e, kn_attention_pieces *x);
/* No key seen so far. */
void kn_attention_begin(kn_emitter *e, const kn_attention_pieces *x);
/* The keys of the query that sees most. */
LLVMValueRef kn_attention_end(kn_emitter *e, const kn_attention_pieces *x);
void kn_attention_fill(kn_emitter *e, const kn_attention_pieces *x, LLVMValueRef rows); /* out with zeros */
void kn_attention_take_top(kn_emitter *e, const kn_attention_pieces *x, LLVMValueRef *top);
/* Products of `count` keys from `begin` on to scores, those to weights; x->factors is what the sums so far are worth.
 * has_top: x->top holds the greatest already, and `old` the one before. */
void kn_attention_weigh(kn_emitter *e, kn_attention_pieces *x, LLVMValueRef begin, LLVMValueRef count,
                        LLVMValueRef const *old, bool has_top);
/* result[q][c] = out[c][q] / sum[q] */
void kn_attention_result(kn_emitter *e, kn_attention_pieces *x);

/* ---- emit_llvm_amx_attention.c: by tiles of bfloat16 ---- */
bool kn_plan_amx_attention(const kn_kernel *k, const cg_target_info *target, kn_amx_attention_plan *p);
/* The item's queries; returns (i1) whether something was not finite and nothing was written. */
LLVMValueRef kn_emit_amx_attention(kn_emitter *e, const kn_attention_pieces *item);

#endif

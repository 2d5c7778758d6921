/* codegen/emit_llvm_contraction.h - what the files that print contractions share: the plan of one,
 * and the addresses that an item works with. */
#ifndef CODEGEN_EMIT_LLVM_CONTRACTION_H
#define CODEGEN_EMIT_LLVM_CONTRACTION_H

#include "codegen/emit_llvm_kernel.h"

enum { KN_MAX_TILE = 32, KN_AMX_FEW_ROWS = 16 };
enum { KN_ROW_PANELS = 4 }; /* of AMX's groups a multiple, for one row's steps */

typedef struct kn_plan {
    int rows, panels;       /* of the main micro-kernel */
    int vectors;            /* in registers: accumulators of a row */
    int variants[6];        /* row counts of micro-kernels, widest first */
    int variant_count;
    bool in_registers;      /* the epilogue works on accumulators, not on a tile in memory */
    rt_dim block;           /* rows of an item */
    int64_t room;           /* for so many at most, but of LINES */
    int64_t group;          /* panels of an item; 0: all */
    rt_dim blocks, groups;
    int64_t taps, length;   /* -1: not constant */
    /* Long sums: so many terms at a time, for so many rows of the item at a time. 0: all of both. */
    int64_t sum_block, sum_blocks, inner;
    bool copies_left;       /* rows of such a block, one after another */
    int64_t parts_bytes;    /* sums of the terms so far */
    /* LINES: the images' lines of an item, copied with their padding: floats of a line, how many
     * copies (planes) a line has, output lines of an item, input lines for them. */
    rt_dim line_floats;
    int64_t planes, out_lines, in_lines;
    rt_dim table_bytes, packed_left_bytes, packed_right_bytes;
    int64_t left_row_bytes; /* of rows in bfloat16 */
    bool reads_right;       /* a right operand of two inputs where it lies, not as panels */
    bool is_amx;            /* emit_llvm_amx.c: `rows` and two panels are a pair of tiles by two */
    int64_t amx_pairs;      /* of an item, at most */
    bool amx_packs_right;   /* a right operand that is no constant */
    bool amx_joins;         /* groups of one block, one after another, are worked on as one */
} kn_plan;

typedef struct kn_pieces {
    kn_plan plan;
    LLVMValueRef left, right;  /* of this batch */
    LLVMValueRef table, packed_left, packed_right, tile;
    LLVMValueRef row_begin, row_end; /* rows of this block */
    LLVMValueRef parts;              /* [step of columns][row of the block][column] */
    LLVMValueRef column_begin;       /* of the item */
    LLVMValueRef sum_begin;          /* the first term of this block; NULL: all terms */
    LLVMValueRef is_first;           /* of the blocks; NULL: the last one */
    int64_t sum_length;
} kn_pieces;

/* A tile of the product, rows x vectors of lanes, summed over taps and the terms of each. */
typedef struct kn_tile {
    int rows, vectors;
    kn_format format;        /* of the panels; a constant length may end within a step of it */
    LLVMValueRef table;      /* addresses of the rows, for every tap; NULL: rows lie in steps */
    int64_t table_step;      /* bytes from a tap's addresses to the next */
    LLVMValueRef left;       /* row 0 at the first tap */
    LLVMValueRef row_step;   /* bytes */
    LLVMValueRef tap_step;   /* bytes */
    int64_t term_step;       /* bytes from a term of a tap to the next */
    LLVMValueRef taps, length;
    LLVMValueRef right;      /* the first panel */
    LLVMValueRef panel_bytes;
    /* `right` where it lies: bytes from a term to the next one (NULL: it is panels), from a column to the next one
     * (NULL: adjacent), how many columns there are, each vector's mask (NULL entries: all lanes). */
    LLVMValueRef line_bytes, column_bytes, columns;
    LLVMValueRef const *masks;
    bool has_squares; /* terms are adjacent: a step is as many as lanes */
    int64_t ahead;           /* what is needed next lies so many bytes on; 0: in the next panels */
    LLVMValueRef next;       /* of the next panels, where this tile's share begins; NULL: all is its */
    LLVMValueRef next_shift; /* int64: log2 of how many tiles share them */
} kn_tile;

/* ---- plan_contraction.c ---- */
/* A form of the kernel for up to so many rows, with the items of all. */
typedef struct kn_row_form {
    kn_kernel *k;
    kn_plan plan;
    int64_t most; /* of the last form: any number */
} kn_row_form;
enum { KN_MAX_ROW_FORMS = 3 };

int kn_plan_row_forms(kn_kernel *k, const cg_target_info *target, kn_row_form *out); /* how many */
int64_t kn_left_bytes(const kn_contraction *c); /* of an element of LINES */
/* ---- emit_llvm_left.c: rows of the left operand; emit_llvm_right.c: panels of a right one that is no constant ---- */
void kn_emit_rows(kn_emitter *e, kn_pieces *x);
/* Copies terms [sum_begin, sum_begin + sum_length) of the block's rows, sum_length + 16 floats apart. */
void kn_emit_left_copy(kn_emitter *e, kn_pieces *x);
/* Sets x->right to where panel 0 would lie. */
void kn_emit_packed_right(kn_emitter *e, kn_pieces *x, LLVMValueRef panel_begin, LLVMValueRef panel_end);
LLVMValueRef kn_float_address(kn_emitter *e, LLVMValueRef base, LLVMValueRef index);
/* Step number `step` behind b of a tile whose right side is no panels: out[vector], out[vector * lanes + term] of
 * squares, whose first `terms` exist. */
void kn_emit_right_step(kn_emitter *e, const kn_tile *t, LLVMValueRef b, int64_t step, int64_t terms, LLVMValueRef *out);
/* Splits row m into image, out_h, out_w. */
void kn_split_row(kn_emitter *e, LLVMValueRef m, LLVMValueRef out[3]);
/* The input's place under the first tap of an output; whether a place is inside of the image. */
LLVMValueRef kn_row_origin(kn_emitter *e, LLVMValueRef out, int64_t stride, int64_t pad);
LLVMValueRef kn_is_inside(kn_emitter *e, LLVMValueRef i, rt_dim size);

/* ---- emit_llvm_formats.c: one step of a tile's sum, by format ---- */
typedef struct kn_step {
    const kn_tile *t;
    LLVMValueRef next; /* t->next at this tap */
    LLVMValueRef raw[KN_MAX_TILE], scales[KN_MAX_TILE]; /* of each vector */
} kn_step;

int64_t kn_dot_row_bytes(int64_t k); /* from one row of bfloat16 to the next */
/* count floats, `stride` apart (NULL: adjacent), rounded to `to`; zeros fill the last 16 lanes. */
void kn_emit_dot_copy(kn_emitter *e, LLVMValueRef to, LLVMValueRef from, LLVMValueRef stride,
                      int64_t count);
/* Loads step number `step` behind b, of `terms` terms; k is the index of the first in the row. */
void kn_step_begin(kn_emitter *e, kn_step *s, LLVMValueRef b, int64_t step, LLVMValueRef k, int64_t terms);
/* A step has rounds: columns, then a of each row, then multiply; `terms` are those that exist. */
int kn_step_rounds(const kn_step *s, int64_t terms);
void kn_step_columns(kn_emitter *e, kn_step *s, int round, LLVMValueRef *columns);
LLVMValueRef kn_step_row(kn_emitter *e, const kn_step *s, LLVMValueRef address, int64_t terms);
LLVMValueRef kn_step_multiply(kn_emitter *e, const kn_step *s, LLVMValueRef a, LLVMValueRef b,
                              LLVMValueRef sum);
/* What remains to be done to the finished sums. */
void kn_step_finish(kn_emitter *e, const kn_tile *t, LLVMValueRef *sums);

/* ---- emit_llvm_contraction.c: an operand's address for the indices of the batch dims ---- */
LLVMValueRef kn_batch_address(kn_emitter *e, const kn_access *a);
/* Sets the indices of the batch dims; `item` counts (batch, block) row-major. Returns the block. */
LLVMValueRef kn_split_item(kn_emitter *e, LLVMValueRef item, rt_dim blocks);
/* The epilogue over a tile in memory, [rows][vectors * width], whose first element is (m, column). */
void kn_emit_tile_epilogue(kn_emitter *e, LLVMValueRef tile, LLVMValueRef m, LLVMValueRef rows,
                           LLVMValueRef column, int vectors);
/* ---- emit_llvm_amx.c: products through tiles of bfloat16; false: not this one ---- */
bool kn_plan_amx(const kn_kernel *k, const cg_target_info *target, kn_plan *p);
void kn_emit_amx_item(kn_emitter *e, kn_pieces *x, LLVMValueRef panel_begin, LLVMValueRef panel_end);

/* ---- emit_llvm_integer.c: bytes times int8, sums in int32 ---- */
ts_status kn_plan_integer(kn_kernel *k, const cg_target_info *target) TS_WARN_UNUSED;
void kn_emit_integer(kn_emitter *e);
/* Bytes of a panel of 16 columns whose sums have k terms. */
int64_t kn_integer_panel_bytes(int64_t k);

/* ---- emit_llvm_winograd.c: 3x3 convolutions by fewer multiplications ---- */
ts_status kn_plan_winograd(kn_kernel *k, const cg_target_info *target) TS_WARN_UNUSED;
void kn_emit_winograd(kn_emitter *e);

/* ---- emit_llvm_tile.c: sums and epilogue of a tile in registers ---- */
void kn_emit_tile_sums(kn_emitter *e, const kn_tile *t, LLVMValueRef *out_sums);
/* The same of one row whose weights a cache may hold from one call to the next, panel after panel,
 * by way of `tile` in memory: emit_llvm_gemv.c. */
bool kn_is_cached_row(const kn_kernel *k, const kn_plan *p);
void kn_emit_row_sums(kn_emitter *e, const kn_tile *t, LLVMValueRef tile, LLVMValueRef *out_sums);
/* m, column: of the first element; masks: lanes that exist, of each vector; NULL all; at: how far
 * behind m each row is; NULL: one after another. */
void kn_emit_tile_stores(kn_emitter *e, int rows, int vectors, LLVMValueRef *sums, LLVMValueRef m,
                         LLVMValueRef column, LLVMValueRef const *masks, const int64_t *at);
/* Whether the epilogue is short enough to be repeated for so many sums. */
bool kn_fits_registers(const kn_kernel *k, int accumulators);

#endif

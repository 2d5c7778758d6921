/* codegen/weight_formats.h - how the constant right operand of a product lies in memory.
 *
 * Every format is made of panels of 16 columns, so that one file serves all CPU levels; a step of
 * the micro-kernel takes `step` rows of k from each panel:
 *
 *   FLOAT32       [k][16] float
 *   BFLOAT16      [k/2][16][2] bfloat16: a pair of k in each 32 bits, as dot instructions want it
 *   BFLOAT16_DOT  the same bytes; the left operand is rounded to bfloat16 too
 *   INT8          [k][16] int8, then [16] float: w = q * scale of the column
 *   INT4          [k/8][16] of 8 nibbles (two's complement, lowest k lowest), then [k/32][16]
 *                 bfloat16: w = q * scale of the column and its group of 32
 *
 * Panels are multiples of 64 bytes. k is padded with zeros to a multiple of the step. */
#ifndef CODEGEN_WEIGHT_FORMATS_H
#define CODEGEN_WEIGHT_FORMATS_H

#include "codegen/codegen.h"
#include "codegen/spill.h"

enum { KN_PANEL = 16, KN_INT4_GROUP = 32 };

typedef enum kn_format { KN_FLOAT32, KN_BFLOAT16, KN_BFLOAT16_DOT, KN_INT8, KN_INT4 } kn_format;

int kn_format_step(kn_format f);       /* elements of k */
int kn_format_step_bytes(kn_format f); /* of one panel */
int64_t kn_format_padded_k(kn_format f, int64_t k);
int64_t kn_format_panel_bytes(kn_format f, int64_t k); /* k need not be padded */

/* Element (k, n) of matrix i lies at data[offsets[i] + n * n_stride] and, where k is (outer * middle +
 * m) * inner + j, outer * outer_stride + m * middle_stride + j * inner_stride further on. */
typedef struct kn_matrices {
    const float *data;
    const int64_t *offsets;
    int64_t count, k, n;
    int64_t inner, middle, inner_stride, middle_stride, outer_stride, n_stride;
    /* Where tap_padded is not 0, zeros follow every `tap` terms, so that there are tap_padded; k
     * counts them, the numbers above do not. */
    int64_t tap, tap_padded;
    ts_str name; /* of the weight, for the report; may be empty */
    ts_place place;
} kn_matrices;

/* What was packed so far: levels share it, and it keeps the errors. One a program. */
typedef struct kn_weight_store kn_weight_store;
/* Zeroed room for what is made of the weights at `source` in some other form, the same for all
 * levels: *out_is_new says that it has to be filled; kn_weights_filled then. */
void *kn_weights_room(kn_weight_store *s, const void *source, int form, size_t bytes,
                      bool *out_is_new);
void kn_weights_filled(const kn_weight_store *s, const void *room);
kn_weight_store *kn_weight_store_make(ts_arena *arena, cg_spill *spill); /* spill may be NULL */
/* *out_bytes is of all matrices, one behind the other; memory of the store's arena. */
const void *kn_weights_pack(kn_weight_store *store, kn_format format, const kn_matrices *m,
                            size_t *out_bytes);
/* Infinities and NaN have no place among a few steps. */
bool kn_weights_are_finite(const kn_matrices *m);
/* Nor has the sum of three bfloat16 a number that rounds to an infinity. */
bool kn_weights_have_parts(const kn_matrices *m);
/* The rows of what is not float32, in the order in which kernels met them. */
void kn_weight_store_report(const kn_weight_store *store, cg_weight_report *out);

/* The nearest bfloat16 (ties to even), as its bits. */
uint16_t kn_bfloat16_bits(float x);

#endif

/* ir/strided_view.h - operators that only look at memory differently, as sizes and strides.
 *
 * Fusion and kernel lowering agree here on which chains of views a kernel can read (or write)
 * through, without a copy. Sizes are those of the operators' result types. */
#ifndef IR_STRIDED_VIEW_H
#define IR_STRIDED_VIEW_H

#include "ir/ir.h"

enum { IR_STRIDED_MAX_RANK = 8 };

typedef enum ir_view_kind {
    IR_VIEW_NONE,     /* no view at all */
    IR_VIEW_IDENTITY, /* contiguous, clone, alias, detach: the same elements */
    IR_VIEW_RESHAPE,  /* view, reshape, flatten, squeeze, unsqueeze, ... */
    IR_VIEW_PERMUTE,
    IR_VIEW_EXPAND,
    IR_VIEW_SLICE,
    IR_VIEW_SELECT
} ir_view_kind;

typedef struct ir_strided {
    int rank;
    rt_dim offset;
    rt_dim sizes[IR_STRIDED_MAX_RANK], strides[IR_STRIDED_MAX_RANK];
} ir_strided;

ir_view_kind ir_view_kind_of(const ir_op *op);
/* The operand of that name in the schema of a core operator; NULL if there is none. */
ir_value *ir_core_operand(ir_module *m, const ir_op *op, const char *name);
/* A tensor type of known dtype, rank (at most 8) and sizes (constant or symbolic). */
bool ir_type_is_known_tensor(const ir_type *t);
/* Where result dim i of a PERMUTE comes from. */
bool ir_view_permutation(ir_module *m, const ir_op *op, int *out);
/* SLICE: dim, start (never negative) and step; SELECT: dim and index. False: not constant. */
bool ir_view_slice(ir_module *m, const ir_op *op, int *out_dim, int64_t *out_start,
                   int64_t *out_step);
/* Strides of a dense tensor of type t in its layout (ANY counts as contiguous). */
bool ir_strided_dense(ir_module *m, const ir_type *t, ir_layout layout, ir_strided *out);
/* The view that op makes of `in`; false where strides cannot say it. */
bool ir_strided_apply(ir_module *m, const ir_op *op, const ir_strided *in, ir_strided *out);
/* Where the elements of op's operand lie if its result lies at `result`; only for views that keep
 * all elements. */
bool ir_strided_invert(ir_module *m, const ir_op *op, const ir_strided *result, ir_strided *out);
bool ir_strided_reshape(ir_module *m, const ir_strided *in, const rt_dim *sizes, int rank,
                        ir_strided *out);
bool ir_dim_same(ir_module *m, rt_dim a, rt_dim b); /* known to be equal */

#endif

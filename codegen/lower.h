/* codegen/lower.h - from the body of an IR_OP_KERNEL to a kernel graph.
 *
 * A tensor's value is asked for at an index: each dim of the tensor as an affine function of the
 * kernel's dims (lw_map). Views change the index, inputs become loads, pointwise operators nodes.
 * A lowering that fails has set `status` (UNSUPPORTED) and returns -1. */
#ifndef CODEGEN_LOWER_H
#define CODEGEN_LOWER_H

#include "codegen/kernel_ir.h"
#include "ir/attention_form.h"
#include "ir/resize_form.h"
#include "ir/strided_view.h"

typedef struct lw_index {
    rt_dim offset;
    rt_dim factors[KN_MAX_DIMS]; /* of each dim of the kernel */
} lw_index;

typedef struct lw_map {
    int rank;
    lw_index dims[IR_STRIDED_MAX_RANK];
} lw_map;

typedef struct lw_memo {
    bool is_set;
    lw_map map;
    int node;
} lw_memo;

typedef struct lowering {
    cg_unit *unit;
    ir_module *ir;
    const ir_op *op;
    ir_block *body;
    kn_kernel *k;
    ts_status status;
    /* The iteration space: a shape that all full values have, and where its dims went. */
    int space_rank;
    rt_dim space[IR_STRIDED_MAX_RANK];
    uint32_t reduced; /* dims of the space that reductions of this kernel sum over */
    lw_map space_map;
    /* The contraction, pooling or depthwise convolution, and its value at a point. */
    const ir_op *anchor;
    int anchor_node;
    lw_memo *memos; /* by value->number */
    uint32_t memo_count;
    int depth;
    bool is_scheduled; /* the parts of the kernel are */
} lowering;

int lw_fail(lowering *l, const ir_op *op, const char *why);
/* ---- lower_value.c ---- */
int lw_value(lowering *l, ir_value *v, const lw_map *map);
/* A tensor operand of a value of rank `rank` at `map`, broadcast. */
int lw_broadcast(lowering *l, ir_value *v, const ir_type *to, const lw_map *map);
/* A number: constant, scalar operand, or tensor; as `type`. */
int lw_operand(lowering *l, const ir_op *op, const char *name, rt_dtype type, const lw_map *map);
int lw_scalar(lowering *l, ir_value *v, rt_dtype type);
bool lw_is_none(const ir_value *v);
/* The strided view of an input that v is; false: v is computed in the kernel. */
bool lw_source(lowering *l, ir_value *v, int *out_buffer, ir_strided *out);
/* The tensor constant that v is (through nothing), as a contiguous float32 array; NULL if not. */
const float *lw_constant_floats(lowering *l, const ir_value *v);
int lw_tensor_buffer(lowering *l, const ir_value *parameter_or_constant);
/* Whether map is the space's own, reduced dims (where keep: indices of zero) left out. */
bool lw_is_space(const lowering *l, const lw_map *map, bool reduced);
int lw_size_node(lowering *l, rt_dim d, rt_dtype type);
/* ---- families ---- */
int lw_pointwise(lowering *l, const ir_op *op, const lw_map *map);
bool lw_is_reduction(lowering *l, const ir_op *op);
int lw_reduction(lowering *l, const ir_op *op, size_t result, const lw_map *map);
/* Shape that op reduces and which of its dims; false: op is no reduction that kernels know. */
bool lw_reduction_space(lowering *l, const ir_op *op, const ir_type **out_shape,
                        uint32_t *out_reduced);
int lw_resize(lowering *l, const ir_op *op, const ir_resize *form, const lw_map *map);
bool lw_is_anchor(lowering *l, const ir_op *op);
/* Builds dims, contraction and stores for a body around an anchor. */
ts_status lw_anchor(lowering *l);
/* Builds dims, score and accesses for a body that is an attention. */
ts_status lw_attention(lowering *l, const ir_attention *a);
/* ---- lower_weights.c ---- */
kn_format lw_weight_format(const lowering *l, bool is_convolution, const kn_matrices *m);
/* Makes the matrices the contraction's right operand; the left one is set already. Returns the
 * size of one, in units of float32. */
int64_t lw_pack_weights(lowering *l, kn_format format, const kn_matrices *m);
/* ---- lower_kernel.c ---- */
/* What is stored as result `index`, its views undone, and where its elements go. */
ts_status lw_output(lowering *l, size_t index, ir_value **out_value, ir_strided *out_strided);
/* Stores of all results; the space and its dims are set. */
ts_status lw_stores(lowering *l);
/* The kernel graph of an IR_OP_KERNEL that is no stream, scheduled. */
ts_status lw_build(cg_unit *unit, const ir_op *op, kn_kernel **out);
/* What the host program has to know of it. */
void lw_fill(const kn_kernel *k, const char *name, cg_kernel *out);
/* ---- lower_stream.c ---- */
ts_status lw_stream(cg_unit *unit, const ir_op *op, cg_kernel *out);

#endif

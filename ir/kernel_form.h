/* ir/kernel_form.h - which operators kernels can hold, for fusion (which decides) and for kernel
 * lowering (which must agree). Names are PyTorch's, looked up in tables, so that this holds for
 * whatever rows the operator table has. */
#ifndef IR_KERNEL_FORM_H
#define IR_KERNEL_FORM_H

#include "ir/strided_view.h"

typedef enum ir_kernel_form {
    IR_FORM_NONE,
    IR_FORM_POINTWISE,
    IR_FORM_VIEW,
    IR_FORM_REDUCTION,   /* gives the reduced shape */
    IR_FORM_ROWS,        /* softmax, layer norm: reduces inside, gives the whole shape */
    IR_FORM_CONTRACTION,
    IR_FORM_CONCAT,      /* cat, stack of a few tensors: a kernel of its own */
    IR_FORM_RESIZE,      /* upsampling between known sizes; its input lies in memory */
    IR_FORM_WINDOW       /* pooling; depthwise convolution is a contraction to the outside */
} ir_kernel_form;

/* What op is for a kernel; NONE where a type, an argument or a constant is not as kernels need. */
ir_kernel_form ir_kernel_form_of(ir_module *m, const ir_op *op);
/* A POINTWISE operator with a transcendental function in it. */
bool ir_is_heavy_pointwise(const ir_op *op);

typedef enum ir_pointwise {
#define POINTWISE(name, needs) IR_P_##name,
#include "ir/pointwise_names.def"
    IR_P_COUNT
} ir_pointwise;
ir_pointwise ir_pointwise_of(const ir_op *op); /* by name alone; COUNT: none of them */

typedef enum ir_reduction {
    IR_R_NONE, IR_R_SUM, IR_R_MEAN, IR_R_PROD, IR_R_AMAX, IR_R_AMIN, IR_R_AMINMAX, IR_R_MAX_DIM, IR_R_MIN_DIM,
    IR_R_ARGMAX, IR_R_ARGMIN, IR_R_ANY, IR_R_ALL, IR_R_SOFTMAX, IR_R_LOG_SOFTMAX,
    IR_R_LAYER_NORM, IR_R_GLOBAL_POOL
} ir_reduction;
ir_reduction ir_reduction_of(const ir_op *op); /* by name alone */
/* The dims of operand 0 that op reduces, as a mask; 0: not known. */
uint32_t ir_reduced_dims(ir_module *m, const ir_op *op);

typedef enum ir_anchor {
    IR_A_NONE, IR_A_LINEAR, IR_A_MATMUL, IR_A_ADDMM, IR_A_CONVOLUTION, IR_A_MAX_POOL, IR_A_AVG_POOL,
    IR_A_INTEGER_LINEAR, IR_A_INTEGER_CONVOLUTION /* of bytes, sums in int32 */
} ir_anchor;
bool ir_is_concat(const ir_op *op); /* cat or stack, by name alone */
bool ir_is_stack(const ir_op *op);
ir_anchor ir_anchor_of(const ir_op *op); /* by name alone */

#endif

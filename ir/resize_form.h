/* ir/resize_form.h - upsampling as kernels hold it: tables of taps made at compile time where sizes are
 * constant, else taps that the kernel computes. */
#ifndef IR_RESIZE_FORM_H
#define IR_RESIZE_FORM_H

#include "ir/strided_view.h"
#include "runtime/ops/resize.h"

typedef struct ir_resize {
    rt_resize_filter filter;
    int dims;          /* the last so many of the tensor's are resized */
    bool align;
    rt_dim in[3], out[3];
    bool is_constant[3]; /* both sizes of that dim */
    double scale[3];   /* that was given; 0: none */
} ir_resize;

/* Whether op resizes a float32 tensor (nearest: of any numbers) between sizes that are known; cubic:
 * constant. */
bool ir_resize_of(ir_module *m, const ir_op *op, ir_resize *out);

#endif

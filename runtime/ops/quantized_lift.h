/* runtime/ops/quantized_lift.h - plain operators that take quantized tensors by way of floats. */
#ifndef RUNTIME_OPS_QUANTIZED_LIFT_H
#define RUNTIME_OPS_QUANTIZED_LIFT_H

#include "runtime/ops/ops.h"

typedef enum rt_lift {
    RT_LIFT_NONE,
    RT_LIFT_SAME,          /* the result has the argument's scale */
    RT_LIFT_MEAN,          /* so it has; the integers are averaged, then rounded, as PyTorch does */
    RT_LIFT_UNSIGNED_UNIT, /* results of 0 to 1: PyTorch's fixed scale */
    RT_LIFT_SIGNED_UNIT    /* results of -1 to 1 */
} rt_lift;

enum { RT_LIFT_ARGS = 16 };

typedef struct rt_operator_lift {
    rt_lift lift;
    bool in_place;
} rt_operator_lift;

rt_lift rt_lift_of(ts_str operator_name, bool *out_in_place);
/* Runs a kernel; arguments that are quantized go in as floats, and come back quantized. */
ts_status rt_lift_call(rt_lift lift, bool in_place, rt_kernel kernel, rt_context *context,
                       const rt_value *args, size_t count, rt_value *outs) TS_WARN_UNUSED;

#endif

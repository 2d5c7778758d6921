/* runtime/ops/kernel_head.h - the head of a reference kernel and of a rule: KERNEL(relu) { ... }
 * defines rt_ref_relu, RULE(relu) { ... } defines rt_infer_relu.
 *
 * The table declares its kernels and rules itself (op_info.c), so each definition repeats the
 * prototype. */
#ifndef RUNTIME_OPS_KERNEL_HEAD_H
#define RUNTIME_OPS_KERNEL_HEAD_H

#include "runtime/ops/ops.h"

#define KERNEL(name)                                                                               \
    ts_status rt_ref_##name(rt_context *context, const rt_value *args, rt_value *outs);            \
    ts_status rt_ref_##name(TS_UNUSED rt_context *context, TS_UNUSED const rt_value *args,         \
                            TS_UNUSED rt_value *outs)

#define RULE(name)                                                                                 \
    ts_status rt_infer_##name(const rt_infer_context *ic, const rt_fact *args, size_t arg_count,   \
                              rt_fact *outs, size_t out_count);                                    \
    ts_status rt_infer_##name(TS_UNUSED const rt_infer_context *ic, TS_UNUSED const rt_fact *args, \
                              TS_UNUSED size_t arg_count, TS_UNUSED rt_fact *outs,                 \
                              TS_UNUSED size_t out_count)

#endif

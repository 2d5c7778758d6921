/* passes/plan_inputs.h - which types the inputs of an entry probably have. */
#ifndef PASSES_PLAN_INPUTS_H
#define PASSES_PLAN_INPUTS_H

#include "passes/pass_internal.h"

/* What one path takes for granted: a type for each parameter, or NULL. */
typedef struct pass_plan {
    const ir_type **types;
} pass_plan;

enum { PASS_MAX_PLANS = 6 };

/* The plans of an entry, in the order in which they should be tried: at most `copies` (and
 * one, and another for one image where there are depthwise convolutions or gates of channels). A
 * parameter that is_default has the value of its default on each. Without any idea: one of NULLs.
 */
size_t pass_plan_inputs(pass_context *ctx, ir_module *m, const ir_function *f, size_t copies,
                        const bool *is_default, pass_plan out[PASS_MAX_PLANS]);

#endif

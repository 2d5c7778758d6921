/* passes/expand.h - what the files that take composites apart share. */
#ifndef PASSES_EXPAND_H
#define PASSES_EXPAND_H

#include "passes/pass_internal.h"

typedef struct expander {
    pass_context *ctx;
    ir_module *m;
    ir_builder b;
} expander;

const ir_type *expand_float_type(expander *e, int rank, const rt_dim *dims);
/* A core operator of the given result. */
ir_value *expand_core(expander *e, rt_op op, const ir_type *t, ir_value *const *operands,
                      size_t count);
ir_value *expand_add(expander *e, ir_value *x, ir_value *y);
ir_value *expand_size(expander *e, rt_dim d); /* an int: constant, or the value of the expression */
bool expand_is_floats(const ir_value *v, int rank);

/* ---- expand_attention.c ---- */
bool expand_attention(expander *e, ir_op *op);

#endif

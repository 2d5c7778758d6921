/* passes/differentiate.h - between differentiate.c (the walk) and differentiate_rules.c. */
#ifndef PASSES_DIFFERENTIATE_H
#define PASSES_DIFFERENTIATE_H

#include "passes/alias.h"

typedef struct differ_rule {
    pass_context *ctx;
    ir_module *m;
    ir_builder *b;
    ir_op *op;    /* whose operands get gradients */
    ir_value *g;  /* the gradient of its first result */
    bool *wanted; /* by operand */
    ir_value_map *adjoints;
} differ_rule;

/* Adds to the gradient of a value; NULL adds nothing. */
void differ_add(differ_rule *r, ir_value *operand, ir_value *gradient);
/* A row by name with up to three operands, defaults for the rest. */
ir_value *differ_call(differ_rule *r, const char *name, ir_value *x, ir_value *y, ir_value *z);
/* Gradients of the wanted operands of r->op; *out_done false where there is no formula. */
ts_status differ_apply(differ_rule *r, bool *out_done) TS_WARN_UNUSED;

#endif

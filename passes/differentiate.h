/* passes/differentiate.h - between the files of the pass: differentiate.c (requests and results),
 * differentiate_backward.c (backward() and x.grad), differentiate_depends.c (what the inputs lead to), differentiate_regions.c (the way back, with its
 * branches and loops), differentiate_lists.c (lists of tensors), differentiate_rules.c (formulas).
 *
 * The gradient of a value, its adjoint, is a value too. Adjoints of tensors are in a map for each
 * region; that of a list is a list of as many gradients, changed in place while the way back passes
 * what changed the list, so one map holds them all. */
#ifndef PASSES_DIFFERENTIATE_H
#define PASSES_DIFFERENTIATE_H

#include "passes/alias.h"

typedef struct differ {
    pass_context *ctx;
    ir_module *m;
    pass_alias *alias;
    ir_op *at;          /* the autograd_grad that is replaced */
    pass_op_list ops;   /* of the function as it was, by number */
    ir_value **inputs;
    size_t input_count;
    bool *reached;      /* by operator number: the outputs are made of it */
    ir_value_map *depends;       /* v -> v where v may depend on an input */
    ir_value_map *unset; /* v -> v where v may be uninitialized on some path */
    ir_value_map *list_adjoints; /* list -> list of its gradients */
    const ts_str *fields; /* attributes that hold what depends on an input */
    size_t field_count, field_capacity;
    bool has_complex;     /* the function makes complex tensors */
} differ;

/* What a formula is applied to. */
typedef struct differ_rule {
    differ *d;
    pass_context *ctx;
    ir_module *m;
    ir_builder *b;
    ir_op *op;    /* whose operands get gradients */
    ir_value *g;  /* the gradient of its first result, or NULL */
    bool *wanted; /* by operand */
    ir_value_map *adjoints;
} differ_rule;

/* ---- differentiate_complex.c ---- */
/* Gives gradients to operands of r->op; out_done false where it has no such operator. */
typedef ts_status (*differ_formula)(differ_rule *r, bool *out_done);
void differ_find_complex(differ *d);
bool differ_may_be_complex(const ir_op *op);
/* formula, with conjugates where the operator is holomorphic. */
ts_status differ_apply_complex(differ_rule *r, differ_formula formula, bool *out_done);

/* ---- differentiate_depends.c ---- */
bool differ_is_op(const ir_op *op, const char *name);
/* Two reads of one attribute of a constant object, or of one constant, are one variable. */
bool differ_same_variable(const differ *d, const ir_value *a, const ir_value *b);
/* The tensor of the object tree that v reads, or NULL; a list there that nobody changes. */
const void *differ_variable(const differ *d, const ir_value *v);
bool differ_known_list(const differ *d, const ir_value *v, rt_value *out);
void differ_find_dependents(differ *d);
bool differ_depends(const differ *d, const ir_value *v);
bool differ_is_inside(const ir_op *outer, const ir_value *v); /* defined in a region of outer */
/* Nothing writes v's memory between its reader and the gradient. */
bool differ_is_unchanged(differ *d, const ir_op *reader, ir_value *v);
/* A gradient does not follow what is written into memory of the function's own and read from there:
 * an error, since leaving it out would be wrong. */
ts_status differ_check_writes(differ *d, ir_value *const *outputs, size_t count) TS_WARN_UNUSED;
ts_status differ_unsupported(const ir_op *op) TS_WARN_UNUSED;

void differ_number(pass_op_list *ops);

/* ---- differentiate_backward.c ---- */
/* backward() becomes autograd_grad; what x.grad is at each place, a value. */
ts_status differ_lower_backward(pass_context *ctx, ir_module *m, ir_function *f) TS_WARN_UNUSED;

/* ---- differentiate_regions.c ---- */
/* The operators of the block before `from` (NULL: all), last first; what they read of outside gets
 * its part in adjoints. */
ts_status differ_reverse_block(differ *d, ir_block *block, ir_op *from, ir_builder *b,
                               ir_value_map *adjoints) TS_WARN_UNUSED;

/* ---- differentiate_lists.c ---- */
bool differ_is_list(const ir_value *v);
/* The list that v is another name of. */
ir_value *differ_list_root(ir_value *v);
/* Whether the outputs read the list at all. */
bool differ_leads_to_outputs(const differ *d, ir_value *list);
/* The list of v's gradients, made at the builder where there is none. */
ts_status differ_list_adjoint(differ_rule *r, ir_value *v, ir_value **out) TS_WARN_UNUSED;
/* Operators on lists themselves; *out_done false where op is none of them. */
ts_status differ_apply_list(differ_rule *r, bool *out_done) TS_WARN_UNUSED;
/* Adds a list of gradients to those of the list v. */
ts_status differ_add_list(differ_rule *r, ir_value *v, ir_value *gradients) TS_WARN_UNUSED;

/* ---- differentiate_rules.c ---- */
/* Adds to the gradient of a value; NULL adds nothing. */
void differ_add(differ_rule *r, ir_value *operand, ir_value *gradient);
/* A row by name with up to three operands, defaults for the rest. */
ir_value *differ_call(differ_rule *r, const char *name, ir_value *x, ir_value *y, ir_value *z);
/* A function of the library's derivatives; its result. */
ts_status differ_call_library(differ_rule *r, const char *name, ir_value *const *operands, size_t count,
                              ir_value **out) TS_WARN_UNUSED;
/* v under another type, which holds whatever inference finds. */
ir_value *differ_cast(differ_rule *r, ir_value *v, const ir_type *t);
/* The type of v's gradient: v's, but that of one that may be uninitialized says nothing of its sizes. */
const ir_type *differ_adjoint_type(differ_rule *r, const ir_value *v);
/* Zeros like v, whose gradient they are; a number where v is uninitialized, which nothing then reads. */
ts_status differ_zero(differ_rule *r, ir_value *v, ir_value **out) TS_WARN_UNUSED;
/* Puts functions of the library in the place of operators on the way that have an OPENED row. */
ts_status differ_open(differ *d, bool *out_any) TS_WARN_UNUSED;
/* Gradients of the wanted operands of r->op; *out_done false where there is no formula. */
ts_status differ_apply(differ_rule *r, bool *out_done) TS_WARN_UNUSED;

/* Values of the type can hold what has a gradient. */
bool differ_may_carry(const ir_type *t);
/* An operator whose results PyTorch gives no history. */
bool differ_cuts(const ir_op *op);

#endif

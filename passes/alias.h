/* passes/alias.h - which values of a function may share memory, and whether it is ever written.
 *
 * Flow-insensitive: values fall into sets; two values of different sets never share memory. Tensors
 * of constants and of attributes of constant objects are told apart by their storage. What is not
 * known joins the set of everything visible from outside. */
#ifndef PASSES_ALIAS_H
#define PASSES_ALIAS_H

#include "passes/pass_internal.h"

typedef struct pass_alias pass_alias;

/* Numbers the values of f (ir_value.number); holds until f changes. */
pass_alias *pass_alias_make(pass_context *ctx, ir_module *m, const ir_function *f);
bool pass_may_alias(pass_alias *a, const ir_value *x, const ir_value *y);
/* Nothing in the function writes memory that v's reader would see: reads of it commute. */
bool pass_is_stable(pass_alias *a, const ir_value *v);
/* v itself: a tensor's elements, what a list or dict holds; of anything else either. */
bool pass_is_written(pass_alias *a, const ir_value *v);
/* v itself, a list or dict: what it holds is exchanged, whether or not its tensors are written. */
bool pass_is_changed(pass_alias *a, const ir_value *v);
/* Some tensor of v's set: of a list, its elements. */
bool pass_tensors_are_written(pass_alias *a, const ir_value *v);
/* Seen by others than this function: parameters, objects, constants, and what may share with them;
 * returned values count only when asked. */
bool pass_is_outside(pass_alias *a, const ir_value *v);
bool pass_is_returned(pass_alias *a, const ir_value *v);
/* Set where an operator changes the sizes of a tensor in place (resize_, unsqueeze_ ...). */
bool pass_is_reshaped(pass_alias *a, const ir_value *v);
/* What a get_attr of a constant object finds as long as no function sets the attribute; what it
 * holds may still be written in place. */
bool pass_attribute_value(pass_alias *a, const ir_op *get, rt_value *out);
/* A number for v's set, the same for all its members. */
uint32_t pass_alias_set(pass_alias *a, const ir_value *v);
/* True where the operator itself writes memory of v's set (its regions included). */
bool pass_op_writes(pass_alias *a, const ir_op *op, const ir_value *v);

#endif

/* frontend/init_eval.h - what the rest of the front end may ask of the evaluator of scripts.
 *
 * The evaluator runs module level and __init__ with Python's dynamic typing. Objects that it makes
 * have a class of their own that grows with each attribute; when the script is done, modules get
 * their typed ir_class (init_eval_finish.c), and what has no IR type - functions, classes, lists of
 * functions - is kept here by name. */
#ifndef FRONTEND_INIT_EVAL_H
#define FRONTEND_INIT_EVAL_H

#include "frontend/frontend_internal.h"

/* An attribute of the objects of c that is no field because it has no type in the IR: a function,
 * a class, a list or dict of such. *out is borrowed. False where there is none of that name. */
bool fe_static_attribute(struct fe_context *fe, const ir_class *c, ts_str name, rt_value *out);

/* Functions registered with register_forward_pre_hook and register_forward_hook on the objects of
 * c, in order. Returns how many; out may be NULL. Each is called as hook(module, (args...)) or
 * hook(module, (args...), result). */
size_t fe_module_hooks(struct fe_context *fe, const ir_class *c, bool is_pre, fe_function **out,
                       size_t max);

/* The value of a parameter's default that was computed when the script ran (closures and lambdas
 * see the values of their time). False: evaluate the expression in the function's scope. */
bool fe_function_default(struct fe_context *fe, const fe_function *function, size_t parameter,
                         rt_value *out);

/* Gives the objects inside a value that the emitter reads (a global, a class variable, a default)
 * their typed classes; nothing to do for those that have one. Changes objects in place. */
ts_status fe_finish_value(struct fe_context *fe, rt_value v) TS_WARN_UNUSED;

/* state_dict order: qualified name, tensor (borrowed), for parameters and persistent buffers. */
typedef struct fe_named_tensor {
    ts_str name;
    rt_object *owner;
    size_t field;
} fe_named_tensor;
typedef struct fe_named_tensors {
    fe_named_tensor *items;
    size_t count, capacity;
} fe_named_tensors;
void fe_collect_state(struct fe_context *fe, rt_value module, fe_named_tensors *out);

#endif

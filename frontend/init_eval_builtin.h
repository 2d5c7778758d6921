/* frontend/init_eval_builtin.h - what the files of the evaluator's built-in functions share. */
#ifndef FRONTEND_INIT_EVAL_BUILTIN_H
#define FRONTEND_INIT_EVAL_BUILTIN_H

#include "frontend/init_eval_internal.h"

typedef ts_status (*ev_builtin_function)(evaluator *ev, ev_arguments *args, rt_value *out);

#define ARG(i) (args->items[i].value)

/* TypeError unless the number of arguments is between low and high. */
ts_status ev_wants(const ev_arguments *args, const char *name, size_t low, size_t high);
ts_status ev_float_to_int(double f, rt_value *out);
/* An iterator over list, which is released; status of the way there is passed on. */
ts_status ev_iterator_of(rt_value list, ts_status status, rt_value *out);

#define EV_BUILTIN(name, function) \
    ts_status function(evaluator *ev, ev_arguments *args, rt_value *out);
#include "frontend/init_eval_builtin.def"

/* ---- init_eval_itertools.c ---- */
ts_status ev_chain(evaluator *ev, ev_arguments *args, rt_value *out);
ts_status ev_chain_from(evaluator *ev, ev_arguments *args, rt_value *out);
ts_status ev_product(evaluator *ev, ev_arguments *args, rt_value *out);
ts_status ev_repeat(evaluator *ev, ev_arguments *args, rt_value *out);
ts_status ev_accumulate(evaluator *ev, ev_arguments *args, rt_value *out);
/* operator.add and its like; *out_found: whether there is one of that name. */
ts_status ev_operator_function(evaluator *ev, ts_str name, ev_arguments *args, bool *out_found,
                               rt_value *out);
/* Removes a keyword argument; UNINITIALIZED where it is not given. Owned. */
rt_value ev_take_keyword(ev_arguments *args, const char *name);

#endif

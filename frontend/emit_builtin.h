/* frontend/emit_builtin.h - what the files of builtin functions share. */
#ifndef FRONTEND_EMIT_BUILTIN_H
#define FRONTEND_EMIT_BUILTIN_H

#include "frontend/emit_internal.h"

/* ---- emit_builtin.c: arguments ---- */
size_t em_positional_count(const em_arguments *args);
em_argument *em_named(em_arguments *args, const char *name);
/* The IR value of argument i, an Optional one checked; NULL after an error. */
ir_value *em_argument_ir(emitter *E, em_arguments *args, size_t i, const ast_node *node);

/* ---- emit_builtin_sequence.c ---- */
/* A list of v's items: itself where it is one (no copy). */
ir_value *em_as_list(emitter *E, em v, const ast_node *node);
ir_value *em_tuple_to_list(emitter *E, em v, const ast_node *node);
em em_sort_objects(emitter *E, ir_value *list, ir_value *reverse, const ast_node *node);
ir_value *em_map_list(emitter *E, em callee, em source, const ast_node *node, bool is_filter);
em em_builtin_sorted(emitter *E, em_arguments *args, const ast_node *node);
em em_builtin_extreme(emitter *E, bool is_max, em_arguments *args, const ast_node *node);
em em_builtin_sum(emitter *E, em_arguments *args, const ast_node *node);
em em_builtin_any_all(emitter *E, bool is_any, em_arguments *args, const ast_node *node);
/* zip(*rows) of tuples, as d.items() has: as many columns, which are tuples to Python. False: rows are no tuples. */
bool em_zip_columns(emitter *E, em rows, const ast_node *node, em *out);
em em_builtin_range(emitter *E, em_arguments *args, const ast_node *node);
em em_builtin_list(emitter *E, em_arguments *args, const ast_node *node, const ir_type *hint);
em em_builtin_dict(emitter *E, em_arguments *args, const ast_node *node, const ir_type *hint);


/* ---- emit_python.c: what is written in Python ---- */
bool em_is_generic(const fe_function *f);
fe_binding em_python_binding(emitter *E, ts_str path);
void em_raise_no_attribute(emitter *E, ts_str class_name, ir_value *name, const ast_node *node);
em em_attribute_of_choice(emitter *E, em choice, ts_str name, const ast_node *node); /* emit_choice.c */
/* emit_slice.c */
em em_slice_call(emitter *E, em_arguments *args, const ast_node *node);
em em_slice_object(emitter *E, ir_value *const parts[3], const ast_node *node);
void em_slice_parts(emitter *E, ir_value *slice, ir_value *out[3], const ast_node *node);
bool em_is_slice(const ir_type *t);
em em_getattr(emitter *E, const ast_node *node, bool has, const ir_type *hint); /* and hasattr */
em em_setattr(emitter *E, em_arguments *args, const ast_node *node);
em em_vars(emitter *E, ir_value *object, const ast_node *node); /* emit_dataclass.c */
em em_call_python(emitter *E, const char *path, em *args, size_t count, const ast_node *node);
em em_python_path(emitter *E, ts_str path, em_arguments *args, const ast_node *node, const ir_type *hint,
                  bool *out_known);
em em_python_method(emitter *E, ir_value *self, ts_str name, em_arguments *args, const ast_node *node,
                    bool *out_known);
em em_math_of_many(emitter *E, ts_str name, em_arguments *args, const ast_node *node, bool *out_known);
em em_map_many(emitter *E, em_arguments *args, const ast_node *node);
em em_builtin_next(emitter *E, em_arguments *args, const ast_node *node);
/* ---- emit_overload.c ---- */
ts_str em_python_way(emitter *E, ts_str path, em_arguments *args, const ast_node *node);
bool em_function_maker(emitter *E, ts_str path, em_arguments *args, const ast_node *node, em *out);
em em_partial(emitter *E, em_arguments *args, const ast_node *node);
bool em_spread_partial(emitter *E, ir_value *object, em_arguments *args, const ast_node *node, em *out_callee);
/* ---- emit_starred.c ---- */
bool em_spread_list(emitter *E, const fe_function *f, size_t skipped, em_arguments *args, const ast_node *node);
/* ---- emit_spread.c ---- */
fe_function *em_spread_function(emitter *E, fe_function *f, size_t skipped, em_arguments *args);
bool em_spread_dict(emitter *E, const ast_node *node, em_arguments *out);
void em_check_strict(emitter *E, em_arguments *args, size_t count, const ast_node *node);

#endif

/* passes/pass_internal.h - helpers that the passes share. */
#ifndef PASSES_PASS_INTERNAL_H
#define PASSES_PASS_INTERNAL_H

#include "passes/passes.h"

enum { PASS_COUNTERS = 16 };

typedef struct pass_op_list {
    ir_op **items;
    size_t count, capacity;
} pass_op_list;

/* All operators of a function, each before those of its regions, in the order of the text. */
pass_op_list pass_collect(pass_context *ctx, const ir_function *f);
/* Appends one, and those of its regions. */
void pass_collect_op(pass_context *ctx, ir_op *op, pass_op_list *out);
bool pass_asks_for_gradients(const ir_block *b); /* somewhere in it */
/* How many there are, regions included. */
size_t pass_count_ops(const ir_block *block);
/* Numbers the parameters and results of the function in order, regions included: how many there are. */
uint32_t pass_number_values(const ir_function *f);
/* False once the operator, or one around it, was removed. */
bool pass_is_linked(const ir_op *op);
/* Replaces the uses of old; a value of a wider type goes through a cast, so that whoever relied on
 * old's type still may. */
void pass_replace(ir_module *m, ir_value *old, ir_value *with);
/* A builder that inserts before op, with its place. */
ir_builder pass_before(ir_module *m, ir_op *op);
/* Moves the operators of a region, but its terminator, before op. */
void pass_move_body(ir_op *op, ir_block *region);
bool pass_has_calls_to(const ir_module *m, const ir_function *f);

/* Whether v is of the type at run time: bool. */
ir_value *pass_build_refine(ir_builder *b, ir_value *v, const ir_type *type);
/* x and y: if x {yield y} else {yield false}. */
ir_value *pass_build_both(ir_builder *b, ir_value *x, ir_value *y);
/* A core operator by its row's name; operands that are NULL or not given take the schema's default. */
ir_op *pass_build_core(ir_builder *b, const char *name, ir_value *const *given, size_t count);

/* A tensor for a weight made of one that the model has: its memory may leave (passes.h). */
ts_status pass_make_weight(pass_context *ctx, rt_dtype dtype, const int64_t *sizes, int rank,
                           rt_tensor **out) TS_WARN_UNUSED;

/* if holds {} else { raise RuntimeError(message, its {} the sizes shown, four at most) } */
void pass_build_check(ir_builder *b, ir_value *holds, ts_str message, const rt_dim *shown,
                      size_t count);

/* ---- check_window.c ---- */
/* Before `place`: raises where a convolution's or a pool's window does not fit its image, of which
 * only a run knows the size. */
void pass_check_window(pass_context *ctx, ir_module *m, const ir_op *op, ir_op *place);

/* ---- check_concat.c: of a concatenation that kernels can hold ---- */
/* Whether sizes of its parts must be compared at run time. */
bool pass_concat_is_open(ir_module *m, const ir_op *concat);
/* Compares them before `place`, and raises what the operator would. */
void pass_check_concat(pass_context *ctx, ir_module *m, const ir_op *concat, ir_op *place);

/* Visits every object that v leads to once, an object before what its fields hold (visit may unset
 * some). Dict keys hold no objects. False: something lies too deep and was not seen. */
enum { PASS_OBJECT_DEPTH = 100 };
typedef struct pass_object_walk {
    pass_context *ctx;
    void (*visit)(void *user, rt_object *o);
    void *user;
    const void **seen; /* the walk's own */
    size_t seen_count, seen_capacity;
} pass_object_walk;
bool pass_walk_objects(pass_object_walk *w, rt_value v, int depth);

#define PASS(name, summary, level) ts_status pass_##name(pass_context *ctx, ir_module *m);
#include "passes/passes.def"

ts_status pass_inline_calls(pass_context *ctx, ir_module *m, bool library_too);

#endif

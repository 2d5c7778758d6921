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

#define PASS(name, summary, level) ts_status pass_##name(pass_context *ctx, ir_module *m);
#include "passes/passes.def"

ts_status pass_inline_calls(pass_context *ctx, ir_module *m, bool library_too);

#endif

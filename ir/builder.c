/* ir/builder.c - constructors of each kind of operator. */
#include <assert.h>

#include "ir/ir_internal.h"

ir_op *ir_build_core(ir_builder *b, rt_op op, ir_value *const *operands, size_t count) {
    ir_module *m = b->module;
    const ir_schema *schema = ir_schema_of(m, op);
    ir_type_bindings bindings = {0};
    assert(count == schema->arg_count || (schema->is_variadic && count >= schema->arg_count));
    for (size_t i = 0; i < count && i < schema->arg_count; i++)
        (void)ir_type_match(m, schema->args[i].type, operands[i]->type, &bindings);
    const ir_type **types = TS_NEW_ARRAY(m->arena, const ir_type *, schema->result_count);
    for (size_t i = 0; i < schema->result_count; i++)
        types[i] = ir_type_substitute(m, schema->results[i], &bindings);
    ir_op *made = ir_build_op(b, IR_OP_CORE, operands, count, types, schema->result_count);
    made->core = op;
    return made;
}

ir_value *ir_build_core1(ir_builder *b, rt_op op, ir_value *const *operands, size_t count) {
    ir_op *made = ir_build_core(b, op, operands, count);
    assert(made->result_count == 1);
    return made->results[0];
}

ir_value *ir_build_const(ir_builder *b, rt_value v) {
    return ir_build_const_typed(b, v, ir_type_of_value(b->module, v));
}

ir_value *ir_build_const_typed(ir_builder *b, rt_value v, const ir_type *t) {
    ir_op *op = ir_build_op(b, IR_OP_CONST, NULL, 0, &t, 1);
    op->value = v;
    ir_module_retain(b->module, v);
    return op->results[0];
}

ir_value *ir_build_int(ir_builder *b, int64_t i) { return ir_build_const(b, rt_int(i)); }
ir_value *ir_build_size(ir_builder *b, rt_dim d) {
    if (rt_dim_is_constant(d))
        return ir_build_int(b, d);
    const ir_type *t = ir_type_simple(b->module, IR_INT);
    ir_op *op = ir_build_op(b, IR_OP_DIM, NULL, 0, &t, 1);
    op->integer = d;
    return op->results[0];
}
ir_value *ir_build_bool(ir_builder *b, bool v) { return ir_build_const(b, rt_bool(v)); }
ir_value *ir_build_float(ir_builder *b, double f) { return ir_build_const(b, rt_float(f)); }
ir_value *ir_build_none(ir_builder *b) { return ir_build_const(b, rt_none()); }

ir_value *ir_build_str(ir_builder *b, ts_str s) {
    rt_value v;
    ts_status status = rt_str_make(s, &v);
    if (status) { /* out of memory goes the arena's way */
        ts_status_release(status);
        (void)ts_arena_array(b->module->arena, SIZE_MAX, 2);
        v = rt_none();
    }
    ir_value *made = ir_build_const(b, v);
    rt_release(v);
    return made;
}

static void add_region(ir_builder *b, ir_op *op) {
    ir_module *m = b->module;
    ir_block **regions = TS_NEW_ARRAY(m->arena, ir_block *, op->region_count + 1);
    if (op->region_count)
        memcpy(regions, op->regions, op->region_count * sizeof *regions);
    regions[op->region_count++] = ir_block_make(m, op, b->block->function);
    op->regions = regions;
}

ir_op *ir_build_if(ir_builder *b, ir_value *condition) {
    ir_op *op = ir_build_op(b, IR_OP_IF, &condition, 1, NULL, 0);
    add_region(b, op);
    add_region(b, op);
    return op;
}

ir_op *ir_build_loop(ir_builder *b, ir_value *max, ir_value *condition, ir_value *const *carried,
                     size_t count) {
    ir_op *op = ir_build_op(b, IR_OP_LOOP, NULL, 0, NULL, 0);
    ir_op_add_operand(b->module, op, max);
    ir_op_add_operand(b->module, op, condition);
    add_region(b, op);
    ir_block_add_parameter(b->module, op->regions[0], ir_type_simple(b->module, IR_INT),
                           (ts_str){0});
    for (size_t i = 0; i < count; i++)
        ir_op_add_operand(b->module, op, carried[i]);
    return op;
}

ir_op *ir_build_kernel(ir_builder *b, ir_kernel_kind kind, ir_value *const *inputs, size_t count) {
    ir_op *op = ir_build_op(b, IR_OP_KERNEL, inputs, count, NULL, 0);
    op->kernel_kind = kind;
    add_region(b, op);
    for (size_t i = 0; i < count; i++)
        ir_block_add_parameter(b->module, op->regions[0], inputs[i]->type, inputs[i]->name);
    return op;
}

void ir_build_yield(ir_builder *b, ir_value *const *values, size_t count) {
    ir_build_op(b, IR_OP_YIELD, values, count, NULL, 0);
}

void ir_build_return(ir_builder *b, ir_value *const *values, size_t count) {
    ir_build_op(b, IR_OP_RETURN, values, count, NULL, 0);
}

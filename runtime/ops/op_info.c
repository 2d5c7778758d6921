/* runtime/ops/op_info.c - the operator table, derived from core_ops.def.
 *
 * A row whose kernel or rule does not exist fails at link time with the missing name. */
#include "runtime/ops/ops.h"

#define OP(id, schema, infer, ref, lower, grad, effects)                                           \
    ts_status rt_infer_##infer(const rt_infer_context *ic, const rt_fact *args, size_t arg_count,  \
                               rt_fact *outs, size_t out_count);                                   \
    ts_status rt_ref_##ref(rt_context *context, const rt_value *args, rt_value *outs);
#include "runtime/ops/core_ops.def"

static const rt_op_info op_table[OP_COUNT] = {
#define OP(id, schema, infer, ref, lower, grad, effects)                                           \
    [OP_##id] = {schema, rt_infer_##infer, rt_ref_##ref, LOWER_##lower, GRAD_##grad, effects},
#include "runtime/ops/core_ops.def"
};

const rt_op_info *rt_op_get(rt_op op) { return &op_table[op]; }

ts_str rt_op_name(rt_op op) {
    const char *schema = op_table[op].schema;
    return (ts_str){schema, strcspn(schema, "(")};
}

rt_op rt_op_find(ts_str name) {
    /* Called while parsing IR and once per overload set; the table has some hundreds of rows. */
    for (int op = 0; op < OP_COUNT; op++)
        if (ts_str_equal(rt_op_name((rt_op)op), name))
            return (rt_op)op;
    return OP_COUNT;
}

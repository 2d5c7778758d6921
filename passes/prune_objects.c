/* passes/prune_objects.c - attributes that nothing reads any more are unset in the object tree.
 *
 * After freezing and folding, weights live in constants of the IR; the originals in the tree would
 * go into the artifact a second time. Goes by the attribute's name: what any get_attr of the module
 * still reads stays. Objects that are handed to an operator or returned keep everything. */
#include "passes/pass_internal.h"

typedef struct pruner {
    pass_context *ctx;
    ts_str *names;
    size_t count, capacity;
    bool escapes;
} pruner;

static bool holds_object(const ir_type *t) {
    if (t->kind == IR_CLASS || t->kind == IR_ANY)
        return true;
    for (size_t i = 0; i < t->arg_count; i++)
        if (holds_object(t->args[i]))
            return true;
    return false;
}

static void scan(pruner *p, const ir_op *op) {
    if (op->opcode == IR_OP_GET_ATTR)
        TS_APPEND(p->ctx->scratch, p->names, p->count, p->capacity, op->name);
    bool fine = op->opcode == IR_OP_GET_ATTR || op->opcode == IR_OP_SET_ATTR ||
                op->opcode == IR_OP_CALL || op->opcode == IR_OP_CALL_METHOD || op->opcode == IR_OP_TRY_CALL ||
                op->opcode == IR_OP_IF || op->opcode == IR_OP_LOOP || op->opcode == IR_OP_YIELD ||
                op->opcode == IR_OP_CAST || op->opcode == IR_OP_IS_INSTANCE ||
                op->opcode == IR_OP_CHECK_CAST;
    for (size_t i = 0; i < op->operand_count && !fine; i++)
        if (holds_object(op->operands[i]->type))
            p->escapes = true;
}

static bool is_read(const pruner *p, ts_str name) {
    for (size_t i = 0; i < p->count; i++)
        if (ts_str_equal(p->names[i], name))
            return true;
    return false;
}

static void prune(void *user, rt_object *o) {
    pruner *p = user;
    for (size_t i = 0; i < o->field_count; i++)
        if (!is_read(p, o->class_->fields[i]) && o->fields[i].tag != RT_TAG_UNINITIALIZED) {
            rt_assign(&o->fields[i], (rt_value){.tag = RT_TAG_UNINITIALIZED});
            pass_count(p->ctx, "attributes", 1);
        }
}

ts_status pass_prune_objects(pass_context *ctx, ir_module *m) {
    pruner p = {.ctx = ctx};
    bool any_entry = false;
    for (ir_function *f = m->functions; f; f = f->next) {
        any_entry |= f->is_entry;
        pass_op_list ops = pass_collect(ctx, f);
        for (size_t i = 0; i < ops.count; i++)
            scan(&p, ops.items[i]);
    }
    pass_object_walk walk = {.ctx = ctx, .visit = prune, .user = &p};
    if (any_entry && !p.escapes)
        (void)pass_walk_objects(&walk, m->root, 0); /* what lies too deep stays */
    return NULL;
}

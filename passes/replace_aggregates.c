/* passes/replace_aggregates.c - tuples and lists that only pass values on become those values.
 *
 *   tuple_get.1(tuple(%a, %b))        =>  %b
 *   list_unpack(list(%a, %b))         =>  %a, %b
 *   __getitem__.t(list(%a, %b), -1)   =>  %b      len.t => 2
 *   yields and carried values of tuple type become one for each item
 *   if %c {yield none} else {...}     stays
 *
 * Lists count only while nobody changes them or hands them on (ir_list_is_stable). */
#include "passes/pass_internal.h"

static bool is_named(const ir_op *op, const char *name) {
    return op->opcode == IR_OP_CORE && ts_str_is(rt_op_name(op->core), name);
}

/* Reading an item of a list does not hand the list on, though the item may be. */
static bool is_read_only(const ir_value *list) {
    if (!list->def || list->def->opcode != IR_OP_LIST)
        return false;
    for (size_t i = 0; i < list->use_count; i++) {
        const ir_op *user = list->uses[i].op;
        if (user->opcode == IR_OP_LIST_UNPACK)
            continue;
        if (user->opcode != IR_OP_CORE)
            return false;
        const ir_schema *s = ir_schema_of(user->block->function->module, user->core);
        size_t at = list->uses[i].operand;
        if (at >= s->arg_count || s->args[at].is_written)
            return false;
        for (size_t j = 0; j < user->result_count; j++) {
            ir_kind kind = user->results[j]->type->kind;
            bool may_hold = kind == IR_LIST || kind == IR_DICT || kind == IR_ANY ||
                            kind == IR_CLASS || kind == IR_UNION;
            if (may_hold && ir_type_is_mutable(user->results[j]->type) &&
                !is_named(user, "__getitem__.t"))
                return false;
        }
    }
    return true;
}

static bool replace_item(pass_context *ctx, ir_module *m, ir_op *op) {
    ir_value *list = op->operand_count ? op->operands[0] : NULL;
    if (!list || !list->def || list->def->opcode != IR_OP_LIST || !is_read_only(list))
        return false;
    ir_op *made = list->def;
    int64_t at;
    int64_t count = (int64_t)made->operand_count;
    if (op->opcode == IR_OP_LIST_UNPACK) {
        if (op->result_count != made->operand_count)
            return false;
        for (size_t i = 0; i < op->result_count; i++)
            pass_replace(m, op->results[i], made->operands[i]);
    } else if (is_named(op, "len.t")) {
        ir_builder b = pass_before(m, op);
        ir_replace_uses(m, op->results[0], ir_build_int(&b, count));
    } else if (is_named(op, "__getitem__.t") && ir_const_int(op->operands[1], &at)) {
        at = at < 0 ? at + count : at;
        if (at < 0 || at >= count)
            return false;
        pass_replace(m, op->results[0], made->operands[at]);
    } else {
        return false;
    }
    ir_op_remove(op);
    pass_count(ctx, "list_items", 1);
    return true;
}

static bool replace_tuple_item(pass_context *ctx, ir_module *m, ir_op *op) {
    ir_op *made = op->operands[0]->def;
    if (!made || made->opcode != IR_OP_TUPLE)
        return false;
    if (op->opcode == IR_OP_TUPLE_GET)
        pass_replace(m, op->results[0], made->operands[op->integer]);
    else
        for (size_t i = 0; i < op->result_count; i++)
            pass_replace(m, op->results[i], made->operands[i]);
    ir_op_remove(op);
    pass_count(ctx, "tuple_items", 1);
    return true;
}

/* ---- tuples through branches and loops ---- */

/* Inserts the items of value (a tuple) before op and returns them. */
static ir_value **take_apart(pass_context *ctx, ir_module *m, ir_op *before, ir_value *tuple) {
    const ir_type *t = tuple->type;
    ir_builder b = pass_before(m, before);
    ir_value **items = TS_NEW_ARRAY(ctx->scratch, ir_value *, t->arg_count);
    bool unset = tuple->def && tuple->def->opcode == IR_OP_UNINITIALIZED;
    for (size_t i = 0; i < t->arg_count; i++) {
        if (unset) { /* on a path that is never taken further */
            ir_op *none = ir_build_op(&b, IR_OP_UNINITIALIZED, NULL, 0, &t->args[i], 1);
            none->type = t->args[i];
            items[i] = none->results[0];
            continue;
        }
        ir_op *get = ir_build_op(&b, IR_OP_TUPLE_GET, &tuple, 1, &t->args[i], 1);
        get->integer = (int64_t)i;
        items[i] = get->results[0];
    }
    return items;
}

static ir_value *put_together(ir_module *m, ir_builder *b, ir_value *const *items,
                              const ir_type *t) {
    (void)m;
    return ir_build_op(b, IR_OP_TUPLE, items, t->arg_count, &t, 1)->results[0];
}

/* One result of tuple type becomes one for each item, appended at the end. */
static void split_result(pass_context *ctx, ir_module *m, ir_op *op, size_t at) {
    const ir_type *t = op->results[at]->type;
    size_t skip = op->opcode == IR_OP_LOOP ? 1 : 0;
    for (size_t r = 0; r < op->region_count; r++) {
        ir_op *end = op->regions[r]->last;
        ir_value **items = take_apart(ctx, m, end, end->operands[at + skip]);
        for (size_t i = 0; i < t->arg_count; i++)
            ir_op_add_operand(m, end, items[i]);
    }
    if (op->opcode == IR_OP_LOOP) {
        ir_value **items = take_apart(ctx, m, op, op->operands[at + 2]);
        ir_block *body = op->regions[0];
        ir_value *parameter = body->parameters[at + 1];
        ir_value **inner = TS_NEW_ARRAY(ctx->scratch, ir_value *, t->arg_count);
        for (size_t i = 0; i < t->arg_count; i++) {
            ir_op_add_operand(m, op, items[i]);
            inner[i] = ir_block_add_parameter(m, body, t->args[i], parameter->name);
        }
        ir_builder b = {.module = m, .block = body, .before = body->first, .place = op->place};
        ir_value *whole = put_together(m, &b, inner, parameter->type);
        ir_replace_uses(m, parameter, whole);
    }
    ir_value **outer = TS_NEW_ARRAY(ctx->scratch, ir_value *, t->arg_count);
    for (size_t i = 0; i < t->arg_count; i++)
        outer[i] = ir_op_add_result(m, op, t->args[i], op->results[at]->name);
    ir_builder b = {.module = m, .block = op->block, .before = op->next, .place = op->place};
    ir_value *whole = put_together(m, &b, outer, t);
    ir_replace_uses(m, op->results[at], whole);
    for (size_t r = 0; r < op->region_count; r++)
        ir_op_remove_operand(m, op->regions[r]->last, at + skip);
    if (op->opcode == IR_OP_LOOP) {
        ir_op_remove_operand(m, op, at + 2);
        ir_block_remove_parameter(op->regions[0], at + 1);
    }
    ir_op_remove_result(op, at);
    pass_count(ctx, "split", 1);
}

/* A tuple is taken apart where every path makes one: otherwise a path that yields, say, a call's
 * result would only gain tuple_gets. NamedTuples too: they are rebuilt with their class. */
static bool is_split(const ir_op *op, size_t at) {
    const ir_type *t = op->results[at]->type;
    if (t->kind != IR_TUPLE || t->arg_count == 0 || t->arg_count > 64)
        return false;
    size_t skip = op->opcode == IR_OP_LOOP ? 1 : 0;
    for (size_t r = 0; r < op->region_count; r++) {
        const ir_value *v = op->regions[r]->last->operands[at + skip];
        bool made = v->def && (v->def->opcode == IR_OP_TUPLE || v->def->opcode == IR_OP_CONST ||
                               v->def->opcode == IR_OP_UNINITIALIZED);
        if (!made || v->type->kind != IR_TUPLE || v->type->arg_count != t->arg_count)
            return false;
    }
    if (op->opcode != IR_OP_LOOP)
        return true;
    const ir_value *v = op->operands[at + 2], *p = op->regions[0]->parameters[at + 1];
    return !(v->def && v->def->opcode == IR_OP_UNINITIALIZED) && v->type->kind == IR_TUPLE && p->type == t && v->type->arg_count == t->arg_count;
}

ts_status pass_replace_aggregates(pass_context *ctx, ir_module *m) {
    for (ir_function *f = m->functions; f; f = f->next) {
        pass_op_list ops = pass_collect(ctx, f);
        for (size_t i = 0; i < ops.count; i++) {
            ir_op *op = ops.items[i];
            if (op->opcode != IR_OP_IF && op->opcode != IR_OP_LOOP)
                continue;
            for (size_t at = op->result_count; at-- > 0;)
                if (is_split(op, at))
                    split_result(ctx, m, op, at);
        }
        ops = pass_collect(ctx, f);
        for (size_t i = 0; i < ops.count; i++) {
            ir_op *op = ops.items[i];
            if (op->opcode == IR_OP_TUPLE_GET || op->opcode == IR_OP_TUPLE_UNPACK)
                (void)replace_tuple_item(ctx, m, op);
            else if (op->opcode == IR_OP_CORE || op->opcode == IR_OP_LIST_UNPACK)
                (void)replace_item(ctx, m, op);
        }
    }
    return NULL;
}

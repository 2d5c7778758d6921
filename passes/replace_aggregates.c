/* passes/replace_aggregates.c - tuples and lists that only pass values on become those values.
 *
 *   tuple_get.1(tuple(%a, %b))        =>  %b
 *   list_unpack(list(%a, %b))         =>  %a, %b
 *   __getitem__.t(list(%a, %b), -1)   =>  %b      len.t => 2
 *   yields and carried values of tuple type become one for each item
 *   %l = list(%a); append.t(%l, %b); cat(%l)   =>  cat(list(%a, %b))   appends in one block
 *
 * Lists count only while nobody changes them or hands them on (ir_list_is_stable). */
#include "passes/pass_internal.h"

/* Of a list that is written out: a list that doubles from line to line would have no end. */
enum { MOST_ITEMS = 16384 };

static bool is_named(const ir_op *op, const char *name) {
    return op->opcode == IR_OP_CORE && ts_str_is(rt_op_name(op->core), name);
}

/* Reading an item of a list does not hand the list on, though the item may be. */
static bool is_read_only(const ir_value *list) {
    if (!list->def || list->def->opcode != IR_OP_LIST)
        return false;
    if (ir_list_is_stable(list))
        return true;
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
            bool copy = kind == IR_LIST && j < s->result_count && !s->result_aliases[j] &&
                        s->results[j]->kind == IR_LIST;
            if (may_hold && !copy && ir_type_is_mutable(user->results[j]->type) &&
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
    } else if (is_named(op, "add.t")) {
        ir_op *other = op->operands[1]->def;
        if (!other || other->opcode != IR_OP_LIST || !is_read_only(op->operands[1]) ||
            made->operand_count + other->operand_count > MOST_ITEMS)
            return false;
        ir_builder b = pass_before(m, op);
        ir_op *both = ir_build_op(&b, IR_OP_LIST, made->operands, made->operand_count,
                                  &op->results[0]->type, 1);
        for (size_t i = 0; i < other->operand_count; i++)
            ir_op_add_operand(m, both, other->operands[i]);
        ir_replace_uses(m, op->results[0], both->results[0]);
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

/* ---- lists that grow in one block ---- */

/* The operator of `block` that op is, or stands inside of; NULL where it is elsewhere. */
static ir_op *ancestor_in(const ir_block *block, ir_op *op) {
    while (op && op->block != block)
        op = op->block->parent;
    return op;
}

/* May one more use of a list that grows be given a list of its items of the moment? */
static bool may_snapshot(const ir_value *list, const ir_use *use) {
    const ir_op *op = use->op;
    const ir_block *block = list->def->block;
    if (!ancestor_in(block, use->op))
        return false;
    if (op->opcode == IR_OP_LIST_UNPACK)
        return true;
    if (op->opcode != IR_OP_CORE)
        return false;
    if (is_named(op, "append.t") && use->operand == 0)
        return op->block == block && op->results[0]->use_count == 0;
    const ir_schema *s = ir_schema_of(block->function->module, op->core);
    if (use->operand >= s->arg_count || s->args[use->operand].is_written)
        return false;
    for (size_t i = 0; i < op->result_count; i++) {
        ir_kind kind = op->results[i]->type->kind;
        bool may_hold = kind == IR_LIST || kind == IR_DICT || kind == IR_ANY || kind == IR_CLASS ||
                        kind == IR_UNION;
        /* A new list of the same elements, as of add.t, holds them but not this list. */
        bool copy = kind == IR_LIST && !s->result_aliases[i] && s->results[i]->kind == IR_LIST;
        if (may_hold && !copy && ir_type_is_mutable(op->results[i]->type) &&
            !is_named(op, "__getitem__.t"))
            return false;
    }
    return true;
}

static size_t uses_inside(const ir_op *outer, const ir_value *list, size_t *out_index) {
    size_t count = 0;
    for (size_t i = 0; i < list->use_count; i++)
        if (ancestor_in(outer->block, list->uses[i].op) == outer) {
            *out_index = i;
            count++;
        }
    return count;
}

/* A list made here, appended to in its own block and otherwise only read: each reader gets the
 * items that are in it by then. */
static bool spread_list(pass_context *ctx, ir_module *m, ir_op *made) {
    ir_value *list = made->results[0];
    bool grows = false;
    for (size_t i = 0; i < list->use_count; i++) {
        if (!may_snapshot(list, &list->uses[i]))
            return false;
        grows |= is_named(list->uses[i].op, "append.t") && list->uses[i].operand == 0;
    }
    if (!grows)
        return false;
    struct {
        ir_value **items;
        size_t count, capacity;
    } now = {0};
    for (size_t i = 0; i < made->operand_count; i++)
        TS_APPEND(ctx->scratch, now.items, now.count, now.capacity, made->operands[i]);
    ir_value *snapshot = NULL; /* a list of what is in it now */
    for (ir_op *op = made->next, *next; op; op = next) {
        next = op->next;
        size_t at;
        if (!uses_inside(op, list, &at))
            continue;
        if (is_named(op, "append.t") && op->operands[0] == list) {
            TS_APPEND(ctx->scratch, now.items, now.count, now.capacity, op->operands[1]);
            ir_op_remove(op);
            snapshot = NULL;
            continue;
        }
        if (!snapshot) {
            ir_builder b = pass_before(m, op);
            snapshot =
                ir_build_op(&b, IR_OP_LIST, now.items, now.count, &list->type, 1)->results[0];
            snapshot->name = list->name;
        }
        while (uses_inside(op, list, &at))
            ir_op_set_operand(m, list->uses[at].op, list->uses[at].operand, snapshot);
    }
    ir_op_remove(made);
    pass_count(ctx, "grown_lists", 1);
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
        for (size_t i = 0; i < ops.count; i++)
            if (ops.items[i]->opcode == IR_OP_LIST)
                (void)spread_list(ctx, m, ops.items[i]);
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

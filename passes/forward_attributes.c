/* passes/forward_attributes.c - an attribute that was just set, or read, is not read again.
 *
 *   set_attr.h(#0, %a)  ...  %b = get_attr.h(#0)     =>   %b is %a
 *
 * So what a module keeps from call to call has the type of what was stored, not the attribute's.
 * A store may be to any object whose attribute has the name, unless both objects are known; a call
 * may store anything. Needs: inline, freeze (objects are constants). Keeps: every store, as another
 * call may read it. Why not eliminate_common: attributes change, and its operators are pure. */
#include "passes/pass_internal.h"

typedef struct known {
    ir_value *object, *value;
    ts_str name;
} known;

typedef struct known_list {
    known *items;
    size_t count, capacity;
} known_list;

static const void *constant_object(const ir_value *v) {
    bool is_object = v->def && v->def->opcode == IR_OP_CONST && v->def->value.tag == RT_TAG_OBJECT;
    return is_object ? v->def->value.as.object : NULL;
}

static bool same_object(const ir_value *a, const ir_value *b) {
    return a == b || (constant_object(a) && constant_object(a) == constant_object(b));
}

static bool may_be_same(const ir_value *a, const ir_value *b) {
    return same_object(a, b) || !constant_object(a) || !constant_object(b);
}

static void forget(known_list *list, const ir_value *object, ts_str name) {
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (!ts_str_equal(list->items[i].name, name) || (object && !may_be_same(list->items[i].object, object)))
            list->items[kept++] = list->items[i];
    list->count = kept;
}

static bool may_run_code(const ir_op *op) {
    return op->opcode == IR_OP_CALL || op->opcode == IR_OP_CALL_METHOD || op->opcode == IR_OP_TRY_CALL;
}

/* What the regions of op may have stored when it ends, and before each round of a loop. */
static void forget_stores(known_list *list, const ir_op *op) {
    for (size_t r = 0; r < op->region_count; r++)
        for (const ir_op *inner = op->regions[r]->first; inner; inner = inner->next) {
            if (may_run_code(inner))
                list->count = 0;
            if (inner->opcode == IR_OP_SET_ATTR)
                forget(list, NULL, inner->name);
            forget_stores(list, inner);
        }
}

static void remember(pass_context *ctx, known_list *list, ir_value *object, ts_str name, ir_value *value) {
    known k = {object, value, name};
    TS_APPEND(ctx->scratch, list->items, list->count, list->capacity, k);
}

static ir_value *find(const known_list *list, const ir_op *get) {
    for (size_t i = list->count; i-- > 0;)
        if (ts_str_equal(list->items[i].name, get->name) && same_object(list->items[i].object, get->operands[0]))
            return list->items[i].value;
    return NULL;
}

static void forward(pass_context *ctx, ir_module *m, ir_block *block, const known_list *from_outside) {
    known_list list = {0};
    for (size_t i = 0; i < from_outside->count; i++)
        remember(ctx, &list, from_outside->items[i].object, from_outside->items[i].name, from_outside->items[i].value);
    for (ir_op *op = block->first, *next; op; op = next) {
        next = op->next;
        if (may_run_code(op))
            list.count = 0;
        if (op->region_count) {
            bool repeats = op->opcode != IR_OP_IF;
            if (repeats)
                forget_stores(&list, op);
            for (size_t r = 0; r < op->region_count; r++)
                forward(ctx, m, op->regions[r], &list);
            if (!repeats)
                forget_stores(&list, op);
        }
        if (op->opcode == IR_OP_SET_ATTR) {
            forget(&list, op->operands[0], op->name);
            remember(ctx, &list, op->operands[0], op->name, op->operands[1]);
        }
        if (op->opcode != IR_OP_GET_ATTR)
            continue;
        ir_value *value = find(&list, op);
        if (value) {
            pass_replace(m, op->results[0], value);
            ir_op_remove(op);
            pass_count(ctx, "forwarded", 1);
        } else {
            remember(ctx, &list, op->operands[0], op->name, op->results[0]);
        }
    }
}

ts_status pass_forward_attributes(pass_context *ctx, ir_module *m) {
    const known_list none = {0};
    for (ir_function *f = m->functions; f; f = f->next)
        if (f->body)
            forward(ctx, m, f->body, &none);
    return NULL;
}

/* ir/cycles.c - which stores may make a list, dict or object hold itself. The running program asks
 * those that do whether anybody else still holds them (runtime/cycles.c), so a "no" here must be
 * certain; types decide it: what is stored, and whatever a value of that type can hold, is compared
 * with the container. */
#include "ir/ir_internal.h"

enum { CLASSES_MAX = 64, DEPTH_MAX = 32 }; /* beyond either: it may */

typedef struct search {
    const ir_module *module;
    const ir_type *holder; /* looked for; NULL: only classes are collected */
    const ir_class *seen[CLASSES_MAX];
    size_t seen_count;
} search;

static bool is_one_class(const ir_class *a, const ir_class *b) {
    return rt_class_is_a(&a->base, &b->base) || rt_class_is_a(&b->base, &a->base);
}

/* Whether a value may be of both types: what tensors are is left aside. */
static bool may_be_one(const ir_type *a, const ir_type *b, int depth) {
    bool is_open = a->kind == IR_ANY || b->kind == IR_ANY || a->kind == IR_UNION ||
                   b->kind == IR_UNION || a->kind == IR_OPTIONAL || b->kind == IR_OPTIONAL ||
                   a->kind == IR_NUMBER || b->kind == IR_NUMBER;
    if (a == b || is_open || depth > DEPTH_MAX)
        return true;
    if (a->kind != b->kind || a->arg_count != b->arg_count)
        return false;
    if (a->kind == IR_CLASS)
        return a->class_ == NULL || b->class_ == NULL || is_one_class(a->class_, b->class_);
    for (size_t i = 0; i < a->arg_count; i++)
        if (!may_be_one(a->args[i], b->args[i], depth + 1))
            return false;
    return true;
}

static bool reaches(search *s, const ir_type *t, int depth);

static bool class_reaches(search *s, const ir_class *c, int depth) {
    for (size_t i = 0; i < s->seen_count; i++)
        if (s->seen[i] == c)
            return false;
    if (s->seen_count == CLASSES_MAX || c->base.kind == RT_CLASS_INTERFACE)
        return true;
    s->seen[s->seen_count++] = c;
    for (size_t i = 0; i < c->field_count; i++)
        if (c->fields[i].type && reaches(s, c->fields[i].type, depth))
            return true;
    for (size_t i = 0; i < s->module->class_count; i++) {
        const ir_class *derived = s->module->classes[i];
        if (derived != c && rt_class_is_a(&derived->base, &c->base) &&
            class_reaches(s, derived, depth))
            return true;
    }
    return false;
}

/* Whether a value of type t may be, or hold, one of the holder's type. */
static bool reaches(search *s, const ir_type *t, int depth) {
    enum { NOTHING, PARTS, ANYTHING };
    static const char holds[] = {
#define KIND(name, text, is_mutable, holds) holds,
#include "ir/type_kinds.def"
    };
    if (depth > DEPTH_MAX || holds[t->kind] != PARTS)
        return depth > DEPTH_MAX || holds[t->kind] == ANYTHING;
    bool is_container = t->kind == IR_LIST || t->kind == IR_DICT || t->kind == IR_CLASS;
    if (is_container && s->holder && may_be_one(t, s->holder, 0))
        return true;
    if (t->kind == IR_CLASS)
        return !t->class_ || class_reaches(s, t->class_, depth + 1);
    for (size_t i = 0; i < t->arg_count; i++)
        if (reaches(s, t->args[i], depth + 1))
            return true;
    return false;
}

static bool may_hold(const ir_module *m, const ir_type *held, const ir_type *holder) {
    search s = {.module = m, .holder = holder};
    return reaches(&s, held, 0);
}

static bool fields_reach(const ir_module *m, const ir_class *c) {
    for (size_t i = 0; i < c->field_count; i++)
        if (c->fields[i].type && may_hold(m, c->fields[i].type, c->type))
            return true;
    return false;
}

/* Whether a value of type t may have something in it that holds itself. */
static bool may_have_cycle(const ir_module *m, const ir_type *t) {
    search all = {.module = m};
    if (reaches(&all, t, 0)) /* Any, or more than is followed */
        return true;
    for (size_t i = 0; i < all.seen_count; i++)
        if (fields_reach(m, all.seen[i]))
            return true;
    return false;
}

/* A list or dict whose items may hold it. */
static bool is_recursive(const ir_module *m, const ir_type *t) {
    switch (t->kind) {
    case IR_LIST:
    case IR_DICT:
        for (size_t i = 0; i < t->arg_count; i++)
            if (may_hold(m, t->args[i], t))
                return true;
        return false;
    case IR_ANY:
    case IR_OPTIONAL:
    case IR_UNION:
        return true;
    default:
        return false;
    }
}

static const ir_value *core_store(const ir_module *m, const ir_op *op) {
    if (op->core == OP_prim_deepcopy)
        return may_have_cycle(m, op->results[0]->type) ? op->results[0] : NULL;
    for (size_t i = 0; i < op->operand_count; i++) {
        const ir_value *holder = op->operands[i];
        if (!is_recursive(m, holder->type) || !ir_op_writes(op, i))
            continue;
        for (size_t k = 0; k < op->operand_count; k++)
            if (k != i && may_hold(m, op->operands[k]->type, holder->type))
                return holder;
    }
    return NULL;
}

const ir_value *ir_op_closes_cycle(const ir_op *op) {
    const ir_module *m = op->block->function->module;
    if (op->opcode == IR_OP_CORE)
        return core_store(m, op);
    if (op->opcode == IR_OP_SET_ATTR &&
        may_hold(m, op->operands[1]->type, op->operands[0]->type))
        return op->operands[0];
    return NULL;
}

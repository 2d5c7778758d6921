/* frontend/emit_empty.c - the type of `[]`, `{}` and `set()` without an annotation.
 *
 * TorchScript takes them for List[Tensor] and Dict[str, Tensor]. A script may mean others: where an item of
 * another type is put in, that type is kept for the display and the function is emitted anew. */
#include "frontend/emit_internal.h"

enum { MAX_TRACE = 24 };

static ts_str pointer_key(emitter *E, const void *p) {
    return (ts_str){ts_arena_copy(E->arena, (const char *)&p, sizeof p), sizeof p};
}

const ir_type *em_empty_type(emitter *E, const ast_node *node, const ir_type *otherwise) {
    if (!node || !node->source || node->source->is_archive)
        return otherwise;
    const ir_type *known = fe_map_get(&E->fe->empty_types, pointer_key(E, node));
    return known ? known : otherwise;
}

void em_note_empty(emitter *E, const ir_value *v, const ast_node *node) {
    if (node && node->source && !node->source->is_archive)
        fe_map_set(E->arena, &E->empty_displays, pointer_key(E, v->def), (void *)(uintptr_t)node);
}

/* The type of a dict that was made with None for its values: what is put in later says what else they may be. */
const ir_type *em_open_dict(emitter *E, const ir_value *dict, const ir_type *key, const ast_node *node) {
    const ir_type *t = em_empty_type(E, node, ir_type_dict(E->m, key, ir_type_any_tensor(E->m)));
    em_note_empty(E, dict, node);
    return ir_type_dict(E->m, t->args[0], ir_type_optional(E->m, t->args[1]));
}

static bool retype(emitter *E, const ir_value *v, const ir_type *want, int depth);

/* The items that a list was made of and those appended to it. */
static bool retype_items(emitter *E, const ir_value *list, const ir_type *want, int depth) {
    bool found = false;
    for (size_t i = 0; i < list->def->operand_count; i++)
        found = retype(E, list->def->operands[i], want, depth + 1) || found;
    for (size_t i = 0; i < list->use_count; i++) {
        const ir_op *use = list->uses[i].op;
        if (use->opcode == IR_OP_CORE && use->operand_count == 2 && list->uses[i].operand == 0 &&
            ts_str_starts_with(rt_op_name(use->core), "append"))
            found = retype(E, use->operands[1], want, depth + 1) || found;
    }
    return found;
}

/* The container that an operator's result is a copy, a part or an item of. */
static bool retype_source(emitter *E, const ir_value *v, const ir_type *want, int depth) {
    static const char *const items[] = {"__getitem__", "get.", "pop", "setdefault"};
    const ir_value *from = v->def->operands[0];
    ts_str name = rt_op_name(v->def->core);
    const ir_type *t = from->type;
    bool is_item = false;
    if (v->type == t)
        return retype(E, from, want, depth + 1);
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        is_item = is_item || ts_str_starts_with(name, items[i]);
    if (t->kind == IR_LIST)
        return is_item && retype(E, from, ir_type_list(E->m, want), depth + 1);
    if (t->kind != IR_DICT)
        return false;
    if (want->kind == IR_LIST && ts_str_starts_with(name, "keys"))
        return retype(E, from, ir_type_dict(E->m, want->args[0], t->args[1]), depth + 1);
    if (want->kind == IR_LIST && ts_str_starts_with(name, "values"))
        return retype(E, from, ir_type_dict(E->m, t->args[0], want->args[0]), depth + 1);
    return is_item && retype(E, from, ir_type_dict(E->m, t->args[0], want), depth + 1);
}

static bool retype(emitter *E, const ir_value *v, const ir_type *want, int depth) {
    if (!v || depth > MAX_TRACE || (want->kind != IR_LIST && want->kind != IR_DICT))
        return false;
    if (!v->def) {
        const ir_op *loop = v->block->parent;
        if (!loop)
            return em_learn_parameter(E, v->index, want);
        return loop && loop->opcode == IR_OP_LOOP && v->index &&
               retype(E, loop->operands[v->index + 1], want, depth + 1);
    }
    const ir_op *op = v->def;
    bool found = false;
    switch (op->opcode) {
    case IR_OP_LIST:
    case IR_OP_DICT: {
        const ast_node *node = op->operand_count ? NULL : fe_map_get(&E->empty_displays, pointer_key(E, op));
        ts_str key = pointer_key(E, node);
        if (v->type->kind != want->kind)
            return false;
        if (!node)
            return op->opcode == IR_OP_LIST && retype_items(E, v, want->args[0], depth);
        const ir_type *old = fe_map_get(&E->fe->empty_types, key);
        const ir_type *type = em_joined_empty(E, old, ir_type_forget(E->m, want));
        if (type == old || type == v->type)
            return false;
        fe_map_set(E->arena, &E->fe->empty_types, key, (void *)(uintptr_t)type);
        E->restart = true;
        return true;
    }
    case IR_OP_CAST:
    case IR_OP_CHECK_CAST:
        return retype(E, op->operands[0], want, depth + 1);
    case IR_OP_CALL: { /* what a method of a container gives */
        const ir_op *last = op->function ? op->function->body->last : NULL;
        return last && last->opcode == IR_OP_RETURN && last->operand_count == 1 &&
               retype(E, last->operands[0], want, depth + 1);
    }
    case IR_OP_GET_ATTR:
        return em_learn_empty_field(E, (ir_class *)(uintptr_t)op->operands[0]->type->class_, op->name, want);
    case IR_OP_CONST: {
        rt_value constant;
        return ir_const_value(v, &constant) && em_learn_constant(E, constant, want);
    }
    case IR_OP_LOOP:
        return v->index + 2 < op->operand_count && retype(E, op->operands[v->index + 2], want, depth + 1);
    case IR_OP_IF:
        for (size_t i = 0; i < 2; i++) {
            const ir_op *yield = op->regions[i]->last;
            if (yield && yield->opcode == IR_OP_YIELD && v->index < yield->operand_count)
                found = retype(E, yield->operands[v->index], want, depth + 1) || found;
        }
        return found;
    case IR_OP_CORE:
        return op->operand_count && retype_source(E, v, want, depth);
    default:
        return false;
    }
}

bool em_retype_empty(emitter *E, const ir_value *v, const ir_type *want) { return retype(E, v, want, 0); }

bool em_retype_list(emitter *E, const ir_value *list, const ir_value *item) {
    return item && !ir_type_is_subtype(item->type, list->type->args[0]) &&
           retype(E, list, ir_type_list(E->m, item->type), 0);
}

bool em_retype_dict(emitter *E, const ir_value *dict, const ir_value *key, const ir_value *value) {
    if (!key || !value)
        return false;
    bool fits = ir_type_is_subtype(key->type, dict->type->args[0]) &&
                ir_type_is_subtype(value->type, dict->type->args[1]);
    return !fits && retype(E, dict, ir_type_dict(E->m, key->type, value->type), 0);
}

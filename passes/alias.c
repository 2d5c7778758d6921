/* passes/alias.c - sets of values that may share memory: union-find over one function. */
#include "passes/alias.h"

/* WRITTEN: contents of tensors; CHANGED: a list, dict or object. A list and its tensors are of one
 * set, and to append to the one changes nothing in the others. */
enum { SET_WRITTEN = 1, SET_OUTSIDE = 2, SET_RETURNED = 4, SET_RESHAPED = 8, SET_CHANGED = 16 };

struct pass_alias {
    pass_context *ctx;
    ir_module *m;
    uint32_t *parents; /* by value number; then one for the outside, then storages */
    uint8_t *flags;    /* at the root of a set */
    uint32_t count, capacity;
    uint32_t outside;
    const void **storages; /* memory of constants: pointer -> node */
    uint32_t *storage_nodes;
    size_t storage_count, storage_capacity, node_capacity;
    ts_str *set_names; /* of attributes that some function of the module sets; found when asked for */
    size_t set_count, set_capacity;
    bool has_set_names;
};

static uint32_t add_node(pass_alias *a) {
    if (a->count == a->capacity) {
        uint32_t capacity = a->capacity ? 2 * a->capacity : 64;
        uint32_t *parents = TS_NEW_ARRAY(a->ctx->scratch, uint32_t, capacity);
        uint8_t *flags = TS_NEW_ARRAY(a->ctx->scratch, uint8_t, capacity);
        if (a->count) {
            memcpy(parents, a->parents, a->count * sizeof *parents);
            memcpy(flags, a->flags, a->count * sizeof *flags);
        }
        a->parents = parents;
        a->flags = flags;
        a->capacity = capacity;
    }
    a->parents[a->count] = a->count;
    return a->count++;
}

static uint32_t root_of(pass_alias *a, uint32_t node) {
    while (a->parents[node] != node) {
        a->parents[node] = a->parents[a->parents[node]];
        node = a->parents[node];
    }
    return node;
}

static void join_nodes(pass_alias *a, uint32_t x, uint32_t y) {
    x = root_of(a, x);
    y = root_of(a, y);
    if (x == y)
        return;
    a->parents[y] = x;
    a->flags[x] |= a->flags[y];
}

static void set_flag(pass_alias *a, const ir_value *v, uint8_t flag) {
    uint32_t r = root_of(a, v->number);
    a->flags[r] |= flag;
}

static void join(pass_alias *a, const ir_value *x, const ir_value *y) {
    if (ir_type_is_mutable(x->type) && ir_type_is_mutable(y->type))
        join_nodes(a, x->number, y->number);
}

static uint32_t storage_node(pass_alias *a, const void *pointer) {
    for (size_t i = 0; i < a->storage_count; i++)
        if (a->storages[i] == pointer)
            return a->storage_nodes[i];
    uint32_t node = add_node(a);
    size_t count = a->storage_count;
    TS_APPEND(a->ctx->scratch, a->storages, a->storage_count, a->storage_capacity, pointer);
    TS_APPEND(a->ctx->scratch, a->storage_nodes, count, a->node_capacity, node);
    return node;
}

/* The memory of a constant: each storage and container in it. */
static void join_constant(pass_alias *a, uint32_t node, rt_value v, int depth) {
    if (depth > 20) {
        join_nodes(a, node, a->outside);
        return;
    }
    switch ((rt_tag)v.tag) {
    case RT_TAG_TENSOR:
        join_nodes(a, node, storage_node(a, v.as.tensor->storage ? (const void *)v.as.tensor->storage
                                                                 : (const void *)v.as.tensor));
        break;
    case RT_TAG_LIST:
        join_nodes(a, node, storage_node(a, v.as.list));
        for (size_t i = 0; i < v.as.list->count; i++)
            join_constant(a, node, v.as.list->items[i], depth + 1);
        break;
    case RT_TAG_TUPLE:
        for (size_t i = 0; i < v.as.tuple->count; i++)
            join_constant(a, node, v.as.tuple->items[i], depth + 1);
        break;
    case RT_TAG_DICT: {
        const rt_dict_entry *e;
        join_nodes(a, node, storage_node(a, v.as.dict));
        for (size_t at = 0; (e = rt_dict_next(v.as.dict, &at));) {
            join_constant(a, node, e->key, depth + 1);
            join_constant(a, node, e->value, depth + 1);
        }
        break;
    }
    case RT_TAG_OBJECT:
    case RT_TAG_GENERATOR:
    case RT_TAG_CAPSULE:
        /* An object's fields are found by get_attr; itself it is one of the outside. */
        join_nodes(a, node, a->outside);
        break;
    default:
        break;
    }
}

/* ---- operators ---- */

static bool reshapes(rt_op core) {
    static const char *const names[] = {"resize_",   "resize_as_", "set_",       "squeeze_",
                                        "unsqueeze_", "t_",         "transpose_", "swapaxes_",
                                        "swapdims_", "as_strided_", "rename_",    "requires_grad_"};
    ts_str name = rt_op_name(core);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t length = strlen(names[i]);
        if (ts_str_starts_with(name, names[i]) &&
            (name.length == length || name.data[length] == '.'))
            return true;
    }
    return false;
}

/* out= forms may resize what they write. */
static bool is_out_argument(const ir_schema *s, size_t i) {
    return s->args[i].is_written && s->args[i].is_keyword_only;
}

static void visit_core(pass_alias *a, const ir_op *op) {
    const ir_schema *s = ir_schema_of(a->m, op->core);
    for (size_t i = 0; i < op->operand_count && i < s->arg_count; i++) {
        const ir_value *x = op->operands[i];
        if (ir_op_writes(op, i) && op->core != OP_requires_grad_) { /* which marks, not writes */
            ir_kind kind = x->type->kind;
            bool tensor = kind == IR_TENSOR || kind == IR_GENERATOR;
            bool container = kind == IR_LIST || kind == IR_DICT;
            set_flag(a, x, tensor ? SET_WRITTEN : container ? SET_CHANGED
                                                            : SET_WRITTEN | SET_CHANGED);
            if (reshapes(op->core) || is_out_argument(s, i))
                set_flag(a, x, SET_RESHAPED);
            /* What is stored into a container is shared with it: append(list, x). */
            if (x->type->kind != IR_TENSOR)
                for (size_t j = 0; j < op->operand_count; j++)
                    join(a, x, op->operands[j]);
        }
        for (size_t j = 0; j < op->result_count && j < s->result_count; j++) {
            char letter = s->result_aliases[j];
            /* Elements of a container alias it, whatever the schema says of the container; only a
             * result that is declared a Tensor without a letter is fresh for certain. */
            bool holds = x->type->kind != IR_TENSOR && ir_type_is_mutable(x->type) &&
                         s->results[j]->kind != IR_TENSOR;
            bool is_any = s->results[j]->kind == IR_VAR || s->results[j]->kind == IR_ANY;
            if ((letter && (letter == '*' || letter == s->args[i].alias)) || holds || is_any)
                join(a, x, op->results[j]);
        }
    }
    /* Running statistics are written though the schema does not say so. */
    if (ir_column_effects(op) & EFFECT_STATE)
        for (size_t i = 0; i < op->operand_count && i < s->arg_count; i++)
            if (ir_type_is_mutable(op->operands[i]->type) &&
                (op->operands[i]->type->kind != IR_TENSOR ||
                 ts_str_starts_with(s->args[i].name, "running_")))
                set_flag(a, op->operands[i], SET_WRITTEN | SET_CHANGED);
}

static void escape(pass_alias *a, const ir_value *v, bool written) {
    if (!ir_type_is_mutable(v->type))
        return;
    join_nodes(a, v->number, a->outside);
    if (written)
        set_flag(a, v, SET_WRITTEN | SET_CHANGED | SET_RESHAPED);
}

/* The field's value where object and field are constant. */
static bool attribute_of(const ir_op *op, rt_value *out) {
    rt_value object;
    if (!ir_const_value(op->operands[0], &object) || object.tag != RT_TAG_OBJECT)
        return false;
    int64_t at = rt_class_field(object.as.object->class_, op->name);
    if (at < 0 || (size_t)at >= object.as.object->field_count)
        return false;
    *out = object.as.object->fields[at];
    return true;
}

static void find_set_names(pass_alias *a, const ir_block *b) {
    for (const ir_op *op = b->first; op; op = op->next) {
        if (op->opcode == IR_OP_SET_ATTR)
            TS_APPEND(a->ctx->scratch, a->set_names, a->set_count, a->set_capacity, op->name);
        for (size_t i = 0; i < op->region_count; i++)
            find_set_names(a, op->regions[i]);
    }
}

static bool is_set_somewhere(pass_alias *a, ts_str name) {
    for (const ir_function *g = a->has_set_names ? NULL : a->m->functions; g; g = g->next)
        find_set_names(a, g->body);
    a->has_set_names = true;
    for (size_t i = 0; i < a->set_count; i++)
        if (ts_str_equal(a->set_names[i], name))
            return true;
    return false;
}

static bool is_only_returned(const ir_value *v) {
    for (size_t i = 0; i < v->use_count; i++)
        if (v->uses[i].op->opcode != IR_OP_RETURN)
            return false;
    return true;
}

/* What is put into a container, or taken out of one. */
static void join_parts(pass_alias *a, const ir_op *op) {
    for (size_t i = 0; i < op->operand_count; i++)
        for (size_t j = 0; j < op->result_count; j++)
            join(a, op->results[j], op->operands[i]);
    for (size_t i = 1; i < op->operand_count && op->opcode != IR_OP_LIST_UNPACK; i++)
        if (op->result_count)
            join(a, op->results[0], op->operands[i]);
}

/* Whether an operator gives an item of the list, which may then be written to: l[i] of any i. */
static bool hands_out_items(const pass_alias *a, const ir_value *list) {
    for (size_t i = 0; i < list->use_count; i++) {
        const ir_op *user = list->uses[i].op;
        if (user->opcode != IR_OP_CORE)
            return true;
        const ir_schema *s = ir_schema_of(a->m, user->core);
        for (size_t j = 0; j < user->result_count && j < s->result_count; j++)
            if (s->result_aliases[j] && ir_type_is_mutable(user->results[j]->type))
                return true;
    }
    return false;
}

static void visit_op(pass_alias *a, const ir_op *op) {
    const ir_block *b;
    rt_value v;
    switch (op->opcode) {
    case IR_OP_CORE:
        visit_core(a, op);
        return;
    case IR_OP_CONST:
        if (ir_type_is_mutable(op->results[0]->type))
            join_constant(a, op->results[0]->number, op->value, 0);
        return;
    case IR_OP_GET_ATTR:
        if (!ir_type_is_mutable(op->results[0]->type))
            return;
        if (attribute_of(op, &v) && !is_set_somewhere(a, op->name))
            join_constant(a, op->results[0]->number, v, 0);
        else
            escape(a, op->results[0], false);
        return;
    case IR_OP_SET_ATTR:
        escape(a, op->operands[1], false);
        return;
    case IR_OP_NEW_OBJECT:
        escape(a, op->results[0], false);
        return;
    case IR_OP_CALL:
    case IR_OP_TRY_CALL:
    case IR_OP_CALL_METHOD:
        for (size_t i = 0; i < op->operand_count; i++)
            escape(a, op->operands[i], true);
        for (size_t i = 0; i < op->result_count; i++)
            escape(a, op->results[i], true);
        return;
    case IR_OP_IF:
        for (size_t i = 0; i < 2; i++) {
            b = op->regions[i];
            for (size_t j = 0; j < op->result_count && j < b->last->operand_count; j++)
                join(a, op->results[j], b->last->operands[j]);
        }
        return;
    case IR_OP_LOOP:
        b = op->regions[0];
        for (size_t j = 0; j < op->result_count; j++) {
            join(a, op->results[j], op->operands[j + 2]);
            join(a, op->results[j], b->parameters[j + 1]);
            join(a, op->results[j], b->last->operands[j + 1]);
        }
        return;
    case IR_OP_RETURN:
        for (size_t i = 0; i < op->operand_count; i++)
            set_flag(a, op->operands[i], SET_RETURNED);
        return;
    case IR_OP_LIST:
        if (ir_list_is_stable(op->results[0]) && !hands_out_items(a, op->results[0]))
            return; /* only read by operators: pass_is_stable asks its items */
        for (size_t i = 0; i < op->operand_count; i++)
            join(a, op->results[0], op->operands[i]);
        return;
    case IR_OP_TUPLE:
        if (is_only_returned(op->results[0])) { /* the caller's: its items meet nowhere here */
            for (size_t i = 0; i < op->operand_count; i++)
                set_flag(a, op->operands[i], SET_RETURNED);
            return;
        }
        join_parts(a, op);
        return;
    case IR_OP_TUPLE_GET:
    case IR_OP_TUPLE_UNPACK:
    case IR_OP_DICT:
    case IR_OP_LIST_UNPACK:
    case IR_OP_CAST:
    case IR_OP_CHECK_CAST:
        join_parts(a, op);
        return;
    case IR_OP_KERNEL: /* its body makes new tensors, or views that lowering knows */
        b = op->regions[0];
        for (size_t i = 0; i < op->operand_count; i++)
            join(a, b->parameters[i], op->operands[i]);
        return;
    case IR_OP_YIELD:
    case IR_OP_RAISE:
    case IR_OP_IS_INSTANCE:
    case IR_OP_UNINITIALIZED:
    case IR_OP_REFINE:
    case IR_OP_DIM:
    case IR_OPCODE_COUNT:
        return;
    }
}

pass_alias *pass_alias_make(pass_context *ctx, ir_module *m, const ir_function *f) {
    pass_alias *a = TS_NEW(ctx->scratch, pass_alias);
    a->ctx = ctx;
    a->m = m;
    uint32_t count = pass_number_values(f);
    for (uint32_t i = 0; i < count; i++)
        add_node(a);
    a->outside = add_node(a);
    a->flags[a->outside] = SET_OUTSIDE;
    for (size_t i = 0; i < f->body->parameter_count; i++)
        escape(a, f->body->parameters[i], false);
    pass_op_list ops = pass_collect(ctx, f);
    for (size_t i = 0; i < ops.count; i++)
        visit_op(a, ops.items[i]);
    return a;
}

/* ---- questions ---- */

bool pass_attribute_value(pass_alias *a, const ir_op *get, rt_value *out) {
    return attribute_of(get, out) && !is_set_somewhere(a, get->name);
}

uint32_t pass_alias_set(pass_alias *a, const ir_value *v) { return root_of(a, v->number); }

static bool has_flag(pass_alias *a, const ir_value *v, uint8_t flag) {
    return ir_type_is_mutable(v->type) && (a->flags[root_of(a, v->number)] & flag) != 0;
}

bool pass_may_alias(pass_alias *a, const ir_value *x, const ir_value *y) {
    return ir_type_is_mutable(x->type) && ir_type_is_mutable(y->type) &&
           root_of(a, x->number) == root_of(a, y->number);
}

bool pass_is_changed(pass_alias *a, const ir_value *v) { return has_flag(a, v, SET_CHANGED); }

bool pass_is_written(pass_alias *a, const ir_value *v) {
    ir_kind kind = v->type->kind;
    uint8_t flag = kind == IR_TENSOR                    ? SET_WRITTEN
                   : kind == IR_LIST || kind == IR_DICT ? SET_CHANGED
                                                        : SET_WRITTEN | SET_CHANGED;
    return has_flag(a, v, flag);
}

bool pass_tensors_are_written(pass_alias *a, const ir_value *v) {
    return has_flag(a, v, SET_WRITTEN);
}

bool pass_is_outside(pass_alias *a, const ir_value *v) { return has_flag(a, v, SET_OUTSIDE); }
bool pass_is_returned(pass_alias *a, const ir_value *v) { return has_flag(a, v, SET_RETURNED); }
bool pass_is_reshaped(pass_alias *a, const ir_value *v) { return has_flag(a, v, SET_RESHAPED); }

bool pass_is_stable(pass_alias *a, const ir_value *v) {
    if (has_flag(a, v, v->type->kind == IR_TENSOR ? SET_WRITTEN : SET_WRITTEN | SET_CHANGED))
        return false;
    if (v->def && v->def->opcode == IR_OP_LIST)
        for (size_t i = 0; i < v->def->operand_count; i++)
            if (has_flag(a, v->def->operands[i], SET_WRITTEN))
                return false;
    return true;
}

bool pass_op_writes(pass_alias *a, const ir_op *op, const ir_value *v) {
    if (op->opcode == IR_OP_CORE) {
        const ir_schema *s = ir_schema_of(a->m, op->core);
        bool state = (ir_column_effects(op) & EFFECT_STATE) != 0;
        for (size_t i = 0; i < op->operand_count && i < s->arg_count; i++)
            if ((ir_op_writes(op, i) || state) && pass_may_alias(a, op->operands[i], v))
                return true;
    }
    if ((op->opcode == IR_OP_CALL || op->opcode == IR_OP_TRY_CALL ||
         op->opcode == IR_OP_CALL_METHOD) && pass_is_outside(a, v))
        return true;
    for (size_t i = 0; i < op->region_count; i++)
        for (const ir_op *inner = op->regions[i]->first; inner; inner = inner->next)
            if (pass_op_writes(a, inner, v))
                return true;
    return false;
}

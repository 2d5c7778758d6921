/* ir/effects.c - what an operator does besides computing its results.
 *
 * Writes and aliases come from the schema, the rest from the effects column. What is not known (a
 * call, a method) does everything. */
#include "ir/ir_internal.h"

enum { CALL_EFFECTS = IR_EFFECT_WRITES | IR_EFFECT_READS | IR_EFFECT_RAISES | IR_EFFECT_RANDOM |
                      IR_EFFECT_PRINTS | IR_EFFECT_ALIASES | IR_EFFECT_FRESH };

bool ir_type_is_mutable(const ir_type *t) { return t->is_mutable; }

/* Batch norm and dropout in evaluation neither draw nor update anything. */
static bool is_evaluating(const ir_op *op, const ir_schema *schema) {
    for (size_t i = 0; i < op->operand_count && i < schema->arg_count; i++) {
        ts_str name = schema->args[i].name;
        bool training;
        if ((ts_str_is(name, "training") || ts_str_is(name, "train") ||
             ts_str_is(name, "use_input_stats")) &&
            ir_const_bool(op->operands[i], &training))
            return !training;
    }
    return false;
}

bool ir_op_writes(const ir_op *op, size_t operand) {
    const ir_schema *schema = ir_schema_of(op->block->function->module, op->core);
    if (operand >= schema->arg_count)
        return false;
    if (schema->args[operand].is_written)
        return true;
    bool has_statistics = op->core == OP_batch_norm || op->core == OP_native_batch_norm ||
                          op->core == OP_instance_norm;
    return has_statistics && ts_str_starts_with(schema->args[operand].name, "running_") &&
           op->operands[operand]->type->kind != IR_NONE && !is_evaluating(op, schema);
}

/* What can go wrong with these shows in dtypes, ranks and sizes alone, and inference found none. */
static bool raises_by_shape_only(const ir_op *op) {
    switch (rt_op_get(op->core)->lower) {
    case LOWER_contraction:
    case LOWER_reduction:
    case LOWER_pooling:
    case LOWER_softmax:
    case LOWER_norm:
    case LOWER_view:
    case LOWER_copy:
        break;
    default:
        return false;
    }
    for (size_t i = 0; i < op->result_count; i++) {
        const ir_type *t = op->results[i]->type;
        if (t->kind != IR_TENSOR || t->dtype == RT_DTYPE_UNKNOWN || t->rank < 0)
            return false;
    }
    return op->result_count > 0;
}

/* A check that cannot fail, as far as dtypes and numbers are known. */
static bool surely_passes(const ir_op *op) {
    const ir_type *t = op->operands[0]->type;
    if (op->core == OP_prim_check_result) {
        rt_dtype to = t->dtype, from = op->operands[1]->type->dtype;
        return to != RT_DTYPE_UNKNOWN && from != RT_DTYPE_UNKNOWN && rt_dtype_can_hold(to, from);
    }
    if (op->core != OP_prim_check_fits_like && op->core != OP_prim_check_fits_dtype)
        return false;
    int64_t number = RT_DTYPE_UNKNOWN;
    rt_dtype dtype = t->kind == IR_TENSOR ? t->dtype
                     : ir_const_int(op->operands[0], &number) ? (rt_dtype)number : RT_DTYPE_UNKNOWN;
    const ir_value *v = op->operands[1];
    while (v->def && v->def->opcode == IR_OP_CAST)
        v = v->def->operands[0];
    rt_value c;
    if (dtype == RT_DTYPE_UNKNOWN)
        return false;
    if (ir_const_value(v, &c))
        return rt_number_fits(c, dtype);
    return dtype == RT_bool || dtype == RT_float64 || dtype == RT_complex128 || v->type->kind == IR_BOOL ||
           (v->type->kind == IR_INT && (dtype == RT_int64 || rt_dtype_is_float(dtype)) && dtype != RT_float16);
}

uint32_t ir_column_effects(const ir_op *op) {
    uint32_t column = rt_op_get(op->core)->effects;
    const ir_schema *schema = ir_schema_of(op->block->function->module, op->core);
    if ((column & (EFFECT_STATE | EFFECT_RANDOM)) && is_evaluating(op, schema))
        column &= ~(uint32_t)(EFFECT_STATE | EFFECT_RANDOM);
    if ((column & EFFECT_RAISES) && (raises_by_shape_only(op) || surely_passes(op)))
        column &= ~(uint32_t)EFFECT_RAISES;
    return column;
}

static uint32_t core_effects(const ir_op *op) {
    ir_module *m = op->block->function->module;
    const ir_schema *schema = ir_schema_of(m, op->core);
    uint32_t effects = 0, column = ir_column_effects(op);
    if (column & EFFECT_RANDOM)
        effects |= IR_EFFECT_RANDOM;
    if (column & EFFECT_RAISES)
        effects |= IR_EFFECT_RAISES;
    if (column & EFFECT_STATE)
        effects |= IR_EFFECT_READS | IR_EFFECT_WRITES;
    if (column & EFFECT_PRINTS)
        effects |= IR_EFFECT_PRINTS;
    for (size_t i = 0; i < op->operand_count; i++)
        if (ir_op_writes(op, i))
            effects |= IR_EFFECT_WRITES;
    for (size_t i = 0; i < op->operand_count; i++)
        if (ir_type_is_mutable(op->operands[i]->type))
            effects |= IR_EFFECT_READS;
    for (size_t i = 0; i < op->result_count; i++) {
        if (i < schema->result_count && schema->result_aliases[i])
            effects |= IR_EFFECT_ALIASES;
        else if (ir_type_is_mutable(op->results[i]->type))
            effects |= IR_EFFECT_FRESH;
    }
    return effects;
}

static uint32_t region_effects(const ir_op *op) {
    uint32_t effects = 0;
    for (size_t i = 0; i < op->region_count; i++)
        for (const ir_op *inner = op->regions[i]->first; inner; inner = inner->next)
            effects |= ir_effects(inner);
    return effects;
}

uint32_t ir_effects(const ir_op *op) {
    switch (op->opcode) {
    case IR_OP_CORE:
        return core_effects(op);
    case IR_OP_CALL:
    case IR_OP_TRY_CALL:
    case IR_OP_CALL_METHOD:
        return CALL_EFFECTS;
    case IR_OP_IF:
    case IR_OP_LOOP:
        return region_effects(op) | IR_EFFECT_ALIASES;
    case IR_OP_KERNEL: /* a body of pure operators whose memory is its own */
        return IR_EFFECT_READS | (region_effects(op) & (IR_EFFECT_RAISES | IR_EFFECT_WRITES)) |
               IR_EFFECT_FRESH;
    case IR_OP_RAISE:
        return IR_EFFECT_RAISES;
    case IR_OP_TUPLE:
    case IR_OP_TUPLE_GET:
    case IR_OP_TUPLE_UNPACK:
    case IR_OP_CAST:
        return IR_EFFECT_ALIASES;
    case IR_OP_LIST:
    case IR_OP_DICT:
        return IR_EFFECT_FRESH | IR_EFFECT_ALIASES;
    case IR_OP_NEW_OBJECT:
        return IR_EFFECT_FRESH;
    case IR_OP_LIST_UNPACK:
        return IR_EFFECT_READS | IR_EFFECT_RAISES | IR_EFFECT_ALIASES;
    case IR_OP_GET_ATTR:
        return IR_EFFECT_READS | IR_EFFECT_ALIASES;
    case IR_OP_SET_ATTR:
        return IR_EFFECT_WRITES | IR_EFFECT_ALIASES;
    case IR_OP_CHECK_CAST:
        return IR_EFFECT_RAISES | IR_EFFECT_ALIASES;
    case IR_OP_CONST:
    case IR_OP_YIELD:
    case IR_OP_RETURN:
    case IR_OP_IS_INSTANCE:
    case IR_OP_UNINITIALIZED:
    case IR_OP_REFINE:
    case IR_OP_DIM:
    case IR_OPCODE_COUNT:
        break;
    }
    return 0;
}

/* A `while` may run for ever, and dropping it would be noticed: a count of INT64_MAX marks it. */
static bool may_not_end(const ir_op *op, int depth) {
    int64_t count;
    bool goes = true;
    if (depth > 64)
        return true;
    if (op->opcode == IR_OP_LOOP && ir_const_int(op->operands[0], &count) && count == INT64_MAX &&
        !(ir_const_bool(op->operands[1], &goes) && !goes))
        return true;
    for (size_t i = 0; i < op->region_count; i++)
        for (const ir_op *inner = op->regions[i]->first; inner; inner = inner->next)
            if (inner->region_count && may_not_end(inner, depth + 1))
                return true;
    return false;
}

bool ir_is_removable(const ir_op *op) {
    if (op->opcode == IR_OP_YIELD || op->opcode == IR_OP_RETURN)
        return false;
    if (op->region_count && may_not_end(op, 0))
        return false;
    return !(ir_effects(op) &
             (IR_EFFECT_WRITES | IR_EFFECT_RAISES | IR_EFFECT_RANDOM | IR_EFFECT_PRINTS));
}

bool ir_list_is_stable(const ir_value *v) {
    if (!v->def || v->type->kind != IR_LIST)
        return false;
    if (v->def->opcode == IR_OP_CORE) { /* size(), a sorted copy: a list of its own */
        const ir_schema *made = ir_schema_of(v->def->block->function->module, v->def->core);
        if (v->index >= made->result_count || made->result_aliases[v->index] ||
            made->results[v->index]->kind != IR_LIST)
            return false;
    } else if (v->def->opcode != IR_OP_LIST && v->def->opcode != IR_OP_CONST) {
        return false;
    }
    for (size_t i = 0; i < v->use_count; i++) {
        const ir_op *user = v->uses[i].op;
        if (user->opcode == IR_OP_LIST_UNPACK)
            continue;
        if (user->opcode != IR_OP_CORE)
            return false;
        const ir_schema *schema = ir_schema_of(user->block->function->module, user->core);
        size_t operand = v->uses[i].operand;
        if (operand >= schema->arg_count || schema->args[operand].is_written)
            return false;
        /* append, _set_item: the list may go into the container that is written. */
        for (size_t j = 0; j < schema->arg_count && j < user->operand_count; j++)
            if (schema->args[j].is_written && user->operands[j]->type->kind != IR_TENSOR)
                return false;
        char alias = schema->args[operand].alias;
        for (size_t j = 0; j < user->result_count; j++) {
            const ir_type *t = user->results[j]->type;
            bool tensor = t->kind == IR_TENSOR ||
                          (t->kind == IR_OPTIONAL && t->args[0]->kind == IR_TENSOR);
            if (!tensor && ir_type_is_mutable(user->results[j]->type) && alias &&
                (schema->result_aliases[j] == alias || schema->result_aliases[j] == '*'))
                return false;
        }
    }
    return true;
}

bool ir_is_pure(const ir_op *op) {
    if (op->region_count || op->opcode == IR_OP_YIELD || op->opcode == IR_OP_RETURN)
        return false;
    uint32_t effects = ir_effects(op);
    if (effects & (IR_EFFECT_WRITES | IR_EFFECT_RAISES | IR_EFFECT_RANDOM | IR_EFFECT_PRINTS))
        return false;
    /* Fresh lists, dicts and objects have an identity; a fresh tensor that nobody writes has none. */
    for (size_t i = 0; i < op->result_count; i++) {
        ir_kind kind = op->results[i]->type->kind;
        if (kind == IR_LIST || kind == IR_DICT || kind == IR_CLASS || kind == IR_ANY)
            return false;
    }
    for (size_t i = 0; i < op->operand_count; i++) {
        ir_kind kind = op->operands[i]->type->kind;
        bool reads = kind == IR_DICT || kind == IR_CLASS || kind == IR_ANY || kind == IR_LIST;
        if (reads && !(kind == IR_LIST && ir_list_is_stable(op->operands[i])))
            return false;
    }
    return true;
}

/* frontend/emit_conversion.c - what it costs to give a value where a type is declared. */
#include "frontend/overload.h"

static int element_cost(emitter *E, ir_value *item, const ir_type *want, int cost) {
    int c = em_conversion_cost(E, item, want, 0);
    return c < 0 ? c : (c > cost ? c : cost);
}

static int type_cost(emitter *E, const ir_type *from, const ir_type *want) {
    if (ir_type_is_subtype(from, want) && want->kind != IR_ANY)
        return want->kind == IR_NUMBER && from->kind != IR_NUMBER ? 1 : 0;
    bool is_number = from->kind == IR_NUMBER;
    bool is_tensor = from->kind == IR_TENSOR;
    switch (want->kind) {
    case IR_ANY:
        return 8;
    case IR_OPTIONAL:
        if (from->kind == IR_OPTIONAL)
            return type_cost(E, from->args[0], want->args[0]);
        return type_cost(E, from, want->args[0]);
    case IR_FLOAT:
        return from->kind == IR_INT ? 3 : from->kind == IR_BOOL ? 4 : is_number ? 6
               : is_tensor ? 30 : COST_IMPOSSIBLE;
    case IR_INT:
        return from->kind == IR_BOOL ? 2 : is_number ? 12 : is_tensor ? 30 : COST_IMPOSSIBLE;
    case IR_BOOL:
        return is_tensor ? 30 : is_number ? 31 : COST_IMPOSSIBLE;
    case IR_COMPLEX:
        return from->kind == IR_INT || from->kind == IR_FLOAT || from->kind == IR_BOOL
                   ? 5 : is_number ? 7 : COST_IMPOSSIBLE;
    case IR_NUMBER:
        return is_tensor ? 29 : COST_IMPOSSIBLE;
    case IR_TENSOR:
        return from->kind == IR_INT || from->kind == IR_FLOAT || from->kind == IR_BOOL ||
                       from->kind == IR_COMPLEX || is_number
                   ? COST_NUMBER_AS_TENSOR : COST_IMPOSSIBLE;
    case IR_DEVICE:
        return from->kind == IR_STR ? 2 : COST_IMPOSSIBLE;
    default:
        return COST_IMPOSSIBLE;
    }
}

int em_conversion_cost(emitter *E, ir_value *v, const ir_type *want, int64_t fixed_length) {
    const ir_type *from = v->type;
    if (want->kind == IR_OPTIONAL && want->args[0]->kind == IR_LIST) {
        if (from->kind == IR_NONE)
            return 0;
        if (from->kind != IR_OPTIONAL)
            return em_conversion_cost(E, v, want->args[0], fixed_length);
    }
    if (want->kind == IR_LIST) {
        const ir_type *element = want->args[0];
        ir_value **items;
        size_t count;
        if (ir_type_is_subtype(from, want))
            return 0;
        if (em_is_list_literal(v, &items, &count)) {
            int cost = 2;
            for (size_t i = 0; i < count && cost >= 0; i++)
                cost = element_cost(E, items[i], element, cost);
            return cost;
        }
        if (from->kind == IR_TUPLE) {
            int cost = 1;
            for (size_t i = 0; i < from->arg_count && cost >= 0; i++) {
                int c = type_cost(E, from->args[i], element);
                cost = c < 0 ? c : (c > cost ? c : cost);
            }
            return cost;
        }
        if (from->kind == IR_LIST) {
            const ir_type *have = from->args[0];
            if ((element->kind == IR_OPTIONAL || element->kind == IR_NUMBER || element->kind == IR_ANY) &&
                ir_type_is_subtype(have, element))
                return 1;
            rt_value c; /* a constant list of ints for floats */
            if (ir_const_value(v, &c) && c.tag == RT_TAG_LIST && type_cost(E, have, element) >= 0)
                return 3;
            return COST_IMPOSSIBLE;
        }
        if (fixed_length && (from->kind == IR_INT || from->kind == IR_FLOAT ||
                             from->kind == IR_BOOL || from->kind == IR_NUMBER)) {
            int c = type_cost(E, from, element);
            return c < 0 || element->kind == IR_TENSOR ? COST_IMPOSSIBLE : 5 + c;
        }
        if (fixed_length && from->kind == IR_TENSOR && element->kind == IR_INT)
            return 35;
    }
    int cost = type_cost(E, from, want);
    if (cost >= 0)
        return cost;
    if (from->kind == IR_OPTIONAL || from->kind == IR_UNION) {
        const ir_type *inner = ir_type_without_none(E->m, from);
        if (inner != from && inner->kind != IR_NONE) {
            int c = type_cost(E, inner, want);
            if (c >= 0)
                return 50 + c;
            if (inner->kind == IR_LIST && want->kind == IR_LIST && ir_type_is_subtype(inner, want))
                return 50;
        }
        if (from->kind == IR_UNION)
            for (size_t i = 0; i < from->arg_count; i++)
                if (ir_type_is_subtype(from->args[i], want))
                    return 60;
    }
    if (from->kind == IR_ANY)
        return 70;
    return COST_IMPOSSIBLE;
}

/* codegen/emit_llvm_reduction.c - reductions of a loop nest: where they begin, how one more element
 * joins, how the lanes of a row become one value. arg reductions carry the position beside the value;
 * NaN displaces every number, as in PyTorch. */
#include "codegen/emit_llvm_kernel.h"

#include <math.h>

bool kn_reduces_to_position(const kn_node *n) {
    return n->reduction == KN_RED_ARGMAX || n->reduction == KN_RED_ARGMIN;
}

LLVMValueRef kn_neutral(kn_emitter *e, const kn_node *n, rt_dtype type, int width) {
    bool is_float = rt_dtype_is_float(type);
    int bits = type == RT_bool ? 1 : (int)rt_dtype_size(type) * 8;
    int64_t lowest = type == RT_uint8 || type == RT_bool ? 0 : (int64_t)(-1ull << (bits - 1));
    switch (n->reduction) {
    case KN_RED_PROD:
        return is_float ? kn_float_constant(e, type, width, 1) : kn_int_constant(e, type, width, 1);
    case KN_RED_MAX: case KN_RED_ARGMAX:
        return is_float ? kn_float_constant(e, type, width, -HUGE_VAL)
                        : kn_int_constant(e, type, width, lowest);
    case KN_RED_MIN: case KN_RED_ARGMIN:
        return is_float ? kn_float_constant(e, type, width, HUGE_VAL)
                        : kn_int_constant(e, type, width, ~lowest);
    case KN_RED_ALL: return kn_int_constant(e, type, width, type == RT_bool ? 1 : -1);
    case KN_RED_SUM: case KN_RED_ANY: break;
    }
    return LLVMConstNull(kn_llvm_type(e, type, width));
}

LLVMValueRef kn_combine(kn_emitter *e, const kn_node *n, rt_dtype type, LLVMValueRef v,
                        LLVMValueRef acc, int width) {
    LLVMValueRef args[3] = {v, acc, NULL};
    switch (n->reduction) {
    case KN_RED_PROD: return kn_emit_scalar(e, KN_mul, type, width, args);
    case KN_RED_MAX: return kn_emit_scalar(e, KN_maximum, type, width, args);
    case KN_RED_MIN: return kn_emit_scalar(e, KN_minimum, type, width, args);
    case KN_RED_ANY: return kn_emit_scalar(e, KN_or, type, width, args);
    case KN_RED_ALL: return kn_emit_scalar(e, KN_and, type, width, args);
    default: return kn_emit_scalar(e, KN_add, type, width, args);
    }
}

/* Whether v displaces acc: greater, or the first NaN. */
static LLVMValueRef displaces(kn_emitter *e, const kn_node *n, rt_dtype type, LLVMValueRef v,
                              LLVMValueRef acc, int width) {
    LLVMValueRef args[3] = {v, acc, NULL};
    kn_code code = n->reduction == KN_RED_ARGMAX ? KN_gt : KN_lt;
    LLVMValueRef better = kn_emit_scalar(e, code, type, width, args);
    if (!rt_dtype_is_float(type))
        return better;
    LLVMValueRef is_nan = LLVMBuildFCmp(e->b, LLVMRealUNO, v, v, "");
    LLVMValueRef was_number = LLVMBuildFCmp(e->b, LLVMRealORD, acc, acc, "");
    return LLVMBuildOr(e->b, better, LLVMBuildAnd(e->b, is_nan, was_number, ""), "");
}

void kn_reductions_of(const kn_emitter *e, int stage, kn_reduction_set *out) {
    out->count = out->carried = 0;
    for (int i = 0; i < e->k->node_count; i++) {
        const kn_node *n = &e->k->nodes[i];
        if (n->code != KN_REDUCE || !n->is_needed || n->stage != stage + 1)
            continue;
        out->nodes[out->count++] = i;
        out->carried += kn_reduces_to_position(n) ? 2 : 1;
    }
}

void kn_initial_values(kn_emitter *e, const kn_reduction_set *set, LLVMValueRef *acc) {
    for (int i = 0, c = 0; i < set->count; i++) {
        const kn_node *n = &e->k->nodes[set->nodes[i]];
        acc[c++] = kn_neutral(e, n, e->k->nodes[n->args[0]].type, e->width);
        if (kn_reduces_to_position(n))
            acc[c++] = LLVMConstNull(kn_llvm_type(e, RT_int64, e->width));
    }
}

void kn_accumulate(kn_emitter *e, const kn_reduction_set *set, LLVMValueRef *acc) {
    for (int i = 0, c = 0; i < set->count; i++) {
        const kn_node *n = &e->k->nodes[set->nodes[i]];
        const kn_node *from = &e->k->nodes[n->args[0]];
        bool rows = e->k->reduces_vector;
        if (n->reduction == KN_RED_SUM && from->code == KN_mul && from->type == RT_float32 &&
            !(rows && e->mask) && !e->memo[n->args[0]]) {
            acc[c] = kn_fma(e, kn_vector_value(e, from->args[0]),
                            kn_vector_value(e, from->args[1]), acc[c]);
            c++;
            continue;
        }
        LLVMValueRef v = kn_vector_value(e, n->args[0]);
        if (rows && e->mask)
            v = LLVMBuildSelect(e->b, e->mask, v, kn_neutral(e, n, from->type, e->width), "");
        if (!kn_reduces_to_position(n)) {
            acc[c] = kn_combine(e, n, from->type, v, acc[c], e->width);
            c++;
            continue;
        }
        LLVMValueRef take = displaces(e, n, from->type, v, acc[c], e->width);
        LLVMValueRef at = kn_splat(e, e->row_index, e->width);
        if (rows)
            at = LLVMBuildAdd(e->b, at, kn_lane_numbers(e), "");
        acc[c] = LLVMBuildSelect(e->b, take, v, acc[c], "");
        acc[c + 1] = LLVMBuildSelect(e->b, take, at, acc[c + 1], "");
        c += 2;
    }
}

LLVMValueRef kn_lane(kn_emitter *e, LLVMValueRef v, int i) {
    return LLVMBuildExtractElement(e->b, v, LLVMConstInt(e->unit->i32, (unsigned)i, 0), "");
}

static LLVMValueRef across_lanes(kn_emitter *e, const kn_node *n, rt_dtype type, LLVMValueRef v) {
    for (int width = e->width; width > 1; width /= 2) {
        LLVMValueRef low[64], high[64];
        for (int i = 0; i < width / 2; i++) {
            low[i] = LLVMConstInt(e->unit->i32, (unsigned)i, 0);
            high[i] = LLVMConstInt(e->unit->i32, (unsigned)(i + width / 2), 0);
        }
        if (width == 2) {
            v = kn_combine(e, n, type, kn_lane(e, v, 1), kn_lane(e, v, 0), 1);
            break;
        }
        LLVMValueRef a = LLVMBuildShuffleVector(e->b, v, v, LLVMConstVector(low, (unsigned)width / 2), "");
        LLVMValueRef b = LLVMBuildShuffleVector(e->b, v, v, LLVMConstVector(high, (unsigned)width / 2), "");
        v = kn_combine(e, n, type, b, a, width / 2);
    }
    return v;
}

static LLVMValueRef best_of(kn_emitter *e, const kn_node *n, rt_dtype type, LLVMValueRef *v,
                            LLVMValueRef *at, int count) {
    LLVMValueRef best = v[0], where = at[0];
    for (int i = 1; i < count; i++) {
        LLVMValueRef take = displaces(e, n, type, v[i], best, 1);
        /* The same value earlier in the row comes first; two NaNs count as the same. */
        LLVMValueRef same = rt_dtype_is_float(type)
            ? LLVMBuildOr(e->b, LLVMBuildFCmp(e->b, LLVMRealOEQ, v[i], best, ""),
                          LLVMBuildAnd(e->b, LLVMBuildFCmp(e->b, LLVMRealUNO, v[i], v[i], ""),
                                       LLVMBuildFCmp(e->b, LLVMRealUNO, best, best, ""), ""), "")
            : LLVMBuildICmp(e->b, LLVMIntEQ, v[i], best, "");
        LLVMValueRef earlier = LLVMBuildICmp(e->b, LLVMIntSLT, at[i], where, "");
        take = LLVMBuildOr(e->b, take, LLVMBuildAnd(e->b, same, earlier, ""), "");
        best = LLVMBuildSelect(e->b, take, v[i], best, "");
        where = LLVMBuildSelect(e->b, take, at[i], where, "");
    }
    return where;
}

void kn_finish_rows(kn_emitter *e, const kn_reduction_set *set, LLVMValueRef *acc, int copies) {
    for (int i = 0, c = 0; i < set->count; i++) {
        const kn_node *n = &e->k->nodes[set->nodes[i]];
        rt_dtype type = e->k->nodes[n->args[0]].type;
        if (!kn_reduces_to_position(n)) {
            LLVMValueRef v = acc[c];
            for (int u = 1; u < copies; u++)
                v = kn_combine(e, n, type, acc[c + u * set->carried], v, e->width);
            e->memo[set->nodes[i]] = e->width > 1 ? across_lanes(e, n, type, v) : v;
            c++;
            continue;
        }
        LLVMValueRef v[KN_MAX_CARRIED * 16] = {NULL}, at[KN_MAX_CARRIED * 16] = {NULL};
        int count = 0;
        for (int u = 0; u < copies; u++)
            for (int l = 0; l < e->width; l++) {
                LLVMValueRef value = acc[c + u * set->carried], where = acc[c + 1 + u * set->carried];
                v[count] = e->width > 1 ? kn_lane(e, value, l) : value;
                at[count++] = e->width > 1 ? kn_lane(e, where, l) : where;
            }
        e->memo[set->nodes[i]] = best_of(e, n, type, v, at, count);
        c += 2;
    }
}

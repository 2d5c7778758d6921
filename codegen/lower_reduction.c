/* codegen/lower_reduction.c - sums, extrema and what is made of them: softmax, layer norm, global
 * means. All reductions of a kernel run over the same dims of the same space. */
#include "codegen/lower.h"
#include "ir/kernel_form.h"

#include <string.h>

#define K l->k

bool lw_is_reduction(lowering *l, const ir_op *op) {
    (void)l;
    return ir_reduction_of(op) != IR_R_NONE;
}

bool lw_reduction_space(lowering *l, const ir_op *op, const ir_type **out_shape,
                        uint32_t *out_reduced) {
    *out_shape = op->operands[0]->type;
    *out_reduced = ir_reduced_dims(l->ir, op);
    return *out_reduced != 0;
}

static rt_dim reduced_count(lowering *l) {
    rt_dim n = 1;
    for (int d = 0; d < l->space_rank; d++)
        if (l->reduced & (1u << d))
            n = kn_dim_mul(K, n, l->space[d]);
    return n;
}

static int mean_of(lowering *l, int x, rt_dtype t) {
    int sum = kn_reduce(K, KN_RED_SUM, x);
    rt_dim n = reduced_count(l);
    if (n == RT_DIM_UNKNOWN)
        return lw_fail(l, l->op, "unknown sizes");
    return kn_op2(K, KN_div, sum, lw_size_node(l, n, t));
}

/* Weight and bias of a layer norm lie along the normalised dims. */
static int trailing(lowering *l, const ir_op *op, const char *name, rt_dtype t) {
    ir_value *v = ir_core_operand(l->ir, op, name);
    lw_map map;
    memset(&map, 0, sizeof map);
    map.rank = v->type->rank;
    if (map.rank < 0 || map.rank > l->space_rank)
        return lw_fail(l, op, "unknown rank");
    for (int d = 0; d < map.rank; d++)
        map.dims[d] = l->space_map.dims[l->space_rank - map.rank + d];
    int n = lw_value(l, v, &map);
    return n < 0 ? -1 : kn_cast(K, n, t);
}

static int layer_norm(lowering *l, const ir_op *op, int x, rt_dtype t) {
    double eps = 0;
    const ir_value *e = ir_core_operand(l->ir, op, "eps");
    if (!e || !ir_const_double(e, &eps))
        return lw_fail(l, op, "an eps that is not constant");
    int mean = mean_of(l, x, t);
    if (mean < 0)
        return -1;
    int d = kn_op2(K, KN_sub, x, mean);
    int variance = mean_of(l, kn_op2(K, KN_mul, d, d), t);
    int scale = kn_op1(K, KN_rsqrt, kn_op2(K, KN_add, variance, kn_constant_number(K, t, eps)));
    int y = kn_op2(K, KN_mul, d, scale);
    if (!lw_is_none(ir_core_operand(l->ir, op, "weight"))) {
        int w = trailing(l, op, "weight", t);
        if (w < 0)
            return -1;
        y = kn_op2(K, KN_mul, y, w);
    }
    if (!lw_is_none(ir_core_operand(l->ir, op, "bias"))) {
        int b = trailing(l, op, "bias", t);
        if (b < 0)
            return -1;
        y = kn_op2(K, KN_add, y, b);
    }
    return y;
}

int lw_reduction(lowering *l, const ir_op *op, size_t result, const lw_map *map) {
    ir_reduction f = ir_reduction_of(op);
    bool keeps = f == IR_R_SOFTMAX || f == IR_R_LOG_SOFTMAX || f == IR_R_LAYER_NORM;
    if (!lw_is_space(l, map, !keeps))
        return lw_fail(l, op, "a reduction that is read at another place");
    const ir_type *shape;
    uint32_t mask;
    if (!lw_reduction_space(l, op, &shape, &mask) || mask != l->reduced ||
        shape->rank != l->space_rank)
        return lw_fail(l, op, "reductions of different dims");
    for (int d = 0; d < shape->rank; d++)
        if (!ir_dim_same(l->ir, shape->dims[d], l->space[d]))
            return lw_fail(l, op, "reductions of different shapes");
    int x = lw_value(l, op->operands[0], &l->space_map);
    if (x < 0)
        return -1;
    rt_dtype t = op->results[result]->type->dtype;
    if (f == IR_R_ANY || f == IR_R_ALL) /* the result is uint8 where x is, its elements are truths */
        x = kn_cast(K, x, RT_bool);
    else if (f != IR_R_ARGMAX && f != IR_R_ARGMIN && f != IR_R_MAX_DIM && f != IR_R_MIN_DIM)
        x = kn_cast(K, x, t);
    if (t == RT_float16 || t == RT_bfloat16)
        return lw_fail(l, op, "half precision");
    bool many = (mask & (mask - 1)) != 0;
    switch (f) {
    case IR_R_SUM: return kn_reduce(K, KN_RED_SUM, x);
    case IR_R_PROD: return kn_reduce(K, KN_RED_PROD, x);
    case IR_R_MEAN: case IR_R_GLOBAL_POOL:
        if (!rt_dtype_is_float(t))
            return lw_fail(l, op, "a mean of integers");
        return mean_of(l, x, t);
    case IR_R_AMAX: return kn_reduce(K, KN_RED_MAX, x);
    case IR_R_AMIN: return kn_reduce(K, KN_RED_MIN, x);
    case IR_R_AMINMAX: return kn_reduce(K, result == 0 ? KN_RED_MIN : KN_RED_MAX, x);
    case IR_R_MAX_DIM: case IR_R_MIN_DIM: case IR_R_ARGMAX: case IR_R_ARGMIN: {
        bool is_max = f == IR_R_MAX_DIM || f == IR_R_ARGMAX;
        bool wants_index = f == IR_R_ARGMAX || f == IR_R_ARGMIN || result == 1;
        if (!wants_index)
            return kn_reduce(K, is_max ? KN_RED_MAX : KN_RED_MIN, x);
        if (many && l->space_rank > 2)
            return lw_fail(l, op, "the index of an element among several dims");
        return kn_reduce(K, is_max ? KN_RED_ARGMAX : KN_RED_ARGMIN, x);
    }
    case IR_R_ANY: return kn_cast(K, kn_reduce(K, KN_RED_ANY, x), t);
    case IR_R_ALL: return kn_cast(K, kn_reduce(K, KN_RED_ALL, x), t);
    case IR_R_SOFTMAX: {
        int e = kn_op1(K, KN_exp, kn_op2(K, KN_sub, x, kn_reduce(K, KN_RED_MAX, x)));
        return kn_op2(K, KN_div, e, kn_reduce(K, KN_RED_SUM, e));
    }
    case IR_R_LOG_SOFTMAX: {
        int d = kn_op2(K, KN_sub, x, kn_reduce(K, KN_RED_MAX, x));
        int sum = kn_reduce(K, KN_RED_SUM, kn_op1(K, KN_exp, d));
        return kn_op2(K, KN_sub, d, kn_op1(K, KN_log, sum));
    }
    case IR_R_LAYER_NORM: return layer_norm(l, op, x, t);
    case IR_R_NONE: break;
    }
    return lw_fail(l, op, "no kernel form");
}

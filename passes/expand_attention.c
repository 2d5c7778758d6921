/* passes/expand_attention.c - scaled_dot_product_attention as products around a softmax, which fusion
 * makes one kernel of (ir/attention_form.h).
 *
 *   s = matmul(q, k') * scale, masked;  o = matmul(softmax(s), v)
 *
 * Grouped heads become a dim of their own, along which k and v are repeated without a copy. Source:
 * PyTorch's documentation of scaled_dot_product_attention. */
#include <math.h>
#include <string.h>

#include "ir/kernel_form.h"
#include "passes/expand.h"
#include "runtime/values/tensor.h"

static ir_value *causal_mask(expander *e, int64_t rows, int64_t columns) {
    int64_t sizes[2] = {rows, columns};
    rt_tensor *t;
    ts_status status = rt_tensor_make(RT_float32, sizes, 2, &t);
    if (status) {
        ts_status_release(status);
        return NULL;
    }
    float *data = t->data;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            data[i * columns + j] = j <= i ? 0.0f : -HUGE_VALF;
    rt_value v = rt_from_tensor(t);
    ir_value *made = ir_build_const(&e->b, v);
    rt_release(v);
    return made;
}

/* The same as a comparison of two small tensors, bool[rows, columns], which the kernel makes. */
static ir_value *causal_order(expander *e, rt_dim rows, rt_dim columns) {
    ir_module *m = e->m;
    rt_dim sizes[2] = {rows, columns};
    ir_value *count[2];
    for (int i = 0; i < 2; i++) {
        rt_dim *one = TS_NEW_ARRAY(m->arena, rt_dim, 1);
        *one = sizes[i];
        ir_value *none = ir_build_none(&e->b);
        ir_value *args[5] = {expand_size(e, sizes[i]), none, none, none, none};
        count[i] = expand_core(e, OP_arange, ir_type_tensor(m, RT_int64, 1, one, IR_LAYOUT_ANY), args, 5);
    }
    rt_dim *column = TS_NEW_ARRAY(m->arena, rt_dim, 2), *both = TS_NEW_ARRAY(m->arena, rt_dim, 2);
    column[0] = both[0] = rows;
    column[1] = 1;
    both[1] = columns;
    ir_value *turn[2] = {count[0], ir_build_int(&e->b, 1)};
    ir_value *queries = expand_core(e, OP_unsqueeze, ir_type_tensor(m, RT_int64, 2, column, IR_LAYOUT_ANY),
                             turn, 2);
    ir_value *compared[2] = {queries, count[1]};
    return expand_core(e, OP_ge_Tensor, ir_type_tensor(m, RT_bool, 2, both, IR_LAYOUT_ANY), compared, 2);
}

/* Rows without a key at all weigh nothing, where softmax alone would give NaN. */
static ir_value *rows_without_key(expander *e, ir_value *scores) {
    int rank = scores->type->rank;
    rt_dim *dims = TS_NEW_ARRAY(e->m->arena, rt_dim, (size_t)rank);
    for (int d = 0; d < rank; d++)
        dims[d] = d == rank - 1 ? 1 : scores->type->dims[d];
    ir_value *last = ir_build_int(&e->b, -1);
    const ir_type *list_type = ir_type_list(e->m, ir_type_simple(e->m, IR_INT));
    ir_value *list = ir_build_op(&e->b, IR_OP_LIST, &last, 1, &list_type, 1)->results[0];
    ir_value *greatest[3] = {scores, list, ir_build_bool(&e->b, true)};
    ir_value *top = expand_core(e, OP_amax, expand_float_type(e, rank, dims), greatest, 3);
    ir_value *compared[2] = {top, ir_build_float(&e->b, -HUGE_VAL)};
    return expand_core(e, OP_eq_Scalar, ir_type_tensor(e->m, RT_bool, rank, dims, IR_LAYOUT_ANY), compared,
                2);
}

static ir_value *reshaped(expander *e, ir_value *x, const rt_dim *dims, int rank) {
    ir_value *sizes[IR_STRIDED_MAX_RANK];
    rt_dim *copy = TS_NEW_ARRAY(e->m->arena, rt_dim, IR_STRIDED_MAX_RANK);
    for (int d = 0; d < rank; d++) {
        sizes[d] = expand_size(e, dims[d]);
        copy[d] = dims[d];
    }
    const ir_type *list_type = ir_type_list(e->m, ir_type_simple(e->m, IR_INT));
    ir_value *list = ir_build_op(&e->b, IR_OP_LIST, sizes, (size_t)rank, &list_type, 1)->results[0];
    ir_value *args[2] = {x, list};
    return expand_core(e, OP_reshape,
                       ir_type_tensor(e->m, x->type->dtype, rank, copy, IR_LAYOUT_ANY), args, 2);
}

/* x with dim `at` split into [size / inner, inner]. */
static ir_value *split_dim(expander *e, ir_value *x, int at, rt_dim inner) {
    rt_dim dims[IR_STRIDED_MAX_RANK];
    int rank = x->type->rank;
    for (int d = 0; d <= rank; d++)
        dims[d] = x->type->dims[d <= at ? d : d - 1];
    dims[at] = x->type->dims[at] / inner;
    dims[at + 1] = inner;
    return reshaped(e, x, dims, rank + 1);
}

/* Heads of q in groups that share a head of k and v: [..., groups, of a group, rows, width], with k
 * and v as [..., groups, 1, rows, width]. False: the heads are not known to divide. */
static bool group_heads(expander *e, ir_value **q, ir_value **k, ir_value **v, ir_value **mask) {
    int rank = (*q)->type->rank, at = rank - 3;
    if (rank > 5 || !expand_is_floats(*k, rank) || !expand_is_floats(*v, rank))
        return false;
    rt_dim heads = (*q)->type->dims[at], own = (*k)->type->dims[at];
    const ir_type *mt = (*mask)->type;
    if (!rt_dim_is_constant(heads) || !rt_dim_is_constant(own) || own < 1 || heads % own != 0 ||
        (*v)->type->dims[at] != own)
        return false;
    int mask_at = -1; /* the mask's heads */
    if (mt->kind != IR_NONE) {
        if (!ir_type_is_known_tensor(mt) || mt->rank > rank)
            return false;
        mask_at = mt->rank - 3;
        if (mask_at >= 0 && mt->dims[mask_at] != 1 && mt->dims[mask_at] != heads)
            return false;
    }
    *q = split_dim(e, *q, at, heads / own);
    *k = split_dim(e, *k, at, 1);
    *v = split_dim(e, *v, at, 1);
    if (mask_at >= 0)
        *mask = split_dim(e, *mask, mask_at, mt->dims[mask_at] == 1 ? 1 : heads / own);
    return true;
}

bool expand_attention(expander *e, ir_op *op) {
    ir_module *m = e->m;
    ir_value *q = op->operands[0], *k = op->operands[1], *v = op->operands[2], *mask = op->operands[3];
    double dropout, scale;
    bool causal, grouped;
    if (op->operand_count != 8 || !ir_const_double(op->operands[4], &dropout) || dropout != 0 ||
        !ir_const_bool(op->operands[5], &causal) || !ir_const_bool(op->operands[7], &grouped))
        return false;
    int rank = q->type->rank;
    if (grouped && (rank < 3 || !expand_is_floats(q, rank) || !group_heads(e, &q, &k, &v, &mask)))
        return false;
    rank = q->type->rank;
    if (rank < 3 || rank > 6 || !expand_is_floats(q, rank) || !expand_is_floats(k, rank) || !expand_is_floats(v, rank))
        return false;
    rt_dim rows = q->type->dims[rank - 2], columns = k->type->dims[rank - 2];
    rt_dim width = q->type->dims[rank - 1];
    for (int d = 0; d < rank - 2; d++)
        if ((k->type->dims[d] != 1 && !ir_dim_same(m, q->type->dims[d], k->type->dims[d])) ||
            (v->type->dims[d] != 1 && !ir_dim_same(m, q->type->dims[d], v->type->dims[d])))
            return false;
    if (!rt_dim_is_constant(width) || !ir_dim_same(m, width, k->type->dims[rank - 1]) ||
        !ir_dim_same(m, columns, v->type->dims[rank - 2]))
        return false;
    if (op->operands[6]->type->kind == IR_NONE)
        scale = 1 / sqrt((double)width);
    else if (!ir_const_double(op->operands[6], &scale))
        return false;
    if (mask->type->kind != IR_NONE &&
        (causal || !ir_type_is_known_tensor(mask->type) ||
         (mask->type->dtype != RT_float32 && mask->type->dtype != RT_bool) ||
         mask->type->rank > rank))
        return false;
    bool known = rt_dim_is_constant(rows) && rt_dim_is_constant(columns);
    ir_value *addend = NULL;
    if (mask->type->kind != IR_NONE) {
        int lead = rank - mask->type->rank;
        for (int d = 0; d < mask->type->rank; d++) {
            rt_dim to = d + lead == rank - 1 ? columns : q->type->dims[d + lead];
            if (mask->type->dims[d] != 1 && !ir_dim_same(m, mask->type->dims[d], to))
                return false;
        }
        addend = mask;
    } else if (causal && (!known || rows == 1 || rows * columns > 4 << 20)) {
        addend = causal_order(e, rows, columns);
    } else if (causal && !(addend = causal_mask(e, rows, columns))) {
        return false;
    }
    rt_dim dims[IR_STRIDED_MAX_RANK];
    for (int d = 0; d < rank; d++)
        dims[d] = k->type->dims[d];
    dims[rank - 2] = width;
    dims[rank - 1] = columns;
    ir_value *flip[3] = {k, ir_build_int(&e->b, rank - 2), ir_build_int(&e->b, rank - 1)};
    ir_value *kt = expand_core(e, OP_transpose_int, expand_float_type(e, rank, dims), flip, 3);
    for (int d = 0; d < rank - 2; d++) /* where k has one of them, it is repeated */
        dims[d] = q->type->dims[d];
    dims[rank - 2] = rows;
    const ir_type *scores = expand_float_type(e, rank, dims);
    ir_value *product[2] = {q, kt};
    ir_value *s = expand_core(e, OP_matmul, scores, product, 2);
    ir_value *scaled[2] = {s, ir_build_float(&e->b, scale)};
    s = expand_core(e, OP_mul_Scalar, scores, scaled, 2);
    if (addend && addend->type->dtype == RT_bool) {
        ir_value *args[3] = {addend, s, ir_build_float(&e->b, -HUGE_VAL)};
        s = expand_core(e, OP_where_ScalarOther, scores, args, 3);
    } else if (addend) {
        s = expand_add(e, s, addend);
    }
    ir_value *empty = addend == mask ? rows_without_key(e, s) : NULL;
    ir_value *soft[3] = {s, ir_build_int(&e->b, -1), ir_build_none(&e->b)};
    s = expand_core(e, OP_softmax_int, scores, soft, 3);
    if (empty) {
        ir_value *chosen[3] = {empty, ir_build_float(&e->b, 0), s};
        s = expand_core(e, OP_where_ScalarSelf, scores, chosen, 3);
    }
    dims[rank - 1] = v->type->dims[rank - 1];
    ir_value *weighted[2] = {s, v};
    ir_value *out = expand_core(e, OP_matmul, expand_float_type(e, rank, dims), weighted, 2);
    if (grouped)
        out = reshaped(e, out, op->results[0]->type->dims, rank - 1);
    pass_replace(m, op->results[0], out);
    return true;
}

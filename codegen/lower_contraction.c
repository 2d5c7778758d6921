/* codegen/lower_contraction.c - kernels around a matrix product.
 *
 * Weights that are constants are packed here, once, in panels of 16 columns ([panel][k][16]) that
 * the micro-kernels of every CPU level read. What follows the anchor in the body is its epilogue. */
#include "codegen/lower_contraction.h"
#include "ir/kernel_form.h"

#include <string.h>

#include "runtime/base/checked.h"
#include "runtime/values/tensor.h"

#define K l->k

enum { PANEL = 16 };

bool lw_is_anchor(lowering *l, const ir_op *op) {
    (void)l;
    return ir_anchor_of(op) != IR_A_NONE;
}

ts_status lw_unsupported(const lowering *l, const char *why) {
    if (l->status)
        return l->status;
    return ts_error_at(TS_ERR_UNSUPPORTED, l->op->place, "%s", why);
}

/* ---- constants seen through views ---- */

static bool constant_view(lowering *l, const ir_value *v, kn_matrices *out, ir_strided *s,
                          int depth) {
    if (depth > 32)
        return false;
    const float *data = lw_constant_floats(l, v);
    if (data) {
        out->data = data;
        out->name = v->def->weight_name;
        out->place = l->anchor->place;
        return ir_strided_dense(l->ir, v->type, IR_LAYOUT_CONTIGUOUS, s);
    }
    ir_strided in;
    return v->def && ir_view_kind_of(v->def) != IR_VIEW_NONE &&
           constant_view(l, v->def->operands[0], out, &in, depth + 1) &&
           ir_strided_apply(l->ir, v->def, &in, s);
}

/* ---- pieces of a contraction ---- */

kn_node lw_tile_node(void) { return kn_blank(KN_TILE, RT_float32); }

void lw_space_of_product(lowering *l, const ir_type *t) {
    kn_kernel *k = l->k;
    k->contraction.batch_count = t->rank - 2;
    k->dim_count = l->space_rank = l->space_map.rank = t->rank;
    for (int d = 0; d < t->rank; d++) {
        l->space[d] = t->dims[d];
        k->dims[d] = (kn_dim){.size = t->dims[d], .role = d == t->rank - 1 ? KN_VECTOR : KN_OUTER};
        l->space_map.dims[d].factors[d] = 1;
    }
}

bool lw_is_floats(const ir_value *v, int min_rank) {
    return ir_type_is_known_tensor(v->type) && v->type->dtype == RT_float32 &&
           v->type->rank >= min_rank;
}

/* Adds `v`, broadcast along the trailing dims, to the anchor's value. */
static int add_broadcast(lowering *l, int node, ir_value *v, double factor) {
    if (lw_is_none(v) || factor == 0)
        return node;
    int b = lw_broadcast(l, v, l->anchor->results[0]->type, &l->space_map);
    if (b < 0)
        return -1;
    if (factor != 1)
        b = kn_op2(K, KN_mul, b, kn_constant_number(K, RT_float32, factor));
    return kn_op2(K, KN_add, node, b);
}

/* Strides of an operand (rank r, its last two dims are of the matrix) for batch dims of the result. */
static bool batch_strides(lowering *l, const ir_strided *s, int batch_count, kn_access *a) {
    const ir_type *t = l->anchor->results[0]->type;
    int lead = batch_count - (s->rank - 2);
    if (lead < 0)
        return false;
    for (int d = lead; d < batch_count; d++) {
        rt_dim size = s->sizes[d - lead];
        bool repeats = size == 1 && t->dims[d] != 1;
        if (!repeats && !ir_dim_same(l->ir, size, t->dims[d]))
            return false;
        a->strides[d] = repeats ? 0 : s->strides[d - lead];
    }
    return true;
}

static ts_status set_right(lowering *l, ir_value *v, bool is_transposed) {
    kn_contraction *c = &K->contraction;
    int batch = c->batch_count, n_dim = batch + 1;
    kn_matrices m = {.count = 1, .k = c->k, .middle = 1};
    ir_strided s;
    c->right.element = RT_float32;
    if (constant_view(l, v, &m, &s, 0)) {
        if (s.rank < 2)
            return lw_unsupported(l, "a vector operand");
        int r = s.rank;
        int64_t counts[IR_STRIDED_MAX_RANK];
        m.inner = m.k > 0 ? m.k : 1;
        m.inner_stride = s.strides[is_transposed ? r - 1 : r - 2];
        m.n_stride = s.strides[is_transposed ? r - 2 : r - 1];
        m.n = s.sizes[is_transposed ? r - 2 : r - 1];
        if (!rt_dim_is_constant(m.n) || !rt_dim_is_constant(m.inner))
            return lw_unsupported(l, "a constant matrix expanded to a size known at run time");
        for (int d = 0; d < r - 2; d++) {
            /* Of an expanded constant one matrix serves all, however many the run makes of it. */
            int64_t distinct = s.strides[d] == 0 ? 1 : s.sizes[d];
            if (distinct < 0 || !ts_mul_i64(m.count, distinct, &m.count) || m.count > 4096)
                return lw_unsupported(l, "too many constant matrices");
            counts[d] = distinct;
        }
        int64_t *offsets = ts_arena_array(l->unit->arena, (size_t)m.count + 1, sizeof *offsets);
        for (int64_t i = 0; i < m.count; i++) {
            int64_t from = s.offset, rest = i;
            for (int d = r - 3; d >= 0; d--) {
                from += rest % counts[d] * s.strides[d];
                rest /= counts[d];
            }
            offsets[i] = from;
        }
        m.offsets = offsets;
        int64_t each = lw_pack_weights(l, lw_weight_format(l, false, &m), &m);
        ir_strided dense = s;
        dense.offset = 0;
        int64_t stride = each;
        for (int d = r - 3; d >= 0; d--) {
            dense.strides[d] = counts[d] == 1 ? 0 : stride;
            stride *= counts[d];
        }
        return batch_strides(l, &dense, batch, &c->right) ? NULL : lw_unsupported(l, "batch sizes");
    }
    if (!lw_source(l, v, &c->right.buffer, &s))
        return lw_unsupported(l, "the right operand is no view of an input");
    if (s.rank < 2)
        return lw_unsupported(l, "a vector operand");
    c->right.offset = s.offset;
    c->right.strides[n_dim] = s.strides[is_transposed ? s.rank - 2 : s.rank - 1];
    c->right_k = s.strides[is_transposed ? s.rank - 1 : s.rank - 2];
    return batch_strides(l, &s, batch, &c->right) ? NULL : lw_unsupported(l, "batch sizes");
}

static ts_status set_left(lowering *l, ir_value *v) {
    kn_contraction *c = &K->contraction;
    ir_strided s;
    if (!lw_source(l, v, &c->left.buffer, &s))
        return lw_unsupported(l, "the left operand is no view of an input");
    if (s.rank < 2)
        return lw_unsupported(l, "a vector operand");
    c->left.element = RT_float32;
    c->left.offset = s.offset;
    c->left.strides[c->batch_count] = s.strides[s.rank - 2];
    c->left_k = s.strides[s.rank - 1];
    c->left_kind = c->left_k == 1 ? KN_LEFT_ROWS : KN_LEFT_PACKED;
    c->k = s.sizes[s.rank - 1];
    if (!batch_strides(l, &s, c->batch_count, &c->left))
        return lw_unsupported(l, "batch sizes");
    return NULL;
}

static ts_status matrix_product(lowering *l, ir_anchor kind) {
    const ir_op *op = l->anchor;
    const ir_type *t = op->results[0]->type;
    const char *left_name = kind == IR_A_LINEAR ? "input" : "self", *right_name = "other";
    if (kind == IR_A_LINEAR)
        right_name = "weight";
    ir_value *left = ir_core_operand(l->ir, op, left_name);
    ir_value *right = ir_core_operand(l->ir, op, right_name);
    if (!right)
        right = ir_core_operand(l->ir, op, "mat2");
    if (kind == IR_A_ADDMM) {
        left = ir_core_operand(l->ir, op, "mat1");
        if (!left)
            left = ir_core_operand(l->ir, op, "batch1");
        if (!right)
            right = ir_core_operand(l->ir, op, "batch2");
    }
    if (!left || !right || !ir_type_is_known_tensor(t) || t->rank < 2 || !lw_is_floats(left, 2) ||
        !lw_is_floats(right, 2) || t->rank > KN_MAX_DIMS)
        return lw_unsupported(l, "a product of other than float32 matrices");
    kn_contraction *c = &K->contraction;
    c->is_on = true;
    lw_space_of_product(l, t);
    TS_TRY(set_left(l, left));
    TS_TRY(set_right(l, right, kind == IR_A_LINEAR));
    l->anchor_node = kn_add_node(K, lw_tile_node());
    if (kind == IR_A_LINEAR)
        l->anchor_node = add_broadcast(l, l->anchor_node, ir_core_operand(l->ir, op, "bias"), 1);
    if (kind == IR_A_ADDMM) {
        double alpha = 1, beta = 1;
        const ir_value *a = ir_core_operand(l->ir, op, "alpha"), *b = ir_core_operand(l->ir, op, "beta");
        if ((a && !ir_const_double(a, &alpha)) || (b && !ir_const_double(b, &beta)))
            return lw_unsupported(l, "factors that are not constant");
        if (alpha != 1)
            l->anchor_node = kn_op2(K, KN_mul, l->anchor_node,
                                    kn_constant_number(K, RT_float32, alpha));
        l->anchor_node =
            add_broadcast(l, l->anchor_node, ir_core_operand(l->ir, op, "self"), beta);
    }
    if (l->anchor_node < 0)
        return lw_unsupported(l, "the addend");
    return lw_stores(l);
}

ts_status lw_anchor(lowering *l) {
    ir_anchor kind = ir_anchor_of(l->anchor);
    switch (kind) {
    case IR_A_LINEAR: case IR_A_MATMUL: case IR_A_ADDMM: return matrix_product(l, kind);
    case IR_A_CONVOLUTION: return lw_convolution(l);
    case IR_A_MAX_POOL: case IR_A_AVG_POOL: return lw_pooling(l, kind);
    case IR_A_INTEGER_LINEAR: case IR_A_INTEGER_CONVOLUTION: return lw_integer(l, kind);
    case IR_A_NONE: break;
    }
    return lw_unsupported(l, "no anchor");
}

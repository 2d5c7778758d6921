/* ir/attention_form.c - see attention_form.h. */
#include "ir/attention_form.h"

#include <math.h>
#include <string.h>

enum { MAX_WIDTH = 512 }; /* of a query or a value: the kernel's rows stay in the first cache */

static bool is_member(const ir_attention *a, const ir_op *op) {
    for (size_t i = 0; i < a->op_count; i++)
        if (a->ops[i] == op)
            return true;
    return false;
}

static bool add(ir_attention *a, ir_op *op) {
    if (a->op_count == IR_ATTENTION_MAX_OPS)
        return false;
    a->ops[a->op_count++] = op;
    return true;
}

/* Whether every reader of op's results is one of a's operators. */
static bool is_read_inside(const ir_attention *a, const ir_op *op) {
    for (size_t r = 0; r < op->result_count; r++)
        for (size_t i = 0; i < op->results[r]->use_count; i++)
            if (!is_member(a, op->results[r]->uses[i].op))
                return false;
    return true;
}

/* The same of what the score is made of: neither the queries and keys nor the values. */
static bool is_read_by_score(const ir_attention *a, const ir_op *op) {
    for (size_t i = 0; i < op->results[0]->use_count; i++) {
        const ir_op *user = op->results[0]->uses[i].op;
        if (user == a->product || user == a->scores)
            return false;
    }
    return is_read_inside(a, op);
}

static bool is_matrices(const ir_value *v) {
    return ir_type_is_known_tensor(v->type) && v->type->dtype == RT_float32 && v->type->rank >= 2;
}

static bool same_dims(ir_module *m, const ir_type *a, const ir_type *b, int count) {
    for (int d = 0; d < count; d++)
        if (!ir_dim_same(m, a->dims[d], b->dims[d]))
            return false;
    return true;
}

/* Sizes before the last two: those of `to`, or 1. */
static bool batch_fits(ir_module *m, const ir_type *t, const ir_type *to) {
    int lead = to->rank - t->rank;
    if (lead < 0)
        return false;
    for (int d = 0; d < t->rank - 2; d++)
        if (t->dims[d] != 1 && !ir_dim_same(m, t->dims[d], to->dims[d + lead]))
            return false;
    return true;
}

static bool is_width(rt_dim d) { return rt_dim_is_constant(d) && d >= 1 && d <= MAX_WIDTH; }

static bool is_infinite_below(const ir_value *v) {
    double d;
    return ir_const_double(v, &d) && d == -HUGE_VAL;
}

/* where(amax(x, -1, keepdim) == -inf, 0, softmax(x)) */
static ir_op *match_emptied(ir_module *m, ir_attention *a, ir_op *op) {
    double zero;
    if (!ir_is_core(op, OP_where_ScalarSelf) || !ir_const_double(op->operands[1], &zero) ||
        zero != 0)
        return NULL;
    ir_op *compare = op->operands[0]->def, *soft = op->operands[2]->def;
    if (!ir_is_core(compare, OP_eq_Scalar) || !is_infinite_below(compare->operands[1]) ||
        !ir_is_core(soft, OP_softmax_int))
        return NULL;
    ir_op *top = compare->operands[0]->def;
    if (!ir_is_core(top, OP_amax) || top->operands[0] != soft->operands[0] ||
        ir_reduced_dims(m, top) != ir_reduced_dims(m, soft) || compare->block != op->block ||
        top->block != op->block || soft->block != op->block)
        return NULL;
    if (!add(a, op) || !add(a, compare) || !add(a, top))
        return NULL;
    a->zeroes_empty = true;
    return soft;
}

static bool add_scores(ir_module *m, ir_attention *a, ir_op *op) {
    const ir_type *t = op->results[0]->type;
    if (a->scores || ir_kernel_form_of(m, op) != IR_FORM_CONTRACTION || op->operand_count != 2)
        return false;
    a->scores = op;
    a->query = op->operands[0];
    a->key = op->operands[1];
    return is_matrices(a->query) && is_matrices(a->key) && batch_fits(m, a->query->type, t) &&
           batch_fits(m, a->key->type, t) && is_width(a->query->type->dims[a->query->type->rank - 1]) &&
           add(a, op);
}

/* Whether v broadcasts to the scores, and costs little to compute again for each of them. */
static bool is_cheap_part(ir_module *m, const ir_op *op, const ir_type *to) {
    const ir_type *t = op->results[0]->type;
    int lead = to->rank - t->rank;
    if (lead < 0 || ir_kernel_form_of(m, op) != IR_FORM_POINTWISE || ir_is_heavy_pointwise(op))
        return false;
    for (int d = 0; d < t->rank; d++)
        if (t->dims[d] != 1 && !ir_dim_same(m, t->dims[d], to->dims[d + lead]))
            return false;
    return true;
}

/* Operators before softmax, nearest first, that nobody else reads: pointwise ones of the scores'
 * shape (cheap ones of a smaller shape: masks), down to the product. What they read besides are
 * inputs. */
static bool add_before(ir_module *m, ir_attention *a, ir_op *at) {
    enum { MAX_FURTHER = 200 };
    const ir_type *t = a->softened->type;
    int further = 0;
    for (ir_op *op = at->previous; op && further < MAX_FURTHER; op = op->previous) {
        further += a->scores != NULL;
        if (ir_effects(op) & IR_EFFECT_WRITES) /* nothing may be moved behind it */
            return a->scores != NULL;
        if (op->opcode != IR_OP_CORE || op->result_count != 1 || op->results[0]->use_count == 0 ||
            !is_read_by_score(a, op) || is_member(a, op))
            continue;
        const ir_type *r = op->results[0]->type;
        if (!ir_type_is_known_tensor(r))
            continue;
        if (r->rank != t->rank || !same_dims(m, r, t, t->rank)) {
            if (is_cheap_part(m, op, t) && !add(a, op))
                return false;
            continue;
        }
        ir_anchor anchor = ir_anchor_of(op);
        if (anchor == IR_A_MATMUL) {
            if (a->scores || !add_scores(m, a, op))
                return false;
            continue; /* masks may have been made before the scores */
        }
        if (ir_kernel_form_of(m, op) == IR_FORM_POINTWISE && !add(a, op))
            return false;
    }
    return a->scores != NULL;
}

bool ir_attention_of(ir_module *m, ir_op *product, ir_attention *out) {
    memset(out, 0, sizeof *out);
    if (ir_anchor_of(product) != IR_A_MATMUL || product->operand_count != 2 ||
        !is_matrices(product->results[0]) || !is_matrices(product->operands[0]) ||
        !is_matrices(product->operands[1]))
        return false;
    out->product = product;
    out->value = product->operands[1];
    const ir_type *r = product->results[0]->type, *v = out->value->type;
    ir_op *op = product->operands[0]->def;
    if (!op || op->block != product->block || !add(out, product))
        return false;
    if (!ir_is_core(op, OP_softmax_int))
        op = match_emptied(m, out, op);
    if (!op || op->block != product->block || !ir_is_core(op, OP_softmax_int) ||
        ir_kernel_form_of(m, op) != IR_FORM_ROWS || !add(out, op))
        return false;
    out->softmax = op;
    out->softened = op->operands[0];
    const ir_type *t = out->softened->type;
    if (!ir_type_is_known_tensor(t) || t->rank != r->rank || t->rank > 7 || t->dtype != RT_float32 ||
        ir_reduced_dims(m, op) != 1u << (t->rank - 1) || !same_dims(m, t, r, t->rank - 1) ||
        !batch_fits(m, v, r) || !is_width(v->dims[v->rank - 1]))
        return false;
    /* One query or two fill no vector: a product each is better. */
    rt_dim queries = t->dims[t->rank - 2], keys = t->dims[t->rank - 1];
    if ((rt_dim_is_constant(queries) && queries < 4) || keys == 0)
        return false;
    for (size_t i = 1; i < out->op_count; i++)
        if (!is_read_inside(out, out->ops[i]))
            return false;
    /* From the end: what stands between product and softmax is seen too. */
    return add_before(m, out, product) && out->scores;
}

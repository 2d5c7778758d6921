/* passes/expand_composites.c - operators that kernels have no form for, as several that they have.
 *
 *   %h, %c = lstm_cell(%x, [%h0, %c0], ...)   =>  two linears, their sum, gates on slices of it
 *   %o = scaled_dot_product_attention(...)    =>  matmul, scale, mask, softmax, matmul
 *   %a, %b = list_unpack(split(%x, 4, 1))     =>  slices
 *
 * Only where dtypes, ranks and the sizes that matter are known: the operator as a whole keeps the
 * general case. Needs: infer_types, functionalise. Keeps: types. Why just before fuse: passes that
 * look for whole operators have run. Source: PyTorch's documentation of LSTMCell, GRUCell and
 * scaled_dot_product_attention. */
#include <math.h>
#include <string.h>

#include "ir/kernel_form.h"
#include "passes/expand.h"
#include "runtime/values/tensor.h"

const ir_type *expand_float_type(expander *e, int rank, const rt_dim *dims) {
    rt_dim *copy = TS_NEW_ARRAY(e->m->arena, rt_dim, (size_t)rank + 1);
    for (int d = 0; d < rank; d++)
        copy[d] = dims[d];
    return ir_type_tensor(e->m, RT_float32, rank, copy, IR_LAYOUT_ANY);
}

ir_value *expand_core(expander *e, rt_op op, const ir_type *t, ir_value *const *operands,
                      size_t count) {
    ir_value *v = ir_build_core1(&e->b, op, operands, count);
    v->type = t;
    return v;
}

static ir_value *unary(expander *e, rt_op op, ir_value *x) { return expand_core(e, op, x->type, &x, 1); }

ir_value *expand_add(expander *e, ir_value *x, ir_value *y) {
    ir_value *args[3] = {x, y, ir_build_int(&e->b, 1)};
    return expand_core(e, OP_add_Tensor, x->type, args, 3);
}
static ir_value *sub(expander *e, ir_value *x, ir_value *y) {
    ir_value *args[3] = {x, y, ir_build_int(&e->b, 1)};
    return expand_core(e, OP_sub_Tensor, x->type, args, 3);
}
static ir_value *mul(expander *e, ir_value *x, ir_value *y) {
    ir_value *args[2] = {x, y};
    return expand_core(e, OP_mul_Tensor, x->type, args, 2);
}

static ir_value *slice(expander *e, ir_value *x, int dim, int64_t start, int64_t count) {
    rt_dim dims[IR_STRIDED_MAX_RANK];
    for (int d = 0; d < x->type->rank; d++)
        dims[d] = x->type->dims[d];
    dims[dim] = count;
    rt_dim *copy = TS_NEW_ARRAY(e->m->arena, rt_dim, IR_STRIDED_MAX_RANK);
    memcpy(copy, dims, sizeof dims);
    const ir_type *t = ir_type_tensor(e->m, x->type->dtype, x->type->rank, copy, IR_LAYOUT_ANY);
    ir_value *args[5] = {x, ir_build_int(&e->b, dim), ir_build_int(&e->b, start),
                         ir_build_int(&e->b, start + count), ir_build_int(&e->b, 1)};
    return expand_core(e, OP_slice_Tensor, t, args, 5);
}

bool expand_is_floats(const ir_value *v, int rank) {
    return v && ir_type_is_known_tensor(v->type) && v->type->dtype == RT_float32 &&
           v->type->rank == rank;
}

/* ---- recurrent cells ---- */

static ir_value *linear(expander *e, ir_value *x, ir_value *w, ir_value *bias) {
    rt_dim dims[2] = {x->type->dims[0], w->type->dims[0]};
    ir_value *args[3] = {x, w, bias};
    return expand_core(e, OP_linear, expand_float_type(e, 2, dims), args, 3);
}

static bool cell_fits(expander *e, const ir_op *op, const ir_value *x, const ir_value *h, int gates) {
    const ir_value *w_ih = op->operands[2], *w_hh = op->operands[3];
    if (!expand_is_floats(x, 2) || !expand_is_floats(h, 2) || !expand_is_floats(w_ih, 2) || !expand_is_floats(w_hh, 2))
        return false;
    rt_dim hidden = h->type->dims[1];
    for (size_t i = 4; i < 6; i++)
        if (op->operands[i]->type->kind != IR_NONE && !expand_is_floats(op->operands[i], 1))
            return false;
    return rt_dim_is_constant(hidden) && w_ih->type->dims[0] == hidden * gates &&
           w_hh->type->dims[0] == hidden * gates &&
           ir_dim_same(e->m, x->type->dims[1], w_ih->type->dims[1]) &&
           ir_dim_same(e->m, hidden, w_hh->type->dims[1]) &&
           ir_dim_same(e->m, x->type->dims[0], h->type->dims[0]);
}

static bool expand_lstm_cell(expander *e, ir_op *op) {
    const ir_value *list = op->operands[1];
    if (op->operand_count != 6 || !list->def || list->def->opcode != IR_OP_LIST ||
        list->def->operand_count != 2 || !ir_list_is_stable(list))
        return false;
    ir_value *x = op->operands[0], *h = list->def->operands[0], *c = list->def->operands[1];
    if (!cell_fits(e, op, x, h, 4) || !expand_is_floats(c, 2) ||
        !ir_dim_same(e->m, c->type->dims[1], h->type->dims[1]) ||
        !ir_dim_same(e->m, c->type->dims[0], h->type->dims[0]))
        return false;
    int64_t n = h->type->dims[1];
    /* In an order of their own: that of arguments is the C compiler's to choose. */
    ir_value *gi = linear(e, x, op->operands[2], op->operands[4]);
    ir_value *gh = linear(e, h, op->operands[3], op->operands[5]);
    ir_value *gates = expand_add(e, gh, gi);
    ir_value *i = unary(e, OP_sigmoid, slice(e, gates, 1, 0, n));
    ir_value *f = unary(e, OP_sigmoid, slice(e, gates, 1, n, n));
    ir_value *g = unary(e, OP_tanh, slice(e, gates, 1, 2 * n, n));
    ir_value *o = unary(e, OP_sigmoid, slice(e, gates, 1, 3 * n, n));
    ir_value *c_next = expand_add(e, mul(e, f, c), mul(e, i, g));
    ir_value *h_next = mul(e, o, unary(e, OP_tanh, c_next));
    pass_replace(e->m, op->results[0], h_next);
    pass_replace(e->m, op->results[1], c_next);
    return true;
}

static bool expand_gru_cell(expander *e, ir_op *op) {
    if (op->operand_count != 6 || !cell_fits(e, op, op->operands[0], op->operands[1], 3))
        return false;
    ir_value *x = op->operands[0], *h = op->operands[1];
    int64_t n = h->type->dims[1];
    ir_value *gi = linear(e, x, op->operands[2], op->operands[4]);
    ir_value *gh = linear(e, h, op->operands[3], op->operands[5]);
    ir_value *r = unary(e, OP_sigmoid, expand_add(e, slice(e, gi, 1, 0, n), slice(e, gh, 1, 0, n)));
    ir_value *z = unary(e, OP_sigmoid, expand_add(e, slice(e, gi, 1, n, n), slice(e, gh, 1, n, n)));
    ir_value *candidate = unary(
        e, OP_tanh, expand_add(e, slice(e, gi, 1, 2 * n, n), mul(e, r, slice(e, gh, 1, 2 * n, n))));
    /* (1 - z) * n + z * h as PyTorch's kernel sums it: (h - n) * z + n */
    ir_value *next = expand_add(e, mul(e, sub(e, h, candidate), z), candidate);
    pass_replace(e->m, op->results[0], next);
    return true;
}

/* ---- recurrent layers: one product for the inputs of all steps, then a loop over the steps ---- */

typedef struct layer {
    int gates; /* 4 LSTM, 3 GRU */
    ir_value *x; /* [steps, batch, features] */
    ir_value *w_ih, *w_hh, *b_ih, *b_hh;
    ir_value *h, *c; /* [batch, hidden] */
    bool backward;
} layer;

static ir_value *select_at(expander *e, ir_value *x, ir_value *index) {
    rt_dim *dims = TS_NEW_ARRAY(e->m->arena, rt_dim, IR_STRIDED_MAX_RANK);
    for (int d = 0; d + 1 < x->type->rank; d++)
        dims[d] = x->type->dims[d + 1];
    const ir_type *t = ir_type_tensor(e->m, x->type->dtype, x->type->rank - 1, dims, IR_LAYOUT_ANY);
    ir_value *args[3] = {x, ir_build_int(&e->b, 0), index};
    return expand_core(e, OP_select_int, t, args, 3);
}

ir_value *expand_size(expander *e, rt_dim d) { return ir_build_size(&e->b, d); }

static ir_value *stack(expander *e, ir_value *const *items, size_t count, ir_value *list) {
    const ir_type *tensors = ir_type_list(e->m, ir_type_any_tensor(e->m));
    if (!list)
        list = ir_build_op(&e->b, IR_OP_LIST, items, count, &tensors, 1)->results[0];
    ir_value *args[2] = {list, ir_build_int(&e->b, 0)};
    return ir_build_core1(&e->b, OP_stack, args, 2);
}

/* The gates of one step; *c is replaced (LSTM). sum: [batch, gates * hidden] of both products for
 * an LSTM, of the inputs alone for a GRU, whose hidden product is `hidden_sum`. */
static ir_value *step_gates(expander *e, const layer *l, ir_value *sum, ir_value *hidden_sum,
                            ir_value *h, ir_value **c) {
    int64_t n = l->h->type->dims[1];
    if (l->gates == 4) {
        ir_value *i = unary(e, OP_sigmoid, slice(e, sum, 1, 0, n));
        ir_value *f = unary(e, OP_sigmoid, slice(e, sum, 1, n, n));
        ir_value *g = unary(e, OP_tanh, slice(e, sum, 1, 2 * n, n));
        ir_value *o = unary(e, OP_sigmoid, slice(e, sum, 1, 3 * n, n));
        *c = expand_add(e, mul(e, f, *c), mul(e, i, g));
        return mul(e, o, unary(e, OP_tanh, *c));
    }
    ir_value *r = unary(e, OP_sigmoid,
                        expand_add(e, slice(e, sum, 1, 0, n), slice(e, hidden_sum, 1, 0, n)));
    ir_value *z = unary(e, OP_sigmoid,
                        expand_add(e, slice(e, sum, 1, n, n), slice(e, hidden_sum, 1, n, n)));
    ir_value *candidate =
        unary(e, OP_tanh, expand_add(e, slice(e, sum, 1, 2 * n, n),
                              mul(e, r, slice(e, hidden_sum, 1, 2 * n, n))));
    return expand_add(e, mul(e, sub(e, h, candidate), z), candidate);
}

/* Emits a layer in one direction; returns [steps, batch, hidden], final states in l->h and l->c. */
static ir_value *emit_layer(expander *e, layer *l) {
    ir_module *m = e->m;
    rt_dim dims[3] = {l->x->type->dims[0], l->x->type->dims[1], l->w_ih->type->dims[0]};
    ir_value *linear_args[3] = {l->x, l->w_ih, l->b_ih};
    ir_value *inputs = expand_core(e, OP_linear, expand_float_type(e, 3, dims), linear_args, 3);
    const ir_type *tensors = ir_type_list(m, ir_type_any_tensor(m));
    ir_value *outs = ir_build_op(&e->b, IR_OP_LIST, NULL, 0, &tensors, 1)->results[0];
    ir_value *steps = expand_size(e, dims[0]);
    ir_value *carried[2] = {l->h, l->c};
    size_t count = l->gates == 4 ? 2 : 1;
    ir_op *loop = ir_build_loop(&e->b, steps, ir_build_bool(&e->b, true), carried, count);
    ir_block *body = loop->regions[0];
    ir_builder outside = e->b;
    e->b = (ir_builder){.module = m, .block = body, .place = outside.place};
    ir_value *h = ir_block_add_parameter(m, body, l->h->type, TS_STR("h"));
    ir_value *c = count == 2 ? ir_block_add_parameter(m, body, l->c->type, TS_STR("c")) : NULL;
    ir_value *index = body->parameters[0];
    if (l->backward) {
        ir_value *last[2] = {steps, ir_build_int(&e->b, 1)};
        ir_value *from[2] = {ir_build_core1(&e->b, OP_sub_int, last, 2), index};
        index = ir_build_core1(&e->b, OP_sub_int, from, 2);
    }
    ir_value *input = select_at(e, inputs, index);
    ir_value *product = linear(e, h, l->w_hh, l->b_hh);
    ir_value *sum = l->gates == 4 ? expand_add(e, product, input) : input;
    ir_value *next = step_gates(e, l, sum, product, h, &c);
    ir_value *append[2] = {outs, next};
    ir_build_core(&e->b, OP_append_t, append, 2);
    ir_value *yields[3] = {ir_build_bool(&e->b, true), next, c};
    ir_build_yield(&e->b, yields, 1 + count);
    e->b = outside;
    l->h = ir_op_add_result(m, loop, l->h->type, TS_STR(""));
    if (count == 2)
        l->c = ir_op_add_result(m, loop, l->c->type, TS_STR(""));
    if (l->backward) { /* the list runs from the last step to the first */
        ir_value *reverse[1] = {outs};
        ir_build_core(&e->b, OP_reverse_t, reverse, 1);
    }
    dims[2] = l->h->type->dims[1];
    ir_value *stacked = stack(e, NULL, 0, outs);
    stacked->type = expand_float_type(e, 3, dims);
    return stacked;
}

/* The items of a list that nobody changes; those of a constant become constants. */
static bool list_items(expander *e, const ir_value *v, ir_value ***items, size_t *count) {
    if (ir_is_const(v) && v->def->value.tag == RT_TAG_LIST && ir_list_is_stable(v)) {
        const rt_list *list = v->def->value.as.list;
        *count = list->count;
        *items = TS_NEW_ARRAY(e->m->arena, ir_value *, list->count + 1);
        for (size_t i = 0; i < list->count; i++)
            (*items)[i] = ir_build_const(&e->b, list->items[i]);
        return true;
    }
    if (!v->def || v->def->opcode != IR_OP_LIST || !ir_list_is_stable(v))
        return false;
    *items = v->def->operands;
    *count = v->def->operand_count;
    return true;
}

static bool expand_recurrent(expander *e, ir_op *op, int gates) {
    ir_module *m = e->m;
    bool is_lstm = gates == 4, biases, train, both, batch_first;
    int64_t layers;
    double dropout;
    ir_value **params, **states = NULL;
    size_t param_count, state_count = 0;
    if (op->operand_count != 9 || !list_items(e, op->operands[2], &params, &param_count) ||
        (is_lstm && (!list_items(e, op->operands[1], &states, &state_count) || state_count != 2)) ||
        !ir_const_bool(op->operands[3], &biases) || !ir_const_int(op->operands[4], &layers) ||
        !ir_const_double(op->operands[5], &dropout) || !ir_const_bool(op->operands[6], &train) ||
        !ir_const_bool(op->operands[7], &both) || !ir_const_bool(op->operands[8], &batch_first))
        return false;
    ir_value *x = op->operands[0], *h0 = is_lstm ? states[0] : op->operands[1];
    ir_value *c0 = is_lstm ? states[1] : NULL;
    size_t directions = both ? 2 : 1, per = biases ? 4 : 2;
    if (layers < 1 || layers > 8 || param_count != (size_t)layers * directions * per ||
        (train && dropout != 0) || !expand_is_floats(x, 3) || !expand_is_floats(h0, 3) ||
        (is_lstm && !expand_is_floats(c0, 3)) || !rt_dim_is_constant(h0->type->dims[2]))
        return false;
    rt_dim hidden = h0->type->dims[2], batch = x->type->dims[batch_first ? 0 : 1];
    rt_dim features = x->type->dims[2];
    for (size_t i = 0; i < param_count; i++) {
        bool is_weight = i % per < 2;
        if (!expand_is_floats(params[i], is_weight ? 2 : 1) || params[i]->type->dims[0] != hidden * gates)
            return false;
        if (i % per == 0) {
            rt_dim wanted = i < directions * per ? features : hidden * (rt_dim)directions;
            if (!ir_dim_same(m, params[i]->type->dims[1], wanted))
                return false;
        } else if (is_weight && params[i]->type->dims[1] != hidden) {
            return false; /* a projection */
        }
    }
    if (!ir_dim_same(m, h0->type->dims[1], batch) ||
        h0->type->dims[0] != layers * (rt_dim)directions ||
        (is_lstm && (!ir_dim_same(m, c0->type->dims[1], batch) ||
                     c0->type->dims[0] != h0->type->dims[0] || c0->type->dims[2] != hidden)))
        return false;
    if (batch_first) {
        rt_dim dims[3] = {x->type->dims[1], x->type->dims[0], features};
        ir_value *args[3] = {x, ir_build_int(&e->b, 0), ir_build_int(&e->b, 1)};
        x = expand_core(e, OP_transpose_int, expand_float_type(e, 3, dims), args, 3);
    }
    ir_value *last_h[16], *last_c[16], *none = ir_build_none(&e->b);
    size_t made = 0;
    for (size_t i = 0; i < (size_t)layers; i++) {
        ir_value *outs[2];
        for (size_t d = 0; d < directions; d++, made++) {
            ir_value **p = params + made * per;
            ir_value *at = ir_build_int(&e->b, (int64_t)made);
            layer l = {.gates = gates, .x = x, .w_ih = p[0], .w_hh = p[1], .backward = d == 1,
                       .b_ih = biases ? p[2] : none, .b_hh = biases ? p[3] : none};
            l.h = select_at(e, h0, at);
            l.c = is_lstm ? select_at(e, c0, at) : NULL;
            outs[d] = emit_layer(e, &l);
            last_h[made] = l.h;
            last_c[made] = l.c;
        }
        x = outs[0];
        if (both) {
            const ir_type *tensors = ir_type_list(m, ir_type_any_tensor(m));
            ir_value *pair = ir_build_op(&e->b, IR_OP_LIST, outs, 2, &tensors, 1)->results[0];
            ir_value *args[2] = {pair, ir_build_int(&e->b, 2)};
            rt_dim dims[3] = {x->type->dims[0], x->type->dims[1], 2 * hidden};
            x = expand_core(e, OP_cat, expand_float_type(e, 3, dims), args, 2);
        }
    }
    if (batch_first) {
        rt_dim dims[3] = {x->type->dims[1], x->type->dims[0], x->type->dims[2]};
        ir_value *args[3] = {x, ir_build_int(&e->b, 0), ir_build_int(&e->b, 1)};
        x = expand_core(e, OP_transpose_int, expand_float_type(e, 3, dims), args, 3);
    }
    ir_value *hn = stack(e, last_h, made, NULL);
    hn->type = h0->type;
    pass_replace(m, op->results[0], x);
    pass_replace(m, op->results[1], hn);
    if (is_lstm) {
        ir_value *cn = stack(e, last_c, made, NULL);
        cn->type = c0->type;
        pass_replace(m, op->results[2], cn);
    }
    return true;
}

/* ---- the same weights over slices of one tensor: one product ---- */

static bool lacks_value(const ir_value *v) { return v->type->kind == IR_NONE; }

static ir_value *copy_constant(expander *e, ir_value *v) {
    return ir_build_const(&e->b, v->def->value);
}

/* The tensor of which v is entry `index` along dim 0. */
static ir_value *entry_of(const ir_value *v, int64_t *index) {
    int64_t dim;
    if (!ir_is_core(v->def, OP_select_int) || !ir_const_int(v->def->operands[1], &dim) || dim != 0 ||
        !ir_const_int(v->def->operands[2], index))
        return NULL;
    ir_value *x = v->def->operands[0];
    return ir_type_is_known_tensor(x->type) && x->type->rank == 3 &&
                   rt_dim_is_constant(x->type->dims[0]) && *index >= 0 &&
                   *index < x->type->dims[0]
               ? x
               : NULL;
}

static bool same_constant(const ir_value *a, const ir_value *b) {
    if (a == b)
        return true;
    if (!ir_is_const(a) || !ir_is_const(b))
        return false;
    rt_value x = a->def->value, y = b->def->value;
    return x.tag == y.tag && (x.tag == RT_TAG_NONE ||
                              (x.tag == RT_TAG_TENSOR && x.as.tensor == y.as.tensor));
}

/* Whether something in the block may write to a tensor: products then stay where they are. */
static bool writes_tensors(const ir_block *block) {
    for (const ir_op *op = block->first; op; op = op->next) {
        if (op->opcode == IR_OP_CALL || op->opcode == IR_OP_CALL_METHOD ||
            op->opcode == IR_OP_TRY_CALL)
            return true;
        bool is_core = op->opcode == IR_OP_CORE && !ts_str_is(rt_op_name(op->core), "append.t");
        for (size_t i = 0; is_core && i < op->operand_count; i++)
            if (ir_op_writes(op, i))
                return true;
        for (size_t i = 0; i < op->region_count; i++)
            if (writes_tensors(op->regions[i]))
                return true;
    }
    return false;
}

static void batch_linears(expander *e, ir_block *block) {
    if (writes_tensors(block))
        return;
    for (ir_op *op = block->first; op; op = op->next) {
        int64_t index;
        ir_value *x;
        if (!ir_is_core(op, OP_linear) || !(x = entry_of(op->operands[0], &index)) ||
            !ir_is_const(op->operands[1]) || !expand_is_floats(op->results[0], 2))
            continue;
        if (!expand_is_floats(x, 3))
            continue;
        size_t same = 0;
        for (ir_op *other = op; other; other = other->next)
            if (ir_is_core(other, OP_linear) && entry_of(other->operands[0], &index) == x &&
                same_constant(other->operands[1], op->operands[1]) &&
                same_constant(other->operands[2], op->operands[2]))
                same++;
        if (same < 4 || (int64_t)same * 2 < x->type->dims[0])
            continue;
        e->b = pass_before(e->m, op);
        rt_dim dims[3] = {x->type->dims[0], x->type->dims[1], op->operands[1]->type->dims[0]};
        ir_value *args[3] = {x, op->operands[1], op->operands[2]};
        ir_value *all = expand_core(e, OP_linear, expand_float_type(e, 3, dims), args, 3);
        for (ir_op *other = op, *next; other; other = next) {
            next = other->next;
            if (!ir_is_core(other, OP_linear) || entry_of(other->operands[0], &index) != x ||
                !same_constant(other->operands[1], args[1]) ||
                !same_constant(other->operands[2], args[2]))
                continue;
            e->b = pass_before(e->m, other);
            pass_replace(e->m, other->results[0], select_at(e, all, ir_build_int(&e->b, index)));
            bool is_first = other == op;
            if (is_first)
                op = all->def;
            ir_op_remove(other);
        }
        e->ctx->changed = true;
        pass_count(e->ctx, "products merged", (int64_t)same);
    }
}

/* Whether v is there before `loop` begins. */
static bool is_outside(const ir_value *v, const ir_op *loop) {
    const ir_block *home = v->def ? v->def->block : v->block;
    for (const ir_block *b = loop->block; b; b = b->parent ? b->parent->block : NULL)
        if (home == b)
            return true;
    return false;
}

static bool runs_over(expander *e, const ir_op *loop, rt_dim size) {
    const ir_value *max = loop->operands[0], *start = loop->operands[1];
    const ir_op *yield = loop->regions[0]->last;
    bool goes_on;
    int64_t count;
    if (!ir_const_bool(start, &goes_on) || !goes_on || !ir_const_bool(yield->operands[0], &goes_on) ||
        !goes_on)
        return false;
    if (ir_const_int(max, &count))
        return rt_dim_is_constant(size) && count == size;
    return max->def && max->def->opcode == IR_OP_DIM && ir_dim_same(e->m, max->def->integer, size);
}

/* A loop over the entries of x that multiplies each with constant weights: one product before it. */
static void hoist_linears(expander *e, ir_op *loop) {
    ir_block *body = loop->regions[0];
    if (writes_tensors(body))
        return;
    for (ir_op *op = body->first, *next; op; op = next) {
        next = op->next;
        if (!ir_is_core(op, OP_linear) || !ir_is_const(op->operands[1]) ||
            !expand_is_floats(op->operands[1], 2) || !expand_is_floats(op->results[0], 2) ||
            (!lacks_value(op->operands[2]) && !ir_is_const(op->operands[2])))
            continue;
        const ir_op *entry = op->operands[0]->def;
        int64_t dim;
        if (!ir_is_core(entry, OP_select_int) || !ir_const_int(entry->operands[1], &dim) || dim != 0 ||
            entry->operands[2] != body->parameters[0] || !expand_is_floats(entry->operands[0], 3) ||
            !is_outside(entry->operands[0], loop) ||
            !runs_over(e, loop, entry->operands[0]->type->dims[0]))
            continue;
        ir_value *x = entry->operands[0];
        e->b = pass_before(e->m, loop);
        rt_dim dims[3] = {x->type->dims[0], x->type->dims[1], op->operands[1]->type->dims[0]};
        ir_value *args[3] = {x, copy_constant(e, op->operands[1]), copy_constant(e, op->operands[2])};
        ir_value *all = expand_core(e, OP_linear, expand_float_type(e, 3, dims), args, 3);
        e->b = pass_before(e->m, op);
        pass_replace(e->m, op->results[0], select_at(e, all, body->parameters[0]));
        ir_op_remove(op);
        e->ctx->changed = true;
        pass_count(e->ctx, "products moved before a loop", 1);
    }
}

/* ---- lists of slices ---- */

static bool wrap(const ir_value *v, int rank, int *out) {
    int64_t d;
    if (!v || !ir_const_int(v, &d))
        return false;
    d = d < 0 ? d + rank : d;
    *out = (int)d;
    return d >= 0 && d < rank;
}

static bool expand_unpack(expander *e, ir_op *op) {
    ir_op *made = op->operands[0]->def;
    if (!made || made->opcode != IR_OP_CORE || made->operand_count == 0 ||
        made->operands[0]->type->kind != IR_TENSOR)
        return false;
    ir_value *x = made->operands[0];
    const ir_type *t = x->type;
    int dim;
    if (!ir_type_is_known_tensor(t) || !wrap(ir_core_operand(e->m, made, "dim"), t->rank, &dim) ||
        !rt_dim_is_constant(t->dims[dim]))
        return false;
    int64_t size = t->dims[dim], sizes[64], count = (int64_t)op->result_count, each = 0;
    size_t given = 0;
    if (count > 64 || size <= 0)
        return false;
    ts_str name = rt_op_name(made->core);
    bool is_unbind = ts_str_is(name, "unbind.int");
    if (ts_str_is(name, "split.Tensor") || ts_str_is(name, "unsafe_split.Tensor")) {
        if (!ir_const_int(made->operands[1], &each) || each <= 0)
            return false;
    } else if (ts_str_is(name, "chunk") || ts_str_is(name, "unsafe_chunk")) {
        int64_t chunks;
        if (!ir_const_int(made->operands[1], &chunks) || chunks <= 0)
            return false;
        each = (size + chunks - 1) / chunks;
    } else if (ts_str_is(name, "split_with_sizes") || ts_str_is(name, "split.sizes") ||
               ts_str_is(name, "split")) {
        if (!ir_const_int_list(made->operands[1], sizes, 64, &given) || (int64_t)given != count)
            return false;
    } else if (!is_unbind) {
        return false;
    }
    if (is_unbind ? count != size : given == 0 && count != (size + each - 1) / each)
        return false;
    int64_t start = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t n = given ? sizes[i] : each < size - start ? each : size - start;
        if (!is_unbind && (n < 0 || start + n > size))
            return false;
        start += n;
    }
    start = 0;
    for (int64_t i = 0; i < count; i++) {
        ir_value *part;
        if (is_unbind) {
            rt_dim *dims = TS_NEW_ARRAY(e->m->arena, rt_dim, IR_STRIDED_MAX_RANK);
            for (int d = 0; d + 1 < t->rank; d++)
                dims[d] = t->dims[d < dim ? d : d + 1];
            ir_value *args[3] = {x, ir_build_int(&e->b, dim), ir_build_int(&e->b, i)};
            part = expand_core(e, OP_select_int,
                        ir_type_tensor(e->m, t->dtype, t->rank - 1, dims, IR_LAYOUT_ANY), args, 3);
        } else {
            int64_t n = given ? sizes[i] : each < size - start ? each : size - start;
            part = slice(e, x, dim, start, n);
            start += n;
        }
        pass_replace(e->m, op->results[i], part);
    }
    return true;
}

static bool expand(expander *e, ir_op *op) {
    if (op->opcode == IR_OP_LIST_UNPACK)
        return expand_unpack(e, op);
    if (ir_is_core(op, OP_lstm_cell))
        return expand_lstm_cell(e, op);
    if (ir_is_core(op, OP_gru_cell))
        return expand_gru_cell(e, op);
    if (ir_is_core(op, OP_lstm_input))
        return expand_recurrent(e, op, 4);
    if (ir_is_core(op, OP_gru_input))
        return expand_recurrent(e, op, 3);
    if (ir_is_core(op, OP_scaled_dot_product_attention))
        return expand_attention(e, op);
    return false;
}

static void expand_block(expander *e, ir_block *block, int depth) {
    ir_op *next;
    for (ir_op *op = block->first; op && depth < 500; op = next) {
        next = op->next;
        for (size_t i = 0; i < op->region_count; i++)
            expand_block(e, op->regions[i], depth + 1);
        if (op->opcode == IR_OP_LOOP)
            hoist_linears(e, op);
        e->b = pass_before(e->m, op);
        if (!expand(e, op))
            continue;
        ir_value *list = op->opcode == IR_OP_LIST_UNPACK ? op->operands[0] : NULL;
        ir_op_remove(op);
        if (list && list->use_count == 0)
            ir_op_remove(list->def);
        e->ctx->changed = true;
        pass_count(e->ctx, "expanded", 1);
    }
    batch_linears(e, block);
}

ts_status pass_expand_composites(pass_context *ctx, ir_module *m) {
    expander e = {.ctx = ctx, .m = m};
    for (ir_function *f = m->functions; f; f = f->next)
        if (f->body)
            expand_block(&e, f->body, 0);
    return NULL;
}

/* codegen/lower_resize.c - upsampling as loads at offsets that tables hold.
 *
 *   y[n, c, h, w] = sum over i, j of wh[h, i] * (ww[w, j] * x[base(n, c) + oh[h, i] + ow[w, j]])
 *
 * Offsets (of the input's memory, int64) and weights are constants of the kernel where the sizes are,
 * else computed from the index, so it fuses like any pointwise operator. With the channels innermost
 * the offsets are the same for a whole vector. */
#include "codegen/lower.h"

#include <string.h>

#define K l->k

typedef struct resized {
    lowering *l;
    ir_resize form;
    rt_dtype type;
    kn_access access;
    lw_index at[3];       /* the index in each resized dim */
    bool is_plain[3];     /* that dim keeps its size: no table */
    rt_resize_taps taps[3]; /* of constant sizes; else the width alone */
    rt_dim strides[3];
} resized;

/* table[index * width + tap], as a node of its own. */
static int table_load(resized *r, int d, int tap, bool is_weight) {
    lowering *l = r->l;
    const rt_resize_taps *t = &r->taps[d];
    size_t count = (size_t)r->form.out[d];
    kn_access a;
    memset(&a, 0, sizeof a);
    a.element = is_weight ? RT_float32 : RT_int64;
    a.offset = r->at[d].offset;
    for (int n = 0; n < K->dim_count; n++)
        a.strides[n] = r->at[d].factors[n];
    if (is_weight) {
        float *data = ts_arena_array(l->unit->arena, count, sizeof *data);
        for (size_t i = 0; i < count; i++)
            data[i] = (float)t->weight[i * (size_t)t->width + (size_t)tap];
        a.buffer = kn_add_constant(K, data, count * sizeof *data);
    } else {
        int64_t *data = ts_arena_array(l->unit->arena, count, sizeof *data);
        for (size_t i = 0; i < count; i++)
            data[i] = t->index[i * (size_t)t->width + (size_t)tap] * r->strides[d];
        a.buffer = kn_add_constant(K, data, count * sizeof *data);
    }
    return kn_load(K, &a);
}

static int integer(resized *r, int64_t v) {
    return kn_constant_integer(r->l->k, RT_int64, v);
}
static int number(resized *r, double v) { return kn_constant_number(r->l->k, RT_float32, v); }

/* The index in resized dim d. */
static int index_node(resized *r, int d) {
    lowering *l = r->l;
    int sum = lw_size_node(l, r->at[d].offset, RT_int64);
    for (int n = 0; n < K->dim_count; n++) {
        if (r->at[d].factors[n] == 0)
            continue;
        kn_node i;
        memset(&i, 0, sizeof i);
        i.code = KN_INDEX;
        i.type = RT_int64;
        i.args[0] = i.args[1] = i.args[2] = -1;
        i.dim = n;
        int v = kn_op2(K, KN_mul, kn_add_node(K, i), lw_size_node(l, r->at[d].factors[n], RT_int64));
        sum = kn_op2(K, KN_add, sum, v);
    }
    return sum;
}

/* Input positions for one of the output, as rt_resize_fill has it. */
static int scale_node(resized *r, int d) {
    lowering *l = r->l;
    const ir_resize *f = &r->form;
    int in = lw_size_node(l, f->in[d], RT_float32), out = lw_size_node(l, f->out[d], RT_float32);
    if (f->align && f->filter == RT_RESIZE_LINEAR) {
        int steps = kn_op2(K, KN_sub, out, number(r, 1));
        int some = kn_op2(K, KN_gt, steps, number(r, 0));
        int scale = kn_op2(K, KN_div, kn_op2(K, KN_sub, in, number(r, 1)), steps);
        return kn_op3(K, KN_select, some, scale, number(r, 0));
    }
    if (f->scale[d] > 0)
        return number(r, (double)(float)(1 / f->scale[d]));
    return kn_op2(K, KN_div, in, out);
}

/* Taps of a dim whose sizes are parameters. */
static void computed_taps(resized *r, int d, int *offsets, int *weights) {
    lowering *l = r->l;
    const ir_resize *f = &r->form;
    int o = index_node(r, d), at = kn_cast(K, o, RT_float32), scale = scale_node(r, d);
    int stride = lw_size_node(l, r->strides[d], RT_int64);
    int in = lw_size_node(l, f->in[d], RT_int64);
    int last = kn_op2(K, KN_sub, in, integer(r, 1));
    weights[0] = weights[1] = -1;
    if (f->filter != RT_RESIZE_LINEAR) {
        if (f->filter == RT_RESIZE_NEAREST_EXACT)
            at = kn_op2(K, KN_add, at, number(r, 0.5));
        int from = kn_cast(K, kn_op1(K, KN_floor, kn_op2(K, KN_mul, at, scale)), RT_int64);
        int same = kn_op2(K, KN_eq, in, lw_size_node(l, f->out[d], RT_int64));
        from = kn_op3(K, KN_select, same, o, kn_op2(K, KN_minimum, last, from));
        offsets[0] = kn_op2(K, KN_mul, from, stride);
        return;
    }
    if (!f->align)
        at = kn_op2(K, KN_add, at, number(r, 0.5));
    int s = kn_op2(K, KN_mul, at, scale);
    if (!f->align)
        s = kn_op2(K, KN_maximum, number(r, 0), kn_op2(K, KN_sub, s, number(r, 0.5)));
    int first = kn_op2(K, KN_minimum, last, kn_cast(K, kn_op1(K, KN_floor, s), RT_int64));
    int second = kn_op2(K, KN_minimum, last, kn_op2(K, KN_add, first, integer(r, 1)));
    int x = kn_op2(K, KN_sub, s, kn_cast(K, first, RT_float32));
    x = kn_op2(K, KN_minimum, number(r, 1), kn_op2(K, KN_maximum, number(r, 0), x));
    offsets[0] = kn_op2(K, KN_mul, first, stride);
    offsets[1] = kn_op2(K, KN_mul, second, stride);
    weights[0] = kn_op2(K, KN_sub, number(r, 1), x);
    weights[1] = x;
}

/* The value with offsets of dims before d chosen: the sum over d's taps. */
static int sum_over(resized *r, int d, int offset, int (*tables)[4], int (*weights)[4]) {
    lowering *l = r->l;
    while (d < r->form.dims && r->is_plain[d])
        d++;
    if (d == r->form.dims)
        return offset < 0 ? kn_load(K, &r->access) : kn_load_at(K, &r->access, offset);
    int sum = -1;
    for (int tap = 0; tap < (int)r->taps[d].width; tap++) {
        int more = offset < 0 ? tables[d][tap] : kn_op2(K, KN_add, offset, tables[d][tap]);
        int v = sum_over(r, d + 1, more, tables, weights);
        if (weights[d][tap] >= 0)
            v = kn_op2(K, KN_mul, v, weights[d][tap]);
        sum = sum < 0 ? v : kn_op2(K, KN_add, sum, v);
    }
    return sum;
}

int lw_resize(lowering *l, const ir_op *op, const ir_resize *form, const lw_map *map) {
    resized r = {.l = l, .form = *form, .type = op->results[0]->type->dtype};
    int buffer, tables[3][4], weights[3][4];
    ir_strided s;
    if (!lw_source(l, op->operands[0], &buffer, &s))
        return lw_fail(l, op, "its input is no view of an input");
    r.access.buffer = buffer;
    r.access.element = r.type;
    r.access.offset = s.offset;
    for (int d = 0; d < s.rank; d++) {
        int e = d - 2;
        bool plain = e < 0 || (ir_dim_same(l->ir, form->in[e], form->out[e]) &&
                               (form->scale[e] <= 0 || form->scale[e] == 1));
        if (e >= 0) {
            r.is_plain[e] = plain;
            r.at[e] = map->dims[d];
            if (s.strides[d] == RT_DIM_UNKNOWN || map->dims[d].offset == RT_DIM_UNKNOWN)
                return lw_fail(l, op, "strides that are not known");
            r.strides[e] = plain ? 0 : s.strides[d];
        }
        if (!plain)
            continue;
        r.access.offset = kn_dim_add(K, r.access.offset, kn_dim_mul(K, s.strides[d], map->dims[d].offset));
        for (int n = 0; n < K->dim_count; n++)
            r.access.strides[n] = kn_dim_add(
                K, r.access.strides[n], kn_dim_mul(K, s.strides[d], map->dims[d].factors[n]));
    }
    for (int d = 0; d < form->dims; d++) {
        if (r.is_plain[d])
            continue;
        rt_resize_taps *t = &r.taps[d];
        if (!form->is_constant[d] || !rt_dim_is_constant(r.strides[d])) {
            t->width = form->filter == RT_RESIZE_LINEAR ? 2 : 1;
            if (form->filter == RT_RESIZE_CUBIC)
                return lw_fail(l, op, "strides that are not constant");
            computed_taps(&r, d, tables[d], weights[d]);
            continue;
        }
        t->width = rt_resize_width(form->filter, form->in[d], form->out[d], form->align, form->scale[d]);
        size_t count = (size_t)(t->width * form->out[d]);
        t->index = ts_arena_array(l->unit->arena, count, sizeof *t->index);
        t->weight = ts_arena_array(l->unit->arena, count, sizeof *t->weight);
        rt_resize_fill(t, form->filter, false, form->in[d], form->out[d], form->align, form->scale[d]);
        for (int tap = 0; tap < (int)t->width && tap < 4; tap++) {
            tables[d][tap] = table_load(&r, d, tap, false);
            weights[d][tap] = form->filter <= RT_RESIZE_NEAREST_EXACT ? -1
                                                                      : table_load(&r, d, tap, true);
        }
    }
    return sum_over(&r, 0, -1, tables, weights);
}

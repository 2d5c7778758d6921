/* codegen/lower_resize.c - upsampling as loads at offsets that tables hold.
 *
 *   y[n, c, h, w] = sum over i, j of wh[h, i] * (ww[w, j] * x[base(n, c) + oh[h, i] + ow[w, j]])
 *
 * Offsets (of the input's memory, int64) and weights are constants of the kernel, so it fuses like
 * any pointwise operator. With the channels innermost the offsets are the same for a whole vector. */
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
    rt_resize_taps taps[3];
    int64_t strides[3];
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
        bool plain = e < 0 || (form->in[e] == form->out[e] &&
                               (form->scale[e] <= 0 || form->scale[e] == 1));
        if (e >= 0) {
            r.is_plain[e] = plain;
            r.at[e] = map->dims[d];
            if (!plain && !rt_dim_is_constant(s.strides[d]))
                return lw_fail(l, op, "strides that are not constant");
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

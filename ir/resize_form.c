/* ir/resize_form.c - see resize_form.h. */
#include "ir/resize_form.h"

#include <string.h>

static const struct {
    const char *name;
    rt_resize_filter filter;
    int dims;
} rows[] = {
    {"upsample_nearest1d", RT_RESIZE_NEAREST, 1},
    {"upsample_nearest2d", RT_RESIZE_NEAREST, 2},
    {"upsample_nearest3d", RT_RESIZE_NEAREST, 3},
    {"_upsample_nearest_exact1d", RT_RESIZE_NEAREST_EXACT, 1},
    {"_upsample_nearest_exact2d", RT_RESIZE_NEAREST_EXACT, 2},
    {"_upsample_nearest_exact3d", RT_RESIZE_NEAREST_EXACT, 3},
    {"upsample_linear1d", RT_RESIZE_LINEAR, 1},
    {"upsample_bilinear2d", RT_RESIZE_LINEAR, 2},
    {"upsample_trilinear3d", RT_RESIZE_LINEAR, 3},
    {"upsample_bicubic2d", RT_RESIZE_CUBIC, 2},
};

static bool is_none(const ir_value *v) { return !v || v->type->kind == IR_NONE; }

static bool take_numbers(const ir_value *v, double *out, int count) {
    if (is_none(v))
        return true;
    if (!ir_is_const(v) || v->def->value.tag != RT_TAG_LIST) {
        if (!v->def || v->def->opcode != IR_OP_LIST || !ir_list_is_stable(v) ||
            ((int)v->def->operand_count != count && v->def->operand_count != 1))
            return false;
        for (int i = 0; i < count; i++)
            if (!ir_const_double(v->def->operands[v->def->operand_count == 1 ? 0 : i], &out[i]))
                return false;
        return true;
    }
    const rt_list *list = v->def->value.as.list;
    if ((int)list->count != count && list->count != 1)
        return false;
    for (int i = 0; i < count; i++) {
        rt_value x = list->items[list->count == 1 ? 0 : i];
        if (x.tag != RT_TAG_FLOAT && x.tag != RT_TAG_INT)
            return false;
        out[i] = x.tag == RT_TAG_FLOAT ? x.as.f : (double)x.as.i;
    }
    return true;
}

static int find_row(ts_str name) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n = strlen(rows[i].name);
        if (name.length >= n && memcmp(name.data, rows[i].name, n) == 0 &&
            (name.length == n || (name.length == n + 4 && memcmp(name.data + n, ".vec", 4) == 0)))
            return (int)i;
    }
    return -1;
}

static bool is_number(rt_dtype t) {
    return t == RT_float32 || t == RT_float64 || t == RT_uint8 || t == RT_int32 || t == RT_int64;
}

static bool is_positive(ir_module *m, rt_dim d) {
    int64_t low, high;
    return ir_dim_bounds(m, d, &low, &high) && low >= 1;
}

/* A kernel must not read an image of nothing: its size is more than 0, or the result is a multiple of
 * it, and then empty, too. */
static bool may_run(ir_module *m, rt_dim in, rt_dim out) {
    const rt_dim_algebra *g = ir_dim_algebra(m);
    if (is_positive(m, in) && is_positive(m, out))
        return true;
    rt_dim times = g->floordiv(g->user, out, in);
    return rt_dim_is_constant(times) && times >= 1 &&
           ir_dim_same(m, g->mul(g->user, times, in), out);
}

bool ir_resize_of(ir_module *m, const ir_op *op, ir_resize *out) {
    static const char *const one_by_one[3][3] = {
        {"scales", NULL, NULL}, {"scales_h", "scales_w", NULL}, {"scales_d", "scales_h", "scales_w"}};
    memset(out, 0, sizeof *out);
    int row = op && op->opcode == IR_OP_CORE ? find_row(rt_op_name(op->core)) : -1;
    if (row < 0 || op->result_count != 1)
        return false;
    const ir_type *x = op->operands[0]->type, *y = op->results[0]->type;
    out->filter = rows[row].filter;
    out->dims = rows[row].dims;
    bool is_nearest = out->filter <= RT_RESIZE_NEAREST_EXACT;
    if (!ir_type_is_known_tensor(x) || !ir_type_is_known_tensor(y) || x->rank != out->dims + 2 ||
        y->rank != x->rank || x->dtype != y->dtype ||
        !(is_nearest ? is_number(x->dtype) : x->dtype == RT_float32) ||
        !ir_dim_same(m, x->dims[0], y->dims[0]) || !ir_dim_same(m, x->dims[1], y->dims[1]))
        return false;
    for (int d = 0; d < out->dims; d++) {
        rt_dim in = x->dims[d + 2], to = y->dims[d + 2];
        bool known = rt_dim_is_constant(in) && rt_dim_is_constant(to);
        if (in == RT_DIM_UNKNOWN || to == RT_DIM_UNKNOWN ||
            (known ? in < 1 || to < 1 || to > 1 << 20
                   : !may_run(m, in, to) || out->filter == RT_RESIZE_CUBIC))
            return false;
        out->in[d] = in;
        out->out[d] = to;
        out->is_constant[d] = known;
    }
    const ir_value *align = ir_core_operand(m, op, "align_corners");
    if (align && !ir_const_bool(align, &out->align))
        return false;
    const ir_value *list = ir_core_operand(m, op, "scale_factors");
    if (list)
        return take_numbers(list, out->scale, out->dims);
    for (int d = 0; d < out->dims; d++) {
        const ir_value *s = ir_core_operand(m, op, one_by_one[out->dims - 1][d]);
        if (!is_none(s) && !ir_const_double(s, &out->scale[d]))
            return false;
    }
    return true;
}

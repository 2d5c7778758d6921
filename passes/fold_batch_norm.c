/* passes/fold_batch_norm.c - multiplies a batch norm of constants into the convolution before it.
 *
 *   %y = conv2d(%x, %w, %b, ...)                       %z = conv2d(%x, %w', %b', ...)
 *   %z = batch_norm(%y, %g, %h, %mean, %var, false) =>
 *   with s = g / sqrt(var + eps):  w' = w * s per output channel,  b' = (b - mean) * s + h
 *
 * A batch norm without such a convolution becomes x * s + t, of which fusion knows more.
 * Needs: freeze, fold_constants, infer_types. Keeps: types; results up to rounding (the products are
 * formed in double and rounded once, which is no further from the exact value than PyTorch is).
 * Why here: a batch norm in training must stay, and only freezing tells.
 * Source: Ioffe and Szegedy 2015, section 3.1. */
#include <math.h>

#include "passes/alias.h"

enum { BN_INPUT, BN_WEIGHT, BN_BIAS, BN_MEAN, BN_VAR, BN_TRAINING, BN_MOMENTUM, BN_EPS };

typedef struct norm { /* y = x * scale + shift, per channel */
    double *scale, *shift;
    int64_t channels;
} norm;

typedef struct folder {
    pass_context *ctx;
    ir_module *m;
    pass_alias *alias;
} folder;

static bool is_op(const ir_op *op, const char *name) {
    return op && op->opcode == IR_OP_CORE && ts_str_is(rt_op_name(op->core), name);
}

/* A vector of constants that nobody writes; NONE gives the default. */
static bool vector_of(folder *fo, const ir_value *v, double missing, int64_t *channels,
                      double **out) {
    rt_value c;
    if (!ir_const_value(v, &c) || pass_is_written(fo->alias, v))
        return false;
    if (c.tag == RT_TAG_NONE) {
        if (*channels < 0)
            return false;
        *out = TS_NEW_ARRAY(fo->ctx->scratch, double, (size_t)*channels);
        for (int64_t i = 0; i < *channels; i++)
            (*out)[i] = missing;
        return true;
    }
    if (c.tag != RT_TAG_TENSOR || c.as.tensor->rank != 1 ||
        !rt_dtype_is_float((rt_dtype)c.as.tensor->dtype))
        return false;
    const rt_tensor *t = c.as.tensor;
    if (*channels >= 0 && t->sizes[0] != *channels)
        return false;
    *channels = t->sizes[0];
    *out = TS_NEW_ARRAY(fo->ctx->scratch, double, (size_t)*channels);
    rt_cursor cursor;
    int64_t i = 0;
    for (rt_cursor_start(&cursor, t); cursor.left; rt_cursor_next(&cursor))
        (*out)[i++] = rt_load_double((rt_dtype)t->dtype, cursor.data);
    return true;
}

static bool norm_of(folder *fo, const ir_op *op, norm *out) {
    bool training;
    double eps, *mean, *var, *weight, *bias;
    rt_value v;
    if (!is_op(op, "batch_norm") || op->operand_count < BN_EPS + 1 ||
        !ir_const_bool(op->operands[BN_TRAINING], &training) || training ||
        !ir_const_double(op->operands[BN_EPS], &eps))
        return false;
    if (!ir_const_value(op->operands[BN_MEAN], &v) || v.tag != RT_TAG_TENSOR)
        return false;
    out->channels = -1;
    if (!vector_of(fo, op->operands[BN_MEAN], 0, &out->channels, &mean) ||
        !vector_of(fo, op->operands[BN_VAR], 1, &out->channels, &var) ||
        !vector_of(fo, op->operands[BN_WEIGHT], 1, &out->channels, &weight) ||
        !vector_of(fo, op->operands[BN_BIAS], 0, &out->channels, &bias))
        return false;
    out->scale = weight;
    out->shift = bias;
    for (int64_t i = 0; i < out->channels; i++) {
        out->scale[i] = weight[i] / sqrt(var[i] + eps);
        out->shift[i] = bias[i] - mean[i] * out->scale[i];
    }
    return true;
}

static ts_status make_constant(folder *fo, ir_builder *b, rt_tensor *t, ts_str name,
                               ir_value **out) {
    rt_value v = rt_from_tensor(t);
    *out = ir_build_const(b, v);
    (*out)->def->weight_name = name;
    rt_release(v);
    (void)fo;
    return NULL;
}

static ts_status vector_constant(folder *fo, ir_builder *b, const double *values, int64_t count,
                                 int trailing, rt_dtype dtype, ts_str name, ir_value **out) {
    int64_t sizes[8] = {count, 1, 1, 1, 1, 1, 1, 1};
    rt_tensor *t;
    TS_TRY(rt_tensor_make(dtype, sizes, 1 + trailing, &t));
    for (int64_t i = 0; i < count; i++)
        rt_store_double(dtype, (char *)t->data + (size_t)i * rt_dtype_size(dtype), values[i]);
    return make_constant(fo, b, t, name, out);
}

/* The position of the weight's output channels is 0 for these; transposed ones are left alone. */
static bool is_plain_convolution(const ir_op *op) {
    static const char *const names[] = {"conv1d",         "conv2d",         "conv3d",
                                        "conv1d.padding", "conv2d.padding", "conv3d.padding",
                                        "_convolution_mode"};
    bool transposed;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (is_op(op, names[i]))
            return true;
    if (is_op(op, "linear"))
        return op->results[0]->type->kind == IR_TENSOR && op->results[0]->type->rank == 2;
    bool general = is_op(op, "convolution") || is_op(op, "_convolution") ||
                   is_op(op, "_convolution.deprecated");
    return general && ir_const_bool(op->operands[6], &transposed) && !transposed;
}

static ts_status scaled_weight(folder *fo, ir_builder *b, const rt_tensor *w, const norm *n,
                               ts_str name, ir_value **out) {
    rt_tensor *copy;
    rt_dtype dtype = (rt_dtype)w->dtype;
    TS_TRY(pass_make_weight(fo->ctx, dtype, w->sizes, w->rank, &copy));
    int64_t each = w->element_count / n->channels, i = 0;
    size_t size = rt_dtype_size(dtype);
    rt_cursor c;
    for (rt_cursor_start(&c, w); c.left; rt_cursor_next(&c), i++)
        rt_store_double(dtype, (char *)copy->data + (size_t)i * size,
                        rt_load_double(dtype, c.data) * n->scale[i / each]);
    if (fo->ctx->trim)
        fo->ctx->trim(fo->ctx->trim_user);
    return make_constant(fo, b, copy, name, out);
}

static ts_status fold_into(folder *fo, ir_op *conv, ir_op *bn, const norm *n, bool *out_done) {
    rt_value w, b = rt_none();
    double *bias;
    int64_t channels = n->channels;
    ir_value *weight = conv->operands[1];
    if (!ir_const_value(weight, &w) || w.tag != RT_TAG_TENSOR || pass_is_written(fo->alias, weight))
        return NULL;
    rt_dtype dtype = (rt_dtype)w.as.tensor->dtype;
    if ((dtype != RT_float32 && dtype != RT_float64) || w.as.tensor->rank < 2 ||
        w.as.tensor->sizes[0] != channels || channels == 0 || w.as.tensor->element_count == 0)
        return NULL;
    if (!ir_const_value(conv->operands[2], &b) ||
        !vector_of(fo, conv->operands[2], 0, &channels, &bias))
        return NULL;
    for (int64_t i = 0; i < channels; i++)
        bias[i] = bias[i] * n->scale[i] + n->shift[i];
    ir_builder builder = pass_before(fo->m, conv);
    ir_value *new_weight, *new_bias;
    TS_TRY(scaled_weight(fo, &builder, w.as.tensor, n, weight->def->weight_name, &new_weight));
    ts_str name = conv->operands[2]->def->weight_name;
    if (!name.length)
        name = bn->operands[BN_BIAS]->def ? bn->operands[BN_BIAS]->def->weight_name : name;
    TS_TRY(vector_constant(fo, &builder, bias, channels, 0, dtype, name, &new_bias));
    new_weight->number = new_bias->number = conv->results[0]->number;
    ir_op_set_operand(fo->m, conv, 1, new_weight);
    ir_op_set_operand(fo->m, conv, 2, new_bias);
    pass_replace(fo->m, bn->results[0], conv->results[0]);
    ir_op_remove(bn);
    pass_count(fo->ctx, "folded", 1);
    *out_done = true;
    return NULL;
}

static ir_value *pointwise(ir_builder *b, const char *name, ir_value *x, ir_value *y) {
    rt_op core = rt_op_find(ts_str_of(name));
    ir_value *operands[3] = {x, y, NULL};
    size_t count = ir_schema_of(b->module, core)->arg_count;
    if (count == 3)
        operands[2] = ir_build_int(b, 1);
    return ir_build_core1(b, core, operands, count);
}

/* x * s + t with s and t of sizes [C, 1, ...]. */
static ts_status take_apart(folder *fo, ir_op *bn, const norm *n) {
    const ir_type *t = bn->operands[BN_INPUT]->type;
    if (t->kind != IR_TENSOR || t->rank < 2 || t->rank > 6 ||
        (t->dtype != RT_float32 && t->dtype != RT_float64))
        return NULL;
    ir_builder b = pass_before(fo->m, bn);
    ir_value *scale, *shift;
    ts_str name = bn->operands[BN_WEIGHT]->def->weight_name;
    ts_str bias_name = bn->operands[BN_BIAS]->def->weight_name;
    TS_TRY(vector_constant(fo, &b, n->scale, n->channels, t->rank - 2, t->dtype, name, &scale));
    TS_TRY(
        vector_constant(fo, &b, n->shift, n->channels, t->rank - 2, t->dtype, bias_name, &shift));
    ir_value *product = pointwise(&b, "mul.Tensor", bn->operands[BN_INPUT], scale);
    ir_value *sum = pointwise(&b, "add.Tensor", product, shift);
    product->type = sum->type = bn->results[0]->type;
    product->number = sum->number = scale->number = shift->number = bn->results[0]->number;
    pass_replace(fo->m, bn->results[0], sum);
    ir_op_remove(bn);
    pass_count(fo->ctx, "taken_apart", 1);
    return NULL;
}

ts_status pass_fold_batch_norm(pass_context *ctx, ir_module *m) {
    for (ir_function *f = m->functions; f; f = f->next) {
        folder fo = {ctx, m, pass_alias_make(ctx, m, f)};
        pass_op_list ops = pass_collect(ctx, f);
        for (size_t i = 0; i < ops.count; i++) {
            norm n;
            ir_op *bn = ops.items[i];
            if (!norm_of(&fo, bn, &n))
                continue;
            ir_op *conv = bn->operands[BN_INPUT]->def;
            bool done = false;
            if (is_plain_convolution(conv) && conv->results[0]->use_count == 1 &&
                conv->block == bn->block && !pass_is_written(fo.alias, conv->results[0]))
                TS_TRY(fold_into(&fo, conv, bn, &n, &done));
            if (!done && !pass_is_returned(fo.alias, bn->results[0]))
                TS_TRY(take_apart(&fo, bn, &n));
        }
    }
    return NULL;
}

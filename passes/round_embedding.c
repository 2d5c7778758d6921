/* passes/round_embedding.c - tables of embeddings in int8 or bfloat16, where --weights-dtype asks.
 *
 *   %e = embedding(%table, %i)    =>   %q = embedding(%table.int8, %i) : int8
 *                                      %s = embedding(%table.scale, %i)        one scale a row
 *                                      %e = mul(to(%q, float32), %s)
 *
 * bf16: %e = to(embedding(%table.bf16, %i), float32). A row's largest magnitude is 127 steps; int4 has
 * int8 tables, too: few rows are read, and coarse ones would be wrong in every later layer. Tables
 * with infinities or NaN, small ones (MIN_ELEMENTS) and those that the program writes stay.
 * Needs: freeze, infer_types. Keeps: types. Why before fuse: the product joins what follows. */
#include "passes/alias.h"

#include <math.h>
#include <string.h>

#include "runtime/values/tensor.h"

enum { MIN_ELEMENTS = 4096, FLOAT32_CODE = 6 /* torch.float32 */ };

typedef struct rounded {
    rt_tensor *table, *scales; /* scales: int8 only */
    double error;
} rounded;

static const rt_tensor *table_of(const ir_value *v) {
    if (!ir_is_const(v) || v->def->value.tag != RT_TAG_TENSOR)
        return NULL;
    const rt_tensor *t = v->def->value.as.tensor;
    return t->rank == 2 && t->dtype == RT_float32 && rt_tensor_is_contiguous(t) &&
                   t->element_count >= MIN_ELEMENTS
               ? t
               : NULL;
}

static bool is_finite(const rt_tensor *t) {
    const float *x = t->data;
    for (int64_t i = 0; i < t->element_count; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

static void add_error(double *square, double *total, float exact, float kept) {
    double d = (double)exact - (double)kept;
    *square += d * d;
    *total += (double)exact * (double)exact;
}

static void round_row(const float *row, int64_t count, signed char *to, float *scale,
                      double *square, double *total) {
    float largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fabsf(row[i]) > largest ? fabsf(row[i]) : largest;
    /* Below, the inverse would overflow: such a row is zero. */
    *scale = largest > 1e-34f ? largest / 127 : 0;
    float inverse = *scale > 0 ? 1 / *scale : 0;
    for (int64_t i = 0; i < count; i++) {
        float q = nearbyintf(row[i] * inverse);
        q = q > 127 ? 127 : q < -127 ? -127 : q;
        to[i] = (signed char)q;
        add_error(square, total, row[i], q * *scale);
    }
}

static ts_status make_int8(pass_context *ctx, const rt_tensor *t, rounded *out) {
    TS_TRY(pass_make_weight(ctx, RT_int8, t->sizes, 2, &out->table));
    int64_t sizes[2] = {t->sizes[0], 1};
    TS_TRY(rt_tensor_make(RT_float32, sizes, 2, &out->scales));
    double square = 0, total = 0;
    int64_t columns = t->sizes[1];
    for (int64_t r = 0; r < t->sizes[0]; r++)
        round_row((const float *)t->data + r * columns, columns,
                  (signed char *)out->table->data + r * columns, (float *)out->scales->data + r,
                  &square, &total);
    out->error = total > 0 ? sqrt(square / total) : 0;
    return NULL;
}

static ts_status make_bf16(pass_context *ctx, const rt_tensor *t, rounded *out) {
    TS_TRY(pass_make_weight(ctx, RT_bfloat16, t->sizes, 2, &out->table));
    double square = 0, total = 0;
    char *to = out->table->data;
    for (int64_t i = 0; i < t->element_count; i++, to += 2) {
        float x = ((const float *)t->data)[i];
        rt_store_double(RT_bfloat16, to, (double)x);
        add_error(&square, &total, x, (float)rt_load_double(RT_bfloat16, to));
    }
    out->error = total > 0 ? sqrt(square / total) : 0;
    return NULL;
}

/* The constant, named after the table; takes the tensor. */
static ir_value *constant(ir_builder *b, rt_tensor *t, const ir_op *table, const char *suffix) {
    rt_value value = rt_from_tensor(t);
    ir_value *v = ir_build_const(b, value);
    rt_release(value);
    if (table->weight_name.length)
        v->def->weight_name = ts_arena_format(b->module->arena, "%.*s.%s",
                                              TS_STR_ARG(table->weight_name), suffix);
    return v;
}

static ir_value *look_up(ir_builder *b, ir_op *op, ir_value *table, rt_dtype dtype, rt_dim width) {
    ir_value *args[8];
    size_t count = op->operand_count < 8 ? op->operand_count : 8;
    memcpy(args, op->operands, count * sizeof *args);
    args[0] = table;
    ir_value *row = ir_build_core1(b, OP_embedding, args, count);
    const ir_type *t = op->results[0]->type;
    rt_dim dims[RT_MAX_RANK];
    if (t->kind == IR_TENSOR && t->rank > 0 && t->rank <= RT_MAX_RANK) {
        memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
        dims[t->rank - 1] = width;
        row->type = ir_type_tensor(b->module, dtype, t->rank, dims, t->layout);
    }
    return row;
}

static void replace(pass_context *ctx, ir_module *m, ir_op *op, rounded *r) {
    const ir_op *table = op->operands[0]->def;
    ir_builder b = pass_before(m, op);
    rt_dtype dtype = (rt_dtype)r->table->dtype;
    rt_dim width = r->table->sizes[1];
    bool is_int8 = r->scales != NULL;
    ir_value *q = look_up(&b, op, constant(&b, r->table, table, is_int8 ? "int8" : "bf16"), dtype,
                          width);
    ir_value *args[5] = {q, ir_build_int(&b, FLOAT32_CODE), ir_build_bool(&b, false),
                         ir_build_bool(&b, false), ir_build_none(&b)};
    ir_value *e = ir_build_core1(&b, OP_to_dtype, args, 5);
    e->type = op->results[0]->type;
    if (is_int8) {
        ir_value *s = look_up(&b, op, constant(&b, r->scales, table, "scale"), RT_float32, 1);
        ir_value *factors[2] = {e, s};
        e = ir_build_core1(&b, OP_mul_Tensor, factors, 2);
        e->type = op->results[0]->type;
    }
    if (ctx->rounded)
        ctx->rounded(ctx->rounded_user, table->weight_name, op->place, is_int8 ? "int8" : "bf16",
                     r->error);
    pass_replace(m, op->results[0], e);
    ir_op_remove(op);
    pass_count(ctx, "tables", 1);
}

static ts_status round_table(pass_context *ctx, ir_module *m, pass_alias *alias, ir_op *op) {
    const rt_tensor *t = table_of(op->operands[0]);
    bool is_bf16 = ctx->target->table_dtype == RT_bfloat16;
    if (!t || pass_is_written(alias, op->operands[0]) || (!is_bf16 && !is_finite(t)))
        return NULL;
    rounded r = {0};
    ts_status status = is_bf16 ? make_bf16(ctx, t, &r) : make_int8(ctx, t, &r);
    if (status) {
        rt_tensor_release(r.table);
        rt_tensor_release(r.scales);
        return status;
    }
    replace(ctx, m, op, &r);
    return NULL;
}

ts_status pass_round_embedding(pass_context *ctx, ir_module *m) {
    if (!ctx->target || (ctx->target->table_dtype != RT_bfloat16 && ctx->target->table_dtype != RT_int8))
        return NULL;
    for (ir_function *f = m->functions; f; f = f->next) {
        if (!f->body)
            continue;
        pass_alias *alias = pass_alias_make(ctx, m, f);
        pass_op_list ops = pass_collect(ctx, f);
        for (size_t i = 0; i < ops.count; i++)
            if (ir_is_core(ops.items[i], OP_embedding))
                TS_TRY(round_table(ctx, m, alias, ops.items[i]));
    }
    return NULL;
}

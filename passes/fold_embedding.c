/* passes/fold_embedding.c - a product of rows that were looked up in a small table is a look-up.
 *
 *   %e = embedding(%table, %i)
 *   %y = linear(%e, %w, %b)        =>   %y = embedding(%table', %i),   table' = table w' + b
 *
 * A cell that decodes tokens then reads one row where it read a whole matrix. Only where the new
 * table is small (MAX_FLOATS) and the old one has no other reader.
 * Needs: freeze, infer_types, expand_composites (which takes cells apart). Keeps: types; results up
 * to rounding (the products are formed in double and rounded once). */
#include <string.h>

#include "passes/alias.h"
#include "runtime/values/tensor.h"

enum { MAX_FLOATS = 2 << 20, MAX_PRODUCTS = 400 << 20 };

static const float *floats_of(const ir_value *v, int rank) {
    if (!ir_is_const(v) || v->def->value.tag != RT_TAG_TENSOR)
        return NULL;
    const rt_tensor *t = v->def->value.as.tensor;
    return t->rank == rank && t->dtype == RT_float32 && rt_tensor_is_contiguous(t) ? t->data : NULL;
}

/* to[r][o] = bias[o] + sum over k of table[r][k] * w[o][k], row by row, w transposed once. */
static void multiply(pass_context *ctx, float *to, const float *table, const float *w,
                     const float *bias, int64_t rows, int64_t depth, int64_t columns) {
    double *turned = TS_NEW_ARRAY(ctx->scratch, double, (size_t)(depth * columns));
    double *sums = TS_NEW_ARRAY(ctx->scratch, double, (size_t)columns);
    for (int64_t o = 0; o < columns; o++)
        for (int64_t k = 0; k < depth; k++)
            turned[k * columns + o] = (double)w[o * depth + k];
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t o = 0; o < columns; o++)
            sums[o] = bias ? (double)bias[o] : 0;
        for (int64_t k = 0; k < depth; k++) {
            double x = (double)table[r * depth + k];
            const double *line = turned + k * columns;
            for (int64_t o = 0; o < columns; o++)
                sums[o] += x * line[o];
        }
        for (int64_t o = 0; o < columns; o++)
            to[r * columns + o] = (float)sums[o];
    }
}

static bool fold(pass_context *ctx, ir_module *m, pass_alias *alias, ir_op *op) {
    ir_op *look_up = op->operands[0]->def;
    if (!ir_is_core(look_up, OP_embedding) || look_up->results[0]->use_count != 1)
        return false;
    ir_value *table = look_up->operands[0];
    const float *from = floats_of(table, 2), *w = floats_of(op->operands[1], 2), *bias = NULL;
    if (!from || !w || pass_is_written(alias, table) || pass_is_written(alias, op->operands[1]))
        return false;
    if (op->operands[2]->type->kind != IR_NONE &&
        (!(bias = floats_of(op->operands[2], 1)) || pass_is_written(alias, op->operands[2])))
        return false;
    const rt_tensor *t = table->def->value.as.tensor, *v = op->operands[1]->def->value.as.tensor;
    int64_t rows = t->sizes[0], depth = t->sizes[1], columns = v->sizes[0];
    if (v->sizes[1] != depth || rows < 1 || columns < 1 || rows > MAX_FLOATS / columns ||
        depth > MAX_PRODUCTS / (rows * columns))
        return false;
    int64_t sizes[2] = {rows, columns};
    rt_tensor *made;
    ts_status status = rt_tensor_make(RT_float32, sizes, 2, &made);
    if (status) {
        ts_status_release(status);
        return false;
    }
    multiply(ctx, made->data, from, w, bias, rows, depth, columns);
    ir_builder b = pass_before(m, op);
    rt_value value = rt_from_tensor(made);
    ir_value *args[5];
    args[0] = ir_build_const(&b, value);
    rt_release(value);
    for (size_t i = 1; i < look_up->operand_count && i < 5; i++)
        args[i] = look_up->operands[i];
    ir_value *row = ir_build_core1(&b, OP_embedding, args, look_up->operand_count);
    row->type = op->results[0]->type;
    pass_replace(m, op->results[0], row);
    ir_op_remove(op);
    ir_op_remove(look_up);
    return true;
}

static void fold_block(pass_context *ctx, ir_module *m, pass_alias *alias, ir_block *block,
                       int depth) {
    ir_op *next;
    for (ir_op *op = block->first; op && depth < 200; op = next) {
        next = op->next;
        for (size_t i = 0; i < op->region_count; i++)
            fold_block(ctx, m, alias, op->regions[i], depth + 1);
        if (ir_is_core(op, OP_linear) && op->operand_count == 3 && fold(ctx, m, alias, op)) {
            ctx->changed = true;
            pass_count(ctx, "products looked up", 1);
        }
    }
}

ts_status pass_fold_embedding(pass_context *ctx, ir_module *m) {
    for (ir_function *f = m->functions; f; f = f->next) {
        if (!f->body)
            continue;
        pass_alias *alias = pass_alias_make(ctx, m, f);
        fold_block(ctx, m, alias, f->body, 0);
    }
    return NULL;
}

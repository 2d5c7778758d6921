/* ir/kernel_form.c - see kernel_form.h. */
#include "ir/kernel_form.h"
#include "ir/resize_form.h"

#include <string.h>

/* ---- names ---- */

static const struct {
    const char *name;
    char needs;
} pointwise_rows[] = {
#define POINTWISE(name, needs) {#name, needs},
#include "ir/pointwise_names.def"
};

static bool same_name(ts_str a, const char *b) {
    return strlen(b) == a.length && memcmp(a.data, b, a.length) == 0;
}

ir_pointwise ir_pointwise_of(const ir_op *op) {
    if (!op || op->opcode != IR_OP_CORE)
        return IR_P_COUNT;
    ts_str full = rt_op_name(op->core), name = full;
    for (size_t i = 0; i < full.length; i++)
        if (full.data[i] == '.') {
            name.length = i;
            break;
        }
    /* max and min alone, or along a dim, are reductions. */
    bool is_extreme = same_name(name, "max") || same_name(name, "min");
    if (is_extreme && !same_name(full, "max.other") && !same_name(full, "min.other"))
        return IR_P_COUNT;
    for (int i = 0; i < IR_P_COUNT; i++)
        if (same_name(name, pointwise_rows[i].name))
            return (ir_pointwise)i;
    return IR_P_COUNT;
}

typedef enum dims_form { D_ALL, D_LIST, D_ONE, D_OPTIONAL, D_NORMALIZED, D_POOL } dims_form;

static const struct {
    const char *name;
    ir_reduction form;
    dims_form dims;
} reduction_rows[] = {
    {"sum", IR_R_SUM, D_ALL},
    {"sum.dim_IntList", IR_R_SUM, D_LIST},
    {"mean", IR_R_MEAN, D_ALL},
    {"mean.dim", IR_R_MEAN, D_LIST},
    {"prod", IR_R_PROD, D_ALL},
    {"prod.dim_int", IR_R_PROD, D_ONE},
    {"amax", IR_R_AMAX, D_LIST},
    {"amin", IR_R_AMIN, D_LIST},
    {"max", IR_R_AMAX, D_ALL},
    {"min", IR_R_AMIN, D_ALL},
    {"aminmax", IR_R_AMINMAX, D_OPTIONAL},
    {"max.dim", IR_R_MAX_DIM, D_ONE},
    {"min.dim", IR_R_MIN_DIM, D_ONE},
    {"argmax", IR_R_ARGMAX, D_OPTIONAL},
    {"argmin", IR_R_ARGMIN, D_OPTIONAL},
    {"any", IR_R_ANY, D_ALL},
    {"any.dim", IR_R_ANY, D_ONE},
    {"all", IR_R_ALL, D_ALL},
    {"all.dim", IR_R_ALL, D_ONE},
    {"softmax.int", IR_R_SOFTMAX, D_ONE},
    {"log_softmax.int", IR_R_LOG_SOFTMAX, D_ONE},
    {"layer_norm", IR_R_LAYER_NORM, D_NORMALIZED},
    {"adaptive_avg_pool1d", IR_R_GLOBAL_POOL, D_POOL},
    {"adaptive_avg_pool2d", IR_R_GLOBAL_POOL, D_POOL},
    {"adaptive_avg_pool3d", IR_R_GLOBAL_POOL, D_POOL},
};

/* Of max_pool1d, adaptive_avg_pool2d: the digit in the name. */
static int spatial_dims(const ir_op *op) {
    ts_str name = rt_op_name(op->core);
    return name.data[name.length - 2] - '0';
}

static int reduction_row(const ir_op *op) {
    if (!op || op->opcode != IR_OP_CORE)
        return -1;
    ts_str name = rt_op_name(op->core);
    for (size_t i = 0; i < sizeof reduction_rows / sizeof *reduction_rows; i++)
        if (same_name(name, reduction_rows[i].name))
            return (int)i;
    return -1;
}

ir_reduction ir_reduction_of(const ir_op *op) {
    int i = reduction_row(op);
    return i < 0 ? IR_R_NONE : reduction_rows[i].form;
}

static const struct {
    const char *name;
    ir_anchor kind;
} anchor_rows[] = {
    {"linear", IR_A_LINEAR},          {"matmul", IR_A_MATMUL},
    {"mm", IR_A_MATMUL},              {"bmm", IR_A_MATMUL},
    {"addmm", IR_A_ADDMM},            {"baddbmm", IR_A_ADDMM},
    {"conv1d", IR_A_CONVOLUTION},     {"conv2d", IR_A_CONVOLUTION},
    {"convolution", IR_A_CONVOLUTION}, {"conv_transpose1d", IR_A_CONVOLUTION},
    {"conv_transpose2d.input", IR_A_CONVOLUTION}, {"max_pool1d", IR_A_MAX_POOL},
    {"max_pool2d", IR_A_MAX_POOL},    {"avg_pool1d", IR_A_AVG_POOL},
    {"avg_pool2d", IR_A_AVG_POOL},
    {"_integer_linear", IR_A_INTEGER_LINEAR},
    {"_integer_convolution", IR_A_INTEGER_CONVOLUTION},
};

ir_anchor ir_anchor_of(const ir_op *op) {
    if (!op || op->opcode != IR_OP_CORE)
        return IR_A_NONE;
    ts_str name = rt_op_name(op->core);
    for (size_t i = 0; i < sizeof anchor_rows / sizeof *anchor_rows; i++)
        if (same_name(name, anchor_rows[i].name))
            return anchor_rows[i].kind;
    return IR_A_NONE;
}

/* ---- reduced dims ---- */

static bool add_dim(int64_t d, int rank, uint32_t *mask) {
    if (d < 0)
        d += rank;
    if (d < 0 || d >= rank)
        return false;
    *mask |= 1u << d;
    return true;
}

static bool is_none(const ir_value *v) { return !v || v->type->kind == IR_NONE; }

uint32_t ir_reduced_dims(ir_module *m, const ir_op *op) {
    int i = reduction_row(op);
    if (i < 0 || op->operand_count == 0)
        return 0;
    const ir_type *t = op->operands[0]->type, *r = op->results[0]->type;
    if (!ir_type_is_known_tensor(t) || t->rank == 0)
        return 0;
    uint32_t all = (1u << t->rank) - 1, mask = 0;
    int64_t list[IR_STRIDED_MAX_RANK];
    size_t count;
    const ir_value *dim = ir_core_operand(m, op, "dim");
    switch (reduction_rows[i].dims) {
    case D_ALL: return all;
    case D_LIST:
        if (is_none(dim))
            return all;
        if (!ir_const_int_list(dim, list, IR_STRIDED_MAX_RANK, &count))
            return 0;
        for (size_t j = 0; j < count; j++)
            if (!add_dim(list[j], t->rank, &mask))
                return 0;
        return count == 0 ? all : mask;
    case D_OPTIONAL:
        if (is_none(dim))
            return all;
        /* fall through */
    case D_ONE:
        return dim && ir_const_int(dim, &list[0]) && add_dim(list[0], t->rank, &mask) ? mask : 0;
    case D_NORMALIZED: {
        const ir_value *shape = ir_core_operand(m, op, "normalized_shape");
        if (!shape || !ir_const_int_list(shape, list, IR_STRIDED_MAX_RANK, &count) ||
            (int)count > t->rank)
            return 0;
        for (size_t j = 0; j < count; j++)
            mask |= 1u << (t->rank - 1 - (int)j);
        return mask;
    }
    case D_POOL: {
        int spatial = spatial_dims(op);
        if (!ir_type_is_known_tensor(r) || r->rank != t->rank || spatial > t->rank)
            return 0;
        for (int d = t->rank - spatial; d < t->rank; d++) {
            if (r->dims[d] != 1)
                return 0;
            mask |= 1u << d;
        }
        return mask;
    }
    }
    return 0;
}

/* ---- what fits ---- */

static bool is_number_dtype(rt_dtype t) {
    switch (t) {
    case RT_float32: case RT_float64: case RT_int64: case RT_int32: case RT_int16: case RT_int8:
    case RT_uint8: case RT_bool:
        return true;
    default:
        return false;
    }
}

static bool is_half(rt_dtype t) { return t == RT_float16 || t == RT_bfloat16; }

static bool is_const_number(const ir_value *v) {
    double d;
    bool b;
    return ir_const_double(v, &d) || ir_const_bool(v, &b);
}

static bool broadcasts_to(ir_module *m, const ir_type *from, const ir_type *to) {
    int lead = to->rank - from->rank;
    if (lead < 0)
        return false;
    for (int d = 0; d < from->rank; d++)
        if (from->dims[d] != 1 && !ir_dim_same(m, from->dims[d], to->dims[d + lead]))
            return false;
    return true;
}

static bool pow_fits(ir_module *m, const ir_op *op) {
    const ir_value *v = ir_core_operand(m, op, "exponent");
    double e;
    if (!v || !ir_const_double(v, &e))
        return false;
    if (e == 1 || e == 2 || e == 3)
        return true;
    return rt_dtype_is_float(op->results[0]->type->dtype) &&
           (e == 0.5 || e == -0.5 || e == -1 || e == -2);
}

static bool batch_norm_fits(ir_module *m, const ir_op *op) {
    bool trains;
    double eps;
    const ir_value *t = ir_core_operand(m, op, "training"), *e = ir_core_operand(m, op, "eps");
    return t && e && ir_const_bool(t, &trains) && !trains && ir_const_double(e, &eps) &&
           !is_none(ir_core_operand(m, op, "running_mean")) &&
           !is_none(ir_core_operand(m, op, "running_var")) && op->results[0]->type->rank >= 2;
}

/* The 0-d tensor that is filled in is in the range of the filled one's dtype for certain: otherwise the operator
 * raises where it isn't, which kernels don't look for. */
static bool fill_fits(ir_module *m, const ir_op *op) {
    const ir_value *fill = ir_core_operand(m, op, "value");
    rt_dtype dtype = op->results[0]->type->dtype;
    rt_value number;
    if (fill->type->kind != IR_TENSOR || rt_dtype_promote(fill->type->dtype, dtype) == dtype)
        return true;
    if (!ir_const_value(fill, &number) || number.tag != RT_TAG_TENSOR || number.as.tensor->element_count != 1)
        return false;
    ts_status status = rt_tensor_item(number.as.tensor, &number);
    bool fits = !status && rt_number_fits(number, dtype);
    if (status)
        ts_status_release(status);
    else
        rt_release(number);
    return fits;
}

static bool pointwise_fits(ir_module *m, const ir_op *op, ir_pointwise p) {
    const ir_type *r = op->results[0]->type;
    char needs = pointwise_rows[p].needs;
    bool is_cast = p == IR_P_to || p == IR_P__to_copy || p == IR_P_type_as;
    if (op->result_count != 1 || !ir_type_is_known_tensor(r) ||
        !(is_number_dtype(r->dtype) || (is_cast && is_half(r->dtype))))
        return false;
    if ((needs == 'f' || needs == 'c') && r->dtype != RT_float32)
        return false;
    if (p == IR_P_batch_norm)
        return batch_norm_fits(m, op) && op->operands[0]->type->kind == IR_TENSOR &&
               ir_type_is_known_tensor(op->operands[0]->type) &&
               op->operands[0]->type->dtype == RT_float32;
    for (size_t i = 0; i < op->operand_count; i++) {
        const ir_value *v = op->operands[i];
        const ir_type *t = v->type;
        if (t->kind == IR_TENSOR) {
            if (!ir_type_is_known_tensor(t) ||
                !(is_number_dtype(t->dtype) || (is_cast && is_half(t->dtype))))
                return false;
            if (p == IR_P_type_as && i == 1)
                continue;
            if (!broadcasts_to(m, t, r))
                return false;
        } else if (t->kind == IR_INT || t->kind == IR_FLOAT || t->kind == IR_BOOL) {
            if (is_cast)
                continue;
            if (needs == 'c' && !is_const_number(v))
                return false;
        } else if (t->kind != IR_NONE && !ir_is_const(v)) {
            return false;
        }
    }
    if (op->operands[0]->type->kind != IR_TENSOR && is_cast)
        return false;
    switch (p) {
    case IR_P_pow: return pow_fits(m, op);
    case IR_P_masked_fill: return fill_fits(m, op);
    case IR_P_div: return is_none(ir_core_operand(m, op, "rounding_mode")) && rt_dtype_is_float(r->dtype);
    case IR_P_round: return op->operand_count == 1;
    case IR_P_isnan: case IR_P_isinf: case IR_P_isfinite:
        return rt_dtype_is_float(op->operands[0]->type->dtype);
    case IR_P_sub: case IR_P_rsub: case IR_P_neg: return r->dtype != RT_bool;
    case IR_P__quantize_bytes:
        return op->operands[0]->type->dtype == RT_float32 && (r->dtype == RT_uint8 || r->dtype == RT_int8);
    case IR_P__dequantize_bytes:
        return op->operands[0]->type->dtype == RT_uint8 || op->operands[0]->type->dtype == RT_int8;
    case IR_P__requantize: case IR_P__scale_sums: return op->operands[0]->type->dtype == RT_int32;
    default: return true;
    }
}

bool ir_is_heavy_pointwise(const ir_op *op) {
    ir_pointwise p = ir_pointwise_of(op);
    return p != IR_P_COUNT && p != IR_P_batch_norm && pointwise_rows[p].needs != '.';
}

static bool reduction_fits(ir_module *m, const ir_op *op, ir_reduction f) {
    const ir_type *t = op->operands[0]->type;
    if (!ir_type_is_known_tensor(t) || !is_number_dtype(t->dtype) || ir_reduced_dims(m, op) == 0)
        return false;
    for (size_t i = 0; i < op->result_count; i++)
        if (!ir_type_is_known_tensor(op->results[i]->type) ||
            !is_number_dtype(op->results[i]->type->dtype))
            return false;
    for (int d = 0; d < t->rank; d++) /* maxima of nothing raise */
        if (t->dims[d] == 0)
            return false;
    bool is_float = f == IR_R_SOFTMAX || f == IR_R_LOG_SOFTMAX || f == IR_R_LAYER_NORM;
    if (is_float && (op->results[0]->type->dtype != RT_float32 || t->dtype != RT_float32))
        return false;
    if ((f == IR_R_MEAN || f == IR_R_GLOBAL_POOL) && !rt_dtype_is_float(op->results[0]->type->dtype))
        return false;
    if (f == IR_R_ARGMAX || f == IR_R_ARGMIN) {
        uint32_t mask = ir_reduced_dims(m, op);
        if ((mask & (mask - 1)) && t->rank > 2)
            return false;
    }
    if (f == IR_R_LAYER_NORM) {
        double eps;
        const ir_value *e = ir_core_operand(m, op, "eps");
        return e && ir_const_double(e, &eps);
    }
    /* A maximum over a size that may be 0 raises at run time. */
    if (f >= IR_R_AMAX && f <= IR_R_ARGMIN)
        for (int d = 0; d < t->rank; d++) {
            int64_t low, high;
            if (!rt_dim_is_constant(t->dims[d]) &&
                (!ir_dim_bounds(m, t->dims[d], &low, &high) || low < 1))
                return false;
        }
    return true;
}

static bool is_float_matrix(const ir_value *v) {
    return v && ir_type_is_known_tensor(v->type) && v->type->dtype == RT_float32 &&
           v->type->rank >= 2;
}

static bool optional_floats(const ir_value *v) {
    return is_none(v) || (ir_type_is_known_tensor(v->type) && v->type->dtype == RT_float32);
}

static bool is_const_tensor(const ir_value *v) {
    return v && v->def && v->def->opcode == IR_OP_CONST && v->type->kind == IR_TENSOR;
}

static bool const_ints(ir_module *m, const ir_op *op, const char *name) {
    const ir_value *v = ir_core_operand(m, op, name);
    int64_t list[IR_STRIDED_MAX_RANK];
    size_t count;
    return v && (ir_const_int(v, list) || ir_const_int_list(v, list, IR_STRIDED_MAX_RANK, &count));
}

/* Bytes times a constant int8 weight whose sums, however long, are those of int32. */
static bool integer_fits(ir_module *m, const ir_op *op, ir_anchor a) {
    const ir_value *x = op->operands[0], *w = op->operands[1];
    const ir_type *r = op->results[0]->type;
    int64_t groups;
    if (!ir_type_is_known_tensor(x->type) || !is_const_tensor(w) || w->type->dtype != RT_int8 ||
        (x->type->dtype != RT_uint8 && x->type->dtype != RT_int8) || !ir_type_is_known_tensor(r) ||
        r->dtype != RT_int32 || x->type->rank < 2)
        return false;
    if (a == IR_A_INTEGER_LINEAR)
        return w->type->rank == 2 && w->type->dims[1] > 0 && w->type->dims[0] > 0 &&
               x->type->dims[x->type->rank - 1] == w->type->dims[1];
    return x->type->rank >= 3 && x->type->rank <= 4 && w->type->rank == x->type->rank &&
           rt_dim_is_constant(x->type->dims[1]) && ir_const_int(op->operands[6], &groups) && groups >= 1 &&
           const_ints(m, op, "stride") && const_ints(m, op, "padding") &&
           const_ints(m, op, "dilation") && x->type->dims[1] == w->type->dims[1] * groups;
}

static bool has_constant_sizes(const ir_type *t) {
    for (int d = 0; d < t->rank; d++)
        if (!rt_dim_is_constant(t->dims[d]))
            return false;
    return true;
}

static bool convolution_fits(ir_module *m, const ir_op *op) {
    const ir_value *x = ir_core_operand(m, op, "input"), *w = ir_core_operand(m, op, "weight");
    const ir_value *transposed = ir_core_operand(m, op, "transposed");
    const ir_value *groups = ir_core_operand(m, op, "groups");
    ts_str name = rt_op_name(op->core);
    bool is_transposed = same_name(name, "conv_transpose1d") || same_name(name, "conv_transpose2d.input");
    int64_t g;
    if (!is_float_matrix(x) || !is_float_matrix(w) ||
        w->type->rank != x->type->rank || x->type->rank < 3 || x->type->rank > 4 ||
        !rt_dim_is_constant(x->type->dims[1]) || !optional_floats(ir_core_operand(m, op, "bias")))
        return false;
    if (transposed && !ir_const_bool(transposed, &is_transposed))
        return false;
    if (!is_const_tensor(w) && (is_transposed || !has_constant_sizes(w->type)))
        return false;
    return groups && ir_const_int(groups, &g) && g >= 1 && const_ints(m, op, "stride") &&
           const_ints(m, op, "padding") && const_ints(m, op, "dilation") &&
           x->type->dims[1] == (is_transposed ? w->type->dims[0] : w->type->dims[1] * g);
}

/* One image without a batch has the rank of a batch of signals. */
static bool pool_fits(ir_module *m, const ir_op *op, ir_anchor a) {
    const ir_value *x = op->operands[0];
    if (!ir_type_is_known_tensor(x->type) || x->type->dtype != op->results[0]->type->dtype ||
        x->type->rank != spatial_dims(op) + 2 || !const_ints(m, op, "kernel_size") ||
        !const_ints(m, op, "stride") || !const_ints(m, op, "padding"))
        return false;
    if (a == IR_A_MAX_POOL)
        return const_ints(m, op, "dilation");
    bool b;
    const ir_value *ceiling = ir_core_operand(m, op, "ceil_mode");
    const ir_value *include = ir_core_operand(m, op, "count_include_pad");
    return ceiling && ir_const_bool(ceiling, &b) && !b && include && ir_const_bool(include, &b) &&
           is_none(ir_core_operand(m, op, "divisor_override"));
}

/* The two lengths of the sum are known to be equal: otherwise the product raises at run time. */
static bool sums_agree(ir_module *m, const ir_op *op, ir_anchor a) {
    size_t first = a == IR_A_ADDMM ? 1 : 0;
    if (op->operand_count < first + 2)
        return false;
    const ir_type *x = op->operands[first]->type, *y = op->operands[first + 1]->type;
    if (x->kind != IR_TENSOR || y->kind != IR_TENSOR || x->rank < 2 || y->rank < 2)
        return false;
    return ir_dim_same(m, x->dims[x->rank - 1],
                       y->dims[a == IR_A_LINEAR ? y->rank - 1 : y->rank - 2]);
}

static ir_kernel_form anchor_form(ir_module *m, const ir_op *op, ir_anchor a) {
    const ir_type *r = op->results[0]->type;
    if (a == IR_A_INTEGER_LINEAR || a == IR_A_INTEGER_CONVOLUTION)
        return integer_fits(m, op, a) ? IR_FORM_CONTRACTION : IR_FORM_NONE;
    bool is_bytes = r->kind == IR_TENSOR && (r->dtype == RT_uint8 || r->dtype == RT_int8);
    if (op->result_count != 1 || !ir_type_is_known_tensor(r) || r->rank < 2 ||
        (r->dtype != RT_float32 && !(is_bytes && a == IR_A_MAX_POOL)))
        return IR_FORM_NONE;
    if (a == IR_A_CONVOLUTION)
        return convolution_fits(m, op) && r->rank <= 4 ? IR_FORM_CONTRACTION : IR_FORM_NONE;
    if (a == IR_A_MAX_POOL || a == IR_A_AVG_POOL)
        return pool_fits(m, op, a) ? IR_FORM_WINDOW : IR_FORM_NONE;
    size_t tensors = 0;
    for (size_t i = 0; i < op->operand_count; i++) {
        const ir_value *v = op->operands[i];
        if (v->type->kind != IR_TENSOR)
            continue;
        bool is_addend = (a == IR_A_LINEAR && i == 2) || (a == IR_A_ADDMM && i == 0);
        if (is_addend ? !(optional_floats(v) && broadcasts_to(m, v->type, r)) : !is_float_matrix(v))
            return IR_FORM_NONE;
        tensors++;
    }
    if (!sums_agree(m, op, a))
        return IR_FORM_NONE;
    if (a == IR_A_ADDMM) {
        double d;
        const ir_value *alpha = ir_core_operand(m, op, "alpha"), *beta = ir_core_operand(m, op, "beta");
        if ((alpha && !ir_const_double(alpha, &d)) || (beta && !ir_const_double(beta, &d)))
            return IR_FORM_NONE;
    }
    return tensors >= 2 ? IR_FORM_CONTRACTION : IR_FORM_NONE;
}

bool ir_is_stack(const ir_op *op) {
    return op && op->opcode == IR_OP_CORE && same_name(rt_op_name(op->core), "stack");
}
bool ir_is_concat(const ir_op *op) {
    if (!op || op->opcode != IR_OP_CORE)
        return false;
    ts_str name = rt_op_name(op->core);
    return same_name(name, "cat") || same_name(name, "concat") || same_name(name, "stack");
}

/* A few tensors of one dtype that together make the result: their sizes are known to fit, or are
 * numbers that the host program can compare (passes/check_concat.c). */
static bool concat_fits(ir_module *m, const ir_op *op) {
    enum { MAX_PARTS = 16 };
    const ir_value *list = op->operands[0];
    const ir_type *r = op->results[0]->type;
    int64_t dim;
    bool stacks = ir_is_stack(op);
    if (!list->def || list->def->opcode != IR_OP_LIST || list->def->operand_count == 0 ||
        list->def->operand_count > MAX_PARTS || !ir_type_is_known_tensor(r) ||
        !(is_number_dtype(r->dtype) || is_half(r->dtype)) || !ir_list_is_stable(list) ||
        !ir_const_int(op->operands[1], &dim))
        return false;
    dim = dim < 0 ? dim + r->rank : dim;
    if (dim < 0 || dim >= r->rank)
        return false;
    for (size_t i = 0; i < list->def->operand_count; i++) {
        const ir_type *t = list->def->operands[i]->type;
        if (!ir_type_is_known_tensor(t) || t->dtype != r->dtype || t->rank != r->rank - stacks)
            return false;
        for (int d = 0, e = 0; d < r->rank; d++) {
            if (d == dim && stacks)
                continue;
            bool fits = ir_dim_same(m, t->dims[e], r->dims[d]);
            bool is_open = !stacks && t->dims[e] != RT_DIM_UNKNOWN &&
                           r->dims[d] != RT_DIM_UNKNOWN &&
                           !(rt_dim_is_constant(t->dims[e]) && rt_dim_is_constant(r->dims[d]));
            if (d != dim && !fits && !is_open)
                return false;
            e++;
        }
    }
    return true;
}

ir_kernel_form ir_kernel_form_of(ir_module *m, const ir_op *op) {
    if (op->opcode != IR_OP_CORE || op->result_count == 0 || op->operand_count == 0)
        return IR_FORM_NONE;
    if (ir_view_kind_of(op) != IR_VIEW_NONE)
        return ir_type_is_known_tensor(op->results[0]->type) &&
                       ir_type_is_known_tensor(op->operands[0]->type) &&
                       op->operands[0]->type->dtype == op->results[0]->type->dtype
                   ? IR_FORM_VIEW
                   : IR_FORM_NONE;
    if (ir_is_concat(op))
        return concat_fits(m, op) ? IR_FORM_CONCAT : IR_FORM_NONE;
    ir_anchor a = ir_anchor_of(op);
    if (a != IR_A_NONE)
        return anchor_form(m, op, a);
    ir_reduction f = ir_reduction_of(op);
    if (f != IR_R_NONE) {
        if (!reduction_fits(m, op, f))
            return IR_FORM_NONE;
        return f == IR_R_SOFTMAX || f == IR_R_LOG_SOFTMAX || f == IR_R_LAYER_NORM
                   ? IR_FORM_ROWS
                   : IR_FORM_REDUCTION;
    }
    ir_resize resize;
    if (ir_resize_of(m, op, &resize))
        return IR_FORM_RESIZE;
    ir_pointwise p = ir_pointwise_of(op);
    return p != IR_P_COUNT && pointwise_fits(m, op, p) ? IR_FORM_POINTWISE : IR_FORM_NONE;
}

/* codegen/lower_pointwise.c - pointwise operators as scalar nodes, by PyTorch's names. */
#include "codegen/lower.h"
#include "ir/kernel_form.h"

#include <math.h>
#include <string.h>

#define K l->k
#define NUMBER(x) kn_constant_number(K, t, (x))
#define OP1(code, a) kn_op1(K, KN_##code, (a))
#define OP2(code, a, b) kn_op2(K, KN_##code, (a), (b))
#define OP3(code, a, b, c) kn_op3(K, KN_##code, (a), (b), (c))

/* A pointwise operator being lowered: its arguments are asked for by name, as type t. */
typedef struct pointwise {
    lowering *l;
    const ir_op *op;
    const lw_map *map;
    rt_dtype result; /* dtype of the result */
    bool failed;
} pointwise;

static int argument(pointwise *p, const char *name, rt_dtype type) {
    int n = lw_operand(p->l, p->op, name, type, p->map);
    if (n < 0) {
        p->failed = true;
        return kn_constant_number(p->l->k, type, 0);
    }
    return n;
}

static rt_dtype scalar_type(const ir_value *v) {
    return v->type->kind == IR_FLOAT ? RT_float32 : v->type->kind == IR_BOOL ? RT_bool : RT_int64;
}

static int category(rt_dtype t) {
    return t == RT_bool ? 0 : rt_dtype_is_float(t) ? 2 : rt_dtype_is_complex(t) ? 3 : 1;
}

/* PyTorch's rules for two operands: a number, or a tensor without dims, only counts where its kind
 * is higher. */
static rt_dtype common_type(const ir_value *a, const ir_value *b) {
    bool a_weak = a->type->kind != IR_TENSOR || a->type->rank == 0;
    bool b_weak = b->type->kind != IR_TENSOR || b->type->rank == 0;
    rt_dtype ta = a->type->kind == IR_TENSOR ? a->type->dtype : scalar_type(a);
    rt_dtype tb = b->type->kind == IR_TENSOR ? b->type->dtype : scalar_type(b);
    if (a->type->kind == IR_TENSOR && b->type->kind == IR_TENSOR && a_weak == b_weak)
        return rt_dtype_promote(ta, tb);
    if (a->type->kind != IR_TENSOR && b->type->kind == IR_TENSOR)
        return category(ta) > category(tb) ? ta : tb;
    if (b->type->kind != IR_TENSOR && a->type->kind == IR_TENSOR)
        return category(tb) > category(ta) ? tb : ta;
    if (a_weak)
        return category(ta) > category(tb) ? ta : tb;
    return category(tb) > category(ta) ? tb : ta;
}

static bool const_of(pointwise *p, const char *name, double *out) {
    const ir_value *v = ir_core_operand(p->l->ir, p->op, name);
    return v && ir_const_double(v, out);
}

static int fail(pointwise *p, const char *why) {
    p->failed = true;
    return lw_fail(p->l, p->op, why);
}

/* ---- families of operators ---- */

static int unary_code(pointwise *p, kn_code code) {
    return kn_op1(p->l->k, code, argument(p, "self", p->result));
}

static int scaled(pointwise *p, const char *name, const char *factor, rt_dtype t) {
    int v = argument(p, name, t);
    double alpha;
    if (!ir_core_operand(p->l->ir, p->op, factor) || (const_of(p, factor, &alpha) && alpha == 1))
        return v;
    return kn_op2(p->l->k, KN_mul, argument(p, factor, t), v);
}

static int binary_code(pointwise *p, kn_code code, const char *a, const char *b) {
    int x = argument(p, a, p->result), y = argument(p, b, p->result);
    return kn_op2(p->l->k, code, x, y);
}

static int compare(pointwise *p, kn_code code) {
    const ir_value *a = ir_core_operand(p->l->ir, p->op, "self");
    const ir_value *b = ir_core_operand(p->l->ir, p->op, "other");
    if (!a || !b)
        return fail(p, "no such argument");
    rt_dtype t = common_type(a, b);
    /* A Python float compares as a double with a float32 tensor's elements rounded to it: the
     * number is rounded as PyTorch does. */
    int x = argument(p, "self", t), y = argument(p, "other", t);
    return kn_op2(p->l->k, code, x, y);
}

static int logical(pointwise *p, kn_code code) {
    int x = argument(p, "self", RT_bool), y = argument(p, "other", RT_bool);
    return kn_op2(p->l->k, code, x, y);
}

static int emit_pow(pointwise *p) {
    lowering *l = p->l;
    rt_dtype t = p->result;
    double e;
    if (!const_of(p, "exponent", &e))
        return fail(p, "a power that is not constant");
    int x = argument(p, "self", t);
    if (e == 1)
        return x;
    if (e == 2)
        return OP2(mul, x, x);
    if (e == 3)
        return OP2(mul, OP2(mul, x, x), x);
    if (!rt_dtype_is_float(t))
        return fail(p, "an integer power");
    if (e == 0.5)
        return OP1(sqrt, x);
    if (e == -0.5)
        return OP1(rsqrt, x);
    if (e == -1)
        return OP1(reciprocal, x);
    if (e == -2)
        return OP1(reciprocal, OP2(mul, x, x));
    return fail(p, "a power without a short form");
}

static int emit_gelu(pointwise *p) {
    lowering *l = p->l;
    rt_dtype t = p->result;
    const ir_value *mode = ir_core_operand(l->ir, p->op, "approximate");
    rt_value text;
    if (!mode || !ir_const_value(mode, &text) || text.tag != RT_TAG_STR)
        return fail(p, "unknown approximation");
    int x = argument(p, "self", t);
    if (text.as.str->length == 4 && memcmp(text.as.str->data, "none", 4) == 0)
        return OP2(mul, x, OP1(normcdf, x));
    int cube = OP2(mul, OP2(mul, x, x), x);
    /* 0.5 (1 + tanh y) is sigmoid(2 y). */
    int inner = OP2(mul, NUMBER(2 * 0.79788456080286535588),
                    OP2(add, x, OP2(mul, NUMBER(0.044715), cube)));
    return OP2(mul, x, OP1(sigmoid, inner));
}

/* x tanh(log(1 + e)) = x n / (n + 2) for e = exp(x), n = e (e + 2); from 20 on the quotient is 1. */
static int emit_mish(pointwise *p, int x) {
    lowering *l = p->l;
    rt_dtype t = p->result;
    int e = OP1(exp, OP2(minimum, NUMBER(20.0), x));
    int n = OP2(mul, e, OP2(add, e, NUMBER(2.0)));
    return OP2(mul, x, OP2(div, n, OP2(add, n, NUMBER(2.0))));
}

static int clamp_between(pointwise *p, int x, int low, int high) {
    lowering *l = p->l;
    if (low >= 0)
        x = OP2(maximum, low, x);
    return high >= 0 ? OP2(minimum, high, x) : x;
}

static int optional(pointwise *p, const char *name, rt_dtype t) {
    return lw_is_none(ir_core_operand(p->l->ir, p->op, name)) ? -1 : argument(p, name, t);
}

static int emit_elu(pointwise *p, double alpha, double scale, double input_scale) {
    lowering *l = p->l;
    rt_dtype t = p->result;
    int x = argument(p, "self", t);
    int negative = OP2(mul, NUMBER(alpha * scale), OP1(expm1, OP2(mul, x, NUMBER(input_scale))));
    return OP3(select, OP2(gt, x, NUMBER(0)), OP2(mul, x, NUMBER(scale)), negative);
}

/* softplus(x) = log1p(exp(x * beta)) / beta, x itself above the threshold */
static int emit_softplus(pointwise *p, int x, double beta, double threshold) {
    lowering *l = p->l;
    rt_dtype t = p->result;
    int scaled_x = beta == 1 ? x : OP2(mul, x, NUMBER(beta));
    int soft = OP1(log1p, OP1(exp, scaled_x));
    if (beta != 1)
        soft = OP2(div, soft, NUMBER(beta));
    return OP3(select, OP2(gt, scaled_x, NUMBER(threshold)), x, soft);
}

static double number(pointwise *p, const char *name) {
    double v = 0;
    if (!const_of(p, name, &v)) {
        p->failed = true;
        lw_fail(p->l, p->op, "an argument that is not constant");
    }
    return v;
}

/* ---- bytes of quantized tensors ---- */

static bool is_kept_between(const kn_kernel *k, int node, kn_code code, int *out_inner) {
    const kn_node *n = &k->nodes[node];
    if (n->code != KN_select || k->nodes[n->args[0]].code != code || n->args[1] != k->nodes[n->args[0]].args[0])
        return false;
    *out_inner = n->args[1];
    return k->nodes[n->args[2]].code == KN_CONSTANT;
}

/* A rounded float, kept between two bytes, as the byte that it is; see also byte_value. */
static int to_byte(pointwise *p, int rounded, double low, double high) {
    lowering *l = p->l;
    int most = kn_constant_number(K, RT_float32, high), least = kn_constant_number(K, RT_float32, low);
    int v = OP3(select, OP2(lt, rounded, most), rounded, most); /* a NaN becomes the highest */
    v = OP3(select, OP2(gt, v, least), v, least);
    return kn_cast(K, kn_cast(K, v, RT_int32), p->result);
}

/* The byte argument `name` as a float: what to_byte made of one in this kernel is still there. */
static int byte_value(pointwise *p, const char *name) {
    lowering *l = p->l;
    const ir_value *v = ir_core_operand(l->ir, p->op, name);
    int byte = argument(p, name, v ? v->type->dtype : RT_uint8), inner, rounded;
    const kn_node *narrow = &K->nodes[byte];
    if (narrow->code == KN_CAST && K->nodes[narrow->args[0]].code == KN_CAST) {
        int value = K->nodes[narrow->args[0]].args[0];
        if (K->nodes[value].type == RT_float32 && is_kept_between(K, value, KN_gt, &inner) &&
            is_kept_between(K, inner, KN_lt, &rounded)) {
            const kn_node *n = &K->nodes[rounded];
            if (n->code == KN_round || (n->code == KN_add && K->nodes[n->args[0]].code == KN_round &&
                                        K->nodes[n->args[1]].code == KN_CONSTANT))
                return value;
        }
    }
    return kn_cast(K, byte, RT_float32);
}

/* One rounding of product and sum, as fbgemm has it; or the product's alone. */
static int emit_quantize_bytes(pointwise *p) {
    lowering *l = p->l;
    double scale, shift = 1;
    bool rounds_first;
    const ir_value *first = ir_core_operand(l->ir, p->op, "rounds_first");
    if (!first || !ir_const_bool(first, &rounds_first))
        return fail(p, "a rounding that is not known");
    int x = argument(p, "self", RT_float32), zero = argument(p, "zero_point", RT_float32);
    int inverse = const_of(p, "scale", &scale)
                      ? kn_constant_number(K, RT_float32, (double)(1.0f / (float)scale))
                      : OP1(reciprocal, argument(p, "scale", RT_float32));
    int rounded = rounds_first ? OP1(round, OP2(mul, x, inverse)) : OP1(round, OP3(fma, x, inverse, zero));
    if (rounds_first && !(const_of(p, "zero_point", &shift) && shift == 0))
        rounded = OP2(add, rounded, zero);
    return to_byte(p, rounded, p->result == RT_int8 ? -128 : 0, p->result == RT_int8 ? 127 : 255);
}

static int emit_dequantize_bytes(pointwise *p) {
    lowering *l = p->l;
    double zero = 1, scale = 0;
    bool is_fused;
    const ir_value *fused = ir_core_operand(l->ir, p->op, "fused");
    if (!fused || !ir_const_bool(fused, &is_fused))
        return fail(p, "a rounding that is not known");
    int x = byte_value(p, "self");
    if (is_fused) {
        if (!const_of(p, "zero_point", &zero) || !const_of(p, "scale", &scale))
            return fail(p, "a scale that is not constant");
        float step = (float)scale;
        return OP3(fma, x, kn_constant_number(K, RT_float32, (double)step),
                   kn_constant_number(K, RT_float32, (double)(-(float)zero * step)));
    }
    if (!const_of(p, "zero_point", &zero) || zero != 0)
        x = OP2(sub, x, argument(p, "zero_point", RT_float32));
    return const_of(p, "scale", &scale) && scale == 1 ? x : OP2(mul, x, argument(p, "scale", RT_float32));
}

static int emit_requantize(pointwise *p) {
    lowering *l = p->l;
    double low, zero;
    if (!const_of(p, "lowest", &low) || !const_of(p, "zero_point", &zero))
        return fail(p, "a zero point that is not constant");
    int x = OP2(add, argument(p, "self", RT_float32), argument(p, "addend", RT_float32));
    x = OP1(round, OP2(mul, x, argument(p, "multiplier", RT_float32)));
    if (zero != 0)
        x = OP2(add, x, kn_constant_number(K, RT_float32, zero));
    return to_byte(p, x, low, p->result == RT_int8 ? 127 : 255);
}

static int emit_scale_sums(pointwise *p) {
    lowering *l = p->l;
    int scale = OP2(mul, argument(p, "scale", RT_float32), argument(p, "scales", RT_float32));
    int x = OP2(mul, argument(p, "self", RT_float32), scale), bias = optional(p, "bias", RT_float32);
    return bias < 0 ? x : OP2(add, x, bias);
}

/* Batch normalisation with running statistics: a scale and a shift a channel. */
static int emit_batch_norm(pointwise *p) {
    lowering *l = p->l;
    rt_dtype t = p->result;
    bool trains;
    const ir_value *training = ir_core_operand(l->ir, p->op, "training");
    double eps = number(p, "eps");
    ir_value *mean = ir_core_operand(l->ir, p->op, "running_mean");
    ir_value *variance = ir_core_operand(l->ir, p->op, "running_var");
    if (!training || !ir_const_bool(training, &trains) || trains || lw_is_none(mean) ||
        lw_is_none(variance) || p->map->rank < 2)
        return fail(p, "statistics of the batch");
    lw_map channel;
    memset(&channel, 0, sizeof channel);
    channel.rank = 1;
    channel.dims[0] = p->map->dims[1];
    const char *parts[4] = {"running_mean", "running_var", "weight", "bias"};
    int nodes[4];
    for (int i = 0; i < 4; i++) {
        ir_value *v = ir_core_operand(l->ir, p->op, parts[i]);
        nodes[i] = -1;
        if (lw_is_none(v))
            continue;
        nodes[i] = lw_value(l, v, &channel);
        if (nodes[i] < 0) {
            p->failed = true;
            return -1;
        }
        nodes[i] = kn_cast(K, nodes[i], t);
    }
    int x = lw_value(l, ir_core_operand(l->ir, p->op, "input"), p->map);
    if (x < 0) {
        p->failed = true;
        return -1;
    }
    int scale = OP1(rsqrt, OP2(add, nodes[1], NUMBER(eps)));
    if (nodes[2] >= 0)
        scale = OP2(mul, scale, nodes[2]);
    int y = OP2(mul, OP2(sub, x, nodes[0]), scale);
    return nodes[3] >= 0 ? OP2(add, y, nodes[3]) : y;
}

static int lower(pointwise *p) {
    lowering *l = p->l;
    rt_dtype t = p->result;
    switch (ir_pointwise_of(p->op)) {
    case IR_P_abs: return unary_code(p, KN_abs);
    case IR_P_neg: return unary_code(p, KN_neg);
    case IR_P_sqrt: return unary_code(p, KN_sqrt);
    case IR_P_rsqrt: return unary_code(p, KN_rsqrt);
    case IR_P_reciprocal: return unary_code(p, KN_reciprocal);
    case IR_P_exp: return unary_code(p, KN_exp);
    case IR_P_expm1: return unary_code(p, KN_expm1);
    case IR_P_log: return unary_code(p, KN_log);
    case IR_P_log1p: return unary_code(p, KN_log1p);
    case IR_P_sin: return unary_code(p, KN_sin);
    case IR_P_cos: return unary_code(p, KN_cos);
    case IR_P_tanh: return unary_code(p, KN_tanh);
    case IR_P_erf: return unary_code(p, KN_erf);
    case IR_P_sigmoid: return unary_code(p, KN_sigmoid);
    case IR_P_sign: return unary_code(p, KN_sign);
    case IR_P_floor: case IR_P_ceil: case IR_P_trunc: case IR_P_round: {
        int x = argument(p, "self", t);
        if (!rt_dtype_is_float(t))
            return x;
        if (p->op->operand_count > 1)
            return fail(p, "rounding to decimals");
        return kn_op1(K, ir_pointwise_of(p->op) == IR_P_floor  ? KN_floor
                         : ir_pointwise_of(p->op) == IR_P_ceil ? KN_ceil
                         : ir_pointwise_of(p->op) == IR_P_trunc ? KN_trunc
                                                     : KN_round, x);
    }
    case IR_P_positive: case IR_P_to: case IR_P_type_as: case IR_P__to_copy: {
        const ir_value *self = p->op->operands[0];
        if (self->type->kind != IR_TENSOR)
            return fail(p, "not a tensor");
        int x = argument(p, "self", self->type->dtype);
        return kn_cast(K, x, t);
    }
    case IR_P_square: {
        int x = argument(p, "self", t);
        return OP2(mul, x, x);
    }
    case IR_P_relu: {
        int x = argument(p, "self", t);
        return OP2(maximum, NUMBER(0), x);
    }
    case IR_P_relu6: return clamp_between(p, argument(p, "self", t), NUMBER(0), NUMBER(6));
    case IR_P_hardtanh:
        return clamp_between(p, argument(p, "self", t), argument(p, "min_val", t),
                             argument(p, "max_val", t));
    case IR_P_clamp: {
        int x = argument(p, "self", t), low = optional(p, "min", t), high = optional(p, "max", t);
        return clamp_between(p, x, low, high);
    }
    case IR_P_clamp_min: return clamp_between(p, argument(p, "self", t), argument(p, "min", t), -1);
    case IR_P_clamp_max: return clamp_between(p, argument(p, "self", t), -1, argument(p, "max", t));
    case IR_P_silu: {
        int x = argument(p, "self", t);
        return OP2(mul, x, OP1(sigmoid, x));
    }
    case IR_P_mish: {
        int x = argument(p, "self", t);
        return emit_mish(p, x);
    }
    case IR_P_hardswish: {
        int x = argument(p, "self", t);
        int gate = clamp_between(p, OP2(add, x, NUMBER(3)), NUMBER(0), NUMBER(6));
        return OP2(mul, OP2(mul, x, gate), NUMBER(1.0 / 6.0));
    }
    case IR_P_hardsigmoid: {
        int x = argument(p, "self", t);
        int gate = clamp_between(p, OP2(add, x, NUMBER(3)), NUMBER(0), NUMBER(6));
        return OP2(mul, gate, NUMBER(1.0 / 6.0));
    }
    case IR_P_log_sigmoid: { /* min(x, 0) - log1p(exp(-|x|)) */
        int x = argument(p, "self", t);
        return OP2(sub, OP2(minimum, NUMBER(0), x), OP1(log1p, OP1(exp, OP1(neg, OP1(abs, x)))));
    }
    case IR_P_gelu: return emit_gelu(p);
    case IR_P_elu: return emit_elu(p, number(p, "alpha"), number(p, "scale"), number(p, "input_scale"));
    case IR_P_celu: {
        double alpha = number(p, "alpha");
        return emit_elu(p, alpha, 1, alpha == 0 ? 1 : 1 / alpha);
    }
    case IR_P_selu: return emit_elu(p, 1.6732632423543772848, 1.0507009873554804934, 1);
    case IR_P_leaky_relu: {
        int x = argument(p, "self", t);
        return OP3(select, OP2(gt, x, NUMBER(0)), x, OP2(mul, x, argument(p, "negative_slope", t)));
    }
    case IR_P_softplus: {
        int x = argument(p, "self", t);
        return emit_softplus(p, x, number(p, "beta"), number(p, "threshold"));
    }
    case IR_P_softshrink: {
        int x = argument(p, "self", t), d = argument(p, "lambd", t), zero = NUMBER(0);
        int low = OP3(select, OP2(lt, x, OP1(neg, d)), OP2(add, x, d), OP2(mul, x, zero));
        return OP3(select, OP2(gt, x, d), OP2(sub, x, d), low);
    }
    case IR_P_hardshrink: {
        int x = argument(p, "self", t), d = argument(p, "lambd", t);
        int inside = OP2(and, OP2(ge, x, OP1(neg, d)), OP2(le, x, d));
        return OP3(select, inside, NUMBER(0), x);
    }
    case IR_P_threshold: {
        int x = argument(p, "self", t);
        return OP3(select, OP2(le, x, argument(p, "threshold", t)), argument(p, "value", t), x);
    }
    case IR_P_isnan: case IR_P_isinf: case IR_P_isfinite: {
        const ir_value *self = p->op->operands[0];
        rt_dtype from = self->type->dtype;
        if (!rt_dtype_is_float(from))
            return fail(p, "not a float");
        int x = argument(p, "self", from);
        if (ir_pointwise_of(p->op) == IR_P_isnan)
            return OP1(isnan, x);
        int infinity = kn_constant_number(K, from, HUGE_VAL);
        return ir_pointwise_of(p->op) == IR_P_isinf ? OP2(eq, OP1(abs, x), infinity)
                                         : OP2(lt, OP1(abs, x), infinity);
    }
    case IR_P_logical_not: return OP1(not, argument(p, "self", RT_bool));
    case IR_P_bitwise_not: return t == RT_bool ? OP1(not, argument(p, "self", t)) : unary_code(p, KN_invert);
    case IR_P_add: {
        int x = argument(p, "self", t), y = scaled(p, "other", "alpha", t);
        return OP2(add, x, y);
    }
    case IR_P_sub: {
        int x = argument(p, "self", t), y = scaled(p, "other", "alpha", t);
        return OP2(sub, x, y);
    }
    case IR_P_rsub: {
        int y = argument(p, "other", t), x = scaled(p, "self", "alpha", t);
        return OP2(sub, y, x);
    }
    case IR_P_mul: return binary_code(p, KN_mul, "self", "other");
    case IR_P_div:
        if (ir_core_operand(l->ir, p->op, "rounding_mode") &&
            !lw_is_none(ir_core_operand(l->ir, p->op, "rounding_mode")))
            return fail(p, "a rounded division");
        return binary_code(p, KN_div, "self", "other");
    case IR_P_max: case IR_P_maximum: return binary_code(p, KN_maximum, "self", "other");
    case IR_P_min: case IR_P_minimum: return binary_code(p, KN_minimum, "self", "other");
    case IR_P_eq: return compare(p, KN_eq);
    case IR_P_ne: return compare(p, KN_ne);
    case IR_P_lt: return compare(p, KN_lt);
    case IR_P_le: return compare(p, KN_le);
    case IR_P_gt: return compare(p, KN_gt);
    case IR_P_ge: return compare(p, KN_ge);
    case IR_P_logical_and: return logical(p, KN_and);
    case IR_P_logical_or: return logical(p, KN_or);
    case IR_P_logical_xor: return logical(p, KN_xor);
    case IR_P_bitwise_and: case IR_P___and__: return binary_code(p, KN_and, "self", "other");
    case IR_P_bitwise_or: case IR_P___or__: return binary_code(p, KN_or, "self", "other");
    case IR_P_bitwise_xor: case IR_P___xor__: return binary_code(p, KN_xor, "self", "other");
    case IR_P_pow: return emit_pow(p);
    case IR_P_where: {
        int c = argument(p, "condition", RT_bool);
        int x = argument(p, "self", t), y = argument(p, "other", t);
        return OP3(select, c, x, y);
    }
    case IR_P_masked_fill: {
        int c = argument(p, "mask", RT_bool);
        int v = argument(p, "value", t), x = argument(p, "self", t);
        return OP3(select, c, v, x);
    }
    case IR_P_lerp: { /* PyTorch's two forms, exact at both ends */
        int a = argument(p, "self", t), b = argument(p, "end", t), w = argument(p, "weight", t);
        int d = OP2(sub, b, a), one = NUMBER(1);
        int low = OP2(add, a, OP2(mul, w, d));
        int high = OP2(sub, b, OP2(mul, d, OP2(sub, one, w)));
        return OP3(select, OP2(lt, OP1(abs, w), NUMBER(0.5)), low, high);
    }
    case IR_P_addcmul: {
        int x = argument(p, "self", t), a = scaled(p, "tensor1", "value", t);
        return OP2(add, x, OP2(mul, a, argument(p, "tensor2", t)));
    }
    case IR_P_addcdiv: {
        int x = argument(p, "self", t), a = scaled(p, "tensor1", "value", t);
        return OP2(add, x, OP2(div, a, argument(p, "tensor2", t)));
    }
    case IR_P_batch_norm: return emit_batch_norm(p);
    case IR_P__quantize_bytes: return emit_quantize_bytes(p);
    case IR_P__dequantize_bytes: return emit_dequantize_bytes(p);
    case IR_P__requantize: return emit_requantize(p);
    case IR_P__scale_sums: return emit_scale_sums(p);
    case IR_P_COUNT: break;
    }
    return fail(p, "no kernel form");
}

int lw_pointwise(lowering *l, const ir_op *op, const lw_map *map) {
    if (op->opcode != IR_OP_CORE || op->result_count != 1 || op->operand_count == 0 ||
        op->results[0]->type->kind != IR_TENSOR)
        return lw_fail(l, op, "no kernel form");
    rt_dtype type = op->results[0]->type->dtype;
    if (type == RT_float16 || type == RT_bfloat16)
        return lw_fail(l, op, "half precision rounds after each operator");
    pointwise p = {.l = l, .op = op, .map = map, .result = type};
    int node = lower(&p);
    if (p.failed || l->status || node < 0)
        return l->status ? -1 : lw_fail(l, op, "no kernel form");
    return kn_cast(l->k, node, type);
}

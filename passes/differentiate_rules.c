/* passes/differentiate_rules.c - the formula of each operator, as operators.
 *
 * g is the gradient of the result y; a formula gives that of an operand. Formulas are PyTorch's
 * (tools/autograd/derivatives.yaml), in terms of operators that kernels hold. */
#include "passes/differentiate.h"

#define is_op differ_is_op

/* The type from the row's own rule, so that later formulas know ranks. */
static void infer(differ_rule *r, ir_op *op) {
    rt_fact *args = TS_NEW_ARRAY(r->ctx->scratch, rt_fact, op->operand_count);
    rt_fact out = {.kind = RT_FACT_UNKNOWN, .dim = RT_DIM_UNKNOWN, .dtype = RT_DTYPE_UNKNOWN,
                   .rank = -1};
    if (op->result_count != 1)
        return;
    for (size_t i = 0; i < op->operand_count; i++)
        args[i] = ir_fact_of_value(r->m, r->ctx->scratch, op->operands[i]);
    rt_infer_context ic = {.arena = r->ctx->scratch, .algebra = ir_dim_algebra(r->m)};
    ts_status status = rt_op_get(op->core)->infer(&ic, args, op->operand_count, &out, 1);
    if (!status)
        op->results[0]->type = ir_type_from_fact(r->m, &out, op->results[0]->type);
    ts_status_release(status);
    op->results[0]->number = UINT32_MAX; /* made here: nobody else's memory */
}

void differ_add(differ_rule *r, ir_value *operand, ir_value *gradient) {
    if (!gradient)
        return;
    ir_value_map *map = r->adjoints;
    ir_value *before = ir_value_map_get(map, operand);
    if (before) {
        ir_value *operands[3] = {before, gradient, ir_build_int(r->b, 1)};
        gradient = ir_build_core1(r->b, rt_op_find(TS_STR("add.Tensor")), operands, 3);
        gradient->type = operand->type->kind == IR_TENSOR ? operand->type : gradient->type;
        gradient->number = UINT32_MAX;
    }
    ir_value_map_set(map, operand, gradient);
}

ir_value *differ_call(differ_rule *r, const char *name, ir_value *x, ir_value *y, ir_value *z) {
    ir_value *given[3] = {x, y, z};
    ir_op *op = pass_build_core(r->b, name, given, 3);
    infer(r, op);
    return op->results[0];
}

ir_value *differ_cast(differ_rule *r, ir_value *v, const ir_type *t) {
    if (v->type == t || ir_type_is_refinement(v->type, t))
        return v;
    ir_op *cast = ir_build_op(r->b, IR_OP_CAST, &v, 1, &t, 1);
    cast->type = t;
    cast->results[0]->number = UINT32_MAX;
    return cast->results[0];
}

static ts_status library_function(differ_rule *r, const char *name, ir_function **out) {
    *out = NULL;
    if (r->ctx->library)
        TS_TRY(r->ctx->library(r->ctx->library_user, ts_str_of(name), out));
    if (!*out)
        return ts_error_at(TS_ERR_UNSUPPORTED, r->d->at->place,
                           "the library has no function %s, which this gradient needs", name);
    ir_function_restore(r->m, *out); /* an earlier gradient was inlined since, and it dropped */
    return NULL;
}

static ir_value *build_call(differ_rule *r, ir_function *f, ir_value *const *operands, size_t count) {
    ir_value **given = TS_NEW_ARRAY(r->ctx->scratch, ir_value *, count + 1);
    for (size_t i = 0; i < count; i++) {
        const ir_type *wanted = f->body->parameters[i]->type;
        given[i] = ir_type_is_subtype(operands[i]->type, wanted) ? operands[i]
                                                                 : differ_cast(r, operands[i], wanted);
    }
    const ir_type *t = f->return_type;
    ir_op *call = ir_build_op(r->b, IR_OP_CALL, given, count, &t, 1);
    call->function = f;
    call->results[0]->number = UINT32_MAX;
    return call->results[0];
}

ts_status differ_call_library(differ_rule *r, const char *name, ir_value *const *operands, size_t count,
                              ir_value **out) {
    ir_function *f;
    *out = NULL;
    TS_TRY(library_function(r, name, &f));
    if (f->body->parameter_count != count)
        return ts_error_make(TS_ERR_INTERNAL, "the library's %s has %zu parameters, not %zu", name,
                             f->body->parameter_count, count);
    *out = build_call(r, f, operands, count);
    return NULL;
}

static ir_value *ints(differ_rule *r, const int64_t *items, size_t count) {
    ir_value *values[RT_MAX_RANK];
    for (size_t i = 0; i < count; i++)
        values[i] = ir_build_int(r->b, items[i]);
    const ir_type *t = ir_type_list(r->m, ir_type_simple(r->m, IR_INT));
    return ir_build_op(r->b, IR_OP_LIST, values, count, &t, 1)->results[0];
}

static bool has_constant_sizes(const ir_type *t) {
    bool constant = t->kind == IR_TENSOR && t->dtype != RT_DTYPE_UNKNOWN && t->rank >= 0;
    for (int i = 0; constant && i < t->rank; i++)
        constant = rt_dim_is_constant(t->dims[i]);
    return constant;
}

const ir_type *differ_adjoint_type(differ_rule *r, const ir_value *v) {
    if (ir_value_map_get(r->d->unset, v) && !has_constant_sizes(v->type))
        return ir_type_any_tensor(r->m);
    return ir_type_without_none(r->m, v->type);
}

ts_status differ_zero(differ_rule *r, ir_value *v, ir_value **out) {
    if (has_constant_sizes(v->type)) {
        int64_t dims[RT_MAX_RANK];
        for (int i = 0; i < v->type->rank; i++)
            dims[i] = v->type->dims[i];
        ir_value *sizes = ints(r, dims, (size_t)v->type->rank);
        sizes->number = UINT32_MAX;
        *out = differ_call(r, "zeros", sizes, ir_build_int(r->b, v->type->dtype), NULL);
        (*out)->type = v->type;
        return NULL;
    }
    if (ir_value_map_get(r->d->unset, v)) {
        *out = differ_call(r, "prim_zero_of", v, NULL, NULL);
        return NULL;
    }
    if (v->type->kind != IR_TENSOR)
        return differ_call_library(r, "_zero_of", &v, 1, out);
    *out = differ_call(r, "zeros_like", v, NULL, NULL);
    (*out)->type = v->type;
    return NULL;
}

#define CALL1(name, x) differ_call(r, name, x, NULL, NULL)
#define CALL2(name, x, y) differ_call(r, name, x, y, NULL)
#define CALL3(name, x, y, z) differ_call(r, name, x, y, z)
#define MUL(x, y) CALL2("mul.Tensor", x, y)
#define INT(i) ir_build_int(r->b, i)

static ir_value *as_shape_of(differ_rule *r, ir_value *g, ir_value *x) {
    return CALL2("reshape", g, CALL1("size", x));
}

/* The library's sum_to_size, which looks at the sizes at run time. */
static ts_status sum_at_run_time(differ_rule *r, ir_value *g, ir_value *x, ir_value **out) {
    ir_function *f = NULL;
    *out = NULL;
    if (r->ctx->library)
        TS_TRY(r->ctx->library(r->ctx->library_user, TS_STR("sum_to_size"), &f));
    if (!f || f->body->parameter_count != 2)
        return NULL;
    ir_function_restore(r->m, f);
    ir_value *operands[2] = {g, CALL1("size", x)};
    const ir_type *t = f->return_type;
    ir_op *call = ir_build_op(r->b, IR_OP_CALL, operands, 2, &t, 1);
    call->function = f;
    call->results[0]->number = UINT32_MAX;
    *out = differ_cast(r, call->results[0], x->type); /* it has x's sizes, whatever inference finds */
    return NULL;
}

/* Sums what broadcasting repeated. */
static ir_value *unbroadcast(differ_rule *r, ir_value *g, ir_value *x, bool *failed) {
    const ir_type *t = x->type, *u = g->type;
    if (t->kind != IR_TENSOR || u->kind != IR_TENSOR || t->rank < 0 || u->rank < 0 ||
        u->rank < t->rank) {
        *failed = true;
        return NULL;
    }
    int64_t dims[RT_MAX_RANK];
    size_t count = 0;
    int extra = u->rank - t->rank;
    for (int i = 0; i < u->rank; i++) {
        if (i < extra) {
            dims[count++] = i;
            continue;
        }
        rt_dim a = t->dims[i - extra], b = u->dims[i];
        if (a == 1 && b != 1)
            dims[count++] = i;
        else if (a != b || a == RT_DIM_UNKNOWN)
            *failed = true;
    }
    if (*failed)
        return NULL;
    if (t->dtype != RT_DTYPE_UNKNOWN && u->dtype != t->dtype)
        g = CALL2("to.dtype", g, INT(t->dtype));
    if (!count)
        return g;
    g = CALL3("sum.dim_IntList", g, ints(r, dims, count), ir_build_bool(r->b, true));
    return extra ? as_shape_of(r, g, x) : g;
}

static bool give_to(differ_rule *r, ir_value *x, ir_value *g) {
    bool failed = false;
    ir_value *fit = unbroadcast(r, g, x, &failed);
    if (failed) {
        const ir_type *t = x->type, *u = g->type;
        if (t->kind != IR_TENSOR || u->kind != IR_TENSOR || t->dtype != u->dtype ||
            t->dtype == RT_DTYPE_UNKNOWN)
            g = CALL2("type_as", g, x);
        ts_status status = sum_at_run_time(r, g, x, &fit);
        ts_status_release(status);
    }
    differ_add(r, x, fit);
    return fit != NULL;
}

static bool give(differ_rule *r, size_t operand, ir_value *g) {
    return give_to(r, r->op->operands[operand], g);
}

static ir_value *scaled(differ_rule *r, ir_value *g, const ir_value *alpha) {
    double a;
    if (ir_const_double(alpha, &a) && a == 1)
        return g;
    ir_value *copy = r->op->operands[2];
    if (ir_const_double(alpha, &a) || !differ_may_be_complex(r->op))
        return CALL2("mul.Scalar", g, copy);
    return CALL1("conj", CALL2("mul.Scalar", CALL1("conj", g), copy)); /* by the conjugate of alpha */
}

/* ---- arithmetic ---- */

static bool binary(differ_rule *r, bool *known) {
    ir_op *op = r->op;
    ir_value *g = r->g, *x = op->operands[0], *y = op->operand_count > 1 ? op->operands[1] : NULL;
    bool *w = r->wanted;
    *known = true;
    if (is_op(op, "add.Tensor"))
        return (!w[0] || give(r, 0, g)) && (!w[1] || give(r, 1, scaled(r, g, op->operands[2])));
    if (is_op(op, "sub.Tensor"))
        return (!w[0] || give(r, 0, g)) &&
               (!w[1] || give(r, 1, CALL1("neg", scaled(r, g, op->operands[2]))));
    if (is_op(op, "rsub.Scalar"))
        return give(r, 0, CALL1("neg", scaled(r, g, op->operands[2])));
    if (is_op(op, "add.Scalar") || is_op(op, "sub.Scalar"))
        return give(r, 0, g);
    if (is_op(op, "mul.Scalar") || is_op(op, "div.Scalar"))
        return give(r, 0, CALL2(is_op(op, "mul.Scalar") ? "mul.Scalar" : "div.Scalar", g, y));
    if (is_op(op, "mul.Tensor"))
        return (!w[0] || give(r, 0, MUL(g, y))) && (!w[1] || give(r, 1, MUL(g, x)));
    if (is_op(op, "div.Tensor")) {
        if (w[0] && !give(r, 0, CALL2("div.Tensor", g, y)))
            return false;
        if (!w[1])
            return true;
        ir_value *q = CALL2("div.Tensor", op->results[0], y);
        return give(r, 1, CALL1("neg", MUL(g, q)));
    }
    if (is_op(op, "pow.Tensor_Scalar")) {
        double n;
        if (!ir_const_double(y, &n))
            return false;
        int64_t i;
        ir_value *less = ir_const_int(y, &i) ? INT(i - 1) : ir_build_float(r->b, n - 1);
        if (n == 0)
            return give(r, 0, CALL1("zeros_like", x));
        return give(r, 0, MUL(CALL2("mul.Scalar", g, y), CALL2("pow.Tensor_Scalar", x, less)));
    }
    if (is_op(op, "where.self")) {
        ir_value *zero = CALL1("zeros_like", g);
        return (!w[1] || give(r, 1, CALL3("where.self", x, g, zero))) &&
               (!w[2] || give(r, 2, CALL3("where.self", x, zero, g)));
    }
    *known = false;
    return false;
}

static ir_value *unary(differ_rule *r) {
    ir_op *op = r->op;
    ir_value *g = r->g, *x = op->operands[0], *y = op->result_count ? op->results[0] : NULL;
    if (is_op(op, "neg"))
        return CALL1("neg", g);
    if (is_op(op, "exp"))
        return MUL(g, y);
    if (is_op(op, "log"))
        return CALL2("div.Tensor", g, x);
    if (is_op(op, "sin"))
        return MUL(g, CALL1("cos", x));
    if (is_op(op, "cos"))
        return CALL1("neg", MUL(g, CALL1("sin", x)));
    if (is_op(op, "tanh"))
        return MUL(g, CALL2("rsub.Scalar", MUL(y, y), INT(1)));
    if (is_op(op, "sigmoid"))
        return MUL(g, MUL(y, CALL2("rsub.Scalar", y, INT(1))));
    if (is_op(op, "sqrt"))
        return CALL2("div.Tensor", g, CALL2("mul.Scalar", y, INT(2)));
    if (is_op(op, "reciprocal"))
        return CALL1("neg", MUL(g, MUL(y, y)));
    if (is_op(op, "rsqrt"))
        return MUL(CALL2("mul.Scalar", g, ir_build_float(r->b, -0.5)), MUL(y, MUL(y, y)));
    if (is_op(op, "abs"))
        return MUL(g, CALL1(differ_may_be_complex(op) ? "sgn" : "sign", x));
    if (is_op(op, "clone") || is_op(op, "contiguous") || is_op(op, "requires_grad_") ||
        is_op(op, "alias"))
        return g;
    if (is_op(op, "triu") || is_op(op, "tril"))
        return CALL2(is_op(op, "triu") ? "triu" : "tril", g, op->operands[1]);
    if (is_op(op, "to.dtype") && x->type->kind == IR_TENSOR &&
        (rt_dtype_is_float(x->type->dtype) || rt_dtype_is_complex(x->type->dtype)))
        return CALL2("to.dtype", g, INT(x->type->dtype));
    return NULL;
}

/* ---- reductions ---- */

/* The gradient of a reduction with its dims back, as ones. */
static ir_value *restore_dims(differ_rule *r, ir_value *g, const ir_value *dims, bool keep) {
    int64_t at[RT_MAX_RANK];
    size_t count;
    const ir_type *t = r->op->operands[0]->type;
    if (keep || dims->type->kind == IR_NONE)
        return g;
    if (!ir_const_int_list(dims, at, RT_MAX_RANK, &count) || t->kind != IR_TENSOR)
        return NULL;
    for (int d = 0; count && d < RT_MAX_RANK; d++)
        for (size_t i = 0; i < count; i++) {
            if (at[i] < 0 && t->rank < 0 && count > 1)
                return NULL;
            int64_t n = at[i] < 0 && t->rank >= 0 ? at[i] + t->rank : at[i];
            if (n == d || (n < 0 && d == 0))
                g = CALL2("unsqueeze", g, INT(n));
        }
    return g;
}

static ir_value *reduction(differ_rule *r) {
    ir_op *op = r->op;
    ir_value *g = r->g, *x = op->operands[0], *y = op->result_count ? op->results[0] : NULL;
    bool keep = false;
    if (is_op(op, "sum"))
        return CALL2("expand_as", g, x);
    if (is_op(op, "mean"))
        return CALL2("div.Scalar", CALL2("expand_as", g, x), CALL1("numel", x));
    if (is_op(op, "sum.dim_IntList") || is_op(op, "mean.dim")) {
        if (!ir_const_bool(op->operands[2], &keep))
            return NULL;
        g = restore_dims(r, g, op->operands[1], keep);
        if (!g)
            return NULL;
        g = CALL2("expand_as", g, x);
        if (is_op(op, "sum.dim_IntList"))
            return g;
        return CALL2("div.Scalar", g,
                     CALL2("floordiv.int", CALL1("numel", x), CALL1("numel", y)));
    }
    return NULL;
}

/* ---- shapes and indexing ---- */

static ir_value *shape(differ_rule *r) {
    ir_op *op = r->op;
    ir_value *g = r->g, *x = op->operands[0], **o = op->operands;
    int64_t dims[RT_MAX_RANK], inverse[RT_MAX_RANK];
    size_t n;
    if (is_op(op, "view") || is_op(op, "reshape") || is_op(op, "flatten.using_ints") ||
        is_op(op, "unsqueeze") || is_op(op, "squeeze.dim") || is_op(op, "squeeze"))
        return as_shape_of(r, g, x);
    if (is_op(op, "t"))
        return CALL1("t", g);
    if (is_op(op, "transpose.int"))
        return CALL3("transpose.int", g, o[1], o[2]);
    if (is_op(op, "permute") && ir_const_int_list(o[1], dims, RT_MAX_RANK, &n)) {
        for (size_t i = 0; i < n; i++) {
            int64_t d = dims[i] < 0 ? dims[i] + (int64_t)n : dims[i];
            if (d < 0 || d >= (int64_t)n)
                return NULL;
            inverse[d] = (int64_t)i;
        }
        return CALL2("permute", g, ints(r, inverse, n));
    }
    if (is_op(op, "select.int")) {
        ir_value *operands[4] = {CALL1("zeros_like", x), g, o[1], o[2]};
        ir_op *made = ir_build_core(r->b, rt_op_find(TS_STR("select_scatter")), operands, 4);
        infer(r, made);
        return made->results[0];
    }
    if (is_op(op, "slice.Tensor")) {
        ir_value *operands[6] = {CALL1("zeros_like", x), g, o[1], o[2], o[3], o[4]};
        ir_op *made = ir_build_core(r->b, rt_op_find(TS_STR("slice_scatter")), operands, 6);
        infer(r, made);
        return made->results[0];
    }
    if (is_op(op, "gather")) {
        ir_value *operands[4] = {CALL1("zeros_like", x), o[1], o[2], g};
        ir_op *made = ir_build_core(r->b, rt_op_find(TS_STR("scatter_add")), operands, 4);
        infer(r, made);
        return made->results[0];
    }
    bool is_list = is_op(op, "prim_getitem.list"), is_item = is_list || is_op(op, "prim_getitem");
    if (is_item || is_op(op, "index.Tensor") || is_op(op, "index.Tensor_hacked_twin") ||
        is_op(op, "_unsafe_index.Tensor") || is_op(op, "_unsafe_index.Tensor_hacked_twin")) { /* items: where ranks were never known */
        ir_value *operands[4] = {CALL1("zeros_like", x), o[1], g, ir_build_bool(r->b, true)};
        ir_op *made = ir_build_core(r->b, is_list ? OP_prim_setitem_list : is_item ? OP_prim_setitem : OP_index_put, operands, 4);
        infer(r, made);
        return made->results[0];
    }
    return NULL;
}

/* ---- products ---- */

static ir_value *swapped(differ_rule *r, ir_value *x) {
    return CALL3("transpose.int", x, INT(-1), INT(-2));
}

static bool products(differ_rule *r, bool *known) {
    ir_op *op = r->op;
    ir_value *g = r->g, *x = op->operands[0], *y = op->operand_count > 1 ? op->operands[1] : NULL;
    bool *w = r->wanted;
    *known = is_op(op, "matmul") || is_op(op, "mm") || is_op(op, "linear");
    if (!*known)
        return false;
    int a = x->type->rank, b = y->type->rank;
    if (a < 1 || b < 1)
        return false;
    if (is_op(op, "linear")) {
        if (b != 2 || a < 2)
            return false;
        if (w[0] && !give(r, 0, CALL2("matmul", g, y)))
            return false;
        ir_value *rows = g, *in = x;
        if (a > 2 && (w[1] || w[2])) {
            rows = CALL3("flatten.using_ints", g, INT(0), INT(-2));
            in = CALL3("flatten.using_ints", x, INT(0), INT(-2));
        }
        if (w[1] && !give(r, 1, CALL2("matmul", CALL1("t", rows), in)))
            return false;
        int64_t first = 0;
        return !w[2] || give(r, 2, CALL2("sum.dim_IntList", rows, ints(r, &first, 1)));
    }
    if (a == 1 && b == 1)
        return (!w[0] || give(r, 0, MUL(g, y))) && (!w[1] || give(r, 1, MUL(g, x)));
    if (b == 1) { /* matrices by a vector */
        ir_value *column = CALL2("unsqueeze", g, INT(-1));
        if (w[0] && !give(r, 0, MUL(column, y)))
            return false;
        return !w[1] ||
               give(r, 1, CALL2("squeeze.dim", CALL2("matmul", swapped(r, x), column), INT(-1)));
    }
    if (a == 1) { /* a vector by a matrix */
        if (b != 2)
            return false;
        return (!w[0] || give(r, 0, CALL2("matmul", y, g))) &&
               (!w[1] || give(r, 1, MUL(CALL2("unsqueeze", x, INT(-1)),
                                        CALL2("unsqueeze", g, INT(0)))));
    }
    return (!w[0] || give(r, 0, CALL2("matmul", g, swapped(r, y)))) &&
           (!w[1] || give(r, 1, CALL2("matmul", swapped(r, x), g)));
}

/* ---- formulas of the library ---- */

typedef struct derivative {
    const char *op, *function, *operands;
    bool broadcasts;
} derivative;

static const derivative table[] = {
#define DERIVATIVE(op, function, operands, broadcasts) {op, #function, operands, broadcasts},
#include "passes/derivatives.def"
};

static const derivative *find_derivative(const ir_op *op) {
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (is_op(op, table[i].op))
            return &table[i];
    return NULL;
}

/* "grad1": 1 behind the word, 0 for the word alone, -1 for another name. */
static int number_behind(ts_str name, const char *word) {
    size_t length = strlen(word);
    if (!ts_str_starts_with(name, word) || name.length > length + 1)
        return -1;
    if (name.length == length)
        return 0;
    char digit = name.data[length];
    return digit >= '1' && digit <= '9' ? digit - '0' : -1;
}

/* A parameter of a formula by its name: grad, grad1 ... of the results, grads of a list, result,
 * result1 ..., or an argument of the operator. */
static ts_status argument_of(differ_rule *r, const ir_function *f, size_t i, ir_value **out) {
    ir_op *op = r->op;
    const ir_schema *s = ir_schema_of(r->m, op->core);
    ts_str name = f->parameter_names[i];
    if (ts_str_is(name, "grads"))
        return differ_list_adjoint(r, op->results[0], out);
    int at = number_behind(name, "grad");
    if (at >= 0 && (size_t)at < op->result_count) {
        *out = ir_value_map_get(r->adjoints, op->results[at]);
        if (!*out && f->body->parameters[i]->type->kind == IR_TENSOR)
            return differ_zero(r, op->results[at], out);
        if (!*out)
            *out = ir_build_none(r->b);
        return NULL;
    }
    at = number_behind(name, "result");
    if (at >= 0 && (size_t)at < op->result_count) {
        *out = op->results[at];
        return NULL;
    }
    for (size_t k = 0; k < s->arg_count && k < op->operand_count; k++)
        if (ts_str_equal(s->args[k].name, name)) {
            *out = op->operands[k];
            return NULL;
        }
    return ts_error_make(TS_ERR_INTERNAL, "%.*s has no argument %.*s, which its derivative reads",
                         TS_STR_ARG(rt_op_name(op->core)), TS_STR_ARG(name));
}

static ts_status give_part(differ_rule *r, size_t operand, ir_value *g, bool broadcasts) {
    ir_value *x = r->op->operands[operand];
    if (differ_is_list(x))
        return differ_add_list(r, x, g);
    if (!broadcasts) {
        differ_add(r, x, differ_cast(r, g, ir_type_without_none(r->m, x->type)));
        return NULL;
    }
    g = differ_cast(r, g, r->op->results[0]->type);
    return give_to(r, x, g) ? NULL : differ_unsupported(r->op);
}

static ts_status apply_library(differ_rule *r, bool *out_done) {
    ir_op *op = r->op;
    const derivative *row = find_derivative(op);
    *out_done = row != NULL;
    if (!row)
        return NULL;
    const ir_schema *s = ir_schema_of(r->m, op->core);
    ir_function *f;
    TS_TRY(library_function(r, row->function, &f));
    size_t count = f->body->parameter_count;
    ir_value **operands = TS_NEW_ARRAY(r->ctx->scratch, ir_value *, count + 1);
    for (size_t i = 0; i < count; i++)
        TS_TRY(argument_of(r, f, i, &operands[i]));
    ir_value *all = build_call(r, f, operands, count);
    bool *given = TS_NEW_ARRAY(r->ctx->scratch, bool, op->operand_count + 1);
    const char *word = row->operands;
    for (int64_t part = 0; *word; part++) {
        bool has_none = *word == '!';
        word += has_none;
        size_t length = strcspn(word, " "), k = 0;
        while (k < s->arg_count && !ts_str_equal(s->args[k].name, (ts_str){word, length}))
            k++;
        word += length + (word[length] == ' ');
        if (k >= op->operand_count)
            return ts_error_make(TS_ERR_INTERNAL, "the derivative of %s names an argument it has not", row->op);
        given[k] = true;
        part -= has_none;
        if (!r->wanted[k] || has_none)
            continue;
        ir_value *g = all;
        if (f->return_type->kind == IR_TUPLE) {
            const ir_type *t = f->return_type->args[part];
            ir_op *get = ir_build_op(r->b, IR_OP_TUPLE_GET, &all, 1, &t, 1);
            get->integer = part;
            g = get->results[0];
            g->number = UINT32_MAX;
        }
        TS_TRY(give_part(r, k, g, row->broadcasts));
    }
    for (size_t k = 0; k < op->operand_count; k++)
        if (r->wanted[k] && !given[k])
            return ts_error_at(TS_ERR_UNSUPPORTED, op->place,
                               "the derivative of %.*s with respect to %.*s is not supported yet",
                               TS_STR_ARG(rt_op_name(op->core)), TS_STR_ARG(s->args[k].name));
    return NULL;
}

/* ---- operators that become functions of simpler ones first ---- */

typedef struct opening {
    const char *op, *function;
} opening;

static const opening openings[] = {
#define OPENED(op, function) {op, #function},
#include "passes/derivatives.def"
};

static const opening *find_opening(const ir_op *op) {
    for (size_t i = 0; op->opcode == IR_OP_CORE && i < sizeof openings / sizeof openings[0]; i++)
        if (is_op(op, openings[i].op))
            return &openings[i];
    return NULL;
}

static ts_status open_one(differ_rule *r, ir_op *op, const char *name) {
    ir_function *f;
    TS_TRY(library_function(r, name, &f));
    if (f->body->parameter_count > op->operand_count)
        return ts_error_make(TS_ERR_INTERNAL, "the library's %s has more parameters than its operator", name);
    ir_value *all = build_call(r, f, op->operands, f->body->parameter_count);
    ir_value **results = &all;
    if (op->result_count > 1) {
        ir_op *unpack = ir_build_op(r->b, IR_OP_TUPLE_UNPACK, &all, 1, f->return_type->args, op->result_count);
        results = unpack->results;
    }
    for (size_t j = 0; j < op->result_count; j++) {
        results[j]->number = UINT32_MAX;
        ir_replace_uses(r->m, op->results[j], differ_cast(r, results[j], op->results[j]->type));
    }
    ir_op_remove(op);
    pass_count(r->ctx, "opened", 1);
    return NULL;
}

ts_status differ_open(differ *d, bool *out_any) {
    *out_any = false;
    for (size_t i = 0; i < d->ops.count; i++) {
        ir_op *op = d->ops.items[i];
        const opening *row = d->reached[op->number] ? find_opening(op) : NULL;
        bool any = false;
        for (size_t j = 0; row && j < op->result_count; j++)
            any |= differ_depends(d, op->results[j]);
        if (!any)
            continue;
        ir_builder b = pass_before(d->m, op);
        differ_rule rule = {.d = d, .ctx = d->ctx, .m = d->m, .b = &b};
        TS_TRY(open_one(&rule, op, row->function));
        *out_any = true;
    }
    return NULL;
}

static ts_status apply_formula(differ_rule *r, bool *out_done) {
    ir_op *op = r->op;
    bool known;
    if (!r->g) {
        TS_TRY(apply_library(r, out_done));
        return NULL;
    }
    *out_done = binary(r, &known);
    if (*out_done)
        return NULL;
    if (is_op(op, "expand_as") || is_op(op, "expand")) {
        *out_done = give(r, 0, r->g);
        return NULL;
    }
    *out_done = products(r, &known);
    if (*out_done)
        return NULL;
    TS_TRY(apply_library(r, out_done));
    if (*out_done)
        return NULL;
    ir_value *g = unary(r);
    g = g ? g : reduction(r);
    g = g ? g : shape(r);
    if (g) {
        const ir_type *t = op->operands[0]->type, *u = g->type;
        bool same = t->kind == IR_TENSOR && u->kind == IR_TENSOR && t->dtype == u->dtype &&
                     t->dtype != RT_DTYPE_UNKNOWN;
        differ_add(r, op->operands[0], same ? g : CALL2("type_as", g, op->operands[0]));
    }
    *out_done = g != NULL;
    return NULL;
}

ts_status differ_apply(differ_rule *r, bool *out_done) {
    ir_op *op = r->op;
    *out_done = true;
    if (op->opcode == IR_OP_CAST || op->opcode == IR_OP_CHECK_CAST) {
        *out_done = r->g != NULL;
        differ_add(r, op->operands[0], r->g);
        return NULL;
    }
    *out_done = op->opcode == IR_OP_CORE;
    if (!*out_done)
        return NULL;
    return differ_may_be_complex(op) ? differ_apply_complex(r, apply_formula, out_done)
                                           : apply_formula(r, out_done);
}

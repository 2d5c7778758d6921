/* passes/differentiate_rules.c - the formula of each operator, as operators.
 *
 * g is the gradient of the result y; a formula gives that of an operand. Formulas are PyTorch's
 * (tools/autograd/derivatives.yaml), in terms of operators that kernels hold. */
#include "passes/differentiate.h"

static bool is_op(const ir_op *op, const char *name) {
    return op && op->opcode == IR_OP_CORE && ts_str_is(rt_op_name(op->core), name);
}

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

ir_value *differ_call(differ_rule *r, const char *name, ir_value *x, ir_value *y, ir_value *z) {
    ir_value *given[3] = {x, y, z};
    ir_op *op = pass_build_core(r->b, name, given, 3);
    infer(r, op);
    return op->results[0];
}

#define CALL1(name, x) differ_call(r, name, x, NULL, NULL)
#define CALL2(name, x, y) differ_call(r, name, x, y, NULL)
#define CALL3(name, x, y, z) differ_call(r, name, x, y, z)
#define MUL(x, y) CALL2("mul.Tensor", x, y)
#define INT(i) ir_build_int(r->b, i)

static ir_value *ints(differ_rule *r, const int64_t *items, size_t count) {
    ir_value *values[RT_MAX_RANK];
    for (size_t i = 0; i < count; i++)
        values[i] = INT(items[i]);
    const ir_type *t = ir_type_list(r->m, ir_type_simple(r->m, IR_INT));
    return ir_build_op(r->b, IR_OP_LIST, values, count, &t, 1)->results[0];
}

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
    ir_value *operands[2] = {g, CALL1("size", x)};
    const ir_type *t = f->return_type;
    ir_op *call = ir_build_op(r->b, IR_OP_CALL, operands, 2, &t, 1);
    call->function = f;
    call->results[0]->number = UINT32_MAX;
    *out = call->results[0];
    if (ir_type_is_refinement(x->type, t)) { /* it has x's sizes, whatever inference finds */
        ir_op *cast = ir_build_op(r->b, IR_OP_CAST, out, 1, &x->type, 1);
        cast->type = x->type;
        cast->results[0]->number = UINT32_MAX;
        *out = cast->results[0];
    }
    return NULL;
}

/* Sums what broadcasting repeated. */
static ir_value *unbroadcast(differ_rule *r, ir_value *g, ir_value *x, bool *failed) {
    const ir_type *t = x->type, *u = g->type;
    if (t == u)
        return g;
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
        ts_status status = sum_at_run_time(r, g, x, &fit);
        ts_status_release(status);
    }
    differ_add(r, x, fit);
    return fit != NULL;
}

static bool give(differ_rule *r, size_t operand, ir_value *g) {
    return give_to(r, r->op->operands[operand], g);
}

/* a, b = chunk(x, 2): the gradient of x is those of the parts, one behind the other; a part that is
 * not used has zeros. a, b = broadcast_tensors([x, y]): each has its own. */
static bool unpacked(differ_rule *r) {
    ir_op *from = r->op->operands[0]->def;
    size_t count = r->op->result_count;
    if (!from || from->opcode != IR_OP_CORE || from->operand_count == 0)
        return false;
    if (is_op(from, "broadcast_tensors")) {
        ir_op *list = from->operands[0]->def;
        if (!list || list->opcode != IR_OP_LIST || list->operand_count != count)
            return false;
        for (size_t j = 0; j < count; j++) {
            ir_value *g = ir_value_map_get(r->adjoints, r->op->results[j]);
            if (g && !give_to(r, list->operands[j], g))
                return false;
        }
        return true;
    }
    ts_str name = rt_op_name(from->core);
    bool is_unbind = is_op(from, "unbind.int");
    if (!is_unbind && !ts_str_starts_with(name, "split") && !ts_str_starts_with(name, "unsafe_split") &&
        !is_op(from, "chunk") && !is_op(from, "unsafe_chunk") && !is_op(from, "tensor_split.sections") &&
        !is_op(from, "tensor_split.indices"))
        return false;
    ir_value **parts = TS_NEW_ARRAY(r->ctx->scratch, ir_value *, count + 1);
    for (size_t j = 0; j < count; j++) {
        ir_value *part = r->op->results[j], *g = ir_value_map_get(r->adjoints, part);
        parts[j] = g ? g : CALL1("zeros_like", part);
        if (!g)
            parts[j]->type = part->type;
    }
    const ir_type *t = ir_type_list(r->m, ir_type_any_tensor(r->m));
    ir_value *list = ir_build_op(r->b, IR_OP_LIST, parts, count, &t, 1)->results[0];
    list->number = UINT32_MAX;
    ir_value *g = CALL2(is_unbind ? "stack" : "cat", list, from->operands[from->operand_count - 1]);
    g->type = from->operands[0]->type;
    differ_add(r, from->operands[0], g);
    return true;
}

static ir_value *scaled(differ_rule *r, ir_value *g, const ir_value *alpha) {
    double a;
    if (ir_const_double(alpha, &a) && a == 1)
        return g;
    ir_value *copy = r->op->operands[2];
    return CALL2("mul.Scalar", g, copy);
}

static ir_value *dtype_like(differ_rule *r, ir_value *mask, const ir_value *x) {
    if (x->type->kind == IR_TENSOR && x->type->dtype != RT_DTYPE_UNKNOWN)
        return CALL2("to.dtype", mask, INT(x->type->dtype));
    return mask;
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
    if (is_op(op, "relu"))
        return MUL(g, dtype_like(r, CALL2("gt.Scalar", y, INT(0)), x));
    if (is_op(op, "sqrt"))
        return CALL2("div.Tensor", g, CALL2("mul.Scalar", y, INT(2)));
    if (is_op(op, "reciprocal"))
        return CALL1("neg", MUL(g, MUL(y, y)));
    if (is_op(op, "rsqrt"))
        return MUL(CALL2("mul.Scalar", g, ir_build_float(r->b, -0.5)), MUL(y, MUL(y, y)));
    if (is_op(op, "abs"))
        return MUL(g, CALL1("sign", x));
    if (is_op(op, "clone") || is_op(op, "contiguous") || is_op(op, "requires_grad_") ||
        is_op(op, "alias"))
        return g;
    if (is_op(op, "triu") || is_op(op, "tril"))
        return CALL2(is_op(op, "triu") ? "triu" : "tril", g, op->operands[1]);
    if (is_op(op, "clamp_min"))
        return MUL(g, dtype_like(r, CALL2("ge.Scalar", x, op->operands[1]), x));
    if (is_op(op, "clamp")) {
        if (op->operands[1]->type->kind != IR_NONE)
            g = MUL(g, dtype_like(r, CALL2("ge.Scalar", x, op->operands[1]), x));
        if (op->operands[2]->type->kind != IR_NONE)
            g = MUL(g, dtype_like(r, CALL2("le.Scalar", x, op->operands[2]), x));
        return g;
    }
    if (is_op(op, "to.dtype") && x->type->kind == IR_TENSOR && rt_dtype_is_float(x->type->dtype))
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
    bool log = is_op(op, "log_softmax.int");
    if (log || is_op(op, "softmax.int")) {
        const ir_type *t = ir_type_list(r->m, ir_type_simple(r->m, IR_INT));
        ir_value *dim =
            ir_build_op(r->b, IR_OP_LIST, &op->operands[1], 1, &t, 1)->results[0];
        ir_value *yes = ir_build_bool(r->b, true);
        if (log)
            return CALL2("sub.Tensor", g,
                         MUL(CALL1("exp", y), CALL3("sum.dim_IntList", g, dim, yes)));
        ir_value *gy = MUL(g, y);
        return CALL2("sub.Tensor", gy, MUL(y, CALL3("sum.dim_IntList", gy, dim, yes)));
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
    if (is_op(op, "index.Tensor")) {
        ir_value *operands[4] = {CALL1("zeros_like", x), o[1], g, ir_build_bool(r->b, true)};
        ir_op *made = ir_build_core(r->b, rt_op_find(TS_STR("index_put")), operands, 4);
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

ts_status differ_apply(differ_rule *r, bool *out_done) {
    ir_op *op = r->op;
    bool known;
    *out_done = true;
    if (op->opcode == IR_OP_CAST) {
        differ_add(r, op->operands[0], r->g);
        return NULL;
    }
    if (op->opcode == IR_OP_LIST_UNPACK) {
        *out_done = unpacked(r);
        return NULL;
    }
    if (op->opcode != IR_OP_CORE) {
        *out_done = false;
        return NULL;
    }
    *out_done = binary(r, &known);
    if (known)
        return NULL;
    if (is_op(op, "expand_as") || is_op(op, "expand")) {
        *out_done = give(r, 0, r->g);
        return NULL;
    }
    *out_done = products(r, &known);
    if (known)
        return NULL;
    ir_value *g = unary(r);
    g = g ? g : reduction(r);
    g = g ? g : shape(r);
    if (g)
        differ_add(r, op->operands[0], g);
    *out_done = g != NULL;
    return NULL;
}

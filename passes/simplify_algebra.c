/* passes/simplify_algebra.c - replaces expressions by equal, cheaper ones.
 *
 *   x * 1, x / 1, x - 0, x ** 1          =>  x          (bit for bit; x + 0 only for integers)
 *   x ** 2, x ** 3, x ** 0.5, x ** -1    =>  x*x, x*x*x, sqrt, reciprocal, as PyTorch computes them
 *   to(x, its own dtype), detach, alias  =>  x
 *   to(to(x, wider), back)               =>  x
 *   view(view(x, a), b)                  =>  view(x, b)
 *   transpose twice, permute to the same order, a slice or view or expand of everything => x
 *   matmul(x, t(w)), addmm(b, x, t(w))   =>  linear(x, w, b)
 *   view(addmm(b, view(x, [-1, k]), w), [..., n])  =>  matmul(x, w) + b, where x has these leading dims
 *   _convolution(..., transposed, ...)   =>  conv1d to conv3d, conv_transpose1d to 3d
 *   x * max(n, f), an int and a float    =>  x * float(max(n, f)) where x has floats
 *   the same on ints: n + 0, n * 1, n - 0, n // 1
 *   if c {yield n - k} else {yield n}    =>  n - (if c {yield k} else {yield 0}); n + k alike
 *
 * A result that was fresh memory and becomes its operand must not be written, nor its operand, nor
 * handed to the caller. Views stay views of the same memory, so for them nothing changes. */
#include "ir/strided_view.h"
#include "passes/alias.h"

typedef struct simplifier {
    pass_context *ctx;
    ir_module *m;
    pass_alias *alias;
} simplifier;

static bool is_op(const ir_op *op, const char *name) {
    return op && op->opcode == IR_OP_CORE && ts_str_is(rt_op_name(op->core), name);
}

static void replace_with(simplifier *s, ir_op *op, ir_value *v) {
    pass_replace(s->m, op->results[0], v);
    ir_op_remove(op);
    pass_count(s->ctx, "replaced", 1);
}

/* The fresh result may become its operand. */
static bool may_share(simplifier *s, const ir_op *op, const ir_value *x) {
    const ir_value *r = op->results[0];
    if (r->type->kind != IR_TENSOR)
        return true;
    return pass_is_stable(s->alias, x) && !pass_is_written(s->alias, r) &&
           !pass_is_returned(s->alias, r) && !pass_is_reshaped(s->alias, x) &&
           !pass_is_reshaped(s->alias, r);
}

static bool same_known_type(const ir_value *a, const ir_value *b) {
    const ir_type *t = a->type, *u = b->type;
    if (t->kind != IR_TENSOR || u->kind != IR_TENSOR || t->dtype == RT_DTYPE_UNKNOWN ||
        t->dtype != u->dtype || t->rank < 0 || t->rank != u->rank)
        return false;
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] == RT_DIM_UNKNOWN || t->dims[i] != u->dims[i])
            return false;
    return true;
}

/* ---- arithmetic ---- */

static const struct {
    const char *name;
    double neutral;
    bool integers_only; /* -0.0 + 0 is 0.0 */
} neutrals[] = {
    {"mul.Scalar", 1, false}, {"div.Scalar", 1, false}, {"sub.Scalar", 0, false},
    {"add.Scalar", 0, true},  {"pow.Tensor_Scalar", 1, false},
    {"mul.Tensor", 1, false}, {"div.Tensor", 1, false},
};

static bool number_of(const ir_value *v, double *out) {
    rt_value c;
    if (ir_const_double(v, out))
        return true;
    if (!ir_const_value(v, &c) || c.tag != RT_TAG_TENSOR || c.as.tensor->rank != 0 ||
        rt_dtype_is_complex((rt_dtype)c.as.tensor->dtype))
        return false;
    *out = rt_load_double((rt_dtype)c.as.tensor->dtype, c.as.tensor->data);
    return true;
}

static bool drop_neutral(simplifier *s, ir_op *op) {
    for (size_t i = 0; i < sizeof neutrals / sizeof neutrals[0]; i++) {
        double n;
        if (!is_op(op, neutrals[i].name) || !number_of(op->operands[1], &n) ||
            n != neutrals[i].neutral)
            continue;
        ir_value *x = op->operands[0];
        if (!same_known_type(x, op->results[0]) || !may_share(s, op, x) ||
            (neutrals[i].integers_only && !rt_dtype_is_integral(x->type->dtype)))
            return false;
        replace_with(s, op, x);
        return true;
    }
    return false;
}

static bool drop_neutral_int(simplifier *s, ir_op *op) {
    static const struct {
        const char *name;
        int64_t neutral;
        bool commutes;
    } rows[] = {{"add.int", 0, true},
                {"sub.int", 0, false},
                {"mul.int", 1, true},
                {"floordiv.int", 1, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t n;
        if (!is_op(op, rows[i].name))
            continue;
        if (ir_const_int(op->operands[1], &n) && n == rows[i].neutral) {
            replace_with(s, op, op->operands[0]);
            return true;
        }
        if (rows[i].commutes && ir_const_int(op->operands[0], &n) && n == rows[i].neutral) {
            replace_with(s, op, op->operands[1]);
            return true;
        }
    }
    return false;
}

static ir_value *unary(simplifier *s, ir_builder *b, const char *name, ir_value *x,
                       const ir_value *like) {
    rt_op core = rt_op_find(ts_str_of(name));
    if (core == OP_COUNT || ir_schema_of(s->m, core)->arg_count != 1)
        return NULL;
    ir_value *r = ir_build_core1(b, core, &x, 1);
    r->type = like->type;
    r->number = like->number;
    return r;
}

static ir_value *product(simplifier *s, ir_builder *b, ir_value *x, ir_value *y,
                         const ir_value *like) {
    rt_op core = rt_op_find(TS_STR("mul.Tensor"));
    if (core == OP_COUNT)
        return NULL;
    ir_value *operands[2] = {x, y};
    ir_value *r = ir_build_core1(b, core, operands, 2);
    (void)s;
    r->type = like->type;
    r->number = like->number;
    return r;
}

/* As PyTorch's own kernel does for these exponents (aten/native/cpu/PowKernel). */
static bool expand_power(simplifier *s, ir_op *op) {
    double n;
    if (!is_op(op, "pow.Tensor_Scalar") || !ir_const_double(op->operands[1], &n))
        return false;
    ir_value *x = op->operands[0], *r = op->results[0], *made = NULL;
    if (!same_known_type(x, r) || !rt_dtype_is_float(x->type->dtype))
        return false;
    ir_builder b = pass_before(s->m, op);
    if (n == 2 || (n == 3 && x->type->dtype != RT_float16)) { /* a cube of halves is rounded once */
        made = product(s, &b, x, x, r);
        if (made && n == 3)
            made = product(s, &b, made, x, r);
    } else if (n == 0.5) {
        made = unary(s, &b, "sqrt", x, r);
    } else if (n == -1) {
        made = unary(s, &b, "reciprocal", x, r);
    }
    if (!made)
        return false;
    replace_with(s, op, made);
    return true;
}

/* ---- casts ---- */

/* Every value of `from` is one of `to`, exactly. */
static bool is_widening(rt_dtype from, rt_dtype to) {
    static const struct {
        rt_dtype from, to;
    } rows[] = {{RT_float16, RT_float32}, {RT_bfloat16, RT_float32}, {RT_float32, RT_float64},
                {RT_float16, RT_float64}, {RT_bfloat16, RT_float64}, {RT_int32, RT_int64},
                {RT_int16, RT_int32},     {RT_int8, RT_int32},       {RT_uint8, RT_int32},
                {RT_int8, RT_int64},      {RT_uint8, RT_int64},      {RT_int16, RT_int64},
                {RT_int32, RT_float64},   {RT_bool, RT_float32},     {RT_bool, RT_int64},
                {RT_uint8, RT_float32},   {RT_int8, RT_float32},     {RT_int16, RT_float32}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].from == from && rows[i].to == to)
            return true;
    return false;
}

static bool drop_cast(simplifier *s, ir_op *op) {
    bool copy;
    int64_t format;
    if (!is_op(op, "to.dtype") || !ir_const_bool(op->operands[3], &copy) || copy ||
        (ir_const_int(op->operands[4], &format) && format > 1))
        return false;
    ir_value *x = op->operands[0], *r = op->results[0];
    if (x->type->dtype != RT_DTYPE_UNKNOWN && x->type->dtype == r->type->dtype) {
        replace_with(s, op, x); /* `to` itself hands x on */
        return true;
    }
    const ir_op *inner = x->def;
    if (!is_op(inner, "to.dtype") || inner->operands[0]->type->dtype != r->type->dtype ||
        r->type->dtype == RT_DTYPE_UNKNOWN ||
        !is_widening(r->type->dtype, x->type->dtype) || !may_share(s, op, inner->operands[0]))
        return false;
    replace_with(s, op, inner->operands[0]);
    return true;
}

/* ---- views ---- */

static bool same_dim(const ir_value *a, const ir_value *b, int rank) {
    int64_t x, y;
    if (a == b)
        return true;
    if (rank < 0 || !ir_const_int(a, &x) || !ir_const_int(b, &y))
        return false;
    return (x < 0 ? x + rank : x) == (y < 0 ? y + rank : y);
}

static bool is_identity_order(const int64_t *dims, size_t count) {
    for (size_t i = 0; i < count; i++)
        if ((dims[i] < 0 ? dims[i] + (int64_t)count : dims[i]) != (int64_t)i)
            return false;
    return true;
}

static bool drop_permutation(simplifier *s, ir_op *op) {
    if (op->operand_count == 0)
        return false;
    const ir_op *inner = op->operands[0]->def;
    int64_t a[RT_MAX_RANK], b[RT_MAX_RANK], c[RT_MAX_RANK];
    size_t n, k;
    if (is_op(op, "transpose.int") && is_op(inner, "transpose.int")) {
        int rank = op->operands[0]->type->rank;
        bool straight = same_dim(op->operands[1], inner->operands[1], rank) &&
                        same_dim(op->operands[2], inner->operands[2], rank);
        bool crossed = same_dim(op->operands[1], inner->operands[2], rank) &&
                       same_dim(op->operands[2], inner->operands[1], rank);
        if (!straight && !crossed)
            return false;
        replace_with(s, op, inner->operands[0]);
        return true;
    }
    if (is_op(op, "t") && is_op(inner, "t")) {
        replace_with(s, op, inner->operands[0]);
        return true;
    }
    if (!is_op(op, "permute") || !ir_const_int_list(op->operands[1], a, RT_MAX_RANK, &n))
        return false;
    const ir_type *t = op->operands[0]->type; /* an order of another length raises */
    if (t->kind != IR_TENSOR || t->rank != (int)n)
        return false;
    if (is_identity_order(a, n)) {
        replace_with(s, op, op->operands[0]);
        return true;
    }
    if (!is_op(inner, "permute") || !ir_const_int_list(inner->operands[1], b, RT_MAX_RANK, &k) ||
        n != k)
        return false;
    for (size_t i = 0; i < n; i++) {
        int64_t at = a[i] < 0 ? a[i] + (int64_t)n : a[i];
        if (at < 0 || at >= (int64_t)n)
            return false;
        c[i] = b[at];
    }
    if (!is_identity_order(c, n))
        return false;
    replace_with(s, op, inner->operands[0]);
    return true;
}

static bool drop_view(simplifier *s, ir_op *op) {
    static const char *const names[] = {"view", "expand", "slice.Tensor", "squeeze", "squeeze.dim",
                                        "flatten.using_ints", "reshape", "expand_as", "view_as",
                                        "reshape_as"};
    ir_value *x = op->operand_count ? op->operands[0] : NULL;
    bool listed = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !listed; i++)
        listed = is_op(op, names[i]);
    if (!listed)
        return false;
    int64_t step;
    bool whole = !is_op(op, "slice.Tensor") ||
                 (ir_const_int(op->operands[4], &step) && step == 1);
    if (whole && same_known_type(x, op->results[0]) && !pass_is_reshaped(s->alias, x)) {
        replace_with(s, op, x);
        return true;
    }
    /* view of a view: strides of the inner one fit the outer one's base as well. */
    const ir_op *inner = x->def;
    if (is_op(op, "view") && is_op(inner, "view")) {
        ir_op_set_operand(s->m, op, 0, inner->operands[0]);
        pass_count(s->ctx, "views", 1);
        return true;
    }
    return false;
}

static bool drop_alias(simplifier *s, ir_op *op) {
    if (!is_op(op, "detach") && !is_op(op, "alias"))
        return false;
    replace_with(s, op, op->operands[0]);
    return true;
}

/* ---- contractions ---- */

/* w of t(w), transpose(w, 0, 1): a matrix. */
static ir_value *transposed(const ir_value *v) {
    const ir_op *op = v->def;
    if (!op || op->opcode != IR_OP_CORE || v->type->rank != 2)
        return NULL;
    if (is_op(op, "t"))
        return op->operands[0];
    int64_t a, b;
    if (!is_op(op, "transpose.int") || !ir_const_int(op->operands[1], &a) ||
        !ir_const_int(op->operands[2], &b))
        return NULL;
    a = a < 0 ? a + 2 : a;
    b = b < 0 ? b + 2 : b;
    return (a == 0 && b == 1) || (a == 1 && b == 0) ? op->operands[0] : NULL;
}

static bool make_linear(simplifier *s, ir_op *op) {
    rt_op linear = rt_op_find(TS_STR("linear"));
    bool addmm = is_op(op, "addmm");
    if (linear == OP_COUNT || (!addmm && !is_op(op, "matmul") && !is_op(op, "mm")))
        return false;
    ir_value *x = op->operands[addmm ? 1 : 0], *w = transposed(op->operands[addmm ? 2 : 1]);
    if (!w || !ir_is_const(w) || x->type->kind != IR_TENSOR || x->type->rank < 2 ||
        !pass_is_stable(s->alias, w))
        return false;
    double beta, alpha;
    if (addmm && (!ir_const_double(op->operands[3], &beta) || beta != 1 ||
                  !ir_const_double(op->operands[4], &alpha) || alpha != 1 ||
                  op->operands[0]->type->rank != 1))
        return false;
    ir_builder b = pass_before(s->m, op);
    ir_value *operands[3] = {x, w, addmm ? op->operands[0] : ir_build_none(&b)};
    ir_value *r = ir_build_core1(&b, linear, operands, 3);
    r->type = op->results[0]->type;
    r->number = op->results[0]->number;
    replace_with(s, op, r);
    return true;
}

/* x of view(x, [rows, k]) whose leading dims are those of `t`, all but the last. */
static ir_value *unflattened(simplifier *s, const ir_value *rows, const ir_type *t) {
    const ir_op *view = rows->def;
    if (!view || ir_view_kind_of(view) != IR_VIEW_RESHAPE || rows->type->rank != 2)
        return NULL;
    ir_value *x = view->operands[0];
    if (!ir_type_is_known_tensor(x->type) || x->type->rank != t->rank || !pass_is_stable(s->alias, x) ||
        !ir_dim_same(s->m, x->type->dims[t->rank - 1], rows->type->dims[1]))
        return NULL;
    for (int d = 0; d + 1 < t->rank; d++)
        if (!ir_dim_same(s->m, x->type->dims[d], t->dims[d]))
            return NULL;
    return x;
}

/* Products of flattened rows, as GPT-2's layers write them: without the views, what follows becomes the
 * product's epilogue. */
static bool unflatten_product(simplifier *s, ir_op *op) {
    rt_op matmul = rt_op_find(TS_STR("matmul")), add = rt_op_find(TS_STR("add.Tensor"));
    const ir_type *t = op->results[0]->type;
    ir_op *product = op->operand_count ? op->operands[0]->def : NULL;
    bool addmm = is_op(product, "addmm"), linear = is_op(product, "linear");
    if (matmul == OP_COUNT || add == OP_COUNT || ir_view_kind_of(op) != IR_VIEW_RESHAPE ||
        !(addmm || linear || is_op(product, "mm")) || product->results[0]->use_count != 1 ||
        !ir_type_is_known_tensor(t) || t->rank < 3)
        return false;
    const ir_type *flat = product->results[0]->type;
    double beta, alpha;
    if (flat->rank != 2 || !ir_dim_same(s->m, flat->dims[1], t->dims[t->rank - 1]) ||
        (addmm && (!ir_const_double(product->operands[3], &beta) || beta != 1 ||
                   !ir_const_double(product->operands[4], &alpha) || alpha != 1 ||
                   product->operands[0]->type->rank != 1)))
        return false;
    ir_value *x = unflattened(s, product->operands[addmm ? 1 : 0], t);
    if (!x || !pass_is_stable(s->alias, product->operands[addmm ? 2 : 1]) ||
        (addmm && !pass_is_stable(s->alias, product->operands[0])))
        return false;
    ir_builder b = pass_before(s->m, op);
    ir_value *operands[3] = {x, product->operands[addmm ? 2 : 1], linear ? product->operands[2] : NULL};
    ir_value *r = ir_build_core1(&b, linear ? product->core : matmul, operands, linear ? 3 : 2);
    r->type = t;
    r->number = op->results[0]->number;
    if (addmm) {
        ir_value *terms[3] = {r, product->operands[0], ir_build_int(&b, 1)};
        r = ir_build_core1(&b, add, terms, 3);
        r->type = t;
        r->number = op->results[0]->number;
    }
    replace_with(s, op, r);
    return true;
}

/* A traced convolution says in numbers what conv1d to 3d and their transposes say by name. The general row
 * takes no input without a batch; the others do, which only matters to programs that raise. */
static bool name_convolution(simplifier *s, ir_op *op) {
    static const char *const names[2][3] = {
        {"conv1d", "conv2d", "conv3d"},
        {"conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input"}};
    if (!is_op(op, "_convolution") && !is_op(op, "convolution") &&
        !is_op(op, "_convolution.deprecated"))
        return false;
    ir_value **in = op->operands;
    const ir_type *w = in[1]->type;
    bool is_transposed;
    if (w->kind != IR_TENSOR || w->rank < 3 || w->rank > 5 ||
        !ir_const_bool(in[6], &is_transposed))
        return false;
    rt_op row = rt_op_find(ts_str_of(names[is_transposed][w->rank - 3]));
    if (row == OP_COUNT)
        return false;
    ir_value *plain[7] = {in[0], in[1], in[2], in[3], in[4], in[5], in[8]};
    ir_value *transposed_order[8] = {in[0], in[1], in[2], in[3], in[4], in[7], in[8], in[5]};
    ir_builder b = pass_before(s->m, op);
    ir_value *r = is_transposed ? ir_build_core1(&b, row, transposed_order, 8)
                                : ir_build_core1(&b, row, plain, 7);
    r->type = op->results[0]->type;
    r->number = op->results[0]->number;
    replace_with(s, op, r);
    return true;
}

/* ---- numbers that are an int or a float at run time ---- */

static ir_value *uncast(ir_value *v) {
    while (v->def && v->def->opcode == IR_OP_CAST)
        v = v->def->operands[0];
    return v;
}

/* Beside a tensor of floats the greater of an int and a float may as well be the float it is worth. */
static bool use_float(simplifier *s, ir_op *op) {
    static const char *const names[] = {
        "add.Scalar", "sub.Scalar", "mul.Scalar", "div.Scalar", "rsub.Scalar", "pow.Tensor_Scalar", "clamp_min",
        "clamp_max",  "lt.Scalar",  "le.Scalar",  "gt.Scalar",  "ge.Scalar",   "eq.Scalar",         "ne.Scalar"};
    bool fits = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !fits; i++)
        fits = is_op(op, names[i]);
    if (!fits || op->operand_count < 2)
        return false;
    const ir_type *t = op->operands[0]->type;
    ir_value *number = uncast(op->operands[1]);
    bool is_max = is_op(number->def, "prim_max");
    if (t->kind != IR_TENSOR || !rt_dtype_is_float(t->dtype) || number->type->kind != IR_NUMBER ||
        !(is_max || is_op(number->def, "prim_min")))
        return false;
    ir_value *sides[2] = {uncast(number->def->operands[0]), uncast(number->def->operands[1])};
    bool first = sides[0]->type->kind == IR_FLOAT, second = sides[1]->type->kind == IR_FLOAT;
    if (first == second || sides[first ? 1 : 0]->type->kind != IR_INT)
        return false;
    static const char *const rows[2][2] = {{"prim_min.int_float", "prim_min.float_int"},
                                           {"prim_max.int_float", "prim_max.float_int"}};
    rt_op row = rt_op_find(ts_str_of(rows[is_max][first]));
    if (row == OP_COUNT)
        return false;
    ir_builder b = pass_before(s->m, op);
    ir_op_set_operand(s->m, op, 1, ir_build_core1(&b, row, sides, 2));
    pass_count(s->ctx, "floats", 1);
    return true;
}

/* ---- branches ---- */

/* The sum or difference that is all a branch computes, where it yields it as its result i. */
static ir_op *only_sum(const ir_block *b, size_t i) {
    ir_op *sum = b->last->operands[i]->def;
    if ((!is_op(sum, "add.int") && !is_op(sum, "sub.int")) || sum->block != b ||
        sum->results[0]->use_count != 1)
        return NULL;
    for (const ir_op *op = b->first; op != b->last; op = op->next)
        if (op != sum && op->opcode != IR_OP_CONST)
            return NULL;
    return sum;
}

static bool is_empty(const ir_block *b) {
    for (const ir_op *op = b->first; op != b->last; op = op->next)
        if (op->opcode != IR_OP_CONST)
            return false;
    return true;
}

/* A branch is left that only chooses: its condition then costs a processor no guess. */
static void choose_term(simplifier *s, ir_op *op) {
    for (int side = 0; side < 2; side++) {
        ir_block *with = op->regions[side], *without = op->regions[1 - side];
        for (size_t i = 0; i < op->result_count && is_empty(without); i++) {
            ir_op *sum = only_sum(with, i);
            if (!sum || sum->operands[0] != without->last->operands[i])
                continue;
            ir_builder b = pass_before(s->m, without->last);
            ir_value *x = sum->operands[0];
            ir_op_set_operand(s->m, without->last, i, ir_build_int(&b, 0));
            ir_op_set_operand(s->m, with->last, i, sum->operands[1]);
            ir_op_move_before(sum, op->next);
            pass_replace(s->m, op->results[i], sum->results[0]);
            ir_op_set_operand(s->m, sum, 0, x);
            ir_op_set_operand(s->m, sum, 1, op->results[i]);
            pass_count(s->ctx, "branches", 1);
            break;
        }
    }
}

static void simplify(simplifier *s, ir_op *op) {
    if (op->opcode == IR_OP_IF)
        choose_term(s, op);
    if (op->opcode != IR_OP_CORE || op->result_count != 1)
        return;
    (void)(drop_neutral(s, op) || drop_neutral_int(s, op) || expand_power(s, op) ||
           drop_cast(s, op) || drop_permutation(s, op) || drop_view(s, op) || drop_alias(s, op) ||
           make_linear(s, op) || unflatten_product(s, op) ||
           name_convolution(s, op) || use_float(s, op));
}

ts_status pass_simplify_algebra(pass_context *ctx, ir_module *m) {
    for (ir_function *f = m->functions; f; f = f->next) {
        simplifier s = {ctx, m, pass_alias_make(ctx, m, f)};
        pass_op_list ops = pass_collect(ctx, f);
        for (size_t i = 0; i < ops.count; i++)
            if (pass_is_linked(ops.items[i]))
                simplify(&s, ops.items[i]);
    }
    return NULL;
}

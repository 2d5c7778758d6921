/* passes/differentiate_complex.c - gradients where tensors are complex, or may be.
 *
 * As in PyTorch the gradient of z = x + iy is dL/dx + i dL/dy. An operator that is linear with real
 * coefficients keeps its formula. One that is holomorphic has conj(formula(conj(g))): each formula
 * is g times f'(z), linear in g, and this is g times conj(f'(z)), also for products of matrices.
 * Which is which says the table of derivatives.def; what is neither (abs, real, view_as_real) has a
 * formula that knows of complex numbers and stands there as linear. An operand that is real takes
 * the real part, which its own dtype cuts out. Where a dtype is not known the conjugates are there too,
 * and do nothing to real numbers; what has no row counts as real then, which is checked at run
 * time. */
#include "passes/differentiate.h"

typedef struct complex_row {
    const char *op;
    bool conjugates;
} complex_row;

static const complex_row rows[] = {
#define COMPLEX(op, conjugates) {op, conjugates},
#include "passes/derivatives.def"
};

/* Operators whose results are complex whatever they are given. */
static const char *const makers[] = {"complex", "polar", "view_as_complex", "_fft_c2c"};

static bool is_complex(const ir_value *v) {
    return v->type->kind == IR_TENSOR && rt_dtype_is_complex(v->type->dtype);
}

static bool is_open(const ir_value *v) {
    return v->type->kind == IR_TENSOR ? v->type->dtype == RT_DTYPE_UNKNOWN : differ_may_carry(v->type);
}

static bool is_known_complex(const ir_op *op) {
    for (size_t i = 0; i < op->operand_count; i++)
        if (is_complex(op->operands[i]))
            return true;
    return op->result_count && is_complex(op->results[0]);
}

static bool is_maker(const ir_op *op) {
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++)
        if (differ_is_op(op, makers[i]))
            return true;
    for (size_t i = 0; i < op->result_count; i++)
        if (is_complex(op->results[i]))
            return true;
    return false;
}

void differ_find_complex(differ *d) {
    for (size_t i = 0; i < d->ops.count && !d->has_complex; i++)
        d->has_complex = is_maker(d->ops.items[i]);
}

bool differ_may_be_complex(const ir_op *op) {
    for (size_t i = 0; i < op->operand_count; i++)
        if (is_complex(op->operands[i]) || is_open(op->operands[i]))
            return true;
    return op->result_count && (is_complex(op->results[0]) || is_open(op->results[0]));
}

static const complex_row *find_row(const ir_op *op) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (differ_is_op(op, rows[i].op))
            return &rows[i];
    return NULL;
}

static ir_value *conjugate(differ_rule *r, ir_value *v) {
    return differ_call(r, is_complex(v) ? "conj_physical" : "conj", v, NULL, NULL); /* of reals: itself */
}

/* No row and no dtype: at run time a complex gradient or operand raises. */
static ts_status apply_to_real(differ_rule *r, differ_formula formula, bool *out_done) {
    ir_value *g = r->g, *y = r->op->result_count ? r->op->results[0] : NULL;
    if (!g || !is_open(y) || y->type->kind != IR_TENSOR)
        return formula(r, out_done);
    ir_value *real = g;
    for (size_t i = 0; i < r->op->operand_count; i++) {
        ir_value *operands[2] = {real, r->op->operands[i]};
        if (!r->wanted[i] || !is_open(operands[1]) || operands[1]->type->kind != IR_TENSOR)
            continue;
        TS_TRY(differ_call_library(r, "_real_gradient", operands, 2, &real));
        real = differ_cast(r, real, g->type);
    }
    ir_value_map_set(r->adjoints, y, real);
    r->g = real;
    ts_status status = formula(r, out_done);
    ir_value_map_set(r->adjoints, y, g);
    r->g = g;
    return status;
}

ts_status differ_apply_complex(differ_rule *r, differ_formula formula, bool *out_done) {
    ir_op *op = r->op;
    const complex_row *row = find_row(op);
    *out_done = row != NULL;
    if (!row && is_known_complex(op))
        return NULL;
    if (!row)
        return apply_to_real(r, formula, out_done);
    if (!row->conjugates)
        return formula(r, out_done);
    ir_value_map *adjoints = r->adjoints;
    ir_value *g = r->g;
    r->adjoints = ir_value_map_make(r->ctx->scratch);
    for (size_t i = 0; i < op->result_count; i++) {
        ir_value *own = ir_value_map_get(adjoints, op->results[i]);
        if (own)
            ir_value_map_set(r->adjoints, op->results[i], conjugate(r, own));
    }
    r->g = g ? ir_value_map_get(r->adjoints, op->results[0]) : NULL;
    ts_status status = formula(r, out_done);
    ir_value_map *given = r->adjoints;
    r->adjoints = adjoints;
    r->g = g;
    if (status || !*out_done)
        return status;
    for (size_t i = 0; i < op->operand_count; i++) {
        ir_value *x = op->operands[i], *part = ir_value_map_get(given, x);
        bool is_again = false;
        for (size_t k = 0; k < i; k++)
            is_again |= op->operands[k] == x;
        if (part && !is_again)
            differ_add(r, x, conjugate(r, part));
    }
    return NULL;
}

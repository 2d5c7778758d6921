/* passes/trial_sizes.c - products of sizes that must match, as what one size must be. */
#include "passes/trial.h"

enum { MOST_FACTORS = 18 };

/* Factors of a product of symbols and positive constants; false where it is anything else. A floor
 * division by a constant that comes from one symbol is kept as it is. */
typedef struct factors {
    rt_dim items[MOST_FACTORS];
    size_t count;
    int64_t constant;
} factors;

static bool factor(const ir_module *sizes, rt_dim d, factors *out, int depth) {
    if (depth > 32 || d == RT_DIM_UNKNOWN)
        return false;
    ir_dim_node n = ir_dim_get(sizes, d);
    if (n.kind == IR_DIM_CONST) /* zero ends every comparison of counts */
        return n.constant > 0 && out->constant <= INT64_MAX / n.constant &&
               (out->constant *= n.constant, true);
    if (n.kind == IR_DIM_MUL)
        return factor(sizes, n.a, out, depth + 1) && factor(sizes, n.b, out, depth + 1);
    if ((n.kind != IR_DIM_SYMBOL && n.kind != IR_DIM_FLOORDIV) ||
        out->count == sizeof out->items / sizeof *out->items)
        return false;
    out->items[out->count++] = d;
    return true;
}

static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Cancels what both sides have: symbols alone, as no input that is checked has a size of zero. */
static bool cancel(const ir_module *sizes, factors *a, factors *b) {
    for (size_t i = 0; i < a->count;) {
        size_t j = 0;
        while (j < b->count && b->items[j] != a->items[i])
            j++;
        if (j == b->count) {
            i++;
            continue;
        }
        if (ir_dim_get(sizes, a->items[i]).kind != IR_DIM_SYMBOL)
            return false;
        a->items[i] = a->items[--a->count];
        b->items[j] = b->items[--b->count];
    }
    int64_t common = gcd(a->constant, b->constant);
    a->constant /= common;
    b->constant /= common;
    return true;
}

static bool is_symbol(const ir_module *sizes, rt_dim d) {
    return ir_dim_get(sizes, d).kind == IR_DIM_SYMBOL;
}

bool pass_trial_simplify(const ir_module *sizes, rt_dim left, rt_dim right, rt_match how,
                         rt_dim *out_a, rt_dim *out_b, rt_match *out_how) {
    factors a = {.constant = 1}, b = {.constant = 1};
    if (!factor(sizes, left, &a, 0) || !factor(sizes, right, &b, 0) || !cancel(sizes, &a, &b))
        return false;
    *out_how = how;
    if (how != RT_MATCH_MULTIPLE &&
        (a.count == 0 || (a.count == 1 && !is_symbol(sizes, a.items[0])))) {
        factors other = a;
        a = b;
        b = other;
    }
    if (a.count != 1 || a.constant != 1 || !is_symbol(sizes, a.items[0]))
        return false;
    *out_a = a.items[0];
    if (b.count == 0) {
        *out_b = b.constant;
        return how != RT_MATCH_MULTIPLE || b.constant > 1;
    }
    if (how == RT_MATCH_MULTIPLE || b.count != 1)
        return false;
    if (b.constant == 1 && is_symbol(sizes, b.items[0])) {
        *out_b = b.items[0];
        return true;
    }
    /* s == c * (s // c) */
    ir_dim_node n = ir_dim_get(sizes, b.items[0]);
    *out_how = RT_MATCH_MULTIPLE;
    *out_b = b.constant;
    return n.kind == IR_DIM_FLOORDIV && n.a == *out_a && n.b == b.constant && b.constant > 1;
}

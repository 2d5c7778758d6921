/* runtime/ops/infer_scalar.c - facts about results of rows over numbers, strings and containers.
 *
 * Sizes that a model computes (x.size(0) * 2) must stay symbolic, so integer arithmetic goes
 * through the algebra; everything else mostly says the kind of the result. */
#include "runtime/ops/ref_kernel.h"

static void set_kind(rt_fact *out, rt_fact_kind kind) {
    *out = (rt_fact){.kind = kind, .dim = RT_DIM_UNKNOWN, .dtype = RT_DTYPE_UNKNOWN, .rank = -1};
}

static void set_known(rt_fact *out, rt_fact_kind kind, rt_dim dim) {
    set_kind(out, kind);
    out->dim = dim;
    out->is_known = dim != RT_DIM_UNKNOWN;
}

static rt_dim dim_of(const rt_fact *fact) {
    if ((fact->kind == RT_FACT_INT || fact->kind == RT_FACT_BOOL) && fact->is_known)
        return fact->dim;
    return RT_DIM_UNKNOWN;
}

static bool constant_of(const rt_fact *fact, int64_t *out) {
    rt_dim d = dim_of(fact);
    if (d == RT_DIM_UNKNOWN || !rt_dim_is_constant(d))
        return false;
    *out = d;
    return true;
}

static ts_status all_of_kind(rt_fact *outs, size_t out_count, rt_fact_kind kind) {
    for (size_t i = 0; i < out_count; i++)
        set_kind(&outs[i], kind);
    return NULL;
}

RULE(nothing) { return all_of_kind(outs, out_count, RT_FACT_NONE); }
RULE(none) { return all_of_kind(outs, out_count, RT_FACT_NONE); }
RULE(unknown) { return all_of_kind(outs, out_count, RT_FACT_UNKNOWN); }
RULE(tuple) { return all_of_kind(outs, out_count, RT_FACT_UNKNOWN); }
RULE(other) { return all_of_kind(outs, out_count, RT_FACT_OTHER); }
RULE(int) { return all_of_kind(outs, out_count, RT_FACT_INT); }
RULE(bool) { return all_of_kind(outs, out_count, RT_FACT_BOOL); }
RULE(float) { return all_of_kind(outs, out_count, RT_FACT_FLOAT); }
RULE(complex) { return all_of_kind(outs, out_count, RT_FACT_COMPLEX); }
RULE(str) { return all_of_kind(outs, out_count, RT_FACT_STR); }
RULE(device) { return all_of_kind(outs, out_count, RT_FACT_DEVICE); }
RULE(list) { return all_of_kind(outs, out_count, RT_FACT_LIST); }

RULE(true) {
    set_known(outs, RT_FACT_BOOL, 1);
    return NULL;
}

RULE(false) {
    set_known(outs, RT_FACT_BOOL, 0);
    return NULL;
}

RULE(identity) {
    if (out_count)
        outs[0] = args[0];
    return NULL;
}

/* ---- integers ---- */

typedef rt_dim (*dim_function)(void *user, rt_dim a, rt_dim b);

static ts_status int_binary(const rt_infer_context *ic, dim_function f, const rt_fact *args,
                            rt_fact *out) {
    rt_dim a = dim_of(&args[0]), b = dim_of(&args[1]);
    rt_dim r = RT_DIM_UNKNOWN;
    if (ic->algebra && a != RT_DIM_UNKNOWN && b != RT_DIM_UNKNOWN)
        r = f(ic->algebra->user, a, b);
    set_known(out, RT_FACT_INT, r);
    return NULL;
}

RULE(int_add) { return int_binary(ic, ic->algebra ? ic->algebra->add : NULL, args, outs); }
RULE(int_sub) { return int_binary(ic, ic->algebra ? ic->algebra->sub : NULL, args, outs); }
RULE(int_mul) { return int_binary(ic, ic->algebra ? ic->algebra->mul : NULL, args, outs); }
RULE(int_max) { return int_binary(ic, ic->algebra ? ic->algebra->max : NULL, args, outs); }
RULE(int_min) { return int_binary(ic, ic->algebra ? ic->algebra->min : NULL, args, outs); }

RULE(int_floordiv) {
    int64_t divisor;
    if (!constant_of(&args[1], &divisor) || divisor <= 0)
        return all_of_kind(outs, 1, RT_FACT_INT);
    return int_binary(ic, ic->algebra ? ic->algebra->floordiv : NULL, args, outs);
}

RULE(int_remainder) { /* a - a // b * b */
    int64_t divisor;
    rt_dim a = dim_of(&args[0]);
    set_kind(outs, RT_FACT_INT);
    const rt_dim_algebra *alg = ic->algebra;
    if (!alg || a == RT_DIM_UNKNOWN || !constant_of(&args[1], &divisor) || divisor <= 0)
        return NULL;
    rt_dim q = alg->floordiv(alg->user, a, divisor);
    if (q == RT_DIM_UNKNOWN)
        return NULL;
    q = alg->mul(alg->user, q, divisor);
    if (q == RT_DIM_UNKNOWN)
        return NULL;
    set_known(outs, RT_FACT_INT, alg->sub(alg->user, a, q));
    return NULL;
}

RULE(int_neg) {
    rt_dim a = dim_of(&args[0]);
    rt_dim r = RT_DIM_UNKNOWN;
    if (ic->algebra && a != RT_DIM_UNKNOWN)
        r = ic->algebra->sub(ic->algebra->user, 0, a);
    set_known(outs, RT_FACT_INT, r);
    return NULL;
}

RULE(int_abs) {
    int64_t a;
    set_kind(outs, RT_FACT_INT);
    if (constant_of(&args[0], &a))
        set_known(outs, RT_FACT_INT, a < 0 ? -a : a);
    return NULL;
}

/* ---- comparisons: known for constants, and where the algebra proves equality ---- */

static bool number_of(const rt_fact *fact, double *out) {
    int64_t i;
    if (fact->kind == RT_FACT_FLOAT && fact->is_known) {
        *out = fact->f;
        return true;
    }
    if (constant_of(fact, &i) && i > -((int64_t)1 << 53) && i < (int64_t)1 << 53) {
        *out = (double)i;
        return true;
    }
    return false;
}

enum { LESS = 1, EQUAL = 2, GREATER = 4 };

static ts_status compare(const rt_infer_context *ic, const rt_fact *args, rt_fact *out, int accept) {
    double x, y;
    int64_t i, j;
    set_kind(out, RT_FACT_BOOL);
    int found = 0;
    if (args[0].kind == RT_FACT_STR && args[1].kind == RT_FACT_STR && args[0].is_known &&
        args[1].is_known) {
        int c = ts_str_compare(args[0].s, args[1].s);
        found = c < 0 ? LESS : c > 0 ? GREATER : EQUAL;
    } else if (constant_of(&args[0], &i) && constant_of(&args[1], &j)) {
        found = i < j ? LESS : i > j ? GREATER : EQUAL;
    } else if (number_of(&args[0], &x) && number_of(&args[1], &y)) {
        found = x < y ? LESS : x > y ? GREATER : x == y ? EQUAL : 8; /* 8: not ordered, a NaN */
        if (found == 8 && accept == (LESS | GREATER))
            found = LESS; /* != holds for a NaN */
    } else {
        rt_dim a = dim_of(&args[0]), b = dim_of(&args[1]);
        if (ic->algebra && a != RT_DIM_UNKNOWN && b != RT_DIM_UNKNOWN &&
            ic->algebra->equal(ic->algebra->user, a, b))
            found = EQUAL;
    }
    if (found)
        set_known(out, RT_FACT_BOOL, (found & accept) != 0);
    return NULL;
}

RULE(compare_eq) { return compare(ic, args, outs, EQUAL); }
RULE(compare_ne) { return compare(ic, args, outs, LESS | GREATER); }
RULE(compare_lt) { return compare(ic, args, outs, LESS); }
RULE(compare_le) { return compare(ic, args, outs, LESS | EQUAL); }
RULE(compare_gt) { return compare(ic, args, outs, GREATER); }
RULE(compare_ge) { return compare(ic, args, outs, GREATER | EQUAL); }

static bool is_none(const rt_fact *args, bool *out) {
    const rt_fact *a = &args[0], *b = &args[1];
    if (a->kind == RT_FACT_UNKNOWN || b->kind == RT_FACT_UNKNOWN || a->kind == RT_FACT_OTHER ||
        b->kind == RT_FACT_OTHER)
        return false;
    bool a_none = a->kind == RT_FACT_NONE, b_none = b->kind == RT_FACT_NONE;
    if (!a_none && !b_none)
        return false;
    *out = a_none && b_none;
    return true;
}

RULE(value_is) {
    bool r;
    set_kind(outs, RT_FACT_BOOL);
    if (is_none(args, &r))
        set_known(outs, RT_FACT_BOOL, r);
    return NULL;
}

RULE(value_isnot) {
    bool r;
    set_kind(outs, RT_FACT_BOOL);
    if (is_none(args, &r))
        set_known(outs, RT_FACT_BOOL, !r);
    return NULL;
}

RULE(bool_not) {
    int64_t a;
    set_kind(outs, RT_FACT_BOOL);
    if (constant_of(&args[0], &a))
        set_known(outs, RT_FACT_BOOL, !a);
    return NULL;
}

/* A number in a list of constants. */
RULE(contains) {
    int64_t wanted, item;
    set_kind(outs, RT_FACT_BOOL);
    if (arg_count < 2 || args[0].kind != RT_FACT_LIST || !args[0].count_known || !args[0].items ||
        args[1].kind != RT_FACT_INT || !constant_of(&args[1], &wanted))
        return NULL;
    bool all_known = true;
    for (size_t i = 0; i < args[0].count; i++) {
        if (args[0].items[i].kind != RT_FACT_INT || !constant_of(&args[0].items[i], &item)) {
            all_known = false;
        } else if (item == wanted) {
            set_known(outs, RT_FACT_BOOL, 1);
            return NULL;
        }
    }
    if (all_known)
        set_known(outs, RT_FACT_BOOL, 0);
    return NULL;
}

RULE(to_bool) {
    int64_t a;
    set_kind(outs, RT_FACT_BOOL);
    if (args[0].kind != RT_FACT_TENSOR && constant_of(&args[0], &a))
        set_known(outs, RT_FACT_BOOL, a != 0);
    return NULL;
}

RULE(to_int) {
    rt_dim d = dim_of(&args[0]);
    if (args[0].kind == RT_FACT_TENSOR && args[0].is_known)
        d = args[0].dim;
    set_known(outs, RT_FACT_INT, d);
    return NULL;
}

RULE(to_float) {
    int64_t i;
    set_kind(outs, RT_FACT_FLOAT);
    if (args[0].kind == RT_FACT_FLOAT) {
        outs[0] = args[0];
    } else if (constant_of(&args[0], &i)) {
        outs[0].is_known = true;
        outs[0].f = (double)i;
    }
    return NULL;
}

RULE(tensor_dtype) {
    set_kind(outs, RT_FACT_INT);
    if (args[0].kind == RT_FACT_TENSOR && args[0].dtype != RT_DTYPE_UNKNOWN)
        set_known(outs, RT_FACT_INT, (rt_dim)args[0].dtype);
    return NULL;
}

/* ---- containers ---- */

RULE(len) {
    rt_dim d = RT_DIM_UNKNOWN;
    if (args[0].kind == RT_FACT_TENSOR && args[0].rank > 0)
        d = args[0].dims[0];
    else if (args[0].kind == RT_FACT_LIST && args[0].count_known)
        d = (rt_dim)args[0].count;
    set_known(outs, RT_FACT_INT, d);
    return NULL;
}

RULE(list_copy) {
    set_kind(outs, RT_FACT_LIST);
    if (args[0].kind == RT_FACT_LIST)
        outs[0] = args[0];
    return NULL;
}

RULE(list_getitem) {
    int64_t index;
    set_kind(outs, RT_FACT_UNKNOWN);
    if (args[0].kind != RT_FACT_LIST || !args[0].items)
        return NULL;
    if (!args[0].count_known) {
        outs[0] = args[0].items[0];
        return NULL;
    }
    int64_t count = (int64_t)args[0].count;
    if (!constant_of(&args[1], &index))
        return NULL;
    if (index < 0)
        index += count;
    if (index >= 0 && index < count)
        outs[0] = args[0].items[index];
    return NULL;
}

RULE(list_add) {
    set_kind(outs, RT_FACT_LIST);
    const rt_fact *a = &args[0], *b = &args[1];
    if (a->kind != RT_FACT_LIST || b->kind != RT_FACT_LIST || !a->count_known || !b->count_known)
        return NULL;
    enum { KNOWN_ITEMS = 4096 }; /* a list that doubles from line to line stays cheap */
    if ((a->count && !a->items) || (b->count && !b->items) || a->count + b->count > KNOWN_ITEMS)
        return NULL;
    rt_fact *items = TS_NEW_ARRAY(ic->arena, rt_fact, a->count + b->count + 1);
    for (size_t i = 0; i < a->count; i++)
        items[i] = a->items[i];
    for (size_t i = 0; i < b->count; i++)
        items[a->count + i] = b->items[i];
    outs[0].count_known = true;
    outs[0].count = a->count + b->count;
    outs[0].items = items;
    return NULL;
}

RULE(list_slice) {
    set_kind(outs, RT_FACT_LIST);
    const rt_fact *a = &args[0];
    int64_t step, start = 0, end = INT64_MAX;
    if (a->kind != RT_FACT_LIST || !a->count_known || (a->count && !a->items))
        return NULL;
    if (!constant_of(&args[3], &step) || step <= 0)
        return NULL;
    if (args[1].kind != RT_FACT_NONE && !constant_of(&args[1], &start))
        return NULL;
    if (args[2].kind != RT_FACT_NONE && !constant_of(&args[2], &end))
        return NULL;
    int64_t count = (int64_t)a->count;
    start = start < 0 ? (start + count < 0 ? 0 : start + count) : start > count ? count : start;
    end = end < 0 ? (end + count < 0 ? 0 : end + count) : end > count ? count : end;
    rt_fact *items = TS_NEW_ARRAY(ic->arena, rt_fact, a->count + 1);
    size_t n = 0;
    for (int64_t i = start; i < end; i += step) {
        items[n++] = a->items[i];
        if (end - i <= step)
            break;
    }
    outs[0].count_known = true;
    outs[0].count = n;
    outs[0].items = items;
    return NULL;
}

RULE(range_length) {
    int64_t lo, step;
    set_kind(outs, RT_FACT_INT);
    rt_dim hi = dim_of(&args[1]);
    const rt_dim_algebra *alg = ic->algebra;
    if (!alg || hi == RT_DIM_UNKNOWN || !constant_of(&args[0], &lo) ||
        !constant_of(&args[2], &step) || lo != 0 || step != 1)
        return NULL;
    set_known(outs, RT_FACT_INT, alg->max(alg->user, hi, 0));
    return NULL;
}

RULE(derive_index) { /* start + index * step */
    rt_dim index = dim_of(&args[0]), start = dim_of(&args[1]), step = dim_of(&args[2]);
    set_kind(outs, RT_FACT_INT);
    const rt_dim_algebra *alg = ic->algebra;
    if (!alg || index == RT_DIM_UNKNOWN || start == RT_DIM_UNKNOWN || step == RT_DIM_UNKNOWN)
        return NULL;
    rt_dim product = alg->mul(alg->user, index, step);
    if (product != RT_DIM_UNKNOWN)
        set_known(outs, RT_FACT_INT, alg->add(alg->user, start, product));
    return NULL;
}

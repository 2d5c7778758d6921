/* ir/size_expr.c - sizes that are known only at run time, in a normal form.
 *
 * An expression is a polynomial: a sum of terms, each a coefficient times a product of atoms. Atoms
 * are symbols, floor divisions, maxima and minima of expressions. Atoms and expressions are made
 * once, terms are sorted, so equal normal forms are the same handle. What the normal form cannot
 * show equal (n//2 + (n+1)//2 and n) counts as different: that only loses an optimisation. */
#include "ir/ir_internal.h"

#include "runtime/base/checked.h"

enum { MAX_TERMS = 32, MAX_ATOMS = 8, MAX_DEPTH = 24 };

typedef struct term {
    int64_t coefficient;
    uint32_t atom_count;
    uint32_t atoms[MAX_ATOMS]; /* sorted; a power repeats its atom */
} term;

typedef struct expression {
    size_t count;
    term *terms; /* sorted, the constant last */
    ir_dim_node node;
    bool has_node;
} expression;

typedef struct atom {
    ir_dim_kind kind; /* SYMBOL FLOORDIV MAX MIN */
    ts_str name;
    rt_dim a, b;
    int64_t low, high;
    int depth; /* of atoms inside; deeper ones than MAX_DEPTH are unknown */
} atom;

struct ir_size_table {
    expression *expressions;
    size_t count, capacity;
    atom *atoms;
    size_t atom_count, atom_capacity;
    uint64_t fresh;
    rt_dim_algebra algebra;
};

typedef struct polynomial {
    size_t count;
    term terms[MAX_TERMS];
} polynomial;

static rt_dim handle_of(size_t index) { return RT_DIM_HANDLES - 1 - (int64_t)index; }
static size_t index_of(rt_dim d) { return (size_t)(RT_DIM_HANDLES - 1 - d); }

static int compare_dims(const ir_size_table *table, rt_dim a, rt_dim b);

/* By names and structure, never by the order in which things were made: a module that is printed
 * and read back makes its symbols in another order and must print the same. */
static int compare_atoms(const ir_size_table *table, uint32_t i, uint32_t j) {
    const atom *a = &table->atoms[i], *b = &table->atoms[j];
    if (i == j)
        return 0;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->kind == IR_DIM_SYMBOL)
        return ts_str_compare(a->name, b->name);
    int order = compare_dims(table, a->a, b->a);
    return order ? order : compare_dims(table, a->b, b->b);
}

/* Higher degree first, then by atoms; the constant comes last. */
static int compare_terms(const ir_size_table *table, const term *a, const term *b) {
    if (a->atom_count != b->atom_count)
        return a->atom_count > b->atom_count ? -1 : 1;
    for (uint32_t i = 0; i < a->atom_count; i++) {
        int order = compare_atoms(table, a->atoms[i], b->atoms[i]);
        if (order)
            return order;
    }
    return 0;
}

static int compare_dims(const ir_size_table *table, rt_dim a, rt_dim b) {
    if (a == b)
        return 0;
    if (!rt_dim_is_symbolic(a) || !rt_dim_is_symbolic(b)) {
        if (rt_dim_is_symbolic(a) != rt_dim_is_symbolic(b))
            return rt_dim_is_symbolic(a) ? -1 : 1;
        return a < b ? -1 : 1;
    }
    const expression *x = &table->expressions[index_of(a)], *y = &table->expressions[index_of(b)];
    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    for (size_t i = 0; i < x->count; i++) {
        int order = compare_terms(table, &x->terms[i], &y->terms[i]);
        if (order)
            return order;
        if (x->terms[i].coefficient != y->terms[i].coefficient)
            return x->terms[i].coefficient < y->terms[i].coefficient ? -1 : 1;
    }
    return 0;
}

/* False when the polynomial would be too long or a coefficient overflows. */
static bool add_term(const ir_size_table *table, polynomial *p, const term *t) {
    if (t->coefficient == 0)
        return true;
    size_t at = 0;
    while (at < p->count && compare_terms(table, &p->terms[at], t) < 0)
        at++;
    if (at < p->count && compare_terms(table, &p->terms[at], t) == 0) {
        if (!ts_add_i64(p->terms[at].coefficient, t->coefficient, &p->terms[at].coefficient))
            return false;
        if (p->terms[at].coefficient == 0) {
            memmove(&p->terms[at], &p->terms[at + 1], (p->count - at - 1) * sizeof(term));
            p->count--;
        }
        return true;
    }
    if (p->count == MAX_TERMS)
        return false;
    memmove(&p->terms[at + 1], &p->terms[at], (p->count - at) * sizeof(term));
    p->terms[at] = *t;
    p->count++;
    return true;
}

static bool add_constant(const ir_size_table *table, polynomial *p, int64_t c) {
    term t = {.coefficient = c};
    return add_term(table, p, &t);
}

static bool load(const ir_size_table *table, rt_dim d, polynomial *out) {
    out->count = 0;
    if (d == RT_DIM_UNKNOWN)
        return false;
    if (rt_dim_is_constant(d))
        return add_constant(table, out, d);
    const expression *e = &table->expressions[index_of(d)];
    out->count = e->count;
    memcpy(out->terms, e->terms, e->count * sizeof(term));
    return true;
}

static bool same_term(const term *a, const term *b) {
    return a->coefficient == b->coefficient && a->atom_count == b->atom_count &&
           memcmp(a->atoms, b->atoms, a->atom_count * sizeof a->atoms[0]) == 0;
}

static rt_dim store(ir_module *m, const polynomial *p) {
    ir_size_table *table = m->sizes;
    if (p->count == 0)
        return 0;
    if (p->count == 1 && p->terms[0].atom_count == 0)
        return p->terms[0].coefficient >= RT_DIM_HANDLES ? p->terms[0].coefficient
                                                         : RT_DIM_UNKNOWN;
    for (size_t i = 0; i < table->count; i++) {
        const expression *e = &table->expressions[i];
        if (e->count != p->count)
            continue;
        size_t j = 0;
        while (j < p->count && same_term(&e->terms[j], &p->terms[j]))
            j++;
        if (j == p->count)
            return handle_of(i);
    }
    expression e = {.count = p->count};
    e.terms = TS_NEW_ARRAY(m->arena, term, p->count);
    memcpy(e.terms, p->terms, p->count * sizeof(term));
    TS_APPEND(m->arena, table->expressions, table->count, table->capacity, e);
    return handle_of(table->count - 1);
}

static rt_dim of_atom(ir_module *m, size_t index) {
    polynomial p = {.count = 1, .terms = {{.coefficient = 1, .atom_count = 1}}};
    p.terms[0].atoms[0] = (uint32_t)index;
    return store(m, &p);
}

static int depth_of(const ir_size_table *table, rt_dim d) {
    int depth = 0;
    if (rt_dim_is_symbolic(d)) {
        const expression *e = &table->expressions[index_of(d)];
        for (size_t i = 0; i < e->count; i++)
            for (uint32_t j = 0; j < e->terms[i].atom_count; j++)
                if (table->atoms[e->terms[i].atoms[j]].depth > depth)
                    depth = table->atoms[e->terms[i].atoms[j]].depth;
    }
    return depth;
}

static rt_dim make_atom(ir_module *m, ir_dim_kind kind, rt_dim a, rt_dim b) {
    ir_size_table *table = m->sizes;
    for (size_t i = 0; i < table->atom_count; i++)
        if (table->atoms[i].kind == kind && table->atoms[i].a == a && table->atoms[i].b == b)
            return of_atom(m, i);
    int depth = depth_of(table, a) > depth_of(table, b) ? depth_of(table, a) : depth_of(table, b);
    if (depth >= MAX_DEPTH)
        return RT_DIM_UNKNOWN;
    atom made = {.kind = kind, .a = a, .b = b, .depth = depth + 1};
    TS_APPEND(m->arena, table->atoms, table->atom_count, table->atom_capacity, made);
    return of_atom(m, table->atom_count - 1);
}

static int64_t find_symbol(const ir_size_table *table, ts_str name) {
    for (size_t i = 0; i < table->atom_count; i++)
        if (table->atoms[i].kind == IR_DIM_SYMBOL && ts_str_equal(table->atoms[i].name, name))
            return (int64_t)i;
    return -1;
}

rt_dim ir_dim_symbol(ir_module *m, ts_str name) {
    ir_size_table *table = m->sizes;
    int64_t found = find_symbol(table, name);
    if (found >= 0)
        return of_atom(m, (size_t)found);
    atom made = {.kind = IR_DIM_SYMBOL, .name = ts_arena_str(m->arena, name), .high = INT64_MAX};
    TS_APPEND(m->arena, table->atoms, table->atom_count, table->atom_capacity, made);
    return of_atom(m, table->atom_count - 1);
}

rt_dim ir_dim_fresh(ir_module *m) {
    for (;;) {
        ts_str name =
            ts_arena_format(m->arena, "s%llu", (unsigned long long)m->sizes->fresh++);
        if (find_symbol(m->sizes, name) < 0)
            return ir_dim_symbol(m, name);
    }
}

static atom *symbol_of(const ir_module *m, rt_dim d) {
    if (!rt_dim_is_symbolic(d))
        return NULL;
    const expression *e = &m->sizes->expressions[index_of(d)];
    if (e->count != 1 || e->terms[0].coefficient != 1 || e->terms[0].atom_count != 1)
        return NULL;
    return &m->sizes->atoms[e->terms[0].atoms[0]];
}

void ir_dim_set_bounds(ir_module *m, rt_dim symbol, int64_t low, int64_t high) {
    atom *a = symbol_of(m, symbol);
    if (a && a->kind == IR_DIM_SYMBOL) {
        a->low = low;
        a->high = high;
    }
}

ts_str ir_dim_symbol_name(const ir_module *m, rt_dim d) {
    const atom *a = symbol_of(m, d);
    return a && a->kind == IR_DIM_SYMBOL ? a->name : (ts_str){0};
}

/* ---- bounds: saturating interval arithmetic ---- */

typedef struct interval {
    int64_t low, high; /* INT64_MIN, INT64_MAX: none */
} interval;

static int64_t saturating_add(int64_t a, int64_t b) {
    int64_t r;
    if (a == INT64_MIN || b == INT64_MIN)
        return INT64_MIN;
    if (a == INT64_MAX || b == INT64_MAX)
        return INT64_MAX;
    return ts_add_i64(a, b, &r) ? r : a < 0 ? INT64_MIN : INT64_MAX;
}

static int64_t saturating_mul(int64_t a, int64_t b) {
    int64_t r;
    if (a == 0 || b == 0)
        return 0;
    if (a != INT64_MIN && b != INT64_MIN && a != INT64_MAX && b != INT64_MAX &&
        ts_mul_i64(a, b, &r))
        return r;
    return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

static interval multiply(interval a, interval b) {
    int64_t c[4] = {saturating_mul(a.low, b.low), saturating_mul(a.low, b.high),
                    saturating_mul(a.high, b.low), saturating_mul(a.high, b.high)};
    interval r = {c[0], c[0]};
    for (int i = 1; i < 4; i++) {
        r.low = c[i] < r.low ? c[i] : r.low;
        r.high = c[i] > r.high ? c[i] : r.high;
    }
    return r;
}

static int64_t floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static interval bounds_of(const ir_module *m, rt_dim d, int depth);

static interval atom_bounds(const ir_module *m, const atom *a, int depth) {
    interval x, y;
    switch (a->kind) {
    case IR_DIM_SYMBOL:
        return (interval){a->low, a->high};
    case IR_DIM_FLOORDIV:
        x = bounds_of(m, a->a, depth + 1);
        y = bounds_of(m, a->b, depth + 1);
        if (y.low < 1)
            return (interval){INT64_MIN, INT64_MAX};
        return (interval){
            x.low == INT64_MIN ? INT64_MIN : floor_div(x.low, x.low < 0 ? y.low : y.high),
            x.high == INT64_MAX ? INT64_MAX : floor_div(x.high, x.high < 0 ? y.high : y.low)};
    case IR_DIM_MAX:
        x = bounds_of(m, a->a, depth + 1);
        y = bounds_of(m, a->b, depth + 1);
        return (interval){x.low > y.low ? x.low : y.low, x.high > y.high ? x.high : y.high};
    case IR_DIM_MIN:
        x = bounds_of(m, a->a, depth + 1);
        y = bounds_of(m, a->b, depth + 1);
        return (interval){x.low < y.low ? x.low : y.low, x.high < y.high ? x.high : y.high};
    case IR_DIM_CONST:
    case IR_DIM_ADD:
    case IR_DIM_MUL:
        break;
    }
    return (interval){INT64_MIN, INT64_MAX};
}

static interval bounds_of(const ir_module *m, rt_dim d, int depth) {
    if (d == RT_DIM_UNKNOWN || depth > 8)
        return (interval){INT64_MIN, INT64_MAX};
    if (rt_dim_is_constant(d))
        return (interval){d, d};
    const expression *e = &m->sizes->expressions[index_of(d)];
    interval sum = {0, 0};
    for (size_t i = 0; i < e->count; i++) {
        interval product = {e->terms[i].coefficient, e->terms[i].coefficient};
        for (uint32_t j = 0; j < e->terms[i].atom_count; j++)
            product = multiply(product, atom_bounds(m, &m->sizes->atoms[e->terms[i].atoms[j]],
                                                    depth));
        sum.low = saturating_add(sum.low, product.low);
        sum.high = saturating_add(sum.high, product.high);
    }
    return sum;
}

/* ---- the algebra ---- */

static rt_dim add_scaled(ir_module *m, rt_dim a, rt_dim b, int64_t scale) {
    polynomial p, q;
    if (!load(m->sizes, a, &p) || !load(m->sizes, b, &q))
        return RT_DIM_UNKNOWN;
    for (size_t i = 0; i < q.count; i++) {
        if (!ts_mul_i64(q.terms[i].coefficient, scale, &q.terms[i].coefficient) ||
            !add_term(m->sizes, &p, &q.terms[i]))
            return RT_DIM_UNKNOWN;
    }
    return store(m, &p);
}

static rt_dim dim_add(void *user, rt_dim a, rt_dim b) { return add_scaled(user, a, b, 1); }
static rt_dim dim_sub(void *user, rt_dim a, rt_dim b) { return add_scaled(user, a, b, -1); }

static bool multiply_terms(const ir_size_table *table, const term *a, const term *b, term *out) {
    *out = (term){0};
    if (a->atom_count + b->atom_count > MAX_ATOMS ||
        !ts_mul_i64(a->coefficient, b->coefficient, &out->coefficient))
        return false;
    uint32_t i = 0, j = 0;
    while (i < a->atom_count || j < b->atom_count) {
        bool left = j == b->atom_count ||
                    (i < a->atom_count && compare_atoms(table, a->atoms[i], b->atoms[j]) <= 0);
        out->atoms[out->atom_count++] = left ? a->atoms[i++] : b->atoms[j++];
    }
    return true;
}

static rt_dim dim_mul(void *user, rt_dim a, rt_dim b) {
    ir_module *m = user;
    polynomial p, q, r = {0};
    if (a == 0 || b == 0)
        return 0;
    if (!load(m->sizes, a, &p) || !load(m->sizes, b, &q))
        return RT_DIM_UNKNOWN;
    for (size_t i = 0; i < p.count; i++)
        for (size_t j = 0; j < q.count; j++) {
            term t;
            if (!multiply_terms(m->sizes, &p.terms[i], &q.terms[j], &t) || !add_term(m->sizes, &r, &t))
                return RT_DIM_UNKNOWN;
        }
    return store(m, &r);
}

/* t / by exactly, where by divides it. */
static bool divide_term(const term *t, const term *by, term *out) {
    if (t->coefficient % by->coefficient != 0)
        return false;
    *out = (term){.coefficient = t->coefficient / by->coefficient};
    uint32_t j = 0;
    for (uint32_t i = 0; i < t->atom_count; i++) {
        if (j < by->atom_count && t->atoms[i] == by->atoms[j])
            j++;
        else
            out->atoms[out->atom_count++] = t->atoms[i];
    }
    return j == by->atom_count;
}

/* (p) // d for a constant d > 0: whole multiples come out, the rest stays inside. */
static rt_dim divide_by_constant(ir_module *m, const polynomial *p, int64_t d) {
    polynomial whole = {0}, rest = {0};
    for (size_t i = 0; i < p->count; i++) {
        term t = p->terms[i];
        int64_t quotient = floor_div(t.coefficient, d);
        term inside = t;
        inside.coefficient -= quotient * d;
        t.coefficient = quotient;
        if (!add_term(m->sizes, &whole, &t) || !add_term(m->sizes, &rest, &inside))
            return RT_DIM_UNKNOWN;
    }
    rt_dim quotient = store(m, &whole);
    if (rest.count == 0 || (rest.count == 1 && rest.terms[0].atom_count == 0))
        return quotient;
    /* (x//a + c)//d = (x + c*a)//(a*d) */
    const term *first = &rest.terms[0];
    bool has_constant = rest.count == 2 && rest.terms[1].atom_count == 0;
    if (first->coefficient == 1 && first->atom_count == 1 && (rest.count == 1 || has_constant)) {
        const atom *a = &m->sizes->atoms[first->atoms[0]];
        int64_t scaled = 0, product;
        if (a->kind == IR_DIM_FLOORDIV && rt_dim_is_constant(a->b) && a->b > 0 &&
            ts_mul_i64(a->b, d, &product) &&
            (!has_constant || ts_mul_i64(rest.terms[1].coefficient, a->b, &scaled))) {
            polynomial inner;
            if (load(m->sizes, a->a, &inner) && add_constant(m->sizes, &inner, scaled))
                return dim_add(m, quotient, divide_by_constant(m, &inner, product));
        }
    }
    rt_dim inside = store(m, &rest);
    interval range = bounds_of(m, inside, 0);
    if (range.low >= 0 && range.high < d)
        return quotient;
    return dim_add(m, quotient, make_atom(m, IR_DIM_FLOORDIV, inside, d));
}

static rt_dim dim_floordiv(void *user, rt_dim a, rt_dim b) {
    ir_module *m = user;
    polynomial p, q;
    if (!load(m->sizes, a, &p) || !load(m->sizes, b, &q) || q.count == 0)
        return RT_DIM_UNKNOWN;
    if (p.count == 0)
        return 0;
    if (q.count == 1 && q.terms[0].atom_count == 0) {
        if (q.terms[0].coefficient > 0)
            return divide_by_constant(m, &p, q.terms[0].coefficient);
        if (rt_dim_is_constant(a) && rt_dim_is_constant(b) && b != -1)
            return floor_div(a, b);
        return b == -1 ? dim_sub(m, 0, a) : make_atom(m, IR_DIM_FLOORDIV, a, b);
    }
    if (a == b)
        return 1; /* a divisor that is zero raises at run time */
    if (q.count == 1 && q.terms[0].coefficient > 0) {
        polynomial exact = {0};
        size_t i = 0;
        for (; i < p.count; i++) {
            term t;
            if (!divide_term(&p.terms[i], &q.terms[0], &t) || !add_term(m->sizes, &exact, &t))
                break;
        }
        if (i == p.count)
            return store(m, &exact);
    }
    return make_atom(m, IR_DIM_FLOORDIV, a, b);
}

/* The maximum or minimum that d is, and nothing more; NULL: it is something else. */
static const atom *whole_atom(const ir_module *m, rt_dim d, ir_dim_kind kind) {
    if (rt_dim_is_constant(d))
        return NULL;
    const expression *e = &m->sizes->expressions[index_of(d)];
    if (e->count != 1 || e->terms[0].coefficient != 1 || e->terms[0].atom_count != 1)
        return NULL;
    const atom *a = &m->sizes->atoms[e->terms[0].atoms[0]];
    return a->kind == kind ? a : NULL;
}

static rt_dim extremum(ir_module *m, rt_dim a, rt_dim b, bool is_max) {
    if (a == b)
        return a;
    if (a == RT_DIM_UNKNOWN || b == RT_DIM_UNKNOWN)
        return RT_DIM_UNKNOWN;
    for (int turn = 0; turn < 2; turn++) { /* min(min(x, y), x), min(min(x, 8), 5) */
        rt_dim inner = turn ? b : a, other = turn ? a : b;
        const atom *at = whole_atom(m, inner, is_max ? IR_DIM_MAX : IR_DIM_MIN);
        if (!at)
            continue;
        rt_dim x = at->a, y = at->b;
        if (x == other || y == other)
            return inner;
        if (!rt_dim_is_constant(other) || !(rt_dim_is_constant(x) || rt_dim_is_constant(y)))
            continue;
        rt_dim constant = rt_dim_is_constant(x) ? x : y, rest = rt_dim_is_constant(x) ? y : x;
        bool takes_other = is_max ? other > constant : other < constant;
        return takes_other ? extremum(m, rest, other, is_max) : inner;
    }
    interval difference = bounds_of(m, dim_sub(m, a, b), 0);
    if (difference.low >= 0)
        return is_max ? a : b;
    if (difference.high <= 0)
        return is_max ? b : a;
    int order = compare_dims(m->sizes, a, b);
    return make_atom(m, is_max ? IR_DIM_MAX : IR_DIM_MIN, order < 0 ? a : b,
                     order < 0 ? b : a);
}

static rt_dim dim_max(void *user, rt_dim a, rt_dim b) { return extremum(user, a, b, true); }
static rt_dim dim_min(void *user, rt_dim a, rt_dim b) { return extremum(user, a, b, false); }

static bool dim_equal(void *user, rt_dim a, rt_dim b) {
    (void)user;
    return a == b && a != RT_DIM_UNKNOWN;
}

void ir_size_table_init(ir_module *m) {
    ir_size_table *table = TS_NEW(m->arena, ir_size_table);
    m->sizes = table;
    table->algebra = (rt_dim_algebra){.user = m,
                                      .add = dim_add,
                                      .sub = dim_sub,
                                      .mul = dim_mul,
                                      .floordiv = dim_floordiv,
                                      .max = dim_max,
                                      .min = dim_min,
                                      .equal = dim_equal};
}

const rt_dim_algebra *ir_dim_algebra(ir_module *m) { return &m->sizes->algebra; }

bool ir_dim_bounds(const ir_module *m, rt_dim d, int64_t *out_low, int64_t *out_high) {
    interval range = bounds_of(m, d, 0);
    *out_low = range.low;
    *out_high = range.high;
    return d != RT_DIM_UNKNOWN;
}

/* ---- as a tree, for those who emit code or estimate ---- */

static rt_dim of_term(ir_module *m, const term *t) {
    polynomial p = {.count = 1, .terms = {*t}};
    return store(m, &p);
}

static ir_dim_node make_node(ir_module *m, const polynomial *p) {
    const term *last = &p->terms[p->count - 1];
    if (p->count > 1) {
        polynomial rest = *p;
        rest.count--;
        return (ir_dim_node){.kind = IR_DIM_ADD, .a = store(m, &rest), .b = of_term(m, last)};
    }
    if (last->coefficient != 1 || last->atom_count > 1) {
        /* coefficient * (atoms) or (atoms but the last) * last atom */
        if (last->coefficient != 1) {
            term atoms = *last;
            atoms.coefficient = 1;
            return (ir_dim_node){
                .kind = IR_DIM_MUL, .a = last->coefficient, .b = of_term(m, &atoms)};
        }
        term front = *last;
        front.atom_count--;
        return (ir_dim_node){.kind = IR_DIM_MUL,
                             .a = of_term(m, &front),
                             .b = of_atom(m, last->atoms[last->atom_count - 1])};
    }
    const atom *a = &m->sizes->atoms[last->atoms[0]];
    return (ir_dim_node){.kind = a->kind, .symbol = a->name, .a = a->a, .b = a->b};
}

ir_dim_node ir_dim_get(const ir_module *m, rt_dim d) {
    if (rt_dim_is_constant(d) || d == RT_DIM_UNKNOWN)
        return (ir_dim_node){.kind = IR_DIM_CONST, .constant = d};
    /* Parts of an expression may be new expressions: the table grows, what it says does not. */
    ir_module *grows = (ir_module *)(uintptr_t)m;
    expression *e = &m->sizes->expressions[index_of(d)];
    if (e->has_node)
        return e->node;
    polynomial p = {.count = e->count};
    memcpy(p.terms, e->terms, e->count * sizeof(term));
    ir_dim_node node = make_node(grows, &p);
    e = &m->sizes->expressions[index_of(d)];
    e->node = node;
    e->has_node = true;
    return node;
}

/* False: unknown, or too large. */
static bool estimate(const ir_module *m, rt_dim d, int64_t symbol, int depth, int64_t *out) {
    ir_dim_node n = ir_dim_get(m, d);
    int64_t a, b, low, high;
    if (depth > MAX_DEPTH || d == RT_DIM_UNKNOWN)
        return false;
    if (n.kind == IR_DIM_CONST || n.kind == IR_DIM_SYMBOL) {
        ir_dim_bounds(m, d, &low, &high);
        *out = symbol < low ? low : symbol < high ? symbol : high;
        return true;
    }
    if (!estimate(m, n.a, symbol, depth + 1, &a) || !estimate(m, n.b, symbol, depth + 1, &b))
        return false;
    switch (n.kind) {
    case IR_DIM_ADD:
        return ts_add_i64(a, b, out);
    case IR_DIM_MUL:
        return ts_mul_i64(a, b, out);
    case IR_DIM_FLOORDIV:
        *out = b > 0 ? floor_div(a, b) : 0;
        return b > 0;
    case IR_DIM_MAX:
        *out = a > b ? a : b;
        return true;
    case IR_DIM_MIN:
        *out = a < b ? a : b;
        return true;
    case IR_DIM_CONST:
    case IR_DIM_SYMBOL:
        break;
    }
    return false;
}

int64_t ir_dim_estimate(const ir_module *m, rt_dim d, int64_t symbol) {
    int64_t value;
    return estimate(m, d, symbol, 0, &value) && value >= 0 ? value : -1;
}

/* ---- text ---- */

static void print_factor(const ir_module *m, rt_dim d, ts_buffer *out) {
    bool simple = rt_dim_is_constant(d) ? d >= 0 : ir_dim_symbol_name(m, d).length > 0;
    if (!simple)
        ts_buffer_char(out, '(');
    ir_dim_print(m, d, out);
    if (!simple)
        ts_buffer_char(out, ')');
}

static void print_atom(const ir_module *m, const atom *a, bool alone, ts_buffer *out) {
    switch (a->kind) {
    case IR_DIM_FLOORDIV:
        if (!alone)
            ts_buffer_char(out, '(');
        print_factor(m, a->a, out);
        ts_buffer_text(out, "//");
        print_factor(m, a->b, out);
        if (!alone)
            ts_buffer_char(out, ')');
        break;
    case IR_DIM_MAX:
    case IR_DIM_MIN:
        ts_buffer_text(out, a->kind == IR_DIM_MAX ? "max(" : "min(");
        ir_dim_print(m, a->a, out);
        ts_buffer_char(out, ',');
        ir_dim_print(m, a->b, out);
        ts_buffer_char(out, ')');
        break;
    case IR_DIM_SYMBOL:
    case IR_DIM_CONST:
    case IR_DIM_ADD:
    case IR_DIM_MUL:
        ts_buffer_str(out, a->name);
        break;
    }
}

void ir_dim_print(const ir_module *m, rt_dim d, ts_buffer *out) {
    if (d == RT_DIM_UNKNOWN) {
        ts_buffer_char(out, '?');
        return;
    }
    if (rt_dim_is_constant(d)) {
        ts_buffer_format(out, "%lld", (long long)d);
        return;
    }
    const expression *e = &m->sizes->expressions[index_of(d)];
    for (size_t i = 0; i < e->count; i++) {
        const term *t = &e->terms[i];
        if (i && t->coefficient > 0)
            ts_buffer_char(out, '+');
        if (t->atom_count == 0 || (t->coefficient != 1 && t->coefficient != -1))
            ts_buffer_format(out, "%lld%s", (long long)t->coefficient, t->atom_count ? "*" : "");
        else if (t->coefficient == -1)
            ts_buffer_char(out, '-');
        for (uint32_t j = 0; j < t->atom_count; j++) {
            if (j)
                ts_buffer_char(out, '*');
            print_atom(m, &m->sizes->atoms[t->atoms[j]],
                       t->atom_count == 1 && t->coefficient == 1, out);
        }
    }
}

static ts_status read_sum(ir_text *t, rt_dim *out);

static ts_status read_primary(ir_text *t, rt_dim *out) {
    int64_t n;
    if (ir_text_take(t, "?")) {
        *out = RT_DIM_UNKNOWN;
        return NULL;
    }
    if (ir_text_int(t, &n)) {
        if (n < RT_DIM_HANDLES)
            return ir_text_error(t, "a size");
        *out = n;
        return NULL;
    }
    if (ir_text_take(t, "(")) {
        TS_TRY(read_sum(t, out));
        return ir_text_expect(t, ")");
    }
    if (ir_text_take(t, "-")) {
        TS_TRY(read_primary(t, out));
        *out = dim_sub(t->m, 0, *out);
        return NULL;
    }
    bool is_max = ir_text_peek(t, "max(");
    if (is_max || ir_text_peek(t, "min(")) {
        rt_dim a, b;
        t->at += 4;
        TS_TRY(read_sum(t, &a));
        TS_TRY(ir_text_expect(t, ","));
        TS_TRY(read_sum(t, &b));
        *out = extremum(t->m, a, b, is_max);
        return ir_text_expect(t, ")");
    }
    ts_str name = ir_text_name(t);
    if (!name.length)
        return ir_text_error(t, "a size");
    *out = ir_dim_symbol(t->m, name);
    int64_t low, high = INT64_MAX;
    if (ir_text_take(t, "=")) {
        if (!ir_text_int(t, &low) || low < 0)
            return ir_text_error(t, "a lower bound of a size");
        TS_TRY(ir_text_expect(t, ".."));
        if (ir_text_int(t, &high) && high < low)
            return ir_text_error(t, "an upper bound that is not below the lower one");
        ir_dim_set_bounds(t->m, *out, low, high);
    }
    return NULL;
}

static ts_status read_product(ir_text *t, rt_dim *out) {
    TS_TRY(read_primary(t, out));
    for (;;) {
        bool divide = ir_text_take(t, "//");
        if (!divide && !ir_text_take(t, "*"))
            return NULL;
        rt_dim right;
        TS_TRY(read_primary(t, &right));
        *out = divide ? dim_floordiv(t->m, *out, right) : dim_mul(t->m, *out, right);
    }
}

static ts_status read_sum(ir_text *t, rt_dim *out) {
    if (++t->depth > IR_TEXT_DEPTH)
        return ir_text_error(t, "less nesting");
    TS_TRY(read_product(t, out));
    for (;;) {
        bool minus = ir_text_peek(t, "-");
        if (!minus && !ir_text_peek(t, "+"))
            break;
        t->at++;
        rt_dim right;
        TS_TRY(read_product(t, &right));
        *out = add_scaled(t->m, *out, right, minus ? -1 : 1);
    }
    t->depth--;
    return NULL;
}

ts_status ir_dim_read(ir_text *t, rt_dim *out) { return read_sum(t, out); }

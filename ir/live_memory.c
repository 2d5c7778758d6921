/* ir/live_memory.c - lives of the results of kernels, and the largest sum of what is alive at once.
 *
 * Lives are intervals of the operators' numbers in the order of the text. Where sizes are symbolic
 * the point of the largest sum is looked for with a usual number for each symbol; the sum is then
 * given as a formula of the symbols. */
#include "ir/live_memory.h"

#include "ir/strided_view.h"

static uint32_t number_ops(ir_block *block, uint32_t n, int depth) {
    for (ir_op *op = block->first; op; op = op->next) {
        op->number = n++;
        for (size_t i = 0; op->opcode != IR_OP_KERNEL && depth < 500 && i < op->region_count; i++)
            n = number_ops(op->regions[i], n, depth + 1);
    }
    return n;
}

uint32_t ir_number_ops(ir_block *block) { return number_ops(block, 0, 0); }

/* Symbols are taken for `symbol`; -1: symbols are not. */
static int64_t bytes_of(const ir_module *m, const ir_type *t, int64_t symbol) {
    if (!ir_type_is_known_tensor(t))
        return -1;
    int64_t n = (int64_t)rt_dtype_size(t->dtype);
    for (int d = 0; d < t->rank; d++) {
        int64_t size = t->dims[d];
        if (!rt_dim_is_constant(size))
            size = symbol < 0 ? -1 : ir_dim_estimate(m, size, symbol);
        if (size < 0 || (size > 0 && n > INT64_MAX / 4 / size))
            return -1;
        n *= size;
    }
    return (n + IR_BUFFER_ALIGN - 1) / IR_BUFFER_ALIGN * IR_BUFFER_ALIGN;
}

int64_t ir_buffer_bytes(const ir_type *t) { return bytes_of(NULL, t, -1); }

int64_t ir_usual_bytes(const ir_module *m, const ir_type *t) {
    return bytes_of(m, t, IR_USUAL_SIZE);
}

/* The operator of `block` in which `op` lies. */
static const ir_op *in_block(const ir_op *op, const ir_block *block) {
    while (op && op->block != block)
        op = op->block->parent;
    return op;
}

bool ir_last_reader(const ir_value *v, uint32_t *out_end) {
    const ir_block *block = v->def->block;
    bool only_kernels = true;
    *out_end = v->def->number;
    for (size_t i = 0; i < v->use_count; i++) {
        const ir_op *user = v->uses[i].op;
        only_kernels = only_kernels && user->opcode == IR_OP_KERNEL;
        const ir_op *outer = in_block(user, block);
        if (!outer)
            return false;
        /* To the end of a branch or loop: the number before the next operator's. */
        uint32_t end = outer->region_count && outer != user && outer->next
                           ? outer->next->number - 1
                           : outer->number;
        if (end > *out_end)
            *out_end = end;
    }
    return only_kernels;
}

/* ---- the largest sum ---- */

typedef struct life {
    const ir_value *value;
    uint32_t begin, end;
    int64_t usual; /* bytes, with a usual number for each symbol */
    bool is_planned;
} life;

typedef struct survey {
    ir_module *m;
    life *lives;
    size_t count, capacity;
    uint32_t last; /* number of the last operator */
    bool is_partial;
} survey;

enum { USUAL_SIZE = 64 };

/* A size with the usual number for each symbol, or its bound where that is smaller. */
static int64_t usual_size(const ir_module *m, rt_dim d, int depth) {
    if (rt_dim_is_constant(d))
        return d;
    ir_dim_node n = ir_dim_get(m, d);
    int64_t low, high;
    if (n.kind == IR_DIM_CONST)
        return n.constant;
    if (n.kind == IR_DIM_SYMBOL || depth > 50)
        return ir_dim_bounds(m, d, &low, &high) && high < USUAL_SIZE ? high : USUAL_SIZE;
    int64_t a = usual_size(m, n.a, depth + 1), b = usual_size(m, n.b, depth + 1), r = 0;
    switch (n.kind) {
    case IR_DIM_ADD: return __builtin_add_overflow(a, b, &r) ? INT64_MAX : r;
    case IR_DIM_MUL: return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
    case IR_DIM_FLOORDIV: return b ? a / b : a;
    case IR_DIM_MAX: return a > b ? a : b;
    case IR_DIM_MIN: return a < b ? a : b;
    case IR_DIM_CONST:
    case IR_DIM_SYMBOL: break;
    }
    return 0;
}

/* Bytes of a tensor, or -1 where a size is not even a symbol. */
static int64_t usual_bytes(const ir_module *m, const ir_type *t) {
    if (t->kind != IR_TENSOR || t->dtype == RT_DTYPE_UNKNOWN || t->rank < 0)
        return -1;
    int64_t n = (int64_t)rt_dtype_size(t->dtype);
    for (int d = 0; d < t->rank; d++) {
        if (!rt_dim_is_constant(t->dims[d]) && !rt_dim_is_symbolic(t->dims[d]))
            return -1;
        int64_t size = usual_size(m, t->dims[d], 0);
        if (size < 0 || __builtin_mul_overflow(n, size, &n) || n > INT64_MAX / 4)
            return INT64_MAX / 4;
    }
    return (n + IR_BUFFER_ALIGN - 1) / IR_BUFFER_ALIGN * IR_BUFFER_ALIGN;
}

static void collect(survey *s, const ir_block *block, int depth) {
    for (const ir_op *op = block->first; op && depth < 500; op = op->next) {
        if (op->opcode != IR_OP_KERNEL) {
            for (size_t i = 0; i < op->region_count; i++)
                collect(s, op->regions[i], depth + 1);
            continue;
        }
        for (size_t r = 0; r < op->result_count; r++) {
            const ir_value *v = op->results[r];
            life l = {.value = v, .begin = op->number, .usual = usual_bytes(s->m, v->type),
                      .is_planned = v->buffer_offset >= 0};
            if (l.usual < 0) {
                s->is_partial = true;
                continue;
            }
            if (!ir_last_reader(v, &l.end))
                l.end = s->last; /* returned, in a list, carried by a loop */
            TS_APPEND(s->m->arena, s->lives, s->count, s->capacity, l);
        }
    }
}

/* The number of an operator at which the sum is largest. */
static uint32_t find_peak(const survey *s, bool planned_only, int64_t *out_sum) {
    int64_t *change = TS_NEW_ARRAY(s->m->arena, int64_t, (size_t)s->last + 2);
    for (size_t i = 0; i < s->count; i++)
        if (s->lives[i].is_planned || !planned_only) {
            change[s->lives[i].begin] += s->lives[i].usual;
            change[s->lives[i].end + 1] -= s->lives[i].usual;
        }
    int64_t sum = 0;
    uint32_t at = 0;
    *out_sum = 0;
    for (uint32_t n = 0; n <= s->last; n++) {
        sum += change[n];
        if (sum > *out_sum) {
            *out_sum = sum;
            at = n;
        }
    }
    return at;
}

/* The arena, and what else is alive where most is. */
static ts_str formula_at(const survey *s, uint32_t at, int64_t arena) {
    ir_module *m = s->m;
    const rt_dim_algebra *algebra = ir_dim_algebra(m);
    rt_dim total = arena;
    for (size_t i = 0; i < s->count; i++) {
        const life *l = &s->lives[i];
        if (l->is_planned || l->begin > at || l->end < at)
            continue;
        rt_dim bytes = (rt_dim)rt_dtype_size(l->value->type->dtype);
        for (int d = 0; d < l->value->type->rank; d++)
            bytes = algebra->mul(algebra->user, bytes, l->value->type->dims[d]);
        total = algebra->add(algebra->user, total, bytes);
    }
    ts_buffer text = {0};
    ir_dim_print(m, total, &text);
    ts_str formula = text.failed ? TS_STR("?") : ts_arena_str(m->arena, (ts_str){text.data, text.length});
    ts_buffer_deinit(&text);
    return formula;
}

ir_live_memory ir_live_memory_of(ir_module *m, ir_function *f) {
    survey s = {.m = m};
    uint32_t count = ir_number_ops(f->body);
    s.last = count ? count - 1 : 0;
    collect(&s, f->body, 0);
    ir_live_memory out = {.is_partial = s.is_partial};
    for (size_t i = 0; i < s.count; i++) {
        const ir_value *v = s.lives[i].value;
        int64_t end = s.lives[i].is_planned ? v->buffer_offset + s.lives[i].usual : 0;
        out.planned = end > out.planned ? end : out.planned;
    }
    int64_t all = 0;
    find_peak(&s, true, &out.live);
    out.formula = formula_at(&s, find_peak(&s, false, &all), out.planned);
    return out;
}

ts_str ir_live_memory_text(ir_module *m, const ir_live_memory *need) {
    return ts_arena_format(m->arena, "%lld bytes planned, %lld alive at most; with all results of "
                           "kernels: %.*s%s", (long long)need->planned, (long long)need->live,
                           TS_STR_ARG(need->formula),
                           need->is_partial ? " and those of unknown size" : "");
}

/* codegen/emit_llvm_tile.c - a tile of a matrix product, from its first term to memory, in registers.
 *
 *   sums[i][j] = sum over t < taps, c < length of row(t, i)[c] * panel(j)[t * length + c][lanes of j]
 *
 * Rows lie in constant steps (matrices, lines of images), or at addresses of their own for every tap
 * (convolutions without a copy of the image; an address of zeros stands for padding). The sums stay
 * in registers until the epilogue has been applied and its results are stored: rows * vectors +
 * vectors + 1 must not exceed the register file (14 x 2 vectors on AVX-512, 6 x 2 on AVX2), past
 * that everything spills. */
#include "codegen/emit_llvm_contraction.h"

#include <string.h>

enum { MAX_UNROLLED_TERMS = 8 };

typedef struct sum_state {
    const kn_tile *t;
    int lanes, count;
    LLVMValueRef rows[KN_MAX_TILE]; /* of this tap; NULL entries: row 0 and a constant step */
    LLVMValueRef sums[KN_MAX_TILE];
    LLVMValueRef next; /* of this tap: what is prefetched */
} sum_state;

static bool is_constant(LLVMValueRef v, int64_t *out) {
    if (!LLVMIsAConstantInt(v))
        return false;
    *out = LLVMConstIntGetSExtValue(v);
    return true;
}

static int64_t terms_of_step(const kn_emitter *e, const kn_tile *t) {
    return t->has_squares ? e->width : kn_format_step(t->format);
}

/* Step number `step` (of the format: one term, or a few) behind `at` (bytes) in every row and behind
 * b; k is the index of the first term, of which there are `terms`. */
static void emit_step(kn_emitter *e, sum_state *s, LLVMValueRef at, LLVMValueRef b, int64_t step,
                      LLVMValueRef k, int64_t terms) {
    const kn_tile *t = s->t;
    LLVMValueRef columns[KN_MAX_TILE];
    kn_step parts = {.t = t, .next = s->next};
    int64_t row_step = 0, first = step * terms_of_step(e, t);
    if (!t->table)
        is_constant(t->row_step, &row_step);
    kn_step_begin(e, &parts, b, step, k, terms);
    for (int round = 0; round < kn_step_rounds(&parts, terms); round++) {
        kn_step_columns(e, &parts, round, columns);
        for (int i = 0; i < t->rows; i++) {
            LLVMValueRef row = s->rows[i] ? s->rows[i] : s->rows[0];
            LLVMValueRef a = kn_address(e, row, at);
            a = kn_address(e, a, kn_i64(e, (first + round) * t->term_step +
                                               (s->rows[i] ? 0 : i * row_step)));
            a = kn_step_row(e, &parts, a, terms);
            for (int j = 0; j < t->vectors; j++) {
                LLVMValueRef *sum = &s->sums[i * t->vectors + j];
                *sum = kn_step_multiply(e, &parts, a, columns[j], *sum);
            }
        }
    }
}

/* Terms [from, to): `unroll` steps at a time; s->sums[s->count] is where the right side is. */
static void emit_terms(kn_emitter *e, sum_state *s, LLVMValueRef from, LLVMValueRef to, int unroll,
                       LLVMValueRef step_bytes) {
    int64_t step = terms_of_step(e, s->t);
    kn_loop terms;
    kn_loop_begin(e, &terms, from, to, unroll * step, s->sums, s->count + 1);
    memcpy(s->sums, terms.phis, sizeof s->sums);
    LLVMValueRef at = kn_mul(e, terms.index, kn_i64(e, s->t->term_step)), here = s->sums[s->count];
    for (int u = 0; u < unroll; u++)
        emit_step(e, s, at, here, u, kn_add(e, terms.index, kn_i64(e, u * step)), step);
    s->sums[s->count] = kn_address(e, here, kn_mul(e, step_bytes, kn_i64(e, unroll)));
    kn_loop_end(e, &terms, s->sums);
    memcpy(s->sums, terms.exit_phis, sizeof s->sums);
}

/* The terms of one tap; returns b behind them. */
static LLVMValueRef emit_tap(kn_emitter *e, sum_state *s, LLVMValueRef b) {
    const kn_tile *t = s->t;
    int64_t length, row_step = 0, step = terms_of_step(e, t);
    LLVMValueRef step_bytes = t->line_bytes ? kn_mul(e, t->line_bytes, kn_i64(e, step))
                                            : kn_i64(e, kn_format_step_bytes(t->format));
    if (t->next) {
        LLVMValueRef behind = LLVMBuildPtrDiff2(e->b, e->unit->i8, b, t->right, "");
        s->next = kn_address(e, t->next, LLVMBuildLShr(e->b, behind, t->next_shift, ""));
    }
    /* Rows of lines overlap: unrolled, their common elements would be kept in registers that the
     * sums need. */
    bool overlaps = !t->table && is_constant(t->taps, &length) && length > 1 &&
                    is_constant(t->row_step, &row_step) && is_constant(t->length, &length) &&
                    row_step < length * t->term_step &&
                    s->count * 2 > e->unit->target->vector_registers;
    if (is_constant(t->length, &length) && length <= MAX_UNROLLED_TERMS && !overlaps) {
        for (int64_t i = 0; i * step < length; i++)
            emit_step(e, s, kn_i64(e, 0), b, i, kn_i64(e, i * step),
                      length - i * step < step ? length - i * step : step);
        return kn_address(e, b, kn_mul(e, step_bytes, kn_i64(e, (length + step - 1) / step)));
    }
    /* Few sums leave room in the front end for the loop's own work only if that is shared. */
    int unroll = 1;
    int64_t rest = 0;
    if (is_constant(t->length, &length))
        rest = length % step;
    if (is_constant(t->length, &length) && rest == 0 && !t->has_squares)
        while (unroll < 4 && s->count * unroll < 16 && length % (unroll * 2 * step) == 0)
            unroll *= 2;
    s->sums[s->count] = b;
    LLVMValueRef end = t->has_squares ? LLVMBuildAnd(e->b, t->length, kn_i64(e, -step), "")
                                      : kn_sub(e, t->length, kn_i64(e, rest));
    emit_terms(e, s, kn_i64(e, 0), end, unroll, step_bytes);
    if (t->has_squares && !LLVMIsConstant(t->length)) { /* what is left of them, one by one */
        kn_tile singly = *t;
        singly.has_squares = false;
        s->t = &singly;
        emit_terms(e, s, end, t->length, 1, t->line_bytes);
        s->t = t;
    }
    if (rest) {
        LLVMValueRef here = s->sums[s->count];
        emit_step(e, s, kn_mul(e, end, kn_i64(e, t->term_step)), here, 0, end, rest);
        return kn_address(e, here, step_bytes);
    }
    return s->sums[s->count];
}

static void find_rows(kn_emitter *e, sum_state *s, LLVMValueRef from) {
    const kn_tile *t = s->t;
    int64_t step;
    memset(s->rows, 0, sizeof s->rows);
    s->rows[0] = from;
    if (!t->table && is_constant(t->row_step, &step))
        return;
    for (int i = 0; i < t->rows; i++)
        s->rows[i] = t->table ? LLVMBuildLoad2(e->b, e->unit->pointer,
                                               kn_address(e, from, kn_i64(e, i * 8)), "")
                              : kn_address(e, from, kn_mul(e, t->row_step, kn_i64(e, i)));
}

void kn_emit_tile_sums(kn_emitter *e, const kn_tile *t, LLVMValueRef *out_sums) {
    sum_state s = {.t = t, .lanes = e->width, .count = t->rows * t->vectors};
    LLVMValueRef from = t->table ? t->table : t->left, b = t->right;
    LLVMValueRef step = t->table ? kn_i64(e, t->table_step) : t->tap_step;
    int64_t taps;
    for (int i = 0; i < s.count; i++)
        s.sums[i] = LLVMConstNull(kn_llvm_type(e, RT_float32, s.lanes));
    if (is_constant(t->taps, &taps) && taps == 1) {
        find_rows(e, &s, from);
        emit_tap(e, &s, b);
    } else {
        kn_loop loop;
        s.sums[s.count] = b;
        s.sums[s.count + 1] = from;
        kn_loop_begin(e, &loop, kn_i64(e, 0), t->taps, 1, s.sums, s.count + 2);
        memcpy(s.sums, loop.phis, sizeof s.sums);
        from = loop.phis[s.count + 1];
        find_rows(e, &s, from);
        b = emit_tap(e, &s, loop.phis[s.count]);
        s.sums[s.count] = b;
        s.sums[s.count + 1] = kn_address(e, from, step);
        kn_loop_end(e, &loop, s.sums);
        memcpy(s.sums, loop.exit_phis, sizeof s.sums);
    }
    kn_step_finish(e, t, s.sums);
    memcpy(out_sums, s.sums, (size_t)s.count * sizeof *out_sums);
}

/* ---- the epilogue ---- */

bool kn_fits_registers(const kn_kernel *k, int accumulators) {
    int cost = 0;
    for (int i = 0; i < k->node_count; i++) {
        const kn_node *n = &k->nodes[i];
        if (!n->is_needed || n->code == KN_CONSTANT || n->code == KN_TILE || n->code == KN_lt || n->code == KN_gt)
            continue; /* a comparison and its selection are one instruction */
        cost += kn_scalar_is_heavy(n->code) ? 40 : 1;
    }
    return cost * accumulators <= 400;
}

void kn_step_bases(kn_emitter *e, LLVMValueRef *bases, LLVMValueRef *store_bases, int d,
                   int64_t count) {
    kn_kernel *k = e->k;
    for (int i = 0; i < k->node_count; i++) {
        const kn_access *a = &k->nodes[i].access;
        if (k->nodes[i].code == KN_LOAD && k->nodes[i].is_needed)
            e->bases[i] = kn_element(e, bases[i], kn_mul(e, kn_size(e, a->strides[d]), kn_i64(e, count)),
                                     (int64_t)rt_dtype_size(a->element));
    }
    for (int i = 0; i < k->store_count; i++) {
        const kn_access *a = &k->stores[i].access;
        e->store_bases[i] =
            kn_element(e, store_bases[i], kn_mul(e, kn_size(e, a->strides[d]), kn_i64(e, count)),
                       (int64_t)rt_dtype_size(a->element));
    }
}

static void *copy_of(kn_emitter *e, const void *from, size_t bytes) {
    return memcpy(ts_arena_alloc(e->unit->arena, bytes + 1), from, bytes);
}

/* Addresses are relative to the tile; indices as values are not. */
static void set_indices(kn_emitter *e, int dim, LLVMValueRef index) {
    for (int i = 0; i < e->k->node_count; i++) {
        const kn_node *n = &e->k->nodes[i];
        if (n->is_needed && n->code == KN_INDEX && n->dim == dim)
            e->memo[i] = kn_is_uniform(e, n) || e->width == 1
                             ? index
                             : LLVMBuildAdd(e->b, kn_splat(e, index, e->width), kn_lane_numbers(e), "");
    }
}

/* ---- stores whose columns lie apart and whose rows do not: transposed in registers ---- */

static bool is_planar(const kn_emitter *e, const kn_store *s, int rows, LLVMValueRef mask) {
    const kn_kernel *k = e->k;
    int m = k->contraction.batch_count;
    return e->width > 2 && rows * 2 >= e->width && s->access.element == RT_float32 &&
           k->nodes[s->node].type == RT_float32 && s->access.strides[m] == 1 &&
           s->access.strides[m + 1] != 1 && s->access.strides[m + 1] != 0 &&
           (!mask || LLVMIsConstant(mask));
}

static bool lane_exists(LLVMValueRef mask, int lane) {
    return !mask || LLVMConstIntGetZExtValue(LLVMGetAggregateElement(mask, (unsigned)lane)) != 0;
}

/* values[row][lanes: columns] from `base` on, the address of the first. */
static void emit_planar_store(kn_emitter *e, const kn_store *s, LLVMValueRef base,
                              LLVMValueRef const *values, int rows, LLVMValueRef mask) {
    int w = e->width;
    LLVMValueRef stride = kn_size(e, s->access.strides[e->k->contraction.batch_count + 1]);
    for (int first = 0; first < rows; first += w) {
        LLVMValueRef square[64], rows_mask = NULL;
        int count = rows - first < w ? rows - first : w;
        for (int i = 0; i < w; i++)
            square[i] = i < count ? values[first + i] : LLVMGetUndef(LLVMTypeOf(values[0]));
        kn_transpose(e, square, w);
        if (count < w)
            rows_mask = kn_lane_mask(e, kn_i64(e, count), w);
        for (int lane = 0; lane < w; lane++) {
            if (!lane_exists(mask, lane))
                continue;
            LLVMValueRef to = kn_element(e, base, kn_mul(e, stride, kn_i64(e, lane)), 4);
            kn_emit_store(e, square[lane], kn_address(e, to, kn_i64(e, first * 4)), NULL,
                          RT_float32, w, rows_mask);
        }
    }
}

void kn_emit_tile_stores(kn_emitter *e, int rows, int vectors, LLVMValueRef *sums, LLVMValueRef m,
                         LLVMValueRef column, LLVMValueRef const *masks, const int64_t *at) {
    kn_kernel *k = e->k;
    int m_dim = k->contraction.batch_count, n_dim = m_dim + 1;
    size_t nodes = (size_t)k->node_count * sizeof *e->memo;
    e->index[m_dim] = m;
    e->index[n_dim] = column;
    kn_prepare_bases(e, (1u << (n_dim + 1)) - 1);
    LLVMValueRef *bases = copy_of(e, e->bases, nodes);
    LLVMValueRef *store_bases =
        copy_of(e, e->store_bases, (size_t)k->store_count * sizeof *store_bases);
    LLVMValueRef *before = copy_of(e, e->memo, nodes), *shared = copy_of(e, e->memo, nodes);
    int planar = -1; /* the first such store; more are rare */
    for (int st = k->store_count - 1; st >= 0; st--)
        if (is_planar(e, &k->stores[st], at ? 0 : rows, NULL))
            planar = st;
    for (int j = 0; j < vectors; j++) {
        e->index[n_dim] = kn_i64(e, j * e->width);
        e->mask = masks[j];
        set_indices(e, n_dim, kn_add(e, column, e->index[n_dim]));
        /* What all rows share (a bias) is loaded once. */
        for (int i = 0; i < k->node_count; i++)
            if (k->nodes[i].is_needed && !(k->nodes[i].dims & (1u << m_dim)))
                kn_value(e, i);
        memcpy(shared, e->memo, nodes);
        LLVMValueRef values[KN_MAX_TILE];
        for (int i = 0; i < rows; i++) {
            int64_t row = at ? at[i] : i;
            kn_step_bases(e, bases, store_bases, m_dim, row);
            set_indices(e, m_dim, kn_add(e, m, kn_i64(e, row)));
            e->tile_value = sums[i * vectors + j];
            for (int st = 0; st < k->store_count; st++)
                if (st != planar || !is_planar(e, &k->stores[st], at ? 0 : rows, e->mask))
                    kn_emit_store_node(e, st);
                else
                    values[i] = kn_vector_value(e, k->stores[st].node);
            memcpy(e->memo, shared, nodes);
        }
        if (planar >= 0 && is_planar(e, &k->stores[planar], at ? 0 : rows, e->mask)) {
            const kn_store *s = &k->stores[planar];
            LLVMValueRef column_offset = kn_mul(e, e->index[n_dim], kn_size(e, s->access.strides[n_dim]));
            emit_planar_store(e, s, kn_element(e, store_bases[planar], column_offset, 4), values,
                              rows, e->mask);
        }
        memcpy(e->memo, before, nodes);
        memcpy(e->bases, bases, nodes);
    }
    e->mask = NULL;
    e->tile_value = NULL;
}

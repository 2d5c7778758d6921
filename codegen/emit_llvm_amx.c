/* codegen/emit_llvm_amx.c - contractions through AMX: rows by panels of 16 columns.
 *
 *   item = (block of rows, group of panels); a part's items of one block are joined
 *     for blocks of terms                the rows' parts stay in the second-level cache
 *       for two panels                   two sets of their parts: one in use, one being made
 *         for two tiles of rows
 *           products of tiles; meanwhile rows of the next two tiles are split (while the first panels are
 *           multiplied), and some lines of the next panels
 *           epilogue
 *
 * Tiles whose rows or columns hold what is not finite are computed once more without parts. */
#include "codegen/emit_llvm_amx.h"
#include "codegen/emit_llvm_contraction.h"

#include <string.h>

enum { MOST_TERMS = 768, MOST_ROWS = 256, MOST_LEFT_BYTES = 1 << 20, MOST_SUMS_BYTES = 3 << 18 };
enum { SUM_ROW = 2 * KN_PANEL * 4 }; /* bytes of a row of two panels' sums */

typedef struct amx {
    kn_emitter *e;
    kn_pieces *x;
    int64_t steps;             /* of a block of terms */
    int64_t pair;              /* rows of two tiles */
    int64_t pair_bytes, columns_bytes, sums_bytes; /* parts of these rows, of two panels; sums of both */
    bool has_tail;             /* terms end within a step */
    int64_t line_bytes;        /* from a line of a panel to the next */
    LLVMValueRef parts;        /* of rows: [two tiles] */
    LLVMValueRef columns;      /* parts of columns: two panels, and the next two */
    LLVMValueRef flags;        /* [two tiles] */
    LLVMValueRef column_flags; /* [two panels], or NULL: they are finite */
    LLVMValueRef sums;         /* [two panels][two tiles] of the terms so far, or NULL: all at once */
    LLVMValueRef term_begin;   /* of this block */
    LLVMValueRef count, pairs; /* rows of the item, and how many times two tiles */
    LLVMValueRef last_panel;
} amx;

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- the plan ---- */

/* Whether lines of a right operand that is no constant are read where they lie. */
static bool reads_lines(const kn_kernel *k) {
    const kn_contraction *c = &k->contraction;
    return !c->right_is_packed && c->right.strides[c->batch_count + 1] == 1 && rt_dim_is_constant(c->right_k) &&
           k->dims[c->batch_count + 1].size % KN_PANEL == 0;
}

/* Rows of a tile and pairs of tiles of a block so that tiles are full. */
static void choose_rows(int64_t rows, int64_t most, kn_plan *p) {
    int64_t best = INT64_MAX;
    for (int64_t pairs = most / (2 * 16); pairs >= 1; pairs--)
        for (int64_t tile = 16; tile >= 12; tile--) {
            int64_t block = pairs * 2 * tile, blocks = kn_ceil_div(rows, block), rest = rows - (blocks - 1) * block;
            int64_t all = (blocks - 1) * pairs + kn_ceil_div(rest, 2 * tile);
            if (rows < 2 * tile && tile != 16 && 2 * (tile - 1) >= rows)
                continue;
            int64_t cost = all * (tile + 1) + blocks * 4;
            if (cost < best) {
                best = cost;
                p->rows = (int)(2 * tile);
                p->amx_pairs = min_of(pairs, kn_ceil_div(rows, 2 * tile));
            }
        }
    if (rows < p->rows) { /* one pair */
        p->rows = (int)(2 * ((rows + 1) / 2));
        p->amx_pairs = 1;
    }
    p->block = p->amx_pairs * p->rows;
}

static int64_t pair_bytes(int64_t steps) { return steps * AMX_STEP_BYTES + (steps % 2 ? 0 : 2048) + 512; }
static int64_t columns_bytes(int64_t steps) { return steps * AMX_STEP_BYTES + 1024 + 128; }

bool kn_plan_amx(const kn_kernel *k, const cg_target_info *target, kn_plan *p) {
    const kn_contraction *c = &k->contraction;
    rt_dim rows = k->dims[c->batch_count].size, columns = k->dims[c->batch_count + 1].size;
    if (!target->has_amx || c->left_kind != KN_LEFT_ROWS || (c->right_is_packed && !c->right_has_parts) ||
        c->format != KN_FLOAT32 || !rt_dim_is_constant(c->k) || !rt_dim_is_constant(columns) ||
        !rt_dim_is_constant(c->left.strides[c->batch_count]))
        return false;
    int64_t used = c->k * columns, taken = kn_ceil_div(c->k, AMX_STEP) * AMX_STEP * kn_ceil_div(columns, AMX_STEP) * AMX_STEP;
    if (used == 0 || used * 8 < taken * 5 || (rt_dim_is_constant(rows) && rows <= KN_AMX_FEW_ROWS))
        return false;
    /* Splitting what is used few times costs more than it saves, and small products wait for what was split last. */
    if (rt_dim_is_constant(rows) && rows < 96 && columns < 96)
        return false;
    if (!c->right_is_packed && !reads_lines(k) && (columns < 96 || (rt_dim_is_constant(rows) && rows < 96)))
        return false;
    memset(p, 0, sizeof *p);
    p->is_amx = true;
    p->panels = p->vectors = 2;
    p->taps = 1;
    p->length = c->k;
    p->sum_blocks = kn_ceil_div(c->k, MOST_TERMS);
    p->sum_block = kn_ceil_div(kn_ceil_div(c->k, p->sum_blocks), AMX_STEP) * AMX_STEP;
    int64_t most = min_of(MOST_ROWS, MOST_LEFT_BYTES / (6 * p->sum_block) / 32 * 32);
    int64_t right_bytes = c->k * columns * 4, panels = kn_ceil_div(columns, KN_PANEL), batches = 1;
    for (int d = 0; d < c->batch_count; d++)
        batches = rt_dim_is_constant(k->dims[d].size) ? batches * k->dims[d].size : 16;
    if (rt_dim_is_constant(rows)) {
        /* Two threads, each with its rows: each splits all panels, between its products. */
        if (batches == 1 && rows <= most && rows >= 128 && right_bytes <= 2 * rows * c->k * 4)
            most = (rows + 1) / 2 + 31;
        choose_rows(rows, most / 32 * 32, p);
        p->blocks = kn_ceil_div(rows, p->block);
        p->room = p->block;
    } else {
        p->rows = 32;
        p->amx_pairs = most / 32;
        p->room = most;
        p->blocks = kn_dim_ceil_div(k, rows, most);
        p->blocks = kn_dim_max(k, p->blocks, kn_dim_min(k, kn_dim_ceil_div(k, rows, 128), 2));
        p->block = kn_dim_even_block(k, rows, p->blocks, 32);
    }
    int64_t items = rt_dim_is_constant(p->blocks) ? p->blocks * batches : 2, steps = kn_ceil_div(panels, 2);
    if (!c->right_is_packed) /* nor are the panels, which have to be made first */
        items = items < 4 ? items * 2 : 8;
    int64_t wanted = items < 8 ? kn_ceil_div(8, items) : 1, per = kn_ceil_div(steps, wanted);
    /* Sums of the terms so far, of all panels where they stay in a cache. */
    p->amx_joins = p->sum_blocks == 1 || p->amx_pairs * steps * p->rows * SUM_ROW <= MOST_SUMS_BYTES;
    if (!p->amx_joins)
        per = min_of(per, MOST_SUMS_BYTES / (p->amx_pairs * p->rows * SUM_ROW));
    if (!rt_dim_is_constant(rows)) /* whole steps of one row */
        per = per < KN_ROW_PANELS / 2 ? KN_ROW_PANELS / 2 : per - per % (KN_ROW_PANELS / 2);
    p->group = 2 * min_of(per, steps);
    p->groups = kn_ceil_div(panels, p->group);
    int64_t length = p->sum_block / AMX_STEP;
    p->packed_left_bytes = p->amx_pairs * pair_bytes(length);
    int64_t joined = p->amx_joins ? panels : p->group;
    p->amx_packs_right = !c->right_is_packed && !reads_lines(k);
    if (p->amx_packs_right)
        p->packed_right_bytes = joined * KN_PANEL * 4 * c->k;
    p->parts_bytes = 2 * columns_bytes(length) + (p->amx_pairs + kn_ceil_div(joined, 2) + 2) * AMX_FLAG_BYTES;
    if (p->sum_blocks > 1)
        p->parts_bytes += p->amx_pairs * kn_ceil_div(joined, 2) * p->rows * SUM_ROW;
    return true;
}

/* ---- rows, columns, flags ---- */

static LLVMValueRef row_address(const amx *a, LLVMValueRef row) {
    kn_emitter *e = a->e;
    const kn_contraction *c = &e->k->contraction;
    LLVMValueRef m = kn_add(e, a->x->row_begin, row);
    LLVMValueRef at = kn_mul(e, m, kn_size(e, c->left.strides[c->batch_count]));
    return kn_float_address(e, a->x->left, kn_add(e, at, a->term_begin));
}

/* Rows from `row` of the item on, to the parts of two tiles. */
static kn_amx_rows rows_of(const amx *a, LLVMValueRef row, LLVMValueRef pair) {
    kn_emitter *e = a->e;
    const kn_contraction *c = &e->k->contraction;
    return (kn_amx_rows){.from = row_address(a, row),
                         .bytes = kn_i64(e, c->left.strides[c->batch_count] * 4),
                         .to = kn_element(e, a->parts, pair, a->pair_bytes),
                         .flags = kn_element(e, a->flags, pair, AMX_FLAG_BYTES),
                         .terms = a->has_tail ? kn_sub(e, kn_i64(e, c->k), a->term_begin) : NULL};
}

/* The first two tiles, with nothing to multiply yet; they may lack rows. */
static void emit_first_rows(const amx *a) {
    kn_emitter *e = a->e;
    int64_t half = a->pair / 2;
    for (int tile = 0; tile < 2; tile++) {
        LLVMValueRef begin = kn_i64(e, tile * half);
        kn_amx_rows r = rows_of(a, begin, kn_i64(e, 0));
        r.to = kn_address(e, r.to, kn_i64(e, tile * AMX_OPERAND_BYTES));
        kn_amx_split_rows(e, &r, kn_min(e, kn_sub(e, a->count, begin), kn_i64(e, half)), kn_i64(e, a->steps));
    }
}

static LLVMValueRef panel_address(const amx *a, LLVMValueRef panel, LLVMValueRef term) {
    kn_emitter *e = a->e;
    int64_t lines = a->line_bytes == KN_PANEL * 4 ? e->k->contraction.k : 1;
    LLVMValueRef bytes = kn_i64(e, lines * KN_PANEL * 4);
    LLVMValueRef from = kn_address(e, a->x->right, kn_mul(e, kn_min(e, panel, a->last_panel), bytes));
    return kn_element(e, from, term, a->line_bytes);
}

/* Two panels from `panel` on, `number` times two behind the item's first. */
static kn_amx_columns columns_of(const amx *a, LLVMValueRef panel, LLVMValueRef number, LLVMValueRef to) {
    kn_emitter *e = a->e;
    return (kn_amx_columns){
        .from = {panel_address(a, panel, a->term_begin), panel_address(a, kn_add(e, panel, kn_i64(e, 1)), a->term_begin)},
        .to = to,
        .line_bytes = a->line_bytes == KN_PANEL * 4 ? NULL : kn_i64(e, a->line_bytes),
        .last_line = a->has_tail ? kn_sub(e, kn_i64(e, e->k->contraction.k - 1), a->term_begin) : NULL,
        .flags = a->column_flags ? kn_element(e, a->column_flags, number, AMX_FLAG_BYTES) : NULL,
        .ahead = a->column_flags ? NULL : kn_i64(e, 2 * e->k->contraction.k * KN_PANEL * 4)};
}

static void clear_flags(const amx *a, int64_t count) {
    kn_emitter *e = a->e;
    kn_loop flag;
    LLVMValueRef is_first = LLVMBuildICmp(e->b, LLVMIntEQ, a->term_begin, kn_i64(e, 0), "");
    LLVMValueRef zero = LLVMConstNull(kn_llvm_type(e, RT_float32, 16));
    kn_loop_begin(e, &flag, kn_i64(e, 0), LLVMBuildSelect(e->b, is_first, kn_i64(e, count), kn_i64(e, 0), ""), 1, NULL, 0);
    kn_emit_store(e, zero, kn_element(e, a->flags, flag.index, AMX_FLAG_BYTES), NULL, RT_float32, 16, NULL);
    kn_loop_end(e, &flag, NULL);
}

/* ---- tiles to results ---- */

typedef struct place {   /* of two tiles by two panels */
    LLVMValueRef pair;   /* which two tiles of the item */
    LLVMValueRef row;    /* their first, of the item */
    LLVMValueRef skipped; /* rows that the tiles before had */
    LLVMValueRef column, panels[2];
    LLVMValueRef column_flags; /* their address, or NULL */
} place;

/* The same sums by multiply-adds of float32, of rows with an infinity or NaN. */
static void emit_plain_sums(const amx *a, const place *at) {
    kn_emitter *e = a->e;
    kn_loop row, term;
    amx from_start = *a;
    from_start.term_begin = kn_i64(e, 0);
    kn_loop_begin(e, &row, kn_i64(e, 0), kn_min(e, kn_i64(e, a->pair), a->count), 1, NULL, 0);
    LLVMValueRef from = row_address(&from_start, kn_add(e, at->row, row.index)), sums[2];
    sums[0] = sums[1] = LLVMConstNull(kn_llvm_type(e, RT_float32, 16));
    kn_loop_begin(e, &term, kn_i64(e, 0), kn_i64(e, e->k->contraction.k), 1, sums, 2);
    LLVMValueRef x = kn_splat(e, LLVMBuildLoad2(e->b, e->unit->f32, kn_float_address(e, from, term.index), ""), 16);
    for (int i = 0; i < 2; i++) {
        LLVMValueRef line = kn_element(e, at->panels[i], term.index, a->line_bytes);
        sums[i] = kn_fma(e, x, kn_emit_load(e, line, NULL, RT_float32, 16, NULL), term.phis[i]);
    }
    kn_loop_end(e, &term, sums);
    LLVMValueRef to = kn_element(e, a->x->tile, row.index, SUM_ROW);
    for (int i = 0; i < 2; i++)
        kn_emit_store(e, term.exit_phis[i], kn_address(e, to, kn_i64(e, i * KN_PANEL * 4)), NULL, RT_float32, 16, NULL);
    kn_loop_end(e, &row, NULL);
}

static LLVMValueRef are_flagged(const amx *a, const place *at) {
    kn_emitter *e = a->e;
    LLVMValueRef flags = kn_emit_load(e, kn_element(e, a->flags, at->pair, AMX_FLAG_BYTES), NULL, RT_float32, 16, NULL);
    if (at->column_flags)
        flags = LLVMBuildFAdd(e->b, flags, kn_emit_load(e, at->column_flags, NULL, RT_float32, 16, NULL), "");
    return kn_amx_is_flagged(e, flags);
}

/* Sums in the tile in memory to the results. */
static void emit_finish(const amx *a, const place *at) {
    kn_emitter *e = a->e;
    kn_loop when, half;
    kn_when_begin(e, &when, are_flagged(a, at), NULL, 0);
    emit_plain_sums(a, at);
    kn_loop_end(e, &when, NULL);
    LLVMValueRef m = kn_add(e, a->x->row_begin, at->row), tile = a->x->tile;
    LLVMValueRef rows = kn_sub(e, kn_min(e, kn_i64(e, a->pair), a->count), at->skipped);
    LLVMValueRef is_whole = LLVMBuildICmp(e->b, LLVMIntEQ, rows, kn_i64(e, a->pair), "");
    int64_t columns = e->k->dims[e->k->contraction.batch_count + 1].size;
    if (columns % (2 * KN_PANEL)) {
        LLVMValueRef fits = LLVMBuildICmp(e->b, LLVMIntSLE, at->column, kn_i64(e, columns - 2 * KN_PANEL), "");
        is_whole = LLVMBuildAnd(e->b, is_whole, fits, "");
    }
    if (a->x->plan.in_registers) {
        kn_when_begin(e, &when, is_whole, NULL, 0);
        kn_loop_begin(e, &half, kn_i64(e, 0), kn_i64(e, a->pair), a->pair / 2, NULL, 0);
        LLVMValueRef sums[KN_MAX_TILE], masks[2] = {NULL, NULL}, from = kn_element(e, tile, half.index, SUM_ROW);
        for (int i = 0; i < a->pair; i++)
            sums[i] = kn_emit_load(e, kn_address(e, from, kn_i64(e, i * KN_PANEL * 4)), NULL, RT_float32, 16, NULL);
        kn_emit_tile_stores(e, (int)a->pair / 2, 2, sums, kn_add(e, m, half.index), at->column, masks, NULL);
        kn_loop_end(e, &half, NULL);
        kn_loop_end(e, &when, NULL);
        kn_when_begin(e, &when, LLVMBuildNot(e->b, is_whole, ""), NULL, 0);
    }
    kn_emit_tile_epilogue(e, kn_element(e, tile, at->skipped, SUM_ROW), kn_add(e, m, at->skipped), rows, at->column, 2);
    if (a->x->plan.in_registers)
        kn_loop_end(e, &when, NULL);
}

/* ---- loops ---- */

/* Units of columns in a step, so that the products of so many pairs of tiles cover all of them. */
static int units_of(int64_t pairs) { return pairs >= 7 ? 4 : pairs >= 4 ? 8 : pairs >= 2 ? 16 : 32; }

/* Of an unknown number of pairs there are fewer than 4, or as many. */
static void emit_multiplication(kn_emitter *e, const kn_amx_product *m, LLVMValueRef are_few) {
    kn_loop when;
    if (are_few) {
        kn_amx_product few = *m;
        few.units = units_of(2);
        kn_when_begin(e, &when, are_few, NULL, 0);
        kn_amx_multiply(e, &few);
        kn_loop_end(e, &when, NULL);
        kn_when_begin(e, &when, LLVMBuildNot(e->b, are_few, ""), NULL, 0);
    }
    kn_amx_multiply(e, m);
    if (are_few)
        kn_loop_end(e, &when, NULL);
}

/* Two panels, whose parts lie at `here`, times all rows of the item. */
static void emit_panels(const amx *a, const place *panels, LLVMValueRef is_first, LLVMValueRef here,
                        const kn_amx_columns *next, LLVMValueRef sums) {
    kn_emitter *e = a->e;
    const kn_plan *p = &a->x->plan;
    bool is_known = rt_dim_is_constant(e->k->dims[e->k->contraction.batch_count].size);
    int units = units_of(is_known || p->amx_pairs < 4 ? p->amx_pairs : 4);
    LLVMValueRef are_few = NULL, units_now = kn_i64(e, units);
    if (!is_known && p->amx_pairs >= 4) {
        are_few = LLVMBuildICmp(e->b, LLVMIntSLT, a->pairs, kn_i64(e, 4), "");
        units_now = LLVMBuildSelect(e->b, are_few, kn_i64(e, units_of(2)), units_now, "");
    }
    LLVMValueRef last_row = kn_max(e, kn_sub(e, a->count, kn_i64(e, a->pair)), kn_i64(e, 0));
    LLVMValueRef per_pair = kn_mul(e, kn_i64(e, a->steps), units_now), none = LLVMConstNull(e->unit->pointer);
    kn_loop pair, when;
    kn_loop_begin(e, &pair, kn_i64(e, 0), a->pairs, 1, NULL, 0);
    LLVMValueRef begin = kn_mul(e, pair.index, kn_i64(e, a->pair)), following = kn_add(e, pair.index, kn_i64(e, 1));
    place at = *panels;
    at.pair = pair.index;
    at.row = kn_min(e, begin, last_row);
    at.skipped = kn_sub(e, begin, at.row);
    kn_amx_product m = {.rows = (int)a->pair / 2, .columns = here, .steps = kn_i64(e, a->steps), .before = none,
                        .to = a->x->tile, .to_bytes = kn_i64(e, SUM_ROW), .next_columns = *next, .units = units,
                        .first_unit = kn_mul(e, pair.index, per_pair), .end_unit = kn_i64(e, a->steps * AMX_STEP_UNITS)};
    m.parts = kn_element(e, a->parts, pair.index, a->pair_bytes);
    LLVMValueRef is_last = NULL;
    if (sums) {
        LLVMValueRef place_of = kn_element(e, sums, pair.index, a->sums_bytes);
        LLVMValueRef begins = LLVMBuildICmp(e->b, LLVMIntEQ, a->term_begin, kn_i64(e, 0), "");
        is_last = LLVMBuildICmp(e->b, LLVMIntEQ, a->term_begin, kn_i64(e, (p->sum_blocks - 1) * p->sum_block), "");
        m.before = LLVMBuildSelect(e->b, begins, none, place_of, "");
        m.to = LLVMBuildSelect(e->b, is_last, m.to, place_of, "");
    }
    LLVMValueRef splits_rows = NULL;
    if (p->amx_pairs > 1) {
        splits_rows = LLVMBuildAnd(e->b, is_first, LLVMBuildICmp(e->b, LLVMIntSLT, following, a->pairs, ""), "");
        kn_when_begin(e, &when, splits_rows, NULL, 0);
        kn_amx_product both = m;
        both.next_rows = rows_of(a, kn_min(e, kn_add(e, begin, kn_i64(e, a->pair)), last_row), following);
        emit_multiplication(e, &both, are_few);
        kn_loop_end(e, &when, NULL);
        kn_when_begin(e, &when, LLVMBuildNot(e->b, splits_rows, ""), NULL, 0);
    }
    emit_multiplication(e, &m, are_few);
    if (splits_rows)
        kn_loop_end(e, &when, NULL);
    if (is_last)
        kn_when_begin(e, &when, is_last, NULL, 0);
    emit_finish(a, &at);
    if (is_last)
        kn_loop_end(e, &when, NULL);
    kn_loop_end(e, &pair, NULL);
    /* Few rows leave columns over. */
    LLVMValueRef all = kn_i64(e, a->steps * AMX_STEP_UNITS);
    kn_amx_split_columns(e, next, kn_min(e, kn_mul(e, a->pairs, per_pair), all), all);
}

static void emit_terms(const amx *a, LLVMValueRef panel_begin, LLVMValueRef panel_end) {
    kn_emitter *e = a->e;
    LLVMValueRef zero = kn_i64(e, 0), two = kn_i64(e, 2);
    kn_amx_columns first = columns_of(a, panel_begin, zero, a->columns);
    emit_first_rows(a);
    kn_amx_split_columns(e, &first, zero, kn_i64(e, a->steps * AMX_STEP_UNITS));
    LLVMValueRef carried[2] = {a->columns, kn_address(e, a->columns, kn_i64(e, a->columns_bytes))};
    kn_loop panel;
    kn_loop_begin(e, &panel, panel_begin, panel_end, 2, carried, 2);
    LLVMValueRef number = LLVMBuildLShr(e->b, kn_sub(e, panel.index, panel_begin), kn_i64(e, 1), "");
    kn_amx_columns next = columns_of(a, kn_add(e, panel.index, two), kn_add(e, number, kn_i64(e, 1)), panel.phis[1]);
    place at = {.column = kn_mul(e, panel.index, kn_i64(e, KN_PANEL))};
    for (int i = 0; i < 2; i++)
        at.panels[i] = panel_address(a, kn_add(e, panel.index, kn_i64(e, i)), zero);
    if (a->column_flags)
        at.column_flags = kn_element(e, a->column_flags, number, AMX_FLAG_BYTES);
    LLVMValueRef is_first = LLVMBuildICmp(e->b, LLVMIntEQ, panel.index, panel_begin, "");
    LLVMValueRef sums = a->sums ? kn_element(e, a->sums, number, a->x->plan.amx_pairs * a->sums_bytes) : NULL;
    emit_panels(a, &at, is_first, panel.phis[0], &next, sums);
    carried[0] = panel.phis[1];
    carried[1] = panel.phis[0];
    kn_loop_end(e, &panel, carried);
}

void kn_emit_amx_item(kn_emitter *e, kn_pieces *x, LLVMValueRef panel_begin, LLVMValueRef panel_end) {
    const kn_plan *p = &x->plan;
    const kn_contraction *c = &e->k->contraction;
    amx a = {.e = e, .x = x, .steps = p->sum_block / AMX_STEP, .pair = p->rows, .sums_bytes = p->rows * SUM_ROW};
    int64_t panels = kn_ceil_div(e->k->dims[c->batch_count + 1].size, KN_PANEL);
    int64_t column_flags = kn_ceil_div(p->amx_joins ? panels : p->group, 2) + 2;
    a.pair_bytes = pair_bytes(a.steps);
    a.columns_bytes = columns_bytes(a.steps);
    a.line_bytes = reads_lines(e->k) ? c->right_k * 4 : KN_PANEL * 4;
    a.has_tail = c->k != p->sum_block * p->sum_blocks;
    a.parts = x->packed_left;
    a.columns = x->parts;
    a.flags = kn_address(e, x->parts, kn_i64(e, 2 * a.columns_bytes));
    LLVMValueRef behind = kn_address(e, a.flags, kn_i64(e, p->amx_pairs * AMX_FLAG_BYTES));
    if (!c->right_is_packed)
        a.column_flags = behind;
    if (p->sum_blocks > 1)
        a.sums = kn_address(e, behind, kn_i64(e, column_flags * AMX_FLAG_BYTES));
    a.count = kn_sub(e, x->row_end, x->row_begin);
    a.pairs = LLVMBuildUDiv(e->b, kn_add(e, a.count, kn_i64(e, a.pair - 1)), kn_i64(e, a.pair), "");
    a.last_panel = kn_sub(e, panel_end, kn_i64(e, 1));
    kn_loop terms;
    kn_loop_begin(e, &terms, kn_i64(e, 0), kn_i64(e, c->k), p->sum_block, NULL, 0);
    a.term_begin = terms.index;
    clear_flags(&a, p->amx_pairs + column_flags);
    emit_terms(&a, panel_begin, panel_end);
    kn_loop_end(e, &terms, NULL);
}

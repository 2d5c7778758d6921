/* codegen/emit_llvm_amx.c - products of float32 matrices through AMX's tiles of bfloat16.
 *
 * A float32 x is the sum of three bfloat16: hi, the nearest to x, mid, the nearest to what is left, and lo, the
 * rest, which is exact. Six of the nine products of two such sums are computed,
 *
 *   hi*hi + hi*mid + mid*mid + mid*hi + lo*hi + hi*lo
 *
 * with sums in float32; the other three are below 2^-25 of the product, where rounding once to float32 costs up
 * to 2^-24. Measured, errors are half of those of a chain of float32 multiply-adds.
 *
 *   item = (block of rows, group of panels); a part's items of one block are joined
 *     for blocks of terms                the rows' parts stay in the second-level cache
 *       for two panels                   two sets of their parts: one in use, one being made
 *         for two tiles of rows
 *           a step of 32 terms: 24 products of tiles, between them some rows and columns are split
 *           epilogue
 *
 * The splitting of what comes next (of the next two tiles' rows while the first panels are multiplied, of the next
 * panels always) stands between the products, which another unit of the core computes meanwhile.
 *
 * Terms k and 16 + k of a step make a pair, so that splitting needs no permutation. Parts lie as tiles do:
 * [step][tile or panel][hi, mid, lo][16 rows or pairs][64 bytes].
 *
 * What is not finite has no such parts (inf - inf): a tile whose rows hold any is computed once more without
 * tiles. AMX takes numbers below 2^-126 as zeros, parts too: a number below 2^-110 counts with fewer bits. */
#include "codegen/emit_llvm_contraction.h"

#include <string.h>

enum { STEP = 32, PART_BYTES = 1024, OPERAND_BYTES = 3 * PART_BYTES, STEP_BYTES = 2 * OPERAND_BYTES };
enum { MOST_TERMS = 768, MOST_ROWS = 256, MOST_LEFT_BYTES = 1 << 20, MOST_SUMS_BYTES = 3 << 18 };
enum { STEP_UNITS = 32 }; /* of two panels: pairs of lines to be split */
enum { PRODUCTS = 24, SUM_TILES = 4, SUMS_BYTES = SUM_TILES * 1024, FLAG_BYTES = 64 };

typedef struct amx {
    kn_emitter *e;
    kn_pieces *x;
    int64_t steps;           /* of a block of terms */
    int64_t rows, pair;      /* of a tile, of two */
    int64_t pair_bytes, columns_bytes;
    bool has_tail;           /* terms end within a step */
    int64_t line_bytes;      /* from a line of a panel to the next */
    LLVMValueRef parts;      /* of rows: [pair of tiles] */
    LLVMValueRef columns;    /* parts of columns: two panels, and the next two */
    LLVMValueRef flags;      /* [pair of tiles]: NaN where a row holds what is not finite */
    LLVMValueRef column_flags; /* [two panels]: the same of columns that are no constants; or NULL */
    LLVMValueRef term_begin; /* of this block */
    LLVMValueRef count;      /* rows of the item */
    LLVMValueRef last_panel;
} amx;

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

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
            int64_t block = pairs * 2 * tile, blocks = ceil_div(rows, block), rest = rows - (blocks - 1) * block;
            int64_t all = (blocks - 1) * pairs + ceil_div(rest, 2 * tile);
            if (rows < 2 * tile && tile != 16 && 2 * (tile - 1) >= rows)
                continue;
            int64_t cost = all * (tile + 1) + blocks * 4;
            if (cost < best) {
                best = cost;
                p->rows = (int)(2 * tile);
                p->amx_pairs = min_of(pairs, ceil_div(rows, 2 * tile));
            }
        }
    if (rows < p->rows) { /* one pair */
        p->rows = (int)(2 * ((rows + 1) / 2));
        p->amx_pairs = 1;
    }
    p->block = p->amx_pairs * p->rows;
}

static int64_t pair_bytes(int64_t steps) { return steps * STEP_BYTES + (steps % 2 ? 0 : 2048) + 512; }
static int64_t columns_bytes(int64_t steps) { return steps * STEP_BYTES + 1024 + 128; }

bool kn_plan_amx(const kn_kernel *k, const cg_target_info *target, kn_plan *p) {
    const kn_contraction *c = &k->contraction;
    rt_dim rows = k->dims[c->batch_count].size, columns = k->dims[c->batch_count + 1].size;
    if (!target->has_amx || c->left_kind != KN_LEFT_ROWS || (c->right_is_packed && !c->right_is_finite) ||
        c->format != KN_FLOAT32 || !rt_dim_is_constant(c->k) || !rt_dim_is_constant(columns) ||
        !rt_dim_is_constant(c->left.strides[c->batch_count]))
        return false;
    int64_t used = c->k * columns, taken = ceil_div(c->k, STEP) * STEP * ceil_div(columns, STEP) * STEP;
    if (used * 8 < taken * 5 || (rt_dim_is_constant(rows) && rows <= KN_AMX_FEW_ROWS))
        return false;
    /* Splitting what is used few times costs more than it saves. */
    if (!c->right_is_packed && !reads_lines(k) && (columns < 96 || (rt_dim_is_constant(rows) && rows < 96)))
        return false;
    memset(p, 0, sizeof *p);
    p->is_amx = true;
    p->panels = p->vectors = 2;
    p->taps = 1;
    p->length = c->k;
    p->sum_blocks = ceil_div(c->k, MOST_TERMS);
    p->sum_block = ceil_div(ceil_div(c->k, p->sum_blocks), STEP) * STEP;
    int64_t most = min_of(MOST_ROWS, MOST_LEFT_BYTES / (6 * p->sum_block) / 32 * 32);
    int64_t right_bytes = c->k * columns * 4, panels = ceil_div(columns, KN_PANEL), batches = 1;
    for (int d = 0; d < c->batch_count; d++)
        batches = rt_dim_is_constant(k->dims[d].size) ? batches * k->dims[d].size : 16;
    if (rt_dim_is_constant(rows)) {
        /* Two threads, each with its rows: each splits all panels, between its products. */
        if (batches == 1 && rows <= most && rows >= 128 && right_bytes <= 2 * rows * c->k * 4)
            most = (rows + 1) / 2 + 31;
        choose_rows(rows, most / 32 * 32, p);
        p->blocks = ceil_div(rows, p->block);
        p->room = p->block;
    } else {
        p->rows = 32;
        p->amx_pairs = most / 32;
        p->room = most;
        p->blocks = kn_dim_ceil_div(k, rows, most);
        p->blocks = kn_dim_max(k, p->blocks, kn_dim_min(k, kn_dim_ceil_div(k, rows, 128), 2));
        p->block = kn_even_block(k, rows, p->blocks, 32);
    }
    int64_t items = rt_dim_is_constant(p->blocks) ? p->blocks * batches : 2, steps = ceil_div(panels, 2);
    if (!c->right_is_packed) /* nor are the panels, which have to be made first */
        items = items < 4 ? items * 2 : 8;
    int64_t wanted = items < 8 ? ceil_div(8, items) : 1, per = ceil_div(steps, wanted);
    /* Sums of the terms so far, of all panels where they stay in a cache. */
    p->amx_joins = p->sum_blocks == 1 || p->amx_pairs * steps * SUMS_BYTES <= MOST_SUMS_BYTES;
    if (!p->amx_joins)
        per = min_of(per, MOST_SUMS_BYTES / (p->amx_pairs * SUMS_BYTES));
    if (!rt_dim_is_constant(rows)) /* whole steps of one row */
        per = per < 4 ? 4 : per / 4 * 4;
    p->group = 2 * min_of(per, steps);
    p->groups = ceil_div(panels, p->group);
    int64_t length = p->sum_block / STEP;
    p->packed_left_bytes = p->amx_pairs * pair_bytes(length);
    int64_t joined = p->amx_joins ? panels : p->group;
    p->amx_packs_right = !c->right_is_packed && !reads_lines(k);
    if (p->amx_packs_right)
        p->packed_right_bytes = joined * KN_PANEL * 4 * c->k;
    p->parts_bytes = 2 * columns_bytes(length) + (p->amx_pairs + ceil_div(joined, 2) + 2) * FLAG_BYTES;
    if (p->sum_blocks > 1)
        p->parts_bytes += p->amx_pairs * ceil_div(joined, 2) * SUMS_BYTES;
    return true;
}

/* ---- instructions ---- */

static LLVMValueRef tile_number(const amx *a, int tile) {
    return LLVMConstInt(LLVMInt8TypeInContext(a->e->unit->context), (unsigned)tile, 0);
}

static void tile_load(const amx *a, int tile, LLVMValueRef from, int64_t stride) {
    LLVMValueRef args[3] = {tile_number(a, tile), from, kn_i64(a->e, stride)};
    kn_intrinsic(a->e, "llvm.x86.tileloadd64", NULL, 0, args, 3);
}

static void tile_store(const amx *a, int tile, LLVMValueRef to, int64_t stride) {
    LLVMValueRef args[3] = {tile_number(a, tile), to, kn_i64(a->e, stride)};
    kn_intrinsic(a->e, "llvm.x86.tilestored64", NULL, 0, args, 3);
}

static void tile_zero(const amx *a, int tile) {
    LLVMValueRef number = tile_number(a, tile);
    kn_intrinsic(a->e, "llvm.x86.tilezero", NULL, 0, &number, 1);
}

static void tile_multiply(const amx *a, int sum, int rows, int columns) {
    LLVMValueRef args[3] = {tile_number(a, sum), tile_number(a, rows), tile_number(a, columns)};
    kn_intrinsic(a->e, "llvm.x86.tdpbf16ps", NULL, 0, args, 3);
}

/* Tiles 0 to 3 are sums, 4 and 5 rows, 6 and 7 columns. */
void kn_emit_amx_begin(kn_emitter *e, const kn_plan *p) {
    LLVMTypeRef byte = LLVMInt8TypeInContext(e->unit->context);
    LLVMValueRef bytes[64];
    for (int i = 0; i < 64; i++)
        bytes[i] = LLVMConstInt(byte, 0, 0);
    bytes[0] = LLVMConstInt(byte, 1, 0); /* the palette */
    for (int tile = 0; tile < 8; tile++) {
        bytes[16 + 2 * tile] = LLVMConstInt(byte, 64, 0);
        bytes[48 + tile] = LLVMConstInt(byte, tile < 6 ? (unsigned)p->rows / 2 : 16, 0);
    }
    LLVMValueRef to = LLVMBuildArrayAlloca(e->b, byte, LLVMConstInt(e->unit->i32, 64, 0), "");
    LLVMSetAlignment(to, 64);
    LLVMSetAlignment(LLVMBuildStore(e->b, LLVMConstVector(bytes, 64), to), 64);
    kn_intrinsic(e, "llvm.x86.ldtilecfg", NULL, 0, &to, 1);
}

void kn_emit_amx_end(kn_emitter *e) { kn_intrinsic(e, "llvm.x86.tilerelease", NULL, 0, NULL, 0); }

/* ---- numbers to parts ---- */

static LLVMValueRef bits_of(const amx *a, LLVMValueRef v) {
    return LLVMBuildBitCast(a->e->b, v, kn_llvm_type(a->e, RT_int32, 16), "");
}

static LLVMValueRef high_half(const amx *a, LLVMValueRef bits) {
    return LLVMBuildAnd(a->e->b, bits, kn_int_constant(a->e, RT_int32, 16, (int64_t)0xffff0000 - ((int64_t)1 << 32)), "");
}

static void store_pairs(const amx *a, LLVMValueRef first, LLVMValueRef second, LLVMValueRef to, int64_t at) {
    LLVMBuilderRef b = a->e->b;
    first = LLVMBuildLShr(b, first, kn_int_constant(a->e, RT_int32, 16, 16), "");
    LLVMValueRef store = LLVMBuildStore(b, LLVMBuildOr(b, first, second, ""), kn_address(a->e, to, kn_i64(a->e, at)));
    LLVMSetAlignment(store, 64);
}

/* 16 pairs (x[0][i], x[1][i]) to their parts, PART_BYTES apart. Adds to *flags, where that is not NULL, what is
 * NaN where a number is not finite and otherwise tiny. */
static void emit_split(const amx *a, LLVMValueRef x[2], LLVMValueRef to, LLVMValueRef *flags) {
    LLVMBuilderRef b = a->e->b;
    LLVMTypeRef floats = kn_llvm_type(a->e, RT_float32, 16);
    LLVMValueRef rest[2] = {x[0], x[1]}, high[2];
    for (int part = 0; part < 2; part++) {
        for (int i = 0; i < 2; i++) {
            LLVMValueRef half = kn_int_constant(a->e, RT_int32, 16, 0x8000);
            high[i] = high_half(a, LLVMBuildAdd(b, bits_of(a, rest[i]), half, ""));
            rest[i] = LLVMBuildFSub(b, rest[i], LLVMBuildBitCast(b, high[i], floats, ""), "");
        }
        store_pairs(a, high[0], high[1], to, part * PART_BYTES);
    }
    store_pairs(a, bits_of(a, rest[0]), high_half(a, bits_of(a, rest[1])), to, 2 * PART_BYTES);
    if (flags)
        *flags = LLVMBuildFAdd(b, *flags, LLVMBuildFAdd(b, rest[0], rest[1], ""), "");
}

/* Terms of step s of a row at `row`, the row's first term of this block. */
typedef struct row_step {
    LLVMValueRef at;       /* bytes behind the row */
    LLVMValueRef masks[2]; /* NULL: all terms exist */
} row_step;

static row_step make_row_step(const amx *a, LLVMValueRef s) {
    kn_emitter *e = a->e;
    row_step r = {.at = kn_mul(e, s, kn_i64(e, STEP * 4))};
    if (a->has_tail) {
        LLVMValueRef left = kn_sub(e, kn_i64(e, e->k->contraction.k), kn_add(e, a->term_begin, kn_mul(e, s, kn_i64(e, STEP))));
        for (int i = 0; i < 2; i++)
            r.masks[i] = kn_lane_mask(e, kn_max(e, kn_sub(e, left, kn_i64(e, i * 16)), kn_i64(e, 0)), 16);
    }
    return r;
}

static void emit_row_unit(const amx *a, const row_step *r, LLVMValueRef row, LLVMValueRef to, LLVMValueRef *flags) {
    LLVMValueRef x[2];
    for (int i = 0; i < 2; i++) {
        LLVMValueRef from = kn_address(a->e, kn_address(a->e, row, r->at), kn_i64(a->e, i * 64));
        x[i] = kn_emit_load(a->e, from, NULL, RT_float32, 16, r->masks[i]);
    }
    emit_split(a, x, to, flags);
}

/* Two panels, whose lines are split; units count (step, panel, pair of lines). */
typedef struct panel_pair {
    LLVMValueRef from[2]; /* panels, at the first term of the block */
    LLVMValueRef to;
    LLVMValueRef flags_at, flags; /* where they are kept; while some are split. NULL: constants */
} panel_pair;

/* Where unit `unit`, a multiple of `count`, and the count - 1 behind it lie. */
typedef struct column_units {
    LLVMValueRef line;  /* the first, of the block */
    LLVMValueRef from, to;
    int count;
} column_units;

static column_units make_column_units(const amx *a, const panel_pair *c, LLVMValueRef unit, int count) {
    kn_emitter *e = a->e;
    LLVMValueRef step = LLVMBuildLShr(e->b, unit, kn_i64(e, 5), "");
    LLVMValueRef inner = LLVMBuildAnd(e->b, unit, kn_i64(e, 31), ""); /* panel * 16 + pair */
    column_units u = {.count = count, .line = kn_mul(e, step, kn_i64(e, STEP))};
    u.to = kn_add(e, kn_mul(e, step, kn_i64(e, STEP_BYTES)), kn_mul(e, LLVMBuildLShr(e->b, inner, kn_i64(e, 4), ""), kn_i64(e, OPERAND_BYTES)));
    LLVMValueRef pair = LLVMBuildAnd(e->b, inner, kn_i64(e, 15), "");
    u.line = kn_add(e, u.line, pair);
    u.to = kn_address(e, c->to, kn_add(e, u.to, kn_mul(e, pair, kn_i64(e, 64))));
    LLVMValueRef is_first = LLVMBuildICmp(e->b, LLVMIntULT, inner, kn_i64(e, 16), "");
    u.from = LLVMBuildSelect(e->b, is_first, c->from[0], c->from[1], "");
    return u;
}

/* Unit j of them. Terms past the last one meet zeros of the rows: any line will do. */
static void emit_column_unit(const amx *a, panel_pair *c, const column_units *u, int j) {
    kn_emitter *e = a->e;
    LLVMValueRef x[2], base = u->from, line = u->line, to = u->to;
    if (u->count > 16 && j >= 16) {
        base = c->from[1];
        to = kn_address(e, to, kn_i64(e, OPERAND_BYTES - 16 * 64));
    }
    int within = u->count > 16 ? j % 16 : j;
    for (int i = 0; i < 2; i++) {
        LLVMValueRef at = kn_add(e, line, kn_i64(e, within + i * 16));
        if (a->has_tail)
            at = kn_min(e, at, kn_sub(e, kn_i64(e, e->k->contraction.k - 1), a->term_begin));
        LLVMValueRef from = kn_element(e, base, at, a->line_bytes);
        x[i] = kn_emit_load(e, from, NULL, RT_float32, 16, NULL);
        kn_prefetch(e, kn_address(e, from, kn_i64(e, 2 * (a->line_bytes == KN_PANEL * 4 ? e->k->contraction.k : 1) * KN_PANEL * 4)));
    }
    emit_split(a, x, kn_address(e, to, kn_i64(e, j * 64)), c->flags_at ? &c->flags : NULL);
}

static LLVMValueRef no_flags(const amx *a) { return LLVMConstNull(kn_llvm_type(a->e, RT_float32, 16)); }

static LLVMValueRef load_flags(const amx *a, LLVMValueRef from) {
    LLVMValueRef flags = LLVMBuildLoad2(a->e->b, kn_llvm_type(a->e, RT_float32, 16), from, "");
    LLVMSetAlignment(flags, 64);
    return flags;
}

static void store_flags(const amx *a, LLVMValueRef flags, LLVMValueRef to) {
    LLVMSetAlignment(LLVMBuildStore(a->e->b, flags, to), 64);
}

static void take_column_flags(const amx *a, panel_pair *c) {
    c->flags = c->flags_at ? load_flags(a, c->flags_at) : no_flags(a);
}

static void put_column_flags(const amx *a, const panel_pair *c) {
    if (c->flags_at)
        store_flags(a, c->flags, c->flags_at);
}

static void emit_all_columns(const amx *a, panel_pair *c, LLVMValueRef first) {
    kn_loop units;
    take_column_flags(a, c);
    kn_loop_begin(a->e, &units, first, kn_i64(a->e, a->steps * STEP_UNITS), 4, &c->flags, 1);
    column_units u = make_column_units(a, c, units.index, 4);
    c->flags = units.phis[0];
    for (int j = 0; j < 4; j++)
        emit_column_unit(a, c, &u, j);
    kn_loop_end(a->e, &units, &c->flags);
    c->flags = units.exit_phis[0];
    put_column_flags(a, c);
}

static LLVMValueRef row_address(const amx *a, LLVMValueRef row) {
    kn_emitter *e = a->e;
    const kn_contraction *c = &e->k->contraction;
    LLVMValueRef m = kn_add(e, a->x->row_begin, row);
    LLVMValueRef at = kn_mul(e, m, kn_size(e, c->left.strides[c->batch_count]));
    return kn_float_address(e, a->x->left, kn_add(e, at, a->term_begin));
}

static LLVMValueRef flags_address(const amx *a, LLVMValueRef pair) { return kn_element(a->e, a->flags, pair, FLAG_BYTES); }

/* Flags of a pair before this block of terms. */
static LLVMValueRef flags_so_far(const amx *a, LLVMValueRef pair) {
    if (a->x->plan.sum_blocks == 1)
        return no_flags(a);
    LLVMValueRef before = load_flags(a, flags_address(a, pair));
    LLVMValueRef is_first = LLVMBuildICmp(a->e->b, LLVMIntEQ, a->term_begin, kn_i64(a->e, 0), "");
    return LLVMBuildSelect(a->e->b, is_first, no_flags(a), before, "");
}

/* The first pair of tiles, with nothing to multiply yet; it may lack rows. */
static void emit_first_rows(const amx *a) {
    kn_emitter *e = a->e;
    LLVMValueRef zero = kn_i64(e, 0), flags = flags_so_far(a, zero);
    for (int tile = 0; tile < 2; tile++) {
        kn_loop row, step;
        LLVMValueRef begin = kn_i64(e, tile * a->rows);
        LLVMValueRef end = kn_min(e, kn_i64(e, (tile + 1) * a->rows), a->count);
        kn_loop_begin(e, &row, begin, end, 1, &flags, 1);
        LLVMValueRef from = row_address(a, row.index);
        LLVMValueRef to = kn_element(e, a->parts, kn_sub(e, row.index, begin), 64);
        to = kn_address(e, to, kn_i64(e, tile * OPERAND_BYTES));
        flags = row.phis[0];
        kn_loop_begin(e, &step, zero, kn_i64(e, a->steps), 1, &flags, 1);
        row_step r = make_row_step(a, step.index);
        flags = step.phis[0];
        emit_row_unit(a, &r, from, kn_element(e, to, step.index, STEP_BYTES), &flags);
        kn_loop_end(e, &step, &flags);
        flags = step.exit_phis[0];
        kn_loop_end(e, &row, &flags);
        flags = row.exit_phis[0];
    }
    store_flags(a, flags, flags_address(a, zero));
}

/* ---- steps ---- */

/* What stands between the products of a step: rows of the next pair of tiles, lines of the next panels. */
typedef struct job {
    LLVMValueRef row, row_to; /* row 0 of the next pair, its parts; NULL: none */
    LLVMValueRef flags;
    panel_pair next;
    int units;               /* of columns in a step */
    LLVMValueRef first_unit; /* of this pair */
} job;

typedef struct job_step {
    row_step row;
    LLVMValueRef row_to;
    column_units columns;
} job_step;

static void emit_job(const amx *a, job *j, const job_step *s, int product) {
    int rows = j->row ? (int)a->pair : 0, all = rows + j->units;
    const kn_contraction *c = &a->e->k->contraction;
    for (int unit = all * product / PRODUCTS; unit < all * (product + 1) / PRODUCTS; unit++) {
        if (unit >= rows) {
            emit_column_unit(a, &j->next, &s->columns, unit - rows);
            continue;
        }
        int64_t step = c->left.strides[c->batch_count] * 4, tile = unit / a->rows, row = unit % a->rows;
        emit_row_unit(a, &s->row, kn_address(a->e, j->row, kn_i64(a->e, unit * step)),
                      kn_address(a->e, s->row_to, kn_i64(a->e, tile * OPERAND_BYTES + row * 64)), &j->flags);
    }
}

/* The 24 products of a step: of two tiles of rows and two of columns, for six pairs of parts. */
static void emit_products(const amx *a, LLVMValueRef rows, LLVMValueRef columns, job *j, const job_step *s) {
    static const struct {
        int rows, columns; /* parts: hi, mid, lo */
    } order[] = {{0, 0}, {0, 1}, {1, 1}, {1, 0}, {2, 0}, {0, 2}};
    kn_emitter *e = a->e;
    int product = 0, of_rows = -1, of_columns = -1;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        bool loads_rows = order[i].rows != of_rows, loads_columns = order[i].columns != of_columns;
        of_rows = order[i].rows;
        of_columns = order[i].columns;
        for (int n = 0; n < 4; n++) {
            /* What is loaded first is used twice before the second is. */
            int row = loads_columns ? n % 2 : n / 2, column = loads_columns ? n / 2 : n % 2;
            if (loads_rows && column == 0)
                tile_load(a, 4 + row, kn_address(e, rows, kn_i64(e, row * OPERAND_BYTES + of_rows * PART_BYTES)), 64);
            if (loads_columns && row == 0)
                tile_load(a, 6 + column, kn_address(e, columns, kn_i64(e, column * OPERAND_BYTES + of_columns * PART_BYTES)), 64);
            tile_multiply(a, 2 * column + row, 4 + row, 6 + column);
            emit_job(a, j, s, product++);
        }
    }
}

static void emit_steps(const amx *a, LLVMValueRef rows, LLVMValueRef columns, job *j) {
    kn_emitter *e = a->e;
    kn_loop step;
    take_column_flags(a, &j->next);
    LLVMValueRef carried[2] = {j->flags, j->next.flags};
    kn_loop_begin(e, &step, kn_i64(e, 0), kn_i64(e, a->steps), 1, carried, 2);
    j->flags = step.phis[0];
    j->next.flags = step.phis[1];
    job_step s = {0};
    if (j->row) {
        s.row = make_row_step(a, step.index);
        s.row_to = kn_element(e, j->row_to, step.index, STEP_BYTES);
    }
    LLVMValueRef last = kn_i64(e, a->steps * STEP_UNITS - j->units);
    LLVMValueRef unit = kn_add(e, j->first_unit, kn_mul(e, step.index, kn_i64(e, j->units)));
    s.columns = make_column_units(a, &j->next, kn_min(e, unit, last), j->units);
    emit_products(a, kn_element(e, rows, step.index, STEP_BYTES), kn_element(e, columns, step.index, STEP_BYTES), j, &s);
    carried[0] = j->flags;
    carried[1] = j->next.flags;
    kn_loop_end(e, &step, carried);
    j->flags = step.exit_phis[0];
    j->next.flags = step.exit_phis[1];
    put_column_flags(a, &j->next);
}

/* ---- tiles to results ---- */

typedef struct place { /* of two tiles by two panels */
    LLVMValueRef pair;   /* which one of the block */
    LLVMValueRef row;    /* the first, of the item */
    LLVMValueRef skipped; /* rows that the pair before had; NULL: none */
    LLVMValueRef column, panels[2];
    LLVMValueRef column_flags; /* their address; or NULL */
} place;

/* The same sums by multiply-adds of float32, of rows with an infinity or NaN. */
static void emit_plain_sums(const amx *a, const place *at) {
    kn_emitter *e = a->e;
    int64_t length = e->k->contraction.k;
    kn_loop row, term;
    LLVMValueRef end = kn_min(e, kn_i64(e, a->pair), a->count);
    kn_loop_begin(e, &row, kn_i64(e, 0), end, 1, NULL, 0);
    amx from_start = *a;
    from_start.term_begin = kn_i64(e, 0);
    LLVMValueRef from = row_address(&from_start, kn_add(e, at->row, row.index));
    LLVMValueRef sums[2] = {no_flags(a), no_flags(a)};
    kn_loop_begin(e, &term, kn_i64(e, 0), kn_i64(e, length), 1, sums, 2);
    LLVMValueRef x = kn_splat(e, LLVMBuildLoad2(e->b, e->unit->f32, kn_float_address(e, from, term.index), ""), 16);
    for (int i = 0; i < 2; i++) {
        LLVMValueRef line = kn_element(e, at->panels[i], term.index, a->line_bytes);
        sums[i] = kn_fma(e, x, kn_emit_load(e, line, NULL, RT_float32, 16, NULL), term.phis[i]);
    }
    kn_loop_end(e, &term, sums);
    for (int i = 0; i < 2; i++) {
        LLVMValueRef to = kn_element(e, a->x->tile, row.index, 2 * KN_PANEL * 4);
        kn_emit_store(e, term.exit_phis[i], kn_address(e, to, kn_i64(e, i * KN_PANEL * 4)), NULL, RT_float32, 16, NULL);
    }
    kn_loop_end(e, &row, NULL);
}

/* Loops that run once where a condition holds. */
static void when_begin(kn_emitter *e, kn_loop *loop, LLVMValueRef condition) {
    kn_loop_begin(e, loop, kn_i64(e, 0), LLVMBuildZExt(e->b, condition, e->unit->i64, ""), 1, NULL, 0);
}

static void emit_finish(const amx *a, const place *at) {
    kn_emitter *e = a->e;
    LLVMValueRef tile = a->x->tile;
    kn_loop when;
    for (int i = 0; i < SUM_TILES; i++)
        tile_store(a, i, kn_address(e, tile, kn_i64(e, i % 2 * a->rows * 128 + i / 2 * 64)), 128);
    LLVMValueRef flags = load_flags(a, flags_address(a, at->pair));
    if (at->column_flags)
        flags = LLVMBuildFAdd(e->b, flags, load_flags(a, at->column_flags), "");
    flags = LLVMBuildFCmp(e->b, LLVMRealUNO, flags, flags, "");
    flags = LLVMBuildBitCast(e->b, flags, LLVMIntTypeInContext(e->unit->context, 16), "");
    when_begin(e, &when, LLVMBuildICmp(e->b, LLVMIntNE, flags, LLVMConstInt(LLVMTypeOf(flags), 0, 0), ""));
    emit_plain_sums(a, at);
    kn_loop_end(e, &when, NULL);

    LLVMValueRef m = kn_add(e, a->x->row_begin, at->row), rows = kn_min(e, kn_i64(e, a->pair), a->count);
    LLVMValueRef skipped = at->skipped ? at->skipped : kn_i64(e, 0);
    int64_t columns = e->k->dims[e->k->contraction.batch_count + 1].size;
    if (!a->x->plan.in_registers) {
        kn_emit_tile_epilogue(e, kn_element(e, tile, skipped, 128), kn_add(e, m, skipped), kn_sub(e, rows, skipped), at->column, 2);
        return;
    }
    LLVMValueRef is_whole = LLVMBuildICmp(e->b, LLVMIntEQ, kn_sub(e, rows, skipped), kn_i64(e, a->pair), "");
    if (columns % STEP) {
        LLVMValueRef fits = LLVMBuildICmp(e->b, LLVMIntSLE, at->column, kn_i64(e, columns - STEP), "");
        is_whole = LLVMBuildAnd(e->b, is_whole, fits, "");
    }
    when_begin(e, &when, is_whole);
    kn_loop chunk;
    kn_loop_begin(e, &chunk, kn_i64(e, 0), kn_i64(e, a->pair), a->rows, NULL, 0);
    LLVMValueRef sums[KN_MAX_TILE], masks[2] = {NULL, NULL}, from = kn_element(e, tile, chunk.index, 128);
    for (int i = 0; i < 2 * a->rows; i++)
        sums[i] = kn_emit_load(e, kn_address(e, from, kn_i64(e, i * 64)), NULL, RT_float32, 16, NULL);
    kn_emit_tile_stores(e, (int)a->rows, 2, sums, kn_add(e, m, chunk.index), at->column, masks, NULL);
    kn_loop_end(e, &chunk, NULL);
    kn_loop_end(e, &when, NULL);
    if (LLVMIsConstant(is_whole))
        return;
    when_begin(e, &when, LLVMBuildNot(e->b, is_whole, ""));
    kn_emit_tile_epilogue(e, kn_element(e, tile, skipped, 128), kn_add(e, m, skipped), kn_sub(e, rows, skipped), at->column, 2);
    kn_loop_end(e, &when, NULL);
}

static void emit_begin_sums(const amx *a, LLVMValueRef sums) {
    kn_emitter *e = a->e;
    kn_loop when;
    LLVMValueRef is_first = LLVMBuildICmp(e->b, LLVMIntEQ, a->term_begin, kn_i64(e, 0), "");
    when_begin(e, &when, is_first);
    for (int i = 0; i < SUM_TILES; i++)
        tile_zero(a, i);
    kn_loop_end(e, &when, NULL);
    if (!sums)
        return;
    when_begin(e, &when, LLVMBuildNot(e->b, is_first, ""));
    for (int i = 0; i < SUM_TILES; i++)
        tile_load(a, i, kn_address(e, sums, kn_i64(e, i * 1024)), 64);
    kn_loop_end(e, &when, NULL);
}

static void emit_end_sums(const amx *a, LLVMValueRef sums, const place *at) {
    kn_emitter *e = a->e;
    if (!sums) {
        emit_finish(a, at);
        return;
    }
    kn_loop when;
    const kn_plan *p = &a->x->plan;
    LLVMValueRef is_last = LLVMBuildICmp(e->b, LLVMIntEQ, a->term_begin, kn_i64(e, (p->sum_blocks - 1) * p->sum_block), "");
    when_begin(e, &when, LLVMBuildNot(e->b, is_last, ""));
    for (int i = 0; i < SUM_TILES; i++)
        tile_store(a, i, kn_address(e, sums, kn_i64(e, i * 1024)), 64);
    kn_loop_end(e, &when, NULL);
    when_begin(e, &when, is_last);
    emit_finish(a, at);
    kn_loop_end(e, &when, NULL);
}

/* Columns that a pair splits in a step, of the 32 of two panels. */
static int units_of(const kn_plan *p, bool is_known) {
    int64_t pairs = is_known || p->amx_pairs < 4 ? p->amx_pairs : 4;
    return pairs >= 7 ? 4 : pairs >= 4 ? 8 : pairs >= 2 ? 16 : 32;
}

/* Two panels, at `here` in parts, times all rows of the item. */
static void emit_panels(amx *a, const place *columns, LLVMValueRef is_first, LLVMValueRef here, panel_pair *next,
                        LLVMValueRef sums) {
    kn_emitter *e = a->e;
    const kn_plan *p = &a->x->plan;
    rt_dim rows = e->k->dims[e->k->contraction.batch_count].size;
    int units = units_of(p, rt_dim_is_constant(rows));
    LLVMValueRef pairs = LLVMBuildUDiv(e->b, kn_add(e, a->count, kn_i64(e, a->pair - 1)), kn_i64(e, a->pair), "");
    LLVMValueRef last_row = kn_max(e, kn_sub(e, a->count, kn_i64(e, a->pair)), kn_i64(e, 0));
    kn_loop pair, when;
    kn_loop_begin(e, &pair, kn_i64(e, 0), pairs, 1, NULL, 0);
    LLVMValueRef begin = kn_mul(e, pair.index, kn_i64(e, a->pair));
    place at = *columns;
    at.pair = pair.index;
    at.row = kn_min(e, begin, last_row);
    bool is_even = rt_dim_is_constant(rows) && rows % a->pair == 0;
    if (!is_even && p->amx_pairs > 1)
        at.skipped = kn_sub(e, begin, at.row);
    LLVMValueRef here_sums = sums ? kn_element(e, sums, pair.index, SUMS_BYTES) : NULL;
    emit_begin_sums(a, here_sums);
    LLVMValueRef of_rows = kn_element(e, a->parts, pair.index, a->pair_bytes);
    job j = {.flags = no_flags(a), .next = *next, .units = units};
    j.first_unit = kn_mul(e, pair.index, kn_i64(e, a->steps * units));
    LLVMValueRef splits_rows = NULL;
    if (p->amx_pairs > 1) {
        LLVMValueRef following = kn_add(e, pair.index, kn_i64(e, 1));
        splits_rows = LLVMBuildAnd(e->b, is_first, LLVMBuildICmp(e->b, LLVMIntSLT, following, pairs, ""), "");
        job both = j;
        when_begin(e, &when, splits_rows);
        both.row = row_address(a, kn_min(e, kn_add(e, begin, kn_i64(e, a->pair)), last_row));
        both.row_to = kn_element(e, a->parts, following, a->pair_bytes);
        both.flags = flags_so_far(a, following);
        emit_steps(a, of_rows, here, &both);
        store_flags(a, both.flags, flags_address(a, following));
        kn_loop_end(e, &when, NULL);
        when_begin(e, &when, LLVMBuildNot(e->b, splits_rows, ""));
    }
    emit_steps(a, of_rows, here, &j);
    if (splits_rows)
        kn_loop_end(e, &when, NULL);
    emit_end_sums(a, here_sums, &at);
    kn_loop_end(e, &pair, NULL);
    /* Few rows leave columns over. */
    LLVMValueRef done = kn_mul(e, pairs, kn_i64(e, a->steps * units));
    emit_all_columns(a, next, kn_min(e, done, kn_i64(e, a->steps * STEP_UNITS)));
}

static LLVMValueRef panel_address(const amx *a, LLVMValueRef panel, LLVMValueRef term) {
    kn_emitter *e = a->e;
    int64_t lines = a->line_bytes == KN_PANEL * 4 ? e->k->contraction.k : 1;
    LLVMValueRef bytes = kn_i64(e, lines * KN_PANEL * 4);
    LLVMValueRef from = kn_address(e, a->x->right, kn_mul(e, kn_min(e, panel, a->last_panel), bytes));
    return kn_element(e, from, term, a->line_bytes);
}

static void emit_terms(amx *a, LLVMValueRef panel_begin, LLVMValueRef panel_end, LLVMValueRef sums) {
    kn_emitter *e = a->e;
    LLVMValueRef room = a->columns;
    panel_pair first = {.to = room, .flags_at = a->column_flags};
    if (a->column_flags) {
        kn_loop flag;
        LLVMValueRef is_first = LLVMBuildICmp(e->b, LLVMIntEQ, a->term_begin, kn_i64(e, 0), "");
        LLVMValueRef steps = LLVMBuildLShr(e->b, kn_sub(e, panel_end, panel_begin), kn_i64(e, 1), "");
        kn_loop_begin(e, &flag, kn_i64(e, 0), LLVMBuildSelect(e->b, is_first, kn_add(e, steps, kn_i64(e, 2)), kn_i64(e, 0), ""), 1, NULL, 0);
        store_flags(a, no_flags(a), kn_element(e, a->column_flags, flag.index, FLAG_BYTES));
        kn_loop_end(e, &flag, NULL);
    }
    for (int i = 0; i < 2; i++)
        first.from[i] = panel_address(a, kn_add(e, panel_begin, kn_i64(e, i)), a->term_begin);
    emit_first_rows(a);
    emit_all_columns(a, &first, kn_i64(e, 0));
    LLVMValueRef carried[2] = {room, kn_address(e, room, kn_i64(e, a->columns_bytes))};
    kn_loop panel;
    kn_loop_begin(e, &panel, panel_begin, panel_end, 2, carried, 2);
    panel_pair next = {.to = panel.phis[1]};
    place at = {.column = kn_mul(e, panel.index, kn_i64(e, KN_PANEL))};
    LLVMValueRef number = LLVMBuildLShr(e->b, kn_sub(e, panel.index, panel_begin), kn_i64(e, 1), "");
    if (a->column_flags) {
        at.column_flags = kn_element(e, a->column_flags, number, FLAG_BYTES);
        next.flags_at = kn_address(e, at.column_flags, kn_i64(e, FLAG_BYTES));
    }
    for (int i = 0; i < 2; i++) {
        next.from[i] = panel_address(a, kn_add(e, panel.index, kn_i64(e, 2 + i)), a->term_begin);
        at.panels[i] = panel_address(a, kn_add(e, panel.index, kn_i64(e, i)), kn_i64(e, 0));
    }
    LLVMValueRef here_sums = sums ? kn_element(e, sums, number, a->x->plan.amx_pairs * SUMS_BYTES) : NULL;
    LLVMValueRef is_first = LLVMBuildICmp(e->b, LLVMIntEQ, panel.index, panel_begin, "");
    emit_panels(a, &at, is_first, panel.phis[0], &next, here_sums);
    carried[0] = panel.phis[1];
    carried[1] = panel.phis[0];
    kn_loop_end(e, &panel, carried);
}

void kn_emit_amx_item(kn_emitter *e, kn_pieces *x, LLVMValueRef panel_begin, LLVMValueRef panel_end) {
    const kn_plan *p = &x->plan;
    const kn_contraction *c = &e->k->contraction;
    amx a = {.e = e, .x = x, .steps = p->sum_block / STEP, .rows = p->rows / 2, .pair = p->rows};
    a.pair_bytes = pair_bytes(a.steps);
    a.columns_bytes = columns_bytes(a.steps);
    a.line_bytes = reads_lines(e->k) ? c->right_k * 4 : KN_PANEL * 4;
    a.has_tail = c->k != p->sum_block * p->sum_blocks;
    a.parts = x->packed_left;
    a.columns = x->parts;
    a.flags = kn_address(e, x->parts, kn_i64(e, 2 * a.columns_bytes));
    LLVMValueRef sums = kn_address(e, a.flags, kn_i64(e, p->amx_pairs * FLAG_BYTES));
    if (!c->right_is_packed)
        a.column_flags = sums;
    int64_t panels = ceil_div(e->k->dims[c->batch_count + 1].size, KN_PANEL);
    sums = kn_address(e, sums, kn_i64(e, (ceil_div(p->amx_joins ? panels : p->group, 2) + 2) * FLAG_BYTES));
    a.count = kn_sub(e, x->row_end, x->row_begin);
    a.last_panel = kn_sub(e, panel_end, kn_i64(e, 1));
    a.term_begin = kn_i64(e, 0);
    if (p->sum_blocks == 1) {
        emit_terms(&a, panel_begin, panel_end, NULL);
        return;
    }
    kn_loop terms;
    kn_loop_begin(e, &terms, kn_i64(e, 0), kn_i64(e, c->k), p->sum_block, NULL, 0);
    a.term_begin = terms.index;
    emit_terms(&a, panel_begin, panel_end, sums);
    kn_loop_end(e, &terms, NULL);
}

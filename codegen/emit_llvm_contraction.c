/* codegen/emit_llvm_contraction.c - matrix products and convolutions around the micro-kernels.
 *
 *   item = (batch, block of rows, group of panels)
 *     addresses of the block's rows (of every tap; padding points at zeros), or a packed copy
 *     for panels of the group            the panel stays in the second-level cache,
 *       for tiles of the block           the rows' block does too
 *         micro-kernel -> tile -> epilogue -> memory
 *
 * Sums run over k in one go, or block by block (plan_contraction.c), and every tile is computed alone,
 * so results do not depend on the number of threads. */
#include "codegen/emit_llvm_contraction.h"
#include "codegen/emit_llvm_amx.h"

#include <string.h>

/* ---- tiles ---- */

LLVMValueRef kn_batch_address(kn_emitter *e, const kn_access *a) {
    LLVMValueRef offset = kn_size(e, a->offset);
    for (int d = 0; d < e->k->contraction.batch_count; d++)
        offset = kn_add(e, offset, kn_mul(e, e->index[d], kn_size(e, a->strides[d])));
    return kn_float_address(e, e->buffers[a->buffer], offset);
}

void kn_emit_tile_epilogue(kn_emitter *e, LLVMValueRef tile, LLVMValueRef m, LLVMValueRef rows,
                           LLVMValueRef column, int vectors) {
    kn_kernel *k = e->k;
    int m_dim = k->contraction.batch_count, lanes = e->width;
    rt_dim columns = k->dims[m_dim + 1].size;
    LLVMValueRef width = kn_i64(e, vectors * lanes);
    /* Two registers at a time: chains of dependent operations come interleaved. */
    int w = e->width = vectors % 2 == 0 ? lanes * 2 : lanes;
    LLVMValueRef end = kn_min(e, kn_add(e, column, width), kn_size(e, columns));
    kn_loop row, loop;
    kn_loop_begin(e, &row, kn_i64(e, 0), rows, 1, NULL, 0);
    e->index[m_dim] = kn_add(e, m, row.index);
    kn_prepare_bases(e, (1u << (m_dim + 1)) - 1);
    LLVMValueRef tile_row = kn_float_address(e, tile, kn_mul(e, row.index, width));
    bool may_be_short = !rt_dim_is_constant(columns) || columns % w != 0;
    for (int part = 0; part < (may_be_short ? 2 : 1); part++) {
        LLVMValueRef first = part == 0 ? column : LLVMBuildAnd(e->b, end, kn_i64(e, -(int64_t)w), "");
        kn_loop_begin(e, &loop, first, part == 0 ? kn_sub(e, end, kn_i64(e, w - 1)) : end, w, NULL, 0);
        loop.trips = vectors * lanes / w;
        if (part == 1)
            e->mask = kn_lane_mask(e, kn_sub(e, end, loop.index), w);
        e->index[k->dim_count - 1] = loop.index;
        e->tile = kn_float_address(e, tile_row, kn_sub(e, loop.index, column));
        for (int i = 0; i < k->store_count; i++)
            kn_emit_store_node(e, i);
        e->mask = NULL;
        kn_loop_end(e, &loop, NULL);
    }
    kn_loop_end(e, &row, NULL);
    e->width = lanes;
}

/* Columns of a tile: how many vectors, and which lanes of the last ones exist. */
typedef struct column_step {
    int vectors;
    LLVMValueRef column; /* the first */
    LLVMValueRef masks[KN_MAX_TILE]; /* NULL: all lanes */
} column_step;

/* Adds what the blocks of terms before left; whether these were the last. */
static bool add_parts(kn_emitter *e, kn_pieces *x, const kn_tile *t, const column_step *s,
                      LLVMValueRef m, LLVMValueRef *sums) {
    LLVMValueRef row = kn_mul(e, kn_sub(e, m, x->row_begin), kn_i64(e, t->vectors * e->width));
    LLVMValueRef at = kn_mul(e, kn_sub(e, s->column, x->column_begin), kn_i64(e, x->plan.inner));
    at = kn_float_address(e, x->parts, kn_add(e, at, row));
    LLVMTypeRef type = kn_llvm_type(e, RT_float32, e->width);
    for (int i = 0; i < t->rows * t->vectors; i++) {
        LLVMValueRef part = kn_float_address(e, at, kn_i64(e, i * e->width));
        LLVMValueRef before = LLVMBuildLoad2(e->b, type, part, "");
        LLVMSetAlignment(before, (unsigned)e->width * 4);
        if (x->is_first)
            before = LLVMBuildSelect(e->b, x->is_first, LLVMConstNull(type), before, "");
        sums[i] = LLVMBuildFAdd(e->b, before, sums[i], "");
        if (x->is_first)
            LLVMSetAlignment(LLVMBuildStore(e->b, sums[i], part), (unsigned)e->width * 4);
    }
    return !x->is_first;
}

static void emit_tile(kn_emitter *e, kn_pieces *x, kn_tile *t, const column_step *s,
                      LLVMValueRef m) {
    LLVMValueRef sums[KN_MAX_TILE];
    t->vectors = s->vectors;
    if (kn_is_cached_row(e->k, &x->plan))
        kn_emit_row_sums(e, t, x->tile, sums);
    else
        kn_emit_tile_sums(e, t, sums);
    if (x->plan.sum_blocks > 1 && !add_parts(e, x, t, s, m, sums))
        return;
    if (x->plan.in_registers) {
        kn_emit_tile_stores(e, t->rows, t->vectors, sums, m, s->column, s->masks, NULL);
        return;
    }
    for (int i = 0; i < t->rows * t->vectors; i++) {
        LLVMValueRef to = kn_float_address(e, x->tile, kn_i64(e, i * e->width));
        LLVMSetAlignment(LLVMBuildStore(e->b, sums[i], to), (unsigned)e->width * 4);
    }
    kn_emit_tile_epilogue(e, x->tile, m, kn_i64(e, t->rows), s->column, t->vectors);
}

/* How many tiles of a block of `count` rows share the panels that are asked for, as a power of two. */
static LLVMValueRef emit_next_shift(kn_emitter *e, const kn_plan *p, LLVMValueRef count) {
    enum { MOST = 6 };
    rt_dim rows = e->k->dims[e->k->contraction.batch_count].size;
    if (rt_dim_is_constant(rows)) {
        int64_t tiles = (p->inner ? p->inner : kn_known_or(p->block, rows)) / p->rows, shift = 0;
        while (shift < MOST && tiles >> (shift + 1))
            shift++;
        return kn_i64(e, shift);
    }
    LLVMValueRef tiles = LLVMBuildUDiv(e->b, count, kn_i64(e, p->rows), "");
    LLVMValueRef args[2] = {LLVMBuildOr(e->b, tiles, kn_i64(e, 1), ""), LLVMConstInt(LLVMInt1TypeInContext(e->unit->context), 1, 0)};
    LLVMValueRef zeros = kn_intrinsic(e, "llvm.ctlz", &e->unit->i64, 1, args, 2);
    return kn_min(e, kn_sub(e, kn_i64(e, 63), zeros), kn_i64(e, MOST));
}

/* Tiles over `count` rows from `m` on, the widest first. `left` is the first row's address where
 * rows lie in steps. */
static void emit_tiles(kn_emitter *e, kn_pieces *x, kn_tile *t, const column_step *s,
                       LLVMValueRef m, LLVMValueRef left, LLVMValueRef count) {
    const kn_plan *p = &x->plan;
    LLVMValueRef start = kn_i64(e, 0), whole = NULL, next = NULL;
    LLVMValueRef share = NULL; /* of a row */
    if (!t->line_bytes && LLVMIsConstant(t->panel_bytes)) {
        int per_panel = KN_PANEL / e->width, panels = (s->vectors + per_panel - 1) / per_panel;
        next = kn_address(e, t->right, kn_mul(e, t->panel_bytes, kn_i64(e, panels)));
        t->next_shift = emit_next_shift(e, p, count);
        share = x->sum_begin ? kn_i64(e, x->sum_length * KN_PANEL * 4) : t->panel_bytes;
        share = LLVMBuildUDiv(e->b, LLVMBuildLShr(e->b, share, t->next_shift, ""), kn_i64(e, p->rows), "");
    }
    for (int v = 0; v < p->variant_count; v++) {
        LLVMValueRef rows = kn_i64(e, p->variants[v]);
        kn_loop loop;
        kn_loop_begin(e, &loop, start, kn_sub(e, count, kn_sub(e, rows, kn_i64(e, 1))),
                      p->variants[v], NULL, 0);
        t->rows = p->variants[v];
        if (e->k->contraction.left_kind == KN_LEFT_CONVOLUTION) {
            /* Addresses lie in groups of p->rows; narrower tiles come out of the last one. */
            LLVMValueRef group = whole ? whole : loop.index;
            LLVMValueRef slot = kn_add(e, kn_mul(e, group, kn_i64(e, p->taps)),
                                       kn_sub(e, loop.index, group));
            t->table = kn_element(e, x->table, slot, 8);
        } else {
            t->left = kn_address(e, left, kn_mul(e, loop.index, t->row_step));
        }
        if (next)
            t->next = kn_address(e, next, kn_mul(e, loop.index, share));
        emit_tile(e, x, t, s, kn_add(e, m, loop.index));
        kn_loop_end(e, &loop, NULL);
        if (v + 1 < p->variant_count) {
            LLVMValueRef left_over = kn_sub(e, count, start);
            start = kn_add(e, start, kn_mul(e, LLVMBuildUDiv(e->b, left_over, rows, ""), rows));
            if (!whole)
                whole = start;
        }
    }
}

static void emit_columns(kn_emitter *e, kn_pieces *x, const column_step *s) {
    kn_contraction *c = &e->k->contraction;
    const kn_plan *p = &x->plan;
    int64_t unit = p->planes == 1 ? c->channels : 1; /* of LINES: floats of a pixel */
    kn_tile t = {.format = c->format, .taps = kn_i64(e, p->taps), .term_step = 4};
    t.length = p->length >= 0 ? kn_i64(e, p->length) : kn_size(e, c->k);
    t.panel_bytes = c->format == KN_FLOAT32 ? kn_mul(e, kn_size(e, c->k), kn_i64(e, KN_PANEL * 4))
                                            : kn_i64(e, kn_format_panel_bytes(c->format, c->k));
    if (p->reads_right) {
        rt_dim stride = c->right.strides[c->batch_count + 1];
        t.has_squares = stride != 1;
        t.line_bytes = kn_mul(e, kn_size(e, c->right_k), kn_i64(e, 4));
        t.column_bytes = t.has_squares ? kn_mul(e, kn_size(e, stride), kn_i64(e, 4)) : NULL;
        t.columns = kn_sub(e, kn_size(e, e->k->dims[c->batch_count + 1].size), s->column);
        t.masks = s->masks;
        t.right = kn_float_address(e, x->right, kn_mul(e, s->column, kn_size(e, stride)));
    } else {
        LLVMValueRef panel = LLVMBuildUDiv(e->b, s->column, kn_i64(e, KN_PANEL), "");
        t.right = kn_address(e, x->right, kn_mul(e, panel, t.panel_bytes));
    }
    LLVMValueRef count = kn_sub(e, x->row_end, x->row_begin);
    if (x->sum_begin) {
        t.length = kn_i64(e, x->sum_length);
        t.right = kn_element(e, t.right, x->sum_begin, KN_PANEL * 4);
    }
    switch (c->left_kind) {
    case KN_LEFT_ROWS: {
        if (p->copies_left) {
            t.row_step = kn_i64(e, (x->sum_length + 16) * 4);
            emit_tiles(e, x, &t, s, x->row_begin, x->packed_left, count);
            break;
        }
        LLVMValueRef step = kn_mul(e, kn_size(e, c->left.strides[c->batch_count]), kn_i64(e, 4));
        t.row_step = step;
        LLVMValueRef left = x->sum_begin ? kn_float_address(e, x->left, x->sum_begin) : x->left;
        emit_tiles(e, x, &t, s, x->row_begin, kn_address(e, left, kn_mul(e, x->row_begin, step)),
                   count);
        break;
    }
    case KN_LEFT_PACKED:
        t.row_step = kn_mul(e, kn_size(e, kn_dim_add(e->k, c->k, 32)), kn_i64(e, 4));
        if (c->format == KN_BFLOAT16_DOT) {
            t.row_step = kn_i64(e, p->left_row_bytes);
            t.term_step = 2;
        }
        emit_tiles(e, x, &t, s, x->row_begin, x->packed_left, count);
        break;
    case KN_LEFT_CONVOLUTION:
        t.table_step = p->rows * 8;
        emit_tiles(e, x, &t, s, x->row_begin, NULL, count);
        break;
    case KN_LEFT_LINES: {
        LLVMValueRef line = kn_size(e, c->out_w), m = x->row_begin, left = x->packed_left;
        LLVMValueRef carried[2] = {m, left};
        int64_t bytes = kn_left_bytes(c);
        t.row_step = kn_i64(e, c->stride_w * unit * bytes);
        t.tap_step = kn_mul(e, kn_size(e, p->line_floats), kn_i64(e, bytes * c->dilation_h));
        t.term_step = c->dilation_w * bytes;
        kn_loop lines;
        kn_loop_begin(e, &lines, kn_i64(e, 0), LLVMBuildUDiv(e->b, count, line, ""), 1, carried, 2);
        emit_tiles(e, x, &t, s, lines.phis[0], lines.phis[1], line);
        carried[0] = kn_add(e, lines.phis[0], line);
        carried[1] = kn_address(e, lines.phis[1], kn_mul(e, kn_size(e, p->line_floats),
                                                         kn_i64(e, c->stride_h * p->planes * bytes)));
        kn_loop_end(e, &lines, carried);
        break;
    }
    }
}

static void emit_item(kn_emitter *e, kn_pieces *x, LLVMValueRef panel_begin, LLVMValueRef panel_end) {
    const kn_plan *p = &x->plan;
    int n_dim = e->k->contraction.batch_count + 1, w = e->width;
    rt_dim columns = e->k->dims[n_dim].size;
    int64_t width = p->vectors * w;
    LLVMValueRef begin = kn_mul(e, panel_begin, kn_i64(e, KN_PANEL));
    LLVMValueRef end = kn_min(e, kn_mul(e, panel_end, kn_i64(e, KN_PANEL)), kn_size(e, columns));
    column_step s = {.vectors = p->vectors};
    kn_loop loop;
    if (kn_known_or(columns, width) >= width) {
        kn_loop_begin(e, &loop, begin, kn_sub(e, end, kn_i64(e, width - 1)), width, NULL, 0);
        s.column = loop.index;
        emit_columns(e, x, &s);
        kn_loop_end(e, &loop, NULL);
    }
    bool has_rests = p->group * KN_PANEL % width != 0; /* each group its own */
    if (rt_dim_is_constant(columns) && !has_rests) {
        int64_t rest = columns % width;
        if (rest == 0)
            return;
        s.vectors = (int)((rest + w - 1) / w);
        if (rest % w)
            s.masks[s.vectors - 1] = kn_lane_mask(e, kn_i64(e, rest % w), w);
        /* Of the last group alone. */
        LLVMValueRef start = kn_i64(e, columns - rest);
        kn_loop_begin(e, &loop, kn_max(e, begin, start), end, KN_PANEL * KN_MAX_TILE, NULL, 0);
        s.column = start;
        emit_columns(e, x, &s);
        kn_loop_end(e, &loop, NULL);
        return;
    }
    LLVMValueRef start = kn_sub(e, end, begin);
    start = kn_sub(e, start, LLVMBuildURem(e->b, start, kn_i64(e, width), ""));
    kn_loop_begin(e, &loop, kn_add(e, begin, start), end, KN_PANEL, NULL, 0);
    s.column = loop.index;
    s.vectors = KN_PANEL / w;
    for (int v = 0; v < s.vectors; v++)
        s.masks[v] = kn_lane_mask(e, kn_sub(e, kn_sub(e, end, loop.index), kn_i64(e, v * w)), w);
    emit_columns(e, x, &s);
    kn_loop_end(e, &loop, NULL);
}

/* One block of rows after another, and for each one block of terms after another. */
static void emit_sum_blocks(kn_emitter *e, kn_pieces *x, LLVMValueRef panel_begin, LLVMValueRef panel_end) {
    const kn_plan *p = &x->plan;
    LLVMValueRef row_end = x->row_end;
    kn_loop rows, terms;
    kn_loop_begin(e, &rows, x->row_begin, row_end, p->inner, NULL, 0);
    x->row_begin = rows.index;
    x->row_end = kn_min(e, kn_add(e, rows.index, kn_i64(e, p->inner)), row_end);
    x->column_begin = kn_mul(e, panel_begin, kn_i64(e, KN_PANEL));
    int64_t last = (p->sum_blocks - 1) * p->sum_block;
    for (int part = 0; part < 2; part++) {
        if (part == 0)
            kn_loop_begin(e, &terms, kn_i64(e, 0), kn_i64(e, last), p->sum_block, NULL, 0);
        x->sum_begin = part == 0 ? terms.index : kn_i64(e, last);
        x->sum_length = part == 0 ? p->sum_block : e->k->contraction.k - last;
        x->is_first = part == 0 ? LLVMBuildICmp(e->b, LLVMIntEQ, terms.index, kn_i64(e, 0), "") : NULL;
        if (p->copies_left)
            kn_emit_left_copy(e, x);
        emit_item(e, x, panel_begin, panel_end);
        if (part == 0)
            kn_loop_end(e, &terms, NULL);
    }
    kn_loop_end(e, &rows, NULL);
    x->sum_begin = NULL;
}

LLVMValueRef kn_split_item(kn_emitter *e, LLVMValueRef item, rt_dim blocks) {
    LLVMValueRef count = kn_size(e, blocks), batch = LLVMBuildUDiv(e->b, item, count, "");
    LLVMValueRef block = kn_sub(e, item, kn_mul(e, batch, count));
    for (int d = e->k->contraction.batch_count - 1; d >= 0; d--) {
        LLVMValueRef size = kn_size(e, e->k->dims[d].size);
        LLVMValueRef quotient = LLVMBuildUDiv(e->b, batch, size, "");
        e->index[d] = d == 0 ? batch : kn_sub(e, batch, kn_mul(e, quotient, size));
        batch = quotient;
    }
    return block;
}

/* Room for the tile in memory, where the plan needs one: on the stack, at the function's entry. */
static LLVMValueRef emit_tile_room(kn_emitter *e, const kn_kernel *k, const kn_plan *p) {
    if (p->in_registers && !p->is_amx && !kn_is_cached_row(k, p))
        return NULL;
    int floats = p->rows * ((p->vectors * e->width + KN_PANEL - 1) / KN_PANEL * KN_PANEL);
    LLVMValueRef tile_floats = LLVMConstInt(e->unit->i32, (unsigned)floats, 0);
    LLVMValueRef tile = LLVMBuildArrayAlloca(e->b, e->unit->f32, tile_floats, "");
    LLVMSetAlignment(tile, 64);
    return tile;
}

static void emit_items(kn_emitter *e, const kn_plan *plan, LLVMValueRef tile) {
    kn_kernel *k = e->k;
    kn_contraction *c = &k->contraction;
    kn_pieces x;
    memset(&x, 0, sizeof x);
    x.plan = *plan;
    x.tile = tile;
    const kn_plan *p = &x.plan;
    x.table = e->scratch;
    x.packed_left = kn_address(e, e->scratch, kn_size(e, p->table_bytes));
    x.packed_right = kn_address(e, x.packed_left, kn_size(e, p->packed_left_bytes));
    if (p->parts_bytes)
        x.parts = kn_address(e, x.packed_right, kn_size(e, p->packed_right_bytes));
    if (p->is_amx)
        kn_amx_begin(e, p->rows / 2);
    LLVMValueRef groups = kn_size(e, p->group ? p->groups : 1), begin = e->begin, end = e->end;
    if (p->is_amx && p->amx_joins) { /* blocks: a part may begin and end within one */
        begin = LLVMBuildUDiv(e->b, begin, groups, "");
        end = LLVMBuildUDiv(e->b, kn_add(e, end, kn_sub(e, groups, kn_i64(e, 1))), groups, "");
    }
    kn_loop items;
    kn_loop_begin(e, &items, begin, end, 1, NULL, 0);
    LLVMValueRef rest = items.index;
    LLVMValueRef panel_begin = kn_i64(e, 0);
    LLVMValueRef panel_end = kn_size(e, kn_dim_ceil_div(k, k->dims[c->batch_count + 1].size, KN_PANEL));
    if (p->is_amx && p->amx_joins) {
        LLVMValueRef first = kn_mul(e, rest, groups), past = kn_min(e, kn_sub(e, e->end, first), groups);
        panel_begin = kn_mul(e, kn_max(e, kn_sub(e, e->begin, first), panel_begin), kn_i64(e, p->group));
        panel_end = kn_min(e, kn_mul(e, past, kn_i64(e, p->group)), panel_end);
    } else if (p->group) {
        LLVMValueRef quotient = LLVMBuildUDiv(e->b, rest, groups, "");
        panel_begin = kn_mul(e, kn_sub(e, rest, kn_mul(e, quotient, groups)), kn_i64(e, p->group));
        panel_end = kn_min(e, kn_add(e, panel_begin, kn_i64(e, p->group)), panel_end);
        rest = quotient;
    }
    LLVMValueRef block = kn_size(e, p->block);
    x.row_begin = kn_mul(e, kn_split_item(e, rest, p->blocks), block);
    x.row_end = kn_min(e, kn_add(e, x.row_begin, block),
                       kn_size(e, k->dims[c->batch_count].size));
    x.left = kn_batch_address(e, &c->left);
    x.right = kn_batch_address(e, &c->right);
    if (p->is_amx ? p->amx_packs_right : !c->right_is_packed && !p->reads_right)
        kn_emit_packed_right(e, &x, panel_begin, panel_end);
    if (p->is_amx) {
        kn_emit_amx_item(e, &x, panel_begin, panel_end);
    } else if (p->sum_block) {
        emit_sum_blocks(e, &x, panel_begin, panel_end);
    } else {
        kn_emit_rows(e, &x);
        emit_item(e, &x, panel_begin, panel_end);
    }
    kn_loop_end(e, &items, NULL);
    if (p->is_amx)
        kn_amx_end(e);
}

void kn_emit_contraction(kn_emitter *e) {
    if (e->k->contraction.is_integer) {
        kn_emit_integer(e);
        return;
    }
    if (e->k->contraction.winograd) {
        kn_emit_winograd(e);
        return;
    }
    kn_kernel *k = e->k;
    kn_row_form forms[KN_MAX_ROW_FORMS];
    int count = kn_plan_row_forms(k, e->unit->target, forms);
    LLVMValueRef tiles[KN_MAX_ROW_FORMS];
    for (int i = 0; i < count; i++)
        tiles[i] = emit_tile_room(e, forms[i].k, &forms[i].plan);
    LLVMContextRef context = e->unit->context;
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(context, e->function, "");
    for (int i = 0; i < count; i++) {
        LLVMBasicBlockRef here = LLVMAppendBasicBlockInContext(context, e->function, ""), next = NULL;
        if (i + 1 < count) {
            next = LLVMAppendBasicBlockInContext(context, e->function, "");
            LLVMValueRef rows = kn_size(e, k->dims[k->contraction.batch_count].size), most = kn_i64(e, forms[i].most);
            LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLE, rows, most, ""), here, next);
        } else {
            LLVMBuildBr(e->b, here);
        }
        LLVMPositionBuilderAtEnd(e->b, here);
        e->k = forms[i].k;
        emit_items(e, &forms[i].plan, tiles[i]);
        LLVMBuildBr(e->b, done);
        if (next)
            LLVMPositionBuilderAtEnd(e->b, next);
    }
    e->k = k;
    LLVMPositionBuilderAtEnd(e->b, done);
}

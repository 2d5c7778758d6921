/* codegen/emit_llvm_amx_attention.c - attention in one pass over the keys, its products through AMX's tiles.
 *
 *   item = (batch, block of queries)
 *     queries, 32 at a time: transposed and split, columns of the first product
 *     for blocks of 64 keys
 *       keys split as rows of the first product; values transposed and split as rows of the second
 *       for 32 queries
 *         scores[key][query] = keys * queries, then weights and their sums (emit_llvm_attention.c)
 *         out[c][query] = out * factor + values * weights
 *
 * What of keys, values or queries is not finite shows in the flags; such an item is computed again without tiles. */
#include "codegen/emit_llvm_amx.h"
#include "codegen/emit_llvm_attention.h"

#include <string.h>

enum { KEYS = 64, QUERIES = 32, ROW = QUERIES * 4, KEY_STEPS = KEYS / AMX_STEP };
enum { MOST_PAIRS = 8 };

typedef struct layout { /* byte offsets in the plan's part of scratch */
    int64_t depth_steps, width_pairs;
    int64_t packed, scores, weights, keys, lines, values, flags, ends;
    int64_t queries, query_bytes, out, out_bytes, state; /* of each 32 queries */
    int64_t bytes;
} layout;

static layout layout_of(const kn_attention *a, int64_t pairs) {
    layout l = {.depth_steps = (a->depth + AMX_STEP - 1) / AMX_STEP, .width_pairs = (a->width + 31) / 32};
    int64_t place = 0;
    l.query_bytes = l.depth_steps * AMX_STEP_BYTES + 128;
    l.out_bytes = l.width_pairs * 32 * ROW + 128;
    const struct {
        int64_t *at, bytes;
    } rooms[] = {{&l.packed, (l.depth_steps * AMX_STEP + 16) * ROW},
                 {&l.scores, 2 * KEYS * ROW},
                 {&l.weights, KEY_STEPS * AMX_STEP_BYTES + 128},
                 {&l.keys, KEYS / 32 * (l.depth_steps * AMX_STEP_BYTES + 128)},
                 {&l.lines, l.width_pairs * 32 * KEYS * 4},
                 {&l.values, l.width_pairs * (KEY_STEPS * AMX_STEP_BYTES + 128)},
                 {&l.flags, AMX_FLAG_BYTES},
                 {&l.ends, pairs * 8},
                 {&l.queries, pairs * l.query_bytes},
                 {&l.out, pairs * l.out_bytes},
                 {&l.state, pairs * 3 * ROW}};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        *rooms[i].at = place;
        place += (rooms[i].bytes + 63) / 64 * 64;
    }
    l.bytes = place;
    return l;
}

bool kn_plan_amx_attention(const kn_kernel *k, const cg_target_info *target, kn_amx_attention_plan *p) {
    const kn_attention *a = &k->attention;
    rt_dim queries = k->dims[k->dim_count - 1].size, keys = k->dims[a->batch_count].size;
    memset(p, 0, sizeof *p);
    if (!target->has_amx || a->key_step != 1 || a->value_step != 1 || a->width % 16 || a->depth < 24 ||
        a->depth > 256 || a->width > 256)
        return false;
    if ((rt_dim_is_constant(queries) && queries < QUERIES) || (rt_dim_is_constant(keys) && keys < QUERIES))
        return false;
    p->pairs = MOST_PAIRS;
    p->blocks = kn_dim_ceil_div(k, queries, MOST_PAIRS * QUERIES);
    p->queries = kn_dim_even_block(k, queries, p->blocks, QUERIES);
    p->bytes = layout_of(a, p->pairs).bytes;
    return true;
}

typedef struct pass {
    kn_emitter *e;
    const kn_attention_pieces *item;
    kn_attention *a;
    layout l;
    LLVMValueRef base;  /* of the layout */
    LLVMValueRef pairs; /* of vectors of queries */
} pass;

static LLVMValueRef room(const pass *s, int64_t offset) { return kn_address(s->e, s->base, kn_i64(s->e, offset)); }

/* The pieces of 32 queries. */
static kn_attention_pieces pair_pieces(const pass *s, LLVMValueRef pair) {
    kn_emitter *e = s->e;
    kn_attention_pieces x = *s->item;
    LLVMValueRef first = kn_mul(e, pair, kn_i64(e, QUERIES)), state = kn_element(e, room(s, s->l.state), pair, 3 * ROW);
    x.vectors = 2;
    x.row = ROW;
    x.first = kn_add(e, x.first, first);
    x.left = kn_min(e, kn_sub(e, x.left, first), kn_i64(e, QUERIES));
    x.packed = room(s, s->l.packed);
    x.scores = room(s, s->l.scores);
    x.out = kn_element(e, room(s, s->l.out), pair, s->l.out_bytes);
    x.top = state;
    x.sum = kn_address(e, state, kn_i64(e, ROW));
    x.factors = kn_address(e, state, kn_i64(e, 2 * ROW));
    return x;
}

/* Two panels of 16 queries, of lines ROW bytes apart. */
static kn_amx_columns lines_of(const pass *s, LLVMValueRef from, LLVMValueRef to, LLVMValueRef last) {
    kn_emitter *e = s->e;
    return (kn_amx_columns){.from = {from, kn_address(e, from, kn_i64(e, 64))}, .to = to, .line_bytes = kn_i64(e, ROW),
                            .last_line = last, .flags = room(s, s->l.flags)};
}

static void split_lines(const pass *s, const kn_amx_columns *c, LLVMValueRef steps) {
    kn_amx_split_columns(s->e, c, kn_i64(s->e, 0), kn_mul(s->e, steps, kn_i64(s->e, AMX_STEP_UNITS)));
}

static LLVMValueRef query_parts(const pass *s, LLVMValueRef pair) {
    return kn_element(s->e, room(s, s->l.queries), pair, s->l.query_bytes);
}

static LLVMValueRef end_address(const pass *s, LLVMValueRef pair) {
    return kn_element(s->e, room(s, s->l.ends), pair, 8);
}

/* Splits the queries; returns how many keys the query that sees most does. */
static LLVMValueRef emit_queries(const pass *s) {
    kn_emitter *e = s->e;
    kn_loop pair;
    LLVMValueRef end = kn_i64(e, 0);
    kn_loop_begin(e, &pair, kn_i64(e, 0), s->pairs, 1, &end, 1);
    kn_attention_pieces x = pair_pieces(s, pair.index);
    kn_attention_pack(e, &x);
    kn_amx_columns c = lines_of(s, x.packed, query_parts(s, pair.index),
                                s->a->depth % AMX_STEP ? kn_i64(e, s->a->depth - 1) : NULL);
    split_lines(s, &c, kn_i64(e, s->l.depth_steps));
    kn_attention_begin(e, &x);
    kn_attention_fill(e, &x, kn_i64(e, s->l.width_pairs * 32));
    LLVMValueRef seen = kn_attention_end(e, &x);
    LLVMBuildStore(e->b, seen, end_address(s, pair.index));
    end = kn_max(e, pair.phis[0], seen);
    kn_loop_end(e, &pair, &end);
    return pair.exit_phis[0];
}

/* Keys [begin, begin + count) to parts, two tiles of 16 at a time. */
static void emit_keys(const pass *s, LLVMValueRef begin, LLVMValueRef count) {
    kn_emitter *e = s->e;
    LLVMValueRef bytes = kn_mul(e, kn_size(e, s->a->key_row), kn_i64(e, 4));
    for (int tile = 0; tile < KEYS / 16; tile++) {
        LLVMValueRef first = kn_i64(e, tile * 16);
        int64_t to = s->l.keys + tile / 2 * (s->l.depth_steps * AMX_STEP_BYTES + 128) + tile % 2 * AMX_OPERAND_BYTES;
        kn_amx_rows r = {.from = kn_address(e, s->item->key, kn_mul(e, kn_add(e, begin, first), bytes)),
                         .bytes = bytes, .to = room(s, to), .flags = room(s, s->l.flags),
                         .terms = s->a->depth % AMX_STEP ? kn_i64(e, s->a->depth) : NULL};
        kn_amx_split_rows(e, &r, kn_min(e, kn_sub(e, count, first), kn_i64(e, 16)), kn_i64(e, s->l.depth_steps));
    }
}

/* Values of these keys, transposed by squares to lines[c][key]; of keys past the last one zeros. */
static void emit_values(const pass *s, LLVMValueRef begin, LLVMValueRef count, LLVMValueRef steps) {
    kn_emitter *e = s->e;
    kn_loop key, column;
    LLVMValueRef bytes = kn_mul(e, kn_size(e, s->a->value_row), kn_i64(e, 4)), lines = room(s, s->l.lines);
    kn_loop_begin(e, &key, kn_i64(e, 0), kn_mul(e, steps, kn_i64(e, AMX_STEP)), 16, NULL, 0);
    kn_loop_begin(e, &column, kn_i64(e, 0), kn_i64(e, s->a->width), 16, NULL, 0);
    LLVMValueRef rows[16], zero = LLVMConstNull(kn_llvm_type(e, RT_float32, 16));
    LLVMValueRef last = kn_sub(e, count, kn_i64(e, 1));
    for (int i = 0; i < 16; i++) {
        LLVMValueRef k = kn_add(e, key.index, kn_i64(e, i)), row = kn_add(e, begin, kn_min(e, k, last));
        LLVMValueRef from = kn_element(e, kn_address(e, s->item->value, kn_mul(e, row, bytes)), column.index, 4);
        rows[i] = LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, k, count, ""),
                                  kn_emit_load(e, from, NULL, RT_float32, 16, NULL), zero, "");
    }
    kn_transpose(e, rows, 16);
    LLVMValueRef to = kn_element(e, kn_element(e, lines, column.index, KEYS * 4), key.index, 4);
    for (int i = 0; i < 16; i++)
        kn_emit_store(e, rows[i], kn_address(e, to, kn_i64(e, i * KEYS * 4)), NULL, RT_float32, 16, NULL);
    kn_loop_end(e, &column, NULL);
    kn_loop_end(e, &key, NULL);
    for (int64_t tile = 0; tile < s->a->width / 16; tile++) {
        int64_t to_parts = s->l.values + tile / 2 * (KEY_STEPS * AMX_STEP_BYTES + 128) + tile % 2 * AMX_OPERAND_BYTES;
        kn_amx_rows r = {.from = kn_address(e, lines, kn_i64(e, tile * 16 * KEYS * 4)), .bytes = kn_i64(e, KEYS * 4),
                         .to = room(s, to_parts), .flags = room(s, s->l.flags)};
        kn_amx_split_rows(e, &r, kn_i64(e, 16), steps);
    }
}

typedef struct key_block {
    LLVMValueRef begin, count, steps; /* of 32 keys */
} key_block;

/* scores[key][query] of 32 queries; meanwhile the weights at `lines`, where there are, are split. */
static void emit_scores(const pass *s, LLVMValueRef pair, const key_block *b, LLVMValueRef scores, LLVMValueRef lines) {
    kn_emitter *e = s->e;
    int units = AMX_STEP_UNITS;
    while (units > 4 && units / 2 * s->l.depth_steps >= AMX_STEP_UNITS)
        units /= 2;
    kn_amx_product m = {.rows = 16, .columns = query_parts(s, pair), .steps = kn_i64(e, s->l.depth_steps),
                        .before = LLVMConstNull(e->unit->pointer), .to_bytes = kn_i64(e, ROW)};
    if (lines) {
        m.next_columns = lines_of(s, lines, room(s, s->l.weights), NULL);
        m.units = units;
        m.end_unit = kn_mul(e, b->steps, kn_i64(e, AMX_STEP_UNITS));
    }
    kn_loop tile;
    kn_loop_begin(e, &tile, kn_i64(e, 0), b->steps, 1, NULL, 0);
    m.parts = kn_element(e, room(s, s->l.keys), tile.index, s->l.depth_steps * AMX_STEP_BYTES + 128);
    m.to = kn_element(e, scores, tile.index, 32 * ROW);
    if (lines)
        m.first_unit = kn_mul(e, tile.index, kn_i64(e, units * s->l.depth_steps));
    kn_amx_multiply(e, &m);
    kn_loop_end(e, &tile, NULL);
}

/* Scores to weights, which are zero past the last key. */
static void emit_weights(const pass *s, LLVMValueRef pair, const key_block *b, LLVMValueRef scores) {
    kn_emitter *e = s->e;
    kn_attention_pieces x = pair_pieces(s, pair);
    LLVMValueRef old[4], zero = LLVMConstNull(kn_llvm_type(e, RT_float32, 16));
    kn_loop row;
    x.scores = scores;
    kn_attention_take_top(e, &x, old);
    kn_attention_weigh(e, &x, b->begin, b->count, old, false);
    kn_loop_begin(e, &row, b->count, kn_mul(e, b->steps, kn_i64(e, AMX_STEP)), 1, NULL, 0);
    for (int v = 0; v < 2; v++)
        kn_emit_store(e, zero, kn_address(e, kn_element(e, scores, row.index, ROW), kn_i64(e, v * 64)), NULL,
                      RT_float32, 16, NULL);
    kn_loop_end(e, &row, NULL);
}

/* out[c][query] = out * factor + values * weights */
static void emit_sums(const pass *s, LLVMValueRef pair, const key_block *b) {
    kn_emitter *e = s->e;
    kn_attention_pieces x = pair_pieces(s, pair);
    LLVMValueRef factors[2];
    kn_loop row, tile;
    for (int v = 0; v < 2; v++)
        factors[v] = kn_emit_load(e, kn_address(e, x.factors, kn_i64(e, v * 64)), NULL, RT_float32, 16, NULL);
    kn_loop_begin(e, &row, kn_i64(e, 0), kn_i64(e, s->a->width), 1, NULL, 0);
    for (int v = 0; v < 2; v++) {
        LLVMValueRef place = kn_address(e, kn_element(e, x.out, row.index, ROW), kn_i64(e, v * 64));
        LLVMValueRef sum = kn_emit_load(e, place, NULL, RT_float32, 16, NULL);
        kn_emit_store(e, LLVMBuildFMul(e->b, sum, factors[v], ""), place, NULL, RT_float32, 16, NULL);
    }
    kn_loop_end(e, &row, NULL);
    kn_amx_product m = {.rows = 16, .columns = room(s, s->l.weights), .steps = b->steps, .to_bytes = kn_i64(e, ROW)};
    kn_loop_begin(e, &tile, kn_i64(e, 0), kn_i64(e, s->l.width_pairs), 1, NULL, 0);
    m.parts = kn_element(e, room(s, s->l.values), tile.index, KEY_STEPS * AMX_STEP_BYTES + 128);
    m.before = m.to = kn_element(e, x.out, tile.index, 32 * ROW);
    kn_amx_multiply(e, &m);
    kn_loop_end(e, &tile, NULL);
}

/* A block of keys for all queries that see some of it. The sums of 32 queries follow the scores of the next 32, with
 * which their weights are split. */
static void emit_block(const pass *s, const key_block *b) {
    kn_emitter *e = s->e;
    kn_loop pair, sees, when;
    /* The queries before (-1: none), where scores go, and where theirs are. */
    LLVMValueRef carried[3] = {kn_i64(e, -1), room(s, s->l.scores), room(s, s->l.scores + KEYS * ROW)};
    kn_loop_begin(e, &pair, kn_i64(e, 0), s->pairs, 1, carried, 3);
    LLVMValueRef end = LLVMBuildLoad2(e->b, e->unit->i64, end_address(s, pair.index), "");
    kn_when_begin(e, &sees, LLVMBuildICmp(e->b, LLVMIntSLT, b->begin, end, ""), pair.phis, 3);
    LLVMValueRef before = sees.phis[0], here = sees.phis[1], there = sees.phis[2];
    LLVMValueRef is_first = LLVMBuildICmp(e->b, LLVMIntSLT, before, kn_i64(e, 0), "");
    kn_when_begin(e, &when, is_first, NULL, 0);
    emit_scores(s, pair.index, b, here, NULL);
    kn_loop_end(e, &when, NULL);
    kn_when_begin(e, &when, LLVMBuildNot(e->b, is_first, ""), NULL, 0);
    emit_scores(s, pair.index, b, here, there);
    emit_sums(s, before, b);
    kn_loop_end(e, &when, NULL);
    emit_weights(s, pair.index, b, here);
    LLVMValueRef next[3] = {pair.index, there, here};
    kn_loop_end(e, &sees, next);
    kn_loop_end(e, &pair, sees.exit_phis);
    kn_when_begin(e, &when, LLVMBuildICmp(e->b, LLVMIntSGE, pair.exit_phis[0], kn_i64(e, 0), ""), NULL, 0);
    kn_amx_columns c = lines_of(s, pair.exit_phis[2], room(s, s->l.weights), NULL);
    split_lines(s, &c, b->steps);
    emit_sums(s, pair.exit_phis[0], b);
    kn_loop_end(e, &when, NULL);
}

LLVMValueRef kn_emit_amx_attention(kn_emitter *e, const kn_attention_pieces *item) {
    const kn_amx_attention_plan *p = &item->plan.amx;
    pass s = {.e = e, .item = item, .a = &e->k->attention, .l = layout_of(&e->k->attention, p->pairs),
              .base = kn_address(e, e->scratch, kn_i64(e, p->begin))};
    s.pairs = LLVMBuildUDiv(e->b, kn_add(e, item->left, kn_i64(e, QUERIES - 1)), kn_i64(e, QUERIES), "");
    LLVMTypeRef floats = kn_llvm_type(e, RT_float32, 16);
    LLVMValueRef flags = room(&s, s.l.flags);
    kn_emit_store(e, LLVMConstNull(floats), flags, NULL, RT_float32, 16, NULL);
    kn_loop block, pair;
    LLVMValueRef end = emit_queries(&s);
    kn_loop_begin(e, &block, kn_i64(e, 0), end, KEYS, NULL, 0);
    key_block b = {.begin = block.index, .count = kn_min(e, kn_sub(e, end, block.index), kn_i64(e, KEYS))};
    b.steps = LLVMBuildLShr(e->b, kn_add(e, b.count, kn_i64(e, AMX_STEP - 1)), kn_i64(e, 5), "");
    emit_keys(&s, b.begin, b.count);
    emit_values(&s, b.begin, b.count, b.steps);
    emit_block(&s, &b);
    kn_loop_end(e, &block, NULL);
    flags = kn_emit_load(e, flags, NULL, RT_float32, 16, NULL);
    LLVMValueRef failed = kn_amx_is_flagged(e, flags);
    kn_loop_begin(e, &pair, kn_i64(e, 0), LLVMBuildSelect(e->b, failed, kn_i64(e, 0), s.pairs, ""), 1, NULL, 0);
    kn_attention_pieces x = pair_pieces(&s, pair.index);
    kn_attention_result(e, &x);
    kn_loop_end(e, &pair, NULL);
    return failed;
}

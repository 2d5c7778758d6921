/* codegen/emit_llvm_attention.c - attention in one pass over the keys.
 *
 *   item = (batch, block of queries)
 *     queries transposed into packed[depth][queries], once
 *     for blocks of keys
 *       scores[key][query] = keys * packed          keys are read where they lie: a row of K is a
 *       score graph, running maximum of each query  row of the tile, its floats are splat
 *       p = exp(score - maximum), running sum
 *       out[c][query] = out * exp(old - new maximum) + values[key][c] * p
 *     out / sum, transposed back
 *
 * Queries lie in the lanes: maxima, exponentials and sums then need no step across lanes, and
 * neither K nor V is packed or transposed. Nothing but a block of scores is ever in memory. A query
 * is computed by the same operations wherever its block begins, so results do not depend on the
 * number of threads. Source: M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax";
 * T. Dao et al., "FlashAttention". */
#include "codegen/emit_llvm_attention.h"
#include "codegen/emit_llvm_amx.h"

#include <math.h>
#include <string.h>

static void make_plan(kn_kernel *k, const cg_target_info *target, kn_attention_plan *p) {
    kn_attention *a = &k->attention;
    int lanes = target->vector_bytes / 4;
    rt_dim queries = k->dims[k->dim_count - 1].size;
    p->rows = lanes == 16 ? 8 : 4;
    p->vectors = lanes >= 8 ? 3 : 2;
    if (rt_dim_is_constant(queries))
        while (p->vectors > 1 && (p->vectors - 1) * lanes >= queries)
            p->vectors--;
    p->block = 64;
    p->queries = (int64_t)p->vectors * lanes;
    p->blocks = kn_dim_ceil_div(k, queries, p->queries);
    /* Tiles write whole rows past the end, and columns are read back in squares. */
    int64_t row = p->queries * 4, width = (a->width + 15) / 16 * 16 + 16;
    p->packed = 0;
    p->scores = p->packed + (a->depth + 16) * row;
    p->out = p->scores + (p->block + p->rows) * row;
    p->state = p->out + width * row;
    p->square = p->state + 4 * row;
    k->scratch_bytes = (p->square + 16 * 64 + 63) / 64 * 64;
    p->item_queries = p->queries;
    if (kn_plan_amx_attention(k, target, &p->amx)) {
        p->item_queries = p->amx.queries;
        p->blocks = p->amx.blocks;
        p->amx.begin = k->scratch_bytes;
        k->scratch_bytes += p->amx.bytes;
    }
    rt_dim items = p->blocks;
    for (int d = 0; d < a->batch_count; d++)
        items = kn_dim_mul(k, items, k->dims[d].size);
    k->work_items = k->part_items = items;
    rt_dim keys = k->dims[a->batch_count].size;
    int64_t per_item = rt_dim_is_constant(p->item_queries) ? p->item_queries : 64;
    double flops = 2.0 * (double)(a->depth + a->width + 20) * (double)per_item *
                   (rt_dim_is_constant(keys) ? (double)keys : 256);
    k->grain = flops > 2e6 ? 1 : (int64_t)(2e6 / (flops + 1)) + 1;
    k->flops = rt_dim_is_constant(items) ? flops * (double)items : 0;
}

ts_status kn_plan_attention(kn_kernel *k, const cg_target_info *target) {
    kn_attention *a = &k->attention;
    kn_attention_plan p;
    make_plan(k, target, &p);
    rt_dim all[5 * KN_MAX_DIMS + 16];
    int count = 0;
    for (int d = 0; d < k->dim_count; d++) {
        all[count++] = k->dims[d].size;
        all[count++] = a->query.strides[d];
        all[count++] = a->key.strides[d];
        all[count++] = a->value.strides[d];
        all[count++] = a->result.strides[d];
    }
    rt_dim more[] = {a->query.offset, a->key.offset, a->value.offset, a->result.offset,
                     a->query_row,    a->query_step, a->key_row,      a->key_step,
                     a->value_row,    a->value_step, a->result_row,   a->result_step,
                     p.blocks,        k->work_items,  p.item_queries};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        all[count++] = more[i];
    return kn_need_sizes(k, all, (size_t)count, "attention");
}

/* ---- transposition ---- */

void kn_transpose(kn_emitter *e, LLVMValueRef *rows, int count) {
    for (int step = 1; step < count; step *= 2) {
        LLVMValueRef low[64], high[64];
        for (int i = 0; i < count; i++) {
            bool odd = (i & step) != 0;
            low[i] = LLVMConstInt(e->unit->i32, (unsigned)(odd ? count + i - step : i), 0);
            high[i] = LLVMConstInt(e->unit->i32, (unsigned)(odd ? count + i : i + step), 0);
        }
        LLVMValueRef low_mask = LLVMConstVector(low, (unsigned)count);
        LLVMValueRef high_mask = LLVMConstVector(high, (unsigned)count);
        for (int i = 0; i < count; i++) {
            if (i & step)
                continue;
            LLVMValueRef a = rows[i], b = rows[i + step];
            rows[i] = LLVMBuildShuffleVector(e->b, a, b, low_mask, "");
            rows[i + step] = LLVMBuildShuffleVector(e->b, a, b, high_mask, "");
        }
    }
}

/* ---- the product ----
 *   void f(const float *a, int64_t row_bytes, int64_t step_bytes, int64_t last, int64_t length,
 *          const float *b, float *c, const float *factors, float *top)
 *   c[i][j] = sum over k < length of a[min(i, last)][k] * b[k][j], plus c[i][j] * factors[j] where
 *   there are factors; else, where there is a top, top[j] becomes the greatest of itself and c's rows.
 *   b and c have rows of `vectors` vectors; one function of each shape a unit. */

static LLVMValueRef vector_load(kn_emitter *e, LLVMValueRef address) {
    LLVMTypeRef type = LLVMVectorType(e->unit->f32, (unsigned)e->lanes);
    LLVMValueRef v = LLVMBuildLoad2(e->b, type, address, "");
    LLVMSetAlignment(v, (unsigned)e->lanes * 4);
    return v;
}

static void vector_store(kn_emitter *e, LLVMValueRef v, LLVMValueRef address) {
    LLVMSetAlignment(LLVMBuildStore(e->b, v, address), (unsigned)e->lanes * 4);
}

static LLVMValueRef at(kn_emitter *e, LLVMValueRef base, int64_t bytes) {
    return kn_address(e, base, kn_i64(e, bytes));
}

/* The greater of a score and the greatest so far; a NaN passes it by, the sum gets it. */
static LLVMValueRef greater(kn_emitter *e, LLVMValueRef score, LLVMValueRef top) {
    return LLVMBuildSelect(e->b, LLVMBuildFCmp(e->b, LLVMRealOGT, score, top, ""), score, top, "");
}

static void emit_product(cg_unit *unit, LLVMValueRef f, int rows, int vectors) {
    LLVMContextRef c = unit->context;
    kn_kernel none = {0};
    kn_emitter x = {.unit = unit, .function = f, .k = &none}, *e = &x;
    e->b = LLVMCreateBuilderInContext(c);
    e->lanes = e->width = unit->target->vector_bytes / 4;
    int64_t row = (int64_t)vectors * e->lanes * 4, vector = (int64_t)e->lanes * 4;
    LLVMPositionBuilderAtEnd(e->b, LLVMAppendBasicBlockInContext(c, f, ""));
    LLVMValueRef bases[16], sums[64], zero = LLVMConstNull(LLVMVectorType(unit->f32, (unsigned)e->lanes));
    for (int i = 0; i < rows; i++) {
        LLVMValueRef r = kn_min(e, kn_i64(e, i), LLVMGetParam(f, 3));
        bases[i] = kn_address(e, LLVMGetParam(f, 0), kn_mul(e, r, LLVMGetParam(f, 1)));
    }
    int count = rows * vectors;
    for (int i = 0; i < count; i++)
        sums[i] = zero;
    sums[count] = kn_i64(e, 0);
    kn_loop loop;
    kn_loop_begin(e, &loop, kn_i64(e, 0), LLVMGetParam(f, 4), 1, sums, count + 1);
    LLVMValueRef b = kn_address(e, LLVMGetParam(f, 5), kn_mul(e, loop.index, kn_i64(e, row)));
    LLVMValueRef columns[4];
    for (int v = 0; v < vectors; v++)
        columns[v] = vector_load(e, at(e, b, v * vector));
    for (int i = 0; i < rows; i++) {
        LLVMValueRef a = LLVMBuildLoad2(e->b, unit->f32, kn_address(e, bases[i], loop.phis[count]), "");
        LLVMSetAlignment(a, 4);
        a = kn_splat(e, a, e->lanes);
        for (int v = 0; v < vectors; v++)
            sums[i * vectors + v] = kn_fma(e, a, columns[v], loop.phis[i * vectors + v]);
    }
    sums[count] = kn_add(e, loop.phis[count], LLVMGetParam(f, 2));
    kn_loop_end(e, &loop, sums);
    /* By what is given: factors, a top or neither. */
    for (int given = 7; given <= 9; given++) {
        LLVMBasicBlockRef here = NULL, others = NULL;
        if (given < 9) {
            here = LLVMAppendBasicBlockInContext(c, f, "");
            others = LLVMAppendBasicBlockInContext(c, f, "");
            LLVMValueRef pointer = LLVMGetParam(f, (unsigned)given);
            LLVMBuildCondBr(e->b, LLVMBuildIsNull(e->b, pointer, ""), others, here);
            LLVMPositionBuilderAtEnd(e->b, here);
        }
        for (int j = 0; j < vectors; j++) {
            LLVMValueRef beside = NULL;
            if (given < 9)
                beside = vector_load(e, at(e, LLVMGetParam(f, (unsigned)given), j * vector));
            for (int i = j; i < count; i += vectors) {
                LLVMValueRef to = at(e, LLVMGetParam(f, 6), i * vector), v = loop.exit_phis[i];
                if (given == 7)
                    v = kn_fma(e, vector_load(e, to), beside, v);
                else if (given == 8)
                    beside = greater(e, v, beside);
                vector_store(e, v, to);
            }
            if (given == 8)
                vector_store(e, beside, at(e, LLVMGetParam(f, 8), j * vector));
        }
        LLVMBuildRetVoid(e->b);
        if (others)
            LLVMPositionBuilderAtEnd(e->b, others);
    }
    LLVMDisposeBuilder(e->b);
}

static kn_attention_product get_product(cg_unit *unit, int rows, int vectors) {
    LLVMTypeRef params[9] = {unit->pointer, unit->i64,     unit->i64,     unit->i64,    unit->i64,
                             unit->pointer, unit->pointer, unit->pointer, unit->pointer};
    kn_attention_product p = {.type = LLVMFunctionType(unit->void_type, params, 9, 0)};
    ts_str name = ts_arena_format(unit->arena, "attend_%dx%d", rows, vectors);
    p.function = LLVMGetNamedFunction(unit->module, name.data);
    if (!p.function) {
        p.function = cg_function_make(unit, name.data, p.type);
        emit_product(unit, p.function, rows, vectors);
    }
    return p;
}

/* ---- an item ---- */

static LLVMValueRef batch_address(kn_emitter *e, const kn_access *a) {
    LLVMValueRef offset = kn_size(e, a->offset);
    for (int d = 0; d < e->k->attention.batch_count; d++)
        offset = kn_add(e, offset, kn_mul(e, e->index[d], kn_size(e, a->strides[d])));
    return kn_element(e, e->buffers[a->buffer], offset, 4);
}

void kn_attention_pack(kn_emitter *e, kn_attention_pieces *x) {
    kn_attention *a = &e->k->attention;
    int w = e->lanes;
    LLVMValueRef last = kn_sub(e, x->left, kn_i64(e, 1)), step = kn_size(e, a->query_step);
    LLVMValueRef stride = a->query_step == 1 ? NULL : step, depth = kn_i64(e, a->depth);
    kn_loop v, c;
    kn_loop_begin(e, &v, kn_i64(e, 0), kn_i64(e, x->vectors), 1, NULL, 0);
    LLVMValueRef first = kn_mul(e, v.index, kn_i64(e, w)), from[64], rows[64];
    for (int i = 0; i < w; i++) {
        LLVMValueRef q = kn_add(e, x->first, kn_min(e, kn_add(e, first, kn_i64(e, i)), last));
        from[i] = kn_element(e, x->query, kn_mul(e, q, kn_size(e, a->query_row)), 4);
    }
    LLVMValueRef to = kn_element(e, x->packed, first, 4);
    kn_loop_begin(e, &c, kn_i64(e, 0), depth, w, NULL, 0);
    LLVMValueRef mask = a->depth % w ? kn_lane_mask(e, kn_sub(e, depth, c.index), w) : NULL;
    for (int i = 0; i < w; i++)
        rows[i] = kn_emit_load(e, kn_element(e, from[i], kn_mul(e, c.index, step), 4), stride,
                               RT_float32, w, mask);
    kn_transpose(e, rows, w);
    LLVMValueRef line = kn_address(e, to, kn_mul(e, c.index, kn_i64(e, x->row)));
    for (int i = 0; i < w; i++) {
        if (a->scale != 1)
            rows[i] = LLVMBuildFMul(e->b, rows[i], kn_float_constant(e, RT_float32, w, a->scale), "");
        vector_store(e, rows[i], at(e, line, i * x->row));
    }
    kn_loop_end(e, &c, NULL);
    kn_loop_end(e, &v, NULL);
}

static void call_product(kn_emitter *e, kn_attention_pieces *x, LLVMValueRef a, LLVMValueRef row, LLVMValueRef step,
                         LLVMValueRef last, LLVMValueRef length, LLVMValueRef b, LLVMValueRef c,
                         LLVMValueRef factors, LLVMValueRef top) {
    LLVMValueRef four = kn_i64(e, 4), none = LLVMConstNull(e->unit->pointer);
    LLVMValueRef args[9] = {a, kn_mul(e, row, four), kn_mul(e, step, four), last, length, b, c,
                            factors ? factors : none, top ? top : none};
    LLVMBuildCall2(e->b, x->product.type, x->product.function, args, 9, "");
}

/* Whether the scores are the products themselves. */
static bool is_plain(const kn_kernel *k) {
    return k->nodes[k->attention.score].code == KN_TILE;
}

static void emit_score_tiles(kn_emitter *e, kn_attention_pieces *x, LLVMValueRef begin, LLVMValueRef count) {
    kn_attention *a = &e->k->attention;
    kn_loop tile;
    LLVMValueRef row = kn_size(e, a->key_row);
    kn_loop_begin(e, &tile, kn_i64(e, 0), count, x->plan.rows, NULL, 0);
    LLVMValueRef from = kn_element(e, x->key, kn_mul(e, kn_add(e, begin, tile.index), row), 4);
    call_product(e, x, from, row, kn_size(e, a->key_step),
                 kn_sub(e, kn_sub(e, count, tile.index), kn_i64(e, 1)), kn_i64(e, a->depth), x->packed,
                 kn_address(e, x->scores, kn_mul(e, tile.index, kn_i64(e, x->row))), NULL,
                 is_plain(e->k) ? x->top : NULL);
    kn_loop_end(e, &tile, NULL);
}

static void emit_value_tiles(kn_emitter *e, kn_attention_pieces *x, LLVMValueRef begin, LLVMValueRef count) {
    kn_attention *a = &e->k->attention;
    kn_loop tile;
    LLVMValueRef step = kn_size(e, a->value_step), row = kn_size(e, a->value_row);
    LLVMValueRef lines = kn_element(e, x->value, kn_mul(e, begin, row), 4);
    LLVMValueRef is_first = LLVMBuildICmp(e->b, LLVMIntEQ, begin, kn_i64(e, 0), "");
    LLVMValueRef factors = LLVMBuildSelect(e->b, is_first, LLVMConstNull(e->unit->pointer), x->factors, "");
    kn_loop_begin(e, &tile, kn_i64(e, 0), kn_i64(e, a->width), x->plan.rows, NULL, 0);
    call_product(e, x, kn_element(e, lines, kn_mul(e, tile.index, step), 4), step, row,
                 kn_sub(e, kn_i64(e, a->width - 1), tile.index), count, x->scores,
                 kn_address(e, x->out, kn_mul(e, tile.index, kn_i64(e, x->row))), factors, NULL);
    kn_loop_end(e, &tile, NULL);
}

/* Whether the graph reads memory that differs from query to query: lanes past the end must not. */
static bool reads_by_query(const kn_kernel *k) {
    for (int i = 0; i < k->node_count; i++)
        if (k->nodes[i].is_needed && k->nodes[i].code == KN_LOAD &&
            k->nodes[i].access.strides[k->dim_count - 1] != 0)
            return true;
    return false;
}

/* One row of scores: the graph, and the greatest so far. */
static void emit_score_row(kn_emitter *e, kn_attention_pieces *x, LLVMValueRef begin, LLVMValueRef key,
                           LLVMValueRef *top) {
    kn_kernel *k = e->k;
    kn_attention *a = &k->attention;
    size_t bytes = (size_t)k->node_count * sizeof *e->memo;
    LLVMValueRef *saved = ts_arena_alloc(e->unit->arena, bytes + 1);
    LLVMValueRef *outside = ts_arena_alloc(e->unit->arena, bytes + 1);
    LLVMValueRef line = kn_address(e, x->scores, kn_mul(e, key, kn_i64(e, x->row)));
    memcpy(outside, e->memo, bytes);
    e->index[a->batch_count] = kn_add(e, begin, key);
    for (int i = 0; i < k->node_count; i++)
        if (k->nodes[i].is_needed && kn_is_uniform(e, &k->nodes[i]))
            kn_value(e, i);
    memcpy(saved, e->memo, bytes);
    for (int v = 0; v < x->vectors; v++) {
        LLVMValueRef offset = kn_i64(e, v * e->lanes);
        e->index[k->dim_count - 1] = kn_add(e, x->first, offset);
        e->tile = at(e, line, (int64_t)v * e->lanes * 4);
        if (reads_by_query(k))
            e->mask = kn_lane_mask(e, kn_max(e, kn_sub(e, x->left, offset), kn_i64(e, 0)), e->lanes);
        LLVMValueRef s = kn_vector_value(e, a->score);
        vector_store(e, s, e->tile);
        top[v] = greater(e, s, top[v]);
        memcpy(e->memo, saved, bytes);
    }
    e->mask = NULL;
    memcpy(e->memo, outside, bytes);
}

/* Each row of a block in turn, `copies` rows at a time while there are so many. */
typedef void row_body(kn_emitter *e, kn_attention_pieces *x, LLVMValueRef begin, LLVMValueRef row,
                      LLVMValueRef *carried);

static void emit_rows(kn_emitter *e, kn_attention_pieces *x, LLVMValueRef begin, LLVMValueRef count, int copies,
                      row_body *body, LLVMValueRef *carried) {
    kn_loop loop;
    LLVMValueRef start = kn_i64(e, 0);
    for (int step = copies; step >= 1; step = step > 1 ? 1 : 0) {
        kn_loop_begin(e, &loop, start, kn_sub(e, count, kn_i64(e, step - 1)), step, carried, x->vectors);
        memcpy(carried, loop.phis, (size_t)x->vectors * sizeof *carried);
        for (int u = 0; u < step; u++)
            body(e, x, begin, kn_add(e, loop.index, kn_i64(e, u)), carried);
        kn_loop_end(e, &loop, carried);
        memcpy(carried, loop.exit_phis, (size_t)x->vectors * sizeof *carried);
        start = LLVMBuildAnd(e->b, count, kn_i64(e, -(int64_t)step), "");
    }
}

static void emit_exp_row(kn_emitter *e, kn_attention_pieces *x, LLVMValueRef begin, LLVMValueRef key,
                         LLVMValueRef *sum) {
    (void)begin;
    LLVMValueRef line = kn_address(e, x->scores, kn_mul(e, key, kn_i64(e, x->row)));
    for (int v = 0; v < x->vectors; v++) {
        LLVMValueRef to = at(e, line, (int64_t)v * e->lanes * 4);
        LLVMValueRef p = LLVMBuildFSub(e->b, vector_load(e, to), x->shift[v], "");
        p = kn_emit_softmax_exp(e, e->lanes, p);
        vector_store(e, p, to);
        sum[v] = LLVMBuildFAdd(e->b, sum[v], p, "");
    }
}

void kn_attention_take_top(kn_emitter *e, const kn_attention_pieces *x, LLVMValueRef *top) {
    for (int v = 0; v < x->vectors; v++)
        top[v] = vector_load(e, at(e, x->top, (int64_t)v * e->lanes * 4));
}

void kn_attention_weigh(kn_emitter *e, kn_attention_pieces *x, LLVMValueRef begin, LLVMValueRef count,
                        LLVMValueRef const *old, bool has_top) {
    int w = e->lanes;
    LLVMValueRef top[4], sum[4], lowest = kn_float_constant(e, RT_float32, w, -HUGE_VAL);
    memcpy(top, old, (size_t)x->vectors * sizeof *top);
    if (!has_top)
        emit_rows(e, x, begin, count, 4, emit_score_row, top);
    for (int v = 0; v < x->vectors; v++) {
        LLVMValueRef place = at(e, x->top, (int64_t)v * w * 4);
        if (has_top)
            top[v] = vector_load(e, place);
        else
            vector_store(e, top[v], place);
        /* No key so far: exp(-inf - 0) is the 0 that is meant, -inf - -inf is not. */
        LLVMValueRef none = LLVMBuildFCmp(e->b, LLVMRealOEQ, top[v], lowest, "");
        top[v] = LLVMBuildSelect(e->b, none, LLVMConstNull(LLVMTypeOf(lowest)), top[v], "");
        LLVMValueRef f = kn_emit_softmax_exp(e, w, LLVMBuildFSub(e->b, old[v], top[v], ""));
        vector_store(e, f, at(e, x->factors, (int64_t)v * w * 4));
        x->shift[v] = top[v];
        sum[v] = LLVMConstNull(LLVMTypeOf(lowest));
    }
    emit_rows(e, x, begin, count, 4, emit_exp_row, sum);
    for (int v = 0; v < x->vectors; v++) {
        LLVMValueRef place = at(e, x->sum, (int64_t)v * w * 4);
        LLVMValueRef f = vector_load(e, at(e, x->factors, (int64_t)v * w * 4));
        vector_store(e, kn_fma(e, vector_load(e, place), f, sum[v]), place);
    }
}

static void emit_key_block(kn_emitter *e, kn_attention_pieces *x, LLVMValueRef begin, LLVMValueRef count) {
    LLVMValueRef old[4];
    kn_attention_take_top(e, x, old);
    emit_score_tiles(e, x, begin, count);
    kn_attention_weigh(e, x, begin, count, old, is_plain(e->k));
    emit_value_tiles(e, x, begin, count);
}

void kn_attention_result(kn_emitter *e, kn_attention_pieces *x) {
    kn_attention *a = &e->k->attention;
    int w = e->lanes;
    LLVMValueRef step = kn_size(e, a->result_step), width = kn_i64(e, a->width);
    kn_loop v, c, q;
    kn_loop_begin(e, &v, kn_i64(e, 0), kn_i64(e, x->vectors), 1, NULL, 0);
    LLVMValueRef first = kn_mul(e, v.index, kn_i64(e, w)), rows[64];
    LLVMValueRef sum = vector_load(e, kn_element(e, x->sum, first, 4));
    LLVMValueRef one = kn_float_constant(e, RT_float32, w, 1.0), zero = LLVMConstNull(LLVMTypeOf(one));
    LLVMValueRef inverse = LLVMBuildFDiv(e->b, one, sum, "");
    if (a->zeroes_empty) {
        LLVMValueRef top = vector_load(e, kn_element(e, x->top, first, 4));
        LLVMValueRef none = LLVMBuildFCmp(e->b, LLVMRealOEQ, top,
                                          kn_float_constant(e, RT_float32, w, -HUGE_VAL), "");
        /* A NaN among the scores passed the maximum by: its sum is NaN and stays. */
        none = LLVMBuildAnd(e->b, none, LLVMBuildFCmp(e->b, LLVMRealOEQ, sum, zero, ""), "");
        inverse = LLVMBuildSelect(e->b, none, zero, inverse, "");
    }
    rt_dim keys = e->k->dims[a->batch_count].size;
    if (!rt_dim_is_constant(keys)) { /* a sum of no terms is zero */
        LLVMValueRef empty = LLVMBuildICmp(e->b, LLVMIntEQ, kn_size(e, keys), kn_i64(e, 0), "");
        inverse = LLVMBuildSelect(e->b, empty, zero, inverse, "");
    }
    LLVMValueRef valid = kn_min(e, kn_sub(e, x->left, first), kn_i64(e, w));
    kn_loop_begin(e, &c, kn_i64(e, 0), width, w, NULL, 0);
    LLVMValueRef from = kn_address(e, kn_element(e, x->out, first, 4),
                                   kn_mul(e, c.index, kn_i64(e, x->row)));
    for (int i = 0; i < w; i++)
        rows[i] = LLVMBuildFMul(e->b, vector_load(e, at(e, from, i * x->row)), inverse, "");
    kn_transpose(e, rows, w);
    LLVMValueRef to = kn_element(e, x->result, kn_mul(e, c.index, step), 4);
    LLVMValueRef row = kn_size(e, a->result_row), line = kn_add(e, x->first, first);
    LLVMBasicBlockRef whole = NULL, some = NULL, stored = NULL;
    if (a->width % w == 0 && a->result_step == 1) { /* a square that lies in the result as a whole */
        whole = LLVMAppendBasicBlockInContext(e->unit->context, e->function, "");
        some = LLVMAppendBasicBlockInContext(e->unit->context, e->function, "");
        stored = LLVMAppendBasicBlockInContext(e->unit->context, e->function, "");
        LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntEQ, valid, kn_i64(e, w), ""), whole, some);
        LLVMPositionBuilderAtEnd(e->b, whole);
        for (int i = 0; i < w; i++)
            kn_emit_store(e, rows[i], kn_element(e, to, kn_mul(e, kn_add(e, line, kn_i64(e, i)), row), 4),
                          NULL, RT_float32, w, NULL);
        LLVMBuildBr(e->b, stored);
        LLVMPositionBuilderAtEnd(e->b, some);
    }
    for (int i = 0; i < w; i++)
        vector_store(e, rows[i], at(e, x->square, (int64_t)i * w * 4));
    LLVMValueRef mask = a->width % w ? kn_lane_mask(e, kn_sub(e, width, c.index), w) : NULL;
    kn_loop_begin(e, &q, kn_i64(e, 0), valid, 1, NULL, 0);
    kn_emit_store(e, vector_load(e, kn_element(e, x->square, q.index, w * 4)),
                  kn_element(e, to, kn_mul(e, kn_add(e, line, q.index), row), 4),
                  a->result_step == 1 ? NULL : step, RT_float32, w, mask);
    kn_loop_end(e, &q, NULL);
    if (stored) {
        LLVMBuildBr(e->b, stored);
        LLVMPositionBuilderAtEnd(e->b, stored);
    }
    kn_loop_end(e, &c, NULL);
    kn_loop_end(e, &v, NULL);
}

void kn_attention_begin(kn_emitter *e, const kn_attention_pieces *x) {
    LLVMValueRef zero = LLVMConstNull(LLVMVectorType(e->unit->f32, (unsigned)e->lanes));
    for (int v = 0; v < x->vectors; v++) {
        vector_store(e, kn_float_constant(e, RT_float32, e->lanes, -HUGE_VAL), at(e, x->top, (int64_t)v * e->lanes * 4));
        vector_store(e, zero, at(e, x->sum, (int64_t)v * e->lanes * 4));
    }
}

LLVMValueRef kn_attention_end(kn_emitter *e, const kn_attention_pieces *x) {
    const kn_kernel *k = e->k;
    if (k->attention.ends < 0)
        return kn_size(e, k->dims[k->attention.batch_count].size);
    kn_loop loop;
    LLVMValueRef from = kn_element(e, e->buffers[k->attention.ends], x->first, 8), end = kn_i64(e, 0);
    kn_loop_begin(e, &loop, kn_i64(e, 0), x->left, 1, &end, 1);
    LLVMValueRef seen = LLVMBuildLoad2(e->b, e->unit->i64, kn_element(e, from, loop.index, 8), "");
    end = kn_max(e, loop.phis[0], seen);
    kn_loop_end(e, &loop, &end);
    return loop.exit_phis[0];
}

void kn_attention_fill(kn_emitter *e, const kn_attention_pieces *x, LLVMValueRef rows) {
    kn_loop loop;
    LLVMValueRef zero = LLVMConstNull(LLVMVectorType(e->unit->f32, (unsigned)e->lanes));
    kn_loop_begin(e, &loop, kn_i64(e, 0), kn_mul(e, rows, kn_i64(e, x->vectors)), 1, NULL, 0);
    vector_store(e, zero, kn_element(e, x->out, loop.index, e->lanes * 4));
    kn_loop_end(e, &loop, NULL);
}

static void emit_queries(kn_emitter *e, kn_attention_pieces *x, int vectors) {
    kn_kernel *k = e->k;
    const kn_attention_plan *p = &x->plan;
    x->vectors = vectors;
    x->row = (int64_t)vectors * e->lanes * 4;
    x->product = get_product(e->unit, p->rows, vectors);
    kn_attention_pack(e, x);
    kn_attention_begin(e, x);
    LLVMValueRef end = kn_attention_end(e, x);
    /* The first block of keys writes the sums; without any they are zero. */
    int64_t width = (k->attention.width + p->rows - 1) / p->rows * p->rows;
    LLVMValueRef is_empty = LLVMBuildICmp(e->b, LLVMIntSLE, end, kn_i64(e, 0), "");
    kn_attention_fill(e, x, LLVMBuildSelect(e->b, is_empty, kn_i64(e, width), kn_i64(e, 0), ""));
    kn_loop loop;
    kn_loop_begin(e, &loop, kn_i64(e, 0), end, p->block, NULL, 0);
    emit_key_block(e, x, loop.index, kn_min(e, kn_sub(e, end, loop.index), kn_i64(e, p->block)));
    kn_loop_end(e, &loop, NULL);
    kn_attention_result(e, x);
}

/* The item's queries; a last block of fewer takes as many vectors as it needs. */
static void emit_item(kn_emitter *e, kn_attention_pieces *x) {
    const kn_attention_plan *p = &x->plan;
    LLVMContextRef c = e->unit->context;
    rt_dim queries = e->k->dims[e->k->dim_count - 1].size;
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(c, e->function, "");
    bool is_known = rt_dim_is_constant(queries);
    int64_t rest = is_known ? queries % p->queries : 0;
    for (int vectors = 1; vectors < p->vectors; vectors++) {
        if (is_known && (rest == 0 || (rest + e->lanes - 1) / e->lanes != vectors))
            continue;
        LLVMBasicBlockRef here = LLVMAppendBasicBlockInContext(c, e->function, "");
        LLVMBasicBlockRef more = LLVMAppendBasicBlockInContext(c, e->function, "");
        LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLE, x->left, kn_i64(e, vectors * e->lanes), ""), here, more);
        LLVMPositionBuilderAtEnd(e->b, here);
        emit_queries(e, x, vectors);
        LLVMBuildBr(e->b, done);
        LLVMPositionBuilderAtEnd(e->b, more);
    }
    emit_queries(e, x, p->vectors);
    LLVMBuildBr(e->b, done);
    LLVMPositionBuilderAtEnd(e->b, done);
}

/* An item of kn_emit_amx_attention, whose queries are more, by multiply-adds of float32. */
static void emit_plain_item(kn_emitter *e, const kn_attention_pieces *item) {
    kn_attention_pieces x = *item;
    kn_loop part;
    kn_loop_begin(e, &part, kn_i64(e, 0), item->left, x.plan.queries, NULL, 0);
    x.first = kn_add(e, item->first, part.index);
    x.left = kn_min(e, kn_sub(e, item->left, part.index), kn_i64(e, x.plan.queries));
    emit_queries(e, &x, x.plan.vectors);
    kn_loop_end(e, &part, NULL);
}

void kn_emit_attention(kn_emitter *e) {
    kn_kernel *k = e->k;
    kn_attention *a = &k->attention;
    kn_attention_pieces x;
    memset(&x, 0, sizeof x);
    make_plan(k, e->unit->target, &x.plan);
    const kn_attention_plan *p = &x.plan;
    int64_t row = p->queries * 4;
    x.packed = at(e, e->scratch, p->packed);
    x.scores = at(e, e->scratch, p->scores);
    x.out = at(e, e->scratch, p->out);
    x.top = at(e, e->scratch, p->state);
    x.sum = at(e, e->scratch, p->state + row);
    x.factors = at(e, e->scratch, p->state + 2 * row);
    x.square = at(e, e->scratch, p->square);
    rt_dim queries = k->dims[k->dim_count - 1].size;
    if (p->amx.pairs)
        kn_amx_begin(e, 16);
    kn_loop items;
    kn_loop_begin(e, &items, e->begin, e->end, 1, NULL, 0);
    LLVMValueRef blocks = kn_size(e, p->blocks), batch = LLVMBuildUDiv(e->b, items.index, blocks, "");
    LLVMValueRef block = kn_size(e, p->item_queries);
    x.first = kn_mul(e, kn_sub(e, items.index, kn_mul(e, batch, blocks)), block);
    x.left = kn_min(e, kn_sub(e, kn_size(e, queries), x.first), block);
    for (int d = a->batch_count - 1; d >= 0; d--) {
        LLVMValueRef size = kn_size(e, k->dims[d].size);
        LLVMValueRef quotient = d == 0 ? kn_i64(e, 0) : LLVMBuildUDiv(e->b, batch, size, "");
        e->index[d] = d == 0 ? batch : kn_sub(e, batch, kn_mul(e, quotient, size));
        batch = quotient;
    }
    x.query = batch_address(e, &a->query);
    x.key = batch_address(e, &a->key);
    x.value = batch_address(e, &a->value);
    x.result = batch_address(e, &a->result);
    kn_prepare_bases(e, (1u << a->batch_count) - 1);
    if (p->amx.pairs) { /* where nothing was infinite or NaN that is all */
        kn_loop again;
        LLVMValueRef failed = kn_emit_amx_attention(e, &x);
        kn_when_begin(e, &again, failed, NULL, 0);
        emit_plain_item(e, &x);
        kn_loop_end(e, &again, NULL);
    } else {
        emit_item(e, &x);
    }
    kn_loop_end(e, &items, NULL);
    if (p->amx.pairs)
        kn_amx_end(e);
}

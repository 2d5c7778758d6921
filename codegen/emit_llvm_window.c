/* codegen/emit_llvm_window.c - depthwise convolution and pooling with a tile of outputs in registers.
 *
 *   item = (images, block of output lines, chunk of channels)
 *     for lines of the block, for tiles of neighbouring outputs of the line,
 *     for vectors of channels:
 *       for lines of the window inside of the image
 *         each input pixel under the tile is loaded once and goes into every output that it touches
 *       the epilogue, output by output
 *
 * Where a line's length is constant it is known here which inputs of a tile lie outside of the image:
 * tiles at the ends leave those out, tiles between them share one loop. Of lines whose length is a
 * parameter, outputs whose window lies inside come in tiles of 6, 2 and 1, those at the ends one by
 * one with a loop over the part of the window that exists. Every output is the sum of the same terms
 * in the same order wherever it lies in a tile. */
#include "codegen/emit_llvm_kernel.h"

#include <string.h>

enum { MAX_TILE = 16, MAX_KERNEL = 16, MAX_END_TILES = 6 };

typedef struct window_plan {
    int reduce;           /* the reduction's node */
    int input, weight;    /* loads; weight -1: pooling */
    int oh, ow, kh, kw, c; /* dims */
    int64_t pixel;        /* elements from an input pixel of a line to the next */
    int tile;             /* outputs of a tile */
    int64_t chunk, lines; /* channels and output lines of an item */
    int64_t chunks;
    rt_dim blocks;
    bool is_symbolic; /* lines of unknown length or number */
} window_plan;

static bool has_constants(const kn_kernel *k, window_plan *p) {
    const kn_access *a = &k->nodes[p->input].access;
    rt_dim known[] = {k->dims[p->c].size, a->strides[p->ow], a->strides[p->kw]};
    rt_dim lines[] = {k->dims[p->oh].size, k->dims[p->ow].size, k->dims[p->kw].window.input};
    for (size_t i = 0; i < 3; i++) {
        if (!rt_dim_is_constant(known[i]) || known[i] < 0 || lines[i] == RT_DIM_UNKNOWN)
            return false;
        if (!rt_dim_is_constant(lines[i]))
            p->is_symbolic = true;
        else if (lines[i] <= 0)
            return false;
    }
    return k->dims[p->c].size > 0;
}

/* One reduction over a window of two dims, of a load or of a load times a weight for each place of
 * the window and channel. */
static bool find_parts(const kn_kernel *k, window_plan *p) {
    memset(p, 0, sizeof *p);
    p->reduce = p->kh = p->kw = -1;
    p->c = k->dim_count - 1;
    if (k->owner || k->next || k->reduces_vector || k->stage_count != 2)
        return false;
    for (int d = 0; d < k->dim_count; d++) {
        if (k->dims[d].role != KN_SERIAL)
            continue;
        if (!k->dims[d].window.is_on || !rt_dim_is_constant(k->dims[d].size) || p->kw >= 0)
            return false;
        *(p->kh < 0 ? &p->kh : &p->kw) = d;
    }
    if (p->kw < 0 || k->dims[p->kw].size > MAX_KERNEL || k->dims[p->kw].size < 1)
        return false;
    p->oh = k->dims[p->kh].window.outer;
    p->ow = k->dims[p->kw].window.outer;
    for (int i = 0; i < k->node_count; i++) {
        if (!k->nodes[i].is_needed || k->nodes[i].code != KN_REDUCE)
            continue;
        if (p->reduce >= 0)
            return false;
        p->reduce = i;
    }
    if (p->reduce < 0 || p->oh == p->ow)
        return false;
    const kn_node *r = &k->nodes[p->reduce], *from = &k->nodes[r->args[0]];
    p->weight = -1;
    p->input = r->args[0];
    if (r->reduction == KN_RED_SUM && from->code == KN_mul && from->type == RT_float32) {
        p->input = from->args[0];
        p->weight = from->args[1];
        const kn_node *w = &k->nodes[p->weight];
        uint32_t allowed = 1u << p->kh | 1u << p->kw | 1u << p->c;
        if (w->code != KN_LOAD || w->type != RT_float32 || (w->dims & ~allowed))
            return false;
    } else if (r->reduction != KN_RED_SUM && r->reduction != KN_RED_MAX) {
        return false;
    }
    const kn_node *x = &k->nodes[p->input];
    if (x->code != KN_LOAD || x->type != RT_float32 || !has_constants(k, p))
        return false;
    for (int i = 0; i < k->store_count; i++) /* stores are of outputs, not of the window's places */
        if (k->stores[i].access.strides[p->kh] != 0 || k->stores[i].access.strides[p->kw] != 0 ||
            (k->nodes[k->stores[i].node].dims & (1u << p->kh | 1u << p->kw)))
            return false;
    const kn_window *w = &k->dims[p->kw].window;
    p->pixel = k->dims[p->kw].size > 1 || w->dilation > 0 ? x->access.strides[p->kw] / w->dilation : 0;
    return x->access.strides[p->kw] == p->pixel * w->dilation &&
           x->access.strides[p->ow] == p->pixel * w->stride;
}

/* Whether no input of outputs [first, first + count) lies outside of the line. */
static bool is_interior(const kn_kernel *k, const window_plan *p, int64_t first, int64_t count) {
    const kn_window *w = &k->dims[p->kw].window;
    int64_t low = first * w->stride - w->padding;
    int64_t high = (first + count - 1) * w->stride - w->padding +
                   (k->dims[p->kw].size - 1) * w->dilation;
    return low >= 0 && high < w->input;
}

/* Tiles [begin, end) are whole and interior; the others are printed one by one. */
static int64_t interior_tiles(const kn_kernel *k, const window_plan *p, int64_t *begin, int64_t *end) {
    int64_t out = k->dims[p->ow].size, tiles = (out + p->tile - 1) / p->tile;
    *begin = 0;
    while (*begin < tiles && !is_interior(k, p, *begin * p->tile, p->tile))
        ++*begin;
    *end = tiles;
    while (*end > *begin && (*end * p->tile > out || !is_interior(k, p, (*end - 1) * p->tile, p->tile)))
        --*end;
    return tiles;
}

static bool make_plan(const kn_kernel *k, const cg_target_info *target, window_plan *p) {
    if (!find_parts(k, p))
        return false;
    int64_t kernel = k->dims[p->kw].size, begin, end;
    int64_t out = p->is_symbolic ? 6 : k->dims[p->ow].size;
    int64_t lanes = target->vector_bytes / 4, weights = p->weight >= 0 ? kernel : 0;
    /* Sums, a line of weights, an input; large kernels read their weights as operands. */
    int64_t most = target->vector_registers - 2 - weights;
    if (most < target->vector_registers / 2)
        most = target->vector_registers / 2;
    if (most > MAX_TILE)
        most = MAX_TILE;
    int64_t tiles = (out + most - 1) / most;
    p->tile = (int)((out + tiles - 1) / tiles);
    tiles = p->is_symbolic ? 0 : interior_tiles(k, p, &begin, &end);
    if (tiles > 0 && tiles - (end - begin) > MAX_END_TILES)
        return false;
    /* Weights and lines of a chunk stay in the first-level cache, pixels a few cache lines long. */
    int64_t channels = k->dims[p->c].size, rows = k->dims[p->kh].size;
    int64_t width = p->is_symbolic ? 64 : k->dims[p->kw].window.input, wanted = 8192 / (rows * (width + weights) + 1);
    wanted = wanted < 64 ? 64 : wanted;
    p->chunks = (channels + wanted - 1) / wanted;
    p->chunk = ((channels + p->chunks - 1) / p->chunks + lanes - 1) / lanes * lanes;
    p->chunks = (channels + p->chunk - 1) / p->chunk;
    /* At least sixteen items, for threads. */
    int64_t lines = p->is_symbolic ? 28 : k->dims[p->oh].size, parts = (16 + p->chunks - 1) / p->chunks;
    p->lines = (lines + parts - 1) / parts;
    p->blocks = kn_dim_ceil_div(k, k->dims[p->oh].size, p->lines);
    return p->blocks != RT_DIM_UNKNOWN;
}

bool kn_plan_window(kn_kernel *k, const cg_target_info *target) {
    window_plan p;
    if (!make_plan(k, target, &p))
        return false;
    rt_dim items = kn_dim_mul(k, p.blocks, p.chunks);
    for (int d = 0; d < k->dim_count; d++)
        if (k->dims[d].role == KN_OUTER && d != p.oh && d != p.ow)
            items = kn_dim_mul(k, items, k->dims[d].size);
    if (items == RT_DIM_UNKNOWN)
        return false;
    if (!rt_dim_is_constant(p.blocks))
        kn_dim_param(k, p.blocks);
    double length = p.is_symbolic ? 64 : (double)k->dims[p.ow].size;
    double places = (double)(k->dims[p.kh].size * k->dims[p.kw].size * p.lines) * length;
    double terms = places * (double)p.chunk;
    k->work_items = k->part_items = items;
    k->grain = terms > 4e5 ? 1 : (int64_t)(4e5 / (terms + 1)) + 1;
    k->flops = rt_dim_is_constant(items)
                   ? (p.weight >= 0 ? 2 : 1) * places * (double)(k->dims[p.c].size * items) /
                         (double)p.chunks
                   : 0;
    return true;
}

/* ---- a tile ---- */

typedef struct window_tile {
    const window_plan *p;
    int64_t first; /* output of the line; of an interior tile any one */
    int count;
    bool is_inside, is_end; /* of symbolic lines: an interior tile; one output at an end */
} window_tile;

/* The tap of output t that reads input pixel `at` (from the tile's first tap on), or -1. */
static int64_t tap_at(const kn_kernel *k, const window_plan *p, int64_t t, int64_t at) {
    const kn_window *w = &k->dims[p->kw].window;
    int64_t from = at - t * w->stride;
    if (from < 0 || from % w->dilation || from / w->dilation >= k->dims[p->kw].size)
        return -1;
    return from / w->dilation;
}

static LLVMValueRef element(kn_emitter *e, int node, LLVMValueRef offset) {
    const kn_access *a = &e->k->nodes[node].access;
    rt_dim stride = a->strides[e->k->dim_count - 1];
    LLVMValueRef channel = kn_mul(e, e->index[e->k->dim_count - 1], kn_size(e, stride));
    LLVMValueRef at = kn_element(e, e->bases[node], channel, (int64_t)rt_dtype_size(a->element));
    at = kn_element(e, at, offset, (int64_t)rt_dtype_size(a->element));
    bool is_uniform = !(e->k->nodes[node].dims & (1u << (e->k->dim_count - 1)));
    LLVMValueRef v = kn_emit_load(e, at, is_uniform || stride == 1 ? NULL : kn_size(e, stride),
                                  a->element, is_uniform ? 1 : e->width, is_uniform ? NULL : e->mask);
    return is_uniform ? kn_splat(e, v, e->width) : v;
}

/* One line of the window: e->index[kh] is set. */
static void emit_line(kn_emitter *e, const window_tile *t, LLVMValueRef *acc) {
    kn_kernel *k = e->k;
    const window_plan *p = t->p;
    const kn_window *w = &k->dims[p->kw].window;
    const kn_node *reduce = &k->nodes[p->reduce];
    int64_t kernel = k->dims[p->kw].size;
    LLVMValueRef weights[MAX_KERNEL] = {NULL};
    for (int64_t i = 0; i < kernel && p->weight >= 0; i++) {
        const kn_access *a = &k->nodes[p->weight].access;
        LLVMValueRef offset = kn_mul(e, e->index[p->kh], kn_size(e, a->strides[p->kh]));
        offset = kn_add(e, offset, kn_mul(e, kn_i64(e, i), kn_size(e, a->strides[p->kw])));
        weights[i] = element(e, p->weight, offset);
    }
    const kn_access *a = &k->nodes[p->input].access;
    LLVMValueRef line = kn_mul(e, e->index[p->kh], kn_size(e, a->strides[p->kh]));
    bool inside = t->is_inside || is_interior(k, p, t->first, t->count);
    int64_t origin = t->first * w->stride - w->padding;
    for (int64_t at = 0; at <= (t->count - 1) * w->stride + (kernel - 1) * w->dilation; at++) {
        LLVMValueRef x = NULL;
        if (!inside && (origin + at < 0 || origin + at >= w->input))
            continue;
        for (int i = 0; i < t->count; i++) {
            int64_t tap = tap_at(k, p, i, at);
            if (tap < 0)
                continue;
            if (!x) {
                LLVMValueRef pixel = kn_mul(e, kn_i64(e, at), kn_i64(e, p->pixel));
                x = element(e, p->input, kn_add(e, line, pixel));
            }
            acc[i] = p->weight >= 0 ? kn_fma(e, x, weights[tap], acc[i])
                                    : kn_combine(e, reduce, RT_float32, x, acc[i], e->width);
        }
    }
}

/* The same for one output at an end of a line, e->index[ow]: a loop over the taps that exist. */
static void emit_end_line(kn_emitter *e, const window_tile *t, LLVMValueRef *acc) {
    kn_kernel *k = e->k;
    const window_plan *p = t->p;
    const kn_access *a = &k->nodes[p->input].access;
    LLVMValueRef begin, end;
    kn_window_range(e, &k->dims[p->kw], &begin, &end);
    kn_loop taps;
    kn_loop_begin(e, &taps, begin, end, 1, acc, 1);
    acc[0] = taps.phis[0];
    LLVMValueRef offset = kn_add(e, kn_mul(e, e->index[p->kh], kn_size(e, a->strides[p->kh])),
                                 kn_mul(e, taps.index, kn_size(e, a->strides[p->kw])));
    LLVMValueRef x = element(e, p->input, offset);
    if (p->weight >= 0) {
        const kn_access *w = &k->nodes[p->weight].access;
        offset = kn_add(e, kn_mul(e, e->index[p->kh], kn_size(e, w->strides[p->kh])),
                        kn_mul(e, taps.index, kn_size(e, w->strides[p->kw])));
        acc[0] = kn_fma(e, x, element(e, p->weight, offset), acc[0]);
    } else {
        acc[0] = kn_combine(e, &k->nodes[p->reduce], RT_float32, x, acc[0], e->width);
    }
    kn_loop_end(e, &taps, acc);
    acc[0] = taps.exit_phis[0];
}

/* Vectors of channels at e->index[c]; bases are those of the tile's first output. */
static void emit_vector(kn_emitter *e, const window_tile *t, LLVMValueRef first) {
    kn_kernel *k = e->k;
    const window_plan *p = t->p;
    size_t nodes = (size_t)k->node_count * sizeof *e->memo;
    LLVMValueRef acc[MAX_TILE], begin, end;
    for (int i = 0; i < t->count; i++)
        acc[i] = kn_neutral(e, &k->nodes[p->reduce], RT_float32, e->width);
    kn_window_range(e, &k->dims[p->kh], &begin, &end);
    kn_loop rows;
    kn_loop_begin(e, &rows, begin, end, 1, acc, t->count);
    memcpy(acc, rows.phis, (size_t)t->count * sizeof *acc);
    e->index[p->kh] = rows.index;
    if (t->is_end)
        emit_end_line(e, t, acc);
    else
        emit_line(e, t, acc);
    kn_loop_end(e, &rows, acc);
    LLVMValueRef *before = ts_arena_alloc(e->unit->arena, nodes + 1);
    LLVMValueRef *shared = ts_arena_alloc(e->unit->arena, nodes + 1);
    LLVMValueRef *bases = ts_arena_alloc(e->unit->arena, nodes + 1);
    size_t stores = (size_t)k->store_count * sizeof *e->store_bases;
    LLVMValueRef *store_bases = ts_arena_alloc(e->unit->arena, stores + 1);
    memcpy(before, e->memo, nodes);
    memcpy(bases, e->bases, nodes);
    memcpy(store_bases, e->store_bases, stores);
    for (int i = 0; i < k->node_count; i++) /* a bias is loaded once */
        if (k->nodes[i].is_needed && !(k->nodes[i].dims & ~(1u << p->c)) && k->nodes[i].stage == 0)
            kn_value(e, i);
    memcpy(shared, e->memo, nodes);
    for (int i = 0; i < t->count; i++) {
        e->index[p->ow] = kn_add(e, first, kn_i64(e, i));
        kn_step_bases(e, bases, store_bases, p->ow, i);
        e->count = NULL;
        for (int n = 0; n < k->node_count; n++)
            if (k->nodes[n].is_needed && k->nodes[n].code == KN_COUNT && !e->count)
                kn_emit_count(e);
        e->memo[p->reduce] = rows.exit_phis[i];
        for (int s = 0; s < k->store_count; s++)
            kn_emit_store_node(e, s);
        memcpy(e->memo, shared, nodes);
    }
    memcpy(e->memo, before, nodes);
    memcpy(e->bases, bases, nodes);
    memcpy(e->store_bases, store_bases, stores);
    e->index[p->ow] = first;
}

static void emit_tile(kn_emitter *e, const window_tile *t, LLVMValueRef first, LLVMValueRef begin,
                      LLVMValueRef end) {
    kn_kernel *k = e->k;
    int w = e->width;
    uint32_t outer = 0;
    for (int d = 0; d < k->dim_count; d++)
        if (k->dims[d].role == KN_OUTER)
            outer |= 1u << d;
    e->index[t->p->ow] = first;
    e->index[t->p->kh] = e->index[t->p->kw] = kn_i64(e, 0);
    kn_prepare_bases(e, outer);
    kn_loop loop;
    kn_loop_begin(e, &loop, begin, kn_sub(e, end, kn_i64(e, w - 1)), w, NULL, 0);
    e->index[t->p->c] = loop.index;
    emit_vector(e, t, first);
    kn_loop_end(e, &loop, NULL);
    if (k->dims[t->p->c].size % w == 0)
        return;
    LLVMValueRef start = LLVMBuildAnd(e->b, end, kn_i64(e, -(int64_t)w), "");
    kn_loop_begin(e, &loop, start, end, w, NULL, 0);
    e->mask = kn_lane_mask(e, kn_sub(e, end, loop.index), w);
    e->index[t->p->c] = loop.index;
    emit_vector(e, t, first);
    e->mask = NULL;
    kn_loop_end(e, &loop, NULL);
}

/* ---- the kernel ---- */

static void emit_tiles(kn_emitter *e, const window_plan *p, LLVMValueRef begin, LLVMValueRef end) {
    int64_t inner, past, out = e->k->dims[p->ow].size;
    int64_t tiles = interior_tiles(e->k, p, &inner, &past);
    for (int64_t i = 0; i < tiles; i++) {
        window_tile t = {.p = p, .first = i * p->tile, .count = p->tile};
        if (i == inner && past > inner) {
            kn_loop loop;
            kn_loop_begin(e, &loop, kn_i64(e, inner), kn_i64(e, past), 1, NULL, 0);
            emit_tile(e, &t, kn_mul(e, loop.index, kn_i64(e, p->tile)), begin, end);
            kn_loop_end(e, &loop, NULL);
            i = past - 1;
            continue;
        }
        if (t.first + t.count > out)
            t.count = (int)(out - t.first);
        emit_tile(e, &t, kn_i64(e, t.first), begin, end);
    }
}

/* Outputs [from, to) in tiles of `count`; returns what comes after the last whole one. */
static LLVMValueRef emit_run(kn_emitter *e, window_tile *t, int count, LLVMValueRef from,
                             LLVMValueRef to, LLVMValueRef begin, LLVMValueRef end) {
    kn_loop loop;
    t->count = count;
    kn_loop_begin(e, &loop, from, kn_sub(e, to, kn_i64(e, count - 1)), count, NULL, 0);
    emit_tile(e, t, loop.index, begin, end);
    kn_loop_end(e, &loop, NULL);
    LLVMValueRef length = kn_max(e, kn_sub(e, to, from), kn_i64(e, 0));
    LLVMValueRef rest = LLVMBuildURem(e->b, length, kn_i64(e, count), "");
    return kn_add(e, from, kn_sub(e, length, rest));
}

static void emit_symbolic_tiles(kn_emitter *e, const window_plan *p, LLVMValueRef begin,
                                LLVMValueRef end) {
    const kn_window *w = &e->k->dims[p->kw].window;
    LLVMValueRef out = kn_size(e, e->k->dims[p->ow].size), zero = kn_i64(e, 0);
    LLVMValueRef first = kn_min(e, kn_i64(e, (w->padding + w->stride - 1) / w->stride), out);
    /* The greatest first tap of a window that lies inside, padding added; below 0 none does. */
    int64_t reach = (e->k->dims[p->kw].size - 1) * w->dilation;
    LLVMValueRef last = kn_add(e, kn_size(e, w->input), kn_i64(e, w->padding - 1 - reach));
    LLVMValueRef past = LLVMBuildUDiv(e->b, kn_add(e, kn_max(e, last, kn_i64(e, -w->stride)),
                                                   kn_i64(e, w->stride)),
                                      kn_i64(e, w->stride), "");
    past = kn_max(e, first, kn_min(e, past, out));
    window_tile t = {.p = p, .is_end = true};
    emit_run(e, &t, 1, zero, first, begin, end);
    t.is_end = false;
    t.is_inside = true;
    LLVMValueRef at = emit_run(e, &t, p->tile, first, past, begin, end);
    if (p->tile > 2)
        at = emit_run(e, &t, 2, at, past, begin, end);
    if (p->tile > 1)
        emit_run(e, &t, 1, at, past, begin, end);
    t.is_inside = false;
    t.is_end = true;
    emit_run(e, &t, 1, past, out, begin, end);
}

bool kn_emit_window(kn_emitter *e) {
    kn_kernel *k = e->k;
    window_plan p;
    if (!make_plan(k, e->unit->target, &p))
        return false;
    kn_loop items, lines;
    kn_loop_begin(e, &items, e->begin, e->end, 1, NULL, 0);
    LLVMValueRef rest = LLVMBuildUDiv(e->b, items.index, kn_i64(e, p.chunks), "");
    LLVMValueRef chunk = kn_sub(e, items.index, kn_mul(e, rest, kn_i64(e, p.chunks)));
    LLVMValueRef begin = kn_mul(e, chunk, kn_i64(e, p.chunk));
    LLVMValueRef end = kn_min(e, kn_add(e, begin, kn_i64(e, p.chunk)), kn_size(e, k->dims[p.c].size));
    LLVMValueRef blocks = kn_size(e, p.blocks), image = LLVMBuildUDiv(e->b, rest, blocks, "");
    LLVMValueRef block = kn_sub(e, rest, kn_mul(e, image, blocks));
    for (int d = k->dim_count - 1; d >= 0; d--) {
        if (k->dims[d].role != KN_OUTER || d == p.oh || d == p.ow)
            continue;
        LLVMValueRef size = kn_size(e, k->dims[d].size);
        LLVMValueRef quotient = LLVMBuildUDiv(e->b, image, size, "");
        e->index[d] = kn_sub(e, image, kn_mul(e, quotient, size));
        image = quotient;
    }
    LLVMValueRef first = kn_mul(e, block, kn_i64(e, p.lines));
    LLVMValueRef past = kn_min(e, kn_add(e, first, kn_i64(e, p.lines)), kn_size(e, k->dims[p.oh].size));
    kn_loop_begin(e, &lines, first, past, 1, NULL, 0);
    e->index[p.oh] = lines.index;
    if (p.is_symbolic)
        emit_symbolic_tiles(e, &p, begin, end);
    else
        emit_tiles(e, &p, begin, end);
    kn_loop_end(e, &lines, NULL);
    kn_loop_end(e, &items, NULL);
    return true;
}

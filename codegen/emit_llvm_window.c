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
 * tiles at the ends leave those out, tiles between them share one loop. A line whose length is a
 * parameter comes in tiles of the number of outputs, 8 at most, that divides it best; the last one
 * begins where it ends with the line, and what it shares with the one before is computed again. There
 * is code for every number, with a question for each input pixel where a tile is not known to lie
 * inside. Every output is the sum of the same terms in the same order wherever it lies in a tile. */
#include "codegen/emit_llvm_kernel.h"

#include <string.h>

enum { MAX_TILE = 16, MAX_KERNEL = 16, MAX_END_TILES = 6, MAX_SYMBOLIC_TILE = 8, MAX_SYMBOLIC_LINES = 7, MAX_SPANNED_LINES = 4 };

typedef struct window_plan {
    int reduce;           /* the reduction's node */
    int input;            /* the value of a place: a load, or what is made of one alone */
    int load, weight;     /* loads; weight -1: pooling */
    int oh, ow, kh, kw, c; /* dims */
    int64_t pixel;        /* elements from an input pixel of a line to the next */
    int tile;             /* outputs of a tile */
    int64_t chunk, lines; /* channels and output lines of an item */
    int64_t chunks, spans; /* of the channels, of a line */
    rt_dim blocks;
    bool is_symbolic; /* lines of unknown length or number */
    bool is_tight;    /* the last window ends with the padding, or before it */
} window_plan;

static bool has_constants(const kn_kernel *k, window_plan *p) {
    const kn_access *a = &k->nodes[p->load].access;
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

/* The one load that the value is made of, beside what does not vary; -1: there is none, or two. */
static int load_under(const kn_kernel *k, int node, int depth) {
    const kn_node *n = &k->nodes[node];
    if (n->code == KN_LOAD)
        return n->args[0] < 0 ? node : -1;
    int found = -1;
    for (int a = 0; a < 3; a++) {
        if (n->args[a] < 0 || k->nodes[n->args[a]].dims == 0)
            continue;
        if (found >= 0 || depth > 4)
            return -1;
        found = load_under(k, n->args[a], depth + 1);
        if (found < 0)
            return -1;
    }
    return found;
}

/* One reduction over a window of two dims, of what a load gives or that times a weight for each place
 * of the window and channel. */
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
    p->load = load_under(k, p->input, 0);
    if (p->load < 0 || (r->type != RT_float32 && r->type != RT_int32) ||
        k->nodes[p->input].type != r->type || !has_constants(k, p))
        return false;
    const kn_node *x = &k->nodes[p->load];
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
    int64_t out = p->is_symbolic ? MAX_SYMBOLIC_TILE : k->dims[p->ow].size;
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
    if (p->is_symbolic && p->lines > MAX_SYMBOLIC_LINES)
        p->lines = MAX_SYMBOLIC_LINES;
    p->blocks = kn_dim_ceil_div(k, k->dims[p->oh].size, p->lines);
    p->spans = 1;
    if (rt_dim_is_constant(p->blocks) && p->blocks < MAX_SPANNED_LINES) { /* a signal: one long line */
        int64_t spans = (16 + p->blocks * p->chunks - 1) / (p->blocks * p->chunks);
        p->spans = p->is_symbolic || spans < tiles ? spans : tiles;
    }
    const kn_window *w = &k->dims[p->kw].window;
    const rt_dim_algebra *g = ir_dim_algebra(k->ir);
    rt_dim steps = kn_dim_add(k, w->input, 2 * w->padding - (kernel - 1) * w->dilation - 1);
    steps = g->floordiv(g->user, steps, w->stride);
    p->is_tight = kn_dim_same(k, kn_dim_add(k, steps, 1), k->dims[p->ow].size);
    return p->blocks != RT_DIM_UNKNOWN;
}

bool kn_plan_window(kn_kernel *k, const cg_target_info *target) {
    window_plan p;
    if (!make_plan(k, target, &p))
        return false;
    rt_dim items = kn_dim_mul(k, p.blocks, p.chunks * p.spans);
    for (int d = 0; d < k->dim_count; d++)
        if (k->dims[d].role == KN_OUTER && d != p.oh && d != p.ow)
            items = kn_dim_mul(k, items, k->dims[d].size);
    if (items == RT_DIM_UNKNOWN)
        return false;
    if (!rt_dim_is_constant(p.blocks))
        kn_dim_param(k, p.blocks);
    /* Of a line whose length is not known: an image's, or a signal's where it is the only one. */
    double length = !p.is_symbolic ? (double)k->dims[p.ow].size : k->dims[p.oh].size == 1 ? 1024 : 64;
    double places = (double)(k->dims[p.kh].size * k->dims[p.kw].size * p.lines) * length / (double)p.spans;
    double terms = places * (double)p.chunk;
    k->work_items = k->part_items = items;
    k->grain = terms > 1.5e5 ? 1 : (int64_t)(1.5e5 / (terms + 1)) + 1;
    k->flops = rt_dim_is_constant(items)
                   ? (p.weight >= 0 ? 2 : 1) * places * (double)(k->dims[p.c].size * items) /
                         (double)p.chunks
                   : 0;
    return true;
}

bool kn_window_items_of(const kn_kernel *k, const cg_target_info *target, kn_window_items *out) {
    window_plan p;
    if (!make_plan(k, target, &p) || p.spans != 1)
        return false;
    for (int d = 0; d < k->dim_count; d++)
        if (k->dims[d].role == KN_OUTER && d != p.oh && d != p.ow && k->dims[d].size != 1)
            return false;
    *out = (kn_window_items){p.blocks, k->dims[p.oh].size, p.lines, p.chunks, k->dims[p.kh].size,
                             k->dims[p.kh].window};
    return true;
}

/* ---- a tile ---- */

typedef struct window_tile {
    const window_plan *p;
    int64_t first; /* output of the line; of an interior tile any one */
    int count;
    bool is_inside;      /* no pixel lies outside, whatever `first` says */
    LLVMValueRef inside; /* of symbolic lines, i1: is_inside at run time; NULL: unknown */
    LLVMValueRef origin; /* of symbolic lines: the first pixel, where each is to be asked for */
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

/* The value of the place whose load lies at `offset` (elements). */
static LLVMValueRef input_value(kn_emitter *e, const window_plan *p, LLVMValueRef offset) {
    LLVMValueRef x = element(e, p->load, offset);
    if (p->load == p->input)
        return x;
    size_t bytes = (size_t)e->k->node_count * sizeof *e->memo;
    LLVMValueRef *saved = memcpy(ts_arena_alloc(e->unit->arena, bytes), e->memo, bytes);
    for (int i = p->load + 1; i <= p->input; i++)
        if (e->k->nodes[i].dims)
            e->memo[i] = NULL;
    e->memo[p->load] = x;
    LLVMValueRef v = kn_vector_value(e, p->input);
    memcpy(e->memo, saved, bytes);
    return v;
}

/* What the pixel `at` behind the tile's first one adds to the outputs that it touches. */
static void emit_pixel(kn_emitter *e, const window_tile *t, int64_t at, LLVMValueRef line,
                       LLVMValueRef const *weights, LLVMValueRef *acc) {
    const window_plan *p = t->p;
    const kn_node *reduce = &e->k->nodes[p->reduce];
    LLVMValueRef x = NULL;
    for (int i = 0; i < t->count; i++) {
        int64_t tap = tap_at(e->k, p, i, at);
        if (tap < 0)
            continue;
        if (!x)
            x = input_value(e, p, kn_add(e, line, kn_mul(e, kn_i64(e, at), kn_i64(e, p->pixel))));
        acc[i] = p->weight >= 0 ? kn_fma(e, x, weights[tap], acc[i])
                                : kn_combine(e, reduce, reduce->type, x, acc[i], e->width);
    }
}

/* The same where the pixel exists, which is asked at run time. */
static void emit_asked_pixel(kn_emitter *e, const window_tile *t, int64_t at, LLVMValueRef line,
                             LLVMValueRef const *weights, LLVMValueRef *acc) {
    const kn_window *w = &e->k->dims[t->p->kw].window;
    LLVMValueRef before[MAX_TILE];
    memcpy(before, acc, (size_t)t->count * sizeof *acc);
    LLVMBasicBlockRef from[2] = {LLVMGetInsertBlock(e->b)};
    LLVMBasicBlockRef exists = LLVMAppendBasicBlockInContext(e->unit->context, e->function, "");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(e->unit->context, e->function, "");
    LLVMValueRef place = kn_add(e, t->origin, kn_i64(e, at));
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntULT, place, kn_size(e, w->input), ""), exists, done);
    LLVMPositionBuilderAtEnd(e->b, exists);
    emit_pixel(e, t, at, line, weights, acc);
    from[1] = LLVMGetInsertBlock(e->b);
    LLVMBuildBr(e->b, done);
    LLVMPositionBuilderAtEnd(e->b, done);
    for (int i = 0; i < t->count; i++) {
        if (acc[i] == before[i])
            continue;
        LLVMValueRef values[2] = {before[i], acc[i]};
        acc[i] = LLVMBuildPhi(e->b, LLVMTypeOf(before[i]), "");
        LLVMAddIncoming(acc[i], values, from, 2);
    }
}

static bool is_read(const kn_kernel *k, const window_tile *t, int64_t at) {
    for (int i = 0; i < t->count; i++)
        if (tap_at(k, t->p, i, at) >= 0)
            return true;
    return false;
}

/* One line of the window: e->index[kh] is set. */
static void emit_line(kn_emitter *e, const window_tile *t, LLVMValueRef *acc) {
    kn_kernel *k = e->k;
    const window_plan *p = t->p;
    const kn_window *w = &k->dims[p->kw].window;
    int64_t kernel = k->dims[p->kw].size;
    LLVMValueRef weights[MAX_KERNEL] = {NULL};
    for (int64_t i = 0; i < kernel && p->weight >= 0; i++) {
        const kn_access *a = &k->nodes[p->weight].access;
        LLVMValueRef offset = kn_mul(e, e->index[p->kh], kn_size(e, a->strides[p->kh]));
        offset = kn_add(e, offset, kn_mul(e, kn_i64(e, i), kn_size(e, a->strides[p->kw])));
        weights[i] = element(e, p->weight, offset);
    }
    const kn_access *a = &k->nodes[p->load].access;
    LLVMValueRef line = kn_mul(e, e->index[p->kh], kn_size(e, a->strides[p->kh]));
    bool inside = t->is_inside || (!t->origin && is_interior(k, p, t->first, t->count));
    int64_t origin = t->first * w->stride - w->padding;
    int64_t last = (t->count - 1) * w->stride + (kernel - 1) * w->dilation;
    for (int64_t at = 0; at <= last; at++) {
        if (!is_read(k, t, at))
            continue;
        /* Outputs of a line reach no farther out than the padding is wide. */
        bool exists = t->origin ? p->is_tight && at >= w->padding && at <= last - w->padding
                                : origin + at >= 0 && origin + at < w->input;
        if (inside || exists)
            emit_pixel(e, t, at, line, weights, acc);
        else if (t->origin)
            emit_asked_pixel(e, t, at, line, weights, acc);
    }
}

/* All lines of the window inside of the image, into acc. */
static void emit_lines(kn_emitter *e, const window_tile *t, LLVMValueRef *acc) {
    const kn_kernel *k = e->k;
    const window_plan *p = t->p;
    LLVMValueRef begin, end;
    for (int i = 0; i < t->count; i++)
        acc[i] = kn_neutral(e, &k->nodes[p->reduce], k->nodes[p->reduce].type, e->width);
    kn_window_range(e, &k->dims[p->kh], &begin, &end);
    kn_loop rows;
    kn_loop_begin(e, &rows, begin, end, 1, acc, t->count);
    memcpy(acc, rows.phis, (size_t)t->count * sizeof *acc);
    e->index[p->kh] = rows.index;
    emit_line(e, t, acc);
    kn_loop_end(e, &rows, acc);
    memcpy(acc, rows.exit_phis, (size_t)t->count * sizeof *acc);
}

/* The same of a tile that may lie inside: one epilogue for both ways. */
static void emit_either(kn_emitter *e, const window_tile *t, LLVMValueRef *acc) {
    window_tile inner = *t;
    LLVMValueRef other[MAX_TILE];
    LLVMContextRef context = e->unit->context;
    LLVMBasicBlockRef ways[2] = {LLVMAppendBasicBlockInContext(context, e->function, ""),
                                 LLVMAppendBasicBlockInContext(context, e->function, "")};
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(context, e->function, "");
    LLVMBuildCondBr(e->b, t->inside, ways[0], ways[1]);
    inner.is_inside = true;
    for (int way = 0; way < 2; way++) {
        LLVMPositionBuilderAtEnd(e->b, ways[way]);
        emit_lines(e, way == 0 ? &inner : t, way == 0 ? other : acc);
        ways[way] = LLVMGetInsertBlock(e->b);
        LLVMBuildBr(e->b, done);
    }
    LLVMPositionBuilderAtEnd(e->b, done);
    for (int i = 0; i < t->count; i++) {
        LLVMValueRef values[2] = {other[i], acc[i]};
        acc[i] = LLVMBuildPhi(e->b, LLVMTypeOf(acc[i]), "");
        LLVMAddIncoming(acc[i], values, ways, 2);
    }
}

/* Vectors of channels at e->index[c]; bases are those of the tile's first output. */
static void emit_vector(kn_emitter *e, const window_tile *t, LLVMValueRef first) {
    kn_kernel *k = e->k;
    const window_plan *p = t->p;
    size_t nodes = (size_t)k->node_count * sizeof *e->memo;
    LLVMValueRef acc[MAX_TILE];
    if (t->inside)
        emit_either(e, t, acc);
    else
        emit_lines(e, t, acc);
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
        e->memo[p->reduce] = acc[i];
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

/* The part of a line that is an item's: tiles [n * span / spans, n * (span + 1) / spans) of n. */
typedef struct window_span {
    LLVMValueRef index; /* NULL: whole lines */
    int64_t spans;
} window_span;

static void span_range(kn_emitter *e, const window_span *s, LLVMValueRef tiles, LLVMValueRef *begin,
                       LLVMValueRef *end) {
    LLVMValueRef spans = kn_i64(e, s->spans), next = kn_add(e, s->index, kn_i64(e, 1));
    *begin = LLVMBuildUDiv(e->b, kn_mul(e, tiles, s->index), spans, "");
    *end = LLVMBuildUDiv(e->b, kn_mul(e, tiles, next), spans, "");
}

static void emit_tiles(kn_emitter *e, const window_plan *p, const window_span *s, LLVMValueRef begin,
                       LLVMValueRef end) {
    LLVMContextRef c = e->unit->context;
    int64_t inner, past, out = e->k->dims[p->ow].size;
    int64_t tiles = interior_tiles(e->k, p, &inner, &past);
    LLVMValueRef low = NULL, high = NULL;
    if (s->index)
        span_range(e, s, kn_i64(e, tiles), &low, &high);
    for (int64_t i = 0; i < tiles; i++) {
        window_tile t = {.p = p, .first = i * p->tile, .count = p->tile};
        LLVMValueRef here = kn_i64(e, i);
        if (i == inner && past > inner) {
            kn_loop loop;
            LLVMValueRef last = kn_i64(e, past);
            kn_loop_begin(e, &loop, low ? kn_max(e, here, low) : here, high ? kn_min(e, last, high) : last, 1, NULL, 0);
            emit_tile(e, &t, kn_mul(e, loop.index, kn_i64(e, p->tile)), begin, end);
            kn_loop_end(e, &loop, NULL);
            i = past - 1;
            continue;
        }
        if (t.first + t.count > out)
            t.count = (int)(out - t.first);
        LLVMBasicBlockRef next = NULL;
        if (low) {
            LLVMBasicBlockRef ours = LLVMAppendBasicBlockInContext(c, e->function, "");
            next = LLVMAppendBasicBlockInContext(c, e->function, "");
            LLVMValueRef is_ours = LLVMBuildAnd(e->b, LLVMBuildICmp(e->b, LLVMIntSGE, here, low, ""),
                                                LLVMBuildICmp(e->b, LLVMIntSLT, here, high, ""), "");
            LLVMBuildCondBr(e->b, is_ours, ours, next);
            LLVMPositionBuilderAtEnd(e->b, ours);
        }
        emit_tile(e, &t, kn_i64(e, t.first), begin, end);
        if (next) {
            LLVMBuildBr(e->b, next);
            LLVMPositionBuilderAtEnd(e->b, next);
        }
    }
}

/* Tiles of t->count outputs over a line of `out`, no fewer than that. */
static void emit_equal_tiles(kn_emitter *e, window_tile *t, const window_span *s, LLVMValueRef out,
                             LLVMValueRef begin, LLVMValueRef end) {
    enum { LEAST_INNER = 5 }; /* shorter lines are all ends */
    const kn_window *w = &e->k->dims[t->p->kw].window;
    int64_t reach = (e->k->dims[t->p->kw].size - 1) * w->dilation;
    LLVMValueRef stride = kn_i64(e, w->stride), last = kn_sub(e, out, kn_i64(e, t->count));
    /* Firsts of tiles inside: from where padding ends to where the last window does. */
    LLVMValueRef room = kn_sub(e, kn_size(e, w->input),
                               kn_i64(e, 1 + reach - w->padding + (t->count - 1) * w->stride));
    kn_loop tile;
    LLVMValueRef low = kn_i64(e, 0), high = out, count = kn_i64(e, t->count);
    if (s->index) {
        span_range(e, s, LLVMBuildUDiv(e->b, kn_add(e, out, kn_i64(e, t->count - 1)), count, ""), &low, &high);
        low = kn_mul(e, low, count);
        high = kn_mul(e, high, count);
    }
    kn_loop_begin(e, &tile, low, high, t->count, NULL, 0);
    LLVMValueRef first = kn_min(e, tile.index, last), at = kn_mul(e, first, stride);
    t->origin = kn_sub(e, at, kn_i64(e, w->padding));
    t->inside = NULL;
    if (t->count >= LEAST_INNER)
        t->inside = LLVMBuildAnd(e->b, LLVMBuildICmp(e->b, LLVMIntSGE, t->origin, kn_i64(e, 0), ""),
                                 LLVMBuildICmp(e->b, LLVMIntSLE, at, room, ""), "");
    emit_tile(e, t, first, begin, end);
    kn_loop_end(e, &tile, NULL);
}

static void emit_symbolic_tiles(kn_emitter *e, const window_plan *p, const window_span *s, LLVMValueRef begin,
                                LLVMValueRef end) {
    LLVMContextRef context = e->unit->context;
    LLVMValueRef out = kn_size(e, e->k->dims[p->ow].size), most = kn_i64(e, p->tile);
    LLVMValueRef tiles = LLVMBuildUDiv(e->b, kn_add(e, out, kn_i64(e, p->tile - 1)), most, "");
    tiles = kn_max(e, tiles, kn_i64(e, 1));
    LLVMValueRef each = kn_add(e, out, kn_sub(e, tiles, kn_i64(e, 1)));
    each = LLVMBuildUDiv(e->b, each, tiles, "");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(context, e->function, "");
    for (int count = p->tile; count > 0; count--) {
        window_tile t = {.p = p, .count = count};
        LLVMBasicBlockRef these = LLVMAppendBasicBlockInContext(context, e->function, "");
        LLVMBasicBlockRef fewer = LLVMAppendBasicBlockInContext(context, e->function, "");
        LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntEQ, each, kn_i64(e, count), ""), these, fewer);
        LLVMPositionBuilderAtEnd(e->b, these);
        emit_equal_tiles(e, &t, s, out, begin, end);
        LLVMBuildBr(e->b, done);
        LLVMPositionBuilderAtEnd(e->b, fewer);
    }
    LLVMBuildBr(e->b, done);
    LLVMPositionBuilderAtEnd(e->b, done);
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
    window_span span = {.spans = p.spans};
    if (p.spans > 1) {
        LLVMValueRef spans = kn_i64(e, p.spans), quotient = LLVMBuildUDiv(e->b, rest, spans, "");
        span.index = kn_sub(e, rest, kn_mul(e, quotient, spans));
        rest = quotient;
    }
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
        emit_symbolic_tiles(e, &p, &span, begin, end);
    else
        emit_tiles(e, &p, &span, begin, end);
    kn_loop_end(e, &lines, NULL);
    kn_loop_end(e, &items, NULL);
    return true;
}

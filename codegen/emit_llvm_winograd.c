/* codegen/emit_llvm_winograd.c - 3x3 convolutions by the transforms of winograd.c.
 *
 *   item = (image, block of tiles, group of column steps)
 *     inputs of the block's tiles, transformed: left[place][tile][channel]     (once a block)
 *     for steps of columns
 *       for each of n n places: product of left[place] and filters[place] -> sums[place][tile]
 *       for tiles of the block: sums, transformed, through the epilogue to memory
 *
 * The block's transformed inputs and the sums of a step stay in the second-level cache; filters are
 * streamed once a block. Every tile is computed alone by the same operations, so results do not
 * depend on blocks or threads.
 *
 * Of images whose sizes are parameters the number of tiles and of blocks is: blocks have room for a
 * constant number of tiles, which sizes the scratch, and share what there is evenly. A block's
 * products then come in tiles of one number of rows, chosen when it begins, and one rest: there is a
 * micro-kernel for every number. */
#include "codegen/emit_llvm_contraction.h"
#include "codegen/winograd.h"

#include <math.h>
#include <string.h>

enum { MAX_SIDE = 6, MAX_ROW_SIZES = 8 };

typedef struct winograd_plan {
    int m, n;                    /* outputs and inputs of a tile along a side */
    rt_dim across, image_tiles, images, tiles; /* tiles of a line of them, of an image, in all */
    bool is_symbolic;            /* their number is a parameter */
    int64_t block;               /* tiles of an item, at most */
    rt_dim blocks;
    int rows[MAX_ROW_SIZES], row_variants; /* of the products' tiles, most first */
    int vectors;                 /* of a step of columns */
    int64_t steps, group, groups; /* steps of columns, of an item */
    int64_t row_bytes;           /* a tile's channels in left */
    int64_t left_plane, sum_plane; /* bytes from a place to the next */
    int64_t table_bytes, tile_bytes;
} winograd_plan;

/* Planes a multiple of 4096 bytes apart would share the sets of the first-level cache. */
static int64_t plane_bytes(int64_t bytes) { return (kn_ceil_div(bytes, 64) | 1) * 64; }

static void add_rows(winograd_plan *p, int rows) {
    int at = 0;
    while (at < p->row_variants && p->rows[at] > rows)
        at++;
    if (rows == 0 || (at < p->row_variants && p->rows[at] == rows))
        return;
    for (int i = p->row_variants++; i > at; i--)
        p->rows[i] = p->rows[i - 1];
    p->rows[at] = rows;
}

/* Blocks of a constant number of tiles. */
static void plan_blocks(winograd_plan *p, int64_t blocks, int most) {
    p->block = kn_ceil_div(p->tiles, blocks);
    p->blocks = kn_ceil_div(p->tiles, p->block);
    int rows = (int)kn_ceil_div(p->block, kn_ceil_div(p->block, most));
    add_rows(p, rows);
    add_rows(p, (int)(p->block % rows));
    add_rows(p, (int)((p->tiles - (p->blocks - 1) * p->block) % rows));
}

/* Every number of rows, on AVX-512 every even one: then a row may be computed for nothing. */
static void plan_symbolic_blocks(const kn_kernel *k, winograd_plan *p, int64_t columns, int most) {
    int64_t room = kn_winograd_block_room(p->m, k->contraction.channels, columns);
    p->block = (room + most / 2) / most * most;
    p->blocks = kn_dim_ceil_div(k, p->tiles, p->block);
    for (int rows = most; rows > 0; rows -= most > MAX_ROW_SIZES ? 2 : 1)
        add_rows(p, rows);
}

static void make_plan(const kn_kernel *k, const cg_target_info *target, winograd_plan *p) {
    const kn_contraction *c = &k->contraction;
    int lanes = target->vector_bytes / 4, most = lanes == 16 ? 14 : lanes == 8 ? 6 : 2;
    memset(p, 0, sizeof *p);
    p->m = c->winograd;
    p->n = p->m + 2;
    int64_t places = p->n * p->n, columns = k->dims[c->batch_count + 1].size;
    p->across = kn_dim_ceil_div(k, c->out_w, p->m);
    p->image_tiles = kn_dim_mul(k, p->across, kn_dim_ceil_div(k, c->out_h, p->m));
    p->images = c->images;
    p->tiles = kn_dim_mul(k, p->image_tiles, p->images);
    p->is_symbolic = !rt_dim_is_constant(p->tiles);
    p->row_bytes = kn_ceil_div(c->channels, 16) * 64;
    if (p->is_symbolic)
        plan_symbolic_blocks(k, p, columns, most);
    else
        plan_blocks(p, kn_winograd_blocks(p->m, p->tiles, c->channels, columns), most);
    p->vectors = lanes == 16 ? p->rows[0] <= 7 ? 4 : 2 : lanes == 8 ? 2 : 4;
    int64_t needed = kn_ceil_div(columns, lanes);
    if (needed < p->vectors)
        p->vectors = (int)needed;
    p->steps = kn_ceil_div(columns, p->vectors * lanes);
    int64_t groups = p->is_symbolic ? 8 : kn_ceil_div(8, p->blocks);
    groups = groups > p->steps ? p->steps : groups;
    p->group = kn_ceil_div(p->steps, groups);
    p->groups = kn_ceil_div(p->steps, p->group);
    int64_t room = p->block + (p->is_symbolic && p->rows[p->row_variants - 1] > 1);
    p->left_plane = plane_bytes(room * p->row_bytes);
    p->sum_plane = plane_bytes(room * p->vectors * lanes * 4);
    p->table_bytes = kn_ceil_div(places * 8, 64) * 64;
    p->tile_bytes = p->m * p->m * lanes * 4;
}

ts_status kn_plan_winograd(kn_kernel *k, const cg_target_info *target) {
    const kn_contraction *c = &k->contraction;
    winograd_plan p;
    make_plan(k, target, &p);
    rt_dim items = kn_dim_mul(k, p.blocks, p.groups);
    for (int d = 0; d < c->batch_count; d++) {
        items = kn_dim_mul(k, items, k->dims[d].size);
        rt_dim of_batch[] = {k->dims[d].size, c->left.strides[d], c->right.strides[d]};
        TS_TRY(kn_need_sizes(k, of_batch, 3, "a contraction"));
    }
    rt_dim needed[] = {items, c->left.offset, p.across, p.image_tiles, p.tiles, p.blocks,
                       c->image_stride, c->h_stride, c->w_stride, c->input_h, c->input_w,
                       c->out_h, c->out_w};
    TS_TRY(kn_need_sizes(k, needed, sizeof needed / sizeof *needed, "a contraction"));
    k->work_items = items;
    k->grain = 1;
    k->scratch_bytes = p.table_bytes + p.tile_bytes + (int64_t)(p.n * p.n) * (p.left_plane + p.sum_plane);
    /* As the direct sum has them, so that rates compare. */
    k->flops = rt_dim_is_constant(items)
                   ? 2.0 * (double)c->k * (double)k->dims[c->batch_count].size *
                         (double)k->dims[c->batch_count + 1].size * (double)items /
                         (double)(p.blocks * p.groups)
                   : 0;
    return NULL;
}

/* ---- transforms along one side ---- */

typedef struct side {
    kn_emitter *e;
    LLVMValueRef a, b, a2, b2, a3, b3, sum; /* powers of the points; a2 + b2; NULL where m = 2 */
} side;

static LLVMValueRef sub(side *s, LLVMValueRef x, LLVMValueRef y) { return LLVMBuildFSub(s->e->b, x, y, ""); }
static LLVMValueRef sum(side *s, LLVMValueRef x, LLVMValueRef y) { return LLVMBuildFAdd(s->e->b, x, y, ""); }
/* z + x y and z - x y */
static LLVMValueRef plus(side *s, LLVMValueRef z, LLVMValueRef x, LLVMValueRef y) {
    return kn_fma(s->e, x, y, z);
}
static LLVMValueRef minus(side *s, LLVMValueRef z, LLVMValueRef x, LLVMValueRef y) {
    return kn_fma(s->e, LLVMBuildFNeg(s->e->b, x, ""), y, z);
}

static side make_side(kn_emitter *e) {
    const double a2 = 0.5, b2 = 2;
    int w = e->width;
    return (side){.e = e,
                  .a = kn_float_constant(e, RT_float32, w, sqrt(a2)),
                  .b = kn_float_constant(e, RT_float32, w, sqrt(b2)),
                  .a2 = kn_float_constant(e, RT_float32, w, a2),
                  .b2 = kn_float_constant(e, RT_float32, w, b2),
                  .a3 = kn_float_constant(e, RT_float32, w, a2 * sqrt(a2)),
                  .b3 = kn_float_constant(e, RT_float32, w, b2 * sqrt(b2)),
                  .sum = kn_float_constant(e, RT_float32, w, a2 + b2)};
}

/* B': the coefficients of the product of (x - q) over the other points q. */
static void transform_input(side *s, int m, LLVMValueRef const *x, LLVMValueRef *y) {
    if (m == 2) {
        y[0] = sub(s, x[2], x[0]);
        y[1] = sum(s, x[1], x[2]);
        y[2] = sub(s, x[2], x[1]);
        y[3] = sub(s, x[3], x[1]);
        return;
    }
    /* a2 b2 = 1 */
    y[0] = minus(s, sum(s, x[0], x[4]), s->sum, x[2]);
    LLVMValueRef even = minus(s, x[4], s->b2, x[2]), odd = minus(s, x[3], s->b2, x[1]);
    y[1] = plus(s, even, s->a, odd);
    y[2] = minus(s, even, s->a, odd);
    even = minus(s, x[4], s->a2, x[2]);
    odd = minus(s, x[3], s->a2, x[1]);
    y[3] = plus(s, even, s->b, odd);
    y[4] = minus(s, even, s->b, odd);
    y[5] = minus(s, sum(s, x[1], x[5]), s->sum, x[3]);
}

/* A': the values of the powers at the points. */
static void transform_output(side *s, int m, LLVMValueRef const *x, LLVMValueRef *y) {
    LLVMValueRef s1 = sum(s, x[1], x[2]), d1 = sub(s, x[1], x[2]);
    if (m == 2) {
        y[0] = sum(s, x[0], s1);
        y[1] = sum(s, d1, x[3]);
        return;
    }
    LLVMValueRef s2 = sum(s, x[3], x[4]), d2 = sub(s, x[3], x[4]);
    y[0] = sum(s, x[0], sum(s, s1, s2));
    y[1] = plus(s, LLVMBuildFMul(s->e->b, s->a, d1, ""), s->b, d2);
    y[2] = plus(s, LLVMBuildFMul(s->e->b, s->a2, s1, ""), s->b2, s2);
    y[3] = plus(s, plus(s, x[5], s->a3, d1), s->b3, d2);
}

/* Columns, then lines, of an array of n x n to one of count x count. */
static void transform(kn_emitter *e, int m, int count, bool is_input, LLVMValueRef const *x,
                      LLVMValueRef *y) {
    side s = make_side(e);
    int n = m + 2;
    LLVMValueRef half[MAX_SIDE * MAX_SIDE], in[MAX_SIDE] = {NULL}, out[MAX_SIDE];
    for (int j = 0; j < n; j++) {
        for (int i = 0; i < n; i++)
            in[i] = x[i * n + j];
        (is_input ? transform_input : transform_output)(&s, m, in, out);
        for (int i = 0; i < count; i++)
            half[i * n + j] = out[i];
    }
    for (int i = 0; i < count; i++)
        (is_input ? transform_input : transform_output)(&s, m, half + i * n, y + i * count);
}

/* ---- inputs ---- */

typedef struct winograd_state {
    winograd_plan plan;
    LLVMValueRef image, filters;           /* of this batch */
    LLVMValueRef table, tile, left, sums;  /* scratch */
    LLVMValueRef first, count;             /* tiles of the block */
    LLVMValueRef rows, row_tiles;          /* of its products; where sizes are parameters */
    LLVMValueRef image_index;              /* of the tile at hand, among those of this batch */
} winograd_state;

/* The image and first output line and column of tile `first + t`. */
static void tile_origin(kn_emitter *e, winograd_state *x, LLVMValueRef t, LLVMValueRef out[3]) {
    LLVMValueRef tile = kn_add(e, x->first, t);
    out[0] = kn_i64(e, 0);
    if (x->plan.images != 1) {
        LLVMValueRef each = kn_size(e, x->plan.image_tiles);
        out[0] = LLVMBuildUDiv(e->b, tile, each, "");
        tile = kn_sub(e, tile, kn_mul(e, out[0], each));
    }
    LLVMValueRef across = kn_size(e, x->plan.across);
    LLVMValueRef line = LLVMBuildUDiv(e->b, tile, across, ""), m = kn_i64(e, x->plan.m);
    out[1] = kn_mul(e, line, m);
    out[2] = kn_mul(e, kn_sub(e, tile, kn_mul(e, line, across)), m);
}

/* A loop over the block's tiles. Divisions by parameters are slow: then the place of the next tile
 * comes from that of the last one. */
static void tiles_begin(kn_emitter *e, winograd_state *x, kn_loop *tile, LLVMValueRef *h,
                        LLVMValueRef *w) {
    LLVMValueRef place[3];
    bool steps = x->plan.is_symbolic;
    if (steps)
        tile_origin(e, x, kn_i64(e, 0), place);
    kn_loop_begin(e, tile, kn_i64(e, 0), x->count, 1, place, steps ? 3 : 0);
    if (steps)
        memcpy(place, tile->phis, sizeof place);
    else
        tile_origin(e, x, tile->index, place);
    x->image_index = place[0];
    *h = place[1];
    *w = place[2];
}

static void tiles_end(kn_emitter *e, winograd_state *x, kn_loop *tile, LLVMValueRef h,
                      LLVMValueRef w) {
    const kn_contraction *c = &e->k->contraction;
    LLVMValueRef zero = kn_i64(e, 0), m = kn_i64(e, x->plan.m), next[3];
    if (!x->plan.is_symbolic) {
        kn_loop_end(e, tile, NULL);
        return;
    }
    w = kn_add(e, w, m);
    LLVMValueRef line_ends = LLVMBuildICmp(e->b, LLVMIntSGE, w, kn_size(e, c->out_w), "");
    next[2] = LLVMBuildSelect(e->b, line_ends, zero, w, "");
    h = LLVMBuildSelect(e->b, line_ends, kn_add(e, h, m), h, "");
    LLVMValueRef image_ends = LLVMBuildICmp(e->b, LLVMIntSGE, h, kn_size(e, c->out_h), "");
    next[1] = LLVMBuildSelect(e->b, image_ends, zero, h, "");
    next[0] = LLVMBuildSelect(e->b, image_ends, kn_add(e, x->image_index, kn_i64(e, 1)),
                              x->image_index, "");
    kn_loop_end(e, tile, next);
}

/* Where the inputs of a tile lie; padding is zeros. */
static void emit_addresses(kn_emitter *e, winograd_state *x, LLVMValueRef h0, LLVMValueRef w0) {
    kn_contraction *c = &e->k->contraction;
    int n = x->plan.n;
    kn_loop line;
    kn_loop_begin(e, &line, kn_i64(e, 0), kn_i64(e, n), 1, NULL, 0);
    LLVMValueRef ih = kn_sub(e, kn_add(e, h0, line.index), kn_i64(e, c->pad_h));
    LLVMValueRef h_in = LLVMBuildICmp(e->b, LLVMIntULT, ih, kn_size(e, c->input_h), "");
    LLVMValueRef start = kn_mul(e, ih, kn_size(e, c->h_stride));
    start = kn_add(e, start, kn_mul(e, x->image_index, kn_size(e, c->image_stride)));
    LLVMValueRef to = kn_element(e, x->table, line.index, n * 8);
    for (int j = 0; j < n; j++) {
        LLVMValueRef iw = kn_sub(e, w0, kn_i64(e, c->pad_w - j));
        LLVMValueRef in = LLVMBuildICmp(e->b, LLVMIntULT, iw, kn_size(e, c->input_w), "");
        in = LLVMBuildAnd(e->b, in, h_in, "");
        LLVMValueRef at = kn_add(e, start, kn_mul(e, iw, kn_size(e, c->w_stride)));
        LLVMValueRef address = LLVMBuildSelect(e->b, in, kn_float_address(e, x->image, at),
                                               e->buffers[c->zeros_buffer], "");
        LLVMBuildStore(e->b, address, kn_address(e, to, kn_i64(e, j * 8)));
    }
    kn_loop_end(e, &line, NULL);
}

static void emit_input_vector(kn_emitter *e, winograd_state *x, LLVMValueRef channel,
                              LLVMValueRef to, LLVMValueRef mask) {
    int places = x->plan.n * x->plan.n;
    LLVMValueRef in[MAX_SIDE * MAX_SIDE] = {NULL}, out[MAX_SIDE * MAX_SIDE] = {NULL};
    for (int i = 0; i < places; i++) {
        LLVMValueRef from = LLVMBuildLoad2(e->b, e->unit->pointer,
                                           kn_address(e, x->table, kn_i64(e, i * 8)), "");
        in[i] = kn_emit_load(e, kn_float_address(e, from, channel), NULL, RT_float32, e->width, mask);
    }
    transform(e, x->plan.m, x->plan.n, true, in, out);
    to = kn_float_address(e, to, channel);
    for (int i = 0; i < places; i++)
        kn_emit_store(e, out[i], kn_address(e, to, kn_i64(e, i * x->plan.left_plane)), NULL,
                      RT_float32, e->width, NULL);
}

static void emit_inputs(kn_emitter *e, winograd_state *x) {
    int64_t channels = e->k->contraction.channels, whole = channels / e->width * e->width;
    kn_loop tile, loop;
    LLVMValueRef h0, w0;
    tiles_begin(e, x, &tile, &h0, &w0);
    emit_addresses(e, x, h0, w0);
    LLVMValueRef to = kn_element(e, x->left, tile.index, x->plan.row_bytes);
    kn_loop_begin(e, &loop, kn_i64(e, 0), kn_i64(e, whole), e->width, NULL, 0);
    emit_input_vector(e, x, loop.index, to, NULL);
    kn_loop_end(e, &loop, NULL);
    if (whole < channels) {
        LLVMValueRef mask = kn_lane_mask(e, kn_i64(e, channels - whole), e->width);
        emit_input_vector(e, x, kn_i64(e, whole), to, mask);
    }
    tiles_end(e, x, &tile, h0, w0);
}

/* ---- products ---- */

/* The tile's sums for rows from `row` on, to `to`. */
static void emit_product(kn_emitter *e, winograd_state *x, kn_tile *t, int rows, LLVMValueRef row,
                         LLVMValueRef left, LLVMValueRef to) {
    LLVMValueRef sums[KN_MAX_TILE];
    t->rows = rows;
    t->left = kn_element(e, left, row, x->plan.row_bytes);
    kn_emit_tile_sums(e, t, sums);
    to = kn_element(e, to, row, t->vectors * e->width * 4);
    for (int i = 0; i < rows * t->vectors; i++)
        kn_emit_store(e, sums[i], kn_float_address(e, to, kn_i64(e, i * e->width)), NULL,
                      RT_float32, e->width, NULL);
}

/* x->row_tiles tiles of x->rows rows, the last of what is left. */
static void emit_symbolic_products(kn_emitter *e, winograd_state *x, kn_tile *t, LLVMValueRef left,
                                   LLVMValueRef to) {
    const winograd_plan *p = &x->plan;
    LLVMContextRef context = e->unit->context;
    kn_loop loop;
    kn_loop_begin(e, &loop, kn_i64(e, 0), x->row_tiles, 1, NULL, 0);
    LLVMValueRef row = kn_mul(e, loop.index, x->rows);
    LLVMValueRef rows = kn_min(e, x->rows, kn_sub(e, x->count, row));
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(context, e->function, "");
    for (int v = 0; v < p->row_variants; v++) {
        LLVMBasicBlockRef fewer = NULL;
        if (v + 1 < p->row_variants) {
            LLVMBasicBlockRef these = LLVMAppendBasicBlockInContext(context, e->function, "");
            fewer = LLVMAppendBasicBlockInContext(context, e->function, "");
            LLVMValueRef less = kn_i64(e, p->rows[v + 1]);
            LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSGT, rows, less, ""), these, fewer);
            LLVMPositionBuilderAtEnd(e->b, these);
        }
        emit_product(e, x, t, p->rows[v], row, left, to);
        LLVMBuildBr(e->b, done);
        LLVMPositionBuilderAtEnd(e->b, fewer ? fewer : done);
    }
    kn_loop_end(e, &loop, NULL);
}

static void emit_products(kn_emitter *e, winograd_state *x, LLVMValueRef column, int vectors) {
    kn_contraction *c = &e->k->contraction;
    const winograd_plan *p = &x->plan;
    int64_t place_bytes = c->channels * KN_PANEL * 4, panel_bytes = place_bytes * p->n * p->n;
    LLVMValueRef panel = LLVMBuildUDiv(e->b, column, kn_i64(e, KN_PANEL), "");
    LLVMValueRef carried[3] = {x->left, kn_address(e, x->filters, kn_mul(e, panel, kn_i64(e, panel_bytes))),
                               x->sums};
    kn_loop place;
    kn_loop_begin(e, &place, kn_i64(e, 0), kn_i64(e, p->n * p->n), 1, carried, 3);
    kn_tile t = {.vectors = vectors, .taps = kn_i64(e, 1), .length = kn_i64(e, c->channels),
                 .term_step = 4, .row_step = kn_i64(e, p->row_bytes), .right = place.phis[1],
                 .panel_bytes = kn_i64(e, panel_bytes), .ahead = place_bytes};
    LLVMValueRef start = kn_i64(e, 0);
    if (p->is_symbolic)
        emit_symbolic_products(e, x, &t, place.phis[0], place.phis[2]);
    for (int v = 0; v < p->row_variants && !p->is_symbolic; v++) {
        LLVMValueRef rows = kn_i64(e, p->rows[v]);
        kn_loop loop;
        kn_loop_begin(e, &loop, start, kn_sub(e, x->count, kn_i64(e, p->rows[v] - 1)), p->rows[v],
                      NULL, 0);
        emit_product(e, x, &t, p->rows[v], loop.index, place.phis[0], place.phis[2]);
        kn_loop_end(e, &loop, NULL);
        LLVMValueRef whole = LLVMBuildUDiv(e->b, kn_sub(e, x->count, start), rows, "");
        start = kn_add(e, start, kn_mul(e, whole, rows));
    }
    carried[0] = kn_address(e, place.phis[0], kn_i64(e, p->left_plane));
    carried[1] = kn_address(e, place.phis[1], kn_i64(e, place_bytes));
    carried[2] = kn_address(e, place.phis[2], kn_i64(e, p->sum_plane));
    kn_loop_end(e, &place, carried);
}

/* ---- outputs ---- */

/* Output by output, for tiles that reach out of the image and epilogues that are long. */
static void emit_partial_stores(kn_emitter *e, winograd_state *x, LLVMValueRef *out, LLVMValueRef h,
                                LLVMValueRef w, LLVMValueRef column, LLVMValueRef mask) {
    kn_contraction *c = &e->k->contraction;
    int m = x->plan.m;
    for (int i = 0; i < m * m; i++)
        kn_emit_store(e, out[i], kn_float_address(e, x->tile, kn_i64(e, i * e->width)), NULL,
                      RT_float32, e->width, NULL);
    kn_loop lines, places;
    LLVMValueRef width = kn_i64(e, m);
    kn_loop_begin(e, &lines, kn_i64(e, 0), kn_min(e, width, kn_sub(e, kn_size(e, c->out_h), h)), 1, NULL, 0);
    LLVMValueRef line = kn_add(e, h, lines.index);
    line = kn_add(e, line, kn_mul(e, x->image_index, kn_size(e, c->out_h)));
    LLVMValueRef row = kn_add(e, kn_mul(e, line, kn_size(e, c->out_w)), w);
    LLVMValueRef from = kn_element(e, x->tile, lines.index, m * e->width * 4);
    kn_loop_begin(e, &places, kn_i64(e, 0), kn_min(e, width, kn_sub(e, kn_size(e, c->out_w), w)), 1, NULL, 0);
    LLVMValueRef v = kn_emit_load(e, kn_element(e, from, places.index, e->width * 4), NULL,
                                  RT_float32, e->width, NULL);
    kn_emit_tile_stores(e, 1, 1, &v, kn_add(e, row, places.index), column, &mask, NULL);
    kn_loop_end(e, &places, NULL);
    kn_loop_end(e, &lines, NULL);
}

static void emit_output_vector(kn_emitter *e, winograd_state *x, LLVMValueRef from, LLVMValueRef h,
                               LLVMValueRef w, LLVMValueRef column, LLVMValueRef mask) {
    kn_contraction *c = &e->k->contraction;
    int m = x->plan.m, places = x->plan.n * x->plan.n;
    LLVMValueRef in[MAX_SIDE * MAX_SIDE] = {NULL}, out[MAX_SIDE * MAX_SIDE] = {NULL};
    for (int i = 0; i < places; i++)
        in[i] = kn_emit_load(e, kn_address(e, from, kn_i64(e, i * x->plan.sum_plane)), NULL,
                             RT_float32, e->width, NULL);
    transform(e, m, m, false, in, out);
    if (!kn_fits_registers(e->k, m * m)) {
        emit_partial_stores(e, x, out, h, w, column, mask);
        return;
    }
    bool all_whole = rt_dim_is_constant(c->out_h) && c->out_h % m == 0 &&
                     rt_dim_is_constant(c->out_w) && c->out_w % m == 0;
    LLVMBasicBlockRef whole = NULL, part = NULL, done = NULL;
    if (!all_whole) {
        whole = LLVMAppendBasicBlockInContext(e->unit->context, e->function, "");
        part = LLVMAppendBasicBlockInContext(e->unit->context, e->function, "");
        done = LLVMAppendBasicBlockInContext(e->unit->context, e->function, "");
        LLVMValueRef is_whole = LLVMBuildAnd(
            e->b,
            LLVMBuildICmp(e->b, LLVMIntSLE, h, kn_sub(e, kn_size(e, c->out_h), kn_i64(e, m)), ""),
            LLVMBuildICmp(e->b, LLVMIntSLE, w, kn_sub(e, kn_size(e, c->out_w), kn_i64(e, m)), ""), "");
        LLVMBuildCondBr(e->b, is_whole, whole, part);
        LLVMPositionBuilderAtEnd(e->b, whole);
    }
    int64_t at[MAX_SIDE * MAX_SIDE];
    LLVMValueRef line = kn_add(e, h, kn_mul(e, x->image_index, kn_size(e, c->out_h)));
    LLVMValueRef width = kn_size(e, c->out_w), row = kn_add(e, kn_mul(e, line, width), w);
    if (rt_dim_is_constant(c->out_w)) {
        for (int i = 0; i < m * m; i++)
            at[i] = i / m * c->out_w + i % m;
        kn_emit_tile_stores(e, m * m, 1, out, row, column, &mask, at);
    }
    for (int i = 0; i < m && !rt_dim_is_constant(c->out_w); i++, row = kn_add(e, row, width))
        kn_emit_tile_stores(e, m, 1, out + i * m, row, column, &mask, NULL);
    if (!all_whole) {
        LLVMBuildBr(e->b, done);
        LLVMPositionBuilderAtEnd(e->b, part);
        emit_partial_stores(e, x, out, h, w, column, mask);
        LLVMBuildBr(e->b, done);
        LLVMPositionBuilderAtEnd(e->b, done);
    }
}

static void emit_outputs(kn_emitter *e, winograd_state *x, LLVMValueRef column, int vectors,
                         LLVMValueRef mask) {
    kn_loop tile, loop;
    int whole = mask ? vectors - 1 : vectors;
    LLVMValueRef h, w;
    tiles_begin(e, x, &tile, &h, &w);
    LLVMValueRef from = kn_element(e, x->sums, tile.index, vectors * e->width * 4);
    kn_loop_begin(e, &loop, kn_i64(e, 0), kn_i64(e, whole * e->width), e->width, NULL, 0);
    emit_output_vector(e, x, kn_float_address(e, from, loop.index), h, w,
                       kn_add(e, column, loop.index), NULL);
    kn_loop_end(e, &loop, NULL);
    if (mask) {
        LLVMValueRef last = kn_i64(e, whole * e->width);
        emit_output_vector(e, x, kn_float_address(e, from, last), h, w, kn_add(e, column, last), mask);
    }
    tiles_end(e, x, &tile, h, w);
}

/* ---- items ---- */

static void emit_steps(kn_emitter *e, winograd_state *x, LLVMValueRef group) {
    const winograd_plan *p = &x->plan;
    int64_t columns = e->k->dims[e->k->contraction.batch_count + 1].size;
    int64_t width = p->vectors * e->width, whole = columns / width, rest = columns % width;
    LLVMValueRef begin = kn_mul(e, group, kn_i64(e, p->group));
    LLVMValueRef end = kn_min(e, kn_add(e, begin, kn_i64(e, p->group)), kn_i64(e, p->steps));
    kn_loop step;
    if (whole > 0) {
        kn_loop_begin(e, &step, begin, kn_min(e, end, kn_i64(e, whole)), 1, NULL, 0);
        LLVMValueRef column = kn_mul(e, step.index, kn_i64(e, width));
        emit_products(e, x, column, p->vectors);
        emit_outputs(e, x, column, p->vectors, NULL);
        kn_loop_end(e, &step, NULL);
    }
    if (rest > 0) {
        int vectors = (int)kn_ceil_div(rest, e->width);
        LLVMValueRef column = kn_i64(e, whole * width), mask = NULL;
        kn_loop_begin(e, &step, kn_max(e, begin, kn_i64(e, whole)), end, 1, NULL, 0);
        if (rest % e->width)
            mask = kn_lane_mask(e, kn_i64(e, rest % e->width), e->width);
        emit_products(e, x, column, vectors);
        emit_outputs(e, x, column, vectors, mask);
        kn_loop_end(e, &step, NULL);
    }
}

/* The tiles of block number `block`, and how many rows its products have. */
static void choose_block(kn_emitter *e, winograd_state *x, LLVMValueRef block) {
    const winograd_plan *p = &x->plan;
    LLVMValueRef tiles = kn_size(e, p->tiles), blocks = kn_size(e, p->blocks);
    if (!p->is_symbolic) {
        x->first = kn_mul(e, block, kn_i64(e, p->block));
        x->count = kn_min(e, kn_i64(e, p->block), kn_sub(e, tiles, x->first));
        return;
    }
    /* Blocks are even, but for whole products. */
    LLVMValueRef most = kn_i64(e, p->rows[0] - 1), one = kn_i64(e, 1);
    LLVMValueRef size = LLVMBuildUDiv(e->b, kn_add(e, tiles, kn_sub(e, blocks, one)), blocks, "");
    size = LLVMBuildUDiv(e->b, kn_add(e, size, most), kn_i64(e, p->rows[0]), "");
    size = kn_mul(e, size, kn_i64(e, p->rows[0]));
    x->first = kn_mul(e, block, size);
    x->count = kn_min(e, size, kn_sub(e, tiles, x->first));
    x->row_tiles = LLVMBuildUDiv(e->b, kn_add(e, x->count, most), kn_i64(e, p->rows[0]), "");
    x->rows = kn_sub(e, kn_add(e, x->count, x->row_tiles), one);
    x->rows = LLVMBuildUDiv(e->b, x->rows, x->row_tiles, "");
}

void kn_emit_winograd(kn_emitter *e) {
    kn_kernel *k = e->k;
    kn_contraction *c = &k->contraction;
    winograd_state x = {0};
    make_plan(k, e->unit->target, &x.plan);
    const winograd_plan *p = &x.plan;
    x.table = e->scratch;
    x.tile = kn_address(e, x.table, kn_i64(e, p->table_bytes));
    x.left = kn_address(e, x.tile, kn_i64(e, p->tile_bytes));
    x.sums = kn_address(e, x.left, kn_i64(e, p->left_plane * p->n * p->n));
    kn_loop items;
    LLVMValueRef before = kn_i64(e, -1);
    kn_loop_begin(e, &items, e->begin, e->end, 1, &before, 1);
    LLVMValueRef place = LLVMBuildUDiv(e->b, items.index, kn_i64(e, p->groups), "");
    LLVMValueRef group = kn_sub(e, items.index, kn_mul(e, place, kn_i64(e, p->groups)));
    LLVMValueRef blocks = kn_size(e, p->blocks), batch = LLVMBuildUDiv(e->b, place, blocks, "");
    choose_block(e, &x, kn_sub(e, place, kn_mul(e, batch, blocks)));
    for (int d = c->batch_count - 1; d >= 0; d--) {
        LLVMValueRef size = kn_size(e, k->dims[d].size);
        LLVMValueRef quotient = LLVMBuildUDiv(e->b, batch, size, "");
        e->index[d] = d == 0 ? batch : kn_sub(e, batch, kn_mul(e, quotient, size));
        batch = quotient;
    }
    x.image = kn_batch_address(e, &c->left);
    x.filters = kn_batch_address(e, &c->right);
    /* Items that follow one another share their block's inputs. */
    LLVMBasicBlockRef other = LLVMAppendBasicBlockInContext(e->unit->context, e->function, "");
    LLVMBasicBlockRef same = LLVMAppendBasicBlockInContext(e->unit->context, e->function, "");
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntNE, place, items.phis[0], ""), other, same);
    LLVMPositionBuilderAtEnd(e->b, other);
    emit_inputs(e, &x);
    LLVMBuildBr(e->b, same);
    LLVMPositionBuilderAtEnd(e->b, same);
    emit_steps(e, &x, group);
    kn_loop_end(e, &items, &place);
}

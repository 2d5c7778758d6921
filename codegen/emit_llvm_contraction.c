/* codegen/emit_llvm_contraction.c - matrix products and convolutions around the micro-kernels.
 *
 *   item = (batch, block of rows, group of panels)
 *     addresses of the block's rows (of every tap; padding points at zeros), or a packed copy
 *     for panels of the group            the panel stays in the second-level cache,
 *       for tiles of the block           the rows' block does too
 *         micro-kernel -> tile -> epilogue -> memory
 *
 * Sums run over k in one go and every tile is computed alone, so results do not depend on the
 * number of threads. */
#include "codegen/emit_llvm_kernel.h"

#include <string.h>

enum { PANEL = 16 };

typedef struct contraction_plan {
    int rows, panels;       /* of the main micro-kernel */
    int variants[4];        /* row counts of micro-kernels, widest first */
    int variant_count;
    int64_t block;          /* rows of an item */
    int64_t group;          /* panels of an item; 0: all */
    rt_dim blocks, groups;
    int64_t taps, length;   /* -1: not constant */
    rt_dim table_bytes, packed_left_bytes, packed_right_bytes;
} contraction_plan;

static int64_t known_or(rt_dim d, int64_t otherwise) {
    return rt_dim_is_constant(d) ? d : otherwise;
}

static void choose_tile(const kn_kernel *k, const cg_target_info *target, contraction_plan *p) {
    int lanes = target->vector_bytes / 4;
    int m = k->contraction.batch_count;
    int64_t rows = known_or(k->dims[m].size, 1 << 20), columns = known_or(k->dims[m + 1].size, 1 << 20);
    int64_t panels = (columns + PANEL - 1) / PANEL;
    if (lanes == 16) {
        p->rows = rows < 14 ? (int)rows : 14;
        p->panels = rows <= 2 ? 8 : rows <= 6 ? 4 : 2;
    } else if (lanes == 8) {
        p->rows = rows < 6 ? (int)rows : 6;
        p->panels = rows == 1 ? 4 : rows == 2 ? 2 : 1;
    } else {
        p->rows = rows < 2 ? (int)rows : 2;
        p->panels = rows == 1 ? 2 : 1;
    }
    if (p->rows < 1)
        p->rows = 1;
    while (p->panels > panels && p->panels > 1)
        p->panels /= 2;
    p->variants[0] = p->rows;
    p->variant_count = 1;
    if (!rt_dim_is_constant(k->dims[m].size)) {
        if (p->rows > 4)
            p->variants[p->variant_count++] = 4;
        if (p->rows > 1)
            p->variants[p->variant_count++] = 1;
    } else if (rows % p->rows) {
        p->variants[p->variant_count++] = (int)(rows % p->rows);
    }
}

static void make_plan(kn_kernel *k, const cg_target_info *target, contraction_plan *p) {
    kn_contraction *c = &k->contraction;
    memset(p, 0, sizeof *p);
    choose_tile(k, target, p);
    int m = c->batch_count;
    rt_dim rows = k->dims[m].size, columns = k->dims[m + 1].size;
    p->taps = c->left_kind == KN_LEFT_CONVOLUTION ? c->kernel_h * c->kernel_w : 1;
    p->length = c->left_kind == KN_LEFT_CONVOLUTION ? c->channels : known_or(c->k, -1);
    int64_t sum = known_or(c->k, 512);
    /* How many rows: their memory should stay in the second-level cache beside a panel. */
    int64_t row_bytes = c->left_kind == KN_LEFT_CONVOLUTION
                            ? c->channels * c->stride_h * c->stride_w * 4
                            : sum * 4;
    int64_t right_bytes = known_or(columns, 512) * sum * 4;
    int64_t block = 384 * 1024 / (row_bytes > 0 ? row_bytes : 1);
    if (right_bytes <= 256 * 1024 || c->left_kind == KN_LEFT_PACKED)
        block = block < 8 * p->rows ? block : 8 * p->rows;
    if (block * p->taps * 8 > 64 * 1024)
        block = 64 * 1024 / (p->taps * 8);
    block = block / p->rows * p->rows;
    if (block < p->rows)
        block = p->rows;
    if (!c->right_is_packed && block < 256 / p->rows * p->rows)
        block = 256 / p->rows * p->rows; /* the right side is packed once an item */
    if (rt_dim_is_constant(rows) && rows > 0 && rows < block)
        block = (rows + p->rows - 1) / p->rows * p->rows;
    p->block = block;
    p->blocks = kn_dim_ceil_div(k, rows, block);
    rt_dim items = p->blocks;
    for (int d = 0; d < m; d++)
        items = kn_dim_mul(k, items, k->dims[d].size);
    int64_t panels = (known_or(columns, 0) + PANEL - 1) / PANEL;
    p->groups = 1;
    if (c->right_is_packed && c->left_kind != KN_LEFT_PACKED && rt_dim_is_constant(items) &&
        items > 0 && items < 16 && panels > p->panels) {
        int64_t steps = (panels + p->panels - 1) / p->panels, wanted = (16 + items - 1) / items;
        int64_t per = (steps + wanted - 1) / wanted;
        p->group = per * p->panels;
        p->groups = (panels + p->group - 1) / p->group;
        items = items * p->groups;
    }
    k->work_items = items;
    double flops = 2.0 * (double)sum * (double)block *
                   (double)(p->group ? p->group * PANEL : known_or(columns, 256));
    k->grain = flops > 2e6 ? 1 : (int64_t)(2e6 / (flops + 1)) + 1;
    k->flops = rt_dim_is_constant(items) ? flops * (double)items : 0;
    /* Scratch: addresses, packed rows, packed columns. */
    p->table_bytes = (block * p->taps * 8 + 63) / 64 * 64;
    p->packed_left_bytes = 0;
    if (c->left_kind == KN_LEFT_PACKED) /* room for the last vector of a row */
        p->packed_left_bytes = kn_dim_mul(
            k, kn_dim_ceil_div(k, kn_dim_mul(k, kn_dim_add(k, c->k, 32), block * 4), 64), 64);
    p->packed_right_bytes = 0;
    if (!c->right_is_packed)
        p->packed_right_bytes =
            kn_dim_mul(k, kn_dim_mul(k, kn_dim_ceil_div(k, columns, PANEL), PANEL * 4), c->k);
    k->scratch_bytes =
        kn_dim_add(k, kn_dim_add(k, p->table_bytes, p->packed_left_bytes), p->packed_right_bytes);
}

/* Every symbolic size that the emitter will ask for. */
static ts_status register_sizes(kn_kernel *k, const contraction_plan *p) {
    kn_contraction *c = &k->contraction;
    rt_dim all[64];
    int count = 0;
    for (int d = 0; d < k->dim_count; d++) {
        all[count++] = k->dims[d].size;
        all[count++] = c->left.strides[d];
        all[count++] = c->right.strides[d];
    }
    rt_dim more[] = {c->k, c->left.offset, c->left_k, c->right.offset, c->right_k, p->blocks,
                     p->groups, k->work_items, k->scratch_bytes, c->image_stride, c->h_stride,
                     c->w_stride, c->input_h, c->input_w, c->out_h, c->out_w,
                     p->packed_left_bytes, p->table_bytes,
                     kn_dim_ceil_div(k, k->dims[c->batch_count + 1].size, PANEL),
                     kn_dim_add(k, c->k, 32)};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        all[count++] = more[i];
    for (int i = 0; i < count; i++) {
        if (all[i] == RT_DIM_UNKNOWN)
            return ts_error_make(TS_ERR_UNSUPPORTED, "a contraction needs sizes that are known");
        if (!rt_dim_is_constant(all[i]))
            kn_dim_param(k, all[i]);
    }
    return NULL;
}

ts_status kn_plan_contraction(kn_kernel *k, const cg_target_info *target) {
    contraction_plan p;
    make_plan(k, target, &p);
    return register_sizes(k, &p);
}

/* ---- addresses of rows ---- */

typedef struct pieces {
    contraction_plan plan;
    LLVMValueRef left, right;  /* of this batch */
    LLVMValueRef table, packed_left, packed_right, tile;
    LLVMValueRef row_begin, row_end; /* rows of this block */
} pieces;

static LLVMValueRef float_address(kn_emitter *e, LLVMValueRef base, LLVMValueRef index) {
    return kn_element(e, base, index, 4);
}

static LLVMValueRef batch_address(kn_emitter *e, const kn_access *a) {
    LLVMValueRef offset = kn_size(e, a->offset);
    for (int d = 0; d < e->k->contraction.batch_count; d++)
        offset = kn_add(e, offset, kn_mul(e, e->index[d], kn_size(e, a->strides[d])));
    return float_address(e, e->buffers[a->buffer], offset);
}

/* Splits m into image, out_h, out_w. */
static void split_row(kn_emitter *e, LLVMValueRef m, LLVMValueRef out[3]) {
    kn_contraction *c = &e->k->contraction;
    LLVMValueRef ow = kn_size(e, c->out_w), oh = kn_size(e, c->out_h);
    LLVMValueRef line = LLVMBuildUDiv(e->b, m, ow, "");
    out[2] = kn_sub(e, m, kn_mul(e, line, ow));
    out[0] = LLVMBuildUDiv(e->b, line, oh, "");
    out[1] = kn_sub(e, line, kn_mul(e, out[0], oh));
}

static LLVMValueRef origin(kn_emitter *e, LLVMValueRef out, int64_t stride, int64_t pad) {
    return kn_sub(e, kn_mul(e, out, kn_i64(e, stride)), kn_i64(e, pad));
}

static LLVMValueRef is_inside(kn_emitter *e, LLVMValueRef i, rt_dim size) {
    return LLVMBuildICmp(e->b, LLVMIntULT, i, kn_size(e, size), "");
}

static void store_pointer(kn_emitter *e, LLVMValueRef table, LLVMValueRef slot, LLVMValueRef value) {
    LLVMBuildStore(e->b, value, kn_element(e, table, slot, 8));
}

/* table[tile][tap][row of tile] */
static void emit_convolution_addresses(kn_emitter *e, pieces *x, LLVMValueRef r, LLVMValueRef m) {
    kn_contraction *c = &e->k->contraction;
    const contraction_plan *p = &x->plan;
    LLVMValueRef out[3];
    split_row(e, m, out);
    LLVMValueRef image = kn_mul(e, out[0], kn_size(e, c->image_stride));
    LLVMValueRef h0 = origin(e, out[1], c->stride_h, c->pad_h);
    LLVMValueRef w0 = origin(e, out[2], c->stride_w, c->pad_w);
    LLVMValueRef rows = kn_i64(e, p->rows);
    LLVMValueRef tile = LLVMBuildUDiv(e->b, r, rows, "");
    LLVMValueRef slot = kn_add(e, kn_mul(e, tile, kn_i64(e, p->taps * p->rows)),
                               kn_sub(e, r, kn_mul(e, tile, rows)));
    kn_loop h, w;
    kn_loop_begin(e, &h, kn_i64(e, 0), kn_i64(e, c->kernel_h), 1, &slot, 1);
    LLVMValueRef ih = kn_add(e, h0, kn_mul(e, h.index, kn_i64(e, c->dilation_h)));
    LLVMValueRef h_in = is_inside(e, ih, c->input_h);
    LLVMValueRef line = kn_add(e, image, kn_mul(e, ih, kn_size(e, c->h_stride)));
    slot = h.phis[0];
    kn_loop_begin(e, &w, kn_i64(e, 0), kn_i64(e, c->kernel_w), 1, &slot, 1);
    LLVMValueRef iw = kn_add(e, w0, kn_mul(e, w.index, kn_i64(e, c->dilation_w)));
    LLVMValueRef inside = LLVMBuildAnd(e->b, h_in, is_inside(e, iw, c->input_w), "");
    LLVMValueRef pixel = kn_add(e, line, kn_mul(e, iw, kn_size(e, c->w_stride)));
    LLVMValueRef address = LLVMBuildSelect(e->b, inside, float_address(e, x->left, pixel),
                                           e->buffers[c->zeros_buffer], "");
    store_pointer(e, x->table, w.phis[0], address);
    LLVMValueRef next = kn_add(e, w.phis[0], rows);
    kn_loop_end(e, &w, &next);
    next = w.exit_phis[0];
    kn_loop_end(e, &h, &next);
}

/* One row of the image as a row of the matrix, k in the order (channel, kernel_h, kernel_w), lanes
 * along kernel_w. */
static void emit_packed_patch(kn_emitter *e, pieces *x, LLVMValueRef row, LLVMValueRef m) {
    kn_contraction *c = &e->k->contraction;
    LLVMValueRef out[3];
    split_row(e, m, out);
    LLVMValueRef image = kn_mul(e, out[0], kn_size(e, c->image_stride));
    LLVMValueRef h0 = origin(e, out[1], c->stride_h, c->pad_h);
    LLVMValueRef w0 = origin(e, out[2], c->stride_w, c->pad_w);
    int width = e->width;
    while (width / 2 >= c->kernel_w && width > 4)
        width /= 2;
    LLVMValueRef lanes[64];
    for (int i = 0; i < width; i++)
        lanes[i] = kn_i64(e, i * c->dilation_w);
    LLVMValueRef step = kn_size(e, c->w_stride);
    LLVMValueRef stride = kn_mul(e, step, kn_i64(e, c->dilation_w));
    bool adjacent = c->w_stride == 1 && c->dilation_w == 1;
    kn_loop channel, h;
    kn_loop_begin(e, &channel, kn_i64(e, 0), kn_i64(e, c->channels), 1, &row, 1);
    LLVMValueRef plane = kn_add(e, image, kn_mul(e, channel.index, kn_size(e, c->left_k)));
    LLVMValueRef to = channel.phis[0];
    kn_loop_begin(e, &h, kn_i64(e, 0), kn_i64(e, c->kernel_h), 1, &to, 1);
    LLVMValueRef ih = kn_add(e, h0, kn_mul(e, h.index, kn_i64(e, c->dilation_h)));
    LLVMValueRef h_in = kn_splat(e, is_inside(e, ih, c->input_h), width);
    LLVMValueRef line = kn_add(e, plane, kn_mul(e, ih, kn_size(e, c->h_stride)));
    for (int64_t kw = 0; kw < c->kernel_w; kw += width) {
        LLVMValueRef iw = kn_add(e, w0, kn_i64(e, kw * c->dilation_w));
        LLVMValueRef each = LLVMBuildAdd(e->b, kn_splat(e, iw, width),
                                         LLVMConstVector(lanes, (unsigned)width), "");
        LLVMValueRef in = LLVMBuildICmp(e->b, LLVMIntULT, each,
                                        kn_splat(e, kn_size(e, c->input_w), width), "");
        in = LLVMBuildAnd(e->b, in, h_in, "");
        if (c->kernel_w - kw < width) {
            LLVMValueRef some[64];
            for (int i = 0; i < width; i++)
                some[i] = LLVMConstInt(e->unit->i1, i < c->kernel_w - kw, 0);
            in = LLVMBuildAnd(e->b, in, LLVMConstVector(some, (unsigned)width), "");
        }
        LLVMValueRef from = float_address(e, x->left, kn_add(e, line, kn_mul(e, iw, step)));
        LLVMValueRef v = kn_emit_load(e, from, adjacent ? NULL : stride, RT_float32, width, in);
        /* Lanes past the kernel are zeros that the next line overwrites; the row has room. */
        kn_emit_store(e, v, float_address(e, h.phis[0], kn_i64(e, kw)), NULL, RT_float32, width, NULL);
    }
    LLVMValueRef next = float_address(e, h.phis[0], kn_i64(e, c->kernel_w));
    kn_loop_end(e, &h, &next);
    next = h.exit_phis[0];
    kn_loop_end(e, &channel, &next);
}

static void emit_packed_row(kn_emitter *e, pieces *x, LLVMValueRef row, LLVMValueRef from) {
    kn_contraction *c = &e->k->contraction;
    (void)x;
    LLVMValueRef n = kn_size(e, c->k), stride = kn_size(e, c->left_k);
    kn_loop loop;
    kn_loop_begin(e, &loop, kn_i64(e, 0), n, e->width, NULL, 0);
    LLVMValueRef mask = kn_lane_mask(e, kn_sub(e, n, loop.index), e->width);
    LLVMValueRef v = kn_emit_load(e, float_address(e, from, kn_mul(e, loop.index, stride)),
                                  c->left_k == 1 ? NULL : stride, RT_float32, e->width, mask);
    kn_emit_store(e, v, float_address(e, row, loop.index), NULL, RT_float32, e->width, NULL);
    kn_loop_end(e, &loop, NULL);
}

static void emit_rows(kn_emitter *e, pieces *x) {
    kn_contraction *c = &e->k->contraction;
    int m_dim = c->batch_count;
    LLVMValueRef last = kn_sub(e, kn_size(e, e->k->dims[m_dim].size), kn_i64(e, 1));
    LLVMValueRef count = kn_sub(e, x->row_end, x->row_begin);
    LLVMValueRef tiles = LLVMBuildUDiv(e->b, kn_add(e, count, kn_i64(e, x->plan.rows - 1)),
                                       kn_i64(e, x->plan.rows), "");
    kn_loop loop;
    kn_loop_begin(e, &loop, kn_i64(e, 0), kn_mul(e, tiles, kn_i64(e, x->plan.rows)), 1, NULL, 0);
    LLVMValueRef m = kn_min(e, kn_add(e, x->row_begin, loop.index), last);
    LLVMValueRef from = float_address(e, x->left, kn_mul(e, m, kn_size(e, c->left.strides[m_dim])));
    if (c->left_kind == KN_LEFT_CONVOLUTION) {
        emit_convolution_addresses(e, x, loop.index, m);
    } else if (c->left_kind == KN_LEFT_ROWS) {
        store_pointer(e, x->table, loop.index, from);
    } else {
        LLVMValueRef length = kn_size(e, kn_dim_add(e->k, c->k, 32));
        LLVMValueRef row = float_address(e, x->packed_left, kn_mul(e, loop.index, length));
        store_pointer(e, x->table, loop.index, row);
        if (c->kernel_h > 0)
            emit_packed_patch(e, x, row, m);
        else
            emit_packed_row(e, x, row, from);
    }
    kn_loop_end(e, &loop, NULL);
}

/* packed[panel][k][16]; columns past the end are zero. */
static void emit_packed_right(kn_emitter *e, pieces *x) {
    kn_contraction *c = &e->k->contraction;
    int n_dim = c->batch_count + 1;
    LLVMValueRef columns = kn_size(e, e->k->dims[n_dim].size), sum = kn_size(e, c->k);
    LLVMValueRef stride = kn_size(e, c->right.strides[n_dim]), k_stride = kn_size(e, c->right_k);
    bool adjacent = c->right.strides[n_dim] == 1;
    kn_loop n, k;
    kn_loop_begin(e, &n, kn_i64(e, 0), columns, PANEL, NULL, 0);
    LLVMValueRef panel = kn_element(e, x->packed_right, kn_mul(e, n.index, sum), 4);
    LLVMValueRef masks[16];
    int vectors = PANEL / e->width;
    for (int v = 0; v < vectors; v++)
        masks[v] = kn_lane_mask(e, kn_max(e, kn_sub(e, columns, kn_add(e, n.index, kn_i64(e, v * e->width))), kn_i64(e, 0)), e->width);
    kn_loop_begin(e, &k, kn_i64(e, 0), sum, 1, NULL, 0);
    LLVMValueRef line = kn_mul(e, k.index, k_stride);
    LLVMValueRef to = kn_element(e, panel, k.index, PANEL * 4);
    for (int v = 0; v < vectors; v++) {
        LLVMValueRef column = kn_add(e, n.index, kn_i64(e, v * e->width));
        LLVMValueRef from = float_address(e, x->right, kn_add(e, line, kn_mul(e, column, stride)));
        LLVMValueRef value = kn_emit_load(e, from, adjacent ? NULL : stride, RT_float32, e->width, masks[v]);
        kn_emit_store(e, value, float_address(e, to, kn_i64(e, v * e->width)), NULL, RT_float32,
                      e->width, NULL);
    }
    kn_loop_end(e, &k, NULL);
    kn_loop_end(e, &n, NULL);
}

/* ---- tiles ---- */

static void call_product(kn_emitter *e, pieces *x, int rows, int panels, LLVMValueRef b,
                         LLVMValueRef table) {
    kn_contraction *c = &e->k->contraction;
    LLVMTypeRef type;
    LLVMValueRef f = kn_microkernel(e->unit, rows, panels, &type);
    LLVMValueRef length = x->plan.length >= 0 ? kn_i64(e, x->plan.length) : kn_size(e, c->k);
    LLVMValueRef args[7] = {b, kn_mul(e, kn_size(e, c->k), kn_i64(e, PANEL * 4)),
                            kn_i64(e, x->plan.taps), length, table,
                            kn_i64(e, x->plan.rows * 8), x->tile};
    LLVMBuildCall2(e->b, type, f, args, 7, "");
}

/* The micro-kernel for `rows` valid rows and `panels` panels: a chain of tests over what exists. */
static void emit_product(kn_emitter *e, pieces *x, LLVMValueRef rows, LLVMValueRef is_wide,
                         LLVMValueRef b, LLVMValueRef table) {
    LLVMContextRef c = e->unit->context;
    const contraction_plan *p = &x->plan;
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(c, e->function, "");
    for (int width = 0; width < (p->panels > 1 ? 2 : 1); width++) {
        int panels = width == 0 ? p->panels : 1;
        LLVMBasicBlockRef other = NULL;
        if (p->panels > 1 && width == 0) {
            LLVMBasicBlockRef here = LLVMAppendBasicBlockInContext(c, e->function, "");
            other = LLVMAppendBasicBlockInContext(c, e->function, "");
            LLVMBuildCondBr(e->b, is_wide, here, other);
            LLVMPositionBuilderAtEnd(e->b, here);
        }
        /* Narrowest first: the first that holds all rows. */
        for (int v = p->variant_count - 1; v > 0; v--) {
            LLVMBasicBlockRef fits = LLVMAppendBasicBlockInContext(c, e->function, "");
            LLVMBasicBlockRef next = LLVMAppendBasicBlockInContext(c, e->function, "");
            LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLE, rows, kn_i64(e, p->variants[v]), ""),
                            fits, next);
            LLVMPositionBuilderAtEnd(e->b, fits);
            call_product(e, x, p->variants[v], panels, b, table);
            LLVMBuildBr(e->b, done);
            LLVMPositionBuilderAtEnd(e->b, next);
        }
        call_product(e, x, p->rows, panels, b, table);
        LLVMBuildBr(e->b, done);
        if (other)
            LLVMPositionBuilderAtEnd(e->b, other);
    }
    LLVMPositionBuilderAtEnd(e->b, done);
}

static void emit_epilogue_vector(kn_emitter *e, LLVMValueRef tile_row, LLVMValueRef column0,
                                 LLVMValueRef index) {
    e->index[e->k->dim_count - 1] = index;
    e->tile = float_address(e, tile_row, kn_sub(e, index, column0));
    for (int i = 0; i < e->k->store_count; i++)
        kn_emit_store_node(e, i);
}

static bool is_short_epilogue(const kn_kernel *k, int vectors) {
    int cost = 0;
    for (int i = 0; i < k->node_count; i++)
        if (k->nodes[i].is_needed)
            cost += kn_scalar_is_heavy(k->nodes[i].code) ? 30 : 1;
    return cost * vectors <= 64;
}

static void emit_epilogue(kn_emitter *e, pieces *x, LLVMValueRef m, LLVMValueRef rows,
                          LLVMValueRef column, LLVMValueRef panels) {
    kn_kernel *k = e->k;
    int m_dim = k->contraction.batch_count;
    rt_dim columns = k->dims[m_dim + 1].size;
    LLVMValueRef width = kn_mul(e, panels, kn_i64(e, PANEL));
    LLVMValueRef end = kn_min(e, kn_add(e, column, width), kn_size(e, columns));
    int w = e->width;
    kn_loop row, loop;
    kn_loop_begin(e, &row, kn_i64(e, 0), rows, 1, NULL, 0);
    e->index[m_dim] = kn_add(e, m, row.index);
    kn_prepare_bases(e, (1u << (m_dim + 1)) - 1);
    LLVMValueRef tile_row = float_address(e, x->tile, kn_mul(e, row.index, width));
    /* A whole tile of a short epilogue: no inner loop. */
    LLVMBasicBlockRef next_row = NULL;
    int vectors = x->plan.panels * PANEL / w;
    if (is_short_epilogue(k, vectors) && known_or(columns, 1 << 20) >= x->plan.panels * PANEL) {
        LLVMContextRef c = e->unit->context;
        LLVMBasicBlockRef whole = LLVMAppendBasicBlockInContext(c, e->function, "");
        LLVMBasicBlockRef part = LLVMAppendBasicBlockInContext(c, e->function, "");
        next_row = LLVMAppendBasicBlockInContext(c, e->function, "");
        LLVMValueRef full = kn_add(e, column, kn_i64(e, x->plan.panels * PANEL));
        LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntEQ, full, end, ""), whole, part);
        LLVMPositionBuilderAtEnd(e->b, whole);
        for (int v = 0; v < vectors; v++) {
            size_t bytes = (size_t)k->node_count * sizeof *e->memo;
            LLVMValueRef *saved = ts_arena_alloc(e->unit->arena, bytes + 1);
            memcpy(saved, e->memo, bytes);
            emit_epilogue_vector(e, tile_row, column, kn_add(e, column, kn_i64(e, v * w)));
            memcpy(e->memo, saved, bytes);
        }
        LLVMBuildBr(e->b, next_row);
        LLVMPositionBuilderAtEnd(e->b, part);
    }
    kn_loop_begin(e, &loop, column, kn_sub(e, end, kn_i64(e, w - 1)), w, NULL, 0);
    emit_epilogue_vector(e, tile_row, column, loop.index);
    kn_loop_end(e, &loop, NULL);
    if (!rt_dim_is_constant(columns) || columns % w != 0) {
        LLVMValueRef start = LLVMBuildAnd(e->b, end, kn_i64(e, -(int64_t)w), "");
        kn_loop_begin(e, &loop, start, end, w, NULL, 0);
        e->mask = kn_lane_mask(e, kn_sub(e, end, loop.index), w);
        emit_epilogue_vector(e, tile_row, column, loop.index);
        e->mask = NULL;
        kn_loop_end(e, &loop, NULL);
    }
    if (next_row) {
        LLVMBuildBr(e->b, next_row);
        LLVMPositionBuilderAtEnd(e->b, next_row);
    }
    kn_loop_end(e, &row, NULL);
}

static void emit_item(kn_emitter *e, pieces *x, LLVMValueRef panel_begin, LLVMValueRef panel_end) {
    kn_contraction *c = &e->k->contraction;
    const contraction_plan *p = &x->plan;
    LLVMValueRef panel_bytes = kn_mul(e, kn_size(e, c->k), kn_i64(e, PANEL * 4));
    LLVMValueRef wide = kn_i64(e, p->panels), one = kn_i64(e, 1);
    /* The panel loop's step varies: wide while it fits, then single panels. */
    LLVMValueRef whole = LLVMBuildUDiv(e->b, kn_sub(e, panel_end, panel_begin), wide, "");
    LLVMValueRef rest = kn_sub(e, kn_sub(e, panel_end, panel_begin), kn_mul(e, whole, wide));
    kn_loop steps, tiles;
    kn_loop_begin(e, &steps, kn_i64(e, 0), kn_add(e, whole, rest), 1, &panel_begin, 1);
    LLVMValueRef panel = steps.phis[0];
    LLVMValueRef is_wide = LLVMBuildICmp(e->b, LLVMIntSLT, steps.index, whole, "");
    LLVMValueRef panels = LLVMBuildSelect(e->b, is_wide, wide, one, "");
    LLVMValueRef b = kn_address(e, x->right, kn_mul(e, panel, panel_bytes));
    kn_loop_begin(e, &tiles, kn_i64(e, 0), kn_sub(e, x->row_end, x->row_begin), p->rows, NULL, 0);
    LLVMValueRef m = kn_add(e, x->row_begin, tiles.index);
    LLVMValueRef rows = kn_min(e, kn_sub(e, x->row_end, m), kn_i64(e, p->rows));
    LLVMValueRef table = kn_element(e, x->table, kn_mul(e, tiles.index, kn_i64(e, p->taps)), 8);
    emit_product(e, x, rows, is_wide, b, table);
    emit_epilogue(e, x, m, rows, kn_mul(e, panel, kn_i64(e, PANEL)), panels);
    kn_loop_end(e, &tiles, NULL);
    LLVMValueRef next = kn_add(e, panel, panels);
    kn_loop_end(e, &steps, &next);
}

void kn_emit_contraction(kn_emitter *e) {
    kn_kernel *k = e->k;
    kn_contraction *c = &k->contraction;
    pieces x;
    memset(&x, 0, sizeof x);
    make_plan(k, e->unit->target, &x.plan);
    const contraction_plan *p = &x.plan;
    LLVMValueRef tile_floats = LLVMConstInt(e->unit->i32, (unsigned)(p->rows * p->panels * PANEL), 0);
    x.tile = LLVMBuildArrayAlloca(e->b, e->unit->f32, tile_floats, "");
    LLVMSetAlignment(x.tile, 64);
    x.table = e->scratch;
    x.packed_left = kn_address(e, e->scratch, kn_size(e, p->table_bytes));
    x.packed_right = kn_address(e, x.packed_left, kn_size(e, p->packed_left_bytes));
    kn_loop items;
    kn_loop_begin(e, &items, e->begin, e->end, 1, NULL, 0);
    LLVMValueRef rest = items.index;
    LLVMValueRef panel_begin = kn_i64(e, 0);
    LLVMValueRef panel_end = kn_size(e, kn_dim_ceil_div(k, k->dims[c->batch_count + 1].size, PANEL));
    if (p->group) {
        LLVMValueRef groups = kn_size(e, p->groups), quotient = LLVMBuildUDiv(e->b, rest, groups, "");
        panel_begin = kn_mul(e, kn_sub(e, rest, kn_mul(e, quotient, groups)), kn_i64(e, p->group));
        panel_end = kn_min(e, kn_add(e, panel_begin, kn_i64(e, p->group)), panel_end);
        rest = quotient;
    }
    LLVMValueRef blocks = kn_size(e, p->blocks), batch = LLVMBuildUDiv(e->b, rest, blocks, "");
    x.row_begin = kn_mul(e, kn_sub(e, rest, kn_mul(e, batch, blocks)), kn_i64(e, p->block));
    x.row_end = kn_min(e, kn_add(e, x.row_begin, kn_i64(e, p->block)),
                       kn_size(e, k->dims[c->batch_count].size));
    for (int d = c->batch_count - 1; d >= 0; d--) {
        LLVMValueRef size = kn_size(e, k->dims[d].size);
        LLVMValueRef quotient = LLVMBuildUDiv(e->b, batch, size, "");
        e->index[d] = d == 0 ? batch : kn_sub(e, batch, kn_mul(e, quotient, size));
        batch = quotient;
    }
    x.left = batch_address(e, &c->left);
    x.right = batch_address(e, &c->right);
    if (!c->right_is_packed) {
        emit_packed_right(e, &x);
        x.right = x.packed_right;
    }
    emit_rows(e, &x);
    emit_item(e, &x, panel_begin, panel_end);
    kn_loop_end(e, &items, NULL);
}

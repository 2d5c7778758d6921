/* codegen/emit_llvm_integer.c - products of bytes with int8 weights, sums in int32.
 *
 *   item = (batch, block of rows, group of panels)
 *     rows of the block, copied: patches of the image side by side, padding is the zero point
 *     for panels of the group
 *       for tiles of the block
 *         sums in registers -> epilogue -> memory
 *
 * Two ways, the same sums. Without VNNI a row is copied as int16 less the zero point (so that padding is
 * 0): a pair of terms of 16 weights is widened and goes with a pair of the row into vpmaddwd, which
 * multiplies and adds exactly (vpmaddubsw would cut sums to 16 bits). A copy costs a load, a conversion, a
 * subtraction and a store for 16 terms, the product columns / 8 instructions a term. With VNNI a row
 * is copied as bytes and four terms go into vpdpbusd; the zero point times the sum of each column is
 * taken off at the end. */
#include "codegen/compile_llvm.h"
#include "codegen/emit_llvm_contraction.h"
#include "runtime/format/tsm.h"

#include <string.h>

enum { STEP = 4 }; /* terms: padding of k */

typedef struct integer_plan {
    int rows, vectors; /* of the main micro-kernel */
    int variants[3];   /* rows of micro-kernels, widest first */
    int variant_count;
    bool in_registers, has_dot;
    int64_t block, group; /* rows, panels of an item; 0: all */
    rt_dim blocks;
    int64_t groups, columns, length, row_bytes, element_bytes;
} integer_plan;

typedef struct integer_pieces {
    integer_plan plan;
    LLVMValueRef left, right, rows, tile; /* of this batch; copied rows; room for a tile */
    LLVMValueRef zero;                    /* int32 */
    LLVMValueRef row_begin, row_end;
} integer_pieces;

static int64_t padded(int64_t k) { return (k + STEP - 1) / STEP * STEP; }

int64_t kn_integer_panel_bytes(int64_t k) { return padded(k) * KN_PANEL + KN_PANEL * 4; }

/* ---- the plan ---- */

static void choose_tile(const kn_kernel *k, const cg_target_info *target, integer_plan *p) {
    int lanes = target->vector_bytes / 4, m = k->contraction.batch_count, most;
    bool is_known = rt_dim_is_constant(k->dims[m].size);
    int64_t rows = is_known ? k->dims[m].size : 1 << 20, needed = (p->columns + lanes - 1) / lanes;
    if (lanes == 16) {
        most = 14;
        p->vectors = rows <= 2 ? 8 : rows <= 7 ? 4 : rows <= 9 ? 3 : 2;
    } else if (lanes == 8) {
        most = needed == 1 ? 12 : 6;
        p->vectors = rows == 1 ? 8 : rows == 2 ? 4 : 2;
    } else {
        most = target->vector_registers == 32 ? 6 : 2;
        p->vectors = rows == 1 ? 8 : 4;
    }
    if (needed < p->vectors)
        p->vectors = needed > 0 ? (int)needed : 1;
    p->rows = rows < 1 ? 1 : rows < most ? (int)rows : most;
    p->variants[p->variant_count++] = p->rows;
    if (!is_known) {
        if (p->rows > 4)
            p->variants[p->variant_count++] = 4;
        if (p->rows > 1)
            p->variants[p->variant_count++] = 1;
    } else if (rows % p->rows) {
        p->variants[p->variant_count++] = (int)(rows % p->rows);
    }
    p->in_registers = kn_fits_registers(k, p->rows * p->vectors);
}

static void make_plan(kn_kernel *k, const cg_target_info *target, integer_plan *p) {
    const kn_contraction *c = &k->contraction;
    int m = c->batch_count;
    rt_dim rows = k->dims[m].size;
    memset(p, 0, sizeof *p);
    p->columns = k->dims[m + 1].size;
    p->has_dot = target->has_vnni;
    p->element_bytes = p->has_dot ? 1 : 2;
    p->length = padded(c->k);
    choose_tile(k, target, p);
    /* Whole vectors, and no two rows in one set of the cache. */
    p->row_bytes = (p->length * p->element_bytes + 63) / 64 * 64;
    if (p->row_bytes % 4096 == 0)
        p->row_bytes += 64;
    /* Copied rows of an item stay in the second-level cache beside a panel. */
    int64_t block = 128 * 1024 / p->row_bytes, most = 16 * p->rows;
    block = block > most ? most : block;
    block = block / p->rows * p->rows;
    if (block < p->rows)
        block = p->rows;
    if (rt_dim_is_constant(rows) && rows > 0 && rows < block)
        block = (rows + p->rows - 1) / p->rows * p->rows;
    p->block = block;
    p->blocks = kn_dim_ceil_div(k, rows, block);
    rt_dim items = p->blocks;
    for (int d = 0; d < m; d++)
        items = kn_dim_mul(k, items, k->dims[d].size);
    /* Few items are shared by columns as well; each copies its rows, so groups are not narrow. */
    enum { LEAST_PANELS = 8 };
    int64_t panels = (p->columns + KN_PANEL - 1) / KN_PANEL, lanes = target->vector_bytes / 4;
    int64_t step = (p->vectors * lanes + KN_PANEL - 1) / KN_PANEL;
    p->groups = 1;
    if (rt_dim_is_constant(items) && items > 0 && items < 16 && panels >= 2 * LEAST_PANELS) {
        int64_t wanted = (16 + items - 1) / items, per = (panels + wanted - 1) / wanted;
        per = per < LEAST_PANELS ? LEAST_PANELS : per;
        p->group = (per + step - 1) / step * step;
        p->groups = (panels + p->group - 1) / p->group;
        items = items * p->groups;
    }
    k->work_items = items;
    double flops = 2.0 * (double)c->k * (double)block *
                   (double)(p->group ? p->group * KN_PANEL : p->columns);
    double cost = flops / 2 + flops / (double)block; /* one row waits for its weights */
    k->grain = cost > 2e6 ? 1 : (int64_t)(2e6 / (cost + 1)) + 1;
    k->flops = rt_dim_is_constant(items) ? flops * (double)items : 0;
    k->scratch_bytes = block * p->row_bytes + 64;
}

ts_status kn_plan_integer(kn_kernel *k, const cg_target_info *target) {
    kn_contraction *c = &k->contraction;
    integer_plan p;
    if (!rt_dim_is_constant(c->k) || !rt_dim_is_constant(k->dims[c->batch_count + 1].size))
        return ts_error_make(TS_ERR_UNSUPPORTED, "a product of bytes needs weights of known sizes");
    make_plan(k, target, &p);
    rt_dim all[3 * KN_MAX_DIMS + 16];
    int count = 0;
    for (int d = 0; d < k->dim_count; d++) {
        all[count++] = k->dims[d].size;
        all[count++] = c->left.strides[d];
        all[count++] = c->right.strides[d];
    }
    rt_dim more[] = {c->left.offset, c->left_k, p.blocks, k->work_items, c->image_stride, c->h_stride,
                     c->w_stride, c->input_h, c->input_w, c->out_h, c->out_w};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        all[count++] = more[i];
    return kn_need_sizes(k, all, (size_t)count, "a product of bytes");
}

/* ---- rows ---- */

static LLVMTypeRef integers(kn_emitter *e, int bytes, int count) {
    LLVMTypeRef t = bytes == 1 ? e->unit->i8 : bytes == 2 ? e->unit->i16 : e->unit->i32;
    return kn_vector_of(t, count);
}

static LLVMValueRef load(kn_emitter *e, LLVMTypeRef type, LLVMValueRef address, unsigned align) {
    LLVMValueRef v = LLVMBuildLoad2(e->b, type, address, "");
    LLVMSetAlignment(v, align);
    return v;
}

static void store(kn_emitter *e, LLVMValueRef v, LLVMValueRef address) {
    LLVMSetAlignment(LLVMBuildStore(e->b, v, address), 1);
}

static bool is_signed(const kn_emitter *e) { return e->k->contraction.left.element == RT_int8; }

/* `width` terms: with a dot product unsigned bytes, else int16 less the zero point. */
static void copy_terms(kn_emitter *e, const integer_pieces *x, LLVMValueRef to, LLVMValueRef from, int width) {
    LLVMValueRef v = load(e, integers(e, 1, width), from, 1);
    if (x->plan.has_dot) {
        if (is_signed(e))
            v = LLVMBuildXor(e->b, v, kn_int_constant(e, RT_int8, width, -128), "");
        store(e, v, to);
        return;
    }
    LLVMTypeRef wide = integers(e, 2, width);
    v = is_signed(e) ? LLVMBuildSExt(e->b, v, wide, "") : LLVMBuildZExt(e->b, v, wide, "");
    LLVMValueRef zero = LLVMBuildTrunc(e->b, x->zero, e->unit->i16, "");
    store(e, LLVMBuildSub(e->b, v, kn_splat(e, zero, width), ""), to);
}

static void fill_terms(kn_emitter *e, const integer_pieces *x, LLVMValueRef to, int width) {
    LLVMValueRef v = LLVMConstNull(integers(e, 2, width));
    if (x->plan.has_dot) {
        v = LLVMBuildTrunc(e->b, x->zero, e->unit->i8, "");
        if (is_signed(e))
            v = LLVMBuildXor(e->b, v, LLVMConstInt(e->unit->i8, 128, 0), "");
        v = kn_splat(e, v, width);
    }
    store(e, v, to);
}

/* `count` adjacent terms; from NULL: padding. */
static void emit_run(kn_emitter *e, const integer_pieces *x, LLVMValueRef to, LLVMValueRef from, int64_t count) {
    int most = e->unit->target->vector_bytes / (int)x->plan.element_bytes;
    int64_t at = count / most * most, bytes = x->plan.element_bytes;
    if (at >= most * 2) {
        kn_loop loop;
        kn_loop_begin(e, &loop, kn_i64(e, 0), kn_i64(e, at), most, NULL, 0);
        LLVMValueRef here = kn_element(e, to, loop.index, bytes);
        if (from)
            copy_terms(e, x, here, kn_element(e, from, loop.index, 1), most);
        else
            fill_terms(e, x, here, most);
        kn_loop_end(e, &loop, NULL);
    } else {
        at = 0;
    }
    for (int width = most; at < count; at += width) {
        while (width > count - at)
            width /= 2;
        LLVMValueRef here = kn_element(e, to, kn_i64(e, at), bytes);
        if (from)
            copy_terms(e, x, here, kn_element(e, from, kn_i64(e, at), 1), width);
        else
            fill_terms(e, x, here, width);
    }
}

/* `count` terms that lie left_k apart. */
static void emit_terms(kn_emitter *e, const integer_pieces *x, LLVMValueRef to, LLVMValueRef from, int64_t count) {
    rt_dim stride = e->k->contraction.left_k;
    if (stride == 1 || !from) {
        emit_run(e, x, to, from, count);
        return;
    }
    kn_loop loop;
    kn_loop_begin(e, &loop, kn_i64(e, 0), kn_i64(e, count), 1, NULL, 0);
    copy_terms(e, x, kn_element(e, to, loop.index, x->plan.element_bytes),
               kn_element(e, from, kn_mul(e, loop.index, kn_size(e, stride)), 1), 1);
    kn_loop_end(e, &loop, NULL);
}

typedef struct branch {
    LLVMBasicBlockRef otherwise, done;
} branch;

static branch branch_begin(kn_emitter *e, LLVMValueRef condition) {
    LLVMContextRef c = e->unit->context;
    LLVMBasicBlockRef then = LLVMAppendBasicBlockInContext(c, e->function, "");
    branch b = {LLVMAppendBasicBlockInContext(c, e->function, ""),
                LLVMAppendBasicBlockInContext(c, e->function, "")};
    LLVMBuildCondBr(e->b, condition, then, b.otherwise);
    LLVMPositionBuilderAtEnd(e->b, then);
    return b;
}

static void branch_else(kn_emitter *e, const branch *b) {
    LLVMBuildBr(e->b, b->done);
    LLVMPositionBuilderAtEnd(e->b, b->otherwise);
}

static void branch_end(kn_emitter *e, const branch *b) {
    LLVMBuildBr(e->b, b->done);
    LLVMPositionBuilderAtEnd(e->b, b->done);
}

/* The taps of one line of the window, pixel by pixel. */
static void emit_pixels(kn_emitter *e, const integer_pieces *x, LLVMValueRef to, LLVMValueRef line,
                        LLVMValueRef line_inside, LLVMValueRef w0) {
    const kn_contraction *c = &e->k->contraction;
    kn_loop taps;
    kn_loop_begin(e, &taps, kn_i64(e, 0), kn_i64(e, c->kernel_w), 1, &to, 1);
    LLVMValueRef at = kn_add(e, w0, kn_mul(e, taps.index, kn_i64(e, c->dilation_w)));
    branch b = branch_begin(e, LLVMBuildAnd(e->b, line_inside, kn_is_inside(e, at, c->input_w), ""));
    emit_terms(e, x, taps.phis[0], kn_element(e, line, kn_mul(e, at, kn_size(e, c->w_stride)), 1), c->channels);
    branch_else(e, &b);
    emit_terms(e, x, taps.phis[0], NULL, c->channels);
    branch_end(e, &b);
    LLVMValueRef next = kn_element(e, taps.phis[0], kn_i64(e, c->channels), x->plan.element_bytes);
    kn_loop_end(e, &taps, &next);
}

/* Row m, in the order (kernel_h, kernel_w, channel). Pixels that are neighbours in memory are one run
 * where none is outside of the image. */
static void emit_patch(kn_emitter *e, const integer_pieces *x, LLVMValueRef row, LLVMValueRef m) {
    const kn_contraction *c = &e->k->contraction;
    LLVMValueRef out[3];
    kn_split_row(e, m, out);
    LLVMValueRef image = kn_mul(e, out[0], kn_size(e, c->image_stride));
    LLVMValueRef h0 = kn_row_origin(e, out[1], c->stride_h, c->pad_h);
    LLVMValueRef w0 = kn_row_origin(e, out[2], c->stride_w, c->pad_w);
    bool has_runs = c->left_k == 1 && c->dilation_w == 1 && c->w_stride == c->channels;
    int64_t run = c->kernel_w * c->channels;
    LLVMValueRef last = kn_add(e, w0, kn_i64(e, (c->kernel_w - 1) * c->dilation_w));
    LLVMValueRef inside = LLVMBuildAnd(e->b, LLVMBuildICmp(e->b, LLVMIntSGE, w0, kn_i64(e, 0), ""),
                                       LLVMBuildICmp(e->b, LLVMIntSLT, last, kn_size(e, c->input_w), ""), "");
    kn_loop h;
    kn_loop_begin(e, &h, kn_i64(e, 0), kn_i64(e, c->kernel_h), 1, &row, 1);
    LLVMValueRef at = kn_add(e, h0, kn_mul(e, h.index, kn_i64(e, c->dilation_h)));
    LLVMValueRef h_in = kn_is_inside(e, at, c->input_h);
    LLVMValueRef line = kn_element(e, x->left, kn_add(e, image, kn_mul(e, at, kn_size(e, c->h_stride))), 1);
    if (has_runs) {
        branch b = branch_begin(e, LLVMBuildAnd(e->b, h_in, inside, ""));
        emit_run(e, x, h.phis[0], kn_element(e, line, kn_mul(e, w0, kn_size(e, c->w_stride)), 1), run);
        branch_else(e, &b);
        emit_pixels(e, x, h.phis[0], line, h_in, w0);
        branch_end(e, &b);
    } else {
        emit_pixels(e, x, h.phis[0], line, h_in, w0);
    }
    LLVMValueRef next = kn_element(e, h.phis[0], kn_i64(e, run), x->plan.element_bytes);
    kn_loop_end(e, &h, &next);
}

/* What lies behind the last term meets weights of 0 there. */
static void emit_rows(kn_emitter *e, const integer_pieces *x) {
    const kn_contraction *c = &e->k->contraction;
    kn_loop loop;
    LLVMValueRef to = x->rows;
    kn_loop_begin(e, &loop, x->row_begin, x->row_end, 1, &to, 1);
    if (c->kernel_h > 0)
        emit_patch(e, x, loop.phis[0], loop.index);
    else
        emit_terms(e, x, loop.phis[0],
                   kn_element(e, x->left, kn_mul(e, loop.index, kn_size(e, c->left.strides[c->batch_count])), 1),
                   c->k);
    LLVMValueRef next = kn_address(e, loop.phis[0], kn_i64(e, x->plan.row_bytes));
    kn_loop_end(e, &loop, &next);
}

/* ---- tiles ---- */

/* Sums of pairs of products of int16, as vpmaddwd. */
static LLVMValueRef multiply_pairs(kn_emitter *e, LLVMValueRef a, LLVMValueRef b) {
    static const char *const names[] = {"llvm.x86.sse2.pmadd.wd", "llvm.x86.avx2.pmadd.wd",
                                        "llvm.x86.avx512.pmaddw.d.512"};
    int w = e->width;
    if (strncmp(e->unit->target->triple, "x86_64", 6) == 0) {
        LLVMValueRef args[2] = {a, b};
        return kn_intrinsic(e, names[w == 4 ? 0 : w == 8 ? 1 : 2], NULL, 0, args, 2);
    }
    LLVMValueRef sum = NULL;
    for (int part = 0; part < 2; part++) {
        LLVMValueRef lanes[64], v[2] = {a, b};
        for (int i = 0; i < w; i++)
            lanes[i] = LLVMConstInt(e->unit->i32, (unsigned)(2 * i + part), 0);
        for (int i = 0; i < 2; i++) {
            v[i] = LLVMBuildShuffleVector(e->b, v[i], LLVMGetUndef(LLVMTypeOf(v[i])),
                                          LLVMConstVector(lanes, (unsigned)w), "");
            v[i] = LLVMBuildSExt(e->b, v[i], integers(e, 4, w), "");
        }
        LLVMValueRef product = LLVMBuildMul(e->b, v[0], v[1], "");
        sum = sum ? LLVMBuildAdd(e->b, sum, product, "") : product;
    }
    return sum;
}

/* sum plus the four products of unsigned bytes of a and signed ones of b in each lane: vpdpbusd, or, at
 * a level that has no such instruction, the same spelt out. */
static LLVMValueRef multiply_fours(kn_emitter *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef sum) {
    if (cg_target_features(e->unit->target) & TSM_CPU_AVX512_VNNI) {
        LLVMValueRef args[3] = {sum, a, b};
        return kn_intrinsic(e, "llvm.x86.avx512.vpdpbusd.512", NULL, 0, args, 3);
    }
    LLVMTypeRef bytes = integers(e, 1, 4 * e->width), wide = integers(e, 4, e->width);
    LLVMValueRef u = LLVMBuildBitCast(e->b, a, bytes, ""), s = LLVMBuildBitCast(e->b, b, bytes, "");
    for (int part = 0; part < 4; part++) {
        LLVMValueRef lanes[64];
        for (int i = 0; i < e->width; i++)
            lanes[i] = LLVMConstInt(e->unit->i32, (unsigned)(4 * i + part), 0);
        LLVMValueRef some = LLVMConstVector(lanes, (unsigned)e->width);
        LLVMValueRef x = LLVMBuildShuffleVector(e->b, u, LLVMGetUndef(bytes), some, "");
        LLVMValueRef y = LLVMBuildShuffleVector(e->b, s, LLVMGetUndef(bytes), some, "");
        LLVMValueRef product = LLVMBuildMul(e->b, LLVMBuildZExt(e->b, x, wide, ""),
                                            LLVMBuildSExt(e->b, y, wide, ""), "");
        sum = LLVMBuildAdd(e->b, sum, product, "");
    }
    return sum;
}

/* Four terms of 16 columns, from pairs to fours. */
static LLVMValueRef dot_columns(kn_emitter *e, LLVMValueRef at) {
    LLVMValueRef pairs = load(e, integers(e, 2, 2 * KN_PANEL), at, 1), lanes[2 * KN_PANEL];
    for (int i = 0; i < 2 * KN_PANEL; i++)
        lanes[i] = LLVMConstInt(e->unit->i32, (unsigned)(i / 2 + i % 2 * KN_PANEL), 0);
    pairs = LLVMBuildShuffleVector(e->b, pairs, LLVMGetUndef(LLVMTypeOf(pairs)),
                                   LLVMConstVector(lanes, 2 * KN_PANEL), "");
    return LLVMBuildBitCast(e->b, pairs, integers(e, 4, KN_PANEL), "");
}

/* Address of vector j's part of a panel at `base`, whose elements take `bytes` a column. */
static LLVMValueRef vector_address(kn_emitter *e, LLVMValueRef base, int64_t panel_bytes, int j, int bytes) {
    int per_panel = KN_PANEL / e->width;
    return kn_address(e, base, kn_i64(e, j / per_panel * panel_bytes + j % per_panel * e->width * bytes));
}

/* STEP terms behind `row` and `right`. */
static void emit_step(kn_emitter *e, const integer_pieces *x, int rows, int vectors, LLVMValueRef row,
                      LLVMValueRef right, LLVMValueRef *sums) {
    const integer_plan *p = &x->plan;
    int64_t panel_bytes = kn_integer_panel_bytes(e->k->contraction.k);
    LLVMValueRef columns[KN_MAX_TILE];
    for (int part = 0; part < (p->has_dot ? 1 : 2); part++) {
        for (int j = 0; j < vectors; j++) {
            LLVMValueRef at = vector_address(e, right, panel_bytes, j, 2);
            if (p->has_dot)
                columns[j] = dot_columns(e, at);
            else
                columns[j] = LLVMBuildSExt(e->b, load(e, integers(e, 1, 2 * e->width),
                                                      kn_address(e, at, kn_i64(e, part * 2 * KN_PANEL)), 1),
                                           integers(e, 2, 2 * e->width), "");
        }
        for (int i = 0; i < rows; i++) {
            LLVMValueRef terms = load(e, e->unit->i32, kn_address(e, row, kn_i64(e, i * p->row_bytes + part * 4)), 4);
            LLVMValueRef a = kn_splat(e, terms, e->width);
            if (!p->has_dot)
                a = LLVMBuildBitCast(e->b, a, integers(e, 2, 2 * e->width), "");
            for (int j = 0; j < vectors; j++) {
                LLVMValueRef *sum = &sums[i * vectors + j];
                *sum = p->has_dot ? multiply_fours(e, a, columns[j], *sum)
                                  : LLVMBuildAdd(e->b, *sum, multiply_pairs(e, a, columns[j]), "");
            }
        }
    }
}

/* What unsigned bytes carry of the zero point. */
static void take_zero_off(kn_emitter *e, const integer_pieces *x, int rows, int vectors, LLVMValueRef right,
                          LLVMValueRef *sums) {
    int64_t panel_bytes = kn_integer_panel_bytes(e->k->contraction.k);
    LLVMValueRef zero = x->zero;
    if (is_signed(e))
        zero = LLVMBuildAdd(e->b, zero, LLVMConstInt(e->unit->i32, 128, 0), "");
    zero = kn_splat(e, zero, e->width);
    right = kn_address(e, right, kn_i64(e, panel_bytes - KN_PANEL * 4));
    for (int j = 0; j < vectors; j++) {
        LLVMValueRef of_column = load(e, integers(e, 4, e->width),
                                      vector_address(e, right, panel_bytes, j, 4), 4);
        LLVMValueRef off = LLVMBuildMul(e->b, of_column, zero, "");
        for (int i = 0; i < rows; i++)
            sums[i * vectors + j] = LLVMBuildSub(e->b, sums[i * vectors + j], off, "");
    }
}

static void emit_sums(kn_emitter *e, const integer_pieces *x, int rows, int vectors, LLVMValueRef row,
                      LLVMValueRef right, LLVMValueRef *sums) {
    enum { MAX_UNROLLED = 4 };
    const integer_plan *p = &x->plan;
    int count = rows * vectors;
    LLVMValueRef first = right;
    for (int i = 0; i < count; i++)
        sums[i] = LLVMConstNull(integers(e, 4, e->width));
    if (p->length <= MAX_UNROLLED * STEP) {
        for (int64_t at = 0; at < p->length; at += STEP)
            emit_step(e, x, rows, vectors, kn_address(e, row, kn_i64(e, at * p->element_bytes)),
                      kn_address(e, right, kn_i64(e, at * KN_PANEL)), sums);
    } else {
        kn_loop loop;
        sums[count] = row;
        sums[count + 1] = right;
        kn_loop_begin(e, &loop, kn_i64(e, 0), kn_i64(e, p->length), STEP, sums, count + 2);
        memcpy(sums, loop.phis, (size_t)(count + 2) * sizeof *sums);
        emit_step(e, x, rows, vectors, sums[count], sums[count + 1], sums);
        sums[count] = kn_address(e, sums[count], kn_i64(e, STEP * p->element_bytes));
        sums[count + 1] = kn_address(e, sums[count + 1], kn_i64(e, STEP * KN_PANEL));
        kn_loop_end(e, &loop, sums);
        memcpy(sums, loop.exit_phis, (size_t)count * sizeof *sums);
    }
    if (p->has_dot)
        take_zero_off(e, x, rows, vectors, first, sums);
}

static void emit_tile(kn_emitter *e, const integer_pieces *x, int rows, int vectors, LLVMValueRef row,
                      LLVMValueRef right, LLVMValueRef m, LLVMValueRef column, LLVMValueRef const *masks) {
    LLVMValueRef sums[KN_MAX_TILE + 2];
    emit_sums(e, x, rows, vectors, row, right, sums);
    if (x->plan.in_registers) {
        kn_emit_tile_stores(e, rows, vectors, sums, m, column, masks, NULL);
        return;
    }
    for (int i = 0; i < rows * vectors; i++)
        LLVMSetAlignment(LLVMBuildStore(e->b, sums[i], kn_element(e, x->tile, kn_i64(e, i * e->width), 4)),
                         (unsigned)e->width * 4);
    kn_emit_tile_epilogue(e, x->tile, m, kn_i64(e, rows), column, vectors);
}

/* `vectors` of columns from `column` on, for all rows of the block. */
static void emit_columns(kn_emitter *e, const integer_pieces *x, LLVMValueRef column, int vectors,
                         LLVMValueRef const *masks) {
    const integer_plan *p = &x->plan;
    LLVMValueRef panel = LLVMBuildUDiv(e->b, column, kn_i64(e, KN_PANEL), "");
    LLVMValueRef right = kn_element(e, x->right, panel, kn_integer_panel_bytes(e->k->contraction.k));
    LLVMValueRef count = kn_sub(e, x->row_end, x->row_begin), start = kn_i64(e, 0);
    if (e->width < KN_PANEL) { /* a group of vectors may begin within a panel */
        LLVMValueRef within = kn_sub(e, column, kn_mul(e, panel, kn_i64(e, KN_PANEL)));
        right = kn_element(e, right, within, 2);
    }
    for (int v = 0; v < p->variant_count; v++) {
        int rows = p->variants[v];
        kn_loop loop;
        kn_loop_begin(e, &loop, start, kn_sub(e, count, kn_i64(e, rows - 1)), rows, NULL, 0);
        emit_tile(e, x, rows, vectors, kn_element(e, x->rows, loop.index, p->row_bytes), right,
                  kn_add(e, x->row_begin, loop.index), column, masks);
        kn_loop_end(e, &loop, NULL);
        if (v + 1 < p->variant_count) {
            LLVMValueRef left = kn_sub(e, count, start);
            start = kn_add(e, start, kn_sub(e, left, LLVMBuildURem(e->b, left, kn_i64(e, rows), "")));
        }
    }
}

static void emit_panels(kn_emitter *e, const integer_pieces *x, LLVMValueRef begin, LLVMValueRef end) {
    const integer_plan *p = &x->plan;
    LLVMValueRef masks[KN_MAX_TILE] = {NULL};
    int w = e->width;
    int64_t width = p->vectors * w, rest = p->columns % width;
    kn_loop loop;
    kn_loop_begin(e, &loop, begin, kn_sub(e, end, kn_i64(e, width - 1)), width, NULL, 0);
    emit_columns(e, x, loop.index, p->vectors, masks);
    kn_loop_end(e, &loop, NULL);
    if (rest == 0)
        return;
    int vectors = (int)((rest + w - 1) / w);
    if (rest % w)
        masks[vectors - 1] = kn_lane_mask(e, kn_i64(e, rest % w), w);
    /* Of the last group alone. */
    LLVMValueRef start = kn_i64(e, p->columns - rest);
    kn_loop_begin(e, &loop, kn_max(e, begin, start), end, KN_PANEL * KN_MAX_TILE, NULL, 0);
    emit_columns(e, x, start, vectors, masks);
    kn_loop_end(e, &loop, NULL);
}

/* ---- the kernel ---- */

static LLVMValueRef batch_address(kn_emitter *e, const kn_access *a) {
    LLVMValueRef offset = kn_size(e, a->offset);
    for (int d = 0; d < e->k->contraction.batch_count; d++)
        offset = kn_add(e, offset, kn_mul(e, e->index[d], kn_size(e, a->strides[d])));
    return kn_address(e, e->buffers[a->buffer], offset);
}

void kn_emit_integer(kn_emitter *e) {
    kn_kernel *k = e->k;
    kn_contraction *c = &k->contraction;
    integer_pieces x;
    memset(&x, 0, sizeof x);
    make_plan(k, e->unit->target, &x.plan);
    const integer_plan *p = &x.plan;
    if (!p->in_registers) {
        LLVMValueRef count = LLVMConstInt(e->unit->i32, (unsigned)(p->rows * p->vectors * e->width), 0);
        x.tile = LLVMBuildArrayAlloca(e->b, e->unit->i32, count, "");
        LLVMSetAlignment(x.tile, 64);
    }
    x.zero = kn_value(e, c->zero);
    x.rows = e->scratch;
    kn_loop items;
    kn_loop_begin(e, &items, e->begin, e->end, 1, NULL, 0);
    LLVMValueRef rest = items.index, begin = kn_i64(e, 0), end = kn_i64(e, p->columns);
    if (p->group) {
        LLVMValueRef quotient = LLVMBuildUDiv(e->b, rest, kn_i64(e, p->groups), "");
        LLVMValueRef group = kn_sub(e, rest, kn_mul(e, quotient, kn_i64(e, p->groups)));
        begin = kn_mul(e, group, kn_i64(e, p->group * KN_PANEL));
        end = kn_min(e, kn_add(e, begin, kn_i64(e, p->group * KN_PANEL)), end);
        rest = quotient;
    }
    x.row_begin = kn_mul(e, kn_split_item(e, rest, p->blocks), kn_i64(e, p->block));
    x.row_end = kn_min(e, kn_add(e, x.row_begin, kn_i64(e, p->block)), kn_size(e, k->dims[c->batch_count].size));
    x.left = batch_address(e, &c->left);
    x.right = batch_address(e, &c->right);
    emit_rows(e, &x);
    emit_panels(e, &x, begin, end);
    kn_loop_end(e, &items, NULL);
}

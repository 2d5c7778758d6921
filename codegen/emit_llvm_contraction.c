/* codegen/emit_llvm_contraction.c - matrix products and convolutions around the micro-kernels.
 *
 *   item = (batch, block of rows, group of panels)
 *     addresses of the block's rows (of every tap; padding points at zeros), or a packed copy
 *     for panels of the group            the panel stays in the second-level cache,
 *       for tiles of the block           the rows' block does too
 *         micro-kernel -> tile -> epilogue -> memory
 *
 * Sums run over k in one go, or block by block (choose_sum_block), and every tile is computed alone,
 * so results do not depend on the number of threads. */
#include "codegen/emit_llvm_contraction.h"
#include "codegen/emit_llvm_amx.h"

#include <string.h>

enum { SUM_BLOCK = 320, WIDE_SUM_BLOCK = 512 }; /* terms: 20 KB of a panel, 64 KB of AVX-512's two */
enum { FEW_ITEMS = 4 }; /* that a product of an unknown number of rows may have */

static int64_t known_or(rt_dim d, int64_t otherwise) {
    return rt_dim_is_constant(d) ? d : otherwise;
}

/* Formats that are widened in more than one round keep what they loaded (and its scales) until then:
 * as many sums as fit beside it, or everything spills. */
static void leave_registers(kn_format format, const cg_target_info *target, kn_plan *p) {
    if (format != KN_BFLOAT16 && format != KN_INT4)
        return;
    int per_panel = KN_PANEL / (target->vector_bytes / 4), best = 0, rows = p->rows, vectors = p->vectors;
    for (int v = vectors; v >= 1; v /= 2) {
        if (best && v % per_panel != 0)
            break;
        int others = 2 * v + (format == KN_INT4 ? 3 : 2);
        int most = (target->vector_registers - others) / v;
        int r = rows < most ? rows : most;
        if (r < 1 && v > 1 && v / 2 % per_panel == 0)
            continue;
        r = r < 1 ? 1 : r;
        if (r * v > best) {
            best = r * v;
            p->rows = r;
            p->vectors = v;
        }
    }
}

/* rows x vectors sums: 28 of 32 registers on AVX-512, 12 of 16 on AVX2. Few rows take more vectors,
 * few columns more rows. A step is whole panels where there is more than one. */
static void choose_tile(const kn_kernel *k, const cg_target_info *target, kn_plan *p) {
    int lanes = target->vector_bytes / 4;
    int m = k->contraction.batch_count;
    int64_t rows = known_or(k->dims[m].size, 1 << 20), columns = known_or(k->dims[m + 1].size, 1 << 20);
    if (k->contraction.left_kind == KN_LEFT_LINES)
        rows = known_or(k->contraction.out_w, rows);
    int64_t needed = (columns + lanes - 1) / lanes;
    int most;
    if (lanes == 16) {
        most = 14;
        /* One row of weights from memory: four streams are faster than eight (46 and 40 GB/s). */
        bool from_memory = rows == 1 && known_or(k->contraction.k, 1) * columns > (4 << 20) / 4;
        p->vectors = from_memory ? 4 : rows <= 2 ? 8 : rows <= 7 ? 4 : rows <= 9 ? 3 : 2;
        if (p->vectors == 2 && k->variant->vectors) {
            p->vectors = k->variant->vectors;
            most = 28 / p->vectors;
        }
    } else if (lanes == 8) {
        most = needed == 1 ? 12 : needed == 3 ? 4 : 6;
        p->vectors = rows == 1 ? 8 : rows == 2 ? 4 : needed == 3 ? 3 : 2;
    } else {
        most = 2;
        p->vectors = rows == 1 ? 8 : 4;
    }
    if (needed < p->vectors)
        p->vectors = needed > 0 ? (int)needed : 1;
    p->rows = rows < 1 ? 1 : rows < most ? (int)rows : most;
    leave_registers(k->contraction.format, target, p);
    p->panels = (p->vectors * lanes + KN_PANEL - 1) / KN_PANEL;
    p->variants[0] = p->rows;
    p->variant_count = 1;
    if (rows == 1 << 20 && !rt_dim_is_constant(k->dims[m].size)) {
        if (p->rows > 8) { /* 49 pixels are 3 x 14 + 7, 64 tokens 4 x 14 + 8 */
            p->variants[p->variant_count++] = p->rows / 2 + 1;
            p->variants[p->variant_count++] = p->rows / 2;
            p->variants[p->variant_count++] = 4;
            p->variants[p->variant_count++] = 2;
        } else if (p->rows > 4) {
            p->variants[p->variant_count++] = 4;
        }
        if (p->rows > 1)
            p->variants[p->variant_count++] = 1;
    } else if (rows % p->rows) {
        p->variants[p->variant_count++] = (int)(rows % p->rows);
    }
    p->in_registers = kn_fits_registers(k, p->rows * p->vectors);
}

int64_t kn_left_bytes(const kn_contraction *c) { return c->format == KN_BFLOAT16_DOT ? 2 : 4; }

/* LINES: an item is some lines of the result; the lines of the image under them, with their padding,
 * should stay in the second-level cache. Of unknown length: four, which is 9 x 3 x 16 KB of an image
 * 4096 pixels wide under a 3x3 kernel of stride 2. */
static void plan_lines(const kn_kernel *k, kn_plan *p) {
    const kn_contraction *c = &k->contraction;
    bool interleaved = c->term_w > 1;
    int64_t unit = interleaved ? c->channels : 1;
    p->planes = interleaved ? 1 : c->channels;
    rt_dim pixels = kn_dim_add(k, kn_dim_mul(k, c->out_w, c->stride_w),
                               (c->kernel_w - 1) * c->dilation_w + 1 - c->stride_w);
    p->line_floats = kn_dim_mul(k, kn_dim_ceil_div(k, kn_dim_mul(k, pixels, unit), 16), 16);
    p->taps = c->kernel_h * p->planes;
    p->length = c->kernel_w * unit;
    int64_t lines = 4, most = (known_or(c->out_h, 64) + 15) / 16;
    if (rt_dim_is_constant(p->line_floats))
        lines = 64 * 1024 / (c->stride_h * p->planes * p->line_floats * kn_left_bytes(c));
    lines = lines < 1 ? 1 : lines > 8 ? 8 : lines;
    p->out_lines = c->has_line_dim ? 1 : lines > most ? most : lines;
    p->in_lines = (p->out_lines - 1) * c->stride_h + (c->kernel_h - 1) * c->dilation_h + 1;
}

/* Long sums: a panel that the first-level cache does not hold is read from the second level once for
 * every tile, and rows of such length leave no room there. So the sum is cut into blocks of terms:
 * a panel's part stays in the first level, the rows' parts in the second, and sums of the terms so far
 * are kept in scratch, in the third at worst. Rows a multiple of 4 KB apart share few sets of the
 * first level and are copied; that pays for shorter sums too, as it does where no cache holds the
 * weights (64 x 768 x 50257: 1.04) and for two inputs (768 x 768: 1.08). AVX-512 walks two panels at once,
 * whose parts lie in the second level anyway: there only sums past 2048 terms gain (1.03 to 1.07 on a
 * Granite Rapids core) and those of two inputs past 256 (1024 x 1024: 140 -> 166 GFLOP/s), and copies lose. */
static void choose_sum_block(const kn_kernel *k, const cg_target_info *target, kn_plan *p) {
    const kn_contraction *c = &k->contraction;
    rt_dim rows = k->dims[c->batch_count].size, columns = k->dims[c->batch_count + 1].size;
    rt_dim step = c->left.strides[c->batch_count];
    bool is_wide = target->vector_bytes > 32;
    p->copies_left = !is_wide && rt_dim_is_constant(step) && step % (c->right_is_packed ? 1024 : 512) == 0;
    bool from_memory = known_or(c->k, 0) * known_or(columns, 0) > 32 << 20 >> 2;
    int64_t longest = SUM_BLOCK * (from_memory || !c->right_is_packed ? 2 : p->copies_left ? 3 : 5);
    if (is_wide)
        longest = c->right_is_packed ? 4 * WIDE_SUM_BLOCK : WIDE_SUM_BLOCK / 2;
    if (c->left_kind != KN_LEFT_ROWS || c->format != KN_FLOAT32 ||
        !rt_dim_is_constant(c->k) || c->k <= longest || p->rows < 4 ||
        p->panels != (is_wide ? 2 : 1) || !rt_dim_is_constant(columns)) {
        p->copies_left = false;
        return;
    }
    int64_t terms = is_wide ? WIDE_SUM_BLOCK : SUM_BLOCK;
    p->sum_blocks = (c->k + terms - 1) / terms;
    p->sum_block = ((c->k + p->sum_blocks - 1) / p->sum_blocks + 7) / 8 * 8;
    p->sum_blocks = (c->k + p->sum_block - 1) / p->sum_block;
    p->inner = (is_wide ? 384 : 192) * 1024 / (p->sum_block * 4) / p->rows * p->rows;
    if (rt_dim_is_constant(rows) && rows > 0) {
        int64_t parts = (rows + p->inner - 1) / p->inner;
        p->inner = ((rows + parts - 1) / parts + p->rows - 1) / p->rows * p->rows;
    }
}

/* Blocks of one size, whole tiles of them: a short one would wait for the weights as long. */
rt_dim kn_even_block(const kn_kernel *k, rt_dim rows, rt_dim blocks, int tile) {
    const rt_dim_algebra *g = ir_dim_algebra(k->ir);
    blocks = g->max(g->user, blocks, 1);
    rt_dim even = g->floordiv(g->user, kn_dim_add(k, rows, g->sub(g->user, blocks, 1)), blocks);
    return kn_dim_mul(k, kn_dim_ceil_div(k, even, tile), tile);
}

/* Panels of a group so that two threads get about as many where a block of rows is all there is: near `group`,
 * larger ones first. */
static int64_t balanced_group(int64_t panels, int64_t group, int64_t step) {
    int64_t best = group, least = INT64_MAX, larger = (group + step - 1) / step;
    for (int64_t i = 0; i < 2 * larger; i++) {
        int64_t g = i < larger ? group + i * step : group - (i + 1 - larger) * step;
        if (g < step)
            break;
        int64_t groups = (panels + g - 1) / g, load = (groups + 1) / 2 * g;
        if (20 * load <= 23 * ((panels + 1) / 2))
            return g;
        if (load < least) {
            least = load;
            best = g;
        }
    }
    return best;
}

static kn_kernel one_row_of(const kn_kernel *k) {
    kn_kernel one = *k;
    one.dims[k->contraction.batch_count].size = 1;
    return one;
}

/* A matrix of an unknown number of rows times weights: one row is common and has a form of its own.
 * The panels of its step; 0: it has none. */
static int64_t one_row_panels(const kn_kernel *k, const cg_target_info *target, const kn_plan *p) {
    const kn_contraction *c = &k->contraction;
    if (rt_dim_is_constant(k->dims[c->batch_count].size) || c->left_kind != KN_LEFT_ROWS || c->has_pixel_rows ||
        !c->right_is_packed || !rt_dim_is_constant(k->dims[c->batch_count + 1].size) ||
        !rt_dim_is_constant(c->k))
        return 0;
    kn_kernel one = one_row_of(k);
    kn_plan narrow = {0};
    choose_tile(&one, target, &narrow);
    return narrow.panels % p->panels == 0 ? narrow.panels : 0;
}

/* What threads share, and the estimates: of `items` parts of `block` rows and `right_bytes` of weights. */
static void set_work(kn_kernel *k, const kn_plan *p, rt_dim items, int64_t block, int64_t right_bytes) {
    const kn_contraction *c = &k->contraction;
    rt_dim rows = k->dims[c->batch_count].size, columns = k->dims[c->batch_count + 1].size;
    int64_t sum = known_or(c->k, 512);
    k->work_items = items;
    /* A step of a recurrent network reads weights that the second-level cache may not hold: what it still
     * holds of them is what the step before read last. */
    k->alternates = c->right_is_packed && !p->is_amx && right_bytes > 512 * 1024;
    double flops = 2.0 * (double)sum * (double)block *
                   (double)(p->group ? p->group * KN_PANEL : known_or(columns, 256));
    /* A part is worth waking a thread for. Few rows wait for the weights: a byte from the third-level
     * cache takes as long as two operations do. */
    double weight_bytes = flops * 2 / (double)block, cost = flops + 2 * weight_bytes;
    k->grain = cost > 1e6 ? 1 : (int64_t)(1e6 / (cost + 1)) + 1;
    k->flops = 0; /* the last block and the last group may be short */
    if (rt_dim_is_constant(items) && rt_dim_is_constant(rows) && rt_dim_is_constant(columns))
        k->flops = 2.0 * (double)sum * (double)columns * (double)rows;
    for (int d = 0; d < c->batch_count; d++)
        k->flops *= (double)known_or(k->dims[d].size, 0);
    k->scratch_bytes =
        kn_dim_add(k, kn_dim_add(k, kn_dim_add(k, p->table_bytes, p->packed_left_bytes), p->packed_right_bytes),
                   p->parts_bytes);
}

static void make_float_plan(kn_kernel *k, const cg_target_info *target, kn_plan *p) {
    kn_contraction *c = &k->contraction;
    memset(p, 0, sizeof *p);
    choose_tile(k, target, p);
    int m = c->batch_count;
    rt_dim rows = k->dims[m].size, columns = k->dims[m + 1].size;
    bool has_table = c->left_kind == KN_LEFT_CONVOLUTION, has_lines = c->left_kind == KN_LEFT_LINES;
    p->taps = has_table ? c->kernel_h * c->kernel_w : 1;
    p->length = has_table ? c->channels : known_or(c->k, -1);
    if (has_lines)
        plan_lines(k, p);
    if (p->length >= 0 && !has_lines)
        p->length = kn_format_padded_k(c->format, p->length);
    if (c->format == KN_BFLOAT16_DOT && !has_lines)
        p->left_row_bytes = kn_dot_row_bytes(p->length);
    int64_t sum = known_or(c->k, 512);
    /* How many rows: their memory should stay in the second-level cache beside a panel. */
    int64_t row_bytes = c->left_kind == KN_LEFT_CONVOLUTION
                            ? c->channels * c->stride_h * c->stride_w * 4
                        : c->format == KN_BFLOAT16_DOT ? p->left_row_bytes
                                                       : sum * 4;
    int64_t right_bytes = known_or(columns, 512) * kn_format_panel_bytes(c->format, sum) / KN_PANEL;
    int64_t block = (target->vector_bytes > 32 ? 640 : 384) * 1024 / (row_bytes > 0 ? row_bytes : 1);
    block = block * k->variant->block_percent / 100;
    if (right_bytes <= 256 * 1024 || c->left_kind == KN_LEFT_PACKED)
        block = block < 8 * p->rows ? block : 8 * p->rows;
    if (block * p->taps * 8 > 64 * 1024)
        block = 64 * 1024 / (p->taps * 8);
    if (!rt_dim_is_constant(rows) || rows > block)
        block = block / p->rows * p->rows;
    if (block < p->rows)
        block = p->rows;
    if (!c->right_is_packed && block < 256 / p->rows * p->rows)
        block = 256 / p->rows * p->rows; /* the right side is packed once an item */
    /* Two threads each with their rows read less of what the other wrote than with their columns; but each
     * reads all weights, and so does a thread alone, twice: GPT-2's 64 rows lost a tenth by it. */
    if (rt_dim_is_constant(rows) && block >= rows && rows >= 4 * p->rows && right_bytes <= 2 * rows * row_bytes)
        block = (rows + 1) / 2;
    if (rt_dim_is_constant(rows) && rows > 0) { /* blocks of one size: a short one waits for weights */
        int64_t even = (rows + (rows + block - 1) / block - 1) / ((rows + block - 1) / block);
        block = (even + p->rows - 1) / p->rows * p->rows;
    }
    choose_sum_block(k, target, p);
    if (p->sum_block && c->right_is_packed)
        block = p->inner;
    else if (p->sum_block) /* all rows: the right side is packed once an item */
        block = known_or(rows, 8 * p->inner);
    p->block = p->room = block;
    p->blocks = kn_dim_ceil_div(k, rows, block);
    if (!rt_dim_is_constant(rows)) {
        int64_t two = right_bytes / (2 * (row_bytes > 0 ? row_bytes : 1)); /* rows worth two blocks, as above */
        two = two > 4 * p->rows ? two : 4 * p->rows;
        if (c->right_is_packed && !p->sum_block && two < block)
            p->blocks = kn_dim_max(k, p->blocks, kn_dim_min(k, kn_dim_ceil_div(k, rows, two), 2));
        p->block = kn_even_block(k, rows, p->blocks, p->rows);
    }
    if (has_lines) {
        p->block = kn_dim_mul(k, c->out_w, p->out_lines);
        p->blocks = c->has_line_dim ? 1 : kn_dim_ceil_div(k, c->out_h, p->out_lines);
        block = known_or(p->block, p->out_lines * 64);
    }
    rt_dim items = p->blocks;
    for (int d = 0; d < m; d++)
        items = kn_dim_mul(k, items, k->dims[d].size);
    int64_t panels = (known_or(columns, 0) + KN_PANEL - 1) / KN_PANEL;
    p->groups = 1;
    bool may_group = c->right_is_packed && c->left_kind != KN_LEFT_PACKED &&
                     rt_dim_is_constant(items) && items > 0 && items < 16 && panels > p->panels;
    int64_t unit = one_row_panels(k, target, p);
    bool shares_row = unit && right_bytes > 256 * 1024 && panels > unit;
    bool may_be_few = c->right_is_packed && c->left_kind != KN_LEFT_PACKED && !rt_dim_is_constant(items) &&
                      right_bytes > 256 * 1024 && panels > p->panels;
    if (may_group || p->sum_block || shares_row || may_be_few) {
        int64_t steps = (panels + p->panels - 1) / p->panels;
        int64_t count = known_or(items, shares_row ? 1 : may_be_few ? FEW_ITEMS : 16);
        int64_t most = !p->copies_left ? 16 : c->right_is_packed ? 8 : 4; /* each copies the rows */
        int64_t wanted = count > 0 && count < most ? (most + count - 1) / count : 1;
        int64_t per = (steps + wanted - 1) / wanted;
        p->group = per * p->panels;
        if (p->sum_block && p->group * p->inner * KN_PANEL * 4 > 256 * 1024)
            p->group = 256 * 1024 / (p->inner * KN_PANEL * 4);
        p->group = (p->group + p->panels - 1) / p->panels * p->panels;
        if (unit) /* steps of one row */
            p->group = (p->group + unit - 1) / unit * unit;
        if (shares_row || may_be_few)
            p->group = balanced_group(panels, p->group, p->panels);
        p->groups = (panels + p->group - 1) / p->group;
        items = kn_dim_mul(k, items, p->groups);
    }
    /* Scratch: addresses, packed rows, packed columns. */
    p->table_bytes = has_table ? (block * p->taps * 8 + 63) / 64 * 64 : 0;
    p->packed_left_bytes = 0;
    if (has_lines) /* a pair may begin with the last element */
        p->packed_left_bytes = kn_dim_add(
            k, kn_dim_mul(k, p->line_floats, p->in_lines * p->planes * kn_left_bytes(c)), 64);
    else if (c->format == KN_BFLOAT16_DOT) /* and one row of floats, where these are gathered first */
        p->packed_left_bytes = (block * p->left_row_bytes + 64 + (p->length + 32) * 4 + 63) / 64 * 64;
    else if (c->left_kind == KN_LEFT_PACKED) /* room for the last vector of a row */
        p->packed_left_bytes = kn_dim_mul(
            k, kn_dim_ceil_div(k, kn_dim_mul(k, kn_dim_add(k, c->k, 32), block * 4), 64), 64);
    else if (p->copies_left)
        p->packed_left_bytes = (p->inner * (p->sum_block + 16) * 4 + 63) / 64 * 64;
    p->packed_right_bytes = 0;
    if (!c->right_is_packed)
        p->packed_right_bytes =
            kn_dim_mul(k, p->group ? p->group * KN_PANEL * 4
                                   : kn_dim_mul(k, kn_dim_ceil_div(k, columns, KN_PANEL), KN_PANEL * 4),
                       c->k);
    p->parts_bytes = p->sum_blocks > 1 ? p->inner * p->group * KN_PANEL * 4 : 0;
    set_work(k, p, items, block, right_bytes);
}

static void make_plan(kn_kernel *k, const cg_target_info *target, kn_plan *p) {
    if (!kn_plan_amx(k, target, p)) {
        make_float_plan(k, target, p);
        return;
    }
    const kn_contraction *c = &k->contraction;
    int64_t panels = (k->dims[c->batch_count + 1].size + KN_PANEL - 1) / KN_PANEL;
    if (p->amx_joins && p->groups > 1) { /* one row of an unknown number takes up to 8 panels at once */
        p->group = balanced_group(panels, p->group, rt_dim_is_constant(k->dims[c->batch_count].size) ? p->panels : 8);
        p->groups = (panels + p->group - 1) / p->group;
    }
    rt_dim items = kn_dim_mul(k, p->blocks, p->groups);
    for (int d = 0; d < c->batch_count; d++)
        items = kn_dim_mul(k, items, k->dims[d].size);
    p->in_registers = kn_fits_registers(k, p->rows / 2 * p->vectors);
    set_work(k, p, items, known_or(p->block, p->room), c->k * k->dims[c->batch_count + 1].size * 4);
}

/* An unknown number of rows that turns out small: the items of `amx` without its tiles. */
static bool make_few_plan(kn_kernel *k, const cg_target_info *target, const kn_plan *amx, kn_plan *p) {
    if (!amx->is_amx || rt_dim_is_constant(k->dims[k->contraction.batch_count].size))
        return false;
    kn_kernel few = *k;
    make_float_plan(&few, target, p);
    p->block = amx->block;
    p->blocks = amx->blocks;
    if (p->sum_blocks > 1) /* sums so far of as many panels */
        p->parts_bytes = p->inner * amx->group * KN_PANEL * 4;
    p->group = amx->group;
    p->groups = amx->groups;
    if (!k->contraction.right_is_packed) /* an item packs its own */
        p->packed_right_bytes = p->group * KN_PANEL * 4 * k->contraction.k;
    return true;
}

/* Every symbolic size that the emitter will ask for. */
static ts_status register_sizes(kn_kernel *k, const kn_plan *p) {
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
                     p->packed_left_bytes, p->packed_right_bytes, p->table_bytes, p->block,
                     p->line_floats,
                     kn_dim_ceil_div(k, k->dims[c->batch_count + 1].size, KN_PANEL),
                     kn_dim_add(k, c->k, 32)};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        all[count++] = more[i];
    return kn_need_sizes(k, all, (size_t)count, "a contraction");
}

ts_status kn_plan_contraction(kn_kernel *k, const cg_target_info *target) {
    kn_plan p;
    if (k->contraction.is_integer)
        return kn_plan_integer(k, target);
    if (k->contraction.winograd)
        return kn_plan_winograd(k, target);
    make_plan(k, target, &p);
    TS_TRY(register_sizes(k, &p));
    kn_plan few;
    if (!make_few_plan(k, target, &p, &few))
        return NULL;
    int64_t bytes = few.packed_left_bytes + few.packed_right_bytes + few.parts_bytes; /* of ROWS: constants */
    if (bytes > known_or(k->scratch_bytes, 0))
        k->scratch_bytes = bytes;
    return register_sizes(k, &few);
}

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
        int64_t tiles = (p->inner ? p->inner : known_or(p->block, rows)) / p->rows, shift = 0;
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
    if (LLVMIsConstant(t->panel_bytes)) {
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
    LLVMValueRef panel = LLVMBuildUDiv(e->b, s->column, kn_i64(e, KN_PANEL), "");
    t.right = kn_address(e, x->right, kn_mul(e, panel, t.panel_bytes));
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
    if (known_or(columns, width) >= width) {
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
    if (p->is_amx ? p->amx_packs_right : !c->right_is_packed)
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

bool kn_row_items_of(kn_kernel *k, const cg_target_info *target, kn_row_items *out) {
    const kn_contraction *c = &k->contraction;
    kn_plan p;
    if (!c->is_on || c->is_integer || c->winograd || c->has_line_dim)
        return false;
    for (int d = 0; d < c->batch_count; d++)
        if (k->dims[d].size != 1)
            return false;
    make_plan(k, target, &p);
    if (p.blocks == RT_DIM_UNKNOWN || p.block == RT_DIM_UNKNOWN || !rt_dim_is_constant(p.groups))
        return false;
    bool is_exact = rt_dim_is_constant(p.block) || c->left_kind == KN_LEFT_LINES;
    *out = (kn_row_items){p.blocks, p.block, is_exact ? p.block : p.room, p.groups};
    return true;
}

/* A form of the kernel for up to so many rows, with the items of all. */
typedef struct row_form {
    kn_kernel *k;
    kn_plan plan;
    int64_t most; /* of the last form: any number */
} row_form;

void kn_emit_contraction(kn_emitter *e) {
    if (e->k->contraction.is_integer) {
        kn_emit_integer(e);
        return;
    }
    if (e->k->contraction.winograd) {
        kn_emit_winograd(e);
        return;
    }
    kn_kernel *k = e->k, one = one_row_of(k);
    row_form forms[3];
    kn_plan plan, few;
    int count = 0;
    make_plan(k, e->unit->target, &plan);
    if (one_row_panels(k, e->unit->target, &plan)) {
        forms[count] = (row_form){.k = &one, .most = 1};
        make_plan(&one, e->unit->target, &forms[count].plan);
        forms[count].plan.group = plan.group;
        forms[count++].plan.groups = plan.groups;
    }
    if (make_few_plan(k, e->unit->target, &plan, &few))
        forms[count++] = (row_form){k, few, KN_AMX_FEW_ROWS};
    forms[count++] = (row_form){k, plan, INT64_MAX};
    LLVMValueRef tiles[3];
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

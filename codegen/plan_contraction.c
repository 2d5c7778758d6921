/* codegen/plan_contraction.c - how a product or convolution is divided: tiles, blocks of rows and of terms, groups of
 * panels, what threads share, and the scratch that all of it takes. */
#include "codegen/emit_llvm_contraction.h"

#include <string.h>

enum { SUM_BLOCK = 320, WIDE_SUM_BLOCK = 512 }; /* terms: 20 KB of a panel, 64 KB of AVX-512's two */
enum { FEW_ITEMS = 4 }; /* that a product of an unknown number of rows may have */

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
    int64_t rows = kn_known_or(k->dims[m].size, 1 << 20), columns = kn_known_or(k->dims[m + 1].size, 1 << 20);
    if (k->contraction.left_kind == KN_LEFT_LINES)
        rows = kn_known_or(k->contraction.out_w, rows);
    int64_t needed = (columns + lanes - 1) / lanes;
    int most;
    if (lanes == 16) {
        most = 14;
        /* One row of weights from memory: four streams are faster than eight (46 and 40 GB/s). */
        bool from_memory = rows == 1 && kn_known_or(k->contraction.k, 1) * columns > (4 << 20) / 4;
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
    int64_t lines = 4, most = (kn_known_or(c->out_h, 64) + 15) / 16;
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
    bool from_memory = kn_known_or(c->k, 0) * kn_known_or(columns, 0) > 32 << 20 >> 2;
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
    int64_t sum = kn_known_or(c->k, 512);
    k->work_items = items;
    /* A step of a recurrent network reads weights that the second-level cache may not hold: what it still
     * holds of them is what the step before read last. */
    k->alternates = c->right_is_packed && !p->is_amx && right_bytes > 512 * 1024;
    double flops = 2.0 * (double)sum * (double)block *
                   (double)(p->group ? p->group * KN_PANEL : kn_known_or(columns, 256));
    /* A part is worth waking a thread for. Few rows wait for the weights: a byte from the third-level
     * cache takes as long as two operations do. */
    double weight_bytes = flops * 2 / (double)block, cost = flops + 2 * weight_bytes;
    k->grain = cost > 1e6 ? 1 : (int64_t)(1e6 / (cost + 1)) + 1;
    k->flops = 0; /* the last block and the last group may be short */
    if (rt_dim_is_constant(items) && rt_dim_is_constant(rows) && rt_dim_is_constant(columns))
        k->flops = 2.0 * (double)sum * (double)columns * (double)rows;
    for (int d = 0; d < c->batch_count; d++)
        k->flops *= (double)kn_known_or(k->dims[d].size, 0);
    k->scratch_bytes =
        kn_dim_add(k, kn_dim_add(k, kn_dim_add(k, p->table_bytes, p->packed_left_bytes), p->packed_right_bytes),
                   p->parts_bytes);
}

/* A right operand of two inputs whose columns or terms are adjacent can be read where it lies. */
static bool may_read_right(const kn_kernel *k, const cg_target_info *target) {
    const kn_contraction *c = &k->contraction;
    rt_dim columns = k->dims[c->batch_count + 1].size;
    if (c->right_is_packed || c->format != KN_FLOAT32 ||
        (c->left_kind != KN_LEFT_ROWS && c->left_kind != KN_LEFT_PACKED))
        return false;
    if (target->vector_bytes > 16)
        return c->right.strides[c->batch_count + 1] == 1 || c->right_k == 1;
    /* The last columns would be loaded one by one. */
    return c->right.strides[c->batch_count + 1] == 1 && rt_dim_is_constant(columns) &&
           columns % (target->vector_bytes / 4) == 0;
}

/* Rows of one tile read every element once, and a copy of them would only be more work: 1 x 1000 x 1000 takes a
 * third of the time so, 8 x 512 x 512 too. Squares that are transposed in registers want just that. More tiles come back to the lines under their columns: while the
 * matrix leaves half of the second-level cache free that is no slower than panels, but lines 4 KB apart or more
 * share sets of the first level (300 x 128 x 2048 loses an eighth). AVX2's tiles, less than half as high, come
 * back more often. */
static bool pays_to_read_right(const kn_kernel *k, const cg_target_info *target, const kn_plan *p, int64_t most_rows) {
    const kn_contraction *c = &k->contraction;
    if (most_rows <= p->rows)
        return true;
    int64_t room = target->vector_bytes > 32 || most_rows <= 4 * p->rows ? 1 << 20 : 256 << 10;
    return c->right.strides[c->batch_count + 1] == 1 && rt_dim_is_constant(c->k) && rt_dim_is_constant(c->right_k) &&
           most_rows < INT64_MAX &&
           c->right_k * 4 <= 4096 && c->right_k * 4 * c->k <= room;
}

/* Of a number of rows that is not known at most `most_rows` are worked on. */
static void make_float_plan(kn_kernel *k, const cg_target_info *target, int64_t most_rows, kn_plan *p) {
    kn_contraction *c = &k->contraction;
    memset(p, 0, sizeof *p);
    choose_tile(k, target, p);
    p->reads_right = may_read_right(k, target) && pays_to_read_right(k, target, p, most_rows);
    if (p->reads_right && c->right.strides[c->batch_count + 1] != 1) /* a square takes as many registers as lanes */
        p->vectors = p->panels = 1;
    int m = c->batch_count;
    rt_dim rows = k->dims[m].size, columns = k->dims[m + 1].size;
    bool has_table = c->left_kind == KN_LEFT_CONVOLUTION, has_lines = c->left_kind == KN_LEFT_LINES;
    p->taps = has_table ? c->kernel_h * c->kernel_w : 1;
    p->length = has_table ? c->channels : kn_known_or(c->k, -1);
    if (has_lines)
        plan_lines(k, p);
    if (p->length >= 0 && !has_lines)
        p->length = kn_format_padded_k(c->format, p->length);
    if (c->format == KN_BFLOAT16_DOT && !has_lines)
        p->left_row_bytes = kn_dot_row_bytes(p->length);
    int64_t sum = kn_known_or(c->k, 512);
    /* How many rows: their memory should stay in the second-level cache beside a panel. */
    int64_t row_bytes = c->left_kind == KN_LEFT_CONVOLUTION
                            ? c->channels * c->stride_h * c->stride_w * 4
                        : c->format == KN_BFLOAT16_DOT ? p->left_row_bytes
                                                       : sum * 4;
    int64_t right_bytes = kn_known_or(columns, 512) * kn_format_panel_bytes(c->format, sum) / KN_PANEL;
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
    if (!c->right_is_packed && !p->reads_right && block < 256 / p->rows * p->rows)
        block = 256 / p->rows * p->rows; /* the right side is packed once an item */
    /* Two threads each with their rows read less of what the other wrote than with their columns; but each
     * reads all weights, and so does a thread alone, twice: GPT-2's 64 rows lost a tenth by it. */
    if (rt_dim_is_constant(rows) && block >= rows && rows >= 4 * p->rows && right_bytes <= 2 * rows * row_bytes)
        block = (rows + 1) / 2;
    if (rt_dim_is_constant(rows) && rows > 0) { /* blocks of one size: a short one waits for weights */
        int64_t even = (rows + (rows + block - 1) / block - 1) / ((rows + block - 1) / block);
        block = (even + p->rows - 1) / p->rows * p->rows;
    }
    if (!p->reads_right)
        choose_sum_block(k, target, p);
    if (p->sum_block && c->right_is_packed)
        block = p->inner;
    else if (p->sum_block) /* all rows: the right side is packed once an item */
        block = kn_known_or(rows, 8 * p->inner);
    p->block = p->room = block;
    p->blocks = kn_dim_ceil_div(k, rows, block);
    if (!rt_dim_is_constant(rows)) {
        int64_t two = right_bytes / (2 * (row_bytes > 0 ? row_bytes : 1)); /* rows worth two blocks, as above */
        two = two > 4 * p->rows ? two : 4 * p->rows;
        if (c->right_is_packed && !p->sum_block && two < block)
            p->blocks = kn_dim_max(k, p->blocks, kn_dim_min(k, kn_dim_ceil_div(k, rows, two), 2));
        p->block = kn_dim_even_block(k, rows, p->blocks, p->rows);
    }
    if (has_lines) {
        p->block = kn_dim_mul(k, c->out_w, p->out_lines);
        p->blocks = c->has_line_dim ? 1 : kn_dim_ceil_div(k, c->out_h, p->out_lines);
        block = kn_known_or(p->block, p->out_lines * 64);
    }
    rt_dim items = p->blocks;
    for (int d = 0; d < m; d++)
        items = kn_dim_mul(k, items, k->dims[d].size);
    int64_t panels = (kn_known_or(columns, 0) + KN_PANEL - 1) / KN_PANEL;
    p->groups = 1;
    bool may_group = (c->right_is_packed || p->reads_right) && c->left_kind != KN_LEFT_PACKED &&
                     rt_dim_is_constant(items) && items > 0 && items < 16 && panels > p->panels;
    int64_t unit = one_row_panels(k, target, p);
    bool shares_row = unit && right_bytes > 256 * 1024 && panels > unit;
    bool may_be_few = c->right_is_packed && c->left_kind != KN_LEFT_PACKED && !rt_dim_is_constant(items) &&
                      right_bytes > 256 * 1024 && panels > p->panels;
    if (may_group || p->sum_block || shares_row || may_be_few) {
        int64_t steps = (panels + p->panels - 1) / p->panels;
        int64_t count = kn_known_or(items, shares_row ? 1 : may_be_few ? FEW_ITEMS : 16);
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
    if (!c->right_is_packed && !p->reads_right)
        p->packed_right_bytes =
            kn_dim_mul(k, p->group ? p->group * KN_PANEL * 4
                                   : kn_dim_mul(k, kn_dim_ceil_div(k, columns, KN_PANEL), KN_PANEL * 4),
                       c->k);
    p->parts_bytes = p->sum_blocks > 1 ? p->inner * p->group * KN_PANEL * 4 : 0;
    set_work(k, p, items, block, right_bytes);
}

static void make_plan(kn_kernel *k, const cg_target_info *target, kn_plan *p) {
    if (!kn_plan_amx(k, target, p)) {
        make_float_plan(k, target, kn_known_or(k->dims[k->contraction.batch_count].size, INT64_MAX), p);
        return;
    }
    const kn_contraction *c = &k->contraction;
    int64_t panels = (k->dims[c->batch_count + 1].size + KN_PANEL - 1) / KN_PANEL;
    if (p->amx_joins && p->groups > 1) {
        bool may_be_one = !rt_dim_is_constant(k->dims[c->batch_count].size);
        p->group = balanced_group(panels, p->group, may_be_one ? KN_ROW_PANELS : p->panels);
        p->groups = (panels + p->group - 1) / p->group;
    }
    rt_dim items = kn_dim_mul(k, p->blocks, p->groups);
    for (int d = 0; d < c->batch_count; d++)
        items = kn_dim_mul(k, items, k->dims[d].size);
    p->in_registers = kn_fits_registers(k, p->rows / 2 * p->vectors);
    set_work(k, p, items, kn_known_or(p->block, p->room), c->k * k->dims[c->batch_count + 1].size * 4);
}

/* An unknown number of rows that turns out small: the items of `all` without AMX's tiles, and without panels
 * of a right operand that can be read where it lies. Up to how many rows; 0: it has no such form. */
static int64_t make_few_plan(kn_kernel *k, const cg_target_info *target, const kn_plan *all, kn_plan *p) {
    int64_t most = all->is_amx ? KN_AMX_FEW_ROWS : may_read_right(k, target) ? all->rows : 0;
    if (!most || rt_dim_is_constant(k->dims[k->contraction.batch_count].size))
        return 0;
    kn_kernel few = *k;
    make_float_plan(&few, target, most, p);
    p->block = all->block;
    p->blocks = all->blocks;
    if (p->sum_blocks > 1) /* sums so far of as many panels */
        p->parts_bytes = p->inner * all->group * KN_PANEL * 4;
    p->group = all->group;
    p->groups = all->groups;
    if (all->is_amx && !k->contraction.right_is_packed && !p->reads_right) /* an item packs its own */
        p->packed_right_bytes = p->group * KN_PANEL * 4 * k->contraction.k;
    return most;
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
    if (!p.is_amx) /* the same scratch, less of it */
        return register_sizes(k, &few);
    int64_t bytes = few.packed_left_bytes + few.packed_right_bytes + few.parts_bytes; /* of ROWS: constants */
    if (bytes > kn_known_or(k->scratch_bytes, 0))
        k->scratch_bytes = bytes;
    return register_sizes(k, &few);
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

int kn_plan_row_forms(kn_kernel *k, const cg_target_info *target, kn_row_form *out) {
    kn_plan plan, few;
    int count = 0;
    make_plan(k, target, &plan);
    if (one_row_panels(k, target, &plan)) {
        kn_kernel *one = TS_NEW(k->arena, kn_kernel);
        *one = one_row_of(k);
        out[count] = (kn_row_form){.k = one, .most = 1};
        kn_plan *of_one = &out[count++].plan;
        make_plan(one, target, of_one);
        of_one->group = plan.group;
        of_one->groups = plan.groups;
        if (plan.is_amx && plan.groups > 1 && plan.group % of_one->panels) {
            of_one->panels = KN_ROW_PANELS;
            of_one->vectors = KN_ROW_PANELS * KN_PANEL * 4 / target->vector_bytes;
        }
    }
    int64_t most = make_few_plan(k, target, &plan, &few);
    if (most)
        out[count++] = (kn_row_form){k, few, most};
    out[count++] = (kn_row_form){k, plan, INT64_MAX};
    return count;
}

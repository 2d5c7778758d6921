/* codegen/emit_llvm_right.c - the right side of a product of two inputs: read where it lies, or packed in panels
 * of 16 columns as constant weights are at compile time. */
#include "codegen/emit_llvm_contraction.h"

/* ---- where it lies ---- */

/* The terms of a column stand one after another: those of as many columns as lanes are transposed. Columns past
 * the end repeat the last one. */
static void emit_square(kn_emitter *e, const kn_tile *t, LLVMValueRef b, int64_t step, int j, int64_t terms,
                        LLVMValueRef *out) {
    int w = e->width;
    LLVMValueRef last = t->masks[j] ? kn_sub(e, t->columns, kn_i64(e, 1)) : NULL;
    LLVMValueRef mask = terms < w ? kn_lane_mask(e, kn_i64(e, terms), w) : NULL;
    for (int i = 0; i < w; i++) {
        LLVMValueRef column = kn_i64(e, (int64_t)j * w + i);
        column = kn_mul(e, last ? kn_min(e, column, last) : column, t->column_bytes);
        LLVMValueRef at = kn_address(e, kn_address(e, b, column), kn_i64(e, step * w * 4));
        out[i] = kn_emit_load(e, at, NULL, RT_float32, w, mask);
    }
    kn_transpose(e, out, w);
}

void kn_emit_right_step(kn_emitter *e, const kn_tile *t, LLVMValueRef b, int64_t step, int64_t terms,
                        LLVMValueRef *out) {
    LLVMValueRef width = t->column_bytes ? kn_mul(e, t->column_bytes, kn_i64(e, e->width)) : kn_i64(e, e->width * 4);
    LLVMValueRef line = kn_address(e, b, kn_mul(e, t->line_bytes, kn_i64(e, step)));
    for (int j = 0; j < t->vectors; j++) {
        if (t->has_squares) {
            emit_square(e, t, b, step, j, terms, out + j * e->width);
            continue;
        }
        LLVMValueRef at = kn_address(e, line, kn_mul(e, width, kn_i64(e, j)));
        LLVMValueRef stride = t->column_bytes ? LLVMBuildLShr(e->b, t->column_bytes, kn_i64(e, 2), "") : NULL;
        out[j] = kn_emit_load(e, at, stride, RT_float32, e->width, t->masks[j]);
    }
}

/* ---- packed ---- */

typedef struct right_side {
    kn_pieces *x;
    LLVMValueRef begin, columns, sum, stride, k_stride; /* first column packed; sizes */
    bool is_adjacent;                                   /* a row's columns */
} right_side;

static LLVMValueRef right_address(kn_emitter *e, const right_side *r, LLVMValueRef k, LLVMValueRef column) {
    return kn_float_address(e, r->x->right, kn_add(e, kn_mul(e, k, r->k_stride), kn_mul(e, column, r->stride)));
}

static LLVMValueRef panel_address(kn_emitter *e, const right_side *r, LLVMValueRef column) {
    return kn_element(e, r->x->packed_right, kn_mul(e, kn_sub(e, column, r->begin), r->sum), 4);
}

/* Terms [from, sum) of `panels` panels from `column` on; masks: of one panel's vectors, or NULL. */
static void emit_panel_lines(kn_emitter *e, const right_side *r, LLVMValueRef column, int panels,
                             const LLVMValueRef *masks, LLVMValueRef from) {
    int vectors = KN_PANEL / e->width;
    LLVMValueRef to[4];
    for (int p = 0; p < panels; p++)
        to[p] = panel_address(e, r, kn_add(e, column, kn_i64(e, p * KN_PANEL)));
    kn_loop k;
    kn_loop_begin(e, &k, from, r->sum, 1, NULL, 0);
    for (int i = 0; i < panels * vectors; i++) {
        LLVMValueRef at = right_address(e, r, k.index, kn_add(e, column, kn_i64(e, i * e->width)));
        LLVMValueRef value = kn_emit_load(e, at, r->is_adjacent ? NULL : r->stride, RT_float32, e->width,
                                          masks ? masks[i] : NULL);
        LLVMValueRef line = kn_element(e, to[i / vectors], k.index, KN_PANEL * 4);
        kn_emit_store(e, value, kn_address(e, line, kn_i64(e, i % vectors * e->width * 4)), NULL, RT_float32,
                      e->width, NULL);
    }
    kn_loop_end(e, &k, NULL);
}

/* Columns whose terms are adjacent, as many terms as lanes at once: squares are transposed. Columns past the
 * end repeat the last one. Returns the first term that is left. */
static LLVMValueRef emit_panel_squares(kn_emitter *e, const right_side *r, LLVMValueRef column) {
    int w = e->width;
    LLVMValueRef last = kn_sub(e, r->columns, kn_i64(e, 1)), to = panel_address(e, r, column);
    LLVMValueRef whole = LLVMBuildAnd(e->b, r->sum, kn_i64(e, -w), "");
    kn_loop k;
    kn_loop_begin(e, &k, kn_i64(e, 0), whole, w, NULL, 0);
    for (int v = 0; v < KN_PANEL / w; v++) {
        LLVMValueRef rows[16];
        for (int i = 0; i < w; i++)
            rows[i] = kn_emit_load(
                e, right_address(e, r, k.index, kn_min(e, kn_add(e, column, kn_i64(e, v * w + i)), last)), NULL,
                RT_float32, w, NULL);
        kn_transpose(e, rows, w);
        for (int i = 0; i < w; i++)
            kn_emit_store(e, rows[i],
                          kn_address(e, kn_element(e, to, kn_add(e, k.index, kn_i64(e, i)), KN_PANEL * 4),
                                     kn_i64(e, v * w * 4)),
                          NULL, RT_float32, w, NULL);
    }
    kn_loop_end(e, &k, NULL);
    return whole;
}

/* packed[panel][k][16]; what stands in columns past the end is nobody's. Four panels at once where a row's
 * columns are adjacent: lines of a matrix whose rows lie 4 KB apart come slowly one by one. */
void kn_emit_packed_right(kn_emitter *e, kn_pieces *x, LLVMValueRef panel_begin, LLVMValueRef panel_end) {
    enum { WIDE = 4 };
    kn_contraction *c = &e->k->contraction;
    int n_dim = c->batch_count + 1;
    right_side r = {.x = x,
                    .begin = kn_mul(e, panel_begin, kn_i64(e, KN_PANEL)),
                    .columns = kn_size(e, e->k->dims[n_dim].size),
                    .sum = kn_size(e, c->k),
                    .stride = kn_size(e, c->right.strides[n_dim]),
                    .k_stride = kn_size(e, c->right_k),
                    .is_adjacent = c->right.strides[n_dim] == 1};
    LLVMValueRef end = kn_min(e, kn_mul(e, panel_end, kn_i64(e, KN_PANEL)), r.columns), start = r.begin;
    LLVMValueRef zero = kn_i64(e, 0);
    kn_loop n;
    if (r.is_adjacent) {
        LLVMValueRef room = LLVMBuildAnd(e->b, kn_sub(e, end, r.begin), kn_i64(e, -WIDE * KN_PANEL), "");
        LLVMValueRef wide = kn_add(e, r.begin, room);
        kn_loop_begin(e, &n, start, wide, WIDE * KN_PANEL, NULL, 0);
        emit_panel_lines(e, &r, n.index, WIDE, NULL, zero);
        kn_loop_end(e, &n, NULL);
        start = wide;
    }
    kn_loop_begin(e, &n, start, end, KN_PANEL, NULL, 0);
    LLVMValueRef masks[16];
    for (int v = 0; v < KN_PANEL / e->width; v++) {
        LLVMValueRef column = kn_add(e, n.index, kn_i64(e, v * e->width));
        masks[v] = kn_lane_mask(e, kn_max(e, kn_sub(e, r.columns, column), zero), e->width);
    }
    bool has_squares = !r.is_adjacent && c->right_k == 1;
    emit_panel_lines(e, &r, n.index, 1, masks, has_squares ? emit_panel_squares(e, &r, n.index) : zero);
    kn_loop_end(e, &n, NULL);
    x->right = kn_float_address(e, x->packed_right, kn_sub(e, zero, kn_mul(e, r.begin, r.sum)));
}

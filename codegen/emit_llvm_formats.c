/* codegen/emit_llvm_formats.c - what a tile does with one step of its sum, by the format of the
 * panels: rounded weights become float32 in registers, and are multiplied and summed as such;
 * BFLOAT16_DOT multiplies pairs of bfloat16 and sums in float32, as vdpbf16ps does (products are
 * exact, subnormals count as zero, each pair is added with its roundings to even).
 *
 * A vector of int8 is widened by one load and one conversion; a pair of bfloat16 by a shift and a
 * mask; four bits by a shift and a look-up in a register (AVX-512) or two shifts and a conversion,
 * times their scale. At 14 x 2 vectors this is a tenth of the multiplications; of one row it is as
 * much work as memory takes to bring the weights. */
#include "codegen/emit_llvm_contraction.h"

static LLVMTypeRef vector_of(LLVMTypeRef t, int lanes) { return LLVMVectorType(t, (unsigned)lanes); }

static LLVMTypeRef bfloat_vector(kn_emitter *e, int lanes) {
    return vector_of(LLVMBFloatTypeInContext(e->unit->context), lanes);
}

static LLVMValueRef load(kn_emitter *e, LLVMTypeRef type, LLVMValueRef address, int align) {
    LLVMValueRef v = LLVMBuildLoad2(e->b, type, address, "");
    LLVMSetAlignment(v, (unsigned)align);
    return v;
}

static LLVMValueRef words(kn_emitter *e, int64_t value) {
    return kn_splat(e, LLVMConstInt(e->unit->i32, (unsigned long long)value, 1), e->width);
}

static LLVMValueRef floats(kn_emitter *e, LLVMValueRef bits) {
    return LLVMBuildBitCast(e->b, bits, vector_of(e->unit->f32, e->width), "");
}

/* Vector j lies in panel j / per_panel, as its part j % per_panel. */
static int per_panel(const kn_emitter *e) { return KN_PANEL / e->width; }

static LLVMValueRef panel(kn_emitter *e, const kn_tile *t, LLVMValueRef base, int p) {
    return kn_address(e, base, kn_mul(e, t->panel_bytes, kn_i64(e, p)));
}

/* ---- the right side ---- */

/* Scales of the group of 32 that k is in: they lie behind the panel's elements. */
static void load_int4_scales(kn_emitter *e, kn_step *s, LLVMValueRef k) {
    LLVMBuilderRef b = e->b;
    LLVMValueRef group = LLVMBuildLShr(b, k, kn_i64(e, 5), "");
    LLVMValueRef offset = kn_add(e, kn_mul(e, s->t->length, kn_i64(e, KN_PANEL / 2)),
                                 kn_mul(e, group, kn_i64(e, KN_PANEL * 2)));
    for (int j = 0; j < s->t->vectors; j++) {
        LLVMValueRef base = kn_address(e, panel(e, s->t, s->t->right, j / per_panel(e)), offset);
        base = kn_address(e, base, kn_i64(e, j % per_panel(e) * e->width * 2));
        LLVMValueRef half = load(e, vector_of(e->unit->i16, e->width), base, e->width * 2);
        LLVMValueRef wide = LLVMBuildZExt(b, half, vector_of(e->unit->i32, e->width), "");
        s->scales[j] = floats(e, LLVMBuildShl(b, wide, words(e, 16), ""));
    }
}

/* While tiles of some columns are summed, the panels of the next columns come to the second-level cache,
 * to each tile of the block its share: asked for by one tile alone they come faster than memory gives
 * them, and that tile waits. With one row weights are read once, in order; the processor sees that by
 * itself where they are float32, but panels of rounded ones are short (8 streams of 12 KB for 768 terms
 * of int8), and it begins each anew. */
static void prefetch_next(kn_emitter *e, const kn_step *s, LLVMValueRef b, int64_t step,
                          LLVMValueRef k) {
    const kn_tile *t = s->t;
    int panels = (t->vectors + per_panel(e) - 1) / per_panel(e);
    bool is_few = t->format == KN_FLOAT32 ? t->rows < 4 : t->rows > 1 && t->rows < 4;
    if (is_few || !LLVMIsConstant(t->panel_bytes))
        return;
    int64_t term_bytes = kn_format_step_bytes(t->format) / kn_format_step(t->format);
    for (int p = 0; p < panels; p++) {
        LLVMValueRef at;
        if (s->next)
            at = kn_address(e, panel(e, t, s->next, p),
                            kn_mul(e, k, kn_max(e, LLVMBuildLShr(e->b, kn_i64(e, term_bytes), t->next_shift, ""), kn_i64(e, 1))));
        else
            at = kn_address(e, panel(e, t, b, t->ahead ? p : p + panels),
                            kn_i64(e, t->ahead + step * kn_format_step_bytes(t->format)));
        kn_prefetch(e, at);
    }
}

void kn_step_begin(kn_emitter *e, kn_step *s, LLVMValueRef b, int64_t step, LLVMValueRef k, int64_t terms) {
    if (s->t->line_bytes) {
        kn_emit_right_step(e, s->t, b, step, terms, s->raw);
        return;
    }
    kn_format format = s->t->format;
    LLVMTypeRef element = format == KN_FLOAT32 ? e->unit->f32
                          : format == KN_INT8  ? e->unit->i8
                                               : e->unit->i32;
    int bytes = e->width * (format == KN_INT8 ? 1 : 4);
    for (int j = 0; j < s->t->vectors; j++) {
        LLVMValueRef at = panel(e, s->t, b, j / per_panel(e));
        at = kn_address(e, at, kn_i64(e, step * kn_format_step_bytes(format) +
                                             j % per_panel(e) * bytes));
        s->raw[j] = load(e, vector_of(element, e->width), at, bytes);
    }
    if (format == KN_INT4)
        load_int4_scales(e, s, k);
    prefetch_next(e, s, b, step, k);
}

int kn_step_rounds(const kn_step *s, int64_t terms) {
    return s->t->format == KN_BFLOAT16_DOT ? 1 : (int)terms;
}

static LLVMValueRef int4_column(kn_emitter *e, LLVMValueRef raw, LLVMValueRef scale, int round) {
    LLVMBuilderRef b = e->b;
    LLVMValueRef value;
    if (e->width == 16) { /* the look-up reads the lowest four bits of each index */
        LLVMValueRef values[16];
        for (int i = 0; i < 16; i++)
            values[i] = LLVMConstReal(e->unit->f32, i < 8 ? i : i - 16);
        LLVMValueRef index = round ? LLVMBuildLShr(b, raw, words(e, 4 * round), "") : raw;
        LLVMValueRef args[2] = {LLVMConstVector(values, 16), index};
        value = kn_intrinsic(e, "llvm.x86.avx512.permvar.sf.512", NULL, 0, args, 2);
    } else {
        LLVMValueRef high = round == 7 ? raw : LLVMBuildShl(b, raw, words(e, 28 - 4 * round), "");
        LLVMValueRef code = LLVMBuildAShr(b, high, words(e, 28), "");
        value = LLVMBuildSIToFP(b, code, vector_of(e->unit->f32, e->width), "");
    }
    return LLVMBuildFMul(b, value, scale, "");
}

static LLVMValueRef column(kn_emitter *e, const kn_step *s, int j, int round) {
    LLVMBuilderRef b = e->b;
    LLVMValueRef raw = s->raw[j];
    switch (s->t->format) {
    case KN_FLOAT32: return raw;
    case KN_BFLOAT16_DOT: return LLVMBuildBitCast(b, raw, bfloat_vector(e, e->width * 2), "");
    case KN_BFLOAT16:
        return floats(e, round ? LLVMBuildAnd(b, raw, words(e, 0xffff0000), "")
                               : LLVMBuildShl(b, raw, words(e, 16), ""));
    case KN_INT8:
        return LLVMBuildSIToFP(b, LLVMBuildSExt(b, raw, vector_of(e->unit->i32, e->width), ""),
                               vector_of(e->unit->f32, e->width), "");
    case KN_INT4: return int4_column(e, raw, s->scales[j], round);
    }
    return raw;
}

void kn_step_columns(kn_emitter *e, kn_step *s, int round, LLVMValueRef *columns) {
    for (int j = 0; j < s->t->vectors; j++)
        columns[j] = s->t->has_squares ? s->raw[j * e->width + round] : column(e, s, j, round);
}

/* ---- the left side, sums ---- */

LLVMValueRef kn_step_row(kn_emitter *e, const kn_step *s, LLVMValueRef address, int64_t terms) {
    if (s->t->format != KN_BFLOAT16_DOT)
        return kn_splat(e, load(e, e->unit->f32, address, 4), e->width);
    LLVMValueRef pair = kn_splat(e, load(e, e->unit->i32, address, 2), e->width);
    if (terms == 1) /* what comes next is no part of the sum: it may be an infinity */
        pair = LLVMBuildAnd(e->b, pair, words(e, 0xffff), "");
    return LLVMBuildBitCast(e->b, pair, bfloat_vector(e, e->width * 2), "");
}

LLVMValueRef kn_step_multiply(kn_emitter *e, const kn_step *s, LLVMValueRef a, LLVMValueRef b,
                              LLVMValueRef sum) {
    if (s->t->format != KN_BFLOAT16_DOT)
        return kn_fma(e, a, b, sum);
    LLVMValueRef args[3] = {sum, b, a};
    return kn_intrinsic(e, "llvm.x86.avx512bf16.dpbf16ps.512", NULL, 0, args, 3);
}

void kn_step_finish(kn_emitter *e, const kn_tile *t, LLVMValueRef *sums) {
    if (t->format != KN_INT8)
        return;
    for (int j = 0; j < t->vectors; j++) { /* scales end the panel */
        LLVMValueRef at = panel(e, t, t->right, j / per_panel(e) + 1);
        at = kn_address(e, at, kn_i64(e, j % per_panel(e) * e->width * 4 - KN_PANEL * 4));
        LLVMValueRef scale = load(e, vector_of(e->unit->f32, e->width), at, e->width * 4);
        for (int i = 0; i < t->rows; i++)
            sums[i * t->vectors + j] = LLVMBuildFMul(e->b, sums[i * t->vectors + j], scale, "");
    }
}

/* ---- rows in bfloat16 ----
 *
 * A row is read several times by tiles that want pairs of bfloat16; each is rounded once an item (to
 * even, as everywhere; 16 elements take a load, a conversion and a store, against columns / 64 vector
 * instructions an element of the product). Rows are padded with zeros to whole vectors, so that the
 * padding of weights meets numbers. */

enum { LANES = 16 };

int64_t kn_dot_row_bytes(int64_t k) {
    int64_t bytes = (k * 2 + 63) / 64 * 64;
    return bytes % 4096 == 0 ? bytes + 64 : bytes; /* rows a page apart would share cache sets */
}

void kn_emit_dot_copy(kn_emitter *e, LLVMValueRef to, LLVMValueRef from, LLVMValueRef stride,
                      int64_t count) {
    LLVMTypeRef half = bfloat_vector(e, LANES);
    kn_loop loop;
    LLVMValueRef end = kn_i64(e, count);
    kn_loop_begin(e, &loop, kn_i64(e, 0), end, LANES, NULL, 0);
    LLVMValueRef mask =
        count % LANES ? kn_lane_mask(e, kn_sub(e, end, loop.index), LANES) : NULL;
    LLVMValueRef at = stride ? kn_mul(e, loop.index, stride) : loop.index;
    LLVMValueRef x = kn_emit_load(e, kn_element(e, from, at, 4), stride, RT_float32, LANES, mask);
    LLVMValueRef rounded = LLVMBuildFPTrunc(e->b, x, half, "");
    LLVMValueRef store = LLVMBuildStore(e->b, rounded, kn_element(e, to, loop.index, 2));
    LLVMSetAlignment(store, 2);
    kn_loop_end(e, &loop, NULL);
}

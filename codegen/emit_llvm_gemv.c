/* codegen/emit_llvm_gemv.c - one row times packed panels, where the weights come from a cache.
 *
 * The tiles of emit_llvm_tile.c walk k once for all their panels: with one row that is as many
 * streams of memory as panels. Here a panel is walked to its end before the next one: one stream, in
 * order, and 8 sums of every 8th k, so that additions do not wait for one another. From the
 * second-level cache of a Zen 5 core one stream gives 260 GB/s, 4 or 8 streams 215 to 240; from the
 * third level 132 against 115 to 128. From memory several streams are as good or better. */
#include "codegen/emit_llvm_contraction.h"

enum { PANEL = KN_PANEL, CHAINS = 8 };

static LLVMValueRef load_vector(kn_emitter *e, LLVMValueRef base, int64_t bytes) {
    LLVMTypeRef type = LLVMVectorType(e->unit->f32, (unsigned)e->lanes);
    LLVMValueRef v = LLVMBuildLoad2(e->b, type, kn_address(e, base, kn_i64(e, bytes)), "");
    LLVMSetAlignment(v, (unsigned)e->lanes * 4);
    return v;
}

/* sums[u * per_panel + v] += x[k + u] * panel[k + u][vector v] for u < steps */
static void emit_steps(kn_emitter *e, LLVMValueRef panel, LLVMValueRef x, LLVMValueRef k, int steps,
                       LLVMValueRef *sums) {
    int per_panel = PANEL / e->lanes;
    LLVMValueRef b = kn_element(e, panel, k, PANEL * 4), a = kn_element(e, x, k, 4);
    for (int u = 0; u < steps; u++) {
        LLVMValueRef s = LLVMBuildLoad2(e->b, e->unit->f32, kn_address(e, a, kn_i64(e, u * 4)), "");
        LLVMSetAlignment(s, 4);
        s = kn_splat(e, s, e->lanes);
        for (int v = 0; v < per_panel; v++)
            sums[u * per_panel + v] =
                kn_fma(e, s, load_vector(e, b, (int64_t)u * PANEL * 4 + (int64_t)v * e->lanes * 4),
                       sums[u * per_panel + v]);
    }
}

/* void f(const float *panels, int64_t panel_bytes, int64_t length, const float *row, float *tile) */
static void emit_gemv(cg_unit *unit, LLVMValueRef f, int panels) {
    kn_kernel none = {0};
    kn_emitter x = {.unit = unit, .function = f, .k = &none}, *e = &x;
    e->b = LLVMCreateBuilderInContext(unit->context);
    e->lanes = e->width = unit->target->vector_bytes / 4;
    int per_panel = PANEL / e->lanes, steps = CHAINS / per_panel;
    LLVMPositionBuilderAtEnd(e->b, LLVMAppendBasicBlockInContext(unit->context, f, ""));
    LLVMValueRef length = LLVMGetParam(f, 2), row = LLVMGetParam(f, 3);
    LLVMValueRef zero = LLVMConstNull(LLVMVectorType(unit->f32, (unsigned)e->lanes)), sums[CHAINS];
    kn_loop panel, k;
    kn_loop_begin(e, &panel, kn_i64(e, 0), kn_i64(e, panels), 1, NULL, 0);
    LLVMValueRef b = kn_address(e, LLVMGetParam(f, 0), kn_mul(e, panel.index, LLVMGetParam(f, 1)));
    for (int i = 0; i < CHAINS; i++)
        sums[i] = zero;
    kn_loop_begin(e, &k, kn_i64(e, 0), kn_sub(e, length, kn_i64(e, steps - 1)), steps, sums, CHAINS);
    for (int i = 0; i < CHAINS; i++)
        sums[i] = k.phis[i];
    emit_steps(e, b, row, k.index, steps, sums);
    kn_loop_end(e, &k, sums);
    for (int i = 0; i < CHAINS; i++)
        sums[i] = k.exit_phis[i];
    LLVMValueRef done = LLVMBuildAnd(e->b, length, kn_i64(e, -(int64_t)steps), "");
    kn_loop_begin(e, &k, done, length, 1, sums, per_panel);
    for (int i = 0; i < per_panel; i++)
        sums[i] = k.phis[i];
    emit_steps(e, b, row, k.index, 1, sums);
    kn_loop_end(e, &k, sums);
    for (int i = 0; i < per_panel; i++)
        sums[i] = k.exit_phis[i];
    for (int step = CHAINS / 2; step >= per_panel; step /= 2)
        for (int i = 0; i < step; i++)
            sums[i] = LLVMBuildFAdd(e->b, sums[i], sums[i + step], "");
    LLVMValueRef tile = kn_element(e, LLVMGetParam(f, 4), panel.index, PANEL * 4);
    for (int v = 0; v < per_panel; v++)
        LLVMSetAlignment(
            LLVMBuildStore(e->b, sums[v], kn_address(e, tile, kn_i64(e, (int64_t)v * e->lanes * 4))),
            (unsigned)e->lanes * 4);
    kn_loop_end(e, &panel, NULL);
    LLVMBuildRetVoid(e->b);
    LLVMDisposeBuilder(e->b);
}

bool kn_is_cached_row(const kn_kernel *k, const kn_plan *p) {
    const kn_contraction *c = &k->contraction;
    rt_dim columns = k->dims[c->batch_count + 1].size;
    return p->rows == 1 && p->vectors > 1 && !p->reads_right && p->taps == 1 && c->format == KN_FLOAT32 &&
           (c->left_kind == KN_LEFT_ROWS || c->left_kind == KN_LEFT_PACKED) &&
           rt_dim_is_constant(columns) && rt_dim_is_constant(c->k) && c->k > 0 &&
           columns <= (4 << 20) / 4 / c->k;
}

void kn_emit_row_sums(kn_emitter *e, const kn_tile *t, LLVMValueRef tile, LLVMValueRef *out_sums) {
    cg_unit *unit = e->unit;
    LLVMTypeRef params[5] = {unit->pointer, unit->i64, unit->i64, unit->pointer, unit->pointer};
    LLVMTypeRef type = LLVMFunctionType(unit->void_type, params, 5, 0);
    int panels = (t->vectors * e->lanes + PANEL - 1) / PANEL;
    ts_str name = ts_arena_format(unit->arena, "gemv_%d", panels * PANEL);
    LLVMValueRef f = LLVMGetNamedFunction(unit->module, name.data);
    if (!f) {
        f = cg_function_make(unit, name.data, type);
        emit_gemv(unit, f, panels);
    }
    LLVMValueRef args[5] = {t->right, t->panel_bytes, t->length, t->left, tile};
    LLVMBuildCall2(e->b, type, f, args, 5, "");
    for (int v = 0; v < t->vectors; v++)
        out_sums[v] = load_vector(e, tile, (int64_t)v * e->lanes * 4);
}

/* codegen/microkernels.c - register-blocked matrix products.
 *
 *   void f(const float *b, int64_t panel_bytes, int64_t taps, int64_t length,
 *          const float *const *rows, int64_t row_step_bytes, float *tile)
 *
 *   tile[i][j] = sum over t < taps, c < length of rows[t][i][c] * b[j / 16][t * length + c][j % 16]
 *
 * b holds panels of 16 columns, panel_bytes apart; rows are addresses, so that one kernel serves
 * matrices, and convolutions without a copy of the image (an address of zeros stands for padding).
 * tile is [rows][panels * 16]. The accumulators stay in registers: MR * NV + NV + 1 must not exceed
 * the register file (14 x 2 vectors on AVX-512, 6 x 2 on AVX2), past that everything spills.
 * No blocking of the sum: 14 x 32 asks for 9 bytes a cycle of b, which the second-level cache gives
 * (measured on Zen 5: 262-280 of 285 GFLOP/s for the layers of a ResNet).
 *
 * One function for each (rows, panels), shared by all kernels of a unit: compile time grows with
 * the number of micro-kernels, not of layers. */
#include "codegen/emit_llvm_kernel.h"

typedef struct shared_kernels {
    LLVMValueRef functions[33][17];
} shared_kernels;

enum { PANEL = 16, MAX_TILE_VECTORS = 32 };

static LLVMTypeRef microkernel_type(cg_unit *unit) {
    LLVMTypeRef params[7] = {unit->pointer, unit->i64, unit->i64,    unit->i64,
                             unit->pointer, unit->i64, unit->pointer};
    return LLVMFunctionType(unit->void_type, params, 7, 0);
}

static LLVMValueRef at(LLVMBuilderRef b, cg_unit *unit, LLVMValueRef base, LLVMValueRef bytes) {
    return LLVMBuildGEP2(b, unit->i8, base, &bytes, 1, "");
}

static void emit_microkernel(cg_unit *unit, LLVMValueRef f, int rows, int panels) {
    LLVMContextRef c = unit->context;
    int lanes = unit->target->vector_bytes / 4, per_panel = PANEL / lanes;
    int columns = panels * per_panel;
    LLVMTypeRef vector = LLVMVectorType(unit->f32, (unsigned)lanes);
    LLVMValueRef b_start = LLVMGetParam(f, 0), panel_bytes = LLVMGetParam(f, 1);
    LLVMValueRef taps = LLVMGetParam(f, 2), length = LLVMGetParam(f, 3);
    LLVMValueRef row_start = LLVMGetParam(f, 4), row_step = LLVMGetParam(f, 5);
    LLVMValueRef tile = LLVMGetParam(f, 6);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(c);
    kn_emitter fake = {.unit = unit, .b = b}; /* kn_fma needs the builder and the unit */

    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(c, f, "");
    LLVMBasicBlockRef outer = LLVMAppendBasicBlockInContext(c, f, "");
    LLVMBasicBlockRef inner = LLVMAppendBasicBlockInContext(c, f, "");
    LLVMBasicBlockRef latch = LLVMAppendBasicBlockInContext(c, f, "");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(c, f, "");
    LLVMValueRef zero = LLVMConstInt(unit->i64, 0, 0), one = LLVMConstInt(unit->i64, 1, 0);
    int count = rows * columns;
    LLVMValueRef none = LLVMConstNull(vector), acc_outer[64], acc[64], sums[64];

    LLVMPositionBuilderAtEnd(b, entry);
    LLVMValueRef has_terms = LLVMBuildAnd(b, LLVMBuildICmp(b, LLVMIntSGT, length, zero, ""),
                                          LLVMBuildICmp(b, LLVMIntSGT, taps, zero, ""), "");
    LLVMBuildCondBr(b, has_terms, outer, done); /* a sum of nothing is zero */

    LLVMPositionBuilderAtEnd(b, outer);
    LLVMValueRef t = LLVMBuildPhi(b, unit->i64, "");
    LLVMValueRef b_outer = LLVMBuildPhi(b, unit->pointer, "");
    LLVMValueRef r_outer = LLVMBuildPhi(b, unit->pointer, "");
    LLVMAddIncoming(t, &zero, &entry, 1);
    LLVMAddIncoming(b_outer, &b_start, &entry, 1);
    LLVMAddIncoming(r_outer, &row_start, &entry, 1);
    for (int i = 0; i < count; i++) {
        acc_outer[i] = LLVMBuildPhi(b, vector, "");
        LLVMAddIncoming(acc_outer[i], &none, &entry, 1);
    }
    LLVMValueRef row[32];
    for (int i = 0; i < rows; i++)
        row[i] = LLVMBuildLoad2(b, unit->pointer,
                                at(b, unit, r_outer, LLVMConstInt(unit->i64, (unsigned)i * 8, 0)), "");
    LLVMBuildBr(b, inner);

    LLVMPositionBuilderAtEnd(b, inner);
    LLVMValueRef k = LLVMBuildPhi(b, unit->i64, "");
    LLVMValueRef bp = LLVMBuildPhi(b, unit->pointer, "");
    LLVMAddIncoming(k, &zero, &outer, 1);
    LLVMAddIncoming(bp, &b_outer, &outer, 1);
    for (int i = 0; i < count; i++) {
        acc[i] = LLVMBuildPhi(b, vector, "");
        LLVMAddIncoming(acc[i], &acc_outer[i], &outer, 1);
    }
    LLVMValueRef columns_of_b[64];
    LLVMValueRef panel = bp;
    for (int p = 0; p < panels; p++) {
        if (p > 0)
            panel = at(b, unit, bp, LLVMBuildMul(b, panel_bytes, LLVMConstInt(unit->i64, (unsigned)p, 0), ""));
        for (int v = 0; v < per_panel; v++) {
            LLVMValueRef x = LLVMBuildLoad2(
                b, vector, at(b, unit, panel, LLVMConstInt(unit->i64, (unsigned)(v * lanes * 4), 0)), "");
            LLVMSetAlignment(x, (unsigned)unit->target->vector_bytes);
            columns_of_b[p * per_panel + v] = x;
        }
    }
    for (int i = 0; i < rows; i++) {
        LLVMValueRef address = LLVMBuildGEP2(b, unit->f32, row[i], &k, 1, "");
        LLVMValueRef a = LLVMBuildLoad2(b, unit->f32, address, "");
        a = kn_splat(&fake, a, lanes);
        for (int j = 0; j < columns; j++)
            sums[i * columns + j] = kn_fma(&fake, a, columns_of_b[j], acc[i * columns + j]);
    }
    LLVMValueRef k_next = LLVMBuildAdd(b, k, one, "");
    LLVMValueRef b_next = at(b, unit, bp, LLVMConstInt(unit->i64, PANEL * 4, 0));
    LLVMAddIncoming(k, &k_next, &inner, 1);
    LLVMAddIncoming(bp, &b_next, &inner, 1);
    for (int i = 0; i < count; i++)
        LLVMAddIncoming(acc[i], &sums[i], &inner, 1);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, k_next, length, ""), inner, latch);

    LLVMPositionBuilderAtEnd(b, latch);
    LLVMValueRef t_next = LLVMBuildAdd(b, t, one, "");
    LLVMValueRef r_next = at(b, unit, r_outer, row_step);
    LLVMAddIncoming(t, &t_next, &latch, 1);
    LLVMAddIncoming(b_outer, &b_next, &latch, 1);
    LLVMAddIncoming(r_outer, &r_next, &latch, 1);
    for (int i = 0; i < count; i++)
        LLVMAddIncoming(acc_outer[i], &sums[i], &latch, 1);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, t_next, taps, ""), outer, done);

    LLVMPositionBuilderAtEnd(b, done);
    for (int i = 0; i < count; i++) {
        LLVMValueRef result = LLVMBuildPhi(b, vector, "");
        LLVMAddIncoming(result, &none, &entry, 1);
        LLVMAddIncoming(result, &sums[i], &latch, 1);
        sums[i] = result;
    }
    for (int i = 0; i < count; i++) {
        LLVMValueRef s = LLVMBuildStore(
            b, sums[i], at(b, unit, tile, LLVMConstInt(unit->i64, (unsigned)(i * lanes * 4), 0)));
        LLVMSetAlignment(s, (unsigned)unit->target->vector_bytes);
    }
    LLVMBuildRetVoid(b);
    LLVMDisposeBuilder(b);
}

LLVMValueRef kn_microkernel(cg_unit *unit, int rows, int panels, LLVMTypeRef *out_type) {
    *out_type = microkernel_type(unit);
    if (!unit->kernel_state)
        unit->kernel_state = TS_NEW(unit->arena, shared_kernels);
    shared_kernels *shared = unit->kernel_state;
    if (!shared->functions[rows][panels]) {
        ts_str name = ts_arena_format(unit->arena, "product_%dx%d", rows, panels * PANEL);
        LLVMValueRef f = cg_function_make(unit, name.data, *out_type);
        shared->functions[rows][panels] = f;
        emit_microkernel(unit, f, rows, panels);
    }
    return shared->functions[rows][panels];
}

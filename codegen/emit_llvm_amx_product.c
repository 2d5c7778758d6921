/* codegen/emit_llvm_amx_product.c - numbers split into parts, and products of tiles of parts; functions of the
 * unit, one of each shape.
 *
 * The 24 products of a step take the tile unit some 400 cycles, in which the core's other units split what is
 * multiplied next: it stands between the products. */
#include "codegen/emit_llvm_amx.h"

#include <string.h>

enum { PRODUCTS = 24, SUM_TILES = 4, MOST_ARGUMENTS = 24 };

/* ---- instructions ---- */

static LLVMValueRef tile_number(kn_emitter *e, int tile) {
    return LLVMConstInt(LLVMInt8TypeInContext(e->unit->context), (unsigned)tile, 0);
}

static void tile_load(kn_emitter *e, int tile, LLVMValueRef from, LLVMValueRef stride) {
    LLVMValueRef args[3] = {tile_number(e, tile), from, stride};
    kn_intrinsic(e, "llvm.x86.tileloadd64", NULL, 0, args, 3);
}

static void tile_store(kn_emitter *e, int tile, LLVMValueRef to, LLVMValueRef stride) {
    LLVMValueRef args[3] = {tile_number(e, tile), to, stride};
    kn_intrinsic(e, "llvm.x86.tilestored64", NULL, 0, args, 3);
}

static void tile_zero(kn_emitter *e, int tile) {
    LLVMValueRef number = tile_number(e, tile);
    kn_intrinsic(e, "llvm.x86.tilezero", NULL, 0, &number, 1);
}

static void tile_multiply(kn_emitter *e, int sum, int rows, int columns) {
    LLVMValueRef args[3] = {tile_number(e, sum), tile_number(e, rows), tile_number(e, columns)};
    kn_intrinsic(e, "llvm.x86.tdpbf16ps", NULL, 0, args, 3);
}

void kn_amx_begin(kn_emitter *e, int rows) {
    LLVMTypeRef byte = LLVMInt8TypeInContext(e->unit->context);
    LLVMValueRef bytes[64];
    for (int i = 0; i < 64; i++)
        bytes[i] = LLVMConstInt(byte, 0, 0);
    bytes[0] = LLVMConstInt(byte, 1, 0); /* the palette */
    for (int tile = 0; tile < 8; tile++) {
        bytes[16 + 2 * tile] = LLVMConstInt(byte, 64, 0);
        bytes[48 + tile] = LLVMConstInt(byte, tile < 6 ? (unsigned)rows : 16, 0);
    }
    LLVMValueRef to = LLVMBuildArrayAlloca(e->b, byte, LLVMConstInt(e->unit->i32, 64, 0), "");
    LLVMSetAlignment(to, 64);
    LLVMSetAlignment(LLVMBuildStore(e->b, LLVMConstVector(bytes, 64), to), 64);
    kn_intrinsic(e, "llvm.x86.ldtilecfg", NULL, 0, &to, 1);
}

void kn_amx_end(kn_emitter *e) { kn_intrinsic(e, "llvm.x86.tilerelease", NULL, 0, NULL, 0); }

/* ---- numbers to parts ---- */

static LLVMValueRef bits_of(kn_emitter *e, LLVMValueRef v) {
    return LLVMBuildBitCast(e->b, v, kn_llvm_type(e, RT_int32, 16), "");
}

static LLVMValueRef high_half(kn_emitter *e, LLVMValueRef bits) {
    return LLVMBuildAnd(e->b, bits, kn_int_constant(e, RT_int32, 16, -0x10000), "");
}

static void store_pairs(kn_emitter *e, LLVMValueRef first, LLVMValueRef second, LLVMValueRef to, int64_t at) {
    first = LLVMBuildLShr(e->b, first, kn_int_constant(e, RT_int32, 16, 16), "");
    LLVMValueRef pairs = LLVMBuildOr(e->b, first, second, "");
    LLVMSetAlignment(LLVMBuildStore(e->b, pairs, kn_address(e, to, kn_i64(e, at))), 64);
}

/* The same value, computed here: LLVM else puts sums of flags off to the end of a step, and what they add goes to
 * the stack and back. */
static LLVMValueRef made_here(kn_emitter *e, LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value), function = LLVMFunctionType(type, &type, 1, 0);
    static const char constraints[] = "=v,0";
    LLVMValueRef nothing = LLVMGetInlineAsm(function, "", 0, constraints, sizeof constraints - 1, 1, 0,
                                            LLVMInlineAsmDialectATT, 0);
    return LLVMBuildCall2(e->b, function, nothing, &value, 1, "");
}

/* 16 pairs (x[0][i], x[1][i]) to their parts. Adds to *flags, where that is not NULL, what is NaN where a number is
 * not finite and otherwise tiny. */
static void emit_split(kn_emitter *e, LLVMValueRef x[2], LLVMValueRef to, LLVMValueRef *flags) {
    LLVMTypeRef floats = kn_llvm_type(e, RT_float32, 16);
    LLVMValueRef rest[2] = {x[0], x[1]}, high[2], half = kn_int_constant(e, RT_int32, 16, 0x8000);
    for (int part = 0; part < 2; part++) {
        for (int i = 0; i < 2; i++) {
            high[i] = high_half(e, LLVMBuildAdd(e->b, bits_of(e, rest[i]), half, ""));
            rest[i] = LLVMBuildFSub(e->b, rest[i], LLVMBuildBitCast(e->b, high[i], floats, ""), "");
        }
        store_pairs(e, high[0], high[1], to, part * AMX_PART_BYTES);
    }
    store_pairs(e, bits_of(e, rest[0]), high_half(e, bits_of(e, rest[1])), to, 2 * AMX_PART_BYTES);
    if (flags)
        *flags = made_here(e, LLVMBuildFAdd(e->b, *flags, LLVMBuildFAdd(e->b, rest[0], rest[1], ""), ""));
}

static LLVMValueRef load_flags(kn_emitter *e, LLVMValueRef from) {
    if (!from)
        return LLVMConstNull(kn_llvm_type(e, RT_float32, 16));
    LLVMValueRef flags = LLVMBuildLoad2(e->b, kn_llvm_type(e, RT_float32, 16), from, "");
    LLVMSetAlignment(flags, 64);
    return flags;
}

static void store_flags(kn_emitter *e, LLVMValueRef flags, LLVMValueRef to) {
    if (to)
        LLVMSetAlignment(LLVMBuildStore(e->b, flags, to), 64);
}

LLVMValueRef kn_amx_is_flagged(kn_emitter *e, LLVMValueRef flags) {
    LLVMValueRef lanes = LLVMBuildFCmp(e->b, LLVMRealUNO, flags, flags, "");
    lanes = LLVMBuildBitCast(e->b, lanes, LLVMIntTypeInContext(e->unit->context, 16), "");
    return LLVMBuildICmp(e->b, LLVMIntNE, lanes, LLVMConstInt(LLVMTypeOf(lanes), 0, 0), "");
}

/* Step s of a row. */
typedef struct row_step {
    LLVMValueRef at;       /* bytes behind the row's first term */
    LLVMValueRef masks[2]; /* NULL: all terms exist */
} row_step;

static row_step make_row_step(kn_emitter *e, const kn_amx_rows *r, LLVMValueRef s) {
    row_step step = {.at = kn_mul(e, s, kn_i64(e, AMX_STEP * 4))};
    if (r->terms) {
        LLVMValueRef left = kn_sub(e, r->terms, kn_mul(e, s, kn_i64(e, AMX_STEP)));
        for (int i = 0; i < 2; i++)
            step.masks[i] = kn_lane_mask(e, kn_max(e, kn_sub(e, left, kn_i64(e, i * 16)), kn_i64(e, 0)), 16);
    }
    return step;
}

static void emit_row_unit(kn_emitter *e, const row_step *s, LLVMValueRef row, LLVMValueRef to, LLVMValueRef *flags) {
    LLVMValueRef x[2];
    for (int i = 0; i < 2; i++) {
        LLVMValueRef from = kn_address(e, kn_address(e, row, s->at), kn_i64(e, i * 64));
        x[i] = kn_emit_load(e, from, NULL, RT_float32, 16, s->masks[i]);
    }
    emit_split(e, x, to, flags);
}

/* Where unit `unit`, a multiple of `count`, and the count - 1 behind it lie. */
typedef struct column_units {
    LLVMValueRef line;  /* the first, of the block */
    LLVMValueRef from, to;
    int count;
} column_units;

static column_units make_column_units(kn_emitter *e, const kn_amx_columns *c, LLVMValueRef unit, int count) {
    LLVMValueRef step = LLVMBuildLShr(e->b, unit, kn_i64(e, 5), "");
    LLVMValueRef inner = LLVMBuildAnd(e->b, unit, kn_i64(e, 31), ""); /* panel * 16 + pair */
    LLVMValueRef panel = LLVMBuildLShr(e->b, inner, kn_i64(e, 4), ""), pair = LLVMBuildAnd(e->b, inner, kn_i64(e, 15), "");
    LLVMValueRef at = kn_add(e, kn_mul(e, step, kn_i64(e, AMX_STEP_BYTES)), kn_mul(e, panel, kn_i64(e, AMX_OPERAND_BYTES)));
    LLVMValueRef is_first = LLVMBuildICmp(e->b, LLVMIntULT, inner, kn_i64(e, 16), "");
    return (column_units){.count = count,
                          .line = kn_add(e, kn_mul(e, step, kn_i64(e, AMX_STEP)), pair),
                          .to = kn_address(e, c->to, kn_add(e, at, kn_mul(e, pair, kn_i64(e, 64)))),
                          .from = LLVMBuildSelect(e->b, is_first, c->from[0], c->from[1], "")};
}

/* Unit j of them. */
static void emit_column_unit(kn_emitter *e, const kn_amx_columns *c, const column_units *u, int j, LLVMValueRef *flags) {
    LLVMValueRef x[2], base = u->from, to = u->to;
    if (j >= 16) { /* of the second panel, where they are all of a step */
        base = c->from[1];
        to = kn_address(e, to, kn_i64(e, AMX_OPERAND_BYTES - 16 * 64));
    }
    for (int i = 0; i < 2; i++) {
        LLVMValueRef line = kn_add(e, u->line, kn_i64(e, j % 16 + i * 16));
        if (c->last_line)
            line = kn_min(e, line, c->last_line);
        LLVMValueRef bytes = c->line_bytes ? c->line_bytes : kn_i64(e, 64);
        LLVMValueRef from = kn_address(e, base, kn_mul(e, line, bytes));
        x[i] = kn_emit_load(e, from, NULL, RT_float32, 16, NULL);
        if (c->ahead)
            kn_prefetch(e, kn_address(e, from, c->ahead));
    }
    emit_split(e, x, kn_address(e, to, kn_i64(e, j * 64)), c->flags ? flags : NULL);
}

/* ---- functions ---- */

/* What a function gets: values in an order that both sides keep; those that are NULL are not passed. */
typedef struct call {
    LLVMValueRef args[MOST_ARGUMENTS];
    int count;
    LLVMValueRef function; /* whose parameters `take` reads instead; NULL: the caller's side */
} call;

static LLVMValueRef take(call *c, LLVMValueRef v) {
    if (!v)
        return NULL;
    if (c->function)
        return LLVMGetParam(c->function, (unsigned)c->count++);
    return c->args[c->count++] = v;
}

static void take_rows(call *c, kn_amx_rows *r) {
    r->from = take(c, r->from);
    r->bytes = take(c, r->bytes);
    r->to = take(c, r->to);
    r->flags = take(c, r->flags);
    r->terms = take(c, r->terms);
}

static void take_columns(call *c, kn_amx_columns *x) {
    x->from[0] = take(c, x->from[0]);
    x->from[1] = take(c, x->from[1]);
    x->to = take(c, x->to);
    x->line_bytes = take(c, x->line_bytes);
    x->last_line = take(c, x->last_line);
    x->flags = take(c, x->flags);
    x->ahead = take(c, x->ahead);
}

/* Calls the function of this name with c's arguments. True where its body is missing: *inner stands at its begin, and
 * *out_taken gives its parameters in their order; body_end when it is written. */
static bool call_function(kn_emitter *e, const call *c, ts_str name, kn_emitter *inner, call *out_taken) {
    LLVMTypeRef params[MOST_ARGUMENTS];
    for (int i = 0; i < c->count; i++)
        params[i] = LLVMTypeOf(c->args[i]);
    LLVMTypeRef type = LLVMFunctionType(e->unit->void_type, params, (unsigned)c->count, 0);
    LLVMValueRef args[MOST_ARGUMENTS], f = LLVMGetNamedFunction(e->unit->module, name.data);
    bool is_new = !f;
    if (is_new)
        f = cg_function_make(e->unit, name.data, type);
    memcpy(args, c->args, sizeof args);
    LLVMBuildCall2(e->b, type, f, args, (unsigned)c->count, "");
    if (!is_new)
        return false;
    *inner = (kn_emitter){.unit = e->unit, .function = f, .k = TS_NEW(e->unit->arena, kn_kernel), .lanes = 16, .width = 16};
    inner->b = LLVMCreateBuilderInContext(e->unit->context);
    LLVMPositionBuilderAtEnd(inner->b, LLVMAppendBasicBlockInContext(e->unit->context, f, ""));
    *out_taken = (call){.function = f};
    return true;
}

static void body_end(kn_emitter *inner) {
    LLVMBuildRetVoid(inner->b);
    LLVMDisposeBuilder(inner->b);
}

static ts_str columns_name(const kn_emitter *e, const kn_amx_columns *c) {
    return ts_arena_format(e->unit->arena, "%s%s%s%s", c->line_bytes ? "l" : "", c->last_line ? "e" : "",
                           c->flags ? "f" : "", c->ahead ? "a" : "");
}

static void emit_row_loops(kn_emitter *e, const kn_amx_rows *r, LLVMValueRef count, LLVMValueRef steps) {
    kn_loop row, step;
    LLVMValueRef flags = load_flags(e, r->flags);
    kn_loop_begin(e, &row, kn_i64(e, 0), count, 1, &flags, 1);
    LLVMValueRef from = kn_address(e, r->from, kn_mul(e, row.index, r->bytes)), to = kn_element(e, r->to, row.index, 64);
    kn_loop_begin(e, &step, kn_i64(e, 0), steps, 1, row.phis, 1);
    row_step s = make_row_step(e, r, step.index);
    flags = step.phis[0];
    emit_row_unit(e, &s, from, kn_element(e, to, step.index, AMX_STEP_BYTES), &flags);
    kn_loop_end(e, &step, &flags);
    kn_loop_end(e, &row, step.exit_phis);
    store_flags(e, row.exit_phis[0], r->flags);
}

void kn_amx_split_rows(kn_emitter *e, const kn_amx_rows *r, LLVMValueRef count, LLVMValueRef steps) {
    kn_emitter inner;
    call c = {.count = 0}, taken;
    kn_amx_rows rows = *r;
    take_rows(&c, &rows);
    take(&c, count);
    take(&c, steps);
    if (!call_function(e, &c, ts_arena_format(e->unit->arena, "amx_rows%s", r->terms ? "_e" : ""), &inner, &taken))
        return;
    take_rows(&taken, &rows);
    count = take(&taken, count);
    emit_row_loops(&inner, &rows, count, take(&taken, steps));
    body_end(&inner);
}

static void emit_column_loop(kn_emitter *e, const kn_amx_columns *c, LLVMValueRef first, LLVMValueRef end) {
    kn_loop units;
    LLVMValueRef flags = load_flags(e, c->flags);
    kn_loop_begin(e, &units, first, end, 4, &flags, 1);
    column_units u = make_column_units(e, c, units.index, 4);
    flags = units.phis[0];
    for (int j = 0; j < 4; j++)
        emit_column_unit(e, c, &u, j, &flags);
    kn_loop_end(e, &units, &flags);
    store_flags(e, units.exit_phis[0], c->flags);
}

void kn_amx_split_columns(kn_emitter *e, const kn_amx_columns *columns, LLVMValueRef first, LLVMValueRef end) {
    kn_emitter inner;
    call c = {.count = 0}, taken;
    kn_amx_columns x = *columns;
    take_columns(&c, &x);
    take(&c, first);
    take(&c, end);
    ts_str name = ts_arena_format(e->unit->arena, "amx_columns_%s", columns_name(e, columns).data);
    if (!call_function(e, &c, name, &inner, &taken))
        return;
    take_columns(&taken, &x);
    first = take(&taken, first);
    emit_column_loop(&inner, &x, first, take(&taken, end));
    body_end(&inner);
}

/* ---- steps ---- */

typedef struct job { /* of one step */
    row_step row;
    LLVMValueRef from, row_to; /* the next row to be split */
    column_units columns;
    LLVMValueRef row_flags, column_flags;
} job;

static void emit_job(kn_emitter *e, const kn_amx_product *p, job *j, int product) {
    int rows = p->next_rows.from ? 2 * p->rows : 0, all = rows + p->units;
    for (int unit = all * product / PRODUCTS; unit < all * (product + 1) / PRODUCTS; unit++) {
        if (unit >= rows) {
            emit_column_unit(e, &p->next_columns, &j->columns, unit - rows, &j->column_flags);
            continue;
        }
        LLVMValueRef to = kn_i64(e, unit / p->rows * AMX_OPERAND_BYTES + unit % p->rows * 64);
        emit_row_unit(e, &j->row, j->from, kn_address(e, j->row_to, to), &j->row_flags);
        j->from = kn_address(e, j->from, p->next_rows.bytes);
    }
}

/* The products of a step: of two tiles of rows and two of columns, for six pairs of parts. */
static void emit_products(kn_emitter *e, const kn_amx_product *p, LLVMValueRef rows, LLVMValueRef columns, job *j) {
    static const struct {
        int rows, columns; /* parts: hi, mid, lo */
    } order[] = {{0, 0}, {0, 1}, {1, 1}, {1, 0}, {2, 0}, {0, 2}};
    LLVMValueRef stride = kn_i64(e, 64);
    int product = 0, of_rows = -1, of_columns = -1;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        bool loads_rows = order[i].rows != of_rows, loads_columns = order[i].columns != of_columns;
        of_rows = order[i].rows;
        of_columns = order[i].columns;
        for (int n = 0; n < SUM_TILES; n++) {
            /* What is loaded first is used twice before the second is. */
            int row = loads_columns ? n % 2 : n / 2, column = loads_columns ? n / 2 : n % 2;
            int64_t row_at = row * AMX_OPERAND_BYTES + of_rows * AMX_PART_BYTES;
            int64_t column_at = column * AMX_OPERAND_BYTES + of_columns * AMX_PART_BYTES;
            if (loads_rows && column == 0)
                tile_load(e, 4 + row, kn_address(e, rows, kn_i64(e, row_at)), stride);
            if (loads_columns && row == 0)
                tile_load(e, 6 + column, kn_address(e, columns, kn_i64(e, column_at)), stride);
            tile_multiply(e, 2 * column + row, 4 + row, 6 + column);
            emit_job(e, p, j, product++);
        }
    }
}

/* Sum tile i's place among [2 * rows][32] sums. */
static LLVMValueRef sum_address(kn_emitter *e, const kn_amx_product *p, LLVMValueRef sums, int i) {
    LLVMValueRef at = kn_mul(e, p->to_bytes, kn_i64(e, i % 2 * p->rows));
    return kn_address(e, kn_address(e, sums, at), kn_i64(e, i / 2 * 64));
}

static void emit_multiplication(kn_emitter *e, const kn_amx_product *p) {
    LLVMContextRef c = e->unit->context;
    LLVMBasicBlockRef zeros = LLVMAppendBasicBlockInContext(c, e->function, "");
    LLVMBasicBlockRef loads = LLVMAppendBasicBlockInContext(c, e->function, "");
    LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(c, e->function, "");
    LLVMBuildCondBr(e->b, LLVMBuildIsNull(e->b, p->before, ""), zeros, loads);
    LLVMPositionBuilderAtEnd(e->b, zeros);
    for (int i = 0; i < SUM_TILES; i++)
        tile_zero(e, i);
    LLVMBuildBr(e->b, body);
    LLVMPositionBuilderAtEnd(e->b, loads);
    for (int i = 0; i < SUM_TILES; i++)
        tile_load(e, i, sum_address(e, p, p->before, i), p->to_bytes);
    LLVMBuildBr(e->b, body);
    LLVMPositionBuilderAtEnd(e->b, body);
    kn_loop step;
    LLVMValueRef carried[2] = {load_flags(e, p->next_rows.flags), load_flags(e, p->next_columns.flags)};
    kn_loop_begin(e, &step, kn_i64(e, 0), p->steps, 1, carried, 2);
    job j = {.row_flags = step.phis[0], .column_flags = step.phis[1]};
    LLVMValueRef at = kn_mul(e, step.index, kn_i64(e, AMX_STEP_BYTES));
    if (p->next_rows.from) {
        j.row = make_row_step(e, &p->next_rows, step.index);
        j.from = p->next_rows.from;
        j.row_to = kn_address(e, p->next_rows.to, at);
    }
    if (p->units) {
        LLVMValueRef last = kn_sub(e, p->end_unit, kn_i64(e, p->units));
        LLVMValueRef unit = kn_add(e, p->first_unit, kn_mul(e, step.index, kn_i64(e, p->units)));
        j.columns = make_column_units(e, &p->next_columns, kn_min(e, unit, last), p->units);
    }
    emit_products(e, p, kn_address(e, p->parts, at), kn_address(e, p->columns, at), &j);
    carried[0] = j.row_flags;
    carried[1] = j.column_flags;
    kn_loop_end(e, &step, carried);
    store_flags(e, step.exit_phis[0], p->next_rows.flags);
    store_flags(e, step.exit_phis[1], p->next_columns.flags);
    for (int i = 0; i < SUM_TILES; i++)
        tile_store(e, i, sum_address(e, p, p->to, i), p->to_bytes);
}

static void take_product(call *c, kn_amx_product *p) {
    p->parts = take(c, p->parts);
    p->columns = take(c, p->columns);
    p->steps = take(c, p->steps);
    p->before = take(c, p->before);
    p->to = take(c, p->to);
    p->to_bytes = take(c, p->to_bytes);
    take_rows(c, &p->next_rows);
    take_columns(c, &p->next_columns);
    p->first_unit = take(c, p->first_unit);
    p->end_unit = take(c, p->end_unit);
}

void kn_amx_multiply(kn_emitter *e, const kn_amx_product *product) {
    kn_emitter inner;
    call c = {.count = 0}, taken;
    kn_amx_product p = *product;
    take_product(&c, &p);
    const kn_amx_rows *r = &product->next_rows;
    ts_str name = ts_arena_format(e->unit->arena, "amx_%d_%s_%d%s", p.rows, !r->from ? "" : r->terms ? "re" : "r",
                                  p.units, p.units ? columns_name(e, &product->next_columns).data : "");
    if (!call_function(e, &c, name, &inner, &taken))
        return;
    take_product(&taken, &p);
    emit_multiplication(&inner, &p);
    body_end(&inner);
}

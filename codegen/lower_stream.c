/* codegen/lower_stream.c - a stream: two kernels as one, band by band.
 *
 *   items of the second kernel (blocks of lines) in bands that fit the second-level cache:
 *     lines of the image that the last band needed too move to the beginning of the buffer
 *     the first kernel's items make the lines that are missing
 *     the second kernel's items of the band read them
 *
 * Both are functions of their own, called with addresses for which the buffer begins at line 0 of the image.
 * A thread has its own buffer and makes what it reads at the ends of its part itself, so nobody waits for
 * anybody; parts are so large (see `grain`) that this costs a quarter of the first kernel at most.
 * Of an image of known sizes a band's room is found by trying; else it is bounded by a formula, and the band
 * is found at run time. */
#include "codegen/emit_llvm_kernel.h"
#include "codegen/lower.h"
#include "ir/kernel_form.h"
#include "ir/live_memory.h"

#include <string.h>

enum { BAND_BYTES = 512 << 10, MAX_BAND_BYTES = 2 << 20, SCRATCH_ALIGN = 64 };

typedef struct stream {
    cg_unit *unit;
    const ir_op *op, *first_op, *second_op;
    kn_kernel *first, *second;
    kn_kernel *outer; /* the buffers of the whole: operands, results, constants of the first, of the second */
    kn_row_items rows;
    kn_window_items lines;
    rt_dim width; /* of the image between them */
    int64_t pixel_bytes;
    int64_t band; /* items of the second kernel; 0: found at run time */
    rt_dim inner_bytes, band_bytes; /* of scratch: for the kernels, for the image */
} stream;

static ts_status unsupported(const stream *s, const char *what) {
    return ts_error_at(TS_ERR_UNSUPPORTED, s->op->place, "a stream whose %s", what);
}

/* Whether a view reads what is as large as the image: then its lines are elsewhere than the image's type says. */
static bool has_view_of_image(const stream *s, const ir_op *kernel) {
    for (const ir_op *op = kernel->regions[0]->first; op; op = op->next) {
        const ir_value *v = op->operand_count ? op->operands[0] : NULL;
        bool is_image = v && v->type->kind == IR_TENSOR && (v->def ? v->def->opcode == IR_OP_CORE : kernel == s->second_op);
        if (is_image && v->type->rank > 2 && ir_kernel_form_of(s->unit->ir, op) == IR_FORM_VIEW)
            return true;
    }
    return false;
}

/* The image: of lines that lie one after the other, for the second kernel alone, which reads it by one operand. */
static bool is_image(const stream *s) {
    const ir_value *v = s->first_op->results[0];
    if (v->type->kind != IR_TENSOR || v->type->dtype != RT_float32 || v->type->rank != 4 ||
        v->type->layout != IR_LAYOUT_CHANNELS_LAST || v->use_count != 1 || v->uses[0].op != s->second_op)
        return false;
    for (int d = 0; d < 4; d++)
        if (v->type->dims[d] == RT_DIM_UNKNOWN || v->type->dims[d] == 0)
            return false;
    return v->type->dims[0] == 1 && rt_dim_is_constant(v->type->dims[1]) && !has_view_of_image(s, s->first_op) && !has_view_of_image(s, s->second_op);
}

static ts_status find_kernels(stream *s) {
    const ir_block *body = s->op->regions[0];
    s->first_op = body->first;
    s->second_op = s->first_op ? s->first_op->next : NULL;
    if (!s->second_op || s->first_op->opcode != IR_OP_KERNEL || s->second_op->opcode != IR_OP_KERNEL ||
        s->second_op->next != body->last || s->first_op->result_count != 1 ||
        s->second_op->result_count != body->last->operand_count)
        return unsupported(s, "kernels are not two");
    for (size_t i = 0; i < body->last->operand_count; i++)
        if (body->last->operands[i] != s->second_op->results[i])
            return unsupported(s, "results are not those of its second kernel");
    for (size_t i = 0; i < s->op->operand_count; i++)
        if (s->op->operands[i]->type->kind != IR_TENSOR)
            return unsupported(s, "inputs are not tensors alone");
    return is_image(s) ? NULL : unsupported(s, "kernels have no image between them");
}

/* Items of `blocks` blocks of the second kernel, which may begin and end inside of a block, reach over
 * blocks * step_of + reach_of lines at most. */
static int64_t step_of(const stream *s) { return s->lines.lines * s->lines.window.stride; }
static int64_t reach_of(const stream *s) {
    const kn_window *w = &s->lines.window;
    return step_of(s) - w->stride + (s->lines.taps - 1) * w->dilation + 1;
}

/* Blocks [*begin, *end) of the first kernel that items [from, to) of the second read. */
static void blocks_of(const stream *s, int64_t from, int64_t to, int64_t *begin, int64_t *end) {
    const kn_window_items *l = &s->lines;
    const kn_window *w = &l->window;
    int64_t first = from / l->chunks * l->lines, last = (to + l->chunks - 1) / l->chunks * l->lines;
    last = last < l->out_lines ? last : l->out_lines;
    int64_t low = first * w->stride - w->padding, high = (last - 1) * w->stride - w->padding + (l->taps - 1) * w->dilation + 1;
    low = low < 0 ? 0 : low < w->input ? low : w->input;
    high = high < low ? low : high < w->input ? high : w->input;
    *begin = low * s->width / s->rows.rows;
    *end = (high * s->width + s->rows.rows - 1) / s->rows.rows;
    *end = *end < s->rows.blocks ? *end : s->rows.blocks;
}

/* Room for any band of `band` items, in blocks of the first kernel. */
static int64_t room_of(const stream *s, int64_t band) {
    int64_t items = s->lines.blocks * s->lines.chunks, most = 0;
    for (int64_t from = 0; from < items; from++) {
        int64_t begin, end, to = from + band < items ? from + band : items;
        blocks_of(s, from, to, &begin, &end);
        most = end - begin > most ? end - begin : most;
    }
    return most;
}

/* What an item of the first kernel makes. */
static bool find_rows(stream *s, const cg_target_info *target) {
    kn_window_items w;
    if (kn_row_items_of(s->first, target, &s->rows))
        return true;
    if (!kn_window_items_of(s->first, target, &w))
        return false;
    rt_dim rows = kn_dim_mul(s->first, s->width, w.lines);
    s->rows = (kn_row_items){w.blocks, rows, rows, w.chunks};
    return rows != RT_DIM_UNKNOWN;
}

/* What an item of the second kernel reads: under a window, or a line. */
static bool find_lines(stream *s, const cg_target_info *target) {
    const ir_type *image = s->first_op->results[0]->type;
    size_t buffer = s->first_op->results[0]->uses[0].operand;
    if (kn_window_items_of(s->second, target, &s->lines)) /* under the window alone, whose lines are kept */
        return s->second_op->regions[0]->parameters[buffer]->use_count == 1;
    rt_dim step = kn_dim_mul(s->second, image->dims[1], image->dims[3]);
    int64_t items = kn_items_of_line(s->second, (int)buffer, image->dims[2], step);
    kn_window line = {.stride = 1, .dilation = 1, .input = image->dims[2]};
    s->lines = (kn_window_items){image->dims[2], image->dims[2], 1, items, 1, line};
    return items > 0;
}

static bool is_static(const stream *s) {
    return rt_dim_is_constant(s->rows.blocks) && rt_dim_is_constant(s->rows.rows) &&
           rt_dim_is_constant(s->lines.blocks) && rt_dim_is_constant(s->lines.out_lines) &&
           rt_dim_is_constant(s->lines.window.input) && rt_dim_is_constant(s->width);
}

static ts_status plan(stream *s) {
    const ir_type *image = s->first_op->results[0]->type;
    const kn_kernel *k = s->first;
    s->width = image->dims[3];
    if (!find_rows(s, s->unit->target) || !find_lines(s, s->unit->target) ||
        !kn_dim_same(k, s->lines.window.input, image->dims[2]))
        return unsupported(s, "kernels do not go line by line");
    s->pixel_bytes = 4 * image->dims[1];
    if (!is_static(s)) { /* as emit_band chooses it: one block of the second kernel, or what BAND_BYTES hold */
        rt_dim pixels = kn_dim_add(k, kn_dim_mul(k, s->width, step_of(s) + reach_of(s)), kn_dim_mul(k, s->rows.most, 2));
        s->band_bytes = kn_dim_max(k, BAND_BYTES, kn_dim_mul(k, pixels, s->pixel_bytes));
        return NULL;
    }
    int64_t block_bytes = s->rows.rows * s->pixel_bytes;
    s->band = s->lines.chunks;
    while (s->band < s->lines.blocks * s->lines.chunks && room_of(s, s->band + s->lines.chunks) * block_bytes <= BAND_BYTES)
        s->band += s->lines.chunks;
    s->band_bytes = room_of(s, s->band) * block_bytes;
    return s->band_bytes <= MAX_BAND_BYTES ? NULL : unsupported(s, "bands are large");
}

/* Operations of an item where sizes are not known, of an image of the usual ones. */
static double usual_cost(const stream *s, rt_dim items) {
    enum { OPERATIONS = 32 }; /* for an element of the image, in both kernels */
    int64_t bytes = ir_usual_bytes(s->unit->ir, s->first_op->results[0]->type);
    int64_t count = ir_dim_estimate(s->unit->ir, items, IR_USUAL_SIZE);
    return count > 0 ? (double)OPERATIONS * (double)bytes / (4 * (double)count) : 0;
}

/* The kernel as the host program sees it. */
static ts_status describe(stream *s) {
    kn_kernel *a = s->first, *b = s->second;
    int tensors = (int)(s->op->operand_count + s->op->result_count);
    kn_kernel *k = s->outer = kn_make(s->unit->arena, s->unit->ir, tensors);
    for (int i = 0; i < a->constant_count; i++)
        kn_add_constant(k, a->constants[i].data, a->constants[i].bytes);
    for (int i = 0; i < b->constant_count; i++)
        kn_add_constant(k, b->constants[i].data, b->constants[i].bytes);
    rt_dim items = kn_dim_mul(k, s->lines.blocks, s->lines.chunks);
    rt_dim inner = kn_dim_ceil_div(k, kn_dim_max(k, a->scratch_bytes, b->scratch_bytes), SCRATCH_ALIGN);
    s->inner_bytes = kn_dim_mul(k, inner, SCRATCH_ALIGN);
    k->work_items = k->part_items = items;
    k->scratch_bytes = kn_dim_add(k, s->inner_bytes, kn_dim_add(k, s->band_bytes, SCRATCH_ALIGN));
    k->flops = a->flops + b->flops;
    /* Lines at an end of a part are made twice: a quarter of them at most. */
    int64_t again = reach_of(s) - step_of(s), step = step_of(s);
    int64_t blocks = again > 0 ? (4 * again + step - 1) / step : 1;
    double cost = is_static(s) ? k->flops / (double)items : usual_cost(s, items);
    int64_t grain = cost > 1e6 ? 1 : (int64_t)(1e6 / (cost + 1)) + 1;
    k->grain = blocks * s->lines.chunks > grain ? blocks * s->lines.chunks : grain;
    /* What emission asks for, and the parameters of both. */
    rt_dim sizes[] = {s->inner_bytes, s->width, s->rows.blocks, s->rows.rows, s->rows.most, s->lines.out_lines,
                      s->lines.window.input, k->scratch_bytes};
    TS_TRY(kn_need_sizes(k, sizes, sizeof sizes / sizeof *sizes, "a stream"));
    for (int i = 0; i < a->param_count + b->param_count; i++)
        kn_dim_param(k, i < a->param_count ? a->params[i].dim : b->params[i - a->param_count].dim);
    return NULL;
}

/* ---- emission ---- */

/* The array of buffers that an inner kernel is called with; *out_image: where the image's address goes. */
static LLVMValueRef emit_buffers(kn_emitter *e, const stream *s, const ir_op *op, const kn_kernel *k, int constants_from,
                                 LLVMValueRef *out_image) {
    int count = k->buffer_count + k->constant_count;
    LLVMValueRef size = LLVMConstInt(e->unit->i32, (unsigned)count, 0);
    LLVMValueRef array = LLVMBuildArrayAlloca(e->b, e->unit->pointer, size, "");
    const ir_value *image = s->first_op->results[0];
    int at = 0;
    for (size_t i = 0; i < op->operand_count + op->result_count; i++, at++) {
        const ir_value *v = i < op->operand_count ? op->operands[i] : op->results[i - op->operand_count];
        LLVMValueRef slot = kn_element(e, array, kn_i64(e, at), 8);
        if (v == image)
            *out_image = slot;
        else /* an input of the stream, or its result */
            LLVMBuildStore(e->b, e->buffers[v->index + (v->def ? s->op->operand_count : 0)], slot);
    }
    for (int i = 0; i < k->constant_count; i++, at++)
        LLVMBuildStore(e->b, e->buffers[s->outer->buffer_count + constants_from + i], kn_element(e, array, kn_i64(e, at), 8));
    return array;
}

/* bytes, a multiple of 4, from `from` to `to`, which lies below: vectors in order, the last one may copy more,
 * where nothing is yet. */
static void emit_move(kn_emitter *e, LLVMValueRef to, LLVMValueRef from, LLVMValueRef bytes) {
    kn_loop loop;
    kn_loop_begin(e, &loop, kn_i64(e, 0), bytes, 4 * e->lanes, NULL, 0);
    LLVMValueRef v = kn_emit_load(e, kn_address(e, from, loop.index), NULL, RT_float32, e->lanes, NULL);
    kn_emit_store(e, v, kn_address(e, to, loop.index), NULL, RT_float32, e->lanes, NULL);
    kn_loop_end(e, &loop, NULL);
}

/* The array of parameters that an inner kernel is called with. */
static LLVMValueRef emit_params(kn_emitter *e, const kn_kernel *k) {
    if (!k->param_count)
        return LLVMGetParam(e->function, 1);
    LLVMValueRef array = LLVMBuildArrayAlloca(e->b, e->unit->i64, LLVMConstInt(e->unit->i32, (unsigned)k->param_count, 0), "");
    for (int i = 0; i < k->param_count; i++)
        LLVMBuildStore(e->b, kn_size(e, k->params[i].dim), kn_element(e, array, kn_i64(e, i), 8));
    return array;
}

static void emit_call(kn_emitter *e, LLVMValueRef function, LLVMValueRef buffers, LLVMValueRef params, LLVMValueRef begin,
                      LLVMValueRef end) {
    LLVMValueRef args[] = {buffers, params, begin, end, e->scratch};
    LLVMBuildCall2(e->b, e->unit->kernel_type, function, args, 5, "");
}

static LLVMValueRef clamp(kn_emitter *e, LLVMValueRef v, rt_dim most) {
    return kn_min(e, kn_max(e, v, kn_i64(e, 0)), kn_size(e, most));
}

/* Items of a band: as many blocks as fit in BAND_BYTES with what blocks of the first kernel make before and behind
 * them; one at least. */
static LLVMValueRef emit_band(kn_emitter *e, const stream *s) {
    if (s->band)
        return kn_i64(e, s->band);
    LLVMValueRef pixels = kn_sub(e, kn_i64(e, BAND_BYTES / s->pixel_bytes), kn_mul(e, kn_size(e, s->rows.most), kn_i64(e, 2)));
    LLVMValueRef width = kn_max(e, kn_size(e, s->width), kn_i64(e, 1)), step = kn_i64(e, step_of(s));
    LLVMValueRef lines = LLVMBuildUDiv(e->b, kn_max(e, pixels, kn_i64(e, 0)), width, "");
    lines = kn_max(e, kn_add(e, lines, kn_i64(e, -reach_of(s))), step);
    return kn_mul(e, LLVMBuildUDiv(e->b, lines, step, ""), kn_i64(e, s->lines.chunks));
}

/* blocks_of, in code. */
static void emit_blocks(kn_emitter *e, const stream *s, LLVMValueRef from, LLVMValueRef to, LLVMValueRef *begin,
                        LLVMValueRef *end) {
    const kn_window_items *l = &s->lines;
    const kn_window *w = &l->window;
    LLVMValueRef chunks = kn_i64(e, l->chunks), rows = kn_size(e, s->rows.rows), lines = kn_i64(e, l->lines);
    LLVMValueRef first = kn_mul(e, LLVMBuildUDiv(e->b, from, chunks, ""), lines);
    LLVMValueRef blocks = LLVMBuildUDiv(e->b, kn_add(e, to, kn_i64(e, l->chunks - 1)), chunks, "");
    LLVMValueRef last = kn_min(e, kn_mul(e, blocks, lines), kn_size(e, l->out_lines));
    LLVMValueRef stride = kn_i64(e, w->stride);
    LLVMValueRef low = clamp(e, kn_sub(e, kn_mul(e, first, stride), kn_i64(e, w->padding)), w->input);
    int64_t reach = (l->taps - 1) * w->dilation + 1 - w->padding - w->stride;
    LLVMValueRef high = clamp(e, kn_add(e, kn_mul(e, last, stride), kn_i64(e, reach)), w->input);
    high = kn_max(e, high, low);
    LLVMValueRef width = kn_size(e, s->width);
    *begin = LLVMBuildUDiv(e->b, kn_mul(e, low, width), rows, "");
    *end = LLVMBuildUDiv(e->b, kn_add(e, kn_mul(e, high, width), kn_sub(e, rows, kn_i64(e, 1))), rows, "");
    *end = kn_min(e, *end, kn_size(e, s->rows.blocks));
}

static void emit(const stream *s, LLVMValueRef function, LLVMValueRef first, LLVMValueRef second) {
    kn_emitter e;
    kn_emitter_start(&e, s->unit, s->outer, function);
    LLVMValueRef to_first = NULL, to_second = NULL;
    LLVMValueRef first_buffers = emit_buffers(&e, s, s->first_op, s->first, 0, &to_first);
    LLVMValueRef second_buffers = emit_buffers(&e, s, s->second_op, s->second, s->first->constant_count, &to_second);
    LLVMValueRef first_params = emit_params(&e, s->first), second_params = emit_params(&e, s->second);
    LLVMValueRef block_bytes = kn_mul(&e, kn_size(&e, s->rows.rows), kn_i64(&e, s->pixel_bytes));
    LLVMValueRef groups = kn_i64(&e, s->rows.groups);
    LLVMValueRef buffer = kn_address(&e, e.scratch, kn_size(&e, s->inner_bytes)), band = emit_band(&e, s);
    /* Blocks [origin, made) of the image are in the buffer. */
    LLVMValueRef carried[2] = {kn_i64(&e, 0), kn_i64(&e, 0)};
    kn_loop bands;
    kn_loop_begin(&e, &bands, e.begin, e.end, 1, carried, 2);
    bands.step = band;
    LLVMValueRef origin = bands.phis[0], made = bands.phis[1], from, to;
    LLVMValueRef end = kn_min(&e, kn_add(&e, bands.index, band), e.end);
    emit_blocks(&e, s, bands.index, end, &from, &to);
    LLVMValueRef kept = kn_max(&e, kn_sub(&e, made, from), kn_i64(&e, 0));
    LLVMValueRef stays = LLVMBuildICmp(e.b, LLVMIntEQ, from, origin, "");
    kept = LLVMBuildSelect(e.b, stays, kn_i64(&e, 0), kept, "");
    emit_move(&e, buffer, kn_address(&e, buffer, kn_mul(&e, kn_sub(&e, from, origin), block_bytes)),
              kn_mul(&e, kept, block_bytes));
    LLVMValueRef image = kn_address(&e, buffer, kn_sub(&e, kn_i64(&e, 0), kn_mul(&e, from, block_bytes)));
    LLVMBuildStore(e.b, image, to_first);
    LLVMBuildStore(e.b, image, to_second);
    LLVMValueRef start = kn_max(&e, made, from), next = kn_max(&e, start, to);
    emit_call(&e, first, first_buffers, first_params, kn_mul(&e, start, groups), kn_mul(&e, next, groups));
    emit_call(&e, second, second_buffers, second_params, bands.index, end);
    LLVMValueRef now[2] = {from, next};
    kn_loop_end(&e, &bands, now);
    LLVMBuildRetVoid(e.b);
    LLVMDisposeBuilder(e.b);
}

ts_status lw_stream(cg_unit *unit, const ir_op *op, cg_kernel *out) {
    stream s = {.unit = unit, .op = op};
    if (unit->dialect)
        return unsupported(&s, "kernels are a device's");
    TS_TRY(find_kernels(&s));
    TS_TRY(lw_build(unit, s.first_op, &s.first));
    TS_TRY(lw_build(unit, s.second_op, &s.second));
    TS_TRY(plan(&s));
    TS_TRY(describe(&s));
    size_t number = unit->kernel_counter++;
    ts_str name = ts_arena_format(unit->arena, "kernel_%zu", number);
    LLVMValueRef first = cg_kernel_function(unit, ts_arena_format(unit->arena, "kernel_%zu_first", number).data);
    LLVMValueRef second = cg_kernel_function(unit, ts_arena_format(unit->arena, "kernel_%zu_second", number).data);
    kn_emit_llvm(unit, s.first, first);
    kn_emit_llvm(unit, s.second, second);
    emit(&s, cg_kernel_function(unit, name.data), first, second);
    lw_fill(s.outer, name.data, out);
    return NULL;
}

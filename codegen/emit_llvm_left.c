/* codegen/emit_llvm_left.c - where the rows of a contraction's left operand lie: in the operand
 * itself, at addresses of pixels, or in scratch into which they are copied. */
#include "codegen/emit_llvm_contraction.h"

/* ---- addresses of rows ---- */

LLVMValueRef kn_float_address(kn_emitter *e, LLVMValueRef base, LLVMValueRef index) {
    return kn_element(e, base, index, 4);
}

void kn_split_row(kn_emitter *e, LLVMValueRef m, LLVMValueRef out[3]) {
    kn_contraction *c = &e->k->contraction;
    if (c->has_line_dim) {
        out[0] = kn_i64(e, 0);
        out[1] = e->index[c->line_dim];
        out[2] = m;
        return;
    }
    LLVMValueRef ow = kn_size(e, c->out_w), oh = kn_size(e, c->out_h);
    LLVMValueRef line = LLVMBuildUDiv(e->b, m, ow, "");
    out[2] = kn_sub(e, m, kn_mul(e, line, ow));
    out[0] = LLVMBuildUDiv(e->b, line, oh, "");
    out[1] = kn_sub(e, line, kn_mul(e, out[0], oh));
}

LLVMValueRef kn_row_origin(kn_emitter *e, LLVMValueRef out, int64_t stride, int64_t pad) {
    return kn_sub(e, kn_mul(e, out, kn_i64(e, stride)), kn_i64(e, pad));
}

LLVMValueRef kn_is_inside(kn_emitter *e, LLVMValueRef i, rt_dim size) {
    return LLVMBuildICmp(e->b, LLVMIntULT, i, kn_size(e, size), "");
}

static void store_pointer(kn_emitter *e, LLVMValueRef table, LLVMValueRef slot, LLVMValueRef value) {
    LLVMBuildStore(e->b, value, kn_element(e, table, slot, 8));
}

/* table[tile][tap][row of tile] */
static void emit_convolution_addresses(kn_emitter *e, kn_pieces *x, LLVMValueRef r, LLVMValueRef m) {
    kn_contraction *c = &e->k->contraction;
    const kn_plan *p = &x->plan;
    LLVMValueRef out[3];
    kn_split_row(e, m, out);
    LLVMValueRef image = kn_mul(e, out[0], kn_size(e, c->image_stride));
    LLVMValueRef h0 = kn_row_origin(e, out[1], c->stride_h, c->pad_h);
    LLVMValueRef w0 = kn_row_origin(e, out[2], c->stride_w, c->pad_w);
    LLVMValueRef rows = kn_i64(e, p->rows);
    LLVMValueRef tile = LLVMBuildUDiv(e->b, r, rows, "");
    LLVMValueRef slot = kn_add(e, kn_mul(e, tile, kn_i64(e, p->taps * p->rows)),
                               kn_sub(e, r, kn_mul(e, tile, rows)));
    kn_loop h, w;
    kn_loop_begin(e, &h, kn_i64(e, 0), kn_i64(e, c->kernel_h), 1, &slot, 1);
    LLVMValueRef ih = kn_add(e, h0, kn_mul(e, h.index, kn_i64(e, c->dilation_h)));
    LLVMValueRef h_in = kn_is_inside(e, ih, c->input_h);
    LLVMValueRef line = kn_add(e, image, kn_mul(e, ih, kn_size(e, c->h_stride)));
    slot = h.phis[0];
    kn_loop_begin(e, &w, kn_i64(e, 0), kn_i64(e, c->kernel_w), 1, &slot, 1);
    LLVMValueRef iw = kn_add(e, w0, kn_mul(e, w.index, kn_i64(e, c->dilation_w)));
    LLVMValueRef inside = LLVMBuildAnd(e->b, h_in, kn_is_inside(e, iw, c->input_w), "");
    LLVMValueRef pixel = kn_add(e, line, kn_mul(e, iw, kn_size(e, c->w_stride)));
    LLVMValueRef address = LLVMBuildSelect(e->b, inside, kn_float_address(e, x->left, pixel),
                                           e->buffers[c->zeros_buffer], "");
    store_pointer(e, x->table, w.phis[0], address);
    LLVMValueRef next = kn_add(e, w.phis[0], rows);
    kn_loop_end(e, &w, &next);
    next = w.exit_phis[0];
    kn_loop_end(e, &h, &next);
}

/* One row of the image as a row of the matrix, k in the order (channel, kernel_h, kernel_w), lanes
 * along kernel_w. */
static void emit_packed_patch(kn_emitter *e, kn_pieces *x, LLVMValueRef row, LLVMValueRef m) {
    kn_contraction *c = &e->k->contraction;
    LLVMValueRef out[3];
    kn_split_row(e, m, out);
    LLVMValueRef image = kn_mul(e, out[0], kn_size(e, c->image_stride));
    LLVMValueRef h0 = kn_row_origin(e, out[1], c->stride_h, c->pad_h);
    LLVMValueRef w0 = kn_row_origin(e, out[2], c->stride_w, c->pad_w);
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
    LLVMValueRef h_in = kn_splat(e, kn_is_inside(e, ih, c->input_h), width);
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
        LLVMValueRef from = kn_float_address(e, x->left, kn_add(e, line, kn_mul(e, iw, step)));
        LLVMValueRef v = kn_emit_load(e, from, adjacent ? NULL : stride, RT_float32, width, in);
        /* Lanes past the kernel are zeros that the next line overwrites; the row has room. */
        kn_emit_store(e, v, kn_float_address(e, h.phis[0], kn_i64(e, kw)), NULL, RT_float32, width, NULL);
    }
    LLVMValueRef next = kn_float_address(e, h.phis[0], kn_i64(e, c->kernel_w));
    kn_loop_end(e, &h, &next);
    next = h.exit_phis[0];
    kn_loop_end(e, &channel, &next);
}

static void emit_packed_row(kn_emitter *e, kn_pieces *x, LLVMValueRef row, LLVMValueRef from) {
    kn_contraction *c = &e->k->contraction;
    (void)x;
    LLVMValueRef n = kn_size(e, c->k), stride = kn_size(e, c->left_k);
    kn_loop loop;
    kn_loop_begin(e, &loop, kn_i64(e, 0), n, e->width, NULL, 0);
    LLVMValueRef mask = kn_lane_mask(e, kn_sub(e, n, loop.index), e->width);
    LLVMValueRef v = kn_emit_load(e, kn_float_address(e, from, kn_mul(e, loop.index, stride)),
                                  c->left_k == 1 ? NULL : stride, RT_float32, e->width, mask);
    kn_emit_store(e, v, kn_float_address(e, row, loop.index), NULL, RT_float32, e->width, NULL);
    kn_loop_end(e, &loop, NULL);
}

/* Zeros behind a row of k elements, as far as a step of the format reads. */
static void emit_row_padding(kn_emitter *e, LLVMValueRef row) {
    const kn_contraction *c = &e->k->contraction;
    if (c->format == KN_FLOAT32)
        return;
    for (int64_t i = c->k; i < kn_format_padded_k(c->format, c->k); i++)
        LLVMBuildStore(e->b, LLVMConstNull(e->unit->f32), kn_float_address(e, row, kn_i64(e, i)));
}

/* One row of the image as a row of bfloat16, k in the order (kernel_h, kernel_w, channel). */
static void emit_dot_patch(kn_emitter *e, kn_pieces *x, LLVMValueRef row, LLVMValueRef m) {
    kn_contraction *c = &e->k->contraction;
    LLVMValueRef out[3];
    kn_split_row(e, m, out);
    LLVMValueRef image = kn_mul(e, out[0], kn_size(e, c->image_stride));
    LLVMValueRef h0 = kn_row_origin(e, out[1], c->stride_h, c->pad_h);
    LLVMValueRef w0 = kn_row_origin(e, out[2], c->stride_w, c->pad_w);
    kn_loop h, w;
    kn_loop_begin(e, &h, kn_i64(e, 0), kn_i64(e, c->kernel_h), 1, &row, 1);
    LLVMValueRef ih = kn_add(e, h0, kn_mul(e, h.index, kn_i64(e, c->dilation_h)));
    LLVMValueRef h_in = kn_is_inside(e, ih, c->input_h);
    LLVMValueRef line = kn_add(e, image, kn_mul(e, ih, kn_size(e, c->h_stride)));
    LLVMValueRef to = h.phis[0];
    kn_loop_begin(e, &w, kn_i64(e, 0), kn_i64(e, c->kernel_w), 1, &to, 1);
    LLVMValueRef iw = kn_add(e, w0, kn_mul(e, w.index, kn_i64(e, c->dilation_w)));
    LLVMValueRef inside = LLVMBuildAnd(e->b, h_in, kn_is_inside(e, iw, c->input_w), "");
    LLVMValueRef pixel = kn_add(e, line, kn_mul(e, iw, kn_size(e, c->w_stride)));
    LLVMValueRef from = LLVMBuildSelect(e->b, inside, kn_float_address(e, x->left, pixel),
                                        e->buffers[c->zeros_buffer], "");
    kn_emit_dot_copy(e, w.phis[0], from, NULL, c->channels);
    LLVMValueRef next = kn_element(e, w.phis[0], kn_i64(e, c->channels), 2);
    kn_loop_end(e, &w, &next);
    next = w.exit_phis[0];
    kn_loop_end(e, &h, &next);
}

static void emit_dot_row(kn_emitter *e, kn_pieces *x, LLVMValueRef row, LLVMValueRef from,
                         LLVMValueRef m) {
    kn_contraction *c = &e->k->contraction;
    if (c->kernel_h == 0) {
        kn_emit_dot_copy(e, row, from, c->left_k == 1 ? NULL : kn_size(e, c->left_k), c->k);
    } else if (c->term_c == 1) {
        emit_dot_patch(e, x, row, m);
    } else {
        LLVMValueRef floats = kn_address(
            e, x->packed_left, kn_i64(e, x->plan.room * x->plan.left_row_bytes + 64));
        emit_packed_patch(e, x, floats, m);
        kn_emit_dot_copy(e, row, floats, NULL, c->k);
    }
}

/* ---- lines: images copied with their padding ---- */

/* A vector of a line: rounded where the sums are of bfloat16. */
static void store_line(kn_emitter *e, LLVMValueRef v, LLVMValueRef to) {
    if (kn_left_bytes(&e->k->contraction) == 4) {
        kn_emit_store(e, v, to, NULL, RT_float32, e->width, NULL);
        return;
    }
    LLVMTypeRef half = LLVMBFloatTypeInContext(e->unit->context);
    v = LLVMBuildFPTrunc(e->b, v, LLVMVectorType(half, (unsigned)e->width), "");
    LLVMSetAlignment(LLVMBuildStore(e->b, v, to), 2);
}

/* One vector of a line from float x on, of which lanes [first, last) are of the image. */
static void emit_line_vector(kn_emitter *e, LLVMValueRef to, LLVMValueRef from, LLVMValueRef step,
                             int64_t first, int64_t last) {
    int w = e->width;
    LLVMValueRef lanes[64], mask = NULL;
    if (first > 0 || last < w) {
        for (int i = 0; i < w; i++)
            lanes[i] = LLVMConstInt(e->unit->i1, i >= first && i < last, 0);
        mask = w > 1 ? LLVMConstVector(lanes, (unsigned)w) : lanes[0];
    }
    LLVMValueRef v = first < last ? kn_emit_load(e, from, step, RT_float32, w, mask)
                                  : LLVMConstNull(kn_llvm_type(e, RT_float32, w));
    store_line(e, v, to);
}

/* A line of `floats`, the image's from `begin` to `end`, zeros around it. */
static void emit_line(kn_emitter *e, LLVMValueRef to, LLVMValueRef from, rt_dim step,
                      int64_t floats, int64_t begin, int64_t end) {
    int w = e->width;
    int64_t bytes = kn_left_bytes(&e->k->contraction);
    LLVMValueRef stride = step == 1 ? NULL : kn_size(e, step);
    int64_t whole = (begin + w - 1) / w * w, past = end / w * w;
    for (int64_t x = 0; x < floats; x += w) {
        LLVMValueRef source;
        if (x == whole && past > whole) {
            kn_loop loop;
            kn_loop_begin(e, &loop, kn_i64(e, whole), kn_i64(e, past), w, NULL, 0);
            LLVMValueRef at = kn_sub(e, loop.index, kn_i64(e, begin));
            source = kn_float_address(e, from, kn_mul(e, at, kn_size(e, step)));
            emit_line_vector(e, kn_element(e, to, loop.index, bytes), source, stride, 0, w);
            kn_loop_end(e, &loop, NULL);
            x = past - w;
            continue;
        }
        source = kn_float_address(e, from, kn_mul(e, kn_i64(e, x - begin), kn_size(e, step)));
        emit_line_vector(e, kn_element(e, to, kn_i64(e, x), bytes), source, stride,
                         begin > x ? begin - x : 0, end - x < w ? end - x : w);
    }
}

/* The same where the length is a parameter: vectors that reach into the padding are masked. */
static void emit_symbolic_line(kn_emitter *e, LLVMValueRef to, LLVMValueRef from, rt_dim step,
                               LLVMValueRef floats, int64_t begin, LLVMValueRef end) {
    int w = e->width;
    int64_t bytes = kn_left_bytes(&e->k->contraction), inner = (begin + w - 1) / w * w;
    LLVMValueRef stride = step == 1 ? NULL : kn_size(e, step), whole = kn_i64(e, inner);
    LLVMValueRef past = kn_max(e, LLVMBuildAnd(e->b, end, kn_i64(e, -(int64_t)w), ""), whole);
    LLVMValueRef first = kn_splat(e, kn_i64(e, begin), w);
    LLVMValueRef ranges[4] = {kn_i64(e, 0), kn_min(e, whole, floats), past, floats};
    for (int part = 0; part < 3; part++) {
        kn_loop loop;
        kn_loop_begin(e, &loop, ranges[part], ranges[part + 1], w, NULL, 0);
        LLVMValueRef mask = NULL, at = kn_sub(e, loop.index, kn_i64(e, begin));
        if (part != 1) {
            LLVMValueRef place = kn_splat(e, loop.index, w);
            if (w > 1)
                place = LLVMBuildAdd(e->b, place, kn_lane_numbers(e), "");
            mask = LLVMBuildICmp(e->b, LLVMIntSLT, place, kn_splat(e, end, w), "");
            mask = LLVMBuildAnd(e->b, mask, LLVMBuildICmp(e->b, LLVMIntSGE, place, first, ""), "");
        }
        LLVMValueRef source = kn_float_address(e, from, kn_mul(e, at, kn_size(e, step)));
        store_line(e, kn_emit_load(e, source, stride, RT_float32, w, mask),
                   kn_element(e, to, loop.index, bytes));
        kn_loop_end(e, &loop, NULL);
    }
}

/* scratch[input line][plane][float]: the lines that this item's output lines read. */
static void emit_lines(kn_emitter *e, kn_pieces *x) {
    kn_contraction *c = &e->k->contraction;
    const kn_plan *p = &x->plan;
    int64_t unit = p->planes == 1 ? c->channels : 1, begin = c->pad_w * unit;
    bool is_constant = rt_dim_is_constant(p->line_floats) && rt_dim_is_constant(c->input_w);
    LLVMValueRef floats = kn_size(e, p->line_floats);
    LLVMValueRef end = kn_add(e, kn_mul(e, kn_size(e, c->input_w), kn_i64(e, unit)), kn_i64(e, begin));
    end = kn_min(e, end, floats);
    LLVMValueRef out_h = c->has_line_dim
                             ? e->index[c->line_dim]
                             : LLVMBuildUDiv(e->b, x->row_begin, kn_size(e, c->out_w), "");
    LLVMValueRef h0 = kn_row_origin(e, out_h, c->stride_h, c->pad_h);
    kn_loop line, plane;
    kn_loop_begin(e, &line, kn_i64(e, 0), kn_i64(e, p->in_lines), 1, NULL, 0);
    LLVMValueRef ih = kn_add(e, h0, line.index);
    LLVMValueRef in = kn_is_inside(e, ih, c->input_h);
    LLVMValueRef source = kn_float_address(e, x->left, kn_mul(e, ih, kn_size(e, c->h_stride)));
    LLVMValueRef bytes = kn_mul(e, floats, kn_i64(e, kn_left_bytes(c)));
    LLVMValueRef to = kn_address(
        e, x->packed_left, kn_mul(e, line.index, kn_mul(e, bytes, kn_i64(e, p->planes))));
    kn_loop_begin(e, &plane, kn_i64(e, 0), kn_i64(e, p->planes), 1, &to, 1);
    LLVMBasicBlockRef inside = LLVMAppendBasicBlockInContext(e->unit->context, e->function, "");
    LLVMBasicBlockRef outside = LLVMAppendBasicBlockInContext(e->unit->context, e->function, "");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(e->unit->context, e->function, "");
    LLVMBuildCondBr(e->b, in, inside, outside);
    LLVMPositionBuilderAtEnd(e->b, inside);
    source = kn_float_address(e, source, kn_mul(e, plane.index, kn_size(e, c->left_k)));
    rt_dim step = unit > 1 ? 1 : c->w_stride;
    if (is_constant)
        emit_line(e, plane.phis[0], source, step, p->line_floats,
                  begin < p->line_floats ? begin : p->line_floats, LLVMConstIntGetSExtValue(end));
    else
        emit_symbolic_line(e, plane.phis[0], source, step, floats, begin, end);
    LLVMBuildBr(e->b, done);
    LLVMPositionBuilderAtEnd(e->b, outside);
    kn_loop zeros;
    kn_loop_begin(e, &zeros, kn_i64(e, 0), floats, e->width, NULL, 0);
    store_line(e, LLVMConstNull(kn_llvm_type(e, RT_float32, e->width)),
               kn_element(e, plane.phis[0], zeros.index, kn_left_bytes(c)));
    kn_loop_end(e, &zeros, NULL);
    LLVMBuildBr(e->b, done);
    LLVMPositionBuilderAtEnd(e->b, done);
    LLVMValueRef next = kn_address(e, plane.phis[0], bytes);
    kn_loop_end(e, &plane, &next);
    kn_loop_end(e, &line, NULL);
}

void kn_emit_rows(kn_emitter *e, kn_pieces *x) {
    kn_contraction *c = &e->k->contraction;
    if (c->left_kind == KN_LEFT_LINES)
        emit_lines(e, x);
    if (c->left_kind == KN_LEFT_ROWS || c->left_kind == KN_LEFT_LINES)
        return;
    int m_dim = c->batch_count;
    LLVMValueRef last = kn_sub(e, kn_size(e, e->k->dims[m_dim].size), kn_i64(e, 1));
    LLVMValueRef count = kn_sub(e, x->row_end, x->row_begin);
    LLVMValueRef tiles = LLVMBuildUDiv(e->b, kn_add(e, count, kn_i64(e, x->plan.rows - 1)),
                                       kn_i64(e, x->plan.rows), "");
    kn_loop loop;
    kn_loop_begin(e, &loop, kn_i64(e, 0), kn_mul(e, tiles, kn_i64(e, x->plan.rows)), 1, NULL, 0);
    LLVMValueRef m = kn_min(e, kn_add(e, x->row_begin, loop.index), last);
    LLVMValueRef from = kn_float_address(e, x->left, kn_mul(e, m, kn_size(e, c->left.strides[m_dim])));
    if (c->left_kind == KN_LEFT_CONVOLUTION) {
        emit_convolution_addresses(e, x, loop.index, m);
    } else if (c->format == KN_BFLOAT16_DOT) {
        LLVMValueRef row = kn_element(e, x->packed_left, loop.index, x->plan.left_row_bytes);
        emit_dot_row(e, x, row, from, m);
    } else {
        LLVMValueRef length = kn_size(e, kn_dim_add(e->k, c->k, 32));
        LLVMValueRef row = kn_float_address(e, x->packed_left, kn_mul(e, loop.index, length));
        if (c->kernel_h > 0)
            emit_packed_patch(e, x, row, m);
        else
            emit_packed_row(e, x, row, from);
        emit_row_padding(e, row);
    }
    kn_loop_end(e, &loop, NULL);
}

void kn_emit_left_copy(kn_emitter *e, kn_pieces *x) {
    const kn_contraction *c = &e->k->contraction;
    LLVMValueRef step = kn_size(e, c->left.strides[c->batch_count]);
    LLVMValueRef count = kn_sub(e, x->row_end, x->row_begin);
    LLVMValueRef from = kn_float_address(e, x->left, kn_add(e, kn_mul(e, x->row_begin, step), x->sum_begin));
    kn_loop row, term;
    kn_loop_begin(e, &row, kn_i64(e, 0), count, 1, NULL, 0);
    LLVMValueRef source = kn_float_address(e, from, kn_mul(e, row.index, step));
    LLVMValueRef to = kn_element(e, x->packed_left, row.index, (x->sum_length + 16) * 4);
    int64_t whole = x->sum_length / e->width * e->width;
    kn_loop_begin(e, &term, kn_i64(e, 0), kn_i64(e, whole), e->width, NULL, 0);
    LLVMValueRef v = kn_emit_load(e, kn_float_address(e, source, term.index), NULL, RT_float32, e->width, NULL);
    kn_emit_store(e, v, kn_float_address(e, to, term.index), NULL, RT_float32, e->width, NULL);
    kn_loop_end(e, &term, NULL);
    if (whole < x->sum_length) {
        LLVMValueRef at = kn_i64(e, whole);
        v = kn_emit_load(e, kn_float_address(e, source, at), NULL, RT_float32, e->width,
                         kn_lane_mask(e, kn_i64(e, x->sum_length - whole), e->width));
        kn_emit_store(e, v, kn_float_address(e, to, at), NULL, RT_float32, e->width, NULL);
    }
    kn_loop_end(e, &row, NULL);
}

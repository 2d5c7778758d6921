/* codegen/lower_transposed.c - transposed convolutions as convolutions, one for each phase.
 *
 * Output o reads input i by tap t where o = i * stride - padding + t * dilation. Outputs that leave
 * the same remainder by the stride read the same taps, at inputs one after another: they are a
 * convolution with stride 1 and those taps, backwards. Each phase is a part of the kernel with
 * weights of its own, stored in steps of the stride; nothing is multiplied with zeros and nothing
 * added up in memory. */
#include "codegen/lower_contraction.h"

#include <string.h>

#define K l->k

/* The taps of a phase along one axis: first, first - step, ... read inputs one `dilation` apart. */
typedef struct axis_phase {
    int64_t phase, first, count, step, dilation, pad;
    rt_dim output; /* how many outputs it has */
} axis_phase;

typedef struct transposed {
    lw_window w;
    ir_value *bias;
    const ir_value *weight;
    const float *filters, *zeros;
    int64_t groups, in, out; /* channels of a group */
} transposed;

bool lw_is_transposed(lowering *l) {
    ts_str name = rt_op_name(l->anchor->core);
    bool is_transposed = false;
    const ir_value *v = ir_core_operand(l->ir, l->anchor, "transposed");
    if (v)
        return ir_const_bool(v, &is_transposed) && is_transposed;
    return ts_str_is(name, "conv_transpose1d") || ts_str_is(name, "conv_transpose2d.input");
}

static int64_t divisor(int64_t a, int64_t b) { return b == 0 ? a : divisor(b, a % b); }

static axis_phase find_axis(lowering *l, const lw_window *w, int axis, int64_t phase) {
    axis_phase a = {.phase = phase, .dilation = 1};
    int64_t stride = w->stride[axis], d = w->dilation[axis], common = divisor(stride, d);
    for (int64_t t = 0; t < w->kernel[axis]; t++)
        if ((phase + w->padding[axis] - t * d) % stride == 0) {
            a.first = t;
            a.count++;
        }
    a.step = stride / common;
    if (a.count > 1)
        a.dilation = d / common;
    if (a.count > 0)
        a.pad = -((phase + w->padding[axis] - a.first * d) / stride);
    a.output = kn_dim_ceil_div(K, kn_dim_add(K, w->output[axis], -phase), stride);
    return a;
}

/* A window that begins inside of the image is one over what is left of the image. */
static bool crop(lowering *l, rt_dim *offset, rt_dim *input, rt_dim stride, int64_t *pad) {
    if (*pad >= 0)
        return true;
    *offset = kn_dim_add(K, *offset, kn_dim_mul(K, stride, -*pad));
    *input = kn_dim_max(K, kn_dim_add(K, *input, *pad), 0);
    *pad = 0;
    return *input != RT_DIM_UNKNOWN && *input != 0;
}

static kn_matrices phase_weights(lowering *l, const transposed *t, const axis_phase *h,
                                 const axis_phase *w) {
    const kn_contraction *c = &K->contraction;
    int64_t height = t->w.kernel[0], width = t->w.kernel[1], taps = c->k / t->in;
    int64_t channel = t->out * height * width; /* weight [I, O / groups, h, w] */
    bool is_empty = h->count == 0 || w->count == 0;
    int64_t *offsets = ts_arena_array(l->unit->arena, (size_t)t->groups, sizeof *offsets);
    for (int64_t g = 0; g < t->groups; g++)
        offsets[g] = g * t->in * channel + (is_empty ? 0 : h->first * width + w->first);
    kn_matrices m = {.data = is_empty ? t->zeros : t->filters, .offsets = offsets,
                     .count = t->groups, .k = c->k, .n = t->out, .n_stride = height * width,
                     .name = t->weight->def->weight_name, .place = l->anchor->place};
    int64_t tap_w = -w->step, tap_h = -h->step * width;
    if (taps == 1) {
        m.inner = t->in;
        m.inner_stride = channel;
        m.middle = 1;
    } else if (c->term_c == 1) { /* (kernel_h, kernel_w, channel) */
        m.inner = t->in;
        m.inner_stride = channel;
        m.middle = w->count;
        m.middle_stride = tap_w;
        m.outer_stride = tap_h;
    } else if (c->left_kind == KN_LEFT_LINES) { /* (kernel_h, channel, kernel_w) */
        m.inner = w->count;
        m.inner_stride = tap_w;
        m.middle = t->in;
        m.middle_stride = channel;
        m.outer_stride = tap_h;
    } else { /* (channel, kernel_h, kernel_w) */
        m.inner = w->count;
        m.inner_stride = tap_w;
        m.middle = h->count;
        m.middle_stride = tap_h;
        m.outer_stride = channel;
    }
    return m;
}

/* Whether input is known to be no shorter than output. */
static bool holds(const lowering *l, rt_dim input, rt_dim output) {
    rt_dim more = kn_dim_add(K, input, kn_dim_mul(K, output, -1));
    return rt_dim_is_constant(more) && more >= 0;
}

/* One part: dims [group], image, out_h, out_w, channel. */
static ts_status phase(lowering *l, transposed *t, axis_phase h, axis_phase w) {
    kn_contraction *c = &K->contraction;
    const lw_window *x = &t->w;
    c->is_on = true;
    memset(&l->space_map, 0, sizeof l->space_map);
    memset(l->memos, 0, l->memo_count * sizeof *l->memos);
    lw_space_of_images(l);
    int last = l->space_rank - 1;
    int gd = t->groups > 1 ? lw_add_kernel_dim(l, t->groups, KN_OUTER) : -1;
    int n = lw_add_kernel_dim(l, x->batch, KN_OUTER), oh = lw_add_kernel_dim(l, h.output, KN_OUTER);
    int ow = lw_add_kernel_dim(l, w.output, KN_OUTER), o = lw_add_kernel_dim(l, t->out, KN_VECTOR);
    c->batch_count = ow;
    lw_point(l, 0, n, 1);
    lw_point(l, 1, o, 1);
    if (gd >= 0)
        lw_point(l, 1, gd, t->out);
    if (x->spatial == 2) {
        lw_point(l, 2, oh, x->stride[0]);
        l->space_map.dims[2].offset = h.phase;
    }
    lw_point(l, last, ow, x->stride[1]);
    l->space_map.dims[last].offset = w.phase;
    c->left = (kn_access){.buffer = x->x_buffer, .element = RT_float32, .offset = x->x.offset};
    c->left.strides[n] = x->x.strides[0];
    c->left_k = x->x.strides[1];
    if (gd >= 0)
        c->left.strides[gd] = kn_dim_mul(K, x->x.strides[1], t->in);
    c->h_stride = x->h_stride;
    c->w_stride = x->w_stride;
    c->input_h = x->input[0];
    c->input_w = x->input[1];
    c->out_h = h.output;
    c->out_w = w.output;
    c->kernel_h = h.count > 0 && w.count > 0 ? h.count : 1;
    c->kernel_w = h.count > 0 && w.count > 0 ? w.count : 1;
    c->stride_h = c->stride_w = 1;
    c->dilation_h = h.dilation;
    c->dilation_w = w.dilation;
    c->channels = t->in;
    c->k = t->in * c->kernel_h * c->kernel_w;
    if (!crop(l, &c->left.offset, &c->input_h, c->h_stride, &h.pad) ||
        !crop(l, &c->left.offset, &c->input_w, c->w_stride, &w.pad))
        return lw_unsupported(l, "a window beyond the image");
    c->pad_h = h.pad;
    c->pad_w = w.pad;
    bool has_rows = c->left_k == 1 && t->in >= 16, interleaved = false;
    bool is_matrix = has_rows && c->k == t->in && h.pad == 0 && w.pad == 0 &&
                     holds(l, c->input_h, h.output) && holds(l, c->input_w, w.output);
    c->left_kind = is_matrix                                   ? KN_LEFT_ROWS
                   : has_rows                                  ? KN_LEFT_CONVOLUTION
                   : lw_may_copy_lines(c, &interleaved) ? KN_LEFT_LINES
                                                               : KN_LEFT_PACKED;
    kn_format format = KN_FLOAT32;
    lw_order_terms(c, interleaved);
    kn_matrices m = phase_weights(l, t, &h, &w);
    format = lw_convolution_format(l, &m);
    lw_order_terms(c, interleaved);
    m = phase_weights(l, t, &h, &w);
    lw_pad_taps(l, &m, format, c->kernel_w);
    int64_t each = lw_pack_weights(l, format, &m);
    if (gd >= 0)
        c->right.strides[gd] = each;
    if (is_matrix) {
        c->left.strides[oh] = c->h_stride;
        c->left.strides[ow] = c->w_stride;
        c->kernel_h = c->kernel_w = 0;
    } else {
        c->has_line_dim = true; /* lines of the result are stored apart */
        c->line_dim = oh;
        if (has_rows) {
            float *zeros = ts_arena_array(l->unit->arena, (size_t)t->in, sizeof *zeros);
            c->zeros_buffer = kn_add_constant(K, zeros, (size_t)t->in * sizeof *zeros);
        }
    }
    l->anchor_node = lw_channel_bias(l, kn_add_node(K, lw_tile_node()), t->bias);
    if (l->anchor_node < 0)
        return lw_unsupported(l, "the bias");
    return lw_stores(l);
}

static ts_status read_arguments(lowering *l, transposed *t) {
    const ir_op *op = l->anchor;
    lw_window *w = &t->w;
    TS_TRY(lw_open_window(l, ir_core_operand(l->ir, op, "input"), w));
    ir_value *weight = ir_core_operand(l->ir, op, "weight");
    const ir_value *groups = ir_core_operand(l->ir, op, "groups");
    t->weight = weight;
    t->bias = ir_core_operand(l->ir, op, "bias");
    t->filters = weight ? lw_constant_floats(l, weight) : NULL;
    t->groups = 1;
    if (!t->filters || !lw_int_pair(l, "stride", w->spatial, 1, w->stride) ||
        !lw_int_pair(l, "padding", w->spatial, 0, w->padding) ||
        !lw_int_pair(l, "dilation", w->spatial, 1, w->dilation) ||
        (groups && !ir_const_int(groups, &t->groups)))
        return lw_unsupported(l, "a convolution whose weights or window are not constant");
    const ir_type *wt = weight->type;
    w->kernel[0] = w->spatial == 2 ? wt->dims[2] : 1;
    w->kernel[1] = wt->dims[wt->rank - 1];
    t->out = wt->dims[1];
    if (!rt_dim_is_constant(w->channels) || t->groups < 1 || w->channels % t->groups ||
        wt->dims[0] != w->channels || w->stride[0] < 1 || w->stride[1] < 1 || w->dilation[0] < 1 ||
        w->dilation[1] < 1 || w->padding[0] < 0 || w->padding[1] < 0 || wt->rank != w->spatial + 2 ||
        w->kernel[0] * w->kernel[1] * w->channels * t->out == 0 ||
        w->stride[0] * w->stride[1] > 64)
        return lw_unsupported(l, "an odd convolution");
    t->in = w->channels / t->groups;
    t->zeros = TS_NEW_ARRAY(l->unit->arena, float,
                            (size_t)(w->channels * t->out * w->kernel[0] * w->kernel[1]));
    return NULL;
}

/* Schedules the part that l->k is, and adds its items to `first`. */
static ts_status finish_part(lowering *l, kn_kernel *first, rt_dim *items, rt_dim *scratch) {
    TS_TRY(kn_schedule(K, l->unit->target));
    TS_TRY(kn_check_supported(K, l->unit->target));
    K->part_items = K->work_items;
    if (!rt_dim_is_constant(K->part_items))
        kn_dim_param(K, K->part_items);
    *items = kn_dim_add(first, *items, K->part_items);
    *scratch = kn_dim_max(first, *scratch, K->scratch_bytes);
    if (*items == RT_DIM_UNKNOWN || *scratch == RT_DIM_UNKNOWN)
        return lw_unsupported(l, "parts of unknown sizes");
    return NULL;
}

ts_status lw_transposed(lowering *l) {
    transposed t;
    memset(&t, 0, sizeof t);
    TS_TRY(read_arguments(l, &t));
    kn_kernel *first = K, *last = NULL;
    rt_dim items = 0, scratch = 0;
    double flops = 0;
    for (int64_t h = 0; h < t.w.stride[0]; h++)
        for (int64_t w = 0; w < t.w.stride[1]; w++) {
            axis_phase down = find_axis(l, &t.w, 0, h), across = find_axis(l, &t.w, 1, w);
            if ((rt_dim_is_constant(down.output) && down.output <= 0) ||
                (rt_dim_is_constant(across.output) && across.output <= 0))
                continue;
            if (last) {
                K = kn_make(l->unit->arena, l->ir, first->buffer_count);
                K->owner = first;
                last->next = K;
            }
            last = K;
            TS_TRY(phase(l, &t, down, across));
            TS_TRY(finish_part(l, first, &items, &scratch));
            flops += K->flops;
        }
    if (!last)
        return lw_unsupported(l, "a result of no elements");
    K = first;
    first->work_items = items;
    first->scratch_bytes = scratch;
    first->flops = flops;
    l->is_scheduled = true;
    return NULL;
}

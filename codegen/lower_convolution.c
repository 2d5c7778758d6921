/* codegen/lower_convolution.c - kernels around a convolution or pooling. */
#include "codegen/lower_contraction.h"
#include "codegen/winograd.h"
#include "ir/kernel_form.h"
#include "ir/live_memory.h"

#include <string.h>

#define K l->k

bool lw_int_pair(lowering *l, const char *name, int spatial, int64_t first, int64_t *out) {
    const ir_value *v = ir_core_operand(l->ir, l->anchor, name);
    int64_t list[4];
    size_t count;
    out[0] = first;
    if (!v)
        return false;
    if (ir_const_int(v, &list[0]))
        count = 1;
    else if (!ir_const_int_list(v, list, 4, &count) || count == 0)
        return false;
    if (count != 1 && count != (size_t)spatial)
        return false;
    for (int i = 0; i < spatial; i++)
        out[2 - spatial + i] = list[count == 1 ? 0 : (size_t)i];
    return true;
}

ts_status lw_open_window(lowering *l, ir_value *x, lw_window *w) {
    const ir_type *t = l->anchor->results[0]->type;
    if (!x || !ir_type_is_known_tensor(x->type) || !ir_type_is_known_tensor(t) || t->rank < 3 ||
        t->rank > 4 || t->rank != x->type->rank ||
        (x->type->dtype != RT_float32 && x->type->dtype != RT_uint8 && x->type->dtype != RT_int8))
        return lw_unsupported(l, "a window over other than images of float32 or bytes");
    w->element = x->type->dtype;
    w->spatial = t->rank - 2;
    if (!lw_source(l, x, &w->x_buffer, &w->x))
        return lw_unsupported(l, "the image is no view of an input");
    int last = t->rank - 1;
    w->batch = t->dims[0];
    w->channels = x->type->dims[1];
    w->input[0] = w->spatial == 2 ? x->type->dims[2] : 1;
    w->output[0] = w->spatial == 2 ? t->dims[2] : 1;
    w->h_stride = w->spatial == 2 ? w->x.strides[2] : 0;
    w->input[1] = x->type->dims[last];
    w->output[1] = t->dims[last];
    w->w_stride = w->x.strides[last];
    return NULL;
}

/* Dims: images, [groups], out_h, out_w, ..., channels; logical dims of the result point there. */
void lw_space_of_images(lowering *l) {
    const ir_type *t = l->anchor->results[0]->type;
    l->space_rank = l->space_map.rank = t->rank;
    for (int d = 0; d < t->rank; d++)
        l->space[d] = t->dims[d];
}

int lw_add_kernel_dim(lowering *l, rt_dim size, kn_role role) {
    K->dims[K->dim_count] = (kn_dim){.size = size, .role = role};
    return K->dim_count++;
}

void lw_point(lowering *l, int logical, int dim, rt_dim factor) {
    l->space_map.dims[logical].factors[dim] = factor;
}

static int window_dim(lowering *l, const lw_window *w, int axis, int outer) {
    int d = lw_add_kernel_dim(l, w->kernel[axis], KN_SERIAL);
    K->dims[d].window = (kn_window){.is_on = true, .outer = outer, .stride = w->stride[axis],
                                    .dilation = w->dilation[axis], .padding = w->padding[axis],
                                    .input = w->input[axis]};
    return d;
}

int lw_window_nest(lowering *l, const lw_window *w) {
    lw_space_of_images(l);
    int last = l->space_rank - 1;
    int n = lw_add_kernel_dim(l, w->batch, KN_OUTER), oh = lw_add_kernel_dim(l, w->output[0], KN_OUTER);
    int ow = lw_add_kernel_dim(l, w->output[1], KN_OUTER);
    int kh = window_dim(l, w, 0, oh), kw = window_dim(l, w, 1, ow);
    int c = lw_add_kernel_dim(l, w->channels, KN_VECTOR);
    lw_point(l, 0, n, 1);
    lw_point(l, 1, c, 1);
    if (w->spatial == 2)
        lw_point(l, 2, oh, 1);
    lw_point(l, last, ow, 1);
    kn_access a;
    memset(&a, 0, sizeof a);
    a.buffer = w->x_buffer;
    a.element = w->element;
    a.strides[n] = w->x.strides[0];
    a.strides[c] = w->x.strides[1];
    a.strides[oh] = kn_dim_mul(K, w->h_stride, w->stride[0]);
    a.strides[ow] = kn_dim_mul(K, w->w_stride, w->stride[1]);
    a.strides[kh] = kn_dim_mul(K, w->h_stride, w->dilation[0]);
    a.strides[kw] = kn_dim_mul(K, w->w_stride, w->dilation[1]);
    a.offset = kn_dim_add(K, w->x.offset, kn_dim_add(K, kn_dim_mul(K, w->h_stride, -w->padding[0]),
                                                     kn_dim_mul(K, w->w_stride, -w->padding[1])));
    return kn_load(K, &a);
}

ts_status lw_pooling(lowering *l, ir_anchor kind) {
    const ir_op *op = l->anchor;
    lw_window w;
    memset(&w, 0, sizeof w);
    TS_TRY(lw_open_window(l, ir_core_operand(l->ir, op, "self"), &w));
    int64_t list[4];
    size_t count;
    const ir_value *stride = ir_core_operand(l->ir, op, "stride");
    bool no_stride = stride && ir_const_int_list(stride, list, 4, &count) && count == 0;
    w.dilation[0] = w.dilation[1] = 1;
    if (!lw_int_pair(l, "kernel_size", w.spatial, 1, w.kernel) ||
        !lw_int_pair(l, no_stride ? "kernel_size" : "stride", w.spatial, 1, w.stride) ||
        !lw_int_pair(l, "padding", w.spatial, 0, w.padding) ||
        (kind == IR_A_MAX_POOL && !lw_int_pair(l, "dilation", w.spatial, 1, w.dilation)))
        return lw_unsupported(l, "a window that is not constant");
    if (w.kernel[0] < 1 || w.kernel[1] < 1 || w.stride[0] < 1 || w.stride[1] < 1 ||
        w.dilation[0] < 1 || w.dilation[1] < 1 || w.padding[0] < 0 || w.padding[1] < 0)
        return lw_unsupported(l, "an odd window");
    int x = lw_window_nest(l, &w);
    if (kind == IR_A_MAX_POOL) {
        l->anchor_node = kn_reduce(K, KN_RED_MAX, w.element == RT_float32 ? x : kn_cast(K, x, RT_int32));
        return lw_stores(l);
    }
    bool ceil_mode = true, include = true;
    const ir_value *ceiling = ir_core_operand(l->ir, op, "ceil_mode");
    const ir_value *includes = ir_core_operand(l->ir, op, "count_include_pad");
    const ir_value *divisor = ir_core_operand(l->ir, op, "divisor_override");
    if (!ceiling || !ir_const_bool(ceiling, &ceil_mode) || !includes ||
        !ir_const_bool(includes, &include) || (divisor && !lw_is_none(divisor)))
        return lw_unsupported(l, "an odd mean");
    bool has_padding = w.padding[0] || w.padding[1];
    if (ceil_mode && include && has_padding)
        return lw_unsupported(l, "a mean that counts padding at ragged ends");
    int sum = kn_reduce(K, KN_RED_SUM, x), n;
    if (ceil_mode || (!include && has_padding)) {
        kn_node count_node = lw_tile_node();
        count_node.code = KN_COUNT;
        count_node.type = RT_int64;
        n = kn_cast(K, kn_add_node(K, count_node), RT_float32);
    } else {
        n = kn_constant_number(K, RT_float32, (double)(w.kernel[0] * w.kernel[1]));
    }
    l->anchor_node = kn_op2(K, KN_div, sum, n);
    return lw_stores(l);
}

int lw_channel_bias(lowering *l, int node, ir_value *bias) {
    if (lw_is_none(bias))
        return node;
    lw_map channel;
    memset(&channel, 0, sizeof channel);
    channel.rank = 1;
    channel.dims[0] = l->space_map.dims[1];
    int b = lw_value(l, bias, &channel);
    return b < 0 ? -1 : kn_op2(K, KN_add, node, b);
}

/* The filters of a convolution: constant floats, or where an input of the kernel has them. */
typedef struct filters {
    ir_value *value;
    const float *constant; /* or NULL */
    int buffer;
    ir_strided strided;
} filters;

static bool find_filters(lowering *l, ir_value *weight, filters *out) {
    *out = (filters){.value = weight};
    if (!weight || (out->constant = lw_constant_floats(l, weight)))
        return weight != NULL;
    for (int d = 0; d < weight->type->rank; d++)
        if (!rt_dim_is_constant(weight->type->dims[d]))
            return false;
    return lw_source(l, weight, &out->buffer, &out->strided);
}

/* weight [C, 1, kh, kw] as [kh][kw][C]: the sum over the window runs along channels in vectors. */
static ts_status depthwise(lowering *l, const lw_window *w, const filters *f, int64_t channels,
                           ir_value *bias) {
    int64_t taps = w->kernel[0] * w->kernel[1];
    int x = lw_window_nest(l, w);
    kn_access a;
    memset(&a, 0, sizeof a);
    a.element = RT_float32;
    if (f->constant) {
        float *packed = ts_arena_array(l->unit->arena, (size_t)(taps * channels) + 1, sizeof *packed);
        for (int64_t c = 0; c < channels; c++)
            for (int64_t t = 0; t < taps; t++)
                packed[t * channels + c] = f->constant[c * taps + t];
        a.buffer = kn_add_constant(K, packed, (size_t)(taps * channels) * sizeof *packed);
        a.strides[3] = w->kernel[1] * channels;
        a.strides[4] = channels;
        a.strides[5] = 1;
    } else {
        const ir_strided *s = &f->strided;
        a.buffer = f->buffer;
        a.offset = s->offset;
        a.strides[3] = s->rank == 4 ? s->strides[2] : 0;
        a.strides[4] = s->strides[s->rank - 1];
        a.strides[5] = s->strides[0];
    }
    int product = kn_op2(K, KN_mul, x, kn_load(K, &a));
    l->anchor_node = lw_channel_bias(l, kn_reduce(K, KN_RED_SUM, product), bias);
    if (l->anchor_node < 0)
        return lw_unsupported(l, "the bias");
    return lw_stores(l);
}

void lw_pad_taps(lowering *l, kn_matrices *m, kn_format format, int64_t kernel_w) {
    kn_contraction *c = &K->contraction;
    /* Of lines: what lies side by side, with or without channels. */
    int64_t tap = c->term_w > 1 ? c->term_h : kernel_w, step = kn_format_step(format);
    if (c->left_kind == KN_LEFT_LINES && tap % step != 0) {
        m->tap = tap;
        m->tap_padded = kn_format_padded_k(format, tap);
        m->k = c->k = m->k / tap * m->tap_padded;
    }
}

/* weight [O, C/groups, kh, kw] as a matrix for each group, k in the order that the left side has.
 * Returns the floats of one. */
static int64_t pack_filters(lowering *l, const ir_value *weight, const float *data, int64_t groups,
                            int64_t out, const lw_window *w, kn_format format) {
    kn_contraction *c = &K->contraction;
    int64_t in = c->channels, taps = w->kernel[0] * w->kernel[1];
    int64_t *offsets = ts_arena_array(l->unit->arena, (size_t)groups, sizeof *offsets);
    for (int64_t g = 0; g < groups; g++)
        offsets[g] = g * out * in * taps;
    kn_matrices m = {.data = data, .offsets = offsets, .count = groups, .k = in * taps, .n = out,
                     .inner = in * taps, .middle = 1, .inner_stride = 1, .n_stride = in * taps,
                     .name = weight->def->weight_name, .place = l->anchor->place};
    if (c->term_c == 1 && taps > 1) { /* (tap, channel) */
        m.inner = in;
        m.inner_stride = taps;
        m.outer_stride = 1;
    } else if (c->term_h != w->kernel[1] && taps > 1) { /* (kernel_h, channel, kernel_w) */
        m.inner = w->kernel[1];
        m.middle = in;
        m.middle_stride = taps;
        m.outer_stride = w->kernel[1];
    }
    lw_pad_taps(l, &m, format, w->kernel[1]);
    return lw_pack_weights(l, format, &m);
}

/* Lines of the image may be copied with their padding where a line is not mostly padding. Sizes that
 * are parameters count as those of a net that has 224 pixels a side at 16 channels, and less the more
 * channels there are. `interleaved`: a line has its pixels' channels side by side. */
bool lw_may_copy_lines(const kn_contraction *c, bool *out_interleaved) {
    enum { MAX_LINE_FLOATS = 1 << 14, MAX_SCRATCH_FLOATS = 1 << 17, USUAL_FLOATS = 224 * 16 };
    rt_dim sizes[] = {c->input_h, c->input_w, c->out_h, c->out_w, c->h_stride, c->w_stride, c->left_k};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] == RT_DIM_UNKNOWN)
            return false;
    bool interleaved = c->left_k == 1 && c->w_stride == c->channels && c->dilation_w == 1;
    int64_t out_w = rt_dim_is_constant(c->out_w) ? c->out_w : 1 + USUAL_FLOATS / (c->channels + 16);
    int64_t unit = interleaved ? c->channels : 1, planes = interleaved ? 1 : c->channels;
    bool is_empty = out_w < 1 || (rt_dim_is_constant(c->out_h) && c->out_h < 1);
    if (is_empty || c->pad_w > 64 || c->kernel_h > 64 || c->kernel_w > 64 ||
        c->stride_w > 64 || c->stride_h > 64 || c->dilation_h > 64 || c->dilation_w > 64 ||
        out_w > MAX_LINE_FLOATS || planes > 4096 || (planes > 1 && c->dilation_h > 1))
        return false;
    int64_t line = (out_w * c->stride_w + c->kernel_w * c->dilation_w) * unit;
    *out_interleaved = interleaved;
    return line <= MAX_LINE_FLOATS && line * planes * (c->kernel_h * c->dilation_h) <= MAX_SCRATCH_FLOATS;
}

/* The order of the sum's terms, as the left side has them. */
void lw_order_terms(kn_contraction *c, bool interleaved) {
    bool by_pixel = c->left_kind == KN_LEFT_CONVOLUTION || c->left_kind == KN_LEFT_ROWS;
    if (by_pixel || (c->left_kind == KN_LEFT_LINES && interleaved)) {
        c->term_c = 1;
        c->term_w = c->channels;
        c->term_h = c->kernel_w * c->channels;
    } else if (c->left_kind == KN_LEFT_LINES) {
        c->term_w = 1;
        c->term_c = c->kernel_w;
        c->term_h = c->channels * c->kernel_w;
    } else {
        c->term_w = 1;
        c->term_h = c->kernel_w;
        c->term_c = c->kernel_h * c->kernel_w;
    }
}

/* The format of the filters. It may change the left side: taps of whole steps are read in place,
 * others are copied. */
kn_format lw_convolution_format(lowering *l, const kn_matrices *m) {
    kn_contraction *c = &K->contraction;
    kn_format format = lw_weight_format(l, true, m);
    int step = kn_format_step(format);
    if (c->left_kind == KN_LEFT_LINES && step > 1 && c->dilation_w > 1)
        c->left_kind = KN_LEFT_PACKED; /* a step's terms would not lie side by side */
    if (c->left_kind == KN_LEFT_CONVOLUTION && format != KN_BFLOAT16_DOT && c->channels % step != 0)
        c->left_kind = KN_LEFT_PACKED;
    return format;
}

/* weight [O, C, 3, 3], transformed, as panels for each place of a tile. */
static void pack_winograd(lowering *l, const float *weight, int64_t out) {
    kn_contraction *c = &K->contraction;
    int64_t in = c->channels, places = (c->winograd + 2) * (c->winograd + 2);
    int64_t floats = (out + KN_PANEL - 1) / KN_PANEL * KN_PANEL * in * places;
    bool is_new;
    float *packed = kn_weights_room(l->unit->weights, weight, c->winograd,
                                    (size_t)floats * sizeof *packed, &is_new);
    for (int64_t o = 0; is_new && o < out; o++)
        for (int64_t ch = 0; ch < in; ch++) {
            double filter[9], at_places[36];
            for (int t = 0; t < 9; t++)
                filter[t] = weight[(o * in + ch) * 9 + t];
            kn_winograd_filter(c->winograd, filter, at_places);
            for (int64_t i = 0; i < places; i++)
                packed[((o / KN_PANEL * places + i) * in + ch) * KN_PANEL + o % KN_PANEL] =
                    (float)at_places[i];
        }
    kn_weights_filled(l->unit->weights, packed);
    c->right_is_packed = true;
    c->right.element = RT_float32;
    c->right.buffer = kn_add_constant(K, packed, (size_t)floats * sizeof *packed);
}

/* A side of the image as far as it is known: what is made of an input's size shows how large it is beside that. */
static int64_t usual_side(const lowering *l, const kn_contraction *c, rt_dim side, int64_t out) {
    if (rt_dim_is_constant(side))
        return side;
    bool is_input = ir_dim_get(l->unit->ir, side).kind == IR_DIM_SYMBOL;
    int64_t usual = is_input ? -1 : ir_dim_estimate(l->unit->ir, side, IR_USUAL_SIZE);
    return usual > 0 ? usual : kn_winograd_usual_side(c->channels, out);
}

/* The tile's side, or 0: other devices read the filters as they are. Filters are transformed for one
 * kind of tile, so sizes that are parameters count as what they are in most nets. The direct form multiplies twice as fast in bfloat16 (0.47: measured, and the transformed filters are
 * eight times as large), and is what smaller files want. */
static int choose_winograd(const lowering *l, const kn_contraction *c, rt_dim images, int64_t groups,
                           int64_t out) {
    const cg_options *o = l->unit->options;
    rt_dim sizes[] = {c->input_h, c->input_w, c->out_h, c->out_w, c->h_stride, c->w_stride};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] == RT_DIM_UNKNOWN)
            return 0;
    if (o->no_winograd || o->weights_dtype == CG_WEIGHTS_BF16 || l->unit->dialect || c->left_kind != KN_LEFT_CONVOLUTION ||
        groups != 1 || c->kernel_h != 3 || c->kernel_w != 3 || c->stride_h != 1 ||
        c->stride_w != 1 || c->dilation_h != 1 || c->dilation_w != 1)
        return 0;
    int tile = kn_choose_winograd(rt_dim_is_constant(images) ? images : 1, usual_side(l, c, c->out_h, out),
                                  usual_side(l, c, c->out_w, out), c->channels, out,
                                  o->computes_bf16 ? 0.47 : 1);
    if (tile && l->k->variant->winograd)
        tile = l->k->variant->winograd < 0 ? 0 : l->k->variant->winograd;
    return tile;
}

/* Whether the terms of the sum, in the order at hand, lie in constant steps of run-time filters. */
static bool has_even_terms(lowering *l, const ir_strided *s, rt_dim *out_step) {
    const kn_contraction *c = &K->contraction;
    int last = s->rank - 1;
    rt_dim strides[3] = {s->strides[1], last > 2 ? s->strides[2] : 0, s->strides[last]};
    int64_t terms[3] = {c->term_c, c->term_h, c->term_w}, sizes[3] = {c->channels, c->kernel_h, c->kernel_w};
    *out_step = 0;
    for (int i = 0; i < 3; i++)
        if (sizes[i] > 1 && terms[i] == 1)
            *out_step = strides[i];
    for (int i = 0; i < 3; i++)
        if (sizes[i] > 1 && !kn_dim_same(K, strides[i], kn_dim_mul(K, *out_step, terms[i])))
            return false;
    return true;
}

/* Run-time filters are a matrix for each group as they lie; where their terms are in another order than
 * the left side's, that one is copied in theirs. */
static ts_status read_filters(lowering *l, const filters *f, bool interleaved, int group_dim, int out_dim) {
    kn_contraction *c = &K->contraction;
    const ir_strided *s = &f->strided;
    lw_order_terms(c, interleaved);
    if (!has_even_terms(l, s, &c->right_k)) {
        c->left_kind = KN_LEFT_PACKED;
        lw_order_terms(c, false);
        if (!has_even_terms(l, s, &c->right_k))
            return lw_unsupported(l, "filters whose elements are apart");
    }
    c->right.buffer = f->buffer;
    c->right.element = RT_float32;
    c->right.offset = s->offset;
    c->right.strides[out_dim] = s->strides[0];
    if (group_dim >= 0)
        c->right.strides[group_dim] = kn_dim_mul(K, s->strides[0], K->dims[out_dim].size);
    return NULL;
}

bool lw_product_of_pixels(lowering *l, const lw_window *w) {
    kn_contraction *c = &K->contraction;
    c->h_stride = w->h_stride;
    c->w_stride = w->w_stride;
    c->input_h = w->input[0];
    c->input_w = w->input[1];
    c->out_h = w->output[0];
    c->out_w = w->output[1];
    c->kernel_h = w->kernel[0];
    c->kernel_w = w->kernel[1];
    c->stride_h = w->stride[0];
    c->stride_w = w->stride[1];
    c->dilation_h = w->dilation[0];
    c->dilation_w = w->dilation[1];
    c->pad_h = w->padding[0];
    c->pad_w = w->padding[1];
    return w->kernel[0] == 1 && w->kernel[1] == 1 && w->stride[0] == 1 && w->stride[1] == 1 &&
           w->padding[0] == 0 && w->padding[1] == 0 &&
           (w->spatial == 1 || kn_dim_same(K, w->h_stride, kn_dim_mul(K, w->w_stride, w->output[1])));
}

/* A signal without padding whose taps lie side by side: rows of a matrix that overlap. Of several channels the
 * filters have another order, which packing them changes. */
static bool has_frames(const lw_window *w, const filters *f, int64_t in, int64_t groups) {
    bool is_dense = in == 1 ? w->w_stride == 1 : w->x.strides[1] == 1 && w->w_stride == in && f->constant;
    return w->spatial == 1 && groups == 1 && is_dense && w->padding[1] == 0 && w->dilation[1] == 1;
}

ts_status lw_convolution(lowering *l) {
    if (lw_is_transposed(l))
        return lw_transposed(l);
    const ir_op *op = l->anchor;
    lw_window w;
    memset(&w, 0, sizeof w);
    TS_TRY(lw_open_window(l, ir_core_operand(l->ir, op, "input"), &w));
    ir_value *weight = ir_core_operand(l->ir, op, "weight"), *bias = ir_core_operand(l->ir, op, "bias");
    filters f;
    int64_t groups = 1;
    const ir_value *g = ir_core_operand(l->ir, op, "groups");
    if (!find_filters(l, weight, &f) || !lw_int_pair(l, "stride", w.spatial, 1, w.stride) ||
        !lw_int_pair(l, "padding", w.spatial, 0, w.padding) ||
        !lw_int_pair(l, "dilation", w.spatial, 1, w.dilation) || (g && !ir_const_int(g, &groups)))
        return lw_unsupported(l, "a convolution whose filters' sizes or window are not constant");
    const ir_type *wt = weight->type;
    w.kernel[0] = w.spatial == 2 ? wt->dims[2] : 1;
    w.kernel[1] = wt->dims[wt->rank - 1];
    int64_t out_all = wt->dims[0], in = wt->dims[1];
    if (!rt_dim_is_constant(w.channels) || groups < 1 || out_all % groups ||
        w.channels != in * groups || w.stride[0] < 1 || w.stride[1] < 1 || w.dilation[0] < 1 ||
        w.dilation[1] < 1 || w.padding[0] < 0 || w.padding[1] < 0 || wt->rank != w.spatial + 2 ||
        w.kernel[0] * w.kernel[1] * in == 0)
        return lw_unsupported(l, "an odd convolution");
    int64_t out = out_all / groups, taps = w.kernel[0] * w.kernel[1];
    if (groups > 1 && in == 1 && out == 1)
        return depthwise(l, &w, &f, w.channels, bias);
    kn_contraction *c = &K->contraction;
    c->is_on = true;
    lw_space_of_images(l);
    bool has_rows = w.x.strides[1] == 1 && in >= 16;
    int gd = groups > 1 ? lw_add_kernel_dim(l, groups, KN_OUTER) : -1;
    int n = lw_add_kernel_dim(l, w.batch, KN_OUTER), oh = lw_add_kernel_dim(l, w.output[0], KN_OUTER);
    int ow = lw_add_kernel_dim(l, w.output[1], KN_OUTER), o = lw_add_kernel_dim(l, out, KN_VECTOR);
    c->batch_count = ow;
    lw_point(l, 0, n, 1);
    lw_point(l, 1, o, 1);
    if (gd >= 0)
        lw_point(l, 1, gd, out);
    if (w.spatial == 2)
        lw_point(l, 2, oh, 1);
    lw_point(l, l->space_rank - 1, ow, 1);
    c->k = in * taps;
    c->left.buffer = w.x_buffer;
    c->left.element = RT_float32;
    c->left.offset = w.x.offset;
    c->left.strides[n] = w.x.strides[0];
    c->left_k = w.x.strides[1];
    if (gd >= 0)
        c->left.strides[gd] = kn_dim_mul(K, w.x.strides[1], in);
    c->channels = in;
    bool interleaved = false;
    bool is_matrix = (lw_product_of_pixels(l, &w) && has_rows) || has_frames(&w, &f, in, groups);
    c->has_pixel_rows = is_matrix && !(w.output[0] == 1 && w.output[1] == 1);
    if (is_matrix)
        c->left_kind = KN_LEFT_ROWS;
    else if (has_rows)
        c->left_kind = KN_LEFT_CONVOLUTION;
    else
        c->left_kind = lw_may_copy_lines(c, &interleaved) ? KN_LEFT_LINES : KN_LEFT_PACKED;
    c->winograd = f.constant ? choose_winograd(l, c, w.batch, groups, out) : 0;
    c->images = 1;
    kn_format format = KN_FLOAT32;
    if (f.constant && !c->winograd)
        format = lw_convolution_format(l, &(kn_matrices){.k = in * taps, .n = out, .count = groups});
    lw_order_terms(c, interleaved);
    int64_t each = 0;
    if (!f.constant)
        TS_TRY(read_filters(l, &f, interleaved, gd, o));
    else if (c->winograd)
        pack_winograd(l, f.constant, out);
    else
        each = pack_filters(l, weight, f.constant, groups, out, &w, format);
    if (is_matrix) {
        c->left.strides[oh] = w.h_stride;
        c->left.strides[ow] = kn_dim_mul(K, w.w_stride, w.stride[1]); /* of single taps 1 */
        c->left_k = 1;
        c->kernel_h = c->kernel_w = 0;
    }
    if (gd >= 0 && f.constant)
        c->right.strides[gd] = each;
    if (has_rows && !is_matrix) {
        float *zeros = ts_arena_array(l->unit->arena, (size_t)in, sizeof *zeros);
        c->zeros_buffer = kn_add_constant(K, zeros, (size_t)in * sizeof *zeros);
    }
    l->anchor_node = lw_channel_bias(l, kn_add_node(K, lw_tile_node()), bias);
    if (l->anchor_node < 0)
        return lw_unsupported(l, "the bias");
    TS_TRY(lw_stores(l));
    /* Rows of the product are pixels: out_h and out_w must be one dim of everything stored. */
    if (!kn_merge_pixels(K, oh))
        return lw_unsupported(l, "pixels that are stored apart");
    return NULL;
}

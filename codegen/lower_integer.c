/* codegen/lower_integer.c - products and convolutions of bytes (uint8 or int8) with int8 weights.
 *
 * Sums are exact in int32, so order and level change nothing. Weights lie in panels of 16 columns, two
 * terms side by side, with the sum of each column behind them:
 *
 *   [k / 2][16][2] int8, then [16] int32
 *
 * k is padded with zeros to whole steps of four: AVX2 and AVX-512 widen a pair to 16 bits and multiply and
 * add pairs exactly, VNNI takes two pairs at once. The zero point is taken off as rows are copied, or
 * times the sum of the column afterwards (emit_llvm_integer.c). A depthwise convolution is a window
 * over channels in float32, where sums of up to 2^24 are exact too. */
#include "codegen/lower_contraction.h"

#include <string.h>

#include "codegen/emit_llvm_contraction.h"
#include "runtime/values/tensor.h"

#define K l->k

enum { ROOM_FORM = 1000, MAX_DEPTHWISE_TAPS = (1 << 24) / (255 * 128) };

static const int8_t *constant_bytes(const ir_value *v) {
    if (!v->def || v->def->opcode != IR_OP_CONST || v->def->value.tag != RT_TAG_TENSOR)
        return NULL;
    const rt_tensor *t = v->def->value.as.tensor;
    return t->dtype == RT_int8 && rt_tensor_is_contiguous(t) ? t->data : NULL;
}

/* weight [groups * columns][channels][taps], summed in the order (tap, channel): panels for each group,
 * as the right operand. Returns the bytes of a group. */
static int64_t pack(lowering *l, const int8_t *weight, int64_t groups, int64_t columns, int64_t channels,
                    int64_t taps) {
    kn_contraction *c = &K->contraction;
    int64_t k = channels * taps, panel = kn_integer_panel_bytes(k);
    int64_t each = (columns + KN_PANEL - 1) / KN_PANEL * panel;
    bool is_new;
    char *packed = kn_weights_room(l->unit->weights, weight, ROOM_FORM + (int)groups,
                                   (size_t)(each * groups), &is_new);
    for (int64_t i = 0; is_new && i < groups * columns; i++) {
        int64_t column = i % columns;
        char *to = packed + i / columns * each + column / KN_PANEL * panel;
        int32_t sum = 0;
        for (int64_t j = 0; j < k; j++) {
            int8_t w = weight[i * k + j % channels * taps + j / channels];
            to[(j / 2 * KN_PANEL + column % KN_PANEL) * 2 + j % 2] = (char)w;
            sum += w;
        }
        memcpy(to + panel - KN_PANEL * 4 + column % KN_PANEL * 4, &sum, sizeof sum);
    }
    kn_weights_filled(l->unit->weights, packed);
    c->right_is_packed = true;
    c->right.element = RT_int8;
    c->right.buffer = kn_add_constant(K, packed, (size_t)(each * groups));
    return each;
}

static int integer_tile(lowering *l) {
    kn_node n = lw_tile_node();
    n.type = RT_int32;
    return kn_add_node(K, n);
}

static ts_status linear(lowering *l, const ir_value *weight, const int8_t *bytes) {
    const ir_op *op = l->anchor;
    const ir_type *t = op->results[0]->type;
    kn_contraction *c = &K->contraction;
    ir_strided s;
    if (t->rank > KN_MAX_DIMS || !lw_source(l, op->operands[0], &c->left.buffer, &s))
        return lw_unsupported(l, "the left operand is no view of an input");
    lw_space_of_product(l, t);
    for (int d = 0; d + 1 < t->rank; d++)
        c->left.strides[d] = s.strides[d];
    c->left.offset = s.offset;
    c->left_k = s.strides[t->rank - 1];
    c->left_kind = KN_LEFT_PACKED;
    c->k = weight->type->dims[1];
    pack(l, bytes, 1, weight->type->dims[0], c->k, 1);
    l->anchor_node = integer_tile(l);
    return lw_stores(l);
}

/* Bytes less the zero point, times the filters as floats: every sum is an integer of 24 bits. */
static ts_status depthwise(lowering *l, const lw_window *w, const int8_t *weight, int64_t channels) {
    int64_t taps = w->kernel[0] * w->kernel[1];
    float *packed = ts_arena_array(l->unit->arena, (size_t)(taps * channels) + 1, sizeof *packed);
    for (int64_t c = 0; c < channels; c++)
        for (int64_t t = 0; t < taps; t++)
            packed[t * channels + c] = weight[c * taps + t];
    int x = kn_cast(K, lw_window_nest(l, w), RT_float32);
    int zero = lw_scalar(l, l->anchor->operands[2], RT_float32);
    if (zero < 0)
        return l->status;
    if (K->nodes[zero].code != KN_CONSTANT || K->nodes[zero].number != 0)
        x = kn_op2(K, KN_sub, x, zero);
    kn_access a;
    memset(&a, 0, sizeof a);
    a.buffer = kn_add_constant(K, packed, (size_t)(taps * channels) * sizeof *packed);
    a.element = RT_float32;
    a.strides[3] = w->kernel[1] * channels;
    a.strides[4] = channels;
    a.strides[5] = 1;
    l->anchor_node = kn_reduce(K, KN_RED_SUM, kn_op2(K, KN_mul, x, kn_load(K, &a)));
    return lw_stores(l);
}

static ts_status convolution(lowering *l, const ir_value *weight, const int8_t *bytes) {
    const ir_op *op = l->anchor;
    lw_window w;
    int64_t groups;
    memset(&w, 0, sizeof w);
    TS_TRY(lw_open_window(l, op->operands[0], &w));
    if (!lw_int_pair(l, "stride", w.spatial, 1, w.stride) ||
        !lw_int_pair(l, "padding", w.spatial, 0, w.padding) ||
        !lw_int_pair(l, "dilation", w.spatial, 1, w.dilation) || !ir_const_int(op->operands[6], &groups))
        return lw_unsupported(l, "a convolution whose window is not constant");
    const ir_type *wt = weight->type;
    w.kernel[0] = w.spatial == 2 ? wt->dims[2] : 1;
    w.kernel[1] = wt->dims[wt->rank - 1];
    int64_t taps = w.kernel[0] * w.kernel[1], in = wt->dims[1];
    if (wt->dims[0] % groups || w.stride[0] < 1 || w.stride[1] < 1 || w.dilation[0] < 1 ||
        w.dilation[1] < 1 || w.padding[0] < 0 || w.padding[1] < 0 || taps * in == 0)
        return lw_unsupported(l, "an odd convolution");
    int64_t out = wt->dims[0] / groups;
    if (groups > 1 && in == 1 && out == 1 && taps <= MAX_DEPTHWISE_TAPS) {
        K->contraction.is_on = K->contraction.is_integer = false;
        return depthwise(l, &w, bytes, groups);
    }
    kn_contraction *c = &K->contraction;
    lw_space_of_images(l);
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
    c->left_kind = KN_LEFT_PACKED;
    c->k = in * taps;
    c->channels = in;
    c->left.buffer = w.x_buffer;
    c->left.offset = w.x.offset;
    c->left.strides[n] = w.x.strides[0];
    c->left_k = w.x.strides[1];
    if (lw_product_of_pixels(l, &w)) {
        c->left.strides[oh] = w.h_stride;
        c->left.strides[ow] = w.w_stride;
        c->kernel_h = c->kernel_w = 0;
    }
    int64_t each = pack(l, bytes, groups, out, in, taps);
    if (gd >= 0) {
        c->right.strides[gd] = each;
        c->left.strides[gd] = kn_dim_mul(K, w.x.strides[1], in);
    }
    l->anchor_node = integer_tile(l);
    TS_TRY(lw_stores(l));
    /* Rows of the product are pixels: out_h and out_w must be one dim of everything stored. */
    if (!kn_merge_pixels(K, oh))
        return lw_unsupported(l, "pixels that are stored apart");
    return NULL;
}

ts_status lw_integer(lowering *l, ir_anchor kind) {
    const ir_op *op = l->anchor;
    kn_contraction *c = &K->contraction;
    ir_value *x = op->operands[0], *weight = op->operands[1];
    const int8_t *bytes = constant_bytes(weight);
    if (!bytes || !ir_type_is_known_tensor(x->type) || !ir_type_is_known_tensor(op->results[0]->type))
        return lw_unsupported(l, "weights that are not constant");
    c->is_on = c->is_integer = true;
    c->left.element = x->type->dtype;
    c->zero = lw_scalar(l, op->operands[2], RT_int32);
    if (c->zero < 0)
        return l->status;
    return kind == IR_A_INTEGER_LINEAR ? linear(l, weight, bytes) : convolution(l, weight, bytes);
}

/* codegen/lower_contraction.h - what the lowerings of products, convolutions and pooling share. */
#ifndef CODEGEN_LOWER_CONTRACTION_H
#define CODEGEN_LOWER_CONTRACTION_H

#include "codegen/lower.h"
#include "ir/kernel_form.h"

typedef struct lw_window {
    rt_dtype element; /* of the input: float32, or bytes */
    int spatial; /* 1 or 2 */
    int64_t kernel[2], stride[2], padding[2], dilation[2]; /* h, w; h is 1, 1, 0, 1 in 1-d */
    rt_dim input[2], output[2];
    ir_strided x;        /* of the input: batch, channel, [h], w */
    int x_buffer;
    rt_dim h_stride, w_stride;
    rt_dim batch, channels;
} lw_window;

ts_status lw_unsupported(const lowering *l, const char *why) TS_WARN_UNUSED;
kn_node lw_tile_node(void);
/* The iteration space of a batched product of type t: its rows and batches outside, columns as vectors. */
void lw_space_of_product(lowering *l, const ir_type *t);
bool lw_is_floats(const ir_value *v, int min_rank);

/* ---- lower_convolution.c ---- */
ts_status lw_convolution(lowering *l) TS_WARN_UNUSED;
ts_status lw_pooling(lowering *l, ir_anchor kind) TS_WARN_UNUSED;
ts_status lw_open_window(lowering *l, ir_value *x, lw_window *w) TS_WARN_UNUSED;
/* An argument of one or `spatial` constant integers, as h and w; h of one dim is `first`. */
bool lw_int_pair(lowering *l, const char *name, int spatial, int64_t first, int64_t *out);
void lw_space_of_images(lowering *l);
/* Sets the window of the contraction. True where pixels one after another are a matrix: no window moves. */
bool lw_product_of_pixels(lowering *l, const lw_window *w);
int lw_add_kernel_dim(lowering *l, rt_dim size, kn_role role);
void lw_point(lowering *l, int logical, int dim, rt_dim factor);
int lw_channel_bias(lowering *l, int node, ir_value *bias); /* -1: failed */
bool lw_may_copy_lines(const kn_contraction *c, bool *out_interleaved);
void lw_order_terms(kn_contraction *c, bool interleaved);
kn_format lw_convolution_format(lowering *l, const kn_matrices *m);
/* Taps of lines become whole steps of the format. */
void lw_pad_taps(lowering *l, kn_matrices *m, kn_format format, int64_t kernel_w);

/* A nest over images whose windows are serial dims; returns the load of the input at a window
 * position. dims out: 0 image, 1 out_h, 2 out_w, 3 kernel_h, 4 kernel_w, 5 channel. */
int lw_window_nest(lowering *l, const lw_window *w);

/* ---- lower_integer.c ---- */
ts_status lw_integer(lowering *l, ir_anchor kind) TS_WARN_UNUSED;

/* ---- lower_transposed.c ---- */
bool lw_is_transposed(lowering *l);
ts_status lw_transposed(lowering *l) TS_WARN_UNUSED;

#endif

/* runtime/ops/infer_nn.c - shapes of pooling, normalisation, recurrent layers, attention, resizing. */
#include "runtime/ops/tensor_ops.h"

static void set_unknown(rt_dtype dtype, rt_fact *out) { *out = rt_fact_tensor(dtype, -1, NULL); }

/* Of images with or without a batch. */
static ts_status image_rank(const rt_fact *x, int low, int high) {
    if (!rt_fact_has_shape(x) || (x->rank >= low && x->rank <= high))
        return NULL;
    return ts_raise("RuntimeError", "expected a tensor of %d to %d dims, found %d", low, high,
                    x->rank);
}

/* ---- pooling ---- */

static rt_dim pool_size(const rt_infer_context *ic, rt_dim in, rt_dim kernel, rt_dim stride,
                        rt_dim padding, rt_dim dilation, const rt_fact *ceil_mode) {
    int64_t is_ceil;
    if (!rt_known(in) || !rt_known(kernel) || !rt_known(stride) || !rt_known(padding) || !rt_known(dilation) ||
        !rt_fact_int(ceil_mode, &is_ceil))
        return RT_DIM_UNKNOWN;
    rt_dim reach = rt_dim_mul(ic, dilation, rt_dim_sub(ic, kernel, 1));
    rt_dim span = rt_dim_sub(ic, rt_dim_add(ic, in, rt_dim_mul(ic, 2, padding)), reach);
    if (!is_ceil)
        return rt_dim_add(ic, rt_dim_floordiv(ic, rt_dim_sub(ic, span, 1), stride), 1);
    if (!rt_dim_is_constant(span) || !rt_dim_is_constant(stride) || !rt_dim_is_constant(in) ||
        !rt_dim_is_constant(padding) || stride <= 0 || span < 1)
        return RT_DIM_UNKNOWN;
    rt_dim n = (span - 1 + stride - 1) / stride + 1;
    return (n - 1) * stride >= in + padding ? n - 1 : n;
}

static ts_status check_pool_padding(rt_dim kernel, rt_dim padding, rt_dim dilation) {
    if (!rt_dim_is_constant(kernel) || !rt_dim_is_constant(padding) || !rt_dim_is_constant(dilation) ||
        (padding >= 0 && padding <= ((kernel - 1) * dilation + 1) / 2))
        return NULL;
    return ts_raise("RuntimeError",
                    "pad should be at most half of effective kernel size, but got pad=%lld, "
                    "kernel_size=%lld and dilation=%lld",
                    (long long)padding, (long long)kernel, (long long)dilation);
}

static ts_status pool(const rt_infer_context *ic, const rt_fact *args, int dims_count,
                      const rt_fact *dilation, const rt_fact *ceil_mode, rt_fact *outs,
                      size_t out_count) {
    const rt_fact *x = &args[0];
    set_unknown(rt_fact_tensor_dtype(x), outs);
    if (out_count > 1)
        set_unknown(RT_int64, &outs[1]);
    TS_TRY(image_rank(x, dims_count + 1, dims_count + 2));
    if (!rt_fact_has_shape(x))
        return NULL;
    rt_dim *dims = rt_new_dims(ic, x->rank);
    rt_dim list[RT_MAX_RANK];
    int count;
    bool has_stride = args[2].kind != RT_FACT_NONE &&
                      !(rt_fact_dims(&args[2], list, &count) && count == 0);
    for (int i = 0; i < x->rank; i++) {
        int d = i - (x->rank - dims_count);
        dims[i] = x->dims[i];
        if (dims[i] == 0 && (i || x->rank == dims_count + 1))
            return ts_raise(
                "RuntimeError",
                "Expected %dD or %dD (batch mode) tensor with optional 0 dim batch size for "
                "input, but got size 0 in dimension %d",
                dims_count + 1, dims_count + 2, i);
        if (d >= 0)
            TS_TRY(check_pool_padding(rt_fact_entry(&args[1], d, dims_count), rt_fact_entry(&args[3], d, dims_count),
                                      dilation ? rt_fact_entry(dilation, d, dims_count) : 1));
        if (d >= 0)
            dims[i] = pool_size(ic, dims[i], rt_fact_entry(&args[1], d, dims_count),
                                rt_fact_entry(has_stride ? &args[2] : &args[1], d, dims_count),
                                rt_fact_entry(&args[3], d, dims_count),
                                dilation ? rt_fact_entry(dilation, d, dims_count) : 1, ceil_mode);
        if (d >= 0 && rt_dim_is_constant(dims[i]) && dims[i] < 1)
            return ts_raise("RuntimeError", "a window larger than dimension %d: the calculated output size, %lld, is too small",
                            i, (long long)dims[i]);
    }
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(x), x->rank, dims);
    if (out_count > 1)
        outs[1] = rt_fact_tensor(RT_int64, x->rank, dims);
    return NULL;
}

RULE(max_pool1d) { return pool(ic, args, 1, &args[4], &args[5], outs, out_count); }
RULE(max_pool2d) { return pool(ic, args, 2, &args[4], &args[5], outs, out_count); }
RULE(max_pool3d) { return pool(ic, args, 3, &args[4], &args[5], outs, out_count); }
RULE(avg_pool1d) { return pool(ic, args, 1, NULL, &args[4], outs, out_count); }
RULE(avg_pool2d) { return pool(ic, args, 2, NULL, &args[4], outs, out_count); }
RULE(avg_pool3d) { return pool(ic, args, 3, NULL, &args[4], outs, out_count); }

/* The last dims are those of a list argument. */
static ts_status sized_tail(const rt_infer_context *ic, const rt_fact *x, const rt_fact *size,
                            int dims_count, rt_fact *outs, size_t out_count) {
    set_unknown(rt_fact_tensor_dtype(x), outs);
    if (out_count > 1)
        set_unknown(RT_int64, &outs[1]);
    TS_TRY(image_rank(x, dims_count + 1, dims_count + 2));
    if (!rt_fact_has_shape(x))
        return NULL;
    rt_dim *dims = rt_new_dims(ic, x->rank);
    for (int i = 0; i < x->rank; i++) {
        int d = i - (x->rank - dims_count);
        dims[i] = d < 0 ? x->dims[i] : rt_fact_entry(size, d, dims_count);
    }
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(x), x->rank, dims);
    if (out_count > 1)
        outs[1] = rt_fact_tensor(RT_int64, x->rank, dims);
    return NULL;
}

RULE(adaptive_pool1d) { return sized_tail(ic, &args[0], &args[1], 1, outs, out_count); }
RULE(adaptive_pool2d) { return sized_tail(ic, &args[0], &args[1], 2, outs, out_count); }
RULE(adaptive_pool3d) { return sized_tail(ic, &args[0], &args[1], 3, outs, out_count); }
RULE(max_unpool2d) { return sized_tail(ic, &args[0], &args[2], 2, outs, 1); }
RULE(max_unpool3d) { return sized_tail(ic, &args[0], &args[2], 3, outs, 1); }

/* ---- resizing ---- */

static ts_status resized(const rt_infer_context *ic, const rt_fact *args, int dims_count,
                         const rt_fact *scales, rt_fact *outs) {
    const rt_fact *x = &args[0];
    if (!scales || args[1].kind != RT_FACT_NONE)
        return sized_tail(ic, x, &args[1], dims_count, outs, 1);
    set_unknown(rt_fact_tensor_dtype(x), outs);
    TS_TRY(image_rank(x, dims_count + 2, dims_count + 2));
    if (!rt_fact_has_shape(x))
        return NULL;
    rt_dim *dims = rt_new_dims(ic, x->rank);
    for (int i = 0; i < x->rank; i++) {
        int d = i - 2;
        dims[i] = x->dims[i];
        if (d < 0)
            continue;
        const rt_fact *item = NULL;
        if (scales->kind == RT_FACT_LIST && scales->count_known && scales->items &&
            (scales->count == 1 || (int)scales->count == dims_count))
            item = &scales->items[scales->count == 1 ? 0 : d];
        if (!item || item->kind != RT_FACT_FLOAT || !item->is_known || item->f < 0)
            dims[i] = RT_DIM_UNKNOWN;
        else if (rt_dim_is_constant(dims[i]))
            dims[i] = (rt_dim)((double)dims[i] * item->f);
        else if (item->f == (double)(int64_t)item->f)
            dims[i] = rt_dim_mul(ic, dims[i], (rt_dim)item->f);
        else
            dims[i] = RT_DIM_UNKNOWN;
    }
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(x), x->rank, dims);
    return NULL;
}

RULE(resize1d) { return resized(ic, args, 1, NULL, outs); }
RULE(resize2d) { return resized(ic, args, 2, NULL, outs); }
RULE(resize3d) { return resized(ic, args, 3, NULL, outs); }
RULE(nearest1d_vec) { return resized(ic, args, 1, &args[2], outs); }
RULE(nearest2d_vec) { return resized(ic, args, 2, &args[2], outs); }
RULE(nearest3d_vec) { return resized(ic, args, 3, &args[2], outs); }
RULE(linear1d_vec) { return resized(ic, args, 1, &args[3], outs); }
RULE(linear2d_vec) { return resized(ic, args, 2, &args[3], outs); }
RULE(linear3d_vec) { return resized(ic, args, 3, &args[3], outs); }

RULE(grid_sampler) {
    const rt_fact *x = &args[0], *g = &args[1];
    set_unknown(rt_fact_tensor_dtype(x), outs);
    if (!rt_fact_has_shape(x) || !rt_fact_has_shape(g) || x->rank != g->rank || x->rank < 4)
        return NULL;
    rt_dim *dims = rt_new_dims(ic, x->rank);
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    for (int i = 2; i < x->rank; i++)
        dims[i] = g->dims[i - 1];
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(x), x->rank, dims);
    return NULL;
}

RULE(affine_grid) {
    rt_dim size[RT_MAX_RANK];
    int rank;
    set_unknown(rt_fact_tensor_dtype(&args[0]), outs);
    if (!rt_fact_dims(&args[1], size, &rank) || rank < 4 || rank > 5)
        return NULL;
    rt_dim *dims = rt_new_dims(ic, rank);
    dims[0] = size[0];
    for (int i = 2; i < rank; i++)
        dims[i - 1] = size[i];
    dims[rank - 1] = rank - 2;
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), rank, dims);
    return NULL;
}

static ts_status pixels(const rt_infer_context *ic, const rt_fact *args, bool is_shuffle,
                        rt_fact *out) {
    const rt_fact *x = &args[0];
    int64_t r;
    set_unknown(rt_fact_tensor_dtype(x), out);
    TS_TRY(image_rank(x, 3, RT_MAX_RANK));
    if (!rt_fact_has_shape(x))
        return NULL;
    rt_dim *dims = rt_new_dims(ic, x->rank);
    bool is_known = rt_fact_int(&args[1], &r) && r > 0;
    for (int i = x->rank - 3; is_known && i < x->rank; i++)
        if ((i == x->rank - 3) == is_shuffle)
            rt_dim_tell(ic, x->dims[i], is_shuffle ? rt_dim_mul(ic, r, r) : r, RT_MATCH_MULTIPLE);
    for (int i = 0; i < x->rank; i++) {
        bool is_channel = i == x->rank - 3;
        dims[i] = x->dims[i];
        if (i < x->rank - 3)
            continue;
        dims[i] = !is_known || !rt_known(dims[i])  ? RT_DIM_UNKNOWN
                  : is_channel == is_shuffle ? rt_dim_floordiv(ic, dims[i], is_channel ? r * r : r)
                                             : rt_dim_mul(ic, dims[i], is_channel ? r * r : r);
    }
    *out = rt_fact_tensor(rt_fact_tensor_dtype(x), x->rank, dims);
    return NULL;
}

RULE(pixel_shuffle) { return pixels(ic, args, true, outs); }
RULE(pixel_unshuffle) { return pixels(ic, args, false, outs); }

/* ---- normalisation ---- */

RULE(norm) { /* the first result is like the input; statistics keep their dtype */
    outs[0] = args[0];
    if (args[0].kind == RT_FACT_TENSOR)
        outs[0] = rt_fact_tensor(args[0].dtype, args[0].rank, args[0].dims);
    else
        set_unknown(RT_DTYPE_UNKNOWN, outs);
    rt_dtype stats = rt_fact_tensor_dtype(&args[0]);
    for (size_t i = 1; i < out_count; i++)
        set_unknown(stats == RT_float32 || stats == RT_float64 ? stats : RT_DTYPE_UNKNOWN, &outs[i]);
    return NULL;
}

/* layer_norm, rms_norm: the last sizes are normalized_shape. */
RULE(layer_norm) {
    rt_dim shape[RT_MAX_RANK];
    int count;
    TS_TRY(rt_infer_norm(ic, args, arg_count, outs, out_count));
    if (!rt_fact_has_shape(&args[0]) || !rt_fact_dims(&args[1], shape, &count))
        return NULL;
    TS_TRY(image_rank(&args[0], count, RT_MAX_RANK));
    for (int i = 0; i < count; i++)
        TS_TRY(rt_dim_match(ic, args[0].dims[args[0].rank - count + i], shape[i]));
    for (size_t k = 2; k < 4 && k < arg_count; k++) { /* the weight, the bias of layer_norm */
        if (!rt_fact_has_shape(&args[k]))
            continue;
        TS_TRY(image_rank(&args[k], count, count));
        for (int i = 0; i < count; i++)
            TS_TRY(rt_dim_match(ic, args[k].dims[i], shape[i]));
    }
    return NULL;
}

/* What there is for every channel has as many elements. */
static ts_status match_channels(const rt_infer_context *ic, const rt_fact *x,
                                const rt_fact *each) {
    bool fits = rt_fact_has_shape(each) && each->rank == 1;
    return fits ? rt_dim_match(ic, x->dims[1], each->dims[0]) : NULL;
}

RULE(batch_norm) {
    TS_TRY(rt_infer_norm(ic, args, arg_count, outs, out_count));
    if (!rt_fact_has_shape(&args[0]))
        return NULL;
    TS_TRY(image_rank(&args[0], 1, RT_MAX_RANK));
    for (int d = 0; d < args[0].rank; d++)
        if (args[0].dims[d] == 0) /* nothing is looked at then */
            return NULL;
    if (args[0].rank < 2)
        return NULL;
    TS_TRY(match_channels(ic, &args[0], &args[1]));
    return match_channels(ic, &args[0], &args[3]);
}

RULE(group_norm) {
    int64_t groups;
    TS_TRY(rt_infer_norm(ic, args, arg_count, outs, out_count));
    if (!rt_fact_has_shape(&args[0]))
        return NULL;
    TS_TRY(image_rank(&args[0], 2, RT_MAX_RANK));
    if (rt_fact_int(&args[1], &groups) && groups > 0)
        rt_dim_tell(ic, args[0].dims[1], groups, RT_MATCH_MULTIPLE);
    return match_channels(ic, &args[0], &args[2]);
}

/* ---- recurrent ---- */

/* x and the weights that it is multiplied with: [outputs, inputs]. */
static ts_status match_width(const rt_infer_context *ic, const rt_fact *x, const rt_fact *w) {
    bool have_width = rt_fact_has_shape(x) && rt_fact_has_shape(w) && x->rank > 0 && w->rank == 2;
    return have_width ? rt_dim_match(ic, x->dims[x->rank - 1], w->dims[1]) : NULL;
}

static ts_status match_weights(const rt_infer_context *ic, const rt_fact *x, const rt_fact *w) {
    TS_TRY(rt_fact_match_dtype(x, w));
    return match_width(ic, x, w);
}

static ts_status match_parameters(const rt_infer_context *ic, const rt_fact *x,
                                  const rt_fact *parameters) {
    bool is_known = parameters->kind == RT_FACT_LIST && parameters->count_known &&
                    parameters->count && parameters->items;
    return is_known ? match_weights(ic, x, &parameters->items[0]) : NULL;
}

static ts_status recurrent(const rt_infer_context *ic, const rt_fact *x, const rt_fact *hx,
                           bool hx_is_list, const rt_fact *bidirectional, rt_fact *outs,
                           size_t out_count) {
    const rt_fact *h = hx;
    for (size_t i = 0; i < out_count; i++)
        set_unknown(rt_fact_tensor_dtype(x), &outs[i]);
    if (hx_is_list)
        h = hx->kind == RT_FACT_LIST && hx->count_known && hx->count == 2 ? hx->items : NULL;
    if (!h || !rt_fact_has_shape(h) || h->rank != 3)
        return NULL;
    for (size_t i = 1; i < out_count; i++) {
        const rt_fact *state = hx_is_list ? &h[i - 1] : h;
        if (rt_fact_has_shape(state))
            outs[i] = rt_fact_tensor(rt_fact_tensor_dtype(x), state->rank, state->dims);
    }
    int64_t twice;
    if (!rt_fact_has_shape(x) || x->rank < 2)
        return NULL;
    rt_dim *dims = rt_new_dims(ic, x->rank);
    for (int i = 0; i + 1 < x->rank; i++)
        dims[i] = x->dims[i];
    dims[x->rank - 1] = RT_DIM_UNKNOWN;
    if (rt_fact_int(bidirectional, &twice) && rt_known(h->dims[2]))
        dims[x->rank - 1] = rt_dim_mul(ic, h->dims[2], twice ? 2 : 1);
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(x), x->rank, dims);
    return NULL;
}

RULE(lstm_input) {
    TS_TRY(match_parameters(ic, &args[0], &args[2]));
    return recurrent(ic, &args[0], &args[1], true, &args[7], outs, out_count);
}
RULE(rnn_input) {
    TS_TRY(match_parameters(ic, &args[0], &args[2]));
    return recurrent(ic, &args[0], &args[1], false, &args[7], outs, out_count);
}
RULE(lstm_data) { return recurrent(ic, &args[0], &args[2], true, &args[8], outs, out_count); }
RULE(rnn_data) { return recurrent(ic, &args[0], &args[2], false, &args[8], outs, out_count); }

/* A cell takes matrices: rows of x and of a state belong together. */
static ts_status match_state(const rt_infer_context *ic, const rt_fact *x, const rt_fact *h,
                             const rt_fact *w_hh) {
    TS_TRY(image_rank(h, 2, RT_MAX_RANK));
    bool are_rows = rt_fact_has_shape(x) && rt_fact_has_shape(h) && x->rank == 2 && h->rank == 2;
    if (!are_rows)
        return NULL;
    TS_TRY(rt_dim_match(ic, x->dims[0], h->dims[0]));
    return match_width(ic, h, w_hh);
}

static ts_status match_cell(const rt_infer_context *ic, const rt_fact *x, const rt_fact *h,
                            const rt_fact *args) {
    TS_TRY(image_rank(x, 2, RT_MAX_RANK));
    TS_TRY(rt_fact_match_dtype(h, &args[3]));
    if (x->rank <= 2)
        TS_TRY(match_weights(ic, x, &args[2]));
    return match_state(ic, x, h, &args[3]);
}

RULE(rnn_cell) {
    set_unknown(rt_fact_tensor_dtype(&args[0]), outs);
    TS_TRY(match_cell(ic, &args[0], &args[1], args));
    if (rt_fact_has_shape(&args[1]))
        outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), args[1].rank, args[1].dims);
    return NULL;
}

RULE(lstm_cell) {
    if (args[1].kind == RT_FACT_LIST && args[1].count_known && args[1].count == 2 &&
        args[1].items) {
        TS_TRY(match_cell(ic, &args[0], &args[1].items[0], args));
        TS_TRY(match_state(ic, &args[0], &args[1].items[1], &args[3]));
    }
    for (size_t i = 0; i < out_count; i++) {
        set_unknown(rt_fact_tensor_dtype(&args[0]), &outs[i]);
        if (args[1].kind == RT_FACT_LIST && args[1].count_known && args[1].count == 2 &&
            args[1].items && rt_fact_has_shape(&args[1].items[i]))
            outs[i] = rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), args[1].items[i].rank,
                                     args[1].items[i].dims);
    }
    return NULL;
}

/* ---- attention, distances ---- */

/* [batch.., rows, columns] */
static rt_fact matrices(const rt_infer_context *ic, rt_dtype dtype, const rt_dim *batch, int rank, rt_dim rows,
                        rt_dim columns) {
    rt_dim *dims = rt_new_dims(ic, rank + 2);
    for (int i = 0; i < rank; i++)
        dims[i] = batch[i];
    dims[rank] = rows;
    dims[rank + 1] = columns;
    return rt_fact_tensor(dtype, rank + 2, dims);
}

RULE(attention) {
    const rt_fact *q = &args[0], *v = &args[2];
    int64_t grouped;
    const rt_fact *k = &args[1];
    set_unknown(rt_fact_tensor_dtype(q), outs);
    TS_TRY(rt_fact_match_dtype(q, k));
    TS_TRY(rt_fact_match_dtype(q, v));
    if (rt_fact_has_shape(k) && k->rank >= 2) {
        if (rt_fact_has_shape(q) && q->rank >= 2)
            TS_TRY(rt_dim_match(ic, q->dims[q->rank - 1], k->dims[k->rank - 1]));
        if (rt_fact_has_shape(v) && v->rank >= 2)
            rt_dim_tell(ic, k->dims[k->rank - 2], v->dims[v->rank - 2], RT_MATCH_OR_ONE);
    }
    if (!rt_fact_has_shape(q) || !rt_fact_has_shape(v) || q->rank < 2 || v->rank < 2)
        return NULL;
    rt_dim *batch;
    int rank;
    if (rt_fact_int(&args[7], &grouped) && grouped) {
        if (q->rank != v->rank)
            return NULL;
        rank = q->rank - 2;
        batch = rt_new_dims(ic, rank);
        for (int i = 0; i < rank; i++)
            batch[i] = q->dims[i];
    } else {
        TS_TRY(rt_fact_broadcast(ic, q->dims, q->rank - 2, v->dims, v->rank - 2, &batch, &rank));
    }
    if (rank < 0)
        return NULL;
    outs[0] = matrices(ic, rt_fact_tensor_dtype(q), batch, rank, q->dims[q->rank - 2], v->dims[v->rank - 1]);
    return NULL;
}

RULE(cdist) {
    const rt_fact *x = &args[0], *y = &args[1];
    rt_dim *batch;
    int rank;
    set_unknown(rt_fact_tensor_dtype(x), outs);
    if (!rt_fact_has_shape(x) || !rt_fact_has_shape(y) || x->rank < 2 || y->rank < 2)
        return NULL;
    TS_TRY(rt_fact_broadcast(ic, x->dims, x->rank - 2, y->dims, y->rank - 2, &batch, &rank));
    if (rank < 0)
        return NULL;
    outs[0] = matrices(ic, rt_fact_tensor_dtype(x), batch, rank, x->dims[x->rank - 2], y->dims[y->rank - 2]);
    return NULL;
}

RULE(tensors_of_self) { /* results of unknown shape and the input's dtype */
    for (size_t i = 0; i < out_count; i++)
        set_unknown(rt_fact_tensor_dtype(&args[0]), &outs[i]);
    return NULL;
}

static rt_fact same_fact(const rt_fact *t) {
    return rt_fact_has_shape(t) ? rt_fact_tensor(rt_fact_tensor_dtype(t), t->rank, t->dims)
                                : rt_fact_tensor(rt_fact_tensor_dtype(t), -1, NULL);
}

RULE(like_second_argument) {
    outs[0] = same_fact(&args[1]);
    return NULL;
}
RULE(like_third_argument) {
    outs[0] = same_fact(&args[2]);
    return NULL;
}

RULE(batch_norm_with_update) {
    TS_TRY(rt_infer_norm(ic, args, arg_count, outs, out_count));
    set_unknown(RT_uint8, &outs[3]);
    return NULL;
}

RULE(vision_nms) {
    rt_dim *dims = rt_new_dims(ic, 1);
    (void)args;
    dims[0] = RT_DIM_UNKNOWN;
    outs[0] = rt_fact_tensor(RT_int64, 1, dims);
    return NULL;
}

RULE(vision_roi_align) {
    rt_dim *dims = rt_new_dims(ic, 4);
    int64_t size;
    dims[0] = rt_fact_has_shape(&args[1]) && args[1].rank == 2 ? args[1].dims[0] : RT_DIM_UNKNOWN;
    dims[1] = rt_fact_has_shape(&args[0]) && args[0].rank == 4 ? args[0].dims[1] : RT_DIM_UNKNOWN;
    for (int i = 0; i < 2; i++)
        dims[2 + i] = rt_fact_int(&args[3 + i], &size) && size > 0 ? size : RT_DIM_UNKNOWN;
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), 4, dims);
    return NULL;
}

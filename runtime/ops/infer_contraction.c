/* runtime/ops/infer_contraction.c - shapes of matrix products and convolutions. */
#include "runtime/ops/tensor_ops.h"

static ts_status unknown(rt_dtype dtype, rt_fact *out) {
    *out = rt_fact_tensor(dtype, -1, NULL);
    return NULL;
}

static ts_status product(const rt_infer_context *ic, const rt_fact *a, const rt_fact *b,
                         bool b_turned, rt_fact *out) {
    rt_dtype dtype = rt_fact_tensor_dtype(a) != RT_DTYPE_UNKNOWN ? rt_fact_tensor_dtype(a) : rt_fact_tensor_dtype(b);
    TS_TRY(rt_fact_match_dtype(a, b));
    if (a->rank == 0 || b->rank == 0)
        return ts_raise("RuntimeError", "a matrix product of a tensor without dims");
    if (!rt_fact_has_shape(a) || !rt_fact_has_shape(b))
        return unknown(dtype, out);
    rt_dim k = a->dims[a->rank - 1];
    rt_dim b_k = b->rank == 1 ? b->dims[0] : b->dims[b->rank - (b_turned ? 1 : 2)];
    if (rt_dim_is_constant(k) && rt_dim_is_constant(b_k) && k != b_k)
        return ts_raise("RuntimeError",
                        "matrix product of sizes that do not fit: %lld and %lld", (long long)k,
                        (long long)b_k);
    rt_dim_tell(ic, k, b_k, RT_MATCH_MUST);
    rt_dim *batch;
    int rank;
    TS_TRY(rt_fact_broadcast(ic, a->dims, a->rank > 2 ? a->rank - 2 : 0, b->dims,
                             b->rank > 2 ? b->rank - 2 : 0, &batch, &rank));
    if (rank < 0)
        return unknown(dtype, out);
    rt_dim *dims = rt_new_dims(ic, rank + 2);
    for (int i = 0; i < rank; i++)
        dims[i] = batch[i];
    if (a->rank > 1)
        dims[rank++] = a->dims[a->rank - 2];
    if (b->rank > 1)
        dims[rank++] = b->dims[b->rank - (b_turned ? 2 : 1)];
    *out = rt_fact_tensor(dtype, rank, dims);
    return NULL;
}

RULE(matmul) { return product(ic, &args[0], &args[1], false, outs); }
RULE(linear) { return product(ic, &args[0], &args[1], true, outs); }
RULE(integer_linear) { /* bytes, signed or not */
    rt_fact w = args[1];
    w.dtype = args[0].kind == RT_FACT_TENSOR ? args[0].dtype : w.dtype;
    TS_TRY(product(ic, &args[0], &w, true, outs));
    outs[0].dtype = RT_int32;
    return NULL;
}
RULE(addmm) { return product(ic, &args[1], &args[2], false, outs); }

RULE(addbmm) {
    const rt_fact *a = &args[1], *b = &args[2];
    if (!rt_fact_has_shape(a) || !rt_fact_has_shape(b) || a->rank != 3 || b->rank != 3)
        return unknown(rt_fact_tensor_dtype(a), outs);
    rt_dim *dims = rt_new_dims(ic, 2);
    dims[0] = a->dims[1];
    dims[1] = b->dims[2];
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(a), 2, dims);
    return NULL;
}

RULE(bilinear) {
    const rt_fact *x = &args[0], *w = &args[2];
    if (!rt_fact_has_shape(x) || !rt_fact_has_shape(w) || x->rank < 1 || w->rank != 3)
        return unknown(rt_fact_tensor_dtype(x), outs);
    rt_dim *dims = rt_new_dims(ic, x->rank);
    for (int i = 0; i + 1 < x->rank; i++)
        dims[i] = x->dims[i];
    dims[x->rank - 1] = w->dims[0];
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(x), x->rank, dims);
    return NULL;
}

/* Sizes of labels; only plain equations with known ranks, else the result stays unknown. */
RULE(einsum) {
    const rt_fact *list = &args[1];
    rt_dtype dtype = list->kind == RT_FACT_LIST && list->items ? rt_fact_tensor_dtype(&list->items[0])
                                                               : RT_DTYPE_UNKNOWN;
    if (!rt_dtype_is_float(dtype) && !rt_dtype_is_complex(dtype))
        dtype = RT_DTYPE_UNKNOWN; /* whole numbers that are summed become int64 */
    rt_dim sizes[128], dims[RT_MAX_RANK];
    int uses[128] = {0}, rank = 0;
    if (args[0].kind != RT_FACT_STR || !args[0].is_known || list->kind != RT_FACT_LIST ||
        !list->count_known || !list->items)
        return unknown(dtype, outs);
    ts_str s = args[0].s;
    size_t at = 0, operand = 0;
    int dim = 0;
    bool has_arrow = false;
    for (; at < s.length; at++) {
        int c = (unsigned char)s.data[at];
        if (c == ' ')
            continue;
        if (c == '-') {
            has_arrow = true;
            at += 2;
            break;
        }
        if (c == ',') {
            operand++;
            dim = 0;
            continue;
        }
        if (c == '.' || c > 127 || operand >= list->count ||
            !rt_fact_has_shape(&list->items[operand]) || dim >= list->items[operand].rank)
            return unknown(dtype, outs);
        rt_dim d = list->items[operand].dims[dim++];
        if (!uses[c]++ || sizes[c] == 1 ||
            (!rt_dim_is_constant(sizes[c]) && rt_dim_is_constant(d) && d != 1))
            sizes[c] = d;
    }
    if (has_arrow) {
        for (; at < s.length && rank < RT_MAX_RANK; at++) {
            int c = (unsigned char)s.data[at];
            if (c == ' ' || c == '>')
                continue;
            if (c == '.' || c > 127 || !uses[c])
                return unknown(dtype, outs);
            dims[rank++] = sizes[c];
        }
    } else {
        for (int c = 0; c < 128 && rank < RT_MAX_RANK; c++)
            if (uses[c] == 1)
                dims[rank++] = sizes[c];
    }
    rt_dim *copy = rt_new_dims(ic, rank);
    for (int i = 0; i < rank; i++)
        copy[i] = dims[i];
    outs[0] = rt_fact_tensor(dtype, rank, copy);
    return NULL;
}

RULE(tensordot) {
    const rt_fact *a = &args[0], *b = &args[1];
    int64_t da[RT_MAX_RANK], db[RT_MAX_RANK];
    int na, nb, rank = 0;
    bool gone[RT_MAX_RANK] = {false}, gone_b[RT_MAX_RANK] = {false};
    if (!rt_fact_has_shape(a) || !rt_fact_has_shape(b) || !rt_fact_ints(&args[2], da, &na) ||
        !rt_fact_ints(&args[3], db, &nb) || na != nb || na < 0)
        return unknown(rt_fact_tensor_dtype(a), outs);
    for (int i = 0; i < na; i++) {
        int64_t p = da[i] < 0 ? da[i] + a->rank : da[i], q = db[i] < 0 ? db[i] + b->rank : db[i];
        if (p < 0 || p >= a->rank || q < 0 || q >= b->rank)
            return unknown(rt_fact_tensor_dtype(a), outs);
        gone[p] = gone_b[q] = true;
    }
    rt_dim *dims = rt_new_dims(ic, a->rank + b->rank);
    for (int i = 0; i < a->rank; i++)
        if (!gone[i])
            dims[rank++] = a->dims[i];
    for (int i = 0; i < b->rank; i++)
        if (!gone_b[i])
            dims[rank++] = b->dims[i];
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(a), rank, dims);
    return NULL;
}

/* ---- convolutions ---- */

static rt_dim conv_size(const rt_infer_context *ic, rt_dim in, rt_dim kernel, rt_dim stride,
                        rt_dim padding, rt_dim dilation) {
    if (!rt_known(in) || !rt_known(kernel) || !rt_known(stride) || !rt_known(padding) || !rt_known(dilation))
        return RT_DIM_UNKNOWN;
    rt_dim reach = rt_dim_mul(ic, dilation, rt_dim_sub(ic, kernel, 1));
    rt_dim n = rt_dim_sub(ic, rt_dim_add(ic, in, rt_dim_mul(ic, 2, padding)), reach);
    return rt_dim_add(ic, rt_dim_floordiv(ic, rt_dim_sub(ic, n, 1), stride), 1);
}

static rt_dim transposed_size(const rt_infer_context *ic, rt_dim in, rt_dim kernel, rt_dim stride,
                              rt_dim padding, rt_dim dilation, rt_dim extra) {
    if (!rt_known(in) || !rt_known(kernel) || !rt_known(stride) || !rt_known(padding) || !rt_known(dilation) ||
        !rt_known(extra))
        return RT_DIM_UNKNOWN;
    rt_dim n = rt_dim_mul(ic, rt_dim_sub(ic, in, 1), stride);
    n = rt_dim_sub(ic, n, rt_dim_mul(ic, 2, padding));
    n = rt_dim_add(ic, n, rt_dim_mul(ic, dilation, rt_dim_sub(ic, kernel, 1)));
    return rt_dim_add(ic, rt_dim_add(ic, n, extra), 1);
}

static ts_status convolution(const rt_infer_context *ic, const rt_fact *args, const rt_fact *stride,
                             const rt_fact *padding, const rt_fact *dilation,
                             const rt_fact *output_padding, int64_t transposed,
                             const rt_fact *groups, rt_fact *out) {
    const rt_fact *x = &args[0], *w = &args[1];
    TS_TRY(rt_fact_match_dtype(x, w));
    if (!rt_fact_has_shape(x) || !rt_fact_has_shape(w) || w->rank < 3 || w->rank > 5 ||
        transposed < 0)
        return unknown(rt_fact_tensor_dtype(x), out);
    if (x->rank != w->rank && x->rank != w->rank - 1)
        return ts_raise("RuntimeError", "a convolution with weights of %d dims takes %d or %d, found %d",
                        w->rank, w->rank - 1, w->rank, x->rank);
    int dims_count = w->rank - 2, at = 0, own = x->rank == w->rank;
    int64_t parts;
    if (transposed)
        TS_TRY(rt_dim_match(ic, x->dims[own], w->dims[0]));
    else if (rt_fact_int(groups, &parts))
        TS_TRY(rt_dim_match(ic, x->dims[own], rt_dim_mul(ic, w->dims[1], parts)));
    rt_dim *dims = rt_new_dims(ic, x->rank);
    if (own)
        dims[at++] = x->dims[0];
    int64_t group_count;
    dims[at++] = !transposed                          ? w->dims[0]
                 : rt_fact_int(groups, &group_count) ? rt_dim_mul(ic, w->dims[1], group_count)
                                                      : RT_DIM_UNKNOWN;
    for (int i = 0; i < dims_count; i++) {
        rt_dim in = x->dims[own + 1 + i], kernel = w->dims[2 + i];
        rt_dim s = rt_fact_entry(stride, i, dims_count), d = rt_fact_entry(dilation, i, dims_count);
        if (padding->kind == RT_FACT_STR) {
            bool same = padding->is_known && ts_str_is(padding->s, "same");
            dims[at++] = !padding->is_known ? RT_DIM_UNKNOWN
                         : same             ? in
                                            : conv_size(ic, in, kernel, s, 0, d);
            continue;
        }
        rt_dim p = rt_fact_entry(padding, i, dims_count);
        dims[at++] = transposed ? transposed_size(ic, in, kernel, s, p, d,
                                                  rt_fact_entry(output_padding, i, dims_count))
                                : conv_size(ic, in, kernel, s, p, d);
    }
    *out = rt_fact_tensor(rt_fact_tensor_dtype(x), at, dims);
    return NULL;
}

RULE(conv) { return convolution(ic, args, &args[3], &args[4], &args[5], NULL, 0, &args[6], outs); }

RULE(integer_convolution) {
    rt_fact pair[2] = {args[0], args[1]};
    pair[1].dtype = rt_fact_tensor_dtype(&args[0]);
    TS_TRY(convolution(ic, pair, &args[3], &args[4], &args[5], NULL, 0, &args[6], outs));
    outs[0].dtype = RT_int32;
    return NULL;
}

/* The layer of packed parameters (runtime/values/packed.h) over x; of 1d ones the weight has a height
 * of 1. */
static ts_status packed_convolution(const rt_infer_context *ic, const rt_fact *x,
                                    const rt_fact *packed, rt_fact *out) {
    if (packed->kind != RT_FACT_OTHER || !packed->count_known || packed->count != 9 || !packed->items ||
        !rt_fact_has_shape(x) || !rt_fact_has_shape(&packed->items[1]))
        return unknown(rt_fact_tensor_dtype(x), out);
    rt_fact items[9], pair[2] = {*x, packed->items[1]};
    const rt_fact *w = &packed->items[1];
    for (int i = 0; i < 9; i++)
        items[i] = packed->items[i];
    if (x->rank == 3 && w->rank == 4 && w->dims[2] == 1) {
        rt_dim *dims = rt_new_dims(ic, 3);
        dims[0] = w->dims[0];
        dims[1] = w->dims[1];
        dims[2] = w->dims[3];
        pair[1] = rt_fact_tensor(w->dtype, 3, dims);
        for (int i = 3; i < 9; i++)
            if (items[i].kind == RT_FACT_LIST && items[i].count_known && items[i].count == 2) {
                items[i].items++;
                items[i].count = 1;
            }
    }
    int64_t transposed;
    if (!rt_fact_int(&items[7], &transposed))
        return unknown(rt_fact_tensor_dtype(x), out);
    pair[1].dtype = x->dtype;
    return convolution(ic, pair, &items[3], &items[4], &items[5], &items[8], transposed, &items[6], out);
}

RULE(quantized_conv) { return packed_convolution(ic, &args[0], &args[1], outs); }
RULE(quantized_conv_dynamic) {
    TS_TRY(packed_convolution(ic, &args[0], &args[1], outs));
    outs[0].dtype = RT_float32;
    return NULL;
}

RULE(conv_transpose) {
    return convolution(ic, args, &args[3], &args[4], &args[7], &args[5], 1, &args[6], outs);
}

RULE(convolution) {
    int64_t transposed;
    if (!rt_fact_int(&args[6], &transposed))
        transposed = -1;
    return convolution(ic, args, &args[3], &args[4], &args[5], &args[7], transposed, &args[8],
                       outs);
}

RULE(im2col) {
    const rt_fact *x = &args[0];
    if (!rt_fact_has_shape(x) || (x->rank != 3 && x->rank != 4))
        return unknown(rt_fact_tensor_dtype(x), outs);
    rt_dim *dims = rt_new_dims(ic, 3), count = 1, rows = x->dims[x->rank - 3];
    for (int i = 0; i < 2; i++) {
        rt_dim kernel = rt_fact_entry(&args[1], i, 2);
        rt_dim n = conv_size(ic, x->dims[x->rank - 2 + i], kernel, rt_fact_entry(&args[4], i, 2),
                             rt_fact_entry(&args[3], i, 2), rt_fact_entry(&args[2], i, 2));
        count = rt_known(count) && rt_known(n) ? rt_dim_mul(ic, count, n) : RT_DIM_UNKNOWN;
        rows = rt_known(rows) && rt_known(kernel) ? rt_dim_mul(ic, rows, kernel) : RT_DIM_UNKNOWN;
    }
    int at = 0;
    if (x->rank == 4)
        dims[at++] = x->dims[0];
    dims[at++] = rows;
    dims[at++] = count;
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(x), at, dims);
    return NULL;
}

RULE(col2im) {
    const rt_fact *x = &args[0];
    if (!rt_fact_has_shape(x) || (x->rank != 2 && x->rank != 3))
        return unknown(rt_fact_tensor_dtype(x), outs);
    rt_dim *dims = rt_new_dims(ic, 4), kernel = 1, rows = x->dims[x->rank - 2];
    for (int i = 0; i < 2; i++) {
        rt_dim k = rt_fact_entry(&args[2], i, 2);
        kernel = rt_known(kernel) && rt_known(k) ? rt_dim_mul(ic, kernel, k) : RT_DIM_UNKNOWN;
    }
    int at = 0;
    if (x->rank == 3)
        dims[at++] = x->dims[0];
    dims[at++] = rt_known(rows) && rt_known(kernel) ? rt_dim_floordiv(ic, rows, kernel) : RT_DIM_UNKNOWN;
    dims[at++] = rt_fact_entry(&args[1], 0, 2);
    dims[at++] = rt_fact_entry(&args[1], 1, 2);
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(x), at, dims);
    return NULL;
}

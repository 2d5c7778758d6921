/* runtime/ops/ref_attention.c - scaled dot product attention, and distances between rows. */
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/contraction.h"
#include "runtime/ops/generator.h"

static ts_status expand_batch(const rt_tensor *t, const int64_t *batch, int rank, rt_tensor **out) {
    int64_t sizes[RT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        sizes[i] = batch[i];
    sizes[rank] = t->sizes[t->rank - 2];
    sizes[rank + 1] = t->sizes[t->rank - 1];
    return rt_tensor_expand(t, sizes, rank + 2, out);
}

/* Heads of k and v repeated so that there are as many as q's (grouped query attention). */
static ts_status repeat_heads(const rt_tensor *t, int64_t heads, rt_value *out) {
    int64_t own = t->sizes[t->rank - 3], times = own ? heads / own : 0;
    int64_t sizes[RT_MAX_RANK], strides[RT_MAX_RANK];
    rt_tensor *view, *copy, *flat;
    if (own == 0 || heads % own != 0)
        return ts_raise("RuntimeError", "Number of heads in key and value must divide the number "
                                        "of heads in query");
    for (int i = 0, at = 0; i < t->rank; i++, at++) {
        sizes[at] = t->sizes[i];
        strides[at] = t->strides[i];
        if (i == t->rank - 3) {
            sizes[++at] = times;
            strides[at] = 0;
        }
    }
    TS_TRY(rt_tensor_alias(t, 0, sizes, strides, t->rank + 1, &view));
    ts_status status = rt_tensor_clone(view, &copy);
    rt_tensor_release(view);
    TS_TRY(status);
    for (int i = 0; i < t->rank; i++)
        sizes[i] = i == t->rank - 3 ? heads : t->sizes[i];
    rt_contiguous_strides(sizes, t->rank, strides);
    status = rt_tensor_alias(copy, 0, sizes, strides, t->rank, &flat);
    rt_tensor_release(copy);
    if (!status)
        *out = rt_from_tensor(flat);
    return status;
}

/* exp(row - its largest), and their sum. */
static double exponentials(double *row, int64_t n) {
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        top = row[i] > top || isnan(row[i]) ? row[i] : top;
    for (int64_t i = 0; i < n; i++)
        sum += row[i] = top == -INFINITY ? 0 : exp(row[i] - top);
    return sum;
}

static void round_all(rt_dtype dtype, double *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        x[i] = (double)rt_round_short(dtype, (float)x[i]);
}

static void divide_all(double *x, int64_t n, double by) {
    for (int64_t i = 0; i < n; i++)
        x[i] = by == 0 ? 0 : x[i] / by; /* a row that is masked away gives zeros */
}

/* PyTorch's fused kernel (batches of heads, one width) rounds the exponentials to 16-bit floats and
 * divides by their sum after the product with v; elsewhere it rounds the result alone. */
static bool rounds_exponentials(const rt_tensor *q, const rt_tensor *k, const rt_tensor *v,
                                double dropout) {
    return rt_dtype_is_short((rt_dtype)q->dtype) && q->rank == 4 && k->rank == 4 && v->rank == 4 &&
           q->sizes[3] == v->sizes[3] && dropout == 0;
}

static ts_status attend(rt_context *context, const rt_tensor *q, const rt_tensor *k,
                        const rt_tensor *v, const rt_tensor *mask, double dropout, bool is_causal,
                        rt_value scale_value, rt_value *out) {
    int64_t batch[RT_MAX_RANK], sizes[RT_MAX_RANK];
    int rank;
    if (q->rank < 2 || k->rank < 2 || v->rank < 2)
        return ts_raise("RuntimeError", "scaled_dot_product_attention: expected query, key and "
                                        "value of at least 2 dimensions");
    int64_t l = q->sizes[q->rank - 2], s = k->sizes[k->rank - 2], e = q->sizes[q->rank - 1];
    int64_t width = v->sizes[v->rank - 1];
    if (k->sizes[k->rank - 1] != e || v->sizes[v->rank - 2] != s)
        return ts_raise("RuntimeError", "scaled_dot_product_attention: shapes of query, key and "
                                        "value do not fit");
    if (is_causal && mask)
        return ts_raise("RuntimeError", "scaled_dot_product_attention: Explicit attn_mask should "
                                        "not be set when is_causal=True");
    if (q->dtype != k->dtype || q->dtype != v->dtype)
        return ts_raise("RuntimeError", "Expected query, key, and value to have the same dtype");
    TS_TRY(rt_broadcast(q->sizes, q->rank - 2, k->sizes, k->rank - 2, batch, &rank));
    TS_TRY(rt_broadcast(batch, rank, v->sizes, v->rank - 2, sizes, &rank));
    memcpy(batch, sizes, sizeof batch);
    rt_tensor *wide[4] = {0};
    double *data[4] = {0}, scale = rt_is_none(scale_value) ? 1 / sqrt((double)e) : scale_value.as.f;
    ts_status status = expand_batch(q, batch, rank, &wide[0]);
    if (!status)
        status = expand_batch(k, batch, rank, &wide[1]);
    if (!status)
        status = expand_batch(v, batch, rank, &wide[2]);
    sizes[rank] = l;
    sizes[rank + 1] = s;
    if (!status && mask)
        status = rt_tensor_expand(mask, sizes, rank + 2, &wide[3]);
    for (int i = 0; i < 4 && !status; i++)
        status = rt_doubles(wide[i], &data[i]);
    int64_t batches = 1;
    for (int i = 0; i < rank; i++)
        batches *= batch[i];
    sizes[rank + 1] = width;
    double *scores = rt_new_doubles(l * s), *y = rt_new_doubles(batches * l * width);
    rt_generator *g = NULL;
    if (!status && (!scores || !y))
        status = ts_no_memory();
    if (!status && dropout > 0)
        status = rt_generator_of(context, rt_none(), &g);
    bool bool_mask = mask && mask->dtype == RT_bool;
    bool is_rounded = rounds_exponentials(q, k, v, dropout);
    double *sums = rt_new_doubles(l);
    if (!status && !sums)
        status = ts_no_memory();
    for (int64_t b = 0; b < batches && !status; b++) {
        status = rt_gemm(RT_WORK_DOUBLE, l, s, e, (rt_matrix){data[0] + b * l * e, e, 1},
                         (rt_matrix){data[1] + b * s * e, 1, e}, scores, s, false);
        if (status)
            break;
        for (int64_t i = 0; i < l; i++) {
            double *row = scores + i * s;
            const double *m = data[3] ? data[3] + (b * l + i) * s : NULL;
            for (int64_t j = 0; j < s; j++) {
                row[j] *= scale;
                if (is_causal && j > i)
                    row[j] = -INFINITY;
                else if (m && bool_mask)
                    row[j] = m[j] != 0 ? row[j] : -INFINITY;
                else if (m)
                    row[j] += m[j];
            }
            sums[i] = exponentials(row, s);
            if (is_rounded)
                round_all((rt_dtype)q->dtype, row, s);
            else
                divide_all(row, s, sums[i]);
            for (int64_t j = 0; g && j < s; j++)
                row[j] = rt_uniform_double(g) < 1 - dropout ? row[j] / (1 - dropout) : 0;
        }
        status = rt_gemm(RT_WORK_DOUBLE, l, width, s, (rt_matrix){scores, s, 1},
                         (rt_matrix){data[2] + b * s * width, width, 1}, y + b * l * width, width,
                         false);
        for (int64_t i = 0; i < l && is_rounded && !status; i++)
            divide_all(y + (b * l + i) * width, width, sums[i]);
    }
    if (!status)
        status = rt_from_doubles(y, (rt_dtype)q->dtype, sizes, rank + 2, out);
    for (int i = 0; i < 4; i++) {
        rt_tensor_release(wide[i]);
        free(data[i]);
    }
    free(sums);
    free(scores);
    free(y);
    return status;
}

KERNEL(scaled_dot_product_attention) {
    const rt_tensor *q = args[0].as.tensor;
    rt_value k = rt_retain(args[1]), v = rt_retain(args[2]), r;
    ts_status status = NULL;
    if (args[7].as.i && q->rank >= 3 && k.as.tensor->rank >= 3 && v.as.tensor->rank >= 3) {
        int64_t heads = q->sizes[q->rank - 3];
        if (!(status = repeat_heads(k.as.tensor, heads, &r)))
            rt_assign(&k, r);
        if (!status && !(status = repeat_heads(v.as.tensor, heads, &r)))
            rt_assign(&v, r);
    }
    if (!status)
        status = attend(context, q, k.as.tensor, v.as.tensor, rt_optional_tensor(args[3]),
                        args[4].as.f, args[5].as.i != 0, args[6], outs);
    rt_release(k);
    rt_release(v);
    return status;
}

/* ---- distances ---- */

static double distance(const double *a, const double *b, int64_t n, double p) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = fabs(a[i] - b[i]);
        if (p == 0)
            sum += d != 0;
        else if (isinf(p))
            sum = d > sum || isnan(d) ? d : sum;
        else if (p == 1)
            sum += d;
        else if (p == 2)
            sum += d * d;
        else
            sum += pow(d, p);
    }
    return p == 2 ? sqrt(sum) : p == 0 || p == 1 || isinf(p) ? sum : pow(sum, 1 / p);
}

KERNEL(cdist) {
    const rt_tensor *x = args[0].as.tensor, *y = args[1].as.tensor;
    int64_t batch[RT_MAX_RANK];
    int rank;
    double p = args[2].as.f, *a = NULL, *b = NULL;
    rt_tensor *wide_x = NULL, *wide_y = NULL;
    if (x->rank < 2 || y->rank < 2 || x->sizes[x->rank - 1] != y->sizes[y->rank - 1])
        return ts_raise("RuntimeError", "X1 and X2 must have the same number of columns");
    if (p < 0)
        return ts_raise("RuntimeError", "cdist only supports non-negative p values");
    TS_TRY(rt_broadcast(x->sizes, x->rank - 2, y->sizes, y->rank - 2, batch, &rank));
    int64_t m = x->sizes[x->rank - 2], n = y->sizes[y->rank - 2], k = x->sizes[x->rank - 1];
    int64_t batches = 1;
    for (int i = 0; i < rank; i++)
        batches *= batch[i];
    ts_status status = expand_batch(x, batch, rank, &wide_x);
    if (!status)
        status = expand_batch(y, batch, rank, &wide_y);
    if (!status)
        status = rt_doubles(wide_x, &a);
    if (!status)
        status = rt_doubles(wide_y, &b);
    double *r = rt_new_doubles(batches * m * n);
    if (!status && !r)
        status = ts_no_memory();
    for (int64_t i = 0; i < batches * m && !status; i++)
        for (int64_t j = 0; j < n; j++)
            r[i * n + j] = distance(a + i * k, b + (i / m * n + j) * k, k, p);
    batch[rank] = m;
    batch[rank + 1] = n;
    if (!status)
        status = rt_from_doubles(r, (rt_dtype)x->dtype, batch, rank + 2, outs);
    rt_tensor_release(wide_x);
    rt_tensor_release(wide_y);
    free(a);
    free(b);
    free(r);
    return status;
}

KERNEL(pdist) {
    const rt_tensor *x = args[0].as.tensor;
    double *a, p = args[1].as.f;
    if (x->rank != 2)
        return ts_raise("RuntimeError", "pdist only supports 2D tensors, got: %dD", x->rank);
    if (p < 0)
        return ts_raise("RuntimeError", "pdist only supports non-negative p values");
    int64_t n = x->sizes[0], k = x->sizes[1], count = n > 1 ? n * (n - 1) / 2 : 0, at = 0;
    TS_TRY(rt_doubles(x, &a));
    double *r = rt_new_doubles(count);
    ts_status status = r ? NULL : ts_no_memory();
    for (int64_t i = 0; i < n && !status; i++)
        for (int64_t j = i + 1; j < n; j++)
            r[at++] = distance(a + i * k, a + j * k, k, p);
    if (!status)
        status = rt_from_doubles(r, (rt_dtype)x->dtype, &count, 1, outs);
    free(a);
    free(r);
    return status;
}

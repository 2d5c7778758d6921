/* runtime/ops/ref_matmul.c - matrix products over tensors: mm to addbmm, linear, bilinear. */
#include <stdlib.h>

#include "runtime/ops/contraction.h"

static ts_status same_dtype(const rt_tensor *a, const rt_tensor *b) {
    if (a->dtype != b->dtype)
        return ts_raise("RuntimeError",
                        "expected m1 and m2 to have the same dtype, but got: %s != %s",
                        rt_dtype_name((rt_dtype)a->dtype), rt_dtype_name((rt_dtype)b->dtype));
    if (a->dtype == RT_bool)
        return rt_not_implemented("addmm_impl_cpu_", RT_bool);
    return NULL;
}

typedef struct product_shape {
    int64_t m, n, k;
    int64_t batch[RT_MAX_RANK];
    int batch_rank;
    int64_t sizes[RT_MAX_RANK];
    int rank;
} product_shape;

static ts_status shape_of_product(const rt_tensor *a, const rt_tensor *b, product_shape *out) {
    product_shape s = {0};
    if (a->rank == 0 || b->rank == 0)
        return ts_raise("RuntimeError",
                        "both arguments to matmul need to be at least 1D, but they are %dD and %dD",
                        a->rank, b->rank);
    s.m = a->rank > 1 ? a->sizes[a->rank - 2] : 1;
    s.k = a->sizes[a->rank - 1];
    s.n = b->rank > 1 ? b->sizes[b->rank - 1] : 1;
    int64_t k = b->sizes[b->rank > 1 ? b->rank - 2 : 0];
    if (s.k != k) {
        if (a->rank == 1 && b->rank == 1)
            return ts_raise("RuntimeError",
                            "inconsistent tensor size, expected tensor [%lld] and src [%lld] to "
                            "have the same number of elements, but got %lld and %lld elements "
                            "respectively",
                            (long long)s.k, (long long)k, (long long)s.k, (long long)k);
        return ts_raise("RuntimeError",
                        "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
                        (long long)s.m, (long long)s.k, (long long)k, (long long)s.n);
    }
    TS_TRY(rt_broadcast(a->sizes, a->rank > 2 ? a->rank - 2 : 0, b->sizes,
                        b->rank > 2 ? b->rank - 2 : 0, s.batch, &s.batch_rank));
    for (int i = 0; i < s.batch_rank; i++)
        s.sizes[s.rank++] = s.batch[i];
    if (a->rank > 1)
        s.sizes[s.rank++] = s.m;
    if (b->rank > 1)
        s.sizes[s.rank++] = s.n;
    *out = s;
    return NULL;
}

/* Strides of an operand over the batch of the product, 0 where it is broadcast. */
static void batch_strides(const product_shape *s, const rt_tensor *t, const rt_operand *o,
                          int64_t *out) {
    int own = t->rank > 2 ? t->rank - 2 : 0;
    for (int i = 0; i < s->batch_rank; i++) {
        int j = i - (s->batch_rank - own);
        out[i] = j < 0 || t->sizes[j] == 1 ? 0 : o->strides[j];
    }
}

static ts_status multiply(const rt_tensor *a, const rt_tensor *b, rt_sink *sink) {
    product_shape s;
    rt_operand x = {0}, y = {0};
    TS_TRY(same_dtype(a, b));
    TS_TRY(shape_of_product(a, b, &s));
    TS_TRY(rt_sink_init(sink, (rt_dtype)a->dtype, s.sizes, s.rank));
    ts_status status = rt_operand_init(&x, a, b->rank <= 2 && a->rank > 2);
    if (!status)
        status = rt_operand_init(&y, b, false);
    int64_t x_batch[RT_MAX_RANK], y_batch[RT_MAX_RANK], index[RT_MAX_RANK] = {0}, batches = 1;
    rt_matrix left = {0}, right = {0};
    if (!status) {
        left.row_stride = a->rank > 1 ? x.strides[a->rank - 2] : 0;
        left.column_stride = x.strides[a->rank - 1];
        right.row_stride = y.strides[b->rank > 1 ? b->rank - 2 : 0];
        right.column_stride = b->rank > 1 ? y.strides[b->rank - 1] : 0;
        batch_strides(&s, a, &x, x_batch);
        batch_strides(&s, b, &y, y_batch);
        if (b->rank <= 2 && a->rank > 2) { /* one tall product instead of many */
            for (int i = 0; i < s.batch_rank; i++)
                s.m *= s.batch[i];
            s.batch_rank = 0;
        }
        for (int i = 0; i < s.batch_rank; i++)
            batches *= s.batch[i];
    }
    int64_t at_x = 0, at_y = 0;
    for (int64_t i = 0; i < batches && !status; i++) {
        left.data = x.data + at_x * x.size;
        right.data = y.data + at_y * y.size;
        status = rt_gemm(sink->work, s.m, s.n, s.k, left, right,
                         sink->data + i * s.m * s.n * sink->size, s.n, true);
        for (int d = s.batch_rank - 1; d >= 0; d--) {
            at_x += x_batch[d];
            at_y += y_batch[d];
            if (++index[d] < s.batch[d])
                break;
            at_x -= x_batch[d] * s.batch[d];
            at_y -= y_batch[d] * s.batch[d];
            index[d] = 0;
        }
    }
    rt_operand_deinit(&x);
    rt_operand_deinit(&y);
    if (status)
        rt_sink_deinit(sink);
    return status;
}

ts_status rt_matmul(const rt_tensor *a, const rt_tensor *b, rt_value *out) {
    rt_sink sink;
    TS_TRY(multiply(a, b, &sink));
    rt_sink_finish(&sink, out);
    return NULL;
}

/* sink = beta * self + alpha * sink, self broadcast to it. */
static ts_status add_scaled(rt_sink *sink, const rt_tensor *self, rt_value beta, rt_value alpha) {
    rt_tensor *wide;
    rt_operand o = {0};
    const rt_tensor *t = sink->tensor;
    if (self->dtype != t->dtype)
        return ts_raise("RuntimeError", "self and mat2 must have the same dtype, but got %s and %s",
                        rt_dtype_message_name((rt_dtype)self->dtype),
                        rt_dtype_message_name((rt_dtype)t->dtype));
    TS_TRY(rt_tensor_expand(self, t->sizes, t->rank, &wide));
    ts_status status = rt_operand_init(&o, wide, true);
    rt_complex128 b = rt_as_complex(beta), a = rt_as_complex(alpha);
    int64_t n = status ? 0 : t->element_count;
    bool use_self = b.re != 0 || b.im != 0;
    for (int64_t i = 0; i < n; i++)
        switch (sink->work) {
        case RT_WORK_FLOAT: {
            float *to = (float *)(void *)sink->data + i;
            *to = (float)a.re * *to +
                  (use_self ? (float)b.re * ((const float *)(const void *)o.data)[i] : 0);
            break;
        }
        case RT_WORK_DOUBLE: {
            double *to = (double *)(void *)sink->data + i;
            *to = a.re * *to + (use_self ? b.re * ((const double *)(const void *)o.data)[i] : 0);
            break;
        }
        case RT_WORK_INT: {
            uint64_t *to = (uint64_t *)(void *)sink->data + i;
            *to = (uint64_t)rt_as_int(alpha) * *to +
                  (uint64_t)rt_as_int(beta) * ((const uint64_t *)(const void *)o.data)[i];
            break;
        }
        case RT_WORK_COMPLEX: {
            rt_complex128 *to = (rt_complex128 *)(void *)sink->data + i, p = *to;
            to->re = a.re * p.re - a.im * p.im;
            to->im = a.re * p.im + a.im * p.re;
            if (use_self) {
                rt_complex128 v = ((const rt_complex128 *)(const void *)o.data)[i];
                to->re += b.re * v.re - b.im * v.im;
                to->im += b.re * v.im + b.im * v.re;
            }
            break;
        }
        }
    rt_operand_deinit(&o);
    rt_tensor_release(wide);
    return status;
}

static ts_status multiply_add(const rt_tensor *self, const rt_tensor *a, const rt_tensor *b,
                              rt_value beta, rt_value alpha, rt_value *out) {
    rt_sink sink;
    TS_TRY(multiply(a, b, &sink));
    ts_status status = add_scaled(&sink, self, beta, alpha);
    if (status)
        rt_sink_deinit(&sink);
    else
        rt_sink_finish(&sink, out);
    return status;
}

static ts_status need_rank(const rt_tensor *t, int rank, const char *what) {
    if (t->rank != rank)
        return ts_raise("RuntimeError", "%s must be a %s, but got %dD", what,
                        rank == 1 ? "vector" : rank == 2 ? "matrix" : "3D tensor", t->rank);
    return NULL;
}

static const rt_tensor *tensor_at(const rt_value *args, int i) { return args[i].as.tensor; }

KERNEL(matmul) { return rt_matmul(tensor_at(args, 0), tensor_at(args, 1), outs); }

#define PRODUCT(name, rank_a, what_a, rank_b, what_b)                                              \
    KERNEL(name) {                                                                                 \
        TS_TRY(need_rank(tensor_at(args, 0), rank_a, what_a));                                     \
        TS_TRY(need_rank(tensor_at(args, 1), rank_b, what_b));                                     \
        return rt_matmul(tensor_at(args, 0), tensor_at(args, 1), outs);                            \
    }
PRODUCT(mm, 2, "self", 2, "mat2")
PRODUCT(mv, 2, "self", 1, "vec")
PRODUCT(dot, 1, "self", 1, "tensor")

static ts_status same_batch(const rt_tensor *a, const rt_tensor *b) {
    TS_TRY(need_rank(a, 3, "batch1"));
    TS_TRY(need_rank(b, 3, "batch2"));
    if (a->sizes[0] != b->sizes[0] || a->sizes[2] != b->sizes[1])
        return ts_raise("RuntimeError",
                        "Expected size for first two dimensions of batch2 tensor to be: [%lld, "
                        "%lld] but got: [%lld, %lld].",
                        (long long)a->sizes[0], (long long)a->sizes[2], (long long)b->sizes[0],
                        (long long)b->sizes[1]);
    return NULL;
}

KERNEL(bmm) {
    TS_TRY(same_batch(tensor_at(args, 0), tensor_at(args, 1)));
    return rt_matmul(tensor_at(args, 0), tensor_at(args, 1), outs);
}

KERNEL(addmm) {
    TS_TRY(need_rank(tensor_at(args, 1), 2, "mat1"));
    TS_TRY(need_rank(tensor_at(args, 2), 2, "mat2"));
    return multiply_add(tensor_at(args, 0), tensor_at(args, 1), tensor_at(args, 2), args[3],
                        args[4], outs);
}

KERNEL(addmv) {
    TS_TRY(need_rank(tensor_at(args, 1), 2, "mat"));
    TS_TRY(need_rank(tensor_at(args, 2), 1, "vec"));
    return multiply_add(tensor_at(args, 0), tensor_at(args, 1), tensor_at(args, 2), args[3],
                        args[4], outs);
}

KERNEL(baddbmm) {
    TS_TRY(same_batch(tensor_at(args, 1), tensor_at(args, 2)));
    return multiply_add(tensor_at(args, 0), tensor_at(args, 1), tensor_at(args, 2), args[3],
                        args[4], outs);
}

/* The i-th matrix of a batch; where there is none, one of no elements with its rows and columns. */
static ts_status matrix_of(const rt_tensor *batch, int64_t i, int empty_dim, rt_tensor **out) {
    int64_t sizes[2] = {batch->sizes[1], batch->sizes[2]};
    if (batch->sizes[0] == 0)
        sizes[empty_dim] = 0;
    return rt_tensor_alias(batch, i * batch->strides[0], sizes, batch->strides + 1, 2, out);
}

/* Product after product, as PyTorch adds them: 16-bit sums are rounded after each. */
KERNEL(addbmm) {
    const rt_tensor *a = tensor_at(args, 1), *b = tensor_at(args, 2);
    TS_TRY(same_batch(a, b));
    ts_status status = NULL;
    rt_value sum = args[0], beta = args[3];
    int64_t count = a->sizes[0] ? a->sizes[0] : 1; /* none at all: a product with k = 0 */
    for (int64_t i = 0; i < count && !status; i++) {
        rt_tensor *left = NULL, *right = NULL;
        rt_value next;
        status = matrix_of(a, i, 1, &left);
        if (!status)
            status = matrix_of(b, i, 0, &right);
        if (!status)
            status = multiply_add(sum.as.tensor, left, right, beta, args[4], &next);
        rt_tensor_release(left);
        rt_tensor_release(right);
        if (i > 0)
            rt_tensor_release(sum.as.tensor);
        if (!status)
            sum = next;
        beta = rt_int(1);
    }
    if (!status)
        *outs = sum;
    return status;
}

ts_status rt_linear(const rt_tensor *x, const rt_tensor *w, const rt_tensor *b, rt_value *out) {
    rt_tensor *turned;
    if (w->rank != 2 && w->rank != 1)
        return ts_raise("RuntimeError", "linear expects a weight of one or two dimensions");
    int64_t sizes[2] = {w->sizes[w->rank - 1], w->sizes[0]};
    int64_t strides[2] = {w->strides[w->rank - 1], w->strides[0]};
    TS_TRY(rt_tensor_alias(w, 0, sizes, strides, w->rank, &turned));
    ts_status status = b ? multiply_add(b, x, turned, rt_int(1), rt_int(1), out)
                         : rt_matmul(x, turned, out);
    rt_tensor_release(turned);
    return status;
}

KERNEL(linear) {
    return rt_linear(tensor_at(args, 0), tensor_at(args, 1), rt_optional_tensor(args[2]), outs);
}

/* y[n, o] = sum x1[n, i] w[o, i, j] x2[n, j] */
KERNEL(bilinear) {
    const rt_tensor *x1 = tensor_at(args, 0), *x2 = tensor_at(args, 1), *w = tensor_at(args, 2);
    const rt_tensor *bias = rt_optional_tensor(args[3]);
    if (w->rank != 3 || x1->rank < 1 || x1->rank != x2->rank ||
        x1->sizes[x1->rank - 1] != w->sizes[1] || x2->sizes[x2->rank - 1] != w->sizes[2])
        return ts_raise("RuntimeError", "bilinear(): input1 and input2 do not fit the weight");
    int64_t i_size = w->sizes[1], j_size = w->sizes[2], o_size = w->sizes[0], n = 1;
    int64_t sizes[RT_MAX_RANK];
    for (int d = 0; d + 1 < x1->rank; d++) {
        if (x1->sizes[d] != x2->sizes[d])
            return ts_raise("RuntimeError",
                            "bilinear(): input batch dimensions do not match at dim %d: got %lld "
                            "and %lld",
                            d, (long long)x1->sizes[d], (long long)x2->sizes[d]);
        n *= sizes[d] = x1->sizes[d];
    }
    sizes[x1->rank - 1] = o_size;
    rt_dtype dtype = (rt_dtype)x1->dtype;
    bool is_short = rt_dtype_is_short(dtype);
    double *a = NULL, *b = NULL, *c = NULL, *bias_data = NULL;
    double *t = rt_new_doubles(n * j_size), *y = rt_new_doubles(n * o_size);
    ts_status status = t && y ? rt_doubles(x1, &a) : ts_no_memory();
    if (!status)
        status = rt_doubles(x2, &b);
    if (!status)
        status = rt_doubles(w, &c);
    if (!status)
        status = rt_doubles(bias, &bias_data);
    for (int64_t o = 0; o < o_size && !status; o++) {
        status = rt_gemm(RT_WORK_DOUBLE, n, j_size, i_size, (rt_matrix){a, i_size, 1},
                         (rt_matrix){c + o * i_size * j_size, j_size, 1}, t, j_size, false);
        for (int64_t i = 0; i < n * j_size && is_short; i++) /* a tensor between two products */
            t[i] = (double)rt_round_short(dtype, (float)t[i]);
        for (int64_t r = 0; r < n && !status; r++) {
            double sum = 0;
            for (int64_t j = 0; j < j_size; j++)
                sum += t[r * j_size + j] * b[r * j_size + j];
            if (is_short)
                sum = (double)rt_round_short(dtype, (float)sum);
            y[r * o_size + o] = sum + (bias_data ? bias_data[o] : 0);
        }
    }
    if (!status)
        status = rt_from_doubles(y, (rt_dtype)x1->dtype, sizes, x1->rank, outs);
    free(a);
    free(b);
    free(c);
    free(bias_data);
    free(t);
    free(y);
    return status;
}

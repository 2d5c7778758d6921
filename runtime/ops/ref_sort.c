/* runtime/ops/ref_sort.c - sort, topk, unique and histograms.
 *
 * A row's elements become keys (int64, or double with NaN above everything), an index array is
 * sorted by a stable merge, and elements are moved as bytes. */
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/contraction.h"

/* t with dim last, dense; and back. */
static ts_status dim_last(const rt_tensor *t, int dim, rt_tensor **out) {
    int64_t sizes[RT_MAX_RANK], strides[RT_MAX_RANK];
    rt_tensor *view;
    int at = 0;
    for (int i = 0; i < t->rank; i++)
        if (i != dim) {
            sizes[at] = t->sizes[i];
            strides[at++] = t->strides[i];
        }
    if (t->rank) {
        sizes[at] = t->sizes[dim];
        strides[at] = t->strides[dim];
    }
    TS_TRY(rt_tensor_alias(t, 0, sizes, strides, t->rank, &view));
    ts_status status = rt_tensor_contiguous(view, out);
    rt_tensor_release(view);
    return status;
}

/* Consumes t, whose last dim belongs at dim. */
static ts_status dim_back(rt_tensor *t, int dim, rt_value *out) {
    int64_t sizes[RT_MAX_RANK], strides[RT_MAX_RANK];
    rt_tensor *view, *dense;
    int at = 0;
    for (int i = 0; i < t->rank; i++) {
        int from = i == dim ? t->rank - 1 : at++;
        sizes[i] = t->sizes[from];
        strides[i] = t->strides[from];
    }
    ts_status status = rt_tensor_alias(t, 0, sizes, strides, t->rank, &view);
    rt_tensor_release(t);
    TS_TRY(status);
    status = rt_tensor_contiguous(view, &dense);
    rt_tensor_release(view);
    if (!status)
        *out = rt_from_tensor(dense);
    return status;
}

typedef struct keys {
    bool is_float;
    double *d;
    int64_t *i;
} keys;

static int compare_doubles(double x, double y) {
    if (isnan(x) || isnan(y))
        return isnan(x) - isnan(y);
    return (x > y) - (x < y);
}

static int compare_keys(const keys *k, int64_t a, int64_t b) {
    if (k->is_float)
        return compare_doubles(k->d[a], k->d[b]);
    return (k->i[a] > k->i[b]) - (k->i[a] < k->i[b]);
}

static void merge_sort(const keys *k, int64_t *order, int64_t *scratch, int64_t n, bool descending) {
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t low = 0; low < n; low += 2 * width) {
            int64_t middle = low + width < n ? low + width : n;
            int64_t high = low + 2 * width < n ? low + 2 * width : n;
            int64_t a = low, b = middle;
            for (int64_t at = low; at < high; at++) {
                bool right = a >= middle;
                if (!right && b < high) {
                    int c = compare_keys(k, order[a], order[b]);
                    right = descending ? c < 0 : c > 0;
                }
                scratch[at] = order[right ? b++ : a++];
            }
        }
        memcpy(order, scratch, (size_t)n * sizeof *order);
    }
}

typedef struct sorter {
    keys k;
    int64_t *order, *scratch;
    void *room;
} sorter;

static ts_status sorter_init(sorter *s, rt_dtype dtype, int64_t n) {
    *s = (sorter){0};
    if (rt_dtype_is_complex(dtype))
        return rt_not_implemented("sort", dtype);
    s->k.is_float = rt_dtype_is_float(dtype);
    s->room = malloc((size_t)(n + 1) * 3 * sizeof(int64_t));
    if (!s->room)
        return ts_no_memory();
    s->k.i = s->room;
    s->k.d = s->room;
    s->order = s->k.i + n;
    s->scratch = s->order + n;
    return NULL;
}

static void sort_row(sorter *s, rt_dtype dtype, const char *row, int64_t n, bool descending) {
    rt_load_block(s->k.is_float ? RT_WORK_DOUBLE : RT_WORK_INT, dtype, row,
                  (int64_t)rt_dtype_size(dtype), n, s->room);
    merge_sort(&s->k, s->order, s->scratch, n, descending);
}

/* The first `keep` of each sorted row. Either result may be NULL. */
static ts_status sort_along(const rt_tensor *t, int64_t dim_value, int64_t keep, bool descending,
                            rt_value *values, rt_value *indices) {
    int dim;
    rt_tensor *rows, *v = NULL, *x = NULL;
    sorter s;
    int64_t sizes[RT_MAX_RANK];
    TS_TRY(rt_wrap_dim(dim_value, t->rank, &dim));
    int64_t n = t->rank ? t->sizes[dim] : 1;
    if (keep < 0)
        keep = n;
    rt_dtype dtype = (rt_dtype)t->dtype;
    TS_TRY(dim_last(t, dim, &rows));
    int64_t count = n ? rows->element_count / n : 0;
    for (int i = 0; i < rows->rank; i++)
        sizes[i] = rows->sizes[i];
    if (rows->rank)
        sizes[rows->rank - 1] = keep;
    ts_status status = sorter_init(&s, dtype, n);
    if (!status)
        status = rt_tensor_make(dtype, sizes, rows->rank, &v);
    if (!status)
        status = rt_tensor_make(RT_int64, sizes, rows->rank, &x);
    size_t bytes = rt_dtype_size(dtype);
    for (int64_t r = 0; r < count && !status; r++) {
        const char *row = (const char *)rows->data + (size_t)(r * n) * bytes;
        sort_row(&s, dtype, row, n, descending);
        for (int64_t i = 0; i < keep; i++) {
            memcpy((char *)v->data + (size_t)(r * keep + i) * bytes,
                   row + (size_t)s.order[i] * bytes, bytes);
            ((int64_t *)x->data)[r * keep + i] = s.order[i];
        }
    }
    free(s.room);
    rt_tensor_release(rows);
    if (status) {
        rt_tensor_release(v);
        rt_tensor_release(x);
        return status;
    }
    if (values)
        status = dim_back(v, dim, values);
    else
        rt_tensor_release(v);
    if (indices && !status) {
        status = dim_back(x, dim, indices);
        if (status && values)
            rt_release(*values);
    } else {
        rt_tensor_release(x);
    }
    return status;
}

#define TENSOR(i) args[i].as.tensor
KERNEL(sort) {
    return sort_along(TENSOR(0), args[1].as.i, -1, args[2].as.i != 0, outs, outs + 1);
}
KERNEL(sort_stable) {
    return sort_along(TENSOR(0), args[2].as.i, -1, args[3].as.i != 0, outs, outs + 1);
}
KERNEL(argsort) {
    return sort_along(TENSOR(0), args[1].as.i, -1, args[2].as.i != 0, NULL, outs);
}
KERNEL(argsort_stable) {
    return sort_along(TENSOR(0), args[2].as.i, -1, args[3].as.i != 0, NULL, outs);
}
KERNEL(msort) { return sort_along(TENSOR(0), 0, -1, false, outs, NULL); }

KERNEL(topk) {
    int dim;
    TS_TRY(rt_wrap_dim(args[2].as.i, TENSOR(0)->rank, &dim));
    int64_t n = TENSOR(0)->rank ? TENSOR(0)->sizes[dim] : 1;
    if (args[1].as.i < 0 || args[1].as.i > n)
        return ts_raise("RuntimeError", "selected index k out of range");
    return sort_along(TENSOR(0), dim, args[1].as.i, args[3].as.i != 0, outs, outs + 1);
}

/* ---- unique ---- */

typedef struct groups {
    int64_t *first, *inverse, *counts; /* first element, group of each element, sizes */
    int64_t count;
} groups;

static void groups_deinit(groups *g) {
    free(g->first);
    free(g->inverse);
    free(g->counts);
}

static ts_status groups_init(groups *g, int64_t n) {
    *g = (groups){.first = calloc((size_t)n + 1, sizeof(int64_t)),
                  .inverse = calloc((size_t)n + 1, sizeof(int64_t)),
                  .counts = calloc((size_t)n + 1, sizeof(int64_t))};
    return g->first && g->inverse && g->counts ? NULL : ts_no_memory();
}

/* Slices of a [count][inner] table of doubles or int64, in lexicographic order. */
typedef struct slices {
    keys k;
    int64_t inner;
} slices;

static int compare_slices(const slices *s, int64_t a, int64_t b) {
    for (int64_t i = 0; i < s->inner; i++) {
        int c = compare_keys(&s->k, a * s->inner + i, b * s->inner + i);
        if (c)
            return c;
    }
    return 0;
}

static bool same_slice(const slices *s, int64_t a, int64_t b) {
    if (s->k.is_float)
        for (int64_t i = 0; i < s->inner; i++)
            if (isnan(s->k.d[a * s->inner + i]))
                return false; /* a NaN equals nothing */
    return compare_slices(s, a, b) == 0;
}

static void group(const slices *s, const int64_t *order, int64_t n, groups *g) {
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || !same_slice(s, order[i - 1], order[i]))
            g->first[g->count++] = order[i];
        g->inverse[order[i]] = g->count - 1;
        g->counts[g->count - 1]++;
    }
}

static void sort_slices(const slices *s, int64_t *order, int64_t *scratch, int64_t n) {
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t low = 0; low < n; low += 2 * width) {
            int64_t middle = low + width < n ? low + width : n;
            int64_t high = low + 2 * width < n ? low + 2 * width : n;
            int64_t a = low, b = middle;
            for (int64_t at = low; at < high; at++) {
                bool right = a >= middle ||
                             (b < high && compare_slices(s, order[a], order[b]) > 0);
                scratch[at] = order[right ? b++ : a++];
            }
        }
        memcpy(order, scratch, (size_t)n * sizeof *order);
    }
}

/* Groups of equal slices of a dense table: sorted, or runs as they stand. */
static ts_status find_groups(const rt_tensor *table, int64_t n, int64_t inner, bool is_sorted,
                             groups *g) {
    rt_dtype dtype = (rt_dtype)table->dtype;
    slices s = {.k = {.is_float = rt_dtype_is_float(dtype)}, .inner = inner};
    if (rt_dtype_is_complex(dtype))
        return rt_not_implemented("unique", dtype);
    void *data = malloc((size_t)(n * inner + 1) * 8);
    int64_t *order = malloc((size_t)(n + 1) * 2 * sizeof *order);
    ts_status status = data && order ? groups_init(g, n) : ts_no_memory();
    if (!status) {
        s.k.d = data;
        s.k.i = data;
        if (n > 0 && inner > 0)
            rt_load_block(s.k.is_float ? RT_WORK_DOUBLE : RT_WORK_INT, dtype, table->data,
                          (int64_t)rt_dtype_size(dtype), n * inner, data);
        for (int64_t i = 0; i < n; i++)
            order[i] = i;
        if (is_sorted)
            sort_slices(&s, order, order + n + 1, n);
        group(&s, order, n, g);
    }
    free(data);
    free(order);
    return status;
}

static ts_status take_slices(const rt_tensor *table, int64_t inner, const groups *g,
                             const int64_t *sizes, int rank, rt_tensor **out) {
    size_t bytes = rt_dtype_size((rt_dtype)table->dtype) * (size_t)inner;
    TS_TRY(rt_tensor_make((rt_dtype)table->dtype, sizes, rank, out));
    for (int64_t i = 0; i < g->count; i++)
        memcpy((char *)(*out)->data + (size_t)i * bytes,
               (const char *)table->data + (size_t)g->first[i] * bytes, bytes);
    return NULL;
}

static ts_status give_groups(const groups *g, const int64_t *inverse_sizes, int inverse_rank,
                             bool with_inverse, bool with_counts, rt_value *outs) {
    int64_t none = 0;
    ts_status status = with_inverse ? rt_from_ints(g->inverse, inverse_sizes, inverse_rank, &outs[1])
                                    : rt_from_ints(NULL, &none, 1, &outs[1]);
    if (!status)
        status = with_counts ? rt_from_ints(g->counts, &g->count, 1, &outs[2])
                             : rt_from_ints(NULL, &none, 1, &outs[2]);
    return status;
}

static ts_status unique_flat(rt_tensor *t, bool is_sorted, bool with_inverse, bool with_counts,
                             rt_value *outs) {
    rt_tensor *dense, *values;
    groups g = {0};
    TS_TRY(rt_tensor_contiguous(t, &dense));
    ts_status status = find_groups(dense, t->element_count, 1, is_sorted, &g);
    if (!status)
        status = take_slices(dense, 1, &g, &g.count, 1, &values);
    if (!status) {
        outs[0] = rt_from_tensor(values);
        status = give_groups(&g, t->sizes, t->rank, with_inverse, with_counts, outs);
    }
    groups_deinit(&g);
    rt_tensor_release(dense);
    return status;
}

/* PyTorch gives inverse and counts here whether asked or not. */
static ts_status unique_dim(rt_tensor *t, int64_t dim_value, bool is_sorted, rt_value *outs) {
    int dim;
    int64_t sizes[RT_MAX_RANK], strides[RT_MAX_RANK];
    rt_tensor *view, *table, *taken, *back;
    groups g = {0};
    TS_TRY(rt_wrap_dim(dim_value, t->rank, &dim));
    if (t->rank == 0)
        return unique_flat(t, is_sorted, true, true, outs);
    /* dim first */
    int at = 1;
    sizes[0] = t->sizes[dim];
    strides[0] = t->strides[dim];
    for (int i = 0; i < t->rank; i++)
        if (i != dim) {
            sizes[at] = t->sizes[i];
            strides[at++] = t->strides[i];
        }
    TS_TRY(rt_tensor_alias(t, 0, sizes, strides, t->rank, &view));
    ts_status status = rt_tensor_contiguous(view, &table);
    rt_tensor_release(view);
    TS_TRY(status);
    int64_t n = sizes[0], inner = n ? t->element_count / n : 0;
    if (n && inner == 0)
        status = ts_raise("RuntimeError",
                          "There are 0 sized dimensions, and they aren't selected by `dim`");
    if (!status)
        status = find_groups(table, n, inner, is_sorted, &g);
    sizes[0] = g.count;
    if (!status)
        status = take_slices(table, inner, &g, sizes, t->rank, &taken);
    rt_tensor_release(table);
    if (!status) {
        int64_t back_sizes[RT_MAX_RANK], back_strides[RT_MAX_RANK];
        at = 1;
        for (int i = 0; i < t->rank; i++) {
            int from = i == dim ? 0 : at++;
            back_sizes[i] = taken->sizes[from];
            back_strides[i] = taken->strides[from];
        }
        status = rt_tensor_alias(taken, 0, back_sizes, back_strides, t->rank, &view);
        rt_tensor_release(taken);
        if (!status) {
            status = rt_tensor_contiguous(view, &back);
            rt_tensor_release(view);
        }
        if (!status) {
            outs[0] = rt_from_tensor(back);
            status = give_groups(&g, &n, 1, true, true, outs);
        }
    }
    groups_deinit(&g);
    return status;
}

KERNEL(unique2) { /* always sorted: PyTorch's own unsorted order is a hash table's */
    return unique_flat(TENSOR(0), true, args[2].as.i != 0, args[3].as.i != 0, outs);
}

KERNEL(unique) {
    rt_value three[3] = {rt_none(), rt_none(), rt_none()};
    TS_TRY(unique_flat(TENSOR(0), true, args[2].as.i != 0, false, three));
    outs[0] = three[0];
    outs[1] = three[1];
    rt_release(three[2]);
    return NULL;
}

KERNEL(unique_dim) {
    return unique_dim(TENSOR(0), args[1].as.i, true, outs);
}

KERNEL(unique_dim_consecutive) {
    return unique_dim(TENSOR(0), args[1].as.i, false, outs);
}

KERNEL(unique_consecutive) {
    if (rt_is_none(args[3]) || TENSOR(0)->rank <= 1)
        return unique_flat(TENSOR(0), false, args[1].as.i != 0, args[2].as.i != 0, outs);
    return unique_dim(TENSOR(0), args[3].as.i, false, outs);
}

/* ---- histograms ---- */

/* Position in rising edges; the last bin is closed; -1 outside. */
static int64_t bin_of(const double *edges, int64_t bins, double x) {
    if (!(x >= edges[0] && x <= edges[bins]))
        return -1;
    int64_t low = 0, high = bins;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (x >= edges[middle])
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* points [n][dims]; edges[d] of bins[d] + 1. */
static ts_status histogram(const double *points, const double *weights, int64_t n, int dims,
                           double *const *edges, const int64_t *bins, bool density, double *out) {
    int64_t total = 1;
    for (int d = 0; d < dims; d++)
        total *= bins[d];
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0;
        for (int d = 0; d < dims && at >= 0; d++) {
            int64_t b = bin_of(edges[d], bins[d], points[i * dims + d]);
            at = b < 0 ? -1 : at * bins[d] + b;
        }
        if (at >= 0)
            out[at] += weights ? weights[i] : 1;
    }
    if (!density)
        return NULL;
    for (int64_t i = 0; i < total; i++)
        sum += out[i];
    for (int64_t i = 0; i < total; i++) {
        double volume = 1;
        int64_t rest = i;
        for (int d = dims - 1; d >= 0; d--) {
            int64_t b = rest % bins[d];
            rest /= bins[d];
            volume *= edges[d][b + 1] - edges[d][b];
        }
        out[i] /= sum * volume;
    }
    return NULL;
}

static ts_status even_edges(double low, double high, int64_t bins, double **out) {
    double *e = rt_new_doubles(bins + 1);
    if (!e)
        return ts_no_memory();
    if (low == high) {
        low -= 0.5;
        high += 0.5;
    }
    for (int64_t i = 0; i <= bins; i++)
        e[i] = i < bins / 2 ? low + (high - low) / (double)bins * (double)i
                            : high - (high - low) / (double)bins * (double)(bins - i);
    *out = e;
    return NULL;
}

enum { HISTOGRAM_DIMS = 16 };

static ts_status run_histogram(const rt_tensor *t, int dims, rt_value bins_value, rt_value range,
                               rt_value weight, bool density, bool edges_as_list, rt_value *outs) {
    double *points = NULL, *weights = NULL, *edges[HISTOGRAM_DIMS] = {0}, *hist = NULL;
    int64_t bins[HISTOGRAM_DIMS], n = t->element_count / (dims ? dims : 1), total = 1;
    const rt_value *items = NULL, *limits = NULL;
    size_t count = 0, limit_count = 0;
    rt_dtype dtype = (rt_dtype)t->dtype;
    bool has_tensors = bins_value.tag == RT_TAG_TENSOR;
    if (dims > HISTOGRAM_DIMS)
        return ts_error_make(TS_ERR_UNSUPPORTED, "histograms of more than 16 dimensions");
    if (bins_value.tag == RT_TAG_LIST) {
        rt_as_items(bins_value, &items, &count);
        has_tensors = count && items[0].tag == RT_TAG_TENSOR;
        if ((int)count != dims)
            return ts_raise("RuntimeError", "expected %d sequences of bins, found %zu", dims, count);
    }
    if (!rt_is_none(range))
        rt_as_items(range, &limits, &limit_count);
    if (limits && (int)limit_count != 2 * dims)
        return ts_raise("RuntimeError", "expected a range of %d numbers", 2 * dims);
    ts_status status = rt_doubles(t, &points);
    if (!status)
        status = rt_doubles(rt_optional_tensor(weight), &weights);
    for (int d = 0; d < dims && !status; d++) {
        rt_value b = items ? items[d] : bins_value;
        if (has_tensors) {
            bins[d] = b.as.tensor->element_count - 1;
            status = bins[d] < 1 ? ts_raise("RuntimeError", "bins needs at least two edges")
                                 : rt_doubles(b.as.tensor, &edges[d]);
        } else {
            bins[d] = rt_as_int(b);
            double low = n ? INFINITY : 0, high = n ? -INFINITY : 1;
            for (int64_t i = 0; i < n; i++) {
                low = fmin(low, points[i * dims + d]);
                high = fmax(high, points[i * dims + d]);
            }
            if (limits) {
                low = rt_as_double(limits[2 * d]);
                high = rt_as_double(limits[2 * d + 1]);
            }
            status = bins[d] < 1       ? ts_raise("RuntimeError", "bins must be > 0")
                     : !isfinite(low) || !isfinite(high) || low > high
                         ? ts_raise("RuntimeError", "histogram: range is not finite")
                         : even_edges(low, high, bins[d], &edges[d]);
        }
        for (int64_t i = 0; i <= bins[d] && !status && dtype == RT_float32; i++)
            edges[d][i] = (double)(float)edges[d][i];
        total *= status ? 1 : bins[d];
    }
    if (!status && !(hist = rt_new_doubles(total)))
        status = ts_no_memory();
    if (!status)
        status = histogram(points, weights, n, dims, edges, bins, density, hist);
    if (!status)
        status = rt_from_doubles(hist, dtype, bins, dims, &outs[0]);
    if (!status && edges_as_list) {
        status = rt_list_make((size_t)dims, &outs[1]);
        for (int d = 0; d < dims && !status; d++) {
            rt_value e;
            int64_t size = bins[d] + 1;
            status = rt_from_doubles(edges[d], dtype, &size, 1, &e);
            if (!status) {
                status = rt_list_append(outs[1].as.list, e);
                rt_release(e);
            }
        }
    } else if (!status) {
        int64_t size = bins[0] + 1;
        status = rt_from_doubles(edges[0], dtype, &size, 1, &outs[1]);
    }
    for (int d = 0; d < dims; d++)
        free(edges[d]);
    free(points);
    free(weights);
    free(hist);
    return status;
}

KERNEL(histogram_tensor) {
    return run_histogram(TENSOR(0), 1, args[1], rt_none(), args[2], args[3].as.i != 0, false, outs);
}
KERNEL(histogram_count) {
    return run_histogram(TENSOR(0), 1, args[1], args[2], args[3], args[4].as.i != 0, false, outs);
}

static ts_status histogram_dims(const rt_value *args, rt_value *outs) {
    const rt_tensor *t = TENSOR(0);
    if (t->rank < 2)
        return ts_raise("RuntimeError", "torch.histogramdd: input tensor should have at least 2 "
                                        "dimensions");
    return run_histogram(t, (int)t->sizes[t->rank - 1], args[1], args[2], args[3],
                         args[4].as.i != 0, true, outs);
}
KERNEL(histogramdd) { return histogram_dims(args, outs); }

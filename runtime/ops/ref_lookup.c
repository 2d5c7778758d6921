/* runtime/ops/ref_lookup.c - embeddings, one-hot, searches in sorted tensors, counting. */
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/index_ops.h"
#include "runtime/ops/linalg.h"

/* ---- embeddings ---- */

/* Indices of any shape, checked against the rows of weight; freed by the caller. */
static ts_status row_list(const rt_tensor *indices, int64_t rows, int64_t **out) {
    rt_dtype dtype = rt_dtype_of(indices);
    *out = NULL;
    if (dtype != RT_int64 && dtype != RT_int32)
        return ts_raise("RuntimeError",
                        "Expected tensor for argument #1 'indices' to have one of "
                        "the following scalar types: Long, Int; but got %s instead",
                        rt_dtype_message_name(dtype));
    int64_t *list = rt_alloc_array(indices->element_count, sizeof *list), at = 0;
    if (!list)
        return ts_no_memory();
    rt_cursor c;
    for (rt_cursor_start(&c, indices); c.left > 0; rt_cursor_next(&c)) {
        int64_t row = rt_load_int(dtype, c.data);
        if (row < 0 || row >= rows) {
            free(list);
            return ts_raise("IndexError", "index out of range in self");
        }
        list[at++] = row;
    }
    *out = list;
    return NULL;
}

KERNEL(embedding) {
    rt_tensor *weight, *indices, *rows, *result;
    int64_t *list;
    TS_TRY(rt_need_tensor(args[0], &weight));
    TS_TRY(rt_need_tensor(args[1], &indices));
    if (weight->rank != 2)
        return ts_raise("RuntimeError", "'weight' must be 2-D");
    TS_TRY(row_list(indices, weight->sizes[0], &list));
    const int64_t *maps[2] = {list, NULL};
    ts_status status =
        rt_gather_maps(weight, (int64_t[]){indices->element_count, weight->sizes[1]}, maps, &rows);
    free(list);
    TS_TRY(status);
    int64_t sizes[RT_MAX_RANK + 1], strides[RT_MAX_RANK + 1];
    for (int d = 0; d < indices->rank; d++)
        sizes[d] = indices->sizes[d];
    sizes[indices->rank] = weight->sizes[1];
    rt_contiguous_strides(sizes, indices->rank + 1, strides);
    status = rt_tensor_alias(rows, 0, sizes, strides, indices->rank + 1, &result);
    rt_tensor_release(rows);
    TS_TRY(status);
    outs[0] = rt_from_tensor(result);
    return NULL;
}

KERNEL(embedding_renorm_) {
    rt_tensor *weight, *indices;
    int64_t *list;
    TS_TRY(rt_need_tensor(args[0], &weight));
    TS_TRY(rt_need_tensor(args[1], &indices));
    if (weight->rank != 2)
        return ts_raise("RuntimeError", "'weight' must be 2-D");
    TS_TRY(rt_check_writable(weight));
    TS_TRY(row_list(indices, weight->sizes[0], &list));
    double most = rt_as_double(args[2]), order = rt_as_double(args[3]);
    rt_dtype dtype = rt_dtype_of(weight);
    bool *done = rt_alloc_array(weight->sizes[0], sizeof *done);
    if (!done) {
        free(list);
        return ts_no_memory();
    }
    for (int64_t i = 0; i < indices->element_count; i++) {
        if (done[list[i]])
            continue;
        done[list[i]] = true;
        char *row = (char *)weight->data + list[i] * weight->strides[0] * rt_element_bytes(weight);
        int64_t step = weight->strides[1] * rt_element_bytes(weight);
        double norm = 0;
        for (int64_t j = 0; j < weight->sizes[1]; j++) {
            double x = rt_c_abs(rt_load_complex(dtype, row + j * step));
            norm = order == (double)INFINITY ? (x > norm ? x : norm) : norm + pow(x, order);
        }
        if (order != (double)INFINITY)
            norm = pow(norm, 1 / order);
        if (norm <= most)
            continue;
        double scale = most / (norm + 1e-7);
        for (int64_t j = 0; j < weight->sizes[1]; j++) {
            rt_complex128 x = rt_load_complex(dtype, row + j * step);
            rt_store_complex(dtype, row + j * step, (rt_complex128){x.re * scale, x.im * scale});
        }
    }
    free(done);
    free(list);
    outs[0] = rt_retain(args[0]);
    return NULL;
}

enum { BAG_SUM, BAG_MEAN, BAG_MAX };

typedef struct bag_call {
    const rt_tensor *weight, *weights; /* per_sample_weights or NULL */
    const int64_t *rows;
    int64_t mode, padding;
} bag_call;

/* One bag: rows[start, end) of the weights. */
static int64_t fill_bag(const bag_call *call, int64_t start, int64_t end, char *out,
                        int64_t *best) {
    const rt_tensor *w = call->weight;
    rt_dtype dtype = rt_dtype_of(w);
    int64_t size = rt_element_bytes(w), counted = 0;
    for (int64_t i = start; i < end; i++)
        counted += call->rows[i] != call->padding;
    for (int64_t j = 0; j < w->sizes[1]; j++) {
        double acc = 0;
        bool is_first = true;
        best[j] = 0;
        for (int64_t i = start; i < end; i++) {
            if (call->rows[i] == call->padding)
                continue;
            double x = rt_load_double(
                dtype,
                (char *)w->data + (call->rows[i] * w->strides[0] + j * w->strides[1]) * size);
            if (call->weights)
                x *= rt_load_double(dtype, (char *)call->weights->data +
                                               i * call->weights->strides[0] * size);
            if (call->mode == BAG_MAX) {
                if (is_first || x > acc) {
                    acc = x;
                    best[j] = call->rows[i];
                }
            } else {
                acc += x;
            }
            is_first = false;
        }
        if (call->mode == BAG_MEAN && counted)
            acc /= (double)counted;
        rt_store_double(dtype, out + j * size, acc);
    }
    return counted;
}

static ts_status embedding_bag(const rt_value *args, rt_value padding, rt_value *outs) {
    rt_tensor *weight, *indices, *offsets, *weights = NULL;
    rt_tensor *results[4] = {NULL};
    int64_t *rows = NULL, *starts = NULL;
    TS_TRY(rt_need_tensor(args[0], &weight));
    TS_TRY(rt_need_tensor(args[1], &indices));
    TS_TRY(rt_need_tensor(args[2], &offsets));
    if (args[6].tag == RT_TAG_TENSOR)
        weights = args[6].as.tensor;
    if (weight->rank != 2 || indices->rank != 1 || offsets->rank != 1)
        return ts_raise("RuntimeError", "embedding_bag expects a matrix of weights and vectors of "
                                        "indices and offsets");
    if (!rt_dtype_is_float(rt_dtype_of(weight)))
        return rt_not_implemented("embedding_bag", rt_dtype_of(weight));
    if (weights && (weights->rank != 1 || weights->element_count != indices->element_count ||
                    weights->dtype != weight->dtype || args[4].as.i != BAG_SUM))
        return ts_raise("RuntimeError", "embedding_bag: per_sample_weights must have the shape of "
                                        "the indices, the dtype of the weights, and mode 'sum'");
    int64_t n = indices->element_count, bags = offsets->element_count - (args[7].as.i != 0);
    if (bags < 0)
        return ts_raise("RuntimeError", "include_last_offset: number of offset should be at least "
                                        "1");
    ts_status status = row_list(indices, weight->sizes[0], &rows);
    if (status)
        return status;
    starts = rt_alloc_array(offsets->element_count, 2 * sizeof *starts);
    if (!starts) {
        status = ts_no_memory();
        goto done;
    }
    rt_load_block(RT_WORK_INT, rt_dtype_of(offsets), offsets->data,
                  offsets->strides[0] * rt_element_bytes(offsets), offsets->element_count, starts);
    if (!args[7].as.i)
        starts[bags] = n;
    for (int64_t i = 0; i < bags; i++)
        if ((i == 0 && starts[0] != 0) || starts[i] > starts[i + 1] || starts[i + 1] > n) {
            status = ts_raise("RuntimeError", "offsets must start at 0, grow and end within the "
                                              "indices");
            goto done;
        }
    int64_t columns = weight->sizes[1];
    TS_TRY_OR(rt_tensor_make(rt_dtype_of(weight), (int64_t[]){bags, columns}, 2, &results[0]),
              done);
    TS_TRY_OR(rt_tensor_make_zeroed(RT_int64, &n, 1, &results[1]), done);
    TS_TRY_OR(rt_tensor_make(RT_int64, &bags, 1, &results[2]), done);
    TS_TRY_OR(rt_tensor_make(RT_int64, (int64_t[]){bags, columns}, 2, &results[3]), done);
    bag_call call = {.weight = weight,
                     .weights = weights,
                     .rows = rows,
                     .mode = args[4].as.i,
                     .padding = rt_is_none(padding) ? -1
                                : padding.as.i < 0  ? padding.as.i + weight->sizes[0]
                                                    : padding.as.i};
    for (int64_t b = 0; b < bags; b++) {
        char *out = (char *)results[0]->data + b * columns * rt_element_bytes(weight);
        int64_t *best = (int64_t *)results[3]->data + b * columns;
        ((int64_t *)results[2]->data)[b] = fill_bag(&call, starts[b], starts[b + 1], out, best);
        for (int64_t i = starts[b]; i < starts[b + 1]; i++)
            ((int64_t *)results[1]->data)[i] = b;
    }
    for (int i = 0; i < 4; i++) {
        outs[i] = rt_from_tensor(results[i]);
        results[i] = NULL;
    }
done:
    free(rows);
    free(starts);
    for (int i = 0; i < 4; i++)
        rt_tensor_release(results[i]);
    return status;
}

KERNEL(embedding_bag) { return embedding_bag(args, rt_none(), outs); }
KERNEL(embedding_bag_padding) { return embedding_bag(args, args[8], outs); }

KERNEL(one_hot) {
    rt_tensor *self, *result;
    TS_TRY(rt_need_tensor(args[0], &self));
    if (self->dtype != RT_int64)
        return ts_raise("RuntimeError", "one_hot is only applicable to index tensor of type "
                                        "LongTensor.");
    int64_t classes = args[1].as.i, sizes[RT_MAX_RANK + 1];
    rt_cursor c;
    if (self->element_count == 0 && classes <= 0)
        return ts_raise("RuntimeError", "Can not infer total number of classes from empty tensor.");
    for (rt_cursor_start(&c, self); c.left > 0; rt_cursor_next(&c)) {
        int64_t i = rt_load_int(RT_int64, c.data);
        if (i < 0)
            return ts_raise("RuntimeError", "Class values must be non-negative.");
        if (args[1].as.i == -1 && i >= classes)
            classes = i + 1;
        if (i >= classes)
            return ts_raise("RuntimeError", "Class values must be smaller than num_classes.");
    }
    for (int d = 0; d < self->rank; d++)
        sizes[d] = self->sizes[d];
    sizes[self->rank] = classes;
    TS_TRY(rt_tensor_make_zeroed(RT_int64, sizes, self->rank + 1, &result));
    int64_t *row = result->data;
    for (rt_cursor_start(&c, self); c.left > 0; rt_cursor_next(&c), row += classes)
        row[rt_load_int(RT_int64, c.data)] = 1;
    outs[0] = rt_from_tensor(result);
    return NULL;
}

/* ---- searches ---- */

/* a < b, with NaN above all, for elements of one dtype. */
static bool element_less(rt_dtype dtype, const char *a, const char *b) {
    if (rt_work_of(dtype) == RT_WORK_INT)
        return rt_load_int(dtype, a) < rt_load_int(dtype, b);
    double x = rt_load_double(dtype, a), y = rt_load_double(dtype, b);
    return y != y ? x == x : x < y;
}

/* First position whose element is not less than (right: greater than) the wanted one. */
static int64_t bound(const char *row, int64_t step, int64_t n, rt_dtype dtype, const char *wanted,
                     bool right, const int64_t *order) {
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        const char *at = row + (order ? order[middle] : middle) * step;
        bool goes_on = right ? !element_less(dtype, wanted, at) : element_less(dtype, at, wanted);
        if (goes_on)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static ts_status search(const rt_tensor *sorted, rt_value values_arg, bool as_int32, bool right,
                        const rt_tensor *sorter, rt_value *outs) {
    rt_tensor *values = NULL, *a = NULL, *b = NULL, *order = NULL, *result = NULL;
    ts_status status = NULL;
    if (sorted->rank == 0)
        return ts_raise("RuntimeError", "the sequence to search must have at least one dimension");
    if (values_arg.tag == RT_TAG_TENSOR)
        values = rt_retain(values_arg).as.tensor;
    else
        TS_TRY(rt_tensor_from_number(values_arg, RT_DTYPE_UNKNOWN, &values));
    rt_dtype common = rt_dtype_promote(rt_dtype_of(sorted), rt_dtype_of(values));
    int64_t n = sorted->sizes[sorted->rank - 1];
    bool is_batched = sorted->rank > 1;
    if (rt_dtype_is_complex(common)) {
        status = rt_not_implemented("searchsorted", common);
        goto done;
    }
    bool fits = !is_batched || values->rank == sorted->rank;
    for (int d = 0; fits && is_batched && d < sorted->rank - 1; d++)
        fits = values->sizes[d] == sorted->sizes[d];
    if (!fits) {
        status = ts_raise("RuntimeError", "torch.searchsorted(): boundaries tensor should be 1 "
                                          "dimension or the first N-1 dimensions of boundaries "
                                          "tensor and input value tensor must match");
        goto done;
    }
    /* contiguous copies in the common dtype */
    rt_tensor *dense = NULL;
    TS_TRY_OR(rt_tensor_contiguous((rt_tensor *)(uintptr_t)sorted, &dense), done);
    status = rt_tensor_cast(dense, common, false, &a);
    rt_tensor_release(dense);
    if (status)
        goto done;
    TS_TRY_OR(rt_tensor_contiguous(values, &dense), done);
    status = rt_tensor_cast(dense, common, false, &b);
    rt_tensor_release(dense);
    if (status)
        goto done;
    if (sorter) {
        if (sorter->dtype != RT_int64 || sorter->element_count != sorted->element_count) {
            status = ts_raise("RuntimeError", "torch.searchsorted(): sorter must be a long tensor "
                                              "of the shape of the sorted sequence");
            goto done;
        }
        TS_TRY_OR(rt_tensor_contiguous((rt_tensor *)(uintptr_t)sorter, &order), done);
        for (int64_t i = 0; i < order->element_count; i++)
            if (((const int64_t *)order->data)[i] < 0 || ((const int64_t *)order->data)[i] >= n) {
                status =
                    ts_raise("RuntimeError", "torch.searchsorted(): sorter index out of range");
                goto done;
            }
    }
    TS_TRY_OR(rt_tensor_make(as_int32 ? RT_int32 : RT_int64, values->sizes, values->rank, &result),
              done);
    int64_t size = (int64_t)rt_dtype_size(common);
    int64_t per_row = is_batched ? values->sizes[values->rank - 1] : values->element_count;
    for (int64_t i = 0; i < values->element_count; i++) {
        int64_t row = is_batched ? i / per_row : 0;
        int64_t at = bound((const char *)a->data + row * n * size, size, n, common,
                           (const char *)b->data + i * size, right,
                           order ? (const int64_t *)order->data + row * n : NULL);
        rt_store_int(rt_dtype_of(result), (char *)result->data + i * rt_element_bytes(result), at);
    }
    *outs = rt_from_tensor(result);
    result = NULL;
done:
    rt_tensor_release(values);
    rt_tensor_release(a);
    rt_tensor_release(b);
    rt_tensor_release(order);
    rt_tensor_release(result);
    return status;
}

KERNEL(bucketize) {
    rt_tensor *boundaries;
    TS_TRY(rt_need_tensor(args[1], &boundaries));
    return search(boundaries, args[0], args[2].as.i != 0, args[3].as.i != 0, NULL, outs);
}

KERNEL(searchsorted) {
    rt_tensor *sorted;
    TS_TRY(rt_need_tensor(args[0], &sorted));
    bool right = args[3].as.i != 0;
    if (!rt_is_none(args[4])) {
        if (right && rt_str_value_is(args[4], "left"))
            return ts_raise("RuntimeError", "torch.searchsorted(): side and right can't be set to "
                                            "opposites, got side of left while right was True");
        right = rt_str_value_is(args[4], "right");
    }
    return search(sorted, args[1], args[2].as.i != 0, right,
                  args[5].tag == RT_TAG_TENSOR ? args[5].as.tensor : NULL, outs);
}

/* ---- membership and counting ---- */

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int compare_ints(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static ts_status load_all(const rt_tensor *t, rt_work work, void **out) {
    size_t size = rt_work_size(work);
    char *memory = rt_alloc_array(t->element_count, size), *at = memory;
    *out = memory;
    if (!memory)
        return ts_no_memory();
    rt_cursor c;
    for (rt_cursor_start(&c, t); c.left > 0; rt_cursor_next(&c), at += size)
        rt_load_block(work, rt_dtype_of(t), c.data, 0, 1, at);
    return NULL;
}

static ts_status to_tensor(rt_value v, rt_tensor **out) {
    if (v.tag == RT_TAG_TENSOR) {
        *out = rt_retain(v).as.tensor;
        return NULL;
    }
    return rt_tensor_from_number(v, RT_DTYPE_UNKNOWN, out);
}

KERNEL(isin) {
    rt_tensor *elements = NULL, *tests = NULL, *result = NULL;
    void *sorted = NULL;
    ts_status status = NULL;
    TS_TRY_OR(to_tensor(args[0], &elements), done);
    TS_TRY_OR(to_tensor(args[1], &tests), done);
    rt_work work = rt_work_of(rt_dtype_promote(rt_dtype_of(elements), rt_dtype_of(tests)));
    if (work == RT_WORK_COMPLEX) {
        status = rt_not_implemented("isin", rt_dtype_of(elements));
        goto done;
    }
    if (elements->dtype == RT_bool || tests->dtype == RT_bool) {
        status = ts_raise("RuntimeError", "Unsupported input type encountered for isin(): Bool");
        goto done;
    }
    bool is_int = work == RT_WORK_INT;
    work = is_int ? RT_WORK_INT : RT_WORK_DOUBLE;
    TS_TRY_OR(load_all(tests, work, &sorted), done);
    qsort(sorted, (size_t)tests->element_count, 8, is_int ? compare_ints : compare_doubles);
    TS_TRY_OR(rt_tensor_make(RT_bool, elements->sizes, elements->rank, &result), done);
    rt_cursor c;
    uint8_t *out = result->data;
    for (rt_cursor_start(&c, elements); c.left > 0; rt_cursor_next(&c)) {
        union {
            double d;
            int64_t i;
        } key;
        rt_load_block(work, rt_dtype_of(elements), c.data, 0, 1, &key);
        bool found = bsearch(&key, sorted, (size_t)tests->element_count, 8,
                             is_int ? compare_ints : compare_doubles) != NULL;
        if (!is_int && key.d != key.d)
            found = false;
        *out++ = found != (args[3].as.i != 0);
    }
    outs[0] = rt_from_tensor(result);
done:
    free(sorted);
    rt_tensor_release(elements);
    rt_tensor_release(tests);
    return status;
}

KERNEL(bincount) {
    rt_tensor *self, *weights = NULL, *result;
    TS_TRY(rt_need_tensor(args[0], &self));
    int64_t least = args[2].as.i, top = -1;
    if (args[1].tag == RT_TAG_TENSOR)
        weights = args[1].as.tensor;
    if (self->rank != 1 || !(rt_dtype_is_integral(rt_dtype_of(self))))
        return ts_raise("RuntimeError", "bincount only supports 1-d non-negative integral inputs.");
    if (least < 0)
        return ts_raise("RuntimeError", "minlength should be >= 0");
    if (weights && (weights->rank != 1 || weights->element_count != self->element_count))
        return ts_raise("RuntimeError", "weights should be 1-d and have the same length as input");
    rt_cursor c, w;
    for (rt_cursor_start(&c, self); c.left > 0; rt_cursor_next(&c)) {
        int64_t i = rt_load_int(rt_dtype_of(self), c.data);
        if (i < 0)
            return ts_raise("RuntimeError",
                            "bincount only supports 1-d non-negative integral inputs.");
        top = i > top ? i : top;
    }
    int64_t bins = top + 1 > least ? top + 1 : least;
    rt_dtype dtype = !weights ? RT_int64 : weights->dtype == RT_float32 ? RT_float32 : RT_float64;
    TS_TRY(rt_tensor_make_zeroed(dtype, &bins, 1, &result));
    if (weights)
        rt_cursor_start(&w, weights);
    for (rt_cursor_start(&c, self); c.left > 0; rt_cursor_next(&c)) {
        char *at = (char *)result->data +
                   rt_load_int(rt_dtype_of(self), c.data) * rt_element_bytes(result);
        if (weights) {
            rt_store_double(dtype, at,
                            rt_load_double(dtype, at) +
                                rt_load_double(rt_dtype_of(weights), w.data));
            rt_cursor_next(&w);
        } else {
            rt_store_int(dtype, at, rt_load_int(dtype, at) + 1);
        }
    }
    outs[0] = rt_from_tensor(result);
    return NULL;
}

KERNEL(histc) {
    rt_tensor *self, *result;
    TS_TRY(rt_need_tensor(args[0], &self));
    rt_dtype dtype = rt_dtype_of(self);
    int64_t bins = args[1].as.i;
    double low = rt_as_double(args[2]), high = rt_as_double(args[3]);
    if (bins <= 0)
        return ts_raise("RuntimeError", "torch.histogram(): bins must be > 0");
    if (!rt_dtype_is_float(dtype))
        return rt_not_implemented("histogram_cpu", dtype);
    rt_cursor c;
    if (low == high && self->element_count) {
        low = (double)INFINITY;
        high = -low;
        for (rt_cursor_start(&c, self); c.left > 0; rt_cursor_next(&c)) {
            double x = rt_load_double(dtype, c.data);
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
    }
    if (low == high) {
        low -= 1;
        high += 1;
    }
    if (!isfinite(low) || !isfinite(high))
        return ts_raise("RuntimeError", "torch.histc: range of [%g, %g] is not finite", low, high);
    if (low > high)
        return ts_raise("RuntimeError", "torch.histc: max must be larger than min");
    TS_TRY(rt_tensor_make_zeroed(dtype, &bins, 1, &result));
    for (rt_cursor_start(&c, self); c.left > 0; rt_cursor_next(&c)) {
        double x = rt_load_double(dtype, c.data);
        if (!(x >= low && x <= high))
            continue;
        int64_t bin = (int64_t)((x - low) * (double)bins / (high - low));
        if (bin >= bins)
            bin = bins - 1;
        char *at = (char *)result->data + bin * rt_element_bytes(result);
        rt_store_double(dtype, at, rt_load_double(dtype, at) + 1);
    }
    outs[0] = rt_from_tensor(result);
    return NULL;
}

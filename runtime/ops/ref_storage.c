/* runtime/ops/ref_storage.c - operators that give a tensor other memory, and comparisons of whole
 * tensors. */
#include "runtime/ops/shape_ops.h"

ts_status rt_ref_eq(rt_context *context, const rt_value *args, rt_value *outs);

static bool same_sizes(const rt_tensor *a, const rt_tensor *b) {
    bool is_same = a->rank == b->rank;
    for (int d = 0; is_same && d < a->rank; d++)
        is_same = a->sizes[d] == b->sizes[d];
    return is_same;
}

KERNEL(equal) {
    rt_tensor *a, *b;
    TS_TRY(rt_need_tensor(args[0], &a));
    TS_TRY(rt_need_tensor(args[1], &b));
    if (a->dtype != b->dtype)
        return ts_raise("RuntimeError", "Expected object of data type %s but got data type %s for "
                                        "argument 'other'",
                        rt_dtype_message_name(rt_dtype_of(a)),
                        rt_dtype_message_name(rt_dtype_of(b)));
    bool is_equal = same_sizes(a, b);
    if (is_equal) {
        rt_value truths;
        TS_TRY(rt_ref_eq(context, args, &truths));
        const uint8_t *truth = truths.as.tensor->data;
        for (int64_t i = 0; is_equal && i < truths.as.tensor->element_count; i++)
            is_equal = truth[i] != 0;
        rt_release(truths);
    }
    outs[0] = rt_bool(is_equal);
    return NULL;
}

KERNEL(is_set_to) {
    rt_tensor *a, *b;
    TS_TRY(rt_need_tensor(args[0], &a));
    TS_TRY(rt_need_tensor(args[1], &b));
    bool is_same = a->data == b->data && a->dtype == b->dtype && same_sizes(a, b);
    for (int d = 0; is_same && d < a->rank; d++)
        is_same = a->strides[d] == b->strides[d];
    outs[0] = rt_bool(is_same);
    return NULL;
}

/* t takes the memory and layout of from; its own object and whoever holds it stay. */
static ts_status take(rt_tensor *t, const rt_tensor *from) {
    int64_t capacity = t->sizes == t->shape ? (int64_t)(t->strides - t->shape) : t->rank;
    if (from->rank > capacity)
        return ts_error_make(TS_ERR_UNSUPPORTED,
                             "a tensor that grows by more than two dimensions in place");
    if (from->storage)
        atomic_fetch_add_explicit(&from->storage->references, 1, memory_order_relaxed);
    rt_storage_release(t->storage);
    t->storage = from->storage;
    t->data = from->data;
    t->dtype = from->dtype;
    t->rank = from->rank;
    t->element_count = from->element_count;
    for (int d = 0; d < from->rank; d++) {
        t->sizes[d] = from->sizes[d];
        t->strides[d] = from->strides[d];
    }
    return NULL;
}

/* The old elements, as many as there is room for, keep their places in memory. */
static ts_status resize(rt_tensor *t, const int64_t *sizes, int rank) {
    int64_t count, strides[RT_MAX_RANK];
    bool is_same = rank == t->rank;
    for (int d = 0; is_same && d < rank; d++)
        is_same = sizes[d] == t->sizes[d];
    if (is_same)
        return NULL;
    if (!rt_element_count(sizes, rank, &count))
        return ts_raise("RuntimeError", "resize_: the sizes are negative or too large");
    rt_contiguous_strides(sizes, rank, strides);
    int64_t bytes = rt_element_bytes(t);
    int64_t offset = t->storage && t->data ? (char *)t->data - (char *)t->storage->data : 0;
    int64_t old = t->storage ? (int64_t)t->storage->bytes - offset : 0;
    rt_tensor *view;
    if (t->storage && count <= old / bytes) {
        TS_TRY(rt_tensor_alias(t, 0, sizes, strides, rank, &view));
    } else {
        TS_TRY(rt_tensor_make_zeroed(rt_dtype_of(t), sizes, rank, &view));
        if (old > 0)
            memcpy(view->data, t->data, (size_t)(old < count * bytes ? old : count * bytes));
    }
    ts_status status = take(t, view);
    rt_tensor_release(view);
    return status;
}

KERNEL(resize_) {
    rt_tensor *t;
    int64_t sizes[RT_MAX_RANK];
    int rank;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_as_ints(args[1], sizes, &rank));
    TS_TRY(resize(t, sizes, rank));
    outs[0] = rt_retain(args[0]);
    return NULL;
}

KERNEL(resize_as_) {
    rt_tensor *t, *other;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_need_tensor(args[1], &other));
    TS_TRY(resize(t, other->sizes, other->rank));
    outs[0] = rt_retain(args[0]);
    return NULL;
}

KERNEL(set_) {
    rt_tensor *t, *source;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_need_tensor(args[1], &source));
    if (t != source)
        TS_TRY(take(t, source));
    outs[0] = rt_retain(args[0]);
    return NULL;
}

KERNEL(fill_diagonal_) {
    rt_tensor *t, *view;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_check_writable(t));
    if (t->rank < 2)
        return ts_raise("RuntimeError", "dimensions must larger than 1");
    int64_t least = t->sizes[0], step = 0;
    for (int d = 0; d < t->rank; d++) {
        if (t->rank > 2 && t->sizes[d] != t->sizes[0])
            return ts_raise("RuntimeError", "all dimensions of input must be of equal length");
        least = t->sizes[d] < least ? t->sizes[d] : least;
        step += t->strides[d];
    }
    TS_TRY(rt_tensor_alias(t, 0, &least, &step, 1, &view));
    ts_status status = rt_fill_number(view, args[1]);
    rt_tensor_release(view);
    TS_TRY(status);
    /* wrap: a tall matrix starts anew one row below each full diagonal */
    for (int64_t row = t->sizes[1] + 1; args[2].as.i && t->rank == 2 && row < t->sizes[0];
         row += t->sizes[1] + 1) {
        int64_t length = t->sizes[0] - row < t->sizes[1] ? t->sizes[0] - row : t->sizes[1];
        TS_TRY(rt_tensor_alias(t, row * t->strides[0], &length, &step, 1, &view));
        status = rt_fill_number(view, args[1]);
        rt_tensor_release(view);
        TS_TRY(status);
    }
    outs[0] = rt_retain(args[0]);
    return NULL;
}

KERNEL(tensor_false) {
    outs[0] = rt_bool(false);
    return NULL;
}

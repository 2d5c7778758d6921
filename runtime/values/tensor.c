/* runtime/values/tensor.c - storages, tensors and views of them. */
#include "runtime/values/tensor.h"

#include <stdlib.h>

#include "runtime/base/checked.h"
#include "runtime/base/memory.h"

/* A tensor has room for USUAL_RANK dimensions or its own, and for SPARE_RANK more that unsqueeze_,
 * as_strided_ and resize_ may add where it stands. */
enum { STORAGE_ALIGN = 64, USUAL_RANK = 4, SPARE_RANK = 2 };
_Static_assert(sizeof(rt_storage) <= STORAGE_ALIGN, "the header fits before the data");

/* Beyond any machine's memory: malloc with overcommit would grant it and the writes would kill. */
static const size_t storage_limit_bytes = (size_t)1 << 42;

static _Thread_local rt_account *account_of_thread;

rt_account *rt_account_use(rt_account *account) {
    rt_account *before = account_of_thread;
    account_of_thread = account;
    return before;
}

static void give_back(rt_storage *storage) {
    rt_account *account = storage->owner;
    account->give(account, storage->bytes);
}

ts_status rt_storage_make(size_t bytes, rt_storage **out) {
    *out = NULL;
    size_t total;
    rt_account *account = account_of_thread;
    if (bytes > storage_limit_bytes || !ts_align_up(bytes, STORAGE_ALIGN, &total))
        return ts_no_memory();
    if (account)
        TS_TRY(account->take(account, bytes));
    /* Header and data are one block; data starts at the next multiple of the alignment. */
    rt_storage *storage = ts_memory_make(total + STORAGE_ALIGN);
    if (!storage) {
        if (account)
            account->give(account, bytes);
        return ts_no_memory();
    }
    atomic_init(&storage->references, 1);
    storage->data = (char *)storage + STORAGE_ALIGN;
    storage->bytes = bytes;
    storage->release = account ? give_back : NULL;
    storage->owner = account;
    storage->is_read_only = false;
    *out = storage;
    return NULL;
}

ts_status rt_storage_wrap(void *data, size_t bytes, void (*release)(rt_storage *), void *owner,
                          rt_storage **out) {
    *out = NULL;
    rt_storage *storage = malloc(sizeof *storage);
    if (!storage)
        return ts_no_memory();
    atomic_init(&storage->references, 1);
    storage->data = data;
    storage->bytes = bytes;
    storage->release = release;
    storage->owner = owner;
    storage->is_read_only = false;
    *out = storage;
    return NULL;
}

void rt_storage_release(rt_storage *storage) {
    if (!storage || atomic_fetch_sub_explicit(&storage->references, 1, memory_order_acq_rel) != 1)
        return;
    if (storage->release)
        storage->release(storage);
    free(storage);
}

bool rt_element_count(const int64_t *sizes, int rank, int64_t *out) {
    int64_t count = 1;
    bool has_zero = false;
    for (int d = 0; d < rank; d++) {
        if (sizes[d] < 0)
            return false;
        has_zero = has_zero || sizes[d] == 0;
    }
    if (has_zero) {
        *out = 0;
        return true;
    }
    for (int d = 0; d < rank; d++)
        if (!ts_mul_i64(count, sizes[d], &count))
            return false;
    *out = count;
    return true;
}

void rt_contiguous_strides(const int64_t *sizes, int rank, int64_t *out_strides) {
    uint64_t stride = 1; /* unsigned: sizes beside a 0 may be anything */
    for (int d = rank - 1; d >= 0; d--) {
        out_strides[d] = (int64_t)(stride & INT64_MAX);
        stride *= (uint64_t)(sizes[d] > 1 ? sizes[d] : 1);
    }
}

void rt_channels_last_strides(const int64_t *sizes, int rank, int64_t *out_strides) {
    int64_t stride = sizes[1] > 1 ? sizes[1] : 1;
    out_strides[1] = 1;
    for (int d = rank - 1; d >= 2; d--) {
        out_strides[d] = stride;
        stride *= sizes[d] > 1 ? sizes[d] : 1;
    }
    out_strides[0] = stride;
}

/* The object without storage; sizes and strides copied, element_count set. */
static ts_status make_header(rt_dtype dtype, const int64_t *sizes, const int64_t *strides, int rank,
                             rt_tensor **out) {
    *out = NULL;
    if (rank < 0 || rank > RT_MAX_RANK)
        return ts_raise("RuntimeError", "tensors have at most %d dimensions, found %d", RT_MAX_RANK,
                        rank);
    if (rt_dtype_size(dtype) == 0)
        return ts_error_make(TS_ERR_INTERNAL, "tensor of unknown dtype %d", (int)dtype);
    for (int d = 0; d < rank; d++)
        if (sizes[d] < 0)
            return ts_raise("RuntimeError", "Trying to create tensor with negative dimension %lld",
                            (long long)sizes[d]);
    int64_t count;
    if (!rt_element_count(sizes, rank, &count))
        return ts_no_memory();
    size_t room = (size_t)(rank < USUAL_RANK ? USUAL_RANK : rank) + SPARE_RANK;
    rt_tensor *t = malloc(sizeof *t + 2 * room * sizeof(int64_t));
    if (!t)
        return ts_no_memory();
    atomic_init(&t->base.references, 1);
    t->base.tag = RT_TAG_TENSOR;
    t->base.flags = 0;
    t->dtype = (int8_t)dtype;
    t->requires_grad = false;
    t->is_conjugated = false;
    t->rank = rank;
    t->storage = NULL;
    t->data = NULL;
    t->sizes = t->shape;
    t->strides = t->shape + room;
    t->element_count = count;
    t->scale = 1;
    t->zero_point = 0;
    t->scales = t->zero_points = NULL;
    t->axis = 0;
    for (int d = 0; d < rank; d++)
        t->sizes[d] = sizes[d];
    if (strides)
        for (int d = 0; d < rank; d++)
            t->strides[d] = strides[d];
    else
        rt_contiguous_strides(sizes, rank, t->strides);
    *out = t;
    return NULL;
}

ts_status rt_tensor_make(rt_dtype dtype, const int64_t *sizes, int rank, rt_tensor **out) {
    TS_TRY(make_header(dtype, sizes, NULL, rank, out));
    rt_tensor *t = *out;
    size_t bytes;
    ts_status status = NULL;
    if (!ts_mul_size((size_t)t->element_count, rt_dtype_size(dtype), &bytes))
        status = ts_no_memory();
    else
        status = rt_storage_make(bytes, &t->storage);
    if (status) {
        free(t);
        *out = NULL;
        return status;
    }
    t->data = t->storage->data;
    return NULL;
}

ts_status rt_tensor_make_zeroed(rt_dtype dtype, const int64_t *sizes, int rank, rt_tensor **out) {
    TS_TRY(rt_tensor_make(dtype, sizes, rank, out));
    if ((*out)->storage->bytes)
        memset((*out)->data, 0, (*out)->storage->bytes);
    return NULL;
}

/* Last byte + 1 that a layout touches, counted from its first element; false on overflow. */
static bool layout_extent(const int64_t *sizes, const int64_t *strides, int rank, int64_t element,
                          int64_t *out) {
    int64_t last = 0;
    for (int d = 0; d < rank; d++) {
        int64_t step;
        if (strides[d] < 0 || !ts_mul_i64(sizes[d] - 1, strides[d], &step) ||
            !ts_add_i64(last, step, &last))
            return false;
    }
    return ts_add_i64(last, 1, &last) && ts_mul_i64(last, element, out);
}

static ts_status make_view(rt_storage *storage, rt_dtype dtype, int64_t byte_offset,
                           const int64_t *sizes, const int64_t *strides, int rank,
                           rt_tensor **out) {
    TS_TRY(make_header(dtype, sizes, strides, rank, out));
    rt_tensor *t = *out;
    int64_t extent = 0, end;
    if (t->element_count > 0 &&
        (byte_offset < 0 ||
         !layout_extent(t->sizes, t->strides, rank, (int64_t)rt_dtype_size(dtype), &extent) ||
         !ts_add_i64(byte_offset, extent, &end) || (uint64_t)end > storage->bytes)) {
        free(t);
        *out = NULL;
        return ts_raise("RuntimeError",
                        "setStorage: sizes, strides and storage offset of a view are out of bounds "
                        "for storage of size %zu",
                        storage->bytes);
    }
    if (t->element_count == 0 && (byte_offset < 0 || (uint64_t)byte_offset > storage->bytes))
        byte_offset = 0;
    atomic_fetch_add_explicit(&storage->references, 1, memory_order_relaxed);
    t->storage = storage;
    t->data = storage->data ? (char *)storage->data + byte_offset : NULL;
    return NULL;
}

ts_status rt_tensor_view(rt_storage *storage, rt_dtype dtype, int64_t offset, const int64_t *sizes,
                         const int64_t *strides, int rank, rt_tensor **out) {
    *out = NULL;
    int64_t byte_offset;
    if (!ts_mul_i64(offset, (int64_t)rt_dtype_size(dtype), &byte_offset))
        return ts_raise("RuntimeError", "storage offset out of bounds");
    return make_view(storage, dtype, byte_offset, sizes, strides, rank, out);
}

ts_status rt_tensor_alias(const rt_tensor *t, int64_t offset, const int64_t *sizes,
                          const int64_t *strides, int rank, rt_tensor **out) {
    *out = NULL;
    rt_dtype dtype = (rt_dtype)t->dtype;
    int64_t bytes;
    if (!ts_mul_i64(offset, (int64_t)rt_dtype_size(dtype), &bytes))
        return ts_raise("RuntimeError", "storage offset out of bounds");
    if (t->storage) {
        int64_t base = t->data ? (int64_t)((char *)t->data - (char *)t->storage->data) : 0;
        if (!ts_add_i64(base, bytes, &bytes))
            return ts_raise("RuntimeError", "storage offset out of bounds");
        TS_TRY(make_view(t->storage, dtype, bytes, sizes, strides, rank, out));
    } else { /* a planned buffer: whoever planned it answers for the bounds */
        TS_TRY(make_header(dtype, sizes, strides, rank, out));
        (*out)->data = t->data ? (char *)t->data + bytes : NULL;
    }
    (*out)->is_conjugated = t->is_conjugated;
    (*out)->requires_grad = t->requires_grad;
    rt_tensor_set_quantizer(*out, t);
    return NULL;
}

void rt_tensor_set_channels(rt_tensor *t, rt_tensor *scales, rt_tensor *zero_points, int32_t axis) {
    rt_tensor_release(t->scales);
    rt_tensor_release(t->zero_points);
    t->scales = scales;
    t->zero_points = zero_points;
    t->axis = axis;
}

static rt_tensor *retained(rt_tensor *t) {
    return t ? rt_retain(rt_from_tensor(t)).as.tensor : NULL;
}

void rt_tensor_set_quantizer(rt_tensor *t, const rt_tensor *from) {
    t->scale = from->scale;
    t->zero_point = from->zero_point;
    if (TS_UNLIKELY(from->scales != NULL))
        rt_tensor_set_channels(t, retained(from->scales), retained(from->zero_points), from->axis);
}

int64_t rt_tensor_offset(const rt_tensor *t) {
    if (!t->storage || !t->data)
        return 0;
    return (int64_t)((char *)t->data - (char *)t->storage->data) /
           (int64_t)rt_dtype_size((rt_dtype)t->dtype);
}

bool rt_tensor_is_contiguous(const rt_tensor *t) {
    if (t->element_count == 0)
        return true;
    int64_t stride = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        if (t->sizes[d] == 1)
            continue;
        if (t->strides[d] != stride)
            return false;
        stride *= t->sizes[d];
    }
    return true;
}

void rt_cursor_start(rt_cursor *cursor, const rt_tensor *t) {
    cursor->tensor = t;
    cursor->data = t->data;
    cursor->left = t->element_count;
    for (int d = 0; d < t->rank; d++)
        cursor->index[d] = 0;
}

void rt_cursor_next(rt_cursor *cursor) {
    const rt_tensor *t = cursor->tensor;
    int64_t size = (int64_t)rt_dtype_size((rt_dtype)t->dtype);
    if (--cursor->left <= 0)
        return;
    for (int d = t->rank - 1; d >= 0; d--) {
        if (++cursor->index[d] < t->sizes[d]) {
            cursor->data += t->strides[d] * size;
            return;
        }
        cursor->index[d] = 0;
        cursor->data -= t->strides[d] * (t->sizes[d] - 1) * size;
    }
}

/* runtime/values/tensor.h - tensors: a typed strided view of a counted storage.
 *
 * Strides count elements, may be 0 (expanded) and are never negative. Several tensors share a
 * storage; writing through one is seen through all. */
#ifndef RUNTIME_VALUES_TENSOR_H
#define RUNTIME_VALUES_TENSOR_H

#include "runtime/values/value.h"

enum { RT_MAX_RANK = 64 };

typedef struct rt_storage {
    _Atomic int64_t references;
    void *data;
    size_t bytes;
    /* Called when the last reference goes; NULL for memory that outlives everything. */
    void (*release)(struct rt_storage *storage);
    void *owner;         /* for release */
    bool is_read_only;   /* mapped weights: writing raises an internal error, never a fault */
} rt_storage;

/* Who pays for the memory of new storages. take may refuse; give is called from any thread. */
typedef struct rt_account {
    ts_status (*take)(struct rt_account *account, size_t bytes);
    void (*give)(struct rt_account *account, size_t bytes);
} rt_account;
/* From here on rt_storage_make asks this account (NULL: nobody) on this thread; gives the one before.
 * A session sets its own for the time of a call, since kernels do not know for whom they work. */
rt_account *rt_account_use(rt_account *account);

struct rt_tensor {
    rt_counted base;
    int8_t dtype;        /* rt_dtype */
    bool requires_grad;
    bool is_conjugated;  /* lazily conjugated complex view: unused by kernels, resolved on load */
    int32_t rank;
    rt_storage *storage; /* NULL only for a tensor without elements or a planned buffer */
    void *data;          /* first element: storage->data plus the offset */
    int64_t *sizes;      /* [rank], inside the object */
    int64_t *strides;    /* [rank] */
    int64_t element_count;
    double scale;        /* of a quantized dtype: value = (integer - zero_point) * scale */
    int64_t zero_point;
    /* Quantized per channel: one scale (float64) and zero point (int64, or float32) for each index of
     * dimension `axis`; NULL otherwise. */
    struct rt_tensor *scales, *zero_points;
    int32_t axis;
    int64_t shape[];     /* room for sizes and strides */
};

/* Memory for tensors: aligned to 64 bytes. The storage starts with one reference. */
ts_status rt_storage_make(size_t bytes, rt_storage **out) TS_WARN_UNUSED;
ts_status rt_storage_wrap(void *data, size_t bytes, void (*release)(rt_storage *), void *owner,
                          rt_storage **out) TS_WARN_UNUSED;
void rt_storage_release(rt_storage *storage);

/* New contiguous tensor; sizes are checked (negative, overflow, memory limit), contents undefined. */
ts_status rt_tensor_make(rt_dtype dtype, const int64_t *sizes, int rank, rt_tensor **out)
    TS_WARN_UNUSED;
ts_status rt_tensor_make_zeroed(rt_dtype dtype, const int64_t *sizes, int rank, rt_tensor **out)
    TS_WARN_UNUSED;
/* A view: retains the storage. offset counts elements from the storage's start; bounds are checked
 * against the storage. */
ts_status rt_tensor_view(rt_storage *storage, rt_dtype dtype, int64_t offset, const int64_t *sizes,
                         const int64_t *strides, int rank, rt_tensor **out) TS_WARN_UNUSED;
/* A view of t's storage with other sizes and strides, offset in elements relative to t's first. */
ts_status rt_tensor_alias(const rt_tensor *t, int64_t offset, const int64_t *sizes,
                          const int64_t *strides, int rank, rt_tensor **out) TS_WARN_UNUSED;
static inline rt_value rt_from_tensor(rt_tensor *t) { /* takes the reference */
    return (rt_value){.tag = RT_TAG_TENSOR, .as.tensor = t};
}
static inline void rt_tensor_release(rt_tensor *t) {
    if (t)
        rt_release(rt_from_tensor(t));
}

int64_t rt_tensor_offset(const rt_tensor *t); /* elements from the storage's start */
bool rt_tensor_is_contiguous(const rt_tensor *t);
/* Product of sizes; false on overflow or a negative size. */
bool rt_element_count(const int64_t *sizes, int rank, int64_t *out);
void rt_contiguous_strides(const int64_t *sizes, int rank, int64_t *out_strides);
/* N, spatial dims, C in the order of memory; of rank 3 and more. */
void rt_channels_last_strides(const int64_t *sizes, int rank, int64_t *out_strides);
/* Gives a tensor the scale and zero point, or the channels, of another. */
void rt_tensor_set_quantizer(rt_tensor *t, const rt_tensor *from);
/* Takes both references. */
void rt_tensor_set_channels(rt_tensor *t, rt_tensor *scales, rt_tensor *zero_points, int32_t axis);
/* A contiguous tensor of the same contents: itself (retained) where it is one already. */
ts_status rt_tensor_contiguous(rt_tensor *t, rt_tensor **out) TS_WARN_UNUSED;
ts_status rt_tensor_clone(const rt_tensor *t, rt_tensor **out) TS_WARN_UNUSED; /* always a copy */
/* Same contents as another dtype (PyTorch's conversions); itself where equal and !copy. */
ts_status rt_tensor_cast(rt_tensor *t, rt_dtype dtype, bool copy, rt_tensor **out) TS_WARN_UNUSED;
/* Writes src into dst with broadcasting and conversion; they may overlap. */
ts_status rt_tensor_copy_into(rt_tensor *dst, const rt_tensor *src) TS_WARN_UNUSED;
/* Broadcast of two shapes; RuntimeError with PyTorch's text where they do not fit.
 * out_sizes has room for RT_MAX_RANK. */
ts_status rt_broadcast(const int64_t *a, int a_rank, const int64_t *b, int b_rank,
                       int64_t *out_sizes, int *out_rank) TS_WARN_UNUSED;
/* A view of t with stride 0 where it is broadcast to sizes. */
ts_status rt_tensor_expand(const rt_tensor *t, const int64_t *sizes, int rank, rt_tensor **out)
    TS_WARN_UNUSED;

/* One element at data (of dtype) as a boxed number, and back with PyTorch's conversions. */
rt_value rt_load_number(rt_dtype dtype, const void *data); /* bool, int, float; complex: real part */
double rt_load_double(rt_dtype dtype, const void *data);
int64_t rt_load_int(rt_dtype dtype, const void *data);
rt_complex128 rt_load_complex(rt_dtype dtype, const void *data);
void rt_store_double(rt_dtype dtype, void *data, double value);
void rt_store_int(rt_dtype dtype, void *data, int64_t value);
void rt_store_complex(rt_dtype dtype, void *data, rt_complex128 value);
/* 0-d tensor from a number (bool, int, float, complex); dtype RT_DTYPE_UNKNOWN: the number's own
 * (bool, int64, float32 for a float: PyTorch's default dtype, complex64). */
ts_status rt_tensor_from_number(rt_value number, rt_dtype dtype, rt_tensor **out) TS_WARN_UNUSED;
/* Whether PyTorch takes the number for an element of the dtype: whole numbers within its range (an
 * unsigned one takes those below zero, too, and wraps), finite ones within that of floats. */
bool rt_number_fits(rt_value number, rt_dtype dtype);
/* .item() of a one-element tensor. */
ts_status rt_tensor_item(const rt_tensor *t, rt_value *out) TS_WARN_UNUSED;

/* Walks the elements of a tensor in row-major order of its sizes.
 *   rt_cursor c; for (rt_cursor_start(&c, t); c.left; rt_cursor_next(&c)) use(c.data); */
typedef struct rt_cursor {
    const rt_tensor *tensor;
    char *data;
    int64_t left;
    int64_t index[RT_MAX_RANK];
} rt_cursor;
void rt_cursor_start(rt_cursor *cursor, const rt_tensor *t);
void rt_cursor_next(rt_cursor *cursor);

#endif

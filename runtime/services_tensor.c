/* runtime/services_tensor.c - results and dense operands of compiled kernels. */
#include <stdlib.h>

#include "runtime/base/checked.h"
#include "runtime/services.h"

uint32_t service_matches(const rt_value *value, uint32_t dtype, uint32_t rank,
                         const int64_t *sizes) {
    if (value->tag != RT_TAG_TENSOR)
        return 0;
    const rt_tensor *t = value->as.tensor;
    if ((int32_t)dtype != RT_DTYPE_UNKNOWN && t->dtype != (int32_t)dtype)
        return 0;
    if ((int32_t)rank < 0)
        return 1;
    if (t->rank != (int32_t)rank)
        return 0;
    for (int i = 0; i < t->rank; i++)
        if (sizes[i] >= 0 && sizes[i] != t->sizes[i])
            return 0;
    return 1;
}

int64_t service_tensor_size(const rt_value *value, int64_t index) {
    if (value->tag != RT_TAG_TENSOR || index >= value->as.tensor->rank)
        return -1;
    return value->as.tensor->sizes[index];
}

/* Strides of a dense layout: 0 row-major, 1 channels last (N, spatial, C in memory). */
static void dense_strides(const int64_t *sizes, int rank, uint32_t layout, int64_t *strides) {
    if (!layout || rank < 3)
        rt_contiguous_strides(sizes, rank, strides);
    else
        rt_channels_last_strides(sizes, rank, strides);
}

static ts_status byte_count(rt_dtype dtype, const int64_t *sizes, int rank, size_t *out) {
    int64_t count;
    for (int i = 0; i < rank; i++)
        if (sizes[i] < 0)
            return ts_raise("RuntimeError", "a result would have the negative size %lld",
                            (long long)sizes[i]);
    if (!rt_element_count(sizes, rank, &count) ||
        !ts_mul_size((size_t)count, rt_dtype_size(dtype), out))
        return ts_no_memory();
    return NULL;
}

ts_status service_tensor_make(rt_run *run, uint32_t dtype, uint32_t rank, const int64_t *sizes,
                              uint32_t layout, int64_t header, rt_value *out) {
    (void)header;
    tsrt_session *s = rt_session_of(run);
    size_t bytes;
    int64_t strides[RT_MAX_RANK];
    TS_TRY(byte_count((rt_dtype)dtype, sizes, (int)rank, &bytes));
    dense_strides(sizes, (int)rank, layout, strides);
    rt_storage *storage;
    TS_TRY(rt_pool_storage(s->pool, bytes, &storage));
    rt_tensor *t;
    ts_status status =
        rt_tensor_view(storage, (rt_dtype)dtype, 0, sizes, strides, (int)rank, &t);
    rt_storage_release(storage); /* the view holds it */
    if (!status)
        *out = rt_from_tensor(t);
    return status;
}

ts_status service_tensor_planned(rt_run *run, uint32_t dtype, uint32_t rank, const int64_t *sizes,
                                 uint32_t layout, int64_t header, int64_t offset, rt_value *out) {
    tsrt_session *s = rt_session_of(run);
    size_t bytes;
    TS_TRY(byte_count((rt_dtype)dtype, sizes, (int)rank, &bytes));
    if (!s->arena || offset < 0 || (size_t)offset > s->arena->bytes ||
        bytes > s->arena->bytes - (size_t)offset)
        return service_tensor_make(run, dtype, rank, sizes, layout, header, out);
    rt_tensor *t = s->headers[header];
    /* Sizes are constant for a header; it is free when only the session holds it. */
    if (!t || atomic_load_explicit(&t->base.references, memory_order_acquire) != 1) {
        int64_t strides[RT_MAX_RANK];
        dense_strides(sizes, (int)rank, layout, strides);
        rt_tensor *fresh;
        TS_TRY(rt_tensor_view(s->arena, (rt_dtype)dtype,
                              offset / (int64_t)rt_dtype_size((rt_dtype)dtype), sizes, strides,
                              (int)rank, &fresh));
        if (t) { /* somebody still holds the header: this one is the run's alone */
            *out = rt_from_tensor(fresh);
            return NULL;
        }
        s->headers[header] = t = fresh;
    }
    *out = rt_retain(rt_from_tensor(t));
    return NULL;
}

static bool has_strides(const rt_tensor *t, const int64_t *strides) {
    for (int i = 0; i < t->rank; i++)
        if (t->sizes[i] > 1 && t->strides[i] != strides[i])
            return false;
    return true;
}

ts_status service_tensor_dense(rt_run *run, const rt_value *value, uint32_t dtype, uint32_t rank,
                               uint32_t layout, rt_value *out, uint32_t place) {
    tsrt_session *s = rt_session_of(run);
    if (value->tag != RT_TAG_TENSOR || value->as.tensor->dtype != (int32_t)dtype ||
        value->as.tensor->rank != (int32_t)rank) {
        ts_status status = ts_error_make(
            TS_ERR_INTERNAL, "a kernel expects %s of rank %u, found %s of rank %d",
            rt_dtype_name((rt_dtype)dtype), rank,
            value->tag == RT_TAG_TENSOR ? rt_dtype_name((rt_dtype)value->as.tensor->dtype)
                                        : rt_tag_name(*value),
            value->tag == RT_TAG_TENSOR ? (int)value->as.tensor->rank : 0);
        return ts_status_set_place(status, rt_place(s->model, place));
    }
    rt_tensor *t = value->as.tensor;
    int64_t strides[RT_MAX_RANK];
    dense_strides(t->sizes, t->rank, layout, strides);
    if (t->element_count == 0 || (has_strides(t, strides) && !t->is_conjugated)) {
        *out = rt_retain(*value);
        return NULL;
    }
    rt_value copy;
    if (s->device)
        TS_TRY(rt_device_to_host(s, *value, false));
    TS_TRY(service_tensor_make(run, dtype, rank, t->sizes, layout, 0, &copy));
    ts_status status = rt_tensor_copy_into(copy.as.tensor, t);
    if (status)
        rt_release(copy);
    else
        *out = copy;
    return status;
}

/* What a compiled kernel would have made is memory of its own; a reference kernel may give a view
 * of its operand instead, which must not outlive a planned buffer. */
ts_status service_tensor_fresh(rt_run *run, rt_value *slot) {
    if (slot->tag != RT_TAG_TENSOR)
        return NULL;
    const rt_tensor *t = slot->as.tensor;
    bool is_shared =
        !t->storage || t->storage == rt_session_of(run)->arena || t->storage->is_read_only ||
        atomic_load_explicit(&t->storage->references, memory_order_relaxed) > 1 ||
        atomic_load_explicit(&t->base.references, memory_order_relaxed) > 1;
    if (!is_shared)
        return NULL;
    rt_tensor *copy;
    if (rt_session_of(run)->device)
        TS_TRY(rt_device_to_host(rt_session_of(run), *slot, false));
    TS_TRY(rt_tensor_clone(t, &copy));
    rt_assign(slot, rt_from_tensor(copy));
    return NULL;
}

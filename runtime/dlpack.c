/* runtime/dlpack.c - tensors in and out through DLPack (dmlc/dlpack, versions 0.8 and 1.0) without
 * copies. The few structs are declared here, as the project needs no header of it. */
#include "runtime/runtime_internal.h"

#include <stdlib.h>

typedef struct DLDevice {
    int32_t device_type; /* 1: CPU */
    int32_t device_id;
} DLDevice;

typedef struct DLDataType {
    uint8_t code; /* 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool */
    uint8_t bits;
    uint16_t lanes;
} DLDataType;

typedef struct DLTensor {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides; /* NULL: contiguous */
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags; /* 1: read-only */
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

static const struct {
    rt_dtype dtype;
    uint8_t code, bits;
} types[] = {{RT_uint8, 1, 8},    {RT_int8, 0, 8},       {RT_int16, 0, 16},
             {RT_int32, 0, 32},   {RT_int64, 0, 64},     {RT_float16, 2, 16},
             {RT_float32, 2, 32}, {RT_float64, 2, 64},   {RT_complex32, 5, 32},
             {RT_complex64, 5, 64}, {RT_complex128, 5, 128}, {RT_bool, 6, 8},
             {RT_bfloat16, 4, 16}};

static ts_status from_tensor(const DLTensor *t, void (*release)(void *), void *owner,
                             tsrt_value **out) {
    *out = NULL;
    if (t->device.device_type != 1)
        return ts_error_make(TS_ERR_UNSUPPORTED, "expected a tensor in CPU memory, found DLPack "
                             "device type %d", (int)t->device.device_type);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].code == t->dtype.code && types[i].bits == t->dtype.bits &&
            t->dtype.lanes == 1)
            return (ts_status)(void *)tsrt_value_wrap_tensor(
                (tsrt_dtype)types[i].dtype, t->shape, t->strides, t->ndim,
                t->data ? (char *)t->data + t->byte_offset : NULL, release, owner, out);
    return ts_error_make(TS_ERR_UNSUPPORTED,
                         "DLPack element type code %u of %u bits is not supported",
                         t->dtype.code, t->dtype.bits);
}

static void delete_plain(void *owner) {
    DLManagedTensor *t = owner;
    if (t->deleter)
        t->deleter(t);
}

static void delete_versioned(void *owner) {
    DLManagedTensorVersioned *t = owner;
    if (t->deleter)
        t->deleter(t);
}

tsrt_status *tsrt_value_from_dlpack(struct DLManagedTensor *tensor, tsrt_value **out_value) {
    return rt_out(from_tensor(&tensor->dl_tensor, delete_plain, tensor, out_value));
}

tsrt_status *tsrt_value_from_dlpack_versioned(struct DLManagedTensorVersioned *tensor,
                                              tsrt_value **out_value) {
    *out_value = NULL;
    if (tensor->major > 1)
        return rt_out(ts_error_make(TS_ERR_UNSUPPORTED, "DLPack version %u is not known",
                                    tensor->major));
    return rt_out(from_tensor(&tensor->dl_tensor, delete_versioned, tensor, out_value));
}

/* ---- out ---- */

static ts_status to_tensor(const tsrt_value *value, DLTensor *out) {
    if (tsrt_value_kind(value) != TSRT_TENSOR)
        return ts_error_make(TS_ERR_INVALID_INPUT, "expected a tensor");
    rt_tensor *t = value->value.as.tensor;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].dtype == t->dtype) {
            *out = (DLTensor){.data = t->data,
                              .device = {1, 0},
                              .ndim = t->rank,
                              .dtype = {types[i].code, types[i].bits, 1},
                              .shape = t->sizes,
                              .strides = t->strides};
            return NULL;
        }
    return ts_error_make(TS_ERR_UNSUPPORTED, "DLPack has no element type for %s",
                         rt_dtype_name((rt_dtype)t->dtype));
}

static void release_plain(struct DLManagedTensor *self) {
    tsrt_value_release(self->manager_ctx);
    free(self);
}

static void release_versioned(struct DLManagedTensorVersioned *self) {
    tsrt_value_release(self->manager_ctx);
    free(self);
}

/* The handle that keeps the memory: a new one, so that the value's own count stays the caller's. */
static ts_status keep(const tsrt_value *value, tsrt_value **out) {
    return rt_value_wrap(rt_retain(value->value), value->model, out);
}

tsrt_status *tsrt_value_to_dlpack(const tsrt_value *value, struct DLManagedTensor **out_tensor) {
    *out_tensor = NULL;
    DLTensor t;
    ts_status status = to_tensor(value, &t);
    if (status)
        return rt_out(status);
    DLManagedTensor *m = malloc(sizeof *m);
    if (!m)
        return rt_out(ts_no_memory());
    *m = (DLManagedTensor){.dl_tensor = t, .deleter = release_plain};
    tsrt_value *kept;
    status = keep(value, &kept);
    if (status) {
        free(m);
        return rt_out(status);
    }
    m->manager_ctx = kept;
    *out_tensor = m;
    return NULL;
}

tsrt_status *tsrt_value_to_dlpack_versioned(const tsrt_value *value,
                                            struct DLManagedTensorVersioned **out_tensor) {
    *out_tensor = NULL;
    DLTensor t;
    ts_status status = to_tensor(value, &t);
    if (status)
        return rt_out(status);
    DLManagedTensorVersioned *m = malloc(sizeof *m);
    if (!m)
        return rt_out(ts_no_memory());
    *m = (DLManagedTensorVersioned){.major = 1, .deleter = release_versioned, .dl_tensor = t};
    tsrt_value *kept;
    status = keep(value, &kept);
    if (status) {
        free(m);
        return rt_out(status);
    }
    m->manager_ctx = kept;
    *out_tensor = m;
    return NULL;
}

/* ---- quantized tensors ---- */

tsrt_status *tsrt_value_make_quantized(tsrt_dtype dtype, const int64_t *sizes, int rank,
                                       const void *ints, double scale, int64_t zero_point,
                                       tsrt_value **out_value) {
    *out_value = NULL;
    if (rt_dtype_category((rt_dtype)dtype) != 'q' || !(scale > 0))
        return rt_out(ts_error_make(TS_ERR_INVALID_INPUT,
                                    "expected a quantized dtype and a scale above 0"));
    rt_tensor *t;
    ts_status status = rt_tensor_make((rt_dtype)dtype, sizes, rank, &t);
    if (status)
        return rt_out(status);
    t->scale = scale;
    t->zero_point = zero_point;
    if (t->element_count)
        memcpy(t->data, ints, (size_t)t->element_count * rt_dtype_size((rt_dtype)dtype));
    return rt_out(rt_value_wrap(rt_from_tensor(t), NULL, out_value));
}

tsrt_status *tsrt_value_quantization(const tsrt_value *value, double *out_scale,
                                     int64_t *out_zero_point) {
    *out_scale = 0;
    *out_zero_point = 0;
    if (tsrt_value_kind(value) != TSRT_TENSOR ||
        rt_dtype_category((rt_dtype)value->value.as.tensor->dtype) != 'q')
        return rt_out(ts_error_make(TS_ERR_INVALID_INPUT, "expected a quantized tensor"));
    *out_scale = value->value.as.tensor->scale;
    *out_zero_point = value->value.as.tensor->zero_point;
    return NULL;
}

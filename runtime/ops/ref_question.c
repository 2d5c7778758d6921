/* runtime/ops/ref_question.c - what a program asks of a tensor: sizes, strides, dtype. */
#include "runtime/ops/shape_ops.h"

KERNEL(size) {
    rt_tensor *t;
    TS_TRY(rt_need_tensor(args[0], &t));
    return rt_int_list_make(t->sizes, (size_t)t->rank, outs);
}

/* One dim's of the sizes or strides. */
static ts_status of_dim(rt_value tensor, int64_t dim_arg, bool is_stride, rt_value *out) {
    rt_tensor *t;
    int dim;
    TS_TRY(rt_need_tensor(tensor, &t));
    if (t->rank == 0)
        return ts_raise("IndexError", "Dimension specified as %lld but tensor has no dimensions",
                        (long long)dim_arg);
    TS_TRY(rt_wrap_dim(dim_arg, t->rank, &dim));
    *out = rt_int((is_stride ? t->strides : t->sizes)[dim]);
    return NULL;
}

KERNEL(size_int) { return of_dim(args[0], args[1].as.i, false, outs); }

KERNEL(stride) {
    rt_tensor *t;
    TS_TRY(rt_need_tensor(args[0], &t));
    return rt_int_list_make(t->strides, (size_t)t->rank, outs);
}

KERNEL(stride_int) { return of_dim(args[0], args[1].as.i, true, outs); }

#define QUESTION(name, expr)                                                                       \
    KERNEL(name) {                                                                                 \
        rt_tensor *t;                                                                              \
        TS_TRY(rt_need_tensor(args[0], &t));                                                       \
        outs[0] = (expr);                                                                          \
        return NULL;                                                                               \
    }
QUESTION(numel, rt_int(t->element_count))
QUESTION(rank, rt_int(t->rank))
QUESTION(element_size, rt_int(rt_element_bytes(t)))
QUESTION(storage_offset, rt_int(rt_tensor_offset(t)))
QUESTION(is_floating_point, rt_bool(rt_dtype_is_float(rt_dtype_of(t))))
QUESTION(is_complex, rt_bool(rt_dtype_is_complex(rt_dtype_of(t))))
QUESTION(is_signed, rt_bool(t->dtype != RT_uint8 && t->dtype != RT_bool))
QUESTION(get_device, rt_int(-1))

KERNEL(is_nonzero) {
    rt_tensor *t;
    bool truth;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_truth(args[0], &truth));
    outs[0] = rt_bool(truth);
    return NULL;
}

KERNEL(is_same_size) {
    rt_tensor *a, *b;
    TS_TRY(rt_need_tensor(args[0], &a));
    TS_TRY(rt_need_tensor(args[1], &b));
    bool is_same = a->rank == b->rank;
    for (int d = 0; is_same && d < a->rank; d++)
        is_same = a->sizes[d] == b->sizes[d];
    outs[0] = rt_bool(is_same);
    return NULL;
}

KERNEL(shape_as_tensor) {
    rt_tensor *t, *sizes;
    TS_TRY(rt_need_tensor(args[0], &t));
    TS_TRY(rt_tensor_make(RT_int64, (int64_t[]){t->rank}, 1, &sizes));
    if (t->rank)
        memcpy(sizes->data, t->sizes, (size_t)t->rank * sizeof(int64_t));
    outs[0] = rt_from_tensor(sizes);
    return NULL;
}

/* runtime/ops/infer_factory.c - shapes and dtypes of tensors made from sizes and numbers. */
#include "runtime/ops/tensor_ops.h"

/* The dtype an argument asks for: other where it is None, unknown where it is not known. */
static rt_dtype asked_dtype(const rt_fact *f, rt_dtype other) {
    rt_dtype dtype;
    if (f->kind == RT_FACT_NONE)
        return other;
    return rt_fact_dtype(f, &dtype) ? dtype : RT_DTYPE_UNKNOWN;
}

static ts_status sized(const rt_infer_context *ic, const rt_fact *size, rt_dtype dtype,
                       rt_fact *out) {
    rt_dim dims[RT_MAX_RANK];
    int rank;
    *out = rt_fact_tensor(dtype, -1, NULL);
    if (!rt_fact_dims(size, dims, &rank))
        return NULL;
    rt_dim *copy = rt_new_dims(ic, rank);
    for (int i = 0; i < rank; i++)
        copy[i] = dims[i];
    *out = rt_fact_tensor(dtype, rank, copy);
    return NULL;
}

static ts_status like(const rt_fact *self, rt_dtype dtype, rt_fact *out) {
    *out = self->kind == RT_FACT_TENSOR ? rt_fact_tensor(dtype, self->rank, self->dims)
                                        : rt_fact_tensor(dtype, -1, NULL);
    return NULL;
}

#define SIZED(name, size_at, dtype_at, other)                                                      \
    RULE(name) { return sized(ic, &args[size_at], asked_dtype(&args[dtype_at], other), outs); }
SIZED(size_dtype, 0, 1, RT_float32)
SIZED(size_other_dtype, 0, 2, RT_float32)
SIZED(other_size_dtype, 1, 2, RT_int64)
SIZED(other_size_other_dtype, 1, 3, RT_int64)
SIZED(two_size_dtype, 2, 3, RT_int64)
SIZED(two_size_other_dtype, 2, 4, RT_int64)
SIZED(two_size_other_float, 2, 4, RT_float32)
SIZED(new_size, 1, 2, rt_fact_tensor_dtype(&args[0]))
SIZED(new_size_other, 1, 3, rt_fact_tensor_dtype(&args[0]))

#define LIKE(name, dtype_at)                                                                       \
    RULE(name) { return like(&args[0], asked_dtype(&args[dtype_at], rt_fact_tensor_dtype(&args[0])), outs); }
LIKE(like, 1)
LIKE(like_other, 2)
LIKE(like_two, 3)
LIKE(like_three, 4)

RULE(factory_self) { return like(&args[0], rt_fact_tensor_dtype(&args[0]), outs); }

RULE(factory_self_mask) {
    outs[0] = args[0];
    return like(&args[0], RT_bool, &outs[1]);
}

static rt_dtype number_dtype(const rt_fact *f) {
    switch (f->kind) {
    case RT_FACT_BOOL: return RT_bool;
    case RT_FACT_INT: return RT_int64;
    case RT_FACT_FLOAT: return RT_float32;
    case RT_FACT_COMPLEX: return RT_complex64;
    default: return RT_DTYPE_UNKNOWN;
    }
}

RULE(full) { return sized(ic, &args[0], asked_dtype(&args[2], number_dtype(&args[1])), outs); }

RULE(zero_rank) { /* scalar_tensor */
    outs[0] = rt_fact_tensor(asked_dtype(&args[1], RT_float32), 0, NULL);
    return NULL;
}

static const rt_fact *first_leaf(const rt_fact *f) {
    while (f->kind == RT_FACT_LIST && f->items)
        f = f->items;
    return f;
}

RULE(tensor_data) { /* nested lists of numbers */
    rt_dim dims[RT_MAX_RANK];
    int rank = 0;
    const rt_fact *f = &args[0];
    rt_dtype dtype = asked_dtype(&args[1], number_dtype(first_leaf(f)));
    outs[0] = rt_fact_tensor(dtype, -1, NULL);
    if (f->kind == RT_FACT_TENSOR)
        return like(f, asked_dtype(&args[1], f->dtype), outs);
    bool is_known = number_dtype(f) != RT_DTYPE_UNKNOWN;
    while (f->kind == RT_FACT_LIST && rank < RT_MAX_RANK) {
        dims[rank++] = f->count_known ? (rt_dim)f->count : RT_DIM_UNKNOWN;
        f = f->items;
        if (!f)
            return NULL;
        is_known = number_dtype(f) != RT_DTYPE_UNKNOWN;
    }
    if (!is_known)
        return NULL;
    rt_dim *copy = rt_new_dims(ic, rank);
    for (int i = 0; i < rank; i++)
        copy[i] = dims[i];
    outs[0] = rt_fact_tensor(dtype, rank, copy);
    if (rank == 0 && args[0].kind != RT_FACT_FLOAT && args[0].is_known) {
        outs[0].is_known = true;
        outs[0].dim = args[0].dim;
    }
    return NULL;
}

static ts_status vector(const rt_infer_context *ic, rt_dim n, rt_dtype dtype, rt_fact *out) {
    rt_dim *dims = rt_new_dims(ic, 1);
    dims[0] = n;
    *out = rt_fact_tensor(dtype, 1, dims);
    return NULL;
}

static rt_dim int_dim(const rt_fact *f) {
    return f->kind == RT_FACT_INT && f->is_known ? f->dim : RT_DIM_UNKNOWN;
}

#define VECTOR(name, count_at, dtype_at, other)                                                    \
    RULE(name) {                                                                                   \
        return vector(ic, int_dim(&args[count_at]), asked_dtype(&args[dtype_at], other), outs);    \
    }
VECTOR(vector_1, 0, 1, RT_float32)
VECTOR(vector_2, 0, 2, RT_float32)
VECTOR(vector_3, 0, 3, RT_float32)
VECTOR(vector_4, 0, 4, RT_float32)
VECTOR(randperm, 0, 1, RT_int64)
VECTOR(randperm_generator, 0, 2, RT_int64)
VECTOR(linspace, 2, 3, RT_float32)
VECTOR(logspace, 2, 4, RT_float32)

static ts_status arange(const rt_infer_context *ic, const rt_fact *start, const rt_fact *end,
                        const rt_fact *step, const rt_fact *dtype, rt_fact *out) {
    bool ints = end->kind == RT_FACT_INT && (!start || start->kind == RT_FACT_INT) &&
                (!step || step->kind == RT_FACT_INT);
    bool any_float = end->kind == RT_FACT_FLOAT || (start && start->kind == RT_FACT_FLOAT) ||
                     (step && step->kind == RT_FACT_FLOAT);
    rt_dtype other = ints ? RT_int64 : any_float ? RT_float32 : RT_DTYPE_UNKNOWN;
    rt_dim n = RT_DIM_UNKNOWN;
    int64_t by = 1;
    if (ints && (!step || (rt_fact_int(step, &by) && by > 0))) {
        n = int_dim(end);
        rt_dim first = start ? int_dim(start) : 0;
        if (n != RT_DIM_UNKNOWN && first != RT_DIM_UNKNOWN)
            n = rt_dim_sub(ic, n, first);
        else
            n = RT_DIM_UNKNOWN;
        if (by != 1 && n != RT_DIM_UNKNOWN)
            n = rt_dim_floordiv(ic, rt_dim_add(ic, n, by - 1), by);
        if (rt_dim_is_constant(n) && n < 0)
            n = RT_DIM_UNKNOWN;
    }
    return vector(ic, n, asked_dtype(dtype, other), out);
}

RULE(arange) { return arange(ic, NULL, &args[0], NULL, &args[1], outs); }
RULE(arange_start) { return arange(ic, &args[0], &args[1], NULL, &args[2], outs); }
RULE(arange_step) { return arange(ic, &args[0], &args[1], &args[2], &args[3], outs); }

RULE(range) { return vector(ic, RT_DIM_UNKNOWN, RT_DTYPE_UNKNOWN, outs); }

RULE(eye) {
    rt_dim *dims = rt_new_dims(ic, 2);
    dims[0] = dims[1] = int_dim(&args[0]);
    outs[0] = rt_fact_tensor(asked_dtype(&args[1], RT_float32), 2, dims);
    return NULL;
}

RULE(eye_m) {
    rt_dim *dims = rt_new_dims(ic, 2);
    dims[0] = int_dim(&args[0]);
    dims[1] = int_dim(&args[1]);
    outs[0] = rt_fact_tensor(asked_dtype(&args[2], RT_float32), 2, dims);
    return NULL;
}

RULE(tri_indices) {
    rt_dim *dims = rt_new_dims(ic, 2);
    dims[0] = 2;
    dims[1] = RT_DIM_UNKNOWN;
    outs[0] = rt_fact_tensor(asked_dtype(&args[3], RT_int64), 2, dims);
    return NULL;
}

RULE(multinomial) {
    outs[0] = rt_fact_tensor(RT_int64, -1, NULL);
    if (!rt_fact_has_shape(&args[0]) || args[0].rank < 1)
        return NULL;
    rt_dim *dims = rt_new_dims(ic, args[0].rank);
    for (int i = 0; i + 1 < args[0].rank; i++)
        dims[i] = args[0].dims[i];
    dims[args[0].rank - 1] = int_dim(&args[1]);
    outs[0] = rt_fact_tensor(RT_int64, args[0].rank, dims);
    return NULL;
}

RULE(like_second) { return like(&args[1], rt_fact_tensor_dtype(&args[1]), outs); }

RULE(broadcast_two) {
    rt_dim *dims;
    int rank;
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), -1, NULL);
    if (!rt_fact_has_shape(&args[0]) || !rt_fact_has_shape(&args[1]))
        return NULL;
    TS_TRY(rt_fact_broadcast(ic, args[0].dims, args[0].rank, args[1].dims, args[1].rank, &dims,
                             &rank));
    outs[0] = rt_fact_tensor(rt_fact_tensor_dtype(&args[0]), rank, dims);
    return NULL;
}

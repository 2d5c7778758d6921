/* runtime/ops/infer_pointwise.c - dtype, rank and sizes of elementwise results. */
#include "runtime/ops/tensor_ops.h"

/* False where the dtype cannot be known. */
static bool add_fact(rt_promotion *p, const rt_fact *f) {
    switch (f->kind) {
    case RT_FACT_TENSOR:
        if (f->dtype == RT_DTYPE_UNKNOWN || f->rank < 0)
            return false;
        rt_promotion_add_tensor(p, f->dtype, f->rank);
        return true;
    case RT_FACT_BOOL:
        rt_promotion_add_number(p, RT_bool);
        return true;
    case RT_FACT_INT:
        rt_promotion_add_number(p, RT_int64);
        return true;
    case RT_FACT_FLOAT:
        rt_promotion_add_number(p, RT_float32);
        return true;
    case RT_FACT_COMPLEX:
        rt_promotion_add_number(p, RT_complex64);
        return true;
    case RT_FACT_NONE:
        return true;
    case RT_FACT_UNKNOWN:
    case RT_FACT_STR:
    case RT_FACT_DEVICE:
    case RT_FACT_LIST:
    case RT_FACT_OTHER:
        return false;
    }
    return false;
}

static rt_dtype promote_facts(const rt_fact *args, int count) {
    rt_promotion p = RT_PROMOTION_START;
    bool is_known = true, all_same = true;
    for (int i = 0; i < count; i++) {
        is_known = is_known && add_fact(&p, &args[i]);
        all_same = all_same && args[i].kind == RT_FACT_TENSOR && args[i].dtype == args[0].dtype;
    }
    if (all_same)
        return args[0].dtype; /* ranks do not matter */
    return is_known ? rt_promotion_result(&p) : RT_DTYPE_UNKNOWN;
}

static bool is_number_fact(const rt_fact *f) {
    return f->kind == RT_FACT_BOOL || f->kind == RT_FACT_INT || f->kind == RT_FACT_FLOAT ||
           f->kind == RT_FACT_COMPLEX || f->kind == RT_FACT_NONE;
}

static ts_status shape_of(const rt_infer_context *ic, const rt_fact *args, int count,
                          rt_fact *out) {
    int rank = 0;
    rt_dim *dims = rt_new_dims(ic, 0);
    *out = rt_fact_tensor(RT_DTYPE_UNKNOWN, -1, NULL);
    for (int i = 0; i < count; i++) {
        /* A Scalar that is not known to be a number is one all the same: no shape of its own. */
        if (is_number_fact(&args[i]) || args[i].kind == RT_FACT_UNKNOWN)
            continue;
        if (!rt_fact_has_shape(&args[i]))
            return NULL;
        TS_TRY(rt_fact_broadcast(ic, dims, rank, args[i].dims, args[i].rank, &dims, &rank));
    }
    *out = rt_fact_tensor(RT_DTYPE_UNKNOWN, rank, dims);
    return NULL;
}

static rt_dtype to_float(rt_dtype dtype) {
    char category = rt_dtype_category(dtype);
    return category == 'i' || category == 'b' ? RT_float32 : dtype;
}

enum { SAME, FLOAT, BOOL, REAL, FLOAT_REAL };

static ts_status elementwise(const rt_infer_context *ic, const rt_fact *args, int count,
                             int first_typed, int rule, rt_fact *out) {
    TS_TRY(shape_of(ic, args, count, out));
    rt_dtype dtype = promote_facts(args + first_typed, count - first_typed);
    if (rule == BOOL)
        dtype = RT_bool;
    else if (dtype != RT_DTYPE_UNKNOWN) {
        if (rule == FLOAT || rule == FLOAT_REAL)
            dtype = to_float(dtype);
        if (rule == REAL || rule == FLOAT_REAL)
            dtype = rt_dtype_real(dtype);
    }
    out->dtype = dtype;
    return NULL;
}

RULE(unary) { return elementwise(ic, args, 1, 0, SAME, outs); }
RULE(unary_float) { return elementwise(ic, args, 1, 0, FLOAT, outs); }
RULE(unary_bool) { return elementwise(ic, args, 1, 0, BOOL, outs); }
RULE(unary_real) { return elementwise(ic, args, 1, 0, REAL, outs); }
RULE(unary_float_real) { return elementwise(ic, args, 1, 0, FLOAT_REAL, outs); }
RULE(binary) { return elementwise(ic, args, 2, 0, SAME, outs); }
RULE(binary_float) { return elementwise(ic, args, 2, 0, FLOAT, outs); }
RULE(binary_bool) { return elementwise(ic, args, 2, 0, BOOL, outs); }
RULE(ternary) { return elementwise(ic, args, 3, 0, SAME, outs); }
RULE(where) {
    const rt_fact *c = &args[0];
    if (c->kind == RT_FACT_TENSOR && c->dtype != RT_DTYPE_UNKNOWN && c->dtype != RT_bool && c->dtype != RT_uint8)
        return ts_raise("RuntimeError",
                        "where expected condition to be a boolean tensor, but got a tensor with dtype %s",
                        rt_dtype_message_name(c->dtype));
    return elementwise(ic, args, 3, 1, SAME, outs);
}
RULE(polygamma) { return elementwise(ic, args + 1, 1, 0, FLOAT, outs); }

RULE(masked_fill) {
    if (args[2].kind == RT_FACT_TENSOR && args[2].rank > 0)
        return ts_raise("RuntimeError",
                        "masked_fill_ only supports a 0-dimensional value tensor, but got tensor "
                        "with %d dimension(s).",
                        args[2].rank);
    if (args[1].kind == RT_FACT_TENSOR && args[1].dtype != RT_DTYPE_UNKNOWN && args[1].dtype != RT_bool)
        return ts_raise("RuntimeError", "masked_fill_ only supports boolean masks, but got mask with dtype %s",
                        rt_dtype_message_name(args[1].dtype));
    TS_TRY(shape_of(ic, args, 2, outs));
    outs[0].dtype = args[0].kind == RT_FACT_TENSOR ? args[0].dtype : RT_DTYPE_UNKNOWN;
    return NULL;
}

RULE(lerp) {
    TS_TRY(shape_of(ic, args, 3, outs));
    outs[0].dtype = args[0].kind == RT_FACT_TENSOR ? args[0].dtype : RT_DTYPE_UNKNOWN;
    return NULL;
}

/* The element of a known 0-d integer tensor, or a known int. */
static rt_dim known_int(const rt_fact *f) {
    if (f->kind == RT_FACT_INT && f->is_known)
        return f->dim;
    if (f->kind == RT_FACT_TENSOR && f->rank == 0 && f->dtype == RT_int64)
        return f->dim;
    return RT_DIM_UNKNOWN;
}

static bool is_int_scalar(const rt_fact *f) {
    return f->kind == RT_FACT_TENSOR && f->rank == 0 && f->dtype == RT_int64;
}

/* Traces compute sizes with 0-d integer tensors: they are followed. */
static ts_status arithmetic(const rt_infer_context *ic, const rt_fact *args, size_t arg_count,
                            rt_dim (*op)(const rt_infer_context *, rt_dim, rt_dim), bool reversed,
                            rt_fact *out) {
    TS_TRY(elementwise(ic, args, 2, 0, SAME, out));
    if (!is_int_scalar(out))
        return NULL;
    rt_dim a = known_int(&args[reversed]), b = known_int(&args[!reversed]);
    if (arg_count > 2) {
        int64_t alpha;
        if (!rt_fact_int(&args[2], &alpha))
            return NULL;
        b = b == RT_DIM_UNKNOWN ? b : rt_dim_mul(ic, b, alpha);
    }
    if (a != RT_DIM_UNKNOWN && b != RT_DIM_UNKNOWN)
        out->dim = op(ic, a, b);
    return NULL;
}

RULE(add) { return arithmetic(ic, args, arg_count, rt_dim_add, false, outs); }
RULE(sub) { return arithmetic(ic, args, arg_count, rt_dim_sub, false, outs); }
RULE(rsub) { return arithmetic(ic, args, arg_count, rt_dim_sub, true, outs); }
RULE(mul) { return arithmetic(ic, args, 2, rt_dim_mul, false, outs); }
RULE(floor_divide) { return arithmetic(ic, args, 2, rt_dim_floordiv, false, outs); }

RULE(div_mode) {
    bool is_floor =
        args[2].kind == RT_FACT_STR && args[2].is_known && ts_str_is(args[2].s, "floor");
    if (is_floor)
        return arithmetic(ic, args, 2, rt_dim_floordiv, false, outs);
    TS_TRY(elementwise(ic, args, 2, 0, SAME, outs));
    if (args[2].kind == RT_FACT_NONE && outs[0].dtype != RT_DTYPE_UNKNOWN)
        outs[0].dtype = to_float(outs[0].dtype);
    else if (args[2].kind != RT_FACT_STR)
        outs[0].dtype = RT_DTYPE_UNKNOWN;
    return NULL;
}

RULE(float_power) {
    TS_TRY(elementwise(ic, args, 2, 0, SAME, outs));
    if (outs[0].dtype != RT_DTYPE_UNKNOWN)
        outs[0].dtype = rt_dtype_is_complex(outs[0].dtype) ? RT_complex128 : RT_float64;
    return NULL;
}

/* bool squared is pow(bool, 2): int64. */
RULE(square) {
    TS_TRY(elementwise(ic, args, 1, 0, SAME, outs));
    if (outs[0].dtype == RT_bool)
        outs[0].dtype = RT_int64;
    return NULL;
}

RULE(complex_pair) {
    TS_TRY(elementwise(ic, args, 2, 0, SAME, outs));
    if (outs[0].dtype != RT_DTYPE_UNKNOWN)
        outs[0].dtype = rt_dtype_complex(outs[0].dtype);
    return NULL;
}

RULE(same) {
    outs[0] = args[0];
    return NULL;
}

RULE(view_as_real) {
    outs[0] = rt_fact_tensor(RT_DTYPE_UNKNOWN, -1, NULL);
    if (args[0].kind == RT_FACT_TENSOR && args[0].dtype != RT_DTYPE_UNKNOWN)
        outs[0].dtype = rt_dtype_real(args[0].dtype);
    if (rt_fact_has_shape(&args[0]) && args[0].rank < RT_MAX_RANK) {
        rt_dim *dims = rt_new_dims(ic, args[0].rank + 1);
        for (int d = 0; d < args[0].rank; d++)
            dims[d] = args[0].dims[d];
        dims[args[0].rank] = 2;
        outs[0].rank = args[0].rank + 1;
        outs[0].dims = dims;
    }
    return NULL;
}

RULE(view_as_complex) {
    outs[0] = rt_fact_tensor(RT_DTYPE_UNKNOWN, -1, NULL);
    if (args[0].kind == RT_FACT_TENSOR && args[0].dtype != RT_DTYPE_UNKNOWN)
        outs[0].dtype = rt_dtype_complex(args[0].dtype);
    if (rt_fact_has_shape(&args[0]) && args[0].rank > 0) {
        outs[0].rank = args[0].rank - 1;
        outs[0].dims = args[0].dims;
    }
    return NULL;
}

RULE(frexp) {
    TS_TRY(elementwise(ic, args, 1, 0, SAME, outs));
    outs[1] = outs[0];
    outs[1].dtype = RT_int32;
    return NULL;
}

/* runtime/ops/infer_fft.c - shapes and dtypes of Fourier transforms. */
#include "runtime/ops/tensor_ops.h"

typedef enum fft_kind { C2C, R2C, C2R } fft_kind;

static rt_dtype result_dtype(const rt_fact *x, bool is_real) {
    if (x->kind != RT_FACT_TENSOR || x->dtype == RT_DTYPE_UNKNOWN)
        return RT_DTYPE_UNKNOWN;
    bool wide = x->dtype == RT_float64 || x->dtype == RT_complex128;
    return is_real ? (wide ? RT_float64 : RT_float32) : wide ? RT_complex128 : RT_complex64;
}

static ts_status transformed(const rt_infer_context *ic, const rt_fact *args, fft_kind kind,
                             bool one_dim, rt_fact *out) {
    const rt_fact *x = &args[0];
    rt_dtype dtype = result_dtype(x, kind == C2R);
    int64_t which[RT_MAX_RANK];
    rt_dim sizes[RT_MAX_RANK];
    int count, size_count = 0;
    *out = rt_fact_tensor(dtype, -1, NULL);
    if (!rt_fact_has_shape(x) || x->rank < 1)
        return NULL;
    rt_dim *dims = rt_new_dims(ic, x->rank);
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    bool has_sizes = args[1].kind != RT_FACT_NONE;
    if (has_sizes && !rt_fact_dims(&args[1], sizes, &size_count))
        return NULL;
    if (args[2].kind == RT_FACT_NONE && !one_dim) {
        count = has_sizes ? size_count : x->rank;
        for (int i = 0; i < count && i < RT_MAX_RANK; i++)
            which[i] = x->rank - count + i;
    } else if (one_dim) {
        count = 1;
        if (!rt_fact_int(&args[2], &which[0]))
            return NULL;
    } else if (!rt_fact_ints(&args[2], which, &count)) {
        return NULL;
    }
    if (has_sizes && size_count != count)
        return NULL;
    for (int i = 0; i < count; i++) {
        int64_t d = which[i] < 0 ? which[i] + x->rank : which[i];
        if (d < 0 || d >= x->rank)
            return NULL;
        bool is_last = i == count - 1;
        rt_dim n = has_sizes ? sizes[i] : dims[d];
        if (has_sizes && n == -1)
            n = dims[d];
        else if (!has_sizes && kind == C2R && is_last)
            n = n == RT_DIM_UNKNOWN ? n : rt_dim_mul(ic, 2, rt_dim_sub(ic, n, 1));
        if (kind == R2C && is_last && n != RT_DIM_UNKNOWN)
            n = rt_dim_add(ic, rt_dim_floordiv(ic, n, 2), 1);
        dims[d] = n;
    }
    *out = rt_fact_tensor(dtype, x->rank, dims);
    return NULL;
}

RULE(fft_c2c_one) { return transformed(ic, args, C2C, true, outs); }
RULE(fft_r2c_one) { return transformed(ic, args, R2C, true, outs); }
RULE(fft_c2r_one) { return transformed(ic, args, C2R, true, outs); }
RULE(fft_c2c_many) { return transformed(ic, args, C2C, false, outs); }
RULE(fft_r2c_many) { return transformed(ic, args, R2C, false, outs); }
RULE(fft_c2r_many) { return transformed(ic, args, C2R, false, outs); }

RULE(stft) {
    outs[0] = rt_fact_tensor(RT_DTYPE_UNKNOWN, -1, NULL);
    return NULL;
}

RULE(istft) {
    const rt_fact *x = &args[0];
    int64_t as_complex;
    outs[0] = rt_fact_tensor(RT_DTYPE_UNKNOWN, -1, NULL);
    if (rt_fact_int(&args[9], &as_complex))
        outs[0].dtype = result_dtype(x, !as_complex);
    return NULL;
}

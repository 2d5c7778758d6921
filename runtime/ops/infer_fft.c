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

/* The dtype of a spectrum, or that of its pairs of reals; RT_DTYPE_UNKNOWN where the arguments do not say. */
static rt_dtype spectrum_dtype(const rt_fact *x, const rt_fact *window, const rt_fact *as_complex) {
    int64_t yes;
    bool known = window->kind == RT_FACT_NONE ||
                 (window->kind == RT_FACT_TENSOR && window->dtype != RT_DTYPE_UNKNOWN);
    return known && rt_fact_int(as_complex, &yes) ? result_dtype(x, !yes) : RT_DTYPE_UNKNOWN;
}

/* The length of a tensor's last dim, more edges, in frames of n_fft every hop. */
static rt_dim frame_count(const rt_infer_context *ic, rt_dim length, int64_t n_fft, int64_t edge,
                          const rt_fact *hop) {
    int64_t step = n_fft / 4;
    if ((hop->kind != RT_FACT_NONE && !rt_fact_int(hop, &step)) || step < 1 ||
        length == RT_DIM_UNKNOWN)
        return RT_DIM_UNKNOWN;
    rt_dim whole = rt_dim_add(ic, length, 2 * edge - n_fft);
    return rt_dim_add(ic, rt_dim_floordiv(ic, whole, step), 1);
}

static ts_status spectrum(const rt_infer_context *ic, const rt_fact *args, bool center,
                          const rt_fact *onesided, const rt_fact *return_complex, rt_fact *out) {
    const rt_fact *x = &args[0];
    int64_t n_fft, half, yes;
    *out = rt_fact_tensor(spectrum_dtype(x, &args[4], return_complex), -1, NULL);
    if (!rt_fact_has_shape(x) || x->rank < 1 || x->rank > 2 || !rt_fact_int(&args[1], &n_fft) ||
        n_fft < 1 || !rt_fact_int(return_complex, &yes) || out->dtype == RT_DTYPE_UNKNOWN)
        return NULL;
    if (onesided->kind == RT_FACT_NONE)
        half = !rt_dtype_is_complex(x->dtype) &&
               (args[4].kind == RT_FACT_NONE || !rt_dtype_is_complex(args[4].dtype));
    else if (!rt_fact_int(onesided, &half))
        return NULL;
    rt_dim *dims = rt_new_dims(ic, 4);
    int rank = 0;
    if (x->rank == 2)
        dims[rank++] = x->dims[0];
    dims[rank++] = half ? n_fft / 2 + 1 : n_fft;
    dims[rank++] = frame_count(ic, x->dims[x->rank - 1], n_fft, center ? n_fft / 2 : 0, &args[2]);
    if (!yes)
        dims[rank++] = 2;
    *out = rt_fact_tensor(out->dtype, rank, dims);
    return NULL;
}

RULE(stft) { return spectrum(ic, args, false, &args[6], &args[7], outs); }
RULE(stft_center) {
    int64_t center;
    if (!rt_fact_int(&args[5], &center)) {
        outs[0] = rt_fact_tensor(RT_DTYPE_UNKNOWN, -1, NULL);
        return NULL;
    }
    return spectrum(ic, args, center != 0, &args[8], &args[9], outs);
}

RULE(frequencies) {
    outs[0] = rt_fact_tensor(RT_DTYPE_UNKNOWN, 1, NULL);
    rt_dim *dims = rt_new_dims(ic, 1);
    dims[0] = RT_DIM_UNKNOWN;
    outs[0].dims = dims;
    return NULL;
}

RULE(istft) {
    const rt_fact *x = &args[0];
    int64_t as_complex;
    outs[0] = rt_fact_tensor(RT_DTYPE_UNKNOWN, -1, NULL);
    if (rt_fact_int(&args[9], &as_complex))
        outs[0].dtype = result_dtype(x, !as_complex);
    if (!rt_fact_has_shape(x) || x->rank < 2 || x->rank > 3)
        return NULL;
    int64_t length, center, n_fft, hop;
    rt_dim *dims = rt_new_dims(ic, 2), frames = x->dims[x->rank - 1], kept = RT_DIM_UNKNOWN;
    dims[0] = x->dims[0];
    if (rt_fact_int(&args[8], &length)) {
        kept = length;
    } else if (args[8].kind == RT_FACT_NONE && rt_fact_int(&args[5], &center) &&
               rt_fact_int(&args[1], &n_fft) && frames != RT_DIM_UNKNOWN &&
               (args[2].kind == RT_FACT_NONE ? (hop = n_fft / 4, true) : rt_fact_int(&args[2], &hop))) {
        kept = rt_dim_add(ic, rt_dim_mul(ic, rt_dim_sub(ic, frames, 1), hop), n_fft);
        if (center)
            kept = rt_dim_sub(ic, kept, n_fft / 2 * 2);
    }
    dims[x->rank - 2] = kept;
    outs[0] = rt_fact_tensor(outs[0].dtype, x->rank - 1, dims);
    return NULL;
}

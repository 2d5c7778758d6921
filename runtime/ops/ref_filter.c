/* runtime/ops/ref_filter.c - a recursive filter along time, as torchaudio has it: each value needs those
 * before it, so a loop in the scripting language would dispatch operators for every sample. */
#include <stdlib.h>

#include "runtime/ops/tensor_ops.h"

/* y[i + order - 1] = x[i] - sum over j of a[j] * y[i + j]; what y begins with is the state. */
static void filter_row(const rt_tensor *x, const char *in, const rt_tensor *out_tensor, char *out,
                       const double *a, int64_t order, double *y) {
    rt_dtype dtype = rt_dtype_of(x);
    int64_t in_step = x->strides[2] * rt_element_bytes(x);
    int64_t out_step = out_tensor->strides[2] * rt_element_bytes(out_tensor);
    for (int64_t i = 0; i < out_tensor->sizes[2]; i++)
        y[i] = rt_load_double(dtype, out + i * out_step);
    for (int64_t i = 0; i < x->sizes[2]; i++) {
        double sum = rt_load_double(dtype, in + i * in_step);
        for (int64_t j = 0; j < order; j++)
            sum -= a[j] * y[i + j];
        rt_store_double(dtype, out + (i + order - 1) * out_step, sum);
        /* as it is stored: a float32 filter feeds back what float32 holds */
        y[i + order - 1] = dtype == RT_float32 ? (double)(float)sum : sum;
    }
}

KERNEL(torchaudio_lfilter) {
    rt_tensor *x, *a, *out;
    TS_TRY(rt_need_tensor(args[0], &x));
    TS_TRY(rt_need_tensor(args[1], &a));
    TS_TRY(rt_need_tensor(args[2], &out));
    TS_TRY(rt_check_writable(out));
    rt_dtype dtype = rt_dtype_of(x);
    if ((dtype != RT_float32 && dtype != RT_float64) || rt_dtype_of(a) != dtype ||
        rt_dtype_of(out) != dtype)
        return ts_raise("RuntimeError", "_lfilter_core_loop: expected float32 or float64 tensors of one dtype");
    int64_t order = a->rank == 2 ? a->sizes[1] : 0;
    if (order < 1 || x->rank != 3 || out->rank != 3 || out->sizes[0] != x->sizes[0] ||
        out->sizes[1] != x->sizes[1] || a->sizes[0] != x->sizes[1] ||
        out->sizes[2] - x->sizes[2] != order - 1)
        return ts_raise("RuntimeError", "_lfilter_core_loop: the sizes of waveform, coefficients and "
                                        "padded output do not fit");
    double *history = malloc((size_t)(out->sizes[2] + order) * sizeof *history);
    if (!history)
        return ts_no_memory();
    double *row = history + out->sizes[2];
    int64_t bytes = rt_element_bytes(x);
    for (int64_t b = 0; b < x->sizes[0]; b++)
        for (int64_t ch = 0; ch < x->sizes[1]; ch++) {
            for (int64_t j = 0; j < order; j++)
                row[j] = rt_load_double(dtype, (const char *)a->data + (ch * a->strides[0] + j * a->strides[1]) * bytes);
            filter_row(x, (const char *)x->data + (b * x->strides[0] + ch * x->strides[1]) * bytes, out,
                       (char *)out->data + (b * out->strides[0] + ch * out->strides[1]) * bytes, row, order, history);
        }
    free(history);
    outs[0] = rt_retain(args[2]);
    return NULL;
}

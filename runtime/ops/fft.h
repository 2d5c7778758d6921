/* runtime/ops/fft.h - discrete Fourier transforms of any length, in double precision. */
#ifndef RUNTIME_OPS_FFT_H
#define RUNTIME_OPS_FFT_H

#include "runtime/values/tensor.h"

typedef struct rt_fft rt_fft;

/* A plan for length n >= 1: mixed radix, or Bluestein where a prime factor is large. */
ts_status rt_fft_make(int64_t n, rt_fft **out) TS_WARN_UNUSED;
void rt_fft_release(rt_fft *plan);
/* Transforms x[n] in place, not scaled: forward is exp(-2 pi i jk / n). */
void rt_fft_run(rt_fft *plan, bool forward, rt_complex128 *x);

#endif

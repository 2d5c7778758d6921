/* runtime/ops/fft.c - Cooley and Tukey's transform for small prime factors, Bluestein's else.
 *
 * Bluestein, "A linear filtering approach to the computation of discrete Fourier transform" (1970):
 * jk = (j^2 + k^2 - (j - k)^2) / 2 turns the sum into a convolution, done with a power of two. */
#include "runtime/ops/fft.h"

#include <math.h>
#include <stdlib.h>

enum { LARGEST_FACTOR = 31 };

struct rt_fft {
    int64_t n;
    rt_complex128 *roots;   /* exp(-2 pi i k / n) */
    rt_complex128 *scratch; /* [n] */
    /* Bluestein */
    rt_fft *inner;          /* of length m, or NULL */
    rt_complex128 *chirp;   /* [n] exp(-pi i k^2 / n) */
    rt_complex128 *filter;  /* [m] transform of the conjugated chirp */
    rt_complex128 *work;    /* [m] */
};

static rt_complex128 times(rt_complex128 a, rt_complex128 b) {
    return (rt_complex128){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static rt_complex128 root(int64_t k, int64_t n) {
    double angle = -2 * 3.14159265358979323846 * (double)k / (double)n;
    return (rt_complex128){cos(angle), sin(angle)};
}

static int64_t smallest_factor(int64_t n) {
    if (n % 4 == 0)
        return 4;
    for (int64_t p = 2; p * p <= n; p++)
        if (n % p == 0)
            return p;
    return n;
}

static bool has_large_factor(int64_t n) {
    for (int64_t p = 2; p <= LARGEST_FACTOR; p++)
        while (n % p == 0)
            n /= p;
    return n > 1;
}

/* out[n] = transform of in[0], in[stride], ...; step: distance of its roots in the table. */
static void mixed_radix(const rt_fft *plan, const rt_complex128 *in, rt_complex128 *out, int64_t n,
                        int64_t stride, int64_t step) {
    if (n == 1) {
        out[0] = in[0];
        return;
    }
    int64_t p = smallest_factor(n), m = n / p;
    for (int64_t r = 0; r < p; r++)
        mixed_radix(plan, in + r * stride, out + r * m, m, stride * p, step * p);
    rt_complex128 t[LARGEST_FACTOR];
    for (int64_t k = 0; k < m; k++) {
        t[0] = out[k];
        for (int64_t r = 1; r < p; r++)
            t[r] = times(out[r * m + k], plan->roots[r * k * step]);
        if (p == 2) {
            out[k] = (rt_complex128){t[0].re + t[1].re, t[0].im + t[1].im};
            out[m + k] = (rt_complex128){t[0].re - t[1].re, t[0].im - t[1].im};
        } else if (p == 4) {
            rt_complex128 a = {t[0].re + t[2].re, t[0].im + t[2].im};
            rt_complex128 b = {t[0].re - t[2].re, t[0].im - t[2].im};
            rt_complex128 c = {t[1].re + t[3].re, t[1].im + t[3].im};
            rt_complex128 d = {t[1].im - t[3].im, t[3].re - t[1].re}; /* -i (t1 - t3) */
            out[k] = (rt_complex128){a.re + c.re, a.im + c.im};
            out[m + k] = (rt_complex128){b.re + d.re, b.im + d.im};
            out[2 * m + k] = (rt_complex128){a.re - c.re, a.im - c.im};
            out[3 * m + k] = (rt_complex128){b.re - d.re, b.im - d.im};
        } else {
            for (int64_t q = 0; q < p; q++) {
                rt_complex128 sum = t[0];
                for (int64_t r = 1; r < p; r++) {
                    rt_complex128 v = times(t[r], plan->roots[r * q % p * m * step]);
                    sum.re += v.re;
                    sum.im += v.im;
                }
                out[q * m + k] = sum;
            }
        }
    }
}

void rt_fft_release(rt_fft *plan) {
    if (!plan)
        return;
    rt_fft_release(plan->inner);
    free(plan->roots);
    free(plan->scratch);
    free(plan->chirp);
    free(plan->filter);
    free(plan->work);
    free(plan);
}

static ts_status make_bluestein(rt_fft *plan) {
    int64_t n = plan->n, m = 1;
    while (m < 2 * n - 1)
        m *= 2;
    plan->chirp = calloc((size_t)n, sizeof *plan->chirp);
    plan->filter = calloc((size_t)m, sizeof *plan->filter);
    plan->work = calloc((size_t)m, sizeof *plan->work);
    if (!plan->chirp || !plan->filter || !plan->work)
        return ts_no_memory();
    TS_TRY(rt_fft_make(m, &plan->inner));
    for (int64_t k = 0; k < n; k++) {
        plan->chirp[k] = root((int64_t)((uint64_t)k * (uint64_t)k % (uint64_t)(2 * n)), 2 * n);
        plan->filter[k] = (rt_complex128){plan->chirp[k].re, -plan->chirp[k].im};
        if (k)
            plan->filter[m - k] = plan->filter[k];
    }
    rt_fft_run(plan->inner, true, plan->filter);
    return NULL;
}

ts_status rt_fft_make(int64_t n, rt_fft **out) {
    rt_fft *plan = calloc(1, sizeof *plan);
    ts_status status = NULL;
    *out = NULL;
    if (!plan)
        return ts_no_memory();
    plan->n = n;
    if (has_large_factor(n)) {
        status = make_bluestein(plan);
    } else {
        plan->roots = calloc((size_t)n, sizeof *plan->roots);
        plan->scratch = calloc((size_t)n, sizeof *plan->scratch);
        if (!plan->roots || !plan->scratch)
            status = ts_no_memory();
        for (int64_t k = 0; k < n && !status; k++)
            plan->roots[k] = root(k, n);
    }
    if (status)
        rt_fft_release(plan);
    else
        *out = plan;
    return status;
}

static void forward(rt_fft *plan, rt_complex128 *x) {
    int64_t n = plan->n;
    if (!plan->inner) {
        memcpy(plan->scratch, x, (size_t)n * sizeof *x);
        mixed_radix(plan, plan->scratch, x, n, 1, 1);
        return;
    }
    int64_t m = plan->inner->n;
    memset(plan->work, 0, (size_t)m * sizeof *x);
    for (int64_t k = 0; k < n; k++)
        plan->work[k] = times(x[k], plan->chirp[k]);
    rt_fft_run(plan->inner, true, plan->work);
    for (int64_t k = 0; k < m; k++)
        plan->work[k] = times(plan->work[k], plan->filter[k]);
    rt_fft_run(plan->inner, false, plan->work);
    for (int64_t k = 0; k < n; k++) {
        rt_complex128 v = times(plan->work[k], plan->chirp[k]);
        x[k] = (rt_complex128){v.re / (double)m, v.im / (double)m};
    }
}

void rt_fft_run(rt_fft *plan, bool is_forward, rt_complex128 *x) {
    /* The inverse swaps re and im before and after. */
    for (int64_t k = 0; k < plan->n && !is_forward; k++)
        x[k] = (rt_complex128){x[k].im, x[k].re};
    forward(plan, x);
    for (int64_t k = 0; k < plan->n && !is_forward; k++)
        x[k] = (rt_complex128){x[k].im, x[k].re};
}

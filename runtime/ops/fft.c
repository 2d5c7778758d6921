/* runtime/ops/fft.c - Stockham's form of the fast transform for small prime factors, Bluestein's else.
 *
 * Stockham, "High-speed convolution and correlation" (1966): stages that leave values in order, so that inner
 * loops run over neighbours.
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

static int64_t next_factor(int64_t n) {
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

static rt_complex128 plus(rt_complex128 a, rt_complex128 b) {
    return (rt_complex128){a.re + b.re, a.im + b.im};
}
static rt_complex128 minus(rt_complex128 a, rt_complex128 b) {
    return (rt_complex128){a.re - b.re, a.im - b.im};
}
/* a + s * (-i b): the rotations by a quarter that small transforms have in common */
static rt_complex128 turned(rt_complex128 a, rt_complex128 b, double s) {
    return (rt_complex128){a.re + s * b.im, a.im - s * b.re};
}
static rt_complex128 scaled(rt_complex128 a, double s) { return (rt_complex128){a.re * s, a.im * s}; }

/* One stage of Stockham's form: row k of groups of s values, from p rows m * s apart, in order again.
 * w: the powers of this row's root. The transforms of 2 to 5 points are written out. */
static void stage_row(const rt_complex128 *x, rt_complex128 *y, int64_t p, int64_t s, int64_t apart,
                      const rt_complex128 *w) {
    if (p == 2)
        for (int64_t q = 0; q < s; q++) {
            rt_complex128 a = x[q], b = x[q + apart];
            y[q] = plus(a, b);
            y[q + s] = times(minus(a, b), w[1]);
        }
    else if (p == 3)
        for (int64_t q = 0; q < s; q++) {
            rt_complex128 a = x[q], b = x[q + apart], c = x[q + 2 * apart], sum = plus(b, c);
            rt_complex128 mid = plus(a, scaled(sum, -0.5)), side = scaled(minus(b, c), 0.86602540378443864676);
            y[q] = plus(a, sum);
            y[q + s] = times(turned(mid, side, 1), w[1]);
            y[q + 2 * s] = times(turned(mid, side, -1), w[2]);
        }
    else if (p == 4)
        for (int64_t q = 0; q < s; q++) {
            rt_complex128 a = x[q], b = x[q + apart], c = x[q + 2 * apart], d = x[q + 3 * apart];
            rt_complex128 even = plus(a, c), odd = plus(b, d), half = minus(a, c), side = minus(b, d);
            y[q] = plus(even, odd);
            y[q + s] = times(turned(half, side, 1), w[1]);
            y[q + 2 * s] = times(minus(even, odd), w[2]);
            y[q + 3 * s] = times(turned(half, side, -1), w[3]);
        }
    else
        for (int64_t q = 0; q < s; q++) { /* 5 */
            const double c1 = 0.30901699437494742410, c2 = -0.80901699437494742410;
            const double s1 = 0.95105651629515357212, s2 = 0.58778525229247312917;
            rt_complex128 a = x[q], b = x[q + apart], c = x[q + 2 * apart];
            rt_complex128 d = x[q + 3 * apart], e = x[q + 4 * apart];
            rt_complex128 be = plus(b, e), cd = plus(c, d), bm = minus(b, e), cm = minus(c, d);
            rt_complex128 one = plus(a, plus(scaled(be, c1), scaled(cd, c2)));
            rt_complex128 two = plus(a, plus(scaled(be, c2), scaled(cd, c1)));
            rt_complex128 side = plus(scaled(bm, s1), scaled(cm, s2));
            rt_complex128 other = minus(scaled(bm, s2), scaled(cm, s1));
            y[q] = plus(a, plus(be, cd));
            y[q + s] = times(turned(one, side, 1), w[1]);
            y[q + 2 * s] = times(turned(two, other, 1), w[2]);
            y[q + 3 * s] = times(turned(two, other, -1), w[3]);
            y[q + 4 * s] = times(turned(one, side, -1), w[4]);
        }
}

/* The same for any p; step: distance of the p-th roots in the table. */
static void stage_row_any(const rt_fft *plan, const rt_complex128 *x, rt_complex128 *y, int64_t p, int64_t s,
                          int64_t apart, const rt_complex128 *w) {
    int64_t step = plan->n / p;
    for (int64_t q = 0; q < s; q++)
        for (int64_t j = 0; j < p; j++) {
            rt_complex128 sum = x[q];
            int64_t at = 0;
            for (int64_t r = 1; r < p; r++) {
                at = at + j >= p ? at + j - p : at + j; /* r * j modulo p */
                sum = plus(sum, times(x[q + r * apart], plan->roots[at * step]));
            }
            y[q + j * s] = times(sum, w[j]);
        }
}

static void stockham(const rt_fft *plan, rt_complex128 *data) {
    rt_complex128 *x = data, *y = plan->scratch;
    int64_t s = 1;
    for (int64_t n = plan->n; n > 1;) {
        int64_t p = next_factor(n), m = n / p;
        for (int64_t k = 0; k < m; k++) {
            rt_complex128 w[LARGEST_FACTOR];
            for (int64_t j = 0; j < p; j++)
                w[j] = plan->roots[j * k * s]; /* s * n is the whole length */
            if (p <= 5)
                stage_row(x + s * k, y + s * p * k, p, s, s * m, w);
            else
                stage_row_any(plan, x + s * k, y + s * p * k, p, s, s * m, w);
        }
        rt_complex128 *swap = x;
        x = y;
        y = swap;
        s *= p;
        n = m;
    }
    if (x != data)
        memcpy(data, x, (size_t)plan->n * sizeof *x);
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
        stockham(plan, x);
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

/* runtime/ops/resize_taps.c - positions and weights of the upsample family. Source: PyTorch's
 * documentation of interpolate, and its results. */
#include "runtime/ops/resize.h"

#include <math.h>

static double cubic_near(double x, double a) { return ((a + 2) * x - (a + 3)) * x * x + 1; }
static double cubic_far(double x, double a) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; }

static double sinc(double x) {
    const double pi = 3.14159265358979323846;
    return x == 0 ? 1 : sin(pi * x) / (pi * x);
}

static double filter_weight(rt_resize_filter f, double x) {
    x = fabs(x);
    if (f == RT_RESIZE_LINEAR_AA)
        return x < 1 ? 1 - x : 0;
    if (f == RT_RESIZE_LANCZOS_AA)
        return x < 3 ? sinc(x) * sinc(x / 3) : 0;
    return x < 1 ? cubic_near(x, -0.5) : x < 2 ? cubic_far(x, -0.5) : 0;
}

/* Rounds where PyTorch's arithmetic would. */
static double in_type(bool is_double, double x) { return is_double ? x : (double)(float)x; }

/* scale: input positions per output position. */
static double scale_of(bool is_double, rt_resize_filter f, int64_t in, int64_t out, bool align, double given) {
    if (align && f != RT_RESIZE_NEAREST && f != RT_RESIZE_NEAREST_EXACT)
        return out > 1 ? in_type(is_double, (double)(in - 1) / (double)(out - 1)) : 0;
    if (given > 0)
        return in_type(is_double, 1 / given);
    return in_type(is_double, in_type(is_double, (double)in) / (double)out);
}

static int64_t clamp(int64_t x, int64_t low, int64_t high) {
    return x < low ? low : x > high ? high : x;
}

void rt_resize_fill(const rt_resize_taps *t, rt_resize_filter f, bool is_double, int64_t in, int64_t out, bool align,
                      double given) {
    double scale = scale_of(is_double, f, in, out, align, given);
    for (int64_t o = 0; o < out; o++) {
        int64_t *index = t->index + o * t->width;
        double *weight = t->weight + o * t->width;
        if (f == RT_RESIZE_NEAREST || f == RT_RESIZE_NEAREST_EXACT) {
            double at = (double)o + (f == RT_RESIZE_NEAREST_EXACT ? 0.5 : 0);
            double s = in == out ? (double)o
                                 : (double)floorf((float)at * (float)scale);
            index[0] = clamp((int64_t)s, 0, in - 1);
            weight[0] = 1;
            continue;
        }
        if (f >= RT_RESIZE_LINEAR_AA) {
            double size = f == RT_RESIZE_LINEAR_AA ? 2 : f == RT_RESIZE_CUBIC_AA ? 4 : 6;
            double support = scale >= 1 ? size / 2 * scale : size / 2;
            double inverse = scale >= 1 ? 1 / scale : 1, center = scale * ((double)o + 0.5), sum = 0;
            int64_t low = clamp((int64_t)(center - support + 0.5), 0, in);
            int64_t count = clamp((int64_t)(center + support + 0.5), 0, in) - low;
            if (center - support + 0.5 < 0)
                low = 0, count = clamp((int64_t)(center + support + 0.5), 0, in);
            count = clamp(count, 0, t->width);
            for (int64_t j = 0; j < count; j++) {
                index[j] = low + j;
                weight[j] = filter_weight(f, ((double)(j + low) - center + 0.5) * inverse);
                sum += weight[j];
            }
            for (int64_t j = 0; j < count && sum != 0; j++)
                weight[j] /= sum;
            continue;
        }
        double s = align ? scale * (double)o
                         : in_type(is_double, scale * ((double)o + 0.5) - 0.5);
        s = in_type(is_double, s);
        if (f == RT_RESIZE_LINEAR && !align && s < 0)
            s = 0;
        double base = floor(s), x = s - base;
        int64_t first = (int64_t)base;
        if (f == RT_RESIZE_LINEAR) {
            first = clamp(first, 0, in - 1);
            index[0] = first;
            index[1] = clamp(first + 1, 0, in - 1);
            x = s - (double)first;
            x = x < 0 ? 0 : x > 1 ? 1 : x;
            weight[0] = 1 - x;
            weight[1] = x;
            continue;
        }
        for (int64_t j = 0; j < 4; j++)
            index[j] = clamp(first - 1 + j, 0, in - 1);
        weight[0] = cubic_far(x + 1, -0.75);
        weight[1] = cubic_near(x, -0.75);
        weight[2] = cubic_near(1 - x, -0.75);
        weight[3] = cubic_far(2 - x, -0.75);
    }
}

int64_t rt_resize_width(rt_resize_filter f, int64_t in, int64_t out, bool align, double given) {
    switch (f) {
    case RT_RESIZE_NEAREST:
    case RT_RESIZE_NEAREST_EXACT: return 1;
    case RT_RESIZE_LINEAR: return 2;
    case RT_RESIZE_CUBIC: return 4;
    case RT_RESIZE_LINEAR_AA:
    case RT_RESIZE_CUBIC_AA:
    case RT_RESIZE_LANCZOS_AA: break;
    }
    double size = f == RT_RESIZE_LINEAR_AA ? 2 : f == RT_RESIZE_CUBIC_AA ? 4 : 6;
    double scale = scale_of(true, f, in, out, align, given);
    double support = scale >= 1 ? size / 2 * scale : size / 2;
    return (int64_t)(ceil(support) * 2 + 3);
}

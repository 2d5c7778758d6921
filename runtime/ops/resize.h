/* runtime/ops/resize.h - where the upsample family reads: each output position of a dimension is a
 * weighted sum of input positions. Reference kernels and compiled ones share the tables. */
#ifndef RUNTIME_OPS_RESIZE_H
#define RUNTIME_OPS_RESIZE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum rt_resize_filter {
    RT_RESIZE_NEAREST,
    RT_RESIZE_NEAREST_EXACT,
    RT_RESIZE_LINEAR,
    RT_RESIZE_CUBIC,
    RT_RESIZE_LINEAR_AA, /* from here on antialiased: the width depends on the sizes */
    RT_RESIZE_CUBIC_AA,
    RT_RESIZE_LANCZOS_AA
} rt_resize_filter;

typedef struct rt_resize_taps {
    int64_t width;   /* taps for each output position */
    int64_t *index;  /* [out][width] */
    double *weight;
} rt_resize_taps;

/* given: the scale that the caller gave, output size per input size; 0: by the sizes. */
int64_t rt_resize_width(rt_resize_filter f, int64_t in, int64_t out, bool align, double given);
/* Fills t's arrays of out * width; positions are computed in float32 unless is_double, as PyTorch
 * does, because rounding decides which element is nearest. */
void rt_resize_fill(const rt_resize_taps *t, rt_resize_filter f, bool is_double, int64_t in, int64_t out,
                    bool align, double given);

#endif

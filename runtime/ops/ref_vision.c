/* runtime/ops/ref_vision.c - what detectors spend their time in outside of networks: torchvision's non-maximum
 * suppression and bilinear pooling of regions. */
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/index_ops.h"

/* A contiguous float64 copy's elements; the caller releases the tensor. */
static ts_status doubles_of(rt_tensor *t, rt_tensor **out) {
    rt_tensor *plain;
    TS_TRY(rt_tensor_contiguous(t, &plain));
    ts_status status = rt_tensor_cast(plain, RT_float64, false, out);
    rt_tensor_release(plain);
    return status;
}

/* ---- non-maximum suppression ---- */

typedef struct ranked {
    double score;
    int64_t index;
} ranked;

/* Falling scores, NaN first as in a sort; equal ones in their order. */
static int by_score(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    bool x_nan = x->score != x->score, y_nan = y->score != y->score;
    if (x_nan != y_nan)
        return x_nan ? -1 : 1;
    if (!x_nan && x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* In the dtype of the boxes, as PyTorch computes it: on the threshold, rounding decides. */
static bool overlaps(const double *a, const double *b, double threshold, bool is_single) {
    double left = fmax(a[0], b[0]), top = fmax(a[1], b[1]);
    double right = fmin(a[2], b[2]), bottom = fmin(a[3], b[3]);
    if (!is_single) {
        double w = fmax(0, right - left), h = fmax(0, bottom - top), inter = w * h;
        double area = (a[2] - a[0]) * (a[3] - a[1]), other = (b[2] - b[0]) * (b[3] - b[1]);
        return inter / (area + other - inter) > threshold;
    }
    float w = fmaxf(0, (float)right - (float)left), h = fmaxf(0, (float)bottom - (float)top);
    float inter = w * h, area = ((float)a[2] - (float)a[0]) * ((float)a[3] - (float)a[1]);
    float other = ((float)b[2] - (float)b[0]) * ((float)b[3] - (float)b[1]);
    return (double)(inter / (area + other - inter)) > threshold;
}

KERNEL(torchvision_nms) {
    rt_tensor *boxes, *scores, *box = NULL, *score = NULL, *result = NULL;
    TS_TRY(rt_need_tensor(args[0], &boxes));
    TS_TRY(rt_need_tensor(args[1], &scores));
    double threshold = rt_as_double(args[2]);
    if (boxes->rank != 2 || boxes->sizes[1] != 4)
        return ts_raise("RuntimeError", "boxes should be a 2d tensor of 4 columns, got %dD", boxes->rank);
    if (scores->rank != 1 || scores->sizes[0] != boxes->sizes[0])
        return ts_raise("RuntimeError", "boxes and scores should have same number of elements in "
                                        "dimension 0");
    int64_t n = boxes->sizes[0], kept = 0;
    bool is_single = rt_dtype_of(boxes) != RT_float64;
    ts_status status = NULL;
    ranked *order = malloc((size_t)(n + 1) * sizeof *order);
    bool *gone = calloc((size_t)n + 1, sizeof *gone);
    int64_t *keep = malloc((size_t)(n + 1) * sizeof *keep);
    if (!order || !gone || !keep) {
        status = ts_no_memory();
        goto done;
    }
    TS_TRY_OR(doubles_of(boxes, &box), done);
    TS_TRY_OR(doubles_of(scores, &score), done);
    const double *corner = (const double *)box->data, *s = (const double *)score->data;
    for (int64_t i = 0; i < n; i++)
        order[i] = (ranked){s[i], i};
    qsort(order, (size_t)n, sizeof *order, by_score);
    for (int64_t i = 0; i < n; i++) {
        if (gone[i])
            continue;
        keep[kept++] = order[i].index;
        const double *a = corner + 4 * order[i].index;
        for (int64_t j = i + 1; j < n; j++)
            gone[j] = gone[j] || overlaps(a, corner + 4 * order[j].index, threshold, is_single);
    }
    TS_TRY_OR(rt_tensor_make(RT_int64, &kept, 1, &result), done);
    for (int64_t i = 0; i < kept; i++)
        ((int64_t *)result->data)[i] = keep[i];
    outs[0] = rt_from_tensor(result);
done:
    free(order);
    free(gone);
    free(keep);
    rt_tensor_release(box);
    rt_tensor_release(score);
    return status;
}

/* ---- bilinear pooling ---- */

typedef struct sample { /* four pixels of a plane and their shares */
    int64_t at[4];
    double share[4];
} sample;

/* Points more than a pixel outside count as 0. */
static sample sample_at(double y, double x, int64_t height, int64_t width) {
    sample s = {{0}, {0}};
    if (!(y >= -1 && y <= (double)height && x >= -1 && x <= (double)width))
        return s;
    y = y < 0 ? 0 : y;
    x = x < 0 ? 0 : x;
    int64_t y0 = (int64_t)y, x0 = (int64_t)x, y1 = y0 + 1, x1 = x0 + 1;
    if (y0 >= height - 1) {
        y0 = y1 = height - 1;
        y = (double)y0;
    }
    if (x0 >= width - 1) {
        x0 = x1 = width - 1;
        x = (double)x0;
    }
    double ly = y - (double)y0, lx = x - (double)x0;
    s.at[0] = y0 * width + x0;
    s.at[1] = y0 * width + x1;
    s.at[2] = y1 * width + x0;
    s.at[3] = y1 * width + x1;
    s.share[0] = (1 - ly) * (1 - lx);
    s.share[1] = (1 - ly) * lx;
    s.share[2] = ly * (1 - lx);
    s.share[3] = ly * lx;
    return s;
}

typedef struct region {
    double top, left, bin_height, bin_width;
    int64_t rows, columns; /* samples of a bin */
} region;

/* As a float where the boxes are floats: PyTorch computes in their dtype, and which pixels a point lies
 * between decides. A double rounded after each operation is the float of that operation. */
static double rounded(double v, bool is_single) { return is_single ? (double)(float)v : v; }

static double side(double from, double to, double scale, double shift, bool aligned, bool is_single,
                   double *out_start) {
    double end = rounded(rounded(to * scale, is_single) - shift, is_single);
    *out_start = rounded(rounded(from * scale, is_single) - shift, is_single);
    double size = rounded(end - *out_start, is_single);
    return aligned ? size : fmax(size, 1);
}

static region region_of(const double *roi, double scale, bool aligned, int64_t bins_y, int64_t bins_x,
                        int64_t ratio, bool is_single) {
    double shift = aligned ? 0.5 : 0;
    region r;
    scale = rounded(scale, is_single);
    double height = side(roi[2], roi[4], scale, shift, aligned, is_single, &r.top);
    double width = side(roi[1], roi[3], scale, shift, aligned, is_single, &r.left);
    r.bin_height = rounded(height / (double)bins_y, is_single);
    r.bin_width = rounded(width / (double)bins_x, is_single);
    r.rows = ratio > 0 ? ratio : (int64_t)ceil(r.bin_height);
    r.columns = ratio > 0 ? ratio : (int64_t)ceil(r.bin_width);
    return r;
}

/* Where sample i of count of a bin lies. */
static double point(double start, int64_t bin, double bin_size, int64_t i, int64_t count, bool is_single) {
    double at = rounded(start + rounded((double)bin * bin_size, is_single), is_single);
    double step = rounded(rounded(((double)i + 0.5) * bin_size, is_single) / (double)count, is_single);
    return rounded(at + step, is_single);
}

/* One bin of all channels of a plane-major image. */
static void pool_bin(const rt_tensor *x, const char *image, const sample *samples, int64_t count,
                     char *out, int64_t out_step) {
    int64_t plane = x->sizes[2] * x->sizes[3], bytes = rt_element_bytes(x);
    double scale = 1 / (double)(count > 0 ? count : 1);
    for (int64_t c = 0; c < x->sizes[1]; c++) {
        double sum = 0;
        if (rt_dtype_of(x) == RT_float32) {
            const float *p = (const float *)(const void *)image + c * plane;
            for (int64_t k = 0; k < count; k++)
                for (int i = 0; i < 4; i++)
                    sum += samples[k].share[i] * (double)p[samples[k].at[i]];
        } else {
            const char *p = image + c * plane * bytes;
            for (int64_t k = 0; k < count; k++)
                for (int i = 0; i < 4; i++)
                    sum += samples[k].share[i] *
                           rt_load_double(rt_dtype_of(x), p + samples[k].at[i] * bytes);
        }
        rt_store_double(rt_dtype_of(x), out + c * out_step * bytes, sum * scale);
    }
}

KERNEL(torchvision_roi_align) {
    rt_tensor *input, *rois, *x = NULL, *boxes = NULL, *result = NULL;
    TS_TRY(rt_need_tensor(args[0], &input));
    TS_TRY(rt_need_tensor(args[1], &rois));
    double scale = rt_as_double(args[2]);
    int64_t bins_y = args[3].as.i, bins_x = args[4].as.i, ratio = args[5].as.i;
    bool aligned = args[6].as.i != 0, is_single = rt_dtype_of(rois) != RT_float64;
    if (rois->rank != 2 || rois->sizes[1] != 5)
        return ts_raise("RuntimeError", "rois must have shape as Tensor[K, 5]");
    if (input->rank != 4 || !rt_dtype_is_float(rt_dtype_of(input)) || bins_y < 1 || bins_x < 1)
        return ts_raise("RuntimeError", "roi_align: expected images of floats [N, C, H, W] and bins");
    ts_status status = NULL;
    sample *samples = NULL;
    TS_TRY_OR(rt_tensor_contiguous(input, &x), done);
    TS_TRY_OR(doubles_of(rois, &boxes), done);
    int64_t count = rois->sizes[0], bins, sizes[4] = {count, x->sizes[1], bins_y, bins_x};
    TS_TRY_OR(rt_tensor_make(rt_dtype_of(x), sizes, 4, &result), done);
    bins = bins_y * bins_x;
    int64_t bytes = rt_element_bytes(x), image = x->sizes[1] * x->sizes[2] * x->sizes[3];
    for (int64_t k = 0; k < count && !status; k++) {
        const double *roi = (const double *)boxes->data + 5 * k;
        if (!(roi[0] >= 0 && roi[0] < (double)x->sizes[0])) {
            status = ts_raise("RuntimeError", "roi_align: a region is of no image");
            break;
        }
        region r = region_of(roi, scale, aligned, bins_y, bins_x, ratio, is_single);
        /* more samples a bin than pixels of the image: a box that is no box */
        if (r.rows > 0 && r.columns > 0 && (r.rows > 1 << 20 || r.columns > (1 << 24) / r.rows)) {
            status = ts_raise("RuntimeError", "roi_align: a region is too large");
            break;
        }
        int64_t of_bin = r.rows > 0 && r.columns > 0 ? r.rows * r.columns : 0;
        sample *more = realloc(samples, (size_t)(of_bin + 1) * sizeof *samples);
        if (!more) {
            status = ts_no_memory();
            break;
        }
        samples = more;
        for (int64_t b = 0; b < bins; b++) {
            for (int64_t i = 0; i < of_bin; i++)
                samples[i] = sample_at(
                    point(r.top, b / bins_x, r.bin_height, i / r.columns, r.rows, is_single),
                    point(r.left, b % bins_x, r.bin_width, i % r.columns, r.columns, is_single),
                    x->sizes[2], x->sizes[3]);
            pool_bin(x, (const char *)x->data + (int64_t)roi[0] * image * bytes, samples, of_bin,
                     (char *)result->data + (k * x->sizes[1] * bins + b) * bytes, bins);
        }
    }
done:
    free(samples);
    rt_tensor_release(x);
    rt_tensor_release(boxes);
    return rt_give(status, result, outs);
}

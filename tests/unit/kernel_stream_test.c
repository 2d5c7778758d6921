/* Streams: two kernels through which an image goes band by band, against the reference kernels. */
#include <check.h>
#include <stdio.h>

#include "unit/kernel_check.h"

/* A product or convolution, then a depthwise convolution: of 2 MB at least, or no stream would be made. */
typedef struct stream_case {
    int in, h, w;                 /* of the input */
    int first_kernel, first_stride;
    int channels, kernel, stride, pad, dilation;
    const char *after; /* of the first convolution */
    int kernels;       /* 1: a stream */
} stream_case;

static const stream_case cases[] = {
    {8, 100, 98, 1, 1, 64, 3, 1, 1, 1, "silu", 1},      {20, 96, 100, 1, 1, 72, 3, 2, 1, 1, "relu", 1},
    {16, 112, 112, 1, 1, 96, 5, 2, 2, 1, "hardswish", 1}, {17, 90, 91, 1, 1, 70, 5, 1, 2, 1, "silu", 1},
    {3, 201, 200, 3, 2, 64, 3, 1, 1, 1, "relu", 1},     {16, 96, 96, 1, 1, 64, 3, 1, 2, 2, "relu", 1},
    {16, 100, 96, 1, 1, 64, 3, 1, 0, 1, "relu", 1},     {16, 33, 300, 1, 1, 64, 7, 3, 3, 1, "relu", 1},
    {16, 100, 96, 1, 1, 64, 1, 2, 0, 1, "relu", 1},     {16, 100, 96, 1, 1, 64, 3, 4, 5, 1, "relu", 1},
    /* too small; a tile of transforms comes first */
    {16, 64, 64, 1, 1, 64, 3, 1, 1, 1, "relu", 2},      {16, 100, 98, 3, 1, 64, 3, 1, 1, 1, "relu", 2},
};

static int size_after(int size, int kernel, int stride, int pad, int dilation) {
    return (size + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
}

START_TEST(shapes) {
    const stream_case *c = &cases[_i];
    int first_pad = c->first_kernel / 2, k = c->first_kernel;
    int h = size_after(c->h, k, c->first_stride, first_pad, 1), w = size_after(c->w, k, c->first_stride, first_pad, 1);
    int oh = size_after(h, c->kernel, c->stride, c->pad, c->dilation);
    int ow = size_after(w, c->kernel, c->stride, c->pad, c->dilation);
    char text[2000], image[64], result[64];
    snprintf(image, sizeof image, "float32[1,%d,%d,%d]", c->channels, h, w);
    snprintf(result, sizeof result, "float32[1,%d,%d,%d]", c->channels, oh, ow);
    /* The last convolution keeps the result of the second between kernels, where channels are innermost. */
    int length = snprintf(
        text, sizeof text,
        "func @forward(%%x: float32[1,%d,%d,%d], %%r: float32[1,%d,1,1]) -> float32[1,4,%d,%d] entry {\n"
        "  %%w = const @w_%d_%d_%d_%d : float32[%d,%d,%d,%d]\n"
        "  %%b = const @b_%d : float32[%d]\n"
        "  %%a = conv2d(%%x, %%w, %%b, [%d, %d], [%d, %d], [1, 1], 1) : %s\n"
        "  %%c = %s(%%a) : %s\n"
        "  %%d = mul.Tensor(%%c, %%r) : %s\n"
        "  %%v = const @w_%d_1_%d_%d : float32[%d,1,%d,%d]\n"
        "  %%e = conv2d(%%d, %%v, %%b, [%d, %d], [%d, %d], [%d, %d], %d) : %s\n"
        "  %%f = relu(%%e) : %s\n"
        "  %%u = const @w_4_%d_1_1 : float32[4,%d,1,1]\n"
        "  %%z = conv2d(%%f, %%u, none, [1, 1], [0, 0], [1, 1], 1) : float32[1,4,%d,%d]\n"
        "  return %%z\n}\n",
        c->in, c->h, c->w, c->channels, oh, ow, c->channels, c->in, k, k, c->channels, c->in, k, k, c->channels,
        c->channels, c->first_stride, c->first_stride, first_pad, first_pad, image, c->after, image, image, c->channels,
        c->kernel, c->kernel, c->channels, c->kernel, c->kernel, c->stride, c->stride, c->pad, c->pad, c->dilation,
        c->dilation, c->channels, result, result, c->channels, c->channels, oh, ow);
    ck_assert_int_lt(length, (int)sizeof text);
    kernel_sizes sizes = {{0}};
    kernel_check(text, c->kernels + 1, 2e-5, false, &sizes, 1);
}
END_TEST

/* A depthwise convolution whose image becomes another one and means of its lines: channels, height, width, kernel,
 * stride, kernels. */
static const int line_cases[][6] = {
    {64, 60, 50, 3, 1, 6}, {400, 22, 21, 5, 1, 6}, {40, 121, 120, 3, 2, 6},
    {24, 40, 40, 3, 1, 7}, /* too small: two kernels */
};

START_TEST(lines) {
    const int *c = line_cases[_i];
    int pad = c[3] / 2, oh = size_after(c[1], c[3], c[4], pad, 1), ow = size_after(c[2], c[3], c[4], pad, 1);
    char text[2000], image[64];
    snprintf(image, sizeof image, "float32[1,%d,%d,%d]", c[0], oh, ow);
    int length = snprintf(
        text, sizeof text,
        "func @forward(%%x: float32[1,3,%d,%d]) -> float32[1,4,%d,%d] entry {\n"
        "  %%w = const @w_%d_3_1_1 : float32[%d,3,1,1]\n"
        "  %%a = conv2d(%%x, %%w) : float32[1,%d,%d,%d]\n"
        "  %%v = const @w_%d_1_%d_%d : float32[%d,1,%d,%d]\n"
        "  %%e = conv2d(%%a, %%v, none, [%d, %d], [%d, %d], [1, 1], %d) : %s\n"
        "  %%f = silu(%%e) : %s\n"
        "  %%m = mean.dim(%%f, [2, 3], true, none) : float32[1,%d,1,1]\n"
        "  %%k = const @w_%d_%d_1_1 : float32[%d,%d,1,1]\n"
        "  %%s = conv2d(%%m, %%k) : float32[1,%d,1,1]\n"
        "  %%g = mul.Tensor(%%f, %%s) : %s\n"
        "  %%u = const @w_4_%d_1_1 : float32[4,%d,1,1]\n"
        "  %%z = conv2d(%%g, %%u) : float32[1,4,%d,%d]\n"
        "  return %%z\n}\n",
        c[1], c[2], oh, ow, c[0], c[0], c[0], c[1], c[2], c[0], c[3], c[3], c[0], c[3], c[3], c[4], c[4], pad, pad, c[0],
        image, image, c[0], c[0], c[0], c[0], c[0], c[0], image, c[0], c[0], oh, ow);
    ck_assert_int_lt(length, (int)sizeof text);
    kernel_sizes sizes = {{0}};
    kernel_check(text, c[5], 2e-5, false, &sizes, 1);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("kernels_stream");
    TCase *tc = tcase_create("streams");
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, shapes, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_loop_test(tc, lines, 0, (int)(sizeof line_cases / sizeof *line_cases));
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

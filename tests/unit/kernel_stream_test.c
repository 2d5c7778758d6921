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

typedef struct size_text {
    char of[96];
} size_text;

static size_text size_text_after(const char *size, int kernel, int stride, int pad, int dilation) {
    size_text out;
    int length = snprintf(out.of, sizeof out.of, "(%s%+d)//%d", size, 2 * pad - dilation * (kernel - 1) - 1 + stride, stride);
    ck_assert_int_lt(length, (int)sizeof out.of);
    return out;
}

static void check_shapes(const stream_case *c, const char *height, const char *width, const kernel_sizes *sizes, size_t count) {
    int first_pad = c->first_kernel / 2, k = c->first_kernel;
    size_text h = size_text_after(height, k, c->first_stride, first_pad, 1);
    size_text w = size_text_after(width, k, c->first_stride, first_pad, 1);
    size_text oh = size_text_after(h.of, c->kernel, c->stride, c->pad, c->dilation);
    size_text ow = size_text_after(w.of, c->kernel, c->stride, c->pad, c->dilation);
    char text[3000], image[256], result[256];
    snprintf(image, sizeof image, "float32[1,%d,%s,%s]", c->channels, h.of, w.of);
    snprintf(result, sizeof result, "float32[1,%d,%s,%s]", c->channels, oh.of, ow.of);
    /* The last convolution keeps the result of the second between kernels, where channels are innermost. */
    int length = snprintf(
        text, sizeof text,
        "func @forward(%%x: float32[1,%d,%s,%s], %%r: float32[1,%d,1,1]) -> float32[1,4,%s,%s] entry {\n"
        "  %%w = const @w_%d_%d_%d_%d : float32[%d,%d,%d,%d]\n"
        "  %%b = const @b_%d : float32[%d]\n"
        "  %%a = conv2d(%%x, %%w, %%b, [%d, %d], [%d, %d], [1, 1], 1) : %s\n"
        "  %%c = %s(%%a) : %s\n"
        "  %%d = mul.Tensor(%%c, %%r) : %s\n"
        "  %%v = const @w_%d_1_%d_%d : float32[%d,1,%d,%d]\n"
        "  %%e = conv2d(%%d, %%v, %%b, [%d, %d], [%d, %d], [%d, %d], %d) : %s\n"
        "  %%f = relu(%%e) : %s\n"
        "  %%u = const @w_4_%d_1_1 : float32[4,%d,1,1]\n"
        "  %%z = conv2d(%%f, %%u, none, [1, 1], [0, 0], [1, 1], 1) : float32[1,4,%s,%s]\n"
        "  return %%z\n}\n",
        c->in, height, width, c->channels, oh.of, ow.of, c->channels, c->in, k, k, c->channels, c->in, k, k, c->channels,
        c->channels, c->first_stride, c->first_stride, first_pad, first_pad, image, c->after, image, image, c->channels,
        c->kernel, c->kernel, c->channels, c->kernel, c->kernel, c->stride, c->stride, c->pad, c->pad, c->dilation,
        c->dilation, c->channels, result, result, c->channels, c->channels, oh.of, ow.of);
    ck_assert_int_lt(length, (int)sizeof text);
    kernel_check(text, c->kernels + 1, 2e-5, false, sizes, count);
}

START_TEST(shapes) {
    const stream_case *c = &cases[_i];
    char height[16], width[16];
    snprintf(height, sizeof height, "%d", c->h);
    snprintf(width, sizeof width, "%d", c->w);
    kernel_sizes sizes = {{0}};
    check_shapes(c, height, width, &sizes, 1);
}
END_TEST

/* Sizes of one run each: few pixels, few lines, few columns, lines wider than a band, and those of the case. */
static const int symbolic_sizes[][2] = {{7, 7}, {7, 96}, {76, 7}, {11, 10}, {36, 47}, {15, 2500}};

static size_t size_list(int height, int width, kernel_sizes *out) {
    size_t count = 0;
    for (size_t i = 0; i < sizeof symbolic_sizes / sizeof *symbolic_sizes; i++, count++) {
        out[count] = (kernel_sizes){{0}};
        out[count].of['H' - 'A'] = symbolic_sizes[i][0];
        out[count].of['W' - 'A'] = symbolic_sizes[i][1];
    }
    out[count] = (kernel_sizes){{0}};
    out[count].of['H' - 'A'] = height;
    out[count].of['W' - 'A'] = width;
    return count + 1;
}

/* Whether there is a stream hangs on what the sizes usually are; the results do not. */
START_TEST(symbolic_shapes) {
    stream_case c = cases[_i];
    kernel_sizes sizes[sizeof symbolic_sizes / sizeof *symbolic_sizes + 1];
    size_t count = size_list(c.h, c.w, sizes);
    bool is_small = c.kernels == 2 && c.first_kernel == 1;
    c.kernels = is_small ? 1 : c.kernels;
    check_shapes(&c, "H", "W", sizes, count);
}
END_TEST

/* A depthwise convolution whose image becomes another one and means of its lines: channels, height, width, kernel,
 * stride, kernels. */
static const int line_cases[][6] = {
    {64, 60, 50, 3, 1, 6}, {400, 22, 21, 5, 1, 6}, {40, 121, 120, 3, 2, 6},
    {24, 40, 40, 3, 1, 7}, /* too small: two kernels */
};

static void check_lines(const int *c, int kernels, const char *height, const char *width, const kernel_sizes *sizes,
                        size_t count) {
    int pad = c[3] / 2;
    size_text oh = size_text_after(height, c[3], c[4], pad, 1), ow = size_text_after(width, c[3], c[4], pad, 1);
    char text[3000], image[256];
    snprintf(image, sizeof image, "float32[1,%d,%s,%s]", c[0], oh.of, ow.of);
    int length = snprintf(
        text, sizeof text,
        "func @forward(%%x: float32[1,3,%s,%s]) -> float32[1,4,%s,%s] entry {\n"
        "  %%w = const @w_%d_3_1_1 : float32[%d,3,1,1]\n"
        "  %%a = conv2d(%%x, %%w) : float32[1,%d,%s,%s]\n"
        "  %%v = const @w_%d_1_%d_%d : float32[%d,1,%d,%d]\n"
        "  %%e = conv2d(%%a, %%v, none, [%d, %d], [%d, %d], [1, 1], %d) : %s\n"
        "  %%f = silu(%%e) : %s\n"
        "  %%m = mean.dim(%%f, [2, 3], true, none) : float32[1,%d,1,1]\n"
        "  %%k = const @w_%d_%d_1_1 : float32[%d,%d,1,1]\n"
        "  %%s = conv2d(%%m, %%k) : float32[1,%d,1,1]\n"
        "  %%g = mul.Tensor(%%f, %%s) : %s\n"
        "  %%u = const @w_4_%d_1_1 : float32[4,%d,1,1]\n"
        "  %%z = conv2d(%%g, %%u) : float32[1,4,%s,%s]\n"
        "  return %%z\n}\n",
        height, width, oh.of, ow.of, c[0], c[0], c[0], height, width, c[0], c[3], c[3], c[0], c[3], c[3], c[4], c[4], pad, pad, c[0],
        image, image, c[0], c[0], c[0], c[0], c[0], c[0], image, c[0], c[0], oh.of, ow.of);
    ck_assert_int_lt(length, (int)sizeof text);
    kernel_check(text, kernels, 2e-5, false, sizes, count);
}

START_TEST(lines) {
    const int *c = line_cases[_i];
    char height[16], width[16];
    snprintf(height, sizeof height, "%d", c[1]);
    snprintf(width, sizeof width, "%d", c[2]);
    kernel_sizes sizes = {{0}};
    check_lines(c, c[5], height, width, &sizes, 1);
}
END_TEST

START_TEST(symbolic_lines) {
    const int *c = line_cases[_i];
    kernel_sizes sizes[sizeof symbolic_sizes / sizeof *symbolic_sizes + 1];
    size_t count = size_list(c[1], c[2], sizes);
    check_lines(c, 6, "H", "W", sizes, count);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("kernels_stream");
    TCase *tc = tcase_create("streams");
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, shapes, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_loop_test(tc, lines, 0, (int)(sizeof line_cases / sizeof *line_cases));
    tcase_add_loop_test(tc, symbolic_shapes, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_loop_test(tc, symbolic_lines, 0, (int)(sizeof line_cases / sizeof *line_cases));
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

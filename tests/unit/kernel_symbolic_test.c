/* Kernels whose sizes are parameters, against the reference kernels: one model for many sizes, among
 * them empty batches, images of one pixel, images smaller than a tile or a window, and odd ones. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "unit/kernel_check.h"

enum { MAX_SIZES = 16 };

static kernel_sizes sizes_of(int64_t n, int64_t h, int64_t w) {
    kernel_sizes s = {{0}};
    s.of['N' - 'A'] = n;
    s.of['H' - 'A'] = h;
    s.of['W' - 'A'] = w;
    return s;
}

/* One convolution of a contiguous image and of one that lies channels-last; `fixed`: a width that is
 * constant, 0 none. */
typedef struct convolution_case {
    int in, out, kh, kw, stride, pad, dilation, groups, fixed;
    const char *after; /* an activation */
} convolution_case;

static const convolution_case convolution_cases[] = {
    /* lines: few channels, several widths of the kernel; groups; a constant width */
    {3, 16, 3, 3, 2, 1, 1, 1, 0, "hardswish"}, {3, 20, 7, 7, 2, 3, 1, 1, 0, "relu"},
    {1, 9, 5, 5, 1, 2, 1, 1, 0, "silu"},       {4, 24, 3, 3, 1, 2, 2, 1, 0, "relu"},
    {6, 8, 3, 2, 1, 0, 1, 2, 0, "gelu"},       {3, 48, 4, 4, 4, 0, 1, 1, 0, "relu"},
    {3, 16, 3, 3, 2, 1, 1, 1, 21, "relu"},     {5, 6, 3, 3, 1, 5, 1, 1, 0, "relu"},
    /* pixels */
    {16, 40, 1, 1, 1, 0, 1, 1, 0, "relu"},     {20, 17, 3, 3, 2, 1, 1, 1, 0, "relu"},
    {300, 250, 1, 1, 1, 0, 1, 1, 0, "relu"},   {24, 330, 1, 1, 1, 0, 1, 1, 0, "silu"}, /* groups of columns; two blocks */
    /* by transforms: columns that are masked, an epilogue in memory, padding of 2, two vectors */
    {16, 32, 3, 3, 1, 1, 1, 1, 0, "relu"},     {33, 40, 3, 3, 1, 1, 1, 1, 0, "hardswish"},
    {24, 17, 3, 3, 1, 2, 1, 1, 0, "silu"},     {64, 96, 3, 3, 1, 0, 1, 1, 0, "relu"},
    {16, 32, 3, 3, 1, 1, 1, 1, 18, "relu"},    {512, 16, 3, 3, 1, 1, 1, 1, 0, "relu"},
    /* depthwise */
    {20, 20, 5, 5, 1, 2, 1, 20, 0, "hardswish"}, {33, 33, 3, 3, 2, 1, 1, 33, 0, "silu"},
    {16, 16, 3, 3, 1, 2, 2, 16, 0, "relu"},      {72, 72, 7, 7, 1, 3, 1, 72, 0, "relu"},
    {5, 5, 3, 3, 1, 4, 1, 5, 0, "relu"},
};

static int window_output(const convolution_case *c, int size, int kernel) {
    return (size + 2 * c->pad - c->dilation * (kernel - 1) - 1) / c->stride + 1;
}

static void write_size(char *out, size_t room, const convolution_case *c, char letter, int kernel) {
    int more = 2 * c->pad - c->dilation * (kernel - 1) - 1 + c->stride;
    snprintf(out, room, c->stride > 1 ? "(%c%+d)//%d" : "%c%+d", letter, more, c->stride);
}

START_TEST(convolutions) {
    const convolution_case *c = &convolution_cases[_i];
    static const int candidates[][3] = {{1, 9, 9},   {2, 13, 18}, {0, 9, 9},  {1, 1, 1}, {3, 2, 3},
                                        {2, 31, 36}, {1, 7, 70},  {5, 16, 16}, {1, 3, 1}, {1, 40, 9}};
    kernel_sizes sizes[MAX_SIZES];
    size_t count = 0;
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
        int h = candidates[i][1], w = c->fixed ? c->fixed : candidates[i][2];
        int down = h + 2 * c->pad - c->dilation * (c->kh - 1) - 1;
        int across = w + 2 * c->pad - c->dilation * (c->kw - 1) - 1;
        if (down >= 0 && across >= 0)
            sizes[count++] = sizes_of(candidates[i][0], h, w);
    }
    ck_assert_uint_ge(count, 5);
    for (int channels_last = 0; channels_last < 2; channels_last++) {
        char text[2000], first[400] = "", oh[32], ow[32], w[8] = "W", result[96];
        write_size(oh, sizeof oh, c, 'H', c->kh);
        write_size(ow, sizeof ow, c, 'W', c->kw);
        if (c->fixed) {
            snprintf(w, sizeof w, "%d", c->fixed);
            snprintf(ow, sizeof ow, "%d", window_output(c, c->fixed, c->kw));
        }
        if (channels_last)
            snprintf(first, sizeof first,
                     "  %%v = const @v_%d_%d_1_1 : float32[%d,%d,1,1]\n"
                     "  %%m = conv2d(%%x, %%v, none, [1, 1], [0, 0], [1, 1], 1) : float32[N,%d,H,%s]\n",
                     c->in, c->in, c->in, c->in, c->in, w);
        snprintf(result, sizeof result, "float32[N,%d,%s,%s]", c->out, oh, ow);
        const char *gelu = strcmp(c->after, "gelu") == 0 ? ", \"none\"" : "";
        int length = snprintf(
            text, sizeof text,
            "func @forward(%%x: float32[N,%d,H,%s]) -> %s entry {\n%s"
            "  %%w = const @w_%d_%d_%d_%d : float32[%d,%d,%d,%d]\n"
            "  %%b = const @b_%d : float32[%d]\n"
            "  %%a = conv2d(%%%s, %%w, %%b, [%d, %d], [%d, %d], [%d, %d], %d) : %s\n"
            "  %%r = %s(%%a%s) : %s\n"
            "  return %%r\n}\n",
            c->in, w, result, first, c->out, c->in / c->groups, c->kh, c->kw, c->out,
            c->in / c->groups, c->kh, c->kw, c->out, c->out, channels_last ? "m" : "x", c->stride,
            c->stride, c->pad, c->pad, c->dilation, c->dilation, c->groups, result, c->after, gelu,
            result);
        ck_assert_int_lt(length, (int)sizeof text);
        /* The bounds of kernel_fusion_test.c: of the largest result, 1e-6 for direct sums and 4e-6 by
         * transforms. */
        double deviation = 0.5 * sqrt(c->kh * c->kw * c->in / c->groups) *
                           (channels_last ? 0.29 * sqrt(c->in) : 1);
        bool by_transforms = channels_last && c->in >= 16 && c->groups == 1 && c->kh == 3 &&
                             c->stride == 1;
        double tolerance = 1e-6 * 4 * deviation;
        tolerance = tolerance < 1e-5 ? 1e-5 : tolerance;
        kernel_check(text, 1 + channels_last, tolerance, true, sizes, count);
        if (by_transforms)
            kernel_check(text, 1 + channels_last, 4 * tolerance, false, sizes, count);
    }
}
END_TEST

/* Transposed: in, out of a group, kernel, stride, pad, output padding, dilation, groups. */
static const int transposed_cases[][8] = {
    {16, 12, 2, 2, 0, 0, 1, 1}, {20, 33, 4, 2, 1, 0, 1, 1}, {3, 8, 3, 2, 1, 1, 1, 1},
    {8, 5, 2, 3, 0, 1, 1, 2},   {32, 16, 5, 3, 2, 2, 2, 1}, {16, 16, 3, 1, 1, 0, 1, 1},
    {4, 6, 2, 1, 3, 0, 5, 1},
};

START_TEST(transposed_convolutions) {
    const int *c = transposed_cases[_i];
    int out = c[1] * c[7], more = -c[3] - 2 * c[4] + c[6] * (c[2] - 1) + c[5] + 1;
    static const int candidates[][3] = {{1, 1, 1}, {2, 5, 7}, {0, 4, 4}, {1, 2, 3}, {1, 19, 33},
                                        {3, 6, 1}, {2, 7, 9}};
    kernel_sizes sizes[MAX_SIZES];
    size_t count = 0;
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
        const int *s = candidates[i];
        if (s[1] * c[3] + more > 0 && s[2] * c[3] + more > 0)
            sizes[count++] = sizes_of(s[0], s[1], s[2]);
    }
    ck_assert_uint_ge(count, 3);
    for (int channels_last = 0; channels_last < 2; channels_last++) {
        char text[2000], first[400] = "", result[96];
        if (channels_last)
            snprintf(first, sizeof first,
                     "  %%v = const @v_%d_%d_1_1 : float32[%d,%d,1,1]\n"
                     "  %%m = conv2d(%%x, %%v, none, [1, 1], [0, 0], [1, 1], 1) : float32[N,%d,H,W]\n",
                     c[0], c[0], c[0], c[0], c[0]);
        snprintf(result, sizeof result, "float32[N,%d,%d*H%+d,%d*W%+d]", out, c[3], more, c[3], more);
        int length = snprintf(
            text, sizeof text,
            "func @forward(%%x: float32[N,%d,H,W]) -> %s entry {\n%s"
            "  %%w = const @w_%d_%d_%d_%d : float32[%d,%d,%d,%d]\n  %%b = const @b_%d : float32[%d]\n"
            "  %%a = conv_transpose2d.input(%%%s, %%w, %%b, [%d, %d], [%d, %d], [%d, %d], %d, [%d, %d]) : %s\n"
            "  %%r = hardswish(%%a) : %s\n  return %%r\n}\n",
            c[0], result, first, c[0], c[1], c[2], c[2], c[0], c[1], c[2], c[2], out, out,
            channels_last ? "m" : "x", c[3], c[3], c[4], c[4], c[5], c[5], c[7], c[6], c[6], result,
            result);
        ck_assert_int_lt(length, (int)sizeof text);
        kernel_check(text, 1 + channels_last, 2e-5, false, sizes, count);
    }
}
END_TEST

/* Parts whose sizes are numbers of the host program that only a run can compare, one of them upsampled
 * for the concatenation. */
START_TEST(concatenation) {
    const char *text =
        "func @forward(%x: float32[N,3,H,W]) -> float32[N,41,2*(H//2),2*(W//2)] entry {\n"
        "  %v = const @w_20_3_1_1 : float32[20,3,1,1]\n"
        "  %a = conv2d(%x, %v, none, [1, 1], [0, 0], [1, 1], 1) : float32[N,20,H,W]\n"
        "  %b = max_pool2d(%a, [2, 2], [2, 2], [0, 0], [1, 1], false) : float32[N,20,H//2,W//2]\n"
        "  %u = upsample_bilinear2d.vec(%b, none, false, [2.0, 2.0]) : float32[N,20,2*(H//2),2*(W//2)]\n"
        "  %r = relu(%a) : float32[N,20,H,W]\n"
        "  %s = slice.Tensor(%x, 1, 0, 1, 1) : float32[N,1,H,W]\n"
        "  %l = list(%u, %r, %s) : List[Tensor]\n"
        "  %c = cat(%l, 1) : float32[N,41,2*(H//2),2*(W//2)]\n"
        "  return %c\n"
        "}\n";
    const kernel_sizes fit[] = {sizes_of(1, 2, 2), sizes_of(2, 8, 6), sizes_of(0, 4, 4),
                                sizes_of(1, 34, 70)};
    const kernel_sizes tall = sizes_of(1, 7, 8), wide = sizes_of(2, 4, 9);
    kernel_check(text, 4, 1e-5, false, fit, sizeof fit / sizeof *fit);
    kernel_check_raises(text, 4, &tall,
                        "Sizes of tensors must match except in dimension 1. Expected size 6 but got "
                        "size 7 for tensor number 1 in the list.");
    kernel_check_raises(text, 4, &wide,
                        "Sizes of tensors must match except in dimension 1. Expected size 8 but got "
                        "size 9 for tensor number 1 in the list.");
}
END_TEST

/* Rows times weights: none, one (a form of its own, shared among threads where the weights are many),
 * and blocks that are even. in, out, an activation, a batch dim of its own. */
static const struct {
    int in, out;
    const char *after;
    bool has_batch;
} product_cases[] = {{20, 37, "relu", false},   {300, 333, "relu", false}, {300, 333, "gelu", false},
                     {1100, 80, "silu", false}, {70, 16, "relu", false},   {512, 520, "relu", true},
                     {2500, 150, "relu", false}};

START_TEST(products) {
    int in = product_cases[_i].in, out = product_cases[_i].out;
    bool has_batch = product_cases[_i].has_batch;
    const char *after = product_cases[_i].after, *lead = has_batch ? "H,N" : "N";
    char text[1000];
    int length = snprintf(
        text, sizeof text,
        "func @forward(%%x: float32[%s,%d]) -> float32[%s,%d] entry {\n"
        "  %%w = const @w_%d_%d : float32[%d,%d]\n  %%b = const @b_%d : float32[%d]\n"
        "  %%a = linear(%%x, %%w, %%b) : float32[%s,%d]\n"
        "  %%r = %s(%%a%s) : float32[%s,%d]\n  return %%r\n}\n",
        lead, in, lead, out, out, in, out, in, out, out, lead, out, after,
        strcmp(after, "gelu") == 0 ? ", \"none\"" : "", lead, out);
    ck_assert_int_lt(length, (int)sizeof text);
    static const int rows[] = {1, 0, 2, 5, 7, 48, 49, 64, 97, 1};
    kernel_sizes sizes[MAX_SIZES];
    size_t count = sizeof rows / sizeof *rows;
    for (size_t i = 0; i < count; i++)
        sizes[i] = sizes_of(rows[i], i % 3 == 0 ? 1 : 3, 0);
    kernel_check(text, 1, 4e-6 * 0.5 * sqrt(in), false, sizes, count);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("symbolic kernels");
    TCase *tc = tcase_create("symbolic");
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, convolutions, 0,
                        (int)(sizeof convolution_cases / sizeof *convolution_cases));
    tcase_add_test(tc, concatenation);
    tcase_add_loop_test(tc, transposed_convolutions, 0,
                        (int)(sizeof transposed_cases / sizeof *transposed_cases));
    tcase_add_loop_test(tc, products, 0, (int)(sizeof product_cases / sizeof *product_cases));
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

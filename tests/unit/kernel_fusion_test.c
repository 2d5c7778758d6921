/* Kernels against the reference kernels: a text is compiled as it is, and again after fusion, layout
 * and memory planning, at each CPU level that this machine has; results must agree within the
 * text's bound, and as many kernels must have come out as expected, none left to the dynamic path. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "unit/kernel_check.h"

static void check_text_with(const char *text, int kernels, double tolerance, int64_t letter,
                            bool no_winograd) {
    kernel_sizes sizes;
    for (int i = 0; i < KERNEL_LETTERS; i++)
        sizes.of[i] = letter;
    kernel_check(text, kernels, tolerance, no_winograd, &sizes, 1);
}

static void check_text(const char *text, int kernels, double tolerance, int64_t letter) {
    check_text_with(text, kernels, tolerance, letter, false);
}

START_TEST(pointwise_chain) {
    check_text("func @forward(%x: float32[5,37], %y: float32[37], %s: float) -> float32[5,37] entry {\n"
               "  %a = add.Tensor(%x, %y, 1) : float32[5,37]\n"
               "  %b = sigmoid(%a) : float32[5,37]\n"
               "  %c = mul.Scalar(%b, %s) : float32[5,37]\n"
               "  %d = gelu(%c, \"none\") : float32[5,37]\n"
               "  %e = clamp(%d, -0.25, 0.3) : float32[5,37]\n"
               "  %f = tanh(%e) : float32[5,37]\n"
               "  return %f\n"
               "}\n", 1, 1e-6, 0);
}
END_TEST

START_TEST(symbolic_sizes) {
    const char *text = "func @forward(%x: float32[N,3], %y: float32[N,1]) -> float32[N,3] entry {\n"
                       "  %a = mul.Tensor(%x, %y) : float32[N,3]\n"
                       "  %b = exp(%a) : float32[N,3]\n"
                       "  return %b\n"
                       "}\n";
    check_text(text, 1, 1e-6, 1);
    check_text(text, 1, 1e-6, 5000);
}
END_TEST

START_TEST(views_of_inputs) {
    check_text("func @forward(%x: float32[4,6,5], %y: float32[2,5,3]) -> float32[2,5,3] entry {\n"
               "  %p = permute(%x, [0, 2, 1]) : float32[4,5,6]\n"
               "  %q = slice.Tensor(%p, 0, 1, 3, 1) : float32[2,5,6]\n"
               "  %r = slice.Tensor(%q, 2, 0, 6, 2) : float32[2,5,3]\n"
               "  %s = mul.Tensor(%r, %y) : float32[2,5,3]\n"
               "  %t = relu(%s) : float32[2,5,3]\n"
               "  return %t\n"
               "}\n", 1, 1e-6, 0);
}
END_TEST

START_TEST(integers_and_bools) {
    check_text("func @forward(%x: int64[33], %y: int32[33], %z: float32[33]) -> Tuple[int64[33], bool[33], float32[33]] entry {\n"
               "  %a = add.Tensor(%x, %y, 1) : int64[33]\n"
               "  %b = mul.Scalar(%a, 3) : int64[33]\n"
               "  %c = gt.Scalar(%x, 2.5) : bool[33]\n"
               "  %d = lt.Tensor(%z, %y) : bool[33]\n"
               "  %e = logical_and(%c, %d) : bool[33]\n"
               "  %f = where.self(%e, %z, %y) : float32[33]\n"
               "  %r = tuple(%b, %e, %f) : Tuple[int64[33], bool[33], float32[33]]\n"
               "  return %r\n"
               "}\n", -1, 1e-6, 0);
}
END_TEST

START_TEST(rows_and_columns) {
    check_text("func @forward(%x: float32[6,50]) -> Tuple[float32[6,50], float32[6], int64[50], float32[]] entry {\n"
               "  %a = mul.Scalar(%x, 2.0) : float32[6,50]\n"
               "  %b = softmax.int(%a, -1, none) : float32[6,50]\n"
               "  %c = mean.dim(%x, [1], false, none) : float32[6]\n"
               "  %d = sqrt(%c) : float32[6]\n"
               "  %e = argmax(%x, 0, false) : int64[50]\n"
               "  %f = sum(%x, none) : float32[]\n"
               "  %r = tuple(%b, %d, %e, %f) : Tuple[float32[6,50], float32[6], int64[50], float32[]]\n"
               "  return %r\n"
               "}\n", 4, 1e-5, 0);
    check_text("func @forward(%x: float32[3,4,7,5]) -> Tuple[float32[3,4,1,1], float32[3,7,5], float32[3,4,7,5]] entry {\n"
               "  %a = mean.dim(%x, [2, 3], true, none) : float32[3,4,1,1]\n"
               "  %b = amax(%x, [1], false) : float32[3,7,5]\n"
               "  %c = log_softmax.int(%x, 1, none) : float32[3,4,7,5]\n"
               "  %r = tuple(%a, %b, %c) : Tuple[float32[3,4,1,1], float32[3,7,5], float32[3,4,7,5]]\n"
               "  return %r\n"
               "}\n", 3, 1e-5, 0);
}
END_TEST

/* A norm written by hand: sums, what is made of them and what reads that are one kernel. */
START_TEST(norms_by_hand) {
    check_text("func @forward(%x: float32[2,5,70], %w: float32[70]) -> float32[2,5,70] entry {\n"
               "  %s = pow.Tensor_Scalar(%x, 2) : float32[2,5,70]\n"
               "  %m = mean.dim(%s, [-1], true, none) : float32[2,5,1]\n"
               "  %e = add.Scalar(%m, 1e-6, 1) : float32[2,5,1]\n"
               "  %r = rsqrt(%e) : float32[2,5,1]\n"
               "  %n = mul.Tensor(%x, %r) : float32[2,5,70]\n"
               "  %o = mul.Tensor(%n, %w) : float32[2,5,70]\n"
               "  %g = sigmoid(%x) : float32[2,5,70]\n"
               "  %y = mul.Tensor(%o, %g) : float32[2,5,70]\n"
               "  return %y\n"
               "}\n", 1, 1e-5, 0);
}
END_TEST

START_TEST(reductions_of_one_element) {
    check_text("func @forward(%x: float32[3,2,1,2]) -> Tuple[float32[3,2,2], int64[3,2,1,2], float32[3,2,1,2]] entry {\n"
               "  %a = mean.dim(%x, [2], false, none) : float32[3,2,2]\n"
               "  %b = argmin(%x, 2, true) : int64[3,2,1,2]\n"
               "  %c = softmax.int(%x, 2, none) : float32[3,2,1,2]\n"
               "  %r = tuple(%a, %b, %c) : Tuple[float32[3,2,2], int64[3,2,1,2], float32[3,2,1,2]]\n"
               "  return %r\n"
               "}\n", 3, 1e-6, 0);
    check_text("func @forward(%x: float32[1,1]) -> float32[1,1] entry {\n"
               "  %a = sum.dim_IntList(%x, [1], true, none) : float32[1,1]\n"
               "  return %a\n"
               "}\n", 1, 1e-6, 0);
}
END_TEST

START_TEST(products) {
    check_text("func @forward(%x: float32[2,9,20]) -> float32[2,9,37] entry {\n"
               "  %w = const @w_37_20 : float32[37,20]\n"
               "  %b = const @b_37 : float32[37]\n"
               "  %a = linear(%x, %w, %b) : float32[2,9,37]\n"
               "  %c = gelu(%a, \"none\") : float32[2,9,37]\n"
               "  %d = add.Tensor(%c, %a, 1) : float32[2,9,37]\n"
               "  return %d\n"
               "}\n", 1, 1e-5, 0);
    check_text("func @forward(%x: float32[1,149]) -> float32[1,150] entry {\n"
               "  %w = const @w_150_149 : float32[150,149]\n"
               "  %a = linear(%x, %w, none) : float32[1,150]\n"
               "  %c = relu(%a) : float32[1,150]\n"
               "  return %c\n"
               "}\n", 1, 1e-5, 0);
    const char *symbolic = "func @forward(%x: float32[N,20]) -> float32[N,37] entry {\n"
               "  %w = const @w_37_20 : float32[37,20]\n"
               "  %a = linear(%x, %w, none) : float32[N,37]\n"
               "  %c = relu(%a) : float32[N,37]\n"
               "  return %c\n"
               "}\n";
    check_text(symbolic, 1, 1e-5, 1);
    check_text(symbolic, 1, 1e-5, 37);
    check_text("func @forward(%x: float32[1,70]) -> float32[1,300] entry {\n"
               "  %w = const @w_70_300 : float32[70,300]\n"
               "  %b = const @b_300 : float32[300]\n"
               "  %a = addmm(%b, %x, %w, beta=1, alpha=1) : float32[1,300]\n"
               "  return %a\n"
               "}\n", 1, 1e-5, 0);
}
END_TEST

START_TEST(long_sums) {
    /* Summed in blocks of terms: an odd length with a heavy epilogue in memory; rows 4 KB apart, which
     * are copied, of several blocks; both sides inputs. */
    const char *blocks = "func @forward(%x: float32[N,1803]) -> float32[N,37] entry {\n"
               "  %w = const @w_37_1803 : float32[37,1803]\n"
               "  %b = const @b_37 : float32[37]\n"
               "  %a = linear(%x, %w, %b) : float32[N,37]\n"
               "  %c = gelu(%a, \"none\") : float32[N,37]\n"
               "  return %c\n"
               "}\n";
    check_text(blocks, 1, 1e-4, 1);
    check_text(blocks, 1, 1e-4, 163);
    check_text("func @forward(%x: float32[205,1024]) -> float32[205,530] entry {\n"
               "  %w = const @w_530_1024 : float32[530,1024]\n"
               "  %a = linear(%x, %w, none) : float32[205,530]\n"
               "  %c = relu(%a) : float32[205,530]\n"
               "  return %c\n"
               "}\n", 1, 1e-4, 0);
    /* 1024 terms of up to 9: sums of about 100, whose last bit is 8e-6; errors of 50 of them. */
    check_text("func @forward(%x: float32[2,200,1024], %y: float32[2,1024,45]) -> float32[2,200,45] entry {\n"
               "  %a = matmul(%x, %y) : float32[2,200,45]\n"
               "  return %a\n"
               "}\n", 1, 4e-4, 0);
}
END_TEST

START_TEST(weights_in_loops) {
    /* Every other step walks its weights backward. */
    const char *text = "func @forward(%x: float32[1,500]) -> float32[1,500] entry {\n"
                       "  %w = const @w_500_500 : float32[500,500]\n"
                       "  %y = loop %i to 5 while true carry(%h: float32[1,500] = %x) -> (float32[1,500]) {\n"
                       "    %a = linear(%h, %w, none) : float32[1,500]\n"
                       "    %t = tanh(%a) : float32[1,500]\n"
                       "    yield true, %t\n"
                       "  }\n"
                       "  return %y\n"
                       "}\n";
    check_text(text, 1, 1e-3, 0);
}
END_TEST

START_TEST(products_of_inputs) {
    /* Both sides are packed at run time: the left one is transposed. */
    check_text("func @forward(%x: float32[2,19,17], %y: float32[2,19,21]) -> float32[2,17,21] entry {\n"
               "  %t = transpose.int(%x, 1, 2) : float32[2,17,19]\n"
               "  %a = matmul(%t, %y) : float32[2,17,21]\n"
               "  return %a\n"
               "}\n", 1, 1e-5, 0);
    check_text("func @forward(%x: float32[1,33], %y: float32[33,7]) -> float32[1,7] entry {\n"
               "  %a = mm(%x, %y) : float32[1,7]\n"
               "  return %a\n"
               "}\n", 1, 1e-5, 0);
}
END_TEST

/* The right side is packed: four panels and fewer, transposed by squares and what is left of them, of unknown
 * sizes. */
START_TEST(products_of_two_inputs) {
    check_text("func @forward(%x: float32[30,70], %y: float32[70,150]) -> float32[30,150] entry {\n"
               "  %a = mm(%x, %y) : float32[30,150]\n"
               "  return %a\n"
               "}\n", 1, 1e-5, 0);
    const char *transposed = "func @forward(%x: float32[37,N], %y: float32[29,N]) -> float32[37,29] entry {\n"
                             "  %t = t(%y) : float32[N,29]\n"
                             "  %a = mm(%x, %t) : float32[37,29]\n"
                             "  return %a\n"
                             "}\n";
    check_text(transposed, 1, 1e-5, 1);
    check_text(transposed, 1, 1e-5, 16);
    check_text(transposed, 1, 1e-5, 45);
    const char *columns = "func @forward(%x: float32[20,40], %y: float32[40,N]) -> float32[20,N] entry {\n"
                          "  %a = mm(%x, %y) : float32[20,N]\n"
                          "  return %a\n"
                          "}\n";
    check_text(columns, 1, 1e-5, 3);
    check_text(columns, 1, 1e-5, 64);
    check_text(columns, 1, 1e-5, 131);
}
END_TEST

/* It is read where it lies: columns that end within a vector, a slice of wider rows; few of an unknown number of
 * rows, and more of them than one tile has. */
START_TEST(products_that_read_the_right_side) {
    check_text("func @forward(%x: float32[2,65,100], %y: float32[2,100,80]) -> float32[2,65,77] entry {\n"
               "  %s = slice.Tensor(%y, 2, 2, 79, 1) : float32[2,100,77]\n"
               "  %a = matmul(%x, %s) : float32[2,65,77]\n"
               "  %b = relu(%a) : float32[2,65,77]\n"
               "  return %b\n"
               "}\n", 1, 1e-5, 0);
    check_text("func @forward(%x: float32[1,300], %y: float32[300,131]) -> float32[1,131] entry {\n"
               "  %a = mm(%x, %y) : float32[1,131]\n"
               "  return %a\n"
               "}\n", 1, 1e-5, 0);
    const char *rows = "func @forward(%x: float32[3,N,M], %y: float32[3,M,45]) -> float32[3,N,45] entry {\n"
                       "  %a = matmul(%x, %y) : float32[3,N,45]\n"
                       "  return %a\n"
                       "}\n";
    /* Where terms are adjacent squares are transposed in registers: of known and of unknown sizes. */
    const char *columns = "func @forward(%x: float32[3,N,M], %y: float32[3,45,M]) -> float32[3,N,45] entry {\n"
                          "  %t = transpose.int(%y, 1, 2) : float32[3,M,45]\n"
                          "  %a = matmul(%x, %t) : float32[3,N,45]\n"
                          "  return %a\n"
                          "}\n";
    int sizes[] = {1, 4, 6, 7, 14, 15, 33};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_text(rows, 1, 1e-5, sizes[i]);
        check_text(columns, 1, 1e-5, sizes[i]);
    }
    check_text("func @forward(%x: float32[2,77], %y: float32[45,77]) -> float32[2,45] entry {\n"
               "  %t = t(%y) : float32[77,45]\n"
               "  %a = mm(%x, %t) : float32[2,45]\n"
               "  return %a\n"
               "}\n", 1, 1e-5, 0);
    check_text("func @forward(%x: float32[5,3], %y: float32[16,3]) -> float32[5,16] entry {\n"
               "  %t = t(%y) : float32[3,16]\n"
               "  %a = mm(%x, %t) : float32[5,16]\n"
               "  return %a\n"
               "}\n", 1, 1e-5, 0);
}
END_TEST

START_TEST(symbolic_attention) {
    const char *text =
        "func @forward(%q: float32[2,N,8], %k: float32[2,N,8], %v: float32[2,N,12]) -> float32[2,N,12] entry {\n"
        "  %t = transpose.int(%k, 1, 2) : float32[2,8,N]\n"
        "  %s = matmul(%q, %t) : float32[2,N,N]\n"
        "  %a = softmax.int(%s, -1, none) : float32[2,N,N]\n"
        "  %o = matmul(%a, %v) : float32[2,N,12]\n"
        "  return %o\n"
        "}\n";
    check_text(text, 1, 1e-5, 1);
    check_text(text, 1, 1e-5, 19);
    check_text(text, 1, 1e-5, 130);
}
END_TEST

START_TEST(attention) {
    check_text("func @forward(%x: float32[2,19,3,2,24]) -> float32[2,19,48] entry {\n"
               "  %p = permute(%x, [2, 0, 3, 1, 4]) : float32[3,2,2,19,24]\n"
               "  %q = select.int(%p, 0, 0) : float32[2,2,19,24]\n"
               "  %k = select.int(%p, 0, 1) : float32[2,2,19,24]\n"
               "  %v = select.int(%p, 0, 2) : float32[2,2,19,24]\n"
               "  %t = transpose.int(%k, -2, -1) : float32[2,2,24,19]\n"
               "  %s = matmul(%q, %t) : float32[2,2,19,19]\n"
               "  %u = mul.Scalar(%s, 0.2) : float32[2,2,19,19]\n"
               "  %a = softmax.int(%u, -1, none) : float32[2,2,19,19]\n"
               "  %o = matmul(%a, %v) : float32[2,2,19,24]\n"
               "  %w = transpose.int(%o, 1, 2) : float32[2,19,2,24]\n"
               "  %z = reshape(%w, [2, 19, 48]) : float32[2,19,48]\n"
               "  return %z\n"
               "}\n", 1, 1e-5, 0);
}
END_TEST

/* Several blocks of queries and of keys, odd widths, masks for keys and for pairs, a result that is
 * stored transposed; scores that others read stay in memory. */
START_TEST(masked_attention) {
    check_text("func @forward(%q: float32[2,70,3,20], %k: float32[2,3,300,20], %v: float32[2,3,300,37], %m: bool[2,1,1,300], %b: float32[3,70,300]) -> float32[2,70,111] entry {\n"
               "  %p = permute(%q, [0, 2, 1, 3]) : float32[2,3,70,20]\n"
               "  %t = transpose.int(%k, -2, -1) : float32[2,3,20,300]\n"
               "  %s = matmul(%p, %t) : float32[2,3,70,300]\n"
               "  %u = div.Scalar(%s, 4.0) : float32[2,3,70,300]\n"
               "  %w = where.ScalarOther(%m, %u, -inf) : float32[2,3,70,300]\n"
               "  %x = add.Tensor(%w, %b, 1) : float32[2,3,70,300]\n"
               "  %a = softmax.int(%x, -1, none) : float32[2,3,70,300]\n"
               "  %o = matmul(%a, %v) : float32[2,3,70,37]\n"
               "  %y = permute(%o, [0, 2, 1, 3]) : float32[2,70,3,37]\n"
               "  %z = reshape(%y, [2, 70, 111]) : float32[2,70,111]\n"
               "  return %z\n"
               "}\n", 1, 1e-5, 0);
    check_text("func @forward(%q: float32[9,8], %k: float32[8,5], %v: float32[5,4]) -> Tuple[float32[9,4], float32[9,5]] entry {\n"
               "  %s = matmul(%q, %k) : float32[9,5]\n"
               "  %a = softmax.int(%s, -1, none) : float32[9,5]\n"
               "  %o = matmul(%a, %v) : float32[9,4]\n"
               "  %p = relu(%o) : float32[9,4]\n"
               "  %r = tuple(%p, %a) : Tuple[float32[9,4], float32[9,5]]\n"
               "  return %r\n"
               "}\n", 3, 1e-5, 0);
    /* A query all of whose keys have the least finite score weighs them alike. */
    check_text("func @forward(%q: float32[9,8], %t: float32[8,70], %v: float32[70,4], %m: bool[9,1]) -> float32[9,4] entry {\n"
               "  %s = matmul(%q, %t) : float32[9,70]\n"
               "  %w = where.ScalarOther(%m, %s, -3.4028234663852886e+38) : float32[9,70]\n"
               "  %a = softmax.int(%w, -1, none) : float32[9,70]\n"
               "  %o = matmul(%a, %v) : float32[9,4]\n"
               "  return %o\n"
               "}\n", 1, 1e-5, 0);
}
END_TEST

/* Grouped heads, causal order of unknown sizes, and sizes that would fit two ways: queries and values
 * that are computed are no part of the score. */
START_TEST(kinds_of_attention) {
    check_text("func @forward(%q: float32[2,6,9,8], %k: float32[2,2,11,8], %v: float32[2,2,11,5], %m: bool[2,6,9,11]) -> float32[2,6,9,5] entry {\n"
               "  %o = scaled_dot_product_attention(%q, %k, %v, %m, 0.0, false, scale=none, enable_gqa=true) : float32[2,6,9,5]\n"
               "  return %o\n"
               "}\n", -1, 1e-5, 0); /* the result is a view of what the kernel gives */
    const char *causal =
        "func @forward(%q: float32[1,2,N,8], %k: float32[1,2,N,8], %v: float32[1,2,N,12]) -> float32[1,2,N,12] entry {\n"
        "  %o = scaled_dot_product_attention(%q, %k, %v, none, 0.0, true, scale=none, enable_gqa=false) : float32[1,2,N,12]\n"
        "  return %o\n"
        "}\n";
    check_text(causal, -1, 1e-5, 1); /* any count: the positions come from reference kernels */
    check_text(causal, -1, 1e-5, 40);
    check_text(causal, -1, 1e-5, 150);
    check_text("func @forward(%q: float32[2,300,8], %k: float32[2,300,8], %v: float32[2,300,8]) -> float32[2,300,8] entry {\n"
               "  %o = scaled_dot_product_attention(%q, %k, %v, none, 0.0, true, scale=none, enable_gqa=false) : float32[2,300,8]\n"
               "  return %o\n"
               "}\n", 1, 1e-5, 0);
    check_text("func @forward(%x: float32[12,12], %y: float32[12,12], %z: float32[12,12]) -> float32[12,12] entry {\n"
               "  %q = mul.Scalar(%x, 0.3) : float32[12,12]\n"
               "  %v = relu(%z) : float32[12,12]\n"
               "  %k = abs(%y) : float32[12,12]\n"
               "  %s = matmul(%q, %k) : float32[12,12]\n"
               "  %a = softmax.int(%s, -1, none) : float32[12,12]\n"
               "  %o = matmul(%a, %v) : float32[12,12]\n"
               "  return %o\n"
               "}\n", 4, 1e-5, 0);
}
END_TEST

/* Line by line, several of one image, beside the image itself, of known and unknown sizes. */
START_TEST(reductions_of_images) {
    check_text("func @forward(%x: float32[2,6,48,40]) -> Tuple[float32[2,20], float32[2,20,1,1], float32[2,20], float32[2,4,48,40]] entry {\n"
               "  %w = const @w_20_6_1_1 : float32[20,6,1,1]\n"
               "  %y = conv2d(%x, %w, none, [1, 1], [0, 0], [1, 1], 1) : float32[2,20,48,40]\n"
               "  %a = silu(%y) : float32[2,20,48,40]\n"
               "  %s = mean.dim(%a, [2, 3], false, none) : float32[2,20]\n"
               "  %t = amax(%a, [-1, -2], true) : float32[2,20,1,1]\n"
               "  %u = sum.dim_IntList(%a, [3, 2], false, none) : float32[2,20]\n"
               "  %v = const @w_4_20_1_1 : float32[4,20,1,1]\n"
               "  %z = conv2d(%a, %v, none, [1, 1], [0, 0], [1, 1], 1) : float32[2,4,48,40]\n"
               "  %r = tuple(%s, %t, %u, %z) : Tuple[float32[2,20], float32[2,20,1,1], float32[2,20], float32[2,4,48,40]]\n"
               "  return %r\n"
               "}\n", -1, 1e-5, 0);
    const char *unknown =
        "func @forward(%x: float32[1,6,N,40]) -> float32[1,200,1,1] entry {\n"
        "  %w = const @w_200_6_1_1 : float32[200,6,1,1]\n"
        "  %y = conv2d(%x, %w, none, [1, 1], [0, 0], [1, 1], 1) : float32[1,200,N,40]\n"
        "  %a = hardswish(%y) : float32[1,200,N,40]\n"
        "  %s = adaptive_avg_pool2d(%a, [1, 1]) : float32[1,200,1,1]\n"
        "  return %s\n"
        "}\n";
    check_text(unknown, 3, 1e-5, 1);
    check_text(unknown, 3, 1e-5, 33);
}
END_TEST

/* One long line for a channel: its tiles are divided into items, of known and unknown lengths. */
START_TEST(windows_of_signals) {
    check_text("func @forward(%x: float32[1,20,301]) -> float32[1,20,151] entry {\n"
               "  %w = const @w_20_1_5 : float32[20,1,5]\n"
               "  %a = conv1d(%x, %w, none, [2], [2], [1], 20) : float32[1,20,151]\n"
               "  %b = relu(%a) : float32[1,20,151]\n"
               "  return %b\n"
               "}\n", 1, 1e-5, 0);
    check_text("func @forward(%x: float32[1,7,9]) -> float32[1,7,9] entry {\n"
               "  %w = const @w_7_1_3 : float32[7,1,3]\n"
               "  %a = conv1d(%x, %w, none, [1], [1], [1], 7) : float32[1,7,9]\n"
               "  return %a\n"
               "}\n", 1, 1e-5, 0);
    const char *unknown =
        "func @forward(%x: float32[1,20,N]) -> float32[1,20,N] entry {\n"
        "  %w = const @w_20_1_3 : float32[20,1,3]\n"
        "  %a = conv1d(%x, %w, none, [1], [1], [1], 20) : float32[1,20,N]\n"
        "  return %a\n"
        "}\n";
    check_text(unknown, 1, 1e-5, 1);
    check_text(unknown, 1, 1e-5, 7);
    check_text(unknown, 1, 1e-5, 300);
}
END_TEST

START_TEST(convolutions) {
    check_text("func @forward(%x: float32[2,3,13,11]) -> float32[2,10] entry {\n"
               "  %w = const @w_20_3_3_3 : float32[20,3,3,3]\n"
               "  %b = const @b_20 : float32[20]\n"
               "  %a = conv2d(%x, %w, %b, [2, 2], [1, 1], [1, 1], 1) : float32[2,20,7,6]\n"
               "  %c = relu(%a) : float32[2,20,7,6]\n"
               "  %v = const @w_32_20_3_3 : float32[32,20,3,3]\n"
               "  %d = conv2d(%c, %v, none, [1, 1], [1, 1], [1, 1], 1) : float32[2,32,7,6]\n"
               "  %dw = const @w_32_1_3_3 : float32[32,1,3,3]\n"
               "  %e = conv2d(%d, %dw, none, [1, 1], [1, 1], [1, 1], 32) : float32[2,32,7,6]\n"
               "  %f = hardswish(%e) : float32[2,32,7,6]\n"
               "  %gw = const @w_32_16_1_1 : float32[32,16,1,1]\n"
               "  %g = conv2d(%f, %gw, none, [1, 1], [0, 0], [1, 1], 2) : float32[2,32,7,6]\n"
               "  %h = add.Tensor(%g, %d, 1) : float32[2,32,7,6]\n"
               "  %i = mean.dim(%h, [2, 3], false, none) : float32[2,32]\n"
               "  %jw = const @w_10_32 : float32[10,32]\n"
               "  %j = linear(%i, %jw, none) : float32[2,10]\n"
               "  return %j\n"
               "}\n", 6, 1e-5, 0);
    check_text("func @forward(%x: float32[2,17,30]) -> float32[2,5,14] entry {\n"
               "  %w = const @w_5_17_3 : float32[5,17,3]\n"
               "  %b = const @b_5 : float32[5]\n"
               "  %a = conv1d(%x, %w, %b, [2], [1], [2], 1) : float32[2,5,14]\n"
               "  %c = relu(%a) : float32[2,5,14]\n"
               "  return %c\n"
               "}\n", 1, 1e-5, 0);
    /* Frames of a signal: one channel, and several side by side. */
    check_text("func @forward(%x: float32[3,1,50]) -> float32[3,19,8] entry {\n"
               "  %w = const @w_20_1_7 : float32[20,1,7]\n"
               "  %a = conv1d(%x, %w, none, [2], [0], [1], 1) : float32[3,20,22]\n"
               "  %b = relu(%a) : float32[3,20,22]\n"
               "  %v = const @w_19_20_3 : float32[19,20,3]\n"
               "  %d = const @b_19 : float32[19]\n"
               "  %c = conv1d(%b, %v, %d, [3], [0], [1], 1) : float32[3,19,7]\n"
               "  %u = const @w_19_19_2 : float32[19,19,2]\n"
               "  %e = conv1d(%c, %u, none, [1], [1], [1], 1) : float32[3,19,8]\n"
               "  return %e\n"
               "}\n", 3, 1e-5, 0);
    check_text("func @forward(%x: float32[1,3,32,32]) -> float32[1,16,8] entry {\n"
               "  %w = const @w_8_3_8_8 : float32[8,3,8,8]\n"
               "  %a = conv2d(%x, %w, none, [8, 8], [0, 0], [1, 1], 1) : float32[1,8,4,4]\n"
               "  %b = flatten.using_ints(%a, 2, -1) : float32[1,8,16]\n"
               "  %c = transpose.int(%b, 1, 2) : float32[1,16,8]\n"
               "  %d = mul.Scalar(%c, 2.0) : float32[1,16,8]\n"
               "  return %d\n"
               "}\n", -1, 1e-5, 0);
}
END_TEST

/* One convolution, of a contiguous image and of one that lies channels-last. */
typedef struct convolution_case {
    int images, in, h, w, out, kh, kw, stride, pad, dilation, groups;
    const char *after; /* an activation */
} convolution_case;

static const convolution_case convolution_cases[] = {
    {1, 3, 20, 37, 16, 3, 3, 2, 1, 1, 1, "hardswish"}, {2, 3, 23, 21, 33, 7, 7, 2, 3, 1, 1, "relu"},
    {1, 1, 17, 19, 9, 5, 5, 1, 2, 1, 1, "silu"},        {1, 4, 16, 18, 24, 3, 3, 1, 2, 2, 1, "relu"},
    {2, 6, 12, 15, 8, 3, 2, 1, 0, 1, 2, "gelu"},        {1, 16, 9, 28, 40, 1, 1, 1, 0, 1, 1, "relu"},
    {1, 16, 7, 7, 72, 3, 3, 1, 1, 1, 1, "hardswish"},   {2, 32, 8, 9, 48, 1, 1, 1, 0, 1, 1, "silu"},
    {1, 20, 11, 13, 17, 3, 3, 2, 1, 1, 1, "relu"},      {1, 5, 3, 3, 6, 3, 3, 1, 5, 1, 1, "relu"},
    /* by transforms: whole tiles, ragged ones, masked columns, an epilogue in memory, two images */
    {1, 16, 16, 16, 32, 3, 3, 1, 1, 1, 1, "relu"},      {2, 33, 15, 18, 40, 3, 3, 1, 1, 1, 1, "hardswish"},
    {1, 24, 30, 35, 17, 3, 3, 1, 2, 1, 1, "silu"},      {1, 64, 9, 9, 96, 3, 3, 1, 0, 1, 1, "relu"},
    {1, 128, 5, 6, 128, 3, 3, 1, 1, 1, 1, "relu"},
    /* depthwise: tiles at the ends of lines and between them, a short last one */
    {1, 20, 13, 53, 20, 5, 5, 1, 2, 1, 20, "hardswish"}, {2, 33, 9, 70, 33, 3, 3, 2, 1, 1, 33, "silu"},
    {1, 16, 8, 40, 16, 3, 3, 1, 2, 2, 16, "relu"},       {1, 72, 7, 7, 72, 7, 7, 1, 3, 1, 72, "relu"},
    {1, 5, 4, 3, 5, 3, 3, 1, 4, 1, 5, "relu"},           {1, 8, 1, 64, 8, 1, 9, 4, 0, 1, 8, "relu"},
};

START_TEST(convolution_shapes) {
    const convolution_case *c = &convolution_cases[_i];
    int oh = (c->h + 2 * c->pad - c->dilation * (c->kh - 1) - 1) / c->stride + 1;
    int ow = (c->w + 2 * c->pad - c->dilation * (c->kw - 1) - 1) / c->stride + 1;
    for (int form = 0; form < 4; form++) {
        bool channels_last = form & 1, is_given = form & 2; /* filters at run time, which a kernel scales */
        char text[2000], first[400] = "", result[64], filters[64], weight[200];
        if (channels_last)
            snprintf(first, sizeof first,
                     "  %%v = const @v_%d_%d_1_1 : float32[%d,%d,1,1]\n"
                     "  %%m = conv2d(%%x, %%v, none, [1, 1], [0, 0], [1, 1], 1) : float32[%d,%d,%d,%d]\n",
                     c->in, c->in, c->in, c->in, c->images, c->in, c->h, c->w);
        snprintf(filters, sizeof filters, "float32[%d,%d,%d,%d]", c->out, c->in / c->groups, c->kh, c->kw);
        if (is_given)
            snprintf(weight, sizeof weight, "mul.Scalar(%%u, 0.17)");
        else
            snprintf(weight, sizeof weight, "const @w_%d_%d_%d_%d", c->out, c->in / c->groups, c->kh, c->kw);
        snprintf(result, sizeof result, "float32[%d,%d,%d,%d]", c->images, c->out, oh, ow);
        const char *gelu = strcmp(c->after, "gelu") == 0 ? ", \"none\"" : "";
        int length = snprintf(
            text, sizeof text,
            "func @forward(%%x: float32[%d,%d,%d,%d], %%u: %s) -> %s entry {\n%s"
            "  %%w = %s : %s\n"
            "  %%b = const @b_%d : float32[%d]\n"
            "  %%a = conv2d(%%%s, %%w, %%b, [%d, %d], [%d, %d], [%d, %d], %d) : %s\n"
            "  %%r = %s(%%a%s) : %s\n"
            "  return %%r\n}\n",
            c->images, c->in, c->h, c->w, filters, result, first, weight, filters, c->out, c->out,
            channels_last ? "m" : "x",
            c->stride, c->stride, c->pad, c->pad, c->dilation, c->dilation, c->groups, result,
            c->after, gelu, result);
        ck_assert_int_lt(length, (int)sizeof text);
        /* Errors follow the largest result, about four deviations: inputs have 1.7, weights 0.29, and
         * either convolution adds up. By transforms they are below 4e-6 of it (docs/kernels.md),
         * direct sums of hundreds of products below 1e-6. */
        double deviation = 0.5 * sqrt(c->kh * c->kw * c->in / c->groups) *
                           (channels_last ? 0.29 * sqrt(c->in) : 1);
        bool by_transforms = channels_last && !is_given && c->in >= 16 && c->groups == 1 && c->kh == 3 &&
                             c->stride == 1;
        double tolerance = 1e-6 * 4 * deviation;
        tolerance = tolerance < 1e-5 ? 1e-5 : tolerance;
        check_text_with(text, 1 + channels_last + is_given, tolerance, 0, true);
        if (by_transforms)
            check_text(text, 1 + channels_last, 4 * tolerance, 0);
    }
}
END_TEST

/* Transposed: in, h, w, out of a group, kernel, stride, pad, output padding, dilation, groups. */
static const int transposed_cases[][10] = {
    {16, 5, 7, 12, 2, 2, 0, 0, 1, 1},  {20, 6, 5, 33, 4, 2, 1, 0, 1, 1}, {3, 7, 9, 8, 3, 2, 1, 1, 1, 1},
    {8, 4, 6, 5, 2, 3, 0, 1, 1, 2},    {32, 5, 5, 16, 5, 3, 2, 2, 2, 1}, {16, 6, 6, 16, 3, 1, 1, 0, 1, 1},
};

START_TEST(transposed_convolutions) {
    const int *c = transposed_cases[_i];
    int oh = (c[1] - 1) * c[5] - 2 * c[6] + c[8] * (c[4] - 1) + c[7] + 1;
    int ow = (c[2] - 1) * c[5] - 2 * c[6] + c[8] * (c[4] - 1) + c[7] + 1, out = c[3] * c[9];
    for (int channels_last = 0; channels_last < 2; channels_last++) {
        char text[2000], first[400] = "", result[64];
        if (channels_last)
            snprintf(first, sizeof first,
                     "  %%v = const @v_%d_%d_1_1 : float32[%d,%d,1,1]\n"
                     "  %%m = conv2d(%%x, %%v, none, [1, 1], [0, 0], [1, 1], 1) : float32[2,%d,%d,%d]\n",
                     c[0], c[0], c[0], c[0], c[0], c[1], c[2]);
        snprintf(result, sizeof result, "float32[2,%d,%d,%d]", out, oh, ow);
        int length = snprintf(
            text, sizeof text,
            "func @forward(%%x: float32[2,%d,%d,%d]) -> %s entry {\n%s"
            "  %%w = const @w_%d_%d_%d_%d : float32[%d,%d,%d,%d]\n  %%b = const @b_%d : float32[%d]\n"
            "  %%a = conv_transpose2d.input(%%%s, %%w, %%b, [%d, %d], [%d, %d], [%d, %d], %d, [%d, %d]) : %s\n"
            "  %%r = hardswish(%%a) : %s\n  return %%r\n}\n",
            c[0], c[1], c[2], result, first, c[0], c[3], c[4], c[4], c[0], c[3], c[4], c[4], out, out,
            channels_last ? "m" : "x", c[5], c[5], c[6], c[6], c[7], c[7], c[9], c[8], c[8], result,
            result);
        ck_assert_int_lt(length, (int)sizeof text);
        check_text(text, 1 + channels_last, 2e-5, 0);
    }
}
END_TEST

START_TEST(composites) {
    check_text("func @forward(%x: float32[2,20], %h: float32[2,24], %c: float32[2,24]) -> Tuple[float32[2,24], float32[2,24]] entry {\n"
               "  %wi = const @w_96_20 : float32[96,20]\n"
               "  %wh = const @w_96_24 : float32[96,24]\n"
               "  %b = const @w_96 : float32[96]\n"
               "  %l = list(%h, %c) : List[Tensor]\n"
               "  %p, %q = lstm_cell(%x, %l, %wi, %wh, %b, %b) : (float32[2,24], float32[2,24])\n"
               "  %r = tuple(%p, %q) : Tuple[float32[2,24], float32[2,24]]\n"
               "  return %r\n"
               "}\n", 3, 1e-5, 0);
    check_text("func @forward(%x: float32[1,20], %h: float32[1,24]) -> float32[1,24] entry {\n"
               "  %wi = const @w_72_20 : float32[72,20]\n"
               "  %wh = const @w_72_24 : float32[72,24]\n"
               "  %b = const @w_72 : float32[72]\n"
               "  %p = gru_cell(%x, %h, %wi, %wh, %b, %b) : float32[1,24]\n"
               "  return %p\n"
               "}\n", 3, 1e-5, 0);
    check_text("func @forward(%q: float32[2,3,17,8], %k: float32[2,3,17,8], %v: float32[2,3,17,12]) -> float32[2,3,17,12] entry {\n"
               "  %o = scaled_dot_product_attention(%q, %k, %v, none, 0.0, true, scale=none, enable_gqa=false) : float32[2,3,17,12]\n"
               "  return %o\n"
               "}\n", 1, 1e-5, 0);
    /* A mask of few columns: some rows have no key at all. */
    check_text("func @forward(%q: float32[2,3,17,8], %k: float32[2,3,2,8], %v: float32[2,3,2,12], %m: bool[17,2]) -> float32[2,3,17,12] entry {\n"
               "  %o = scaled_dot_product_attention(%q, %k, %v, %m, 0.0, false, scale=0.5, enable_gqa=false) : float32[2,3,17,12]\n"
               "  return %o\n"
               "}\n", 1, 1e-5, 0);
    check_text("func @forward(%q: float32[2,17,8], %k: float32[2,9,8], %v: float32[2,9,12], %m: float32[17,9]) -> float32[2,17,12] entry {\n"
               "  %o = scaled_dot_product_attention(%q, %k, %v, %m, 0.0, false, scale=none, enable_gqa=false) : float32[2,17,12]\n"
               "  return %o\n"
               "}\n", 1, 1e-5, 0);
}
END_TEST

/* Windows over lines whose length is not known: ends, interior tiles of each size, and lines that are
 * shorter than the window. */
START_TEST(symbolic_windows) {
    const char *depthwise =
        "func @forward(%x: float32[2,3,N,N]) -> float32[2,20,(N+1)//2,(N+1)//2] entry {\n"
        "  %w = const @w_20_3_1_1 : float32[20,3,1,1]\n"
        "  %a = conv2d(%x, %w, none, [1, 1], [0, 0], [1, 1], 1) : float32[2,20,N,N]\n"
        "  %v = const @v_20_1_3_3 : float32[20,1,3,3]\n"
        "  %b = const @b_20 : float32[20]\n"
        "  %c = conv2d(%a, %v, %b, [1, 1], [1, 1], [1, 1], 20) : float32[2,20,N,N]\n"
        "  %d = relu(%c) : float32[2,20,N,N]\n"
        "  %u = const @u_20_1_5_5 : float32[20,1,5,5]\n"
        "  %e = conv2d(%d, %u, none, [2, 2], [2, 2], [1, 1], 20) : float32[2,20,(N+1)//2,(N+1)//2]\n"
        "  return %e\n"
        "}\n";
    const char *pooled =
        "func @forward(%x: float32[1,3,N,N]) -> float32[1,18,(N+1)//2,(N+1)//2] entry {\n"
        "  %w = const @w_18_3_1_1 : float32[18,3,1,1]\n"
        "  %a = conv2d(%x, %w, none, [1, 1], [0, 0], [1, 1], 1) : float32[1,18,N,N]\n"
        "  %b = max_pool2d(%a, [3, 3], [2, 2], [1, 1], [1, 1], false) : float32[1,18,(N+1)//2,(N+1)//2]\n"
        "  return %b\n"
        "}\n";
    static const int64_t sizes[] = {1, 2, 3, 6, 9, 17, 40};
    for (int i = 0; i < 7; i++) {
        check_text(depthwise, 3, 1e-5, sizes[i]);
        check_text(pooled, 2, 1e-5, sizes[i]);
    }
}
END_TEST

/* Upsampling: beside a convolution (channels innermost), alone, and as a part of a concatenation. */
START_TEST(resizes) {
    check_text("func @forward(%x: float32[2,5,6,7], %y: float32[2,3,12,14]) -> float32[2,4,12,14] entry {\n"
               "  %w = const @w_20_5_3_3 : float32[20,5,3,3]\n"
               "  %a = conv2d(%x, %w, none, [1, 1], [1, 1], [1, 1], 1) : float32[2,20,6,7]\n"
               "  %u = upsample_bilinear2d.vec(%a, none, false, [2.0, 2.0]) : float32[2,20,12,14]\n"
               "  %l = list(%u, %y) : List[Tensor]\n"
               "  %c = cat(%l, 1) : float32[2,23,12,14]\n"
               "  %v = const @v_4_23_1_1 : float32[4,23,1,1]\n"
               "  %b = conv2d(%c, %v, none, [1, 1], [0, 0], [1, 1], 1) : float32[2,4,12,14]\n"
               "  return %b\n"
               "}\n", 3, 1e-5, 0);
    check_text("func @forward(%x: float32[2,3,5,21], %y: float32[2,3,10,33]) -> Tuple[float32[2,3,10,33], float32[2,3,7,21], float32[2,3,10,40]] entry {\n"
               "  %a = upsample_nearest2d.vec(%x, [10, 33], none) : float32[2,3,10,33]\n"
               "  %b = add.Tensor(%a, %y, 1) : float32[2,3,10,33]\n"
               "  %c = upsample_bilinear2d(%x, [7, 21], true, none, none) : float32[2,3,7,21]\n"
               "  %d = upsample_bicubic2d(%x, [10, 40], false, none, none) : float32[2,3,10,40]\n"
               "  %r = tuple(%b, %c, %d) : Tuple[float32[2,3,10,33], float32[2,3,7,21], float32[2,3,10,40]]\n"
               "  return %r\n"
               "}\n", 3, 1e-5, 0);
    check_text("func @forward(%x: int64[2,3,9], %y: float32[1,2,3,4,5]) -> Tuple[int64[2,3,19], float32[1,2,6,3,9]] entry {\n"
               "  %a = _upsample_nearest_exact1d.vec(%x, [19], none) : int64[2,3,19]\n"
               "  %b = upsample_trilinear3d(%y, [6, 3, 9], false, none, none, none) : float32[1,2,6,3,9]\n"
               "  %r = tuple(%a, %b) : Tuple[int64[2,3,19], float32[1,2,6,3,9]]\n"
               "  return %r\n"
               "}\n", 2, 1e-5, 0);
}
END_TEST

/* The same between sizes that are parameters: positions are computed. */
START_TEST(symbolic_resizes) {
    const char *text =
        "func @forward(%x: float32[1,3,N,N]) -> Tuple[float32[1,18,2*N,2*N], float32[1,3,3*N,2*N], float32[1,3,2*N,N]] entry {\n"
        "  %w = const @w_18_3_1_1 : float32[18,3,1,1]\n"
        "  %a = conv2d(%x, %w, none, [1, 1], [0, 0], [1, 1], 1) : float32[1,18,N,N]\n"
        "  %b = upsample_bilinear2d.vec(%a, none, false, [2.0, 2.0]) : float32[1,18,2*N,2*N]\n"
        "  %c = upsample_nearest2d.vec(%x, none, [3.0, 2.0]) : float32[1,3,3*N,2*N]\n"
        "  %d = upsample_bilinear2d.vec(%x, none, true, [2.0, 1.0]) : float32[1,3,2*N,N]\n"
        "  %r = tuple(%b, %c, %d) : Tuple[float32[1,18,2*N,2*N], float32[1,3,3*N,2*N], float32[1,3,2*N,N]]\n"
        "  return %r\n"
        "}\n";
    static const int64_t sizes[] = {1, 2, 5, 23};
    for (int i = 0; i < 4; i++)
        check_text(text, 4, 1e-5, sizes[i]);
}
END_TEST

START_TEST(concatenation) {
    check_text("func @forward(%x: float32[2,3,5], %y: float32[2,4,5]) -> Tuple[float32[2,7,5], float32[2,2,3,5]] entry {\n"
               "  %l = list(%x, %y) : List[Tensor]\n"
               "  %c = cat(%l, 1) : float32[2,7,5]\n"
               "  %m = list(%x, %x) : List[Tensor]\n"
               "  %s = stack(%m, -3) : float32[2,2,3,5]\n"
               "  %r = tuple(%c, %s) : Tuple[float32[2,7,5], float32[2,2,3,5]]\n"
               "  return %r\n"
               "}\n", 2, 0, 0);
    check_text("func @forward(%x: int64[N], %y: int64[3]) -> int64[N+3] entry {\n"
               "  %l = list(%x, %y) : List[Tensor]\n"
               "  %c = cat(%l, 0) : int64[N+3]\n"
               "  return %c\n"
               "}\n", 1, 0, 5000);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("kernels");
    TCase *tc = tcase_create("fusion");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, pointwise_chain);
    tcase_add_test(tc, symbolic_sizes);
    tcase_add_test(tc, views_of_inputs);
    tcase_add_test(tc, integers_and_bools);
    tcase_add_test(tc, rows_and_columns);
    tcase_add_test(tc, norms_by_hand);
    tcase_add_test(tc, reductions_of_one_element);
    tcase_add_test(tc, products);
    tcase_add_test(tc, long_sums);
    tcase_add_test(tc, weights_in_loops);
    tcase_add_test(tc, products_of_inputs);
    tcase_add_test(tc, attention);
    tcase_add_test(tc, products_of_two_inputs);
    tcase_add_test(tc, products_that_read_the_right_side);
    tcase_add_test(tc, symbolic_attention);
    tcase_add_test(tc, masked_attention);
    tcase_add_test(tc, kinds_of_attention);
    tcase_add_test(tc, reductions_of_images);
    tcase_add_test(tc, windows_of_signals);
    tcase_add_test(tc, convolutions);
    tcase_add_loop_test(tc, transposed_convolutions, 0,
                        (int)(sizeof transposed_cases / sizeof *transposed_cases));
    tcase_add_loop_test(tc, convolution_shapes, 0,
                        (int)(sizeof convolution_cases / sizeof *convolution_cases));
    tcase_add_test(tc, composites);
    tcase_add_test(tc, symbolic_windows);
    tcase_add_test(tc, resizes);
    tcase_add_test(tc, symbolic_resizes);
    tcase_add_test(tc, concatenation);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* tests/unit/kernel_amx_test.c - products and attention through tiles of bfloat16, beside those of the other levels that this
 * machine has: numbers of rows, ends of sums and columns within a step, sums in blocks, what is not finite. */
#include <check.h>
#include <stdlib.h>

#include "tests/unit/kernel_check.h"

static void check_sizes(const char *text, double tolerance, const int64_t *of, size_t count) {
    kernel_sizes *sizes = calloc(count + 1, sizeof *sizes);
    for (size_t i = 0; i < count; i++)
        sizes[i].of['N' - 'A'] = of[i];
    kernel_check(text, -1, tolerance, false, sizes, count ? count : 1);
    free(sizes);
}

#define CHECK_ROWS(text, tolerance, ...)                                                                         \
    do {                                                                                                         \
        const int64_t of[] = {__VA_ARGS__};                                                                      \
        check_sizes(text, tolerance, of, sizeof of / sizeof *of);                                                \
    } while (0)

START_TEST(rows_by_weights) {
    const char *plain = "func @forward(%x: float32[N,96]) -> float32[N,128] entry {\n"
                        "  %w = const @w_128_96 : float32[128,96]\n"
                        "  %b = const @b_128 : float32[128]\n"
                        "  %a = linear(%x, %w, %b) : float32[N,128]\n"
                        "  %c = relu(%a) : float32[N,128]\n"
                        "  return %c\n"
                        "}\n";
    CHECK_ROWS(plain, 1e-5, 0, 1, 2, 16, 17, 31, 32, 33, 64, 65, 128, 129, 197, 257, 300, 513);
    /* Sums end within a step, columns within a tile; an epilogue in memory. */
    const char *ends = "func @forward(%x: float32[N,77]) -> float32[N,75] entry {\n"
                       "  %w = const @w_75_77 : float32[75,77]\n"
                       "  %a = linear(%x, %w, none) : float32[N,75]\n"
                       "  %g = gelu(%a, \"none\") : float32[N,75]\n"
                       "  return %g\n"
                       "}\n";
    CHECK_ROWS(ends, 1e-5, 1, 5, 17, 40, 64, 131, 290);
    /* Columns in groups, of which one row takes several panels at once: 4 of them, and 24. */
    const char *groups = "func @forward(%x: float32[N,1536]) -> float32[N,50] entry {\n"
                         "  %w = const @w_50_1536 : float32[50,1536]\n"
                         "  %a = linear(%x, %w, none) : float32[N,50]\n"
                         "  return %a\n"
                         "}\n";
    CHECK_ROWS(groups, 1e-4, 1, 2, 40, 130);
    const char *halves = "func @forward(%x: float32[N,200]) -> float32[N,384] entry {\n"
                         "  %w = const @w_384_200 : float32[384,200]\n"
                         "  %a = linear(%x, %w, none) : float32[N,384]\n"
                         "  return %a\n"
                         "}\n";
    CHECK_ROWS(halves, 1e-5, 1, 2, 40, 130);
    const char *known = "func @forward(%x: float32[2,49,80]) -> float32[2,49,120] entry {\n"
                        "  %w = const @w_120_80 : float32[120,80]\n"
                        "  %a = linear(%x, %w, none) : float32[2,49,120]\n"
                        "  %c = add.Tensor(%a, %a, 2) : float32[2,49,120]\n"
                        "  return %c\n"
                        "}\n";
    check_sizes(known, 1e-5, NULL, 0);
}
END_TEST

/* Signals without padding: rows that overlap, of few channels and of many. */
START_TEST(frames_of_signals) {
    check_sizes("func @forward(%x: float32[2,1,4000]) -> float32[2,64,399] entry {\n"
                "  %w = const @w_96_1_10 : float32[96,1,10]\n"
                "  %b = const @b_96 : float32[96]\n"
                "  %a = conv1d(%x, %w, %b, [5], [0], [1], 1) : float32[2,96,799]\n"
                "  %c = relu(%a) : float32[2,96,799]\n"
                "  %v = const @w_64_96_3 : float32[64,96,3]\n"
                "  %d = conv1d(%c, %v, none, [2], [0], [1], 1) : float32[2,64,399]\n"
                "  return %d\n"
                "}\n", 2e-5, NULL, 0);
}
END_TEST

START_TEST(sums_in_blocks) {
    /* Sums so far of all columns stay in scratch; of 2000 columns and 256 rows they do not. */
    const char *long_sum = "func @forward(%x: float32[N,1803]) -> float32[N,300] entry {\n"
                           "  %w = const @w_300_1803 : float32[300,1803]\n"
                           "  %a = linear(%x, %w, none) : float32[N,300]\n"
                           "  return %a\n"
                           "}\n";
    CHECK_ROWS(long_sum, 1e-4, 1, 9, 30, 70, 150, 300);
    const char *wide = "func @forward(%x: float32[N,800]) -> float32[N,2000] entry {\n"
                       "  %w = const @w_2000_800 : float32[2000,800]\n"
                       "  %a = linear(%x, %w, none) : float32[N,2000]\n"
                       "  return %a\n"
                       "}\n";
    CHECK_ROWS(wide, 1e-4, 40, 250);
}
END_TEST

START_TEST(two_inputs) {
    check_sizes("func @forward(%x: float32[3,100,96], %y: float32[3,96,112]) -> float32[3,100,112] entry {\n"
                "  %a = matmul(%x, %y) : float32[3,100,112]\n"
                "  return %a\n"
                "}\n", 4e-5, NULL, 0);
    /* Columns whose terms are adjacent are packed first; so are those that end within a panel. */
    check_sizes("func @forward(%x: float32[130,900], %y: float32[99,900]) -> float32[130,99] entry {\n"
                "  %t = t(%y) : float32[900,99]\n"
                "  %a = matmul(%x, %t) : float32[130,99]\n"
                "  return %a\n"
                "}\n", 4e-4, NULL, 0);
    /* Of few rows, which take the vector kernels, an item packs as many panels as it would split. */
    const char *wide = "func @forward(%x: float32[N,384], %y: float32[384,2048]) -> float32[N,2048] entry {\n"
                       "  %a = mm(%x, %y) : float32[N,2048]\n"
                       "  return %a\n"
                       "}\n";
    CHECK_ROWS(wide, 2e-4, 1, 5, 16, 17, 130);
    const char *nothing = "func @forward(%x: float32[N,0], %y: float32[0,128]) -> float32[N,128] entry {\n"
                          "  %a = mm(%x, %y) : float32[N,128]\n"
                          "  return %a\n"
                          "}\n";
    CHECK_ROWS(nothing, 0, 0, 20, 100);
}
END_TEST

/* Where a number is above 2.995 (one of 1200) there is an infinity, or a NaN, which the rows or columns without
 * one must not see. */
START_TEST(not_finite) {
    const char *rows = "func @forward(%x: float32[N,96]) -> float32[N,128] entry {\n"
                       "  %w = const @w_128_96 : float32[128,96]\n"
                       "  %n = neg(%x) : float32[N,96]\n"
                       "  %s = add.Scalar(%n, 2.995, 1) : float32[N,96]\n"
                       "  %r = relu(%s) : float32[N,96]\n"
                       "  %i = reciprocal(%r) : float32[N,96]\n"
                       "  %a = linear(%i, %w, none) : float32[N,128]\n"
                       "  return %a\n"
                       "}\n";
    CHECK_ROWS(rows, 1e-4, 20, 100, 300);
    /* The nearest bfloat16 of a weight is an infinity. */
    check_sizes("func @forward(%x: float32[100,96]) -> float32[100,128] entry {\n"
                "  %w = const @h_128_96 : float32[128,96]\n"
                "  %s = mul.Scalar(%x, 0.01) : float32[100,96]\n"
                "  %a = linear(%s, %w, none) : float32[100,128]\n"
                "  return %a\n"
                "}\n", 1e-5, NULL, 0);
    check_sizes("func @forward(%x: float32[100,96], %y: float32[96,128]) -> float32[100,128] entry {\n"
                "  %n = neg(%y) : float32[96,128]\n"
                "  %s = add.Scalar(%n, 2.995, 1) : float32[96,128]\n"
                "  %l = log(%s) : float32[96,128]\n"
                "  %a = matmul(%x, %l) : float32[100,128]\n"
                "  return %a\n"
                "}\n", 1e-4, NULL, 0);
}
END_TEST

START_TEST(attention) {
    const char *text =
        "func @forward(%q: float32[2,N,40], %k: float32[2,N,40], %v: float32[2,N,48]) -> float32[2,N,48] entry {\n"
        "  %t = transpose.int(%k, 1, 2) : float32[2,40,N]\n"
        "  %s = matmul(%q, %t) : float32[2,N,N]\n"
        "  %u = mul.Scalar(%s, 0.1) : float32[2,N,N]\n"
        "  %a = softmax.int(%u, -1, none) : float32[2,N,N]\n"
        "  %o = matmul(%a, %v) : float32[2,N,48]\n"
        "  return %o\n"
        "}\n";
    CHECK_ROWS(text, 1e-5, 1, 20, 32, 33, 64, 100, 257, 300);
    /* Masks, queries stored apart, a result stored transposed. */
    check_sizes("func @forward(%q: float32[2,70,3,64], %k: float32[2,3,300,64], %v: float32[2,3,300,32], "
                "%m: bool[2,1,1,300], %b: float32[3,70,300]) -> float32[2,70,96] entry {\n"
                "  %p = permute(%q, [0, 2, 1, 3]) : float32[2,3,70,64]\n"
                "  %t = transpose.int(%k, -2, -1) : float32[2,3,64,300]\n"
                "  %s = matmul(%p, %t) : float32[2,3,70,300]\n"
                "  %u = div.Scalar(%s, 8.0) : float32[2,3,70,300]\n"
                "  %w = where.ScalarOther(%m, %u, -inf) : float32[2,3,70,300]\n"
                "  %x = add.Tensor(%w, %b, 1) : float32[2,3,70,300]\n"
                "  %a = softmax.int(%x, -1, none) : float32[2,3,70,300]\n"
                "  %o = matmul(%a, %v) : float32[2,3,70,32]\n"
                "  %y = permute(%o, [0, 2, 1, 3]) : float32[2,70,3,32]\n"
                "  %z = reshape(%y, [2, 70, 96]) : float32[2,70,96]\n"
                "  return %z\n"
                "}\n", 1e-5, NULL, 0);
    /* Of three batches of values some hold infinities: their queries alone see them. */
    check_sizes("func @forward(%q: float32[3,50,32], %k: float32[3,90,32], %y: float32[3,90,16]) -> float32[3,50,16] entry {\n"
                "  %n = neg(%y) : float32[3,90,16]\n"
                "  %e = add.Scalar(%n, 2.998, 1) : float32[3,90,16]\n"
                "  %r = relu(%e) : float32[3,90,16]\n"
                "  %v = reciprocal(%r) : float32[3,90,16]\n"
                "  %t = transpose.int(%k, 1, 2) : float32[3,32,90]\n"
                "  %s = matmul(%q, %t) : float32[3,50,90]\n"
                "  %u = mul.Scalar(%s, 0.05) : float32[3,50,90]\n"
                "  %a = softmax.int(%u, -1, none) : float32[3,50,90]\n"
                "  %o = matmul(%a, %v) : float32[3,50,16]\n"
                "  return %o\n"
                "}\n", 1e-3, NULL, 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("kernels_amx");
    TCase *tc = tcase_create("products");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, rows_by_weights);
    tcase_add_test(tc, frames_of_signals);
    tcase_add_test(tc, sums_in_blocks);
    tcase_add_test(tc, two_inputs);
    tcase_add_test(tc, not_finite);
    tcase_add_test(tc, attention);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

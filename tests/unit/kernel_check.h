/* tests/unit/kernel_check.h - a text of the IR, compiled with kernels and without, on random inputs. */
#ifndef TESTS_UNIT_KERNEL_CHECK_H
#define TESTS_UNIT_KERNEL_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KERNEL_LETTERS = 26 };

/* What the symbols A to Z of the inputs' types are in one run. */
typedef struct kernel_sizes {
    int64_t of[KERNEL_LETTERS];
} kernel_sizes;

/* Runs the first function of `text` by the reference kernels, and fused at each CPU level that this
 * machine has, for every one of `count` sizes on the same model and session: results must agree to
 * tolerance * (1 + |expected|), there must be `kernels` kernels (-1: any number) and no call of a
 * reference kernel. Weights by name: "w_64_3_3_3" is float32[64,3,3,3], small numbers. */
void kernel_check(const char *text, int kernels, double tolerance, bool no_winograd,
                  const kernel_sizes *sizes, size_t count);

/* The same with one set of sizes that must raise an exception with this text, by reference kernels
 * and fused. */
void kernel_check_raises(const char *text, int kernels, const kernel_sizes *sizes,
                         const char *message);

#endif

/* benchmarks/int_loop.c - the loop of run_micro.py's int_loop as a C compiler makes it: microseconds
 * of the best of several runs, and the result. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int64_t __attribute__((noinline)) loop(int64_t n, int64_t s) {
    int64_t odd = 0;
    for (int64_t i = 0; i < n; i++) {
        s = (s * 1103515245 + 12345) % 2147483648;
        if (s % 3 == 0)
            odd += i;
        else if (s > 1073741824)
            odd -= 1;
    }
    return odd + s;
}

int main(int argc, char **argv) {
    int64_t n = argc > 1 ? atoll(argv[1]) : 20000;
    volatile int64_t result = 0; /* written before the clock is read again */
    double best = 0;
    volatile int64_t start = 1; /* so that no run is the one before */
    for (int r = 0; r < 200; r++) {
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        result = loop(n, start);
        clock_gettime(CLOCK_MONOTONIC, &b);
        double time = (double)(b.tv_sec - a.tv_sec) * 1e6 + (double)(b.tv_nsec - a.tv_nsec) * 1e-3;
        if (r == 0 || time < best)
            best = time;
    }
    printf("{\"us\": %.2f, \"result\": %lld}\n", best, (long long)result);
    return 0;
}

/* benchmarks/roofline.c - what this machine can do: float32 multiply-adds a second, and the bandwidth
 * of memory read and copied, on 1 to N threads. One line of JSON for each number of threads.
 *
 *   cc -O2 -march=native -pthread roofline.c -o roofline && ./roofline [THREADS]
 *
 * The best of many short stretches counts: another program may take the processor for a while. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
typedef float lanes __attribute__((vector_size(4 * LANES)));

enum {
    CHAINS = 12, /* more than latency times width of any core that multiplies vectors */
    ROUNDS = 1 << 20,
    STRETCHES = 25,
    TOTAL_BYTES = 256 << 20, /* of all threads' arrays that are read: beyond what caches keep from one run to the next */
    MAX_THREADS = 64
};

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct worker {
    size_t bytes; /* of each array */
    lanes *from, *to;
    float sink;
} worker;

static lanes same(float x) {
    lanes v;
    for (int i = 0; i < LANES; i++)
        v[i] = x;
    return v;
}

/* Named one by one: arrays of vectors would live in memory. */
#define CHAIN_LIST(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

static void multiply_add(worker *w) {
    lanes factor = same(0.9999f), addend = same(1e-7f);
#define DECLARE(i) lanes sum##i = same((float)i);
#define STEP(i) sum##i = sum##i * factor + addend;
#define COLLECT(i) w->sink += sum##i[0];
    CHAIN_LIST(DECLARE)
    for (int round = 0; round < ROUNDS; round++) {
        CHAIN_LIST(STEP)
    }
    CHAIN_LIST(COLLECT)
}

static void read_memory(worker *w) {
    lanes sum0 = same(0), sum1 = same(0), sum2 = same(0), sum3 = same(0);
    size_t count = w->bytes / sizeof(lanes);
    for (size_t i = 0; i < count; i += 4) {
        sum0 += w->from[i];
        sum1 += w->from[i + 1];
        sum2 += w->from[i + 2];
        sum3 += w->from[i + 3];
    }
    w->sink += sum0[0] + sum1[0] + sum2[0] + sum3[0];
}

static void copy_memory(worker *w) {
    size_t count = w->bytes / sizeof(lanes);
    for (size_t i = 0; i < count; i++) {
        w->to[i] = w->from[i];
        __asm__ volatile("" ::: "memory"); /* a loop of moves, as kernels have, and no memcpy */
    }
}

typedef void (*stretch)(worker *);
static const stretch stretches[] = {multiply_add, read_memory, copy_memory};
enum { KINDS = sizeof stretches / sizeof stretches[0] };

static pthread_barrier_t barrier;
static double best[KINDS];

static void *run(void *user) {
    worker *w = user;
    memset(w->from, 0, w->bytes); /* each thread's pages are first touched by it */
    memset(w->to, 0, w->bytes);
    for (int k = 0; k < KINDS; k++)
        for (int s = 0; s < STRETCHES; s++) {
            pthread_barrier_wait(&barrier);
            double begin = seconds();
            stretches[k](w);
            int is_one = pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
            double time = seconds() - begin;
            if (is_one && (best[k] == 0 || time < best[k]))
                best[k] = time;
        }
    return NULL;
}

int main(int argc, char **argv) {
    int most = argc > 1 ? atoi(argv[1]) : 1;
    for (int n = 1; n <= most && n <= MAX_THREADS; n++) {
        worker workers[MAX_THREADS] = {{0}};
        pthread_t threads[MAX_THREADS];
        size_t bytes = (size_t)TOTAL_BYTES / (size_t)n / 4096 * 4096;
        memset(best, 0, sizeof best);
        pthread_barrier_init(&barrier, NULL, (unsigned)n);
        for (int i = 0; i < n; i++) {
            workers[i].bytes = bytes;
            workers[i].from = aligned_alloc(64, bytes);
            workers[i].to = aligned_alloc(64, bytes);
            if (!workers[i].from || !workers[i].to ||
                pthread_create(&threads[i], NULL, run, &workers[i]) != 0)
                return 1;
        }
        for (int i = 0; i < n; i++) {
            pthread_join(threads[i], NULL);
            free(workers[i].from);
            free(workers[i].to);
        }
        printf("{\"threads\": %d, \"lanes\": %d, \"gflops\": %.1f, \"read_gbs\": %.2f, "
               "\"copy_gbs\": %.2f}\n",
               n, LANES, 2.0 * LANES * CHAINS * ROUNDS * n / best[0] * 1e-9,
               (double)bytes * n / best[1] * 1e-9, 2.0 * (double)bytes * n / best[2] * 1e-9);
        fflush(stdout);
        pthread_barrier_destroy(&barrier);
    }
    return 0;
}

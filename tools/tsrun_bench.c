/* tools/tsrun_bench.c - `tsrun bench`: times of a run, measured alone.
 *
 * The median is what is compared; processor time is summed over threads. The first runs (warm-up)
 * fill caches, pack what is packed lazily and are not counted. */
#define _GNU_SOURCE
#include "tools/tsrun.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static uint64_t now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static ts_status one_run(tsrun_model *m, size_t entry, const tsrun_arguments *a) {
    tsrt_value *result = NULL;
    ts_status status = tsrun_status(tsrt_run(m->session, entry, a->items, a->count, NULL, &result));
    tsrt_value_release(result);
    return status;
}

static double us(uint64_t ns) { return (double)ns / 1000.0; }

static json_t *summary(uint64_t *wall, uint64_t *cpu, size_t runs) {
    double mean = 0;
    for (size_t i = 0; i < runs; i++)
        mean += us(wall[i]) / (double)runs;
    qsort(wall, runs, sizeof *wall, by_size);
    qsort(cpu, runs, sizeof *cpu, by_size);
    size_t p99 = (runs * 99 + 99) / 100;
    return json_pack("{s:f,s:f,s:f,s:f,s:f,s:f,s:I}", "median_us", us(wall[runs / 2]), "cpu_us",
                     us(cpu[runs / 2]), "min_us", us(wall[0]), "p99_us", us(wall[p99 - 1]),
                     "max_us", us(wall[runs - 1]), "mean_us", mean, "runs", (json_int_t)runs);
}

ts_status tsrun_bench(tsrun_model *m, size_t entry, const tsrun_arguments *arguments,
                      const options *line) {
    int64_t warmup = 10, runs = 0;
    TS_TRY(options_number(line, "--warmup", 0, 1000000, &warmup));
    TS_TRY(options_number(line, "--runs", 1, 10000000, &runs));
    m->keep_quiet = true;
    uint64_t start = now_ns(CLOCK_MONOTONIC);
    for (int64_t i = 0; i < warmup; i++)
        TS_TRY(one_run(m, entry, arguments));
    if (!runs) { /* about a second */
        uint64_t each = warmup ? (now_ns(CLOCK_MONOTONIC) - start) / (uint64_t)warmup + 1 : 1000000;
        runs = (int64_t)(1000000000u / each);
        runs = runs < 5 ? 5 : runs > 100000 ? 100000 : runs;
    }
    uint64_t *wall = calloc((size_t)runs, sizeof *wall), *cpu = calloc((size_t)runs, sizeof *cpu);
    ts_status status = wall && cpu ? NULL : ts_no_memory();
    for (int64_t i = 0; i < runs && !status; i++) {
        uint64_t c0 = now_ns(CLOCK_PROCESS_CPUTIME_ID), w0 = now_ns(CLOCK_MONOTONIC);
        status = one_run(m, entry, arguments);
        wall[i] = now_ns(CLOCK_MONOTONIC) - w0;
        cpu[i] = now_ns(CLOCK_PROCESS_CPUTIME_ID) - c0;
    }
    tsrt_statistics s = {.size = sizeof s};
    if (!status)
        status = tsrun_status(tsrt_session_get_statistics(m->session, &s));
    if (!status) {
        json_t *tree = summary(wall, cpu, (size_t)runs);
        struct rusage usage = {0};
        getrusage(RUSAGE_SELF, &usage);
        json_object_set_new(tree, "load_us", json_real(us(m->load_ns)));
        json_object_set_new(tree, "peak_bytes", json_integer((json_int_t)s.peak_bytes));
        json_object_set_new(tree, "allocations", json_integer((json_int_t)s.allocation_count));
        json_object_set_new(tree, "dynamic_calls", json_integer((json_int_t)s.dynamic_call_count));
        json_object_set_new(tree, "resident_bytes",
                            json_integer((json_int_t)usage.ru_maxrss * 1024));
        const char *path = options_get(line, "--json");
        status = tsrun_json_write(path ? path : "-", tree, 9);
        json_decref(tree);
    }
    free(wall);
    free(cpu);
    return status;
}

/* runtime/cpu.c - how much of the processor is ours. */
#define _GNU_SOURCE
#include "runtime/runtime_internal.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>

/* The share that a cgroup (v2) grants, rounded up; 0 where none is set. */
static int cgroup_count(void) {
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
    if (!f)
        return 0;
    long long quota = 0, period = 0;
    int got = fscanf(f, "%lld %lld", &quota, &period); /* "max 100000" matches nothing */
    fclose(f);
    if (got != 2 || quota <= 0 || period <= 0)
        return 0;
    return (int)((quota + period - 1) / period);
}

int rt_cpu_count(void) {
    cpu_set_t set;
    int n = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = CPU_COUNT(&set);
    int granted = cgroup_count();
    if (granted && granted < n)
        n = granted;
    return n < 1 ? 1 : n;
}

uint64_t rt_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* runtime/ops/generator.c - MT19937 as ATen's CPUGeneratorImpl uses it.
 *
 * Matsumoto, Nishimura: Mersenne Twister (1998), the 2002 initialisation by one 32-bit word. */
#include "runtime/ops/generator.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/ops/ref_kernel.h"

void rt_generator_seed(rt_generator *g, uint64_t seed) {
    g->seed = seed;
    g->has_next_normal = false;
    g->words[0] = (uint32_t)seed;
    for (uint32_t i = 1; i < RT_MT_WORDS; i++)
        g->words[i] = 1812433253u * (g->words[i - 1] ^ (g->words[i - 1] >> 30)) + i;
    g->next = RT_MT_WORDS;
}

ts_status rt_generator_make(uint64_t seed, rt_value *out) {
    rt_generator *g = calloc(1, sizeof *g);
    if (!g)
        return ts_no_memory();
    atomic_init(&g->base.references, 1);
    g->base.tag = RT_TAG_GENERATOR;
    rt_generator_seed(g, seed);
    *out = (rt_value){.tag = RT_TAG_GENERATOR, .as.generator = g};
    return NULL;
}

static void turn(rt_generator *g) {
    uint32_t *w = g->words;
    for (uint32_t i = 0; i < RT_MT_WORDS; i++) {
        uint32_t y = (w[i] & 0x80000000u) | (w[(i + 1) % RT_MT_WORDS] & 0x7fffffffu);
        w[i] = w[(i + 397) % RT_MT_WORDS] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    g->next = 0;
}

uint32_t rt_random32(rt_generator *g) {
    if (g->next >= RT_MT_WORDS)
        turn(g);
    uint32_t y = g->words[g->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

uint64_t rt_random64(rt_generator *g) {
    uint64_t high = rt_random32(g);
    return high << 32 | rt_random32(g);
}

double rt_uniform_float(rt_generator *g) { return (rt_random32(g) & 0xffffff) * 0x1p-24; }

double rt_uniform_double(rt_generator *g) {
    return (double)(rt_random64(g) & ((UINT64_C(1) << 53) - 1)) * 0x1p-53;
}

double rt_normal(rt_generator *g) {
    if (g->has_next_normal) {
        g->has_next_normal = false;
        return g->next_normal;
    }
    double u1 = rt_uniform_double(g), u2 = rt_uniform_double(g);
    double r = sqrt(-2 * log1p(-u2)), theta = 2 * 3.14159265358979323846 * u1;
    g->next_normal = r * sin(theta);
    g->has_next_normal = true;
    return r * cos(theta);
}

ts_status rt_generator_of(rt_context *context, rt_value v, rt_generator **out) {
    *out = NULL;
    if (v.tag == RT_TAG_GENERATOR)
        *out = v.as.generator;
    else if (context)
        *out = context->generator;
    return *out ? NULL : ts_error_make(TS_ERR_INTERNAL, "expected a context with a generator");
}

KERNEL(generator_make) {
    return rt_generator_make(rt_is_none(args[1]) ? RT_DEFAULT_SEED : (uint64_t)args[1].as.i, outs);
}

KERNEL(manual_seed) {
    rt_generator *g;
    TS_TRY(rt_generator_of(context, rt_none(), &g));
    rt_generator_seed(g, (uint64_t)args[0].as.i);
    return NULL;
}

KERNEL(manual_seed_generator) {
    rt_generator_seed(args[0].as.generator, (uint64_t)args[1].as.i);
    outs[0] = rt_retain(args[0]);
    return NULL;
}

KERNEL(initial_seed) {
    outs[0] = rt_int((int64_t)args[0].as.generator->seed);
    return NULL;
}

KERNEL(generator_seed) { /* a seed nobody chose */
    struct timespec t = {0};
    (void)timespec_get(&t, TIME_UTC);
    uint64_t seed = (uint64_t)t.tv_nsec * 0x9e3779b97f4a7c15u ^ (uint64_t)t.tv_sec;
    rt_generator_seed(args[0].as.generator, seed >> 11);
    outs[0] = rt_int((int64_t)(seed >> 11));
    return NULL;
}

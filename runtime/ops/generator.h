/* runtime/ops/generator.h - the random numbers of PyTorch's CPU generator, bit for bit.
 *
 * MT19937 with the caches that torch keeps beside it (the second normal of a pair). Not
 * thread-safe: one user at a time. */
#ifndef RUNTIME_OPS_GENERATOR_H
#define RUNTIME_OPS_GENERATOR_H

#include "runtime/ops/ops.h"

enum { RT_MT_WORDS = 624 };
#define RT_DEFAULT_SEED UINT64_C(67280421310721)

struct rt_generator {
    rt_counted base;
    uint64_t seed;
    bool has_next_normal;
    double next_normal;
    uint32_t next; /* position in words; RT_MT_WORDS: time to turn */
    uint32_t words[RT_MT_WORDS];
};

ts_status rt_generator_make(uint64_t seed, rt_value *out) TS_WARN_UNUSED;
void rt_generator_seed(rt_generator *g, uint64_t seed); /* torch.manual_seed */
uint32_t rt_random32(rt_generator *g);
uint64_t rt_random64(rt_generator *g);
double rt_uniform_float(rt_generator *g);  /* [0, 1), 24 bits of one draw */
double rt_uniform_double(rt_generator *g); /* [0, 1), 53 bits of two draws */
double rt_normal(rt_generator *g);         /* torch's scalar path, with its cache */
/* The generator argument, or the context's where it is None. */
ts_status rt_generator_of(rt_context *context, rt_value v, rt_generator **out) TS_WARN_UNUSED;

#endif

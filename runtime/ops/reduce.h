/* runtime/ops/reduce.h - the frames of reductions and of kernels that work along one dimension. */
#ifndef RUNTIME_OPS_REDUCE_H
#define RUNTIME_OPS_REDUCE_H

#include "runtime/ops/tensor_ops.h"

/* What a reduction has gathered so far. */
typedef struct rt_acc {
    double d[3];
    int64_t i[2];
    rt_complex128 c;
    int64_t count; /* elements seen */
} rt_acc;

/* Takes n more elements (in the work type: double, int64 or complex128) in row-major order. */
typedef void (*rt_fold)(rt_acc *acc, const void *values, int64_t n, double param);
/* Called once for each result, in row-major order of the results. */
typedef void (*rt_finish)(void *user, int64_t at, const rt_acc *acc);

/* Reduces the marked dims. Elements arrive as the work type of dtype (floats always as double). */
void rt_reduce(const rt_tensor *in, const bool *mask, rt_work work, rt_fold fold,
               const rt_acc *start, double param, rt_finish finish, void *user);
/* Sizes of the result: marked dims become 1 or go. */
int rt_reduced_sizes(const rt_tensor *in, const bool *mask, bool keep, int64_t *out_sizes);

/* One lane along dim: n elements of the work type in, n or one out. */
typedef struct rt_lane {
    const void *in;
    int64_t n;
    void *out;      /* work type */
    int64_t *index; /* the second result, or NULL */
    void *scratch;  /* n elements of 16 bytes */
    double param;
} rt_lane;
typedef void (*rt_lane_function)(rt_lane *lane);

typedef struct rt_lane_call {
    const rt_tensor *in;
    int dim;
    rt_work work;
    rt_lane_function function;
    bool is_reduction; /* one element out for each lane */
    bool keep;         /* ... and the dim stays with size 1 */
    rt_dtype dtype;    /* of the result */
    bool has_index;    /* a second result, int64 */
    double param;
} rt_lane_call;
ts_status rt_lanes(const rt_lane_call *call, rt_value *out, rt_value *out_index) TS_WARN_UNUSED;

#endif

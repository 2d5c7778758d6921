/* runtime/values/loop.h - walks several tensors of one broadcast shape together.
 *
 * Neighbouring dimensions that all operands step through evenly become one, and the dimension of
 * the smallest step of operand 0 comes last, so the caller's inner loop is as long as it can be:
 *
 *   rt_loop loop;
 *   rt_loop_init(&loop, sizes, rank);
 *   rt_loop_add(&loop, out); rt_loop_add(&loop, a); ...
 *   for (rt_loop_start(&loop); loop.is_running; rt_loop_next(&loop))
 *       inner(loop.data, loop.inner_strides, loop.inner_count);
 */
#ifndef RUNTIME_VALUES_LOOP_H
#define RUNTIME_VALUES_LOOP_H

#include "runtime/values/tensor.h"

enum { RT_LOOP_OPERANDS = 6 };

typedef struct rt_loop {
    int rank, operand_count;
    bool is_running, keep_order;
    int64_t inner_count;
    int64_t sizes[RT_MAX_RANK];
    int64_t strides[RT_LOOP_OPERANDS][RT_MAX_RANK]; /* bytes */
    char *data[RT_LOOP_OPERANDS];
    int64_t inner_strides[RT_LOOP_OPERANDS]; /* bytes */
    int64_t index[RT_MAX_RANK];
} rt_loop;

void rt_loop_init(rt_loop *loop, const int64_t *sizes, int rank);
/* Adds a tensor whose shape broadcasts to the loop's (checked by the caller). */
void rt_loop_add(rt_loop *loop, const rt_tensor *t);
/* Adds memory with strides in bytes of its own, one for each dimension of the loop. */
void rt_loop_add_raw(rt_loop *loop, void *data, const int64_t *strides_bytes);
void rt_loop_start(rt_loop *loop);
void rt_loop_next(rt_loop *loop);

#endif

/* runtime/values/element.h - elements of any dtype, singly and in blocks.
 *
 * Kernels compute in one of four work types and leave conversion to the block functions: float for
 * float32 and the 16-bit floats (PyTorch's opmath), double for float64, int64 for integers and
 * bool, complex128 for complex. */
#ifndef RUNTIME_VALUES_ELEMENT_H
#define RUNTIME_VALUES_ELEMENT_H

#include "runtime/values/tensor.h"

typedef enum rt_work { RT_WORK_FLOAT, RT_WORK_DOUBLE, RT_WORK_INT, RT_WORK_COMPLEX } rt_work;

rt_work rt_work_of(rt_dtype dtype);
size_t rt_work_size(rt_work work);
/* n elements of dtype at src, stride_bytes apart, as work type; and back. Blocks must not overlap. */
void rt_load_block(rt_work work, rt_dtype dtype, const char *src, int64_t stride_bytes, int64_t n,
                   void *out);
void rt_store_block(rt_work work, rt_dtype dtype, char *dst, int64_t stride_bytes, int64_t n,
                    const void *in);
/* Truncation as x86 does it: what does not fit becomes INT64_MIN. */
int64_t rt_double_to_int(double value);

#endif

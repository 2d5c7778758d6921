/* runtime/values/values_internal.h - shared by the files of this folder. */
#ifndef RUNTIME_VALUES_VALUES_INTERNAL_H
#define RUNTIME_VALUES_VALUES_INTERNAL_H

#include "runtime/base/buffer.h"
#include "runtime/values/tensor.h"

/* Nesting of containers beyond which the recursive walks raise RecursionError, as Python does. */
enum { RT_VALUE_DEPTH = 1000 };
ts_status rt_depth_error(void);

/* Appends PyTorch's text of a tensor: tensor([1., 2.]). */
void rt_tensor_print(const rt_tensor *t, ts_buffer *out);

#endif

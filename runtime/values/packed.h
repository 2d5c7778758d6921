/* runtime/values/packed.h - packed parameters of quantized operators: a capsule around a tuple.
 *
 *   ("linear", weight, bias or None)
 *   ("conv", weight, bias or None, stride, padding, dilation, groups, transposed, output padding)
 *   ("cell", reduce_range, packed linear of the input, packed linear of the state, saturates)
 *   ("embedding", weight)
 *   ("xnn_linear", weight, bias or None, lowest, highest result: floats or None)
 *   ("xnn_conv", as conv up to output padding, lowest, highest result)
 *
 * Stride and the like are lists of ints, output padding may be None. Whether a convolution is transposed is an int. Weight is a quantized tensor, or float32 of half precision's values. */
#ifndef RUNTIME_VALUES_PACKED_H
#define RUNTIME_VALUES_PACKED_H

#include "runtime/values/tensor.h"

/* Takes the tuple (released on an error). */
ts_status rt_packed_make(rt_value tuple, rt_value *out) TS_WARN_UNUSED;
/* ("what", items...) in a capsule; the items are kept. */
ts_status rt_packed_of(const char *what, const rt_value *items, size_t count, rt_value *out)
    TS_WARN_UNUSED;
/* The tuple inside, borrowed; NULL where v holds no packed parameters. */
const rt_tuple *rt_packed_tuple(rt_value v);

#endif

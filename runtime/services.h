/* runtime/services.h - the services of tensors and kernels, defined beside their parts. */
#ifndef RUNTIME_SERVICES_H
#define RUNTIME_SERVICES_H

#include "runtime/runtime_internal.h"

uint32_t service_matches(const rt_value *value, uint32_t dtype, uint32_t rank,
                         const int64_t *sizes);
int64_t service_tensor_size(const rt_value *value, int64_t index);
ts_status service_tensor_make(rt_run *run, uint32_t dtype, uint32_t rank, const int64_t *sizes,
                              uint32_t layout, int64_t header, rt_value *out);
ts_status service_tensor_planned(rt_run *run, uint32_t dtype, uint32_t rank, const int64_t *sizes,
                                 uint32_t layout, int64_t header, int64_t offset, rt_value *out);
ts_status service_tensor_dense(rt_run *run, const rt_value *value, uint32_t dtype, uint32_t rank,
                               uint32_t layout, rt_value *out, uint32_t place);
ts_status service_device_launch(rt_run *run, const rt_launch *launch, rt_compiled_kernel kernel,
                                void *const *area, const int64_t *params, int64_t work_items,
                                int64_t threads);
ts_status service_tensor_fresh(rt_run *run, rt_value *slot);
ts_status service_launch(rt_run *run, const rt_launch *launch, rt_compiled_kernel kernel,
                         void *const *buffers, const int64_t *params, int64_t work_items);

#endif

/* runtime/dynamic.c - binds the operators of a program to their reference kernels by name. This
 * file is what pulls the whole operator table into a program that loads files. */
#include "runtime/runtime_internal.h"

#include <stdlib.h>

ts_status rt_model_bind_operators(tsrt_model *model) {
    size_t count = model->program.operator_count;
    rt_kernel *kernels = calloc(count + 1, sizeof *kernels);
    if (!kernels)
        return ts_no_memory();
    model->kernels = model->kernel_memory = kernels;
    for (size_t i = 0; i < count; i++) {
        rt_op op = rt_op_find(model->program.operators[i]);
        if (op == OP_COUNT)
            return ts_error_make(TS_ERR_UNSUPPORTED,
                                 "the model uses the operator %.*s, which this runtime does not "
                                 "have: use the runtime of the tsc that compiled it",
                                 TS_STR_ARG(model->program.operators[i]));
        kernels[i] = rt_op_get(op)->ref;
    }
    return NULL;
}

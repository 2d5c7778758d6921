/* runtime/linked.c - models that are part of the program: what `tsc --emit=obj` made. The operator
 * table is not referred to here (the object names the kernels that it needs), so that a program
 * holds only what its model uses. */
#include "runtime/runtime_internal.h"

/* Present in the shared library, absent from small static programs. */
TS_WEAK ts_status rt_model_bind_operators(tsrt_model *model);

static ts_status open_linked(const tsrt_linked_model *linked, tsrt_model *m) {
    if (linked->abi != TSM_ABI || linked->format != TSM_FORMAT)
        return ts_error_make(TS_ERR_INVALID_FILE,
                             "the linked model is of format %u, interface %u; this runtime takes "
                             "%d and %d",
                             linked->format, linked->abi, TSM_FORMAT, TSM_ABI);
    uint64_t missing = linked->features & ~tsm_cpu_features();
    if (missing) {
        char names[160];
        tsm_cpu_names(missing, names, sizeof names);
        return ts_error_make(TS_ERR_UNSUPPORTED,
                             "the model needs %s (level %s), which this processor lacks", names,
                             linked->level);
    }
    if (!tsm_cpu_acquire(linked->features))
        return ts_error_make(TS_ERR_UNSUPPORTED, "the system refuses the registers that level %s needs", linked->level);
    m->level = linked->level;
    m->weights = linked->weights;
    m->weight_bytes = linked->weight_bytes;
    TS_TRY(rt_model_read_program(m, linked->program, (size_t)linked->program_bytes));
    if (linked->function_count != m->program.function_count)
        return ts_error_make(TS_ERR_INVALID_FILE, "the linked model's function table is wrong");
    m->functions = linked->functions;
    m->kernels = linked->kernels;
    if (m->kernels || !m->program.operator_count)
        return NULL;
    if (!rt_model_bind_operators)
        return ts_error_make(TS_ERR_UNSUPPORTED, "the operator table is not linked in");
    return rt_model_bind_operators(m);
}

tsrt_status *tsrt_model_open_linked(const tsrt_linked_model *linked, tsrt_model **out_model) {
    uint64_t begin = rt_now_ns();
    *out_model = NULL;
    tsrt_model *m = NULL;
    ts_status status = rt_model_make(&m);
    if (!status)
        status = open_linked(linked, m);
    if (status) {
        tsrt_model_release(m);
        return rt_out(status);
    }
    m->load_ns = rt_now_ns() - begin;
    *out_model = m;
    return NULL;
}

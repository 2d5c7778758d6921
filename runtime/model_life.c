/* runtime/model_life.c - models made, read and released, whether from a file or linked in. */
#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "runtime/runtime_internal.h"

uint32_t tsrt_version(void) {
    return TSRT_VERSION_MAJOR * 10000 + TSRT_VERSION_MINOR * 100 + TSRT_VERSION_PATCH;
}

const char *tsrt_version_text(void) { return "0.1.0"; }

static void destroy(tsrt_model *m) {
    if (m->code)
        munmap(m->code, m->code_length);
    if (m->is_mapped)
        munmap((void *)(uintptr_t)m->data, m->length);
    free(m->kernel_memory);
    free(m->function_memory);
    ts_arena_release(m->arena);
    free(m);
}

tsrt_model *tsrt_model_retain(tsrt_model *model) {
    atomic_fetch_add_explicit(&model->references, 1, memory_order_relaxed);
    return model;
}

void tsrt_model_release(tsrt_model *model) {
    if (model && atomic_fetch_sub_explicit(&model->references, 1, memory_order_acq_rel) == 1)
        destroy(model);
}

ts_status rt_model_make(tsrt_model **out) {
    tsrt_model *m = calloc(1, sizeof *m);
    *out = m;
    if (!m)
        return ts_no_memory();
    atomic_init(&m->references, 1);
    return NULL;
}

/* The arena reports a failed allocation by a jump to here. */
static ts_status read_tables(tsrt_model *m, const void *data, size_t length) {
    jmp_buf failed;
    if (setjmp(failed))
        return ts_no_memory();
    ts_arena_set_handler(m->arena, &failed);
    return rt_program_read(m->arena, data, length, m->weight_bytes, &m->program);
}

ts_status rt_model_read_program(tsrt_model *m, const void *data, size_t length) {
    m->arena = ts_arena_create(0);
    if (!m->arena)
        return ts_no_memory();
    ts_status status = read_tables(m, data, length);
    ts_arena_set_handler(m->arena, NULL);
    return status;
}

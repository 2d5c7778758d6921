/* runtime/launch.c - runs a compiled kernel on the CPU: its range split statically over the threads, so
 * that results do not depend on their number. Launches on a device are device.c's. */
#include <stdlib.h>

#include "runtime/base/memory.h"
#include "runtime/services.h"

typedef struct launch_job {
    rt_compiled_kernel kernel;
    void *const *buffers;
    const int64_t *params;
    int64_t work_items;
    int parts;
    bool is_backward;
    void **scratch;
} launch_job;

static void run_items(const launch_job *j, int64_t begin, int64_t end, void *scratch) {
    if (!j->is_backward) {
        j->kernel(j->buffers, j->params, begin, end, scratch);
        return;
    }
    for (int64_t i = end - 1; i >= begin; i--)
        j->kernel(j->buffers, j->params, i, i + 1, scratch);
}

static void run_part(void *user, int index) {
    const launch_job *j = user;
    /* Items [n * i / parts, n * (i + 1) / parts) without overflow. */
    int64_t each = j->work_items / j->parts, more = j->work_items % j->parts;
    int64_t begin = each * index + (index < more ? index : more);
    int64_t end = begin + each + (index < more);
    if (begin < end)
        run_items(j, begin, end, j->scratch[index]);
}

static ts_status make_scratch(tsrt_session *s, int parts, size_t bytes) {
    for (int i = 0; i < parts; i++) {
        if (s->scratch_bytes[i] >= bytes)
            continue;
        size_t room = (bytes + 4095) / 4096 * 4096;
        void *p = ts_memory_make(room);
        if (!p)
            return ts_no_memory();
        free(s->scratch[i]);
        s->scratch[i] = p;
        s->scratch_bytes[i] = room;
    }
    return NULL;
}

ts_status service_launch(rt_run *run, const rt_launch *launch, rt_compiled_kernel kernel,
                         void *const *buffers, const int64_t *params, int64_t work_items) {
    tsrt_session *s = rt_session_of(run);
    if (TS_UNLIKELY(atomic_load_explicit(&run->interrupt, memory_order_relaxed)))
        TS_TRY(rt_check_interrupt(s));
    if (work_items <= 0)
        return NULL;
    int64_t grain = launch->grain > 0 ? launch->grain : 1;
    int64_t parts = work_items / grain;
    if (parts < 1)
        parts = 1;
    if (parts > s->thread_count)
        parts = s->thread_count;
    if (launch->scratch_bytes > 0)
        TS_TRY(make_scratch(s, (int)parts, (size_t)launch->scratch_bytes));
    uint64_t begin = TS_UNLIKELY(s->profile != NULL) ? rt_now_ns() : 0;
    bool is_backward = launch->alternates && (s->turns[launch->kernel] ^= 1);
    launch_job job = {kernel, buffers, params, work_items, (int)parts, is_backward, s->scratch};
    if (parts == 1)
        run_items(&job, 0, work_items, s->scratch[0]);
    else
        rt_parallel((int)parts, run_part, &job);
    if (TS_UNLIKELY(s->profile != NULL))
        rt_profile_add(s, RT_PROFILE_KERNEL, launch->kernel, launch->place, begin, rt_now_ns());
    return NULL;
}

/* runtime/profile.c - what ran when, as Chrome's trace event format (the JSON that Perfetto reads):
 * complete events with begin and duration in microseconds. */
#include <stdlib.h>

#include "runtime/base/buffer.h"
#include "runtime/runtime_internal.h"

typedef struct event {
    int kind;
    uint32_t row, place;
    uint64_t begin_ns, end_ns;
} event;

struct rt_profile {
    event *events;
    size_t count, capacity;
    uint64_t begin_ns;
    bool failed;
};

void rt_profile_release(rt_profile *profile) {
    if (profile)
        free(profile->events);
    free(profile);
}

void rt_profile_add(tsrt_session *session, int kind, uint32_t row, uint32_t place,
                    uint64_t begin_ns, uint64_t end_ns) {
    rt_profile *p = session->profile;
    if (p->count == p->capacity) {
        size_t capacity = p->capacity ? p->capacity * 2 : 1024;
        event *grown = realloc(p->events, capacity * sizeof *grown);
        if (!grown) {
            p->failed = true;
            return;
        }
        p->events = grown;
        p->capacity = capacity;
    }
    p->events[p->count++] = (event){kind, row, place, begin_ns, end_ns};
}

tsrt_status *tsrt_profile_begin(tsrt_session *session) {
    rt_profile *p = calloc(1, sizeof *p);
    if (!p)
        return rt_out(ts_no_memory());
    p->begin_ns = rt_now_ns();
    rt_profile_release(session->profile);
    session->profile = p;
    return NULL;
}

/* Nanoseconds as microseconds with three digits; no locale's decimal comma. */
static void put_us(ts_buffer *b, uint64_t ns) {
    ts_buffer_format(b, "%llu.%03llu", (unsigned long long)(ns / 1000),
                     (unsigned long long)(ns % 1000));
}

static void put_event(ts_buffer *b, const tsrt_model *m, const event *e, uint64_t origin) {
    const rt_program *p = &m->program;
    ts_str name = TS_STR("run");
    const char *category = "run";
    double flops = 0, bytes = 0;
    if (e->kind == RT_PROFILE_KERNEL && e->row < p->kernel_count) {
        name = p->kernels[e->row].name;
        category = "kernel";
        flops = p->kernels[e->row].flops;
        bytes = p->kernels[e->row].bytes;
    } else if (e->kind == RT_PROFILE_OPERATOR && e->row < p->operator_count) {
        name = p->operators[e->row];
        category = "operator";
    } else if (e->kind == RT_PROFILE_RUN && e->row < p->entry_count) {
        name = p->entries[e->row].name;
    }
    ts_buffer_text(b, "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"cat\":");
    ts_buffer_json(b, ts_str_of(category));
    ts_buffer_text(b, ",\"name\":");
    ts_buffer_json(b, name);
    ts_buffer_text(b, ",\"ts\":");
    put_us(b, e->begin_ns - origin);
    ts_buffer_text(b, ",\"dur\":");
    put_us(b, e->end_ns - e->begin_ns);
    ts_place place = rt_place(m, e->place);
    ts_buffer_text(b, ",\"args\":{\"source\":");
    ts_buffer text = {0};
    if (place.line)
        ts_buffer_format(&text, "%.*s:%d", TS_STR_ARG(place.file), place.line);
    ts_buffer_json(b, (ts_str){text.data, text.length});
    ts_buffer_deinit(&text);
    if (flops > 0)
        ts_buffer_format(b, ",\"flops\":%.0f", flops);
    if (bytes > 0)
        ts_buffer_format(b, ",\"bytes\":%.0f", bytes);
    ts_buffer_text(b, "}}");
}

tsrt_status *tsrt_profile_end(tsrt_session *session, tsrt_value **out_json) {
    *out_json = NULL;
    rt_profile *p = session->profile;
    session->profile = NULL;
    if (!p)
        return rt_out(ts_error_make(TS_ERR_INVALID_INPUT, "no profile was begun"));
    ts_buffer b = {0};
    ts_buffer_text(&b, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    for (size_t i = 0; i < p->count; i++) {
        if (i)
            ts_buffer_text(&b, ",\n");
        put_event(&b, session->model, &p->events[i], p->begin_ns);
    }
    ts_buffer_text(&b, "\n]}\n");
    ts_status status = p->failed ? ts_no_memory() : ts_buffer_status(&b);
    rt_profile_release(p);
    tsrt_status *result = rt_out(status);
    if (!status)
        result = tsrt_value_make_str(b.data, b.length, out_json);
    ts_buffer_deinit(&b);
    return result;
}

/* runtime/session.c - sessions and runs. */
#include "runtime/runtime_internal.h"

#include <stdlib.h>

#include "runtime/base/stack.h"
#include "runtime/ops/generator.h"

enum {
    FRAME_VALUES = 64 * 1024, /* 1 MiB of boxed values for all frames of a run */
    DEPTH_DEFAULT = 1000,     /* as Python's */
    STACK_RESERVE = 128 * 1024, /* left for reference kernels below the deepest frame */
    THREADS_MAX = 256
};

/* Reads an option struct of a caller who may know fewer members. */
static ts_status read_options(const void *from, void *to, size_t size) {
    if (!from)
        return NULL;
    size_t given;
    memcpy(&given, from, sizeof given);
    if (given < sizeof given || given > 4096)
        return ts_error_make(TS_ERR_INVALID_INPUT,
                             "the options' size member must be set to their sizeof");
    memcpy(to, from, given < size ? given : size);
    return NULL;
}

/* ---- life ---- */

static void destroy(tsrt_session *s) {
    const rt_program *p = &s->model->program;
    rt_device_close(s);
    for (size_t i = 0; s->constants && i < p->constant_count; i++)
        rt_release(s->constants[i]);
    rt_cycles_close(&s->cycles, s->nodes, p->node_count);
    for (size_t i = 0; s->storages && i < p->storage_count; i++)
        rt_storage_release(s->storages[i]);
    for (size_t i = 0; s->headers && i < p->header_count; i++)
        rt_tensor_release(s->headers[i]);
    rt_storage_release(s->arena);
    for (int i = 0; s->scratch && i < THREADS_MAX; i++)
        free(s->scratch[i]);
    if (s->context.generator)
        rt_release((rt_value){.tag = RT_TAG_GENERATOR, .as.generator = s->context.generator});
    rt_profile_release(s->profile);
    rt_pool_release(s->pool);
    free(s->scratch);
    free(s->scratch_bytes);
    free(s->turns);
    free(s->constants);
    free(s->storages);
    free(s->headers);
    free(s->frame);
    tsrt_model_release(s->model);
    free(s);
}

static void print_text(void *user, ts_str text) {
    tsrt_session *s = user;
    if (s->print)
        s->print(s->print_user, text.data, text.length);
}

static ts_status set_threads(tsrt_session *s, int threads) {
    if (threads < 0)
        return ts_error_make(TS_ERR_INVALID_INPUT, "expected a number of threads, found %d",
                             threads);
    if (threads == 0)
        threads = rt_cpu_count();
    s->thread_count = threads < THREADS_MAX ? threads : THREADS_MAX;
    s->context.thread_budget = s->thread_count;
    return NULL;
}

static ts_status seed_session(tsrt_session *s, uint64_t seed) {
    if (s->context.generator) {
        rt_generator_seed(s->context.generator, seed);
        return NULL;
    }
    rt_value v;
    TS_TRY(rt_generator_make(seed, &v));
    s->context.generator = v.as.generator;
    return NULL;
}

static ts_status fill(tsrt_session *s, const tsrt_session_options *o) {
    const rt_program *p = &s->model->program;
    TS_TRY(rt_pool_make(&s->pool));
    rt_pool_set_limit(s->pool, o->memory_limit);
    s->frame = calloc(FRAME_VALUES, sizeof *s->frame);
    s->scratch = calloc(THREADS_MAX, sizeof *s->scratch);
    s->scratch_bytes = calloc(THREADS_MAX, sizeof *s->scratch_bytes);
    s->headers = calloc((size_t)p->header_count + 1, sizeof *s->headers);
    s->turns = calloc((size_t)p->kernel_count + 1, sizeof *s->turns);
    if (!s->frame || !s->scratch || !s->scratch_bytes || !s->headers || !s->turns)
        return ts_no_memory();
    if (p->arena_bytes)
        TS_TRY(rt_storage_make((size_t)p->arena_bytes, &s->arena));
    TS_TRY(set_threads(s, o->threads));
    s->depth_limit = o->depth_limit > 0 ? o->depth_limit : DEPTH_DEFAULT;
    s->print = o->print;
    s->print_user = o->print_user;
    s->context.print = print_text;
    s->context.print_user = s;
    s->context.session = s;
    s->context.grad_enabled = true;
    TS_TRY(seed_session(s, o->has_seed ? o->seed : RT_DEFAULT_SEED));
    TS_TRY(rt_instantiate(s));
    TS_TRY(rt_device_open(s, o->device, o->fallback_to_cpu != 0));
    s->run.services = &rt_service_table;
    s->run.constants = s->constants;
    s->run.weights = s->model->weights;
    s->run.arena = s->arena ? s->arena->data : NULL;
    s->run.frame_top = s->frame;
    s->run.frame_end = s->frame + FRAME_VALUES;
    return NULL;
}

tsrt_status *tsrt_session_create(tsrt_model *model, const tsrt_session_options *options,
                                 tsrt_session **out_session) {
    *out_session = NULL;
    tsrt_session_options o = {0};
    ts_status status = read_options(options, &o, sizeof o);
    if (status)
        return rt_out(status);
    tsrt_session *s = calloc(1, sizeof *s);
    if (!s)
        return rt_out(ts_no_memory());
    s->model = tsrt_model_retain(model);
    status = fill(s, &o);
    if (status)
        destroy(s);
    else
        *out_session = s;
    return rt_out(status);
}

void tsrt_session_release(tsrt_session *session) {
    if (session)
        destroy(session);
}

tsrt_status *tsrt_session_set_threads(tsrt_session *session, int threads) {
    return rt_out(set_threads(session, threads));
}

tsrt_status *tsrt_session_seed(tsrt_session *session, uint64_t seed) {
    return rt_out(seed_session(session, seed));
}

void tsrt_session_cancel(tsrt_session *session) {
    atomic_store(&session->is_cancelled, 1);
    atomic_store(&session->run.interrupt, 1);
}

/* ---- runs ---- */

/* A result must outlive the session and be the caller's to write: planned buffers and mapped
 * weights are copied. */
static ts_status own_result(tsrt_session *s, rt_value *v, int depth) {
    if (depth > 200)
        return NULL;
    rt_value *items = NULL;
    size_t count = 0;
    switch (v->tag) {
    case RT_TAG_TENSOR: {
        const rt_tensor *t = v->as.tensor;
        if (s->device)
            TS_TRY(rt_device_to_host(s, *v, true));
        bool is_planned = !t->storage || t->storage == s->arena;
        if ((!is_planned && !t->storage->is_read_only) || t->element_count == 0)
            return NULL;
        rt_tensor *copy;
        TS_TRY(rt_tensor_clone(t, &copy));
        rt_assign(v, rt_from_tensor(copy));
        return NULL;
    }
    case RT_TAG_LIST:
        items = v->as.list->items;
        count = v->as.list->count;
        break;
    case RT_TAG_TUPLE:
        items = v->as.tuple->items;
        count = v->as.tuple->count;
        break;
    case RT_TAG_DICT: {
        size_t at = 0;
        for (rt_dict_entry *e; (e = rt_dict_next(v->as.dict, &at));)
            TS_TRY(own_result(s, &e->value, depth + 1));
        return NULL;
    }
    default: return NULL;
    }
    for (size_t i = 0; i < count; i++)
        TS_TRY(own_result(s, &items[i], depth + 1));
    return NULL;
}

/* The answer is kept for the thread that runs the session: asking takes long. */
static uintptr_t stack_limit(tsrt_session *s) {
    if (!s->has_stack_limit || !pthread_equal(s->stack_thread, pthread_self())) {
        s->stack_thread = pthread_self();
        s->stack_limit = ts_stack_limit(STACK_RESERVE);
        s->has_stack_limit = true;
    }
    return s->stack_limit;
}

static ts_status take_arguments(tsrt_session *s, const rt_entry *e, tsrt_value *const *args,
                                size_t arg_count, rt_value *out) {
    const rt_program *p = &s->model->program;
    if (arg_count > e->port_count)
        return ts_error_make(TS_ERR_INVALID_INPUT, "%.*s takes %zu inputs, found %zu",
                             TS_STR_ARG(e->name), e->port_count, arg_count);
    int64_t few[16], *symbols = few;
    if (p->symbol_count > 16) {
        symbols = malloc(p->symbol_count * sizeof *symbols);
        if (!symbols)
            return ts_no_memory();
    }
    for (size_t i = 0; i < p->symbol_count; i++)
        symbols[i] = -1;
    ts_status status = NULL;
    for (size_t i = 0; i < e->port_count && !status; i++) {
        const rt_port *port = &e->ports[i];
        if (i < arg_count && args[i])
            status = rt_port_convert(s->model, port, args[i]->value, symbols, &out[i]);
        else if (port->default_constant)
            out[i] = rt_retain(s->constants[port->default_constant - 1]);
        else
            status = ts_error_make(TS_ERR_INVALID_INPUT,
                                   "input %.*s is missing and has no default",
                                   TS_STR_ARG(port->name));
    }
    if (symbols != few)
        free(symbols);
    return status ? status : rt_check_needs(e, out);
}

static ts_status call(tsrt_session *s, const rt_entry *e, const rt_value *args, rt_value *out) {
    s->run.depth_left = s->depth_limit;
    s->run.stack_limit = stack_limit(s);
    s->run.frame_top = s->frame;
    bool watched = s->deadline_ns || atomic_load(&s->is_cancelled);
    atomic_store(&s->run.interrupt, watched);
    if (atomic_load(&s->is_cancelled)) /* set between the two */
        atomic_store(&s->run.interrupt, 1);
    return s->model->functions[e->function](&s->run, args, out);
}

static ts_status run_entry(tsrt_session *s, const rt_entry *e, tsrt_value *const *args,
                           size_t arg_count, rt_value *out) {
    rt_value few[16] = {{0}}, *values = few;
    size_t self = e->self_constant != 0, count = e->port_count + self;
    if (count > 16) {
        values = calloc(count, sizeof *values);
        if (!values)
            return ts_no_memory();
    }
    if (self)
        values[0] = rt_retain(s->constants[e->self_constant - 1]);
    ts_status status = take_arguments(s, e, args, arg_count, values + self);
    if (!status)
        status = rt_check_interrupt(s);
    if (!status)
        status = call(s, e, values, out);
    for (size_t i = 0; i < count; i++)
        rt_release(values[i]);
    if (values != few)
        free(values);
    if (!status)
        status = own_result(s, out, 0);
    if (s->device) {
        ts_status ended = rt_device_end_run(s);
        if (status)
            ts_status_release(ended);
        else
            status = ended;
    }
    if (status)
        rt_assign(out, rt_none());
    return status;
}

tsrt_status *tsrt_run(tsrt_session *session, size_t entry, tsrt_value *const *args,
                      size_t arg_count, const tsrt_run_options *options,
                      tsrt_value **out_result) {
    *out_result = NULL;
    tsrt_run_options o = {0};
    ts_status status = read_options(options, &o, sizeof o);
    if (status)
        return rt_out(status);
    if (entry >= session->model->program.entry_count)
        return rt_out(ts_error_make(TS_ERR_INVALID_INPUT, "entry %zu: there are %zu", entry,
                                    session->model->program.entry_count));
    uint64_t begin = rt_now_ns();
    session->deadline_ns = o.deadline_ns;
    rt_value out = rt_none();
    rt_account *before = rt_account_use(rt_pool_account(session->pool));
    status = run_entry(session, &session->model->program.entries[entry], args, arg_count, &out);
    bool may_cycle = rt_cycles_end_run(session, args, arg_count, out);
    rt_account_use(before);
    session->deadline_ns = 0;
    if (ts_status_code(status) == TS_ERR_CANCELLED)
        atomic_store(&session->is_cancelled, 0);
    session->run_count++;
    session->last_run_ns = rt_now_ns() - begin;
    if (session->profile)
        rt_profile_add(session, RT_PROFILE_RUN, (uint32_t)entry, 0, begin, rt_now_ns());
    if (status)
        return rt_out(status);
    status = rt_value_wrap(out, session->model, out_result);
    if (!status && may_cycle)
        atomic_store_explicit(&(*out_result)->may_cycle, true, memory_order_relaxed);
    return rt_out(status);
}

tsrt_status *tsrt_session_get_statistics(const tsrt_session *session,
                                         tsrt_statistics *out_statistics) {
    tsrt_statistics v = {.run_count = session->run_count,
                         .last_run_ns = session->last_run_ns,
                         .dynamic_call_count = session->dynamic_calls};
    rt_pool_statistics(session->pool, &v.held_bytes, &v.peak_bytes, &v.allocation_count);
    uint64_t planned = session->arena ? session->arena->bytes : 0;
    v.held_bytes += planned;
    v.peak_bytes += planned;
    size_t size = out_statistics->size;
    if (size < sizeof size || size > 4096)
        return rt_out(ts_error_make(TS_ERR_INVALID_INPUT,
                                    "the struct's size member must be set to its sizeof"));
    memcpy(out_statistics, &v, size < sizeof v ? size : sizeof v);
    out_statistics->size = size;
    return NULL;
}

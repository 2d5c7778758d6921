/* runtime/device.c - kernels on a device: memory there mirrors storages of the host.
 *
 * A launch brings its operands' mirrors up to date and leaves its results on the device alone;
 * reference kernels, copies and the caller get them back when they ask (rt_device_to_host). A
 * mirror holds a reference to its storage, so no other storage can take its address meanwhile. */
#include <stdlib.h>

#include "backends/backend.h"
#include "runtime/services.h"

enum { MIRRORS_BEFORE_SWEEP = 64, ARGUMENTS_MAX = 512, GROUP = 128 };

typedef struct mirror {
    rt_storage *storage;
    be_buffer *buffer;
    bool host_is_current, device_is_current;
} mirror;

typedef struct constant_mirror { /* packed weights of kernels: never change */
    const void *host;
    be_buffer *buffer;
} constant_mirror;

typedef struct argument_list {
    be_argument items[ARGUMENTS_MAX];
    int64_t offsets[ARGUMENTS_MAX];
    size_t count;
} argument_list;

struct rt_device {
    const be_api *api;
    be_device *device;
    be_code *code;
    be_kernel **kernels; /* by row of the program's kernel table, found at first use */
    mirror *mirrors;
    size_t count, capacity, sweep_at;
    constant_mirror *constants;
    size_t constant_count, constant_capacity;
    argument_list arguments; /* of the launch in hand: too large for a stack */
};

/* ---- opening ---- */

static ts_str model_target(const tsrt_model *m) {
    for (size_t i = 0; i < m->program.meta_count; i++)
        if (ts_str_is(m->program.meta_keys[i], "target"))
            return m->program.meta_values[i];
    return TS_STR("cpu");
}

static ts_status load_code(tsrt_session *s, rt_device *d) {
    const tsrt_model *m = s->model;
    ts_status last = NULL;
    for (size_t i = 0; i < m->section_count; i++) {
        const tsm_section *section = &m->sections[i];
        if (section->kind != TSM_SECTION_DEVICE)
            continue;
        ts_status_release(last);
        last = d->api->load_code(d->device, m->data + section->offset, (size_t)section->bytes,
                                 &d->code);
        if (!last)
            return NULL;
    }
    return last ? last
                : ts_error_make(TS_ERR_UNSUPPORTED, "the model holds no code for %s",
                                d->api->name);
}

static ts_status open_device(tsrt_session *s, ts_str name, int index) {
    const be_api *api = be_find(name);
    if (!api)
        return ts_error_make(TS_ERR_UNSUPPORTED, "this runtime has no device %.*s",
                             TS_STR_ARG(name));
    rt_device *d = calloc(1, sizeof *d);
    if (!d)
        return ts_no_memory();
    s->device = d;
    d->api = api;
    d->sweep_at = MIRRORS_BEFORE_SWEEP;
    d->kernels = calloc(s->model->program.kernel_count + 1, sizeof *d->kernels);
    if (!d->kernels)
        return ts_no_memory();
    TS_TRY(api->open(index, &d->device));
    return load_code(s, d);
}

/* "cuda:1": the name, and the number behind it. */
static ts_status split_index(ts_str *device, int *out_index) {
    const char *colon = device->length ? memchr(device->data, ':', device->length) : NULL;
    *out_index = 0;
    if (!colon)
        return NULL;
    ts_str whole = *device;
    device->length = (size_t)(colon - device->data);
    size_t digits = whole.length - device->length - 1;
    bool is_number = digits > 0 && digits <= 4;
    for (size_t i = 1; i <= digits && is_number; i++) {
        is_number = colon[i] >= '0' && colon[i] <= '9';
        *out_index = 10 * *out_index + (colon[i] - '0');
    }
    if (!is_number)
        return ts_error_make(TS_ERR_INVALID_INPUT, "device '%.*s': expected a number from 0 behind ':'",
                             TS_STR_ARG(whole));
    return NULL;
}

ts_status rt_device_open(tsrt_session *s, const char *device, bool may_fall_back) {
    ts_str target = model_target(s->model);
    ts_str wanted = device ? ts_str_of(device) : target;
    bool is_auto = ts_str_is(wanted, "auto");
    if (is_auto)
        wanted = target;
    int index = 0;
    TS_TRY(split_index(&wanted, &index));
    if (ts_str_is(wanted, "cpu"))
        return NULL;
    ts_status status;
    if (device && !be_find(wanted))
        return ts_error_make(TS_ERR_INVALID_INPUT, "device '%.*s' is unknown; there are: cpu, cuda, "
                             "opencl, auto", TS_STR_ARG(wanted));
    if (ts_str_equal(wanted, target))
        status = open_device(s, wanted, index);
    else
        status = ts_error_make(TS_ERR_UNSUPPORTED,
                               "the model was compiled for %.*s; compile it with --target %.*s",
                               TS_STR_ARG(target), TS_STR_ARG(wanted));
    if (!status)
        return NULL;
    rt_device_close(s);
    if (!is_auto && !may_fall_back)
        return status;
    ts_status_release(status);
    return NULL;
}

static void drop_mirror(rt_device *d, size_t i) {
    d->api->free(d->device, d->mirrors[i].buffer);
    rt_storage_release(d->mirrors[i].storage);
    d->mirrors[i] = d->mirrors[--d->count];
}

void rt_device_close(tsrt_session *s) {
    rt_device *d = s->device;
    s->device = NULL;
    if (!d)
        return;
    if (d->device) {
        while (d->count)
            drop_mirror(d, d->count - 1);
        for (size_t i = 0; i < d->constant_count; i++)
            d->api->free(d->device, d->constants[i].buffer);
        if (d->code)
            d->api->release_code(d->device, d->code);
        d->api->close(d->device);
    }
    free(d->mirrors);
    free(d->constants);
    free(d->kernels);
    free(d);
}

/* ---- mirrors ---- */

static mirror *find_mirror(rt_device *d, const rt_storage *storage) {
    for (size_t i = 0; i < d->count; i++)
        if (d->mirrors[i].storage == storage)
            return &d->mirrors[i];
    return NULL;
}

/* Storages that nobody but a mirror holds are of no use any more. */
static void sweep(rt_device *d) {
    for (size_t i = d->count; i-- > 0;)
        if (atomic_load_explicit(&d->mirrors[i].storage->references, memory_order_acquire) == 1)
            drop_mirror(d, i);
    d->sweep_at = d->count * 2 > MIRRORS_BEFORE_SWEEP ? d->count * 2 : MIRRORS_BEFORE_SWEEP;
}

static ts_status make_mirror(rt_device *d, rt_storage *storage, mirror **out) {
    *out = find_mirror(d, storage);
    if (*out)
        return NULL;
    if (d->count >= d->sweep_at)
        sweep(d);
    if (d->count == d->capacity) {
        size_t capacity = d->capacity ? d->capacity * 2 : 64;
        mirror *grown = realloc(d->mirrors, capacity * sizeof *grown);
        if (!grown)
            return ts_no_memory();
        d->mirrors = grown;
        d->capacity = capacity;
    }
    be_buffer *buffer;
    TS_TRY(d->api->alloc(d->device, storage->bytes ? storage->bytes : 1, &buffer));
    atomic_fetch_add_explicit(&storage->references, 1, memory_order_relaxed);
    d->mirrors[d->count] = (mirror){storage, buffer, true, false};
    *out = &d->mirrors[d->count++];
    return NULL;
}

static ts_status to_device(rt_device *d, mirror *m) {
    if (m->device_is_current)
        return NULL;
    if (m->storage->bytes)
        TS_TRY(d->api->write(d->device, m->buffer, 0, m->storage->data, m->storage->bytes));
    m->device_is_current = true;
    return NULL;
}

static ts_status tensor_to_host(tsrt_session *s, const rt_tensor *t, bool will_write) {
    rt_device *d = s->device;
    mirror *m = t->storage ? find_mirror(d, t->storage) : NULL;
    if (!m)
        return NULL;
    if (!m->host_is_current) {
        /* Of the planned memory only this tensor's part: the rest is the device's business. */
        bool is_planned = t->storage == s->arena;
        size_t offset = is_planned ? (size_t)((char *)t->data - (char *)m->storage->data) : 0;
        size_t bytes = is_planned
                           ? (size_t)t->element_count * rt_dtype_size((rt_dtype)t->dtype)
                           : m->storage->bytes;
        if (bytes)
            TS_TRY(d->api->read(d->device, (char *)m->storage->data + offset, m->buffer, offset,
                                bytes));
        m->host_is_current = !is_planned;
    }
    if (will_write && t->storage != s->arena && !t->storage->is_read_only)
        m->device_is_current = false;
    return NULL;
}

static ts_status values_to_host(tsrt_session *s, const rt_value *items, size_t count, bool write,
                                int depth);

static ts_status value_to_host(tsrt_session *s, rt_value v, bool write, int depth) {
    if (depth > 64)
        return NULL;
    switch (v.tag) {
    case RT_TAG_TENSOR: return tensor_to_host(s, v.as.tensor, write);
    case RT_TAG_LIST:
        return values_to_host(s, v.as.list->items, v.as.list->count, write, depth);
    case RT_TAG_TUPLE:
        return values_to_host(s, v.as.tuple->items, v.as.tuple->count, write, depth);
    case RT_TAG_OBJECT:
        return values_to_host(s, v.as.object->fields, v.as.object->field_count, write, depth);
    case RT_TAG_DICT: {
        size_t at = 0;
        for (rt_dict_entry *e; (e = rt_dict_next(v.as.dict, &at));)
            TS_TRY(value_to_host(s, e->value, write, depth + 1));
        return NULL;
    }
    default: return NULL;
    }
}

static ts_status values_to_host(tsrt_session *s, const rt_value *items, size_t count, bool write,
                                int depth) {
    for (size_t i = 0; i < count; i++)
        TS_TRY(value_to_host(s, items[i], write, depth + 1));
    return NULL;
}

ts_status rt_device_to_host(tsrt_session *s, rt_value v, bool will_write) {
    return value_to_host(s, v, will_write, 0);
}

static bool is_own(const tsrt_session *s, const rt_storage *storage) {
    if (storage == s->arena)
        return true;
    for (size_t i = 0; i < s->model->program.storage_count; i++)
        if (s->storages[i] == storage)
            return true;
    return false;
}

ts_status rt_device_end_run(tsrt_session *s) {
    rt_device *d = s->device;
    TS_TRY(d->api->synchronise(d->device));
    for (size_t i = d->count; i-- > 0;) {
        mirror *m = &d->mirrors[i];
        if (is_own(s, m->storage))
            continue;
        bool is_wanted =
            atomic_load_explicit(&m->storage->references, memory_order_acquire) > 1;
        if (is_wanted && !m->host_is_current && m->storage->bytes)
            TS_TRY(d->api->read(d->device, m->storage->data, m->buffer, 0, m->storage->bytes));
        drop_mirror(d, i);
    }
    return NULL;
}

/* ---- launches ---- */

static ts_status constant_buffer(rt_device *d, const void *host, size_t bytes, be_buffer **out) {
    for (size_t i = 0; i < d->constant_count; i++)
        if (d->constants[i].host == host) {
            *out = d->constants[i].buffer;
            return NULL;
        }
    if (d->constant_count == d->constant_capacity) {
        size_t capacity = d->constant_capacity ? d->constant_capacity * 2 : 64;
        constant_mirror *grown = realloc(d->constants, capacity * sizeof *grown);
        if (!grown)
            return ts_no_memory();
        d->constants = grown;
        d->constant_capacity = capacity;
    }
    TS_TRY(d->api->alloc(d->device, bytes ? bytes : 1, out));
    ts_status status = bytes ? d->api->write(d->device, *out, 0, host, bytes) : NULL;
    if (status) {
        d->api->free(d->device, *out);
        return status;
    }
    d->constants[d->constant_count++] = (constant_mirror){host, *out};
    return NULL;
}

static ts_status find_kernel(tsrt_session *s, uint32_t row, be_kernel **out) {
    rt_device *d = s->device;
    if (!d->kernels[row])
        TS_TRY(d->api->get_kernel(d->device, d->code, s->model->program.kernels[row].name.data,
                                  &d->kernels[row]));
    *out = d->kernels[row];
    return NULL;
}

static void add_buffer(argument_list *a, be_buffer *buffer, int64_t offset) {
    a->items[a->count++] = (be_argument){.buffer = buffer};
    a->offsets[a->count] = offset;
    a->items[a->count] = (be_argument){.number = &a->offsets[a->count], .bytes = 8};
    a->count++;
}

static ts_status add_tensor(tsrt_session *s, argument_list *a, rt_tensor *t, bool is_result) {
    rt_device *d = s->device;
    if (!t->storage)
        return ts_error_make(TS_ERR_INTERNAL, "a tensor without memory in a device kernel");
    mirror *m;
    TS_TRY(make_mirror(d, t->storage, &m));
    if (is_result) {
        m->device_is_current = true;
        m->host_is_current = false;
    } else {
        TS_TRY(to_device(d, m));
    }
    int64_t offset = t->data ? (char *)t->data - (char *)t->storage->data : 0;
    add_buffer(a, m->buffer, offset);
    return NULL;
}

static ts_status launch_there(tsrt_session *s, const rt_launch *l, void *const *area,
                              const int64_t *params, int64_t threads) {
    rt_device *d = s->device;
    argument_list *a = &d->arguments;
    a->count = 0;
    uint32_t tensors = l->operands + l->results;
    if (2 * (tensors + l->constants) + l->params > ARGUMENTS_MAX)
        return ts_error_make(TS_ERR_UNSUPPORTED, "a device kernel of too many arguments");
    const int64_t *bytes = params + l->params;
    void *const *handles = (void *const *)(const void *)(bytes + l->constants);
    for (uint32_t i = 0; i < tensors; i++)
        TS_TRY(add_tensor(s, a, handles[i], i >= l->operands));
    for (uint32_t i = 0; i < l->constants; i++) {
        be_buffer *buffer;
        TS_TRY(constant_buffer(d, area[tensors + i], (size_t)bytes[i], &buffer));
        add_buffer(a, buffer, 0);
    }
    for (uint32_t i = 0; i < l->params; i++)
        a->items[a->count++] = (be_argument){.number = &params[i], .bytes = 8};
    be_launch launch = {.groups = {(threads + GROUP - 1) / GROUP, 1, 1},
                        .group_size = {GROUP, 1, 1},
                        .arguments = a->items,
                        .argument_count = a->count};
    TS_TRY(find_kernel(s, l->kernel, &launch.kernel));
    if (threads <= 0)
        return NULL;
    return d->api->launch(d->device, &launch);
}

/* Planned memory lives on the device: what the CPU wrote there goes over at once. */
static ts_status planned_to_device(tsrt_session *s, const rt_tensor *t) {
    if (!t->storage || t->storage != s->arena || !t->element_count)
        return NULL;
    mirror *m;
    TS_TRY(make_mirror(s->device, t->storage, &m));
    m->device_is_current = true;
    m->host_is_current = false;
    return s->device->api->write(s->device->device, m->buffer,
                                 (size_t)((char *)t->data - (char *)t->storage->data), t->data,
                                 (size_t)t->element_count * rt_dtype_size((rt_dtype)t->dtype));
}

ts_status service_device_launch(rt_run *run, const rt_launch *launch, rt_compiled_kernel kernel,
                                void *const *area, const int64_t *params, int64_t work_items,
                                int64_t threads) {
    tsrt_session *s = rt_session_of(run);
    if (!s->device)
        return service_launch(run, launch, kernel, area, params, work_items);
    if (!launch->on_device) {
        uint32_t tensors = launch->operands + launch->results;
        const int64_t *bytes = params + launch->params;
        void *const *handles = (void *const *)(const void *)(bytes + launch->constants);
        for (uint32_t i = 0; i < tensors; i++)
            TS_TRY(rt_device_to_host(s, rt_from_tensor(handles[i]), i >= launch->operands));
        TS_TRY(service_launch(run, launch, kernel, area, params, work_items));
        for (uint32_t i = launch->operands; i < tensors; i++)
            TS_TRY(planned_to_device(s, handles[i]));
        return NULL;
    }
    if (TS_UNLIKELY(atomic_load_explicit(&run->interrupt, memory_order_relaxed)))
        TS_TRY(rt_check_interrupt(s));
    uint64_t begin = TS_UNLIKELY(s->profile != NULL) ? rt_now_ns() : 0;
    ts_status status = launch_there(s, launch, area, params, threads);
    if (TS_UNLIKELY(s->profile != NULL) && !status) {
        status = s->device->api->synchronise(s->device->device);
        rt_profile_add(s, RT_PROFILE_KERNEL, launch->kernel, launch->place, begin, rt_now_ns());
    }
    return status ? ts_status_set_place(status, rt_place(s->model, launch->place)) : NULL;
}

/* backends/cpu/cpu.c - the processor itself. Its kernels are part of an artifact's code image and
 * are launched by the host program directly (runtime/services_tensor.c), so this table offers
 * memory and copies; code that comes as separate bytes is refused. */
#include <stdlib.h>

#include "backends/backend.h"

struct be_device {
    int index;
};

struct be_buffer {
    size_t bytes;
    unsigned char *data;
};

static ts_status cpu_open(int index, be_device **out_device) {
    *out_device = NULL;
    if (index > 0)
        return ts_error_make(TS_ERR_UNSUPPORTED, "there is one cpu device, found number %d",
                             index);
    *out_device = calloc(1, sizeof **out_device);
    return *out_device ? NULL : ts_no_memory();
}

static void cpu_close(be_device *device) { free(device); }

static const char *cpu_describe(const be_device *device) {
    (void)device;
    return "cpu";
}

static ts_status cpu_alloc(be_device *device, size_t bytes, be_buffer **out_buffer) {
    (void)device;
    *out_buffer = NULL;
    if (bytes > SIZE_MAX - 64)
        return ts_no_memory();
    be_buffer *b = malloc(sizeof *b);
    if (!b)
        return ts_no_memory();
    b->bytes = bytes;
    b->data = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    if (!b->data) {
        free(b);
        return ts_no_memory();
    }
    *out_buffer = b;
    return NULL;
}

static void cpu_free(be_device *device, be_buffer *buffer) {
    (void)device;
    if (buffer)
        free(buffer->data);
    free(buffer);
}

static bool lies_in(const be_buffer *b, size_t offset, size_t bytes) {
    return offset <= b->bytes && bytes <= b->bytes - offset;
}

static ts_status outside(void) {
    return ts_error_make(TS_ERR_INTERNAL, "a copy reaches beyond its buffer");
}

static ts_status cpu_write(be_device *device, be_buffer *to, size_t offset, const void *from,
                           size_t bytes) {
    (void)device;
    if (!lies_in(to, offset, bytes))
        return outside();
    if (bytes)
        memcpy(to->data + offset, from, bytes);
    return NULL;
}

static ts_status cpu_read(be_device *device, void *to, const be_buffer *from, size_t offset,
                          size_t bytes) {
    (void)device;
    if (!lies_in(from, offset, bytes))
        return outside();
    if (bytes)
        memcpy(to, from->data + offset, bytes);
    return NULL;
}

static ts_status cpu_copy(be_device *device, be_buffer *to, size_t to_offset,
                          const be_buffer *from, size_t from_offset, size_t bytes) {
    (void)device;
    if (!lies_in(to, to_offset, bytes) || !lies_in(from, from_offset, bytes))
        return outside();
    if (bytes)
        memmove(to->data + to_offset, from->data + from_offset, bytes);
    return NULL;
}

static ts_status no_code(void) {
    return ts_error_make(TS_ERR_UNSUPPORTED, "kernels of the cpu are part of a model's code");
}

static ts_status cpu_load_code(be_device *device, const void *data, size_t bytes,
                               be_code **out_code) {
    (void)device, (void)data, (void)bytes;
    *out_code = NULL;
    return no_code();
}

static void cpu_release_code(be_device *device, be_code *code) { (void)device, (void)code; }

static ts_status cpu_get_kernel(be_device *device, be_code *code, const char *name,
                                be_kernel **out_kernel) {
    (void)device, (void)code, (void)name;
    *out_kernel = NULL;
    return no_code();
}

static ts_status cpu_launch(be_device *device, const be_launch *launch) {
    (void)device, (void)launch;
    return no_code();
}

static ts_status cpu_synchronise(be_device *device) {
    (void)device;
    return NULL; /* launches are complete when they return */
}

extern const be_api be_cpu_api;
const be_api be_cpu_api = {
    .version = BE_VERSION,
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .write = cpu_write,
    .read = cpu_read,
    .copy = cpu_copy,
    .load_code = cpu_load_code,
    .release_code = cpu_release_code,
    .get_kernel = cpu_get_kernel,
    .launch = cpu_launch,
    .synchronise = cpu_synchronise,
};

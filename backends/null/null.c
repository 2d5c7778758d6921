/* backends/null/null.c - the skeleton to copy, and the device of tests that need no device: memory
 * is the host's, code is not understood, launches do nothing. */
#include <stdlib.h>

#include "backends/backend.h"

struct be_device {
    int index;
};

struct be_buffer {
    size_t bytes;
    unsigned char data[];
};

static ts_status null_open(int index, be_device **out_device) {
    *out_device = calloc(1, sizeof **out_device);
    if (!*out_device)
        return ts_no_memory();
    (*out_device)->index = index;
    return NULL;
}

static void null_close(be_device *device) { free(device); }

static const char *null_describe(const be_device *device) {
    (void)device;
    return "no device";
}

static ts_status null_alloc(be_device *device, size_t bytes, be_buffer **out_buffer) {
    (void)device;
    *out_buffer = NULL;
    if (bytes > SIZE_MAX - sizeof(be_buffer))
        return ts_no_memory();
    be_buffer *b = malloc(sizeof *b + bytes);
    if (!b)
        return ts_no_memory();
    b->bytes = bytes;
    *out_buffer = b;
    return NULL;
}

static void null_free(be_device *device, be_buffer *buffer) {
    (void)device;
    free(buffer);
}

static ts_status outside(void) {
    return ts_error_make(TS_ERR_INTERNAL, "a copy reaches beyond its buffer");
}

static bool lies_in(const be_buffer *b, size_t offset, size_t bytes) {
    return offset <= b->bytes && bytes <= b->bytes - offset;
}

static ts_status null_write(be_device *device, be_buffer *to, size_t offset, const void *from,
                            size_t bytes) {
    (void)device;
    if (!lies_in(to, offset, bytes))
        return outside();
    if (bytes)
        memcpy(to->data + offset, from, bytes);
    return NULL;
}

static ts_status null_read(be_device *device, void *to, const be_buffer *from, size_t offset,
                           size_t bytes) {
    (void)device;
    if (!lies_in(from, offset, bytes))
        return outside();
    if (bytes)
        memcpy(to, from->data + offset, bytes);
    return NULL;
}

static ts_status null_copy(be_device *device, be_buffer *to, size_t to_offset,
                           const be_buffer *from, size_t from_offset, size_t bytes) {
    (void)device;
    if (!lies_in(to, to_offset, bytes) || !lies_in(from, from_offset, bytes))
        return outside();
    if (bytes)
        memmove(to->data + to_offset, from->data + from_offset, bytes);
    return NULL;
}

static ts_status null_load_code(be_device *device, const void *data, size_t bytes,
                                be_code **out_code) {
    (void)device, (void)data, (void)bytes;
    *out_code = NULL;
    return ts_error_make(TS_ERR_UNSUPPORTED, "the null device takes no code");
}

static void null_release_code(be_device *device, be_code *code) { (void)device, (void)code; }

static ts_status null_get_kernel(be_device *device, be_code *code, const char *name,
                                 be_kernel **out_kernel) {
    (void)device, (void)code;
    *out_kernel = NULL;
    return ts_error_make(TS_ERR_UNSUPPORTED, "the null device has no kernel %.40s", name);
}

static ts_status null_launch(be_device *device, const be_launch *launch) {
    (void)device, (void)launch;
    return NULL;
}

static ts_status null_synchronise(be_device *device) {
    (void)device;
    return NULL;
}

extern const be_api be_null_api;
const be_api be_null_api = {
    .version = BE_VERSION,
    .name = "null",
    .open = null_open,
    .close = null_close,
    .describe = null_describe,
    .alloc = null_alloc,
    .free = null_free,
    .write = null_write,
    .read = null_read,
    .copy = null_copy,
    .load_code = null_load_code,
    .release_code = null_release_code,
    .get_kernel = null_get_kernel,
    .launch = null_launch,
    .synchronise = null_synchronise,
};

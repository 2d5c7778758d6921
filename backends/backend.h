/* backends/backend.h - what a device must offer: one table of functions each.
 *
 * Add a device: copy backends/null/, fill its table, add a row to backends.def. The runtime takes
 * kernels' code from the artifact and never includes a compiler header; device libraries are
 * opened with dlopen, so a missing driver is an error with its name and nothing else.
 *
 * All functions are called by one thread at a time for one device. Buffers, code and kernels
 * belong to the device that made them and are released before it is closed. */
#ifndef BACKENDS_BACKEND_H
#define BACKENDS_BACKEND_H

#include <stdint.h>

#include "runtime/base/status.h"

enum { BE_VERSION = 1, BE_GRID = 3 };

typedef struct be_device be_device; /* each backend defines its own */
typedef struct be_buffer be_buffer;
typedef struct be_code be_code;
typedef struct be_kernel be_kernel;

typedef struct be_argument { /* a buffer, or `bytes` bytes of a number */
    be_buffer *buffer;       /* NULL: a number */
    int64_t offset;          /* into the buffer, in bytes */
    const void *number;
    size_t bytes;
} be_argument;

typedef struct be_launch {
    be_kernel *kernel;
    int64_t groups[BE_GRID], group_size[BE_GRID];
    size_t shared_bytes; /* of group memory, beyond what the kernel declares */
    const be_argument *arguments;
    size_t argument_count;
} be_launch;

typedef struct be_api {
    uint32_t version; /* BE_VERSION */
    const char *name; /* "cuda" */
    /* Device number `index`; UNSUPPORTED says which library, driver or device is missing. */
    ts_status (*open)(int index, be_device **out_device);
    void (*close)(be_device *device);
    const char *(*describe)(const be_device *device); /* "NVIDIA H200", lent */
    ts_status (*alloc)(be_device *device, size_t bytes, be_buffer **out_buffer);
    void (*free)(be_device *device, be_buffer *buffer);
    /* Complete when they return. */
    ts_status (*write)(be_device *device, be_buffer *to, size_t offset, const void *from,
                       size_t bytes);
    ts_status (*read)(be_device *device, void *to, const be_buffer *from, size_t offset,
                      size_t bytes);
    ts_status (*copy)(be_device *device, be_buffer *to, size_t to_offset, const be_buffer *from,
                      size_t from_offset, size_t bytes);
    /* Source or binary, as the backend takes it; an error holds the compiler's log. */
    ts_status (*load_code)(be_device *device, const void *data, size_t bytes, be_code **out_code);
    void (*release_code)(be_device *device, be_code *code);
    ts_status (*get_kernel)(be_device *device, be_code *code, const char *name,
                            be_kernel **out_kernel); /* lives as long as its code */
    ts_status (*launch)(be_device *device, const be_launch *launch); /* queued, in order */
    ts_status (*synchronise)(be_device *device);
    /* Nanoseconds of the last launch on the device's own clock; NULL: not measured. */
    ts_status (*time)(be_device *device, uint64_t *out_ns);
} be_api;

/* The backend of a name ("cpu", "cuda", "opencl", "null"), or NULL. Thread-safe. */
const be_api *be_find(ts_str name);

#endif

/* backends/cuda/cuda.c - the CUDA driver interface, opened with dlopen. Code comes as a cubin or as
 * PTX, which the driver compiles. The primary context is shared with whatever else the process runs
 * on the device; each call makes it current and puts the old one back. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/backend.h"

enum { KERNELS = 1024, ARGUMENTS = 512, CUDA_OUT_OF_MEMORY = 2 };

struct be_device {
    void *library;
#define CU(member, symbol, parameters) int(*member) parameters;
#include "backends/cuda/cuda_api.def"
    int id;
    void *context, *stream;
    char name[128];
};

struct be_buffer {
    uint64_t pointer;
    size_t bytes;
};

struct be_kernel {
    void *function;
};

struct be_code {
    void *module;
    be_kernel kernels[KERNELS];
    size_t count;
};

static ts_status failed(const be_device *d, const char *what, int error) {
    const char *name = NULL;
    if (d->error_name)
        d->error_name(error, &name);
    return ts_error_make(error == CUDA_OUT_OF_MEMORY ? TS_ERR_NO_MEMORY : TS_ERR_INTERNAL,
                         "CUDA: %s: %s (%d)", what, name ? name : "error", error);
}

/* ---- opening ---- */

static ts_status load_library(be_device *d) {
    d->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!d->library)
        return ts_error_make(TS_ERR_UNSUPPORTED,
                             "libcuda.so.1 was not found: install the NVIDIA driver, or run with "
                             "--device cpu");
    static const char *const names[] = {
#define CU(member, symbol, parameters) symbol,
#include "backends/cuda/cuda_api.def"
    };
    void *targets[] = {
#define CU(member, symbol, parameters) (void *)&d->member,
#include "backends/cuda/cuda_api.def"
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *p = dlsym(d->library, names[i]);
        if (!p)
            return ts_error_make(TS_ERR_UNSUPPORTED,
                                 "libcuda.so.1 has no function %s: the driver is too old",
                                 names[i]);
        memcpy(targets[i], &p, sizeof p); /* data to function pointer */
    }
    return NULL;
}

static void cuda_close(be_device *d) {
    if (!d)
        return;
    if (d->context) {
        void *old;
        d->push(d->context);
        if (d->stream)
            d->stream_destroy(d->stream);
        d->pop(&old);
        d->primary_release(d->id);
    }
    free(d);
}

static ts_status start(be_device *d, int index) {
    TS_TRY(load_library(d));
    int error = d->init(0), count = 0;
    if (!error)
        error = d->device_count(&count);
    if (error)
        return ts_error_make(TS_ERR_UNSUPPORTED,
                             "CUDA has no device (error %d): check the NVIDIA driver, or run with "
                             "--device cpu",
                             error);
    if (index >= count)
        return ts_error_make(TS_ERR_UNSUPPORTED, "CUDA device %d: there are %d", index, count);
    error = d->device_get(&d->id, index);
    if (!error && d->device_name(d->name, (int)sizeof d->name - 1, d->id))
        snprintf(d->name, sizeof d->name, "CUDA device %d", index);
    if (!error)
        error = d->primary_retain(&d->context, d->id);
    if (error)
        return failed(d, "opening the device", error);
    void *old;
    error = d->push(d->context);
    if (!error)
        error = d->stream_create(&d->stream, 1 /* does not wait for the default stream */);
    d->pop(&old);
    return error ? failed(d, "making a stream", error) : NULL;
}

static ts_status cuda_open(int index, be_device **out_device) {
    be_device *d = calloc(1, sizeof *d);
    *out_device = NULL;
    if (!d)
        return ts_no_memory();
    ts_status status = start(d, index);
    if (status)
        cuda_close(d);
    else
        *out_device = d;
    return status;
}

static const char *cuda_describe(const be_device *d) { return d->name; }

/* Ends a call that made the context current. */
static ts_status end(be_device *d, const char *what, int error) {
    void *old;
    d->pop(&old);
    return error ? failed(d, what, error) : NULL;
}

/* ---- memory ---- */

static ts_status cuda_alloc(be_device *d, size_t bytes, be_buffer **out_buffer) {
    *out_buffer = NULL;
    be_buffer *b = calloc(1, sizeof *b);
    if (!b)
        return ts_no_memory();
    b->bytes = bytes;
    d->push(d->context);
    ts_status status =
        end(d, "allocating memory", d->mem_alloc(&b->pointer, bytes ? bytes : 1));
    if (status)
        free(b);
    else
        *out_buffer = b;
    return status;
}

static void cuda_free(be_device *d, be_buffer *b) {
    if (!b)
        return;
    void *old;
    d->push(d->context);
    d->mem_free(b->pointer);
    d->pop(&old);
    free(b);
}

static ts_status cuda_write(be_device *d, be_buffer *to, size_t offset, const void *from,
                            size_t bytes) {
    d->push(d->context);
    int error = bytes ? d->copy_to_device(to->pointer + offset, from, bytes, d->stream) : 0;
    if (!error)
        error = d->stream_synchronise(d->stream);
    return end(d, "copying to the device", error);
}

static ts_status cuda_read(be_device *d, void *to, const be_buffer *from, size_t offset,
                           size_t bytes) {
    d->push(d->context);
    int error = bytes ? d->copy_to_host(to, from->pointer + offset, bytes, d->stream) : 0;
    if (!error)
        error = d->stream_synchronise(d->stream);
    return end(d, "copying from the device", error);
}

static ts_status cuda_copy(be_device *d, be_buffer *to, size_t to_offset, const be_buffer *from,
                           size_t from_offset, size_t bytes) {
    d->push(d->context);
    int error = bytes ? d->copy_on_device(to->pointer + to_offset, from->pointer + from_offset,
                                          bytes, d->stream)
                      : 0;
    if (!error)
        error = d->stream_synchronise(d->stream);
    return end(d, "copying on the device", error);
}

/* ---- code ---- */

static void cuda_release_code(be_device *d, be_code *code) {
    if (!code)
        return;
    void *old;
    d->push(d->context);
    if (code->module)
        d->module_unload(code->module);
    d->pop(&old);
    free(code);
}

static ts_status cuda_load_code(be_device *d, const void *data, size_t bytes, be_code **out_code) {
    *out_code = NULL;
    be_code *code = calloc(1, sizeof *code);
    char *image = malloc(bytes + 1); /* PTX must be terminated */
    if (!code || !image) {
        free(code);
        free(image);
        return ts_no_memory();
    }
    memcpy(image, data, bytes);
    image[bytes] = 0;
    d->push(d->context);
    ts_status status = end(d, "loading the model's kernels", d->module_load(&code->module, image));
    free(image);
    if (status)
        free(code);
    else
        *out_code = code;
    return status;
}

static ts_status cuda_get_kernel(be_device *d, be_code *code, const char *name,
                                 be_kernel **out_kernel) {
    *out_kernel = NULL;
    if (code->count == KERNELS)
        return ts_error_make(TS_ERR_UNSUPPORTED, "CUDA: more than %d kernels", KERNELS);
    be_kernel *k = &code->kernels[code->count];
    d->push(d->context);
    TS_TRY(end(d, name, d->module_function(&k->function, code->module, name)));
    code->count++;
    *out_kernel = k;
    return NULL;
}

static ts_status cuda_launch(be_device *d, const be_launch *launch) {
    union {
        const void *in;
        void *out;
    } parameters[ARGUMENTS];
    if (launch->argument_count > ARGUMENTS)
        return ts_error_make(TS_ERR_UNSUPPORTED, "CUDA: a kernel of too many arguments");
    for (size_t i = 0; i < launch->argument_count; i++) {
        const be_argument *a = &launch->arguments[i];
        parameters[i].in = a->buffer ? (const void *)&a->buffer->pointer : a->number;
    }
    for (int i = 0; i < BE_GRID; i++)
        if (launch->groups[i] > INT32_MAX)
            return ts_error_make(TS_ERR_UNSUPPORTED, "CUDA: a kernel of too many threads");
    d->push(d->context);
    int error = d->launch_kernel(
        launch->kernel->function, (unsigned)launch->groups[0], (unsigned)launch->groups[1],
        (unsigned)launch->groups[2], (unsigned)launch->group_size[0],
        (unsigned)launch->group_size[1], (unsigned)launch->group_size[2],
        (unsigned)launch->shared_bytes, d->stream, &parameters[0].out, NULL);
    return end(d, "launching a kernel", error);
}

static ts_status cuda_synchronise(be_device *d) {
    d->push(d->context);
    return end(d, "waiting", d->stream_synchronise(d->stream));
}

extern const be_api be_cuda_api;
const be_api be_cuda_api = {
    .version = BE_VERSION,
    .name = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .write = cuda_write,
    .read = cuda_read,
    .copy = cuda_copy,
    .load_code = cuda_load_code,
    .release_code = cuda_release_code,
    .get_kernel = cuda_get_kernel,
    .launch = cuda_launch,
    .synchronise = cuda_synchronise,
};

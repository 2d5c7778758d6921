/* backends/opencl/opencl.c - OpenCL 1.2 through the ICD loader, opened with dlopen. Kernels come as
 * source and are built at load. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/backend.h"

enum {
    CL_DEVICE_NAME = 0x102B,
    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_MEM_READ_WRITE = 1,
    PLATFORMS = 8,
    DEVICES = 16,
    KERNELS = 1024,
    PROBE_SECONDS = 30
};

struct be_device {
    void *library;
#define CL(name, result, parameters) result(*name) parameters;
#include "backends/opencl/opencl_api.def"
    void *id, *context, *queue;
    char name[128];
};

struct be_buffer {
    void *memory;
    size_t bytes;
};

struct be_kernel {
    void *handle;
};

struct be_code {
    void *program;
    be_kernel *kernels[KERNELS];
    size_t count;
};

static ts_status failed(const char *what, int32_t error) {
    if (error == -4 || error == -5 || error == -6) /* device or host memory */
        return ts_error_make(TS_ERR_NO_MEMORY, "OpenCL: %s: out of memory (%d)", what, error);
    return ts_error_make(TS_ERR_INTERNAL, "OpenCL: %s: error %d", what, error);
}

/* ---- opening ---- */

static ts_status load_library(be_device *d) {
    d->library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!d->library)
        return ts_error_make(TS_ERR_UNSUPPORTED,
                             "libOpenCL.so.1 was not found: install an OpenCL loader and a driver, "
                             "or run with --device cpu");
    static const char *const names[] = {
#define CL(name, result, parameters) #name,
#include "backends/opencl/opencl_api.def"
    };
    void *targets[] = {
#define CL(name, result, parameters) (void *)&d->name,
#include "backends/opencl/opencl_api.def"
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *p = dlsym(d->library, names[i]);
        if (!p)
            return ts_error_make(TS_ERR_UNSUPPORTED, "libOpenCL.so.1 has no function %s",
                                 names[i]);
        memcpy(targets[i], &p, sizeof p); /* data to function pointer */
    }
    return NULL;
}

/* Drivers abort the process where they don't find what they expect (PoCL without /sys, for one): a
 * child asks them for their devices first, in silence and for a limited time. */
static ts_status probe_drivers(const be_device *d) {
    pid_t child = fork();
    if (child < 0)
        return ts_error_make(TS_ERR_IO, "OpenCL: no process to try the drivers in: %s",
                             strerror(errno));
    if (child == 0) {
        void *platforms[PLATFORMS], *devices[DEVICES];
        uint32_t count = 0, found = 0;
        int null = open("/dev/null", O_WRONLY);
        if (null >= 0) {
            dup2(null, STDOUT_FILENO);
            dup2(null, STDERR_FILENO);
        }
        alarm(PROBE_SECONDS);
        if (!d->clGetPlatformIDs(PLATFORMS, platforms, &count))
            for (uint32_t p = 0; p < count && p < PLATFORMS; p++)
                d->clGetDeviceIDs(platforms[p], 0xFFFFFFFFu, DEVICES, devices, &found);
        _exit(0);
    }
    int how = 0;
    pid_t done;
    do
        done = waitpid(child, &how, 0);
    while (done < 0 && errno == EINTR);
    /* A host that ignores SIGCHLD leaves nothing to wait for: then nothing is known. */
    if (done == child && WIFSIGNALED(how))
        return ts_error_make(TS_ERR_UNSUPPORTED,
                             "OpenCL: a driver ends the process when asked for its devices "
                             "(signal %d): repair or remove it, or run with --device cpu",
                             WTERMSIG(how));
    return NULL;
}

static ts_status find_device(be_device *d, int index) {
    void *platforms[PLATFORMS];
    uint32_t count = 0;
    int32_t error = d->clGetPlatformIDs(PLATFORMS, platforms, &count);
    if (error || count == 0)
        return ts_error_make(TS_ERR_UNSUPPORTED,
                             "OpenCL has no platform (%d): install a driver (an ICD), or run with "
                             "--device cpu",
                             (int)error);
    int seen = 0;
    for (uint32_t p = 0; p < count && p < PLATFORMS; p++) {
        void *devices[DEVICES];
        uint32_t found = 0;
        if (d->clGetDeviceIDs(platforms[p], 0xFFFFFFFFu, DEVICES, devices, &found))
            continue;
        for (uint32_t i = 0; i < found && i < DEVICES; i++)
            if (seen++ == index) {
                d->id = devices[i];
                return NULL;
            }
    }
    return ts_error_make(TS_ERR_UNSUPPORTED, "OpenCL device %d: there are %d", index, seen);
}

static void opencl_close(be_device *d) {
    if (!d)
        return;
    if (d->queue)
        d->clReleaseCommandQueue(d->queue);
    if (d->context)
        d->clReleaseContext(d->context);
    /* The loader and drivers keep threads: the library stays open. */
    free(d);
}

static ts_status start(be_device *d, int index) {
    TS_TRY(load_library(d));
    TS_TRY(probe_drivers(d));
    TS_TRY(find_device(d, index));
    if (d->clGetDeviceInfo(d->id, CL_DEVICE_NAME, sizeof d->name - 1, d->name, NULL))
        snprintf(d->name, sizeof d->name, "OpenCL device %d", index);
    int32_t error = 0;
    d->context = d->clCreateContext(NULL, 1, &d->id, NULL, NULL, &error);
    if (!d->context)
        return failed("making a context", error);
    d->queue = d->clCreateCommandQueue(d->context, d->id, 0, &error);
    return d->queue ? NULL : failed("making a queue", error);
}

static ts_status opencl_open(int index, be_device **out_device) {
    be_device *d = calloc(1, sizeof *d);
    *out_device = NULL;
    if (!d)
        return ts_no_memory();
    ts_status status = start(d, index);
    if (status)
        opencl_close(d);
    else
        *out_device = d;
    return status;
}

static const char *opencl_describe(const be_device *d) { return d->name; }

/* ---- memory ---- */

static ts_status opencl_alloc(be_device *d, size_t bytes, be_buffer **out_buffer) {
    *out_buffer = NULL;
    be_buffer *b = malloc(sizeof *b);
    if (!b)
        return ts_no_memory();
    int32_t error = 0;
    b->bytes = bytes;
    b->memory = d->clCreateBuffer(d->context, CL_MEM_READ_WRITE, bytes ? bytes : 1, NULL, &error);
    if (!b->memory) {
        free(b);
        return failed("making a buffer", error);
    }
    *out_buffer = b;
    return NULL;
}

static void opencl_free(be_device *d, be_buffer *b) {
    if (b)
        d->clReleaseMemObject(b->memory);
    free(b);
}

static ts_status opencl_write(be_device *d, be_buffer *to, size_t offset, const void *from,
                              size_t bytes) {
    int32_t error = bytes ? d->clEnqueueWriteBuffer(d->queue, to->memory, 1, offset, bytes, from,
                                                    0, NULL, NULL)
                          : 0;
    return error ? failed("writing a buffer", error) : NULL;
}

static ts_status opencl_read(be_device *d, void *to, const be_buffer *from, size_t offset,
                             size_t bytes) {
    int32_t error = bytes ? d->clEnqueueReadBuffer(d->queue, from->memory, 1, offset, bytes, to, 0,
                                                   NULL, NULL)
                          : 0;
    return error ? failed("reading a buffer", error) : NULL;
}

static ts_status opencl_copy(be_device *d, be_buffer *to, size_t to_offset, const be_buffer *from,
                             size_t from_offset, size_t bytes) {
    int32_t error = bytes ? d->clEnqueueCopyBuffer(d->queue, from->memory, to->memory, from_offset,
                                                   to_offset, bytes, 0, NULL, NULL)
                          : 0;
    if (!error)
        error = d->clFinish(d->queue);
    return error ? failed("copying a buffer", error) : NULL;
}

/* ---- code ---- */

static ts_status build_log(be_device *d, void *program, int32_t error) {
    size_t size = 0;
    char *log = NULL;
    if (!d->clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size) && size &&
        (log = calloc(1, size + 1)) != NULL)
        d->clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, size, log, NULL);
    ts_status status = ts_error_make(TS_ERR_INTERNAL,
                                     "OpenCL: %s does not compile the model's kernels (%d)\n%.2000s",
                                     d->name, (int)error, log ? log : "");
    free(log);
    return status;
}

static void opencl_release_code(be_device *d, be_code *code) {
    if (!code)
        return;
    for (size_t i = 0; i < code->count; i++) {
        d->clReleaseKernel(code->kernels[i]->handle);
        free(code->kernels[i]);
    }
    if (code->program)
        d->clReleaseProgram(code->program);
    free(code);
}

static ts_status opencl_load_code(be_device *d, const void *data, size_t bytes,
                                  be_code **out_code) {
    *out_code = NULL;
    be_code *code = calloc(1, sizeof *code);
    if (!code)
        return ts_no_memory();
    const char *text = data;
    while (bytes && text[bytes - 1] == 0)
        bytes--;
    int32_t error = 0;
    code->program = d->clCreateProgramWithSource(d->context, 1, &text, &bytes, &error);
    ts_status status = code->program ? NULL : failed("taking source", error);
    if (!status) {
        error = d->clBuildProgram(code->program, 1, &d->id, "", NULL, NULL);
        if (error)
            status = build_log(d, code->program, error);
    }
    if (status)
        opencl_release_code(d, code);
    else
        *out_code = code;
    return status;
}

static ts_status opencl_get_kernel(be_device *d, be_code *code, const char *name,
                                   be_kernel **out_kernel) {
    *out_kernel = NULL;
    if (code->count == KERNELS)
        return ts_error_make(TS_ERR_UNSUPPORTED, "OpenCL: more than %d kernels", KERNELS);
    be_kernel *k = malloc(sizeof *k);
    if (!k)
        return ts_no_memory();
    int32_t error = 0;
    k->handle = d->clCreateKernel(code->program, name, &error);
    if (!k->handle) {
        free(k);
        return failed(name, error);
    }
    code->kernels[code->count++] = k;
    *out_kernel = k;
    return NULL;
}

static ts_status opencl_launch(be_device *d, const be_launch *launch) {
    for (size_t i = 0; i < launch->argument_count; i++) {
        const be_argument *a = &launch->arguments[i];
        int32_t error = a->buffer ? d->clSetKernelArg(launch->kernel->handle, (uint32_t)i,
                                                      sizeof(void *), &a->buffer->memory)
                                  : d->clSetKernelArg(launch->kernel->handle, (uint32_t)i,
                                                      a->bytes, a->number);
        if (error)
            return failed("setting an argument", error);
    }
    size_t global[BE_GRID], local[BE_GRID];
    for (int i = 0; i < BE_GRID; i++) {
        local[i] = (size_t)launch->group_size[i];
        global[i] = local[i] * (size_t)launch->groups[i];
    }
    int32_t error = d->clEnqueueNDRangeKernel(d->queue, launch->kernel->handle, BE_GRID, NULL,
                                              global, local, 0, NULL, NULL);
    return error ? failed("launching a kernel", error) : NULL;
}

static ts_status opencl_synchronise(be_device *d) {
    int32_t error = d->clFinish(d->queue);
    return error ? failed("waiting", error) : NULL;
}

extern const be_api be_opencl_api;
const be_api be_opencl_api = {
    .version = BE_VERSION,
    .name = "opencl",
    .open = opencl_open,
    .close = opencl_close,
    .describe = opencl_describe,
    .alloc = opencl_alloc,
    .free = opencl_free,
    .write = opencl_write,
    .read = opencl_read,
    .copy = opencl_copy,
    .load_code = opencl_load_code,
    .release_code = opencl_release_code,
    .get_kernel = opencl_get_kernel,
    .launch = opencl_launch,
    .synchronise = opencl_synchronise,
};

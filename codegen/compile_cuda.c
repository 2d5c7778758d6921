/* codegen/compile_cuda.c - CUDA source to PTX and cubins through NVRTC, opened with dlopen: the
 * build needs no CUDA header and a compile no GPU. All kernels of a model go in one program. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "codegen/compile_llvm.h"

/* The few declarations of nvrtc.h (NVRTC 11 and later). */
typedef struct nvrtc_program nvrtc_program;
typedef int (*create_function)(nvrtc_program **, const char *, const char *, int,
                               const char *const *, const char *const *);
typedef int (*compile_function)(nvrtc_program *, int, const char *const *);
typedef int (*destroy_function)(nvrtc_program **);
typedef int (*size_function)(nvrtc_program *, size_t *);
typedef int (*text_function)(nvrtc_program *, char *);
typedef const char *(*error_function)(int);

typedef struct nvrtc_api {
    void *library;
    create_function create;
    compile_function compile;
    destroy_function destroy;
    size_function ptx_size, cubin_size, log_size;
    text_function ptx, cubin, log;
    error_function error;
} nvrtc_api;

static bool find_symbol(void *library, const char *name, void *out) {
    void *p = dlsym(library, name);
    memcpy(out, &p, sizeof p); /* data to function pointer */
    return p != NULL;
}

static ts_status bind(nvrtc_api *a) {
    const struct {
        const char *name;
        void *to;
    } rows[] = {{"nvrtcCreateProgram", &a->create},     {"nvrtcCompileProgram", &a->compile},
                {"nvrtcDestroyProgram", &a->destroy},   {"nvrtcGetPTXSize", &a->ptx_size},
                {"nvrtcGetPTX", &a->ptx},               {"nvrtcGetCUBINSize", &a->cubin_size},
                {"nvrtcGetCUBIN", &a->cubin},           {"nvrtcGetProgramLogSize", &a->log_size},
                {"nvrtcGetProgramLog", &a->log},        {"nvrtcGetErrorString", &a->error}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!find_symbol(a->library, rows[i].name, rows[i].to))
            return ts_error_make(TS_ERR_UNSUPPORTED, "libnvrtc has no function %s",
                                 rows[i].name);
    return NULL;
}

static ts_status open_nvrtc(ts_arena *arena, const cg_options *options, nvrtc_api *a) {
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                        "/usr/local/cuda/lib64/libnvrtc.so",
                                        "/usr/local/cuda/lib/libnvrtc.so"};
    *a = (nvrtc_api){0};
    if (options->nvrtc_path.length) {
        a->library = dlopen(ts_arena_str(arena, options->nvrtc_path).data, RTLD_NOW | RTLD_LOCAL);
        if (!a->library)
            return ts_error_make(TS_ERR_UNSUPPORTED, "--nvrtc: %s", dlerror());
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !a->library; i++)
        a->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!a->library)
        return ts_error_make(TS_ERR_UNSUPPORTED,
                             "libnvrtc.so.13 or .12 was not found: install the CUDA toolkit or "
                             "the wheel nvidia-cuda-nvrtc, and name the library with --nvrtc");
    return bind(a);
}

static ts_status program_log(const nvrtc_api *a, nvrtc_program *p, int error) {
    size_t size = 0;
    char *log = NULL;
    if (a->log_size(p, &size) == 0 && size && (log = malloc(size + 1)) != NULL) {
        a->log(p, log);
        log[size] = 0;
    }
    ts_status status =
        ts_error_make(TS_ERR_INTERNAL, "NVRTC: %s\n%.2000s", a->error(error), log ? log : "");
    free(log);
    return status;
}

static ts_status compile_for(const nvrtc_api *a, const char *source, const char *arch,
                             bool want_ptx, ts_buffer *out) {
    nvrtc_program *p = NULL;
    int error = a->create(&p, source, "kernels.cu", 0, NULL, NULL);
    if (error)
        return ts_error_make(TS_ERR_INTERNAL, "NVRTC: %s", a->error(error));
    char option[64];
    snprintf(option, sizeof option, "--gpu-architecture=%s", arch);
    const char *options[] = {option, "--fmad=false"};
    error = a->compile(p, 2, options);
    ts_status status = NULL;
    size_t size = 0;
    if (error)
        status = program_log(a, p, error);
    else if ((want_ptx ? a->ptx_size : a->cubin_size)(p, &size) != 0 || size == 0)
        status = ts_error_make(TS_ERR_INTERNAL, "NVRTC gave no code for %s", arch);
    if (!status) {
        char *bytes = malloc(size);
        if (!bytes) {
            status = ts_no_memory();
        } else {
            (want_ptx ? a->ptx : a->cubin)(p, bytes);
            ts_buffer_append(out, bytes, size);
            status = ts_buffer_status(out);
            free(bytes);
        }
    }
    a->destroy(&p);
    return status;
}

/* "sm_80,sm_90" -> names; at most eight. */
static size_t split_archs(ts_arena *arena, ts_str list, const char **out, size_t max) {
    size_t count = 0, begin = 0;
    for (size_t i = 0; i <= list.length && count < max; i++) {
        if (i < list.length && list.data[i] != ',')
            continue;
        if (i > begin)
            out[count++] =
                ts_arena_str(arena, (ts_str){list.data + begin, i - begin}).data;
        begin = i + 1;
    }
    return count;
}

ts_status cg_compile_cuda(ts_arena *arena, const cg_options *options, const ts_buffer *source,
                          cg_device_code **out_codes, size_t *out_count) {
    enum { ARCHS = 8 };
    const char *archs[ARCHS];
    nvrtc_api a;
    *out_count = 0;
    *out_codes = TS_NEW_ARRAY(arena, cg_device_code, ARCHS + 1);
    TS_TRY(open_nvrtc(arena, options, &a));
    const char *text = ts_arena_str(arena, (ts_str){source->data, source->length}).data;
    size_t count = split_archs(arena, options->cuda_arch, archs, ARCHS);
    ts_status status = NULL;
    for (size_t i = 0; i < count && !status; i++) {
        if (strncmp(archs[i], "sm_", 3) != 0 || strlen(archs[i]) > 20) {
            status = ts_error_make(TS_ERR_INVALID_INPUT,
                                   "--cuda-arch: expected names such as sm_80, found '%.40s'",
                                   archs[i]);
            break;
        }
        cg_device_code *code = &(*out_codes)[(*out_count)++];
        code->level = archs[i];
        status = compile_for(&a, text, archs[i], false, &code->bytes);
    }
    /* PTX of the oldest architecture that current drivers run serves all later ones. */
    if (!status) {
        cg_device_code *code = &(*out_codes)[(*out_count)++];
        code->level = "ptx";
        status = compile_for(&a, text, "compute_80", true, &code->bytes);
    }
    /* The library stays open: it keeps state of its own that does not like to be unloaded. */
    return status;
}

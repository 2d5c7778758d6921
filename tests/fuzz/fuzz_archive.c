/* tests/fuzz/fuzz_archive.c - whole files: TorchScript of any age, exported programs, state dicts. The
 * reader wants a file, so each input lies in memory under a descriptor. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

#include "frontend/archive/archive.h"
#include "frontend/frontend.h"

static ts_status load(ts_arena *arena, ts_str path) {
    fe_weights weights;
    ts_status refused = fe_weights_load(arena, path, true, &weights);
    if (!refused)
        fe_weights_deinit(&weights);
    ts_status_release(refused);
    ir_module *m = ir_module_make(arena);
    fe_diagnostics diagnostics = {.arena = arena};
    fe_options options = {.path = path, .ignore_crc = true, .training = -1};
    fe_context *fe = fe_context_make(m, &options, &diagnostics);
    ts_status status = fe_load(fe);
    if (!status)
        status = fe_diagnostics_status(&diagnostics);
    if (!status)
        status = ir_verify_module(m);
    fe_context_deinit(fe);
    ir_module_deinit(m);
    return status;
}

static ts_status fuzz_one(ts_arena *arena, ts_str bytes) {
    char path[40];
    int fd = memfd_create("archive", 0);
    if (fd < 0)
        return NULL;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    bool is_written = write(fd, bytes.data, bytes.length) == (ssize_t)bytes.length;
    ts_status status = is_written ? load(arena, ts_str_of(path)) : NULL;
    close(fd);
    return status;
}

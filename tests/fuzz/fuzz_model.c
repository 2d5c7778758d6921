/* tests/fuzz/fuzz_model.c - whole scripts: what tsc does of them before code is generated, with every
 * pass's result verified. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

#include "tools/compile.h"

static char path[] = "/tmp/fuzz_model_XXXXXX.py"; /* the front end wants a file of that ending */

static void remove_file(void) { unlink(path); }

static ts_status fuzz_one(ts_arena *arena, ts_str bytes) {
    static bool is_made;
    (void)arena;
    if (!is_made) {
        int fd = mkstemps(path, 3);
        if (fd < 0)
            return NULL;
        close(fd);
        is_made = true;
        atexit(remove_file);
    }
    FILE *file = fopen(path, "wb");
    if (!file)
        return NULL;
    bool is_written = fwrite(bytes.data, 1, bytes.length, file) == bytes.length;
    is_written = fclose(file) == 0 && is_written;
    tsc_options options = {.frontend = {.path = ts_str_of(path), .training = -1}, .emit = TSC_EMIT_NOTHING,
                           .opt_level = 2, .verify_each = true, .memory_limit = (size_t)512 << 20};
    tsc_callbacks none = {0};
    return is_written ? tsc_compile(&options, &none) : NULL;
}

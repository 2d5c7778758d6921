/* tests/fuzz/fuzz.h - what every target does: one arena per input, freed whatever happens. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <setjmp.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/status.h"

/* One input; the status is released. */
static ts_status fuzz_one(ts_arena *arena, ts_str bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    jmp_buf handler;
    ts_arena *arena = ts_arena_create((size_t)512 << 20);
    if (!arena)
        return 0;
    ts_arena_set_handler(arena, &handler);
    if (setjmp(handler) == 0)
        ts_status_release(fuzz_one(arena, (ts_str){(const char *)data, size}));
    ts_arena_release(arena);
    return 0;
}

#endif

/* tests/fuzz/fuzz_debug_records.c - places of an archive's code; all of them are asked for. */
#include "tests/fuzz/fuzz.h"

#include "frontend/archive/debug_records.h"

static ts_status fuzz_one(ts_arena *arena, ts_str bytes) {
    fe_source *source = NULL;
    TS_TRY(fe_source_make(arena, TS_STR("f.py"), TS_STR("def f(x):\n  return x\n"), &source));
    TS_TRY(fe_debug_records_read(arena, bytes, source));
    for (uint32_t i = 0; i < 20; i++) {
        (void)fe_source_place(source, i, 1);
        (void)fe_source_place_line(source, i);
    }
    return NULL;
}

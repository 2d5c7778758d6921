/* tests/fuzz/fuzz_zip.c - the zip reader, every member read. */
#include "tests/fuzz/fuzz.h"

#include "frontend/archive/zip.h"

static ts_status fuzz_one(ts_arena *arena, ts_str bytes) {
    fe_zip *zip = NULL;
    TS_TRY(fe_zip_open(arena, (const unsigned char *)bytes.data, bytes.length, true, &zip));
    for (size_t i = 0; i < zip->count; i++) {
        ts_str text;
        ts_status_release(fe_zip_read(zip, arena, &zip->members[i], 1 << 20, &text));
    }
    return NULL;
}

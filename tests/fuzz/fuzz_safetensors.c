/* tests/fuzz/fuzz_safetensors.c - the safetensors reader; every byte of every tensor is read. */
#include "tests/fuzz/fuzz.h"

#include "frontend/safetensors/safetensors.h"

static ts_status fuzz_one(ts_arena *arena, ts_str bytes) {
    (void)arena;
    safetensors_file file;
    TS_TRY(safetensors_parse(bytes, &file));
    volatile unsigned sum = 0;
    for (size_t i = 0; i < file.count; i++)
        for (size_t k = 0; k < file.entries[i].bytes; k++)
            sum += ((const unsigned char *)file.entries[i].data)[k];
    safetensors_deinit(&file);
    return NULL;
}

/* codegen/tuning.c - the table of variants, and what was chosen. */
#include "codegen/tuning.h"

static const cg_variant variants[] = {
#define VARIANT(name, winograd, block, vectors, chunk) {#name, winograd, block, vectors, chunk},
#include "codegen/tuning.def"
};
enum { COUNT = sizeof variants / sizeof variants[0] };

size_t cg_variant_count(void) { return COUNT; }

const cg_variant *cg_variant_get(size_t index) { return &variants[index < COUNT ? index : 0]; }

size_t cg_variant_find(ts_str name) {
    for (size_t i = 0; i < COUNT; i++)
        if (ts_str_is(name, variants[i].name))
            return i;
    return 0;
}

size_t cg_tuning_variant(const cg_tuning *tuning, uint64_t key) {
    for (size_t i = 0; tuning && i < tuning->count; i++)
        if (tuning->choices[i].key == key)
            return tuning->choices[i].variant;
    return tuning ? tuning->otherwise : 0;
}

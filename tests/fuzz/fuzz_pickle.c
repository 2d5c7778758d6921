/* tests/fuzz/fuzz_pickle.c - the pickle machine. */
#include "tests/fuzz/fuzz.h"

#include "frontend/archive/pickle.h"

static ts_status fuzz_one(ts_arena *arena, ts_str bytes) {
    fe_pickle_node *root = NULL;
    return fe_pickle_read(arena, bytes, FE_PICKLE_SCRIPT | FE_PICKLE_STATE, NULL, &root);
}

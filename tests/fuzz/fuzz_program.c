/* tests/fuzz/fuzz_program.c - the tables of an artifact, and a session of what they say. Checksums guard
 * these bytes in a file; here they are as wrong as can be. */
#include "tests/fuzz/fuzz.h"

#include "runtime/runtime_internal.h"

static _Alignas(64) char weights[1 << 20]; /* zeroes: what they hold is not asked here */

static ts_status fuzz_one(ts_arena *arena, ts_str bytes) {
    tsrt_model *m = NULL;
    (void)arena;
    TS_TRY(rt_model_make(&m));
    m->weights = weights;
    m->weight_bytes = sizeof weights;
    ts_status status = rt_model_read_program(m, bytes.data, bytes.length);
    tsrt_session *session = NULL;
    if (!status && m->program.arena_bytes < 1 << 20)
        tsrt_status_release(tsrt_session_create(m, NULL, &session));
    tsrt_session_release(session);
    tsrt_model_release(m);
    return status;
}

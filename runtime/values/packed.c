/* runtime/values/packed.c - capsules of packed parameters. */
#include "runtime/values/packed.h"

#include <stdlib.h>

static const char kind[] = "packed parameters";

static void let_go(void *pointer) {
    rt_release((rt_value){.tag = RT_TAG_TUPLE, .as.tuple = pointer});
}

ts_status rt_packed_make(rt_value tuple, rt_value *out) {
    ts_status status = rt_capsule_make(RT_TAG_CAPSULE, kind, tuple.as.tuple, let_go, out);
    if (status)
        rt_release(tuple);
    return status;
}

const rt_tuple *rt_packed_tuple(rt_value v) {
    if (v.tag != RT_TAG_CAPSULE)
        return NULL;
    const rt_capsule *c = v.as.pointer;
    return strcmp(c->kind, kind) == 0 ? c->pointer : NULL;
}

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

ts_status rt_packed_of(const char *what, const rt_value *items, size_t count, rt_value *out) {
    rt_value tuple;
    TS_TRY(rt_tuple_make(count + 1, &tuple));
    ts_status status = rt_str_make(ts_str_of(what), &tuple.as.tuple->items[0]);
    if (status) {
        rt_release(tuple);
        return status;
    }
    for (size_t i = 0; i < count; i++)
        tuple.as.tuple->items[i + 1] = rt_retain(items[i]);
    return rt_packed_make(tuple, out);
}

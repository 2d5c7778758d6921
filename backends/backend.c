/* backends/backend.c - finds a backend by name. */
#include "backends/backend.h"

#define BACKEND(name) extern const be_api be_##name##_api;
#include "backends/backends.def"

const be_api *be_find(ts_str name) {
    static const be_api *const all[] = {
#define BACKEND(name) &be_##name##_api,
#include "backends/backends.def"
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (ts_str_is(name, all[i]->name))
            return all[i];
    return NULL;
}

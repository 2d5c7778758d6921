/* tools/compile_no_frontend.c - stands in for the front end in a build that lacks it: .tsir only. */
#ifndef TS_HAVE_FRONTEND
#include "frontend/frontend.h"

fe_context *fe_context_make(ir_module *module, const fe_options *options,
                            fe_diagnostics *diagnostics) {
    (void)module;
    (void)options;
    (void)diagnostics;
    return NULL;
}

ts_status fe_load(fe_context *fe) {
    (void)fe;
    return ts_error_make(TS_ERR_UNSUPPORTED, "this tsc was built without a front end: it reads "
                         ".tsir only");
}

ts_status fe_library_function(fe_context *fe, ts_str name, ir_function **out) {
    (void)fe;
    (void)name;
    *out = NULL;
    return NULL;
}

void fe_context_deinit(fe_context *fe) { (void)fe; }
#else
typedef int compile_no_frontend_is_empty; /* ISO C wants a declaration in each file */
#endif

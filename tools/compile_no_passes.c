/* tools/compile_no_passes.c - stands in for passes/ in a build that lacks them. */
#ifndef TS_HAVE_PASSES
#include "passes/passes.h"

const pass_info *pass_table(size_t *out_count) {
    *out_count = 0;
    return NULL;
}

ts_status pass_run_pipeline(pass_context *ctx, ir_module *m, const pass_options *options) {
    (void)ctx;
    (void)m;
    (void)options;
    return ts_error_make(TS_ERR_UNSUPPORTED, "this tsc was built without passes: use "
                         "--stop-after=frontend");
}
#else
typedef int compile_no_passes_is_empty; /* ISO C wants a declaration in each file */
#endif

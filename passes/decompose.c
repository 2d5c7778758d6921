/* passes/decompose.c - calls of library functions that passes in between have made or kept.
 *
 * Whatever recognises an operator whole has run by now; from here on there are core operators. */
#include "passes/pass_internal.h"

ts_status pass_decompose(pass_context *ctx, ir_module *m) {
    return pass_inline_calls(ctx, m, true);
}

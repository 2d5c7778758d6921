/* tests/ops/case_library.h - functions of the embedded library, for lines that name one. */
#ifndef TESTS_OPS_CASE_LIBRARY_H
#define TESTS_OPS_CASE_LIBRARY_H

#include "runtime/ops/ops.h"

typedef struct case_library case_library;

case_library *library_make(void);
void library_release(case_library *library);
/* Runs `name` ("meshgrid.indexing", "torch.nn.functional.pad") through the front end and the IR's
 * evaluator; missing arguments take their defaults. false: there is no such function. */
bool library_run(case_library *library, rt_context *context, ts_str name, const rt_value *args,
                 size_t count, rt_value *out, ts_status *out_status);
/* Calls visit with the name of each function that a line can name. */
void library_each(void (*visit)(void *user, ts_str name), void *user);

#endif

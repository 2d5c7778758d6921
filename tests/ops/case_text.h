/* tests/ops/case_text.h - values as .case files write them. */
#ifndef TESTS_OPS_CASE_TEXT_H
#define TESTS_OPS_CASE_TEXT_H

#include "runtime/values/tensor.h"

typedef struct parser {
    const char *at, *end;
    bool failed;
} parser;

void skip_blanks(parser *p);
bool take(parser *p, const char *text);
void must(ts_status status); /* or the program ends */
rt_value parse_value(parser *p);
/* Floats to a relative 2e-6, 16-bit ones to 1e-2. */
bool same_values(rt_value a, rt_value b);

#endif

/* tests/fuzz/fuzz_tsir.c - IR text: what the parser takes the verifier judges, and what the verifier
 * takes prints, reads back and prints the same. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

#include "ir/ir.h"

static ts_status print_again(ts_arena *arena, ir_module *m) {
    ts_buffer first = {0}, second = {0};
    ir_print_module(m, &first, NULL);
    ir_module *again = ir_module_make(arena);
    ts_status status = ir_parse_module(again, TS_STR("g.tsir"), (ts_str){first.data, first.length},
                                       NULL, NULL);
    if (!status) {
        ir_print_module(again, &second, NULL);
        if (first.length != second.length ||
            (first.length && memcmp(first.data, second.data, first.length) != 0))
            abort(); /* the property that this target tests */
    }
    ir_module_deinit(again);
    ts_buffer_deinit(&first);
    ts_buffer_deinit(&second);
    return status;
}

static ts_status fuzz_one(ts_arena *arena, ts_str bytes) {
    ir_module *m = ir_module_make(arena);
    ts_status status = ir_parse_module(m, TS_STR("f.tsir"), bytes, NULL, NULL);
    if (!status)
        status = ir_verify_module(m);
    if (!status)
        status = print_again(arena, m);
    ir_module_deinit(m);
    return status;
}

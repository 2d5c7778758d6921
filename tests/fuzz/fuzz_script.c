/* tests/fuzz/fuzz_script.c - the script parser and its dump. */
#include "tests/fuzz/fuzz.h"

#include "frontend/ast.h"
#include "frontend/diagnostics.h"

static ts_status fuzz_one(ts_arena *arena, ts_str bytes) {
    fe_source *source = NULL;
    fe_diagnostics diagnostics = {.arena = arena};
    TS_TRY(fe_source_make(arena, TS_STR("f.py"), bytes, &source));
    ast_node *tree = fe_parse(arena, source, &diagnostics);
    if (tree) {
        ts_buffer text = {0};
        ast_dump(tree, &text);
        ts_buffer_deinit(&text);
    }
    return fe_diagnostics_status(&diagnostics);
}

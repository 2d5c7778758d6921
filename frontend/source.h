/* frontend/source.h - a file of source text: offsets to lines and columns, the text of a line. */
#ifndef FRONTEND_SOURCE_H
#define FRONTEND_SOURCE_H

#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/status.h"

typedef struct fe_source {
    ts_str name; /* as messages name it: "model.py", "model.pt:code/__torch__.py" */
    ts_str text; /* UTF-8, checked; a BOM is skipped */
    const uint32_t *line_offsets;
    size_t line_count;
    bool is_ascii; /* a byte is a column: places need no walk along their line */
    /* Places in the original Python of an archive's code, from its debug record; may be NULL.
     * Sorted by offset: text from `offset` on came from `place`. */
    const struct fe_origin *origins;
    size_t origin_count;
    bool is_archive; /* TorchScript's dialect: names are qualified, operators are functions */
    bool is_library; /* frontend/library */
} fe_source;

typedef struct fe_origin {
    uint32_t offset;
    ts_place place; /* line 0: none is known from here on */
    ts_str line;    /* the source line there */
} fe_origin;

/* Refuses NUL bytes and text that is not UTF-8. The text is borrowed. */
ts_status fe_source_make(ts_arena *arena, ts_str name, ts_str text, fe_source **out) TS_WARN_UNUSED;
/* Place of a byte range; column counts code points from 1. Uses origins where there are any. */
ts_place fe_source_place(const fe_source *source, uint32_t offset, uint32_t length);
/* The line that a place shows: of the original Python where fe_source_place answers with it. */
ts_str fe_source_place_line(const fe_source *source, uint32_t offset);
ts_str fe_source_line(const fe_source *source, int line); /* without its newline */

#endif

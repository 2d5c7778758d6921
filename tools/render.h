/* tools/render.h - diagnostics and statuses as text with a caret, or as JSON. */
#ifndef TOOLS_RENDER_H
#define TOOLS_RENDER_H

#include "frontend/diagnostics.h"
#include "runtime/base/buffer.h"

typedef enum render_format { RENDER_TEXT, RENDER_JSON } render_format;

/* Everything that was reported, then the status where it says something new. One JSON object:
 * {"diagnostics": [{"severity", "code", "file", "line", "column", "length", "message", "source"}]} */
void render_all(render_format format, const fe_diagnostics *diagnostics, ts_status status,
                ts_buffer *out);

#endif

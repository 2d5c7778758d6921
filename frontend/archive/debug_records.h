/* frontend/archive/debug_records.h - where the text of an archive's code came from. */
#ifndef FRONTEND_ARCHIVE_DEBUG_RECORDS_H
#define FRONTEND_ARCHIVE_DEBUG_RECORDS_H

#include "frontend/source.h"

/* Sets source->origins from the bytes of a .debug_pkl. An error means: drop it, go on without. */
ts_status fe_debug_records_read(ts_arena *arena, ts_str bytes, fe_source *source) TS_WARN_UNUSED;

#endif

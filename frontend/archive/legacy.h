/* frontend/archive/legacy.h - archives of torch 1.0 to 1.2, whose modules are described by JSON. */
#ifndef FRONTEND_ARCHIVE_LEGACY_H
#define FRONTEND_ARCHIVE_LEGACY_H

#include "frontend/archive/archive_internal.h"

/* Reads model.json and writes the classes that today's archives would hold. */
ts_status fe_legacy_open(fe_archive *archive) TS_WARN_UNUSED;
ts_status fe_legacy_load(fe_archive *archive, const fe_torchscript_classes *classes,
                         fe_records *records, fe_torchscript_objects *out) TS_WARN_UNUSED;
void fe_legacy_release(fe_archive *archive);

#endif

/* frontend/archive/packed.h - packed quantized parameters from the states that archives hold. */
#ifndef FRONTEND_ARCHIVE_PACKED_H
#define FRONTEND_ARCHIVE_PACKED_H

#include "runtime/values/packed.h"

/* *out is owned. UNSUPPORTED for classes and versions that are not known. */
ts_status fe_packed_from_state(ts_str class_name, rt_value state, rt_value *out) TS_WARN_UNUSED;

#endif

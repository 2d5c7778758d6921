/* frontend/archive/state_dict.h - state dicts of tensors as torch.save writes them. */
#ifndef FRONTEND_ARCHIVE_STATE_DICT_H
#define FRONTEND_ARCHIVE_STATE_DICT_H

#include "frontend/archive/archive.h"
#include "frontend/archive/records.h"

/* Takes the tensor; false (and nothing taken) where the name is there already. */
bool fe_weights_add(ts_arena *arena, fe_weights *weights, fe_weight weight);
ts_status fe_state_dict_read_zip(ts_arena *arena, fe_mapping *mapping, bool ignore_crc,
                                 fe_weights *out) TS_WARN_UNUSED;
/* The same of bytes in the mapping, or in the arena. */
ts_status fe_state_dict_read_bytes(ts_arena *arena, fe_mapping *mapping, ts_str bytes,
                                   bool ignore_crc, fe_weights *out) TS_WARN_UNUSED;
/* The form before torch 1.6: five pickles, then the storages. */
ts_status fe_state_dict_read_legacy(ts_arena *arena, fe_mapping *mapping, fe_weights *out)
    TS_WARN_UNUSED;

/* The form of torch 0.1 (state_dict_tar.c). */
bool fe_state_dict_is_tar(ts_str bytes);
ts_status fe_state_dict_read_tar(ts_arena *arena, fe_mapping *mapping, fe_weights *out)
    TS_WARN_UNUSED;

/* ---- shared by those ---- */
/* The next pickle of a file of several. */
ts_status fe_state_dict_pickle(ts_arena *arena, ts_str bytes, size_t *at, fe_pickle_node **out)
    TS_WARN_UNUSED;
/* The DICT node of a dict or an OrderedDict; NULL for anything else. */
const fe_pickle_node *fe_state_dict_of(const fe_pickle_node *node);

#endif

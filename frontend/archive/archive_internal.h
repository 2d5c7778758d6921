/* frontend/archive/archive_internal.h - what the parts of the TorchScript reader share. */
#ifndef FRONTEND_ARCHIVE_ARCHIVE_INTERNAL_H
#define FRONTEND_ARCHIVE_ARCHIVE_INTERNAL_H

#include "frontend/archive/archive.h"
#include "frontend/archive/records.h"

enum {
    FE_ARCHIVE_MAX_VERSION = 10,
    FE_ARCHIVE_MAX_CODE = 64 << 20,    /* bytes of all code together */
    FE_ARCHIVE_MAX_PICKLE = 256 << 20, /* bytes of one pickle */
    FE_ARCHIVE_MAX_DEBUG = 64 << 20    /* bytes of all debug records together */
};

struct fe_archive {
    ts_arena *arena;
    fe_mapping *mapping;
    fe_zip *zip;
    ts_str path, top; /* top: "archive/" */
    ts_str program;   /* of a package of exported programs: the one that is meant; empty where only one is */
    int version;
    bool is_big_endian;
    fe_diagnostics *diagnostics;
    fe_code_file *code;
    size_t code_count, code_capacity;
    /* Every value made from the pickles, released together. */
    rt_value *owned;
    size_t owned_count, owned_capacity;
    fe_pending_state *pending;
    size_t pending_count, pending_capacity;
    ts_str *constant_types;
    void *legacy;                   /* legacy.c's own, for a model.json archive; else NULL */
    const rt_tuple *legacy_tensors; /* its table of tensors */
    struct fe_exported *exported;   /* exported.c's own, for a torch.export program; else NULL */
    /* For whoever binds the archive to a front end (bind.c). */
    fe_torchscript_objects objects;
    void *binding;
};

/* Turns the tree of one pickle into values; member names it in messages. */
ts_status fe_archive_build(fe_archive *archive, const fe_torchscript_classes *classes,
                           fe_records *records, ts_str member, fe_pickle_node *root,
                           rt_value *out) TS_WARN_UNUSED;

#endif

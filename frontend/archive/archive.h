/* frontend/archive/archive.h - files of weights and TorchScript archives, read as data.
 *
 * Nothing in a file is ever executed or looked up by name outside fixed lists. Every reader refuses
 * what it does not understand, with the member and the offset in the message.
 *
 * A TorchScript archive is read in two steps, because objects need their classes and classes are
 * text that the front end parses:
 *   1. fe_torchscript_open: the container, version, byte order, and the sources in code/.
 *   2. fe_torchscript_load: data.pkl and constants.pkl, asking `classes` for each class by name. */
#ifndef FRONTEND_ARCHIVE_ARCHIVE_H
#define FRONTEND_ARCHIVE_ARCHIVE_H

#include "frontend/diagnostics.h"
#include "frontend/source.h"
#include "ir/ir.h"
#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include "runtime/values/tensor.h"

/* ---- telling files apart ---- */
typedef enum fe_file_kind {
    FE_FILE_EMPTY,
    FE_FILE_ZIP,         /* a .pt or a .pth */
    FE_FILE_SAFETENSORS, /* 8 bytes of length, then '{' */
    FE_FILE_PICKLE,      /* a legacy .pth */
    FE_FILE_TEXT,        /* a script, perhaps */
    FE_FILE_OTHER        /* a known foreign format or noise */
} fe_file_kind;
/* what: "an ELF file", "a zip archive", ... for messages. */
fe_file_kind fe_file_kind_of(ts_str bytes, const char **out_what);

/* ---- TorchScript archives ---- */
typedef struct fe_archive fe_archive;

typedef struct fe_code_file {
    ts_str module;     /* "__torch__.torch.nn.modules.linear": what the names in it begin with */
    fe_source *source; /* is_archive set; origins from the debug record, where there is one */
} fe_code_file;

/* What a class of the archive is, by qualified name ("__torch__.M"). *out is NULL where the code
 * defines no such class. Its fields and their types must be known (base.fields are those that objects
 * have; a field without a type is not checked), and enum_members for an Enum. */
typedef struct fe_torchscript_classes {
    void *user;
    ts_status (*find)(void *user, ts_str qualified_name, const ir_class **out);
    bool (*has_method)(void *user, const ir_class *class_, ts_str name);
} fe_torchscript_classes;

/* An object whose class has __setstate__: it was made with its fields unset, and the loader's user
 * runs __setstate__(object, state). Innermost objects come first. */
typedef struct fe_pending_state {
    rt_value object, state; /* borrowed from the archive */
} fe_pending_state;

typedef struct fe_torchscript_objects {
    rt_value root;      /* borrowed from the archive: an rt_object */
    rt_value constants; /* borrowed: a tuple, CONSTANTS.cN is item N; NONE where there are none */
    const ts_str *constant_types; /* of restore_type_tag, "List[str]"; empty where not given */
    const fe_pending_state *pending;
    size_t pending_count;
} fe_torchscript_objects;

/* Everything but mapped bytes and values lives in the arena. Warnings (debug records that were
 * dropped) go to diagnostics. program: which one of a package of exported programs; may be empty. */
ts_status fe_torchscript_open(ts_arena *arena, ts_str path, ts_str program, bool ignore_crc,
                          fe_diagnostics *diagnostics, fe_archive **out) TS_WARN_UNUSED;
/* "3" or ".data/version" of 1 to 10: the highest version of any operator in the code. */
int fe_torchscript_version(const fe_archive *archive);
const fe_code_file *fe_torchscript_code(const fe_archive *archive, size_t *out_count);
/* Attribute types are checked against the classes. Tensors are read-only views of the mapped file;
 * what was shared stays shared. */
ts_status fe_torchscript_load(fe_archive *archive, const fe_torchscript_classes *classes,
                          fe_torchscript_objects *out) TS_WARN_UNUSED;
/* Whether a value may be held by something of that type. budget counts visited values. Tuples take the
 * class of the named tuple that they turn out to be. */
bool fe_archive_value_fits(const ir_type *type, rt_value v, size_t *budget);
enum { FE_ARCHIVE_MAX_VISITS = 1 << 26 }; /* a budget */
/* Releases the values; the mapping goes with the last tensor. NULL is allowed. */
void fe_torchscript_release(fe_archive *archive);
/* The bytes of the file may leave memory until they are read again. */
void fe_torchscript_forget(const fe_archive *archive);

/* ---- weights: safetensors, and .pth with a state dict of tensors ---- */
typedef struct fe_weight {
    ts_str name; /* in the arena */
    rt_tensor *tensor;
} fe_weight;

typedef struct fe_weights {
    fe_weight *items; /* in the order of the file */
    size_t count, capacity;
    uint32_t *index; /* hash table of names: 0, or item + 1 */
    size_t index_capacity;
} fe_weights;

/* Told apart by content. Tensors are read-only views of the mapped file. */
ts_status fe_weights_load(ts_arena *arena, ts_str path, bool ignore_crc, fe_weights *out)
    TS_WARN_UNUSED;
const fe_weight *fe_weights_find(const fe_weights *weights, ts_str name);
void fe_weights_deinit(fe_weights *weights);

/* Writes a safetensors file, whole or not at all; tensors in the given order. */
ts_status fe_safetensors_write(ts_arena *arena, ts_str path, const fe_weight *items, size_t count)
    TS_WARN_UNUSED;

#endif

/* frontend/archive/pickle.h - a machine for the opcodes that TorchScript archives and state dicts
 * use. It builds a tree of what stands in the pickle and executes nothing: a call is a node that
 * says which global of a fixed list it would call. */
#ifndef FRONTEND_ARCHIVE_PICKLE_H
#define FRONTEND_ARCHIVE_PICKLE_H

#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include "runtime/values/value.h"

enum {
    FE_PICKLE_MAX_DEPTH = 1000,
    FE_PICKLE_MAX_NODES = 4 << 20,
    FE_PICKLE_SCRIPT = 1, /* which globals are allowed */
    FE_PICKLE_STATE = 2
};

typedef enum fe_pickle_kind {
    FE_PICKLE_NONE,
    FE_PICKLE_BOOL,       /* integer */
    FE_PICKLE_INT,        /* integer */
    FE_PICKLE_BIG,        /* text: little-endian two's complement, beyond 64 bits */
    FE_PICKLE_FLOAT,      /* number */
    FE_PICKLE_STR,        /* text, UTF-8 */
    FE_PICKLE_BYTES,      /* text */
    FE_PICKLE_TUPLE,      /* items */
    FE_PICKLE_LIST,       /* items */
    FE_PICKLE_DICT,       /* items: key, value, key, value */
    FE_PICKLE_GLOBAL,     /* global; text "module.name" */
    FE_PICKLE_NEW,        /* callee: a GLOBAL; items[0]: arguments; state */
    FE_PICKLE_CALL,       /* callee; items[0]: arguments tuple; state; entries of an OrderedDict */
    FE_PICKLE_PERSISTENT  /* items[0]: the id */
} fe_pickle_kind;

typedef enum fe_global {
    FE_GLOBAL_CLASS,   /* "__torch__...": a class of the archive */
    FE_GLOBAL_STORAGE, /* its dtype beside */
    FE_GLOBAL_OPAQUE,  /* of what stands beside the weights of a checkpoint: nobody looks at it */
#define GLOBAL(name, text, where) FE_GLOBAL_##name,
#include "frontend/archive/pickle_globals.def"
} fe_global;

typedef struct fe_pickle_node fe_pickle_node;
struct fe_pickle_node {
    uint8_t kind;   /* fe_pickle_kind */
    uint8_t global; /* fe_global */
    uint8_t mark;   /* scratch of whoever walks the tree */
    int8_t dtype;   /* of a GLOBAL that is a storage class */
    bool has_value;
    bool has_nibbles; /* of a storage class: two elements a byte */
    uint32_t depth; /* 1 + the deepest below: at most FE_PICKLE_MAX_DEPTH */
    size_t offset;  /* of the opcode that made it */
    union {
        int64_t integer;
        double number;
        ts_str text;
        struct {
            fe_pickle_node **items;
            size_t count, capacity;
        } list;
    } as;
    fe_pickle_node *callee;  /* NEW, CALL */
    fe_pickle_node *state;   /* BUILD's */
    fe_pickle_node *entries; /* of a CALL of OrderedDict, or of what is opaque: a DICT node */
    rt_value value;          /* the reader's result for this node, once has_value */
};

/* Reads one pickle. `used` NULL: all bytes must belong to it. Errors name the offset; the caller
 * adds the member. Cycles and depths beyond the limit are refused, shared parts stay shared. */
ts_status fe_pickle_read(ts_arena *arena, ts_str bytes, unsigned allowed, size_t *used,
                         fe_pickle_node **out) TS_WARN_UNUSED;
/* "a list", "a call of torch.device": for messages. */
const char *fe_pickle_kind_text(const fe_pickle_node *node);

#endif

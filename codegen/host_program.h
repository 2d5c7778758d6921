/* codegen/host_program.h - the tables of a program that all CPU levels share: constants, types,
 * classes, operators, places, entries. Emission interns what it uses; write_artifact.c stores it.
 * Row 0 of places is "unknown". */
#ifndef CODEGEN_HOST_PROGRAM_H
#define CODEGEN_HOST_PROGRAM_H

#include "codegen/codegen_internal.h"
#include "codegen/spill.h"
#include "runtime/format/tsm.h"

#ifndef TSC_VERSION
#define TSC_VERSION "0.1.0"
#endif

typedef struct cg_index_map cg_index_map; /* 64-bit key -> index; see host_program.c */

typedef struct cg_weight_part { /* bytes of the weights section */
    const void *data;
    size_t bytes;
    uint64_t offset;
} cg_weight_part;

typedef struct cg_storage_row {
    rt_storage *storage;
    uint64_t offset, bytes;
    bool is_mutable;
} cg_storage_row;

typedef struct cg_kernel_row {
    ts_str name;
    uint32_t place;
    double flops, bytes;
} cg_kernel_row;

typedef struct cg_entry_row {
    ir_function *function;
    size_t self_count; /* 1 where parameter 0 is the root object */
    uint32_t kernel_count, compiled_count, dynamic_count;
    ts_str dynamic_text;
} cg_entry_row;

typedef struct cg_method_row {
    uint32_t class_, name;
    ir_function *function;
} cg_method_row;

typedef struct cg_program {
    ts_arena *arena;
    ir_module *ir;
    ts_status error; /* the first thing that cannot be stored; checked at the end */

    ts_str *strings;
    size_t string_count, string_capacity;
    ts_place *places;
    size_t place_count, place_capacity;
    const ir_class **classes;
    size_t class_count, class_capacity;
    const ir_type **types;
    size_t type_count, type_capacity;
    rt_value *nodes; /* counted values, each once */
    size_t node_count, node_capacity;
    cg_storage_row *storages;
    size_t storage_count, storage_capacity;
    rt_value *constants;
    size_t constant_count, constant_capacity;
    rt_op *operators;
    size_t operator_count, operator_capacity;
    cg_kernel_row *kernels;
    size_t kernel_count, kernel_capacity;
    cg_weight_part *parts;
    size_t part_count, part_capacity;
    uint64_t weight_bytes;
    cg_spill *spill; /* where large packed weights lie, or NULL */
    struct kn_weight_store *packed; /* constants of kernels, shared by levels */
    ir_function **functions; /* reachable, in the order of emission */
    size_t function_count, function_capacity;
    cg_entry_row *entries;
    size_t entry_count, entry_capacity;
    cg_method_row *methods;
    size_t method_count, method_capacity;
    size_t header_count;   /* preallocated tensor headers */
    int64_t arena_bytes;   /* of planned buffers */
    int32_t operator_index[OP_COUNT + 1]; /* row + 1 */

    cg_index_map *string_map, *node_map, *type_map, *class_map, *storage_map, *place_map,
        *constant_map, *part_map, *function_map;
} cg_program;

cg_program *cg_program_make(ts_arena *arena, ir_module *ir);
uint32_t cg_program_string(cg_program *p, ts_str s);
uint32_t cg_program_place(cg_program *p, ts_place place);
uint32_t cg_program_class(cg_program *p, const ir_class *class_);
uint32_t cg_program_type(cg_program *p, const ir_type *type);
uint32_t cg_program_operator(cg_program *p, rt_op op);
/* A boxed constant: index into the table of constants. Interns what it reaches. */
uint32_t cg_program_constant(cg_program *p, rt_value v);
/* Bytes of the weights section, the same bytes once: their offset. Memory is borrowed. */
uint64_t cg_program_weight(cg_program *p, const void *data, size_t bytes);
uint32_t cg_program_kernel(cg_program *p, cg_kernel_row row);
/* Index of a function, adding it where it is new. */
uint32_t cg_program_function(cg_program *p, ir_function *f);
/* Entries, and every function that they reach. */
ts_status cg_program_collect(cg_program *p) TS_WARN_UNUSED;
/* Interns what the tables of entries refer to: the root object, defaults, types. */
void cg_program_intern_entries(cg_program *p);
/* Marks the storages of constants that the program may write to (escape analysis; see
 * host_mutation.c). Call when all constants are interned. */
void cg_program_mark_mutable(cg_program *p);
/* Row of an interned value or storage; UINT32_MAX where there is none. */
uint32_t cg_program_node_index(const cg_program *p, rt_value v);
uint32_t cg_program_storage_index(const cg_program *p, const rt_storage *storage);
/* The PROGRAM section. */
ts_status cg_program_write(cg_program *p, const cg_options *options, ts_buffer *out)
    TS_WARN_UNUSED;

#endif

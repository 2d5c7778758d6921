/* frontend/archive/exported.h - programs of torch.export: a graph in JSON, weights beside it.
 *
 * The graph is written out as the text that a TorchScript archive would hold, operators by their full
 * names, so that everything behind the reader sees one kind of archive. */
#ifndef FRONTEND_ARCHIVE_EXPORTED_H
#define FRONTEND_ARCHIVE_EXPORTED_H

#include <jansson.h>

#include "frontend/archive/archive_internal.h"
#include "frontend/frontend_internal.h"

/* Whether the container holds such a program; sets the archive's top folder. */
bool fe_exported_is_one(fe_archive *archive);
ts_status fe_exported_open(fe_archive *archive) TS_WARN_UNUSED;
ts_status fe_exported_load(fe_archive *archive, const fe_torchscript_classes *classes,
                           fe_records *records, fe_torchscript_objects *out) TS_WARN_UNUSED;
void fe_exported_release(fe_archive *archive);

/* ---- shared by its parts ---- */
enum {
    FE_EXPORTED_MAX_JSON = 128 << 20,
    FE_EXPORTED_MAX_VALUES = 4 << 20, /* of one JSON text: a bound of the memory for its tree */
    FE_EXPORTED_MAX_DEPTH = 256,
    FE_EXPORTED_MAX_GRAPHS = 10000
};

typedef struct fe_exported_field { /* an attribute of the program's object */
    ts_str name;                   /* of the graph's input */
    ts_str weight;                 /* its name among the weights */
    bool is_constant;              /* look among the constants first */
} fe_exported_field;

typedef struct fe_exported {
    json_t *root;
    ts_str name; /* of the program in its package */
    ts_buffer text, functions; /* what is written: the class; graphs within its graph */
    size_t body_at;            /* in text: after the arrow of forward */
    fe_exported_field *fields;
    size_t field_count, field_capacity;
    fe_map weights; /* their names -> ts_str*, the field's */
    fe_map *names; /* of the graph at hand -> ts_str*, what stands for it in the text */
    fe_input_type *inputs; /* what the graph says of its inputs */
    size_t input_count, input_capacity;
    fe_map paths; /* of the inputs, ['x'][0]['k'] -> ts_str*, the name of that part in the text */
    fe_map sizes; /* symbol -> ts_str*, the expression of the first size that it is */
    size_t graph_count, temporary_count;
} fe_exported;

ts_status fe_exported_bad(const char *format, ...) TS_PRINTF(1, 2) TS_WARN_UNUSED;
/* The one member of a union that is set: {"as_tensor": {...}}; NULL where there is none. */
const char *fe_exported_choice(const json_t *json, const json_t **out_value);
/* A list, or an error that names the key. */
ts_status fe_exported_list(const json_t *json, const char *key, const json_t **out,
                           size_t *out_count) TS_WARN_UNUSED;
/* c10's number of a serialized dtype; RT_DTYPE_UNKNOWN for others. */
rt_dtype fe_exported_dtype(const json_t *json);
/* JSON text with the bare words NaN and Infinity of Python's writer put in quotes, checked and
 * parsed; limits on size, depth and the number of values. */
ts_status fe_exported_parse(ts_arena *arena, ts_str text, json_t **out) TS_WARN_UNUSED;

/* exported_text.c: the class with its forward. */
ts_status fe_exported_write(fe_archive *archive) TS_WARN_UNUSED;
/* exported_guards.c: what a tensor's sizes must be. First every input's sizes are bound, then each
 * input's guards are written into forward. */
ts_str fe_exported_symbol(const char *expression); /* its name where it is a symbol alone, or empty */
void fe_exported_bind_sizes(fe_archive *archive, const json_t *argument);
void fe_exported_write_guards(fe_archive *archive, const json_t *argument);
/* exported_conditions.c: what the exporter assumed of its inputs. First the paths of all are told. */
void fe_exported_path(fe_archive *archive, ts_str path, ts_str expression);
ts_status fe_exported_write_conditions(fe_archive *archive) TS_WARN_UNUSED;
/* exported_graph.c: nodes as statements; depth counts nested graphs. */
ts_status fe_exported_write_nodes(fe_archive *archive, const json_t *graph, int indent, int depth)
    TS_WARN_UNUSED;
/* Some of them. */
ts_status fe_exported_write_range(fe_archive *archive, const json_t *graph, size_t from, size_t to, int indent, int depth)
    TS_WARN_UNUSED;
/* exported_vmap.c: the region that begins at node `from`; *out_behind is the first node behind it. */
bool fe_exported_is_vmap(const json_t *nodes, size_t i);
bool fe_exported_is_vmap_hint(const json_t *nodes, size_t i); /* a mark that says nothing */
ts_status fe_exported_write_vmap(fe_archive *archive, const json_t *graph, size_t from, size_t to, int indent, int depth,
                                 size_t *out_behind) TS_WARN_UNUSED;
/* Begins a statement. */
ts_buffer *fe_exported_line(fe_archive *archive, int indent);
/* The name that an output gets, as the target of an assignment. */
ts_status fe_exported_write_target(fe_archive *archive, const json_t *output, bool *out_is_list, ts_buffer *out)
    TS_WARN_UNUSED;
/* exported_region.c: torch.ops.higher_order.NAME. */
ts_status fe_exported_write_higher_order(fe_archive *archive, const json_t *node, const char *name, int indent,
                                         int depth) TS_WARN_UNUSED;
/* exported_argument.c */
typedef enum fe_exported_kind {
    FE_EXPORTED_INT,
    FE_EXPORTED_FLOAT,
    FE_EXPORTED_BOOL,
    FE_EXPORTED_STRING,
    FE_EXPORTED_TENSOR,
    FE_EXPORTED_OPTIONAL_TENSOR,
    FE_EXPORTED_SYMBOL
} fe_exported_kind;
/* Number i of a node's inputs. */
const json_t *fe_exported_argument(const json_t *inputs, size_t i);
/* One plain value, or a symbolic one: {"as_name": ...} or {"as_int": ...}. */
ts_status fe_exported_write_element(fe_archive *archive, fe_exported_kind kind, const json_t *json, ts_buffer *out)
    TS_WARN_UNUSED;
/* An argument as an expression, appended. type: what it is in an annotation; may be NULL. */
ts_status fe_exported_write_argument(fe_archive *archive, const json_t *argument, ts_buffer *out,
                                     ts_str *out_type) TS_WARN_UNUSED;
bool fe_exported_is_identifier(const char *s);
/* A name of the graph as it stands in the text: an identifier, or self's attribute. */
ts_str fe_exported_name(fe_archive *archive, const char *name);
void fe_exported_bind(fe_archive *archive, ts_str name, ts_str expression);
/* A token of the order of effects: None. */
void fe_exported_bind_token(fe_archive *archive, const char *name);
ts_str fe_exported_fresh(fe_archive *archive, const char *stem);

#endif

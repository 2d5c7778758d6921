/* ir/parse_internal.h - between parse.c (functions), parse_value.c and parse_class.c. */
#ifndef IR_PARSE_INTERNAL_H
#define IR_PARSE_INTERNAL_H

#include "ir/ir_internal.h"

typedef struct ir_named_tensor {
    ts_str name;
    rt_value tensor;
} ir_named_tensor;

typedef struct ir_parser {
    ir_text t;
    ir_module *m;
    ir_find_weight find_weight;
    void *user;
    rt_value *objects; /* by number of #n; borrowed from the module's retained values */
    size_t object_count, object_capacity;
    ir_named_tensor *tensors; /* the same name is the same tensor */
    size_t tensor_count, tensor_capacity;
    const char *line_at; /* how far lines are counted */
    int line;
} ir_parser;

/* Reads a value (owned by the module: retained there, borrowed by the caller). */
ts_status ir_read_value(ir_parser *p, rt_value *out) TS_WARN_UNUSED;
ts_status ir_read_class(ir_parser *p) TS_WARN_UNUSED;
ts_status ir_scan_objects(ir_parser *p) TS_WARN_UNUSED;
ts_status ir_read_object(ir_parser *p) TS_WARN_UNUSED;
/* "@name" or @"name". */
ts_status ir_read_at_name(ir_parser *p, ts_str *out) TS_WARN_UNUSED;
void ir_name_tensor(ir_parser *p, ts_str name, rt_value tensor);
ts_status ir_read_weight(ir_parser *p, ts_str name, rt_value *out) TS_WARN_UNUSED;
bool ir_class_kind_find(ts_str name, rt_class_kind *out);

#endif

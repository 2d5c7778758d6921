/* ir/print_internal.h - between print.c (functions) and print_value.c (constants and objects). */
#ifndef IR_PRINT_INTERNAL_H
#define IR_PRINT_INTERNAL_H

#include "ir/ir_internal.h"

typedef struct ir_heap_entry {
    const void *pointer; /* an object, list, dict or tensor of the object tree or of a constant */
    rt_value value;
    int visits;
    bool in_object; /* lies in an object: its identity is seen by others */
    int64_t number; /* of #n; -1 for those printed in place */
    ts_str name;    /* tensors: @name */
    bool is_written; /* a small tensor with a name: its elements were printed */
} ir_heap_entry;

typedef struct ir_printer {
    ir_module *m;
    ts_buffer *out;
    ts_arena *arena; /* scratch */
    ir_weight_list *weights;
    ir_heap_entry **entries; /* in order of first sight */
    size_t entry_count, entry_capacity;
    ir_heap_entry **slots;
    size_t slot_capacity;
    ts_str *names; /* by value number, of the function being printed */
    ir_value **values;
    size_t name_count;
} ir_printer;

void ir_printer_collect(ir_printer *p); /* everything that constants of the module reach */
void ir_print_objects(ir_printer *p);   /* "object #0 = ..." and "root = ..." */
void ir_print_value(ir_printer *p, rt_value v, int depth);
bool ir_is_inline_value(rt_value v); /* may stand as an operand */

#endif

/* passes/functionalise.h - between functionalise.c (which sets of values qualify, the walk) and
 * functionalise_rules.c (what a write becomes). */
#ifndef PASSES_FUNCTIONALISE_H
#define PASSES_FUNCTIONALISE_H

#include "passes/alias.h"

typedef enum member_kind { MEMBER_NONE, MEMBER_BASE, MEMBER_SAME, MEMBER_VIEW, MEMBER_TUPLE } member_kind;

typedef struct member {
    member_kind kind;
    ir_value *value;
    struct member *source; /* SAME, VIEW */
    size_t operand;        /* VIEW: which operand of the view is the source */
    uint32_t set;          /* index into sets */
    ir_value *current;     /* VIEW: the value that shows the base as it is now, if version fits */
    uint64_t version;
} member;

typedef struct value_set {
    uint32_t root; /* of the alias analysis */
    bool is_eligible;
    member *base;
    ir_value *current; /* the base's value at this point of the walk */
    uint64_t version;
    ir_op **writes;
    size_t write_count, write_capacity;
} value_set;

/* May an operator write `target` and be replaced; asks types and rows, changes nothing. */
/* dynamic: also where sizes are not known, by operators that look at run time. */
bool fn_write_is_supported(ir_module *m, const ir_op *write, const ir_function *f, bool dynamic);
/* A view whose effect on its base can be inverted: select, slice, transpose ... */
bool fn_view_is_invertible(ir_module *m, const ir_op *view, bool dynamic);
/* The contents of target after the write, before `write`: built with b. old is target's value now;
 * src_is_shared says that the source may be seen by others or change later. */
ir_value *fn_written_value(pass_context *ctx, ir_builder *b, const ir_op *write, ir_value *old,
                           bool src_is_shared);
/* The base of a view, given the base's value and the view's new contents. */
ir_value *fn_put_back(pass_context *ctx, ir_builder *b, const ir_op *view, ir_value *base,
                      ir_value *contents);

#endif

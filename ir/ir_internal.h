/* ir/ir_internal.h - what the files of ir/ share and nobody else sees. */
#ifndef IR_IR_INTERNAL_H
#define IR_IR_INTERNAL_H

#include "ir/ir.h"

/* ---- tables of a module ---- */

typedef struct ir_type_table {
    const ir_type **slots; /* open addressing; capacity a power of two */
    size_t capacity, count;
    const ir_type *simple[IR_VAR + 1];
    const ir_type *meant[RT_MEANING_COUNT]; /* ints that stand for something */
} ir_type_table;

typedef struct ir_size_table ir_size_table;     /* size_expr.c */
typedef struct ir_schema_table ir_schema_table; /* schema.c */

void ir_type_table_init(ir_module *m);
void ir_size_table_init(ir_module *m);
void ir_schema_table_init(ir_module *m);

/* ---- a cursor over text, shared by the parsers of types, schemas and modules ---- */

typedef struct ir_text {
    ir_module *m;
    ts_str file;
    const char *start, *at, *end;
    int depth; /* of nesting in what is read */
} ir_text;

enum { IR_TEXT_DEPTH = 200 };

ir_text ir_text_make(ir_module *m, ts_str file, ts_str text);
ts_place ir_text_place(const ir_text *t);
ts_status ir_text_error(const ir_text *t, const char *expected) TS_WARN_UNUSED;
void ir_text_blank(ir_text *t); /* skips blanks within the line */
void ir_text_space(ir_text *t); /* skips blanks, newlines and comments */
bool ir_text_take(ir_text *t, const char *token); /* blanks first; words only as whole words */
bool ir_text_peek(ir_text *t, const char *token);
ts_status ir_text_expect(ir_text *t, const char *token) TS_WARN_UNUSED;
/* An identifier with dots inside; empty when there is none. */
ts_str ir_text_word(ir_text *t);
ts_str ir_text_name(ir_text *t); /* without dots */
bool ir_text_int(ir_text *t, int64_t *out);
ts_status ir_text_string(ir_text *t, ts_str *out) TS_WARN_UNUSED; /* "..." with escapes */
/* An identifier with dots, or a quoted string. */
ts_status ir_text_quotable(ir_text *t, ts_str *out) TS_WARN_UNUSED;
/* " needs(x[-1] = 784)" of an entry, as docs/ir.md has it; nothing where there are none. Reading
 * begins behind the word. */
void ir_print_needs(const ir_function *f, ts_buffer *out);
ts_status ir_read_needs(ir_text *t, ir_function *f) TS_WARN_UNUSED;
void ir_print_string(ts_str s, ts_buffer *out);
void ir_print_quotable(ts_str s, ts_buffer *out);

ir_opcode ir_opcode_find(ts_str name); /* IR_OPCODE_COUNT: none of that name */

ts_status ir_type_read(ir_text *t, const ir_type **out) TS_WARN_UNUSED;
ts_status ir_dim_read(ir_text *t, rt_dim *out) TS_WARN_UNUSED;

/* ---- objects of constants, by number: see print.c ---- */

/* The type that an inline constant gets where an argument of type `wanted` (or NULL) is asked. */
const ir_type *ir_inline_type(ir_module *m, rt_value v, const ir_type *wanted);

#endif

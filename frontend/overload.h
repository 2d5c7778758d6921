/* frontend/overload.h - candidates for a call of an operator, shared by overload.c, emit_out.c and
 * emit_operator_call.c. */
#ifndef FRONTEND_OVERLOAD_H
#define FRONTEND_OVERLOAD_H

#include "frontend/emit_internal.h"

enum { EM_MAX_CANDIDATES = 64, EM_MAX_PARAMETERS = 64, COST_IMPOSSIBLE = -1, COST_NUMBER_AS_TENSOR = 20 };

typedef struct em_candidate {
    rt_op op;              /* or */
    fe_function *function; /* of the library */
    const ir_schema *schema;
    em_signature *signature;
    size_t count; /* of parameters */
    int cost;
    int source[EM_MAX_PARAMETERS]; /* argument for each parameter; -1 default; -2 packed */
    size_t pack_from, pack_count;
    ts_str why;
} em_candidate;

em_parameter em_parameter_of(const em_candidate *c, size_t i);
ts_str em_candidate_name(const em_candidate *c);
/* Whether a keyword names the parameter: axis is dim. */
bool em_same_parameter(ts_str parameter, ts_str given);
/* All of that name, at most EM_MAX_CANDIDATES. */
size_t em_find_candidates(emitter *E, ts_str name, em_candidate *out);
/* Which argument goes to which parameter, and what it costs; or why it cannot be. */
void em_match(emitter *E, em_candidate *c, const em_arguments *args, ir_value *const *values);
bool em_operator_is_there(fe_context *fe, ts_str name); /* without other names for it */
bool em_is_in_place(ts_str name, ts_str *out_pure);     /* "add_" as "add" */

/* ---- emit_out.c ---- */
em_arguments em_arguments_without(emitter *E, const em_arguments *args, size_t at);
em_argument *em_out_of_functional(const fe_function *f, const em_arguments *args);
em em_store_out(emitter *E, em_argument out, em result, const ast_node *node); /* result, in out */
/* out= as argument out_at. */
em em_derive_out(emitter *E, ts_str name, em_arguments *args, size_t out_at, const ast_node *node);
/* out=(a, b), or in an archive values=a, indices=b: outs[] for the results in their order. */
em em_derive_outs(emitter *E, ts_str name, em_arguments *rest, ir_value **outs, size_t count, const ast_node *node);
/* Tensors under names that no overload has. */
size_t em_find_named_outs(const em_candidate *list, size_t count, const em_arguments *args, ir_value *const *values,
                          size_t *out_at, size_t max);

#endif

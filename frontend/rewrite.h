/* frontend/rewrite.h - syntax trees made from syntax trees: names of a function as attributes of an object, so
 * that they outlive the call (closures), and generator functions as classes of states. */
#ifndef FRONTEND_REWRITE_H
#define FRONTEND_REWRITE_H

#include "frontend/frontend_internal.h"

typedef struct rewriter {
    ts_arena *arena;
    const fe_map *names; /* become ATTRIBUTE(object, name) */
    ts_str object;       /* a hidden name */
    ts_str itself;       /* this name is the object; empty: none */
} rewriter;

ast_node *rw_copy(const rewriter *r, const ast_node *node);
ast_list rw_copy_list(const rewriter *r, const ast_list *list);

ast_node *rw_node(ts_arena *arena, ast_kind kind, const ast_node *place);
ast_node *rw_name(ts_arena *arena, ts_str name, const ast_node *place);
ast_node *rw_attribute(ts_arena *arena, ts_str object, ts_str name, const ast_node *place);
ast_node *rw_assign(ts_arena *arena, ast_node *target, ast_node *value, const ast_node *place);
ast_node *rw_call(ts_arena *arena, ast_node *callee, ast_node *argument, const ast_node *place);
void rw_append(ts_arena *arena, ast_list *list, ast_node *node);

/* Whether a yield stands in the statements themselves. */
bool rw_has_yield(const ast_node *node);
/* Names that the function's statements and parameters bind: keys of out. */
void rw_bound_names(ts_arena *arena, const ast_node *function, fe_map *out);
/* Names that the node reads and does not bind itself: keys of out. */
void rw_free_names(ts_arena *arena, const ast_node *node, fe_map *out);
/* def NAME(object, parameters...): what one is given, as fields of object. captured: more parameters. */
ast_node *rw_init(ts_arena *arena, ts_str object, const ast_parameters *parameters, const fe_map *captured,
                  const ast_node *place);
ast_node *rw_class(ts_arena *arena, ts_str name, const ast_node *place);

/* A generator function as a class: __init__ with its parameters (and the captured names), and advance(),
 * which leaves the next item in `value`. NULL: *out_why says at which node something is not supported. */
ast_node *rw_generator(ts_arena *arena, const ast_node *function, const fe_map *captured,
                       const ast_node **out_where, const char **out_why);

/* A function of @contextmanager as a class with __enter__ and __exit__. NULL: as above. */
ast_node *rw_context(ts_arena *arena, const ast_node *function, const fe_map *captured,
                     const ast_node **out_where, const char **out_why);

#endif

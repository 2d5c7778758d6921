/* frontend/rewrite_context.c - a function of @contextmanager as a class.
 *
 *   def scope(n):              class scope:
 *       a = open(n)                def __init__(self, n): self.n = n
 *       try:                       def __enter__(self): self.a = open(self.n); return self.a
 *           yield a                def __exit__(self, $type, $value, $trace):
 *       finally:                       try:
 *           close(a)                       if $type is None: (what follows the yield)
 *       after()                        finally: close(self.a)
 *                                      if $type is None: after()
 *
 * All names of the function are attributes. The yield stands in the function's statements themselves or in one
 * try with finally. */
#include "frontend/rewrite.h"

static const ts_str self = {"$c", 2};

static bool is_yield(const ast_node *s) {
    return s->kind == AST_EXPR_STMT && s->left->kind == AST_YIELD_EXPR && !ts_str_is(s->left->text, "from") &&
           !rw_has_yield(s->left->left);
}

static size_t find_yield(const ast_list *list) {
    size_t at = 0;
    while (at < list->count && !rw_has_yield(list->items[at]))
        at++;
    return at;
}

static void copy_range(const rewriter *r, const ast_list *list, size_t from, size_t to, ast_list *out) {
    for (size_t i = from; i < to; i++)
        rw_append(r->arena, out, rw_copy(r, list->items[i]));
}

/* if $type is None: statements */
static void where_no_exception(const rewriter *r, ast_list statements, ast_list *out, const ast_node *place) {
    if (!statements.count)
        return;
    ast_node *n = rw_node(r->arena, AST_IF, place);
    n->test = rw_node(r->arena, AST_COMPARE, place);
    n->test->ops = TS_NEW_ARRAY(r->arena, ast_operator, 1);
    n->test->ops[0] = AST_IS;
    rw_append(r->arena, &n->test->list, rw_name(r->arena, TS_STR("$type"), place));
    rw_append(r->arena, &n->test->list, rw_node(r->arena, AST_NONE, place));
    n->body = statements;
    rw_append(r->arena, out, n);
}

static ast_node *method(ts_arena *arena, const char *name, const ast_node *place) {
    ast_node *f = rw_node(arena, AST_FUNCTION, place);
    f->text = ts_str_of(name);
    ast_parameter p = {.name = self, .place = rw_name(arena, self, place)};
    TS_APPEND(arena, f->parameters.items, f->parameters.count, f->parameters.capacity, p);
    return f;
}

static ast_node *exit_method(ts_arena *arena, const ast_node *place) {
    static const char *const names[] = {"$type", "$value", "$trace"};
    ast_node *f = method(arena, "__exit__", place);
    for (size_t i = 0; i < 3; i++) {
        ast_parameter p = {.name = ts_str_of(names[i]), .place = rw_name(arena, ts_str_of(names[i]), place)};
        TS_APPEND(arena, f->parameters.items, f->parameters.count, f->parameters.capacity, p);
    }
    return f;
}

ast_node *rw_context(ts_arena *arena, const ast_node *function, const fe_map *captured,
                     const ast_node **out_where, const char **out_why) {
    fe_map *names = TS_NEW(arena, fe_map);
    rw_bound_names(arena, function, names);
    for (size_t i = 0; captured && i < captured->count; i++)
        fe_map_set(arena, names, captured->keys[i], names);
    rewriter r = {.arena = arena, .names = names, .object = self};
    const ast_list *body = &function->body, *inner = body;
    size_t outer_at = find_yield(body), at = outer_at;
    const ast_node *around = at < body->count && body->items[at]->kind == AST_TRY ? body->items[at] : NULL;
    if (around) {
        inner = &around->body;
        at = find_yield(inner);
    }
    *out_where = at < inner->count ? inner->items[at] : function;
    *out_why = "a context manager yields once, in a statement of its own or in try with finally: other forms are not "
               "supported yet";
    bool is_once = at < inner->count && is_yield(inner->items[at]) && !(around && (around->list.count || around->orelse.count));
    for (size_t i = at + 1; i < inner->count; i++)
        is_once = is_once && !rw_has_yield(inner->items[i]);
    for (size_t i = outer_at + 1; i < body->count; i++)
        is_once = is_once && !rw_has_yield(body->items[i]);
    if (!is_once)
        return NULL;
    ast_node *enter = method(arena, "__enter__", function), *leave = exit_method(arena, function);
    copy_range(&r, body, 0, outer_at, &enter->body);
    copy_range(&r, inner, 0, around ? at : 0, &enter->body);
    ast_node *give = rw_node(arena, AST_RETURN, function);
    const ast_node *value = inner->items[at]->left->left;
    give->left = value ? rw_copy(&r, value) : rw_node(arena, AST_NONE, function);
    rw_append(arena, &enter->body, give);
    ast_list rest = {0}, after = {0};
    copy_range(&r, inner, at + 1, inner->count, &rest);
    if (around) {
        if (rest.count) {
            ast_node *guarded = rw_node(arena, AST_TRY, around);
            where_no_exception(&r, rest, &guarded->body, around);
            copy_range(&r, &around->finally_body, 0, around->finally_body.count, &guarded->finally_body);
            rw_append(arena, &leave->body, guarded);
        } else {
            copy_range(&r, &around->finally_body, 0, around->finally_body.count, &leave->body);
        }
        copy_range(&r, body, outer_at + 1, body->count, &after);
    } else {
        after = rest;
    }
    where_no_exception(&r, after, &leave->body, function);
    if (!leave->body.count)
        rw_append(arena, &leave->body, rw_node(arena, AST_PASS, function));
    ast_node *c = rw_class(arena, function->text, function);
    rw_append(arena, &c->body, rw_init(arena, self, &function->parameters, captured, function));
    rw_append(arena, &c->body, enter);
    rw_append(arena, &c->body, leave);
    return c;
}

/* frontend/rewrite.c - copies of syntax trees in which names of a function are attributes of an object. */
#include "frontend/rewrite.h"

ast_node *rw_node(ts_arena *arena, ast_kind kind, const ast_node *place) {
    ast_node *n = TS_NEW(arena, ast_node);
    n->kind = kind;
    n->depth = 1;
    n->source = place->source;
    n->offset = place->offset;
    n->length = place->length;
    return n;
}

ast_node *rw_name(ts_arena *arena, ts_str name, const ast_node *place) {
    ast_node *n = rw_node(arena, AST_NAME, place);
    n->text = name;
    return n;
}

ast_node *rw_attribute(ts_arena *arena, ts_str object, ts_str name, const ast_node *place) {
    ast_node *n = rw_node(arena, AST_ATTRIBUTE, place);
    n->left = rw_name(arena, object, place);
    n->text = name;
    return n;
}

void rw_append(ts_arena *arena, ast_list *list, ast_node *node) {
    TS_APPEND(arena, list->items, list->count, list->capacity, node);
}

ast_node *rw_assign(ts_arena *arena, ast_node *target, ast_node *value, const ast_node *place) {
    ast_node *n = rw_node(arena, AST_ASSIGN, place);
    rw_append(arena, &n->list, target);
    n->right = value;
    return n;
}

ast_node *rw_call(ts_arena *arena, ast_node *callee, ast_node *argument, const ast_node *place) {
    ast_node *n = rw_node(arena, AST_CALL, place);
    n->left = callee;
    if (argument)
        rw_append(arena, &n->list, argument);
    return n;
}

/* ---- names ---- */

static void bind(ts_arena *arena, fe_map *out, ts_str name) { fe_map_set(arena, out, name, out); }

static void bound_by(ts_arena *arena, const ast_node *n, fe_map *out, bool is_top);

static void bound_by_list(ts_arena *arena, const ast_list *list, fe_map *out) {
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i])
            bound_by(arena, list->items[i], out, false);
}

static void bind_target(ts_arena *arena, const ast_node *t, fe_map *out) {
    if (t->kind == AST_NAME)
        bind(arena, out, t->text);
    else if (t->kind == AST_STARRED)
        bind_target(arena, t->left, out);
    else if (t->kind == AST_TUPLE || t->kind == AST_LIST)
        for (size_t i = 0; i < t->list.count; i++)
            bind_target(arena, t->list.items[i], out);
}

static bool is_scope(ast_kind kind) {
    return kind == AST_LAMBDA || kind == AST_LIST_COMP || kind == AST_SET_COMP || kind == AST_DICT_COMP ||
           kind == AST_GENERATOR;
}

static void bound_by(ts_arena *arena, const ast_node *n, fe_map *out, bool is_top) {
    if (!n)
        return;
    if (n->kind == AST_WALRUS)
        bind(arena, out, n->text);
    if ((n->kind == AST_FUNCTION || n->kind == AST_CLASS) && !is_top) {
        bind(arena, out, n->text);
        return;
    }
    if (n->kind == AST_LAMBDA && !is_top)
        return;
    if (n->kind == AST_ASSIGN)
        for (size_t i = 0; i < n->list.count; i++)
            bind_target(arena, n->list.items[i], out);
    if (n->kind == AST_ANN_ASSIGN || n->kind == AST_AUG_ASSIGN || n->kind == AST_FOR)
        bind_target(arena, n->left, out);
    if (n->kind == AST_WITH_ITEM && n->right)
        bind_target(arena, n->right, out);
    if (n->kind == AST_EXCEPT && n->text.length)
        bind(arena, out, n->text);
    if (n->kind == AST_IMPORT || n->kind == AST_IMPORT_FROM)
        for (size_t i = 0; i < n->list.count; i++)
            bind(arena, out, n->list.items[i]->other.length ? n->list.items[i]->other : n->list.items[i]->text);
    bound_by(arena, n->left, out, false);
    bound_by(arena, n->right, out, false);
    bound_by(arena, n->test, out, false);
    if (n->kind != AST_GLOBAL && n->kind != AST_NONLOCAL)
        bound_by_list(arena, &n->list, out);
    bound_by_list(arena, &n->body, out);
    bound_by_list(arena, &n->orelse, out);
    bound_by_list(arena, &n->finally_body, out);
}

static bool is_declared_outer(const ast_node *n, ts_str name) {
    if (!n || n->kind == AST_FUNCTION || n->kind == AST_CLASS)
        return false;
    if (n->kind == AST_GLOBAL || n->kind == AST_NONLOCAL)
        for (size_t i = 0; i < n->list.count; i++)
            if (ts_str_equal(n->list.items[i]->text, name))
                return true;
    const ast_list *lists[] = {&n->list, &n->body, &n->orelse, &n->finally_body};
    for (size_t k = n->kind == AST_TRY ? 0 : 1; k < 4; k++)
        for (size_t i = 0; i < lists[k]->count; i++)
            if (is_declared_outer(lists[k]->items[i], name))
                return true;
    return false;
}

void rw_bound_names(ts_arena *arena, const ast_node *function, fe_map *out) {
    fe_map all = {0};
    for (size_t i = 0; i < function->parameters.count; i++)
        bind(arena, &all, function->parameters.items[i].name);
    if (function->kind == AST_FUNCTION)
        bound_by(arena, function, &all, true);
    for (size_t i = 0; i < all.count; i++) {
        bool outer = false;
        for (size_t k = 0; k < function->body.count && !outer; k++)
            outer = is_declared_outer(function->body.items[k], all.keys[i]);
        if (!outer)
            bind(arena, out, all.keys[i]);
    }
}

/* Names that the node reads, those of nested scopes with what they bind taken off. */
static void reads_of(ts_arena *arena, const ast_node *n, const fe_map *hidden, fe_map *out);

static void reads_of_list(ts_arena *arena, const ast_list *list, const fe_map *hidden, fe_map *out) {
    for (size_t i = 0; i < list->count; i++)
        reads_of(arena, list->items[i], hidden, out);
}

static fe_map with_names(ts_arena *arena, const fe_map *hidden) {
    fe_map inner = {0};
    for (size_t i = 0; hidden && i < hidden->count; i++)
        bind(arena, &inner, hidden->keys[i]);
    return inner;
}

static void scope_names(ts_arena *arena, const ast_node *n, fe_map *inner) {
    if (n->kind == AST_FUNCTION || n->kind == AST_LAMBDA) {
        rw_bound_names(arena, n, inner);
        return;
    }
    for (size_t i = 0; i < n->list.count; i++)
        if (n->list.items[i]->kind == AST_COMP_FOR)
            bind_target(arena, n->list.items[i]->left, inner);
}

static void reads_of(ts_arena *arena, const ast_node *n, const fe_map *hidden, fe_map *out) {
    if (!n)
        return;
    if (n->kind == AST_NAME) {
        if (!(hidden && fe_map_get(hidden, n->text)))
            bind(arena, out, n->text);
        return;
    }
    if (n->kind == AST_GLOBAL)
        return;
    fe_map inner;
    if (n->kind == AST_FUNCTION || is_scope(n->kind)) {
        inner = with_names(arena, hidden);
        scope_names(arena, n, &inner);
        for (size_t i = 0; i < n->parameters.count; i++)
            reads_of(arena, n->parameters.items[i].default_value, hidden, out);
        hidden = &inner;
    }
    reads_of(arena, n->left, hidden, out);
    reads_of(arena, n->right, hidden, out);
    reads_of(arena, n->test, hidden, out);
    reads_of_list(arena, &n->list, hidden, out);
    reads_of_list(arena, &n->body, hidden, out);
    reads_of_list(arena, &n->orelse, hidden, out);
    reads_of_list(arena, &n->finally_body, hidden, out);
}

void rw_free_names(ts_arena *arena, const ast_node *node, fe_map *out) { reads_of(arena, node, NULL, out); }

/* ---- copies ---- */

static ast_node *copy(const rewriter *r, const ast_node *n, const fe_map *hidden);

static ast_list copy_list(const rewriter *r, const ast_list *list, const fe_map *hidden) {
    ast_list out = {0};
    for (size_t i = 0; i < list->count; i++)
        rw_append(r->arena, &out, list->items[i] ? copy(r, list->items[i], hidden) : NULL);
    return out;
}

static ast_node *copy(const rewriter *r, const ast_node *n, const fe_map *hidden) {
    if (!n)
        return NULL;
    bool is_hidden = hidden && fe_map_get(hidden, n->text);
    if (n->kind == AST_NAME) {
        if (!is_hidden && r->itself.length && ts_str_equal(n->text, r->itself))
            return rw_name(r->arena, r->object, n);
        if (!is_hidden && fe_map_get(r->names, n->text))
            return rw_attribute(r->arena, r->object, n->text, n);
    }
    ast_node *c = TS_NEW(r->arena, ast_node);
    *c = *n;
    if (n->kind == AST_WALRUS && !is_hidden && fe_map_get(r->names, n->text))
        c->third = rw_attribute(r->arena, r->object, n->text, n);
    if (n->kind == AST_GLOBAL)
        return c;
    if (n->kind == AST_NONLOCAL) { /* those that are attributes now are no names */
        c->list = (ast_list){0};
        for (size_t i = 0; i < n->list.count; i++)
            if (!fe_map_get(r->names, n->list.items[i]->text))
                rw_append(r->arena, &c->list, n->list.items[i]);
        return c;
    }
    fe_map inner;
    if (n->kind == AST_FUNCTION || is_scope(n->kind)) {
        inner = with_names(r->arena, hidden);
        scope_names(r->arena, n, &inner);
        c->parameters = (ast_parameters){0};
        for (size_t i = 0; i < n->parameters.count; i++) {
            ast_parameter p = n->parameters.items[i];
            p.default_value = copy(r, p.default_value, hidden);
            TS_APPEND(r->arena, c->parameters.items, c->parameters.count, c->parameters.capacity, p);
        }
        hidden = &inner;
    }
    c->left = copy(r, n->left, hidden);
    c->right = copy(r, n->right, hidden);
    if (n->kind == AST_SLICE) /* elsewhere an annotation */
        c->third = copy(r, n->third, hidden);
    c->test = copy(r, n->test, hidden);
    c->list = copy_list(r, &n->list, hidden);
    c->body = copy_list(r, &n->body, hidden);
    c->orelse = copy_list(r, &n->orelse, hidden);
    c->finally_body = copy_list(r, &n->finally_body, hidden);
    return c;
}

ast_node *rw_copy(const rewriter *r, const ast_node *node) { return copy(r, node, NULL); }
ast_list rw_copy_list(const rewriter *r, const ast_list *list) { return copy_list(r, list, NULL); }

/* ---- classes ---- */

bool rw_has_yield(const ast_node *n) {
    if (!n || n->kind == AST_FUNCTION || n->kind == AST_CLASS || n->kind == AST_LAMBDA)
        return false;
    if (n->kind == AST_YIELD_EXPR)
        return true;
    if (rw_has_yield(n->left) || rw_has_yield(n->right) || rw_has_yield(n->test))
        return true;
    const ast_list *lists[] = {&n->list, &n->body, &n->orelse, &n->finally_body};
    for (size_t k = 0; k < 4; k++)
        for (size_t i = 0; i < lists[k]->count; i++)
            if (rw_has_yield(lists[k]->items[i]))
                return true;
    return false;
}

static void add_parameter(ts_arena *arena, ast_node *function, ts_str name, const ast_parameter *like,
                          const ast_node *place) {
    ast_parameter p = like ? *like : (ast_parameter){0};
    p.name = name;
    if (!p.place)
        p.place = rw_name(arena, name, place);
    TS_APPEND(arena, function->parameters.items, function->parameters.count, function->parameters.capacity, p);
}

ast_node *rw_init(ts_arena *arena, ts_str object, const ast_parameters *parameters, const fe_map *captured,
                  const ast_node *place) {
    ast_node *f = rw_node(arena, AST_FUNCTION, place);
    f->text = TS_STR("__init__");
    add_parameter(arena, f, object, NULL, place);
    for (size_t i = 0; captured && i < captured->count; i++)
        add_parameter(arena, f, captured->keys[i], NULL, place);
    for (size_t i = 0; parameters && i < parameters->count; i++)
        add_parameter(arena, f, parameters->items[i].name, &parameters->items[i], place);
    for (size_t i = 1; i < f->parameters.count; i++) {
        ts_str name = f->parameters.items[i].name;
        rw_append(arena, &f->body, rw_assign(arena, rw_attribute(arena, object, name, place),
                                             rw_name(arena, name, place), place));
    }
    if (!f->body.count)
        rw_append(arena, &f->body, rw_node(arena, AST_PASS, place));
    return f;
}

ast_node *rw_class(ts_arena *arena, ts_str name, const ast_node *place) {
    ast_node *c = rw_node(arena, AST_CLASS, place);
    c->text = name;
    return c;
}

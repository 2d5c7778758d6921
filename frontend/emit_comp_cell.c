/* frontend/emit_comp_cell.c - lambdas that a comprehension makes share its variables.
 *
 *   [lambda: i for i in xs]    =>    [lambda: $comp.i for i in xs], each item stored into $comp.i first
 *
 * so that all of them see the last item, as in Python. A lambda that is called where it stands, or that a builtin
 * calls for its argument's sake (sorted(ys, key=lambda y: y * i)), is gone before the next item comes. */
#include "frontend/emit_internal.h"
#include "frontend/rewrite.h"

typedef struct cell_rewriter {
    rewriter r; /* names: the targets of the comprehension */
    fe_map used; /* those that a lambda captures */
} cell_rewriter;

static bool is_called_in_place(const ast_node *call) {
    static const char *const names[] = {"sorted", "min", "max", "sum", "any", "all", "sort", "reduce", "accumulate"};
    const ast_node *f = call->left;
    if (f->kind == AST_LAMBDA)
        return true;
    bool known = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && (f->kind == AST_NAME || f->kind == AST_ATTRIBUTE); i++)
        known = known || ts_str_is(f->text, names[i]);
    return known;
}

static ast_node *share(cell_rewriter *c, const ast_node *n, bool in_place);

static ast_list share_list(cell_rewriter *c, const ast_list *list, bool in_place) {
    ast_list out = {0};
    for (size_t i = 0; i < list->count; i++)
        rw_append(c->r.arena, &out, share(c, list->items[i], in_place));
    return out;
}

/* in_place: what n gives is called before the next item comes. */
static ast_node *share(cell_rewriter *c, const ast_node *n, bool in_place) {
    if (!n || n->kind == AST_NAME)
        return (ast_node *)n;
    if (n->kind == AST_LAMBDA) {
        fe_map reads = {0};
        bool captures = false;
        rw_free_names(c->r.arena, n, &reads);
        for (size_t i = 0; i < reads.count && !in_place; i++)
            if (fe_map_get(c->r.names, reads.keys[i])) {
                fe_map_set(c->r.arena, &c->used, reads.keys[i], c);
                captures = true;
            }
        if (!captures)
            return (ast_node *)n;
        ast_node *copy = rw_copy(&c->r, n);
        for (size_t i = 0; i < copy->parameters.count; i++) /* i=i: the value of now */
            copy->parameters.items[i].default_value = n->parameters.items[i].default_value;
        return copy;
    }
    ast_node *copy = TS_NEW(c->r.arena, ast_node);
    *copy = *n;
    bool calls = n->kind == AST_CALL && is_called_in_place(n);
    copy->left = share(c, n->left, calls);
    copy->right = share(c, n->right, false);
    copy->third = n->kind == AST_SLICE ? share(c, n->third, false) : n->third;
    copy->test = share(c, n->test, false);
    if (n->kind == AST_KEYWORD)
        copy->left = share(c, n->left, in_place);
    copy->list = share_list(c, &n->list, calls);
    return copy;
}

static void targets_of(ts_arena *arena, const ast_node *t, fe_map *out) {
    if (t->kind == AST_NAME)
        fe_map_set(arena, out, t->text, out);
    for (size_t i = 0; i < t->list.count; i++)
        targets_of(arena, t->list.items[i], out);
}

/* list((lambda: i) for i in xs): nothing is called before all items are there, as in a list's display. */
const ast_node *em_whole_generator(emitter *E, const ast_node *generator) {
    ts_str key = ts_arena_format(E->arena, "whole%p %u", (const void *)generator->source, generator->offset);
    ast_node *copy = fe_map_get(&E->fe->closure_nodes, key);
    if (!copy) {
        copy = TS_NEW(E->arena, ast_node);
        *copy = *generator;
        copy->kind = AST_LIST_COMP;
        fe_map_set(E->arena, &E->fe->closure_nodes, key, copy);
    }
    return copy;
}

const ast_node *em_comp_with_cell(emitter *E, const ast_node *node, em *out_cell) {
    *out_cell = em_error();
    if (!E->function || (node->source && node->source->is_archive))
        return node;
    ts_str object = ts_arena_format(E->arena, "$comp%u", node->offset);
    ts_str key = ts_arena_format(E->arena, "comp%p %u", (const void *)node->source, node->offset);
    ast_node *copy = fe_map_get(&E->fe->closure_nodes, key); /* one tree: types of [] in it are kept by node */
    if (!copy) {
        fe_map targets = {0};
        for (size_t i = 0; i < node->list.count; i++)
            targets_of(E->arena, node->list.items[i]->left, &targets);
        cell_rewriter c = {.r = {.arena = E->arena, .names = &targets, .object = object}};
        copy = TS_NEW(E->arena, ast_node);
        *copy = *node;
        copy->left = share(&c, node->left, false);
        copy->right = share(&c, node->right, false);
        if (!c.used.count)
            copy = (ast_node *)node;
        fe_map_set(E->arena, &E->fe->closure_nodes, ts_arena_str(E->arena, key), copy);
        fe_map *used = TS_NEW(E->arena, fe_map);
        *used = c.used;
        fe_map_set(E->arena, &E->fe->closure_captures, ts_arena_str(E->arena, key), used);
    }
    const fe_map *used = fe_map_get(&E->fe->closure_captures, key);
    if (!used->count)
        return node;
    ast_node *empty = rw_class(E->arena, TS_STR("cell"), node);
    rw_append(E->arena, &empty->body, rw_node(E->arena, AST_PASS, node));
    em_arguments none = {0};
    ts_str identity = ts_arena_format(E->arena, "%.*s %p", TS_STR_ARG(key), (const void *)E->function);
    *out_cell = em_made_object(E, empty, TS_STR("cell.comprehension"), identity, &none, node);
    if (out_cell->kind != EM_VALUE)
        return node;
    em_local local = {.name = object, .v = *out_cell};
    TS_APPEND(E->arena, E->locals, E->local_count, E->local_capacity, local);
    return copy;
}

void em_comp_share(emitter *E, em cell, const ast_node *node, size_t first_local) {
    ts_str key = ts_arena_format(E->arena, "comp%p %u", (const void *)node->source, node->offset);
    const fe_map *used = fe_map_get(&E->fe->closure_captures, key);
    for (size_t i = first_local; i < E->local_count; i++)
        if (fe_map_get(used, E->locals[i].name))
            em_store_attribute(E, cell, E->locals[i].name, E->locals[i].v, NULL, node);
}

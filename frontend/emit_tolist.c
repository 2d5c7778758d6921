/* frontend/emit_tolist.c - x.tolist() and x.item(): what they give is known only at run time, but for what the
 * program does with it. A name that is walked or indexed is a list of numbers, as deep as it is walked; where
 * the operator says so (argsort, argmax, comparisons) the numbers are ints or bools. */
#include "frontend/emit_builtin.h"

enum { MOST_DEPTH = 6 };

static int most(int a, int b) { return a > b ? a : b; }

static bool is_name(const ast_node *n, ts_str name) { return n && n->kind == AST_NAME && ts_str_equal(n->text, name); }

/* How often the name is indexed: 2 in name[i][j]; 0 where this is no such thing. */
static int chain_of(const ast_node *n, ts_str name) {
    int count = 0;
    for (; n && n->kind == AST_SUBSCRIPT; n = n->left)
        count += n->right->kind != AST_SLICE;
    return is_name(n, name) ? count : -1;
}

static int depth_in(const ast_node *n, const ast_node *scope, ts_str name);

static int depth_in_list(const ast_list *list, const ast_node *scope, ts_str name) {
    int found = 0;
    for (size_t i = 0; i < list->count; i++)
        found = most(found, depth_in(list->items[i], scope, name));
    return found;
}

/* `for target in iterable`, whose target is read in scope. */
static int depth_of_walk(const ast_node *iterable, const ast_node *target, const ast_node *scope, ts_str name) {
    int chain = chain_of(iterable, name);
    if (chain >= 0)
        return chain + 1 + (target->kind == AST_NAME ? depth_in(scope, scope, target->text) : 0);
    if (iterable->kind != AST_CALL || iterable->left->kind != AST_NAME)
        return 0;
    int found = 0;
    bool is_enumerate = ts_str_is(iterable->left->text, "enumerate");
    for (size_t i = 0; i < iterable->list.count; i++) {
        size_t at = is_enumerate ? 1 : i;
        bool has_parts = target->kind == AST_TUPLE && at < target->list.count;
        found = most(found, depth_of_walk(iterable->list.items[i], has_parts ? target->list.items[at] : target, scope, name));
    }
    return found;
}

static bool takes_lists(const ast_node *callee) {
    static const char *const names[] = {"len", "sum", "max", "min", "sorted", "list", "set", "tuple", "enumerate", "zip",
                                        "reversed", "any", "all", "map", "filter", "Counter"};
    for (size_t i = 0; callee->kind == AST_NAME && i < sizeof names / sizeof *names; i++)
        if (ts_str_is(callee->text, names[i]))
            return true;
    return false;
}

/* How deep a list the name must be for what the tree does with it; 0: nothing says. */
static int depth_in(const ast_node *n, const ast_node *scope, ts_str name) {
    if (!n)
        return 0;
    int found = n->kind == AST_SUBSCRIPT ? most(chain_of(n, name), 0) : 0;
    if (n->kind == AST_FOR || n->kind == AST_COMP_FOR)
        found = most(found, depth_of_walk(n->right, n->left, n->kind == AST_FOR ? n : scope, name));
    if (n->kind == AST_ATTRIBUTE && chain_of(n->left, name) >= 0)
        found = most(found, chain_of(n->left, name) + 1);
    if (n->kind == AST_STARRED && is_name(n->left, name))
        found = most(found, 1);
    if (n->kind == AST_CALL && takes_lists(n->left))
        for (size_t i = 0; i < n->list.count; i++)
            found = most(found, chain_of(n->list.items[i], name) + 1);
    if (n->kind == AST_COMPARE)
        for (size_t i = 1; i < n->list.count; i++)
            if ((n->ops[i - 1] == AST_IN || n->ops[i - 1] == AST_NOT_IN) && is_name(n->list.items[i], name))
                found = most(found, 1);
    if (n->kind == AST_LIST_COMP || n->kind == AST_SET_COMP || n->kind == AST_DICT_COMP || n->kind == AST_GENERATOR)
        scope = n;
    const ast_node *parts[] = {n->left, n->right, n->test};
    for (size_t i = 0; i < 3; i++)
        found = most(found, depth_in(parts[i], scope, name));
    const ast_list *lists[] = {&n->list, &n->body, &n->orelse, &n->finally_body};
    for (size_t i = 0; i < 4; i++)
        found = most(found, depth_in_list(lists[i], scope, name));
    return found;
}

static bool is_tolist(const ast_node *n) {
    return n->kind == AST_CALL && n->left->kind == AST_ATTRIBUTE && ts_str_is(n->left->text, "tolist") && !n->list.count &&
           n->source && !n->source->is_archive && !n->source->is_library;
}

static const ir_type *list_of_depth(emitter *E, int depth) {
    const ir_type *t = em_simple(E, IR_NUMBER);
    for (int i = 0; i < depth && i < MOST_DEPTH; i++)
        t = ir_type_list(E->m, t);
    return depth ? t : NULL;
}

const ir_type *em_hint_of_tolist(emitter *E, const ast_node *target, const ast_node *value) {
    if (!is_tolist(value) || target->kind != AST_NAME || !E->function)
        return NULL;
    return list_of_depth(E, depth_in(E->function->node, E->function->node, target->text));
}

const ir_type *em_hint_of_walk(emitter *E, const ast_node *iterable, const ast_node *target, const ast_node *scope) {
    if (!is_tolist(iterable))
        return NULL;
    return list_of_depth(E, 1 + (target->kind == AST_NAME ? depth_in(scope, scope, target->text) : 0));
}

/* The kind of number that the operators behind a tensor tell; IR_NUMBER: none does. */
static ir_kind kind_of_items(const ir_value *v, int depth) {
    static const char *const ints[] = {"argsort", "argmax", "argmin", "nonzero", "randperm", "searchsorted", "bucketize",
                                       "count_nonzero"};
    static const char *const bools[] = {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not",
                                        "logical_xor", "isnan", "isinf", "isfinite"};
    static const char *const seconds[] = {"sort", "topk", "max", "min", "median", "mode", "kthvalue"};
    static const char *const views[] = {"view", "reshape", "flatten", "select", "slice", "squeeze", "unsqueeze", "clone",
                                        "contiguous", "flip", "transpose", "t", "permute", "index", "detach"};
    const ir_op *op = v->def;
    if (!op || op->opcode != IR_OP_CORE || depth > 20)
        return IR_NUMBER;
    ts_str name = rt_op_name(op->core);
    for (size_t i = 0; i < name.length; i++)
        if (name.data[i] == '.')
            name.length = i;
#define IS_ONE_OF(table)                                                                                               \
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)                                                          \
        if (ts_str_is(name, table[i]))
    IS_ONE_OF(ints) return IR_INT;
    IS_ONE_OF(bools) return IR_BOOL;
    IS_ONE_OF(seconds) if (op->result_count == 2 && v->index == 1) return IR_INT;
    IS_ONE_OF(views) return kind_of_items(op->operands[0], depth + 1);
#undef IS_ONE_OF
    return IR_NUMBER;
}

/* A number of item(), or nested lists of them, with the kind that is known. */
ir_value *em_known_numbers(emitter *E, ir_value *v, const ir_value *tensor, const ir_type *hint) {
    ir_kind kind = kind_of_items(tensor, 0);
    if (!v || (kind == IR_NUMBER && !hint))
        return v;
    const ir_type *t = em_simple(E, kind);
    for (const ir_type *h = hint; h && h->kind == IR_LIST; h = h->args[0])
        t = ir_type_list(E->m, t);
    return em_check_cast(E, v, t);
}

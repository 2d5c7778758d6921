/* frontend/emit_dunder.c - methods of builtin types that are operators: n.__add__(1) is n + 1, s.__len__() is len(s). */
#include "frontend/emit_internal.h"
#include "frontend/rewrite.h"

static const struct {
    const char *name;
    ast_operator op;
} operators[] = {{"__add__", AST_ADD}, {"__sub__", AST_SUB}, {"__mul__", AST_MUL}, {"__truediv__", AST_DIV},
                 {"__floordiv__", AST_FLOORDIV}, {"__mod__", AST_MOD}, {"__pow__", AST_POW}, {"__lshift__", AST_LSHIFT},
                 {"__rshift__", AST_RSHIFT}, {"__and__", AST_BITAND}, {"__or__", AST_BITOR}, {"__xor__", AST_BITXOR},
                 {"__matmul__", AST_MATMUL}, {"__eq__", AST_EQ}, {"__ne__", AST_NE}, {"__lt__", AST_LT},
                 {"__le__", AST_LE}, {"__gt__", AST_GT}, {"__ge__", AST_GE}};

/* False: no such method. */
bool em_dunder(emitter *E, ir_value *self, ts_str name, const em_arguments *args, const ast_node *node, em *out) {
    static const char *const functions[] = {"len", "str", "repr", "abs", "int", "float", "bool", "hash", "round", "iter"};
    if (name.length < 5 || !ts_str_starts_with(name, "__") || !node->source || node->source->is_archive || args->count > 1)
        return false;
    if (args->count && (args->items[0].name.length || args->items[0].v.kind == EM_ERROR))
        return false;
    ast_node *a = rw_name(E->arena, TS_STR("$left"), node), *b = rw_name(E->arena, TS_STR("$right"), node), *made = NULL;
    for (size_t i = 0; i < sizeof operators / sizeof *operators && args->count; i++) {
        if (!ts_str_is(name, operators[i].name))
            continue;
        bool compares = operators[i].op >= AST_EQ;
        made = rw_node(E->arena, compares ? AST_COMPARE : AST_BINARY, node);
        made->op = operators[i].op;
        made->left = compares ? NULL : a;
        made->right = compares ? NULL : b;
        if (compares) {
            rw_append(E->arena, &made->list, a);
            rw_append(E->arena, &made->list, b);
            made->ops = TS_NEW_ARRAY(E->arena, ast_operator, 1);
            made->ops[0] = operators[i].op;
        }
    }
    ts_str bare = {name.data + 2, name.length - 4};
    for (size_t i = 0; i < sizeof functions / sizeof *functions && !args->count; i++)
        if (ts_str_is(bare, functions[i]))
            made = rw_call(E->arena, rw_name(E->arena, bare, node), a, node);
    if (ts_str_is(name, "__neg__") && !args->count) {
        made = rw_node(E->arena, AST_UNARY, node);
        made->op = AST_NEG;
        made->left = a;
    }
    if (!made)
        return false;
    size_t locals = E->local_count;
    em_local left = {.name = a->text, .v = em_value(self)}, right = {.name = b->text};
    TS_APPEND(E->arena, E->locals, E->local_count, E->local_capacity, left);
    if (args->count) {
        right.v = args->items[0].v;
        TS_APPEND(E->arena, E->locals, E->local_count, E->local_capacity, right);
    }
    *out = em_expression(E, made, NULL);
    E->local_count = locals;
    return true;
}

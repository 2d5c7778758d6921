/* frontend/emit_isinstance.c - isinstance: decided here where types tell, else asked at run time; what is then known
 * of the subject goes to both branches. */
#include "frontend/emit_builtin.h"

typedef struct wanted {
    const ir_type *type; /* or */
    fe_class *class_;
    ir_kind kind; /* bare list, dict, tuple */
    enum { WANTED_TYPE, WANTED_KIND, WANTED_SET, WANTED_FROZEN } by_kind;
} wanted;

static size_t wanted_types(emitter *E, const ast_node *node, wanted *out, size_t max) {
    if (node->kind == AST_TUPLE || node->kind == AST_LIST) {
        size_t count = 0;
        for (size_t i = 0; i < node->list.count; i++)
            count += wanted_types(E, node->list.items[i], out + count, max - count);
        return count;
    }
    if (!max)
        return 0;
    if (node->kind == AST_CALL && node->list.count == 1 && node->left->kind == AST_NAME &&
        ts_str_is(node->left->text, "type")) {
        *out = (wanted){.type = em_simple(E, IR_NONE)};
        return 1;
    }
    fe_binding b = fe_resolve_dotted(E->fe, E->scope, node);
    fe_binding python = b.kind == FE_NAME ? em_python_binding(E, b.path) : b; /* collections.Counter */
    if (python.kind == FE_CLASS) {
        *out = (wanted){.class_ = python.class_};
        return 1;
    }
    if (b.kind == FE_NAME) {
        bool is_set = ts_str_is(b.path, "builtins.set");
        if (is_set || ts_str_is(b.path, "builtins.frozenset")) {
            *out = (wanted){.by_kind = is_set ? WANTED_SET : WANTED_FROZEN};
            return 1;
        }
        static const struct { const char *path; ir_kind kind; } kinds[] = {
            {"builtins.list", IR_LIST}, {"builtins.dict", IR_DICT}, {"builtins.tuple", IR_TUPLE},
            {"typing.List", IR_LIST}, {"typing.Dict", IR_DICT}, {"typing.Tuple", IR_TUPLE},
            {"archive.List", IR_LIST}, {"archive.Dict", IR_DICT}, {"archive.Tuple", IR_TUPLE},
            {"archive.list", IR_LIST}};
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (ts_str_is(b.path, kinds[i].path)) {
                *out = (wanted){.by_kind = WANTED_KIND, .kind = kinds[i].kind};
                return 1;
            }
    }
    const ir_type *t = em_annotation(E, node);
    if (!t)
        return 0;
    *out = (wanted){.type = t};
    return 1;
}

/* 1 surely, 0 surely not, -1 it depends */
static int holds(const ir_type *have, const wanted *w) {
    if (w->class_) {
        if (have->kind != IR_CLASS && have->kind != IR_ENUM && !(have->kind == IR_TUPLE && have->class_))
            return have->kind == IR_ANY ? -1 : 0;
        fe_class *c = fe_class_of(have->class_);
        if (c && (fe_class_is_a(c, w->class_) || (c->is_made && c->node == w->class_->node)))
            return 1; /* itself, or what was made of it for the types of a call */
        if (c && (fe_class_is_a(w->class_, c) || c->kind == RT_CLASS_INTERFACE))
            return -1;
        return 0;
    }
    if (have->kind == IR_ANY)
        return -1;
    if (w->by_kind == WANTED_SET || w->by_kind == WANTED_FROZEN)
        return em_is_set_type(have) && em_is_frozen_type(have) == (w->by_kind == WANTED_FROZEN);
    if (w->by_kind)
        return (have->kind == w->kind && !em_is_set_type(have)) || (w->kind == IR_DICT && em_class_has_method(have, "as_python"));
    if (have->kind == IR_INT && (w->type->kind == IR_INT || w->type->kind == IR_NUMBER) &&
        ir_type_meaning(have) != ir_type_meaning(w->type))
        return 0; /* a dtype is no int */
    if (ir_type_is_subtype(have, w->type))
        return 1;
    if (w->type->kind == IR_INT && have->kind == IR_BOOL)
        return 1;
    if (have->kind == IR_NUMBER && (w->type->kind == IR_INT || w->type->kind == IR_FLOAT ||
                                    w->type->kind == IR_COMPLEX || w->type->kind == IR_BOOL))
        return -1;
    if (w->type->kind == IR_OPTIONAL || w->type->kind == IR_UNION)
        for (size_t i = 0; i < w->type->arg_count; i++) {
            wanted inner = {.type = w->type->args[i]};
            int r = holds(have, &inner);
            if (r)
                return r;
        }
    if (have->kind == IR_LIST && w->type->kind == IR_LIST && have->args[0]->kind == IR_ANY)
        return -1;
    return 0;
}

static void note_fact(emitter *E, em_facts *facts, const ast_node *subject, const ir_type *type) {
    size_t slot = subject->kind == AST_NAME ? (size_t)fe_map_get(&E->variables, subject->text) : 0;
    if (slot && type && facts->count < sizeof facts->items / sizeof *facts->items)
        facts->items[facts->count++] = (em_fact){.slot = slot - 1, .type = type};
}

em_condition em_is_instance(emitter *E, const ast_node *node, const ast_node *subject,
                            const ast_node *types) {
    em_condition unknown = {.known = -1};
    em v = em_expression(E, subject, NULL);
    const ir_type *optional = v.kind == EM_VALUE && v.value->type->kind == IR_OPTIONAL ? v.value->type->args[0] : NULL;
    if (optional && em_is_exception(optional) && !em_is_object_exception(fe_class_of(optional->class_))) { /* a cause */
        em_condition c = {.known = -1};
        em_choice choice;
        em_choose(E, &choice, em_row(E, "__is__", node, 2, v.value, ir_build_none(&E->b)));
        em_choose_other(E, &choice, ir_build_bool(&E->b, false));
        em plain = em_plain_exception(E, em_value(em_cast(E, v.value, optional)), node);
        c.value = em_choose_end(E, &choice, em_exception_test(E, plain, types), node);
        note_fact(E, &c.if_true, subject, optional);
        return c;
    }
    if (v.kind == EM_VALUE && em_is_exception(v.value->type) && !em_is_object_exception(fe_class_of(v.value->type->class_)))
        v = em_plain_exception(E, v, node);
    if (v.kind == EM_EXCEPTION)
        return (em_condition){.known = -1, .value = em_exception_test(E, v, types)};
    wanted list[16];
    size_t count = wanted_types(E, types, list, 16);
    if (v.kind == EM_ERROR || !count)
        return unknown;
    if (v.kind == EM_BINDING && v.binding->kind != FE_VALUE)
        return (em_condition){.known = 0};
    if (v.kind == EM_VALUE && v.is_tuple) {
        em_condition c = {.known = 0};
        for (size_t i = 0; i < count; i++)
            if (list[i].by_kind && list[i].kind == IR_TUPLE)
                c.known = 1;
        return c;
    }
    ir_value *x = em_ir(E, v, subject, NULL);
    if (!x)
        return unknown;
    const ir_type *parts[32];
    size_t part_count = 0;
    const ir_type *t = x->type;
    if (t->kind == IR_OPTIONAL) {
        parts[part_count++] = t->args[0];
        parts[part_count++] = em_simple(E, IR_NONE);
    } else if (t->kind == IR_UNION) {
        for (size_t i = 0; i < t->arg_count && part_count < 32; i++)
            parts[part_count++] = t->args[i];
    } else {
        parts[part_count++] = t;
    }
    const ir_type *yes[64], *no[32];
    size_t yes_count = 0, no_count = 0;
    bool open = false;
    for (size_t p = 0; p < part_count; p++) {
        int best = 0;
        for (size_t w = 0; w < count; w++) {
            int r = holds(parts[p], &list[w]);
            if (r == 1)
                best = 1;
            else if (r == -1 && best == 0)
                best = -1;
        }
        if (best == 1) {
            yes[yes_count++] = parts[p];
        } else if (best == 0) {
            no[no_count++] = parts[p];
        } else {
            open = true;
            no[no_count++] = parts[p];
            for (size_t w = 0; w < count && yes_count < 60; w++)
                if (holds(parts[p], &list[w]) == -1) {
                    const ir_type *narrowed = list[w].type;
                    if (list[w].class_) {
                        ir_class *c = fe_class_ir(E->fe, list[w].class_);
                        narrowed = c ? c->type : NULL;
                    } else if (list[w].by_kind) {
                        narrowed = list[w].kind == IR_LIST ? ir_type_list(E->m, em_simple(E, IR_ANY)) : NULL;
                    }
                    if (narrowed)
                        yes[yes_count++] = narrowed;
                }
        }
    }
    if (!open && !no_count)
        return (em_condition){.known = 1};
    if (!yes_count && !open)
        return (em_condition){.known = 0};
    const ir_type **tests = TS_NEW_ARRAY(E->arena, const ir_type *, yes_count + 1);
    for (size_t i = 0; i < yes_count; i++)
        tests[i] = yes[i];
    em_place(E, node);
    const ir_type *boolean = em_simple(E, IR_BOOL);
    ir_op *op = ir_build_op(&E->b, IR_OP_IS_INSTANCE, &x, 1, &boolean, 1);
    op->types = tests;
    op->type_count = yes_count;
    em_condition c = {.value = op->results[0], .known = -1};
    if (yes_count)
        note_fact(E, &c.if_true, subject, ir_type_union(E->m, yes, yes_count));
    if (no_count && !(no_count == 1 && no[0]->kind == IR_ANY))
        note_fact(E, &c.if_false, subject, ir_type_union(E->m, no, no_count));
    return c;
}

/* frontend/emit_repr.c - the text of values that the runtime alone cannot write as Python does:
 * objects with __repr__, dataclasses, sets, and what holds them. */
#include "frontend/emit_builtin.h"

enum { REPR_DEPTH = 12 }; /* of types in types: a dataclass may hold itself */

static bool is_plain_dataclass(const ir_type *t) {
    fe_class *c = t->kind == IR_CLASS && t->class_ ? fe_class_of(t->class_) : NULL;
    return c && c->is_dataclass;
}

/* "int" of the object that the class int is as a value; empty: t is none of those. */
static ts_str builtin_class(const ir_type *t) {
    static const ts_str prefix = {"name.builtins.", 14};
    static const char *const names[] = {"int", "float", "bool", "str", "list", "dict", "set", "tuple"};
    ts_str name = t->kind == IR_CLASS && t->class_ ? t->class_->base.name : (ts_str){0};
    for (size_t i = 0; i < sizeof names / sizeof *names && ts_str_starts_with(name, prefix.data); i++)
        if (ts_str_is((ts_str){name.data + prefix.length, name.length - prefix.length}, names[i]))
            return ts_str_of(names[i]);
    return (ts_str){0};
}

static bool has_own(const ir_type *t, int depth) {
    if (ir_type_meaning(t) != RT_MEANING_NUMBER || em_class_has_method(t, "__repr__") || builtin_class(t).length || em_is_set_type(t) || is_plain_dataclass(t) ||
        em_is_exception(t))
        return true;
    if (t->kind != IR_LIST && t->kind != IR_TUPLE && t->kind != IR_DICT && t->kind != IR_OPTIONAL &&
        t->kind != IR_UNION)
        return false;
    for (size_t i = 0; i < t->arg_count && depth; i++)
        if (has_own(t->args[i], depth - 1))
            return true;
    return false;
}

bool em_has_own_text(const ir_type *t) { return has_own(t, REPR_DEPTH); }

static ir_value *repr(emitter *E, ir_value *x, const ast_node *node, int depth);

static ir_value *joined(emitter *E, ir_value *a, ir_value *b, const ast_node *node) {
    return a && b ? em_row(E, "add.str", node, 2, a, b) : NULL;
}

static ir_value *text(emitter *E, const char *s) { return ir_build_str(&E->b, ts_str_of(s)); }

typedef struct parts {
    ir_value *texts; /* a list of str that grows */
    bool has_failed;
    int depth;
    const ast_node *node;
} parts;

static void add_text(emitter *E, parts *p, ir_value *s) {
    if (s)
        em_op(E, "append", p->node, 2, p->texts, s);
    else
        p->has_failed = true;
}

static void add_item(emitter *E, em item, void *user) {
    parts *p = user;
    ir_value *x = em_ir(E, item, p->node, NULL);
    add_text(E, p, x ? repr(E, x, p->node, p->depth) : NULL);
}

static void add_pair(emitter *E, em item, void *user) {
    parts *p = user;
    em_iteration it;
    ir_value *key = NULL, *value = NULL;
    if (em_iterate(E, item, p->node, &it) && it.is_unrolled && it.count == 2) {
        key = em_ir(E, it.items[0], p->node, NULL);
        value = em_ir(E, it.items[1], p->node, NULL);
    }
    ir_value *s = key && value ? joined(E, repr(E, key, p->node, p->depth), text(E, ": "), p->node) : NULL;
    add_text(E, p, s ? joined(E, s, repr(E, value, p->node, p->depth), p->node) : NULL);
}

static ir_value *repr_items(emitter *E, em source, bool is_dict, const char *open, const char *close,
                            const ast_node *node, int depth) {
    parts p = {.depth = depth, .node = node,
               .texts = em_list_of(E, NULL, 0, em_simple(E, IR_STR))};
    if (!em_for_each(E, source, node, is_dict ? add_pair : add_item, &p) || p.has_failed)
        return NULL;
    ir_value *inside = em_op(E, "join", node, 2, text(E, ", "), p.texts);
    return joined(E, joined(E, text(E, open), inside, node), text(E, close), node);
}

/* Fields one by one: of a tuple, a named tuple, a dataclass. */
static ir_value *repr_fields(emitter *E, ir_value *x, const ast_node *node, int depth) {
    const ir_class *c = x->type->class_;
    bool is_tuple = x->type->kind == IR_TUPLE;
    size_t count = is_tuple ? x->type->arg_count : c->field_count;
    em_iteration it = {0};
    if (is_tuple && (!em_iterate(E, em_value(x), node, &it) || !it.is_unrolled))
        return NULL;
    ir_value *all = ir_build_str(&E->b, c ? ts_arena_format(E->arena, "%.*s(", TS_STR_ARG(c->base.bare_name))
                                          : TS_STR("("));
    bool is_first = true;
    for (size_t i = 0; i < count && all; i++) {
        ir_value *item;
        if (!is_tuple && !em_field_option(E, fe_class_of(c), c->fields[i].name, "repr", true))
            continue;
        if (is_tuple) {
            item = em_ir(E, it.items[i], node, NULL);
        } else {
            ir_op *op = ir_build_op(&E->b, IR_OP_GET_ATTR, &x, 1, &c->fields[i].type, 1);
            op->name = c->fields[i].name;
            item = op->results[0];
        }
        if (!is_first)
            all = joined(E, all, text(E, ", "), node);
        is_first = false;
        if (c)
            all = joined(E, all, ir_build_str(&E->b, ts_arena_format(E->arena, "%.*s=",
                                                                     TS_STR_ARG(is_tuple ? c->base.fields[i]
                                                                                         : c->fields[i].name))),
                         node);
        all = item ? joined(E, all, repr(E, item, node, depth), node) : NULL;
    }
    return joined(E, all, text(E, !c && count == 1 ? ",)" : ")"), node);
}

/* "torch.float32": a constant, or an item of a list of all such. */
static ir_value *meant_text(emitter *E, ir_value *x, const ast_node *node) {
    rt_meaning meaning = ir_type_meaning(x->type);
    ir_value *texts[RT_DTYPE_COUNT];
    int64_t known;
    if (ir_const_int(x, &known) && rt_meaning_text(meaning, known))
        return text(E, rt_meaning_text(meaning, known));
    for (int i = 0; i < RT_DTYPE_COUNT; i++)
        texts[i] = text(E, rt_meaning_text(meaning, i) ? rt_meaning_text(meaning, i) : "?");
    ir_value *list = em_list_of(E, texts, RT_DTYPE_COUNT, em_simple(E, IR_STR));
    return em_op(E, "__getitem__", node, 2, list, x);
}

static ir_value *repr(emitter *E, ir_value *x, const ast_node *node, int depth) {
    const ir_type *t = x->type;
    if (!has_own(t, REPR_DEPTH))
        return em_row(E, "prim_repr", node, 1, x);
    if (ir_type_meaning(t) != RT_MEANING_NUMBER)
        return meant_text(E, x, node);
    if (builtin_class(t).length)
        return ir_build_str(&E->b, ts_arena_format(E->arena, "<class '%.*s'>", TS_STR_ARG(builtin_class(t))));
    if (em_class_has_method(t, "__repr__")) {
        em r = em_call_method0(E, x, "__repr__", NULL, 0, node);
        return r.kind == EM_VALUE ? r.value : NULL;
    }
    if (em_is_exception(t))
        return em_exception_repr(E, em_value(x), node);
    if (!depth || t->kind == IR_UNION) {
        EM_UNSUPPORTED(E, node, "the text of %s is not supported yet: %s", em_type_text(E, t),
                       depth ? "which __repr__ is meant is known only at run time" : "types nest too deeply");
        return NULL;
    }
    if (em_is_set_type(t)) {
        bool is_frozen = em_is_frozen_type(t);
        em_choice choice;
        em_choose(E, &choice, em_op(E, "Bool", node, 1, em_op(E, "len", node, 1, x)));
        ir_value *items = em_set_items(E, x, node);
        em_choose_other(E, &choice, items ? repr_items(E, em_value(items), false, is_frozen ? "frozenset({" : "{", is_frozen ? "})" : "}", node, depth - 1) : NULL);
        return em_choose_end(E, &choice, text(E, is_frozen ? "frozenset()" : "set()"), node);
    }
    switch (t->kind) {
    case IR_LIST:
        return repr_items(E, em_value(x), false, "[", "]", node, depth - 1);
    case IR_DICT:
        return repr_items(E, (em){.kind = EM_ITEMS, .value = x, .name = TS_STR("items")}, true, "{", "}", node,
                          depth - 1);
    case IR_OPTIONAL: {
        em_choice choice;
        em_choose(E, &choice, em_row(E, "__is__", node, 2, x, ir_build_none(&E->b)));
        em_choose_other(E, &choice, text(E, "None"));
        return em_choose_end(E, &choice, repr(E, em_cast(E, x, t->args[0]), node, depth - 1), node);
    }
    default:
        return repr_fields(E, x, node, depth - 1);
    }
}

ir_value *em_repr(emitter *E, ir_value *x, const ast_node *node) { return repr(E, x, node, REPR_DEPTH); }

/* Of a tuple that is no value yet, where an item is a size: (torch.Size([2]), 1). */
static ir_value *text_of_sizes(emitter *E, em tuple, const ast_node *node) {
    ir_value *all = text(E, "(");
    for (size_t i = 0; i < tuple.count && all; i++) {
        ir_value *own = em_view_text(E, tuple.items[i], node);
        ir_value *x = own ? NULL : em_as_python(E, tuple.items[i], node);
        own = own ? own : x ? em_repr(E, x, node) : NULL;
        all = own ? joined(E, joined(E, all, text(E, i ? ", " : ""), node), own, node) : NULL;
    }
    return joined(E, all, text(E, tuple.count == 1 ? ",)" : ")"), node);
}

static bool has_size(em v) {
    for (size_t i = 0; v.kind == EM_TUPLE && i < v.count; i++)
        if ((v.items[i].kind == EM_VALUE && v.items[i].is_size) || has_size(v.items[i]))
            return true;
    return false;
}

/* The text of what is no value yet: a range, a view of a dict. NULL: of something else. */
ir_value *em_view_text(emitter *E, em v, const ast_node *node) {
    if (has_size(v))
        return text_of_sizes(E, v, node);
    if (v.kind == EM_ITEMS && !em_is_set_type(v.value->type)) {
        ir_value *list = em_ir(E, v, node, NULL);
        ir_value *inside = list ? em_repr(E, list, node) : NULL;
        ir_value *open = ir_build_str(&E->b, ts_arena_format(E->arena, "dict_%.*s(", TS_STR_ARG(v.name)));
        return joined(E, joined(E, open, inside, node), text(E, ")"), node);
    }
    if (v.kind == EM_RANGE) {
        int64_t step;
        ir_value *s = joined(E, text(E, "range("), em_row(E, "prim_repr", node, 1, v.items[0].value), node);
        s = joined(E, joined(E, s, text(E, ", "), node), em_row(E, "prim_repr", node, 1, v.items[1].value), node);
        if (!ir_const_int(v.items[2].value, &step) || step != 1)
            s = joined(E, joined(E, s, text(E, ", "), node), em_row(E, "prim_repr", node, 1, v.items[2].value), node);
        return joined(E, s, text(E, ")"), node);
    }
    if (v.kind == EM_VALUE && v.is_size)
        return joined(E, joined(E, text(E, "torch.Size("), em_row(E, "prim_repr", node, 1, v.value), node),
                      text(E, ")"), node);
    return NULL;
}

ir_value *em_as_python(emitter *E, em v, const ast_node *node) {
    if (v.kind == EM_TUPLE) {
        bool has_any = false;
        em *items = TS_NEW_ARRAY(E->arena, em, v.count + 1);
        for (size_t i = 0; i < v.count; i++) {
            items[i] = v.items[i];
            has_any = has_any || items[i].is_tuple || items[i].kind == EM_TUPLE;
            if (items[i].is_tuple || items[i].kind == EM_TUPLE)
                items[i] = em_value(em_as_python(E, items[i], node));
            if (items[i].kind == EM_VALUE && !items[i].value)
                return NULL;
        }
        if (has_any)
            v = (em){.kind = EM_TUPLE, .items = items, .count = v.count};
    }
    ir_value *x = em_ir(E, v, node, NULL);
    return x && v.kind == EM_VALUE && v.is_tuple ? em_row(E, "prim_list_to_tuple", node, 1, x) : x;
}

em em_kept(emitter *E, em v, const ast_node *node, const ir_type *hint) {
    bool is_script = node && node->source && !node->source->is_library && !node->source->is_archive;
    bool is_tuple = v.kind == EM_TUPLE || (v.kind == EM_VALUE && v.value && v.value->type->kind == IR_TUPLE);
    if (is_script && is_tuple && hint && hint->kind == IR_LIST) { /* where Tuple[T, ...] is declared */
        ir_value *list = em_coerce(E, em_ir(E, v, node, NULL), hint, 0, node, "the item");
        v = (em){.kind = list ? EM_VALUE : EM_ERROR, .value = list, .is_tuple = true};
    }
    if (v.kind == EM_TUPLE) {
        em *items = TS_NEW_ARRAY(E->arena, em, v.count + 1);
        for (size_t i = 0; i < v.count; i++)
            items[i] = em_kept(E, v.items[i], node, NULL);
        v.items = items;
        return v;
    }
    bool is_list = v.kind == EM_VALUE && v.value && v.value->type->kind == IR_LIST;
    if (!is_list || !node || !node->source || node->source->is_library || (!v.is_tuple && !v.is_size))
        return v;
    ir_value *copy = em_row(E, "list.t", node, 1, v.value);
    if (copy)
        em_row(E, "prim_mark.list", node, 2, copy, ir_build_int(&E->b, v.is_tuple ? RT_MARK_TUPLE : RT_MARK_SIZE));
    return em_value(copy);
}

ir_value *em_shown(emitter *E, em v, const ast_node *node) {
    if (em_is_any_exception(v))
        return em_to_str(E, v, node);
    ir_value *view = em_view_text(E, v, node);
    if (view)
        return view;
    if (!em_is_mixed_enum(v))
        v = em_enum_value(E, v, node); /* an IntEnum's member reads as its value */
    ir_value *x = em_as_python(E, v, node);
    bool own = x && (em_class_has_method(x->type->kind == IR_OPTIONAL ? x->type->args[0] : x->type, "__str__") ||
                     em_has_own_text(x->type));
    return own ? em_to_str(E, em_value(x), node) : x;
}

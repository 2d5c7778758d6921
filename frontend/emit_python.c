/* frontend/emit_python.c - what of Python is written in Python: functions of the library's namespaces
 * python.builtins, python.itertools and others. They have no types of their own: each call is typed by its arguments. */
#include "frontend/emit_builtin.h"

static fe_binding find(emitter *E, ts_str space, ts_str name) {
    ts_str path = ts_arena_format(E->arena, "python.%.*s", (int)space.length, space.data);
    return fe_library_find(E->fe, path, name);
}

static bool is_ours(const ast_node *node) {
    return !node || !node->source || !node->source->is_archive;
}

bool em_is_generic(const fe_function *f) { return ts_str_starts_with(f->name, "python."); }

/* "itertools.chain" among the library's functions and classes. */
fe_binding em_python_binding(emitter *E, ts_str path) {
    size_t dot = path.length;
    for (size_t i = 0; i < path.length && dot == path.length; i++)
        if (path.data[i] == '.')
            dot = i;
    if (dot == path.length)
        return (fe_binding){.kind = FE_UNBOUND};
    ts_str name = {path.data + dot + 1, path.length - dot - 1};
    char *flat = ts_arena_copy(E->arena, name.data, name.length);
    for (size_t i = 0; i < name.length; i++) /* str.maketrans: str_maketrans */
        if (flat[i] == '.')
            flat[i] = '_';
    return find(E, (ts_str){path.data, dot}, (ts_str){flat, name.length});
}

em em_call_python(emitter *E, const char *path, em *args, size_t count, const ast_node *node) {
    fe_binding b = em_python_binding(E, ts_str_of(path));
    em_arguments list = {0};
    for (size_t i = 0; i < count; i++) {
        em_argument one = {.v = args[i], .node = node};
        if (args[i].kind == EM_ERROR)
            return em_error();
        TS_APPEND(E->arena, list.items, list.count, list.capacity, one);
    }
    return em_call_value(E, em_binding(E, b), &list, node, NULL);
}

/* A call by the whole path of what the emitter does not know itself. */
em em_python_path(emitter *E, ts_str path, em_arguments *args, const ast_node *node, const ir_type *hint,
                  bool *out_known) {
    static const char *const types[] = {"str", "int", "float", "list", "dict", "set"};
    *out_known = true;
    em made;
    if (em_call_dataclasses(E, path, args, node, &made))
        return made;
    if (is_ours(node) && em_function_maker(E, path, args, node, &made))
        return made;
    if (ts_str_is(path, "functools.partial") && args->count)
        return em_partial(E, args, node);
    if (is_ours(node) && (ts_str_starts_with(path, "itertools.") || ts_str_starts_with(path, "functools.") ||
                          ts_str_starts_with(path, "operator.") || ts_str_starts_with(path, "collections.")))
        path = em_python_way(E, path, args, node);
    fe_binding b = is_ours(node) && path.length ? em_python_binding(E, path) : (fe_binding){.kind = FE_UNBOUND};
    if (b.kind == FE_FUNCTION || b.kind == FE_CLASS)
        return em_call_value(E, em_binding(E, b), args, node, hint);
    for (size_t i = 0; i < sizeof types / sizeof *types && args->count; i++) { /* str.lower(s) */
        ts_str prefix = ts_arena_format(E->arena, "builtins.%s.", types[i]);
        if (path.length <= prefix.length || memcmp(path.data, prefix.data, prefix.length) != 0)
            continue;
        ts_str name = {path.data + prefix.length, path.length - prefix.length};
        em method = em_attribute_of(E, args->items[0].v, name, node, false);
        em_arguments rest = {.items = args->items + 1, .count = args->count - 1};
        return method.kind == EM_ERROR ? method : em_call_value(E, method, &rest, node, hint);
    }
    *out_known = false;
    return em_error();
}

/* x.name(...) of a builtin type, where the library has TYPE_name. */
em em_python_method(emitter *E, ir_value *self, ts_str name, em_arguments *args, const ast_node *node,
                    bool *out_known) {
    static const struct { ir_kind kind; const char *prefix; } types[] = {
        {IR_STR, "str"}, {IR_INT, "int"}, {IR_FLOAT, "float"}, {IR_LIST, "list"}, {IR_DICT, "dict"}, {IR_BOOL, "int"}};
    *out_known = false;
    for (size_t i = 0; i < sizeof types / sizeof *types && is_ours(node); i++) {
        if (self->type->kind != types[i].kind)
            continue;
        const char *prefix = em_is_set_type(self->type) ? "set" : types[i].prefix;
        fe_binding b = find(E, TS_STR("builtins"), ts_arena_format(E->arena, "%s_%.*s", prefix, TS_STR_ARG(name)));
        if (b.kind != FE_FUNCTION)
            continue;
        *out_known = true;
        em_arguments all = {0};
        em_argument first = {.v = em_value(self), .node = node};
        TS_APPEND(E->arena, all.items, all.count, all.capacity, first);
        for (size_t k = 0; k < args->count; k++)
            TS_APPEND(E->arena, all.items, all.count, all.capacity, args->items[k]);
        return em_call_function(E, b.function, &all, node);
    }
    return em_error();
}

/* math.gcd(a, b, c) and its like: one list. */
em em_math_of_many(emitter *E, ts_str name, em_arguments *args, const ast_node *node, bool *out_known) {
    static const char *const names[] = {"gcd", "lcm", "hypot"};
    *out_known = false;
    ir_value *whole = args->count == 1 && args->items[0].v.kind == EM_VALUE ? args->items[0].v.value : NULL;
    if (whole && whole->type->kind == IR_INT &&
        (ts_str_is(name, "floor") || ts_str_is(name, "ceil") || ts_str_is(name, "trunc"))) {
        *out_known = true; /* of an int: itself */
        return args->items[0].v;
    }
    if (ts_str_is(name, "perm") && args->count == 1) {
        TS_APPEND(E->arena, args->items, args->count, args->capacity, args->items[0]);
        return em_error();
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ts_str_is(name, names[i]) && args->count != 2) {
            const ir_type *t = em_simple(E, i == 2 ? IR_FLOAT : IR_INT);
            ir_value **items = TS_NEW_ARRAY(E->arena, ir_value *, args->count + 1);
            *out_known = true;
            for (size_t k = 0; k < args->count; k++) {
                items[k] = em_coerce(E, em_ir(E, args->items[k].v, node, t), t, 0, node, "the number");
                if (!items[k])
                    return em_error();
            }
            em list = em_value(em_list_of(E, items, args->count, t));
            return em_call_python(E, i == 0 ? "builtins.math_gcd" : i == 1 ? "builtins.math_lcm" : "builtins.math_hypot",
                                  &list, 1, node);
        }
    if (ts_str_is(name, "ulp") || ts_str_is(name, "nextafter")) {
        *out_known = true;
        em values[2];
        for (size_t k = 0; k < args->count && k < 2; k++)
            values[k] = em_value(em_coerce(E, em_ir(E, args->items[k].v, node, NULL), em_simple(E, IR_FLOAT), 0, node,
                                           "the number"));
        return em_call_python(E, ts_str_is(name, "ulp") ? "builtins.math_ulp" : "builtins.math_nextafter", values,
                              args->count < 2 ? args->count : 2, node);
    }
    return em_error();
}

/* map(f, xs, ys, ...): a list. */
typedef struct spread {
    em callee;
    const ast_node *node;
    ir_value *result;
    bool has_type;
} spread;

static void call_spread(emitter *E, em item, void *user) {
    spread *s = user;
    em_arguments args = {0};
    for (size_t i = 0; i < item.count; i++) {
        em_argument one = {.v = item.items[i], .node = s->node};
        TS_APPEND(E->arena, args.items, args.count, args.capacity, one);
    }
    ir_value *v = em_ir(E, em_call_value(E, s->callee, &args, s->node, NULL), s->node, NULL);
    if (!v)
        return;
    if (!s->has_type)
        s->result->type = ir_type_list(E->m, ir_type_forget(E->m, v->type));
    s->has_type = true;
    em_row(E, "append.t", s->node, 2, s->result, v);
}

em em_map_many(emitter *E, em_arguments *args, const ast_node *node) {
    spread s = {.callee = args->items[0].v, .node = node};
    em *sources = TS_NEW_ARRAY(E->arena, em, args->count);
    for (size_t i = 1; i < args->count; i++)
        sources[i - 1] = args->items[i].v;
    s.result = em_list_of(E, NULL, 0, ir_type_any_tensor(E->m));
    em zip = {.kind = EM_ZIP, .items = sources, .count = args->count - 1};
    return em_value(em_for_each(E, zip, node, call_spread, &s) ? s.result : NULL);
}

/* next(iterable, fallback) of what is no iterator with a place of its own. */
static em next_of_list(emitter *E, ir_value *list, em *fallback, const ast_node *node) {
    ir_value *size = em_op(E, "len", node, 1, list);
    em_choice choice;
    em_choose(E, &choice, em_row(E, "gt.int", node, 2, size, ir_build_int(&E->b, 0)));
    ir_value *first = em_op(E, "__getitem__", node, 2, list, ir_build_int(&E->b, 0));
    em_choose_other(E, &choice, first);
    ir_value *other;
    if (fallback) {
        other = em_ir(E, *fallback, node, first ? first->type : NULL);
    } else {
        em_raise_named(E, TS_STR("StopIteration"), ir_build_str(&E->b, (ts_str){"", 0}));
        other = NULL;
    }
    ir_value *v = em_choose_end(E, &choice, other, node);
    return em_value(first ? v : NULL);
}

static const char *found_text(emitter *E, em v, const ir_value *found) {
    return v.is_tuple || v.kind == EM_TUPLE ? "a tuple" : v.is_size ? "a torch.Size" : v.kind == EM_RANGE ? "a range"
           : v.kind == EM_ITEMS ? "a view of a dict" : em_type_text(E, found->type);
}

/* next(iterator) and next(iterator, fallback). */
em em_builtin_next(emitter *E, em_arguments *args, const ast_node *node) {
    em v = args->items[0].v;
    if (em_is_lazy(E, v)) {
        if (args->count == 1 && v.value && !em_is_iterator(v.value->type))
            return em_call_method0(E, v.value, "__next__", NULL, 0, node);
        em operands[2] = {em_value(em_iterator(E, v, node)), args->count == 2 ? args->items[1].v : em_error()};
        return em_call_python(E, args->count == 1 ? "iterators.next_of" : "iterators.next_or", operands, args->count, node);
    }
    if (em_is_script(node) && !em_is_walked_once(v) && v.kind != EM_CHILDREN && v.kind != EM_ERROR) {
        ir_value *found = em_ir(E, v, node, NULL);
        if (found)
            EM_ERR(E, node, "expected an iterator for next(), found %s", found_text(E, v, found));
        return em_error();
    }
    ir_value *list = em_as_list(E, v, node);
    return list ? next_of_list(E, list, args->count == 2 ? &args->items[1].v : NULL, node) : em_error();
}

/* zip(..., strict=True): the lengths must be equal. */
void em_check_strict(emitter *E, em_arguments *args, size_t count, const ast_node *node) {
    ir_value **lengths = TS_NEW_ARRAY(E->arena, ir_value *, count + 1);
    for (size_t i = 0; i < count; i++) {
        em_arguments one = {.items = &args->items[i], .count = 1};
        bool known;
        if (args->items[i].v.kind == EM_GENERATOR)
            args->items[i].v = em_value(em_as_list(E, args->items[i].v, node));
        lengths[i] = em_ir(E, em_call_builtin(E, TS_STR("builtins.len"), &one, node, NULL, &known), node, NULL);
        if (!lengths[i])
            return;
    }
    em list = em_value(em_list_of(E, lengths, count, em_simple(E, IR_INT)));
    em_call_python(E, "builtins.zip_strict", &list, 1, node);
}

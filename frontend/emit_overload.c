/* frontend/emit_overload.c - functions of Python's modules that take their arguments in several ways: which of
 * the library's functions NAME__WAY is meant, and functions that give functions. */
#include "frontend/emit_builtin.h"
#include "frontend/rewrite.h"

static void insert(emitter *E, em_arguments *args, size_t at, em v) {
    em_argument a = {.v = v};
    TS_APPEND(E->arena, args->items, args->count, args->capacity, a);
    for (size_t i = args->count - 1; i > at; i--)
        args->items[i] = args->items[i - 1];
    args->items[at] = a;
}

static bool const_int(emitter *E, const em_arguments *args, size_t i, int64_t *out) {
    ir_value *v = i < args->count ? em_ir(E, args->items[i].v, args->items[i].node, NULL) : NULL;
    return v && ir_const_int(v, out);
}

static bool is_none_value(em v) { return v.kind == EM_VALUE && v.value->type->kind == IR_NONE; }

static bool is_none(const em_arguments *args, size_t i) { return is_none_value(args->items[i].v); }

/* All arguments as one list of lists. */
static bool as_lists(emitter *E, em_arguments *args, const ast_node *node) {
    ir_value **lists = TS_NEW_ARRAY(E->arena, ir_value *, args->count + 1);
    for (size_t i = 0; i < args->count; i++) {
        lists[i] = em_as_list(E, args->items[i].v, node);
        if (!lists[i])
            return false;
        if (i && !ir_type_same_shape_of(lists[i]->type, lists[0]->type)) {
            if (!em_retype_empty(E, lists[i], lists[0]->type))
                em_retype_empty(E, lists[0], lists[i]->type);
            return false;
        }
    }
    em all = em_value(em_list_of(E, lists, args->count, lists[0]->type));
    args->count = 0;
    insert(E, args, 0, all);
    return true;
}

static em_argument take_named(em_arguments *args, const char *name) {
    em_argument out = {0};
    for (size_t i = 0; i < args->count; i++)
        if (ts_str_is(args->items[i].name, name)) {
            out = args->items[i];
            memmove(args->items + i, args->items + i + 1, (args->count - i - 1) * sizeof *args->items);
            args->count--;
            break;
        }
    return out;
}

/* The library's name for the call; arguments are put in order. Empty: none of several ways. */
ts_str em_python_way(emitter *E, ts_str path, em_arguments *args, const ast_node *node) {
    size_t n = args->count;
    int64_t r = -1;
#define WAY(text) ((ts_str){text, sizeof(text) - 1})
    if (ts_str_is(path, "itertools.islice")) {
        em most = em_value(ir_build_int(&E->b, INT64_MAX));
        if (n == 2)
            insert(E, args, 1, em_value(ir_build_int(&E->b, 0)));
        if (args->count == 3)
            insert(E, args, 3, em_value(ir_build_int(&E->b, 1)));
        if (args->count == 4 && is_none(args, 2))
            args->items[2].v = most;
        if (args->count == 4 && is_none(args, 1))
            args->items[1].v = em_value(ir_build_int(&E->b, 0));
        if (args->count == 4 && is_none(args, 3))
            args->items[3].v = em_value(ir_build_int(&E->b, 1));
        return WAY("itertools.islice__range");
    }
    if (ts_str_is(path, "itertools.accumulate")) {
        em_argument initial = take_named(args, "initial"), function = take_named(args, "func");
        if (function.node)
            insert(E, args, 1, function.v);
        if (args->count == 2 && is_none(args, 1))
            args->count = 1;
        if (initial.node && !is_none_value(initial.v)) {
            insert(E, args, args->count, initial.v);
            return args->count == 2 ? WAY("itertools.accumulate__add_from") : WAY("itertools.accumulate__from");
        }
        return args->count == 1 ? WAY("itertools.accumulate__add") : WAY("itertools.accumulate__by");
    }
    if (ts_str_is(path, "itertools.product")) {
        em_argument repeat = take_named(args, "repeat");
        ir_value *v = repeat.node ? em_ir(E, repeat.v, node, NULL) : NULL;
        if (v && ir_const_int(v, &r) && args->count == 1 && r >= 1 && r <= 3) {
            for (int64_t i = 1; i < r; i++)
                insert(E, args, 0, args->items[0].v);
        } else if (v && args->count != 1) {
            return (ts_str){0};
        } else if (v) {
            insert(E, args, args->count, em_value(v));
            return WAY("itertools.product__repeat");
        }
        return args->count == 1 ? WAY("itertools.product__one") : args->count == 2 ? WAY("itertools.product__two")
               : args->count == 3 ? WAY("itertools.product__three") : (ts_str){0};
    }
    bool is_combination = ts_str_is(path, "itertools.combinations"), is_permutation = ts_str_is(path, "itertools.permutations");
    if (is_permutation && (n == 1 || (n == 2 && is_none(args, 1)))) {
        args->count = 1;
        return WAY("itertools.permutations__all");
    }
    if ((is_combination || is_permutation) && n == 2) {
        bool known = const_int(E, args, 1, &r);
        if (known && r == 2) {
            args->count = 1;
            return is_combination ? WAY("itertools.combinations__pairs") : WAY("itertools.permutations__pairs");
        }
        if (known && r == 3) {
            args->count = 1;
            return is_combination ? WAY("itertools.combinations__triples") : WAY("itertools.permutations__three");
        }
        return is_combination ? WAY("itertools.combinations__any") : WAY("itertools.permutations__any");
    }
    if (ts_str_is(path, "itertools.combinations_with_replacement") && n == 2) {
        if (!const_int(E, args, 1, &r) || (r != 2 && r != 3))
            return WAY("itertools.combinations_with_replacement__any");
        args->count = 1;
        return r == 2 ? WAY("itertools.combinations_with_replacement__pairs")
                      : WAY("itertools.combinations_with_replacement__triples");
    }
    if (ts_str_is(path, "itertools.zip_longest"))
        return em_positional_count(args) == 3 ? WAY("itertools.zip_longest__three") : WAY("itertools.zip_longest__two");
    if (ts_str_is(path, "itertools.repeat") && n == 2)
        return WAY("itertools.repeat__times");
    if (ts_str_is(path, "itertools.filterfalse") && n == 2 && is_none(args, 0)) {
        args->items[0] = args->items[1];
        args->count = 1;
        return WAY("itertools.filterfalse__truth");
    }
    if (ts_str_is(path, "itertools.tee")) {
        if (n == 2 && const_int(E, args, 1, &r) && (r == 2 || r == 3))
            args->count = 1;
        return args->count != 1 ? (ts_str){0} : r == 3 ? WAY("itertools.tee__three") : WAY("itertools.tee__two");
    }
    if (ts_str_is(path, "itertools.groupby")) {
        em_argument key = take_named(args, "key");
        if (key.node)
            insert(E, args, 1, key.v);
        if (args->count == 2 && is_none(args, 1))
            args->count = 1;
        return args->count == 1 ? WAY("itertools.groupby__items") : WAY("itertools.groupby__key");
    }
    if (ts_str_is(path, "itertools.chain") && n && as_lists(E, args, node))
        return WAY("itertools.chain_from_iterable");
    if (ts_str_is(path, "functools.reduce"))
        return n == 2 ? WAY("functools.reduce__plain") : WAY("functools.reduce__from");
    if (ts_str_is(path, "collections.Counter") && n)
        return WAY("collections.Counter__of");
    if (ts_str_is(path, "collections.defaultdict") && em_positional_count(args) < n)
        return WAY("collections.defaultdict__of");
    if (ts_str_is(path, "operator.abs"))
        return WAY("operator.abs_");
    return path;
#undef WAY
}

/* ---- functions that give functions ---- */

static em lambda_of(emitter *E, ast_node *body, const ast_node *node) {
    ast_node *f = rw_node(E->arena, AST_LAMBDA, node);
    ast_parameter x = {.name = TS_STR("$x"), .place = rw_name(E->arena, TS_STR("$x"), node)};
    TS_APPEND(E->arena, f->parameters.items, f->parameters.count, f->parameters.capacity, x);
    f->left = body;
    return (em){.kind = EM_CLOSURE, .node = f};
}

/* x.a.b of "a.b" */
static ast_node *path_of(emitter *E, ts_str path, const ast_node *node) {
    ast_node *at = rw_name(E->arena, TS_STR("$x"), node);
    for (size_t start = 0; start <= path.length;) {
        size_t end = start;
        while (end < path.length && path.data[end] != '.')
            end++;
        ast_node *next = rw_node(E->arena, AST_ATTRIBUTE, node);
        next->left = at;
        next->text = (ts_str){path.data + start, end - start};
        at = next;
        start = end + 1;
    }
    return at;
}

/* operator.itemgetter(0), attrgetter("x"), methodcaller("f", 1). */
bool em_function_maker(emitter *E, ts_str path, em_arguments *args, const ast_node *node, em *out) {
    bool items = ts_str_is(path, "operator.itemgetter"), attributes = ts_str_is(path, "operator.attrgetter");
    bool method = ts_str_is(path, "operator.methodcaller");
    if (!items && !attributes && !method)
        return false;
    ast_node **bodies = TS_NEW_ARRAY(E->arena, ast_node *, args->count + 1);
    for (size_t i = 0; i < args->count; i++) {
        ast_node *given = (ast_node *)(uintptr_t)args->items[i].node;
        if (items) {
            bodies[i] = rw_node(E->arena, AST_SUBSCRIPT, node);
            bodies[i]->left = rw_name(E->arena, TS_STR("$x"), node);
            bodies[i]->right = given;
        } else if (given->kind == AST_STRING) {
            bodies[i] = path_of(E, given->text, node);
        } else {
            EM_UNSUPPORTED(E, node, "%.*s of a name known only at run time is not supported yet", TS_STR_ARG(path));
            *out = em_error();
            return true;
        }
        if (method) {
            ast_node *call = rw_call(E->arena, bodies[0], NULL, node);
            for (size_t k = 1; k < args->count; k++)
                rw_append(E->arena, &call->list, (ast_node *)(uintptr_t)args->items[k].node);
            bodies[0] = call;
            args->count = 1;
        }
    }
    ast_node *body = bodies[0];
    if (args->count > 1) {
        body = rw_node(E->arena, AST_TUPLE, node);
        for (size_t i = 0; i < args->count; i++)
            rw_append(E->arena, &body->list, bodies[i]);
    }
    *out = lambda_of(E, body, node);
    return true;
}

/* functools.partial(f, ...): an object with f and its arguments as fields. */
em em_partial(emitter *E, em_arguments *args, const ast_node *node) {
    ast_node *class_node = rw_class(E->arena, TS_STR("partial"), node);
    fe_map names = {0};
    for (size_t i = 0; i < args->count; i++) {
        ts_str name = args->items[i].name.length ? ts_arena_format(E->arena, "k$%.*s", TS_STR_ARG(args->items[i].name))
                                                 : ts_arena_format(E->arena, "p$%zu", i);
        fe_map_set(E->arena, &names, name, class_node);
        args->items[i].name = (ts_str){0};
    }
    rw_append(E->arena, &class_node->body, rw_init(E->arena, TS_STR("$c"), NULL, &names, node));
    return em_made_object(E, class_node, TS_STR("partial"),
                          ts_arena_format(E->arena, "partial %p:%u", (const void *)node->source, node->offset), args, node);
}

/* The call of such an object: false where it is none. */
bool em_spread_partial(emitter *E, ir_value *object, em_arguments *args, const ast_node *node, em *out_callee) {
    fe_class *c = object->type->kind == IR_CLASS ? fe_class_of(object->type->class_) : NULL;
    if (!c || !c->is_made || !ts_str_starts_with(c->name, "partial$"))
        return false;
    const ir_class *ir = object->type->class_;
    em_arguments all = {0};
    size_t positional = em_positional_count(args);
    for (size_t i = 0; i < ir->field_count; i++) {
        ts_str name = ir->fields[i].name;
        em_argument a = {.node = node, .v = em_attribute_of(E, em_value(object), name, node, false)};
        if (!i) {
            *out_callee = a.v;
            continue;
        }
        if (ts_str_starts_with(name, "k$"))
            continue;
        TS_APPEND(E->arena, all.items, all.count, all.capacity, a);
    }
    for (size_t i = 0; i < positional; i++)
        TS_APPEND(E->arena, all.items, all.count, all.capacity, args->items[i]);
    for (size_t i = 0; i < ir->field_count; i++) {
        ts_str name = ir->fields[i].name;
        if (!ts_str_starts_with(name, "k$"))
            continue;
        em_argument a = {.node = node, .name = {name.data + 2, name.length - 2}};
        a.v = em_attribute_of(E, em_value(object), name, node, false);
        bool is_given = false;
        for (size_t k = positional; k < args->count; k++)
            is_given = is_given || ts_str_equal(args->items[k].name, a.name);
        if (!is_given)
            TS_APPEND(E->arena, all.items, all.count, all.capacity, a);
    }
    for (size_t i = positional; i < args->count; i++)
        TS_APPEND(E->arena, all.items, all.count, all.capacity, args->items[i]);
    *args = all;
    return true;
}

/* frontend/emit_starred.c - f(*xs) of a list whose length is known only at run time, given to parameters that have names.
 *
 *   def f(a, b, c=3, *rest)     f(1, *xs)   =>   check(len(xs) >= 1); f(1, xs[0], xs[1] if len(xs) > 1 else 3, *xs[2:]) */
#include "frontend/emit_builtin.h"

static bool is_named(const em_arguments *args, ts_str name) {
    for (size_t i = 0; i < args->count; i++)
        if (ts_str_equal(args->items[i].name, name))
            return true;
    return false;
}

static em item_at(emitter *E, ir_value *list, size_t at, const ast_node *node) {
    return em_value(em_op(E, "__getitem__", node, 2, list, ir_build_int(&E->b, (int64_t)at)));
}

/* Item `at` where the list is as long, else the parameter's default. */
static em item_or_default(emitter *E, fe_scope *scope, ir_value *list, ir_value *size, size_t at,
                          const ast_parameter *p, const ast_node *node) {
    rt_value value;
    if (!fe_evaluate_expression(E->fe, scope, p->default_value, &value)) {
        E->failed = true;
        return em_error();
    }
    ir_value *otherwise = ir_build_const(&E->b, value);
    rt_release(value);
    em_choice choice;
    em_choose(E, &choice, em_row(E, "gt.int", node, 2, size, ir_build_int(&E->b, (int64_t)at)));
    em_choose_other(E, &choice, item_at(E, list, at, node).value);
    return em_value(em_choose_end(E, &choice, otherwise, node));
}

/* The arguments with such a list given to the named parameters; false after an error. */
bool em_spread_list(emitter *E, const fe_function *f, size_t skipped, em_arguments *args, const ast_node *node) {
    const ast_parameters *p = &f->node->parameters;
    size_t star = args->count;
    for (size_t i = 0; i < args->count; i++) {
        if (star < args->count && !args->items[i].name.length)
            return true; /* what stands behind it has no place that is known */
        if (ts_str_is(args->items[i].name, "*")) {
            if (star < args->count)
                return true;
            star = i;
        }
    }
    if (star == args->count || args->items[star].v.kind != EM_VALUE || f->is_library)
        return true;
    ir_value *list = args->items[star].v.value;
    size_t first = skipped + star, named = first, required = 0;
    bool takes_rest = false;
    for (size_t i = first; i < p->count; i++)
        takes_rest = takes_rest || p->items[i].is_star;
    while (named < p->count && !p->items[named].is_star && !p->items[named].is_double_star &&
           !p->items[named].is_keyword_only && !is_named(args, p->items[named].name))
        named++;
    if (named == first)
        return true;
    for (size_t i = first; i < named; i++)
        required += !p->items[i].default_value;
    ir_value **names = TS_NEW_ARRAY(E->arena, ir_value *, required + 1);
    for (size_t i = 0; i < required; i++)
        names[i] = ir_build_str(&E->b, p->items[first + i].name);
    ir_value *size = em_op(E, "len", node, 1, list);
    em bounds[5] = {em_value(size), em_value(em_list_of(E, names, required, em_simple(E, IR_STR))),
                    em_value(ir_build_int(&E->b, takes_rest ? -1 : (int64_t)(named - first))),
                    em_value(ir_build_int(&E->b, (int64_t)star)), em_value(ir_build_str(&E->b, f->bare_name))};
    em_call_python(E, "builtins.check_arguments", bounds, 5, node);
    em_arguments out = {0};
    for (size_t i = 0; i < star; i++)
        TS_APPEND(E->arena, out.items, out.count, out.capacity, args->items[i]);
    for (size_t i = first; i < named; i++) {
        em_argument a = {.node = node};
        a.v = p->items[i].default_value ? item_or_default(E, f->scope, list, size, i - first, &p->items[i], node)
                                        : item_at(E, list, i - first, node);
        if (a.v.kind != EM_VALUE)
            return false;
        TS_APPEND(E->arena, out.items, out.count, out.capacity, a);
    }
    if (takes_rest) {
        em_argument rest = args->items[star];
        rest.v = em_value(em_op(E, "slice", node, 4, list, ir_build_int(&E->b, (int64_t)(named - first)),
                                ir_build_none(&E->b), ir_build_int(&E->b, 1)));
        TS_APPEND(E->arena, out.items, out.count, out.capacity, rest);
    }
    for (size_t i = star + 1; i < args->count; i++)
        TS_APPEND(E->arena, out.items, out.count, out.capacity, args->items[i]);
    *args = out;
    return true;
}

/* frontend/init_eval_namedtuple.c - collections.namedtuple() and the call of typing.NamedTuple: a class without types
 * for its fields, so that each tuple has those of its own items. */
#include "frontend/init_eval_internal.h"
#include "frontend/rewrite.h"

enum { MAX_NAMES = 255 };

static ts_status add_name(evaluator *ev, rt_value v, ts_str *names, size_t *count) {
    if (v.tag == RT_TAG_TUPLE && v.as.tuple->count == 2) /* ("x", int) */
        v = v.as.tuple->items[0];
    if (!ev_is_str(v))
        return ts_raise("TypeError", "Type names and field names must be strings");
    if (*count == MAX_NAMES)
        return ts_raise("ValueError", "a named tuple has at most %d fields here", MAX_NAMES);
    for (size_t i = 0; i < *count; i++)
        if (ts_str_equal(names[i], ev_text(v)))
            return ts_raise("ValueError", "Encountered duplicate field name: '%.*s'", TS_STR_ARG(ev_text(v)));
    names[(*count)++] = ts_arena_str(ev->arena, ev_text(v));
    return NULL;
}

/* "x y", "x, y" or a list or tuple of names. */
static ts_status field_names(evaluator *ev, rt_value v, ts_str *names, size_t *count) {
    if (v.tag == RT_TAG_LIST || v.tag == RT_TAG_TUPLE) {
        size_t n = v.tag == RT_TAG_LIST ? v.as.list->count : v.as.tuple->count;
        const rt_value *items = v.tag == RT_TAG_LIST ? v.as.list->items : v.as.tuple->items;
        for (size_t i = 0; i < n; i++)
            TS_TRY(add_name(ev, items[i], names, count));
        return NULL;
    }
    if (!ev_is_str(v))
        return ts_raise("TypeError", "namedtuple() needs the names of its fields");
    ts_str text = ev_text(v);
    for (size_t from = 0; from < text.length;) {
        size_t to = from;
        while (to < text.length && !strchr(" ,\t\n", text.data[to]))
            to++;
        if (to > from) {
            rt_value name;
            TS_TRY(rt_str_make((ts_str){text.data + from, to - from}, &name));
            ts_status status = add_name(ev, name, names, count);
            rt_release(name);
            TS_TRY(status);
        }
        from = to + 1;
    }
    return NULL;
}

static ts_status give_defaults(evaluator *ev, fe_scope *scope, rt_value defaults, ast_node **fields, size_t count) {
    bool is_list = defaults.tag == RT_TAG_LIST;
    if (!is_list && defaults.tag != RT_TAG_TUPLE)
        return rt_is_none(defaults) ? NULL : ts_raise("TypeError", "defaults of a named tuple must be a list or tuple");
    size_t n = is_list ? defaults.as.list->count : defaults.as.tuple->count;
    const rt_value *items = is_list ? defaults.as.list->items : defaults.as.tuple->items;
    if (n > count)
        return ts_raise("TypeError", "Got more default values than field names");
    for (size_t i = 0; i < n; i++) {
        ast_node *field = fields[count - n + i];
        ts_str name = ts_arena_format(ev->arena, "$default%zu", i);
        ir_module_retain(ev->fe->module, items[i]);
        fe_scope_set(ev->arena, scope, name, (fe_binding){.kind = FE_VALUE, .value = items[i]});
        field->right = rw_name(ev->arena, name, field);
    }
    return NULL;
}

ts_status ev_namedtuple(evaluator *ev, ev_arguments *args, rt_value *out) {
    rt_value slots[5];
    TS_TRY(ev_take(args, "namedtuple", "typename,field_names,rename,defaults,module", slots));
    ts_str names[MAX_NAMES], path = TS_STR("typing.Any");
    size_t count = 0;
    if (!ev_is_given(slots[0]) || !ev_is_str(slots[0]) || !ev_is_given(slots[1]))
        return ts_raise("TypeError", "namedtuple() needs a name and the names of its fields");
    TS_TRY(field_names(ev, slots[1], names, &count));
    ast_node place = {.source = ev->fe->scope->source};
    fe_scope *scope = fe_scope_make(ev->arena, ev->fe->scope, ev->fe->scope->source, TS_STR("__main__"));
    fe_scope_set(ev->arena, scope, TS_STR("$any"), (fe_binding){.kind = FE_NAME, .path = path});
    ast_node *node = rw_class(ev->arena, ts_arena_str(ev->arena, ev_text(slots[0])), &place);
    for (size_t i = 0; i < count; i++) {
        ast_node *field = rw_node(ev->arena, AST_ANN_ASSIGN, &place);
        field->left = rw_name(ev->arena, names[i], &place);
        field->third = rw_name(ev->arena, TS_STR("$any"), &place);
        rw_append(ev->arena, &node->body, field);
    }
    if (ev_is_given(slots[3]))
        TS_TRY(give_defaults(ev, scope, slots[3], node->body.items, count));
    fe_class *c = fe_class_declare(ev->fe, scope, node, ts_arena_format(ev->arena, "__main__.%.*s", TS_STR_ARG(node->text)));
    c->kind = RT_CLASS_NAMED_TUPLE;
    c->is_open_tuple = true;
    for (size_t i = 0; i < c->variable_count; i++) {
        fe_class_variable *v = &c->variables[i];
        const fe_binding *given = v->initial ? fe_map_get(&scope->names, v->initial->text) : NULL;
        v->is_evaluated = given != NULL;
        if (given)
            v->value = given->value;
    }
    return fe_binding_to_value(ev->fe, (fe_binding){.kind = FE_CLASS, .class_ = c}, out);
}

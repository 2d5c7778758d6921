/* frontend/emit_callable.c - functions as values, generators and iterators: objects of classes made for them.
 *
 * A function that is stored, handed on or returned is an object whose class has what it captured as fields and
 * __call__ as its body (rewrite.h). A call of a generator function makes an object with advance(). Both go
 * the way of user classes from there on. */
#include "frontend/emit_builtin.h"
#include "frontend/rewrite.h"

/* ---- classes made for types ---- */

/* A variant of a class for arguments of these types; one per call where nothing says what its items are. */
static fe_class *class_for(emitter *E, const ast_node *class_node, fe_scope *scope, ts_str name, ts_str identity,
                           em_arguments *args, const ast_node *call) {
    const ast_node *init = NULL;
    for (size_t i = 0; i < class_node->body.count && !init; i++)
        if (class_node->body.items[i]->kind == AST_FUNCTION && ts_str_is(class_node->body.items[i]->text, "__init__"))
            init = class_node->body.items[i];
    size_t count = init ? init->parameters.count : 0;
    const ir_type **types = TS_NEW_ARRAY(E->arena, const ir_type *, count + 1);
    ts_buffer key = {0};
    ts_buffer_str(&key, identity);
    bool is_open = !args->count;
    for (size_t i = 0, next = 1; i < args->count; i++) {
        em *v = &args->items[i].v;
        size_t at = args->items[i].name.length ? 1 : next++;
        while (args->items[i].name.length && at < count && !ts_str_equal(init->parameters.items[at].name, args->items[i].name))
            at++;
        ir_value *x = em_ir(E, *v, args->items[i].node ? args->items[i].node : call, NULL);
        if (!x) {
            ts_buffer_deinit(&key);
            return NULL;
        }
        *v = (em){.kind = EM_VALUE, .value = x, .is_tuple = v->is_tuple};
        if (at >= count)
            continue;
        types[at] = ir_type_forget(E->m, x->type);
        ir_value **items;
        size_t items_count;
        is_open = is_open || (em_is_list_literal(x, &items, &items_count) && !items_count);
        ts_buffer_format(&key, ",%zu:%p", at, (const void *)types[at]);
    }
    if (is_open)
        ts_buffer_format(&key, "@%p:%u", (const void *)call->source, call->offset);
    ts_str k = {key.data, key.length};
    fe_class *c = fe_map_get(&E->fe->made_classes, k);
    if (!c) {
        c = fe_class_declare(E->fe, scope, class_node,
                             ts_arena_format(E->arena, "%.*s$%zu", (int)name.length, name.data, E->fe->made_classes.count));
        c->is_made = true;
        fe_function *f = fe_map_get(&c->methods, TS_STR("__init__"));
        if (f)
            f->given_types = types;
        fe_map_set(E->arena, &E->fe->made_classes, ts_arena_str(E->arena, k), c);
    }
    ts_buffer_deinit(&key);
    return c;
}

/* Where all of its __init__ is declared, there is nothing that calls could leave open. */
bool em_is_open_class(const fe_class *c) {
    const fe_function *init = fe_class_method(c, TS_STR("__init__"));
    bool is_declared = init && init->node->parameters.count > 1;
    for (size_t i = 1; is_declared && i < init->node->parameters.count; i++)
        is_declared = init->node->parameters.items[i].annotation != NULL;
    return c->is_library && !c->is_made && !is_declared && ts_str_starts_with(c->name, "python.");
}

em em_construct_open(emitter *E, fe_class *c, em_arguments *args, const ast_node *node) {
    ts_str identity = ts_arena_format(E->arena, "%p", (void *)c);
    fe_class *made = class_for(E, c->node, c->scope, c->name, identity, args, node);
    return made ? em_construct(E, made, args, node) : em_error();
}

static em make(emitter *E, const char *name, em *args, size_t count, const ast_node *node) {
    return em_call_python(E, name, args, count, node);
}

/* ---- what a nested function captures ---- */

static ts_str node_key(emitter *E, const ast_node *node) {
    return ts_arena_format(E->arena, "%p:%u:%d", (const void *)node->source, node->offset, (int)node->kind);
}

static bool is_local(const emitter *E, ts_str name) {
    for (size_t i = E->local_count; i-- > 0;)
        if (ts_str_equal(E->locals[i].name, name))
            return true;
    return fe_map_get(&E->variables, name) != NULL;
}

static fe_map *captured_names(emitter *E, const ast_node *closure, ts_str *out_list) {
    fe_map free_names = {0};
    fe_map *names = TS_NEW(E->arena, fe_map);
    rw_free_names(E->arena, closure, &free_names);
    ts_buffer list = {0};
    for (size_t i = 0; i < free_names.count; i++) {
        ts_str n = free_names.keys[i];
        if (!is_local(E, n) || (closure->kind == AST_FUNCTION && ts_str_equal(n, closure->text)))
            continue;
        fe_map_set(E->arena, names, n, names);
        ts_buffer_str(&list, n);
        ts_buffer_char(&list, ' ');
    }
    *out_list = ts_arena_str(E->arena, (ts_str){list.data, list.length});
    ts_buffer_deinit(&list);
    return names;
}

static bool has_nonlocal(const ast_node *n, ts_str name) {
    if (!n)
        return false;
    if (n->kind == AST_NONLOCAL)
        for (size_t i = 0; i < n->list.count; i++)
            if (ts_str_equal(n->list.items[i]->text, name))
                return true;
    const ast_list *lists[] = {&n->body, &n->orelse, &n->finally_body};
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < lists[k]->count; i++)
            if (has_nonlocal(lists[k]->items[i], name))
                return true;
    return false;
}

/* Whether the enclosing function binds the name after the closure stands there. */
static bool is_bound_after(emitter *E, const ast_node *n, ts_str name, uint32_t offset, bool in_loop) {
    fe_map bound = {0};
    if (!n || n->kind == AST_LAMBDA)
        return false;
    if (n->kind == AST_FUNCTION && n != E->function->node)
        return false;
    bool is_loop = n->kind == AST_FOR || n->kind == AST_WHILE;
    bool holds = n->offset <= offset && offset < n->offset + n->length;
    bool is_binding = n->kind == AST_ASSIGN || n->kind == AST_AUG_ASSIGN || n->kind == AST_ANN_ASSIGN || n->kind == AST_FOR;
    if (is_binding && (n->offset > offset || in_loop || (is_loop && holds))) {
        ast_node shell = *n;
        shell.body = shell.orelse = shell.finally_body = (ast_list){0};
        ast_node function = {.kind = AST_FUNCTION};
        ast_node *items[1] = {&shell};
        function.body = (ast_list){.items = items, .count = 1};
        rw_bound_names(E->arena, &function, &bound);
        if (fe_map_get(&bound, name))
            return true;
    }
    const ast_list *lists[] = {&n->body, &n->orelse, &n->finally_body};
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < lists[k]->count; i++)
            if (is_bound_after(E, lists[k]->items[i], name, offset, in_loop || (is_loop && holds)))
                return true;
    return false;
}

/* A captured variable that changes lives in an object of the enclosing function: all is emitted anew. */
static bool needs_cell(emitter *E, const ast_node *closure, ts_str name) {
    if (!E->function || ts_str_is(name, "$cell") || !fe_map_get(&E->variables, name))
        return false;
    fe_map bound = {0};
    rw_bound_names(E->arena, E->function->node, &bound);
    if (!fe_map_get(&bound, name))
        return false;
    if (!has_nonlocal(closure, name) && !is_bound_after(E, E->function->node, name, closure->offset, false))
        return false;
    return em_share_variable(E, name);
}

/* The variable lives in $cell from the next round on; false: it does already. */
bool em_share_variable(emitter *E, ts_str name) {
    ts_str key = node_key(E, E->function->node);
    fe_map *cells = fe_map_get(&E->fe->cells, key);
    if (!cells) {
        cells = TS_NEW(E->arena, fe_map);
        fe_map_set(E->arena, &E->fe->cells, key, cells);
    }
    if (fe_map_get(cells, name))
        return false;
    fe_map_set(E->arena, cells, name, cells);
    fe_relearn(E->fe);
    return true;
}

/* The function's node with the variables that live in $cell as its attributes; itself where there are none. */
const ast_node *em_with_cells(emitter *E, const fe_function *f) {
    const fe_map *cells = E->fe->cells.count ? fe_map_get(&E->fe->cells, node_key(E, f->node)) : NULL;
    if (!cells)
        return f->node;
    rewriter r = {.arena = E->arena, .names = cells, .object = TS_STR("$cell")};
    ts_str copy_key = ts_arena_format(E->arena, "cells %.*s %zu", TS_STR_ARG(node_key(E, f->node)), cells->count);
    ast_node *known = fe_map_get(&E->fe->closure_nodes, copy_key); /* one tree: types of [] in it are kept by node */
    ast_node *copy = TS_NEW(E->arena, ast_node);
    *copy = *f->node;
    copy->body = (ast_list){0};
    ast_node *empty = rw_class(E->arena, TS_STR("cell"), f->node);
    rw_append(E->arena, &empty->body, rw_node(E->arena, AST_PASS, f->node));
    ts_str name = ts_arena_format(E->arena, "cell.%.*s", (int)f->name.length, f->name.data);
    ts_str key = ts_arena_format(E->arena, "cell%p", (const void *)f);
    fe_class *c = fe_map_get(&E->fe->made_classes, key);
    if (!c) {
        c = fe_class_declare(E->fe, f->scope, empty, name);
        c->is_made = true;
        fe_map_set(E->arena, &E->fe->made_classes, key, c);
    }
    E->cell_class = c;
    if (known)
        return known;
    fe_map_set(E->arena, &E->fe->closure_nodes, copy_key, copy);
    rw_append(E->arena, &copy->body, rw_assign(E->arena, rw_name(E->arena, TS_STR("$cell"), f->node),
                                               rw_call(E->arena, rw_name(E->arena, TS_STR("$new_cell"), f->node), NULL,
                                                       f->node), f->node));
    for (size_t i = 0; i < f->node->parameters.count; i++) {
        ts_str p = f->node->parameters.items[i].name;
        if (fe_map_get(cells, p))
            rw_append(E->arena, &copy->body, rw_assign(E->arena, rw_attribute(E->arena, r.object, p, f->node),
                                                       rw_name(E->arena, p, f->node), f->node));
    }
    ast_list body = rw_copy_list(&r, &f->node->body);
    for (size_t i = 0; i < body.count; i++)
        rw_append(E->arena, &copy->body, body.items[i]);
    return copy;
}

em em_new_cell(emitter *E, const ast_node *node) {
    em_arguments none = {0};
    return E->cell_class ? em_construct(E, E->cell_class, &none, node) : em_error();
}

static bool captured_values(emitter *E, const ast_node *closure, const fe_map *names, em_arguments *out) {
    for (size_t i = 0; i < names->count; i++) {
        ts_str n = names->keys[i];
        if (names->values[i] != names) { /* i=i: the value of now */
            em_argument a = {.v = em_expression(E, names->values[i], NULL), .node = closure};
            if (a.v.kind == EM_ERROR)
                return false;
            TS_APPEND(E->arena, out->items, out->count, out->capacity, a);
            continue;
        }
        if (needs_cell(E, closure, n))
            return false;
        size_t slot = (size_t)fe_map_get(&E->variables, n);
        bool is_pushed = false;
        for (size_t k = 0; k < E->local_count; k++)
            is_pushed = is_pushed || ts_str_equal(E->locals[k].name, n);
        if (!is_pushed && slot && !E->env.slots[slot - 1].is_set) {
            EM_UNSUPPORTED(E, closure, "a function that uses the variable '%.*s' before it is assigned is not supported yet",
                           TS_STR_ARG(n));
            return false;
        }
        em_argument a = {.v = em_expression(E, rw_name(E->arena, n, closure), NULL), .node = closure};
        if (a.v.kind == EM_ERROR)
            return false;
        TS_APPEND(E->arena, out->items, out->count, out->capacity, a);
    }
    return true;
}

/* ---- function objects ---- */

static const ts_str object_name = {"$c", 2};

/* class: __init__($c, captured...), __call__($c, parameters...): body */
static ast_node *closure_class(emitter *E, const ast_node *closure, fe_map *names) {
    rewriter r = {.arena = E->arena, .names = names, .object = object_name,
                  .itself = closure->kind == AST_FUNCTION ? closure->text : (ts_str){0}};
    ast_node *call = rw_node(E->arena, AST_FUNCTION, closure);
    call->text = TS_STR("__call__");
    call->third = closure->kind == AST_FUNCTION ? closure->third : NULL;
    ast_parameter self = {.name = object_name, .place = rw_name(E->arena, object_name, closure)};
    TS_APPEND(E->arena, call->parameters.items, call->parameters.count, call->parameters.capacity, self);
    for (size_t i = 0; i < closure->parameters.count; i++) {
        ast_parameter p = closure->parameters.items[i];
        fe_map reads = {0};
        bool captures = false;
        if (p.default_value)
            rw_free_names(E->arena, p.default_value, &reads);
        for (size_t k = 0; k < reads.count; k++)
            captures = captures || is_local(E, reads.keys[k]);
        if (captures) { /* i=i: the value at the time */
            fe_map_set(E->arena, names, p.name, p.default_value);
            continue;
        }
        TS_APPEND(E->arena, call->parameters.items, call->parameters.count, call->parameters.capacity, p);
    }
    fe_map visible = {0};
    for (size_t i = 0; i < names->count; i++) {
        bool is_parameter = false;
        for (size_t k = 1; k < call->parameters.count; k++)
            is_parameter = is_parameter || ts_str_equal(call->parameters.items[k].name, names->keys[i]);
        if (!is_parameter)
            fe_map_set(E->arena, &visible, names->keys[i], &visible);
    }
    r.names = &visible;
    if (closure->kind == AST_LAMBDA) {
        ast_node *give = rw_node(E->arena, AST_RETURN, closure->left);
        give->left = rw_copy(&r, closure->left);
        rw_append(E->arena, &call->body, give);
    } else {
        call->body = rw_copy_list(&r, &closure->body);
    }
    ast_node *c = rw_class(E->arena, closure->kind == AST_FUNCTION ? closure->text : TS_STR("lambda"), closure);
    rw_append(E->arena, &c->body, rw_init(E->arena, object_name, NULL, names, closure));
    rw_append(E->arena, &c->body, call);
    return c;
}

static em closure_object(emitter *E, const ast_node *closure) {
    ts_str list;
    fe_map *names = captured_names(E, closure, &list);
    ts_str key = ts_arena_format(E->arena, "%.*s|%.*s", TS_STR_ARG(node_key(E, closure)), TS_STR_ARG(list));
    ast_node *c = fe_map_get(&E->fe->closure_nodes, key);
    if (c) {
        names = fe_map_get(&E->fe->closure_captures, key);
    } else {
        c = closure_class(E, closure, names);
        fe_map_set(E->arena, &E->fe->closure_captures, key, names);
        fe_map_set(E->arena, &E->fe->closure_nodes, key, c);
    }
    em_arguments args = {0};
    if (!captured_values(E, closure, names, &args))
        return em_error();
    fe_class *made = class_for(E, c, E->scope, ts_arena_format(E->arena, "function.%.*s", TS_STR_ARG(c->text)), key, &args,
                               closure);
    return made ? em_construct(E, made, &args, closure) : em_error();
}

static ts_str binding_key(emitter *E, const fe_binding *b) {
    if (b->kind == FE_FUNCTION)
        return ts_arena_format(E->arena, "function.%.*s", (int)b->function->name.length, b->function->name.data);
    if (b->kind == FE_CLASS)
        return ts_arena_format(E->arena, "class.%.*s", (int)b->class_->name.length, b->class_->name.data);
    return ts_arena_format(E->arena, "name.%.*s", (int)b->path.length, b->path.data);
}

/* A function, class or builtin that captures nothing, or a bound method: an object that says which. */
static em binding_object(emitter *E, em v, const ast_node *node) {
    ts_str key = v.kind == EM_METHOD ? ts_arena_format(E->arena, "method.%s.%.*s", em_type_text(E, v.value->type),
                                                       TS_STR_ARG(v.name))
                                     : binding_key(E, v.binding);
    fe_class *c = fe_map_get(&E->fe->made_classes, key);
    if (!c) {
        ast_node *class_node = rw_class(E->arena, TS_STR("function"), node);
        if (v.kind == EM_METHOD) {
            fe_map self = {0};
            fe_map_set(E->arena, &self, TS_STR("self"), &self);
            rw_append(E->arena, &class_node->body, rw_init(E->arena, object_name, NULL, &self, node));
        }
        c = fe_class_declare(E->fe, E->scope, class_node, key);
        c->is_made = true;
        em *copy = TS_NEW(E->arena, em);
        *copy = v;
        c->callable = copy;
        if (v.kind == EM_METHOD) {
            const ir_type **types = TS_NEW_ARRAY(E->arena, const ir_type *, 2);
            types[1] = v.value->type;
            ((fe_function *)fe_map_get(&c->methods, TS_STR("__init__")))->given_types = types;
        }
        fe_map_set(E->arena, &E->fe->made_classes, ts_arena_str(E->arena, key), c);
    }
    em_argument self = {.v = v.kind == EM_METHOD ? em_value(v.value) : em_error(), .node = node};
    em_arguments args = {.items = &self, .count = v.kind == EM_METHOD};
    return em_construct(E, c, &args, node);
}

bool em_is_function(em v) {
    if (v.kind == EM_CLOSURE || (v.kind == EM_METHOD && !v.after && !v.binding && v.value))
        return true;
    if (v.kind == EM_BINDING && v.binding->kind == FE_NAME) {
        static const char *const spaces[] = {"builtins.", "torch.", "math.", "operator.", "functools.", "itertools.", "heapq."};
        bool is_callable = false;
        for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
            is_callable = is_callable || ts_str_starts_with(v.binding->path, spaces[i]);
        return is_callable;
    }
    return v.kind == EM_BINDING && (v.binding->kind == FE_FUNCTION ||
                                    (v.binding->kind == FE_CLASS && v.binding->class_->kind != RT_CLASS_MODULE));
}

/* NULL after an error. */
ir_value *em_function_object(emitter *E, em v, const ast_node *node) {
    if (!node || !node->source || node->source->is_archive || ++E->depth > 300)
        return NULL;
    em r = v.kind == EM_CLOSURE ? closure_object(E, v.node) : binding_object(E, v, node);
    E->depth--;
    return r.kind == EM_VALUE ? r.value : NULL;
}

/* What an object of binding_object stands for. */
bool em_callable_of(emitter *E, ir_value *object, em *out) {
    fe_class *c = object->type->kind == IR_CLASS ? fe_class_of(object->type->class_) : NULL;
    if (!c || !c->callable)
        return false;
    *out = *(const em *)c->callable;
    if (out->kind == EM_METHOD)
        out->value = em_ir(E, em_attribute_of(E, em_value(object), TS_STR("self"), NULL, false), NULL, NULL);
    return true;
}

/* ---- generators ---- */

bool em_is_generator(const ast_node *function) {
    if (function->kind != AST_FUNCTION)
        return false;
    for (size_t i = 0; i < function->body.count; i++)
        if (rw_has_yield(function->body.items[i]))
            return true;
    return false;
}

static bool is_context(emitter *E, const ast_node *function, fe_scope *scope) {
    for (size_t i = 0; i < function->decorators.count; i++) {
        fe_binding b = fe_resolve_dotted(E->fe, scope, function->decorators.items[i]);
        if (b.kind == FE_NAME && ts_str_is(b.path, "contextlib.contextmanager"))
            return true;
    }
    return false;
}

static em generator_object(emitter *E, const ast_node *function, fe_scope *scope, const fe_map *names, ts_str key,
                           em_arguments *args, const ast_node *node) {
    ast_node *c = fe_map_get(&E->fe->closure_nodes, key);
    if (!c) {
        const ast_node *where = NULL;
        const char *why = NULL;
        c = is_context(E, function, scope) ? rw_context(E->arena, function, names, &where, &why)
                                           : rw_generator(E->arena, function, names, &where, &why);
        if (!c) {
            EM_UNSUPPORTED(E, where, "%s", why);
            return em_error();
        }
        fe_map_set(E->arena, &E->fe->closure_nodes, key, c);
    }
    fe_class *made = class_for(E, c, scope, ts_arena_format(E->arena, "generator.%.*s", TS_STR_ARG(function->text)), key,
                               args, node);
    return made ? em_construct(E, made, args, node) : em_error();
}

em em_call_generator(emitter *E, fe_function *f, ir_value *self, em_arguments *args, const ast_node *node) {
    em_arguments all = {0};
    em_argument first = {.v = em_value(self), .node = node};
    if (self)
        TS_APPEND(E->arena, all.items, all.count, all.capacity, first);
    for (size_t i = 0; i < args->count; i++)
        TS_APPEND(E->arena, all.items, all.count, all.capacity, args->items[i]);
    return generator_object(E, f->node, f->scope, NULL, node_key(E, f->node), &all, node);
}

em em_call_nested_generator(emitter *E, const ast_node *function, em *args, size_t count, const ast_node *node) {
    ts_str list;
    fe_map *names = captured_names(E, function, &list);
    em_arguments all = {0};
    if (!captured_values(E, function, names, &all))
        return em_error();
    for (size_t i = 0; i < count; i++) {
        em_argument a = {.v = args[i], .node = node};
        TS_APPEND(E->arena, all.items, all.count, all.capacity, a);
    }
    ts_str key = ts_arena_format(E->arena, "%.*s|%.*s", TS_STR_ARG(node_key(E, function)), TS_STR_ARG(list));
    return generator_object(E, function, E->scope, names, key, &all, node);
}

/* ---- iterators ---- */

bool em_is_iterator(const ir_type *t) {
    fe_class *c = t->kind == IR_CLASS ? fe_class_of(t->class_) : NULL;
    return c && c->is_made && fe_class_method(c, TS_STR("advance"));
}

static bool is_plain_object(const ir_type *t) {
    return t->kind == IR_CLASS && t->class_->base.kind == RT_CLASS_PLAIN;
}

bool em_is_walked_once(em v) {
    return v.is_mapped || v.kind == EM_GENERATOR || v.kind == EM_REVERSED || v.kind == EM_ZIP || v.kind == EM_ENUMERATE;
}

/* Whether the items of v come one by one, from an object that may change or never end. */
bool em_is_lazy(emitter *E, em v) {
    if (v.kind == EM_VALUE && v.value)
        return is_plain_object(v.value->type);
    bool any = false;
    if (v.kind == EM_ZIP || v.kind == EM_ENUMERATE)
        for (size_t i = 0; i < v.count; i++)
            any = any || em_is_lazy(E, v.items[i]);
    return any;
}

/* An object with advance() and value; NULL after an error. */
ir_value *em_iterator(emitter *E, em v, const ast_node *node) {
    if (v.kind == EM_ERROR)
        return NULL;
    if (v.kind == EM_ENUMERATE && em_is_lazy(E, v)) {
        em args[2] = {em_value(em_iterator(E, v.items[0], node)),
                      em_value(v.value ? v.value : ir_build_int(&E->b, 0))};
        return args[0].value ? em_ir(E, make(E, "iterators.enumerate_iterator", args, 2, node), node, NULL) : NULL;
    }
    if (v.kind == EM_ZIP && em_is_lazy(E, v)) {
        em args[3];
        if (v.count < 2 || v.count > 3) {
            EM_UNSUPPORTED(E, node, "zip of %zu iterators is not supported yet", v.count);
            return NULL;
        }
        for (size_t i = 0; i < v.count; i++) {
            args[i] = em_value(em_iterator(E, v.items[i], node));
            if (!args[i].value)
                return NULL;
        }
        const char *name = v.count == 2 ? "iterators.zip_iterator" : "iterators.zip_three_iterator";
        return em_ir(E, make(E, name, args, v.count, node), node, NULL);
    }
    if (v.kind == EM_VALUE && is_plain_object(v.value->type)) {
        const ir_type *t = v.value->type;
        if (em_is_iterator(t))
            return v.value;
        if (em_class_has_method(t, "__iter__")) {
            v = em_call_method0(E, v.value, "__iter__", NULL, 0, node);
            if (v.kind != EM_VALUE || !v.value || !em_class_has_method(v.value->type, "__next__"))
                return em_iterator(E, v, node);
            t = v.value->type;
        }
        if (em_class_has_method(t, "__next__"))
            return em_ir(E, make(E, "iterators.next_iterator", &v, 1, node), node, NULL);
        if (em_class_has_method(t, "__getitem__"))
            return em_ir(E, make(E, "iterators.item_iterator", &v, 1, node), node, NULL);
        EM_ERR(E, node, "expected something to loop over, found %s", em_type_text(E, t));
        return NULL;
    }
    em list = em_value(em_as_list(E, v, node));
    return list.value ? em_ir(E, make(E, "iterators.list_iterator", &list, 1, node), node, NULL) : NULL;
}

/* ---- nested functions that call themselves ---- */

bool em_is_object_closure(emitter *E, const ast_node *closure) {
    return E->fe->object_closures.count && fe_map_get(&E->fe->object_closures, node_key(E, closure));
}

void em_make_object_closure(emitter *E, const ast_node *closure) {
    fe_map_set(E->arena, &E->fe->object_closures, node_key(E, closure), E->fe);
    fe_relearn(E->fe);
}

em em_made_object(emitter *E, const ast_node *class_node, ts_str name, ts_str identity, em_arguments *args,
                  const ast_node *node) {
    fe_class *made = class_for(E, class_node, E->scope, name, identity, args, node);
    return made ? em_construct(E, made, args, node) : em_error();
}

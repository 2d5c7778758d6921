/* frontend/init_eval_class.c - the evaluator of scripts: class statements and instances. */
#include <stdlib.h>

#include "frontend/init_eval_internal.h"
#include "frontend/rewrite.h"

fe_class *ev_builtin_class(evaluator *ev, const char *path) {
    return fe_builtin_class(ev->fe, ts_str_of(path));
}

/* ---- instances: objects whose class grows ---- */

ev_instance *ev_instance_of(rt_value v) {
    if (v.tag != RT_TAG_OBJECT)
        return NULL;
    const ir_class *c = v.as.object->class_->info;
    /* Instances point to themselves by their methods' place: see ev_instance_make. */
    return c && c->methods == (const ir_method *)(const void *)c ? (ev_instance *)(uintptr_t)c : NULL;
}

fe_class *ev_class_of(rt_value v) {
    const rt_class *c = NULL;
    if (v.tag == RT_TAG_OBJECT)
        c = v.as.object->class_;
    else if (v.tag == RT_TAG_TUPLE)
        c = v.as.tuple->class_;
    else if (v.tag == RT_TAG_ENUM)
        c = v.as.enumeration->class_;
    const ir_class *ir = c ? c->info : NULL;
    return ir ? ir->frontend : NULL;
}

ts_status ev_instance_make(evaluator *ev, fe_class *class_, rt_value *out) {
    ev_instance *i = TS_NEW(ev->arena, ev_instance);
    i->class_ = class_;
    i->ir.frontend = class_;
    i->ir.methods = (ir_method *)(void *)i; /* the mark: see ev_instance_of */
    i->ir.base.info = &i->ir;
    i->ir.base.name = class_->name;
    i->ir.base.bare_name = class_->bare_name;
    i->ir.base.kind = class_->kind;
    return rt_object_make(&i->ir.base, out);
}

int64_t ev_field_find(const ev_instance *i, ts_str name) {
    for (size_t k = 0; k < i->count; k++)
        if (ts_str_equal(i->names[k], name))
            return (int64_t)k;
    return -1;
}

ts_status ev_field_set(evaluator *ev, rt_value object, ts_str name, rt_value value,
                       ev_field_kind kind) {
    ev_instance *i = ev_instance_of(object);
    rt_object *o = object.as.object;
    if (!i) {
        int64_t field = rt_class_field(o->class_, name);
        if (field < 0)
            return ts_raise("AttributeError", "the object has no attribute '%.*s' any more to set",
                            TS_STR_ARG(name));
        rt_assign(&o->fields[field], rt_retain(value));
        return NULL;
    }
    int64_t field = ev_field_find(i, name);
    if (field >= 0) {
        i->fields[field].kind = kind;
        rt_assign(&o->fields[field], rt_retain(value));
        return NULL;
    }
    if (i->count == i->capacity) {
        size_t capacity = i->capacity ? i->capacity * 2 : 8;
        rt_value *values = realloc(o->fields, capacity * sizeof *values);
        if (!values)
            return ts_no_memory();
        o->fields = values;
        ts_str *names = TS_NEW_ARRAY(ev->arena, ts_str, capacity);
        ev_field *fields = TS_NEW_ARRAY(ev->arena, ev_field, capacity);
        if (i->count) {
            memcpy(names, i->names, i->count * sizeof *names);
            memcpy(fields, i->fields, i->count * sizeof *fields);
        }
        i->names = names;
        i->fields = fields;
        i->capacity = capacity;
        i->ir.base.fields = names;
    }
    i->names[i->count] = name;
    i->fields[i->count] = (ev_field){.kind = kind, .is_persistent = true};
    o->fields[i->count] = rt_retain(value);
    i->count++;
    i->ir.base.field_count = o->field_count = i->count;
    return NULL;
}

void ev_field_remove(rt_value object, int64_t index) {
    ev_instance *i = ev_instance_of(object);
    rt_object *o = object.as.object;
    size_t at = (size_t)index;
    rt_value old = o->fields[at];
    for (size_t k = at; k + 1 < i->count; k++) {
        o->fields[k] = o->fields[k + 1];
        i->names[k] = i->names[k + 1];
        i->fields[k] = i->fields[k + 1];
    }
    i->count--;
    i->ir.base.field_count = o->field_count = i->count;
    rt_release(old);
}

/* ---- class statements ---- */

static ts_status check_statement(const ast_node *s) {
    switch (s->kind) {
    case AST_FUNCTION:
    case AST_CLASS:
    case AST_ASSIGN:
    case AST_ANN_ASSIGN:
    case AST_PASS:
        return NULL;
    case AST_RETURN: return ev_unsupported(s, "return outside a function");
    case AST_BREAK: return ev_unsupported(s, "break outside a loop");
    case AST_CONTINUE: return ev_unsupported(s, "continue outside a loop");
    case AST_EXPR_STMT:
        if (s->left->kind == AST_STRING || s->left->kind == AST_ELLIPSIS)
            return NULL;
        if (s->left->kind == AST_YIELD_EXPR)
            return ev_unsupported(s, "yield outside a function");
        break;
    default: break;
    }
    return ev_unsupported(s, "statements other than definitions and assignments are not supported in a class body");
}

static ts_status check_methods(evaluator *ev, ev_frame *frame, const ast_node *node) {
    for (size_t i = 0; i < node->body.count; i++) {
        const ast_node *f = node->body.items[i];
        TS_TRY(check_statement(f));
        for (size_t k = 0; f->kind == AST_FUNCTION && k < f->decorators.count; k++) {
            const ast_node *d = f->decorators.items[k];
            fe_binding b;
            rt_value hold;
            if (d->kind == AST_ATTRIBUTE &&
                (ts_str_is(d->text, "setter") || ts_str_is(d->text, "getter") ||
                 ts_str_is(d->text, "deleter")))
                continue;
            TS_TRY(ev_binding(ev, frame, d->kind == AST_CALL ? d->left : d, &b, &hold));
            rt_release(hold);
            if (b.kind == FE_CLASS)
                return ev_unsupported(d, "a class as the decorator of a method is not supported");
        }
    }
    return NULL;
}

static bool has_keyword(const ast_node *call, const char *name) {
    for (size_t i = 0; call->kind == AST_CALL && i < call->list.count; i++)
        if (call->list.items[i]->kind == AST_KEYWORD && ts_str_is(call->list.items[i]->text, name))
            return true;
    return false;
}

/* field(...) says by keywords what it is. */
static bool has_default(const fe_class_variable *v) {
    const ast_node *initial = v->initial;
    bool is_field = initial && initial->kind == AST_CALL && ts_str_is(initial->left->text, "field");
    return initial && (!is_field || has_keyword(initial, "default") || has_keyword(initial, "default_factory"));
}

/* Members of an Enum have names of their own; a dataclass's fields without a default come first. */
static ts_status check_fields(const fe_class *c) {
    for (size_t i = 0; c->kind == RT_CLASS_ENUM && i < c->node->body.count; i++)
        for (size_t k = 0; k < i; k++) {
            const ast_node *a = c->node->body.items[k], *b = c->node->body.items[i];
            bool are_names = a->kind == AST_ASSIGN && b->kind == AST_ASSIGN && a->list.items[0]->kind == AST_NAME &&
                             b->list.items[0]->kind == AST_NAME;
            if (are_names && ts_str_equal(a->list.items[0]->text, b->list.items[0]->text))
                return ev_unsupported(b, "a member of an Enum is defined twice");
        }
    bool by_name = false, any = false;
    for (size_t i = 0; i < c->node->decorators.count; i++)
        by_name = by_name || has_keyword(c->node->decorators.items[i], "kw_only");
    for (size_t i = 0; c->is_dataclass && !by_name && i < c->variable_count; i++) {
        const fe_class_variable *v = &c->variables[i];
        if (!v->annotation || v->annotation->kind != AST_NAME)
            continue; /* ClassVar[int] is no field */
        if (ts_str_is(v->annotation->text, "KW_ONLY") || ts_str_is(v->annotation->text, "ClassVar"))
            return NULL;
        bool is_field = v->initial && v->initial->kind == AST_CALL &&
                        (has_keyword(v->initial, "init") || has_keyword(v->initial, "kw_only"));
        if (any && !has_default(v) && !is_field)
            return ev_unsupported(v->node, "a field without a default follows one with a default");
        any = any || (has_default(v) && !is_field);
    }
    return NULL;
}

static ts_status has_own_decorator(evaluator *ev, ev_frame *frame, const ast_node *f, bool *out) {
    *out = false;
    for (size_t k = 0; f->kind == AST_FUNCTION && k < f->decorators.count; k++) {
        const ast_node *d = f->decorators.items[k];
        fe_binding b;
        rt_value hold;
        if (d->kind == AST_ATTRIBUTE && ts_str_is(d->text, "setter"))
            continue;
        TS_TRY(ev_binding(ev, frame, d->kind == AST_CALL ? d->left : d, &b, &hold));
        rt_release(hold);
        *out = *out || b.kind == FE_FUNCTION;
    }
    return NULL;
}

/* @deco def work(self, x): what deco gives of the method takes its name; the method itself stays under another. */
static ts_status decorate_methods(evaluator *ev, ev_frame *frame, fe_class *c) {
    for (size_t i = 0; i < c->node->body.count; i++) {
        const ast_node *node = c->node->body.items[i];
        bool is_own;
        TS_TRY(has_own_decorator(ev, frame, node, &is_own));
        fe_function *f = is_own ? fe_map_get(&c->methods, node->text) : NULL;
        if (!f)
            continue;
        f->bare_name = f->name = ts_arena_format(ev->arena, "%.*s.undecorated.%.*s", TS_STR_ARG(c->bare_name),
                                                 TS_STR_ARG(node->text)); /* no other class has it */
        fe_map_set(ev->arena, &c->methods, f->bare_name, f);
        rt_value v;
        TS_TRY(fe_binding_to_value(ev->fe, (fe_binding){.kind = FE_FUNCTION, .function = f, .place = node}, &v));
        ts_status status = ev_decorate(ev, frame, &node->decorators, &v);
        fe_binding made = fe_binding_of_value(v);
        ir_module_retain(ev->fe->module, v);
        rt_release(v);
        TS_TRY(status);
        if (made.kind != FE_FUNCTION)
            return ev_unsupported(node, "a decorator of a method that gives no function is not supported");
        fe_function *g = TS_NEW(ev->arena, fe_function);
        *g = *made.function;
        g->owner = c;
        g->bare_name = node->text;
        g->name = ts_arena_format(ev->arena, "%.*s.%.*s", TS_STR_ARG(c->name), TS_STR_ARG(node->text));
        g->is_static = f->is_static;
        g->is_class_method = f->is_class_method;
        g->is_property = f->is_property;
        fe_map_set(ev->arena, &c->methods, node->text, g);
    }
    return NULL;
}

static ts_status class_variables(evaluator *ev, ev_frame *frame, fe_class *c) {
    fe_scope *scope = ev_scope_make(ev, frame->scope ? frame->scope : frame->globals,
                                    c->node->source);
    ev_frame inner = {.scope = scope, .globals = scope, .module = frame->module};
    ts_status status = NULL;
    for (size_t i = 0; i < c->node->body.count && !status; i++) { /* nested classes */
        const ast_node *n = c->node->body.items[i];
        if (n->kind != AST_CLASS)
            continue;
        rt_value v;
        status = ev_class_statement(ev, &inner, n, &v);
        if (!status)
            status = ev_store_name(ev, &inner, n->text, v);
        if (!status) {
            fe_class_variable variable = {.name = n->text, .node = n, .initial = n, .value = v,
                                          .is_evaluated = true};
            ir_module_retain(ev->fe->module, v);
            TS_APPEND(ev->arena, c->variables, c->variable_count, c->variable_capacity, variable);
        }
        rt_release(v);
    }
    for (size_t i = 0; i < c->variable_count && !status; i++) {
        fe_class_variable *v = &c->variables[i];
        if (!v->initial || v->is_evaluated)
            continue;
        rt_value value;
        status = ev_expression(ev, &inner, v->initial, &value);
        if (status)
            break;
        if (c->is_dataclass && v->annotation &&
            (v->initial->kind == AST_LIST || v->initial->kind == AST_DICT))
            status = ts_raise("ValueError",
                              "mutable default %.*s for field %.*s is not allowed: use default_factory",
                              TS_STR_ARG(ev_type_name(value)), TS_STR_ARG(v->name));
        ir_module_retain(ev->fe->module, value);
        rt_release(value);
        v->value = value;
        v->is_evaluated = true;
        if (!status)
            status = ev_store_name(ev, &inner, v->name, value);
    }
    ev_frame_deinit(&inner);
    return status;
}

ts_status ev_class_statement(evaluator *ev, ev_frame *frame, const ast_node *node, rt_value *out) {
    *out = rt_none();
    fe_scope *scope = frame->scope ? frame->scope : frame->globals;
    ts_str name = ts_arena_format(ev->arena, "__torch__.%.*s", (int)node->text.length,
                                  node->text.data);
    TS_TRY(check_methods(ev, frame, node));
    for (size_t i = 0; i < node->list.count; i++) { /* a base that is no name, or unknown */
        const ast_node *base = node->list.items[i];
        if (base->kind == AST_KEYWORD)
            continue;
        fe_binding b;
        rt_value hold;
        if (base->kind == AST_CALL) { /* class P(namedtuple("P", "x y")): under a name of its own */
            TS_TRY(ev_expression(ev, frame, base, &hold));
            ts_str hidden = ts_arena_format(ev->arena, "$base%zu.%.*s", i, TS_STR_ARG(node->text));
            fe_scope_set(ev->arena, scope, hidden, fe_binding_of_value(hold));
            rt_release(hold);
            base = node->list.items[i] = rw_name(ev->arena, hidden, base);
        }
        TS_TRY(ev_binding(ev, frame, base->kind == AST_SUBSCRIPT ? base->left : base, &b, &hold));
        rt_release(hold);
        if (b.kind == FE_VALUE)
            return ts_status_set_place(
                ts_raise("TypeError", "the base of class %.*s is no class", TS_STR_ARG(node->text)),
                ev_place(base));
    }
    size_t errors = ev->fe->diagnostics->error_count;
    fe_class *c = fe_class_declare(ev->fe, scope, node, name);
    if (ev->fe->diagnostics->error_count > errors)
        return fe_diagnostics_status(ev->fe->diagnostics);
    TS_TRY(check_fields(c));
    if (c->kind != RT_CLASS_ENUM)
        TS_TRY(class_variables(ev, frame, c));
    TS_TRY(decorate_methods(ev, frame, c));
    return fe_binding_to_value(ev->fe, (fe_binding){.kind = FE_CLASS, .class_ = c, .place = node},
                               out);
}

/* ---- construction ---- */

typedef struct data_field {
    ts_str name;
    const fe_class_variable *variable;
} data_field;

/* Fields of a dataclass or named tuple, those of bases first. */
static size_t data_fields(fe_class *c, data_field *out, size_t max) {
    size_t count = 0;
    for (size_t k = c->ancestor_count + 1; k-- > 0;) {
        fe_class *from = k ? c->ancestors[k - 1] : c;
        for (size_t i = 0; i < from->variable_count; i++) {
            if (!from->variables[i].annotation)
                continue;
            size_t at = 0;
            while (at < count && !ts_str_equal(out[at].name, from->variables[i].name))
                at++;
            if (at == max)
                return count;
            out[at] = (data_field){from->variables[i].name, &from->variables[i]};
            count += at == count;
        }
    }
    return count;
}

bool ev_is_data_field(const fe_class *c, ts_str name) {
    fe_class_variable *v = fe_class_find_variable(c, name);
    return v && v->annotation;
}

/* The default of a dataclass field: field(default=..., default_factory=...) was kept as a dict. */
static ts_status field_default(evaluator *ev, const fe_class_variable *v, bool *out_found,
                               rt_value *out) {
    *out_found = v->is_evaluated;
    *out = rt_none();
    if (!v->is_evaluated)
        return NULL;
    bool is_field = v->initial && v->initial->kind == AST_CALL && v->value.tag == RT_TAG_DICT;
    if (!is_field) {
        *out = rt_retain(v->value);
        return NULL;
    }
    rt_dict_entry *e;
    for (size_t at = 0; (e = rt_dict_next(v->value.as.dict, &at));) {
        if (ev_is_str(e->key) && ts_str_is(ev_text(e->key), "default")) {
            *out = rt_retain(e->value);
            return NULL;
        }
        if (ev_is_str(e->key) && ts_str_is(ev_text(e->key), "default_factory"))
            return ev_call_with(ev, e->value, NULL, 0, out);
    }
    *out_found = false;
    return NULL;
}

enum { MAX_DATA_FIELDS = 256 };

static ts_status bind_fields(evaluator *ev, fe_class *c, ev_arguments *args, data_field *fields,
                             size_t count, rt_value *slots) {
    size_t position = 0;
    for (size_t i = 0; i < args->count; i++) {
        size_t k = position;
        if (args->items[i].name.length) {
            k = 0;
            while (k < count && !ts_str_equal(fields[k].name, args->items[i].name))
                k++;
            if (k == count)
                return ts_raise("TypeError", "%.*s.__init__() got an unexpected keyword argument '%.*s'",
                                TS_STR_ARG(c->bare_name), TS_STR_ARG(args->items[i].name));
        } else {
            position++;
        }
        if (k >= count)
            return ts_raise("TypeError", "%.*s.__init__() takes %zu positional arguments but %zu were given",
                            TS_STR_ARG(c->bare_name), count + 1, args->count + 1);
        if (ev_is_given(slots[k]))
            return ts_raise("TypeError", "%.*s.__init__() got multiple values for argument '%.*s'",
                            TS_STR_ARG(c->bare_name), TS_STR_ARG(fields[k].name));
        slots[k] = rt_retain(args->items[i].value);
    }
    for (size_t k = 0; k < count; k++) {
        if (ev_is_given(slots[k]))
            continue;
        bool found;
        rt_value v;
        TS_TRY(field_default(ev, fields[k].variable, &found, &v));
        if (!found)
            return ts_raise("TypeError", "%.*s.__init__() missing 1 required positional argument: '%.*s'",
                            TS_STR_ARG(c->bare_name), TS_STR_ARG(fields[k].name));
        slots[k] = v;
    }
    return NULL;
}

static ts_status construct_data(evaluator *ev, fe_class *c, ev_arguments *args, rt_value *out) {
    data_field *fields = TS_NEW_ARRAY(ev->arena, data_field, MAX_DATA_FIELDS);
    size_t count = data_fields(c, fields, MAX_DATA_FIELDS);
    rt_value *slots = TS_NEW_ARRAY(ev->arena, rt_value, count + 1);
    for (size_t i = 0; i < count; i++)
        slots[i].tag = RT_TAG_UNINITIALIZED;
    ts_status status = bind_fields(ev, c, args, fields, count, slots);
    if (!status && c->kind == RT_CLASS_NAMED_TUPLE) {
        ir_class *ir = fe_class_ir(ev->fe, c);
        status = ev_tuple(slots, count, out);
        if (!status)
            out->as.tuple->class_ = ir ? &ir->base : NULL;
    } else if (!status) {
        status = ev_instance_make(ev, c, out);
        for (size_t i = 0; i < count && !status; i++)
            status = ev_field_set(ev, *out, fields[i].name, slots[i], EV_PLAIN);
        fe_function *post = fe_class_method(c, TS_STR("__post_init__"));
        if (!status && post) {
            ev_arguments none = {0};
            rt_value ignored;
            status = ev_call_function(ev, post, out, &none, &ignored);
            rt_release(ignored);
        }
    }
    for (size_t i = 0; i < count; i++)
        rt_release(slots[i]);
    return status;
}

static ts_status construct_enum(evaluator *ev, fe_class *c, ev_arguments *args, rt_value *out) {
    ir_class *ir = fe_class_ir(ev->fe, c);
    for (size_t i = 0; ir && args->count == 1 && i < ir->enum_member_count; i++) {
        bool same;
        TS_TRY(ev_equal(ev, ir->enum_members[i].as.enumeration->value, args->items[0].value, &same));
        if (same || rt_is(ir->enum_members[i], args->items[0].value)) {
            *out = rt_retain(ir->enum_members[i]);
            return NULL;
        }
    }
    rt_value text = rt_none();
    if (args->count == 1)
        TS_TRY(rt_to_repr(args->items[0].value, &text));
    ts_status status = ts_raise("ValueError", "%.*s is not a valid %.*s",
                                TS_STR_ARG(ev_is_str(text) ? ev_text(text) : TS_STR("?")),
                                TS_STR_ARG(c->bare_name));
    rt_release(text);
    return status;
}

ts_status ev_exception_make(evaluator *ev, fe_class *class_, rt_value args_tuple, rt_value *out) {
    TS_TRY(ev_instance_make(ev, class_, out));
    return ev_field_set(ev, *out, TS_STR("args"), args_tuple, EV_PLAIN);
}

ts_status ev_raise_object(evaluator *ev, rt_value exception) {
    fe_class *c = ev_class_of(exception);
    if (exception.tag != RT_TAG_OBJECT || !c || c->kind != RT_CLASS_EXCEPTION)
        return ts_raise("TypeError", "exceptions must derive from BaseException");
    ts_buffer text = {0};
    ts_status status = ev_to_text(ev, exception, false, &text);
    if (!status)
        status = ts_buffer_status(&text);
    if (!status) {
        rt_assign(&ev->raised, rt_retain(exception));
        status = ts_raise_str(c->bare_name, (ts_str){text.data ? text.data : "", text.length});
    }
    ts_buffer_deinit(&text);
    return status;
}

ts_status ev_construct(evaluator *ev, fe_class *c, ev_arguments *args, rt_value *out) {
    *out = rt_none();
    if (c->kind == RT_CLASS_ENUM)
        return construct_enum(ev, c, args, out);
    fe_function *init = fe_class_method(c, TS_STR("__init__"));
    if (c->kind == RT_CLASS_NAMED_TUPLE || (c->is_dataclass && !init)) {
        ts_status status = construct_data(ev, c, args, out);
        if (status)
            rt_assign(out, rt_none());
        return status;
    }
    if (c->kind == RT_CLASS_INTERFACE)
        return ts_raise("TypeError", "an interface cannot be made an object: %.*s",
                        TS_STR_ARG(c->bare_name));
    rt_value object, ignored = rt_none();
    TS_TRY(ev_instance_make(ev, c, &object));
    ts_status status = NULL;
    if (c->kind == RT_CLASS_EXCEPTION) {
        rt_value tuple;
        status = rt_tuple_make(args->count, &tuple);
        for (size_t i = 0; i < args->count && !status; i++)
            tuple.as.tuple->items[i] = rt_retain(args->items[i].value);
        if (!status)
            status = ev_field_set(ev, object, TS_STR("args"), tuple, EV_PLAIN);
        rt_release(tuple);
        if (!status && init)
            status = ev_call_function(ev, init, &object, args, &ignored);
    } else {
        ev_container kind = ev_container_kind(ev, object);
        if (init)
            status = ev_call_function(ev, init, &object, args, &ignored);
        else if (kind != EV_NO_CONTAINER)
            status = ev_container_init(ev, object, kind, args);
        else if (c->kind == RT_CLASS_MODULE && !args->count)
            status = ev_module_init(ev, object);
        else if (args->count)
            status = c->kind == RT_CLASS_MODULE
                         ? ts_raise("TypeError", "%.*s.__init__() takes 1 positional argument but %zu were given",
                                    TS_STR_ARG(c->bare_name), args->count + 1)
                         : ts_raise("TypeError", "%.*s() takes no arguments", TS_STR_ARG(c->bare_name));
    }
    rt_release(ignored);
    if (status)
        rt_release(object);
    else
        *out = object;
    return status;
}

/* ---- isinstance ---- */

static bool is_builtin_instance(rt_value v, ts_str name) {
    if (ts_str_is(name, "int"))
        return ev_is_int(v) && !(v.tag == RT_TAG_INT && v.aux);
    if (ts_str_is(name, "bool"))
        return v.tag == RT_TAG_BOOL;
    if (ts_str_is(name, "float"))
        return v.tag == RT_TAG_FLOAT;
    if (ts_str_is(name, "complex"))
        return v.tag == RT_TAG_COMPLEX;
    if (ts_str_is(name, "str"))
        return v.tag == RT_TAG_STR;
    if (ts_str_is(name, "list"))
        return v.tag == RT_TAG_LIST;
    if (ts_str_is(name, "tuple"))
        return v.tag == RT_TAG_TUPLE;
    if (ts_str_is(name, "dict"))
        return v.tag == RT_TAG_DICT && !ev_is_set(v);
    if (ts_str_is(name, "set") || ts_str_is(name, "frozenset"))
        return ev_is_set(v);
    if (ts_str_is(name, "range"))
        return ev_as_range(v) != NULL;
    if (ts_str_is(name, "type"))
        return fe_binding_of_value(v).kind == FE_CLASS;
    return ts_str_is(name, "object");
}

bool ev_isinstance(evaluator *ev, rt_value v, fe_binding type) {
    (void)ev;
    if (type.kind == FE_CLASS) {
        fe_class *c = ev_class_of(v);
        return c && fe_class_is_a(c, type.class_);
    }
    if (type.kind != FE_NAME)
        return false;
    ts_str path = type.path;
    if (ts_str_starts_with(path, "builtins."))
        return is_builtin_instance(v, (ts_str){path.data + 9, path.length - 9});
    if (ts_str_ends_with(path, ".Parameter"))
        return v.tag == RT_TAG_TENSOR && (v.as.counted->flags & EV_FLAG_PARAMETER);
    if (ts_str_ends_with(path, ".Tensor"))
        return v.tag == RT_TAG_TENSOR;
    if (ts_str_ends_with(path, ".Size"))
        return v.tag == RT_TAG_TUPLE;
    if (ts_str_ends_with(path, ".Enum"))
        return v.tag == RT_TAG_ENUM;
    if (ts_str_ends_with(path, ".device"))
        return v.tag == RT_TAG_DEVICE;
    if (ts_str_is(path, "torch.dtype"))
        return v.tag == RT_TAG_INT && v.aux == RT_MEANING_DTYPE;
    if (ts_str_is(path, "typing.List") || ts_str_is(path, "typing.Sequence") ||
        ts_str_is(path, "typing.Iterable") || ts_str_is(path, "typing.MutableSequence"))
        return v.tag == RT_TAG_LIST || (!ts_str_is(path, "typing.List") && v.tag == RT_TAG_TUPLE) ||
               (ts_str_is(path, "typing.Iterable") && (v.tag == RT_TAG_DICT || v.tag == RT_TAG_STR));
    if (ts_str_is(path, "typing.Tuple"))
        return v.tag == RT_TAG_TUPLE;
    if (ts_str_is(path, "typing.Dict") || ts_str_is(path, "typing.Mapping") ||
        ts_str_ends_with(path, ".OrderedDict"))
        return v.tag == RT_TAG_DICT && !ev_is_set(v);
    if (ts_str_ends_with(path, ".Callable"))
        return v.tag == RT_TAG_FUNCTION || ev_is_module(v);
    if (ts_str_is(path, "numbers.Number") || ts_str_is(path, "numbers.Real"))
        return ev_is_number(v);
    if (ts_str_is(path, "numbers.Integral"))
        return ev_is_int(v);
    return false;
}

/* frontend/init_eval_call.c - the evaluator of scripts: functions, arguments, calls. */
#include <stdio.h>
#include <stdlib.h>

#include "frontend/init_eval_internal.h"

static const char bound_kind[] = "bound method";
static const char partial_kind[] = "partial";
static const char super_kind[] = "super";

typedef struct bound {
    rt_value self;
    ts_str name; /* in the arena */
} bound;

static void bound_release(void *pointer) {
    rt_release(((bound *)pointer)->self);
    free(pointer);
}

ts_status ev_bound_make(rt_value self, ts_str name, rt_value *out) {
    bound b = {rt_retain(self), name};
    return rt_capsule_copy(bound_kind, &b, sizeof b, bound_release, out);
}

typedef struct partial {
    rt_value callee;
    ev_arguments args;
} partial;

void ev_arguments_add(evaluator *ev, ev_arguments *a, ts_str name, rt_value take) {
    (void)ev;
    if (a->count == a->capacity) {
        size_t capacity = a->capacity ? a->capacity * 2 : 8;
        fe_value_argument *items = realloc(a->items, capacity * sizeof *items);
        if (!items) { /* told by the next allocation that can tell */
            rt_release(take);
            return;
        }
        a->items = items;
        a->capacity = capacity;
    }
    a->items[a->count++] = (fe_value_argument){name, take};
}

void ev_arguments_release(ev_arguments *a) {
    for (size_t i = 0; i < a->count; i++)
        rt_release(a->items[i].value);
    free(a->items);
    *a = (ev_arguments){0};
}

static void partial_release(void *pointer) {
    partial *p = pointer;
    rt_release(p->callee);
    ev_arguments_release(&p->args);
    free(p);
}

ts_status ev_partial_make(rt_value callee, const ev_arguments *args, rt_value *out) {
    partial p = {rt_retain(callee), {0}};
    for (size_t i = 1; i < args->count; i++)
        ev_arguments_add(NULL, &p.args, args->items[i].name, rt_retain(args->items[i].value));
    return rt_capsule_copy(partial_kind, &p, sizeof p, partial_release, out);
}

static void super_release(void *pointer) {
    rt_release(((ev_super *)pointer)->self);
    free(pointer);
}

ts_status ev_super_make(rt_value self, fe_class *after, rt_value *out) {
    fe_class *c = ev_class_of(self);
    fe_binding b = fe_binding_of_value(self);
    if (b.kind == FE_CLASS)
        c = b.class_; /* in a class method */
    ev_super s = {rt_retain(self), c ? c : after, after};
    return rt_capsule_copy(super_kind, &s, sizeof s, super_release, out);
}

const ev_super *ev_as_super(rt_value v) { return rt_capsule_of(v, super_kind); }

fe_function *ev_find_method_after(fe_class *class_, fe_class *after, ts_str name,
                                  fe_class **out_class) {
    size_t at = 0;
    if (after != class_) {
        for (; at < class_->ancestor_count; at++)
            if (class_->ancestors[at] == after)
                break;
        at++;
    }
    for (; at < class_->ancestor_count; at++) {
        fe_function *f = fe_map_get(&class_->ancestors[at]->methods, name);
        if (f) {
            *out_class = class_->ancestors[at];
            return f;
        }
    }
    *out_class = NULL;
    return NULL;
}

/* ---- making functions ---- */

static rt_value *defaults_of(evaluator *ev, const fe_function *f) {
    char key[sizeof(void *)];
    ts_str k = ev_pointer_key(ev, f, key);
    rt_value *values = fe_map_get(&ev->defaults, k);
    if (values)
        return values;
    size_t n = f->node->parameters.count;
    values = TS_NEW_ARRAY(ev->arena, rt_value, n ? n : 1);
    for (size_t i = 0; i < n; i++)
        values[i].tag = RT_TAG_UNINITIALIZED;
    fe_map_set(ev->arena, &ev->defaults, ts_arena_str(ev->arena, k), values);
    return values;
}

static ts_status compute_default(evaluator *ev, ev_frame *frame, const fe_function *f, size_t i,
                                 rt_value *values) {
    rt_value v;
    const ast_node *node = f->node->parameters.items[i].default_value;
    if (frame) {
        TS_TRY(ev_expression(ev, frame, node, &v));
    } else {
        ev_frame at = {.scope = f->scope, .globals = f->scope, .module = f->scope};
        TS_TRY(ev_expression(ev, &at, node, &v));
    }
    ir_module_retain(ev->fe->module, v);
    rt_release(v);
    values[i] = v;
    return NULL;
}

bool fe_function_default(struct fe_context *fe, const fe_function *function, size_t parameter,
                         rt_value *out) {
    *out = rt_none();
    if (!fe->script)
        return false;
    char key[sizeof(void *)];
    rt_value *values = fe_map_get(&fe->script->defaults, ev_pointer_key(fe->script, function, key));
    if (!values || !ev_is_given(values[parameter]))
        return false;
    *out = values[parameter];
    return true;
}

ts_status ev_function_value(evaluator *ev, ev_frame *frame, const ast_node *node, rt_value *out) {
    fe_scope *scope = frame->scope;
    for (ev_frame *f = frame; !scope && f; f = f->outer)
        scope = f->scope;
    if (!scope)
        scope = frame->globals;
    ts_str name = node->text.length ? node->text : TS_STR("<lambda>");
    if (scope->path.length)
        name = ts_arena_format(ev->arena, "%.*s.%.*s", (int)scope->path.length, scope->path.data,
                               (int)name.length, name.data);
    fe_function *f = fe_function_declare(ev->fe, scope, node, name, NULL);
    rt_value *values = NULL;
    for (size_t i = 0; i < node->parameters.count; i++)
        if (node->parameters.items[i].default_value) {
            if (!values)
                values = defaults_of(ev, f);
            TS_TRY(compute_default(ev, frame, f, i, values));
        }
    return fe_binding_to_value(ev->fe, (fe_binding){.kind = FE_FUNCTION, .function = f, .place = node},
                               out);
}

/* Decorators that change nothing for us. */
static bool is_transparent(fe_binding b) {
    if (b.kind != FE_NAME)
        return false;
    static const char *const names[] = {
        "torch.jit.script", "torch.jit.export", "torch.jit.ignore", "torch.jit.unused",
        "torch.jit.interface", "torch.jit.script_if_tracing", "torch.jit._overload",
        "torch.jit._overload_method", "torch.jit._script_if_tracing", "torch.no_grad",
        "torch.inference_mode", "torch.enable_grad", "torch.compile", "dataclasses.dataclass",
        "builtins.staticmethod", "builtins.classmethod", "builtins.property",
        "functools.lru_cache", "functools.cache", "functools.wraps", "functools.cached_property",
        "functools.total_ordering", "contextlib.contextmanager", "abc.abstractmethod", "typing.final", "typing.overload",
        "typing.no_type_check", "typing.runtime_checkable", "enum.unique",
        "torch.jit.is_scripting", "torch._jit_internal.ignore", "torch._jit_internal.export",
        "torch.jit.final", "torch.cuda.amp.autocast", "torch.autocast",
        "torch.amp.autocast", "typing.override"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ts_str_is(b.path, names[i]))
            return true;
    return false;
}

ts_status ev_decorate(evaluator *ev, ev_frame *frame, const ast_list *decorators,
                      rt_value *value) {
    for (size_t i = decorators->count; i-- > 0;) {
        const ast_node *d = decorators->items[i];
        fe_binding b;
        rt_value hold, made;
        TS_TRY(ev_binding(ev, frame, d->kind == AST_CALL ? d->left : d, &b, &hold));
        rt_release(hold);
        if (is_transparent(b))
            continue;
        TS_TRY(ev_expression(ev, frame, d, &hold));
        ts_status status = ev_call_with(ev, hold, value, 1, &made);
        rt_release(hold);
        TS_TRY(ts_status_set_place(status, ev_place(d)));
        rt_assign(value, made);
    }
    return NULL;
}

/* ---- calling functions ---- */

static ts_status argument_error(const fe_function *f, const char *format, ts_str name) {
    char text[200];
    ts_str function = f->bare_name.length ? f->bare_name : TS_STR("<lambda>");
    snprintf(text, sizeof text, format, TS_STR_ARG(name));
    if (f->owner)
        return ts_raise("TypeError", "%.*s.%.*s() %s", TS_STR_ARG(f->owner->bare_name),
                        TS_STR_ARG(function), text);
    return ts_raise("TypeError", "%.*s() %s", TS_STR_ARG(function), text);
}

typedef struct binder {
    evaluator *ev;
    const fe_function *f;
    rt_value *slots; /* one per parameter; owned */
    rt_value extra_positional, extra_keyword;
} binder;

static ts_status bind_arguments(binder *b, const rt_value *self, const ev_arguments *args) {
    const ast_parameters *p = &b->f->node->parameters;
    size_t position = 0, given = args->count + (self != NULL);
    size_t positional_max = 0;
    for (size_t i = 0; i < p->count; i++)
        if (!p->items[i].is_keyword_only && !p->items[i].is_star && !p->items[i].is_double_star)
            positional_max++;
    for (size_t i = 0; i < given; i++) {
        rt_value v = self && i == 0 ? *self : args->items[i - (self != NULL)].value;
        ts_str name = self && i == 0 ? (ts_str){0} : args->items[i - (self != NULL)].name;
        if (name.length) {
            size_t k = 0;
            for (; k < p->count; k++)
                if (!p->items[k].is_star && !p->items[k].is_double_star &&
                    !p->items[k].is_positional_only && ts_str_equal(p->items[k].name, name))
                    break;
            if (k < p->count) {
                if (ev_is_given(b->slots[k]))
                    return argument_error(b->f, "got multiple values for argument '%.*s'", name);
                b->slots[k] = rt_retain(v);
            } else if (!rt_is_none(b->extra_keyword)) {
                rt_value key;
                TS_TRY(rt_str_make(name, &key));
                ts_status status = rt_dict_set(b->extra_keyword.as.dict, key, v);
                rt_release(key);
                TS_TRY(status);
            } else {
                return argument_error(b->f, "got an unexpected keyword argument '%.*s'", name);
            }
            continue;
        }
        while (position < p->count &&
               (p->items[position].is_star || p->items[position].is_double_star ||
                p->items[position].is_keyword_only))
            position++;
        if (position < p->count) {
            if (ev_is_given(b->slots[position]))
                return argument_error(b->f, "got multiple values for argument '%.*s'",
                                      p->items[position].name);
            b->slots[position++] = rt_retain(v);
        } else if (!rt_is_none(b->extra_positional)) {
            TS_TRY(rt_list_append(b->extra_positional.as.list, v));
        } else {
            char text[80];
            snprintf(text, sizeof text, "takes %zu positional argument%s but %zu %s given",
                     positional_max, positional_max == 1 ? "" : "s", given, given == 1 ? "was" : "were");
            return argument_error(b->f, "%.*s", ts_str_of(text));
        }
    }
    for (size_t i = 0; i < p->count; i++) {
        if (p->items[i].is_star) {
            TS_TRY(ev_tuple(b->extra_positional.as.list->items,
                            b->extra_positional.as.list->count, &b->slots[i]));
        } else if (p->items[i].is_double_star) {
            b->slots[i] = rt_retain(b->extra_keyword);
        } else if (!ev_is_given(b->slots[i])) {
            if (!p->items[i].default_value)
                return argument_error(b->f, "missing 1 required positional argument: '%.*s'",
                                      p->items[i].name);
            rt_value *values = defaults_of(b->ev, b->f);
            if (!ev_is_given(values[i]))
                TS_TRY(compute_default(b->ev, NULL, b->f, i, values));
            b->slots[i] = rt_retain(values[i]);
        }
    }
    return NULL;
}

static fe_scope *module_scope(fe_scope *scope) {
    while (scope->parent)
        scope = scope->parent;
    return scope;
}

ts_status ev_call_function(evaluator *ev, fe_function *function, const rt_value *self,
                           ev_arguments *args, rt_value *out) {
    const ast_node *node = function->node;
    const ast_parameters *p = &node->parameters;
    *out = rt_none();
    TS_TRY(ev_step(ev, node));
    const ev_function_info *info = ev_info(ev, node);
    ev_frame frame = {.globals = function->scope,
                      .module = module_scope(function->scope),
                      .function = function,
                      .info = info};
    rt_value slots_small[16], *slots = slots_small;
    if (p->count > 16) {
        slots = malloc(p->count * sizeof *slots);
        if (!slots)
            return ts_no_memory();
    }
    for (size_t i = 0; i < p->count; i++)
        slots[i] = (rt_value){.tag = RT_TAG_UNINITIALIZED};
    binder b = {ev, function, slots, rt_none(), rt_none()};
    ts_status status = NULL;
    for (size_t i = 0; i < p->count && !status; i++) {
        if (p->items[i].is_star)
            status = rt_list_make(0, &b.extra_positional);
        else if (p->items[i].is_double_star)
            status = rt_dict_make(&b.extra_keyword);
    }
    if (!status)
        status = bind_arguments(&b, function->is_static ? NULL : self, args);
    if (!status && info->is_captured)
        frame.scope = ev_scope_make(ev, function->scope, node->source);
    if (!status && info->is_generator)
        status = rt_list_make(0, &frame.yields);
    if (!status && p->count && !function->is_static)
        frame.self = slots[0];
    for (size_t i = 0; i < p->count && !status; i++)
        status = ev_store_name(ev, &frame, p->items[i].name, slots[i]);
    for (size_t i = 0; i < p->count; i++)
        rt_release(slots[i]);
    if (slots != slots_small)
        free(slots);
    rt_release(b.extra_positional);
    rt_release(b.extra_keyword);
    bool grad = ev->fe->runtime.grad_enabled;
    int depth = ev->depth;
    if (!status) {
        ev->depth += 4;
        if (node->kind == AST_LAMBDA) {
            status = ev_expression(ev, &frame, node->left, out);
        } else {
            ev_flow flow;
            status = ev_block(ev, &frame, &node->body, &flow);
            if (!status && flow == EV_RETURN)
                *out = rt_retain(frame.result);
        }
    }
    if (!status)
        ev->depth = depth;
    if (!status && info->is_generator) {
        rt_release(*out);
        status = ev_iterator_make(frame.yields, out);
    }
    ev->fe->runtime.grad_enabled = grad;
    ev_frame_deinit(&frame);
    return status;
}

/* ---- calling anything ---- */

ts_status ev_call_with(evaluator *ev, rt_value callee, const rt_value *args, size_t count,
                       rt_value *out) {
    ev_arguments a = {0};
    for (size_t i = 0; i < count; i++)
        ev_arguments_add(ev, &a, (ts_str){0}, rt_retain(args[i]));
    ts_status status = ev_call_value(ev, callee, &a, out);
    ev_arguments_release(&a);
    return status;
}

static rt_value take_first(ev_arguments *args) {
    rt_value v = args->items[0].value;
    args->count--;
    memmove(args->items, args->items + 1, args->count * sizeof *args->items);
    return v;
}

ts_status ev_call(evaluator *ev, fe_binding callee, ev_arguments *args, rt_value *out) {
    *out = rt_none();
    switch (callee.kind) {
    case FE_FUNCTION:
        /* Class.method(self, ...): the first argument is self already */
        return ev_call_function(ev, callee.function, NULL, args, out);
    case FE_METHOD: return ev_call_function(ev, callee.function, &callee.value, args, out);
    case FE_CLASS: return ev_construct(ev, callee.class_, args, out);
    case FE_NAME: {
        if (ts_str_starts_with(callee.path, "builtins."))
            return ev_builtin(ev, callee.path, args, out);
        if (ts_str_starts_with(callee.path, "math."))
            return ev_math(ev, (ts_str){callee.path.data + 5, callee.path.length - 5}, args, out);
        if (ts_str_starts_with(callee.path, "unbound.") && args->count &&
            !args->items[0].name.length) {
            rt_value self = take_first(args);
            ts_status status = ev_call_method(
                ev, self, (ts_str){callee.path.data + 8, callee.path.length - 8}, args, out);
            rt_release(self);
            return status;
        }
        return ev_torch(ev, callee.path, args, out);
    }
    case FE_VALUE: return ev_call_value(ev, callee.value, args, out);
    case FE_NAMESPACE: return ts_raise("TypeError", "'module' object is not callable");
    case FE_UNBOUND: break;
    }
    return ts_raise("TypeError", "object is not callable");
}

/* Calls a module: its hooks, then forward, as Module.__call__ does. */
static ts_status call_module(evaluator *ev, rt_value self, ev_arguments *args, rt_value *out) {
    ev_instance *instance = ev_instance_of(self);
    ts_status status = NULL;
    for (size_t i = 0; instance && i < instance->hook_count && !status; i++) {
        if (!instance->hooks[i].is_pre)
            continue;
        rt_value given, result = rt_none(), pair[2] = {self, rt_none()};
        TS_TRY(rt_tuple_make(args->count, &given));
        for (size_t k = 0; k < args->count; k++)
            given.as.tuple->items[k] = rt_retain(args->items[k].value);
        pair[1] = given;
        status = ev_call_with(ev, instance->hooks[i].function, pair, 2, &result);
        if (!status && !rt_is_none(result)) {
            ev_arguments fresh = {0};
            if (result.tag == RT_TAG_TUPLE)
                for (size_t k = 0; k < result.as.tuple->count; k++)
                    ev_arguments_add(ev, &fresh, (ts_str){0}, rt_retain(result.as.tuple->items[k]));
            else
                ev_arguments_add(ev, &fresh, (ts_str){0}, rt_retain(result));
            ev_arguments_release(args);
            *args = fresh;
        }
        rt_release(result);
        rt_release(given);
    }
    if (!status)
        status = ev_call_method(ev, self, TS_STR("forward"), args, out);
    for (size_t i = 0; instance && i < instance->hook_count && !status; i++) {
        if (instance->hooks[i].is_pre)
            continue;
        rt_value given, result = rt_none();
        TS_TRY(rt_tuple_make(args->count, &given));
        for (size_t k = 0; k < args->count; k++)
            given.as.tuple->items[k] = rt_retain(args->items[k].value);
        rt_value three[3] = {self, given, *out};
        status = ev_call_with(ev, instance->hooks[i].function, three, 3, &result);
        if (!status && !rt_is_none(result))
            rt_assign(out, rt_retain(result));
        rt_release(result);
        rt_release(given);
    }
    return status;
}

ts_status ev_call_value(evaluator *ev, rt_value callee, ev_arguments *args, rt_value *out) {
    *out = rt_none();
    if (callee.tag == RT_TAG_FUNCTION)
        return ev_call(ev, fe_binding_of_value(callee), args, out);
    const bound *b = rt_capsule_of(callee, bound_kind);
    if (b)
        return ev_call_method(ev, b->self, b->name, args, out);
    const partial *p = rt_capsule_of(callee, partial_kind);
    if (p) {
        ev_arguments all = {0};
        for (size_t i = 0; i < p->args.count; i++)
            if (!p->args.items[i].name.length)
                ev_arguments_add(ev, &all, (ts_str){0}, rt_retain(p->args.items[i].value));
        for (size_t i = 0; i < args->count; i++)
            ev_arguments_add(ev, &all, args->items[i].name, rt_retain(args->items[i].value));
        for (size_t i = 0; i < p->args.count; i++) {
            bool is_given = !p->args.items[i].name.length;
            for (size_t k = 0; k < args->count && !is_given; k++)
                is_given = ts_str_equal(args->items[k].name, p->args.items[i].name);
            if (!is_given)
                ev_arguments_add(ev, &all, p->args.items[i].name, rt_retain(p->args.items[i].value));
        }
        ts_status status = ev_call_value(ev, p->callee, &all, out);
        ev_arguments_release(&all);
        return status;
    }
    if (callee.tag == RT_TAG_OBJECT) {
        fe_class *c = ev_class_of(callee);
        fe_function *f = c ? fe_class_method(c, TS_STR("__call__")) : NULL;
        if (f)
            return ev_call_function(ev, f, &callee, args, out);
        if (ev_is_module(callee))
            return call_module(ev, callee, args, out);
    }
    return ts_raise("TypeError", "'%.*s' object is not callable", TS_STR_ARG(ev_type_name(callee)));
}

static ts_status super_method(evaluator *ev, const ev_super *s, ts_str name, ev_arguments *args,
                              rt_value *out) {
    fe_class *owner;
    fe_function *f = ev_find_method_after(s->class_, s->after, name, &owner);
    if (f) {
        if (f->is_property)
            return ev_call_function(ev, f, &s->self, args, out);
        return ev_call_function(ev, f, &s->self, args, out);
    }
    if (ts_str_is(name, "__init__")) {
        ev_container kind = ev_container_kind(ev, s->self);
        if (kind != EV_NO_CONTAINER) {
            /* A class of the user derived from a container. */
            for (size_t i = 0; i < s->class_->ancestor_count; i++)
                if (s->class_->ancestors[i] == s->after && s->after->is_library)
                    kind = EV_NO_CONTAINER;
            if (kind != EV_NO_CONTAINER)
                return ev_container_init(ev, s->self, kind, args);
        }
        if (ev_is_module(s->self))
            return ev_module_init(ev, s->self);
        if (s->class_->kind == RT_CLASS_EXCEPTION) {
            rt_value tuple;
            TS_TRY(rt_tuple_make(args->count, &tuple));
            for (size_t i = 0; i < args->count; i++)
                tuple.as.tuple->items[i] = rt_retain(args->items[i].value);
            ts_status status = ev_field_set(ev, s->self, TS_STR("args"), tuple, EV_PLAIN);
            rt_release(tuple);
            return status;
        }
        return NULL;
    }
    if (ts_str_is(name, "__setattr__") && args->count == 2 && ev_is_str(args->items[0].value))
        return ev_is_module(s->self)
                   ? ev_module_set_attribute(ev, s->self, ts_arena_str(ev->arena, ev_text(args->items[0].value)),
                                             args->items[1].value)
                   : ev_field_set(ev, s->self, ts_arena_str(ev->arena, ev_text(args->items[0].value)),
                                  args->items[1].value, EV_PLAIN);
    bool found = false;
    ev_container kind = ev_container_kind(ev, s->self);
    if (kind != EV_NO_CONTAINER)
        TS_TRY(ev_container_method(ev, s->self, kind, name, args, &found, out));
    if (!found && ev_is_module(s->self))
        TS_TRY(ev_module_method(ev, s->self, name, args, &found, out));
    if (found)
        return NULL;
    return ts_raise("AttributeError", "'super' object has no attribute '%.*s'", TS_STR_ARG(name));
}

ts_status ev_call_method(evaluator *ev, rt_value self, ts_str name, ev_arguments *args,
                         rt_value *out) {
    *out = rt_none();
    const ev_super *s = ev_as_super(self);
    if (s)
        return super_method(ev, s, name, args, out);
    fe_class *c = ev_class_of(self);
    int64_t field = self.tag == RT_TAG_OBJECT ? rt_class_field(self.as.object->class_, name) : -1;
    if (field >= 0 && ev_is_given(self.as.object->fields[field])) {
        rt_value callee = rt_retain(self.as.object->fields[field]);
        ts_status status = ev_call_value(ev, callee, args, out);
        rt_release(callee);
        return status;
    }
    fe_function *f = c ? fe_class_method(c, name) : NULL;
    if (f && !f->is_property) {
        if (f->is_static)
            return ev_call_function(ev, f, NULL, args, out);
        if (f->is_class_method) {
            rt_value class_value;
            TS_TRY(fe_binding_to_value(ev->fe, (fe_binding){.kind = FE_CLASS, .class_ = c},
                                       &class_value));
            ts_status status = ev_call_function(ev, f, &class_value, args, out);
            rt_release(class_value);
            return status;
        }
        return ev_call_function(ev, f, &self, args, out);
    }
    bool found = false;
    if (!f && self.tag == RT_TAG_OBJECT) {
        ev_container kind = ev_container_kind(ev, self);
        if (kind != EV_NO_CONTAINER)
            TS_TRY(ev_container_method(ev, self, kind, name, args, &found, out));
        if (!found && ev_is_module(self))
            TS_TRY(ev_module_method(ev, self, name, args, &found, out));
        if (found)
            return NULL;
        if (ts_str_is(name, "__init__"))
            return NULL; /* object.__init__ */
    }
    if (!f && self.tag != RT_TAG_FUNCTION && self.tag != RT_TAG_CAPSULE) {
        TS_TRY(ev_value_method(ev, self, name, args, &found, out));
        if (found)
            return NULL;
    }
    rt_value callee;
    TS_TRY(ev_get_attribute(ev, self, name, &callee));
    if (rt_capsule_of(callee, bound_kind)) { /* it would come back here */
        rt_release(callee);
        return ts_raise("AttributeError", "'%.*s' object has no attribute '%.*s'",
                        TS_STR_ARG(ev_type_name(self)), TS_STR_ARG(name));
    }
    ts_status status = ev_call_value(ev, callee, args, out);
    rt_release(callee);
    return status;
}

ts_status ev_call_method0(evaluator *ev, rt_value self, ts_str name, rt_value *out) {
    ev_arguments none = {0};
    return ev_call_method(ev, self, name, &none, out);
}

/* ---- arguments of built-ins ---- */
ts_status ev_take(const ev_arguments *args, const char *function, const char *names,
                  rt_value *slots) {
    size_t count = 0;
    ts_str list[16];
    for (const char *at = names; *at && count < 16;) {
        const char *comma = strchr(at, ',');
        size_t n = comma ? (size_t)(comma - at) : strlen(at);
        list[count] = (ts_str){at, n};
        slots[count++] = (rt_value){.tag = RT_TAG_UNINITIALIZED};
        at += n + (comma != NULL);
    }
    size_t position = 0;
    for (size_t i = 0; i < args->count; i++) {
        const fe_value_argument *a = &args->items[i];
        if (!a->name.length) {
            if (position >= count)
                return ts_raise("TypeError", "%s() takes at most %zu arguments (%zu given)",
                                function, count, args->count);
            slots[position++] = a->value;
            continue;
        }
        size_t k = 0;
        while (k < count && !ts_str_equal(list[k], a->name))
            k++;
        if (k == count)
            return ts_raise("TypeError", "%s() got an unexpected keyword argument '%.*s'", function,
                            TS_STR_ARG(a->name));
        if (ev_is_given(slots[k]))
            return ts_raise("TypeError", "%s() got multiple values for argument '%.*s'", function,
                            TS_STR_ARG(a->name));
        slots[k] = a->value;
    }
    return NULL;
}

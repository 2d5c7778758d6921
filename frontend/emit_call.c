/* frontend/emit_call.c - calls of functions, classes, methods, closures. */
#include <stdio.h>

#include "frontend/emit_builtin.h"

fe_function *em_copy_function(emitter *E, const fe_function *f) {
    fe_function *copy = TS_NEW(E->arena, fe_function);
    *copy = *f;
    copy->signature = NULL;
    copy->ir = NULL;
    copy->is_emitting = false;
    copy->variants = (fe_map){0};
    return copy;
}

/* ---- arguments ---- */

static const ir_type *hint_from(em_signature *s, size_t skip, size_t position, ts_str name) {
    if (!s)
        return NULL;
    if (name.length) {
        for (size_t i = 0; i < s->count; i++)
            if (ts_str_equal(s->parameters[i].name, name))
                return s->parameters[i].type;
        return NULL;
    }
    return position + skip < s->count && !s->parameters[position + skip].is_star
               ? s->parameters[position + skip].type : NULL;
}

typedef struct hints {
    em_signature *signature;
    size_t skip;
    const ir_class *fields; /* NamedTuple, dataclass: field types */
    const ir_type *item;    /* list.append and its like: the last argument */
    bool item_is_list;
} hints;

static ir_class *class_of_callee(emitter *E, em callee, fe_class **out) {
    if (callee.kind != EM_BINDING || callee.binding->kind != FE_CLASS)
        return NULL;
    *out = callee.binding->class_;
    return (*out)->kind == RT_CLASS_EXCEPTION ? NULL : fe_class_ir(E->fe, *out);
}

static hints hints_of(emitter *E, em callee) {
    hints h = {0};
    fe_class *c = NULL;
    ir_class *ir = class_of_callee(E, callee, &c);
    if (callee.kind == EM_BINDING && callee.binding->kind == FE_FUNCTION) {
        h.signature = em_signature_of(E->fe, callee.binding->function, NULL);
    } else if (ir) {
        fe_function *init = fe_class_method(c, TS_STR("__init__"));
        if (init) {
            h.signature = em_signature_of(E->fe, init, ir);
            h.skip = 1;
        } else {
            h.fields = ir;
        }
    } else if (callee.kind == EM_METHOD && callee.function) {
        h.signature = em_signature_of(E->fe, callee.function, callee.class_);
        h.skip = callee.function->is_static || callee.function->is_class_method ? 0 : 1;
    } else if (callee.kind == EM_METHOD && callee.value && callee.value->type->kind == IR_LIST) {
        ts_str n = callee.name;
        if (ts_str_is(n, "append") || ts_str_is(n, "insert") || ts_str_is(n, "index") ||
            ts_str_is(n, "remove") || ts_str_is(n, "count"))
            h.item = callee.value->type->args[0];
        else if (ts_str_is(n, "extend"))
            h.item = callee.value->type;
    } else if (callee.kind == EM_METHOD && callee.value && callee.value->type->kind == IR_DICT) {
        ts_str n = callee.name;
        if (ts_str_is(n, "setdefault") || ts_str_is(n, "get") || ts_str_is(n, "pop"))
            h.item = callee.value->type->args[1];
        else if (ts_str_is(n, "update"))
            h.item = callee.value->type;
    } else if (callee.kind == EM_VALUE && callee.value->type->kind == IR_CLASS) {
        fe_class *vc = fe_class_of(callee.value->type->class_);
        bool module = vc && vc->kind == RT_CLASS_MODULE;
        fe_function *f = vc ? fe_class_method(vc, module ? TS_STR("forward") : TS_STR("__call__")) : NULL;
        if (f) {
            h.signature = em_signature_of(E->fe, f, (ir_class *)callee.value->type->class_);
            h.skip = 1;
        }
    }
    return h;
}

static const ir_type *hint_for(const hints *h, size_t position, size_t count, ts_str name) {
    if (h->item)
        return position + 1 == count ? h->item : NULL;
    if (h->fields) {
        for (size_t i = 0; i < h->fields->field_count; i++)
            if (name.length ? ts_str_equal(h->fields->fields[i].name, name) : i == position)
                return h->fields->fields[i].type;
        return NULL;
    }
    return hint_from(h->signature, h->skip, position, name);
}

static bool evaluate_arguments(emitter *E, const ast_node *node, em callee, em_arguments *out) {
    hints h = hints_of(E, callee);
    bool ok = true;
    for (size_t i = 0; i < node->list.count; i++) {
        const ast_node *a = node->list.items[i];
        if (a->kind == AST_STARRED) {
            em v = em_expression(E, a->left, NULL);
            ir_value **literal;
            size_t literal_count;
            if (v.kind == EM_VALUE && em_is_list_literal(v.value, &literal, &literal_count)) {
                for (size_t k = 0; k < literal_count; k++) {
                    em_argument item = {.v = em_value(literal[k]), .node = a};
                    TS_APPEND(E->arena, out->items, out->count, out->capacity, item);
                }
                continue;
            }
            if (v.kind == EM_VALUE && v.value->type->kind == IR_LIST) {
                em_argument list = {.name = TS_STR("*"), .v = v, .node = a};
                TS_APPEND(E->arena, out->items, out->count, out->capacity, list);
                continue;
            }
            em_iteration it;
            if (v.kind == EM_ERROR || !em_iterate(E, v, a, &it))
                return false;
            if (!it.is_unrolled) {
                em_argument list = {.name = TS_STR("*"), .v = em_value(em_as_list(E, v, a)), .node = a};
                if (list.v.kind == EM_ERROR)
                    return false;
                TS_APPEND(E->arena, out->items, out->count, out->capacity, list);
                continue;
            }
            for (size_t k = 0; k < it.count; k++) {
                em_argument item = {.v = it.items[k], .node = a};
                TS_APPEND(E->arena, out->items, out->count, out->capacity, item);
            }
            continue;
        }
        bool is_keyword = a->kind == AST_KEYWORD;
        if (is_keyword && !a->text.length) {
            if (!em_spread_dict(E, a, out))
                return false;
            continue;
        }
        const ast_node *expression = is_keyword ? a->left : a;
        em_argument arg = {.name = is_keyword ? a->text : (ts_str){0}, .node = expression};
        arg.v = em_expression(E, expression, hint_for(&h, out->count, node->list.count, arg.name));
        ok = ok && arg.v.kind != EM_ERROR;
        TS_APPEND(E->arena, out->items, out->count, out->capacity, arg);
    }
    return ok;
}

/* ---- IR functions ---- */

static ir_value *pack_star(emitter *E, em_argument *args, const bool *used, size_t count,
                           const ir_type *list_type, const ast_node *node, bool *out_used) {
    ir_value **items = TS_NEW_ARRAY(E->arena, ir_value *, count + 1);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (used[i] || (args[i].name.length && !ts_str_is(args[i].name, "*")))
            continue;
        if (ts_str_is(args[i].name, "*")) {
            out_used[i] = true;
            return em_coerce(E, em_ir(E, args[i].v, node, list_type), list_type, 0, node, "the arguments");
        }
        out_used[i] = true;
        items[n] = em_coerce(E, em_ir(E, args[i].v, args[i].node, list_type->args[0]), list_type->args[0],
                             0, node, "the argument");
        if (!items[n++])
            return NULL;
    }
    return em_list_of(E, items, n, list_type->args[0]);
}

static bool has_parameter(const em_signature *s, ts_str name) {
    for (size_t i = 0; i < s->count; i++)
        if (ts_str_equal(s->parameters[i].name, name))
            return true;
    return false;
}

em em_call_ir(emitter *E, ir_function *f, em_signature *s, ir_value *self, em_arguments *args,
              const ast_node *node) {
    ir_value **operands = TS_NEW_ARRAY(E->arena, ir_value *, s->count + 1);
    bool *used = TS_NEW_ARRAY(E->arena, bool, args->count + 1);
    size_t next = 0;
    for (size_t i = 0; i < s->count; i++) {
        em_parameter *p = &s->parameters[i];
        if (i == 0 && self) {
            operands[0] = em_cast(E, self, p->type);
            continue;
        }
        if (p->is_star) {
            operands[i] = pack_star(E, args->items, used, args->count, p->type, node, used);
            if (!operands[i])
                return em_error();
            continue;
        }
        if (p->is_double_star) {
            ir_value **items = TS_NEW_ARRAY(E->arena, ir_value *, 2 * args->count + 1);
            size_t n = 0;
            for (size_t k = 0; k < args->count; k++)
                if (!used[k] && args->items[k].name.length) {
                    used[k] = true;
                    items[n++] = ir_build_str(&E->b, args->items[k].name);
                    items[n] = em_coerce(E, em_ir(E, args->items[k].v, node, NULL), p->type->args[1], 0, node,
                                         "the argument");
                    if (!items[n++])
                        return em_error();
                }
            operands[i] = em_dict_of(E, items, n, p->type);
            continue;
        }
        size_t at = args->count;
        while (next < args->count && args->items[next].name.length)
            next++;
        if (!p->is_keyword_only && next < args->count && !used[next]) {
            at = next++;
        } else {
            for (size_t k = 0; k < args->count; k++)
                if (!used[k] && ts_str_equal(args->items[k].name, p->name))
                    at = k;
        }
        if (at == args->count) {
            if (!p->has_default) {
                EM_ERR(E, node, "%.*s: argument '%.*s' is missing", TS_STR_ARG(f->name),
                       TS_STR_ARG(p->name));
                return em_error();
            }
            const ir_type *t = ir_type_of_value(E->m, p->default_value);
            bool is_empty = p->default_value.tag == RT_TAG_LIST || p->default_value.tag == RT_TAG_DICT;
            ir_value *v = ir_build_const_typed(&E->b, p->default_value,
                                               is_empty ? ir_type_without_none(E->m, p->type) : t);
            operands[i] = em_coerce(E, v, p->type, p->fixed_length, node, "the default value");
            if (!operands[i])
                return em_error();
            operands[i] = em_cast(E, operands[i], p->type);
            continue;
        }
        used[at] = true;
        em_argument *a = &args->items[at];
        char what[120];
        snprintf(what, sizeof what, "argument '%.*s'", TS_STR_ARG(p->name));
        ir_value *v = em_ir(E, a->v, a->node ? a->node : node, p->type);
        const ir_type *wanted = em_wanted_parameter(E, s->function, i);
        if (v && wanted && !ir_type_is_subtype(v->type, wanted) && em_retype_empty(E, v, wanted))
            return em_value(em_uninitialized(E, f->return_type ? f->return_type : em_simple(E, IR_NONE)));
        size_t errors = E->fe->diagnostics->error_count;
        v = em_coerce(E, v, p->type, p->fixed_length, a->node ? a->node : node, what);
        if (!v) {
            if (p->place && E->fe->diagnostics->error_count > errors)
                fe_report(E->fe->diagnostics, FE_NOTE, TS_ERR_TYPE, p->place, "declared here");
            return em_error();
        }
        operands[i] = em_cast(E, v, p->type);
    }
    for (size_t k = 0; k < args->count; k++)
        if (!used[k]) {
            if (args->items[k].name.length)
                EM_ERR(E, args->items[k].node, has_parameter(s, args->items[k].name)
                                                   ? "%.*s: argument '%.*s' is given twice"
                                                   : "%.*s has no parameter '%.*s'",
                       TS_STR_ARG(f->name), TS_STR_ARG(args->items[k].name));
            else
                EM_ERR(E, node, "%.*s takes %zu argument%s, %zu were given", TS_STR_ARG(f->name),
                       s->count - (self ? 1 : 0), s->count - (self ? 1 : 0) == 1 ? "" : "s", args->count);
            return em_error();
        }
    if (!f->return_type) { /* found from the paths that do not come here, then all is emitted anew */
        E->fe->guessing = true;
        E->fe->asked = s->function;
        s->function->is_asked = true;
        return em_error();
    }
    em_place(E, node);
    ir_op *op = ir_build_op(&E->b, IR_OP_CALL, operands, s->count, &f->return_type, 1);
    op->function = f;
    em out = em_value(op->results[0]);
    const fe_function *called = s->function;
    if (f->return_type->kind == IR_LIST && called) {
        em declared = em_open_tuple(E->fe, called->scope, called->node->third);
        out.is_tuple = declared.is_tuple || (called->gives_tuple && !called->gives_size && !called->gives_list);
        out.is_size = declared.is_size || (called->gives_size && !called->gives_tuple && !called->gives_list);
    }
    return out;
}

em em_failed_callee(emitter *E, ts_str name, const ast_node *node, size_t errors) {
    E->failed = true;
    if (E->fe->diagnostics->error_count == errors)
        EM_ERR(E, node, "%.*s has errors", TS_STR_ARG(name));
    return em_error();
}

/* ---- functions without annotations ---- */

enum { MAX_VARIANTS = 64 };

static bool is_given(const em_arguments *args, const ast_parameters *p, size_t k, size_t skipped) {
    for (size_t i = 0; i < args->count; i++) {
        ts_str name = args->items[i].name;
        if (ts_str_is(name, "*") || (name.length ? ts_str_equal(name, p->items[k].name) : i + skipped == k))
            return true;
    }
    return false;
}

/* TorchScript takes what has no annotation as a Tensor. Where the arguments are something else, a
 * variant of the function is typed with their types, so that a helper written without annotations
 * (window_partition(x, 7)) compiles as it runs. */
fe_function *em_variant_of(emitter *E, fe_function *f, size_t skipped, em_arguments *args) {
    const ast_parameters *p = &f->node->parameters;
    if (f->node->kind != AST_FUNCTION || f->node->type_comment.length)
        return f;
    const ir_type **types = NULL;
    ts_buffer key = {0};
    size_t next = skipped;
    for (size_t i = 0; i < args->count; i++) {
        em v = args->items[i].v;
        size_t k = next;
        if (args->items[i].name.length)
            for (k = 0; k < p->count && !ts_str_equal(p->items[k].name, args->items[i].name);)
                k++;
        else
            next++;
        if (k >= p->count || p->items[k].annotation || p->items[k].is_star || p->items[k].is_double_star)
            continue;
        if (v.kind == EM_GENERATOR || v.kind == EM_REVERSED || v.kind == EM_ZIP || v.kind == EM_ENUMERATE)
            v = em_value(em_iterator(E, v, args->items[i].node));
        else if (v.kind == EM_RANGE || v.kind == EM_ITEMS)
            v = em_value(em_ir(E, v, args->items[i].node, NULL));
        args->items[i].v = v;
        bool is_value = (v.kind == EM_VALUE && v.value) || v.kind == EM_TUPLE || em_is_function(v) ||
                        (v.kind == EM_BINDING && v.binding->kind == FE_VALUE);
        ir_value *ir = is_value ? em_ir(E, v, args->items[i].node, NULL) : NULL;
        if (!ir)
            continue;
        const ir_type *t = ir_type_forget(E->m, ir->type);
        const ast_node *initial = p->items[k].default_value;
        bool is_plain = ir_type_is_subtype(t, ir_type_any_tensor(E->m)) && (!initial || initial->kind == AST_NONE);
        bool is_default_none = initial && initial->kind == AST_NONE && t->kind == IR_NONE;
        bool is_optional = t->kind == IR_OPTIONAL && t->args[0]->kind == IR_TENSOR && initial &&
                           initial->kind == AST_NONE;
        bool is_as_default = initial && ((initial->kind == AST_INT && t->kind == IR_INT) ||
                                         (initial->kind == AST_FLOAT && t->kind == IR_FLOAT) ||
                                         (initial->kind == AST_STRING && t->kind == IR_STR) ||
                                         ((initial->kind == AST_TRUE || initial->kind == AST_FALSE) &&
                                          t->kind == IR_BOOL));
        if (is_plain || is_default_none || is_optional || is_as_default)
            continue;
        if (!types)
            types = TS_NEW_ARRAY(E->arena, const ir_type *, p->count);
        types[k] = t;
        ts_buffer_format(&key, "%zu:%p,", k, (const void *)t);
    }
    for (size_t k = skipped; k < p->count && !f->is_library; k++) { /* w=None that is not given is None */
        const ast_parameter *a = &p->items[k];
        if (a->annotation || a->is_star || a->is_double_star || !a->default_value || a->default_value->kind != AST_NONE ||
            is_given(args, p, k, skipped))
            continue;
        if (!types)
            types = TS_NEW_ARRAY(E->arena, const ir_type *, p->count);
        types[k] = em_simple(E, IR_NONE);
        ts_buffer_format(&key, "%zu:none,", k);
    }
    fe_function *variant = f;
    if (types && !key.failed) {
        variant = fe_map_get(&f->variants, (ts_str){key.data, key.length});
        if (!variant && f->variants.count >= MAX_VARIANTS)
            variant = f;
        if (!variant) {
            variant = em_copy_function(E, f);
            variant->given_types = types;
            variant->name = ts_arena_format(E->arena, "%.*s$%zu", (int)f->name.length, f->name.data,
                                            f->variants.count + 1);
            fe_map_set(E->arena, &f->variants, ts_arena_str(E->arena, (ts_str){key.data, key.length}), variant);
        }
    }
    ts_buffer_deinit(&key);
    return variant;
}

/* torch.nn.functional.max_pool2d(..., return_indices=True) is another function, as its result is
 * another type: max_pool2d_with_indices. */
static fe_function *with_indices(emitter *E, fe_function *f, const em_arguments *args, const ast_node *node) {
    const ast_parameters *p = &f->node->parameters;
    size_t at = 0;
    if (!f->is_library || f->node->kind != AST_FUNCTION)
        return f;
    while (at < p->count && !ts_str_is(p->items[at].name, "return_indices"))
        at++;
    if (at == p->count)
        return f;
    fe_binding b = fe_library_find(E->fe, TS_STR("torch.nn.functional"),
                                   ts_arena_format(E->arena, "%.*s_with_indices", TS_STR_ARG(f->bare_name)));
    for (size_t i = 0; i < args->count && b.kind == FE_FUNCTION; i++) {
        ts_str name = args->items[i].name;
        if (name.length ? !ts_str_is(name, "return_indices") : i != at)
            continue;
        rt_value v;
        ir_value *given = em_ir(E, args->items[i].v, node, NULL);
        if (given && ir_const_value(given, &v))
            return v.tag == RT_TAG_BOOL && v.as.i ? b.function : f;
        EM_UNSUPPORTED(E, node, "return_indices must be known when the model is compiled");
        return NULL;
    }
    return f;
}

em em_call_function(emitter *E, fe_function *f, em_arguments *args, const ast_node *node) {
    if (f->is_library && ts_str_starts_with(f->name, "torch.nn.functional."))
        f = em_choose_function(E, f, args, node);
    if ((!f->is_library || em_is_generic(f)) && em_is_generator(f->node))
        return em_call_generator(E, em_spread_function(E, f, 0, args), NULL, args, node);
    f = with_indices(E, f, args, node);
    if (!f)
        return em_error();
    size_t errors = E->fe->diagnostics->error_count;
    f = em_spread_function(E, f, f->is_class_method ? 1 : 0, args);
    f = em_variant_of(E, f, f->is_class_method ? 1 : 0, args);
    ir_function *ir = fe_function_ir(E->fe, f);
    fe_function *exact = ir ? em_flag_variant(E, f, ir->return_type, f->is_class_method ? 1 : 0, args) : f;
    if (exact != f)
        ir = fe_function_ir(E->fe, f = exact);
    if (!ir)
        return em_failed_callee(E, f->bare_name, node, errors);
    return em_call_ir(E, ir, em_signature_of(E->fe, f, NULL), NULL, args, node);
}

/* ---- methods ---- */

static bool goes_by_object(const ir_class *c, fe_class *class_) {
    if (c->base.kind == RT_CLASS_INTERFACE)
        return true;
    return (c->base.kind == RT_CLASS_PLAIN || c->base.kind == RT_CLASS_EXCEPTION) && class_ && class_->has_subclasses;
}

static em call_by_object(emitter *E, ir_value *object, fe_function *f, ts_str name, em_arguments *args,
                         const ast_node *node) {
    ir_class *c = (ir_class *)object->type->class_;
    em_signature *s = em_signature_of(E->fe, f, c);
    const ir_type *returns = s->returns;
    if (!returns) {
        ir_function *own = fe_method_ir(E->fe, c, name);
        returns = own ? own->return_type : NULL;
    }
    if (!returns) {
        EM_ERR(E, node, "the return type of %.*s must be annotated", TS_STR_ARG(f->name));
        return em_error();
    }
    /* Bind the arguments as for a call, then let the object choose. */
    ir_function *shape = TS_NEW(E->arena, ir_function);
    shape->name = f->name;
    shape->return_type = returns;
    em v = em_call_ir(E, shape, s, object, args, node);
    if (v.kind != EM_VALUE)
        return v;
    ir_op *call = v.value->def;
    call->opcode = IR_OP_CALL_METHOD;
    call->function = NULL;
    call->name = ts_arena_str(E->arena, name);
    fe_map_set(E->arena, &E->fe->dynamic_methods, call->name, (void *)1);
    return v;
}

em em_call_method(emitter *E, ir_value *object, ts_str name, em_arguments *args,
                  const ast_node *node) {
    const ir_type *t = object->type;
    ir_class *c = (ir_class *)t->class_;
    fe_class *class_ = c ? fe_class_of(c) : NULL;
    fe_function *f = class_ ? fe_class_method(class_, name) : NULL;
    if (!f) {
        EM_ERR(E, node, "%s has no method '%.*s'", em_type_text(E, t), TS_STR_ARG(name));
        return em_error();
    }
    if (f->is_static)
        return em_call_function(E, f, args, node);
    if (f->is_class_method)
        return em_call_function(E, em_class_method_of(E, class_, f), args, node);
    if (class_->is_made && f->is_library && em_class_has_method(t, "as_python") && !args->count &&
        (ts_str_is(name, "keys") || ts_str_is(name, "values") || ts_str_is(name, "items"))) {
        em dict = em_dict_behind(E, em_value(object), node); /* a view of it */
        return dict.kind == EM_VALUE ? (em){.kind = EM_ITEMS, .value = dict.value, .name = name} : dict;
    }
    if (em_is_generator(f->node))
        return em_call_generator(E, f, object, args, node);
    if (t->kind == IR_CLASS && goes_by_object(c, class_))
        return call_by_object(E, object, f, name, args, node);
    size_t errors = E->fe->diagnostics->error_count;
    fe_function *spread = em_spread_function(E, f, 1, args);
    fe_function *variant = em_variant_of(E, spread, 1, args);
    ir_function *ir = variant == f ? fe_method_ir(E->fe, c, name)
                                   : em_method_as(E->fe, c, variant->name, variant);
    fe_function *exact = ir ? em_flag_variant(E, variant, ir->return_type, 1, args) : variant;
    if (exact != variant)
        ir = em_method_as(E->fe, c, exact->name, exact);
    if (!ir)
        return em_failed_callee(E, f->name, node, errors);
    return em_call_ir(E, ir, em_signature_of(E->fe, exact, c), object, args, node);
}

em em_call_method0(emitter *E, ir_value *object, const char *name, em *args, size_t count,
                   const ast_node *node) {
    em_arguments list = {0};
    for (size_t i = 0; i < count; i++) {
        if (args[i].kind == EM_ERROR)
            return em_error();
        em_argument a = {.v = args[i], .node = node};
        TS_APPEND(E->arena, list.items, list.count, list.capacity, a);
    }
    return em_call_method(E, object, ts_str_of(name), &list, node);
}

/* ---- the call ---- */

static em call_super(emitter *E, em callee, em_arguments *args, const ast_node *node) {
    if (ts_str_is(callee.name, "__init__")) {
        /* super().__init__() of a class whose bases have none */
        ir_function *f = em_super_method(E, callee.after, callee.name, node);
        if (!f && em_is_exception(callee.value->type) && !em_exception_init(E, callee.value, args, node))
            return em_error();
        if (!f)
            return em_value(ir_build_none(&E->b));
    }
    ir_function *f = em_super_method(E, callee.after, callee.name, node);
    fe_class *own = fe_class_of(E->self_class);
    size_t at = 0;
    if (own && callee.after != own) {
        while (at < own->ancestor_count && own->ancestors[at] != callee.after)
            at++;
        at++;
    }
    fe_function *method = NULL;
    for (; own && at < own->ancestor_count && !method; at++)
        method = fe_map_get(&own->ancestors[at]->methods, callee.name);
    if (!f || !method) {
        EM_ERR(E, node, "no base class has a method '%.*s'", TS_STR_ARG(callee.name));
        return em_error();
    }
    return em_call_ir(E, f, em_signature_of(E->fe, method, E->self_class), callee.value, args, node);
}

/* Whatever an archive was made on, it runs on the cpu here. */
static void on_this_machine(emitter *E, em_arguments *args) {
    static const char *const kinds[] = {"cuda", "hip", "xpu", "mps"};
    rt_value v;
    if (!args->count || args->items[0].v.kind != EM_VALUE ||
        !ir_const_value(args->items[0].v.value, &v) || v.tag != RT_TAG_STR)
        return;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (ts_str_starts_with(rt_str_text(v.as.str), kinds[i])) {
            args->items[0].v = em_value(ir_build_str(&E->b, TS_STR("cpu")));
            args->count = 1;
        }
}

/* One tensor, where a list of them may be given. passes/differentiate.c makes operators of it. */
static em autograd_grad(emitter *E, em_arguments *args, const ast_node *node) {
    for (size_t i = 0; i < args->count; i++) {
        em_argument *a = &args->items[i];
        bool is_list = a->name.length ? ts_str_is(a->name, "outputs") || ts_str_is(a->name, "inputs") ||
                                            ts_str_is(a->name, "grad_outputs")
                                      : i < 3;
        if (is_list && a->v.kind == EM_VALUE && a->v.value->type->kind == IR_TENSOR)
            a->v = em_value(em_list_of(E, &a->v.value, 1, a->v.value->type));
    }
    return em_operator(E, TS_STR("autograd_grad"), args, node);
}

static em call_path(emitter *E, ts_str path, em_arguments *args, const ast_node *node,
                    const ir_type *hint) {
    bool known = false;
    em r = em_call_builtin(E, path, args, node, hint, &known);
    if (known)
        return r;
    if (ts_str_is(path, "torch.autograd.grad"))
        return autograd_grad(E, args, node);
    if (ts_str_is(path, "torch.autograd.backward"))
        return em_operator(E, TS_STR("backward"), args, node);
    static const char *const prefixes[] = {"torch.Tensor.", "torch.", "math.", "ops.aten."};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (ts_str_starts_with(path, prefixes[i])) {
            size_t n = strlen(prefixes[i]);
            ts_str name = {path.data + n, path.length - n};
            if (memchr(name.data, '.', name.length) && !ts_str_is(ts_str_of(prefixes[i]), "ops.aten."))
                break; /* ops.aten.add.Tensor names an overload */
            bool has_tensor = false;
            for (size_t k = 0; k < args->count; k++)
                has_tensor = has_tensor || (args->items[k].v.kind == EM_VALUE &&
                                            args->items[k].v.value->type->kind == IR_TENSOR);
            if (node->source && node->source->is_archive)
                name = fe_archive_operator(E->fe, name, has_tensor);
            if (node->source && node->source->is_archive && ts_str_is(name, "device"))
                on_this_machine(E, args);
            /* What math has beyond the operators is in the library, as math_NAME. */
            if (ts_str_starts_with(path, "math.")) {
                r = em_math_of_many(E, name, args, node, &known);
                if (known)
                    return r;
            }
            if (ts_str_starts_with(path, "math.") &&
                (!fe_operator_exists(E->fe, name) || ts_str_is(name, "prod") || ts_str_is(name, "isclose") ||
                 ts_str_is(name, "dist") || ts_str_is(name, "lcm")))
                name = ts_arena_format(E->arena, "math_%.*s", (int)name.length, name.data);
            r = em_call_by_flags(E, name, args, node, &known);
            return known ? r : em_operator(E, name, args, node);
        }
    if (ts_str_starts_with(path, "ops.")) {
        ts_str rest = {path.data + 4, path.length - 4};
        char *flat = ts_arena_copy(E->arena, rest.data, rest.length);
        size_t n = 0;
        for (size_t i = 0; i < rest.length; i++) {
            flat[n++] = rest.data[i] == '.' ? '_' : rest.data[i];
            if (rest.data[i] == '.') /* torchaudio::_name has the name torchaudio_name here */
                while (i + 1 < rest.length && rest.data[i + 1] == '_')
                    i++;
        }
        return em_operator(E, (ts_str){flat, n}, args, node);
    }
    r = em_python_path(E, path, args, node, hint, &known);
    if (known)
        return r;
    EM_UNSUPPORTED(E, node, "%.*s is not supported yet", TS_STR_ARG(path));
    return em_error();
}

typedef em (*of_item)(emitter *E, em item, const void *context, const ast_node *node);

/* if choice == 0: of(items[0]) else: if choice == 1 ... */
static em by_choice(emitter *E, em callee, size_t at, of_item of, const void *context, const ast_node *node) {
    ir_value *test = callee.keys
                         ? em_compare_two(E, AST_EQ, em_value(callee.value), em_value(callee.keys[at]), node)
                         : em_row(E, "eq.int", node, 2, callee.value, ir_build_int(&E->b, (int64_t)at));
    if (!test)
        return em_error();
    em_choice choice;
    em_choose(E, &choice, test);
    ir_value *first = em_ir(E, of(E, callee.items[at], context, node), node, NULL);
    em_choose_other(E, &choice, first);
    ir_value *second = NULL;
    if (at + 1 < callee.count) {
        second = em_ir(E, by_choice(E, callee, at + 1, of, context, node), node, NULL);
    } else if (callee.name.length) { /* of getattr */
        em_raise_no_attribute(E, callee.name, callee.value, node);
    } else if (callee.keys) {
        em_raise_named(E, TS_STR("KeyError"), em_row(E, "prim_repr", node, 1, callee.value));
    } else {
        em_raise_named(E, TS_STR("IndexError"), ir_build_str(&E->b, TS_STR("index out of range")));
    }
    ir_value *v = em_choose_end(E, &choice, second, node);
    return first ? em_value(v) : em_error();
}

typedef struct choice_call {
    const em_arguments *args;
    const ir_type *hint;
} choice_call;

static em call_item(emitter *E, em item, const void *context, const ast_node *node) {
    const choice_call *c = context;
    em_arguments copy = {0};
    for (size_t i = 0; i < c->args->count; i++)
        TS_APPEND(E->arena, copy.items, copy.count, copy.capacity, c->args->items[i]);
    return em_call_value(E, item, &copy, node, c->hint);
}

static em call_choice(emitter *E, em callee, em_arguments *args, const ast_node *node, const ir_type *hint) {
    for (size_t i = 0; i < args->count; i++) /* evaluated once, before the choice */
        if (args->items[i].v.kind == EM_TUPLE)
            args->items[i].v = em_value(em_ir(E, args->items[i].v, node, NULL));
    choice_call c = {args, hint};
    return by_choice(E, callee, 0, call_item, &c, node);
}

static em attribute_of_item(emitter *E, em item, const void *context, const ast_node *node) {
    return em_attribute_of(E, item, *(const ts_str *)context, node, false);
}

em em_attribute_of_choice(emitter *E, em choice, ts_str name, const ast_node *node) {
    em first = em_attribute_of(E, choice.items[0], name, node, false);
    bool is_value = first.kind == EM_VALUE && !(first.value->type->kind == IR_CLASS &&
                                                first.value->type->class_->base.kind == RT_CLASS_MODULE);
    if (first.kind == EM_ERROR || is_value)
        return first.kind == EM_ERROR ? first : by_choice(E, choice, 0, attribute_of_item, &name, node);
    em out = choice;
    out.items = TS_NEW_ARRAY(E->arena, em, choice.count);
    for (size_t i = 0; i < choice.count; i++) {
        out.items[i] = attribute_of_item(E, choice.items[i], &name, node);
        if (out.items[i].kind == EM_ERROR)
            return em_error();
    }
    return out;
}

em em_call_value(emitter *E, em callee, em_arguments *args, const ast_node *node,
                 const ir_type *hint) {
    switch (callee.kind) {
    case EM_ERROR:
        return em_error();
    case EM_BINDING:
        switch (callee.binding->kind) {
        case FE_FUNCTION: {
            fe_function *f = callee.binding->function;
            if (f->owner && !f->is_static && !f->is_class_method && !f->owner->is_archive && args->count) {
                /* Class.method(object, ...) */
                ir_value *self = em_ir(E, args->items[0].v, node, NULL);
                if (!self)
                    return em_error();
                em_arguments rest = {.items = args->items + 1, .count = args->count - 1};
                return em_call_method(E, self, f->bare_name, &rest, node);
            }
            return em_call_function(E, f, args, node);
        }
        case FE_CLASS:
            return em_construct(E, callee.binding->class_, args, node);
        case FE_NAME:
            return call_path(E, callee.binding->path, args, node, hint);
        case FE_NAMESPACE:
            EM_UNSUPPORTED(E, node, "%.*s is not supported yet", TS_STR_ARG(callee.binding->path));
            return em_error();
        case FE_VALUE: {
            ir_value *v = em_ir(E, callee, node, NULL);
            return v ? em_call_value(E, em_value(v), args, node, hint) : em_error();
        }
        default:
            break;
        }
        break;
    case EM_METHOD:
        if (callee.after)
            return call_super(E, callee, args, node);
        if (callee.binding && ts_str_is(callee.name, "_make"))
            return em_named_tuple_make(E, callee.binding->class_, args, node);
        if (callee.binding) { /* X.__new__(X) */
            ir_class *c = fe_class_ir(E->fe, callee.binding->class_);
            return c ? em_value(em_new_object(E, c)) : em_error();
        }
        if (callee.function)
            return em_call_method(E, callee.value, callee.name, args, node);
        if (callee.value->type->kind == IR_UNION)
            return em_call_union(E, callee.value, callee.name, args, node, hint);
        return em_call_builtin_type_method(E, callee, args, node, hint);
    case EM_CHOICE:
        return call_choice(E, callee, args, node, hint);
    case EM_CLOSURE: {
        em *values = TS_NEW_ARRAY(E->arena, em, args->count + 1);
        size_t count = 0;
        while (count < args->count && !args->items[count].name.length) {
            values[count] = args->items[count].v;
            count++;
        }
        em_arguments named = {.items = args->items + count, .count = args->count - count};
        return em_call_closure(E, callee.node, values, count, &named, node);
    }
    case EM_VALUE: {
        ir_value *v = callee.value;
        if (v->type->kind == IR_OPTIONAL)
            v = em_check_cast(E, v, v->type->args[0]);
        em stands_for;
        if (em_callable_of(E, v, &stands_for))
            return em_call_value(E, stands_for, args, node, hint);
        if (em_spread_partial(E, v, args, node, &stands_for))
            return em_call_value(E, stands_for, args, node, hint);
        if (v->type->kind == IR_UNION)
            return em_call_union(E, v, (ts_str){0}, args, node, hint);
        if (v->type->kind == IR_CLASS) {
            fe_class *c = fe_class_of(v->type->class_);
            bool forward = c && (c->kind == RT_CLASS_MODULE || fe_class_method(c, TS_STR("forward")));
            if (c && c->kind == RT_CLASS_MODULE)
                return em_call_module(E, v, args, node);
            return em_call_method(E, v, forward ? TS_STR("forward") : TS_STR("__call__"), args, node);
        }
        EM_ERR(E, node, "%s cannot be called", em_type_text(E, v->type));
        return em_error();
    }
    default:
        break;
    }
    EM_ERR(E, node, "this cannot be called");
    return em_error();
}

static em make_super(emitter *E, const ast_node *node) {
    if (!E->self_class || !E->function || !E->function->owner) {
        EM_ERR(E, node, "super() outside a method");
        return em_error();
    }
    return (em){.kind = EM_SUPER, .value = E->f->body->parameters[0], .after = E->function->owner};
}

static em call_of(emitter *E, const ast_node *node, const ir_type *hint) {
    const ast_node *f = node->left;
    if (f->kind == AST_NAME && ts_str_is(f->text, "super") && !fe_map_get(&E->variables, f->text))
        return make_super(E, node);
    /* Tests whose answer may be known now. */
    if ((f->kind == AST_NAME || f->kind == AST_ATTRIBUTE) &&
        (ts_str_is(f->text, "isinstance") || ts_str_is(f->text, "__is__") ||
         ts_str_is(f->text, "__isnot__") || ts_str_is(f->text, "__not__"))) {
        em_condition c = {.known = -1};
        if (em_condition_call(E, node, &c)) {
            ir_value *v = em_condition_ir(E, &c);
            return em_value(v);
        }
    }
    if (f->kind == AST_NAME && ts_str_is(f->text, "$iter"))
        return em_value(em_iterator(E, em_expression(E, node->list.items[0], NULL), node));
    if (f->kind == AST_NAME && ts_str_is(f->text, "$new_cell"))
        return em_new_cell(E, node);
    bool done = false;
    em special = em_call_special(E, node, hint, &done);
    if (done)
        return special;
    em callee = em_expression(E, f, NULL);
    if (callee.kind == EM_ERROR)
        return callee;
    em_arguments args = {0};
    if (!evaluate_arguments(E, node, callee, &args))
        return em_error();
    em_place(E, node);
    return em_call_value(E, callee, &args, node, hint);
}

em em_call(emitter *E, const ast_node *node, const ir_type *hint) {
    const ast_node *outer = E->encoded, *inner = em_encoded_before(node);
    E->encoded = inner ? inner : outer == node ? outer : NULL;
    em out = call_of(E, node, hint);
    E->encoded = outer;
    return out;
}

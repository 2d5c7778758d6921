/* frontend/emit_call_function.c - calls of functions and of methods: which variant, which method. */
#include "frontend/emit_builtin.h"
#include "frontend/overload.h"

em em_failed_callee(emitter *E, ts_str name, const ast_node *node, size_t errors) {
    E->failed = true;
    if (E->fe->diagnostics->error_count == errors)
        EM_ERR(E, node, "%.*s has errors", TS_STR_ARG(name));
    return em_error();
}

em em_call_function(emitter *E, fe_function *f, em_arguments *args, const ast_node *node) {
    if (f->is_library && ts_str_starts_with(f->name, "torch.nn.functional.")) {
        em_argument *out = em_out_of_functional(f, args);
        if (out) {
            em_arguments rest = em_arguments_without(E, args, (size_t)(out - args->items));
            return em_store_out(E, *out, em_call_function(E, f, &rest, node), node);
        }
        f = em_choose_function(E, f, args, node);
    }
    if (!em_spread_list(E, f, f->is_class_method ? 1 : 0, args, node))
        return em_error();
    if ((!f->is_library || em_is_generic(f)) && em_is_generator(f->node))
        return em_call_generator(E, em_spread_function(E, f, 0, args), NULL, args, node);
    f = em_with_indices(E, f, args, node);
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

static em call_exactly(emitter *E, ir_value *object, fe_function *f, ts_str key, em_arguments *args,
                       const ast_node *node) {
    ir_class *c = (ir_class *)object->type->class_;
    if (!em_spread_list(E, f, 1, args, node))
        return em_error();
    if (em_is_generator(f->node))
        return em_call_generator(E, f, object, args, node);
    size_t errors = E->fe->diagnostics->error_count;
    fe_function *spread = em_spread_function(E, f, 1, args);
    fe_function *variant = em_variant_of(E, spread, 1, args);
    ir_function *ir = em_method_as(E->fe, c, variant == f ? key : variant->name, variant);
    fe_function *exact = ir ? em_flag_variant(E, variant, ir->return_type, 1, args) : variant;
    if (exact != variant)
        ir = em_method_as(E->fe, c, exact->name, exact);
    if (!ir)
        return em_failed_callee(E, f->name, node, errors);
    return em_call_ir(E, ir, em_signature_of(E->fe, exact, c), object, args, node);
}

fe_function *em_super_method(const emitter *E, const fe_class *after, ts_str name, fe_class **out_owner) {
    const fe_class *own = fe_class_of(E->self_class);
    size_t at = 0;
    if (own && after != own) {
        while (at < own->ancestor_count && own->ancestors[at] != after)
            at++;
        at++;
    }
    for (; own && at < own->ancestor_count; at++) {
        *out_owner = own->ancestors[at];
        fe_function *method = fe_map_get(&(*out_owner)->methods, name);
        if (method)
            return method;
    }
    *out_owner = NULL;
    return NULL;
}

em em_call_method_of(emitter *E, ir_value *object, const fe_class *owner, fe_function *f, em_arguments *args,
                     const ast_node *node) {
    fe_class *own = object->type->class_ ? fe_class_of((ir_class *)object->type->class_) : NULL;
    if (!own)
        return em_call_method(E, object, f->bare_name, args, node);
    ts_str key = fe_class_method(own, f->bare_name) == f
                     ? f->bare_name
                     : ts_arena_format(E->arena, "%.*s.%.*s", TS_STR_ARG(owner->bare_name), TS_STR_ARG(f->bare_name));
    return call_exactly(E, object, f, key, args, node);
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
    if (t->kind == IR_CLASS && goes_by_object(c, class_) && !em_is_generator(f->node)) {
        if (!em_spread_list(E, f, 1, args, node))
            return em_error();
        return call_by_object(E, object, f, name, args, node);
    }
    return call_exactly(E, object, f, name, args, node);
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

/* frontend/emit_hooks.c - calls of modules that have forward hooks, as Module.__call__ makes them. */
#include "frontend/emit_internal.h"
#include "frontend/init_eval.h"

enum { MAX_HOOKS = 16 };

/* hook(module, (args...)[, result]): the hook is typed as a method of the module's class. */
static em call_hook(emitter *E, fe_function *hook, ir_value *module, ir_value *given, ir_value *result,
                    const ast_node *node) {
    ir_class *c = (ir_class *)module->type->class_;
    em_arguments args = {0};
    ir_value *values[2] = {given, result};
    for (int i = 0; i < 2; i++) {
        em_argument a = {.v = {.kind = EM_VALUE, .value = values[i]}, .node = node};
        if (values[i])
            TS_APPEND(E->arena, args.items, args.count, args.capacity, a);
    }
    hook = em_variant_of(E, hook, 1, &args);
    ts_str name = ts_arena_format(E->arena, "hook %zu %.*s", hook->number, TS_STR_ARG(hook->name));
    ir_function *f = em_method_as(E->fe, c, name, hook);
    if (!f) {
        EM_ERR(E, node, "the hook %.*s does not compile", TS_STR_ARG(hook->bare_name));
        return em_error();
    }
    return em_call_ir(E, f, em_signature_of(E->fe, hook, c), module, &args, node);
}

/* What a pre-hook returned, as the new positional arguments. */
static bool take_arguments(emitter *E, em r, ir_value **values, size_t *count, const ast_node *node) {
    ir_value *v = em_ir(E, r, node, NULL);
    if (!v)
        return false;
    if (v->type->kind == IR_NONE)
        return true;
    if (v->type->kind == IR_OPTIONAL) {
        EM_UNSUPPORTED(E, node, "a hook that returns None or a value is not supported");
        return false;
    }
    if (v->type->kind != IR_TUPLE) {
        values[0] = v;
        *count = 1;
        return true;
    }
    if (v->type->arg_count > MAX_HOOKS) {
        EM_UNSUPPORTED(E, node, "a hook that returns more than %d arguments is not supported", MAX_HOOKS);
        return false;
    }
    for (size_t i = 0; i < v->type->arg_count; i++) {
        ir_op *op = ir_build_op(&E->b, IR_OP_TUPLE_GET, &v, 1, &v->type->args[i], 1);
        op->integer = (int64_t)i;
        values[i] = op->results[0];
    }
    *count = v->type->arg_count;
    return true;
}

em em_call_module(emitter *E, ir_value *module, em_arguments *args, const ast_node *node) {
    const ir_class *c = module->type->class_;
    fe_function *before[MAX_HOOKS], *after[MAX_HOOKS];
    size_t before_count = fe_module_hooks(E->fe, c, true, before, MAX_HOOKS);
    size_t after_count = fe_module_hooks(E->fe, c, false, after, MAX_HOOKS);
    if (!before_count && !after_count)
        return em_call_method(E, module, TS_STR("forward"), args, node);
    ir_value *values[MAX_HOOKS];
    em_arguments changed = {0};
    size_t count = 0;
    for (size_t i = 0; i < args->count; i++) {
        if (args->items[i].name.length)
            continue;
        if (count == MAX_HOOKS) {
            EM_UNSUPPORTED(E, node, "a module with hooks takes at most %d arguments", MAX_HOOKS);
            return em_error();
        }
        values[count] = em_ir(E, args->items[i].v, args->items[i].node, NULL);
        if (!values[count++])
            return em_error();
    }
    for (size_t i = 0; i < before_count && i < MAX_HOOKS; i++) {
        em r = call_hook(E, before[i], module, em_tuple_of(E, values, count), NULL, node);
        if (r.kind == EM_ERROR || !take_arguments(E, r, values, &count, node))
            return em_error();
    }
    for (size_t i = 0; i < count; i++) {
        em_argument a = {.v = {.kind = EM_VALUE, .value = values[i]}, .node = node};
        TS_APPEND(E->arena, changed.items, changed.count, changed.capacity, a);
    }
    for (size_t i = 0; i < args->count; i++)
        if (args->items[i].name.length)
            TS_APPEND(E->arena, changed.items, changed.count, changed.capacity, args->items[i]);
    em result = em_call_method(E, module, TS_STR("forward"), &changed, node);
    for (size_t i = 0; i < after_count && i < MAX_HOOKS && result.kind != EM_ERROR; i++) {
        ir_value *v = em_ir(E, result, node, NULL);
        if (!v)
            return em_error();
        em r = call_hook(E, after[i], module, em_tuple_of(E, values, count), v, node);
        ir_value *other = r.kind == EM_ERROR ? NULL : em_ir(E, r, node, NULL);
        if (!other)
            return em_error();
        result = other->type->kind == IR_NONE ? em_value(v) : r;
    }
    return result;
}

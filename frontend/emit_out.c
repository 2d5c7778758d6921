/* frontend/emit_out.c - out= where no overload has it: compute, size out alike, copy. */
#include "frontend/overload.h"

em_arguments em_arguments_without(emitter *E, const em_arguments *args, size_t at) {
    em_arguments rest = {0};
    for (size_t i = 0; i < args->count; i++)
        if (i != at)
            TS_APPEND(E->arena, rest.items, rest.count, rest.capacity, args->items[i]);
    return rest;
}

static bool store_out(emitter *E, ir_value *out, ir_value *value, const ast_node *node) {
    ir_value *size = em_op(E, "size", node, 1, value);
    return size && em_row(E, "prim_check_result", node, 2, out, value) && em_op(E, "resize_", node, 2, out, size) && em_op(E, "copy_", node, 2, out, value);
}

/* out=(a, b), or in an archive values=a, indices=b: outs[] for the results in their order. */
em em_derive_outs(emitter *E, ts_str name, em_arguments *rest, ir_value **outs, size_t count,
                      const ast_node *node) {
    em r = em_operator(E, name, rest, node);
    if (r.kind != EM_VALUE || r.value->type->kind != IR_TUPLE || r.value->type->arg_count != count) {
        if (r.kind == EM_VALUE)
            EM_ERR(E, node, "out= of %.*s is not %zu tensors", TS_STR_ARG(name), count);
        return em_error();
    }
    ir_op *unpack = ir_build_op(&E->b, IR_OP_TUPLE_UNPACK, &r.value, 1, r.value->type->args, count);
    for (size_t i = 0; i < count; i++)
        if (!store_out(E, outs[i], unpack->results[i], node))
            return em_error();
    return em_value(em_tuple_of(E, outs, count));
}

/* Tensors under names that no overload has. */
size_t em_find_named_outs(const em_candidate *list, size_t count, const em_arguments *args,
                              ir_value *const *values, size_t *out_at, size_t max) {
    size_t found = 0;
    for (size_t i = 0; i < args->count && count; i++) {
        bool is_known = !args->items[i].name.length || values[i]->type->kind != IR_TENSOR;
        for (size_t c = 0; c < count && !is_known; c++)
            for (size_t k = 0; k < list[c].count && !is_known; k++)
                is_known = em_same_parameter(em_parameter_of(&list[c], k).name, args->items[i].name);
        if (!is_known && found < max)
            out_at[found++] = i;
    }
    return found;
}

/* The argument out= of a functional that is an operator in PyTorch, and a function of the library here; NULL. */
em_argument *em_out_of_functional(const fe_function *f, const em_arguments *args) {
    static const char *const names[] = {"softplus", "logsigmoid", "gelu", "avg_pool2d", "avg_pool3d", "softshrink", "hardshrink", "linear"};
    for (size_t i = 0; i < args->count; i++)
        for (size_t k = 0; ts_str_is(args->items[i].name, "out") && k < sizeof names / sizeof *names; k++)
            if (ts_str_is(f->bare_name, names[k]))
                return &args->items[i];
    return NULL;
}

em em_store_out(emitter *E, em_argument out, em result, const ast_node *node) {
    ir_value *to = em_ir(E, out.v, node, NULL);
    ir_value *v = result.kind == EM_VALUE ? result.value : NULL;
    if (!to || !v)
        return em_error();
    return store_out(E, to, v, node) ? em_value(to) : em_error();
}

/* out= where no overload has it: compute, size out alike, copy. */
em em_derive_out(emitter *E, ts_str name, em_arguments *args, size_t out_at,
                     const ast_node *node) {
    ir_value *out = em_ir(E, args->items[out_at].v, node, NULL);
    em_arguments rest = em_arguments_without(E, args, out_at);
    if (out && out->type->kind == IR_TUPLE && out->type->arg_count > 0) {
        size_t count = out->type->arg_count;
        ir_op *unpack = ir_build_op(&E->b, IR_OP_TUPLE_UNPACK, &out, 1, out->type->args, count);
        return em_derive_outs(E, name, &rest, unpack->results, count, node);
    }
    em r = em_operator(E, name, &rest, node);
    if (r.kind == EM_VALUE && r.value->type->kind != IR_TENSOR) {
        EM_ERR(E, node, "out= of %.*s is not one tensor", TS_STR_ARG(name));
        return em_error();
    }
    return em_store_out(E, args->items[out_at], r, node);
}

/* frontend/emit_slice.c - slice objects: a class of the library (python_builtins.py) with start, stop and
 * step, each an int or None. */
#include "frontend/emit_builtin.h"

fe_class *em_slice_class(fe_context *fe) {
    fe_binding b = fe_library_find(fe, TS_STR("python.builtins"), TS_STR("slice"));
    return b.kind == FE_CLASS ? b.class_ : NULL;
}

bool em_is_slice(const ir_type *t) {
    return t->kind == IR_CLASS && ts_str_is(t->class_->base.name, "python.builtins.slice");
}

/* NULL: None. */
em em_slice_object(emitter *E, ir_value *const parts[3], const ast_node *node) {
    em_arguments args = {0};
    for (int i = 0; i < 3; i++) {
        em_argument one = {.v = em_value(parts[i] ? parts[i] : ir_build_none(&E->b)), .node = node};
        TS_APPEND(E->arena, args.items, args.count, args.capacity, one);
    }
    fe_class *c = em_slice_class(E->fe);
    return c ? em_construct(E, c, &args, node) : em_error();
}

/* slice(stop), slice(start, stop[, step]) */
em em_slice_call(emitter *E, em_arguments *args, const ast_node *node) {
    ir_value *parts[3] = {NULL, NULL, NULL};
    if (!args->count || args->count > 3) {
        EM_ERR(E, node, "slice expects 1 to 3 arguments, %zu were given", args->count);
        return em_error();
    }
    for (size_t i = 0; i < args->count; i++) {
        parts[args->count == 1 ? 1 : i] = em_ir(E, args->items[i].v, node, NULL);
        if (!parts[args->count == 1 ? 1 : i])
            return em_error();
    }
    return em_slice_object(E, parts, node);
}

/* The step of a slice is 1 where it is None. */
void em_slice_parts(emitter *E, ir_value *slice, ir_value *out[3], const ast_node *node) {
    static const char *const names[] = {"start", "stop", "step_or_1"};
    for (int i = 0; i < 3; i++)
        out[i] = em_ir(E, em_attribute_of(E, em_value(slice), ts_str_of(names[i]), node, false), node, NULL);
}

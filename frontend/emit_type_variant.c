/* frontend/emit_type_variant.c - functions without annotations, typed by what they are given.
 *
 * TorchScript takes what has no annotation as a Tensor. Where the arguments are something else, a
 * variant of the function is typed with their types, so that a helper written without annotations
 * (window_partition(x, 7)) compiles as it runs. */
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

enum { MAX_VARIANTS = 64 };

static bool is_given(const em_arguments *args, const ast_parameters *p, size_t k, size_t skipped) {
    for (size_t i = 0; i < args->count; i++) {
        ts_str name = args->items[i].name;
        if (ts_str_is(name, "*") || (name.length ? ts_str_equal(name, p->items[k].name) : i + skipped == k))
            return true;
    }
    return false;
}

fe_function *em_variant_of(emitter *E, fe_function *f, size_t skipped, em_arguments *args) {
    const ast_parameters *p = &f->node->parameters;
    if ((f->node->kind != AST_FUNCTION && f->node->kind != AST_LAMBDA) || f->node->type_comment.length)
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
        if (em_is_walked_once(v))
            v = em_value(em_iterator(E, v, args->items[i].node));
        else if (v.kind == EM_RANGE || v.kind == EM_ITEMS)
            v = em_value(em_ir(E, v, args->items[i].node, NULL));
        args->items[i].v = v;
        bool is_value = (v.kind == EM_VALUE && v.value) || v.kind == EM_TUPLE || em_is_function(v) ||
                        (v.kind == EM_BINDING && v.binding->kind == FE_VALUE);
        ir_value *ir = is_value ? em_ir(E, v, args->items[i].node, NULL) : NULL;
        if (!ir)
            continue;
        if (v.kind == EM_CLOSURE) /* one object: what it captures may be typed otherwise once more is known of it */
            args->items[i].v = em_value(ir);
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

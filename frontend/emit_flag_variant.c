/* frontend/emit_flag_variant.c - functions whose result's type depends on a flag.
 *
 *   def attend(self, x, need_weights=False):         y = attend(x)               a Tensor
 *       return (y, w) if need_weights else y         y, w = attend(x, True)      a tuple
 *
 * Where a function would give one of several types and bools among its arguments are known, the call
 * is of a variant in which they are constants. */
#include "frontend/emit_builtin.h"

/* -1: not known. */
static signed char known_bool(const ast_parameters *p, size_t k, size_t skipped, const em_arguments *args) {
    const ast_node *initial = p->items[k].default_value;
    bool known = initial && initial->kind == AST_TRUE;
    signed char otherwise = initial && (initial->kind == AST_TRUE || initial->kind == AST_FALSE) ? (signed char)known : -1;
    for (size_t i = 0; i < args->count; i++) {
        ts_str name = args->items[i].name;
        if (ts_str_is(name, "*"))
            return -1;
        if (name.length ? !ts_str_equal(name, p->items[k].name) : i + skipped != k)
            continue;
        ir_value *v = args->items[i].v.kind == EM_VALUE ? args->items[i].v.value : NULL;
        return v && v->type->kind == IR_BOOL && ir_const_bool(v, &known) ? (signed char)known : -1;
    }
    return otherwise;
}

fe_function *em_flag_variant(emitter *E, fe_function *f, const ir_type *returns, size_t skipped, const em_arguments *args) {
    const ast_parameters *p = &f->node->parameters;
    if (!returns || returns->kind != IR_UNION || f->is_library || f->known_flags || f->node->third ||
        f->node->kind != AST_FUNCTION)
        return f;
    signed char *flags = TS_NEW_ARRAY(E->arena, signed char, p->count + 1);
    char *key = TS_NEW_ARRAY(E->arena, char, p->count + 6);
    size_t known = 0;
    memcpy(key, "flags ", 6);
    for (size_t k = 0; k < p->count; k++) {
        bool is_plain = k >= skipped && !p->items[k].is_star && !p->items[k].is_double_star;
        flags[k] = is_plain ? known_bool(p, k, skipped, args) : -1;
        known += flags[k] >= 0;
        key[6 + k] = flags[k] < 0 ? '?' : flags[k] ? 'T' : 'F';
    }
    if (!known)
        return f;
    ts_str text = {key, p->count + 6};
    fe_function *variant = fe_map_get(&f->variants, text);
    if (!variant) {
        variant = em_copy_function(E, f);
        variant->known_flags = flags;
        variant->name = ts_arena_format(E->arena, "%.*s$flags%zu", TS_STR_ARG(f->name), f->variants.count + 1);
        fe_map_set(E->arena, &f->variants, text, variant);
    }
    return variant;
}

/* torch.nn.functional.max_pool2d(..., return_indices=True) is another function, as its result is
 * another type: max_pool2d_with_indices. */
fe_function *em_with_indices(emitter *E, fe_function *f, const em_arguments *args, const ast_node *node) {
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

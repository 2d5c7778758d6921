/* frontend/emit_flags.c - what torch in Python has beyond its operators: functions whose results
 * depend on flags, so that the flags must be known when the model is compiled. */
#include "frontend/emit_internal.h"

enum { MOST_ARGUMENTS = 5 };

/* Arguments by position or name; NULL where one is not given. */
static bool bind(emitter *E, const em_arguments *args, const char *const *names, size_t count,
                 ir_value **out, const ast_node *node) {
    size_t next = 0;
    for (size_t i = 0; i < args->count; i++) {
        size_t k = next;
        if (args->items[i].name.length)
            for (k = 0; k < count && !ts_str_is(args->items[i].name, names[k]);)
                k++;
        else
            next++;
        if (k >= count || out[k])
            return false;
        out[k] = em_ir(E, args->items[i].v, node, NULL);
        if (!out[k])
            return false;
    }
    return out[0] != NULL;
}

static bool flag(emitter *E, const ir_value *v, bool otherwise, const ast_node *node, bool *failed) {
    bool value = otherwise;
    if (v && !ir_const_bool(v, &value)) {
        EM_UNSUPPORTED(E, node, "return_inverse and return_counts must be known when the model is compiled");
        *failed = true;
    }
    return value;
}

/* torch.unique(input, sorted, return_inverse, return_counts, dim): one result, or a tuple. */
static em emit_unique(emitter *E, bool consecutive, ir_value **a, const ast_node *node) {
    bool failed = false;
    bool inverse = flag(E, a[2], false, node, &failed), counts = flag(E, a[3], false, node, &failed);
    if (failed)
        return em_error();
    ir_value *sorted = a[1] ? a[1] : ir_build_bool(&E->b, true);
    ir_value *yes = ir_build_bool(&E->b, inverse), *many = ir_build_bool(&E->b, counts), *all;
    bool has_dim = a[4] && a[4]->type->kind != IR_NONE;
    if (consecutive)
        all = em_row(E, "unique_consecutive", node, 4, a[0], yes, many, has_dim ? a[4] : ir_build_none(&E->b));
    else if (has_dim)
        all = em_row(E, "unique_dim", node, 5, a[0], a[4], sorted, yes, many);
    else
        all = em_row(E, "_unique2", node, 4, a[0], sorted, yes, many);
    if (!all || all->type->kind != IR_TUPLE)
        return em_error();
    ir_op *unpack = ir_build_op(&E->b, IR_OP_TUPLE_UNPACK, &all, 1, all->type->args, all->type->arg_count);
    ir_value *kept[3] = {unpack->results[0]};
    size_t count = 1;
    if (inverse)
        kept[count++] = unpack->results[1];
    if (counts)
        kept[count++] = unpack->results[2];
    return em_value(count == 1 ? kept[0] : em_tuple_of(E, kept, count));
}

em em_call_by_flags(emitter *E, ts_str name, em_arguments *args, const ast_node *node, bool *out_known) {
    static const char *const unique[] = {"input", "sorted", "return_inverse", "return_counts", "dim"};
    static const char *const runs[] = {"input", "return_inverse", "return_counts", "dim"};
    ir_value *a[MOST_ARGUMENTS] = {NULL};
    *out_known = false;
    if (!node || (node->source && node->source->is_archive))
        return em_error();
    if (ts_str_is(name, "unique") && bind(E, args, unique, 5, a, node)) {
        *out_known = true;
        return emit_unique(E, false, a, node);
    }
    if (ts_str_is(name, "unique_consecutive")) {
        ir_value *r[MOST_ARGUMENTS] = {NULL};
        if (!bind(E, args, runs, 4, r, node))
            return em_error();
        a[0] = r[0];
        for (size_t i = 1; i < 4; i++)
            a[i + 1] = r[i];
        *out_known = true;
        return emit_unique(E, true, a, node);
    }
    if (ts_str_is(name, "nonzero") && args->count == 2 && ts_str_is(args->items[1].name, "as_tuple")) {
        bool as_tuple;
        ir_value *v = em_ir(E, args->items[1].v, node, NULL), *x = em_ir(E, args->items[0].v, node, NULL);
        if (!v || !x || !ir_const_bool(v, &as_tuple))
            return em_error();
        *out_known = true;
        em found = em_value(em_op(E, as_tuple ? "nonzero_numpy" : "nonzero", node, 1, x));
        found.is_tuple = as_tuple && found.kind == EM_VALUE;
        return found;
    }
    return em_error();
}

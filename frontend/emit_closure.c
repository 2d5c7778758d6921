/* frontend/emit_closure.c - calls of lambdas and nested functions, which are emitted in place. */
#include "frontend/emit_internal.h"

/* ---- closures: lambdas and nested functions, made in place ---- */

static void push_local(emitter *E, ts_str name, em v) {
    em_local local = {.name = name, .v = v};
    TS_APPEND(E->arena, E->locals, E->local_count, E->local_capacity, local);
}

static bool bind_closure(emitter *E, const ast_node *f, em *args, size_t count, em_arguments *named,
                         em *out, const ast_node *node) {
    const ast_parameters *p = &f->parameters;
    bool has_star = false;
    for (size_t i = 0; i < p->count; i++)
        has_star = has_star || p->items[i].is_star;
    if (count > p->count && !has_star) {
        EM_ERR(E, node, "the function takes %zu argument%s, %zu were given", p->count,
               p->count == 1 ? "" : "s", count);
        return false;
    }
    for (size_t i = 0; i < p->count; i++) {
        if (p->items[i].is_star) {
            em *rest = TS_NEW_ARRAY(E->arena, em, count + 1);
            size_t n = 0;
            for (size_t k = i; k < count; k++)
                rest[n++] = args[k];
            out[i] = (em){.kind = EM_TUPLE, .items = rest, .count = n};
            count = count < i ? count : i;
            continue;
        }
        if (p->items[i].is_double_star) {
            ir_value **items = TS_NEW_ARRAY(E->arena, ir_value *, 2 * (named ? named->count : 0) + 1);
            const ir_type *type = NULL;
            size_t n = 0;
            for (size_t k = 0; named && k < named->count; k++) {
                bool is_own = false;
                for (size_t q = 0; q < p->count; q++)
                    is_own = is_own || (q != i && ts_str_equal(p->items[q].name, named->items[k].name));
                if (is_own)
                    continue;
                items[n++] = ir_build_str(&E->b, named->items[k].name);
                items[n] = em_ir(E, named->items[k].v, node, NULL);
                if (!items[n])
                    return false;
                const ir_type *one = ir_type_forget(E->m, items[n++]->type);
                type = type ? ir_type_join(E->m, type, one) : one;
            }
            for (size_t k = 1; k < n; k += 2)
                items[k] = em_cast(E, items[k], type);
            type = ir_type_dict(E->m, em_simple(E, IR_STR), type ? type : ir_type_any_tensor(E->m));
            out[i] = em_value(em_dict_of(E, items, n, type));
            continue;
        }
        bool given = i < count;
        if (given)
            out[i] = args[i];
        for (size_t k = 0; named && k < named->count && !given; k++)
            if (ts_str_equal(named->items[k].name, p->items[i].name)) {
                out[i] = named->items[k].v;
                given = true;
            }
        if (!given && p->items[i].default_value) {
            out[i] = em_expression(E, p->items[i].default_value, NULL);
            given = true;
        }
        if (!given) {
            EM_ERR(E, node, "argument '%.*s' is missing", TS_STR_ARG(p->items[i].name));
            return false;
        }
        if (out[i].kind == EM_ERROR)
            return false;
    }
    return true;
}

static em call_nested(emitter *E, const ast_node *f, em *values, const ast_node *node) {
    fe_map saved_variables = E->variables;
    em_slot saved_flags[EM_SLOT_FIRST];
    memcpy(saved_flags, E->env.slots, sizeof saved_flags);
    int saved_depth = E->loop_depth;
    const ir_type *saved_return = E->declared_return;
    fe_map inner = {0};
    size_t prefix = f->text.length + 1;
    for (size_t i = 0; i < saved_variables.count; i++)
        fe_map_set(E->arena, &inner, saved_variables.keys[i], saved_variables.values[i]);
    for (size_t i = 0; i < saved_variables.count; i++) {
        ts_str key = saved_variables.keys[i];
        bool is_own = key.length > prefix && memcmp(key.data, f->text.data, f->text.length) == 0 &&
                      key.data[f->text.length] == '.';
        ts_str bare = {key.data + prefix, key.length - prefix};
        if (!is_own)
            continue;
        bool is_outer = false; /* nonlocal */
        for (size_t k = 0; k < f->body.count; k++)
            if (f->body.items[k]->kind == AST_NONLOCAL)
                for (size_t n = 0; n < f->body.items[k]->list.count; n++)
                    is_outer = is_outer || ts_str_equal(f->body.items[k]->list.items[n]->text, bare);
        if (is_outer)
            continue;
        fe_map_set(E->arena, &inner, bare, saved_variables.values[i]);
        E->env.slots[(size_t)saved_variables.values[i] - 1] = (em_slot){0};
    }
    E->variables = inner;
    em_reset_flags(E);
    E->loop_depth = 0;
    E->declared_return = f->third ? em_annotation(E, f->third) : NULL;
    for (size_t i = 0; i < f->parameters.count; i++) {
        size_t slot = (size_t)fe_map_get(&E->variables, f->parameters.items[i].name);
        if (slot)
            em_set_variable(E, slot - 1, values[i], node);
    }
    em_statements(E, &f->body, 0);
    ir_value *result = NULL;
    if (E->env.state == EM_LIVE && em_flag_is_dynamic(E, EM_SLOT_EXITED)) {
        em_slot r = E->env.slots[EM_SLOT_RESULT];
        em_choice choice;
        ir_value *exited = E->env.slots[EM_SLOT_EXITED].v.value;
        em_choose(E, &choice, exited);
        em_choose_other(E, &choice, r.v.value);
        result = em_choose_end(E, &choice, ir_build_none(&E->b), node);
    } else if (E->env.slots[EM_SLOT_RESULT].is_set) {
        result = E->env.slots[EM_SLOT_RESULT].v.value;
    }
    bool unreachable = E->env.state == EM_UNREACHABLE;
    if (!unreachable)
        E->env.state = EM_LIVE;
    E->variables = saved_variables;
    memcpy(E->env.slots, saved_flags, sizeof saved_flags);
    E->loop_depth = saved_depth;
    E->declared_return = saved_return;
    return em_value(result ? result : ir_build_none(&E->b));
}

em em_call_closure(emitter *E, const ast_node *closure, em *args, size_t count, em_arguments *named,
                   const ast_node *node) {
    if (em_is_generator(closure))
        return em_call_nested_generator(E, closure, args, count, node);
    for (size_t i = 0; i < E->active_count; i++)
        if (E->active[i] == closure) { /* it calls itself: a function of its own */
            em_make_object_closure(E, closure);
            return em_error();
        }
    em *values = TS_NEW_ARRAY(E->arena, em, closure->parameters.count + 1);
    if (++E->depth > 400) {
        EM_UNSUPPORTED(E, node, "recursion of a nested function is not supported yet");
        E->depth--;
        return em_error();
    }
    em r = em_error();
    TS_APPEND(E->arena, E->active, E->active_count, E->active_capacity, closure);
    if (bind_closure(E, closure, args, count, named, values, node)) {
        if (closure->kind == AST_LAMBDA) {
            size_t saved = E->local_count;
            for (size_t i = 0; i < closure->parameters.count; i++)
                push_local(E, closure->parameters.items[i].name, values[i]);
            r = em_expression(E, closure->left, NULL);
            if (r.kind == EM_CLOSURE && r.node->source == closure->source && r.node->offset >= closure->left->offset &&
                r.node->offset < closure->left->offset + closure->left->length)
                r = em_value(em_function_object(E, r, node)); /* it outlives what it captures here */
            E->local_count = saved;
        } else {
            r = call_nested(E, closure, values, node);
        }
    }
    E->active_count--;
    E->depth--;
    return r;
}

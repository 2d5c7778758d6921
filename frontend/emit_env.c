/* frontend/emit_env.c - environments and their joins. */
#include "frontend/emit_internal.h"

static em_slot *take_slots(emitter *E) {
    return E->spare_count ? E->spare[--E->spare_count]
                          : TS_NEW_ARRAY(E->arena, em_slot, E->slot_count);
}

em_env em_env_copy(emitter *E) {
    em_env copy = {take_slots(E), E->env.state};
    memcpy(copy.slots, E->env.slots, E->slot_count * sizeof *copy.slots);
    return copy;
}

void em_env_release(emitter *E, em_env *env) {
    TS_APPEND(E->arena, E->spare, E->spare_count, E->spare_capacity, env->slots);
    env->slots = NULL;
}

bool em_needed_after(const emitter *E, size_t slot, uint32_t offset) {
    if (slot < EM_SLOT_FIRST)
        return true;
    return E->last_read[slot] >= offset || (E->in_loop && E->last_read[slot] >= E->loop_begin);
}

ir_block *em_enter(emitter *E, ir_block *block) {
    ir_block *before = E->b.block;
    E->b.block = block;
    E->b.before = NULL;
    return before;
}

void em_leave(emitter *E, ir_block *block) {
    E->b.block = block;
    E->b.before = NULL;
}

ir_value *em_uninitialized(emitter *E, const ir_type *type) {
    ir_op *op = ir_build_op(&E->b, IR_OP_UNINITIALIZED, NULL, 0, &type, 1);
    op->type = type;
    return op->results[0];
}

ir_value *em_cast(emitter *E, ir_value *v, const ir_type *type) {
    if (!v || v->type == type || ir_type_same_shape_of(v->type, type))
        return v;
    ir_op *op = ir_build_op(&E->b, IR_OP_CAST, &v, 1, &type, 1);
    return op->results[0];
}

ir_value *em_check_cast(emitter *E, ir_value *v, const ir_type *type) {
    if (!v || v->type == type || ir_type_is_subtype(v->type, type))
        return em_cast(E, v, type);
    ir_op *op = ir_build_op(&E->b, IR_OP_CHECK_CAST, &v, 1, &type, 1);
    return op->results[0];
}

void em_apply_facts(emitter *E, const em_facts *facts) {
    for (size_t i = 0; i < facts->count; i++) {
        em_slot *slot = &E->env.slots[facts->items[i].slot];
        const ir_type *type = facts->items[i].type;
        if (!slot->is_set || slot->v.kind != EM_VALUE || slot->v.value->type == type)
            continue;
        if (!slot->origin)
            slot->origin = slot->v.value;
        slot->v.value = em_cast(E, slot->v.value, type);
    }
}

/* ---- joins ---- */

typedef struct yield_pair {
    ir_value *a, *b;
    const ir_type *type;
    ir_value **target; /* where the result goes */
    ts_str name;
} yield_pair;

typedef struct joiner {
    emitter *E;
    em_branch *a, *b;
    yield_pair *pairs;
    size_t count, capacity;
    size_t *recast; /* slots that both refined alike */
    size_t recast_count, recast_capacity;
} joiner;

static void recast_later(joiner *j, size_t slot) {
    TS_APPEND(j->E->arena, j->recast, j->recast_count, j->recast_capacity, slot);
}

static bool same_em(const em *x, const em *y) {
    if (x->kind != y->kind)
        return false;
    switch (x->kind) {
    case EM_VALUE:
        return x->value == y->value;
    case EM_BINDING:
        return x->binding->kind == y->binding->kind && x->binding->function == y->binding->function &&
               x->binding->class_ == y->binding->class_ &&
               ts_str_equal(x->binding->path, y->binding->path) &&
               memcmp(&x->binding->value, &y->binding->value, sizeof(rt_value)) == 0;
    default:
        return x->value == y->value && x->node == y->node && x->items == y->items &&
               ts_str_equal(x->name, y->name);
    }
}

static ir_value *base_of(const em_slot *s) {
    return s->origin ? s->origin : s->v.kind == EM_VALUE ? s->v.value : NULL;
}

/* A pair of yields whose result goes to *target. NULL stands for a value never read. */
static void add_pair(joiner *j, ir_value *a, ir_value *b, const ir_type *type, ir_value **target,
                     ts_str name) {
    emitter *E = j->E;
    ir_block *here = em_enter(E, j->a->block);
    a = a ? em_cast(E, a, type) : em_uninitialized(E, type);
    em_enter(E, j->b->block);
    b = b ? em_cast(E, b, type) : em_uninitialized(E, type);
    em_leave(E, here);
    yield_pair pair = {a, b, type, target, name};
    TS_APPEND(E->arena, j->pairs, j->count, j->capacity, pair);
}

static ir_value *bool_in(emitter *E, ir_block *block, ir_value *v, bool otherwise) {
    if (v)
        return v;
    ir_block *here = em_enter(E, block);
    v = ir_build_bool(&E->b, otherwise);
    em_leave(E, here);
    return v;
}

static bool is_flag(size_t slot) { return slot < EM_SLOT_RESULT; }

/* A binding of a plain value as an IR constant of the branch, so that it can join. */
static void materialise(emitter *E, em_slot *s, ir_block *block) {
    if (!s->is_set || s->v.kind == EM_VALUE)
        return;
    bool is_user_function = s->v.kind == EM_CLOSURE ||
                            (s->v.kind == EM_BINDING && (s->v.binding->kind == FE_FUNCTION || s->v.binding->kind == FE_NAME));
    if (s->v.kind == EM_BINDING && s->v.binding->kind != FE_VALUE && !is_user_function)
        return;
    if (s->v.kind != EM_BINDING && s->v.kind != EM_TUPLE && s->v.kind != EM_ITEMS && !is_user_function)
        return;
    ir_block *here = em_enter(E, block);
    ir_value *v = em_ir(E, s->v, is_user_function && E->function ? E->function->node : NULL, NULL);
    em_leave(E, here);
    if (v)
        s->v = em_value(v);
}

static void join_one_live(joiner *j, em_slot *live, const em_slot *before, em_slot *out,
                          bool live_is_a, size_t slot, uint32_t end) {
    emitter *E = j->E;
    *out = *live;
    if (!live->is_set || (before->is_set && same_em(&live->v, &before->v) &&
                          live->defined == before->defined))
        return;
    if (live->v.kind != EM_VALUE)
        return;
    if (before->is_set && live->origin && live->origin == base_of(before)) {
        recast_later(j, slot);
        return;
    }
    if (!em_needed_after(E, slot, end)) {
        out->is_set = false;
        return;
    }
    out->origin = NULL;
    ir_value *v = live->v.value;
    if (is_flag(slot)) {
        bool known;
        if (ir_const_bool(v, &known)) {
            out->v = em_value(ir_build_bool(&E->b, known));
            return;
        }
    }
    add_pair(j, live_is_a ? v : NULL, live_is_a ? NULL : v, v->type, &out->v.value,
             E->slot_names[slot]);
    if (live->defined) {
        ir_value *no = bool_in(E, live_is_a ? j->b->block : j->a->block, NULL, false);
        add_pair(j, live_is_a ? live->defined : no, live_is_a ? no : live->defined,
                 em_simple(E, IR_BOOL), &out->defined, (ts_str){0});
    }
}

static void join_both(joiner *j, em_slot *a, em_slot *b, em_slot *out, size_t slot, uint32_t end) {
    emitter *E = j->E;
    *out = *a;
    if (!a->is_set && !b->is_set)
        return;
    if (is_flag(slot)) {
        ir_value *x = a->is_set ? a->v.value : NULL, *y = b->is_set ? b->v.value : NULL;
        bool p = false, q = false;
        bool known_x = !x || ir_const_bool(x, &p), known_y = !y || ir_const_bool(y, &q);
        out->is_set = true;
        if (known_x && known_y && p == q) {
            out->v = em_value(ir_build_bool(&E->b, p));
        } else if (x && x == y) {
            out->v = em_value(x);
        } else {
            out->v = em_value(bool_in(E, j->a->block, x, false)); /* replaced by the result */
            add_pair(j, out->v.value, bool_in(E, j->b->block, y, false), em_simple(E, IR_BOOL),
                     &out->v.value, (ts_str){0});
        }
        return;
    }
    if (a->is_set && b->is_set && same_em(&a->v, &b->v) && a->defined == b->defined) {
        if (a->origin != b->origin)
            out->origin = NULL;
        return;
    }
    if (a->is_set && b->is_set && base_of(a) && base_of(a) == base_of(b) &&
        a->defined == b->defined) {
        /* Not assigned, only refined: by both alike, or the knowledge ends here. */
        out->origin = base_of(a);
        if (a->v.value->type == b->v.value->type)
            recast_later(j, slot);
        else {
            out->v = em_value(out->origin);
            out->origin = NULL;
        }
        return;
    }
    if (!em_needed_after(E, slot, end)) {
        out->is_set = false;
        return;
    }
    materialise(E, a, j->a->block);
    materialise(E, b, j->b->block);
    bool fits_a = !a->is_set || a->v.kind == EM_VALUE, fits_b = !b->is_set || b->v.kind == EM_VALUE;
    if (!fits_a || !fits_b) {
        out->is_set = false; /* a function on one side, another on the other */
        return;
    }
    ir_value *x = a->is_set ? a->v.value : NULL, *y = b->is_set ? b->v.value : NULL;
    if (x && y && !ir_type_same_shape_of(x->type, y->type) && !em_retype_empty(E, x, y->type))
        em_retype_empty(E, y, x->type);
    const ir_type *type = !x ? y->type : !y ? x->type : x->type;
    const ir_type *declared = a->declared ? a->declared : b->declared;
    if (x && y && !ir_type_same_shape_of(x->type, y->type))
        type = declared && ir_type_is_subtype(x->type, declared) &&
                       ir_type_is_subtype(y->type, declared)
                   ? declared : ir_type_join(E->m, x->type, y->type);
    else if (x && y)
        type = ir_type_join(E->m, x->type, y->type);
    out->is_set = true;
    out->origin = NULL;
    out->declared = declared;
    bool is_tuple = a->v.is_tuple && b->v.is_tuple;
    out->v = em_value(x ? x : y);
    out->v.is_tuple = is_tuple;
    out->v.is_size = a->v.is_size && b->v.is_size;
    out->v.is_list = a->v.is_list && b->v.is_list;
    add_pair(j, x, y, type, &out->v.value, E->slot_names[slot]);
    bool maybe = slot >= EM_SLOT_FIRST && (!x || !y || a->defined || b->defined);
    /* Code that follows a return runs only where the other side came through. */
    if (!E->in_loop && ((!x && j->a->env.state == EM_EXITED) || (!y && j->b->env.state == EM_EXITED)))
        maybe = (x && a->defined) || (y && b->defined);
    out->defined = NULL;
    if (maybe) {
        ir_value *p = bool_in(E, j->a->block, x ? a->defined : NULL, x != NULL);
        ir_value *q = bool_in(E, j->b->block, y ? b->defined : NULL, y != NULL);
        out->defined = p;
        add_pair(j, p, q, em_simple(E, IR_BOOL), &out->defined, (ts_str){0});
    }
}

void em_branches_release(emitter *E, em_env *before, em_branch *a, em_branch *b) {
    em_env_release(E, before);
    em_env_release(E, &a->env);
    em_env_release(E, &b->env);
}

static void build_yield(const joiner *j, bool is_a) {
    ir_value **values = TS_NEW_ARRAY(j->E->arena, ir_value *, j->count + 1);
    for (size_t i = 0; i < j->count; i++)
        values[i] = is_a ? j->pairs[i].a : j->pairs[i].b;
    ir_build_yield(&j->E->b, values, j->count);
}

void em_merge(emitter *E, ir_op *op, const em_env *before, em_branch *a, em_branch *b,
              uint32_t end_offset) {
    joiner j = {.E = E, .a = a, .b = b};
    em_env out = {.slots = take_slots(E)};
    bool dead_a = a->env.state == EM_UNREACHABLE, dead_b = b->env.state == EM_UNREACHABLE;
    for (size_t s = 0; s < E->slot_count; s++) {
        em_slot *x = &a->env.slots[s], *y = &b->env.slots[s], *o = &out.slots[s];
        if (dead_a && dead_b)
            *o = before->slots[s];
        else if (dead_a)
            join_one_live(&j, y, &before->slots[s], o, false, s, end_offset);
        else if (dead_b)
            join_one_live(&j, x, &before->slots[s], o, true, s, end_offset);
        else
            join_both(&j, x, y, o, s, end_offset);
    }
    out.state = dead_a ? b->env.state
                : dead_b ? a->env.state
                : a->env.state == EM_EXITED && b->env.state == EM_EXITED ? EM_EXITED : EM_LIVE;
    ir_block *here = em_enter(E, a->block);
    build_yield(&j, true);
    em_enter(E, b->block);
    build_yield(&j, false);
    em_leave(E, here);
    for (size_t i = 0; i < j.count; i++)
        *j.pairs[i].target = ir_op_add_result(E->m, op, j.pairs[i].type, j.pairs[i].name);
    for (size_t i = 0; i < j.recast_count; i++) {
        em_slot *slot = &out.slots[j.recast[i]];
        slot->v = em_value(em_cast(E, slot->origin, slot->v.value->type));
    }
    E->env = out;
}

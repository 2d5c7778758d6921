/* frontend/emit_loop.c - while and for.
 *
 * What the body assigns is carried. Types of carried values are those at the entry; where the body
 * leaves another type, or reads what only an earlier iteration has set, the loop is made anew with
 * the wider type. */
#include "frontend/emit_internal.h"

enum { MAX_REDOS = 4000 };

typedef struct carried {
    size_t slot;
    bool is_defined_flag; /* carries slot.defined */
    const ir_type *type;
    ir_value *initial;
} carried;

typedef struct loop {
    const ast_node *node;
    const em_iteration *it; /* NULL: while */
    ir_value *go;           /* while: the condition at the entry */
    em_facts facts;         /* while: what the condition says */
    ir_value *index;        /* for: the counter of this attempt */
    em_env entry;
    carried *list;
    size_t count, capacity;
    /* what the last attempt found */
    bool redo;
} loop;

static uint32_t end_of(const ast_node *node) { return node->offset + node->length; }

static carried *find_carried(loop *l, size_t slot) {
    for (size_t i = 0; i < l->count; i++)
        if (l->list[i].slot == slot && !l->list[i].is_defined_flag)
            return &l->list[i];
    return NULL;
}

static void carry(emitter *E, loop *l, size_t slot) {
    em_slot *s = &l->entry.slots[slot];
    if (!s->is_set || find_carried(l, slot))
        return;
    if (s->v.kind == EM_BINDING && s->v.binding->kind == FE_VALUE)
        s->v = em_value(em_ir(E, s->v, l->node, NULL));
    if (s->v.kind != EM_VALUE)
        return;
    carried c = {.slot = slot, .type = ir_type_forget(E->m, s->v.value->type), .initial = s->v.value};
    TS_APPEND(E->arena, l->list, l->count, l->capacity, c);
    if (s->defined) {
        carried d = {.slot = slot, .is_defined_flag = true, .type = em_simple(E, IR_BOOL),
                     .initial = s->defined};
        TS_APPEND(E->arena, l->list, l->count, l->capacity, d);
    }
}

static void collect_carried(emitter *E, loop *l) {
    emitter names = {.arena = E->arena};
    em_collect(&names, &l->node->body);
    if (l->it)
        em_collect(&names, &(ast_list){.items = (ast_node *[]){(ast_node *)(uintptr_t)l->node}, .count = 1});
    else
        em_collect_expression(&names, l->node->test);
    for (size_t i = 0; i < names.variables.count; i++) {
        size_t slot = (size_t)fe_map_get(&E->variables, names.variables.keys[i]);
        if (slot)
            carry(E, l, slot - 1);
    }
}

static const ir_type *widen(emitter *E, const em_slot *s, const ir_type *a, const ir_type *b) {
    if (s->declared && ir_type_is_subtype(a, s->declared) && ir_type_is_subtype(b, s->declared))
        return s->declared;
    return ir_type_forget(E->m, ir_type_join(E->m, a, b));
}

/* The condition of the next iteration, at the end of the body. */
static ir_value *next_condition(emitter *E, loop *l) {
    if (!l->it) {
        em_condition c = em_condition_of(E, l->node->test);
        return c.known >= 0 ? ir_build_bool(&E->b, c.known == 1)
               : c.value    ? c.value
                            : ir_build_bool(&E->b, false);
    }
    if (l->it->iterator) {
        ir_value *more = em_iteration_advance(E, l->it, l->node);
        return more ? more : ir_build_bool(&E->b, false);
    }
    if (l->it->growing) {
        ir_value *next = em_row(E, "add.int", l->node, 2, l->index, ir_build_int(&E->b, 1));
        return em_row(E, "lt.int", l->node, 2, next, em_op(E, "len", l->node, 1, l->it->growing));
    }
    if (l->it->dict_check)
        em_row(E, "prim_dict_iter_check", l->node->right, 2, l->it->dict_check, l->it->dict_size);
    return ir_build_bool(&E->b, true);
}

static ir_value *end_of_iteration(emitter *E, loop *l) {
    if (E->env.state == EM_UNREACHABLE)
        return ir_build_bool(&E->b, false);
    em_slot broke = E->env.slots[EM_SLOT_BREAK];
    bool known = false;
    if (!broke.is_set || ir_const_bool(broke.v.value, &known)) {
        E->env.state = EM_LIVE;
        return known ? ir_build_bool(&E->b, false) : next_condition(E, l);
    }
    E->env.state = EM_LIVE;
    em_env before = em_env_copy(E);
    ir_op *op = ir_build_if(&E->b, broke.v.value);
    ir_block *here = em_enter(E, op->regions[0]);
    ir_value *no = ir_build_bool(&E->b, false);
    em_branch a = {.block = op->regions[0], .env = em_env_copy(E)};
    em_enter(E, op->regions[1]);
    ir_value *go = next_condition(E, l);
    /* The answer travels as the EXITED flag, which nobody needs any more. */
    a.env.slots[EM_SLOT_EXITED] = (em_slot){.is_set = true, .v = em_value(no)};
    E->env.slots[EM_SLOT_EXITED] = (em_slot){.is_set = true, .v = em_value(go)};
    em_branch b = {.block = E->b.block, .env = em_env_copy(E)};
    em_leave(E, here);
    em_env earlier = E->env;
    em_merge(E, op, &before, &a, &b, end_of(l->node));
    em_env_release(E, &earlier);
    em_branches_release(E, &before, &a, &b);
    E->env.state = EM_LIVE;
    return E->env.slots[EM_SLOT_EXITED].v.value;
}

/* A slot that the body set and the loop did not carry yet: it starts undefined. */
static void carry_late(emitter *E, loop *l, ir_op *op, size_t slot, ir_block *outer) {
    em_slot *s = &E->env.slots[slot];
    if (s->v.kind != EM_VALUE)
        return;
    const ir_type *type = ir_type_forget(E->m, s->v.value->type);
    ir_block *here = E->b.block;
    E->b.block = outer;
    E->b.before = op;
    bool is_flag = slot < EM_SLOT_RESULT;
    carried c = {.slot = slot, .type = type};
    c.initial = is_flag ? ir_build_bool(&E->b, false) : em_uninitialized(E, type);
    TS_APPEND(E->arena, l->list, l->count, l->capacity, c);
    carried d = {.slot = slot, .is_defined_flag = true, .type = em_simple(E, IR_BOOL)};
    d.initial = slot >= EM_SLOT_FIRST ? ir_build_bool(&E->b, false) : NULL;
    em_leave(E, here);
    ir_op_add_operand(E->m, op, c.initial);
    ir_block_add_parameter(E->m, op->regions[0], type, E->slot_names[slot]);
    if (d.initial) {
        TS_APPEND(E->arena, l->list, l->count, l->capacity, d);
        ir_op_add_operand(E->m, op, d.initial);
        ir_block_add_parameter(E->m, op->regions[0], d.type, (ts_str){0});
    }
}

static bool was_read_undefined(const emitter *E, size_t from, size_t slot) {
    for (size_t i = from; i < E->read_undefined_count; i++)
        if (E->read_undefined[i] == slot)
            return true;
    return false;
}

/* Values for the yield; types that do not fit ask for another attempt. */
static void check_types(emitter *E, loop *l, size_t reads_from) {
    for (size_t i = 0; i < l->count; i++) {
        carried *c = &l->list[i];
        em_slot *s = &E->env.slots[c->slot];
        if (c->is_defined_flag || !s->is_set)
            continue;
        if (s->v.kind == EM_BINDING && s->v.binding->kind == FE_VALUE)
            s->v = em_value(em_ir(E, s->v, l->node, NULL));
        if (s->v.kind != EM_VALUE)
            continue;
        if (s->defined && !l->entry.slots[c->slot].defined) {
            ir_block *here = E->b.block;
            (void)here; /* becomes maybe undefined: carry the flag */
            l->entry.slots[c->slot].defined = NULL;
        }
        ir_value *v = s->origin && !ir_type_is_subtype(s->v.value->type, c->type) ? s->origin : s->v.value;
        if (!ir_type_is_subtype(v->type, c->type) &&
            (em_retype_empty(E, c->initial, v->type) || em_retype_empty(E, v, c->type)))
            continue;
        if (!ir_type_is_subtype(v->type, c->type)) {
            c->type = widen(E, s, c->type, v->type);
            l->redo = true;
        }
    }
    for (size_t slot = EM_SLOT_FIRST; slot < E->slot_count; slot++) {
        em_slot *s = &E->env.slots[slot], *entry = &l->entry.slots[slot];
        if (!s->is_set || s->v.kind != EM_VALUE || find_carried(l, slot))
            continue;
        if (entry->is_set) {
            bool same = entry->v.kind == EM_VALUE && (entry->v.value == s->v.value || s->origin == entry->v.value ||
                                                      (s->origin && s->origin == entry->origin));
            if (!same && entry->v.kind == EM_VALUE) { /* set by a nested function: carry it, too */
                carry(E, l, slot);
                l->redo = true;
            }
        } else if (was_read_undefined(E, reads_from, slot)) {
            const ir_type *type = ir_type_forget(E->m, s->v.value->type);
            ir_op *def = l->entry.slots[0].is_set ? NULL : NULL;
            (void)def;
            l->entry.slots[slot] = (em_slot){.is_set = true, .declared = s->declared,
                                             .v = {.kind = EM_TUPLE, .class_ = (ir_class *)(uintptr_t)type}};
            l->redo = true;
        }
    }
}

/* The slot with another value of what it held before the loop: a list may stand for a tuple or a size. */
static em_slot slot_as_before(const em_slot *before, ir_value *v, const em_slot *now) {
    em_slot s = {.is_set = true, .v = em_value(v), .declared = now->declared, .defined = now->defined};
    s.v.is_tuple = before->v.is_tuple;
    s.v.is_size = before->v.is_size;
    return s;
}

static void give_results(emitter *E, loop *l, ir_op *op) {
    for (size_t i = 0; i < l->count; i++) {
        carried *c = &l->list[i];
        ir_value *r = ir_op_add_result(E->m, op, c->type,
                                       c->is_defined_flag ? (ts_str){0} : E->slot_names[c->slot]);
        em_slot *out = &E->env.slots[c->slot];
        if (c->is_defined_flag) {
            out->defined = r;
        } else {
            *out = slot_as_before(&l->entry.slots[c->slot], r, out);
            out->defined = NULL;
        }
    }
}

/* One attempt. False: l->redo, everything is taken back. */
static bool attempt(emitter *E, loop *l) {
    const ast_node *node = l->node;
    fe_diagnostics *diagnostics = E->fe->diagnostics;
    size_t saved_count = diagnostics->count, saved_errors = diagnostics->error_count;
    bool saved_failed = E->failed;
    size_t reads_from = E->read_undefined_count;
    l->redo = false;
    ir_block *outer = E->b.block;
    /* Slots that an earlier attempt found to be read before they are set. */
    for (size_t slot = EM_SLOT_FIRST; slot < E->slot_count; slot++) {
        em_slot *s = &l->entry.slots[slot];
        if (s->is_set && s->v.kind == EM_TUPLE && s->v.class_ && !s->v.items) {
            const ir_type *type = (const ir_type *)(uintptr_t)s->v.class_;
            *s = (em_slot){.is_set = true, .declared = s->declared, .v = em_value(em_uninitialized(E, type)),
                           .defined = ir_build_bool(&E->b, false)};
            carry(E, l, slot);
        }
    }
    ir_value **initial = TS_NEW_ARRAY(E->arena, ir_value *, l->count + 1);
    for (size_t i = 0; i < l->count; i++)
        initial[i] = em_cast(E, l->list[i].initial, l->list[i].type);
    em_place(E, node);
    bool growing = l->it && l->it->growing;
    bool is_object = l->it && l->it->iterator;
    ir_value *max = l->it && !growing && !is_object ? l->it->trip : ir_build_int(&E->b, INT64_MAX);
    ir_value *go = is_object ? l->go
                   : growing ? em_row(E, "gt.int", node, 2, l->it->trip, ir_build_int(&E->b, 0))
                   : l->it ? ir_build_bool(&E->b, true) : l->go;
    ir_op *op = ir_build_loop(&E->b, max, go, initial, l->count);
    ir_block *body = op->regions[0];
    l->index = body->parameters[0];
    em_env_release(E, &E->env); /* as it was before the loop, or after an attempt */
    E->env = l->entry;
    E->env = em_env_copy(E);
    for (size_t i = 0; i < l->count; i++) {
        carried *c = &l->list[i];
        ir_value *p = ir_block_add_parameter(E->m, body, c->type,
                                             c->is_defined_flag ? (ts_str){0} : E->slot_names[c->slot]);
        em_slot *s = &E->env.slots[c->slot];
        if (c->is_defined_flag) {
            s->defined = p;
        } else {
            *s = slot_as_before(&l->entry.slots[c->slot], p, s);
        }
    }
    em_reset_flags(E);
    E->env.state = EM_LIVE;
    bool saved_in_loop = E->in_loop;
    uint32_t saved_begin = E->loop_begin;
    if (!E->in_loop) {
        E->in_loop = true;
        E->loop_begin = node->offset;
    }
    E->loop_depth++;
    em_enter(E, body);
    em_apply_facts(E, &l->facts);
    if (l->it)
        em_assign(E, node->left, em_iteration_item(E, l->it, body->parameters[0], node->right), node);
    em_statements(E, &node->body, 0);
    bool unreachable = E->env.state == EM_UNREACHABLE;
    ir_value *next = end_of_iteration(E, l);
    E->loop_depth--;
    E->in_loop = saved_in_loop;
    E->loop_begin = saved_begin;
    if (!unreachable)
        check_types(E, l, reads_from);
    if (l->redo && E->loop_redos++ < MAX_REDOS) {
        em_leave(E, outer);
        ir_op_remove(op);
        diagnostics->count = saved_count;
        diagnostics->error_count = saved_errors;
        E->failed = saved_failed;
        E->read_undefined_count = reads_from;
        return false;
    }
    if (l->redo)
        EM_ERR(E, node, "the types of this loop's variables do not settle");
    for (size_t slot = EM_SLOT_BREAK; slot < E->slot_count && !unreachable; slot++) {
        em_slot *s = &E->env.slots[slot];
        bool wanted = slot == EM_SLOT_BREAK ? node->orelse.count > 0
                      : slot < EM_SLOT_FIRST ? true
                                             : em_needed_after(E, slot, end_of(node));
        if (s->is_set && !l->entry.slots[slot].is_set && wanted && !find_carried(l, slot))
            carry_late(E, l, op, slot, outer);
        else if (slot < EM_SLOT_FIRST && s->is_set && wanted && !find_carried(l, slot))
            carry_late(E, l, op, slot, outer);
    }
    ir_value **yields = TS_NEW_ARRAY(E->arena, ir_value *, l->count + 1);
    yields[0] = next;
    for (size_t i = 0; i < l->count; i++) {
        carried *c = &l->list[i];
        em_slot *s = &E->env.slots[c->slot];
        ir_value *v;
        if (c->is_defined_flag)
            v = !s->is_set ? ir_build_bool(&E->b, false)
                : s->defined ? s->defined : ir_build_bool(&E->b, true);
        else if (!s->is_set || s->v.kind != EM_VALUE || unreachable)
            v = c->slot < EM_SLOT_RESULT ? ir_build_bool(&E->b, false) : em_uninitialized(E, c->type);
        else if (ir_type_is_subtype(s->v.value->type, c->type))
            v = em_cast(E, s->v.value, c->type);
        else
            v = em_cast(E, s->origin ? s->origin : s->v.value, c->type);
        yields[i + 1] = v;
    }
    ir_build_yield(&E->b, yields, l->count + 1);
    em_leave(E, outer);
    em_env inside = E->env;
    E->env = l->entry;
    E->env = em_env_copy(E);
    /* Functions and classes that the body bound stay known. */
    for (size_t slot = EM_SLOT_FIRST; slot < E->slot_count; slot++) {
        if (!E->env.slots[slot].is_set && inside.slots[slot].is_set &&
            inside.slots[slot].v.kind == EM_BINDING)
            E->env.slots[slot] = inside.slots[slot];
        if (!E->env.slots[slot].declared)
            E->env.slots[slot].declared = inside.slots[slot].declared;
    }
    em_env_release(E, &inside);
    em_reset_flags(E);
    give_results(E, l, op);
    return true;
}

/* After the loop: a return inside leaves the function, too. */
static void after_loop(emitter *E, const ast_node *node, bool endless) {
    em_slot returned = E->env.slots[EM_SLOT_RETURNED];
    em_slot broke = E->env.slots[EM_SLOT_BREAK];
    em_slot result = E->env.slots[EM_SLOT_RESULT];
    em_reset_flags(E);
    E->env.state = EM_LIVE;
    if (returned.is_set) {
        returned.defined = result.defined = NULL;
        E->env.slots[EM_SLOT_RESULT] = result;
        E->env.slots[EM_SLOT_EXITED] = returned;
        if (E->loop_depth) {
            E->env.slots[EM_SLOT_BREAK] = returned;
            E->env.slots[EM_SLOT_RETURNED] = returned;
        }
    }
    if (endless) {
        if (!returned.is_set) {
            E->env.state = EM_UNREACHABLE;
            return;
        }
        em_slot kept = E->env.slots[EM_SLOT_RESULT];
        em_give_result(E, kept.v.value);
        return;
    }
    if (!node->orelse.count)
        return;
    if (!broke.is_set) {
        em_statements(E, &node->orelse, 0);
        return;
    }
    em_env before = em_env_copy(E);
    ir_op *op = ir_build_if(&E->b, broke.v.value);
    em_branch a = {.block = op->regions[0], .env = em_env_copy(E)};
    ir_block *here = em_enter(E, op->regions[1]);
    em_reset_flags(E);
    em_statements(E, &node->orelse, 0);
    em_branch b = {.block = E->b.block, .env = E->env};
    em_leave(E, here);
    em_merge(E, op, &before, &a, &b, end_of(node));
    em_branches_release(E, &before, &a, &b);
}

static void run(emitter *E, loop *l) {
    l->entry = em_env_copy(E);
    collect_carried(E, l);
    while (!attempt(E, l))
        continue;
    em_env_release(E, &l->entry);
    after_loop(E, l->node, em_is_endless(l->node));
}

void em_while(emitter *E, const ast_node *node) {
    em_condition c = em_condition_of(E, node->test);
    if (c.known == 0) {
        em_statements(E, &node->orelse, 0);
        return;
    }
    if (c.known < 0 && !c.value)
        return;
    loop l = {.node = node, .facts = c.if_true};
    l.go = c.known == 1 ? ir_build_bool(&E->b, true) : c.value;
    run(E, &l);
}

/* ---- for over items known one by one ---- */

static void unroll(emitter *E, const ast_node *node, const em_iteration *it, size_t k) {
    if (k == it->count) {
        return;
    }
    em_assign(E, node->left, it->items[k], node);
    em_statements(E, &node->body, 0);
    if (E->env.state == EM_UNREACHABLE)
        return;
    em_slot broke = E->env.slots[EM_SLOT_BREAK];
    bool known = false;
    if (!broke.is_set || ir_const_bool(broke.v.value, &known)) {
        if (known)
            return; /* broken for sure */
        em_reset_flags(E);
        E->env.state = EM_LIVE;
        unroll(E, node, it, k + 1);
        return;
    }
    em_env before = em_env_copy(E);
    ir_op *op = ir_build_if(&E->b, broke.v.value);
    em_branch a = {.block = op->regions[0], .env = em_env_copy(E)};
    ir_block *here = em_enter(E, op->regions[0]);
    a.env.slots[EM_SLOT_BREAK].v = em_value(ir_build_bool(&E->b, true));
    a.env.state = EM_EXITED;
    em_enter(E, op->regions[1]);
    em_reset_flags(E);
    E->env.state = EM_LIVE;
    unroll(E, node, it, k + 1);
    em_branch b = {.block = E->b.block, .env = E->env};
    em_leave(E, here);
    em_merge(E, op, &before, &a, &b, end_of(node));
    em_branches_release(E, &before, &a, &b);
}

static bool same_path(const ast_node *a, const ast_node *b) {
    if (a->kind != b->kind || !ts_str_equal(a->text, b->text))
        return false;
    return a->kind == AST_NAME || (a->kind == AST_ATTRIBUTE && same_path(a->left, b->left));
}

/* Whether the statements change the length of the list by its own name. */
static bool changes_length(const ast_node *node, const ast_node *list) {
    static const char *const methods[] = {"append", "extend", "insert", "pop", "remove", "clear"};
    if (!node)
        return false;
    if (node->kind == AST_CALL && node->left->kind == AST_ATTRIBUTE)
        for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
            if (ts_str_is(node->left->text, methods[i]) && same_path(node->left->left, list))
                return true;
    if (node->kind == AST_AUG_ASSIGN && same_path(node->left, list))
        return true;
    if (node->kind == AST_DELETE)
        for (size_t i = 0; i < node->list.count; i++)
            if (node->list.items[i]->kind == AST_SUBSCRIPT && same_path(node->list.items[i]->left, list))
                return true;
    const ast_node *parts[] = {node->left, node->right, node->third, node->test};
    for (size_t i = 0; i < 4; i++)
        if (changes_length(parts[i], list))
            return true;
    const ast_list *lists[] = {&node->list, &node->body, &node->orelse, &node->finally_body};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < lists[i]->count; k++)
            if (changes_length(lists[i]->items[k], list))
                return true;
    return false;
}

void em_for(emitter *E, const ast_node *node) {
    em source = em_expression(E, node->right, em_hint_of_walk(E, node->right, node->left, node));
    em_iteration it;
    if (!em_iterate(E, source, node->right, &it))
        return;
    if (!it.is_unrolled && !it.iterator && source.kind == EM_VALUE && source.value->type->kind == IR_LIST &&
        (node->right->kind == AST_NAME || node->right->kind == AST_ATTRIBUTE))
        for (size_t i = 0; i < node->body.count && !it.growing; i++)
            if (changes_length(node->body.items[i], node->right))
                it.growing = source.value;
    if (!it.is_unrolled) {
        loop l = {.node = node, .it = &it};
        if (it.iterator) {
            l.go = em_iteration_advance(E, &it, node);
            if (!l.go)
                return;
        }
        run(E, &l);
        return;
    }
    if (it.count > 2000) {
        EM_UNSUPPORTED(E, node, "a loop over %zu items of different types is not supported yet", it.count);
        return;
    }
    bool saved_in_loop = E->in_loop;
    uint32_t saved_begin = E->loop_begin;
    if (!E->in_loop) {
        E->in_loop = true;
        E->loop_begin = node->offset;
    }
    E->loop_depth++;
    unroll(E, node, &it, 0);
    E->loop_depth--;
    E->in_loop = saved_in_loop;
    E->loop_begin = saved_begin;
    if (E->env.state == EM_UNREACHABLE)
        return;
    bool all = E->env.state == EM_EXITED, known = false;
    em_slot returned = E->env.slots[EM_SLOT_RETURNED];
    if (all && returned.is_set && ir_const_bool(returned.v.value, &known) && known) {
        if (!E->loop_depth)
            E->env.slots[EM_SLOT_BREAK] = E->env.slots[EM_SLOT_RETURNED] = (em_slot){0};
        return; /* every path returned */
    }
    after_loop(E, node, false);
}

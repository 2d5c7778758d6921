/* frontend/emit_try.c - try statements, and with over objects whose __exit__ must see exceptions.
 *
 *   try: BODY            =>   %state = new_object<names that BODY assigns>
 *   except T: HANDLER         %ok, %type, %text, %r = try_call @body(what BODY reads, %state)
 *                             if %ok { names from %r } else { names from %state; HANDLER }
 *
 * BODY becomes a function of its own, so an exception in it is the failure of one call, and every pass
 * treats it as a call. What BODY had assigned when it failed is found in %state: em_set_variable
 * writes each assignment there, too. */
#include "frontend/emit_internal.h"

static uint32_t end_of(const ast_node *node) { return node->offset + node->length; }

/* ---- what was assigned before the exception ---- */

static void write_state(emitter *E, em_attempt *t, size_t i, ir_value *v) {
    t->types[i] = t->types[i] ? ir_type_join(E->m, t->types[i], ir_type_forget(E->m, v->type))
                              : ir_type_forget(E->m, v->type);
    ir_value *operands[2] = {t->state, v};
    ir_build_op(&E->b, IR_OP_SET_ATTR, operands, 2, NULL, 0)->name = t->class_->fields[2 * i].name;
}

static void write_defined(emitter *E, em_attempt *t, size_t i, ir_value *is_set) {
    ir_value *operands[2] = {t->state, is_set};
    ir_build_op(&E->b, IR_OP_SET_ATTR, operands, 2, NULL, 0)->name = t->class_->fields[2 * i + 1].name;
}

void em_note_assigned(emitter *E, size_t slot) {
    for (em_attempt *t = E->attempt; t; t = t->outer)
        for (size_t i = 0; i < t->count; i++) {
            const em_slot *s = &E->env.slots[slot];
            if (t->slots[i] != slot || !s->is_set || s->v.kind != EM_VALUE)
                continue;
            write_state(E, t, i, s->v.value);
            write_defined(E, t, i, ir_build_bool(&E->b, true));
        }
}

static void track(emitter *E, em_attempt *t, const ast_list *body) {
    emitter names = {.arena = E->arena};
    em_collect(&names, body);
    t->slots = TS_NEW_ARRAY(E->arena, size_t, names.variables.count + 1);
    t->types = TS_NEW_ARRAY(E->arena, const ir_type *, names.variables.count + 1);
    for (size_t i = 0; i < names.variables.count; i++) {
        size_t slot = (size_t)fe_map_get(&E->variables, names.variables.keys[i]);
        if (slot && em_needed_after(E, slot - 1, t->end))
            t->slots[t->count++] = slot - 1;
    }
    t->class_ = ir_class_make(E->m, ir_class_free_name(E->m, TS_STR("try_state")), RT_CLASS_PLAIN);
    for (size_t i = 0; i < t->count; i++) {
        ts_str variable = E->slot_names[t->slots[i]];
        if (!variable.length)
            variable = ts_arena_format(E->arena, "v%zu", t->slots[i]);
        em_add_field(E->fe, t->class_, variable, em_simple(E, IR_ANY));
        em_add_field(E->fe, t->class_,
                     ts_arena_format(E->arena, "%.*s.set", (int)variable.length, variable.data),
                     em_simple(E, IR_BOOL));
    }
}

/* ---- the body as a function ---- */

void em_attempt_begin(emitter *E, em_attempt **out, const ast_list *body, uint32_t end) {
    em_attempt *t = TS_NEW(E->arena, em_attempt);
    t->outer = E->attempt;
    t->block = E->b.block;
    t->end = end;
    track(E, t, body);
    t->state = em_new_object(E, t->class_);
    for (size_t i = 0; i < t->count; i++) {
        em_slot *s = &E->env.slots[t->slots[i]];
        if (s->is_set && s->v.kind == EM_BINDING && s->v.binding->kind == FE_VALUE)
            s->v = em_value(em_ir(E, s->v, NULL, NULL));
        bool given = s->is_set && s->v.kind == EM_VALUE;
        if (given)
            write_state(E, t, i, s->origin ? s->origin : s->v.value);
        write_defined(E, t, i, !given        ? ir_build_bool(&E->b, false)
                               : s->defined ? s->defined
                                            : ir_build_bool(&E->b, true));
    }
    t->before = em_env_copy(E);
    t->grad_mode = em_row(E, "is_grad_enabled", NULL, 0);
    ts_str name = ts_arena_format(E->arena, "%.*s.try", (int)E->f->name.length, E->f->name.data);
    t->function = ir_function_make(E->m, ir_function_free_name(E->m, name));
    t->function->is_library = E->f->is_library;
    t->function->place = E->b.place;
    em_enter(E, t->function->body);
    E->attempt = t;
    *out = t;
}

typedef struct capture {
    emitter *E;
    ir_function *f;
    ir_value **from, **to;
    size_t count, capacity;
    ir_value **arguments;
    size_t argument_count, argument_capacity;
} capture;

static const ir_function *home_of(const ir_value *v) {
    return v->def ? v->def->block->function : v->block->function;
}

static ir_value *captured(capture *c, ir_value *v) {
    for (size_t i = 0; i < c->count; i++)
        if (c->from[i] == v)
            return c->to[i];
    ir_value *inside;
    rt_value constant;
    size_t capacity = c->capacity;
    if (ir_const_value(v, &constant)) {
        ir_builder b = {.module = c->E->m, .block = c->f->body, .before = c->f->body->first};
        inside = ir_build_const_typed(&b, constant, v->type);
        inside->def->weight_name = v->def->weight_name;
    } else {
        rt_value none = {.tag = RT_TAG_UNINITIALIZED};
        ts_str name = ts_arena_format(c->E->arena, "a%zu", c->argument_count);
        inside = ir_function_add_parameter(c->f, name, v->type, none);
        TS_APPEND(c->E->arena, c->arguments, c->argument_count, c->argument_capacity, v);
    }
    size_t count = c->count;
    TS_APPEND(c->E->arena, c->from, count, capacity, v);
    TS_APPEND(c->E->arena, c->to, c->count, c->capacity, inside);
    return inside;
}

/* Values from outside become parameters. */
static void capture_block(capture *c, ir_block *b) {
    for (ir_op *op = b->first; op; op = op->next) {
        for (size_t i = 0; i < op->operand_count; i++)
            if (home_of(op->operands[i]) != c->f)
                ir_op_set_operand(c->E->m, op, i, captured(c, op->operands[i]));
        for (size_t i = 0; i < op->region_count; i++)
            capture_block(c, op->regions[i]);
    }
}

static bool is_inside(const em_attempt *t, const ir_value *v) {
    return v && home_of(v) == t->function;
}

typedef struct exports {
    ir_value **values;
    ir_value ***targets;
    size_t count;
} exports;

static void export_value(exports *x, ir_value **target) {
    x->values[x->count] = *target;
    x->targets[x->count++] = target;
}

/* What the end of BODY knows and somebody needs: the function's result. Casts (facts that BODY found
 * out about a variable) end with it. */
static void collect_exports(emitter *E, em_attempt *t, exports *x, const ast_node *node) {
    x->values = TS_NEW_ARRAY(E->arena, ir_value *, 2 * E->slot_count + 1);
    x->targets = TS_NEW_ARRAY(E->arena, ir_value **, 2 * E->slot_count + 1);
    for (size_t i = 0; i < E->slot_count; i++) {
        em_slot *s = &E->env.slots[i];
        const em_slot *old = &t->before.slots[i];
        bool known;
        if (!s->is_set)
            continue;
        if (s->v.kind == EM_VALUE && s->origin && !is_inside(t, s->origin) && is_inside(t, s->v.value)) {
            ir_value *origin = s->origin;
            *s = old->is_set && old->v.kind == EM_VALUE && (old->v.value == origin || old->origin == origin)
                     ? *old
                     : (em_slot){.is_set = true, .v = em_value(origin), .declared = s->declared};
            continue;
        }
        if (s->v.kind == EM_TUPLE && !em_needed_after(E, i, t->end)) {
            s->is_set = false;
            continue;
        }
        if (s->v.kind == EM_TUPLE)
            s->v = em_value(em_ir(E, s->v, NULL, NULL));
        if (s->v.kind != EM_VALUE) {
            s->is_set = s->v.kind == EM_BINDING || s->v.kind == EM_CLOSURE ||
                        (s->v.kind == EM_ITEMS && !is_inside(t, s->v.value));
            continue;
        }
        s->origin = is_inside(t, s->origin) ? NULL : s->origin;
        if (i < EM_SLOT_RESULT && ir_const_bool(s->v.value, &known)) {
            ir_block *here = em_enter(E, t->block);
            s->v.value = ir_build_bool(&E->b, known);
            em_leave(E, here);
        }
        if (is_inside(t, s->v.value) && !em_needed_after(E, i, t->end)) {
            em_keep(E, s->v, node);
            s->is_set = false;
            continue;
        }
        if (is_inside(t, s->v.value))
            export_value(x, &s->v.value);
        if (is_inside(t, s->defined))
            export_value(x, &s->defined);
    }
}

/* Ends BODY and calls it. E->env stays what BODY leaves behind, with its values taken from the
 * result: the block of *out_if's first region is entered. */
ir_op *em_attempt_end(emitter *E, em_attempt *t, const ast_node *node) {
    exports x = {0};
    collect_exports(E, t, &x, node);
    ir_value *all = em_tuple_of(E, x.values, x.count);
    t->function->return_type = ir_type_forget(E->m, all->type);
    ir_build_return(&E->b, &all, 1);
    E->attempt = t->outer;
    capture c = {.E = E, .f = t->function};
    capture_block(&c, t->function->body);
    em_leave(E, t->block);
    em_place(E, node);
    ir_field *fields = TS_NEW_ARRAY(E->arena, ir_field, 2 * t->count + 1);
    for (size_t i = 0; i < 2 * t->count; i++) {
        fields[i] = t->class_->fields[i];
        if (i % 2 == 0 && t->types[i / 2])
            fields[i].type = t->types[i / 2];
    }
    fe_ir_class_set_fields(E->fe, t->class_, fields, 2 * t->count);
    const ir_type *types[4] = {em_simple(E, IR_BOOL), em_simple(E, IR_STR), em_simple(E, IR_STR),
                               t->function->return_type};
    ir_op *call = ir_build_op(&E->b, IR_OP_TRY_CALL, c.arguments, c.argument_count, types, 4);
    call->function = t->function;
    t->ok = call->results[0];
    t->raised = (em_handling){call->results[1], call->results[2], em_raised_object(E)};
    ir_op *op = ir_build_if(&E->b, t->ok);
    em_enter(E, op->regions[0]);
    const ir_type *result = t->function->return_type;
    for (size_t i = 0; i < x.count; i++) {
        ir_op *get = ir_build_op(&E->b, IR_OP_TUPLE_GET, &call->results[3], 1, &result->args[i], 1);
        get->integer = (int64_t)i;
        *x.targets[i] = get->results[0];
    }
    return op;
}

/* The other region: names as the exception found them. */
void em_attempt_failed(emitter *E, em_attempt *t, ir_op *op) {
    em_enter(E, op->regions[1]);
    em_row(E, "set_grad_enabled", NULL, 1, t->grad_mode);
    E->env = t->before;
    E->env = em_env_copy(E);
    for (size_t i = 0; i < t->count; i++) {
        em_slot *s = &E->env.slots[t->slots[i]];
        if (!t->types[i]) { /* never a value: a function or class */
            continue;
        }
        ir_op *get = ir_build_op(&E->b, IR_OP_GET_ATTR, &t->state, 1, &t->types[i], 1);
        get->name = t->class_->fields[2 * i].name;
        const ir_type *flag_type = em_simple(E, IR_BOOL);
        bool sure = s->is_set && !s->defined;
        ir_value *defined = NULL;
        if (!sure) {
            ir_op *flag = ir_build_op(&E->b, IR_OP_GET_ATTR, &t->state, 1, &flag_type, 1);
            flag->name = t->class_->fields[2 * i + 1].name;
            defined = flag->results[0];
            /* A field that is not set must not be read. */
            ir_op_remove(get);
            ir_op *choice = ir_build_if(&E->b, defined);
            ir_block *here = em_enter(E, choice->regions[0]);
            get = ir_build_op(&E->b, IR_OP_GET_ATTR, &t->state, 1, &t->types[i], 1);
            get->name = t->class_->fields[2 * i].name;
            ir_build_yield(&E->b, &get->results[0], 1);
            em_enter(E, choice->regions[1]);
            ir_value *none = em_uninitialized(E, t->types[i]);
            ir_build_yield(&E->b, &none, 1);
            em_leave(E, here);
            *s = (em_slot){.is_set = true, .declared = s->declared, .defined = defined,
                           .v = em_value(ir_op_add_result(E->m, choice, t->types[i], (ts_str){0}))};
            continue;
        }
        *s = (em_slot){.is_set = true, .declared = s->declared, .v = em_value(get->results[0])};
    }
}

/* ---- except ---- */

static ir_value *either(emitter *E, ir_value *a, ir_value *b, const ast_node *node) {
    return a && b ? em_op(E, "__or__", node, 2, a, b) : a ? a : b;
}

/* The exception's name is that of the class or of one that derives from it. NULL: always. */
static ir_value *name_test(emitter *E, ir_value *exception, fe_class *wanted, const ast_node *node) {
    ir_value *test = NULL;
    ts_str *names;
    size_t count = em_exception_names(E->fe, wanted, &names);
    for (size_t i = 0; i < count; i++)
        test = either(E, test,
                      em_row(E, "eq.str", node, 2, exception, ir_build_str(&E->b, names[i])), node);
    return test;
}

static bool catches_all(const fe_class *c) {
    return ts_str_is(c->name, "builtins.Exception") || ts_str_is(c->name, "builtins.BaseException") ||
           ts_str_is(c->bare_name, "Exception") || ts_str_is(c->bare_name, "BaseException");
}

/* False after an error. *out NULL: always. */
static bool clause_test(emitter *E, ir_value *exception, const ast_node *type, ir_value **out) {
    *out = NULL;
    if (!type)
        return true;
    size_t count = type->kind == AST_TUPLE ? type->list.count : 1;
    for (size_t i = 0; i < count; i++) {
        const ast_node *node = type->kind == AST_TUPLE ? type->list.items[i] : type;
        em v = em_expression(E, node, NULL);
        if (v.kind == EM_ERROR)
            return false;
        if (v.kind != EM_BINDING || v.binding->kind != FE_CLASS ||
            v.binding->class_->kind != RT_CLASS_EXCEPTION) {
            EM_ERR(E, node, "expected an exception class after except");
            return false;
        }
        if (catches_all(v.binding->class_)) {
            *out = NULL;
            return true;
        }
        *out = either(E, *out, name_test(E, exception, v.binding->class_, node), node);
    }
    return true;
}

ir_value *em_exception_test(emitter *E, em exception, const ast_node *types) {
    ir_value *test;
    ir_value *name = exception.keys ? exception.keys[0]
                                    : ir_build_str(&E->b, exception.binding->class_->bare_name);
    if (!clause_test(E, name, types, &test))
        return NULL;
    return test ? test : ir_build_bool(&E->b, true);
}

static void clause_body(emitter *E, em_attempt *t, const ast_node *clause) {
    size_t slot = clause->text.length ? (size_t)fe_map_get(&E->variables, clause->text) : 0;
    em_handling saved = E->handling;
    E->handling = t->raised;
    em object = slot && clause->left ? em_caught_object(E, t->raised.object, clause->left) : em_error();
    if (object.kind == EM_VALUE) {
        E->env.slots[slot - 1] = (em_slot){.is_set = true, .v = object};
    } else if (slot) {
        E->env.slots[slot - 1] = (em_slot){.is_set = true, .v = em_caught(E, t->raised)};
    }
    em_statements(E, &clause->body, 0);
    const em_slot *left = slot ? &E->env.slots[slot - 1] : NULL;
    if (left && (left->v.kind == EM_EXCEPTION || (object.kind == EM_VALUE && left->v.value == object.value)))
        E->env.slots[slot - 1] = (em_slot){0};
    E->handling = saved;
}

static void clauses(emitter *E, em_attempt *t, const ast_node *node, size_t i) {
    if (i == node->list.count) {
        em_raise_again(E, t->raised);
        return;
    }
    const ast_node *clause = node->list.items[i];
    ir_value *test;
    if (!clause_test(E, t->raised.exception, clause->left, &test))
        return;
    if (!test) {
        clause_body(E, t, clause);
        return;
    }
    em_env before = em_env_copy(E);
    ir_op *op = ir_build_if(&E->b, test);
    ir_block *here = em_enter(E, op->regions[0]);
    clause_body(E, t, clause);
    em_branch a = {.block = E->b.block, .env = E->env};
    em_enter(E, op->regions[1]);
    E->env = before;
    E->env = em_env_copy(E);
    clauses(E, t, node, i + 1);
    em_branch b = {.block = E->b.block, .env = E->env};
    em_leave(E, here);
    em_merge(E, op, &before, &a, &b, end_of(node));
}

static uint32_t end_of_list(const ast_list *list, const ast_node *node) {
    return list->count ? end_of(list->items[list->count - 1]) : end_of(node);
}

static void try_except(emitter *E, const ast_node *node) {
    em_attempt *t;
    em_attempt_begin(E, &t, &node->body, end_of_list(&node->body, node));
    em_statements(E, &node->body, 0);
    ir_op *op = em_attempt_end(E, t, node);
    if (E->env.state == EM_LIVE)
        em_statements(E, &node->orelse, 0);
    em_branch a = {.block = E->b.block, .env = E->env};
    em_attempt_failed(E, t, op);
    clauses(E, t, node, 0);
    em_branch b = {.block = E->b.block, .env = E->env};
    em_leave(E, t->block);
    em_merge(E, op, &t->before, &a, &b, end_of(node));
}

/* ---- finally ---- */

/* What came before the finally: its return, break or continue, or its exception. */
static void go_on(emitter *E, const em_attempt *t, const em_slot *flags, em_state state, const ast_node *node) {
    memcpy(E->env.slots, flags, EM_SLOT_FIRST * sizeof *flags);
    E->env.state = state;
    em_env before = em_env_copy(E);
    ir_op *op = ir_build_if(&E->b, t->ok);
    em_branch a = {.block = op->regions[0], .env = em_env_copy(E)};
    ir_block *here = em_enter(E, op->regions[1]);
    em_raise_again(E, t->raised);
    em_branch b = {.block = E->b.block, .env = E->env};
    em_leave(E, here);
    em_merge(E, op, &before, &a, &b, end_of(node));
}

static void try_finally(emitter *E, const ast_node *node) {
    em_attempt *t;
    ast_node *inner = TS_NEW(E->arena, ast_node);
    *inner = *node;
    inner->finally_body = (ast_list){0};
    ast_list body = node->body;
    if (node->list.count)
        body = (ast_list){.items = TS_NEW_ARRAY(E->arena, ast_node *, 1), .count = 1};
    if (node->list.count)
        body.items[0] = inner;
    em_attempt_begin(E, &t, &body, node->finally_body.items[0]->offset);
    em_statements(E, &body, 0);
    ir_op *op = em_attempt_end(E, t, node);
    em_branch a = {.block = E->b.block, .env = E->env};
    em_attempt_failed(E, t, op);
    em_branch b = {.block = E->b.block, .env = E->env};
    em_leave(E, t->block);
    em_merge(E, op, &t->before, &a, &b, node->finally_body.items[0]->offset);
    /* The statements run whatever happened; then it goes on. */
    em_slot flags[EM_SLOT_FIRST];
    em_state state = E->env.state;
    memcpy(flags, E->env.slots, sizeof flags);
    em_reset_flags(E);
    E->env.state = EM_LIVE;
    em_statements(E, &node->finally_body, 0);
    if (E->env.state != EM_LIVE) /* it raises, or leaves in its own way, whatever happened */
        return;
    if (!em_flag_is_dynamic(E, EM_SLOT_EXITED)) {
        go_on(E, t, flags, state, node);
        return;
    }
    em_env before = em_env_copy(E);
    op = ir_build_if(&E->b, E->env.slots[EM_SLOT_EXITED].v.value);
    a = (em_branch){.block = op->regions[0], .env = em_env_copy(E)};
    ir_block *here = em_enter(E, op->regions[0]);
    a.env.slots[EM_SLOT_EXITED].v = em_value(ir_build_bool(&E->b, true));
    a.env.state = EM_EXITED;
    em_enter(E, op->regions[1]);
    go_on(E, t, flags, state, node);
    b = (em_branch){.block = E->b.block, .env = E->env};
    em_leave(E, here);
    em_merge(E, op, &before, &a, &b, end_of(node));
}

void em_try(emitter *E, const ast_node *node) {
    if (node->finally_body.count)
        try_finally(E, node);
    else
        try_except(E, node);
}

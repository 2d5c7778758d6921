/* passes/differentiate_regions.c - the way back through blocks, branches and loops.
 *
 *   %y = if %c { ... %e ... }      =>   %y, %e' = if %c { ... yield ..., %e } else { yield ..., uninitialized }
 *                                       %gx = if %c { ... %e' ... } else { ... }
 *
 *   %y = loop %i to n carry(%p = %x)    =>   %l = list()
 *      { ... %e ... }                        %y, %n = loop ... { append(%l, %e); ... }
 *                                            %gx = loop %k to %n carry(%gp = %gy) { %e' = %l[%n - 1 - %k] ... }
 *
 * The way back of a branch takes the branch that was taken; that of a loop runs its rounds backwards.
 * What it needs of a round, it finds in a list that the loop has filled; lists of loops inside loops
 * are items of lists. What is read of outside the region gets its part as a result. Only what is
 * needed is kept, and constants are repeated instead. Source: Griewank and Walther, Evaluating
 * Derivatives, chapter 12 (reversal schedules; all is stored here, nothing computed again). */
#include "passes/differentiate.h"

/* ---- values of the region that the way back needs ---- */

typedef struct capture {
    differ_rule *r;
    ir_op *op;           /* the forward branch or loop */
    ir_block *home;      /* its region */
    ir_block *back;      /* the region of the way back */
    ir_op *first;        /* of the way back: captured values are read before it */
    ir_value *index;     /* of a loop: the round, counted as the loop did */
    ir_value_map *known;
} capture;

static ir_builder at_start(const capture *c) {
    return (ir_builder){.module = c->r->m, .block = c->back, .before = c->first,
                        .place = c->r->b->place};
}

static ir_value *made_here(ir_value *v) {
    v->number = UINT32_MAX;
    return v;
}

static ir_value *capture_branch(capture *c, ir_value *v) {
    ir_module *m = c->r->m;
    for (size_t r = 0; r < 2; r++) {
        ir_block *region = c->op->regions[r];
        ir_value *given = v;
        if (region != c->home) {
            ir_builder b = pass_before(m, region->last);
            ir_op *none = ir_build_op(&b, IR_OP_UNINITIALIZED, NULL, 0, &v->type, 1);
            none->type = v->type;
            given = made_here(none->results[0]);
        }
        ir_op_add_operand(m, region->last, given);
    }
    return made_here(ir_op_add_result(m, c->op, v->type, v->name));
}

static ir_value *capture_round(capture *c, ir_value *v) {
    ir_module *m = c->r->m;
    if (v == c->home->parameters[0])
        return c->index;
    const ir_type *t = ir_type_list(m, v->type);
    ir_builder before = pass_before(m, c->op);
    ir_value *list = made_here(ir_build_op(&before, IR_OP_LIST, NULL, 0, &t, 1)->results[0]);
    ir_builder end = pass_before(m, c->home->last);
    ir_value *pair[2] = {list, v};
    ir_op *append = pass_build_core(&end, "append.t", pair, 2);
    made_here(append->results[0]);
    ir_builder start = at_start(c);
    ir_value *place[2] = {list, c->index};
    ir_op *get = pass_build_core(&start, "__getitem__.t", place, 2);
    get->results[0]->type = v->type;
    return made_here(get->results[0]);
}

static ir_value *captured(capture *c, ir_value *v) {
    ir_value *known = ir_value_map_get(c->known, v);
    if (known)
        return known;
    if (v->def && v->def->opcode == IR_OP_CONST) {
        ir_builder start = at_start(c);
        ir_op *copy = ir_clone_op(&start, v->def, ir_value_map_make(c->r->ctx->scratch));
        known = made_here(copy->results[0]);
    } else if (c->op->opcode == IR_OP_LOOP) {
        known = capture_round(c, v);
    } else {
        known = capture_branch(c, v);
    }
    ir_value_map_set(c->known, v, known);
    return known;
}

/* Operands that are defined in the region itself; those of regions inside it were found before. */
static void capture_block(capture *c, ir_block *block) {
    for (ir_op *op = block->first; op; op = op->next) {
        for (size_t i = 0; i < op->operand_count; i++) {
            ir_value *v = op->operands[i];
            if ((v->def ? v->def->block : v->block) == c->home)
                ir_op_set_operand(c->r->m, op, i, captured(c, v));
        }
        for (size_t r = 0; r < op->region_count; r++)
            capture_block(c, op->regions[r]);
    }
}

/* ---- what a region reads of outside ---- */

typedef struct value_list {
    ir_value **items;
    size_t count, capacity;
} value_list;

static void add_value(differ_rule *r, value_list *list, ir_value *v) {
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] == v)
            return;
    TS_APPEND(r->ctx->scratch, list->items, list->count, list->capacity, v);
}

static void collect_outer(differ_rule *r, const ir_block *block, value_list *tensors, value_list *lists) {
    for (const ir_op *op = block->first; op; op = op->next) {
        for (size_t i = 0; i < op->operand_count; i++) {
            ir_value *v = op->operands[i];
            if (!differ_depends(r->d, v))
                continue;
            if (differ_is_list(v)) {
                v = differ_list_root(v);
                if (!differ_is_inside(r->op, v) && differ_leads_to_outputs(r->d, v))
                    add_value(r, lists, v);
            } else if (!differ_is_inside(r->op, v)) {
                add_value(r, tensors, v);
            }
        }
        for (size_t k = 0; k < op->region_count; k++)
            collect_outer(r, op->regions[k], tensors, lists);
    }
}

/* A read of an input in the region, which could not be made before it, has a gradient that ends
 * here. */
static ts_status check_reads(const differ_rule *r, const ir_value_map *map) {
    const differ *d = r->d;
    for (size_t k = 0; k < d->ops.count; k++) {
        const ir_op *op = d->ops.items[k];
        if (op->result_count != 1 || !ir_value_map_get(map, op->results[0]) ||
            !differ_is_inside(r->op, op->results[0]))
            continue;
        for (size_t i = 0; i < d->input_count; i++)
            if (op->results[0] != d->inputs[i] &&
                differ_same_variable(d, op->results[0], d->inputs[i]))
                return differ_unsupported(op);
    }
    return NULL;
}

/* Gradients of lists are changed where they are: they must be there before the region. */
static ts_status prepare_lists(differ_rule *r, const value_list *lists) {
    ir_value *unused;
    for (size_t i = 0; i < lists->count; i++)
        TS_TRY(differ_list_adjoint(r, lists->items[i], &unused));
    return NULL;
}

static bool any_adjoint(const differ_rule *r) {
    for (size_t j = 0; j < r->op->result_count; j++)
        if (ir_value_map_get(r->adjoints, r->op->results[j]))
            return true;
    return false;
}

/* ---- branches ---- */

static ts_status reverse_if(differ_rule *r) {
    ir_op *op = r->op;
    differ *d = r->d;
    value_list tensors = {0}, lists = {0};
    collect_outer(r, op->regions[0], &tensors, &lists);
    collect_outer(r, op->regions[1], &tensors, &lists);
    if (!any_adjoint(r) && !lists.count)
        return NULL;
    TS_TRY(prepare_lists(r, &lists));
    size_t result_count = op->result_count; /* captures add some */
    ir_op *made = ir_build_if(r->b, op->operands[0]);
    ir_value_map *maps[2];
    for (size_t k = 0; k < 2; k++) {
        ir_builder inner = {.module = r->m, .block = made->regions[k], .place = r->b->place};
        maps[k] = ir_value_map_make(r->ctx->scratch);
        differ_rule rule = {.d = d, .ctx = r->ctx, .m = r->m, .b = &inner, .adjoints = maps[k]};
        for (size_t j = 0; j < result_count; j++) {
            ir_value *from = op->regions[k]->last->operands[j];
            ir_value *g = ir_value_map_get(r->adjoints, op->results[j]);
            if (g && differ_depends(d, from))
                differ_add(&rule, from, g);
        }
        TS_TRY(differ_reverse_block(d, op->regions[k], NULL, &inner, maps[k]));
        TS_TRY(check_reads(r, maps[k]));
    }
    ir_value **parts[2];
    value_list given = {0};
    for (size_t i = 0; i < tensors.count; i++)
        if (ir_value_map_get(maps[0], tensors.items[i]) || ir_value_map_get(maps[1], tensors.items[i]))
            add_value(r, &given, tensors.items[i]);
    for (size_t k = 0; k < 2; k++) {
        ir_builder inner = {.module = r->m, .block = made->regions[k], .place = r->b->place};
        differ_rule rule = {.d = d, .ctx = r->ctx, .m = r->m, .b = &inner, .adjoints = maps[k]};
        parts[k] = TS_NEW_ARRAY(r->ctx->scratch, ir_value *, given.count + 1);
        for (size_t i = 0; i < given.count; i++) {
            ir_value *part = ir_value_map_get(maps[k], given.items[i]);
            if (!part)
                TS_TRY(differ_zero(&rule, given.items[i], &part));
            parts[k][i] = differ_cast(&rule, part, differ_adjoint_type(r, given.items[i]));
        }
        ir_build_yield(&inner, parts[k], given.count);
        capture c = {.r = r, .op = op, .home = op->regions[k], .back = made->regions[k],
                     .first = made->regions[k]->first, .known = ir_value_map_make(r->ctx->scratch)};
        capture_block(&c, made->regions[k]);
    }
    for (size_t i = 0; i < given.count; i++) {
        ir_value *g = ir_op_add_result(r->m, made, differ_adjoint_type(r, given.items[i]), (ts_str){0});
        differ_add(r, given.items[i], made_here(g));
    }
    return NULL;
}

/* ---- loops ---- */

/* How many rounds the loop ran: known, or counted on the way. */
static ir_value *count_rounds(differ_rule *r, ir_op *op) {
    int64_t max;
    bool start, go;
    ir_block *body = op->regions[0];
    if (ir_const_int(op->operands[0], &max) && ir_const_bool(op->operands[1], &start) && start &&
        ir_const_bool(body->last->operands[0], &go) && go)
        return made_here(ir_build_int(r->b, max > 0 ? max : 0));
    ir_builder before = pass_before(r->m, op);
    ir_op_add_operand(r->m, op, made_here(ir_build_int(&before, 0)));
    const ir_type *t = ir_type_simple(r->m, IR_INT);
    made_here(ir_block_add_parameter(r->m, body, t, (ts_str){0}));
    ir_builder end = pass_before(r->m, body->last);
    ir_value *pair[2] = {body->parameters[0], made_here(ir_build_int(&end, 1))};
    ir_op *next = pass_build_core(&end, "add.int", pair, 2);
    ir_op_add_operand(r->m, body->last, made_here(next->results[0]));
    return made_here(ir_op_add_result(r->m, op, t, (ts_str){0}));
}

static ir_value *minus(differ_rule *r, ir_builder *b, ir_value *x, ir_value *y) {
    ir_value *pair[2] = {x, y};
    (void)r;
    return made_here(pass_build_core(b, "sub.int", pair, 2)->results[0]);
}

static ts_status reverse_loop(differ_rule *r) {
    ir_op *op = r->op;
    differ *d = r->d;
    ir_module *m = r->m;
    ir_block *body = op->regions[0];
    value_list tensors = {0}, lists = {0};
    collect_outer(r, body, &tensors, &lists);
    if (!any_adjoint(r) && !lists.count)
        return NULL;
    TS_TRY(prepare_lists(r, &lists));
    size_t result_count = op->result_count, carried_count = 0;
    size_t *carried = TS_NEW_ARRAY(r->ctx->scratch, size_t, result_count + 1);
    ir_value **starts = TS_NEW_ARRAY(r->ctx->scratch, ir_value *, result_count + tensors.count + 1);
    for (size_t j = 0; j < result_count; j++) {
        if (!differ_depends(d, body->parameters[j + 1]) || differ_is_list(body->parameters[j + 1]))
            continue;
        ir_value *g = ir_value_map_get(r->adjoints, op->results[j]);
        if (!g)
            TS_TRY(differ_zero(r, op->results[j], &g));
        starts[carried_count] = differ_cast(r, g, differ_adjoint_type(r, op->results[j]));
        carried[carried_count++] = j;
    }
    for (size_t i = 0; i < tensors.count; i++) {
        ir_value *g;
        TS_TRY(differ_zero(r, tensors.items[i], &g));
        starts[carried_count + i] = differ_cast(r, g, differ_adjoint_type(r, tensors.items[i]));
    }
    ir_value *rounds = count_rounds(r, op);
    ir_op *made = ir_build_loop(r->b, rounds, made_here(ir_build_bool(r->b, true)), starts,
                                carried_count + tensors.count);
    ir_builder inner = {.module = m, .block = made->regions[0], .place = r->b->place};
    ir_value_map *map = ir_value_map_make(r->ctx->scratch);
    differ_rule rule = {.d = d, .ctx = r->ctx, .m = m, .b = &inner, .adjoints = map};
    made_here(made->regions[0]->parameters[0]);
    for (size_t i = 0; i < carried_count; i++)
        made_here(ir_block_add_parameter(m, made->regions[0],
                                         differ_adjoint_type(r, body->parameters[carried[i] + 1]), (ts_str){0}));
    for (size_t i = 0; i < tensors.count; i++)
        made_here(ir_block_add_parameter(m, made->regions[0], differ_adjoint_type(r, tensors.items[i]), (ts_str){0}));
    ir_value **parameters = made->regions[0]->parameters + 1;
    ir_value *index = minus(r, &inner, minus(r, &inner, rounds, made_here(ir_build_int(&inner, 1))),
                            made->regions[0]->parameters[0]);
    for (size_t i = 0; i < carried_count; i++) {
        ir_value *from = body->last->operands[carried[i] + 1];
        if (differ_depends(d, from))
            differ_add(&rule, from, parameters[i]);
    }
    TS_TRY(differ_reverse_block(d, body, NULL, &inner, map));
    TS_TRY(check_reads(r, map));
    size_t count = carried_count + tensors.count;
    ir_value **yields = TS_NEW_ARRAY(r->ctx->scratch, ir_value *, count + 1);
    yields[0] = made_here(ir_build_bool(&inner, true));
    for (size_t i = 0; i < carried_count; i++) {
        ir_value *p = body->parameters[carried[i] + 1];
        ir_value *g = ir_value_map_get(map, p);
        if (!g)
            TS_TRY(differ_zero(&rule, p, &g));
        yields[i + 1] = differ_cast(&rule, g, differ_adjoint_type(r, p));
    }
    for (size_t i = 0; i < tensors.count; i++) {
        ir_value *part = ir_value_map_get(map, tensors.items[i]);
        ir_value *sum = parameters[carried_count + i];
        if (part) { /* onto what the rounds after this one gave */
            ir_value_map_set(map, tensors.items[i], sum);
            differ_add(&rule, tensors.items[i], part);
            sum = ir_value_map_get(map, tensors.items[i]);
        }
        yields[carried_count + i + 1] = differ_cast(&rule, sum, differ_adjoint_type(r, tensors.items[i]));
    }
    ir_build_yield(&inner, yields, count + 1);
    capture c = {.r = r, .op = op, .home = body, .back = made->regions[0], .first = index->def->next,
                 .index = index, .known = ir_value_map_make(r->ctx->scratch)};
    capture_block(&c, made->regions[0]);
    for (size_t i = 0; i < count; i++) {
        ir_value *of = i < carried_count ? op->operands[carried[i] + 2] : tensors.items[i - carried_count];
        ir_value *g = ir_op_add_result(m, made, differ_adjoint_type(r, i < carried_count ? body->parameters[carried[i] + 1] : of),
                                       (ts_str){0});
        made_here(g);
        if (differ_depends(d, of))
            differ_add(r, of, differ_cast(r, g, differ_adjoint_type(r, of)));
    }
    return NULL;
}

/* ---- blocks ---- */

static ts_status reverse_op(differ *d, ir_op *op, ir_builder *b, ir_value_map *adjoints) {
    differ_rule rule = {.d = d, .ctx = d->ctx, .m = d->m, .b = b, .op = op, .adjoints = adjoints};
    if (op->opcode == IR_OP_IF)
        return reverse_if(&rule);
    if (op->opcode == IR_OP_LOOP)
        return reverse_loop(&rule);
    if (op->result_count == 1 && differ_is_op(op, "__getitem__.t"))
        for (size_t i = 0; i < d->input_count; i++)
            if (differ_same_variable(d, op->results[0], d->inputs[i]))
                return NULL; /* a read of an input, whose gradient is complete */
    bool done = false, any = false;
    rule.wanted = TS_NEW_ARRAY(d->ctx->scratch, bool, op->operand_count + 1);
    for (size_t j = 0; j < op->operand_count; j++)
        any |= rule.wanted[j] = differ_depends(d, op->operands[j]);
    for (size_t j = 0; any && j < op->result_count; j++)
        any = differ_depends(d, op->results[j]) || op->result_count > 1 || op->operand_count == 0 ||
              differ_is_list(op->operands[0]);
    if (!any)
        return NULL;
    TS_TRY(differ_apply_list(&rule, &done));
    if (done)
        return NULL;
    bool has_gradient = false;
    for (size_t j = 0; j < op->result_count; j++)
        has_gradient |= ir_value_map_get(adjoints, op->results[j]) != NULL ||
                        ir_value_map_get(d->list_adjoints, op->results[j]) != NULL;
    if (!has_gradient)
        return NULL;
    for (size_t j = 0; j < op->operand_count; j++)
        if (!differ_is_unchanged(d, op, op->operands[j]))
            return differ_unsupported(op);
    rule.g = ir_value_map_get(adjoints, op->results[0]);
    TS_TRY(differ_apply(&rule, &done));
    return done ? NULL : differ_unsupported(op);
}

ts_status differ_reverse_block(differ *d, ir_block *block, ir_op *from, ir_builder *b,
                               ir_value_map *adjoints) {
    for (ir_op *op = from ? from : block->last; op; op = op->previous)
        if (op->opcode != IR_OP_YIELD && op->opcode != IR_OP_RETURN)
            TS_TRY(reverse_op(d, op, b, adjoints));
    return NULL;
}

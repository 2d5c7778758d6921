/* passes/functionalise.c - writes into tensors of the function's own become new values.
 *
 *   %y = relu(%x)                        %y = relu(%x)
 *   %t = sigmoid(%y)                     %t = sigmoid(%y)
 *   %u = copy_(%y, %t)             =>    return %t
 *   return %y
 *
 * Works on sets of values that share memory (passes/alias.h). A set qualifies when it has one base,
 * made fresh in this function, and every other member is the base itself (results of in-place
 * operators, branches and loops that pass it on) or a view of it whose writes can be put back
 * (select, slice, transpose ...). The walk keeps the base's value of the moment; a view is computed
 * anew once the base has another; what branches and loops write becomes a result of theirs.
 *
 * In functions that ask for gradients sizes need not be known: expand_as and reshape look at run time.
 *
 * Kept as they are, in order: sets that hold a parameter, a constant or an attribute, that lie in a
 * changing list, dict or object, that have two bases, whose sizes are changed in place, or of which
 * reshape, contiguous or to() may or may not be a view while writes follow. */
#include "passes/functionalise.h"

typedef struct functional {
    pass_context *ctx;
    ir_module *m;
    ir_function *f;
    pass_alias *alias;
    member *members; /* by value number */
    size_t value_count;
    value_set *sets;
    size_t set_count, set_capacity;
    uint64_t version;
    bool for_gradient; /* gradients follow values only: writes become values whatever it costs */
    ir_op **removed;
    size_t removed_count, removed_capacity;
} functional;

static member *member_of(const functional *fn, const ir_value *v) {
    if (v->number >= fn->value_count)
        return NULL;
    member *mb = &fn->members[v->number];
    return mb->value == v && mb->kind != MEMBER_NONE ? mb : NULL;
}

/* ---- which sets qualify ---- */

static value_set *candidate(functional *fn, const ir_value *v) {
    if (!ir_type_is_mutable(v->type) || !pass_tensors_are_written(fn->alias, v))
        return NULL;
    uint32_t root = pass_alias_set(fn->alias, v);
    for (size_t i = 0; i < fn->set_count; i++)
        if (fn->sets[i].root == root)
            return &fn->sets[i];
    value_set set = {.root = root,
                     .is_eligible = !pass_is_outside(fn->alias, v) &&
                                    !pass_is_reshaped(fn->alias, v)};
    TS_APPEND(fn->ctx->scratch, fn->sets, fn->set_count, fn->set_capacity, set);
    return &fn->sets[fn->set_count - 1];
}

static void add_member(functional *fn, ir_value *v, member_kind kind, member *source,
                       size_t operand) {
    value_set *set = candidate(fn, v);
    if (!set)
        return;
    member *mb = &fn->members[v->number];
    *mb = (member){.kind = kind, .value = v, .source = source, .operand = operand,
                   .set = (uint32_t)(set - fn->sets)};
    if (kind == MEMBER_NONE || (kind != MEMBER_BASE && kind != MEMBER_TUPLE && !source))
        set->is_eligible = false;
    if (kind == MEMBER_BASE) {
        if (set->base)
            set->is_eligible = false;
        set->base = mb;
    }
}

/* The member that a chain of SAME leads to: the base, or a view. */
static member *identity(member *mb) {
    while (mb && mb->kind == MEMBER_SAME)
        mb = mb->source;
    return mb;
}

static void add_core_results(functional *fn, ir_op *op) {
    const ir_schema *s = ir_schema_of(fn->m, op->core);
    for (size_t i = 0; i < op->operand_count && i < s->arg_count; i++) {
        value_set *set = s->args[i].is_written ? candidate(fn, op->operands[i]) : NULL;
        if (set)
            TS_APPEND(fn->ctx->scratch, set->writes, set->write_count, set->write_capacity, op);
    }
    for (size_t j = 0; j < op->result_count; j++) {
        ir_value *r = op->results[j];
        char letter = j < s->result_count ? s->result_aliases[j] : '*';
        if (!candidate(fn, r))
            continue;
        if (!letter && r->type->kind == IR_TENSOR && s->results[j]->kind == IR_TENSOR) {
            add_member(fn, r, MEMBER_BASE, NULL, 0);
            continue;
        }
        member *source = NULL;
        size_t operand = 0, found = 0;
        for (size_t i = 0; i < op->operand_count && i < s->arg_count; i++)
            if (letter && s->args[i].alias == letter && member_of(fn, op->operands[i])) {
                source = member_of(fn, op->operands[i]);
                operand = i;
                found++;
            }
        bool plain = found == 1 && r->type->kind == IR_TENSOR && op->result_count == 1;
        if (!plain)
            add_member(fn, r, MEMBER_NONE, NULL, 0);
        else if (s->args[operand].is_written)
            add_member(fn, r, MEMBER_SAME, source, 0);
        else
            add_member(fn, r, MEMBER_VIEW, source, operand);
    }
}

static bool is_uninitialized(const ir_value *v) {
    return v->def && v->def->opcode == IR_OP_UNINITIALIZED;
}

static void add_if_results(functional *fn, ir_op *op) {
    for (size_t j = 0; j < op->result_count; j++) {
        if (!candidate(fn, op->results[j]))
            continue;
        const ir_value *a = op->regions[0]->last->operands[j];
        const ir_value *b = op->regions[1]->last->operands[j];
        member *x = identity(member_of(fn, is_uninitialized(a) ? b : a));
        member *y = identity(member_of(fn, is_uninitialized(b) ? a : b));
        bool same = x && x == y && x->kind == MEMBER_BASE;
        add_member(fn, op->results[j], same ? MEMBER_SAME : MEMBER_NONE, same ? x : NULL, 0);
    }
}

static void add_block(functional *fn, ir_block *b);

static void add_loop(functional *fn, ir_op *op) {
    ir_block *b = op->regions[0];
    for (size_t j = 0; j < op->result_count; j++) {
        ir_value *p = b->parameters[j + 1];
        if (!candidate(fn, p))
            continue;
        member *x = identity(member_of(fn, op->operands[j + 2]));
        bool same = x && x->kind == MEMBER_BASE;
        add_member(fn, p, same ? MEMBER_SAME : MEMBER_NONE, same ? x : NULL, 0);
    }
    add_block(fn, b);
    for (size_t j = 0; j < op->result_count; j++) {
        value_set *set = candidate(fn, op->results[j]);
        if (!set)
            continue;
        member *x = identity(member_of(fn, b->parameters[j + 1]));
        member *y = identity(member_of(fn, b->last->operands[j + 1]));
        bool same = x && x == y;
        add_member(fn, op->results[j], same ? MEMBER_SAME : MEMBER_NONE, same ? x : NULL, 0);
    }
}

static void add_op(functional *fn, ir_op *op) {
    switch (op->opcode) {
    case IR_OP_CORE:
        add_core_results(fn, op);
        return;
    case IR_OP_IF:
        add_block(fn, op->regions[0]);
        add_block(fn, op->regions[1]);
        add_if_results(fn, op);
        return;
    case IR_OP_LOOP:
        add_loop(fn, op);
        return;
    case IR_OP_CAST:
        if (candidate(fn, op->results[0]))
            add_member(fn, op->results[0], MEMBER_SAME, member_of(fn, op->operands[0]), 0);
        return;
    case IR_OP_TUPLE:
        if (candidate(fn, op->results[0]))
            add_member(fn, op->results[0], MEMBER_TUPLE, NULL, 0);
        return;
    case IR_OP_KERNEL:
        for (size_t i = 0; i < op->operand_count; i++)
            if (candidate(fn, op->operands[i]))
                candidate(fn, op->operands[i])->is_eligible = false;
        return;
    default:
        for (size_t j = 0; j < op->result_count; j++)
            if (candidate(fn, op->results[j]))
                add_member(fn, op->results[j], MEMBER_NONE, NULL, 0);
        return;
    }
}

static void add_block(functional *fn, ir_block *b) {
    for (ir_op *op = b->first; op; op = op->next)
        add_op(fn, op);
}

/* ---- order of writes ---- */

static bool contains(const ir_op *outer, const ir_op *inner) {
    for (; inner; inner = inner->block->parent)
        if (inner == outer)
            return true;
    return false;
}

/* Some write of the set may run after op and before `until` (NULL: the end), for one base. */
static bool written_after(const value_set *set, const ir_op *op, const ir_op *until) {
    const ir_op *base = set->base->value->def;
    for (size_t i = 0; i < set->write_count; i++) {
        const ir_op *w = set->writes[i];
        if (w->number > op->number && (!until || w->number <= until->number) && w != until)
            return true;
        /* In a loop that does not make the base anew each time, "after" comes around again. */
        const ir_op *from = until ? until : op;
        const ir_op *stay = until ? op : base;
        for (const ir_op *loop = from->block->parent; loop; loop = loop->block->parent)
            if (loop->opcode == IR_OP_LOOP && !contains(loop, stay) && contains(loop, w))
                return true;
    }
    return false;
}

/* Whether these share memory with their operand depends on strides known only at run time. */
static bool may_or_may_not_alias(const ir_op *view) {
    static const char *const names[] = {"reshape", "reshape_as", "contiguous", "to", "flatten",
                                        "ravel", "type_as", "float", "double", "half", "int",
                                        "long", "cpu", "cuda", "type", "conj", "resolve_conj",
                                        "resolve_neg", "expand_as", "_unwrap_optional"};
    ts_str name = rt_op_name(view->core);
    size_t dot = 0;
    while (dot < name.length && name.data[dot] != '.')
        dot++;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (ts_str_is((ts_str){name.data, dot}, names[i]))
            return true;
    return false;
}

static bool use_is_supported(functional *fn, const value_set *set, const member *mb,
                             const ir_use *use) {
    const ir_op *op = use->op;
    const ir_schema *s;
    switch (op->opcode) {
    case IR_OP_CORE:
        s = ir_schema_of(fn->m, op->core);
        if (use->operand >= s->arg_count)
            return false;
        if (!ir_op_writes(op, use->operand))
            return mb->kind != MEMBER_TUPLE;
        if (use->operand != 0 || op->result_count > 1 || mb->kind == MEMBER_TUPLE)
            return false;
        for (size_t i = 1; i < op->operand_count && i < s->arg_count; i++)
            if (s->args[i].is_written)
                return false;
        return fn_write_is_supported(fn->m, op, fn->f, fn->for_gradient);
    case IR_OP_YIELD:
    case IR_OP_LOOP:
    case IR_OP_CAST:
    case IR_OP_REFINE:
    case IR_OP_IS_INSTANCE:
        return mb->kind != MEMBER_TUPLE; /* results were resolved, or the set was refused */
    case IR_OP_RETURN:
        return true;
    case IR_OP_TUPLE: {
        const ir_value *tuple = op->results[0];
        for (size_t i = 0; i < tuple->use_count; i++)
            if (tuple->uses[i].op->opcode != IR_OP_RETURN)
                return false;
        return !written_after(set, op, NULL);
    }
    case IR_OP_LIST: {
        const ir_value *list = op->results[0];
        if (!ir_list_is_stable(list))
            return false;
        for (size_t i = 0; i < list->use_count; i++)
            if (written_after(set, op, list->uses[i].op))
                return false;
        return true;
    }
    default:
        return false;
    }
}

static bool member_is_supported(functional *fn, const value_set *set, member *mb) {
    if (mb->kind == MEMBER_VIEW &&
        (mb->source->set != mb->set || (may_or_may_not_alias(mb->value->def) &&
                                        written_after(set, mb->value->def, NULL))))
        return false;
    for (size_t i = 0; i < mb->value->use_count; i++)
        if (!use_is_supported(fn, set, mb, &mb->value->uses[i]))
            return false;
    return true;
}

/* Views on the way from what is written to the base. */
static bool writes_can_be_put_back(functional *fn, const value_set *set) {
    for (size_t i = 0; i < set->write_count; i++) {
        member *mb = identity(member_of(fn, set->writes[i]->operands[0]));
        if (!mb)
            return false;
        while (mb->kind == MEMBER_VIEW) {
            if (mb->operand != 0 || !fn_view_is_invertible(fn->m, mb->value->def, fn->for_gradient) ||
                may_or_may_not_alias(mb->value->def))
                return false;
            mb = identity(mb->source);
        }
        if (mb->kind != MEMBER_BASE)
            return false;
    }
    return true;
}

static size_t choose_sets(functional *fn) {
    size_t eligible = 0;
    for (size_t i = 0; i < fn->value_count; i++) {
        member *mb = &fn->members[i];
        if (!mb->value)
            continue;
        value_set *set = &fn->sets[mb->set];
        if (!set->is_eligible || !set->base || !set->write_count ||
            !member_is_supported(fn, set, mb))
            set->is_eligible = false;
    }
    for (size_t i = 0; i < fn->set_count; i++) {
        value_set *set = &fn->sets[i];
        if (set->is_eligible && (!set->base || !writes_can_be_put_back(fn, set)))
            set->is_eligible = false;
        eligible += set->is_eligible;
    }
    return eligible;
}

/* ---- the walk ---- */

static value_set *eligible_set(functional *fn, const ir_value *v) {
    member *mb = member_of(fn, v);
    return mb && mb->kind != MEMBER_TUPLE && fn->sets[mb->set].is_eligible ? &fn->sets[mb->set]
                                                                           : NULL;
}

/* The value that shows a member as it is now; views are computed before `before` where needed. */
static ir_value *materialise(functional *fn, member *mb, ir_op *before) {
    mb = identity(mb);
    value_set *set = &fn->sets[mb->set];
    if (mb->kind == MEMBER_BASE)
        return set->current;
    if (mb->current && mb->version == set->version)
        return mb->current;
    ir_value *source = materialise(fn, mb->source, before);
    ir_builder b = pass_before(fn->m, before);
    ir_value_map *map = ir_value_map_make(fn->ctx->scratch);
    ir_value_map_set(map, mb->value->def->operands[mb->operand], source);
    ir_op *copy = ir_clone_op(&b, mb->value->def, map);
    copy->results[0]->number = UINT32_MAX;
    mb->current = copy->results[0];
    mb->version = set->version;
    return mb->current;
}

static void rewrite_operands(functional *fn, ir_op *op, size_t skip) {
    for (size_t i = skip; i < op->operand_count; i++)
        if (eligible_set(fn, op->operands[i])) {
            ir_value *now = materialise(fn, member_of(fn, op->operands[i]), op);
            ir_op_set_operand(fn->m, op, i, now);
        }
}

static bool source_is_shared(functional *fn, const ir_value *src) {
    if (src->type->kind != IR_TENSOR)
        return false;
    member *mb = member_of(fn, src);
    if (mb)
        return !fn->sets[mb->set].is_eligible;
    /* A value that this walk made is nobody else's. */
    if (src->number == UINT32_MAX)
        return false;
    return pass_is_outside(fn->alias, src) || pass_is_written(fn->alias, src) ||
           ir_is_const(src) || pass_is_returned(fn->alias, src);
}

static void rewrite_write(functional *fn, ir_op *op, value_set *set) {
    member *target = identity(member_of(fn, op->operands[0]));
    bool shared = op->operand_count > 1 && source_is_shared(fn, op->operands[1]);
    rewrite_operands(fn, op, 1);
    ir_builder b = pass_before(fn->m, op);
    ir_value *old = materialise(fn, target, op);
    ir_value *contents = fn_written_value(fn->ctx, &b, op, old, shared);
    while (target->kind == MEMBER_VIEW) {
        ir_value *base = materialise(fn, target->source, op);
        contents = fn_put_back(fn->ctx, &b, target->value->def, base, contents);
        target = identity(target->source);
    }
    if (!contents->name.length)
        contents->name = set->base->value->name;
    set->current = contents;
    set->version = ++fn->version;
    TS_APPEND(fn->ctx->scratch, fn->removed, fn->removed_count, fn->removed_capacity, op);
    pass_count(fn->ctx, "writes", 1);
}

static bool writes_inside(const value_set *set, const ir_op *op) {
    if (!set->is_eligible || contains(op, set->base->value->def)) /* one that is not may have no base */
        return false;
    for (size_t i = 0; i < set->write_count; i++)
        if (contains(op, set->writes[i]))
            return true;
    return false;
}

typedef struct saved_view {
    ir_value *current;
    uint64_t version;
} saved_view;

/* Views that were computed inside a region are not seen outside it. */
static saved_view *save_views(functional *fn) {
    saved_view *saved = TS_NEW_ARRAY(fn->ctx->scratch, saved_view, fn->value_count);
    for (size_t i = 0; i < fn->value_count; i++)
        saved[i] = (saved_view){fn->members[i].current, fn->members[i].version};
    return saved;
}

static void restore_views(functional *fn, const saved_view *saved) {
    for (size_t i = 0; i < fn->value_count; i++) {
        fn->members[i].current = saved[i].current;
        fn->members[i].version = saved[i].version;
    }
}

static void rewrite_block(functional *fn, ir_block *b);

static void rewrite_if(functional *fn, ir_op *op) {
    saved_view *views = save_views(fn);
    ir_value **before = TS_NEW_ARRAY(fn->ctx->scratch, ir_value *, fn->set_count);
    uint64_t *versions = TS_NEW_ARRAY(fn->ctx->scratch, uint64_t, fn->set_count);
    for (size_t i = 0; i < fn->set_count; i++) {
        before[i] = fn->sets[i].current;
        versions[i] = fn->sets[i].version;
    }
    for (int r = 0; r < 2; r++) {
        rewrite_block(fn, op->regions[r]);
        for (size_t i = 0; i < fn->set_count; i++) {
            value_set *set = &fn->sets[i];
            if (writes_inside(set, op))
                ir_op_add_operand(fn->m, op->regions[r]->last, set->current);
            set->current = before[i];
            set->version = versions[i];
        }
        restore_views(fn, views);
    }
    for (size_t i = 0; i < fn->set_count; i++) {
        value_set *set = &fn->sets[i];
        if (!writes_inside(set, op))
            continue;
        set->current =
            ir_op_add_result(fn->m, op, set->base->value->type, set->base->value->name);
        set->current->number = UINT32_MAX;
        set->version = ++fn->version;
    }
}

static void rewrite_loop(functional *fn, ir_op *op) {
    ir_module *m = fn->m;
    ir_block *body = op->regions[0];
    saved_view *views = save_views(fn);
    for (size_t i = 0; i < fn->set_count; i++) {
        value_set *set = &fn->sets[i];
        if (!writes_inside(set, op))
            continue;
        ir_op_add_operand(m, op, set->current);
        set->current =
            ir_block_add_parameter(m, body, set->base->value->type, set->base->value->name);
        set->current->number = UINT32_MAX;
        set->version = ++fn->version;
    }
    rewrite_block(fn, body);
    for (size_t i = 0; i < fn->set_count; i++) {
        value_set *set = &fn->sets[i];
        if (!writes_inside(set, op))
            continue;
        ir_op_add_operand(m, body->last, set->current);
        set->current = ir_op_add_result(m, op, set->base->value->type, set->base->value->name);
        set->current->number = UINT32_MAX;
        set->version = ++fn->version;
    }
    restore_views(fn, views);
}

static void rewrite_op(functional *fn, ir_op *op) {
    value_set *written = NULL;
    if (op->opcode == IR_OP_CORE && op->operand_count) {
        const ir_schema *s = ir_schema_of(fn->m, op->core);
        if (s->arg_count && s->args[0].is_written)
            written = eligible_set(fn, op->operands[0]);
    }
    if (written) {
        rewrite_write(fn, op, written);
        return;
    }
    rewrite_operands(fn, op, 0);
    if (op->opcode == IR_OP_IF)
        rewrite_if(fn, op);
    else if (op->opcode == IR_OP_LOOP)
        rewrite_loop(fn, op);
    else
        for (size_t i = 0; i < op->region_count; i++)
            rewrite_block(fn, op->regions[i]);
    for (size_t i = 0; i < op->result_count; i++) {
        member *mb = member_of(fn, op->results[i]);
        if (!mb || !fn->sets[mb->set].is_eligible)
            continue;
        value_set *set = &fn->sets[mb->set];
        if (mb->kind == MEMBER_BASE) {
            set->current = mb->value;
            set->version = ++fn->version;
        } else if (mb->kind == MEMBER_VIEW) {
            mb->current = mb->value;
            mb->version = set->version;
        }
    }
}

static void rewrite_block(functional *fn, ir_block *b) {
    for (ir_op *op = b->first, *next; op; op = next) {
        next = op->next;
        rewrite_op(fn, op);
    }
}

ts_status pass_functionalise(pass_context *ctx, ir_module *m) {
    for (ir_function *f = m->functions; f; f = f->next) {
        functional fn = {.ctx = ctx, .m = m, .f = f, .alias = pass_alias_make(ctx, m, f)};
        pass_op_list ops = pass_collect(ctx, f);
        fn.value_count = f->body->parameter_count;
        for (size_t i = 0; i < ops.count; i++) {
            ops.items[i]->number = (uint32_t)i;
            fn.for_gradient |= ir_is_core(ops.items[i], OP_autograd_grad) ||
                               ir_is_core(ops.items[i], OP_backward);
            fn.value_count += ops.items[i]->result_count;
            for (size_t j = 0; j < ops.items[i]->region_count; j++)
                fn.value_count += ops.items[i]->regions[j]->parameter_count;
        }
        fn.members = TS_NEW_ARRAY(ctx->scratch, member, fn.value_count);
        /* Sets grow while members are added, which hold indexes, not pointers. */
        add_block(&fn, f->body);
        if (!choose_sets(&fn))
            continue;
        rewrite_block(&fn, f->body);
        /* What used their results has been rewritten; last first, as one may use another's. */
        while (fn.removed_count) {
            ir_op *op = fn.removed[--fn.removed_count];
            ir_op_remove(op);
        }
    }
    return NULL;
}

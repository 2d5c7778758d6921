/* passes/settle_requires_grad.c - what x.requires_grad reads, where the program tells.
 *
 *   %m = requires_grad_(%y, true)
 *   %z = mul.Scalar(%y, 2)
 *   %a = prim_requires_grad(%z)             =>  true;  of an input, under no_grad, behind detach: false
 *
 * A run keeps no history, so only marks and parameters themselves would know. What is told neither way (an attribute
 * that is set) stays and reads the tensor's own mark; what is one thing on one path and another on the other is refused,
 * once loops are written out (refuse_requires_grad).
 * Needs: inline, infer_types. Keeps: types. Why before functionalise: it takes marks and writes away. Cost: one walk,
 * bodies of loops twice. */
#include "passes/differentiate.h"

typedef enum flag { UNSEEN, NO, YES, EITHER, SOME /* a list of both kinds */ } flag;

typedef struct settler {
    pass_context *ctx;
    ir_module *m;
    uint8_t *flags;    /* by value number */
    ir_value **roots;  /* what an in-place operator returns is its operand */
    ir_value **bases;  /* of views: what a write reaches, too */
    uint8_t *modes;    /* of results of is_grad_enabled */
    size_t count;      /* of values that have a number */
    bool is_on, replaces;
    bool refuses; /* what is known neither way: nothing will be known later */
    ts_status status;
} settler;

static ir_value *root_of(const settler *s, ir_value *v) {
    while (v->number < s->count && s->roots[v->number])
        v = s->roots[v->number];
    return v;
}

static flag flag_of(const settler *s, ir_value *v) {
    rt_value c;
    v = root_of(s, v);
    flag f = v->number < s->count ? (flag)s->flags[v->number] : UNSEEN;
    if (f == UNSEEN && ir_const_value(v, &c)) /* that nothing has marked */
        return c.tag == RT_TAG_TENSOR && c.as.tensor->requires_grad ? YES : NO;
    return f;
}

static void set_flag(settler *s, ir_value *v, flag f) {
    v = root_of(s, v);
    if (v->number < s->count)
        s->flags[v->number] = (uint8_t)f;
}

static flag joined(flag a, flag b) { return a == b ? a : a == UNSEEN || b == UNSEEN ? UNSEEN : EITHER; }

/* Of something made of the operands. */
static flag made_of(const settler *s, const ir_op *op) {
    flag all = NO;
    for (size_t i = 0; i < op->operand_count; i++) {
        flag f = flag_of(s, op->operands[i]);
        if (f == YES || f == SOME)
            return YES;
        all = f == NO ? all : f == EITHER || all == EITHER ? EITHER : f;
    }
    return all;
}

/* Unknown dtypes are floats where an operand has a gradient; but for conversions to a dtype that is not known. */
static bool may_lose_floats(const ir_op *op) {
    const ir_type *t = op->results[0]->type;
    return t->kind == IR_TENSOR && t->dtype == RT_DTYPE_UNKNOWN && op->opcode == IR_OP_CORE &&
           (ts_str_starts_with(rt_op_name(op->core), "to.") || op->core == OP_type_as || op->core == OP__to_copy);
}

static void take_list(settler *s, const ir_op *op) {
    flag all = NO;
    for (size_t i = 0; i < op->operand_count; i++) {
        flag f = flag_of(s, op->operands[i]);
        all = !i ? f : all == f ? f : all == UNSEEN || f == UNSEEN ? UNSEEN : SOME;
    }
    set_flag(s, op->results[0], all);
}

/* The tensor of an attribute, where the object is known. */
static flag attribute_flag(const ir_op *op) {
    rt_value o;
    if (!ir_const_value(op->operands[0], &o) || o.tag != RT_TAG_OBJECT)
        return UNSEEN;
    for (size_t i = 0; i < o.as.object->class_->field_count && i < o.as.object->field_count; i++)
        if (ts_str_equal(o.as.object->class_->fields[i], op->name))
            return o.as.object->fields[i].tag != RT_TAG_TENSOR          ? UNSEEN
                   : o.as.object->fields[i].as.tensor->requires_grad ? YES : NO;
    return UNSEEN;
}

static void write_through(settler *s, ir_value *v, flag f) {
    for (int steps = 0; v && steps < 100; steps++) {
        v = root_of(s, v);
        if (f == YES || flag_of(s, v) != YES)
            set_flag(s, v, f);
        v = v->number < s->count ? s->bases[v->number] : NULL;
    }
}

static bool asks_for_mark(const ir_op *op) {
    const ir_schema *schema = ir_schema_of(op->block->function->module, op->core);
    bool wanted = false;
    for (size_t i = 0; i < schema->arg_count && i < op->operand_count; i++)
        if (ts_str_is(schema->args[i].name, "requires_grad") && ir_const_bool(op->operands[i], &wanted))
            return wanted;
    return false;
}

static void take_core(settler *s, ir_op *op) {
    bool on;
    if (op->core == OP_set_grad_enabled) {
        ir_value *v = op->operands[0];
        s->is_on = ir_const_bool(v, &on) ? on : v->number < s->count ? s->modes[v->number] : true;
        return;
    }
    if (op->core == OP_is_grad_enabled) {
        if (op->results[0]->number < s->count)
            s->modes[op->results[0]->number] = s->is_on;
        return;
    }
    bool writes = op->operand_count && op->operands[0]->type->kind == IR_TENSOR && ir_op_writes(op, 0);
    if (writes) {
        ir_value *self = root_of(s, op->operands[0]);
        if (op->core == OP_requires_grad_)
            set_flag(s, self, ir_const_bool(op->operands[1], &on) ? on ? YES : NO : EITHER);
        else if (op->core == OP_detach_)
            set_flag(s, self, NO);
        else if (s->is_on && made_of(s, op) != NO)
            write_through(s, self, made_of(s, op));
        if (op->result_count && op->results[0]->type->kind == IR_TENSOR && op->results[0]->number < s->count)
            s->roots[op->results[0]->number] = self;
        return;
    }
    const ir_schema *schema = ir_schema_of(s->m, op->core);
    flag made = made_of(s, op);
    if (op->core == OP___getitem___t && flag_of(s, op->operands[0]) == SOME)
        made = EITHER;
    for (size_t i = 0; i < op->result_count; i++) {
        ir_value *r = op->results[i];
        bool is_alias = i < schema->result_count && schema->result_aliases[i];
        flag f = differ_cuts(op) || !differ_may_carry(r->type) ? NO : asks_for_mark(op) ? YES
                 : made == NO                  ? NO
                 : may_lose_floats(op)          ? EITHER
                 : !s->is_on                   ? NO
                                               : made;
        set_flag(s, r, f);
        if (is_alias && op->operand_count && !differ_cuts(op) && r->number < s->count)
            s->bases[r->number] = op->operands[0];
    }
}

static void walk(settler *s, ir_block *b, int depth);

static void take_if(settler *s, ir_op *op, int depth) {
    uint8_t *before = TS_NEW_ARRAY(s->ctx->scratch, uint8_t, s->count + 1);
    uint8_t *after = TS_NEW_ARRAY(s->ctx->scratch, uint8_t, s->count + 1);
    memcpy(before, s->flags, s->count);
    bool on = s->is_on;
    walk(s, op->regions[0], depth);
    memcpy(after, s->flags, s->count);
    bool on_after = s->is_on;
    for (size_t i = 0; i < s->count; i++) /* what was there before the branch */
        s->flags[i] = before[i];
    s->is_on = on;
    walk(s, op->regions[1], depth);
    s->is_on = s->is_on || on_after;
    for (size_t i = 0; i < op->result_count; i++) {
        ir_value *x = root_of(s, op->regions[0]->last->operands[i]), *y = op->regions[1]->last->operands[i];
        rt_value c;
        flag f = ir_const_value(x, &c) || x->number >= s->count ? flag_of(s, x) : (flag)after[x->number];
        set_flag(s, op->results[i], joined(f, flag_of(s, y)));
    }
    for (size_t i = 0; i < s->count; i++)
        if (before[i] != UNSEEN && after[i] != s->flags[i])
            s->flags[i] = (uint8_t)joined((flag)after[i], (flag)s->flags[i]);
}

/* Parameters behind the first, which counts. */
static void take_loop(settler *s, ir_op *op, int depth) {
    ir_block *body = op->regions[0];
    bool replaces = s->replaces, on = s->is_on;
    for (size_t i = 0; i + 1 < body->parameter_count; i++)
        set_flag(s, body->parameters[i + 1], flag_of(s, op->operands[i + 2]));
    for (int round = 0; round < 3; round++) {
        s->replaces = replaces && round == 2;
        s->is_on = on;
        walk(s, body, depth);
        for (size_t i = 0; i + 1 < body->parameter_count; i++) {
            flag first = flag_of(s, op->operands[i + 2]), next = flag_of(s, body->last->operands[i + 1]);
            set_flag(s, body->parameters[i + 1], joined(first, next));
        }
    }
    s->replaces = replaces;
    for (size_t i = 0; i < op->result_count; i++)
        set_flag(s, op->results[i], flag_of(s, body->parameters[i + 1]));
}

static void read_flag(settler *s, ir_op *op) {
    flag f = flag_of(s, op->operands[0]);
    if (!s->replaces || f == UNSEEN)
        return;
    if (f == EITHER || f == SOME) {
        if (!s->status && s->refuses)
            s->status = ts_error_at(TS_ERR_UNSUPPORTED, op->place, "requires_grad of a tensor that requires gradients on one "
                                    "path and none on another is not supported yet");
        return;
    }
    ir_builder b = pass_before(s->m, op);
    pass_replace(s->m, op->results[0], ir_build_bool(&b, f == YES));
    ir_op_remove(op);
    pass_count(s->ctx, "flags", 1);
}

static void walk(settler *s, ir_block *b, int depth) {
    for (ir_op *op = b->first, *next; op && depth < 200 && !s->status; op = next) {
        next = op->next;
        switch (op->opcode) {
        case IR_OP_CORE:
            if (op->core == OP_prim_requires_grad)
                read_flag(s, op);
            else
                take_core(s, op);
            break;
        case IR_OP_IF:
            take_if(s, op, depth + 1);
            break;
        case IR_OP_LOOP:
            take_loop(s, op, depth + 1);
            break;
        case IR_OP_LIST:
        case IR_OP_TUPLE:
            take_list(s, op);
            break;
        case IR_OP_GET_ATTR:
            set_flag(s, op->results[0], attribute_flag(op));
            break;
        case IR_OP_CALL: /* of the library, whole until it is opened */
        case IR_OP_CAST:
        case IR_OP_TUPLE_GET:
        case IR_OP_TUPLE_UNPACK:
        case IR_OP_LIST_UNPACK:
            for (size_t i = 0; i < op->result_count; i++) {
                flag f = op->opcode == IR_OP_CALL || flag_of(s, op->operands[0]) != SOME ? made_of(s, op) : EITHER;
                bool carries = differ_may_carry(op->results[i]->type);
                set_flag(s, op->results[i], !carries ? NO : f == YES && op->opcode == IR_OP_CALL && !s->is_on ? NO : f);
            }
            break;
        default:
            for (size_t i = 0; i < op->result_count; i++)
                set_flag(s, op->results[i], UNSEEN);
            break;
        }
    }
}

static bool reads_flags(const pass_op_list *ops) {
    for (size_t i = 0; i < ops->count; i++)
        if (ir_is_core(ops->items[i], OP_prim_requires_grad))
            return true;
    return false;
}

static ts_status settle(pass_context *ctx, ir_module *m, bool refuses) {
    for (ir_function *f = m->functions; f; f = f->next) {
        pass_op_list ops = f->body && f->is_entry ? pass_collect(ctx, f) : (pass_op_list){0};
        if (!reads_flags(&ops))
            continue;
        size_t count = pass_number_values(f);
        settler s = {.ctx = ctx, .m = m, .count = count, .is_on = true, .replaces = true, .refuses = refuses,
                     .flags = TS_NEW_ARRAY(ctx->scratch, uint8_t, count + 1),
                     .modes = TS_NEW_ARRAY(ctx->scratch, uint8_t, count + 1),
                     .roots = TS_NEW_ARRAY(ctx->scratch, ir_value *, count + 1),
                     .bases = TS_NEW_ARRAY(ctx->scratch, ir_value *, count + 1)};
        memset(s.flags, UNSEEN, count);
        memset(s.modes, 1, count);
        memset(s.roots, 0, count * sizeof *s.roots);
        memset(s.bases, 0, count * sizeof *s.bases);
        for (size_t i = 0; i < f->body->parameter_count; i++)
            if (f->body->parameters[i]->type->kind == IR_TENSOR)
                set_flag(&s, f->body->parameters[i], NO);
        walk(&s, f->body, 0);
        TS_TRY(s.status);
    }
    return NULL;
}

ts_status pass_settle_requires_grad(pass_context *ctx, ir_module *m) { return settle(ctx, m, false); }

ts_status pass_refuse_requires_grad(pass_context *ctx, ir_module *m) { return settle(ctx, m, true); }

/* passes/inline.c - puts the bodies of functions and methods in the place of their calls.
 *
 *   %y = call @f(%x) : T           =>   the operators of @f, %y replaced by what it returns
 *   %y = call_method.g(%o, %x)     =>   the same, where the class of %o is certain
 *
 * From what stays (entries, and what they call for good) downwards: a body is copied as it was written,
 * and the calls in the copy are next. So work and memory are those of the result, however deep the calls
 * are nested. Functions on a cycle of calls stay calls: recursion needs frames. Where an entry would become longer than ENTRY_BUDGET, functions of more
 * than KEPT_SIZE operators that are called from several places stay functions in all of the module:
 * calls that double from level to level would never end. Afterwards functions that nothing can
 * reach are dropped. */
#include "passes/pass_internal.h"

/* Real networks have fewer: densenet201 35,000, efficientnet_b7 31,000, swin_v2_b 28,000. */
enum { ENTRY_BUDGET = 100000, KEPT_SIZE = 1000 };

typedef struct inliner {
    pass_context *ctx;
    ir_module *m;
    bool library_too;
    int *states; /* of measuring, by function number: 0 new, 1 on the way, 2 done */
    bool *recursive;
    size_t *sizes;      /* own operators, with those of calls that were or will be inlined */
    uint32_t *sites;    /* calls that name it */
    bool is_first; /* of the two measurings */
    bool keeps_large;
    bool *reached; /* expanded, and what it still calls too */
    size_t function_count;
    ir_function **stack;
    size_t stack_count, stack_capacity;
} inliner;

/* The class of an object where it is certain: a constant's own, or one that nothing derives from. */
static const ir_class *certain_class(const inliner *in, const ir_value *object) {
    rt_value v;
    if (ir_const_value(object, &v))
        return v.tag == RT_TAG_OBJECT ? v.as.object->class_->info : NULL;
    if (object->type->kind != IR_CLASS || object->type->class_->base.kind == RT_CLASS_INTERFACE)
        return NULL;
    const ir_class *c = object->type->class_;
    for (size_t i = 0; i < in->m->class_count; i++) {
        const rt_class *other = &in->m->classes[i]->base;
        for (size_t j = 0; j < other->base_count; j++)
            if (other->bases[j] == &c->base)
                return NULL;
    }
    return c;
}

static ir_function *find_method(const ir_class *c, ts_str name) {
    for (size_t i = 0; i < c->method_count; i++)
        if (ts_str_equal(c->methods[i].name, name) && c->methods[i].function)
            return c->methods[i].function;
    for (size_t i = 0; i < c->base.base_count; i++) {
        const ir_class *base = c->base.bases[i]->info;
        for (size_t j = 0; base && j < base->method_count; j++)
            if (ts_str_equal(base->methods[j].name, name) && base->methods[j].function)
                return base->methods[j].function;
    }
    return NULL;
}

/* call_method of a certain class is a call. */
static void resolve_method(inliner *in, ir_op *op) {
    if (op->opcode != IR_OP_CALL_METHOD)
        return;
    const ir_class *c = certain_class(in, op->operands[0]);
    ir_function *f = c ? find_method(c, op->name) : NULL;
    if (!f || f->body->parameter_count != op->operand_count)
        return;
    for (size_t i = 0; i < op->operand_count; i++)
        if (!ir_type_is_subtype(op->operands[i]->type, f->body->parameters[i]->type))
            return;
    if (!ir_type_is_subtype(f->return_type, op->results[0]->type))
        return;
    op->opcode = IR_OP_CALL;
    op->function = f;
    op->name = (ts_str){0};
    pass_count(in->ctx, "resolved", 1);
}

static void inline_call(inliner *in, ir_op *op) {
    ir_module *m = in->m;
    ir_function *f = op->function;
    ir_builder b = pass_before(m, op);
    ir_value_map *map = ir_value_map_make(in->ctx->scratch);
    for (size_t i = 0; i < op->operand_count; i++) {
        ir_value *arg = op->operands[i], *parameter = f->body->parameters[i];
        /* The body was typed for the parameter's kind (an Optional, say); facts of an entry's
         * parameters are no promise to callers inside. */
        const ir_type *wanted = ir_type_forget(m, parameter->type);
        if (arg->type->kind != wanted->kind)
            arg = ir_build_op(&b, IR_OP_CAST, &arg, 1, &wanted, 1)->results[0];
        ir_value_map_set(map, parameter, arg);
    }
    ir_value *result = NULL;
    ir_clone_block_body(&b, f->body, map, &result);
    pass_replace(m, op->results[0], result);
    ir_op_remove(op);
    pass_count(in->ctx, "calls", 1);
}

static bool may_inline(const inliner *in, const ir_op *op) {
    const ir_function *f = op->function;
    if (op->opcode != IR_OP_CALL || !f || in->recursive[f->number])
        return false;
    if (f->is_library && !in->library_too)
        return false;
    if (f->is_kept)
        return false;
    return in->states[f->number] == 2;
}

/* ---- how long it will be ---- */

enum { MAX_SIZE = 1 << 30 };

/* Sizes of callees are known: the order is that of visit. */
static void measure(inliner *in, ir_function *f, const pass_op_list *ops) {
    size_t size = ops->count;
    for (size_t i = 0; i < ops->count; i++)
        if (may_inline(in, ops->items[i]))
            size += in->sizes[ops->items[i]->function->number];
    in->sizes[f->number] = size < MAX_SIZE ? size : MAX_SIZE;
    if (in->keeps_large && in->sites[f->number] > 1 && size > KEPT_SIZE)
        f->is_kept = true;
}

static void visit(inliner *in, ir_function *f);

static pass_op_list visit_callees(inliner *in, ir_function *f) {
    pass_op_list ops = pass_collect(in->ctx, f);
    for (size_t i = 0; i < ops.count; i++) {
        if (in->is_first)
            resolve_method(in, ops.items[i]);
        if (ops.items[i]->function) {
            in->sites[ops.items[i]->function->number] += in->is_first;
            visit(in, ops.items[i]->function);
        }
    }
    return ops;
}

/* Depth-first; who is met on the way to itself lies on a cycle, with all that stand between. */
static void visit(inliner *in, ir_function *f) {
    enum { CALL_DEPTH = 2000 };
    if (in->states[f->number] == 1) {
        for (size_t i = in->stack_count; i-- > 0;) {
            in->recursive[in->stack[i]->number] = true;
            if (in->stack[i] == f)
                break;
        }
        return;
    }
    if (in->states[f->number] == 2 || in->stack_count >= CALL_DEPTH)
        return;
    in->states[f->number] = 1;
    TS_APPEND(in->ctx->scratch, in->stack, in->stack_count, in->stack_capacity, f);
    pass_op_list ops = visit_callees(in, f);
    measure(in, f, &ops);
    in->stack_count--;
    in->states[f->number] = 2;
}

static void measure_all(inliner *in) {
    in->stack_count = 0;
    for (size_t i = 0; i < in->function_count; i++)
        in->states[i] = 0;
    for (ir_function *f = in->m->functions; f; f = f->next)
        visit(in, f);
}

/* Sizes as they will be; once more where any entry's is out of bounds. */
static void measure_twice(inliner *in) {
    in->is_first = true;
    measure_all(in);
    in->is_first = false;
    for (ir_function *f = in->m->functions; f; f = f->next)
        in->keeps_large |= in->sizes[f->number] > ENTRY_BUDGET;
    measure_all(in);
}

/* ---- expansion ---- */

/* All calls of a function, and then those of the bodies that came in their place. */
static void expand(inliner *in, ir_function *f) {
    pass_op_list ops = pass_collect(in->ctx, f);
    for (size_t i = 0; i < ops.count; i++) {
        ir_op *op = ops.items[i];
        if (!may_inline(in, op)) {
            if (op->opcode == IR_OP_CALL && op->function->is_kept)
                pass_count(in->ctx, "kept_calls", 1);
            continue;
        }
        const ir_op *before = op->previous;
        ir_block *block = op->block;
        ir_op *after = op->next;
        inline_call(in, op);
        for (ir_op *copy = before ? before->next : block->first; copy != after; copy = copy->next)
            pass_collect_op(in->ctx, copy, &ops);
    }
}

/* ---- what nothing reaches ---- */

static void mark(inliner *in, ir_function *f);

static void mark_method(inliner *in, ts_str name) {
    for (size_t i = 0; i < in->m->class_count; i++)
        for (size_t j = 0; j < in->m->classes[i]->method_count; j++) {
            const ir_method *method = &in->m->classes[i]->methods[j];
            if (method->function && ts_str_equal(method->name, name))
                mark(in, method->function);
        }
}

static void mark(inliner *in, ir_function *f) {
    if (in->reached[f->number])
        return;
    in->reached[f->number] = true;
    expand(in, f);
    pass_op_list ops = pass_collect(in->ctx, f);
    for (size_t i = 0; i < ops.count; i++) {
        if (ops.items[i]->function)
            mark(in, ops.items[i]->function);
        if (ops.items[i]->opcode == IR_OP_CALL_METHOD)
            mark_method(in, ops.items[i]->name);
    }
}

/* A module without entries (a test's) keeps all. */
static void expand_reached(inliner *in) {
    bool any_entry = false;
    for (ir_function *f = in->m->functions; f; f = f->next)
        any_entry |= f->is_entry;
    for (ir_function *f = in->m->functions; f; f = f->next)
        if (f->is_entry || !any_entry)
            mark(in, f);
}

static void drop_unreached(inliner *in) {
    ir_module *m = in->m;
    for (size_t i = 0; i < m->class_count; i++)
        for (size_t j = 0; j < m->classes[i]->method_count; j++) {
            ir_method *method = &m->classes[i]->methods[j];
            if (method->function && !in->reached[method->function->number])
                method->function = NULL;
        }
    for (ir_function *f = m->functions, *next; f; f = next) {
        next = f->next;
        if (!in->reached[f->number]) {
            ir_function_remove(m, f);
            pass_count(in->ctx, "dropped", 1);
        }
    }
}

/* An entry that is also called from inside gets a twin without the facts of the entry's inputs. */
static void split_called_entries(inliner *in) {
    ir_module *m = in->m;
    for (ir_function *f = m->functions; f; f = f->next) {
        bool has_facts = false;
        for (size_t i = 0; i < f->body->parameter_count; i++)
            has_facts |= ir_type_forget(m, f->body->parameters[i]->type) !=
                         f->body->parameters[i]->type;
        if (!f->is_entry || !has_facts || !pass_has_calls_to(m, f))
            continue;
        ir_function *twin =
            ir_function_make(m, ts_arena_format(m->arena, "%.*s.inner", (int)f->name.length,
                                                f->name.data));
        ir_value_map *map = ir_value_map_make(in->ctx->scratch);
        for (size_t i = 0; i < f->body->parameter_count; i++) {
            ir_value *p = f->body->parameters[i];
            ir_value_map_set(map, p,
                             ir_function_add_parameter(twin, f->parameter_names[i],
                                                       ir_type_forget(m, p->type),
                                                       f->defaults[i]));
        }
        twin->return_type = ir_type_forget(m, f->return_type);
        twin->place = f->place;
        ir_builder b = {.module = m, .block = twin->body};
        for (ir_op *op = f->body->first; op; op = op->next)
            ir_clone_op(&b, op, map);
        for (ir_function *g = m->functions; g; g = g->next) {
            pass_op_list ops = pass_collect(in->ctx, g);
            for (size_t i = 0; i < ops.count; i++)
                if (ops.items[i]->function == f)
                    ops.items[i]->function = twin;
        }
        pass_count(in->ctx, "split", 1);
    }
}

ts_status pass_inline_calls(pass_context *ctx, ir_module *m, bool library_too) {
    inliner in = {.ctx = ctx, .m = m, .library_too = library_too};
    split_called_entries(&in);
    for (ir_function *f = m->functions; f; f = f->next)
        f->number = (uint32_t)in.function_count++;
    in.states = TS_NEW_ARRAY(ctx->scratch, int, in.function_count);
    in.recursive = TS_NEW_ARRAY(ctx->scratch, bool, in.function_count);
    in.sizes = TS_NEW_ARRAY(ctx->scratch, size_t, in.function_count);
    in.sites = TS_NEW_ARRAY(ctx->scratch, uint32_t, in.function_count);
    in.reached = TS_NEW_ARRAY(ctx->scratch, bool, in.function_count);
    measure_twice(&in);
    expand_reached(&in);
    drop_unreached(&in);
    return NULL;
}

ts_status pass_inline(pass_context *ctx, ir_module *m) { return pass_inline_calls(ctx, m, true); }

/* passes/differentiate_depends.c - what depends on the inputs of a gradient.
 *
 * A walk over the whole function, repeated until nothing is new: a result depends where an operand
 * does, what a list, dict or attribute is given makes it depend, a carried value depends where what
 * it starts as or what the body hands on does. detach and its kind, integers, comparisons, and
 * whatever is computed under no_grad end the way. Too much is harmless here; too little would be a
 * wrong gradient. */
#include "passes/differentiate.h"

bool differ_is_op(const ir_op *op, const char *name) {
    return op && op->opcode == IR_OP_CORE && ts_str_is(rt_op_name(op->core), name);
}

ts_status differ_unsupported(const ir_op *op) {
    ts_str name = op->opcode == IR_OP_CORE ? rt_op_name(op->core)
                                           : ts_str_of(ir_opcode_name(op->opcode));
    return ts_error_at(TS_ERR_UNSUPPORTED, op->place,
                       "the derivative of %.*s is not supported yet", TS_STR_ARG(name));
}

/* No set_attr of that name between the two: in a loop "between" comes around again. */
static bool is_set_between(const differ *d, const ir_op *a, const ir_op *b) {
    uint32_t low = a->number < b->number ? a->number : b->number;
    uint32_t high = a->number < b->number ? b->number : a->number;
    for (size_t i = 0; i < d->ops.count; i++) {
        const ir_op *op = d->ops.items[i];
        if (op->opcode == IR_OP_SET_ATTR && ts_str_equal(op->name, a->name) && i > low && i < high)
            return true;
    }
    return false;
}

/* A list made here: it is no other list that was. (The alias sets go by what lists hold, too.) */
static const ir_value *fresh_list(ir_value *v) {
    const ir_value *root = differ_list_root(v);
    if (!root->def || (root->def->opcode != IR_OP_LIST && root->def->opcode != IR_OP_CORE))
        return NULL;
    if (root->def->opcode == IR_OP_CORE && ir_schema_of(root->def->block->function->module, root->def->core)
                                               ->result_aliases[root->index])
        return NULL;
    return root;
}

/* The list itself is written: its tensors may be. */
static bool list_is_changed(const differ *d, const ir_value *v) {
    if (v->type->kind != IR_LIST || v->type->args[0]->kind != IR_TENSOR)
        return pass_is_changed(d->alias, v);
    for (size_t i = 0; i < d->ops.count; i++) {
        const ir_op *op = d->ops.items[i];
        bool is_other = op->opcode == IR_OP_CORE && op->operand_count &&
                        (op->operands[0]->type->kind == IR_TENSOR ||
                         (differ_is_list(op->operands[0]) && fresh_list(op->operands[0])));
        if (!op->region_count && !is_other && pass_op_writes(d->alias, op, v))
            return true;
    }
    return false;
}

/* What a read of an attribute that nobody sets, or a constant, gives; lists that nobody changes. */
static bool value_of(const differ *d, const ir_value *v, rt_value *out) {
    if (!v->def)
        return false;
    if (v->def->opcode == IR_OP_CONST)
        return ir_const_value(v, out);
    return v->def->opcode == IR_OP_GET_ATTR && pass_attribute_value(d->alias, v->def, out) &&
           (out->tag == RT_TAG_TENSOR || (v->number != UINT32_MAX && !list_is_changed(d, v)));
}

bool differ_known_list(const differ *d, const ir_value *v, rt_value *out) {
    return v->type->kind == IR_LIST && value_of(d, v, out) && out->tag == RT_TAG_LIST;
}

/* The tensor that a value is, where it is one of the object tree: also an item of a list there. */
static const void *tensor_of(const differ *d, const ir_value *v) {
    rt_value found, list;
    int64_t at;
    if (differ_is_op(v->def, "__getitem__.t") && ir_const_int(v->def->operands[1], &at) &&
        differ_known_list(d, v->def->operands[0], &list)) {
        int64_t count = (int64_t)list.as.list->count;
        at = at < 0 ? at + count : at;
        if (at < 0 || at >= count || list.as.list->items[at].tag != RT_TAG_TENSOR)
            return NULL;
        return list.as.list->items[at].as.pointer;
    }
    return value_of(d, v, &found) && found.tag == RT_TAG_TENSOR ? found.as.pointer : NULL;
}

const void *differ_variable(const differ *d, const ir_value *v) { return tensor_of(d, v); }

/* A container of the object tree that holds one of the inputs, however deep. */
static bool holds_input(const differ *d, rt_value v, int depth) {
    if (depth > PASS_OBJECT_DEPTH)
        return true;
    if (v.tag == RT_TAG_TENSOR) {
        for (size_t i = 0; i < d->input_count; i++)
            if (tensor_of(d, d->inputs[i]) == v.as.pointer)
                return true;
    } else if (v.tag == RT_TAG_LIST || v.tag == RT_TAG_TUPLE) {
        size_t count = v.tag == RT_TAG_LIST ? v.as.list->count : v.as.tuple->count;
        const rt_value *items = v.tag == RT_TAG_LIST ? v.as.list->items : v.as.tuple->items;
        for (size_t i = 0; i < count; i++)
            if (holds_input(d, items[i], depth + 1))
                return true;
    } else if (v.tag == RT_TAG_DICT) {
        const rt_dict_entry *e;
        for (size_t at = 0; (e = rt_dict_next(v.as.dict, &at));)
            if (holds_input(d, e->value, depth + 1))
                return true;
    }
    return false;
}

bool differ_same_variable(const differ *d, const ir_value *a, const ir_value *b) {
    rt_value x, y;
    if (a == b)
        return true;
    const void *tensor = tensor_of(d, a);
    if (tensor && tensor == tensor_of(d, b))
        return true;
    if (!a->def || !b->def || a->def->opcode != IR_OP_GET_ATTR || b->def->opcode != IR_OP_GET_ATTR)
        return false;
    return ts_str_equal(a->def->name, b->def->name) &&
           ir_const_value(a->def->operands[0], &x) && ir_const_value(b->def->operands[0], &y) &&
           x.as.pointer == y.as.pointer && !is_set_between(d, a->def, b->def);
}

void differ_number(pass_op_list *ops) {
    for (size_t i = 0; i < ops->count; i++)
        ops->items[i]->number = (uint32_t)i;
}

bool differ_depends(const differ *d, const ir_value *v) {
    return ir_value_map_get(d->depends, v) != NULL;
}

bool differ_is_inside(const ir_op *outer, const ir_value *v) {
    const ir_block *block = v->def ? v->def->block : v->block;
    while (block && block->parent) {
        if (block->parent == outer)
            return true;
        block = block->parent->block;
    }
    return false;
}

/* Values of the type can hold what has a gradient. */
bool differ_may_carry(const ir_type *t) {
    switch (t->kind) {
    case IR_TENSOR:
        return t->dtype == RT_DTYPE_UNKNOWN || rt_dtype_is_float(t->dtype) ||
               rt_dtype_is_complex(t->dtype);
    case IR_LIST:
    case IR_TUPLE:
    case IR_DICT:
    case IR_OPTIONAL:
    case IR_UNION:
        for (size_t i = 0; i < t->arg_count; i++)
            if (differ_may_carry(t->args[i]))
                return true;
        return false;
    case IR_ANY:
    case IR_FUTURE:
        return true;
    default:
        return false;
    }
}

/* What PyTorch gives no history: values that are new, by how their names begin. Operators that are
 * constant piece by piece, as floor, have a derivative of zeros instead. */
bool differ_cuts(const ir_op *op) {
    static const char *const starts[] = {
        "detach",  "prim_data", "zeros_like", "ones_like", "full_like",   "empty_like", "rand_like",
        "randn_like", "randint_like", "new_", "linspace", "logspace", "normal.", "normal_", "uniform_",
        "log_normal_", "cauchy_", "geometric_", "exponential_", "bernoulli_", "random_", "multinomial",
        "floor_divide", "is_grad_enabled"};
    if (op->opcode != IR_OP_CORE)
        return op->opcode == IR_OP_CONST;
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (ts_str_starts_with(rt_op_name(op->core), starts[i]))
            return true;
    return false;
}

/* ---- the walk ---- */

typedef struct dependence {
    differ *d;
    ir_value_map *modes; /* what is_grad_enabled gave -> itself where gradients were on */
    ir_value_map *known; /* ... and all that were seen */
    bool is_on, changed;
} dependence;

static bool mark(dependence *w, ir_value *v) {
    if (!differ_may_carry(v->type) || differ_depends(w->d, v))
        return false;
    ir_value_map_set(w->d->depends, v, v);
    w->changed = true;
    return true;
}

static void mark_written(dependence *w, ir_value *v) {
    if (differ_is_list(v))
        v = differ_list_root(v);
    mark(w, v);
}

static void add_field(dependence *w, ts_str name) {
    differ *d = w->d;
    for (size_t i = 0; i < d->field_count; i++)
        if (ts_str_equal(d->fields[i], name))
            return;
    ts_str *fields = TS_NEW_ARRAY(d->ctx->scratch, ts_str, d->field_count + 1);
    if (d->field_count)
        memcpy(fields, d->fields, d->field_count * sizeof *fields);
    fields[d->field_count++] = name;
    d->fields = fields;
    w->changed = true;
}

static bool is_field(const differ *d, ts_str name) {
    for (size_t i = 0; i < d->field_count; i++)
        if (ts_str_equal(d->fields[i], name))
            return true;
    return false;
}

static void mark_unset(dependence *w, ir_value *v) {
    if (ir_value_map_get(w->d->unset, v))
        return;
    ir_value_map_set(w->d->unset, v, v);
    w->changed = true;
}

static bool is_unset(const dependence *w, const ir_value *v) {
    return ir_value_map_get(w->d->unset, v) != NULL;
}

static void walk_block(dependence *w, ir_block *block);

static void walk_loop(dependence *w, ir_op *op) {
    ir_block *body = op->regions[0];
    for (size_t j = 0; j < op->result_count; j++)
        if (differ_depends(w->d, op->operands[j + 2]))
            mark(w, body->parameters[j + 1]);
    walk_block(w, body);
    for (size_t j = 0; j < op->result_count; j++) {
        if (is_unset(w, op->operands[j + 2]) || is_unset(w, body->last->operands[j + 1])) {
            mark_unset(w, body->parameters[j + 1]);
            mark_unset(w, op->results[j]);
        }
        if (differ_depends(w->d, body->last->operands[j + 1]))
            mark(w, body->parameters[j + 1]);
        if (differ_depends(w->d, body->parameters[j + 1]))
            mark(w, op->results[j]);
    }
}

static void set_mode(dependence *w, const ir_op *op) {
    bool on;
    const ir_value *mode = op->operands[0];
    if (ir_const_bool(mode, &on))
        w->is_on = on;
    else /* not known: what is computed may have a history */
        w->is_on = !ir_value_map_get(w->known, mode) || ir_value_map_get(w->modes, mode);
}

static void walk_op(dependence *w, ir_op *op) {
    differ *d = w->d;
    if (op->opcode == IR_OP_LOOP) {
        walk_loop(w, op);
        return;
    }
    for (size_t r = 0; r < op->region_count; r++)
        walk_block(w, op->regions[r]);
    if (op->opcode == IR_OP_IF) {
        for (size_t j = 0; j < op->result_count; j++) {
            const ir_value *a = op->regions[0]->last->operands[j], *b = op->regions[1]->last->operands[j];
            if (differ_depends(d, a) || differ_depends(d, b))
                mark(w, op->results[j]);
            if (is_unset(w, a) || is_unset(w, b))
                mark_unset(w, op->results[j]);
        }
        return;
    }
    if (op->opcode == IR_OP_UNINITIALIZED || (op->opcode == IR_OP_CAST && is_unset(w, op->operands[0])))
        mark_unset(w, op->results[0]);
    if (differ_is_op(op, "set_grad_enabled")) {
        set_mode(w, op);
        return;
    }
    if (differ_is_op(op, "is_grad_enabled")) {
        ir_value_map_set(w->known, op->results[0], op->results[0]);
        if (w->is_on)
            ir_value_map_set(w->modes, op->results[0], op->results[0]);
        return;
    }
    if (op->opcode == IR_OP_GET_ATTR && is_field(d, op->name)) {
        mark(w, op->results[0]);
        return;
    }
    bool any = false;
    for (size_t i = 0; i < op->operand_count; i++)
        any |= differ_depends(d, op->operands[i]);
    if (!any || differ_cuts(op) || !w->is_on || op == d->at)
        return;
    if (op->opcode == IR_OP_SET_ATTR) {
        add_field(w, op->name);
        return;
    }
    /* Running statistics, which stand further behind, have no history. */
    if (op->opcode == IR_OP_CORE && ir_op_writes(op, 0))
        mark_written(w, op->operands[0]);
    for (size_t j = 0; j < op->result_count; j++)
        mark(w, op->results[j]);
}

static void walk_block(dependence *w, ir_block *block) {
    for (ir_op *op = block->first; op; op = op->next)
        walk_op(w, op);
}

void differ_find_dependents(differ *d) {
    ir_function *f = d->at->block->function;
    dependence w = {.d = d, .modes = ir_value_map_make(d->ctx->scratch),
                    .known = ir_value_map_make(d->ctx->scratch)};
    d->depends = ir_value_map_make(d->ctx->scratch);
    d->unset = ir_value_map_make(d->ctx->scratch);
    for (size_t i = 0; i < d->input_count; i++) {
        mark(&w, d->inputs[i]);
        for (size_t k = 0; k < d->ops.count; k++) {
            const ir_op *op = d->ops.items[k];
            if ((op->opcode == IR_OP_GET_ATTR || op->opcode == IR_OP_CONST ||
                 differ_is_op(op, "__getitem__.t")) &&
                differ_same_variable(d, op->results[0], d->inputs[i]))
                mark(&w, op->results[0]);
        }
    }
    for (size_t k = 0; k < d->ops.count; k++) {
        const ir_op *op = d->ops.items[k];
        rt_value v;
        if ((op->opcode == IR_OP_CONST && ir_const_value(op->results[0], &v)) ||
            (op->opcode == IR_OP_GET_ATTR && pass_attribute_value(d->alias, op, &v)))
            if (v.tag != RT_TAG_TENSOR && holds_input(d, v, 0))
                mark(&w, op->results[0]);
    }
    do {
        w.changed = false;
        w.is_on = true;
        walk_block(&w, f->body);
    } while (w.changed);
}

/* ---- memory that is written ---- */

static bool contains(const ir_op *outer, const ir_op *inner) {
    for (; inner; inner = inner->block->parent)
        if (inner == outer)
            return true;
    return false;
}

/* In different branches: where one runs the other does not. */
static bool excludes(const ir_op *a, const ir_op *b) {
    for (const ir_block *x = a->block; x && x->parent; x = x->parent->block)
        for (const ir_block *y = b->block; y && y->parent; y = y->parent->block)
            if (x != y && x->parent == y->parent && x->parent->opcode == IR_OP_IF)
                return true;
    return false;
}

/* `write` may run after `reader` and before the gradient; made: what is written is new wherever this
 * operator runs, or NULL. */
static bool runs_between(const differ *d, const ir_op *reader, const ir_op *write, const ir_op *made) {
    if (write->number > reader->number && write->number < d->at->number && !excludes(write, d->at))
        return true;
    for (const ir_op *loop = reader->block->parent; loop; loop = loop->block->parent)
        if (loop->opcode == IR_OP_LOOP && contains(loop, write) && !contains(loop, d->at) &&
            !(made && contains(loop, made)))
            return true;
    return false;
}

static bool writes_list(differ *d, const ir_op *op, ir_value *v) {
    const ir_value *own = fresh_list(v);
    if (own && op->opcode == IR_OP_CORE && op->operand_count && differ_is_list(op->operands[0])) {
        const ir_value *written = fresh_list(op->operands[0]);
        if (written)
            return written == own && ir_op_writes(op, 0);
    }
    return pass_op_writes(d->alias, op, v);
}

bool differ_is_unchanged(differ *d, const ir_op *reader, ir_value *v) {
    if (!ir_type_is_mutable(v->type) || v->number == UINT32_MAX || pass_is_stable(d->alias, v))
        return true;
    const ir_value *own = differ_is_list(v) ? fresh_list(v) : NULL;
    for (size_t i = 0; i < d->ops.count; i++) {
        const ir_op *op = d->ops.items[i];
        if (!op->region_count && op != reader && !differ_is_op(op, "requires_grad_") &&
            runs_between(d, reader, op, own ? own->def : NULL) &&
            (differ_is_list(v) ? writes_list(d, op, v) : pass_op_writes(d->alias, op, v)))
            return false;
    }
    return true;
}

/* What the outputs are made of, whether or not it carries gradients. */
static void reach(differ *d, const ir_value *v, bool *reached, int depth);

static void reach_op(differ *d, const ir_op *op, bool *reached, int depth) {
    if (depth > 4000 || op->number >= d->ops.count || reached[op->number])
        return;
    reached[op->number] = true;
    for (size_t i = 0; i < op->operand_count; i++)
        reach(d, op->operands[i], reached, depth + 1);
    for (size_t r = 0; r < op->region_count; r++)
        for (const ir_op *inner = op->regions[r]->first; inner; inner = inner->next)
            reach_op(d, inner, reached, depth + 1);
}

static void reach(differ *d, const ir_value *v, bool *reached, int depth) {
    if (v->def)
        reach_op(d, v->def, reached, depth);
    else if (v->block->parent)
        reach_op(d, v->block->parent, reached, depth);
}

/* Whether op fills what the outputs are made of: an append reaches them through its list, and no result. */
static bool fills_reached(const differ *d, const ir_op *op, const bool *reached) {
    if (op->opcode != IR_OP_CORE || !op->operand_count || !ir_op_writes(op, 0) || !differ_is_list(op->operands[0]))
        return false;
    const ir_value *v = differ_list_root(op->operands[0]);
    return v->def && v->def->number < d->ops.count && reached[v->def->number];
}

static void reach_writers(differ *d, bool *reached) {
    for (bool any = true; any;) {
        any = false;
        for (size_t i = 0; i < d->ops.count; i++) {
            const ir_op *op = d->ops.items[i];
            if (reached[op->number] || !fills_reached(d, op, reached))
                continue;
            any = true;
            reach_op(d, op, reached, 0);
            /* What decides whether it runs, too; of what stands around the gradient itself, nothing. */
            for (op = op->block->parent; op && !contains(op, d->at); op = op->block->parent) {
                if (op->opcode == IR_OP_LOOP)
                    reach_op(d, op, reached, 0);
                else if (op->operand_count)
                    reach(d, op->operands[0], reached, 0);
                reached[op->number] = true;
            }
        }
    }
}

static bool is_read(differ *d, const bool *reached, const ir_value *v) {
    for (size_t i = 0; i < d->ops.count; i++)
        for (size_t j = 0; reached[i] && j < d->ops.items[i]->operand_count; j++)
            if (pass_may_alias(d->alias, d->ops.items[i]->operands[j], v))
                return true;
    return false;
}

/* An input itself: what a step of an optimiser writes there is where the next gradient begins. */
static bool is_input(const differ *d, const ir_value *v) {
    for (size_t i = 0; i < d->input_count; i++)
        if (differ_same_variable(d, v, d->inputs[i]))
            return true;
    return false;
}

ts_status differ_check_writes(differ *d, ir_value *const *outputs, size_t count) {
    bool *reached = d->reached = TS_NEW_ARRAY(d->ctx->scratch, bool, d->ops.count + 1);
    for (size_t i = 0; i < count; i++)
        reach(d, outputs[i], reached, 0);
    reach_writers(d, reached);
    for (size_t i = 0; i < d->ops.count; i++) {
        const ir_op *op = d->ops.items[i];
        if (op->opcode != IR_OP_CORE || op->operand_count < 1 ||
            differ_is_op(op, "requires_grad_") || !ir_op_writes(op, 0) ||
            op->operands[0]->type->kind == IR_LIST || !ir_type_is_mutable(op->operands[0]->type) ||
            !runs_between(d, d->ops.items[0], op, NULL))
            continue;
        bool own = !pass_is_outside(d->alias, op->operands[0]) && !is_input(d, op->operands[0]);
        bool any = own && differ_depends(d, op->operands[0]) && op->operands[0]->type->kind == IR_TENSOR;
        for (size_t j = 1; j < op->operand_count; j++)
            any |= differ_depends(d, op->operands[j]);
        if (any && is_read(d, reached, op->operands[0]))
            return differ_unsupported(op);
    }
    return NULL;
}

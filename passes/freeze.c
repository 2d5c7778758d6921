/* passes/freeze.c - attributes that are never written become constants.
 *
 *   func @forward(%self: M, ...)             the root object stands for %self of an entry
 *   %w = get_attr.weight(#0)          =>     const @weight
 *
 * A field that some function sets (set_attr, anywhere in the module) stays; so does a tensor, list
 * or dict that some operator writes through any alias: that is state, which a session carries.
 * Tensors that share a storage are told apart by it, so a write to one keeps all of them. A write
 * through an object that is not a constant (self of a function that stays a call) counts for the
 * attribute of that name in every object.
 * Needs: inline (a class is certain only for constant objects). */
#include "passes/alias.h"

typedef struct freezer {
    pass_context *ctx;
    ir_module *m;
    const void **written; /* storages, lists, dicts */
    size_t written_count, written_capacity;
    ts_str *names; /* of attributes that are written through objects not known */
    size_t name_count, name_capacity;
    bool too_deep; /* not every object was seen: anything may be written */
    ir_op **sets; /* every set_attr of the module */
    size_t set_count, set_capacity;
} freezer;

static void find_sets(freezer *fr, const ir_block *b) {
    for (ir_op *op = b->first; op; op = op->next) {
        if (op->opcode == IR_OP_SET_ATTR)
            TS_APPEND(fr->ctx->scratch, fr->sets, fr->set_count, fr->set_capacity, op);
        for (size_t i = 0; i < op->region_count; i++)
            find_sets(fr, op->regions[i]);
    }
}

static bool is_field_set(const freezer *fr, const ir_class *c, ts_str name) {
    for (size_t i = 0; i < fr->set_count; i++) {
        const ir_op *op = fr->sets[i];
        if (!ts_str_equal(op->name, name))
            continue;
        const ir_type *t = op->operands[0]->type;
        /* Another class of the same field is another field, unless one derives from the other or the
         * type is not certain. */
        if (t->kind != IR_CLASS || t->class_ == c || t->class_->base.kind == RT_CLASS_INTERFACE ||
            rt_class_is_a(&t->class_->base, &c->base) || rt_class_is_a(&c->base, &t->class_->base))
            return true;
    }
    return false;
}

/* ---- attributes that are set to what they are ---- */

/* The value that in-place operators hand on: copy_(x, y) is x. */
static const ir_value *identity_of(ir_module *m, const ir_value *v) {
    for (int depth = 0; depth < 100 && v->def && v->def->opcode == IR_OP_CORE; depth++) {
        const ir_schema *s = ir_schema_of(m, v->def->core);
        if (v->def->result_count != 1 || !s->arg_count || !s->args[0].is_written ||
            s->args[0].alias != s->result_aliases[0] || v->type->kind != IR_TENSOR)
            break;
        v = v->def->operands[0];
    }
    return v;
}

static bool same_object(const ir_value *a, const ir_value *b) {
    rt_value x, y;
    return a == b ||
           (ir_const_value(a, &x) && ir_const_value(b, &y) && x.as.pointer == y.as.pointer);
}

/* self.n = self.n.add_(1), which archives write for self.n += 1. */
static bool sets_itself(ir_module *m, const ir_op *set) {
    const ir_value *v = identity_of(m, set->operands[1]);
    return v->def && v->def->opcode == IR_OP_GET_ATTR && ts_str_equal(v->def->name, set->name) &&
           same_object(v->def->operands[0], set->operands[0]);
}

/* Where every set_attr of a name does that, the attribute is one tensor for good. */
static void drop_idle_sets(freezer *fr) {
    for (size_t i = 0; i < fr->set_count; i++) {
        ir_op *op = fr->sets[i];
        bool idle = op != NULL;
        for (size_t j = 0; j < fr->set_count && idle; j++)
            if (fr->sets[j] && ts_str_equal(fr->sets[j]->name, op->name))
                idle = sets_itself(fr->m, fr->sets[j]);
        for (size_t j = i; j < fr->set_count && idle; j++)
            if (j != i && fr->sets[j] && ts_str_equal(fr->sets[j]->name, op->name)) {
                ir_op_remove(fr->sets[j]);
                fr->sets[j] = NULL;
            }
        if (idle) {
            ir_op_remove(op);
            fr->sets[i] = NULL;
            pass_count(fr->ctx, "idle_sets", 1);
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < fr->set_count; i++)
        if (fr->sets[i])
            fr->sets[kept++] = fr->sets[i];
    fr->set_count = kept;
}

/* Entries are methods of the root: their first parameter is it. */
static void bind_root(freezer *fr, ir_function *f) {
    ir_module *m = fr->m;
    if (!f->is_entry || m->root.tag != RT_TAG_OBJECT || !f->body->parameter_count)
        return;
    ir_value *self = f->body->parameters[0];
    if (self->type->kind != IR_CLASS || &self->type->class_->base != m->root.as.object->class_ ||
        !self->use_count)
        return;
    ir_builder b = {.module = m, .block = f->body, .before = f->body->first, .place = f->place};
    ir_value *root = ir_build_const_typed(&b, m->root, self->type);
    ir_replace_uses(m, self, root);
    pass_count(fr->ctx, "roots", 1);
}

/* The name of a tensor in the object tree: the path of get_attrs that leads to it is gone by the
 * time the last one folds, so each constant object remembers its own. */
static ts_str path_of(freezer *fr, const ir_op *get) {
    ts_str outer = get->operands[0]->def->weight_name;
    if (!outer.length)
        return get->name;
    return ts_arena_format(fr->m->arena, "%.*s.%.*s", (int)outer.length, outer.data,
                           (int)get->name.length, get->name.data);
}

static bool field_value(const ir_op *op, const ir_class **out_class, rt_value *out) {
    rt_value object;
    if (op->opcode != IR_OP_GET_ATTR || !ir_const_value(op->operands[0], &object) ||
        object.tag != RT_TAG_OBJECT)
        return false;
    const rt_object *o = object.as.object;
    *out_class = o->class_->info;
    int64_t at = rt_class_field(o->class_, op->name);
    if (at >= 0 && (size_t)at < o->field_count && o->fields[at].tag != RT_TAG_UNINITIALIZED) {
        *out = o->fields[at];
        return true;
    }
    for (size_t i = 0; *out_class && i < (*out_class)->field_count; i++)
        if ((*out_class)->fields[i].is_constant &&
            ts_str_equal((*out_class)->fields[i].name, op->name)) {
            *out = (*out_class)->fields[i].constant;
            return true;
        }
    return false;
}

/* ---- memory that some operator writes, in whatever function ---- */

static void add_memory(freezer *fr, const void *pointer) {
    for (size_t i = 0; i < fr->written_count; i++)
        if (fr->written[i] == pointer)
            return;
    TS_APPEND(fr->ctx->scratch, fr->written, fr->written_count, fr->written_capacity, pointer);
}

static bool has_memory(freezer *fr, const void *pointer) {
    if (fr->too_deep)
        return true;
    for (size_t i = 0; i < fr->written_count; i++)
        if (fr->written[i] == pointer)
            return true;
    return false;
}

/* Visits each storage and container of a value: adds them, or says whether one was added before. */
static bool walk_memory(freezer *fr, rt_value v, bool add, int depth) {
    const void *pointer = v.tag == RT_TAG_TENSOR && v.as.tensor->storage
                              ? (const void *)v.as.tensor->storage
                              : v.as.pointer;
    if (depth > 50)
        return true;
    if (v.tag == RT_TAG_TENSOR || v.tag == RT_TAG_LIST || v.tag == RT_TAG_DICT) {
        if (add)
            add_memory(fr, pointer);
        else if (has_memory(fr, pointer))
            return true;
    }
    if (v.tag == RT_TAG_LIST || v.tag == RT_TAG_TUPLE) {
        size_t count = v.tag == RT_TAG_LIST ? v.as.list->count : v.as.tuple->count;
        const rt_value *items = v.tag == RT_TAG_LIST ? v.as.list->items : v.as.tuple->items;
        for (size_t i = 0; i < count; i++)
            if (walk_memory(fr, items[i], add, depth + 1))
                return true;
    }
    if (v.tag == RT_TAG_DICT) {
        const rt_dict_entry *e;
        for (size_t at = 0; (e = rt_dict_next(v.as.dict, &at));)
            if (walk_memory(fr, e->value, add, depth + 1))
                return true;
    }
    return false;
}

static void find_written(freezer *fr, const ir_function *f) {
    pass_alias *alias = pass_alias_make(fr->ctx, fr->m, f);
    pass_op_list ops = pass_collect(fr->ctx, f);
    for (size_t i = 0; i < ops.count; i++) {
        const ir_op *op = ops.items[i];
        const ir_class *c;
        rt_value v;
        if (op->opcode != IR_OP_GET_ATTR || !ir_type_is_mutable(op->results[0]->type) ||
            (pass_is_stable(alias, op->results[0]) && !pass_is_reshaped(alias, op->results[0])))
            continue;
        if (field_value(op, &c, &v))
            (void)walk_memory(fr, v, true, 0);
        else if (!ir_is_const(op->operands[0]))
            TS_APPEND(fr->ctx->scratch, fr->names, fr->name_count, fr->name_capacity, op->name);
    }
}

/* Attributes of fr->names are written, in whatever object. */
static void add_named(void *user, rt_object *o) {
    freezer *fr = user;
    for (size_t i = 0; i < o->field_count; i++)
        for (size_t n = 0; n < fr->name_count; n++)
            if (ts_str_equal(fr->names[n], o->class_->fields[i]))
                (void)walk_memory(fr, o->fields[i], true, 0);
}

static void find_written_through_unknown(freezer *fr) {
    if (!fr->name_count)
        return;
    pass_object_walk walk = {.ctx = fr->ctx, .visit = add_named, .user = fr};
    fr->too_deep |= !pass_walk_objects(&walk, fr->m->root, 0);
    for (ir_function *f = fr->m->functions; f; f = f->next) {
        pass_op_list ops = pass_collect(fr->ctx, f);
        rt_value v;
        for (size_t i = 0; i < ops.count; i++)
            if (ops.items[i]->opcode == IR_OP_CONST && ir_const_value(ops.items[i]->results[0], &v))
                fr->too_deep |= !pass_walk_objects(&walk, v, 0);
    }
}

static bool freeze_function(freezer *fr, ir_function *f, bool memory_too) {
    ir_module *m = fr->m;
    bool changed = false;
    pass_op_list ops = pass_collect(fr->ctx, f);
    for (size_t i = 0; i < ops.count; i++) {
        ir_op *op = ops.items[i];
        const ir_class *c;
        rt_value v;
        if (!field_value(op, &c, &v) || !c || is_field_set(fr, c, op->name))
            continue;
        bool is_memory = v.tag == RT_TAG_TENSOR || v.tag == RT_TAG_LIST || v.tag == RT_TAG_DICT ||
                         v.tag == RT_TAG_TUPLE;
        if (is_memory && (!memory_too || walk_memory(fr, v, false, 0)))
            continue;
        ir_value *r = op->results[0];
        /* The field's declared type says what an empty list or an Optional is. */
        const ir_type *own = ir_type_of_value(m, v);
        bool exact = v.tag == RT_TAG_TENSOR || v.tag == RT_TAG_OBJECT || v.tag == RT_TAG_NONE ||
                     ir_type_is_scalar(own) || own->kind == IR_STR;
        if (exact && !ir_type_is_refinement(own, r->type))
            continue;
        ir_builder b = pass_before(m, op);
        ir_value *made = ir_build_const_typed(&b, v, exact ? own : r->type);
        made->def->weight_name = path_of(fr, op);
        pass_replace(m, r, made);
        ir_op_remove(op);
        pass_count(fr->ctx, "attributes", 1);
        changed = true;
    }
    return changed;
}

ts_status pass_freeze(pass_context *ctx, ir_module *m) {
    freezer fr = {.ctx = ctx, .m = m};
    for (ir_function *f = m->functions; f; f = f->next)
        bind_root(&fr, f);
    for (ir_function *f = m->functions; f; f = f->next)
        find_sets(&fr, f->body);
    drop_idle_sets(&fr);
    /* Objects and numbers first: only then is it certain which memory an operator writes. */
    for (ir_function *f = m->functions; f; f = f->next)
        while (freeze_function(&fr, f, false)) {
        }
    for (ir_function *f = m->functions; f; f = f->next)
        find_written(&fr, f);
    find_written_through_unknown(&fr);
    for (ir_function *f = m->functions; f; f = f->next)
        while (freeze_function(&fr, f, true)) {
        }
    return NULL;
}

/* ir/type.c - types: made once each, so that equal types are one pointer; their order and joins. */
#include "ir/ir_internal.h"

#include "runtime/base/hash.h"

static uint64_t hash_type(const ir_type *t) {
    uint64_t h = (uint64_t)t->kind * 31 + (uint64_t)(t->dtype + 1);
    h = h * 31 + (uint64_t)(t->rank + 1);
    h = h * 31 + (uint64_t)t->layout;
    if (t->rank > 0 && t->dims)
        h = ts_hash64(t->dims, (size_t)t->rank * sizeof *t->dims, h);
    if (t->arg_count)
        h = ts_hash64(t->args, t->arg_count * sizeof *t->args, h);
    if (t->class_)
        h = ts_hash64(&t->class_, sizeof t->class_, h);
    if (t->name.length)
        h = ts_hash64(t->name.data, t->name.length, h);
    return h;
}

static bool same_type(const ir_type *a, const ir_type *b) {
    if (a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank ||
        a->layout != b->layout || a->arg_count != b->arg_count || a->class_ != b->class_ ||
        !ts_str_equal(a->name, b->name))
        return false;
    if (a->rank > 0 && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) != 0)
        return false;
    return a->arg_count == 0 || memcmp(a->args, b->args, a->arg_count * sizeof *a->args) == 0;
}

static void place_type(ir_type_table *table, const ir_type *t) {
    size_t at = hash_type(t) & (table->capacity - 1);
    while (table->slots[at])
        at = (at + 1) & (table->capacity - 1);
    table->slots[at] = t;
}

static bool is_mutable(const ir_type *t) {
    enum { NEVER, ALWAYS, PARTS };
    static const char rules[] = {
#define KIND(name, text, is_mutable, holds) is_mutable,
#include "ir/type_kinds.def"
    };
    bool is = rules[t->kind] == ALWAYS;
    for (size_t i = 0; i < t->arg_count && rules[t->kind] == PARTS; i++)
        is = is || t->args[i]->is_mutable;
    return is;
}

static const ir_type *intern(ir_module *m, const ir_type *wanted) {
    ir_type_table *table = m->types;
    size_t at = hash_type(wanted) & (table->capacity - 1);
    for (; table->slots[at]; at = (at + 1) & (table->capacity - 1))
        if (same_type(table->slots[at], wanted))
            return table->slots[at];
    int depth = 0;
    uint64_t weight = 1;
    for (size_t i = 0; i < wanted->arg_count; i++) {
        weight += wanted->args[i]->weight;
        if (wanted->args[i]->depth >= depth)
            depth = wanted->args[i]->depth + 1;
    }
    /* A tuple twice in a tuple, and so on: few types, but whoever walks them walks all. */
    if (depth > IR_TYPE_DEPTH || weight > IR_TYPE_WEIGHT)
        return table->simple[IR_ANY];
    ir_type *t = TS_NEW(m->arena, ir_type);
    *t = *wanted;
    t->depth = depth;
    t->weight = (uint32_t)weight;
    t->is_mutable = is_mutable(t);
    if (t->rank > 0) {
        rt_dim *dims = TS_NEW_ARRAY(m->arena, rt_dim, (size_t)t->rank);
        memcpy(dims, wanted->dims, (size_t)t->rank * sizeof *dims);
        t->dims = dims;
    }
    if (t->arg_count) {
        const ir_type **args = TS_NEW_ARRAY(m->arena, const ir_type *, t->arg_count);
        memcpy(args, wanted->args, t->arg_count * sizeof *args);
        t->args = args;
    }
    t->name = ts_arena_str(m->arena, t->name);
    if (2 * (table->count + 1) > table->capacity) {
        const ir_type **old = table->slots;
        size_t old_capacity = table->capacity;
        table->capacity *= 2;
        table->slots = TS_NEW_ARRAY(m->arena, const ir_type *, table->capacity);
        for (size_t i = 0; i < old_capacity; i++)
            if (old[i])
                place_type(table, old[i]);
    }
    place_type(table, t);
    table->count++;
    return t;
}

static ir_type blank(ir_kind kind) {
    return (ir_type){.kind = kind, .dtype = RT_DTYPE_UNKNOWN, .rank = -1};
}

void ir_type_table_init(ir_module *m) {
    ir_type_table *table = TS_NEW(m->arena, ir_type_table);
    m->types = table;
    table->capacity = 256;
    table->slots = TS_NEW_ARRAY(m->arena, const ir_type *, table->capacity);
    for (int kind = IR_NONE; kind <= IR_ANY; kind++) {
        ir_type t = blank((ir_kind)kind);
        table->simple[kind] = intern(m, &t);
    }
}

const ir_type *ir_type_simple(ir_module *m, ir_kind kind) { return m->types->simple[kind]; }

static const char *const meanings[RT_MEANING_COUNT] = {
    [RT_MEANING_DTYPE] = "torch.dtype",
    [RT_MEANING_LAYOUT] = "torch.layout",
    [RT_MEANING_MEMORY_FORMAT] = "torch.memory_format",
    [RT_MEANING_QSCHEME] = "torch.qscheme"};

const ir_type *ir_type_meant(ir_module *m, rt_meaning meaning) {
    if (meaning >= RT_MEANING_COUNT || !meanings[meaning])
        return m->types->simple[IR_INT];
    if (!m->types->meant[meaning]) {
        ir_type t = blank(IR_INT);
        t.name = ts_str_of(meanings[meaning]);
        m->types->meant[meaning] = intern(m, &t);
    }
    return m->types->meant[meaning];
}

rt_meaning ir_type_meaning(const ir_type *t) {
    for (int i = RT_MEANING_DTYPE; t->kind == IR_INT && t->name.length && i < RT_MEANING_COUNT; i++)
        if (ts_str_is(t->name, meanings[i]))
            return (rt_meaning)i;
    return RT_MEANING_NUMBER;
}

const ir_type *ir_type_tensor(ir_module *m, rt_dtype dtype, int rank, const rt_dim *dims,
                              ir_layout layout) {
    ir_type t = blank(IR_TENSOR);
    t.dtype = dtype;
    t.rank = rank;
    t.dims = rank > 0 ? dims : NULL;
    t.layout = layout;
    return intern(m, &t);
}

const ir_type *ir_type_any_tensor(ir_module *m) { return m->types->simple[IR_TENSOR]; }

static const ir_type *with_args(ir_module *m, ir_kind kind, const ir_type *const *args,
                                size_t count, const ir_class *class_) {
    ir_type t = blank(kind);
    t.args = args;
    t.arg_count = count;
    t.class_ = class_;
    return intern(m, &t);
}

const ir_type *ir_type_list(ir_module *m, const ir_type *element) {
    return with_args(m, IR_LIST, &element, 1, NULL);
}

const ir_type *ir_type_dict(ir_module *m, const ir_type *key, const ir_type *value) {
    const ir_type *args[2] = {key, value};
    return with_args(m, IR_DICT, args, 2, NULL);
}

const ir_type *ir_type_tuple(ir_module *m, const ir_type *const *items, size_t count,
                             const ir_class *named) {
    return with_args(m, IR_TUPLE, items, count, named);
}

const ir_type *ir_type_future(ir_module *m, const ir_type *t) {
    return with_args(m, IR_FUTURE, &t, 1, NULL);
}

const ir_type *ir_type_var(ir_module *m, ts_str name) {
    ir_type t = blank(IR_VAR);
    t.name = name;
    return intern(m, &t);
}

const ir_type *ir_type_optional(ir_module *m, const ir_type *t) {
    if (t->kind == IR_OPTIONAL || t->kind == IR_NONE || t->kind == IR_ANY)
        return t;
    if (t->kind == IR_UNION) {
        if (ir_type_admits_none(t))
            return t;
        const ir_type *both[2] = {t, m->types->simple[IR_NONE]};
        return ir_type_union(m, both, 2);
    }
    return with_args(m, IR_OPTIONAL, &t, 1, NULL);
}

typedef struct member_list {
    const ir_type **items;
    size_t count, capacity;
    bool has_none, has_any;
} member_list;

static void add_member(ir_module *m, member_list *list, const ir_type *t) {
    switch (t->kind) {
    case IR_NONE:
        list->has_none = true;
        return;
    case IR_ANY:
        list->has_any = true;
        return;
    case IR_OPTIONAL:
        list->has_none = true;
        add_member(m, list, t->args[0]);
        return;
    case IR_UNION:
        for (size_t i = 0; i < t->arg_count; i++)
            add_member(m, list, t->args[i]);
        return;
    default:
        break;
    }
    for (size_t i = 0; i < list->count; i++) {
        if (ir_type_is_subtype(t, list->items[i])) {
            if (ir_type_is_subtype(list->items[i], t))
                list->items[i] = ir_type_join(m, list->items[i], t);
            return;
        }
        if (ir_type_is_subtype(list->items[i], t)) {
            list->items[i] = t;
            return;
        }
    }
    TS_APPEND(m->arena, list->items, list->count, list->capacity, t);
}

const ir_type *ir_type_union(ir_module *m, const ir_type *const *items, size_t count) {
    member_list list = {0};
    for (size_t i = 0; i < count; i++)
        add_member(m, &list, items[i]);
    if (list.has_any)
        return m->types->simple[IR_ANY];
    if (list.count == 0)
        return m->types->simple[IR_NONE];
    if (list.count == 1)
        return list.has_none ? ir_type_optional(m, list.items[0]) : list.items[0];
    if (list.has_none)
        TS_APPEND(m->arena, list.items, list.count, list.capacity, m->types->simple[IR_NONE]);
    return with_args(m, IR_UNION, list.items, list.count, NULL);
}

const ir_type *ir_type_of_class(ir_module *m, const ir_class *class_) {
    if (class_->base.kind == RT_CLASS_NAMED_TUPLE) {
        const ir_type **items = TS_NEW_ARRAY(m->arena, const ir_type *, class_->field_count);
        for (size_t i = 0; i < class_->field_count; i++)
            items[i] = class_->fields[i].type;
        return ir_type_tuple(m, items, class_->field_count, class_);
    }
    return with_args(m, class_->base.kind == RT_CLASS_ENUM ? IR_ENUM : IR_CLASS, NULL, 0, class_);
}

/* ---- order ---- */

static bool tensor_refines(const ir_type *sub, const ir_type *super) {
    if (super->dtype != RT_DTYPE_UNKNOWN && sub->dtype != super->dtype)
        return false;
    if (super->layout != IR_LAYOUT_ANY && sub->layout != super->layout)
        return false;
    if (super->rank < 0)
        return true;
    if (sub->rank != super->rank)
        return false;
    for (int i = 0; i < super->rank; i++)
        if (super->dims[i] != RT_DIM_UNKNOWN && super->dims[i] != sub->dims[i])
            return false;
    return true;
}

static bool class_has_methods(const ir_class *sub, const ir_class *interface) {
    for (size_t i = 0; i < interface->method_count; i++) {
        bool found = false;
        for (size_t j = 0; j < sub->method_count && !found; j++)
            found = ts_str_equal(sub->methods[j].name, interface->methods[i].name);
        if (!found)
            return false;
    }
    return true;
}

static bool is_class_subtype(const ir_class *sub, const ir_class *super) {
    if (sub == super)
        return true;
    for (size_t i = 0; i < sub->base.base_count; i++)
        if (sub->base.bases[i] == &super->base)
            return true;
    return super->base.kind == RT_CLASS_INTERFACE && class_has_methods(sub, super);
}

static bool is_sub(const ir_type *sub, const ir_type *super, bool facts) {
    if (sub == super || super->kind == IR_ANY)
        return true;
    if (sub->kind == IR_UNION) {
        for (size_t i = 0; i < sub->arg_count; i++)
            if (!is_sub(sub->args[i], super, facts))
                return false;
        return true;
    }
    if (sub->kind == IR_OPTIONAL)
        return ir_type_admits_none(super) && is_sub(sub->args[0], super, facts);
    switch (super->kind) {
    case IR_OPTIONAL:
        return sub->kind == IR_NONE || is_sub(sub, super->args[0], facts);
    case IR_UNION:
        for (size_t i = 0; i < super->arg_count; i++)
            if (is_sub(sub, super->args[i], facts))
                return true;
        return false;
    case IR_NUMBER:
        return sub->kind == IR_INT || sub->kind == IR_FLOAT || sub->kind == IR_COMPLEX ||
               sub->kind == IR_BOOL;
    default:
        break;
    }
    if (sub->kind != super->kind)
        return false;
    switch (sub->kind) {
    case IR_TENSOR:
        return !facts || tensor_refines(sub, super);
    case IR_INT:
        return !facts || !super->name.length;
    case IR_LIST:
    case IR_DICT:
        /* Invariant in the language; the facts of tensors inside may still be forgotten. */
        if (!ir_type_same_shape_of(sub, super))
            return false;
        for (size_t i = 0; facts && i < sub->arg_count; i++)
            if (!is_sub(sub->args[i], super->args[i], true))
                return false;
        return true;
    case IR_TUPLE:
        if (sub->arg_count != super->arg_count || (super->class_ && super->class_ != sub->class_))
            return false;
        for (size_t i = 0; i < sub->arg_count; i++)
            if (!is_sub(sub->args[i], super->args[i], facts))
                return false;
        return true;
    case IR_FUTURE:
        return is_sub(sub->args[0], super->args[0], facts);
    case IR_CLASS:
        return is_class_subtype(sub->class_, super->class_);
    case IR_VAR:
        return ts_str_equal(sub->name, super->name);
    default:
        return sub->class_ == super->class_;
    }
}

bool ir_type_is_subtype(const ir_type *sub, const ir_type *super) {
    return is_sub(sub, super, false);
}

bool ir_type_is_refinement(const ir_type *sub, const ir_type *super) {
    return is_sub(sub, super, true);
}

bool ir_type_same_shape_of(const ir_type *a, const ir_type *b) {
    if (a == b)
        return true;
    if (a->kind != b->kind || a->arg_count != b->arg_count || a->class_ != b->class_ ||
        (a->kind != IR_INT && !ts_str_equal(a->name, b->name)))
        return false;
    for (size_t i = 0; i < a->arg_count; i++)
        if (!ir_type_same_shape_of(a->args[i], b->args[i]))
            return false;
    return true;
}

const ir_type *ir_type_forget(ir_module *m, const ir_type *t) {
    if (t->kind == IR_TENSOR)
        return ir_type_any_tensor(m);
    if (!t->arg_count)
        return t;
    const ir_type **args = TS_NEW_ARRAY(m->arena, const ir_type *, t->arg_count);
    for (size_t i = 0; i < t->arg_count; i++)
        args[i] = ir_type_forget(m, t->args[i]);
    return with_args(m, t->kind, args, t->arg_count, t->class_);
}

static const ir_type *join_tensors(ir_module *m, const ir_type *a, const ir_type *b) {
    rt_dtype dtype = a->dtype == b->dtype ? a->dtype : RT_DTYPE_UNKNOWN;
    if (a->rank != b->rank || a->rank < 0)
        return ir_type_tensor(m, dtype, -1, NULL, IR_LAYOUT_ANY);
    rt_dim dims[RT_MAX_RANK];
    for (int i = 0; i < a->rank && i < RT_MAX_RANK; i++)
        dims[i] = a->dims[i] == b->dims[i] ? a->dims[i] : RT_DIM_UNKNOWN;
    return ir_type_tensor(m, dtype, a->rank, dims,
                          a->layout == b->layout ? a->layout : IR_LAYOUT_ANY);
}

const ir_type *ir_type_join(ir_module *m, const ir_type *a, const ir_type *b) {
    if (a == b)
        return a;
    if (a->kind == IR_TENSOR && b->kind == IR_TENSOR)
        return join_tensors(m, a, b);
    if (a->kind == IR_INT && b->kind == IR_INT)
        return m->types->simple[IR_INT];
    if (ir_type_is_refinement(a, b))
        return b;
    if (ir_type_is_refinement(b, a))
        return a;
    if (a->kind == IR_NONE || b->kind == IR_NONE || a->kind == IR_OPTIONAL ||
        b->kind == IR_OPTIONAL) {
        const ir_type *x = ir_type_without_none(m, a), *y = ir_type_without_none(m, b);
        if (x->kind == IR_NONE)
            return ir_type_optional(m, y);
        if (y->kind == IR_NONE)
            return ir_type_optional(m, x);
        return ir_type_optional(m, ir_type_join(m, x, y));
    }
    bool same = ir_type_same_shape_of(a, b);
    bool tuples = a->kind == IR_TUPLE && b->kind == IR_TUPLE && a->arg_count == b->arg_count;
    if ((same && a->arg_count) || tuples) {
        const ir_type **args = TS_NEW_ARRAY(m->arena, const ir_type *, a->arg_count);
        for (size_t i = 0; i < a->arg_count; i++)
            args[i] = ir_type_join(m, a->args[i], b->args[i]);
        return with_args(m, a->kind, args, a->arg_count, a->class_ == b->class_ ? a->class_ : NULL);
    }
    const ir_type *both[2] = {a, b};
    return ir_type_union(m, both, 2);
}

const ir_type *ir_type_without_none(ir_module *m, const ir_type *t) {
    if (t->kind == IR_OPTIONAL)
        return t->args[0];
    if (t->kind != IR_UNION || !ir_type_admits_none(t))
        return t;
    const ir_type **args = TS_NEW_ARRAY(m->arena, const ir_type *, t->arg_count);
    size_t count = 0;
    for (size_t i = 0; i < t->arg_count; i++)
        if (t->args[i]->kind != IR_NONE)
            args[count++] = t->args[i];
    return ir_type_union(m, args, count);
}

bool ir_type_admits_none(const ir_type *t) {
    if (t->kind == IR_UNION)
        for (size_t i = 0; i < t->arg_count; i++)
            if (t->args[i]->kind == IR_NONE)
                return true;
    return t->kind == IR_NONE || t->kind == IR_OPTIONAL || t->kind == IR_ANY;
}

bool ir_type_is_scalar(const ir_type *t) {
    return t->kind == IR_NONE || t->kind == IR_BOOL || t->kind == IR_INT || t->kind == IR_FLOAT;
}

/* ---- variables of schemas ---- */

bool ir_type_match(ir_module *m, const ir_type *pattern, const ir_type *actual,
                   ir_type_bindings *bindings) {
    switch (pattern->kind) {
    case IR_VAR:
        for (size_t i = 0; i < bindings->count; i++)
            if (ts_str_equal(bindings->names[i], pattern->name)) {
                if (ir_type_is_subtype(actual, bindings->types[i]))
                    return true;
                if (!ir_type_is_subtype(bindings->types[i], actual))
                    return false;
                bindings->types[i] = actual;
                return true;
            }
        if (bindings->count == sizeof bindings->names / sizeof bindings->names[0])
            return false;
        bindings->names[bindings->count] = pattern->name;
        bindings->types[bindings->count++] = actual;
        return true;
    case IR_OPTIONAL:
        if (actual->kind == IR_NONE)
            return true;
        return ir_type_match(m, pattern->args[0], ir_type_without_none(m, actual), bindings);
    case IR_LIST:
    case IR_DICT:
    case IR_FUTURE:
        if (actual->kind != pattern->kind)
            return false;
        /* List[int] is no List[Optional[int]]; but `Tensor?[]` takes List[Tensor] (index). */
        for (size_t i = 0; i < pattern->arg_count; i++) {
            const ir_type *inner = pattern->args[i];
            if (!ir_type_match(m, inner, actual->args[i], bindings))
                return false;
        }
        return true;
    case IR_TUPLE:
        if (actual->kind != IR_TUPLE || actual->arg_count != pattern->arg_count)
            return false;
        for (size_t i = 0; i < pattern->arg_count; i++)
            if (!ir_type_match(m, pattern->args[i], actual->args[i], bindings))
                return false;
        return true;
    default:
        return ir_type_is_subtype(actual, pattern);
    }
}

const ir_type *ir_type_substitute(ir_module *m, const ir_type *pattern,
                                  const ir_type_bindings *bindings) {
    if (pattern->kind == IR_VAR) {
        for (size_t i = 0; i < bindings->count; i++)
            if (ts_str_equal(bindings->names[i], pattern->name))
                return bindings->types[i];
        return m->types->simple[IR_ANY];
    }
    if (!pattern->arg_count)
        return pattern;
    const ir_type **args = TS_NEW_ARRAY(m->arena, const ir_type *, pattern->arg_count);
    for (size_t i = 0; i < pattern->arg_count; i++)
        args[i] = ir_type_substitute(m, pattern->args[i], bindings);
    if (pattern->kind == IR_OPTIONAL)
        return ir_type_optional(m, args[0]);
    return with_args(m, pattern->kind, args, pattern->arg_count, pattern->class_);
}

/* ---- of values ---- */

static const ir_type *type_of_value(ir_module *m, rt_value v, int depth) {
    if (depth > IR_TYPE_DEPTH)
        return m->types->simple[IR_ANY];
    const ir_type *element = NULL, *key = NULL;
    switch ((rt_tag)v.tag) {
    case RT_TAG_NONE:
        return m->types->simple[IR_NONE];
    case RT_TAG_BOOL:
        return m->types->simple[IR_BOOL];
    case RT_TAG_INT:
        return ir_type_meant(m, (rt_meaning)v.aux);
    case RT_TAG_FLOAT:
        return m->types->simple[IR_FLOAT];
    case RT_TAG_DEVICE:
        return m->types->simple[IR_DEVICE];
    case RT_TAG_COMPLEX:
        return m->types->simple[IR_COMPLEX];
    case RT_TAG_STR:
        return m->types->simple[IR_STR];
    case RT_TAG_TENSOR:
        return ir_type_tensor(m, (rt_dtype)v.as.tensor->dtype, v.as.tensor->rank,
                              v.as.tensor->sizes, IR_LAYOUT_ANY);
    case RT_TAG_LIST:
        for (size_t i = 0; i < v.as.list->count; i++) {
            const ir_type *t = type_of_value(m, v.as.list->items[i], depth + 1);
            element = element ? ir_type_join(m, element, t) : t;
        }
        return ir_type_list(m, element ? element : ir_type_any_tensor(m));
    case RT_TAG_TUPLE: {
        rt_tuple *tuple = v.as.tuple;
        const ir_type **items = TS_NEW_ARRAY(m->arena, const ir_type *, tuple->count);
        for (size_t i = 0; i < tuple->count; i++)
            items[i] = type_of_value(m, tuple->items[i], depth + 1);
        return ir_type_tuple(m, items, tuple->count, tuple->class_ ? tuple->class_->info : NULL);
    }
    case RT_TAG_DICT: {
        const rt_dict_entry *entry;
        for (size_t at = 0; (entry = rt_dict_next(v.as.dict, &at));) {
            const ir_type *k = type_of_value(m, entry->key, depth + 1);
            const ir_type *t = type_of_value(m, entry->value, depth + 1);
            key = key ? ir_type_join(m, key, k) : k;
            element = element ? ir_type_join(m, element, t) : t;
        }
        return ir_type_dict(m, key ? key : m->types->simple[IR_STR],
                            element ? element : ir_type_any_tensor(m));
    }
    case RT_TAG_OBJECT: {
        const ir_class *c = v.as.object->class_->info;
        return c ? ir_type_of_class(m, c) : m->types->simple[IR_ANY];
    }
    case RT_TAG_ENUM: {
        const ir_class *c = v.as.enumeration->class_->info;
        return c ? ir_type_of_class(m, c) : m->types->simple[IR_ANY];
    }
    case RT_TAG_GENERATOR:
        return m->types->simple[IR_GENERATOR];
    case RT_TAG_CAPSULE:
        return m->types->simple[IR_CAPSULE];
    case RT_TAG_FUNCTION:
    case RT_TAG_UNINITIALIZED:
        break;
    }
    return m->types->simple[IR_ANY];
}

const ir_type *ir_type_of_value(ir_module *m, rt_value v) { return type_of_value(m, v, 0); }

/* runtime/program.c - the PROGRAM section into tables. Every index is checked here, so that the
 * rest of the runtime follows them without asking. */
#include "runtime/runtime_internal.h"

/* Small static programs leave the lifting out with the quantized kernels. */
TS_WEAK rt_lift rt_lift_of(ts_str operator_name, bool *out_in_place);

typedef struct decoder {
    tsm_reader r;
    ts_arena *arena;
    rt_program *p;
    const char *bad; /* what is wrong, or NULL */
    uint64_t weight_bytes;
} decoder;

static void fail(decoder *d, const char *what) {
    if (!d->bad)
        d->bad = what;
}

static uint32_t read_index(decoder *d, size_t limit, const char *what) {
    uint32_t i = tsm_read_u32(&d->r);
    if (i < limit)
        return i;
    fail(d, what);
    return 0;
}

/* An index plus one; 0 is none. */
static uint32_t read_optional(decoder *d, size_t limit, const char *what) {
    uint32_t i = tsm_read_u32(&d->r);
    if (i <= limit)
        return i;
    fail(d, what);
    return 0;
}

static ts_str *read_strings(decoder *d, size_t *out_count) {
    uint32_t count = tsm_read_count(&d->r, 5);
    ts_str *items = TS_NEW_ARRAY(d->arena, ts_str, (size_t)count + 1);
    for (uint32_t i = 0; i < count; i++)
        items[i] = tsm_read_str(&d->r);
    *out_count = count;
    return items;
}

static void read_meta(decoder *d) {
    uint32_t count = tsm_read_count(&d->r, 10);
    d->p->meta_keys = TS_NEW_ARRAY(d->arena, ts_str, (size_t)count + 1);
    d->p->meta_values = TS_NEW_ARRAY(d->arena, ts_str, (size_t)count + 1);
    for (uint32_t i = 0; i < count; i++) {
        d->p->meta_keys[i] = tsm_read_str(&d->r);
        d->p->meta_values[i] = tsm_read_str(&d->r);
    }
    d->p->meta_count = count;
}

static void read_places(decoder *d) {
    uint32_t count = tsm_read_count(&d->r, 17);
    d->p->places = TS_NEW_ARRAY(d->arena, ts_place, (size_t)count + 1);
    for (uint32_t i = 0; i < count; i++) {
        ts_place *place = &d->p->places[i];
        place->file = tsm_read_str(&d->r);
        place->line = (int)tsm_read_u32(&d->r);
        place->column = (int)tsm_read_u32(&d->r);
        place->length = (int)tsm_read_u32(&d->r);
    }
    d->p->place_count = count;
}

static void read_classes(decoder *d) {
    uint32_t count = tsm_read_count(&d->r, 22);
    d->p->classes = TS_NEW_ARRAY(d->arena, rt_model_class, (size_t)count + 1);
    d->p->class_count = count;
    for (uint32_t i = 0; i < count; i++) {
        rt_model_class *c = &d->p->classes[i];
        c->number = i;
        c->base.info = c;
        c->base.name = tsm_read_str(&d->r);
        c->base.bare_name = tsm_read_str(&d->r);
        c->base.kind = (rt_class_kind)read_index(d, RT_CLASS_EXCEPTION + 1, "class kind");
        uint32_t bases = tsm_read_count(&d->r, 4);
        const rt_class **list = TS_NEW_ARRAY(d->arena, const rt_class *, (size_t)bases + 1);
        for (uint32_t k = 0; k < bases; k++)
            list[k] = &d->p->classes[read_index(d, count, "base class")].base;
        c->base.bases = list;
        c->base.base_count = bases;
        c->base.fields = read_strings(d, &c->base.field_count);
    }
}

static const rt_class *read_class(decoder *d) {
    uint32_t i = read_optional(d, d->p->class_count, "class");
    return i ? &d->p->classes[i - 1].base : NULL;
}

static void read_types(decoder *d) {
    uint32_t count = tsm_read_count(&d->r, 17);
    d->p->types = TS_NEW_ARRAY(d->arena, rt_model_type, (size_t)count + 1);
    d->p->type_count = count;
    for (uint32_t i = 0; i < count; i++) {
        rt_model_type *t = &d->p->types[i];
        uint8_t kind = tsm_read_u8(&d->r);
        if (kind >= TSM_TYPE_COUNT)
            fail(d, "type kind");
        t->kind = (tsm_type_kind)kind;
        t->dtype = (rt_dtype)(int8_t)tsm_read_u8(&d->r);
        t->rank = (int8_t)tsm_read_u8(&d->r);
        t->layout = tsm_read_u8(&d->r);
        if (t->dtype < RT_DTYPE_UNKNOWN || t->dtype >= RT_DTYPE_COUNT || t->rank < -1 ||
            t->rank > RT_MAX_RANK) {
            fail(d, "tensor type");
            t->rank = -1;
        }
        t->class_ = read_class(d);
        t->arg_count = tsm_read_count(&d->r, 4);
        t->args = TS_NEW_ARRAY(d->arena, uint32_t, (size_t)t->arg_count + 1);
        for (uint32_t k = 0; k < t->arg_count; k++)
            t->args[k] = read_index(d, count, "type argument");
        t->dims = TS_NEW_ARRAY(d->arena, int64_t, (size_t)(t->rank < 0 ? 0 : t->rank) + 1);
        for (int k = 0; k < t->rank; k++)
            t->dims[k] = tsm_read_i64(&d->r);
        t->text = tsm_read_str(&d->r);
        if (d->r.failed)
            return;
    }
    d->p->symbols = read_strings(d, &d->p->symbol_count);
    for (uint32_t i = 0; i < count; i++)
        for (int k = 0; k < d->p->types[i].rank; k++)
            if (d->p->types[i].dims[k] <= TSM_DIM_SYMBOL &&
                (uint64_t)(TSM_DIM_SYMBOL - d->p->types[i].dims[k]) >= d->p->symbol_count)
                fail(d, "size symbol");
}

static void read_storages(decoder *d) {
    uint32_t count = tsm_read_count(&d->r, 17);
    d->p->storages = TS_NEW_ARRAY(d->arena, rt_storage_row, (size_t)count + 1);
    d->p->storage_count = count;
    for (uint32_t i = 0; i < count; i++) {
        rt_storage_row *s = &d->p->storages[i];
        s->offset = tsm_read_u64(&d->r);
        s->bytes = tsm_read_u64(&d->r);
        s->is_mutable = tsm_read_u8(&d->r) != 0;
        if (s->offset % TSM_WEIGHT_ALIGN || s->offset > d->weight_bytes ||
            s->bytes > d->weight_bytes - s->offset)
            fail(d, "weight outside its section");
    }
}

static rt_value read_ref(decoder *d, size_t node_count) {
    rt_value v = {.tag = tsm_read_u8(&d->r)};
    v.aux = tsm_read_u32(&d->r);
    v.as.i = tsm_read_i64(&d->r);
    if (rt_is_counted(v) && (v.as.i < 0 || (uint64_t)v.as.i >= node_count)) {
        fail(d, "constant");
        v = rt_none();
    }
    return v;
}

static void read_refs(decoder *d, size_t node_count, size_t count, rt_value **out) {
    *out = TS_NEW_ARRAY(d->arena, rt_value, count + 1);
    for (size_t i = 0; i < count; i++)
        (*out)[i] = read_ref(d, node_count);
}

static void read_tensor(decoder *d, rt_node *n) {
    n->dtype = (rt_dtype)(int8_t)tsm_read_u8(&d->r);
    n->requires_grad = tsm_read_u8(&d->r) != 0;
    n->is_conjugated = tsm_read_u8(&d->r) != 0;
    n->storage = read_optional(d, d->p->storage_count, "storage");
    n->offset = tsm_read_i64(&d->r);
    n->rank = tsm_read_u8(&d->r);
    if (n->dtype < 0 || n->dtype >= RT_DTYPE_COUNT || n->rank > RT_MAX_RANK) {
        fail(d, "constant tensor");
        n->rank = 0;
    }
    n->sizes = TS_NEW_ARRAY(d->arena, int64_t, (size_t)n->rank + 1);
    n->strides = TS_NEW_ARRAY(d->arena, int64_t, (size_t)n->rank + 1);
    for (int i = 0; i < n->rank; i++)
        n->sizes[i] = tsm_read_i64(&d->r);
    for (int i = 0; i < n->rank; i++)
        n->strides[i] = tsm_read_i64(&d->r);
    n->re = tsm_read_f64(&d->r);
    n->zero_point = tsm_read_i64(&d->r);
}

/* Of a tensor quantized per channel: scales, zero points, axis. */
static void read_channels(decoder *d, rt_node *n, size_t count) {
    n->ref_count = tsm_read_count(&d->r, 13);
    read_refs(d, count, n->ref_count, &n->refs);
    bool fits = n->ref_count == 0 || (n->ref_count == 2 && n->refs[0].tag == RT_TAG_TENSOR &&
                                      n->refs[1].tag == RT_TAG_TENSOR);
    n->axis = n->ref_count ? tsm_read_i64(&d->r) : 0;
    if (!fits || (n->ref_count && (n->axis < 0 || n->axis >= n->rank)))
        fail(d, "channels of a quantized tensor");
}

static void read_node(decoder *d, rt_node *n, size_t count) {
    n->tag = tsm_read_u8(&d->r);
    switch (n->tag) {
    case RT_TAG_STR: n->text = tsm_read_str(&d->r); return;
    case RT_TAG_COMPLEX:
        n->re = tsm_read_f64(&d->r);
        n->im = tsm_read_f64(&d->r);
        return;
    case RT_TAG_TENSOR:
        read_tensor(d, n);
        read_channels(d, n, count);
        return;
    case RT_TAG_LIST:
    case RT_TAG_CAPSULE: break;
    case RT_TAG_TUPLE: n->class_ = read_class(d); break;
    case RT_TAG_DICT:
        n->ref_count = (size_t)tsm_read_count(&d->r, 26) * 2;
        read_refs(d, count, n->ref_count, &n->refs);
        return;
    case RT_TAG_OBJECT:
        n->class_ = read_class(d);
        if (!n->class_)
            fail(d, "object without a class");
        break;
    case RT_TAG_ENUM:
        n->class_ = read_class(d);
        n->text = tsm_read_str(&d->r);
        n->ref_count = 1;
        read_refs(d, count, 1, &n->refs);
        return;
    default: fail(d, "kind of a constant"); return;
    }
    n->ref_count = tsm_read_count(&d->r, 13);
    read_refs(d, count, n->ref_count, &n->refs);
    if (n->tag == RT_TAG_OBJECT && n->class_ && n->ref_count != n->class_->field_count)
        fail(d, "fields of an object");
}

/* Rows to look at next: each stands there once. */
typedef struct row_stack {
    size_t *rows, count;
    uint8_t *was_added;
} row_stack;

static void add_row(row_stack *s, size_t row) {
    if (!s->was_added[row])
        s->rows[s->count++] = row;
    s->was_added[row] = 1;
}

/* The search for circles (cycles.c) goes from lists, tuples, dicts and objects to such; what an enum
 * or packed parameters hold may not hold these in turn, or it would never be freed. Among the rows that
 * they reach, taking away what nobody there holds, again and again, must leave nothing. */
static void check_circles(decoder *d, size_t count) {
    const rt_node *nodes = d->p->nodes;
    uint32_t *holders = TS_NEW_ARRAY(d->arena, uint32_t, count + 1);
    row_stack reached = {TS_NEW_ARRAY(d->arena, size_t, count + 1), 0,
                         TS_NEW_ARRAY(d->arena, uint8_t, count + 1)};
    row_stack unheld = {TS_NEW_ARRAY(d->arena, size_t, count + 1), 0,
                        TS_NEW_ARRAY(d->arena, uint8_t, count + 1)};
    size_t reached_count = 0, taken = 0;
    for (size_t i = 0; i < count; i++)
        if (nodes[i].tag == RT_TAG_CAPSULE || nodes[i].tag == RT_TAG_ENUM)
            add_row(&reached, i);
    for (; reached.count; reached_count++) {
        const rt_node *n = &nodes[reached.rows[--reached.count]];
        for (size_t k = 0; k < n->ref_count; k++)
            if (rt_is_counted(n->refs[k])) {
                add_row(&reached, (size_t)n->refs[k].as.i);
                holders[n->refs[k].as.i]++;
            }
    }
    for (size_t i = 0; i < count; i++)
        if (reached.was_added[i] && !holders[i])
            add_row(&unheld, i);
    for (; unheld.count; taken++) {
        const rt_node *n = &nodes[unheld.rows[--unheld.count]];
        for (size_t k = 0; k < n->ref_count; k++)
            if (rt_is_counted(n->refs[k]) && --holders[n->refs[k].as.i] == 0)
                add_row(&unheld, (size_t)n->refs[k].as.i);
    }
    if (taken < reached_count)
        fail(d, "constant that holds itself");
}

static void read_constants(decoder *d) {
    uint32_t count = tsm_read_count(&d->r, 2);
    d->p->nodes = TS_NEW_ARRAY(d->arena, rt_node, (size_t)count + 1);
    d->p->node_count = count;
    for (uint32_t i = 0; i < count && !d->r.failed && !d->bad; i++)
        read_node(d, &d->p->nodes[i], count);
    if (!d->r.failed && !d->bad)
        check_circles(d, count);
    d->p->constant_count = tsm_read_count(&d->r, 13);
    read_refs(d, count, d->p->constant_count, &d->p->constants);
}

/* Which operators take quantized tensors by way of floats. */
static void read_lifts(decoder *d) {
    if (!rt_lift_of)
        return;
    d->p->operator_lifts = TS_NEW_ARRAY(d->arena, rt_operator_lift, d->p->operator_count + 1);
    for (size_t i = 0; i < d->p->operator_count; i++)
        d->p->operator_lifts[i].lift =
            rt_lift_of(d->p->operators[i], &d->p->operator_lifts[i].in_place);
}

static void read_code_tables(decoder *d) {
    d->p->operators = read_strings(d, &d->p->operator_count);
    d->p->operator_args = TS_NEW_ARRAY(d->arena, uint32_t, d->p->operator_count + 1);
    for (size_t i = 0; i < d->p->operator_count; i++) {
        d->p->operator_args[i] = tsm_read_u32(&d->r);
        if (d->p->operator_args[i] > 64)
            fail(d, "arguments of an operator");
    }
    read_lifts(d);
    d->p->functions = read_strings(d, &d->p->function_count);
    uint32_t count = tsm_read_count(&d->r, 12);
    d->p->methods = TS_NEW_ARRAY(d->arena, rt_method, (size_t)count + 1);
    d->p->method_count = count;
    for (uint32_t i = 0; i < count; i++) {
        rt_method *m = &d->p->methods[i];
        m->class_ = read_index(d, d->p->class_count, "method's class");
        m->name = read_index(d, d->p->string_count, "method's name");
        m->function = read_index(d, d->p->function_count, "method");
    }
    count = tsm_read_count(&d->r, 25);
    d->p->kernels = TS_NEW_ARRAY(d->arena, rt_kernel_row, (size_t)count + 1);
    d->p->kernel_count = count;
    for (uint32_t i = 0; i < count; i++) {
        rt_kernel_row *k = &d->p->kernels[i];
        k->name = tsm_read_str(&d->r);
        k->place = read_index(d, d->p->place_count, "kernel's place");
        k->flops = tsm_read_f64(&d->r);
        k->bytes = tsm_read_f64(&d->r);
    }
    d->p->header_count = tsm_read_u32(&d->r);
    d->p->arena_bytes = tsm_read_i64(&d->r);
    if (d->p->header_count > 1u << 20 || d->p->arena_bytes < 0 ||
        d->p->arena_bytes > (int64_t)1 << 42)
        fail(d, "planned memory");
}

static int read_need_dim(decoder *d) {
    int32_t dim = (int32_t)tsm_read_u32(&d->r);
    if (dim < -RT_MAX_RANK || dim >= RT_MAX_RANK)
        fail(d, "dim of a need");
    return dim;
}

static void read_needs(decoder *d, rt_entry *e) {
    e->need_count = tsm_read_count(&d->r, 25);
    e->needs = TS_NEW_ARRAY(d->arena, rt_need, e->need_count + 1);
    for (size_t i = 0; i < e->need_count; i++) {
        rt_need *need = &e->needs[i];
        uint8_t kind = tsm_read_u8(&d->r);
        if (kind >= TSM_NEED_COUNT)
            fail(d, "need");
        need->kind = (tsm_need_kind)kind;
        need->input = read_index(d, (uint32_t)e->port_count, "input of a need");
        need->other = read_index(d, (uint32_t)e->port_count, "input of a need");
        need->dim = read_need_dim(d);
        need->other_dim = read_need_dim(d);
        need->value = tsm_read_i64(&d->r);
        if (need->kind == TSM_NEED_MULTIPLE && need->value < 1)
            fail(d, "divisor of a need");
    }
    e->need_text = tsm_read_str(&d->r);
    e->own_text = tsm_read_str(&d->r);
    e->fast_text = tsm_read_str(&d->r);
}

static void read_entry(decoder *d, rt_entry *e) {
    e->name = tsm_read_str(&d->r);
    e->function = read_index(d, d->p->function_count, "entry's function");
    e->self_constant = read_optional(d, d->p->constant_count, "entry's object");
    e->port_count = tsm_read_count(&d->r, 13);
    e->ports = TS_NEW_ARRAY(d->arena, rt_port, e->port_count + 1);
    for (size_t i = 0; i < e->port_count; i++) {
        e->ports[i].name = tsm_read_str(&d->r);
        e->ports[i].type = read_index(d, d->p->type_count, "input's type");
        e->ports[i].default_constant =
            read_optional(d, d->p->constant_count, "default of an input");
    }
    e->result_type = read_index(d, d->p->type_count, "result's type");
    e->kernel_count = tsm_read_u32(&d->r);
    e->compiled_count = tsm_read_u32(&d->r);
    e->dynamic_count = tsm_read_u32(&d->r);
    e->dynamic_text = tsm_read_str(&d->r);
    read_needs(d, e);
}

ts_status rt_program_read(ts_arena *arena, const void *data, size_t length, uint64_t weight_bytes,
                          rt_program *out) {
    decoder d = {.r = {.data = data, .length = length}, .arena = arena, .p = out,
                 .weight_bytes = weight_bytes};
    read_meta(&d);
    out->strings = read_strings(&d, &out->string_count);
    read_places(&d);
    read_classes(&d);
    read_types(&d);
    read_storages(&d);
    if (!d.bad && !d.r.failed)
        read_constants(&d);
    if (!d.bad && !d.r.failed)
        read_code_tables(&d);
    uint32_t count = d.bad ? 0 : tsm_read_count(&d.r, 49);
    out->entries = TS_NEW_ARRAY(arena, rt_entry, (size_t)count + 1);
    out->entry_count = count;
    for (uint32_t i = 0; i < count && !d.bad && !d.r.failed; i++)
        read_entry(&d, &out->entries[i]);
    if (d.r.failed)
        return ts_error_make(TS_ERR_INVALID_FILE, "section program: cut short at byte %zu",
                             d.r.at);
    if (d.bad)
        return ts_error_make(TS_ERR_INVALID_FILE, "section program: %s is out of range (byte %zu)",
                             d.bad, d.r.at);
    if (!count)
        return ts_error_make(TS_ERR_INVALID_FILE, "section program: no entry point");
    return NULL;
}

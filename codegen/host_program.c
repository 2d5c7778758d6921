/* codegen/host_program.c - interning of what the host program refers to. */
#include "codegen/host_program.h"

#include "runtime/base/hash.h"
#include "runtime/values/packed.h"

/* ---- a map from 64-bit keys (pointers, hashes) to indexes ---- */

struct cg_index_map {
    uint64_t *keys;
    uint32_t *values; /* index + 1; 0 is empty */
    size_t count, capacity;
};

static cg_index_map *map_make(ts_arena *arena) {
    cg_index_map *m = TS_NEW(arena, cg_index_map);
    m->capacity = 64;
    m->keys = TS_NEW_ARRAY(arena, uint64_t, m->capacity);
    m->values = TS_NEW_ARRAY(arena, uint32_t, m->capacity);
    return m;
}

static size_t map_start(const cg_index_map *m, uint64_t key) {
    return (size_t)(key * 0x9e3779b97f4a7c15u >> 20) & (m->capacity - 1);
}

static void map_put(ts_arena *arena, cg_index_map *m, uint64_t key, uint32_t index) {
    if (m->count * 2 >= m->capacity) {
        cg_index_map old = *m;
        m->capacity *= 2;
        m->keys = TS_NEW_ARRAY(arena, uint64_t, m->capacity);
        m->values = TS_NEW_ARRAY(arena, uint32_t, m->capacity);
        m->count = 0;
        for (size_t i = 0; i < old.capacity; i++)
            if (old.values[i])
                map_put(arena, m, old.keys[i], old.values[i] - 1);
    }
    size_t at = map_start(m, key);
    while (m->values[at])
        at = (at + 1) & (m->capacity - 1);
    m->keys[at] = key;
    m->values[at] = index + 1;
    m->count++;
}

/* Iterates over the indexes stored under a key: *state starts at 0. */
static bool map_next(const cg_index_map *m, uint64_t key, size_t *state, uint32_t *out) {
    for (;;) {
        size_t at = (map_start(m, key) + *state) & (m->capacity - 1);
        if (!m->values[at])
            return false;
        ++*state;
        if (m->keys[at] == key) {
            *out = m->values[at] - 1;
            return true;
        }
    }
}

static bool map_find_pointer(const cg_index_map *m, const void *key, uint32_t *out) {
    size_t state = 0;
    return map_next(m, (uint64_t)(uintptr_t)key, &state, out);
}

/* ---- tables ---- */

cg_program *cg_program_make(ts_arena *arena, ir_module *ir) {
    cg_program *p = TS_NEW(arena, cg_program);
    p->arena = arena;
    p->ir = ir;
    p->string_map = map_make(arena);
    p->node_map = map_make(arena);
    p->type_map = map_make(arena);
    p->class_map = map_make(arena);
    p->storage_map = map_make(arena);
    p->place_map = map_make(arena);
    p->constant_map = map_make(arena);
    p->part_map = map_make(arena);
    p->function_map = map_make(arena);
    cg_program_place(p, (ts_place){0});
    return p;
}

uint32_t cg_program_string(cg_program *p, ts_str s) {
    uint64_t key = ts_hash64(s.data, s.length, 1);
    size_t state = 0;
    uint32_t i;
    while (map_next(p->string_map, key, &state, &i))
        if (ts_str_equal(p->strings[i], s))
            return i;
    i = (uint32_t)p->string_count;
    TS_APPEND(p->arena, p->strings, p->string_count, p->string_capacity, s);
    map_put(p->arena, p->string_map, key, i);
    return i;
}

uint32_t cg_program_place(cg_program *p, ts_place place) {
    int numbers[3] = {place.line, place.column, place.length};
    uint64_t key = ts_hash64(place.file.data, place.file.length, 2);
    key = ts_hash64(numbers, sizeof numbers, key);
    size_t state = 0;
    uint32_t i;
    while (map_next(p->place_map, key, &state, &i)) {
        const ts_place *q = &p->places[i];
        if (q->line == place.line && q->column == place.column && q->length == place.length &&
            ts_str_equal(q->file, place.file))
            return i;
    }
    i = (uint32_t)p->place_count;
    TS_APPEND(p->arena, p->places, p->place_count, p->place_capacity, place);
    map_put(p->arena, p->place_map, key, i);
    return i;
}

uint32_t cg_program_class(cg_program *p, const ir_class *class_) {
    uint32_t i;
    if (map_find_pointer(p->class_map, class_, &i))
        return i;
    i = (uint32_t)p->class_count;
    TS_APPEND(p->arena, p->classes, p->class_count, p->class_capacity, class_);
    map_put(p->arena, p->class_map, (uint64_t)(uintptr_t)class_, i);
    for (size_t k = 0; k < class_->base.base_count; k++)
        if (class_->base.bases[k]->info)
            cg_program_class(p, class_->base.bases[k]->info);
    return i;
}

uint32_t cg_program_type(cg_program *p, const ir_type *type) {
    uint32_t i;
    if (map_find_pointer(p->type_map, type, &i))
        return i;
    i = (uint32_t)p->type_count;
    TS_APPEND(p->arena, p->types, p->type_count, p->type_capacity, type);
    map_put(p->arena, p->type_map, (uint64_t)(uintptr_t)type, i);
    if (type->class_)
        cg_program_class(p, type->class_);
    for (size_t k = 0; k < type->arg_count; k++)
        cg_program_type(p, type->args[k]);
    return i;
}

uint32_t cg_program_operator(cg_program *p, rt_op op) {
    if (!p->operator_index[op]) {
        TS_APPEND(p->arena, p->operators, p->operator_count, p->operator_capacity, op);
        p->operator_index[op] = (int32_t)p->operator_count;
    }
    return (uint32_t)p->operator_index[op] - 1;
}

uint64_t cg_program_weight(cg_program *p, const void *data, size_t bytes) {
    uint64_t key = ts_hash64(data, bytes, 3);
    size_t state = 0;
    uint32_t i;
    while (map_next(p->part_map, key, &state, &i)) {
        const cg_weight_part *part = &p->parts[i];
        if (part->bytes == bytes && (bytes == 0 || memcmp(part->data, data, bytes) == 0)) {
            cg_spill_forget(p->spill, data);
            cg_spill_forget(p->spill, part->data);
            return part->offset;
        }
    }
    cg_spill_forget(p->spill, data);
    cg_weight_part part = {data, bytes, p->weight_bytes};
    i = (uint32_t)p->part_count;
    TS_APPEND(p->arena, p->parts, p->part_count, p->part_capacity, part);
    map_put(p->arena, p->part_map, key, i);
    p->weight_bytes += (bytes + TSM_WEIGHT_ALIGN - 1) / TSM_WEIGHT_ALIGN * TSM_WEIGHT_ALIGN;
    return part.offset;
}

static void add_storage(cg_program *p, rt_storage *storage) {
    uint32_t i;
    if (map_find_pointer(p->storage_map, storage, &i))
        return;
    /* Offsets are given in cg_program_write's caller order: contents may be shared by parts of
     * equal bytes only while nobody writes to them, which mark_mutable decides later; a mutable
     * storage is copied per session, so sharing its initial bytes is fine as well. */
    cg_storage_row row = {storage, cg_program_weight(p, storage->data, storage->bytes),
                          storage->bytes, false};
    i = (uint32_t)p->storage_count;
    TS_APPEND(p->arena, p->storages, p->storage_count, p->storage_capacity, row);
    map_put(p->arena, p->storage_map, (uint64_t)(uintptr_t)storage, i);
}

uint32_t cg_program_storage_index(const cg_program *p, const rt_storage *storage) {
    uint32_t i = 0;
    return map_find_pointer(p->storage_map, storage, &i) ? i : UINT32_MAX;
}

uint32_t cg_program_node_index(const cg_program *p, rt_value v) {
    uint32_t i = 0;
    return map_find_pointer(p->node_map, v.as.counted, &i) ? i : UINT32_MAX;
}

static void node_children(rt_value v, const rt_value **out, size_t *out_count) {
    *out = NULL;
    *out_count = 0;
    switch (v.tag) {
    case RT_TAG_LIST:
        *out = v.as.list->items;
        *out_count = v.as.list->count;
        break;
    case RT_TAG_TUPLE:
        *out = v.as.tuple->items;
        *out_count = v.as.tuple->count;
        break;
    case RT_TAG_OBJECT:
        *out = v.as.object->fields;
        *out_count = v.as.object->field_count;
        break;
    case RT_TAG_ENUM:
        *out = &v.as.enumeration->value;
        *out_count = 1;
        break;
    case RT_TAG_CAPSULE: {
        const rt_tuple *packed = rt_packed_tuple(v);
        if (packed) {
            *out = packed->items;
            *out_count = packed->count;
        }
        break;
    }
    default:
        break;
    }
}

static void add_node(cg_program *p, rt_value v) {
    uint32_t i;
    if (!rt_is_counted(v) || map_find_pointer(p->node_map, v.as.counted, &i))
        return;
    i = (uint32_t)p->node_count;
    TS_APPEND(p->arena, p->nodes, p->node_count, p->node_capacity, v);
    map_put(p->arena, p->node_map, (uint64_t)(uintptr_t)v.as.counted, i);
}

/* Breadth first over the node table itself: no recursion on what a file made. */
static void close_nodes(cg_program *p, size_t from) {
    for (size_t i = from; i < p->node_count; i++) {
        rt_value v = p->nodes[i];
        const rt_value *children;
        size_t count;
        node_children(v, &children, &count);
        for (size_t k = 0; k < count; k++)
            add_node(p, children[k]);
        const rt_class *class_ = NULL;
        switch (v.tag) {
        case RT_TAG_DICT: {
            size_t at = 0;
            for (rt_dict_entry *e; (e = rt_dict_next(v.as.dict, &at));) {
                add_node(p, e->key);
                add_node(p, e->value);
            }
            break;
        }
        case RT_TAG_TENSOR:
            if (v.as.tensor->storage)
                add_storage(p, v.as.tensor->storage);
            if (v.as.tensor->scales) {
                add_node(p, rt_from_tensor(v.as.tensor->scales));
                add_node(p, rt_from_tensor(v.as.tensor->zero_points));
            }
            break;
        case RT_TAG_OBJECT: class_ = v.as.object->class_; break;
        case RT_TAG_ENUM: class_ = v.as.enumeration->class_; break;
        case RT_TAG_TUPLE: class_ = v.as.tuple->class_; break;
        case RT_TAG_CAPSULE:
            if (rt_packed_tuple(v))
                break;
            /* fall through */
        case RT_TAG_FUNCTION:
        case RT_TAG_GENERATOR:
            if (!p->error)
                p->error = ts_error_make(TS_ERR_UNSUPPORTED,
                                         "a constant of type %s cannot be stored in an artifact",
                                         rt_tag_name(v));
            break;
        default: break;
        }
        if (class_ && class_->info)
            cg_program_class(p, class_->info);
    }
}

uint32_t cg_program_constant(cg_program *p, rt_value v) {
    uint64_t parts[3] = {v.tag, v.aux, (uint64_t)v.as.i};
    uint64_t key = ts_hash64(parts, sizeof parts, 4);
    size_t state = 0;
    uint32_t i;
    while (map_next(p->constant_map, key, &state, &i))
        if (p->constants[i].tag == v.tag && p->constants[i].aux == v.aux &&
            p->constants[i].as.i == v.as.i)
            return i;
    i = (uint32_t)p->constant_count;
    TS_APPEND(p->arena, p->constants, p->constant_count, p->constant_capacity, v);
    map_put(p->arena, p->constant_map, key, i);
    size_t from = p->node_count;
    add_node(p, v);
    close_nodes(p, from);
    return i;
}

uint32_t cg_program_kernel(cg_program *p, cg_kernel_row row) {
    TS_APPEND(p->arena, p->kernels, p->kernel_count, p->kernel_capacity, row);
    return (uint32_t)p->kernel_count - 1;
}

uint32_t cg_program_function(cg_program *p, ir_function *f) {
    uint32_t i;
    if (map_find_pointer(p->function_map, f, &i))
        return i;
    i = (uint32_t)p->function_count;
    TS_APPEND(p->arena, p->functions, p->function_count, p->function_capacity, f);
    map_put(p->arena, p->function_map, (uint64_t)(uintptr_t)f, i);
    return i;
}

/* ---- which functions are reached ---- */

static void add_methods(cg_program *p, ts_str name) {
    uint32_t name_index = cg_program_string(p, name);
    for (size_t i = 0; i < p->method_count; i++)
        if (p->methods[i].name == name_index)
            return;
    for (size_t c = 0; c < p->ir->class_count; c++) {
        ir_class *class_ = p->ir->classes[c];
        for (size_t k = 0; k < class_->method_count; k++) {
            const ir_method *method = &class_->methods[k];
            if (!method->function || !method->function->body || !ts_str_equal(method->name, name))
                continue;
            cg_method_row row = {cg_program_class(p, class_), name_index, method->function};
            TS_APPEND(p->arena, p->methods, p->method_count, p->method_capacity, row);
            cg_program_function(p, method->function);
        }
    }
}

typedef struct block_stack {
    const ir_block **blocks;
    size_t count, capacity;
} block_stack;

static void collect_function(cg_program *p, const ir_function *f) {
    block_stack stack = {0};
    TS_APPEND(p->arena, stack.blocks, stack.count, stack.capacity, f->body);
    while (stack.count) {
        const ir_block *block = stack.blocks[--stack.count];
        for (const ir_op *op = block->first; op; op = op->next) {
            if (op->function)
                cg_program_function(p, op->function);
            else if (op->opcode == IR_OP_CALL_METHOD)
                add_methods(p, op->name);
            for (size_t r = 0; r < op->region_count; r++)
                TS_APPEND(p->arena, stack.blocks, stack.count, stack.capacity, op->regions[r]);
        }
    }
}

ts_status cg_program_collect(cg_program *p) {
    for (ir_function *f = p->ir->functions; f; f = f->next) {
        if (!f->is_entry || !f->body)
            continue;
        cg_entry_row row = {.function = f};
        const ir_block *body = f->body;
        if (body->parameter_count && p->ir->root.tag == RT_TAG_OBJECT) {
            const ir_type *t = body->parameters[0]->type;
            row.self_count = t->kind == IR_CLASS && t->class_ &&
                             &t->class_->base == p->ir->root.as.object->class_;
        }
        TS_APPEND(p->arena, p->entries, p->entry_count, p->entry_capacity, row);
        cg_program_function(p, f);
    }
    if (!p->entry_count)
        return ts_error_make(TS_ERR_INVALID_INPUT, "the module has no entry function");
    for (size_t i = 0; i < p->function_count; i++) {
        if (!p->functions[i]->body)
            return ts_error_make(TS_ERR_INTERNAL, "function %.*s has no body",
                                 TS_STR_ARG(p->functions[i]->name));
        collect_function(p, p->functions[i]);
    }
    return NULL;
}

/* runtime/values/deep_copy.c - copies of constant trees: a session's own state.
 *
 * What the tree shares stays shared in the copy (two attributes of one list, tied weights), and
 * views of one storage stay views of one storage. */
#include <stdlib.h>

#include "runtime/values/values_internal.h"

/* Old heap object -> new one: counted values and, where tensors are copied, storages. */
typedef struct copy_map {
    const void **from;
    void **to;
    size_t count, capacity;
} copy_map;

typedef struct copier {
    copy_map values, storages;
    bool copy_tensors;
} copier;

static size_t slot_of(const copy_map *map, const void *from) {
    size_t mask = map->capacity - 1;
    size_t at = (size_t)(((uintptr_t)from >> 4) * 0x9e3779b97f4a7c15u >> 20) & mask;
    while (map->from[at] && map->from[at] != from)
        at = (at + 1) & mask;
    return at;
}

static void *map_find(const copy_map *map, const void *from) {
    return map->capacity ? map->to[slot_of(map, from)] : NULL;
}

static ts_status map_set(copy_map *map, const void *from, void *to) {
    if (map->count * 2 >= map->capacity) {
        copy_map bigger = {.count = map->count, .capacity = map->capacity ? map->capacity * 2 : 64};
        bigger.from = calloc(bigger.capacity, sizeof *bigger.from);
        bigger.to = calloc(bigger.capacity, sizeof *bigger.to);
        if (!bigger.from || !bigger.to) {
            free(bigger.from);
            free(bigger.to);
            return ts_no_memory();
        }
        for (size_t i = 0; i < map->capacity; i++) {
            if (!map->from[i])
                continue;
            size_t at = slot_of(&bigger, map->from[i]);
            bigger.from[at] = map->from[i];
            bigger.to[at] = map->to[i];
        }
        free(map->from);
        free(map->to);
        *map = bigger;
    }
    size_t at = slot_of(map, from);
    map->from[at] = from;
    map->to[at] = to;
    map->count++;
    return NULL;
}

static ts_status copy_value(copier *c, rt_value v, int depth, rt_value *out);

static ts_status copy_items(copier *c, const rt_value *from, size_t count, int depth,
                            rt_value *to) {
    for (size_t i = 0; i < count; i++) {
        rt_value item;
        TS_TRY(copy_value(c, from[i], depth, &item));
        rt_assign(&to[i], item);
    }
    return NULL;
}

static ts_status copy_storage(copier *c, rt_storage *old, rt_storage **out) {
    rt_storage *known = map_find(&c->storages, old);
    if (known) {
        *out = known;
        return NULL;
    }
    TS_TRY(rt_storage_make(old->bytes, out));
    if (old->bytes)
        memcpy((*out)->data, old->data, old->bytes);
    ts_status status = map_set(&c->storages, old, *out); /* the map keeps the first reference */
    if (status)
        rt_storage_release(*out);
    return status;
}

static ts_status copy_tensor(copier *c, const rt_tensor *t, rt_value *out) {
    if (!t->storage)
        return ts_error_make(TS_ERR_INTERNAL, "a planned buffer cannot be copied");
    rt_storage *storage;
    rt_tensor *copy;
    TS_TRY(copy_storage(c, t->storage, &storage));
    TS_TRY(rt_tensor_view(storage, (rt_dtype)t->dtype, rt_tensor_offset(t), t->sizes, t->strides,
                          t->rank, &copy));
    copy->requires_grad = t->requires_grad;
    copy->is_conjugated = t->is_conjugated;
    rt_tensor_set_quantizer(copy, t); /* scales are never written to */
    *out = rt_from_tensor(copy);
    return NULL;
}

static ts_status copy_dict(copier *c, const rt_dict *from, int depth, rt_dict *to) {
    rt_dict_entry *entry;
    for (size_t at = 0; (entry = rt_dict_next(from, &at));) {
        rt_value key, value = rt_none();
        TS_TRY(copy_value(c, entry->key, depth, &key));
        ts_status status = copy_value(c, entry->value, depth, &value);
        if (!status)
            status = rt_dict_set(to, key, value);
        rt_release(key);
        rt_release(value);
        TS_TRY(status);
    }
    return NULL;
}

/* Containers enter the map before their contents are copied, so that cycles close. */
static ts_status copy_container(copier *c, rt_value v, int depth, rt_value *out) {
    switch (v.tag) {
    case RT_TAG_LIST:
        TS_TRY(rt_list_make(v.as.list->count, out));
        for (size_t i = 0; i < v.as.list->count; i++)
            out->as.list->items[i] = rt_none();
        out->as.list->count = v.as.list->count;
        out->as.list->base.flags |= rt_marks(&v.as.list->base);
        TS_TRY(map_set(&c->values, v.as.pointer, out->as.pointer));
        return copy_items(c, v.as.list->items, v.as.list->count, depth, out->as.list->items);
    case RT_TAG_TUPLE:
        TS_TRY(rt_tuple_make(v.as.tuple->count, out));
        out->as.tuple->class_ = v.as.tuple->class_;
        TS_TRY(map_set(&c->values, v.as.pointer, out->as.pointer));
        return copy_items(c, v.as.tuple->items, v.as.tuple->count, depth, out->as.tuple->items);
    case RT_TAG_DICT:
        TS_TRY(rt_dict_make(out));
        out->as.dict->base.flags |= rt_marks(&v.as.dict->base);
        TS_TRY(map_set(&c->values, v.as.pointer, out->as.pointer));
        return copy_dict(c, v.as.dict, depth, out->as.dict);
    default: { /* RT_TAG_OBJECT */
        const rt_object *from = v.as.object;
        TS_TRY(rt_object_make(from->class_, out));
        TS_TRY(map_set(&c->values, v.as.pointer, out->as.pointer));
        size_t count = from->field_count < out->as.object->field_count
                           ? from->field_count
                           : out->as.object->field_count;
        return copy_items(c, from->fields, count, depth, out->as.object->fields);
    }
    }
}

static ts_status copy_value(copier *c, rt_value v, int depth, rt_value *out) {
    *out = rt_none();
    if (depth <= 0)
        return rt_depth_error();
    bool is_container = v.tag == RT_TAG_LIST || v.tag == RT_TAG_TUPLE || v.tag == RT_TAG_DICT ||
                        v.tag == RT_TAG_OBJECT;
    bool is_copied = is_container || (v.tag == RT_TAG_TENSOR && c->copy_tensors);
    if (!is_copied) {
        *out = rt_retain(v);
        return NULL;
    }
    void *known = map_find(&c->values, v.as.pointer);
    if (known) {
        *out = rt_retain((rt_value){.tag = v.tag, .as.pointer = known});
        return NULL;
    }
    ts_status status;
    if (is_container) {
        status = copy_container(c, v, depth - 1, out);
    } else {
        status = copy_tensor(c, v.as.tensor, out);
        if (!status)
            status = map_set(&c->values, v.as.pointer, out->as.pointer);
    }
    if (status) {
        /* The map may name *out; nothing looks there again, the whole copy is given up. */
        rt_release(*out);
        *out = rt_none();
    }
    return status;
}

ts_status rt_deep_copy(rt_value v, bool copy_tensors, rt_value *out) {
    copier c = {.copy_tensors = copy_tensors};
    ts_status status = copy_value(&c, v, RT_VALUE_DEPTH, out);
    for (size_t i = 0; i < c.storages.capacity; i++)
        if (c.storages.from[i])
            rt_storage_release(c.storages.to[i]);
    free(c.values.from);
    free(c.values.to);
    free(c.storages.from);
    free(c.storages.to);
    return status;
}

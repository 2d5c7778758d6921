/* frontend/archive/state_dict_tar.c - state dicts as torch 0.1 wrote them: a tar file.
 *
*   storages   a pickled count; for each a pickled (key, location, class), the number of elements
 *              (int64), the elements; then the pickled list of views of storages
 *   tensors    a pickled count; for each a pickled (key, key of its storage, class), its rank (int32),
 *              four bytes, sizes and strides (int64 each), its offset (int64)
 *   pickle     the state dict, whose tensors are persistent ids: their keys as text */
#include "frontend/archive/cursor.h"
#include "frontend/archive/state_dict.h"
#include "runtime/base/checked.h"

typedef fe_pickle_node node;

static ts_status bad(const node *n, const char *text) {
    return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: %s", n->offset, text);
}


typedef struct tar_item {
    int64_t key;
    rt_dtype dtype;
    rt_storage *storage; /* of a storage */
    rt_tensor *tensor;   /* of a tensor */
} tar_item;

typedef struct tar_items {
    tar_item *items;
    size_t count, capacity;
} tar_items;

static ts_str tar_member(ts_str tar, const char *name) {
    for (size_t at = 0; at + 512 <= tar.length;) {
        const char *head = tar.data + at;
        size_t size = 0;
        for (size_t i = 124; i < 136 && head[i] >= '0' && head[i] <= '7'; i++)
            size = size << 3 | (size_t)(head[i] - '0');
        bool is_file = head[156] == '0' || head[156] == 0;
        at += 512;
        if (size > tar.length - at)
            break;
        if (is_file && strncmp(head, name, 100) == 0)
            return (ts_str){tar.data + at, size};
        at += (size + 511) / 512 * 512;
        if (!*head)
            break;
    }
    return (ts_str){0};
}

static ts_status tar_count(ts_arena *arena, ts_str bytes, size_t *at, int64_t *out) {
    node *n = NULL;
    TS_TRY(fe_state_dict_pickle(arena, bytes, at, &n));
    if (n->kind != FE_PICKLE_INT || n->as.integer < 0 || n->as.integer > 1 << 16)
        return bad(n, "expected a count");
    *out = n->as.integer;
    return NULL;
}

/* (int, anything, class): a key, the second item, a dtype. */
static ts_status tar_entry(ts_arena *arena, ts_str bytes, size_t *at, int64_t *key, node **second,
                           rt_dtype *dtype) {
    node *n = NULL;
    TS_TRY(fe_state_dict_pickle(arena, bytes, at, &n));
    if (n->kind != FE_PICKLE_TUPLE || n->as.list.count != 3 ||
        n->as.list.items[0]->kind != FE_PICKLE_INT ||
        n->as.list.items[2]->kind != FE_PICKLE_GLOBAL ||
        n->as.list.items[2]->global != FE_GLOBAL_STORAGE)
        return bad(n, "expected a key, a place and a class");
    *key = n->as.list.items[0]->as.integer;
    *second = n->as.list.items[1];
    *dtype = (rt_dtype)n->as.list.items[2]->dtype;
    return NULL;
}

static tar_item *tar_find(const tar_items *items, int64_t key) {
    for (size_t i = 0; i < items->count; i++)
        if (items->items[i].key == key)
            return &items->items[i];
    return NULL;
}

static ts_status tar_storages(ts_arena *arena, fe_mapping *mapping, ts_str bytes, tar_items *out) {
    size_t at = 0;
    int64_t count = 0;
    TS_TRY(tar_count(arena, bytes, &at, &count));
    for (int64_t i = 0; i < count; i++) {
        tar_item item = {0};
        node *place = NULL;
        TS_TRY(tar_entry(arena, bytes, &at, &item.key, &place, &item.dtype));
        fe_cursor c = fe_cursor_at((const unsigned char *)bytes.data, bytes.length, at);
        uint64_t elements = fe_cursor_u64(&c);
        size_t size = 0;
        if (elements > SIZE_MAX / 16 || !ts_mul_size((size_t)elements, rt_dtype_size(item.dtype), &size))
            return ts_error_make(TS_ERR_INVALID_FILE, "storages: a storage of impossible size");
        const unsigned char *data = fe_cursor_bytes(&c, size);
        if (c.failed)
            return ts_error_make(TS_ERR_INVALID_FILE, "storages: a storage reaches beyond the end");
        TS_TRY(fe_mapping_storage(mapping, data, size, item.dtype, &item.storage));
        TS_APPEND(arena, out->items, out->count, out->capacity, item);
        at = c.at;
    }
    node *views = NULL;
    TS_TRY(fe_state_dict_pickle(arena, bytes, &at, &views));
    if (views->kind != FE_PICKLE_LIST || views->as.list.count)
        return ts_error_make(TS_ERR_UNSUPPORTED, "storages: views of storages are not supported");
    return NULL;
}

static ts_status tar_tensors(ts_arena *arena, ts_str bytes, const tar_items *storages, tar_items *out) {
    size_t at = 0;
    int64_t count = 0;
    TS_TRY(tar_count(arena, bytes, &at, &count));
    for (int64_t i = 0; i < count; i++) {
        tar_item item = {0};
        node *key = NULL;
        int64_t sizes[RT_MAX_RANK], strides[RT_MAX_RANK], reach = 1;
        TS_TRY(tar_entry(arena, bytes, &at, &item.key, &key, &item.dtype));
        const tar_item *storage = key->kind == FE_PICKLE_INT ? tar_find(storages, key->as.integer) : NULL;
        fe_cursor c = fe_cursor_at((const unsigned char *)bytes.data, bytes.length, at);
        uint32_t rank = fe_cursor_u32(&c);
        (void)fe_cursor_u32(&c);
        if (!storage || storage->dtype != item.dtype || rank > RT_MAX_RANK)
            return ts_error_make(TS_ERR_INVALID_FILE, "tensors: a tensor without its storage, or of "
                                 "too high a rank");
        for (uint32_t d = 0; d < rank; d++)
            sizes[d] = (int64_t)fe_cursor_u64(&c);
        for (uint32_t d = 0; d < rank; d++)
            strides[d] = (int64_t)fe_cursor_u64(&c);
        int64_t offset = (int64_t)fe_cursor_u64(&c), total = 1;
        bool fits = !c.failed && offset >= 0, is_empty = false;
        for (uint32_t d = 0; d < rank && fits; d++) {
            int64_t far = 0;
            fits = sizes[d] >= 0 && strides[d] >= 0 && ts_mul_i64(total, sizes[d] ? sizes[d] : 1, &total) &&
                   ts_mul_i64(sizes[d] ? sizes[d] - 1 : 0, strides[d], &far) && ts_add_i64(reach, far, &reach);
            is_empty |= sizes[d] == 0;
        }
        int64_t held = (int64_t)(storage->storage->bytes / rt_dtype_size(item.dtype));
        if (!fits || total > held || offset > held || (!is_empty && reach > held - offset))
            return ts_error_make(TS_ERR_INVALID_FILE, "tensors: a tensor reaches beyond its storage");
        TS_TRY(rt_tensor_view(storage->storage, item.dtype, offset, sizes, strides, (int)rank, &item.tensor));
        TS_APPEND(arena, out->items, out->count, out->capacity, item);
        at = c.at;
    }
    return NULL;
}

static bool tar_key(const node *value, int64_t *out) {
    const node *id = value->kind == FE_PICKLE_PERSISTENT ? value->as.list.items[0] : NULL;
    *out = 0;
    if (!id || id->kind != FE_PICKLE_STR || !id->as.text.length || id->as.text.length > 18)
        return false;
    for (size_t i = 0; i < id->as.text.length; i++) {
        if (id->as.text.data[i] < '0' || id->as.text.data[i] > '9')
            return false;
        *out = 10 * *out + (id->as.text.data[i] - '0');
    }
    return true;
}

static ts_status tar_dict(ts_arena *arena, ts_str bytes, const tar_items *tensors, fe_weights *out) {
    node *root = NULL;
    TS_TRY(fe_pickle_read(arena, bytes, FE_PICKLE_STATE, NULL, &root));
    const node *dict = fe_state_dict_of(root);
    if (!dict)
        return bad(root, "expected a state dict (names and tensors)");
    for (size_t i = 0; i + 1 < dict->as.list.count; i += 2) {
        const node *key = dict->as.list.items[i];
        int64_t number = 0;
        tar_item *item = tar_key(dict->as.list.items[i + 1], &number) ? tar_find(tensors, number) : NULL;
        if (key->kind != FE_PICKLE_STR || !item)
            return bad(key, "a state dict has names and tensors only");
        fe_weight weight = {ts_arena_str(arena, key->as.text),
                            rt_retain(rt_from_tensor(item->tensor)).as.tensor};
        if (!fe_weights_add(arena, out, weight)) {
            rt_tensor_release(weight.tensor);
            return bad(key, "a name is given twice");
        }
    }
    return NULL;
}

bool fe_state_dict_is_tar(ts_str bytes) {
    return bytes.length >= 512 && memcmp(bytes.data + 257, "ustar", 5) == 0;
}

ts_status fe_state_dict_read_tar(ts_arena *arena, fe_mapping *mapping, fe_weights *out) {
    ts_str tar = fe_mapping_bytes(mapping);
    ts_str storages = tar_member(tar, "storages"), tensors = tar_member(tar, "tensors");
    ts_str pickle = tar_member(tar, "pickle");
    if (!storages.data || !tensors.data || !pickle.data)
        return ts_error_make(TS_ERR_INVALID_FILE, "a tar file, but not one of torch.save");
    tar_items kept = {0}, made = {0};
    ts_status status = ts_status_context(tar_storages(arena, mapping, storages, &kept), "reading storages");
    if (!status)
        status = ts_status_context(tar_tensors(arena, tensors, &kept, &made), "reading tensors");
    if (!status)
        status = ts_status_context(tar_dict(arena, pickle, &made, out), "reading pickle");
    for (size_t i = 0; i < made.count; i++)
        rt_tensor_release(made.items[i].tensor);
    for (size_t i = 0; i < kept.count; i++)
        rt_storage_release(kept.items[i].storage);
    return status;
}

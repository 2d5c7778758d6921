/* frontend/archive/state_dict.c - .pth files that hold a state dict: names and tensors. A checkpoint
 * keeps it under a key: one of the usual names, else the only dict of tensors there is.
 *
 * Legacy form (torch.serialization._legacy_save): pickles of a magic number, of the protocol (1001),
 * of a dict about the system, of the object, of the list of storage keys; then for each key the
 * count of elements as int64 and the elements. */
#include "frontend/archive/state_dict.h"

#include "frontend/archive/cursor.h"
#include "runtime/base/checked.h"
#include "runtime/base/map.h"

typedef fe_pickle_node node;

static ts_status bad(const node *n, const char *text) {
    return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: %s", n->offset, text);
}

static bool is_tensor(const node *n) {
    return n->kind == FE_PICKLE_CALL && (n->callee->global == FE_GLOBAL_REBUILD_TENSOR ||
                                         n->callee->global == FE_GLOBAL_REBUILD_TENSOR_V1 ||
                                         n->callee->global == FE_GLOBAL_REBUILD_PARAMETER ||
                                         n->callee->global == FE_GLOBAL_REBUILD_PARAMETER_WITH_STATE ||
                                         n->callee->global == FE_GLOBAL_REBUILD_FROM_TYPE);
}

/* The DICT node of a dict or an OrderedDict; NULL for anything else. */
const node *fe_state_dict_of(const node *n) {
    if (n->kind == FE_PICKLE_CALL && n->callee->global == FE_GLOBAL_ORDERED_DICT &&
        n->as.list.items[0]->as.list.count == 0) {
        static const node empty = {.kind = FE_PICKLE_DICT};
        return n->entries ? n->entries : &empty;
    }
    return n->kind == FE_PICKLE_DICT ? n : NULL;
}

static bool holds_tensors_only(const node *dict) {
    for (size_t i = 0; i + 1 < dict->as.list.count; i += 2)
        if (dict->as.list.items[i]->kind != FE_PICKLE_STR || !is_tensor(dict->as.list.items[i + 1]))
            return false;
    return dict->as.list.count > 0;
}

/* The state dict in a checkpoint; the dict itself where it is none. NULL: several may be meant. */
static const node *find_dict(const node *dict) {
    static const char *const usual[] = {"state_dict", "model_state_dict", "model", "net", "network",
                                        "weights", "params", "module"};
    const node *only = NULL;
    size_t found = 0, tensors = 0;
    for (size_t i = 0; i + 1 < dict->as.list.count; i += 2) {
        const node *inner = fe_state_dict_of(dict->as.list.items[i + 1]);
        tensors += is_tensor(dict->as.list.items[i + 1]);
        if (!inner || !holds_tensors_only(inner))
            continue;
        only = inner;
        found++;
    }
    if (tensors || !found)
        return dict;
    for (size_t u = 0; u < sizeof usual / sizeof *usual; u++)
        for (size_t i = 0; i + 1 < dict->as.list.count; i += 2) {
            const node *key = dict->as.list.items[i], *inner = fe_state_dict_of(dict->as.list.items[i + 1]);
            if (key->kind == FE_PICKLE_STR && ts_str_is(key->as.text, usual[u]) && inner &&
                holds_tensors_only(inner))
                return inner;
        }
    return found == 1 ? only : NULL;
}

static ts_status read_dict(ts_arena *arena, fe_records *records, const node *root,
                           fe_weights *out) {
    const node *dict = fe_state_dict_of(root);
    if (dict)
        dict = find_dict(dict);
    if (!dict && fe_state_dict_of(root))
        return bad(root, "several dicts of tensors, none under a usual name: save the one that is "
                         "meant alone");
    if (!dict)
        return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: expected a state dict (names and "
                             "tensors), found %s", root->offset, fe_pickle_kind_text(root));
    for (size_t i = 0; i + 1 < dict->as.list.count; i += 2) {
        const node *key = dict->as.list.items[i], *value = dict->as.list.items[i + 1];
        if (key->kind != FE_PICKLE_STR)
            return bad(key, "the names of a state dict are strings");
        ts_str name = key->as.text;
        if (fe_state_dict_of(value))
            return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: '%.*s' holds a dict: a state "
                                 "dict has tensors only; save that part alone", value->offset,
                                 TS_STR_ARG(name));
        if (!is_tensor(value))
            return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: '%.*s' holds %s: a state dict "
                                 "has tensors only", value->offset, TS_STR_ARG(name),
                                 fe_pickle_kind_text(value));
        if (fe_weights_find(out, name))
            return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: '%.*s' is given twice",
                                 key->offset, TS_STR_ARG(name));
        fe_weight weight = {ts_arena_str(arena, name), NULL};
        TS_TRY(fe_records_tensor(records, value, &weight.tensor));
        (void)fe_weights_add(arena, out, weight);
    }
    return NULL;
}

ts_status fe_state_dict_read_zip(ts_arena *arena, fe_mapping *mapping, bool ignore_crc,
                                 fe_weights *out) {
    return fe_state_dict_read_bytes(arena, mapping, fe_mapping_bytes(mapping), ignore_crc, out);
}

ts_status fe_state_dict_read_bytes(ts_arena *arena, fe_mapping *mapping, ts_str bytes,
                                   bool ignore_crc, fe_weights *out) {
    fe_records records = {.mapping = mapping};
    TS_TRY(fe_zip_open(arena, (const unsigned char *)bytes.data, bytes.length, ignore_crc,
                       &records.zip));
    fe_zip_member *data = NULL;
    ts_str top = {0}, text = {0};
    for (size_t i = 0; i < records.zip->count; i++) {
        ts_str name = records.zip->members[i].name;
        const char *slash = memchr(name.data, '/', name.length);
        if (!slash || !ts_str_is((ts_str){slash + 1, name.length - (size_t)(slash + 1 - name.data)},
                                 "data.pkl"))
            continue;
        if (data)
            return ts_error_make(TS_ERR_INVALID_FILE, "data.pkl: two top folders hold one");
        data = &records.zip->members[i];
        top = (ts_str){name.data, (size_t)(slash + 1 - name.data)};
    }
    if (!data)
        return ts_error_make(TS_ERR_INVALID_FILE, "data.pkl is missing: not a file of torch.save");
    fe_zip_member *order = fe_zip_find(
        records.zip, ts_arena_format(arena, "%.*sbyteorder", (int)top.length, top.data));
    if (order) {
        TS_TRY(fe_zip_read(records.zip, arena, order, 64, &text));
        records.is_big_endian = ts_str_is(text, "big");
        if (!ts_str_is(text, "little") && !records.is_big_endian)
            return ts_error_make(TS_ERR_INVALID_FILE, "byteorder: expected 'little' or 'big', found "
                                 "'%.*s'", TS_STR_ARG(text));
    }
    TS_TRY(fe_zip_read(records.zip, arena, data, (size_t)256 << 20, &text));
    records.folder = ts_arena_format(arena, "%.*sdata/", (int)top.length, top.data);
    records.storages = TS_NEW_ARRAY(arena, rt_storage *, records.zip->count + 1);
    records.swapped = TS_NEW_ARRAY(arena, uint8_t, records.zip->count + 1);
    node *root = NULL;
    ts_status status = fe_pickle_read(arena, text, FE_PICKLE_STATE, NULL, &root);
    if (!status)
        status = read_dict(arena, &records, root, out);
    fe_records_release(&records);
    return ts_status_context(status, "reading data.pkl");
}

/* ---- the form before torch 1.6 ---- */

typedef struct legacy_storage {
    ts_str key;
    rt_dtype dtype; /* as first asked for */
    int64_t count;
    rt_storage *storage;
} legacy_storage;

typedef struct legacy {
    ts_arena *arena;
    legacy_storage **items;
    size_t count, capacity;
    ts_map by_key;
} legacy;

/* Storages come after the tree, and their sizes with them: at the first walk only the dtypes are
 * collected (storage NULL), at the second everything is there. */
static legacy_storage *legacy_get(const legacy *l, ts_str key) { return ts_map_get(&l->by_key, key); }

static ts_status legacy_find(void *user, ts_str key, rt_dtype dtype, int64_t count,
                             rt_storage **out) {
    legacy_storage *s = legacy_get(user, key);
    if (!s || !s->storage || s->dtype != dtype || s->count != count)
        return ts_error_make(TS_ERR_INVALID_FILE, "storage %.*s is missing or of another size",
                             TS_STR_ARG(key));
    *out = s->storage;
    return NULL;
}

static void collect_one(legacy *l, const node *persistent) {
    const node *id = persistent->as.list.items[0];
    if (id->kind != FE_PICKLE_TUPLE || id->as.list.count < 5 ||
        id->as.list.items[1]->kind != FE_PICKLE_GLOBAL || id->as.list.items[1]->global != FE_GLOBAL_STORAGE ||
        id->as.list.items[2]->kind != FE_PICKLE_STR || id->as.list.items[4]->kind != FE_PICKLE_INT)
        return; /* refused with a message when a tensor is made of it */
    ts_str key = id->as.list.items[2]->as.text;
    if (legacy_get(l, key))
        return;
    legacy_storage *s = TS_NEW(l->arena, legacy_storage);
    *s = (legacy_storage){key, (rt_dtype)id->as.list.items[1]->dtype, id->as.list.items[4]->as.integer, NULL};
    TS_APPEND(l->arena, l->items, l->count, l->capacity, s);
    ts_map_set(l->arena, &l->by_key, key, s);
}

enum { COLLECTED = 0x55 }; /* in node.mark, which nobody uses after reading */

/* The storages of all tensors, also of those beside the weights: the file holds them all. The tree is
 * at most FE_PICKLE_MAX_DEPTH deep. */
static void collect(legacy *l, node *n) {
    if (!n || n->mark == COLLECTED)
        return;
    n->mark = COLLECTED;
    if (n->kind == FE_PICKLE_PERSISTENT)
        collect_one(l, n);
    bool has_items = n->kind == FE_PICKLE_TUPLE || n->kind == FE_PICKLE_LIST || n->kind == FE_PICKLE_DICT ||
                     n->kind == FE_PICKLE_NEW || n->kind == FE_PICKLE_CALL;
    for (size_t i = 0; has_items && i < n->as.list.count; i++)
        collect(l, n->as.list.items[i]);
    collect(l, n->state);
    collect(l, n->entries);
}

static ts_status read_storages(legacy *l, fe_mapping *mapping, const node *keys, size_t at) {
    ts_str bytes = fe_mapping_bytes(mapping);
    fe_cursor c = fe_cursor_at((const unsigned char *)bytes.data, bytes.length, at);
    if (keys->kind != FE_PICKLE_LIST)
        return bad(keys, "expected a list of storage keys");
    for (size_t i = 0; i < keys->as.list.count; i++) {
        const node *key = keys->as.list.items[i];
        legacy_storage *s = key->kind == FE_PICKLE_STR ? legacy_get(l, key->as.text) : NULL;
        if (!s || s->storage)
            return bad(key, "a storage key that no tensor uses, or twice");
        int64_t count = (int64_t)fe_cursor_u64(&c);
        size_t size = 0;
        if (c.failed || count != s->count || count < 0 ||
            !ts_mul_size((size_t)count, rt_dtype_size(s->dtype), &size))
            return bad(key, "a storage whose size differs from its tensors'");
        const unsigned char *data = fe_cursor_bytes(&c, size);
        if (!data)
            return bad(key, "a storage lies beyond the end: is the file cut short?");
        TS_TRY(fe_mapping_storage(mapping, data, size, s->dtype, &s->storage));
    }
    return c.at == bytes.length ? NULL
                                : ts_error_make(TS_ERR_INVALID_FILE, "bytes after the last storage");
}

ts_status fe_state_dict_pickle(ts_arena *arena, ts_str bytes, size_t *at, node **out) {
    size_t used = 0;
    ts_str rest = {bytes.data + *at, bytes.length - *at};
    ts_status status = fe_pickle_read(arena, rest, FE_PICKLE_STATE, &used, out);
    if (status)
        return ts_status_context(status, "reading the pickle at offset %zu", *at);
    *at += used;
    return NULL;
}

static bool is_magic(const node *n) {
    static const unsigned char magic[10] = {0x6c, 0xfc, 0x9c, 0x46, 0xf9,
                                            0x20, 0x6a, 0xa8, 0x50, 0x19};
    return n->kind == FE_PICKLE_BIG && n->as.text.length == 10 &&
           memcmp(n->as.text.data, magic, 10) == 0;
}

ts_status fe_state_dict_read_legacy(ts_arena *arena, fe_mapping *mapping, fe_weights *out) {
    ts_str bytes = fe_mapping_bytes(mapping);
    size_t at = 0;
    node *magic = NULL, *protocol = NULL, *system = NULL, *root = NULL, *keys = NULL;
    TS_TRY(fe_state_dict_pickle(arena, bytes, &at, &magic));
    if (!is_magic(magic))
        return ts_error_make(TS_ERR_INVALID_FILE, "a pickle, but not one of torch.save");
    TS_TRY(fe_state_dict_pickle(arena, bytes, &at, &protocol));
    TS_TRY(fe_state_dict_pickle(arena, bytes, &at, &system));
    if (protocol->kind != FE_PICKLE_INT || protocol->as.integer != 1001)
        return bad(protocol, "protocol of torch.save: expected 1001");
    TS_TRY(fe_state_dict_pickle(arena, bytes, &at, &root));
    TS_TRY(fe_state_dict_pickle(arena, bytes, &at, &keys));
    legacy l = {.arena = arena};
    collect(&l, root);
    ts_status status = read_storages(&l, mapping, keys, at);
    fe_records records = {.mapping = mapping, .find = legacy_find, .user = &l};
    if (!status)
        status = read_dict(arena, &records, root, out);
    for (size_t i = 0; i < l.count; i++)
        rt_storage_release(l.items[i]->storage);
    return status;
}

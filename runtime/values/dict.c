/* runtime/values/dict.c - the dict: entries in order of insertion and a hash index over them. */
#include <stdlib.h>

#include "runtime/base/checked.h"
#include "runtime/values/value.h"

ts_status rt_dict_make(rt_value *out) {
    *out = rt_none();
    rt_dict *dict = calloc(1, sizeof *dict);
    if (!dict)
        return ts_no_memory();
    atomic_init(&dict->base.references, 1);
    dict->base.tag = RT_TAG_DICT;
    *out = (rt_value){.tag = RT_TAG_DICT, .as.dict = dict};
    return NULL;
}

/* The entry of a key whose hash is known. Slots of dead entries stay until the index is rebuilt. */
static ts_status find_hashed(const rt_dict *dict, rt_value key, uint64_t hash,
                             rt_dict_entry **out) {
    *out = NULL;
    if (dict->index_capacity == 0)
        return NULL;
    size_t mask = dict->index_capacity - 1;
    for (size_t at = hash & mask; dict->index[at]; at = (at + 1) & mask) {
        rt_dict_entry *entry = &dict->entries[dict->index[at] - 1];
        if (!entry->is_live || entry->hash != hash)
            continue;
        bool is_equal = rt_is(entry->key, key);
        if (!is_equal)
            TS_TRY(rt_equal(entry->key, key, &is_equal));
        if (is_equal) {
            *out = entry;
            return NULL;
        }
    }
    return NULL;
}

ts_status rt_dict_find(const rt_dict *dict, rt_value key, rt_dict_entry **out) {
    *out = NULL;
    uint64_t hash;
    TS_TRY(rt_hash(key, &hash));
    return find_hashed(dict, key, hash, out);
}

static void index_entry(rt_dict *dict, size_t position) {
    size_t mask = dict->index_capacity - 1, at = dict->entries[position].hash & mask;
    while (dict->index[at])
        at = (at + 1) & mask;
    dict->index[at] = (uint32_t)(position + 1);
}

/* Room for one more entry: dead entries go, and both arrays grow where they must. */
static ts_status make_room(rt_dict *dict) {
    if (dict->entry_count < dict->entry_capacity)
        return NULL;
    size_t capacity = 8;
    while (capacity < dict->live_count + dict->live_count / 2 + 1)
        if (!ts_mul_size(capacity, 2, &capacity))
            return ts_no_memory();
    size_t bytes;
    if (capacity >= UINT32_MAX / 2 || !ts_mul_size(capacity, sizeof *dict->entries, &bytes))
        return ts_no_memory();
    rt_dict_entry *entries = malloc(bytes);
    uint32_t *index = calloc(capacity * 2, sizeof *index);
    if (!entries || !index) {
        free(entries);
        free(index);
        return ts_no_memory();
    }
    size_t count = 0;
    for (size_t i = 0; i < dict->entry_count; i++)
        if (dict->entries[i].is_live)
            entries[count++] = dict->entries[i];
    free(dict->entries);
    free(dict->index);
    dict->entries = entries;
    dict->index = index;
    dict->entry_count = count;
    dict->entry_capacity = capacity;
    dict->index_capacity = capacity * 2;
    for (size_t i = 0; i < count; i++)
        index_entry(dict, i);
    return NULL;
}

ts_status rt_dict_set(rt_dict *dict, rt_value key, rt_value value) {
    uint64_t hash;
    rt_dict_entry *entry;
    TS_TRY(rt_hash(key, &hash));
    TS_TRY(find_hashed(dict, key, hash, &entry));
    if (entry) {
        rt_assign(&entry->value, rt_retain(value));
        return NULL;
    }
    TS_TRY(make_room(dict));
    dict->entries[dict->entry_count++] =
        (rt_dict_entry){rt_retain(key), rt_retain(value), hash, true};
    index_entry(dict, dict->entry_count - 1);
    dict->live_count++;
    dict->version++;
    return NULL;
}

ts_status rt_dict_remove(rt_dict *dict, rt_value key, bool *out_removed) {
    rt_dict_entry *entry;
    *out_removed = false;
    TS_TRY(rt_dict_find(dict, key, &entry));
    if (!entry)
        return NULL;
    rt_value old_key = entry->key, old_value = entry->value;
    entry->is_live = false;
    entry->key = rt_none();
    entry->value = rt_none();
    dict->live_count--;
    dict->version++;
    *out_removed = true;
    rt_release(old_key);
    rt_release(old_value);
    return NULL;
}

void rt_dict_clear(rt_dict *dict) {
    rt_dict_entry *entries = dict->entries;
    size_t count = dict->entry_count;
    free(dict->index);
    dict->entries = NULL;
    dict->index = NULL;
    dict->entry_count = dict->entry_capacity = dict->index_capacity = dict->live_count = 0;
    dict->version++;
    for (size_t i = 0; i < count; i++) {
        if (!entries[i].is_live)
            continue;
        rt_release(entries[i].key);
        rt_release(entries[i].value);
    }
    free(entries);
}

rt_dict_entry *rt_dict_next(const rt_dict *dict, size_t *at) {
    while (*at < dict->entry_count) {
        rt_dict_entry *entry = &dict->entries[(*at)++];
        if (entry->is_live)
            return entry;
    }
    return NULL;
}

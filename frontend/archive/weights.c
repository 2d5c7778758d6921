/* frontend/archive/weights.c - files of weights: safetensors here, .pth in state_dict.c. */
#include "frontend/archive/archive_internal.h"

#include "frontend/archive/state_dict.h"
#include "frontend/safetensors/safetensors.h"
#include "runtime/base/hash.h"

static ts_status read_safetensors(ts_arena *arena, fe_mapping *mapping, fe_weights *out) {
    safetensors_file file;
    TS_TRY(safetensors_parse(fe_mapping_bytes(mapping), &file));
    ts_status status = NULL;
    for (size_t i = 0; i < file.count; i++) {
        const safetensors_entry *e = &file.entries[i];
        rt_storage *storage = NULL;
        fe_weight weight = {ts_arena_str(arena, e->name), NULL};
        int64_t strides[RT_MAX_RANK];
        rt_contiguous_strides(e->sizes, (int)e->rank, strides);
        TS_TRY_OR(fe_mapping_storage(mapping, e->data, e->bytes, (rt_dtype)e->dtype, &storage),
                  done);
        status = rt_tensor_view(storage, (rt_dtype)e->dtype, 0, e->sizes, strides, (int)e->rank,
                                &weight.tensor);
        rt_storage_release(storage);
        if (status)
            goto done;
        (void)fe_weights_add(arena, out, weight); /* names are unique: the parser refused others */
    }
done:
    safetensors_deinit(&file);
    return status;
}

static ts_status read_weights(ts_arena *arena, fe_mapping *mapping, bool ignore_crc,
                              fe_weights *out) {
    const char *what = NULL;
    if (fe_state_dict_is_tar(fe_mapping_bytes(mapping)))
        return fe_state_dict_read_tar(arena, mapping, out);
    switch (fe_file_kind_of(fe_mapping_bytes(mapping), &what)) {
    case FE_FILE_ZIP:
        return fe_state_dict_read_zip(arena, mapping, ignore_crc, out);
    case FE_FILE_PICKLE:
        return fe_state_dict_read_legacy(arena, mapping, out);
    case FE_FILE_SAFETENSORS:
    case FE_FILE_TEXT:
    case FE_FILE_EMPTY:
        break;
    case FE_FILE_OTHER: {
        /* Damaged safetensors files look like nothing in particular: let its reader say why. */
        ts_status status = read_safetensors(arena, mapping, out);
        return ts_status_context(status, "taking %s for weights", what);
    }
    }
    return read_safetensors(arena, mapping, out);
}

ts_status fe_weights_load(ts_arena *arena, ts_str path, bool ignore_crc, fe_weights *out) {
    *out = (fe_weights){0};
    fe_mapping *mapping = NULL;
    TS_TRY(fe_mapping_open(arena, path, &mapping));
    ts_status status = read_weights(arena, mapping, ignore_crc, out);
    fe_mapping_release(mapping);
    if (status)
        fe_weights_deinit(out);
    return ts_status_set_place(status, (ts_place){path, 0, 0, 0});
}

static size_t slot_of(const fe_weights *w, ts_str name) {
    size_t mask = w->index_capacity - 1;
    size_t at = (size_t)ts_hash64(name.data, name.length, 0) & mask;
    while (w->index[at] && !ts_str_equal(w->items[w->index[at] - 1].name, name))
        at = (at + 1) & mask;
    return at;
}

const fe_weight *fe_weights_find(const fe_weights *weights, ts_str name) {
    uint32_t found = weights->index_capacity ? weights->index[slot_of(weights, name)] : 0;
    return found ? &weights->items[found - 1] : NULL;
}

bool fe_weights_add(ts_arena *arena, fe_weights *w, fe_weight weight) {
    if (2 * w->count >= w->index_capacity) {
        w->index_capacity = w->index_capacity ? 2 * w->index_capacity : 64;
        w->index = TS_NEW_ARRAY(arena, uint32_t, w->index_capacity);
        for (size_t i = 0; i < w->count; i++)
            w->index[slot_of(w, w->items[i].name)] = (uint32_t)i + 1;
    }
    size_t at = slot_of(w, weight.name);
    if (w->index[at])
        return false;
    TS_APPEND(arena, w->items, w->count, w->capacity, weight);
    w->index[at] = (uint32_t)w->count;
    return true;
}

void fe_weights_deinit(fe_weights *weights) {
    for (size_t i = 0; i < weights->count; i++)
        rt_tensor_release(weights->items[i].tensor);
    *weights = (fe_weights){0};
}

ts_status fe_safetensors_write(ts_arena *arena, ts_str path, const fe_weight *items,
                               size_t count) {
    const char *name = ts_arena_copy(arena, path.data, path.length);
    safetensors_entry *entries = TS_NEW_ARRAY(arena, safetensors_entry, count + 1);
    rt_tensor **dense = TS_NEW_ARRAY(arena, rt_tensor *, count + 1);
    ts_status status = NULL;
    size_t made = 0;
    for (; made < count && !status; made++) {
        status = rt_tensor_contiguous(items[made].tensor, &dense[made]);
        if (status)
            break;
        rt_tensor *t = dense[made];
        entries[made] = (safetensors_entry){
            .name = items[made].name, .dtype = t->dtype, .sizes = t->sizes,
            .rank = (size_t)t->rank, .data = t->data,
            .bytes = (size_t)t->element_count * rt_dtype_size((rt_dtype)t->dtype)};
    }
    if (!status)
        status = safetensors_write(name, entries, count);
    for (size_t i = 0; i < made; i++)
        rt_tensor_release(dense[i]);
    return status;
}

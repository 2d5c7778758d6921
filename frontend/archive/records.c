/* frontend/archive/records.c - tensors as views of mapped records; every number is checked against
 * the record before anything points into it. */
#include "frontend/archive/records.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/base/checked.h"

struct fe_mapping {
    _Atomic int64_t references;
    ts_mapped_file file;
};

ts_status fe_mapping_open(ts_arena *arena, ts_str path, fe_mapping **out) {
    *out = NULL;
    const char *name = ts_arena_copy(arena, path.data, path.length);
    fe_mapping *mapping = calloc(1, sizeof *mapping);
    if (!mapping)
        return ts_no_memory();
    atomic_store(&mapping->references, 1);
    ts_status status = ts_file_map(name, &mapping->file);
    if (status) {
        free(mapping);
        return status;
    }
    *out = mapping;
    return NULL;
}

ts_str fe_mapping_bytes(const fe_mapping *mapping) {
    return (ts_str){(const char *)mapping->file.data, mapping->file.length};
}

void fe_mapping_release(fe_mapping *mapping) {
    if (mapping && atomic_fetch_sub(&mapping->references, 1) == 1) {
        ts_file_unmap(&mapping->file);
        free(mapping);
    }
}

void fe_mapping_forget(const fe_mapping *mapping) { ts_file_forget(&mapping->file); }

static void release_mapped(rt_storage *storage) { fe_mapping_release(storage->owner); }

ts_status fe_mapping_storage(fe_mapping *mapping, const void *data, size_t bytes, rt_dtype dtype,
                             rt_storage **out) {
    size_t align = rt_dtype_size(dtype) > 8 ? 8 : rt_dtype_size(dtype);
    if (align && (uintptr_t)data % align != 0) {
        TS_TRY(rt_storage_make(bytes, out));
        if (bytes)
            memcpy((*out)->data, data, bytes);
    } else {
        union {
            const void *in;
            void *out;
        } cast = {.in = data};
        TS_TRY(rt_storage_wrap(cast.out, bytes, release_mapped, mapping, out));
        atomic_fetch_add(&mapping->references, 1);
    }
    (*out)->is_read_only = true;
    return NULL;
}

void fe_records_release(fe_records *records) {
    for (size_t i = 0; records->storages && i < records->zip->count; i++)
        if (records->storages[i])
            rt_storage_release(records->storages[i]);
    records->storages = NULL;
}

typedef fe_pickle_node node;

static ts_status bad(const node *n, const char *text) {
    return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: %s", n->offset, text);
}

static bool is_device(ts_str s, bool *out_foreign) {
    size_t i = 0;
    while (i < s.length && s.data[i] >= 'a' && s.data[i] <= 'z')
        i++;
    *out_foreign = !(i == 3 && memcmp(s.data, "cpu", 3) == 0);
    if (i == 0 || i > 16)
        return false;
    if (i == s.length)
        return true;
    if (s.data[i++] != ':' || i == s.length || s.length - i > 3)
        return false;
    for (; i < s.length; i++)
        if (s.data[i] < '0' || s.data[i] > '9')
            return false;
    return true;
}

/* Numbers of machines with the other byte order; complex ones are two. */
static void swap_bytes(char *p, size_t bytes, rt_dtype dtype) {
    size_t width = rt_dtype_size(dtype);
    if (rt_dtype_is_complex(dtype))
        width /= 2;
    for (size_t at = 0; width > 1 && at + width <= bytes; at += width)
        for (size_t i = 0; i < width / 2; i++) {
            char c = p[at + i];
            p[at + i] = p[at + width - 1 - i];
            p[at + width - 1 - i] = c;
        }
}

/* The storage over a whole record, made at first use. */
static ts_status member_storage(fe_records *r, fe_zip_member *member, rt_dtype dtype,
                                rt_storage **out) {
    rt_storage **slot = &r->storages[member - r->zip->members];
    if (!*slot && member->method == 0 && !r->is_big_endian) {
        TS_TRY(fe_zip_check_crc(r->zip, member));
        TS_TRY(fe_mapping_storage(r->mapping, r->zip->data + member->data_offset, member->bytes,
                                  dtype, slot));
    } else if (!*slot) {
        rt_storage *storage = NULL;
        TS_TRY(rt_storage_make(member->bytes, &storage));
        ts_status status = fe_zip_read_into(r->zip, member, storage->data);
        if (status) {
            rt_storage_release(storage);
            return status;
        }
        if (r->is_big_endian) {
            swap_bytes(storage->data, member->bytes, dtype);
            r->swapped[member - r->zip->members] = (uint8_t)dtype;
        }
        storage->is_read_only = true;
        *slot = storage;
    } else if (r->is_big_endian && r->swapped[member - r->zip->members] != (uint8_t)dtype) {
        return ts_error_make(TS_ERR_UNSUPPORTED, "%.*s is read with two types in an archive of a "
                             "big-endian machine", TS_STR_ARG(member->name));
    } else if (member->bytes &&
               (uintptr_t)(*slot)->data % (rt_dtype_size(dtype) > 8 ? 8 : rt_dtype_size(dtype))) {
        return ts_error_make(TS_ERR_INVALID_FILE, "%.*s is read with two types and not aligned for "
                             "both", TS_STR_ARG(member->name));
    }
    *out = *slot;
    return NULL;
}

/* The digits of a key: all of it, or what stands before ".storage", as constants that are shared with
 * bytecode.pkl have it. 0 where it is of no known form. */
static size_t key_digits(ts_str key) {
    const size_t suffix = sizeof ".storage" - 1;
    size_t digits = 0;
    while (digits < key.length && key.data[digits] >= '0' && key.data[digits] <= '9')
        digits++;
    bool is_known = digits == key.length || (digits + suffix == key.length &&
                                             memcmp(key.data + digits, ".storage", suffix) == 0);
    return is_known && digits <= 20 ? digits : 0;
}

static ts_status record_storage(fe_records *r, const node *id, ts_str key, rt_dtype dtype,
                                int64_t count, rt_storage **out) {
    if (!key_digits(key))
        return bad(id, "the key of a storage is not made of up to 20 digits");
    if (r->find)
        return r->find(r->user, key, dtype, count, out);
    char name[FE_ZIP_MAX_NAME + 32];
    if (r->folder.length > FE_ZIP_MAX_NAME)
        return bad(id, "the archive's folder has too long a name");
    memcpy(name, r->folder.data, r->folder.length);
    memcpy(name + r->folder.length, key.data, key.length);
    ts_str full = {name, r->folder.length + key.length};
    fe_zip_member *member = fe_zip_find(r->zip, full);
    if (!member)
        return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: record %.*s is missing", id->offset,
                             TS_STR_ARG(full));
    size_t bytes = 0;
    if (count < 0 || !ts_mul_size((size_t)count, rt_dtype_size(dtype), &bytes) ||
        bytes != member->bytes)
        return ts_error_make(TS_ERR_INVALID_FILE,
                             "offset %zu: a storage of %lld elements of %s, record %.*s holds %zu "
                             "bytes", id->offset, (long long)count, rt_dtype_name(dtype),
                             TS_STR_ARG(full), member->bytes);
    return member_storage(r, member, dtype, out);
}

/* ('storage', torch.FloatStorage, '0', 'cpu', 12), a sixth item in legacy files. */
static ts_status storage_of(fe_records *r, const node *persistent, rt_dtype *out_dtype,
                            rt_storage **out) {
    if (persistent->kind != FE_PICKLE_PERSISTENT)
        return bad(persistent, "expected a storage, found something else");
    const node *id = persistent->as.list.items[0];
    if (id->kind != FE_PICKLE_TUPLE || id->as.list.count < 5 || id->as.list.count > 6)
        return bad(id, "a persistent id that is no tuple of 5");
    node *const *item = id->as.list.items;
    if (item[0]->kind != FE_PICKLE_STR || !ts_str_is(item[0]->as.text, "storage"))
        return bad(id, "a persistent id that is no 'storage'");
    if (item[1]->kind != FE_PICKLE_GLOBAL || item[1]->global != FE_GLOBAL_STORAGE)
        return bad(id, "a storage without a known storage class");
    if (item[2]->kind != FE_PICKLE_STR || item[3]->kind != FE_PICKLE_STR ||
        item[4]->kind != FE_PICKLE_INT)
        return bad(id, "a storage whose key, device or count has a wrong type");
    bool is_foreign = false;
    if (!is_device(item[3]->as.text, &is_foreign))
        return bad(id, "a storage on a device of no known form");
    r->has_foreign_device |= is_foreign;
    if (id->as.list.count == 6 && item[5]->kind != FE_PICKLE_NONE)
        return ts_error_make(TS_ERR_UNSUPPORTED, "offset %zu: views of storages (torch before 0.4) "
                             "are not supported", id->offset);
    *out_dtype = (rt_dtype)item[1]->dtype;
    return record_storage(r, id, item[2]->as.text, *out_dtype, item[4]->as.integer, out);
}

static ts_status int_tuple(const node *n, const char *what, int64_t *out, size_t *out_count) {
    if (n->kind == FE_PICKLE_CALL && n->callee->global == FE_GLOBAL_SIZE &&
        n->as.list.items[0]->as.list.count == 1)
        n = n->as.list.items[0]->as.list.items[0];
    if (n->kind != FE_PICKLE_TUPLE)
        return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: %s of a tensor: expected a tuple, "
                             "found %s", n->offset, what, fe_pickle_kind_text(n));
    if (n->as.list.count > RT_MAX_RANK)
        return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: a tensor of rank %zu, at most %d "
                             "is read", n->offset, n->as.list.count, RT_MAX_RANK);
    for (size_t i = 0; i < n->as.list.count; i++) {
        const node *item = n->as.list.items[i];
        if (item->kind != FE_PICKLE_INT || item->as.integer < 0)
            return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: %s of a tensor: expected ints "
                                 "of 0 or more", item->offset, what);
        out[i] = item->as.integer;
    }
    *out_count = n->as.list.count;
    return NULL;
}

/* The last element that sizes and strides reach must lie in the storage. */
static ts_status check_bounds(const node *n, const rt_storage *storage, rt_dtype dtype,
                              int64_t offset, const int64_t *sizes, const int64_t *strides,
                              size_t rank) {
    int64_t count = 1, last = offset, bytes = 0;
    bool fits = true, is_empty = false;
    for (size_t i = 0; i < rank; i++) {
        is_empty |= sizes[i] == 0;
        fits = fits && (sizes[i] == 0 || ts_mul_i64(count, sizes[i], &count));
    }
    if (!fits || !ts_mul_i64(count, (int64_t)rt_dtype_size(dtype), &bytes))
        return bad(n, "the sizes of a tensor multiply to more than 64 bits");
    for (size_t i = 0; i < rank && !is_empty; i++) {
        int64_t reach = 0;
        if (!ts_mul_i64(sizes[i] - 1, strides[i], &reach) || !ts_add_i64(last, reach, &last))
            return bad(n, "the strides of a tensor reach beyond 64 bits");
    }
    int64_t held = (int64_t)(storage->bytes / rt_dtype_size(dtype));
    if (is_empty ? offset > held : last >= held)
        return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: a tensor reaches element %lld of a "
                             "storage of %lld", n->offset, (long long)last, (long long)held);
    /* Views with stride 0 may be larger than their storage, within reason. */
    if (!is_empty && bytes > ((int64_t)64 << 30) && (size_t)bytes > storage->bytes)
        return bad(n, "an expanded tensor of more than 64 GiB");
    return NULL;
}

/* {'conj': True} and {'neg': True}: the stored bytes are those before. */
static ts_status read_flags(const node *n, bool *out_conj, bool *out_neg) {
    if (n->kind == FE_PICKLE_CALL && n->callee->global == FE_GLOBAL_RESTORE_TYPE_TAG &&
        n->as.list.items[0]->as.list.count == 2)
        n = n->as.list.items[0]->as.list.items[0];
    if (n->kind == FE_PICKLE_NONE)
        return NULL;
    if (n->kind != FE_PICKLE_DICT)
        return bad(n, "metadata of a tensor: expected a dict");
    for (size_t i = 0; i + 1 < n->as.list.count; i += 2) {
        const node *key = n->as.list.items[i], *value = n->as.list.items[i + 1];
        if (key->kind != FE_PICKLE_STR || value->kind != FE_PICKLE_BOOL)
            return bad(key, "metadata of a tensor: expected flags");
        if (ts_str_is(key->as.text, "conj"))
            *out_conj = value->as.integer;
        else if (ts_str_is(key->as.text, "neg"))
            *out_neg = value->as.integer;
        else
            return ts_error_make(TS_ERR_UNSUPPORTED, "offset %zu: metadata '%.*s' of a tensor is "
                                 "not supported", key->offset, TS_STR_ARG(key->as.text));
    }
    return NULL;
}

static ts_status apply_flags(rt_tensor **t, bool conj, bool neg) {
    if (!rt_dtype_is_complex((rt_dtype)(*t)->dtype))
        conj = false;
    if (!conj && !neg)
        return NULL;
    rt_tensor *copy = NULL;
    TS_TRY(rt_tensor_clone(*t, &copy));
    rt_dtype dtype = (rt_dtype)copy->dtype;
    rt_cursor c;
    for (rt_cursor_start(&c, copy); c.left; rt_cursor_next(&c)) {
        if (rt_dtype_is_complex(dtype)) {
            rt_complex128 z = rt_load_complex(dtype, c.data);
            z.im = conj ? -z.im : z.im;
            if (neg)
                z = (rt_complex128){-z.re, -z.im};
            rt_store_complex(dtype, c.data, z);
        } else {
            rt_store_double(dtype, c.data, -rt_load_double(dtype, c.data));
        }
    }
    rt_tensor_release(*t);
    *t = copy;
    return NULL;
}

typedef struct quantizer {
    double scale;
    int64_t zero_point;
    rt_tensor *scales, *zero_points; /* owned; NULL: one for all */
    int64_t axis;
} quantizer;

/* A dense tensor of another dtype. */
static ts_status dense_as(fe_records *r, const node *n, rt_dtype dtype, rt_tensor **out) {
    rt_tensor *t = NULL, *cast = NULL;
    *out = NULL;
    if (n->kind != FE_PICKLE_CALL || n->callee->global != FE_GLOBAL_REBUILD_TENSOR)
        return bad(n, "quantizer of a tensor: expected a tensor");
    TS_TRY(fe_records_tensor(r, n, &t));
    bool is_float = rt_dtype_category((rt_dtype)t->dtype) == 'f';
    ts_status status = rt_tensor_cast(t, dtype == RT_DTYPE_UNKNOWN ? is_float ? RT_float32 : RT_int64
                                                                   : dtype, true, &cast);
    rt_tensor_release(t);
    TS_TRY(status);
    status = rt_tensor_contiguous(cast, out);
    rt_tensor_release(cast);
    return status;
}

/* (per_tensor_affine, scale, zero_point) or (per_channel_affine, scales, zero_points, axis) */
static ts_status read_quantizer(fe_records *r, const node *n, quantizer *out) {
    if (n->kind != FE_PICKLE_TUPLE || n->as.list.count < 3)
        return bad(n, "quantizer of a tensor: expected a tuple of three");
    node *const *items = n->as.list.items;
    int global = items[0]->kind == FE_PICKLE_GLOBAL ? items[0]->global : -1;
    if (global == FE_GLOBAL_PER_TENSOR_AFFINE) {
        if (items[1]->kind != FE_PICKLE_FLOAT || items[2]->kind != FE_PICKLE_INT)
            return bad(n, "quantizer of a tensor: expected a scale and a zero point");
        out->scale = items[1]->as.number;
        out->zero_point = items[2]->as.integer;
        return NULL;
    }
    if (global != FE_GLOBAL_PER_CHANNEL_AFFINE && global != FE_GLOBAL_PER_CHANNEL_AFFINE_FLOAT)
        return bad(n, "quantizer of a tensor: the scheme is not known");
    if (n->as.list.count != 4 || items[3]->kind != FE_PICKLE_INT)
        return bad(n, "quantizer of a tensor: expected scales, zero points and an axis");
    out->axis = items[3]->as.integer;
    TS_TRY(dense_as(r, items[1], RT_float64, &out->scales));
    return dense_as(r, items[2], RT_DTYPE_UNKNOWN, &out->zero_points);
}

static ts_status set_quantizer(const node *call, rt_tensor *t, quantizer *q) {
    t->scale = q->scale;
    t->zero_point = q->zero_point;
    if (!q->scales)
        return NULL;
    if (q->axis < 0 || q->axis >= t->rank || q->scales->rank != 1 || q->zero_points->rank != 1 ||
        q->scales->sizes[0] != t->sizes[q->axis] || q->zero_points->sizes[0] != t->sizes[q->axis])
        return bad(call, "a quantized tensor's channels do not fit its axis");
    rt_tensor_set_channels(t, q->scales, q->zero_points, (int32_t)q->axis);
    q->scales = q->zero_points = NULL;
    return NULL;
}

static ts_status strided_tensor(fe_records *r, const node *call, quantizer *q, rt_tensor **out);

ts_status fe_records_tensor(fe_records *r, const node *call, rt_tensor **out) {
    quantizer q = {.scale = 1};
    ts_status status = strided_tensor(r, call, &q, out);
    if (!status && call->callee->global == FE_GLOBAL_REBUILD_QTENSOR)
        status = set_quantizer(call, *out, &q);
    rt_tensor_release(q.scales);
    rt_tensor_release(q.zero_points);
    if (status) {
        rt_tensor_release(*out);
        *out = NULL;
    }
    return status;
}

static bool has_nibbles(const node *persistent) {
    return persistent->as.list.items[0]->as.list.items[1]->has_nibbles;
}

/* 4-bit integers, the lower half of a byte first, as a dense quint8 tensor of its own. */
static ts_status nibble_tensor(node *const *args, const rt_storage *storage, rt_tensor **out) {
    int64_t sizes[RT_MAX_RANK] = {0}, count = 0;
    size_t rank = 0;
    TS_TRY(int_tuple(args[2], "sizes", sizes, &rank));
    if (args[1]->kind != FE_PICKLE_INT || args[1]->as.integer != 0 ||
        !rt_element_count(sizes, (int)rank, &count) ||
        (uint64_t)count > 2 * (uint64_t)storage->bytes)
        return bad(args[1], "a tensor of 4-bit integers reaches beyond its storage");
    TS_TRY(rt_tensor_make(RT_quint8, sizes, (int)rank, out));
    uint8_t *to = (*out)->data;
    for (int64_t i = 0; i < count; i++)
        to[i] = (((const uint8_t *)storage->data)[i / 2] >> (i % 2 ? 4 : 0)) & 15;
    return NULL;
}

static ts_status strided_tensor(fe_records *r, const node *call, quantizer *q, rt_tensor **out) {
    *out = NULL;
    node *const *args = call->as.list.items[0]->as.list.items;
    size_t count = call->as.list.items[0]->as.list.count;
    if (call->callee->global == FE_GLOBAL_REBUILD_PARAMETER ||
        call->callee->global == FE_GLOBAL_REBUILD_PARAMETER_WITH_STATE) {
        if (count < 2 || args[0]->kind != FE_PICKLE_CALL ||
            args[0]->callee->global != FE_GLOBAL_REBUILD_TENSOR)
            return bad(call, "_rebuild_parameter needs a tensor");
        return fe_records_tensor(r, args[0], out);
    }
    if (call->callee->global == FE_GLOBAL_REBUILD_FROM_TYPE) { /* (function, type, arguments, attributes) */
        if (count < 3 || args[0]->kind != FE_PICKLE_GLOBAL || args[0]->global != FE_GLOBAL_REBUILD_TENSOR ||
            args[2]->kind != FE_PICKLE_TUPLE)
            return bad(call, "_rebuild_from_type_v2 of something that is no plain tensor");
        node *arguments = args[2], plain = {.kind = FE_PICKLE_CALL, .offset = call->offset, .callee = args[0]};
        plain.as.list.items = &arguments;
        plain.as.list.count = 1;
        return fe_records_tensor(r, &plain, out);
    }
    bool is_v1 = call->callee->global == FE_GLOBAL_REBUILD_TENSOR_V1;
    bool is_quantized = call->callee->global == FE_GLOBAL_REBUILD_QTENSOR;
    node *moved[6];
    if (is_quantized) { /* (storage, offset, sizes, strides, quantizer, requires_grad, hooks) */
        if (count != 7)
            return bad(call, "_rebuild_qtensor with a wrong number of arguments");
        TS_TRY(read_quantizer(r, args[4], q));
        for (size_t i = 0; i < 4; i++)
            moved[i] = args[i];
        moved[4] = args[5];
        moved[5] = args[6];
        args = moved;
        count = 6;
    }
    if (is_v1 ? count != 4 : count < 6 || count > 7)
        return bad(call, "_rebuild_tensor_v2 with a wrong number of arguments");
    rt_dtype dtype = RT_DTYPE_UNKNOWN;
    rt_storage *storage = NULL;
    TS_TRY(storage_of(r, args[0], &dtype, &storage));
    if (has_nibbles(args[0]))
        return nibble_tensor(args, storage, out);
    if ((rt_dtype_category(dtype) == 'q') != is_quantized)
        return bad(call, "a quantized tensor's storage and its call do not agree");
    if (args[1]->kind != FE_PICKLE_INT || args[1]->as.integer < 0)
        return bad(args[1], "offset of a tensor: expected an int of 0 or more");
    int64_t sizes[RT_MAX_RANK] = {0}, strides[RT_MAX_RANK] = {0}, offset = args[1]->as.integer;
    size_t rank = 0, stride_count = 0;
    TS_TRY(int_tuple(args[2], "sizes", sizes, &rank));
    TS_TRY(int_tuple(args[3], "strides", strides, &stride_count));
    if (rank != stride_count)
        return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: a tensor with %zu sizes and %zu "
                             "strides", call->offset, rank, stride_count);
    TS_TRY(check_bounds(call, storage, dtype, offset, sizes, strides, rank));
    bool conj = false, neg = false, requires_grad = false;
    if (!is_v1) {
        if (args[4]->kind != FE_PICKLE_BOOL)
            return bad(args[4], "requires_grad of a tensor: expected a bool");
        requires_grad = args[4]->as.integer;
    }
    if (count == 7)
        TS_TRY(read_flags(args[6], &conj, &neg));
    TS_TRY(rt_tensor_view(storage, dtype, offset, sizes, strides, (int)rank, out));
    ts_status status = apply_flags(out, conj, neg);
    if (status) {
        rt_tensor_release(*out);
        *out = NULL;
        return status;
    }
    (*out)->requires_grad = requires_grad;
    return NULL;
}

ts_status fe_records_view(fe_records *r, ts_str name, rt_dtype dtype, int64_t offset,
                          const int64_t *sizes, const int64_t *strides, size_t rank,
                          rt_tensor **out) {
    static const node nowhere = {0};
    fe_zip_member *member = fe_zip_find(r->zip, name);
    rt_storage *storage = NULL;
    *out = NULL;
    if (!member || member->bytes % rt_dtype_size(dtype))
        return ts_error_make(TS_ERR_INVALID_FILE, "record %.*s is missing or of an odd size",
                             TS_STR_ARG(name));
    TS_TRY(member_storage(r, member, dtype, &storage));
    TS_TRY(check_bounds(&nowhere, storage, dtype, offset, sizes, strides, rank));
    return rt_tensor_view(storage, dtype, offset, sizes, strides, (int)rank, out);
}

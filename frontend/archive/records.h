/* frontend/archive/records.h - tensors over the records of a zip archive, or over other bytes.
 *
 * A record is used where it lies in the mapped file; the mapping is counted and goes with the last
 * storage over it. Deflated or badly aligned records are copied once. */
#ifndef FRONTEND_ARCHIVE_RECORDS_H
#define FRONTEND_ARCHIVE_RECORDS_H

#include "frontend/archive/pickle.h"
#include "frontend/archive/zip.h"
#include "runtime/base/file.h"
#include "runtime/values/tensor.h"

typedef struct fe_mapping fe_mapping; /* a counted mapping of a file */
/* Maps a file; one reference. */
ts_status fe_mapping_open(ts_arena *arena, ts_str path, fe_mapping **out) TS_WARN_UNUSED;
ts_str fe_mapping_bytes(const fe_mapping *mapping);
void fe_mapping_release(fe_mapping *mapping); /* NULL is allowed */
void fe_mapping_forget(const fe_mapping *mapping); /* ts_file_forget */
/* A read-only storage over bytes of the mapping; copied where they are not aligned for the dtype. */
ts_status fe_mapping_storage(fe_mapping *mapping, const void *data, size_t bytes, rt_dtype dtype,
                             rt_storage **out) TS_WARN_UNUSED;

/* A storage by key, for persistent ids. The storage stays the reader's. */
typedef struct fe_records {
    fe_mapping *mapping;
    fe_zip *zip;
    ts_str folder;         /* "archive/data/": the key follows */
    rt_storage **storages; /* [zip->count], filled at first use */
    bool is_big_endian; /* the records were written by such a machine: copied, bytes turned round */
    uint8_t *swapped;   /* [zip->count]: the dtype that a record was turned for */
    bool has_foreign_device; /* some tensor was stored for another device than the cpu */
    /* Not a zip: finds the storage of a key instead; may be NULL. */
    ts_status (*find)(void *user, ts_str key, rt_dtype dtype, int64_t count, rt_storage **out);
    void *user;
} fe_records;

void fe_records_release(fe_records *records);
/* A view of the storage that is the whole of a record, by the record's full name. The count of its
 * elements follows from its size. */
ts_status fe_records_view(fe_records *records, ts_str name, rt_dtype dtype, int64_t offset,
                          const int64_t *sizes, const int64_t *strides, size_t rank,
                          rt_tensor **out) TS_WARN_UNUSED;
/* The tensor of a call of _rebuild_tensor_v2 (or, in a state dict, of _rebuild_parameter). */
ts_status fe_records_tensor(fe_records *records, const fe_pickle_node *call, rt_tensor **out)
    TS_WARN_UNUSED;

#endif

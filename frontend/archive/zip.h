/* frontend/archive/zip.h - a strict reader of zip archives in memory. */
#ifndef FRONTEND_ARCHIVE_ZIP_H
#define FRONTEND_ARCHIVE_ZIP_H

#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/status.h"

/* Limits; each is named in the message of its refusal. */
enum { FE_ZIP_MAX_MEMBERS = 65535, FE_ZIP_MAX_NAME = 4096 };

typedef struct fe_zip_member {
    ts_str name;    /* points into the file */
    unsigned method; /* 0 stored, 8 deflated */
    uint32_t crc;
    size_t stored_bytes, bytes; /* in the file; once inflated */
    size_t header_offset, data_offset;
    bool crc_checked;
} fe_zip_member;

typedef struct fe_zip {
    const unsigned char *data; /* borrowed: the whole file */
    size_t length;
    fe_zip_member *members; /* in the order of the central directory */
    size_t count;
    uint32_t *index; /* hash table of names: 0, or member + 1 */
    size_t index_capacity;
    bool ignore_crc;
} fe_zip;

/* Reads the central directory and checks it against the local headers. */
ts_status fe_zip_open(ts_arena *arena, const unsigned char *data, size_t length, bool ignore_crc,
                      fe_zip **out) TS_WARN_UNUSED;
fe_zip_member *fe_zip_find(const fe_zip *zip, ts_str name); /* NULL if absent */
/* The bytes of a member: a view of the file, or inflated into the arena. */
ts_status fe_zip_read(fe_zip *zip, ts_arena *arena, fe_zip_member *member, size_t limit,
                      ts_str *out) TS_WARN_UNUSED;
/* The same into memory of exactly member->bytes. */
ts_status fe_zip_read_into(fe_zip *zip, fe_zip_member *member, void *out_bytes) TS_WARN_UNUSED;
/* Checks a stored member's CRC once. */
ts_status fe_zip_check_crc(fe_zip *zip, fe_zip_member *member) TS_WARN_UNUSED;

#endif

/* frontend/archive/zip.c - zip archives by their central directory (PKWARE APPNOTE 6.3.10).
 *
 * PyTorch writes data descriptors and pads local extra fields, so sizes come from the central
 * directory and data offsets from the local header. What two readers could understand differently
 * is refused: names or methods that differ between the two headers, two members of one name,
 * members that overlap, bytes after the end record. Nothing is ever written to disk, yet names that
 * would be dangerous there are refused, since they are a sign of a forged file. */
#include "frontend/archive/zip.h"

#include <stdlib.h>
#include <zlib.h>

#include "frontend/archive/cursor.h"
#include "frontend/archive/text.h"
#include "runtime/base/checked.h"
#include "runtime/base/hash.h"

enum {
    LOCAL_SIGNATURE = 0x04034b50,
    CENTRAL_SIGNATURE = 0x02014b50,
    END_SIGNATURE = 0x06054b50,
    END64_SIGNATURE = 0x06064b50,
    LOCATOR64_SIGNATURE = 0x07064b50,
    END_BYTES = 22,
    LOCATOR64_BYTES = 20,
    CENTRAL_BYTES = 46,
    FLAG_ENCRYPTED = 1,
    FLAG_DESCRIPTOR = 8,
    FLAG_STRONG_ENCRYPTION = 64,
    FLAG_MASKED = 8192
};

static ts_status bad(const char *text) {
    return ts_error_make(TS_ERR_INVALID_FILE, "not a valid zip archive: %s", text);
}

static ts_status bad_member(ts_str name, const char *text) {
    return ts_error_make(TS_ERR_INVALID_FILE, "%.*s: %s", TS_STR_ARG(name), text);
}

typedef struct directory {
    uint64_t count, offset, bytes;
} directory;

/* Finds the end record: it must end exactly where the file ends (its comment included). */
static ts_status find_end(const unsigned char *data, size_t length, size_t *out_end) {
    if (length < END_BYTES)
        return bad("end record missing: is the file cut short?");
    size_t lowest = length - END_BYTES > 65535 ? length - END_BYTES - 65535 : 0;
    for (size_t at = length - END_BYTES + 1; at-- > lowest;) {
        fe_cursor c = fe_cursor_at(data, length, at);
        if (fe_cursor_u32(&c) != END_SIGNATURE)
            continue;
        c.at = at + 20;
        unsigned comment = fe_cursor_u16(&c);
        if (at + END_BYTES + comment == length) {
            *out_end = at;
            return NULL;
        }
    }
    return bad("end record missing: is the file cut short?");
}

static ts_status read_end64(const unsigned char *data, size_t length, size_t end, directory *d,
                            size_t *out_directory_end) {
    if (end < LOCATOR64_BYTES)
        return bad("zip64 end locator missing");
    fe_cursor c = fe_cursor_at(data, length, end - LOCATOR64_BYTES);
    if (fe_cursor_u32(&c) != LOCATOR64_SIGNATURE)
        return bad("zip64 end locator missing");
    uint32_t disk = fe_cursor_u32(&c);
    uint64_t at = fe_cursor_u64(&c);
    uint32_t disks = fe_cursor_u32(&c);
    if (disk != 0 || disks > 1)
        return bad("archives of several parts are not supported");
    if (at > end - LOCATOR64_BYTES)
        return bad("zip64 end record lies beyond the end");
    c = fe_cursor_at(data, end, (size_t)at);
    if (fe_cursor_u32(&c) != END64_SIGNATURE)
        return bad("zip64 end record missing");
    uint64_t record = fe_cursor_u64(&c);
    if (record < 44 || record > end - LOCATOR64_BYTES - 12 ||
        at + 12 + record != end - LOCATOR64_BYTES)
        return bad("zip64 end record has a wrong size");
    (void)fe_cursor_bytes(&c, 4); /* versions */
    uint32_t this_disk = fe_cursor_u32(&c), start_disk = fe_cursor_u32(&c);
    uint64_t count_here = fe_cursor_u64(&c);
    d->count = fe_cursor_u64(&c);
    d->bytes = fe_cursor_u64(&c);
    d->offset = fe_cursor_u64(&c);
    if (this_disk || start_disk || count_here != d->count)
        return bad("archives of several parts are not supported");
    *out_directory_end = (size_t)at;
    return c.failed ? bad("zip64 end record is cut short") : NULL;
}

static ts_status read_end(const unsigned char *data, size_t length, directory *d,
                          size_t *out_directory_end) {
    size_t end = 0;
    TS_TRY(find_end(data, length, &end));
    fe_cursor c = fe_cursor_at(data, length, end + 4);
    unsigned this_disk = fe_cursor_u16(&c), start_disk = fe_cursor_u16(&c);
    unsigned count_here = fe_cursor_u16(&c);
    d->count = fe_cursor_u16(&c);
    d->bytes = fe_cursor_u32(&c);
    d->offset = fe_cursor_u32(&c);
    *out_directory_end = end;
    bool is_64 = d->count == 0xffff || d->bytes == 0xffffffff || d->offset == 0xffffffff;
    if (is_64) {
        TS_TRY(read_end64(data, length, end, d, out_directory_end));
    } else {
        if (this_disk || start_disk || count_here != d->count)
            return bad("archives of several parts are not supported");
        /* A zip64 record that the end record does not need is written by some tools. */
        fe_cursor l = fe_cursor_at(data, length, end >= 20 ? end - LOCATOR64_BYTES : length);
        if (fe_cursor_u32(&l) == LOCATOR64_SIGNATURE) {
            directory plain = *d;
            TS_TRY(read_end64(data, length, end, d, out_directory_end));
            if (plain.count != d->count || plain.bytes != d->bytes || plain.offset != d->offset)
                return bad("the two end records differ");
        }
    }
    uint64_t directory_end = *out_directory_end;
    if (d->bytes > directory_end || d->offset != directory_end - d->bytes)
        return bad("central directory does not end at the end record");
    if (d->count > FE_ZIP_MAX_MEMBERS)
        return ts_error_make(TS_ERR_INVALID_FILE, "not a valid zip archive: %llu members, at most "
                             "%d are read", (unsigned long long)d->count, FE_ZIP_MAX_MEMBERS);
    if (d->count > d->bytes / CENTRAL_BYTES)
        return bad("central directory is smaller than its count of members");
    return NULL;
}

static ts_status check_name(ts_str name) {
    if (name.length == 0)
        return bad("a member has no name");
    if (name.length > FE_ZIP_MAX_NAME)
        return ts_error_make(TS_ERR_INVALID_FILE, "not a valid zip archive: a member's name has %zu "
                             "bytes, at most %d are read", name.length, FE_ZIP_MAX_NAME);
    if (!fe_text_is_utf8(name))
        return bad("a member's name is not UTF-8");
    if (fe_text_has_control(name))
        return bad("a member's name holds a control character");
    if (name.data[0] == '/')
        return bad_member(name, "absolute name of a member");
    if (memchr(name.data, '\\', name.length))
        return bad_member(name, "backslash in a member's name");
    if (name.length > 1 && name.data[1] == ':')
        return bad_member(name, "drive letter in a member's name");
    for (size_t start = 0; start <= name.length;) {
        const char *slash = memchr(name.data + start, '/', name.length - start);
        size_t end = slash ? (size_t)(slash - name.data) : name.length;
        ts_str part = {name.data + start, end - start};
        if (ts_str_is(part, "..") || ts_str_is(part, ".") || (part.length == 0 && slash))
            return bad_member(name, "member's name has an empty, '.' or '..' part");
        start = end + 1;
    }
    return NULL;
}

/* The 64-bit sizes of extra field 1, in their fixed order, for those that are all ones. */
static ts_status read_extra64(ts_str name, const unsigned char *extra, size_t length,
                              uint64_t *bytes, uint64_t *stored, uint64_t *offset) {
    fe_cursor c = fe_cursor_at(extra, length, 0);
    bool needed = *bytes == 0xffffffff || *stored == 0xffffffff ||
                  (offset && *offset == 0xffffffff);
    while (c.at < length && needed) {
        unsigned tag = fe_cursor_u16(&c);
        size_t size = fe_cursor_u16(&c);
        const unsigned char *field = fe_cursor_bytes(&c, size);
        if (!field)
            break;
        if (tag != 1)
            continue;
        fe_cursor f = fe_cursor_at(field, size, 0);
        if (*bytes == 0xffffffff)
            *bytes = fe_cursor_u64(&f);
        if (*stored == 0xffffffff)
            *stored = fe_cursor_u64(&f);
        if (offset && *offset == 0xffffffff)
            *offset = fe_cursor_u64(&f);
        return f.failed ? bad_member(name, "zip64 field is cut short") : NULL;
    }
    return needed ? bad_member(name, "zip64 field missing") : NULL;
}

/* Checks the local header against what the central directory said; sets data_offset. */
static ts_status read_local(fe_zip *zip, fe_zip_member *m, unsigned flags, size_t limit) {
    fe_cursor c = fe_cursor_at(zip->data, limit, m->header_offset);
    if (fe_cursor_u32(&c) != LOCAL_SIGNATURE)
        return bad_member(m->name, "local header missing");
    (void)fe_cursor_u16(&c);
    unsigned local_flags = fe_cursor_u16(&c), method = fe_cursor_u16(&c);
    (void)fe_cursor_u32(&c); /* time, date */
    uint32_t crc = fe_cursor_u32(&c);
    uint64_t stored = fe_cursor_u32(&c), bytes = fe_cursor_u32(&c);
    size_t name_length = fe_cursor_u16(&c), extra_length = fe_cursor_u16(&c);
    const unsigned char *name = fe_cursor_bytes(&c, name_length);
    const unsigned char *extra = fe_cursor_bytes(&c, extra_length);
    if (c.failed)
        return bad_member(m->name, "local header lies beyond the central directory");
    if (!ts_str_equal((ts_str){(const char *)name, name_length}, m->name))
        return bad_member(m->name, "local and central header name different members");
    if (method != m->method || local_flags != flags)
        return bad_member(m->name, "local and central header differ in method or flags");
    bool deferred = flags & FLAG_DESCRIPTOR;
    if (bytes == 0xffffffff || stored == 0xffffffff)
        TS_TRY(read_extra64(m->name, extra, extra_length, &bytes, &stored, NULL));
    if (!(deferred && crc == 0) && crc != m->crc)
        return bad_member(m->name, "local and central header differ in the CRC");
    if (!(deferred && stored == 0 && bytes == 0) &&
        (stored != m->stored_bytes || bytes != m->bytes))
        return bad_member(m->name, "local and central header differ in a size");
    m->data_offset = c.at;
    if (m->stored_bytes > limit - c.at)
        return bad_member(m->name, "data lies beyond the central directory: is the file cut short?");
    return NULL;
}

static ts_status read_central(fe_zip *zip, fe_cursor *c, fe_zip_member *m, size_t limit) {
    if (fe_cursor_u32(c) != CENTRAL_SIGNATURE)
        return bad("central directory is damaged");
    unsigned made_by = fe_cursor_u16(c);
    (void)fe_cursor_u16(c);
    unsigned flags = fe_cursor_u16(c);
    m->method = fe_cursor_u16(c);
    (void)fe_cursor_u32(c);
    m->crc = fe_cursor_u32(c);
    uint64_t stored = fe_cursor_u32(c), bytes = fe_cursor_u32(c);
    size_t name_length = fe_cursor_u16(c), extra_length = fe_cursor_u16(c);
    size_t comment_length = fe_cursor_u16(c);
    unsigned disk = fe_cursor_u16(c);
    (void)fe_cursor_u16(c);
    uint32_t attributes = fe_cursor_u32(c);
    uint64_t offset = fe_cursor_u32(c);
    const unsigned char *name = fe_cursor_bytes(c, name_length);
    const unsigned char *extra = fe_cursor_bytes(c, extra_length);
    (void)fe_cursor_bytes(c, comment_length);
    if (c->failed)
        return bad("central directory is cut short");
    m->name = (ts_str){(const char *)name, name_length};
    TS_TRY(check_name(m->name));
    TS_TRY(read_extra64(m->name, extra, extra_length, &bytes, &stored, &offset));
    if (disk != 0)
        return bad("archives of several parts are not supported");
    if (flags & (FLAG_ENCRYPTED | FLAG_STRONG_ENCRYPTION | FLAG_MASKED))
        return bad_member(m->name, "encrypted members are not supported");
    if (m->method != 0 && m->method != 8)
        return ts_error_make(TS_ERR_INVALID_FILE, "%.*s: compression method %u, expected 0 (stored) "
                             "or 8 (deflated)", TS_STR_ARG(m->name), m->method);
    if (made_by >> 8 == 3 && (attributes >> 16 & 0170000) == 0120000)
        return bad_member(m->name, "symbolic links are not supported");
    if (stored > zip->length || offset > limit)
        return bad_member(m->name, "lies beyond the end: is the file cut short?");
    if (m->method == 0 && stored != bytes)
        return bad_member(m->name, "a stored member has two sizes");
    /* Deflate cannot do better than 1032 to 1. */
    if (m->method == 8 && bytes / 1032 > stored + 1)
        return bad_member(m->name, "claims to inflate to more than its data can");
    m->stored_bytes = (size_t)stored;
    m->bytes = (size_t)bytes;
    m->header_offset = (size_t)offset;
    return read_local(zip, m, flags, limit);
}

static int by_offset(const void *a, const void *b) {
    const fe_zip_member *x = *(fe_zip_member *const *)a, *y = *(fe_zip_member *const *)b;
    return x->header_offset < y->header_offset ? -1 : x->header_offset > y->header_offset;
}

static ts_status check_overlaps(ts_arena *arena, fe_zip *zip) {
    fe_zip_member **sorted = TS_NEW_ARRAY(arena, fe_zip_member *, zip->count);
    for (size_t i = 0; i < zip->count; i++)
        sorted[i] = &zip->members[i];
    if (zip->count)
        qsort(sorted, zip->count, sizeof *sorted, by_offset);
    for (size_t i = 1; i < zip->count; i++)
        if (sorted[i]->header_offset < sorted[i - 1]->data_offset + sorted[i - 1]->stored_bytes)
            return bad_member(sorted[i]->name, "overlaps another member");
    return NULL;
}

static size_t slot_of(const fe_zip *zip, ts_str name) {
    size_t mask = zip->index_capacity - 1;
    size_t at = (size_t)ts_hash64(name.data, name.length, 0) & mask;
    while (zip->index[at] && !ts_str_equal(zip->members[zip->index[at] - 1].name, name))
        at = (at + 1) & mask;
    return at;
}

ts_status fe_zip_open(ts_arena *arena, const unsigned char *data, size_t length, bool ignore_crc,
                      fe_zip **out) {
    *out = NULL;
    directory d = {0};
    size_t end = 0;
    TS_TRY(read_end(data, length, &d, &end));
    fe_zip *zip = TS_NEW(arena, fe_zip);
    *zip = (fe_zip){.data = data, .length = length, .ignore_crc = ignore_crc};
    zip->members = TS_NEW_ARRAY(arena, fe_zip_member, (size_t)d.count);
    zip->index_capacity = 16;
    while (zip->index_capacity < 2 * d.count)
        zip->index_capacity *= 2;
    zip->index = TS_NEW_ARRAY(arena, uint32_t, zip->index_capacity);
    fe_cursor c = fe_cursor_at(data, end, (size_t)d.offset);
    for (size_t i = 0; i < d.count; i++) {
        fe_zip_member *m = &zip->members[i];
        TS_TRY(read_central(zip, &c, m, (size_t)d.offset));
        size_t at = slot_of(zip, m->name);
        if (zip->index[at])
            return bad_member(m->name, "two members have this name");
        zip->index[at] = (uint32_t)i + 1;
        zip->count = i + 1;
    }
    if (c.at != end)
        return bad("central directory is larger than its members");
    TS_TRY(check_overlaps(arena, zip));
    *out = zip;
    return NULL;
}

fe_zip_member *fe_zip_find(const fe_zip *zip, ts_str name) {
    uint32_t found = zip->index[slot_of(zip, name)];
    return found ? &zip->members[found - 1] : NULL;
}

static uint32_t crc_of(const void *data, size_t length) {
    const unsigned char *p = data;
    uLong crc = crc32(0, NULL, 0);
    while (length) {
        uInt n = length > 1u << 30 ? 1u << 30 : (uInt)length;
        crc = crc32(crc, p, n);
        p += n;
        length -= n;
    }
    return (uint32_t)crc;
}

static ts_status check_crc(const fe_zip *zip, fe_zip_member *m, const void *bytes) {
    if (zip->ignore_crc || m->crc_checked)
        return NULL;
    uint32_t crc = crc_of(bytes, m->bytes);
    if (crc != m->crc)
        return ts_error_make(TS_ERR_INVALID_FILE, "%.*s: CRC 0x%08x stored, 0x%08x computed",
                             TS_STR_ARG(m->name), m->crc, crc);
    m->crc_checked = true;
    return NULL;
}

ts_status fe_zip_check_crc(fe_zip *zip, fe_zip_member *m) {
    return m->method == 0 ? check_crc(zip, m, zip->data + m->data_offset) : NULL;
}

/* zlib takes 32-bit counts: data passes in pieces. */
static int inflate_all(z_stream *z, const unsigned char *in, size_t in_left, unsigned char *out,
                       size_t *out_left) {
    const size_t piece = (size_t)1 << 30;
    union {
        const unsigned char *in;
        unsigned char *out;
    } cast = {.in = in};
    z->next_in = cast.out;
    z->next_out = out;
    int rc = Z_OK;
    while (rc == Z_OK) {
        if (z->avail_in == 0) {
            z->avail_in = (uInt)(in_left > piece ? piece : in_left);
            in_left -= z->avail_in;
        }
        if (z->avail_out == 0) {
            z->avail_out = (uInt)(*out_left > piece ? piece : *out_left);
            *out_left -= z->avail_out;
        }
        rc = inflate(z, in_left ? Z_NO_FLUSH : Z_FINISH);
        if (rc == Z_BUF_ERROR && (z->avail_in == 0 && in_left))
            rc = Z_OK;
        else if (rc == Z_BUF_ERROR && z->avail_out == 0 && *out_left)
            rc = Z_OK;
    }
    *out_left += z->avail_out;
    if (rc == Z_STREAM_END && (in_left || z->avail_in))
        rc = Z_DATA_ERROR; /* bytes after the end of the stream */
    return rc;
}

ts_status fe_zip_read_into(fe_zip *zip, fe_zip_member *m, void *out_bytes) {
    const unsigned char *in = zip->data + m->data_offset;
    if (m->method == 0) {
        TS_TRY(check_crc(zip, m, in));
        if (m->bytes)
            memcpy(out_bytes, in, m->bytes);
        return NULL;
    }
    z_stream z = {0};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
        return ts_no_memory();
    /* One byte more than promised tells a stream that is too long from one that fits. */
    unsigned char nothing = 0;
    size_t left = m->bytes;
    int rc = inflate_all(&z, in, m->stored_bytes, m->bytes ? out_bytes : &nothing, &left);
    inflateEnd(&z);
    if (rc == Z_MEM_ERROR)
        return ts_no_memory();
    if (rc != Z_STREAM_END || left != 0)
        return ts_error_make(TS_ERR_INVALID_FILE, "%.*s: deflated data is damaged or not of the "
                             "promised %zu bytes", TS_STR_ARG(m->name), m->bytes);
    return check_crc(zip, m, out_bytes);
}

ts_status fe_zip_read(fe_zip *zip, ts_arena *arena, fe_zip_member *m, size_t limit, ts_str *out) {
    *out = (ts_str){"", 0};
    if (m->bytes > limit)
        return ts_error_make(TS_ERR_INVALID_FILE, "%.*s: %zu bytes, at most %zu are read",
                             TS_STR_ARG(m->name), m->bytes, limit);
    if (m->method == 0) {
        TS_TRY(fe_zip_check_crc(zip, m));
        *out = (ts_str){(const char *)zip->data + m->data_offset, m->bytes};
        return NULL;
    }
    if (m->bytes == SIZE_MAX)
        return ts_no_memory();
    char *bytes = ts_arena_alloc(arena, m->bytes + 1);
    TS_TRY(fe_zip_read_into(zip, m, bytes));
    *out = (ts_str){bytes, m->bytes};
    return NULL;
}

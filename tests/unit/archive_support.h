/* tests/unit/archive_support.h - zip archives made in memory, and an arena that fails the test. */
#ifndef TESTS_UNIT_ARCHIVE_SUPPORT_H
#define TESTS_UNIT_ARCHIVE_SUPPORT_H

#include <check.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "runtime/base/arena.h"
#include "runtime/base/buffer.h"
#include "runtime/base/file.h"

static jmp_buf test_handler;
static ts_arena *test_arena;

static inline void open_arena(void) {
    test_arena = ts_arena_create(0);
    ts_arena_set_handler(test_arena, &test_handler);
    if (setjmp(test_handler))
        ck_abort_msg("out of memory");
}

static inline void close_arena(void) { ts_arena_release(test_arena); }

typedef struct zip_maker {
    ts_buffer file, directory;
    unsigned count;
} zip_maker;

static inline void put(ts_buffer *b, uint64_t n, int bytes) {
    for (int i = 0; i < bytes; i++)
        ts_buffer_char(b, (char)(n >> 8 * i & 255));
}

typedef struct zip_lies { /* what to write instead of the truth */
    bool deflate, descriptor;
    uint32_t crc_xor;
    const char *local_name;
    int64_t bytes_more; /* added to the uncompressed size */
} zip_lies;

static inline void zip_add_lying(zip_maker *z, const char *name, const void *data, size_t length,
                                 zip_lies lies) {
    unsigned char *packed = NULL;
    const void *stored = data;
    size_t stored_length = length;
    if (lies.deflate) {
        z_stream s = {0};
        packed = malloc(compressBound((uLong)length) + 64);
        deflateInit2(&s, 9, Z_DEFLATED, -15, 8, 0);
        union {
            const void *in;
            void *out;
        } cast = {.in = data};
        s.next_in = cast.out;
        s.avail_in = (uInt)length;
        s.next_out = packed;
        s.avail_out = (uInt)compressBound((uLong)length) + 64;
        deflate(&s, Z_FINISH);
        stored_length = s.total_out;
        stored = packed;
        deflateEnd(&s);
    }
    uint32_t crc = (uint32_t)crc32(0, data, (uInt)length) ^ lies.crc_xor;
    const char *local = lies.local_name ? lies.local_name : name;
    size_t offset = z->file.length, bytes = (size_t)((int64_t)length + lies.bytes_more);
    unsigned flags = lies.descriptor ? 8 : 0, method = lies.deflate ? 8 : 0;
    put(&z->file, 0x04034b50, 4);
    put(&z->file, 20, 2);
    put(&z->file, flags, 2);
    put(&z->file, method, 2);
    put(&z->file, 0, 4);
    put(&z->file, lies.descriptor ? 0 : crc, 4);
    put(&z->file, lies.descriptor ? 0 : stored_length, 4);
    put(&z->file, lies.descriptor ? 0 : bytes, 4);
    put(&z->file, strlen(local), 2);
    size_t extra = 64 - (z->file.length + 2 + strlen(local) + 4) % 64;
    put(&z->file, extra + 4, 2);
    ts_buffer_text(&z->file, local);
    put(&z->file, 0x4246, 2); /* "FB": padding, as PyTorch writes it */
    put(&z->file, extra, 2);
    for (size_t i = 0; i < extra; i++)
        ts_buffer_char(&z->file, 'Z');
    ts_buffer_append(&z->file, stored, stored_length);
    ts_buffer *d = &z->directory;
    put(d, 0x02014b50, 4);
    put(d, 20, 2);
    put(d, 20, 2);
    put(d, flags, 2);
    put(d, method, 2);
    put(d, 0, 4);
    put(d, crc, 4);
    put(d, stored_length, 4);
    put(d, bytes, 4);
    put(d, strlen(name), 2);
    put(d, 0, 2);
    put(d, 0, 2);
    put(d, 0, 2);
    put(d, 0, 2);
    put(d, 0, 4);
    put(d, offset, 4);
    ts_buffer_text(d, name);
    z->count++;
    free(packed);
}

static inline void zip_add(zip_maker *z, const char *name, const void *data, size_t length) {
    zip_add_lying(z, name, data, length, (zip_lies){0});
}

static inline ts_str zip_end(zip_maker *z) {
    size_t offset = z->file.length, bytes = z->directory.length;
    ts_buffer_append(&z->file, z->directory.data, bytes);
    put(&z->file, 0x06054b50, 4);
    put(&z->file, 0, 4);
    put(&z->file, z->count, 2);
    put(&z->file, z->count, 2);
    put(&z->file, bytes, 4);
    put(&z->file, offset, 4);
    put(&z->file, 0, 2);
    ck_assert(!z->file.failed && !z->directory.failed);
    return (ts_str){z->file.data, z->file.length};
}

static inline void zip_free(zip_maker *z) {
    ts_buffer_deinit(&z->file);
    ts_buffer_deinit(&z->directory);
}

static inline void refused(ts_status status, const char *part) {
    ck_assert_ptr_nonnull(status);
    ck_assert_msg(strstr(ts_status_message(status), part) != NULL, "'%s' lacks '%s'",
                  ts_status_message(status), part);
    ts_status_release(status);
}

static inline void succeeds(ts_status status) {
    ck_assert_msg(status == NULL, "%s (%s)", ts_status_message(status), ts_status_trail(status));
}

/* A file in the folder of temporary files; the caller unlinks it. */
static inline void write_temporary(char *path, size_t size, ts_str bytes) {
    const char *folder = getenv("TMPDIR");
    static int count;
    snprintf(path, size, "%s/archive_test_%ld_%d", folder ? folder : "/tmp", (long)getpid(), count++);
    ts_file_part part = {.data = bytes.data, .length = bytes.length};
    succeeds(ts_file_write(path, &part, 1));
}

#endif

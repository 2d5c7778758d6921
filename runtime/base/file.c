/* runtime/base/file.c - files through POSIX calls. */
#define _GNU_SOURCE
#include "runtime/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 2 << 20 };

static ts_status io_error(const char *path, const char *what) {
    return ts_error_make(TS_ERR_IO, "%s: cannot %s: %s", path, what, strerror(errno));
}

ts_status ts_file_map(const char *path, ts_mapped_file *out_file) {
    *out_file = (ts_mapped_file){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) /* a FIFO must not block */;
    if (fd < 0)
        return io_error(path, "open");
    ts_status status = NULL;
    struct stat info;
    if (fstat(fd, &info) != 0) {
        status = io_error(path, "read");
    } else if (!S_ISREG(info.st_mode)) {
        status = ts_error_make(TS_ERR_IO, "%s: expected a regular file", path);
    } else if (info.st_size > 0) {
        void *p = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED)
            status = io_error(path, "map");
        else
            *out_file = (ts_mapped_file){p, (size_t)info.st_size};
    }
    close(fd);
    return status;
}

void ts_file_unmap(ts_mapped_file *file) {
    if (file->data) {
        union {
            const unsigned char *in;
            void *out;
        } cast = {.in = file->data};
        munmap(cast.out, file->length);
    }
    *file = (ts_mapped_file){0};
}

void ts_file_forget(const ts_mapped_file *file) {
    union {
        const unsigned char *in;
        void *out;
    } cast = {.in = file->data};
    if (file->data) /* of a shared mapping, so nothing is lost */
        madvise(cast.out, file->length, MADV_DONTNEED);
}

bool ts_write_all(int fd, const char *data, size_t length) {
    while (length) {
        ssize_t n = write(fd, data, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data += n;
        length -= (size_t)n;
    }
    return true;
}

/* The parts one after the other, in pieces that end at multiples of PIECE bytes of the file: the page cache
 * then holds it in large pages, which whoever maps the file reads up to a third faster. */
static bool write_parts(int fd, const ts_file_part *parts, size_t count) {
    char *piece = malloc(PIECE);
    bool done = piece != NULL;
    size_t filled = 0;
    for (size_t i = 0; i < count && done; i++) {
        const char *data = parts[i].data;
        size_t left = parts[i].length;
        while (left && done) {
            size_t n = left < PIECE - filled ? left : PIECE - filled;
            memcpy(piece + filled, data, n); /* also what is mapped: a write that waits for its source is cut short */
            filled += n;
            data += n;
            left -= n;
            if (filled == PIECE) {
                done = ts_write_all(fd, piece, PIECE);
                filled = 0;
            }
        }
        if (parts[i].is_mapped) {
            ts_mapped_file file = {parts[i].data, parts[i].length};
            ts_file_forget(&file);
        }
    }
    done = done && ts_write_all(fd, piece, filled);
    free(piece);
    return done;
}

/* The descriptor that a path like /dev/stdout names, or -1. Opened anew it would write from the file's start. */
static int open_descriptor(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        size_t length = strlen(folders[i]);
        char *end;
        if (strncmp(path, folders[i], length) != 0 || path[length] < '0' || path[length] > '9')
            continue;
        long number = strtol(path + length, &end, 10);
        return *end == '\0' && number <= INT_MAX ? (int)number : -1;
    }
    return -1;
}

/* A device, a pipe: nothing that could be replaced by renaming. */
static ts_status write_in_place(const char *path, const ts_file_part *parts, size_t count) {
    int named = open_descriptor(path);
    fflush(stdout); /* what was printed before stands before */
    int fd = named >= 0 ? fcntl(named, F_DUPFD_CLOEXEC, 0) : open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return io_error(path, "open");
    ts_status status = write_parts(fd, parts, count) ? NULL : io_error(path, "write");
    if (close(fd) != 0 && !status)
        status = io_error(path, "write");
    return status;
}

ts_status ts_file_write(const char *path, const ts_file_part *parts, size_t count) {
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        if (S_ISDIR(info.st_mode))
            return ts_error_make(TS_ERR_IO, "%s: cannot write: it is a folder", path);
        return write_in_place(path, parts, count);
    }
    /* /dev/stdout may lead to a regular file: renaming over it would replace the device's entry. */
    if (strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0)
        return write_in_place(path, parts, count);
    size_t size = strlen(path) + 40;
    char *temporary = malloc(size);
    if (!temporary)
        return ts_no_memory();
    /* With the process in the name: whoever ends the process knows which are its own. */
    snprintf(temporary, size, "%s.tmp.%ld.XXXXXX", path, (long)getpid());
    ts_status status = NULL;
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        status = io_error(path, "write");
        goto done;
    }
    if (!write_parts(fd, parts, count))
        status = io_error(path, "write");
    mode_t mask = umask(0);
    umask(mask);
    if (!status && (fchmod(fd, 0666 & ~mask) != 0 || fsync(fd) != 0))
        status = io_error(path, "write");
    if (close(fd) != 0 && !status)
        status = io_error(path, "write");
    if (!status && rename(temporary, path) != 0)
        status = io_error(path, "rename to");
    if (status)
        unlink(temporary);
done:
    free(temporary);
    return status;
}

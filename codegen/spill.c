/* codegen/spill.c - memory that lies in a file without a name. */
#define _GNU_SOURCE
#include "codegen/spill.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LEAST_BYTES = 256 << 10, PAGE = 4096 };

typedef struct area {
    char *data;
    size_t bytes;
    struct area *next;
} area;

struct cg_spill {
    int file;
    off_t length;
    area *areas;
};

cg_spill *cg_spill_make(const char *output) {
    const char *slash = output ? strrchr(output, '/') : NULL;
    if (!output || strncmp(output, "/dev/", 5) == 0)
        return NULL;
    char *folder = slash ? strndup(output, (size_t)(slash - output) + 1) : strdup(".");
    cg_spill *spill = calloc(1, sizeof *spill);
    if (spill && folder)
        spill->file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (spill && (!folder || spill->file < 0)) {
        free(spill);
        spill = NULL;
    }
    free(folder);
    return spill;
}

void cg_spill_release(cg_spill *spill) {
    if (!spill)
        return;
    for (area *a = spill->areas, *next; a; a = next) {
        next = a->next;
        munmap(a->data, a->bytes);
        free(a);
    }
    close(spill->file);
    free(spill);
}

void *cg_spill_alloc(cg_spill *spill, size_t bytes) {
    if (!spill || bytes < LEAST_BYTES || bytes > SIZE_MAX / 2)
        return NULL;
    size_t rounded = (bytes + PAGE - 1) / PAGE * PAGE;
    area *a = calloc(1, sizeof *a);
    /* Room is asked for first: a full disk must be no signal later. */
    if (!a || posix_fallocate(spill->file, spill->length, (off_t)rounded) != 0) {
        free(a);
        return NULL;
    }
    a->data = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_SHARED, spill->file, spill->length);
    if (a->data == MAP_FAILED) {
        free(a);
        return NULL;
    }
    a->bytes = rounded;
    a->next = spill->areas;
    spill->areas = a;
    spill->length += (off_t)rounded;
    return a->data;
}

bool cg_spill_has(const cg_spill *spill, const void *data) {
    for (const area *a = spill ? spill->areas : NULL; a; a = a->next)
        if (a->data == data)
            return true;
    return false;
}

void cg_spill_forget(const cg_spill *spill, const void *data) {
    for (const area *a = spill ? spill->areas : NULL; a; a = a->next)
        if (a->data == data) {
            madvise(a->data, a->bytes, MADV_DONTNEED);
            return;
        }
}

void cg_spill_forget_all(const cg_spill *spill) {
    for (const area *a = spill ? spill->areas : NULL; a; a = a->next)
        madvise(a->data, a->bytes, MADV_DONTNEED);
}

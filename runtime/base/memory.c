/* runtime/base/memory.c - blocks of memory for numbers. */
#define _GNU_SOURCE
#include "runtime/base/memory.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "runtime/base/checked.h"

enum { ALIGN = 64, HUGE_PAGE = 2 << 20, LARGE_BLOCK = 2 * HUGE_PAGE };

void *ts_memory_make(size_t bytes) {
    size_t align = bytes >= LARGE_BLOCK ? HUGE_PAGE : ALIGN, room;
    if (!ts_align_up(bytes ? bytes : 1, align, &room))
        return NULL;
    void *p = aligned_alloc(align, room);
    if (p && align == HUGE_PAGE)
        madvise(p, room, MADV_HUGEPAGE); /* a wish: small pages work too */
    return p;
}

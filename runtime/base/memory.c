/* runtime/base/memory.c - blocks of memory for numbers. */
#define _GNU_SOURCE
#include "runtime/base/memory.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { ALIGN = 64, HUGE_PAGE = 2 << 20 };

void *ts_memory_make(size_t bytes) {
    void *p = NULL;
    if (posix_memalign(&p, bytes >= HUGE_PAGE ? HUGE_PAGE : ALIGN, bytes ? bytes : 1) != 0)
        return NULL;
    if (bytes >= HUGE_PAGE) /* a wish: small pages work too, and what is less than a large one stays small */
        madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

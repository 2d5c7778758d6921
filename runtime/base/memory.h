/* runtime/base/memory.h - blocks of memory for numbers. */
#ifndef RUNTIME_BASE_MEMORY_H
#define RUNTIME_BASE_MEMORY_H

#include <stddef.h>

/* At least `bytes`, at a multiple of 64; NULL: there are not so many. For free(). Large blocks lie at a multiple
 * of 2 MB and ask for pages of that size: walks over small pages wait for translations of addresses, twice as
 * long in a virtual machine (a chain of elementwise operators there: 1.2 times as fast). */
void *ts_memory_make(size_t bytes);

#endif

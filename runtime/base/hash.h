/* runtime/base/hash.h - XXH64 (Yann Collet's specification, version 0.1.1), for checksums and
 * tables. Not for secrets. */
#ifndef RUNTIME_BASE_HASH_H
#define RUNTIME_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t ts_hash64(const void *data, size_t length, uint64_t seed);

#endif

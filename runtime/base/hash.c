/* runtime/base/hash.c - XXH64 as its specification describes it. */
#include "runtime/base/hash.h"

#include <string.h>

static const uint64_t P1 = 0x9E3779B185EBCA87u, P2 = 0xC2B2AE3D27D4EB4Fu,
                      P3 = 0x165667B19E3779F9u, P4 = 0x85EBCA77C2B2AE63u,
                      P5 = 0x27D4EB2F165667C5u;

static uint64_t rotl(uint64_t x, int r) { return (x << r) | (x >> (64 - r)); }

static uint64_t read64(const unsigned char *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static uint64_t round1(uint64_t acc, uint64_t lane) { return rotl(acc + lane * P2, 31) * P1; }
static uint64_t merge(uint64_t acc, uint64_t v) { return (acc ^ round1(0, v)) * P1 + P4; }

uint64_t ts_hash64(const void *data, size_t length, uint64_t seed) {
    const unsigned char *p = data;
    size_t left = length;
    uint64_t h;
    if (length >= 32) {
        uint64_t a = seed + P1 + P2, b = seed + P2, c = seed, d = seed - P1;
        for (; left >= 32; left -= 32, p += 32) {
            a = round1(a, read64(p));
            b = round1(b, read64(p + 8));
            c = round1(c, read64(p + 16));
            d = round1(d, read64(p + 24));
        }
        h = rotl(a, 1) + rotl(b, 7) + rotl(c, 12) + rotl(d, 18);
        h = merge(merge(merge(merge(h, a), b), c), d);
    } else {
        h = seed + P5;
    }
    h += length;
    for (; left >= 8; left -= 8, p += 8)
        h = rotl(h ^ round1(0, read64(p)), 27) * P1 + P4;
    if (left >= 4) {
        uint32_t v;
        memcpy(&v, p, 4);
        h = rotl(h ^ (v * P1), 23) * P2 + P3;
        p += 4;
        left -= 4;
    }
    for (; left; left--, p++)
        h = rotl(h ^ (*p * P5), 11) * P1;
    h = (h ^ (h >> 33)) * P2;
    h = (h ^ (h >> 29)) * P3;
    return h ^ (h >> 32);
}

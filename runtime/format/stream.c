/* runtime/format/stream.c - numbers and strings to bytes and back. */
#include "runtime/format/tsm.h"

static const unsigned char *take(tsm_reader *r, size_t n) {
    if (r->failed || r->length - r->at < n) {
        r->failed = true;
        return NULL;
    }
    const unsigned char *p = r->data + r->at;
    r->at += n;
    return p;
}

uint8_t tsm_read_u8(tsm_reader *r) {
    const unsigned char *p = take(r, 1);
    return p ? *p : 0;
}

uint32_t tsm_read_u32(tsm_reader *r) {
    const unsigned char *p = take(r, 4);
    uint32_t v = 0;
    for (int i = 0; p && i < 4; i++)
        v |= (uint32_t)p[i] << (8 * i);
    return v;
}

uint64_t tsm_read_u64(tsm_reader *r) {
    uint64_t low = tsm_read_u32(r);
    return low | (uint64_t)tsm_read_u32(r) << 32;
}

int64_t tsm_read_i64(tsm_reader *r) { return (int64_t)tsm_read_u64(r); }

double tsm_read_f64(tsm_reader *r) {
    uint64_t bits = tsm_read_u64(r);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

ts_str tsm_read_str(tsm_reader *r) {
    uint32_t length = tsm_read_u32(r);
    const unsigned char *p = take(r, (size_t)length + 1);
    if (!p || p[length] != 0) {
        r->failed = true;
        return TS_STR("");
    }
    return (ts_str){(const char *)p, length};
}

uint32_t tsm_read_count(tsm_reader *r, size_t bytes) {
    uint32_t count = tsm_read_u32(r);
    if (bytes && count > (r->length - r->at) / bytes) {
        r->failed = true;
        return 0;
    }
    return count;
}

void tsm_put_u8(ts_buffer *b, uint8_t v) { ts_buffer_append(b, &v, 1); }

void tsm_put_u32(ts_buffer *b, uint32_t v) {
    unsigned char bytes[4];
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(v >> (8 * i));
    ts_buffer_append(b, bytes, sizeof bytes);
}

void tsm_put_u64(ts_buffer *b, uint64_t v) {
    tsm_put_u32(b, (uint32_t)v);
    tsm_put_u32(b, (uint32_t)(v >> 32));
}

void tsm_put_i64(ts_buffer *b, int64_t v) { tsm_put_u64(b, (uint64_t)v); }

void tsm_put_f64(ts_buffer *b, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    tsm_put_u64(b, bits);
}

void tsm_put_str(ts_buffer *b, ts_str s) {
    tsm_put_u32(b, (uint32_t)s.length);
    ts_buffer_append(b, s.data, s.length);
    tsm_put_u8(b, 0);
}

/* codegen/weight_formats.c - packs constant matrices in panels, rounding them where asked.
 *
 * int8: one scale a column, the largest magnitude / 127. int4: one scale for 32 elements of a
 * column; the element of largest magnitude is -8 (the range is one longer there), and a few smaller
 * scales are tried, since clipping one outlier may cost less than coarse steps for the others. */
#include "codegen/weight_formats.h"

#include <math.h>
#include <string.h>

#include "runtime/base/hash.h"

static const struct {
    int step, step_bytes;
} infos[] = {[KN_FLOAT32] = {1, 64},
             [KN_BFLOAT16] = {2, 64},
             [KN_BFLOAT16_DOT] = {2, 64},
             [KN_INT8] = {1, 16},
             [KN_INT4] = {8, 64}};

int kn_format_step(kn_format f) { return infos[f].step; }
int kn_format_step_bytes(kn_format f) { return infos[f].step_bytes; }

int64_t kn_format_padded_k(kn_format f, int64_t k) {
    int64_t step = infos[f].step;
    return (k + step - 1) / step * step;
}

static int64_t round_up_64(int64_t n) { return (n + 63) / 64 * 64; }

static int64_t element_bytes(kn_format f, int64_t k) { /* of a panel, without scales */
    return round_up_64(kn_format_padded_k(f, k) / infos[f].step * infos[f].step_bytes);
}

int64_t kn_format_panel_bytes(kn_format f, int64_t k) {
    int64_t scales = 0;
    if (f == KN_INT8)
        scales = KN_PANEL * 4;
    if (f == KN_INT4)
        scales = round_up_64((kn_format_padded_k(f, k) + KN_INT4_GROUP - 1) / KN_INT4_GROUP *
                             KN_PANEL * 2);
    return element_bytes(f, k) + scales;
}

uint16_t kn_bfloat16_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isnan(x))
        return (uint16_t)(bits >> 16 | 64);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float from_bfloat16(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- one column ---- */

typedef struct errors {
    double square, total; /* of differences, of the weights */
} errors;

static void count_error(errors *e, float exact, float rounded) {
    if (!isfinite(exact))
        return;
    double d = (double)exact - (double)rounded;
    e->square += d * d;
    e->total += (double)exact * (double)exact;
}

static void pack_bfloat16(char *panel, int j, const float *column, int64_t k, errors *e) {
    for (int64_t i = 0; i < k; i++) {
        uint16_t half = kn_bfloat16_bits(column[i]);
        memcpy(panel + (i / 2 * KN_PANEL + j) * 4 + i % 2 * 2, &half, 2);
        count_error(e, column[i], from_bfloat16(half));
    }
}

static int quantise(float x, float inverse, int low, int high) {
    float q = nearbyintf(x * inverse);
    return q >= (float)high ? high : q <= (float)low ? low : (int)q;
}

static void pack_int8(char *panel, int j, const float *column, int64_t k, errors *e) {
    float largest = 0;
    for (int64_t i = 0; i < k; i++)
        largest = fabsf(column[i]) > largest ? fabsf(column[i]) : largest;
    /* The inverse of a scale below 1e-36 would overflow; such a column is zero for float32 too. */
    float scale = largest > 1e-34f ? largest / 127 : 0, inverse = scale > 0 ? 1 / scale : 0;
    for (int64_t i = 0; i < k; i++) {
        int q = quantise(column[i], inverse, -127, 127);
        panel[i * KN_PANEL + j] = (char)(signed char)q;
        count_error(e, column[i], (float)q * scale);
    }
    memcpy(panel + round_up_64(k * KN_PANEL) + j * 4, &scale, 4);
}

static double int4_error(const float *x, int count, float scale, double limit) {
    float inverse = scale != 0 ? 1 / scale : 0;
    double sum = 0;
    for (int i = 0; i < count && sum < limit; i++) {
        double d = (double)x[i] - (double)((float)quantise(x[i], inverse, -8, 7) * scale);
        sum += d * d;
    }
    return sum;
}

static uint16_t int4_scale(const float *x, int count) {
    static const float divisors[] = {-8, -8.6f, -7.4f, 7.5f, 8.2f};
    float extreme = 0;
    for (int i = 0; i < count; i++)
        if (fabsf(x[i]) > fabsf(extreme))
            extreme = x[i];
    if (!(fabsf(extreme) > 1e-34f))
        return 0;
    uint16_t best = 0;
    double best_error = INFINITY;
    for (size_t i = 0; i < sizeof divisors / sizeof *divisors; i++) {
        uint16_t half = kn_bfloat16_bits(extreme / divisors[i]);
        double error = int4_error(x, count, from_bfloat16(half), best_error);
        if (error < best_error) {
            best = half;
            best_error = error;
        }
    }
    return best;
}

static void pack_int4(char *panel, int j, const float *column, int64_t k, errors *e) {
    char *scales = panel + element_bytes(KN_INT4, k);
    for (int64_t start = 0; start < k; start += KN_INT4_GROUP) {
        int count = (int)(k - start < KN_INT4_GROUP ? k - start : KN_INT4_GROUP);
        uint16_t half = int4_scale(column + start, count);
        float scale = from_bfloat16(half), inverse = scale != 0 ? 1 / scale : 0;
        memcpy(scales + (start / KN_INT4_GROUP * KN_PANEL + j) * 2, &half, 2);
        for (int i = 0; i < count; i++) {
            int64_t at = start + i;
            int q = quantise(column[at], inverse, -8, 7);
            char *byte = panel + (at / 8 * KN_PANEL + j) * 4 + at % 8 / 2;
            *byte = (char)(unsigned char)((unsigned char)*byte | (q & 15) << (at % 2 * 4));
            count_error(e, column[at], (float)q * scale);
        }
    }
}

/* ---- matrices ---- */

typedef struct packed_row {
    kn_format format;
    kn_matrices m;
    int64_t first, last; /* offsets */
    const void *bytes;
    size_t byte_count;
    double error;
    struct packed_row *next;      /* of one slot */
    struct packed_row *next_made; /* in order */
} packed_row;

typedef struct room_row {
    const void *source;
    int form;
    size_t byte_count;
    void *bytes;
    struct room_row *next;
} room_row;

enum { SLOTS = 256 };

struct kn_weight_store {
    ts_arena *arena;
    cg_spill *spill;
    packed_row *slots[SLOTS];
    room_row *rooms;
    packed_row *first, **last;
};

kn_weight_store *kn_weight_store_make(ts_arena *arena, cg_spill *spill) {
    kn_weight_store *s = TS_NEW(arena, kn_weight_store);
    s->arena = arena;
    s->spill = spill;
    s->last = &s->first;
    return s;
}

static const float *element(const kn_matrices *m, int64_t offset, int64_t k) {
    int64_t line = k / m->inner;
    return m->data + offset + line / m->middle * m->outer_stride +
           line % m->middle * m->middle_stride + k % m->inner * m->inner_stride;
}

static void pack_float32(float *to, const kn_matrices *m, int64_t offset) {
    for (int64_t n = 0; n < m->n; n += KN_PANEL)
        for (int64_t k = 0; k < m->k; k++) {
            const float *from = element(m, offset, k);
            for (int64_t j = n; j < n + KN_PANEL; j++)
                *to++ = j < m->n ? from[j * m->n_stride] : 0;
        }
}

static void fill_column(const kn_matrices *m, int64_t offset, float *column) {
    if (m->tap_padded) {
        for (int64_t k = 0; k < m->k; k++) {
            int64_t tap = k / m->tap_padded, term = k % m->tap_padded;
            column[k] = term < m->tap ? *element(m, offset, tap * m->tap + term) : 0;
        }
        return;
    }
    for (int64_t k = 0; k < m->k; k += m->inner) {
        const float *from = element(m, offset, k);
        for (int64_t i = 0; i < m->inner && k + i < m->k; i++)
            column[k + i] = from[i * m->inner_stride];
    }
}

static void pack_rounded(char *to, kn_format f, const kn_matrices *m, int64_t offset, float *column,
                        errors *e) {
    int64_t panel_bytes = kn_format_panel_bytes(f, m->k);
    for (int64_t n = 0; n < m->n; n++) {
        fill_column(m, offset + n * m->n_stride, column);
        char *panel = to + n / KN_PANEL * panel_bytes;
        int j = (int)(n % KN_PANEL);
        switch (f) {
        case KN_FLOAT32:
        case KN_BFLOAT16_DOT: break; /* not here */
        case KN_BFLOAT16: pack_bfloat16(panel, j, column, m->k, e); break;
        case KN_INT8: pack_int8(panel, j, column, m->k, e); break;
        case KN_INT4: pack_int4(panel, j, column, m->k, e); break;
        }
    }
}

static bool same_source(const packed_row *r, kn_format f, const kn_matrices *m) {
    return r->format == f && r->m.data == m->data && r->m.count == m->count && r->m.k == m->k &&
           r->m.n == m->n && r->m.inner == m->inner && r->m.middle == m->middle &&
           r->m.inner_stride == m->inner_stride && r->m.middle_stride == m->middle_stride &&
           r->m.outer_stride == m->outer_stride && r->m.n_stride == m->n_stride &&
           r->m.tap == m->tap && r->m.tap_padded == m->tap_padded && r->first == m->offsets[0] && r->last == m->offsets[m->count - 1];
}

static bool are_below(const kn_matrices *m, float limit) {
    for (int64_t i = 0; i < m->count; i++)
        for (int64_t k = 0; k < m->k; k++) {
            const float *from = element(m, m->offsets[i], k);
            for (int64_t n = 0; n < m->n; n++)
                if (!(fabsf(from[n * m->n_stride]) < limit))
                    return false;
        }
    return true;
}

bool kn_weights_are_finite(const kn_matrices *m) { return are_below(m, INFINITY); }

bool kn_weights_have_parts(const kn_matrices *m) { return are_below(m, 0x1.ffp127f); }

static void *room(kn_weight_store *s, size_t bytes) {
    void *to = cg_spill_alloc(s->spill, bytes);
    return to ? to : ts_arena_alloc(s->arena, bytes + 1);
}

void *kn_weights_room(kn_weight_store *s, const void *source, int form, size_t bytes,
                      bool *out_is_new) {
    *out_is_new = false;
    for (room_row *r = s->rooms; r; r = r->next)
        if (r->source == source && r->form == form && r->byte_count == bytes)
            return r->bytes;
    *out_is_new = true;
    room_row *r = TS_NEW(s->arena, room_row);
    *r = (room_row){source, form, bytes, room(s, bytes), s->rooms};
    s->rooms = r;
    return r->bytes;
}

void kn_weights_filled(const kn_weight_store *s, const void *filled) {
    cg_spill_forget(s->spill, filled);
}

const void *kn_weights_pack(kn_weight_store *s, kn_format format, const kn_matrices *m,
                            size_t *out_bytes) {
    if (format == KN_BFLOAT16_DOT)
        format = KN_BFLOAT16;
    uint64_t key[] = {(uint64_t)(uintptr_t)m->data, (uint64_t)m->k, (uint64_t)m->n, format};
    packed_row **slot = &s->slots[ts_hash64(key, sizeof key, 1) % SLOTS];
    if (m->count > 0)
        for (packed_row *r = *slot; r; r = r->next)
            if (same_source(r, format, m)) {
                *out_bytes = r->byte_count;
                return r->bytes;
            }
    int64_t each = (m->n + KN_PANEL - 1) / KN_PANEL * kn_format_panel_bytes(format, m->k);
    size_t bytes = (size_t)(each * m->count);
    char *to = room(s, bytes);
    float *column = ts_arena_array(s->arena, (size_t)m->k + 1, sizeof *column);
    errors e = {0, 0};
    for (int64_t i = 0; i < m->count; i++)
        if (format == KN_FLOAT32)
            pack_float32((float *)(void *)(to + i * each), m, m->offsets[i]);
        else
            pack_rounded(to + i * each, format, m, m->offsets[i], column, &e);
    cg_spill_forget(s->spill, to);
    *out_bytes = bytes;
    if (m->count == 0)
        return to;
    packed_row *r = TS_NEW(s->arena, packed_row);
    *r = (packed_row){.format = format, .m = *m, .first = m->offsets[0],
                      .last = m->offsets[m->count - 1], .bytes = to, .byte_count = bytes,
                      .error = e.total > 0 ? sqrt(e.square / e.total) : 0, .next = *slot};
    *slot = r;
    *s->last = r;
    s->last = &r->next_made;
    return to;
}

void kn_weight_store_report(const kn_weight_store *s, cg_weight_report *out) {
    static const char *const names[] = {[KN_FLOAT32] = "float32",  [KN_BFLOAT16] = "bf16",
                                        [KN_BFLOAT16_DOT] = "bf16", [KN_INT8] = "int8",
                                        [KN_INT4] = "int4"};
    for (const packed_row *r = s->first; r; r = r->next_made) {
        if (r->format == KN_FLOAT32)
            continue;
        cg_weight_row row = {r->m.name, r->m.place, names[r->format], r->m.k, r->m.n * r->m.count,
                             r->error};
        TS_APPEND(s->arena, out->rows, out->count, out->capacity, row);
    }
}

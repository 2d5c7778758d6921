/* runtime/ops/text.c - code points, classes of characters, case; see text.h. */
#include "runtime/ops/text.h"

uint32_t rt_text_next(ts_str s, size_t *at) {
    const unsigned char *p = (const unsigned char *)s.data + *at;
    size_t left = s.length - *at;
    uint32_t c = p[0];
    size_t extra = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
    if (c < 0x80 || extra == 0 || extra >= left) {
        *at += 1;
        return c;
    }
    c &= 0x3fu >> extra;
    for (size_t i = 1; i <= extra; i++)
        c = c << 6 | (p[i] & 0x3fu);
    *at += extra + 1;
    return c;
}

void rt_text_append(ts_buffer *out, uint32_t c) {
    if (c < 0x80) {
        ts_buffer_char(out, (char)c);
    } else if (c < 0x800) {
        ts_buffer_char(out, (char)(0xc0 | c >> 6));
        ts_buffer_char(out, (char)(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
        ts_buffer_char(out, (char)(0xe0 | c >> 12));
        ts_buffer_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
        ts_buffer_char(out, (char)(0x80 | (c & 0x3f)));
    } else {
        ts_buffer_char(out, (char)(0xf0 | c >> 18));
        ts_buffer_char(out, (char)(0x80 | (c >> 12 & 0x3f)));
        ts_buffer_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
        ts_buffer_char(out, (char)(0x80 | (c & 0x3f)));
    }
}

size_t rt_text_offset(const rt_str *s, int64_t position) {
    if (s->length == s->code_points)
        return (size_t)position;
    size_t at = 0;
    for (int64_t i = 0; i < position && at < s->length; i++)
        (void)rt_text_next(rt_str_text(s), &at);
    return at;
}

int64_t rt_text_position(const rt_str *s, size_t offset) {
    if (s->length == s->code_points)
        return (int64_t)offset;
    int64_t n = 0;
    for (size_t at = 0; at < offset;) {
        (void)rt_text_next(rt_str_text(s), &at);
        n++;
    }
    return n;
}

static bool in(uint32_t c, uint32_t low, uint32_t high) { return c >= low && c <= high; }

bool rt_char_is_space(uint32_t c) {
    return in(c, 9, 13) || in(c, 0x1c, 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           in(c, 0x2000, 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
           c == 0x3000;
}

/* Case by ranges: pairs (even upper, odd lower) in Latin Extended-A and Cyrillic extensions. */
static bool is_even_pair(uint32_t c) {
    return in(c, 0x100, 0x137) || in(c, 0x14a, 0x177) || in(c, 0x1e00, 0x1e95) ||
           in(c, 0x1ea0, 0x1eff) || in(c, 0x460, 0x481) || in(c, 0x48a, 0x4bf) ||
           in(c, 0x4d0, 0x52f) || in(c, 0x200, 0x21f) || in(c, 0x1de, 0x1ef);
}
static bool is_odd_pair(uint32_t c) { return in(c, 0x139, 0x148) || in(c, 0x179, 0x17e); }

uint32_t rt_char_lower(uint32_t c) {
    if (c < 0x80)
        return in(c, 'A', 'Z') ? c + 32 : c;
    if ((in(c, 0xc0, 0xde) && c != 0xd7) || (in(c, 0x391, 0x3a9) && c != 0x3a2) ||
        in(c, 0x410, 0x42f))
        return c + 32;
    if (in(c, 0x400, 0x40f))
        return c + 80;
    if (in(c, 0x531, 0x556))
        return c + 48;
    if (c == 0x178)
        return 0xff;
    if (c == 0x130)
        return 'i';
    if (c == 0x1e9e)
        return 0xdf;
    if (c == 0x386)
        return 0x3ac;
    if (in(c, 0x388, 0x38a))
        return c + 37;
    if (c == 0x38c)
        return 0x3cc;
    if (c == 0x38e || c == 0x38f)
        return c + 63;
    if (is_even_pair(c) && c != 0x131)
        return c | 1;
    if (is_odd_pair(c) && (c & 1))
        return c + 1;
    return c;
}

uint32_t rt_char_upper(uint32_t c) {
    if (c < 0x80)
        return in(c, 'a', 'z') ? c - 32 : c;
    if ((in(c, 0xe0, 0xfe) && c != 0xf7) || (in(c, 0x3b1, 0x3c9) && c != 0x3c2) ||
        in(c, 0x430, 0x44f))
        return c - 32;
    if (c == 0xff)
        return 0x178;
    if (c == 0xb5)
        return 0x39c;
    if (c == 0x3c2)
        return 0x3a3;
    if (in(c, 0x450, 0x45f))
        return c - 80;
    if (in(c, 0x561, 0x586))
        return c - 48;
    if (c == 0x131)
        return 'I';
    if (c == 0x17f)
        return 'S';
    if (c == 0x3ac)
        return 0x386;
    if (in(c, 0x3ad, 0x3af))
        return c - 37;
    if (c == 0x3cc)
        return 0x38c;
    if (c == 0x3cd || c == 0x3ce)
        return c - 63;
    if (is_even_pair(c) && c != 0x130 && (c & 1))
        return c - 1;
    if (is_odd_pair(c) && !(c & 1))
        return c - 1;
    return c;
}

bool rt_char_is_lower(uint32_t c) {
    return rt_char_upper(c) != c || c == 0xdf || c == 0xaa || c == 0xba || c == 0x138 ||
           c == 0x149;
}
bool rt_char_is_upper(uint32_t c) { return rt_char_lower(c) != c; }

bool rt_char_is_decimal(uint32_t c) {
    return in(c, '0', '9') || in(c, 0x660, 0x669) || in(c, 0x6f0, 0x6f9) || in(c, 0x966, 0x96f) ||
           in(c, 0x9e6, 0x9ef) || in(c, 0xe50, 0xe59) || in(c, 0xff10, 0xff19);
}

bool rt_char_is_digit(uint32_t c) {
    return rt_char_is_decimal(c) || c == 0xb2 || c == 0xb3 || c == 0xb9 || c == 0x2070 ||
           in(c, 0x2074, 0x2079) || in(c, 0x2080, 0x2089) || in(c, 0x2460, 0x2468);
}

bool rt_char_is_numeric(uint32_t c) {
    static const uint16_t han[] = {0x4e00, 0x4e8c, 0x4e09, 0x56db, 0x4e94, 0x516d, 0x4e03,
                                   0x516b, 0x4e5d, 0x5341, 0x767e, 0x5343, 0x4e07, 0x96f6};
    for (size_t i = 0; i < sizeof han / sizeof *han; i++)
        if (c == han[i])
            return true;
    return rt_char_is_digit(c) || in(c, 0xbc, 0xbe) || in(c, 0x2150, 0x2189) ||
           in(c, 0x2460, 0x249b) || c == 0x3007;
}

bool rt_char_is_alpha(uint32_t c) {
    if (c < 0x80)
        return in(c, 'a', 'z') || in(c, 'A', 'Z');
    return c == 0xaa || c == 0xb5 || c == 0xba || (in(c, 0xc0, 0x2c1) && c != 0xd7 && c != 0xf7) ||
           in(c, 0x370, 0x373) || c == 0x376 || c == 0x377 || in(c, 0x37b, 0x37d) || c == 0x37f ||
           c == 0x386 || (in(c, 0x388, 0x481) && c != 0x3f6) || in(c, 0x48a, 0x556) ||
           in(c, 0x561, 0x587) || in(c, 0x5d0, 0x5ea) || in(c, 0x620, 0x64a) ||
           in(c, 0x671, 0x6d3) || in(c, 0x904, 0x939) || in(c, 0xe01, 0xe30) ||
           in(c, 0x10a0, 0x10fa) || in(c, 0x1e00, 0x1fbc) || in(c, 0x3041, 0x3096) ||
           in(c, 0x30a1, 0x30fa) || in(c, 0x3400, 0x4dbf) || in(c, 0x4e00, 0x9fff) ||
           in(c, 0xac00, 0xd7a3) || in(c, 0xff21, 0xff3a) || in(c, 0xff41, 0xff5a) ||
           in(c, 0x20000, 0x2ebe0);
}

bool rt_char_is_printable(uint32_t c) {
    if (c == ' ')
        return true;
    return !(c < 0x20 || in(c, 0x7f, 0xa0) || c == 0xad || rt_char_is_space(c) ||
             in(c, 0x200b, 0x200f) || in(c, 0x202a, 0x202e) || in(c, 0x2060, 0x206f) ||
             in(c, 0xd800, 0xf8ff) || c == 0xfeff || c == 0xfffe || c == 0xffff || c >= 0xe0000);
}

ts_status rt_str_take_buffer(ts_buffer *buffer, rt_value *out) {
    ts_status status = ts_buffer_status(buffer);
    if (!status)
        status = rt_str_make((ts_str){buffer->data ? buffer->data : "", buffer->length}, out);
    ts_buffer_deinit(buffer);
    return status;
}

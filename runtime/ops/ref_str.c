/* runtime/ops/ref_str.c - searching, splitting and testing strings, as Python's str does.
 *
 * Strings are UTF-8, positions are code points; searches run over bytes (UTF-8 permits it) and
 * convert positions at the edges. */
#include "runtime/base/checked.h"
#include "runtime/ops/ref_kernel.h"
#include "runtime/ops/text.h"

static ts_str text_of(rt_value v) { return rt_str_text(v.as.str); }

/* First (or last) place of part in s from byte `from` on, or SIZE_MAX. */
static size_t search(ts_str s, ts_str part, bool from_right) {
    if (part.length > s.length)
        return SIZE_MAX;
    size_t last = s.length - part.length;
    for (size_t i = 0; i <= last; i++) {
        size_t at = from_right ? last - i : i;
        if (part.length == 0 || memcmp(s.data + at, part.data, part.length) == 0)
            return at;
    }
    return SIZE_MAX;
}

/* The bytes between two Python positions; false where start lies past the end. */
static bool window(rt_value v, int64_t start, int64_t end, ts_str *out) {
    const rt_str *s = v.as.str;
    int64_t n = (int64_t)s->code_points;
    start = start < 0 ? (start + n < 0 ? 0 : start + n) : start;
    end = end < 0 ? (end + n < 0 ? 0 : end + n) : end > n ? n : end;
    if (start > end)
        return false;
    size_t a = rt_text_offset(s, start), b = rt_text_offset(s, end);
    *out = (ts_str){s->data + a, b - a};
    return true;
}

static int64_t find(const rt_value *args, bool from_right) {
    ts_str within;
    if (!window(args[0], args[2].as.i, args[3].as.i, &within))
        return -1;
    size_t at = search(within, text_of(args[1]), from_right);
    if (at == SIZE_MAX)
        return -1;
    return rt_text_position(args[0].as.str, (size_t)(within.data - args[0].as.str->data) + at);
}

KERNEL(str_find) {
    outs[0] = rt_int(find(args, false));
    return NULL;
}

KERNEL(str_rfind) {
    outs[0] = rt_int(find(args, true));
    return NULL;
}

static ts_status index_of(const rt_value *args, bool from_right, rt_value *out) {
    int64_t at = find(args, from_right);
    if (at < 0)
        return ts_raise("ValueError", "substring not found");
    *out = rt_int(at);
    return NULL;
}

KERNEL(str_index) { return index_of(args, false, outs); }
KERNEL(str_rindex) { return index_of(args, true, outs); }

KERNEL(str_count) {
    ts_str s, part = text_of(args[1]);
    int64_t n = 0;
    if (!window(args[0], args[2].as.i, args[3].as.i, &s)) {
        outs[0] = rt_int(0);
        return NULL;
    }
    if (part.length == 0) {
        for (size_t at = 0; at < s.length; n++)
            (void)rt_text_next(s, &at);
        outs[0] = rt_int(n + 1);
        return NULL;
    }
    for (size_t at; (at = search(s, part, false)) != SIZE_MAX; n++) {
        s.data += at + part.length;
        s.length -= at + part.length;
    }
    outs[0] = rt_int(n);
    return NULL;
}

KERNEL(str_contains) {
    outs[0] = rt_bool(search(text_of(args[0]), text_of(args[1]), false) != SIZE_MAX);
    return NULL;
}

KERNEL(str_startswith) {
    ts_str s, part = text_of(args[1]);
    bool r = window(args[0], args[2].as.i, args[3].as.i, &s) && s.length >= part.length &&
             memcmp(s.data, part.data, part.length) == 0;
    outs[0] = rt_bool(r);
    return NULL;
}

KERNEL(str_endswith) {
    ts_str s, part = text_of(args[1]);
    bool r = window(args[0], args[2].as.i, args[3].as.i, &s) && s.length >= part.length &&
             memcmp(s.data + s.length - part.length, part.data, part.length) == 0;
    outs[0] = rt_bool(r);
    return NULL;
}

KERNEL(str_removeprefix) {
    ts_str s = text_of(args[0]), p = text_of(args[1]);
    if (s.length >= p.length && memcmp(s.data, p.data, p.length) == 0)
        s = (ts_str){s.data + p.length, s.length - p.length};
    return rt_str_make(s, outs);
}

KERNEL(str_removesuffix) {
    ts_str s = text_of(args[0]), p = text_of(args[1]);
    if (s.length >= p.length && memcmp(s.data + s.length - p.length, p.data, p.length) == 0)
        s.length -= p.length;
    return rt_str_make(s, outs);
}

/* ---- building ---- */

static ts_status repeat(rt_value text, int64_t n, rt_value *out) {
    ts_str s = text_of(text);
    size_t bytes;
    if (n < 0)
        n = 0;
    if (!ts_mul_size(s.length, (size_t)n, &bytes) || bytes > (size_t)1 << 40)
        return ts_no_memory();
    ts_buffer b = {0};
    for (int64_t i = 0; i < n && s.length && !b.failed; i++)
        ts_buffer_str(&b, s);
    return rt_str_take_buffer(&b, out);
}

KERNEL(str_mul) { return repeat(args[0], args[1].as.i, outs); }
KERNEL(str_rmul) { return repeat(args[1], args[0].as.i, outs); }

KERNEL(str_add) {
    ts_buffer b = {0};
    ts_buffer_str(&b, text_of(args[0]));
    ts_buffer_str(&b, text_of(args[1]));
    return rt_str_take_buffer(&b, outs);
}

KERNEL(str_join) {
    const rt_list *list = args[1].as.list;
    ts_buffer b = {0};
    for (size_t i = 0; i < list->count; i++) {
        if (i)
            ts_buffer_str(&b, text_of(args[0]));
        ts_buffer_str(&b, text_of(list->items[i]));
    }
    return rt_str_take_buffer(&b, outs);
}

KERNEL(str_replace) {
    ts_str s = text_of(args[0]), old = text_of(args[1]), by = text_of(args[2]);
    int64_t left = args[3].as.i < 0 ? INT64_MAX : args[3].as.i;
    ts_buffer b = {0};
    size_t at = 0;
    while (left > 0 && !b.failed) {
        ts_str rest = {s.data + at, s.length - at};
        if (old.length == 0) {
            ts_buffer_str(&b, by);
            left--;
            if (at == s.length)
                break;
            size_t start = at;
            (void)rt_text_next(s, &at);
            ts_buffer_append(&b, s.data + start, at - start);
            continue;
        }
        size_t found = search(rest, old, false);
        if (found == SIZE_MAX)
            break;
        ts_buffer_append(&b, rest.data, found);
        ts_buffer_str(&b, by);
        at += found + old.length;
        left--;
    }
    ts_buffer_append(&b, s.data + at, s.length - at);
    return rt_str_take_buffer(&b, outs);
}

/* Wider strings are refused at once instead of growing until memory ends. */
enum { MAX_WIDTH = INT32_MAX };

static ts_status pad(const rt_value *args, int64_t left_share, rt_value *out) {
    const rt_str *s = args[0].as.str, *fill = args[2].as.str;
    int64_t n = (int64_t)s->code_points, width = args[1].as.i;
    if (fill->code_points != 1)
        return ts_raise("TypeError", "The fill character must be exactly one character long");
    if (width > MAX_WIDTH)
        return ts_no_memory();
    int64_t total = width > n ? width - n : 0, left = 0;
    if (left_share == 2)
        left = total;
    else if (left_share == 1)
        left = total / 2 + (total & width & 1);
    ts_buffer b = {0};
    for (int64_t i = 0; i < left && !b.failed; i++)
        ts_buffer_str(&b, rt_str_text(fill));
    ts_buffer_str(&b, rt_str_text(s));
    for (int64_t i = left; i < total && !b.failed; i++)
        ts_buffer_str(&b, rt_str_text(fill));
    return rt_str_take_buffer(&b, out);
}

KERNEL(str_ljust) { return pad(args, 0, outs); }
KERNEL(str_center) { return pad(args, 1, outs); }
KERNEL(str_rjust) { return pad(args, 2, outs); }

KERNEL(str_zfill) {
    const rt_str *s = args[0].as.str;
    int64_t n = (int64_t)s->code_points;
    if (args[1].as.i > MAX_WIDTH)
        return ts_no_memory();
    ts_buffer b = {0};
    size_t sign = s->length && (s->data[0] == '-' || s->data[0] == '+');
    ts_buffer_append(&b, s->data, sign);
    for (int64_t i = n; i < args[1].as.i && !b.failed; i++)
        ts_buffer_char(&b, '0');
    ts_buffer_append(&b, s->data + sign, s->length - sign);
    return rt_str_take_buffer(&b, outs);
}

KERNEL(str_expandtabs) {
    ts_str s = text_of(args[0]);
    int64_t size = args[1].as.i, column = 0;
    if (size > MAX_WIDTH)
        return ts_no_memory();
    ts_buffer b = {0};
    for (size_t at = 0; at < s.length && !b.failed;) {
        uint32_t c = rt_text_next(s, &at);
        if (c == '\t') {
            int64_t n = size > 0 ? size - column % size : 0;
            column += n;
            for (; n > 0 && !b.failed; n--)
                ts_buffer_char(&b, ' ');
            continue;
        }
        column = c == '\n' || c == '\r' ? 0 : column + 1;
        rt_text_append(&b, c);
    }
    return rt_str_take_buffer(&b, outs);
}

static bool in_set(uint32_t c, rt_value chars) {
    if (rt_is_none(chars))
        return rt_char_is_space(c);
    ts_str set = text_of(chars);
    for (size_t at = 0; at < set.length;)
        if (rt_text_next(set, &at) == c)
            return true;
    return false;
}

static ts_status strip(const rt_value *args, bool left, bool right, rt_value *out) {
    ts_str s = text_of(args[0]);
    size_t start = 0, end = 0;
    if (left)
        for (size_t at = 0; at < s.length;) {
            if (!in_set(rt_text_next(s, &at), args[1]))
                break;
            start = at;
        }
    end = right ? start : s.length;
    if (right)
        for (size_t at = start; at < s.length;)
            if (!in_set(rt_text_next(s, &at), args[1]))
                end = at;
    return rt_str_make((ts_str){s.data + start, end - start}, out);
}

KERNEL(str_strip) { return strip(args, true, true, outs); }
KERNEL(str_lstrip) { return strip(args, true, false, outs); }
KERNEL(str_rstrip) { return strip(args, false, true, outs); }

/* ---- case ---- */

typedef enum casing {
    CASE_UPPER, CASE_LOWER, CASE_SWAP, CASE_TITLE, CASE_CAPITAL, CASE_FOLD
} casing;

/* What casefold makes of characters where lower does something else (UTF-8). */
static const struct {
    uint16_t from;
    char to[7];
} folds[] = {
    {0xb5, "\316\274"}, {0xdf, "ss"}, {0x149, "\312\274n"}, {0x17f, "s"}, {0x1f0, "j\314\214"},
    {0x345, "\316\271"}, {0x390, "\316\271\314\210\314\201"}, {0x3b0, "\317\205\314\210\314\201"},
    {0x3c2, "\317\203"}, {0x3d0, "\316\262"}, {0x3d1, "\316\270"}, {0x3d5, "\317\206"},
    {0x3d6, "\317\200"}, {0x3f0, "\316\272"}, {0x3f1, "\317\201"}, {0x3f5, "\316\265"},
    {0x587, "\325\245\326\202"}, {0x1e96, "h\314\261"}, {0x1e97, "t\314\210"},
    {0x1e98, "w\314\212"}, {0x1e99, "y\314\212"}, {0x1e9a, "a\312\276"}, {0x1e9b, "\341\271\241"},
    {0x1e9e, "ss"}, {0xfb00, "ff"}, {0xfb01, "fi"}, {0xfb02, "fl"}, {0xfb03, "ffi"},
    {0xfb04, "ffl"}, {0xfb05, "st"}, {0xfb06, "st"}, {0xfb13, "\325\264\325\266"},
    {0xfb14, "\325\264\325\245"}, {0xfb15, "\325\264\325\253"}, {0xfb16, "\325\276\325\266"},
    {0xfb17, "\325\264\325\255"}};

static const char *fold_of(uint32_t c) {
    for (size_t i = 0; i < sizeof folds / sizeof *folds; i++)
        if (folds[i].from == c)
            return folds[i].to;
    return NULL;
}

static bool is_cased_at(ts_str s, size_t at) {
    if (at >= s.length)
        return false;
    uint32_t c = rt_text_next(s, &at);
    return rt_char_is_lower(c) || rt_char_is_upper(c);
}

static ts_status change_case(rt_value v, casing how, rt_value *out) {
    ts_str s = text_of(v);
    ts_buffer b = {0};
    bool in_word = false, is_first = true;
    for (size_t at = 0; at < s.length;) {
        uint32_t c = rt_text_next(s, &at);
        bool cased = rt_char_is_lower(c) || rt_char_is_upper(c);
        bool up = how == CASE_UPPER || (how == CASE_SWAP && rt_char_is_lower(c)) ||
                  (how == CASE_TITLE && !in_word) || (how == CASE_CAPITAL && is_first);
        const char *fold = how == CASE_FOLD && c >= 0x80 ? fold_of(c) : NULL;
        if (fold)
            ts_buffer_text(&b, fold);
        else if (c == 0x130 && !up)
            ts_buffer_text(&b, "i\314\207");
        else if (c == 0x3a3 && !up && how != CASE_FOLD && in_word && !is_cased_at(s, at))
            rt_text_append(&b, 0x3c2); /* sigma at the end of a word */
        else if (c == 0xdf && up)
            ts_buffer_text(&b, how == CASE_UPPER || how == CASE_SWAP ? "SS" : "Ss");
        else
            rt_text_append(&b, up ? rt_char_upper(c) : rt_char_lower(c));
        in_word = cased;
        is_first = false;
    }
    return rt_str_take_buffer(&b, out);
}

KERNEL(str_upper) { return change_case(args[0], CASE_UPPER, outs); }
KERNEL(str_lower) { return change_case(args[0], CASE_LOWER, outs); }
KERNEL(str_casefold) { return change_case(args[0], CASE_FOLD, outs); }
KERNEL(str_swapcase) { return change_case(args[0], CASE_SWAP, outs); }
KERNEL(str_title) { return change_case(args[0], CASE_TITLE, outs); }
KERNEL(str_capitalize) { return change_case(args[0], CASE_CAPITAL, outs); }

/* ---- tests ---- */

static bool all_chars(rt_value v, bool (*test)(uint32_t c), bool when_empty) {
    ts_str s = text_of(v);
    for (size_t at = 0; at < s.length;)
        if (!test(rt_text_next(s, &at)))
            return false;
    return s.length > 0 || when_empty;
}

static bool is_alnum(uint32_t c) { return rt_char_is_alpha(c) || rt_char_is_numeric(c); }
static bool is_ascii(uint32_t c) { return c < 0x80; }

#define TEST(name, test, when_empty)                                                               \
    KERNEL(str_##name) {                                                                           \
        outs[0] = rt_bool(all_chars(args[0], test, when_empty));                                   \
        return NULL;                                                                               \
    }
TEST(isalpha, rt_char_is_alpha, false)
TEST(isalnum, is_alnum, false)
TEST(isdecimal, rt_char_is_decimal, false)
TEST(isdigit, rt_char_is_digit, false)
TEST(isnumeric, rt_char_is_numeric, false)
TEST(isspace, rt_char_is_space, false)
TEST(isprintable, rt_char_is_printable, true)
TEST(isascii, is_ascii, true)

static bool has_case(rt_value v, bool (*wanted)(uint32_t c), bool (*refused)(uint32_t c)) {
    ts_str s = text_of(v);
    bool found = false;
    for (size_t at = 0; at < s.length;) {
        uint32_t c = rt_text_next(s, &at);
        if (refused(c))
            return false;
        found = found || wanted(c);
    }
    return found;
}

KERNEL(str_islower) {
    outs[0] = rt_bool(has_case(args[0], rt_char_is_lower, rt_char_is_upper));
    return NULL;
}

KERNEL(str_isupper) {
    outs[0] = rt_bool(has_case(args[0], rt_char_is_upper, rt_char_is_lower));
    return NULL;
}

KERNEL(str_istitle) {
    ts_str s = text_of(args[0]);
    bool in_word = false, found = false, good = true;
    for (size_t at = 0; at < s.length && good;) {
        uint32_t c = rt_text_next(s, &at);
        if (rt_char_is_upper(c)) {
            good = !in_word;
            in_word = found = true;
        } else if (rt_char_is_lower(c)) {
            good = in_word;
            in_word = found = true;
        } else {
            in_word = false;
        }
    }
    outs[0] = rt_bool(good && found);
    return NULL;
}

KERNEL(str_isidentifier) {
    ts_str s = text_of(args[0]);
    bool good = s.length > 0;
    for (size_t at = 0; at < s.length && good;) {
        bool is_first = at == 0;
        uint32_t c = rt_text_next(s, &at);
        good = c == '_' || rt_char_is_alpha(c) || (!is_first && rt_char_is_decimal(c));
    }
    outs[0] = rt_bool(good);
    return NULL;
}

/* ---- pieces ---- */

static ts_status append_text(rt_value list, ts_str s) {
    rt_value piece;
    TS_TRY(rt_str_make(s, &piece));
    ts_status status = rt_list_append(list.as.list, piece);
    rt_release(piece);
    return status;
}

static ts_status split_space(ts_str s, int64_t left, bool from_right, rt_value list) {
    for (size_t at = 0; !from_right; left--) {
        size_t start = s.length;
        while (at < s.length) {
            size_t here = at;
            if (!rt_char_is_space(rt_text_next(s, &at))) {
                start = here;
                break;
            }
        }
        if (start == s.length)
            return NULL;
        size_t end = at;
        while (left > 0 && at < s.length && !rt_char_is_space(rt_text_next(s, &at)))
            end = at;
        if (left <= 0)
            end = at = s.length;
        TS_TRY(append_text(list, (ts_str){s.data + start, end - start}));
    }
    /* From the right: words found backwards, the remainder first. */
    size_t end = s.length;
    for (;;) {
        size_t last = 0, start = 0; /* the last word of s[0:end]: [start, last) */
        bool in_word = false;
        size_t first = SIZE_MAX;
        for (size_t at = 0; at < end;) {
            size_t here = at;
            bool blank = rt_char_is_space(rt_text_next(s, &at));
            if (!blank) {
                if (!in_word)
                    start = here;
                if (first == SIZE_MAX)
                    first = here;
                last = at;
            }
            in_word = !blank;
        }
        if (first == SIZE_MAX)
            break;
        if (left <= 0)
            start = 0; /* CPython strips only the end of the remainder */
        rt_value piece;
        TS_TRY(rt_str_make((ts_str){s.data + start, last - start}, &piece));
        ts_status status = rt_list_insert(list.as.list, 0, piece);
        rt_release(piece);
        TS_TRY(status);
        if (left-- <= 0)
            break;
        end = start;
    }
    return NULL;
}

static ts_status split_by(ts_str s, ts_str separator, int64_t left, bool from_right,
                          rt_value list) {
    while (left-- > 0) {
        size_t at = search(s, separator, from_right);
        if (at == SIZE_MAX)
            break;
        ts_str head = {s.data, at};
        ts_str tail = {s.data + at + separator.length, s.length - at - separator.length};
        if (from_right) {
            rt_value piece;
            TS_TRY(rt_str_make(tail, &piece));
            ts_status status = rt_list_insert(list.as.list, 0, piece);
            rt_release(piece);
            TS_TRY(status);
            s = head;
        } else {
            TS_TRY(append_text(list, head));
            s = tail;
        }
    }
    if (!from_right)
        return append_text(list, s);
    rt_value piece;
    TS_TRY(rt_str_make(s, &piece));
    ts_status status = rt_list_insert(list.as.list, 0, piece);
    rt_release(piece);
    return status;
}

static ts_status split(const rt_value *args, bool from_right, rt_value *out) {
    int64_t left = args[2].as.i < 0 ? INT64_MAX : args[2].as.i;
    if (!rt_is_none(args[1]) && args[1].as.str->length == 0)
        return ts_raise("ValueError", "empty separator");
    rt_value list;
    TS_TRY(rt_list_make(4, &list));
    ts_status status = rt_is_none(args[1])
                           ? split_space(text_of(args[0]), left, from_right, list)
                           : split_by(text_of(args[0]), text_of(args[1]), left, from_right, list);
    if (status)
        rt_release(list);
    else
        *out = list;
    return status;
}

KERNEL(str_split) { return split(args, false, outs); }
KERNEL(str_rsplit) { return split(args, true, outs); }

static bool is_line_end(uint32_t c) {
    return (c >= 10 && c <= 13) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
}

KERNEL(str_splitlines) {
    ts_str s = text_of(args[0]);
    rt_value list;
    TS_TRY(rt_list_make(4, &list));
    size_t start = 0, at = 0;
    while (at < s.length) {
        size_t end = at;
        if (!is_line_end(rt_text_next(s, &at)))
            continue;
        if (s.data[end] == '\r' && at < s.length && s.data[at] == '\n')
            at++;
        ts_status status = append_text(list, (ts_str){s.data + start,
                                                      (args[1].as.i ? at : end) - start});
        if (status) {
            rt_release(list);
            return status;
        }
        start = at;
    }
    if (start < s.length) {
        ts_status status = append_text(list, (ts_str){s.data + start, s.length - start});
        if (status) {
            rt_release(list);
            return status;
        }
    }
    outs[0] = list;
    return NULL;
}

static ts_status partition(const rt_value *args, bool from_right, rt_value *outs) {
    ts_str s = text_of(args[0]), separator = text_of(args[1]);
    if (separator.length == 0)
        return ts_raise("ValueError", "empty separator");
    size_t at = search(s, separator, from_right);
    ts_str parts[3] = {s, TS_STR(""), TS_STR("")};
    if (at != SIZE_MAX) {
        parts[0].length = at;
        parts[1] = separator;
        parts[2] = (ts_str){s.data + at + separator.length, s.length - at - separator.length};
    } else if (from_right) {
        parts[0] = TS_STR("");
        parts[2] = s;
    }
    for (int i = 0; i < 3; i++) {
        ts_status status = rt_str_make(parts[i], &outs[i]);
        if (status) {
            while (i-- > 0)
                rt_release(outs[i]);
            return status;
        }
    }
    return NULL;
}

KERNEL(str_partition) { return partition(args, false, outs); }
KERNEL(str_rpartition) { return partition(args, true, outs); }

KERNEL(str_list) {
    ts_str s = text_of(args[0]);
    rt_value list;
    TS_TRY(rt_list_make(args[0].as.str->code_points, &list));
    for (size_t at = 0; at < s.length;) {
        size_t start = at;
        (void)rt_text_next(s, &at);
        ts_status status = append_text(list, (ts_str){s.data + start, at - start});
        if (status) {
            rt_release(list);
            return status;
        }
    }
    outs[0] = list;
    return NULL;
}

KERNEL(str_getitem) {
    const rt_str *s = args[0].as.str;
    int64_t n = (int64_t)s->code_points, i = args[1].as.i;
    i = i < 0 ? i + n : i;
    if (i < 0 || i >= n)
        return ts_raise("IndexError", "string index out of range");
    size_t start = rt_text_offset(s, i), end = start;
    (void)rt_text_next(rt_str_text(s), &end);
    return rt_str_make((ts_str){s->data + start, end - start}, outs);
}

ts_status rt_slice_bounds(rt_value start_value, rt_value end_value, rt_value step_value,
                          int64_t length, int64_t *out_start, int64_t *out_step,
                          int64_t *out_count) {
    int64_t step = rt_is_none(step_value) ? 1 : step_value.as.i;
    if (step == 0)
        return ts_raise("ValueError", "slice step cannot be zero");
    if (step == INT64_MIN)
        step = -INT64_MAX;
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? length - 1 : length;
    int64_t start = step < 0 ? high : low, end = step < 0 ? low : high;
    if (!rt_is_none(start_value)) {
        start = start_value.as.i;
        start = start < 0 ? (start < -length ? low : start + length) : start > high ? high : start;
        start = start < low ? low : start;
    }
    if (!rt_is_none(end_value)) {
        end = end_value.as.i;
        end = end < 0 ? (end < -length ? low : end + length) : end > high ? high : end;
        end = end < low ? low : end;
    }
    int64_t count = 0;
    if (step > 0 && start < end)
        count = (end - start - 1) / step + 1;
    else if (step < 0 && start > end)
        count = (start - end - 1) / -step + 1;
    *out_start = start;
    *out_step = step;
    *out_count = count;
    return NULL;
}

KERNEL(str_slice) {
    const rt_str *s = args[0].as.str;
    int64_t start, step, count;
    TS_TRY(rt_slice_bounds(args[1], args[2], args[3], (int64_t)s->code_points, &start, &step,
                           &count));
    if (step == 1) {
        size_t a = count ? rt_text_offset(s, start) : 0;
        size_t b = count ? rt_text_offset(s, start + count) : 0;
        return rt_str_make((ts_str){s->data + a, b - a}, outs);
    }
    ts_buffer b = {0};
    for (int64_t i = 0; i < count; i++) {
        size_t at = rt_text_offset(s, start + i * step), end = at;
        (void)rt_text_next(rt_str_text(s), &end);
        ts_buffer_append(&b, s->data + at, end - at);
    }
    return rt_str_take_buffer(&b, outs);
}

/* ---- characters and digits ---- */

KERNEL(ord) {
    const rt_str *s = args[0].as.str;
    if (s->code_points != 1)
        return ts_raise("TypeError",
                        "ord() expected a character, but string of length %zu found",
                        s->code_points);
    size_t at = 0;
    outs[0] = rt_int(rt_text_next(rt_str_text(s), &at));
    return NULL;
}

KERNEL(chr) {
    int64_t c = args[0].as.i;
    if (c < 0 || c > 0x10ffff)
        return ts_raise("ValueError", "chr() arg not in range(0x110000)");
    ts_buffer b = {0};
    rt_text_append(&b, (uint32_t)c);
    return rt_str_take_buffer(&b, outs);
}

static ts_status in_base(int64_t value, unsigned shift, const char *prefix, rt_value *out) {
    char digits[72];
    size_t at = sizeof digits;
    uint64_t u = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        digits[--at] = "0123456789abcdef"[u & ((1u << shift) - 1)];
        u >>= shift;
    } while (u);
    ts_buffer b = {0};
    if (value < 0)
        ts_buffer_char(&b, '-');
    ts_buffer_text(&b, prefix);
    ts_buffer_append(&b, digits + at, sizeof digits - at);
    return rt_str_take_buffer(&b, out);
}

KERNEL(hex) { return in_base(args[0].as.i, 4, "0x", outs); }
KERNEL(oct) { return in_base(args[0].as.i, 3, "0o", outs); }
KERNEL(bin) { return in_base(args[0].as.i, 1, "0b", outs); }

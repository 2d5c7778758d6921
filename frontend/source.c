/* frontend/source.c - checks that a text is UTF-8 without NUL, and finds lines and columns in it. */
#include "frontend/source.h"

/* Length of the UTF-8 sequence at p (left bytes remain), or 0 where it is not valid: overlong
 * forms, surrogates and code points past U+10FFFF are refused (Unicode 15, table 3-7). */
static size_t sequence_length(const unsigned char *p, size_t left) {
    if (p[0] < 0x80)
        return 1;
    size_t n = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
    if (p[0] < 0xC2 || p[0] > 0xF4 || left < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) ||
        (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F))
        return 0;
    return n;
}

static ts_place place_of_byte(const fe_source *source, size_t offset) {
    return fe_source_place(source, (uint32_t)offset, 1);
}

ts_status fe_source_make(ts_arena *arena, ts_str name, ts_str text, fe_source **out) {
    *out = NULL;
    ts_place start = {name, 1, 1, 1};
    const unsigned char *p = (const unsigned char *)text.data;
    if (text.length >= (size_t)1 << 30)
        return ts_error_at(TS_ERR_INVALID_FILE, start,
                           "expected at most 1 GiB of source text, found %zu bytes", text.length);
    if (text.length >= 2 && ((p[0] == 0xFF && p[1] == 0xFE) || (p[0] == 0xFE && p[1] == 0xFF)))
        return ts_error_at(TS_ERR_SYNTAX, start, "expected UTF-8 text, found UTF-16 text");
    if (text.length >= 3 && p[0] == 0xEF && p[1] == 0xBB && p[2] == 0xBF) {
        text.data += 3;
        text.length -= 3;
        p += 3;
    }
    fe_source *source = TS_NEW(arena, fe_source);
    source->name = name;
    source->text = text;
    source->is_ascii = true;
    uint32_t *lines = NULL;
    size_t count = 0, capacity = 0;
    TS_APPEND(arena, lines, count, capacity, 0);
    for (size_t i = 0; i < text.length;) {
        size_t n = p[i] ? sequence_length(p + i, text.length - i) : 0;
        if (!n) {
            source->line_offsets = lines;
            source->line_count = count;
            if (!p[i])
                return ts_error_at(TS_ERR_SYNTAX, place_of_byte(source, i),
                                   "expected text, found a NUL byte");
            return ts_error_at(TS_ERR_SYNTAX, place_of_byte(source, i),
                               "expected UTF-8 text, found byte 0x%02x", p[i]);
        }
        source->is_ascii &= n == 1;
        if (p[i] == '\n')
            TS_APPEND(arena, lines, count, capacity, (uint32_t)(i + 1));
        i += n;
    }
    source->line_offsets = lines;
    source->line_count = count;
    *out = source;
    return NULL;
}

/* The origin of an offset, or NULL where none is known. */
static const fe_origin *find_origin(const fe_source *source, uint32_t offset) {
    size_t low = 0, high = source->origin_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (source->origins[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low && source->origins[low - 1].place.line ? &source->origins[low - 1] : NULL;
}

ts_place fe_source_place(const fe_source *source, uint32_t offset, uint32_t length) {
    const fe_origin *origin = find_origin(source, offset);
    if (origin)
        return origin->place;
    size_t low = 0, high = source->line_count;
    while (low + 1 < high) {
        size_t middle = (low + high) / 2;
        if (source->line_offsets[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    ts_place place = {source->name, (int)low + 1, 1, 0};
    size_t end = (size_t)offset + length;
    if (end > source->text.length)
        end = source->text.length;
    size_t i = source->line_count ? source->line_offsets[low] : 0;
    if (source->is_ascii && offset > i) {
        place.column = (int)(offset - i) + 1;
        i = offset;
    }
    for (; i < end; i++) {
        bool is_start = ((unsigned char)source->text.data[i] & 0xC0) != 0x80;
        if (i < offset)
            place.column += is_start;
        else if (source->text.data[i] == '\n')
            break; /* a range of several lines is marked to the end of its first */
        else
            place.length += is_start;
    }
    if (place.length == 0)
        place.length = 1;
    return place;
}

ts_str fe_source_line(const fe_source *source, int line) {
    if (line < 1 || (size_t)line > source->line_count)
        return (ts_str){0};
    size_t begin = source->line_offsets[line - 1];
    size_t end = (size_t)line < source->line_count ? source->line_offsets[line]
                                                   : source->text.length;
    while (end > begin && (source->text.data[end - 1] == '\n' || source->text.data[end - 1] == '\r'))
        end--;
    return (ts_str){source->text.data + begin, end - begin};
}

ts_str fe_source_place_line(const fe_source *source, uint32_t offset) {
    const fe_origin *origin = find_origin(source, offset);
    return origin ? origin->line
                  : fe_source_line(source, fe_source_place(source, offset, 1).line);
}

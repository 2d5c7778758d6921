/* frontend/archive/debug_records.c - code/NAME.py.debug_pkl: pieces of the original Python.
 *
 * Since torch 1.10: ('FORMAT_WITH_STRING_TABLE', (text, ...), (record, ...)), where a record is
 * (offset in the code, (source, start, end), tag) and a source is (indices of its lines in the
 * table, index of the file's name, number of its first line). Before: a tuple of records whose
 * source is (text, file name or None, first line). Offsets count bytes from the start of the
 * source. (torch/csrc/jit/serialization/source_range_serialization.cpp of PyTorch.) */
#include "frontend/archive/debug_records.h"

#include "frontend/archive/pickle.h"

typedef fe_pickle_node node;

typedef struct reader {
    ts_arena *arena;
    node *const *strings;
    size_t string_count;
    const fe_source *source;
} reader;

static ts_status bad(const node *n, const char *text) {
    return ts_error_make(TS_ERR_INVALID_FILE, "offset %zu: %s", n->offset, text);
}

static bool is_tuple(const node *n, size_t least) {
    return n->kind == FE_PICKLE_TUPLE && n->as.list.count >= least;
}

/* build_intlist([...]) or the list itself. */
static const node *int_list(const node *n) {
    if (n->kind == FE_PICKLE_CALL && n->callee->global == FE_GLOBAL_INT_LIST &&
        is_tuple(n->as.list.items[0], 1))
        n = n->as.list.items[0]->as.list.items[0];
    return n->kind == FE_PICKLE_LIST ? n : NULL;
}

/* The line that holds byte `start` of the source, its number from 0, and the column's byte. */
typedef struct found_line {
    ts_str line;
    int64_t number;
    size_t column_byte;
} found_line;

static void find_in_text(ts_str text, size_t *start, found_line *out, bool *is_found) {
    for (size_t at = 0; at < text.length && !*is_found;) {
        const char *newline = memchr(text.data + at, '\n', text.length - at);
        size_t length = newline ? (size_t)(newline - (text.data + at)) : text.length - at;
        size_t whole = length + (newline ? 1 : 0);
        if (*start < whole || (at + whole == text.length && !newline && *start == whole)) {
            *out = (found_line){{text.data + at, length}, out->number, *start};
            *is_found = true;
            return;
        }
        *start -= whole;
        at += whole;
        if (newline)
            out->number++;
    }
}

static ts_status find_line(const reader *r, const node *text, size_t start, found_line *out,
                           bool *is_found) {
    if (text->kind == FE_PICKLE_STR) {
        find_in_text(text->as.text, &start, out, is_found);
        return NULL;
    }
    const node *lines = int_list(text);
    if (!lines)
        return bad(text, "text of a source: expected a string or a list of ints");
    for (size_t i = 0; i < lines->as.list.count && !*is_found; i++) {
        const node *index = lines->as.list.items[i];
        if (index->kind != FE_PICKLE_INT || index->as.integer < 0 ||
            (uint64_t)index->as.integer >= r->string_count)
            return bad(index, "index of a text outside the table");
        const node *string = r->strings[index->as.integer];
        if (string->kind != FE_PICKLE_STR)
            return bad(string, "expected a text");
        find_in_text(string->as.text, &start, out, is_found);
    }
    return NULL;
}

static size_t code_points(ts_str s, size_t bytes) {
    size_t n = 0;
    for (size_t i = 0; i < s.length && i < bytes; i++)
        n += ((unsigned char)s.data[i] & 0xC0) != 0x80;
    return n;
}

static ts_status read_place(const reader *r, const node *range, fe_origin *out) {
    if (!is_tuple(range, 3) || !is_tuple(range->as.list.items[0], 3))
        return bad(range, "a place: expected (source, start, end)");
    node *const *source = range->as.list.items[0]->as.list.items;
    const node *start = range->as.list.items[1], *end = range->as.list.items[2];
    if (start->kind != FE_PICKLE_INT || end->kind != FE_PICKLE_INT || start->as.integer < 0 ||
        end->as.integer < start->as.integer || source[2]->kind != FE_PICKLE_INT ||
        source[2]->as.integer < 0 || source[2]->as.integer > 1 << 30)
        return bad(range, "a place: expected ints in order");
    ts_str file = {0};
    if (source[1]->kind == FE_PICKLE_STR) {
        file = source[1]->as.text;
    } else if (source[1]->kind == FE_PICKLE_INT && r->strings) {
        if (source[1]->as.integer < 0 || (uint64_t)source[1]->as.integer >= r->string_count ||
            r->strings[source[1]->as.integer]->kind != FE_PICKLE_STR)
            return bad(source[1], "index of a file name outside the table");
        file = r->strings[source[1]->as.integer]->as.text;
    } else if (source[1]->kind != FE_PICKLE_NONE) {
        return bad(source[1], "a file name: expected a string");
    }
    found_line found = {0};
    bool is_found = false;
    TS_TRY(find_line(r, source[0], (size_t)start->as.integer, &found, &is_found));
    if (!is_found || file.length == 0 || found.number > 1 << 30)
        return NULL; /* written without a source: no place, the code's own is shown */
    size_t length = (size_t)(end->as.integer - start->as.integer);
    if (length > found.line.length - (found.column_byte < found.line.length
                                          ? found.column_byte : found.line.length))
        length = found.line.length > found.column_byte ? found.line.length - found.column_byte : 0;
    ts_str rest = {found.line.data + (length ? found.column_byte : 0), length};
    out->line = found.line;
    out->place = (ts_place){file, (int)(source[2]->as.integer + found.number),
                            (int)code_points(found.line, found.column_byte) + 1,
                            (int)code_points(rest, length)};
    if (out->place.length == 0)
        out->place.length = 1;
    return NULL;
}

ts_status fe_debug_records_read(ts_arena *arena, ts_str bytes, fe_source *source) {
    node *root = NULL;
    TS_TRY(fe_pickle_read(arena, bytes, FE_PICKLE_SCRIPT, NULL, &root));
    reader r = {.arena = arena, .source = source};
    const node *records = root;
    if (root->kind != FE_PICKLE_TUPLE)
        return bad(root, "expected a tuple");
    if (is_tuple(root, 1) && root->as.list.items[0]->kind == FE_PICKLE_STR) {
        if (!ts_str_is(root->as.list.items[0]->as.text, "FORMAT_WITH_STRING_TABLE") ||
            root->as.list.count != 3 || !is_tuple(root->as.list.items[1], 0))
            return bad(root, "an unknown form of debug records");
        r.strings = root->as.list.items[1]->as.list.items;
        r.string_count = root->as.list.items[1]->as.list.count;
        records = root->as.list.items[2];
    }
    if (records->kind != FE_PICKLE_TUPLE)
        return bad(records, "expected a tuple of records");
    fe_origin *origins = TS_NEW_ARRAY(arena, fe_origin, records->as.list.count + 1);
    uint32_t last = 0;
    for (size_t i = 0; i < records->as.list.count; i++) {
        const node *record = records->as.list.items[i];
        if (!is_tuple(record, 2) || record->as.list.items[0]->kind != FE_PICKLE_INT)
            return bad(record, "a record: expected (offset, place, tag)");
        int64_t offset = record->as.list.items[0]->as.integer;
        if (offset < last || offset > UINT32_MAX)
            return bad(record, "offsets of records are not in order");
        last = origins[i].offset = (uint32_t)offset;
        TS_TRY(read_place(&r, record->as.list.items[1], &origins[i]));
    }
    source->origins = origins;
    source->origin_count = records->as.list.count;
    return NULL;
}

/* runtime/format/validate.c - refuses damaged, truncated and foreign files before anything of them
 * is used. */
#include "runtime/format/tsm.h"

#include "runtime/base/hash.h"

uint64_t tsm_checksum_update(uint64_t state, const void *block, size_t length) {
    return ts_hash64(block, length, state);
}

uint64_t tsm_checksum(const void *data, size_t length) {
    const char *p = data;
    uint64_t state = 0;
    for (size_t at = 0; at < length; at += TSM_CHECKSUM_BLOCK) {
        size_t n = length - at < TSM_CHECKSUM_BLOCK ? length - at : TSM_CHECKSUM_BLOCK;
        state = tsm_checksum_update(state, p + at, n);
    }
    return state;
}

const char *tsm_section_name(uint32_t kind) {
    switch (kind) {
    case TSM_SECTION_PROGRAM: return "program";
    case TSM_SECTION_CODE: return "code";
    case TSM_SECTION_WEIGHTS: return "weights";
    case TSM_SECTION_DEVICE: return "device";
    case TSM_SECTION_SOURCE: return "source";
    default: return "unknown";
    }
}

uint64_t tsm_companions(const tsm_section *sections, size_t count, const tsm_section *code) {
    uint64_t own[] = {code->machine, code->features};
    uint64_t state = ts_hash64(code->level, sizeof code->level, ts_hash64(own, sizeof own, count));
    for (size_t i = 0; i < count; i++) {
        if (sections[i].kind == TSM_SECTION_CODE)
            continue;
        uint64_t content[] = {sections[i].kind, sections[i].bytes, sections[i].checksum};
        state = ts_hash64(sections[i].level, sizeof sections[i].level,
                          ts_hash64(content, sizeof content, state));
    }
    return state;
}

static ts_status bad(const char *what) {
    return ts_error_make(TS_ERR_INVALID_FILE, "%s", what);
}

/* Says what a file of another kind is, where its first bytes tell. */
static ts_status foreign(const char *p, size_t length) {
    static const struct {
        const char *magic;
        size_t length;
        const char *name;
    } known[] = {{"PK\x03\x04", 4, "a zip archive (a TorchScript .pt? compile it with tsc first)"},
                 {"\x7f" "ELF", 4, "an ELF file"},
                 {"\x80\x02", 2, "a pickle"},
                 {"\x1f\x8b", 2, "a gzip file"},
                 {"import ", 7, "a script (compile it with tsc first)"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (length >= known[i].length && memcmp(p, known[i].magic, known[i].length) == 0)
            return ts_error_make(TS_ERR_INVALID_FILE, "expected a .tsm artifact, found %s",
                                 known[i].name);
    return bad(length == 0 ? "expected a .tsm artifact, found an empty file"
                           : "expected a .tsm artifact, found other bytes");
}

ts_status tsm_validate_section(const void *data, const tsm_section *section) {
    uint64_t found = tsm_checksum((const char *)data + section->offset, (size_t)section->bytes);
    if (found != section->checksum)
        return ts_error_make(TS_ERR_INVALID_FILE,
                             "section %s: checksum %016llx stored, %016llx computed: the file is "
                             "damaged",
                             tsm_section_name(section->kind),
                             (unsigned long long)section->checksum, (unsigned long long)found);
    return NULL;
}

/* Kinds are known, and those that stand once do. */
static ts_status check_kinds(const tsm_section *sections, size_t count) {
    unsigned seen = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t kind = sections[i].kind;
        bool may_repeat = kind == TSM_SECTION_CODE || kind == TSM_SECTION_DEVICE;
        if (kind < TSM_SECTION_PROGRAM || kind > TSM_SECTION_SOURCE)
            return ts_error_make(TS_ERR_INVALID_FILE,
                                 "section table: section %zu: expected a kind of %d to %d, found %u",
                                 i, TSM_SECTION_PROGRAM, TSM_SECTION_SOURCE, kind);
        if (!may_repeat && (seen & 1u << kind))
            return ts_error_make(TS_ERR_INVALID_FILE, "section table: two sections %s",
                                 tsm_section_name(kind));
        seen |= 1u << kind;
    }
    for (uint32_t kind = TSM_SECTION_PROGRAM; kind <= TSM_SECTION_CODE; kind++)
        if (!(seen & 1u << kind))
            return ts_error_make(TS_ERR_INVALID_FILE, "section table: there is no section %s",
                                 tsm_section_name(kind));
    return NULL;
}

ts_status tsm_validate(const void *data, size_t length, const tsm_section **out_sections,
                       size_t *out_count) {
    *out_sections = NULL;
    *out_count = 0;
    const char *p = data;
    size_t magic = length < 8 ? length : 8;
    if (length == 0 || memcmp(p, TSM_MAGIC, magic) != 0)
        return foreign(p, length);
    tsm_header h;
    if (length < sizeof h)
        return bad("header: the file is cut short");
    memcpy(&h, p, sizeof h);
    if (h.endian != TSM_ENDIAN)
        return bad("header: byte order: expected little-endian");
    if (h.format != TSM_FORMAT)
        return ts_error_make(TS_ERR_INVALID_FILE,
                             "header: format version: expected %d, found %u (compile the model "
                             "again with this version's tsc)",
                             TSM_FORMAT, h.format);
    if (tsm_checksum(p, offsetof(tsm_header, header_checksum)) != h.header_checksum)
        return bad("header: checksum does not match: the file is damaged");
    if (h.abi != TSM_ABI || h.pointer_bytes != sizeof(void *))
        return ts_error_make(TS_ERR_INVALID_FILE,
                             "header: runtime interface: expected %d with %u-byte pointers, found "
                             "%u with %u",
                             TSM_ABI, (unsigned)sizeof(void *), h.abi, h.pointer_bytes);
    if (h.flags)
        return ts_error_make(TS_ERR_INVALID_FILE, "header: flags: expected 0, found %u", h.flags);
    if (h.file_bytes != length)
        return ts_error_make(TS_ERR_INVALID_FILE,
                             "header: file size: expected %llu bytes, found %llu%s",
                             (unsigned long long)h.file_bytes, (unsigned long long)length,
                             h.file_bytes > length ? ": the file is cut short" : "");
    if (h.section_count == 0 || h.section_count > TSM_MAX_SECTIONS ||
        sizeof h + h.section_count * sizeof(tsm_section) > length)
        return bad("header: section count is out of range");
    const tsm_section *sections = (const tsm_section *)(const void *)(p + sizeof h);
    size_t table = h.section_count * sizeof(tsm_section);
    if (tsm_checksum(sections, table) != h.table_checksum)
        return bad("section table: checksum does not match: the file is damaged");
    uint64_t end = sizeof h + table;
    for (uint32_t i = 0; i < h.section_count; i++) {
        const tsm_section *s = &sections[i];
        if (s->offset % TSM_ALIGN || s->offset < end || s->offset > length ||
            s->bytes > length - s->offset)
            return ts_error_make(TS_ERR_INVALID_FILE, "section %s: lies outside the file or over "
                                 "another section", tsm_section_name(s->kind));
        if (memchr(s->level, 0, sizeof s->level) == NULL)
            return bad("section table: level name is not terminated");
        end = s->offset + s->bytes;
    }
    TS_TRY(check_kinds(sections, h.section_count));
    for (uint32_t i = 0; i < h.section_count; i++)
        if (sections[i].kind != TSM_SECTION_WEIGHTS)
            TS_TRY(tsm_validate_section(data, &sections[i]));
    *out_sections = sections;
    *out_count = h.section_count;
    return NULL;
}

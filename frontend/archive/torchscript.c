/* frontend/archive/torchscript.c - the container of a TorchScript archive: which members there are
 * and what they must say. Objects are built in objects.c. */
#include "frontend/archive/archive_internal.h"

#include "frontend/archive/debug_records.h"
#include "frontend/archive/exported.h"
#include "frontend/archive/legacy.h"
#include "runtime/base/checked.h"

fe_file_kind fe_file_kind_of(ts_str bytes, const char **out_what) {
    const unsigned char *p = (const unsigned char *)bytes.data;
    static const struct {
        const char *magic;
        size_t length;
        const char *what;
    } known[] = {{"\177ELF", 4, "an ELF file"},     {"\037\213", 2, "a gzip file"},
                 {"\375" "7zXZ", 5, "an xz file"},  {"BZh", 3, "a bzip2 file"},
                 {"\211PNG", 4, "a PNG image"},     {"GGUF", 4, "a GGUF file"},
                 {"\211HDF", 4, "an HDF5 file"},    {"\211TSM", 4, "a compiled model: tsrun runs it"},
                 {"\x28\xb5\x2f\xfd", 4, "a zstd file"}};
    *out_what = "an empty file";
    if (bytes.length == 0)
        return FE_FILE_EMPTY;
    *out_what = "a zip archive";
    if (bytes.length >= 4 && memcmp(p, "PK\3\4", 4) == 0)
        return FE_FILE_ZIP;
    if (bytes.length >= 4 && memcmp(p, "PK\5\6", 4) == 0)
        return FE_FILE_ZIP;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (bytes.length >= known[i].length && !memcmp(p, known[i].magic, known[i].length)) {
            *out_what = known[i].what;
            return FE_FILE_OTHER;
        }
    *out_what = "a safetensors file";
    if (bytes.length >= 9 && p[8] == '{' && p[7] == 0 && p[6] == 0 && p[5] == 0)
        return FE_FILE_SAFETENSORS;
    *out_what = "a pickle";
    if (bytes.length >= 2 && p[0] == 0x80 && p[1] >= 2 && p[1] <= 5)
        return FE_FILE_PICKLE;
    *out_what = "text";
    size_t look = bytes.length < 4096 ? bytes.length : 4096;
    for (size_t i = 0; i < look; i++)
        if (p[i] == 0 || (p[i] < 32 && p[i] != '\n' && p[i] != '\r' && p[i] != '\t' &&
                          p[i] != '\f')) {
            *out_what = "binary data of no known form";
            return FE_FILE_OTHER;
        }
    return FE_FILE_TEXT;
}

static ts_str member_name(fe_archive *a, const char *rest) {
    return ts_arena_format(a->arena, "%.*s%s", (int)a->top.length, a->top.data, rest);
}

static ts_status invalid(const char *member, const char *text) {
    return ts_error_make(TS_ERR_INVALID_FILE, "%s: %s", member, text);
}

/* The one top folder: that of the shallowest data.pkl, or of model.json in archives before 1.3. */
static ts_status find_top(fe_archive *a) {
    bool is_found = false;
    ts_str legacy = {0};
    for (size_t i = 0; i < a->zip->count; i++) {
        ts_str name = a->zip->members[i].name;
        const char *slash = memchr(name.data, '/', name.length);
        if (!slash)
            continue;
        ts_str top = {name.data, (size_t)(slash - name.data) + 1};
        ts_str rest = {slash + 1, name.length - top.length};
        if (ts_str_is(rest, "model.json"))
            legacy = top;
        if (!ts_str_is(rest, "data.pkl"))
            continue;
        if (is_found && !ts_str_equal(top, a->top))
            return invalid("data.pkl", "two top folders hold one");
        a->top = top;
        is_found = true;
    }
    if (is_found)
        return NULL;
    a->top = legacy;
    if (legacy.length)
        return NULL;
    for (size_t i = 0; i < a->zip->count; i++)
        if (strstr(ts_arena_copy(a->arena, a->zip->members[i].name.data, a->zip->members[i].name.length),
                   "data/aotinductor/"))
            return ts_error_make(TS_ERR_UNSUPPORTED, "an AOTInductor package holds machine code only: "
                                 "save the program with torch.export.save");
        else if (ts_str_ends_with(a->zip->members[i].name, "/.data/extern_modules"))
            return ts_error_make(TS_ERR_UNSUPPORTED, "a torch.package archive holds Python code: save "
                                 "the model with torch.jit.save or torch.export.save");
    return ts_error_make(TS_ERR_INVALID_FILE, "data.pkl is missing: not a TorchScript archive");
}

static ts_status read_small(fe_archive *a, const char *rest, size_t limit, bool *out_found,
                            ts_str *out) {
    fe_zip_member *m = fe_zip_find(a->zip, member_name(a, rest));
    *out_found = m != NULL;
    return m ? fe_zip_read(a->zip, a->arena, m, limit, out) : NULL;
}

static ts_status read_version(fe_archive *a) {
    ts_str text = {0}, other = {0};
    bool is_plain = false, is_hidden = false;
    TS_TRY(read_small(a, "version", 64, &is_plain, &text));
    TS_TRY(read_small(a, ".data/version", 64, &is_hidden, is_plain ? &other : &text));
    if (!is_plain && !is_hidden)
        return invalid("version", "the record is missing");
    if (is_plain && is_hidden && !ts_str_equal(text, other))
        return invalid("version", "the two records differ");
    while (text.length && (text.data[text.length - 1] == '\n' || text.data[text.length - 1] == '\r'))
        text.length--;
    int version = 0;
    for (size_t i = 0; i < text.length && version <= FE_ARCHIVE_MAX_VERSION; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return ts_error_make(TS_ERR_INVALID_FILE, "version: expected a number from 1 to %d, "
                                 "found '%.*s'", FE_ARCHIVE_MAX_VERSION, TS_STR_ARG(text));
        version = 10 * version + (text.data[i] - '0');
    }
    if (version < 1 || version > FE_ARCHIVE_MAX_VERSION)
        return ts_error_make(TS_ERR_INVALID_FILE, "version: versions 1 to %d are read, found "
                             "'%.*s'", FE_ARCHIVE_MAX_VERSION, TS_STR_ARG(text));
    a->version = version;
    return NULL;
}

static ts_status read_byteorder(fe_archive *a) {
    ts_str text = {0};
    bool is_found = false;
    TS_TRY(read_small(a, "byteorder", 64, &is_found, &text));
    if (!is_found || ts_str_is(text, "little"))
        return NULL;
    a->is_big_endian = ts_str_is(text, "big");
    if (a->is_big_endian)
        return NULL;
    return ts_error_make(TS_ERR_INVALID_FILE, "byteorder: expected 'little' or 'big', found '%.*s'",
                         TS_STR_ARG(text));
}

static void warn(fe_archive *a, const char *text, ts_str name) {
    ts_place place = {a->path, 0, 0, 0};
    fe_report_place(a->diagnostics, FE_WARNING, TS_ERR_INVALID_FILE, place, (ts_str){0},
                    "%.*s: %s", TS_STR_ARG(name), text);
}

/* Debug records are a comfort: a broken one is dropped, with one warning for all. */
static void read_debug(fe_archive *a, fe_code_file *file, ts_str name, size_t *budget,
                       bool *is_warned) {
    fe_zip_member *m = fe_zip_find(a->zip, ts_arena_format(a->arena, "%.*s.debug_pkl",
                                                           (int)name.length, name.data));
    ts_str bytes = {0};
    if (!m || m->bytes == 0 || m->bytes > *budget)
        return;
    *budget -= m->bytes;
    ts_status status = fe_zip_read(a->zip, a->arena, m, FE_ARCHIVE_MAX_DEBUG, &bytes);
    if (!status)
        status = fe_debug_records_read(a->arena, bytes, file->source);
    if (status && !*is_warned) {
        warn(a, "damaged debug records are ignored: messages name the archive's code", m->name);
        *is_warned = true;
    }
    ts_status_release(status);
}

/* "a/b.py" below code/ holds names that begin with "a.b". */
static ts_str module_of(ts_arena *arena, ts_str path) {
    char *text = ts_arena_copy(arena, path.data, path.length - 3);
    for (size_t i = 0; i < path.length - 3; i++)
        if (text[i] == '/')
            text[i] = '.';
    return (ts_str){text, path.length - 3};
}

static ts_status read_code(fe_archive *a) {
    ts_str folder = member_name(a, "code/");
    size_t left = FE_ARCHIVE_MAX_CODE, debug_left = FE_ARCHIVE_MAX_DEBUG;
    bool is_warned = false;
    for (size_t i = 0; i < a->zip->count; i++) {
        fe_zip_member *m = &a->zip->members[i];
        ts_str text = {0};
        if (m->name.length <= folder.length + 3 ||
            memcmp(m->name.data, folder.data, folder.length) != 0 ||
            !ts_str_ends_with(m->name, ".py"))
            continue;
        if (m->bytes > left)
            return ts_error_make(TS_ERR_INVALID_FILE, "%.*s: more than %d bytes of code",
                                 TS_STR_ARG(m->name), FE_ARCHIVE_MAX_CODE);
        TS_TRY(fe_zip_read(a->zip, a->arena, m, left, &text));
        left -= m->bytes;
        fe_code_file file = {0};
        ts_str shown = ts_arena_format(a->arena, "%.*s:%.*s", (int)a->path.length, a->path.data,
                                       (int)(m->name.length - a->top.length),
                                       m->name.data + a->top.length);
        TS_TRY(fe_source_make(a->arena, shown, text, &file.source));
        file.source->is_archive = true;
        file.module = module_of(a->arena, (ts_str){m->name.data + folder.length,
                                                   m->name.length - folder.length});
        read_debug(a, &file, m->name, &debug_left, &is_warned);
        TS_APPEND(a->arena, a->code, a->code_count, a->code_capacity, file);
    }
    if (!a->code_count)
        return ts_error_make(TS_ERR_INVALID_FILE, "code/ is missing: not a TorchScript archive%s",
                             fe_zip_find(a->zip, member_name(a, "bytecode.pkl"))
                                 ? " (it holds bytecode only, which is not supported)"
                                 : " (a state dict is given with --weights)");
    return NULL;
}

static ts_status open_archive(fe_archive *a, bool ignore_crc) {
    ts_str bytes = fe_mapping_bytes(a->mapping);
    const char *what = NULL;
    ts_status status = fe_zip_open(a->arena, (const unsigned char *)bytes.data, bytes.length,
                                   ignore_crc, &a->zip);
    if (status && fe_file_kind_of(bytes, &what) != FE_FILE_ZIP) {
        ts_status_release(status);
        return ts_error_make(TS_ERR_INVALID_FILE, "not a zip archive: this is %s", what);
    }
    TS_TRY(status);
    if (fe_exported_is_one(a)) {
        TS_TRY(read_byteorder(a));
        return fe_exported_open(a);
    }
    TS_TRY(find_top(a));
    TS_TRY(read_version(a));
    TS_TRY(read_byteorder(a));
    return fe_zip_find(a->zip, member_name(a, "data.pkl")) ? read_code(a) : fe_legacy_open(a);
}

ts_status fe_torchscript_open(ts_arena *arena, ts_str path, ts_str program, bool ignore_crc,
                              fe_diagnostics *diagnostics, fe_archive **out) {
    *out = NULL;
    fe_archive *a = TS_NEW(arena, fe_archive);
    a->arena = arena;
    a->path = path;
    a->program = program;
    a->diagnostics = diagnostics;
    TS_TRY(fe_mapping_open(arena, path, &a->mapping));
    ts_status status = open_archive(a, ignore_crc);
    if (status) {
        fe_torchscript_release(a);
        return ts_status_set_place(status, (ts_place){path, 0, 0, 0});
    }
    *out = a;
    return NULL;
}

int fe_torchscript_version(const fe_archive *archive) { return archive->version; }

const fe_code_file *fe_torchscript_code(const fe_archive *archive, size_t *out_count) {
    *out_count = archive->code_count;
    return archive->code;
}

static ts_status read_pickle(fe_archive *a, const char *name, bool *out_found,
                             fe_pickle_node **out) {
    ts_str bytes = {0};
    TS_TRY(read_small(a, name, FE_ARCHIVE_MAX_PICKLE, out_found, &bytes));
    if (!*out_found)
        return NULL;
    return ts_status_context(fe_pickle_read(a->arena, bytes, FE_PICKLE_SCRIPT, NULL, out),
                             "reading %s", name);
}

static ts_status load_data(fe_archive *a, const fe_torchscript_classes *classes,
                           fe_records *records, fe_torchscript_objects *out) {
    fe_pickle_node *root = NULL;
    bool is_found = false;
    records->folder = member_name(a, "data/");
    TS_TRY(read_pickle(a, "data.pkl", &is_found, &root));
    if (!is_found || !root)
        return invalid("data.pkl", "the record is missing");
    TS_TRY(fe_archive_build(a, classes, records, TS_STR("data.pkl"), root, &out->root));
    if (out->root.tag != RT_TAG_OBJECT)
        return ts_error_make(TS_ERR_INVALID_FILE, "data.pkl: expected a module, found %s",
                             rt_tag_name(out->root));
    return NULL;
}

static ts_status load_constants(fe_archive *a, const fe_torchscript_classes *classes,
                                fe_records *records, fe_torchscript_objects *out) {
    fe_pickle_node *root = NULL;
    bool is_found = false;
    records->folder = member_name(a, "constants/");
    TS_TRY(read_pickle(a, "constants.pkl", &is_found, &root));
    if (!is_found)
        return NULL;
    if (root->kind != FE_PICKLE_TUPLE)
        return ts_error_make(TS_ERR_INVALID_FILE, "constants.pkl: expected a tuple, found %s",
                             fe_pickle_kind_text(root));
    TS_TRY(fe_archive_build(a, classes, records, TS_STR("constants.pkl"), root, &out->constants));
    ts_str *types = TS_NEW_ARRAY(a->arena, ts_str, root->as.list.count + 1);
    for (size_t i = 0; i < root->as.list.count; i++) {
        const fe_pickle_node *n = root->as.list.items[i];
        if (n->kind == FE_PICKLE_CALL && n->callee->global == FE_GLOBAL_RESTORE_TYPE_TAG)
            types[i] = n->as.list.items[0]->as.list.items[1]->as.text;
        else if (n->kind == FE_PICKLE_CALL && n->callee->global == FE_GLOBAL_INT_LIST)
            types[i] = TS_STR("List[int]");
        else if (n->kind == FE_PICKLE_CALL && n->callee->global == FE_GLOBAL_DOUBLE_LIST)
            types[i] = TS_STR("List[float]");
        else if (n->kind == FE_PICKLE_CALL && n->callee->global == FE_GLOBAL_BOOL_LIST)
            types[i] = TS_STR("List[bool]");
        else if (n->kind == FE_PICKLE_CALL && n->callee->global == FE_GLOBAL_TENSOR_LIST)
            types[i] = TS_STR("List[Tensor]");
    }
    out->constant_types = types;
    return NULL;
}

ts_status fe_torchscript_load(fe_archive *a, const fe_torchscript_classes *classes,
                              fe_torchscript_objects *out) {
    *out = (fe_torchscript_objects){0};
    fe_records records = {.mapping = a->mapping, .zip = a->zip,
                          .is_big_endian = a->is_big_endian};
    records.storages = TS_NEW_ARRAY(a->arena, rt_storage *, a->zip->count + 1);
    records.swapped = TS_NEW_ARRAY(a->arena, uint8_t, a->zip->count + 1);
    bool is_archive = !a->legacy && !a->exported;
    ts_status status = a->legacy     ? fe_legacy_load(a, classes, &records, out)
                       : a->exported ? fe_exported_load(a, classes, &records, out)
                                     : load_data(a, classes, &records, out);
    if (!status && is_archive)
        status = load_constants(a, classes, &records, out);
    fe_records_release(&records);
    if (status) {
        *out = (fe_torchscript_objects){0};
        return ts_status_set_place(status, (ts_place){a->path, 0, 0, 0});
    }
    if (records.has_foreign_device)
        warn(a, "tensors of other devices are taken to the cpu", TS_STR("data.pkl"));
    out->pending = a->pending;
    out->pending_count = a->pending_count;
    a->objects = *out;
    return NULL;
}

void fe_torchscript_forget(const fe_archive *a) {
    if (a && a->mapping)
        fe_mapping_forget(a->mapping);
}

void fe_torchscript_release(fe_archive *a) {
    if (!a)
        return;
    while (a->owned_count)
        rt_release(a->owned[--a->owned_count]);
    fe_legacy_release(a);
    fe_exported_release(a);
    fe_mapping_release(a->mapping);
    a->mapping = NULL;
}

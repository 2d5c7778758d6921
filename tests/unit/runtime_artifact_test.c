/* Artifacts that are damaged, truncated or foreign are refused before anything of them is used. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "codegen/codegen.h"
#include "runtime/base/file.h"
#include "runtime/format/tsm.h"
#include "runtime/tsrt.h"

static const char program[] =
    "class @__torch__.M module {\n"
    "  field n : int\n"
    "  field w : Tensor\n"
    "  field names : List[str]\n"
    "  field by : Dict[str, int]\n"
    "}\n"
    "object #0 = @__torch__.M { n = 5, w = tensor(float32[2,2], [1.0, 2.0, 3.0, 4.0]), names = "
    "[\"a\", \"b\"], by = {\"x\": 1} }\n"
    "root = #0\n"
    "func @forward(%self: __torch__.M, %x: float32[N,2], %k: int = 3) -> Tensor entry {\n"
    "  %w = get_attr.w(%self) : Tensor\n"
    "  %y = add.Tensor(%x, %w, %k) : Tensor\n"
    "  set_attr.w(%self, %y)\n"
    "  return %y\n"
    "}\n";

static unsigned char *bytes;
static size_t length;

static void compile_to(const char *path) {
    ts_arena *arena = ts_arena_create(0);
    ir_module *m = ir_module_make(arena);
    ts_status status = ir_parse_module(m, TS_STR("t.tsir"), TS_STR(program), NULL, NULL);
    ck_assert_msg(!status, "%d:%d: %s", ts_status_place(status).line,
                  ts_status_place(status).column, ts_status_message(status));
    const cg_target_info *level = cg_target_find(TS_STR("x86-64-v2"));
    cg_options options = {.levels = &level, .level_count = 1, .opt_level = 2,
                          .emit = CG_EMIT_TSM, .output_path = ts_str_of(path),
                          .source_name = TS_STR("t.tsir")};
    status = cg_compile(m, arena, &options);
    ck_assert_msg(!status, "%s", ts_status_message(status));
    ir_module_deinit(m);
    ts_arena_release(arena);
}

static void setup(void) {
    char path[] = "/tmp/tsc_artifact_test_XXXXXX";
    int fd = mkstemp(path);
    ck_assert(fd >= 0);
    close(fd);
    compile_to(path);
    ts_mapped_file first, second;
    ck_assert_ptr_null(ts_file_map(path, &first));
    length = first.length;
    bytes = aligned_alloc(4096, (length + 4095) / 4096 * 4096);
    memcpy(bytes, first.data, length);
    /* The same input gives the same bytes. */
    compile_to(path);
    ck_assert_ptr_null(ts_file_map(path, &second));
    ck_assert_uint_eq(second.length, length);
    ck_assert(memcmp(bytes, second.data, length) == 0);
    ts_file_unmap(&first);
    ts_file_unmap(&second);
    unlink(path);
}

static void teardown(void) { free(bytes); }

static tsrt_code load_code(const void *data, size_t n) {
    tsrt_model *m;
    tsrt_status *s = tsrt_model_load_bytes(data, n, NULL, &m);
    tsrt_code code = tsrt_status_code(s);
    if (s)
        ck_assert_int_gt((int)strlen(tsrt_status_message(s)), 5);
    tsrt_status_release(s);
    if (m) {
        tsrt_session *session;
        tsrt_status_release(tsrt_session_create(m, NULL, &session));
        tsrt_session_release(session);
    }
    tsrt_model_release(m);
    return code;
}

START_TEST(the_whole_file_loads) { ck_assert_int_eq(load_code(bytes, length), TSRT_OK); }
END_TEST

START_TEST(a_cut_file_is_refused) {
    for (size_t n = 0; n < length; n += 1 + n / 7)
        ck_assert_int_eq(load_code(bytes, n), TSRT_ERR_INVALID_FILE);
}
END_TEST

START_TEST(foreign_files_are_named) {
    tsrt_model *m;
    tsrt_status *s = tsrt_model_load_bytes("PK\x03\x04....", 8, NULL, &m);
    ck_assert_ptr_nonnull(strstr(tsrt_status_message(s), "zip archive"));
    tsrt_status_release(s);
    s = tsrt_model_load("/nonexistent/model.tsm", NULL, &m);
    ck_assert_int_eq(tsrt_status_code(s), TSRT_ERR_IO);
    tsrt_status_release(s);
}
END_TEST

START_TEST(a_flipped_byte_is_noticed) {
    const tsm_section *sections = (const tsm_section *)(void *)(bytes + sizeof(tsm_header));
    tsm_header h;
    memcpy(&h, bytes, sizeof h);
    for (uint32_t k = 0; k < h.section_count; k++) {
        size_t at = (size_t)sections[k].offset + (size_t)sections[k].bytes / 2;
        bytes[at] ^= 1;
        tsrt_code expected = sections[k].kind == TSM_SECTION_WEIGHTS ? TSRT_OK
                                                                     : TSRT_ERR_INVALID_FILE;
        ck_assert_int_eq(load_code(bytes, length), expected);
        tsrt_model *m;
        tsrt_load_options o = {.size = sizeof o, .verify_weights = 1};
        tsrt_status *s = tsrt_model_load_bytes(bytes, length, &o, &m);
        ck_assert_int_eq(tsrt_status_code(s), TSRT_ERR_INVALID_FILE);
        tsrt_status_release(s);
        bytes[at] ^= 1;
    }
    for (size_t at = 0; at < sizeof h + sizeof *sections; at++) {
        bytes[at] ^= 0x40;
        ck_assert_int_eq(load_code(bytes, length), TSRT_ERR_INVALID_FILE);
        bytes[at] ^= 0x40;
    }
}
END_TEST

/* Right checksums for what stands there now; the code image is told of it, too, where `seals`. */
static void recompute_checksums(bool seals) {
    tsm_header *h = (tsm_header *)(void *)bytes;
    tsm_section *sections = (tsm_section *)(void *)(bytes + sizeof *h);
    for (uint32_t code = 0; code < 2; code++)
        for (uint32_t k = 0; k < h->section_count && k < TSM_MAX_SECTIONS; k++) {
            tsm_section *s = &sections[k];
            if ((s->kind == TSM_SECTION_CODE) != (code != 0) || s->offset > length ||
                s->bytes > length - s->offset)
                continue;
            if (code && seals) {
                tsm_code_header *image = (tsm_code_header *)(void *)(bytes + s->offset);
                image->companions = tsm_companions(sections, h->section_count, s);
            }
            s->checksum = tsm_checksum(bytes + s->offset, (size_t)s->bytes);
        }
    h->table_checksum = tsm_checksum(sections, h->section_count * sizeof *sections);
    h->header_checksum = tsm_checksum(h, offsetof(tsm_header, header_checksum));
}

/* Loads and, where that is refused, looks for `text` in the message. */
static void expect_refused(const char *text) {
    tsrt_model *m;
    tsrt_status *s = tsrt_model_load_bytes(bytes, length, NULL, &m);
    ck_assert_int_eq(tsrt_status_code(s), TSRT_ERR_INVALID_FILE);
    ck_assert_msg(strstr(tsrt_status_message(s), text) != NULL, "%s", tsrt_status_message(s));
    tsrt_status_release(s);
}

static tsm_section *find_section(uint32_t kind) {
    tsm_section *s = (tsm_section *)(void *)(bytes + sizeof(tsm_header));
    while (s->kind != kind)
        s++;
    return s;
}

START_TEST(kinds_of_sections_are_asked) {
    static const struct {
        uint32_t from, to;
        const char *text;
    } changes[] = {{TSM_SECTION_WEIGHTS, 99, "expected a kind of 1 to 5, found 99"},
                   {TSM_SECTION_WEIGHTS, 0, "found 0"},
                   {TSM_SECTION_WEIGHTS, TSM_SECTION_SOURCE, "section weights: the code needs"},
                   {TSM_SECTION_WEIGHTS, TSM_SECTION_PROGRAM, "two sections program"},
                   {TSM_SECTION_PROGRAM, TSM_SECTION_SOURCE, "there is no section program"},
                   {TSM_SECTION_CODE, TSM_SECTION_DEVICE, "there is no section code"}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        tsm_section *s = find_section(changes[i].from);
        s->kind = changes[i].to;
        recompute_checksums(false);
        expect_refused(changes[i].text);
        s->kind = changes[i].from;
    }
    recompute_checksums(false);
    ck_assert_int_eq(load_code(bytes, length), TSRT_OK);
}
END_TEST

/* Compiled code trusts the tables beside it: it takes no others, however right their checksums. */
START_TEST(code_takes_only_its_own_sections) {
    static const uint32_t kinds[] = {TSM_SECTION_PROGRAM, TSM_SECTION_WEIGHTS};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        unsigned char *content = bytes + find_section(kinds[i])->offset;
        content[20] ^= 1;
        recompute_checksums(false);
        expect_refused("section code: was compiled with other sections");
        content[20] ^= 1;
    }
    find_section(TSM_SECTION_CODE)->features = 0; /* would be chosen on every processor */
    recompute_checksums(false);
    expect_refused("section code: was compiled with other sections");
}
END_TEST

/* Bytes of the tables changed under right checksums: no crash, whatever they say. */
START_TEST(lying_tables_do_no_harm) {
    tsm_section *sections = (tsm_section *)(void *)(bytes + sizeof(tsm_header));
    unsigned char *table = bytes + sections[0].offset;
    size_t n = (size_t)sections[0].bytes;
    static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
    for (size_t at = 0; at < n; at++)
        for (size_t v = 0; v < sizeof values; v++) {
            unsigned char old = table[at];
            table[at] = values[v];
            recompute_checksums(true);
            load_code(bytes, length);
            table[at] = old;
        }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("artifact");
    TCase *cases = tcase_create("artifact");
    suite_add_tcase(suite, cases);
    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, the_whole_file_loads);
    tcase_add_test(cases, a_cut_file_is_refused);
    tcase_add_test(cases, foreign_files_are_named);
    tcase_add_test(cases, a_flipped_byte_is_noticed);
    tcase_add_test(cases, kinds_of_sections_are_asked);
    tcase_add_test(cases, code_takes_only_its_own_sections);
    tcase_add_test(cases, lying_tables_do_no_harm);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* Every operator and functional of the embedded library types and becomes IR that verifies. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "frontend/frontend_internal.h"

struct fe_library_file {
    const char *name;
    const unsigned char *data;
    unsigned long length;
};
extern const struct fe_library_file fe_library_files[];
extern const unsigned long fe_library_file_count;

static size_t check_file(fe_context *fe, const struct fe_library_file *file, const char *path) {
    const char *at = (const char *)file->data, *end = at + file->length;
    size_t failed = 0;
    while (at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        if (!line_end)
            line_end = end;
        if (line_end - at > 4 && memcmp(at, "def ", 4) == 0) {
            ts_str name = {at + 4, strcspn(at + 4, "(")};
            fe_binding b = fe_library_find(fe, ts_str_of(path), name);
            size_t before = fe->diagnostics->count;
            ir_function *f = b.kind == FE_FUNCTION ? fe_function_ir(fe, b.function) : NULL;
            ts_status status = f ? ir_verify_function(fe->module, f) : NULL;
            if (!f || status) {
                failed++;
                fprintf(stderr, "%s.%.*s: %s\n", path, (int)name.length, name.data,
                        status ? ts_status_message(status)
                        : before < fe->diagnostics->count
                            ? ts_arena_copy(fe->arena, fe->diagnostics->items[before].message.data,
                                            fe->diagnostics->items[before].message.length)
                            : "calls what has errors");
                ts_status_release(status);
            }
            fe->diagnostics->count = before;
            fe->diagnostics->error_count = 0;
        }
        at = line_end + 1;
    }
    return failed;
}

START_TEST(library_has_no_errors) {
    ts_arena *arena = ts_arena_create(0);
    fe_diagnostics diagnostics = {.arena = arena};
    fe_options options = {.training = -1};
    ir_module *m = ir_module_make(arena);
    fe_context *fe = fe_context_make(m, &options, &diagnostics);
    size_t failed = 0;
    for (unsigned long i = 0; i < fe_library_file_count; i++) {
        const char *name = fe_library_files[i].name;
        if (strncmp(name, "tensor", 6) == 0)
            failed += check_file(fe, &fe_library_files[i], "torch");
        else if (strncmp(name, "functional", 10) == 0)
            failed += check_file(fe, &fe_library_files[i], "torch.nn.functional");
    }
    ck_assert_msg(ir_function_find(m, TS_STR("torch.nn.functional.pad")) != NULL, "nothing was made");
    ck_assert_msg(failed == 0, "%zu functions of the library have errors", failed);
    fe_context_deinit(fe);
    ir_module_deinit(m);
    ts_arena_release(arena);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("emit_library");
    TCase *tcase = tcase_create("library");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, library_has_no_errors);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

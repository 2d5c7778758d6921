/* tests/unit/archive_torchscript_test.c - whole archives: objects, shared tensors, types. */
#include "frontend/archive/archive.h"
#include "frontend/archive/debug_records.h"
#include "tests/unit/archive_support.h"

#include <unistd.h>

/* class M: w, v : Tensor; k : int */
static const ir_type tensor_type = {.kind = IR_TENSOR, .rank = -1, .dtype = RT_DTYPE_UNKNOWN};
static const ir_type int_type = {.kind = IR_INT};
static const ts_str names[] = {{"w", 1}, {"v", 1}, {"k", 1}};
static ir_field fields[3];
static ir_class class_m;

static ts_status find(void *user, ts_str name, const ir_class **out) {
    (void)user;
    fields[0] = (ir_field){.name = names[0], .type = &tensor_type};
    fields[1] = (ir_field){.name = names[1], .type = &tensor_type};
    fields[2] = (ir_field){.name = names[2], .type = &int_type};
    class_m.base = (rt_class){.name = TS_STR("__torch__.M"), .kind = RT_CLASS_MODULE,
                              .fields = names, .field_count = 3};
    class_m.fields = fields;
    class_m.field_count = 3;
    static const ts_str legacy_names[] = {{"value", 5}};
    static const ir_field legacy_fields[] = {{.name = {"value", 5}, .type = &tensor_type}};
    static ir_class class_foo;
    class_foo.base = (rt_class){.name = TS_STR("__torch__.foo"), .kind = RT_CLASS_MODULE,
                                .fields = legacy_names, .field_count = 1};
    class_foo.fields = legacy_fields;
    class_foo.field_count = 1;
    *out = ts_str_is(name, "__torch__.M")     ? &class_m
           : ts_str_is(name, "__torch__.foo") ? &class_foo
                                              : NULL;
    return NULL;
}

static bool has_method(void *user, const ir_class *c, ts_str name) {
    (void)user;
    (void)c;
    (void)name;
    return false;
}

#define BYTES(literal) ((ts_str){literal, sizeof(literal) - 1})

/* The storage is memoised while the first tensor is made, as PyTorch does. */
#define HEAD "\x80\x02"                                                                            \
             "c__torch__\nM\n)\x81}("
#define FIRST "X\x01\0\0\0wctorch._utils\n_rebuild_tensor_v2\n(("                                  \
              "X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0"                                \
              "0X\x03\0\0\0cpuK\x06tQq\x05K\x00K\x02K\x03\x86K\x03K\x01\x86\x88"                   \
              "ccollections\nOrderedDict\n)RtR"

static ts_status load(ts_str pickle, fe_archive **archive, fe_torchscript_objects *out) {
    static const float data[6] = {0, 1, 2, 3, 4, 5};
    zip_maker z = {0};
    zip_add(&z, "t/data.pkl", pickle.data, pickle.length);
    zip_add(&z, "t/data/0", data, sizeof data);
    zip_add(&z, "t/code/__torch__.py", "class M(Module):\n  pass\n", 24);
    zip_add(&z, "t/version", "3\n", 2);
    char path[256];
    write_temporary(path, sizeof path, zip_end(&z));
    zip_free(&z);
    fe_diagnostics *d = TS_NEW(test_arena, fe_diagnostics);
    d->arena = test_arena;
    ts_str name = ts_arena_str(test_arena, ts_str_of(path));
    ts_status status = fe_torchscript_open(test_arena, name, (ts_str){0}, false, d, archive);
    unlink(path);
    fe_torchscript_classes classes = {NULL, find, has_method};
    if (!status)
        status = fe_torchscript_load(*archive, &classes, out);
    return status;
}

START_TEST(shares_storages) {
    fe_archive *a = NULL;
    fe_torchscript_objects o;
    succeeds(load(BYTES(HEAD FIRST "X\x01\0\0\0v"
                        "ctorch._utils\n_rebuild_tensor_v2\n(h\x05K\x01K\x02K\x02\x86K\x01K\x02\x86"
                        "\x89"
                        "ccollections\nOrderedDict\n)RtRX\x01\0\0\0kK\x07ub."),
                  &a, &o));
    rt_object *m = o.root.as.object;
    rt_tensor *w = m->fields[0].as.tensor, *v = m->fields[1].as.tensor;
    ck_assert_ptr_eq(w->storage, v->storage);
    ck_assert(w->storage->is_read_only && w->requires_grad && !v->requires_grad);
    ck_assert_float_eq(((float *)w->data)[5], 5);
    ck_assert_float_eq(((float *)v->data)[0], 1);
    ck_assert_int_eq(v->strides[1], 2);
    ck_assert_int_eq(m->fields[2].as.i, 7);
    size_t count = 0;
    const fe_code_file *code = fe_torchscript_code(a, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert(ts_str_is(code[0].module, "__torch__"));
    ck_assert(code[0].source->is_archive);
    /* A tensor outlives the archive: the mapping goes with it. */
    rt_value kept = rt_retain(m->fields[0]);
    fe_torchscript_release(a);
    ck_assert_float_eq(((float *)kept.as.tensor->data)[4], 4);
    rt_release(kept);
}
END_TEST

static void reject(ts_str pickle, const char *part) {
    fe_archive *a = NULL;
    fe_torchscript_objects o;
    refused(load(pickle, &a, &o), part);
    fe_torchscript_release(a);
}

START_TEST(checks_attributes) {
    reject(BYTES(HEAD FIRST "X\x01\0\0\0kK\x07ub."), "attribute v of class __torch__.M is missing");
    reject(BYTES(HEAD "X\x01\0\0\0kNub."), "attribute k of class __torch__.M holds NoneType");
    reject(BYTES(HEAD "X\x01\0\0\0wK\x01ub."), "attribute w of class __torch__.M holds int");
    reject(BYTES(HEAD "X\x01\0\0\0zK\x01ub."), "declares no attribute z");
    reject(BYTES(HEAD "X\x01\0\0\0kK\x01X\x01\0\0\0kK\x01ub."), "given twice");
    reject(BYTES("\x80\x02"
                 "c__torch__\nN\n)\x81}b."),
           "class __torch__.N is not defined");
}
END_TEST

START_TEST(checks_tensors) {
#define ONE(storage_count, offset, sizes, strides)                                                 \
    BYTES(HEAD "X\x01\0\0\0wctorch._utils\n_rebuild_tensor_v2\n(("                                 \
               "X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0"                               \
               "0X\x03\0\0\0cpu" storage_count "tQ" offset sizes strides "\x88"                    \
               "ccollections\nOrderedDict\n)RtRub.")
    reject(ONE("K\x07", "K\x00", "K\x01\x85", "K\x01\x85"), "record t/data/0 holds 24 bytes");
    reject(ONE("K\x06", "K\x06", "K\x01\x85", "K\x01\x85"), "reaches element 6 of a storage of 6");
    reject(ONE("K\x06", "K\x00", "K\x02\x85", "K\x06\x85"), "reaches element 6 of a storage of 6");
    reject(ONE("K\x06", "K\x00", "J\xff\xff\xff\xff\x85", "K\x06\x85"), "ints of 0 or more");
    reject(ONE("K\x06", "K\x00", "K\x01K\x01\x86", "K\x01\x85"), "2 sizes and 1 strides");
    reject(ONE("K\x06", "K\x00", "J\xff\xff\xff\x7fJ\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x87",
               "K\x00K\x00K\x00\x87"),
           "more than 64 bits");
}
END_TEST

static const char model_json[] =
    "{\"protoVersion\":\"3\",\"mainModule\":{\"torchscriptArena\":{\"key\":\"code/foo.py\"},"
    "\"name\":\"foo\",\"attributes\":[{\"type\":\"Tensor\",\"name\":\"value\",\"id\":\"0\"}]},"
    "\"tensors\":[{\"dims\":[\"2\"],\"offset\":\"1\",\"strides\":[\"1\"],\"dataType\":\"FLOAT\","
    "\"data\":{\"key\":\"tensors/0\"}}]}";

START_TEST(reads_model_json) {
    static const float data[3] = {1, 2, 3};
    static const char code[] = "op_version_set = 0\ndef forward(self,\n    x: Tensor) -> Tensor:\n"
                               "  return x\n";
    static const char pickle[] = "\x80\x02(ctorch.jit._pickle\nbuild_tensor_from_id\n(K\0tRt.";
    zip_maker z = {0};
    zip_add(&z, "foo/version", "1\n", 2);
    zip_add(&z, "foo/code/foo.py", code, sizeof code - 1);
    zip_add(&z, "foo/attributes.pkl", pickle, sizeof pickle - 1);
    zip_add(&z, "foo/tensors/0", data, sizeof data);
    zip_add(&z, "foo/model.json", model_json, sizeof model_json - 1);
    char path[256];
    write_temporary(path, sizeof path, zip_end(&z));
    zip_free(&z);
    fe_diagnostics d = {.arena = test_arena};
    fe_archive *a = NULL;
    fe_torchscript_objects o;
    succeeds(fe_torchscript_open(test_arena, ts_str_of(path), (ts_str){0}, false, &d, &a));
    unlink(path);
    size_t count = 0;
    const fe_code_file *file = fe_torchscript_code(a, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert(ts_str_is(file->source->text, "class foo(Module):\n  value : Tensor\n"
                                            "  def forward(self,\n      x: Tensor) -> Tensor:\n"
                                            "    return x\n"));
    fe_torchscript_classes classes = {NULL, find, has_method};
    succeeds(fe_torchscript_load(a, &classes, &o));
    rt_tensor *value = o.root.as.object->fields[0].as.tensor;
    ck_assert_float_eq(((float *)value->data)[1], 3);
    ck_assert_uint_eq(o.constants.as.tuple->count, 1);
    fe_torchscript_release(a);
}
END_TEST

START_TEST(places_from_debug_records) {
    static const char records[] =
        "\x80\x02X\x18\0\0\0"
        "FORMAT_WITH_STRING_TABLE(X\x0a\0\0\0def f(x):\nX\x0d\0\0\0  return x+1\nX\x04\0\0\0m.pyt"
        "(K\x05(ctorch.jit._pickle\nbuild_intlist\n(](K\0K\x01"
        "etRK\x02K\x0atK\x13K\x16\x87K\0\x87t\x87.";
    fe_source *source = NULL;
    succeeds(fe_source_make(test_arena, TS_STR("c.py"), TS_STR("abcdefgh\n"), &source));
    succeeds(fe_debug_records_read(test_arena, (ts_str){records, sizeof records - 1}, source));
    ts_place before = fe_source_place(source, 4, 1), place = fe_source_place(source, 6, 1);
    ck_assert(ts_str_is(before.file, "c.py"));
    ck_assert(ts_str_is(place.file, "m.py"));
    ck_assert_int_eq(place.line, 11);
    ck_assert_int_eq(place.column, 10);
    ck_assert_int_eq(place.length, 3);
    ck_assert(ts_str_is(fe_source_place_line(source, 6), "  return x+1"));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("archive_torchscript");
    TCase *tests = tcase_create("torchscript");
    tcase_add_checked_fixture(tests, open_arena, close_arena);
    tcase_add_test(tests, shares_storages);
    tcase_add_test(tests, checks_attributes);
    tcase_add_test(tests, checks_tensors);
    tcase_add_test(tests, reads_model_json);
    tcase_add_test(tests, places_from_debug_records);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}

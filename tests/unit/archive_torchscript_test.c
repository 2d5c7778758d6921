/* tests/unit/archive_torchscript_test.c - whole archives: objects, shared tensors, types. */
#include "frontend/archive/archive.h"
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
    *out = ts_str_is(name, "__torch__.M") ? &class_m : NULL;
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
    ts_status status = fe_torchscript_open(test_arena, name, false, d, archive);
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

int main(void) {
    Suite *suite = suite_create("archive_torchscript");
    TCase *tests = tcase_create("torchscript");
    tcase_add_checked_fixture(tests, open_arena, close_arena);
    tcase_add_test(tests, shares_storages);
    tcase_add_test(tests, checks_attributes);
    tcase_add_test(tests, checks_tensors);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}

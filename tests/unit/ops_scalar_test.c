/* Rows over numbers, strings, lists and dicts give what Python gives. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/buffer.h"
#include "runtime/ops/ops.h"

static rt_value text(const char *s) {
    rt_value v;
    ck_assert_ptr_null(rt_str_make(ts_str_of(s), &v));
    return v;
}

/* Runs a row of one result; its repr, or "Type: message". */
static void check_row(const char *name, rt_value a, rt_value b, rt_value c, rt_value d,
                      const char *expected) {
    rt_value args[4] = {a, b, c, d}, outs[3] = {rt_none(), rt_none(), rt_none()}, repr;
    rt_op op = rt_op_find(ts_str_of(name));
    ck_assert_msg(op != OP_COUNT, "no row %s", name);
    ts_status status = rt_op_get(op)->ref(NULL, args, outs);
    if (status) {
        char got[256];
        snprintf(got, sizeof got, "%s: %s", ts_status_exception(status), ts_status_message(status));
        ck_assert_str_eq(got, expected);
        ts_status_release(status);
    } else {
        ck_assert_ptr_null(rt_to_repr(outs[0], &repr));
        ck_assert_msg(strcmp(repr.as.str->data, expected) == 0, "%s: got %s, expected %s", name,
                      repr.as.str->data, expected);
        rt_release(repr);
    }
    for (int i = 0; i < 3; i++)
        rt_release(outs[i]);
    for (int i = 0; i < 4; i++)
        rt_release(args[i]);
}

#define NO rt_none()
#define I(x) rt_int(x)
#define F(x) rt_float(x)

START_TEST(numbers) {
    check_row("add.int", I(2), I(3), NO, NO, "5");
    check_row("add.int", I(INT64_MAX), I(1), NO, NO,
              "OverflowError: Python int too large to convert to C long");
    check_row("floordiv.int", I(-7), I(2), NO, NO, "-4");
    check_row("remainder.int", I(-7), I(2), NO, NO, "1");
    check_row("remainder.float", F(-0.5), F(2), NO, NO, "1.5");
    check_row("div.int", I(1), I(0), NO, NO, "ZeroDivisionError: division by zero");
    check_row("floordiv.int", I(1), I(0), NO, NO,
              "ZeroDivisionError: integer division or modulo by zero");
    check_row("pow.int_to_int", I(3), I(4), NO, NO, "81");
    check_row("lt.int_float", I(INT64_MAX), F(9223372036854775808.0), NO, NO, "True");
    check_row("prim_min.int_float", I(2), F(3), NO, NO, "2.0");
    check_row("sqrt.float", F(-1), NO, NO, NO, "ValueError: math domain error");
    check_row("ceil.float", F(1.2), NO, NO, NO, "2");
    check_row("round.float", F(2.5), NO, NO, NO, "2.0");
    check_row("prim_round.float_int", F(2.675), I(2), NO, NO, "2.67");
    check_row("Int.str", text(" -1_0 "), NO, NO, NO, "-10");
    check_row("Int.str", text("1x"), NO, NO, NO,
              "ValueError: invalid literal for int() with base 10: '1x'");
    check_row("Float.str", text("1e-3"), NO, NO, NO, "0.001");
    check_row("__lshift__.int", I(-3), I(62), NO, NO,
              "OverflowError: Python int too large to convert to C long");
    check_row("__rshift__.int", I(-3), I(1), NO, NO, "-2");
    check_row("__range_length", I(0), I(10), I(3), NO, "4");
}
END_TEST

START_TEST(strings) {
    check_row("upper", text("stra\xc3\x9f" "e"), NO, NO, NO, "'STRASSE'");
    check_row("title", text("they're bill's"), NO, NO, NO, "\"They'Re Bill'S\"");
    check_row("find", text("h\xc3\xa9llo"), text("l"), I(0), I(INT64_MAX), "2");
    check_row("split.str", text(" a  b c "), NO, I(1), NO, "['a', 'b c ']");
    check_row("split.str", text("a,b,c"), text(","), I(-1), NO, "['a', 'b', 'c']");
    check_row("rsplit", text(" a b  c "), NO, I(1), NO, "[' a b', 'c']");
    check_row("splitlines", text("a\r\nb\n\nc"), rt_bool(true), NO, NO,
              "['a\\r\\n', 'b\\n', '\\n', 'c']");
    check_row("replace", text("abc"), text(""), text("x"), I(-1), "'xaxbxcx'");
    check_row("strip", text("xxaxx"), text("x"), NO, NO, "'a'");
    check_row("center", text("ab"), I(5), text("*"), NO, "'**ab*'");
    check_row("zfill", text("-42"), I(6), NO, NO, "'-00042'");
    check_row("slice.str", text("h\xc3\xa9llo"), NO, NO, I(-2), "'olh'");
    check_row("__getitem__.str", text("abc"), I(-4), NO, NO,
              "IndexError: string index out of range");
    check_row("expandtabs", text("a\tbc\td"), I(4), NO, NO, "'a   bc  d'");
    check_row("hex", I(-255), NO, NO, NO, "'-0xff'");
    check_row("count", text("aaaa"), text("aa"), I(0), I(INT64_MAX), "2");
}
END_TEST

START_TEST(formats) {
    static const struct {
        const char *spec;
        double value;
        const char *expected;
    } doubles[] = {{"08.3f", 3.14159, "'0003.142'"}, {".3", 100, "'1e+02'"}, {"+.1e", 1.5, "'+1.5e+00'"},
                   {",.2f", 1234567.891, "'1,234,567.89'"}, {"%", .25, "'25.000000%'"},
                   {"g", 1e20, "'1e+20'"}, {"^9", 2.5, "'   2.5   '"}};
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
        check_row("prim_format_spec", F(doubles[i].value), text(doubles[i].spec), NO, NO,
                  doubles[i].expected);
    check_row("prim_format_spec", I(255), text("#x"), NO, NO, "'0xff'");
    check_row("prim_format_spec", I(-5), text("05d"), NO, NO, "'-0005'");
    check_row("prim_format_spec", text("abc"), text("*>5.2"), NO, NO, "'***ab'");
    check_row("prim_format_spec", text("x"), text("d"), NO, NO,
              "ValueError: Unknown format code 'd' for object of type 'str'");
    rt_value t;
    ck_assert_ptr_null(rt_tuple_make(2, &t));
    t.as.tuple->items[0] = rt_int(7);
    t.as.tuple->items[1] = text("a");
    check_row("format", text("{}-{!r:>5}{{"), rt_retain(t), NO, NO, "\"7-  'a'{\"");
    check_row("format", text("{1}{0:03}"), rt_retain(t), NO, NO, "'a007'");
    check_row("percentFormat", text("%05d|%-3s|"), rt_retain(t), NO, NO, "'00007|a  |'");
    check_row("percentFormat", text("%d"), t, NO, NO,
              "TypeError: not all arguments converted during string formatting");
}
END_TEST

START_TEST(containers) {
    rt_value list, dict;
    int64_t items[] = {3, 1, 2};
    ck_assert_ptr_null(rt_int_list_make(items, 3, &list));
    check_row("sorted.int", rt_retain(list), NO, NO, NO, "[1, 2, 3]");
    check_row("slice.t", rt_retain(list), NO, NO, I(-1), "[2, 1, 3]");
    check_row("__getitem__.t", rt_retain(list), I(3), NO, NO, "IndexError: list index out of range");
    check_row("prim_max.self_int", rt_retain(list), NO, NO, NO, "3");
    check_row("sum.int", rt_retain(list), NO, NO, NO, "6");
    check_row("append.t", rt_retain(list), I(9), NO, NO, "[3, 1, 2, 9]");
    check_row("index.list_int", rt_retain(list), I(8), NO, NO, "ValueError: 8 is not in list");
    check_row("mul_.t", list, I(2), NO, NO, "[3, 1, 2, 9, 3, 1, 2, 9]");
    ck_assert_ptr_null(rt_dict_make(&dict));
    check_row("_set_item.str", rt_retain(dict), text("k"), I(1), NO, "None");
    check_row("setdefault.str", rt_retain(dict), text("l"), I(2), NO, "2");
    check_row("__getitem__.Dict_str", rt_retain(dict), text("z"), NO, NO, "KeyError: 'z'");
    check_row("items.str", rt_retain(dict), NO, NO, NO, "[('k', 1), ('l', 2)]");
    check_row("popitem.str", rt_retain(dict), NO, NO, NO, "('l', 2)");
    check_row("prim_dict_iter_check", dict, I(2), NO, NO,
              "RuntimeError: dictionary changed size during iteration");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ops_scalar");
    TCase *c = tcase_create("rows");
    tcase_add_test(c, numbers);
    tcase_add_test(c, strings);
    tcase_add_test(c, formats);
    tcase_add_test(c, containers);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

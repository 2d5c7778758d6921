/* Which stores may close a circle: those marked with # circle in the text, and no others. */
#include <check.h>

#include "ir/ir.h"

static const char text[] =
    "class @Node plain {\n"
    "  field v : int\n"
    "  field next : Optional[Node]\n"
    "  field kids : List[Node]\n"
    "  field ints : List[int]\n"
    "  field x : Tensor\n"
    "}\n"
    "class @Base plain {\n"
    "  field v : int\n"
    "}\n"
    "class @Derived plain {\n"
    "  base @Base\n"
    "  field v : int\n"
    "  field parts : List[Base]\n"
    "}\n"
    "func @f(%a: Node, %n: int, %x: Tensor, %any: Any, %base: Base, %derived: Derived) -> int entry {\n"
    "  set_attr.v(%a, %n)\n"
    "  set_attr.x(%a, %x)\n"
    "  set_attr.next(%a, none)\n"
    "  set_attr.next(%a, %a)  # circle\n"
    "  %kids = get_attr.kids(%a) : List[Node]\n"
    "  %ints = get_attr.ints(%a) : List[int]\n"
    "  set_attr.ints(%a, %ints)\n"
    "  set_attr.kids(%a, %kids)  # circle\n"
    "  %k = append.t(%kids, %a) : List[Node]  # circle\n"
    "  %i = append.t(%ints, %n) : List[int]\n"
    "  extend.t(%ints, %ints)\n"
    "  extend.t(%kids, %kids)  # circle\n"
    "  clear.t(%kids)\n"
    "  %lists = list(%ints) : List[List[int]]\n"
    "  %l = append.t(%lists, %ints) : List[List[int]]\n"
    "  %d = dict() : Dict[str, Any]\n"
    "  _set_item.str(%d, \"a\", %n)\n"
    "  _set_item.str(%d, \"b\", %x)\n"
    "  _set_item.str(%d, \"c\", %lists)\n"
    "  _set_item.str(%d, \"d\", %d)  # circle\n"
    "  _set_item.str(%d, \"e\", %any)  # circle\n"
    "  %nodes = dict() : Dict[str, Node]\n"
    "  _set_item.str(%nodes, \"a\", %a)\n"
    "  %parts = get_attr.parts(%derived) : List[Base]\n"
    "  %p = append.t(%parts, %base) : List[Base]  # circle\n"
    "  set_attr.v(%base, %n)\n"
    "  %c1 = prim_deepcopy(%lists) : List[List[int]]\n"
    "  %c2 = prim_deepcopy(%nodes) : Dict[str, Node]  # circle\n"
    "  %c3 = prim_deepcopy(%base) : Base  # circle\n"
    "  return %n\n"
    "}\n";

START_TEST(stores_that_may_close_a_circle) {
    ts_arena *arena = ts_arena_create(0);
    ir_module *m = ir_module_make(arena);
    ts_status status = ir_parse_module(m, TS_STR("t"), ts_str_of(text), NULL, NULL);
    ck_assert_msg(!status, "%d: %s", ts_status_place(status).line, ts_status_message(status));
    const char *line = strstr(text, "  set_attr.v");
    size_t circles = 0;
    for (const ir_op *op = m->functions->body->first; op; op = op->next) {
        if (op->opcode == IR_OP_CONST)
            continue;
        const char *end = strchr(line, '\n'), *mark = strstr(line, "# circle");
        bool expected = mark && mark < end;
        ck_assert_msg((ir_op_closes_cycle(op) != NULL) == expected, "%.*s", (int)(end - line), line);
        circles += expected;
        line = end + 1;
    }
    ck_assert_uint_eq(circles, 9);
    ir_module_deinit(m);
    ts_arena_release(arena);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ir_cycles");
    TCase *all = tcase_create("all");
    tcase_add_test(all, stores_that_may_close_a_circle);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}

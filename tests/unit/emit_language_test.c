/* Programs go through fe_load and the IR evaluator; results are compared as Python's repr. */
#define _DEFAULT_SOURCE /* mkstemps */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "frontend/frontend.h"

typedef struct program {
    const char *source; /* defines f() */
    const char *result; /* repr, or "Type: message" of what it raises */
} program;

static const program programs[] = {
    /* flags */
    {"def f():\n    r = 0\n    for i in range(9):\n        if i == 2:\n            continue\n"
     "        if i == 6:\n            break\n        r += i\n    return r\n", "13"},
    {"def f():\n    for i in range(5):\n        for j in range(5):\n            if i * j == 6:\n"
     "                return i, j\n    return -1, -1\n", "(2, 3)"},
    {"def f():\n    k = 0\n    while True:\n        k += 1\n        if k * k > 50:\n            return k\n", "8"},
    {"def g(n: int) -> int:\n    if n > 0:\n        if n > 5:\n            return 1\n    n += 10\n"
     "    return n\ndef f():\n    return g(9), g(3), g(-1)\n", "(1, 13, 9)"},
    {"def f():\n    for x in [1, 3]:\n        if x == 2:\n            break\n    else:\n        x = 9\n"
     "    return x\n", "9"},
    {"def f():\n    n = 3\n    while n > 0:\n        n -= 1\n        if n == 1:\n            break\n    else:\n"
     "        n = 100\n    return n\n", "1"},
    {"def f():\n    s = 0\n    for k in (1, 2, 3):\n        if k == 2:\n            continue\n        s += k\n"
     "    return s\n", "4"},
    /* variables */
    {"def f():\n    last: Optional[int] = None\n    for i in range(4):\n        if last is None or i > last:\n"
     "            last = i\n    return last\n", "3"},
    {"def f():\n    if 1 > 2:\n        b = 1\n    return b\n",
     "UnboundLocalError: cannot access local variable 'b' where it is not associated with a value"},
    {"def f():\n    a, b = 1, 2\n    a, b = b, a\n    (c, d), e = [[1, 2], 3]\n    return a, b, c, d, e\n",
     "(2, 1, 1, 2, 3)"},
    {"def f():\n    a, *m, z = [1, 2, 3, 4]\n    return a, m, z\n", "(1, [2, 3], 4)"},
    {"def f():\n    if (n := 4) > 2:\n        n += 1\n    return n\n", "5"},
    {"def f():\n    x = 0\n    for i in range(3):\n        if i > 0:\n            x += prev\n        prev = i + 1\n"
     "    return x\n", "3"},
    /* conditions and types */
    {"def g(x: Optional[int]) -> int:\n    return x + 1 if x is not None else -1\ndef f():\n"
     "    return g(None), g(4)\n", "(-1, 5)"},
    {"def g(v: Union[int, str]) -> str:\n    if isinstance(v, int):\n        return str(v + 1)\n"
     "    return v.upper()\ndef f():\n    return g(1), g('a')\n", "('2', 'A')"},
    {"def f():\n    return 0 or 3, 'a' and 'b', not [], 1 < 2 < 3, 1 < 3 < 2\n", "(3, 'b', True, True, False)"},
    {"def g(x: Optional[int]) -> int:\n    assert x is not None, 'need'\n    return x\ndef f():\n"
     "    return g(None)\n", "AssertionError: need"},
    {"def f():\n    raise ValueError('bad ' + str(3))\n", "ValueError: bad 3"},
    {"def f():\n    return 1 // 0\n", "ZeroDivisionError: integer division or modulo by zero"},
    /* containers */
    {"def f():\n    xs = [3, 1, 2]\n    ys = xs\n    ys.append(0)\n    return sorted(xs), xs[-1], xs[1:3], len(ys)\n",
     "([0, 1, 2, 3], 0, [1, 2], 4)"},
    {"def f():\n    d = {'a': 1}\n    d['b'] = 2\n    return [k + str(v) for k, v in d.items()], 'a' in d, d.get('z', 7)\n",
     "(['a1', 'b2'], True, 7)"},
    {"def f():\n    return [i * j for i in range(3) if i for j in range(3) if j != 1], {k: k * k for k in [1, 2]}\n",
     "([0, 2, 0, 4], {1: 1, 2: 4})"},
    {"def f():\n    return sorted(['bb', 'a', 'cc'], key=lambda w: -len(w)), max([1, 5, 2]), sum([0.5, 1.5])\n",
     "(['bb', 'cc', 'a'], 5, 2.0)"},
    {"def f():\n    t = (1, 2.5, 'x')\n    return t[1:], t + (4,), len(t), [a for a, b in zip([1, 2], ['p', 'q'])]\n",
     "((2.5, 'x'), (1, 2.5, 'x', 4), 3, [1, 2])"},
    {"def f():\n    return f'{3:03d}|{2.5:.2f}|{\"a\"!r}', '%s-%d' % ('k', 3), '{} {}'.format(1, [2])\n",
     "(\"003|2.50|'a'\", 'k-3', '1 [2]')"},
    {"def f():\n    return -7 // 2, -7 % 3, 2 ** 10, 7 / 2, round(2.5), abs(-3), divmod(7, 2), int('12'), 1 << 4\n",
     "(-4, 2, 1024, 3.5, 2, 3, (3, 1), 12, 16)"},
    {"def f():\n    xs = [1]\n    for x in xs:\n        if x < 4:\n            xs.append(x + 1)\n    return xs\n",
     "[1, 2, 3, 4]"},
    /* functions and classes */
    {"def g(a: int, b: int = 2, *, c: int = 3) -> int:\n    return a * 100 + b * 10 + c\ndef f():\n"
     "    return g(1), g(1, 5), g(b=7, a=2, c=0)\n", "(123, 153, 270)"},
    {"def f():\n    total = 0\n    def add(v: int, by: int = 2) -> int:\n        nonlocal total\n"
     "        total += v * by\n        return total\n    add(1)\n    return add(3), total\n", "(8, 8)"},
    {"def fact(n: int) -> int:\n    return 1 if n < 2 else n * fact(n - 1)\ndef f():\n    return fact(10)\n",
     "3628800"},
    {"class P:\n    def __init__(self, x: int):\n        self.x = x\n    def __add__(self, o: 'P') -> 'P':\n"
     "        return P(self.x + o.x)\n    def __len__(self) -> int:\n        return self.x\ndef f():\n"
     "    p = P(2) + P(3)\n    p.x += 1\n    return len(p), p.x\n", "(6, 6)"},
    {"from typing import NamedTuple\nclass N(NamedTuple):\n    a: int\n    b: str = 'z'\ndef f():\n    n = N(1)\n"
     "    return n.a, n.b, n[0], len(n)\n", "(1, 'z', 1, 2)"},
    {"from enum import Enum\nclass E(Enum):\n    A = 1\n    B = 2\ndef f():\n"
     "    return [e.name for e in E], E.A.value, E.A == E.B\n", "(['A', 'B'], 1, False)"},
    {"class C:\n    def __init__(self, log: List[int]):\n        self.log = log\n    def __enter__(self) -> int:\n"
     "        self.log.append(1)\n        return 5\n    def __exit__(self, a: Any, b: Any, c: Any) -> None:\n"
     "        self.log.append(2)\ndef f():\n    log: List[int] = []\n    with C(log) as k:\n        log.append(k)\n"
     "    return log\n", "[1, 5, 2]"},
    {"def f():\n    x = torch.tensor([1, -2])\n    return x.where(x > 0, torch.zeros_like(x)).tolist(), "
     "torch.where(x > 0, x, -x).tolist()\n", "([1, 0], [1, 2])"},
    {"def f():\n    x = torch.tensor([2, 1, 2])\n    u, n = torch.unique(x, return_counts=True)\n"
     "    return u.tolist(), n.tolist(), x.unique().tolist(), torch.unique_consecutive(x).tolist()\n",
     "([1, 2], [1, 2], [1, 2], [2, 1, 2])"},
    {"def f():\n    a, b = torch.nonzero(torch.eye(2), as_tuple=True)\n    return a.tolist(), b.tolist()\n",
     "([0, 1], [0, 1])"},
    {"def f():\n    x = torch.tensor([[[1.0, 3.0, 2.0, 0.0]]])\n"
     "    y, i = torch.nn.functional.max_pool1d(x, 2, return_indices=True)\n"
     "    return y.tolist(), i.tolist(), torch.nn.functional.max_pool1d(x, 2).tolist()\n",
     "([[[3.0, 2.0]]], [[[1, 2]]], [[[3.0, 2.0]]])"},
    {"def f():\n    x = torch.ones([1, 1, 2, 2])\n"
     "    return torch.nn.functional.conv2d(x, x, padding='same').tolist()\n", "[[[[4.0, 2.0], [2.0, 1.0]]]]"},
    {"def f():\n    a, b = torch.empty([0]), torch.empty([0], dtype=torch.int64)\n"
     "    torch.sort(torch.tensor([3.0, 1.0]), out=(a, b))\n    return a.tolist(), b.tolist()\n",
     "([1.0, 3.0], [1, 0])"},
};

static const char prelude[] = "import torch\nfrom typing import Any, Dict, List, Optional, Tuple, Union\n";

static void write_program(const char *path, const char *source) {
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(prelude, file);
    fputs(source, file);
    fclose(file);
}

static ts_status load(ts_arena *arena, const char *path, fe_diagnostics *diagnostics, ir_module **out_module,
                      fe_context **out) {
    static const ts_str entry = {"f", 1};
    fe_options *options = TS_NEW(arena, fe_options);
    options->path = ts_str_of(path);
    options->entries = &entry;
    options->entry_count = 1;
    options->training = -1;
    *out_module = ir_module_make(arena);
    *out = fe_context_make(*out_module, options, diagnostics);
    return fe_load(*out);
}

static void result_of(ts_arena *arena, ir_module *m, char *out, size_t size) {
    rt_context context = {0};
    ir_evaluator_options options = {.context = &context, .op_budget = 1000000, .depth_limit = 200};
    rt_value v = rt_none(), text = rt_none();
    ts_status status = ir_evaluate(m, ir_function_find(m, TS_STR("f")), NULL, 0, &options, &v);
    (void)arena;
    if (status) {
        snprintf(out, size, "%s: %s", ts_status_exception(status), ts_status_message(status));
        ts_status_release(status);
        return;
    }
    status = rt_to_repr(v, &text);
    ck_assert_ptr_null(status);
    snprintf(out, size, "%s", text.as.str->data);
    rt_release(text);
    rt_release(v);
}

START_TEST(program_gives) {
    const program *p = &programs[_i];
    ts_arena *arena = ts_arena_create(0);
    char path[] = "/tmp/emitXXXXXX.py";
    int file = mkstemps(path, 3);
    ck_assert_int_ge(file, 0);
    close(file);
    write_program(path, p->source);
    fe_diagnostics diagnostics = {.arena = arena};
    ir_module *m;
    fe_context *fe;
    ts_status status = load(arena, path, &diagnostics, &m, &fe);
    ck_assert_msg(!status, "%s\n%s", ts_status_message(status), p->source);
    char text[500];
    result_of(arena, m, text, sizeof text);
    ck_assert_msg(strcmp(text, p->result) == 0, "%s\ngave %s, expected %s", p->source, text, p->result);
    fe_context_deinit(fe);
    ir_module_deinit(m);
    ts_arena_release(arena);
    remove(path);
}
END_TEST

typedef struct mistake {
    const char *source;
    int line; /* without the prelude's two */
    const char *message;
} mistake;

static const mistake mistakes[] = {
    {"def f():\n    return y\n", 2, "the name 'y' is not defined"},
    {"def f():\n    z = x\n    x = 1\n    return z\n", 2, "the variable 'x' is used before it is assigned"},
    {"def f():\n    return [1].push(2)\n", 2, "List[int] has no method 'push'"},
    {"def g(a: int) -> int:\n    return a\ndef f():\n    return g('s')\n", 4, "expected int for argument 'a', found str"},
    {"def g(a: int) -> int:\n    return a\ndef f():\n    return g()\n", 4, "argument 'a' is missing"},
    {"def f():\n    return 'a' + 1\n", 2, "no overload of add takes (str, int)"},
    {"def f():\n    a, b = (1, 2, 3)\n    return a\n", 2, "expected 2 values to unpack, found 3"},
    {"def f() -> int:\n    return 'x'\n", 2, "expected int for the returned value, found str"},
    {"def f():\n    raise 3\n", 2, "expected an exception to raise"},
    {"def f():\n    break\n", 2, "break outside a loop"},
    {"class P:\n    def __init__(self):\n        self.x = 1\ndef f():\n    return P().y\n", 5, "has no attribute 'y'"},
    {"def f():\n    import numpy\n    return 1\n", 2, "import of numpy is not supported yet"},
    {"def g(a: Nope) -> int:\n    return 1\ndef f():\n    return g(1)\n", 1, "unknown type Nope"},
};

START_TEST(mistake_is_told) {
    const mistake *p = &mistakes[_i];
    ts_arena *arena = ts_arena_create(0);
    char path[] = "/tmp/emitXXXXXX.py";
    int file = mkstemps(path, 3);
    ck_assert_int_ge(file, 0);
    close(file);
    write_program(path, p->source);
    fe_diagnostics diagnostics = {.arena = arena};
    ir_module *m;
    fe_context *fe;
    ts_status status = load(arena, path, &diagnostics, &m, &fe);
    ck_assert_msg(status != NULL, "compiled:\n%s", p->source);
    ck_assert_msg(strstr(ts_status_message(status), p->message) != NULL, "%s\ntold %s, expected %s", p->source,
                  ts_status_message(status), p->message);
    ck_assert_msg(ts_status_place(status).line == p->line + 2, "%s\nline %d, expected %d", p->source,
                  ts_status_place(status).line - 2, p->line);
    ts_status_release(status);
    fe_context_deinit(fe);
    ir_module_deinit(m);
    ts_arena_release(arena);
    remove(path);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("emit_language");
    TCase *programs_case = tcase_create("programs");
    tcase_set_timeout(programs_case, 60);
    tcase_add_loop_test(programs_case, program_gives, 0, (int)(sizeof programs / sizeof *programs));
    suite_add_tcase(suite, programs_case);
    TCase *mistakes_case = tcase_create("mistakes");
    tcase_add_loop_test(mistakes_case, mistake_is_told, 0, (int)(sizeof mistakes / sizeof *mistakes));
    suite_add_tcase(suite, mistakes_case);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* Scripts run at compile time: what their objects hold, what is refused, which model is taken. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/frontend.h"
#include "runtime/values/tensor.h"

static char path[64];
static ts_arena *arena;
static ir_module *module;
static fe_diagnostics diagnostics;
static fe_options options;
static fe_context *fe;
static ts_buffer text;

static void setup(void) {
    snprintf(path, sizeof path, "init_eval_test_%d.py", (int)getpid());
}

static void unload(void) {
    if (!arena)
        return;
    fe_context_deinit(fe);
    ir_module_deinit(module);
    ts_arena_release(arena);
    arena = NULL;
}

static void teardown(void) {
    unload();
    ts_buffer_deinit(&text);
    remove(path);
}

static ts_status load(const char *script) {
    unload();
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("import math\nimport torch\nfrom torch import nn\nfrom typing import *\n", file);
    fputs(script, file);
    fclose(file);
    arena = ts_arena_create(0);
    diagnostics = (fe_diagnostics){.arena = arena};
    options.path = ts_str_of(path);
    options.training = -1;
    module = ir_module_make(arena);
    fe = fe_context_make(module, &options, &diagnostics);
    return fe_load(fe);
}

static rt_value attribute(const char *name) {
    ck_assert_int_eq(module->root.tag, RT_TAG_OBJECT);
    const rt_object *o = module->root.as.object;
    const ir_class *c = o->class_->info;
    for (size_t i = 0; i < c->field_count; i++) /* scalars that nobody assigns */
        if (c->fields[i].is_constant && ts_str_equal(c->fields[i].name, ts_str_of(name)))
            return c->fields[i].constant;
    int64_t at = rt_class_field(o->class_, ts_str_of(name));
    ck_assert_msg(at >= 0, "%s", name);
    return o->fields[at];
}

/* Runs `body` in __init__ (and `before` at module level); repr(self.r) is `expected`. */
static void gives(const char *before, const char *body, const char *expected) {
    char script[4000];
    snprintf(script, sizeof script,
             "%s\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n%s\n"
             "    def forward(self, x: int) -> int:\n        return x\nmodel = Model()\n",
             before, body);
    ts_status status = load(script);
    ck_assert_msg(status == NULL, "%s: %s: %s", body, ts_status_exception(status),
                  ts_status_message(status));
    rt_value shown;
    ck_assert_ptr_null(rt_to_repr(attribute("r"), &shown));
    ck_assert_str_eq(shown.as.str->data, expected);
    rt_release(shown);
}

static void refuses(const char *script, const char *exception, const char *message, int line) {
    ts_status status = load(script);
    ck_assert_msg(status != NULL, "%s", script);
    ck_assert_str_eq(ts_status_exception(status), exception);
    ck_assert_msg(strstr(ts_status_message(status), message) != NULL, "%s", ts_status_message(status));
    ck_assert_int_eq(ts_status_place(status).line, line);
    ts_status_release(status);
}

START_TEST(python) {
    gives("", "        self.r = [7 // -2, -7 % 3, 2 ** -1, 1 << 4, 7.5 // 2, round(2.5), int('ff', 16)]",
          "[-4, 2, 0.5, 16, 3.0, 2, 255]");
    gives("", "        a, *b = range(4)\n        self.r = (a, b, [x for x in b if x % 2], f'{a:03d}|{b!r}')",
          "(0, [1, 2, 3], [1, 3], '000|[1, 2, 3]')");
    gives("def g(n):\n    for i in range(n):\n        yield i * i\n",
          "        total = 0\n        for v in g(4):\n            if v == 1:\n                continue\n"
          "            total += v\n        else:\n            total += 100\n        self.r = total",
          "113");
    gives("def f(*a, k=1, **kw):\n    return a, k, kw\n",
          "        x = {'z': 3}\n        self.r = f(1, *[2, 3], k=4, **x)", "((1, 2, 3), 4, {'z': 3})");
    gives("", "        try:\n            {}['k']\n        except (IndexError, KeyError) as e:\n"
              "            self.r = type(e).__name__ + str(e)\n        finally:\n            self.q = 1",
          "\"KeyError'k'\"");
    gives("class A:\n    n = 2\n    def __init__(self, x):\n        self.x = x\n    @property\n"
          "    def twice(self):\n        return self.x * self.n\n    def __add__(self, o):\n"
          "        return A(self.x + o.x)\nclass B(A):\n    def __init__(self):\n"
          "        super().__init__(5)\n",
          "        self.r = [(B() + A(1)).twice, isinstance(B(), A), B.n]", "[12, True, 2]");
    gives("from enum import Enum\nclass C(Enum):\n    A = 1\n    B = 'b'\n",
          "        self.r = [C.A.name, C('b').name, [c.value for c in C]]", "['A', 'B', [1, 'b']]");
    gives("", "        fs = [lambda i=i: i for i in range(3)]\n        self.r = [f() for f in fs]",
          "[0, 1, 2]");
    gives("", "        self.r = sorted({'b': 1, 'a': 2}.items(), key=lambda p: -p[1])",
          "[('a', 2), ('b', 1)]");
}
END_TEST

START_TEST(tensors) {
    gives("", "        t = torch.zeros(2, 3)\n        t[0, 1:] = 5\n        t[:, 0] += 1\n        self.r = t.tolist()",
          "[[1.0, 5.0, 5.0], [1.0, 0.0, 0.0]]");
    gives("", "        self.r = [torch.arange(6).view(2, 3).shape, (2 - torch.ones(2)).tolist()]",
          "[(2, 3), [1.0, 1.0]]");
    /* torch.manual_seed(0); torch.rand(2), torch.randn(2), nn.Linear(2, 1).weight */
    gives("torch.manual_seed(0)\n",
          "        self.r = [torch.rand(2).tolist(), torch.randn(2).tolist(), nn.Linear(2, 1).weight.tolist()]",
          "[[0.49625658988952637, 0.7682217955589294], [-0.29050925374031067, -1.0703703165054321], "
          "[[-0.014010033570230007, 0.5606575012207031]]]");
}
END_TEST

START_TEST(modules) {
    gives("", "        self.a = nn.Sequential(nn.Linear(2, 3), nn.ReLU())\n        self.b = nn.ModuleList([nn.Linear(3, 1)])\n"
              "        self.register_buffer('m', torch.zeros(1), persistent=False)\n        self.w = nn.Parameter(torch.ones(2))\n"
              "        self.r = [[n for n, _ in self.named_parameters()], list(self.state_dict().keys()), "
              "[type(m).__name__ for m in self.modules()]]",
          "[['w', 'a.0.weight', 'a.0.bias', 'b.0.weight', 'b.0.bias'], ['w', 'a.0.weight', 'a.0.bias', 'b.0.weight', "
          "'b.0.bias'], ['Model', 'Sequential', 'Linear', 'ReLU', 'ModuleList', 'Linear']]");
    const ir_class *c = module->root.as.object->class_->info;
    size_t parameters = 0, buffers = 0;
    for (size_t i = 0; i < c->field_count; i++) {
        parameters += c->fields[i].is_parameter;
        buffers += c->fields[i].is_buffer;
    }
    ck_assert_uint_eq(parameters, 1);
    ck_assert_uint_eq(buffers, 1);
    ck_assert_ptr_eq(attribute("training").as.pointer, (void *)1);
    options.training = 0;
    ts_status status = load("class M(nn.Module):\n    def forward(self, x: int) -> int:\n        return x\n");
    ck_assert_ptr_null(status);
}
END_TEST

START_TEST(refusals) {
    refuses("x = 1\ny = x + 'a'\n", "TypeError", "unsupported operand", 6);
    refuses("while True: pass\n", "", "does not end within", 5);
    refuses("def f(n):\n    return f(n)\nf(1)\n", "RecursionError", "maximum recursion depth", 6);
    refuses("import numpy\n", "ModuleNotFoundError", "No module named 'numpy'", 5);
    refuses("import os\nos.system('true')\n", "", "os.system() is not available", 6);
    refuses("x = 2 ** 63\n", "OverflowError", "64 bits", 5);
    refuses("x = 'a' * 10 ** 12\n", "MemoryError", "too large", 5);
    refuses("x = 1\n", "", "the script defines no module", 0);
    refuses("class A(nn.Module):\n    pass\nclass B(nn.Module):\n    pass\n", "", "choose with --model", 0);
    refuses("class A(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n", "",
            "every module class of the script takes arguments", 0);
}
END_TEST

static bool is_constant(const char *name) {
    const ir_class *c = module->root.as.object->class_->info;
    for (size_t i = 0; i < c->field_count; i++)
        if (ts_str_equal(c->fields[i].name, ts_str_of(name)))
            return c->fields[i].is_constant;
    return false;
}

START_TEST(constants) {
    ts_status status = load("class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                            "        self.a = 1\n        self.b = 2\n        self.c = [3]\n"
                            "    def forward(self, x: int) -> int:\n        self.b += x\n        return x\n");
    ck_assert_msg(status == NULL, "%s", ts_status_message(status));
    ck_assert(is_constant("a"));
    ck_assert(!is_constant("b"));
    ck_assert(!is_constant("c"));
    ck_assert(!is_constant("training"));
}
END_TEST

START_TEST(model_expression) {
    options.model_expression = TS_STR("A(n=3)");
    ts_status status = load("class A(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
                            "        self.n = n\n    def forward(self, x: int) -> int:\n        return x + self.n\n");
    ck_assert_msg(status == NULL, "%s", ts_status_message(status));
    ck_assert_int_eq(attribute("n").as.i, 3);
    options.model_expression = (ts_str){0};
}
END_TEST

int main(void) {
    Suite *suite = suite_create("frontend_init_eval");
    TCase *tcase = tcase_create("all");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, python);
    tcase_add_test(tcase, tensors);
    tcase_add_test(tcase, modules);
    tcase_add_test(tcase, refusals);
    tcase_add_test(tcase, constants);
    tcase_add_test(tcase, model_expression);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

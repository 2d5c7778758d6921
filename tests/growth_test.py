#!/usr/bin/env python3
"""Small inputs that ask for much: each must end, in a result or in a message that says why.

    growth_test.py TSC TSRUN

The scripts hold numbers only, so this Python computes what they must give. A case that takes more
than a minute hangs."""
import json
import os
import random
import subprocess
import sys
import tempfile

TSC, TSRUN = sys.argv[1:3]
HANG_SECONDS = 60
failures = []


def call(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS)


def check(name, ok, what):
    if not ok:
        failures.append(name)
        print(f"{name}: {what}")


def compile_script(folder, name, text, *options):
    path = os.path.join(folder, name + ".py")
    with open(path, "w") as file:
        file.write(text)
    out = os.path.join(folder, name + ".tsm")
    return out, call([TSC, path, "-o", out, *options])


def same_as_python(folder, name, text, *args, expected=None):
    """Function f of the script gives what Python's f gives."""
    if expected is None:
        names = {}
        exec(text, names)
        expected = names["f"](*args)
    out, compiled = compile_script(folder, name, text, "--entry", "f")
    check(name, compiled.returncode == 0, compiled.stderr)
    if compiled.returncode:
        return
    arguments = os.path.join(folder, "args.json")
    with open(arguments, "w") as file:
        json.dump(args, file)
    ran = call([TSRUN, out, "--args", arguments])
    check(name, ran.returncode == 0, ran.stderr)
    if ran.returncode == 0:
        found = json.loads(ran.stdout)
        found = found["list"] if isinstance(found, dict) else found
        check(name, found == expected, f"expected {expected}, found {found}")


def within_memory(folder, name, text, limit_bytes):
    out, compiled = compile_script(folder, name, text, "--entry", "f")
    check(name, compiled.returncode == 0, compiled.stderr)
    arguments = os.path.join(folder, "args.json")
    with open(arguments, "w") as file:
        json.dump([1], file)
    ran = call([TSRUN, out, "--args", arguments, f"--memory-limit={limit_bytes}"])
    check(name, ran.returncode == 0, ran.stderr)


# Objects that hold each other, a tensor of a megabyte for two: 3 GB where nobody frees them.
RINGS = """import copy
from typing import Optional
import torch
class Node:
    def __init__(self, x: torch.Tensor):
        self.x = x
        self.other: Optional["Node"] = None
def f(k: int):
    for i in range(3000):
        a = Node(torch.ones(250000) * k)
        b = Node(a.x)
        a.other = b
        b.other = a
        %s
    return k
"""


def refused(folder, name, text, message, *options):
    _, compiled = compile_script(folder, name, text, *options)
    check(name, compiled.returncode == 1 and message in compiled.stderr,
          f"status {compiled.returncode}: {compiled.stderr}")


def compiles_within(folder, name, text, limit_bytes):
    """The most memory that tsc has at once."""
    path = os.path.join(folder, name + ".py")
    with open(path, "w") as file:
        file.write(text)
    with open(os.path.join(folder, "err"), "w") as err:
        process = subprocess.Popen([TSC, path, "-o", path + ".tsm", "--entry", "f"], stdout=err, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    check(name, process.returncode == 0, open(err.name).read())
    found = usage.ru_maxrss * 1024
    # Sanitizers keep what was freed, and shadows of all of it.
    check(name, found < limit_bytes or "ASAN_OPTIONS" in os.environ, f"{found} bytes, expected below {limit_bytes}")


def doubling_calls(levels):
    lines = [f"def f{i}(x: int) -> int:\n    return f{i + 1}(x) + f{i + 1}(x + 1)"
             for i in range(levels)]
    return "\n".join(lines + [f"def f{levels}(x: int) -> int:\n    return x",
                              "def f(x: int):\n    return f0(x)"])


def branches(count):
    lines = ["def f(x: int):", "    if x == 0:", "        return 7"]
    for i in range(1, count):
        lines += [f"    elif x == {i}:", f"        return {i * 7 % 11}"]
    lines += ["    y = 1", *(f"    if x == {i}:\n        return y\n    y += 3" for i in range(-count, 0))]
    return "\n".join(lines + ["    return y"])


def calls(count, method=False):
    indent, self = ("    ", "self, ") if method else ("", "")
    lines = ["class C:"] if method else []
    for i in range(count):
        called = f"{'self.' if method else ''}g{i - 1}(x)" if i else "x"
        lines += [f"{indent}def g{i}({self}x: int):", f"{indent}    return {called}"]
    return "\n".join(lines + ["def f(x: int):", f"    return {'C().' if method else ''}g{count - 1}(x)"])


def doubling_tuples(first, levels):
    lines = ["def f(x: int):", f"    y0 = ({first}, {first})"]
    lines += [f"    y{i + 1} = (y{i}, y{i})" for i in range(levels)]
    return "\n".join(lines + ["    return len(y%d) + x" % levels])


def long_program(seed):
    """Thousands of statements, with branches and loops that are long themselves; a few variables
    live through all of it, as numbers and as None."""
    pick = random.Random(seed)
    lines = ["from typing import List, Optional", "def f(a: int, b: float, c: bool):",
             "    i = a", "    x = b", "    l: List[int] = [a]", "    o: Optional[int] = None"]

    def statements(count, indent, depth):
        for _ in range(count):
            kind = pick.randrange(12)
            pad = "    " * indent
            n = pick.randrange(1, 9)
            if kind < 4:
                lines.append(f"{pad}i = (i * {n} + a + {pick.randrange(99)}) % 10007")
            elif kind < 6:
                lines.append(f"{pad}x = x * 0.5 + i / {n}.0 - b")
            elif kind == 6:
                lines.append(f"{pad}c = c != (i > {n * 1000})")
            elif kind == 7:
                lines.append(f"{pad}l.append(i + len(l))")
            elif kind == 8:
                lines.append(f"{pad}i += l[i % len(l)] if c else {n}")
            elif kind == 9:
                lines.append(f"{pad}o = i if c else None")
            elif kind == 10:
                lines.append(f"{pad}if o is not None:\n{pad}    i += o\n{pad}    i = i % 10007")
            elif depth:
                lines.append(f"{pad}if c:" if pick.randrange(2) else
                             f"{pad}for k{depth} in range({n} + a % 2):")
                statements(pick.choice([3, 3, 3, 3, 3, 3, 3, 150]), indent + 1, depth - 1)
            else:
                lines.append(f"{pad}x -= float(i)")

    statements(500, 1, 2)
    lines.append("    return [float(i), x, float(c), float(len(l)), float(sum(l))]")
    return "\n".join(lines)


def main():
    with tempfile.TemporaryDirectory() as folder:
        same_as_python(folder, "calls", doubling_calls(17), 3)
        same_as_python(folder, "calls_below_the_budget", doubling_calls(12), 3)
        for x in (0, 399, -1, 5000):
            same_as_python(folder, f"branches_{x}", branches(400), x)
        for word in ("or", "and"):
            text = "def f(x: int):\n    return " + f" {word} ".join(f"x != {i}" for i in range(800))
            same_as_python(folder, f"chain_of_{word}", text, 3)
        same_as_python(folder, "calls_in_calls", calls(400), 3)
        for method in (False, True):
            refused(folder, f"too_many_calls_{method}", calls(20000, method), "nested too deeply", "--entry", "f")
        # Environments that are over make room for others: 200 MB, where each kept its memory 610.
        lines = [f"    v{i} = n + {i}" for i in range(1000)]
        lines += [f"    for i in range(n):\n        v{i} = v{i} * 3 + v{(i + 1) % 1000}" for i in range(1000)]
        compiles_within(folder, "memory_of_loops", "\n".join(["def f(n: int):", *lines, "    return v0 + v1"]), 400 << 20)
        # Each body is copied once: 53 MB, where copying level by level took 222.
        compiles_within(folder, "memory_of_calls", calls(900).replace("g0(x: int):\n    return x",
                        "g0(x: int):\n    return x + x * 3 - (x // 2) * (x % 5)"), 100 << 20)
        same_as_python(folder, "tuples", doubling_tuples("x", 40), 3)
        same_as_python(folder, "constant_tuples", doubling_tuples("1", 40), 3)
        same_as_python(folder, "sum", "def f(x: int):\n    return " + "+".join(["x"] * 8000), 3,
                       expected=24000)
        for seed in range(2):
            same_as_python(folder, f"long_program_{seed}", long_program(seed), 5, 0.25, True)
        for name, line in (("strings", "s = s + s"), ("repeated", "s = s * 100000")):
            text = "def f(x: int):\n    if x > 0:\n        return x\n    s = 'ab'\n" + f"    {line}\n" * 60
            same_as_python(folder, name, text + "    return len(s)", 3)
        text = "def f(x: int):\n    if x > 0:\n        return x\n    s = [1]\n" + "    s = s + s\n" * 60
        same_as_python(folder, "lists", text + "    return len(s)", 3)
        products = "import torch\ndef f(x: int):\n    y = torch.ones(1000, 1000)\n" + "    y = y @ y\n" * 100
        out, compiled = compile_script(folder, "products", products + "    return x", "--entry", "f")
        check("products", compiled.returncode == 0 and os.path.getsize(out) < 100 << 20, compiled.stderr)
        attributes = ("from torch import nn\nclass M(nn.Module):\n    def __init__(self):\n"
                      "        super().__init__()\n        y = [1]\n        for i in range(40):\n"
                      "            y = [y, y]\n        self.y = y\n"
                      "    def forward(self, x: int):\n        return x\n")
        refused(folder, "attributes", attributes, "attributes hold more than 5000000 values")
        for what in ("y == z", "str(y)"):
            text = ("from torch import nn\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                    "        y = (1,)\n        z = (1,)\n        for i in range(60):\n            y = (y, y)\n"
                    f"            z = (z, z)\n        self.a = {what}\n    def forward(self, x: int):\n        return x\n")
            refused(folder, what.replace(" ", "_"), text, "the script does not end within 30000000 steps")
        within_memory(folder, "rings", RINGS % "k += 0", 40 << 20)
        within_memory(folder, "copied_rings", RINGS % "c = copy.deepcopy(a)", 40 << 20)
        forever = attributes.replace("range(40)", "range(2 ** 60)").replace("y = [y, y]", "y = y")
        refused(folder, "forever", forever, "the script does not end within 30000000 steps")
    if failures:
        print(f"{len(failures)} failed: {', '.join(failures)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

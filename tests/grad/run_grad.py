#!/usr/bin/env python3
"""Gradient cases: each line's gradients, compiled, against those that PyTorch gave and against differences.

    run_grad.py [--jobs 2] [--case REGEX] [--flags ...] TSC TSRUN FILE...

Each line is compiled twice. In float64 the gradients must be PyTorch's to 1e-6, and along one direction that of the losses
half a step before and behind (central differences of the compiled loss: no PyTorch in it). In float32, whose kernels are what a
product uses, to 2e-4 of the largest element. Lines are compiled in groups; a group that fails, line by line.
Lines named `nodiff.*` have corners in the way of differences. Standard library only; see grad_cases.py for the format."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "language"))
import grad_cases
import run_cases

GROUP = 12
STEP = 1e-5


def direction(case):
    """Numbers between -1 and 1 for each element of each input with a gradient."""
    state, out = 12345, []
    for i in case.inputs:
        if i.wants_gradient:
            one = []
            for _ in i.flat:
                state = (state * 1103515245 + 12345) % (1 << 31)
                one.append(state / (1 << 30) - 1)
            out.append(one)
    return out


def script(cases):
    text = grad_cases.HEAD + "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n\n"
    for n, c in enumerate(cases):
        for dtype in ("float64", "float32"):
            body = c.function("case%d_%s" % (n, dtype), True)
            text += "    @torch.jit.export\n" + "".join("    " + line + "\n" for line in body.rstrip("\n").split("\n")) + "\n"
    return text + "\nmodel = Model()\n"


def tensor(i, dtype, flat):
    t = run_cases.Tensor.__new__(run_cases.Tensor)
    t.dtype = dtype if i.kind == "float" else {"int": "int64", "bool": "bool"}[i.kind]
    t.shape, t.flat = i.shape, flat
    return t


def run_group(cases, tsc, tsrun, flags, folder, number):
    """One message or None for each case, or a message for all of them."""
    name = os.path.join(folder, "group%s" % number)
    with open(name + ".py", "w", encoding="utf-8") as f:
        f.write(script(cases))
    command = [tsc, name + ".py", "-o", name + ".tsm", "--cpu", "x86-64-v3"] + flags
    entries, calls, tensors = [], [], {}
    for n, c in enumerate(cases):
        moves = direction(c)
        for dtype, steps in (("float64", (0, STEP, -STEP)), ("float32", (0,))):
            entry = "case%d_%s" % (n, dtype)
            entries.append(entry)
            for step in steps:
                args, k = [], 0
                for i in c.inputs:
                    flat = i.flat
                    if i.wants_gradient:
                        flat = [x + step * m for x, m in zip(flat, moves[k])]
                        k += 1
                    key = "t%d" % len(tensors)
                    tensors[key] = tensor(i, dtype, flat)
                    args.append({"tensor": key})
                calls.append({"entry": entry, "args": args})
            for i in c.inputs:
                t = tensor(i, dtype, [])
                command += ["--input", "%s.%s:%s[%s]" % (entry, i.name, t.dtype, ",".join(map(str, i.shape)))]
    done = subprocess.run(command + ["--entry", ",".join(entries)], capture_output=True, text=True, timeout=600)
    if done.returncode:
        return "tsc: status %d: %s" % (done.returncode, done.stderr[:600])
    with open(name + ".json", "w") as f:
        json.dump({"calls": calls}, f)
    run_cases.write_tensors(name + ".in", tensors)
    done = subprocess.run([tsrun, name + ".tsm", "--args", name + ".json", "--output-args", name + ".out.json", "--output",
                           name + ".out", "--inputs", name + ".in"], capture_output=True, text=True, timeout=300)
    if done.returncode:
        return "tsrun: status %d: %s" % (done.returncode, done.stderr[:600])
    with open(name + ".out.json") as f:
        results = json.load(f)["results"]
    got = run_cases.read_tensors(name + ".out")
    return [judge(c, results[4 * n:4 * n + 4], got) for n, c in enumerate(cases)]


def numbers(tree, got):
    """The flat elements of each item of a tuple."""
    out = []
    for item in tree["tuple"]:
        t = got[item["tensor"]] if isinstance(item, dict) else None
        out.append(list(t[2]) if t else [float(item)])
    return out


def judge(case, results, got):
    for r in results:
        if "raises" in r:
            return "raised %s" % r["raises"]
    exact, ahead, behind, short = [numbers(r["result"], got) for r in results]
    for what, mine, bound in (("float64", exact, 1e-6), ("float32", short, 2e-4 * case.tolerance)):
        for k, (a, b) in enumerate(zip(mine[1:], case.grads)):
            size = max([abs(x) for x in b if x == x and abs(x) < float("inf")] + [1.0])
            if len(a) != len(b) or any(not same(x, y, bound * size) for x, y in zip(a, b)):
                return "%s: the gradient of %s is %s, expected %s" % (what, case.wanted()[k], a[:8], b[:8])
    if case.name.startswith("nodiff."):
        return None
    slope = (ahead[0][0] - behind[0][0]) / (2 * STEP)
    own = sum(g * m for a, b in zip(exact[1:], direction(case)) for g, m in zip(a, b))
    if not abs(slope - own) <= 1e-6 * max(1.0, abs(slope), abs(exact[0][0]) * 10):
        return "along a direction the gradient is %.9g, differences give %.9g" % (own, slope)
    return None


def same(x, y, bound):
    return (x != x and y != y) or x == y or abs(x - y) <= bound


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--case", default="")
    parser.add_argument("--flags", default="", help="more for tsc")
    parser.add_argument("tsc")
    parser.add_argument("tsrun")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="grad")
    cases = [c for path in args.files for c in grad_cases.read_cases(path) if re.search(args.case, c.name)]
    failures = ["%s: no recorded gradients" % c.name for c in cases if c.grads is None]
    cases = [c for c in cases if c.grads is not None]
    groups = [cases[i:i + GROUP] for i in range(0, len(cases), GROUP)]

    def work(n):
        group = groups[n]
        found = run_group(group, args.tsc, args.tsrun, args.flags.split(), folder, n)
        if isinstance(found, str):
            found = [run_group([c], args.tsc, args.tsrun, args.flags.split(), folder, "%d_%d" % (n, k))
                     for k, c in enumerate(group)]
            found = [f if isinstance(f, str) else f[0] for f in found]
        return ["%s: %s" % (c.name, f) for c, f in zip(group, found) if f]

    try:
        with ThreadPoolExecutor(args.jobs) as pool:
            for bad in pool.map(work, range(len(groups))):
                failures += bad
                for line in bad:
                    print(line, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("%d passed, %d failed" % (len(cases) - len(failures), len(failures)))
    return 1 if failures or not cases else 0


if __name__ == "__main__":
    sys.exit(main())

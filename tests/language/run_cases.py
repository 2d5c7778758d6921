#!/usr/bin/env python3
"""Language cases: small programs with the results that eager Python gave.

    run_cases.py [--jobs 2] [--case REGEX] [--untyped] TSC TSRUN FILE...

A file holds cases:
    === name
    @ 1, [2.5]              one line a call: its arguments, in order on one instance; tensors are
                            tensor(dtype, [nested numbers])
    > {"result": 1}         what each call gives, as tsrun's tree, or {"raises": "ValueError"} with
                            or without ": message"
    | text                  a line that the calls print
    code                    module level and `def forward(self, ...)`, or a `class Model`
record_cases.py writes the lines with > and | (it needs PyTorch). Standard library only."""
import argparse
import json
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HEAD = """import math
import torch
import torch.nn.functional as F
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, Union
from torch import Tensor, nn
"""
FORMATS = {"float64": ("F64", "d"), "float32": ("F32", "f"), "int64": ("I64", "q"), "int32": ("I32", "i"),
           "int16": ("I16", "h"), "int8": ("I8", "b"), "uint8": ("U8", "B"), "bool": ("BOOL", "?")}
NAMES = {st: name for name, (st, _) in FORMATS.items()}


class Tensor:
    def __init__(self, dtype, nested):
        self.dtype, self.shape, self.flat = dtype, [], nested
        level = nested
        while isinstance(level, list):
            self.shape.append(len(level))
            level = level[0] if level else 0
        self.flat = flatten(nested)


def flatten(nested):
    return [v for item in nested for v in flatten(item)] if isinstance(nested, list) else [nested]


def read_cases(path):
    cases = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.startswith("=== "):
                cases.append({"name": line[4:].strip(), "calls": [], "want": [], "out": "", "code": ""})
            elif not cases or line.startswith("# "):
                continue
            elif line.startswith("@ ") or line == "@\n":
                cases[-1]["calls"].append(line[1:].strip())
            elif line.startswith("> "):
                cases[-1]["want"].append(json.loads(line[2:]))
            elif line.startswith("| "):
                cases[-1]["out"] += line[2:]
            else:
                cases[-1]["code"] += line
    for c in cases:
        c["calls"] = c["calls"] or [""]
    return cases


def program(code):
    if "class Model" in code:
        return HEAD + code + ("" if re.search(r"^model = ", code, re.M) else "\nmodel = Model()\n")
    at = code.index("def forward")
    lines = "".join("    " + line + "\n" for line in code[at:].rstrip().split("\n"))
    return HEAD + code[:at] + "\n\nclass Model(nn.Module):\n" + lines + "\n\nmodel = Model()\n"


def arguments(text, tensor):
    names = {"tensor": tensor, "nan": math.nan, "inf": math.inf, "__builtins__": {}}
    return eval("(" + text + ",)" if text else "()", names)


def tree(v, tensors):
    if isinstance(v, Tensor):
        tensors["t%d" % len(tensors)] = v
        return {"tensor": "t%d" % (len(tensors) - 1)}
    if isinstance(v, float) and not math.isfinite(v):
        return {"float": "nan" if v != v else "inf" if v > 0 else "-inf"}
    if isinstance(v, dict):
        return {"dict": [[tree(k, tensors), tree(x, tensors)] for k, x in v.items()]}
    if isinstance(v, (list, tuple)):
        return {type(v).__name__: [tree(x, tensors) for x in v]}
    return v


def write_tensors(path, tensors):
    header, data = {}, b""
    for name, t in sorted(tensors.items(), key=lambda item: -struct.calcsize(FORMATS[item[1].dtype][1])):
        st, code = FORMATS[t.dtype]
        blob = struct.pack("<%d%s" % (len(t.flat), code), *t.flat)
        header[name] = {"dtype": st, "shape": t.shape, "data_offsets": [len(data), len(data) + len(blob)]}
        data += blob
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def read_tensors(path):
    with open(path, "rb") as f:
        raw = f.read()
    (n,) = struct.unpack("<Q", raw[:8])
    out = {}
    for name, h in json.loads(raw[8:8 + n]).items():
        if name == "__metadata__":
            continue
        dtype, (low, high) = NAMES[h["dtype"]], h["data_offsets"]
        code = FORMATS[dtype][1]
        blob = raw[8 + n + low:8 + n + high]
        out[name] = [dtype, h["shape"], list(struct.unpack("<%d%s" % (len(blob) // struct.calcsize(code), code), blob))]
    return out


def near(a, b, relative, absolute):
    return a == b or (a != a and b != b) or abs(a - b) <= absolute + relative * abs(a)


def differs(want, got, tensors, path="result"):
    """None, or where and how two trees differ."""
    if isinstance(want, float) and isinstance(got, float):
        return None if near(want, got, 1e-12, 0.0) else "%s: %r, expected %r" % (path, got, want)
    if not isinstance(want, dict):
        return None if type(want) is type(got) and want == got else "%s: %r, expected %r" % (path, got, want)
    (kind, a), = want.items()
    if not isinstance(got, dict) or kind not in got:
        return "%s: %s, expected %s" % (path, json.dumps(got), json.dumps(want))
    b = got[kind]
    if kind == "tensor":
        b = tensors[b]
        if a[:2] != b[:2]:
            return "%s: %s, expected %s" % (path, b[:2], a[:2])
        exact = not a[0].startswith("float")
        numbers = [float(x) for x in a[2]]
        if all(near(x, float(y), 0.0 if exact else 1e-5, 0.0 if exact else 1e-6) for x, y in zip(numbers, b[2])):
            return None
        return "%s: %s, expected %s" % (path, b[2], a[2])
    if kind == "float":
        return None if a == b else "%s: %s, expected %s" % (path, b, a)
    if len(a) != len(b):
        return "%s: %d items, expected %d" % (path, len(b), len(a))
    for i, (x, y) in enumerate(zip(a, b)):
        pairs = [(x, y)] if kind != "dict" else [(x[0], y[0]), (x[1], y[1])]
        for p, q in pairs:
            bad = differs(p, q, tensors, "%s[%d]" % (path, i))
            if bad:
                return bad
    return None


def run_case(case, tsc, tsrun, flags, folder):
    name = os.path.join(folder, re.sub(r"\W", "_", case["name"]))
    with open(name + ".py", "w", encoding="utf-8") as f:
        f.write(program(case["code"]))
    done = subprocess.run([tsc, name + ".py", "-o", name + ".tsm"] + flags, capture_output=True, text=True,
                          timeout=60)
    if done.returncode:
        return "tsc: status %d: %s" % (done.returncode, done.stderr[:500])
    tensors = {}
    calls = [[tree(v, tensors) for v in arguments(c, Tensor)] for c in case["calls"]]
    with open(name + ".json", "w") as f:
        json.dump({"calls": calls}, f)
    command = [tsrun, name + ".tsm", "--args", name + ".json", "--output-args", name + ".out.json",
               "--output", name + ".out"]
    if tensors:
        write_tensors(name + ".in", tensors)
        command += ["--inputs", name + ".in"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode:
        return "tsrun: status %d: %s" % (done.returncode, done.stderr[:500])
    with open(name + ".out.json") as f:
        results = json.load(f)["results"]
    got = read_tensors(name + ".out") if os.path.exists(name + ".out") else {}
    for i, (want, r) in enumerate(zip(case["want"], results)):
        if "raises" in want:
            e = r.get("raises", {})
            text = e.get("type", "nothing") + (": " + e["message"] if e.get("message") else "")
            if text != want["raises"] and text.split(": ")[0] != want["raises"]:
                return "call %d: raised %s, expected %s" % (i, text, want["raises"])
        elif "raises" in r:
            return "call %d: raised %s" % (i, r["raises"])
        else:
            bad = differs(want["result"], r["result"], got)
            if bad:
                return "call %d: %s" % (i, bad)
    if len(results) != len(case["want"]):
        return "%d results, expected %d" % (len(results), len(case["want"]))
    if done.stdout != case["out"]:
        return "printed %r, expected %r" % (done.stdout, case["out"])
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--case", default="")
    parser.add_argument("--flags", default="", help="more for tsc")
    parser.add_argument("tsc")
    parser.add_argument("tsrun")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="language")
    cases = [(path, c) for path in args.files for c in read_cases(path) if re.search(args.case, c["name"])]
    failed = 0
    try:
        with ThreadPoolExecutor(args.jobs) as pool:
            jobs = [pool.submit(run_case, c, args.tsc, args.tsrun, args.flags.split(), folder) for _, c in cases]
            for (path, c), job in zip(cases, jobs):
                bad = job.result()
                if bad:
                    failed += 1
                    print("%s: %s: %s" % (os.path.basename(path), c["name"], bad))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("%d passed, %d failed" % (len(cases) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

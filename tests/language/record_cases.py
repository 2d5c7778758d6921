#!/usr/bin/env python3
"""Writes the expected lines of language cases: each program is run by eager PyTorch.

    record_cases.py FILE...        needs PyTorch; see run_cases.py for the format"""
import contextlib
import copy
import io
import json
import math
import os
import sys
import tempfile
import types

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import run_cases


def tree(v):
    if isinstance(v, torch.Tensor):
        v = v.detach()
        flat = [x if not isinstance(x, float) or math.isfinite(x) else str(x) for x in v.flatten().tolist()]
        return {"tensor": [str(v.dtype)[6:], list(v.shape), flat]}
    if isinstance(v, float) and not math.isfinite(v):
        return {"float": "nan" if v != v else "inf" if v > 0 else "-inf"}
    if isinstance(v, dict):
        return {"dict": [[tree(k), tree(x)] for k, x in v.items()]}
    if isinstance(v, (list, tuple)):
        kind = "list" if isinstance(v, (list, torch.Size)) else "tuple"
        return {kind: [tree(x) for x in v]}
    return v


def record(case, number, folder):
    # TorchScript asks for the source text of what it scripts.
    path = os.path.join(folder, "case%d.py" % number)
    with open(path, "w", encoding="utf-8") as f:
        f.write(run_cases.program(case["code"]))
    module = types.ModuleType("case%d" % number)
    sys.modules[module.__name__] = module
    with open(path, encoding="utf-8") as f:
        exec(compile(f.read(), path, "exec"), module.__dict__)
    want, out = [], io.StringIO()
    for call in case["calls"]:
        args = run_cases.arguments(call, lambda dtype, v: torch.tensor(v, dtype=getattr(torch, dtype)))
        with contextlib.redirect_stdout(out):
            try:
                want.append({"result": tree(module.model(*copy.deepcopy(args)))})
            except Exception as e:
                own = "raise" in case["code"] or "assert" in case["code"]
                text = type(e).__name__
                want.append({"raises": text + ": " + str(e) if own and str(e) else text})
    return want, out.getvalue()


def main():
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp()
    for path in sys.argv[1:]:
        text = "".join(line for line in open(path, encoding="utf-8") if line.startswith("# "))
        for n, case in enumerate(run_cases.read_cases(path)):
            want, out = record(case, n, folder)
            text += "=== %s\n" % case["name"]
            text += "".join("@ %s\n" % c if c else "@\n" for c in case["calls"])
            text += "".join("> %s\n" % json.dumps(w) for w in want)
            text += "".join("| %s\n" % line for line in out.split("\n")[:-1])
            text += case["code"]
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


if __name__ == "__main__":
    main()

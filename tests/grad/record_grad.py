#!/usr/bin/env python3
"""Writes the gradients of PyTorch behind the lines of gradient cases.

    record_grad.py FILE...        needs PyTorch; see grad_cases.py for the format"""
import json
import os
import sys
import types

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import grad_cases


def record(case):
    module = types.ModuleType("case")
    exec(compile(grad_cases.HEAD + case.function("f", False), case.name, "exec"), module.__dict__)
    dtypes = {"float": torch.float64, "int": torch.int64, "bool": torch.bool}
    args = [torch.tensor(i.flat, dtype=dtypes[i.kind]).reshape(i.shape) for i in case.inputs]
    torch.manual_seed(0)
    grads = module.f(*args)[1:]
    return [grad_cases.round_all(g.flatten().tolist()) for g in grads]


def main():
    torch.set_num_threads(1)
    failed = 0
    for path in sys.argv[1:]:
        out = []
        for line in open(path, encoding="utf-8"):
            if not line.strip() or line.startswith("#"):
                out.append(line)
                continue
            case = grad_cases.Case(line.rstrip("\n"))
            try:
                out.append("%s | %s\n" % (case.text, json.dumps(record(case))))
            except Exception as e:
                failed += 1
                print("%s: %s: %s" % (case.name, type(e).__name__, str(e).split("\n")[0]))
                out.append(case.text + "\n")
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(out)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Compiles every script of models/ at -O0 and -O2, runs it with 1 and 2 threads and compares the
results with those recorded from PyTorch (models/record.py):
run_models.py [--compile-only] [TSC'S OPTIONS...] TSC TSRUN MODELS [NAME...]

Floats within 1e-5 of the result's largest magnitude; integers, shapes, dtypes, exceptions and the
bits of different thread counts exactly. --compile-only stops there, at -O2: for a target that this
machine lacks. Needs numpy. The last line is 'N passed, N failed'."""
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np

DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32, "I16": np.int16,
          "I8": np.int8, "U8": np.uint8, "BOOL": np.bool_}
TOLERANCE = 1e-5


def read_safetensors(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    tensors = {}
    for name, t in header.items():
        if name != "__metadata__":
            start, end = t["data_offsets"]
            tensors[name] = np.frombuffer(data[8 + n + start:8 + n + end], DTYPES[t["dtype"]]).reshape(t["shape"])
    return tensors


def compare(got, want, got_tensors, want_tensors, tolerance, place="result"):
    """The first difference as text, or None."""
    if isinstance(want, dict) and "tensor" in want:
        if not (isinstance(got, dict) and "tensor" in got):
            return f"{place}: expected a tensor, found {got}"
        a, b = got_tensors[got["tensor"]], want_tensors[want["tensor"]]
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"{place}: expected {b.dtype}{list(b.shape)}, found {a.dtype}{list(a.shape)}"
        if tolerance == 0 or b.dtype.kind not in "f":
            return None if a.tobytes() == b.tobytes() else f"{place}: values differ"
        scale = np.abs(b).max(initial=0)
        error = np.abs(a.astype(np.float64) - b).max(initial=0) / max(scale, 1e-30)
        return None if error <= tolerance else f"{place}: error {error:.2e} of the largest magnitude"
    if isinstance(want, dict):
        key = next(iter(want))
        if not isinstance(got, dict) or key not in got or len(got[key]) != len(want[key]):
            return f"{place}: expected {want}, found {got}"
        for i, (g, w) in enumerate(zip(got[key], want[key])):
            difference = compare(g, w, got_tensors, want_tensors, tolerance, f"{place}[{i}]")
            if difference:
                return difference
        return None
    if isinstance(want, float) and isinstance(got, float):
        return None if abs(got - want) <= max(tolerance, 1e-12) * max(abs(want), 1) else f"{place}: {got}, not {want}"
    return None if type(got) is type(want) and got == want else f"{place}: expected {want}, found {got}"


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()[:2000]}")


def check(name, level, target, tools, models, folder, compile_only):
    tsc, tsrun = tools
    spec = json.load(open(os.path.join(models, "recorded", name + ".json")))
    tensors = os.path.join(models, "recorded", name + ".safetensors")
    entries = []
    for call in spec["calls"]:
        if call["entry"] not in entries:
            entries.append(call["entry"])
    artifact = os.path.join(folder, "m.tsm")
    command = [tsc, os.path.join(models, name + ".py"), "-o", artifact, level, "--entry", ",".join(entries)] + target
    for text in spec["inputs"]:
        command += ["--input", text]
    run(command)
    if compile_only:
        return
    args = os.path.join(folder, "args.json")
    json.dump({"calls": [{"entry": c["entry"], "args": c["args"]} for c in spec["calls"]]}, open(args, "w"))
    first = None
    for threads in ("1", "2"):
        out, out_tensors = os.path.join(folder, "out.json"), os.path.join(folder, "out.safetensors")
        run([tsrun, artifact, "--args", args, "--inputs", tensors, "--threads", threads, "--output-args", out,
             "--output", out_tensors])
        results, values = json.load(open(out))["results"], read_safetensors(out_tensors)
        want_values = read_safetensors(tensors)
        for i, (got, call) in enumerate(zip(results, spec["calls"])):
            if "raises" in call:
                difference = None if got.get("raises") == call["raises"] else f"expected {call['raises']}, found {got}"
            elif "result" not in got:
                difference = f"raised {got}"
            else:
                difference = compare(got["result"], call["result"], values, want_values, TOLERANCE)
            if difference:
                raise RuntimeError(f"call {i}, {threads} threads: {difference}")
        if first is None:
            first = (results, values)
        else:
            for i, (got, want) in enumerate(zip(results, first[0])):
                difference = compare(got.get("result"), want.get("result"), values, first[1], 0)
                if difference:
                    raise RuntimeError(f"call {i}: 1 and 2 threads differ: {difference}")


def main():
    options = [a for a in sys.argv[1:] if a.startswith("--")]
    rest = [a for a in sys.argv[1:] if a not in options]
    compile_only = "--compile-only" in options
    target = [a for a in options if a != "--compile-only"]
    tools, models, names = rest[:2], rest[2], rest[3:]
    names = names or sorted(f[:-5] for f in os.listdir(os.path.join(models, "recorded")) if f.endswith(".json"))
    passed = failed = 0
    for name in names:
        for level in ("-O2",) if compile_only else ("-O0", "-O2"):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    check(name, level, target, tools, models, folder, compile_only)
                    passed += 1
                except Exception as error:
                    failed += 1
                    print(f"{name} {level}: {error}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

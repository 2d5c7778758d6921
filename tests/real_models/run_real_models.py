#!/usr/bin/env python3
"""Compiles the models that export_real_models.py wrote, runs them and compares with eager PyTorch:
run_real_models.py FOLDER [NAME or GLOB...] [--tsc TSC] [--tsrun TSRUN] [--levels=-O2,-O0] [--untyped] [--bench]
[--keep FOLDER] [--json FILE] [--docs FILE] [--merge FILE]...

Floats within 1e-4 of each result's largest magnitude; integers, shapes, dtypes and the structure exactly. --bench
also times one thread against the frozen TorchScript (needs torch), in turns. --docs rewrites the table of
docs/real-models.md; --merge takes rows of earlier runs instead of running. Needs numpy. The last line is 'N passed, N failed'."""
import argparse
import fnmatch
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DTYPES = {"F64": "f8", "F32": "f4", "F16": "f2", "BF16": "u2", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1", "U8": "u1",
          "BOOL": "?", "C64": "c8", "C128": "c16"}
TOLERANCE = 1e-4


def read_safetensors(path):
    data = open(path, "rb").read()
    length = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, t in json.loads(data[8:8 + length]).items():
        if name != "__metadata__":
            start, end = t["data_offsets"]
            tensors[name] = np.frombuffer(data[8 + length + start:8 + length + end], DTYPES[t["dtype"]]).reshape(t["shape"])
    return tensors


def leading_tensors(path, names, out):
    """The example for tsc: the arguments before the first that is no tensor, as a file of their own."""
    data = open(path, "rb").read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    body, rows = b"", {}
    for i, name in enumerate(names):
        start, end = header[name]["data_offsets"]
        rows[f"in{i}"] = {**header[name], "data_offsets": [len(body), len(body) + end - start]}
        body += data[8 + length + start:8 + length + end]
    text = json.dumps(rows).encode()
    open(out, "wb").write(struct.pack("<Q", len(text)) + text + body)


class Different(Exception):
    pass


def compare(got, want, got_tensors, want_tensors, tolerance, place="result"):
    """The largest error of a float, of its tensor's largest magnitude; raises Different."""
    if isinstance(want, dict) and "tensor" in want:
        if not (isinstance(got, dict) and "tensor" in got):
            raise Different(f"{place}: expected a tensor, found {str(got)[:60]}")
        a, b = got_tensors[got["tensor"]], want_tensors[want["tensor"]]
        if a.dtype != b.dtype or a.shape != b.shape:
            raise Different(f"{place}: expected {b.dtype}{list(b.shape)}, found {a.dtype}{list(a.shape)}")
        if b.dtype.kind not in "fc":
            if a.tobytes() != b.tobytes():
                raise Different(f"{place}: {int((a != b).sum())} of {a.size} values differ")
            return 0.0
        a, b = (x.astype("c16" if b.dtype.kind == "c" else "f8") for x in (a, b))
        finite = np.isfinite(b)
        if not np.array_equal(np.isfinite(a), finite) or not np.array_equal(a[~finite], b[~finite], equal_nan=b.dtype.kind == "f"):
            raise Different(f"{place}: NaN or infinity differ")
        if not finite.any():
            return 0.0
        error = float(np.abs(a[finite] - b[finite]).max() / max(np.abs(b[finite]).max(), 1e-30))
        if error > tolerance:
            raise Different(f"{place}: error {error:.1e} of the largest magnitude")
        return error
    if isinstance(want, dict):
        key = next(iter(want))
        if not isinstance(got, dict) or key not in got or len(got[key]) != len(want[key]):
            raise Different(f"{place}: expected a {key} of {len(want[key])}, found {str(got)[:80]}")
        worst = 0.0
        for i, (g, w) in enumerate(zip(got[key], want[key])):
            if key == "dict":
                if g[0] != w[0]:
                    raise Different(f"{place}: expected the key {w[0]}, found {g[0]}")
                worst = max(worst, compare(g[1], w[1], got_tensors, want_tensors, tolerance, f"{place}[{w[0]}]"))
            else:
                worst = max(worst, compare(g, w, got_tensors, want_tensors, tolerance, f"{place}[{i}]"))
        return worst
    if isinstance(want, float) and isinstance(got, float):
        if abs(got - want) > tolerance * max(abs(want), 1e-30):
            raise Different(f"{place}: {got}, not {want}")
        return 0.0
    if type(got) is not type(want) or got != want:
        raise Different(f"{place}: expected {str(want)[:60]}, found {str(got)[:60]}")
    return 0.0


def run(command, limit):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        raise Different(f"{os.path.basename(command[0])}: more than {limit} s")
    if done.returncode != 0:
        raise Different(f"{os.path.basename(command[0])} exit {done.returncode}: {done.stderr.strip()[:1500]}")
    return done.stdout


def check(folder, level, arguments, artifact, scratch):
    """Compiles and runs one model at one level: (error, seconds of processor time to compile)."""
    meta = json.load(open(os.path.join(folder, "meta.json")))
    inputs = os.path.join(folder, "inputs.safetensors")
    command = [arguments.tsc, os.path.join(folder, "model.pt"), "-o", artifact, level]
    leading = []
    for a in meta["args"]:
        if not (isinstance(a, dict) and "tensor" in a):
            break
        leading.append(a["tensor"])
    if leading and not arguments.untyped:
        leading_tensors(inputs, leading, os.path.join(scratch, "example.safetensors"))
        command += ["--example", os.path.join(scratch, "example.safetensors")]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    run(command, arguments.limit)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    json.dump(meta["args"], open(os.path.join(scratch, "args.json"), "w"))
    out, tensors = os.path.join(scratch, "out.json"), os.path.join(scratch, "out.safetensors")
    run([arguments.tsrun, artifact, "--args", os.path.join(scratch, "args.json"), "--inputs", inputs, "--threads", "1", "--output-args", out,
         "--output", tensors], arguments.limit)
    error = compare(json.load(open(out)), meta["result"], read_safetensors(tensors), read_safetensors(os.path.join(folder, "outputs.safetensors")),
                    meta.get("tolerance", TOLERANCE))
    return error, seconds


def bench(folder, arguments, artifact, scratch):
    """Medians in microseconds on one thread: (ours, frozen TorchScript's, dynamic calls), in three turns."""
    import torch
    import torchaudio  # noqa: F401   their operators
    import torchvision  # noqa: F401
    from safetensors.torch import load_file
    torch.set_num_threads(1)
    meta = json.load(open(os.path.join(folder, "meta.json")))
    tensors = load_file(os.path.join(folder, "inputs.safetensors"))

    def value(v):
        if isinstance(v, dict):
            if "tensor" in v:
                return tensors[v["tensor"]]
            return [value(x) for x in v["list"]] if "list" in v else tuple(value(x) for x in v["tuple"])
        return v

    values = [value(a) for a in meta["args"]]
    program = torch.jit.load(os.path.join(folder, "model.pt"))
    if hasattr(program, "forward") and hasattr(program, "training"):
        try:
            program = torch.jit.freeze(program.eval())
        except Exception:
            pass
    theirs, ours = [], []
    with torch.no_grad():
        for _ in range(4):
            program(*values)
        for _ in range(3):
            for _ in range(3):
                start = time.perf_counter()
                program(*values)
                theirs.append((time.perf_counter() - start) * 1e6)
            text = run([arguments.tsrun, "bench", artifact, "--args", os.path.join(scratch, "args.json"), "--inputs",
                           os.path.join(folder, "inputs.safetensors"), "--threads", "1", "--warmup", "2", "--runs", "5", "--json", "-"], arguments.limit)
            report = json.loads(text)
            report["dynamic_calls"] //= 7
            ours.append(report["min_us"])
    return min(ours), min(theirs), report["dynamic_calls"]


def write_docs(path, rows):
    old = open(path).read().split("| model |")[0] if os.path.exists(path) else "# Real models\n\n"
    passed = sum(1 for r in rows if not r["failure"])
    with open(path, "w") as file:
        file.write(old)
        file.write("| model | library | form | result | error, -O2 | error, -O0 |\n| --- | --- | --- | --- | ---: | ---: |\n")
        for r in rows:
            errors = [f"{r['errors'][level]:.1e}" if level in r["errors"] else "" for level in ("-O2", "-O0")]
            file.write(f"| {r['name']} | {r['library']} | {r['how']} | {'agrees' if not r['failure'] else 'fails'} | {errors[0]} | {errors[1]} |\n")
        file.write(f"\n{passed} of {len(rows)} agree.\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--tsc", default=os.path.join(ROOT, "build", "bin", "tsc"))
    parser.add_argument("--tsrun", default=os.path.join(ROOT, "build", "bin", "tsrun"))
    parser.add_argument("--levels", default="-O2,-O0")
    parser.add_argument("--limit", type=int, default=300, help="seconds for one compilation or run")
    parser.add_argument("--untyped", action="store_true", help="compile without the inputs' types")
    parser.add_argument("--bench", action="store_true")
    parser.add_argument("--keep", help="folder for the artifacts")
    parser.add_argument("--json")
    parser.add_argument("--docs")
    parser.add_argument("--merge", action="append", default=[], help="rows of an earlier --json")
    arguments = parser.parse_intermixed_args()
    names = sorted(n for n in os.listdir(arguments.folder) if os.path.exists(os.path.join(arguments.folder, n, "meta.json")))
    if arguments.merge:
        names = []
    if arguments.names:
        names = [n for n in names if any(fnmatch.fnmatch(n, p) for p in arguments.names)]
    rows = []
    for name in names:
        folder = os.path.join(arguments.folder, name)
        meta = json.load(open(os.path.join(folder, "meta.json")))
        row = {"name": name, "library": meta["library"], "how": meta["how"], "errors": {}, "failure": ""}
        rows.append(row)
        text = ""
        with tempfile.TemporaryDirectory() as scratch:
            for level in arguments.levels.split(","):
                artifact = os.path.join(arguments.keep or scratch, f"{name}{level}.tsm")
                try:
                    row["errors"][level], seconds = check(folder, level, arguments, artifact, scratch)
                    text += f" {level} {row['errors'][level]:.1e} in {seconds:.1f} s"
                    if arguments.bench and level == "-O2":
                        row["ours_us"], row["torch_us"], row["dynamic_calls"] = bench(folder, arguments, artifact, scratch)
                        text += f" ours {row['ours_us']:.0f} us torch {row['torch_us']:.0f} us ratio {row['ours_us'] / row['torch_us']:.2f} dynamic {row['dynamic_calls']}"
                except Different as difference:
                    row["failure"] = f"{level}: {difference}"
                    text += f" {level} FAIL {' '.join(str(difference).split())[:400]}"
        print(f"{name:40}{text}", flush=True)
    for path in arguments.merge:
        rows += json.load(open(path))
    order = ["torchvision", "timm", "transformers", "torchaudio"]
    rows.sort(key=lambda r: (order.index(r["library"]), r["name"]))
    if arguments.json:
        json.dump(rows, open(arguments.json, "w"), indent=1)
    if arguments.docs:
        write_docs(arguments.docs, rows)
    failed = sum(1 for r in rows if r["failure"])
    print(f"{len(rows) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

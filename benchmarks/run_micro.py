#!/usr/bin/env python3
"""Single kernels against the roofline of this machine: run_micro.py [--tsc TSC] [--tsrun TSRUN] [--threads 1]
[--cpu native] [--rounds 3] [--json FILE] [--compare OLD.json] [NAME-PREFIX...]

Products with weights (linear) and of two inputs (matmul), one row times weights from memory (gemv), elementwise
operators and chains on arrays beyond the caches, and a loop of integers against the same loop in C. The measure is
the share of the peak of multiply-adds, of the bandwidth of reading or of copying, or the ratio to C. Standard
library only; a C compiler for roofline.c and int_loop.c."""
import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile

import machine

ROOT = os.path.dirname(machine.HERE)
ELEMENTS = 1 << 24  # 64 MiB
SIZES = [64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536]
ODD = [(100, 300, 500), (65, 1000, 77), (197, 192, 768), (1, 1024, 1024), (8, 768, 3072)]
CHAINS = {
    "copy_relu": "torch.relu(x)",
    "add": "x + y",
    "exp": "torch.exp(x)",
    "tanh": "torch.tanh(x)",
    "erf": "torch.erf(x)",
    "gelu": "torch.nn.functional.gelu(x)",
    "sigmoid_mul_tanh": "torch.sigmoid(x) * torch.tanh(x + 1.0)",
}


def numbers(count):
    block = b"".join(struct.pack("<f", 0.01 * (i % 97) - 0.3) for i in range(970))
    return (block * (count // 970 + 1))[: 4 * count]


def cases():
    """(name, script, --input options, inputs, what it does: flops, bytes read, bytes copied)."""
    for m, k, n in [(s, s, s) for s in SIZES] + ODD:
        linear = f"from torch import nn\nmodel = nn.Linear({k}, {n}, bias=False)\n"
        yield f"linear_{m}x{k}x{n}", linear, [f":float32[{m},{k}]"], {"input": ([m, k], numbers(m * k))}, {"flops": 2.0 * m * k * n}
        matmul = "import torch\n\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    return torch.matmul(x, y)\n"
        yield (f"matmul_{m}x{k}x{n}", matmul, [f"x:float32[{m},{k}]", f"y:float32[{k},{n}]"],
               {"x": ([m, k], numbers(m * k)), "y": ([k, n], numbers(k * n))}, {"flops": 2.0 * m * k * n})
    for k, n in [(4096, 4096), (8192, 8192), (768, 50257)]:
        linear = f"from torch import nn\nmodel = nn.Linear({k}, {n}, bias=False)\n"
        yield f"gemv_{k}x{n}", linear, [f":float32[1,{k}]"], {"input": ([1, k], numbers(k))}, {"read": 4.0 * k * n}
    for name, expression in CHAINS.items():
        two = "y" in expression.replace("sigmoid", "").replace("tanh", "")
        script = f"import torch\n\n\ndef f(x: torch.Tensor{', y: torch.Tensor' if two else ''}):\n    return {expression}\n"
        inputs = {"x": ([ELEMENTS], numbers(ELEMENTS))}
        if two:
            inputs["y"] = ([ELEMENTS], numbers(ELEMENTS))
        yield (f"chain_{name}", script, [f"{n}:float32[{ELEMENTS}]" for n in inputs], inputs,
               {"copied": 4.0 * ELEMENTS * (len(inputs) + 1)})
    loop = ("def f(n: int, s: int):\n    odd = 0\n    for i in range(n):\n        s = (s * 1103515245 + 12345) % 2147483648\n"
            "        if s % 3 == 0:\n            odd += i\n        elif s > 1073741824:\n            odd -= 1\n    return odd + s\n")
    yield "int_loop", loop, [], [20000, 1], {"steps": 20000}


def prepare(case, folder, arguments):
    name, script, options, inputs, _ = case
    source, artifact = os.path.join(folder, name + ".py"), os.path.join(folder, name + ".tsm")
    with open(source, "w") as file:
        file.write(script)
    command = [arguments.tsc, source, "-o", artifact, "--cpu", arguments.cpu] + [x for o in options for x in ("--input", o)]
    if "def f(" in script:
        command += ["--entry", "f"]
    subprocess.run(command, check=True)
    if isinstance(inputs, list):
        path = os.path.join(folder, name + ".json")
        with open(path, "w") as file:
            json.dump(inputs, file)
        return [artifact, "--args", path]
    path = os.path.join(folder, name + ".safetensors")
    machine.write_safetensors(path, inputs)
    return [artifact, "--inputs", path]


def measure(case, samples, threads, peaks, loop_us):
    """The row of a case: its time, and its share of what bounds it."""
    does, us = case[4], statistics.median(s["median_us"] for s in samples)
    row = {"median_us": us, "min_us": min(s["min_us"] for s in samples)}
    peak, seconds = peaks.get(threads), row["min_us"] * 1e-6
    if "flops" in does:
        row["gflops"] = round(does["flops"] / seconds * 1e-9, 1)
        row["share"] = round(row["gflops"] / peak["gflops"], 3) if peak else None
        row["of"] = "multiply-adds"
    elif "read" in does:
        row["gbs"] = round(does["read"] / seconds * 1e-9, 2)
        row["share"] = round(row["gbs"] / peak["read_gbs"], 3) if peak else None
        row["of"] = "reading"
    elif "copied" in does:
        row["gbs"] = round(does["copied"] / seconds * 1e-9, 2)
        row["share"] = round(row["gbs"] / peak["copy_gbs"], 3) if peak else None
        row["of"] = "copying"
    elif loop_us:
        row["share"] = round(loop_us / row["min_us"], 3)
        row["of"] = "C -O2"
    return row


def c_loop():
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "int_loop")
        if not machine.compile_c(os.path.join(machine.HERE, "int_loop.c"), program):
            return 0
        return json.loads(subprocess.run([program, "20000"], check=True, capture_output=True, text=True).stdout)["us"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tsc", default=os.path.join(ROOT, "build", "bin", "tsc"))
    parser.add_argument("--tsrun", default=os.path.join(ROOT, "build", "bin", "tsrun"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cpu", default="native")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    parser.add_argument("--compare")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    chosen = [c for c in cases() if not arguments.names or c[0].startswith(tuple(arguments.names))]
    peaks, loop_us, rows = machine.roofline(arguments.threads), c_loop(), {}
    old = json.load(open(arguments.compare))["rows"] if arguments.compare else {}
    for case in chosen:  # one after the other: files of inputs are large
        with tempfile.TemporaryDirectory() as folder:
            run = prepare(case, folder, arguments)
            samples = [machine.bench(arguments.tsrun, run, arguments.threads) for _ in range(arguments.rounds)]
        row = rows[case[0]] = measure(case, samples, arguments.threads, peaks, loop_us)
        rate = f"{row['gflops']:.1f} GFLOP/s" if "gflops" in row else f"{row['gbs']:.1f} GB/s" if "gbs" in row else ""
        ratio = f" {old[case[0]]['median_us'] / row['median_us']:6.2f}" if case[0] in old else ""
        share = f"{row['share']:6.0%} of {row['of']}" if row.get("share") else ""
        print(f"{case[0]:24} {row['median_us']:12.1f} us {rate:>16} {share}{ratio}", flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"machine": machine.processor(), "roofline": peaks, "threads": arguments.threads, "cpu": arguments.cpu,
                       "rows": rows}, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())

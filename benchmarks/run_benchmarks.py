#!/usr/bin/env python3
"""Latency of compiled models, ours alone: run_benchmarks.py --tsc TSC --tsrun TSRUN [--threads 1,2]
[--rounds 5] [--cpu LEVELS] [--undeclared] [--json FILE] [--compare OLD.json] [MODEL...]

A MODEL is a script of models/ (its recorded inputs are taken), or a folder with model.pt,
inputs.safetensors and, where an argument is no tensor, args.json. Without any: every script of
models/ whose first call is forward; a folder of such folders stands for all of them. Each is compiled once (-O2) and timed in rounds that go over all
models in turn, so that a slow spell of the machine falls on all of them; the median of the rounds'
medians is reported, with the share of this machine's peak of multiply-adds that the kernels reach and the rate at
which weights pass, as a share of the bandwidth of reading (roofline.c, measured first; --no-roofline leaves it
out). --undeclared compiles each without declared inputs as well, times both in turn and prints the ratio. --compare prints
the ratio to an earlier run. Standard library only."""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import machine

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def prepare(path, folder, arguments, declares=True):
    """Compiles one model; returns (name, the arguments of `tsrun bench` that name artifact and inputs, seconds)."""
    if os.path.isdir(path):
        name = os.path.basename(os.path.normpath(path))
        inputs = os.path.join(path, "inputs.safetensors")
        command = [arguments.tsc, os.path.join(path, "model.pt")] + (["--example", inputs] if declares else [])
        run = ["--inputs", inputs]
        if os.path.exists(os.path.join(path, "args.json")):
            run += ["--args", os.path.join(path, "args.json")]
    else:
        name = os.path.splitext(os.path.basename(path))[0]
        recorded = os.path.join(os.path.dirname(os.path.abspath(path)), "recorded", name)
        spec = json.load(open(recorded + ".json"))
        command = [arguments.tsc, path] + [x for text in spec["inputs"] if declares for x in ("--input", text)]
        first = os.path.join(folder, name + ".args.json")
        json.dump(spec["calls"][0]["args"], open(first, "w"))
        run = ["--inputs", recorded + ".safetensors", "--args", first]
    artifact = os.path.join(folder, name + ("" if declares else ".undeclared") + ".tsm")
    if arguments.cpu:
        command += ["--cpu", arguments.cpu]
    start = time.monotonic()
    subprocess.run(command + ["-o", artifact], check=True)
    return name, [artifact] + run, time.monotonic() - start


def expand(path):
    """A folder of models as its models."""
    if not os.path.isdir(path) or os.path.exists(os.path.join(path, "model.pt")):
        return [path]
    return sorted(os.path.join(path, n) for n in os.listdir(path) if os.path.exists(os.path.join(path, n, "model.pt")))


def shares(row, peak):
    """Of the roofline: None where nothing is known."""
    if not peak:
        return {}
    seconds = row["median_us"] * 1e-6
    return {"peak_share": round(row["flops"] / seconds / (peak["gflops"] * 1e9), 3),
            "read_share": round(row["weight_bytes"] / seconds / (peak["read_gbs"] * 1e9), 3)}


def weight_bytes(tsrun, artifact):
    text = subprocess.run([tsrun, "info", artifact], check=True, capture_output=True, text=True).stdout
    found = re.search(r"weights: (\d+)", text)
    return int(found.group(1)) if found else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tsc", default=os.path.join(ROOT, "build", "bin", "tsc"))
    parser.add_argument("--tsrun", default=os.path.join(ROOT, "build", "bin", "tsrun"))
    parser.add_argument("--threads", default="1")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cpu")
    parser.add_argument("--undeclared", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--compare")
    parser.add_argument("--no-roofline", action="store_true")
    parser.add_argument("models", nargs="*")
    arguments = parser.parse_args()
    models = arguments.models
    if not models:
        folder = os.path.join(ROOT, "models")
        names = sorted(f[:-5] for f in os.listdir(os.path.join(folder, "recorded")) if f.endswith(".json"))
        calls = {n: json.load(open(os.path.join(folder, "recorded", n + ".json")))["calls"] for n in names}
        names = [n for n in names if calls[n][0]["entry"] == "forward"]
        models = [os.path.join(folder, n + ".py") for n in names]
    models = [m for given in models for m in expand(given)]
    most_threads = max(map(int, arguments.threads.split(",")))
    peaks = {} if arguments.no_roofline else machine.roofline(most_threads)
    old = json.load(open(arguments.compare))["rows"] if arguments.compare else {}
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        prepared = [prepare(m, folder, arguments) for m in models]
        undeclared = [prepare(m, folder, arguments, declares=False) for m in models] if arguments.undeclared else []
        for threads in arguments.threads.split(","):
            times = {name: [] for name, _, _ in prepared}
            without = {name: [] for name, _, _ in undeclared}
            for _ in range(arguments.rounds):
                for i, (name, run, _) in enumerate(prepared):
                    times[name].append(machine.bench(arguments.tsrun, run, threads))
                    if undeclared:
                        without[name].append(machine.bench(arguments.tsrun, undeclared[i][1], threads))
            for name, run, compile_s in prepared:
                samples = times[name]
                row = rows[f"{name}/{threads}"] = {
                    "median_us": statistics.median(s["median_us"] for s in samples),
                    "min_us": min(s["min_us"] for s in samples),
                    "load_us": statistics.median(s["load_us"] for s in samples),
                    "peak_bytes": max(s["peak_bytes"] for s in samples),
                    "artifact_bytes": os.path.getsize(run[0]), "compile_s": round(compile_s, 3),
                    "flops": machine.flops_of(arguments.tsrun, run), "weight_bytes": weight_bytes(arguments.tsrun, run[0])}
                row.update(shares(row, peaks.get(int(threads))))
                if undeclared:
                    row["undeclared_us"] = statistics.median(s["median_us"] for s in without[name])
    for threads, peak in peaks.items():
        print(f"{threads} threads: {peak['gflops']:.0f} GFLOP/s, reading {peak['read_gbs']:.1f} GB/s, copying {peak['copy_gbs']:.1f} GB/s")
    print(f"{'model/threads':28} {'median us':>12} {'min us':>12} {'load us':>8} {'compile s':>9} {'of peak':>8} {'of read':>8}" +
          (f" {'undeclared':>10}" if arguments.undeclared else "") + (f" {'old/new':>8}" if old else ""))
    for key, row in rows.items():
        ratio = f" {old[key]['median_us'] / row['median_us']:8.2f}" if key in old else ""
        share = "".join(f" {row[k]:8.0%}" if k in row else " " * 9 for k in ("peak_share", "read_share"))
        without = f" {row['undeclared_us'] / row['median_us']:10.2f}" if "undeclared_us" in row else ""
        print(f"{key:28} {row['median_us']:12.1f} {row['min_us']:12.1f} {row['load_us']:8.0f} {row['compile_s']:9.2f}{share}{without}{ratio}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"machine": machine.processor(), "roofline": peaks, "rounds": arguments.rounds, "rows": rows},
                      file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Latency of compiled models, ours alone: run_benchmarks.py --tsc TSC --tsrun TSRUN [--threads 1,2]
[--rounds 5] [--cpu LEVELS] [--json FILE] [--compare OLD.json] [MODEL...]

A MODEL is a script of models/ (its recorded inputs are taken), or a folder with model.pt,
inputs.safetensors and, where an argument is no tensor, args.json. Without any: every script of
models/ whose first call is forward. Each is compiled once (-O2) and timed in rounds that go over all
models in turn, so that a slow spell of the machine falls on all of them; the median of the rounds'
medians is reported. --compare prints the ratio to an earlier run. Standard library only."""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def prepare(path, folder, arguments):
    """Compiles one model; returns (name, the arguments of `tsrun bench` that name artifact and inputs)."""
    if os.path.isdir(path):
        name = os.path.basename(os.path.normpath(path))
        inputs = os.path.join(path, "inputs.safetensors")
        command = [arguments.tsc, os.path.join(path, "model.pt"), "--example", inputs]
        run = ["--inputs", inputs]
        if os.path.exists(os.path.join(path, "args.json")):
            run += ["--args", os.path.join(path, "args.json")]
    else:
        name = os.path.splitext(os.path.basename(path))[0]
        recorded = os.path.join(os.path.dirname(os.path.abspath(path)), "recorded", name)
        spec = json.load(open(recorded + ".json"))
        command = [arguments.tsc, path] + [x for text in spec["inputs"] for x in ("--input", text)]
        first = os.path.join(folder, name + ".args.json")
        json.dump(spec["calls"][0]["args"], open(first, "w"))
        run = ["--inputs", recorded + ".safetensors", "--args", first]
    artifact = os.path.join(folder, name + ".tsm")
    if arguments.cpu:
        command += ["--cpu", arguments.cpu]
    start = time.monotonic()
    subprocess.run(command + ["-o", artifact], check=True)
    return name, [artifact] + run, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tsc", default=os.path.join(ROOT, "build", "bin", "tsc"))
    parser.add_argument("--tsrun", default=os.path.join(ROOT, "build", "bin", "tsrun"))
    parser.add_argument("--threads", default="1")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cpu")
    parser.add_argument("--json")
    parser.add_argument("--compare")
    parser.add_argument("models", nargs="*")
    arguments = parser.parse_args()
    models = arguments.models
    if not models:
        folder = os.path.join(ROOT, "models")
        names = sorted(f[:-5] for f in os.listdir(os.path.join(folder, "recorded")) if f.endswith(".json"))
        models = [os.path.join(folder, n + ".py") for n in names]
    old = json.load(open(arguments.compare))["rows"] if arguments.compare else {}
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        prepared = [prepare(m, folder, arguments) for m in models]
        for threads in arguments.threads.split(","):
            times = {name: [] for name, _, _ in prepared}
            for _ in range(arguments.rounds):
                for name, run, _ in prepared:
                    done = subprocess.run([arguments.tsrun, "bench"] + run + ["--threads", threads, "--json", "-"],
                                          check=True, capture_output=True, text=True)
                    times[name].append(json.loads(done.stdout))
            for name, run, compile_s in prepared:
                samples = times[name]
                rows[f"{name}/{threads}"] = {
                    "median_us": statistics.median(s["median_us"] for s in samples),
                    "min_us": min(s["min_us"] for s in samples),
                    "load_us": statistics.median(s["load_us"] for s in samples),
                    "peak_bytes": max(s["peak_bytes"] for s in samples),
                    "artifact_bytes": os.path.getsize(run[0]), "compile_s": round(compile_s, 3)}
    print(f"{'model/threads':28} {'median us':>12} {'min us':>12} {'load us':>9} {'compile s':>9}" +
          (f" {'old/new':>8}" if old else ""))
    for key, row in rows.items():
        ratio = f" {old[key]['median_us'] / row['median_us']:8.2f}" if key in old else ""
        print(f"{key:28} {row['median_us']:12.1f} {row['min_us']:12.1f} {row['load_us']:9.0f} {row['compile_s']:9.2f}{ratio}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"machine": platform.processor() or platform.machine(), "rounds": arguments.rounds, "rows": rows},
                      file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())

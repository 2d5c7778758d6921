#!/usr/bin/env python3
"""The scripts of benchmarks/ run, compare and fill in their tables: benchmarks_test.py TSC TSRUN. Times do not count."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def run(script, *words):
    done = subprocess.run([sys.executable, os.path.join(ROOT, "benchmarks", script), *words], capture_output=True, text=True,
                          timeout=120)
    if done.returncode:
        sys.exit(f"{script}: {done.stdout}{done.stderr}")
    return done.stdout


def main():
    tools = ["--tsc", sys.argv[1], "--tsrun", sys.argv[2], "--rounds", "1"]
    with tempfile.TemporaryDirectory() as folder:
        here = lambda name: os.path.join(folder, name)
        model = os.path.join(ROOT, "models", "lenet.py")
        run("run_benchmarks.py", *tools, "--no-roofline", "--json", here("a.json"), model)
        row = json.load(open(here("a.json")))["rows"]["lenet/1"]
        assert row["median_us"] > 0 and row["flops"] > 0 and row["weight_bytes"] > 0, row
        assert "lenet/1" in run("run_benchmarks.py", *tools, "--no-roofline", "--compare", here("a.json"), model)
        peers = {"results": {"lenet": {"1": {"other": {"median_us": 2 * row["median_us"]}, "broken": {"error": "no"}}}}}
        json.dump(peers, open(here("peers.json"), "w"))
        micro = {"machine": "m", "roofline": {}, "threads": 1,
                 "rows": {"int_loop": {"median_us": 3.0, "min_us": 2.0, "share": 0.9, "of": "C -O2"}}}
        json.dump(micro, open(here("micro.json"), "w"))
        page = here("performance.md")
        shutil.copy(os.path.join(ROOT, "docs", "performance.md"), page)
        run("tables.py", "--models", here("a.json"), "--micro", here("micro.json"), "--peers", here("peers.json"), "--update", page)
        text = open(page).read()
        assert "| lenet / 1 |" in text and "| 2.00 |" in text and "90% of C -O2" in text, text
    return 0


if __name__ == "__main__":
    sys.exit(main())

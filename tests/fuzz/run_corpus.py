#!/usr/bin/env python3
"""Runs a fuzz target over its seeds and over changes of them: run_corpus.py [--changes N] [--tsc TSC] TARGET EXECUTABLE

The seeds are those of make_corpus.py. An input that crashes or takes more than 10 seconds is named; the
same change is made again by the same command."""
import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
# Each target within a few seconds: how many changes of a seed that allows.
CHANGES = {"archive": 200, "debug_records": 5000, "model": 12, "pickle": 1000, "program": 300, "safetensors": 500,
           "script": 100, "tsir": 400, "zip": 1000}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--changes", type=int)
    parser.add_argument("--tsc")
    parser.add_argument("target")
    parser.add_argument("executable")
    options = parser.parse_args()
    changes = CHANGES[options.target] if options.changes is None else options.changes
    with tempfile.TemporaryDirectory() as folder:
        make = [sys.executable, os.path.join(HERE, "make_corpus.py"), options.target, folder]
        subprocess.run(make + (["--tsc", options.tsc] if options.tsc else []), check=True)
        seeds = sorted(os.path.join(folder, name) for name in os.listdir(folder))
        if not seeds:
            print(f"no seeds for {options.target}")
            return 1
        return subprocess.run([options.executable, "--changes", str(changes), *seeds]).returncode


if __name__ == "__main__":
    sys.exit(main())

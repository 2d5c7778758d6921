#!/usr/bin/env python3
"""Seeds for the fuzz targets, out of files that the repository has: make_corpus.py [--tsc TSC] TARGET FOLDER

TARGET is archive, debug_records, model, pickle, program, safetensors, script, tsir or zip; the seeds are
written to FOLDER, with what lies in corpus/TARGET beside this file (inputs that once failed). The
tables of artifacts (program) need a TSC that compiles. Standard library only."""
import argparse
import glob
import os
import pickle
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
LARGEST = 16 << 10
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(TESTS, "language"))
import run_cases  # noqa: E402

# Records of places as torch 1.10 and later write them, and as before (frontend/archive/debug_records.c).
RECORDS = [("FORMAT_WITH_STRING_TABLE", ("m.py", "def f(x):\n", "  return x\n"),
            ((0, (([1, 2], 0, 3), 0, 9), 1), (12, (([1, 2], 0, 3), 13, 19), None))),
           ((0, (("def f(x):\n  return x\n", "m.py", 3), 0, 9), 0), (12, (("def f(x):\n  return x\n", None, 0), 13, 19), 0))]
PROGRAMS = ["circles", "exceptions", "objects", "sequences", "tensors", "unions"]


def read(path):
    with open(path, "rb") as f:
        return f.read()


def archives():
    return sorted(p for p in glob.glob(os.path.join(TESTS, "archives", "*.pt*")) if os.path.getsize(p) <= LARGEST)


def members(wanted):
    """What the archives hold under names that `wanted` takes."""
    for path in archives():
        if not zipfile.is_zipfile(path):
            continue
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if wanted(name):
                    yield archive.read(name)


def language_cases(names):
    for name in names:
        for case in run_cases.read_cases(os.path.join(TESTS, "language", name + ".case")):
            yield run_cases.program(case["code"])


def program_tables(tsc):
    """The first section of an artifact (docs/artifact.md)."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = os.path.join(folder, "m.py"), os.path.join(folder, "m.tsm")
        for name in PROGRAMS:
            for text in list(language_cases([name]))[:2]:
                with open(source, "w", encoding="utf-8") as f:
                    f.write(text)
                if subprocess.run([tsc, source, "-O0", "-o", out], capture_output=True).returncode:
                    continue
                data = read(out)
                for row in range(struct.unpack_from("<I", data, 32)[0]):
                    kind, _, offset, size = struct.unpack_from("<IIQQ", data, 64 + 64 * row)
                    if kind == 1:
                        yield data[offset:offset + size]


def seeds(target, tsc):
    if target == "archive":
        return map(read, archives())
    if target == "zip":
        return map(read, filter(zipfile.is_zipfile, archives()))
    if target == "pickle":
        return members(lambda name: name.endswith(".pkl"))
    if target == "debug_records":
        return [pickle.dumps(records, 2) for records in RECORDS]
    if target == "safetensors":
        return map(read, sorted(glob.glob(os.path.join(TESTS, "archives", "*.safetensors"))))
    if target == "tsir":
        return map(read, sorted(glob.glob(os.path.join(TESTS, "golden", "**", "*.tsir"), recursive=True)))
    if target in ("model", "script"):
        files = sorted(glob.glob(os.path.join(TESTS, "..", "models", "*.py")))
        return [*map(read, files), *(text.encode() for text in language_cases(PROGRAMS + ["match", "statements"]))]
    return program_tables(tsc) if tsc else []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tsc")
    parser.add_argument("target")
    parser.add_argument("folder")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    kept = {data for data in seeds(options.target, options.tsc) if 0 < len(data) <= LARGEST}
    for i, data in enumerate(sorted(kept)):
        with open(os.path.join(options.folder, f"seed{i}"), "wb") as f:
            f.write(data)
    for path in glob.glob(os.path.join(HERE, "corpus", options.target, "*")):
        shutil.copy(path, options.folder)


if __name__ == "__main__":
    main()

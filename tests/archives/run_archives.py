#!/usr/bin/env python3
"""Compiles the archives of this folder, runs them and compares with what PyTorch gave when they were
made (make_archives.py): run_archives.py TSC TSRUN [NAME...]

NAME.pt or NAME.pt2 beside NAME.json (calls and results) and NAME.safetensors (their tensors); NAME.pth is
a file of weights for the script that NAME.json names; "model" is an option. A case whose "refused" is text must not compile, with that text in the message. Floats within "tolerance"
of the largest magnitude, everything else exactly. Needs numpy. The last line is 'N passed, N failed'."""
import glob
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "models"))
import run_models  # noqa: E402


def compare(got, want, got_tensors, want_tensors, tolerance, place):
    if isinstance(want, dict) and "quantized" in want:
        g, w = (v.get("quantized", {}) for v in (got, want))
        if {**g, "ints": 0} != {**w, "ints": 0}:
            return f"{place}: expected {want}, found {got}"
        return run_models.compare({"tensor": g["ints"]}, {"tensor": w["ints"]}, got_tensors, want_tensors, 0, place)
    if isinstance(want, dict) and next(iter(want)) in ("list", "tuple", "dict"):
        key = next(iter(want))
        if not isinstance(got, dict) or key not in got or len(got[key]) != len(want[key]):
            return f"{place}: expected {want}, found {got}"
        pairs = list(zip(got[key], want[key]))
        if key == "dict":
            pairs = [(g[i], w[i]) for g, w in pairs for i in (0, 1)]
        for i, (g, w) in enumerate(pairs):
            difference = compare(g, w, got_tensors, want_tensors, tolerance, f"{place}[{i}]")
            if difference:
                return difference
        return None
    return run_models.compare(got, want, got_tensors, want_tensors, tolerance, place)


def check(model, tsc, tsrun, folder):
    stem = model[:model.rindex(".")]
    spec = json.load(open(stem + ".json"))
    artifact = os.path.join(folder, "m.tsm")
    entries = list(dict.fromkeys(c.get("entry", "forward") for c in spec.get("calls", [{}])))
    source = [os.path.join(HERE, spec["script"]), "--weights", model] if "script" in spec else [model]
    source += ["--model", spec["model"]] if "model" in spec else []
    command = [tsc, *source, "-o", artifact, "--entry", ",".join(entries)]
    if "refused" in spec:
        try:
            run_models.run(command)
        except RuntimeError as e:
            return None if spec["refused"] in str(e) and "exit 1:" in str(e) else f"another message: {e}"
        return "it compiled"
    run_models.run(command)
    args, out = os.path.join(folder, "args.json"), os.path.join(folder, "out")
    json.dump({"calls": spec["calls"]}, open(args, "w"))
    inputs = ["--inputs", stem + ".safetensors"] if os.path.exists(stem + ".safetensors") else []
    run_models.run([tsrun, artifact, "--args", args, "--output-args", out + ".json", "--output", out] + inputs)
    got_tensors = run_models.read_safetensors(out)
    want_tensors = run_models.read_safetensors(stem + ".safetensors") if inputs else {}
    got = json.load(open(out + ".json"))["results"]
    for i, (g, w) in enumerate(zip(got, spec["results"])):
        if ("raises" in g) != ("raises" in w):
            return f"call {i}: expected {w}, found {g}"
        if "raises" in w:
            if w["raises"].get("message", g["raises"]["message"]) != g["raises"]["message"]:
                return f"call {i}: expected {w}, found {g}"
            continue
        difference = compare(g["result"], w["result"], got_tensors, want_tensors, spec.get("tolerance", 1e-5),
                             f"call {i}")
        if difference:
            return difference
    return None if len(got) == len(spec["results"]) else "another number of results"


def main():
    tsc, tsrun, *names = sys.argv[1:]
    failed = passed = 0
    for model in sorted(glob.glob(os.path.join(HERE, "*.pt*"))):
        name = os.path.basename(model)
        if names and name[:name.rindex(".")] not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                difference = check(model, tsc, tsrun, folder)
            except (RuntimeError, KeyError, OSError) as e:
                difference = repr(e)
        passed += difference is None
        failed += difference is not None
        if difference:
            print(f"{name}: {difference}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

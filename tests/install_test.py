#!/usr/bin/env python3
"""Installs a build and uses it as an application's developer would: install_test.py BUILD

docs/examples is built by find_package(tsrt), shared and static, and once more by pkg-config, and runs a
model that the installed tsc compiled."""
import glob
import os
import subprocess
import sys
import tempfile

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCRIPT = """import torch
def f(x: torch.Tensor):
    return x + 1
"""


def call(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, **options)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def main():
    build = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        prefix, examples = os.path.join(folder, "prefix"), os.path.join(folder, "examples")
        call("cmake", "--install", build, "--prefix", prefix)
        model = os.path.join(folder, "m.tsm")
        with open(os.path.join(folder, "m.py"), "w") as f:
            f.write(SCRIPT)
        call(os.path.join(prefix, "bin", "tsc"), os.path.join(folder, "m.py"), "--entry", "f", "--input",
             "x:float32[1,3]", "-o", model)
        call(os.path.join(prefix, "bin", "tsrun"), "info", model)
        call("cmake", "-S", os.path.join(REPOSITORY, "docs", "examples"), "-B", examples, "-DCMAKE_PREFIX_PATH=" + prefix)
        call("cmake", "--build", examples)
        packages = glob.glob(os.path.join(prefix, "lib*", "**", "tsrt.pc"), recursive=True)
        flags = call("pkg-config", "--cflags", "--libs", "tsrt",
                     env={**os.environ, "PKG_CONFIG_PATH": os.path.dirname(packages[0])}).split()
        by_hand = os.path.join(folder, "by_hand")
        library = os.path.dirname(os.path.dirname(packages[0]))
        call("cc", os.path.join(REPOSITORY, "docs", "examples", "run.c"), *flags, "-Wl,-rpath," + library, "-o", by_hand)
        of_zeroes = "1., 1., 1."
        for program, expected in ((os.path.join(examples, "run"), of_zeroes), (os.path.join(examples, "run_static"), of_zeroes),
                                  (os.path.join(examples, "run_cpp"), "2., 3., 4."), (by_hand, of_zeroes)):
            out = call(program, model)
            if expected not in out:
                sys.exit(f"{program} printed {out!r}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Checks every #include of the tree against the layers of docs/design.md.

    check_layers.py REPOSITORY

A folder may include itself, what its row lists, and system headers. Prints each line that breaks
the rule; status 1 if there is one. Standard library only."""
import os
import re
import sys

# folder -> folders whose headers it may include (its own always)
ALLOWED = {
    "runtime/base": [],
    "runtime/values": ["runtime/base"],
    "runtime/ops": ["runtime/values", "runtime/base"],
    "runtime/format": ["runtime/values", "runtime/base"],  # values lie in compiled code
    "backends": ["runtime/base"],
    "runtime": ["runtime/format", "runtime/ops", "runtime/values", "runtime/base", "backends"],
    "ir": ["runtime/ops", "runtime/values", "runtime/base"],
    "passes": ["ir", "runtime/ops", "runtime/values", "runtime/base"],
    "frontend": ["ir", "runtime/ops", "runtime/values", "runtime/base", "runtime/format"],
    "codegen": ["ir", "runtime/format", "runtime/ops", "runtime/values", "runtime/base"],
    "tools": ["frontend", "passes", "codegen", "ir", "runtime", "runtime/format", "runtime/ops",
              "runtime/values", "runtime/base"],
}
# Headers of LLVM stay in codegen/, those that a device needs in its backend.
SYSTEM_ONLY_IN = {"llvm-c/": "codegen"}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')


def folder_of(path):
    """The longest row that holds a path, or None."""
    best = None
    for folder in ALLOWED:
        if path.startswith(folder + "/") and (best is None or len(folder) > len(best)):
            best = folder
    return best


def broken_lines(root):
    """(file, line number, text) of each include that points the wrong way."""
    for folder in sorted({f.split("/")[0] for f in ALLOWED}):
        for where, dirs, files in os.walk(os.path.join(root, folder)):
            dirs.sort()
            for name in sorted(files):
                if not name.endswith((".c", ".h", ".def", ".l", ".y")):
                    continue
                path = os.path.relpath(os.path.join(where, name), root)
                own = folder_of(path)
                with open(os.path.join(root, path), encoding="utf-8") as lines:
                    for number, line in enumerate(lines, 1):
                        m = INCLUDE.match(line)
                        if m and not is_allowed(root, own, path, m.group(1), m.group(2)):
                            yield path, number, m.group(2)


def is_allowed(root, own, path, bracket, header):
    if bracket == "<":
        return all(not header.startswith(prefix) or own == only
                   for prefix, only in SYSTEM_ONLY_IN.items())
    beside = os.path.normpath(os.path.join(os.path.dirname(path), header))
    target = folder_of(header) if os.path.exists(os.path.join(root, header)) else folder_of(beside)
    if target is None:  # generated, or public by its bare name
        return True
    if own == "backends" and target == "backends":
        # one backend never includes another: its own folder, or the common table
        parts, mine = header.split("/"), path.split("/")
        return len(parts) == 2 or len(mine) == 2 or parts[1] == mine[1]
    return target == own or target in ALLOWED[own]


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    count = 0
    for path, number, header in broken_lines(root):
        print(f"{path}:{number}: {folder_of(path)} may not include {header}")
        count += 1
    print(f"{count} includes break the layers")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())

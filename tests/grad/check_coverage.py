#!/usr/bin/env python3
"""Every differentiable operator of the table has a derivative and a line, or stands in without.txt with its reason.

    check_coverage.py SOURCE_FOLDER

A name in without.txt may end in *. Differentiable is what the table's derivative column calls `script` or `none`, or what has a formula anyway. A formula is a row of
passes/derivatives.def or a name in passes/differentiate_rules.c. A line is one of tests/grad/*.case whose name, up to #, is the
operator's; overloads that share a function share lines, and what a functional is compiled to has its lines under the functional's
name, as alias.txt says."""
import glob
import os
import re
import sys


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


def pairs(text):
    return dict(line.split(None, 1) for line in text.splitlines() if line.strip() and not line.startswith("#"))


def main():
    root = sys.argv[1]
    table = {}
    for path in glob.glob(os.path.join(root, "runtime/ops/core_ops_*.def")):
        for m in re.finditer(r'OP\((\w+),\s*"((?:[^"\\]|\\.)*)",\s*\w+,\s*\w+,\s*\w+,\s*(\w+),', read(path)):
            table[m.group(2).split("(")[0]] = m.group(3)
    definitions = read(root, "passes/derivatives.def")
    rows = dict(re.findall(r'(?:DERIVATIVE|OPENED)\("([^"]+)", (\w+)', definitions.split("#endif")[-1]))
    rules = set(re.findall(r'is_op\(op, "([^"]+)"\)', read(root, "passes/differentiate_rules.c")))
    rules |= {"requires_grad_"}
    without = {}
    for name, reason in pairs(read(root, "tests/grad/without.txt")).items():
        found = [n for n in table if n == name or (name.endswith("*") and n.startswith(name[:-1]) and table[n] in ("script", "none"))]
        without.update({n: reason for n in found} or {name: reason})
    alias = pairs(read(root, "tests/grad/alias.txt"))
    lines = set()
    for path in glob.glob(os.path.join(root, "tests/grad/*.case")):
        for line in read(path).splitlines():
            if line and not line.startswith("#"):
                name = line.split(" | ")[0].rstrip("~")
                lines.add(re.sub(r"^nodiff\.", "", name).split("#")[0])
    functions = {rows[n] for n in lines if n in rows} | {rows[n] for n, of in alias.items() if of.strip() in lines and n in rows}
    bad = []
    for name in sorted(set(table) | set(rows)):
        has = name in rows or name in rules
        if name not in table:
            bad.append("%s: a derivative of an operator that the table has not" % name)
        elif name in without:
            if has:
                bad.append("%s: stands in without.txt and has a derivative" % name)
        elif table[name] in ("script", "none") and not has:
            bad.append("%s: neither a derivative nor a line in without.txt" % name)
        elif has and name not in lines and rows.get(name) not in functions and alias.get(name, "").strip() not in lines:
            bad.append("%s: a derivative without a gradient case" % name)
    bad += ["%s: in without.txt, and no operator" % name for name in without if name not in table]
    bad += ["%s: in alias.txt, and no derivative" % name for name in alias if name not in rows and name not in rules]
    print("\n".join(bad + ["%d operators with a derivative, %d without" % (len(set(rows) | (rules & set(table))), len(without))]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

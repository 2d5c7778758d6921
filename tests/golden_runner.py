#!/usr/bin/env python3
"""Golden tests: runs the RUN line of each file below a folder and checks what came out.

    golden_runner.py --tsc build/bin/tsc [--update] [--jobs 2] tests/golden [PART-OF-A-NAME...]

In a comment of the file (# or ;):
    RUN: tsc %s --passes=eliminate_dead --emit=tsir      %s is the file, %t a folder for scratch
    CHECK: text         the next line that holds it      CHECK-NEXT: text   the line right after
    CHECK-NOT: text     no line before the next match    CHECK-LABEL: text  as CHECK
    CHECK-COUNT-3: text that many lines in a row of searches
    UNCHANGED           the output is the input, comments aside
    ERROR: 3:7: text    the command fails and blames line 3, column 7 with that text; without
                        numbers: the comment's own line
In texts {{regex}}, [[name:regex]] binds and [[name]] uses; runs of blanks are one blank.
--update replaces a file's CHECK lines by its whole output. Standard library only. The last line is
'N passed, N failed'."""
import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

DIRECTIVE = re.compile(r"[#;]\s*(RUN|CHECK|CHECK-NEXT|CHECK-NOT|CHECK-LABEL|CHECK-COUNT-(\d+)|ERROR):\s?(.*)$")


def squeeze(text):
    return re.sub(r"[ \t]+", " ", text).strip()


def pattern(text, bound):
    """The regular expression of a CHECK text."""
    out, at = "", 0
    text = squeeze(text)
    for m in re.finditer(r"\{\{(.*?)\}\}|\[\[(\w+)(?::(.*?))?\]\]", text):
        out += re.escape(text[at:m.start()])
        if m.group(1) is not None:
            out += "(?:%s)" % m.group(1)
        elif m.group(3) is not None:
            out += "(?P<%s>%s)" % (m.group(2), m.group(3))
        else:
            out += re.escape(bound.get(m.group(2), "<unbound %s>" % m.group(2)))
        at = m.end()
    return re.compile(out + re.escape(text[at:]))


def find(lines, start, text, bound):
    regex = pattern(text, bound)
    for i in range(start, len(lines)):
        m = regex.search(lines[i])
        if m:
            bound.update(m.groupdict())
            return i
    return -1


def check(output, directives):
    """The first CHECK that does not hold, or None."""
    lines = [squeeze(s) for s in output.splitlines()]
    at, bound, forbidden = 0, {}, []

    def no_forbidden(end):
        for number, text in forbidden:
            found = find(lines[:end], at, text, dict(bound))
            if found >= 0:
                return "line %d: CHECK-NOT: '%s' is there: %s" % (number, text, lines[found])
        forbidden.clear()
        return None

    for number, kind, count, text in directives:
        if kind == "CHECK-NOT":
            forbidden.append((number, text))
            continue
        for _ in range(int(count) if count else 1):
            found = find(lines, at, text, bound)
            if found < 0:
                near = lines[at] if at < len(lines) else "the end"
                return "line %d: %s: '%s' is not found after: %s" % (number, kind, text, near)
            if kind == "CHECK-NEXT" and found != at:
                return "line %d: CHECK-NEXT: '%s' is not on the next line: %s" % (number, text, lines[at])
            bad = no_forbidden(found)
            if bad:
                return bad
            at = found + 1
    return no_forbidden(len(lines))


def check_errors(stderr, errors):
    for number, text in errors:
        m = re.match(r"(\d+):(\d+):\s*(.*)$", text)
        place = (":%s:%s:" % m.groups()[:2]) if m else ":%d:" % number
        message = squeeze(m.group(3) if m else text)
        if not any(place in line and message in squeeze(line) for line in stderr.splitlines()):
            return "no error '%s' at %s in:\n%s" % (message, place.strip(":"), stderr.strip())
    return None


def bare(text):
    """IR text without comments and blank lines."""
    lines = [squeeze(re.sub(r"(^|\s)#.*$", "", s)) for s in text.splitlines()]
    return [s for s in lines if s]


def read(path):
    runs, checks, errors, unchanged = [], [], [], False
    with open(path, encoding="utf-8", errors="surrogateescape") as f:
        text = f.read()
    for number, line in enumerate(text.splitlines(), 1):
        m = DIRECTIVE.search(line)
        if m and m.group(1) == "RUN":
            runs.append(m.group(3))
        elif m and m.group(1) == "ERROR":
            errors.append((number, m.group(3)))
        elif m:
            checks.append((number, m.group(1), m.group(2), m.group(3)))
        elif re.match(r"\s*[#;]\s*UNCHANGED\s*$", line):
            unchanged = True
    return text, runs, checks, errors, unchanged


def update(path, text, output):
    kept = [s for s in text.splitlines() if not re.match(r"\s*[#;]\s*CHECK", s)]
    while kept and not kept[-1].strip():
        kept.pop()
    lines = [s.rstrip() for s in output.splitlines() if s.strip() and not s.lstrip().startswith("#")]
    new = ["# %s %s" % ("CHECK:" if i == 0 else "CHECK-NEXT:", s) for i, s in enumerate(lines)]
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as f:
        f.write("\n".join(kept + new) + "\n")


def run_file(path, args):
    text, runs, checks, errors, unchanged = read(path)
    if not runs:
        return "there is no RUN line"
    with tempfile.TemporaryDirectory(prefix="golden") as scratch:
        for line in runs:
            words = [w.replace("%s", os.path.abspath(path)).replace("%t", scratch)
                     for w in shlex.split(line)]
            tools = {"tsc": args.tsc, "tsrun": os.path.join(os.path.dirname(args.tsc), "tsrun")}
            words[0] = tools.get(words[0], words[0])
            try:
                p = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, timeout=60, cwd=scratch)
            except (OSError, subprocess.TimeoutExpired) as e:
                return str(e)
            out, err = (b.decode("utf-8", "replace") for b in (p.stdout, p.stderr))
            if errors:
                if p.returncode != 1:
                    return "expected status 1, found %d\n%s" % (p.returncode, err.strip())
                bad = check_errors(err, errors)
            elif p.returncode != 0:
                return "status %d\n%s" % (p.returncode, err.strip())
            elif args.update and checks:
                update(path, text, out)
                bad = None
            else:
                bad = check(out, checks)
                if not bad and unchanged and bare(out) != bare(text):
                    bad = "the output differs from the input:\n" + out
            if bad:
                return bad
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tsc", required=True)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("folder")
    parser.add_argument("parts", nargs="*")
    args = parser.parse_args()
    args.tsc = os.path.abspath(args.tsc)
    paths = []
    for folder, dirs, files in os.walk(args.folder):
        dirs.sort()
        paths += [os.path.join(folder, f) for f in sorted(files) if f.endswith((".tsir", ".py"))]
    paths = [p for p in paths if all(part in p for part in args.parts)]
    with ThreadPoolExecutor(max(1, args.jobs)) as pool:
        results = list(pool.map(lambda p: run_file(p, args), paths))
    failed = 0
    for path, bad in zip(paths, results):
        if bad:
            failed += 1
            print("FAIL %s\n  %s" % (os.path.relpath(path), bad.replace("\n", "\n  ")))
    print("%d passed, %d failed" % (len(paths) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

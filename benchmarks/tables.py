#!/usr/bin/env python3
"""The tables of docs/performance.md from what was measured: tables.py [--models FILE] [--micro FILE]... [--peers FILE]
[--update docs/performance.md]

FILEs are what run_benchmarks.py --json and run_micro.py --json wrote; --peers: {"rows": {"NAME/THREADS": {"PEER": median
in microseconds}}}, or {"results": {NAME: {THREADS: {PEER: {"median_us": ...}}}}}: other programs on the same machine,
"ours" among them where it was measured in turn with them. Prints Markdown, or puts each table between the lines
`<!-- table NAME -->` and `<!-- end -->` of the page. Standard library only."""
import argparse
import json
import math
import re
import sys


def percent(x):
    return f"{x:.0%}" if x is not None else ""


def rule(columns):
    return "| --- |" + " ---: |" * (columns - 1)


def machine_table(data):
    lines = [f"{data.get('machine', '?')}", "", "| threads | multiply-adds, GFLOP/s | reading, GB/s | copying, GB/s |", rule(4)]
    for threads, peak in sorted(data.get("roofline", {}).items(), key=lambda p: int(p[0])):
        lines.append(f"| {threads} | {peak['gflops']:.0f} | {peak['read_gbs']:.1f} | {peak['copy_gbs']:.1f} |")
    return lines


def read_peers(data):
    """{"NAME/THREADS": {peer: microseconds}}; what failed or differs is left out."""
    if "results" not in data:
        return data["rows"]
    return {f"{name}/{threads}": {peer: r["median_us"] for peer, r in by_peer.items() if "median_us" in r and "error" not in r}
            for name, by_threads in data["results"].items() for threads, by_peer in by_threads.items()}


def model_table(data, peers):
    names = sorted({p for row in peers.values() for p in row} - {"ours"})
    head = ["model / threads", "ours, us"] + [f"{n}, us" for n in names] + (["best peer / ours"] if names else [])
    head += ["of multiply-adds", "of reading", "compile, s", "file, MB"]
    lines, ratios = ["| " + " | ".join(head) + " |", rule(len(head))], {}
    for key, row in data["rows"].items():
        times = dict(peers.get(key, {}))
        ours = times.pop("ours", row["median_us"])
        cells = [key.replace("/", " / "), f"{ours:.0f}" if ours >= 100 else f"{ours:.1f}"]
        cells += [f"{times[n]:.0f}" if n in times else "" for n in names]
        if names:
            ratio = min(times.values()) / ours if times else None
            cells.append(f"{ratio:.2f}" if ratio else "")
            if ratio:
                ratios.setdefault(key.rsplit("/", 1)[1], []).append(ratio)
        cells += [percent(row.get("peak_share")), percent(row.get("read_share")), f"{row['compile_s']:.1f}",
                  f"{row['artifact_bytes'] / 1e6:.1f}"]
        lines.append("| " + " | ".join(cells) + " |")
    for threads, found in sorted(ratios.items()):
        mean = math.exp(sum(map(math.log, found)) / len(found))
        lines += ["", f"Best peer / ours, geometric mean of {len(found)} rows, {threads} threads: {mean:.2f}."]
    return lines


def undeclared_table(data):
    threads = sorted({key.rsplit("/", 1)[1] for key in data["rows"]}, key=int)
    lines = ["| model | " + " | ".join(f"{t} threads, declared, us | undeclared, us | ratio" for t in threads) + " |",
             rule(1 + 3 * len(threads))]
    for name in sorted({key.rsplit("/", 1)[0] for key in data["rows"]}):
        rows = [data["rows"][f"{name}/{t}"] for t in threads]
        cells = [f"{r['median_us']:.1f} | {r['undeclared_us']:.1f} | {r['undeclared_us'] / r['median_us']:.2f}" for r in rows]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def micro_table(files):
    lines = ["| kernel | threads | median, us | rate | share |", rule(5)]
    for data in files:
        for name, row in data["rows"].items():
            rate = f"{row['gflops']:.0f} GFLOP/s" if "gflops" in row else f"{row['gbs']:.1f} GB/s" if "gbs" in row else ""
            share = f"{percent(row['share'])} of {row['of']}" if row.get("share") else ""
            lines.append(f"| {name} | {data['threads']} | {row['median_us']:.1f} | {rate} | {share} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models")
    parser.add_argument("--micro", action="append", default=[])
    parser.add_argument("--peers")
    parser.add_argument("--update")
    arguments = parser.parse_args()
    load = lambda path: json.load(open(path))
    tables, micro = {}, [load(p) for p in arguments.micro]
    models = load(arguments.models) if arguments.models else None
    if models or micro:
        tables["machine"] = machine_table(models or micro[0])
    if models:
        tables["models"] = model_table(models, read_peers(load(arguments.peers)) if arguments.peers else {})
    if models and all("undeclared_us" in row for row in models["rows"].values()):
        tables["undeclared"] = undeclared_table(models)
    if micro:
        tables["kernels"] = micro_table(micro)
    if not arguments.update:
        print("\n".join(f"<!-- table {n} -->\n" + "\n".join(lines) + "\n<!-- end -->\n" for n, lines in tables.items()))
        return 0
    page = open(arguments.update).read()
    for name, lines in tables.items():
        page, count = re.subn(rf"<!-- table {name} -->.*?<!-- end -->",
                              lambda _: f"<!-- table {name} -->\n" + "\n".join(lines) + "\n<!-- end -->", page, flags=re.S)
        if count != 1:
            print(f"tables.py: {arguments.update} has no place for the table {name}", file=sys.stderr)
            return 1
    with open(arguments.update, "w") as file:
        file.write(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())

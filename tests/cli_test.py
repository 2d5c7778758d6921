#!/usr/bin/env python3
"""The command lines of tsc and tsrun: exit statuses, messages, whole outputs. Standard library only.

    cli_test.py TSC TSRUN

The last line is 'N passed, N failed'."""
import json
import os
import re
import resource
import struct
import subprocess
import sys
import tempfile

TSC, TSRUN = (os.path.abspath(p) for p in sys.argv[1:3])
results = []


def run(*words, **kwargs):
    p = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=kwargs.pop("stdout", subprocess.PIPE),
                       stderr=subprocess.PIPE, timeout=60, **kwargs)
    return p.returncode, (p.stdout or b"").decode("utf-8", "replace"), p.stderr.decode("utf-8", "replace")


def check(name, ok, detail=""):
    results.append(ok)
    if not ok:
        print("FAIL %s %s" % (name, detail))


def expect(name, result, status, text=""):
    code, out, err = result
    check(name, code == status and text in out + err, "status %d, expected %d with '%s'\n%s" % (code, status, text, err))


def safetensors(path, tensors):
    header, data = {}, b""
    for name, shape, values in tensors:
        blob = struct.pack("<%df" % len(values), *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(blob)]}
        data += blob
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def precision(here):
    """--weights-dtype and --dtype: sizes, the report, what the artifact says, same bytes."""
    script, example = here("linear.py"), here("example.safetensors")
    with open(script, "w") as f:
        f.write("import torch\nfrom torch import nn, Tensor\n\n\nclass Net(nn.Module):\n"
                "    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(256, 384)\n"
                "        self.b = nn.Linear(384, 100)\n\n    def forward(self, x: Tensor) -> Tensor:\n"
                "        return self.b(torch.relu(self.a(x)))\n")
    safetensors(example, [("x", [2, 256], [((i * 37) % 64) / 32 - 1 for i in range(512)])])

    def compiled(name, *flags):
        result = run(TSC, script, "--seed", "1", "--eval", "--example", example, "-o", here(name), *flags)
        check("compile %s" % " ".join(flags), result[0] == 0, result[2])
        return os.path.getsize(here(name)), result[2]

    levels = "--cpu=x86-64-v3,x86-64-v4"  # whose code is small beside the weights
    whole, note = compiled("f.tsm", levels)
    check("float32 says nothing", note == "", note)
    matrix = 384 * 256 + 112 * 384  # elements, panels of 16 columns
    for name, saved in (("int8", 3), ("int4", 3.4), ("bf16", 2)):
        size, note = compiled(name + ".tsm", "--weights-dtype=" + name, levels)
        check("size of %s" % name, whole - size > saved * matrix - 16384, "%d of %d" % (size, whole))
        check("report of %s" % name, "precision: 2 weights in " + name in note and "a.weight" in note and
              "results of the example against float32: relative error" in note, note)
        expect("info of %s" % name, run(TSRUN, "info", here(name + ".tsm")), 0, "--weights-dtype=" + name)
    once = open(here("int4.tsm"), "rb").read()
    compiled("int4.tsm", "--weights-dtype", "int4", levels)
    check("int4 is reproducible", once == open(here("int4.tsm"), "rb").read())
    note = compiled("b.tsm", "--dtype=bf16")[1]
    check("report of --dtype", "2 weights in bf16" in note, note)
    expect("info of --dtype", run(TSRUN, "info", here("b.tsm")), 0, "x86-64-v4-bf16")
    outputs = {}
    for name in ("f", "int8", "b"):
        expect("run " + name, run(TSRUN, here(name + ".tsm"), "--inputs", example, "--output", here("o.st")), 0)
        outputs[name] = struct.unpack("<200f", open(here("o.st"), "rb").read()[-800:])
    size = sum(x * x for x in outputs["f"]) ** 0.5
    for name, bound in (("int8", 0.02), ("b", 0.01)):
        error = sum((x - y) ** 2 for x, y in zip(outputs["f"], outputs[name])) ** 0.5 / size
        check("error of " + name, 0 < error < bound, str(error))
    # tables of embeddings: a pass, so that the IR shows them
    with open(here("table.py"), "w") as f:
        f.write("import torch\nfrom torch import nn, Tensor\n\n\nclass Net(nn.Module):\n"
                "    def __init__(self):\n        super().__init__()\n        self.e = nn.Embedding(200, 64)\n\n"
                "    def forward(self, x: Tensor) -> Tensor:\n        return torch.relu(self.e(x.long()))\n")
    safetensors(here("rows.st"), [("x", [3], [0, 199, 7])])
    words = [TSC, here("table.py"), "--seed", "1", "--eval", "--example", here("rows.st")]
    for name, dtype in (("int8", "int8"), ("int4", "int8"), ("bf16", "bfloat16")):
        code, out, err = run(*words, "--weights-dtype=" + name, "--stop-after=round_embedding")
        check("table in " + name, code == 0 and dtype + "[200,64]" in out and "= embedding(%2, %0) : " + dtype in out, out + err)
    results_of = {}
    for name in ("float32", "int8"):
        expect("table compiles", run(*words, "--weights-dtype=" + name, "-o", here("t.tsm")), 0)
        expect("table runs", run(TSRUN, here("t.tsm"), "--inputs", here("rows.st"), "--output", here("o.st")), 0)
        results_of[name] = struct.unpack("<192f", open(here("o.st"), "rb").read()[-768:])
    check("rows of int8", 0 < max(abs(x - y) for x, y in zip(*results_of.values())) < 0.02, str(results_of))
    expect("table not there", run(*words[:-1], script, "--weights-dtype=int8", "-O0", "-o", here("t.tsm")), 2, "-O1")
    expect("unknown weights", run(TSC, script, "--weights-dtype=int9"), 2, "did you mean 'int8'?")
    expect("unknown dtype", run(TSC, script, "--dtype=half"), 2, "there are: float32, bf16")
    expect("not of a device", run(TSC, script, "--weights-dtype=int8", "--target=opencl"), 2, "--target=cpu")


def interrupted(here):
    """A compilation that is told to end leaves nothing behind, whenever that happens."""
    import signal
    import time
    script, folder = here("big.py"), here("interrupted")
    os.mkdir(folder)
    with open(script, "w") as f:
        f.write("import torch\nfrom torch import nn\nmodel = nn.Linear(4096, 4096)\n")
    for delay, number, status in ((0.02, signal.SIGINT, 130), (0.3, signal.SIGTERM, 143), (0.6, signal.SIGTERM, 143)):
        p = subprocess.Popen([TSC, script, "-o", os.path.join(folder, "out.tsm")], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        p.send_signal(number)
        code = p.wait(60)
        check("interrupted after %g s" % delay, code in (status, 0) or (delay < 0.1 and code == -number), "status %d" % code)
        left = os.listdir(folder)
        check("left behind after %g s" % delay, left in ([], ["out.tsm"]), str(left))


def little_memory(here):
    """However little there is: a result or a message, no signal and no temporary file."""
    with open(TSC, "rb") as f:
        if re.search(b"__[at]san_init", f.read()):
            return  # shadow memory does not fit into a limit
    with open(here("deep.py"), "w") as f:
        f.write("import torch\ndef f(x: torch.Tensor):\n" + "".join(
            f"    x = torch.softmax(x @ x, {i % 2}).cumsum(0)\n" for i in range(40)) + "    return x\n")
    for megabytes in range(80, 240, 10):
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
        code, out, err = run(TSC, here("deep.py"), "--entry", "f", "--input", "x:float32[8,8]", "-o", here("deep.tsm"),
                             preexec_fn=limit)
        check(f"within {megabytes} MB", code == 0 or (code == 1 and "error: " in err), f"status {code}: {err}")


def memory_of_weights(here):
    """A compilation that packs weights and folds norms into them holds them about once, beside LLVM."""
    with open(TSC, "rb") as f:
        if re.search(b"__[at]san_init", f.read()):
            return  # shadow memory counts
    with open(here("norms.py"), "w") as f:
        f.write("from torch import nn\n\nmodel = nn.Sequential(*[nn.Sequential(nn.Conv2d(2048, 2048, 1), nn.BatchNorm2d(2048)) for _ in range(4)])\n")
    words = [TSC, here("norms.py"), "--eval", "--cpu=x86-64-v3", "--input", ":float32[1,2048,2,2]", "-o", here("norms.tsm")]
    p = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    status, usage = os.wait4(p.pid, 0)[1:]
    weights = 4 * 2048 * 2048 * 4
    check("norms compile", status == 0, f"status {status}")
    check("memory of a compilation", usage.ru_maxrss * 1024 < 2.5 * weights, f"{usage.ru_maxrss} KiB for weights of {weights >> 10}")


def repeated_layers(here):
    """Layers that differ in weights and in the names of their sizes have one kernel each kind."""
    with open(here("layers.py"), "w") as f:
        f.write("import torch\nfrom torch import nn, Tensor\n\n\nclass Net(nn.Module):\n"
                "    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(48, 32)\n        self.b = nn.Linear(48, 32)\n"
                "        self.c = nn.Linear(48, 33)\n\n"
                "    def forward(self, x: Tensor, y: Tensor):\n"
                "        return torch.relu(self.a(x)), torch.relu(self.b(y)), torch.relu(self.c(x))\n")
    expect("layers compile", run(TSC, here("layers.py"), "--eval", "--cpu=x86-64-v3", "--emit=llvm", "--input", "x:float32[N,48]", "--input",
                                 "y:float32[M,48]", "-o", here("layers.ll")), 0)
    kernels = re.findall(r"^define .*@kernel_\d+\(", open(here("layers.ll")).read(), re.M)
    check("kernels of layers", len(kernels) == 2, str(kernels))


def fill_out_of_range(here):
    """A kernel fills in what is in range for certain; else the operator looks when it runs."""
    with open(here("fill.py"), "w") as f:
        f.write("import torch\nfrom torch import Tensor\n\n\n"
                "def near(x: Tensor, m: Tensor) -> Tensor:\n    return (x.masked_fill(m, torch.tensor(100)) + 1) * 2\n\n\n"
                "def far(x: Tensor, m: Tensor) -> Tensor:\n    return (x.masked_fill(m, torch.tensor(300)) + 1) * 2\n")
    with open(here("fill.json"), "w") as f:
        json.dump([{"tensor": {"dtype": "int8", "shape": [3], "data": [1, 2, 3]}},
                   {"tensor": {"dtype": "bool", "shape": [3], "data": [True, False, True]}}], f)
    for entry, status, text in (("near", 0, "[-54, 6, -54]"), ("far", 1, "cannot be converted to type int8_t without overflow")):
        expect(entry + " compiles", run(TSC, here("fill.py"), "--entry", entry, "--input", "x:int8[3]", "--input", "m:bool[3]",
                                        "-o", here("fill.tsm")), 0)
        expect(entry, run(TSRUN, here("fill.tsm"), "--args", here("fill.json"), "--output-args", "-"), status, text)


def needs(here):
    """Without --input: what the inputs must satisfy is listed, checked on entry, and nothing else is refused."""
    script, model = here("needs.py"), here("needs.tsm")
    with open(script, "w") as f:
        f.write("import torch\nfrom torch import nn, Tensor\n\n\nclass Net(nn.Module):\n"
                "    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(4, 3)\n\n"
                "    def forward(self, x: Tensor, y: Tensor) -> Tensor:\n"
                "        z = torch.matmul(self.a(x), y)\n        assert z.size(0) == 2, 'two rows'\n        return z\n")
    expect("compile without types", run(TSC, script, "--eval", "-o", model), 0)
    info = run(TSRUN, "info", model)
    for line in ("requires (checked on entry): x.size(-1) == 4", "requires (checked on entry): x.dtype == float32",
                 "requires (checked on entry): x.dim() >= 1", "fast path: x: float32[s1,4]"):
        expect("info without types", info, 0, line)
    header = run(TSC, script, "--eval", "-o", here("needs.o"))
    text = open(here("needs.h")).read() if header[0] == 0 else ""
    check("requirements in the header", " *       requires x.size(-1) == 4\n" in text and " *       fast for x: float32[s1,4]" in text, text)

    def called(x, y):
        safetensors(here("in.safetensors"), [("x", x, [1.0] * count(x)), ("y", y, [1.0] * count(y))])
        return run(TSRUN, model, "--inputs", here("in.safetensors"), "--output", here("out.safetensors"))

    def count(shape):
        return count(shape[1:]) * shape[0] if shape else 1

    expect("a matrix", called([2, 4], [3, 5]), 0)
    expect("another rank is taken", called([2, 1, 4], [3, 5]), 0)
    expect("a wrong size", called([2, 5], [3, 5]), 1, "input x: expected x.size(-1) == 4, found float32[2,5]")
    expect("a wrong rank", called([], [3, 5]), 1, "input x: expected x.dim() >= 1, found float32[]")
    expect("sizes of another input", called([2, 4], [4, 5]), 1, "input y: expected y.size(-2) == 3, found float32[4,5]")
    expect("the program's own test", called([3, 4], [3, 5]), 1, "AssertionError: two rows")
    with open(script, "w") as f:
        f.write("import torch\nfrom torch import nn, Tensor\n\n\nclass Net(nn.Module):\n"
                "    def __init__(self):\n        super().__init__()\n        self.e = nn.Embedding(4, 3)\n\n"
                "    def forward(self, x: Tensor, y: Tensor) -> Tensor:\n        return self.e(x) + torch.cat([x, y], 1).sum()\n")
    expect("compile an embedding", run(TSC, script, "--eval", "-o", model), 0)
    expect("a wrong dtype", called([2, 4], [2, 5]), 1, "input x: expected x.dtype in (int32, int64), found float32[2,4]")
    with open(script, "w") as f:
        f.write("import torch\nfrom torch import Tensor\n\n\ndef f(x: Tensor, y: Tensor) -> Tensor:\n"
                "    return torch.matmul(x, y.transpose(-2, -1)).view(x.size(0), -1, 2)\n")
    expect("compile two inputs", run(TSC, script, "--entry", "f", "-o", model), 0)
    expect("sizes of two inputs", called([2, 4], [2, 5]), 1,
           "inputs y and x: expected y.size(-1) == x.size(-1), found float32[2,5] and float32[2,4]")
    expect("sizes that are zero", called([2, 0], [2, 0]), 0)


def whole_numbers(here):
    """floor, ceil and trunc of an int are the int: from a script, and as the operators that archives hold."""
    def called(name, text, *flags):
        with open(here(name), "w") as f:
            f.write(text)
        expect("compile " + name, run(TSC, here(name), *flags, "-o", here("whole.tsm")), 0)
        with open(here("whole.json"), "w") as f:
            f.write("[-7, true, -2.5]")
        expect("run " + name, run(TSRUN, here("whole.tsm"), "--args", here("whole.json"), "--output-args", here("whole.out")), 0)
        return json.load(open(here("whole.out")))["tuple"]

    got = called("whole.py", "import math\n\n\ndef f(n: int, b: bool, x: float):\n"
                 "    return (math.floor(n), math.ceil(n), math.trunc(n), int(b), int(x), math.floor(b), math.floor(x),\n"
                 "            math.ceil(x), math.trunc(x))\n", "--entry", "f")
    check("whole numbers of a script", got == [-7, -7, -7, 1, -2, 1, -3, -2, -2] and bool not in map(type, got), str(got))
    kinds = (("floor.int", "n"), ("ceil.int", "n"), ("Int.Scalar", "n"), ("Int.bool", "b"), ("floor.float", "x"), ("ceil.float", "x"),
             ("trunc.float_int", "x"), ("Int.float", "x"))
    lines = "".join("  %%%d = %s(%%%s) : int\n" % (i, op, x) for i, (op, x) in enumerate(kinds))
    result = "Tuple[%s]" % ", ".join("int" for _ in kinds)
    got = called("whole.tsir", "func @f(%%n: int, %%b: bool, %%x: float) -> %s entry {\n%s  %%t = tuple(%s) : %s\n  return %%t\n}\n" % (
        result, lines, ", ".join("%%%d" % i for i in range(len(kinds))), result))
    check("whole numbers of operators", got == [-7, -7, -7, 1, -3, -2, -2, -2], str(got))


def expanded_constants(here):
    """A product with a constant that is expanded to a size known at run time: one matrix serves all."""
    with open(here("expanded.py"), "w") as f:
        f.write("import torch\nfrom torch import Tensor\n\n\ndef f(x: Tensor):\n    n = x.size(0)\n"
                "    rows = torch.matmul(x, torch.eye(2).expand(n, 2, 2).contiguous())\n"
                "    some = torch.matmul(x, torch.tensor([[[[0.0], [1.0]]], [[[2.0], [3.0]]]]).expand(2, n, 2, 1).contiguous())\n"
                "    wide = torch.matmul(torch.ones(3, 2), torch.tensor([[0.0], [1.0]]).expand(2, n).contiguous())\n"
                "    return rows.sum(1).flatten(), some.sum((1, 2, 3)), wide.sum(0)\n")
    expect("compile expanded", run(TSC, here("expanded.py"), "--entry", "f", "--input", "x:float32[N,3,2]", "-o", here("expanded.tsm")), 0)
    safetensors(here("expanded.st"), [("x", [2, 3, 2], [float(v) for v in range(12)])])
    expect("run expanded", run(TSRUN, here("expanded.tsm"), "--inputs", here("expanded.st"), "--output", here("expanded.out")), 0)
    data = open(here("expanded.out"), "rb").read()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    got = []
    for name in ("out0", "out1", "out2"):
        begin, end = header[name]["data_offsets"]
        got.append(list(struct.unpack("<%df" % ((end - begin) // 4), data[start + begin:start + end])))
    check("expanded constants", got == [[6, 9, 24, 27], [36, 168], [3, 3]], str(got))


def main(folder):
    here = lambda name: os.path.join(folder, name)
    script = here("add.py")
    with open(script, "w") as f:
        f.write("import torch\nfrom torch import nn, Tensor\n\n\nclass Add(nn.Module):\n"
                "    def forward(self, x: Tensor, n: int = 2) -> Tensor:\n"
                "        print('n is', n)\n        if n < 0:\n            raise ValueError('negative')\n"
                "        return x + n\n")
    # tsc: what was typed is to blame (2), what was given is (1)
    expect("help", run(TSC, "--help"), 0, "usage: tsc")
    expect("version", run(TSC, "--version"), 0, "tsc ")
    expect("no input", run(TSC), 2, "expected one input")
    expect("two inputs", run(TSC, "a.py", "b.py"), 2, "found 2")
    expect("unknown option", run(TSC, "--entyr", "f", script), 2, "did you mean --entry?")
    expect("no value", run(TSC, script, "-o"), 2, "needs a value")
    expect("unknown emit", run(TSC, script, "--emit=tsmm"), 2, "did you mean 'tsm'?")
    expect("unknown pass", run(TSC, script, "--passes=fusee"), 2, "did you mean 'fuse'?")
    expect("bad level", run(TSC, script, "-O4"), 2, "from 0 to 3")
    expect("bad input type", run(TSC, script, "--input", "x"), 2, "NAME:TYPE")
    expect("input twice", run(TSC, script, "--input", "x:float32[2]", "--input", "x:float32[3]"), 2, "gives 'x' twice")
    expect("no entries", run(TSC, script, "--entry", ","), 2, "--entry: expected names")
    expect("an entry twice", run(TSC, script, "--entry", "forward,forward"), 2, "names 'forward' twice")
    expect("a folder for what is measured", run(TSC, script, "--tune", "--tune-cache", folder, "-o", here("n.tsm")), 1,
           "expected a regular file")
    expect("no levels", run(TSC, script, "--cpu", ","), 2, "--cpu: expected names")
    expect("unknown list", run(TSC, "--list-ops", "zz"), 2, "--list-ops")
    expect("input of no entry", run(TSC, script, "--input", "nope.x:float32[2]", "-o", here("n.tsm")), 1,
           "names the entry 'nope', which is not compiled")
    expect("input of no parameter", run(TSC, script, "--input", "z:float32[2]", "-o", here("n.tsm")), 1,
           "has no such parameter")
    expect("too many inputs in order", run(TSC, script, "--input", ":float32[2]", "--input", ":int", "--input", ":int",
                                           "-o", here("n.tsm")), 1, "forward has 2 parameters")
    dumps = here("dumps")
    expect("folder of dumps", run(TSC, script, "--dump=inline", "--dump-dir", dumps, "--emit=tsir", "-o", here("n.tsir")), 0)
    check("dumps are written", os.path.isdir(dumps) and len(os.listdir(dumps)) > 0)
    interrupted(here)
    expect("missing file", run(TSC, here("nope.py")), 1, "No such file")
    expect("output is a folder", run(TSC, script, "-o", folder), 1, "folder")
    expect("output is the input", run(TSC, script, "-o", script), 2, "replace the input")
    expect("report is the input", run(TSC, script, "-o", here("n.tsm"), "--report", script), 2, "replace the input")
    expect("report is the output", run(TSC, script, "-o", here("n.tsm"), "--report", here("n.tsm")), 2, "two outputs")
    expect("a cache that is a file", run(TSC, script, "-o", here("n.tsm"), "--cache", script), 1, "is no folder")
    expect("architecture without CUDA", run(TSC, script, "-o", here("n.tsm"), "--cuda-arch=sm_80"), 2, "--target=cuda")
    expect("tune to a pipe", run(TSC, script, "-o", "-", "--emit=tsm", "--tune"), 2, "--tune-cache")
    expect("disk full", run(TSC, script, "-o", "/dev/full"), 1, "No space left")
    broken = here("broken.py")
    with open(broken, "w") as f:
        f.write("import torch\ndef f(x: torch.Tensor) -> int:\n    return y\n")
    expect("error has a place", run(TSC, broken, "--entry", "f", "-o", here("b.tsm")), 1, "broken.py:3:12: error:")
    check("nothing is written", not os.path.exists(here("b.tsm")))
    code, out, err = run(TSC, broken, "--entry", "f", "--diagnostics=json", "-o", here("b.tsm"))
    found = json.loads(err)["diagnostics"]
    check("json", code == 1 and found[0]["line"] == 3 and found[0]["severity"] == "error", err)
    expect("IR to a closed pipe", run("/bin/sh", "-c", "'%s' '%s' --emit=tsir | true" % (TSC, script)), 0)
    expect("IR to a full disk", run(TSC, script, "--emit=tsir", stdout=open("/dev/full", "w")), 1)

    with open(here("redirected.tsm"), "wb") as f:
        code = run(TSC, script, "-o", "-", "--emit=tsm", stdout=f)[0]
    check("artifact to a redirected output", code == 0 and os.path.islink("/dev/stdout") and
          open(here("redirected.tsm"), "rb").read(4) == b"\x89TSM")
    with open(here("two.txt"), "wb") as f: # behind what the file holds already
        for _ in range(2):
            run(TSC, script, "-o", "-", "--emit=tsir", stdout=f)
    once = run(TSC, script, "-o", "-", "--emit=tsir")[1]
    check("text to a redirected output, twice", once and open(here("two.txt")).read() == once * 2)

    with open(here("scaled.py"), "w") as f:
        f.write("import torch\nfrom torch import nn\nclass M(nn.Module):\n    def forward(self, x: torch.Tensor, s: float):\n"
                "        return x * s\nmodel = M()\n")
    safetensors(here("scaled.st"), [("x", [2], [1, 2]), ("s", [], [3])])
    expect("an example's tensor of no dimensions for a number", run(
        TSC, here("scaled.py"), "--example", here("scaled.st"), "--check-each", "-o", here("scaled.tsm")), 0)

    # tsrun
    model, inputs, args = here("add.tsm"), here("x.safetensors"), here("a.json")
    expect("compile", run(TSC, script, "-o", model, "--input", "x:float32[N]"), 0)
    expect("a compiled model as input", run(TSC, model, "-o", here("n.tsm")), 1, "tsrun runs it")
    expect("an example of no parameter", run(TSC, script, "--example", here("scaled.st"), "-o", here("n.tsm")), 1,
           "--example names 's'")
    check("reproducible", run(TSC, script, "-o", here("again.tsm"), "--input", "x:float32[N]")[0] == 0 and
          open(model, "rb").read() == open(here("again.tsm"), "rb").read())
    layers = here("layers.py")
    with open(layers, "w") as f:
        f.write("from torch import nn\nmodel = nn.Sequential(nn.Conv2d(8, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(2048, 8))\n")
    for kind, suffix in (("obj", ".o"), ("so", ".so"), ("asm", ".s")):
        expect("layers to " + kind, run(TSC, layers, "--eval", "--input", ":float32[1,8,8,8]", "--emit=" + kind, "-o",
                                        here("layers" + suffix)), 0)
    expect("report", run(TSC, layers, "--eval", "--input", ":float32[1,8,8,8]", "--report", here("r.html"), "-o", here("r.tsm")), 0)
    page = open(here("r.html")).read()
    check("report has kernels", "conv2d, relu" in page.replace("convolution", "conv2d") and "x86-64-v4" in page and "bytes planned" in page, page)
    expect("report of what is dynamic", run(TSC, script, "--report", here("r.html"), "-o", here("r.tsm")), 0)
    check("report has reasons", "has an unknown dtype" in open(here("r.html")).read(), open(here("r.html")).read())
    tune = [TSC, layers, "--eval", "--input", ":float32[1,8,8,8]", "--tune", "-o"]
    expect("tune", run(*tune, here("tuned.tsm")), 0, "tune: round 8 of 8")
    expect("tune from the cache", run(*tune, here("tuned2.tsm"), "--tune-cache", here("tuned.tsm.tune")), 0, "are in the cache")
    check("tuned the same", open(here("tuned.tsm"), "rb").read() == open(here("tuned2.tsm"), "rb").read())
    expect("tune without sizes", run(TSC, layers, "--eval", "--tune", "-o", here("n.tsm")), 1, "has no constant size: give --example")
    expect("tune for a device", run(TSC, layers, "--eval", "--tune", "--target=opencl", "-o", here("n.tsm")), 2, "--tune is for")
    cache = here("cache")
    for name, words in (("one thread", ["-j1"]), ("an empty cache", ["--cache", cache]), ("a full cache", ["--cache", cache, "-j2"])):
        expect("compile with " + name, run(TSC, script, "-o", here("again.tsm"), "--input", "x:float32[N]", *words), 0)
        check("same bytes with " + name, open(model, "rb").read() == open(here("again.tsm"), "rb").read())
    entries = sorted(os.listdir(cache))
    check("the cache holds code", len(entries) > 0 and all(e.endswith(".o") for e in entries), str(entries))
    for entry in entries:  # a cut or altered entry is none
        with open(os.path.join(cache, entry), "r+b") as f:
            f.seek(100)
            f.write(b"\0" * 64)
    expect("compile with a damaged cache", run(TSC, script, "-o", here("again.tsm"), "--input", "x:float32[N]", "--cache", cache), 0)
    check("same bytes with a damaged cache", open(model, "rb").read() == open(here("again.tsm"), "rb").read())
    safetensors(inputs, [("x", [2], [1.0, 2.0])])
    big = here("big_tensors.py")
    with open(big, "w") as f:
        f.write("import torch\n\n\ndef f(n: int):\n    x = torch.eye(n).double()\n    y = torch.linalg.inv(x)\n    return y.sum()\n")
    expect("compile big", run(TSC, big, "--entry", "f", "-o", here("big.tsm")), 0)
    with open(here("big.json"), "w") as f:
        f.write("[600]")
    expect("within the limit", run(TSRUN, here("big.tsm"), "--args", here("big.json"), "--memory-limit", "50000000"), 0, "600")
    expect("over the limit", run(TSRUN, here("big.tsm"), "--args", here("big.json"), "--memory-limit", "4000000"), 1, "memory limit")
    expect("memory of a run", run(TSRUN, "info", model), 0, "with all results of kernels: 4*N")
    expect("default of an input", run(TSRUN, model, "--inputs", inputs), 0, "n is 2")
    code, out, err = run(TSRUN, model, "--inputs", inputs, "--output", here("o.st"))
    check("stdout is the model's", code == 0 and out == "n is 2\n", out + err)
    check("tensor file", open(here("o.st"), "rb").read().endswith(struct.pack("<2f", 3, 4)))
    json.dump([{"tensor": "x"}, -1], open(args, "w"))
    os.unlink(here("o.st"))
    code, out, err = run(TSRUN, model, "--inputs", inputs, "--args", args, "--output", here("o.st"))
    check("raises", code == 1 and err.startswith("ValueError: negative\n"), err)
    check("no output of a failed run", not os.path.exists(here("o.st")))
    json.dump({"calls": [[{"tensor": "x"}, -1], {"entry": "forward", "args": [{"tensor": "x"}, 1]}]}, open(args, "w"))
    code, out, err = run(TSRUN, model, "--inputs", inputs, "--args", args, "--output-args", here("r.json"))
    r = json.load(open(here("r.json")))["results"]
    check("several calls", code == 0 and r[0] == {"raises": {"type": "ValueError", "message": "negative"}} and
          r[1]["result"]["tensor"]["data"] == [2.0, 3.0], err)
    expect("unknown entry", run(TSRUN, model, "--entry", "forwrd", "--inputs", inputs), 1, "did you mean 'forward'?")
    expect("missing input", run(TSRUN, model), 1, "input x")
    code, out, err = run(TSRUN, model, "--inputs", inputs, "--output-args", here("r.json"))
    result = json.load(open(here("r.json")))
    json.dump([result, 4], open(args, "w"))
    code, out, err = run(TSRUN, model, "--args", args)
    check("a result is an argument", code == 0 and json.loads(out.split("\n", 1)[1])["tensor"]["data"] == [7.0, 8.0], out + err)
    for text, message in (("", "found an empty file"), ('{"a": 1}', "expected a list of arguments"), ('[{"tensor": [1]}]', "takes the name of one"),
                          ('[{"tensor": {"dtype": "float32", "shape": [2], "data": [1]}}]', "holds 2 elements, its data 1"),
                          ('[{"tensor": {"dtype": "uint8", "shape": [1], "data": [256]}}]', "does not fit uint8"),
                          ('[{"tensor": {"dtype": "float16", "shape": [0], "data": []}}]', "does not fit a tree")):
        open(args, "w").write(text)
        expect("refused: " + text, run(TSRUN, model, "--args", args), 1, message)
    open(args, "w").write('[{"tensor": {"dtype": "float32", "shape": [2], "data": ["inf", {"float": "nan"}]}}]')
    expect("infinities in place", run(TSRUN, model, "--args", args), 0, '[{"float": "inf"}, {"float": "nan"}]')
    for words in (["bench", model, "--output", here("o.st")], ["bench", model, "--profile", here("p.json")],
                  ["info", model, "--inputs", inputs], [model, "--runs", "3"], [model, "--verify"]):
        expect("an option out of place: " + " ".join(words[:2]), run(TSRUN, *words), 2, "is no option of tsrun")
    for device, message in (("foo", "there are: cpu, cuda"), ("cuda:x", "expected a number"), ("cuda:", "expected a number"),
                            ("cuda:99999999999", "expected a number"),
                            ("cuda", "compile it with --target cuda")):
        expect("device " + device, run(TSRUN, model, "--inputs", inputs, "--device", device), 1, message)
    expect("bad limit", run(TSRUN, model, "--memory-limit", "4K"), 2, "whole number")
    expect("bad threads", run(TSRUN, model, "--threads", "many"), 2, "whole number")
    expect("foreign file", run(TSRUN, script), 1)
    expect("info", run(TSRUN, "info", model, "--verify"), 0, "verified")
    code, out, err = run(TSRUN, "bench", model, "--inputs", inputs, "--runs", "5", "--warmup", "1", "--json", "-")
    wanted = {"median_us", "cpu_us", "min_us", "p99_us", "load_us", "peak_bytes"}
    check("bench", code == 0 and wanted <= set(json.loads(out)), out + err)
    data = bytearray(open(model, "rb").read())
    place = next(i for i in range(len(data) // 2, len(data)) if data[i])  # not between sections
    data[place] ^= 1
    open(here("flipped.tsm"), "wb").write(data)
    expect("altered artifact", run(TSRUN, "info", here("flipped.tsm"), "--verify"), 1)
    expect("cut artifact", (open(here("cut.tsm"), "wb").write(data[:100]), run(TSRUN, here("cut.tsm")))[1], 1)
    precision(here)
    needs(here)
    little_memory(here)
    memory_of_weights(here)
    repeated_layers(here)
    fill_out_of_range(here)
    expanded_constants(here)
    whole_numbers(here)
    check("no temporaries", not [n for n in os.listdir(folder) if ".tmp." in n])


with tempfile.TemporaryDirectory() as scratch:
    os.chdir(scratch)
    main(scratch)
print("%d passed, %d failed" % (sum(results), len(results) - sum(results)))
sys.exit(0 if all(results) else 1)

"""Lines of gradient cases: what record_grad.py and run_grad.py share. Standard library only.

    name | inputs | statements; expression [| grads]

inputs: `x=float[2,3](-1,1)` is a tensor with a gradient, drawn evenly from that range by a generator of this file; `i=int[2](0,2)`
whole numbers from 0 to 2; `b=bool[3]`; `!` behind the name: without a gradient. The expression, or the last of several
statements, gives a tensor or a tuple of them, whose elements are weighted and summed. grads: what PyTorch gave in float64 for
each input with a gradient, in order, flat."""
import json
import re
import zlib

HEAD = """import math
from typing import List, Optional, Tuple
import torch
import torch.nn.functional as F
from torch import Tensor, nn


def weighed(y: Tensor) -> Tensor:
    w = torch.arange(y.numel(), dtype=torch.float64).to(y.dtype).reshape(y.shape)
    return (y * (torch.remainder(w * 3, 7) * 0.25 - 0.625)).sum()


"""


class Input:
    def __init__(self, text, name_of_case):
        m = re.fullmatch(r"(\w+)(!?)=(float|int|bool)\[([\d,]*)\](?:\(([^,]+),([^)]+)\))?", text)
        if not m:
            raise ValueError("not an input: " + text)
        self.name, self.kind = m.group(1), m.group(3)
        self.wants_gradient = self.kind == "float" and not m.group(2)
        self.shape = [int(d) for d in m.group(4).split(",") if d]
        low, high = float(m.group(5) or -1), float(m.group(6) or 1)
        count = 1
        for d in self.shape:
            count *= d
        state = zlib.crc32((name_of_case + "." + self.name).encode()) or 1
        self.flat = []
        for _ in range(count):
            state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
            u = (state >> 40) / (1 << 24)
            if self.kind == "float":  # exact in float32, so that both types see the same numbers
                self.flat.append(round((low + (high - low) * u) * 4096) / 4096)
            elif self.kind == "int":
                self.flat.append(int(low) + int(u * (int(high) - int(low) + 1)))
            else:
                self.flat.append(u < 0.5)


class Case:
    def __init__(self, line):
        parts = [p.strip() for p in line.split(" | ")]
        if len(parts) < 3:
            raise ValueError("not a case: " + line)
        self.name = parts[0]
        self.text = " | ".join(parts[:3])
        self.inputs = [Input(t, self.name) for t in parts[1].split()]
        self.statements = [s.strip() for s in parts[2].split(";;")]
        self.grads = json.loads(parts[3]) if len(parts) > 3 else None
        self.raises = None
        self.tolerance = 1.0
        if self.name.endswith("~"):  # rounds more in float32
            self.name, self.tolerance = self.name[:-1], 30.0

    def body(self, indent):
        """Statements that leave the loss in `loss`."""
        lines = [indent + s for s in self.statements[:-1]]
        lines.append(indent + "result = " + self.statements[-1])
        lines.append(indent + "loss = weighed(result)")
        return "\n".join(lines) + "\n"

    def parameters(self):
        return ", ".join(i.name + ": Tensor" for i in self.inputs)

    def wanted(self):
        return [i.name for i in self.inputs if i.wants_gradient]

    def function(self, name, method):
        """def name(...) that returns the loss and the gradients, or, for differences, the loss alone."""
        head = "def %s(%s%s)" % (name, "self, " if method else "", self.parameters())
        text = head + ":\n"
        for n in self.wanted():
            text += "    %s = %s.detach().requires_grad_(True)\n" % (n, n)
        text += self.body("    ")
        text += "    grads = torch.autograd.grad([loss], [%s], allow_unused=True)\n" % ", ".join(self.wanted())
        names = []
        for k in range(len(self.wanted())):
            text += "    g%d = grads[%d]\n    assert g%d is not None\n" % (k, k, k)
            names.append("g%d" % k)
        return text + "    return loss.detach(), " + ", ".join(names) + "\n"


def read_cases(path):
    with open(path, encoding="utf-8") as f:
        return [Case(line.rstrip("\n")) for line in f if line.strip() and not line.startswith("#")]


def round_all(values):
    return [float("%.10g" % v) for v in values]

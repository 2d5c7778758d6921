#!/usr/bin/env python3
"""Makes the archives that run_archives.py reads, with PyTorch's own results: make_archives.py [NAME...]
Needs PyTorch (made with 2.13) and safetensors; the build and the tests do not."""
import argparse
import collections
import copy
import dataclasses
import io
import json
import os
import pathlib
import pickle
import struct
import sys
import tarfile
import warnings
import zipfile
from typing import Tuple

import numpy as np
import torch
import torch.ao.quantization as tq
import torch.ao.quantization.fx._decomposed
from safetensors.torch import save_file
from torch import nn
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.scan import scan
from torch._export.serde.serialize import serialize
from torch.export.pt2_archive._package import package_pt2
from torch.testing._internal.two_tensor import TwoTensor

warnings.filterwarnings("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
WANTED = sys.argv[1:]


def encode(value, tensors, stem):
    """The form of tsrun --args: numbers as they are, tensors by name."""
    if isinstance(value, torch.Tensor):
        name = f"{stem}{len(tensors)}"
        if value.is_quantized:
            tensors[name] = value.int_repr().contiguous().clone()
            return {"quantized": {"ints": name, "scale": value.q_scale(), "zero_point": value.q_zero_point(),
                                  "dtype": str(value.dtype)[6:]}}
        tensors[name] = value.detach().contiguous().clone()
        return {"tensor": name}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__ if type(value) is list else "tuple": [encode(v, tensors, stem) for v in value]}
    if dataclasses.is_dataclass(value):
        value = vars(value)
    if isinstance(value, dict):
        return {"dict": [[encode(k, tensors, stem), encode(v, tensors, stem)] for k, v in value.items()]}
    return value


def without_metadata(tree):
    """Stack traces hold paths of this machine."""
    if isinstance(tree, dict):
        return {k: {} if k == "metadata" else without_metadata(v) for k, v in tree.items()}
    return [without_metadata(v) for v in tree] if isinstance(tree, list) else tree


def slim(path):
    """Without debug records, which hold paths of this machine, and compressed: a few KB each."""
    if not zipfile.is_zipfile(path):
        return
    old = zipfile.ZipFile(path)
    members = [(m.filename, old.read(m)) for m in old.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, data in members:
            if name.endswith(".json"):
                data = json.dumps(without_metadata(json.loads(data))).encode()
            if not name.endswith((".debug_pkl", "serialization_id", "sample_inputs/model.pt", "example_inputs.pt")):
                new.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def write(name, suffix, save, run, calls, **more):
    """calls: tuples of arguments, or (entry, arguments); run(entry, arguments) gives the result."""
    if WANTED and name not in WANTED:
        return
    save(os.path.join(HERE, name + suffix))
    slim(os.path.join(HERE, name + suffix))
    tensors, spec = {}, {"calls": [], "results": [], **more}
    for c in calls:
        entry, args = c if isinstance(c[0], str) else ("forward", c)
        spec["calls"].append({"entry": entry, "args": [encode(a, tensors, "t") for a in args]})
        try:
            with torch.no_grad():
                spec["results"].append({"result": encode(run(entry, args), tensors, "t")})
        except (RuntimeError, AssertionError):
            spec["results"].append({"raises": {}})
        except KeyError as e:
            spec["results"].append({"raises": {"message": str(e)}})
    json.dump(spec, open(os.path.join(HERE, name + ".json"), "w"), indent=None)
    if tensors:
        save_file(tensors, os.path.join(HERE, name + ".safetensors"))
    print(name)


def script(name, module, *calls, trace=False, training=False, **more):
    module = module.eval() if isinstance(module, nn.Module) and not training else module
    made = torch.jit.trace(module, calls[0], check_trace=False) if trace else torch.jit.script(module)
    write(name, ".pt", made.save, lambda entry, args: getattr(made, entry)(*args) if entry != "forward" else made(*args),
          calls, **more)


def refuse(name, suffix, save, text, **more):
    if not WANTED or name in WANTED:
        save(os.path.join(HERE, name + suffix))
        slim(os.path.join(HERE, name + suffix))
        json.dump({"refused": text, **more}, open(os.path.join(HERE, name + ".json"), "w"))
        print(name)


# ---- quantized ----
class Net(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.quant, self.m, self.dequant = tq.QuantStub(), nn.Sequential(*layers), tq.DeQuantStub()

    def forward(self, x):
        return self.dequant(self.m(self.quant(x)))


def static(module, x, backend="fbgemm", qconfig=None):
    torch.backends.quantized.engine = backend
    module = module.eval()
    module.qconfig = qconfig or tq.get_default_qconfig(backend)
    prepared = tq.prepare(module)
    prepared(x)
    return tq.convert(prepared)


class Arithmetic(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.conv, self.dequant = tq.QuantStub(), nn.Conv2d(2, 4, 3, padding=1), tq.DeQuantStub()
        self.f = nn.ModuleList([nn.quantized.FloatFunctional() for _ in range(6)])

    def forward(self, x):
        a = self.conv(self.quant(x))
        b = self.f[0].add(a, a)
        c = self.f[1].mul(b, a)
        d = self.f[2].add_relu(c, b)
        e = self.f[3].cat([d, c], 1)
        e = self.f[4].add_scalar(e, 0.7)
        return self.dequant(self.f[5].mul_scalar(e, -1.5))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 6, num_layers=2, bidirectional=True)
        self.gru = nn.GRU(12, 5)
        self.head = nn.Linear(5, 3)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        z, g = self.gru(y)
        return self.head(z), h, c, g


class PerChannel(nn.Module):
    def forward(self, x, scales):
        y = torch.quantize_per_channel(x, scales, torch.tensor([0, 3, -2]), 0, torch.qint8)
        return y.dequantize(), y.int_repr(), y.q_per_channel_scales(), y.q_per_channel_zero_points()


class Plain(nn.Module):
    """Plain operators of a quantized tensor, in and out."""

    def forward(self, x):
        y = torch.relu(x.permute(1, 0).reshape(2, 6))
        return y, torch.sigmoid(x), torch.tanh(x), torch.clamp(x, -0.3, 0.4), torch.cat([x, x])[1:3].clone(), x.mean()


def quantized():
    torch.manual_seed(0)
    act = tq.QConfig(activation=tq.default_observer, weight=tq.default_weight_observer)
    script("q_linear", static(Net(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)), torch.randn(20, 6)), (torch.randn(5, 6),))
    script("q_conv", static(Net(nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, groups=4),
                                nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)), torch.randn(4, 2, 10, 10)),
           (torch.randn(2, 2, 10, 10),))
    script("q_conv1d_qnnpack", static(Net(nn.Conv1d(2, 4, 3, dilation=2, stride=2), nn.ReLU()), torch.randn(4, 2, 12),
                                      "qnnpack"), (torch.randn(2, 2, 12),))
    script("q_conv_transpose", static(Net(nn.ConvTranspose2d(2, 3, 3, stride=2, output_padding=1)),
                                      torch.randn(2, 2, 4, 4), qconfig=act), (torch.randn(2, 2, 4, 4),))
    script("q_activations", static(Net(nn.Hardswish(), nn.ELU(), nn.LeakyReLU(), nn.Sigmoid(), nn.GroupNorm(2, 4),
                                       nn.LayerNorm([4, 4])), torch.randn(4, 4, 4, 4)), (torch.randn(2, 4, 4, 4),))
    script("q_arithmetic", static(Arithmetic(), torch.randn(4, 2, 5, 5)), (torch.randn(2, 2, 5, 5),))
    script("q_recurrent", tq.quantize_dynamic(Recurrent(), {nn.Linear, nn.LSTM, nn.GRU}, torch.qint8),
           (torch.randn(3, 2, 4),), (torch.randn(1, 4, 4),))
    script("q_recurrent_half", tq.quantize_dynamic(Recurrent(), {nn.Linear, nn.LSTM, nn.GRU}, torch.float16),
           (torch.randn(3, 2, 4),))
    script("q_per_channel", PerChannel(), (torch.randn(3, 4), torch.tensor([.1, .02, .05], dtype=torch.float64)))
    x = torch.quantize_per_tensor(torch.randn(3, 4), 0.05, 128, torch.quint8)
    script("q_plain", Plain(), (x,), (torch.quantize_per_tensor(torch.randn(3, 4), 0.03, 3, torch.qint8),))
    bag = nn.Sequential(nn.EmbeddingBag(6, 8, mode="sum"))
    bag.qconfig = tq.float_qparams_weight_only_qconfig
    mapping = {nn.EmbeddingBag: torch.ao.nn.quantized.EmbeddingBag}
    script("q_embedding_bag", tq.convert(tq.prepare(bag), mapping=mapping)[0], (torch.tensor([[1, 2], [5, 0]]),))


# ---- torch.export programs ----
def export(name, module, *calls, kw=None, dynamic=None, strict=False, decomposed=False, old=False, guarded=False, **more):
    """The calls run in one session, so state goes from one to the next."""
    program = torch.export.export(copy.deepcopy(module), calls[0], kw, dynamic_shapes=dynamic, strict=strict)
    if decomposed:
        program = program.run_decompositions()

    def save(path):
        if not old:
            return torch.export.save(program, path)
        parts = serialize(program)  # the layout before 2.8
        with zipfile.ZipFile(path, "w") as z:
            z.writestr("serialized_exported_program.json", parts.exported_program)
            z.writestr("serialized_state_dict.pt", parts.state_dict)
            z.writestr("serialized_constants.pt", parts.constants)
            z.writestr("serialized_example_inputs.pt", parts.example_inputs)
            z.writestr("version", "8.7")

    def run(entry, args):
        if guarded:
            program.module()(*args)
        return module(*args[:len(calls[0])], **(kw or {}))

    write(name, ".pt2", save, run,
          [c + tuple((kw or {}).values()) for c in calls], **more)


class Stateful(nn.Module):
    """Buffers that change, kept and not kept, tied weights, a tensor made in the call, nested inputs."""

    def __init__(self):
        super().__init__()
        self.fc, self.bn = nn.Linear(4, 3), nn.BatchNorm1d(3)
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("scale", torch.full((3,), 2.0), persistent=False)
        self.other, self.fixed = self.fc.weight, torch.tensor([1.0, 2.0, 3.0])

    def forward(self, x, parts, *, more):
        self.count.add_(1)
        y = self.bn(self.fc(x)) * self.scale + self.fixed + self.other.sum()
        return {"a": y + parts["z"][0], "b": [y.shape[0], self.count + 0, torch.tensor([1.0, 2.0])], "c": (more, None, "text")}


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, n, x):
        y = torch.cond(x.sum() > 0, lambda x: (self.fc(x), x * 2), lambda x: (x - 1, x.clone()), (x,))
        m, z = torch._higher_order_ops.while_loop(lambda n, x: n > 0, lambda n, x: (n - 1, x * 1.5 + 1), (n, x))
        return y, m, z, torch._higher_order_ops.map(lambda row, b: row.sin() + b, x, n)


class Sizes(nn.Module):
    def forward(self, x, y):
        return torch.cat([x, y], 0), x[:-1] + y[1:x.shape[0]], x.mean() * y.shape[0], torch.zeros(x.shape[0] + 3), x.view(-1)


class Branches(nn.Module):
    """Branches that the exporter took by the sizes it saw; for others the graph would be wrong."""

    def forward(self, x, parts, names):
        y = x * 2 if x.shape[0] % 2 == 0 else x * 3
        return (y + 1 if parts[1].shape[0] * 2 > names["a"].shape[0] + 1 else y - 1), names["a"] + 1


@dataclasses.dataclass
class Pair:
    x: torch.Tensor
    k: int


torch.export.register_dataclass(Pair, serialized_type_name="make_archives.Pair")


class Scans(nn.Module):
    """Steps that carry values, forwards and backwards; powers of a size; a dataclass in and out."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, h, p):
        def step(h, x):
            h = torch.tanh(self.fc(h) + x)
            return h, h * 2

        def both(carried, x):
            return (carried[0] + x, carried[1] * x), carried[0] - x
        last, all_ = scan(step, h, p.x)
        (total, product), back = scan(both, (torch.zeros(2, 3), torch.ones(2, 3)), p.x, reverse=True)
        return last, all_, total, product, back, p.x.shape[0] ** 2, Pair(last * p.k, p.k)


class Everything(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU6(), nn.MaxPool2d(2), nn.GroupNorm(2, 4),
                                 nn.Upsample(scale_factor=2, mode="bilinear"), nn.Flatten(2), nn.LayerNorm(16))
        self.attention, self.table = nn.MultiheadAttention(16, 2, batch_first=True), nn.Embedding(6, 4)

    def forward(self, x, i):
        y = self.net(x)
        z = y.clone()
        z[:, 1] = 0.0
        z[:, i] = 2.0
        return (self.attention(y, y, y)[0], z, self.table(i), y.masked_fill(y > 0, float("-inf")).exp(), y.std(1), *torch.topk(y, 2),
                torch.fft.rfft(y).abs(), i.to(torch.float64) * 0.5, y.abs().sum() * 0.5, y[..., None].expand(-1, -1, -1, 2).flatten(2), i.argmax())


class Trains(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x):
        return self.bn(x), self.bn.running_mean + 0


class Checks(nn.Module):
    """What raises by the values of tensors or by sizes that the exporter took for constants."""

    def forward(self, x, y, w):
        torch._assert_async((y > -9).all(), "y is too small")
        return torch.linalg.inv(y), torch.linalg.cholesky(y), y.new_zeros(int(x.shape[0] / 2)), nn.functional.conv1d(
            x[:, None], w, padding="same")


class Functional(nn.Module):
    """Operators whose written arguments the exporter turns into results."""

    def forward(self, x, mean, var, noise):
        one = torch.ops.aten._native_batch_norm_legit(x, None, None, mean, var, False, 0.1, 1e-5)
        two = torch.ops.aten._batch_norm_with_update(x, x[0], x[1], mean, var, 0.1, 1e-5)
        return one, two[:3], torch.ops.aten.rrelu_with_noise(x, noise, 0.1, 0.3, False), mean + 0, var + 0


class Slices(nn.Module):
    """vmap and what is made of it; the inner function also uses what is not sliced. An associative scan takes slices of none."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(3))

    def forward(self, x, y):
        def one(a, b):
            return (a * b).sum() + self.w.exp()[0], b, torch.vmap(lambda c: c * a.sum() - self.w.sum(), out_dims=0)(b)
        return (torch.vmap(one, in_dims=(0, 1), out_dims=(0, 1, 0))(x, y),
                associative_scan(lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (x[:5], x[:5] + 1), 0, combine_mode="generic"))


class Steps(nn.Module):
    """Quantization in plain integers, with what a program finds out at run time and in groups of columns."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scales", torch.rand(4) + 0.1)
        self.register_buffer("zeros", torch.randint(-3, 3, (4,)))

    def forward(self, x, h):
        q = torch.ops.quantized_decomposed
        whole, bytes_ = (0, 255, torch.uint8), (-128, 127, torch.int8)
        scale, zero = q.choose_qparams.tensor(x, 0, 255, 1e-6, torch.uint8)
        stepped = q.quantize_per_tensor.tensor(x, scale, zero, *whole)
        row_scale, row_zero = q.choose_qparams_per_token_asymmetric(x, torch.int8)
        rows = q.quantize_per_token(x, row_scale, row_zero, *bytes_)
        exact = self.scales.double()
        columns, fine = (q.quantize_per_channel(x, s, self.zeros, 1, *bytes_) for s in (self.scales, exact))
        group_scale, group_zero = torch.full((x.shape[0], 2), 0.05), torch.zeros(x.shape[0], 2, dtype=torch.int64)
        groups = q.quantize_per_channel_group(x, group_scale, group_zero, *bytes_, 2)
        return (scale, zero, stepped, q.dequantize_per_tensor.tensor(stepped, scale, zero, *whole), row_scale, row_zero, rows,
                q.choose_qparams_symmetric.tensor(x, -127, 127, 1e-6, torch.int8), q.choose_qparams_per_token(x, torch.int8),
                q.dequantize_per_token(rows, row_scale, row_zero, *bytes_, torch.float32), columns, fine,
                q.dequantize_per_channel(columns, self.scales, self.zeros, 1, *bytes_),
                q.dequantize_per_channel(fine, exact, None, 1, *bytes_, out_dtype=torch.float16), groups,
                q.dequantize_per_channel_group(groups, group_scale, None, *bytes_, 2, torch.float32),
                q.fake_quant_per_channel(x, self.scales, self.zeros, 1, -128, 127), q.choose_qparams.tensor(h, 0, 255, 1e-6, torch.uint8),
                q.quantize_per_tensor(h, 0.05, 3, *whole), q.quantize_per_channel(h, self.scales, self.zeros, 1, *bytes_),
                q.dequantize_per_tensor(stepped, 0.03, 2, *whole, out_dtype=torch.float16))


@torch.compiler.nested_compile_region
def repeated(x, w):
    return (x @ w).relu()


class Regions(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, 3))

    def forward(self, x):
        return repeated(x, self.w) + repeated(x * 2, self.w)


def exported():
    torch.manual_seed(0)
    b = torch.export.Dim("b", min=3, max=50)
    x = (torch.randn(3, 4), {"z": (torch.randn(3), torch.randn(2))})
    for old, decomposed in ((False, False), (False, True), (True, True)):
        name = "export_state" + ("_old" if old else "_core" if decomposed else "")
        export(name, Stateful().eval(), x, x, kw={"more": torch.randn(2)}, decomposed=decomposed, old=old)
    export("export_strict", Stateful().eval(), x, kw={"more": torch.randn(2)}, strict=True)
    export("export_flow", Flow(), (torch.tensor(3), torch.ones(2, 3)), (torch.tensor(1), -torch.ones(2, 3)))
    export("export_sizes", Sizes(), (torch.randn(4, 3), torch.randn(8, 3)), (torch.randn(5, 3), torch.randn(10, 3)),
           (torch.randn(5, 3), torch.randn(9, 3)), (torch.randn(60, 3), torch.randn(120, 3)), guarded=True,
           dynamic={"x": {0: b}, "y": {0: 2 * b}})
    auto = {0: torch.export.Dim.AUTO}
    export("export_branches", Branches(), *((torch.randn(x, 2), [torch.randn(2), torch.randn(y)], {"a": torch.randn(z)})
                                            for x, y, z in ((4, 3, 2), (6, 4, 5), (5, 3, 2), (4, 2, 7), (8, 9, 9))),
           guarded=True, dynamic={"x": auto, "parts": [None, auto], "names": {"a": auto}})
    export("export_scan", Scans(), *((torch.randn(2, 3), Pair(torch.randn(n, 2, 3), 4)) for n in (5, 2, 7)),
           dynamic={"h": None, "p": [{0: torch.export.Dim.AUTO}, None]})
    images = (torch.randn(1, 2, 4, 4), torch.tensor([2, 0]))
    export("export_many", Everything().eval(), images)
    export("export_many_core", Everything().eval(), images, decomposed=True)
    y, w = torch.eye(2) * 2, torch.randn(1, 1, 3)
    for name, decomposed in (("export_checks", False), ("export_checks_core", True)):
        export(name, Checks(), *((torch.randn(n, 4), a, w) for n, a in ((4, y), (5, y), (6, y), (4, y - 2), (4, y - 50), (4, -y))),
               dynamic={"x": {0: torch.export.Dim.AUTO}, "y": None, "w": {2: torch.export.Dim.AUTO}}, decomposed=decomposed,
               guarded=True)
    export("export_functional", Functional(), (torch.randn(4, 3), torch.randn(3), torch.rand(3), torch.zeros(4, 3)), decomposed=True)
    export("export_slices", Slices(), *((torch.randn(n, 3), torch.randn(3, n)) for n in (6, 8, 7)),
           dynamic={"x": {0: torch.export.Dim.AUTO}, "y": {1: torch.export.Dim.AUTO}})
    export("export_regions", Regions(), (torch.randn(2, 3),), strict=True)
    export("export_steps", Steps(), (3 * torch.randn(3, 4), 3 * torch.randn(5, 4).half()))
    parts = {"encode": nn.Linear(3, 4), "decode": nn.Sequential(nn.Linear(4, 3), nn.ReLU())}
    programs = {n: torch.export.export(m, (torch.randn(2, m[0].in_features if n == "decode" else 3),)) for n, m in parts.items()}
    for n, size in (("encode", 3), ("decode", 4)):
        write("export_package_" + n, ".pt2", lambda path: package_pt2(path, exported_programs=programs),
              lambda entry, args: parts[n](*args), [(torch.randn(2, size),)], model=n)
    refuse("refused_package", ".pt2", lambda path: package_pt2(path, exported_programs=programs),
           "several exported programs: choose one of encode, decode with --model")
    refuse("refused_package_name", ".pt2", lambda path: package_pt2(path, exported_programs=programs),
           "--model: no exported program other, only encode, decode", model="other")
    export("export_train", Trains().train(), (torch.randn(4, 3),), (torch.randn(4, 3),))
    script("train_norm", Trains().train(), (torch.randn(4, 3),), (torch.randn(4, 3),), training=True)


# ---- odd archives: written by hand ----
def opcode_str(text):
    return b"X" + struct.pack("<I", len(text)) + text.encode()


def opcode_int(n):
    return b"J" + struct.pack("<i", n)


def opcode_global(module, name):
    return f"c{module}\n{name}\n".encode()


def opcode_tuple(*items):
    return b"(" + b"".join(items) + b"t"


def opcode_tensor(key, tensor, device="cpu"):
    kinds = {torch.float32: "FloatStorage", torch.int64: "LongStorage"}
    storage = opcode_tuple(opcode_str("storage"), opcode_global("torch", kinds[tensor.dtype]), opcode_str(str(key)),
                           opcode_str(device), opcode_int(tensor.numel())) + b"Q"
    ints = [opcode_tuple(*map(opcode_int, v)) for v in (tensor.shape, tensor.stride())]
    return (opcode_global("torch._utils", "_rebuild_tensor_v2") +
            opcode_tuple(storage, opcode_int(0), *ints, b"\x89", opcode_global("collections", "OrderedDict") + b")R") + b"R")


def opcode_ints(values):
    return opcode_global("torch.jit._pickle", "build_intlist") + opcode_tuple(b"](" + b"".join(map(opcode_int, values)) + b"e") + b"R"


def by_hand(name, code, attributes, tensors, run, calls, byteorder=None, version=3, constants={}, **more):
    """attributes: name and opcodes of the one module M; tensors: storages by number; constants: by the key of their storage."""
    def save(path):
        state = b"}(" + b"".join(opcode_str(k) + v for k, v in attributes) + b"u"
        with zipfile.ZipFile(path, "w") as z:
            z.writestr("m/data.pkl", b"\x80\x02" + opcode_global("__torch__", "M") + b")\x81" + state + b"b.")
            z.writestr("m/constants.pkl", b"\x80\x02" + opcode_tuple(*(opcode_tensor(*c) for c in constants.items())) + b".")
            for key, t in constants.items():
                z.writestr(f"m/constants/{key}", t.numpy().tobytes())
            z.writestr("m/code/__torch__.py", code)
            z.writestr("m/version", f"{version}\n")
            for i, t in enumerate(tensors):
                data = t.numpy()
                z.writestr(f"m/data/{i}", (data.byteswap() if byteorder == "big" else data).tobytes())
            if byteorder:
                z.writestr("m/byteorder", byteorder)
    write(name, ".pt", save, run, calls, **more)


HEAD = "class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n"


def texts(k):
    if k == 0:
        raise KeyError("x")
    size = torch.zeros(2, k).shape
    return "%(a)d and %(b)4s" % {"a": k, "b": 2}, "{} {} {}".format(size, [size], [torch.float32])


def odd():
    torch.manual_seed(0)
    w, b, lin = torch.randn(4, 2, 3, 3), torch.randn(4), torch.randn(3, 36)
    up = torch.randn(4, 2, 2, 2)

    def packed(kind, *state):
        return opcode_global("__torch__.torch.classes.xnnpack", kind) + b")\x81" + opcode_tuple(*state) + b"b"
    low, high = b"G" + struct.pack(">d", 0.0), b"G" + struct.pack(">d", 6.0)
    by_hand("xnnpack", HEAD + "  conv : __torch__.torch.classes.xnnpack.Conv2dOpContext\n"
            "  up : __torch__.torch.classes.xnnpack.TransposeConv2dOpContext\n"
            "  fc : __torch__.torch.classes.xnnpack.LinearOpContext\n"
            "  def forward(self: __torch__.M,\n    x: Tensor) -> Tuple[Tensor, Tensor]:\n"
            "    y = ops.prepacked.conv2d_clamp_run(x, self.conv)\n"
            "    z = ops.prepacked.conv2d_transpose_clamp_run(y, self.up)\n"
            "    return (ops.prepacked.linear_clamp_run(torch.flatten(y, 1), self.fc), z)\n",
            [("conv", packed("Conv2dOpContext", opcode_tensor(0, w), opcode_tensor(1, b), opcode_ints([1, 1]),
                             opcode_ints([1, 1]), opcode_ints([1, 1]), opcode_int(1), low, high)),
             ("up", packed("TransposeConv2dOpContext", opcode_tensor(3, up), b"N", opcode_ints([2, 2]), opcode_ints([0, 0]),
                           opcode_ints([0, 0]), opcode_ints([1, 1]), opcode_int(1), b"N", b"N")),
             ("fc", packed("LinearOpContext", opcode_tensor(2, lin), b"N", b"N", b"N"))], [w, b, lin, up],
            lambda entry, args: (lambda y: (torch.flatten(y, 1) @ lin.T, nn.functional.conv_transpose2d(y, up, stride=2)))(
                nn.functional.conv2d(args[0], w, b, padding=1).clamp(0, 6)), [(torch.randn(1, 2, 3, 3),)])
    by_hand("shared_constants", HEAD + "  training : bool\n  def forward(self: __torch__.M,\n    x: Tensor) -> Tensor:\n"
            "    return torch.add(torch.mul(x, CONSTANTS.c0), CONSTANTS.c1)\n", [("training", b"\x89")], [],
            lambda entry, args: args[0] * lin[0, :3] + b[:3], [(torch.randn(2, 3),)],
            constants={"0.storage": lin[0, :3].clone(), "1.storage": b[:3].clone()})
    weight, places, values = torch.randn(2, 3), torch.tensor([[0, 1, 1], [2, 0, 0]]), torch.tensor([1.0, 2.0, 3.0])
    code = (HEAD + "  w : Tensor\n  s : Tensor\n  nt : __torch__.Pair\n  d : Device\n"
            "  def forward(self: __torch__.M,\n    x: Tensor) -> Tuple[Tensor, Tensor, bool, int]:\n"
            "    y = torch.to(x, torch.device(\"cuda:0\"), 6)\n"
            "    z = torch.add(torch.mul(self.w, y), torch.zeros([3], dtype=6, layout=None, device=self.d))\n"
            "    return (z, torch._sparse_mm(self.s, torch.t(x)), torch.eq(ops.prim.device(x), self.d), (self.nt).k)\n"
            "class Pair(NamedTuple):\n  k : int\n  t : Tensor\n")
    for name, order in (("devices", None), ("big_endian", "big")):
        by_hand(name, code, [
            ("w", opcode_tensor(0, weight, "cuda:0")),
            ("s", opcode_global("torch._utils", "_rebuild_sparse_tensor") +
             opcode_tuple(opcode_int(1), opcode_tuple(opcode_int(2), opcode_int(3)), b"\x89", opcode_tensor(1, places),
                          opcode_tensor(2, values), opcode_global("collections", "OrderedDict") + b")R") + b"R"),
            ("nt", opcode_tuple(opcode_int(7), opcode_tensor(0, weight))),
            ("d", opcode_global("torch", "device") + opcode_tuple(opcode_str("cuda:0")) + b"R")],
            [weight, places, values],
            lambda entry, args: (weight * args[0], torch.sparse_coo_tensor(places, values, (2, 3)).to_dense() @ args[0].T,
                                 True, 7), [(torch.randn(2, 3),)], byteorder=order)
    old = ("  def forward(self: __torch__.M,\n    x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:\n"
           "    return (torch.full([2], 3), torch.div(x, 2), torch.div(x, 2, rounding_mode=\"floor\"), torch.linspace(0, 1), "
           "torch.gelu(torch.to(x, 6)))\n")
    i = torch.tensor([7, -7])
    for version in (3, 5):
        by_hand(f"version_{version}", HEAD + "  training : bool\n" + old, [("training", b"\x89")], [],
                lambda entry, args: (torch.full([2], 3.0 if version < 5 else 3),
                                     torch.div(i, 2, rounding_mode="trunc") if version < 4 else i / 2,
                                     torch.div(i, 2, rounding_mode="floor"), torch.linspace(0, 1, 100),
                                     nn.functional.gelu(i.float())), [(i,)], version=version)
    by_hand("python_texts", HEAD + "  training : bool\n  def forward(self: __torch__.M,\n    k: int) -> Tuple[str, str]:\n"
            "    if torch.eq(k, 0):\n      ops.prim.RaiseException(\"x\", \"builtins.KeyError\")\n    else:\n      pass\n"
            "    z = torch.zeros([2, k])\n    s = torch.size(z)\n"
            "    return (torch.percentFormat(\"%(a)d and %(b)4s\", {\"a\": k, \"b\": 2}), torch.format(\"{} {} {}\", s, [s], [ops.prim.dtype(z)]))\n",
            [("training", b"\x89")], [], lambda entry, args: texts(*args), [(3,), (0,)])
    net = torch.jit.script(nn.Sequential(nn.Conv2d(1, 1, 3), nn.ReLU()).eval())
    refuse("refused_optimized", ".pt", torch.jit.optimize_for_inference(net).save, "optimize_for_inference")

    class Unsigned(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("steps", torch.tensor([1, 2]).to(torch.uint16))

        def forward(self, x):
            return x * self.steps.to(torch.float32)
    program = torch.export.export(Unsigned(), (torch.randn(2),))
    refuse("refused_export_dtype", ".pt2", lambda path: torch.export.save(program, path),
           "a weight of dtype uint16 is not supported (while reading the weight steps)")

    class Twofold(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(TwoTensor(torch.ones(2), torch.ones(2)), requires_grad=False)

        def forward(self, x):
            return x * self.w
    program_of_class = torch.export.export(Twofold(), (torch.randn(2),))
    refuse("refused_export_class", ".pt2", lambda path: torch.export.save(program_of_class, path), "save program.run_decompositions()")

    def rewrite(path, change):
        """Members for which `change` gives None go."""
        old = zipfile.ZipFile(path)
        members = [(m.filename, change(m.filename, old.read(m))) for m in old.infolist()]
        with zipfile.ZipFile(path, "w") as new:
            for name, data in members:
                if data is not None:
                    new.writestr(name, data)

    def bytecode_only(path):
        net._save_for_lite_interpreter(path)
        rewrite(path, lambda name, data: None if "/code/" in name else data)
    refuse("refused_bytecode", ".pt", bytecode_only, "bytecode only")

    class Restores(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 41

        @torch.jit.export
        def __getstate__(self):
            return (self.n, self.training)

        @torch.jit.export
        def __setstate__(self, state: Tuple[int, bool]):
            self.n = state[0]
            self.training = state[1]

        def forward(self, x: torch.Tensor):
            return x + self.n

    def other_state(path):
        torch.jit.script(Restores()).save(path)
        # (None, True) in place of (41, True): the tuple is not what __setstate__ declares
        rewrite(path, lambda name, data: data.replace(b"K\x29", b"N") if name.endswith("/data.pkl") else data)
    refuse("refused_state", ".pt", other_state, "__setstate__ holds tuple, which is not of the declared type")


# ---- state dicts ----
def old_tar(path, state):
    """What torch 0.1 wrote, which PyTorch still reads."""
    kinds = {torch.float32: "Float", torch.int64: "Long"}

    class Key:
        def __init__(self, number):
            self.number = number

    class Pickler(pickle.Pickler):
        def persistent_id(self, o):
            return str(o.number) if isinstance(o, Key) else None
    storages, tensors = pickle.dumps(len(state), 2), pickle.dumps(len(state), 2)
    for i, t in enumerate(state.values()):
        head = [opcode_int(i), opcode_str("cpu"), opcode_global("torch", kinds[t.dtype] + "Storage")]
        storages += b"\x80\x02" + opcode_tuple(*head) + b"." + struct.pack("<q", t.numel()) + t.contiguous().numpy().tobytes()
        head = [opcode_int(100 + i), opcode_int(i), opcode_global("torch", kinds[t.dtype] + "Tensor")]
        tensors += (b"\x80\x02" + opcode_tuple(*head) + b"." + struct.pack("<ii", t.dim(), 0) +
                    struct.pack(f"<{2 * t.dim() + 1}q", *t.shape, *t.contiguous().stride(), 0))
    names = io.BytesIO()
    Pickler(names, 2).dump({k: Key(100 + i) for i, k in enumerate(state)})
    with tarfile.open(path, "w:") as tar:
        for name, data in (("storages", storages + pickle.dumps([], 2)), ("tensors", tensors), ("pickle", names.getvalue())):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    assert torch.load(path, weights_only=False).keys() == state.keys()


def state_dicts():
    sys.path.insert(0, HERE)
    import weights
    torch.manual_seed(0)
    net = weights.Net().eval()
    for p in net.state_dict().values():
        p.copy_(torch.rand(p.shape) if p.is_floating_point() else p)
    state = dict(net.state_dict())
    parallel = {"epoch": 3, "state_dict": {"module." + k: v for k, v in state.items()}, "optimizer": {"lr": 0.1, "state": {}}}

    def save(**options):
        return lambda path: torch.save(parallel, path, **options)
    def beside(path, **options):
        """What stands beside the weights of checkpoints, and weights with attributes."""
        named = {k: nn.Parameter(v.clone(), v.is_floating_point()) if i == 0 else v.clone() for i, (k, v) in enumerate(state.items())}
        for v in list(named.values())[:2]:
            v.note = "kept"
        steps = torch.optim.Adam([nn.Parameter(torch.ones(3))])
        steps.param_groups[0]["params"][0].grad = torch.ones(3)
        steps.step()
        torch.save({"best": np.float64(0.5), "curve": np.arange(3), "args": argparse.Namespace(lr=0.1, path=pathlib.PosixPath("x")),
                    "device": torch.device("cpu"), "dtype": torch.float16, "seen": {1, 2}, "raw": b"\xff", "buffer": bytearray(b"x"),
                    "counts": collections.Counter("aab"), "groups": collections.defaultdict(list, a=[1]),
                    "optimizer": steps.state_dict(), "model": named}, path, **options)
    for name, save in (("weights_checkpoint", save()), ("weights_pickles", save(_use_new_zipfile_serialization=False)),
                       ("weights_beside", lambda path: beside(path, pickle_protocol=4)),
                       ("weights_beside_pickles", lambda path: beside(path, _use_new_zipfile_serialization=False)),
                       ("weights_tar", lambda path: old_tar(path, state))):
        write(name, ".pth", save, lambda entry, args: net(*args), [(torch.randn(2, 3),)], script="weights.py")


quantized()
exported()
odd()
state_dicts()

#!/usr/bin/env python3
"""Makes the archives that run_archives.py reads, with PyTorch's own results: make_archives.py [NAME...]
Needs PyTorch (made with 2.13) and safetensors; the build and the tests do not."""
import copy
import json
import os
import sys
import warnings
import zipfile

import torch
import torch.ao.quantization as tq
from safetensors.torch import save_file
from torch import nn
from torch._export.serde.serialize import serialize

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
    json.dump(spec, open(os.path.join(HERE, name + ".json"), "w"), indent=None)
    if tensors:
        save_file(tensors, os.path.join(HERE, name + ".safetensors"))
    print(name)


def script(name, module, *calls, trace=False, training=False, **more):
    module = module.eval() if isinstance(module, nn.Module) and not training else module
    made = torch.jit.trace(module, calls[0], check_trace=False) if trace else torch.jit.script(module)
    write(name, ".pt", made.save, lambda entry, args: getattr(made, entry)(*args) if entry != "forward" else made(*args),
          calls, **more)


def refuse(name, suffix, save, text):
    if not WANTED or name in WANTED:
        save(os.path.join(HERE, name + suffix))
        json.dump({"refused": text}, open(os.path.join(HERE, name + ".json"), "w"))
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
                torch.fft.rfft(y).abs(), i.to(torch.float64) * 0.5, y[..., None].expand(-1, -1, -1, 2).flatten(2), i.argmax())


class Trains(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x):
        return self.bn(x), self.bn.running_mean + 0


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
    images = (torch.randn(1, 2, 4, 4), torch.tensor([2, 0]))
    export("export_many", Everything().eval(), images)
    export("export_many_core", Everything().eval(), images, decomposed=True)
    export("export_train", Trains().train(), (torch.randn(4, 3),), (torch.randn(4, 3),))
    script("train_norm", Trains().train(), (torch.randn(4, 3),), (torch.randn(4, 3),), training=True)


quantized()
exported()

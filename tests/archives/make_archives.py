#!/usr/bin/env python3
"""Makes the archives that run_archives.py reads, with PyTorch's own results: make_archives.py [NAME...]
Needs PyTorch (made with 2.13) and safetensors; the build and the tests do not."""
import json
import os
import sys
import warnings
import zipfile

import torch
import torch.ao.quantization as tq
from safetensors.torch import save_file
from torch import nn

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


def slim(path):
    """Without debug records, which hold paths of this machine, and compressed: a few KB each."""
    old = zipfile.ZipFile(path)
    members = [(m.filename, old.read(m)) for m in old.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, data in members:
            if not name.endswith(".debug_pkl") and not name.endswith("serialization_id"):
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
        with torch.no_grad():
            spec["results"].append({"result": encode(run(entry, args), tensors, "t")})
    json.dump(spec, open(os.path.join(HERE, name + ".json"), "w"), indent=None)
    if tensors:
        save_file(tensors, os.path.join(HERE, name + ".safetensors"))
    print(name)


def script(name, module, *calls, trace=False, **more):
    module = module.eval() if isinstance(module, nn.Module) else module
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


quantized()

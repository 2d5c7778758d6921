#!/usr/bin/env python3
"""Exports models of torchvision, timm, transformers and torchaudio for run_real_models.py:
export_real_models.py FOLDER [NAME or GLOB...] [--list] [--float64] [--verbose]

Needs these packages; nothing else in the repository does. Each model gets seeded random weights and seeded
inputs, is scripted where PyTorch scripts it and traced otherwise, and becomes FOLDER/<name>/ with model.pt,
inputs.safetensors, outputs.safetensors (of the eager module) and meta.json (the trees of arguments and results).
--float64 also runs the eager module in float64 and says how far that is away: what a result can be trusted to.

The catalogue_*.py beside this list the models: a row is name -> function giving (module, arguments[, options]);
options: trace=True; scripted_result=True where scripting shapes the result differently; perturb=False for a
module that makes its own weights; tolerance."""
import copy
import fnmatch
import json
import os
import sys
import time
import traceback
import warnings

import torch
from safetensors.torch import save_file

import catalogue_timm
import catalogue_torchaudio
import catalogue_torchvision
import catalogue_transformers

CATALOGUES = {"torchvision": catalogue_torchvision, "timm": catalogue_timm, "transformers": catalogue_transformers,
              "torchaudio": catalogue_torchaudio}


def perturb(module):
    """Makes every branch of a model weigh in its result, so that an error anywhere shows. What initialisers leave constant
    (normalisation, layer scales of 1e-6, gates of zero, zero biases) becomes random, and weights below 0.7/sqrt(inputs)
    get a spread that keeps signals alive: heads scaled by 0.001 would leave a bias alone as the result, and a spread
    of 0.02 in a small network makes every attention uniform."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, value in list(module.named_parameters()) + list(module.named_buffers()):
            running = name.endswith(("running_mean", "running_var"))
            if not value.is_floating_point() or value.numel() == 0 or not (isinstance(value, torch.nn.Parameter) or running):
                continue
            spread = float(value.std(unbiased=False)) if value.dim() > 1 else 0.0
            inputs = value.numel() // value.shape[0] if value.dim() > 1 else 1
            if bool((value == value.flatten()[0]).all()) or float(value.abs().max()) < 1e-3:
                value.add_(0.1 * torch.randn(value.shape, generator=generator))
            elif inputs > 1 and 0 < spread < 0.7 / inputs ** 0.5:
                value.mul_((1.4 if value.dim() > 2 else 1.0) / (inputs ** 0.5 * spread))
            elif value.dim() == 1 and name.endswith("weight") and float(value.abs().max()) < 0.2:
                value.add_(1)                   # a norm whose initialiser took it for a layer


def calibrate(module, arguments):
    """Gives batch norms the spread of what the arguments make of them, as training would, so that signals neither vanish
    nor explode. Means stay: without them what is pooled at the end would be the rounding of a zero."""
    def observe(layer, inputs):
        x = inputs[0].transpose(0, 1).flatten(1)
        if layer.running_var is not None:       # few samples: no channel below the spread of all
            layer.running_var.copy_(x.var(1, unbiased=False) + x.var(unbiased=False) + 1e-6)

    hooks = [m.register_forward_pre_hook(observe) for m in module.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    if hooks:
        with torch.no_grad():
            module(*copy.deepcopy(arguments))
    for hook in hooks:
        hook.remove()


def moved(arguments):
    """The same arguments in another order of their last dimension, and halved: what a result should not be blind to."""
    if isinstance(arguments, torch.Tensor):
        moved = arguments.flip(-1) if arguments.dim() > 1 else arguments
        return 0.5 * moved if moved.is_floating_point() else moved
    if isinstance(arguments, (list, tuple)):
        return type(arguments)(moved(a) for a in arguments)
    return arguments


def sensitivity(module, arguments, result):
    """How far other arguments move the result, of its largest magnitude; 1 where they cannot be used."""
    try:
        other = leaves(module(*moved(copy.deepcopy(arguments))))
    except Exception:
        return 1.0
    change = 0.0
    for a, b in zip(leaves(result), other):
        if a.shape != b.shape:
            return 1.0
        if a.numel() and (a.is_floating_point() or a.is_complex()):
            change = max(change, float((a - b).abs().max() / a.abs().max().clamp_min(1e-30)))
        elif not torch.equal(a, b):
            return 1.0
    return change


def tree(value, prefix, tensors):
    if isinstance(value, torch.Tensor):
        name = f"{prefix}{len(tensors)}"
        tensors[name] = value.detach().contiguous().clone()
        return {"tensor": name}
    if isinstance(value, dict):
        return {"dict": [[k, tree(v, prefix, tensors)] for k, v in value.items()]}
    if isinstance(value, (list, tuple)):
        return {"list" if isinstance(value, list) else "tuple": [tree(v, prefix, tensors) for v in value]}
    return value


def leaves(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [x for v in value.values() for x in leaves(v)]
    if isinstance(value, (list, tuple)):
        return [x for v in value for x in leaves(v)]
    return []


def to_double(value):
    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value
    if isinstance(value, (list, tuple)):
        return type(value)(to_double(v) for v in value)
    return value


def trust(module, arguments, result):
    """Distance of the same module in float64, of the largest magnitude."""
    worst = 0.0
    exact = leaves(copy.deepcopy(module).double()(*to_double(copy.deepcopy(arguments))))
    for a, b in zip(leaves(result), exact):
        if a.shape != b.shape:
            return float("inf")
        if a.numel() and a.is_floating_point():
            worst = max(worst, float((a.double() - b).abs().max() / b.abs().max().clamp_min(1e-30)))
    return worst


def export(library, name, build, folder, float64):
    torch.manual_seed(0)
    made = build()
    module, arguments, options = made if len(made) == 3 else (*made, {})
    note = ""
    if isinstance(module, torch.nn.Module):
        module.eval()
        if options.get("perturb", True):
            perturb(module)
            calibrate(module, arguments)
    with torch.no_grad():
        torch.manual_seed(1)
        result = module(*copy.deepcopy(arguments))
        if float64:
            try:
                note = f"float64 {trust(module, arguments, result):.1e}"
            except Exception as error:
                note = f"float64: {type(error).__name__} {str(error)[:60]}"
        if options.get("trace"):
            program = torch.jit.trace(module, copy.deepcopy(arguments), strict=False, check_trace=False)
        else:
            program = torch.jit.script(module)
        if options.get("scripted_result"):     # results that scripting shapes differently, such as detection's pairs
            torch.manual_seed(1)
            result = program(*copy.deepcopy(arguments))
    for t in leaves(result):
        if t.numel() == 0 or t.is_floating_point() and not (bool(t.isfinite().any()) and float(t.abs().max()) > 0):
            raise ValueError("an empty result, zeros or NaN say nothing")
    with torch.no_grad():
        torch.manual_seed(1)
        if sensitivity(module, arguments, result) < 1e-2:
            raise ValueError("the result hardly depends on the arguments")
    target = os.path.join(folder, name)
    os.makedirs(target, exist_ok=True)
    torch.jit.save(program, os.path.join(target, "model.pt"))
    inputs, outputs = {}, {}
    meta = {"library": library, "how": "traced" if options.get("trace") else "scripted",
            "args": [tree(a, "in", inputs) for a in arguments], "result": tree(result, "out", outputs),
            "bytes": os.path.getsize(os.path.join(target, "model.pt"))}
    if "tolerance" in options:
        meta["tolerance"] = options["tolerance"]
    save_file(inputs or {"none": torch.zeros(1)}, os.path.join(target, "inputs.safetensors"))
    save_file(outputs or {"none": torch.zeros(1)}, os.path.join(target, "outputs.safetensors"))
    with open(os.path.join(target, "meta.json"), "w") as file:
        json.dump(meta, file, indent=1)
    return note


def main():
    flags = [a for a in sys.argv[1:] if a.startswith("--")]
    rest = [a for a in sys.argv[1:] if not a.startswith("--")]
    rows = [(library, name, build) for library, catalogue in CATALOGUES.items() for name, build in catalogue.MODELS.items()]
    if "--list" in flags:
        for library, name, _ in rows:
            print(library, name)
        return 0
    folder, patterns = rest[0], rest[1:]
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    failed = 0
    for library, name, build in rows:
        if patterns and not any(fnmatch.fnmatch(name, p) or library == p for p in patterns):
            continue
        start = time.monotonic()
        try:
            note = export(library, name, build, folder, "--float64" in flags)
            print(f"{library:12} {name:36} ok {time.monotonic() - start:6.1f} s {note}", flush=True)
        except Exception as error:
            failed += 1
            if "--verbose" in flags:
                traceback.print_exc()
            print(f"{library:12} {name:36} {type(error).__name__}: {' '.join(str(error).split())[:300]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Records what PyTorch computes for each model script: recorded/<name>.json and .safetensors.

Needs torch and safetensors: python models/record.py. The tests compare tsc's results with these
(tests/models)."""
import importlib.util
import json
import os
import sys

import torch
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))


def rand(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def ints(high, *shape, seed=2):
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(seed))


def mask(n, *lengths):
    return (torch.arange(n)[None] < torch.tensor(lengths)[:, None]).long()


# name -> (the --input options, the calls: arguments, or (entry, arguments))
CASES = {
    "mlp": (["input:float32[N,784]"], [[rand(2, 784)]]),
    "lenet": (["x:float32[2,1,32,32]"], [[rand(2, 1, 32, 32)]]),
    "resnet": (["x:float32[1,3,32,32]"], [[rand(1, 3, 32, 32)]]),
    "mobilenet": (["x:float32[1,3,48,48]"], [[rand(1, 3, 48, 48)]]),
    "unet": (["x:float32[1,1,32,40]"], [[rand(1, 1, 32, 40)]]),
    "video": (["x:float32[2,3,5,12,14]"], [[rand(2, 3, 5, 12, 14)]]),
    "lstm": (["ids:int64[T,N]"], [[ints(64, 9, 2)]]),
    "transformer": (["ids:int64[2,12]", "mask:int64[2,12]"], [[ints(100, 2, 12), mask(12, 12, 7)]]),
    "gpt2": (["ids:int64[1,T]", "k_past:float32[2,1,4,P,16]", "v_past:float32[2,1,4,P,16]"],
             [[ints(96, 1, 5), torch.zeros(2, 1, 4, 0, 16), torch.zeros(2, 1, 4, 0, 16)],
              [ints(96, 1, 1, seed=3), rand(2, 1, 4, 5, 16), rand(2, 1, 4, 5, 16, seed=4)]]),
    "decode": (["state:float32[1,32]", "start:int", "stop:int"], [[rand(1, 32), 1, 7], [rand(1, 32, seed=5), 3, 11]]),
    "gru_tagger": (["words:int64[N,L,C]"], [[ints(30, 2, 5, 6)]]),
    "train_digits": (["train_step.images:float32[16,1,8,8]", "train_step.labels:int64[16]", "classify.images:float32[16,1,8,8]"],
                     [("train_step", [rand(16, 1, 8, 8), ints(10, 16)]) for _ in range(8)]
                     + [("classify", [rand(16, 1, 8, 8)]), ("train_step", [rand(16, 1, 8, 8, seed=6), ints(10, 16, seed=7)])]),
    "vae": ([], [[rand(1, 1, 28, 28)], ("decode", [rand(3, 8)])]),
    "kalman": ([], [[0.3], [0.5], [None], [0.8], ("reset", []), [1.0], [None], [None], [None], [None], [2.0]]),
}


def tree(value, prefix, tensors):
    if isinstance(value, torch.Tensor):
        name = f"{prefix}{len(tensors)}"
        tensors[name] = value.detach().contiguous().clone()
        return {"tensor": name}
    if isinstance(value, (list, tuple)):
        return {"list" if isinstance(value, list) else "tuple": [tree(v, prefix, tensors) for v in value]}
    return value


def main(names):
    for name in names or CASES:
        spec = importlib.util.spec_from_file_location(name, os.path.join(HERE, name + ".py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        inputs, calls = CASES[name]
        tensors = {}
        recorded = []
        for call in calls:
            entry, args = call if isinstance(call, tuple) else ("forward", call)
            item = {"entry": entry, "args": [tree(a, "in", tensors) for a in args]}
            try:
                with torch.set_grad_enabled(entry == "train_step"):
                    item["result"] = tree(getattr(module.model, entry)(*args), "out", tensors)
            except Exception as error:
                item["raises"] = {"type": type(error).__name__, "message": str(error)}
            recorded.append(item)
        with open(os.path.join(HERE, "recorded", name + ".json"), "w") as file:
            json.dump({"inputs": inputs, "calls": recorded}, file, indent=1)
            file.write("\n")
        save_file(tensors or {"none": torch.zeros(1)}, os.path.join(HERE, "recorded", name + ".safetensors"))
        print(name, recorded[0].get("raises", "ok"))


if __name__ == "__main__":
    main(sys.argv[1:])

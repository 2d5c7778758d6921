# RUN: tsc %s --entry f
# ERROR: 6:12: a function cannot be indexed
import torch

def f(x: torch.Tensor):
    return x.size[0]

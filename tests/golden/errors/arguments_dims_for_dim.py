# RUN: tsc %s --entry f
# ERROR: 6:12: no overload of sum takes (Tensor, dims=int)
import torch

def f(x: torch.Tensor):
    return torch.sum(x, dims=1)

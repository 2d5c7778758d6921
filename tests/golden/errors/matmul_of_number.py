# RUN: tsc %s --entry f
# ERROR: 6:12: expected Tensors for @, found Tensor and int
import torch

def f(x: torch.Tensor, n: int):
    return x @ n

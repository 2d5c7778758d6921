# RUN: tsc %s --entry f
# ERROR: 5:5: RuntimeError: The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0
import torch
from torch import Tensor
a = torch.ones(2) + torch.ones(3)
def f(x: Tensor):
    return x + a

# RUN: tsc %s --entry f
# ERROR: 6:12: no overload of relu takes (Tensor, int, int)
import torch
from torch import Tensor
def f(x: Tensor):
    return torch.relu(x, 3, 4)

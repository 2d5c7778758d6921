# RUN: tsc %s --entry f
# ERROR: 6:12: no overload of softmax takes (Tensor, axes=int)
import torch
from torch import Tensor
def f(x: Tensor):
    return torch.softmax(x, axes=1)

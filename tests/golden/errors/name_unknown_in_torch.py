# RUN: tsc %s --entry f
# ERROR: 6:12: torch.sofmax is not supported yet
import torch
from torch import Tensor
def f(x: Tensor):
    return torch.sofmax(x, dim=1)

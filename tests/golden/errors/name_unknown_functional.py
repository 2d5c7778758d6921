# RUN: tsc %s --entry f
# ERROR: 6:12: torch.nn.functional.reluu is not supported yet
import torch.nn.functional as F
from torch import Tensor
def f(x: Tensor):
    return F.reluu(x)

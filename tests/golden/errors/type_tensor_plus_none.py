# RUN: tsc %s --entry f
# ERROR: 5:12: no overload of add takes (Tensor, None)
from torch import Tensor
def f(x: Tensor):
    return x + None

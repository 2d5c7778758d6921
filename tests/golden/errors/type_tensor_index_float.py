# RUN: tsc %s --entry f
# ERROR: 5:14: no overload of select takes (Tensor, int, float)
from torch import Tensor
def f(x: Tensor):
    return x[1.5]

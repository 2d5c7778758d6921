# RUN: tsc %s --entry f
# ERROR: 5:12: no overload of add takes (Tensor, str)
from torch import Tensor
def f(x: Tensor, s: str):
    return x + s

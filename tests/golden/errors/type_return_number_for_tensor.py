# RUN: tsc %s --entry f
# ERROR: 5:12: expected Tensor for the returned value, found int
from torch import Tensor
def f(x: Tensor) -> Tensor:
    return x.size(0)

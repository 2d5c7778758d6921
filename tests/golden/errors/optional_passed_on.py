# RUN: tsc %s --entry f
# ERROR: 8:14: expected Tensor for argument 'x', found str
from typing import Optional
from torch import Tensor
def g(x: Tensor) -> Tensor:
    return x
def f(a: Optional[str]):
    return g(a)

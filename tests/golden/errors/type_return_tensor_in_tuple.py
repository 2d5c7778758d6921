# RUN: tsc %s --entry f
# ERROR: 6:12: expected Tuple[int, int] for the returned value, found Tuple[Tensor, int]
from typing import Tuple
from torch import Tensor
def f(x: Tensor) -> Tuple[int, int]:
    return x, 1

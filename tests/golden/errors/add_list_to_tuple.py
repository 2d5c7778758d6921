# RUN: tsc %s --entry f
# ERROR: 12:9: expected a tuple to add to the tuple, found a list
# ERROR: 13:9: expected a list to add to the list, found a tuple
# ERROR: 16:9: expected a list to add to the list, found a tuple
# ERROR: 17:9: expected a tuple to add to the tuple, found a list
# ERROR: 19:5: expected a tuple to add to the tuple, found a list
import torch
from typing import List

def f(x: torch.Tensor, xs: List[int]):
    a = [1]
    s = x.shape + [1]
    t = [1] + (2, 3)
    b = sorted(xs)
    c = [v for v in xs]
    d = b + (2, 3)
    e = tuple(c) + list(xs)
    u = (1, 2)
    u += a
    c += (1, 2)
    return x.view(s), t, d, e, u, c

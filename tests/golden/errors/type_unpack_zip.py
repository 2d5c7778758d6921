# RUN: tsc %s --entry f
# ERROR: 5:19: expected 3 values to unpack, found 2
from typing import List
def f(xs: List[int]):
    return [a for a, b, c in zip(xs, xs)]

# RUN: tsc %s --entry f
# ERROR: 5:12: expected int for the index, found float
from typing import List
def f(xs: List[int], g: float):
    return xs[g]

# RUN: tsc %s --entry f
# ERROR: 5:5: expected one starred target at most, found 2
from typing import List
def f(xs: List[int]):
    *a, *b = xs
    return a

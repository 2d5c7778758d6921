# RUN: tsc %s --entry f
# ERROR: 5:12: expected int for the index, found str
from typing import List
def f(xs: List[int], s: str):
    return xs[s]

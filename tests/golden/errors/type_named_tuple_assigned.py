# RUN: tsc %s --entry f
# ERROR: 8:5: P has no attribute 'x' that can be assigned
from typing import NamedTuple
class P(NamedTuple):
    x: int
def f(n: int):
    p = P(n)
    p.x = 3
    return p.x

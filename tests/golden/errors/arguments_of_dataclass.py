# RUN: tsc %s --entry f
# ERROR: 8:12: P has no field 'm'
from dataclasses import dataclass
@dataclass
class P:
    n: int
def f(n: int):
    return P(m=n).n

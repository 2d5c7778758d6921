# RUN: tsc %s --entry f
# ERROR: 8:12: P and P cannot be ordered
from dataclasses import dataclass
@dataclass
class P:
    x: int
def f(n: int):
    return P(n) < P(2)

# RUN: tsc %s --entry f
# ERROR: 8:5: a field without a default follows one with a default
from dataclasses import dataclass

@dataclass
class P:
    a: int = 1
    b: int

def f(n: int):
    return P(n, n).a

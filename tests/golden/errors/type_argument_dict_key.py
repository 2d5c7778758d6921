# RUN: tsc %s --entry f
# ERROR: 7:14: expected Dict[str, int] for argument 'a', found Dict[int, int]
from typing import Dict
def g(a: Dict[str, int]) -> int:
    return 1
def f(n: int):
    return g({n: n})
